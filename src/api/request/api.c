/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The api: from an exchange to a request, its route and its handler.
 */
#include "api/request/api.h"

#include "api/request/api_internal.h"
#include "api/request/as_of.h"
#include "api/request/awaited.h"
#include "api/cluster/cluster_uuid.h"
#include "api/cluster/hosts.h"
#include "api/cluster/log_settings.h"
#include "api/cluster/zones.h"
#include "api/request/consistency.h"
#include "api/request/dialect.h"
#include "api/request/distribution.h"
#include "api/request/forward.h"
#include "api/request/handlers.h"
#include "api/request/head_waits.h"
#include "api/request/media.h"
#include "api/request/native_path.h"
#include "api/request/nodes.h"
#include "api/request/problem_reply.h"
#include "api/request/reply.h"
#include "api/request/request_budget.h"
#include "api/request/request_name.h"
#include "api/page/events.h"
#include "api/request/followers.h"
#include "api/search/search_service.h"
#include "api/request/unsupported_api.h"
#include "api/request/url.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "metrics/traffic.h"

#define WORKER_COUNT_DEFAULT 2
#define BODY_BYTES_MAX_DEFAULT ((size_t)100 << 20)

/* --- Life --------------------------------------------------------------------------------------------------------- */

static struct slice keep_option(struct slice given, const char *otherwise)
{
    return mem_dup_slice(given.len > 0 ? given : slice_from(otherwise));
}

static void options_init(struct api_options *options, const struct api_options *given)
{
    *options = *given;
    options->cluster_name = keep_option(given->cluster_name, "tidelock");
    options->node_name = keep_option(given->node_name, "tidelock-0");
    options->data_directory = keep_option(given->data_directory, "");
    options->backups = keep_option(given->backups, "");
    if (options->worker_count == 0)
        options->worker_count = WORKER_COUNT_DEFAULT;
    if (options->body_bytes_max == 0)
        options->body_bytes_max = BODY_BYTES_MAX_DEFAULT;
    if (options->script.steps_max == 0)
        options->script = SCRIPT_LIMITS_DEFAULT;
}

static void options_deinit(struct api_options *options)
{
    mem_free((void *)(uintptr_t)options->cluster_name.data);
    mem_free((void *)(uintptr_t)options->node_name.data);
    mem_free((void *)(uintptr_t)options->data_directory.data);
    mem_free((void *)(uintptr_t)options->backups.data);
}

static void drop_unused(struct api *api)
{
    if (journal_host_number(api->journal) != 0)
        hosts_drop_unused_checkpoints(api->options.data_directory);
}

int api_open(struct journal *journal, struct store *store, const struct api_options *options, struct api **ret_api)
{
    struct api *api = mem_zalloc(sizeof *api);
    if (id_source_init(&api->ids) != 0) {
        mem_free(api);
        return tl_trace(TL_ERR_IO);
    }
    api->journal = journal;
    api->store = store;
    options_init(&api->options, options);
    int r = cluster_uuid_fetch(journal, &api->ids, api->cluster_uuid);
    if (r != 0) {
        options_deinit(&api->options);
        id_source_deinit(&api->ids);
        mem_free(api);
        return tl_trace(r);
    }
    nodes_own_id(journal, api->node_id);
    log_settings_apply(journal);
    if (options->zoneinfo.len > 0)
        zones_offer(journal, options->zoneinfo);
    api->routes = route_table_new();
    api->growth = growth_table_new();
    api->txn_queue = txn_queue_new();
    api->consistency = consistency_open(journal);
    api->traffic = traffic_new(route_line_count());
    api->started_us = clock_wall_us();
    api->locks_from = journal_stable(journal);
    r = workers_open(api->options.worker_count, &api->workers);
    if (r == 0)
        r = search_service_open(api, drop_unused, &api->search_service);
    if (r == 0)
        r = attachments_open(journal, &api->attachments);
    if (r == 0)
        r = followers_open(journal, &api->followers);
    if (r == 0 && journal_host_number(journal) != 0)
        r = head_waits_open(journal, &api->head_waits);
    if (r == 0 && journal_host_number(journal) != 0)
        r = distribution_open(api, &api->distribution);
    if (r == 0)
        r = events_open(api, &api->events);
    if (r == 0 && api->options.data_directory.len > 0)
        r = file_scripts_open(journal, api->options.data_directory, &api->file_scripts);
    if (r != 0) {
        api_close(api);
        return tl_trace(r);
    }
    *ret_api = api;
    return 0;
}

