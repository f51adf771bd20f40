/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index templates (_template).
 */
#include "api/indices/alias_filter.h"
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/name_list.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "json/each.h"

#include <inttypes.h>

static int template_done(struct request *request, struct command *command)
{
    (void)command;
    return reply_acknowledged(request);
}

/* Returns: a template's body with an order, which is a parameter, unless it has one itself. */
static struct slice with_order(struct request *request, yyjson_val *root, int32_t order)
{
    struct slice body = request_body(request);
    if (order == 0 || json_get_lit(root, "order") != NULL)
        return body;
    struct slice members = slice_from_offset(body, slice_find_byte(body, '{') + 1);
    return arena_printf(request->arena, "{\"order\":%" PRId32 "%s%.*s", order, yyjson_obj_size(root) > 0 ? "," : "",
                        SLICE_ARG(members));
}

/*
 * An order counts 0 if it is null. Elasticsearch takes a text that is a number, and refuses any other value as
 * a text that is no number.
 */
static int check_order(struct request *request, yyjson_val *order)
{
    int64_t value;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    if (order == NULL || yyjson_is_null(order))
        return 0;
    if (yyjson_is_int(order) ||
        (yyjson_is_str(order) && slice_to_i64(json_slice(order), &value) && value >= INT32_MIN && value <= INT32_MAX))
        return 0;
    if (yyjson_is_str(order))
        buf_slice(&text, json_slice(order));
    else
        json_write(&text, order, DIALECT_7);
    int r = yyjson_is_real(order) ? request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "%.*s is not an integer value",
                                                   SLICE_ARG(buf_as_slice(&text)))
                                  : request_refuse(request, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"",
                                                   SLICE_ARG(buf_as_slice(&text)));
    buf_deinit(&text);
    return r;
}

/*
 * The members of a body of 7.x, of which an invalid or unknown one would have no effect. Elasticsearch keeps a body in
 * a hash table, so of several it may name another.
 */
static int check_body(struct request *request, yyjson_val *body)
{
    static const char *const known[] = {"index_patterns", "template", "order",   "version",
                                        "settings",       "mappings", "aliases", NULL};
    static const char *const sections[] = {"settings", "mappings", "aliases"};
    size_t i, count;
    yyjson_val *key, *value, *patterns = json_get_lit(body, "index_patterns"), *version = json_get_lit(body, "version");
    json_obj_foreach (body, i, count, key, value)
        if (!slice_is_any(json_slice(key), known))
            return request_refuse(request, PROBLEM_PARSE, "unknown key [%.*s] in the template ",
                                  SLICE_ARG(json_slice(key)));
    if (patterns != NULL && !yyjson_is_str(patterns) && !yyjson_is_arr(patterns))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "Malformed [template] value, should be a string or a list of strings");
    if (patterns == NULL && yyjson_is_arr(json_get_lit(body, "template")))
        return request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                              "Validation Failed: 1: index patterns are missing;");
    if (version != NULL &&
        (!yyjson_is_int(version) || yyjson_get_sint(version) < INT32_MIN || yyjson_get_sint(version) > INT32_MAX))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Malformed [version] value, should be an integer");
    for (i = 0; i < sizeof sections / sizeof *sections; i++) {
        yyjson_val *section = json_get(body, slice_from(sections[i]));
        if (section != NULL && !yyjson_is_obj(section))
            return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                                  "Malformed [%s] section, should include an inner object", sections[i]);
    }
    return check_order(request, json_get_lit(body, "order"));
}

int handle_template_put(struct request *request)
{
    struct json_doc doc;
    bool create = false, typed = false;
    int32_t order = 0;
    int r = request_bool(request, "create", &create);
    if (r != 0 || (r = request_bool(request, "include_type_name", &typed)) != 0 ||
        (r = request_int(request, "order", &order)) != 0 || (r = request_accept(request)) != 0)
        return r;
    if ((r = request_json(request, 0, &doc)) != 0)
        return r < 0 ? r : request_wrap(request, PROBLEM_PARSE, "Failed to parse content to map");
    if (!yyjson_is_obj(doc.root))
        return request_refuse(request, PROBLEM_PARSE, "request body is required");
    if ((request->dialect == DIALECT_7 && (r = check_body(request, doc.root)) != 0) ||
        (r = alias_routings_check(request, json_get_lit(doc.root, "aliases"))) != 0)
        return r;
    struct command *command = command_new(COMMAND_TEMPLATE_PUT, typed ? DIALECT_5 : request->dialect);
    command->object.name = request_part(request, PART_NAME);
    command->object.body = with_order(request, doc.root, order);
    command->object.create = create;
    return request_submit(request, command, template_done);
}

int handle_template_delete(struct request *request)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    struct command *command = command_new(COMMAND_TEMPLATE_DELETE, request->dialect);
    command->object.name = request_part(request, PART_NAME);
    return request_submit(request, command, template_done);
}

int handle_template_get(struct request *request)
{
    struct json_writer writer;
    bool flag = false;
    size_t found = 0;
    int r = request_bool(request, "flat_settings", &flag);
    if (r != 0 || (r = request_bool(request, "local", &flag)) != 0 ||
        (r = request_bool(request, "include_type_name", &flag)) != 0 || (r = request_accept(request)) != 0)
        return r;
    const struct catalog *catalog = request_catalog(request);
    struct slice names = request_part(request, PART_NAME);
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    for (size_t i = 0; i < catalog_object_count(catalog, CATALOG_TEMPLATES); i++) {
        const struct catalog_object *object = catalog_object_at(catalog, CATALOG_TEMPLATES, i);
        if (!name_list_match(names, object->name))
            continue;
        found++;
        json_key_slice(&writer, object->name);
        json_raw(&writer, object->body);
    }
    json_end(&writer, '}');
    if (found == 0 && names.len > 0 && (slice_find_byte(names, '*') == names.len || request->dialect == DIALECT_7))
        request->exchange->status = 404;
    return REQUEST_DONE;
}
