/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the bodies and parameters of the by-query calls. */
#include "api/request/broken_body.h"
#include "api/request/location.h"
#include "api/documents/by_query.h"

#include <math.h>

#include "api/search/search_service.h"
#include "api/request/name_list.h"
#include "api/request/source_filter.h"
#include "api/documents/update_body.h"
#include "core/catalog/cluster_settings.h"
#include "json/each.h"
#include "query/node.h"
#include "json/time_value.h"

/* --- Refusals ----------------------------------------------------------------------------------------------------- */

/* "[1:10] [dest] unknown field [junk]" */
static int refuse_unknown(struct request *request, const struct json_doc *doc, yyjson_val *key, const char *parser)
{
    size_t line, column;
    query_location(doc, key, false, &line, &column);
    return request_refuse(request, PROBLEM_X_CONTENT_PARSE, "[%zu:%zu] [%s] unknown field [%.*s]", line, column, parser,
                          SLICE_ARG(json_slice(key)));
}

/* "[reindex] failed to parse field [dest]" around the refusal of an inner value. */
static int wrap_field(struct request *request, const struct json_doc *doc, yyjson_val *value, const char *field)
{
    struct problem *cause = arena_alloc(request->arena, sizeof *cause);
    size_t line, column;
    *cause = request->problem;
    query_location(doc, value, yyjson_is_ctn(value), &line, &column);
    request_refuse(request, PROBLEM_X_CONTENT_PARSE, "[%zu:%zu] [reindex] failed to parse field [%s]", line, column,
                   field);
    request->problem.caused_by = cause;
    return REQUEST_REFUSED;
}

/* --- Members all of them have ------------------------------------------------------------------------------------- */

static int read_conflicts(struct request *request, struct by_query *by, struct slice text)
{
    by->proceed = slice_is(text, "proceed");
    if (by->proceed || slice_is(text, "abort"))
        return 0;
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                          "conflicts may only be \"proceed\" or \"abort\" but was [%.*s]", SLICE_ARG(text));
}

static int set_docs_max(struct request *request, struct by_query *by, int64_t number)
{
    if (number < 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[%s] parameter cannot be negative, found [%lld]",
                              by->call.dialect == DIALECT_7 ? "max_docs" : "size", (long long)number);
    if (by->docs_max >= 0 && by->docs_max != number)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[max_docs] set to two different values [%lld] and [%lld]", (long long)by->docs_max,
                              (long long)number);
    by->docs_max = number;
    return 0;
}

static int read_docs_max(struct request *request, struct by_query *by, yyjson_val *value)
{
    int64_t number = yyjson_get_sint(value);
    bool is_seven = by->call.dialect == DIALECT_7;
    if (yyjson_is_real(value) && is_seven && fabs(unsafe_yyjson_get_real(value)) < INT32_MAX)
        number = (int64_t)unsafe_yyjson_get_real(value); /* its fraction is cut off */
    else if (yyjson_is_num(value) && is_seven && (number < INT32_MIN || number > INT32_MAX || yyjson_is_real(value)))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Numeric value (%.*s) out of range of int (%d - %d)",
                              SLICE_ARG(query__scalar_text(request->arena, value)), INT32_MIN, INT32_MAX);
    if (yyjson_is_str(value) && !slice_to_i64(json_slice(value), &number))
        return request_refuse(request, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"",
                              SLICE_ARG(json_slice(value)));
    return set_docs_max(request, by, number);
}

static int read_script(struct request *request, struct by_query *by, const struct json_doc *doc, yyjson_val *key,
                       yyjson_val *value)
{
    struct write_update *script = &by->script;
    struct slice *kept[] = {&script->script_source, &script->script_id, &script->script_file, &script->script_lang,
                            &script->script_params};
    int r = update_script_parse(request, doc, key, value, "UpdateByQuery", by->call.dialect, script);
    if (r == 0 && script->script_id.len > 0)
        json_references_add(
            &by->call.refers, by->call.arena,
            &(struct json_reference){.script = true, .id = arena_copy(by->call.arena, script->script_id)});
    for (size_t i = 0; r == 0 && i < sizeof kept / sizeof *kept; i++) {
        if (kept[i]->data != NULL)
            *kept[i] = arena_copy(by->call.arena, *kept[i]);
    }
    return r;
}

