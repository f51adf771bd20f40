/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing queries. Refusals must have the messages and locations recorded from Elasticsearch 5.6
 * and 7.10. Accepted queries are checked by their text as 5.6 prints it, and query strings by their
 * tree.
 */
#include "../../lib/unit.h"

#include "json/each.h"
#include "query/bound_query.h"
#include "query/node.h"

struct refusal {
    enum dialect dialect;
    const char *text; /* request body with a member "query" */
    const char *type;
    const char *reason;
    unsigned line, column;
};

static const struct refusal refusals[] = {
    {DIALECT_7, "{\"query\": {\"foo\": {}}}", "parsing_exception", "unknown query [foo]", 1, 19},
    {DIALECT_5, "{\"query\": {\"foo\": {}}}", "parsing_exception", "no [query] registered for [foo]", 1, 19},
    {DIALECT_7, "{\"query\": {\"tem\": {}}}", "parsing_exception",
     "unknown query [tem] did you mean any of [term, terms]?", 1, 19},
    {DIALECT_7, "{\"query\": {}}", "illegal_argument_exception", "query malformed, empty clause found at [1:12]", 1,
     12},
    {DIALECT_7, "{\"query\": {\"term\": {}}}", "illegal_argument_exception", "field name is null or empty", 1, 21},
    {DIALECT_5, "{\"query\": 5}", "parsing_exception", "[_na] query malformed, must start with start_object", 1, 11},
    {DIALECT_7, "{\"query\": []}", "parsing_exception", "[_na] query malformed, must start with start_object", 1, 11},
    {DIALECT_7, "{\"query\": {\"match_all\": {}, \"term\": {\"n\": 1}}}", "parsing_exception",
     "[match_all] malformed query, expected [END_OBJECT] but found [FIELD_NAME]", 1, 29},
    {DIALECT_7, "{\"query\": {\"term\": {\"n\": 1, \"k\": \"a\"}}}", "parsing_exception",
     "[term] query doesn't support multiple fields, found [n] and [k]", 1, 34},
    {DIALECT_7, "{\"query\":\n {\"term\": {\"n\": [1]}}}", "parsing_exception",
     "[term] query does not support array of values", 2, 17},
    {DIALECT_7, "{\"query\": {\"term\": 1}}", "parsing_exception",
     "[term] query malformed, no start_object after query name", 1, 20},
    {DIALECT_7, "{\"query\": {\"bool\": {\"mus\": []}}}", "x_content_parse_exception",
     "[1:21] [bool] unknown field [mus] did you mean [must]?", 1, 21},
    {DIALECT_7, "{\"query\": {\"bool\": {\"must\": 5}}}", "x_content_parse_exception",
     "[1:29] [bool] must doesn't support values of type: VALUE_NUMBER", 1, 29},
    {DIALECT_7, "{\"query\": {\"bool\": {\"must\": [{}]}}}", "x_content_parse_exception",
     "[1:31] [bool] failed to parse field [must]", 1, 31},
    {DIALECT_5, "{\"query\": {\"bool\": {\"mus\": {}}}}", "parsing_exception", "[bool] query does not support [mus]", 1,
     28},
    {DIALECT_7, "{\"query\": {\"range\": {\"n\": {\"gtt\": 1}}}}", "parsing_exception",
     "[range] query does not support [gtt]", 1, 35},
    {DIALECT_7, "{\"query\": {\"exists\": {}}}", "parsing_exception", "[exists] must be provided with a [field]", 1,
     23},
    {DIALECT_7, "{\"query\": {\"constant_score\": {}}}", "parsing_exception",
     "[constant_score] requires a 'filter' element", 1, 31},
    {DIALECT_7, "{\"query\": {\"match\": {\"s\": {\"query\": \"a\", \"operatr\": 1}}}}", "parsing_exception",
     "[match] query does not support [operatr]", 1, 53},
    {DIALECT_7, "{\"query\": {\"geo_distance\": {}}}", "parsing_exception",
     "[geo_distance] query is not supported here", 1, 28},
};

static int parse(struct arena *arena, enum dialect dialect, const char *text, struct query **ret_query,
                 struct problem *problem, struct query_parser *parser)
{
    struct json_doc *doc = arena_alloc(arena, sizeof *doc);
    assert_int_equal(json_parse(arena, slice_from(text), dialect, 0, doc, problem), 0);
    *parser = (struct query_parser){.arena = arena, .dialect = dialect, .doc = doc, .problem = problem};
    return query_parse(parser, json_get_lit(doc->root, "query"), ret_query);
}

