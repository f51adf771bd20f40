/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices: create, delete, exist, show, open, close; and the calls that keep an index in shape,
 * which find nothing to do.
 */
#include "api/indices/alias_filter.h"
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/index_set.h"
#include "api/request/instant.h"
#include "core/catalog/cluster_settings.h"
#include "json/each.h"
#include "mapping/mapping.h"

/* --- Create ------------------------------------------------------------------------------------------------------- */

/* Members of a mapping's root; a "mappings" object without any of them holds types. */
static bool is_root_member(struct slice name)
{
    static const char *const names[] = {"properties",           "dynamic", "dynamic_templates",
                                        "date_detection",       "enabled", "numeric_detection",
                                        "dynamic_date_formats", "runtime", "_all"};
    if (name.len > 0 && name.data[0] == '_')
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_is(name, names[i]))
            return true;
    return false;
}

static bool holds_root_members_only(yyjson_val *object)
{
    size_t i, count;
    yyjson_val *key, *value;
    json_obj_foreach (object, i, count, key, value) {
        if (!is_root_member(json_slice(key)))
            return false;
    }
    return yyjson_is_obj(object);
}

bool index_mappings_are_typed(yyjson_val *mappings)
{
    size_t i, count;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(mappings) || yyjson_obj_size(mappings) == 0)
        return false;
    json_obj_foreach (mappings, i, count, key, value) {
        if (is_root_member(json_slice(key)) || !holds_root_members_only(value))
            return false;
    }
    return true;
}

/* The dialect of the new index: that of its mappings; without any, that of the server's indices. */
static enum dialect creating_dialect(struct request *request, yyjson_val *mappings)
{
    if (request_param(request, "include_type_name").data != NULL || request->form.compatible_8)
        return DIALECT_7;
    if (yyjson_obj_size(mappings) == 0)
        return request->dialect;
    return index_mappings_are_typed(mappings) ? DIALECT_5 : DIALECT_7;
}

static int create_done(struct request *request, struct command *command)
{
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    buf_lit(writer.buf, "{\"acknowledged\":true,\"shards_acknowledged\":true,\"index\":");
    buf_json_string(writer.buf, command->index.name);
    buf_byte(writer.buf, '}');
    return REQUEST_DONE;
}

int handle_index_create(struct request *request)
{
    struct json_doc doc;
    bool typed = false;
    int64_t ignored = 0;
    int r = request_bool(request, "include_type_name", &typed);
    if (r != 0 || (r = request_time(request, "timeout", &ignored)) != 0 ||
        (r = request_time(request, "master_timeout", &ignored)) != 0 || (r = request_accept(request)) != 0)
        return r;
    if ((r = request_json(request, JSON_DOCUMENT, &doc)) != 0)
        return r == REQUEST_REFUSED && request->problem.type != PROBLEM_NOT_X_CONTENT
                   ? request_wrap(request, PROBLEM_PARSE, "Failed to parse content to map")
                   : r;
    if (typed && json_get_lit(json_get_lit(doc.root, "mappings"), "") != NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "name cannot be empty string");
    enum dialect dialect = creating_dialect(request, json_get_lit(doc.root, "mappings"));
    bool by_type = typed || dialect == DIALECT_5;
    yyjson_val *aliases = json_get_lit(doc.root, "aliases");
    if ((r = alias_routings_check(request, aliases)) != 0 ||
        (r = alias_filters_check(request, request_part(request, PART_INDEX), dialect, by_type,
                                 json_get_lit(doc.root, "mappings"), aliases)) != 0)
        return r;
    struct command *command = command_new(COMMAND_INDEX_CREATE, dialect);
    command->index = (struct index_command){.name = request_part(request, PART_INDEX),
                                            .body = doc.root == NULL ? SLICE_NONE : request_body(request),
                                            .uuid = id_random(&request->api->ids, &command->arena),
                                            .include_type_name = by_type};
    return request_submit(request, command, create_done);
}

/* --- Delete ------------------------------------------------------------------------------------------------------- */

static struct command *make_delete(struct request *request, struct slice index, void *context)
{
    (void)context;
    struct command *command = command_new(COMMAND_INDEX_DELETE, request->dialect);
    command->index.name = index;
    return command;
}

