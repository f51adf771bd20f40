/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests: reading them, waiting for commands and workers, and settling them.
 */
#include "api/request/request.h"

#include <inttypes.h>
#include <stdarg.h>

#include "api/request/api_internal.h"
#include "api/request/as_of.h"
#include "api/request/awaited.h"
#include "api/request/catalog_growth.h"
#include "api/request/consistency.h"
#include "api/request/date_math_name.h"
#include "api/request/distribution.h"
#include "api/request/head_waits.h"
#include "api/request/instant.h"
#include "api/request/location.h"
#include "api/request/problem_reply.h"
#include "api/request/reply.h"
#include "api/request/access_log.h"
#include "api/request/request_budget.h"
#include "base/check.h"
#include "base/clock.h"
#include "core/catalog/catalog.h"
#include "metrics/traffic.h"

#define LOCK_TIMEOUT_DEFAULT_US (10 * TL_SECOND)

int request_refuse(struct request *request, enum problem_type type, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    request->problem = (struct problem){.type = type, .reason = arena_vprintf(request->arena, format, arguments)};
    va_end(arguments);
    return REQUEST_REFUSED;
}

int request_wrap(struct request *request, enum problem_type type, const char *reason)
{
    struct problem *cause = arena_alloc(request->arena, sizeof *cause);
    *cause = request->problem;
    int r = request_refuse(request, type, "%s", reason);
    request->problem.caused_by = cause;
    return r;
}

int request_refuse_stopping(struct request *request)
{
    return request_refuse(request, PROBLEM_STOPPING, "the server is stopping; try again later");
}

struct slice request_quoted(struct request *request, struct slice text)
{
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);
    buf_json_string(&quoted, text);
    struct slice kept = arena_copy(request->arena, buf_as_slice(&quoted));
    buf_deinit(&quoted);
    return kept;
}

/* --- Parameters and body ------------------------------------------------------------------------------------------ */

int request_bool(struct request *request, const char *name, bool *ret_value)
{
    return params_bool(&request->params, name, request->dialect, request->arena, ret_value, &request->problem) == 0
               ? 0
               : REQUEST_REFUSED;
}

int request_int(struct request *request, const char *name, int32_t *ret_value)
{
    return params_int(&request->params, name, request->arena, ret_value, &request->problem) == 0 ? 0 : REQUEST_REFUSED;
}

int request_long(struct request *request, const char *name, int64_t *ret_value)
{
    return params_long(&request->params, name, request->arena, ret_value, &request->problem) == 0 ? 0 : REQUEST_REFUSED;
}

int request_time(struct request *request, const char *name, int64_t *ret_value)
{
    return params_time(&request->params, name, request->dialect, request->arena, ret_value, &request->problem) == 0
               ? 0
               : REQUEST_REFUSED;
}

/* Refuses a `source` parameter, in place of a body, of a type that is no JSON. */
static int check_source(struct request *request)
{
    struct slice type = request_param(request, "source_content_type");
    if (request->exchange->body.len > 0 || request_param(request, "source").data == NULL)
        return 0;
    if (type.data == NULL && request->dialect == DIALECT_5)
        return 0; /* it looks at the bytes */
    if (type.data == NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_STATE, "source and source_content_type parameters are required");
    if (slice_starts_with(type, SLICE_LIT("application/json")) || slice_is(type, "json") ||
        slice_is(type, "application/x-ndjson"))
        return 0;
    if (request->dialect == DIALECT_5)
        return request_refuse(request, PROBLEM_ILLEGAL_STATE, "could not determine source content type");
    return request_refuse(request, PROBLEM_ILLEGAL_STATE, "Unknown value for source_content_type [%.*s]",
                          SLICE_ARG(type));
}

/* The row's parameters and the names of its paths' parts. */
static const char *accepted_names(struct request *request)
{
    struct buf names = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&names, slice_from(request->route->params));
    for (int part = 0; part < PART_COUNT; part++) {
        const char *name = route_parameter_name(request->api->routes, request->route, (enum route_part)part);
        if (name != NULL)
            buf_printf(&names, " %s", name);
    }
    struct slice kept = arena_copy(request->arena, buf_as_slice(&names));
    buf_deinit(&names);
    return kept.data;
}

