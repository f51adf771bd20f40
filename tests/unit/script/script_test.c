/* SPDX-License-Identifier: Apache-2.0 */
/* The language by construct: scripts and their results; then documents, then limits. */
#include "evaluate.h"

#include "base/budget.h"
#include "base/buf.h"

/* Java's library by use case; each expectation is the reply of 7.10 or Java's documentation. */
static const struct evaluated library[] = {
    {"Map m = ['b': 1, 'a': 2]; return m.entrySet().stream().sorted(Map.Entry.comparingByValue()).map(e -> e.key)"
     ".collect(Collectors.toList())",
     "[\"b\",\"a\"]"},
    {"Calendar c = new GregorianCalendar(2020, 2, 15); return c.get(Calendar.YEAR) + '-' + c.get(Calendar.MONTH) + ' ' "
     "+ c.get(Calendar.DAY_OF_WEEK) + ' ' + c.get(Calendar.WEEK_OF_YEAR) + ' ' + c.get(Calendar.DAY_OF_YEAR) + ' ' "
     "+ c.getActualMaximum(Calendar.DAY_OF_MONTH) + ' ' + c.get(Calendar.WEEK_OF_MONTH)",
     "\"2020-2 1 12 75 31 3\""},
    {"Calendar c = Calendar.getInstance(); c.setTimeInMillis(1584267630123L); c.add(Calendar.MONTH, -1); "
     "c.add(Calendar.DATE, 20); "
     "return c.getTimeInMillis() + ' ' + c.getTime() + c.get(Calendar.HOUR) + c.get(Calendar.AM_PM)",
     "\"1583490030123 Fri Mar 06 10:20:30 UTC 2020100\""},
    {"Calendar c = new GregorianCalendar(2020, 0, 31); c.set(Calendar.MONTH, Calendar.FEBRUARY); "
     "c.set(Calendar.DAY_OF_MONTH, 1); "
     "return c.getTimeInMillis()",
     "1580515200000"},
    {"Calendar c = new GregorianCalendar(2020, 0, 31); c.add(Calendar.MONTH, 1); return c.get(Calendar.DAY_OF_MONTH) + "
     "' ' "
     "+ new GregorianCalendar(2020, 11, 31).get(Calendar.WEEK_OF_YEAR) + ' ' + new GregorianCalendar(2020, 11, 26)"
     ".get(Calendar.WEEK_OF_YEAR) + ' ' + c.before(new GregorianCalendar(2021, 0, 1)) + "
     "c.getActualMaximum(Calendar.WEEK_OF_YEAR)",
     "\"29 1 52 true52\""},
    {"new GregorianCalendar().get(99)", "array_index_out_of_bounds_exception: Index 99 out of bounds for length 17"},
    {"Calendar c = new GregorianCalendar(2147483647, 2147483647, 2147483647); c.add(Calendar.YEAR, 2147483647); "
     "c.set(Calendar.WEEK_OF_YEAR, -2147483648); return c.get(Calendar.YEAR) > 0",
     "true"},
    {"LocalDate d = LocalDate.parse('2020-02-15'); return d.with(TemporalAdjusters.lastDayOfMonth()).toString() + ' ' "
     "+ d.with(TemporalAdjusters.firstDayOfNextMonth()) + ' ' + d.with(TemporalAdjusters.next(DayOfWeek.MONDAY)) + ' ' "
     "+ d.with(TemporalAdjusters.previousOrSame(DayOfWeek.SATURDAY)) + ' ' + "
     "d.with(TemporalAdjusters.firstInMonth(DayOfWeek.MONDAY)) "
     "+ ' ' + d.with(TemporalAdjusters.lastInMonth(DayOfWeek.SATURDAY)) + ' ' + "
     "d.with(TemporalAdjusters.lastDayOfYear())",
     "\"2020-02-29 2020-03-01 2020-02-17 2020-02-15 2020-02-03 2020-02-29 2020-12-31\""},
    {"ZonedDateTime z = ZonedDateTime.of(2020, 2, 15, 10, 20, 30, 0, ZoneId.of('Z')); return "
     "z.with(LocalTime.MIDNIGHT).toString() + ' ' "
     "+ z.with(TemporalAdjusters.firstDayOfYear()) + ' ' + z.with(LocalDate.of(2021, 1, 1))",
     "\"2020-02-15T00:00Z 2020-01-01T10:20:30Z 2021-01-01T10:20:30Z\""},
    {"LocalDate.parse('2020-03-15').compareTo(LocalDate.parse('2020-01-20'))", "2"},
    {"return Duration.parse('P2DT3H4.5S').toString() + Duration.parse('-PT15M').getSeconds() "
     "+ Duration.of(2, ChronoUnit.HOURS).minusMinutes(5).dividedBy(5) + Duration.parse('PT-1.5S').abs()",
     "\"PT51H4.5S-900PT23MPT1.5S\""},
    {"Duration.parse('P')", "date_time_parse_exception: Text cannot be parsed to a Duration"},
    {"Duration.parse('PT1H2D')", "date_time_parse_exception: Text cannot be parsed to a Duration"},
    {"return Period.parse('P1Y2M3W4D').toString() + Period.of(1, 14, 3).normalized() + "
     "Period.ofDays(3).multipliedBy(2).plusMonths(1)"
     ".negated() + Period.ZERO.isZero() + Period.of(1, 2, 3).toTotalMonths()",
     "\"P1Y2M25DP2Y2M3DP-1M-6Dtrue14\""},
    {"Period.ofDays(5).plusDays(9223372036854775807L)", "arithmetic_exception: integer overflow"},
    {"return LocalTime.parse('10:20:30').toSecondOfDay() + ' ' + LocalTime.NOON + LocalTime.ofSecondOfDay(3661) + "
     "LocalTime.MAX "
     "+ LocalTime.NOON.atDate(LocalDate.of(2020, 1, 1)) + LocalDate.ofYearDay(2020, 60)",
     "\"37230 12:0001:01:0123:59:59.9999999992020-01-01T12:002020-02-29\""},
    {"return Month.FEBRUARY.length(true) + ' ' + Month.MAY.firstMonthOfQuarter() + "
     "Month.MAY.getDisplayName(TextStyle.SHORT, "
     "Locale.ENGLISH) + DayOfWeek.MONDAY.getDisplayName(TextStyle.FULL, Locale.ENGLISH) + DayOfWeek.values().length",
     "\"29 APRILMayMonday7\""},
    {"return new BigDecimal('7.5').remainder(new BigDecimal('2')).toString() + ' ' + new BigDecimal('1.5').pow(3) + ' "
     "' "
     "+ new BigDecimal('123.45').movePointLeft(3) + ' ' + new BigDecimal('1.2').movePointRight(3) + ' ' "
     "+ new BigDecimal('2').max(BigDecimal.TEN) + new BigDecimal('5.0').intValueExact() + "
     "BigInteger.valueOf(12).gcd(BigInteger.valueOf(18))",
     "\"1.5 3.375 0.12345 1200 1056\""},
    {"new BigDecimal('5.5').intValueExact()", "arithmetic_exception: Rounding necessary"},
    {"new BigDecimal('5').remainder(new BigDecimal('0.0'))", "arithmetic_exception: Division by zero"},
    {"new BigDecimal('99999999999999').intValueExact()", "arithmetic_exception: Overflow"},
    {"TreeMap t = new TreeMap(); t.put('a', 1); t.put('c', 3); t.put('b', 2); return t.headMap('b').toString() + "
     "t.tailMap('b') "
     "+ t.subMap('a', 'c') + t.ceilingKey('bb') + t.floorKey('bb') + t.higherKey('c') + t.lowerEntry('b') + "
     "t.descendingMap()",
     "\"{a=1}{b=2, c=3}{a=1, b=2}cbnulla=1{c=3, b=2, a=1}\""},
    {"TreeMap t = new TreeMap(); t.put('a', 1); t.put('b', 2); return t.headMap('b', true).toString() + "
     "t.pollFirstEntry() + t",
     "\"{a=1, b=2}a=1{b=2}\""},
    {"TreeSet s = new TreeSet(); s.addAll([5, 1, 3]); return s.first() + ' ' + s.headSet(3) + s.tailSet(3, false) + "
     "s.ceiling(2) "
     "+ s.floor(2) + s.descendingSet() + s.pollLast() + s",
     "\"1 [1][5]31[5, 3, 1]5[1, 3]\""},
    {"NavigableMap t = new TreeMap(Comparator.reverseOrder()); t.put(1, 'a'); t.put(2, 'b'); return t.subMap(1, 2)",
     "illegal_argument_exception: fromKey > toKey"},
    {"TreeMap t = new TreeMap(); t.put(1, 1); return t.subMap(0, true, 9, true).toString() + t.floorKey(0) + "
     "t.lastEntry().value",
     "\"{1=1}null1\""},
    {"List l = [1, 2, 3]; ListIterator i = l.listIterator(); while (i.hasNext()) { def x = i.next(); "
     "if (x == 2) { i.remove(); } else { i.set(x * 10); } } i.add(9); return l",
     "[10,30,9]"},
    {"ListIterator i = [1, 2].listIterator(1); return i.nextIndex() + ' ' + i.previousIndex() + i.hasPrevious() + "
     "i.next()",
     "\"1 0true2\""},
    {"ListIterator i = [1].listIterator(); i.set(2)", "illegal_state_exception: null"},
    {"List l = [1, 2]; ListIterator i = l.listIterator(); l.add(3); i.add(1)",
     "concurrent_modification_exception: null"},
    {"[1].listIterator(2)", "index_out_of_bounds_exception: Index: 2"},
    {"Iterator i = [1, 2].iterator(); i.next(); List l = []; i.forEachRemaining(x -> l.add(x)); return l", "[2]"},
    {"return [1, 2, 3].stream().mapToInt(x -> x).summaryStatistics().toString()",
     "\"IntSummaryStatistics{count=3, sum=6, min=1, average=2.000000, max=3}\""},
    {"return [1.5, 2].stream().mapToDouble(x -> x).summaryStatistics().toString()",
     "\"DoubleSummaryStatistics{count=2, sum=3.500000, min=1.500000, average=1.750000, max=2.000000}\""},
    {"def s = [1, 2, 3].stream().collect(Collectors.summarizingLong(x -> x)); return s.max + s.getAverage() + s.sum",
     "11.0"},
    {"return IntStream.empty().summaryStatistics().getMin()", "2147483647"},
    {"return [1, 2, 3].stream().collect(Collectors.reducing(0, x -> x * x, (a, b) -> a + b)) + ' ' "
     "+ [1, 2].stream().collect(Collectors.reducing((a, b) -> a + b)).get() + [1, 2].stream().reduce(1, (a, b) -> a + "
     "b, (a, b) -> 0)",
     "\"14 34\""},
    {"return ['b', 'a'].stream().collect(Collectors.toMap(x -> x, x -> 1, (a, b) -> a, LinkedHashMap::new)).toString()",
     "\"{b=1, a=1}\""},
    {"return [[1, 2], [3]].stream().flatMapToInt(l -> l.stream().mapToInt(x -> x)).sum() "
     "+ [1, 2].stream().collect(() -> new ArrayList(), (l, x) -> l.add(x), (l, m) -> l.addAll(m)).size()",
     "8"},
    {"def a = ['x', 'y'].stream().toArray(String[]::new); return a.length + a[1]", "\"2y\""},
    {"def a = [1].stream().toArray(n -> new String[2])",
     "illegal_state_exception: the function made no array of 1 elements"},
    {"StringTokenizer st = new StringTokenizer('a b,c', ' ,'); def n = st.countTokens(); String r = ''; "
     "while (st.hasMoreTokens()) { r += st.nextToken() + ';' } return r + n",
     "\"a;b;c;3\""},
    {"StringTokenizer st = new StringTokenizer('a-b', '-', true); return st.nextToken() + st.nextToken() + "
     "st.nextToken()",
     "\"a-b\""},
    {"new StringTokenizer('').nextToken()", "no_such_element_exception: null"},
    {"StringJoiner j = new StringJoiner(',', '<', '>'); j.add('a').add('b'); return j.length() + j.toString()",
     "\"5<a,b>\""},
    {"Deque d = new ArrayDeque(); d.offerFirst(1); d.offerLast(2); return d.toString() + d.removeFirstOccurrence(2)",
     "\"[1, 2]true\""},
    {"return String.format('%s', new Object[] {1})",
     "class_cast_exception: Cannot cast from [java.lang.Object[]] to [def[]]."},
    {"Map m = new TreeMap(); m.merge('a', 1, Integer::sum)",
     "illegal_argument_exception: function reference [Integer::sum/2] matching [java.util.function.BiFunction, "
     "apply/2] not found"},
    {"return ['a'].stream().map(String::nope).collect(Collectors.toList())",
     "illegal_argument_exception: function reference [String::nope/1] matching [java.util.function.Function, apply/1] "
     "not found"},
    {"return ['a'].stream().map(String::length).collect(Collectors.toCollection(ArrayList::new))", "[1]"},
};

