/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One item of a write. README.md, "A write, item by item". The order of the checks is Elasticsearch's, since it decides
 * which of several errors a client sees: index, routing, the source against the mapping, the version.
 */
#include "core/catalog/catalog.h"
#include "core/catalog/cluster_settings.h"
#include "core/catalog/counter.h"
#include "core/catalog/index.h"
#include "core/documents/doc.h"
#include "core/documents/doc_multiget.h"
#include "core/documents/prefetch.h"
#include "core/documents/update.h"
#include "core/documents/session_tombstone.h"
#include "core/documents/version.h"
#include "core/documents/write.h"
#include "core/documents/write_internal.h"
#include "core/step/command.h"
#include "core/step/hooks.h"
#include "core/step/unit.h"
#include "core/step/work.h"
#include "core/tree/empty_paths.h"
#include "core/tree/tree.h"
#include "core/tree/tree_write.h"
#include "mapping/shard.h"

/* --- Index, type, routing ----------------------------------------------------------------------------------------- */

bool write__creates_index(const struct write_item *item)
{
    return item->op != WRITE_DELETE || item->dialect == DIALECT_5 || item->version_type != VERSION_INTERNAL;
}

/* Makes the index that a write lacks, if writes may. Returns: 0, also where it is to be told as missing; WRITE_ITEM_FAILED. */
static int make_index(struct write_executor *work, const struct write_item *item, struct problem *problem)
{
    struct core *core = work->core;
    struct arena *arena = work->run->arena;
    if (cluster_settings__may_create(core->catalog, item->index, arena, problem) == 0)
        return index__auto_create(core, item->index, item->type, item->dialect, arena, problem) == 0
                   ? 0
                   : WRITE_ITEM_FAILED;
    if (problem->type == PROBLEM_NONE)
        return 0;
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);
    buf_json_string(&quoted, item->index);
    problem_details(problem, arena, "\"index_uuid\":\"_na_\",\"index\":%.*s", SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
    return WRITE_ITEM_FAILED;
}

/* The client insists on an alias, and the name is none. */
static int fail_no_alias(struct write_executor *work, struct write_item_state *at)
{
    struct slice name = at->item->index;
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);

    buf_json_string(&quoted, name);
    problem_set(&at->result->problem, work->run->arena, PROBLEM_INDEX_NOT_FOUND,
                "no such index [%.*s] and [require_alias] request flag is [true] and [%.*s] is not an alias",
                SLICE_ARG(name), SLICE_ARG(name));
    problem_details(&at->result->problem, work->run->arena, "\"index_uuid\":\"_na_\",\"index\":%.*s",
                    SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
    return WRITE_ITEM_FAILED;
}

static int find_index(struct write_executor *work, struct write_item_state *at)
{
    struct core *core = work->core;
    const struct write_item *item = at->item;
    struct problem *problem = &at->result->problem;
    bool missing = catalog_index(core->catalog, item->index) == NULL && !catalog_has_alias(core->catalog, item->index);

    if (item->require_alias && !catalog_has_alias(core->catalog, item->index))
        return fail_no_alias(work, at);
    if (missing && write__creates_index(item) && make_index(work, item, problem) != 0)
        return WRITE_ITEM_FAILED;
    if (catalog_find_any(core->catalog, item->index, true, item->dialect, work->run->arena, &at->index, &at->alias,
                         problem) != 0)
        return WRITE_ITEM_FAILED;
    if (work->run->cleanup)
        return 0;
    if (at->index->closed) {
        catalog_problem_closed(work->run->arena, at->index, at->item->dialect, problem);
        return WRITE_ITEM_FAILED;
    }
    if (at->index->write_block != NULL) {
        catalog_problem_blocked(work->run->arena, at->index->name, at->index->write_block, problem);
        return WRITE_ITEM_FAILED;
    }
    return 0;
}

