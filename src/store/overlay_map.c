/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered map, copied on write; see overlay_map.h. */
#include "store/overlay_map.h"

#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/reclaim.h"

enum {
    PREFETCH_AHEAD = 4,
    NODES_AT_ONCE = 64, /* nodes that are freed where they are dropped, with up to 16 entries each: some 0.1 ms */
};

struct overlay_node {
    atomic_uint refs;
    uint16_t count; /* of slots in use */
    uint16_t level; /* 0: a leaf */
    union {
        size_t low_len;
        struct overlay_node *next; /* of one that is no part of any tree any more: struct dropped */
    };
    union {
        struct overlay_entry *entries[OVERLAY_NODE_MAX]; /* of a leaf */
        struct overlay_node *children[OVERLAY_NODE_MAX]; /* of any other node */
    };
    char low[]; /* no key at or below this node is lower; invariant 5 */
};

/* --- Entries and nodes -------------------------------------------------------------------------------------------- */

struct overlay_entry *overlay_entry_new(struct slice key, struct slice value, bool deleted, uint32_t ordinal)
{
    REQUIRE(key.len <= UINT32_MAX && (!deleted || value.len == 0));
    struct overlay_entry *entry = mem_alloc(sizeof *entry + key.len + value.len);
    atomic_init(&entry->refs, 1);
    entry->ordinal = ordinal;
    entry->key_len = (uint32_t)key.len;
    entry->deleted = deleted;
    entry->value_len = value.len;
    if (key.len > 0)
        memcpy(entry->bytes, key.data, key.len);
    if (value.len > 0)
        memcpy(entry->bytes + key.len, value.data, value.len);
    return entry;
}

/* Relaxed: the thread has a reference already, or one to a node above it. */
static void add_reference(atomic_uint *refs)
{
    unsigned before = atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
    INSIST(before > 0 && before < UINT32_MAX);
}

