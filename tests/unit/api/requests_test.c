/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests through the whole api, in-process: dialects, errors in one shape, forms of replies, owners, streams, and
 * that every request is answered exactly once. Complete replies of documents are in the recordings (tests/golden).
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../lib/api_fixture.h"
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/budget.h"

static struct api_fixture fixture;

static int setup(void **state)
{
    (void)state;
    api_fixture_open(&fixture);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    api_fixture_close(&fixture);
    return 0;
}

/* --- Dialects ----------------------------------------------------------------------------------------------------- */

static void test_typed_and_typeless(void **state)
{
    (void)state;
    api_fixture_expect(
        &fixture, "PUT", "/a/_doc/1", "{\"n\":1}", 201,
        "{\"_index\":\"a\",\"_type\":\"_doc\",\"_id\":\"1\",\"_version\":1,\"result\":\"created\",\"_shards\":{"
        "\"total\":2,\"successful\":1,\"failed\":0},\"_seq_no\":0,\"_primary_term\":1}");
    api_fixture_expect(
        &fixture, "PUT", "/b/t/1", "{\"n\":1}", 201,
        "{\"_index\":\"b\",\"_type\":\"t\",\"_id\":\"1\",\"_version\":1,\"result\":\"created\",\"_shards\":{"
        "\"total\":2,\"successful\":1,\"failed\":0},\"created\":true}");
    api_fixture_expect(
        &fixture, "GET", "/a/_doc/1", NULL, 200,
        "{\"_index\":\"a\",\"_type\":\"_doc\",\"_id\":\"1\",\"_version\":1,\"_seq_no\":0,\"_primary_term\":1,"
        "\"found\":true,\"_source\":{\"n\":1}}");
    api_fixture_expect(
        &fixture, "GET", "/b/t/1", NULL, 200,
        "{\"_index\":\"b\",\"_type\":\"t\",\"_id\":\"1\",\"_version\":1,\"found\":true,\"_source\":{\"n\":1}}");
}

/* A shared path follows the indices it is about. */
static void test_shared_paths(void **state)
{
    (void)state;
    api_fixture_expect(&fixture, "PUT", "/typeless/_doc/1", "{\"n\":1}", 201, "*");
    api_fixture_expect(&fixture, "PUT", "/typed/t/1", "{\"n\":1}", 201, "*");
    api_fixture_expect(&fixture, "GET", "/typeless/_mapping", NULL, 200,
                       "{\"typeless\":{\"mappings\":{\"properties\":{\"n\":{\"type\":\"long\"}}}}}");
    api_fixture_expect(&fixture, "GET", "/typed/_mapping", NULL, 200,
                       "{\"typed\":{\"mappings\":{\"t\":{\"properties\":{\"n\":{\"type\":\"long\"}}}}}}");
    api_fixture_expect(&fixture, "GET", "/typed/_mapping?include_type_name=false", NULL, 200,
                       "{\"typed\":{\"mappings\":{\"properties\":{\"n\":{\"type\":\"long\"}}}}}");
}

/* An index that a call of all versions made becomes what writes its first document. */
static void test_first_document(void **state)
{
    (void)state;
    api_fixture_expect(&fixture, "PUT", "/plain", NULL, 200, "*");
    api_fixture_expect(&fixture, "PUT", "/plain/t/1", "{\"n\":1}", 201, "{\"_index\":\"plain*");
    api_fixture_expect(&fixture, "GET", "/plain/_mapping", NULL, 200,
                       "{\"plain\":{\"mappings\":{\"t\":{\"properties\":{\"n\":{\"type\":\"long\"}}}}}}");
    api_fixture_expect(&fixture, "GET", "/plain/_search?size=0&filter_path=hits.total", NULL, 200,
                       "{\"hits\":{\"total\":1}}");
    api_fixture_expect(&fixture, "PUT", "/plain2", NULL, 200, "*");
    api_fixture_expect(&fixture, "PUT", "/plain2/_doc/1", "{\"n\":1}", 201, "*");
    api_fixture_expect(&fixture, "PUT", "/plain2/t/global", "{\"n\":1}", 400,
                       "{\"error\":{\"root_cause\":[{\"type\":\"illegal_argument_exception\",\"reason\":\"Rejecting "
                       "mapping update to [plain2] as "
                       "the final mapping would have more than 1 type: [_doc, t]*");
    api_fixture_expect(&fixture, "GET", "/plain2/_search?size=0&filter_path=hits.total", NULL, 200,
                       "{\"hits\":{\"total\":{\"value\":1,\"relation\":\"eq\"}}}");
}

