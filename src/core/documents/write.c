/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run of a write: its items in order, their entries together at the end.
 *
 * Later items see earlier ones through core->pending, or through the overlay. Entries are collected over the whole run,
 * so that a bulk load writes few large ones; a run that takes apart more than WRITE_FLUSH_BYTES writes them out in
 * between, each time under a number of its own.
 */
#include "core/documents/write.h"

#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/counter.h"
#include "core/catalog/purge.h"
#include "core/documents/doc.h"
#include "core/documents/doc_multiget.h"
#include "core/documents/ephemeral.h"
#include "core/documents/prefetch.h"
#include "core/documents/update.h"
#include "core/documents/write_internal.h"
#include "core/feed/feed.h"
#include "core/step/unit.h"
#include "core/step/work.h"
#include "mapping/shard.h"

/* --- Recording ---------------------------------------------------------------------------------------------------- */

/* In a transaction a count's change is kept in its overlay, and folded in when it commits. Puts what has been counted. */
static int put_counted(struct write_executor *work)
{
    struct overlay *overlay = work->sink.overlay;
    struct buf value = BUF_INIT(16);
    char bytes[COUNTER_KEY_BYTES];
    struct slice key = counter_key(bytes, work->counted.index, work->counted.type), before;
    uint64_t delta = 0;

    if (work->counted.change == 0)
        return 0;
    if (overlay_get(overlay, SPACE_SYSTEM, key, &before) == 0 && before.data != NULL &&
        !slice_take_u64be(&before, &delta))
        return tl_trace(TL_ERR_CORRUPT);
    buf_u64be(&value, delta + (uint64_t)work->counted.change);
    overlay_put(overlay, SPACE_SYSTEM, key, buf_as_slice(&value));
    buf_deinit(&value);
    work->counted.change = 0;
    return 0;
}

static int count_in_overlay(struct write_executor *work, uint32_t index, uint16_t type, int64_t change)
{
    int r = 0;

    if (work->counted.index != index || work->counted.type != type)
        r = put_counted(work);
    work->counted.index = index;
    work->counted.type = type;
    work->counted.change += change;
    return r;
}

static int count(struct write_executor *work, const struct write_item_state *at, const struct doc *doc)
{
    int64_t change = (doc->deleted ? 0 : 1) - (at->state.live ? 1 : 0);

    if (work->sink.overlay == NULL)
        counter__record(counters__of(&work->core->counters, at->index->number), doc->deleted);
    if (change == 0 || work->run->purge)
        return 0;
    if (work->sink.overlay != NULL)
        return count_in_overlay(work, at->index->number, at->type->number, change);
    counter__add(&work->core->counters, counters__of(&work->core->counters, at->index->number), at->type->number,
                 change);
    return 0;
}

static void mark_lease(struct write_executor *work, const struct write_item_state *at, const struct doc *doc)
{
    struct slice before = at->state.live ? at->old.lease : SLICE_NONE;
    struct slice after = doc->deleted ? SLICE_NONE : doc->lease;

    bool same = before.data != NULL && slice_equal(before, after);

    if (same && work->sink.overlay == NULL)
        return; /* it is marked */
    if (before.data != NULL && !same)
        ephemeral__remove(work->core, &work->sink, before, at->key);
    if (after.data != NULL)
        ephemeral__add(work->core, &work->sink, after, at->key);
}

/* Lets later items of the unit see the document. */
static void remember(struct write_executor *work, const struct write_item_state *at, const struct doc *doc)
{
    struct core *core = work->core;

    if (work->sink.overlay != NULL || (work->run->last && work->run->count == 1))
        return;
    struct doc *copy = arena_alloc(&core->arena, sizeof(*copy));
    *copy = *doc;
    copy->value = (struct store_value){0};
    map_put(&core->pending, at->key, copy);
}