/* action.destructive_requires_name: what ends many indices at once, or opens or closes them, must name each. */
static int check_named(struct request *request)
{
    struct slice names = request_part(request, PART_INDEX);
    bool any = names.len == 0 || slice_is(names, "_all") || slice_find_byte(names, '*') < names.len;
    if (!any ||
        !cluster_setting_is(request_catalog(request), "action.destructive_requires_name", "true", request->arena))
        return 0;
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Wildcard expressions or all indices are not allowed");
}

/* All or none: one that is blocked saves the others. The core checks each again. */
static int check_blocks(struct request *request, const struct index_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct catalog_block *block = set->targets[i].index->metadata_block;
        if (block == NULL || block->spares_removal)
            continue;
        catalog_problem_blocked(request->arena, set->targets[i].index->name, block, &request->problem);
        return REQUEST_REFUSED;
    }
    return 0;
}

int handle_index_delete(struct request *request)
{
    static const struct catalog_options options = {.allow_no_indices = true,
                                                   .expand_open = true,
                                                   .expand_closed = true,
                                                   .allow_closed = true,
                                                   .refuse_aliases = true};
    struct index_set set;
    int64_t ignored = 0;
    int r = request_time(request, "timeout", &ignored);
    if (r != 0)
        return r;
    if (request_part(request, PART_INDEX).len == 0) {
        if ((r = request_accept(request)) != 0)
            return r;
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: index / indices is missing;");
    }
    if ((r = check_named(request)) != 0 || (r = index_set_read(request, &options, &set)) != 0 ||
        (r = check_blocks(request, &set)) != 0)
        return r;
    return index_set_submit(request, &set, make_delete, NULL, reply_acknowledged);
}

/* --- Open and close ----------------------------------------------------------------------------------------------- */

struct state_change {
    struct index_set set;
    bool close;
};

static struct command *make_state(struct request *request, struct slice index, void *context)
{
    const struct state_change *change = context;
    struct command *command = command_new(COMMAND_INDEX_STATE, request->dialect);
    command->index.name = index;
    command->index.close = change->close;
    return command;
}

static int state_done(struct request *request)
{
    const struct state_change *change = request->context;
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, "acknowledged");
    json_bool(&writer, true);
    if (request->dialect == DIALECT_7) {
        json_key(&writer, "shards_acknowledged");
        json_bool(&writer, !change->close || change->set.count > 0); /* nothing was closed: false */
    }
    if (change->close && request->dialect == DIALECT_7) {
        json_key(&writer, "indices");
        json_begin(&writer, '{');
        for (size_t i = 0; i < change->set.count; i++) {
            json_key_slice(&writer, change->set.targets[i].index->name);
            json_raw(&writer, SLICE_LIT("{\"closed\":true}"));
        }
        json_end(&writer, '}');
    }
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static int change_state(struct request *request, bool close)
{
    const struct catalog_options options = {.allow_no_indices = !close || request->dialect == DIALECT_7,
                                            .expand_open = close,
                                            .expand_closed = !close,
                                            .allow_closed = true};
    struct state_change *change = arena_zalloc(request->arena, sizeof *change);
    int64_t ignored = 0;
    int r = request_time(request, "timeout", &ignored);
    change->close = close;
    if (r != 0)
        return r;
    if (request_part(request, PART_INDEX).len == 0) /* all indices are named by _all */
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION, "Validation Failed: 1: index is missing;");
    if ((r = check_named(request)) != 0)
        return r;
    if (close && cluster_setting_is(request_catalog(request), "cluster.indices.close.enable", "false", request->arena))
        return request_refuse(
            request, PROBLEM_ILLEGAL_STATE,
            "closing indices is disabled - set [cluster.indices.close.enable: true] to enable it. NOTE: "
            "closed indices still consume a significant amount of diskspace");
    if ((r = index_set_read(request, &options, &change->set)) != 0)
        return r;
    return index_set_submit(request, &change->set, make_state, change, state_done);
}

int handle_index_open(struct request *request)
{
    return change_state(request, false);
}

