/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _field_caps: the fields of several indices, their types, and whether each can be searched and aggregated.
 *
 * A field is looked at index by index. Those of one type are listed together: where their indices
 * differ in a capability, those that lack it are named; where there are several types, the indices
 * of each.
 */
#include <stdlib.h>

#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/index_set.h"
#include "api/request/location.h"
#include "api/request/request_budget.h"
#include "base/map.h"
#include "json/each.h"
#include "json/filter.h"
#include "mapping/mapping.h"
#include "query/query.h"

enum {
    SHORT_FIELDS = 10000, /* times patterns: more is a worker's work */
    COPY_BYTES = 128,     /* of a field in addition to its name, estimated */
};

/* A type that a field has in some indices. */
struct kind {
    struct kind *next;
    struct slice type;
    size_t *indices;                 /* positions in the set, in their order */
    bool *searchable, *aggregatable; /* in each of them */
    struct slice *metas;             /* JSON of the mapping's `meta`; data NULL: none */
    size_t count, capacity;
};

struct caps_field {
    struct slice name;
    struct kind *kinds;
    size_t seen; /* one more than the position of the index that it was met in last */
    size_t index_count;
};

struct caps {
    struct request *request;
    struct index_set set;
    struct slice patterns;
    bool include_unmapped;
    struct map fields; /* by name: struct caps_field * */
    size_t at;         /* the index that is looked at */
};

/* --- Looking ------------------------------------------------------------------------------------------------------ */

static struct slice parameter_value(const struct mapping_field *field, const char *name)
{
    for (size_t i = 0; i < field->parameter_count; i++)
        if (slice_is(field->parameters[i].name, name))
            return field->parameters[i].json;
    return SLICE_NONE;
}

static struct caps_field *field_of(struct caps *caps, struct slice name)
{
    struct caps_field *field = map_get(&caps->fields, name);
    if (field == NULL && request_budget_take(caps->request, COPY_BYTES + name.len) == 0) {
        field = arena_zalloc(caps->request->arena, sizeof *field);
        field->name = name;
        map_put(&caps->fields, name, field);
    }
    return field;
}

static struct kind *kind_of(struct arena *arena, struct caps_field *field, struct slice type)
{
    struct kind **end = &field->kinds;
    while (*end != NULL && !slice_equal((*end)->type, type))
        end = &(*end)->next;
    if (*end == NULL) {
        *end = arena_zalloc(arena, sizeof **end);
        (*end)->type = type;
    }
    return *end;
}

static void grow_kind(struct arena *arena, struct kind *kind)
{
    size_t before = kind->capacity, one = before, two = before, three = before;
    kind->indices = arena_grow(arena, kind->indices, kind->count, &kind->capacity, sizeof *kind->indices);
    kind->searchable = arena_grow(arena, kind->searchable, kind->count, &one, sizeof *kind->searchable);
    kind->aggregatable = arena_grow(arena, kind->aggregatable, kind->count, &two, sizeof *kind->aggregatable);
    kind->metas = arena_grow(arena, kind->metas, kind->count, &three, sizeof *kind->metas);
}

static void record_field(struct caps *caps, struct slice name, struct slice type, bool searchable, bool aggregatable,
                         struct slice meta)
{
    struct arena *arena = caps->request->arena;
    struct caps_field *field = field_of(caps, name);
    if (field == NULL || field->seen == caps->at + 1)
        return;
    struct kind *kind = kind_of(arena, field, type);
    field->seen = caps->at + 1;
    field->index_count++;
    grow_kind(arena, kind);
    kind->indices[kind->count] = caps->at;
    kind->searchable[kind->count] = searchable;
    kind->aggregatable[kind->count] = aggregatable;
    kind->metas[kind->count] = meta;
    kind->count++;
}

static bool is_aggregatable(const struct mapping_field *field)
{
    if (field->type == FIELD_TEXT)
        return slice_is(parameter_value(field, "fielddata"), "true");
    return field->doc_values && field_value_kind(field) != FIELD_VALUE_NONE;
}

/* An alias has the capabilities of its field. */
static void note_field(void *context, const struct mapping_field *found)
{
    struct caps *caps = context;
    const struct mapping *mapping = caps->set.targets[caps->at].index->mapping;
    const struct mapping_field *field = mapping_field(mapping, found->path);
    if (field == NULL || request_budget_stops(caps->request, 1))
        return;
    record_field(caps, found->path, field->type_name, field->indexed && field_value_kind(field) != FIELD_VALUE_NONE,
                 is_aggregatable(field), parameter_value(field, "meta"));
    for (const struct mapping_field *above = field->parent; above != NULL && above->parent != NULL;
         above = above->parent)
        if (above->type == FIELD_OBJECT || above->type == FIELD_NESTED)
            record_field(caps, above->path, above->type == FIELD_NESTED ? SLICE_LIT("nested") : SLICE_LIT("object"),
                         false, false, SLICE_NONE);
}