int request_accept(struct request *request)
{
    if (request->params.count == 0)
        return 0;
    struct slice path = request->exchange->path;
    if (!params_known(&request->params, request->route->params) &&
        params_check(&request->params, accepted_names(request), path, request->arena, &request->problem) != 0)
        return REQUEST_REFUSED;
    bool may_be_body = request->route->form != FORM_NATIVE; /* in our own calls `source` is an ordinary parameter */
    return may_be_body && params_listed(request->route->params, "source") ? check_source(request) : 0;
}

struct slice request_body(const struct request *request)
{
    if (request->exchange->body.len > 0)
        return request->exchange->body;
    return request_param(request, "source");
}

int request_json(struct request *request, unsigned json_flags, struct json_doc *ret_doc)
{
    struct slice body = request_body(request);
    *ret_doc = (struct json_doc){NULL};
    if (body.len == 0)
        return 0;
    int r = json_parse(request->arena, body, request->dialect, json_flags, ret_doc, &request->problem);
    return r > 0 ? REQUEST_REFUSED : r;
}

int request_blank(struct request *request, const char *parser)
{
    struct slice body = request_body(request);
    if (request->dialect != DIALECT_7 || body.len == 0 || !location_is_blank(body))
        return 0;
    return request_refuse(request, PROBLEM_X_CONTENT_PARSE, "[1:0] [%s] Expected START_OBJECT but was: null", parser);
}

int request_first_json(struct request *request, struct json_doc *ret_doc)
{
    struct slice body = request_body(request);
    *ret_doc = (struct json_doc){NULL};
    if (body.len == 0)
        return 0;
    int r = json_parse(request->arena, request->dialect == DIALECT_7 ? location_first_value(body) : body,
                       request->dialect, 0, ret_doc, &request->problem);
    return r > 0 ? REQUEST_REFUSED : r;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

struct catalog *request_catalog(struct request *request)
{
    if (request->catalog == NULL)
        request->catalog = journal_catalog(request->api->journal);
    return request->catalog;
}

struct slice request_zones(struct request *request)
{
    if (request->zones == NULL)
        request->zones = journal_catalog(request->api->journal);
    return catalog_zones(request->zones);
}

/*
 * Longer lists of a body stay as they are: 256 KiB are a thousand names of 255 bytes. A placeholder has five bytes at
 * least, and takes about a microsecond.
 */
enum { DATE_NAMES_BYTES_MAX = 256 << 10, DATE_NAMES_STEPS = 50 /* of the account, for each byte */ };

int request_resolve_names(struct request *request, struct arena *arena, struct slice *io_names)
{
    struct slice names = *io_names;
    if (names.len > DATE_NAMES_BYTES_MAX || slice_find_byte(names, '<') == names.len)
        return 0;
    if (request_budget_stops(request, DATE_NAMES_STEPS * (uint64_t)names.len))
        return request_budget_refuse(request);
    int64_t millis = (int64_t)(clock_wall_us() / TL_MS);
    int r = date_math_name_resolve(arena, names, millis, request_zones(request), io_names, &request->problem);
    return r == 0 ? 0 : REQUEST_REFUSED;
}

/* The timestamp that ?timestamp= or ?as_of= names. Returns: 0, with 0 if it is absent; REQUEST_REFUSED. */
static int named_timestamp(struct request *request, tl_ts *ret_ts)
{
    uint64_t ts = 0;
    struct slice text = request_param(request, "timestamp");
    struct slice time = request_param(request, "as_of");
    if (text.data != NULL && (!slice_to_u64(text, &ts) || ts == 0 || ts > TL_TS_MAX))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[timestamp] must be a number of microseconds since 1970, got [%.*s]%s", SLICE_ARG(text),
                              instant_parse(text, &ts) == 0 ? "; [as_of] takes a time" : "");
    if (time.data != NULL && instant_parse(time, &ts) != 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[as_of] must be a time such as 2026-11-20T10:00:00Z, got [%.*s]%s", SLICE_ARG(time),
                              slice_to_u64(time, &ts) ? "; [timestamp] takes microseconds" : "");
    *ret_ts = ts;
    return 0;
}

