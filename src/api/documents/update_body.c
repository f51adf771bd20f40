/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of an update.
 */
#include "api/documents/update_body.h"

#include <stdarg.h>

#include "api/request/broken_body.h"
#include "api/request/location.h"
#include "api/request/reply.h"
#include "base/suggest.h"
#include "core/documents/update.h"
#include "json/each.h"

/* --- Texts of 7.10's ObjectParser --------------------------------------------------------------------------------- */

/* "[1:8] [UpdateRequest] " and the rest. */
static int parse_refuse(struct request *request, const struct json_doc *doc, size_t offset, const char *parser,
                        const char *format, ...) TL_PRINTF(5, 6);

static int parse_refuse(struct request *request, const struct json_doc *doc, size_t offset, const char *parser,
                        const char *format, ...)
{
    size_t line, column;
    va_list arguments;
    location_line(doc, offset, &line, &column);
    va_start(arguments, format);
    struct slice text = arena_vprintf(request->arena, format, arguments);
    va_end(arguments);
    return request_refuse(request, PROBLEM_X_CONTENT_PARSE, "[%zu:%zu] [%s] %.*s", line, column, parser,
                          SLICE_ARG(text));
}

/* Makes the refusal the cause of "failed to parse field [x]". */
static int parse_wrap(struct request *request, const struct json_doc *doc, size_t offset, const char *parser,
                      struct slice field)
{
    struct problem *cause = arena_alloc(request->arena, sizeof *cause);
    *cause = request->problem;
    int r = parse_refuse(request, doc, offset, parser, "failed to parse field [%.*s]", SLICE_ARG(field));
    request->problem.caused_by = cause;
    return r;
}

int update_wrong_value(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                       const char *parser)
{
    return parse_refuse(request, doc, location_of_member(doc, key), parser, "%.*s doesn't support values of type: %s",
                        SLICE_ARG(json_slice(key)), json_token(value));
}

/* `known`: names separated by spaces. */
int update_unknown_field(struct request *request, const struct json_doc *doc, yyjson_val *key, const char *parser,
                         struct slice known)
{
    struct slice names[32];
    size_t count = 0;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    while (known.len > 0 && count < sizeof names / sizeof *names) {
        size_t len = slice_find_byte(known, ' ');
        names[count++] = slice_make(known.data, len);
        known = slice_from_offset(known, len + 1);
    }
    suggest_append(&text, "", json_slice(key), names, count);
    int r = parse_refuse(request, doc, location_of_string(doc, key), parser, "unknown field [%.*s]%.*s",
                         SLICE_ARG(json_slice(key)), SLICE_ARG(buf_as_slice(&text)));
    buf_deinit(&text);
    return r;
}

static struct slice write_value(struct request *request, yyjson_val *value, enum dialect dialect)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    json_write(&text, value, dialect);
    struct slice kept = arena_copy(request->arena, buf_as_slice(&text));
    buf_deinit(&text);
    return kept;
}

/* --- Scripts ------------------------------------------------------------------------------------------------------ */

static const char missing_source_7[] = "must specify either [source] for an inline script or [id] for a stored script";
static const char missing_source_5[] =
    "must specify either [source] for an inline script, [id] for a stored script, or [file] for a file script";

static int two_sources(struct request *request, const struct json_doc *doc, yyjson_val *key, enum dialect dialect)
{
    size_t offset = location_of_member(doc, key), line, column;
    if (dialect == DIALECT_7) {
        request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "must only use one of [source, id] when specifying a script");
        return parse_wrap(request, doc, offset, "script", json_slice(key));
    }
    struct problem *cause = arena_alloc(request->arena, sizeof *cause);
    request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                   "must only use one of [source + , id + , file] when specifying a script");
    *cause = request->problem;
    location_line(doc, offset, &line, &column);
    int r =
        request_refuse(request, PROBLEM_PARSING, "[script] failed to parse field [%.*s]", SLICE_ARG(json_slice(key)));
    problem_details(&request->problem, request->arena, "\"line\":%zu,\"col\":%zu", line, column);
    request->problem.caused_by = cause;
    return r;
}

/* Returns: the field that holds a member of a script; NULL: the member is not a text. */
static struct slice *script_member(struct write_update *update, struct slice name, enum dialect dialect)
{
    if (slice_is(name, "source") || slice_is(name, "inline"))
        return &update->script_source;
    if (slice_is(name, "id") || slice_is(name, "stored"))
        return &update->script_id;
    if (slice_is(name, "file") && dialect == DIALECT_5)
        return &update->script_file;
    if (slice_is(name, "lang"))
        return &update->script_lang;
    return NULL;
}

