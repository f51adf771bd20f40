/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that break while another thread has their request (api/request/request.h, "Ownership"). Races are found by the thread
 * sanitizer.
 */
#include <stdio.h>
#include <string.h>

#include "../../lib/api_box.h"
#include "../../lib/unit.h"

#include "base/alloc.h"

enum {
    ROUNDS = 100,
    DELAY_STEP = 400,         /* turns of an empty loop: spreads the moments at which the connection breaks */
    SETTLE_MS = 5,            /* for a request to reach its lock: a shorter time makes the test weaker, not wrong */
    LARGE_BYTES = 200 * 1024, /* of a body that a worker reads */
};

static struct api_box box;

static int setup(void **state)
{
    (void)state;
    api_box_open(&box);
    return api_box_ask(&box, "PUT", "/typed/t/1", "{\"n\":1}", NULL) == 201 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    api_box_close(&box);
    return 0;
}

static void begin(char id[64])
{
    char *body;
    assert_int_equal(api_box_ask(&box, "POST", "/_transaction", "{}", &body), 201);
    const char *from = strstr(body, "\"transaction\":\"");
    assert_non_null(from);
    assert_int_equal(sscanf(from, "\"transaction\":\"%63[^\"]", id), 1);
    mem_free(body);
}

static void roll_back(const char *id)
{
    char target[128];
    snprintf(target, sizeof target, "/_transaction/%s/_rollback", id);
    (void)api_box_ask(&box, "POST", target, NULL, NULL);
}

struct breaker {
    struct box_exchange *sent;
    unsigned delay;
};

static void *break_connection(void *context)
{
    const struct breaker *breaker = context;
    for (volatile unsigned i = 0; i < breaker->delay; i++)
        ;
    box_exchange_break(breaker->sent);
    return NULL;
}

/* A transaction that has written the document: reads of it in others wait. */
static void hold(char holder[64])
{
    char target[128];
    begin(holder);
    snprintf(target, sizeof target, "/typed/t/1?transaction=%s", holder);
    assert_int_equal(api_box_ask(&box, "PUT", target, "{\"n\":2}", NULL), 200);
}

/* An _mget that waits for a lock: its connection breaks, and the lock is released, at about the same time. */
static void break_while_it_waits(const char *body, unsigned delay)
{
    char holder[64], reader[64], target[128];
    hold(holder);
    begin(reader);
    snprintf(target, sizeof target, "/_mget?transaction=%s", reader);
    struct box_exchange *sent = box_exchange_new("POST", target, body);
    box_exchange_start(&box, sent);
    (void)box_exchange_wait_ms(sent, SETTLE_MS);
    struct breaker breaker = {sent, delay};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, break_connection, &breaker), 0);
    roll_back(holder);
    box_exchange_wait(sent);
    pthread_join(thread, NULL);
    assert_true(sent->exchange.status >= 200);
    box_exchange_free(sent);
    roll_back(reader);
}

/* Each item has a dialect of its own: the request's is not touched while the connection breaks. */
static void test_while_items_are_read(void **state)
{
    (void)state;
    static const char body[] = "{\"docs\":[{\"_index\":\"typed\",\"_type\":\"t\",\"_id\":\"1\"},{\"_index\":\"typed\",\"_id\":\"1\"}]}";
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_while_items_are_read),
        cmocka_unit_test(test_while_a_worker_submits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
