/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What names mean, for their locks: README-locks.md, "Names" and "What can be named". Everything here is computed in the step
 * that asks, from the catalog as it is then, and nothing is kept: who has waited computes it again.
 */
#include "core/owners/lock_resolve.h"

#include <stdlib.h>

#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_internal.h"
#include "core/catalog/index.h"
#include "core/documents/update.h"
#include "core/documents/write.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/owners/owners.h"
#include "core/owners/session.h"
#include "core/owners/txn.h"
#include "core/step/unit.h"
#include "core/step/work.h"
#include "json/refers.h"
#include "mapping/mapping.h"

struct session;

struct txn;

struct lock_owner;

struct lock_spec;

struct lock_spec_list;
#define LOCK_TARGETS_MAX 100000
#define LOCK_PATH_BYTES_MAX 65536
#define LOCK_NAME_BYTES_MAX 512

size_t lock_specs__lock_count(const struct lock_spec_list *wants)
{
    size_t count = 0;
    for (size_t i = 0; i < wants->count; i++)
        count += !wants->items[i].insert_intention;
    return count;
}

/* --- What it takes ------------------------------------------------------------------------------------------------ */

enum {
    LOCK_BYTES = 256,  /* of a lock */
    PLACE_BYTES = 192, /* of a level above it: api/request/memory.c has the same */
};

size_t owner__lock_bytes(const struct lock_owner *owner)
{
    size_t locks = owner->lock_count + owner->auxiliary_count;
    return locks * LOCK_BYTES + (owner->hold_count - locks) * PLACE_BYTES;
}

static size_t level_count(struct slice path)
{
    struct resource_path walk = resource_path(path);
    struct slice segment;
    size_t count = 0;
    while (path.data != NULL && resource_path_next(&walk, &segment))
        count++;
    return count;
}

/* Compares two paths level by level. Returns: as slice_compare(); *ret_common gets how many they share. */
static int compare_levels(struct slice a, struct slice b, size_t *ret_common)
{
    struct resource_path x = resource_path(a), y = resource_path(b);
    struct slice left, right;
    *ret_common = 0;
    for (;;) {
        bool more = resource_path_next(&x, &left), other = resource_path_next(&y, &right);
        if (!more || !other)
            return more - other;
        int order = slice_compare(left, right);
        if (order != 0)
            return order;
        (*ret_common)++;
    }
}

static int compare_paths(const void *a, const void *b)
{
    const struct resource_name *x = &(*(const struct lock_spec *const *)a)->on;
    const struct resource_name *y = &(*(const struct lock_spec *const *)b)->on;
    size_t common;
    int order = slice_compare(x->index, y->index);
    return order != 0 ? order : compare_levels(x->path, y->path, &common);
}

/* Returns: how many levels there are in all, those that several paths share once. */
static size_t distinct_levels(struct core *core, const struct lock_spec_list *wants)
{
    const struct lock_spec **sorted = arena_alloc(&core->arena, (wants->count + 1) * sizeof *sorted);
    size_t count = 0, levels = 0, common;
    for (size_t i = 0; i < wants->count; i++)
        if (wants->items[i].on.path.data != NULL)
            sorted[count++] = &wants->items[i];
    if (count > 1)
        qsort(sorted, count, sizeof *sorted, compare_paths);
    for (size_t i = 0; i < count; i++) {
        const struct resource_name *name = &sorted[i]->on;
        levels += level_count(name->path);
        if (i == 0 || !slice_equal(sorted[i - 1]->on.index, name->index))
            continue;
        (void)compare_levels(sorted[i - 1]->on.path, name->path, &common);
        levels -= common;
    }
    return levels;
}

size_t lock_specs__bytes(struct core *core, const struct lock_spec_list *wants, size_t most)
{
    size_t locks = wants->count * LOCK_BYTES, levels = 0;
    for (size_t i = 0; i < wants->count; i++)
        levels += level_count(wants->items[i].on.path);
    if (locks + levels * PLACE_BYTES <= most)
        return locks + levels * PLACE_BYTES;
    return locks + distinct_levels(core, wants) * PLACE_BYTES;
}

void lock_specs__add(struct core *core, struct lock_spec_list *wants, const struct lock_spec *want)
{
    wants->items = arena_grow(&core->arena, wants->items, wants->count, &wants->capacity, sizeof *wants->items);
    wants->items[wants->count++] = *want;
}

