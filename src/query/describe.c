/* SPDX-License-Identifier: Apache-2.0 */
/* Bound queries in Lucene's notation; see describe.h. */
#include "query/describe.h"

#include <arpa/inet.h>
#include <math.h>

#include "json/write.h"
#include "query/term_pattern.h"

static void describe_boosted(struct buf *buf, const struct bound_query *matcher, bool nested);

/* --- Values ------------------------------------------------------------------------------------------------------- */

static void put_address(struct buf *buf, struct slice bytes)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    char text[INET6_ADDRSTRLEN];
    bool four = memcmp(bytes.data, mapped, sizeof mapped) == 0;
    if (inet_ntop(four ? AF_INET : AF_INET6, four ? bytes.data + sizeof mapped : bytes.data, text, sizeof text) != NULL)
        buf_slice(buf, slice_from(text));
}

static void put_value(struct buf *buf, const struct mapping_field *field, const struct field_value *value)
{
    if (value->kind == FIELD_VALUE_F64)
        json_double_text(buf, value->f64);
    else if (value->kind == FIELD_VALUE_BYTES && field->type == FIELD_IP && value->bytes.len == 16)
        put_address(buf, value->bytes);
    else if (value->kind == FIELD_VALUE_BYTES)
        buf_slice(buf, value->bytes);
    else if (field != NULL && field->type == FIELD_BOOLEAN)
        buf_byte(buf, value->i64 != 0 ? 'T' : 'F');
    else
        buf_printf(buf, "%lld", (long long)value->i64);
}

static void put_field(struct buf *buf, const struct mapping_field *field)
{
    buf_slice(buf, field->path);
    buf_byte(buf, ':');
}

/*
 * Prints terms. Lucene has numbers and addresses as points: a single one is the range [x TO x],
 * several are a set {x y}.
 */
static void put_terms(struct buf *buf, const struct bound_query *matcher)
{
    size_t count = matcher->terms.count;
    bool number =
        count > 0 && matcher->terms.values[0].kind != FIELD_VALUE_BYTES && matcher->field->type != FIELD_BOOLEAN;
    bool point = number || matcher->field->type == FIELD_IP;
    put_field(buf, matcher->field);
    if (count == 1 && !point) {
        put_value(buf, matcher->field, matcher->terms.values);
        return;
    }
    if (count == 1) {
        buf_byte(buf, '[');
        put_value(buf, matcher->field, matcher->terms.values);
        buf_lit(buf, " TO ");
        put_value(buf, matcher->field, matcher->terms.values);
        buf_byte(buf, ']');
        return;
    }
    buf_byte(buf, point ? '{' : '(');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(buf, ' ');
        put_value(buf, matcher->field, &matcher->terms.values[i]);
    }
    buf_byte(buf, point ? '}' : ')');
}

/* --- Ranges ------------------------------------------------------------------------------------------------------- */

static int64_t extreme_of_field(const struct mapping_field *field, bool high)
{
    bool small =
        field != NULL && (field->type == FIELD_INTEGER || field->type == FIELD_SHORT || field->type == FIELD_BYTE);
    int64_t most = small ? INT32_MAX : INT64_MAX;
    return high ? most : -most - 1;
}

/*
 * Prints a range of integers, always with inclusive bounds; a missing bound is the smallest or
 * largest value.
 */
static void put_whole_range(struct buf *buf, const struct bound_query *matcher)
{
    struct field_value low = matcher->range.low, high = matcher->range.high;
    if (!matcher->range.has_low)
        low = (struct field_value){.kind = FIELD_VALUE_I64, .i64 = extreme_of_field(matcher->field, false)};
    else if (matcher->range.low_exclusive && low.i64 < INT64_MAX)
        low.i64++;
    if (!matcher->range.has_high)
        high = (struct field_value){.kind = FIELD_VALUE_I64, .i64 = extreme_of_field(matcher->field, true)};
    else if (matcher->range.high_exclusive && high.i64 > INT64_MIN)
        high.i64--;
    buf_byte(buf, '[');
    put_value(buf, matcher->field, &low);
    buf_lit(buf, " TO ");
    put_value(buf, matcher->field, &high);
    buf_byte(buf, ']');
}

/* Prints a bound of a floating-point range; an exclusive one as the next value towards `beyond`. */
static void put_end(struct buf *buf, const struct mapping_field *field, double number, bool exclusive, double beyond)
{
    if (exclusive)
        number =
            field->type == FIELD_DOUBLE ? nextafter(number, beyond) : (double)nextafterf((float)number, (float)beyond);
    if (field->type == FIELD_DOUBLE)
        json_double_text(buf, number);
    else
        json_float_text(buf, (float)number);
}

