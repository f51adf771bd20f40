/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _mapping of indices, whole, by type and by field.
 */
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/index_set.h"
#include "api/request/location.h"
#include "api/request/name_list.h"
#include "json/each.h"
#include "json/filter.h"
#include "mapping/mapping.h"

/* --- Names in lists ----------------------------------------------------------------------------------------------- */

static bool matches_any(struct slice list, struct slice name)
{
    while (list.len > 0) {
        size_t len = slice_find_byte(list, ',');
        struct slice pattern = slice_make(list.data, len);
        if (slice_is(pattern, "_all") || json_wildcard(pattern, name))
            return true;
        list = slice_from_offset(list, len + 1);
    }
    return false;
}

/* --- Show --------------------------------------------------------------------------------------------------------- */

/* The types of an index that are asked for. Returns: how many were written. */
static size_t write_types(struct request *request, const struct catalog_index *index, struct slice types,
                          struct json_writer *writer)
{
    size_t written = 0;
    for (size_t i = 0; i < mapping_type_count(index->mapping); i++) {
        const struct mapping_type *type = mapping_type_at(index->mapping, i);
        if (!matches_any(types, type->name))
            continue;
        if (written++ == 0) {
            json_key_slice(writer, index->name);
            json_begin(writer, '{');
            json_key(writer, "mappings");
            json_begin(writer, '{');
        }
        json_key_slice(writer, type->name);
        mapping_render_type(index->mapping, type, index->dialect, writer->buf);
        writer->comma = true;
    }
    if (written > 0) {
        json_end(writer, '}');
        json_end(writer, '}');
    }
    (void)request;
    return written;
}

static bool any_type_matches(const struct index_set *set, struct slice pattern)
{
    for (size_t i = 0; i < set->count; i++)
        for (size_t k = 0; k < mapping_type_count(set->targets[i].index->mapping); k++)
            if (matches_any(pattern, mapping_type_at(set->targets[i].index->mapping, k)->name))
                return true;
    return false;
}

/* Those patterns of a list that no type of the set matches, in order and apart by commas. */
static struct slice missing_types(struct request *request, const struct index_set *set, struct slice types,
                                  size_t *ret_count)
{
    struct slice *missing = arena_alloc(request->arena, (types.len + 1) * sizeof *missing);
    size_t count = 0;
    while (types.len > 0) {
        size_t len = slice_find_byte(types, ',');
        struct slice pattern = slice_make(types.data, len);
        if (!slice_is(pattern, "_all") && !slice_is(pattern, "*") && !any_type_matches(set, pattern))
            missing[count++] = pattern;
        types = slice_from_offset(types, len + 1);
    }
    *ret_count = count;
    return name_list_sort(request->arena, missing, count);
}

/* Whether indices of 7.x have the types: its calls name one with include_type_name only. */
static bool of_seven(const struct request *request, const struct index_set *set)
{
    bool typed = false;
    for (size_t i = 0; i < set->count; i++)
        typed = typed || mapping_type_count(set->targets[i].index->mapping) > 0;
    return request->dialect == DIALECT_7 && typed;
}

/* GET /index/_mapping/type: 404 when a type is missing, with what there is of the others. */
static int reply_types(struct request *request, const struct index_set *set, struct slice types)
{
    struct json_writer writer;
    size_t missing_count, written = 0;
    struct slice missing = missing_types(request, set, types, &missing_count);
    reply_begin(request, missing_count > 0 ? 404 : 200, &writer);
    json_begin(&writer, '{');
    if (missing_count > 0) {
        json_key(&writer, "error");
        json_string(&writer, arena_printf(request->arena, "type%s [%.*s] missing", missing_count > 1 ? "s" : "",
                                          SLICE_ARG(missing)));
        json_key(&writer, "status");
        json_i64(&writer, 404);
    }
    for (size_t i = 0; i < set->count; i++)
        written += write_types(request, set->targets[i].index, types, &writer);
    json_end(&writer, '}');
    if (written == 0 && missing_count > 0) {
        int r = request_refuse(request, PROBLEM_TYPE_MISSING, "type[[%.*s]] missing", SLICE_ARG(types));
        struct slice index = request_part(request, PART_INDEX);
        problem_details(&request->problem, request->arena, "\"index_uuid\":\"_na_\",\"index\":%.*s",
                        SLICE_ARG(request_quoted(request, index.len > 0 ? index : SLICE_LIT("_all"))));
        return r;
    }
    return REQUEST_DONE;
}

