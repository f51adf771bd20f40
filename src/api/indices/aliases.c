/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aliases: one by one (_alias), and many changes at once (_aliases).
 */
#include "api/indices/alias_body.h"
#include "api/indices/alias_filter.h"
#include "api/request/broken_body.h"
#include "api/request/api_internal.h"
#include "api/request/handlers.h"
#include "api/request/index_set.h"
#include "api/request/name_list.h"
#include "json/each.h"
#include "json/filter.h"
#include "query/node.h"

/* Actions of one request, after wildcards. */
#define ALIAS_ACTIONS_MAX 10000
#define ALIAS_BYTES_MAX (2 << 20) /* of the bodies of several changes, which one step of the core parses */

static const struct catalog_options alias_options = {
    .allow_no_indices = true, .expand_open = true, .expand_closed = true, .expand_hidden = true, .allow_closed = true};

/* Changes are of indices that are there. */
static const struct catalog_options change_options = {
    .expand_open = true, .expand_closed = true, .allow_closed = true, .refuse_aliases = true};

/* --- Show --------------------------------------------------------------------------------------------------------- */

static bool pattern_matches(struct slice pattern, struct slice name)
{
    return slice_is(pattern, "_all") || json_wildcard(pattern, name);
}

static bool list_matches(struct slice list, struct slice name)
{
    bool matches = list.len == 0;
    while (list.len > 0) {
        size_t len = slice_find_byte(list, ',');
        struct slice pattern = slice_make(list.data, len);
        if (len > 1 && pattern.data[0] == '-') {
            if (json_wildcard(slice_from_offset(pattern, 1), name)) /* no `_all` here */
                matches = false;
        } else if (pattern_matches(pattern, name)) {
            matches = true;
        }
        list = slice_from_offset(list, len + 1);
    }
    return matches;
}

/*
 * One index with its aliases that are in a list; without a list also an index that has no alias.
 * Returns: how many matched.
 */
static size_t write_aliases(const struct catalog_index *index, struct slice names, struct json_writer *writer)
{
    size_t matched = 0;
    for (size_t i = 0; i < index->alias_count; i++)
        matched += list_matches(names, index->aliases[i].name);
    if (matched == 0 && names.data != NULL)
        return 0;
    json_key_slice(writer, index->name);
    json_begin(writer, '{');
    json_key(writer, "aliases");
    json_begin(writer, '{');
    for (size_t i = 0; i < index->alias_count; i++) {
        if (!list_matches(names, index->aliases[i].name))
            continue;
        json_key_slice(writer, index->aliases[i].name);
        catalog_render_alias(&index->aliases[i], writer->buf);
        writer->comma = true;
    }
    json_end(writer, '}');
    json_end(writer, '}');
    return matched;
}

static bool set_has_alias(const struct index_set *set, struct slice name)
{
    for (size_t i = 0; i < set->count; i++)
        if (catalog_index_alias(set->targets[i].index, name) != NULL)
            return true;
    return false;
}

static bool is_pattern(struct slice name)
{
    return slice_find_byte(name, '*') < name.len;
}

/* Where in a list its first pattern begins; its length if it has no pattern. */
static size_t first_pattern(struct slice list)
{
    size_t star = slice_find_byte(list, '*'), at = star;
    while (at > 0 && star < list.len && list.data[at - 1] != ',')
        at--;
    return at;
}

/* A name in a list, and its position there. */
struct listed_name {
    struct slice name; /* an exclusion without its '-' */
    size_t at;
};

/* The names without wildcards and the exclusions of a list. */
struct alias_list {
    struct listed_name *names; /* each once, with its last position, which the fewest exclusions follow */
    size_t name_count;
    struct listed_name *exclusions; /* in the order of the list */
    size_t exclusion_count;
    size_t first_pattern;
};

static int listed_name_order(const void *left, const void *right)
{
    const struct listed_name *a = left, *b = right;
    int order = slice_compare(a->name, b->name);
    return order != 0 ? order : (a->at > b->at) - (a->at < b->at);
}

/*
 * A name with a '-' is an exclusion after the first pattern only; before it, or without one, it is
 * a name that no alias has.
 */
