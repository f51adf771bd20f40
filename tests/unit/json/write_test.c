/* SPDX-License-Identifier: Apache-2.0 */
/* Serialization, path lookup, merge and filters, as tables of inputs and outputs. */
#include "../../lib/unit.h"

#include "base/account.h"
#include "base/budget.h"
#include "base/rand.h"
#include "json/each.h"
#include "json/filter.h"
#include "json/hash_order.h"
#include "json/merge.h"
#include "json/path.h"
#include "json/write.h"

#include <math.h>

static yyjson_val *parse(struct arena *arena, const char *text)
{
    struct json_doc doc;
    int r = json_parse_stored(arena, slice_from(text), &doc);
    if (r != 0)
        fail_msg("no JSON: %s", text);
    return doc.root;
}

static void test_write_prints_doubles_as_java(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {1.5, "1.5"},
        {100000, "100000.0"},
        {9999999, "9999999.0"},
        {10000000, "1.0E7"},
        {123456789, "1.23456789E8"},
        {0.001, "0.001"},
        {0.00099, "9.9E-4"},
        {0.1, "0.1"},
        {1e-10, "1.0E-10"},
        {1.0 / 3, "0.3333333333333333"},
        {1e21, "1.0E21"},
        {1.7976931348623157e308, "1.7976931348623157E308"},
        {INFINITY, "\"Infinity\""},
        {-INFINITY, "\"-Infinity\""},
        {2.5e-3, "0.0025"},
        {12345.678, "12345.678"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        json_write_double(&buf, rows[i].value);
        if (!slice_is(buf_as_slice(&buf), rows[i].text))
            fail_msg("got %.*s, expected %s", SLICE_ARG(buf_as_slice(&buf)), rows[i].text);
        buf_deinit(&buf);
    }
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    json_float_text(&buf, 0.1f);
    buf_byte(&buf, ' ');
    json_float_text(&buf, 16777216.0f);
    assert_slice_equal(buf_as_slice(&buf), "0.1 1.6777216E7");
    buf_deinit(&buf);
}

/* Goal: unusual numbers are written as recorded from 7.10 and 5.6 with `_source=a`. */
static void test_write_normalises_numbers_as_recorded(void **state)
{
    (void)state;
    static const struct {
        const char *source, *of_7, *of_5;
    } rows[] = {
        {"{\"a\":1E5}", "{\"a\":100000.0}", NULL},
        {"{\"a\":1.50}", "{\"a\":1.5}", NULL},
        {"{\"a\":-0}", "{\"a\":0}", NULL},
        {"{\"a\":-0.0}", "{\"a\":-0.0}", NULL},
        {"{\"a\":123456789012345678901234567890}", "{\"a\":123456789012345678901234567890}",
         "{\"a\":\"123456789012345678901234567890\"}"},
        {"{\"a\":18446744073709551615}", "{\"a\":18446744073709551615}", "{\"a\":\"18446744073709551615\"}"},
        {"{ \"a\" : [ 1 ,2 ] }", "{\"a\":[1,2]}", NULL},
        {"{\"a\":\"\\u00e9\\/\\n\"}", "{\"a\":\"\xc3\xa9/\\n\"}", NULL},
        {"{\"a\":1e400}", "{\"a\":\"Infinity\"}", NULL},
        {"{\"a\":0.1000000000000000055511151231257827}", "{\"a\":0.1}", NULL},
        {"{\"a\":-9223372036854775808}", "{\"a\":-9223372036854775808}", NULL},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (enum dialect dialect = 0; dialect < DIALECT_COUNT; dialect++) {
            struct buf buf = BUF_INIT(BUF_UNLIMITED);
            json_write(&buf, parse(&arena, rows[i].source), dialect);
            assert_slice_equal(buf_as_slice(&buf),
                               dialect == DIALECT_5 && rows[i].of_5 != NULL ? rows[i].of_5 : rows[i].of_7);
            buf_deinit(&buf);
        }
    }
    arena_deinit(&arena);
}