/* The fields that every document of 7.10 has. */
static void note_own(struct caps *caps, struct slice pattern)
{
    static const struct {
        const char *name;
        bool searchable, aggregatable;
    } own[] = {{"_feature", false, false}, {"_field_names", true, false}, {"_id", true, true},
               {"_ignored", true, false},  {"_index", true, true},        {"_routing", true, false},
               {"_seq_no", true, true},    {"_source", false, false},     {"_type", true, true},
               {"_version", false, false}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (json_wildcard(pattern, slice_from(own[i].name)))
            record_field(caps, slice_from(own[i].name), slice_from(own[i].name), own[i].searchable, own[i].aggregatable,
                         SLICE_NONE);
}

static void collect_fields(struct caps *caps)
{
    for (caps->at = 0; caps->at < caps->set.count; caps->at++) {
        const struct mapping *mapping = caps->set.targets[caps->at].index->mapping;
        for (struct slice rest = caps->patterns; rest.len > 0;) {
            size_t len = slice_find_byte(rest, ',');
            struct slice pattern = slice_make(rest.data, len);
            if (request_budget_stops(caps->request, mapping_field_count(mapping) + 1))
                return;
            mapping_fields_matching(mapping, pattern, note_field, caps);
            if (mapping_type_count(mapping) > 0)
                note_own(caps, pattern);
            rest = slice_from_offset(rest, len + 1);
        }
    }
}

/* An index that has no such field has it as one that can be used for nothing. */
static void note_unmapped(struct caps *caps, struct caps_field *field)
{
    bool *has = arena_zalloc(caps->request->arena, caps->set.count + 1);
    for (const struct kind *kind = field->kinds; kind != NULL; kind = kind->next)
        for (size_t i = 0; i < kind->count; i++)
            has[kind->indices[i]] = true;
    for (caps->at = 0; caps->at < caps->set.count && !request_budget_stops(caps->request, 1); caps->at++)
        if (!has[caps->at])
            record_field(caps, field->name, SLICE_LIT("unmapped"), false, false, SLICE_NONE);
}

/* --- The response ------------------------------------------------------------------------------------------------- */

static void write_index(struct caps *caps, struct json_writer *w, size_t position)
{
    json_string(w, caps->set.targets[position].index->name);
}

/* The indices in which a use is not to be had, where it is in others. */
static void write_lacking(struct caps *caps, struct json_writer *w, const char *key, const struct kind *kind,
                          const bool *uses)
{
    size_t having = 0;
    for (size_t i = 0; i < kind->count; i++)
        having += uses[i];
    if (having == 0 || having == kind->count)
        return;
    json_key(w, key);
    json_begin(w, '[');
    for (size_t i = 0; i < kind->count; i++)
        if (!uses[i])
            write_index(caps, w, kind->indices[i]);
    json_end(w, ']');
}

static bool all_set(const bool *uses, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!uses[i])
            return false;
    return true;
}

struct fact {
    struct slice key, value;
};

static int by_fact(const void *left, const void *right)
{
    const struct fact *a = left, *b = right;
    int order = slice_compare(a->key, b->key);
    return order != 0 ? order : slice_compare(a->value, b->value);
}

/* Each key of the metas with all the values that it has. */
static void write_meta(struct caps *caps, struct json_writer *w, const struct kind *kind)
{
    struct fact *facts = NULL;
    size_t fact_count = 0, capacity = 0, index, count;
    yyjson_val *key, *value;
    for (size_t i = 0; i < kind->count; i++) {
        struct json_doc doc;
        if (kind->metas[i].data == NULL || json_parse_stored(caps->request->arena, kind->metas[i], &doc) != 0)
            continue;
        json_obj_foreach (doc.root, index, count, key, value) {
            facts = arena_grow(caps->request->arena, facts, fact_count, &capacity, sizeof *facts);
            facts[fact_count++] = (struct fact){json_slice(key), json_slice(value)};
        }
    }
    if (fact_count == 0)
        return;
    qsort(facts, fact_count, sizeof *facts, by_fact);
    json_key(w, "meta");
    json_begin(w, '{');
    for (size_t i = 0; i < fact_count; i++) {
        bool first = i == 0 || !slice_equal(facts[i].key, facts[i - 1].key);
        bool last = i + 1 == fact_count || !slice_equal(facts[i].key, facts[i + 1].key);
        if (first) {
            json_key_slice(w, facts[i].key);
            json_begin(w, '[');
        }
        if (first || !slice_equal(facts[i].value, facts[i - 1].value))
            json_string(w, facts[i].value);
        if (last)
            json_end(w, ']');
    }
    json_end(w, '}');
}

