/* SPDX-License-Identifier: Apache-2.0 */
/* Resolves names and expressions of clients to indices. */
#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_internal.h"
#include "json/filter.h"

const struct catalog_options catalog_options_every_index = {.ignore_unavailable = true,
                                                            .allow_no_indices = true,
                                                            .expand_open = true,
                                                            .expand_closed = true,
                                                            .expand_hidden = true,
                                                            .allow_closed = true};

void catalog_problem_missing(struct arena *arena, struct slice name, bool alias_or_index, enum dialect dialect,
                             struct problem *ret_problem)
{
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);

    if (dialect == DIALECT_5)
        problem_set(ret_problem, arena, PROBLEM_INDEX_NOT_FOUND, "no such index");
    else
        problem_set(ret_problem, arena, PROBLEM_INDEX_NOT_FOUND, "no such index [%.*s]", SLICE_ARG(name));
    buf_json_string(&quoted, name);
    problem_details(ret_problem, arena,
                    "\"resource.type\":\"%s\",\"resource.id\":%.*s,\"index_uuid\":\"_na_\",\"index\":%.*s",
                    alias_or_index ? "index_or_alias" : "index_expression", SLICE_ARG(buf_as_slice(&quoted)),
                    SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
}

void catalog_problem_closed(struct arena *arena, const struct catalog_index *index, enum dialect dialect,
                            struct problem *ret_problem)
{
    REQUIRE(index->closed);
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);

    problem_set(ret_problem, arena, PROBLEM_INDEX_CLOSED, "closed");
    if (dialect == DIALECT_5)
        ret_problem->status = 403;
    buf_json_string(&quoted, index->name);
    problem_details(ret_problem, arena, "\"index_uuid\":\"%.*s\",\"index\":%.*s", SLICE_ARG(index->uuid),
                    SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
}

/* --- One index ---------------------------------------------------------------------------------------------------- */

static void problem_many(const struct alias_use *uses, size_t count, struct slice alias, enum dialect dialect,
                         struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(count > 0); /* indices that the alias has */
    struct buf names = BUF_INIT(BUF_UNLIMITED);

    for (size_t i = 0; i < count; i++)
        buf_printf(&names, "%s%.*s", i == 0 ? "" : ", ", SLICE_ARG(uses[i].index));
    problem_set(
        ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
        dialect == DIALECT_5
            ? "Alias [%.*s] has more than one indices associated with it [[%.*s]], can't execute a single index op"
            : "alias [%.*s] has more than one index associated with it [%.*s], can't execute a single index op",
        SLICE_ARG(alias), SLICE_ARG(buf_as_slice(&names)));
    buf_deinit(&names);
}

/* Returns: the write index of an alias; NULL: none. */
static const struct catalog_index *write_index(const struct catalog *catalog, const struct alias_use *uses,
                                               size_t count)
{
    const struct alias_use *use = catalog__write_use(uses, count);
    if (use == NULL && count == 1 && uses->write_index == CATALOG_FLAG_UNSET)
        use = uses;
    return use == NULL ? NULL : catalog_index(catalog, use->index);
}

static int find_by_alias(const struct catalog *catalog, struct slice name, bool writing, enum dialect dialect,
                         struct arena *arena, const struct catalog_index **ret_index, struct problem *ret_problem)
{
    const struct alias_use *uses;
    size_t count = catalog__alias_uses(catalog, name, &uses);

