/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a write is about to change, for its locks: each item's document, and in an index with a path field where it lies
 * now and where it will lie. Nothing is written and nothing is kept: the write itself starts from the beginning.
 *
 * Memory. What a look leaves in the core's arena, where it stays until the unit ends, is the paths, once however often a write looks, and what
 * the run will not parse again (keep_parsed()). All else that an item takes lies in the scratch arena, and goes before the next item: a path
 * may have thousands of bytes, a document millions, and there are thousands of items.
 */
#include "core/catalog/catalog.h"
#include "core/catalog/index.h"
#include "core/documents/doc.h"
#include "core/documents/doc_multiget.h"
#include "core/documents/update.h"
#include "core/documents/write.h"
#include "core/documents/write_internal.h"
#include "core/step/command.h"
#include "core/step/unit.h"
#include "core/step/work.h"

/* The targets of a command while they are found. */
struct targeting {
    struct write_executor work;
    struct write_run run;        /* of the items, not to be run: what is read by one walk is chosen by it */
    struct write_parsed *parsed; /* by item; NULL: none yet */
    struct write_targets before; /* of the look before, in the same unit; none: there was none */
    size_t before_at;            /* no item before this one of them is of interest any more */
};

/* Returns: what the look before has found of an item; NULL: nothing. Requires: items are asked for as they rise. */
static const struct write_target *found_before(struct targeting *targeting, size_t item)
{
    const struct write_targets *before = &targeting->before;

    while (targeting->before_at < before->count && before->items[targeting->before_at].item < item)
        targeting->before_at++;
    bool found = targeting->before_at < before->count && before->items[targeting->before_at].item == item;
    return found ? &before->items[targeting->before_at] : NULL;
}

/* Returns: the path where it stays, which is where it was `before` when that is the same. */
static struct slice keep_path(struct core *core, struct slice path, struct slice before)
{
    if (path.data == NULL)
        return SLICE_NONE;
    return before.data != NULL && slice_equal(path, before) ? before : arena_copy(&core->arena, path);
}

/* Where a document lies; data NULL where it has no path. `before`: where it was found before; data NULL: nowhere. */
static struct slice stored_path(struct core *core, const struct write_item_state *at, struct slice before)
{
    struct arena_mark mark = arena_mark(&core->scratch);
    struct document document = {0};
    struct slice path = SLICE_NONE;

    if (document_parse_stored(at->index->mapping, at->type, at->old.source, &core->scratch, &document) == 0)
        path = keep_path(core, document.place, before);
    document_release(&document);
    arena_rewind(&core->scratch, mark);
    return path;
}

/* Remembers for the run what it would parse again: the source of an item as it is, that brings no new field. */
static void keep_parsed(struct targeting *targeting, const struct write_item_state *at, const struct document *document)
{
    struct core *core = targeting->work.core;
    const struct write_run *run = &targeting->run;

    if (document->update != NULL)
        return;
    if (targeting->parsed == NULL)
        targeting->parsed = arena_zalloc(&core->arena, run->count * sizeof(*targeting->parsed));
    targeting->parsed[at->item - run->items] = (struct write_parsed){at->index->mapping, at->type, *document};
}

/* Whether the run may use what is parsed of an item: a mapping that was changed in this unit may go, and another come where it lay. */
static bool may_keep(const struct targeting *targeting, const struct write_item_state *at)
{
    const struct core *core = targeting->work.core;

    return at->item->op != WRITE_UPDATE && core->catalog == core->catalog_before;
}

/*
 * Where a document will lie that has this source; data NULL where it has no path. `keep`: what is parsed is for the run. `before`: as the look
 * before found it; data NULL: nowhere.
 */
static struct slice path_after(struct targeting *targeting, const struct write_item_state *at, struct slice source,
                               bool keep, struct slice before)
{
    struct core *core = targeting->work.core;
    struct arena *arena = keep ? &core->arena : &core->scratch;
    const struct json_doc *parsed = at->item->op == WRITE_UPDATE ? NULL : at->item->parsed;
    const struct mapping *mapping = at->index->mapping;
    struct document document = {0};
    struct problem problem;
    int r = parsed != NULL ? document_parse_json(mapping, at->type, at->item->id, parsed, at->item->dialect, arena,
                                                 &document, &problem)
                           : document_parse(mapping, at->type, at->item->id, source, at->item->dialect, arena,
                                            &document, &problem);
    struct slice path = r == 0 ? keep_path(core, document.place, before) : SLICE_NONE;

    if (r == 0 && keep)
        keep_parsed(targeting, at, &document);
    document_release(&document);
    return path;
}