static void test_write_pretty_indents(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    json_write_pretty(&buf, parse(&arena, "{\"a\":[1,{\"b\":{}}],\"c\":[]}"), DIALECT_7);
    assert_slice_equal(buf_as_slice(&buf),
                       "{\n  \"a\" : [\n    1,\n    {\n      \"b\" : { }\n    }\n  ],\n  \"c\" : [ ]\n}");
    buf_deinit(&buf);
    arena_deinit(&arena);
}

static void test_writer_inserts_commas(void **state)
{
    (void)state;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct json_writer w;
    json_writer_init(&w, &buf);
    json_begin(&w, '{');
    json_key(&w, "a");
    json_begin(&w, '[');
    json_end(&w, ']');
    json_key(&w, "b");
    json_begin(&w, '[');
    json_i64(&w, -1);
    json_string(&w, SLICE_LIT("x"));
    json_bool(&w, true);
    json_null(&w);
    json_double(&w, 2);
    json_raw(&w, SLICE_LIT("{\"k\":1}"));
    json_u64(&w, 7);
    json_end(&w, ']');
    json_end(&w, '}');
    assert_slice_equal(buf_as_slice(&buf), "{\"a\":[],\"b\":[-1,\"x\",true,null,2.0,{\"k\":1},7]}");
    buf_deinit(&buf);
}

static bool collect(void *context, yyjson_val *leaf)
{
    struct buf *buf = context;
    buf_byte(buf, ' ');
    json_write(buf, leaf, DIALECT_7);
    return true;
}

static void test_path_visits_arrays_and_dotted_names(void **state)
{
    (void)state;
    static const struct {
        const char *document, *path, *leaves;
    } rows[] = {
        {"{\"a\":1}", "a", " 1"},
        {"{\"a\":{\"b\":{\"c\":2}}}", "a.b.c", " 2"},
        {"{\"a\":[{\"b\":1},{\"b\":[2,[3]]},{\"c\":4}]}", "a.b", " 1 2 3"},
        {"{\"a.b\":{\"c\":1},\"a\":{\"b.c\":2,\"b\":{\"c\":3}}}", "a.b.c", " 3 2 1"},
        {"{\"a\":{\"b\":1}}", "a", " {\"b\":1}"},
        {"{\"a\":null}", "a", " null"},
        {"{\"a\":1}", "a.b", ""},
        {"{\"a\":1}", "b", ""},
        {"{\"\":{\"\":5}}", ".", " 5"},
        {"{\"a\":{\"\":5}}", "a.", " 5"},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        yyjson_val *root = parse(&arena, rows[i].document);
        assert_true(json_path_each(root, slice_from(rows[i].path), collect, &buf));
        assert_slice_equal(buf_as_slice(&buf), rows[i].leaves);
        assert_int_equal(json_path_first(root, slice_from(rows[i].path)) != NULL, rows[i].leaves[0] != '\0');
        buf_deinit(&buf);
    }
    arena_deinit(&arena);
}

/* Goal: of several members with one name, which 5.x accepts, the last one counts. */
static void test_filter_keeps_included_empty_arrays_except_in_mappings(void **state)
{
    (void)state;
    const struct slice excludes[] = {SLICE_LIT("*p")};
    struct json_filter filter = {.excludes = excludes, .exclude_count = 1};
    struct arena arena = ARENA_INIT;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    yyjson_val *document = parse(&arena, "{\"k\":[],\"l\":[{\"p\":1},{}],\"o\":{\"p\":1,\"q\":[]},\"m\":[[],[1]]}");
    json_filter_source(&buf, document, &filter, DIALECT_7);
    assert_slice_equal(buf_as_slice(&buf), "{\"k\":[],\"l\":[],\"o\":{\"q\":[]},\"m\":[[1]]}");
    buf_clear(&buf);
    filter.drops_empty_arrays = true;
    json_filter_source(&buf, document, &filter, DIALECT_7);
    assert_slice_equal(buf_as_slice(&buf), "{\"o\":{},\"m\":[[1]]}");
    buf_deinit(&buf);
    arena_deinit(&arena);
}

