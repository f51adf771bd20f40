/* SPDX-License-Identifier: Apache-2.0 */
/* Aliases: their bodies, and the command that changes them. */
#include "core/catalog/alias.h"

#include "core/catalog/catalog.h"
#include "core/catalog/index.h"
#include "core/step/command.h"
#include "core/step/handler.h"
#include "core/step/unit.h"
#include "json/filter.h"
#include "json/write.h"

static int refuse(struct arena *arena, struct problem *ret_problem, const char *reason, struct slice name)
{
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "%s [%.*s]", reason, SLICE_ARG(name));
    return ALIAS_REFUSED;
}

/* A routing value: a text, or a number as one. */
static struct slice routing_text(yyjson_val *value, struct arena *arena)
{
    struct buf buf = BUF_INIT(1024);
    struct slice text;

    if (yyjson_is_str(value))
        return json_slice(value);
    json_write(&buf, value, DIALECT_7);
    text = arena_copy(arena, buf_view(&buf));
    buf_deinit(&buf);
    return text;
}

static bool read_flag(yyjson_val *value, enum catalog_flag *ret_flag)
{
    struct slice text = json_slice(value);

    if (yyjson_is_bool(value))
        *ret_flag = yyjson_get_bool(value) ? CATALOG_FLAG_TRUE : CATALOG_FLAG_FALSE;
    else if (slice_is(text, "true") || slice_is(text, "false"))
        *ret_flag = slice_is(text, "true") ? CATALOG_FLAG_TRUE : CATALOG_FLAG_FALSE;
    else
        return yyjson_is_null(value);
    return true;
}

static int read_member(struct catalog_alias *alias, struct slice key, yyjson_val *value, struct arena *arena,
                       struct problem *ret_problem)
{
    bool scalar = yyjson_is_str(value) || yyjson_is_num(value);

    if (slice_is(key, "filter") && yyjson_is_obj(value)) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        json_write(&buf, value, DIALECT_7);
        if (yyjson_obj_size(value) > 0)
            alias->filter = arena_copy(arena, buf_view(&buf));
        buf_deinit(&buf);
    } else if (slice_is(key, "routing") && scalar) {
        alias->index_routing = alias->search_routing = routing_text(value, arena);
    } else if ((slice_is(key, "index_routing") || slice_is(key, "indexRouting") || slice_is(key, "index-routing")) &&
               scalar) {
        alias->index_routing = routing_text(value, arena);
    } else if ((slice_is(key, "search_routing") || slice_is(key, "searchRouting") || slice_is(key, "search-routing")) &&
               scalar) {
        alias->search_routing = routing_text(value, arena);
    } else if (slice_is(key, "is_write_index")) {
        if (!read_flag(value, &alias->write_index))
            return refuse(arena, ret_problem, "Failed to parse value as only [true] or [false] are allowed for", key);
    } else if (slice_is(key, "is_hidden")) {
        if (!read_flag(value, &alias->hidden))
            return refuse(arena, ret_problem, "Failed to parse value as only [true] or [false] are allowed for", key);
    } else if (!yyjson_is_null(value)) {
        return refuse(arena, ret_problem, "unknown or malformed key in an alias:", key);
    }
    return 0;
}

/* Reads {"filter": …, "routing": …, "index_routing", "search_routing", "is_write_index", "is_hidden"}; NULL: nothing set. */
static int parse_alias(struct slice name, yyjson_val *body, struct arena *arena, struct catalog_alias *ret_alias,
                       struct problem *ret_problem)
{
    struct catalog_alias alias = {.name = name, .write_index = CATALOG_FLAG_UNSET, .hidden = CATALOG_FLAG_UNSET};
    size_t i, max;
    yyjson_val *key, *value;

    yyjson_obj_foreach (body, i, max, key, value) {
        int r = read_member(&alias, json_slice(key), value, arena, ret_problem);
        if (r != 0)
            return r;
    }
    *ret_alias = alias;
    return 0;
}

