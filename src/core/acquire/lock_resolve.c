/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From names in requests to lock specs; see lock_resolve.h. Everything is computed from the catalog
 * in the step that asks, and nothing is cached: a request that has waited is resolved again.
 */
#include "core/acquire/lock_resolve.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/map.h"
#include "core/acquire/lock_levels.h"
#include "core/catalog/catalog.h"
#include "core/catalog/catalog_internal.h"
#include "core/catalog/index.h"
#include "core/documents/update.h"
#include "core/documents/write.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/cost.h"
#include "core/session/owner.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/step/core.h"
#include "core/tree/tree_paths.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "json/references.h"
#include "mapping/mapping.h"

#define LOCK_TARGETS_MAX 100000
/* Comparisons of names for one unit of work. */
#define LOOKS_PER_WORK 4
#define LOCK_PATH_BYTES_MAX 65536
#define LOCK_NAME_BYTES_MAX 512

/* --- Memory estimates --------------------------------------------------------------------------------------------- */

/* By each, a resource and a hold, with their places in the tables. */
struct lock_bytes {
    size_t lock;
    size_t level; /* a directory above a lock */
};

static struct lock_bytes lock_bytes(const struct core *core)
{
    return core->command_version >= COMMAND_SINCE_LEVELS_WORK ? (struct lock_bytes){512, 448}
                                                              : (struct lock_bytes){256, 192};
}

size_t owner__lock_bytes(const struct core *core, const struct lock_owner *owner)
{
    struct lock_bytes bytes = lock_bytes(core);
    size_t locks = owner->lock_count + owner->auxiliary_count;
    INSIST(owner->hold_count >= locks);
    return locks * bytes.lock + (owner->hold_count - locks) * bytes.level;
}

/*
 * Returns: the directories above all specs, each once; `most` + 1, if there are more. They are counted once for a
 * request.
 */
static size_t distinct_levels(struct core *core, struct lock_spec_list *specs, size_t most)
{
    if (!specs->distinct_known || (specs->distinct > specs->distinct_most && most > specs->distinct_most)) {
        specs->distinct = lock_levels__distinct(core, specs->items, specs->count, most);
        specs->distinct_most = most;
        specs->distinct_known = true;
    }
    return specs->distinct;
}

size_t lock_specs__bytes(struct core *core, struct lock_spec_list *specs, size_t most)
{
    struct lock_bytes bytes = lock_bytes(core);
    size_t locks = specs->count * bytes.lock, levels = 0;
    for (size_t i = 0; i < specs->count; i++)
        levels += lock_levels__of(specs->items[i].on.path);
    core__work(core, WORK_LOCK * ((uint64_t)specs->count + levels) / 4);
    if (locks + levels * bytes.level <= most || locks > most)
        return locks + levels * bytes.level;
    return locks + distinct_levels(core, specs, (most - locks) / bytes.level) * bytes.level;
}

/* --- Counts and work ---------------------------------------------------------------------------------------------- */

enum lock_count lock_specs__counted(const struct core *core)
{
    return core->command_version >= COMMAND_SINCE_PLAIN_LOCKS ? LOCK_COUNT_PLAIN : LOCK_COUNT_ALL;
}

size_t owner__lock_count(const struct lock_owner *owner, enum lock_count counted)
{
    return owner->lock_count + (counted == LOCK_COUNT_ALL ? owner->auxiliary_count : 0);
}

size_t lock_specs__count_after(const struct lock_owner *owner, const struct lock_spec_list *specs,
                               enum lock_count counted)
{
    size_t count = owner__lock_count(owner, counted);
    for (size_t i = 0; i < specs->count; i++) {
        const struct lock_spec *spec = &specs->items[i];
        count += !spec->insert_intention && (counted == LOCK_COUNT_ALL || !spec->auxiliary);
    }
    return count;
}

void lock_specs__refuse(const struct core *core, size_t count, struct arena *arena, struct problem *ret_problem)
{
    if (core->command_version >= COMMAND_SINCE_LOCK_STEP) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "the first [%zu] names of the request take more work than one request may, since others would "
                    "wait for it: lock a directory above them or the index, which covers all that is in it, name the "
                    "documents' types, or divide the request",
                    count);
        return;
    }
    problem_set(ret_problem, arena, PROBLEM_LIMIT_EXCEEDED,
                "the first [%zu] names of the request mean more locks than one request may have: send it in several "
                "requests, name the documents' types, or name a directory or the index in place of its documents",
                count);
}

/* Counts the work of the directories above one lock, before it is known which of them others share. */
static void count_levels(const struct core *core, struct lock_spec_list *specs, size_t levels)
{
    size_t usual = levels < WORK_LEVELS_USUAL ? levels : WORK_LEVELS_USUAL;
    if (core->command_version >= COMMAND_SINCE_LEVELS_WORK)
        specs->work += WORK_PATH_LEVEL * (uint64_t)usual + WORK_DEEP_LEVEL * (uint64_t)(levels - usual);
}

/* Counts those above a document that is in the lock table, for a lock or a release that names no path. */
static void count_levels_above(const struct core *core, struct lock_spec_list *specs, const struct resource *document)
{
    size_t levels = 0;
    for (; document != NULL && document->parent != NULL; document = document->parent)
        levels++;
    count_levels(core, specs, levels);
}

/* Returns: the limit of the work of one request. One name of an UNLOCK may release as much as before. */
static uint64_t work_max(const struct core *core, enum lock_resolve_purpose purpose)
{
    if (core->command_version >= COMMAND_SINCE_LOCK_STEP && purpose == LOCK_RESOLVE_TO_LOCK)
        return LOCK_WORK_MAX;
    if (core->command_version >= COMMAND_SINCE_LEVELS_WORK)
        return CORE_LOCK_WORK;
    return core->command_version >= COMMAND_SINCE_PLAIN_LOCKS ? CORE_LOCK_WORK_BEFORE : UINT64_MAX;
}

static uint64_t work_of_levels(const struct core *core, size_t levels)
{
    return (uint64_t)levels *
           (core->command_version >= COMMAND_SINCE_LOCK_STEP ? WORK_LEVEL_LOCKED : WORK_LEVEL_LOCKED_BEFORE);
}

bool lock_specs__exceed_levels(struct core *core, struct lock_spec_list *specs)
{
    REQUIRE(specs->work_max > 0);
    if (specs->levels == 0 || specs->work + work_of_levels(core, specs->levels) <= specs->work_max)
        return false;
    if (specs->work > specs->work_max)
        return true;
    size_t most = (size_t)((specs->work_max - specs->work) / work_of_levels(core, 1));
    return distinct_levels(core, specs, most) > most;
}

bool lock_specs__exceed(const struct lock_spec_list *specs)
{
    return specs->work > specs->work_max;
}

bool lock_specs__exceed_work(struct core *core, struct lock_spec_list *specs, uint64_t most, uint64_t *ret_work)
{
    if (specs->work > most)
        return true;
    size_t levels_max = (size_t)((most - specs->work) / work_of_levels(core, 1));
    size_t levels = specs->levels == 0 ? 0 : distinct_levels(core, specs, levels_max);
    *ret_work = specs->work + work_of_levels(core, levels);
    return levels > levels_max;
}

static uint64_t name_bytes(const struct resource_name *name)
{
    return (uint64_t)name->index.len + name->path.len + name->type.len + name->id.len;
}

