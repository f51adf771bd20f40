/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting the directories above locks; see lock_levels.h.
 *
 * A set has each directory seen so far, by a hash of its path. A path is walked down once, for the hashes of its
 * directories, and then up to the first that is in the set: all above that are, too. So a path takes time in
 * proportion to its length, and the usual one two lookups.
 *
 * 1. With a directory, the set has all above it.
 * 2. Hashes are keyed, and the paths of equal ones are compared: the count does not depend on the key of the process.
 */
#include "core/acquire/lock_levels.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/siphash.h"
#include "core/command/command.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"

/* So many positions are counted in a byte, so that the compiler compares many of them by one instruction. */
enum { COUNTED_IN_BYTE = UINT8_MAX };

/* Returns: how many names a path has, between its slashes. */
static size_t count_names(struct slice path)
{
    size_t count = path.len > 0 && path.data[0] != '/', at = 1;
    while (at < path.len) {
        size_t end = path.len - at > COUNTED_IN_BYTE ? at + COUNTED_IN_BYTE : path.len;
        uint8_t begun = 0;
        for (; at < end; at++)
            begun = (uint8_t)(begun + ((path.data[at] != '/') & (path.data[at - 1] == '/')));
        count += begun;
    }
    return count;
}

/* As a walk along the path, which takes several times as long: each lock of a request is counted. */
size_t lock_levels__of(struct slice path)
{
    if (path.data == NULL)
        return 0;
    size_t names = count_names(path);
    return 1 + (names < RESOURCE_LEVELS_MAX ? names : RESOURCE_LEVELS_MAX);
}

/* --- Commands before version 17 ----------------------------------------------------------------------------------- */

/*
 * Compares two paths level by level. Returns: as slice_compare(), with the number of shared levels.
 */
static int compare_levels(struct slice a, struct slice b, size_t *ret_common)
{
    struct resource_path x = resource_path(a), y = resource_path(b);
    struct slice left, right;
    *ret_common = 0;
    for (;;) {
        bool has_a = resource_path_next(&x, &left), has_b = resource_path_next(&y, &right);
        if (!has_a || !has_b)
            return has_a - has_b;
        int order = slice_compare(left, right);
        if (order != 0)
            return order;
        (*ret_common)++;
    }
}

/* The order of bytes, with '/' first, so that the paths in one directory are together. Returns: as slice_compare(). */
static int compare_bytes(struct slice a, struct slice b)
{
    size_t at = 0, least = a.len < b.len ? a.len : b.len;
    while (at < least && a.data[at] == b.data[at])
        at++;
    if (at == least)
        return (a.len > b.len) - (a.len < b.len);
    if (a.data[at] == '/' || b.data[at] == '/')
        return a.data[at] == '/' ? -1 : 1;
    return (unsigned char)a.data[at] < (unsigned char)b.data[at] ? -1 : 1;
}

static int compare_directories(const void *a, const void *b)
{
    const struct resource_name *x = &(*(const struct lock_spec *const *)a)->on;
    const struct resource_name *y = &(*(const struct lock_spec *const *)b)->on;
    int order = slice_compare(x->index, y->index);
    return order != 0 ? order : compare_bytes(x->path, y->path);
}

static int compare_paths(const void *a, const void *b)
{
    const struct resource_name *x = &(*(const struct lock_spec *const *)a)->on;
    const struct resource_name *y = &(*(const struct lock_spec *const *)b)->on;
    size_t common;
    int order = slice_compare(x->index, y->index);
    return order != 0 ? order : compare_levels(x->path, y->path, &common);
}

/* Returns: about how often sorting so many compares two. */
static uint64_t sort_work(size_t count)
{
    uint64_t rounds = 1;
    while (count >> rounds > 0)
        rounds++;
    return (uint64_t)count * rounds;
}

/* Paths that differ in empty segments alone may count twice. */
static size_t count_sorted(struct core *core, const struct lock_spec *specs, size_t spec_count)
{
    const struct lock_spec **sorted = arena_alloc(&core->arena, (spec_count + 1) * sizeof *sorted);
    size_t count = 0, levels = 0, common;
    for (size_t i = 0; i < spec_count; i++)
        if (specs[i].on.path.data != NULL)
            sorted[count++] = &specs[i];
    bool by_bytes = core->command_version >= COMMAND_SINCE_LEVELS_WORK;
    if (count > 1)
        qsort(sorted, count, sizeof *sorted, by_bytes ? compare_directories : compare_paths);
    core__work(core, WORK_LOCK * sort_work(count));
    for (size_t i = 0; i < count; i++) {
        const struct resource_name *name = &sorted[i]->on;
        size_t own = lock_levels__of(name->path);
        levels += own;
        core__work(core, WORK_LOCK * (uint64_t)own);
        if (i == 0 || !slice_equal(sorted[i - 1]->on.index, name->index))
            continue;
        (void)compare_levels(sorted[i - 1]->on.path, name->path, &common);
        levels -= common;
    }
    return levels;
}

/* --- The set of directories --------------------------------------------------------------------------------------- */

/* The first `level` directories of a spec's path. */
struct level {
    uint64_t hash;
    const struct resource_name *of; /* NULL: an empty slot */
    size_t level;
    size_t bytes; /* of its path */
};