static const struct evaluated numbers[] = {
    {"new DecimalFormat('#,##0.00').format(1234567.895)", "\"1,234,567.90\""},
    {"new DecimalFormat('0.#').format(2.25)", "\"2.2\""},
    {"new DecimalFormat('#.##').format(0.5)", "\"0.5\""},
    {"new DecimalFormat('#.00').format(0.5)", "\".50\""},
    {"new DecimalFormat('000').format(7)", "\"007\""},
    {"new DecimalFormat('#').format(-1.5)", "\"-2\""},
    {"new DecimalFormat('#').format(1e23)", "\"100000000000000000000000\""}, /* not its exact value */
    {"new DecimalFormat('#,##0').format(Long.MIN_VALUE)", "\"-9,223,372,036,854,775,808\""},
    {"new DecimalFormat('0.000000000000').format(1.1f)", "\"1.100000023842\""},
    {"new DecimalFormat('00.').format(-0.001)", "\"-00.\""},
    {"new DecimalFormat('0%').format(Double.NEGATIVE_INFINITY)", "\"-\u221e%\""},
    {"new DecimalFormat('0%%')",
     "illegal_argument_exception: Too many percent/per mille characters in pattern \"0%%\""},
    {"new DecimalFormat('0.0%').format(0.256)", "\"25.6%\""},
    {"new DecimalFormat('$#,##0.00').format(9)", "\"$9.00\""},
    {"new DecimalFormat('0.00;(0.00)').format(-1.5)", "\"(1.50)\""},
    {"new DecimalFormat(\"'#'0 'o''clock'\").format(7)", "\"#7 o'clock\""},
    {"new DecimalFormat('0.###E0').format(7)", "\"7E0\""},
    {"new DecimalFormat().format(1234.5678)", "\"1,234.568\""},
    {"new DecimalFormat('0.0.0')", "illegal_argument_exception: Multiple decimal separators in pattern \"0.0.0\""},
    {"LocalDateTime.parse('2020-03-15T10:20:30').toEpochSecond(ZoneOffset.UTC)", "1584267630"},
    {"SimpleDateFormat f = new SimpleDateFormat('yyyy-MM-dd HH:mm'); f.setTimeZone(TimeZone.getTimeZone('UTC')); "
     "return f.format(new Date(1584267630000L))",
     "\"2020-03-15 10:20\""},
    {"OffsetDateTime.parse('2020-01-01T00:00:00-18:00').toString()", "\"2020-01-01T00:00-18:00\""},
    {"OffsetDateTime.parse('2020-01-01T00:00:00+19:00')",
     "date_time_parse_exception: Text '2020-01-01T00:00:00+19:00' could not be parsed: Zone offset not in valid range: "
     "-18:00 to +18:00"},
    {"ZonedDateTime.parse('2020-01-01T00:00:00-18:01[Europe/Berlin]')",
     "date_time_parse_exception: Text '2020-01-01T00:00:00-18:01[Europe/Berlin]' could not be parsed: Zone offset not "
     "in valid range: -18:00 to +18:00"},
    {"OffsetDateTime.parse('2020-01-01T00:00:00+01:75')", "date_time_parse_exception: Text '2020-01-01T00:00:00+01:75' "
                                                          "could not be parsed, unparsed text found at index 22"},
    {"new SimpleDateFormat('yyyy-MM-dd HH:mm XXX').parse('2020-01-01 00:00 +01:75')",
     "parse_exception: Unparseable date: \"2020-01-01 00:00 +01:75\""},
    {"Instant.parse('2020-01-01T00:00:00+19:00')",
     "date_time_parse_exception: Text '2020-01-01T00:00:00+19:00' could not be parsed at index 0"},
    {"OffsetDateTime.parse('2020-01-01 00:00 +19:00', DateTimeFormatter.ofPattern('yyyy-MM-dd HH:mm XXX'))",
     "date_time_parse_exception: Text '2020-01-01 00:00 +19:00' could not be parsed: Zone offset not in valid range: "
     "-18:00 to +18:00"},
    {"new SimpleDateFormat('yyyy-MM-dd HH:mm XXX').parse('2020-01-01 00:00 +19:00').getTime()", "1577768400000"},
    {"new SimpleDateFormat('yyyy-MM-dd HH:mm XXX').parse('2020-01-01 00:00 +59:00')",
     "parse_exception: Unparseable date: \"2020-01-01 00:00 +59:00\""},
    {"LocalTime.parse('01:02:03.123456789', DateTimeFormatter.ofPattern('HH:mm:ss.SSSSSSSSS')).toString()",
     "\"01:02:03.123456789\""},
    {"DateTimeFormatter.ofPattern('HH:mm:ss.SSSSSSSSSS')",
     "illegal_argument_exception: Minimum width must be from 0 to 9 inclusive but was 10"},
    {"DateTimeFormatter.ofPattern(\"'SSSSSSSSSS'HH\").format(LocalTime.of(1, 2))", "\"SSSSSSSSSS01\""},
    {"new SimpleDateFormat('ss.SSSSSSSSSS').parse('03.1234567890').getTime()", "1234570890"},
    /* more digits than a number has */
    {"return LocalDate.parse('99999999999999999999', DateTimeFormatter.ofPattern('yyyyyyyyyyyyyyyyyyyy'))",
     "date_time_parse_exception: Text '99999999999999999999' could not be parsed: Invalid value for Year (valid values "
     "-999999999 - 999999999): 7766279631452241919"},
    {"def a = 71.5; return (int)(a * 10) / 10.0", "71.5"},
    {"def a = 71.5; int b = a * 10; return b",
     "class_cast_exception: Cannot cast java.lang.Double to java.lang.Integer"},
    {"return 2147483647 + 1", "-2147483648"},
    {"return 7 / 2", "3"},
    {"return -7 % 3", "-1"},
    {"return 7.0 / 2", "3.5"},
    {"return 1e10", "1.0E10"},
    {"return 1L << 65", "2"},
    {"return -1 >>> 28", "15"},
    {"int i = 5; int j = i++ + ++i; return j", "12"},
    {"byte b = 127; b += 1; return b", "-128"},
    {"return 1 + 'a' + 1.0", "\"1a1.0\""},
    {"return (int)3.99", "3"},
    {"return (int)Double.NaN", "0"},
    {"def x = 1; return x / 0", "arithmetic_exception: / by zero"},
};

