/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk bodies.
 */
#include "api/documents/bulk_parse.h"

#include <stdlib.h>

#include "api/request/broken_body.h"
#include "api/request/api_internal.h"
#include "api/request/dialect.h"
#include "api/request/location.h"
#include "api/request/request_budget.h"
#include "base/clock.h"
#include "json/each.h"

/* The state of the parser. */
struct bulk_parser {
    struct request *request;
    const struct bulk_defaults *defaults;
    struct slice rest; /* of the body */
    size_t line;       /* number of the line taken last, from 1 */
    struct bulk *bulk;
    size_t item_capacity;
    size_t action_capacity;
    struct dialect_names names;
};

/* --- Lines -------------------------------------------------------------------------------------------------------- */

enum { BULK_END = 100 }; /* apart from enum request_result */
enum { LINE_STEPS = 100, ITEM_STEPS = 50 }; /* of an account: to read a line, to look an item over */

/* Takes the next line. Returns: 0; BULK_END; REQUEST_REFUSED for a last line without its newline. */
static int take_line(struct bulk_parser *parser, struct slice *ret_line)
{
    if (parser->rest.len == 0)
        return BULK_END;
    size_t len = slice_find_byte(parser->rest, '\n');
    if (len == parser->rest.len && parser->defaults->type.len > 0 && parser->bulk->count == 0)
        return BULK_END; /* 5.6 passes over it, and has no requests then */
    if (len == parser->rest.len)
        return request_refuse(parser->request, PROBLEM_ILLEGAL_ARGUMENT,
                              "The bulk request must be terminated by a newline [\\n]");
    *ret_line = slice_make(parser->rest.data, len);
    if (len > 0 && ret_line->data[len - 1] == '\r')
        ret_line->len--;
    parser->rest = slice_from_offset(parser->rest, len + 1);
    parser->line++;
    return 0;
}

static bool is_blank(struct slice line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.data[i] != ' ' && line.data[i] != '\t' && line.data[i] != '\r')
            return false;
    return true;
}

/* --- Metadata ----------------------------------------------------------------------------------------------------- */

static int refuse_malformed(struct bulk_parser *parser, const char *expected, const char *found)
{
    return request_refuse(parser->request, PROBLEM_ILLEGAL_ARGUMENT,
                          "Malformed action/metadata line [%zu], expected %s but found [%s]", parser->line, expected,
                          found);
}

static int unknown_parameter(struct bulk_parser *parser, struct slice name)
{
    return request_refuse(parser->request, PROBLEM_ILLEGAL_ARGUMENT,
                          "Action/metadata line [%zu] contains an unknown parameter [%.*s]", parser->line,
                          SLICE_ARG(name));
}

/* A scalar as text, the way a JSON parser of Java gives any value as text. */
static struct slice scalar_text(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value)
{
    if (yyjson_is_str(value))
        return json_slice(value);
    size_t start = location_of_member(doc, key);
    return arena_copy(request->arena, slice_make(doc->source.data + start, location_after(doc, start) - start));
}

/* "1.9" is 1 for Java's parser. */
static bool fraction_to_i64(struct slice text, int64_t *ret_value)
{
    double number;
    if (!slice_to_double(text, &number) || !(number > -9.2e18 && number < 9.2e18))
        return false;
    *ret_value = (int64_t)number;
    return true;
}

/* Returns: whether a number, rounded towards zero, is outside of the range of Java's int. */
static bool is_out_of_int(struct slice text)
{
    double number;
    return slice_to_double(text, &number) && !(number > (double)INT32_MIN - 1 && number < (double)INT32_MAX + 1);
}

/* In 7.10's words; its status is 500. */
static int refuse_int(struct bulk_parser *parser, struct slice text, bool quoted)
{
    return request_refuse(parser->request, PROBLEM_ILLEGAL_ARGUMENT,
                          quoted ? "Value [%.*s] is out of range for an integer"
                                 : "Numeric value (%.*s) out of range of int (-2147483648 - 2147483647)",
                          SLICE_ARG(text));
}

static bool names_retry_count(struct slice name)
{
    return slice_is(name, "retry_on_conflict") || slice_is(name, "_retry_on_conflict") ||
           slice_is(name, "_retryOnConflict");
}