/* Of a number that would be a time of today in a unit of `unit_us` microseconds: a slip. */
static bool is_recent_in(struct journal *journal, tl_ts ts, uint64_t unit_us)
{
    const uint64_t year_us = 365 * 86400 * TL_SECOND;
    tl_ts now = journal_stable(journal);
    return ts <= TL_TS_MAX / unit_us && ts * unit_us + year_us > now && ts * unit_us < now + year_us;
}

/* The hint for a timestamp in another unit of time. */
static const char *unit_advice(struct journal *journal, tl_ts ts)
{
    if (is_recent_in(journal, ts, TL_SECOND))
        return "; it looks like seconds, and timestamps are microseconds";
    if (is_recent_in(journal, ts, TL_MS))
        return "; it looks like milliseconds, and timestamps are microseconds";
    return "";
}

static int too_old(struct request *request, tl_ts ts)
{
    tl_ts oldest = journal_oldest(request->api->journal);
    int r = request_refuse(request, PROBLEM_TIMESTAMP_TOO_OLD,
                           "the history before [%" PRIu64 "] is gone; asked for [%" PRIu64 "]%s", oldest, ts,
                           unit_advice(request->api->journal, ts));
    problem_details(&request->problem, request->arena, "\"oldest\":%" PRIu64, oldest);
    return r;
}

int request_check_timestamp(struct request *request, tl_ts ts)
{
    tl_ts stable = journal_stable(request->api->journal);
    if (ts > stable)
        return request_refuse(request, PROBLEM_TIMESTAMP_TOO_NEW,
                              "[%" PRIu64 "] is in the future; the newest readable timestamp is [%" PRIu64 "]", ts,
                              stable);
    return ts < journal_oldest(request->api->journal) ? too_old(request, ts) : 0;
}

/* Gets the catalog as of the view. Returns: as catalog_load(). */
static int load_catalog(struct request *request)
{
    catalog_unref(tl_steal(request->catalog));
    request->catalog = journal_catalog_at(request->api->journal, request->view.ts);
    return request->catalog != NULL ? 0 : catalog_load(&request->view, &request->catalog);
}

static void unpin_request(struct request *request)
{
    if (request->pinned_ts != 0)
        journal_unpin(request->api->journal, request->pinned_ts);
    request->pinned_ts = 0;
}

void request_set_view(struct request *request, struct view view)
{
    unpin_request(request);
    request->view = view;
    request->reads_past = false;
}

void request_set_stable_view(struct request *request)
{
    request_set_view(request, (struct view){request->api->store, journal_stable(request->api->journal), NULL});
}

static int read_past(struct request *request, tl_ts ts, request_handler *then);

/* The timestamp that the read names is stable now. */
static int read_awaited(struct request *request)
{
    tl_ts ts = 0;
    int r = named_timestamp(request, &ts);
    return r != 0 ? r : read_past(request, ts, request->reader);
}

/*
 * Makes a view of the past. Its catalog is that of the same timestamp. In a cluster, another host may
 * have a newer timestamp than this one, which waits for it.
 */
static int read_past(struct request *request, tl_ts ts, request_handler *then)
{
    if (journal_host_number(request->api->journal) != 0 && ts > journal_stable(request->api->journal)) {
        request->reader = then;
        return awaited_timestamp(request, ts, read_awaited);
    }
    int r = request_check_timestamp(request, ts);
    if (r != 0)
        return r;
    if (journal_pin(request->api->journal, ts) != 0)
        return too_old(request, ts);
    request_set_view(request, (struct view){request->api->store, ts, NULL});
    request->pinned_ts = ts;
    request->reads_past = true;
    r = load_catalog(request);
    if (r > 0)
        return too_old(request, ts);
    return r < 0 ? r : then(request);
}

/* Reads in a query transaction. Its history is kept as long as the request has it. */
static int read_query(struct request *request, request_handler *then)
{
    tl_ts ts = journal_query_txn_ts(request->query);
    if (journal_query_txn_check_session(request->query, request->session, request->arena, &request->problem) != 0)
        return REQUEST_REFUSED;
    request_set_view(request, (struct view){request->api->store, ts, NULL});
    catalog_unref(tl_steal(request->catalog));
    int r = journal_query_txn_catalog(request->api->journal, request->query, &request->catalog);
    if (r > 0)
        return too_old(request, ts);
    return r < 0 ? r : then(request);
}

