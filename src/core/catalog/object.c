/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands for stored scripts, scripts of DATA/scripts, the cluster's uuid and settings, and time
 * zones.
 */
#include "core/catalog/object.h"

#include "base/check.h"
#include "base/zone.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_change.h"
#include "core/catalog/cluster_settings.h"
#include "core/catalog/setting_kind.h"
#include "core/catalog/settings.h"
#include "core/command/command.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "json/each.h"
#include "json/json.h"
#include "json/write.h"

enum { REFUSED = 1 };

static int refuse_object(struct command *command, enum problem_type type, const char *reason, struct slice what)
{
    problem_set(&command->problem, &command->arena, type, "%s [%.*s]", reason, SLICE_ARG(what));
    return REFUSED;
}

/* --- Stored scripts ----------------------------------------------------------------------------------------------- */

static struct slice first_text(yyjson_val *object, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct slice text = json_slice(json_get(object, slice_from(keys[i])));
        if (text.data != NULL)
            return text;
    }
    return SLICE_NONE;
}

/* Returns: the source of a script as text; that of a search template may be a JSON object. */
static struct slice source_text(yyjson_val *object, struct arena *arena)
{
    static const char *const keys[] = {"source", "code", "inline"};
    yyjson_val *source = json_get_lit(object, "source");
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct slice text;

    if (!yyjson_is_obj(source))
        return first_text(object, keys, 3);
    json_write(&buf, source, DIALECT_7);
    text = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return text;
}

static int read_script(struct core *core, struct command *command, yyjson_val *body, struct catalog_object *script)
{
    yyjson_val *inner = json_get_lit(body, "script");
    yyjson_val *options = json_get_lit(inner, "options");
    struct slice lang = command->object.lang;

    if (inner == NULL && json_get_lit(body, "template") != NULL) {
        inner = json_get_lit(body, "template");
        lang = SLICE_LIT("mustache");
    }
    if (inner == NULL && yyjson_obj_size(body) == 0 && command->dialect != DIALECT_5) {
        script->lang = SLICE_LIT("mustache"); /* as 7.10 does for {} */
        script->body = SLICE_LIT("");
        return 0;
    }
    if (inner == NULL) {
        problem_set(&command->problem, &command->arena, PROBLEM_PARSING,
                    "unexpected token [END_OBJECT, expected [script, template");
        problem_details(&command->problem, &command->arena, "\"line\":1,\"col\":%zu", command->object.body.len);
        return REFUSED;
    }
    script->body = yyjson_is_str(inner) ? json_slice(inner) : source_text(inner, &core->arena);
    script->lang = lang.len > 0 ? lang : json_slice(json_get_lit(inner, "lang"));
    if (yyjson_is_obj(options)) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        json_write(&buf, options, command->dialect);
        script->options = arena_copy(&core->arena, buf_as_slice(&buf));
        buf_deinit(&buf);
    }
    return 0;
}

/*
 * Compiles a script if its client requires that. 5.x does when it is stored; 7.10 only with a
 * context, else at first use.
 */
static int compile_script(struct core *core, struct command *command, const struct catalog_object *script,
                          enum script_lang lang)
{
    tl_cleanup(script_unrefp) struct script *compiled = NULL;

    if (command->object.compiles)
        core__work_indivisible(core, script->body.len);
    if (!command->object.compiles ||
        script_cache_compile(core->scripts, lang, command->object.context, script->body, SLICE_NONE, &compiled,
                             &command->arena, &command->problem) == 0)
        return 0;
    if (command->dialect == DIALECT_5)
        command->problem.status = 500;
    return REFUSED;
}

static int check_script(struct core *core, struct command *command, struct catalog_object *script)
{
    enum script_lang lang;

    if (script->body.data == NULL) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "must specify source for stored script");
        return REFUSED;
    }
    if (script->lang.data == NULL) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "must specify lang for stored script");
        return REFUSED;
    }
    if (script->body.len > SCRIPT_SOURCE_BYTES_MAX) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "exceeded max allowed stored script size in bytes [%zu] with size [%zu] for script [%.*s]",
                    SCRIPT_SOURCE_BYTES_MAX, script->body.len, SLICE_ARG(script->name));
        return REFUSED;
    }
    if (slice_is(script->lang, "mustache") || slice_is(script->lang, "expression"))
        return 0;
    if (!script_lang_from(script->lang, &lang))
        return refuse_object(command, PROBLEM_ILLEGAL_ARGUMENT, "unable to put stored script with unsupported lang",
                             script->lang);
    return compile_script(core, command, script, lang);
}

