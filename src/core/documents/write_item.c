/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one item of a write. README.md, "A write, item by item". The order of the checks is
 * Elasticsearch's, since it decides which of several errors a client sees: index, routing, source
 * and mapping, version.
 */
#include "base/check.h"
#include "core/catalog/alias.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_change.h"
#include "core/catalog/cluster_settings.h"
#include "core/catalog/counter.h"
#include "core/catalog/index.h"
#include "core/catalog/setting_kind.h"
#include "core/command/command.h"
#include "core/documents/doc.h"
#include "core/documents/doc_multiget.h"
#include "core/documents/document_owners.h"
#include "core/documents/ephemeral.h"
#include "core/documents/prefetch.h"
#include "core/documents/session_tombstone.h"
#include "core/documents/update.h"
#include "core/documents/version.h"
#include "core/documents/write.h"
#include "core/documents/write_internal.h"
#include "core/tree/empty_paths.h"
#include "core/tree/tree.h"
#include "core/tree/tree_paths.h"
#include "core/tree/tree_write.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "mapping/shard.h"

/* --- Index, type, routing ----------------------------------------------------------------------------------------- */

bool write__creates_index(const struct write_item *item)
{
    return item->op != WRITE_DELETE || item->dialect == DIALECT_5 || item->version_type != VERSION_INTERNAL;
}

/*
 * Counts the comparison of a missing index with the patterns of those that may be created, which took so much work.
 * Before version 26 it counts by the bytes of the patterns alone.
 */
static void count_patterns(struct core *core, uint64_t work)
{
    struct arena_mark mark = arena_mark(&core->scratch);
    bool weighed = core->command_version >= COMMAND_SINCE_PATTERNS_WEIGHED;

    if (!weighed)
        work = cluster_setting(core->catalog, "action.auto_create_index", &core->scratch).len / WORK_PATTERN_BYTES;
    if (weighed || core->command_version >= COMMAND_SINCE_CATALOG_WEIGHED)
        core__work_mapping(core, work);
    arena_rewind(&core->scratch, mark);
}

/*
 * Checks that an item may add to the catalog, before it has an effect. Cleanup actions may not while memory is full: of
 * other items the submitter has asked, and the removal of a document adds nothing. Returns: 0; WRITE_ITEM_FAILED.
 */
static int check_memory(struct write_executor *exec, const struct write_item *item, struct write_result *result)
{
    if (!exec->core->memory_full || !exec->run->cleanup || item->only_session.len > 0)
        return 0;
    result->lacks_memory = true;
    problem_set(&result->problem, exec->run->arena, PROBLEM_LIMIT_EXCEEDED,
                "the server has no memory for more indices and fields");
    return WRITE_ITEM_FAILED;
}

/*
 * Creates the missing index, if that is allowed. Returns: 0, also if the caller has to report the
 * missing index; WRITE_ITEM_FAILED.
 */
static int create_index(struct write_executor *exec, const struct write_item *item, struct write_result *result)
{
    struct core *core = exec->core;
    struct problem *problem = &result->problem;
    struct arena *arena = exec->run->arena;
    const enum setting_rules rules = setting__rules(core->command_version);
    uint64_t work;
    int r = cluster_settings__may_create(core->catalog, item->index, rules, arena, &work, problem);
    count_patterns(core, work);
    if (r == 0)
        return check_memory(exec, item, result) == 0 &&
                       index__auto_create(core, item->index, item->type, item->dialect, arena, problem) == 0
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

/* The request requires an alias, but the name is not one. */
static int fail_no_alias(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->item->require_alias);
    struct slice name = at->item->index;
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);

    buf_json_string(&quoted, name);
    problem_set(&at->result->problem, exec->run->arena, PROBLEM_INDEX_NOT_FOUND,
                "no such index [%.*s] and [require_alias] request flag is [true] and [%.*s] is not an alias",
                SLICE_ARG(name), SLICE_ARG(name));
    problem_details(&at->result->problem, exec->run->arena, "\"index_uuid\":\"_na_\",\"index\":%.*s",
                    SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
    return WRITE_ITEM_FAILED;
}

/* The look-up renews the table of aliases, after an item that has created an index. */
static bool is_alias(struct core *core, const struct write_item *item, bool missing)
{
    bool counts = missing || core->command_version >= COMMAND_SINCE_ALIASES_CHECKED;

    return counts ? alias__exists(core, item->index) : catalog_has_alias(core->catalog, item->index);
}

static int find_index(struct write_executor *exec, struct write_item_state *at)
{
    struct core *core = exec->core;
    const struct write_item *item = at->item;
    struct problem *problem = &at->result->problem;
    bool missing = catalog_index(core->catalog, item->index) == NULL;
    bool alias = (missing || item->require_alias) && is_alias(core, item, missing);

    if (item->require_alias && !alias)
        return fail_no_alias(exec, at);
    if (missing && !alias && write__creates_index(item) && create_index(exec, item, at->result) != 0)
        return WRITE_ITEM_FAILED;
    if (catalog_find_any(core->catalog, item->index, true, item->dialect, exec->run->arena, &at->index, &at->alias,
                         problem) != 0)
        return WRITE_ITEM_FAILED;
    if (exec->run->cleanup)
        return 0;
    if (at->index->closed) {
        catalog_problem_closed(exec->run->arena, at->index, at->item->dialect, problem);
        return WRITE_ITEM_FAILED;
    }
    if (at->index->write_block != NULL) {
        catalog_problem_blocked(exec->run->arena, at->index->name, at->index->write_block, problem);
        return WRITE_ITEM_FAILED;
    }
    return 0;
}