static struct alias_list read_list(struct request *request, struct slice list)
{
    struct alias_list read = {.names = arena_alloc(request->arena, (list.len + 1) * sizeof *read.names),
                              .exclusions = arena_alloc(request->arena, (list.len + 1) * sizeof *read.exclusions),
                              .first_pattern = first_pattern(list)};
    size_t count = 0;
    for (size_t at = 0, len; at < list.len; at += len + 1) {
        struct slice rest = slice_from_offset(list, at);
        len = slice_find_byte(rest, ',');
        struct slice name = slice_make(rest.data, len);
        bool excludes = len > 0 && name.data[0] == '-';
        if (excludes)
            read.exclusions[read.exclusion_count++] = (struct listed_name){slice_from_offset(name, 1), at};
        if (len > 0 && !slice_is(name, "_all") && !is_pattern(name) && (!excludes || at <= read.first_pattern))
            read.names[count++] = (struct listed_name){name, at};
    }
    qsort(read.names, count, sizeof *read.names, listed_name_order);
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || !slice_equal(read.names[i].name, read.names[i + 1].name))
            read.names[read.name_count++] = read.names[i];
    return read;
}

/* Whether an exclusion after the first pattern and after the name is about the name. */
static bool is_excluded(const struct alias_list *list, const struct listed_name *listed)
{
    size_t from = listed->at + 1 > list->first_pattern ? listed->at + 1 : list->first_pattern;
    for (size_t i = list->exclusion_count; i > 0 && list->exclusions[i - 1].at >= from; i--)
        if (pattern_matches(list->exclusions[i - 1].name, listed->name))
            return true;
    return false;
}

/*
 * Names without wildcards in a list that the reply does not show, each once, but for those that the
 * list itself excludes.
 */
static struct slice missing_aliases(struct request *request, const struct index_set *set, struct slice names,
                                    size_t *ret_count)
{
    struct alias_list list = read_list(request, names);
    struct slice *missing = arena_alloc(request->arena, (list.name_count + 1) * sizeof *missing);
    size_t count = 0;
    for (size_t i = 0; i < list.name_count; i++) {
        struct slice name = list.names[i].name;
        /* only exclusions keep a listed name from a list that has it */
        bool shown = set_has_alias(set, name) && (list.exclusion_count == 0 || list_matches(names, name));
        if (!shown && !is_excluded(&list, &list.names[i]))
            missing[count++] = name;
    }
    *ret_count = count;
    return name_list_sort(request->arena, missing, count);
}

int handle_alias_get(struct request *request)
{
    struct index_set set;
    struct json_writer writer;
    bool local = false;
    size_t missing_count, matched = 0;
    int r = request_bool(request, "local", &local);
    if (r != 0 || (r = index_set_read(request, &alias_options, &set)) != 0)
        return r;
    struct slice names = request_part(request, PART_NAME);
    struct slice missing = missing_aliases(request, &set, names, &missing_count);
    reply_begin(request, missing_count > 0 ? 404 : 200, &writer);
    json_begin(&writer, '{');
    if (missing_count > 0) {
        json_key(&writer, "error");
        json_string(&writer, arena_printf(request->arena, "alias%s [%.*s] missing", missing_count > 1 ? "es" : "",
                                          SLICE_ARG(missing)));
        json_key(&writer, "status");
        json_i64(&writer, 404);
    }
    for (size_t i = 0; i < set.count; i++)
        matched += write_aliases(set.targets[i].index, names, &writer);
    json_end(&writer, '}');
    /* To 7.10 a pattern that matches nothing is not missing. */
    if (request->exchange->method == HTTP_HEAD && matched == 0 && request->dialect == DIALECT_5)
        return reply_empty(request, 404);
    return REQUEST_DONE;
}

/* --- Change ------------------------------------------------------------------------------------------------------- */

struct alias_batch {
    struct alias_action *actions;
    size_t count;
    size_t capacity;
    size_t body_bytes;  /* of all actions, each with a body of its own */
    struct buf missing; /* names of aliases that were to be removed and are not there, apart by commas */
};

static int add_action(struct request *request, struct alias_batch *batch, const struct alias_action *action)
{
    if (batch->count == ALIAS_ACTIONS_MAX)
        return request_refuse(request, PROBLEM_LIMIT_EXCEEDED, "more than %d changes of aliases in a request",
                              ALIAS_ACTIONS_MAX);
    batch->body_bytes += action->body.len;
    if (batch->count > 0 && batch->body_bytes > ALIAS_BYTES_MAX)
        return request_refuse(request, PROBLEM_LIMIT_EXCEEDED,
                              "the filters and routings of a request's changes of aliases, counted for each index and "
                              "alias, have more than %d bytes: divide the request",
                              ALIAS_BYTES_MAX);
    batch->actions = arena_grow(request->arena, batch->actions, batch->count, &batch->capacity, sizeof *batch->actions);
    batch->actions[batch->count++] = *action;
    return 0;
}