static int find_routing(struct write_executor *work, struct write_item_state *at)
{
    struct slice own = at->item->routing;
    struct slice aliased = at->alias == NULL ? SLICE_NONE : at->alias->index_routing;

    if (own.len > 0)
        at->routing = own;
    if (aliased.data == NULL)
        return 0;
    if (own.len > 0 && !slice_equal(own, aliased)) {
        problem_set(&at->result->problem, work->run->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "Alias [%.*s] has index routing associated with it [%.*s], and was provided with routing value "
                    "[%.*s], rejecting operation",
                    SLICE_ARG(at->item->index), SLICE_ARG(aliased), SLICE_ARG(own));
        return WRITE_ITEM_FAILED;
    }
    at->routing = arena_copy(work->run->arena, aliased);
    return 0;
}

static int check_routing(struct write_executor *work, struct write_item_state *at)
{
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);

    if (at->type == NULL || !at->type->routing_required || at->routing.data != NULL)
        return 0;
    problem_set(&at->result->problem, work->run->arena, PROBLEM_ROUTING_MISSING,
                "routing is required for [%.*s]/[%.*s]/[%.*s]", SLICE_ARG(at->index->name),
                SLICE_ARG(write_executor__type_text(at)), SLICE_ARG(at->item->id));
    buf_json_string(&quoted, at->index->name);
    problem_details(&at->result->problem, work->run->arena, "\"index_uuid\":\"_na_\",\"index\":%.*s",
                    SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
    return WRITE_ITEM_FAILED;
}

static void make_key(struct write_executor *work, struct write_item_state *at)
{
    char *bytes = arena_alloc(&work->core->scratch, DOC_KEY_PREFIX_BYTES + at->item->id.len);

    at->key = doc_key(bytes, at->index->number, at->type->number, at->item->id);
}

/* A typeless request means `_doc`, which in turn means an index's only type, whatever its name (mapping.h). */
static struct slice type_wanted(const struct write_item_state *at)
{
    return at->item->type.len > 0 ? at->item->type : SLICE_LIT("_doc");
}

int write_executor__find(struct write_executor *work, struct write_item_state *at)
{
    int r = find_index(work, at);

    if (r == 0)
        r = find_routing(work, at);
    if (r != 0)
        return r;
    at->type = mapping_type(at->index->mapping, type_wanted(at));
    write_executor__set_names(work, at);
    r = check_routing(work, at);
    if (r == 0 && at->type != NULL)
        make_key(work, at);
    return r;
}

/* Finds an index and type again after the catalog has changed under them. */
static void find_again(struct write_executor *work, struct write_item_state *at, uint32_t number)
{
    at->index = catalog_index_by_number(work->core->catalog, number);
    if (at->alias != NULL)
        at->alias = catalog_index_alias(at->index, at->item->index);
    at->type = mapping_type(at->index->mapping, type_wanted(at));
}

/* Indices of 7.x have one type. Returns: 0, WRITE_ITEM_FAILED. */
static int refuse_second_type(const struct write_executor *work, struct write_item_state *at)
{
    if (at->index->dialect == DIALECT_7 && type_wanted(at).data[0] == '_' && !slice_is(type_wanted(at), "_doc")) {
        problem_set(&at->result->problem, work->run->arena, PROBLEM_INVALID_TYPE_NAME,
                    "mapping type name [%.*s] can't start with '_' unless it is called [_doc]",
                    SLICE_ARG(type_wanted(at)));
        return WRITE_ITEM_FAILED; /* most often a call's name, misspelt: it says nothing of a write */
    }
    return index__check_type(at->index, type_wanted(at), work->run->arena, &at->result->problem) == 0
               ? 0
               : WRITE_ITEM_FAILED;
}

int write_executor__ensure_type(struct write_executor *work, struct write_item_state *at)
{
    tl_cleanup(mapping_unrefp) struct mapping *mapping = NULL;
    bool hidden = at->item->op == WRITE_DELETE;

    if (at->type != NULL && (hidden || !at->type->hidden))
        return 0;
    if (at->type == NULL && refuse_second_type(work, at) != 0)
        return WRITE_ITEM_FAILED;
    if (mapping_ensure_type(at->index->mapping, type_wanted(at), hidden, at->item->dialect, work->run->arena, &mapping,
                            &at->result->problem) != 0)
        return WRITE_ITEM_FAILED;
    uint32_t number = at->index->number;
    index__put_mapping(work->core, at->index, mapping, at->item->dialect);
    find_again(work, at, number);
    write_executor__set_names(work, at);
    make_key(work, at);
    return check_routing(work, at);
}

