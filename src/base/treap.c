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

/*
 * Recomputes the subtree sets of a node and its ancestors, up to the first one that stays the same:
 * nothing changes above it. So a node that is inserted with an empty set costs no walk.
 */
static void update_ancestors(struct treap_node *node)
{
    for (; node != NULL && node->subtree_set != subtree_set_of(node); node = node->up)
        node->subtree_set = subtree_set_of(node);
}

/* Returns: the pointer to a node, in its parent or in the root. */
static struct treap_node **link_of(struct treap *treap, const struct treap_node *node)
{
    if (node->up == NULL)
        return &treap->root;
    return node->up->left == node ? &node->up->left : &node->up->right;
}

/* Rotates a node with its parent, so that it becomes the parent. */
static void rotate_up(struct treap *treap, struct treap_node *node)
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
    parent->subtree_set = subtree_set_of(parent);
    node->subtree_set = subtree_set_of(node);
}

static struct treap_node *rightmost(struct treap_node *node)
{
    while (node != NULL && node->right != NULL)
        node = node->right;
    return node;
}

void treap_insert(struct treap *treap, struct treap_node *before, struct treap_node *node, uint8_t set)
{
    REQUIRE(node->up == NULL && node->left == NULL && node->right == NULL && treap->root != node);
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
        rotate_up(treap, node);
    update_ancestors(node->up);
}

void treap_remove(struct treap *treap, struct treap_node *node)
{
    REQUIRE(node->up != NULL || treap->root == node);
    while (node->left != NULL && node->right != NULL)
        rotate_up(treap, node->left->weight > node->right->weight ? node->left : node->right);
    struct treap_node *child = node->left != NULL ? node->left : node->right;
    *link_of(treap, node) = child;
    if (child != NULL)
        child->up = node->up;
    update_ancestors(node->up);
    *node = (struct treap_node){0};
}

void treap_set(struct treap_node *node, uint8_t set)
{
    node->set = set;
    update_ancestors(node);
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
