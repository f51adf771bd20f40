/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that add to the catalog of a server whose memory is used.
 *
 * Goal: what no owner releases does not grow beyond --memory by small requests, and other small writes are served.
 * Method: the limit is lowered to the used memory, once the server has an index.
 */
#include "../../lib/api_fixture.h"
#include "../../lib/unit.h"

#include "api/request/api_internal.h"
#include "api/request/growth_table.h"
#include "base/alloc.h"
#include "base/budget.h"
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

static struct budget budget;
static struct api_fixture fixture = {.budget = &budget};

static int setup(void **state)
{
    (void)state;
    budget_init(&budget, SIZE_MAX / 2);
    api_fixture_open(&fixture);
    api_fixture_expect(&fixture, "PUT", "/w/_doc/1?filter_path=result", "{\"n\":1,\"o\":{\"k\":\"one\"}}", 201, "*");
    api_fixture_expect(&fixture, "PUT", "/w/_alias/a", NULL, 200, "*");
    api_fixture_expect(&fixture, "PUT", "/v", NULL, 200, "*");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    api_fixture_close(&fixture);
    return 0;
}

static void expect(int status, const char *method, const char *target, const char *body)
{
    char *reply;
    int got = api_fixture_ask(&fixture, method, target, body, &reply);
    if (got != status)
        fail_msg("%s %s: %d %s", method, target, got, reply);
    mem_free(reply);
}

/* Requests that keep memory are refused, small ones are not. */
static void fill(void)
{
    budget.limit = mem_used() / 4 * 5;
    assert_false(budget_fits(&budget, BUDGET_RETAINED, 0));
    assert_true(budget_fits(&budget, BUDGET_TRANSIENT, BUDGET_CHUNK));
}

/* Only the reserve is left. */
static void fill_up(void)
{
    budget.limit = mem_used() / 15 * 16;
    assert_false(budget_fits(&budget, BUDGET_TRANSIENT, BUDGET_CHUNK));
}

#define MAPPING "{\"properties\":{\"n\":{\"type\":\"long\"}}}"
#define SETTINGS \
    "\"settings\":{\"index.refresh_interval\":\"1s\",\"index.max_result_window\":10,\"index.number_of_replicas\":2}"
#define TEMPLATE "{\"index_patterns\": [\"t*\"], " SETTINGS ", \"aliases\": {\"q\":{}}, \"mappings\":" MAPPING "}"
#define COMPONENT "{\"template\": {" SETTINGS ", \"mappings\":" MAPPING "}}"
#define COMPOSED "{\"index_patterns\": [\"u*\"], \"composed_of\": [\"c\"], \"template\": {" SETTINGS "}}"
#define SCRIPT(source) "{\"script\":{\"lang\":\"painless\",\"source\":\"" source "\"}}"
#define ADD(index, alias) "{\"add\":{\"index\":\"" index "\",\"alias\":\"" alias "\"}}"
#define REMOVE(index, alias) "{\"remove\":{\"index\":\"" index "\",\"alias\":\"" alias "\"}}"
#define FILTERED "{\"filter\":{\"term\":{\"n\":1}},\"routing\":\"r\"}"

/* What applications send at each start. */
static void put_objects(void)
{
    expect(200, "PUT", "/w/_mapping", MAPPING);
    expect(200, "PUT", "/_template/t", TEMPLATE);
    expect(200, "PUT", "/_component_template/c", COMPONENT);
    expect(200, "PUT", "/_index_template/t", COMPOSED);
    expect(200, "PUT", "/_scripts/s", SCRIPT("ctx._source.n = \\\"1\\\""));
    expect(200, "PUT", "/w/_alias/f", FILTERED);
    expect(200, "PUT", "/w/_alias/a", NULL);
    expect(400, "PUT", "/w", NULL);
}

#define BULK(...) "{\"index\":{\"_id\":\"8\"}}\n{\"n\":8}\n" __VA_ARGS__ "\n"