static void agent_expect(const char *agent, const char *path, const char *expected)
{
    struct fixture_exchange *sent = fixture_exchange_new("PUT", path, "{}");
    fixture_exchange_header(sent, "User-Agent", agent);
    fixture_exchange_start(&fixture, sent);
    fixture_exchange_wait(sent);
    buf_byte(&sent->exchange.response, '\0');
    if (strstr(sent->exchange.response.data, expected) == NULL)
        fail_msg("%s: %s is not in %s", agent, expected, sent->exchange.response.data);
    fixture_exchange_free(sent);
}

/* A typed write with half of a condition is not written without it. */
static void test_half_a_condition(void **state)
{
    (void)state;
    api_fixture_expect(&fixture, "PUT", "/half/t/1", "{}", 201, "*");
    api_fixture_expect(
        &fixture, "PUT", "/half/t/1?if_primary_term=1", "{}", 400,
        "{\"error\":{\"root_cause\":[{\"type\":\"action_request_validation_exception\",\"reason\":\"Validation "
        "Failed: 1: ifSeqNo is unassigned, but primary term is [1];\"}]*");
    api_fixture_expect(
        &fixture, "PUT", "/half/t/1?if_seq_no=0", "{}", 400,
        "{\"error\":{\"root_cause\":[{\"type\":\"action_request_validation_exception\",\"reason\":\"Validation "
        "Failed: 1: ifSeqNo is set, but primary term is [0];\"}]*");
    api_fixture_expect(&fixture, "PUT", "/half/t/1?if_seq_no=0&if_primary_term=1", "{}", 200, "*");
}

static void test_libraries(void **state)
{
    (void)state;
    agent_expect("elasticsearch-py/7.17.6 (Python 3.11.2)", "/library-py/t/1", "\"_seq_no\":0");
    agent_expect("go-elasticsearch/7.10.0 (linux amd64; Go 1.15)", "/library-go/t/1", "\"_seq_no\":0");
    agent_expect("elasticsearch-py/6.8.2 (Python 3.11.2)", "/library-6/t/1", "\"created\":true");
    agent_expect("curl/7.88.1", "/library-curl/t/1", "\"created\":true");
    agent_expect("", "/library-none/t/1", "\"created\":true");
}

/* Typed calls that no client of 5.x sends. */
static void test_typed_in_seven(void **state)
{
    (void)state;
    api_fixture_expect(
        &fixture, "POST", "/doctype/_doc/1/_create", "{\"n\":1}", 201,
        "{\"_index\":\"doctype\",\"_type\":\"_doc\",\"_id\":\"1\",\"_version\":1,\"result\":\"created\",\"_shards\":{"
        "\"total\":2,\"successful\":1,\"failed\":0},\"_seq_no\":0,\"_primary_term\":1}");
    api_fixture_expect(&fixture, "PUT", "/named?include_type_name=true", "{\"mappings\":{\"t\":{}}}", 200, "*");
    api_fixture_expect(
        &fixture, "PUT", "/named/t/1", "{\"n\":1}", 201,
        "{\"_index\":\"named\",\"_type\":\"t\",\"_id\":\"1\",\"_version\":1,\"result\":\"created\",\"_shards\":{"
        "\"total\":2,\"successful\":1,\"failed\":0},\"_seq_no\":0,\"_primary_term\":1}");
    api_fixture_expect(&fixture, "GET", "/named/t/1", NULL, 200,
                       "{\"_index\":\"named\",\"_type\":\"t\",\"_id\":\"1\",\"_version\":1,\"_seq_no\":0,*");
    api_fixture_expect(
        &fixture, "PUT", "/named/u/1", "{\"n\":1}", 400,
        "{\"error\":{\"root_cause\":[{\"type\":\"illegal_argument_exception\",\"reason\":\"Rejecting mapping "
        "update to [named] as the final mapping would have more than 1 type: [t, u]\"}]*");
}

/*
 * A mapping that names its type in the path alone is a client's of 5.x, and so is then the index: types stand side by
 * side.
 */
