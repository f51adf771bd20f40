/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Composable templates: _index_template and _component_template.
 *
 * The shape of a body is checked here, with the locations that Elasticsearch's parser reports; its
 * meaning, in the core.
 */
#include "api/indices/alias_filter.h"
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/location.h"
#include "api/request/name_list.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "json/each.h"
#include "json/filter.h"

enum { TEXT = 1, NUMBER = 2, LIST = 4, OBJECT = 8 };

/* A member that a body, or the template in it, may have. */
struct member {
    const char *name;
    int kinds;
    const struct member *inside; /* of an object whose members are looked at, too */
};

static const struct member template_members[] = {
    {"settings", OBJECT, NULL}, {"mappings", OBJECT | TEXT, NULL}, {"aliases", OBJECT, NULL}, {NULL}};
static const struct member index_members[] = {{"index_patterns", LIST | TEXT, NULL},
                                              {"template", OBJECT, template_members},
                                              {"composed_of", LIST | TEXT, NULL},
                                              {"priority", NUMBER | TEXT, NULL},
                                              {"version", NUMBER | TEXT, NULL},
                                              {"_meta", OBJECT, NULL},
                                              {NULL}};
static const struct member component_members[] = {
    {"template", OBJECT, template_members}, {"version", NUMBER | TEXT, NULL}, {"_meta", OBJECT, NULL}, {NULL}};

static int kind_of(yyjson_val *value)
{
    return yyjson_is_str(value)   ? TEXT
           : yyjson_is_num(value) ? NUMBER
           : yyjson_is_arr(value) ? LIST
           : yyjson_is_obj(value) ? OBJECT
                                  : 0;
}

static int refuse_at(struct request *request, const struct json_doc *doc, size_t offset, const char *parser,
                     struct slice what)
{
    size_t line, column;
    location_line(doc, offset, &line, &column);
    return request_refuse(request, PROBLEM_X_CONTENT_PARSE, "[%zu:%zu] [%s] %.*s", line, column, parser,
                          SLICE_ARG(what));
}

/* Makes the refusal the cause of the enclosing member's, at the refused value. */
static int wrap_problem(struct request *request, const struct json_doc *doc, size_t offset, const char *parser,
                        const char *name)
{
    struct problem *cause = arena_alloc(request->arena, sizeof *cause);
    *cause = request->problem;
    int r = refuse_at(request, doc, offset, parser, arena_printf(request->arena, "failed to parse field [%s]", name));
    request->problem.caused_by = cause;
    return r;
}

static const struct member *find_member(const struct member *members, struct slice name)
{
    while (members->name != NULL && !slice_is(name, members->name))
        members++;
    return members->name == NULL ? NULL : members;
}

/* The items of a list of texts: anything else that is one token counts as its text does there, and is refused here. */
static bool holds_texts(yyjson_val *value)
{
    size_t i, max;
    yyjson_val *item;
    json_arr_foreach (value, i, max, item)
        if (!yyjson_is_str(item))
            return false;
    return true;
}

/* *ret_wrong: the offset of the refused value. */
static int check_object(struct request *request, const struct json_doc *doc, yyjson_val *object,
                        const struct member *members, const char *parser, size_t *ret_wrong);

static int check_member(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                        const struct member *members, const char *parser, size_t *ret_wrong)
{
    const struct member *member = find_member(members, json_slice(key));
    size_t at = location_of_member(doc, key);
    *ret_wrong = at;
    if (member == NULL)
        return refuse_at(request, doc, location_of_string(doc, key), parser,
                         arena_printf(request->arena, "unknown field [%.*s]", SLICE_ARG(json_slice(key))));
    if ((member->kinds & kind_of(value)) == 0)
        return refuse_at(
            request, doc, at, parser,
            arena_printf(request->arena, "%s doesn't support values of type: %s", member->name, json_token(value)));
    int64_t number;
    if ((member->kinds & NUMBER) != 0 && yyjson_is_str(value) && !slice_to_i64(json_slice(value), &number)) {
        request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "For input string: \"%.*s\"", SLICE_ARG(json_slice(value)));
        return wrap_problem(request, doc, at, parser, member->name);
    }
    if (yyjson_is_real(value)) {
        request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[%s] of a template must be a whole number", member->name);
        return wrap_problem(request, doc, at, parser, member->name);
    }
    if (!holds_texts(value)) {
        request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[%s] of a template must be texts", member->name);
        return wrap_problem(request, doc, at, parser, member->name);
    }
    if (slice_is(slice_from(member->name), "mappings") && yyjson_is_str(value)) {
        request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[mappings] as a text is not supported: send an object");
        return wrap_problem(request, doc, at, parser, member->name);
    }
    if (member->inside != NULL && check_object(request, doc, value, member->inside, member->name, ret_wrong) != 0)
        return wrap_problem(request, doc, *ret_wrong, parser, member->name);
    return 0;
}

static int check_object(struct request *request, const struct json_doc *doc, yyjson_val *object,
                        const struct member *members, const char *parser, size_t *ret_wrong)
{
    size_t i, max;
    yyjson_val *key, *value;
    json_obj_foreach (object, i, max, key, value)
        if (check_member(request, doc, key, value, members, parser, ret_wrong) != 0)
            return REQUEST_REFUSED;
    return 0;
}