static int script_text(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                       enum dialect dialect, struct write_update *update, struct slice *member)
{
    if (!yyjson_is_str(value) && !(member == &update->script_source && yyjson_is_obj(value)))
        return update_wrong_value(request, doc, key, value, "script");
    if (member != &update->script_lang && update_has_script(update))
        return two_sources(request, doc, key, dialect);
    *member = yyjson_is_str(value) ? json_slice(value) : write_value(request, value, dialect);
    return 0;
}

static int script_object(struct request *request, const struct json_doc *doc, yyjson_val *object, enum dialect dialect,
                         struct write_update *update, size_t *ret_failed_at)
{
    size_t i, count;
    yyjson_val *key, *value;
    json_obj_foreach (object, i, count, key, value) {
        struct slice name = json_slice(key);
        struct slice *member = script_member(update, name, dialect);
        int r = 0;
        *ret_failed_at = location_of_member(doc, key);
        if (member != NULL) {
            r = script_text(request, doc, key, value, dialect, update, member);
        } else if (slice_is(name, "params")) {
            if (yyjson_is_obj(value))
                update->script_params = write_value(request, value, dialect);
            else
                r = update_wrong_value(request, doc, key, value, "script");
        } else if (!slice_is(name, "options")) {
            r = dialect == DIALECT_5
                    ? request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                                     "[script] unknown field [%.*s], parser not found", SLICE_ARG(name))
                    : update_unknown_field(request, doc, key, "script", SLICE_LIT("source id lang params options"));
        }
        if (r != 0)
            return r;
    }
    return 0;
}

int update_script_parse(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                        const char *parser, enum dialect dialect, struct write_update *update)
{
    size_t at = location_of_member(doc, key);
    if (yyjson_is_str(value)) {
        update->script_source = json_slice(value);
        return 0;
    }
    if (!yyjson_is_obj(value))
        return dialect == DIALECT_7
                   ? update_wrong_value(request, doc, key, value, parser)
                   : request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "unexpected value for [script]");
    size_t failed_at = at;
    int r = script_object(request, doc, value, dialect, update, &failed_at);
    if (r == 0 && !update_has_script(update)) {
        r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "%s",
                           dialect == DIALECT_7 ? missing_source_7 : missing_source_5);
        failed_at = location_of_end(doc, at);
    }
    if (r == 0 && dialect == DIALECT_7 && update->script_id.data != NULL && update->script_lang.data != NULL) {
        r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "illegally specified <lang> for a stored script");
        failed_at = location_of_end(doc, at);
    }
    if (r != 0 && dialect == DIALECT_7)
        return parse_wrap(request, doc, failed_at, parser, json_slice(key));
    return r;
}

/* --- The members of an update ------------------------------------------------------------------------------------- */

static int read_flag(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                     enum dialect dialect, bool *ret_flag)
{
    struct slice text = json_slice(value);
    if (yyjson_is_bool(value)) {
        *ret_flag = yyjson_get_bool(value);
        return 0;
    }
    if (slice_is(text, "true") || slice_is(text, "false")) {
        *ret_flag = slice_is(text, "true");
        return 0;
    }
    if (dialect == DIALECT_5) { /* anything but a few words is true there */
        *ret_flag = !(slice_is(text, "0") || slice_is(text, "no") || slice_is(text, "off"));
        return 0;
    }
    if (!yyjson_is_str(value))
        return update_wrong_value(request, doc, key, value, "UpdateRequest");
    request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                   "Failed to parse value [%.*s] as only [true] or [false] are allowed.", SLICE_ARG(text));
    return parse_wrap(request, doc, location_of_member(doc, key), "UpdateRequest", json_slice(key));
}

static int read_document(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                         enum dialect dialect, struct slice *ret_text)
{
    if (!yyjson_is_obj(value) && dialect == DIALECT_7)
        return update_wrong_value(request, doc, key, value, "UpdateRequest");
    size_t start = location_of_member(doc, key);
    *ret_text = slice_make(doc->source.data + start, location_after(doc, start) - start);
    return 0;
}

static int read_fields(struct request *request, yyjson_val *value, struct update_body *body)
{
    size_t i, count;
    yyjson_val *item;
    struct slice *fields = arena_alloc(request->arena, (yyjson_arr_size(value) + 1) * sizeof *fields);
    if (yyjson_is_str(value))
        fields[body->field_count++] = json_slice(value);
    json_arr_foreach (value, i, count, item) {
        if (yyjson_is_str(item))
            fields[body->field_count++] = json_slice(item);
    }
    body->fields = fields;
    return 0;
}