static const struct evaluated collections[] = {
    {"def a = [3, 1]; a.sort((x, y) -> x > y); return a",
     "class_cast_exception: Cannot cast java.lang.Boolean to java.lang.Integer"},
    {"def a = [3, 1]; a.sort((x, y) -> x - y); return a", "[1,3]"},
    {"def l = [3, 1, 2]; l.sort((a, b) -> a - b); return l", "[1,2,3]"},
    {"def l = [1]; l.add(2); return l.size()", "2"},
    {"return params.list.stream().map(x -> x * 2).collect(Collectors.toList())", "[2,4,6]"},
    {"Map m = new HashMap(); m.put('b', 1); m.put('a', 2); return m", "{\"a\":2,\"b\":1}"},
    {"int s = 0; for (x in [1, 2, 3]) { s += x } return s", "6"},
    {"return IntStream.range(0, 5).filter(x -> x % 2 == 0).sum()", "6"},
    {"return params.list.stream().map(x -> '' + x).collect(Collectors.joining('-'))", "\"1-2-3\""},
    {"def m = new HashMap(); m.put('m', m); return m.toString()", "\"{m=(this Map)}\""},
    {"return params.map.k + params.word", "\"vw\""},
    {"return ChronoUnit.DAYS.between(LocalDate.parse('2020-01-01'), LocalDate.parse('2020-03-01'))", "60"},
    {"return DayOfWeek.MONDAY.getValue() + Month.MAY.getValue()", "6"},
    {"return Integer.NODAY", "illegal_argument_exception: field [java.lang.Integer, NODAY] not found"},
    {"return DayOfWeek.NODAY", "illegal_argument_exception: field [java.time.DayOfWeek, NODAY] not found"},
    {"return [1, 2][5]", "index_out_of_bounds_exception: Index 5 out of bounds for length 2"},
};

