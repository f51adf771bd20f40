/* SPDX-License-Identifier: Apache-2.0 */
/* Reads as of an earlier timestamp; see as_of.h. */
#include "api/request/as_of.h"

#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "base/types.h"
#include "core/catalog/catalog.h"

static request_handler *const documents[] = {
    handle_doc_get,
    handle_doc_source,
    handle_mget,
    handle_search,
    handle_count,
    handle_msearch,
    handle_validate_query,
    handle_pit_open,
    handle_tree,
    handle_task_get /* its results are documents */,
    handle_lock_status /* whose past the core knows */,
};

static request_handler *const catalogs[] = {
    handle_index_get,         handle_index_exists,       handle_settings_get,  handle_mapping_get,
    handle_mapping_get_field, handle_field_caps,         handle_type_exists,   handle_alias_get,
    handle_template_get,      handle_index_template_get, handle_component_get, handle_analyze,
    handle_script_get,        handle_cat_aliases,        handle_cat_templates, handle_cluster_settings_get,
};

/* No lock guards the contents of these responses. */
static request_handler *const unguarded[] = {handle_analyze,       handle_template_get,  handle_index_template_get,
                                             handle_component_get, handle_cat_templates, handle_cluster_settings_get};

/* They show the present state of indices and documents, ... */
static request_handler *const present[] = {
    handle_changes, handle_cat_count, handle_cat_indices, handle_cat_shards, handle_stats, handle_cluster_state,
};
/*
 * ... and these belong to no transaction: they show other things, or nothing that changes, or make
 * changes that are no documents'. The parameter of a transaction is refused there; its header is
 * ignored, since clients send it with all requests.
 */
static request_handler *const elsewhere[] = {
    handle_index_refresh, handle_index_flush,       handle_index_forcemerge,
    handle_backup,        handle_index_clear_cache, handle_script_execute,
    handle_task_cancel,   handle_task_rethrottle,   handle_info,
    handle_cat,           handle_cat_health,        handle_cat_nodes,
    handle_cat_master,    handle_cluster_health,    handle_cluster_stats,
    handle_nodes,         handle_nodes_stats,       handle_tasks,
    handle_task_get,      handle_data_stream_get,
};

static bool is_one_of(request_handler *handler, request_handler *const *handlers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (handlers[i] == handler)
            return true;
    return false;
}

/*
 * A past timestamp is asked for. The [timestamp] of writes of 5.x is another parameter, which 5.x
 * did not store either.
 */
static bool names_instant(const struct request *request)
{
    bool writes_5 = request->dialect == DIALECT_5 && (request->route->methods & (1u << HTTP_GET)) == 0;
    return request_param(request, "as_of").data != NULL ||
           (!writes_5 && request_param(request, "timestamp").data != NULL);
}

static int refuse_as_of(struct request *request)
{
    bool reads = (request->exchange->method == HTTP_GET || request->exchange->method == HTTP_HEAD);
    request_handler *handler = request->route->handler;
    bool counts = handler == handle_cat_count || handler == handle_cat_indices || handler == handle_stats;
    if (!reads)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[timestamp] and [as_of] are parameters of reads: the past cannot be changed");
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                          "[timestamp] and [as_of] are not for [%.*s], which reports only the current state%s",
                          SLICE_ARG(request->exchange->path),
                          counts ? "; [_count] counts the documents of the past" : "");
}

/*
 * What a read of the catalog locks in an update transaction, so that it stays so: S on the indices
 * that the path names, whatever they are like, and on how they were found; for aliases of any index
 * all of them; a stored script.
 */
static struct lock_target *catalog_lock(struct request *request)
{
    struct lock_target *target = arena_zalloc(request->arena, sizeof *target);
    target->mode = LOCK_S;
    target->script = request->route->handler == handle_script_get;
    target->index = request->parts[target->script ? PART_ID : PART_INDEX];
    target->expression = target->script ? NULL : &catalog_options_every_index;
    return target;
}

/* Reads the catalog in a transaction. */
static int read_within(struct request *request)
{
    request_handler *handler = request->route->handler;
    if (request->query != NULL) /* reads of the past take no locks */
        return request_read(request, NULL, 0, handler);
    if (is_one_of(handler, unguarded, COUNT_OF(unguarded)))
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "[%.*s] cannot be read in an update transaction: no lock keeps its response unchanged; read it outside, "
            "or in a query transaction",
            SLICE_ARG(request->exchange->path));
    return request_read(request, catalog_lock(request), 1, handler);
}

/* Calls that are neither part of a transaction nor guarded by its locks. */
static int refuse_apart(struct request *request)
{
    request_handler *handler = request->route->handler;
    if (is_one_of(handler, present, COUNT_OF(present)))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[%.*s] reports only the current state, outside of transactions: leave [transaction] out",
                              SLICE_ARG(request->exchange->path));
    if (request_param(request, "transaction").data != NULL && is_one_of(handler, elsewhere, COUNT_OF(elsewhere)))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[%.*s] cannot be part of a transaction: leave the parameter [transaction] out",
                              SLICE_ARG(request->exchange->path));
    return 0;
}

int as_of_handle(struct request *request)
{
    request_handler *handler = request->route->handler;
    bool at_instant = names_instant(request);
    bool catalog = is_one_of(handler, catalogs, COUNT_OF(catalogs));
    if (catalog && request->transaction.len > 0)
        return read_within(request);
    if (catalog && (at_instant || request_must_catch_up(request)))
        return request_read(request, NULL, 0, handler);
    int r = request->transaction.len > 0 ? refuse_apart(request) : 0;
    if (r != 0)
        return r;
    if (at_instant && !is_one_of(handler, documents, COUNT_OF(documents)))
        return refuse_as_of(request);
    return handler(request);
}
