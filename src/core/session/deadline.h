/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines of leases, waits and idle transactions, by the clock of commands. */
#ifndef TL_CORE_DEADLINE_H
#define TL_CORE_DEADLINE_H

#include "base/heap.h"
#include "core/unit/unit.h"

struct codec;

struct deadline {
    struct heap_node node;
    uint64_t at;     /* us, by the clock of commands; TL_TS_MAX: not set */
    uint64_t number; /* order of setting; of two deadlines at one time the lower number is first */
};

struct deadlines {
    struct heap heap; /* of deadlines that are set, earliest first */
    uint64_t last_number;
};

void deadlines_init(struct deadlines *deadlines);
/* Requires: no deadline is set. */
void deadlines_deinit(struct deadlines *deadlines);
/* Sets or moves a deadline to `at`; TL_TS_MAX removes it. */
void deadline_set(struct deadlines *deadlines, struct deadline *deadline, uint64_t at);
/*
 * Sets a deadline as a checkpoint has it.
 * Requires: it is not set; number <= deadlines->last_number.
 */
void deadline_restore(struct deadlines *deadlines, struct deadline *deadline, uint64_t at, uint64_t number);
/* Returns: core->clock + us; TL_TS_MAX if the sum reaches it. */
static inline uint64_t deadline_after(const struct core *core, uint64_t us)
{
    return core->clock >= TL_TS_MAX || us >= TL_TS_MAX - core->clock ? TL_TS_MAX : core->clock + us;
}
/*
 * Returns: the expected timestamp of a deadline, for display only: the two clocks may drift apart.
 */
static inline tl_ts deadline_ts(const struct core *core, uint64_t at)
{
    uint64_t left = at > core->clock ? at - core->clock : 0;
    return at >= TL_TS_MAX || left >= TL_TS_MAX - core->ts ? TL_TS_MAX : core->ts + left;
}
/* Returns: the earliest deadline at or before `now`, or NULL. */
struct deadline *deadlines_due(const struct deadlines *deadlines, uint64_t now);
/* Returns: the time of the earliest deadline; TL_TS_MAX: none is set. */
uint64_t deadlines_first(const struct deadlines *deadlines);

/*
 * Codes whether a deadline is set, and then its time and number. When decoding, sets it in `all`.
 * Requires: all->last_number was decoded before.
 */
void codec_deadline(struct codec *codec, struct deadlines *all, struct deadline *deadline);

#endif
