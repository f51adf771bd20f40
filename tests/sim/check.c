/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing what the product shows with what the model knows. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/omap.h"
#include "core/catalog/catalog.h"
#include "core/documents/path_lookup.h"
#include "core/documents/doc.h"
#include "mapping/entry.h"
#include "mapping/mapping.h"
#include "world.h"

/* --- Commands ----------------------------------------------------------------------------------------------------- */

static enum sim_outcome failure_of(const struct write_result *result)
{
    switch (result->problem.type) {
    case PROBLEM_VERSION_CONFLICT: return SIM_CONFLICT;
    case PROBLEM_DOCUMENT_MISSING: return SIM_MISSING;
    case PROBLEM_MAPPER_PARSING: return SIM_UNFIT;
    case PROBLEM_INDEX_NOT_FOUND: return SIM_NO_INDEX;
    case PROBLEM_INVALID_INDEX_NAME: return SIM_BAD_INDEX_NAME;
    case PROBLEM_INDEX_CLOSED: return SIM_CLOSED;
    case PROBLEM_ILLEGAL_ARGUMENT:
        return slice_starts_with(result->problem.reason, SLICE_LIT("the version of")) ? SIM_EXHAUSTED
                                                                                      : SIM_NO_WRITE_INDEX;
    default: return (enum sim_outcome) - 1;
    }
}

static enum sim_outcome outcome_of(const struct write_result *result)
{
    switch (result->outcome) {
    case WRITE_CREATED: return SIM_CREATED;
    case WRITE_UPDATED: return SIM_UPDATED;
    case WRITE_DELETED: return SIM_DELETED;
    case WRITE_NOT_FOUND: return SIM_NOT_FOUND;
    case WRITE_NOOP: return SIM_NOOP;
    default: return failure_of(result);
    }
}

static void check_result(struct world *world, const struct host *host, int item, const struct sim_result *expected,
                         const struct write_result *result)
{
    if (outcome_of(result) != expected->outcome)
        world_fail(world, "%s, item %d: outcome %d (%.*s), the model says %d", host->name, item, outcome_of(result),
                   SLICE_ARG(result->problem.reason), expected->outcome);
    if (expected->outcome > SIM_CONFLICT)
        return;
    if (result->version != expected->version || result->seq_no != expected->seq_no)
        world_fail(world, "%s, item %d: version %lld, seq_no %lld; the model says %lld, %lld", host->name, item,
                   (long long)result->version, (long long)result->seq_no, (long long)expected->version,
                   (long long)expected->seq_no);
}

void check_command(struct world *world, const struct host *host, const struct sim_op *op,
                   const struct sim_expected *expected, const struct command *command)
{
    bool refused = command->problem.type != PROBLEM_NONE;

    if (refused != expected->refused)
        world_fail(world, "%s: %s (%.*s), the model says %s", host->name, refused ? "refused" : "accepted",
                   SLICE_ARG(command->problem.reason), expected->refused ? "refused" : "accepted");
    const struct rename_command *rename = &command->rename;
    if (op->kind == SIM_RENAME && !refused &&
        (rename->document != expected->document || rename->directory != expected->directory ||
         rename->seq_no != expected->seq_no))
        world_fail(world, "%s: renamed %d documents, %d directories, seq_no %lld; the model says %d, %d, %lld",
                   host->name, rename->document, rename->directory, (long long)rename->seq_no, expected->document,
                   expected->directory, (long long)expected->seq_no);
    if (op->kind != SIM_WRITE || refused)
        return;
    if (command->write.rolled_back != expected->rolled_back)
        world_fail(world, "%s: rolled back: %d, the model says %d", host->name, command->write.rolled_back,
                   expected->rolled_back);
    for (int i = 0; i < op->item_count; i++)
        check_result(world, host, i, &expected->results[i], &command->write.results[i]);
}

/* --- State -------------------------------------------------------------------------------------------------------- */

