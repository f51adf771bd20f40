/* SPDX-License-Identifier: Apache-2.0 */
/* Forwarding; see forward.h. */
#include "api/request/forward.h"

#include "api/request/api_internal.h"
#include "api/request/host_call.h"
#include "api/request/request_budget.h"
#include "api/search/search_service.h"
#include "base/alloc.h"
#include "base/check.h"

#define MARK "Tidelock-Forwarded"

/*
 * Headers of the client that concern the other host. The first ones determine the form of the reply:
 * they are passed with a whole request only, since this host reads the replies to its own questions.
 */
static const char *const passed_on[] = {"Accept",         "User-Agent",       "Authorization",
                                        "X-Opaque-Id",    "Tidelock-Session", "Tidelock-Transaction",
                                        "Tidelock-After", "Tidelock-Request"};
enum { FORM_HEADERS = 2 };

enum { PASSED_COUNT = sizeof passed_on / sizeof *passed_on, HEADERS_MAX = PASSED_COUNT + 3 };

bool request_is_forwarded(struct request *request)
{
    return exchange_header(request->exchange, MARK).data != NULL;
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

/*
 * The media type of a body. What this host has accepted from a client of its own machine without a
 * type, or with that of a form, the other one would refuse.
 */
static struct slice body_type(struct request *request)
{
    struct slice given = exchange_header(request->exchange, "Content-Type");
    bool known = slice_starts_with(given, SLICE_LIT("application/")) &&
                 !slice_starts_with(given, SLICE_LIT("application/x-www-form-urlencoded"));
    return known ? given : SLICE_LIT("application/json");
}

/* The client's address without its port; the other host then knows that the client is not on its own machine. */
static struct slice client_address(struct request *request)
{
    struct exchange *exchange = request->exchange;
    char text[128];
    size_t len = exchange->ops->peer != NULL ? exchange->ops->peer(exchange, text, sizeof text) : 0;
    while (len > 0 && text[len - 1] != ':')
        len--;
    return len > 1 ? arena_copy(request->arena, slice_make(text, len - 1)) : SLICE_LIT("unknown");
}

/* Makes the headers of a whole request, or (`asks`) of a question of this host. */
static const struct slice *make_headers(struct request *request, bool asks, struct slice type, size_t *ret_count)
{
    struct slice *headers = arena_alloc(request->arena, HEADERS_MAX * sizeof *headers);
    size_t count = 0;
    for (size_t i = asks ? FORM_HEADERS : 0; i < PASSED_COUNT; i++) {
        struct slice value = exchange_header(request->exchange, passed_on[i]);
        if (value.data != NULL)
            headers[count++] = arena_printf(request->arena, "%s: %.*s", passed_on[i], SLICE_ARG(value));
    }
    headers[count++] = arena_printf(request->arena, MARK ": %s", request->api->node_id);
    headers[count++] = arena_printf(request->arena, "X-Forwarded-For: %.*s", SLICE_ARG(client_address(request)));
    if (type.data != NULL)
        headers[count++] = arena_printf(request->arena, "Content-Type: %.*s", SLICE_ARG(type));
    *ret_count = count;
    return headers;
}

/* The sender's thread owns the request meanwhile. */
static bool gives_up(struct request *request, const struct cluster_node *node)
{
    return !account_poll(&request->account) || !journal_is_live(request->api->journal, node->number);
}

/* --- A whole request ---------------------------------------------------------------------------------------------- */

struct forwarding {
    struct request *request;
    const struct cluster_node *to;
    struct host_call call;
};

static void take_header(struct host_call *call, struct slice name, struct slice value)
{
    struct forwarding *forwarding = call->context;
    struct request *request = forwarding->request;
    uint64_t ts;
    if (slice_is_ignoring_case(name, "Content-Type"))
        request->exchange->content_type = arena_copy(request->arena, value).data;
    else if (slice_is_ignoring_case(name, "Tidelock-Timestamp") && slice_to_u64(value, &ts))
        request->exchange->timestamp = ts;
}

static bool forwarding_gives_up(struct host_call *call)
{
    struct forwarding *forwarding = call->context;
    return gives_up(forwarding->request, forwarding->to);
}

static int refuse_unreachable(struct request *request, const struct cluster_node *node, const char *why)
{
    return request_refuse(
        request, PROBLEM_UNAVAILABLE,
        "host [%.*s] at [%.*s], to which the request must be forwarded, cannot be reached: %s; try again, or send it "
        "to that host",
        SLICE_ARG(node->name), SLICE_ARG(node->address), why);
}

static void request_forwarded(struct host_call *call)
{
    struct forwarding *forwarding = call->context;
    struct request *request = forwarding->request;
    int result = REQUEST_DONE;
    request->exchange->status = call->status;
    if (request_budget_refused(request)) {
        result = request_budget_refuse(request);
    } else if (call->status == 0) {
        request->exchange->content_type = NULL;
        request->exchange->timestamp = 0;
        result = refuse_unreachable(request, forwarding->to, call->error);
    } else {
        request->form.bare = true; /* the other host has laid it out */
    }
    if (result != REQUEST_DONE)
        buf_clear(&request->exchange->response);
    request_finish(request, result);
}

/*
 * HEAD is sent as GET where both have the same reply: its body is not sent to the client, and its
 * length is the Content-Length. In 5.6 the status of both may differ (aliases).
 */
static struct slice forwarded_method(const struct request *request)
{
    bool has_get = (request->route->methods & 1u << HTTP_GET) != 0 && request->dialect != DIALECT_5;
    return request->exchange->method == HTTP_HEAD && has_get ? SLICE_LIT("GET") : request->exchange->method_name;
}

int request_forward(struct request *request, const struct cluster_node *to)
{
    struct exchange *exchange = request->exchange;
    const struct host_sender *sender = request->api->options.hosts;
    if (request_is_forwarded(request))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "the request has the header [" MARK
                              "], but belongs to host [%.*s], not to this one [%.*s]: leave the header out",
                              SLICE_ARG(to->name), SLICE_ARG(request->api->options.node_name));
    if (sender == NULL)
        return refuse_unreachable(request, to, "this server sends nothing to other hosts");
    struct forwarding *forwarding = arena_zalloc(request->arena, sizeof *forwarding);
    *forwarding = (struct forwarding){.request = request, .to = to};
    struct slice body = exchange->body.len > 0 ? exchange->body : SLICE_NONE;
    struct host_call *call = &forwarding->call;
    *call = (struct host_call){
        .address = to->address,
        .tls = to->tls,
        .method = forwarded_method(request),
        .target = exchange->query.data == NULL ? exchange->path
                                               : arena_printf(request->arena, "%.*s?%.*s", SLICE_ARG(exchange->path),
                                                              SLICE_ARG(exchange->query)),
        .body = body,
        .reply = &exchange->response,
        .take_header = take_header,
        .gives_up = forwarding_gives_up,
        .done = request_forwarded,
        .context = forwarding,
    };
    call->headers =
        make_headers(request, false, body.data != NULL ? body_type(request) : SLICE_NONE, &call->header_count);
    buf_clear(&exchange->response);
    request->account.deadline_us = 0; /* the time is the other host's to limit */
    request->on_worker = false;
    request_watch(request);
    sender->send(sender->context, call);
    return REQUEST_PENDING;
}

