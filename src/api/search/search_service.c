/* SPDX-License-Identifier: Apache-2.0 */
/* The table of search contexts, the thread that ends them, and the shared cache of scripts. */
#include "api/search/search_service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/request/api_internal.h"
#include "api/request/forward.h"
#include "api/search/task.h"
#include "base/budget.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "core/catalog/cluster_settings.h"
#include "metrics/metrics.h"
#include "script/script.h"
#include "json/time_value.h"

#define REAP_EVERY_US TL_SECOND

enum { HOST_DIGITS = 4, NUMBER_DIGITS = 8 }; /* in an id */

struct search_service {
    struct api *api;
    void (*each_second)(struct api *api);
    pthread_mutex_t lock;
    pthread_cond_t wake; /* of the reaper, to end */
    struct thread reaper;
    bool stopping;         /* of the reaper */
    bool closed;           /* to new contexts */
    atomic_bool cancelled; /* searches that run end soon */
    struct list contexts;  /* in order of creation */
    size_t counts[CONTEXT_KIND_COUNT];
    size_t bytes; /* of the contexts in the table */
    uint64_t last_number;
    pthread_mutex_t script_lock;
    struct script_cache *scripts;
    metric_value script_count; /* of it; readable without the lock */
    struct tasks *tasks;
};

/* --- Scripts ------------------------------------------------------------------------------------------------------ */

size_t search_service_script_count(const struct search_service *service)
{
    return metric_read(&service->script_count);
}

int search_service_compile(struct search_service *service, int lang, int script_context, struct slice source,
                           struct slice name, struct script **ret_script, struct arena *arena,
                           struct problem *ret_problem)
{
    pthread_mutex_lock(&service->script_lock);
    int r = script_cache_compile(service->scripts, (enum script_lang)lang, (enum script_context)script_context, source,
                                 name, ret_script, arena, ret_problem);
    metric_set(&service->script_count, script_cache_count(service->scripts));
    pthread_mutex_unlock(&service->script_lock);
    return r;
}

/* --- One context -------------------------------------------------------------------------------------------------- */

struct open_context *open_context_new(struct search_service *service, enum context_kind kind)
{
    struct open_context *held = mem_zalloc(sizeof *held);
    held->kind = kind;
    held->arena = ARENA_INIT;
    held->references = 1;
    pthread_mutex_init(&held->busy, NULL);
    pthread_mutex_lock(&service->lock);
    held->number = ++service->last_number;
    pthread_mutex_unlock(&service->lock);
    struct slice random = id_random(&service->api->ids, &held->arena);
    char host[HOST_DIGITS + 1] = "";
    uint16_t number = journal_host_number(service->api->journal);
    if (number != 0)
        snprintf(host, sizeof host, "%04x", number);
    held->id = arena_printf(&held->arena, "%s%s%08" PRIx64 "%.*s", kind == CONTEXT_SCROLL ? "scroll" : "pit", host,
                            held->number, SLICE_ARG(random));
    return held;
}

static void context_free(struct search_service *service, struct open_context *held)
{
    if (held->call.view.ts != 0)
        journal_unpin(service->api->journal, held->call.view.ts);
    catalog_unref(held->call.catalog);
    core_overlay_unref(held->overlay);
    search_cursor_free(held->cursor);
    pthread_mutex_destroy(&held->busy);
    arena_deinit(&held->arena);
    mem_free(held);
}

void open_context_unref(struct search_service *service, struct open_context *held)
{
    pthread_mutex_lock(&service->lock);
    bool last = --held->references == 0;
    pthread_mutex_unlock(&service->lock);
    if (last)
        context_free(service, held);
}

/* The bytes that it holds in addition to its view, its request included. Assumes: no thread reads from it. */
static size_t bytes_of(const struct open_context *held)
{
    return arena_held(&held->arena) + (held->cursor != NULL ? search_cursor_bytes(held->cursor) : 0) +
           (held->overlay != NULL ? overlay_bytes(held->overlay) : 0);
}

