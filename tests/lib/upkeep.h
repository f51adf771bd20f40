/* SPDX-License-Identifier: Apache-2.0 */
/* Upkeep for tests that have a core and no journal: proposed and applied at once. */
#ifndef TL_TESTS_LIB_UPKEEP_H
#define TL_TESTS_LIB_UPKEEP_H

#include "base/check.h"
#include "core/step/core.h"

/* Applies a command that core_propose_upkeep() has made, and frees it. Returns: as core_step(), and how much it did. */
static inline int apply_upkeep(struct core *core, struct command *command, tl_ts ts, size_t *ret_done)
{
    struct effects effects;

    effects_init(&effects);
    command->ts = ts;
    int r = core_step(core, command, &effects);
    INSIST(r != 0 || (effects.completed.next == &command->link && effects.completed.prev == &command->link));
    *ret_done = command->maintain.removed;
    command_free(command);
    return r;
}

/* Proposes what is to be done in a store and does it. Returns: as core_step(); how much it did, looking included. */
static inline int keep_up(struct core *core, struct store *store, tl_ts ts, size_t keys_max, size_t *ret_done)
{
    struct command *command;
    int r = core_propose_upkeep(core, store_history_low(store), keys_max, &command);

    if (r != 0)
        return r;
    size_t looked = command->maintain.looked;
    r = apply_upkeep(core, command, ts, ret_done);
    *ret_done = looked > *ret_done ? looked : *ret_done;
    return r;
}

#endif
