/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading single documents.
 *
 * Replies are written straight into the response, without a tree in between: a get is the commonest request.
 */
#include "api/documents/doc_read.h"

#include <inttypes.h>

#include "api/request/api_internal.h"
#include "api/documents/doc_write.h"
#include "core/documents/session_tombstone.h"
#include "api/request/handlers.h"
#include "api/request/preference.h"
#include "api/request/request_budget.h"
#include "json/each.h"
#include "json/path.h"
#include "mapping/shard.h"

enum {
    DOC_INLINE_BYTES = 4 << 20, /* copied where the request came in */
    VERSION_STEPS = 2000,       /* of the account, for each that is looked for */
};

#define VERSION_STRIDE_US (CORE_TOMBSTONE_US / 2)

/* --- Parameters --------------------------------------------------------------------------------------------------- */

int doc_version_type(struct request *request, struct slice text, enum version_type *ret_type)
{
    if (text.data == NULL || slice_is(text, "internal"))
        *ret_type = VERSION_INTERNAL;
    else if (slice_is(text, "external") || slice_is(text, "external_gt"))
        *ret_type = VERSION_EXTERNAL;
    else if (slice_is(text, "external_gte"))
        *ret_type = VERSION_EXTERNAL_GTE;
    else if (slice_is(text, "force") && request->dialect == DIALECT_5)
        *ret_type = VERSION_FORCE;
    else
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "No version type match [%.*s]", SLICE_ARG(text));
    return 0;
}

static int read_stored_fields(struct request *request, struct doc_get_params *query)
{
    struct slice text = request_param(request, "stored_fields");
    if (text.data == NULL)
        return 0;
    query->no_fields = slice_is(text, "_none_");
    struct slice *items = arena_alloc(request->arena, (text.len + 1) * sizeof *items);
    while (text.len > 0) {
        size_t len = slice_find_byte(text, ',');
        if (len > 0)
            items[query->stored_field_count++] = slice_make(text.data, len);
        text = slice_from_offset(text, len + 1);
    }
    query->stored_fields = items;
    return 0;
}

int doc_read_params(struct request *request, struct doc_get_params *ret_query)
{
    bool ignored = false;
    int r;
    *ret_query =
        (struct doc_get_params){.dialect = request->dialect, .version = VERSION_ANY, .source = SOURCE_FILTER_ALL};
    if ((r = request_bool(request, "refresh", &ignored)) != 0)
        return r;
    if (request_param(request, "fields").data != NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "the parameter [fields] is no longer supported, please use [stored_fields] to retrieve "
                              "stored fields or [_source] to load the field from _source");
    if ((r = request_bool(request, "realtime", &ignored)) != 0 || (r = read_stored_fields(request, ret_query)) != 0 ||
        (r = source_filter_params(request, &ret_query->source)) != 0)
        return r;
    ret_query->routing = request_param(request, "routing");
    if (ret_query->routing.len == 0)
        ret_query->routing = request_param(request, "parent");
    return 0;
}

/* The version that the client expects. -3 means any version; -1, which means that here internally, is an error. */
static int read_version(struct request *request, struct doc_get_params *query)
{
    int64_t version = JAVA_MATCH_ANY;
    int r = request_long(request, "version", &version);
    if (r != 0 || (r = doc_version_type(request, request_param(request, "version_type"), &query->version_type)) != 0 ||
        (r = request_accept(request)) != 0)
        return r;
    bool fine = version == JAVA_MATCH_ANY || version >= (query->version_type == VERSION_INTERNAL ? 1 : 0);
    query->version = version == JAVA_MATCH_ANY ? VERSION_ANY : version;
    if (fine)
        return 0;
    return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                          "Validation Failed: 1: illegal version value [%" PRId64 "] for version type [%s];", version,
                          write_version_type_name(query->version_type));
}

static int read_query(struct request *request, struct doc_get_params **ret_query)
{
    struct doc_get_params *query = arena_alloc(request->arena, sizeof *query);
    int r = doc_read_params(request, query);
    if (r != 0)
        return r;
    query->index = request_part(request, PART_INDEX);
    query->type = request_part(request, PART_TYPE);
    query->id = request_part(request, PART_ID);
    if ((r = read_version(request, query)) != 0)
        return r;
    *ret_query = query;
    return 0;
}