static int find_routing(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->index != NULL);
    struct slice own = at->item->routing;
    struct slice aliased = at->alias == NULL ? SLICE_NONE : at->alias->index_routing;

    if (own.len > 0)
        at->routing = own;
    if (aliased.data == NULL)
        return 0;
    if (own.len > 0 && !slice_equal(own, aliased)) {
        problem_set(&at->result->problem, exec->run->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "Alias [%.*s] has index routing associated with it [%.*s], and was provided with routing value "
                    "[%.*s], rejecting operation",
                    SLICE_ARG(at->item->index), SLICE_ARG(aliased), SLICE_ARG(own));
        return WRITE_ITEM_FAILED;
    }
    at->routing = arena_copy(exec->run->arena, aliased);
    return 0;
}

static int check_routing(struct write_executor *exec, struct write_item_state *at)
{
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);

    if (at->type == NULL || !at->type->routing_required || at->routing.data != NULL)
        return 0;
    problem_set(&at->result->problem, exec->run->arena, PROBLEM_ROUTING_MISSING,
                "routing is required for [%.*s]/[%.*s]/[%.*s]", SLICE_ARG(at->index->name),
                SLICE_ARG(write_executor__type_text(at)), SLICE_ARG(at->item->id));
    buf_json_string(&quoted, at->index->name);
    problem_details(&at->result->problem, exec->run->arena, "\"index_uuid\":\"_na_\",\"index\":%.*s",
                    SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
    return WRITE_ITEM_FAILED;
}

static void make_key(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->index != NULL && at->type != NULL);
    char *bytes = arena_alloc(&exec->core->scratch, DOC_KEY_PREFIX_BYTES + at->item->id.len);

    at->key = doc_key(bytes, at->index->number, at->type->number, at->item->id);
}

/*
 * A request without type means `_doc`, which in turn means the only type of an index (mapping.h).
 */
static struct slice requested_type(const struct write_item_state *at)
{
    return at->item->type.len > 0 ? at->item->type : SLICE_LIT("_doc");
}

int write_executor__find(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->index == NULL && at->type == NULL && at->result != NULL);
    int r = find_index(exec, at);

    if (r == 0)
        r = find_routing(exec, at);
    if (r != 0)
        return r;
    at->type = mapping_type(at->index->mapping, requested_type(at));
    write_executor__set_names(exec, at);
    r = check_routing(exec, at);
    if (r == 0 && at->type != NULL)
        make_key(exec, at);
    return r;
}

/* Finds index and type again after the catalog has changed. */
static void refind_index(struct write_executor *exec, struct write_item_state *at, uint32_t number)
{
    at->index = catalog_index_by_number(exec->core->catalog, number);
    INSIST(at->index != NULL); /* its mapping was replaced, nothing removed */
    if (at->alias != NULL)
        at->alias = catalog_index_alias(at->index, at->item->index);
    at->type = mapping_type(at->index->mapping, requested_type(at));
}

/* An index of 7.x has one type. Returns: 0; WRITE_ITEM_FAILED. */
static int refuse_second_type(const struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->type == NULL);
    if (at->index->dialect == DIALECT_7 && requested_type(at).data[0] == '_' && !slice_is(requested_type(at), "_doc")) {
        problem_set(&at->result->problem, exec->run->arena, PROBLEM_INVALID_TYPE_NAME,
                    "mapping type name [%.*s] can't start with '_' unless it is called [_doc]",
                    SLICE_ARG(requested_type(at)));
        return WRITE_ITEM_FAILED; /* usually a misspelt API name, so the message does not mention writes */
    }
    return index__check_type(at->index, requested_type(at), exec->run->arena, &at->result->problem) == 0
               ? 0
               : WRITE_ITEM_FAILED;
}

int write_executor__ensure_type(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->index != NULL);
    tl_cleanup(mapping_unrefp) struct mapping *mapping = NULL;
    bool hidden = at->item->op == WRITE_DELETE;

    if (at->type != NULL && (hidden || !at->type->hidden))
        return 0;
    if (at->type == NULL && (refuse_second_type(exec, at) != 0 || check_memory(exec, at->item, at->result) != 0))
        return WRITE_ITEM_FAILED;
    if (mapping_ensure_type(at->index->mapping, requested_type(at), hidden, at->item->dialect, exec->run->arena,
                            &mapping, &at->result->problem) != 0)
        return WRITE_ITEM_FAILED;
    uint32_t number = at->index->number;
    index__put_mapping(exec->core, at->index, mapping, at->item->dialect);
    refind_index(exec, at, number);
    write_executor__set_names(exec, at);
    make_key(exec, at);
    return check_routing(exec, at);
}

/* --- The previous version ----------------------------------------------------------------------------------------- */

/* Whether a version still counts; an old tombstone no longer does. Nearly all are live, and need no horizon. */
static bool version_counts(const struct core *core, const struct catalog_index *index, const struct doc *doc)
{
    if (!doc->deleted)
        return true;
    tl_ts horizon = core->command_version < COMMAND_SINCE_GC_DELETES ? core->purge_horizons.tombstones
                                                                     : index__deletes_horizon(core, index, core->ts);

    return doc->ts >= horizon;
}

/* Opens the multiget over the previous versions, from this id to the bulk's last. */
static void open_multiget(struct write_executor *exec, const struct write_item_state *at)
{
    REQUIRE(exec->multiget == NULL && at->type != NULL);
    const struct write_item *last = &exec->run->items[exec->run->count - 1];
    char bytes[DOC_KEY_BYTES_MAX];

    exec->use_multiget = false;
    if (last->id.len <= DOC_ID_BYTES_MAX)
        exec->multiget = doc_multiget_new(&exec->committed_view, at->key,
                                          doc_key(bytes, at->index->number, at->type->number, last->id));
}