static void test_typed_mapping(void **state)
{
    static const char mapping[] = "{\"properties\":{\"path\":{\"type\":\"keyword\"}}}";
    (void)state;
    api_fixture_expect(&fixture, "PUT", "/mapped", "{\"settings\":{\"number_of_shards\":1}}", 200, "*");
    api_fixture_expect(&fixture, "PUT", "/mapped/file/_mapping", mapping, 200, "{\"acknowledged\":true}");
    api_fixture_expect(&fixture, "PUT", "/mapped/file/1?filter_path=created", "{\"path\":\"/clinton\"}", 201,
                       "{\"created\":true}");
    api_fixture_expect(&fixture, "PUT", "/mapped/lock/global/_create?filter_path=created", "{}", 201,
                       "{\"created\":true}");
    api_fixture_expect(&fixture, "PUT", "/mapped7", NULL, 200, "*");
    api_fixture_expect(&fixture, "PUT", "/mapped7/_mapping/file?include_type_name=true", mapping, 200, "*");
    api_fixture_expect(
        &fixture, "PUT", "/mapped7/lock/global/_create", "{}", 400,
        "{\"error\":{\"root_cause\":[{\"type\":\"illegal_argument_exception\",\"reason\":\"Rejecting mapping "
        "update to [mapped7] as the final mapping would have more than 1 type: [file, lock]\"}]*");
}

/* Created next to indices of 5.x by a call that all versions have, and then written to by a client of 7.x. */
static void test_first_document_of_seven(void **state)
{
    struct api_fixture five = {0};
    (void)state;
    api_fixture_open(&five);
    api_fixture_expect(&five, "PUT", "/old/t/1", "{\"n\":1}", 201, "*");
    api_fixture_expect(&five, "PUT", "/new", NULL, 200, "*");
    api_fixture_expect(&five, "PUT", "/new/_doc/1", "{\"n\":1}", 201, "*");
    api_fixture_expect(&five, "GET", "/new/_mapping", NULL, 200,
                       "{\"new\":{\"mappings\":{\"properties\":{\"n\":{\"type\":\"long\"}}}}}");
    api_fixture_close(&five);
}

static void test_eight(void **state)
{
    (void)state;
    struct fixture_exchange *sent = fixture_exchange_new("PUT", "/eight/_doc/1", "{}");
    fixture_exchange_header(sent, "Content-Type", "application/vnd.elasticsearch+json; compatible-with=8");
    fixture_exchange_header(sent, "Accept", "application/vnd.elasticsearch+json; compatible-with=8");
    fixture_exchange_start(&fixture, sent);
    fixture_exchange_wait(sent);
    assert_int_equal(sent->exchange.status, 201);
    assert_string_equal(sent->exchange.content_type, "application/vnd.elasticsearch+json;compatible-with=8");
    buf_byte(&sent->exchange.response, '\0');
    assert_null(strstr(sent->exchange.response.data, "_type"));
    fixture_exchange_free(sent);
    /* with Accept: any type, the answer has the type of the request's body */
    sent = fixture_exchange_new("PUT", "/eight/_doc/2", "{}");
    fixture_exchange_header(sent, "Content-Type", "application/vnd.elasticsearch+json; compatible-with=8");
    fixture_exchange_header(sent, "Accept", "*/*");
    fixture_exchange_start(&fixture, sent);
    fixture_exchange_wait(sent);
    assert_string_equal(sent->exchange.content_type, "application/vnd.elasticsearch+json;compatible-with=8");
    fixture_exchange_free(sent);
}

/* --- Errors ------------------------------------------------------------------------------------------------------- */