struct lock_target doc_lock_target(const struct doc_get_params *query)
{
    return (struct lock_target){.mode = LOCK_S, .index = query->index, .type = query->type, .id = query->id};
}

/* --- Looking up --------------------------------------------------------------------------------------------------- */

void doc_conflict_problem(struct arena *arena, enum dialect dialect, const struct catalog_index *index,
                          struct slice type, struct slice id, struct slice routing, const char *text,
                          struct problem *ret_problem)
{
    uint32_t shard = shard_of(routing.len > 0 ? routing : id, index->shard_count);
    if (dialect == DIALECT_5)
        problem_set(ret_problem, arena, PROBLEM_VERSION_CONFLICT, "[%.*s][%.*s]: version conflict, %s", SLICE_ARG(type),
                    SLICE_ARG(id), text);
    else
        problem_set(ret_problem, arena, PROBLEM_VERSION_CONFLICT, "[%.*s]: version conflict, %s", SLICE_ARG(id), text);
    struct buf details = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&details, "\"index_uuid\":\"%.*s\",\"shard\":\"%" PRIu32 "\",\"index\":", SLICE_ARG(index->uuid), shard);
    buf_json_string(&details, index->name);
    ret_problem->details = arena_copy(arena, buf_as_slice(&details));
    buf_deinit(&details);
}

/*
 * A document written with a routing is found only by requests that lead to the same shard, as in
 * Elasticsearch; with one shard all do.
 */
static bool routing_leads_there(const struct doc_get_params *query, const struct catalog_index *index,
                                const struct doc *doc)
{
    if (query->any_routing || index->shard_count == 1 || (doc->routing.len == 0 && query->routing.len == 0))
        return true;
    struct slice asked = query->routing.len > 0 ? query->routing : query->id;
    struct slice kept = doc->routing.len > 0 ? doc->routing : query->id;
    return shard_of(asked, index->shard_count) == shard_of(kept, index->shard_count);
}

static int get_of_type(struct request *request, const struct doc_get_params *query, struct doc_get_result *found)
{
    int r = doc_get(&request->view, found->index->number, found->type->number, query->id, &found->doc);
    if (r == DOC_TOO_OLD)
        return request_refuse(request, PROBLEM_TIMESTAMP_TOO_OLD, "the history of that timestamp is gone");
    if (r != 0)
        return r == DOC_NOT_FOUND ? 0 : tl_trace(r);
    found->found = routing_leads_there(query, found->index, &found->doc);
    if (!found->found)
        doc_release(&found->doc);
    return 0;
}

/* 5.6's type `_all`: whichever type has the id. */
static int get_of_any_type(struct request *request, const struct doc_get_params *query, struct doc_get_result *found)
{
    const struct mapping *mapping = found->index->mapping;
    for (size_t i = 0; i < mapping_type_count(mapping) && !found->found; i++) {
        found->type = mapping_type_at(mapping, i);
        int r = get_of_type(request, query, found);
        if (r != 0)
            return r;
    }
    return 0;
}

static int check_routing_required(struct request *request, const struct doc_get_params *query,
                                  const struct doc_get_result *found, struct problem *ret_problem)
{
    if (!found->type->routing_required || query->routing.len > 0 || query->any_routing)
        return 0;
    problem_set(ret_problem, request->arena, PROBLEM_ROUTING_MISSING, "routing is required for [%.*s]/[%.*s]/[%.*s]",
                SLICE_ARG(found->index->name), SLICE_ARG(found->type->name), SLICE_ARG(query->id));
    problem_details(ret_problem, request->arena, "\"index_uuid\":\"_na_\",\"index\":%.*s",
                    SLICE_ARG(request_quoted(request, found->index->name)));
    return REQUEST_REFUSED;
}

