/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of one operation; see cost.h. */
#include "core/session/cost.h"

#include "base/check.h"
#include "core/command/command.h"
#include "core/locks/lock.h"
#include "core/session/owners.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"

#define TURN_US (100 * TL_MS)

/* --- The account of work ------------------------------------------------------------------------------------------ */

static bool has_account(const struct core *core)
{
    return core->command_version >= COMMAND_SINCE_WORK_ACCOUNT;
}

void cost_begin_step(struct core *core)
{
    struct owners *owners = core->owners;
    uint64_t grants = core->step_account < GRANTS_WORK_MAX ? core->step_account : GRANTS_WORK_MAX;
    owners->work_left = has_account(core) ? core->step_account : UINT64_MAX;
    owners->work_granted = owners->locks.granted_work;
    owners->cost_as_work = 0;
    owners->ready_before = owners->last_ready;
    lock_table_limit_grants(&owners->locks, has_account(core) ? grants : UINT64_MAX);
}

void cost_charge_work(struct core *core, uint64_t work)
{
    struct owners *owners = core->owners;
    if (!has_account(core))
        return;
    work += owners->locks.granted_work - owners->work_granted;
    owners->work_granted = owners->locks.granted_work;
    owners->work_left = work < owners->work_left ? owners->work_left - work : 0;
    lock_table_limit_grants(&owners->locks, owners->work_left);
}

void cost_charge_spent(struct core *core)
{
    struct owners *owners = core->owners;
    size_t all = core->limits.ephemeral_batch, left = owners->cost_left + owners->cost_kept;
    size_t spent = left < all ? all - left : 0;
    if (spent <= owners->cost_as_work)
        return;
    cost_charge_work(core, (uint64_t)WRITE_WORK_PER_COST * (spent - owners->cost_as_work));
    owners->cost_as_work = spent;
}

void cost_leave_least(struct core *core)
{
    uint64_t least = core->step_account / COST_LEAST_PART + 1;
    if (has_account(core) && core->owners->work_left < least)
        core->owners->work_left = least;
}

uint64_t cost_charged_work(const struct core *core)
{
    return has_account(core) ? core->step_account - core->owners->work_left : 0;
}

bool cost_fits(const struct core *core, uint64_t spent, uint64_t cost)
{
    uint64_t work = cost_charged_work(core) + WRITE_WORK_PER_COST * spent, all = core->step_account;
    REQUIRE(spent <= UINT64_MAX / WRITE_WORK_PER_COST / 2);
    if (core->command_version < COMMAND_SINCE_ENDS_FIT || work <= all / STEP_ACCOUNT_FREE_PART)
        return true;
    return work <= all && cost <= (all - work) / WRITE_WORK_PER_COST;
}

bool cost_is_large(const struct core *core, uint64_t cost)
{
    return core->command_version >= COMMAND_SINCE_ENDS_FIT &&
           cost > core->step_account / STEP_ACCOUNT_FREE_PART / WRITE_WORK_PER_COST;
}

uint64_t cost_turn(const struct core *core)
{
    return core->clock / TURN_US;
}

uint64_t cost_work_since(const struct core *core, const struct cost_counters *before)
{
    REQUIRE(before->write_work <= core->write_work && before->mapping_work <= core->mapping_work);
    return core->write_work - before->write_work + core->mapping_work - before->mapping_work;
}

/* --- Points ------------------------------------------------------------------------------------------------------- */

struct cost_counters cost_counters_of(const struct core *core)
{
    REQUIRE(core->open);
    return (struct cost_counters){.source_bytes = core->source_bytes,
                                  .script_steps = core->script_steps,
                                  .mapping_work = core->mapping_work,
                                  .write_work = core->write_work,
                                  .writes = store_batch_count(core->batch)};
}

/* Returns: the cost of sources, scripts and mappings. */
static uint64_t cost_of_inputs(const struct core *core, const struct cost_counters *before)
{
    REQUIRE(before->source_bytes <= core->source_bytes && before->script_steps <= core->script_steps &&
            before->mapping_work <= core->mapping_work);
    uint64_t mapping =
        core->command_version < COMMAND_SINCE_MAPPING_LIMIT ? 0 : core->mapping_work - before->mapping_work;

    mapping = mapping > MAPPING_WORK_FREE ? mapping - MAPPING_WORK_FREE : 0;
    return (core->source_bytes - before->source_bytes) / SOURCE_BYTES_PER_COST +
           (core->script_steps - before->script_steps) / SCRIPT_STEPS_PER_COST + mapping / MAPPING_WORK_PER_COST;
}

uint64_t cost_since(const struct core *core, const struct cost_counters *before, uint64_t own)
{
    REQUIRE(before->write_work <= core->write_work);
    uint64_t cost = own + cost_of_inputs(core, before);
    uint64_t write = core->command_version < COMMAND_SINCE_WORK_LIMIT
                         ? 0
                         : (core->write_work - before->write_work) / WRITE_WORK_PER_COST;

    return cost > write ? cost : write;
}

static uint64_t cost_of_writes(const struct core *core, const struct cost_counters *before)
{
    size_t writes = store_batch_count(core->batch);

    return writes > before->writes ? (writes - before->writes) / WRITES_PER_COST : 0; /* fewer: rolled back */
}

uint64_t cost_of_action(const struct core *core, const struct cost_counters *before)
{
    REQUIRE(before->script_steps <= core->script_steps);
    if (core->command_version < COMMAND_SINCE_WORK_BATCHES)
        return (core->script_steps - before->script_steps) / SCRIPT_STEPS_PER_COST;
    if (core->command_version < COMMAND_SINCE_ONE_COST)
        return cost_of_inputs(core, before) + cost_of_writes(core, before);
    uint64_t cost = cost_since(core, before, 0), work = cost_work_since(core, before) / core->action_work;
    return core->command_version < COMMAND_SINCE_ACTIONS_WEIGHED || cost > work ? cost : work;
}

uint64_t cost_of_writes_again(const struct core *core, const struct cost_counters *before)
{
    bool again = core->command_version >= COMMAND_SINCE_WORK_BATCHES && core->command_version < COMMAND_SINCE_ONE_COST;

    return again ? cost_of_writes(core, before) : 0;
}
