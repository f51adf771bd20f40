/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users, roles and API keys, as JSON objects of the catalog. Their members are interpreted where
 * rights are checked (README-rights.md). Here only names, the presence of a user's password, and
 * limits are checked.
 *
 * Commands never have a secret: they have the hash of a password or key.
 */
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_change.h"
#include "core/catalog/object.h"
#include "core/command/command.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "json/json.h"
#include "json/write.h"

enum { REFUSED = 1 };

static const struct security_kind {
    const char *lang;
    enum catalog_kind kind;
    size_t max;
} kinds[] = {
    {"user", CATALOG_USERS, CATALOG_USERS_MAX},
    {"role", CATALOG_ROLES, CATALOG_ROLES_MAX},
    {"api_key", CATALOG_API_KEYS, CATALOG_API_KEYS_MAX},
};

/* Returns: the kind that the command gives; NULL: none, and its problem is set. */
static const struct security_kind *kind_of(struct command *command)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (slice_is(command->object.lang, kinds[i].lang))
            return &kinds[i];
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "[%.*s] is neither a user nor a role nor an api_key", SLICE_ARG(command->object.lang));
    return NULL;
}

static int check_object(struct core *core, struct command *command, const struct security_kind *kind, bool exists)
{
    const struct object_command *put = &command->object;
    int bytes_max = CATALOG_SECURITY_BYTES_MAX;

    if (put->name.len == 0 || put->name.len > CATALOG_NAME_BYTES_MAX)
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "the name of a %s is empty or too long", kind->lang);
    else if (put->body.len > CATALOG_SECURITY_BYTES_MAX)
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT, "a %s has at most [%d] bytes",
                    kind->lang, bytes_max);
    else if (!exists && catalog_object_count(core->catalog, kind->kind) >= kind->max)
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED,
                    "there are %zu objects of the kind [%s], the most there may be", kind->max, kind->lang);
    else
        return 0;
    return REFUSED;
}

static int refuse_missing(struct command *command)
{
    problem_set(&command->problem, &command->arena, PROBLEM_RESOURCE_NOT_FOUND, "%.*s [%.*s] does not exist",
                SLICE_ARG(command->object.lang), SLICE_ARG(command->object.name));
    return 0;
}

/*
 * Puts an object. `change`: it must exist and keeps the members that the body lacks; else only a
 * user keeps its password.
 */
static int put_object(struct core *core, struct command *command, bool change)
{
    const struct object_command *request = &command->object;
    const struct security_kind *kind = kind_of(command);
    const struct catalog_object *before =
        kind == NULL ? NULL : catalog_object(core->catalog, kind->kind, request->name);
    struct json_doc body, was = {0};

    if (kind == NULL || check_object(core, command, kind, before != NULL) != 0 ||
        json_parse(&core->arena, request->body, DIALECT_7, JSON_DUPLICATES, &body, &command->problem) != 0)
        return 0;
    if (change && before == NULL)
        return refuse_missing(command);
    if (before != NULL && request->create) {
        problem_set(&command->problem, &command->arena, PROBLEM_RESOURCE_ALREADY_EXISTS, "%s [%.*s] already exists",
                    kind->lang, SLICE_ARG(request->name));
        return 0;
    }
    if (before != NULL && json_parse_stored(&core->arena, before->body, &was) != 0)
        return tl_trace(TL_ERR_CORRUPT);
    if (kind->kind == CATALOG_USERS && json_get_lit(body.root, "hash") == NULL &&
        json_get_lit(was.root, "hash") == NULL) {
        problem_set(&command->problem, &command->arena, PROBLEM_ACTION_REQUEST_VALIDATION,
                    "Validation Failed: 1: password must be specified unless you are updating an existing user;");
        return 0;
    }
    command->object.existed = before != NULL;
    catalog_change__put_object(
        core, kind->kind,
        &(struct catalog_object){.name = request->name,
                                 .body = object__merge(core, was.root, body.root, change ? NULL : "hash")});
    return 0;
}

int core__do_security_put(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_SECURITY_PUT);
    return put_object(core, command, false);
}

int core__do_security_change(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_SECURITY_CHANGE);
    return put_object(core, command, true);
}

int core__do_security_delete(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_SECURITY_DELETE);
    const struct security_kind *kind = kind_of(command);

    if (kind == NULL)
        return 0;
    if (catalog_object(core->catalog, kind->kind, command->object.name) == NULL)
        return refuse_missing(command);
    catalog_change__drop_object(core, kind->kind, command->object.name);
    return 0;
}
