/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the commands that add to the catalog; see catalog_growth.h. */
#include "api/request/catalog_growth.h"

#include "api/request/api_internal.h"
#include "api/request/request_budget.h"
#include "base/budget.h"
#include "base/check.h"
#include "base/map.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "json/each.h"
#include "json/json.h"
#include "json/write.h"
#include "mapping/document.h"
#include "mapping/mapping.h"

enum {
    /* Settings replace others, and an operator may have to change one of a full server: small ones are not refused. */
    SETTINGS_SMALL_BYTES = 1024,
    ALIAS_BYTES = 128,  /* an alias of an index, without its name and body */
    INDEX_BYTES = 1024, /* an index, at least */
};

/* Returns: whether a document has fields that its mapping lacks. One that will be refused adds nothing. */
static bool adds_fields(const struct mapping *mapping, const struct mapping_type *type, const struct write_item *item,
                        struct slice source, struct arena *arena)
{
    struct document document = {.update = NULL};
    struct problem ignored;
    if (source.len == 0 || document_parse(mapping, type, item->id, source, item->dialect, DOCUMENT_DATES_STRICT,
                                          FIELDS_TEXTS_BOUNDED, arena, &document, &ignored) != 0)
        return false;
    bool adds = document.update != NULL;
    document_release(&document);
    return adds;
}

static bool is_scripted(const struct write_update *update)
{
    return update->script_source.len + update->script_id.len + update->script_file.len > 0;
}

static bool item_adds(const struct budget *budget, const struct catalog *catalog, const struct write_item *item,
                      struct arena *arena)
{
    const struct catalog_index *index;
    const struct catalog_alias *alias;
    if (item->op == WRITE_DELETE)
        return false;
    if (catalog_find_any(catalog, item->index, true, item->dialect, arena, &index, &alias, NULL) != 0)
        return !catalog_has_alias(catalog, item->index);
    const struct mapping_type *type = mapping_type(index->mapping, item->type.len > 0 ? item->type : SLICE_LIT("_doc"));
    if (type == NULL)
        return true;
    const struct write_update *update = item->update;
    if (update == NULL)
        return adds_fields(index->mapping, type, item, item->source, arena);
    return adds_fields(index->mapping, type, item, update->doc, arena) ||
           adds_fields(index->mapping, type, item, update->upsert, arena) ||
           (is_scripted(update) && !budget_fits(budget, BUDGET_TRANSIENT, BUDGET_CHUNK));
}

static bool write_adds(const struct api *api, const struct write_command *write)
{
    tl_cleanup(catalog_unrefp) struct catalog *catalog = journal_catalog(api->journal);
    struct arena arena = ARENA_INIT;
    bool adds = false;
    for (size_t i = 0; i < write->item_count && !adds; i++) {
        adds = item_adds(api->options.budget, catalog, &write->items[i], &arena);
        arena_reset(&arena);
    }
    arena_deinit(&arena);
    return adds;
}

static bool creates_index(const struct catalog *catalog, const struct index_command *create)
{
    return catalog_index(catalog, create->name) == NULL && !catalog_has_alias(catalog, create->name);
}

/* Returns: whether a mapping changes its index. One that will be refused adds nothing. */
static bool mapping_adds(const struct catalog *catalog, const struct command *command, struct arena *arena)
{
    const struct index_command *put = &command->index;
    const struct catalog_index *index = catalog_index(catalog, put->name);
    tl_cleanup(mapping_unrefp) struct mapping *merged = NULL;
    struct json_doc body;
    struct problem ignored;
    return index != NULL && json_parse(arena, put->body, command->dialect, JSON_DUPLICATES, &body, &ignored) == 0 &&
           mapping_merge(index->mapping, put->type, body.root, command->dialect, false, FIELDS_TEXTS_BOUNDED, arena,
                         &merged, &ignored) == 0 &&
           merged != index->mapping;
}

static size_t json_bytes(yyjson_val *value)
{
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    if (value != NULL)
        json_write(&text, value, DIALECT_7);
    return text.len;
}

