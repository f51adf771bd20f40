/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a write: its items in order, then their collected entries.
 *
 * Later items see earlier ones through core->pending or the overlay. Entries are collected over the
 * whole run, so that a bulk load writes few long posting lists. A run that parses more than
 * WRITE_FLUSH_BYTES writes them out in between, each time under another batch number.
 */
#include "core/documents/write.h"

#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_change.h"
#include "core/catalog/counter.h"
#include "core/catalog/purge.h"
#include "core/documents/doc.h"
#include "core/documents/doc_multiget.h"
#include "core/documents/ephemeral.h"
#include "core/documents/prefetch.h"
#include "core/documents/update.h"
#include "core/documents/write_internal.h"
#include "core/feed/feed.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/tree/empty_paths.h"
#include "mapping/shard.h"

/* --- Recording ---------------------------------------------------------------------------------------------------- */

/*
 * Adds the counted change to the counter in the overlay, which is added to the committed counter at
 * commit.
 */
static int flush_counted(struct write_executor *exec)
{
    struct overlay *overlay = exec->sink.overlay;
    struct buf value = BUF_INIT(16);
    char bytes[COUNTER_KEY_BYTES];
    struct slice key = counter_key(bytes, exec->counted.index, exec->counted.type), before;
    uint64_t delta = 0;

    if (exec->counted.change == 0)
        return 0;
    if (overlay_get(overlay, SPACE_SYSTEM, key, &before) == 0 && before.data != NULL &&
        !slice_take_u64be(&before, &delta))
        return tl_trace(TL_ERR_CORRUPT);
    buf_u64be(&value, delta + (uint64_t)exec->counted.change);
    overlay_put(overlay, SPACE_SYSTEM, key, buf_as_slice(&value));
    buf_deinit(&value);
    exec->counted.change = 0;
    return 0;
}

static int count_in_overlay(struct write_executor *exec, uint32_t index, uint16_t type, int64_t change)
{
    int r = 0;

    if (exec->counted.index != index || exec->counted.type != type)
        r = flush_counted(exec);
    exec->counted.index = index;
    exec->counted.type = type;
    exec->counted.change += change;
    return r;
}

static int count_document(struct write_executor *exec, const struct write_item_state *at, const struct doc *doc)
{
    int64_t change = (doc->deleted ? 0 : 1) - (at->state.live ? 1 : 0);

    if (exec->sink.overlay == NULL)
        counter__record(counters__of(&exec->core->counters, at->index->number), doc->deleted);
    if (change == 0 || exec->run->purge)
        return 0;
    if (exec->sink.overlay != NULL)
        return count_in_overlay(exec, at->index->number, at->type->number, change);
    counter__add(&exec->core->counters, counters__of(&exec->core->counters, at->index->number), at->type->number,
                 change);
    return 0;
}

static void update_ephemeral_index(struct write_executor *exec, const struct write_item_state *at,
                                   const struct doc *doc)
{
    struct slice before = at->state.live ? at->old.lease : SLICE_NONE;
    struct slice after = doc->deleted ? SLICE_NONE : doc->lease;

    bool same = before.data != NULL && slice_equal(before, after);

    if (same && exec->sink.overlay == NULL)
        return; /* the index has it */
    if (before.data != NULL && !same)
        ephemeral__remove(exec->core, &exec->sink, before, at->key);
    if (after.data != NULL)
        ephemeral__add(exec->core, &exec->sink, after, at->key);
}

/* Makes the document visible to later items of the unit. */
static void add_pending(struct write_executor *exec, const struct write_item_state *at, const struct doc *doc)
{
    struct core *core = exec->core;

    if (exec->sink.overlay != NULL || (exec->run->last && exec->run->count == 1))
        return;
    struct doc *copy = arena_alloc(&core->arena, sizeof(*copy));
    *copy = *doc;
    copy->value = (struct store_value){0};
    map_put(&core->pending, at->key, copy);
}

/* Puts the tombstone into the purge queue, so that maintenance finds it when it is due. */
static void queue_tombstone(struct write_executor *exec, const struct doc *tombstone, struct slice key)
{
    tl_cleanup(buf_deinit) struct buf buf = BUF_INIT(BUF_UNLIMITED);

    sink_put(&exec->sink, SPACE_SYSTEM, purge_key(&buf, PURGE_TOMBSTONE, tombstone->ts, key), SLICE_LIT(""));
}

