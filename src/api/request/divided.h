/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that take several commands, since one command takes one step at most. Each command does the first ones of
 * the targets or items that are left and says how many; all commands of a request share the time to wait for locks.
 */
#ifndef TL_API_DIVIDED_H
#define TL_API_DIVIDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lock_target;

/*
 * Returns: how many of `left` the next command names: twice as many as the one before has done, and at least one. The
 *          first command names all, so that a wrong name has no effect. So the log has three times the names of the
 *          request at most, however few of them one command does.
 */
size_t divided_next(size_t done, size_t left);

/*
 * Targets of locks that the commands of a request acquire or release.
 * Invariant: named <= count. The commands refer to the targets, which live until the last command is done.
 */
struct divided_targets {
    struct lock_target *targets; /* that no command has done */
    size_t count;
    size_t named; /* by the command under way, the first ones */
};

/* All targets, which the first command names. */
struct divided_targets divided_targets_of(struct lock_target *targets, size_t count);
/*
 * The command under way has `done` of its targets: the next one names others.
 * Requires: done <= named, and done > 0 if there are targets.
 * Returns: whether any are left.
 */
bool divided_targets_advance(struct divided_targets *targets, size_t done);

/* Returns: until when commands that begin now wait for locks, at most, by clock_boot_us(); 0: they do not wait. */
uint64_t divided_wait_end(uint64_t wait_us);
/*
 * Returns: the time left until then, at least some if there was any: a command that has none is refused as one that
 *          was not to wait, instead of with a timeout.
 */
uint64_t divided_wait_left(uint64_t until_us);

#endif
