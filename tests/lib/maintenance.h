/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance for tests of a core without a journal: proposed and applied at once. */
#ifndef TL_TESTS_LIB_MAINTENANCE_H
#define TL_TESTS_LIB_MAINTENANCE_H

#include "base/check.h"
#include "bounded.h"
#include "core/step/core.h"

/*
 * Applies and frees a command of core_propose_maintenance(). Returns: as core_step(), and the
 * number of keys removed.
 */
static inline int apply_maintenance(struct core *core, struct command *command, tl_ts ts, size_t *ret_done)
{
    struct effects effects;

    effects_init(&effects);
    command->ts = ts;
    int r = core_step(core, command, &effects);
    INSIST(r != 0 || (effects.completed.next == &command->link && effects.completed.prev == &command->link));
    if (r == 0)
        bounded_check(core);
    *ret_done = command->maintain.removed;
    if (list_linked(&command->link))
        list_remove(&command->link);
    command_free(command);
    return r;
}

/* Returns: the horizons, if timestamps advance with time. */
static inline struct core_horizons horizons_of(struct store *store, tl_ts ts)
{
    return (struct core_horizons){.history_low = store_history_low(store),
                                  .tombstones = ts > CORE_TOMBSTONE_US ? ts - CORE_TOMBSTONE_US : 0,
                                  .outcomes = ts > CORE_OUTCOME_US ? ts - CORE_OUTCOME_US : 0};
}

/*
 * Proposes and applies maintenance. Returns: as core_step(), and the number of keys removed or
 * scanned, whichever is larger.
 */
static inline int run_maintenance(struct core *core, struct store *store, tl_ts ts, size_t keys_max, size_t *ret_done)
{
    struct core_horizons past = horizons_of(store, ts);
    struct command *command;
    int r = core_propose_maintenance(core, &past, keys_max, &command);

    if (r != 0)
        return r;
    size_t scanned = command->maintain.scanned;
    r = apply_maintenance(core, command, ts, ret_done);
    *ret_done = scanned > *ret_done ? scanned : *ret_done;
    return r;
}

#endif
