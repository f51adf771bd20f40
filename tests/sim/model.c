/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const sim_field_names[SIM_FIELDS] = {"s", "n", "f2", "f3", "f4", "f5", "f6", "path"};
const struct sim_gc_deletes sim_gc_deletes[SIM_GC_DELETES] = {
    {"null", SIM_GC_DEFAULT}, {"\"-1\"", SIM_GC_AT_ONCE}, {"\"0s\"", 0},
    {"\"50ms\"", 50000},      {"\"5s\"", 5000000},        {"\"1h\"", (int64_t)3600 * 1000000}};
const char *const sim_alias_names[SIM_ALIASES] = {"al0", "al1", "al2", "al5"};
const char *const sim_words[16] = {"projects", "include", "linux",  "share", "doc",   "python3", "lib",     "x86",
                                   "locale",   "module",  "kernel", "man",   "icons", "driver",  "hicolor", "Clinton"};

/* --- Sources ------------------------------------------------------------------------------------------------------ */

void model_print(const struct sim_source *source, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "{");

    for (int i = 0; i < source->count; i++) {
        const char *comma = i == 0 ? "" : ",";
        int field = source->field[i];
        if (field == 0)
            used +=
                (size_t)snprintf(text + used, size - used, "%s\"s\":\"%s\"", comma, sim_words[source->value[i] % 16]);
        else if (field == SIM_PATH)
            used += (size_t)snprintf(text + used, size - used, "%s\"path\":\"%s\"", comma, source->path);
        else
            used += (size_t)snprintf(text + used, size - used, "%s\"%s\":%d", comma, sim_field_names[field],
                                     source->value[i]);
    }
    snprintf(text + used, size - used, "}");
}

static int find_field(const struct sim_source *source, int field)
{
    for (int i = 0; i < source->count; i++)
        if (source->field[i] == field)
            return i;
    return -1;
}

int model_value(const struct sim_source *source, int field)
{
    int at = find_field(source, field);

    return at < 0 ? -1 : source->value[at];
}

/* The bucket of a field in a java.util.HashMap of up to 12 keys. */
static unsigned bucket_of(int field)
{
    uint32_t hash = 0;

    for (const char *c = sim_field_names[field]; *c != '\0'; c++)
        hash = 31 * hash + (unsigned char)*c;
    return (hash ^ hash >> 16) & 15;
}

/*
 * Puts the fields in the order of a HashMap, in which Elasticsearch hands an upsert to its script
 * and merges a partial update. Within a bucket they keep their order.
 */
static void order_as_hash_map(struct sim_source *source)
{
    for (int i = 1; i < source->count; i++) {
        int field = source->field[i], value = source->value[i], at = i;
        for (; at > 0 && bucket_of(source->field[at - 1]) > bucket_of(field); at--) {
            source->field[at] = source->field[at - 1];
            source->value[at] = source->value[at - 1];
        }
        source->field[at] = field;
        source->value[at] = value;
    }
}

/* Returns: whether anything changed. */
static bool merge(struct sim_source *into, const struct sim_source *given)
{
    struct sim_source patch = *given;
    bool changed = false;

    order_as_hash_map(&patch);
    for (int i = 0; i < patch.count; i++) {
        int at = find_field(into, patch.field[i]);
        if (at < 0) {
            at = into->count++;
            into->field[at] = patch.field[i];
            into->value[at] = patch.value[i] + 1;
        }
        changed |= into->value[at] != patch.value[i];
        into->value[at] = patch.value[i];
        if (patch.field[i] == SIM_PATH) {
            changed |= strcmp(into->path, patch.path) != 0;
            memcpy(into->path, patch.path, sizeof into->path);
        }
    }
    return changed;
}

static unsigned fields_of(const struct sim_source *source)
{
    unsigned fields = 0;

    for (int i = 0; i < source->count; i++)
        fields |= 1u << source->field[i];
    return fields;
}

/* --- Paths -------------------------------------------------------------------------------------------------------- */