static void check_doc(struct world *world, const struct host *host, const struct view *view,
                      const struct catalog_index *index, const struct model_doc *model_doc)
{
    const struct model_version *expected = model_version_at(model_doc, view->ts);
    const struct mapping_type *type = mapping_type(index->mapping, slice_from(model_doc->type));
    bool exists = expected != NULL && !expected->deleted;
    struct doc doc;
    char source[512];
    int r = type == NULL ? DOC_NOT_FOUND : doc_get(view, index->number, type->number, slice_from(model_doc->id), &doc);

    if ((r == 0) != exists)
        world_fail(world, "%s: %s/%s/%s as of %llu: result %d, the model says it %s", host->name, index->name.data,
                   model_doc->type, model_doc->id, (unsigned long long)view->ts, r,
                   exists ? "exists" : "does not exist");
    if (r != 0)
        return;
    model_print(&expected->source, source, sizeof(source));
    if (doc.version != expected->version || doc.seq_no != expected->seq_no || doc.ts != expected->ts ||
        !slice_is(doc.source, source))
        world_fail(
            world,
            "%s: %s/%s/%s as of %llu: version %lld, seq_no %lld, ts %llu, %.*s; the model says %lld, %lld, %llu, %s",
            host->name, index->name.data, model_doc->type, model_doc->id, (unsigned long long)view->ts,
            (long long)doc.version, (long long)doc.seq_no, (unsigned long long)doc.ts, SLICE_ARG(doc.source),
            (long long)expected->version, (long long)expected->seq_no, (unsigned long long)expected->ts, source);
    if (doc.routing.data != NULL && !index->may_have_routings)
        world_fail(world, "%s: %s/%s/%s as of %llu has a routing, and the index is not marked", host->name,
                   index->name.data, model_doc->type, model_doc->id, (unsigned long long)view->ts);
    doc_release(&doc);
}

static void check_counts(struct world *world, const struct host *host, const struct view *view,
                         const struct catalog_index *index, const struct model_index *expected)
{
    int live = model_count_at(expected, view->ts), scanned = 0, r;
    struct doc_scan *scan = doc_scan_new(view, index->number, DOC_TYPE_ANY);
    struct slice id;
    struct doc doc;
    uint16_t type;
    uint64_t count;

    while ((r = doc_scan_next(scan, &type, &id, &doc)) == 0)
        scanned++;
    doc_scan_free(scan);
    if (r != DOC_SCAN_END || doc_count(view, index->number, DOC_TYPE_ANY, &count) != 0)
        world_fail(world, "%s: %s cannot be read", host->name, index->name.data);
    if (scanned != live || count != (uint64_t)live)
        world_fail(world, "%s: %s as of %llu: %d scanned, %llu counted, the model says %d", host->name,
                   index->name.data, (unsigned long long)view->ts, scanned, (unsigned long long)count, live);
}

/* --- Subtrees ----------------------------------------------------------------------------------------------------- */

enum looked { AT, WITHIN, BEGINNING };

static bool fits(const char *path, const char *text, enum looked looked)
{
    return looked == AT       ? strcmp(path, text) == 0
           : looked == WITHIN ? model_within(path, text)
                              : strncmp(path, text, strlen(text)) == 0;
}

static const char *path_of(const struct model_doc *doc, uint64_t ts)
{
    const struct model_version *version = model_version_at(doc, ts);

    return version == NULL || version->deleted ? "" : version->source.path;
}

/* The documents that ranges of entries name, and that have the path in the view. Ranges overlap. */
struct found {
    struct world *world;
    const struct view *view;
    const struct catalog_index *index;
    const char *text;
    enum looked looked;
    struct omap *seen; /* by key */
};

static void count_document(struct found *found, uint16_t field, const struct entry_hit *hit)
{
    struct doc doc;
    char path[SIM_PATH_MAX];

    if (doc_get_key(found->view, found->index->number, hit->document_key, &doc) != 0)
        return;
    const char *at = memmem(doc.source.data, doc.source.len, "\"path\":\"", 8);
    if (doc_entry_batch(&doc, field) == hit->batch && at != NULL) {
        size_t from = (size_t)(at - doc.source.data) + 8;
        struct slice rest = slice_make(at + 8, doc.source.len - from);
        snprintf(path, sizeof path, "%.*s", (int)slice_find_byte(rest, '"'), rest.data);
        if (fits(path, found->text, found->looked))
            omap_put(found->seen, hit->document_key, SLICE_LIT("x"));
    }
    doc_release(&doc);
}

static bool count_range(void *context, const struct entry_range *range)
{
    struct found *found = context;
    struct entry_scan *scan = entry_scan_new(found->view, range);
    struct entry_hit hit;
    int r;

    while ((r = entry_scan_next(scan, &hit)) == 0)
        count_document(found, range->field, &hit);
    entry_scan_free(scan);
    if (r != ENTRY_SCAN_END)
        world_fail(found->world, "the entries of paths in %s cannot be read", found->index->name.data);
    return true;
}