int handle_index_close(struct request *request)
{
    return change_state(request, true);
}

/* --- Exist and show ----------------------------------------------------------------------------------------------- */

/* 5.6 has routes whose names begin with '_', and a text of its own for those it lacks. */
static int check_reserved_name(struct request *request)
{
    struct slice name = request_part(request, PART_INDEX);
    if (name.len == 0 || name.data[0] != '_' || slice_is(name, "_all"))
        return 0;
    int r = request_accept(request);
    if (r != 0)
        return r;
    if (request->dialect == DIALECT_5)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "No endpoint or operation is available at [%.*s]",
                              SLICE_ARG(name));
    r = request_refuse(request, PROBLEM_INVALID_INDEX_NAME, "Invalid index name [%.*s], must not start with '_'.",
                       SLICE_ARG(name));
    problem_details(&request->problem, request->arena, "\"index_uuid\":\"_na_\",\"index\":%.*s",
                    SLICE_ARG(request_quoted(request, name)));
    return r;
}

int handle_index_exists(struct request *request)
{
    static const struct catalog_options options = {
        .allow_no_indices = true, .expand_open = true, .expand_closed = true, .allow_closed = true};
    struct index_set set;
    bool ignored = false;
    int r = request_bool(request, "local", &ignored);
    if (r != 0 || (r = check_reserved_name(request)) != 0 || (r = index_set_read(request, &options, &set)) != 0)
        return r;
    return reply_empty(request, 200);
}

/* Adds the readable forms of ?human to a copy of an index's settings. */
static struct settings human_settings(struct request *request, const struct catalog_index *index)
{
    struct settings none = {NULL, 0};
    struct settings copy = settings_merge(index->settings, &none, false, request->arena);
    struct slice created = settings_get_lit(index->settings, "index.version.created");
    settings_set(&copy, request->arena, SLICE_LIT("index.creation_date_string"),
                 instant_text(request->arena, index->created_ms * TL_MS, 3));
    settings_set(&copy, request->arena, SLICE_LIT("index.version.created_string"),
                 slice_starts_with(created, SLICE_LIT("5")) ? SLICE_LIT("5.6.16") : SLICE_LIT("7.10.2"));
    return copy;
}

/* Which parts of an index GET /index shows; 5.6 takes them in the path. */
struct index_parts {
    const bool *include_type_name;
    bool flat_settings;
    bool include_defaults;
    bool aliases;
    bool mappings;
    bool settings;
};

static void write_index(struct request *request, const struct catalog_index *index, const struct index_parts *parts,
                        struct json_writer *writer)
{
    json_key_slice(writer, index->name);
    json_begin(writer, '{');
    if (parts->aliases) {
        json_key(writer, "aliases");
        catalog_render_aliases(index, SLICE_LIT("*"), writer->buf);
        writer->comma = true;
    }
    if (parts->mappings) {
        json_key(writer, "mappings");
        index_render_mapping(index, parts->include_type_name, writer->buf);
        writer->comma = true;
    }
    if (parts->settings) {
        struct settings settings = request->form.human ? human_settings(request, index) : *index->settings;
        json_key(writer, "settings");
        settings_render(&settings, parts->flat_settings, writer->buf);
        writer->comma = true;
    }
    if (parts->include_defaults) {
        json_key(writer, "defaults");
        json_raw(writer, parts->flat_settings ? SLICE_LIT("{\"index.refresh_interval\":\"1s\"}")
                                              : SLICE_LIT("{\"index\":{\"refresh_interval\":\"1s\"}}"));
    }
    json_end(writer, '}');
}

/* "_settings,_aliases" in the path of 5.6: which parts are wanted. 7.10 can only POST there. */
static int read_features(struct request *request, struct index_parts *parts)
{
    struct slice list = request_part(request, PART_METRIC);
    if (list.data == NULL) {
        parts->aliases = parts->mappings = parts->settings = true;
        return 0;
    }
    if (request->dialect == DIALECT_7)
        return api_wrong_method(request, 1u << HTTP_POST, SLICE_NONE);
    while (list.len > 0) {
        size_t len = slice_find_byte(list, ',');
        struct slice name = slice_make(list.data, len);
        if (slice_is(name, "_aliases") || slice_is(name, "_alias"))
            parts->aliases = true;
        else if (slice_is(name, "_mappings") || slice_is(name, "_mapping"))
            parts->mappings = true;
        else if (slice_is(name, "_settings"))
            parts->settings = true;
        else
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "No endpoint or operation is available at [%.*s]",
                                  SLICE_ARG(name));
        list = slice_from_offset(list, len + 1);
    }
    return 0;
}