static int check_version(struct request *request, const struct doc_get_params *query, struct doc_get_result *found,
                         struct problem *ret_problem)
{
    if (!found->found || query->version == VERSION_ANY || query->version_type == VERSION_FORCE ||
        query->version == found->doc.version)
        return 0;
    struct slice text =
        arena_printf(request->arena, "current version [%" PRId64 "] is different than the one provided [%" PRId64 "]",
                     found->doc.version, query->version);
    doc_conflict_problem(request->arena, query->dialect, found->index, found->type->name, query->id, query->routing,
                         text.data, ret_problem);
    doc_release(&found->doc);
    return REQUEST_REFUSED;
}

int doc_find(struct request *request, const struct doc_get_params *query, struct doc_get_result *ret_found,
             struct problem *ret_problem)
{
    const struct catalog_alias *alias;
    struct doc_get_params routed = *query;
    *ret_found = (struct doc_get_result){NULL};
    int r = catalog_find(request->catalog, query->index, false, query->dialect, request->arena, &ret_found->index,
                         &alias, ret_problem);
    if (r != 0)
        return r > 0 ? REQUEST_REFUSED : r;
    if (alias != NULL && routed.routing.len == 0)
        routed.routing = alias->search_routing;
    r = preference_check(request, query->dialect, ret_found->index,
                         shard_of(routed.routing.len > 0 ? routed.routing : query->id, ret_found->index->shard_count),
                         query->type, query->id, routed.routing, ret_problem);
    if (r != 0) {
        if (ret_problem->type != PROBLEM_NULL_POINTER)
            request->remote_action = NULL; /* found out before a node is asked */
        return r;
    }
    /* Only _mget of 7.10 accepts the type. */
    bool all = query->dialect == DIALECT_7 && query->in_mget && slice_is(query->type, "_all");
    if (!query->empty_type)
        ret_found->type = mapping_type(ret_found->index->mapping, all ? SLICE_NONE : query->type);
    if (query->dialect == DIALECT_5 && (query->type.len == 0 || slice_is(query->type, "_all")))
        r = get_of_any_type(request, &routed, ret_found);
    else if (ret_found->type != NULL)
        r = check_routing_required(request, &routed, ret_found, ret_problem);
    if (r == 0 && ret_found->type != NULL && !ret_found->found && query->id.len <= DOC_ID_BYTES_MAX)
        r = get_of_type(request, &routed, ret_found);
    if (r != 0)
        return r;
    catalog_index_count_stat(ret_found->index, ret_found->found ? INDEX_STAT_GETS_FOUND : INDEX_STAT_GETS_MISSING, 1);
    return check_version(request, &routed, ret_found, ret_problem);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

/*
 * Of a request in 7.10's form: the type that its path names; _mget shows the type that the index
 * really has, and null where it has none yet.
 */
static void write_type(const struct doc_get_params *query, const struct doc_get_result *found, struct buf *buf)
{
    if (query->empty_type)
        buf_lit(buf, "\"\"");
    else if (!query->in_mget)
        buf_json_string(buf, query->type.len > 0 ? query->type : SLICE_LIT("_doc"));
    else if (found->type != NULL)
        buf_json_string(buf, found->type->name);
    else if (query->type.len > 0)
        buf_json_string(buf, query->type);
    else
        buf_lit(buf, "null");
}

static void write_head(struct request *request, const struct doc_get_params *query, const struct doc_get_result *found,
                       struct buf *buf)
{
    buf_lit(buf, "{\"_index\":");
    buf_json_string(buf, found->index->name);
    if (query->dialect == DIALECT_5) {
        buf_lit(buf, ",\"_type\":");
        buf_json_string(buf, found->type != NULL ? found->type->name : query->type);
    } else if (!request->form.compatible_8) {
        buf_lit(buf, ",\"_type\":");
        write_type(query, found, buf);
    }
    buf_lit(buf, ",\"_id\":");
    buf_json_string(buf, query->id);
}

static void write_numbers(enum dialect dialect, const struct doc *doc, struct buf *buf)
{
    buf_lit(buf, ",\"_version\":");
    buf_i64(buf, doc->version);
    if (dialect == DIALECT_7) {
        buf_lit(buf, ",\"_seq_no\":");
        buf_i64(buf, doc->seq_no);
        buf_lit(buf, ",\"_primary_term\":1");
    }
    if (doc->routing.len > 0) {
        buf_lit(buf, ",\"_routing\":");
        buf_json_string(buf, doc->routing);
    }
}

static bool field_is_stored(const struct mapping_field *field)
{
    for (size_t i = 0; i < field->parameter_count; i++)
        if (slice_is(field->parameters[i].name, "store"))
            return slice_is(field->parameters[i].json, "true");
    return false;
}

/* Collects the values of a stored field as a JSON list. */
struct field_values {
    struct buf *buf;
    size_t count;
    enum dialect dialect;
};

static bool add_value(void *context, yyjson_val *leaf)
{
    struct field_values *values = context;
    if (yyjson_is_null(leaf))
        return true;
    if (values->count++ > 0)
        buf_byte(values->buf, ',');
    json_write(values->buf, leaf, values->dialect);
    return true;
}

/* What a walk over the mapping's fields needs to write the stored ones. */
struct field_walk {
    enum dialect dialect;
    yyjson_val *source;
    struct buf *buf;
    size_t count;
};

static void write_stored_field(void *context, const struct mapping_field *field)
{
    struct field_walk *walk = context;
    if (!field_is_stored(field))
        return;
    struct buf list = BUF_INIT(BUF_UNLIMITED);
    struct field_values values = {&list, 0, walk->dialect};
    json_path_each(walk->source, field->path, add_value, &values);
    if (values.count > 0) {
        buf_slice(walk->buf, walk->count++ == 0 ? SLICE_LIT(",\"fields\":{") : SLICE_LIT(","));
        buf_json_string(walk->buf, field->path);
        buf_lit(walk->buf, ":[");
        buf_slice(walk->buf, buf_as_slice(&list));
        buf_byte(walk->buf, ']');
    }
    buf_deinit(&list);
}

static int write_stored_fields(struct request *request, const struct doc_get_params *query,
                               const struct doc_get_result *found, struct buf *buf)
{
    struct json_doc doc;
    int r = json_parse_stored(request->arena, found->doc.source, &doc);
    if (r != 0)
        return tl_trace(r);
    struct field_walk walk = {query->dialect, doc.root, buf, 0};
    for (size_t i = 0; i < query->stored_field_count; i++)
        mapping_fields_matching(found->index->mapping, query->stored_fields[i], write_stored_field, &walk);
    if (walk.count > 0)
        buf_byte(buf, '}');
    return 0;
}

static bool wants_source(const struct doc_get_params *query)
{
    if (query->stored_fields == NULL || query->source.given)
        return query->source.fetch;
    for (size_t i = 0; i < query->stored_field_count; i++)
        if (slice_is(query->stored_fields[i], "_source"))
            return true;
    return false;
}

int doc_write_found(struct request *request, const struct doc_get_params *query, const struct doc_get_result *found,
                    struct buf *buf)
{
    int r = 0;
    write_head(request, query, found, buf);
    if (!found->found) {
        buf_lit(buf, ",\"found\":false}");
        return 0;
    }
    write_numbers(query->dialect, &found->doc, buf);
    if (query->commit_timestamp)
        buf_printf(buf, ",\"_commit_timestamp\":%" PRIu64, found->doc.ts);
    buf_lit(buf, ",\"found\":true");
    if (wants_source(query)) {
        struct slice shown;
        r = mapping_filter_source(found->type, found->doc.source, query->dialect, request->arena, &shown);
        if (r == 0 && shown.data != NULL) {
            buf_lit(buf, ",\"_source\":");
            r = source_filter_write(buf, shown, &query->source, request->arena, query->dialect);
        }
    }
    if (r == 0 && query->stored_field_count > 0)
        r = write_stored_fields(request, query, found, buf);
    buf_byte(buf, '}');
    return r;
}

/* --- GET /index/_doc/id ------------------------------------------------------------------------------------------- */

/* 5.6 asks the shard, which refuses fields that hold others. */
static int check_leaf_fields(struct request *request, const struct doc_get_params *query,
                             const struct doc_get_result *found)
{
    for (size_t i = 0; i < query->stored_field_count; i++) {
        const struct mapping_field *field = mapping_field(found->index->mapping, query->stored_fields[i]);
        if (field != NULL && field->type == FIELD_OBJECT)
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "field [%.*s] isn't a leaf field",
                                  SLICE_ARG(query->stored_fields[i]));
    }
    return 0;
}