static void check_path(struct world *world, const struct host *host, const struct view *view,
                       const struct catalog_index *index, const struct model_index *expected, const char *text,
                       enum looked looked)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct omap seen;
    struct found found = {world, view, index, text, looked, &seen};
    int count = 0;
    struct path_lookup path_lookup;
    int wanted = 0, r = path_lookup_init(view, index->number, index->mapping, &path_lookup);

    omap_init(&seen);
    /* without renames, an origin is the path */
    path_lookup.path = mapping_path_field(index->mapping);
    if (r == 0)
        r = looked == BEGINNING
                ? path_lookup_prefix(&path_lookup, slice_from(text), &arena, count_range, &found)
                : path_lookup_value(&path_lookup, slice_from(text), looked == WITHIN, &arena, count_range, &found);
    for (int i = 0; i < expected->doc_count; i++) {
        const char *path = path_of(&expected->docs[i], view->ts);
        wanted += path[0] != '\0' && fits(path, text, looked);
    }
    for (const struct omap_entry *entry = omap_first(&seen); entry != NULL; entry = omap_next(entry))
        count++;
    omap_deinit(&seen);
    if (r != 0 || wanted != count)
        world_fail(world, "%s: %s as of %llu: result %d, %d documents are found %s [%s], the model says %d", host->name,
                   index->name.data, (unsigned long long)view->ts, r, count,
                   looked == AT       ? "at"
                   : looked == WITHIN ? "at or below"
                                      : "at what begins with",
                   text, wanted);
}

static void check_paths(struct world *world, const struct host *host, const struct view *view,
                        const struct catalog_index *index, const struct model_index *expected)
{
    static const char *const others[] = {"/a", "/b", "/a/b", "/A"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        check_path(world, host, view, index, expected, others[i], WITHIN);
        check_path(world, host, view, index, expected, others[i], BEGINNING);
    }
    for (int i = 0; i < expected->doc_count; i++) {
        char path[SIM_PATH_MAX];
        snprintf(path, sizeof path, "%s", path_of(&expected->docs[i], view->ts));
        if (path[0] == '\0')
            continue;
        check_path(world, host, view, index, expected, path, AT);
        *strrchr(path, '/') = '\0';
        if (path[0] != '\0')
            check_path(world, host, view, index, expected, path, WITHIN);
    }
}

static void check_index(struct world *world, const struct host *host, const struct view *view,
                        const struct catalog_index *index)
{
    struct model_index *expected = model_index_at(&world->model, index->name.data, view->ts);

    if (expected == NULL)
        world_fail(world, "%s: there is an index %s as of %llu", host->name, index->name.data,
                   (unsigned long long)view->ts);
    if (expected->five != (index->dialect == DIALECT_5) || index->shard_count != (uint32_t)expected->shards)
        world_fail(world, "%s: %s has %u shards, the model says %d", host->name, index->name.data, index->shard_count,
                   expected->shards);
    for (int i = 0; i < expected->doc_count; i++)
        check_doc(world, host, view, index, &expected->docs[i]);
    check_counts(world, host, view, index, expected);
    if (expected->tree != mapping_is_tree(index->mapping))
        world_fail(world, "%s: %s is a tree: %d", host->name, index->name.data, expected->tree);
    if (expected->tree)
        check_paths(world, host, view, index, expected);
}

/* What the model knows of the present only. */
static void check_present(struct world *world, const struct host *host, const struct catalog_index *index)
{
    const struct model_index *expected = model_index_at(&world->model, index->name.data, SIM_NEVER - 1);

    if (expected->closed != index->closed || (uint32_t)expected->replicas != index->replica_count)
        world_fail(world, "%s: %s is closed: %d, replicas %u; the model says %d, %d", host->name, index->name.data,
                   index->closed, index->replica_count, expected->closed, expected->replicas);
    for (int i = 0; i < SIM_ALIASES; i++)
        if (expected->alias[i] != (catalog_index_alias(index, slice_from(sim_alias_names[i])) != NULL))
            world_fail(world, "%s: %s and alias %s", host->name, index->name.data, sim_alias_names[i]);
    for (int i = 0; i < SIM_FIELDS; i++)
        if ((expected->fields >> i & 1) != (mapping_field(index->mapping, slice_from(sim_field_names[i])) != NULL))
            world_fail(world, "%s: %s and field %s", host->name, index->name.data, sim_field_names[i]);
    if (catalog_index_next_seq_no(index) != expected->next_seq_no)
        world_fail(world, "%s: %s goes on at seq_no %lld, the model says %lld", host->name, index->name.data,
                   (long long)catalog_index_next_seq_no(index), (long long)expected->next_seq_no);
}