/* Counts a context that was opened, or has ended, with each index that it reads. */
static void note_context(const struct open_context *held, bool ends)
{
    const struct search_context *context = &held->call.context;
    bool scroll = held->kind == CONTEXT_SCROLL;
    for (size_t i = 0; i < context->index_count; i++) {
        const struct catalog_index *index = catalog_index_by_number(held->call.catalog, context->indices[i].number);
        if (!ends) {
            catalog_index_count_stat(index, scroll ? INDEX_STAT_SCROLLS_OPENED : INDEX_STAT_PITS_OPENED, 1);
            continue;
        }
        catalog_index_count_stat(index, scroll ? INDEX_STAT_SCROLLS_ENDED : INDEX_STAT_PITS_ENDED, 1);
        if (scroll)
            catalog_index_count_stat(index, INDEX_STAT_SCROLL_US, (uint64_t)search_clock_us() - held->opened_us);
    }
}

/* Requires: the lock is held. The table's reference passes to the caller. */
static void remove_context(struct search_service *service, struct open_context *held)
{
    REQUIRE(mutex_is_held(&service->lock));
    list_remove(&held->link);
    held->listed = false;
    note_context(held, true);
    service->counts[held->kind]--;
    service->bytes -= held->bytes;
    budget_tally(BUDGET_CONTEXTS, -(ptrdiff_t)held->bytes);
    held->bytes = 0;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

int open_context_add(struct search_service *service, struct open_context *held, uint64_t keep_alive_us)
{
    size_t limit = held->kind == CONTEXT_SCROLL ? CONTEXTS_SCROLL_MAX : CONTEXTS_PIT_MAX;
    int r = CONTEXT_TOO_MANY;
    pthread_mutex_lock(&service->lock);
    held->bytes = bytes_of(held);
    if (service->counts[held->kind] < limit && service->bytes + held->bytes <= CONTEXTS_BYTES_MAX && !service->closed) {
        service->bytes += held->bytes;
        budget_tally(BUDGET_CONTEXTS, (ptrdiff_t)held->bytes);
        service->counts[held->kind]++;
        held->references++;
        held->keep_alive_us = keep_alive_us;
        held->opened_us = (uint64_t)search_clock_us();
        held->expires_us = held->opened_us + keep_alive_us;
        note_context(held, false);
        list_append(&service->contexts, &held->link);
        held->listed = true;
        r = 0;
    }
    pthread_mutex_unlock(&service->lock);
    return r;
}

static bool parse_digits(const char *from, size_t len, uint64_t *ret_number)
{
    char digits[NUMBER_DIGITS + 1] = "";
    char *end;
    memcpy(digits, from, len);
    *ret_number = strtoull(digits, &end, 16);
    return *end == '\0';
}

static bool parse_id(enum context_kind kind, struct slice id, uint64_t *ret_host, uint64_t *ret_number)
{
    struct slice prefix = kind == CONTEXT_SCROLL ? SLICE_LIT("scroll") : SLICE_LIT("pit");
    size_t alone = prefix.len + NUMBER_DIGITS + ID_BYTES;
    *ret_host = 0;
    if ((id.len != alone && id.len != alone + HOST_DIGITS) || !slice_starts_with(id, prefix))
        return false;
    const char *at = id.data + prefix.len;
    if (id.len > alone && !parse_digits(at, HOST_DIGITS, ret_host))
        return false;
    return parse_digits(at + (id.len - alone), NUMBER_DIGITS, ret_number);
}

uint16_t open_context_host(enum context_kind kind, struct slice id)
{
    uint64_t host, number;
    return parse_id(kind, id, &host, &number) ? (uint16_t)host : 0;
}

int open_context_forward(struct request *request, enum context_kind kind, struct slice id)
{
    return request_forward_to(request, open_context_host(kind, id));
}

/* Requires: the lock is held. */
static struct open_context *find_context(struct search_service *service, enum context_kind kind, struct slice id)
{
    REQUIRE(mutex_is_held(&service->lock));
    list_for_each(link, &service->contexts)
    {
        struct open_context *held = list_entry(link, struct open_context, link);
        if (held->kind == kind && slice_equal(held->id, id))
            return held;
    }
    return NULL;
}

bool open_context_is_id(enum context_kind kind, struct slice id)
{
    uint64_t host, number;
    return parse_id(kind, id, &host, &number);
}

/* Returns: whether the keep-alive of a context is over, and no request reads in it: the table has one reference. */
static bool is_expired(const struct open_context *held, const void *what)
{
    return held->references == 1 && held->expires_us < *(const uint64_t *)what;
}

int open_context_enter(struct search_service *service, enum context_kind kind, struct slice id, uint64_t keep_alive_us,
                       struct open_context **ret_context, uint64_t *ret_number)
{
    uint64_t host;
    if (!parse_id(kind, id, &host, ret_number))
        return CONTEXT_BAD_ID;
    uint64_t now = (uint64_t)search_clock_us();
    pthread_mutex_lock(&service->lock);
    struct open_context *held = find_context(service, kind, id);
    if (held != NULL && is_expired(held, &now))
        held = NULL; /* the reaper has not removed it yet */
    if (held != NULL) {
        held->references++;
        held->keep_alive_us = keep_alive_us > 0 ? keep_alive_us : held->keep_alive_us;
    }
    pthread_mutex_unlock(&service->lock);
    if (held == NULL)
        return CONTEXT_MISSING;
    if (kind == CONTEXT_SCROLL)
        pthread_mutex_lock(&held->busy);
    *ret_context = held;
    return 0;
}

/* Requires: the lock is held. Counts the bytes of a context again, unless it is out of the table. */
static void count_context_bytes(struct search_service *service, struct open_context *held, size_t bytes)
{
    REQUIRE(mutex_is_held(&service->lock));
    if (!held->listed)
        return;
    service->bytes = service->bytes - held->bytes + bytes;
    budget_tally(BUDGET_CONTEXTS, (ptrdiff_t)bytes - (ptrdiff_t)held->bytes);
    held->bytes = bytes;
}

void open_context_leave(struct search_service *service, struct open_context *held)
{
    size_t bytes = bytes_of(held);
    if (held->kind == CONTEXT_SCROLL)
        pthread_mutex_unlock(&held->busy);
    pthread_mutex_lock(&service->lock);
    held->expires_us = (uint64_t)search_clock_us() + held->keep_alive_us;
    count_context_bytes(service, held, bytes);
    pthread_mutex_unlock(&service->lock);
    open_context_unref(service, held);
}

/* Removes the contexts for which `ends` returns true, and unreferences them without the lock. Returns: their shards. */
static size_t clear_contexts(struct search_service *service,
                             bool (*ends)(const struct open_context *held, const void *what), const void *what)
{
    struct list ended = LIST_INIT(ended);
    size_t shards = 0;
    pthread_mutex_lock(&service->lock);
    list_for_each_safe(link, following, &service->contexts)
    {
        struct open_context *held = list_entry(link, struct open_context, link);
        if (ends(held, what)) {
            remove_context(service, held);
            list_append(&ended, &held->link);
            shards += held->call.shard_count > 0 ? held->call.shard_count : 1;
        }
    }
    pthread_mutex_unlock(&service->lock);
    list_for_each_safe(link, following, &ended)
    {
        list_remove(link);
        open_context_unref(service, list_entry(link, struct open_context, link));
    }
    return shards;
}

struct named {
    enum context_kind kind;
    struct slice id;
};

static bool is_named(const struct open_context *held, const void *what)
{
    const struct named *named = what;
    return held->kind == named->kind && (named->id.len == 0 || slice_equal(held->id, named->id));
}

size_t open_context_clear(struct search_service *service, enum context_kind kind, struct slice id)
{
    struct named named = {kind, id};
    return clear_contexts(service, is_named, &named);
}

static bool is_any(const struct open_context *held, const void *what)
{
    (void)what;
    return held != NULL;
}

/* --- Of transactions ---------------------------------------------------------------------------------------------- */

int open_context_take_view(struct request *request, struct open_context *held)
{
    REQUIRE(request->catalog != NULL);
    if (journal_pin(request->api->journal, request->view.ts) != 0)
        return SEARCH_TOO_OLD;
    held->call.view = request->view;
    held->call.catalog = catalog_ref(request->catalog);
    held->transaction = arena_copy(&held->arena, request->transaction);
    held->overlay = tl_steal(request->overlay);
    return 0;
}

/* Returns: whether there is such a context; the id of the transaction that opened it, empty where none did. */
static bool find_owner(struct request *request, enum context_kind kind, struct slice id, struct slice *ret_transaction)
{
    struct search_service *service = request->api->search_service;
    pthread_mutex_lock(&service->lock);
    const struct open_context *held = find_context(service, kind, id);
    bool found = held != NULL;
    if (found)
        *ret_transaction = arena_copy(request->arena, held->transaction);
    pthread_mutex_unlock(&service->lock);
    return found;
}

static int owner_lives(struct request *request, struct command *command)
{
    core_overlay_unref(tl_steal(command->txn_lock.overlay));
    return request->next(request);
}

int open_context_allow(struct request *request, enum context_kind kind, struct slice id, request_handler *then)
{
    struct slice owner = SLICE_NONE;
    if (!find_owner(request, kind, id, &owner) || (owner.len == 0 && request->transaction.len == 0))
        return then(request);
    if (request->transaction.len > 0 && !slice_equal(request->transaction, owner))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "transaction [%.*s] did not open the %s that it names",
                              SLICE_ARG(request->transaction), kind == CONTEXT_SCROLL ? "scroll" : "point in time");
    struct query_txn *query = journal_query_txn_use(request->api->journal, owner);
    if (query != NULL) {
        int r = journal_query_txn_check_session(query, request->session, request->arena, &request->problem);
        journal_query_txn_release(request->api->journal, query);
        return r != 0 ? REQUEST_REFUSED : then(request);
    }
    struct command *command = command_new(COMMAND_TXN_LOCK, request->dialect);
    command->owner.transaction = arena_copy(&command->arena, owner);
    command->owner.session = arena_copy(&command->arena, request->session);
    request->next = then;
    return request_submit(request, command, owner_lives);
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

static void reaper_main(void *user)
{
    struct search_service *service = user;
    pthread_mutex_lock(&service->lock);
    while (!service->stopping) {
        (void)clock_wait(&service->wake, &service->lock, clock_boot_us() + REAP_EVERY_US);
        pthread_mutex_unlock(&service->lock);
        uint64_t now = (uint64_t)search_clock_us();
        clear_contexts(service, is_expired, &now);
        tasks_beat(service->tasks, now);
        service->each_second(service->api);
        pthread_mutex_lock(&service->lock);
    }
    pthread_mutex_unlock(&service->lock);
}

int search_service_open(struct api *api, void (*each_second)(struct api *api), struct search_service **ret_service)
{
    struct search_service *service = mem_zalloc(sizeof *service);
    service->api = api;
    service->each_second = each_second;
    service->scripts = script_cache_new(SCRIPT_CACHE_COUNT_MAX, &api->options.script);
    service->tasks = tasks_new(api);
    list_init(&service->contexts);
    mutex_init(&service->lock);
    mutex_init(&service->script_lock);
    pthread_cond_init(&service->wake, NULL);
    if (thread_start(&service->reaper, "reaper", reaper_main, service) != 0) {
        search_service_close(service);
        return TL_ERR_IO;
    }
    *ret_service = service;
    return 0;
}

void search_service_close(struct search_service *service)
{
    if (service == NULL)
        return;
    pthread_mutex_lock(&service->lock);
    service->stopping = true;
    pthread_cond_broadcast(&service->wake);
    pthread_mutex_unlock(&service->lock);
    thread_join(&service->reaper); /* it checks tasks, too */
    tasks_free(service->tasks);
    clear_contexts(service, is_any, NULL);
    script_cache_free(service->scripts);
    pthread_cond_destroy(&service->wake);
    pthread_mutex_destroy(&service->script_lock);
    pthread_mutex_destroy(&service->lock);
    mem_free(service);
}

struct tasks *search_service_tasks(struct search_service *service)
{
    return service->tasks;
}

void search_service_stop(struct search_service *service)
{
    pthread_mutex_lock(&service->lock);
    service->closed = true;
    pthread_mutex_unlock(&service->lock);
    clear_contexts(service, is_any, NULL);
    tasks_stop(service->tasks, false);
}

void search_service_cancel(struct search_service *service)
{
    atomic_store(&service->cancelled, true);
    search_service_stop(service);
    tasks_stop(service->tasks, true);
}

bool search_service_settled(struct search_service *service, uint64_t until)
{
    return tasks_wait(service->tasks, until);
}

const atomic_bool *search_service_cancelled(const struct search_service *service)
{
    return &service->cancelled;
}

/* --- Keep-alive --------------------------------------------------------------------------------------------------- */

static int setting_time(struct request *request, const char *name, uint64_t *ret_us)
{
    int64_t us = 0;
    struct slice text = cluster_setting(request_catalog(request), name, request->arena);
    if (text.data == NULL)
        return 0;
    if (time_value_parse(text, slice_from(name), request->dialect, request->arena, &us, &request->problem) != 0)
        return REQUEST_REFUSED;
    if (us > 0)
        *ret_us = (uint64_t)us;
    return 0;
}

int search_default_timeout(struct request *request, struct search_call *call)
{
    uint64_t timeout_us = 0;
    if (call->search.timeout_us != SEARCH_TIMEOUT_UNSET)
        return 0;
    int r = setting_time(request, "search.default_search_timeout", &timeout_us);
    call->search.timeout_us = (int64_t)timeout_us;
    return r;
}

int open_context_keep_alive(struct request *request, struct slice text, const char *setting, uint64_t *ret_us)
{
    uint64_t limit = CLUSTER_KEEP_ALIVE_MAX_US;
    int64_t us = 0;
    *ret_us = CLUSTER_KEEP_ALIVE_US;
    int r = setting_time(request, "search.max_keep_alive", &limit);
    if (r == 0)
        r = setting_time(request, "search.default_keep_alive", ret_us);
    if (r != 0 || text.data == NULL)
        return r;
    if (time_value_parse(text, slice_from(setting), request->dialect, request->arena, &us, &request->problem) != 0)
        return REQUEST_REFUSED;
    if (us > 0)
        *ret_us = (uint64_t)us;
    if (*ret_us > limit)
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "Keep alive for %s (%s) is too large. It must be less than (%s). This limit can be set by "
            "changing the [search.max_keep_alive] cluster level setting.",
            request->dialect == DIALECT_5 ? "scroll" : "request", time_value_print(request->arena, *ret_us),
            time_value_print(request->arena, limit));
    return 0;
}

