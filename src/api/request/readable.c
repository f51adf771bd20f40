/* SPDX-License-Identifier: Apache-2.0 */
/* Readable members of replies; see readable.h. */
#include "api/request/readable.h"

#include <inttypes.h>

#include "api/request/handlers.h"
#include "api/request/instant.h"
#include "base/budget.h"
#include "json/each.h"
#include "json/write.h"

bool readable_applies(const struct request *request)
{
    static request_handler *const handlers[] = {
        handle_stats,           handle_nodes_stats,     handle_cluster_stats, handle_cluster_health,
        handle_tasks,           handle_task_get,        handle_task_cancel,   handle_task_rethrottle,
        handle_update_by_query, handle_delete_by_query, handle_reindex,       handle_delete_by_query_old,
    };
    if (!request->form.human || request->route == NULL || request->exchange->status >= 300)
        return false;
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        if (handlers[i] == request->route->handler)
            return true;
    return false;
}

struct slice readable_time(struct arena *arena, uint64_t nanos)
{
    static const struct {
        const char *name;
        uint64_t nanos;
    } units[] = {{"d", UINT64_C(86400000000000)},
                 {"h", UINT64_C(3600000000000)},
                 {"m", UINT64_C(60000000000)},
                 {"s", 1000000000},
                 {"ms", 1000000},
                 {"micros", 1000}};
    if (nanos == 0)
        return SLICE_LIT("0s");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (nanos < units[i].nanos)
            continue;
        uint64_t tenths = nanos / (units[i].nanos / 10);
        if (tenths % 10 == 0)
            return arena_printf(arena, "%" PRIu64 "%s", tenths / 10, units[i].name);
        return arena_printf(arena, "%" PRIu64 ".%" PRIu64 "%s", tenths / 10, tenths % 10, units[i].name);
    }
    return arena_printf(arena, "%" PRIu64 "nanos", nanos);
}

/* Returns: whether a name has a suffix; *ret_stem is what precedes it. */
static bool ends_with(struct slice name, const char *suffix, struct slice *ret_stem)
{
    struct slice end = slice_from(suffix);
    if (name.len <= end.len || !slice_equal(slice_from_offset(name, name.len - end.len), end))
        return false;
    *ret_stem = slice_make(name.data, name.len - end.len);
    return true;
}

/* Returns: the name of the readable member of a number, with its text; data NULL: it has none. */
static struct slice readable_of(struct arena *arena, struct slice name, uint64_t number, struct slice *ret_text)
{
    const uint64_t ms = 1000000; /* nanoseconds */
    struct slice stem = SLICE_NONE;
    if (slice_is(name, "start_time_in_millis")) {
        *ret_text = instant_text(arena, number * TL_MS, 3);
        return SLICE_LIT("start_time");
    }
    if (slice_is(name, "time_in_millis")) { /* of gets, where the other name has another form */
        *ret_text = readable_time(arena, number * ms);
        return SLICE_LIT("getTime");
    }
    if (slice_is(name, "fixed_bit_set_memory_in_bytes")) {
        *ret_text = budget_human_size(arena, number);
        return SLICE_LIT("fixed_bit_set");
    }
    if (ends_with(name, "_in_bytes", &stem))
        *ret_text = budget_human_size(arena, number);
    else if (ends_with(name, "_in_nanos", &stem))
        *ret_text = readable_time(arena, number);
    else if (ends_with(name, "_in_millis", &stem) ||
             (slice_starts_with(name, SLICE_LIT("throttled_")) && ends_with(name, "_millis", &stem)))
        *ret_text = readable_time(arena, number * ms);
    return stem;
}

static void write_value(struct request *request, struct json_writer *writer, yyjson_val *value)
{
    size_t i, count;
    yyjson_val *key, *member;
    if (yyjson_is_arr(value)) {
        json_begin(writer, '[');
        json_arr_foreach (value, i, count, member)
            write_value(request, writer, member);
        json_end(writer, ']');
        return;
    }
    if (!yyjson_is_obj(value)) {
        json_value(writer, value, request->dialect);
        return;
    }
    json_begin(writer, '{');
    json_obj_foreach (value, i, count, key, member) {
        struct slice text, name = SLICE_NONE;
        if (yyjson_is_uint(member))
            name = readable_of(request->arena, json_slice(key), yyjson_get_uint(member), &text);
        if (name.data != NULL && json_get(value, name) == NULL) {
            json_key_slice(writer, name);
            json_string(writer, text);
        }
        json_key_slice(writer, json_slice(key));
        write_value(request, writer, member);
    }
    json_end(writer, '}');
}

void readable_write(struct request *request, struct buf *buf, yyjson_val *value)
{
    struct json_writer writer;
    json_writer_init(&writer, buf);
    write_value(request, &writer, value);
}