/* Returns: the bytes of settings as a template has them: nested, whatever their form in the request. */
static size_t settings_bytes_nested(yyjson_val *json, struct arena *arena)
{
    tl_cleanup(buf_deinit) struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct settings settings;
    struct problem ignored;
    if (settings_parse(json, SLICE_LIT("index."), arena, &settings, &ignored) != 0)
        return 0; /* will be refused */
    settings_render(&settings, false, &text);
    return text.len;
}

/* Returns: the bytes of a template's object, without blanks; `part`: with settings, of which the catalog has a form. */
static size_t template_bytes(yyjson_val *part, struct arena *arena)
{
    yyjson_val *settings = json_get_lit(part, "settings");
    size_t bytes = json_bytes(part);
    return settings == NULL ? bytes : bytes - json_bytes(settings) + settings_bytes_nested(settings, arena);
}

/* Returns: whether a template is new, or larger than the one that it replaces. */
static bool template_adds(const struct catalog *catalog, enum catalog_kind kind, const struct command *command,
                          struct arena *arena)
{
    const struct object_command *put = &command->object;
    const struct catalog_object *stored = catalog_object(catalog, kind, put->name);
    struct json_doc body;
    struct problem ignored;
    if (stored == NULL)
        return true;
    if (json_parse(arena, put->body, command->dialect, JSON_DUPLICATES, &body, &ignored) != 0)
        return false;
    yyjson_val *inner = json_get_lit(body.root, "template"); /* of 5.x: its pattern */
    size_t bytes = template_bytes(body.root, arena);
    if (yyjson_is_obj(inner))
        bytes = bytes - json_bytes(inner) + template_bytes(inner, arena);
    return bytes > stored->body.len;
}

/* Returns: the bytes of a script's source; a search template may be an object. */
static size_t source_bytes(yyjson_val *script)
{
    static const char *const names[] = {"source", "code", "inline"};
    size_t bytes = 0;
    if (yyjson_is_str(script))
        return json_slice(script).len;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        yyjson_val *source = json_get(script, slice_from(names[i]));
        bytes += yyjson_is_str(source) ? json_slice(source).len : json_bytes(source);
    }
    return bytes;
}

/* Returns: whether a script is new, or larger than the one that it replaces. */
static bool script_adds(const struct catalog *catalog, const struct command *command, struct arena *arena)
{
    const struct object_command *put = &command->object;
    const struct catalog_object *stored = catalog_object(catalog, CATALOG_SCRIPTS, put->name);
    struct json_doc body;
    struct problem ignored;
    if (stored == NULL)
        return true;
    if (json_parse(arena, put->body, command->dialect, JSON_DUPLICATES, &body, &ignored) != 0)
        return false;
    yyjson_val *script = json_get_lit(body.root, "script");
    if (script == NULL)
        script = json_get_lit(body.root, "template");
    return source_bytes(script) + json_bytes(json_get_lit(script, "options")) > stored->body.len + stored->options.len;
}

/* What a request changes of aliases, in bytes. `counted`: those of before, each once. */
struct alias_change {
    const struct catalog *catalog;
    enum dialect dialect;
    struct map counted;
    size_t added;
    size_t removed;
};

/* Counts an alias that the request replaces or removes, if it is there. */
static void count_removed(struct alias_change *change, const struct alias_action *action, struct arena *arena)
{
    const struct catalog_index *index = catalog_index(change->catalog, action->index);
    const struct catalog_alias *alias = index == NULL ? NULL : catalog_index_alias(index, action->alias);
    if (index == NULL || (alias == NULL && action->op != ALIAS_REMOVE_INDEX))
        return;
    struct slice name = action->op == ALIAS_REMOVE_INDEX ? SLICE_NONE : alias->name;
    if (map_put(&change->counted, arena_printf(arena, "%.*s/%.*s", SLICE_ARG(index->name), SLICE_ARG(name)), change) !=
        NULL)
        return;
    tl_cleanup(buf_deinit) struct buf body = BUF_INIT(BUF_UNLIMITED);
    if (alias != NULL)
        catalog_render_alias(alias, &body);
    change->removed += alias == NULL ? INDEX_BYTES : ALIAS_BYTES + name.len + body.len;
}

