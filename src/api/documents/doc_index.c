/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index, create and delete of one document.
 */
#include "api/documents/doc_write.h"

#include <inttypes.h>

#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "base/clock.h"
#include "core/documents/parse_ahead.h"
#include "mapping/shard.h"

/* A single write, kept for its completion in the request's arena. */
struct single_write {
    struct write_options options;
    struct write_item item;
};

/* --- Reading ------------------------------------------------------------------------------------------------------ */

int write_refuse_seq_no(struct request *request, int64_t seq_no)
{
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                          "sequence numbers must be non negative. got [%" PRId64 "].", seq_no);
}

int write_refuse_term(struct request *request, int64_t term)
{
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "primary term must be non negative. got [%" PRId64 "]",
                          term);
}

int write_read_numbers(struct request *request, int64_t *seq_no, int64_t *term)
{
    int r = request_long(request, "if_seq_no", seq_no);
    if (r != 0 || (r = request_long(request, "if_primary_term", term)) != 0)
        return r;
    if (*seq_no < 0 && *seq_no != SEQ_NO_ANY)
        return write_refuse_seq_no(request, *seq_no);
    return *term < 0 ? write_refuse_term(request, *term) : 0;
}

int write_item_read(struct request *request, struct write_item *item, struct write_params *ret_asked)
{
    *ret_asked = (struct write_params){.version = request_param(request, "version").data != NULL,
                                       .version_type = request_param(request, "version_type").data != NULL,
                                       .typed_path = request->route->form == FORM_TYPED};
    item->dialect = request->dialect;
    item->index = request_part(request, PART_INDEX);
    item->type = request_part(request, PART_TYPE);
    item->id = request_part(request, PART_ID);
    item->routing = request_param(request, "routing");
    if (request_param(request, "parent").len > 0 && request->dialect == DIALECT_5) {
        request->remote_action = item->op == WRITE_UPDATE ? "indices:data/write/update[s]" : NULL;
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "can't specify parent if no parent field has been configured");
    }
    int r = request_long(request, "version", &item->version);
    if (r != 0 || (r = doc_version_type(request, request_param(request, "version_type"), &item->version_type)) != 0 ||
        (r = write_read_numbers(request, &item->if_seq_no, &item->if_primary_term)) != 0)
        return r;
    if (item->version == JAVA_MATCH_ANY) {
        item->version = VERSION_ANY;
        ret_asked->version = false;
    }
    return request_bool(request, "require_alias", &item->require_alias);
}

static int read_op_type(struct request *request, struct write_item *item)
{
    struct slice text = request_param(request, "op_type");
    bool create_path = item->op == WRITE_CREATE;
    if (text.data == NULL || (create_path && request->dialect == DIALECT_5))
        return 0;
    bool is_create = slice_is_ignoring_case(text, "create");
    bool is_index = slice_is_ignoring_case(text, "index");
    if (create_path && !is_create)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "opType must be 'create', found: [%.*s]",
                              SLICE_ARG(text));
    if (!is_create && !is_index)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "opType must be 'create' or 'index', found: [%.*s]",
                              SLICE_ARG(text));
    item->op = is_create ? WRITE_CREATE : WRITE_INDEX;
    return 0;
}

/* --- wait_for_active_shards --------------------------------------------------------------------------------------- */

uint32_t write_item_shard(struct request *request, const struct write_item *item)
{
    const struct catalog_index *index = catalog_index(request_catalog(request), item->index);
    uint32_t shard_count = index == NULL ? (request->dialect == DIALECT_5 ? 5 : 1) : index->shard_count;
    return shard_of(item->routing.len > 0 ? item->routing : item->id, shard_count);
}

/*
 * Each document has one copy. A request that waits for more would wait in vain: it gets at once the
 * error that Elasticsearch returns after its timeout.
 */
