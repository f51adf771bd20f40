/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: an account ends for each of its reasons, and polls flags and clock as often as it promises.
 * Method: single accounts with a simulated clock.
 */
#include "../../lib/unit.h"

#include "base/account.h"

static uint64_t now_us;

static uint64_t clock_us(void)
{
    return now_us;
}

static void test_account_without_limits_never_ends(void **state)
{
    struct account account = {0};
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_true(account_take(&account, ACCOUNT_POLL_EVERY));
    assert_true(account_take(NULL, UINT64_MAX));
    assert_true(account_poll(&account));
}

static void test_account_polls_flags(void **state)
{
    (void)state;
    for (int flag = 0; flag < ACCOUNT_FLAG_COUNT; flag++) {
        atomic_bool set = false;
        struct account account = {0};
        account.flags[flag] = &set;
        assert_true(account_take(&account, 1));
        set = true;
        uint64_t taken = 0;
        while (account_take(&account, 1000))
            taken += 1000;
        assert_true(taken <= ACCOUNT_POLL_EVERY);
        assert_int_equal(account.end, ACCOUNT_ABANDONED + flag);
        set = false; /* the account stays ended, for its first reason */
        assert_false(account_take(&account, 1));
        assert_false(account_poll(&account));
        assert_int_equal(account.end, ACCOUNT_ABANDONED + flag);
    }
}

static void test_account_ends_beyond_steps_max(void **state)
{
    struct account account = {.steps_max = 10000};
    (void)state;
    assert_true(account_take(&account, 10000));
    assert_false(account_take(&account, 1));
    assert_int_equal(account.end, ACCOUNT_SPENT);
}

static void test_account_ends_after_deadline(void **state)
{
    struct account account = {.clock_us = clock_us, .deadline_us = 500};
    (void)state;
    now_us = 500;
    assert_true(account_poll(&account));
    now_us = 501;
    assert_true(account_take(&account, 1));
    assert_false(account_take(&account, ACCOUNT_POLL_EVERY));
    assert_int_equal(account.end, ACCOUNT_LATE);
}

static void test_account_commit_leaves_only_abandonment(void **state)
{
    atomic_bool left = false, cancelled = true, stopped = true;
    struct account account = {
        .flags = {&left, &cancelled, &stopped}, .clock_us = clock_us, .deadline_us = 1, .steps_max = 1};
    (void)state;
    now_us = 2;
    account_commit(&account);
    assert_true(account_take(&account, 10 * ACCOUNT_POLL_EVERY));
    left = true;
    assert_false(account_take(&account, ACCOUNT_POLL_EVERY));
    account_reset(&account);
    assert_true(account_take(&account, ACCOUNT_POLL_EVERY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_account_without_limits_never_ends),
        cmocka_unit_test(test_account_polls_flags),
        cmocka_unit_test(test_account_ends_beyond_steps_max),
        cmocka_unit_test(test_account_ends_after_deadline),
        cmocka_unit_test(test_account_commit_leaves_only_abandonment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
