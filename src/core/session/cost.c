/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of one operation; see cost.h. */
#include "core/session/cost.h"

#include "base/check.h"
#include "core/command/command.h"
#include "core/unit/unit.h"

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
    return cost_since(core, before, 0);
}

uint64_t cost_of_writes_again(const struct core *core, const struct cost_counters *before)
{
    bool again = core->command_version >= COMMAND_SINCE_WORK_BATCHES && core->command_version < COMMAND_SINCE_ONE_COST;

    return again ? cost_of_writes(core, before) : 0;
}
