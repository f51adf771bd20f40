/* SPDX-License-Identifier: Apache-2.0 */
/* Aliases: their bodies, and the command that changes them. */
#include "core/catalog/alias.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/siphash.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_change.h"
#include "core/catalog/index.h"
#include "core/feed/feed.h"
#include "core/command/command.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "json/each.h"
#include "json/filter.h"
#include "json/write.h"

static int refuse_alias(struct arena *arena, struct problem *ret_problem, const char *reason, struct slice name)
{
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "%s [%.*s]", reason, SLICE_ARG(name));
    return ALIAS_REFUSED;
}

/* Returns: a routing value, given as text or number, as text. */
static struct slice routing_text(yyjson_val *value, struct arena *arena)
{
    struct buf buf = BUF_INIT(1024);
    struct slice text;

    if (yyjson_is_str(value))
        return json_slice(value);
    json_write(&buf, value, DIALECT_7);
    text = arena_copy(arena, buf_as_slice(&buf));
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
            alias->filter = arena_copy(arena, buf_as_slice(&buf));
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
            return refuse_alias(arena, ret_problem, "Failed to parse value as only [true] or [false] are allowed for",
                                key);
    } else if (slice_is(key, "is_hidden")) {
        if (!read_flag(value, &alias->hidden))
            return refuse_alias(arena, ret_problem, "Failed to parse value as only [true] or [false] are allowed for",
                                key);
    } else if (!yyjson_is_null(value)) {
        return refuse_alias(arena, ret_problem, "unknown or malformed key in an alias:", key);
    }
    return 0;
}

/*
 * Parses {"filter": …, "routing": …, "index_routing", "search_routing", "is_write_index",
 * "is_hidden"}; NULL: none set.
 */
static int parse_alias(struct slice name, yyjson_val *body, struct arena *arena, struct catalog_alias *ret_alias,
                       struct problem *ret_problem)
{
    struct catalog_alias alias = {.name = name, .write_index = CATALOG_FLAG_UNSET, .hidden = CATALOG_FLAG_UNSET};
    size_t i, max;
    yyjson_val *key, *value;

    json_obj_foreach (body, i, max, key, value) {
        int r = read_member(&alias, json_slice(key), value, arena, ret_problem);
        if (r != 0)
            return r;
    }
    *ret_alias = alias;
    return 0;
}

/* Adds or replaces an alias. `positions`: name to position in the set, counted from 1. */
static void put_alias(struct alias_set *set, struct map *positions, struct arena *arena,
                      const struct catalog_alias *alias)
{
    REQUIRE(set->count == positions->count); /* the map has each alias of the set */
    uintptr_t position = (uintptr_t)map_get(positions, alias->name);

    if (position != 0) {
        set->items[position - 1] = *alias;
        return;
    }
    set->items = arena_grow(arena, set->items, set->count, &set->capacity, sizeof(*set->items));
    set->items[set->count++] = *alias;
    map_put(positions, alias->name, (void *)set->count);
}

/* Removes an alias; the last one takes its position. Returns: whether it was in the set. */
static bool remove_alias(struct alias_set *set, struct map *positions, struct slice name)
{
    REQUIRE(set->count == positions->count);
    uintptr_t position = (uintptr_t)map_remove(positions, name);

    if (position == 0)
        return false;
    set->items[position - 1] = set->items[--set->count];
    if (position - 1 < set->count)
        map_put(positions, set->items[position - 1].name, (void *)position);
    return true;
}

/* Returns: the slot of a name: empty, or that of its alias. */
static uint32_t *slot_of(const struct alias_set *set, struct slice name)
{
    size_t mask = set->slot_count - 1;

    for (size_t at = siphash_keyed(name) & mask;; at = (at + 1) & mask)
        if (set->slots[at] == 0 || slice_equal(set->items[set->slots[at] - 1].name, name))
            return &set->slots[at];
}

/* Makes the hash table twice as large as the set with one more. */
static void grow_slots(struct alias_set *set, struct arena *arena)
{
    if (set->slot_count >= 2 * (set->count + 1))
        return;
    set->slot_count = set->slot_count == 0 ? 16 : 2 * set->slot_count;
    set->slots = arena_zalloc(arena, set->slot_count * sizeof(*set->slots));
    for (size_t i = 0; i < set->count; i++)
        *slot_of(set, set->items[i].name) = (uint32_t)(i + 1);
}

