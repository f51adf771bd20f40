/* SPDX-License-Identifier: Apache-2.0 */
/* A request's part in the budget of memory; see request_budget.h. */
#include "api/request/request_budget.h"

#include <inttypes.h>
#include <string.h>

#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/search/search_service.h"
#include "base/check.h"
#include "base/clock.h"

enum {
    VALUE_BYTES = 24,  /* of a value in a tree, with room to grow */
    ENTRY_BYTES = 64,  /* of what a document's value leads to: an index entry, on its way to the store */
    PLACE_BYTES = 192, /* of a level of a path that is locked, or awaited */
    LEVELS_MAX = 4096, /* of one path (core/locks/resource.h) */
    PLAIN_BYTES = 512, /* no memory is reserved for parsing smaller bodies */
    PATH_SHOWN_MAX = 100,
};

/* Calls with short answers, and calls that end something: served until the reserve is exhausted. */
static bool relieves_memory(request_handler *handler)
{
    static request_handler *const handlers[] = {
        handle_unlock,       handle_session_close, handle_session_keepalive, handle_txn_commit,
        handle_txn_rollback, handle_scroll_clear,  handle_pit_close,         handle_pit_close_other,
        handle_task_cancel,  handle_info,          handle_timestamp,         handle_cluster_health,
        handle_cat_health,   handle_nodes,         handle_index_delete,      handle_index_clear_cache,
        handle_nodes_stats,  handle_cat_memory,    handle_metrics,           handle_health_live,
        handle_health_ready,
    };
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        if (handlers[i] == handler)
            return true;
    return false;
}

/* What stays in memory when the request has been answered, or while it waits. */
static bool keeps_memory(const struct request *request)
{
    static request_handler *const handlers[] = {
        handle_lock,
        handle_session_open,
        handle_txn_begin,
        handle_pit_open,
        handle_pit_open_other,
        handle_reindex,
        handle_delete_by_query,
        handle_update_by_query,
        handle_delete_by_query_old,
    };
    if (request->transaction.len > 0 || request_param(request, "scroll").data != NULL)
        return true;
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        if (handlers[i] == request->route->handler)
            return true;
    return false;
}

static enum budget_level request_budget_level(const struct request *request)
{
    if (relieves_memory(request->route->handler))
        return BUDGET_ESSENTIAL;
    return keeps_memory(request) ? BUDGET_RETAINED : BUDGET_TRANSIENT;
}

/* A loop that compilers turn into one over vectors: bodies are large. */
static size_t count_values(struct slice text)
{
    size_t found = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        found += (size_t)((c == ',') | (c == ':') | ((c | 0x20) == '{'));
    }
    return found + 1;
}

size_t request_budget_of_json(struct slice text)
{
    return text.len + count_values(text) * VALUE_BYTES;
}

/* A '/' that is written as an escape (\u002f) parts levels as well. */
static size_t count_escaped_slashes(struct slice text)
{
    static const char escape[] = "\\u002";
    const size_t len = sizeof escape - 1;
    const char *at;
    size_t found = 0;
    while ((at = memmem(text.data, text.len, escape, len)) != NULL) {
        text = slice_from_offset(text, (size_t)(at - text.data) + len);
        found += text.len > 0 && (text.data[0] | 0x20) == 'f';
    }
    return found;
}

static size_t count_slashes(struct slice text)
{
    size_t found = 0;
    for (size_t i = 0; i < text.len; i++)
        found += text.data[i] == '/';
    return found + count_escaped_slashes(text);
}

/*
 * The levels of locked paths: a lock, a write that waits and one of a transaction hold one for each
 * level of their paths, many times the bytes that name it.
 */
static size_t cost_of_places(const struct request *request)
{
    request_handler *handler = request->route->handler;
    size_t levels = count_slashes(request->exchange->body);
    if (handler != handle_lock && handler != handle_bulk && levels > LEVELS_MAX)
        levels = LEVELS_MAX;
    return levels * PLACE_BYTES;
}

/* The memory for parsing the body, in addition to the body. Small amounts are not reserved. */
static size_t cost_of_body(const struct request *request)
{
    struct slice body = request->exchange->body;
    if (body.len < PLAIN_BYTES)
        return 0;
    size_t places = cost_of_places(request);
    if (body.len < BUDGET_CHUNK)
        return places < BUDGET_CHUNK ? 0 : places;
    /* What a transaction holds is there several times while it is put there. */
    return body.len * (request->transaction.len > 0 ? 3 : 1) + count_values(body) * (VALUE_BYTES + ENTRY_BYTES) +
           places;
}