static int read_locked(struct request *request, struct command *command);

/* Acquires the locks of a read, or of the first of its targets that no earlier command has locked. */
static int lock_reads(struct request *request, uint64_t timeout_us)
{
    struct command *command = command_new(COMMAND_TXN_LOCK, request->dialect);
    command->owner = request_terms(request, timeout_us < INT64_MAX ? (int64_t)timeout_us : INT64_MAX);
    command->owner.transaction = arena_copy(&command->arena, request->transaction);
    command->owner.session = arena_copy(&command->arena, request->session);
    command->txn_lock.targets = request->reads.targets;
    command->txn_lock.target_count = request->reads.named;
    return request_submit(request, command, read_locked);
}

/* Locks of a read inside a transaction are granted: all of them, or the others are requested. */
static int read_locked(struct request *request, struct command *command)
{
    if (divided_targets_advance(&request->reads, command->txn_lock.done)) {
        core_overlay_unref(tl_steal(command->txn_lock.overlay));
        return lock_reads(request, divided_wait_left(request->reads_until_us));
    }
    catalog_unref(tl_steal(request->catalog)); /* of before the locks */
    request_set_view(request, (struct view){request->api->store, command->txn_lock.read_ts, command->txn_lock.overlay});
    request->overlay = command->txn_lock.overlay;
    command->txn_lock.overlay = NULL;
    request_catalog(request);
    return request->next(request);
}

int request_read_in_transaction(struct request *request, struct lock_target *targets, size_t target_count,
                                uint64_t wait_us, request_handler *then)
{
    request->next = then;
    request->reads = divided_targets_of(targets, target_count);
    request->reads_until_us = divided_wait_end(wait_us);
    return lock_reads(request, wait_us);
}

/*
 * A read outside of transactions has no use for a session; but a client that names an ended one
 * relies on locks that it has lost.
 */
static int check_session(struct request *request)
{
    if (request->session.len == 0 || request->transaction.len > 0)
        return 0;
    int r = core_find_session(request->api->store, request->session, request->arena, &request->problem);
    return r > 0 ? REQUEST_REFUSED : r;
}

static int read_present(struct request *request, request_handler *then)
{
    request_set_stable_view(request);
    request_catalog(request);
    return then(request);
}

/* This host has everything that was acknowledged before the read. */
static int read_caught_up(struct request *request)
{
    catalog_unref(tl_steal(request->catalog)); /* of before the wait */
    return read_present(request, request->reader);
}

bool request_must_catch_up(struct request *request)
{
    return consistency_is_contemporaneous(request) || head_waits_is_looking_up(request->api->head_waits);
}

int request_read(struct request *request, struct lock_target *targets, size_t target_count, request_handler *then)
{
    tl_ts ts = 0;
    int64_t timeout = LOCK_TIMEOUT_DEFAULT_US;
    int r = named_timestamp(request, &ts);
    if (r != 0 || (r = request_time(request, "timeout", &timeout)) != 0 || (r = check_session(request)) != 0)
        return r;
    if (request->transaction.len > 0 && ts != 0)
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "a transaction reads at its own timestamp: [timestamp] and [as_of] are not allowed with it");
    if (request->query != NULL)
        return read_query(request, then);
    if (request->transaction.len > 0)
        return request_read_in_transaction(request, targets, target_count, timeout < 0 ? 0 : (uint64_t)timeout, then);
    if (ts != 0)
        return read_past(request, ts, then);
    if (!request_must_catch_up(request))
        return read_present(request, then);
    request->reader = then;
    return head_waits_add(request, read_caught_up);
}

/* --- Commands ----------------------------------------------------------------------------------------------------- */

/* A submitted command's way back; in the command's arena. */
struct command_submission {
    struct request *request;
    request_completion *then;
    bool takes_refusals;
};

void request_start_timer(struct request *request)
{
    struct account *account = &request->account;
    uint64_t time_us = request->api->options.request_us;
    if (account->clock_us != NULL)
        account->deadline_us = time_us == 0 ? 0 : account->clock_us() + time_us;
}