void lock_specs__add(struct core *core, struct lock_spec_list *specs, const struct lock_spec *spec)
{
    REQUIRE(core->open && spec->mode > LOCK_NONE && spec->mode < LOCK_MODE_COUNT);
    specs->work += WORK_LOCK_ASKED;
    if (core->command_version >= COMMAND_SINCE_LOCK_STEP)
        specs->work += name_bytes(&spec->on) / WORK_NAME_BYTES;
    if (spec->on.path.data != NULL && core->command_version >= COMMAND_SINCE_LEVELS_WORK) {
        size_t levels = lock_levels__of(spec->on.path);
        specs->levels += levels;
        count_levels(core, specs, levels);
    }
    specs->items = arena_grow(&core->arena, specs->items, specs->count, &specs->capacity, sizeof *specs->items);
    specs->items[specs->count++] = *spec;
    specs->distinct_known = false;
}

/* Adds an auxiliary lock on the name of an index, an alias or a stored script. */
static void add_name(struct core *core, struct lock_spec_list *specs, enum resource_space space, struct slice name,
                     enum lock_mode mode)
{
    lock_specs__add(core, specs, &(struct lock_spec){{.index = name, .space = space}, mode, .auxiliary = true});
}

/* --- Documents ---------------------------------------------------------------------------------------------------- */

/* Whether an index may have documents of several types under one id. */
static bool has_many_types(const struct catalog_index *index)
{
    return index != NULL && index->dialect == DIALECT_5 && mapping_type_count(index->mapping) > 0;
}

/* Whether a request names no type: empty, `_all`, or a `_doc` that is not a stored type. */
static bool is_typeless(const struct catalog_index *index, struct slice type)
{
    bool stored = has_many_types(index) && type.len > 0 && mapping_type(index->mapping, type) != NULL &&
                  slice_equal(mapping_type(index->mapping, type)->name, type);
    return type.len == 0 || slice_is(type, "_all") || (slice_is(type, "_doc") && !stored);
}

/* Whether a document is named by a type, in an index with several; false for commands before version 23. */
static bool names_type(const struct core *core, const struct catalog_index *index, struct slice type)
{
    return core->command_version >= COMMAND_SINCE_TYPES_BOUNDED && has_many_types(index) && !is_typeless(index, type);
}

/*
 * Whether a read or a write names a document by a type that its index does not have: it locks (index, no type, id) in
 * the place of one resource for each text. By commands before version 23 it locked those.
 */
static bool is_of_no_type(const struct core *core, const struct catalog_index *index, struct slice type)
{
    return names_type(core, index, type) && mapping_type(index->mapping, type) == NULL;
}

/* Returns: the type in a document's resource name; empty: the resource has none. */
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

static void add_other_type(struct core *core, const struct resource_name *name, const struct resource *document,
                           enum lock_mode mode, struct lock_spec_list *specs)
{
    struct slice type = arena_copy(&core->arena, resource_type(document));
    struct lock_spec spec = {{name->index, SLICE_NONE, type, name->id}, mode, .auxiliary = true};
    lock_specs__add(core, specs, &spec);
    count_levels_above(core, specs, document);
}

/* Adds the resource of a document without a type if the lock table has it, and `name` another type. */
static void add_no_type(struct core *core, const struct resource_name *name, const struct resource *index,
                        enum lock_mode mode, struct lock_spec_list *specs)
{
    const struct resource *at = resource_document(&core->owners->locks.resources, index, SLICE_NONE, name->id);
    core__work(core, WORK_LOCK);
    specs->work += WORK_LOCK;
    if (at != NULL && name->type.len > 0)
        add_other_type(core, name, at, mode, specs);
}

/*
 * Adds the resources under which other owners lock or await the document: with `all` those of every
 * type, else only the one without a type (which commands before version 24 look for among all). They are sorted by
 * type, since the order of the lock table depends on its history, and differs in a core that was loaded from a
 * checkpoint.
 */
static void add_other_types(struct core *core, const struct resource_name *name, bool all, enum lock_mode mode,
                            struct lock_spec_list *specs)
{
    const struct resource_table *resources = &core->owners->locks.resources;
    const struct resource *index = resource_index(resources, name->index);
    if (index == NULL)
        return;
    if (!all && core->command_version >= COMMAND_SINCE_TYPES_FOUND) {
        add_no_type(core, name, index, mode, specs);
        return;
    }
    const struct resource *at = resource_with_id(resources, index, name->id, NULL);
    size_t first = specs->count;
    for (; at != NULL; at = resource_with_id(resources, index, name->id, at)) {
        struct slice type = resource_type(at);
        core__work(core, WORK_LOCK);
        specs->work += core->command_version >= COMMAND_SINCE_TYPES_BOUNDED ? WORK_LOCK : 0;
        if (!slice_equal(type, name->type) && (all || type.len == 0))
            add_other_type(core, name, at, mode, specs);
    }
    if (specs->count - first > 1)
        qsort(specs->items + first, specs->count - first, sizeof *specs->items, compare_types);
}

/*
 * Returns: what the reading of one document counts, at most half of a request: a document of many megabytes takes more
 * than a step to read, but nothing can divide that, and a read of a transaction has no other way to lock it. It has no
 * prefetched document, so the work follows from the state.
 */
static uint64_t reading_work(const struct core *core, uint64_t before)
{
    uint64_t work = core->work - before;
    return work < LOCK_WORK_MAX / 2 ? work : LOCK_WORK_MAX / 2;
}

/*
 * Types that an index does not have, by which LOCKs may name one document at once: each write of it compares itself
 * with all of them. They are different resources, so that a session can release each; those of an index are
 * MAPPING_TYPES_MAX at most, but the lock table may know more: locks stay when an index is deleted and created again.
 */
enum { TYPES_LOCKED_MAX = 100 };

static int refuse_types(struct slice index, struct slice id, struct arena *arena, struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_LIMIT_EXCEEDED,
                "more than [%d] types that [%.*s] does not have would be locked or requested of its document [%.*s]: "
                "name it without a type, which covers all",
                TYPES_LOCKED_MAX, SLICE_ARG(index), SLICE_ARG(id));
    return 1;
}

/* Counts of a document that a LOCK names by types, without those locks that its owner has already. */
struct named_document {
    size_t missing; /* names by types that its index does not have */
    size_t known;   /* its types in the lock table, up to one more than may be known */
};

/* Returns: how many types of a document the lock table knows; `most` + 1: more. */
static size_t count_known(struct core *core, struct slice index, struct slice id, size_t most)
{
    const struct resource_table *resources = &core->owners->locks.resources;
    const struct resource *home = resource_index(resources, index);
    const struct resource *at = home == NULL ? NULL : resource_with_id(resources, home, id, NULL);
    size_t known = 0;
    for (; at != NULL && known <= most; at = resource_with_id(resources, home, id, at))
        known += resource_type(at).len > 0;
    core__work(core, WORK_LOCK * (uint64_t)known);
    return known;
}

/* Finds or makes the counts of a document: the lock table is looked at once for all of its names in the request. */
static struct named_document *find_named(struct core *core, struct map *named, const struct catalog_index *index,
                                         struct slice id, struct lock_spec_list *specs)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    buf_varint(&key, index->name.len);
    buf_slice(&key, index->name);
    buf_slice(&key, id);
    struct named_document *document = map_get(named, buf_as_slice(&key));
    if (document == NULL) {
        document = arena_zalloc(&core->arena, sizeof *document);
        /* one more than others may be known, since the type that is named may be among them */
        document->known = count_known(core, index->name, id, TYPES_LOCKED_MAX + mapping_type_count(index->mapping) + 1);
        specs->work += WORK_LOCK * (uint64_t)document->known;
        map_put(named, buf_as_slice(&key), document);
    }
    buf_deinit(&key);
    return document;
}