static void test_errors(void **state)
{
    (void)state;
    api_fixture_expect(
        &fixture, "GET", "/none/_doc/1", NULL, 404,
        "{\"error\":{\"root_cause\":[{\"type\":\"index_not_found_exception\",\"reason\":\"no such index [none]\",*");
    api_fixture_expect(
        &fixture, "GET", "/none/t/1", NULL, 404,
        "{\"error\":{\"root_cause\":[{\"type\":\"index_not_found_exception\",\"reason\":\"no such index\",*");
    api_fixture_expect(&fixture, "PUT", "/_bulk/x/y/z", "{}", 400,
                       "{\"error\":\"no handler found for uri [/_bulk/x/y/z] and method [PUT]\"}");
    api_fixture_expect(&fixture, "PATCH", "/_bulk", NULL, 405,
                       "{\"error\":\"Incorrect HTTP method for uri [/_bulk] and method [PATCH], allowed: [*");
    api_fixture_expect(&fixture, "GET", "/i/_doc/%", NULL, 405,
                       "{\"error\":\"unterminated escape sequence at end of string: %, *");
    api_fixture_expect(
        &fixture, "GET", "/i/_doc/1?realtime=maybe", NULL, 400,
        "{\"error\":{\"root_cause\":[{\"type\":\"illegal_argument_exception\",\"reason\":\"Failed to parse value "
        "[maybe] as only [true] or [false] are allowed.\"}],*");
    api_fixture_expect(
        &fixture, "PUT", "/i/_doc/1", NULL, 400,
        "{\"error\":{\"root_cause\":[{\"type\":\"parse_exception\",\"reason\":\"request body is required\"}],*");
}

static void test_media_types(void **state)
{
    static const struct {
        const char *type;
        int status;
    } cases[] = {{"text/plain", 406},
                 {"application/json; charset=utf-8", 201},
                 {"application/JSON", 200},
                 {"application/x-ndjson", 200},
                 {"bogus", 400},
                 {"", 400},
                 {"application/cbor", 406},
                 {"application/vnd.elasticsearch+json;compatible-with=7", 200}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture_exchange *sent = fixture_exchange_new("PUT", "/media/_doc/1", "{}");
        fixture_exchange_header(sent, "Content-Type", cases[i].type);
        fixture_exchange_start(&fixture, sent);
        fixture_exchange_wait(sent);
        if (sent->exchange.status != cases[i].status)
            fail_msg("%s: got %d, expected %d", cases[i].type, sent->exchange.status, cases[i].status);
        fixture_exchange_free(sent);
    }
}

/* What 5.6 took without a type is taken from programs on this host only, and nothing that a page can send unasked. */
static void test_media_types_of_old(void **state)
{
    static const char form[] = "application/x-www-form-urlencoded";
    static const struct {
        const char *method, *path, *type;
        int here, elsewhere; /* status, for a program on this host and for other clients */
    } cases[] = {
        {"POST", "/old/file", NULL, 201, 406},
        {"POST", "/old/file", form, 201, 406},
        {"POST", "/old/file", "application/x-www-form-urlencoded; charset=UTF-8", 201, 406},
        {"POST", "/old/file", "text/plain", 406, 406},
        {"POST", "/old/file", "multipart/form-data; boundary=x", 406, 406},
        {"POST", "/old/file", "bogus", 406, 406},
        {"POST", "/old/file", "application/json", 201, 201},
        {"POST", "/old/file", "application/x-ndjson", 201, 201},
        {"POST", "/old/file", "application/smile", 406, 406},
        {"PUT", "/old/file/1", "text/plain", 201, 406},
        {"PUT", "/old/file/1", "application/xml", 200, 406},
        {"PUT", "/old/file/1", "application/cbor", 406, 406},
        {"POST", "/old/file/1/_update", "text/plain", 406, 406},
        {"POST", "/old/file/_delete_by_query", "text/plain", 406, 406},
        {"POST", "/_session", NULL, 201, 406},
        {"POST", "/_session", form, 201, 406},
        {"POST", "/_session", "text/plain", 406, 406},
        {"POST", "/_bulk", "text/plain", 406, 406},
        {"POST", "/_scripts/s", "text/plain", 406, 406},
        {"PUT", "/old/_doc/1", NULL, 406, 406},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases * 2; i++) {
        struct fixture_exchange *sent = fixture_exchange_new(cases[i / 2].method, cases[i / 2].path, "{}");
        if (cases[i / 2].type != NULL)
            fixture_exchange_header(sent, "Content-Type", cases[i / 2].type);
        else
            sent->sent_count = 0;
        sent->exchange.local = i % 2 == 0;
        int wanted = i % 2 == 0 ? cases[i / 2].here : cases[i / 2].elsewhere;
        fixture_exchange_start(&fixture, sent);
        fixture_exchange_wait(sent);
        if (sent->exchange.status != wanted)
            fail_msg("%s %s as %s: got %d, expected %d", cases[i / 2].method, cases[i / 2].path, cases[i / 2].type,
                     sent->exchange.status, wanted);
        fixture_exchange_free(sent);
    }
}

