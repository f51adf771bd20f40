/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of sessions and transactions; see status_list.h. */
#include "api/owners/status_list.h"

#include "api/request/forward.h"
#include "api/request/query_status.h"
#include "api/request/reply.h"
#include "api/request/request_budget.h"
#include "base/buf.h"
#include "json/each.h"

struct status_list {
    status_taker *then;
    enum status_what what;
    struct slice id;
    struct slice *pages; /* objects with commas between */
    size_t count;
    size_t capacity;
    struct slice body;             /* of the page that had one */
    uint64_t cursor;               /* of the next page; 0: all are there */
    struct status_command queries; /* of sessions: their query transactions */
    struct host_ask *asks;         /* of transactions: the other hosts' query transactions */
    size_t ask_count;
};

static struct command *next_piece(const struct status_list *list)
{
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status = list->queries;
    command->status.what = list->what;
    command->status.id = list->id;
    command->status.cursor = list->cursor;
    return command;
}

static void take_page(struct request *request, struct status_list *list, const struct status_command *status)
{
    struct arena *arena = request->arena;
    if (status->page.len > 0) {
        list->pages = arena_grow(arena, list->pages, list->count, &list->capacity, sizeof *list->pages);
        list->pages[list->count++] = arena_copy(arena, status->page);
    }
    if (status->body.len > 0)
        list->body = arena_copy(arena, status->body);
    list->cursor = status->cursor;
}

/* --- Putting it together ------------------------------------------------------------------------------------------ */

/* Appends them to an array, in which `text` ends. */
static void write_queries(struct request *request, const struct status_list *list, struct buf *text)
{
    size_t at, max;
    yyjson_val *txn;
    query_status_write_all(request->api, list->count > 0, request->arena, text);
    for (size_t i = 0; i < list->ask_count; i++)
        json_arr_foreach (json_get_lit(host_ask_json(request, &list->asks[i]), "transactions"), at, max, txn) {
            if (text->data[text->len - 1] != '[')
                buf_byte(text, ',');
            json_write(text, txn, DIALECT_7);
        }
}

static void write_pieces(struct request *request, const struct status_list *list, struct buf *text)
{
    buf_byte(text, '[');
    for (size_t i = 0; i < list->count && !request_budget_refused(request); i++) {
        if (i > 0)
            buf_byte(text, ',');
        buf_slice(text, list->pages[i]);
    }
    if (list->what == STATUS_TRANSACTIONS)
        write_queries(request, list, text);
    buf_byte(text, ']');
}

static void write_all(struct request *request, const struct status_list *list, struct buf *text)
{
    bool sessions = list->what == STATUS_SESSIONS;
    if (list->id.len > 0) {
        buf_slice(text, list->body);
        buf_lit(text, ",\"locks\":");
    } else {
        buf_slice(text, sessions ? SLICE_LIT("{\"sessions\":") : SLICE_LIT("{\"transactions\":"));
    }
    write_pieces(request, list, text);
    if (sessions && list->id.len == 0) {
        buf_lit(text, ",\"deferred\":");
        buf_slice(text, list->body);
    }
    struct json_writer writer = {.buf = text, .comma = true};
    host_asks_write_failures(request, "node_failures", list->asks, list->ask_count, &writer);
    buf_byte(text, '}');
}

static int finish_status_list(struct request *request, const struct status_list *list)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct slice body = SLICE_NONE;
    text.guard = request->arena->guard;
    write_all(request, list, &text);
    if (!request_budget_refused(request))
        body = arena_copy(request->arena, buf_as_slice(&text));
    buf_deinit(&text);
    return request_budget_refused(request) ? request_budget_refuse(request) : list->then(request, body);
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

/* The session may have ended between two pages. */
static int ask_next(struct request *request, struct status_list *list)
{
    struct command *command = next_piece(list);
    request_ask(request->api, command);
    bool failed = command->problem.type != PROBLEM_NONE;
    if (failed)
        problem_copy(&request->problem, &command->problem, request->arena);
    else
        take_page(request, list, &command->status);
    command_free(command);
    return failed ? REQUEST_REFUSED : 0;
}

/* On a worker: only this request waits for it. */
static int read_rest(struct request *request)
{
    struct status_list *list = request->context;
    while (list->cursor != 0 && !request_budget_refused(request) && !atomic_load(&request->abandoned))
        if (ask_next(request, list) != 0)
            return REQUEST_REFUSED;
    return request_budget_refused(request) ? request_budget_refuse(request) : finish_status_list(request, list);
}

static int first_done(struct request *request, struct command *command)
{
    struct status_list *list = request->context;
    take_page(request, list, &command->status);
    return list->cursor == 0 ? finish_status_list(request, list) : request_work(request, read_rest);
}

int status_list_read(struct request *request, enum status_what what, struct slice id, status_taker *then)
{
    struct status_list *list = arena_zalloc(request->arena, sizeof *list);
    *list = (struct status_list){.then = then, .what = what, .id = id};
    if (what == STATUS_SESSIONS)
        query_status_of_sessions(request->api, request->arena, &list->queries);
    request->context = list;
    return request_submit(request, next_piece(list), first_done);
}

/* The other hosts have answered. */
static int hosts_asked(struct request *request)
{
    return request_submit(request, next_piece(request->context), first_done);
}

int status_list_read_transactions(struct request *request, status_taker *then)
{
    struct status_list *list = arena_zalloc(request->arena, sizeof *list);
    *list = (struct status_list){.then = then, .what = STATUS_TRANSACTIONS};
    request->context = list;
    if (request_is_forwarded(request))
        return finish_status_list(request, list);
    list->asks = request_asks(request, SLICE_NONE, &list->ask_count);
    for (size_t i = 0; i < list->ask_count; i++)
        list->asks[i].target = SLICE_LIT("/_transaction");
    return request_ask_hosts(request, list->asks, list->ask_count, hosts_asked);
}

int status_list_reply(struct request *request, struct slice body)
{
    struct json_writer writer;
    reply_begin(request, 200, &writer);
    json_raw(&writer, body);
    return REQUEST_DONE;
}
