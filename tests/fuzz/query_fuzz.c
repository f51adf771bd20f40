/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches from outside: the body of _search, and query strings.
 *
 * The first byte chooses: '7' and '5' a body in that dialect, 'q' a query string, 's' one of
 * simple_query_string, 'r' a regular expression. An accepted body is run over a few documents:
 * the plan and the full scan must find the same, and a cursor must end. A refusal must have a
 * reason.
 */
#include "fuzz.h"

#include "../unit/query/search_fixture.h"

#include "query/bound_query.h"

static const char *const properties =
    "{\"properties\": {\"k\": {\"type\": \"keyword\", \"ignore_above\": 20}, \"n\": {\"type\": \"long\"}, "
    "\"f\": {\"type\": \"double\"},"
    " \"t\": {\"type\": \"text\", \"fields\": {\"raw\": {\"type\": \"keyword\"}}}, \"d\": {\"type\": "
    "\"date\"}, \"b\": {\"type\": \"boolean\"},"
    " \"i\": {\"type\": \"ip\"}, \"x\": {\"type\": \"keyword\", \"index\": "
    "false},"
    " \"s\": {\"type\": \"scaled_float\", \"scaling_factor\": 10}, \"o\": {\"properties\": {\"p\": "
    "{\"type\": \"integer\"}}},"
    " \"z\": {\"type\": \"object\", \"properties\": {\"q\": {\"type\": \"keyword\"}}}}}";

static const char *const ids[] = {"a", "b", "c"};
static const char *const sources[] = {
    "{\"k\": \"red\", \"n\": 1, \"f\": 1.5, \"t\": \"the quick brown fox\", \"d\": \"2020-01-01\", \"b\": "
    "true, \"i\": \"10.0.0.1\", \"s\": 0.5}",
    "{\"k\": [\"red\", \"green\"], \"n\": [2, -3], \"t\": [\"quick\", \"fox\"], \"o\": {\"p\": 1}, \"g\": "
    "[1, 2], \"z\": [{\"q\": \"y\"}]}",
    "{\"n\": null, \"x\": \"y\"}",
};

static struct fixture fixture;
static bool ready;

static void check_cursor(struct arena *arena, const struct search_request *request)
{
    struct search_cursor *cursor = search_cursor_new();
    struct search_request page = *request;
    page.size = 1;
    page.from = -1;
    for (int i = 0; i < 10; i++) {
        struct search_result result;
        struct problem problem = {0};
        fixture_context(&fixture, arena, false);
        int r = search_next(&fixture.context, &page, cursor, &result, &problem);
        size_t hits = result.hit_count;
        search_result_deinit(&result);
        if (r != 0 || hits == 0)
            break;
        MUST(i < 4);
    }
    search_cursor_free(cursor);
}

static void check_search(struct arena *arena, const struct search_request *request, enum dialect dialect)
{
    struct search_result planned, scanned;
    struct problem problem = {0};
    fixture_context(&fixture, arena, false);
    fixture.context.dialect = dialect;
    int r = search_run(&fixture.context, request, &planned, &problem);
    MUST(r >= 0 && (r == 0 || problem.reason.len > 0));
    fixture.context.full_scan = true;
    MUST(search_run(&fixture.context, request, &scanned, &problem) == r);
    if (r == 0) {
        MUST(planned.total == scanned.total && slice_equal(buf_as_slice(&planned.hits), buf_as_slice(&scanned.hits)));
        MUST(slice_equal(buf_as_slice(&planned.aggregations), buf_as_slice(&scanned.aggregations)));
    }
    search_result_deinit(&planned);
    search_result_deinit(&scanned);
    if (r == 0 && request->search_after == NULL && request->terminate_after == 0)
        check_cursor(arena, request);
}

static void check_body(struct arena *arena, struct slice body, enum dialect dialect)
{
    struct json_doc doc;
    struct problem problem = {0};
    struct search_request request;
    struct query_parser parser = {.arena = arena, .dialect = dialect, .doc = &doc, .problem = &problem};
    search_request_init(&request);
    if (json_parse(arena, body, dialect, 0, &doc, &problem) != 0)
        return;
    if (search_request_parse(&parser, doc.root, &request) != 0) {
        MUST(problem.reason.len > 0 && problem.type != PROBLEM_NONE);
        return;
    }
    check_search(arena, &request, dialect);
}

static void check_text(struct arena *arena, struct slice text, bool simple)
{
    struct lucene_options options = {.and_operator = text.len % 2 == 0};
    struct search_request request;
    search_request_init(&request);
    if (text.len > QUERY_STRING_BYTES_MAX)
        return;
    request.query = query_from_lucene(arena, text, &options);
    if (simple)
        request.query->kind = QUERY_SIMPLE;
    check_search(arena, &request, DIALECT_7);
}

static void check_regexp(struct arena *arena, struct slice text)
{
    struct slice reason = SLICE_NONE;
    const struct term_pattern *pattern = term_pattern_new_regexp(arena, text, false, &reason);
    MUST((pattern == NULL) == (reason.data != NULL));
    if (pattern != NULL)
        term_pattern_regexp(pattern, text, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;
    if (!ready) {
        fixture_init(&fixture, properties);
        fixture_write(&fixture, ids, sources, 3, false);
        ready = true;
    }
    if (size == 0)
        return 0;
    struct slice text = arena_copy(&arena, slice_make(data + 1, size - 1));
    if (data[0] == '7' || data[0] == '5')
        check_body(&arena, text, data[0] == '7' ? DIALECT_7 : DIALECT_5);
    else if (data[0] == 'q' || data[0] == 's')
        check_text(&arena, text, data[0] == 's');
    else if (data[0] == 'r')
        check_regexp(&arena, text);
    arena_deinit(&arena);
    return 0;
}
