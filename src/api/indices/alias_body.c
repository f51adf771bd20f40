/* SPDX-License-Identifier: Apache-2.0 */
#include "api/indices/alias_body.h"

#include <stdarg.h>
#include <string.h>

#include "api/request/location.h"
#include "json/each.h"
#include "query/query.h"

/* A member that an action may have. */
struct member {
    const char *name;
    unsigned kinds;
    const char *rival; /* of two names for one thing only one may be given */
    bool unsupported;  /* known, and refused by name */
};

static const struct member members_of_add[] = {
    {"index", JSON_TEXT, "indices", false},
    {"indices", JSON_TEXT | JSON_LIST, "index", false},
    {"alias", JSON_TEXT, "aliases", false},
    {"aliases", JSON_TEXT | JSON_LIST, "alias", false},
    {"filter", JSON_OBJECT, NULL, false},
    {"routing", JSON_TEXT | JSON_NUMBER, NULL, false},
    {"index_routing", JSON_TEXT | JSON_NUMBER, NULL, false},
    {"indexRouting", JSON_TEXT | JSON_NUMBER, NULL, false},
    {"index-routing", JSON_TEXT | JSON_NUMBER, NULL, false},
    {"search_routing", JSON_TEXT | JSON_NUMBER, NULL, false},
    {"searchRouting", JSON_TEXT | JSON_NUMBER, NULL, false},
    {"search-routing", JSON_TEXT | JSON_NUMBER, NULL, false},
    {"is_write_index", JSON_TEXT | JSON_BOOLEAN, NULL, false},
    {"is_hidden", JSON_TEXT | JSON_BOOLEAN, NULL, false},
    {"must_exist", JSON_TEXT | JSON_BOOLEAN, NULL, true},
    {NULL},
};

static const struct member members_of_remove[] = {
    {"index", JSON_TEXT, "indices", false},
    {"indices", JSON_TEXT | JSON_LIST, "index", false},
    {"alias", JSON_TEXT, "aliases", false},
    {"aliases", JSON_TEXT | JSON_LIST, "alias", false},
    {NULL},
};

static const struct member members_of_remove_index[] = {
    {"index", JSON_TEXT, "indices", false},
    {"indices", JSON_TEXT | JSON_LIST, "index", false},
    {"alias", JSON_TEXT, NULL, true},
    {"aliases", JSON_TEXT | JSON_LIST, NULL, true},
    {NULL},
};

static const struct {
    const char *name, *constant;
    const struct member *members;
} actions[] = {
    {"add", "ADD", members_of_add},
    {"remove", "REMOVE", members_of_remove},
    {"remove_index", "REMOVE_INDEX", members_of_remove_index},
};

enum { ACTIONS = sizeof actions / sizeof *actions };

struct body {
    struct request *request;
    const struct json_doc *doc;
    yyjson_val
        *at; /* the value being checked, or, with `end`, its closing bracket: located in the text when it is refused */
    bool end;
};

/* --- Refusing ----------------------------------------------------------------------------------------------------- */

static void set_place(struct body *body, yyjson_val *value, bool end)
{
    body->at = value;
    body->end = end;
}

static void find_place(const struct body *body, size_t *ret_line, size_t *ret_column)
{
    query_location(body->doc, body->at, body->end, ret_line, ret_column);
}

/* "[1:32] [add] " and what follows. */
static int refuse_at(struct body *body, const char *parser, const char *format, ...) TL_PRINTF(3, 4);
static int refuse_at(struct body *body, const char *parser, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice what = arena_vprintf(body->request->arena, format, arguments);
    va_end(arguments);
    size_t line, column;
    find_place(body, &line, &column);
    return request_refuse(body->request, PROBLEM_X_CONTENT_PARSE, "[%zu:%zu] [%s] %.*s", line, column, parser,
                          SLICE_ARG(what));
}

/* Makes the refusal the cause of the enclosing member's. */
static int wrap_problem(struct body *body, const char *parser, const char *member)
{
    struct problem *cause = arena_alloc(body->request->arena, sizeof *cause);
    *cause = body->request->problem;
    refuse_at(body, parser, "failed to parse field [%s]", member);
    body->request->problem.caused_by = cause;
    return REQUEST_REFUSED;
}

/* The innermost cause of its own kind, under the member that it is about. */
static int refuse_inside(struct body *body, const char *parser, const char *member, enum problem_type type,
                         const char *format, ...) TL_PRINTF(5, 6);
