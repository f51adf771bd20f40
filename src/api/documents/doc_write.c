/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing documents: options, validation, replies.
 */
#include "api/documents/doc_write.h"

#include <inttypes.h>
#include <stdarg.h>

#include "api/request/api_internal.h"
#include "api/request/url.h"
#include "base/check.h"
#include "base/clock.h"
#include "core/documents/prefetch.h"
#include "json/path.h"
#include "mapping/shard.h"

#define WRITE_TIMEOUT_DEFAULT_US (10 * TL_SECOND)

/* --- Options ------------------------------------------------------------------------------------------------------ */

static int read_refresh(struct request *request, struct write_options *options)
{
    struct slice text = request_param(request, "refresh");
    if (text.data == NULL || slice_is(text, "false"))
        return 0;
    options->refreshed = text.len == 0 || slice_is(text, "true");
    options->refresh_waits = slice_is(text, "wait_for");
    if (!options->refreshed && !options->refresh_waits)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Unknown value for refresh: [%.*s].", SLICE_ARG(text));
    return 0;
}

static int read_active_shards(struct request *request, struct write_options *options)
{
    int64_t value;
    struct slice text = request_param(request, "wait_for_active_shards");
    options->active_shards = ACTIVE_SHARDS_DEFAULT;
    if (text.data == NULL)
        return 0;
    if (slice_is(text, "all")) {
        options->active_shards = ACTIVE_SHARDS_ALL;
        return 0;
    }
    if (!slice_to_i64(text, &value) || value > INT32_MAX) {
        int r =
            request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "cannot parse ActiveShardCount[%.*s]", SLICE_ARG(text));
        request->problem.caused_by = arena_zalloc(request->arena, sizeof *request->problem.caused_by);
        problem_set(request->problem.caused_by, request->arena, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"",
                    SLICE_ARG(text));
        return r;
    }
    if (value < 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "shard count cannot be a negative value");
    options->active_shards = (int32_t)value;
    return 0;
}

bool write_pipeline_missing(struct slice name, enum dialect dialect, struct arena *arena, struct problem *ret_problem)
{
    if (name.len == 0 || (slice_is(name, "_none") && dialect == DIALECT_7))
        return false;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "pipeline with id [%.*s] does not exist",
                SLICE_ARG(name));
    return true;
}

int write_options_read(struct request *request, struct write_options *ret_options)
{
    int64_t timeout = WRITE_TIMEOUT_DEFAULT_US;
    *ret_options = (struct write_options){.timeout = request_param(request, "timeout")};
    int r = request_time(request, "timeout", &timeout);
    if (r != 0 || (r = read_refresh(request, ret_options)) != 0 || (r = read_active_shards(request, ret_options)) != 0)
        return r;
    ret_options->timeout_us = timeout < 0 ? 0 : (uint64_t)timeout;
    ret_options->lease = request_param(request, "lease");
    if (ret_options->lease.data != NULL && ret_options->lease.len == 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[lease] must name a session");
    return 0;
}

size_t write_resubmitted_max(const struct write_command *done)
{
    REQUIRE(done->postponed_count <= done->item_count);
    return divided_next(done->item_count - done->postponed_count, SIZE_MAX);
}

uint64_t write_wait_end(const struct write_options *options)
{
    uint64_t now = clock_boot_us();
    return options->timeout_us < UINT64_MAX - now ? now + options->timeout_us : UINT64_MAX;
}

uint64_t write_wait_left(uint64_t until_us)
{
    uint64_t now = clock_boot_us();
    return until_us > now ? until_us - now : 0;
}

uint64_t write_read_wait(uint64_t until_us)
{
    uint64_t left = write_wait_left(until_us);
    return left > 0 ? left : 1;
}

struct command *write_command_new(struct request *request, const struct write_options *options, size_t count)
{
    struct command *command = command_new(COMMAND_WRITE, request->dialect);
    struct write_command *write = &command->write;
    write->items = arena_alloc(&command->arena, (count + 1) * sizeof *write->items);
    write->item_count = count;
    for (size_t i = 0; i < count; i++)
        write->items[i] = WRITE_ITEM_INIT;
    command->owner = request_terms(request, options->timeout_us);
    write->request = request->named;
    return command;
}

/* --- Validation --------------------------------------------------------------------------------------------------- */

void validation_add(struct validation *validation, const char *format, ...)
{
    va_list arguments;
    struct slice text = arena_append(validation->arena, validation->text, "%u: ", ++validation->count);
    va_start(arguments, format);
    text = arena_vappend(validation->arena, text, format, arguments);
    va_end(arguments);
    validation->text = arena_append(validation->arena, text, ";");
}

int validation_end(struct validation *validation, struct request *request)
{
    if (validation->count == 0)
        return 0;
    return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION, "Validation Failed: %.*s",
                          SLICE_ARG(validation->text));
}