static const struct evaluated refused[] = {
    {"return x", "illegal_argument_exception: cannot resolve symbol [x]"},
    {"int i = 'a'; return i", "class_cast_exception: Cannot cast from [java.lang.String] to [int]."},
};

#define CHECK(table) check_evaluated(table, sizeof table / sizeof *table)

static void test_numbers(void **state)
{
    (void)state;
    CHECK(numbers);
    CHECK(library);
}

static void test_collections(void **state)
{
    (void)state;
    CHECK(collections);
}

static void test_refused(void **state)
{
    (void)state;
    CHECK(refused);
}

struct updated {
    const char *source;
    const char *document;
    enum script_op op;
    const char *after;
};

/* Scripts of Elasticsearch: The Definitive Guide, without `lang`. */
static const struct updated updates[] = {
    {"ctx._source.lock_count++", "{\"lock_count\":1}", SCRIPT_OP_INDEX, "{\"lock_count\":2}"},
    {"if ( ctx._source.process_id != process_id ) { assert false }; ctx.op = 'noop';", "{\"process_id\":123}",
     SCRIPT_OP_NONE, "{\"process_id\":123}"},
    /* No function `ok` with a result of the class `assert`. */
    {"boolean ok(int i) { return i == 1 } assert ok(ctx._source.i); ctx._source.i++", "{\"i\":1}", SCRIPT_OP_INDEX,
     "{\"i\":2}"},
    {"if (--ctx._source.lock_count == 0) { ctx.op = 'delete' }", "{\"lock_count\":1}", SCRIPT_OP_DELETE,
     "{\"lock_count\":0}"},
    /* A compound assignment keeps the class of the old value. */
    {"ctx._source.views += 1.5", "{\"z\":1.0,\"views\":1,\"a\":[1.0E10]}", SCRIPT_OP_INDEX,
     "{\"z\":1.0,\"views\":2,\"a\":[1.0E10]}"},
};