/* --- Bodies of _delete_by_query and _update_by_query -------------------------------------------------------------- */

static bool is_own_member(const struct by_query *by, struct slice name)
{
    return slice_is(name, "conflicts") || slice_is(name, "max_docs") ||
           (slice_is(name, "script") && by->kind == BY_QUERY_UPDATE);
}

static int read_own_member(struct request *request, struct by_query *by, const struct json_doc *doc, yyjson_val *key,
                           yyjson_val *value)
{
    if (slice_is(json_slice(key), "conflicts"))
        return read_conflicts(request, by, json_slice(value));
    if (slice_is(json_slice(key), "max_docs"))
        return read_docs_max(request, by, value);
    return read_script(request, by, doc, key, value);
}

/* The members of a search, apart from those that are the call's own. */
static struct slice search_part(struct by_query *by, yyjson_val *body)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    size_t index, count;
    yyjson_val *key, *value;
    buf_lit(&text, "{");
    json_obj_foreach (body, index, count, key, value) {
        if (is_own_member(by, json_slice(key)))
            continue;
        if (text.len > 1)
            buf_lit(&text, ",");
        buf_json_string(&text, json_slice(key));
        buf_lit(&text, ":");
        json_write(&text, value, by->call.dialect);
    }
    buf_lit(&text, "}");
    struct slice kept = arena_copy(by->call.arena, buf_as_slice(&text));
    buf_deinit(&text);
    return kept;
}

/* A search takes it as its default; here it is refused as any negative size of a batch. */
static bool is_minus_one(yyjson_val *value)
{
    return (yyjson_is_sint(value) && yyjson_get_sint(value) == -1) || slice_is(json_slice(value), "-1");
}

static int read_body(struct request *request, struct by_query *by)
{
    struct json_doc *doc = arena_zalloc(by->call.arena, sizeof *doc);
    struct slice body = request_body(request);
    size_t index, count;
    yyjson_val *key, *value;
    bool own = false;
    if (by->call.dialect == DIALECT_7)
        body = location_is_blank(body) ? SLICE_NONE : location_first_value(body);
    if (body.len == 0)
        return 0;
    int r = json_parse(by->call.arena, arena_copy(by->call.arena, body), by->call.dialect, 0, doc, &request->problem);
    if (r != 0)
        return r > 0 ? REQUEST_REFUSED : tl_trace(r);
    json_obj_foreach (doc->root, index, count, key, value) {
        if (by->call.dialect == DIALECT_7 && slice_is(json_slice(key), "size") && is_minus_one(value))
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[size] parameter cannot be negative, found [-1]");
        if (!is_own_member(by, json_slice(key)))
            continue;
        own = true;
        if ((r = read_own_member(request, by, doc, key, value)) != 0)
            return r;
    }
    return search_call_body(request, &by->call, own ? search_part(by, doc->root) : body, false);
}

/* --- The body of _reindex ----------------------------------------------------------------------------------------- */

