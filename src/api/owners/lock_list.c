/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all locks; see lock_list.h. */
#include "api/owners/lock_list.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/request/api_internal.h"
#include "api/request/request_budget.h"
#include "json/each.h"

struct lock_list {
    lock_list_taker *then;
    struct slice index;
    struct slice path;
    tl_ts as_of; /* 0: now */
    size_t size; /* resources at most; 0: all */
    struct status_row *rows;
    size_t row_count;
    size_t row_capacity;
    struct status_overflow *overflows; /* still to be asked for: those before overflow_count */
    size_t overflow_count;
    size_t overflow_capacity;
    uint64_t cursor; /* of the next page; 0: all have been read but for the long queues */
    size_t pages;    /* that have been read */
    bool past_begun; /* with as_of: the locks that ended since are being read, ... */
    uint64_t past;   /* ... from here on; 0: they have been read, too */
    tl_ts past_from;
};

static bool is_complete(const struct lock_list *list)
{
    bool present = list->cursor == 0 && list->overflow_count == 0;
    return present && (list->as_of == 0 || (list->past_begun && list->past == 0));
}

/* Whether there are so many resources that no more are wanted. Those that ended since must be read to the end. */
static bool is_enough(const struct lock_list *list)
{
    return list->size > 0 && list->as_of == 0 && list->row_count >= list->size;
}

static struct command *next_piece(struct request *request, const struct lock_list *list)
{
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status = (struct status_command){.what = STATUS_LOCKS,
                                              .index = list->index,
                                              .path = list->path,
                                              .session = request->session,
                                              .cursor = list->cursor};
    command->status.as_of = list->as_of;
    if (list->cursor == 0 && list->overflow_count > 0)
        command->status.overflow = list->overflows[list->overflow_count - 1];
    else if (list->cursor == 0 && list->pages > 0 && list->as_of != 0) {
        command->status.of_history = true;
        command->status.history_cursor = list->past;
    }
    return command;
}

/* Whether one path is the other, or is above it; the second may end with a slash. */
static bool in_line(struct slice a, struct slice b)
{
    b.len -= b.len > 1 && b.data[b.len - 1] == '/';
    size_t least = a.len < b.len ? a.len : b.len;
    struct slice longer = a.len > b.len ? a : b;
    if (least == 1 || memcmp(a.data, b.data, least) != 0)
        return least == 1;
    return longer.len == least || longer.data[least] == '/';
}

/*
 * The core knows ended locks by name only: whether one is asked for, decided as resource_wanted()
 * decides for existing ones.
 */
static bool is_wanted(struct request *request, const struct lock_list *list, const struct status_row *row)
{
    struct json_doc doc;
    if (list->index.len == 0 || row->name.len == 0 ||
        json_parse_stored(request->arena, arena_printf(request->arena, "{%.*s}", SLICE_ARG(row->name)), &doc) != 0)
        return true;
    struct slice index = json_slice(json_get_lit(doc.root, "index")), path = json_slice(json_get_lit(doc.root, "path"));
    if (index.data == NULL)
        return list->path.data == NULL;
    if (!slice_equal(index, list->index))
        return false;
    return list->path.data == NULL || path.data == NULL || in_line(path, list->path);
}

static void take_row(struct request *request, struct lock_list *list, const struct status_row *row)
{
    struct arena *arena = request->arena;
    list->rows = arena_grow(arena, list->rows, list->row_count, &list->row_capacity, sizeof *list->rows);
    list->rows[list->row_count++] =
        (struct status_row){arena_copy(arena, row->key), arena_copy(arena, row->name), arena_copy(arena, row->holders),
                            arena_copy(arena, row->waiters)};
}

static void take_page(struct request *request, struct lock_list *list, const struct status_command *status)
{
    for (size_t i = 0; i < status->row_count; i++)
        if (!status->of_history || is_wanted(request, list, &status->rows[i]))
            take_row(request, list, &status->rows[i]);
    list->pages++;
    list->past_from = status->history_from;
    if (status->of_history) {
        list->past_begun = true;
        list->past = status->history_cursor;
        return;
    }
    if (list->cursor == 0 && list->overflow_count > 0) {
        struct status_overflow *overflow = &list->overflows[list->overflow_count - 1];
        *overflow = status->overflow;
        list->overflow_count -= overflow->number == 0;
    }
    list->cursor = status->cursor;
    for (size_t i = 0; i < status->overflow_count; i++) {
        list->overflows = arena_grow(request->arena, list->overflows, list->overflow_count, &list->overflow_capacity,
                                     sizeof *list->overflows);
        list->overflows[list->overflow_count++] = status->overflows[i];
    }
}

/* --- Putting it together ------------------------------------------------------------------------------------------ */

/* A row of the list, and which of those with its key it was. */
struct ranked {
    struct status_row *row;
    size_t rank;
};

