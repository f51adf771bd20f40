/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking for locks: every command that needs some does it, at first and when it is resumed.
 *
 *     resolve names ─▶ ask ─┬─ granted ─▶ run
 *                           ├─ parked ──▶ grants.h resumes it: resolve names again, ask again
 *                           ├─ blocked, or full ─▶ refused
 *                           └─ victim ──▶ refused, and its transaction is rolled back
 *
 * README-locks.md, "Waiting". The locks that a command asks for were resolved in the same unit, so no
 * name can change its meaning in between.
 */
#ifndef TL_CORE_ASK_H
#define TL_CORE_ASK_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct core;
struct lock_spec;
struct wait;

enum ask_outcome {
    ASK_GRANTED, /* the request has all its locks */
    ASK_PARKED,  /* the command waits until its deadline; the handler returns CORE_WAITS */
    ASK_BLOCKED, /* other owners block it, and its time is over */
    ASK_FULL,    /* other owners block it, and limits.waiters_max requests wait */
    ASK_VICTIM   /* to wait would be a deadlock; the wait's cause describes it */
};

/*
 * Asks for locks in place of the wait's previous request; may wait until `until`, by the clock.
 * Requires: the wait has a command, has not ended and is not ready.
 */
enum ask_outcome ask__locks(struct core *core, struct wait *wait, const struct lock_spec *specs, size_t count,
                            uint64_t until) TL_MUST_USE;
/*
 * Sets the problem of a command that was not granted its locks. With ASK_BLOCKED it has `type` and
 * names the holders.
 * Requires: `outcome` is ASK_BLOCKED or ASK_FULL.
 */
void ask__explain(struct core *core, struct wait *wait, enum ask_outcome outcome, enum problem_type type);
/*
 * Fails the command of a victim of a deadlock, frees its wait and rolls its transaction back; the
 * caller completes the command.
 * Requires: `wait->cause` says why.
 */
void ask__fail_victim(struct core *core, struct wait *wait);

#endif
