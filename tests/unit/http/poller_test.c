/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a polling thread may stay with a request until the disk has it: requests of a few connections are played at chosen
 * times, as the thread would see them.
 */
#include "lib/unit.h"

#include "base/alloc.h"
#include "http/http_internal.h"

enum { CLIENTS = 8 };

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

struct fixture {
    struct http *http;
    struct connection clients[CLIENTS];
    struct connection *next; /* whose request comes next */
    uint64_t now_ns;
};

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    f->http = mem_zalloc(sizeof *f->http);
    for (int i = 0; i < CLIENTS; i++)
        f->clients[i].http = f->http;
    f->next = f->clients;
    f->now_ns = 1000 * MS;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    mem_free(f->http);
    mem_free(f);
    return 0;
}

/* A client's request that comes in `after` the one before was done, and takes its time. Returns: whether it was lone. */
static bool request_of(struct fixture *f, struct connection *client, uint64_t after, uint64_t takes, bool answered)
{
    f->now_ns += after;
    bool lone = poller_enter(client, f->now_ns);
    f->now_ns += takes;
    poller_leave(client, answered, f->now_ns);
    if (answered)
        poller_answered(client);
    return lone;
}

/* The same of one client after the other. */
static bool request(struct fixture *f, uint64_t after, uint64_t takes, bool answered)
{
    struct connection *client = f->next;
    f->next = f->next == &f->clients[CLIENTS - 1] ? f->clients : f->next + 1;
    return request_of(f, client, after, takes, answered);
}

static void test_one_client_is_lone(void **state)
{
    for (int i = 0; i < 100; i++)
        assert_true(request(*state, 60 * US, 200 * US, true));
}

/* However fast it is: it cannot have been waiting behind itself. */
static void test_one_fast_client_is_lone(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++)
        assert_true(request_of(f, f->clients, 5 * US, 200 * US, true));
}

/* Two who hand a lock to each other: what a release took was not in the way of the one whom it let go on. */
static void test_who_is_let_go_on_was_not_behind(void **state)
{
    struct fixture *f = *state;
    struct connection *holder = &f->clients[0], *waiter = &f->clients[1];
    for (int i = 0; i < 100; i++) {
        assert_true(request_of(f, holder, 5 * US, 200 * US, true));
        poller_answered(waiter);
        struct connection *swap = holder;
        holder = waiter;
        waiter = swap;
    }
}

static void test_quick_requests_keep_nobody_waiting(void **state)
{
    for (int i = 0; i < 100; i++)
        assert_true(request(*state, 5 * US, 10 * US, true));
}

static void test_one_found_waiting_is_no_crowd(void **state)
{
    for (int i = 0; i < 100; i++) {
        assert_true(request(*state, 60 * US, 200 * US, true));
        assert_true(request(*state, 5 * US, 10 * US, true));
    }
}

/* Those who wait for a lock would have waited anyway. */
static void test_who_must_wait_is_no_crowd(void **state)
{
    for (int i = 0; i < 100; i++)
        assert_true(request(*state, 5 * US, 200 * US, false));
}

static void test_crowd(void **state)
{
    struct fixture *f = *state;
    assert_true(request(f, 60 * US, 200 * US, true));
    assert_true(request(f, 5 * US, 200 * US, true));
    assert_true(request(f, 5 * US, 200 * US, true));
    uint64_t begins = f->now_ns;
    while (f->now_ns - begins < 15 * MS)
        assert_false(request(f, 5 * US, 10 * US, false));
    assert_true(request(f, 1 * MS, 10 * US, true));
}

/* How long a crowd is believed in, in milliseconds. */
static uint64_t crowd_ms(struct fixture *f)
{
    for (int i = 0; i < 3; i++)
        assert_true(request(f, 5 * US, 200 * US, true));
    uint64_t begins = f->now_ns;
    while (!request(f, 1 * MS, 0, false))
        ;
    return (f->now_ns - begins) / MS;
}

static void test_a_lasting_crowd_is_asked_more_seldom(void **state)
{
    struct fixture *f = *state;
    const uint64_t expected[] = {16, 32, 64, 128, 256, 512, 1024, 1024};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(crowd_ms(f), expected[i]);
    assert_true(request(f, 500 * MS, 0, true));
    assert_int_equal(crowd_ms(f), 16);
}

int main(void)
{
#define with_fixture(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        with_fixture(test_one_client_is_lone),
        with_fixture(test_one_fast_client_is_lone),
        with_fixture(test_who_is_let_go_on_was_not_behind),
        with_fixture(test_quick_requests_keep_nobody_waiting),
        with_fixture(test_one_found_waiting_is_no_crowd),
        with_fixture(test_who_must_wait_is_no_crowd),
        with_fixture(test_crowd),
        with_fixture(test_a_lasting_crowd_is_asked_more_seldom),
    };
    return cmocka_run_group_tests_name("poller", tests, NULL, NULL);
}
