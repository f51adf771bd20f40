/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the commands that add to the catalog; see catalog_growth.h. */
#include "api/request/catalog_growth.h"

#include "api/request/api_internal.h"
#include "api/request/request_budget.h"
#include "base/budget.h"
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "mapping/document.h"

/* Settings replace others, and an operator may have to change one of a full server: small ones are not refused. */
enum { SETTINGS_SMALL_BYTES = 1024 };

/* Returns: whether a document has fields that its mapping lacks. One that will be refused adds nothing. */
static bool adds_fields(const struct mapping *mapping, const struct mapping_type *type, const struct write_item *item,
                        struct slice source, struct arena *arena)
{
    struct document document = {.update = NULL};
    struct problem ignored;
    if (source.len == 0 || document_parse(mapping, type, item->id, source, item->dialect, DOCUMENT_DATES_STRICT,
                                          FIELDS_AND_COPIES_COUNTED, arena, &document, &ignored) != 0)
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

static bool aliases_add(const struct aliases_command *aliases)
{
    for (size_t i = 0; i < aliases->action_count; i++)
        if (aliases->actions[i].op == ALIAS_ADD)
            return true;
    return false;
}

static bool command_adds(struct request *request, const struct command *command)
{
    switch (command->type) {
    case COMMAND_WRITE: return write_adds(request->api, &command->write);
    case COMMAND_SETTINGS_PUT: return command->index.body.len > SETTINGS_SMALL_BYTES;
    case COMMAND_CLUSTER_SETTINGS_PUT: return command->object.body.len > SETTINGS_SMALL_BYTES;
    case COMMAND_ALIASES_UPDATE: return aliases_add(&command->aliases);
    case COMMAND_INDEX_CREATE:
    case COMMAND_MAPPING_PUT:
    case COMMAND_TEMPLATE_PUT:
    case COMMAND_INDEX_TEMPLATE_PUT:
    case COMMAND_COMPONENT_PUT:
    case COMMAND_SCRIPT_PUT: return true;
    default: return false;
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

int catalog_growth_check_write(const struct api *api, const struct write_command *write, struct slice what,
                               struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(write != NULL && what.len > 0);
    if (budget_fits(api->options.budget, BUDGET_RETAINED, BUDGET_SMALL) || !write_adds(api, write))
        return 0;
    return request_budget_check_growth_for(api, what, arena, ret_problem);
}
