/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that every kind of command log has to pass, in memory, in files and on etcd. */
#ifndef TL_TESTS_LIB_CMDLOG_CONFORMANCE_H
#define TL_TESTS_LIB_CMDLOG_CONFORMANCE_H

#include "unit.h"

#include "cmdlog/cmdlog.h"

static inline void check_checkpoint(struct cmdlog *log, unsigned back, cmdlog_position position, const char *locator)
{
    char buffer[CMDLOG_LOCATOR_MAX];
    struct cmdlog_checkpoint found;
    int r;
    while ((r = cmdlog_get_checkpoint(log, back, buffer, &found)) == CMDLOG_UNREACHABLE)
        continue; /* it has a time limit of its own, which the test must outlast */
    assert_int_equal(r, 0);
    assert_int_equal(found.position, position);
    assert_slice_equal(found.locator, locator);
}

/*
 * cmdlog_put_checkpoint(): the newest two are retained, one at the newest's position replaces only that, and one below
 * it is ignored. Requires: `positions` rise and are of durable entries; the log has no checkpoint.
 */
static inline void check_checkpoints(struct cmdlog *log, const cmdlog_position positions[3])
{
    char buffer[CMDLOG_LOCATOR_MAX];
    struct cmdlog_checkpoint found;
    const struct cmdlog_checkpoint first = {positions[0], SLICE_LIT("first"), 1},
                                   second = {positions[1], SLICE_LIT("second"), 2},
                                   again = {positions[1], SLICE_LIT("again"), 2},
                                   third = {positions[2], SLICE_LIT("third"), 3};
    assert_int_equal(cmdlog_get_checkpoint(log, 0, buffer, &found), CMDLOG_NOT_FOUND);
    assert_int_equal(cmdlog_put_checkpoint(log, &first), 0);
    check_checkpoint(log, 0, positions[0], "first");
    assert_int_equal(cmdlog_get_checkpoint(log, 1, buffer, &found), CMDLOG_NOT_FOUND);
    assert_int_equal(cmdlog_put_checkpoint(log, &second), 0);
    check_checkpoint(log, 0, positions[1], "second");
    check_checkpoint(log, 1, positions[0], "first");
    assert_int_equal(cmdlog_put_checkpoint(log, &again), 0);
    check_checkpoint(log, 0, positions[1], "again");
    check_checkpoint(log, 1, positions[0], "first");
    assert_int_equal(cmdlog_put_checkpoint(log, &first), 0);
    check_checkpoint(log, 0, positions[1], "again");
    check_checkpoint(log, 1, positions[0], "first");
    assert_int_equal(cmdlog_put_checkpoint(log, &third), 0);
    check_checkpoint(log, 0, positions[2], "third");
    check_checkpoint(log, 1, positions[1], "again");
}

#endif
