/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of query transactions by itself.
 *
 * Goal: each transaction is open, ended or unknown, and its pin is released once, when it has ended
 * and its last reader is done; whichever threads begin, use, end and list them.
 * Method: the test counts pins and gives the clock.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "lib/unit.h"

#include "base/check.h"
#include "base/rand.h"
#include "core/step/core.h"
#include "journal/query_txns.h"
#include "journal/times.h"

enum { OPEN_MAX = 100, TIMEOUT_US = 60 * 1000000, THREADS = 4, ROUNDS = 3000, TS_COUNT = THREADS * ROUNDS };

/* A table, and the pins of each timestamp. */
struct query_box {
    struct query_txns table;
    struct arena arena;
    _Atomic int pins[TS_COUNT + 1];
};

static struct query_box fixture;

static void unpin(void *context, tl_ts ts)
{
    struct query_box *of = context;
    atomic_fetch_sub(&of->pins[ts], 1);
}

static int set_up(void **state)
{
    (void)state;
    fixture.arena = ARENA_INIT;
    query_txns_init(&fixture.table, OPEN_MAX, unpin, &fixture);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    query_txns_stop(&fixture.table);
    query_txns_deinit(&fixture.table);
    arena_deinit(&fixture.arena);
    for (size_t i = 0; i <= TS_COUNT; i++)
        assert_int_equal(atomic_load(&fixture.pins[i]), 0);
    return 0;
}

static struct query_txns_now at(uint64_t clock)
{
    return (struct query_txns_now){clock, clock + 1};
}

static int begin(const char *id, const char *session, tl_ts ts, uint64_t clock)
{
    struct query_txn_info info;
    struct query_txn_terms terms = {
        .id = slice_from(id), .session = slice_from(session), .read_ts = ts, .timeout_us = TIMEOUT_US};
    atomic_fetch_add(&fixture.pins[ts], 1);
    int r = query_txns_begin(&fixture.table, &terms, at(clock), &info);
    if (r != 0)
        atomic_fetch_sub(&fixture.pins[ts], 1);
    return r;
}

static enum query_txn_state state_of(const char *id, uint64_t clock, struct query_txn_info *ret_info)
{
    return query_txns_find(&fixture.table, slice_from(id), true, at(clock), &fixture.arena, ret_info);
}

static struct problem problem; /* of the last end() */

static enum query_txn_state end(const char *id, bool commit, bool force, struct query_txn_info *ret_info)
{
    struct query_txn_ending ending = {.id = slice_from(id), .commit = commit, .force = force};
    problem = (struct problem){0};
    return query_txns_end(&fixture.table, &ending, at(1), &fixture.arena, ret_info, &problem);
}

static void test_pin_is_released_after_the_last_reader(void **state)
{
    struct query_txn_info info;
    (void)state;
    assert_int_equal(begin("a", "", 7, 0), 0);
    struct query_txn *one = query_txns_use(&fixture.table, SLICE_LIT("a"));
    struct query_txn *two = query_txns_use(&fixture.table, SLICE_LIT("a"));
    assert_ptr_equal(one, two);
    assert_int_equal(end("a", true, false, &info), QUERY_TXN_OPEN);
    assert_null(query_txns_use(&fixture.table, SLICE_LIT("a")));
    query_txns_release(&fixture.table, one, 1);
    assert_int_equal(atomic_load(&fixture.pins[7]), 1);
    query_txns_release(&fixture.table, two, 1);
    assert_int_equal(atomic_load(&fixture.pins[7]), 0);
}

static void test_outcome_is_kept(void **state)
{
    struct query_txn_info info;
    (void)state;
    assert_int_equal(begin("a", "", 7, 0), 0);
    assert_int_equal(begin("b", "", 8, 0), 0);
    assert_int_equal(state_of("a", 0, &info), QUERY_TXN_OPEN);
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)info.number);
    assert_int_equal(end(number, false, false, &info), QUERY_TXN_UNKNOWN);
    assert_int_equal(end(number, false, true, &info), QUERY_TXN_OPEN);
    assert_int_equal(end("b", true, false, &info), QUERY_TXN_OPEN);
    assert_int_equal(end("b", true, false, &info), QUERY_TXN_ENDED);
    assert_int_equal(problem.type, PROBLEM_NONE);
    assert_int_equal(end("b", false, false, &info), QUERY_TXN_ENDED);
    assert_int_equal(problem.type, PROBLEM_TRANSACTION_MISSING);
    assert_true(info.committed);
    assert_int_equal(info.read_ts, 8);
    assert_int_equal(state_of("a", CORE_OUTCOME_US, &info), QUERY_TXN_ENDED);
    assert_true(info.by_request);
    assert_true(slice_is(info.cause, "it was ended by force"));
    assert_int_equal(state_of("a", CORE_OUTCOME_US + 2, &info), QUERY_TXN_UNKNOWN);
}