/* Of a large document that is not shown as it is every part is looked at: not by a thread that others wait for. */
static bool takes_long(const struct request *request, const struct doc_get_params *query,
                       const struct doc_get_result *found)
{
    size_t bytes = found->found ? found->doc.source.len : 0;
    bool taken_apart = query->source.filter.include_count > 0 || query->source.filter.exclude_count > 0 ||
                       query->stored_field_count > 0;
    return !request->on_worker && bytes > (taken_apart ? REQUEST_INLINE_BYTES : DOC_INLINE_BYTES);
}

static int get_run(struct request *request)
{
    const struct doc_get_params *query = request->context;
    struct doc_get_result found;
    request->remote_action = "indices:data/read/get[s]";
    int r = doc_find(request, query, &found, &request->problem);
    if (r != 0)
        return r;
    if (takes_long(request, query, &found)) {
        doc_release(&found.doc);
        return request_work_short(request, get_run);
    }
    if (found.found)
        r = check_leaf_fields(request, query, &found);
    if (r == 0) {
        request->exchange->status = found.found ? 200 : 404;
        r = doc_write_found(request, query, &found, &request->exchange->response);
    }
    if (found.found)
        doc_release(&found.doc);
    return r;
}

/* 0: not known yet. */
static void write_time(struct json_writer *writer, const char *name, tl_ts ts)
{
    json_key(writer, name);
    if (ts == 0)
        json_null(writer);
    else
        json_u64(writer, ts);
}