bool model_within(const char *path, const char *directory)
{
    size_t len = strlen(directory);

    return strncmp(path, directory, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

bool model_is_tree_name(const char *name)
{
    return strncmp(name, "ix0", 3) == 0 || strncmp(name, "ix1", 3) == 0 || strncmp(name, "tx0", 3) == 0;
}

/* --- Looking up --------------------------------------------------------------------------------------------------- */

void model_init(struct model *model)
{
    *model = (struct model){0};
}

static void free_index(struct model_index *index)
{
    for (int i = 0; i < index->doc_count; i++)
        free(index->docs[i].versions);
    free(index->docs);
}

void model_deinit(struct model *model)
{
    for (int i = 0; i < model->index_count; i++)
        free_index(&model->indices[i]);
    free(model->indices);
}

struct model_index *model_index_at(const struct model *model, const char *name, uint64_t ts)
{
    for (int i = 0; i < model->index_count; i++) {
        struct model_index *index = &model->indices[i];
        if (strcmp(index->name, name) == 0 && index->created <= ts && ts < index->deleted)
            return index;
    }
    return NULL;
}

static struct model_index *present(const struct model *model, const char *name)
{
    return model_index_at(model, name, SIM_NEVER - 1);
}

const struct model_version *model_version_at(const struct model_doc *doc, uint64_t ts)
{
    for (int i = doc->count - 1; i >= 0; i--)
        if (doc->versions[i].ts <= ts)
            return &doc->versions[i];
    return NULL;
}

int model_count_at(const struct model_index *index, uint64_t ts)
{
    int count = 0;

    for (int i = 0; i < index->doc_count; i++) {
        const struct model_version *version = model_version_at(&index->docs[i], ts);
        count += version != NULL && !version->deleted;
    }
    return count;
}

/* A typeless request means the only type. */
static const char *type_of(const struct model_index *index, const struct sim_item *item)
{
    return index->five ? item->type : "_doc";
}

static struct model_doc *doc_of(struct model_index *index, const struct sim_item *item)
{
    const char *type = type_of(index, item);

    for (int i = 0; i < index->doc_count; i++)
        if (strcmp(index->docs[i].type, type) == 0 && strcmp(index->docs[i].id, item->id) == 0)
            return &index->docs[i];
    if (index->doc_count == index->doc_capacity) {
        index->doc_capacity = index->doc_capacity == 0 ? 8 : index->doc_capacity * 2;
        index->docs = realloc(index->docs, (size_t)index->doc_capacity * sizeof(*index->docs));
    }
    struct model_doc *doc = &index->docs[index->doc_count++];
    memset(doc, 0, sizeof(*doc));
    snprintf(doc->type, sizeof(doc->type), "%s", type);
    snprintf(doc->id, sizeof(doc->id), "%s", item->id);
    return doc;
}

static void add_version(struct model_doc *doc, const struct model_version *version)
{
    /* Of two versions at one timestamp, as in a bulk request, only the later one is visible. */
    if (doc->count > 0 && doc->versions[doc->count - 1].ts == version->ts) {
        doc->versions[doc->count - 1] = *version;
        return;
    }
    if (doc->count == doc->capacity) {
        doc->capacity = doc->capacity == 0 ? 4 : doc->capacity * 2;
        doc->versions = realloc(doc->versions, (size_t)doc->capacity * sizeof(*doc->versions));
    }
    doc->versions[doc->count++] = *version;
}

/* --- Indices ------------------------------------------------------------------------------------------------------ */

/* Templates match the indices ix4 and ix5; of equal order the later name wins. */
static int template_shards(const struct model *model, const char *name)
{
    int best = -1;

    if (strcmp(name, "ix4") != 0 && strcmp(name, "ix5") != 0)
        return 0;
    for (int i = 0; i < 2; i++)
        if (model->templates[i].there && (best < 0 || model->templates[i].order >= model->templates[best].order))
            best = i;
    return best < 0 ? 0 : model->templates[best].shards;
}

static struct model_index *make_index(struct model *model, const char *name, bool five, int shards, uint64_t ts)
{
    if (model->index_count == model->index_capacity) {
        model->index_capacity = model->index_capacity == 0 ? 8 : model->index_capacity * 2;
        model->indices = realloc(model->indices, (size_t)model->index_capacity * sizeof(*model->indices));
    }
    struct model_index *index = &model->indices[model->index_count++];
    memset(index, 0, sizeof(*index));
    snprintf(index->name, sizeof(index->name), "%s", name);
    index->five = five;
    index->created = ts;
    index->deleted = SIM_NEVER;
    index->shards = shards > 0 ? shards : template_shards(model, name);
    if (index->shards == 0)
        index->shards = five ? 5 : 1;
    index->replicas = 1;
    index->gc_deletes_us = SIM_GC_DEFAULT;
    return index;
}

static int alias_number(const char *name)
{
    for (int i = 0; i < SIM_ALIASES; i++)
        if (strcmp(sim_alias_names[i], name) == 0)
            return i;
    return -1;
}

/* The index that takes the writes of an alias; *ret_any says whether the alias exists. */
static struct model_index *write_index(const struct model *model, const char *name, bool *ret_any)
{
    int alias = alias_number(name), uses = 0;
    struct model_index *only = NULL, *writes = NULL;

    for (int i = 0; alias >= 0 && i < model->index_count; i++) {
        struct model_index *index = &model->indices[i];
        if (index->deleted != SIM_NEVER || !index->alias[alias])
            continue;
        uses++;
        only = index;
        if (index->alias_writes[alias])
            writes = index;
    }
    *ret_any = uses > 0;
    return writes != NULL ? writes : uses == 1 ? only : NULL;
}

/* Returns: the index to write to, made if need be; NULL with the outcome. */
static struct model_index *find_for_write(struct model *model, const struct sim_item *item, uint64_t ts,
                                          struct sim_result *result)
{
    bool is_alias;
    struct model_index *index = present(model, item->index);

    if (index == NULL)
        index = write_index(model, item->index, &is_alias);
    else
        is_alias = false;
    if (index == NULL && is_alias) {
        result->outcome = SIM_NO_WRITE_INDEX;
        return NULL;
    }
    if (index == NULL && item->action == SIM_DELETE && !item->five && item->versioning == SIM_INTERNAL) {
        result->outcome = SIM_NO_INDEX;
        return NULL;
    }
    if (index == NULL && item->index[0] >= 'A' && item->index[0] <= 'Z') {
        result->outcome = SIM_BAD_INDEX_NAME;
        return NULL;
    }
    if (index == NULL)
        index = make_index(model, item->index, item->five, 0, ts);
    if (index->closed) {
        result->outcome = SIM_CLOSED;
        return NULL;
    }
    return index;
}

/* --- Items -------------------------------------------------------------------------------------------------------- */

/* The state of a document before an item is applied. */
struct standing {
    struct model_version last;
    bool live;
    bool counts; /* live, or deleted lately */
};

/*
 * Returns: the timestamp from which on the versions of deletes count, by docs/compatibility.md: for
 * index.gc_deletes, and 60 s of the monotonic clock at least, or at most if it is shorter; never
 * with "-1". A change does not bring back what did not count any more.
 */
static uint64_t deletes_count_from(const struct model *model, const struct model_index *index, uint64_t ts)
{
    uint64_t from = model->forgotten;

    if (index->gc_deletes_us == SIM_GC_AT_ONCE)
        return SIM_NEVER;
    if (index->gc_deletes_us != SIM_GC_DEFAULT) {
        uint64_t gc = (uint64_t)index->gc_deletes_us, by_age = ts > gc ? ts - gc : 0;
        if (gc > SIM_TOMBSTONE_US)
            from = by_age < from ? by_age : from;
        else
            from = by_age > from ? by_age : from;
    }
    return index->forgotten > from ? index->forgotten : from;
}

static struct standing standing_of(const struct model *model, const struct model_index *index,
                                   const struct model_doc *doc, uint64_t ts)
{
    struct standing at = {.last = {.version = -1, .seq_no = -2}};

    if (doc->count == 0)
        return at;
    const struct model_version *last = &doc->versions[doc->count - 1];
    at.live = !last->deleted;
    at.counts = at.live || last->ts >= deletes_count_from(model, index, ts);
    if (at.counts)
        at.last = *last;
    return at;
}

static bool conflicts(const struct sim_item *item, const struct standing *at, bool create)
{
    if (item->if_seq_no >= 0)
        return !at->live || at->last.seq_no != item->if_seq_no;
    if (create && at->live)
        return true;
    if (item->versioning == SIM_INTERNAL)
        return item->version >= 0 && at->last.version != item->version;
    if (item->versioning == SIM_EXTERNAL)
        return at->last.version >= item->version;
    return item->versioning == SIM_EXTERNAL_GTE && at->last.version > item->version;
}

static void set_result(struct sim_result *result, enum sim_outcome outcome, int64_t version, int64_t seq_no)
{
    *result = (struct sim_result){outcome, version, seq_no};
}

static void change(struct model_index *index, struct model_doc *doc, const struct sim_item *item,
                   const struct standing *at, const struct sim_source *source, uint64_t ts, struct sim_result *result)
{
    struct model_version next = {.ts = ts, .deleted = source == NULL};

    if (at->counts && at->last.version == INT64_MAX && item->versioning == SIM_INTERNAL) {
        set_result(result, SIM_EXHAUSTED, -1, -2);
        return;
    }
    next.version = item->versioning != SIM_INTERNAL ? item->version : at->counts ? at->last.version + 1 : 1;
    next.seq_no = index->next_seq_no++;
    if (source != NULL)
        next.source = *source;
    add_version(doc, &next);
    set_result(result,
               source == NULL ? (at->live ? SIM_DELETED : SIM_NOT_FOUND)
               : at->live     ? SIM_UPDATED
                              : SIM_CREATED,
               next.version, next.seq_no);
}

static void put(struct model_index *index, struct model_doc *doc, const struct sim_item *item,
                const struct standing *at, const struct sim_source *source, uint64_t ts, struct sim_result *result)
{
    if (item->broken) {
        set_result(result, SIM_UNFIT, -1, -2);
        return;
    }
    index->fields |= fields_of(source);
    change(index, doc, item, at, source, ts, result);
}

static void index_item(const struct model *model, struct model_index *index, const struct sim_item *item, uint64_t ts,
                       struct sim_result *result)
{
    struct model_doc *doc = doc_of(index, item);
    struct standing at = standing_of(model, index, doc, ts);

    if (item->broken) {
        set_result(result, SIM_UNFIT, -1, -2);
        return;
    }
    index->fields |= fields_of(&item->source); /* found out before the version is looked at */
    if (conflicts(item, &at, item->action == SIM_CREATE))
        set_result(result, SIM_CONFLICT, at.last.version, at.last.seq_no);
    else
        put(index, doc, item, &at, &item->source, ts, result);
}

static void delete_item(const struct model *model, struct model_index *index, const struct sim_item *item, uint64_t ts,
                        struct sim_result *result)
{
    struct model_doc *doc = doc_of(index, item);
    struct standing at = standing_of(model, index, doc, ts);

    if (conflicts(item, &at, false))
        set_result(result, SIM_CONFLICT, at.last.version, at.last.seq_no);
    else
        change(index, doc, item, &at, NULL, ts, result);
}

/* What a script makes of a source. Returns: 'i' index, 'd' delete, 'n' none. */
static char run_script(const struct sim_item *item, struct sim_source *source)
{
    int at;

    if (item->update == SIM_SCRIPT_DELETE)
        return 'd';
    if (item->update == SIM_SCRIPT_NONE)
        return 'n';
    at = find_field(source, 1);
    if (at < 0) {
        at = source->count++;
        source->field[at] = 1;
        source->value[at] = 0;
    }
    source->value[at] += item->by;
    return 'i';
}

static void update_missing(struct model_index *index, struct model_doc *doc, const struct sim_item *item,
                           const struct standing *at, uint64_t ts, struct sim_result *result)
{
    struct sim_source source = item->source;
    char op = 'i';

    if (!item->upsert) {
        set_result(result, SIM_MISSING, -1, -2);
        return;
    }
    if (item->scripted_upsert && item->update != SIM_BY_DOC) {
        op = run_script(item, &source);
        order_as_hash_map(&source);
    }
    if (op == 'i' && conflicts(item, at, true))
        set_result(result, SIM_CONFLICT, at->last.version, at->last.seq_no);
    else if (op == 'i')
        put(index, doc, item, at, &source, ts, result);
    else
        set_result(result, SIM_NOOP, -1, -2);
}

static void update_item(const struct model *model, struct model_index *index, const struct sim_item *item, uint64_t ts,
                        struct sim_result *result)
{
    struct model_doc *doc = doc_of(index, item);
    struct standing at = standing_of(model, index, doc, ts);
    struct sim_source source = at.last.source;
    char op = 'i';

    if (!at.live) {
        update_missing(index, doc, item, &at, ts, result);
        return;
    }
    if (conflicts(item, &at, false)) {
        set_result(result, SIM_CONFLICT, at.last.version, at.last.seq_no);
        return;
    }
    if (item->update != SIM_BY_DOC)
        op = run_script(item, &source);
    else if (!merge(&source, &item->source) && item->detect_noop)
        op = 'n';
    if (op == 'n')
        set_result(result, SIM_NOOP, at.last.version, at.last.seq_no);
    else if (op == 'd')
        change(index, doc, item, &at, NULL, ts, result);
    else
        put(index, doc, item, &at, &source, ts, result);
}

static bool failed(enum sim_outcome outcome)
{
    return outcome >= SIM_CONFLICT;
}

static void run_item(struct model *model, const struct sim_item *item, uint64_t ts, struct sim_result *result)
{
    struct model_index *index;

    set_result(result, SIM_NO_INDEX, -1, -2);
    index = find_for_write(model, item, ts, result);
    if (index == NULL)
        return;
    if (item->action == SIM_DELETE)
        delete_item(model, index, item, ts, result);
    else if (item->action == SIM_UPDATE)
        update_item(model, index, item, ts, result);
    else
        index_item(model, index, item, ts, result);
}

/* --- Renames ------------------------------------------------------------------------------------------------------ */

/* The newest version, where it is a document with a path. */
static const struct model_version *lying(const struct model_doc *doc)
{
    const struct model_version *last = doc->count == 0 ? NULL : &doc->versions[doc->count - 1];

    return last != NULL && !last->deleted && find_field(&last->source, SIM_PATH) >= 0 ? last : NULL;
}

/* Whether documents lie at a path, and below it. */
static void look_for(const struct model_index *index, const char *path, bool *ret_at, bool *ret_below)
{
    *ret_at = *ret_below = false;
    for (int i = 0; i < index->doc_count; i++) {
        const struct model_version *last = lying(&index->docs[i]);
        if (last == NULL || !model_within(last->source.path, path))
            continue;
        if (strcmp(last->source.path, path) == 0)
            *ret_at = true;
        else
            *ret_below = true;
    }
}

/* Returns: the highest sequence number of the documents at a path; -1: there is no document. */
static int64_t seq_no_at(const struct model_index *index, const char *path)
{
    int64_t highest = -1;

    for (int i = 0; i < index->doc_count; i++) {
        const struct model_version *last = lying(&index->docs[i]);
        if (last != NULL && strcmp(last->source.path, path) == 0 && last->seq_no > highest)
            highest = last->seq_no;
    }
    return highest;
}

int64_t model_seq_no_at(const struct model *model, const char *name, const char *path)
{
    const struct model_index *index = present(model, name);

    return index == NULL ? -1 : seq_no_at(index, path);
}

static void rename_document(struct model_doc *doc, const char *from, const char *to, int64_t seq_no, uint64_t ts)
{
    struct model_version next = *lying(doc);
    char path[2 * SIM_PATH_MAX];

    int len = snprintf(path, sizeof path, "%s%s", to, next.source.path + strlen(from));
    if (len >= SIM_PATH_MAX)
        abort(); /* the generator makes no such thing */
    memcpy(next.source.path, path, (size_t)len + 1);
    next.ts = ts;
    next.seq_no = seq_no;
    next.version += next.version < INT64_MAX;
    add_version(doc, &next);
}

/* Returns: whether the rename is accepted: docs/http-api.md, "Renames". */
static bool rename_all(struct model *model, const struct sim_op *op, uint64_t ts, struct sim_expected *expected)
{
    struct model_index *index = present(model, op->name);
    bool is_alias, at, below;

    if (index == NULL)
        index = write_index(model, op->name, &is_alias);
    if (index == NULL || index->closed || !index->tree || model_within(op->to, op->from))
        return false;
    look_for(index, op->from, &expected->document, &expected->directory);
    look_for(index, op->to, &at, &below);
    if ((!expected->document && !expected->directory) || at || below ||
        (op->if_seq_no >= 0 && op->if_seq_no != seq_no_at(index, op->from)))
        return false;
    expected->seq_no = index->next_seq_no++;
    for (int i = 0; i < index->doc_count; i++) {
        const struct model_version *last = lying(&index->docs[i]);
        if (last != NULL && model_within(last->source.path, op->from))
            rename_document(&index->docs[i], op->from, op->to, expected->seq_no, ts);
    }
    return true;
}

/* --- Going back --------------------------------------------------------------------------------------------------- */

static void copy_model(struct model *to, const struct model *from)
{
    *to = *from;
    to->index_capacity = from->index_count + 1;
    to->indices = malloc((size_t)to->index_capacity * sizeof(*to->indices));
    for (int i = 0; i < from->index_count; i++) {
        struct model_index *index = &to->indices[i];
        *index = from->indices[i];
        index->doc_capacity = index->doc_count + 1;
        index->docs = malloc((size_t)index->doc_capacity * sizeof(*index->docs));
        for (int j = 0; j < index->doc_count; j++) {
            struct model_doc *doc = &index->docs[j];
            *doc = from->indices[i].docs[j];
            doc->capacity = doc->count + 1;
            doc->versions = malloc((size_t)doc->capacity * sizeof(*doc->versions));
            for (int k = 0; k < doc->count; k++)
                doc->versions[k] = from->indices[i].docs[j].versions[k];
        }
    }
}

static void write_items(struct model *model, const struct sim_op *op, uint64_t ts, struct sim_expected *expected)
{
    struct model before;
    bool any = false;

    if (op->atomic)
        copy_model(&before, model);
    for (int i = 0; i < op->item_count; i++) {
        run_item(model, &op->items[i], ts, &expected->results[i]);
        any |= failed(expected->results[i].outcome);
    }
    if (!op->atomic)
        return;
    expected->rolled_back = any;
    if (any) {
        model_deinit(model);
        *model = before;
    } else {
        model_deinit(&before);
    }
}

/* A named write runs once; see src/core/README.md, "Repeated requests". */
static void write_named(struct model *model, const struct sim_op *op, uint64_t ts, struct sim_expected *expected)
{
    struct model_request *request = &model->requests[op->request - 1];
    bool any = false;

    if (request->recorded && request->ts >= model->outcomes_from) {
        if (request->op.hash == op->hash)
            *expected = request->expected;
        else
            expected->refused = true;
        return;
    }
    write_items(model, op, ts, expected);
    for (int i = 0; i < op->item_count; i++)
        any |= !failed(expected->results[i].outcome);
    *request = (struct model_request){*op, *expected, any && !expected->rolled_back, ts};
}

/* --- The catalog -------------------------------------------------------------------------------------------------- */

static bool valid_aliases(const struct model *model)
{
    for (int alias = 0; alias < SIM_ALIASES; alias++) {
        int writers = 0;
        for (int i = 0; i < model->index_count; i++)
            writers += model->indices[i].deleted == SIM_NEVER && model->indices[i].alias[alias] &&
                       model->indices[i].alias_writes[alias];
        if (writers > 1)
            return false;
    }
    return true;
}

static bool update_aliases(struct model *model, const struct sim_op *op)
{
    for (int i = 0; i < op->action_count; i++) {
        const struct sim_alias_action *action = &op->actions[i];
        struct model_index *index = present(model, action->index);
        int alias = alias_number(action->alias);
        if (index == NULL)
            return false;
        if (!action->add && !index->alias[alias])
            /*
             * removed already; an alias that never existed was refused before
             * (docs/compatibility.md)
             */
            continue;
        if (action->add && present(model, action->alias) != NULL)
            return false; /* an index has the name */
        index->alias[alias] = action->add;
        index->alias_writes[alias] = action->add && action->write;
    }
    return valid_aliases(model);
}

static bool aliases_or_back(struct model *model, const struct sim_op *op)
{
    struct model before;

    copy_model(&before, model);
    if (update_aliases(model, op)) {
        model_deinit(&before);
        return true;
    }
    model_deinit(model);
    *model = before;
    return false;
}

static bool create_index(struct model *model, const struct sim_op *op, uint64_t ts)
{
    if (present(model, op->name) != NULL || (op->name[0] >= 'A' && op->name[0] <= 'Z'))
        return false;
    struct model_index *index = make_index(model, op->name, op->five, op->number, ts);
    index->tree = model_is_tree_name(op->name);
    if (index->tree)
        index->fields |= 1u << SIM_PATH;
    return true;
}

static void put_settings(const struct model *model, struct model_index *index, const struct sim_op *op, uint64_t ts)
{
    index->replicas = op->number;
    if (op->gc_deletes < 0)
        return;
    uint64_t from = deletes_count_from(model, index, ts);
    index->forgotten = from < ts ? from : ts;
    index->gc_deletes_us = sim_gc_deletes[op->gc_deletes].us;
}

/* Returns: whether the command is accepted. */
static bool change_catalog(struct model *model, const struct sim_op *op, uint64_t ts)
{
    struct model_index *index = present(model, op->name);
    int slot = op->name[0] == '\0' ? 0 : (op->name[strlen(op->name) - 1] - '0') & 1;
    bool was_there;

    switch (op->kind) {
    case SIM_CREATE_INDEX: return create_index(model, op, ts);
    case SIM_UPDATE_ALIASES: return aliases_or_back(model, op);
    case SIM_PUT_TEMPLATE:
        model->templates[slot] = (struct model_template){true, op->action_count, op->number};
        return true;
    case SIM_DELETE_TEMPLATE:
        was_there = model->templates[slot].there;
        model->templates[slot].there = false;
        return was_there;
    case SIM_ZONES:
    case SIM_LIMITS: return op->number > 0;
    case SIM_PUT_SCRIPT: model->scripts[slot] = true; return true;
    case SIM_DELETE_SCRIPT:
        was_there = model->scripts[slot];
        model->scripts[slot] = false;
        return was_there;
    case SIM_DELETE_INDEX:
    case SIM_SET_STATE:
    case SIM_PUT_MAPPING:
    case SIM_PUT_SETTINGS: break;
    default: return true;
    }
    if (index == NULL)
        return false;
    if (op->kind == SIM_DELETE_INDEX)
        index->deleted = ts;
    else if (op->kind == SIM_SET_STATE)
        index->closed = op->flag;
    else if (op->kind == SIM_PUT_MAPPING)
        index->fields |= 1u << op->number;
    else
        put_settings(model, index, op, ts);
    return true;
}

void model_apply(struct model *model, const struct sim_op *op, uint64_t ts, struct sim_expected *ret_expected)
{
    memset(ret_expected, 0, sizeof(*ret_expected));
    if (op->kind == SIM_WRITE && op->request > 0)
        write_named(model, op, ts, ret_expected);
    else if (op->kind == SIM_WRITE)
        write_items(model, op, ts, ret_expected);
    else if (op->kind == SIM_RENAME)
        ret_expected->refused = !rename_all(model, op, ts, ret_expected);
    else
        ret_expected->refused = !change_catalog(model, op, ts);
}