static void put_alias(struct alias_set *set, struct arena *arena, const struct catalog_alias *alias)
{
    for (size_t i = 0; i < set->count; i++)
        if (slice_equal(set->items[i].name, alias->name)) {
            set->items[i] = *alias;
            return;
        }
    set->items = arena_grow(arena, set->items, set->count, &set->capacity, sizeof(*set->items));
    set->items[set->count++] = *alias;
}

/* Returns: whether it was there. */
static bool remove_alias(struct alias_set *set, struct slice name)
{
    for (size_t i = 0; i < set->count; i++)
        if (slice_equal(set->items[i].name, name)) {
            set->items[i] = set->items[--set->count];
            return true;
        }
    return false;
}

int alias__parse_all(const struct catalog *catalog, yyjson_val *json, enum dialect dialect, struct arena *arena,
                     struct alias_set *set, struct problem *ret_problem)
{
    size_t i, max;
    yyjson_val *key, *body, *members = json_object_or_empty(json);

    yyjson_obj_foreach (members, i, max, key, body) {
        struct catalog_alias alias;
        if (catalog_check_alias_name(catalog, json_slice(key), dialect, arena, ret_problem) != 0 ||
            parse_alias(json_slice(key), body, arena, &alias, ret_problem) != 0)
            return ALIAS_REFUSED;
        put_alias(set, arena, &alias);
    }
    if (set->count > CATALOG_ALIASES_MAX) {
        problem_set(ret_problem, arena, PROBLEM_LIMIT_EXCEEDED, "an index has at most %d aliases", CATALOG_ALIASES_MAX);
        return ALIAS_REFUSED;
    }
    return 0;
}

int alias__check_write_index(const struct catalog *catalog, const struct catalog_index *index, struct arena *arena,
                             struct problem *ret_problem)
{
    for (size_t i = 0; i < index->alias_count; i++) {
        const struct alias_use *uses;
        struct slice first = SLICE_NONE;
        size_t count = catalog__alias_uses(catalog, index->aliases[i].name, &uses);
        for (size_t j = 0; j < count; j++) {
            const struct catalog_index *other = catalog_index(catalog, uses[j].index);
            if (catalog_index_alias(other, uses[j].alias)->write_index != CATALOG_FLAG_TRUE)
                continue;
            if (first.data != NULL) {
                problem_set(ret_problem, arena, PROBLEM_ILLEGAL_STATE,
                            "alias [%.*s] has more than one write index [%.*s,%.*s]", SLICE_ARG(uses[j].alias),
                            SLICE_ARG(first), SLICE_ARG(other->name));
                return ALIAS_REFUSED;
            }
            first = other->name;
        }
    }
    return 0;
}

/* --- Printing ----------------------------------------------------------------------------------------------------- */

static void write_flag(struct json_writer *writer, const char *key, enum catalog_flag flag)
{
    if (flag == CATALOG_FLAG_UNSET)
        return;
    json_key(writer, key);
    json_bool(writer, flag == CATALOG_FLAG_TRUE);
}

static void write_alias(struct json_writer *writer, const struct catalog_alias *alias)
{
    json_begin(writer, '{');
    if (alias->filter.data != NULL) {
        json_key(writer, "filter");
        json_raw(writer, alias->filter);
    }
    if (alias->index_routing.data != NULL) {
        json_key(writer, "index_routing");
        json_string(writer, alias->index_routing);
    }
    if (alias->search_routing.data != NULL) {
        json_key(writer, "search_routing");
        json_string(writer, alias->search_routing);
    }
    write_flag(writer, "is_write_index", alias->write_index);
    write_flag(writer, "is_hidden", alias->hidden);
    json_end(writer, '}');
}

void catalog_render_alias(const struct catalog_alias *alias, struct buf *buf)
{
    struct json_writer writer;

    json_writer_init(&writer, buf);
    write_alias(&writer, alias);
}

void catalog_render_aliases(const struct catalog_index *index, struct slice pattern, struct buf *buf)
{
    struct json_writer writer;

    json_writer_init(&writer, buf);
    json_begin(&writer, '{');
    for (size_t i = 0; i < index->alias_count; i++) {
        if (pattern.data != NULL && !json_wildcard(pattern, index->aliases[i].name))
            continue;
        json_key_slice(&writer, index->aliases[i].name);
        write_alias(&writer, &index->aliases[i]);
    }
    json_end(&writer, '}');
}