int core__do_script_put(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_SCRIPT_PUT);
    const struct object_command *put = &command->object;
    struct catalog_object script = {.name = put->name};
    bool exists = catalog_object(core->catalog, CATALOG_SCRIPTS, put->name) != NULL;
    struct json_doc body;

    if (put->name.len == 0 || put->name.len > CATALOG_NAME_BYTES_MAX * 2) {
        (void)refuse_object(command, PROBLEM_ILLEGAL_ARGUMENT, "id of a stored script is empty or too long", put->name);
        return 0;
    }
    if (!exists && catalog_object_count(core->catalog, CATALOG_SCRIPTS) >= CATALOG_SCRIPTS_MAX) {
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED,
                    "there are %d stored scripts, the most there may be", CATALOG_SCRIPTS_MAX);
        return 0;
    }
    if (json_parse(&core->arena, put->body, command->dialect, JSON_DUPLICATES, &body, &command->problem) == 0 &&
        read_script(core, command, body.root, &script) == 0 && check_script(core, command, &script) == 0)
        catalog_change__put_object(core, CATALOG_SCRIPTS, &script);
    return 0;
}

int core__do_script_delete(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_SCRIPT_DELETE);
    struct slice name = command->object.name;

    if (catalog_object(core->catalog, CATALOG_SCRIPTS, name) != NULL)
        catalog_change__drop_object(core, CATALOG_SCRIPTS, name);
    else
        problem_set(&command->problem, &command->arena, PROBLEM_RESOURCE_NOT_FOUND,
                    "stored script [%.*s] does not exist and cannot be deleted", SLICE_ARG(name));
    return 0;
}

/* --- Feed consumers ----------------------------------------------------------------------------------------------- */

struct slice object__merge(struct core *core, yyjson_val *before, yyjson_val *now, const char *stored)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct json_writer writer;
    size_t i, count;
    yyjson_val *key, *value;

    json_writer_init(&writer, &text);
    json_begin(&writer, '{');
    json_obj_foreach (before, i, count, key, value) {
        if (json_get(now, json_slice(key)) == NULL && (stored == NULL || slice_is(json_slice(key), stored))) {
            json_key_slice(&writer, json_slice(key));
            json_value(&writer, value, DIALECT_7);
        }
    }
    json_obj_foreach (now, i, count, key, value) {
        json_key_slice(&writer, json_slice(key));
        json_value(&writer, value, DIALECT_7);
    }
    json_end(&writer, '}');
    struct slice merged = arena_copy(&core->arena, buf_as_slice(&text));
    buf_deinit(&text);
    return merged;
}

static int check_consumer(struct core *core, struct command *command, bool exists)
{
    const struct object_command *report = &command->object;

    if (report->name.len == 0 || report->name.len > CATALOG_NAME_BYTES_MAX)
        return refuse_object(command, PROBLEM_ILLEGAL_ARGUMENT, "the name of a consumer is empty or too long",
                             report->name);
    if (!exists && catalog_object_count(core->catalog, CATALOG_COPIES) >= CATALOG_COPIES_MAX) {
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED,
                    "there are %d consumers, the most there may be: DELETE /_changes/_consumers/NAME removes one",
                    CATALOG_COPIES_MAX);
        return REFUSED;
    }
    return 0;
}

int core__do_copy_report(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_COPY_REPORT);
    const struct object_command *report = &command->object;
    const struct catalog_object *before = catalog_object(core->catalog, CATALOG_COPIES, report->name);
    struct json_doc body, was = {0};

    if (check_consumer(core, command, before != NULL) != 0 ||
        json_parse(&core->arena, report->body, DIALECT_7, JSON_DUPLICATES, &body, &command->problem) != 0)
        return 0;
    if (before != NULL && json_parse_stored(&core->arena, before->body, &was) != 0)
        return tl_trace(TL_ERR_CORRUPT);
    struct slice merged = object__merge(core, was.root, body.root, NULL);
    if (merged.len > CATALOG_COPY_BYTES_MAX)
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "the report of a consumer has at most [%d] bytes", CATALOG_COPY_BYTES_MAX);
    else
        catalog_change__put_object(core, CATALOG_COPIES,
                                   &(struct catalog_object){.name = report->name, .body = merged});
    return 0;
}