static void write_kind(struct caps *caps, struct json_writer *w, const struct kind *kind, bool only)
{
    json_key_slice(w, kind->type);
    json_begin(w, '{');
    json_key(w, "type");
    json_string(w, kind->type);
    json_key(w, "searchable");
    json_bool(w, all_set(kind->searchable, kind->count));
    json_key(w, "aggregatable");
    json_bool(w, all_set(kind->aggregatable, kind->count));
    if (!only) {
        json_key(w, "indices");
        json_begin(w, '[');
        for (size_t i = 0; i < kind->count; i++)
            write_index(caps, w, kind->indices[i]);
        json_end(w, ']');
    }
    write_lacking(caps, w, "non_searchable_indices", kind, kind->searchable);
    write_lacking(caps, w, "non_aggregatable_indices", kind, kind->aggregatable);
    write_meta(caps, w, kind);
    json_end(w, '}');
}

static void write_fields(struct caps *caps, struct json_writer *w)
{
    struct slice name;
    void *found;
    for (size_t position = 0;
         map_next(&caps->fields, &position, &name, &found) && !request_budget_stops(caps->request, 1);) {
        struct caps_field *field = found;
        if (caps->include_unmapped && field->index_count < caps->set.count)
            note_unmapped(caps, field);
        json_key_slice(w, name);
        json_begin(w, '{');
        for (const struct kind *kind = field->kinds; kind != NULL; kind = kind->next)
            write_kind(caps, w, kind, field->kinds->next == NULL);
        json_end(w, '}');
    }
}

static int reply_fields(struct request *request)
{
    struct caps *caps = request->context;
    struct json_writer w;
    collect_fields(caps);
    reply_begin(request, 200, &w);
    json_begin(&w, '{');
    json_key(&w, "indices");
    json_begin(&w, '[');
    for (size_t i = 0; i < caps->set.count; i++)
        write_index(caps, &w, i);
    json_end(&w, ']');
    json_key(&w, "fields");
    json_begin(&w, '{');
    write_fields(caps, &w);
    json_end(&w, '}');
    json_end(&w, '}');
    map_deinit(&caps->fields);
    return request_budget_refused(request) ? request_budget_refuse(request) : REQUEST_DONE;
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

/* A body may have an index_filter alone, and that is not here. */
static int check_body(struct request *request)
{
    struct slice body = request_body(request);
    struct json_doc doc;
    size_t index, count;
    yyjson_val *key, *value;
    if (location_is_blank(body))
        return 0;
    int r = json_parse(request->arena, body, request->dialect, 0, &doc, &request->problem);
    if (r != 0)
        return r > 0 ? REQUEST_REFUSED : tl_trace(r);
    json_obj_foreach (doc.root, index, count, key, value) {
        if (slice_is(json_slice(key), "index_filter"))
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                                  "[index_filter] is not supported: name the indices in the path, or ask [_count] "
                                  "which of them have documents that match");
        size_t line, column;
        query_location(&doc, key, false, &line, &column);
        request_refuse(request, PROBLEM_PARSING, "request does not support [%.*s]", SLICE_ARG(json_slice(key)));
        problem_details(&request->problem, request->arena, "\"line\":%zu,\"col\":%zu", line, column);
        return REQUEST_REFUSED;
    }
    return 0;
}

/* A closed index has no shard that could list its fields. */
static void leave_out_closed(struct index_set *set)
{
    size_t open = 0;
    for (size_t i = 0; i < set->count; i++)
        if (!set->targets[i].index->closed)
            set->targets[open++] = set->targets[i];
    set->count = open;
}

int handle_field_caps(struct request *request)
{
    struct catalog_options options = {.allow_no_indices = true, .expand_open = true, .allow_closed = true};
    struct caps *caps = arena_zalloc(request->arena, sizeof *caps);
    size_t fields = 0, patterns = 1;
    int r;
    request->context = caps;
    *caps = (struct caps){.request = request, .patterns = request_param(request, "fields"), .fields = MAP_INIT};
    if (caps->patterns.len == 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "specified fields can't be null or empty");
    if ((r = request_bool(request, "include_unmapped", &caps->include_unmapped)) != 0 ||
        (r = check_body(request)) != 0 || (r = index_set_read(request, &options, &caps->set)) != 0)
        return r;
    leave_out_closed(&caps->set);
    for (size_t i = 0; i < caps->patterns.len; i++)
        patterns += caps->patterns.data[i] == ',';
    for (size_t i = 0; i < caps->set.count; i++)
        fields += mapping_field_count(caps->set.targets[i].index->mapping) + 1;
    return fields * patterns <= SHORT_FIELDS ? reply_fields(request) : request_work(request, reply_fields);
}