/*
 * Reads by the multiget, which does not see the transaction's own writes. Returns: as
 * doc_multiget_get().
 */
static int read_by_multiget(struct write_executor *exec, struct write_item_state *at)
{
    const struct overlay *overlay = exec->sink.overlay;
    struct slice value;

    if (exec->multiget == NULL ||
        (overlay != NULL && overlay_get(overlay, SPACE_DOCUMENTS, at->key, &value) != STORE_NOT_FOUND))
        return DOC_MULTIGET_UNKNOWN;
    return doc_multiget_get(exec->multiget, at->key, &at->old);
}

/*
 * Returns: the document as written by this unit, unless the transaction has its own version; NULL:
 *   not written.
 */
static const struct doc *find_pending(const struct write_executor *exec, const struct write_item_state *at)
{
    const struct overlay *overlay = exec->sink.overlay;
    struct slice value;

    if (exec->core->pending.count == 0 ||
        (overlay != NULL && overlay_get(overlay, SPACE_DOCUMENTS, at->key, &value) != STORE_NOT_FOUND))
        return NULL;
    return map_get(&exec->core->pending, at->key);
}

/* Returns: the work of searching for the old document's path. Its levels are counted once. */
static uint64_t levels_work(struct write_item_state *at)
{
    if (!at->levels_counted)
        at->levels = doc_path_levels(&at->old, mapping_path_delimiter(at->index->mapping));
    at->levels_counted = true;
    return at->levels * WORK_LEVEL;
}

/* Finds the path of the previous version, and applies nothing else of the renames. */
static int find_old_path(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->load == WRITE_LOAD_PATH);
    struct core *core = exec->core;
    int r = doc_find_path(&exec->view, &core->tree_pending, at->index->number, exec->paths, &core->scratch, &at->old,
                          &at->old_path);

    core__work(core, tree_paths_take_reads(exec->paths) * WORK_LEVEL);
    return r;
}

/* Applies renames to the previous version, but not to its source. */
static int apply_renames_to_path(struct write_executor *exec, struct write_item_state *at)
{
    struct core *core = exec->core;
    struct arena_mark mark = arena_mark(&core->scratch);
    int r = doc_apply_renames_to_path(&exec->view, &core->tree_pending, at->index->number, &core->scratch, &at->old,
                                      &at->old_path);

    if (at->old_path.data != NULL)
        core__work(core, levels_work(at));
    if (at->load != WRITE_LOAD_PATH) {
        at->old_path = SLICE_NONE;
        arena_rewind(&core->scratch, mark);
    }
    return r;
}

/*
 * Applies renames to the previous version. In a purge, a document hidden by a session tombstone
 * gets only the renames before that.
 */
static int apply_renames(struct write_executor *exec, struct write_item_state *at)
{
    bool purges = exec->run != NULL && exec->run->purge;
    tl_ts hidden_ts = TL_TS_MAX;

    if (exec->paths != NULL)
        return find_old_path(exec, at);
    if (at->load != WRITE_LOAD_SOURCE && !purges)
        return apply_renames_to_path(exec, at);
    int r = purges && at->old.path_tracked ? session_tombstone_ts(exec->core->store, at->key, &at->old, &hidden_ts) : 0;

    return r == 0 ? doc_apply_renames_as_of(&exec->view, &exec->core->tree_pending, at->index->number,
                                            hidden_ts == TL_TS_MAX ? 0 : hidden_ts, &at->old)
                  : r;
}

static int read_old(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->type != NULL && at->key.len > 0);
    const struct doc *pending = find_pending(exec, at);

    if (pending != NULL) {
        at->old = *pending;
        return 0;
    }
    const struct prefetch *prefetch = at->item->prefetch;
    if (prefetch != NULL && exec->sink.overlay == NULL &&
        prefetch_is_valid(prefetch, &exec->core->recent_writes, at->key)) {
        at->old = prefetch->doc;
        at->old.value = (struct store_value){0}; /* owned by the command */
        return prefetch->found ? 0 : DOC_NOT_FOUND;
    }
    if (exec->use_multiget)
        open_multiget(exec, at);
    int r = read_by_multiget(exec, at);
    if (r == DOC_MULTIGET_UNKNOWN)
        r = doc_get_stored(&exec->view, at->index->number, at->type->number, at->item->id, &at->old);
    return r == 0 ? apply_renames(exec, at) : r;
}

/* Whether a session tombstone hides a stored document. Returns: 0; 1; fatal codes. */
static int is_hidden(const struct write_executor *exec, const struct write_item_state *at, const struct doc *doc)
{
    struct view view = exec->view;
    bool purges = exec->run != NULL && exec->run->purge;

    if (doc->deleted || doc->lease.data == NULL || purges || !exec->core->document_owners->any_terminating(exec->core))
        return 0;
    return session_tombstone_hides(&view, at->key, doc);
}

/* Counts the record of a previous version: as part of the document that a run writes, else of one of many. */
static void count_record(struct write_executor *exec, uint64_t units)
{
    exec->work += units;
    if (exec->run != NULL)
        core__work_document(exec->core, units);
    else
        core__work(exec->core, units);
}