/* --- Forms of replies --------------------------------------------------------------------------------------------- */

static void test_forms(void **state)
{
    (void)state;
    api_fixture_expect(&fixture, "PUT", "/forms/_doc/1", "{\"a\": 1, \"b\": {\"c\": [1, 2]}}", 201, "*");
    api_fixture_expect(&fixture, "GET", "/forms/_source/1", NULL, 200, "{\"a\": 1, \"b\": {\"c\": [1, 2]}}");
    api_fixture_expect(&fixture, "GET", "/forms/_source/1?pretty", NULL, 200,
                       "{\n  \"a\" : 1,\n  \"b\" : {\n    \"c\" : [\n      1,\n      2\n    ]\n  }\n}\n");
    api_fixture_expect(&fixture, "GET", "/forms/_doc/1?filter_path=_id,_source.b", NULL, 200,
                       "{\"_id\":\"1\",\"_source\":{\"b\":{\"c\":[1,2]}}}");
    api_fixture_expect(&fixture, "GET", "/forms/_source/1?format=yaml", NULL, 200,
                       "---\na: 1\nb:\n  c:\n  - 1\n  - 2\n");
    api_fixture_expect(&fixture, "GET", "/_cat/count/forms?h=count", NULL, 200, "1\n");
    api_fixture_expect(&fixture, "GET", "/_cat/count/forms?h=count&format=json", NULL, 200, "[{\"count\":\"1\"}]");
    api_fixture_expect(&fixture, "GET", "/_cat/indices/forms?h=i,dc&v", NULL, 200, "i     dc\nforms  1\n");
}

/* GET /_cat lists each table. */
static void test_list_of_tables(void **state)
{
    static const char *const patterns[] = {
#define X(methods, pattern, dialects, handler, params) pattern,
#include "api/request/routes.def"
#undef X
    };
    tl_cleanup(mem_freep) char *body = NULL;
    (void)state;
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/_cat", NULL, &body), 200);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        char line[64];
        snprintf(line, sizeof line, "\n%s\n", patterns[i]);
        if (strncmp(patterns[i], "/_cat/", 6) == 0 && strchr(patterns[i], '{') == NULL && strstr(body, line) == NULL)
            fail_msg("GET /_cat lacks %s", patterns[i]);
    }
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void test_bulk(void **state)
{
    (void)state;
    api_fixture_expect(&fixture, "POST", "/bulk/_bulk?filter_path=errors,items.*.status",
                       "{\"index\":{\"_id\":\"1\"}}\n{\"a\":1}\n{\"create\":{\"_id\":\"1\"}}\n{\"a\":2}\n"
                       "{\"delete\":{\"_id\":\"2\"}}\n{\"update\":{\"_id\":\"1\"}}\n{\"doc\":{\"b\":1}}\n",
                       200,
                       "{\"errors\":true,\"items\":[{\"index\":{\"status\":201}},{\"create\":{\"status\":409}},"
                       "{\"delete\":{\"status\":404}},{\"update\":{\"status\":200}}]}");
    api_fixture_expect(&fixture, "POST", "/bulk/_bulk", "{\"index\":{}}\n{}", 400, "*");
    api_fixture_expect(&fixture, "POST", "/_bulk", "{\"index\":{\"_index\":\"bulk\",\"foo\":1}}\n{}\n", 400, "*");
    api_fixture_expect(
        &fixture, "POST", "/bulk/_bulk?filter_path=errors,items.*.error.reason",
        "{\"index\":{\"_id\":\"3\",\"pipeline\":\"p\"}}\n{}\n{\"index\":{\"_id\":\"4\"}}\n{}\n", 200,
        "{\"errors\":true,\"items\":[{\"index\":{\"error\":{\"reason\":\"pipeline with id [p] does not exist\"}}}]}");
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/bulk/_doc/4", NULL, NULL), 200);
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/bulk/_doc/3", NULL, NULL), 404);
}

/* When a document was written. */
static uint64_t written_at(const char *path)
{
    char target[64], *reply;
    uint64_t ts = 0;
    snprintf(target, sizeof target, "%s?version_history=true", path);
    assert_int_equal(api_fixture_ask(&fixture, "GET", target, NULL, &reply), 200);
    const char *from = strstr(reply, "\"from\":");
    assert_non_null(from);
    ts = strtoull(from + strlen("\"from\":"), NULL, 10);
    mem_free(reply);
    return ts;
}