const char *write_version_type_name(enum version_type type)
{
    static const char *const names[] = {"INTERNAL", "EXTERNAL", "EXTERNAL_GTE", "FORCE"};
    return names[type];
}

static void validate_version_range(const struct write_item *item, const struct write_params *asked,
                                   struct validation *validation)
{
    int64_t version = !asked->version ? JAVA_MATCH_ANY : item->version;
    bool fine = item->version_type == VERSION_INTERNAL ? version > 0 || version == JAVA_MATCH_ANY : version >= 0;
    if (!fine)
        validation_add(validation, "illegal version value [%" PRId64 "] for version type [%s]", version,
                       write_version_type_name(item->version_type));
}

/* if_seq_no and if_primary_term are valid together only. */
void write_validate_numbers(int64_t seq_no, int64_t term, struct validation *validation)
{
    if (seq_no != SEQ_NO_ANY && term == 0)
        validation_add(validation, "ifSeqNo is set, but primary term is [0]");
    if (seq_no == SEQ_NO_ANY && term != 0)
        validation_add(validation, "ifSeqNo is unassigned, but primary term is [%" PRId64 "]", term);
}

/* A typed call has both, too, as in 6.x. */
static void validate_numbers(const struct write_item *item, const struct write_params *asked,
                             struct validation *validation)
{
    bool by_number = item->if_seq_no != SEQ_NO_ANY;
    if (by_number && (item->version_type != VERSION_INTERNAL || asked->version))
        validation_add(validation, "compare and write operations can not use versioning");
    write_validate_numbers(item->if_seq_no, item->if_primary_term, validation);
}

static void validate_compare_and_set(const struct write_item *item, const struct write_params *asked,
                                     struct validation *validation)
{
    validate_version_range(item, asked, validation);
    if (item->version_type == VERSION_INTERNAL && asked->version)
        validation_add(validation, "internal versioning can not be used for optimistic concurrency control. Please use "
                                   "`if_seq_no` and `if_primary_term` instead");
    validate_numbers(item, asked, validation);
}

static void validate_id_length(const struct write_item *item, struct validation *validation)
{
    if (item->id.len <= DOC_ID_BYTES_MAX)
        return;
    if (item->dialect == DIALECT_5)
        validation_add(validation, "id is too long, must be no longer than 512 bytes but was: %zu", item->id.len);
    else
        validation_add(validation, "id [%.*s] is too long, must be no longer than 512 bytes but was: %zu",
                       SLICE_ARG(item->id), item->id.len);
}

/* Returns: false when nothing more is to be said, as there. */
static bool validate_create(const struct write_item *item, const struct write_params *asked,
                            struct validation *validation)
{
    if (item->version_type != VERSION_INTERNAL)
        validation_add(validation, "create operations only support internal versioning. use index instead");
    else if (asked->version)
        validation_add(validation, "create operations do not support explicit versions. use index instead");
    else if (item->dialect == DIALECT_7 && (item->if_seq_no != SEQ_NO_ANY || item->if_primary_term != 0))
        validation_add(validation, "create operations do not support compare and set. use index instead");
    else
        return true;
    return false;
}