int write_executor__load(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->index != NULL && !at->has_old && (at->type == NULL || at->key.len > 0));
    int r = DOC_NOT_FOUND;

    write_executor__work(exec, WORK_READ); /* also with a prefetch, so that the work does not depend on it */
    at->state = (struct version_state){false, VERSION_NOT_FOUND, SEQ_NO_ANY};
    at->levels_counted = false;
    at->in_unit = false;
    if (at->type != NULL && !at->item->id_generated)
        r = read_old(exec, at);
    if (r == DOC_NOT_FOUND)
        return 0;
    if (r != 0)
        return r > 0 ? tl_trace(TL_ERR_CORRUPT) : tl_trace(r);
    exec->work += levels_work(at); /* the step counts it where the renames are applied */
    count_record(exec, at->old.stored.len / WORK_READ_BYTES);
    r = is_hidden(exec, at, &at->old);
    if (r < 0)
        return tl_trace(r);
    at->in_unit = at->old.ts == exec->core->ts;
    at->has_old = version_counts(exec->core, at->index, &at->old);
    if (at->has_old)
        at->state = (struct version_state){!at->old.deleted && r == 0, at->old.version, at->old.seq_no};
    else
        doc_release(&at->old);
    ENSURE(at->has_old || !at->state.live);
    return 0;
}

static int fail_conflict(struct write_executor *exec, struct write_item_state *at, enum conflict_kind conflict,
                         const struct version_required *required)
{
    REQUIRE(conflict != CONFLICT_NONE);
    struct write_result *result = at->result;
    struct buf words = BUF_INIT(BUF_UNLIMITED);
    struct slice type = write_executor__type_text(at);

    version__explain(&words, conflict, required, &at->state);
    if (at->item->dialect == DIALECT_5)
        problem_set(&result->problem, exec->run->arena, PROBLEM_VERSION_CONFLICT,
                    "[%.*s][%.*s]: version conflict, %.*s", SLICE_ARG(type), SLICE_ARG(at->item->id),
                    SLICE_ARG(buf_as_slice(&words)));
    else
        problem_set(&result->problem, exec->run->arena, PROBLEM_VERSION_CONFLICT, "[%.*s]: version conflict, %.*s",
                    SLICE_ARG(at->item->id), SLICE_ARG(buf_as_slice(&words)));
    buf_deinit(&words);
    write_executor__shard_details(exec, at);
    if (at->item->op == WRITE_INDEX || at->item->op == WRITE_CREATE)
        catalog_index_count_stat(at->index, INDEX_STAT_FAILED, 1);
    result->conflict = conflict;
    result->version = at->state.version;
    result->seq_no = at->state.seq_no;
    return WRITE_ITEM_FAILED;
}