/*
 * Checks that a LOCK may name a document by a type: unless `owner` has that lock, the lock table may know so many other
 * types of it more than the index has, and the request may name it by so many that the index does not have. They are
 * not summed, and a lock that it has does not count: after a wait the table has those of the request itself.
 * `named`: documents, to struct named_document. Returns: 0; 1, refused.
 */
static int check_type(struct core *core, const struct catalog_index *index, const struct lock_target *target,
                      const struct lock_owner *owner, struct map *named, struct lock_spec_list *specs,
                      struct arena *arena, struct problem *ret_problem)
{
    const struct lock_table *locks = &core->owners->locks;
    const struct lock_spec held = {{index->name, SLICE_NONE, target->type, target->id}, LOCK_S};
    const size_t most = TYPES_LOCKED_MAX + mapping_type_count(index->mapping);
    if (lock_table_holds(locks, owner, &held))
        return 0;
    struct named_document *document = find_named(core, named, index, target->id, specs);
    document->missing += is_of_no_type(core, index, target->type);
    if (document->missing > TYPES_LOCKED_MAX)
        return refuse_types(index->name, target->id, arena, ret_problem);
    if (document->known <= most)
        return 0;
    const struct resource *home = resource_index(&locks->resources, index->name);
    INSIST(home != NULL); /* it knows types */
    size_t self = resource_document(&locks->resources, home, target->type, target->id) != NULL;
    return document->known - self <= most ? 0 : refuse_types(index->name, target->id, arena, ret_problem);
}

/* Adds a document at its committed path, also if the asking transaction has moved it. */
static int add_document(struct core *core, struct slice index, struct slice type, struct slice id, enum lock_mode mode,
                        bool aside, struct lock_spec_list *specs)
{
    struct lock_spec spec = {{index, SLICE_NONE, type, id}, mode, .auxiliary = aside};
    const struct catalog_index *in = catalog_index(core->catalog, index);
    uint64_t before = core->work;
    int r = write__path_of(core, NULL, index, type, id, &spec.on.path);
    if (core->command_version >= COMMAND_SINCE_LOCK_STEP)
        specs->work += reading_work(core, before);
    else
        specs->work += in != NULL && mapping_path_field(in->mapping) != NULL ? 2 * WORK_READ : 0;
    if (r == 0)
        lock_specs__add(core, specs, &spec);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Adds a document of any type. With several types and a path field, each stored type is locked at
 * its own path; with one type, the resource without a type is added.
 */
static int add_every_type(struct core *core, const struct catalog_index *index, struct slice id, enum lock_mode mode,
                          struct lock_spec_list *specs)
{
    size_t count = mapping_type_count(index->mapping);
    int r = 0;
    for (size_t i = 0; i < count && count > 1 && r == 0 && mapping_path_field(index->mapping) != NULL; i++)
        r = add_document(core, index->name, arena_copy(&core->arena, mapping_type_at(index->mapping, i)->name), id,
                         mode, true, specs);
    if (r == 0 && count == 1)
        lock_specs__add(core, specs,
                        &(struct lock_spec){{index->name, SLICE_NONE, SLICE_NONE, id}, mode, .auxiliary = true});
    return r;
}

/* Adds the resources of a document that are in the lock table: all that an owner can have locked. */
static void add_known_document(struct core *core, struct slice name, struct slice type, struct slice id,
                               enum lock_mode mode, struct lock_spec_list *specs)
{
    const struct catalog_index *index = catalog_index(core->catalog, name);
    struct resource_name on = {name, SLICE_NONE, key_type(core, index, type), id};
    const struct resource_table *resources = &core->owners->locks.resources;
    const struct resource *at = resource_index(resources, name);
    lock_specs__add(core, specs, &(struct lock_spec){on, mode});
    count_levels_above(core, specs, at == NULL ? NULL : resource_document(resources, at, on.type, id));
    add_other_types(core, &on, !has_many_types(index) || is_typeless(index, type), mode, specs);
}

/*
 * Adds every resource that a document's name means. `name`: a concrete index, or one that does not
 * exist.
 */
static int add_named_document(struct core *core, struct slice name, struct slice type, struct slice id,
                              enum lock_mode mode, struct lock_spec_list *specs)
{
    const struct catalog_index *index = catalog_index(core->catalog, name);
    bool many = has_many_types(index);
    bool typeless = is_typeless(index, type);
    struct resource_name on = {name, SLICE_NONE, key_type(core, index, type), id};
    int r = add_document(core, name, on.type, id, mode, false, specs);
    if (r == 0 && many && typeless)
        r = add_every_type(core, index, id, mode, specs);
    if (r == 0)
        add_other_types(core, &on, !many || typeless, mode, specs);
    return r;
}

/* --- Validation --------------------------------------------------------------------------------------------------- */

static const char *segment_error(struct slice segment, bool literal)
{
    if (segment.len == 0)
        return "has an empty name";
    if (slice_is(segment, ".") || slice_is(segment, ".."))
        return "has the name [.] or [..], which is not a directory";
    if (literal)
        return NULL;
    if (slice_find_byte(segment, '*') < segment.len || slice_find_byte(segment, '?') < segment.len)
        return "is a pattern: lock the directory above it, which covers everything below";
    return NULL;
}

/*
 * Checks a path: "/", or names with a slash before each, and an optional slash at the end. With
 * `literal`, `*` and `?` have no special meaning.
 * Returns: the error, to follow "the path" or "it"; NULL: the path is valid.
 */
static const char *path_error(struct slice path, bool literal)
{
    if (path.len == 0 || path.data[0] != '/')
        return "does not begin with [/]";
    path = slice_from_offset(path, 1);
    while (path.len > 0) {
        size_t len = slice_find_byte(path, '/');
        const char *error = segment_error(slice_make(path.data, len), literal);
        if (error != NULL)
            return error;
        path = slice_from_offset(path, len < path.len ? len + 1 : len);
    }
    return NULL;
}

/* Checks the form of a target. Returns: 0; 1, refused with *ret_problem. */
static int check_target(const struct lock_target *target, enum lock_resolve_purpose purpose, struct arena *arena,
                        struct problem *ret_problem)
{
    bool rename = purpose == LOCK_RESOLVE_TO_RENAME;
    const char *error = NULL;
    if (target->mode != LOCK_S && target->mode != LOCK_U && target->mode != LOCK_X)
        error = "a lock's mode must be one of [shared], [update], [exclusive]";
    else if (target->index.len == 0 && (target->path.data != NULL || target->id.data != NULL))
        error = "a lock on a path or a document must name its [index]";
    else if (target->id.data != NULL && target->id.len == 0)
        error = "a document's [id] must not be empty";
    else if (target->id.len > LOCK_NAME_BYTES_MAX || target->index.len > LOCK_NAME_BYTES_MAX ||
             target->type.len > LOCK_NAME_BYTES_MAX)
        error = "the names of index, type and document are at most [512] bytes long";
    else if (target->path.len > LOCK_PATH_BYTES_MAX || !resource_path_fits(target->path))
        error = "a path is at most [65536] bytes long and [4096] levels deep";
    if (error != NULL)
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "%s", error);
    else if (target->path.data != NULL && (error = path_error(target->path, rename)) != NULL)
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                    rename ? "[%.*s] cannot be renamed, or be a new name: the path %s"
                           : "a lock on [%.*s] would guard nothing: the path %s",
                    SLICE_ARG(target->path), error);
    return error != NULL;
}