    if (count == 0) {
        if (ret_problem == NULL)
            return CATALOG_REFUSED;
        catalog_problem_missing(arena, name, false, dialect, ret_problem);
        if (slice_is(name, "_all") && dialect != DIALECT_5 && !writing)
            ret_problem->reason = SLICE_LIT("no such index [_all] and no indices exist");
        return CATALOG_REFUSED;
    }
    *ret_index = writing ? write_index(catalog, uses, count) : catalog_index(catalog, uses[0].index);
    bool refused = *ret_index == NULL || (!writing && count > 1);
    if (refused && ret_problem == NULL)
        return CATALOG_REFUSED;
    if (writing && *ret_index == NULL && dialect != DIALECT_5) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "no write index is defined for alias [%.*s]. The write index may be explicitly disabled using "
                    "is_write_index=false or the alias points to multiple indices without one being designated as a "
                    "write index",
                    SLICE_ARG(name));
        return CATALOG_REFUSED;
    }
    if (refused) {
        problem_many(uses, count, name, dialect, arena, ret_problem);
        return CATALOG_REFUSED;
    }
    return 0;
}

int catalog_find_any(const struct catalog *catalog, struct slice name, bool writing, enum dialect dialect,
                     struct arena *arena, const struct catalog_index **ret_index,
                     const struct catalog_alias **ret_alias, struct problem *ret_problem)
{
    REQUIRE(ret_index != NULL && ret_alias != NULL && (arena != NULL || ret_problem == NULL));
    const struct catalog_index *index = catalog_index(catalog, name);
    const struct catalog_alias *alias = NULL;

    if (index == NULL) {
        int r = find_by_alias(catalog, name, writing, dialect, arena, &index, ret_problem);
        if (r != 0)
            return r;
        alias = catalog_index_alias(index, name);
    }
    *ret_index = index;
    if (ret_alias != NULL)
        *ret_alias = alias;
    return 0;
}

int catalog_find(const struct catalog *catalog, struct slice name, bool writing, enum dialect dialect,
                 struct arena *arena, const struct catalog_index **ret_index, const struct catalog_alias **ret_alias,
                 struct problem *ret_problem)
{
    const struct catalog_index *index;
    const struct catalog_alias *alias;
    int r = catalog_find_any(catalog, name, writing, dialect, arena, &index, &alias, ret_problem);

    if (r != 0)
        return r;
    if (index->closed) {
        catalog_problem_closed(arena, index, dialect, ret_problem);
        return CATALOG_REFUSED;
    }
    *ret_index = index;
    if (ret_alias != NULL)
        *ret_alias = alias;
    return 0;
}

/* --- Expressions -------------------------------------------------------------------------------------------------- */

/* By which names an index was reached. */
struct reach {
    bool in;
    bool by_name; /* by its own name or a wildcard that matches it */
    const struct catalog_alias **aliases;
    size_t alias_count;
    size_t alias_capacity;
};

struct name_resolver {
    const struct catalog *catalog;
    const struct catalog_options *options;
    enum dialect dialect;
    struct arena *arena;
    struct problem *problem;
    struct reach *reaches; /* by position in the catalog */
    bool has_wildcards;
    bool is_list; /* of several names */
    bool all_is_alone; /* in 7.x "_all" is refused as a name in a list of several */
    enum catalog_weighing weighing; /* of comparisons */
    uint64_t looks_left;
};

/* Comparisons that finding one index by an alias is worth: it is searched for by its name. */
enum { LOOKS_PER_USE = 8 };

/* Bytes of a comparison that counts as one, and of which one more counts. */
enum { LOOK_BYTES = 24, LOOK_BYTES_REQUEST = 25, LOOK_BYTES_STEP = 5 };

static bool has_wildcard(struct slice text)
{
    return slice_find_byte(text, '*') < text.len;
}