/* `quoted`: the text was a string. */
static int read_number(struct bulk_parser *parser, struct slice name, struct slice text, bool quoted,
                       struct write_item *item, struct bulk_action *action)
{
    int64_t value;
    if (names_retry_count(name) && is_out_of_int(text))
        return refuse_int(parser, text, quoted);
    if (!slice_to_i64(text, &value) && !fraction_to_i64(text, &value))
        return request_refuse(parser->request,
                              item->dialect == DIALECT_5 ? PROBLEM_NUMBER_FORMAT : PROBLEM_ILLEGAL_ARGUMENT,
                              "For input string: \"%.*s\"", SLICE_ARG(text));
    if (slice_is(name, "if_seq_no")) {
        if (value < 0 && value != SEQ_NO_ANY)
            return write_refuse_seq_no(parser->request, value);
        item->if_seq_no = value;
    } else if (slice_is(name, "if_primary_term")) {
        if (value < 0)
            return write_refuse_term(parser->request, value);
        item->if_primary_term = value;
    } else if (slice_is(name, "version") || slice_is(name, "_version")) {
        item->version = value == JAVA_MATCH_ANY ? VERSION_ANY : value;
        action->asked.version = value != JAVA_MATCH_ANY;
    } else {
        action->asked.retries = (int32_t)value;
    }
    return 0;
}

static int read_require_alias(struct bulk_parser *parser, yyjson_val *value, struct slice text, struct write_item *item)
{
    if (yyjson_is_null(value)) /* as if it were not there */
        return 0;
    if (yyjson_is_num(value) || (text.len > 0 && !slice_is(text, "true") && !slice_is(text, "false")))
        return request_refuse(parser->request, PROBLEM_ILLEGAL_ARGUMENT,
                              "Failed to parse value [%.*s] as only [true] or [false] are allowed.", SLICE_ARG(text));
    item->require_alias = slice_is(text, "true");
    return 0;
}

static int read_scalar(struct bulk_parser *parser, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                       struct write_item *item, struct bulk_action *action)
{
    /* Names of metadata: those of 7.10, and those that only 5.6 has. */
    static const char *const numbers[] = {"version", "if_seq_no", "if_primary_term", "retry_on_conflict", NULL};
    static const char *const numbers_5[] = {"_version", "_retry_on_conflict", "_retryOnConflict", NULL};
    static const char *const ignored_5[] = {"_timestamp", "timestamp", "_ttl", "ttl", NULL};
    struct slice name = json_slice(key), text = scalar_text(parser->request, doc, key, value);
    bool old = item->dialect == DIALECT_5;
    if (slice_is(name, "_index")) {
        item->index = text;
        return request_resolve_names(parser->request, parser->request->arena, &item->index);
    } else if (slice_is(name, "_type")) {
        item->type = text;
        if (text.len == 0 && old)
            problem_set(&action->refused, parser->request->arena, PROBLEM_ILLEGAL_ARGUMENT,
                        "name cannot be empty string");
    } else if (slice_is(name, "_id")) {
        item->id = text;
    } else if (slice_is(name, "routing") || (old && slice_is(name, "_routing"))) {
        item->routing = text;
    } else if (old && (slice_is(name, "parent") || slice_is(name, "_parent"))) {
        problem_set(&action->refused, parser->request->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "can't specify parent if no parent field has been configured");
    } else if (slice_is(name, "pipeline")) {
        action->pipeline = text;
    } else if (slice_is(name, "op_type") || (old && slice_is(name, "opType"))) {
        item->op = item->op == WRITE_INDEX && slice_is(text, "create") ? WRITE_CREATE : item->op;
    } else if (old && (item->op != WRITE_UPDATE || action->asked.typed_path) && slice_is(name, "retry_on_conflict")) {
        return unknown_parameter(parser, name);
    } else if (slice_is_any(name, numbers) || (old && slice_is_any(name, numbers_5))) {
        return read_number(parser, name, text, yyjson_is_str(value), item, action);
    } else if (slice_is(name, "version_type") ||
               (old && (slice_is(name, "_version_type") || slice_is(name, "versionType")))) {
        action->asked.version_type = true;
        return doc_version_type(parser->request, text, &item->version_type);
    } else if (slice_is(name, "_source")) {
        return source_filter_json(parser->request, value, &action->source);
    } else if (slice_is(name, "require_alias")) {
        return read_require_alias(parser, value, text, item);
    } else if (slice_is(name, "lease")) {
        item->lease = text;
    } else if (!(old && slice_is_any(name, ignored_5))) {
        return unknown_parameter(parser, name);
    }
    return 0;
}