/* Reading from other clusters is off: no host is on the list of those that may be read. */
static int refuse_remote(struct request *request, yyjson_val *remote)
{
    struct slice host = json_slice(json_get_lit(remote, "host"));
    struct slice unsupported = SLICE_LIT("");
    size_t index, count, scheme = 0;
    yyjson_val *key, *value;
    while (scheme + 3 <= host.len && memcmp(host.data + scheme, "://", 3) != 0)
        scheme++;
    struct slice address = slice_from_offset(host, scheme + 3);
    size_t colon = slice_find_byte(address, ':');
    if (scheme + 3 > host.len || colon == 0 || colon + 1 >= address.len)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[host] must be of the form [scheme]://[host]:[port](/[pathPrefix])? but was [%.*s]",
                              SLICE_ARG(host));
    json_obj_foreach (remote, index, count, key, value) {
        struct slice name = json_slice(key);
        int64_t ignored;
        if (slice_is(name, "socket_timeout") || slice_is(name, "connect_timeout")) {
            if (time_value_parse(json_slice(value), name, DIALECT_7, request->arena, &ignored, &request->problem) !=
                0) {
                request->problem.type = PROBLEM_NUMBER_FORMAT;
                return REQUEST_REFUSED;
            }
        } else if (!slice_is(name, "host") && !slice_is(name, "username") && !slice_is(name, "password") &&
                   !slice_is(name, "headers")) {
            unsupported =
                arena_append(request->arena, unsupported, "%s%.*s", unsupported.len > 0 ? "," : "", SLICE_ARG(name));
        }
    }
    if (unsupported.len > 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Unsupported fields in [remote]: [%.*s]",
                              SLICE_ARG(unsupported));
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[%.*s] not whitelisted in reindex.remote.whitelist",
                          (int)slice_find_byte(address, '/'), address.data);
}

static int read_source(struct request *request, struct by_query *by, const struct json_doc *doc, yyjson_val *source)
{
    struct query_parser parser = {.arena = by->call.arena,
                                  .dialect = by->call.dialect,
                                  .doc = doc,
                                  .problem = &request->problem,
                                  .zones = request_zones(request)};
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct json_doc *rest = arena_zalloc(by->call.arena, sizeof *rest);
    size_t index, count;
    yyjson_val *key, *value;
    int r = 0;
    buf_lit(&text, "{");
    json_obj_foreach (source, index, count, key, value) {
        struct slice name = json_slice(key);
        if (slice_is(name, "index")) {
            by->call.index = name_list_of_json(by->call.arena, value);
            if (r == 0)
                r = request_resolve_names(request, by->call.arena, &by->call.index);
        } else if (slice_is(name, "type")) {
            by->call.types = name_list_of_json(by->call.arena, value);
        } else if (!slice_is(name, "remote")) {
            if (text.len > 1)
                buf_lit(&text, ",");
            buf_json_string(&text, name);
            buf_lit(&text, ":");
            json_write(&text, value, by->call.dialect);
        }
    }
    buf_lit(&text, "}");
    struct slice kept = arena_copy(by->call.arena, buf_as_slice(&text));
    buf_deinit(&text);
    yyjson_val *remote = json_get_lit(source, "remote");
    if (remote != NULL)
        return refuse_remote(request, remote);
    if (r != 0)
        return r;
    r = json_parse_stored(by->call.arena, kept, rest);
    if (r != 0)
        return tl_trace(r);
    parser.doc = rest;
    json_references(rest->root, by->call.arena, &by->call.refers);
    return search_request_parse(&parser, rest->root, &by->call.search) == 0 ? 0 : REQUEST_REFUSED;
}

static int read_routing(struct request *request, struct by_query *by, struct slice text)
{
    struct by_query_dest *dest = &by->dest;
    bool seven = by->call.dialect == DIALECT_7;
    dest->routing_refused = false;
    if (slice_is(text, "keep") || (text.len == 0 && seven))
        dest->routing = SLICE_NONE;
    else if (slice_is(text, "discard"))
        dest->routing = SLICE_LIT("");
    else if (text.len > !seven && text.data[0] == '=')
        dest->routing = slice_from_offset(text, 1);
    else if (seven)
        dest->routing_refused = true;
    else
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Unsupported routing command: [%.*s]",
                              SLICE_ARG(text));
    return 0;
}

/* Any other word would write over documents that it was meant to keep. */
static int read_op_type(struct request *request, struct by_query_dest *dest, struct slice text)
{
    dest->create = slice_is_ignoring_case(text, "create");
    if (dest->create || slice_is_ignoring_case(text, "index"))
        return 0;
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "opType must be 'create' or 'index', found: [%.*s]",
                          SLICE_ARG(text));
}

static bool is_dest_member(struct slice name)
{
    return slice_is(name, "index") || slice_is(name, "type") || slice_is(name, "routing") ||
           slice_is(name, "op_type") || slice_is(name, "version_type") || slice_is(name, "pipeline");
}