static void test_filter_and_merge_use_last_of_duplicate_members(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct slice includes[] = {SLICE_LIT("a"), SLICE_LIT("x")};
    struct json_filter filter = {includes, 2, NULL, 0};
    yyjson_val *document = parse(&arena, "{\"x\":1,\"x\":2}");
    json_filter_source(&buf, document, &filter, DIALECT_5);
    assert_slice_equal(buf_as_slice(&buf), "{\"x\":2}");
    buf_clear(&buf);
    assert_true(json_merge(&buf, document, parse(&arena, "{\"y\":3,\"y\":4}"), DIALECT_5));
    assert_slice_equal(buf_as_slice(&buf), "{\"x\":2,\"y\":4}");
    buf_deinit(&buf);
    arena_deinit(&arena);
}

static void test_merge_keeps_order_and_detects_noop(void **state)
{
    (void)state;
    static const struct {
        const char *base, *patch, *result;
        bool changed;
    } rows[] = {
        {"{\"a\":1,\"b\":2}", "{\"a\":3}", "{\"a\":3,\"b\":2}", true},
        {"{\"a\":1,\"b\":2}", "{\"a\":1}", "{\"a\":1,\"b\":2}", false},
        {"{\"a\":1}", "{}", "{\"a\":1}", false},
        {"{\"a\":{\"x\":1,\"y\":2}}", "{\"a\":{\"y\":3,\"z\":4}}", "{\"a\":{\"x\":1,\"y\":3,\"z\":4}}", true},
        {"{\"a\":{\"x\":1}}", "{\"a\":{\"x\":1}}", "{\"a\":{\"x\":1}}", false},
        {"{\"a\":{\"x\":1}}", "{\"a\":null}", "{\"a\":null}", true},
        {"{\"a\":[1,2]}", "{\"a\":[2]}", "{\"a\":[2]}", true},
        {"{\"a\":1}", "{\"a\":1.0}", "{\"a\":1.0}", true},
        {"{\"a\":1}", "{\"b\":null,\"c\":{}}", "{\"a\":1,\"b\":null,\"c\":{}}", true},
        {"{\"zeta\":1}", "{\"x1\":1,\"zeta\":2,\"a\":3,\"bb\":4}", "{\"zeta\":2,\"bb\":4,\"a\":3,\"x1\":1}", true},
        {"{\"n\":{\"q\":1},\"m\":1}",
         "{\"m\":[{\"x1\":1,\"bb\":2},3],\"n\":{\"x1\":{\"x1\":1,\"Aa\":2},\"BB\":1,\"Aa\":2}}",
         "{\"n\":{\"q\":1,\"BB\":1,\"Aa\":2,\"x1\":{\"Aa\":2,\"x1\":1}},\"m\":[{\"bb\":2,\"x1\":1},3]}", true},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        bool changed = json_merge(&buf, parse(&arena, rows[i].base), parse(&arena, rows[i].patch), DIALECT_7);
        assert_slice_equal(buf_as_slice(&buf), rows[i].result);
        assert_int_equal(changed, rows[i].changed);
        buf_deinit(&buf);
    }
    arena_deinit(&arena);
}

static void append_random(struct buf *buf, struct rng *rng, int depth)
{
    uint64_t kind = rng_below(rng, depth == 0 ? 2 : 8), count = rng_below(rng, rng_below(rng, 4) == 0 ? 30 : 5);

    if (kind < 2) {
        buf_printf(buf, kind == 0 ? "%d" : "\"%d\"", (int)rng_below(rng, 3));
        return;
    }
    buf_byte(buf, kind == 2 ? '[' : '{');
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(buf, ',');
        if (kind == 2) /* objects with one key, and others */
            buf_printf(buf, rng_below(rng, 9) == 0 ? "\"a\"" : "{\"k%d\":%d}", (int)rng_below(rng, 6), (int)i);
        if (kind == 2)
            continue;
        buf_printf(buf, "\"%c%d\":", 'a' + (int)rng_below(rng, 3), (int)rng_below(rng, count > 9 ? 12 : 3));
        append_random(buf, rng, depth - 1);
    }
    buf_byte(buf, kind == 2 ? ']' : '}');
}