static void command_done(struct command *command)
{
    struct command_submission *submission = command->context;
    struct request *request = submission->request;
    journal_waiter_completed(&request->waiter);
    growth_promise_end(&request->growth);
    request_start_timer(request);
    request->exchange->timestamp = command->ts;
    distribution_record(request, command);
    int result;
    if (command->problem.type == PROBLEM_NONE || submission->takes_refusals) {
        result = submission->then(request, command);
        if (result == REQUEST_PENDING) {
            command_free(command);
            return;
        }
    } else {
        request->problem = command->problem;
        result = REQUEST_REFUSED;
    }
    request_finish(request, result);
    command_free(command);
}

/*
 * The client is gone. Runs on the thread that noticed it, while another thread may have the
 * request, and uses only the fields that request.h allows.
 */
static void request_disconnected(struct exchange *exchange)
{
    struct request *request = exchange->api_context;
    atomic_store(&request->abandoned, true);
    journal_cancel_waiter(request->api->journal, &request->waiter);
}

struct command_owner request_terms(const struct request *request, int64_t timeout_us)
{
    return (struct command_owner){
        .session = request->session,
        .transaction = request->transaction,
        .fencing_token = request->fencing_token,
        .timeout_us = timeout_us < 0 ? 0 : (uint64_t)timeout_us,
    };
}

/* A change of an index waits for locks, and passes those of the session that the request names. */
static void fill_change(struct request *request, struct command *command)
{
    int64_t timeout = LOCK_TIMEOUT_DEFAULT_US;
    if (request_time(request, "timeout", &timeout) != 0) /* the handler has looked at it */
        return;
    command->owner = request_terms(request, timeout);
    command->owner.session = arena_copy(&command->arena, request->session);
    command->owner.transaction = SLICE_NONE;
}

/* A change is made now. The [timestamp] of 5.x is another thing, of which nothing was kept there either. */
static bool changes_the_past(const struct request *request)
{
    return request_param(request, "as_of").data != NULL ||
           (request->dialect != DIALECT_5 && request_param(request, "timestamp").data != NULL);
}

/* Whether it leaves everything as it is, but for locks that its transaction or session gives back. */
static bool only_reads(const struct command *command)
{
    return command->type == COMMAND_TXN_LOCK || command->type == COMMAND_PLACES_WATCH ||
           command_is(command->type, COMMAND_UNLOGGED);
}

/* Returns: the bytes that the step of a command parses to change the catalog. */
static size_t catalog_bytes(const struct command *command)
{
    size_t bytes = 0;
    switch (command->type) {
    case COMMAND_INDEX_CREATE:
    case COMMAND_MAPPING_PUT:
    case COMMAND_SETTINGS_PUT: return command->index.body.len;
    case COMMAND_TEMPLATE_PUT:
    case COMMAND_INDEX_TEMPLATE_PUT:
    case COMMAND_COMPONENT_PUT:
    case COMMAND_SCRIPT_PUT:
    case COMMAND_CLUSTER_SETTINGS_PUT:
    case COMMAND_COPY_REPORT: return command->object.body.len;
    case COMMAND_ALIASES_UPDATE: break;
    default: return 0;
    }
    for (size_t i = 0; i < command->aliases.action_count; i++)
        bytes += command->aliases.actions[i].body.len;
    return bytes;
}

static int submit_command(struct request *request, struct command *command, struct command_submission how)
{
    if (catalog_bytes(command) > CATALOG_REQUEST_BYTES_MAX) {
        command_free(command);
        return request_refuse(request, PROBLEM_CONTENT_TOO_LARGE,
                              "a request that changes indices, aliases, templates, scripts or settings has at most "
                              "[%d] bytes, since all others wait while it is carried out",
                              CATALOG_REQUEST_BYTES_MAX);
    }
    if (request_budget_refused(request)) {
        command_free(command);
        return request_budget_refuse(request);
    }
    if (catalog_growth_reserve(request, command) != 0) {
        command_free(command);
        return REQUEST_REFUSED;
    }
    if (changes_the_past(request) && !command_is(command->type, COMMAND_UNLOGGED)) {
        command_free(command);
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[timestamp] and [as_of] are parameters of reads: the past cannot be changed");
    }
    if (command_is(command->type, COMMAND_DDL))
        fill_change(request, command);
    if (!only_reads(command))
        request_budget_committed(request);
    struct command_submission *submission = arena_alloc(&command->arena, sizeof *submission);
    *submission = how;
    command->context = submission;
    command->on_done = command_done;
    command->waiter = &request->waiter;
    /*
     * The completion runs on a thread that others wait for. It may not block, either: a request of many
     * commands would be carried out within its first completion, on its stack, before the others of that
     * group are answered.
     */
    bool may_block = request->exchange->may_block;
    request->on_worker = request->exchange->may_block = false;
    request_watch(request);
    journal_submit(request->api->journal, command, may_block);
    return REQUEST_PENDING;
}