void api_stop(struct api *api)
{
    journal_end_waits(api->journal); /* no request can release a lock any more */
    attachments_stop(api->attachments);
    followers_stop(api->followers);
    head_waits_stop(api->head_waits);
    distribution_stop(api->distribution);
    events_stop(api->events);
    search_service_stop(api->search_service);
}

void api_beat(struct api *api)
{
    attachments_beat(api->attachments);
}

void api_cancel(struct api *api)
{
    store_compact_cancel(api->store);
    search_service_cancel(api->search_service);
}

bool api_settled(struct api *api, uint64_t us)
{
    return search_service_settled(api->search_service, clock_boot_us() + us);
}

void api_close(struct api *api)
{
    if (api == NULL)
        return;
    attachments_close(api->attachments);
    followers_close(api->followers);
    head_waits_close(api->head_waits);
    distribution_close(api->distribution);
    events_close(api->events);
    file_scripts_close(api->file_scripts);
    workers_close(api->workers);
    search_service_close(api->search_service);
    txn_queue_free(api->txn_queue);
    growth_table_free(api->growth);
    consistency_close(api->consistency);
    route_table_free(api->routes);
    traffic_free(api->traffic);
    id_source_deinit(&api->ids);
    options_deinit(&api->options);
    mem_free(api);
}

/* --- Which call it is --------------------------------------------------------------------------------------------- */

/* In the order in which a client of Elasticsearch may have seen them. */
static struct slice method_list(struct request *request, unsigned methods, const char *between)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"};
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (methods & (1u << i))
            buf_printf(&text, "%s%s", text.len > 0 ? between : "", names[i]);
    struct slice kept = arena_copy(request->arena, buf_as_slice(&text));
    buf_deinit(&text);
    return kept;
}

static struct slice uri_of(const struct exchange *exchange, struct arena *arena)
{
    if (exchange->query.data == NULL)
        return exchange->path;
    return arena_printf(arena, "%.*s?%.*s", SLICE_ARG(exchange->path), SLICE_ARG(exchange->query));
}

static bool method_is_known(struct slice name)
{
    return slice_is(name, "PATCH") || slice_is(name, "TRACE") || slice_is(name, "CONNECT");
}

static int refuse_by_name(struct request *request, struct slice name)
{
    return request_refuse(
        request, PROBLEM_ILLEGAL_ARGUMENT,
        "Elasticsearch's API [%.*s] is not supported by this server, see docs/http-api.md for those that are",
        SLICE_ARG(name));
}

/* Returns: 0 where the path is of no API that only Elasticsearch has; REQUEST_REFUSED. */
static int refuse_absent(struct request *request)
{
    struct slice name;
    if (request->exchange->method == HTTP_OPTIONS || !unsupported_api_find(request->exchange->path, &name))
        return 0;
    return refuse_by_name(request, name);
}

/* Whether the path is one segment that begins with an underscore: no index, though a route of indices matches it. */
static bool names_no_index(struct slice path)
{
    return slice_starts_with(path, SLICE_LIT("/_")) && slice_find_byte(slice_from_offset(path, 1), '/') == path.len - 1;
}

int handle_absent(struct request *request)
{
    struct slice pattern = slice_from(request->route->pattern), below = SLICE_LIT("/{index}/{type}/");
    return refuse_by_name(request, slice_from_offset(pattern, slice_starts_with(pattern, below) ? below.len : 1));
}