int handle_mapping_get(struct request *request)
{
    struct catalog_options options = {.allow_no_indices = true, .expand_open = true, .allow_closed = true};
    struct index_set set;
    struct json_writer writer;
    bool typed = false, local = false;
    int r = request_bool(request, "include_type_name", &typed);
    if (r != 0 || (r = request_bool(request, "local", &local)) != 0 ||
        (r = index_set_read(request, &options, &set)) != 0)
        return r;
    bool named = request_param(request, "include_type_name").data != NULL;
    struct slice types = request_part(request, PART_TYPE);
    if (slice_is(types, "_all") && !typed)
        types = SLICE_NONE; /* that names none */
    if (types.len > 0 && !typed && (named || of_seven(request, &set)))
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "Types cannot be provided in get mapping requests, unless include_type_name is set to true.");
    if (types.len > 0)
        return reply_types(request, &set, types);
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    for (size_t i = 0; i < set.count; i++) {
        const struct catalog_index *index = set.targets[i].index;
        json_key_slice(&writer, index->name);
        json_begin(&writer, '{');
        json_key(&writer, "mappings");
        index_render_mapping(index, named ? &typed : NULL, writer.buf);
        writer.comma = true;
        json_end(&writer, '}');
    }
    json_end(&writer, '}');
    return REQUEST_DONE;
}

/* --- Fields ------------------------------------------------------------------------------------------------------- */

static void write_field(void *context, const struct mapping_field *field)
{
    struct json_writer *writer = context;
    json_key_slice(writer, field->path);
    json_begin(writer, '{');
    json_key(writer, "full_name");
    json_string(writer, field->path);
    json_key(writer, "mapping");
    mapping_render_field(field, DIALECT_7, writer->buf);
    writer->comma = true;
    json_end(writer, '}');
}

/* The fields that every document of 7.10 has. They have no parameters. */
static void write_metadata(struct slice pattern, struct json_writer *writer)
{
    static const char *const names[] = {"_feature", "_field_names", "_id",     "_ignored", "_index",
                                        "_routing", "_seq_no",      "_source", "_type",    "_version"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!json_wildcard(pattern, slice_from(names[i])))
            continue;
        json_key(writer, names[i]);
        json_begin(writer, '{');
        json_key(writer, "full_name");
        json_string(writer, slice_from(names[i]));
        json_key(writer, "mapping");
        json_begin(writer, '{');
        json_end(writer, '}');
        json_end(writer, '}');
    }
}

static void write_fields(const struct catalog_index *index, enum dialect dialect, struct slice patterns,
                         struct json_writer *writer)
{
    while (patterns.len > 0) {
        size_t len = slice_find_byte(patterns, ',');
        struct slice pattern = slice_make(patterns.data, len);
        mapping_fields_matching(index->mapping, pattern, write_field, writer);
        if (dialect == DIALECT_7 && mapping_type_count(index->mapping) > 0)
            write_metadata(pattern, writer);
        patterns = slice_from_offset(patterns, len + 1);
    }
}

int handle_mapping_get_field(struct request *request)
{
    bool seven = request->dialect == DIALECT_7;
    struct catalog_options options = {.allow_no_indices = true, .expand_open = true, .allow_closed = seven};
    struct index_set set;
    struct json_writer writer;
    bool typed = false, flag = false, defaults = false;
    int r = request_bool(request, "include_type_name", &typed);
    if (r != 0 || (r = request_bool(request, "include_defaults", &defaults)) != 0 ||
        (r = request_bool(request, "local", &flag)) != 0 || (r = index_set_read(request, &options, &set)) != 0)
        return r;
    if (defaults)
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "[include_defaults] is not supported: the documentation of a field type has its defaults");
    bool named = request_param(request, "include_type_name").data != NULL;
    size_t open = 0;
    for (size_t i = 0; i < set.count; i++)
        open += !set.targets[i].index->closed;
    reply_begin(request, open == 0 && seven ? 404 : 200, &writer);
    json_begin(&writer, '{');
    for (size_t i = 0; i < set.count; i++) {
        const struct catalog_index *index = set.targets[i].index;
        if (index->closed) /* it has no shard that could list its fields */
            continue;
        json_key_slice(&writer, index->name);
        json_begin(&writer, '{');
        json_key(&writer, "mappings");
        json_begin(&writer, '{');
        bool by_type = index_is_typed(index, named ? &typed : NULL) && mapping_type_count(index->mapping) > 0;
        if (by_type) {
            json_key_slice(&writer, mapping_type_at(index->mapping, 0)->name);
            json_begin(&writer, '{');
        }
        write_fields(index, request->dialect, request_part(request, PART_FIELDS), &writer);
        if (by_type)
            json_end(&writer, '}');
        json_end(&writer, '}');
        json_end(&writer, '}');
    }
    json_end(&writer, '}');
    return REQUEST_DONE;
}