int write_check_copies(struct request *request, const struct write_options *options, const struct write_item *item,
                       size_t siblings)
{
    static const char *const ops[] = {"index", "index", "update", "delete"};
    if (options->active_shards == ACTIVE_SHARDS_DEFAULT || (options->active_shards >= 0 && options->active_shards <= 1))
        return 0;
    const struct catalog_index *index = catalog_index(request_catalog(request), item->index);
    uint32_t copies = index == NULL ? 2 : index->replica_count + 1;
    uint32_t needed = options->active_shards == ACTIVE_SHARDS_ALL ? copies : (uint32_t)options->active_shards;
    if (needed <= 1)
        return 0;
    struct slice type = item->type.len > 0 ? item->type : SLICE_LIT("_doc");
    /* 7.10 cannot print the source of a line of a bulk request */
    bool shown = siblings == 0 || request->dialect == DIALECT_5;
    struct slice source = item->source.data == NULL ? SLICE_NONE
                                                    : arena_printf(request->arena, ", source[%.*s]",
                                                                   SLICE_ARG(shown ? item->source : SLICE_LIT("_na_")));
    struct slice asked =
        options->active_shards == ACTIVE_SHARDS_ALL ? SLICE_LIT("ALL") : arena_printf(request->arena, "%u", needed);
    struct slice timeout = options->timeout.len > 0 ? options->timeout : SLICE_LIT("1m");
    struct slice what = arena_printf(request->arena, "%s {[%.*s][%.*s][%.*s]%.*s}", ops[item->op],
                                     SLICE_ARG(item->index), SLICE_ARG(type), SLICE_ARG(item->id), SLICE_ARG(source));
    if (siblings > 1)
        what = arena_printf(request->arena, "%zu] requests", siblings);
    uint32_t shard = write_item_shard(request, item);
    return request_refuse(
        request, PROBLEM_UNAVAILABLE_SHARDS,
        "[%.*s][%u] Not enough active copies to meet shard count of [%.*s] (have 1, needed %u). Timeout: "
        "[%.*s], request: [BulkShardRequest [[%.*s][%u]] containing [%.*s%s]",
        SLICE_ARG(item->index), shard, SLICE_ARG(asked), needed, SLICE_ARG(timeout), SLICE_ARG(item->index), shard,
        SLICE_ARG(what), siblings > 1 ? "" : "]");
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static int single_done(struct request *request, struct command *command)
{
    const struct single_write *single = request->context;
    struct write_result *result = &command->write.results[0];
    struct write_item item = write_item_answered(&command->write.items[0], result);
    if (result->outcome == WRITE_FAILED) {
        write_result_problem(request, &item, result);
        request->problem = result->problem;
        return REQUEST_REFUSED;
    }
    struct write_reply_options reply = {.options = &single->options};
    request->exchange->status = write_result_status(result);
    write_location(request, &item, result);
    return write_result_write(request, &item, result, &reply, &request->exchange->response);
}

static int single_submit(struct request *request, struct single_write *single)
{
    struct command *command = write_command_new(request, &single->options, 1);
    single->item.lease = single->options.lease;
    command->write.items[0] = single->item;
    if (single->item.source.data != NULL) {
        command->arena.guard = request->arena->guard; /* the request is asked for while it has not been submitted */
        write_item_parse(&command->write.items[0], &command->arena);
        command->arena.guard = NULL;
    }
    write_read_ahead(request, command);
    request->context = single;
    return request_submit(request, command, single_done);
}

static int single_check(struct request *request, struct single_write *single, const struct write_params *asked)
{
    struct validation validation = {.arena = request->arena};
    int r = request_accept(request);
    if (r != 0)
        return r;
    write_item_validate(&single->item, asked, &validation);
    if ((r = validation_end(&validation, request)) != 0)
        return r;
    if (write_pipeline_missing(request_param(request, "pipeline"), request->dialect, request->arena, &request->problem))
        return REQUEST_REFUSED;
    return write_check_copies(request, &single->options, &single->item, 0);
}

static int index_one(struct request *request, enum write_op op)
{
    struct single_write *single = arena_alloc(request->arena, sizeof *single);
    struct write_params asked;
    struct write_item *item = &single->item;
    *item = WRITE_ITEM_INIT;
    item->op = op;
    if (request->exchange->body.len == 0)
        return request_refuse(request, PROBLEM_PARSE, "request body is required");
    item->source = request->exchange->body;
    int r = write_item_read(request, item, &asked);
    if (r != 0 || (r = write_options_read(request, &single->options)) != 0 || (r = read_op_type(request, item)) != 0)
        return r;
    bool no_id_in_path = (request->route->methods & (1u << HTTP_PUT)) == 0; /* such a path takes POST only */
    if (no_id_in_path && request->dialect == DIALECT_7 && request_param(request, "op_type").data == NULL)
        item->op = WRITE_CREATE; /* also if the parameter [id] has it */
    if (item->id.data == NULL) {
        item->id = id_document(&request->api->ids, clock_wall_us(), request->arena);
        item->id_generated = true;
    }
    r = single_check(request, single, &asked);
    return r != 0 ? r : single_submit(request, single);
}

int handle_doc_index(struct request *request)
{
    return index_one(request, WRITE_INDEX);
}

int handle_doc_create(struct request *request)
{
    return index_one(request, WRITE_CREATE);
}

int handle_doc_delete(struct request *request)
{
    struct single_write *single = arena_alloc(request->arena, sizeof *single);
    struct write_params asked;
    single->item = WRITE_ITEM_INIT;
    single->item.op = WRITE_DELETE;
    int r = write_item_read(request, &single->item, &asked);
    if (r != 0 || (r = write_options_read(request, &single->options)) != 0 ||
        (r = single_check(request, single, &asked)) != 0)
        return r;
    return single_submit(request, single);
}