/* Upkeep finds the tombstone by its mark. */
static void mark(struct write_executor *work, const struct doc *tombstone, struct slice key)
{
    tl_cleanup(buf_deinit) struct buf buf = BUF_INIT(BUF_UNLIMITED);

    sink_put(&work->sink, SPACE_SYSTEM, purge_key(&buf, PURGE_TOMBSTONE, tombstone->ts, key), SLICE_LIT(""));
}

int write_executor__record(struct write_executor *work, struct write_item_state *at, const struct doc *doc)
{
    buf_clear(&work->record);
    doc_encode(&work->record, doc);
    mark_lease(work, at, doc); /* first: in an overlay the old record goes with the new one */
    sink_put(&work->sink, SPACE_DOCUMENTS, at->key, buf_as_slice(&work->record));
    work->bytes += at->key.len + work->record.len;
    if (work->sink.overlay == NULL)
        recent_writes_record(&work->core->recent_writes, at->key, work->core->ts);
    if (work->sink.overlay == NULL && !work->run->purge) /* those have gone before, and the feed has it */
        feed__record_document(work->core, doc->deleted, at->key, map_get(&work->core->pending, at->key) != NULL);
    if (doc->deleted)
        mark(work, doc, at->key);
    remember(work, at, doc);
    return count(work, at, doc);
}

/* --- Results ------------------------------------------------------------------------------------------------------ */

void write_executor__set_names(struct write_executor *work, struct write_item_state *at)
{
    struct arena *arena = work->run->arena;
    int type = at->type == NULL ? -1 : at->type->number;

    if (work->named_index != at->index->number) {
        work->index_name = arena_copy(arena, at->index->name);
        work->index_uuid = arena_copy(arena, at->index->uuid);
        work->named_type = -1;
        work->named_index = at->index->number;
    }
    if (type >= 0 && work->named_type != type) {
        work->type_name = arena_copy(arena, at->type->name);
        work->named_type = type;
    }
    at->result->index = work->index_name;
    at->result->index_uuid = work->index_uuid;
    at->result->shard_count = at->index->shard_count;
    at->result->type = type < 0 ? write_executor__type_text(at) : work->type_name;
}

void write_executor__shard_details(struct write_executor *work, struct write_item_state *at)
{
    struct slice routing = at->routing.data != NULL ? at->routing : at->item->id;
    uint32_t shard = shard_of(routing, at->index->shard_count == 0 ? 1 : at->index->shard_count);
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);

    buf_json_string(&quoted, at->index->name);
    problem_details(&at->result->problem, work->run->arena, "\"index_uuid\":\"%.*s\",\"shard\":\"%u\",\"index\":%.*s",
                    SLICE_ARG(at->index->uuid), shard, SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
}

/* --- The run ------------------------------------------------------------------------------------------------------ */

bool write_executor__ids_are_sorted(const struct write_run *run)
{
    if (run->count < WRITE_POSTING_LIST_ITEMS_MIN)
        return false;
    for (size_t i = 1; i < run->count; i++)
        if (slice_compare(run->items[i - 1].id, run->items[i].id) > 0)
            return false;
    return true;
}

/* Whether an atomic write has become larger than a transaction may be, which the caller sees to where there is one. */
static bool too_large(const struct write_executor *work)
{
    const struct core_limits *limits = &work->core->limits;
    return work->run->atomic && work->sink.overlay == NULL &&
           (work->bytes > limits->transaction_bytes_max ||
            store_batch_bytes(work->sink.batch) > limits->transaction_held_max);
}

/* Counts what an item says, also where that comes to nothing. */
static void count_item(struct write_executor *work, const struct write_item *item)
{
    write_executor__count_source(work, item->source, 0);
    if (item->update == NULL)
        return;
    write_executor__count_source(work, item->update->doc, 0);
    write_executor__count_source(work, item->update->upsert, 0);
    write_executor__count_source(work, item->update->script_params, 0);
}

void write_executor__postpone(const struct core *core, struct arena *arena, struct write_result *result)
{
    result->outcome = WRITE_FAILED;
    result->postponed = true;
    problem_set(
        &result->problem, arena, PROBLEM_LIMIT_EXCEEDED,
        "the scripts before it took the [%llu] steps after which a request begins nothing more; it was not begun",
        (unsigned long long)update_command_steps_max(&core->limits.script, false));
}

