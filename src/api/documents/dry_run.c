/* SPDX-License-Identifier: Apache-2.0 */
/* Dry runs; see dry_run.h. */
#include "api/documents/dry_run.h"

#include "api/request/api_internal.h"
#include "api/request/request_budget.h"
#include "base/clock.h"
#include "core/catalog/catalog.h"
#include "core/documents/doc.h"
#include "core/documents/update.h"
#include "mapping/mapping.h"
#include "mapping/shard.h"

struct dry_runs dry_runs_of(int32_t retries, uint64_t until_us)
{
    unsigned asked = retries < 0 ? 0 : retries < DRY_RUNS_MAX ? (unsigned)retries : DRY_RUNS_MAX;
    return (struct dry_runs){.count_min = asked + 1, .until_us = until_us};
}

bool dry_runs_next(struct dry_runs *runs)
{
    return ++runs->count <= runs->count_min || clock_boot_us() < runs->until_us;
}

/* Whether the core, too, finds the document: a request with the routing of another shard does not. */
static bool is_routed_to(const struct doc *doc, const struct write_item *item, const struct catalog_index *index,
                         const struct catalog_alias *alias)
{
    struct slice asked = item->routing.len > 0                           ? item->routing
                         : alias != NULL && alias->index_routing.len > 0 ? alias->index_routing
                                                                         : item->id;
    struct slice stored = doc->routing.len > 0 ? doc->routing : item->id;
    return shard_of(asked, index->shard_count) == shard_of(stored, index->shard_count);
}

/* The limits of the core. */
static struct script_limits limits_of_core(const struct request *request, uint64_t steps_max)
{
    struct script_limits limits = request->api->options.script;
    if (limits.steps_max > SCRIPT_WRITER_STEPS_MAX)
        limits.steps_max = SCRIPT_WRITER_STEPS_MAX;
    if (steps_max > 0 && limits.steps_max > steps_max)
        limits.steps_max = steps_max;
    return limits;
}

/* The memory of an update that reads much: its sources in parsed form, and the result. */
static size_t memory_of(const struct update *update)
{
    const struct write_update *params = update->item->update;
    size_t bytes = request_budget_of_json(params->doc) + params->upsert.len + params->script_params.len;
    return update->old == NULL ? bytes : bytes + request_budget_of_json(update->old->source) + update->old->source.len;
}

/* The update of the document that was read; NULL: there was no such. Fills run->ready. Returns: as dry_run_script(). */
static int run_update_here(struct request *request, struct dry_run *run, struct update *update)
{
    struct problem problem;
    int r = update_run(update, &problem);
    run->steps = update->steps_taken;
    if (r == UPDATE_REFUSED && account_ended(&request->account))
        return request_budget_refuse(request); /* which is no fault of the script */
    if (r == UPDATE_REFUSED) {
        problem_copy(&request->problem, &problem, request->arena);
        return REQUEST_REFUSED;
    }
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0; /* the core reports the missing document */
    bool copies = update->op == UPDATE_NOOP || update->op == UPDATE_DELETE;
    run->ready = update_result(update);
    if (copies && !run->item->update->want_source)
        run->ready.source = SLICE_NONE;
    else if (copies && update->source.data != NULL) /* the document's own */
        run->ready.source = arena_copy(run->arena, update->source);
    return 0;
}

/* The same, within the memory that others leave: the request is submitted, so its own part is not charged any more. */
static int run_update(struct request *request, struct dry_run *run, struct update *update)
{
    struct budget_guard guard;
    size_t bytes = memory_of(update);
    if (bytes <= UPDATE_READ_BYTES_MAX)
        return run_update_here(request, run, update);
    int r = request_budget_reserve(request, bytes, &guard);
    if (r == 0)
        r = run_update_here(request, run, update);
    budget_guard_end(&guard);
    return r;
}

static int read_and_run(struct request *request, struct dry_run *run, const struct write_item *item,
                        const struct catalog *catalog, struct arena *scratch)
{
    struct slice name = item->type.len > 0 ? item->type : SLICE_LIT("_doc");
    const struct catalog_index *index = NULL;
    const struct catalog_alias *alias = NULL;
    struct problem ignored;
    struct doc doc;
    int r = DOC_NOT_FOUND;
    if (catalog_find(catalog, item->index, true, item->dialect, scratch, &index, &alias, &ignored) != 0)
        index = NULL; /* an upsert may create it */
    const struct mapping_type *type = index == NULL ? NULL : mapping_type(index->mapping, name);
    if (type != NULL)
        r = doc_get(&run->view, index->number, type->number, item->id, &doc);
    if (r < 0)
        return tl_trace(r);
    if (r == DOC_TOO_OLD)
        return 0; /* the next run has a later view */
    struct update update = {.dialect = item->dialect,
                            .item = item,
                            .index = index == NULL ? item->index : index->name,
                            .type = name,
                            .old = r == 0 && is_routed_to(&doc, item, index, alias) ? &doc : NULL,
                            .mapped = type,
                            .catalog = catalog,
                            .account = &request->account,
                            .limits = limits_of_core(request, run->steps_max),
                            .zones = catalog_zones(catalog),
                            .ts = run->view.ts,
                            .arena = run->arena,
                            .scratch = scratch};
    int done = run_update(request, run, &update);
    if (r == 0)
        doc_release(&doc);
    return done;
}

int dry_run_script(struct request *request, struct dry_run *run)
{
    tl_cleanup(catalog_unrefp) struct catalog *catalog = journal_catalog(request->api->journal);
    struct write_update update = *run->item->update;
    struct write_item item = *run->item;
    struct arena scratch = ARENA_INIT;
    update.script_steps = 0;
    update.ready.given = run->ready.given = false;
    item.update = &update;
    int r = read_and_run(request, run, &item, catalog, &scratch);
    arena_deinit(&scratch);
    return r;
}