int write_executor__check_version(struct write_executor *exec, struct write_item_state *at, bool create)
{
    REQUIRE(at->index != NULL);
    const struct write_item *item = at->item;
    enum conflict_kind conflict = version__check(item, &at->state, create);
    struct version_required required = {item->version, item->if_seq_no, item->if_primary_term};

    return conflict == CONFLICT_NONE ? 0 : fail_conflict(exec, at, conflict, &required);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

/* Finds the document parsed by write_targets.c, if mapping and type are the same. */
static bool reuse_parsed(const struct write_executor *exec, const struct write_item_state *at,
                         struct document *ret_document)
{
    const struct write_run *run = exec->run;
    const struct write_parsed *parsed = run->parsed == NULL ? NULL : &run->parsed[at->item - run->items];

    INSIST(at->item >= run->items && (size_t)(at->item - run->items) < run->count);
    if (parsed == NULL || parsed->mapping != at->index->mapping || parsed->type != at->type)
        return false;
    *ret_document = parsed->document;
    return true;
}

/* Returns: which limits documents have, by the version of the step's command. */
static enum field_counting counting_of(const struct core *core)
{
    if (core->command_version < COMMAND_SINCE_COUNTED_FIELDS)
        return FIELDS_COUNTED_LAST;
    if (core->command_version < COMMAND_SINCE_VALUES_WEIGHED)
        return FIELDS_COUNTED_FIRST;
    if (core->command_version < COMMAND_SINCE_TEXTS_BOUNDED)
        return FIELDS_AND_COPIES_COUNTED;
    return core->command_version < COMMAND_SINCE_FILTERS_BOUNDED ? FIELDS_FILTERS_UNBOUNDED : FIELDS_TEXTS_BOUNDED;
}

static int parse_by(struct write_executor *exec, enum document_dates dates, const struct write_item_state *at,
                    struct slice source, const struct json_doc *parsed, struct arena *arena,
                    struct document *ret_document, struct problem *ret_problem)
{
    const struct mapping *mapping = at->index->mapping;
    const struct write_item *item = at->item;
    enum field_counting counting = counting_of(exec->core);
    int r = parsed != NULL ? document_parse_json(mapping, at->type, item->id, parsed, item->dialect, dates, counting,
                                                 arena, ret_document, ret_problem)
                           : document_parse(mapping, at->type, item->id, source, item->dialect, dates, counting, arena,
                                            ret_document, ret_problem);
    if (r == DOCUMENT_REFUSED && ret_document->number_refused &&
        exec->core->command_version < COMMAND_SINCE_NUMBER_CAUSES)
        ret_problem->caused_by->type = PROBLEM_ILLEGAL_ARGUMENT;
    write_executor__count_document(exec, ret_document); /* also if it is refused */
    write_executor__count_fields(exec, r != 0 ? ret_document->fields_copied : 0);
    return r;
}

/* Returns: whether the old document would be refused today. */
static bool old_is_refused(struct write_executor *exec, const struct write_item_state *at, struct arena *arena)
{
    REQUIRE(at->state.live);
    struct document document = {0};
    struct problem ignored;
    int r = parse_by(exec, DOCUMENT_DATES_STRICT, at, at->old.source, NULL, arena, &document, &ignored);

    document_release(&document);
    return r != 0;
}

/* Returns: the dates of new documents, by the version of the step's command. */
static enum document_dates dates_of(const struct core *core)
{
    if (core->command_version < COMMAND_SINCE_STRICT_DATES)
        return DOCUMENT_DATES_ALL;
    return core->command_version < COMMAND_SINCE_MALFORMED_DATES ? DOCUMENT_DATES_DROPPED : DOCUMENT_DATES_STRICT;
}

int write_executor__parse(struct write_executor *exec, const struct write_item_state *at, struct slice source,
                          const struct json_doc *parsed, struct arena *arena, struct document *ret_document,
                          struct problem *ret_problem)
{
    REQUIRE(at->index != NULL && at->type != NULL);
    enum document_dates dates = dates_of(exec->core);
    int r = parse_by(exec, dates, at, source, parsed, arena, ret_document, ret_problem);

    if (r != 0 && dates != DOCUMENT_DATES_ALL && at->item->op == WRITE_UPDATE && at->state.live &&
        old_is_refused(exec, at, arena))
        r = parse_by(exec, DOCUMENT_DATES_ALL, at, source, parsed, arena, ret_document, ret_problem);
    return r;
}

static int parse_document(struct write_executor *exec, struct write_item_state *at, struct slice source,
                          const struct json_doc *parsed, struct document *ret_document)
{
    struct problem problem;
    int r = write_executor__parse(exec, at, source, parsed, &exec->core->scratch, ret_document, &problem);

    if (r != 0) {
        problem_copy(&at->result->problem, &problem, exec->run->arena);
        return WRITE_ITEM_FAILED;
    }
    if (ret_document->update != NULL) {
        uint32_t number = at->index->number;
        if (check_memory(exec, at->item, at->result) != 0)
            return WRITE_ITEM_FAILED;
        catalog_change__put_mapping(exec->core, number, ret_document->update);
        refind_index(exec, at, number);
    }
    return 0;
}

/* Sets what each change reports. */
static void set_result(struct write_item_state *at, enum write_outcome outcome, const struct doc *doc)
{
    REQUIRE(doc->version >= 0); /* take_version() refuses others */
    at->result->outcome = outcome;
    at->result->version = doc->version;
    at->result->seq_no = doc->seq_no;
    at->result->routing = doc->routing;
}

static int take_version(struct write_executor *exec, struct write_item_state *at, struct doc *doc)
{
    REQUIRE(at->index != NULL && at->type != NULL); /* a sequence number is of one type */
    doc->version = version__next(at->item, &at->state);
    if (doc->version < 0) {
        problem_set(&at->result->problem, exec->run->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "the version of [%.*s] cannot be raised any more", SLICE_ARG(at->item->id));
        return WRITE_ITEM_FAILED;
    }
    doc->ts = exec->core->ts;
    doc->seq_no = counter__take_seq_no(&exec->core->counters, counters__of(&exec->core->counters, at->index->number),
                                       at->type->number);
    return 0;
}

/* Checks that locks allow the document at its new path. */
static int check_path(struct write_executor *exec, struct write_item_state *at, const struct document *document)
{
    REQUIRE(at->index != NULL && at->type != NULL); /* the lock's name has both */
    const struct write_path_check *path_check = exec->run->path_check;
    struct write_target to = {
        .index = at->index->name, .type = at->type->name, .id = at->item->id, .new_path = document->lock_path};

    if (path_check == NULL || path_check->allowed(path_check->context, &to, exec->run->arena, &at->result->problem))
        return 0;
    return WRITE_ITEM_FAILED;
}

static int check_lease(struct write_executor *exec, struct write_item_state *at)
{
    if (at->item->lease.len == 0)
        return 0;
    return exec->core->document_owners->check_session(exec->core, at->item->lease, exec->run->arena,
                                                      &at->result->problem) == 0
               ? 0
               : WRITE_ITEM_FAILED;
}

/* Checks the limit of the session's documents, if this adds one. */
static int check_lease_count(struct write_executor *exec, struct write_item_state *at, struct slice lease)
{
    if (lease.data == NULL || (at->state.live && slice_equal(at->old.lease, lease)))
        return 0;
    return exec->core->document_owners->check_count(exec->core, lease, 1, exec->run->arena, &at->result->problem) == 0
               ? 0
               : WRITE_ITEM_FAILED;
}

struct tree_writer write_executor__tree_writer(struct write_executor *exec, const struct catalog_index *index)
{
    REQUIRE(index != NULL && exec->core->open);
    struct core *core = exec->core;

    return (struct tree_writer){.tree = {.view = &exec->view,
                                         .index = index->number,
                                         .delimiter = mapping_path_delimiter(index->mapping),
                                         .pending = &core->tree_pending},
                                .overlay = exec->sink.overlay,
                                .batch = core->batch,
                                .pending = &core->tree_pending,
                                .ts = core->ts,
                                .origins_created = &core->origins_created};
}

/* Assigns the origin of a document that renames can move. From here on the item must not fail. */
static int assign_origin(struct write_executor *exec, struct write_item_state *at, const struct document *document,
                         struct doc *doc)
{
    struct tree_writer writer = write_executor__tree_writer(exec, at->index);

    if (document->path.data == NULL || !mapping_is_tree(at->index->mapping))
        return 0;
    int r = tree_resolve_or_create(&writer, document->path, &exec->core->arena, &doc->origin, &doc->rename_base);
    if (r != 0)
        return tl_trace(r);
    if (exec->sink.overlay == NULL)
        empty_paths_invalidate(&exec->core->empty_paths, at->index->number, document->path);
    doc->path_tracked = true;
    doc->path_offset = (size_t)(document->path_raw.data - document->json.source.data);
    doc->path_len = document->path_raw.len;
    ENSURE(doc->path_offset <= doc->source.len && doc->path_len <= doc->source.len - doc->path_offset);
    if (doc->origin.data != document->path.data)
        return 0;
    /* the path may be freed when entries are flushed */
    bool as_written = slice_equal(document->path, document->path_raw);
    doc->origin = as_written ? slice_make(doc->source.data + doc->path_offset, doc->path_len)
                             : arena_copy(&exec->core->arena, document->path);
    return 0;
}

/*
 * Keeps the record of documents with a high version up to date. A client may have given that
 * version.
 */
static void update_version_high(struct write_executor *exec, const struct write_item_state *at, const struct doc *doc)
{
    bool high = doc->path_tracked && doc->version >= TREE_VERSION_HIGH;
    struct tree_writer writer;

    if (!high && !(at->has_old && at->old.version >= TREE_VERSION_HIGH && mapping_is_tree(at->index->mapping)))
        return;
    writer = write_executor__tree_writer(exec, at->index);
    tree_set_version_high(&writer, slice_from_offset(at->key, sizeof(uint32_t)), high);
}

/* Replaces the previous version by a parsed source. */
static int put_document(struct write_executor *exec, struct write_item_state *at, const struct document *document,
                        struct slice source, struct slice lease)
{
    REQUIRE(at->type != NULL && at->key.len > 0);
    struct doc doc = {.routing = at->routing, .lease = lease, .source = source};
    int r = check_path(exec, at, document);

    if (r == 0)
        r = check_lease_count(exec, at, lease);
    if (r == 0)
        r = take_version(exec, at, &doc);
    doc.stored = doc.source;
    doc.stored_seq_no = doc.seq_no;
    if (r == 0)
        r = assign_origin(exec, at, document, &doc);
    if (r == 0)
        update_version_high(exec, at, &doc);
    if (r == 0)
        r = write_executor__change_entries(exec, at, document, &doc);
    if (r == 0)
        r = write_executor__record(exec, at, &doc);
    if (r == 0)
        set_result(at, at->state.live ? WRITE_UPDATED : WRITE_CREATED, &doc);
    return r;
}

static int check_limits(struct write_executor *exec, struct write_item_state *at, struct slice source)
{
    if (source.len <= exec->core->limits.document_bytes_max)
        return 0;
    problem_set(&at->result->problem, exec->run->arena, PROBLEM_CONTENT_TOO_LARGE,
                "the document has %zu bytes, more than the limit of %zu", source.len,
                exec->core->limits.document_bytes_max);
    return WRITE_ITEM_FAILED;
}

/* Returns: the parsed source of an item, by its submitter or to know its work; NULL: it is not parsed. */
static const struct json_doc *parsed_ahead(const struct write_executor *exec, const struct write_item *item)
{
    return item->parsed == NULL && exec->item_json.root != NULL ? &exec->item_json : item->parsed;
}

static int run_index(struct write_executor *exec, struct write_item_state *at)
{
    const struct write_item *item = at->item;
    struct document document = {0};
    int r = write_executor__ensure_type(exec, at);

    if (r == 0)
        r = check_limits(exec, at, item->source);
    if (r == 0)
        r = check_lease(exec, at);
    if (r == 0 && !reuse_parsed(exec, at, &document))
        r = parse_document(exec, at, item->source, parsed_ahead(exec, item), &document);
    at->load = WRITE_LOAD_VERSION;
    if (r == 0)
        r = write_executor__load(exec, at);
    if (r == 0)
        r = write_executor__check_version(exec, at, item->op == WRITE_CREATE);
    if (r == 0)
        r = put_document(exec, at, &document, item->source, item->lease.len > 0 ? item->lease : SLICE_NONE);
    document_release(&document);
    return r;
}

/* Returns: a copy of the previous version's routing. */
static struct slice old_routing(const struct write_executor *exec, const struct write_item_state *at)
{
    return at->old.routing.data == NULL ? SLICE_NONE : arena_copy(exec->run->arena, at->old.routing);
}

/*
 * Writes a tombstone, whether or not a document exists. The tombstone keeps the document's routing,
 * by which replicas find the document to delete.
 */
static int remove_document(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->type != NULL && at->key.len > 0);
    struct doc doc = {.deleted = true, .routing = at->has_old ? old_routing(exec, at) : at->routing};
    int r = take_version(exec, at, &doc);

    if (r == 0)
        update_version_high(exec, at, &doc);
    if (r == 0)
        r = write_executor__remove_entries(exec, at);
    if (r == 0)
        r = write_executor__record(exec, at, &doc);
    if (r == 0)
        set_result(at, at->state.live ? WRITE_DELETED : WRITE_NOT_FOUND, &doc);
    return r;
}