int request_forward_to(struct request *request, uint16_t host)
{
    if (host == journal_host_number(request->api->journal) || host == 0)
        return 0;
    const struct cluster_node *node = nodes_by_number(nodes_list(request), host);
    return node == NULL ? 0 : request_forward(request, node);
}

int request_forward_query_txn(struct request *request, struct slice id)
{
    struct query_txn_info info;
    struct journal *journal = request->api->journal;
    uint16_t host = id_query_txn_host(id);
    int r = request_forward_to(request, host);
    /* A host that was forgotten and has joined again has another number than those that it began before. */
    if (r != 0 || host == 0 || host == journal_host_number(journal) ||
        journal_query_txn_find(journal, id, request->arena, &info) != QUERY_TXN_UNKNOWN)
        return r;
    return request_refuse(request, PROBLEM_TRANSACTION_MISSING,
                          "no transaction [%.*s]: the host that had this query transaction is out of the cluster; "
                          "begin another",
                          SLICE_ARG(id));
}

/* --- Questions to several hosts ----------------------------------------------------------------------------------- */

struct asking {
    struct request *request;
    request_handler *then;
    size_t pending; /* the sender's thread counts it down */
};

struct question {
    struct asking *asking;
    struct host_ask *ask;
    struct buf reply;
    struct host_call call;
};

static bool question_gives_up(struct host_call *call)
{
    struct question *question = call->context;
    return gives_up(question->asking->request, question->ask->node);
}

