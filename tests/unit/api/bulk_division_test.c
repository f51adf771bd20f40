/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a request that is divided is submitted: which items each command has, and how long they may
 * wait for locks.
 *
 * Goal: the log of a named bulk grows in proportion to its items, a repetition finds the outcomes,
 * and no item gets more time than the client gave. Method: each WRITE, or each command of another
 * type, is recorded when it is submitted.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../../lib/api_fixture.h"
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/budget.h"
#include "core/command/command.h"
#include "journal/journal.h"

enum { ITEMS = 300, BLOCK = 32, COMMANDS_MAX = 2 * ITEMS };

struct submitted {
    size_t items;
    uint64_t timeout_us;
    bool may_block;
};

static struct api_fixture fixture;
static struct {
    pthread_mutex_t lock;
    enum command_type type;
    struct submitted commands[COMMANDS_MAX];
    size_t count;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* By the linker in the place of the real one (meson.build). */
void __real_journal_submit(struct journal *journal, struct command *command, bool may_block);
void __wrap_journal_submit(struct journal *journal, struct command *command, bool may_block);

void __wrap_journal_submit(struct journal *journal, struct command *command, bool may_block)
{
    pthread_mutex_lock(&seen.lock);
    if (command->type == seen.type && seen.count < COMMANDS_MAX)
        seen.commands[seen.count++] =
            (struct submitted){seen.type == COMMAND_WRITE      ? command->write.item_count
                               : seen.type == COMMAND_TXN_LOCK ? command->txn_lock.target_count
                                                               : 1,
                               command->owner.timeout_us, may_block};
    pthread_mutex_unlock(&seen.lock);
    __real_journal_submit(journal, command, may_block);
}

static int setup(void **state)
{
    (void)state;
    api_fixture_open(&fixture);
    seen.type = COMMAND_WRITE;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    api_fixture_close(&fixture);
    return 0;
}

/* Sends a bulk of texts for the numbers 0 to ITEMS - 1. `name`: of the request; NULL: none. */
static void send_bulk(const char *target, const char *name, void (*put_item)(struct buf *body, size_t i))
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < ITEMS; i++)
        put_item(&body, i);
    buf_byte(&body, '\0');
    struct fixture_exchange *sent = fixture_exchange_new("POST", target, body.data);
    if (name != NULL)
        fixture_exchange_header(sent, "tidelock-request", name);
    seen.count = 0;
    fixture_exchange_start(&fixture, sent);
    fixture_exchange_wait(sent);
    assert_int_equal(sent->exchange.status, 200);
    fixture_exchange_free(sent);
    buf_deinit(&body);
}

/* The documents before the second block are endless: what their scripts do fails. */
static void put_document(struct buf *body, size_t i)
{
    buf_printf(body, "{\"index\":{\"_index\":\"w\",\"_id\":\"%zu\"}}\n{\"n\":0,\"endless\":%s}\n", i,
               i < BLOCK ? "true" : "false");
}

static void put_update(struct buf *body, size_t i)
{
    buf_printf(body,
               "{\"update\":{\"_index\":\"w\",\"_id\":\"%zu\"}}\n"
               "{\"script\":{\"source\":\"while (ctx._source.endless) { } ctx._source.n += 1\"}}\n",
               i);
}

static void expect_n(size_t i, int n)
{
    char target[64], expected[32], *body;
    snprintf(target, sizeof target, "/w/_source/%zu", i);
    snprintf(expected, sizeof expected, "\"n\":%d,", n);
    assert_int_equal(api_fixture_ask(&fixture, "GET", target, NULL, &body), 200);
    if (strstr(body, expected) == NULL)
        fail_msg("document %zu: %s", i, body);
    mem_free(body);
}

/*
 * A command after the first one has the items up to the next multiple of BLOCK. The scripts of the
 * first block fail after so long that each of its commands divides it. The last of these has
 * failed items only and postpones none. The repetition finds the outcomes of all, and runs nothing, although
 * the failed items could succeed then.
 */