/* --- What is there ------------------------------------------------------------------------------------------------ */

/* Whether a tombstone's version counts still. */
static bool counts_still(const struct core *core, const struct doc *doc)
{
    return !doc->deleted || doc->ts >= core->purge_horizons.tombstones;
}

/* Begins the walk over what a bulk replaces, from its first id to its last. */
static void begin_walk(struct write_executor *work, const struct write_item_state *at)
{
    const struct write_item *last = &work->run->items[work->run->count - 1];
    char bytes[DOC_KEY_BYTES_MAX];

    work->walks = false;
    if (last->id.len <= DOC_ID_BYTES_MAX)
        work->walk =
            doc_multiget_new(&work->committed, at->key, doc_key(bytes, at->index->number, at->type->number, last->id));
}

/* By the walk, which does not know what the transaction itself has written. Returns: as doc_multiget_get(). */
static int read_by_walk(struct write_executor *work, struct write_item_state *at)
{
    const struct overlay *overlay = work->sink.overlay;
    struct slice value;

    if (work->walk == NULL ||
        (overlay != NULL && overlay_get(overlay, SPACE_DOCUMENTS, at->key, &value) != STORE_NOT_FOUND))
        return DOC_MULTIGET_UNKNOWN;
    return doc_multiget_get(work->walk, at->key, &at->old);
}

/* Returns: what the unit has written over a document, unless the transaction has one of its own; NULL: nothing. */
static const struct doc *find_pending(const struct write_executor *work, const struct write_item_state *at)
{
    const struct overlay *overlay = work->sink.overlay;
    struct slice value;

    if (work->core->pending.count == 0 ||
        (overlay != NULL && overlay_get(overlay, SPACE_DOCUMENTS, at->key, &value) != STORE_NOT_FOUND))
        return NULL;
    return map_get(&work->core->pending, at->key);
}

/* What renames have made of what is there: of what went with its session, those before it went. */
static int stand(struct write_executor *work, struct write_item_state *at)
{
    bool sweeps = work->run != NULL && work->run->purge;
    tl_ts went = TL_TS_MAX;
    int r = sweeps && at->old.path_tracked ? session_tombstone_ts(work->core->store, at->key, &at->old, &went) : 0;

    return r == 0 ? doc_apply_renames_as_of(&work->view, &work->core->tree_pending, at->index->number,
                                    went == TL_TS_MAX ? 0 : went, &at->old)
                  : r;
}

static int read_old(struct write_executor *work, struct write_item_state *at)
{
    const struct doc *pending = find_pending(work, at);

    if (pending != NULL) {
        at->old = *pending;
        return 0;
    }
    const struct prefetch *seen = at->item->prefetch;
    if (seen != NULL && work->sink.overlay == NULL && prefetch_is_valid(seen, &work->core->recent_writes, at->key)) {
        at->old = seen->doc;
        at->old.value = (struct store_value){0}; /* the command's */
        return seen->found ? 0 : DOC_NOT_FOUND;
    }
    if (work->walks)
        begin_walk(work, at);
    int r = read_by_walk(work, at);
    if (r == DOC_MULTIGET_UNKNOWN)
        r = doc_get_stored(&work->view, at->index->number, at->type->number, at->item->id, &at->old);
    return r == 0 ? stand(work, at) : r;
}

/* Whether a document that is in the store went with its session. Returns: 0, 1; fatal codes. */
static int went_with_session(const struct write_executor *work, const struct write_item_state *at, const struct doc *doc)
{
    struct view view = work->view;
    bool sweeps = work->run != NULL && work->run->purge;

    if (doc->deleted || doc->lease.data == NULL || sweeps || !owners__any_terminating(work->core))
        return 0;
    return session_tombstone_hides(&view, at->key, doc);
}

