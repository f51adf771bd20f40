/* SPDX-License-Identifier: Apache-2.0 */
/*
 * breakers of _nodes/stats, and _cat/memory: the budget of memory for operators.
 *
 * Elasticsearch's names are used where they mean the same: `parent` is the budget itself, with the
 * bytes really held; the others are its counted parts, compared with the limit of one request.
 */
#include "api/cluster/cluster_state.h"
#include "api/request/cat_table.h"
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "base/alloc.h"
#include "base/types.h"

struct breaker {
    const char *name;
    size_t limit;
    size_t used;
    uint64_t tripped;
};

enum { BREAKER_COUNT = BUDGET_KIND_COUNT + 1 }; /* the last is the parent */

static void breakers_read(const struct request *request, struct breaker ret_breakers[static BREAKER_COUNT])
{
    struct budget *budget = request->api->options.budget;
    uint64_t all = 0;
    for (int kind = 0; kind < BUDGET_KIND_COUNT; kind++) {
        uint64_t tripped = budget == NULL ? 0 : atomic_load_explicit(&budget->refusals[kind], memory_order_relaxed);
        ret_breakers[kind] =
            (struct breaker){budget_kind_name((enum budget_kind)kind), budget == NULL ? 0 : budget->limit,
                             budget_tallied((enum budget_kind)kind), tripped};
        all += tripped;
    }
    ret_breakers[BUDGET_KIND_COUNT] = (struct breaker){"parent", budget == NULL ? 0 : budget->limit,
                                                       budget == NULL ? mem_used() : budget_used(budget), all};
}

static void write_size(struct json_writer *writer, struct arena *arena, const char *name, size_t bytes)
{
    json_key_slice(writer, arena_printf(arena, "%s_size_in_bytes", name));
    json_u64(writer, bytes);
    json_key_slice(writer, arena_printf(arena, "%s_size", name));
    json_string(writer, budget_human_size(arena, bytes));
}

static void write_breaker(struct request *request, struct json_writer *writer, const struct breaker *breaker)
{
    json_key(writer, breaker->name);
    json_begin(writer, '{');
    write_size(writer, request->arena, "limit", breaker->limit);
    write_size(writer, request->arena, "estimated", breaker->used);
    json_key(writer, "overhead");
    json_double(writer, 1.0);
    json_key(writer, "tripped");
    json_u64(writer, breaker->tripped);
    json_end(writer, '}');
}

void breakers_write(struct request *request, struct json_writer *writer)
{
    static const char *const absent[] = {"fielddata", "accounting"}; /* there is nothing that they would count */
    struct breaker breakers[BREAKER_COUNT];
    breakers_read(request, breakers);
    json_key(writer, "breakers");
    json_begin(writer, '{');
    for (size_t i = 0; i < BREAKER_COUNT; i++)
        write_breaker(request, writer, &breakers[i]);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        write_breaker(request, writer, &(struct breaker){absent[i], breakers[BUDGET_KIND_COUNT].limit, 0, 0});
    json_end(writer, '}');
}

static const struct cat_column memory_columns[] = {
    {"kind", "k", "use of the memory; parent: the process as a whole", false, false},
    {"used", "u", "memory that is held", true, false},
    {"limit", "l", "limit of all uses together (--memory)", true, false},
    {"tripped", "t", "how often something was refused since the start", true, false},
};

int handle_cat_memory(struct request *request)
{
    struct cat_table table;
    struct breaker breakers[BREAKER_COUNT];
    int r = cat_table_begin(request, memory_columns, COUNT_OF(memory_columns));
    if (r != 0)
        return r;
    breakers_read(request, breakers);
    cat_table_init(&table, memory_columns, COUNT_OF(memory_columns));
    for (size_t i = 0; i < BREAKER_COUNT; i++) {
        struct cat_cell *row = cat_table_row(&table, request->arena);
        row[0] = cat_text(slice_from(breakers[i].name));
        row[1] = cat_bytes((int64_t)breakers[i].used);
        row[2] = cat_bytes((int64_t)breakers[i].limit);
        row[3] = cat_number((int64_t)breakers[i].tripped);
    }
    return cat_table_reply(request, &table);
}