static void add_name(struct core *core, struct lock_spec_list *wants, enum resource_space space, struct slice name,
                     enum lock_mode mode)
{
    lock_specs__add(core, wants, &(struct lock_spec){{.index = name, .space = space}, mode, .auxiliary = true});
}

/* --- Documents ---------------------------------------------------------------------------------------------------- */

/* Whether documents of several types may lie in an index under one id. */
static bool has_many_types(const struct catalog_index *index)
{
    return index != NULL && index->dialect == DIALECT_5 && mapping_type_count(index->mapping) > 0;
}

/* Whether no type is named: `_all` is whichever has the id. */
static bool is_typeless(const struct catalog_index *index, struct slice type)
{
    bool stored = has_many_types(index) && type.len > 0 && mapping_type(index->mapping, type) != NULL &&
                  slice_equal(mapping_type(index->mapping, type)->name, type);
    return type.len == 0 || slice_is(type, "_all") || (slice_is(type, "_doc") && !stored);
}

/* The type by which a document's resource is known; empty: by none. */
static struct slice key_type(struct core *core, const struct catalog_index *index, struct slice type)
{
    if (!has_many_types(index))
        return SLICE_NONE;
    if (!is_typeless(index, type))
        return type;
    return mapping_type_count(index->mapping) == 1 ? arena_copy(&core->arena, mapping_type_at(index->mapping, 0)->name)
                                                   : SLICE_NONE;
}

static int compare_types(const void *a, const void *b)
{
    return slice_compare(((const struct lock_spec *)a)->on.type, ((const struct lock_spec *)b)->on.type);
}

/*
 * Adds what others know the document by: all that is in the table, or the one that stands for every type. In order of their types: the table finds
 * them in an order that depends on what it once had, and a core that was loaded has a younger table.
 */
static void add_guards(struct core *core, const struct resource_name *name, bool all, enum lock_mode mode,
                       struct lock_spec_list *wants)
{
    const struct resource_table *resources = &core->owners->locks.resources;
    const struct resource *index = resource_index(resources, name->index);
    const struct resource *at = index == NULL ? NULL : resource_with_id(resources, index, name->id, NULL);
    size_t first = wants->count;
    for (; at != NULL; at = resource_with_id(resources, index, name->id, at)) {
        struct slice type = resource_type(at);
        core__work(core, WORK_LOCK);
        if (slice_equal(type, name->type) || (!all && type.len > 0))
            continue;
        struct lock_spec want = {{name->index, SLICE_NONE, arena_copy(&core->arena, type), name->id}, mode};
        want.auxiliary = true;
        lock_specs__add(core, wants, &want);
    }
    if (wants->count - first > 1)
        qsort(wants->items + first, wants->count - first, sizeof *wants->items, compare_types);
}

/* For locks a document lies where it is committed, whatever the transaction that asks has made of it. */
static int add_document(struct core *core, struct slice index, struct slice type, struct slice id, enum lock_mode mode,
                        bool aside, struct lock_spec_list *wants)
{
    struct lock_spec want = {{index, SLICE_NONE, type, id}, mode, .auxiliary = aside};
    int r = write__path_of(core, NULL, index, type, id, &want.on.path);
    if (r == 0)
        lock_specs__add(core, wants, &want);
    return r < 0 ? tl_trace(r) : 0;
}

/* A document of whatever type: in an index of many, each stored one is locked where it lies. */
static int add_every_type(struct core *core, const struct catalog_index *index, struct slice id, enum lock_mode mode,
                          struct lock_spec_list *wants)
{
    size_t count = mapping_type_count(index->mapping);
    int r = 0;
    for (size_t i = 0; i < count && count > 1 && r == 0 && mapping_path_field(index->mapping) != NULL; i++)
        r = add_document(core, index->name, arena_copy(&core->arena, mapping_type_at(index->mapping, i)->name), id,
                         mode, true, wants);
    if (r == 0 && count == 1)
        lock_specs__add(core, wants, &(struct lock_spec){{index->name, SLICE_NONE, SLICE_NONE, id}, mode, .auxiliary = true});
    return r;
}

