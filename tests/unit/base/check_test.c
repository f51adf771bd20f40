/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: checks end the process in the call that violates them, and print the condition. Method:
 * each violation runs in a child process, whose signal and standard error are examined.
 */
#include "../../lib/dies.h"

#include "base/check.h"
#include "base/magic.h"
#include "base/sm.h"

/* --- State machines --------------------------------------------------------------------------- */

enum door { DOOR_OPEN, DOOR_CLOSED, DOOR_LOCKED, DOOR_COUNT };

static const struct sm_state doors[DOOR_COUNT] = {
    [DOOR_OPEN] = {"open", SM_TO(DOOR_CLOSED)},
    [DOOR_CLOSED] = {"closed", SM_TO(DOOR_OPEN) | SM_TO(DOOR_LOCKED)},
    [DOOR_LOCKED] = {"locked", 0},
};
static const struct sm machine = {"door", doors, DOOR_COUNT};

static void test_sm_allows_transitions_of_the_table_only(void **state)
{
    (void)state;
    for (unsigned from = 0; from <= DOOR_COUNT; from++)
        for (unsigned to = 0; to <= DOOR_COUNT; to++) {
            bool expected = (from == DOOR_OPEN && to == DOOR_CLOSED) ||
                            (from == DOOR_CLOSED && (to == DOOR_OPEN || to == DOOR_LOCKED));
            assert_int_equal(sm_allows(&machine, from, to), expected);
        }
    SM_CHECK(&machine, DOOR_CLOSED, DOOR_LOCKED);
}

static void lock_open_door(void *context)
{
    (void)context;
    SM_CHECK(&machine, DOOR_OPEN, DOOR_LOCKED);
}

static void leave_unknown_state(void *context)
{
    (void)context;
    SM_CHECK(&machine, DOOR_COUNT, DOOR_OPEN);
}

static void test_sm_check_reports_machine_and_states(void **state)
{
    (void)state;
    assert_dies(lock_open_door, NULL, "TRANSITION(door: open -> locked) failed at ");
    assert_dies(leave_unknown_state, NULL, "TRANSITION(door: no state -> open) failed at ");
}

/* --- Magic numbers ---------------------------------------------------------------------------- */

#define THING_MAGIC MAGIC('T', 'h', 'n', 'g')

struct thing {
    uint32_t magic;
};

static void use(void *context)
{
    struct thing *thing = context;
    REQUIRE(MAGIC_VALID(thing, THING_MAGIC));
}

static void test_magic_is_checked(void **state)
{
    (void)state;
    struct thing thing = {THING_MAGIC}, other = {MAGIC('T', 'h', 'n', 'k')};
    assert_memory_equal(&thing.magic, "Thng", 4);
    use(&thing);
    assert_dies(use, &other, "REQUIRE(MAGIC_VALID(thing, THING_MAGIC)) failed at ");
    assert_dies(use, NULL, "REQUIRE(MAGIC_VALID(thing, THING_MAGIC)) failed at ");
    magic_clear(&thing.magic);
    assert_dies(use, &thing, "REQUIRE(MAGIC_VALID(thing, THING_MAGIC)) failed at ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sm_allows_transitions_of_the_table_only),
        cmocka_unit_test(test_sm_check_reports_machine_and_states),
        cmocka_unit_test(test_magic_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