static void write_version(struct json_writer *writer, const struct doc *doc, tl_ts from, tl_ts until)
{
    json_begin(writer, '{');
    write_time(writer, "from", from);
    write_time(writer, "to", until);
    json_key(writer, "_version");
    json_i64(writer, doc->version);
    json_key(writer, "deleted");
    json_bool(writer, doc->deleted);
    json_end(writer, '}');
}

/* What the request's transaction has made of the document: a version that is from no timestamp before the commit. */
static int write_own_version(struct request *request, const struct doc_get_result *found, struct slice id,
                             struct json_writer *writer)
{
    struct view committed = {request->view.store, request->view.ts, NULL};
    struct doc own, doc;
    if (request->view.overlay == NULL)
        return 0;
    int r = doc_get_any(&request->view, found->index->number, found->type->number, id, &own);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    r = doc_get_any(&committed, found->index->number, found->type->number, id, &doc);
    if (r != 0 || doc.seq_no != own.seq_no)
        write_version(writer, &own, 0, 0);
    if (r == 0)
        doc_release(&doc);
    doc_release(&own);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Writes the version that `view` shows, which the next one superseded at `*until` (0: none did), and
 * moves both to the one before. A document that a session tombstone hides there is read as of the
 * timestamp before, since later renames did not move it. Nothing is found where the tombstone of a
 * deletion was removed, or before the first version. Then the view goes back, by less than the time
 * for which each tombstone exists.
 * Returns: 0, DOC_TOO_OLD; fatal codes.
 */
static int write_version_before(const struct doc_get_result *found, struct slice id, struct view *view, tl_ts *until,
                                struct json_writer *writer)
{
    char bytes[DOC_KEY_BYTES_MAX];
    struct doc doc;
    tl_ts went = TL_TS_MAX;
    int r = doc_get_any(view, found->index->number, found->type->number, id, &doc);
    if (r == DOC_NOT_FOUND) {
        view->ts -= VERSION_STRIDE_US < view->ts ? VERSION_STRIDE_US : view->ts;
        return 0;
    }
    if (r != 0)
        return r;
    if (!doc.deleted)
        r = session_tombstone_ts(view->store, doc_key(bytes, found->index->number, found->type->number, id), &doc,
                                 &went);
    if (r >= 0 && went <= view->ts) {
        *until = went;
        view->ts = went - 1;
    } else if (r >= 0) {
        write_version(writer, &doc, doc.ts, *until);
        *until = doc.ts;
        view->ts = doc.ts - 1;
    }
    doc_release(&doc);
    return r < 0 ? tl_trace(r) : 0;
}

/* The versions of a document that are still readable, newest first. Returns: 0; fatal codes. */
static int write_versions(struct request *request, const struct doc_get_result *found, struct slice id,
                          struct json_writer *writer)
{
    struct view view = {request->view.store, request->view.ts, NULL}; /* what an overlay has is at every timestamp */
    tl_ts oldest = journal_oldest(request->api->journal), until = 0;
    int r = 0;
    if (id.len > DOC_ID_BYTES_MAX)
        return 0;
    if (oldest < found->index->created_ms * TL_MS) /* the history may have no limit */
        oldest = found->index->created_ms * TL_MS;
    while (r == 0 && view.ts >= oldest && view.ts > 0 && !request_budget_stops(request, VERSION_STEPS))
        r = write_version_before(found, id, &view, &until, writer);
    return r < 0 ? tl_trace(r) : 0;
}

static int history_run(struct request *request)
{
    const struct doc_get_params *query = request->context;
    struct doc_get_result found;
    struct json_writer writer;
    int r = doc_find(request, query, &found, &request->problem);
    if (r != 0)
        return r;
    if (found.found)
        doc_release(&found.doc);
    reply_begin(request, 200, &writer);
    write_head(request, query, &found, writer.buf);
    buf_lit(writer.buf, ",\"versions\":[");
    writer.comma = false;
    if (found.type != NULL) {
        r = write_own_version(request, &found, query->id, &writer);
        if (r == 0)
            r = write_versions(request, &found, query->id, &writer);
    }
    buf_lit(writer.buf, "]}");
    return r < 0 ? r : REQUEST_DONE;
}

/* A document may have as many versions as it was written times in the time of the history. */
static int history_begin(struct request *request)
{
    return request_work(request, history_run);
}

int handle_doc_get(struct request *request)
{
    struct doc_get_params *query;
    bool history = false;
    int r = request_bool(request, "version_history", &history);
    if (r != 0 || (r = read_query(request, &query)) != 0)
        return r;
    request->context = query;
    struct lock_target *target = arena_alloc(request->arena, sizeof *target);
    *target = doc_lock_target(query);
    return request_read(request, target, 1, history ? history_begin : get_run);
}

/* --- GET /index/_source/id ---------------------------------------------------------------------------------------- */

/* 5.6 says no more than the status; 6.x, whose clients come by the same paths, says this. */
static int source_missing(struct request *request, const struct doc_get_params *query,
                          const struct doc_get_result *found, const char *what)
{
    struct slice type = query->dialect == DIALECT_5 || query->type.len > 0 ? query->type : SLICE_LIT("_doc");
    return request_refuse(request, PROBLEM_RESOURCE_NOT_FOUND, "%s not found [%.*s]/[%.*s]/[%.*s]", what,
                          SLICE_ARG(found->index->name), SLICE_ARG(type), SLICE_ARG(query->id));
}

static int source_run(struct request *request)
{
    const struct doc_get_params *query = request->context;
    struct doc_get_result found;
    int r = doc_find(request, query, &found, &request->problem);
    if (r != 0)
        return r;
    if (!found.found)
        return source_missing(request, query, &found, "Document");
    struct slice shown;
    request->exchange->status = 200;
    r = mapping_filter_source(found.type, found.doc.source, query->dialect, request->arena, &shown);
    if (r == 0 && shown.data == NULL)
        r = source_missing(request, query, &found, "Source");
    else if (r == 0)
        r = source_filter_write(&request->exchange->response, shown, &query->source, request->arena, query->dialect);
    doc_release(&found.doc);
    return r;
}

int handle_doc_source(struct request *request)
{
    struct doc_get_params *query;
    int r = read_query(request, &query);
    if (r != 0)
        return r;
    if (!query->source.fetch)
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: fetching source can not be disabled;");
    if (request->dialect == DIALECT_7)
        request->form.filter_path = SLICE_NONE; /* a source is no reply, and shown as it is */
    request->context = query;
    struct lock_target *target = arena_alloc(request->arena, sizeof *target);
    *target = doc_lock_target(query);
    return request_read(request, target, 1, source_run);
}