static yyjson_val *random_object(struct arena *arena, struct rng *rng)
{
    for (;;) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        append_random(&buf, rng, 3);
        yyjson_val *value = parse(arena, arena_printf(arena, "%.*s", SLICE_ARG(buf_as_slice(&buf))).data);
        buf_deinit(&buf);
        if (yyjson_is_obj(value))
            return value;
    }
}

/* Replaces, merges, and merges by name, by the key; and counts the values that meet. */
static int rule_by_key(void *context, int how, struct slice key, yyjson_val *base, yyjson_val *patch)
{
    int *met = context;

    *met += how + 1 + yyjson_is_obj(base) + 2 * yyjson_is_obj(patch);
    return key.data[0] == 'a' ? JSON_MERGE_NAMED : key.data[0] == 'b' ? how + 1 : JSON_MERGE_REPLACE;
}

/* Returns: the objects merged one after another, each result written and parsed. */
static struct slice merged_in_turn(struct arena *arena, yyjson_val *const *objects, size_t count, bool by_rule,
                                   int *met)
{
    struct slice text = SLICE_NONE;
    yyjson_val *base = objects[0];

    for (size_t i = 1; i < count; i++) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        if (by_rule)
            json_merge_by(&buf, base, objects[i], DIALECT_7, rule_by_key, met, 0);
        else
            (void)json_merge(&buf, base, objects[i], DIALECT_7);
        text = arena_printf(arena, "%.*s", SLICE_ARG(buf_as_slice(&buf)));
        buf_deinit(&buf);
        base = parse(arena, text.data);
    }
    return text;
}

/* A list of objects merges to what they merge to in turn, byte for byte. */
static void test_merge_of_a_list_equals_merges_in_turn(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct rng rng;
    yyjson_val *objects[6];

    rng_init(&rng, 1);
    for (int turn = 0; turn < 4000; turn++) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        bool by_rule = turn % 2 == 0;
        size_t count = 2 + rng_below(&rng, 5);
        int met = 0, met_in_turn = 0;
        for (size_t i = 0; i < count; i++) {
            objects[i] = random_object(&arena, &rng);
            if (!by_rule) /* a rule requires that no name is there twice */
                continue;
            buf_clear(&buf);
            json_write_hashed(&buf, objects[i], DIALECT_7);
            objects[i] = parse(&arena, arena_printf(&arena, "%.*s", SLICE_ARG(buf_as_slice(&buf))).data);
        }
        buf_clear(&buf);
        struct slice in_turn = merged_in_turn(&arena, objects, count, by_rule, &met_in_turn);
        json_merge_list(&buf, objects, count, DIALECT_7, by_rule ? rule_by_key : NULL, &met, 0);
        assert_slice_equal(buf_as_slice(&buf), in_turn.data);
        assert_int_equal(met > 0, met_in_turn > 0);
        buf_deinit(&buf);
        arena_reset(&arena);
    }
    arena_deinit(&arena);
}

/* Splits "a,b" into patterns. */
static size_t split(const char *text, struct slice patterns[8])
{
    size_t count = 0;
    struct slice rest = slice_from(text);
    while (rest.len > 0) {
        size_t end = slice_find_byte(rest, ',');
        patterns[count++] = slice_make(rest.data, end);
        rest = slice_from_offset(rest, end + 1);
    }
    return count;
}