/* Refuses a directory in an index without a path field. Returns: as check_target(). */
static int check_directory(const struct lock_target *target, const struct catalog_index *index, struct arena *arena,
                           struct problem *ret_problem)
{
    if (target->path.data == NULL || index == NULL || mapping_path_field(index->mapping) != NULL)
        return 0;
    problem_set(
        ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
        "a lock on [%.*s] would guard nothing: [%.*s] has no directories, since its mapping has no path field. Add "
        "a field such as [path] of type [path], or of type [text] with an analyzer whose tokenizer is "
        "[path_hierarchy], or lock documents by their [id], or the index",
        SLICE_ARG(target->path), SLICE_ARG(index->name));
    return 1;
}

/* --- Indices ------------------------------------------------------------------------------------------------------ */

/* Returns: the write index of an alias, or its only one; NULL: neither. */
static const struct catalog_index *aliased_index(const struct core *core, struct slice alias)
{
    const struct alias_use *uses;
    size_t count = catalog__alias_uses(core->catalog, alias, &uses);
    const struct alias_use *use = count == 1 ? uses : catalog__write_use(uses, count);
    return use == NULL ? NULL : catalog_index(core->catalog, use->index);
}

/*
 * Finds the index of a name or alias. A name that is neither is locked as a name, since an index of
 * that name may be created: *ret_index is NULL then. Patterns and lists are refused; a lock on
 * their literal text would block no other request.
 * Returns: 0; else refused with *ret_problem.
 */
static int find_index(struct core *core, struct slice name, struct arena *arena, const struct catalog_index **ret_index,
                      struct problem *ret_problem)
{
    *ret_index = catalog_index(core->catalog, name);
    if (*ret_index != NULL)
        return 0;
    if (!catalog_has_alias(core->catalog, name))
        return catalog_check_index_name(name, DIALECT_7, arena, ret_problem);
    *ret_index = aliased_index(core, name);
    return *ret_index != NULL ? 0
                              : catalog_find(core->catalog, name, true, DIALECT_7, arena, ret_index, NULL, ret_problem);
}

bool lock_resolve__is_missing(const struct core *core, struct slice name)
{
    return name.len > 0 && catalog_index(core->catalog, name) == NULL && !catalog_has_alias(core->catalog, name);
}

/* --- Lock requests ------------------------------------------------------------------------------------------------ */

/* Checks the form of a target, and finds its index: NULL: none. Returns: as check_target(). */
static int find_target(struct core *core, const struct lock_target *target, enum lock_resolve_purpose purpose,
                       struct arena *arena, const struct catalog_index **ret_index, struct problem *ret_problem)
{
    *ret_index = NULL;
    if (check_target(target, purpose, arena, ret_problem) != 0)
        return 1;
    if (target->index.len > 0 && find_index(core, target->index, arena, ret_index, ret_problem) != 0)
        return 1;
    if (purpose == LOCK_RESOLVE_TO_LOCK && check_directory(target, *ret_index, arena, ret_problem) != 0)
        return 1;
    return 0;
}

/* `owner`, `named`, `specs`: as of check_type(). */
static int resolve_target(struct core *core, const struct lock_target *target, enum lock_resolve_purpose purpose,
                          const struct lock_owner *owner, struct map *named, struct arena *arena,
                          struct lock_spec_list *specs, struct problem *ret_problem)
{
    const struct catalog_index *index;
    if (find_target(core, target, purpose, arena, &index, ret_problem) != 0)
        return 1;
    struct slice name = index != NULL ? arena_copy(&core->arena, index->name) : target->index;
    if (purpose == LOCK_RESOLVE_TO_LOCK && target->id.data != NULL && names_type(core, index, target->type) &&
        check_type(core, index, target, owner, named, specs, arena, ret_problem) != 0)
        return 1;
    if (index != NULL && !slice_equal(index->name, target->index))
        add_name(core, specs, RESOURCE_SPACE_NAMES, target->index, LOCK_S);
    if (target->id.data == NULL)
        lock_specs__add(core, specs, &(struct lock_spec){{.index = name, .path = target->path}, target->mode});
    else if (purpose == LOCK_RESOLVE_TO_UNLOCK && core->command_version >= COMMAND_SINCE_PLAIN_LOCKS)
        add_known_document(core, name, target->type, target->id, target->mode, specs);
    else
        return add_named_document(core, name, target->type, target->id, target->mode, specs);
    return 0;
}

/* Returns: as check_target(). */
static int check_count(size_t count, struct arena *arena, struct problem *ret_problem)
{
    if (count <= LOCK_TARGETS_MAX)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "a request names at most [%d] locks", LOCK_TARGETS_MAX);
    return 1;
}

static void refuse_check(const struct core *core, size_t count, struct arena *arena, struct problem *ret_problem)
{
    if (core->command_version < COMMAND_SINCE_LOCK_STEP) {
        lock_specs__refuse(core, count, arena, ret_problem);
        return;
    }
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                "the first [%zu] names of the request take more work than one request may, since others would wait for "
                "it: divide the request, or release all locks of the session by a request without [locks]",
                count);
}

/* Counts the check of one target. Returns: its work. */
static uint64_t count_check(struct core *core, const struct lock_target *target, size_t levels)
{
    const struct resource_name name = {target->index, target->path, target->type, target->id};
    uint64_t work = WORK_LOCK + WORK_LOCK * (uint64_t)levels / 4;
    if (core->command_version >= COMMAND_SINCE_LOCK_STEP)
        work += name_bytes(&name) / (2 * WORK_NAME_BYTES); /* they are not hashed */
    core__work(core, work);
    return work;
}

int lock_resolve__check_unlocked(struct core *core, const struct lock_target *targets, size_t count,
                                 struct arena *arena, uint64_t *ret_work, struct problem *ret_problem)
{
    REQUIRE(core->open && (count == 0 || targets != NULL));
    const struct catalog_index *index;
    struct lock_spec_list checked = {.work_max = work_max(core, LOCK_RESOLVE_TO_UNLOCK)}; /* its work alone */
    bool by_levels = core->command_version < COMMAND_SINCE_LOCK_STEP;
    uint64_t work = 0;
    int r = check_count(count, arena, ret_problem);
    for (size_t i = 0; r == 0 && i < count; i++) {
        size_t levels = lock_levels__of(targets[i].path);
        work += count_check(core, &targets[i], levels);
        count_levels(core, &checked, levels);
        r = find_target(core, &targets[i], LOCK_RESOLVE_TO_UNLOCK, arena, &index, ret_problem);
        if (r == 0 && (by_levels ? lock_specs__exceed(&checked) : work > UNLOCK_CHECK_WORK_MAX)) {
            refuse_check(core, i + 1, arena, ret_problem);
            r = 1;
        }
    }
    *ret_work = work;
    return r;
}

int lock_resolve__locks(struct core *core, const struct lock_target *targets, size_t count,
                        enum lock_resolve_purpose purpose, const struct lock_owner *owner, struct arena *arena,
                        struct lock_spec_list *ret_specs, struct problem *ret_problem)
{
    REQUIRE(arena != NULL && ret_problem != NULL && (owner != NULL || purpose != LOCK_RESOLVE_TO_LOCK));
    struct lock_spec_list specs = {.work_max = work_max(core, purpose)};
    struct map named = MAP_INIT;
    int r = check_count(count, arena, ret_problem);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = resolve_target(core, &targets[i], purpose, owner, &named, arena, &specs, ret_problem);
        if (r == 0 && lock_specs__exceed(&specs)) {
            lock_specs__refuse(core, i + 1, arena, ret_problem);
            r = 1;
        }
    }
    map_deinit(&named);
    if (r == 0 && purpose == LOCK_RESOLVE_TO_LOCK && lock_specs__exceed_levels(core, &specs)) {
        lock_specs__refuse(core, count, arena, ret_problem);
        r = 1;
    }
    *ret_specs = specs;
    return r < 0 ? tl_trace(r) : r;
}

