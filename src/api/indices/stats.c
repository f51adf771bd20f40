/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _stats of indices. Numbers of documents, sizes on the disk, and counts of operations since the
 * start are real. Merges and caches of Elasticsearch's kinds do not exist here: their members are
 * zero, since clients look for them. So are members that exist but are not measured, such as the
 * time of writes: docs/compatibility.md lists them.
 */
#include "api/request/api_internal.h"

#include <stdio.h>

#include "api/cluster/cluster_state.h"
#include "api/request/handlers.h"
#include "api/request/index_set.h"
#include "api/request/name_list.h"
#include "base/suggest.h"

struct stats_metric {
    const char *name;   /* in the path */
    const char *member; /* in the reply */
    const char *zeros;  /* NULL: those of enum index_stats_metric, which are in its order */
};

static const struct stats_metric metrics[] = {
    {"docs", "docs", NULL},
    {"store", "store", NULL},
    {"indexing", "indexing", NULL},
    {"get", "get", NULL},
    {"search", "search", NULL},
    {"merge", "merges",
     "{\"current\":0,\"current_docs\":0,\"current_size_in_bytes\":0,\"total\":0,\"total_time_in_millis\":0,\"total_"
     "docs\":0,"
     "\"total_size_in_bytes\":0,\"total_stopped_time_in_millis\":0,\"total_throttled_time_in_millis\":0,"
     "\"total_auto_throttle_in_bytes\":0}"},
    {"refresh", "refresh",
     "{\"total\":0,\"total_time_in_millis\":0,\"external_total\":0,\"external_total_time_in_millis\":0,\"listeners\":"
     "0}"},
    {"flush", "flush", "{\"total\":0,\"periodic\":0,\"total_time_in_millis\":0}"},
    {"warmer", "warmer", "{\"current\":0,\"total\":0,\"total_time_in_millis\":0}"},
    {"query_cache", "query_cache",
     "{\"memory_size_in_bytes\":0,\"total_count\":0,\"hit_count\":0,\"miss_count\":0,\"cache_size\":0,\"cache_count\":"
     "0,"
     "\"evictions\":0}"},
    {"fielddata", "fielddata", "{\"memory_size_in_bytes\":0,\"evictions\":0}"},
    {"completion", "completion", "{\"size_in_bytes\":0}"},
    {"segments", "segments",
     "{\"count\":0,\"memory_in_bytes\":0,\"terms_memory_in_bytes\":0,\"stored_fields_memory_in_bytes\":0,"
     "\"term_vectors_memory_in_bytes\":0,\"norms_memory_in_bytes\":0,\"points_memory_in_bytes\":0,"
     "\"doc_values_memory_in_bytes\":0,\"index_writer_memory_in_bytes\":0,\"version_map_memory_in_bytes\":0,"
     "\"fixed_bit_set_memory_in_bytes\":0,\"max_unsafe_auto_id_timestamp\":-1,\"file_sizes\":{}}"},
    {"translog", "translog",
     "{\"operations\":0,\"size_in_bytes\":0,\"uncommitted_operations\":0,\"uncommitted_size_in_bytes\":0,"
     "\"earliest_last_modified_age\":0}"},
    {"request_cache", "request_cache", "{\"memory_size_in_bytes\":0,\"evictions\":0,\"hit_count\":0,\"miss_count\":0}"},
    {"recovery", "recovery", "{\"current_as_source\":0,\"current_as_target\":0,\"throttle_time_in_millis\":0}"},
};

enum { METRIC_COUNT_ALL = sizeof metrics / sizeof *metrics };

/* What a request asks for. */
struct stats_wanted {
    uint32_t metrics; /* a bit each, by its place in the table */
    bool fielddata_fields, completion_fields;
    struct arena *arena;
};

/* --- Which metrics ------------------------------------------------------------------------------------------------ */