static void test_documents_with_new_fields_are_refused_if_memory_is_used(void **state)
{
    (void)state;
    fill();
    expect(429, "PUT", "/w/_doc/2", "{\"n\":1,\"m\":1}");
    expect(429, "PUT", "/w/_doc/2", "{\"o\":{\"l\":1}}");
    expect(429, "PUT", "/a/_doc/2", "{\"m\":1}");
    expect(429, "POST", "/w/_update/1", "{\"doc\":{\"m\":1}}");
    expect(429, "POST", "/w/_update/2", "{\"doc\":{\"n\":1},\"upsert\":{\"m\":1}}");
    expect(429, "POST", "/w/_bulk", BULK("{\"index\":{\"_id\":\"9\"}}\n{\"m\":1}"));
    expect(404, "GET", "/w/_doc/8", NULL);
    api_fixture_expect(&fixture, "GET", "/w/_mapping/field/m", NULL, 200, "{\"w\":{\"mappings\":{}}}");
}

static void test_documents_of_new_indices_are_refused_if_memory_is_used(void **state)
{
    (void)state;
    fill();
    expect(429, "PUT", "/x/_doc/1", "{\"n\":1}");
    expect(429, "PUT", "/x/t/1", "{\"n\":1}");
    expect(429, "POST", "/w/_bulk", BULK("{\"index\":{\"_index\":\"x\",\"_id\":\"9\"}}\n{\"n\":1}"));
    expect(404, "HEAD", "/x", NULL);
}

static void test_catalog_requests_are_refused_if_memory_is_used(void **state)
{
    static const char script[] = "{\"script\":{\"lang\":\"painless\",\"source\":\"ctx._source.n = 1\"}}";
    (void)state;
    fill();
    expect(429, "PUT", "/x", NULL);
    expect(429, "PUT", "/w/_mapping", "{\"properties\":{\"m\":{\"type\":\"long\"}}}");
    expect(429, "PUT", "/w/_alias/b", NULL);
    expect(429, "PUT", "/_scripts/s", script);
    expect(429, "PUT", "/_template/t", "{\"index_patterns\":[\"t*\"]}");
    expect(429, "PUT", "/_index_template/t", "{\"index_patterns\":[\"t*\"]}");
    expect(429, "PUT", "/_component_template/t", "{\"template\":{}}");
}

static void test_other_writes_are_served_if_memory_is_used(void **state)
{
    (void)state;
    fill();
    expect(201, "PUT", "/w/_doc/2", "{\"n\":2,\"o\":{\"k\":\"two\"}}");
    expect(201, "PUT", "/a/_doc/3", "{\"n\":3}");
    expect(200, "POST", "/w/_bulk", BULK("{\"delete\":{\"_id\":\"3\"}}"));
    expect(200, "POST", "/w/_update/1", "{\"doc\":{\"n\":2}}");
    expect(200, "POST", "/w/_update/1", "{\"script\":{\"source\":\"ctx._source.n += 1\"}}");
    expect(200, "PUT", "/w/_settings", "{\"index\":{\"number_of_replicas\":0}}");
    expect(200, "DELETE", "/w/_alias/a", NULL);
    expect(200, "DELETE", "/w/_doc/2", NULL);
    expect(200, "DELETE", "/w", NULL);
}

static void test_objects_that_exist_are_put_again_if_memory_is_used(void **state)
{
    (void)state;
    put_objects();
    fill();
    put_objects();
    expect(429, "PUT", "/_template/t",
           "{\"index_patterns\":[\"t*\",\"s*\"]," SETTINGS ",\"mappings\":" MAPPING
           ",\"aliases\":{\"q\":{},\"r\":{},\"longer-than-the-members-it-had\":{}}}");
    expect(429, "PUT", "/_component_template/d", COMPONENT);
    expect(429, "PUT", "/_scripts/s", SCRIPT("ctx._source.n = \\\"12\\\""));
    expect(429, "PUT", "/w/_alias/a", FILTERED);
}

static void test_aliases_are_exchanged_if_memory_is_used(void **state)
{
    (void)state;
    fill();
    expect(200, "POST", "/_aliases", "{\"actions\":[" REMOVE("w", "a") "," ADD("v", "a") "]}");
    expect(200, "POST", "/_aliases", "{\"actions\":[" ADD("w", "a") "," REMOVE("v", "a") "]}");
    expect(429, "POST", "/_aliases", "{\"actions\":[" ADD("v", "a") "]}");
    expect(429, "POST", "/_aliases", "{\"actions\":[" REMOVE("w", "a") "," ADD("v", "a") "," ADD("w", "b") "]}");
    expect(429, "POST", "/_aliases",
           "{\"actions\":[" REMOVE("w", "a") "," REMOVE("w", "a") "," ADD("v", "a") "," ADD("w", "b") "]}");
    expect(200, "POST", "/_aliases", "{\"actions\":[{\"remove_index\":{\"index\":\"v\"}}," ADD("w", "v") "]}");
}