static void test_filter_source_applies_includes_and_excludes(void **state)
{
    (void)state;
    static const char document[] =
        "{\"a\":1,\"b\":{\"c\":2,\"d\":{\"e\":3}},\"l\":[{\"x\":1,\"y\":2},{\"y\":3},4],\"f.g\":5}";
    static const struct {
        const char *includes, *excludes, *result;
    } rows[] = {
        {"", "", document},
        {"a", "", "{\"a\":1}"},
        {"b.c", "", "{\"b\":{\"c\":2}}"},
        {"b.*", "", "{\"b\":{\"c\":2,\"d\":{\"e\":3}}}"},
        {"b", "b.d", "{\"b\":{\"c\":2}}"},
        {"", "b.*", "{\"a\":1,\"b\":{},\"l\":[{\"x\":1,\"y\":2},{\"y\":3},4],\"f.g\":5}"},
        {"", "b,l,f.g", "{\"a\":1}"},
        {"l.x", "", "{\"l\":[{\"x\":1}]}"},
        {"l", "l.y", "{\"l\":[{\"x\":1},4]}"},
        {"*.e", "", "{\"b\":{\"d\":{\"e\":3}}}"},
        {"nope", "", "{}"},
        {"f.g", "", "{\"f.g\":5}"},
        {"*", "a", "{\"b\":{\"c\":2,\"d\":{\"e\":3}},\"l\":[{\"x\":1,\"y\":2},{\"y\":3},4],\"f.g\":5}"},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct slice includes[8], excludes[8];
        struct json_filter filter = {includes, split(rows[i].includes, includes), excludes,
                                     split(rows[i].excludes, excludes)};
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        json_filter_source(&buf, parse(&arena, document), &filter, DIALECT_7);
        if (!slice_is(buf_as_slice(&buf), rows[i].result))
            fail_msg("+%s -%s: got %.*s, expected %s", rows[i].includes, rows[i].excludes,
                     SLICE_ARG(buf_as_slice(&buf)), rows[i].result);
        buf_deinit(&buf);
    }
    arena_deinit(&arena);
}

static void test_filter_path_applies_patterns(void **state)
{
    (void)state;
    static const char reply[] =
        "{\"took\":1,\"hits\":{\"total\":2,\"hits\":[{\"_id\":\"1\",\"_source\":{\"a\":1}},{\"_id\":\"2\",\"_"
        "source\":{\"b\":2}}]},\"_shards\":{\"total\":1}}";
    static const struct {
        const char *patterns, *result;
    } rows[] = {
        {"took", "{\"took\":1}"},
        {"took,hits.hits._id", "{\"took\":1,\"hits\":{\"hits\":[{\"_id\":\"1\"},{\"_id\":\"2\"}]}}"},
        {"hits.hits._source.a", "{\"hits\":{\"hits\":[{\"_source\":{\"a\":1}}]}}"},
        {"*.total", "{\"hits\":{\"total\":2},\"_shards\":{\"total\":1}}"},
        {"**.total", "{\"hits\":{\"total\":2},\"_shards\":{\"total\":1}}"},
        {"**._source", "{\"hits\":{\"hits\":[{\"_source\":{\"a\":1}},{\"_source\":{\"b\":2}}]}}"},
        {"h*.h*._i*", "{\"hits\":{\"hits\":[{\"_id\":\"1\"},{\"_id\":\"2\"}]}}"},
        {"-hits", "{\"took\":1,\"_shards\":{\"total\":1}}"},
        {"-hits.hits._source,-_shards.total",
         "{\"took\":1,\"hits\":{\"total\":2,\"hits\":[{\"_id\":\"1\"},{\"_id\":\"2\"}]}}"},
        {"hits.hits,-**._source", "{\"hits\":{\"hits\":[{\"_id\":\"1\"},{\"_id\":\"2\"}]}}"},
        {"nope", "{}"},
        {"hits.nope", "{}"},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct slice patterns[8];
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        json_filter_path(&buf, parse(&arena, reply), patterns, split(rows[i].patterns, patterns), DIALECT_7);
        if (!slice_is(buf_as_slice(&buf), rows[i].result))
            fail_msg("%s: got %.*s, expected %s", rows[i].patterns, SLICE_ARG(buf_as_slice(&buf)), rows[i].result);
        buf_deinit(&buf);
    }
    arena_deinit(&arena);
}