/* Adds what a document's name comes to. `name`: of its index, concrete, or what there is none of. */
static int add_named_document(struct core *core, struct slice name, struct slice type, struct slice id,
                              enum lock_mode mode, struct lock_spec_list *wants)
{
    const struct catalog_index *index = catalog_index(core->catalog, name);
    bool many = has_many_types(index);
    bool typeless = is_typeless(index, type);
    struct resource_name on = {name, SLICE_NONE, key_type(core, index, type), id};
    int r = add_document(core, name, on.type, id, mode, false, wants);
    if (r == 0 && many && typeless)
        r = add_every_type(core, index, id, mode, wants);
    if (r == 0)
        add_guards(core, &on, !many || typeless, mode, wants);
    return r;
}

/* --- What can be named -------------------------------------------------------------------------------------------- */

static const char *wrong_segment(struct slice segment, bool literal)
{
    if (segment.len == 0)
        return "has an empty name in it";
    if (slice_is(segment, ".") || slice_is(segment, ".."))
        return "has [.] or [..] in it, which are no directories";
    if (literal)
        return NULL;
    if (slice_find_byte(segment, '*') < segment.len || slice_find_byte(segment, '?') < segment.len)
        return "is a pattern: lock the directory above, which covers all below it";
    return NULL;
}

/*
 * "/", or names with a slash before each, and one behind the last if one likes. `literal`: no name is taken for a pattern. Returns: what is wrong
 * with it, or NULL.
 */
static const char *wrong_path(struct slice path, bool literal)
{
    if (path.len == 0 || path.data[0] != '/')
        return "does not begin with [/]";
    path = slice_from_offset(path, 1);
    while (path.len > 0) {
        size_t len = slice_find_byte(path, '/');
        const char *wrong = wrong_segment(slice_make(path.data, len), literal);
        if (wrong != NULL)
            return wrong;
        path = slice_from_offset(path, len < path.len ? len + 1 : len);
    }
    return NULL;
}

/* What a client may name. Returns: 1 with *ret_problem when it may not. */
static int check_target(const struct lock_target *target, enum lock_resolve_purpose use, struct arena *arena,
                        struct problem *ret_problem)
{
    bool rename = use == LOCK_RESOLVE_TO_RENAME;
    const char *wrong = NULL;
    if (target->mode != LOCK_S && target->mode != LOCK_U && target->mode != LOCK_X)
        wrong = "a lock's mode must be one of [shared], [update], [exclusive]";
    else if (target->index.len == 0 && (target->path.data != NULL || target->id.data != NULL))
        wrong = "a lock on a path or a document must name its [index]";
    else if (target->id.data != NULL && target->id.len == 0)
        wrong = "a document's [id] must not be empty";
    else if (target->id.len > LOCK_NAME_BYTES_MAX || target->index.len > LOCK_NAME_BYTES_MAX ||
             target->type.len > LOCK_NAME_BYTES_MAX)
        wrong = "the names of index, type and document are at most [512] bytes long";
    else if (target->path.len > LOCK_PATH_BYTES_MAX || !resource_path_fits(target->path))
        wrong = "a path is at most [65536] bytes long and [4096] levels deep";
    if (wrong != NULL)
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "%s", wrong);
    else if (target->path.data != NULL && (wrong = wrong_path(target->path, rename)) != NULL)
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    rename ? "[%.*s] is no path to rename: it %s" : "a lock on [%.*s] would guard nothing: the path %s",
                    SLICE_ARG(target->path), wrong);
    return wrong != NULL;
}

/* A directory in which no document can lie. */
static int check_directory(const struct lock_target *target, const struct catalog_index *index, struct arena *arena,
                           struct problem *ret_problem)
{
    if (target->path.data == NULL || index == NULL || mapping_path_field(index->mapping) != NULL)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "a lock on [%.*s] would guard nothing: no document lies in a directory of [%.*s], since its mapping "
                "has no path "
                "field. Missing is a field such as [path] of type [path], or of type [text] with an analyzer whose "
                "tokenizer is [path_hierarchy]; without it lock documents by their [id], or the index",
                SLICE_ARG(target->path), SLICE_ARG(index->name));
    return 1;
}

/* --- Indices ------------------------------------------------------------------------------------------------------ */

static const struct catalog_index *member_of(const struct core *core, const struct alias_use *use)
{
    return catalog_index(core->catalog, use->index);
}