int request_submit(struct request *request, struct command *command, request_completion *then)
{
    return submit_command(request, command, (struct command_submission){request, then, false});
}

int request_submit_all(struct request *request, struct command *command, request_completion *then)
{
    return submit_command(request, command, (struct command_submission){request, then, true});
}

/* A thread that waits for its command. */
struct asking {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool done;
};

static void asking_done(struct command *command)
{
    struct asking *asking = command->context;
    pthread_mutex_lock(&asking->lock);
    asking->done = true;
    pthread_cond_signal(&asking->wake);
    pthread_mutex_unlock(&asking->lock);
}

void request_ask(struct api *api, struct command *command)
{
    struct asking asking = {.done = false};
    pthread_mutex_init(&asking.lock, NULL);
    pthread_cond_init(&asking.wake, NULL);
    command->on_done = asking_done;
    command->context = &asking;
    journal_submit(api->journal, command, false);
    pthread_mutex_lock(&asking.lock);
    while (!asking.done)
        pthread_cond_wait(&asking.wake, &asking.lock);
    pthread_mutex_unlock(&asking.lock);
    if (command->waiter != NULL)
        journal_waiter_completed(command->waiter);
    pthread_cond_destroy(&asking.wake);
    pthread_mutex_destroy(&asking.lock);
}

/*
 * A read on a worker may take longer than the history is kept: a pin keeps it until the request is
 * over. A point in time, a scroll and a transaction have pins of their own.
 */
static void pin_view(struct request *request)
{
    REQUIRE(request->pinned_ts == 0 || request->pinned_ts == request->view.ts); /* request_set_view() */
    if (request->pinned_ts != 0 || request->view.ts == 0 || request->overlay != NULL || request->query != NULL)
        return;
    if (journal_pin(request->api->journal, request->view.ts) == 0)
        request->pinned_ts = request->view.ts;
}

void request_look_away(struct request *request)
{
    catalog_unref(tl_steal(request->catalog));
    request_set_view(request, (struct view){request->api->store, 0, NULL});
}

void request_look_again(struct request *request)
{
    request_look_away(request);
    request_set_stable_view(request);
    request_catalog(request);
    pin_view(request);
    request_start_timer(request);
}

static int give_to_worker(struct request *request, request_handler *then, enum work_kind kind)
{
    pin_view(request);
    request->next = then;
    request_watch(request);
    workers_add(request->api->workers, request, kind);
    return REQUEST_PENDING;
}

void request_watch(struct request *request)
{
    request->exchange->on_disconnect = request_disconnected;
}

int request_park(struct request *request)
{
    request_watch(request);
    return REQUEST_PENDING;
}

int request_work(struct request *request, request_handler *then)
{
    return give_to_worker(request, then, WORK_LONG);
}

int request_work_short(struct request *request, request_handler *then)
{
    return give_to_worker(request, then, WORK_SHORT);
}

/* --- Settling ----------------------------------------------------------------------------------------------------- */

void request_own(struct request *request, void (*give_back)(struct request *request, void *made), void *made)
{
    REQUIRE(request->give_back == NULL);
    request->give_back = give_back;
    request->made = made;
}

void request_pass_on(struct request *request)
{
    REQUIRE(request->give_back != NULL);
    request->give_back = NULL;
}