static void open_account(struct request *request)
{
    struct account *account = &request->account;
    account->flags[ACCOUNT_FLAG_ABANDONED] = &request->abandoned;
    account->flags[ACCOUNT_FLAG_CANCELLED] = &request->cancelled;
    account->flags[ACCOUNT_FLAG_STOPPED] = search_service_cancelled(request->api->search_service);
    account->clock_us = clock_boot_us;
    request_start_timer(request);
}

int request_budget_admit(struct request *request)
{
    REQUIRE(request->route != NULL);
    struct budget *budget = request->api->options.budget;
    struct budget_guard *guard = &request->memory;
    open_account(request);
    budget_guard_init(guard, budget, BUDGET_REQUESTS, request_budget_level(request));
    guard->account = &request->account;
    request->arena->guard = request->exchange->response.guard = guard;
    if (budget == NULL)
        return 0;
    size_t cost = cost_of_body(request);
    if (cost == 0)
        return budget_guard_take(guard, 0) ? 0 : request_budget_refuse(request);
    return budget_guard_promise(guard, cost) ? 0 : request_budget_refuse(request);
}

int request_budget_take(struct request *request, size_t bytes)
{
    return budget_guard_promise(&request->memory, bytes) ? 0 : request_budget_refuse(request);
}

struct slice request_budget_name(const struct request *request)
{
    struct slice path = request->exchange->path;
    return arena_printf(request->arena, "%.*s %.*s%s", SLICE_ARG(request->exchange->method_name),
                        (int)(path.len < PATH_SHOWN_MAX ? path.len : PATH_SHOWN_MAX), path.data,
                        path.len > PATH_SHOWN_MAX ? "..." : "");
}

int request_budget_reserve(struct request *request, size_t bytes, struct budget_guard *ret_guard)
{
    budget_guard_init(ret_guard, request->api->options.budget, BUDGET_REQUESTS, BUDGET_RETAINED);
    if (budget_guard_promise(ret_guard, bytes))
        return 0;
    budget_problem(ret_guard, request_budget_name(request), request->arena, &request->problem);
    return REQUEST_REFUSED;
}

static int check_budget(const struct api *api, size_t bytes, struct slice what, struct arena *arena,
                        struct problem *ret_problem)
{
    struct budget_guard guard;
    budget_guard_init(&guard, api->options.budget, BUDGET_REQUESTS, BUDGET_RETAINED);
    bool refused = !budget_guard_promise(&guard, bytes);
    if (refused)
        budget_problem(&guard, what, arena, ret_problem);
    budget_guard_end(&guard);
    return refused ? REQUEST_REFUSED : 0;
}

int request_budget_check_growth_for(const struct api *api, struct slice what, struct arena *arena,
                                    struct problem *ret_problem)
{
    return check_budget(api, BUDGET_SMALL, what, arena, ret_problem);
}

int request_budget_check_reply(struct request *request)
{
    size_t more = BUDGET_SMALL + 2 * request->exchange->response.len; /* as a buffer grows */
    return check_budget(request->api, more, request_budget_name(request), request->arena, &request->problem);
}

/* Why the account is over. */
static int refuse_time(struct request *request)
{
    switch (request->account.end) {
    case ACCOUNT_LATE:
        return request_refuse(request, PROBLEM_TIMEOUT,
                              "the request took longer than [%" PRIu64
                              "ms], the [--request-time] of this server: ask for "
                              "less at once, or raise it",
                              request->api->options.request_us / TL_MS);
    case ACCOUNT_CANCELLED: return request_refuse(request, PROBLEM_TASK_CANCELLED, "cancelled");
    case ACCOUNT_ABANDONED: return request_refuse(request, PROBLEM_TASK_CANCELLED, "the connection is closed");
    default: return request_refuse(request, PROBLEM_STOPPING, "the server is stopping");
    }
}

int request_budget_refuse(struct request *request)
{
    if (account_ended(&request->account))
        return refuse_time(request);
    budget_problem(&request->memory, request_budget_name(request), request->arena, &request->problem);
    return REQUEST_REFUSED;
}

void request_budget_committed(struct request *request)
{
    budget_guard_end(&request->memory);
    account_commit(&request->account);
}

void request_budget_end(struct request *request)
{
    growth_promise_end(&request->growth);
    budget_guard_end(&request->memory);
    request->arena->guard = request->exchange->response.guard = NULL;
}