/*
 * An item is 5.x's where it names a type, or its path does, and no client of 7.x can have done so.
 * Other items do not matter.
 */
static int settle_dialect(struct bulk_parser *parser, yyjson_val *metadata, struct write_item *item)
{
    struct request *request = parser->request;
    yyjson_val *type = json_get_lit(metadata, "_type");
    struct slice index = json_slice(json_get_lit(metadata, "_index"));
    item->dialect = request->dialect;
    if (item->type.len == 0 && type == NULL)
        item->dialect = DIALECT_7;
    if (type == NULL ? item->type.len == 0 : json_slice(type).len == 0)
        return 0;
    if (request_resolve_names(request, request->arena, &index) != 0)
        return 0; /* reading the item's index refuses it, too */
    return dialect_of_named(request, &parser->names, index.len > 0 ? index : item->index,
                            type != NULL ? json_slice(type) : item->type, &item->dialect);
}

static int read_metadata(struct bulk_parser *parser, const struct json_doc *doc, yyjson_val *metadata,
                         struct write_item *item, struct bulk_action *action)
{
    size_t i, count;
    yyjson_val *key, *value;
    int settled = settle_dialect(parser, metadata, item);
    if (settled != 0)
        return settled;
    json_obj_foreach (metadata, i, count, key, value) {
        int r = 0;
        if (yyjson_is_null(value))
            continue;
        if (slice_is(json_slice(key), "_source") && !yyjson_is_arr(value))
            r = source_filter_json(parser->request, value, &action->source);
        else if (yyjson_is_ctn(value))
            r = request_refuse(
                parser->request, PROBLEM_ILLEGAL_ARGUMENT,
                "Malformed action/metadata line [%zu], expected a simple value for field [%.*s] but found "
                "[%s]",
                parser->line, SLICE_ARG(json_slice(key)), json_token(value));
        else
            r = read_scalar(parser, doc, key, value, item, action);
        if (r != 0)
            return r;
    }
    return 0;
}

/* Which operation an action is. Returns: WRITE_OP_COUNT for an unknown one. */
static enum write_op op_of(struct slice action)
{
    if (slice_is(action, "index"))
        return WRITE_INDEX;
    if (slice_is(action, "create"))
        return WRITE_CREATE;
    if (slice_is(action, "update"))
        return WRITE_UPDATE;
    return slice_is(action, "delete") ? WRITE_DELETE : WRITE_OP_COUNT;
}

static int read_line(struct bulk_parser *parser, const struct json_doc *doc, struct write_item *item,
                     struct bulk_action *action)
{
    if (!yyjson_is_obj(doc->root))
        return refuse_malformed(parser, "START_OBJECT", json_token(doc->root));
    yyjson_val *key = unsafe_yyjson_get_first(doc->root);
    if (yyjson_obj_size(doc->root) == 0)
        return refuse_malformed(parser, "FIELD_NAME", "END_OBJECT");
    yyjson_val *metadata = yyjson_obj_iter_get_val(key);
    if (!yyjson_is_obj(metadata))
        return refuse_malformed(parser, "START_OBJECT or END_OBJECT", json_token(metadata));
    item->op = op_of(json_slice(key));
    return read_metadata(parser, doc, metadata, item, action);
}

struct line_read {
    struct bulk_parser *parser;
    struct write_item *item;
    struct bulk_action *action;
};

static int read_broken_line(void *context, struct json_doc *doc)
{
    struct line_read *read = context;
    return read_line(read->parser, doc, read->item, read->action);
}