/* Adds or replaces an alias. The cost is that of this alias, however many there are. */
static void add_to_set(struct alias_set *set, struct arena *arena, const struct catalog_alias *alias)
{
    grow_slots(set, arena);
    uint32_t *slot = slot_of(set, alias->name);
    if (*slot == 0) {
        set->items = arena_grow(arena, set->items, set->count, &set->capacity, sizeof(*set->items));
        *slot = (uint32_t)++set->count;
    }
    set->items[*slot - 1] = *alias;
    ENSURE(set->count <= set->capacity && 2 * set->count <= set->slot_count);
}

/* Returns: a name with the index in each place of "{index}". */
static struct slice named_for(struct slice name, struct slice index, struct arena *arena)
{
    const struct slice place = SLICE_LIT("{index}");
    struct buf text = BUF_INIT(BUF_UNLIMITED);

    if (index.data == NULL || slice_find_byte(name, '{') == name.len)
        return name;
    while (name.len > 0) {
        bool found = slice_starts_with(name, place);
        buf_slice(&text, found ? index : slice_make(name.data, 1));
        name = slice_from_offset(name, found ? place.len : 1);
    }
    struct slice kept = arena_copy(arena, buf_as_slice(&text));
    buf_deinit(&text);
    return kept;
}

int alias__parse_all(const struct catalog *catalog, yyjson_val *json, struct slice index, enum dialect dialect,
                     struct arena *arena, struct alias_set *set, struct problem *ret_problem)
{
    REQUIRE(set->count == 0 || set->slots != NULL);
    size_t i, max;
    yyjson_val *key, *body;

    json_obj_foreach (json, i, max, key, body) {
        struct catalog_alias alias;
        struct slice name = named_for(json_slice(key), index, arena);
        if (catalog_check_alias_name(catalog, name, dialect, arena, ret_problem) != 0 ||
            parse_alias(name, body, arena, &alias, ret_problem) != 0)
            return ALIAS_REFUSED;
        add_to_set(set, arena, &alias);
    }
    if (set->count > CATALOG_ALIASES_MAX) {
        problem_set(ret_problem, arena, PROBLEM_LIMIT_EXCEEDED, "an index has at most %d aliases", CATALOG_ALIASES_MAX);
        return ALIAS_REFUSED;
    }
    return 0;
}

/*
 * Bytes of each list of indices in a refusal, after which it has only the number of the others. An alias may have
 * 200,000 indices, and each item of a bulk may create one more that is refused.
 */
enum { LISTED_BYTES_MAX = 1024 };

/* Appends the names of the indices on which an alias is hidden, or those on which it is not. */
static void list_hidden(const struct alias_use *uses, size_t count, bool hidden, size_t bytes_max, struct buf *list)
{
    size_t more = 0;

    for (size_t i = 0; i < count; i++) {
        if (uses[i].hidden != hidden)
            continue;
        if (more > 0 || list->len + uses[i].index.len > bytes_max) {
            more++;
            continue;
        }
        if (list->len > 0)
            buf_byte(list, ',');
        buf_slice(list, uses[i].index);
    }
    if (more > 0)
        buf_printf(list, "%s%zu more", list->len > 0 ? " and " : "", more);
}

static int refuse_hidden(const struct core *core, const struct alias_use *uses, size_t count, struct arena *arena,
                         struct problem *ret_problem)
{
    REQUIRE(count > 1); /* with one index there is nothing to differ from */
    tl_cleanup(buf_deinit) struct buf hidden = BUF_INIT(BUF_UNLIMITED);
    tl_cleanup(buf_deinit) struct buf shown = BUF_INIT(BUF_UNLIMITED);
    size_t bytes_max = core->command_version >= COMMAND_SINCE_VALUES_WEIGHED ? LISTED_BYTES_MAX : SIZE_MAX;

    list_hidden(uses, count, true, bytes_max, &hidden);
    list_hidden(uses, count, false, bytes_max, &shown);
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_STATE,
                "alias [%.*s] has is_hidden set to true on indices [%.*s] but does not have is_hidden set to true on "
                "indices [%.*s]; "
                "alias must have the same is_hidden setting on all indices",
                SLICE_ARG(uses[0].alias), SLICE_ARG(buf_as_slice(&hidden)), SLICE_ARG(buf_as_slice(&shown)));
    return ALIAS_REFUSED;
}

