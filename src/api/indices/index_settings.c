/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _settings of indices.
 */
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/index_set.h"
#include "api/request/location.h"
#include "api/request/name_list.h"
#include "core/catalog/index_settings.h"
#include "json/each.h"

/* Defaults that ?include_defaults shows where an index says nothing else. */
static const struct {
    const char *key;
    const char *value;
} default_settings[] = {
    {"index.refresh_interval", "1s"},
    {"index.max_result_window", "10000"},
    {"index.mapping.total_fields.limit", "1000"},
    {"index.mapping.depth.limit", "20"},
    {"index.translog.durability", "REQUEST"},
};

/* --- Show --------------------------------------------------------------------------------------------------------- */

static struct settings matching_settings(struct request *request, const struct settings *all, struct slice patterns)
{
    struct settings some = {arena_alloc(request->arena, (all->count + 1) * sizeof *some.items), 0};
    for (size_t i = 0; i < all->count; i++)
        if (name_list_match(patterns, all->items[i].key))
            some.items[some.count++] = all->items[i];
    return some;
}

static struct settings defaults_of(struct request *request, const struct settings *given, struct slice patterns)
{
    struct settings settings = {NULL, 0};
    for (size_t i = 0; i < sizeof default_settings / sizeof *default_settings; i++) {
        struct slice key = slice_from(default_settings[i].key);
        if (settings_find(given, key) == NULL && name_list_match(patterns, key))
            settings_set(&settings, request->arena, key, slice_from(default_settings[i].value));
    }
    return settings;
}

static void write_settings(struct request *request, const struct catalog_index *index, bool flat, bool defaults,
                           struct json_writer *writer)
{
    struct slice patterns = request_part(request, PART_NAME);
    struct settings some = matching_settings(request, index->settings, patterns);
    if (some.count == 0 && patterns.len > 0 && !defaults)
        return;
    json_key_slice(writer, index->name);
    json_begin(writer, '{');
    json_key(writer, "settings");
    settings_render(&some, flat, writer->buf);
    writer->comma = true;
    if (defaults) {
        struct settings others = defaults_of(request, index->settings, patterns);
        json_key(writer, "defaults");
        settings_render(&others, flat, writer->buf);
        writer->comma = true;
    }
    json_end(writer, '}');
}

int handle_settings_get(struct request *request)
{
    static const struct catalog_options options = {
        .allow_no_indices = true, .expand_open = true, .expand_closed = true, .allow_closed = true};
    struct index_set set;
    struct json_writer writer;
    bool flat = false, defaults = false, local = false;
    int r = request_bool(request, "flat_settings", &flat);
    if (r != 0 || (r = request_bool(request, "include_defaults", &defaults)) != 0 ||
        (r = request_bool(request, "local", &local)) != 0 || (r = index_set_read(request, &options, &set)) != 0)
        return r;
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    for (size_t i = 0; i < set.count; i++)
        write_settings(request, set.targets[i].index, flat, defaults, &writer);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

/* --- Change ------------------------------------------------------------------------------------------------------- */

struct settings_change {
    struct slice body;
    bool preserve_existing;
};

static struct command *make_change(struct request *request, struct slice index, void *context)
{
    const struct settings_change *change = context;
    struct command *command = command_new(COMMAND_SETTINGS_PUT, request->dialect);
    command->index.name = index;
    command->index.body = change->body;
    command->index.preserve_existing = change->preserve_existing;
    return command;
}

/*
 * Refuses settings that only a closed index, or none, takes. The core checks that too, but passes over those that
 * preserve_existing keeps as they are.
 */
static int check_preserved(struct request *request, const struct index_set *set, yyjson_val *json)
{
    struct settings settings = {NULL, 0};
    if (settings_parse(json, SLICE_LIT("index."), request->arena, &settings, &request->problem) != 0 ||
        index_settings__check(&settings, true, SETTING_RULES_NEWEST, request->arena, &request->problem) != 0)
        return REQUEST_REFUSED;
    struct slice key = index_settings__static(&settings);
    for (size_t i = 0; key.data != NULL && i < set->count; i++) {
        const struct catalog_index *index = set->targets[i].index;
        if (!index->closed)
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                                  "Can't update non dynamic settings [[%.*s]] for open indices [[%.*s/%.*s]]",
                                  SLICE_ARG(key), SLICE_ARG(index->name), SLICE_ARG(index->uuid));
        if (settings_find(&settings, SLICE_LIT("index.number_of_shards")) != NULL)
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                                  "final %.*s setting [index.number_of_shards], not updateable",
                                  SLICE_ARG(index->name));
    }
    return 0;
}

/* Returns: whether an object has a member that is no object, at any level. */
static bool has_setting(yyjson_val *object)
{
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (object, i, max, key, value)
        if (!yyjson_is_obj(value) || has_setting(value))
            return true;
    return false;
}

int handle_settings_put(struct request *request)
{
    static const struct catalog_options options = {.expand_open = true, .expand_closed = true, .allow_closed = true};
    struct settings_change *change = arena_zalloc(request->arena, sizeof *change);
    struct index_set set;
    struct json_doc doc;
    int64_t ignored = 0;
    bool flat = false;
    int r = request_bool(request, "preserve_existing", &change->preserve_existing);
    if (r != 0 || (r = request_time(request, "timeout", &ignored)) != 0 ||
        (r = request_bool(request, "flat_settings", &flat)) != 0 || (r = index_set_read(request, &options, &set)) != 0)
        return r;
    bool blank =
        request_body(request).len > 0 && location_is_blank(request_body(request)) && request->dialect == DIALECT_7;
    if (!blank && (r = request_json(request, 0, &doc)) != 0)
        return r;
    if (!blank && doc.root == NULL)
        return request_refuse(request, PROBLEM_PARSE, "request body is required");
    yyjson_val *settings = blank ? NULL : json_get_lit(doc.root, "settings");
    if (!blank && !yyjson_is_obj(settings))
        settings = doc.root;
    if (blank || !has_setting(settings))
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: no settings to update;");
    if (change->preserve_existing && (r = check_preserved(request, &set, settings)) != 0)
        return r;
    change->body = request_body(request);
    return index_set_submit(request, &set, make_change, change, reply_acknowledged);
}