/* Returns: whether it was the last one: what others did with the object has happened before. */
static bool drop_reference(atomic_uint *refs)
{
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

void overlay_entry_ref(struct overlay_entry *entry)
{
    REQUIRE(entry != NULL);
    add_reference(&entry->refs);
}

void overlay_entry_unref(struct overlay_entry *entry)
{
    if (entry != NULL && drop_reference(&entry->refs))
        mem_free(entry);
}

static struct slice low_of(const struct overlay_node *node)
{
    return (struct slice){node->low, node->low_len};
}

static struct overlay_node *node_new(unsigned level, struct slice low)
{
    REQUIRE(level < OVERLAY_LEVELS_MAX);
    struct overlay_node *node = mem_alloc(sizeof *node + low.len);
    atomic_init(&node->refs, 1);
    node->count = 0;
    node->level = (uint16_t)level;
    node->low_len = low.len;
    if (low.len > 0)
        memcpy(node->low, low.data, low.len);
    return node;
}

/* Nodes of which the last reference was dropped. They still have references to the nodes and entries below them. */
struct dropped {
    size_t most;                /* how many nodes may be freed */
    struct overlay_node *nodes; /* those beyond that; at most 15 of each level */
};

/* Drops a reference; the last one frees the node and drops those that it has. At most one call per level. */
static void drop_node(struct dropped *dropped, struct overlay_node *node)
{
    if (!drop_reference(&node->refs))
        return;
    if (dropped->most == 0) {
        node->next = dropped->nodes;
        dropped->nodes = node;
        return;
    }
    dropped->most--;
    for (unsigned i = 0; i < node->count; i++) {
        if (i + PREFETCH_AHEAD < node->count)
            __builtin_prefetch(node->entries[i + PREFETCH_AHEAD], 1); /* or the child */
        if (node->level == 0)
            overlay_entry_unref(node->entries[i]);
        else
            drop_node(dropped, node->children[i]);
    }
    mem_free(node);
}

/* Frees dropped nodes, and all that nothing else refers to below them. On the reclaimer's thread, if it runs. */
static void free_dropped(void *nodes)
{
    for (struct overlay_node *node = nodes, *next; node != NULL; node = next) {
        struct dropped all = {.most = SIZE_MAX};
        next = node->next;
        atomic_store_explicit(&node->refs, 1, memory_order_relaxed); /* dropped as any other */
        drop_node(&all, node);
    }
}

/* As drop_node(); a large tree is left to the reclaimer. */
static void node_unref(struct overlay_node *node)
{
    struct dropped dropped = {.most = NODES_AT_ONCE};
    drop_node(&dropped, node);
    if (dropped.nodes != NULL)
        reclaim(dropped.nodes, free_dropped);
}

/* Makes the node in `slot` one that only this map has. The slot is in such a node, or the root's. */
static struct overlay_node *make_own(struct overlay_map *map, struct overlay_node **slot)
{
    struct overlay_node *node = *slot;
    if (atomic_load_explicit(&node->refs, memory_order_acquire) == 1)
        return node;
    struct overlay_node *copy = node_new(node->level, low_of(node));
    copy->count = node->count;
    for (unsigned i = 0; i < node->count; i++)
        if (node->level == 0)
            overlay_entry_ref(copy->entries[i] = node->entries[i]);
        else
            add_reference(&(copy->children[i] = node->children[i])->refs);
    *slot = copy;
    node_unref(node);
    map->copied++;
    return copy;
}

/* --- Searching ---------------------------------------------------------------------------------------------------- */

/* Returns: the number of entries of a leaf before the first one that is not before `key`. */
static unsigned entries_before(const struct overlay_node *leaf, struct slice key)
{
    unsigned low = 0, high = leaf->count;
    if (slice_compare(overlay_entry_key(leaf->entries[high - 1]), key) < 0)
        return high; /* ascending keys */
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (slice_compare(overlay_entry_key(leaf->entries[middle]), key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns: the index of the child that has `key`, if any has it. */
static unsigned child_for(const struct overlay_node *node, struct slice key)
{
    unsigned low = 0, high = node->count;
    if (slice_compare(low_of(node->children[high - 1]), key) <= 0)
        return high - 1;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (slice_compare(low_of(node->children[middle]), key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool has_key(const struct overlay_node *leaf, unsigned index, struct slice key)
{
    return index < leaf->count && slice_equal(overlay_entry_key(leaf->entries[index]), key);
}

struct overlay_entry *overlay_map_get(const struct overlay_map *map, struct slice key)
{
    const struct overlay_node *node = map->root;
    if (node == NULL)
        return NULL;
    while (node->level > 0)
        node = node->children[child_for(node, key)];
    unsigned index = entries_before(node, key);
    return has_key(node, index, key) ? node->entries[index] : NULL;
}

/* --- Changes ------------------------------------------------------------------------------------------------------ */

void overlay_map_clear(struct overlay_map *map)
{
    if (map->root != NULL)
        node_unref(tl_steal(map->root));
    map->count = 0;
    map->changes++;
}

void overlay_map_share(const struct overlay_map *map, struct overlay_map *ret_snapshot)
{
    REQUIRE(map != ret_snapshot);
    if (map->root != NULL)
        add_reference(&map->root->refs);
    *ret_snapshot = (struct overlay_map){.root = map->root, .count = map->count};
}

/* Moves the slots of the child at `index` from the one at `at` on to a new child after it. */
static void split_child(struct overlay_node *parent, unsigned index, unsigned at)
{
    struct overlay_node *left = parent->children[index];
    REQUIRE(parent->count < OVERLAY_NODE_MAX && at > 0 && at < left->count);
    struct overlay_node *right =
        node_new(left->level, left->level == 0 ? overlay_entry_key(left->entries[at]) : low_of(left->children[at]));
    right->count = (uint16_t)(left->count - at);
    if (left->level == 0)
        memcpy(right->entries, left->entries + at, right->count * sizeof *right->entries);
    else
        memcpy(right->children, left->children + at, right->count * sizeof *right->children);
    left->count = (uint16_t)at;
    struct overlay_node **next = &parent->children[index + 1];
    memmove(next + 1, next, (parent->count - index - 1) * sizeof *next);
    *next = right;
    parent->count++;
}

/* Returns: whether `key` is after all of a full node but its last slot. */
static bool is_at_end(const struct overlay_node *node, struct slice key)
{
    return node->level > 0 ? child_for(node, key) == node->count - 1U : entries_before(node, key) == node->count;
}

/*
 * Full nodes are split on the way down, so that each has room for one more. At the right edge, where
 * ascending keys are put, the left part stays full.
 */
static struct overlay_node *leaf_for_put(struct overlay_map *map, struct slice key)
{
    if (map->root == NULL)
        return map->root = node_new(0, SLICE_NONE);
    struct overlay_node *node = make_own(map, &map->root);
    if (node->count == OVERLAY_NODE_MAX) {
        map->root = node_new(node->level + 1U, SLICE_NONE);
        map->root->children[map->root->count++] = node;
        node = map->root;
    }
    for (bool last = true; node->level > 0;) {
        unsigned index = child_for(node, key);
        struct overlay_node *child = make_own(map, &node->children[index]);
        last = last && index + 1U == node->count;
        if (child->count == OVERLAY_NODE_MAX) {
            split_child(node, index, last && is_at_end(child, key) ? child->count - 1U : child->count / 2U);
            index = child_for(node, key);
            last = last && index + 1U == node->count;
            child = node->children[index];
        }
        node = child;
    }
    return node;
}

void overlay_map_put(struct overlay_map *map, struct overlay_entry *entry)
{
    REQUIRE(entry != NULL);
    struct slice key = overlay_entry_key(entry);
    struct overlay_node *leaf = leaf_for_put(map, key);
    unsigned index = leaf->count == 0 ? 0 : entries_before(leaf, key);
    struct overlay_entry **slot = &leaf->entries[index];
    map->changes++;
    if (has_key(leaf, index, key)) {
        struct overlay_entry *before = *slot;
        *slot = entry;
        overlay_entry_unref(before);
        return;
    }
    INSIST(leaf->count < OVERLAY_NODE_MAX);
    memmove(slot + 1, slot, (leaf->count - index) * sizeof *slot);
    *slot = entry;
    leaf->count++;
    map->count++;
}

/* Removes the slot, whose reference was dropped or is the caller's. */
static void remove_slot(struct overlay_node *node, unsigned index)
{
    REQUIRE(index < node->count);
    node->count--;
    if (node->level == 0)
        memmove(&node->entries[index], &node->entries[index + 1], (node->count - index) * sizeof *node->entries);
    else
        memmove(&node->children[index], &node->children[index + 1], (node->count - index) * sizeof *node->children);
}

/* Returns: whether the node is empty afterwards. */
static bool remove_below(struct overlay_map *map, struct overlay_node *node, struct slice key)
{
    if (node->level > 0) {
        unsigned index = child_for(node, key);
        if (!remove_below(map, make_own(map, &node->children[index]), key))
            return false;
        node_unref(node->children[index]);
        remove_slot(node, index);
        return node->count == 0;
    }
    unsigned index = entries_before(node, key);
    REQUIRE(has_key(node, index, key));
    overlay_entry_unref(node->entries[index]);
    remove_slot(node, index);
    return node->count == 0;
}

void overlay_map_remove(struct overlay_map *map, struct slice key)
{
    REQUIRE(map->root != NULL);
    map->changes++;
    map->count--;
    if (remove_below(map, make_own(map, &map->root), key))
        node_unref(tl_steal(map->root));
    while (map->root != NULL && map->root->level > 0 && map->root->count == 1) {
        struct overlay_node *root = map->root;
        map->root = root->children[0];
        if (atomic_load_explicit(&root->refs, memory_order_acquire) == 1)
            root->count = 0; /* its reference is the map's now */
        else
            add_reference(&map->root->refs);
        node_unref(root);
    }
}

/* --- Cursors ------------------------------------------------------------------------------------------------------ */

static const struct overlay_entry *entry_at(const struct overlay_cursor *cursor)
{
    if (cursor->depth == 0)
        return NULL;
    const struct overlay_node *leaf = cursor->path[cursor->depth - 1].node;
    unsigned index = cursor->path[cursor->depth - 1].index;
    if (index + PREFETCH_AHEAD < leaf->count) /* entries are scattered */
        __builtin_prefetch(leaf->entries[index + PREFETCH_AHEAD]);
    return leaf->entries[index];
}

static void enter_node(struct overlay_cursor *cursor, const struct overlay_node *node, unsigned index)
{
    REQUIRE(cursor->depth < OVERLAY_LEVELS_MAX && index < node->count);
    cursor->path[cursor->depth].node = node;
    cursor->path[cursor->depth++].index = index;
}

/* Positions the cursor at the first or the last entry at or below `node`. */
static const struct overlay_entry *enter_edge(struct overlay_cursor *cursor, const struct overlay_node *node, bool last)
{
    for (;; node = node->children[last ? node->count - 1U : 0]) {
        enter_node(cursor, node, last ? node->count - 1U : 0);
        if (node->level == 0)
            return entry_at(cursor);
    }
}

static void begin_cursor(struct overlay_cursor *cursor, const struct overlay_map *map)
{
    REQUIRE(map != NULL);
    cursor->map = map;
    cursor->changes = map->changes;
    cursor->depth = 0;
}

const struct overlay_entry *overlay_cursor_first(struct overlay_cursor *cursor, const struct overlay_map *map)
{
    begin_cursor(cursor, map);
    return map->root == NULL ? NULL : enter_edge(cursor, map->root, false);
}

const struct overlay_entry *overlay_cursor_last(struct overlay_cursor *cursor, const struct overlay_map *map)
{
    begin_cursor(cursor, map);
    return map->root == NULL ? NULL : enter_edge(cursor, map->root, true);
}

/* Enters the leaf that would have `key`. Returns: the number of its entries before `key`; NULL in ret_leaf: none. */
static unsigned enter_leaf(struct overlay_cursor *cursor, const struct overlay_map *map, struct slice key,
                           const struct overlay_node **ret_leaf)
{
    begin_cursor(cursor, map);
    const struct overlay_node *node = *ret_leaf = map->root;
    if (node == NULL)
        return 0;
    while (node->level > 0) {
        unsigned index = child_for(node, key);
        enter_node(cursor, node, index);
        node = node->children[index];
    }
    *ret_leaf = node;
    return entries_before(node, key);
}

const struct overlay_entry *overlay_cursor_seek(struct overlay_cursor *cursor, const struct overlay_map *map,
                                                struct slice key)
{
    const struct overlay_node *leaf;
    unsigned index = enter_leaf(cursor, map, key, &leaf);
    if (leaf == NULL)
        return NULL;
    enter_node(cursor, leaf, index < leaf->count ? index : index - 1);
    return index < leaf->count ? entry_at(cursor) : overlay_cursor_next(cursor);
}

const struct overlay_entry *overlay_cursor_seek_for_prev(struct overlay_cursor *cursor, const struct overlay_map *map,
                                                         struct slice key)
{
    const struct overlay_node *leaf;
    unsigned index = enter_leaf(cursor, map, key, &leaf);
    if (leaf == NULL)
        return NULL;
    bool found = has_key(leaf, index, key);
    enter_node(cursor, leaf, found || index == 0 ? index : index - 1);
    return found || index > 0 ? entry_at(cursor) : overlay_cursor_prev(cursor);
}

const struct overlay_entry *overlay_cursor_next(struct overlay_cursor *cursor)
{
    REQUIRE(cursor->depth > 0 && cursor->changes == cursor->map->changes);
    for (; cursor->depth > 0; cursor->depth--) {
        const struct overlay_node *node = cursor->path[cursor->depth - 1].node;
        unsigned index = ++cursor->path[cursor->depth - 1].index;
        if (index < node->count)
            return node->level == 0 ? entry_at(cursor) : enter_edge(cursor, node->children[index], false);
    }
    return NULL;
}

const struct overlay_entry *overlay_cursor_prev(struct overlay_cursor *cursor)
{
    REQUIRE(cursor->depth > 0 && cursor->changes == cursor->map->changes);
    for (; cursor->depth > 0; cursor->depth--) {
        const struct overlay_node *node = cursor->path[cursor->depth - 1].node;
        if (cursor->path[cursor->depth - 1].index == 0)
            continue;
        unsigned index = --cursor->path[cursor->depth - 1].index;
        return node->level == 0 ? entry_at(cursor) : enter_edge(cursor, node->children[index], true);
    }
    return NULL;
}

/* --- Checks ------------------------------------------------------------------------------------------------------- */

/* Returns: the number of entries, all of which are at or after `low` and before `high`; data NULL: no bound. */
static size_t check_node(const struct overlay_node *node, struct slice low, struct slice high)
{
    size_t count = 0;
    INSIST(node->count > 0 && node->count <= OVERLAY_NODE_MAX);
    for (unsigned i = 0; i < node->count; i++) {
        bool last = i + 1U == node->count;
        if (node->level == 0) {
            struct slice key = overlay_entry_key(node->entries[i]);
            struct slice next = last ? high : overlay_entry_key(node->entries[i + 1]);
            INSIST(low.data == NULL || slice_compare(low, key) <= 0);
            INSIST(next.data == NULL || slice_compare(key, next) < 0);
            count++;
            continue;
        }
        INSIST(node->children[i]->level + 1 == node->level);
        count += check_node(node->children[i], i == 0 ? low : low_of(node->children[i]),
                            last ? high : low_of(node->children[i + 1]));
    }
    return count;
}

void overlay_map_check(const struct overlay_map *map)
{
    INSIST(map->count == (map->root == NULL ? 0 : check_node(map->root, SLICE_NONE, SLICE_NONE)));
}