static void validate_update(const struct write_item *item, const struct write_params *asked,
                            struct validation *validation)
{
    const struct write_update *update = item->update;
    bool scripted =
        update->script_source.data != NULL || update->script_id.data != NULL || update->script_file.data != NULL;
    if (item->dialect == DIALECT_5 && item->version_type != VERSION_INTERNAL && item->version_type != VERSION_FORCE)
        validation_add(validation, "version type [%s] is not supported by the update API",
                       write_version_type_name(item->version_type));
    else if (item->dialect == DIALECT_5) {
        if (asked->version && asked->retries > 0)
            validation_add(validation, "can't provide both retry_on_conflict and a specific version");
        validate_version_range(item, asked, validation);
    }
    if (item->if_seq_no != SEQ_NO_ANY) {
        if (asked->retries > 0)
            validation_add(validation, "compare and write operations can not be retried");
        if (update->doc_as_upsert)
            validation_add(validation, "compare and write operations can not be used with upsert");
        if (update->upsert.data != NULL)
            validation_add(validation, "upsert requests don't support `if_seq_no` and `if_primary_term`");
    }
    if (!scripted && update->doc.data == NULL)
        validation_add(validation, "script or doc is missing");
    if (scripted && update->doc.data != NULL)
        validation_add(validation, "can't provide both script and doc");
    if (update->doc.data == NULL && update->doc_as_upsert)
        validation_add(validation, "doc must be specified if doc_as_upsert is enabled");
}

void write_item_validate(const struct write_item *item, const struct write_params *asked, struct validation *validation)
{
    if (item->op == WRITE_CREATE && !validate_create(item, asked, validation))
        return;
    if (item->id_generated && item->dialect == DIALECT_7 && (asked->version || item->version_type != VERSION_INTERNAL))
        validation_add(validation, "an id must be provided if version type or value are set");
    if (item->dialect == DIALECT_7)
        validate_compare_and_set(item, asked, validation);
    else if (item->op != WRITE_UPDATE)
        validate_version_range(item, asked, validation);
    if (item->dialect == DIALECT_5)
        validate_numbers(item, asked, validation);
    if (item->op != WRITE_DELETE)
        validate_id_length(item, validation);
    if (item->id_generated && item->dialect == DIALECT_5 &&
        (asked->version || item->version_type != VERSION_INTERNAL || (item->op == WRITE_CREATE && asked->typed_path)))
        validation_add(validation, "an id must be provided if version type or value are set");
    if (item->op == WRITE_UPDATE)
        validate_update(item, asked, validation);
}

void write_read_ahead(struct request *request, struct command *command)
{
    struct write_item *item = &command->write.items[0];
    const struct catalog_index *index;
    const struct catalog_alias *alias;
    struct problem ignored;
    if (request->transaction.len > 0 || item->id_generated || item->id.len == 0)
        return;
    tl_cleanup(catalog_unrefp) struct catalog *catalog = journal_catalog(request->api->journal);
    struct view view = {request->api->store, journal_stable(request->api->journal), NULL};
    if (catalog_find(catalog, item->index, true, item->dialect, &command->arena, &index, &alias, &ignored) != 0)
        return;
    const struct mapping_type *type = mapping_type(index->mapping, item->type.len > 0 ? item->type : SLICE_LIT("_doc"));
    if (type != NULL)
        prefetch_attach(command, item, prefetch_read(&view, index->number, type->number, item->id, &command->arena));
}

/* --- Problems ----------------------------------------------------------------------------------------------------- */

/* The parts of an index that texts about its documents need. */
static struct catalog_index index_of_result(const struct write_result *result)
{
    return (struct catalog_index){.name = result->index,
                                  .uuid = result->index_uuid,
                                  .shard_count = result->shard_count == 0 ? 1 : result->shard_count};
}