static int aliases_done(struct request *request, struct command *command)
{
    (void)command;
    return reply_acknowledged(request);
}

static int submit_batch(struct request *request, const struct alias_batch *batch)
{
    struct command *command = command_new(COMMAND_ALIASES_UPDATE, request->dialect);
    command->aliases.actions = batch->actions;
    command->aliases.action_count = batch->count;
    return request_submit(request, command, aliases_done);
}

/* Returns: an object as text, but for the members of these names. */
static struct slice write_without(struct request *request, yyjson_val *object, const char *const *names)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct json_writer writer;
    size_t i, count;
    yyjson_val *key, *value;
    json_writer_init(&writer, &text);
    json_begin(&writer, '{');
    json_obj_foreach (object, i, count, key, value) {
        if (slice_is_any(json_slice(key), names))
            continue;
        json_key_slice(&writer, json_slice(key));
        json_value(&writer, value, request->dialect);
    }
    json_end(&writer, '}');
    struct slice kept = arena_copy(request->arena, buf_as_slice(&text));
    buf_deinit(&text);
    return kept;
}

/*
 * The members "index" and "alias" of a body count before the path, and are no part of the alias.
 * Returns: 0, with the rest in *ret_body; REQUEST_REFUSED.
 */
static int read_put(struct request *request, yyjson_val *root, struct slice *ret_index, struct slice *ret_alias,
                    struct slice *ret_body)
{
    yyjson_val *index = json_get_lit(root, "index"), *alias = json_get_lit(root, "alias");
    *ret_index = request_part(request, PART_INDEX);
    *ret_alias = request_part(request, PART_NAME);
    *ret_body = root != NULL ? request_body(request) : SLICE_NONE;
    if (index != NULL || alias != NULL)
        *ret_body = write_without(request, root, (const char *const[]){"index", "alias", NULL});
    if (yyjson_is_arr(index) || yyjson_is_obj(index) || yyjson_is_arr(alias) || yyjson_is_obj(alias))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[index] and [alias] of an alias must be texts");
    if (index != NULL)
        *ret_index = query__scalar_text(request->arena, index);
    if (alias != NULL)
        *ret_alias = query__scalar_text(request->arena, alias);
    if (ret_index->len == 0 || yyjson_is_null(index))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[indices] can't be empty");
    if (ret_alias->len == 0 || yyjson_is_null(alias))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "[alias] can't be empty string");
    return request_resolve_names(request, request->arena, ret_index);
}

int handle_alias_put(struct request *request)
{
    struct alias_batch batch = {NULL};
    struct catalog_options options;
    struct catalog_target *targets;
    struct slice expression, name, body;
    struct json_doc doc;
    int64_t ignored = 0;
    size_t count;
    int r = request_time(request, "timeout", &ignored);
    if (r != 0 || (r = index_options_read(request, &change_options, &options)) != 0 ||
        (r = request_accept(request)) != 0 || (r = request_json(request, 0, &doc)) != 0)
        return r;
    if (json_get_lit(doc.root, "is_hidden") != NULL && request->dialect == DIALECT_7)
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                              "[is_hidden] has no effect in the body of an alias that is put: use [POST /_aliases]");
    if ((r = read_put(request, doc.root, &expression, &name, &body)) != 0 ||
        (r = alias_routing_check(request, name, doc.root)) != 0)
        return r;
    r = catalog_resolve(request_catalog(request), expression, &options, request->dialect, request->arena, &targets,
                        &count, &request->problem);
    if (r != 0)
        return r > 0 ? REQUEST_REFUSED : r;
    for (size_t i = 0; i < count; i++) {
        struct alias_action action = {.op = ALIAS_ADD, .index = targets[i].index->name, .alias = name, .body = body};
        if ((r = add_action(request, &batch, &action)) != 0 ||
            (r = alias_filter_check(request, targets[i].index, name, json_get_lit(doc.root, "filter"))) != 0)
            return r;
    }
    return submit_batch(request, &batch);
}

/* Whether a list names one alias as it is. */
static bool is_single_name(struct slice names)
{
    return names.len > 0 && slice_find_byte(names, ',') == names.len && slice_find_byte(names, '*') == names.len &&
           !slice_is(names, "_all");
}