int handle_index_get(struct request *request)
{
    static const struct catalog_options options = {.allow_no_indices = true, .expand_open = true, .allow_closed = true};
    struct index_set set;
    struct index_parts parts = {NULL};
    struct json_writer writer;
    bool typed = false, local = false;
    int r = request_bool(request, "include_type_name", &typed);
    if (r != 0 || (r = request_bool(request, "local", &local)) != 0 ||
        (r = request_bool(request, "flat_settings", &parts.flat_settings)) != 0 ||
        (r = request_bool(request, "include_defaults", &parts.include_defaults)) != 0)
        return r;
    if (request_param(request, "include_type_name").data != NULL)
        parts.include_type_name = &typed;
    if ((r = read_features(request, &parts)) != 0 || (r = check_reserved_name(request)) != 0)
        return r;
    if ((r = index_set_read(request, &options, &set)) != 0)
        return r;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    for (size_t i = 0; i < set.count; i++)
        write_index(request, set.targets[i].index, &parts, &writer);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

/* --- Refresh, flush, merge, clear caches -------------------------------------------------------------------------- */

/* The shards that a call reached. */
static int reply_reached(struct request *request, const struct index_set *set)
{
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    reply_shards(&writer, index_set_copies(set), index_set_primaries(set));
    json_end(&writer, '}');
    return REQUEST_DONE;
}

static int nothing_to_do(struct request *request)
{
    struct index_set set;
    struct catalog_options options = CATALOG_OPTIONS_DEFAULT;
    int r = index_set_read(request, &options, &set);
    return r != 0 ? r : reply_reached(request, &set);
}

/* Parameters without effect here, read so that invalid ones are refused. */
static int check_flags(struct request *request, const char *const *names)
{
    bool flag = true;
    for (; *names != NULL; names++) {
        int r = request_bool(request, *names, &flag);
        if (r != 0)
            return r;
    }
    return 0;
}

int handle_index_refresh(struct request *request)
{
    return nothing_to_do(request);
}

int handle_index_flush(struct request *request)
{
    bool force = false, wait = true;
    int r = request_bool(request, "force", &force);
    if (r != 0 || (r = request_bool(request, "wait_if_ongoing", &wait)) != 0)
        return r;
    if (force && !wait && request->dialect == DIALECT_7)
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: wait_if_ongoing must be true for a force flush;");
    return nothing_to_do(request);
}

static int forcemerge_long(struct request *request)
{
    int r = journal_checkpoint(request->api->journal);
    if (r == 0)
        r = store_compact(request->api->store);
    atomic_store(&request->api->merging, false);
    return r < 0 ? r : reply_reached(request, request->context);
}

/* The indices share the store's files, so it is all of them. While one call is at it, another has nothing to do. */
int handle_index_forcemerge(struct request *request)
{
    struct index_set *set = arena_zalloc(request->arena, sizeof *set);
    struct catalog_options options = CATALOG_OPTIONS_DEFAULT;
    int32_t segments = -1;
    int r = request_int(request, "max_num_segments", &segments);
    if (r != 0 || (r = check_flags(request, (const char *const[]){"only_expunge_deletes", "flush", NULL})) != 0 ||
        (r = index_set_read(request, &options, set)) != 0)
        return r;
    request->context = set;
    if (atomic_exchange(&request->api->merging, true))
        return reply_reached(request, set);
    return request_work(request, forcemerge_long);
}

int handle_index_clear_cache(struct request *request)
{
    int r = check_flags(request, (const char *const[]){"query", "request", "fielddata", NULL});
    return r != 0 ? r : nothing_to_do(request);
}
