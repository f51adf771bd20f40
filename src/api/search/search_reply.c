/* SPDX-License-Identifier: Apache-2.0 */
/* The reply of a search, around the hits that src/query has written. */
#include "api/search/search_call.h"

void search_write_shards(struct json_writer *writer, const struct search_call *call)
{
    json_key(writer, "_shards");
    json_begin(writer, '{');
    json_key(writer, "total");
    json_u64(writer, call->shard_count);
    json_key(writer, "successful");
    json_u64(writer, call->shard_count);
    if (!call->legacy_1x) {
        json_key(writer, "skipped");
        json_u64(writer, 0);
    }
    json_key(writer, "failed");
    json_u64(writer, 0);
    json_end(writer, '}');
}

static void write_total(struct json_writer *writer, const struct search_call *call, const struct search_result *result)
{
    bool untracked = call->search.track_total_hits == TOTAL_HITS_NONE;
    bool number = call->total_as_int || call->dialect == DIALECT_5 || call->legacy_1x;
    if (untracked && !number)
        return;
    json_key(writer, "total");
    if (number) {
        json_i64(writer, untracked ? -1 : (int64_t)result->total);
        return;
    }
    json_begin(writer, '{');
    json_key(writer, "value");
    json_u64(writer, result->total);
    json_key(writer, "relation");
    json_string(writer, result->relation == RELATION_EQ ? SLICE_LIT("eq") : SLICE_LIT("gte"));
    json_end(writer, '}');
}

static void write_max_score(struct json_writer *writer, const struct search_call *call,
                            const struct search_result *result)
{
    json_key(writer, "max_score");
    if (call->legacy_1x || call->context.index_count == 0 || (call->dialect == DIALECT_5 && call->search.size == 0)) {
        json_raw(writer, SLICE_LIT("0.0"));
    } else if (result->has_max_score && call->search.size != 0) {
        struct buf text = BUF_INIT(64);
        json_write_score(&text, result->max_score);
        json_raw(writer, buf_as_slice(&text));
        buf_deinit(&text);
    } else {
        json_null(writer);
    }
}

static void write_hits(struct json_writer *writer, const struct search_call *call, const struct search_result *result)
{
    json_key(writer, "hits");
    json_begin(writer, '{');
    write_total(writer, call, result);
    write_max_score(writer, call, result);
    json_key(writer, "hits");
    json_begin(writer, '[');
    if (result->hit_count > 0)
        json_raw(writer, buf_as_slice(&result->hits));
    json_end(writer, ']');
    json_end(writer, '}');
}

static void write_text(struct json_writer *writer, const char *key, struct slice text)
{
    if (text.data == NULL)
        return;
    json_key(writer, key);
    json_string(writer, text);
}

void search_write(struct json_writer *writer, const struct search_call *call, const struct search_result *result,
                  uint64_t took_us, struct slice scroll_id, struct slice pit_id)
{
    json_begin(writer, '{');
    write_text(writer, "_scroll_id", scroll_id);
    write_text(writer, "pit_id", pit_id);
    json_key(writer, "took");
    json_u64(writer, took_us / 1000);
    json_key(writer, "timed_out");
    json_bool(writer, result->timed_out);
    if (call->search.terminate_after > 0) {
        json_key(writer, "terminated_early");
        json_bool(writer, result->terminated_early);
    }
    search_write_shards(writer, call);
    write_hits(writer, call, result);
    if (result->aggregations.len > 0) {
        json_key(writer, "aggregations");
        json_raw(writer, buf_as_slice(&result->aggregations));
    }
    json_end(writer, '}');
}