static void test_many_indices_are_changed_by_what_they_have_if_memory_is_used(void **state)
{
    (void)state;
    expect(200, "PUT", "/_all/_mapping", MAPPING);
    fill();
    expect(200, "PUT", "/_all/_settings", "{\"index\":{\"number_of_replicas\":0}}");
    expect(200, "PUT", "/_all/_mapping", MAPPING);
    expect(429, "PUT", "/_all/_mapping", "{\"properties\":{\"m\":{\"type\":\"long\"}}}");
    api_fixture_expect(&fixture, "GET", "/_all/_mapping/field/m?filter_path=*.mappings.m", NULL, 200, "{}");
}

/* What fields a script makes is known after it has run. */
static void test_scripts_are_refused_if_only_the_reserve_is_left(void **state)
{
    (void)state;
    fill_up();
    expect(429, "POST", "/w/_update/1", "{\"script\":{\"source\":\"ctx._source.n += 1\"}}");
    expect(200, "PUT", "/w/_doc/1", "{\"n\":2}");
}

/* Writes documents 10 to 29, each of 300 fields, to index `s`. */
static void write_sources(void)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    for (int id = 10; id < 30; id++) {
        buf_printf(&body, "{\"index\":{\"_id\":\"%d\"}}\n{\"n\":1", id);
        for (int i = 0; i < 299; i++)
            buf_printf(&body, ",\"f%d\":1", i);
        buf_lit(&body, "}\n");
    }
    buf_byte(&body, '\0');
    api_fixture_expect(&fixture, "POST", "/s/_bulk?filter_path=errors", body.data, 200, "{\"errors\":false}");
    buf_deinit(&body);
}

/* It is admitted while there is memory; each of its batches makes an index. */
static void test_reindex_into_new_indices_ends_if_memory_is_used(void **state)
{
    static const char reindex[] = "{\"source\":{\"index\":\"s\",\"size\":1},\"dest\":{\"index\":\"x\"},"
                                  "\"script\":{\"source\":\"ctx._index = 'x' + ctx._id\"}}";
    (void)state;
    write_sources();
    budget.limit = (mem_used() + (3 << 20)) / 3 * 4;
    expect(429, "POST", "/_reindex", reindex);
    expect(200, "HEAD", "/x10", NULL);
    expect(404, "HEAD", "/x29", NULL);
}

/* --- Commands in flight ------------------------------------------------------------------------------------------- */

/* A command in flight that takes the memory left except for `bytes`. Owns: the caller; growth_promise_end(). */
static struct growth_promise promise_all_but(size_t bytes)
{
    struct growth_promise promise = {0};
    struct growth_terms terms = {.budget = &budget, .level = BUDGET_RETAINED, .room = 1, .alone = SIZE_MAX};
    budget.limit = (size_t)256 << 20;
    struct growth growth = {.other_bytes = budget_share(&budget, BUDGET_RETAINED) - mem_used() - bytes};
    assert_true(growth_table_promise(fixture.api->growth, &terms, &growth, &promise));
    return promise;
}

/* Returns: a document with so many fields, and `n`, or their mappings; in `buf`. */
static const char *with_fields(struct buf *buf, const char *value, size_t count)
{
    buf_clear(buf);
    buf_lit(buf, "{");
    for (size_t i = 0; i < count; i++)
        buf_printf(buf, "%s\"f%zu\":%s", i == 0 ? "" : ",", i, value);
    buf_append(buf, "}", sizeof "}");
    return buf->data;
}

#define MANY 300