static void test_parse_refuses_as_elasticsearch(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *row = &refusals[i];
        struct arena arena = ARENA_INIT;
        struct query *query = NULL;
        struct problem problem = {0};
        struct query_parser parser;
        if (parse(&arena, row->dialect, row->text, &query, &problem, &parser) != QUERY_REFUSED)
            fail_msg("%s was accepted", row->text);
        assert_string_equal(problem_name(problem.type), row->type);
        assert_slice_equal(problem.reason, row->reason);
        if (parser.line != row->line || parser.column != row->column)
            fail_msg("%s: at %zu:%zu, expected %u:%u", row->text, parser.line, parser.column, row->line, row->column);
        arena_deinit(&arena);
    }
}

static void test_parse_limits_depth(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct buf text = BUF_INIT(1 << 20);
    struct query *query = NULL;
    struct problem problem = {0};
    struct query_parser parser;
    buf_lit(&text, "{\"query\":");
    for (int i = 0; i < 400; i++)
        buf_lit(&text, "{\"bool\":{\"must\":");
    buf_lit(&text, "{\"match_all\":{}}");
    for (int i = 0; i < 400; i++)
        buf_lit(&text, "}}");
    buf_lit(&text, "}");
    buf_byte(&text, '\0');
    assert_int_equal(parse(&arena, DIALECT_7, text.data, &query, &problem, &parser), QUERY_REFUSED);
    assert_slice_equal(problem.reason, "The nested depth of the query exceeds the maximum of 200");
    buf_deinit(&text);
    arena_deinit(&arena);
}

static void assert_rendered(const char *text, const char *expected)
{
    struct arena arena = ARENA_INIT;
    struct query *query = NULL;
    struct problem problem = {0};
    struct query_parser parser;
    assert_int_equal(parse(&arena, DIALECT_5, text, &query, &problem, &parser), 0);
    assert_slice_equal(query__render(&arena, query), expected);
    arena_deinit(&arena);
}

static void test_render_prints_defaults_as_5_6(void **state)
{
    (void)state;
    assert_rendered("{\"query\": {\"term\": {\"n\": \"x\"}}}",
                    "{\n  \"term\" : {\n    \"n\" : {\n      \"value\" : \"x\",\n      \"boost\" : 1.0\n    }\n  }\n}");
    assert_rendered("{\"query\": {\"range\": {\"n\": {\"gt\": 1}}}}",
                    "{\n  \"range\" : {\n    \"n\" : {\n      \"from\" : 1,\n      \"to\" : null,\n      "
                    "\"include_lower\" : false,\n"
                    "      \"include_upper\" : true,\n      \"boost\" : 1.0\n    }\n  }\n}");
}

/* Prints the tree of a query string in a compact form. */
static void show(struct buf *buf, const struct query *query)
{
    static const char *const kinds[QUERY_KIND_COUNT] = {
        [QUERY_PREFIX] = "prefix", [QUERY_WILDCARD] = "wildcard", [QUERY_REGEXP] = "regexp", [QUERY_FUZZY] = "fuzzy"};
    const struct query_list *lists[] = {&query->boolean.must, &query->boolean.should, &query->boolean.must_not};
    switch (query->kind) {
    case QUERY_BOOL:
        buf_lit(buf, "(");
        for (size_t l = 0; l < 3; l++) {
            for (size_t i = 0; i < lists[l]->count; i++) {
                buf_printf(buf, "%s%c", buf->data[buf->len - 1] == '(' ? "" : " ", "+ -"[l]);
                show(buf, lists[l]->items[i]);
            }
        }
        buf_lit(buf, ")");
        break;
    case QUERY_MATCH:
        buf_printf(buf, "%.*s:%s%.*s", SLICE_ARG(query->field), query->match.form == MATCH_PHRASE ? "phrase " : "",
                   SLICE_ARG(json_slice(query->match.value)));
        break;
    case QUERY_MULTI_MATCH:
        buf_printf(buf, "%s%.*s", query->multi.form == MULTI_PHRASE ? "phrase " : "",
                   SLICE_ARG(json_slice(query->multi.value)));
        break;
    case QUERY_RANGE:
        buf_printf(buf, "%.*s%s%.*s..%.*s%s", SLICE_ARG(query->field), query->range.low_exclusive ? "{" : "[",
                   SLICE_ARG(json_slice(query->range.low)), SLICE_ARG(json_slice(query->range.high)),
                   query->range.high_exclusive ? "}" : "]");
        break;
    case QUERY_EXISTS: buf_printf(buf, "exists %.*s", SLICE_ARG(query->field)); break;
    case QUERY_MATCH_ALL: buf_lit(buf, "all"); break;
    default:
        buf_printf(buf, "%s %.*s:%.*s", kinds[query->kind] ? kinds[query->kind] : "?", SLICE_ARG(query->field),
                   SLICE_ARG(json_slice(query->pattern.value)));
        break;
    }
}

