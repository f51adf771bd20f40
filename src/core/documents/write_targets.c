/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines what a write will change, for its locks: each item's document, and in an index with a
 * path field its current and its new path. Nothing is written or kept; the write itself starts
 * over.
 *
 * Memory: three things stay in the core's arena until the unit ends. These are the paths, once for
 * repeated calls, and for the run parsed sources (save_parsed()) and results of updates
 * (keep_update()). Everything else is in the scratch arena and is released after each item:
 * documents may have megabytes, and a command thousands of items.
 */
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/index.h"
#include "core/documents/doc.h"
#include "core/documents/doc_multiget.h"
#include "core/documents/update.h"
#include "core/documents/write.h"
#include "core/documents/write_command.h"
#include "core/documents/write_internal.h"
#include "core/command/command.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "json/each.h"

/* The state of write__targets(). */
struct target_finder {
    struct write_executor exec;
    struct write_run run;          /* the items of the range; not run, only for multiget and mapping */
    size_t begin;                  /* of the range */
    struct write_parsed *parsed;   /* by item; NULL: none yet */
    const struct update_kept **kept; /* by item, also of previous calls; NULL: none yet */
    size_t kept_bytes;
    struct write_targets previous; /* of the previous call in this unit; empty: none */
    size_t previous_at;            /* position in them; earlier ones are for items already passed */
};

/* Counts bytes that an update reads and writes, which do not count here in commands before version 22. */
static void count_bytes(struct target_finder *finder, size_t bytes)
{
    uint64_t units = write_executor__counts_values(&finder->exec) ? bytes / WORK_BYTES : 0;

    finder->exec.work += units;
    core__work_document(finder->exec.core, units);
}

/*
 * Returns: the previous call's target for an item; NULL: none. Requires: calls have ascending
 *   items.
 */
static const struct write_target *previous_target(struct target_finder *finder, size_t item)
{
    const struct write_targets *before = &finder->previous;

    REQUIRE(finder->previous_at == 0 || before->items[finder->previous_at - 1].item < item);
    while (finder->previous_at < before->count && before->items[finder->previous_at].item < item)
        finder->previous_at++;
    bool found = finder->previous_at < before->count && before->items[finder->previous_at].item == item;
    return found ? &before->items[finder->previous_at] : NULL;
}

/* Returns: the item's position in the range. */
static size_t position_of(const struct target_finder *finder, const struct write_item_state *at)
{
    REQUIRE(at->item >= finder->run.items && (size_t)(at->item - finder->run.items) < finder->run.count);
    return (size_t)(at->item - finder->run.items);
}

/* Returns: the path in the core's arena: `before` if it is equal, else a copy. */
static struct slice keep_path(struct core *core, struct slice path, struct slice before)
{
    if (path.data == NULL)
        return SLICE_NONE;
    return before.data != NULL && slice_equal(path, before) ? before : arena_copy(&core->arena, path);
}

/* Returns: the current path of a document that renames can move, loaded by write_executor__load(). */
static struct slice tracked_path(struct core *core, const struct write_item_state *at)
{
    REQUIRE(at->old.path_tracked);
    const struct doc *doc = &at->old;
    if (at->old_path.data != NULL)
        return at->old_path;
    size_t len = doc->path_len + doc->source.len - doc->stored.len; /* a rename replaces the path alone */
    INSIST(doc->path_offset <= doc->source.len && len <= doc->source.len - doc->path_offset);
    struct slice raw = slice_make(doc->source.data + doc->path_offset, len);
    struct json_doc json;

    if (slice_find_byte(raw, '\\') == raw.len)
        return raw;
    struct slice quoted = arena_printf(&core->scratch, "\"%.*s\"", SLICE_ARG(raw));
    return json_parse_stored(&core->scratch, quoted, &json) == 0 ? json_slice(json.root) : SLICE_NONE;
}

/*
 * Returns: the path of a document that renames cannot move, in the scratch arena; data NULL: none. Its source is
 *   parsed; adds the work to *work.
 */
static struct slice untracked_path(struct core *core, const struct write_item_state *at, uint64_t *work)
{
    REQUIRE(!at->old.path_tracked);
    struct document document = {0};
    struct slice path = SLICE_NONE;
    uint64_t units = at->old.source.len / WORK_BYTES;

    if (document_parse_stored(at->index->mapping, at->type, at->old.source, &core->scratch, &document) == 0)
        path = document.lock_path;
    if (core->command_version >= COMMAND_SINCE_VALUES_WEIGHED) /* also limits a LOCK */
        units += document.visited / WORK_VISITS;
    if (core->command_version >= COMMAND_SINCE_FILTERS_BOUNDED)
        units += document.filtered / WORK_VISITS;
    core__work_indivisible(core, units);
    *work += units;
    document_release(&document);
    return path;
}