/*
 * Whether the request is routed to the shard of the document or its tombstone. In Elasticsearch a
 * request with another routing does not find it.
 */
static bool has_same_shard(const struct write_item_state *at)
{
    struct slice requested = at->routing.len > 0 ? at->routing : at->item->id;
    struct slice stored = at->old.routing.len > 0 ? at->old.routing : at->item->id;

    return shard_of(requested, at->index->shard_count) == shard_of(stored, at->index->shard_count);
}

/* Reports a delete that finds nothing and changes nothing. */
static int report_missing(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->type != NULL);
    struct doc doc = {.deleted = true};

    at->state = (struct version_state){false, VERSION_NOT_FOUND, SEQ_NO_ANY};
    int r = take_version(exec, at, &doc);
    if (r == 0)
        set_result(at, WRITE_NOT_FOUND, &doc);
    return r;
}

static int run_delete(struct write_executor *exec, struct write_item_state *at)
{
    int r = write_executor__ensure_type(exec, at);

    if (r == 0 && at->item->id.len > DOC_ID_BYTES_MAX)
        return report_missing(exec, at); /* no document has such an id */
    at->load = WRITE_LOAD_VERSION;
    if (r == 0)
        r = write_executor__load(exec, at);
    if (r == 0 && at->item->only_session.len > 0 &&
        (!at->state.live || !slice_equal(at->old.lease, at->item->only_session))) { /* it has a new owner */
        at->result->outcome = WRITE_NOOP;
        return 0;
    }
    if (r == 0 && at->has_old && !has_same_shard(at))
        return report_missing(exec, at);
    if (r == 0)
        r = write_executor__check_version(exec, at, false);
    return r == 0 ? remove_document(exec, at) : r;
}

