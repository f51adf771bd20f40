/* SPDX-License-Identifier: Apache-2.0 */
/* Units: opening, committing and reverting them; see unit.h. */
#include "core/unit/unit.h"

#include "base/check.h"
#include "core/command/command.h"
#include "core/unit/handler.h"
#include "core/unit/work.h"
#include "mapping/mapping.h"

/* --- Parts -------------------------------------------------------------------------------------------------------- */

/* Calls a function of all parts that have it, in their order. */
#define CALL_PARTS(core, function, ...)                                              \
    for (const struct unit_part *const *part = (core)->parts; *part != NULL; part++) \
        if ((*part)->function != NULL)                                               \
    (*part)->function(__VA_ARGS__)

void core__index_dropped(struct core *core, uint32_t number)
{
    REQUIRE(core->open && core->catalog_changed);
    CALL_PARTS(core, index_dropped, core, number);
}

/* --- Units -------------------------------------------------------------------------------------------------------- */

size_t core__copied_fields(const struct core *core, const struct mapping *mapping)
{
    REQUIRE(core != NULL && mapping != NULL);
    return core->command_version < COMMAND_SINCE_TEXTS_BOUNDED ? mapping_path_count(mapping)
                                                               : mapping_copied_fields(mapping);
}

void core__work_catalog(struct core *core, uint64_t units)
{
    if (core->command_version >= COMMAND_SINCE_CATALOG_BOUNDS)
        core__work_mapping(core, units);
}

uint64_t core_step_work(const struct core *core)
{
    uint64_t lock_work = core->lock_work(core);
    REQUIRE(lock_work >= core->lock_work_before);
    return core->work + WORK_LOCK * (lock_work - core->lock_work_before);
}

void core__begin(struct core *core, tl_ts at)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && !core->open);
    INSIST(list_empty(&core->free_at_end));
    core->open = true;
    core->ts = at > core->last_ts ? at : core->last_ts + 1;
    INSIST(core->ts < TL_TS_MAX);
    core->async_commit = core->in_txn = false;
    core->provisional_changes = 0;
    core->entry_changes = 0;
    core->state_changed = false;
    core->change_chain = 0;
    core->origins_created = 0;
    core->indivisible = false;
    core__begin_document(core);
    core->unit_work = core_step_work(core);
    core->recorded_ts = TL_TS_NONE;
    core->used_ts = core->ts;
    store_batch_clear(core->batch);
    store_batch_begin(core->batch, core->ts);
    CALL_PARTS(core, begin, core);
}

void core__free_at_end(struct core *core, struct command *command)
{
    REQUIRE(command == NULL || !list_linked(&command->link)); /* else it would be in two lists */
    if (command != NULL)
        list_append(&core->free_at_end, &command->link);
}

static void free_ended_commands(struct core *core)
{
    while (!list_empty(&core->free_at_end)) {
        struct command *command = list_entry(core->free_at_end.next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
}

static void end_unit(struct core *core)
{
    CALL_PARTS(core, end, core);
    free_ended_commands(core);
    arena_reset(&core->arena);
    arena_reset(&core->scratch);
    INSIST(core->used_ts >= core->ts && core->used_ts > core->last_ts); /* invariant 1 */
    core->open = false;
    core->last_ts = core->used_ts;
    if (core->effects != NULL) {
        core->effects->last_ts = core->used_ts;
        core->effects->catalog_changed |= core->catalog_changed;
    }
}

void core__put_ts(struct core *core, const char *key, tl_ts ts, struct slice rest)
{
    REQUIRE(core->open && ts < TL_TS_MAX);
    struct buf value = BUF_INIT(BUF_UNLIMITED);

    buf_u64be(&value, ts);
    buf_slice(&value, rest);
    store_batch_put(core->batch, SPACE_SYSTEM, slice_from(key), buf_as_slice(&value));
    buf_deinit(&value);
}

static void chain_digest(struct core *core, uint64_t digest)
{
    REQUIRE(core->chained);
    uint64_t links[] = {core->chain, digest};
    core->chain = slice_hash(slice_make(links, sizeof links));
}

/* Writes the batch. */
static int write_batch(struct core *core)
{
    REQUIRE(core->open && store_batch_count(core->batch) > 0 && core->recorded_ts <= core->used_ts);
    if (core->recorded_ts < core->used_ts) /* no counter record of the batch has it */
        core__put_ts(core, LAST_TS_KEY, core->used_ts, SLICE_NONE);
    if (core->chained)
        chain_digest(core, store_batch_digest(core->batch));
    return store_write(core->store, core->batch);
}

/* Returns: the work of writing the unit's batch. */
static uint64_t batch_work(const struct core *core)
{
    size_t count = store_batch_count(core->batch);

    INSIST(core->entry_changes <= count);
    return WORK_ENTRY * (uint64_t)core->entry_changes + WORK_WRITE * (uint64_t)(count - core->entry_changes);
}

int core__commit(struct core *core)
{
    int r = 0;

    REQUIRE(core->open);
    CALL_PARTS(core, finish, core);
    core__work(core, WORK_UNIT + batch_work(core));
    if (core->in_txn && store_batch_count(core->batch) == core->provisional_changes && !core->state_changed)
        core->async_commit = true;
    INSIST(core->provisional_changes <= store_batch_count(core->batch));
    CALL_PARTS(core, record, core);
    if (core__changed(core)) {
        core->written_ts = core->used_ts;
        if (!core->async_commit)
            core->must_sync_ts = core->used_ts;
        if (core->chained && core->state_changed)
            chain_digest(core, core->change_chain);
        if (store_batch_count(core->batch) > 0)
            r = write_batch(core);
    }
    if (core->indivisible && core_step_work(core) - core->unit_work > core->indivisible_work)
        core->indivisible_work = core_step_work(core) - core->unit_work;
    end_unit(core);
    return r < 0 ? tl_trace(r) : 0;
}

void core__rollback(struct core *core)
{
    REQUIRE(core->open);
    core__work(core, batch_work(core));
    core->in_txn = false;
    core->provisional_changes = 0;
    core->entry_changes = 0;
    core->recorded_ts = TL_TS_NONE;
    CALL_PARTS(core, rollback, core);
    core->state_changed = false;
    core->change_chain = 0;
    store_batch_clear(core->batch);
    store_batch_begin(core->batch, core->ts);
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

void core__complete(struct core *core, struct command *command)
{
    REQUIRE(core->effects != NULL && !list_linked(&command->link));
    command->ts = core->open ? core->ts : core->last_ts;
    list_append(&core->effects->completed, &command->link);
}

int core__handle(struct core *core, struct command *command)
{
    REQUIRE(command->type < COMMAND_TYPE_COUNT);
    REQUIRE(core->effects != NULL && command->problem.type == PROBLEM_NONE);
    return core->handlers[command->type](core, command);
}