static void test_wildcard_matches(void **state)
{
    (void)state;
    assert_true(json_wildcard(SLICE_LIT("a*c*"), SLICE_LIT("abcabc")));
    assert_true(json_wildcard(SLICE_LIT("*"), SLICE_LIT("")));
    assert_true(json_wildcard(SLICE_LIT("*b"), SLICE_LIT("aabab")));
    assert_false(json_wildcard(SLICE_LIT("*b"), SLICE_LIT("aaba")));
    assert_false(json_wildcard(SLICE_LIT("a"), SLICE_LIT("ab")));
}

/* A model of json_wildcard(): the definition, in exponential time. */
static bool matches_by_recursion(const char *pattern, const char *text)
{
    if (*pattern == '\0')
        return *text == '\0';
    if (*pattern == '*')
        return matches_by_recursion(pattern + 1, text) || (*text != '\0' && matches_by_recursion(pattern, text + 1));
    return *text == *pattern && matches_by_recursion(pattern + 1, text + 1);
}

/* Goal: all patterns of six characters on all texts of five give the result of the model. */
static void test_wildcard_equals_recursive_model(void **state)
{
    static const char signs[] = {'a', 'b', '*', '\0'};
    (void)state;
    for (unsigned i = 0; i < 1u << 12; i++) {
        char pattern[7] = "";
        for (unsigned at = 0; at < 6; at++)
            pattern[at] = signs[i >> (2 * at) & 3];
        for (unsigned j = 0; j < 1u << 10; j++) {
            char text[6] = "";
            for (unsigned at = 0; at < 5; at++)
                text[at] = "ab\0\0"[j >> (2 * at) & 3];
            if (json_wildcard(slice_from(pattern), slice_from(text)) != matches_by_recursion(pattern, text))
                fail_msg("'%s' on '%s'", pattern, text);
        }
    }
}

/*
 * Goal: after the request is abandoned, writers and filters stop within two polls of the account.
 */
static void test_write_stops_when_account_ends(void **state)
{
    atomic_bool left = false;
    struct arena arena = ARENA_INIT;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    (void)state;
    buf_byte(&text, '[');
    for (int i = 0; i < 200000; i++)
        buf_lit(&text, "{\"a\":1},");
    buf_lit(&text, "1]");
    struct json_doc doc;
    assert_int_equal(json_parse_stored(&arena, buf_as_slice(&text), &doc), 0);
    struct slice pattern = SLICE_LIT("**.a");
    for (int way = 0; way < 3; way++) {
        for (int leaves = 0; leaves < 2; leaves++) {
            struct account account = {.flags[ACCOUNT_FLAG_ABANDONED] = &left};
            struct budget_guard guard = {.account = &account};
            struct buf out = BUF_INIT(BUF_UNLIMITED);
            out.guard = &guard;
            left = leaves != 0;
            if (way == 0)
                json_write(&out, doc.root, DIALECT_7);
            else if (way == 1)
                json_write_pretty(&out, doc.root, DIALECT_7);
            else
                json_filter_path(&out, doc.root, &pattern, 1, DIALECT_7);
            assert_int_equal(account_ended(&account), leaves);
            if (leaves)
                assert_true(account.steps <= 2 * ACCOUNT_POLL_EVERY);
            buf_deinit(&out);
        }
    }
    buf_deinit(&text);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_prints_doubles_as_java),
        cmocka_unit_test(test_write_normalises_numbers_as_recorded),
        cmocka_unit_test(test_write_pretty_indents),
        cmocka_unit_test(test_writer_inserts_commas),
        cmocka_unit_test(test_path_visits_arrays_and_dotted_names),
        cmocka_unit_test(test_filter_keeps_included_empty_arrays_except_in_mappings),
        cmocka_unit_test(test_filter_and_merge_use_last_of_duplicate_members),
        cmocka_unit_test(test_merge_keeps_order_and_detects_noop),
        cmocka_unit_test(test_merge_of_a_list_equals_merges_in_turn),
        cmocka_unit_test(test_filter_source_applies_includes_and_excludes),
        cmocka_unit_test(test_filter_path_applies_patterns),
        cmocka_unit_test(test_wildcard_matches),
        cmocka_unit_test(test_wildcard_equals_recursive_model),
        cmocka_unit_test(test_write_stops_when_account_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