int api_wrong_method(struct request *request, unsigned methods, struct slice bad_escape)
{
    struct exchange *exchange = request->exchange;
    int r = refuse_absent(request);
    if (r != 0)
        return r;
    reply_header(request, "Allow", method_list(request, methods, ","));
    struct slice allowed = method_list(request, methods, ", ");
    if (exchange->method == HTTP_OPTIONS) {
        request->form.bare = true;
        exchange->content_type = "text/plain; charset=UTF-8";
        reply_empty(request, 200);
        return REQUEST_ANSWERED;
    }
    struct slice text;
    if (bad_escape.data != NULL)
        text = bad_escape;
    else if (exchange->method == HTTP_OTHER && !method_is_known(exchange->method_name))
        text = arena_printf(request->arena, "Unexpected http method: %.*s", SLICE_ARG(exchange->method_name));
    else
        text = arena_printf(request->arena, "Incorrect HTTP method for uri [%.*s] and method [%.*s]",
                            SLICE_ARG(uri_of(exchange, request->arena)), SLICE_ARG(exchange->method_name));
    problem_reply_text(request, 405,
                       arena_printf(request->arena, "%.*s, allowed: [%s]%.*s", SLICE_ARG(text), allowed.data,
                                    SLICE_ARG(native_path_suggest(request))),
                       true);
    return REQUEST_ANSWERED;
}

static int reply_no_handler(struct request *request)
{
    struct exchange *exchange = request->exchange;
    struct slice uri = uri_of(exchange, request->arena);
    int r = refuse_absent(request);
    if (r != 0)
        return r;
    if (request->dialect == DIALECT_5) {
        struct buf *text = reply_text(request, 400);
        buf_printf(text, "No handler found for uri [%.*s] and method [%.*s]%.*s", SLICE_ARG(uri),
                   SLICE_ARG(exchange->method_name), SLICE_ARG(native_path_suggest(request)));
        return REQUEST_ANSWERED;
    }
    if (exchange->method == HTTP_OPTIONS)
        return api_wrong_method(request, 0, SLICE_NONE);
    problem_reply_text(request, 400,
                       arena_printf(request->arena, "no handler found for uri [%.*s] and method [%.*s]%.*s",
                                    SLICE_ARG(uri), SLICE_ARG(exchange->method_name),
                                    SLICE_ARG(native_path_suggest(request))),
                       false);
    return REQUEST_ANSWERED;
}

/* --- Reading the request ------------------------------------------------------------------------------------------ */

static const struct slice no_parts[PART_COUNT];

static bool has_parts(const struct route_match *match)
{
    for (int part = 0; part < PART_COUNT; part++)
        if (match->parts[part].data != NULL)
            return true;
    return false;
}

/* Parts that other paths of the call have may be parameters: /_search?index=a is /a/_search. */
static void take_parameters(struct request *request)
{
    for (int part = 0; part < PART_COUNT && request->params.count > 0; part++) {
        const char *name = route_parameter_name(request->api->routes, request->route, (enum route_part)part);
        struct slice value = name != NULL ? params_get(&request->params, name) : SLICE_NONE;
        if (value.data == NULL || request->parts[part].data != NULL)
            continue;
        struct slice *parts = arena_alloc(request->arena, PART_COUNT * sizeof *parts);
        memcpy(parts, request->parts, PART_COUNT * sizeof *parts);
        parts[part] = value;
        request->parts = parts;
    }
}

/* A request without any, as one that waits for a lock, has no list of its own either. */
static int decode_parts(struct request *request, const struct route_match *match)
{
    struct slice reason;
    bool plus_is_space = request->dialect == DIALECT_5;
    request->parts = no_parts;
    take_parameters(request);
    if (!has_parts(match))
        return 0;
    struct slice *parts = arena_alloc(request->arena, PART_COUNT * sizeof *parts);
    memcpy(parts, request->parts, PART_COUNT * sizeof *parts);
    request->parts = parts;
    for (int part = 0; part < PART_COUNT; part++)
        if (match->parts[part].data != NULL &&
            url_decode(request->arena, match->parts[part], plus_is_space, &parts[part], &reason) != 0) {
            if (request->dialect == DIALECT_5)
                return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(reason));
            return api_wrong_method(request, match->methods, reason);
        }
    return 0;
}

