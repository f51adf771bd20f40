/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _bulk: many writes in one request, each by itself or, with ?atomic=true, all or none.
 */
#include <time.h>

#include "api/api_internal.h"
#include "api/bulk_parse.h"
#include "api/handlers.h"
#include "api/problem_reply.h"
#include "base/map.h"

/* What the completion needs. In the request's arena. */
struct bulk_request {
    struct write_options options;
    struct bulk bulk;
    uint64_t started_ms;
};

static uint64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* --- Replies ------------------------------------------------------------------------------------------------------ */

static const char *op_name(enum write_op op)
{
    static const char *const names[] = {"index", "create", "update", "delete"};
    return names[op];
}

/* With `current`: a conflict also says which version and number are there, so that all can be tried again at once. */
static void write_failure(struct request *request, const struct write_item *item, struct write_result *result,
                          enum dialect dialect, bool current, struct buf *buf)
{
    struct json_writer writer;
    json_writer_init(&writer, buf);
    write_result_problem(request, item, result, dialect);
    json_begin(&writer, '{');
    json_key(&writer, "_index");
    json_string(&writer, result->index.data != NULL ? result->index : item->index);
    if (!request->form.compatible_8) {
        json_key(&writer, "_type");
        json_string(&writer, dialect == DIALECT_5 || item->type.len > 0 ? item->type : SLICE_LIT("_doc"));
    }
    json_key(&writer, "_id");
    json_string(&writer, item->id);
    json_key(&writer, "status");
    json_i64(&writer, problem_status(&result->problem));
    if (current && result->conflict != CONFLICT_NONE && result->seq_no >= 0) {
        json_key(&writer, "_version");
        json_i64(&writer, result->version);
        json_key(&writer, "_seq_no");
        json_i64(&writer, result->seq_no);
    }
    json_key(&writer, "error");
    problem_write_item(&writer, &result->problem);
    json_end(&writer, '}');
}

static int write_entry(struct request *request, const struct bulk_request *bulk, const struct write_item *item,
                       const struct bulk_action *action, struct write_result *result, bool rolled_back, struct buf *buf)
{
    enum dialect dialect = action->typed ? DIALECT_5 : DIALECT_7;
    int r = 0;
    buf_lit(buf, "{\"");
    buf_slice(buf, slice_from(op_name(item->op)));
    buf_lit(buf, "\":");
    if (result->outcome == WRITE_FAILED) {
        write_failure(request, item, result, dialect, rolled_back, buf);
    } else {
        struct write_view view = {.options = &bulk->options,
                                  .source = &action->source,
                                  .fields = action->fields,
                                  .field_count = action->field_count,
                                  .in_bulk = true,
                                  .dialect = dialect};
        r = write_result_write(request, item, result, &view, buf);
    }
    buf_byte(buf, '}');
    return r;
}

/*
 * What became of each action of the body: the core's results (NULL: it was not asked), and between them those that it
 * never saw.
 */
static struct write_result *all_results(struct request *request, const struct bulk *bulk,
                                        const struct write_result *results)
{
    struct write_result *all = arena_zalloc(request->arena, (bulk->count + 1) * sizeof *all);
    size_t next = 0;
    for (size_t i = 0; i < bulk->count; i++) {
        if (bulk->actions[i].refused.type == PROBLEM_NONE) {
            if (results != NULL)
                all[i] = results[next++];
            continue;
        }
        all[i].outcome = WRITE_FAILED;
        all[i].problem = bulk->actions[i].refused;
    }
    return all;
}

static int bulk_reply(struct request *request, const struct bulk_request *bulk, const struct write_result *results,
                      bool rolled_back)
{
    struct write_result *all = all_results(request, &bulk->bulk, results);
    struct buf *buf = &request->exchange->response;
    bool failed = false, comma = false;
    for (size_t i = 0; i < bulk->bulk.count; i++)
        failed = failed || all[i].outcome == WRITE_FAILED;
    request->exchange->status = rolled_back ? 409 : 200;
    buf_printf(buf, "{\"took\":%llu,%s\"errors\":%s,%s\"items\":[",
               (unsigned long long)(monotonic_ms() - bulk->started_ms),
               bulk->bulk.pipeline_named ? "\"ingest_took\":0," : "", failed ? "true" : "false",
               rolled_back ? "\"rolled_back\":true," : "");
    for (size_t i = 0; i < bulk->bulk.count; i++) {
        if (rolled_back && all[i].outcome != WRITE_FAILED)
            continue;
        if (comma)
            buf_byte(buf, ',');
        comma = true;
        int r = write_entry(request, bulk, &bulk->bulk.items[i], &bulk->bulk.actions[i], &all[i], rolled_back, buf);
        if (r != 0)
            return r;
    }
    buf_lit(buf, "]}");
    return REQUEST_DONE;
}