static int check_body(struct request *request, const struct json_doc *doc, const struct member *members,
                      const char *parser, const char *required)
{
    if (doc->root == NULL)
        return request_refuse(request, PROBLEM_PARSE, "request body is required");
    if (!yyjson_is_obj(doc->root))
        return refuse_at(request, doc, location_of_root(doc), parser,
                         arena_printf(request->arena, "Expected START_OBJECT but was: %s", json_token(doc->root)));
    size_t wrong;
    int r = check_object(request, doc, doc->root, members, parser, &wrong);
    if (r == 0 && json_get(doc->root, slice_from(required)) == NULL)
        r = request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "Required [%s]", required);
    yyjson_val *priority = json_get_lit(doc->root, "priority");
    int64_t number = yyjson_is_int(priority) ? yyjson_get_sint(priority) : 0;
    if (r == 0 && yyjson_is_str(priority) && !slice_to_i64(json_slice(priority), &number))
        number = 0;
    if (r == 0 && number < 0)
        r = request_refuse(request, PROBLEM_ACTION_REQUEST_VALIDATION,
                           "Validation Failed: 1: index template priority must be >= 0;");
    return r;
}

static int template_changed(struct request *request, struct command *command)
{
    (void)command;
    return reply_acknowledged(request);
}

static int put_template(struct request *request, enum command_type type, const struct member *members,
                        const char *parser, const char *required)
{
    struct json_doc doc;
    bool create = false;
    int r = request_bool(request, "create", &create);
    if (r != 0 || (r = request_accept(request)) != 0 || (r = request_json(request, 0, &doc)) != 0 ||
        (r = check_body(request, &doc, members, parser, required)) != 0)
        return r;
    yyjson_val *template = json_get_lit(doc.root, "template");
    if ((r = alias_routings_check(request, json_get_lit(template, "aliases"))) != 0)
        return r;
    r = type == COMMAND_INDEX_TEMPLATE_PUT
            ? alias_filters_check(request, request_part(request, PART_NAME), DIALECT_7, false,
                                  json_get_lit(template, "mappings"), json_get_lit(template, "aliases"))
            : 0;
    if (r == REQUEST_REFUSED) {
        struct problem *cause = arena_alloc(request->arena, sizeof *cause);
        *cause = request->problem;
        request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                       "composable template [%.*s] template after composition is invalid",
                       SLICE_ARG(request_part(request, PART_NAME)));
        request->problem.caused_by = cause;
    }
    if (r != 0)
        return r;
    struct command *command = command_new(type, request->dialect);
    command->object.name = request_part(request, PART_NAME);
    command->object.body = request_body(request);
    command->object.create = create;
    return request_submit(request, command, template_changed);
}

static int delete (struct request *request, enum command_type type)
{
    int r = request_accept(request);
    if (r != 0)
        return r;
    struct command *command = command_new(type, request->dialect);
    command->object.name = request_part(request, PART_NAME);
    return request_submit(request, command, template_changed);
}

/* {"index_templates": [{"name": "a", "index_template": {…}}, …]} */
static int get_templates(struct request *request, enum catalog_kind kind, const char *list, const char *item,
                         const char *noun)
{
    struct json_writer writer;
    bool flag = false;
    size_t found = 0;
    int r = request_bool(request, "flat_settings", &flag);
    if (r != 0 || (r = request_bool(request, "local", &flag)) != 0 || (r = request_accept(request)) != 0)
        return r;
    const struct catalog *catalog = request_catalog(request);
    struct slice name = request_part(request, PART_NAME);
    if (name.len > 0 && slice_find_byte(name, '*') == name.len && catalog_object(catalog, kind, name) == NULL)
        return request_refuse(request, PROBLEM_RESOURCE_NOT_FOUND, "%s template matching [%.*s] not found", noun,
                              SLICE_ARG(name));
    reply_begin(request, 200, &writer);
    json_begin(&writer, '{');
    json_key(&writer, list);
    json_begin(&writer, '[');
    for (size_t i = 0; i < catalog_object_count(catalog, kind); i++) {
        const struct catalog_object *object = catalog_object_at(catalog, kind, i);
        if (name.len > 0 && !json_wildcard(name, object->name))
            continue;
        found++;
        json_begin(&writer, '{');
        json_key(&writer, "name");
        json_string(&writer, object->name);
        json_key(&writer, item);
        json_raw(&writer, object->body);
        json_end(&writer, '}');
    }
    json_end(&writer, ']');
    json_end(&writer, '}');
    if (found == 0 && name.len > 0)
        request->exchange->status = 404;
    return REQUEST_DONE;
}

int handle_index_template_put(struct request *request)
{
    return put_template(request, COMMAND_INDEX_TEMPLATE_PUT, index_members, "index_template", "index_patterns");
}

int handle_index_template_delete(struct request *request)
{
    return delete (request, COMMAND_INDEX_TEMPLATE_DELETE);
}

int handle_index_template_get(struct request *request)
{
    return get_templates(request, CATALOG_INDEX_TEMPLATES, "index_templates", "index_template", "index");
}

int handle_component_put(struct request *request)
{
    return put_template(request, COMMAND_COMPONENT_PUT, component_members, "component_template", "template");
}

int handle_component_delete(struct request *request)
{
    return delete (request, COMMAND_COMPONENT_DELETE);
}

int handle_component_get(struct request *request)
{
    return get_templates(request, CATALOG_COMPONENTS, "component_templates", "component_template", "component");
}