static int remove_one(struct request *request, const struct catalog_index *index, struct slice name,
                      struct alias_batch *batch)
{
    struct alias_action action = {.op = ALIAS_REMOVE, .index = index->name, .alias = name};
    return add_action(request, batch, &action);
}

/*
 * Adds the removal of every alias of an index that a list names. A single one is looked up: a
 * request names thousands of them.
 */
static int remove_from_index(struct request *request, const struct catalog_index *index, struct slice names,
                             struct alias_batch *batch)
{
    int r = 0;
    if (is_single_name(names))
        return catalog_index_alias(index, names) == NULL ? 0 : remove_one(request, index, names, batch);
    for (size_t i = 0; i < index->alias_count && r == 0; i++)
        if (list_matches(names, index->aliases[i].name))
            r = remove_one(request, index, index->aliases[i].name, batch);
    return r;
}

static int no_such_alias(struct request *request, struct slice names)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED), list = BUF_INIT(BUF_UNLIMITED);
    bool many = slice_find_byte(names, ',') < names.len;
    buf_slice(&list, many ? SLICE_LIT("[") : SLICE_LIT(""));
    while (names.len > 0) {
        size_t len = slice_find_byte(names, ',');
        buf_slice(&text, text.len > 0 ? SLICE_LIT(", ") : SLICE_LIT(""));
        buf_slice(&text, slice_make(names.data, len));
        buf_slice(&list, list.len > 1 ? SLICE_LIT(",") : SLICE_LIT(""));
        buf_json_string(&list, slice_make(names.data, len));
        names = slice_from_offset(names, len + 1);
    }
    buf_slice(&list, many ? SLICE_LIT("]") : SLICE_LIT(""));
    int r =
        request_refuse(request, PROBLEM_ALIASES_NOT_FOUND, "aliases [%.*s] missing", SLICE_ARG(buf_as_slice(&text)));
    problem_details(&request->problem, request->arena, "\"resource.type\":\"aliases\",\"resource.id\":%.*s",
                    SLICE_ARG(buf_as_slice(&list)));
    buf_deinit(&text);
    buf_deinit(&list);
    return r;
}

int handle_alias_delete(struct request *request)
{
    struct alias_batch batch = {NULL};
    struct index_set set;
    int64_t ignored = 0;
    int r = request_time(request, "timeout", &ignored);
    if (r != 0 || (r = index_set_read(request, &change_options, &set)) != 0)
        return r;
    struct slice names = request_part(request, PART_NAME);
    for (size_t i = 0; i < set.count; i++)
        if ((r = remove_from_index(request, set.targets[i].index, names, &batch)) != 0)
            return r;
    return batch.count == 0 ? no_such_alias(request, names) : submit_batch(request, &batch);
}

/* --- _aliases ----------------------------------------------------------------------------------------------------- */

/* A text or a list of texts as one list apart by commas; `many` and `one` are the names of the member. */
static struct slice names_of(struct request *request, yyjson_val *object, struct slice one, struct slice many)
{
    size_t i, count;
    yyjson_val *item, *value = json_get(object, one);
    struct slice text = SLICE_NONE;
    if (value == NULL)
        value = json_get(object, many);
    if (yyjson_is_str(value))
        return json_slice(value);
    json_arr_foreach (value, i, count, item) {
        text = arena_append(request->arena, text, "%s%.*s", i == 0 ? "" : ",",
                            SLICE_ARG(query__scalar_text(request->arena, item)));
    }
    return text;
}

/* The members of an "add" that belong to the alias itself. */
static struct slice alias_body(struct request *request, yyjson_val *action)
{
    static const char *const names[] = {"filter",         "routing",        "index_routing",
                                        "search_routing", "is_write_index", "is_hidden"};
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct json_writer writer;
    json_writer_init(&writer, &text);
    json_begin(&writer, '{');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        yyjson_val *value = json_get(action, slice_from(names[i]));
        if (value == NULL)
            continue;
        json_key(&writer, names[i]);
        json_value(&writer, value, DIALECT_7);
    }
    json_end(&writer, '}');
    struct slice kept = arena_copy(request->arena, buf_as_slice(&text));
    buf_deinit(&text);
    return kept;
}