/* --- Updating ----------------------------------------------------------------------------------------------------- */

static int fail_missing(struct write_executor *exec, struct write_item_state *at)
{
    problem_set(&at->result->problem, exec->run->arena, PROBLEM_DOCUMENT_MISSING, "[%.*s][%.*s]: document missing",
                SLICE_ARG(write_executor__type_text(at)), SLICE_ARG(at->item->id));
    write_executor__shard_details(exec, at);
    at->result->version = VERSION_NOT_FOUND;
    at->result->seq_no = SEQ_NO_ANY;
    return WRITE_ITEM_FAILED;
}

/*
 * Returns: the routing of a document after an update, which is the old one. Exceptions for a single
 *   update: a request with `doc` sets its own routing, and an alias adds its routing to a document
 *   without one.
 */
static struct slice updated_routing(const struct write_executor *exec, const struct write_item_state *at)
{
    REQUIRE(at->has_old && at->item->update != NULL);
    const struct write_update *params = at->item->update;

    if (params->single && params->doc.data != NULL && at->item->routing.len > 0)
        return at->item->routing;
    if (params->single && at->old.routing.data == NULL && at->alias != NULL)
        return at->routing;
    return old_routing(exec, at);
}

static int put_updated(struct write_executor *exec, struct write_item_state *at, const struct update *update)
{
    REQUIRE(update->op == UPDATE_INDEX || update->op == UPDATE_CREATE);
    REQUIRE(update->source.data != NULL);
    struct slice lease = at->state.live ? at->old.lease : SLICE_NONE;
    struct document document = {0};
    int r = write_executor__ensure_type(exec, at);

    if (at->item->lease.len > 0)
        lease = at->item->lease;
    if (update->old != NULL)
        at->routing = updated_routing(exec, at);
    if (lease.data != NULL)
        lease = arena_copy(exec->run->arena, lease);
    if (r == 0)
        r = check_limits(exec, at, update->source);
    if (r == 0)
        r = check_lease(exec, at);
    if (r == 0)
        r = parse_document(exec, at, update->source, write_executor__parsed_update(at->item), &document);
    if (r == 0)
        r = put_document(exec, at, &document, update->source, lease);
    document_release(&document);
    return r;
}

static void set_noop(struct write_executor *exec, struct write_item_state *at)
{
    catalog_index_count_stat(at->index, INDEX_STAT_NOOPS, 1);
    at->result->outcome = WRITE_NOOP;
    at->result->version = at->state.live ? at->state.version : VERSION_NOT_FOUND;
    at->result->seq_no = at->state.live ? at->state.seq_no : SEQ_NO_ANY;
    at->result->routing =
        at->state.live && at->old.routing.data != NULL ? arena_copy(exec->run->arena, at->old.routing) : SLICE_NONE;
}

/*
 * Checks an upsert, which is a create with the update's condition; a missing document fulfils none.
 */
static int check_upsert(struct write_executor *exec, struct write_item_state *at)
{
    REQUIRE(at->item->op == WRITE_UPDATE && at->item->update != NULL);
    const struct write_item *item = at->item;

    if (item->version == VERSION_ANY || !item->update->single || at->item->dialect != DIALECT_5)
        return write_executor__check_version(exec, at, true);
    problem_set(&at->result->problem, exec->run->arena, PROBLEM_ACTION_REQUEST_VALIDATION,
                "Validation Failed: 1: create operations %s. use index instead;",
                item->version_type == VERSION_INTERNAL ? "do not support explicit versions"
                                                       : "only support internal versioning");
    return WRITE_ITEM_FAILED;
}

static int apply_update(struct write_executor *exec, struct write_item_state *at, const struct update *update)
{
    REQUIRE(update->op != UPDATE_DELETE || update->old != NULL); /* only an existing document */
    bool shown = at->item->update->want_source && update->source.data != NULL;
    int r = update->op == UPDATE_CREATE ? check_upsert(exec, at) : 0;

    if (r != 0)
        return r;
    /*
     * Copied first: for a delete it is the old source, which the transaction may be about to
     * overwrite.
     */
    struct slice source = shown ? arena_copy(exec->run->arena, update->source) : SLICE_NONE;
    if (update->op == UPDATE_INDEX || update->op == UPDATE_CREATE)
        r = put_updated(exec, at, update);
    else if (update->op == UPDATE_DELETE)
        r = remove_document(exec, at);
    else
        set_noop(exec, at);
    if (r == 0)
        at->result->source = source;
    return r;
}