/*
 * Returns: the current path; data NULL: none. `before`: the path found by the previous call. Parses
 *   the source only of a document that renames cannot move, and adds the work of that to *work.
 */
static struct slice stored_path(struct core *core, const struct write_item_state *at, struct slice before,
                                uint64_t *work)
{
    REQUIRE(at->has_old && at->state.live);
    struct arena_mark mark = arena_mark(&core->scratch);
    struct slice path = at->old.path_tracked ? tracked_path(core, at) : untracked_path(core, at, work);

    path = keep_path(core, path, before);
    arena_rewind(&core->scratch, mark);
    return path;
}

/*
 * Saves a parsed source for the run, which would parse it again. Not if it adds fields to the
 * mapping.
 */
static void save_parsed(struct target_finder *finder, const struct write_item_state *at,
                        const struct document *document)
{
    struct core *core = finder->exec.core;
    const struct write_run *run = &finder->run;

    if (document->update != NULL)
        return;
    if (finder->parsed == NULL)
        finder->parsed = arena_zalloc(&core->arena, run->count * sizeof(*finder->parsed));
    finder->parsed[position_of(finder, at)] = (struct write_parsed){at->index->mapping, at->type, *document};
}

/*
 * Whether the run may reuse a parsed source. After a change of the catalog in this unit, a mapping
 * may be freed and another one allocated at its address.
 */
static bool may_save_parsed(const struct target_finder *finder, const struct write_item_state *at)
{
    const struct core *core = finder->exec.core;

    return at->item->op != WRITE_UPDATE && core->catalog == core->catalog_before;
}

/*
 * Returns: the path of a document with this source; data NULL: none. `keep`: save the parsed source
 *   for the run. `before`: the path found by the previous call.
 */
static struct slice path_after(struct target_finder *finder, const struct write_item_state *at, struct slice source,
                               bool keep, struct slice before)
{
    REQUIRE(at->type != NULL && source.data != NULL);
    struct core *core = finder->exec.core;
    struct arena *arena = keep ? &core->arena : &core->scratch;
    const struct json_doc *parsed =
        at->item->op == WRITE_UPDATE ? write_executor__parsed_update(at->item) : at->item->parsed;
    struct document document = {0};
    struct problem problem;
    if (at->item->op == WRITE_UPDATE)
        count_bytes(finder, source.len);
    int r = write_executor__parse(&finder->exec, at, source, parsed, arena, &document, &problem);
    struct slice path = r == 0 ? keep_path(core, document.lock_path, before) : SLICE_NONE;

    if (document.update != NULL)
        write_executor__count_fields(&finder->exec, document.fields_copied);
    if (r == 0 && keep)
        save_parsed(finder, at, &document);
    document_release(&document);
    return path;
}

/*
 * Keeps the result of a script or a merge for the run, and for further calls in this unit, which would compute it
 * again. Not after a change of the catalog: the type that it is compared with may be freed, and another one allocated
 * there. Nor a merge in commands before version 22, in which it counts less.
 */
static void keep_update(struct target_finder *finder, const struct write_item_state *at, const struct update *update,
                        int status, const struct problem *problem)
{
    struct core *core = finder->exec.core;
    bool merged = update->values > 0 && write_executor__counts_values(&finder->exec);

    if (update->steps_max == 0 && !merged)
        return;
    if (update->old != NULL && core->catalog != core->catalog_before)
        return;
    size_t bytes = update_kept_bytes(update, status, problem);
    if (bytes > WRITE_KEPT_BYTES_MAX - finder->kept_bytes)
        return;
    if (finder->kept == NULL)
        finder->kept = arena_zalloc(&core->arena, finder->run.count * sizeof *finder->kept);
    finder->kept[position_of(finder, at)] = update_keep(update, status, problem, &core->arena);
    finder->kept_bytes += bytes;
}