static int refuse_inside(struct body *body, const char *parser, const char *member, enum problem_type type,
                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice what = arena_vprintf(body->request->arena, format, arguments);
    va_end(arguments);
    request_refuse(body->request, type, "%.*s", SLICE_ARG(what));
    return wrap_problem(body, parser, member);
}

static struct slice propose_member(struct body *body, struct slice name, const struct member *members)
{
    const char *known[16];
    size_t count = 0;
    for (const struct member *member = members; member->name != NULL; member++)
        known[count++] = member->name;
    return query_suggest(body->request->arena, name, known, count);
}

/* --- Members ------------------------------------------------------------------------------------------------------ */

static int check_list(struct body *body, const char *action, const struct member *member, yyjson_val *value)
{
    size_t i, count;
    yyjson_val *item;
    if (unsafe_yyjson_get_len(value) == 0) {
        set_place(body, value, true);
        return refuse_inside(body, action, member->name, PROBLEM_ILLEGAL_ARGUMENT, "[%s] can't be empty", member->name);
    }
    json_arr_foreach (value, i, count, item) {
        if ((json_kind(item) & (JSON_TEXT | JSON_NUMBER | JSON_BOOLEAN)) != 0)
            continue;
        size_t line, column;
        set_place(body, item, false);
        find_place(body, &line, &column);
        return refuse_inside(body, action, member->name, PROBLEM_ILLEGAL_STATE, "Can't get text on a %s at %zu:%zu",
                             json_token(item), line, column);
    }
    return 0;
}

static int check_value(struct body *body, size_t action, const struct member *member, yyjson_val *object,
                       yyjson_val *value)
{
    const char *name = actions[action].name;
    set_place(body, value, false);
    if ((member->kinds & json_kind(value)) == 0)
        return refuse_at(body, name, "%s doesn't support values of type: %s", member->name, json_token(value));
    if (yyjson_is_arr(value)) {
        int r = check_list(body, name, member, value);
        if (r != 0)
            return r;
        set_place(body, value, true);
    }
    if (member->unsupported)
        return refuse_inside(body, name, member->name, PROBLEM_ILLEGAL_ARGUMENT, "[%s] is unsupported for [%s]",
                             member->name, actions[action].constant);
    if (member->rival != NULL && yyjson_is_str(value) && unsafe_yyjson_get_len(value) == 0)
        return refuse_inside(body, name, member->name, PROBLEM_ILLEGAL_ARGUMENT, "[%s] can't be empty string",
                             member->name);
    yyjson_val *rival = member->rival == NULL ? NULL : yyjson_obj_get(object, member->rival);
    if (rival != NULL && rival < value) {
        bool singular = strlen(member->name) < strlen(member->rival);
        return refuse_inside(body, name, member->name, PROBLEM_ILLEGAL_ARGUMENT,
                             "Only one of [%s] and [%s] is supported", singular ? member->name : member->rival,
                             singular ? member->rival : member->name);
    }
    struct slice text = json_slice(value);
    if ((member->kinds & JSON_BOOLEAN) != 0 && yyjson_is_str(value) && !slice_is(text, "true") &&
        !slice_is(text, "false"))
        return refuse_inside(body, name, member->name, PROBLEM_ILLEGAL_ARGUMENT,
                             "Failed to parse value [%.*s] as only [true] or [false] are allowed.", SLICE_ARG(text));
    return 0;
}

static int check_members(struct body *body, size_t action, yyjson_val *object)
{
    size_t i, count;
    yyjson_val *key, *value;
    json_obj_foreach (object, i, count, key, value) {
        const struct member *member = actions[action].members;
        while (member->name != NULL && !slice_is(json_slice(key), member->name))
            member++;
        int r;
        if (member->name == NULL) {
            set_place(body, key, false);
            struct slice suggested = propose_member(body, json_slice(key), actions[action].members);
            r = refuse_at(body, actions[action].name, "unknown field [%.*s]%.*s", SLICE_ARG(json_slice(key)),
                          SLICE_ARG(suggested));
            set_place(body, value, false); /* where those around have read on to */
        } else {
            r = check_value(body, action, member, object, value);
        }
        if (r != 0)
            return wrap_problem(body, "alias_action", actions[action].name);
    }
    return 0;
}

/* --- Actions ------------------------------------------------------------------------------------------------------ */