/* What an owner holds of names and indices, oldest first, in the core's arena. */
struct held_names {
    struct resource_name *names;
    const struct resource **indices;
    size_t name_count, name_capacity;
    size_t index_count, index_capacity;
};

/*
 * Whether an owner has a lock in any index of an alias: looks at those of the alias, or at those in which the owner has
 * any, whichever are fewer. An alias may have thousands of indices, and the owner locks by many of them.
 */
static bool alias_in_use(struct core *core, const struct lock_owner *owner, const struct held_names *held,
                         struct slice alias)
{
    const struct alias_use *uses;
    size_t count = catalog__alias_uses(core->catalog, alias, &uses);
    for (size_t i = 0; i < count && count <= held->index_count; i++) {
        core__work(core, WORK_LOCK);
        if (lock_table_has_holds_in_index(&core->owners->locks, owner, uses[i].index))
            return true;
    }
    for (size_t i = 0; i < held->index_count && count > held->index_count; i++) {
        const struct resource *resource = held->indices[i];
        const struct catalog_index *index =
            catalog_index(core->catalog, slice_make(resource->name, resource->name_len));
        core__work(core, WORK_LOCK);
        if (index != NULL && catalog_index_alias(index, alias) != NULL)
            return true;
    }
    return false;
}

static struct held_names names_held(struct core *core, const struct lock_owner *owner)
{
    struct held_names held = {0};
    struct arena *arena = &core->arena;
    if (owner->auxiliary_count == 0)
        return held;
    list_for_each(link, &owner->holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
        core__work(core, WORK_LOCK);
        if (hold->resource->kind == RESOURCE_INDEX) {
            held.indices =
                arena_grow(arena, held.indices, held.index_count, &held.index_capacity, sizeof *held.indices);
            held.indices[held.index_count++] = hold->resource;
        } else if (hold->resource->kind == RESOURCE_NAME && hold->mode != LOCK_NONE) {
            held.names = arena_grow(arena, held.names, held.name_count, &held.name_capacity, sizeof *held.names);
            struct resource_name *name = &held.names[held.name_count++];
            *name = resource_name(hold->resource, arena);
            name->index = arena_copy(arena, name->index);
        }
    }
    return held;
}

/* The locks on aliases are released, and none in an index, so the resources of these stay. */
void lock_resolve__release_unused_aliases(struct core *core, struct lock_owner *owner)
{
    REQUIRE(core->open && owner != NULL);
    const struct held_names held = names_held(core, owner);
    for (size_t i = 0; i < held.name_count; i++)
        if (!alias_in_use(core, owner, &held, held.names[i].index))
            lock_release(&core->owners->locks, owner, &held.names[i]);
}

/* --- Reads of transactions ---------------------------------------------------------------------------------------- */

static void add_index(struct core *core, struct slice name, enum lock_mode mode, struct lock_spec_list *specs)
{
    lock_specs__add(core, specs, &(struct lock_spec){{.index = arena_copy(&core->arena, name)}, mode});
}

/* Whether the names of one read are too many for a request already, which is refused then, however many are left. */
static bool names_exceed(const struct core *core, const struct lock_spec_list *specs)
{
    return core->command_version >= COMMAND_SINCE_NAMES_BOUNDED && lock_specs__exceed(specs);
}

/*
 * Adds a name without wildcards: an index, open or closed; an alias with all of its indices; or a
 * missing name. A missing name is also locked as an index, which the transaction itself may create.
 */
static void add_concrete(struct core *core, struct slice name, enum lock_mode mode, struct lock_spec_list *specs)
{
    const struct alias_use *uses;
    if (catalog_index(core->catalog, name) != NULL) {
        add_index(core, name, mode, specs);
        return;
    }
    size_t count = catalog__alias_uses(core->catalog, name, &uses);
    add_name(core, specs, RESOURCE_SPACE_NAMES, name, LOCK_S);
    if (count == 0)
        add_index(core, name, mode, specs);
    for (size_t i = 0; i < count && !names_exceed(core, specs); i++)
        add_index(core, uses[i].index, mode, specs);
}

/* Adds the names of an expression; a wildcard or an empty expression locks the set of all names. */
static void add_expression_names(struct core *core, struct slice left, enum lock_mode mode,
                                 struct lock_spec_list *specs)
{
    bool pattern = left.len == 0;
    while (left.len > 0 && !names_exceed(core, specs)) {
        size_t len = slice_find_byte(left, ',');
        struct slice name = slice_make(left.data, len);
        if (slice_is(name, "_all") || slice_find_byte(name, '*') < name.len)
            pattern = true;
        else if (name.len > 0 && name.len <= LOCK_NAME_BYTES_MAX)
            add_concrete(core, name, mode, specs);
        left = slice_from_offset(left, len < left.len ? len + 1 : len);
    }
    if (pattern)
        add_name(core, specs, RESOURCE_SPACE_NAMES, SLICE_NONE, LOCK_S);
}

/*
 * Adds a document that is read or written by a type that its index does not have, as the one of no type: that covers
 * the type when it is created, since it is named by both then. A LOCK may have named the type itself. A transaction
 * also waits for all other types, whose owners have to wait for it from then on.
 */
static void add_document_of_no_type(struct core *core, const struct resource_name *named, bool in_txn,
                                    enum lock_mode mode, struct lock_spec_list *specs)
{
    const struct resource_table *resources = &core->owners->locks.resources;
    const struct resource *home = resource_index(resources, named->index);
    const struct resource_name name = {named->index, SLICE_NONE, SLICE_NONE, named->id};
    const struct resource *known =
        home == NULL || in_txn ? NULL : resource_document(resources, home, named->type, named->id);
    lock_specs__add(core, specs, &(struct lock_spec){name, mode});
    if (in_txn)
        add_other_types(core, &name, true, mode, specs);
    if (known == NULL)
        return;
    lock_specs__add(core, specs,
                    &(struct lock_spec){{named->index, SLICE_NONE, named->type, named->id}, mode, .auxiliary = true});
    count_levels_above(core, specs, known);
}

static int add_typed_read(struct core *core, struct slice index, const struct lock_target *target,
                          struct lock_spec_list *specs)
{
    if (!is_of_no_type(core, catalog_index(core->catalog, index), target->type))
        return add_named_document(core, index, target->type, target->id, target->mode, specs);
    const struct resource_name name = {index, SLICE_NONE, target->type, target->id};
    add_document_of_no_type(core, &name, true, target->mode, specs);
    return 0;
}

/* Adds a document that is read, by a name or an alias of its index. */
static int add_read_document(struct core *core, const struct lock_target *target, struct lock_spec_list *specs)
{
    const struct alias_use *uses;
    size_t type_max = core->command_version < COMMAND_SINCE_LOCKABLE_TYPES ? UINT16_MAX : LOCK_NAME_BYTES_MAX;
    if (target->id.len > LOCK_NAME_BYTES_MAX || target->index.len > LOCK_NAME_BYTES_MAX || target->type.len > type_max)
        return 0; /* such a document cannot exist */
    if (catalog_index(core->catalog, target->index) != NULL)
        return add_typed_read(core, target->index, target, specs);
    size_t count = catalog__alias_uses(core->catalog, target->index, &uses);
    add_name(core, specs, RESOURCE_SPACE_NAMES, target->index, LOCK_S);
    if (count > 1)
        return 0;
    struct slice index = count == 0 ? target->index : arena_copy(&core->arena, uses[0].index);
    return add_typed_read(core, index, target, specs);
}