/* The source that the item will leave, which an update has in the scratch arena; data NULL: none. */
static int source_after(struct targeting *targeting, struct write_item_state *at, struct slice *ret_source)
{
    struct write_executor *work = &targeting->work;
    struct update update = write_executor__update(work, at, &work->core->scratch);
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
    r = update_run(&update, &problem);
    write_executor__count_script(work, &update);
    if (r < 0)
        return tl_trace(r);
    if (r == 0 && update.op != UPDATE_DELETE)
        *ret_source = update.source;
    return 0;
}

/* What a transaction has renamed moves for locks when it commits. What it has written itself is in their table since then. */
static int find_committed(struct targeting *targeting, struct write_target *target)
{
    const struct overlay *overlay = targeting->work.sink.overlay;

    target->committed_path = target->old_path;
    if (overlay == NULL || overlay_count_in(overlay, SPACE_TREE) == 0)
        return 0;
    return write__path_of(targeting->work.core, NULL, target->index, target->type, target->id, &target->committed_path);
}

static int find_paths(struct targeting *targeting, struct write_item_state *at, const struct write_target *before,
                      struct write_target *target)
{
    static const struct write_target nothing = {0};
    struct slice after;
    int r = write_executor__load(&targeting->work, at);

    if (before == NULL)
        before = &nothing;
    if (r == 0)
        r = source_after(targeting, at, &after);
    if (r != 0)
        return r;
    if (at->state.live)
        target->old_path = stored_path(targeting->work.core, at, before->old_path);
    if (after.data != NULL)
        target->new_path = path_after(targeting, at, after, may_keep(targeting, at), before->new_path);
    target->new_path_known = true;
    return find_committed(targeting, target);
}

/*
 * Where the document will lie that makes its index, or its type: under the mapping that there will be then. An item that
 * will fail lies nowhere.
 */
static int find_first_path(struct targeting *targeting, struct write_item_state *at, struct write_target *target)
{
    struct core *core = targeting->work.core;
    enum dialect dialect = at->item->dialect;
    struct slice wanted = at->item->type.len > 0 ? at->item->type : SLICE_LIT("_doc");
    struct catalog_index index = at->index == NULL ? (struct catalog_index){.name = at->item->index} : *at->index;
    tl_cleanup(mapping_unrefp) struct mapping *base = NULL;
    tl_cleanup(mapping_unrefp) struct mapping *mapping = NULL;
    struct problem problem;
    struct slice after;

    if (at->index == NULL &&
        index__auto_mapping(core, at->item->index, at->item->type, dialect, &core->arena, &base, &problem) != 0)
        return 0;
    if (mapping_ensure_type(at->index == NULL ? base : at->index->mapping, wanted, false, dialect, &core->arena,
                            &mapping, &problem) != 0)
        return 0;
    index.mapping = mapping;
    at->index = &index;
    at->type = mapping_type(mapping, wanted);
    int r = at->type == NULL || mapping_path_field(mapping) == NULL ? 0 : source_after(targeting, at, &after);
    if (r == 0 && at->type != NULL && mapping_path_field(mapping) != NULL && after.data != NULL)
        target->new_path = path_after(targeting, at, after, false, SLICE_NONE);
    at->index = NULL;
    at->type = NULL;
    return r;
}

/* A name of the catalog's, which may be gone when the unit changes the index again: as the item has it, or a copy. */
static struct slice outlasting(struct core *core, struct slice name, struct slice given)
{
    return slice_equal(name, given) ? given : arena_copy(&core->arena, name);
}

