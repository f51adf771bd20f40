/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that wait for the log's head: which lookup serves which of them.
 *
 * Goal: a read is served by a lookup that began after it arrived; a lookup waits for the reads of the clients that the
 * last one served, if they come back, and for no other read.
 * Method: the log answers when the test says so. Waits for returning clients last until they are over by the test's
 * word, not by the clock.
 */
#include "../../lib/unit.h"

#include <pthread.h>

#include "api/request/api_internal.h"
#include "api/request/head_waits.h"
#include "base/clock.h"

enum { REQUESTS = 64, UNAWAITED = 8 };

static struct fixture {
    struct api api;
    struct arena arena;
    struct request requests[REQUESTS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t lookups; /* begun */
    size_t answers; /* lookups that the log may answer */
    size_t served;  /* requests */
    size_t pauses;  /* waits for returning clients */
    bool in_vain;   /* such waits are over at once */
} fixture = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int __wrap_journal_read_head(struct journal *journal, uint64_t until, uint64_t *ret_position);
int __wrap_journal_await_position(struct journal *journal, uint64_t position, uint64_t until);
bool __wrap_clock_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until);
int __wrap_request_time(struct request *request, const char *name, int64_t *ret_value);
int __wrap_request_park(struct request *request);
int __wrap_request_work_short(struct request *request, request_handler *then);

int __wrap_journal_read_head(struct journal *journal, uint64_t until, uint64_t *ret_position)
{
    (void)journal;
    (void)until;
    pthread_mutex_lock(&fixture.lock);
    size_t number = ++fixture.lookups;
    pthread_cond_broadcast(&fixture.changed);
    while (fixture.answers < number)
        pthread_cond_wait(&fixture.changed, &fixture.lock);
    pthread_mutex_unlock(&fixture.lock);
    *ret_position = number;
    return 0;
}

int __wrap_journal_await_position(struct journal *journal, uint64_t position, uint64_t until)
{
    (void)journal;
    (void)position;
    (void)until;
    return 0;
}

bool __wrap_clock_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until)
{
    (void)until;
    pthread_mutex_lock(&fixture.lock);
    bool in_vain = fixture.in_vain;
    fixture.pauses++;
    pthread_cond_broadcast(&fixture.changed);
    pthread_mutex_unlock(&fixture.lock);
    if (!in_vain)
        pthread_cond_wait(condition, lock);
    return !in_vain;
}

int __wrap_request_time(struct request *request, const char *name, int64_t *ret_value)
{
    (void)request;
    (void)name;
    (void)ret_value; /* the default */
    return 0;
}

int __wrap_request_park(struct request *request)
{
    (void)request;
    return REQUEST_PENDING;
}

int __wrap_request_work_short(struct request *request, request_handler *then)
{
    (void)then;
    pthread_mutex_lock(&fixture.lock);
    request->head_wait = NULL;
    fixture.served++;
    pthread_cond_broadcast(&fixture.changed);
    pthread_mutex_unlock(&fixture.lock);
    return REQUEST_PENDING;
}

static int never(struct request *request)
{
    (void)request;
    fail_msg("__wrap_request_work_short() runs no handler");
    return 0;
}

static void arrive(size_t i)
{
    assert_int_equal(head_waits_add(&fixture.requests[i], never), REQUEST_PENDING);
}

static void await(const size_t *counter, size_t value)
{
    pthread_mutex_lock(&fixture.lock);
    while (*counter < value)
        pthread_cond_wait(&fixture.changed, &fixture.lock);
    assert_int_equal(*counter, value);
    pthread_mutex_unlock(&fixture.lock);
}

static void answer(void)
{
    pthread_mutex_lock(&fixture.lock);
    fixture.answers++;
    pthread_cond_broadcast(&fixture.changed);
    pthread_mutex_unlock(&fixture.lock);
}

static int begin(void **state)
{
    (void)state;
    fixture.lookups = fixture.answers = fixture.served = fixture.pauses = 0;
    fixture.in_vain = false;
    fixture.arena = ARENA_INIT;
    for (size_t i = 0; i < REQUESTS; i++)
        fixture.requests[i] = (struct request){.api = &fixture.api, .arena = &fixture.arena};
    return head_waits_open(NULL, &fixture.api.head_waits);
}

static int end(void **state)
{
    (void)state;
    head_waits_stop(fixture.api.head_waits);
    head_waits_close(fixture.api.head_waits);
    arena_deinit(&fixture.arena);
    return 0;
}

static void test_single_client_never_waits(void **state)
{
    (void)state;
    for (size_t i = 1; i <= 5; i++) {
        arrive(0);
        await(&fixture.lookups, i);
        answer();
        await(&fixture.served, i);
    }
    assert_int_equal(fixture.pauses, 0);
}

static void test_two_groups_of_clients_become_one(void **state)
{
    (void)state;
    arrive(0);
    await(&fixture.lookups, 1);
    arrive(1); /* its client may know of a write after the head of this lookup */
    answer();
    await(&fixture.served, 1);
    await(&fixture.pauses, 1);
    assert_int_equal(fixture.lookups, 1);
    arrive(0);
    await(&fixture.lookups, 2);
    answer();
    await(&fixture.served, 3);
}

static void test_a_lookup_does_not_wait_for_the_last_ones(void **state)
{
    (void)state;
    arrive(0);
    await(&fixture.lookups, 1);
    for (size_t i = 1; i < REQUESTS; i++)
        arrive(i);
    answer();
    await(&fixture.lookups, 2); /* 63 of 64 wait already */
    assert_int_equal(fixture.pauses, 0);
    answer();
    await(&fixture.served, REQUESTS);
    for (size_t i = 0; i < REQUESTS - REQUESTS / 8; i++) {
        assert_int_equal(fixture.lookups, 2);
        arrive(i);
    }
    await(&fixture.lookups, 3);
    answer();
    await(&fixture.served, REQUESTS + REQUESTS - REQUESTS / 8);
}

/* Each client sends one read. */
static void test_after_a_wait_in_vain_the_next_lookups_begin_without(void **state)
{
    (void)state;
    fixture.in_vain = true;
    arrive(0);
    for (size_t i = 1; i <= UNAWAITED + 2; i++) {
        await(&fixture.lookups, i);
        arrive(i);
        answer();
        await(&fixture.served, i);
    }
    await(&fixture.lookups, UNAWAITED + 3);
    assert_int_equal(fixture.pauses, 2);
    answer();
    await(&fixture.served, UNAWAITED + 3);
}

static void test_miss_and_stop_end_the_wait_for_returning_clients(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        arrive(0);
        await(&fixture.lookups, 2 * i + 1);
        arrive(1);
        answer();
        await(&fixture.pauses, i + 1);
        if (i == 0)
            head_waits_missed(fixture.api.head_waits);
        else
            head_waits_stop(fixture.api.head_waits);
        await(&fixture.lookups, 2 * i + 2);
        answer();
        await(&fixture.served, 2 * i + 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_single_client_never_waits, begin, end),
        cmocka_unit_test_setup_teardown(test_two_groups_of_clients_become_one, begin, end),
        cmocka_unit_test_setup_teardown(test_a_lookup_does_not_wait_for_the_last_ones, begin, end),
        cmocka_unit_test_setup_teardown(test_after_a_wait_in_vain_the_next_lookups_begin_without, begin, end),
        cmocka_unit_test_setup_teardown(test_miss_and_stop_end_the_wait_for_returning_clients, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