/* Larger records outside of transactions are not copied for the batch. */
enum { RECORD_COPIED_BYTES_MAX = 64 << 10 };

/* Returns: the record of a large document, in the core's arena, which is kept until the unit's batch is written. */
static struct slice encode_large(struct write_executor *exec, const struct doc *doc)
{
    REQUIRE(!doc->deleted && exec->sink.overlay == NULL);
    doc_encode_head(&exec->record, doc);
    size_t len = exec->record.len;
    char *bytes = arena_alloc(&exec->core->arena, len + doc->source.len);
    memcpy(bytes, exec->record.data, len);
    memcpy(bytes + len, doc->source.data, doc->source.len);
    return slice_make(bytes, len + doc->source.len);
}

/* Puts the record of a document. Returns: its bytes. */
static size_t put_record(struct write_executor *exec, const struct write_item_state *at, const struct doc *doc)
{
    buf_clear(&exec->record);
    if (exec->sink.overlay == NULL && !doc->deleted && doc->source.len > RECORD_COPIED_BYTES_MAX) {
        struct slice key = arena_copy(&exec->core->arena, at->key), record = encode_large(exec, doc);
        store_batch_put_nocopy(exec->core->batch, SPACE_DOCUMENTS, key, record);
        return record.len;
    }
    doc_encode(&exec->record, doc);
    sink_put(&exec->sink, SPACE_DOCUMENTS, at->key, buf_as_slice(&exec->record));
    return exec->record.len;
}

int write_executor__record(struct write_executor *exec, struct write_item_state *at, const struct doc *doc)
{
    REQUIRE(at->type != NULL && at->key.len >= DOC_KEY_PREFIX_BYTES);
    REQUIRE(doc->ts == exec->core->ts);    /* a commit of an overlay sets another */
    update_ephemeral_index(exec, at, doc); /* first: it reads at->old, which an overlay replaces */
    exec->bytes += at->key.len + put_record(exec, at, doc);
    exec->work += WORK_WRITE; /* the step counts it with its batch */
    if (exec->sink.overlay == NULL)
        recent_writes_record(&exec->core->recent_writes, at->key, exec->core->ts);
    if (exec->sink.overlay == NULL && !exec->run->purge) /* reported when it was hidden */
        feed__record_document(exec->core, doc->deleted, at->key, map_get(&exec->core->pending, at->key) != NULL);
    if (exec->sink.overlay == NULL && doc->routing.data != NULL)
        catalog_change__note_routing(exec->core, at->index->number);
    if (doc->deleted)
        queue_tombstone(exec, doc, at->key);
    add_pending(exec, at, doc);
    return count_document(exec, at, doc);
}

/* --- Results ------------------------------------------------------------------------------------------------------ */

void write_executor__set_names(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->index != NULL);
    struct arena *arena = exec->run->arena;
    int type = at->type == NULL ? -1 : at->type->number;

    if (exec->named_index != at->index->number) {
        exec->index_name = arena_copy(arena, at->index->name);
        exec->index_uuid = arena_copy(arena, at->index->uuid);
        exec->named_type = -1;
        exec->named_index = at->index->number;
    }
    if (type >= 0 && exec->named_type != type) {
        exec->type_name = arena_copy(arena, at->type->name);
        exec->named_type = type;
    }
    at->result->index = exec->index_name;
    at->result->index_uuid = exec->index_uuid;
    at->result->shard_count = at->index->shard_count;
    at->result->type = type < 0 ? write_executor__type_text(at) : exec->type_name;
}