static void test_query_txns_limits_remembered_outcomes(void **state)
{
    struct query_txn_info info;
    char id[24];
    (void)state;
    for (int i = 0; i < 2 * QUERY_TXNS_OUTCOMES_MAX; i++) {
        snprintf(id, sizeof id, "%d", i);
        assert_int_equal(begin(id, "", 1, 0), 0);
        assert_int_equal(end(id, false, false, &info), QUERY_TXN_OPEN);
    }
    size_t kept = 0;
    for (size_t i = 0; i < QUERY_TXNS_PARTS; i++)
        kept += fixture.table.parts[i].outcomes.count;
    assert_in_range(kept, 1, QUERY_TXNS_OUTCOMES_MAX);
    assert_int_equal(state_of(id, 1, &info), QUERY_TXN_ENDED);
    assert_int_equal(state_of("0", 1, &info), QUERY_TXN_UNKNOWN);
}

static void test_open_ones_are_limited(void **state)
{
    struct query_txn_info info;
    char id[24];
    (void)state;
    for (int i = 0; i < OPEN_MAX; i++) {
        snprintf(id, sizeof id, "%d", i);
        assert_int_equal(begin(id, "", (tl_ts)i, 0), 0);
    }
    assert_int_equal(begin("more", "", 1, 0), QUERY_TXNS_FULL);
    assert_int_equal(end("5", true, false, &info), QUERY_TXN_OPEN);
    assert_int_equal(begin("more", "", 1, 0), 0);
    query_txns_stop(&fixture.table);
    assert_int_equal(begin("late", "", 1, 0), QUERY_TXNS_STOPPED);
    assert_int_equal(state_of("more", 0, &info), QUERY_TXN_UNKNOWN);
}

static void test_idle_ones_end(void **state)
{
    const uint64_t limit = TIMEOUT_US + RUN_CLOCK_STALL_US;
    struct query_txn_info info;
    (void)state;
    assert_int_equal(begin("silent", "", 1, 0), 0);
    assert_int_equal(begin("read", "", 2, 0), 0);
    assert_int_equal(begin("used", "", 3, 0), 0);
    struct query_txn *used = query_txns_use(&fixture.table, SLICE_LIT("used"));
    query_txns_release(&fixture.table, query_txns_use(&fixture.table, SLICE_LIT("read")), 5);
    query_txns_end_idle(&fixture.table, limit - 1, at(limit - 1));
    assert_int_equal(state_of("silent", limit, &info), QUERY_TXN_OPEN);
    query_txns_end_idle(&fixture.table, limit, at(limit));
    assert_int_equal(state_of("silent", limit, &info), QUERY_TXN_ENDED);
    assert_true(slice_is(info.cause, "nothing was done with it for 60000 ms"));
    assert_int_equal(state_of("read", limit, &info), QUERY_TXN_OPEN);
    query_txns_end_idle(&fixture.table, limit + 5, at(limit + 5));
    assert_int_equal(state_of("read", limit, &info), QUERY_TXN_ENDED);
    query_txns_end_idle(&fixture.table, 10 * limit, at(10 * limit));
    assert_int_equal(state_of("used", 10 * limit, &info), QUERY_TXN_OPEN);
    query_txns_release(&fixture.table, used, 10 * limit);
    query_txns_end_idle(&fixture.table, 11 * limit, at(11 * limit));
    assert_int_equal(state_of("used", 11 * limit, &info), QUERY_TXN_ENDED);
    assert_int_equal(atomic_load(&fixture.table.next_end), UINT64_MAX);
}

