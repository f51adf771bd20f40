/* SPDX-License-Identifier: Apache-2.0 */
/* The table of search contexts, the thread that ends them, and the shared cache of scripts. */
#include "api/search/searches.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/request/api_internal.h"
#include "api/request/forward.h"
#include "api/search/task.h"
#include "base/budget.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "core/catalog/cluster_settings.h"
#include "metrics/metrics.h"
#include "script/script.h"
#include "json/time_value.h"

#define REAP_EVERY_US TL_SECOND

enum { HOST_DIGITS = 4, NUMBER_DIGITS = 8 }; /* in an id */

struct searches {
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

size_t searches_script_count(const struct searches *searches)
{
    return metric_read(&searches->script_count);
}

int searches_compile(struct searches *searches, int lang, int script_context, struct slice source, struct slice name,
                     struct script **ret_script, struct arena *arena, struct problem *ret_problem)
{
    pthread_mutex_lock(&searches->script_lock);
    int r = script_cache_compile(searches->scripts, (enum script_lang)lang, (enum script_context)script_context, source,
                                 name, ret_script, arena, ret_problem);
    metric_set(&searches->script_count, script_cache_count(searches->scripts));
    pthread_mutex_unlock(&searches->script_lock);
    return r;
}

/* --- One context -------------------------------------------------------------------------------------------------- */

struct search_keep *search_keep_new(struct searches *searches, enum context_kind kind)
{
    struct search_keep *keep = mem_zalloc(sizeof *keep);
    keep->kind = kind;
    keep->arena = ARENA_INIT;
    keep->references = 1;
    pthread_mutex_init(&keep->busy, NULL);
    pthread_mutex_lock(&searches->lock);
    keep->number = ++searches->last_number;
    pthread_mutex_unlock(&searches->lock);
    struct slice random = id_random(&searches->api->ids, &keep->arena);
    char host[HOST_DIGITS + 1] = "";
    uint16_t number = journal_host_number(searches->api->journal);
    if (number != 0)
        snprintf(host, sizeof host, "%04x", number);
    keep->id = arena_printf(&keep->arena, "%s%s%08" PRIx64 "%.*s", kind == CONTEXT_SCROLL ? "scroll" : "pit", host,
                            keep->number, SLICE_ARG(random));
    return keep;
}

static void keep_free(struct searches *searches, struct search_keep *keep)
{
    if (keep->call.view.ts != 0)
        journal_unpin(searches->api->journal, keep->call.view.ts);
    catalog_unref(keep->call.catalog);
    core_overlay_unref(keep->overlay);
    search_cursor_free(keep->cursor);
    pthread_mutex_destroy(&keep->busy);
    arena_deinit(&keep->arena);
    mem_free(keep);
}

void search_keep_unref(struct searches *searches, struct search_keep *keep)
{
    pthread_mutex_lock(&searches->lock);
    bool last = --keep->references == 0;
    pthread_mutex_unlock(&searches->lock);
    if (last)
        keep_free(searches, keep);
}

/* The bytes that it holds in addition to its view, its request included. Requires: no thread reads from it. */
static size_t bytes_of(const struct search_keep *keep)
{
    return arena_held(&keep->arena) + (keep->cursor != NULL ? search_cursor_bytes(keep->cursor) : 0) +
           (keep->overlay != NULL ? overlay_bytes(keep->overlay) : 0);
}

/* Counts a context that was opened, or has ended, with each index that it reads. */
static void note_context(const struct search_keep *keep, bool ends)
{
    const struct search_context *context = &keep->call.context;
    bool scroll = keep->kind == CONTEXT_SCROLL;
    for (size_t i = 0; i < context->index_count; i++) {
        const struct catalog_index *index = catalog_index_by_number(keep->call.catalog, context->indices[i].number);
        if (!ends) {
            catalog_index_count_stat(index, scroll ? INDEX_STAT_SCROLLS_OPENED : INDEX_STAT_PITS_OPENED, 1);
            continue;
        }
        catalog_index_count_stat(index, scroll ? INDEX_STAT_SCROLLS_ENDED : INDEX_STAT_PITS_ENDED, 1);
        if (scroll)
            catalog_index_count_stat(index, INDEX_STAT_SCROLL_US, (uint64_t)search_clock_us() - keep->opened_us);
    }
}

/* Requires: the lock is held. The table's reference passes to the caller. */
static void take_out(struct searches *searches, struct search_keep *keep)
{
    list_remove(&keep->link);
    keep->listed = false;
    note_context(keep, true);
    searches->counts[keep->kind]--;
    searches->bytes -= keep->bytes;
    budget_tally(BUDGET_CONTEXTS, -(ptrdiff_t)keep->bytes);
    keep->bytes = 0;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

int search_keep_add(struct searches *searches, struct search_keep *keep, uint64_t keep_alive_us)
{
    size_t limit = keep->kind == CONTEXT_SCROLL ? CONTEXTS_SCROLL_MAX : CONTEXTS_PIT_MAX;
    int r = CONTEXT_TOO_MANY;
    pthread_mutex_lock(&searches->lock);
    keep->bytes = bytes_of(keep);
    if (searches->counts[keep->kind] < limit && searches->bytes + keep->bytes <= CONTEXTS_BYTES_MAX &&
        !searches->closed) {
        searches->bytes += keep->bytes;
        budget_tally(BUDGET_CONTEXTS, (ptrdiff_t)keep->bytes);
        searches->counts[keep->kind]++;
        keep->references++;
        keep->keep_alive_us = keep_alive_us;
        keep->opened_us = (uint64_t)search_clock_us();
        keep->expires_us = keep->opened_us + keep_alive_us;
        note_context(keep, false);
        list_append(&searches->contexts, &keep->link);
        keep->listed = true;
        r = 0;
    }
    pthread_mutex_unlock(&searches->lock);
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

uint16_t search_keep_host(enum context_kind kind, struct slice id)
{
    uint64_t host, number;
    return parse_id(kind, id, &host, &number) ? (uint16_t)host : 0;
}

int search_keep_forward(struct request *request, enum context_kind kind, struct slice id)
{
    return request_forward_to(request, search_keep_host(kind, id));
}

/* Requires: the lock is held. */
static struct search_keep *find_context(struct searches *searches, enum context_kind kind, struct slice id)
{
    list_for_each(link, &searches->contexts)
    {
        struct search_keep *keep = list_entry(link, struct search_keep, link);
        if (keep->kind == kind && slice_equal(keep->id, id))
            return keep;
    }
    return NULL;
}

bool search_keep_is_id(enum context_kind kind, struct slice id)
{
    uint64_t host, number;
    return parse_id(kind, id, &host, &number);
}

/* Returns: whether the keep-alive of a context is over, and no request reads in it: the table has one reference. */
static bool is_expired(const struct search_keep *keep, const void *what)
{
    return keep->references == 1 && keep->expires_us < *(const uint64_t *)what;
}

int search_keep_enter(struct searches *searches, enum context_kind kind, struct slice id, uint64_t keep_alive_us,
                      struct search_keep **ret_keep, uint64_t *ret_number)
{
    uint64_t host;
    if (!parse_id(kind, id, &host, ret_number))
        return CONTEXT_BAD_ID;
    uint64_t now = (uint64_t)search_clock_us();
    pthread_mutex_lock(&searches->lock);
    struct search_keep *keep = find_context(searches, kind, id);
    if (keep != NULL && is_expired(keep, &now))
        keep = NULL; /* the reaper has not come by yet */
    if (keep != NULL) {
        keep->references++;
        keep->keep_alive_us = keep_alive_us > 0 ? keep_alive_us : keep->keep_alive_us;
    }
    pthread_mutex_unlock(&searches->lock);
    if (keep == NULL)
        return CONTEXT_MISSING;
    if (kind == CONTEXT_SCROLL)
        pthread_mutex_lock(&keep->busy);
    *ret_keep = keep;
    return 0;
}

/* Requires: the lock is held. Counts the bytes of a context again, unless it is out of the table. */
static void count_context_bytes(struct searches *searches, struct search_keep *keep, size_t bytes)
{
    if (!keep->listed)
        return;
    searches->bytes = searches->bytes - keep->bytes + bytes;
    budget_tally(BUDGET_CONTEXTS, (ptrdiff_t)bytes - (ptrdiff_t)keep->bytes);
    keep->bytes = bytes;
}

void search_keep_leave(struct searches *searches, struct search_keep *keep)
{
    size_t bytes = bytes_of(keep);
    if (keep->kind == CONTEXT_SCROLL)
        pthread_mutex_unlock(&keep->busy);
    pthread_mutex_lock(&searches->lock);
    keep->expires_us = (uint64_t)search_clock_us() + keep->keep_alive_us;
    count_context_bytes(searches, keep, bytes);
    pthread_mutex_unlock(&searches->lock);
    search_keep_unref(searches, keep);
}

/* Takes out what `ends` says, and lets go of it once the lock is free. Returns: the shards they held. */
static size_t clear_contexts(struct searches *searches, bool (*ends)(const struct search_keep *keep, const void *what),
                             const void *what)
{
    struct list ended = LIST_INIT(ended);
    size_t shards = 0;
    pthread_mutex_lock(&searches->lock);
    list_for_each_safe(link, following, &searches->contexts)
    {
        struct search_keep *keep = list_entry(link, struct search_keep, link);
        if (ends(keep, what)) {
            take_out(searches, keep);
            list_append(&ended, &keep->link);
            shards += keep->call.shard_count > 0 ? keep->call.shard_count : 1;
        }
    }
    pthread_mutex_unlock(&searches->lock);
    list_for_each_safe(link, following, &ended)
    {
        list_remove(link);
        search_keep_unref(searches, list_entry(link, struct search_keep, link));
    }
    return shards;
}

struct named {
    enum context_kind kind;
    struct slice id;
};

static bool is_named(const struct search_keep *keep, const void *what)
{
    const struct named *named = what;
    return keep->kind == named->kind && (named->id.len == 0 || slice_equal(keep->id, named->id));
}

size_t search_keep_clear(struct searches *searches, enum context_kind kind, struct slice id)
{
    struct named named = {kind, id};
    return clear_contexts(searches, is_named, &named);
}

static bool is_any(const struct search_keep *keep, const void *what)
{
    (void)what;
    return keep != NULL;
}

/* --- Of transactions ---------------------------------------------------------------------------------------------- */

int search_keep_view(struct request *request, struct search_keep *keep)
{
    if (journal_pin(request->api->journal, request->view.ts) != 0)
        return SEARCH_TOO_OLD;
    keep->call.view = request->view;
    keep->call.catalog = catalog_ref(request->catalog);
    keep->transaction = arena_copy(&keep->arena, request->transaction);
    keep->overlay = tl_steal(request->overlay);
    return 0;
}

/* Returns: whether there is such a context; the id of the transaction that opened it, empty where none did. */
static bool find_owner(struct request *request, enum context_kind kind, struct slice id, struct slice *ret_transaction)
{
    struct searches *searches = request->api->searches;
    pthread_mutex_lock(&searches->lock);
    const struct search_keep *keep = find_context(searches, kind, id);
    bool found = keep != NULL;
    if (found)
        *ret_transaction = arena_copy(request->arena, keep->transaction);
    pthread_mutex_unlock(&searches->lock);
    return found;
}

static int owner_lives(struct request *request, struct command *command)
{
    core_overlay_unref(tl_steal(command->txn_lock.overlay));
    return request->next(request);
}

int search_keep_allow(struct request *request, enum context_kind kind, struct slice id, request_handler *then)
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
    struct searches *searches = user;
    pthread_mutex_lock(&searches->lock);
    while (!searches->stopping) {
        (void)clock_wait(&searches->wake, &searches->lock, clock_boot_us() + REAP_EVERY_US);
        pthread_mutex_unlock(&searches->lock);
        uint64_t now = (uint64_t)search_clock_us();
        clear_contexts(searches, is_expired, &now);
        tasks_beat(searches->tasks, now);
        searches->each_second(searches->api);
        pthread_mutex_lock(&searches->lock);
    }
    pthread_mutex_unlock(&searches->lock);
}

int searches_open(struct api *api, void (*each_second)(struct api *api), struct searches **ret_searches)
{
    struct searches *searches = mem_zalloc(sizeof *searches);
    searches->api = api;
    searches->each_second = each_second;
    searches->scripts = script_cache_new(SCRIPT_CACHE_COUNT_MAX, &api->options.script);
    searches->tasks = tasks_new(api);
    list_init(&searches->contexts);
    pthread_mutex_init(&searches->lock, NULL);
    pthread_mutex_init(&searches->script_lock, NULL);
    pthread_cond_init(&searches->wake, NULL);
    if (thread_start(&searches->reaper, "reaper", reaper_main, searches) != 0) {
        searches_close(searches);
        return TL_ERR_IO;
    }
    *ret_searches = searches;
    return 0;
}

void searches_close(struct searches *searches)
{
    if (searches == NULL)
        return;
    pthread_mutex_lock(&searches->lock);
    searches->stopping = true;
    pthread_cond_broadcast(&searches->wake);
    pthread_mutex_unlock(&searches->lock);
    thread_join(&searches->reaper); /* it looks at tasks, too */
    tasks_free(searches->tasks);
    clear_contexts(searches, is_any, NULL);
    script_cache_free(searches->scripts);
    pthread_cond_destroy(&searches->wake);
    pthread_mutex_destroy(&searches->script_lock);
    pthread_mutex_destroy(&searches->lock);
    mem_free(searches);
}

struct tasks *searches_tasks(struct searches *searches)
{
    return searches->tasks;
}

void searches_stop(struct searches *searches)
{
    pthread_mutex_lock(&searches->lock);
    searches->closed = true;
    pthread_mutex_unlock(&searches->lock);
    clear_contexts(searches, is_any, NULL);
    tasks_stop(searches->tasks, false);
}

void searches_cancel(struct searches *searches)
{
    atomic_store(&searches->cancelled, true);
    searches_stop(searches);
    tasks_stop(searches->tasks, true);
    tasks_wait(searches->tasks);
}

const atomic_bool *searches_cancelled(const struct searches *searches)
{
    return &searches->cancelled;
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

/* A time as TimeValue prints it: one digit after the point, truncated, of the largest unit that it fills. */
static const char *java_time(struct arena *arena, uint64_t us)
{
    static const struct {
        const char *name;
        uint64_t us;
    } units[] = {
        {"d", 86400 * TL_SECOND}, {"h", 3600 * TL_SECOND}, {"m", 60 * TL_SECOND}, {"s", TL_SECOND}, {"ms", TL_MS}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (us < units[i].us)
            continue;
        uint64_t tenths = us * 10 / units[i].us;
        return tenths % 10 == 0
                   ? arena_printf(arena, "%" PRIu64 "%s", tenths / 10, units[i].name).data
                   : arena_printf(arena, "%" PRIu64 ".%" PRIu64 "%s", tenths / 10, tenths % 10, units[i].name).data;
    }
    return arena_printf(arena, "%" PRIu64 "micros", us).data;
}

int search_keep_alive(struct request *request, struct slice text, const char *setting, uint64_t *ret_us)
{
    uint64_t limit = CONTEXT_KEEP_ALIVE_MAX_US;
    int64_t us = 0;
    *ret_us = CONTEXT_KEEP_ALIVE_US;
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
            request->dialect == DIALECT_5 ? "scroll" : "request", java_time(request->arena, *ret_us),
            java_time(request->arena, limit));
    return 0;
}

void search_keep_missing(struct request *request, enum context_kind kind, struct slice id, uint64_t number)
{
    struct problem *cause = arena_alloc(request->arena, sizeof *cause);
    bool gone = search_keep_host(kind, id) != journal_host_number(request->api->journal);
    problem_set(cause, request->arena, PROBLEM_SEARCH_CONTEXT_MISSING, "No search context found for id [%" PRIu64 "]%s",
                number, gone ? ": the host that had it is out of the cluster" : "");
    request_refuse(request, PROBLEM_SEARCH_PHASE_EXECUTION, "all shards failed");
    request->problem.status = 404;
    request->problem.caused_by = cause;
    problem_details(&request->problem, request->arena,
                    "\"phase\":\"query\",\"grouped\":true,\"failed_shards\":[{\"shard\":-1,\"index\":null,"
                    "\"reason\":{\"type\":\"%s\","
                    "\"reason\":\"%.*s\"}}]",
                    problem_name(cause->type), SLICE_ARG(cause->reason));
}

void search_keep_problem(struct request *request)
{
    struct problem problem = request->problem;
    problem_copy(&request->problem, &problem, request->arena);
}