int write_executor__load(struct write_executor *work, struct write_item_state *at)
{
    int r = DOC_NOT_FOUND;

    core__work(work->core, WORK_READ); /* also where the submitter has read it: the count must not depend on that */
    at->state = (struct version_state){false, VERSION_NOT_FOUND, SEQ_NO_ANY};
    if (at->type != NULL && !at->item->id_generated)
        r = read_old(work, at);
    if (r == DOC_NOT_FOUND)
        return 0;
    if (r != 0)
        return r > 0 ? tl_trace(TL_ERR_CORRUPT) : tl_trace(r);
    r = went_with_session(work, at, &at->old);
    if (r < 0)
        return tl_trace(r);
    at->has_old = counts_still(work->core, &at->old);
    if (at->has_old)
        at->state = (struct version_state){!at->old.deleted && r == 0, at->old.version, at->old.seq_no};
    else
        doc_release(&at->old);
    return 0;
}

static int fail_conflict(struct write_executor *work, struct write_item_state *at, enum conflict_kind conflict)
{
    struct write_result *result = at->result;
    struct buf words = BUF_INIT(BUF_UNLIMITED);
    struct slice type = write_executor__type_text(at);

    version__explain(&words, conflict, at->item, &at->state);
    if (at->item->dialect == DIALECT_5)
        problem_set(&result->problem, work->run->arena, PROBLEM_VERSION_CONFLICT,
                    "[%.*s][%.*s]: version conflict, %.*s", SLICE_ARG(type), SLICE_ARG(at->item->id),
                    SLICE_ARG(buf_as_slice(&words)));
    else
        problem_set(&result->problem, work->run->arena, PROBLEM_VERSION_CONFLICT, "[%.*s]: version conflict, %.*s",
                    SLICE_ARG(at->item->id), SLICE_ARG(buf_as_slice(&words)));
    buf_deinit(&words);
    write_executor__shard_details(work, at);
    if (at->item->op == WRITE_INDEX || at->item->op == WRITE_CREATE)
        catalog_index_count_stat(at->index, INDEX_STAT_FAILED, 1);
    result->conflict = conflict;
    result->version = at->state.version;
    result->seq_no = at->state.seq_no;
    return WRITE_ITEM_FAILED;
}