/* Refuses a line that is not JSON, as request->problem says. */
static int refuse_broken_line(struct bulk_parser *parser, struct slice line, struct write_item *item,
                              struct bulk_action *action)
{
    struct request *request = parser->request;
    struct line_read read = {parser, item, action};
    const struct broken_parser of_line = {.read = read_broken_line,
                                          .context = &read,
                                          .arena = request->arena,
                                          .dialect = request->dialect,
                                          .placeless = true,
                                          .depth_min = 2};
    return broken_body_refuse(request, line, &of_line, NULL);
}

/* Parses an action line. */
static int read_action(struct bulk_parser *parser, struct slice line, struct write_item *item,
                       struct bulk_action *action)
{
    struct json_doc doc;
    struct request *request = parser->request;
    struct slice text = location_first_value(line);
    int r = json_parse(request->arena, text, request->dialect, 0, &doc, &request->problem);
    if (r != 0 && text.len == line.len && line.data[0] == '{') {
        /* a line may lack its last bracket: the parser there stops at the action's */
        struct slice closed = arena_printf(request->arena, "%.*s}", SLICE_ARG(line));
        r = json_parse(request->arena, closed, request->dialect, 0, &doc, &request->problem);
    }
    if (r > 0 && line.data[0] == '[' && request->dialect == DIALECT_7)
        return refuse_malformed(parser, "START_OBJECT", "START_ARRAY");
    if (r != 0)
        return r > 0 ? refuse_broken_line(parser, line, item, action) : r;
    return read_line(parser, &doc, item, action);
}

/* --- Items -------------------------------------------------------------------------------------------------------- */

static int read_update(struct bulk_parser *parser, struct slice source, struct write_item *item,
                       struct bulk_action *action)
{
    struct request *request = parser->request;
    struct update_body *body = arena_alloc(request->arena, sizeof *body);
    if (item->dialect == DIALECT_7 && (action->asked.version || item->version_type != VERSION_INTERNAL))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "Update requests do not support versioning. Please use `if_seq_no` and `if_primary_term` "
                              "instead");
    int r = update_body_parse(request, source, item->dialect, body);
    if (r != 0)
        return r;
    if (!action->source.given)
        action->source = body->source;
    if (body->if_seq_no != SEQ_NO_ANY) {
        item->if_seq_no = body->if_seq_no;
        item->if_primary_term = body->if_primary_term;
    }
    action->fields = body->fields;
    action->field_count = body->field_count;
    body->update.want_source = action->source.given || action->field_count > 0;
    item->update = &body->update;
    return 0;
}

/* Only indexed documents go through a pipeline: of an update its upsert. */
static void look_for_pipeline(struct bulk_parser *parser, const struct write_item *item, struct bulk_action *action)
{
    bool indexes = item->op == WRITE_INDEX || item->op == WRITE_CREATE ||
                   (item->op == WRITE_UPDATE && (item->update->upsert.data != NULL || item->update->doc_as_upsert));
    if (!indexes || action->pipeline.len == 0 || slice_is(action->pipeline, "_none"))
        return;
    parser->bulk->pipeline_named = true;
    if (action->refused.type == PROBLEM_NONE)
        write_pipeline_missing(action->pipeline, item->dialect, parser->request->arena, &action->refused);
}

static void add_item(struct bulk_parser *parser, const struct write_item *item, const struct bulk_action *action)
{
    struct bulk *bulk = parser->bulk;
    struct arena *arena = parser->request->arena;
    bulk->items = arena_grow(arena, bulk->items, bulk->count, &parser->item_capacity, sizeof *bulk->items);
    bulk->actions = arena_grow(arena, bulk->actions, bulk->count, &parser->action_capacity, sizeof *bulk->actions);
    bulk->items[bulk->count] = *item;
    bulk->actions[bulk->count++] = *action;
}

/* What follows an action. Returns: 0; BULK_END where its source is missing; REQUEST_REFUSED. */
static int read_source(struct bulk_parser *parser, struct write_item *item, struct bulk_action *action)
{
    struct slice line;
    if (item->op == WRITE_DELETE)
        return 0;
    int r = take_line(parser, &line);
    if (r != 0)
        return r;
    if (item->op == WRITE_UPDATE)
        return read_update(parser, line, item, action);
    item->source = line;
    return 0;
}