/* Refuses a value that has the wrong type, at the place of the value. */
static int refuse_type(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                       const char *form)
{
    size_t line, column;
    location_line(doc, location_of_member(doc, key), &line, &column);
    return request_refuse(request, PROBLEM_X_CONTENT_PARSE, "[%zu:%zu] [%s] %.*s doesn't support values of type: %s",
                          line, column, form, SLICE_ARG(json_slice(key)), json_token(value));
}

/* The problem so far becomes the cause: a member of a form could not be read, at the place of a value. */
static int wrap_member(struct request *request, const struct json_doc *doc, yyjson_val *key, const char *form,
                       struct slice member)
{
    struct problem *cause = arena_alloc(request->arena, sizeof *cause);
    size_t line, column;
    *cause = request->problem;
    location_line(doc, location_of_member(doc, key), &line, &column);
    request_refuse(request, PROBLEM_X_CONTENT_PARSE, "[%zu:%zu] [%s] failed to parse field [%.*s]", line, column, form,
                   SLICE_ARG(member));
    request->problem.caused_by = cause;
    return REQUEST_REFUSED;
}

static int read_reindex_max(struct request *request, struct by_query *by, const struct json_doc *doc, yyjson_val *key,
                            yyjson_val *value)
{
    if (by->call.dialect != DIALECT_7)
        return read_docs_max(request, by, value);
    if (!yyjson_is_num(value) && !yyjson_is_str(value))
        return refuse_type(request, doc, key, value, "reindex");
    int r = read_docs_max(request, by, value);
    if (r == 0 && by->docs_max == 0)
        r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[max_docs] should be >= [slices]");
    return r == REQUEST_REFUSED
               ? wrap_field(request, doc, value, slice_is(json_slice(key), "size") ? "size" : "max_docs")
               : r;
}

static int read_dest(struct request *request, struct by_query *by, const struct json_doc *doc, yyjson_val *dest)
{
    bool seven = by->call.dialect == DIALECT_7;
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (dest, index, count, key, value) {
        struct slice name = json_slice(key), text = json_slice(value);
        int r = 0;
        if (seven && is_dest_member(name) && !yyjson_is_str(value)) {
            refuse_type(request, doc, key, value, "dest");
            return wrap_member(request, doc, key, "reindex", SLICE_LIT("dest"));
        }
        if (slice_is(name, "index")) {
            by->dest.index = text;
            r = request_resolve_names(request, by->call.arena, &by->dest.index);
        } else if (slice_is(name, "type"))
            by->dest.type = text;
        else if (slice_is(name, "routing"))
            r = read_routing(request, by, text);
        else if (slice_is(name, "op_type"))
            r = read_op_type(request, &by->dest, text);
        else if (slice_is(name, "version_type"))
            r = doc_version_type(request, text, &by->dest.version_type);
        else if (slice_is(name, "pipeline"))
            r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "pipeline with id [%.*s] does not exist",
                               SLICE_ARG(text));
        else
            r = refuse_unknown(request, doc, key, "dest");
        if (r == REQUEST_REFUSED && seven && (slice_is(name, "op_type") || slice_is(name, "version_type"))) {
            wrap_member(request, doc, key, "dest", name);
            return wrap_member(request, doc, key, "reindex", SLICE_LIT("dest"));
        }
        if (r != 0)
            return r == REQUEST_REFUSED ? wrap_field(request, doc, dest, "dest") : r;
    }
    by->dest.versioned = by->dest.version_type != VERSION_INTERNAL;
    return 0;
}