/* --- Change ------------------------------------------------------------------------------------------------------- */

struct mapping_change {
    struct slice body;
    struct slice type;
    bool include_type_name;
    bool typed; /* by that parameter, or by the path */
};

static struct command *make_change(struct request *request, struct slice index, void *context)
{
    const struct mapping_change *change = context;
    struct command *command = command_new(COMMAND_MAPPING_PUT, change->typed ? DIALECT_5 : request->dialect);
    command->index.name = index;
    command->index.body = change->body;
    command->index.type = change->type;
    command->index.include_type_name = change->include_type_name;
    return command;
}

int handle_mapping_put(struct request *request)
{
    struct catalog_options options = {
        .allow_no_indices = false, .expand_open = true, .expand_closed = true, .allow_closed = true};
    struct mapping_change *change = arena_zalloc(request->arena, sizeof *change);
    struct index_set set;
    struct json_doc doc;
    int64_t ignored = 0;
    int r = request_bool(request, "include_type_name", &change->typed);
    if (r != 0 || (r = request_time(request, "timeout", &ignored)) != 0 ||
        (r = index_set_read(request, &options, &set)) != 0)
        return r;
    bool named = request_param(request, "include_type_name").data != NULL;
    change->type = request_part(request, PART_TYPE);
    if (change->type.len > 0 && !change->typed && (named || of_seven(request, &set)))
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "Types cannot be provided in put mapping requests, unless the include_type_name parameter is "
            "set to true.");
    change->include_type_name = change->typed;
    change->typed = change->typed || change->type.len > 0;
    struct slice body =
        request->dialect == DIALECT_7 ? location_first_value(request_body(request)) : request_body(request);
    doc = (struct json_doc){NULL};
    if (body.len > 0 && (r = json_parse(request->arena, body, request->dialect, 0, &doc, &request->problem)) != 0)
        return r < 0                           ? r
               : request->dialect == DIALECT_7 ? request_wrap(request, PROBLEM_PARSE, "Failed to parse content to map")
                                               : REQUEST_REFUSED;
    if (doc.root == NULL)
        return request_refuse(request, PROBLEM_PARSE, "request body is required");
    if (change->include_type_name && change->type.len == 0 && request->dialect == DIALECT_7)
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: mapping type is missing;");
    if (!change->typed && yyjson_obj_size(doc.root) == 1 && json_get_lit(doc.root, "_doc") != NULL)
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "Types cannot be provided in put mapping requests, unless the include_type_name parameter is "
            "set to true.");
    if (!change->typed && !named && request->dialect == DIALECT_5 && index_mappings_are_typed(doc.root))
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: mapping type is missing;");
    change->body = body;
    return index_set_submit(request, &set, make_change, change, reply_acknowledged);
}

/* --- Types of an index exist -------------------------------------------------------------------------------------- */

int handle_type_exists(struct request *request)
{
    struct catalog_options options = CATALOG_OPTIONS_DEFAULT;
    struct index_set set;
    bool local = false;
    int r = request_bool(request, "local", &local);
    if (r != 0 || (r = index_set_read(request, &options, &set)) != 0)
        return r;
    size_t missing = 0;
    missing_types(request, &set, request_part(request, PART_TYPE), &missing);
    return reply_empty(request, missing == 0 && set.count > 0 ? 200 : 404);
}
