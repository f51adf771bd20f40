/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that break while another thread has their request (api/request/request.h, "Ownership"). Races are found
 * by the thread sanitizer.
 */
#include <stdio.h>
#include <string.h>

#include "../../lib/api_fixture.h"
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/budget.h"
#include "journal/journal.h"

enum {
    ROUNDS = 100,
    DELAY_STEP = 400,         /* turns of an empty loop: spreads the times at which the connection breaks */
    SETTLE_MS = 5,            /* for a request to reach its lock: a shorter time makes the test weaker, not wrong */
    LARGE_BYTES = 200 * 1024, /* of a body that a worker reads */
};

static struct api_fixture fixture;

static int setup(void **state)
{
    (void)state;
    api_fixture_open(&fixture);
    return api_fixture_ask(&fixture, "PUT", "/typed/t/1", "{\"n\":1}", NULL) == 201 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    api_fixture_close(&fixture);
    return 0;
}

static void begin(char id[64])
{
    char *body;
    assert_int_equal(api_fixture_ask(&fixture, "POST", "/_transaction", "{}", &body), 201);
    const char *from = strstr(body, "\"transaction\":\"");
    assert_non_null(from);
    assert_int_equal(sscanf(from, "\"transaction\":\"%63[^\"]", id), 1);
    mem_free(body);
}

static void roll_back(const char *id)
{
    char target[128];
    snprintf(target, sizeof target, "/_transaction/%s/_rollback", id);
    (void)api_fixture_ask(&fixture, "POST", target, NULL, NULL);
}

struct breaker {
    struct fixture_exchange *sent;
    unsigned delay;
};

static void *break_connection(void *context)
{
    const struct breaker *breaker = context;
    for (volatile unsigned i = 0; i < breaker->delay; i++)
        ;
    fixture_exchange_break(breaker->sent);
    return NULL;
}

/* A transaction that has written the document: reads of it in others wait. */
static void hold(char holder[64])
{
    char target[128];
    begin(holder);
    snprintf(target, sizeof target, "/typed/t/1?transaction=%s", holder);
    assert_int_equal(api_fixture_ask(&fixture, "PUT", target, "{\"n\":2}", NULL), 200);
}

/* An _mget that waits for a lock: its connection breaks, and the lock is released, at about the same time. */
static void break_while_it_waits(const char *body, unsigned delay)
{
    char holder[64], reader[64], target[128];
    hold(holder);
    begin(reader);
    snprintf(target, sizeof target, "/_mget?transaction=%s", reader);
    struct fixture_exchange *sent = fixture_exchange_new("POST", target, body);
    fixture_exchange_start(&fixture, sent);
    (void)fixture_exchange_wait_ms(sent, SETTLE_MS);
    struct breaker breaker = {sent, delay};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, break_connection, &breaker), 0);
    roll_back(holder);
    fixture_exchange_wait(sent);
    pthread_join(thread, NULL);
    assert_true(sent->exchange.status >= 200);
    fixture_exchange_free(sent);
    roll_back(reader);
}

/* Each item has a dialect of its own: the request's is not touched while the connection breaks. */
static void test_while_items_are_read(void **state)
{
    (void)state;
    static const char body[] =
        "{\"docs\":[{\"_index\":\"typed\",\"_type\":\"t\",\"_id\":\"1\"},{\"_index\":\"typed\",\"_id\":\"1\"}]}";
    for (unsigned round = 0; round < ROUNDS; round++)
        break_while_it_waits(body, round * DELAY_STEP);
}

/* A command that a worker submits has its number before the request says that it waits for it. */
static void test_while_a_worker_submits(void **state)
{
    (void)state;
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&body, "{\"docs\":[{\"_index\":\"typed\",\"_type\":\"t\",\"_id\":\"1\"}]");
    while (body.len < LARGE_BYTES)
        buf_lit(&body, "                ");
    buf_lit(&body, "}\0");
    for (unsigned round = 0; round < ROUNDS / 5; round++)
        break_while_it_waits(body.data, round * DELAY_STEP);
    buf_deinit(&body);
}

/* --- A hang-up at a given point: no request waits for a lock afterwards ------------------------------------------- */

/*
 * Where the connection of `sent` breaks: on the thread that submits its n-th command of the type, before that or in the
 * middle of it.
 */
static struct {
    struct fixture_exchange *sent;
    enum command_type type;
    enum { BREAK_NOWHERE, BREAK_AS_WORK_ENDS, BREAK_AS_COMMAND_IS_SUBMITTED } where;
    unsigned countdown;
} break_at;

static void come_by(enum command_type type, int where)
{
    if ((int)break_at.where != where || break_at.type != type || --break_at.countdown > 0)
        return;
    break_at.where = BREAK_NOWHERE;
    fixture_exchange_break(break_at.sent);
}

/* By the linker in the place of the real ones (meson.build). */
void __real_budget_guard_end(struct budget_guard *guard);
void __wrap_budget_guard_end(struct budget_guard *guard);
void __real_journal_submit(struct journal *journal, struct command *command, bool lone);
void __wrap_journal_submit(struct journal *journal, struct command *command, bool lone);

/*
 * A submitted command is no longer part of the request's own work, which a hang-up ends: the last check of that is
 * over.
 */
void __wrap_budget_guard_end(struct budget_guard *guard)
{
    come_by(break_at.type, BREAK_AS_WORK_ENDS);
    __real_budget_guard_end(guard);
}

void __wrap_journal_submit(struct journal *journal, struct command *command, bool lone)
{
    come_by(command->type, BREAK_AS_COMMAND_IS_SUBMITTED);
    __real_journal_submit(journal, command, lone);
}

