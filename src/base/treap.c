/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence as a treap; see treap.h. */
#include "base/treap.h"

#include "base/check.h"

/* The finalizer of MurmurHash3: consecutive numbers get unrelated weights. */
static uint32_t draw_weight(struct treap *treap)
{
    uint32_t x = ++treap->drawn;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

static uint8_t subtree_set_of(const struct treap_node *node)
{
    return (uint8_t)(node->set | (node->left == NULL ? 0 : node->left->subtree_set) |
                     (node->right == NULL ? 0 : node->right->subtree_set));
}

/* Says whether two nodes are of one kind; NULL: the treap has no kinds. */
typedef bool kind_same(const struct treap_node *, const struct treap_node *);

/* Returns: whether a child's subtree has a node of another kind than `node`. */
static bool has_other_kind(const struct treap_node *node, const struct treap_node *child, kind_same *same)
{
    return child != NULL && (child->mixed || !same(node, child));
}

static bool is_mixed(const struct treap_node *node, kind_same *same)
{
    return same != NULL && (has_other_kind(node, node->left, same) || has_other_kind(node, node->right, same));
}

/* Recomputes what a node says of its subtree. Returns: whether it has changed. */
static bool update_subtree(struct treap_node *node, kind_same *same)
{
    uint8_t set = subtree_set_of(node);
    bool mixed = is_mixed(node, same), changed = set != node->subtree_set || mixed != node->mixed;
    node->subtree_set = set;
    node->mixed = mixed;
    return changed;
}

/*
 * Recomputes what a node and its ancestors say of their subtrees, up to the first one that stays the same: nothing
 * changes above it, since its own kind is the same, too. So a node that is inserted with an empty set costs no walk.
 */
static void update_ancestors(struct treap_node *node, kind_same *same)
{
    while (node != NULL && update_subtree(node, same))
        node = node->up;
}

/* Returns: the pointer to a node, in its parent or in the root. */
static struct treap_node **link_of(struct treap *treap, const struct treap_node *node)
{
    if (node->up == NULL)
        return &treap->root;
    return node->up->left == node ? &node->up->left : &node->up->right;
}

/* Rotates a node with its parent, so that it becomes the parent. */
static void rotate_up(struct treap *treap, struct treap_node *node, kind_same *same)
{
    struct treap_node *parent = node->up;
    struct treap_node **moved = parent->left == node ? &node->right : &node->left;
    *link_of(treap, parent) = node;
    node->up = parent->up;
    if (parent->left == node)
        parent->left = *moved;
    else
        parent->right = *moved;
    if (*moved != NULL)
        (*moved)->up = parent;
    *moved = parent;
    parent->up = node;
    update_subtree(parent, same);
    update_subtree(node, same);
}

static struct treap_node *rightmost(struct treap_node *node)
{
    while (node != NULL && node->right != NULL)
        node = node->right;
    return node;
}

/* Returns: whether a node is in this treap, or, below another one, in any. */
static bool has_node(const struct treap *treap, const struct treap_node *node)
{
    return node->up != NULL || treap->root == node;
}

static void insert_node(struct treap *treap, struct treap_node *before, struct treap_node *node, uint8_t set,
                        kind_same *same)
{
    *node = (struct treap_node){.weight = draw_weight(treap), .set = set, .subtree_set = set};
    if (before != NULL && before->left == NULL) {
        node->up = before;
        before->left = node;
    } else {
        struct treap_node *last = rightmost(before == NULL ? treap->root : before->left);
        node->up = last;
        if (last == NULL)
            treap->root = node;
        else
            last->right = node;
    }
    while (node->up != NULL && node->weight > node->up->weight)
        rotate_up(treap, node, same);
    update_ancestors(node->up, same);
}

void treap_insert(struct treap *treap, struct treap_node *before, struct treap_node *node, uint8_t set)
{
    REQUIRE(!has_node(treap, node) && node->left == NULL && node->right == NULL);
    insert_node(treap, before, node, set, NULL);
}

void treap_insert_kind(struct treap *treap, struct treap_node *before, struct treap_node *node, kind_same *same)
{
    REQUIRE(same != NULL && !has_node(treap, node) && node->left == NULL && node->right == NULL);
    insert_node(treap, before, node, 0, same);
}

static void remove_node(struct treap *treap, struct treap_node *node, kind_same *same)
{
    while (node->left != NULL && node->right != NULL)
        rotate_up(treap, node->left->weight > node->right->weight ? node->left : node->right, same);
    struct treap_node *child = node->left != NULL ? node->left : node->right;
    *link_of(treap, node) = child;
    if (child != NULL)
        child->up = node->up;
    update_ancestors(node->up, same); /* without the removed node */
    *node = (struct treap_node){0};
}

void treap_remove(struct treap *treap, struct treap_node *node)
{
    REQUIRE(has_node(treap, node));
    remove_node(treap, node, NULL);
}

void treap_remove_kind(struct treap *treap, struct treap_node *node, kind_same *same)
{
    REQUIRE(same != NULL && has_node(treap, node));
    remove_node(treap, node, same);
}

void treap_set(struct treap_node *node, uint8_t set)
{
    node->set = set;
    update_ancestors(node, NULL);
}

static bool subtree_has(const struct treap_node *node, uint8_t mask)
{
    return node != NULL && (node->subtree_set & mask) != 0;
}

/* Returns: the first node of a subtree whose set intersects `mask`. Requires: there is one. */
static struct treap_node *first_in_subtree(struct treap_node *node, uint8_t mask)
{
    for (;;) {
        if (subtree_has(node->left, mask))
            node = node->left;
        else if ((node->set & mask) != 0)
            return node;
        else
            node = node->right;
    }
}

static struct treap_node *last_in_subtree(struct treap_node *node, uint8_t mask)
{
    for (;;) {
        if (subtree_has(node->right, mask))
            node = node->right;
        else if ((node->set & mask) != 0)
            return node;
        else
            node = node->left;
    }
}

struct treap_node *treap_next(const struct treap *treap, const struct treap_node *after, uint8_t mask)
{
    if (after == NULL)
        return subtree_has(treap->root, mask) ? first_in_subtree(treap->root, mask) : NULL;
    if (subtree_has(after->right, mask))
        return first_in_subtree(after->right, mask);
    for (const struct treap_node *at = after; at->up != NULL; at = at->up) {
        if (at->up->right == at)
            continue;
        if ((at->up->set & mask) != 0)
            return at->up;
        if (subtree_has(at->up->right, mask))
            return first_in_subtree(at->up->right, mask);
    }
    return NULL;
}

struct treap_node *treap_prev(const struct treap *treap, const struct treap_node *before, uint8_t mask)
{
    if (before == NULL)
        return subtree_has(treap->root, mask) ? last_in_subtree(treap->root, mask) : NULL;
    if (subtree_has(before->left, mask))
        return last_in_subtree(before->left, mask);
    for (const struct treap_node *at = before; at->up != NULL; at = at->up) {
        if (at->up->left == at)
            continue;
        if ((at->up->set & mask) != 0)
            return at->up;
        if (subtree_has(at->up->left, mask))
            return last_in_subtree(at->up->left, mask);
    }
    return NULL;
}

/* Says whether a node is one of those that are searched for. */
typedef bool kind_matches(const struct treap_node *node, const void *key);

/* Returns: the last node of a subtree that matches; NULL: none. */
static struct treap_node *last_match(struct treap_node *node, kind_matches *matches, const void *key, uint64_t *visits)
{
    for (; node != NULL; node = node->left) {
        ++*visits;
        if (!node->mixed && !matches(node, key))
            return NULL;
        struct treap_node *found = last_match(node->right, matches, key, visits);
        if (found != NULL)
            return found;
        if (matches(node, key))
            return node;
    }
    return NULL;
}

struct treap_node *treap_prev_kind(const struct treap_node *before, kind_matches *matches, const void *key,
                                   uint64_t *visits)
{
    struct treap_node *found = last_match(before->left, matches, key, visits);
    for (const struct treap_node *at = before; found == NULL && at->up != NULL; at = at->up) {
        ++*visits;
        if (at->up->right == at)
            found = matches(at->up, key) ? at->up : last_match(at->up->left, matches, key, visits);
    }
    return found;
}

static bool subtree_is_exact(const struct treap_node *node, kind_same *same)
{
    return node == NULL || (node->mixed == is_mixed(node, same) && subtree_is_exact(node->left, same) &&
                            subtree_is_exact(node->right, same));
}

bool treap_kinds_are_exact(const struct treap *treap, kind_same *same)
{
    REQUIRE(same != NULL);
    return subtree_is_exact(treap->root, same);
}

struct treap_node *treap_find(const struct treap *treap,
                              bool (*precedes)(const struct treap_node *node, const void *key), const void *key)
{
    struct treap_node *found = NULL;
    for (struct treap_node *at = treap->root; at != NULL;) {
        if (precedes(at, key)) {
            at = at->right;
        } else {
            found = at;
            at = at->left;
        }
    }
    return found;
}