/* Of an alias the index that it writes to, or the only one. */
static const struct catalog_index *aliased(const struct core *core, struct slice alias)
{
    const struct alias_use *uses;
    size_t count = catalog__alias_uses(core->catalog, alias, &uses);
    if (count == 1)
        return member_of(core, &uses[0]);
    for (size_t i = 0; i < count; i++)
        if (catalog_index_alias(member_of(core, &uses[i]), alias)->write_index == CATALOG_FLAG_TRUE)
            return member_of(core, &uses[i]);
    return NULL;
}

/*
 * An alias stands for its index. What is neither an index nor an alias is locked by its name: it may come to be. A pattern or a
 * list never will, so that a lock on it would keep nobody out.
 */
static int find_index(struct core *core, struct slice name, struct arena *arena, const struct catalog_index **ret_index,
                      struct problem *ret_problem)
{
    *ret_index = catalog_index(core->catalog, name);
    if (*ret_index != NULL)
        return 0;
    if (!catalog_has_alias(core->catalog, name))
        return catalog_check_index_name(name, DIALECT_7, arena, ret_problem);
    *ret_index = aliased(core, name);
    return *ret_index != NULL ? 0
                              : catalog_find(core->catalog, name, true, DIALECT_7, arena, ret_index, NULL, ret_problem);
}

bool lock_resolve__is_missing(const struct core *core, struct slice name)
{
    return name.len > 0 && catalog_index(core->catalog, name) == NULL && !catalog_has_alias(core->catalog, name);
}

/* --- Lock requests ------------------------------------------------------------------------------------------------ */

static int add_lock(struct core *core, const struct lock_target *target, enum lock_resolve_purpose use, struct arena *arena,
                    struct lock_spec_list *wants, struct problem *ret_problem)
{
    const struct catalog_index *index = NULL;
    if (check_target(target, use, arena, ret_problem) != 0)
        return 1;
    if (target->index.len > 0 && find_index(core, target->index, arena, &index, ret_problem) != 0)
        return 1;
    if (use == LOCK_RESOLVE_TO_LOCK && check_directory(target, index, arena, ret_problem) != 0)
        return 1;
    struct slice name = index != NULL ? arena_copy(&core->arena, index->name) : target->index;
    if (index != NULL && !slice_equal(index->name, target->index))
        add_name(core, wants, RESOURCE_SPACE_NAMES, target->index, LOCK_S);
    if (target->id.data != NULL)
        return add_named_document(core, name, target->type, target->id, target->mode, wants);
    lock_specs__add(core, wants, &(struct lock_spec){{.index = name, .path = target->path}, target->mode});
    return 0;
}

int lock_resolve__locks(struct core *core, const struct lock_target *targets, size_t count, enum lock_resolve_purpose use,
                    struct arena *arena, struct lock_spec_list *ret_wants, struct problem *ret_problem)
{
    struct lock_spec_list wants = {0};
    int r = 0;
    if (count > LOCK_TARGETS_MAX) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "a request names at most [%d] locks",
                    LOCK_TARGETS_MAX);
        return 1;
    }
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_lock(core, &targets[i], use, arena, &wants, ret_problem);
    *ret_wants = wants;
    return r < 0 ? tl_trace(r) : r;
}

/* Whether an owner has anything in what an alias stands for. */
static bool alias_in_use(const struct core *core, const struct lock_owner *owner, struct slice alias)
{
    const struct alias_use *uses;
    size_t count = catalog__alias_uses(core->catalog, alias, &uses);
    for (size_t i = 0; i < count; i++)
        if (lock_table_has_holds_in_index(&core->owners->locks, owner, uses[i].index))
            return true;
    return false;
}

void lock_resolve__release_unused_aliases(struct core *core, struct lock_owner *owner)
{
    list_for_each_safe(link, following, &owner->holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
        if (owner->auxiliary_count == 0)
            return;
        if (hold->resource->kind != RESOURCE_NAME || hold->mode == LOCK_NONE)
            continue;
        struct resource_name name = resource_name(hold->resource, &core->arena);
        name.index = arena_copy(&core->arena, name.index);
        if (alias_in_use(core, owner, name.index))
            continue;
        lock_release(&core->owners->locks, owner, &name);
        following = owner->holds.next; /* marks above may have gone with it */
    }
}

/* --- Reads of transactions ---------------------------------------------------------------------------------------- */

static void add_index(struct core *core, struct slice name, enum lock_mode mode, struct lock_spec_list *wants)
{
    lock_specs__add(core, wants, &(struct lock_spec){{.index = arena_copy(&core->arena, name)}, mode});
}