/* Memory that is not used yet counts from the check of a command until it is done. */
static void test_what_is_in_flight_counts(void **state)
{
    struct buf fields = BUF_INIT(BUF_UNLIMITED), body = BUF_INIT(BUF_UNLIMITED);
    struct growth_promise promise = promise_all_but(256 << 10);
    (void)state;
    for (int refused = 1; refused >= 0; refused--) {
        expect(refused ? 429 : 201, "PUT", "/w/_doc/2", with_fields(&fields, "1", MANY));
        expect(refused ? 429 : 201, "PUT", "/x/_doc/2", with_fields(&fields, "1", MANY));
        buf_clear(&body);
        buf_printf(&body, "{\"index_patterns\":[\"z*\"],\"mappings\":{\"properties\":%s}}",
                   with_fields(&fields, "{\"type\":\"long\"}", 2 * MANY));
        buf_append(&body, "", 1);
        expect(refused ? 429 : 200, "PUT", "/_template/z", body.data);
        expect(refused ? 201 : 200, "PUT", "/w/_doc/3", "{\"n\":1}");
        growth_promise_end(&promise);
    }
    assert_int_equal(growth_table_bytes(fixture.api->growth), 0);
    /* The template is large, and so are its indices. */
    promise = promise_all_but(256 << 10);
    expect(429, "PUT", "/z/_doc/1", "{}");
    expect(429, "PUT", "/z", NULL);
    expect(201, "PUT", "/y/_doc/1", "{}");
    growth_promise_end(&promise);
    expect(201, "PUT", "/z/_doc/1", "{}");
    buf_deinit(&fields);
    buf_deinit(&body);
}

static void open_session(char *session, size_t size)
{
    static const char member[] = "\"session\":\"";
    char *reply;
    assert_int_equal(api_fixture_ask(&fixture, "POST", "/_session", "{\"ttl\":\"1h\"}", &reply), 201);
    const char *id = strstr(reply, member);
    assert_non_null(id);
    id += sizeof member - 1;
    (void)snprintf(session, size, "%.*s", (int)strcspn(id, "\""), id);
    mem_free(reply);
}

/* A command that waits for a lock has a promise; that of a request which is refused later ends with the request. */
static void test_promise_lasts_until_the_command_is_done(void **state)
{
    (void)state;
    budget.limit = (size_t)256 << 20;
    char session[64], target[100];
    open_session(session, sizeof session);
    (void)snprintf(target, sizeof target, "/_lock?session=%s", session);
    expect(200, "POST", target, "{\"locks\":[{\"index\":\"w\",\"id\":\"1\",\"mode\":\"exclusive\"}]}");
    struct fixture_exchange *put = fixture_exchange_new("PUT", "/w/_doc/1?timeout=1h", "{\"m\":1}");
    fixture_exchange_start(&fixture, put);
    while (growth_table_bytes(fixture.api->growth) == 0)
        assert_false(fixture_exchange_wait_ms(put, 1));
    (void)snprintf(target, sizeof target, "/_session/%s", session);
    expect(200, "DELETE", target, NULL);
    fixture_exchange_wait(put);
    assert_int_equal(put->exchange.status, 200);
    fixture_exchange_free(put);
    assert_int_equal(growth_table_bytes(fixture.api->growth), 0);
    expect(400, "PUT", "/w/_doc/4?as_of=1", "{\"o\":1}");
    assert_int_equal(growth_table_bytes(fixture.api->growth), 0);
}

/* Small settings are put one after another. */
static void test_many_settings_are_refused_if_memory_is_used(void **state)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    (void)state;
    for (int i = 0; i < 20; i++) {
        buf_clear(&body);
        buf_printf(&body, "{\"index\":{\"search.slowlog.level\":\"info\",\"routing.allocation.include.a%d\":\"", i);
        for (int k = 0; k < 900; k++)
            buf_byte(&body, 'v');
        buf_append(&body, "\"}}", sizeof "\"}}");
        expect(200, "PUT", "/w/_settings", body.data);
    }
    fill();
    expect(429, "PUT", "/w/_settings", body.data);
    expect(200, "PUT", "/v/_settings", body.data);
    buf_deinit(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_documents_with_new_fields_are_refused_if_memory_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(test_documents_of_new_indices_are_refused_if_memory_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(test_catalog_requests_are_refused_if_memory_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_writes_are_served_if_memory_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(test_objects_that_exist_are_put_again_if_memory_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(test_aliases_are_exchanged_if_memory_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_indices_are_changed_by_what_they_have_if_memory_is_used, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_scripts_are_refused_if_only_the_reserve_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_settings_are_refused_if_memory_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_in_flight_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_promise_lasts_until_the_command_is_done, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reindex_into_new_indices_ends_if_memory_is_used, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