int core__do_copy_forget(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_COPY_FORGET);
    struct slice name = command->object.name;

    if (catalog_object(core->catalog, CATALOG_COPIES, name) != NULL)
        catalog_change__drop_object(core, CATALOG_COPIES, name);
    else
        problem_set(&command->problem, &command->arena, PROBLEM_RESOURCE_NOT_FOUND, "no consumer [%.*s] has reported",
                    SLICE_ARG(name));
    return 0;
}

/* --- File scripts ------------------------------------------------------------------------------------------------- */

struct slice object_file_script_key(const struct file_script *script, struct arena *arena)
{
    return arena_printf(arena, "%.*s/%.*s", SLICE_ARG(script->lang), SLICE_ARG(script->name));
}

static bool names_script(const struct file_scripts_command *files, struct slice key, struct arena *arena)
{
    for (size_t i = 0; i < files->script_count; i++)
        if (slice_equal(object_file_script_key(&files->scripts[i], arena), key))
            return true;
    return false;
}

/* Removes file scripts that do not exist any more. */
static void drop_others(struct core *core, const struct file_scripts_command *files)
{
    for (size_t i = catalog_object_count(core->catalog, CATALOG_FILE_SCRIPTS); i-- > 0;) {
        const struct catalog_object *object = catalog_object_at(core->catalog, CATALOG_FILE_SCRIPTS, i);
        if (!names_script(files, object->name, &core->arena))
            catalog_change__drop_object(core, CATALOG_FILE_SCRIPTS, arena_copy(&core->arena, object->name));
    }
}

int core__do_file_scripts(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_FILE_SCRIPTS);
    const struct file_scripts_command *files = &command->file_scripts;

    if (files->script_count > CATALOG_SCRIPTS_MAX) {
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED, "there are more than %d file scripts",
                    CATALOG_SCRIPTS_MAX);
        return 0;
    }
    drop_others(core, files);
    for (size_t i = 0; i < files->script_count; i++) {
        const struct file_script *file = &files->scripts[i];
        struct catalog_object script = {
            .name = object_file_script_key(file, &core->arena), .lang = file->lang, .body = file->source};
        const struct catalog_object *before = catalog_object(core->catalog, CATALOG_FILE_SCRIPTS, script.name);
        if (before == NULL || !slice_equal(before->body, script.body))
            catalog_change__put_object(core, CATALOG_FILE_SCRIPTS, &script);
    }
    return 0;
}

/* --- Cluster settings --------------------------------------------------------------------------------------------- */

/* Parses a section that is stored; commands before version 19 merged more settings than a request may have. */
static int parse_section(struct core *core, struct command *command, yyjson_val *stored, struct settings *ret_settings)
{
    return setting__rules(core->command_version) < SETTING_RULES_FIXED
               ? settings_parse(stored, SLICE_LIT(""), &core->arena, ret_settings, &command->problem)
               : settings_parse_stored(stored, &core->arena, ret_settings, &command->problem);
}

/* Merges a section of the request into the stored one. */
static int merge_section(struct core *core, struct command *command, yyjson_val *stored, yyjson_val *requested,
                         const char *name, struct settings *ret_before, struct settings *ret_after)
{
    struct settings before, changes, after;
    const enum setting_rules rules = setting__rules(core->command_version);

    if (parse_section(core, command, json_get(stored, slice_from(name)), &before) != 0 ||
        settings_parse(json_get(requested, slice_from(name)), SLICE_LIT(""), &core->arena, &changes,
                       &command->problem) != 0 ||
        cluster_settings__check(name, &changes, &before, command->dialect, rules, &command->arena, &command->problem) !=
            0)
        return REFUSED;
    after = settings_merge(&before, &changes, false, &core->arena);
    if (rules >= SETTING_RULES_FIXED && after.count > SETTINGS_KEYS_MAX && after.count > before.count) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "the cluster would have more than [%d] %s settings: leave some out, or remove some with null",
                    SETTINGS_KEYS_MAX, name);
        return REFUSED;
    }
    if (core->command_version >= COMMAND_SINCE_CATALOG_WEIGHED && settings_bytes(&after) > CATALOG_SETTING_BYTES_MAX &&
        settings_bytes(&after) > settings_bytes(&before)) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "the %s settings of the cluster would have more than [%d] bytes", name, CATALOG_SETTING_BYTES_MAX);
        return REFUSED;
    }
    *ret_before = before;
    *ret_after = after;
    return 0;
}