/*
 * What 7.10 takes and does not look at: a condition on a document that has no id yet, and that a
 * name to delete from is an alias.
 */
static void pass_over(struct write_item *item)
{
    if (item->dialect == DIALECT_5)
        return;
    if (item->id_generated) {
        item->if_seq_no = SEQ_NO_ANY;
        item->if_primary_term = 0;
    }
    if (item->op == WRITE_DELETE)
        item->require_alias = false;
}

static int read_item(struct bulk_parser *parser, struct slice line)
{
    const struct bulk_defaults *defaults = parser->defaults;
    struct bulk_action action = {.asked.typed_path = parser->request->route->form == FORM_TYPED,
                                 .source = defaults->source,
                                 .pipeline = defaults->pipeline};
    struct write_item item = WRITE_ITEM_INIT;
    item.index = defaults->index;
    item.type = defaults->type;
    item.routing = defaults->routing;
    item.lease = defaults->lease;
    item.require_alias = defaults->require_alias;
    int r = read_action(parser, line, &item, &action);
    if (r != 0 || (r = read_source(parser, &item, &action)) != 0 || item.op == WRITE_OP_COUNT)
        return r;
    if (parser->bulk->count == BULK_ITEMS_MAX)
        return request_refuse(parser->request, PROBLEM_LIMIT_EXCEEDED, "more than %d actions in a bulk request",
                              BULK_ITEMS_MAX);
    if (item.id.data == NULL && (item.op == WRITE_INDEX || item.op == WRITE_CREATE)) {
        item.id = id_document(&parser->request->api->ids, clock_wall_us(), parser->request->arena);
        item.id_generated = true;
    }
    pass_over(&item);
    look_for_pipeline(parser, &item, &action);
    add_item(parser, &item, &action);
    return 0;
}

/* The names that an action must have. 7.10 takes an empty name for a missing one; 5.6 refuses it item by item. */
static void validate_names(struct request *request, const struct write_item *item, const struct bulk_action *action,
                           struct validation *validation)
{
    bool indexes = item->op == WRITE_INDEX || item->op == WRITE_CREATE;
    if (item->index.data == NULL)
        validation_add(validation, "index is missing");
    if (item->index.data == NULL && item->type.data == NULL && request->dialect == DIALECT_5)
        validation_add(validation, "type is missing");
    if (item->type.data != NULL && item->type.len == 0 && item->dialect == DIALECT_7)
        validation_add(validation, "type is missing");
    if (item->id.data == NULL || (item->id.len == 0 && !indexes && item->dialect == DIALECT_7))
        validation_add(validation, "id is missing");
    if (indexes && action->pipeline.data != NULL && action->pipeline.len == 0 && item->dialect == DIALECT_7)
        validation_add(validation, "pipeline cannot be an empty string");
}

int bulk_validate(struct request *request, const struct bulk *bulk)
{
    struct validation validation = {.arena = request->arena};
    if (bulk->count == 0)
        validation_add(&validation, "no requests added");
    for (size_t i = 0; i < bulk->count; i++) {
        const struct write_item *item = &bulk->items[i];
        if (request_budget_stops(request, ITEM_STEPS))
            return request_budget_refuse(request);
        validate_names(request, item, &bulk->actions[i], &validation);
        write_item_validate(item, &bulk->actions[i].asked, &validation);
    }
    return validation_end(&validation, request);
}

static int read_items(struct bulk_parser *parser)
{
    struct slice line;
    int r;
    while ((r = take_line(parser, &line)) == 0) {
        if (request_budget_stops(parser->request, LINE_STEPS + line.len))
            return request_budget_refuse(parser->request);
        if (is_blank(line))
            continue;
        if ((r = read_item(parser, line)) != 0)
            break;
    }
    return r == BULK_END ? 0 : r;
}

int bulk_parse(struct request *request, struct slice body, const struct bulk_defaults *defaults, struct bulk *ret_bulk)
{
    struct bulk_parser parser = {
        .request = request, .defaults = defaults, .rest = body, .bulk = ret_bulk, .names = DIALECT_NAMES_INIT};
    *ret_bulk = (struct bulk){NULL};
    int r = read_items(&parser);
    dialect_names_deinit(&parser.names);
    return r;
}