static int add_aliases(struct request *request, const struct catalog_index *index, struct slice aliases,
                       yyjson_val *object, struct slice body, struct alias_batch *batch)
{
    while (aliases.len > 0) {
        size_t len = slice_find_byte(aliases, ',');
        struct alias_action action = {
            .op = ALIAS_ADD, .index = index->name, .alias = slice_make(aliases.data, len), .body = body};
        int r = alias_routing_check(request, action.alias, object);
        if (r == 0)
            r = add_action(request, batch, &action);
        if (r == 0)
            r = alias_filter_check(request, index, action.alias, json_get_lit(object, "filter"));
        if (r != 0)
            return r;
        aliases = slice_from_offset(aliases, len + 1);
    }
    return 0;
}

static int read_action(struct request *request, struct slice op, yyjson_val *object, struct alias_batch *batch)
{
    struct catalog_target *targets;
    size_t count, before = batch->count;
    struct slice indices = names_of(request, object, SLICE_LIT("index"), SLICE_LIT("indices"));
    struct slice aliases = names_of(request, object, SLICE_LIT("alias"), SLICE_LIT("aliases"));
    struct slice body = slice_is(op, "add") ? alias_body(request, object) : SLICE_NONE;
    struct catalog_options options = change_options;
    options.refuse_aliases = true;
    int r = request_resolve_names(request, request->arena, &indices);
    if (r == 0)
        r = catalog_resolve(request_catalog(request), indices, &options, request->dialect, request->arena, &targets,
                            &count, &request->problem);
    for (size_t i = 0; r == 0 && i < count; i++) {
        const struct catalog_index *index = targets[i].index;
        struct alias_action removal = {.op = ALIAS_REMOVE_INDEX, .index = index->name};
        if (slice_is(op, "add"))
            r = add_aliases(request, index, aliases, object, body, batch);
        else if (slice_is(op, "remove"))
            r = remove_from_index(request, index, aliases, batch);
        else
            r = add_action(request, batch, &removal);
    }
    if (r == 0 && slice_is(op, "remove") && batch->count == before) {
        if (batch->missing.len > 0)
            buf_byte(&batch->missing, ',');
        buf_slice(&batch->missing, aliases);
    }
    return r > 0 ? REQUEST_REFUSED : r;
}

static int read_actions(struct request *request, yyjson_val *actions, struct alias_batch *batch)
{
    size_t count = yyjson_is_arr(actions) ? unsafe_yyjson_get_len(actions) : 1;
    yyjson_val *item = yyjson_is_arr(actions) ? unsafe_yyjson_get_first(actions) : actions;
    for (size_t i = 0; i < count; i++, item = unsafe_yyjson_get_next(item)) {
        yyjson_val *key = unsafe_yyjson_get_first(item);
        int r = read_action(request, json_slice(key), yyjson_obj_iter_get_val(key), batch);
        if (r != 0)
            return r;
    }
    /* An alias to be removed that does not exist matters only if no action has an effect. */
    return batch->count == 0 ? no_such_alias(request, buf_as_slice(&batch->missing)) : submit_batch(request, batch);
}

static int check_alias_body(void *request, struct json_doc *doc)
{
    return alias_body_check(request, doc);
}

/* Refuses a body that is not JSON, as request->problem says. */
static int refuse_broken_aliases(struct request *request)
{
    const struct broken_parser parser = {.read = check_alias_body,
                                         .context = request,
                                         .arena = request->arena,
                                         .dialect = request->dialect,
                                         .form = BROKEN_ALIASES};
    return broken_body_refuse(request, request_body(request), &parser, NULL);
}

int handle_aliases_post(struct request *request)
{
    struct alias_batch batch = {.missing = BUF_INIT(BUF_UNLIMITED)};
    struct json_doc doc;
    int64_t ignored = 0;
    int r = request_time(request, "timeout", &ignored);
    if (r != 0 || (r = request_accept(request)) != 0 || (r = request_blank(request, "aliases")) != 0)
        return r;
    if ((r = request_first_json(request, &doc)) != 0)
        return r == REQUEST_REFUSED ? refuse_broken_aliases(request) : r;
    if (doc.root == NULL)
        return request_refuse(request, PROBLEM_PARSE, "request body is required");
    if ((r = alias_body_check(request, &doc)) != 0)
        return r;
    yyjson_val *actions = json_get_lit(doc.root, "actions");
    if (actions == NULL || (yyjson_is_arr(actions) && unsafe_yyjson_get_len(actions) == 0))
        return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "No action specified");
    r = read_actions(request, actions, &batch);
    buf_deinit(&batch.missing);
    return r;
}