static void request_release(struct request *request)
{
    if (request->give_back != NULL)
        request->give_back(request, request->made);
    request->give_back = NULL;
    catalog_unref(tl_steal(request->catalog));
    catalog_unref(tl_steal(request->zones));
    core_overlay_unref(tl_steal(request->overlay));
    unpin_request(request);
    if (request->query != NULL)
        journal_query_txn_release(request->api->journal, tl_steal(request->query));
    request_budget_end(request);
}

void request_end_stream(struct request *request)
{
    request_release(request);
    request->exchange->ops->stream_close(request->exchange);
}

static int request_enter_handler(struct request *request)
{
    request_start_timer(request);
    return as_of_handle(request);
}

/* The answer is there, and is laid out and sent. */
static int finish_on_worker(struct request *request)
{
    (void)request;
    return REQUEST_DONE;
}

void request_count(const struct request *request)
{
    traffic_record(request->api->traffic, route_line(request->route, request->exchange->method),
                   request->exchange->status, clock_boot_us() - request->begun_us);
}

/* Writes may read a view, too, but their effects are ordered by the log. */
static bool shows_what_it_read(const struct exchange *exchange)
{
    static const char *const reads[] = {"_search", "_search/scroll", "_msearch", "_count", "_mget"};
    struct slice path = exchange->path;
    for (size_t i = 0; exchange->method == HTTP_POST && i < sizeof reads / sizeof *reads; i++) {
        size_t len = strlen(reads[i]);
        if (path.len >= len && slice_is(slice_from_offset(path, path.len - len), reads[i]))
            return true;
    }
    return exchange->method == HTTP_GET || exchange->method == HTTP_HEAD;
}

/* Returns: whether it read the present state of this host, and not that of a timestamp or a transaction. */
static bool reads_present(const struct request *request)
{
    return (request->view.ts != 0 || request->catalog != NULL) && !request->reads_past && request->query == NULL;
}

/* Returns: whether it found nothing where a write that another host has answered may not be here yet. */
static bool is_miss(const struct request *request)
{
    const struct exchange *exchange = request->exchange;
    return request->api->head_waits != NULL && (exchange->status == 404 || request->found_nothing) &&
           reads_present(request) && shows_what_it_read(exchange) && consistency_is_fast(request->api);
}

/*
 * Whether this host holds its lease is checked after the view was taken, not before: without it, newer writes may have
 * been acknowledged elsewhere. The state at a timestamp, and so that of a query transaction, a scroll and a point in
 * time, is final when this host has applied it. The last two have no view in the request.
 */
static bool may_show(const struct request *request)
{
    const struct exchange *exchange = request->exchange;
    if ((request->view.ts == 0 && exchange->timestamp == 0) || !shows_what_it_read(exchange))
        return true;
    bool present = request->view.ts != 0 && reads_present(request);
    return present ? journal_serves(request->api->journal) : journal_serves_past(request->api->journal);
}

void request_finish(struct request *request, int result)
{
    if (result == REQUEST_PENDING)
        return;
    struct api *api = request->api;
    if (result == REQUEST_DONE && !may_show(request))
        result =
            request_refuse(request, PROBLEM_LOG_UNAVAILABLE,
                           "this host is out of the cluster, or about to be: its data may be stale; ask another host");
    if (result == REQUEST_DONE && distribution_hold(request))
        return;
    if (result < 0)
        problem_from_code(&request->problem, request->arena, result);
    if (result < 0 || result == REQUEST_REFUSED)
        problem_reply(request, &request->problem);
    if (is_miss(request))
        head_waits_missed(api->head_waits);
    if (!request->on_worker && reply_takes_long(request)) {
        struct problem problem = request->problem; /* may be of a command that is soon gone */
        problem_copy(&request->problem, &problem, request->arena);
        int pending = request_work_short(request, finish_on_worker);
        INSIST(pending == REQUEST_PENDING);
        return;
    }
    reply_finish(request);
    request_count(request);
    access_log_request(request);
    if (request->exchange->timestamp == 0)
        request->exchange->timestamp = request->view.ts != 0 ? request->view.ts : journal_stable(api->journal);
    request_release(request);
    struct request *following = txn_queue_leave(api->txn_queue, request);
    exchange_respond(request->exchange);
    if (following != NULL) { /* on a worker, so that a long queue does not nest */
        following->next = request_enter_handler;
        workers_add(api->workers, following, WORK_SHORT);
    }
}
