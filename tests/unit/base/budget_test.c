/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the budget grants and refuses by level, and a refused request takes nothing.
 * Method: real allocations with a small limit; arenas, buffers and texts that grow until they are
 * refused.
 */
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/budget.h"
#include "base/buf.h"

enum { MIB = 1 << 20 };

static void test_alloc_counts_bytes(void **state)
{
    (void)state;
    mem_thread_end();
    size_t before = mem_used();
    char *bytes = mem_alloc(10 * MIB);
    assert_in_range(mem_used() - before, 10 * MIB - MEM_UNCOUNTED_MAX, 10 * MIB + MEM_UNCOUNTED_MAX);
    bytes = mem_realloc(bytes, 4 * MIB);
    assert_in_range(mem_used() - before, 4 * MIB - MEM_UNCOUNTED_MAX, 4 * MIB + MEM_UNCOUNTED_MAX);
    mem_free(bytes);
    mem_free(NULL);
    for (int i = 0; i < 10000; i++)
        mem_free(mem_strdup("0123456789", 10));
    mem_thread_end();
    assert_int_equal(mem_used(), before);
}

static void test_budget_refuses_by_level(void **state)
{
    struct budget budget;
    struct budget_guard guard;
    (void)state;
    budget_init(&budget, 64 * MIB);
    assert_true(budget_share(&budget, BUDGET_RETAINED) < budget_share(&budget, BUDGET_TRANSIENT));
    assert_true(budget_share(&budget, BUDGET_TRANSIENT) < budget.limit);
    char *held = mem_alloc(50 * MIB);
    budget_guard_init(&guard, &budget, BUDGET_REQUESTS, BUDGET_RETAINED);
    assert_false(budget_guard_take(&guard, 0));
    budget_guard_init(&guard, &budget, BUDGET_REQUESTS, BUDGET_TRANSIENT);
    assert_true(budget_guard_take(&guard, MIB / 2));
    assert_false(budget_guard_take(&guard, MIB)); /* not small any more */
    held = mem_realloc(held, 70 * MIB);
    budget_guard_init(&guard, &budget, BUDGET_REQUESTS, BUDGET_RETAINED);
    assert_false(budget_guard_take(&guard, 0));
    budget_guard_init(&guard, &budget, BUDGET_REQUESTS, BUDGET_ESSENTIAL);
    assert_true(budget_guard_take(&guard, 1000)); /* invariant 2 */
    assert_false(budget_guard_take(&guard, 2 * MIB));
    assert_int_equal(atomic_load(&budget.refusals[BUDGET_REQUESTS]), 4);
    mem_free(held);
    budget_guard_end(&guard);
}

/* Invariant 2: in a full server as many small requests are served as the reserve permits. */
static void test_budget_reserve_serves_small_requests(void **state)
{
    enum { SMALL_COUNT = 4 * MIB / BUDGET_DRAW };
    static struct budget_guard guards[SMALL_COUNT + 1];
    struct budget budget;
    (void)state;
    budget_init(&budget, 64 * MIB);
    assert_int_equal(budget_reserve(&budget), 4 * MIB);
    char *held = mem_alloc(100 * MIB);
    for (int i = 0; i <= SMALL_COUNT; i++) {
        budget_guard_init(&guards[i], &budget, BUDGET_REQUESTS, BUDGET_TRANSIENT);
        assert_int_equal(budget_guard_take(&guards[i], 0), i < SMALL_COUNT);
    }
    for (int i = 0; i < SMALL_COUNT; i++)
        budget_guard_end(&guards[i]);
    assert_int_equal(atomic_load(&budget.drawn), 0);
    budget_guard_end(&guards[SMALL_COUNT]);
    budget_guard_init(&guards[0], &budget, BUDGET_REQUESTS, BUDGET_TRANSIENT);
    assert_true(budget_guard_promise(&guards[0], MIB / 2));
    assert_true(budget_guard_take(&guards[0], MIB)); /* half of it was promised */
    assert_false(budget_guard_take(&guards[0], BUDGET_CHUNK)); /* not small any more */
    budget_guard_end(&guards[0]);
    assert_int_equal(atomic_load(&budget.drawn), 0);
    mem_free(held);
}