/* A request that would wait for a minute, but whose connection breaks: it is answered while the lock is still held. */
static void expect_cancelled(struct fixture_exchange *sent)
{
    fixture_exchange_wait(sent);
    const struct buf *response = &sent->exchange.response;
    char *text = mem_strdup(response->data, response->len);
    if (strstr(text, "task_cancelled_exception") == NULL)
        fail_msg("got %d %s", sent->exchange.status, text);
    mem_free(text);
    fixture_exchange_free(sent);
}

static void expect_no_waiters(void)
{
    char *text;
    assert_int_equal(api_fixture_ask(&fixture, "GET", "/_lock", NULL, &text), 200);
    assert_non_null(strstr(text, "\"waiters\":[]"));
    assert_null(strstr(text, "\"waiters\":[{"));
    mem_free(text);
}

static void break_and_expect(const char *method, const char *target, const char *body, enum command_type type,
                             int where, unsigned nth)
{
    char holder[64];
    hold(holder);
    struct fixture_exchange *sent = fixture_exchange_new(method, target, body);
    break_at.sent = sent;
    break_at.type = type;
    break_at.countdown = nth;
    break_at.where = where;
    fixture_exchange_start(&fixture, sent);
    expect_cancelled(sent);
    assert_int_equal(break_at.where, BREAK_NOWHERE);
    expect_no_waiters();
    roll_back(holder);
}

static void test_before_the_command_is_queued(void **state)
{
    (void)state;
    break_and_expect("DELETE", "/typed/t/1?timeout=1m", NULL, COMMAND_WRITE, BREAK_AS_COMMAND_IS_SUBMITTED, 1);
}

/* Also where the core is free and the caller's own thread applies the command. */
static void test_before_a_lone_command(void **state)
{
    (void)state;
    char holder[64];
    hold(holder);
    struct fixture_exchange *sent = fixture_exchange_new("DELETE", "/typed/t/1?timeout=1m", NULL);
    sent->exchange.may_block = true;
    break_at.sent = sent;
    break_at.type = COMMAND_WRITE;
    break_at.countdown = 1;
    break_at.where = BREAK_AS_COMMAND_IS_SUBMITTED;
    fixture_exchange_start(&fixture, sent);
    expect_cancelled(sent);
    roll_back(holder);
}

static struct buf large_bulk(size_t items, size_t bytes)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = items; i > 0; i--) { /* the one that is locked comes last */
        buf_printf(&body, "{\"index\":{\"_index\":\"typed\",\"_type\":\"t\",\"_id\":\"%zu\"}}\n{\"n\":1", i);
        for (size_t filled = 0; filled < bytes; filled++)
            buf_byte(&body, ' ');
        buf_lit(&body, "}\n");
    }
    buf_byte(&body, '\0');
    return body;
}

/* A worker has read the body when the connection breaks, and hands the command in afterwards. */
static void test_while_a_worker_reads(void **state)
{
    (void)state;
    struct buf body = large_bulk(2, LARGE_BYTES);
    break_and_expect("POST", "/_bulk?timeout=1m", body.data, COMMAND_WRITE, BREAK_AS_WORK_ENDS, 1);
    buf_deinit(&body);
}

/* Between two pieces of a large bulk: executed items stay, the next piece is not submitted. */
static void test_between_two_pieces(void **state)
{
    (void)state;
    char holder[64];
    struct buf body = large_bulk(3, 1100 * 1024);
    hold(holder);
    struct fixture_exchange *sent = fixture_exchange_new("POST", "/_bulk?timeout=1m", body.data);
    break_at.sent = sent;
    break_at.type = COMMAND_WRITE;
    break_at.countdown = 3;
    break_at.where = BREAK_AS_COMMAND_IS_SUBMITTED;
    fixture_exchange_start(&fixture, sent);
    expect_cancelled(sent);
    assert_int_equal(break_at.where, BREAK_NOWHERE);
    expect_no_waiters();
    api_fixture_expect(&fixture, "HEAD", "/typed/t/3", NULL, 200, "*");
    roll_back(holder);
    buf_deinit(&body);
}

/* In the queue of a transaction, which has another request that waits. */
static void test_hang_up_in_queue_of_transaction(void **state)
{
    (void)state;
    char holder[64], second_holder[64], txn[64], target[128];
    hold(holder);
    begin(second_holder);
    snprintf(target, sizeof target, "/typed/t/2?transaction=%s", second_holder);
    assert_true(api_fixture_ask(&fixture, "PUT", target, "{\"n\":2}", NULL) < 300);
    begin(txn);
    snprintf(target, sizeof target, "/typed/t/1?timeout=1m&transaction=%s", txn);
    struct fixture_exchange *first = fixture_exchange_new("GET", target, NULL);
    fixture_exchange_start(&fixture, first);
    char second_target[128];
    snprintf(second_target, sizeof second_target, "/typed/t/2?timeout=1m&transaction=%s", txn);
    struct fixture_exchange *second = fixture_exchange_new("GET", second_target, NULL);
    fixture_exchange_start(&fixture, second);
    fixture_exchange_break(second);
    roll_back(holder);
    fixture_exchange_wait(first);
    fixture_exchange_free(first);
    expect_cancelled(second);
    roll_back(second_holder);
    roll_back(txn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_while_items_are_read),
        cmocka_unit_test(test_while_a_worker_submits),
        cmocka_unit_test(test_before_the_command_is_queued),
        cmocka_unit_test(test_before_a_lone_command),
        cmocka_unit_test(test_while_a_worker_reads),
        cmocka_unit_test(test_between_two_pieces),
        cmocka_unit_test(test_hang_up_in_queue_of_transaction),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