int write_executor__check_version(struct write_executor *work, struct write_item_state *at, bool create)
{
    enum conflict_kind conflict = version__check(at->item, &at->state, create);

    return conflict == CONFLICT_NONE ? 0 : fail_conflict(work, at, conflict);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

/* What was parsed to find out where the document will lie (write_targets.c), if that holds still. */
static bool parsed_before(const struct write_executor *work, const struct write_item_state *at, struct document *ret_document)
{
    const struct write_run *run = work->run;
    const struct write_parsed *parsed = run->parsed == NULL ? NULL : &run->parsed[at->item - run->items];

    if (parsed == NULL || parsed->mapping != at->index->mapping || parsed->type != at->type)
        return false;
    *ret_document = parsed->document;
    return true;
}

static int parse(struct write_executor *work, struct write_item_state *at, struct slice source, const struct json_doc *parsed,
                 struct document *ret_document)
{
    const struct mapping *mapping = at->index->mapping;
    struct arena *arena = &work->core->scratch;
    struct problem problem;
    int r = parsed != NULL ? document_parse_json(mapping, at->type, at->item->id, parsed, at->item->dialect, arena,
                                                 ret_document, &problem)
                           : document_parse(mapping, at->type, at->item->id, source, at->item->dialect, arena,
                                            ret_document, &problem);

    if (r != 0) {
        problem_copy(&at->result->problem, &problem, work->run->arena);
        return WRITE_ITEM_FAILED;
    }
    if (ret_document->update != NULL) {
        uint32_t number = at->index->number;
        core__put_mapping(work->core, number, ret_document->update);
        find_again(work, at, number);
    }
    return 0;
}

/* Fills what every change tells. */
static void tell(struct write_item_state *at, enum write_outcome outcome, const struct doc *doc)
{
    at->result->outcome = outcome;
    at->result->version = doc->version;
    at->result->seq_no = doc->seq_no;
    at->result->routing = doc->routing;
}

static int take_version(struct write_executor *work, struct write_item_state *at, struct doc *doc)
{
    doc->version = version__next(at->item, &at->state);
    if (doc->version < 0) {
        problem_set(&at->result->problem, work->run->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "the version of [%.*s] cannot be raised any more", SLICE_ARG(at->item->id));
        return WRITE_ITEM_FAILED;
    }
    doc->ts = work->core->ts;
    doc->seq_no = counter__take_seq_no(&work->core->counters, counters__of(&work->core->counters, at->index->number),
                                       at->type->number);
    return 0;
}

/* Whether locks allow the document to lie where its path says. */
static int check_place(struct write_executor *work, struct write_item_state *at, const struct document *document)
{
    const struct write_path_check *placing = work->run->path_check;
    struct write_target to = {
        .index = at->index->name, .type = at->type->name, .id = at->item->id, .new_path = document->place};

    if (placing == NULL || placing->allowed(placing->context, &to, work->run->arena, &at->result->problem))
        return 0;
    return WRITE_ITEM_FAILED;
}

static int check_lease(struct write_executor *work, struct write_item_state *at)
{
    if (at->item->lease.len == 0)
        return 0;
    return owners__check_ephemeral(work->core, at->item->lease, work->run->arena, &at->result->problem) == 0
               ? 0
               : WRITE_ITEM_FAILED;
}

/* Whether the session may have one more, if it is one more. */
static int check_lease_count(struct write_executor *work, struct write_item_state *at, struct slice lease)
{
    if (lease.data == NULL || (at->state.live && slice_equal(at->old.lease, lease)))
        return 0;
    return owners__check_ephemeral_count(work->core, lease, 1, work->run->arena, &at->result->problem) == 0
               ? 0
               : WRITE_ITEM_FAILED;
}

struct tree_writer write_executor__tree_writer(struct write_executor *work, const struct catalog_index *index)
{
    struct core *core = work->core;

    return (struct tree_writer){.tree = {.view = &work->view,
                                         .index = index->number,
                                         .delimiter = mapping_path_delimiter(index->mapping),
                                         .pending = &core->tree_pending},
                                .overlay = work->sink.overlay,
                                .batch = core->batch,
                                .pending = &core->tree_pending,
                                .ts = core->ts,
                                .origins_created = &core->origins_created};
}

/* Finds what the document is born as, where renames can move it. From here on the item must not fail. */
static int be_born(struct write_executor *work, struct write_item_state *at, const struct document *document, struct doc *doc)
{
    struct tree_writer writer = write_executor__tree_writer(work, at->index);

    if (document->path.data == NULL || !mapping_is_tree(at->index->mapping))
        return 0;
    int r = tree_resolve_or_create(&writer, document->path, &work->core->arena, &doc->origin, &doc->rename_base);
    if (r != 0)
        return tl_trace(r);
    if (work->sink.overlay == NULL)
        empty_paths_invalidate(&work->core->empty_paths, at->index->number, document->path);
    doc->path_tracked = true;
    doc->path_offset = (size_t)(document->path_raw.data - document->json.source.data);
    doc->path_len = document->path_raw.len;
    if (doc->origin.data != document->path.data)
        return 0;
    /* What it points to may go when entries are flushed. */
    bool as_written = slice_equal(document->path, document->path_raw);
    doc->origin = as_written ? slice_make(doc->source.data + doc->path_offset, doc->path_len)
                            : arena_copy(&work->core->arena, document->path);
    return 0;
}

/* Has the tree know whose version renames may come to the end of, as a client may have given it. */
static void note_version(struct write_executor *work, const struct write_item_state *at, const struct doc *doc)
{
    bool high = doc->path_tracked && doc->version >= TREE_VERSION_HIGH;
    struct tree_writer writer;

    if (!high && !(at->has_old && at->old.version >= TREE_VERSION_HIGH && mapping_is_tree(at->index->mapping)))
        return;
    writer = write_executor__tree_writer(work, at->index);
    tree_set_version_high(&writer, slice_from_offset(at->key, sizeof(uint32_t)), high);
}

/* Puts a parsed source in place of what is there. */
static int put(struct write_executor *work, struct write_item_state *at, const struct document *document, struct slice source,
               struct slice lease)
{
    struct doc doc = {.routing = at->routing, .lease = lease, .source = source};
    int r = check_place(work, at, document);

    if (r == 0)
        r = check_lease_count(work, at, lease);
    if (r == 0)
        r = take_version(work, at, &doc);
    doc.stored = doc.source;
    doc.stored_seq_no = doc.seq_no;
    if (r == 0)
        r = be_born(work, at, document, &doc);
    if (r == 0)
        note_version(work, at, &doc);
    if (r == 0)
        r = write_executor__change_entries(work, at, document, &doc);
    if (r == 0)
        r = write_executor__record(work, at, &doc);
    if (r == 0)
        tell(at, at->state.live ? WRITE_UPDATED : WRITE_CREATED, &doc);
    return r;
}

static int check_limits(struct write_executor *work, struct write_item_state *at, struct slice source)
{
    if (source.len <= work->core->limits.document_bytes_max)
        return 0;
    problem_set(&at->result->problem, work->run->arena, PROBLEM_CONTENT_TOO_LARGE,
                "the document has %zu bytes, more than the limit of %zu", source.len,
                work->core->limits.document_bytes_max);
    return WRITE_ITEM_FAILED;
}

static int run_index(struct write_executor *work, struct write_item_state *at)
{
    const struct write_item *item = at->item;
    struct document document = {0};
    int r = write_executor__ensure_type(work, at);

    if (r == 0)
        r = check_limits(work, at, item->source);
    if (r == 0)
        r = check_lease(work, at);
    if (r == 0 && !parsed_before(work, at, &document))
        r = parse(work, at, item->source, item->parsed, &document);
    if (r == 0)
        r = write_executor__load(work, at);
    if (r == 0)
        r = write_executor__check_version(work, at, item->op == WRITE_CREATE);
    if (r == 0)
        r = put(work, at, &document, item->source, item->lease.len > 0 ? item->lease : SLICE_NONE);
    document_release(&document);
    return r;
}

/* Of what is there, also when that has been released. */
static struct slice routing_kept(const struct write_executor *work, const struct write_item_state *at)
{
    return at->old.routing.data == NULL ? SLICE_NONE : arena_copy(work->run->arena, at->old.routing);
}

/*
 * Deletes what is there, if anything: a tombstone is written in either case. It keeps the document's routing, by which a copy elsewhere finds
 * the document that is to go there, too.
 */
static int remove_document(struct write_executor *work, struct write_item_state *at)
{
    struct doc doc = {.deleted = true, .routing = at->has_old ? routing_kept(work, at) : at->routing};
    int r = take_version(work, at, &doc);

    if (r == 0)
        note_version(work, at, &doc);
    if (r == 0)
        r = write_executor__remove_entries(work, at);
    if (r == 0)
        r = write_executor__record(work, at, &doc);
    if (r == 0)
        tell(at, at->state.live ? WRITE_DELETED : WRITE_NOT_FOUND, &doc);
    return r;
}

/*
 * Whether the request would have been sent to the shard that has the document, or its tombstone. In Elasticsearch it is
 * not there for anybody who names another routing.
 */
static bool routing_leads_there(const struct write_item_state *at)
{
    struct slice asked = at->routing.len > 0 ? at->routing : at->item->id;
    struct slice kept = at->old.routing.len > 0 ? at->old.routing : at->item->id;

    return shard_of(asked, at->index->shard_count) == shard_of(kept, at->index->shard_count);
}

/* A delete that finds nothing and leaves what is there alone. */
static int miss_document(struct write_executor *work, struct write_item_state *at)
{
    struct doc doc = {.deleted = true};

    at->state = (struct version_state){false, VERSION_NOT_FOUND, SEQ_NO_ANY};
    int r = take_version(work, at, &doc);
    if (r == 0)
        tell(at, WRITE_NOT_FOUND, &doc);
    return r;
}

static int run_delete(struct write_executor *work, struct write_item_state *at)
{
    int r = write_executor__ensure_type(work, at);

    if (r == 0 && at->item->id.len > DOC_ID_BYTES_MAX)
        return miss_document(work, at); /* no document has such an id */
    if (r == 0)
        r = write_executor__load(work, at);
    if (r == 0 && at->item->only_session.len > 0 &&
        (!at->state.live || !slice_equal(at->old.lease, at->item->only_session))) { /* it is somebody else's by now */
        at->result->outcome = WRITE_NOOP;
        return 0;
    }
    if (r == 0 && at->has_old && !routing_leads_there(at))
        return miss_document(work, at);
    if (r == 0)
        r = write_executor__check_version(work, at, false);
    return r == 0 ? remove_document(work, at) : r;
}

/* --- Updating ----------------------------------------------------------------------------------------------------- */

static int fail_missing(struct write_executor *work, struct write_item_state *at)
{
    problem_set(&at->result->problem, work->run->arena, PROBLEM_DOCUMENT_MISSING, "[%.*s][%.*s]: document missing",
                SLICE_ARG(write_executor__type_text(at)), SLICE_ARG(at->item->id));
    write_executor__shard_details(work, at);
    at->result->version = VERSION_NOT_FOUND;
    at->result->seq_no = SEQ_NO_ANY;
    return WRITE_ITEM_FAILED;
}

/*
 * The routing that an update leaves to a document that was there: its own; but that of a call with a doc is the doc's, too, and
 * an alias gives its routing to a document that has none.
 */
static struct slice routing_left(const struct write_executor *work, const struct write_item_state *at)
{
    const struct write_update *asked = at->item->update;

    if (asked->single && asked->doc.data != NULL && at->item->routing.len > 0)
        return at->item->routing;
    if (asked->single && at->old.routing.data == NULL && at->alias != NULL)
        return at->routing;
    return routing_kept(work, at);
}

static int put_updated(struct write_executor *work, struct write_item_state *at, const struct update *update)
{
    struct slice lease = at->state.live ? at->old.lease : SLICE_NONE;
    struct document document = {0};
    int r = write_executor__ensure_type(work, at);

    if (at->item->lease.len > 0)
        lease = at->item->lease;
    if (update->old != NULL)
        at->routing = routing_left(work, at);
    if (lease.data != NULL)
        lease = arena_copy(work->run->arena, lease);
    if (r == 0)
        r = check_limits(work, at, update->source);
    if (r == 0)
        r = check_lease(work, at);
    if (r == 0)
        r = parse(work, at, update->source, NULL, &document);
    if (r == 0)
        r = put(work, at, &document, update->source, lease);
    document_release(&document);
    return r;
}

static void tell_noop(struct write_executor *work, struct write_item_state *at)
{
    catalog_index_count_stat(at->index, INDEX_STAT_NOOPS, 1);
    at->result->outcome = WRITE_NOOP;
    at->result->version = at->state.live ? at->state.version : VERSION_NOT_FOUND;
    at->result->seq_no = at->state.live ? at->state.seq_no : SEQ_NO_ANY;
    at->result->routing =
        at->state.live && at->old.routing.data != NULL ? arena_copy(work->run->arena, at->old.routing) : SLICE_NONE;
}

/* What an update makes anew is created under the update's own condition, which no missing document has met. */
static int check_made(struct write_executor *work, struct write_item_state *at)
{
    const struct write_item *item = at->item;

    if (item->version == VERSION_ANY || !item->update->single || at->item->dialect != DIALECT_5)
        return write_executor__check_version(work, at, true);
    problem_set(&at->result->problem, work->run->arena, PROBLEM_ACTION_REQUEST_VALIDATION,
                "Validation Failed: 1: create operations %s. use index instead;",
                item->version_type == VERSION_INTERNAL ? "do not support explicit versions"
                                                       : "only support internal versioning");
    return WRITE_ITEM_FAILED;
}

static int act(struct write_executor *work, struct write_item_state *at, const struct update *update)
{
    bool shown = at->item->update->want_source && update->source.data != NULL;
    int r = update->op == UPDATE_CREATE ? check_made(work, at) : 0;

    if (r != 0)
        return r;
    /* Before anything is done: of a delete it is the old one, and may lie in what the transaction is about to write over. */
    struct slice source = shown ? arena_copy(work->run->arena, update->source) : SLICE_NONE;
    if (update->op == UPDATE_INDEX || update->op == UPDATE_CREATE)
        r = put_updated(work, at, update);
    else if (update->op == UPDATE_DELETE)
        r = remove_document(work, at);
    else
        tell_noop(work, at);
    if (r == 0)
        at->result->source = source;
    return r;
}

static int run_update(struct write_executor *work, struct write_item_state *at)
{
    struct update update = write_executor__update(work, at, work->run->arena);
    int r = write_executor__load(work, at);

    if (r == 0 && at->state.live)
        r = write_executor__check_version(work, at, false);
    if (r != 0)
        return r;
    update.old = at->state.live && routing_leads_there(at) ? &at->old : NULL;
    if (update.old != NULL)
        write_executor__count_source(work, at->old.source, 0);
    r = update_run(&update, &at->result->problem);
    write_executor__count_script(work, &update);
    at->result->script_long = update.script_long;
    at->result->script_exhausted = update.script_exhausted;
    if (r == UPDATE_MISSING)
        return fail_missing(work, at);
    if (r != 0)
        return r < 0 ? tl_trace(r) : WRITE_ITEM_FAILED;
    return act(work, at, &update);
}

/* --- What went with a session ------------------------------------------------------------------------------------- */

/* The rest of what went with its session is swept away, whoever looks. Requires: the item's key. */
static int sweep_away(struct write_executor *work, const struct write_item_state *at, const struct doc *doc)
{
    struct core *core = work->core;
    struct arena *arena = &core->arena;
    struct write_item *item = arena_zalloc(arena, sizeof(*item));
    struct write_result *result = arena_zalloc(arena, sizeof(*result));
    struct write_run run = {
        .items = item, .count = 1, .cleanup = true, .purge = true, .arena = arena, .results = result};
    bool failed;

    *item = write__removal_of(arena, at->index, at->type, at->item->id, doc->lease, doc->routing);
    write_executor__flush_entries(work); /* the run needs the scratch arena */
    return write__run(core, &run, &failed);
}

/*
 * Before an item takes the place of what went with its session, that is swept away for good, in the unit itself, whatever becomes of
 * the item and of its transaction. So the item finds a tombstone, as it will be later.
 */
static int clear_place(struct write_executor *work, struct write_item_state *at)
{
    struct doc doc;

    if (at->type == NULL || work->run->purge || !owners__any_terminating(work->core) ||
        at->item->id.len > DOC_ID_BYTES_MAX ||
        (work->core->pending.count > 0 && map_get(&work->core->pending, at->key) != NULL))
        return 0;
    int r = doc_get_any(&work->view, at->index->number, at->type->number, at->item->id, &doc);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    r = went_with_session(work, at, &doc);
    if (r == 1) {
        r = sweep_away(work, at, &doc);
        make_key(work, at);
    }
    doc_release(&doc);
    return r;
}

/* --- An item ------------------------------------------------------------------------------------------------------ */

static int check_id(struct write_executor *work, struct write_item_state *at)
{
    size_t len = at->item->id.len;

    if (len > 0 && (len <= DOC_ID_BYTES_MAX || at->item->op == WRITE_DELETE))
        return 0;
    if (len == 0)
        problem_set(&at->result->problem, work->run->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "if _id is specified it must not be empty");
    else
        problem_set(&at->result->problem, work->run->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "id is too long, must be no longer than %d bytes but was: %zu", DOC_ID_BYTES_MAX, len);
    return WRITE_ITEM_FAILED;
}

int write_executor__item(struct write_executor *work, const struct write_item *item, struct write_result *result)
{
    struct write_item_state at = {.item = item, .result = result};
    int r;

    core__work(work->core, WORK_ITEM);
    result->index = item->index;
    result->type = write_executor__type_text(&at);
    result->version = VERSION_NOT_FOUND;
    result->seq_no = SEQ_NO_ANY;
    r = check_id(work, &at);
    if (r == 0)
        r = write_executor__find(work, &at);
    if (r == 0)
        r = clear_place(work, &at);
    if (r == 0)
        r = item->op == WRITE_DELETE   ? run_delete(work, &at)
            : item->op == WRITE_UPDATE ? run_update(work, &at)
                                       : run_index(work, &at);
    doc_release(&at.old);
    return r;
}