/*
 * A name outright: the index, closed or not; or the alias and all that it stands for; or that there is none. Then it is locked as
 * an index, too: the transaction itself may make it.
 */
static void add_outright(struct core *core, struct slice name, enum lock_mode mode, struct lock_spec_list *wants)
{
    const struct alias_use *uses;
    if (catalog_index(core->catalog, name) != NULL) {
        add_index(core, name, mode, wants);
        return;
    }
    size_t count = catalog__alias_uses(core->catalog, name, &uses);
    add_name(core, wants, RESOURCE_SPACE_NAMES, name, LOCK_S);
    if (count == 0)
        add_index(core, name, mode, wants);
    for (size_t i = 0; i < count; i++)
        add_index(core, uses[i].index, mode, wants);
}

static void add_expression_names(struct core *core, struct slice left, enum lock_mode mode, struct lock_spec_list *wants)
{
    bool pattern = left.len == 0;
    while (left.len > 0) {
        size_t len = slice_find_byte(left, ',');
        struct slice name = slice_make(left.data, len);
        if (slice_is(name, "_all") || slice_find_byte(name, '*') < name.len)
            pattern = true;
        else if (name.len > 0 && name.len <= LOCK_NAME_BYTES_MAX)
            add_outright(core, name, mode, wants);
        left = slice_from_offset(left, len < left.len ? len + 1 : len);
    }
    if (pattern)
        add_name(core, wants, RESOURCE_SPACE_NAMES, SLICE_NONE, LOCK_S);
}

/* A document by any name that its index may have. */
static int add_read_document(struct core *core, const struct lock_target *target, struct lock_spec_list *wants)
{
    const struct alias_use *uses;
    if (target->id.len > LOCK_NAME_BYTES_MAX || target->index.len > LOCK_NAME_BYTES_MAX)
        return 0; /* there is none, and can be none */
    if (catalog_index(core->catalog, target->index) != NULL)
        return add_named_document(core, target->index, target->type, target->id, target->mode, wants);
    size_t count = catalog__alias_uses(core->catalog, target->index, &uses);
    add_name(core, wants, RESOURCE_SPACE_NAMES, target->index, LOCK_S);
    if (count > 1)
        return 0;
    struct slice index = count == 0 ? target->index : arena_copy(&core->arena, uses[0].index);
    return add_named_document(core, index, target->type, target->id, target->mode, wants);
}

/* What the filters look up of the aliases by which an index was found. */
static int add_filters(struct core *core, const struct catalog_target *found, struct lock_spec_list *wants)
{
    struct json_refers refers = {0};
    int r = 0;
    for (size_t i = 0; i < found->alias_count; i++) {
        struct json_doc filter;
        if (found->aliases[i]->filter.data != NULL &&
            json_parse_stored(&core->arena, found->aliases[i]->filter, &filter) == 0)
            json_refers(filter.root, &core->arena, &refers);
    }
    for (size_t i = 0; i < refers.count && r == 0; i++) {
        const struct json_refer *refer = &refers.items[i];
        if (refer->script)
            add_name(core, wants, RESOURCE_SPACE_SCRIPTS, refer->id, LOCK_S);
        else
            r = add_read_document(
                core, &(struct lock_target){LOCK_S, refer->index, SLICE_NONE, refer->type, refer->id, NULL, false},
                wants);
    }
    return r;
}

static int add_expression(struct core *core, const struct lock_target *target, enum dialect dialect,
                          struct lock_spec_list *wants)
{
    struct catalog_target *found;
    struct problem problem;
    size_t count = 0;
    int r = 0;
    add_expression_names(core, target->index, target->mode, wants);
    /* What is refused, or not there, the read itself will tell of: it stays so as long as the names do. */
    if (catalog_resolve(core->catalog, target->index, target->expression, dialect, &core->arena, &found, &count,
                        &problem) != 0)
        return 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        add_index(core, found[i].index->name, target->mode, wants);
        r = add_filters(core, &found[i], wants);
    }
    return r;
}

static void add_read_directory(struct core *core, const struct lock_target *target, struct lock_spec_list *wants)
{
    if (lock_resolve__is_missing(core, target->index))
        add_name(core, wants, RESOURCE_SPACE_NAMES, target->index, LOCK_S);
    lock_specs__add(core, wants, &(struct lock_spec){{.index = target->index, .path = target->path}, target->mode});
}