/*
 * Returns: the index that a path names, by which its dialect is decided: "<logs-{now/d}>" is that of today. An
 * expression that is no date refuses the request later.
 */
static struct slice dated_name(struct request *request, struct slice name)
{
    struct slice resolved = name;
    if (request_resolve_names(request, request->arena, &resolved) == 0)
        return resolved;
    request->problem = (struct problem){.type = PROBLEM_NONE};
    return name;
}

/* "<logs-{now/d}>" in the place of an index is a name with a date in it. */
static int resolve_date_names(struct request *request)
{
    struct slice index = request->parts[PART_INDEX];
    if (index.data == NULL || slice_find_byte(index, '<') == index.len)
        return 0;
    struct slice *parts = arena_alloc(request->arena, PART_COUNT * sizeof *parts);
    memcpy(parts, request->parts, PART_COUNT * sizeof *parts);
    request->parts = parts;
    return request_resolve_names(request, request->arena, &parts[PART_INDEX]);
}

static int read_form(struct request *request)
{
    struct reply_form *form = &request->form;
    int r;
    if ((r = request_bool(request, "human", &form->human)) != 0 ||
        (r = request_bool(request, "error_trace", &form->error_trace)) != 0 ||
        (r = request_bool(request, "pretty", &form->pretty)) != 0)
        return r;
    form->filter_path = request_param(request, "filter_path");
    struct slice format = request_param(request, "format");
    if (format.len > 0)
        form->yaml = slice_is(format, "yaml") || slice_is(format, "application/yaml");
    return 0;
}

/*
 * An owner by a parameter, else by a header. An empty one is an error of the client, not the
 * absence of an owner: what must happen under a lock or in a transaction must not happen outside of
 * it.
 */
static int read_named(struct request *request, const char *name, const char *header, struct slice *ret_id)
{
    struct slice id = request_param(request, name);
    if (id.data == NULL)
        id = exchange_header(request->exchange, header);
    if (id.data != NULL && id.len == 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[%s] must not be empty", name);
    *ret_id = id;
    return 0;
}

static int read_token(struct request *request)
{
    struct slice token = request_param(request, "fencing_token");
    if (token.data == NULL || (slice_to_u64(token, &request->fencing_token) && request->fencing_token > 0))
        return 0;
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                          "[fencing_token] must be the number in the reply that granted a lock, got [%.*s]",
                          SLICE_ARG(token));
}

/*
 * Of Tidelock's own calls, locks, renames, commits and lists of directories belong to a
 * transaction. The others have no use for one: the parameter is refused there; the header is
 * ignored, since clients send it with all requests, and these calls need not queue after the
 * transaction's requests. So it is for the health of the cluster, which waits for conditions.
 */
static bool is_made_in_transaction(const struct request *request)
{
    if (request->route->handler == handle_cluster_health)
        return false;
    return request->route->form != FORM_NATIVE || request->parts[PART_TRANSACTION].len > 0 ||
           request->route->handler == handle_lock || request->route->handler == handle_unlock ||
           request->route->handler == handle_rename || request->route->handler == handle_tree;
}

static int read_owner(struct request *request)
{
    int r;
    if ((r = read_named(request, "session", "Tidelock-Session", &request->session)) != 0 ||
        (r = read_named(request, "transaction", "Tidelock-Transaction", &request->transaction)) != 0 ||
        (r = read_token(request)) != 0)
        return r;
    struct slice named = request_param(request, "transaction"), part = request->parts[PART_TRANSACTION];
    if (named.data != NULL && (!is_made_in_transaction(request) || (part.len > 0 && !slice_equal(named, part))))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[%.*s] cannot be part of %s transaction: leave the parameter [transaction] out",
                              SLICE_ARG(request->exchange->path), part.len > 0 ? "another" : "a");
    if (!is_made_in_transaction(request))
        request->transaction = SLICE_NONE;
    if (part.len > 0)
        request->transaction = part;
    if (request->transaction.len > 0 && params_barred(request->route->params, "transaction"))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "request [%.*s] cannot be part of a transaction: its changes take effect at once",
                              SLICE_ARG(request->exchange->path));
    return 0;
}

