/* SPDX-License-Identifier: Apache-2.0 */
/* Dry runs; see dry_run.h. */
#include "api/documents/dry_run.h"

#include "api/request/api_internal.h"
#include "core/catalog/catalog.h"
#include "core/documents/prefetch.h"
#include "core/documents/update.h"
#include "mapping/mapping.h"

/* The current document, or NULL; `comparable`: whether the core would find the same one. */
static const struct doc *find_old(const struct write_item *item, const struct prefetch *seen, bool *ret_comparable)
{
    const struct doc *old = seen != NULL && seen->found && !seen->doc.deleted ? &seen->doc : NULL;
    bool routed = item->routing.len > 0 || (old != NULL && old->routing.len > 0);
    bool conditional = item->if_seq_no != SEQ_NO_ANY || item->version != VERSION_ANY;
    *ret_comparable = seen != NULL && !routed && !conditional;
    return old;
}

/* The limits of the core, which runs the script finally. */
static struct script_limits limits_of_core(const struct request *request)
{
    struct script_limits limits = request->api->options.script;
    if (limits.steps_max > SCRIPT_WRITER_STEPS_MAX)
        limits.steps_max = SCRIPT_WRITER_STEPS_MAX;
    return limits;
}

static int run_update_script(struct request *request, const struct catalog *catalog, const struct write_item *item,
                             struct arena *scratch)
{
    struct view view = {request->api->store, journal_stable(request->api->journal), NULL};
    struct slice name = item->type.len > 0 ? item->type : SLICE_LIT("_doc");
    const struct catalog_index *index;
    const struct catalog_alias *alias;
    struct problem ignored;
    bool comparable;
    if (catalog_find(catalog, item->index, true, request->dialect, scratch, &index, &alias, &ignored) != 0)
        return 0;
    const struct mapping_type *type = mapping_type(index->mapping, name);
    struct prefetch *seen = type == NULL || (alias != NULL && alias->index_routing.data != NULL)
                                ? NULL
                                : prefetch_read(&view, index->number, type->number, item->id, scratch);
    struct update update = {.dialect = request->dialect,
                            .item = item,
                            .index = index->name,
                            .type = name,
                            .old = find_old(item, seen, &comparable),
                            .mapped = type,
                            .catalog = catalog,
                            .account = &request->account,
                            .limits = limits_of_core(request),
                            .ts = view.ts,
                            .arena = request->arena,
                            .scratch = scratch};
    int r = comparable ? update_run(&update, &request->problem) : 0;
    prefetch_release(seen);
    if (r == UPDATE_REFUSED)
        request->remote_action = "indices:data/write/update[s]";
    return r == UPDATE_REFUSED ? REQUEST_REFUSED : r < 0 ? tl_trace(r) : 0;
}

int dry_run_script(struct request *request, const struct write_item *item)
{
    tl_cleanup(catalog_unrefp) struct catalog *catalog = journal_catalog(request->api->journal);
    struct arena scratch = ARENA_INIT;
    int r = run_update_script(request, catalog, item, &scratch);
    arena_deinit(&scratch);
    return r;
}