static void test_updates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
        struct arena arena = ARENA_INIT;
        struct script *script = NULL;
        struct problem problem = {0};
        struct script_update update = {.source = slice_from(updates[i].document),
                                       .params = SLICE_LIT("{\"process_id\":123}")};
        assert_int_equal(script_compile(SCRIPT_DEFAULT, SCRIPT_FOR_UPDATE, slice_from(updates[i].source), SLICE_NONE,
                                        &script, &arena, &problem),
                         0);
        assert_int_equal(script_run_update(script, &SCRIPT_LIMITS_DEFAULT, &arena, &update, &problem), 0);
        assert_int_equal(update.op_after, updates[i].op);
        assert_slice_equal(update.source_after, updates[i].after);
        script_unref(script);
        arena_deinit(&arena);
    }
}

/* What scripts of commands before version 18 gave, and what they give since. */
static const struct {
    const char *value, *old, *now;
} formats[] = {
    {"new DecimalFormat('#').format(1e23)", "99999999999999991611392", "100000000000000000000000"},
    {"new DecimalFormat('0.0#0').format(1.5)", "1.500", NULL},
    {"new DecimalFormat('0.0E0').format(7)", NULL, "7.0E0"},
    {"OffsetDateTime.parse('2020-01-01T00:00:00+19:00').toString()", "2020-01-01T00:00+19:00", NULL},
    {"OffsetDateTime.parse('2020-01-01T00:00:00+01:75').toString()", "2020-01-01T00:00+02:15", NULL},
    {"LocalTime.parse('01.0123456789', DateTimeFormatter.ofPattern('ss.SSSSSSSSSS')).toString()", "00:00:01.123456789",
     NULL},
};