static int refuse_writes(const struct alias_use *uses, size_t count, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(count > 1);
    struct slice names[2];
    size_t found = 0;

    for (size_t i = 0; i < count && found < 2; i++)
        if (uses[i].write_index == CATALOG_FLAG_TRUE)
            names[found++] = uses[i].index;
    INSIST(found == 2);
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_STATE, "alias [%.*s] has more than one write index [%.*s,%.*s]",
                SLICE_ARG(uses->alias), SLICE_ARG(names[0]), SLICE_ARG(names[1]));
    return ALIAS_REFUSED;
}

/*
 * Checks the uses of one alias, of which so many are of write indices, or hidden. However many there are: it takes no
 * longer, unless it is refused.
 */
static int check_uses(struct core *core, const struct alias_use *uses, size_t count, size_t writes, size_t hiddens,
                      struct arena *arena, struct problem *ret_problem)
{
    bool refused = writes > 1 || (hiddens > 0 && hiddens < count);

    if (refused && core->command_version >= COMMAND_SINCE_ALIASES_CHECKED)
        core__work_catalog(core, count * WORK_INDEX_PART); /* they are listed */
    if (!refused)
        return 0;
    return writes > 1 ? refuse_writes(uses, count, arena, ret_problem)
                      : refuse_hidden(core, uses, count, arena, ret_problem);
}

static int check_alias(struct core *core, struct slice alias, struct arena *arena, struct problem *ret_problem)
{
    const struct alias_use *uses;
    size_t count = catalog__alias_uses(core->catalog, alias, &uses);

    return count == 0 ? 0 : check_uses(core, uses, count, uses->writes, uses->hiddens, arena, ret_problem);
}

/* As check_alias(), with the use by an index that is not created yet. */
static int check_new_alias(struct core *core, const struct alias_use *added, struct arena *arena,
                           struct problem *ret_problem)
{
    const struct alias_use *uses;
    size_t count = catalog__alias_uses(core->catalog, added->alias, &uses), at = 0;
    size_t writes = (count == 0 ? 0 : uses->writes) + (added->write_index == CATALOG_FLAG_TRUE);
    size_t hiddens = (count == 0 ? 0 : uses->hiddens) + added->hidden;

    if (writes < 2 && (hiddens == 0 || hiddens == count + 1))
        return 0;
    struct alias_use *all = mem_alloc((count + 1) * sizeof(*all)); /* in order of index, as in the table */
    while (at < count && slice_compare(uses[at].index, added->index) < 0)
        at++;
    if (at > 0)
        memcpy(all, uses, at * sizeof(*all));
    all[at] = *added;
    if (at < count)
        memcpy(all + at + 1, uses + at, (count - at) * sizeof(*all));
    int r = check_uses(core, all, count + 1, writes, hiddens, arena, ret_problem);
    mem_free(all);
    return r;
}

bool alias__exists(struct core *core, struct slice name)
{
    REQUIRE(core->open);
    core__work_catalog(core, catalog__alias_work(core->catalog));
    return catalog_has_alias(core->catalog, name);
}

int alias__check_new(struct core *core, struct slice index, const struct alias_set *aliases, struct arena *arena,
                     struct problem *ret_problem)
{
    REQUIRE(catalog_index(core->catalog, index) == NULL);
    if (core->command_version < COMMAND_SINCE_ALIASES_CHECKED)
        return 0;
    core__work_catalog(core, aliases->count == 0 ? 0 : catalog__alias_work(core->catalog));
    for (size_t i = 0; i < aliases->count; i++) {
        const struct catalog_alias *alias = &aliases->items[i];
        struct alias_use use = {.alias = alias->name,
                                .index = index,
                                .write_index = alias->write_index,
                                .hidden = alias->hidden == CATALOG_FLAG_TRUE};
        core__work_catalog(core, WORK_ALIAS_FOUND);
        if (core->command_version >= COMMAND_SINCE_SETTING_LISTS && slice_equal(alias->name, index)) {
            problem_set(ret_problem, arena, PROBLEM_INVALID_ALIAS_NAME,
                        "Invalid alias name [%.*s]: an index exists with the same name as the alias", SLICE_ARG(index));
            return ALIAS_REFUSED;
        }
        if (check_new_alias(core, &use, arena, ret_problem) != 0)
            return ALIAS_REFUSED;
    }
    return 0;
}