static void test_named_bulk_is_divided_in_blocks(void **state)
{
    enum { BLOCKS = ITEMS / BLOCK };
    (void)state;
    send_bulk("/_bulk", NULL, put_document);
    send_bulk("/_bulk", "divided", put_update);
    assert_true(seen.count > 1 + BLOCKS);
    assert_int_equal(seen.commands[0].items, ITEMS);
    assert_int_equal(seen.commands[1].items, BLOCK - 1);
    for (size_t i = 2; i < seen.count - BLOCKS; i++)
        assert_true(seen.commands[i].items < seen.commands[i - 1].items);
    for (size_t i = seen.count - BLOCKS; i + 1 < seen.count; i++)
        assert_int_equal(seen.commands[i].items, BLOCK);
    assert_int_equal(seen.commands[seen.count - 1].items, ITEMS % BLOCK);
    expect_n(BLOCK - 1, 0);
    expect_n(BLOCK, 1);
    for (size_t i = 1; i < BLOCK; i++) {
        char target[64];
        snprintf(target, sizeof target, "/w/_doc/%zu", i);
        assert_int_equal(api_fixture_ask(&fixture, "PUT", target, "{\"n\":0,\"endless\":false}", NULL), 200);
    }
    send_bulk("/_bulk", "divided", put_update);
    for (size_t i = 1; i < BLOCK; i++)
        expect_n(i, 0);
    for (size_t i = BLOCK; i < ITEMS; i++)
        expect_n(i, 1);
}

/* The commands of one request wait for locks for an hour together. */
static void expect_time_that_is_left(void)
{
    assert_true(seen.count > 1);
    assert_int_equal(seen.commands[0].timeout_us, 3600 * TL_SECOND);
    for (size_t i = 1; i < seen.count; i++)
        assert_true(seen.commands[i].timeout_us < seen.commands[i - 1].timeout_us);
}

/* Items that were postponed wait for as long as is left of the time that the client gave. */
static void test_postponed_items_have_time_that_is_left(void **state)
{
    (void)state;
    send_bulk("/_bulk", NULL, put_document);
    send_bulk("/_bulk?timeout=1h", NULL, put_update);
    expect_time_that_is_left();
}

/* A batch of a call by query is divided for the mappings that it makes. */
static void put_field(struct buf *body, size_t i)
{
    buf_printf(body, "{\"index\":{\"_index\":\"s\",\"_id\":\"%zu\"}}\n{\"field-%zu\":1}\n", i, i);
}

static void test_postponed_items_of_a_batch_have_time_that_is_left(void **state)
{
    (void)state;
    send_bulk("/_bulk", NULL, put_field);
    seen.count = 0;
    api_fixture_expect(&fixture, "POST", "/_reindex?timeout=1h&filter_path=created,batches",
                       "{\"source\":{\"index\":\"s\"},\"dest\":{\"index\":\"d\"}}", 200,
                       "{\"created\":300,\"batches\":1}");
    expect_time_that_is_left();
}

/* A document so deep that one command locks some four times its path, which the call refers to LOOKUPS times. */
static void test_locks_of_a_call_by_query_have_time_that_is_left(void **state)
{
    enum { LOOKUPS = 20, LEVELS = 4000 };
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    (void)state;
    api_fixture_expect(&fixture, "PUT", "/fs?filter_path=acknowledged",
                       "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}", 200,
                       "{\"acknowledged\":true}");
    buf_lit(&body, "{\"path\":\"");
    for (size_t i = 0; i < LEVELS; i++)
        buf_lit(&body, "/x");
    buf_lit(&body, "\"}");
    buf_byte(&body, '\0');
    assert_int_equal(api_fixture_ask(&fixture, "PUT", "/fs/_doc/deep", body.data, NULL), 201);
    buf_clear(&body);
    buf_lit(&body, "{\"query\":{\"bool\":{\"should\":[");
    for (size_t i = 0; i < LOOKUPS; i++)
        buf_printf(&body, "%s{\"terms\":{\"n\":{\"index\":\"fs\",\"id\":\"deep\",\"path\":\"n\"}}}", i == 0 ? "" : ",");
    buf_lit(&body, "]}}}");
    buf_byte(&body, '\0');
    seen.type = COMMAND_TXN_LOCK;
    seen.count = 0;
    api_fixture_expect(&fixture, "POST", "/fs/_delete_by_query?atomic=true&timeout=1h&filter_path=deleted", body.data,
                       200, "{\"deleted\":0}");
    buf_deinit(&body);
    expect_time_that_is_left();
    assert_int_equal(seen.commands[0].items, LOOKUPS + 1);
}

/*
 * A script that takes long reads its document under a lock of the transaction. What the write is refused with in the
 * end is a timeout, so there is always some time.
 */