/* Returns: 0 and the target; WRITE_ITEM_FAILED for an item that will fail; fatal codes. */
static int find_target(struct targeting *targeting, const struct write_item *item, struct write_target *target)
{
    const struct write_target *before = found_before(targeting, (size_t)(item - targeting->run.items));
    struct core *core = targeting->work.core;
    struct problem problem;
    struct write_result result = {0};
    struct write_item_state at = {.item = item, .result = &result};
    const struct catalog_alias *alias;
    int r = 0;

    core__work(core, WORK_ITEM);
    core__work_indivisible(core, item->source.len / WORK_BYTES);
    target->index = item->index;
    target->type = write_executor__type_text(&at);
    target->id = item->id;
    target->new_path_known = true;
    if (item->id.len == 0 || item->id.len > DOC_ID_BYTES_MAX)
        return WRITE_ITEM_FAILED;
    if (catalog_index(core->catalog, item->index) == NULL && !catalog_has_alias(core->catalog, item->index))
        return find_first_path(targeting, &at, target); /* yet to be made */
    if (catalog_find_any(core->catalog, item->index, true, item->dialect, &core->arena, &at.index, &alias, &problem) !=
            0 ||
        (at.index->closed && !targeting->run.cleanup))
        return WRITE_ITEM_FAILED;
    target->index = outlasting(core, at.index->name, item->index);
    at.type = mapping_type(at.index->mapping, item->type);
    if (at.type == NULL)
        return find_first_path(targeting, &at, target);
    target->type = outlasting(core, at.type->name, target->type);
    if (mapping_path_field(at.index->mapping) != NULL) {
        at.key = doc_key(arena_alloc(&core->arena, DOC_KEY_BYTES_MAX), at.index->number, at.type->number, item->id);
        r = find_paths(targeting, &at, before, target);
    }
    doc_release(&at.old);
    return r;
}

static struct targeting targeting_of(struct core *core, const struct command *command, const struct overlay *overlay)
{
    const struct write_command *write = &command->write;

    return (struct targeting){
        .work = {.core = core,
                 .sink = {core->batch, (struct overlay *)(uintptr_t)overlay},
                 .view = core__view(core, overlay),
                 .committed = core__view(core, NULL),
                 .script_steps = write_executor__shared_steps(core)},
        .run = {.items = write->items, .count = write->item_count, .cleanup = write->cleanup},
    };
}

int write__targets(struct core *core, struct command *command, const struct overlay *overlay, bool cut,
                   struct write_targets *io_targets)
{
    struct write_command *write = &command->write;
    uint64_t steps_max = update_command_steps_max(&core->limits.script, write->atomic) / 2; /* they run a second time */
    struct targeting targeting = targeting_of(core, command, overlay);
    struct write_targets targets = {.items =
                                        arena_zalloc(&core->arena, (write->item_count + 1) * sizeof(*targets.items))};
    struct arena_mark mark = arena_mark(&core->scratch);
    int r = 0;

    targeting.before = *io_targets;
    targeting.work.run = &targeting.run;
    targeting.work.walks = write_executor__ids_are_sorted(&targeting.run);
    for (size_t i = 0; i < write->item_count && r >= 0; i++) {
        struct write_target *target = &targets.items[targets.count];
        if (cut && targeting.work.steps_taken > steps_max)
            write__postpone(core, command, i);
        if (write->results[i].postponed)
            continue;
        r = find_target(&targeting, &write->items[i], target);
        arena_rewind(&core->scratch, mark);
        if (r != 0) {
            *target = (struct write_target){0};
            continue;
        }
        target->item = i;
        targets.count++;
    }
    doc_multiget_free(targeting.work.walk);
    write_executor__return_steps(&targeting.work);
    write->script_steps += targeting.work.steps_taken;
    if (r < 0)
        return tl_trace(r);
    targets.parsed = targeting.parsed;
    *io_targets = targets;
    return 0;
}

int write__path_of(struct core *core, const struct overlay *overlay, struct slice index, struct slice type,
                 struct slice id, struct slice *ret_path)
{
    struct write_executor work = {.core = core, .sink = {core->batch, (struct overlay *)(uintptr_t)overlay}};
    struct write_item item = {.index = index, .type = type, .id = id};
    struct write_result result = {0};
    struct write_item_state at = {.item = &item, .result = &result, .index = catalog_index(core->catalog, index)};

    *ret_path = SLICE_NONE;
    at.type = at.index == NULL ? NULL : mapping_type(at.index->mapping, type);
    if (at.type == NULL || mapping_path_field(at.index->mapping) == NULL || id.len > DOC_ID_BYTES_MAX)
        return 0;
    work.view = core__view(core, overlay);
    at.key = doc_key(arena_alloc(&core->arena, DOC_KEY_BYTES_MAX), at.index->number, at.type->number, id);
    int r = write_executor__load(&work, &at);
    if (r == 0 && at.state.live)
        *ret_path = stored_path(core, &at, SLICE_NONE);
    doc_release(&at.old);
    return r;
}
