/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls read the past; see past.h. */
#include "api/request/past.h"

#include "api/request/api_internal.h"
#include "api/request/handlers.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static request_handler *const documents[] = {
    handle_doc_get, handle_doc_source, handle_mget,     handle_search,
    handle_count,   handle_msearch,    handle_pit_open, handle_task_get /* its results are documents */,
};

static request_handler *const catalogs[] = {
    handle_index_get,         handle_index_exists, handle_settings_get,  handle_mapping_get,
    handle_mapping_get_field, handle_type_exists,  handle_alias_get,     handle_template_get,
    handle_script_get,        handle_cat_aliases,  handle_cat_templates, handle_cluster_settings_get,
};

static bool is_one_of(request_handler *handler, request_handler *const *handlers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (handlers[i] == handler)
            return true;
    return false;
}

/* Another moment is asked for. The [timestamp] of writes of 5.x is another thing, of which nothing was kept there either. */
static bool names_moment(const struct request *request)
{
    bool writes_5 = request->dialect == DIALECT_5 && (request->route->methods & (1u << HTTP_GET)) == 0;
    return request_param(request, "as_of").data != NULL ||
           (!writes_5 && request_param(request, "timestamp").data != NULL);
}

static int refuse(struct request *request)
{
    bool reads = (request->exchange->method == HTTP_GET || request->exchange->method == HTTP_HEAD);
    request_handler *handler = request->route->handler;
    bool counts = handler == handle_cat_count || handler == handle_cat_indices || handler == handle_stats;
    if (!reads)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[timestamp] and [as_of] are parameters of reads: what is past cannot be changed");
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                          "[timestamp] and [as_of] are not for [%.*s], which tells of the present only%s",
                          SLICE_ARG(request->exchange->path),
                          counts ? "; [_count] counts the documents of the past" : "");
}

int past_handle(struct request *request)
{
    request_handler *handler = request->route->handler;
    bool moment = names_moment(request);
    if (is_one_of(handler, catalogs, COUNT_OF(catalogs)) && (moment || request->transaction.len > 0))
        return request_read(request, NULL, 0, handler);
    if (moment && !is_one_of(handler, documents, COUNT_OF(documents)))
        return refuse(request);
    return handler(request);
}