static int unknown_metric(struct request *request, struct slice name)
{
    struct slice names[METRIC_COUNT_ALL];
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < METRIC_COUNT_ALL; i++)
        names[i] = slice_from(metrics[i].name);
    suggest_append(&text, " ->", name, names, METRIC_COUNT_ALL);
    int r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "request [%.*s] contains unrecognized metric: [%.*s]%.*s",
                           SLICE_ARG(request->exchange->path), SLICE_ARG(name), SLICE_ARG(buf_as_slice(&text)));
    buf_deinit(&text);
    return r;
}

static int read_metrics(struct request *request, uint32_t *ret_wanted)
{
    struct slice list = request_part(request, PART_METRIC);
    uint32_t wanted = 0;
    if (list.len == 0 || slice_is(list, "_all")) {
        *ret_wanted = UINT32_MAX;
        return 0;
    }
    while (list.len > 0) {
        size_t len = slice_find_byte(list, ','), i;
        struct slice name = slice_make(list.data, len);
        for (i = 0; i < METRIC_COUNT_ALL && !slice_is(name, metrics[i].name); i++)
            ;
        if (i == METRIC_COUNT_ALL)
            return unknown_metric(request, name);
        wanted |= 1u << i;
        list = slice_from_offset(list, len + 1);
    }
    *ret_wanted = wanted;
    return 0;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

void stats_write_zeros(struct json_writer *writer, struct slice names)
{
    for (size_t i = 0; i < METRIC_COUNT_ALL; i++)
        if (metrics[i].zeros != NULL && name_list_match(names, slice_from(metrics[i].member))) {
            json_key(writer, metrics[i].member);
            json_raw(writer, slice_from(metrics[i].zeros));
        }
}

static void write_metrics(struct json_writer *writer, const struct stats_wanted *wanted,
                          const struct index_stats *numbers)
{
    json_begin(writer, '{');
    for (size_t i = 0; i < METRIC_COUNT_ALL; i++) {
        if (!(wanted->metrics & (1u << i)))
            continue;
        json_key(writer, metrics[i].member);
        if (metrics[i].zeros != NULL) {
            struct slice zeros = slice_from(metrics[i].zeros);
            bool by_field = (wanted->fielddata_fields && slice_is(slice_from(metrics[i].name), "fielddata")) ||
                            (wanted->completion_fields && slice_is(slice_from(metrics[i].name), "completion"));
            if (by_field) /* nothing is loaded of any */
                zeros = arena_printf(wanted->arena, "%.*s,\"fields\":{}}", (int)zeros.len - 1, zeros.data);
            json_raw(writer, zeros);
            continue;
        }
        index_stats_write(writer, (enum index_stats_metric)i, numbers);
    }
    json_end(writer, '}');
}

static void write_both(struct json_writer *writer, const struct stats_wanted *wanted, const struct index_stats *numbers)
{
    json_key(writer, "primaries");
    write_metrics(writer, wanted, numbers);
    json_key(writer, "total");
    write_metrics(writer, wanted, numbers);
}

/* One copy has all that there is. */
static void write_seq_no(struct json_writer *writer, int64_t seq_no)
{
    static const char *const names[] = {"max_seq_no", "local_checkpoint", "global_checkpoint"};
    json_key(writer, "seq_no");
    json_begin(writer, '{');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_key(writer, names[i]);
        json_i64(writer, seq_no);
    }
    json_end(writer, '}');
    json_key(writer, "retention_leases");
    json_raw(writer, SLICE_LIT("{\"primary_term\":1,\"version\":0,\"leases\":[]}"));
}