static void question_answered(struct host_call *call)
{
    struct question *question = call->context;
    struct asking *asking = question->asking;
    struct request *request = asking->request;
    struct host_ask *ask = question->ask;
    ask->status = call->status;
    ask->text =
        arena_copy(request->arena, call->status != 0 ? buf_as_slice(&question->reply) : slice_from(call->error));
    buf_deinit(&question->reply);
    if (--asking->pending > 0)
        return;
    request_start_timer(request);
    int pending = request_work_short(request, asking->then);
    INSIST(pending == REQUEST_PENDING);
}

int request_ask_hosts(struct request *request, struct host_ask *asks, size_t count, request_handler *then)
{
    const struct host_sender *sender = request->api->options.hosts;
    if (count == 0 || sender == NULL) {
        for (size_t i = 0; i < count; i++)
            asks[i].text = SLICE_LIT("this server sends nothing to other hosts");
        return then(request);
    }
    struct asking *asking = arena_alloc(request->arena, sizeof *asking);
    struct question *questions = arena_zalloc(request->arena, count * sizeof *questions);
    *asking = (struct asking){request, then, count};
    for (size_t i = 0; i < count; i++) {
        struct question *question = &questions[i];
        *question = (struct question){.asking = asking, .ask = &asks[i], .reply = BUF_INIT(BUF_UNLIMITED)};
        question->reply.guard = request->exchange->response.guard;
        question->call = (struct host_call){.address = asks[i].node->address,
                                            .tls = asks[i].node->tls,
                                            .method = slice_from(asks[i].method),
                                            .target = asks[i].target,
                                            .body = asks[i].body,
                                            .reply = &question->reply,
                                            .gives_up = question_gives_up,
                                            .done = question_answered,
                                            .context = question};
        question->call.headers =
            make_headers(request, true, asks[i].body.data != NULL ? SLICE_LIT("application/json") : SLICE_NONE,
                         &question->call.header_count);
    }
    request->account.deadline_us = 0;
    request->on_worker = false;
    request_watch(request);
    for (size_t i = 0; i < count; i++) /* after the last one the request is the sender's */
        sender->send(sender->context, &questions[i].call);
    return REQUEST_PENDING;
}

struct host_ask *request_asks(struct request *request, struct slice named, size_t *ret_count)
{
    const struct cluster_nodes *nodes = nodes_list(request);
    struct host_ask *asks = arena_zalloc(request->arena, nodes->count * sizeof *asks);
    bool alone = request_is_forwarded(request);
    *ret_count = 0;
    for (size_t i = 0; i < nodes->count && !alone; i++)
        if (!nodes->items[i].self && node_is_named(&nodes->items[i], named))
            asks[(*ret_count)++] = (struct host_ask){.node = &nodes->items[i], .method = "GET"};
    return asks;
}

yyjson_val *host_ask_json(struct request *request, struct host_ask *ask)
{
    struct json_doc doc;
    bool answers = ask->status == 200 || ask->status == 404;
    if (ask->json == NULL && answers && json_parse_stored(request->arena, ask->text, &doc) == 0)
        ask->json = doc.root;
    return ask->json;
}

static void write_failure(struct request *request, const struct host_ask *ask, struct json_writer *writer)
{
    struct slice why = ask->status == 0 ? ask->text : arena_printf(request->arena, "it answered [%d]", ask->status);
    json_begin(writer, '{');
    json_key(writer, "type");
    json_string(writer, SLICE_LIT("failed_node_exception"));
    json_key(writer, "reason");
    json_string(writer, arena_printf(request->arena, "Failed node [%.*s]", SLICE_ARG(ask->node->id)));
    json_key(writer, "node_id");
    json_string(writer, ask->node->id);
    json_key(writer, "caused_by");
    json_begin(writer, '{');
    json_key(writer, "type");
    json_string(writer, SLICE_LIT("node_not_connected_exception"));
    json_key(writer, "reason");
    json_string(writer, arena_printf(request->arena, "[%.*s][%.*s] %.*s", SLICE_ARG(ask->node->name),
                                     SLICE_ARG(ask->node->address), SLICE_ARG(why)));
    json_end(writer, '}');
    json_end(writer, '}');
}

size_t host_asks_write_failures(struct request *request, const char *key, struct host_ask *asks, size_t count,
                                struct json_writer *writer)
{
    size_t failed = 0;
    for (size_t i = 0; i < count; i++) {
        if (host_ask_json(request, &asks[i]) != NULL)
            continue;
        if (failed++ == 0) {
            json_key(writer, key);
            json_begin(writer, '[');
        }
        write_failure(request, &asks[i], writer);
    }
    if (failed > 0)
        json_end(writer, ']');
    return failed;
}
