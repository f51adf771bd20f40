/* SPDX-License-Identifier: Apache-2.0 */
/* A line as a tree; see treap.h. */
#include "base/treap.h"

#include "base/check.h"

/* The final mix of MurmurHash3: numbers that follow one another come to weights that do not. */
static uint32_t draw_weight(struct treap *treap)
{
    uint32_t x = ++treap->drawn;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

static uint8_t below_of(const struct treap_node *node)
{
    return (uint8_t)(node->set | (node->left == NULL ? 0 : node->left->below) |
                     (node->right == NULL ? 0 : node->right->below));
}

/* Has all from a node upwards know what is below them. */
static void tell_up(struct treap_node *node)
{
    for (; node != NULL; node = node->up)
        node->below = below_of(node);
}

/* Returns: where a node hangs. */
static struct treap_node **place_of(struct treap *treap, const struct treap_node *node)
{
    if (node->up == NULL)
        return &treap->root;
    return node->up->left == node ? &node->up->left : &node->up->right;
}

/* Turns a node and its parent round, so that it comes to hang above. */
static void rise(struct treap *treap, struct treap_node *node)
{
    struct treap_node *parent = node->up;
    struct treap_node **moved = parent->left == node ? &node->right : &node->left;
    *place_of(treap, parent) = node;
    node->up = parent->up;
    if (parent->left == node)
        parent->left = *moved;
    else
        parent->right = *moved;
    if (*moved != NULL)
        (*moved)->up = parent;
    *moved = parent;
    parent->up = node;
    parent->below = below_of(parent);
    node->below = below_of(node);
}

static struct treap_node *rightmost(struct treap_node *node)
{
    while (node != NULL && node->right != NULL)
        node = node->right;
    return node;
}

void treap_insert(struct treap *treap, struct treap_node *before, struct treap_node *node, uint8_t set)
{
    *node = (struct treap_node){.weight = draw_weight(treap), .set = set, .below = set};
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
        rise(treap, node);
    tell_up(node->up);
}

void treap_remove(struct treap *treap, struct treap_node *node)
{
    REQUIRE(node->up != NULL || treap->root == node);
    while (node->left != NULL && node->right != NULL)
        rise(treap, node->left->weight > node->right->weight ? node->left : node->right);
    struct treap_node *child = node->left != NULL ? node->left : node->right;
    *place_of(treap, node) = child;
    if (child != NULL)
        child->up = node->up;
    tell_up(node->up);
    *node = (struct treap_node){0};
}

void treap_set(struct treap_node *node, uint8_t set)
{
    node->set = set;
    for (; node != NULL && node->below != below_of(node); node = node->up)
        node->below = below_of(node);
}

static bool has_below(const struct treap_node *node, uint8_t mask)
{
    return node != NULL && (node->below & mask) != 0;
}

/* Returns: the first at or below a node, of which there is one. */
static struct treap_node *first_below(struct treap_node *node, uint8_t mask)
{
    for (;;) {
        if (has_below(node->left, mask))
            node = node->left;
        else if ((node->set & mask) != 0)
            return node;
        else
            node = node->right;
    }
}

static struct treap_node *last_below(struct treap_node *node, uint8_t mask)
{
    for (;;) {
        if (has_below(node->right, mask))
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
        return has_below(treap->root, mask) ? first_below(treap->root, mask) : NULL;
    if (has_below(after->right, mask))
        return first_below(after->right, mask);
    for (const struct treap_node *at = after; at->up != NULL; at = at->up) {
        if (at->up->right == at)
            continue;
        if ((at->up->set & mask) != 0)
            return at->up;
        if (has_below(at->up->right, mask))
            return first_below(at->up->right, mask);
    }
    return NULL;
}

struct treap_node *treap_prev(const struct treap *treap, const struct treap_node *before, uint8_t mask)
{
    if (before == NULL)
        return has_below(treap->root, mask) ? last_below(treap->root, mask) : NULL;
    if (has_below(before->left, mask))
        return last_below(before->left, mask);
    for (const struct treap_node *at = before; at->up != NULL; at = at->up) {
        if (at->up->left == at)
            continue;
        if ((at->up->set & mask) != 0)
            return at->up;
        if (has_below(at->up->left, mask))
            return last_below(at->up->left, mask);
    }
    return NULL;
}

struct treap_node *treap_find(const struct treap *treap, bool (*ahead)(const struct treap_node *node, const void *key),
                              const void *key)
{
    struct treap_node *found = NULL;
    for (struct treap_node *at = treap->root; at != NULL;) {
        if (ahead(at, key)) {
            at = at->right;
        } else {
            found = at;
            at = at->left;
        }
    }
    return found;
}