enum { LARGE_COUNT = 5001, LARGE_REFUSED = 2500 };

/*
 * 5,001 actions of 500 bytes: every thousandth creates an existing document, and one is refused before it reaches the
 * core.
 */
static void large_body(struct buf *body)
{
    for (int i = 0; i < LARGE_COUNT; i++) {
        if (i % 1000 == 999)
            buf_printf(body, "{\"create\":{\"_id\":\"0\"}}\n");
        else
            buf_printf(body, "{\"index\":{\"_id\":\"%d\"%s}}\n", i, i == LARGE_REFUSED ? ",\"pipeline\":\"p\"" : "");
        buf_printf(body, "{\"n\":%d,\"text\":\"%0450d\"}\n", i, i);
    }
    buf_byte(body, '\0');
}

/* A large body goes to the core in pieces, each at a timestamp of its own, and is answered as one. */
static void test_large_bulk(void **state)
{
    (void)state;
    char *reply;
    struct buf body = BUF_INIT(BUF_UNLIMITED), expected = BUF_INIT(BUF_UNLIMITED);
    large_body(&body);
    for (int i = 0; i < LARGE_COUNT; i++)
        buf_printf(&expected, "%s{\"%s\":{\"_id\":\"%d\",\"status\":%d}}",
                   i == 0 ? "{\"errors\":true,\"items\":[" : ",", i % 1000 == 999 ? "create" : "index",
                   i % 1000 == 999 ? 0 : i,
                   i % 1000 == 999      ? 409
                   : i == LARGE_REFUSED ? 400
                                        : 201);
    buf_printf(&expected, "]}");
    buf_byte(&expected, '\0');
    assert_int_equal(api_fixture_ask(&fixture, "POST", "/large/_bulk?filter_path=errors,items.*._id,items.*.status",
                                     body.data, &reply),
                     200);
    assert_string_equal(reply, expected.data);
    mem_free(reply);
    assert_true(written_at("/large/_doc/0") < written_at("/large/_doc/5000"));
    buf_deinit(&expected);
    buf_clear(&body);
    large_body(&body);
    assert_int_equal(
        api_fixture_ask(&fixture, "POST", "/whole/_bulk?atomic=true&filter_path=rolled_back", body.data, NULL), 409);
    buf_deinit(&body);
}

static void test_atomic_bulk(void **state)
{
    (void)state;
    api_fixture_expect(&fixture, "POST", "/atomic/_bulk?atomic=true&filter_path=rolled_back,items.*.status",
                       "{\"index\":{\"_id\":\"1\"}}\n{}\n{\"update\":{\"_id\":\"9\"}}\n{\"doc\":{}}\n", 409,
                       "{\"rolled_back\":true,\"items\":[{\"update\":{\"status\":404}}]}");
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/atomic/_doc/1", NULL, NULL), 404);
    api_fixture_expect(&fixture, "POST", "/atomic/_bulk?atomic=true&filter_path=rolled_back,items.*.status",
                       "{\"index\":{\"_id\":\"1\"}}\n{}\n{\"index\":{\"_id\":\"2\",\"pipeline\":\"p\"}}\n{}\n", 409,
                       "{\"rolled_back\":true,\"items\":[{\"index\":{\"status\":400}}]}");
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/atomic/_doc/1", NULL, NULL), 404);
    assert_int_equal(
        api_fixture_ask(&fixture, "POST", "/atomic/_bulk?atomic=true", "{\"index\":{\"_id\":\"1\"}}\n{}\n", NULL), 200);
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/atomic/_doc/1", NULL, NULL), 200);
    /* Every conflict names the current version. */
    api_fixture_expect(&fixture, "POST",
                       "/atomic/_bulk?atomic=true&filter_path=items.*._id,items.*._version,items.*._seq_no",
                       "{\"index\":{\"_id\":\"1\",\"if_seq_no\":7,\"if_primary_term\":1}}\n{}\n"
                       "{\"index\":{\"_id\":\"2\"}}\n{}\n"
                       "{\"create\":{\"_id\":\"1\"}}\n{}\n"
                       "{\"index\":{\"_id\":\"3\",\"if_seq_no\":7,\"if_primary_term\":1}}\n{}\n",
                       409,
                       "{\"items\":[{\"index\":{\"_id\":\"1\",\"_version\":1,\"_seq_no\":0}},"
                       "{\"create\":{\"_id\":\"1\",\"_version\":1,\"_seq_no\":0}},{\"index\":{\"_id\":\"3\"}}]}");
}