/* Counts the parsing of an alias's filter. */
static void count_filter(struct core *core, struct slice filter, struct lock_spec_list *specs)
{
    if (core->command_version < COMMAND_SINCE_NAMES_BOUNDED)
        return;
    core__work(core, WORK_LOCK + filter.len / WORK_BYTES);
    specs->work += WORK_LOCK + filter.len / WORK_BYTES;
}

/* Adds the documents and scripts to which the filters of the matching aliases refer. */
static int add_filter_references(struct core *core, const struct catalog_target *found, struct lock_spec_list *specs)
{
    struct json_references references = {0};
    int r = 0;
    for (size_t i = 0; i < found->alias_count && !names_exceed(core, specs); i++) {
        struct json_doc filter;
        if (found->aliases[i]->filter.data == NULL)
            continue;
        count_filter(core, found->aliases[i]->filter, specs);
        if (json_parse_stored(&core->arena, found->aliases[i]->filter, &filter) == 0)
            json_references(filter.root, &core->arena, &references);
    }
    for (size_t i = 0; i < references.count && r == 0 && !names_exceed(core, specs); i++) {
        const struct json_reference *reference = &references.items[i];
        if (reference->script)
            add_name(core, specs, RESOURCE_SPACE_SCRIPTS, reference->id, LOCK_S);
        else
            r = add_read_document(core,
                                  &(struct lock_target){LOCK_S, reference->index, SLICE_NONE, reference->type,
                                                        reference->id, NULL, false},
                                  specs);
    }
    return r;
}

/*
 * Finds the indices of an expression. The comparisons count towards the limit of the request. Returns: false: there
 * is no index, or the limit is exceeded.
 */
static bool find_targets(struct core *core, const struct lock_target *target, enum dialect dialect,
                         struct lock_spec_list *specs, struct catalog_target **ret_found, size_t *ret_count)
{
    bool bounded = core->command_version >= COMMAND_SINCE_NAMES_BOUNDED;
    struct problem problem; /* the read itself reports it; the outcome cannot change while the names are locked */
    if (names_exceed(core, specs))
        return false;
    uint64_t most = bounded ? LOOKS_PER_WORK * (specs->work_max - specs->work) + 1 : UINT64_MAX, left = most;
    enum catalog_weighing weighing =
        core->command_version >= COMMAND_SINCE_PATTERNS_WEIGHED ? CATALOG_WEIGH_STEP : CATALOG_WEIGH_NONE;
    struct catalog_options options = *target->expression;
    options.skip_nameless = true;
    bool found = catalog_resolve_within(core->catalog, target->index, &options, dialect, weighing, &core->arena, &left,
                                        ret_found, ret_count, &problem) == 0;
    if (!bounded)
        return found;
    core__work(core, (most - left) / LOOKS_PER_WORK);
    specs->work += (most - left) / LOOKS_PER_WORK + (left == 0);
    return found;
}

static int add_expression(struct core *core, const struct lock_target *target, enum dialect dialect,
                          struct lock_spec_list *specs)
{
    struct catalog_target *found;
    size_t count = 0;
    int r = 0;
    add_expression_names(core, target->index, target->mode, specs);
    if (!find_targets(core, target, dialect, specs, &found, &count))
        return 0;
    for (size_t i = 0; i < count && r == 0 && !names_exceed(core, specs); i++) {
        add_index(core, found[i].index->name, target->mode, specs);
        r = add_filter_references(core, &found[i], specs);
    }
    return r;
}

static void add_read_directory(struct core *core, const struct lock_target *target, struct lock_spec_list *specs)
{
    if (lock_resolve__is_missing(core, target->index))
        add_name(core, specs, RESOURCE_SPACE_NAMES, target->index, LOCK_S);
    lock_specs__add(core, specs, &(struct lock_spec){{.index = target->index, .path = target->path}, target->mode});
}

static int add_read(struct core *core, const struct lock_target *target, enum dialect dialect,
                    struct lock_spec_list *specs)
{
    if (target->script)
        add_name(core, specs, RESOURCE_SPACE_SCRIPTS, target->index, LOCK_S);
    else if (target->expression != NULL)
        return add_expression(core, target, dialect, specs);
    else if (target->id.data != NULL)
        return add_read_document(core, target, specs);
    else if (target->index.len == 0)
        lock_specs__add(core, specs, &(struct lock_spec){.mode = target->mode});
    else if (target->path.data != NULL)
        add_read_directory(core, target, specs);
    else
        add_concrete(core, target->index, target->mode, specs);
    return 0;
}

/* Whether the locks of a read are too many for one command. No directory is taken to be shared. */
static bool exceed_command(const struct core *core, const struct lock_spec_list *specs)
{
    return core->command_version >= COMMAND_SINCE_LOCK_STEP &&
           specs->work + work_of_levels(core, specs->levels) > core->reads_work_max;
}

int lock_resolve__reads(struct core *core, const struct lock_target *targets, size_t count, enum dialect dialect,
                        const struct txn *txn, size_t *ret_done, struct lock_spec_list *ret_specs)
{
    REQUIRE(core->open && txn != NULL);
    struct lock_spec_list specs = {.work_max = work_max(core, LOCK_RESOLVE_TO_LOCK)}, before;
    int r = 0;
    *ret_done = 0;
    for (size_t i = 0; r == 0 && i < count && !lock_specs__exceed(&specs); i++) {
        before = specs;
        r = add_read(core, &targets[i], dialect, &specs);
        if (r == 0 && i > 0 && exceed_command(core, &specs)) {
            specs.count = before.count;
            specs.work = before.work;
            specs.levels = before.levels;
            break;
        }
        *ret_done = i + 1;
    }
    lock_resolve__drop_held(core, &txn->owner.locks, &specs);
    *ret_specs = specs;
    return r < 0 ? tl_trace(r) : 0;
}

/* --- Writes ------------------------------------------------------------------------------------------------------- */

/*
 * Adds X on the name of an alias that is added or removed: its meaning changes, and locks taken by
 * that name would be on other resources. A missing name is also locked as an index.
 */
static void add_alias_change(struct core *core, struct slice alias, struct lock_spec_list *specs)
{
    bool all = slice_is(alias, "_all") || slice_find_byte(alias, '*') < alias.len;
    if (alias.len == 0 || alias.len > LOCK_NAME_BYTES_MAX)
        return;
    add_name(core, specs, RESOURCE_SPACE_NAMES, all ? SLICE_NONE : alias, LOCK_X);
    if (!all && lock_resolve__is_missing(core, alias))
        lock_specs__add(core, specs, &(struct lock_spec){{.index = alias}, LOCK_X, .auxiliary = true});
}

static void add_index_creation(struct core *core, struct slice name, const struct index_plan *plan,
                               struct lock_spec_list *specs)
{
    if (!lock_resolve__is_missing(core, name))
        return; /* the handler refuses it, or it was created meanwhile */
    add_name(core, specs, RESOURCE_SPACE_NAMES, name, LOCK_X);
    if (!plan->tree && lock_table_has_directories(&core->owners->locks, name))
        lock_specs__add(core, specs, &(struct lock_spec){{.index = name}, LOCK_X});
    for (size_t i = 0; i < plan->alias_count; i++)
        add_alias_change(core, plan->aliases[i], specs);
}

struct resource_name lock_resolve__target_document(struct core *core, const struct write_target *target)
{
    const struct catalog_index *index = catalog_index(core->catalog, target->index);
    return (struct resource_name){target->index, target->committed_path, key_type(core, index, target->type),
                                  target->id};
}