/* What scripts of commands before version 19 gave, and what they give since, as real 7.10 does. */
static const struct {
    const char *value, *old, *now;
} formats_18[] = {
    {"new DecimalFormat('#,##0.00').format(new BigDecimal('12345678901234567890.125'))",
     "12,345,678,901,234,567,000.00", "12,345,678,901,234,567,890.12"},
    {"new DecimalFormat('0.00').format(new BigDecimal('0.125'))", "0.12", "0.12"},
    {"new DecimalFormat('0.00').format(new BigDecimal('0.135'))", "0.14", "0.14"},
    {"new DecimalFormat('0.0').format(new BigDecimal('0.15'))", "0.1", "0.2"},
    {"new DecimalFormat('#,###').format(new BigInteger('9007199254740993'))", "9,007,199,254,740,992",
     "9,007,199,254,740,993"},
    {"new DecimalFormat('0.###E0').format(new BigDecimal('123456789012345678901234567890'))", "1.235E29", "1.235E29"},
    {"new DecimalFormat('0.00%').format(new BigDecimal('0.12345'))", "12.35%", "12.34%"},
    {"new DecimalFormat('0.00').format(new BigDecimal('-0.001'))", "-0.00", "-0.00"},
    {"new DecimalFormat('0.00').format(new BigDecimal('-0'))", "0.00", "0.00"},
    {"new DecimalFormat('0.00').format(new BigDecimal('0E+99999'))", "0.00", "0.00"},
    {"new DecimalFormat('0.00').format(new BigDecimal('1E-99999'))", "0.00", "0.00"},
    {"new DecimalFormat('#.##########################').format(new BigDecimal('0.12345678901234567890123456'))",
     "0.12345678901234568", "0.12345678901234567890123456"},
    {"'' + new DecimalFormat('#').format(new BigDecimal('-1E+99999')).length()", "2", "100001"},
    {"'' + new SimpleDateFormat('ss.S').parse('05.5').getTime()", "5500", "5005"},
    {"'' + new SimpleDateFormat('ss.SSS').parse('05.1234').getTime()", "5123", "6234"},
    {"'' + new SimpleDateFormat('ss.SSSSSS').parse('05.123456').getTime()", "5123", "128456"},
    {"'' + new SimpleDateFormat('ss.SSS').parse('05.99999999999').getTime()", "5999", "1215757191"},
    {"'' + new SimpleDateFormat('HHmmssSS').parse('030405678').getTime()", "11045670", "11045678"},
    {"'' + new SimpleDateFormat('ssSSSmm').parse('0567801').getTime()", "65678", "65678"},
    {"new SimpleDateFormat('ss.S').format(new Date(5007L))", "05.0", "05.7"},
    {"new SimpleDateFormat('ss.SS').format(new Date(5007L))", "05.00", "05.07"},
    {"new SimpleDateFormat('ss.SSSSSS').format(new Date(5007L))", "05.007000", "05.000007"},
    {"'' + new SimpleDateFormat('HH:mmX').parse('03:04+1').getTime()", "7440000", NULL},
    {"'' + new SimpleDateFormat('HH:mmX').parse('03:04+0130').getTime()", "5640000", "7440000"},
    {"'' + new SimpleDateFormat('HH:mmZ').parse('03:04+01:30').getTime()", "5640000", NULL},
    {"'' + new SimpleDateFormat('HH:mmz').parse('03:04+0130').getTime()", "5640000", "5640000"},
    {"'' + new SimpleDateFormat('HH:mmz').parse('03:04UTC').getTime()", "11040000", "11040000"},
    {"ZonedDateTime.parse('2020-01-02T03:04:05+1').toString()", "2020-01-02T03:04:05+01:00", NULL},
    {"ZonedDateTime.parse('2020-01-02T03:04:05+0130').toString()", "2020-01-02T03:04:05+01:30", NULL},
    {"ZonedDateTime.parse('2020-01-02T03:04:05+01').toString()", "2020-01-02T03:04:05+01:00",
     "2020-01-02T03:04:05+01:00"},
    {"OffsetDateTime.parse('2020-01-02T03:04:05+01:30:15').toString()", "2020-01-02T03:04:05+01:30:15",
     "2020-01-02T03:04:05+01:30:15"},
    {"Instant.parse('2020-01-02T03:04:05-01:00').toString()", "2020-01-02T04:04:05Z", "2020-01-02T04:04:05Z"},
    {"OffsetDateTime.parse('2020-01-02T03:04:05z').toString()", "2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"},
    {"OffsetDateTime.parse('2020-01-02T03:04+0130', DateTimeFormatter.ofPattern(\"yyyy-MM-dd'T'HH:mmXXX\")).toString()",
     "2020-01-02T03:04+01:30", NULL},
    {"OffsetDateTime.parse('2020-01-02T03:04+01', DateTimeFormatter.ofPattern(\"yyyy-MM-dd'T'HH:mmX\")).toString()",
     "2020-01-02T03:04+01:00", "2020-01-02T03:04+01:00"},
    {"OffsetDateTime.parse('2020-01-02T03:04Z', DateTimeFormatter.ofPattern(\"yyyy-MM-dd'T'HH:mmx\")).toString()",
     "2020-01-02T03:04Z", NULL},
};