void check_state(struct world *world, const struct host *host, uint64_t ts)
{
    struct view view = {host->store, ts, NULL};
    tl_cleanup(catalog_unrefp) struct catalog *catalog = NULL;
    tl_cleanup(catalog_unrefp) struct catalog *present = core_catalog(host->core);
    size_t expected = 0;

    if (catalog_load(&view, &catalog) != 0)
        world_fail(world, "%s: no catalog as of %llu", host->name, (unsigned long long)ts);
    for (int i = 0; i < world->model.index_count; i++)
        expected += world->model.indices[i].created <= ts && ts < world->model.indices[i].deleted;
    if (catalog_index_count(catalog) != expected)
        world_fail(world, "%s: %zu indices as of %llu, the model says %zu", host->name, catalog_index_count(catalog),
                   (unsigned long long)ts, expected);
    for (size_t i = 0; i < expected; i++)
        check_index(world, host, &view, catalog_index_at(catalog, i));
    for (size_t i = 0; i < catalog_index_count(present); i++)
        check_present(world, host, catalog_index_at(present, i));
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

/* How many live documents of an index have a value, by the model. */
static int model_hits(const struct model_index *index, int field, int value)
{
    int hits = 0;

    for (int i = 0; i < index->doc_count; i++) {
        const struct model_version *version = model_version_at(&index->docs[i], SIM_NEVER - 1);
        hits += version != NULL && !version->deleted && model_value(&version->source, field) == value;
    }
    return hits;
}

/* The same by the entries that speak of a present version. */
static int entry_hits(struct world *world, const struct host *host, const struct catalog_index *index,
                      const struct mapping_field *field, int value)
{
    struct view view = {host->store, TL_TS_MAX, NULL};
    struct field_value wanted = {.field = field->number, .kind = (uint8_t)field_value_kind(field)};
    struct entry_range range = {.index = index->number, .field = field->number, .low = &wanted, .high = &wanted};
    struct entry_hit hit;
    int hits = 0, r;

    if (wanted.kind == FIELD_VALUE_BYTES)
        wanted.bytes = slice_from(sim_words[value]);
    else
        wanted.i64 = value;
    struct entry_scan *scan = entry_scan_new(&view, &range);
    while ((r = entry_scan_next(scan, &hit)) == 0) {
        struct doc doc;
        if (doc_get_key(&view, index->number, hit.document_key, &doc) != 0)
            continue;
        hits += doc_entry_batch(&doc, field->number) == hit.batch;
        doc_release(&doc);
    }
    entry_scan_free(scan);
    if (r != ENTRY_SCAN_END)
        world_fail(world, "%s: the entries of %s cannot be read", host->name, index->name.data);
    return hits;
}

static void check_field(struct world *world, const struct host *host, const struct catalog_index *index,
                        const struct model_index *expected, int field)
{
    const struct mapping_field *mapped =
        mapping_field(index->mapping, field == 0 ? SLICE_LIT("s.keyword") : slice_from(sim_field_names[field]));

    if (mapped == NULL || !field_has_entries(mapped))
        return;
    for (int value = 0; value < (field == 0 ? 16 : 20); value++) {
        int wanted = model_hits(expected, field, value), found = entry_hits(world, host, index, mapped, value);
        if (wanted != found)
            world_fail(world, "%s: %s: %d documents are found by field %s = %d, the model says %d", host->name,
                       index->name.data, found, sim_field_names[field], value, wanted);
    }
}

void check_entries(struct world *world, const struct host *host)
{
    tl_cleanup(catalog_unrefp) struct catalog *catalog = core_catalog(host->core);

    for (size_t i = 0; i < catalog_index_count(catalog); i++) {
        const struct catalog_index *index = catalog_index_at(catalog, i);
        const struct model_index *expected = model_index_at(&world->model, index->name.data, SIM_NEVER - 1);
        for (int field = 0; field < 3; field++)
            check_field(world, host, index, expected, field);
    }
}