/* Other guards cannot use promised bytes; those not taken are released at the end of the guard. */
static void test_budget_promise_is_reserved(void **state)
{
    struct budget budget;
    struct budget_guard mine, other;
    (void)state;
    budget_init(&budget, 64 * MIB);
    budget_guard_init(&mine, &budget, BUDGET_REQUESTS, BUDGET_TRANSIENT);
    budget_guard_init(&other, &budget, BUDGET_REQUESTS, BUDGET_TRANSIENT);
    assert_true(budget_guard_promise(&mine, 30 * MIB));
    assert_int_equal(atomic_load(&budget.promised), 30 * MIB);
    assert_false(budget_guard_take(&other, 30 * MIB));
    budget_guard_init(&other, &budget, BUDGET_REQUESTS, BUDGET_TRANSIENT);
    assert_true(budget_guard_take(&mine, 20 * MIB));
    assert_int_equal(atomic_load(&budget.promised), 10 * MIB);
    assert_true(budget_guard_take(&other, 30 * MIB));
    budget_guard_end(&mine);
    assert_int_equal(atomic_load(&budget.promised), 0);
    assert_true(budget_guard_take(&mine, (size_t)1 << 40)); /* after its end it refuses nothing */
}

/* One guard gets at most half of the limit; the error is reported as permanent. */
static void test_budget_limits_guard_to_half(void **state)
{
    struct budget budget;
    struct budget_guard guard;
    struct arena arena = ARENA_INIT;
    struct problem problem;
    (void)state;
    budget_init(&budget, 64 * MIB);
    budget_guard_init(&guard, &budget, BUDGET_BODIES, BUDGET_TRANSIENT);
    for (int i = 0; i < 32; i++)
        assert_true(budget_guard_take(&guard, MIB));
    assert_false(budget_guard_take(&guard, 1));
    assert_false(budget_guard_take(&guard, 0)); /* invariant 6 */
    budget_problem(&guard, SLICE_LIT("this test"), &arena, &problem);
    assert_int_equal(problem.type, PROBLEM_CIRCUIT_BREAKING);
    assert_int_equal(problem_status(&problem), 429);
    assert_non_null(strstr(problem.reason.data, "[in_flight_requests] Data too large, data for [<this test>] would be "
                                                "[33554433/32mb], which is larger than the limit of [33554432/32mb]"));
    assert_string_equal(problem.details.data,
                        "\"bytes_wanted\":33554433,\"bytes_limit\":33554432,\"durability\":\"PERMANENT\"");
    arena_deinit(&arena);
}

static void test_buf_overflows_when_refused(void **state)
{
    struct budget budget;
    struct budget_guard guard;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    char block[4096];
    (void)state;
    memset(block, 'x', sizeof block);
    budget_init(&budget, 64 * MIB);
    budget_guard_init(&guard, &budget, BUDGET_REQUESTS, BUDGET_TRANSIENT);
    buf.guard = &guard;
    for (size_t i = 0; i < 40 * MIB / sizeof block; i++)
        buf_append(&buf, block, sizeof block);
    assert_true(buf.overflow && guard.refused);
    assert_in_range(buf.capacity, 20 * MIB, 32 * MIB + BUDGET_CHUNK);
    buf_deinit(&buf);
    assert_ptr_equal(buf.guard, &guard);
}

static void test_arena_allocates_when_refused(void **state)
{
    struct budget budget;
    struct budget_guard guard;
    struct arena arena = ARENA_INIT;
    (void)state;
    budget_init(&budget, 64 * MIB);
    budget_guard_init(&guard, &budget, BUDGET_REQUESTS, BUDGET_TRANSIENT);
    arena.guard = &guard;
    for (int i = 0; i < 40 * 1024; i++)
        memset(arena_alloc(&arena, 1024), 'x', 1024);
    assert_true(guard.refused);
    arena_deinit(&arena);
    assert_null(arena.guard);
}

/* A text that is built by arena_append() takes linear memory. */
static void test_arena_append_grows_in_place(void **state)
{
    struct arena arena = ARENA_INIT;
    struct slice text = SLICE_NONE;
    (void)state;
    for (unsigned i = 0; i < 100000; i++)
        text = arena_append(&arena, text, "%u: index is missing;", i);
    assert_int_equal(text.len, 2388890);
    assert_in_range(arena.used, text.len, 2 * text.len);
    assert_memory_equal(text.data, "0: index is missing;1: index is missing;", 40);
    assert_string_equal(text.data + text.len - 24, "99999: index is missing;");
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc_counts_bytes),
        cmocka_unit_test(test_budget_refuses_by_level),
        cmocka_unit_test(test_budget_reserve_serves_small_requests),
        cmocka_unit_test(test_budget_promise_is_reserved),
        cmocka_unit_test(test_budget_limits_guard_to_half),
        cmocka_unit_test(test_buf_overflows_when_refused),
        cmocka_unit_test(test_arena_allocates_when_refused),
        cmocka_unit_test(test_arena_append_grows_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