static void test_sessions_take_theirs_along(void **state)
{
    struct query_txn_ending foreign = {.id = SLICE_LIT("a"), .session = SLICE_LIT("t"), .commit = true};
    struct query_txn_info info, *infos;
    (void)state;
    assert_int_equal(begin("a", "s", 1, 0), 0);
    assert_int_equal(begin("b", "s", 2, 0), 0);
    assert_int_equal(begin("c", "t", 3, 0), 0);
    assert_int_equal(query_txns_list(&fixture.table, 0, &fixture.arena, &infos), 0); /* not begun completely */
    query_txns_set_session(&fixture.table, SLICE_LIT("a"), 17);
    query_txns_set_session(&fixture.table, SLICE_LIT("c"), 18);
    query_txns_discard(&fixture.table, SLICE_LIT("b"), at(1));
    assert_int_equal(query_txns_list(&fixture.table, 0, &fixture.arena, &infos), 2);
    assert_true(infos[0].number < infos[1].number);
    assert_int_equal(infos[0].session, 17);
    problem = (struct problem){0};
    assert_int_equal(query_txns_end(&fixture.table, &foreign, at(1), &fixture.arena, &info, &problem), QUERY_TXN_OPEN);
    assert_int_equal(problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    query_txns_end_session(&fixture.table, SLICE_LIT("s"), 17, "was closed", at(1));
    assert_int_equal(state_of("a", 1, &info), QUERY_TXN_ENDED);
    assert_true(slice_is(info.cause, "its session #17 was closed"));
    assert_int_equal(state_of("c", 1, &info), QUERY_TXN_OPEN);
}

/* --- Many threads ------------------------------------------------------------------------------------------------- */

enum { RECENT = 12 };

static _Atomic size_t newest[THREADS]; /* round of the newest transaction that a thread has begun */

static void id_of(size_t thread, size_t round, char *ret_id)
{
    snprintf(ret_id, 24, "%zu", thread * ROUNDS + round + 1);
}

/* Does something with a recent transaction of any thread, which may have ended. */
static void disturb(struct rng *rng, struct arena *arena, uint64_t clock)
{
    struct query_txn_info info, *infos;
    struct problem refused = {0};
    char id[24];
    size_t thread = (size_t)rng_below(rng, THREADS), last = atomic_load(&newest[thread]);
    id_of(thread, last - (size_t)rng_below(rng, last < RECENT ? last + 1 : RECENT), id);
    struct query_txn_ending ending = {.id = slice_from(id), .commit = rng_below(rng, 2) != 0};
    struct query_txn *txn = query_txns_use(&fixture.table, slice_from(id));
    switch (rng_below(rng, 8)) {
    case 0:
    case 1: (void)query_txns_end(&fixture.table, &ending, at(clock), arena, &info, &refused); break;
    case 2: query_txns_end_session(&fixture.table, SLICE_LIT("s"), 1, "was closed", at(clock)); break;
    case 3: (void)query_txns_list(&fixture.table, clock, arena, &infos); break;
    case 4: query_txns_end_idle(&fixture.table, clock + 2 * TIMEOUT_US, at(clock)); break;
    case 5: query_txns_set_session(&fixture.table, slice_from(id), 1); break;
    default: break;
    }
    if (txn == NULL)
        return;
    REQUIRE(atomic_load(&fixture.pins[txn->read_ts]) == 1);
    query_txns_release(&fixture.table, txn, clock);
}

static void *run(void *context)
{
    size_t own = (size_t)(uintptr_t)context;
    struct arena arena = ARENA_INIT;
    struct rng rng;
    rng_init(&rng, own);
    for (size_t round = 0; round < ROUNDS; round++) {
        char id[24];
        id_of(own, round, id);
        REQUIRE(begin(id, rng_below(&rng, 2) ? "s" : "", own * ROUNDS + round + 1, round) != QUERY_TXNS_STOPPED);
        atomic_store(&newest[own], round);
        for (int i = 0; i < 4; i++)
            disturb(&rng, &arena, round);
        arena_reset(&arena);
    }
    arena_deinit(&arena);
    return NULL;
}

static void test_many_threads(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    size_t open = 0, pinned = 0;
    for (size_t i = 0; i < QUERY_TXNS_PARTS; i++)
        open += fixture.table.parts[i].open.count;
    for (size_t i = 0; i <= TS_COUNT; i++)
        pinned += (size_t)atomic_load(&fixture.pins[i]);
    assert_int_equal(open, atomic_load(&fixture.table.open_count));
    assert_int_equal(pinned, open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pin_is_released_after_the_last_reader, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_outcome_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_query_txns_limits_remembered_outcomes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_open_ones_are_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_idle_ones_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sessions_take_theirs_along, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_threads, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