/* Finds the source after the item; an update's is in an arena of the core; data NULL: none. */
static int source_after(struct target_finder *finder, struct write_item_state *at, struct slice *ret_source)
{
    struct write_executor *exec = &finder->exec;
    struct update update = write_executor__update(exec, at, &exec->core->scratch);
    struct problem problem;
    int r;

    *ret_source = SLICE_NONE;
    if (at->item->op == WRITE_DELETE)
        return 0;
    if (at->item->op != WRITE_UPDATE) {
        *ret_source = at->item->source;
        return 0;
    }
    update.old = at->state.live ? &at->old : NULL;
    if (update.old != NULL && write_executor__reads_old(exec, &update))
        count_bytes(finder, at->old.source.len);
    update.kept = finder->kept == NULL ? NULL : finder->kept[position_of(finder, at)];
    r = update_run(&update, &problem);
    write_executor__count_script(exec, &update);
    if (r < 0)
        return tl_trace(r);
    keep_update(finder, at, &update, r, &problem);
    if (r == 0 && update.op != UPDATE_DELETE)
        *ret_source = update.source;
    return 0;
}

/*
 * Locks follow a transaction's renames when it commits, so they know the path without them. Its own
 * writes are already in the lock table.
 */
static int find_committed_path(struct target_finder *finder, struct write_target *target)
{
    const struct overlay *overlay = finder->exec.sink.overlay;

    target->committed_path = target->old_path;
    if (overlay == NULL || overlay_count_in(overlay, SPACE_TREE) == 0)
        return 0;
    return write__path_of(finder->exec.core, NULL, target->index, target->type, target->id, &target->committed_path);
}

static int find_paths(struct target_finder *finder, struct write_item_state *at, const struct write_target *before,
                      struct write_target *target)
{
    REQUIRE(at->type != NULL && at->key.len > 0);
    static const struct write_target nothing = {0};
    struct slice after;
    at->load = at->item->op == WRITE_UPDATE ? WRITE_LOAD_SOURCE : WRITE_LOAD_PATH;
    int r = write_executor__load(&finder->exec, at);

    if (before == NULL)
        before = &nothing;
    if (r == 0)
        r = source_after(finder, at, &after);
    if (r != 0)
        return r;
    if (at->state.live)
        target->old_path = stored_path(finder->exec.core, at, before->old_path, &finder->exec.work);
    if (after.data != NULL)
        target->new_path = path_after(finder, at, after, may_save_parsed(finder, at), before->new_path);
    target->new_path_known = true;
    return find_committed_path(finder, target);
}

/*
 * Finds the path of a document whose item creates its index or type, under the new mapping. An item
 * that will fail has no path.
 */
static int find_first_path(struct target_finder *finder, struct write_item_state *at, struct write_target *target)
{
    REQUIRE(at->type == NULL); /* else the document may exist, with a path of its own */
    struct core *core = finder->exec.core;
    enum dialect dialect = at->item->dialect;
    struct slice wanted = at->item->type.len > 0 ? at->item->type : SLICE_LIT("_doc");
    struct catalog_index index = at->index == NULL ? (struct catalog_index){.name = at->item->index} : *at->index;
    tl_cleanup(mapping_unrefp) struct mapping *base = NULL;
    tl_cleanup(mapping_unrefp) struct mapping *mapping = NULL;
    struct problem problem;
    struct slice after;

    if (at->index != NULL && mapping_path_field(at->index->mapping) == NULL &&
        core->command_version >= COMMAND_SINCE_CATALOG_WEIGHED)
        return 0; /* a new type has no field; the mapping is not copied to find that, nor does that count */
    if (at->index == NULL &&
        index__auto_mapping(core, at->item->index, at->item->type, dialect, &core->scratch, &base, &problem) != 0)
        return 0;
    if (mapping_ensure_type(at->index == NULL ? base : at->index->mapping, wanted, false, dialect, &core->scratch,
                            &mapping, &problem) != 0)
        return 0;
    write_executor__count_fields(&finder->exec, core__copied_fields(core, mapping));
    index.mapping = mapping;
    at->index = &index;
    at->type = mapping_type(mapping, wanted);
    int r = at->type == NULL || mapping_path_field(mapping) == NULL ? 0 : source_after(finder, at, &after);
    if (r == 0 && at->type != NULL && mapping_path_field(mapping) != NULL && after.data != NULL)
        target->new_path = path_after(finder, at, after, false, SLICE_NONE);
    at->index = NULL;
    at->type = NULL;
    return r;
}

/*
 * Returns: a copy of a name in the catalog, which may be freed by a later change of the index in
 *   this unit; or the item's own, if equal.
 */
static struct slice stable_name(struct core *core, struct slice name, struct slice given)
{
    return slice_equal(name, given) ? given : arena_copy(&core->arena, name);
}