struct level_set {
    struct level *slots;
    size_t capacity; /* a power of two */
    size_t count;
    /* Of the path that was added last, by level: paths in one directory usually follow each other. */
    struct slice path;
    size_t levels; /* 0: this is the first path of its index */
    uint64_t hashes[RESOURCE_LEVELS_MAX + 1];
    size_t ends[RESOURCE_LEVELS_MAX + 1]; /* in bytes */
};

enum { SLOTS_MIN = 1024 };

static bool is_same(const struct level *found, const struct resource_name *name, size_t level, size_t bytes)
{
    struct resource_path x = resource_path(found->of->path), y = resource_path(name->path);
    struct slice left, right;
    if (found->level != level || !slice_equal(found->of->index, name->index))
        return false;
    if (found->bytes == bytes && memcmp(found->of->path.data, name->path.data, bytes) == 0)
        return true;
    for (size_t i = 0; i < level; i++)
        if (!resource_path_next(&x, &left) || !resource_path_next(&y, &right) || !slice_equal(left, right))
            return false;
    return true;
}

/* Returns: the slot of a directory, or the one that it gets. */
static struct level *find_slot(const struct level_set *set, const struct resource_name *name, size_t level)
{
    uint64_t hash = set->hashes[level - 1];
    for (uint64_t at = hash;; at++) {
        struct level *slot = &set->slots[at & (set->capacity - 1)];
        if (slot->of == NULL || (slot->hash == hash && is_same(slot, name, level, set->ends[level - 1])))
            return slot;
    }
}

static void grow_hashes(struct level_set *set)
{
    struct level *old = set->slots;
    size_t old_capacity = set->capacity;
    set->capacity *= 2;
    set->slots = mem_zalloc(set->capacity * sizeof *set->slots);
    for (size_t i = 0; i < old_capacity; i++) {
        uint64_t at = old[i].hash;
        if (old[i].of == NULL)
            continue;
        while (set->slots[at & (set->capacity - 1)].of != NULL)
            at++;
        set->slots[at & (set->capacity - 1)] = old[i];
    }
    mem_free(old);
}

static uint64_t mix_level(uint64_t above, uint64_t name)
{
    uint64_t hash = (above ^ name) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

/* Returns: how many levels a path has in common with the one that was added last, with the same bytes. */
static size_t common_levels(const struct level_set *set, struct slice path)
{
    size_t levels = set->levels, same = 0;
    if (levels == 0)
        return 0;
    size_t least = path.len < set->path.len ? path.len : set->path.len;
    while (same < least && path.data[same] == set->path.data[same])
        same++;
    while (levels > 0) {
        size_t end = set->ends[levels - 1];
        if (end <= same && (end == 0 || end == path.len || path.data[end] == '/'))
            break;
        levels--;
    }
    return levels;
}

/* Adds the directories of a path. Counts its work. */
static void add_path(struct core *core, struct level_set *set, const struct resource_name *name, uint64_t index_hash)
{
    size_t levels = common_levels(set, name->path);
    struct resource_path walk = resource_path(name->path);
    struct slice segment;
    uint64_t hash = index_hash;
    if (levels > 0) {
        walk = (struct resource_path){slice_from_offset(name->path, set->ends[levels - 1]), levels};
        hash = set->hashes[levels - 1];
    }
    while (resource_path_next(&walk, &segment)) {
        INSIST(levels < sizeof set->hashes / sizeof *set->hashes);
        set->ends[levels] = name->path.len - walk.left.len;
        set->hashes[levels++] = hash = mix_level(hash, siphash_keyed(segment));
    }
    set->path = name->path;
    set->levels = levels;
    for (size_t level = levels; level > 0; level--) {
        if (2 * (set->count + 1) > set->capacity)
            grow_hashes(set);
        struct level *slot = find_slot(set, name, level);
        core__work(core, WORK_LOCK);
        if (slot->of != NULL)
            break; /* invariant 1 */
        *slot = (struct level){set->hashes[level - 1], name, level, set->ends[level - 1]};
        set->count++;
    }
    core__work(core, WORK_LOCK * (uint64_t)levels / 4);
}

size_t lock_levels__distinct(struct core *core, const struct lock_spec *specs, size_t count, size_t most)
{
    REQUIRE(count == 0 || specs != NULL);
    struct slice index = SLICE_NONE;
    uint64_t index_hash = 0;
    if (core->command_version < COMMAND_SINCE_LEVELS_SET)
        return count_sorted(core, specs, count);
    struct level_set *set = mem_alloc(sizeof *set);
    set->slots = mem_zalloc(SLOTS_MIN * sizeof *set->slots);
    set->capacity = SLOTS_MIN;
    set->count = set->levels = 0;
    for (size_t i = 0; i < count && set->count <= most; i++) {
        const struct resource_name *name = &specs[i].on;
        if (name->path.data == NULL)
            continue;
        if (i == 0 || !slice_equal(index, name->index)) {
            index = name->index;
            index_hash = siphash_keyed(index);
            set->levels = 0;
        }
        add_path(core, set, name, index_hash);
    }
    size_t levels = set->count <= most ? set->count : most + 1;
    mem_free(set->slots);
    mem_free(set);
    return levels;
}