uint64_t lock_resolve__types_work(struct core *core, const struct write_target *target, bool in_txn)
{
    const struct resource_table *resources = &core->owners->locks.resources;
    const struct catalog_index *index = catalog_index(core->catalog, target->index);
    const struct resource *home = resource_index(resources, target->index);
    uint64_t count = 0;
    bool asks = !has_many_types(index) || (in_txn && is_of_no_type(core, index, target->type));
    if (core->command_version < COMMAND_SINCE_TYPES_BOUNDED || home == NULL || resources->id_count == 0)
        return 0;
    if (!asks && core->command_version >= COMMAND_SINCE_TYPES_FOUND)
        return 0; /* it looks at one: add_no_type() */
    const struct resource *at = resource_with_id(resources, home, target->id, NULL);
    for (; at != NULL; at = resource_with_id(resources, home, target->id, at))
        count += resource_type(at).len > 0;
    core__work(core, WORK_LOCK * count);
    return count * (asks ? WORK_LOCK_ASKED + WORK_LOCK : WORK_LOCK);
}

/*
 * Adds S on an index that a transaction creates after it has locked the set of all names: its
 * searches by pattern have seen the index as empty, and other writers must not add documents to it.
 */
static void add_created_index(struct core *core, const struct txn *txn, struct slice index,
                              struct lock_spec_list *specs)
{
    const struct lock_spec all = {{.space = RESOURCE_SPACE_NAMES}, LOCK_S};
    if (lock_table_holds(&core->owners->locks, &txn->owner.locks, &all))
        lock_specs__add(core, specs, &(struct lock_spec){{.index = index}, LOCK_S, .auxiliary = true});
}

void lock_resolve__write(struct core *core, const struct write_item *item, const struct write_target *target,
                         const struct txn *txn, struct lock_spec_list *specs)
{
    REQUIRE(core->open && (txn == NULL || MAGIC_VALID(txn, TXN_MAGIC)));
    const struct catalog_index *index = catalog_index(core->catalog, target->index);
    struct resource_name name = lock_resolve__target_document(core, target);
    bool no_type = is_of_no_type(core, index, target->type);
    if (no_type)
        add_document_of_no_type(core, &name, txn != NULL, LOCK_X, specs);
    else
        lock_specs__add(core, specs, &(struct lock_spec){name, LOCK_X});
    if (target->new_path.data != NULL && !slice_equal(target->new_path, target->old_path))
        lock_specs__add(core, specs,
                        &(struct lock_spec){{.index = target->index, .path = target->new_path}, LOCK_X, true});
    if (!no_type)
        add_other_types(core, &name, !has_many_types(index), LOCK_X, specs);
    if (index == NULL && write__creates_index(item)) {
        struct index_plan plan = index__plan_auto(core, target->index, item->type, item->dialect);
        add_index_creation(core, target->index, &plan, specs);
        if (txn != NULL)
            add_created_index(core, txn, target->index, specs);
    }
    if (txn == NULL)
        return;
    if (!slice_equal(item->index, target->index))
        add_name(core, specs, RESOURCE_SPACE_NAMES, item->index, LOCK_S);
    if (item->update != NULL && item->update->script_id.len > 0)
        add_name(core, specs, RESOURCE_SPACE_SCRIPTS, item->update->script_id, LOCK_S);
}

bool lock_resolve__known_document(struct core *core, const struct resource_name *name, struct resource_name *ret_name)
{
    REQUIRE(core->open && name->id.data != NULL);
    const struct lock_table *locks = &core->owners->locks;
    const struct catalog_index *index = catalog_index(core->catalog, name->index);
    const struct resource *index_resource = resource_index(&locks->resources, name->index);
    struct resource_name at = *name;
    if (index_resource == NULL)
        return false;
    at.type = key_type(core, index, name->type);
    if (has_many_types(index) && resource_document(&locks->resources, index_resource, at.type, at.id) == NULL)
        at.type = SLICE_NONE;
    *ret_name = at;
    return true;
}

void lock_resolve__move_document(struct core *core, const struct resource_name *name, struct slice path)
{
    REQUIRE(core->open && name->id.data != NULL);
    struct resource_name at;
    if (lock_resolve__known_document(core, name, &at))
        lock_table_move_document(&core->owners->locks, &at, path);
}

void lock_resolve__move_documents(struct core *core, const struct resource_name *names, size_t count)
{
    struct lock_table *locks = &core->owners->locks;
    REQUIRE(core->open && locks->grants_suspended > 0);
    uint64_t before = core_step_work(core);
    if (lock_table_move_documents(locks, names, count) > RELOCATED_MAX)
        core__note_indivisible(core, core_step_work(core) - before); /* README.md, "The work of a step" */
}

/*
 * Moves documents in the lock table to their current paths; not `is_read`: their index has no path field now, so that
 * their paths are known without a look. The moves are atomic: no request is granted or chosen as a victim while only
 * some documents have moved.
 */
static int relocate_all(struct core *core, const struct resource_name *names, size_t count, bool is_read)
{
    REQUIRE(core->open);
    struct lock_table *locks = &core->owners->locks;
    uint64_t before = core_step_work(core);
    struct resource_name *places = arena_alloc(&core->arena, (count + 1) * sizeof *places);
    struct tree_paths paths;
    int r = 0;
    core__work(core, (is_read ? WORK_READ : WORK_LOCK) * (uint64_t)count);
    cost_charge_work(core, (WORK_READ + WORK_LOCK_ASKED) * (uint64_t)count);
    tree_paths_init(&paths);
    for (size_t i = 0; i < count && r == 0; i++) {
        places[i] = names[i];
        r = write__path_near(core, NULL, &paths, names[i].index, names[i].type, names[i].id, &places[i].path);
    }
    tree_paths_deinit(&paths);
    if (r < 0)
        return tl_trace(r);
    lock_table_suspend_grants(locks);
    size_t asked = lock_table_relocate_documents(locks, places, count);
    lock_table_resume_grants(locks);
    /* most are requested only, or the index is gone: README.md, "The work of a step" */
    if (count > RELOCATED_MAX || asked > RELOCATED_MAX)
        core__note_indivisible(core, core_step_work(core) - before);
    return 0;
}

size_t lock_resolve__count_renamed(const struct core *core, struct slice index, struct slice from, struct slice to)
{
    size_t before = lock_levels__of(from), after = lock_levels__of(to);
    return core->command_version < COMMAND_SINCE_MOVES_BOUNDED
               ? 0
               : lock_table_held_below(&core->owners->locks, index, from, before > after ? before : after,
                                       RELOCATED_MAX);
}

int lock_resolve__count_placed(struct core *core, struct slice index, size_t *ret_count)
{
    REQUIRE(core->open);
    size_t locks, levels = 0;
    *ret_count = 0;
    if (core->command_version < COMMAND_SINCE_MOVES_BOUNDED)
        return 0;
    const struct resource_name *names =
        lock_table_held_documents(&core->owners->locks, index, RELOCATED_MAX + 1, &core->arena, &locks);
    *ret_count = locks;
    if (locks > RELOCATED_MAX)
        return 0;
    for (size_t i = 0; i < locks && *ret_count <= RELOCATED_MAX; i++) {
        if (i == 0 || names[i].id.data != names[i - 1].id.data) { /* another document */
            struct slice path;
            core__work(core, WORK_READ);
            int r = write__path_of(core, NULL, names[i].index, names[i].type, names[i].id, &path);
            if (r < 0)
                return tl_trace(r);
            levels = lock_levels__of(path);
        }
        *ret_count += LOCK_MOVE_COUNT(levels) - 1; /* it counts once already */
    }
    return 0;
}