void open_context_missing(struct request *request, enum context_kind kind, struct slice id, uint64_t number)
{
    struct problem *cause = arena_alloc(request->arena, sizeof *cause);
    bool gone = open_context_host(kind, id) != journal_host_number(request->api->journal);
    problem_set(cause, request->arena, PROBLEM_SEARCH_CONTEXT_MISSING, "No search context found for id [%" PRIu64 "]%s",
                number, gone ? ": the host that had it is out of the cluster" : "");
    request_refuse(request, PROBLEM_SEARCH_PHASE_EXECUTION, "all shards failed");
    request->problem.status = 404;
    request->problem.caused_by = cause;
    struct slice shown = arena_printf(request->arena, "{\"type\":\"%s\",\"reason\":\"%.*s\"}",
                                      problem_name(cause->type), SLICE_ARG(cause->reason));
    /* Of a scroll 7.10 shows the cause once more. */
    bool again = kind == CONTEXT_SCROLL && request->dialect == DIALECT_7;
    problem_details(&request->problem, request->arena,
                    "\"phase\":\"query\",\"grouped\":true,\"failed_shards\":[{\"shard\":-1,\"index\":null,"
                    "\"reason\":%.*s}]%s%.*s",
                    SLICE_ARG(shown), again ? ",\"caused_by\":" : "", again ? (int)shown.len : 0, shown.data);
}

void request_keep_problem(struct request *request)
{
    struct problem problem = request->problem;
    problem_copy(&request->problem, &problem, request->arena);
}