int alias__check_count(const struct core *core, size_t more, struct arena *arena, struct problem *ret_problem)
{
    if (core->command_version < COMMAND_SINCE_CATALOG_BOUNDS ||
        core->catalog->alias_count + more <= CATALOG_ALIAS_USES_MAX)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "all indices together would have more than [%d] aliases, where an alias counts for each index that has "
                "it: remove some",
                CATALOG_ALIAS_USES_MAX);
    return ALIAS_REFUSED;
}

static size_t alias_bytes(const struct catalog_alias *aliases, size_t count)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += aliases[i].filter.len + aliases[i].index_routing.len + aliases[i].search_routing.len;
    return bytes;
}

int alias__check_bytes(const struct core *core, struct slice index, const struct alias_set *aliases,
                       struct arena *arena, struct problem *ret_problem)
{
    const struct catalog_index *before = catalog_index(core->catalog, index);
    size_t bytes = alias_bytes(aliases->items, aliases->count);

    if (core->command_version < COMMAND_SINCE_CATALOG_WEIGHED || bytes <= CATALOG_ALIAS_BYTES_MAX ||
        (before != NULL && bytes <= alias_bytes(before->aliases, before->alias_count)))
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "the filters and routings of the aliases of index [%.*s] would have [%zu] bytes together, and may have "
                "[%d], since they are written with each change of it: remove some, or shorten their filters",
                SLICE_ARG(index), bytes, CATALOG_ALIAS_BYTES_MAX);
    return ALIAS_REFUSED;
}

int alias__check(struct core *core, const struct catalog_index *index, struct map *checked, struct arena *arena,
                 struct problem *ret_problem)
{
    if (index->alias_count > 0)
        core__work_catalog(core, catalog__alias_work(core->catalog));
    for (size_t i = 0; i < index->alias_count; i++) {
        struct slice name = index->aliases[i].name;
        core__work_catalog(core, WORK_INDEX_PART);
        if (checked != NULL && map_put(checked, name, checked) != NULL)
            continue;
        if (check_alias(core, name, arena, ret_problem) != 0)
            return ALIAS_REFUSED;
    }
    return 0;
}

/* --- Rendering ---------------------------------------------------------------------------------------------------- */

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

/*
 * The aliases of an index while a command changes them. The index is written once, after all
 * actions, so that the cost is the sum of the actions and the aliases of their indices, not the
 * product.
 */
struct change {
    struct slice index;
    struct alias_set set;
    struct map positions;
    bool changed;
};

struct changes {
    struct map by_index;  /* index to struct change, in order of first use */
    uint64_t work_before; /* core->mapping_work when the command began */
};

static void changes_deinit(struct changes *changes)
{
    size_t position = 0;
    struct slice name;
    void *change;

    while (map_next(&changes->by_index, &position, &name, &change))
        map_deinit(&((struct change *)change)->positions);
    map_deinit(&changes->by_index);
}

static struct change *change_new(struct changes *changes, const struct catalog_index *index, struct arena *arena)
{
    REQUIRE(map_get(&changes->by_index, index->name) == NULL); /* its aliases are changed in one place */
    struct change *change = arena_zalloc(arena, sizeof(*change));

    change->index = arena_copy(arena, index->name);
    for (size_t i = 0; i < index->alias_count; i++)
        put_alias(&change->set, &change->positions, arena, &index->aliases[i]);
    map_put(&changes->by_index, change->index, change);
    return change;
}

static int add_alias(struct core *core, const struct alias_action *action, struct change *change,
                     struct command *command)
{
    REQUIRE(action->op == ALIAS_ADD);
    struct json_doc body = {0};
    struct catalog_alias alias;

    if (catalog_check_alias_name(core->catalog, action->alias, command->dialect, &command->arena, &command->problem) !=
            0 ||
        (action->body.data != NULL &&
         json_parse(&core->arena, action->body, command->dialect, JSON_DUPLICATES, &body, &command->problem) != 0) ||
        parse_alias(action->alias, body.root, &core->arena, &alias, &command->problem) != 0)
        return ALIAS_REFUSED;
    put_alias(&change->set, &change->positions, &core->arena, &alias);
    change->changed = true;
    return 0;
}

