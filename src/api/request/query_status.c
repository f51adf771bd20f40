/* SPDX-License-Identifier: Apache-2.0 */
/* The state of query transactions as JSON; see query_status.h. */
#include "api/request/query_status.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"

static void write_identity(const struct query_txn_info *info, struct buf *to)
{
    buf_lit(to, "{\"transaction\":");
    if (info->by_id) {
        buf_json_string(to, info->id);
        buf_printf(to, ",\"number\":%" PRIu64, info->number);
    } else {
        buf_printf(to, "%" PRIu64, info->number);
    }
}

/* In a cluster it has the name of its host. */
static void write_head(const struct api *api, const struct query_txn_info *info, const char *state, struct buf *to)
{
    buf_printf(to, ",\"mode\":\"query\",\"state\":\"%s\",\"created\":%" PRIu64, state, info->created);
    if (info->session != 0)
        buf_printf(to, ",\"session\":%" PRIu64, info->session);
    if (journal_host_number(api->journal) == 0)
        return;
    buf_lit(to, ",\"host\":");
    buf_json_string(to, api->options.node_name);
}

static void write_open(struct api *api, const struct query_txn_info *info, struct buf *to)
{
    uint64_t wall = clock_wall_us(), stable = journal_stable(api->journal);
    write_identity(info, to);
    write_head(api, info, "active", to);
    buf_printf(to,
               ",\"timestamp\":%" PRIu64 ",\"timeout_us\":%" PRIu64 ",\"expires\":%" PRIu64
               ",\"lock_count\":0,\"changes\":0,\"bytes\":0,\"waiting\":false}",
               info->read_ts, info->timeout_us, (wall > stable ? wall : stable) + info->left_us);
}

static void write_ended(const struct api *api, const struct query_txn_info *info, struct buf *to)
{
    buf_lit(to, "{\"transaction\":");
    buf_json_string(to, info->id);
    write_head(api, info, info->committed ? "committed" : "rolled_back", to);
    buf_printf(to, ",\"ended\":%" PRIu64, info->ended);
    if (info->committed) {
        buf_printf(to, ",\"commit_timestamp\":%" PRIu64 ",\"changes\":0}", info->read_ts);
        return;
    }
    buf_lit(to, ",\"cause\":");
    buf_json_string(to, info->cause);
    buf_byte(to, '}');
}

void query_status_write(struct api *api, const struct query_txn_info *info, bool ended, struct buf *to)
{
    if (ended)
        write_ended(api, info, to);
    else
        write_open(api, info, to);
}

void query_status_write_all(struct api *api, bool more, struct arena *arena, struct buf *to)
{
    struct query_txn_info *infos;
    size_t count = journal_query_txns(api->journal, arena, &infos);
    for (size_t i = 0; i < count; i++) {
        infos[i].by_id = false; /* ids are secret */
        if (more || i > 0)
            buf_byte(to, ',');
        write_open(api, &infos[i], to);
    }
}

static int compare_queries(const void *a, const void *b)
{
    const struct status_query *x = a, *y = b;
    if (x->session != y->session)
        return x->session < y->session ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

void query_status_of_sessions(struct api *api, struct arena *arena, struct status_command *status)
{
    struct query_txn_info *infos;
    size_t all = journal_query_txns(api->journal, arena, &infos), count = 0;
    struct status_query *queries = arena_alloc(arena, (all + 1) * sizeof *queries);
    for (size_t i = 0; i < all; i++)
        if (infos[i].session != 0)
            queries[count++] = (struct status_query){infos[i].session, infos[i].number, infos[i].id};
    if (count > 1)
        qsort(queries, count, sizeof *queries, compare_queries);
    status->queries = queries;
    status->query_count = count;
}
