/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a request may block its polling thread unless that delays other requests of the thread.
 * Method: requests of a few connections are simulated at chosen times, as the polling thread sees
 * them.
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
    struct connection *next; /* the client of the next request */
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

/*
 * Simulates a request that arrives `after` nanoseconds after the previous one and takes `takes`.
 * `answered`: the handler responds before it returns. Returns: whether the request may block the
 * thread.
 */
static bool request_of(struct fixture *f, struct connection *client, uint64_t after, uint64_t takes, bool answered)
{
    f->now_ns += after;
    bool may_block = poller_enter(client, f->now_ns);
    f->now_ns += takes;
    poller_leave(client, answered, f->now_ns);
    if (answered)
        poller_answered(client);
    return may_block;
}

/* Simulates a request of the next client in turn. */
static bool request(struct fixture *f, uint64_t after, uint64_t takes, bool answered)
{
    struct connection *client = f->next;
    f->next = f->next == &f->clients[CLIENTS - 1] ? f->clients : f->next + 1;
    return request_of(f, client, after, takes, answered);
}

static void test_poller_lets_clients_at_intervals_block(void **state)
{
    for (int i = 0; i < 100; i++)
        assert_true(request(*state, 60 * US, 200 * US, true));
}

/* A client that sends its next request immediately was not delayed by its own slow request. */
static void test_poller_lets_single_fast_client_block(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++)
        assert_true(request_of(f, f->clients, 5 * US, 200 * US, true));
}

/*
 * Two clients pass a lock to each other: the slow call that granted the lock did not delay the
 * waiter.
 */
static void test_poller_ignores_woken_lock_waiter(void **state)
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

static void test_poller_ignores_fast_requests(void **state)
{
    for (int i = 0; i < 100; i++)
        assert_true(request(*state, 5 * US, 10 * US, true));
}

static void test_poller_ignores_single_queued_request(void **state)
{
    for (int i = 0; i < 100; i++) {
        assert_true(request(*state, 60 * US, 200 * US, true));
        assert_true(request(*state, 5 * US, 10 * US, true));
    }
}

/* A request that is not answered immediately waits for a lock in any case. */
static void test_poller_ignores_requests_blocked_on_locks(void **state)
{
    for (int i = 0; i < 100; i++)
        assert_true(request(*state, 5 * US, 200 * US, false));
}

static void test_poller_detects_contention(void **state)
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

/* Causes contention. Returns: the milliseconds until requests may block again. */
static uint64_t contended_ms(struct fixture *f)
{
    for (int i = 0; i < 3; i++)
        assert_true(request(f, 5 * US, 200 * US, true));
    uint64_t begins = f->now_ns;
    while (!request(f, 1 * MS, 0, false))
        ;
    return (f->now_ns - begins) / MS;
}

static void test_poller_doubles_contended_period_on_recurrence(void **state)
{
    struct fixture *f = *state;
    const uint64_t expected[] = {16, 32, 64, 128, 256, 512, 1024, 1024};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(contended_ms(f), expected[i]);
    assert_true(request(f, 500 * MS, 0, true));
    assert_int_equal(contended_ms(f), 16);
}

int main(void)
{
#define with_fixture(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        with_fixture(test_poller_lets_clients_at_intervals_block),
        with_fixture(test_poller_lets_single_fast_client_block),
        with_fixture(test_poller_ignores_woken_lock_waiter),
        with_fixture(test_poller_ignores_fast_requests),
        with_fixture(test_poller_ignores_single_queued_request),
        with_fixture(test_poller_ignores_requests_blocked_on_locks),
        with_fixture(test_poller_detects_contention),
        with_fixture(test_poller_doubles_contended_period_on_recurrence),
    };
    return cmocka_run_group_tests_name("poller", tests, NULL, NULL);
}