/* The checks between a matched route and its handler. */
static int prepare_request(struct request *request, const struct route_match *match)
{
    int r;
    struct problem problem = {.type = PROBLEM_NONE};
    int parsed = params_parse(request->arena, request->exchange->query, &request->params, &problem);
    if ((r = decode_parts(request, match)) != 0)
        return r;
    enum dialect decoded_as = request->dialect;
    if (match->form == FORM_SHARED && !request->form.compatible_8)
        request->dialect = dialect_of_indices(request, dated_name(request, request->parts[PART_INDEX]));
    if (request->dialect != decoded_as && (r = decode_parts(request, match)) != 0) /* what '+' means differs */
        return r;
    if ((r = resolve_date_names(request)) != 0)
        return r;
    if (parsed != 0) {
        request->problem = problem;
        return REQUEST_REFUSED;
    }
    if ((r = media_check(request)) != 0)
        return r;
    if ((r = read_form(request)) != 0 || (r = awaited_read(request)) != 0)
        return r;
    if ((r = read_owner(request)) != 0 || (r = request_name_read(request)) != 0)
        return r;
    return consistency_read(request);
}

/*
 * Returns: the index of a typed path, by which its dialect is decided, as it was sent: a name that needs escapes is no
 * index's, or of no consequence, unless it has a date.
 */
static struct slice typed_index(struct request *request, struct slice sent)
{
    struct slice name, reason;
    if (url_decode(request->arena, sent, false, &name, &reason) != 0 || slice_find_byte(name, '<') == name.len)
        return sent;
    return dated_name(request, name);
}

/* An empty name is the slash at the end of a client's base address, and no type. */
static enum dialect typed_dialect(struct request *request, const struct route_match *match)
{
    struct slice index = typed_index(request, match->parts[PART_INDEX]);
    if (index.len == 0 || match->parts[PART_TYPE].len == 0)
        return dialect_of_indices(request, index);
    return dialect_of_typed_call(request, index, match->parts[PART_TYPE]);
}

/*
 * Finds the row. In 5.6 each method has a trie of its own: a path that other methods lead somewhere with is then
 * read as one with an index in its first place, or leads nowhere.
 */
static int find_row(struct request *request, struct route_match *ret_match)
{
    const struct route_table *routes = request->api->routes;
    struct exchange *exchange = request->exchange;
    int r = route_find(routes, exchange->method, exchange->path, false, ret_match);
    if (r == 0 && ret_match->form == FORM_TYPED) {
        if ((r = refuse_absent(request)) != 0)
            return r;
        request->dialect = typed_dialect(request, ret_match);
    }
    if (r == 0 && ret_match->route != NULL)
        return names_no_index(exchange->path) ? refuse_absent(request) : 0;
    if (!request->form.compatible_8 && (r != 0 || ret_match->form == FORM_SHARED))
        request->dialect = dialect_of_indices(request, SLICE_NONE);
    if (request->dialect == DIALECT_7 || exchange->method == HTTP_OTHER || exchange->method == HTTP_OPTIONS)
        return r != 0 ? reply_no_handler(request) : api_wrong_method(request, ret_match->methods, SLICE_NONE);
    if (route_find(routes, exchange->method, exchange->path, true, ret_match) != 0)
        return reply_no_handler(request);
    return 0;
}

/* Runs the handler when no other request of the transaction is at work. */
static int enter_txn_queue(struct request *request)
{
    if (request->transaction.len > 0)
        request->query = journal_query_txn_use(request->api->journal, request->transaction);
    if (request->transaction.len > 0)
        request_watch(request); /* in the queue it is another's */
    if (!txn_queue_enter(request->api->txn_queue, request))
        return REQUEST_PENDING;
    return as_of_handle(request);
}

