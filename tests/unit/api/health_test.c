/* SPDX-License-Identifier: Apache-2.0 */
/* GET /_cluster/health with conditions. Statuses and reasons are those of Elasticsearch 7.10.2. */
#include <stdio.h>
#include <string.h>

#include "../../lib/api_fixture.h"
#include "../../lib/unit.h"

#include "base/alloc.h"

enum { SETTLE_MS = 20 }; /* for a request to park: a shorter time makes the test weaker, not wrong */

static struct api_fixture fixture;

static int setup(void **state)
{
    (void)state;
    api_fixture_open(&fixture);
    return api_fixture_ask(&fixture, "PUT", "/one", "{\"settings\":{\"number_of_replicas\":0}}", NULL) == 200 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    api_fixture_close(&fixture);
    return 0;
}

static void health(const char *query, int status, const char *expected)
{
    char target[256];
    snprintf(target, sizeof target, "/_cluster/health%s&filter_path=status,timed_out,error.type,error.reason", query);
    api_fixture_expect(&fixture, "GET", target, NULL, status, expected);
}

static void is_met(const char *query)
{
    health(query, 200, "{\"status\":\"green\",\"timed_out\":false}");
}

static void times_out(const char *query)
{
    health(query, 408, "{\"status\":\"green\",\"timed_out\":true}");
}

/* `reason` is JSON. */
static void is_refused(const char *query, const char *type, const char *reason)
{
    char expected[512], target[256], *body;
    snprintf(target, sizeof target, "/_cluster/health%s", query);
    assert_int_equal(api_fixture_ask(&fixture, "GET", target, NULL, &body), 400);
    snprintf(expected, sizeof expected, "\"type\":\"%s\",\"reason\":\"%s\"", type, reason);
    if (strstr(body, expected) == NULL)
        fail_msg("%s: %s lacks %s", query, body, expected);
    mem_free(body);
}

static void test_health_answers_at_once_when_conditions_are_met(void **state)
{
    static const char *const met[] = {
        "?wait_for_nodes=1",
        "?wait_for_nodes=%3E%3D1",
        "?wait_for_nodes=%3C5",
        "?wait_for_nodes=lt(2)",
        "?wait_for_nodes=ge(1)",
        "?wait_for_nodes=le(1)",
        "?wait_for_nodes=gt(0)",
        "?wait_for_nodes=%2B1",
        "?wait_for_nodes=",
        "?wait_for_nodes=ge(1x",
        "?wait_for_status=green",
        "?wait_for_status=GREEN",
        "?wait_for_status=yellow",
        "?wait_for_status=red",
        "?wait_for_active_shards=all",
        "?wait_for_active_shards=1",
        "?wait_for_active_shards=0",
        "?wait_for_no_relocating_shards=true",
        "?wait_for_events=languid",
        "?wait_for_events=IMMEDIATE",
        "?timeout=-1",
        "?level=nothing",
        "?wait_for_no_initializing_shards=",
        "?wait_for_nodes=1&timeout=0",
    };
    (void)state;
    for (size_t i = 0; i < sizeof met / sizeof *met; i++)
        is_met(met[i]);
}

static void test_health_times_out_when_conditions_are_not_met(void **state)
{
    static const char *const unmet[] = {
        "?timeout=10ms&wait_for_nodes=2",         "?timeout=10ms&wait_for_nodes=%3E%3D2",
        "?timeout=10ms&wait_for_nodes=ge(2)",     "?timeout=10ms&wait_for_nodes=%3C1",
        "?timeout=10ms&wait_for_nodes=-1",        "?timeout=0&wait_for_nodes=2",
        "?timeout=-1&wait_for_nodes=gt(1)",       "?timeout=100nanos&wait_for_nodes=2",
        "?timeout=10ms&wait_for_active_shards=2",
    };
    (void)state;
    for (size_t i = 0; i < sizeof unmet / sizeof *unmet; i++)
        times_out(unmet[i]);
    health("/nope?timeout=10ms", 408, "{\"status\":\"red\",\"timed_out\":true}");
    health("/nope?timeout=10ms&wait_for_status=red", 408, "{\"status\":\"red\",\"timed_out\":true}");
    health("/nope,one?timeout=10ms", 408, "{\"status\":\"red\",\"timed_out\":true}");
    is_met("/nope*?timeout=10ms");
}