void write_result_problem(struct request *request, const struct write_item *item, struct write_result *result)
{
    struct problem *problem = &result->problem;
    struct catalog_index index = index_of_result(result);
    struct slice type = item->type.len > 0 ? item->type : SLICE_LIT("_doc"), reason = problem->reason;
    if (problem->type != PROBLEM_DOCUMENT_SOURCE_MISSING || problem->details.len > 0)
        return;
    /* the details are those of a conflict */
    doc_conflict_problem(request->arena, item->dialect, &index, type, item->id, item->routing, "", problem);
    problem->type = PROBLEM_DOCUMENT_SOURCE_MISSING;
    problem->reason = reason;
}

struct write_item write_item_answered(const struct write_item *item, const struct write_result *result)
{
    struct write_item answered = *item;
    if (result->id.data != NULL)
        answered.id = result->id;
    return answered;
}

/* --- Replies ------------------------------------------------------------------------------------------------------ */

int write_result_status(const struct write_result *result)
{
    switch (result->outcome) {
    case WRITE_CREATED: return 201;
    case WRITE_NOT_FOUND: return 404;
    case WRITE_FAILED: return problem_status(&result->problem);
    default: return 200;
    }
}

static const char *result_name(enum write_outcome outcome)
{
    static const char *const names[] = {"created", "updated", "deleted", "not_found", "noop"};
    return names[outcome];
}

static void write_names(struct request *request, const struct write_item *item, const struct write_result *result,
                        struct buf *buf)
{
    buf_lit(buf, "\"_index\":");
    buf_json_string(buf, result->index);
    if (item->dialect == DIALECT_5) {
        buf_lit(buf, ",\"_type\":");
        buf_json_string(buf, item->type.len > 0 ? item->type : result->type);
    } else if (!request->form.compatible_8) {
        buf_lit(buf, ",\"_type\":");
        buf_json_string(buf, item->type.len > 0 ? item->type : SLICE_LIT("_doc"));
    }
    buf_lit(buf, ",\"_id\":");
    buf_json_string(buf, item->id);
}

static void write_copies(struct request *request, const struct write_item *item, const struct write_result *result,
                         bool in_bulk, struct buf *buf)
{
    if (result->outcome == WRITE_NOOP && !in_bulk && item->op == WRITE_UPDATE) {
        buf_lit(buf, ",\"_shards\":{\"total\":0,\"successful\":0,\"failed\":0}");
        return;
    }
    const struct catalog_index *index = catalog_index(request_catalog(request), result->index);
    buf_lit(buf, ",\"_shards\":{\"total\":");
    buf_u64(buf, index == NULL ? 2 : index->replica_count + 1);
    buf_lit(buf, ",\"successful\":1,\"failed\":0}");
}

static void write_numbers(const struct write_result *result, enum dialect dialect, struct buf *buf)
{
    if (dialect == DIALECT_5 || result->seq_no < 0) /* a document that never existed has none */
        return;
    buf_lit(buf, ",\"_seq_no\":");
    buf_i64(buf, result->seq_no);
    buf_lit(buf, ",\"_primary_term\":1");
}

static bool add_field_value(void *context, yyjson_val *leaf)
{
    struct json_writer *writer = context;
    json_value(writer, leaf, DIALECT_5);
    return true;
}

/* "fields" of 5.x updates: leaves of the new source by path. */
static int write_fields(const struct write_result *result, const struct write_reply_options *reply, struct arena *arena,
                        struct json_writer *writer)
{
    struct json_doc doc;
    bool any = false;
    int r = json_parse_stored(arena, result->source, &doc);
    for (size_t i = 0; r == 0 && i < reply->field_count; i++) {
        if (slice_is(reply->fields[i], "_source") || json_path_first(doc.root, reply->fields[i]) == NULL)
            continue;
        if (!any) {
            json_key(writer, "fields");
            json_begin(writer, '{');
        }
        any = true;
        json_key_slice(writer, reply->fields[i]);
        json_begin(writer, '[');
        json_path_each(doc.root, reply->fields[i], add_field_value, writer);
        json_end(writer, ']');
    }
    if (any)
        json_end(writer, '}');
    return r;
}