static int add_read(struct core *core, const struct lock_target *target, enum dialect dialect, struct lock_spec_list *wants)
{
    if (target->script)
        add_name(core, wants, RESOURCE_SPACE_SCRIPTS, target->index, LOCK_S);
    else if (target->expression != NULL)
        return add_expression(core, target, dialect, wants);
    else if (target->id.data != NULL)
        return add_read_document(core, target, wants);
    else if (target->index.len == 0)
        lock_specs__add(core, wants, &(struct lock_spec){.mode = target->mode});
    else if (target->path.data != NULL)
        add_read_directory(core, target, wants);
    else
        add_outright(core, target->index, target->mode, wants);
    return 0;
}

int lock_resolve__reads(struct core *core, const struct lock_target *targets, size_t count, enum dialect dialect,
                    const struct txn *txn, struct lock_spec_list *ret_wants)
{
    struct lock_spec_list wants = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_read(core, &targets[i], dialect, &wants);
    lock_resolve__drop_held(core, &txn->owner.locks, &wants);
    *ret_wants = wants;
    return r < 0 ? tl_trace(r) : 0;
}

/* --- Writes ------------------------------------------------------------------------------------------------------- */

/* An alias that is given to an index: its name changes its meaning, and what was locked by it would be elsewhere. */
static void add_alias_change(struct core *core, struct slice alias, struct lock_spec_list *wants)
{
    bool all = slice_is(alias, "_all") || slice_find_byte(alias, '*') < alias.len;
    if (alias.len == 0 || alias.len > LOCK_NAME_BYTES_MAX)
        return;
    add_name(core, wants, RESOURCE_SPACE_NAMES, all ? SLICE_NONE : alias, LOCK_X);
    if (!all && lock_resolve__is_missing(core, alias))
        lock_specs__add(core, wants, &(struct lock_spec){{.index = alias}, LOCK_X, .auxiliary = true});
}

static void add_creation(struct core *core, struct slice name, const struct index_plan *plan, struct lock_spec_list *wants)
{
    if (!lock_resolve__is_missing(core, name))
        return; /* it will be refused, or has come to be meanwhile */
    add_name(core, wants, RESOURCE_SPACE_NAMES, name, LOCK_X);
    if (!plan->tree && lock_table_has_directories(&core->owners->locks, name))
        lock_specs__add(core, wants, &(struct lock_spec){{.index = name}, LOCK_X});
    for (size_t i = 0; i < plan->alias_count; i++)
        add_alias_change(core, plan->aliases[i], wants);
}

/* The document where it lies now, whatever becomes of the write. */
struct resource_name lock_resolve__target_document(struct core *core, const struct write_target *target)
{
    const struct catalog_index *index = catalog_index(core->catalog, target->index);
    return (struct resource_name){target->index, target->committed_path, key_type(core, index, target->type), target->id};
}

/* A transaction that has seen all names has seen that there was nothing in what it now makes. */
static void add_seen_empty(struct core *core, const struct txn *txn, struct slice index, struct lock_spec_list *wants)
{
    const struct lock_spec all = {{.space = RESOURCE_SPACE_NAMES}, LOCK_S};
    if (lock_table_holds(&core->owners->locks, &txn->owner.locks, &all))
        lock_specs__add(core, wants, &(struct lock_spec){{.index = index}, LOCK_S, .auxiliary = true});
}

void lock_resolve__write(struct core *core, const struct write_item *item, const struct write_target *target,
                     const struct txn *txn, struct lock_spec_list *wants)
{
    const struct catalog_index *index = catalog_index(core->catalog, target->index);
    struct resource_name name = lock_resolve__target_document(core, target);
    bool many = has_many_types(index);
    lock_specs__add(core, wants, &(struct lock_spec){name, LOCK_X});
    if (target->new_path.data != NULL && !slice_equal(target->new_path, target->old_path))
        lock_specs__add(core, wants, &(struct lock_spec){{.index = target->index, .path = target->new_path}, LOCK_X, true});
    add_guards(core, &name, !many, LOCK_X, wants);
    if (index == NULL && write__creates_index(item)) {
        struct index_plan plan = index__plan_auto(core, target->index, item->type, item->dialect);
        add_creation(core, target->index, &plan, wants);
        if (txn != NULL)
            add_seen_empty(core, txn, target->index, wants);
    }
    if (txn == NULL)
        return;
    if (!slice_equal(item->index, target->index))
        add_name(core, wants, RESOURCE_SPACE_NAMES, item->index, LOCK_S);
    if (item->update != NULL && item->update->script_id.len > 0)
        add_name(core, wants, RESOURCE_SPACE_SCRIPTS, item->update->script_id, LOCK_S);
}