/* Whether an item is to be postponed: it was before, or the scripts before it have taken what they may. An atomic write ends there. */
static bool postpone(struct write_executor *work, struct write_result *result, bool *failed)
{
    struct write_run *run = work->run;

    if (!result->postponed && work->steps_taken <= update_command_steps_max(&work->core->limits.script, run->atomic))
        return false;
    run->too_long = run->atomic;
    *failed |= run->atomic;
    if (!result->postponed)
        write_executor__postpone(work->core, run->arena, result);
    return true;
}

static int run_items(struct write_executor *work, bool *failed)
{
    struct write_run *run = work->run;

    for (size_t i = 0; i < run->count && !run->too_large && !run->too_long; i++) {
        struct write_result *result = &run->results[i];
        int r = WRITE_ITEM_FAILED;
        if (postpone(work, result, failed))
            continue;
        count_item(work, &run->items[i]);
        if (result->problem.type == PROBLEM_NONE)
            r = write_executor__item(work, &run->items[i], result);
        else
            result->index = run->items[i].index;
        if (r < 0)
            return tl_trace(r);
        if (r == WRITE_ITEM_FAILED) {
            result->outcome = WRITE_FAILED;
            *failed = true;
        }
        if (work->taken_apart > WRITE_FLUSH_BYTES)
            write_executor__flush_entries(work);
        run->too_large = too_large(work);
    }
    return 0;
}

struct update write_executor__update(struct write_executor *work, const struct write_item_state *at, struct arena *arena)
{
    struct core *core = work->core;

    return (struct update){
        .dialect = at->item->dialect,
        .item = at->item,
        .index = at->index->name,
        .type = write_executor__type_text(at),
        .mapped = mapping_type(at->index->mapping, write_executor__type_text(at)),
        .catalog = core->catalog,
        .scripts = core->scripts,
        .limits = core->limits.script,
        .zones = catalog_zones(core->catalog),
        .steps = &work->script_steps,
        .ts = core->ts,
        .arena = arena,
        .scratch = &core->scratch,
    };
}

uint64_t write_executor__shared_steps(const struct core *core)
{
    return core->shared_steps != NULL ? *core->shared_steps : update_steps_shared(&core->limits.script);
}

void write_executor__return_steps(const struct write_executor *work)
{
    if (work->core->shared_steps != NULL)
        *work->core->shared_steps = work->script_steps;
}

void write_executor__count_script(struct write_executor *work, const struct update *update)
{
    core__work_indivisible(work->core, update->steps_taken / WORK_SCRIPT_STEPS);
    work->core->script_steps += update->steps_taken;
    work->steps_taken += update->steps_taken;
}

int write__run(struct core *core, struct write_run *run, bool *ret_failed)
{
    struct write_executor work = {
        .core = core,
        .run = run,
        .sink = {core->batch, run->overlay},
        .view = core__view(core, run->overlay),
        .committed = core__view(core, NULL),
        .batch = run->count >= WRITE_POSTING_LIST_ITEMS_MIN ? core->ts : 0,
        .record = BUF_INIT(BUF_UNLIMITED),
        .script_steps = write_executor__shared_steps(core),
        .walks = write_executor__ids_are_sorted(run),
        .named_type = -1,
    };
    bool failed = false;
    int r;

    REQUIRE(core->open);
    core->indivisible |= run->atomic && run->overlay == NULL;
    r = run_items(&work, &failed);
    if (r == 0)
        write_executor__flush_entries(&work);
    if (r == 0)
        r = put_counted(&work);
    buf_deinit(&work.record);
    doc_multiget_free(work.walk);
    write_executor__return_steps(&work);
    run->script_steps = work.steps_taken;
    if (r == 0 && ((failed && run->atomic && run->overlay == NULL) || run->too_large))
        core__rollback(core);
    *ret_failed = failed;
    return r;
}