static void assert_lucene(const char *text, const char *expected)
{
    struct arena arena = ARENA_INIT;
    struct lucene_options options = {.and_operator = false};
    struct query *query = query_from_lucene(&arena, slice_from(text), &options), *parsed = NULL;
    struct problem problem = {0};
    struct buf actual = BUF_INIT(1 << 16);
    if (lucene_parse(&arena, NULL, query, NULL, 0, &parsed, &problem) != 0)
        buf_slice(&actual, problem.reason);
    else
        show(&actual, parsed);
    assert_slice_equal(buf_as_slice(&actual), expected);
    buf_deinit(&actual);
    arena_deinit(&arena);
}

static void test_lucene_syntax_becomes_tree(void **state)
{
    (void)state;
    assert_lucene("n:1", "n:1");
    assert_lucene("a b", "a b");
    assert_lucene("a b c OR d", "( a b  c  d)");
    assert_lucene("a b^2 c", "( a  (+b)  c)");
    assert_lucene("a b -c", "( a b -c)");
    assert_lucene("a &&b", "a &&b");
    assert_lucene("a AND b", "(+a +b)");
    assert_lucene("a AND b OR c", "(+a +b  c)");
    assert_lucene("+a -b", "(+a -b)");
    assert_lucene("NOT a", "(-a)");
    assert_lucene("f:(a b)", "f:a b");
    assert_lucene("f:a b", "( f:a  b)");
    assert_lucene("f:\"a b\" AND g:[1 TO 5}", "(+f:phrase a b +g[1..5})");
    assert_lucene("age:>=10", "age[10..]");
    assert_lucene("f:ab*", "prefix f:ab");
    assert_lucene("f:a*b", "wildcard f:a*b");
    assert_lucene("f:ab~1", "fuzzy f:ab");
    assert_lucene("f:/a.c/", "regexp f:a.c");
    assert_lucene("_exists_:f", "exists f");
    assert_lucene("*:*", "all");
    assert_lucene("a\\:b", "a:b");
    assert_lucene("n:{1 TO 2 \xc3\xa4}",
                  "Cannot parse 'n:{1 TO 2 \xc3\xa4}': Encountered \" \"\xc3\xa4\" \"\xc3\xa4 \"\" at line 1, "
                  "column 10.\nWas expecting one of:\n    \"]\" ...\n    \"}\" ...\n    ");
    assert_lucene("n:(",
                  "Cannot parse 'n:(': Encountered \"<EOF>\" at line 1, column 3.\nWas expecting one of:\n    <NOT> "
                  "...\n"
                  "    \"+\" ...\n    \"-\" ...\n    <BAREOPER> ...\n    \"(\" ...\n    \"*\" ...\n    <QUOTED> ...\n"
                  "    <TERM> ...\n    <PREFIXTERM> ...\n    <WILDTERM> ...\n    <REGEXPTERM> ...\n    \"[\" ...\n"
                  "    \"{\" ...\n    <NUMBER> ...\n    <TERM> ...\n    ");
}

/*
 * A text in which many quotes begin a phrase that never ends takes memory, and so time, in proportion to
 * its length.
 */
static void test_simple_query_searches_unclosed_phrases_once(void **state)
{
    (void)state;
    static const char word[] = "a~\\\"";
    struct arena arena = ARENA_INIT;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct lucene_options options = {0};
    buf_byte(&text, '"');
    while (text.len + strlen(word) <= QUERY_STRING_BYTES_MAX)
        buf_slice(&text, slice_from(word));
    struct query *query = query_from_lucene(&arena, buf_as_slice(&text), &options);
    assert_non_null(lucene_parse_simple(&arena, NULL, query, NULL, 0));
    assert_true(arena.used < 1000 * text.len);
    buf_deinit(&text);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_refuses_as_elasticsearch),
        cmocka_unit_test(test_parse_limits_depth),
        cmocka_unit_test(test_render_prints_defaults_as_5_6),
        cmocka_unit_test(test_lucene_syntax_becomes_tree),
        cmocka_unit_test(test_simple_query_searches_unclosed_phrases_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