static int read_reindex_member(struct request *request, struct by_query *by, const struct json_doc *doc,
                               yyjson_val *key, yyjson_val *value)
{
    struct slice name = json_slice(key);
    int r;
    if (slice_is(name, "source")) {
        r = read_source(request, by, doc, value);
        return r == REQUEST_REFUSED ? wrap_field(request, doc, value, "source") : r;
    }
    bool is_form = slice_is(name, "dest") || slice_is(name, "script");
    if (is_form && !yyjson_is_obj(value) && by->call.dialect == DIALECT_7)
        return refuse_type(request, doc, key, value, "reindex");
    if (slice_is(name, "dest"))
        return read_dest(request, by, doc, value);
    if (slice_is(name, "conflicts")) {
        int refused = read_conflicts(request, by, json_slice(value));
        return refused != 0 && by->call.dialect == DIALECT_7 ? wrap_field(request, doc, value, "conflicts") : refused;
    }
    if (slice_is(name, "max_docs") || slice_is(name, "size"))
        return read_reindex_max(request, by, doc, key, value);
    if (slice_is(name, "script"))
        return read_script(request, by, doc, key, value);
    return refuse_unknown(request, doc, key, "reindex");
}

static int read_reindex_members(struct request *request, struct by_query *by, struct json_doc *doc)
{
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (doc->root, index, count, key, value) {
        int r = read_reindex_member(request, by, doc, key, value);
        if (r != 0)
            return r;
    }
    return 0;
}

struct reindex_read {
    struct request *request;
    struct by_query *by;
};

static int read_reindex_body(void *context, struct json_doc *doc)
{
    struct reindex_read *read = context;
    return read_reindex_members(read->request, read->by, doc);
}

/* Refuses a body that is not JSON, as request->problem says. */
static int refuse_broken_reindex(struct request *request, struct by_query *by, struct slice body)
{
    struct reindex_read read = {request, by};
    const struct broken_parser parser = {.read = read_reindex_body,
                                         .context = &read,
                                         .arena = by->call.arena,
                                         .dialect = by->call.dialect,
                                         .form = BROKEN_REINDEX};
    return broken_body_refuse(request, body, &parser, NULL);
}

static int read_reindex(struct request *request, struct by_query *by)
{
    struct json_doc *doc = arena_zalloc(by->call.arena, sizeof *doc);
    struct slice body = request_body(request);
    if (body.len == 0)
        return by->call.dialect == DIALECT_7 ? request_refuse(request, PROBLEM_PARSE, "request body is required")
                                             : request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                                                              "Validation Failed: 1: body is missing;");
    int r = request_blank(request, "reindex");
    if (r != 0)
        return r;
    if (by->call.dialect == DIALECT_7)
        body = location_first_value(body);
    r = json_parse(by->call.arena, arena_copy(by->call.arena, body), by->call.dialect, 0, doc, &request->problem);
    if (r != 0)
        return r > 0 ? refuse_broken_reindex(request, by, body) : tl_trace(r);
    if (!yyjson_is_obj(doc->root) && by->call.dialect == DIALECT_7)
        return request_refuse(request, PROBLEM_X_CONTENT_PARSE, "[1:%zu] [reindex] Expected START_OBJECT but was: %s",
                              location_of_root(doc) + 1, json_token(doc->root));
    by->call.index = SLICE_NONE;
    return read_reindex_members(request, by, doc);
}

/* --- Parameters --------------------------------------------------------------------------------------------------- */

static int read_docs_param(struct request *request, struct by_query *by, const char *name)
{
    int32_t number = 0;
    if (request_param(request, name).data == NULL)
        return 0;
    int r = request_int(request, name, &number);
    if (r == 0 && number == -1 && by->call.dialect == DIALECT_7 && strcmp(name, "size") == 0)
        return 0; /* all documents */
    return r == 0 ? set_docs_max(request, by, number) : r;
}

static int read_slices(struct request *request, struct by_query *by)
{
    struct slice text = request_param(request, "slices");
    int64_t number = 1;
    if (text.data == NULL)
        return 0;
    if (slice_is(text, "auto")) {
        by->slices = 0;
        return 0;
    }
    bool is_int = slice_to_i64(text, &number) && number >= INT32_MIN && number <= INT32_MAX;
    if (!is_int || number < 1) {
        int r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                               "[slices] must be a positive integer or the string \"auto\", but was [%.*s]",
                               SLICE_ARG(text));
        if (!is_int && by->call.dialect == DIALECT_7) {
            struct problem *cause = request->problem.caused_by = arena_alloc(request->arena, sizeof *cause);
            problem_set(cause, request->arena, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(text));
        }
        return r;
    }
    by->slices = (uint32_t)number;
    return 0;
}