/* Returns: 0, the target; WRITE_ITEM_FAILED: the item will fail; fatal codes. */
static int find_target(struct target_finder *finder, const struct write_item *item, struct write_target *target)
{
    REQUIRE(target->old_path.data == NULL && target->new_path.data == NULL); /* not of an item before */
    const struct write_target *before = previous_target(finder, finder->begin + (size_t)(item - finder->run.items));
    struct core *core = finder->exec.core;
    struct write_result result = {0};
    struct write_item_state at = {.item = item, .result = &result};
    const struct catalog_alias *alias;
    int r = 0;

    write_executor__work(&finder->exec, WORK_ITEM);
    finder->exec.work += item->source.len / WORK_BYTES;
    core__work_document(core, item->source.len / WORK_BYTES);
    count_bytes(finder, write_executor__source_bytes(item) - item->source.len);
    target->index = item->index;
    target->type = write_executor__type_text(&at);
    target->id = item->id;
    target->new_path_known = true;
    if (item->id.len == 0 || item->id.len > DOC_ID_BYTES_MAX || item->type.len > UINT16_MAX)
        return WRITE_ITEM_FAILED; /* it fails when it runs; the lock table has no such names */
    if (catalog_index(core->catalog, item->index) == NULL && !catalog_has_alias(core->catalog, item->index))
        return find_first_path(finder, &at, target); /* the item creates it */
    /* Without the reason: the item has it when it runs, after those before it. */
    if (catalog_find_any(core->catalog, item->index, true, item->dialect, NULL, &at.index, &alias, NULL) != 0 ||
        (at.index->closed && !finder->run.cleanup))
        return WRITE_ITEM_FAILED;
    target->index = stable_name(core, at.index->name, item->index);
    at.type = mapping_type(at.index->mapping, item->type);
    if (at.type == NULL)
        return find_first_path(finder, &at, target);
    target->type = stable_name(core, at.type->name, target->type);
    if (mapping_path_field(at.index->mapping) != NULL) {
        at.key = doc_key(arena_alloc(&core->arena, DOC_KEY_BYTES_MAX), at.index->number, at.type->number, item->id);
        r = find_paths(finder, &at, before, target);
    }
    doc_release(&at.old);
    return r;
}

/* So many bytes are counted in a byte, so that the compiler compares many of them by one instruction. */
enum { COUNTED_IN_BYTE = UINT8_MAX };

static size_t count_slashes(struct slice path)
{
    size_t count = 0, at = 0;

    while (at < path.len) {
        size_t end = path.len - at > COUNTED_IN_BYTE ? at + COUNTED_IN_BYTE : path.len;
        uint8_t slashes = 0;
        for (; at < end; at++)
            slashes = (uint8_t)(slashes + (path.data[at] == '/'));
        count += slashes;
    }
    return count;
}

/*
 * Returns: the work of the directories of a path below the first WORK_LEVELS_USUAL, each of which gets an intention
 *          lock if the write needs locks, and that of the path's bytes.
 */
static uint64_t path_work(const struct core *core, struct slice path)
{
    uint64_t levels = count_slashes(path), work = 0;

    if (levels > WORK_LEVELS_USUAL)
        work = WORK_DEEP_LEVEL * (levels - WORK_LEVELS_USUAL);
    if (core->command_version >= COMMAND_SINCE_PATHS_WEIGHED)
        work += path.len / WORK_PATH_BYTES;
    return work;
}

/* The paths of a target are copied and hashed. */
static void count_paths(struct target_finder *finder, const struct write_target *target)
{
    const struct core *core = finder->exec.core;
    if (core->command_version < COMMAND_SINCE_LEVELS_WORK)
        return;
    bool moves = target->old_path.data != NULL && !slice_equal(target->old_path, target->new_path);
    uint64_t work = path_work(core, target->new_path) + (moves ? path_work(core, target->old_path) : 0);
    finder->exec.work += work; /* the lock table counts its visits in the step itself */
}

static struct target_finder make_finder(struct core *core, const struct command *command,
                                        const struct write_choice *choice, const struct overlay *overlay)
{
    const struct write_command *write = &command->write;
    const struct write_range range = choice->range;

    return (struct target_finder){
        .exec = {.core = core,
                 .sink = {core->batch, (struct overlay *)(uintptr_t)overlay},
                 .view = core__view(core, overlay),
                 .committed_view = core__view(core, NULL),
                 .script_steps = write_executor__shared_steps(core),
                 .mapping_work = core->mapping_work},
        .run = {.items = write->items + range.begin,
                .count = range.end - range.begin,
                .atomic = write->atomic && !choice->in_pieces,
                .one_step = write_command__in_one_step(core, command, choice->in_pieces),
                .cleanup = write->cleanup,
                .work_before = choice->work_before},
        .begin = range.begin,
    };
}