static void check_formats(const char *value, const char *want, bool old_library, bool old_formats)
{
    struct arena arena = ARENA_INIT;
    tl_cleanup(script_unrefp) struct script *script = NULL;
    struct problem problem = {0};
    struct script_update update = {.source = SLICE_LIT("{}"), .old_library = old_library, .old_formats = old_formats};
    struct slice source = arena_printf(&arena, "ctx._source.a = %s", value);
    assert_int_equal(script_compile(SCRIPT_DEFAULT, SCRIPT_FOR_UPDATE, source, SLICE_NONE, &script, &arena, &problem),
                     0);
    int r = script_run_update(script, &SCRIPT_LIMITS_DEFAULT, &arena, &update, &problem);
    struct slice have = r != 0 ? SLICE_NONE : update.source_after;
    if (r != (want == NULL ? SCRIPT_FAILED : 0) ||
        (want != NULL && !slice_is(have, arena_printf(&arena, "{\"a\":\"%s\"}", want).data)))
        fail_msg("%s\n  is %.*s, want %s", value, SLICE_ARG(have), want == NULL ? "an exception" : want);
    arena_deinit(&arena);
}

static void test_old_library(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        check_formats(formats[i].value, formats[i].old, true, false);
        check_formats(formats[i].value, formats[i].now, false, true);
        check_formats(formats[i].value, formats[i].now, false, false);
    }
    for (size_t i = 0; i < sizeof formats_18 / sizeof *formats_18; i++) {
        check_formats(formats_18[i].value, formats_18[i].old, false, true);
        check_formats(formats_18[i].value, formats_18[i].now, false, false);
    }
}