static void put_fraction_range(struct buf *buf, const struct bound_query *matcher)
{
    const struct mapping_field *field = matcher->field;
    buf_byte(buf, '[');
    if (matcher->range.has_low)
        put_end(buf, field, matcher->range.low.f64, matcher->range.low_exclusive, INFINITY);
    else
        buf_lit(buf, "-Infinity");
    buf_lit(buf, " TO ");
    if (matcher->range.has_high)
        put_end(buf, field, matcher->range.high.f64, matcher->range.high_exclusive, -INFINITY);
    else
        buf_lit(buf, "Infinity");
    buf_byte(buf, ']');
}

static void put_range(struct buf *buf, const struct bound_query *matcher)
{
    bool has_low = matcher->range.has_low, has_high = matcher->range.has_high;
    if (matcher->kind == BOUND_SEQ_NO)
        buf_lit(buf, "_seq_no:");
    else
        put_field(buf, matcher->field);
    if (matcher->kind == BOUND_SEQ_NO || field_value_kind(matcher->field) == FIELD_VALUE_I64) {
        put_whole_range(buf, matcher);
        return;
    }
    if (field_value_kind(matcher->field) == FIELD_VALUE_F64) {
        put_fraction_range(buf, matcher);
        return;
    }
    buf_byte(buf, has_low && matcher->range.low_exclusive ? '{' : '[');
    if (has_low)
        put_value(buf, matcher->field, &matcher->range.low);
    else
        buf_byte(buf, '*');
    buf_lit(buf, " TO ");
    if (has_high)
        put_value(buf, matcher->field, &matcher->range.high);
    else
        buf_byte(buf, '*');
    buf_byte(buf, has_high && matcher->range.high_exclusive ? '}' : ']');
}

/* --- Texts -------------------------------------------------------------------------------------------------------- */

static void put_pattern(struct buf *buf, const struct bound_query *matcher)
{
    const struct term_pattern *pattern = matcher->pattern.pattern;
    bool regexp = matcher->pattern.fits == term_pattern_regexp;
    put_field(buf, matcher->field);
    if (regexp)
        buf_byte(buf, '/');
    buf_slice(buf, pattern->text);
    if (regexp)
        buf_byte(buf, '/');
    else if (matcher->pattern.fits == term_pattern_prefix)
        buf_byte(buf, '*');
    else if (matcher->pattern.fits == term_pattern_fuzzy)
        buf_printf(buf, "~%u", pattern->edits);
}

static void put_phrase(struct buf *buf, const struct bound_query *matcher)
{
    put_field(buf, matcher->field);
    buf_byte(buf, '"');
    for (size_t i = 0; i < matcher->phrase.count; i++) {
        if (i > 0)
            buf_byte(buf, ' ');
        buf_slice(buf, matcher->phrase.tokens[i]);
    }
    buf_printf(buf, "%s\"", matcher->phrase.last_is_prefix ? "*" : "");
    if (matcher->phrase.slop > 0)
        buf_printf(buf, "~%u", matcher->phrase.slop);
}

static void put_names(struct buf *buf, const char *field, const struct bound_query *matcher)
{
    buf_printf(buf, "%s:", field);
    if (matcher->names.count != 1)
        buf_byte(buf, '(');
    for (size_t i = 0; i < matcher->names.count; i++) {
        if (i > 0)
            buf_byte(buf, ' ');
        buf_slice(buf, matcher->names.items[i]);
    }
    if (matcher->names.count != 1)
        buf_byte(buf, ')');
}

static void put_exists(struct buf *buf, const struct bound_query *matcher)
{
    for (size_t i = 0; i < matcher->exists.count; i++) {
        buf_printf(buf, "%sConstantScore(FieldExistsQuery [field=", i > 0 ? " " : "");
        buf_slice(buf, matcher->exists.fields[i]->path);
        buf_lit(buf, "])");
    }
}

/* --- Compound queries --------------------------------------------------------------------------------------------- */

static void put_clauses(struct buf *buf, const char *mark, const struct bound_query_list *list, bool *first)
{
    for (size_t i = 0; i < list->count; i++) {
        buf_printf(buf, "%s%s", *first ? "" : " ", mark);
        describe_boosted(buf, list->items[i], true);
        *first = false;
    }
}

static bool is_empty(const struct bound_query *matcher)
{
    return matcher->boolean.must.count + matcher->boolean.filter.count + matcher->boolean.should.count +
               matcher->boolean.must_not.count ==
           0;
}

/*
 * Prints a bool; with parentheses if it is nested, boosted, or has a minimum of should clauses to
 * print.
 */
