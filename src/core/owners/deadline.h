/* SPDX-License-Identifier: Apache-2.0 */
/* When something of the owners runs out, by the clock of commands. */
#ifndef TL_CORE_DEADLINE_H
#define TL_CORE_DEADLINE_H

#include "base/heap.h"
#include "core/step/unit.h"

struct deadline {
    struct heap_node node;
    uint64_t at;     /* by the clock of commands; TL_TS_MAX: never */
    uint64_t number; /* of its setting: the earlier goes first at the same time */
};

struct deadlines {
    struct heap heap;
    uint64_t last_number;
};

void deadlines_init(struct deadlines *deadlines);
void deadlines_deinit(struct deadlines *deadlines);
/* Sets or moves a deadline; TL_TS_MAX: none. */
void deadline_set(struct deadlines *deadlines, struct deadline *deadline, uint64_t at);
/* Sets one as it was. Requires: it is not set; `number` is not above deadlines->last_number. */
void deadline_restore(struct deadlines *deadlines, struct deadline *deadline, uint64_t at, uint64_t number);
/* Returns: when `us` from now will be; TL_TS_MAX when that is beyond all time. */
static inline uint64_t deadline_after(const struct core *core, uint64_t us)
{
    return core->clock >= TL_TS_MAX || us >= TL_TS_MAX - core->clock ? TL_TS_MAX : core->clock + us;
}
/* Returns: the timestamp of a deadline, for people: if the clock that timestamps are made by runs as it should. */
static inline tl_ts deadline_ts(const struct core *core, uint64_t at)
{
    uint64_t left = at > core->clock ? at - core->clock : 0;
    return at >= TL_TS_MAX || left >= TL_TS_MAX - core->ts ? TL_TS_MAX : core->ts + left;
}
/* Returns: the first that is due, or NULL. */
struct deadline *deadlines_due(const struct deadlines *deadlines, uint64_t now);
uint64_t deadlines_first(const struct deadlines *deadlines);

#endif