/*
 * Reads the parameters of a search, which _update_by_query and _delete_by_query have, too. `size` is a limit of the
 * whole call there, and `timeout` is that of its writes.
 */
static int read_search_params(struct request *request, struct by_query *by)
{
    struct search_request *search = &by->call.search;
    int32_t size = search->size;
    int64_t timeout_us = search->timeout_us;
    bool overdue = search->overdue;
    struct slice pipeline = request_param(request, "pipeline");
    if (pipeline.data != NULL)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "pipeline with id [%.*s] does not exist",
                              SLICE_ARG(pipeline));
    if (slice_is(request_param(request, "search_type"), "count"))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "No search type for [count]");
    if (search->query != NULL && request_param(request, "q").data != NULL)
        return request_refuse(
            request, PROBLEM_ILLEGAL_ARGUMENT,
            "both [q] and a [query] in the body say which documents are meant: leave out one of them");
    int r = search_call_options(request, &by->call, false);
    search->size = size;
    search->timeout_us = timeout_us;
    search->overdue = overdue;
    return r;
}

static int read_params(struct request *request, struct by_query *by)
{
    struct search_request *search = &by->call.search;
    struct slice conflicts = request_param(request, "conflicts");
    int64_t search_timeout = 0, keep_alive = 0; /* a call has no scroll that ends */
    int r;
    if (by->kind != BY_QUERY_REINDEX && by->call.dialect == DIALECT_5 && search->size >= 0) {
        if ((r = set_docs_max(request, by, search->size)) != 0)
            return r; /* in 5.x "size" of the body is a limit of the whole call, later one of a batch */
        search->size = -1;
    }
    by->batch = search->size > 0 ? search->size : BY_QUERY_BATCH;
    if ((r = read_docs_param(request, by, "size")) != 0 || (r = read_docs_param(request, by, "max_docs")) != 0 ||
        (by->kind != BY_QUERY_REINDEX && (r = read_search_params(request, by)) != 0) ||
        (by->kind != BY_QUERY_REINDEX && (r = request_int(request, "scroll_size", &by->batch)) != 0) ||
        (r = request_time(request, "scroll", &keep_alive)) != 0 || (r = read_slices(request, by)) != 0 ||
        (r = task_read_rate(request, &by->rate)) != 0 ||
        (r = request_bool(request, "wait_for_completion", &by->wait)) != 0 ||
        (r = request_bool(request, "atomic", &by->atomic)) != 0 ||
        (r = request_time(request, "search_timeout", &search_timeout)) != 0 ||
        (r = write_options_read(request, &by->options)) != 0)
        return r;
    if (conflicts.data != NULL && (r = read_conflicts(request, by, conflicts)) != 0)
        return r;
    if (by->batch < 0)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[size] parameter cannot be negative, found [%d]",
                              by->batch);
    if (request_param(request, "search_timeout").data != NULL || search->timeout_us < 0)
        search->timeout_us = search_timeout > 0 ? search_timeout : 0;
    bool none = by->docs_max == 0 && by->call.dialect == DIALECT_7; /* without slices there is one */
    if (none || (by->docs_max >= 0 && by->slices > 1 && by->docs_max < (int64_t)by->slices))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[max_docs] should be >= [slices]");
    return 0;
}

/* An index that is to be made, and may not be, ends a reindex before anything is read. */
static int check_dest(struct request *request, struct slice name)
{
    const struct catalog *catalog = request_catalog(request);
    struct problem *problem = &request->problem;
    uint64_t work; /* limited */
    if (request->dialect == DIALECT_5 || catalog_index(catalog, name) != NULL || catalog_has_alias(catalog, name) ||
        cluster_settings__may_create(catalog, name, SETTING_RULES_NEWEST, request->arena, &work, problem) == 0)
        return 0;
    if (problem->type == PROBLEM_NONE)
        problem_set(problem, request->arena, PROBLEM_INDEX_NOT_FOUND,
                    "no such index [%.*s] and [action.auto_create_index] is [false]", SLICE_ARG(name));
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);
    buf_json_string(&quoted, name);
    problem_details(problem, request->arena, "\"index_uuid\":\"_na_\",\"index\":%.*s",
                    SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
    return REQUEST_REFUSED;
}