static int unknown_member(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                          enum dialect dialect, struct update_body *body)
{
    struct slice name = json_slice(key);
    if (dialect == DIALECT_7)
        return update_unknown_field(request, doc, key, "UpdateRequest",
                                    SLICE_LIT("script scripted_upsert upsert doc doc_as_upsert detect_noop _source "
                                              "if_seq_no if_primary_term"));
    if (slice_is(name, "params") && yyjson_is_obj(value))
        body->update.script_params = write_value(request, value, dialect);
    else if (slice_is(name, "lang") && yyjson_is_str(value))
        body->update.script_lang = json_slice(value);
    else if (slice_is(name, "fields"))
        return read_fields(request, value, body);
    return 0;
}

static int read_member(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                       enum dialect dialect, struct update_body *body)
{
    struct write_update *update = &body->update;
    struct slice name = json_slice(key);
    if (slice_is(name, "doc"))
        return read_document(request, doc, key, value, dialect, &update->doc);
    if (slice_is(name, "upsert"))
        return read_document(request, doc, key, value, dialect, &update->upsert);
    if (slice_is(name, "script"))
        return update_script_parse(request, doc, key, value, "UpdateRequest", dialect, update);
    if (slice_is(name, "doc_as_upsert"))
        return read_flag(request, doc, key, value, dialect, &update->doc_as_upsert);
    if (slice_is(name, "scripted_upsert"))
        return read_flag(request, doc, key, value, dialect, &update->scripted_upsert);
    if (slice_is(name, "detect_noop"))
        return read_flag(request, doc, key, value, dialect, &update->detect_noop);
    if (slice_is(name, "_source"))
        return source_filter_json(request, value, &body->source);
    if (slice_is(name, "if_seq_no") && yyjson_is_int(value) && dialect == DIALECT_7)
        body->if_seq_no = yyjson_get_sint(value);
    else if (slice_is(name, "if_primary_term") && yyjson_is_int(value) && dialect == DIALECT_7)
        body->if_primary_term = yyjson_get_sint(value);
    else
        return unknown_member(request, doc, key, value, dialect, body);
    return 0;
}

static int read_members(struct request *request, const struct json_doc *doc, enum dialect dialect,
                        struct update_body *body)
{
    size_t i, count;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(doc->root))
        return parse_refuse(request, doc, location_of_root(doc), "UpdateRequest", "Expected START_OBJECT but was: %s",
                            json_token(doc->root));
    json_obj_foreach (doc->root, i, count, key, value) {
        int r = read_member(request, doc, key, value, dialect, body);
        if (r != 0)
            return r;
    }
    return 0;
}

struct update_read {
    struct request *request;
    enum dialect dialect;
    struct update_body *body;
};

static int read_update(void *context, struct json_doc *doc)
{
    struct update_read *read = context;
    return read_members(read->request, doc, read->dialect, read->body);
}

/* Refuses a body that is not JSON, as request->problem says. */
static int refuse_broken_update(struct request *request, struct slice text, enum dialect dialect,
                                struct update_body *body)
{
    struct update_read read = {request, dialect, body};
    const struct broken_parser parser = {
        .read = read_update, .context = &read, .arena = request->arena, .dialect = dialect, .form = BROKEN_UPDATE};
    size_t begin = 0;
    while (begin < text.len && location_is_blank(slice_make(text.data + begin, 1)))
        begin++;
    if (dialect != DIALECT_5 && begin < text.len && text.data[begin] == '[')
        return request_refuse(request, PROBLEM_X_CONTENT_PARSE,
                              "[1:1] [UpdateRequest] Expected START_OBJECT but was: START_ARRAY");
    return broken_body_refuse(request, text, &parser, NULL);
}

int update_body_parse(struct request *request, struct slice text, enum dialect dialect, struct update_body *ret_body)
{
    struct json_doc doc;
    *ret_body =
        (struct update_body){.update = {.detect_noop = true}, .source = SOURCE_FILTER_ALL, .if_seq_no = SEQ_NO_ANY};
    if (text.len == 0)
        return 0;
    if (dialect == DIALECT_7 && location_is_blank(text))
        return request_refuse(request, PROBLEM_X_CONTENT_PARSE,
                              "[1:0] [UpdateRequest] Expected START_OBJECT but was: null");
    int r = json_parse(request->arena, location_first_value(text), dialect,
                       dialect == DIALECT_5 ? (unsigned)JSON_DUPLICATES : 0, &doc, &request->problem);
    if (r != 0)
        return r > 0 ? refuse_broken_update(request, text, dialect, ret_body) : r;
    return read_members(request, &doc, dialect, ret_body);
}