/* Returns: ALIAS_REFUSED if the command takes more than it may, which is carried out as a whole; else 0. */
static int check_work(const struct core *core, const struct changes *changes, struct command *command)
{
    if (core->command_version < COMMAND_SINCE_CATALOG_BOUNDS ||
        core->mapping_work - changes->work_before <= ALIAS_WORK_MAX)
        return 0;
    problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "the request changes aliases of too many indices, or too many aliases, for one step: divide it");
    return ALIAS_REFUSED;
}

static int run_alias_action(struct core *core, struct changes *changes, const struct alias_action *action,
                            struct command *command)
{
    const struct catalog_index *index = catalog_index(core->catalog, action->index);

    if (index == NULL) {
        catalog_problem_missing(&command->arena, action->index, true, command->dialect, &command->problem);
        return ALIAS_REFUSED;
    }
    if (index__check_block(index, action->op == ALIAS_REMOVE_INDEX, &command->arena, &command->problem) != 0)
        return ALIAS_REFUSED;
    if (action->op == ALIAS_REMOVE_INDEX) {
        index__delete(core, index);
        return 0;
    }
    struct change *change = map_get(&changes->by_index, action->index);
    if (change == NULL) {
        core__work_catalog(core, WORK_INDEX_PART * (uint64_t)index->alias_count);
        change = change_new(changes, index, &core->arena);
    }
    if (action->op == ALIAS_ADD)
        return add_alias(core, action, change, command);
    /* An alias that an earlier action of the request has removed counts as removed. */
    change->changed |= remove_alias(&change->set, &change->positions, action->alias);
    return 0;
}

static int write_change(struct core *core, const struct changes *changes, const struct change *change,
                        struct command *command)
{
    struct catalog_index_spec spec = catalog__spec(catalog_index(core->catalog, change->index));

    if (change->set.count > CATALOG_ALIASES_MAX) {
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED, "an index has at most %d aliases",
                    CATALOG_ALIASES_MAX);
        return ALIAS_REFUSED;
    }
    if (change->changed &&
        alias__check_bytes(core, change->index, &change->set, &command->arena, &command->problem) != 0)
        return ALIAS_REFUSED;
    spec.aliases = change->set.items;
    spec.alias_count = change->set.count;
    if (change->changed)
        catalog_change__put_index(core, &spec, FEED_ALIASES);
    return check_work(core, changes, command);
}

static int write_changes(struct core *core, const struct changes *changes, struct command *command)
{
    struct map checked = MAP_INIT;
    struct slice name;
    void *change;
    int r = 0;

    for (size_t position = 0; r == 0 && map_next(&changes->by_index, &position, &name, &change);)
        r = write_change(core, changes, change, command);
    if (r == 0 && core->catalog->alias_count > core->catalog_before->alias_count)
        r = alias__check_count(core, 0, &command->arena, &command->problem);
    for (size_t position = 0; r == 0 && map_next(&changes->by_index, &position, &name, &change);)
        r = alias__check(core, catalog_index(core->catalog, ((struct change *)change)->index), &checked,
                         &command->arena, &command->problem);
    map_deinit(&checked);
    return r;
}

/*
 * Removes indices first, so that an alias may take the name of an index removed by the same
 * request.
 */
static int act_all(struct core *core, struct changes *changes, struct command *command)
{
    const struct aliases_command *aliases = &command->aliases;
    int r;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < aliases->action_count; i++)
            if ((aliases->actions[i].op == ALIAS_REMOVE_INDEX) == (pass == 0)) {
                core__work_catalog(core, WORK_ALIAS + aliases->actions[i].body.len / WORK_BYTES);
                if ((r = check_work(core, changes, command)) != 0 ||
                    (r = run_alias_action(core, changes, &aliases->actions[i], command)) != 0)
                    return r;
            }
    return write_changes(core, changes, command);
}

int core__do_aliases_update(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_ALIASES_UPDATE);
    struct changes changes = {MAP_INIT, core->mapping_work};
    int r = act_all(core, &changes, command);

    changes_deinit(&changes);
    if (r < 0)
        return tl_trace(r);
    if (r != 0)
        core__rollback(core);
    return 0;
}