void lock_resolve__move_document(struct core *core, const struct resource_name *name, struct slice path)
{
    struct lock_table *locks = &core->owners->locks;
    const struct catalog_index *index = catalog_index(core->catalog, name->index);
    const struct resource *home = resource_index(&locks->resources, name->index);
    struct resource_name at = *name;
    if (home == NULL)
        return;
    at.type = key_type(core, index, name->type);
    if (has_many_types(index) && resource_document(&locks->resources, home, at.type, at.id) == NULL)
        at.type = SLICE_NONE;
    lock_table_move_document(locks, &at, path);
}

/* They have moved at one moment: nobody is granted anything, or ended, by where some of them lie while others still lie where they were. */
static int place_all(struct core *core, const struct resource_name *names, size_t count)
{
    struct lock_table *locks = &core->owners->locks;
    int r = 0;
    core__work(core, WORK_READ * (uint64_t)count);
    lock_table_suspend_grants(locks);
    for (size_t i = 0; i < count && r >= 0; i++) {
        struct resource_name place = names[i];
        r = write__path_of(core, NULL, place.index, place.type, place.id, &place.path);
        if (r >= 0 && !lock_table_document_is_at(locks, &place))
            lock_table_move_document(locks, &place, place.path);
    }
    lock_table_resume_grants(locks);
    return r < 0 ? tl_trace(r) : 0;
}

int lock_resolve__relocate_documents(struct core *core, struct slice index)
{
    size_t count;
    if (lock_table_is_idle(&core->owners->locks))
        return 0;
    const struct resource_name *names = lock_table_documents(&core->owners->locks, index, &core->arena, &count);
    return place_all(core, names, count);
}

int lock_resolve__relocate_renamed(struct core *core, struct slice index, struct slice from)
{
    size_t count;
    if (lock_table_is_idle(&core->owners->locks))
        return 0;
    core__work(core, WORK_LOCK * (uint64_t)core->owners->locks.resources.count / 3);
    const struct resource_name *names =
        lock_table_documents_below(&core->owners->locks, index, &from, 1, &core->arena, &count);
    return place_all(core, names, count);
}

struct lock_spec_list lock_resolve__document(struct core *core, const struct resource_name *document)
{
    struct lock_spec_list wants = {0};
    const struct catalog_index *index = catalog_index(core->catalog, document->index);
    struct resource_name name = *document;
    name.type = key_type(core, index, name.type);
    lock_specs__add(core, &wants, &(struct lock_spec){name, LOCK_X});
    add_guards(core, &name, !has_many_types(index), LOCK_X, &wants);
    return wants;
}

bool lock_resolve__can_write(struct core *core, struct lock_owner *owner, const struct resource_name *document)
{
    struct lock_spec_list wants = lock_resolve__document(core, document);
    bool free = true;
    for (size_t i = 0; i < wants.count && free; i++)
        free = lock_table_covers(&core->owners->locks, owner, &wants.items[i]) ||
               lock_table_can_grant(&core->owners->locks, owner, &wants.items[i]);
    return free;
}

/* --- Changes of indices ------------------------------------------------------------------------------------------- */

/* The index itself, whole or a place in it. A name that is none is refused by the handler. */
static void add_changed(struct core *core, struct slice index, bool whole, struct lock_spec_list *wants)
{
    if (index.len > 0)
        lock_specs__add(core, wants, &(struct lock_spec){{.index = index}, LOCK_X, !whole});
}

static void add_removal(struct core *core, struct slice name, struct lock_spec_list *wants)
{
    const struct catalog_index *index = catalog_index(core->catalog, name);
    for (size_t i = 0; index != NULL && i < index->alias_count; i++)
        add_alias_change(core, arena_copy(&core->arena, index->aliases[i].name), wants);
}