int write__targets(struct core *core, struct command *command, const struct write_choice *choice,
                   const struct overlay *overlay, struct write_targets *io_targets)
{
    const struct write_range range = choice->range;
    struct write_command *write = &command->write;
    REQUIRE(core->open && range.begin <= range.end && range.end <= write->item_count);
    struct target_finder finder = make_finder(core, command, choice, overlay);
    struct write_targets targets = {
        .items = arena_zalloc(&core->arena, (range.end - range.begin + 1) * sizeof(*targets.items))};
    struct arena_mark mark = arena_mark(&core->scratch);
    int r = 0;

    finder.previous = *io_targets;
    if (io_targets->kept_range.begin == range.begin && io_targets->kept_range.end == range.end) {
        finder.kept = io_targets->kept;
        finder.kept_bytes = io_targets->kept_bytes;
    }
    finder.exec.run = &finder.run;
    bool whole = finder.run.atomic && !write_executor__may_exceed(&finder.exec);
    uint64_t steps_max = write_executor__steps_max(core, whole) / 2; /* a script without a kept result runs twice */
    finder.exec.use_multiget = write_executor__ids_are_sorted(&finder.run);
    for (size_t i = range.begin; i < range.end && r >= 0; i++) {
        struct write_target *target = &targets.items[targets.count];
        if (choice->pending != NULL && !choice->pending[i])
            continue;
        uint64_t mapping_work = 2 * (core->mapping_work - finder.exec.mapping_work); /* made again when they run */
        if (choice->cut &&
            (finder.exec.steps_taken > steps_max || write_executor__mapping_limit_reached(core, whole, mapping_work) ||
             write_executor__target_limit_reached(&finder.exec)))
            write__postpone(core, command, i);
        if (write->results[i].postponed)
            continue;
        if (write->item_count > 1)
            core__begin_document(core);
        r = find_target(&finder, &write->items[i], target);
        arena_rewind(&core->scratch, mark);
        if (r != 0) {
            *target = (struct write_target){0};
            continue;
        }
        count_paths(&finder, target);
        target->item = i;
        targets.count++;
    }
    doc_multiget_free(finder.exec.multiget);
    write_executor__return_steps(&finder.exec);
    if (core->command_version < COMMAND_SINCE_SCRIPTS_ONCE)
        write->script_steps += finder.exec.steps_taken; /* else those of the run count, which may be in a later step */
    core->write_work += finder.exec.work;
    if (r < 0)
        return tl_trace(r);
    ENSURE(targets.count <= range.end - range.begin);
    targets.parsed = finder.parsed;
    targets.kept = finder.kept;
    targets.kept_range = range;
    targets.kept_bytes = finder.kept_bytes;
    targets.work = finder.exec.work + write_executor__counted_mappings(&finder.exec);
    targets.exceed_step =
        finder.run.one_step && finder.run.count > 1 && targets.work > write_executor__targets_max(&finder.exec);
    *io_targets = targets;
    return 0;
}

int write__path_near(struct core *core, const struct overlay *overlay, struct tree_paths *paths, struct slice index,
                     struct slice type, struct slice id, struct slice *ret_path)
{
    struct write_executor exec = {
        .core = core, .sink = {core->batch, (struct overlay *)(uintptr_t)overlay}, .paths = paths};
    struct write_item item = {.index = index, .type = type, .id = id};
    struct write_result result = {0};
    struct write_item_state at = {
        .item = &item, .result = &result, .index = catalog_index(core->catalog, index), .load = WRITE_LOAD_PATH};
    struct arena_mark mark = arena_mark(&core->scratch);
    uint64_t ignored = 0; /* the step counts it */

    *ret_path = SLICE_NONE;
    at.type = at.index == NULL ? NULL : mapping_type(at.index->mapping, type);
    if (at.type == NULL || mapping_path_field(at.index->mapping) == NULL || id.len > DOC_ID_BYTES_MAX)
        return 0;
    exec.view = core__view(core, overlay);
    at.key = doc_key(arena_alloc(&core->arena, DOC_KEY_BYTES_MAX), at.index->number, at.type->number, id);
    int r = write_executor__load(&exec, &at);
    if (r == 0 && at.state.live)
        *ret_path = stored_path(core, &at, SLICE_NONE, &ignored);
    arena_rewind(&core->scratch, mark);
    doc_release(&at.old);
    return r;
}

int write__path_of(struct core *core, const struct overlay *overlay, struct slice index, struct slice type,
                   struct slice id, struct slice *ret_path)
{
    return write__path_near(core, overlay, NULL, index, type, id, ret_path);
}