static void count_added(struct alias_change *change, const struct alias_action *action, struct arena *arena)
{
    struct json_doc body;
    struct problem ignored;
    bool empty = action->body.len == 0 ||
                 json_parse(arena, action->body, change->dialect, JSON_DUPLICATES, &body, &ignored) != 0;
    change->added += ALIAS_BYTES + action->alias.len + (empty ? 2 : json_bytes(body.root));
}

/* Returns: whether the aliases that are added are larger than those that the same request replaces or removes. */
static bool aliases_add(const struct catalog *catalog, const struct command *command, struct arena *arena)
{
    struct alias_change change = {.catalog = catalog, .dialect = command->dialect, .counted = MAP_INIT};
    for (size_t i = 0; i < command->aliases.action_count; i++) {
        const struct alias_action *action = &command->aliases.actions[i];
        count_removed(&change, action, arena);
        if (action->op == ALIAS_ADD)
            count_added(&change, action, arena);
    }
    map_deinit(&change.counted);
    return change.added > change.removed;
}

static bool changes_add(const struct api *api, const struct command *command)
{
    tl_cleanup(catalog_unrefp) struct catalog *catalog = journal_catalog(api->journal);
    struct arena arena = ARENA_INIT;
    bool adds = false;
    switch (command->type) {
    case COMMAND_INDEX_CREATE: adds = creates_index(catalog, &command->index); break;
    case COMMAND_MAPPING_PUT: adds = mapping_adds(catalog, command, &arena); break;
    case COMMAND_TEMPLATE_PUT: adds = template_adds(catalog, CATALOG_TEMPLATES, command, &arena); break;
    case COMMAND_INDEX_TEMPLATE_PUT: adds = template_adds(catalog, CATALOG_INDEX_TEMPLATES, command, &arena); break;
    case COMMAND_COMPONENT_PUT: adds = template_adds(catalog, CATALOG_COMPONENTS, command, &arena); break;
    case COMMAND_SCRIPT_PUT: adds = script_adds(catalog, command, &arena); break;
    case COMMAND_ALIASES_UPDATE: adds = aliases_add(catalog, command, &arena); break;
    default: break;
    }
    arena_deinit(&arena);
    return adds;
}

static bool command_adds(struct request *request, const struct command *command)
{
    switch (command->type) {
    case COMMAND_WRITE: return write_adds(request->api, &command->write);
    case COMMAND_SETTINGS_PUT: return command->index.body.len > SETTINGS_SMALL_BYTES;
    case COMMAND_CLUSTER_SETTINGS_PUT: return command->object.body.len > SETTINGS_SMALL_BYTES;
    default: return changes_add(request->api, command);
    }
}

int catalog_growth_check(struct request *request, const struct command *command)
{
    REQUIRE(command != NULL);
    const struct budget *budget = request->memory.budget; /* NULL: none, or the request has changed something */
    if (budget == NULL || budget_fits(budget, BUDGET_RETAINED, BUDGET_SMALL) || !command_adds(request, command))
        return 0;
    return request_budget_check_reply(request);
}

int catalog_growth_check_next(struct request *request, const struct command *command)
{
    REQUIRE(command != NULL);
    if (budget_fits(request->api->options.budget, BUDGET_RETAINED, BUDGET_SMALL) || !command_adds(request, command))
        return 0;
    return request_budget_check_reply(request);
}

int catalog_growth_check_write(const struct api *api, const struct write_command *write, struct slice what,
                               struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(write != NULL && what.len > 0);
    if (budget_fits(api->options.budget, BUDGET_RETAINED, BUDGET_SMALL) || !write_adds(api, write))
        return 0;
    return request_budget_check_growth_for(api, what, arena, ret_problem);
}