static void of_aliases(struct core *core, const struct aliases_command *aliases, struct lock_spec_list *wants)
{
    for (size_t i = 0; i < aliases->action_count; i++) {
        const struct alias_action *action = &aliases->actions[i];
        bool removal = action->op == ALIAS_REMOVE_INDEX;
        add_changed(core, action->index, removal, wants);
        if (!removal) {
            add_alias_change(core, action->alias, wants);
            continue;
        }
        add_name(core, wants, RESOURCE_SPACE_NAMES, action->index, LOCK_X);
        add_removal(core, action->index, wants);
    }
}

void lock_resolve__ddl(struct core *core, const struct command *command, struct lock_spec_list *wants)
{
    struct slice name = command->index.name;
    if (command->type == COMMAND_SCRIPT_PUT || command->type == COMMAND_SCRIPT_DELETE) {
        if (command->object.name.len > 0)
            add_name(core, wants, RESOURCE_SPACE_SCRIPTS, command->object.name, LOCK_X);
        return;
    }
    if (command->type == COMMAND_ALIASES_UPDATE) {
        of_aliases(core, &command->aliases, wants);
        return;
    }
    add_changed(core, name, command_is(command->type, COMMAND_WHOLE_INDEX) || index__blocks_writes(core, command),
                wants);
    if (name.len == 0 || command->type == COMMAND_MAPPING_PUT)
        return;
    if (command->type == COMMAND_INDEX_CREATE) {
        struct index_plan plan = index__plan(core, command);
        add_creation(core, name, &plan, wants);
    } else {
        add_name(core, wants, RESOURCE_SPACE_NAMES, name, LOCK_X);
    }
    if (command->type == COMMAND_INDEX_DELETE)
        add_removal(core, name, wants);
}

/* Whether it has the name itself, or all names: a lock on everything may go before what it covers. */
static bool keeps(const struct core *core, const struct lock_owner *owner, const struct lock_spec *name)
{
    const struct lock_spec all = {{.space = name->on.space}, name->mode};
    return lock_table_holds(&core->owners->locks, owner, name) || lock_table_holds(&core->owners->locks, owner, &all);
}

void lock_resolve__drop_held(struct core *core, const struct lock_owner *owner, struct lock_spec_list *wants)
{
    size_t kept = 0;
    for (size_t i = 0; i < wants->count; i++)
        if (wants->items[i].on.space == RESOURCE_SPACE_TREE || !keeps(core, owner, &wants->items[i]))
            wants->items[kept++] = wants->items[i];
    wants->count = kept;
}

/* --- Names that are free ------------------------------------------------------------------------------------------ */

void lock_resolve__drop_unheld(struct core *core, const struct lock_owner *owner, const struct session *session,
                      struct lock_spec_list *wants)
{
    const struct lock_owner *passed = session == NULL ? NULL : &session->owner.locks;
    size_t kept = 0;
    for (size_t i = 0; i < wants->count; i++)
        if (wants->items[i].on.space == RESOURCE_SPACE_TREE ||
            lock_table_has_conflicting_hold(&core->owners->locks, owner, passed, &wants->items[i]))
            wants->items[kept++] = wants->items[i];
    wants->count = kept;
}

/* --- Those who would change what they hold ------------------------------------------------------------------------ */

bool lock_resolve__self_conflict(struct core *core, const struct session *session, const struct lock_spec_list *wants, struct arena *arena,
                struct problem *ret_problem)
{
    struct lock_table *locks = &core->owners->locks;
    for (size_t i = 0; session != NULL && i < wants->count; i++) {
        const struct lock_owner *owner = &session->owner.locks;
        const struct lock_spec *want = &wants->items[i];
        const struct lock_spec kept = {want->on, LOCK_S};
        bool whole = want->auxiliary && want->on.id.data == NULL && want->on.path.data == NULL && want->on.index.len > 0;
        bool names = want->on.space == RESOURCE_SPACE_NAMES && want->mode == LOCK_X;
        if (!whole ||
            !(names ? lock_table_holds(locks, owner, &kept)
                    : want->on.space == RESOURCE_SPACE_TREE && lock_table_has_holds_in_index(locks, owner, want->on.index)))
            continue;
        problem_set(ret_problem, arena, PROBLEM_LOCK_CONFLICT,
                    "session [%.*s] itself holds a lock by the name [%.*s], which must stay what it is until that is "
                    "released: release it first, or lock an index by its own name",
                    SLICE_ARG(session->id), SLICE_ARG(want->on.index));
        return true;
    }
    return false;
}