/* A bulk whose response has no room for its entries, or for its head, writes no byte beyond it. */
static void test_bulk_without_room(void **state)
{
    (void)state;
    static const size_t room[] = {600, 512, 511, 300, 256, 200, 20, 1, 0};
    for (size_t i = 0; i < sizeof room / sizeof *room; i++) {
        struct fixture_exchange *sent = fixture_exchange_new(
            "POST", "/room/_bulk", "{\"index\":{\"_id\":\"1\"}}\n{}\n{\"index\":{\"_id\":\"2\"}}\n{}\n");
        sent->exchange.response = BUF_INIT(room[i]);
        fixture_exchange_start(&fixture, sent);
        fixture_exchange_wait(sent);
        assert_int_equal(sent->exchange.status, 200);
        assert_true(sent->exchange.response.len <= room[i]);
        fixture_exchange_free(sent);
    }
}

/* Asks for locks whose paths have so many levels, with a slash spelled in this way. Returns: the status. */
static int ask_deep(struct api_fixture *small, const char *slash, size_t levels)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&body, "{\"session\":\"gone\",\"locks\":[{\"index\":\"tree\",\"mode\":\"exclusive\",\"path\":\"");
    for (size_t i = 0; i < levels; i++)
        buf_printf(&body, "%sa", slash);
    buf_append(&body, "\"}]}", sizeof "\"}]}");
    int status = api_fixture_ask(small, "POST", "/_lock", body.data, NULL);
    buf_deinit(&body);
    return status;
}

/* The levels of paths are charged before a request is read, however their slashes are spelled. */
static void test_levels_of_paths_are_charged(void **state)
{
    static const char *const slashes[] = {"/", "\\/", "\\u002f", "\\u002F"};
    enum { FEW = 3000, MANY = 400000 };
    struct budget budget;
    struct api_fixture small = {.budget = &budget};
    (void)state;
    budget_init(&budget, BUDGET_LIMIT_MIN);
    api_fixture_open(&small);
    for (size_t i = 0; i < sizeof slashes / sizeof *slashes; i++) {
        assert_int_equal(ask_deep(&small, slashes[i], MANY), 429);
        assert_int_equal(ask_deep(&small, slashes[i], FEW), 404);
    }
    api_fixture_close(&small);
}

/* --- Time --------------------------------------------------------------------------------------------------------- */

static void test_time(void **state)
{
    char target[128];
    (void)state;
    struct fixture_exchange *sent = fixture_exchange_new("PUT", "/time/_doc/1", "{\"v\":1}");
    fixture_exchange_start(&fixture, sent);
    fixture_exchange_wait(sent);
    tl_ts first = sent->exchange.timestamp;
    assert_true(first > 0);
    fixture_exchange_free(sent);
    assert_int_equal(api_fixture_ask(&fixture, "PUT", "/time/_doc/1", "{\"v\":2}", NULL), 200);

    snprintf(target, sizeof target, "/time/_source/1?timestamp=%llu", (unsigned long long)first);
    api_fixture_expect(&fixture, "GET", target, NULL, 200, "{\"v\":1}");
    api_fixture_expect(&fixture, "GET", "/time/_source/1", NULL, 200, "{\"v\":2}");
    snprintf(target, sizeof target, "/time/_source/1?timestamp=%llu", (unsigned long long)(first - 1));
    assert_int_equal(api_fixture_ask(&fixture, "GET", target, NULL, NULL), 404);
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/time/_source/1?timestamp=1", NULL, NULL), 410);
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/time/_source/1?timestamp=9000000000000000", NULL, NULL), 400);
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/time/_source/1?timestamp=x", NULL, NULL), 400);
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/time/_source/1?as_of=yesterday", NULL, NULL), 400);
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/time/_source/1?as_of=1970-01-02", NULL, NULL), 410);
}

/* --- What a refused request has made ------------------------------------------------------------------------------ */