/* Fails an update whose script read another version of the document, in the words of a conditional write. */
static int fail_stale(struct write_executor *exec, struct write_item_state *at)
{
    const struct update_ready *ready = &at->item->update->ready;
    struct version_required required = {ready->version, ready->seq_no, 1};
    enum conflict_kind conflict = ready->read_ts == 0              ? CONFLICT_EXISTS
                                  : at->item->dialect == DIALECT_5 ? CONFLICT_VERSION
                                  : at->state.live                 ? CONFLICT_SEQ_NO
                                                                   : CONFLICT_MISSING;

    REQUIRE(ready->given);
    int r = fail_conflict(exec, at, conflict, &required);
    at->result->script_long = true;
    return r;
}

/* Returns: the result of the update that write_targets.c kept, to be taken over if it is valid; NULL: none. */
static const struct update_kept *kept_update(const struct write_executor *exec, const struct write_item_state *at)
{
    const struct write_run *run = exec->run;

    INSIST(at->item >= run->items && (size_t)(at->item - run->items) < run->count);
    return run->kept == NULL ? NULL : run->kept[at->item - run->items];
}

static int run_update(struct write_executor *exec, struct write_item_state *at)
{
    struct update update = write_executor__update(exec, at, exec->run->arena);
    int r = write_executor__load(exec, at);

    if (r == 0 && at->state.live)
        r = write_executor__check_version(exec, at, false);
    if (r != 0)
        return r;
    update.old = at->state.live && has_same_shard(at) ? &at->old : NULL;
    if (update.old != NULL && write_executor__reads_old(exec, &update))
        write_executor__count_source(exec, at->old.source, 0);
    update.kept = kept_update(exec, at);
    r = update_run(&update, &at->result->problem);
    write_executor__count_script(exec, &update);
    at->result->script_long = update.script_long;
    at->result->update_large = update_is_left(&update);
    at->result->script_exhausted = update.script_exhausted;
    if (r == UPDATE_MISSING)
        return fail_missing(exec, at);
    if (r == UPDATE_STALE)
        return fail_stale(exec, at);
    if (r != 0)
        return r < 0 ? tl_trace(r) : WRITE_ITEM_FAILED;
    return apply_update(exec, at, &update);
}

/* --- Documents hidden by a session tombstone ---------------------------------------------------------------------- */

/* Purges a hidden document. Requires: the item's key is set. */
static int purge_hidden(struct write_executor *exec, const struct write_item_state *at, const struct doc *doc)
{
    REQUIRE(at->type != NULL && doc->lease.data != NULL && !exec->run->purge);
    struct core *core = exec->core;
    struct arena *arena = &core->arena;
    struct write_item *item = arena_zalloc(arena, sizeof(*item));
    struct write_result *result = arena_zalloc(arena, sizeof(*result));
    struct write_run run = {
        .items = item, .count = 1, .cleanup = true, .purge = true, .arena = arena, .results = result};
    bool failed;

    *item = write__removal_of(arena, at->index, at->type, at->item->id, doc->lease, doc->routing);
    if (core->command_version >= COMMAND_SINCE_HIGHEST_PURGED)
        ephemeral__keep_highest_version(core, doc, item);
    write_executor__flush_entries(exec); /* the nested run uses the scratch arena */
    int r = write__run(core, &run, &failed);
    exec->work += run.work;
    return r;
}

/*
 * Purges a hidden document at the item's key before the item runs. It is purged by the unit itself,
 * whether or not the item fails or its transaction rolls back. So the item finds a tombstone, as it
 * would later.
 */
static int purge_before_item(struct write_executor *exec, struct write_item_state *at)
{
    struct doc doc;

    if (at->type == NULL || exec->run->purge || !exec->core->document_owners->any_terminating(exec->core) ||
        at->item->id.len > DOC_ID_BYTES_MAX ||
        (exec->core->pending.count > 0 && map_get(&exec->core->pending, at->key) != NULL))
        return 0;
    int r = doc_get_any(&exec->view, at->index->number, at->type->number, at->item->id, &doc);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    r = is_hidden(exec, at, &doc);
    if (r == 1) {
        r = purge_hidden(exec, at, &doc);
        make_key(exec, at);
    }
    doc_release(&doc);
    return r;
}

/* --- An item ------------------------------------------------------------------------------------------------------ */

static int check_id(struct write_executor *exec, struct write_item_state *at)
{
    size_t len = at->item->id.len;

    if (len > 0 && (len <= DOC_ID_BYTES_MAX || at->item->op == WRITE_DELETE))
        return 0;
    if (len == 0)
        problem_set(&at->result->problem, exec->run->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "if _id is specified it must not be empty");
    else
        problem_set(&at->result->problem, exec->run->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "id is too long, must be no longer than %d bytes but was: %zu", DOC_ID_BYTES_MAX, len);
    return WRITE_ITEM_FAILED;
}

int write_executor__item(struct write_executor *exec, const struct write_item *item, struct write_result *result)
{
    REQUIRE(exec->core->open && item != NULL && result != NULL);
    struct write_item_state at = {.item = item, .result = result};
    int r;

    write_executor__work(exec, WORK_ITEM);
    result->index = item->index;
    result->type = write_executor__type_text(&at);
    result->version = VERSION_NOT_FOUND;
    result->seq_no = SEQ_NO_ANY;
    r = check_id(exec, &at);
    if (r == 0)
        r = write_executor__find(exec, &at);
    if (r == 0)
        r = purge_before_item(exec, &at);
    if (r == 0)
        r = item->op == WRITE_DELETE   ? run_delete(exec, &at)
            : item->op == WRITE_UPDATE ? run_update(exec, &at)
                                       : run_index(exec, &at);
    doc_release(&at.old);
    return r;
}