static int validate_by_query(struct request *request, struct by_query *by)
{
    const struct search_request *search = &by->call.search;
    struct validation validation = {.arena = request->arena};
    const char *texts[SEARCH_SCROLL_PROBLEMS_MAX];
    size_t count = search_request_scroll_problems(search, texts);
    for (size_t i = 0; i < count; i++)
        validation_add(&validation, "%s", texts[i]);
    if (search->search_after != NULL)
        validation_add(&validation, "`search_after` cannot be used in a scroll context.");
    if (by->kind == BY_QUERY_REINDEX && by->call.index.data == NULL)
        validation_add(&validation, "use _all if you really want to copy from all existing indexes");
    if (by->batch == 0)
        validation_add(&validation, "[size] cannot be [0] in a scroll context");
    if (search->from >= 0)
        validation_add(&validation, "from is not supported in this context");
    if (search->stored_field_count > 0)
        validation_add(&validation, "stored_fields is not supported in this context");
    if (search->script_field_count > 0)
        validation_add(&validation, "script_fields is not supported in this context");
    if (search->no_source && by->kind != BY_QUERY_DELETE)
        validation_add(&validation, "_source:false is not supported in this context");
    if (by->kind == BY_QUERY_DELETE && search->query == NULL)
        validation_add(&validation, "query is missing");
    if (by->kind == BY_QUERY_REINDEX && by->dest.index.len == 0)
        validation_add(&validation, "index must be specified");
    else if (by->kind == BY_QUERY_REINDEX && by->dest.routing_refused)
        validation_add(&validation, "routing must be unset, [keep], [discard] or [=<some new value>]");
    if (by->slices != 1 && search->slice_max > 0)
        validation_add(&validation, "can't specify both manual and automatic slicing at the same time");
    int r = validation_end(&validation, request);
    if (r != 0)
        return r;
    if (by->kind == BY_QUERY_REINDEX && slice_equal(by->call.index, by->dest.index))
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: reindex cannot write into an index its reading from [%.*s];",
                              SLICE_ARG(by->dest.index));
    /* Elasticsearch finds it at the first batch, once for each document; a script may have set another version. */
    if (by->dest.create && by->dest.versioned && by->script.script_source.data == NULL &&
        by->script.script_id.data == NULL && by->call.dialect == DIALECT_7)
        return request_refuse(
            request, PROBLEM_ACTION_REQUEST_VALIDATION,
            "Validation Failed: 1: create operations only support internal versioning. use index instead;");
    return by->kind == BY_QUERY_REINDEX ? check_dest(request, by->dest.index) : 0;
}

static struct slice keep_text(struct by_query *by, struct slice text)
{
    return text.data == NULL ? SLICE_NONE : arena_copy(by->call.arena, text);
}

int by_query_read(struct request *request, struct by_query *by)
{
    int r = search_call_init(request, &by->task->arena, &by->call);
    if (r == 0)
        r = by->kind == BY_QUERY_REINDEX ? read_reindex(request, by) : read_body(request, by);
    if (r == 0)
        r = read_params(request, by);
    if (r == 0)
        r = validate_by_query(request, by);
    by->call.search.size = by->batch;
    by->call.search.aggregations = NULL; /* the reply has none, and no scores */
    by->call.search.track_scores = false;
    by->session = keep_text(by, request->session);
    by->transaction = keep_text(by, request->transaction);
    by->fencing_token = request->fencing_token;
    by->options.timeout = keep_text(by, by->options.timeout);
    by->options.lease = keep_text(by, by->options.lease);
    return r == 0 ? request_accept(request) : r;
}