static size_t position_of(const struct catalog *catalog, const struct catalog_index *index)
{
    size_t low = 0, high = catalog->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(catalog->by_name[middle]->index.name, index->name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    ENSURE(low < catalog->count && &catalog->by_name[low]->index == index); /* it is of this catalog */
    return low;
}

static void reach_by_name(struct name_resolver *work, size_t position)
{
    REQUIRE(position < work->catalog->count);
    work->reaches[position].in = work->reaches[position].by_name = true;
}

static void reach_by_alias(struct name_resolver *work, size_t position, const struct catalog_alias *alias)
{
    REQUIRE(position < work->catalog->count && alias != NULL);
    struct reach *reach = &work->reaches[position];

    reach->in = true;
    reach->aliases =
        arena_grow(work->arena, reach->aliases, reach->alias_count, &reach->alias_capacity, sizeof(*reach->aliases));
    reach->aliases[reach->alias_count++] = alias;
}

static int refuse_missing(struct name_resolver *work, struct slice name)
{
    catalog_problem_missing(work->arena, name, !work->options->names_only, work->dialect, work->problem);
    if (work->options->names_only && slice_is(name, "_all") && work->dialect == DIALECT_7)
        work->problem->reason = SLICE_LIT("no such index [_all] and no indices exist");
    return CATALOG_REFUSED;
}

/* Refuses `_all` or `*` that is alone and has no index, in the words of 7.x. */
static int refuse_all(struct name_resolver *work, struct slice name)
{
    problem_set(work->problem, work->arena, PROBLEM_INDEX_NOT_FOUND, "no such index [null]%s",
                slice_is(name, "_all") ? " and no indices exist" : "");
    problem_details(work->problem, work->arena, "\"resource.type\":\"index_expression\",\"resource.id\":\"%.*s\"",
                    SLICE_ARG(name));
    return CATALOG_REFUSED;
}

/* Counts comparisons. Returns: 0; CATALOG_REFUSED: these are too many. */
static int count_looks(struct name_resolver *work, uint64_t looks)
{
    if (looks < work->looks_left) {
        work->looks_left -= looks;
        return 0;
    }
    work->looks_left = 0;
    problem_set(work->problem, work->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "the request has so many names and wildcards of indices that comparing them with all indices and "
                "aliases takes too long: use fewer");
    return CATALOG_REFUSED;
}

uint64_t catalog_looks(enum catalog_weighing weighing, struct slice pattern, struct slice name)
{
    size_t bytes = weighing == CATALOG_WEIGH_NONE ? 0 : json_wildcard_bytes(pattern, name.len);
    size_t each = weighing == CATALOG_WEIGH_STEP ? LOOK_BYTES_STEP : LOOK_BYTES_REQUEST;
    return bytes <= LOOK_BYTES ? 1 : 1 + (bytes - LOOK_BYTES) / each;
}

/* Counts what one comparison takes above the one look that count_looks() has counted for it. */
static void weigh_look(struct name_resolver *work, struct slice pattern, struct slice name)
{
    uint64_t more = catalog_looks(work->weighing, pattern, name) - 1;
    work->looks_left -= more < work->looks_left ? more : work->looks_left;
}

/* Returns: with how many names a wildcard is compared. */
static uint64_t pattern_looks(const struct name_resolver *work)
{
    const struct catalog *catalog = work->catalog;
    return catalog->count + (work->options->refuse_aliases ? 0 : catalog->alias_count);
}

/*
 * Returns: 0: a name without index or alias is skipped; CATALOG_REFUSED. If nothing is expanded,
 *   one name alone follows allow_no_indices, as in Elasticsearch.
 */
static int skip_missing(struct name_resolver *work, struct slice name)
{
    const struct catalog_options *options = work->options;
    bool may_skip = options->names_only && !work->is_list ? options->allow_no_indices : options->ignore_unavailable;
    return may_skip ? 0 : refuse_missing(work, name);
}

/*
 * Returns: whether a wildcard may match a name that may be hidden. A pattern with a leading dot
 *   matches hidden names with one.
 */
static bool is_visible(const struct name_resolver *work, struct slice pattern, bool hidden, struct slice name)
{
    bool dotted = pattern.len > 0 && pattern.data[0] == '.' && name.len > 0 && name.data[0] == '.';
    return (!hidden || work->options->expand_hidden || dotted) && json_wildcard(pattern, name);
}

/*
 * Returns: whether a wildcard matches an alias: a visible alias of a hidden index matches, but not
 *   by `_all` or `*`.
 */
static bool alias_is_visible(const struct name_resolver *work, struct slice pattern, const struct catalog_index *index,
                             size_t alias)
{
    if (index->hidden && !work->options->expand_hidden && slice_is(pattern, "*"))
        return false;
    return is_visible(work, pattern, index->aliases[alias].hidden == CATALOG_FLAG_TRUE, index->aliases[alias].name);
}

/* Returns: whether there is an index or alias of the pattern. Ends when no comparison is left. */
static bool expand_pattern(struct name_resolver *work, struct slice pattern)
{
    bool any = false;

    for (size_t i = 0; i < work->catalog->count && work->looks_left > 0; i++) {
        const struct catalog_index *index = &work->catalog->by_name[i]->index;
        if (!(index->closed ? work->options->expand_closed : work->options->expand_open))
            continue;
        weigh_look(work, pattern, index->name);
        for (size_t j = 0; j < index->alias_count && !work->options->refuse_aliases; j++)
            weigh_look(work, pattern, index->aliases[j].name);
        if (is_visible(work, pattern, index->hidden, index->name)) {
            reach_by_name(work, i);
            any = true;
        }
        for (size_t j = 0; j < index->alias_count && !work->options->refuse_aliases; j++)
            if (alias_is_visible(work, pattern, index, j)) {
                reach_by_alias(work, i, &index->aliases[j]);
                any = true;
            }
    }
    return any;
}

static void exclude_pattern(struct name_resolver *work, struct slice pattern)
{
    for (size_t i = 0; i < work->catalog->count && work->looks_left > 0; i++) {
        weigh_look(work, pattern, work->catalog->by_name[i]->index.name);
        if (json_wildcard(pattern, work->catalog->by_name[i]->index.name))
            work->reaches[i].in = false;
    }
}

/*
 * Checks whether an index given by its name may be used. Returns: 0 and *ret_use; CATALOG_REFUSED.
 */
static int may_use(struct name_resolver *work, const struct catalog_index *index, bool *ret_use)
{
    *ret_use = !index->closed || work->options->allow_closed;
    if (*ret_use || work->options->ignore_unavailable)
        return 0;
    catalog_problem_closed(work->arena, index, work->dialect, work->problem);
    return CATALOG_REFUSED;
}

static int refuse_alias(struct name_resolver *work, struct slice name)
{
    problem_set(work->problem, work->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "The provided expression [%.*s] matches an alias, specify the corresponding concrete indices instead.",
                SLICE_ARG(name));
    return CATALOG_REFUSED;
}

static int use_alias(struct name_resolver *work, struct slice name)
{
    const struct alias_use *uses;
    size_t count = catalog__alias_uses(work->catalog, name, &uses);

    if (count == 0)
        return skip_missing(work, name);
    if (count_looks(work, LOOKS_PER_USE * (uint64_t)count) != 0)
        return CATALOG_REFUSED;
    if (work->options->refuse_aliases && work->dialect != DIALECT_5) {
        if (work->options->ignore_unavailable)
            return 0;
        return refuse_alias(work, name);
    }
    for (size_t i = 0; i < count; i++) {
        const struct catalog_index *index = catalog_index(work->catalog, uses[i].index);
        bool use;
        if (may_use(work, index, &use) != 0)
            return CATALOG_REFUSED;
        if (use)
            reach_by_alias(work, position_of(work->catalog, index), catalog_index_alias(index, name));
    }
    return 0;
}

static int use_name(struct name_resolver *work, struct slice name)
{
    const struct catalog_index *index = catalog_index(work->catalog, name);
    bool use;

    if (index == NULL)
        return use_alias(work, name);
    if (may_use(work, index, &use) != 0)
        return CATALOG_REFUSED;
    if (use)
        reach_by_name(work, position_of(work->catalog, index));
    return 0;
}

static int refuse_reserved(struct name_resolver *work, struct slice part)
{
    struct buf quoted = BUF_INIT(BUF_UNLIMITED);
    buf_json_string(&quoted, part);
    problem_set(work->problem, work->arena, PROBLEM_INVALID_INDEX_NAME,
                "Invalid index name [%.*s], must not start with '_'.", SLICE_ARG(part));
    problem_details(work->problem, work->arena, "\"index_uuid\":\"_na_\",\"index\":%.*s",
                    SLICE_ARG(buf_as_slice(&quoted)));
    buf_deinit(&quoted);
    return CATALOG_REFUSED;
}

/* An exclusion of a name that does not exist is likely a typing error, and the request would have one index more. */
static int check_exclusion(struct name_resolver *work, struct slice name)
{
    const struct catalog_options *options = work->options;
    if (options->skip_nameless || has_wildcard(name) || catalog_index(work->catalog, name) != NULL)
        return 0;
    if (name.len == 0)
        return refuse_missing(work, name);
    if (options->ignore_unavailable)
        return 0;
    if (!catalog_has_alias(work->catalog, name))
        return refuse_missing(work, name);
    return options->refuse_aliases && work->dialect != DIALECT_5 ? refuse_alias(work, name) : 0;
}

static int exclude_name(struct name_resolver *work, struct slice name)
{
    if (check_exclusion(work, name) != 0)
        return CATALOG_REFUSED;
    exclude_pattern(work, name);
    return 0;
}

static int resolve_named(struct name_resolver *work, struct slice part)
{
    REQUIRE(part.len > 0);
    bool excludes = part.data[0] == '-' && work->has_wildcards;
    bool expands = has_wildcard(part) || slice_is(part, "_all") || excludes;
    if (count_looks(work, expands ? pattern_looks(work) : LOOKS_PER_USE) != 0)
        return CATALOG_REFUSED;
    if (work->options->names_only && (slice_is(part, "_all") || has_wildcard(part)))
        return skip_missing(work, part);
    if (slice_is(part, "_all") && work->all_is_alone)
        return refuse_reserved(work, part);
    if (slice_is(part, "_all") || slice_is(part, "*")) {
        work->has_wildcards = true;
        if (expand_pattern(work, SLICE_LIT("*")) || work->options->allow_no_indices)
            return 0;
        return work->is_list || work->dialect == DIALECT_5 ? refuse_missing(work, SLICE_LIT("*"))
                                                           : refuse_all(work, part);
    }
    if (excludes && (part.len > 1 || !work->options->skip_nameless))
        return exclude_name(work, slice_from_offset(part, 1));
    if (part.len > 0 && part.data[0] == '_' && work->dialect == DIALECT_7)
        return refuse_reserved(work, part);
    if (has_wildcard(part)) {
        work->has_wildcards = true;
        return expand_pattern(work, part) || work->options->allow_no_indices ? 0 : refuse_missing(work, part);
    }
    return use_name(work, part);
}

static int resolve_part(struct name_resolver *work, struct slice part)
{
    int r = resolve_named(work, part);

    return work->looks_left > 0 ? r : count_looks(work, 0); /* a part of the comparisons was not made */
}

/* Empty names at the end of a list do not count; others are no names of an index. */
static int resolve_parts(struct name_resolver *work, struct slice expression)
{
    struct slice rest = expression.len == 0 ? SLICE_LIT("_all") : expression;
    int r = 0;

    while (rest.len > 0 && rest.data[rest.len - 1] == ',')
        rest.len--;
    while (rest.len > 0 && r == 0) {
        size_t len = slice_find_byte(rest, ',');
        if (len > 0)
            r = resolve_part(work, slice_make(rest.data, len));
        else if (!work->options->skip_nameless)
            r = refuse_missing(work, SLICE_LIT(""));
        rest = slice_from_offset(rest, len + 1);
    }
    return r;
}

static int collect_targets(struct name_resolver *work, struct slice expression, struct catalog_target **ret_targets,
                           size_t *ret_count)
{
    REQUIRE(work->reaches != NULL);
    size_t count = 0;

    for (size_t i = 0; i < work->catalog->count; i++)
        count += work->reaches[i].in;
    if (count == 0 && !work->options->allow_no_indices) {
        catalog_problem_missing(work->arena, expression, false, work->dialect, work->problem);
        return CATALOG_REFUSED;
    }
    struct catalog_target *targets = arena_zalloc(work->arena, (count + 1) * sizeof(*targets));
    count = 0;
    for (size_t i = 0; i < work->catalog->count; i++) {
        const struct reach *reach = &work->reaches[i];
        if (!reach->in)
            continue;
        targets[count].index = &work->catalog->by_name[i]->index;
        targets[count].aliases = reach->by_name ? NULL : reach->aliases;
        INSIST(reach->by_name || reach->alias_count > 0); /* nothing else reaches an index */
        targets[count++].alias_count = reach->by_name ? 0 : reach->alias_count;
    }
    *ret_targets = targets;
    *ret_count = count;
    return 0;
}

/* Requires: `work` has all but `reaches` and `is_list`. */
static int resolve_names(struct name_resolver *work, struct slice expression, struct catalog_target **ret_targets,
                         size_t *ret_count)
{
    REQUIRE(work->options != NULL && ret_targets != NULL && ret_count != NULL);
    const struct catalog *catalog = work->catalog;
    const struct catalog_index *index = catalog_index(catalog, expression);

    if (index != NULL && !index->closed) { /* by far the most frequent case */
        *ret_targets = arena_zalloc(work->arena, sizeof(**ret_targets));
        (*ret_targets)->index = index;
        *ret_count = 1;
        return 0;
    }
    work->is_list = slice_find_byte(expression, ',') < expression.len;
    work->reaches = arena_zalloc(work->arena, (catalog->count + 1) * sizeof(*work->reaches));
    int r = resolve_parts(work, expression);
    return r != 0 ? r : collect_targets(work, expression, ret_targets, ret_count);
}

int catalog_resolve_within(const struct catalog *catalog, struct slice expression,
                           const struct catalog_options *options, enum dialect dialect, enum catalog_weighing weighing,
                           struct arena *arena, uint64_t *io_looks, struct catalog_target **ret_targets,
                           size_t *ret_count, struct problem *ret_problem)
{
    REQUIRE(io_looks != NULL);
    struct name_resolver work = {.catalog = catalog,
                                 .options = options,
                                 .dialect = dialect,
                                 .arena = arena,
                                 .problem = ret_problem,
                                 .weighing = weighing,
                                 .looks_left = *io_looks};
    int r = resolve_names(&work, expression, ret_targets, ret_count);

    *io_looks = work.looks_left;
    return r;
}

/* Returns: whether a list has several names; empty ones are skipped. */
static bool has_several(struct slice list)
{
    size_t count = 0;

    while (list.len > 0 && count < 2) {
        size_t len = slice_find_byte(list, ',');
        count += len > 0;
        list = slice_from_offset(list, len + 1);
    }
    return count > 1;
}

int catalog_resolve(const struct catalog *catalog, struct slice expression, const struct catalog_options *options,
                    enum dialect dialect, struct arena *arena, struct catalog_target **ret_targets, size_t *ret_count,
                    struct problem *ret_problem)
{
    struct name_resolver work = {.catalog = catalog,
                                 .options = options,
                                 .dialect = dialect,
                                 .arena = arena,
                                 .problem = ret_problem,
                                 .all_is_alone = dialect == DIALECT_7 && has_several(expression),
                                 .weighing = CATALOG_WEIGH_REQUEST,
                                 .looks_left = CATALOG_LOOKS_MAX};

    return resolve_names(&work, expression, ret_targets, ret_count);
}