static int check_action(struct body *body, yyjson_val *item, yyjson_val *list)
{
    size_t i, count;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(item)) {
        set_place(body, list, true);
        return refuse_at(body, "alias_action", "Expected START_OBJECT but was: END_ARRAY");
    }
    json_obj_foreach (item, i, count, key, value) {
        size_t action = 0;
        while (action < ACTIONS && !slice_is(json_slice(key), actions[action].name))
            action++;
        if (action == ACTIONS) {
            static const char *const known[] = {"add", "remove", "remove_index"};
            struct slice suggested = query_suggest(body->request->arena, json_slice(key), known, ACTIONS);
            set_place(body, key, false);
            int r = refuse_at(body, "alias_action", "unknown field [%.*s]%.*s", SLICE_ARG(json_slice(key)),
                              SLICE_ARG(suggested));
            set_place(body, value, false);
            return r;
        }
        set_place(body, value, false);
        if (!yyjson_is_obj(value))
            return refuse_at(body, "alias_action", "%s doesn't support values of type: %s", actions[action].name,
                             json_token(value));
        int r = check_members(body, action, value);
        if (r != 0)
            return r;
    }
    if (count > 1) {
        struct problem *cause = arena_zalloc(body->request->arena, sizeof *cause);
        cause->type = PROBLEM_ILLEGAL_ARGUMENT;
        cause->reason = SLICE_LIT("Too many operations declared on operation entry");
        request_refuse(body->request, PROBLEM_X_CONTENT_PARSE,
                       "Failed to build [alias_action] after last required field arrived");
        body->request->problem.caused_by = cause;
        set_place(body, item, true);
        return REQUEST_REFUSED;
    }
    return 0;
}

/* What an action lacks is seen when all have been read. */
static int check_complete(struct body *body, yyjson_val *item, yyjson_val *list)
{
    yyjson_val *key = unsafe_yyjson_get_len(item) == 0 ? NULL : unsafe_yyjson_get_first(item);
    yyjson_val *object = key == NULL ? NULL : yyjson_obj_iter_get_val(key);
    bool index = yyjson_obj_get(object, "index") != NULL || yyjson_obj_get(object, "indices") != NULL;
    bool alias = yyjson_obj_get(object, "alias") != NULL || yyjson_obj_get(object, "aliases") != NULL;
    set_place(body, list, true);
    if (key == NULL)
        return refuse_inside(body, "aliases", "actions", PROBLEM_ILLEGAL_ARGUMENT,
                             "an action is [add], [remove] or [remove_index]");
    if (!index)
        return refuse_inside(body, "aliases", "actions", PROBLEM_ILLEGAL_ARGUMENT,
                             "One of [index] or [indices] is required");
    if (!alias && !slice_is(json_slice(key), "remove_index"))
        return refuse_inside(body, "aliases", "actions", PROBLEM_ILLEGAL_ARGUMENT,
                             "One of [alias] or [aliases] is required");
    return 0;
}

static int check_actions(struct body *body, yyjson_val *list)
{
    size_t i, count = yyjson_is_arr(list) ? unsafe_yyjson_get_len(list) : 1;
    yyjson_val *item = yyjson_is_arr(list) ? unsafe_yyjson_get_first(list) : list, *each = item;
    for (i = 0; i < count; i++, each = unsafe_yyjson_get_next(each))
        if (check_action(body, each, list) != 0)
            return wrap_problem(body, "aliases", "actions");
    for (i = 0, each = item; i < count; i++, each = unsafe_yyjson_get_next(each))
        if (check_complete(body, each, list) != 0)
            return REQUEST_REFUSED;
    return 0;
}

int alias_body_check(struct request *request, const struct json_doc *doc)
{
    struct body body = {request, doc, doc->root, false};
    size_t i, count;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(doc->root))
        return refuse_at(&body, "aliases", "Expected START_OBJECT but was: %s", json_token(doc->root));
    json_obj_foreach (doc->root, i, count, key, value) {
        set_place(&body, key, false);
        if (!slice_is(json_slice(key), "actions"))
            return refuse_at(&body, "aliases", "unknown field [%.*s]", SLICE_ARG(json_slice(key)));
        set_place(&body, value, false);
        if (!yyjson_is_ctn(value))
            return refuse_at(&body, "aliases", "actions doesn't support values of type: %s", json_token(value));
        int r = check_actions(&body, value);
        if (r != 0)
            return r;
    }
    return 0;
}