static void write_section(const char *name, const struct settings *settings, struct json_writer *writer)
{
    struct buf piece = BUF_INIT(BUF_UNLIMITED);
    settings_render(settings, true, &piece);
    json_key(writer, name);
    json_raw(writer, buf_as_slice(&piece));
    buf_deinit(&piece);
}

/* Merges both sections, and checks settings that depend on each other. */
static int merge_sections(struct core *core, struct command *command, yyjson_val *stored, yyjson_val *requested,
                          struct cluster_sections *ret_after)
{
    struct cluster_sections before;
    if (merge_section(core, command, stored, requested, "persistent", &before.persistent, &ret_after->persistent) !=
            0 ||
        merge_section(core, command, stored, requested, "transient", &before.transient, &ret_after->transient) != 0)
        return REFUSED;
    if (core->command_version < COMMAND_SINCE_SETTINGS_REMOVED)
        return 0;
    return cluster_settings__check_keep_alive(&before, ret_after, &command->arena, &command->problem) == 0 ? 0
                                                                                                           : REFUSED;
}

int core__do_cluster_settings_put(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_CLUSTER_SETTINGS_PUT);
    const struct catalog_object *stored = catalog_object(core->catalog, CATALOG_CLUSTER, SLICE_LIT("settings"));
    struct catalog_object object = {.name = SLICE_LIT("settings")};
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    struct json_doc requested, before = {0};
    struct cluster_sections after;
    struct json_writer writer;

    core__work_indivisible(core, command->object.body.len / WORK_BYTES);
    if (json_parse(&core->arena, command->object.body, command->dialect, JSON_DUPLICATES, &requested,
                   &command->problem) != 0)
        return 0;
    if (stored != NULL && json_parse_stored(&core->arena, stored->body, &before) < 0)
        return tl_trace(TL_ERR_CORRUPT);
    if (merge_sections(core, command, before.root, requested.root, &after) != 0)
        return 0;
    json_writer_init(&writer, &buf);
    json_begin(&writer, '{');
    write_section("persistent", &after.persistent, &writer);
    write_section("transient", &after.transient, &writer);
    json_end(&writer, '}');
    object.body = buf_as_slice(&buf);
    catalog_change__put_object(core, CATALOG_CLUSTER, &object);
    buf_deinit(&buf);
    return 0;
}

/* --- Cluster uuid ------------------------------------------------------------------------------------------------- */

int core__do_cluster_uuid(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_CLUSTER_UUID);
    struct catalog_object object = {.name = SLICE_LIT("uuid"), .body = command->object.name};

    if (catalog_object(core->catalog, CATALOG_CLUSTER, object.name) == NULL)
        catalog_change__put_object(core, CATALOG_CLUSTER, &object);
    return 0;
}

/* --- Time zones --------------------------------------------------------------------------------------------------- */

/*
 * Returns: whether `zones` is a newer release than `stored`, or of the same release with more names:
 *   hosts may lack old ones.
 */
static bool is_newer(struct slice zones, struct slice stored)
{
    int order = slice_compare(zones_version(zones), zones_version(stored));
    return order > 0 || (order == 0 && zones_count(zones) > zones_count(stored));
}

int core__do_zones(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_ZONES);
    struct catalog_object object = {.name = SLICE_LIT("zones"), .body = command->object.body};
    struct slice stored = catalog_zones(core->catalog);

    if (object.body.len > ZONES_BYTES_MAX || !zones_check(object.body)) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT, "the time zones are invalid");
        return 0;
    }
    if (stored.len == 0 || is_newer(object.body, stored))
        catalog_change__put_object(core, CATALOG_CLUSTER, &object);
    return 0;
}