static void put_bool(struct buf *buf, const struct bound_query *matcher, bool nested)
{
    bool first = true;
    size_t optional = matcher->boolean.should.count, rest = matcher->boolean.must.count + matcher->boolean.filter.count;
    size_t implied = rest == 0 && optional > 0 ? 1 : 0;
    bool prints_minimum = matcher->boolean.minimum > implied,
         brackets = nested || prints_minimum || matcher->boost != 1;
    if (is_empty(matcher)) {
        buf_lit(buf, "*:*");
        return;
    }
    if (brackets)
        buf_byte(buf, '(');
    put_clauses(buf, "+", &matcher->boolean.must, &first);
    put_clauses(buf, "", &matcher->boolean.should, &first);
    put_clauses(buf, "-", &matcher->boolean.must_not, &first);
    put_clauses(buf, "#", &matcher->boolean.filter, &first);
    if (rest + optional == 0)
        buf_lit(buf, " #*:*");
    if (brackets)
        buf_byte(buf, ')');
    if (prints_minimum)
        buf_printf(buf, "~%zu", matcher->boolean.minimum);
}

static void put_dis_max(struct buf *buf, const struct bound_query *matcher, bool nested)
{
    if (matcher->compound.queries.count == 1) {
        describe_boosted(buf, matcher->compound.queries.items[0], nested);
        return;
    }
    buf_byte(buf, '(');
    for (size_t i = 0; i < matcher->compound.queries.count; i++) {
        buf_printf(buf, "%s", i > 0 ? " | " : "");
        describe_boosted(buf, matcher->compound.queries.items[i], true);
    }
    buf_byte(buf, ')');
    if (matcher->compound.number > 0) {
        buf_byte(buf, '~');
        json_float_text(buf, matcher->compound.number);
    }
}

static void put_boosting(struct buf *buf, const struct bound_query *matcher)
{
    buf_lit(buf, "boosting (");
    describe_boosted(buf, matcher->compound.queries.items[0], true);
    buf_lit(buf, ", ");
    describe_boosted(buf, matcher->compound.queries.items[1], true);
    buf_lit(buf, ")^");
    json_float_text(buf, matcher->compound.number);
}

static void put_wrapped(struct buf *buf, const char *name, const struct bound_query *query)
{
    buf_printf(buf, "%s(", name);
    describe_boosted(buf, query, false);
    buf_byte(buf, ')');
}

static void put_plain(struct buf *buf, const struct bound_query *matcher, bool nested)
{
    switch (matcher->kind) {
    case BOUND_ALL: buf_lit(buf, "*:*"); break;
    case BOUND_NONE: buf_lit(buf, "MatchNoDocsQuery(\"\")"); break;
    case BOUND_IDS: put_names(buf, "_id", matcher); break;
    case BOUND_ROUTING: put_names(buf, "_routing", matcher); break;
    case BOUND_ROUTING_PATTERN:
    case BOUND_ROUTING_RANGE: buf_lit(buf, "_routing"); break;
    case BOUND_TYPES: buf_lit(buf, "_type"); break;
    case BOUND_SEQ_NO:
    case BOUND_RANGE: put_range(buf, matcher); break;
    case BOUND_TERMS: put_terms(buf, matcher); break;
    case BOUND_PATTERN: put_pattern(buf, matcher); break;
    case BOUND_EXISTS: put_exists(buf, matcher); break;
    case BOUND_PHRASE: put_phrase(buf, matcher); break;
    case BOUND_BOOL: put_bool(buf, matcher, nested); break;
    case BOUND_DIS_MAX: put_dis_max(buf, matcher, nested); break;
    case BOUND_CONSTANT: put_wrapped(buf, "ConstantScore", matcher->compound.queries.items[0]); break;
    case BOUND_BOOSTING: put_boosting(buf, matcher); break;
    case BOUND_FUNCTION: put_wrapped(buf, "function score ", matcher->function.query); break;
    case BOUND_SCRIPT: buf_lit(buf, "ScriptQuery"); break;
    case BOUND_KIND_COUNT: break;
    }
}

static void describe_boosted(struct buf *buf, const struct bound_query *matcher, bool nested)
{
    bool boosted = matcher->boost != 1 && matcher->kind != BOUND_NONE, is_bool = matcher->kind == BOUND_BOOL;
    if (boosted && !is_bool)
        buf_byte(buf, '(');
    put_plain(buf, matcher, nested);
    if (boosted && !is_bool)
        buf_byte(buf, ')');
    if (boosted) {
        buf_byte(buf, '^');
        json_float_text(buf, matcher->boost);
    }
}

struct slice bound_query_describe(struct arena *arena, const struct bound_query *matcher)
{
    struct buf buf = BUF_INIT(DESCRIBED_BYTES_MAX);
    describe_boosted(&buf, matcher, false);
    struct slice text = arena_printf(arena, "%.*s%s", SLICE_ARG(buf_as_slice(&buf)), buf.overflow ? " …" : "");
    buf_deinit(&buf);
    return text;
}