void write_executor__shard_details(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->index != NULL && at->result->problem.type != PROBLEM_NONE);
    struct slice routing = at->routing.data != NULL ? at->routing : at->item->id;
    uint32_t shard = shard_of(routing, at->index->shard_count == 0 ? 1 : at->index->shard_count);
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);

    buf_json_string(&quoted, at->index->name);
    problem_details(&at->result->problem, exec->run->arena, "\"index_uuid\":\"%.*s\",\"shard\":\"%u\",\"index\":%.*s",
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

/*
 * Whether an atomic write exceeds the limits of a transaction. In a transaction the caller checks.
 */
static bool too_large(const struct write_executor *exec)
{
    const struct core_limits *limits = &exec->core->limits;
    bool by_work = exec->core->command_version >= COMMAND_SINCE_WHOLE_WORK && !write_executor__may_exceed(exec);
    return exec->run->atomic && exec->sink.overlay == NULL &&
           (exec->bytes > limits->transaction_bytes_max ||
            store_batch_bytes(exec->sink.batch) > limits->transaction_held_max ||
            (by_work && exec->work > exec->core->whole_work_max));
}

/* --- The work of an item ------------------------------------------------------------------------------------------ */

/*
 * Returns: the parsed source of an item: by its submitter, while its locks were found, or now; NULL: it is no JSON. Now
 * it is what the submitter would have made of it.
 */
static const struct json_doc *parsed_source(struct write_executor *exec, const struct write_item *item)
{
    const struct write_run *run = exec->run;
    const struct write_parsed *parsed = run->parsed == NULL ? NULL : &run->parsed[item - run->items];
    unsigned flags = JSON_DOCUMENT | (item->dialect == DIALECT_5 ? (unsigned)JSON_DUPLICATES : 0);
    struct problem ignored;

    REQUIRE(item->op == WRITE_INDEX || item->op == WRITE_CREATE);
    if (item->parsed != NULL)
        return item->parsed;
    if (parsed != NULL && parsed->mapping != NULL)
        return &parsed->document.json;
    if (json_parse(&exec->core->scratch, item->source, item->dialect, flags, &exec->item_json, &ignored) == 0)
        return &exec->item_json;
    exec->item_json.root = NULL;
    return NULL;
}

/*
 * Estimates the work of the next item: by the bytes of its sources, and of a long source by its values, each as if it
 * had an entry. It may be too high, so a run that cannot be divided goes by the work done alone. It
 * follows from the item alone, whether or not a source was parsed ahead. A first item is started in any case. One that
 * is too much by its bytes is not parsed to be postponed.
 */
static void find_item_work(struct write_executor *exec, const struct write_item *item)
{
    exec->item_work = 0;
    exec->item_json.root = NULL;
    if (!write_executor__counts_values(exec) || !write_executor__divides_by_work(exec) || exec->run->one_step ||
        exec->work == 0)
        return;
    exec->item_work = write_executor__source_bytes(item) / WORK_BYTES;
    if (item->update != NULL || item->op == WRITE_DELETE || item->source.len < WRITE_COUNTED_BYTES)
        return;
    exec->item_work *= 2; /* parsed, and written */
    if (write_executor__work_limit_reached(exec))
        return;
    const struct json_doc *json = parsed_source(exec, item);
    uint64_t each = exec->posts ? WRITE_POSTING_WORK : WORK_ENTRY;
    if (json != NULL)
        exec->item_work += json_value_count(json) * each;
}

/* Counts the result of an update that ran outside of the core: it is parsed ahead, on each host (parse_ahead.h). */
static void count_ready(struct write_executor *exec, struct slice source)
{
    uint64_t units = source.len / WORK_READ_BYTES;

    exec->parsed_bytes += source.len;
    exec->core->source_bytes += source.len;
    exec->work += units;
    core__work_document(exec->core, units);
}

/* Counts the sources of an item, whether or not they are used. */
static void count_item(struct write_executor *exec, const struct write_item *item)
{
    write_executor__count_source(exec, item->source, 0);
    if (item->update == NULL)
        return;
    write_executor__count_source(exec, item->update->doc, 0);
    write_executor__count_source(exec, item->update->upsert, 0);
    write_executor__count_source(exec, item->update->script_params, 0);
    if (exec->core->command_version < COMMAND_SINCE_UPDATES_LEFT)
        write_executor__count_source(exec, item->update->ready.source, 0);
    else
        count_ready(exec, item->update->ready.source);
}

void write_executor__postpone(const struct core *core, struct arena *arena, struct write_result *result)
{
    result->outcome = WRITE_FAILED;
    result->postponed = true;
    problem_set(&result->problem, arena, PROBLEM_LIMIT_EXCEEDED,
                core->command_version < COMMAND_SINCE_PLAIN_TEXTS
                    ? "the scripts before it took the [%llu] steps after which a request begins nothing more%s; it was "
                      "not begun"
                    : "earlier scripts took the [%llu] steps after which a request starts no further item%s; it was "
                      "not started",
                (unsigned long long)update_command_steps_max(&core->limits.script, false),
                core->command_version < COMMAND_SINCE_MAPPING_LIMIT ? ""
                : core->command_version < COMMAND_SINCE_WORK_LIMIT  ? ", or the mappings before it as much time"
                                                                    : ", or the items before it as much time");
}

/* Whether earlier items, their scripts, mappings or results took as much as one command may. */
static bool limit_reached(const struct write_executor *exec)
{
    bool whole = exec->run->atomic && !write_executor__may_exceed(exec);
    /* A script that was stopped has taken all of them, and no more. */
    uint64_t steps = exec->steps_taken + (exec->core->command_version >= COMMAND_SINCE_SCRIPT_LIMIT);

    if (exec->script_postpones)
        return true;
    return write_executor__work_limit_reached(exec) || write_executor__result_limit_reached(exec) ||
           steps > write_executor__steps_max(exec->core, whole) ||
           write_executor__mapping_limit_reached(exec->core, whole, exec->core->mapping_work - exec->mapping_work);
}

/* Counts the result of an item that ran. An atomic write ends when its results are too large. */
static void count_result(struct write_executor *exec, const struct write_result *result, bool *failed)
{
    struct write_run *run = exec->run;

    exec->result_bytes += write_result_bytes(result);
    run->results_too_large = run->atomic && exec->core->command_version >= COMMAND_SINCE_RESULT_BYTES &&
                             exec->result_bytes > WRITE_ATOMIC_RESULT_BYTES_MAX;
    *failed |= run->results_too_large;
}

/* Whether an atomic run has ended before its last item. */
static bool is_given_up(const struct write_run *run)
{
    return run->too_large || run->too_long || run->results_too_large || run->exceeds_step;
}

/*
 * Whether an item is postponed: it was already, or the limit is reached. Ends an atomic write.
 */
static bool postpone_item(struct write_executor *exec, const struct write_item *item, struct write_result *result,
                          bool *failed)
{
    struct write_run *run = exec->run;

    if (result->postponed || exec->divided)
        exec->item_work = 0; /* not of the item before */
    else
        find_item_work(exec, item);
    if (!result->postponed && !exec->divided && !limit_reached(exec))
        return false;
    exec->divided |= !result->postponed && write_executor__counts_values(exec);
    run->exceeds_step = write_executor__may_exceed(exec) || (run->one_step && write_executor__work_limit_reached(exec));
    run->too_long = run->atomic && !run->exceeds_step;
    *failed |= run->atomic;
    if (!result->postponed)
        write_executor__postpone(exec->core, run->arena, result);
    return true;
}

/*
 * Postpones an item whose script the submitter is to run, and with it the items after it. Not in an atomic write, nor
 * in a piece of one, which begins at least one item.
 */
static void postpone_script(struct write_executor *exec, const struct write_item *item, struct write_result *result)
{
    const struct write_run *run = exec->run;

    if (!result->script_long || !item->update->script_postpones || run->atomic || run->in_pieces)
        return;
    exec->script_postpones = result->postponed = true;
}

static int run_items(struct write_executor *exec, bool *failed)
{
    struct write_run *run = exec->run;

    for (size_t i = 0; i < run->count && !is_given_up(run); i++) {
        struct write_result *result = &run->results[i];
        int r = WRITE_ITEM_FAILED;
        if (postpone_item(exec, &run->items[i], result, failed))
            continue;
        if (!run->alone)
            core__begin_document(exec->core);
        count_item(exec, &run->items[i]);
        if (result->problem.type == PROBLEM_NONE)
            r = write_executor__item(exec, &run->items[i], result);
        else
            result->index = run->items[i].index;
        if (r < 0)
            return tl_trace(r);
        if (r == WRITE_ITEM_FAILED) {
            result->outcome = WRITE_FAILED;
            *failed = true;
            postpone_script(exec, &run->items[i], result);
        }
        count_result(exec, result, failed);
        if (exec->parsed_bytes > WRITE_FLUSH_BYTES)
            write_executor__flush_entries(exec);
        run->too_large = too_large(exec);
    }
    return 0;
}

struct update write_executor__update(struct write_executor *exec, const struct write_item_state *at,
                                     struct arena *arena)
{
    REQUIRE(at->index != NULL);
    struct core *core = exec->core;
    struct script_limits limits = core->limits.script;

    limits.steps_max = update_script_steps_max(&limits, core->command_version);
    return (struct update){
        .dialect = at->item->dialect,
        .item = at->item,
        .index = at->index->name,
        .type = write_executor__type_text(at),
        .mapped = mapping_type(at->index->mapping, write_executor__type_text(at)),
        .catalog = core->catalog,
        .scripts = core->scripts,
        .limits = limits,
        .zones = catalog_zones(core->catalog),
        .old_library = core->command_version < COMMAND_SINCE_JAVA_FORMATS,
        .old_formats = core->command_version < COMMAND_SINCE_SCRIPT_FORMATS,
        .leaves_large = core->command_version >= COMMAND_SINCE_UPDATES_LEFT,
        .old_counts = core->command_version < COMMAND_SINCE_SCRIPTS_ONCE,
        .old_filters = core->command_version < COMMAND_SINCE_PATTERNS_BOUNDED,
        .steps = &exec->script_steps,
        .ts = core->ts,
        .arena = arena,
        .scratch = &core->scratch,
    };
}

uint64_t write_executor__shared_steps(const struct core *core)
{
    return core->shared_steps != NULL ? *core->shared_steps : update_steps_shared(&core->limits.script);
}

void write_executor__return_steps(const struct write_executor *exec)
{
    REQUIRE(exec->core->shared_steps == NULL || exec->script_steps <= *exec->core->shared_steps);
    if (exec->core->shared_steps != NULL)
        *exec->core->shared_steps = exec->script_steps;
}

void write_executor__count_script(struct write_executor *exec, const struct update *update)
{
    enum {
        SCRIPT_VALUE_VISITS = 2, /* an object of the script each */
        WRITE_FILTER_VISIT = 16, /* of update.filtered */
    };

    exec->steps_taken += update->steps_taken;
    exec->core->scripts_run += update->steps_max > 0;
    write_executor__count_visits(exec, update->filtered / WRITE_FILTER_VISIT);
    if (update->took_kept && !update->old_counts)
        return; /* its work is counted */
    write_executor__count_visits(exec, update->values * (update->steps_max > 0 ? SCRIPT_VALUE_VISITS : 1));
    exec->work += update->steps_taken / WORK_SCRIPT_STEPS;
    core__work_indivisible(exec->core, update->steps_taken / WORK_SCRIPT_STEPS);
    exec->core->script_steps += update->steps_taken;
}

int write__run(struct core *core, struct write_run *run, bool *ret_failed)
{
    struct write_executor exec = {
        .core = core,
        .run = run,
        .sink = {core->batch, run->overlay},
        .view = core__view(core, run->overlay),
        .committed_view = core__view(core, NULL),
        .batch = run->count >= WRITE_POSTING_LIST_ITEMS_MIN || run->provisional != NULL ? core->ts : 0,
        .posts = run->count >= WRITE_POSTING_LIST_ITEMS_MIN,
        .record = BUF_INIT(BUF_UNLIMITED),
        .script_steps = write_executor__shared_steps(core),
        .mapping_work = core->mapping_work,
        .use_multiget = write_executor__ids_are_sorted(run),
        .named_type = -1,
    };
    bool failed = false;
    int r;

    REQUIRE(core->open);
    REQUIRE(run->overlay == NULL ? run->provisional == NULL : !run->purge); /* the unit purges, no transaction */
    core->indivisible |= run->atomic && run->overlay == NULL && !write_executor__may_exceed(&exec);
    r = run_items(&exec, &failed);
    if (r == 0)
        write_executor__flush_entries(&exec);
    if (r == 0)
        r = flush_counted(&exec);
    buf_deinit(&exec.record);
    doc_multiget_free(exec.multiget);
    write_executor__return_steps(&exec);
    run->script_steps = exec.steps_taken;
    run->work = exec.work;
    run->result_bytes = exec.result_bytes;
    if (r == 0 && ((failed && run->atomic && run->overlay == NULL) || run->too_large))
        core__rollback(core);
    *ret_failed = failed;
    return r;
}

/* --- Units -------------------------------------------------------------------------------------------------------- */

/* Forgets the documents and paths that the unit has written. */
static void forget_pending(struct core *core)
{
    if (core->tree_pending.count > 0)
        omap_clear(&core->tree_pending);
    if (core->pending.slot_count == 0)
        return;
    map_deinit(&core->pending);
    core->pending = (struct map)MAP_INIT;
}

static void rollback_documents(struct core *core)
{
    empty_paths_clear(&core->empty_paths);
    forget_pending(core);
}

const struct unit_part write__part = {.rollback = rollback_documents, .end = forget_pending};