static int compare_rows(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    int order = slice_compare(x->row->key, y->row->key);
    return order != 0 ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static void append_list(struct buf *buf, struct slice text, bool *begun)
{
    if (text.len > 0 && *begun)
        buf_byte(buf, ',');
    buf_slice(buf, text);
    *begun = *begun || text.len > 0;
}

/*
 * Adds holders or waiters; of the past those that another row has already, since they ended while
 * the list was read, are left out.
 */
static void add_owners(struct buf *buf, const struct ranked *rows, size_t at, bool waiters, bool *begun)
{
    struct slice owners = waiters ? rows[at].row->waiters : rows[at].row->holders;
    for (size_t i = 0; i < at && owners.len > 0; i++) {
        struct slice before = waiters ? rows[i].row->waiters : rows[i].row->holders;
        if (before.len >= owners.len && memmem(before.data, before.len, owners.data, owners.len) != NULL)
            return;
    }
    append_list(buf, owners, begun);
}

/* Rows with one key are one resource. Returns: how many they were. */
static size_t write_resource(struct buf *buf, const struct ranked *rows, size_t count)
{
    size_t same = 1;
    bool begun = false;
    while (same < count && slice_equal(rows[same].row->key, rows[0].row->key))
        same++;
    buf_byte(buf, '{');
    append_list(buf, rows[0].row->name, &begun);
    buf_slice(buf, begun ? SLICE_LIT(",\"holders\":[") : SLICE_LIT("\"holders\":["));
    begun = false;
    for (size_t i = 0; i < same; i++)
        add_owners(buf, rows, i, false, &begun);
    buf_lit(buf, "],\"waiters\":[");
    begun = false;
    for (size_t i = 0; i < same; i++)
        add_owners(buf, rows, i, true, &begun);
    buf_lit(buf, "]}");
    return same;
}

static struct ranked *sort_rows(struct request *request, const struct lock_list *list)
{
    struct ranked *rows = arena_alloc(request->arena, (list->row_count + 1) * sizeof *rows);
    for (size_t i = 0; i < list->row_count; i++)
        rows[i] = (struct ranked){&list->rows[i], i};
    qsort(rows, list->row_count, sizeof *rows, compare_rows);
    return rows;
}

/* The history before the start of the server, or beyond its limit, is not known. */
static int refuse_too_old(struct request *request, tl_ts from)
{
    int r =
        request_refuse(request, PROBLEM_TIMESTAMP_TOO_OLD,
                       "the history of locks begins at [%" PRIu64 "]; asked for [%" PRIu64 "]", from, request->view.ts);
    problem_details(&request->problem, request->arena, "\"oldest\":%" PRIu64, from);
    return r;
}

static int finish_lock_list(struct request *request, const struct lock_list *list)
{
    tl_ts from = list->past_from > request->api->locks_from ? list->past_from : request->api->locks_from;
    if (list->as_of != 0 && list->as_of < from)
        return refuse_too_old(request, from);
    const struct ranked *rows = sort_rows(request, list);
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    text.guard = request->arena->guard;
    buf_lit(&text, "{\"locks\":[");
    size_t written = 0;
    for (size_t i = 0;
         i < list->row_count && !request_budget_refused(request) && (list->size == 0 || written < list->size);
         written++) {
        if (i > 0)
            buf_byte(&text, ',');
        i += write_resource(&text, rows + i, list->row_count - i);
    }
    buf_lit(&text, "]}");
    struct slice body = SLICE_NONE;
    if (!request_budget_refused(request))
        body = arena_copy(request->arena, buf_as_slice(&text));
    buf_deinit(&text);
    return request_budget_refused(request) ? request_budget_refuse(request) : list->then(request, body);
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

/* On a worker: only this request waits for it. */
static int read_rest(struct request *request)
{
    struct lock_list *list = request->context;
    while (!is_complete(list) && !is_enough(list) && !request_budget_refused(request) &&
           !atomic_load(&request->abandoned)) {
        struct command *command = next_piece(request, list);
        request_ask(request->api, command);
        take_page(request, list, &command->status);
        command_free(command);
    }
    return request_budget_refused(request) ? request_budget_refuse(request) : finish_lock_list(request, list);
}

static int first_done(struct request *request, struct command *command)
{
    struct lock_list *list = request->context;
    take_page(request, list, &command->status);
    return is_complete(list) || is_enough(list) ? finish_lock_list(request, list) : request_work(request, read_rest);
}

int lock_list_read(struct request *request, const struct lock_list_filter *filter, lock_list_taker *then)
{
    struct lock_list *list = arena_zalloc(request->arena, sizeof *list);
    *list = (struct lock_list){
        .then = then, .index = filter->index, .path = filter->path, .as_of = filter->as_of, .size = filter->size};
    request->context = list;
    return request_submit(request, next_piece(request, list), first_done);
}
