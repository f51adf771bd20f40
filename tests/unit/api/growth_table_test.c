/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What commands in flight may add to the catalog.
 *
 * Goal: promises that do not fit together are refused; one alone, and others of the same index, are not.
 * Method: a budget of which a known part is left. Only `promised` counts: the test's own allocations are small.
 */
#include "../../lib/unit.h"

#include "api/request/growth_table.h"

#define MB ((size_t)1 << 20)

static struct budget budget;
static struct growth_table *table;

/* Leaves `bytes` at the level BUDGET_RETAINED, and some KB for allocations meanwhile. */
static void leave(size_t bytes)
{
    budget_init(&budget, 256 * MB);
    budget.promised = budget_share(&budget, BUDGET_RETAINED) - budget_used(&budget) - bytes - MB / 8;
    assert_true(budget_fits(&budget, BUDGET_RETAINED, bytes) && !budget_fits(&budget, BUDGET_RETAINED, bytes + MB / 4));
}

static int setup(void **state)
{
    (void)state;
    table = growth_table_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(growth_table_bytes(table), 0);
    growth_table_free(table);
    return 0;
}

static struct growth_terms terms_of(unsigned room, size_t alone)
{
    return (struct growth_terms){.budget = &budget, .level = BUDGET_RETAINED, .room = room, .alone = alone};
}

static bool ask(const struct growth *growth, struct growth_promise *promise)
{
    struct growth_terms terms = terms_of(1, MB);
    return growth_table_promise(table, &terms, growth, promise);
}

static struct growth of_index(struct growth_share *share, const char *index, size_t bytes, size_t most)
{
    *share = (struct growth_share){.index = slice_from(index), .bytes = bytes, .most = most};
    return (struct growth){.shares = share, .share_count = 1};
}

static void test_promises_fit_together(void **state)
{
    struct growth_promise promises[3] = {0};
    struct growth_share share;
    (void)state;
    leave(10 * MB);
    struct growth a = of_index(&share, "a", 4 * MB, 100 * MB), other = {.other_bytes = 5 * MB};
    assert_true(ask(&a, &promises[0]));
    assert_true(ask(&other, &promises[1]));
    struct growth b = of_index(&share, "b", 4 * MB, 100 * MB);
    assert_false(ask(&b, &promises[2]));
    assert_null(promises[2].table);
    assert_int_equal(growth_table_bytes(table), 9 * MB);
    growth_promise_end(&promises[0]);
    assert_true(ask(&b, &promises[2]));
    for (size_t i = 0; i < 3; i++)
        growth_promise_end(&promises[i]);
    growth_promise_end(&promises[0]); /* already ended: no effect */
}

/* An index gets no more fields than its limit, however many commands add some. */
static void test_commands_of_an_index_count_once(void **state)
{
    struct growth_promise promises[5] = {0};
    struct growth_share share;
    (void)state;
    leave(10 * MB);
    struct growth a = of_index(&share, "a", 4 * MB, 6 * MB);
    for (size_t i = 0; i < 4; i++)
        assert_true(ask(&a, &promises[i]));
    assert_int_equal(growth_table_bytes(table), 6 * MB);
    struct growth b = of_index(&share, "b", 5 * MB, 6 * MB);
    assert_false(ask(&b, &promises[4]));
    for (size_t i = 0; i < 3; i++)
        growth_promise_end(&promises[i]);
    assert_int_equal(growth_table_bytes(table), 4 * MB);
    assert_true(ask(&b, &promises[4]));
    growth_promise_end(&promises[3]);
    growth_promise_end(&promises[4]);
}

/* The measure may be higher than the addition, and the memory that one step adds is bounded. */
static void test_one_alone_may_be_larger(void **state)
{
    struct growth_promise promises[3] = {0};
    struct growth_share share;
    struct growth_terms quick = terms_of(4, SIZE_MAX);
    (void)state;
    leave(10 * MB);
    struct growth a = of_index(&share, "a", 50 * MB, 50 * MB), b = {.other_bytes = 1};
    assert_false(growth_table_promise(table, &quick, &a, &promises[0]));
    assert_true(ask(&a, &promises[0]));
    assert_true(ask(&a, &promises[1])); /* of the same index */
    assert_false(ask(&b, &promises[2]));
    growth_promise_end(&promises[0]);
    growth_promise_end(&promises[1]);
    leave(MB / 2);
    assert_false(ask(&a, &promises[0]));
    assert_true(ask(&b, &promises[0]));
    growth_promise_end(&promises[0]);
}

static void test_room_for_coarse_measures(void **state)
{
    struct growth_promise promises[2] = {0};
    struct growth_share share;
    struct growth_terms quick = terms_of(4, SIZE_MAX);
    (void)state;
    leave(10 * MB);
    struct growth a = of_index(&share, "a", 2 * MB, 2 * MB);
    assert_true(growth_table_promise(table, &quick, &a, &promises[0]));
    struct growth b = of_index(&share, "b", 2 * MB, 2 * MB);
    assert_false(growth_table_promise(table, &quick, &b, &promises[1]));
    assert_true(ask(&b, &promises[1]));
    growth_promise_end(&promises[0]);
    growth_promise_end(&promises[1]);
}

static void test_nothing_is_always_promised(void **state)
{
    struct growth_promise promises[2] = {0};
    struct growth_share share;
    struct growth nothing = of_index(&share, "a", 0, MB);
    (void)state;
    leave(0);
    assert_true(ask(&nothing, &promises[0]));
    struct growth some = of_index(&share, "a", 1, MB);
    assert_false(ask(&some, &promises[1]) && !budget_fits(&budget, BUDGET_RETAINED, 1));
    growth_promise_end(&promises[0]);
    growth_promise_end(&promises[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_promises_fit_together, setup, teardown),
        cmocka_unit_test_setup_teardown(test_commands_of_an_index_count_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_alone_may_be_larger, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_for_coarse_measures, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_is_always_promised, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