static void test_read_of_a_long_script_has_some_time(void **state)
{
    char target[256], id[64], *body;
    (void)state;
    assert_int_equal(api_fixture_ask(&fixture, "PUT", "/u/_doc/1", "{\"n\":0}", NULL), 201);
    assert_int_equal(api_fixture_ask(&fixture, "POST", "/_transaction", "{}", &body), 201);
    assert_int_equal(sscanf(strstr(body, "\"transaction\":\""), "\"transaction\":\"%63[^\"]", id), 1);
    mem_free(body);
    snprintf(target, sizeof target, "/u/_update/1?timeout=0s&transaction=%s", id);
    seen.type = COMMAND_TXN_LOCK;
    seen.count = 0;
    assert_int_equal(
        api_fixture_ask(&fixture, "POST", target,
                        "{\"script\":{\"source\":\"for (int i = 0; i < 40000; i++) { ctx._source.n = i }\"}}", NULL),
        200);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.commands[0].timeout_us, 1);
}

/*
 * A server that is so full that it refuses large requests, but not small ones, adds to none of several indices, and
 * changes their settings.
 */
static void test_change_of_several_indices_in_a_full_server(void **state)
{
    static const char change[] = "{\"index\":{\"number_of_replicas\":3}}";
    static const char mapping[] = "{\"properties\":{\"m\":{\"type\":\"long\"}}}";
    static const char look[] = "/*/_settings?filter_path=*.settings.index.number_of_replicas";
    struct budget budget;
    struct api_fixture limited = {.budget = &budget};
    (void)state;
    budget_init(&budget, SIZE_MAX / 2);
    api_fixture_open(&limited);
    assert_int_equal(api_fixture_ask(&limited, "PUT", "/a", NULL, NULL), 200);
    assert_int_equal(api_fixture_ask(&limited, "PUT", "/b", NULL, NULL), 200);
    budget.limit = mem_used() / 4 * 5;
    assert_false(budget_fits(&budget, BUDGET_RETAINED, 0));
    assert_true(budget_fits(&budget, BUDGET_TRANSIENT, 0));
    assert_int_equal(api_fixture_ask(&limited, "PUT", "/a,b/_mapping", mapping, NULL), 429);
    api_fixture_expect(&limited, "GET", "/*/_mapping/field/m", NULL, 200,
                       "{\"a\":{\"mappings\":{}},\"b\":{\"mappings\":{}}}");
    assert_int_equal(api_fixture_ask(&limited, "PUT", "/a,b/_settings", change, NULL), 200);
    api_fixture_expect(&limited, "GET", look, NULL, 200,
                       "{\"a\":{\"settings\":{\"index\":{\"number_of_replicas\":\"3\"}}},"
                       "\"b\":{\"settings\":{\"index\":{\"number_of_replicas\":\"3\"}}}}");
    budget.limit = SIZE_MAX / 2;
    assert_int_equal(api_fixture_ask(&limited, "PUT", "/a,b/_mapping", mapping, NULL), 200);
    api_fixture_close(&limited);
}

/*
 * Only the first command of a request may be applied on its caller's thread. The others follow as one completes, on a
 * thread that has the replies of other requests to send: applied there, each within the completion of the one before,
 * they kept all others waiting until the last one, and took as much of the stack.
 */
static void test_later_commands_of_a_request_do_not_block(void **state)
{
    enum { INDICES = 20 };
    static const char *const calls[][3] = {
        {"PUT", "/c*/_settings", "{\"index.priority\":3}"}, {"POST", "/c*/_close", NULL}, {"DELETE", "/c*", NULL}};
    static const enum command_type types[] = {COMMAND_SETTINGS_PUT, COMMAND_INDEX_STATE, COMMAND_INDEX_DELETE};
    char target[16];
    (void)state;
    for (int i = 0; i < INDICES; i++) {
        snprintf(target, sizeof target, "/c%d", i);
        assert_int_equal(api_fixture_ask(&fixture, "PUT", target, NULL, NULL), 200);
    }
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct fixture_exchange *sent = fixture_exchange_new(calls[i][0], calls[i][1], calls[i][2]);
        seen.count = 0;
        seen.type = types[i];
        sent->exchange.may_block = true;
        fixture_exchange_start(&fixture, sent);
        fixture_exchange_wait(sent);
        assert_int_equal(sent->exchange.status, 200);
        fixture_exchange_free(sent);
        assert_int_equal(seen.count, INDICES);
        for (size_t k = 0; k < seen.count; k++)
            assert_int_equal(seen.commands[k].may_block, k == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_named_bulk_is_divided_in_blocks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_postponed_items_have_time_that_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(test_postponed_items_of_a_batch_have_time_that_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(test_locks_of_a_call_by_query_have_time_that_is_left, setup, teardown),
        cmocka_unit_test_setup_teardown(test_read_of_a_long_script_has_some_time, setup, teardown),
        cmocka_unit_test(test_change_of_several_indices_in_a_full_server),
        cmocka_unit_test_setup_teardown(test_later_commands_of_a_request_do_not_block, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