static int bulk_done(struct request *request, struct command *command)
{
    return bulk_reply(request, request->context, command->write.results, command->write.rolled_back);
}

/* --- What the core never sees ------------------------------------------------------------------------------------- */

static struct slice shard_key(struct request *request, const struct write_item *item)
{
    return arena_printf(request->arena, "%.*s/%u", SLICE_ARG(item->index), write_item_shard(request, item));
}

/* Items that want more copies than there are fail by themselves, those of a shard together. */
static void refuse_copies(struct request *request, const struct bulk_request *bulk)
{
    struct map siblings = MAP_INIT;
    for (size_t i = 0; i < bulk->bulk.count; i++) {
        struct slice key = shard_key(request, &bulk->bulk.items[i]);
        size_t *count = map_get(&siblings, key);
        if (count == NULL)
            map_put(&siblings, key, count = arena_zalloc(request->arena, sizeof *count));
        (*count)++;
    }
    for (size_t i = 0; i < bulk->bulk.count; i++) {
        const struct write_item *item = &bulk->bulk.items[i];
        const size_t *count = map_get(&siblings, shard_key(request, item));
        if (bulk->bulk.actions[i].refused.type == PROBLEM_NONE &&
            write_check_copies(request, &bulk->options, item, *count) != 0)
            bulk->bulk.actions[i].refused = request->problem;
    }
    map_deinit(&siblings);
}

/* --- The request -------------------------------------------------------------------------------------------------- */

/* The items that the core gets to see, in the command's arena. Returns: how many. */
static size_t items_for_core(struct command *command, const struct bulk *bulk, bool parse)
{
    struct write_item *items = arena_alloc(&command->arena, (bulk->count + 1) * sizeof *items);
    size_t count = 0;
    for (size_t i = 0; i < bulk->count; i++) {
        if (bulk->actions[i].refused.type != PROBLEM_NONE)
            continue;
        items[count] = bulk->items[i];
        if (parse && items[count].source.data != NULL)
            write_item_parse(&items[count], command->dialect, &command->arena);
        count++;
    }
    command->write.items = items;
    return count;
}

static int bulk_submit(struct request *request, struct bulk_request *bulk, bool atomic)
{
    struct command *command = write_command_new(request, &bulk->options, 0);
    command->dialect = bulk->bulk.actions[0].typed ? DIALECT_5 : DIALECT_7;
    command->write.atomic = atomic;
    command->write.item_count =
        items_for_core(command, &bulk->bulk, request->exchange->body.len <= BULK_PARSE_BYTES_MAX);
    request->context = bulk;
    if (command->write.item_count == bulk->bulk.count || (!atomic && command->write.item_count > 0))
        return request_submit(request, command, bulk_done);
    command_free(command); /* nothing is left to do, or not all of it can be done */
    return bulk_reply(request, bulk, NULL, atomic);
}

static int read_defaults(struct request *request, struct bulk_defaults *defaults, bool *ret_atomic)
{
    *defaults = (struct bulk_defaults){.index = request_part(request, PART_INDEX),
                                       .type = request_part(request, PART_TYPE),
                                       .routing = request_param(request, "routing"),
                                       .pipeline = request_param(request, "pipeline"),
                                       .lease = request_param(request, "lease")};
    if (defaults->type.len == 0)
        defaults->type = request_param(request, "type");
    if (defaults->index.data == NULL)
        defaults->index = request_param(request, "index");
    if (slice_is(defaults->type, "_doc"))
        defaults->type = SLICE_NONE;
    int r = source_filter_params(request, &defaults->source);
    if (r != 0 || (r = request_bool(request, "require_alias", &defaults->require_alias)) != 0)
        return r;
    return request_bool(request, "atomic", ret_atomic);
}

static int bulk_run(struct request *request)
{
    struct bulk_request *bulk = arena_alloc(request->arena, sizeof *bulk);
    struct bulk_defaults defaults;
    bool atomic = false;
    bulk->started_ms = monotonic_ms();
    int r = read_defaults(request, &defaults, &atomic);
    if (r != 0 || (r = write_options_read(request, &bulk->options)) != 0)
        return r;
    if (request->exchange->body.len == 0)
        return request_refuse(request, PROBLEM_PARSE, "request body is required");
    if ((r = bulk_parse(request, request->exchange->body, &defaults, &bulk->bulk)) != 0 ||
        (r = request_accept(request)) != 0 || (r = bulk_validate(request, &bulk->bulk)) != 0)
        return r;
    if (bulk->options.active_shards == ACTIVE_SHARDS_ALL || bulk->options.active_shards > 1)
        refuse_copies(request, bulk);
    return bulk_submit(request, bulk, atomic);
}

/* A large body takes milliseconds to parse, in which the connections of this polling thread would have to wait. */
int handle_bulk(struct request *request)
{
    return request->exchange->body.len > BULK_INLINE_BYTES_MAX ? request_work(request, bulk_run) : bulk_run(request);
}
