/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all locks; see lock_list.h. */
#include "api/owners/lock_list.h"

#include <stdlib.h>

#include "api/request/api_internal.h"
#include "api/request/memory.h"

struct lock_list {
    lock_list_taker *then;
    struct slice index;
    struct slice path;
    struct status_row *rows;
    size_t row_count;
    size_t row_capacity;
    struct status_crowd *crowds; /* still to be asked for: those before crowd_count */
    size_t crowd_count;
    size_t crowd_capacity;
    uint64_t place; /* of the next piece; 0: all are there but for the crowds */
};

static bool is_complete(const struct lock_list *list)
{
    return list->place == 0 && list->crowd_count == 0;
}

static struct command *next_piece(struct request *request, const struct lock_list *list)
{
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status = (struct status_command){
        .what = STATUS_LOCKS, .index = list->index, .path = list->path, .session = request->session, .place = list->place};
    if (list->place == 0 && list->crowd_count > 0)
        command->status.crowd = list->crowds[list->crowd_count - 1];
    return command;
}

static void take_row(struct request *request, struct lock_list *list, const struct status_row *row)
{
    struct arena *arena = request->arena;
    list->rows = arena_grow(arena, list->rows, list->row_count, &list->row_capacity, sizeof *list->rows);
    list->rows[list->row_count++] = (struct status_row){arena_copy(arena, row->key), arena_copy(arena, row->name),
                                                        arena_copy(arena, row->holders),
                                                        arena_copy(arena, row->waiters)};
}

static void take_piece(struct request *request, struct lock_list *list, const struct status_command *status)
{
    for (size_t i = 0; i < status->row_count; i++)
        take_row(request, list, &status->rows[i]);
    if (list->place == 0 && list->crowd_count > 0) {
        struct status_crowd *crowd = &list->crowds[list->crowd_count - 1];
        *crowd = status->crowd;
        list->crowd_count -= crowd->number == 0;
    }
    list->place = status->place;
    for (size_t i = 0; i < status->crowd_count; i++) {
        list->crowds = arena_grow(request->arena, list->crowds, list->crowd_count, &list->crowd_capacity,
                                  sizeof *list->crowds);
        list->crowds[list->crowd_count++] = status->crowds[i];
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

static void add(struct buf *buf, struct slice text, bool *begun)
{
    if (text.len > 0 && *begun)
        buf_byte(buf, ',');
    buf_slice(buf, text);
    *begun = *begun || text.len > 0;
}

/* Rows with one key are one resource. Returns: how many they were. */
static size_t write_resource(struct buf *buf, const struct ranked *rows, size_t count)
{
    size_t same = 1;
    bool begun = false;
    while (same < count && slice_equal(rows[same].row->key, rows[0].row->key))
        same++;
    buf_byte(buf, '{');
    add(buf, rows[0].row->name, &begun);
    buf_slice(buf, begun ? SLICE_LIT(",\"holders\":[") : SLICE_LIT("\"holders\":["));
    begun = false;
    for (size_t i = 0; i < same; i++)
        add(buf, rows[i].row->holders, &begun);
    buf_lit(buf, "],\"waiters\":[");
    begun = false;
    for (size_t i = 0; i < same; i++)
        add(buf, rows[i].row->waiters, &begun);
    buf_lit(buf, "]}");
    return same;
}

static struct ranked *sorted(struct request *request, const struct lock_list *list)
{
    struct ranked *rows = arena_alloc(request->arena, (list->row_count + 1) * sizeof *rows);
    for (size_t i = 0; i < list->row_count; i++)
        rows[i] = (struct ranked){&list->rows[i], i};
    qsort(rows, list->row_count, sizeof *rows, compare_rows);
    return rows;
}

static int finish(struct request *request, const struct lock_list *list)
{
    const struct ranked *rows = sorted(request, list);
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    text.guard = request->arena->guard;
    buf_lit(&text, "{\"locks\":[");
    for (size_t i = 0; i < list->row_count && !memory_refused(request);) {
        if (i > 0)
            buf_byte(&text, ',');
        i += write_resource(&text, rows + i, list->row_count - i);
    }
    buf_lit(&text, "]}");
    struct slice body = SLICE_NONE;
    if (!memory_refused(request))
        body = arena_copy(request->arena, buf_view(&text));
    buf_deinit(&text);
    return memory_refused(request) ? memory_refuse(request) : list->then(request, body);
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

/* On a worker: nobody is kept waiting by it but who asked. */
static int read_rest(struct request *request)
{
    struct lock_list *list = request->context;
    while (!is_complete(list) && !memory_refused(request) && !atomic_load(&request->abandoned)) {
        struct command *command = next_piece(request, list);
        request_ask(request->api, command);
        take_piece(request, list, &command->status);
        command_free(command);
    }
    return memory_refused(request) ? memory_refuse(request) : finish(request, list);
}

static int first_done(struct request *request, struct command *command)
{
    struct lock_list *list = request->context;
    take_piece(request, list, &command->status);
    return is_complete(list) ? finish(request, list) : request_work(request, read_rest);
}

int lock_list_read(struct request *request, struct slice index, struct slice path, lock_list_taker *then)
{
    struct lock_list *list = arena_zalloc(request->arena, sizeof *list);
    *list = (struct lock_list){.then = then, .index = index, .path = path};
    request->context = list;
    return request_submit(request, next_piece(request, list), first_done);
}