/* Lets the request in, and hands it to its handler. */
static int enter_handler(struct request *request)
{
    int r = request_budget_admit(request);
    if (r != 0)
        return r;
    if (request->on_worker && !account_poll(&request->account)) /* the client left before its turn came */
        return request_budget_refuse(request);
    if ((r = request_forward_query_txn(request, request->transaction)) != 0)
        return r;
    return awaited_timestamp(request, request->after, enter_txn_queue);
}

/* Comparisons of names that the thread of a connection makes: 1 ms of usual names, 15 ms of the longest. */
#define LOOKS_INLINE 110000

/* Returns: where a character of a path first is, which may be escaped as `%` and `digits`; the length: nowhere. */
static size_t find_character(struct slice text, char character, const char *digits, size_t *ret_bytes)
{
    for (size_t i = 0; i < text.len; i++) {
        bool escaped = text.data[i] == '%' && text.len - i >= 3 && strncasecmp(text.data + i + 1, digits, 2) == 0;
        *ret_bytes = escaped ? 3 : 1;
        if (escaped || text.data[i] == character)
            return i;
    }
    *ret_bytes = 0;
    return text.len;
}

/* Returns: how many comparisons finding the indices of a path or query takes, if their names are long. */
static uint64_t looks_for(const struct catalog *catalog, struct slice text)
{
    static const char longest[CATALOG_NAME_BYTES_MAX] = "";
    const uint64_t indices = catalog_index_count(catalog), uses = catalog_alias_use_count(catalog);
    uint64_t looks = 0;
    while (text.len > 0) {
        size_t comma, star;
        struct slice name = slice_make(text.data, find_character(text, ',', "2C", &comma));
        (void)find_character(name, '*', "2A", &star);
        text = slice_from_offset(text, name.len + comma);
        if (star == 0) /* of one alias, as a rule of few indices */
            looks += 1 + (uses < indices ? uses : indices);
        else
            looks += (indices + uses) * catalog_looks(CATALOG_WEIGH_REQUEST, star == 1 ? name : SLICE_LIT("**"),
                                                      slice_make(longest, sizeof longest));
    }
    return looks;
}

/* Whether the request names so many indices that the thread of its connection does not look for them. */
static bool names_take_long(struct request *request)
{
    const struct slice path = request->exchange->path, query = request->exchange->query;
    size_t bytes;
    bool named = query.len > 0 && memmem(query.data, query.len, "index=", strlen("index=")) != NULL;
    if (!named && find_character(path, ',', "2C", &bytes) == path.len &&
        find_character(path, '*', "2A", &bytes) == path.len)
        return false;
    tl_cleanup(catalog_unrefp) struct catalog *catalog = journal_catalog(request->api->journal);
    return looks_for(catalog, path) + (named ? looks_for(catalog, query) : 0) > LOOKS_INLINE;
}

static int route_request(struct request *request)
{
    struct route_match match;
    media_accept(request);
    int r = find_row(request, &match);
    if (r != 0)
        return r;
    request->route = match.route;
    if (match.form == FORM_TYPED)
        request->dialect = typed_dialect(request, &match);
    if ((r = prepare_request(request, &match)) != 0)
        return r;
    return request->exchange->body.len > REQUEST_INLINE_BYTES ? request_work_short(request, enter_handler)
                                                              : enter_handler(request);
}

static int dispatch_request(struct request *request)
{
    return names_take_long(request) ? request_work_short(request, route_request) : route_request(request);
}

void api_handle(struct api *api, struct exchange *exchange)
{
    struct request *request = arena_zalloc(&exchange->arena, sizeof *request);
    request->api = api;
    request->exchange = exchange;
    request->arena = &exchange->arena;
    request->dialect = DIALECT_7;
    request->parts = no_parts;
    exchange->api_context = request;
    request->begun_us = clock_boot_us();
    request_finish(request, dispatch_request(request));
}