/* --- The command -------------------------------------------------------------------------------------------------- */

/* Replaces the aliases of an index. */
static int set_aliases(struct core *core, const struct catalog_index *index, const struct alias_set *set,
                       struct command *command)
{
    struct catalog_index_spec spec = catalog__spec(index);

    if (set->count > CATALOG_ALIASES_MAX) {
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED, "an index has at most %d aliases",
                    CATALOG_ALIASES_MAX);
        return ALIAS_REFUSED;
    }
    spec.aliases = set->items;
    spec.alias_count = set->count;
    core__put_index(core, &spec);
    return 0;
}

/* The aliases of an index, in a set that may be changed. */
static struct alias_set aliases_of(const struct catalog_index *index, struct arena *arena)
{
    struct alias_set set = {0};

    for (size_t i = 0; i < index->alias_count; i++) {
        struct catalog_alias copy = index->aliases[i];
        copy.name = arena_copy(arena, copy.name);
        copy.filter = copy.filter.data == NULL ? SLICE_NONE : arena_copy(arena, copy.filter);
        copy.index_routing = copy.index_routing.data == NULL ? SLICE_NONE : arena_copy(arena, copy.index_routing);
        copy.search_routing = copy.search_routing.data == NULL ? SLICE_NONE : arena_copy(arena, copy.search_routing);
        put_alias(&set, arena, &copy);
    }
    return set;
}

static int add(struct core *core, const struct alias_action *action, const struct catalog_index *index,
               struct command *command)
{
    struct alias_set set = aliases_of(index, &core->arena);
    struct json_doc body = {0};
    struct catalog_alias alias;

    if (catalog_check_alias_name(core->catalog, action->alias, command->dialect, &command->arena, &command->problem) !=
            0 ||
        (action->body.data != NULL &&
         json_parse(&core->arena, action->body, command->dialect, JSON_DUPLICATES, &body, &command->problem) != 0) ||
        parse_alias(action->alias, body.root, &core->arena, &alias, &command->problem) != 0)
        return ALIAS_REFUSED;
    put_alias(&set, &core->arena, &alias);
    return set_aliases(core, index, &set, command);
}

/* One that an action before it in the same request has taken away already is gone, as was wanted. */
static int take_away(struct core *core, const struct alias_action *action, const struct catalog_index *index,
                     struct command *command)
{
    struct alias_set set = aliases_of(index, &core->arena);

    return remove_alias(&set, action->alias) ? set_aliases(core, index, &set, command) : 0;
}

static int act(struct core *core, const struct alias_action *action, struct command *command)
{
    const struct catalog_index *index = catalog_index(core->catalog, action->index);

    if (index == NULL) {
        catalog_problem_missing(&command->arena, action->index, true, command->dialect, &command->problem);
        return ALIAS_REFUSED;
    }
    switch (action->op) {
    case ALIAS_ADD: return add(core, action, index, command);
    case ALIAS_REMOVE: return take_away(core, action, index, command);
    case ALIAS_REMOVE_INDEX: return index__delete(core, index);
    case ALIAS_OP_COUNT: break;
    }
    return 0;
}

/* Indices are removed first, so that an alias may take the name of one that goes in the same request. */
static int act_all(struct core *core, struct command *command)
{
    const struct aliases_command *aliases = &command->aliases;
    int r;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < aliases->action_count; i++)
            if ((aliases->actions[i].op == ALIAS_REMOVE_INDEX) == (pass == 0) &&
                (r = act(core, &aliases->actions[i], command)) != 0)
                return r;
    for (size_t i = 0; i < aliases->action_count; i++) {
        const struct catalog_index *index = catalog_index(core->catalog, aliases->actions[i].index);
        if (index != NULL && alias__check_write_index(core->catalog, index, &command->arena, &command->problem) != 0)
            return ALIAS_REFUSED;
    }
    return 0;
}

int core__do_aliases_update(struct core *core, struct command *command)
{
    int r = act_all(core, command);

    if (r < 0)
        return tl_trace(r);
    if (r != 0)
        core__abandon(core);
    return 0;
}