static void test_health_refuses_conditions_that_cannot_be_read(void **state)
{
    static const struct {
        const char *query, *type, *reason;
    } refused[] = {
        {"?wait_for_nodes=nonsense", "number_format_exception", "For input string: \\\"nonsense\\\""},
        {"?wait_for_nodes=%3E%3Dx", "number_format_exception", "For input string: \\\"x\\\""},
        {"?wait_for_nodes=%3E%3D", "number_format_exception", "For input string: \\\"\\\""},
        {"?wait_for_nodes=ge(2", "number_format_exception", "For input string: \\\"\\\""},
        {"?wait_for_nodes=GE(2)", "number_format_exception", "For input string: \\\"GE(2)\\\""},
        {"?wait_for_nodes=2)", "number_format_exception", "For input string: \\\"2)\\\""},
        {"?wait_for_nodes=99999999999", "number_format_exception", "For input string: \\\"99999999999\\\""},
        {"?wait_for_nodes=x&bogus=1", "illegal_argument_exception",
         "request [/_cluster/health] contains unrecognized"
         " parameter: [bogus]"},
        {"?wait_for_status=x&bogus=1", "illegal_argument_exception",
         "No enum constant org.elasticsearch.cluster.health.ClusterHealthStatus.X"},
        {"?wait_for_status=", "illegal_argument_exception",
         "No enum constant org.elasticsearch.cluster.health.ClusterHealthStatus."},
        {"?wait_for_events=x", "illegal_argument_exception", "No enum constant org.elasticsearch.common.Priority.X"},
        {"?wait_for_active_shards=-1", "illegal_argument_exception", "shard count cannot be a negative value"},
        {"?wait_for_active_shards=", "illegal_argument_exception", "cannot parse ActiveShardCount[]"},
        {"?wait_for_active_shards=99999999999", "illegal_argument_exception",
         "cannot parse ActiveShardCount[99999999999]"},
        {"?wait_for_no_relocating_shards=x", "illegal_argument_exception",
         "Failed to parse value [x] as only [true] or [false] are allowed."},
        {"?wait_for_relocating_shards=0", "illegal_argument_exception",
         "wait_for_relocating_shards has been removed, use wait_for_no_relocating_shards [true/false] instead"},
        {"?wait_for_nodes=2&timeout=5", "illegal_argument_exception",
         "failed to parse setting [timeout] with value [5] as a time value: unit is missing or unrecognized"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        is_refused(refused[i].query, refused[i].type, refused[i].reason);
}

/* Starts a request with a time limit that outlasts the test. Asserts that it waits. */
static struct fixture_exchange *start_waiting(const char *target)
{
    struct fixture_exchange *sent = fixture_exchange_new("GET", target, NULL);
    fixture_exchange_start(&fixture, sent);
    assert_false(fixture_exchange_wait_ms(sent, SETTLE_MS));
    return sent;
}

static void end_waiting(struct fixture_exchange *sent, int status)
{
    fixture_exchange_wait(sent);
    assert_int_equal(sent->exchange.status, status);
    fixture_exchange_free(sent);
}

static void test_health_waits_for_named_index(void **state)
{
    (void)state;
    struct fixture_exchange *sent = start_waiting("/_cluster/health/later?timeout=1h");
    assert_int_equal(api_fixture_ask(&fixture, "PUT", "/one/_doc/1", "{}", NULL),
                     201); /* which is no change of the state */
    assert_false(fixture_exchange_wait_ms(sent, SETTLE_MS));
    assert_int_equal(api_fixture_ask(&fixture, "PUT", "/later", NULL, NULL), 200);
    end_waiting(sent, 200);
    assert_int_equal(api_fixture_ask(&fixture, "DELETE", "/later", NULL, NULL), 200);
}

static void test_health_waits_for_status(void **state)
{
    (void)state;
    assert_int_equal(api_fixture_ask(&fixture, "PUT", "/pale", "{\"settings\":{\"number_of_replicas\":1}}", NULL), 200);
    struct fixture_exchange *green = start_waiting("/_cluster/health?wait_for_status=green&timeout=1h");
    struct fixture_exchange *shards = start_waiting("/_cluster/health/pale?wait_for_active_shards=all&timeout=1h");
    struct fixture_exchange *nodes = start_waiting("/_cluster/health?wait_for_nodes=2&timeout=1h");
    assert_int_equal(
        api_fixture_ask(&fixture, "PUT", "/pale/_settings", "{\"index\":{\"number_of_replicas\":0}}", NULL), 200);
    end_waiting(green, 200);
    end_waiting(shards, 200);
    assert_false(fixture_exchange_wait_ms(nodes, SETTLE_MS));
    fixture_exchange_break(nodes);
    end_waiting(nodes, 408);
    assert_int_equal(api_fixture_ask(&fixture, "DELETE", "/pale", NULL, NULL), 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_health_answers_at_once_when_conditions_are_met),
        cmocka_unit_test(test_health_times_out_when_conditions_are_not_met),
        cmocka_unit_test(test_health_refuses_conditions_that_cannot_be_read),
        cmocka_unit_test(test_health_waits_for_named_index),
        cmocka_unit_test(test_health_waits_for_status),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
