/* SPDX-License-Identifier: Apache-2.0 */
/* Shard failures; see failure.h. */
#include "query/failure.h"

#include "json/write.h"

static void write_problem(struct json_writer *w, const struct problem *problem)
{
    json_begin(w, '{');
    json_key(w, "type");
    json_string(w, problem->name.len > 0 ? problem->name : slice_from(problem_name(problem->type)));
    json_key(w, "reason");
    if (problem->reason.data == NULL)
        json_null(w);
    else
        json_string(w, problem->reason);
    if (problem->details.len > 0) {
        buf_byte(w->buf, ',');
        buf_slice(w->buf, problem->details);
    }
    if (problem->caused_by != NULL) {
        json_key(w, "caused_by");
        write_problem(w, problem->caused_by);
    }
    json_end(w, '}');
}

static void write_details(struct json_writer *w, const struct search_context *context, const struct search_index *index,
                          const struct problem *shard)
{
    buf_lit(w->buf, "\"phase\":\"query\",\"grouped\":true,\"failed_shards\":");
    json_begin(w, '[');
    json_begin(w, '{');
    json_key(w, "shard");
    json_i64(w, 0);
    json_key(w, "index");
    json_string(w, index->name);
    json_key(w, "node");
    json_string(w, context->node);
    json_key(w, "reason");
    write_problem(w, shard);
    json_end(w, '}');
    json_end(w, ']');
}

void failure_wrap(const struct search_context *context, const struct search_index *index, bool partial,
                  const struct problem *shard_problem, struct problem *ret_problem)
{
    struct problem *shard = arena_alloc(context->arena, sizeof *shard);
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct json_writer w;
    *shard = *shard_problem;
    if (shard->type == PROBLEM_QUERY_SHARD && shard->details.len == 0) {
        json_writer_init(&w, &text);
        buf_lit(&text, "\"index_uuid\":");
        buf_json_string(&text, index->uuid);
        buf_lit(&text, ",\"index\":");
        buf_json_string(&text, index->name);
        shard->details = arena_copy(context->arena, buf_as_slice(&text));
        buf_clear(&text);
    }
    json_writer_init(&w, &text);
    write_details(&w, context, index, shard);
    problem_set(ret_problem, context->arena, PROBLEM_SEARCH_PHASE_EXECUTION,
                partial ? "Partial shards failure" : "all shards failed");
    /* 5.x reports a script that fails in a search as an internal error. */
    bool failed = context->dialect == DIALECT_5 && shard->type == PROBLEM_SCRIPT;
    ret_problem->status = failed ? 500 : problem_status(shard);
    ret_problem->details = arena_copy(context->arena, buf_as_slice(&text));
    ret_problem->caused_by = shard;
    buf_deinit(&text);
}