static int write_got(struct request *request, const struct write_item *item, const struct write_result *result,
                     const struct write_reply_options *reply, struct buf *buf)
{
    int r = 0;
    bool source = reply->source != NULL && reply->source->given && reply->source->fetch;
    struct json_writer writer;
    for (size_t i = 0; i < reply->field_count; i++)
        source = source || slice_is(reply->fields[i], "_source");
    /* An upsert whose script wanted nothing left nothing to show. */
    bool missing = result->outcome == WRITE_NOOP && result->version < 0;
    if (missing) {
        buf_lit(buf, ",\"get\":{\"found\":false}"); /* asked for or not */
        return 0;
    }
    if (result->source.data == NULL || (!source && reply->field_count == 0))
        return 0;
    /* Of a document that its script deleted only the parts are shown that were asked for by name. */
    bool all =
        reply->source == NULL || (reply->source->filter.include_count == 0 && reply->source->filter.exclude_count == 0);
    if (result->outcome == WRITE_DELETED && all)
        source = false;
    buf_lit(buf, ",\"get\":{");
    if (item->dialect == DIALECT_7) {
        buf_lit(buf, "\"_seq_no\":");
        buf_i64(buf, result->seq_no);
        buf_lit(buf, ",\"_primary_term\":1,");
    }
    buf_lit(buf, "\"found\":true");
    if (source && result->outcome != WRITE_DELETED) {
        buf_lit(buf, ",\"_source\":");
        r = source_filter_write(buf, result->source, reply->source, request->arena, item->dialect);
    }
    json_writer_init(&writer, buf);
    writer.comma = true;
    if (r == 0 && reply->field_count > 0)
        r = write_fields(result, reply, request->arena, &writer);
    buf_byte(buf, '}');
    return r;
}

int write_result_write(struct request *request, const struct write_item *item, const struct write_result *result,
                       const struct write_reply_options *reply, struct buf *buf)
{
    int r = 0;
    bool old = item->dialect == DIALECT_5;
    buf_byte(buf, '{');
    if (old && item->op == WRITE_DELETE)
        buf_slice(buf, result->outcome == WRITE_DELETED ? SLICE_LIT("\"found\":true,") : SLICE_LIT("\"found\":false,"));
    write_names(request, item, result, buf);
    buf_lit(buf, ",\"_version\":");
    buf_i64(buf, result->version);
    buf_lit(buf, ",\"result\":\"");
    buf_slice(buf, slice_from(result_name(result->outcome)));
    buf_byte(buf, '"');
    if (reply->options->refreshed && (result->outcome != WRITE_NOOP || (reply->in_bulk && !old)))
        buf_lit(buf, ",\"forced_refresh\":true");
    write_copies(request, item, result, reply->in_bulk, buf);
    write_numbers(result, item->dialect, buf);
    if (old && (item->op == WRITE_INDEX || item->op == WRITE_CREATE))
        buf_slice(buf,
                  result->outcome == WRITE_CREATED ? SLICE_LIT(",\"created\":true") : SLICE_LIT(",\"created\":false"));
    if (item->op == WRITE_UPDATE)
        r = write_got(request, item, result, reply, buf);
    if (reply->in_bulk) {
        buf_lit(buf, ",\"status\":");
        buf_i64(buf, write_result_status(result));
    }
    buf_byte(buf, '}');
    return r;
}

void write_location(struct request *request, const struct write_item *item, const struct write_result *result)
{
    if (result->outcome != WRITE_CREATED)
        return;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_byte(&text, '/');
    url_encode(&text, result->index);
    buf_byte(&text, '/');
    url_encode(&text, item->dialect == DIALECT_5 || item->type.len > 0 ? item->type : SLICE_LIT("_doc"));
    buf_byte(&text, '/');
    url_encode(&text, item->id);
    if (item->routing.len > 0) {
        buf_lit(&text, "?routing=");
        url_encode(&text, item->routing);
    }
    reply_header(request, "Location", arena_copy(request->arena, buf_as_slice(&text)));
    buf_deinit(&text);
}