int lock_resolve__relocate_documents(struct core *core, struct slice index)
{
    REQUIRE(core->open);
    size_t count;
    if (lock_table_is_idle(&core->owners->locks))
        return 0;
    const struct resource_name *names = lock_table_documents(&core->owners->locks, index, &core->arena, &count);
    const struct catalog_index *now = catalog_index(core->catalog, index);
    bool has_path_field = now != NULL && mapping_path_field(now->mapping) != NULL;
    return relocate_all(core, names, count, has_path_field || core->command_version < COMMAND_SINCE_MOVES_BOUNDED);
}

int lock_resolve__relocate_renamed(struct core *core, struct slice index, struct slice from)
{
    REQUIRE(core->open && from.len > 0);
    size_t count;
    if (lock_table_is_idle(&core->owners->locks))
        return 0;
    const struct resource_name *names =
        lock_table_documents_below(&core->owners->locks, index, &from, 1, NULL, &core->arena, &count);
    return relocate_all(core, names, count, true);
}

struct lock_spec_list lock_resolve__document(struct core *core, const struct resource_name *document)
{
    REQUIRE(document->id.data != NULL);
    struct lock_spec_list specs = {0};
    const struct catalog_index *index = catalog_index(core->catalog, document->index);
    struct resource_name name = *document;
    name.type = key_type(core, index, name.type);
    lock_specs__add(core, &specs, &(struct lock_spec){name, LOCK_X});
    add_other_types(core, &name, !has_many_types(index), LOCK_X, &specs);
    return specs;
}

/* --- DDL ---------------------------------------------------------------------------------------------------------- */

/*
 * Adds X on an index if `whole`, else an insert intention on it. The handler refuses an empty name.
 */
static void add_index_change(struct core *core, struct slice index, bool whole, struct lock_spec_list *specs)
{
    if (index.len > 0)
        lock_specs__add(core, specs, &(struct lock_spec){{.index = index}, LOCK_X, !whole});
}

/* Adds the aliases that are removed with an index. */
static void add_alias_removals(struct core *core, struct slice name, struct lock_spec_list *specs)
{
    const struct catalog_index *index = catalog_index(core->catalog, name);
    for (size_t i = 0; index != NULL && i < index->alias_count && !names_exceed(core, specs); i++)
        add_alias_change(core, arena_copy(&core->arena, index->aliases[i].name), specs);
}

static void resolve_aliases(struct core *core, const struct aliases_command *aliases, struct lock_spec_list *specs)
{
    for (size_t i = 0; i < aliases->action_count && !names_exceed(core, specs); i++) {
        const struct alias_action *action = &aliases->actions[i];
        bool removal = action->op == ALIAS_REMOVE_INDEX;
        add_index_change(core, action->index, removal, specs);
        if (!removal) {
            add_alias_change(core, action->alias, specs);
            continue;
        }
        add_name(core, specs, RESOURCE_SPACE_NAMES, action->index, LOCK_X);
        add_alias_removals(core, action->index, specs);
    }
}

void lock_resolve__ddl(struct core *core, const struct command *command, struct lock_spec_list *specs)
{
    REQUIRE(core->open && command_is(command->type, COMMAND_DDL));
    struct slice name = command->index.name;
    /* Twice as much as of a request for locks: those on names are dropped unless another owner holds them. */
    specs->work_max = 2 * work_max(core, LOCK_RESOLVE_TO_LOCK);
    if (command->type == COMMAND_SCRIPT_PUT || command->type == COMMAND_SCRIPT_DELETE) {
        if (command->object.name.len > 0)
            add_name(core, specs, RESOURCE_SPACE_SCRIPTS, command->object.name, LOCK_X);
        return;
    }
    if (command->type == COMMAND_ALIASES_UPDATE) {
        resolve_aliases(core, &command->aliases, specs);
        return;
    }
    add_index_change(core, name, command_is(command->type, COMMAND_WHOLE_INDEX) || index__blocks_writes(core, command),
                     specs);
    if (name.len == 0 || command->type == COMMAND_MAPPING_PUT)
        return;
    if (command->type == COMMAND_INDEX_CREATE) {
        struct index_plan plan = index__plan(core, command);
        add_index_creation(core, name, &plan, specs);
    } else {
        add_name(core, specs, RESOURCE_SPACE_NAMES, name, LOCK_X);
    }
    if (command->type == COMMAND_INDEX_DELETE)
        add_alias_removals(core, name, specs);
}

bool lock_resolve__holds_name(const struct core *core, const struct lock_owner *owner, const struct lock_spec *name)
{
    REQUIRE(owner != NULL && name->on.space != RESOURCE_SPACE_TREE && name->mode != LOCK_NONE);
    const struct lock_table *locks = &core->owners->locks;
    const struct lock_spec all = {{.space = name->on.space}, name->mode};
    if (core->command_version < COMMAND_SINCE_NAMES_AGAIN)
        return lock_table_holds(locks, owner, name) || lock_table_holds(locks, owner, &all);
    return lock_table_keeps_name(locks, owner, name) || lock_table_keeps_name(locks, owner, &all);
}

void lock_resolve__drop_held(struct core *core, const struct lock_owner *owner, struct lock_spec_list *specs)
{
    REQUIRE(owner != NULL);
    size_t kept = 0;
    for (size_t i = 0; i < specs->count; i++)
        if (specs->items[i].on.space == RESOURCE_SPACE_TREE || !lock_resolve__holds_name(core, owner, &specs->items[i]))
            specs->items[kept++] = specs->items[i];
    specs->count = kept;
}

/* --- Unheld names ------------------------------------------------------------------------------------------------- */

void lock_resolve__drop_unheld(struct core *core, const struct lock_owner *owner, const struct session *session,
                               struct lock_spec_list *specs)
{
    REQUIRE(core->open && (session == NULL || MAGIC_VALID(session, SESSION_MAGIC)));
    const struct lock_owner *session_owner = session == NULL ? NULL : &session->owner.locks;
    size_t kept = 0;
    for (size_t i = 0; i < specs->count; i++)
        if (specs->items[i].on.space == RESOURCE_SPACE_TREE ||
            lock_table_has_conflicting_hold(&core->owners->locks, owner, session_owner, &specs->items[i]))
            specs->items[kept++] = specs->items[i];
    specs->count = kept;
}

/* --- Self-conflicts ----------------------------------------------------------------------------------------------- */

bool lock_resolve__self_conflict(struct core *core, const struct session *session, const struct lock_spec_list *specs,
                                 struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(arena != NULL && ret_problem != NULL);
    struct lock_table *locks = &core->owners->locks;
    for (size_t i = 0; session != NULL && i < specs->count; i++) {
        const struct lock_owner *owner = &session->owner.locks;
        const struct lock_spec *spec = &specs->items[i];
        const struct lock_spec held = {spec->on, LOCK_S};
        bool whole =
            spec->auxiliary && spec->on.id.data == NULL && spec->on.path.data == NULL && spec->on.index.len > 0;
        bool names = spec->on.space == RESOURCE_SPACE_NAMES && spec->mode == LOCK_X;
        if (!whole || !(names ? lock_table_holds(locks, owner, &held)
                              : spec->on.space == RESOURCE_SPACE_TREE &&
                                    lock_table_has_holds_in_index(locks, owner, spec->on.index)))
            continue;
        problem_set(ret_problem, arena, PROBLEM_LOCK_CONFLICT,
                    "session [%.*s] itself holds a lock under the name [%.*s], whose meaning must not change before "
                    "that is released: release it first, or lock an index by its own name",
                    SLICE_ARG(session->id), SLICE_ARG(spec->on.index));
        return true;
    }
    return false;
}