static void ask_refused(const char *method, const char *call, const char *what, const char *body)
{
    char target[256];
    snprintf(target, sizeof target, "%s%c%s", call, strchr(call, '?') == NULL ? '?' : '&', what);
    int status = api_fixture_ask(&fixture, method, target, body, NULL);
    if (status < 400)
        fail_msg("%s %s: got %d", method, target, status);
}

/*
 * A task, scroll or point in time is freed if its request is refused: before the read, during it,
 * or by the core.
 */
static void test_refused_request_frees_created_objects(void **state)
{
    static const struct {
        const char *method, *call, *body;
    } calls[] = {
        {"POST", "/made/_search?scroll=1m", "{\"query\":{\"match_all\":{}}}"},
        {"POST", "/made/_pit?keep_alive=1m", NULL},
        {"POST", "/made/_search/point_in_time?keep_alive=1m", NULL},
        {"POST", "/made/_delete_by_query", "{\"query\":{\"match_all\":{}}}"},
        {"POST", "/made/_update_by_query", "{\"query\":{\"match_all\":{}}}"},
        {"POST", "/made/_update_by_query?wait_for_completion=false", "{\"query\":{\"match_all\":{}}}"},
        {"POST", "/_reindex", "{\"source\":{\"index\":\"made\"},\"dest\":{\"index\":\"other\"}}"},
        {"DELETE", "/made_typed/t/_query", "{\"query\":{\"match_all\":{}}}"},
        {"POST", "/made/_search", "{\"query\":{\"match_all\":{}}}"},
        {"POST", "/made/_count", "{\"query\":{\"match_all\":{}}}"},
        {"POST", "/_msearch", "{\"index\":\"made\"}\n{}\n"},
        {"GET", "/_changes?feed=continuous", NULL},
    };
    static const char *const wrong[] = {"session=gone", "transaction=gone", "timestamp=1",
                                        "as_of=never",  "timeout=soon",     "nonsense=1"};
    enum { TIMES = 40, FILLER = 20000 };
    (void)state;
    assert_int_equal(api_fixture_ask(&fixture, "PUT", "/made/_doc/1", "{\"n\":1}", NULL), 201);
    assert_int_equal(api_fixture_ask(&fixture, "PUT", "/made_typed/t/1", "{\"n\":1}", NULL), 201);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            struct buf body = BUF_INIT(BUF_UNLIMITED);
            buf_slice(&body, slice_from(calls[i].body == NULL ? "" : calls[i].body));
            if (body.len > 0) {
                for (int n = 0; n < FILLER; n++)
                    buf_byte(&body, ' ');
                if (strstr(calls[i].call, "_msearch") != NULL)
                    buf_byte(&body, '\n');
            }
            buf_byte(&body, '\0');
            const char *text = calls[i].body == NULL ? NULL : body.data;
            ask_refused(calls[i].method, calls[i].call, wrong[w], text);
            size_t before = mem_used();
            for (int n = 0; n < TIMES; n++)
                ask_refused(calls[i].method, calls[i].call, wrong[w], text);
            size_t after = mem_used();
            if (after > before + TIMES * (size_t)FILLER / 8 + 4 * (size_t)MEM_UNCOUNTED_MAX)
                fail_msg("%s %s with %s: %zu bytes are left of %d", calls[i].method, calls[i].call, wrong[w],
                         after - before, TIMES);
            buf_deinit(&body);
        }
    }
    api_fixture_expect(&fixture, "GET", "/_tasks?actions=*query,*reindex", NULL, 200, "{\"nodes\":{}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_typed_and_typeless),
        cmocka_unit_test(test_shared_paths),
        cmocka_unit_test(test_first_document),
        cmocka_unit_test(test_half_a_condition),
        cmocka_unit_test(test_libraries),
        cmocka_unit_test(test_typed_in_seven),
        cmocka_unit_test(test_typed_mapping),
        cmocka_unit_test(test_first_document_of_seven),
        cmocka_unit_test(test_eight),
        cmocka_unit_test(test_refused_request_frees_created_objects),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_media_types),
        cmocka_unit_test(test_media_types_of_old),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_list_of_tables),
        cmocka_unit_test(test_bulk),
        cmocka_unit_test(test_large_bulk),
        cmocka_unit_test(test_atomic_bulk),
        cmocka_unit_test(test_bulk_without_room),
        cmocka_unit_test(test_levels_of_paths_are_charged),
        cmocka_unit_test(test_time),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
