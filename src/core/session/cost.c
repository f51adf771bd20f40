/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of one operation; see cost.h. */
#include "core/session/cost.h"

#include "base/check.h"
#include "core/unit/unit.h"

struct cost_counters cost_counters_of(const struct core *core)
{
    REQUIRE(core->open);
    return (struct cost_counters){.source_bytes = core->source_bytes,
                                  .script_steps = core->script_steps,
                                  .mapping_work = core->mapping_work,
                                  .writes = store_batch_count(core->batch)};
}

uint64_t cost_of_changes(const struct core *core, const struct cost_counters *before)
{
    struct cost_counters now = cost_counters_of(core);
    uint64_t mapping = now.mapping_work - before->mapping_work;
    size_t writes = now.writes > before->writes ? now.writes - before->writes : 0; /* fewer: rolled back */

    mapping = mapping > MAPPING_WORK_FREE ? mapping - MAPPING_WORK_FREE : 0;
    return (now.source_bytes - before->source_bytes) / SOURCE_BYTES_PER_COST +
           (now.script_steps - before->script_steps) / SCRIPT_STEPS_PER_COST + writes / WRITES_PER_COST +
           mapping / MAPPING_WORK_PER_COST;
}