/* Each exceeds a limit and fails with a cause that names it. */
static const char *const endless[] = {
    "while (true) { params.list.size() }",
    "for (int i = 0; i < 10; ) { int j = i; }",
    "String s = 'x'; for (int i = 0; i < 60; ++i) { s += s } return s",
    "int f(int x) { return f(x + 1) } return f(0)",
    "def l = []; while (true) { l.add(new ArrayList(1000)) }",
    "def m = new HashMap(), n = new HashMap(); m.put('n', n); n.put('m', m); return m.toString()",
};

static void test_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        struct arena arena = ARENA_INIT, again = ARENA_INIT;
        struct slice first = evaluate(endless[i], &arena), second = evaluate(endless[i], &again);
        if (memmem(first.data, first.len, "_e", 2) == NULL || first.data[0] == '"')
            fail_msg("%s\n  ends as %.*s", endless[i], SLICE_ARG(first));
        if (!slice_equal(first, second))
            fail_msg("%s\n  ends as %.*s, then as %.*s", endless[i], SLICE_ARG(first), SLICE_ARG(second));
        arena_deinit(&arena);
        arena_deinit(&again);
    }
}

static void test_deep_source(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    char *source = malloc(60001);
    memset(source, '(', 60000);
    source[60000] = 0;
    struct slice have = evaluate(source, &arena);
    assert_true(have.len > 0 && have.data[0] != '"');
    free(source);
    arena_deinit(&arena);
}

/* Goal: the cache returns the same as compiling, for scripts and for errors, before and after eviction. */
static void test_cache(void **state)
{
    static const char *const sources[] = {"1 + 1", "1 + ", "1 + 1", "1 + ", "return 2",
                                          "foo(",  "1 + ", "1 + 1", "foo("};
    struct script_cache *cache = script_cache_new(2, &SCRIPT_LIMITS_DEFAULT);
    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        struct arena arena = ARENA_INIT;
        struct script *script = NULL, *again = NULL;
        struct problem problem, other;
        struct slice source = slice_from(sources[i]);
        int r = script_cache_compile(cache, SCRIPT_PAINLESS, SCRIPT_FOR_TEST, source, SLICE_NONE, &script, &arena,
                                     &problem);
        assert_int_equal(script_compile(SCRIPT_PAINLESS, SCRIPT_FOR_TEST, source, SLICE_NONE, &again, &arena, &other),
                         r);
        if (r != 0) {
            assert_true(slice_equal(problem.reason, other.reason) && slice_equal(problem.details, other.details));
            assert_true(slice_equal(problem.caused_by->reason, other.caused_by->reason));
        }
        script_unref(script);
        script_unref(again);
        arena_deinit(&arena);
    }
    script_cache_free(cache);
}

/* Goal: the cache is bounded by bytes, not only by count: a tree is larger than its text. */
static void test_cache_bytes(void **state)
{
    struct script_cache *cache = script_cache_new(SCRIPT_CACHE_COUNT_MAX, &SCRIPT_LIMITS_DEFAULT);
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct arena arena = ARENA_INIT;
        struct script *script = NULL;
        struct problem problem;
        buf_clear(&source);
        buf_printf(&source, "int a = %d;", i);
        for (int k = 0; k < 3000; k++)
            buf_lit(&source, "a += 1; ");
        assert_int_equal(script_cache_compile(cache, SCRIPT_GROOVY, SCRIPT_FOR_TEST, buf_as_slice(&source), SLICE_NONE,
                                              &script, &arena, &problem),
                         0);
        script_unref(script);
        arena_deinit(&arena);
        assert_true(script_cache_bytes(cache) <= SCRIPT_CACHE_BYTES_MAX);
    }
    assert_in_range(script_cache_count(cache), 1, 39);
    assert_int_equal(budget_tallied(BUDGET_SCRIPTS), script_cache_bytes(cache));
    script_cache_free(cache);
    assert_int_equal(budget_tallied(BUDGET_SCRIPTS), 0);
    buf_deinit(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),     cmocka_unit_test(test_collections), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_updates),     cmocka_unit_test(test_old_library), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_deep_source), cmocka_unit_test(test_cache),       cmocka_unit_test(test_cache_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