static void write_shards(struct request *request, struct json_writer *writer, const struct catalog_index *index,
                         const struct stats_wanted *wanted, const struct index_stats *numbers)
{
    static const struct index_stats nothing = {0};
    json_key(writer, "shards");
    json_begin(writer, '{');
    for (uint32_t shard = 0; shard < index->shard_count && !writer->buf->overflow; shard++) {
        char name[16];
        struct buf text = BUF_INIT(BUF_UNLIMITED);
        struct json_writer inner;
        snprintf(name, sizeof name, "%u", shard);
        json_writer_init(&inner, &text);
        write_metrics(&inner, wanted, shard == 0 ? numbers : &nothing);
        json_key(writer, name);
        json_begin(writer, '[');
        json_begin(writer, '{');
        json_key(writer, "routing");
        json_raw(writer, arena_printf(request->arena,
                                      "{\"state\":\"STARTED\",\"primary\":true,\"node\":\"%s\","
                                      "\"relocating_node\":null}",
                                      request->api->node_id));
        json_key(writer, "commit");
        json_begin(writer, '{');
        json_key(writer, "id");
        json_string(writer, index->uuid);
        json_key(writer, "generation");
        json_u64(writer, 1);
        json_key(writer, "user_data");
        json_raw(writer, SLICE_LIT("{}"));
        json_key(writer, "num_docs");
        json_u64(writer, shard == 0 ? numbers->documents : 0);
        json_end(writer, '}');
        write_seq_no(writer, shard == 0 ? catalog_index_next_seq_no(index) - 1 : -1);
        if (text.len > 2) { /* the metrics are members of the shard itself */
            buf_byte(writer->buf, ',');
            buf_append(writer->buf, text.data + 1, text.len - 2);
        }
        buf_deinit(&text);
        json_end(writer, '}');
        json_end(writer, ']');
    }
    json_end(writer, '}');
}

static void write_indices(struct request *request, const struct index_set *set, const struct stats_wanted *wanted,
                          bool shards, struct json_writer *writer)
{
    json_key(writer, "indices");
    json_begin(writer, '{');
    for (size_t i = 0; i < set->count; i++) {
        const struct catalog_index *index = set->targets[i].index;
        struct index_stats numbers = {0};
        index_stats_add(request, index, &numbers);
        json_key_slice(writer, index->name);
        json_begin(writer, '{');
        json_key(writer, "uuid");
        json_string(writer, index->uuid);
        write_both(writer, wanted, &numbers);
        if (shards)
            write_shards(request, writer, index, wanted, &numbers);
        json_end(writer, '}');
    }
    json_end(writer, '}');
}

struct stats_job {
    struct index_set set;
    struct stats_wanted wanted;
};

static int write_stats(struct request *request)
{
    const struct stats_job *job = request->context;
    struct slice level = request_param(request, "level");
    struct json_writer writer;
    struct index_stats all = {0};
    struct stats_wanted of_all = job->wanted;
    if (job->set.count == 0)
        of_all.metrics = 0; /* as in Elasticsearch, whose sum over no shard is empty */
    for (size_t i = 0; i < job->set.count; i++)
        index_stats_add(request, job->set.targets[i].index, &all);
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    reply_shards(&writer, index_set_copies(&job->set), index_set_primaries(&job->set));
    json_key(&writer, "_all");
    json_begin(&writer, '{');
    write_both(&writer, &of_all, &all);
    json_end(&writer, '}');
    if (!slice_is(level, "cluster"))
        write_indices(request, &job->set, &job->wanted, slice_is(level, "shards"), &writer);
    json_end(&writer, '}');
    return REQUEST_DONE;
}

int handle_stats(struct request *request)
{
    struct catalog_options options = CATALOG_OPTIONS_DEFAULT;
    struct slice level = request_param(request, "level");
    struct stats_job *job = arena_zalloc(request->arena, sizeof *job);
    int r = read_metrics(request, &job->wanted.metrics);
    if (r != 0 || (r = index_set_read(request, &options, &job->set)) != 0)
        return r;
    if (level.data != NULL && !slice_is(level, "cluster") && !slice_is(level, "indices") && !slice_is(level, "shards"))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "level parameter must be one of [cluster] or [indices] or [shards] but was [%.*s]",
                              SLICE_ARG(level));
    bool fields = request_param(request, "fields").data != NULL;
    job->wanted.fielddata_fields = fields || request_param(request, "fielddata_fields").data != NULL;
    job->wanted.completion_fields = fields || request_param(request, "completion_fields").data != NULL;
    job->wanted.arena = request->arena;
    request->context = job;
    bool is_short = !slice_is(level, "shards") || index_set_primaries(&job->set) <= INDEX_SET_SHORT;
    return is_short ? write_stats(request) : request_work(request, write_stats);
}
