/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intrusive sequence: insertion at any position, removal, and search by properties, in
 * logarithmic time.
 *
 * It is a treap: a binary tree in the order of the sequence, and a heap by a weight that each node
 * gets on insertion. Weights are a function of the number of earlier insertions, so equal calls
 * build equal trees. Results do not depend on the shape of the tree.
 *
 * Each node has a set of up to eight properties (bits), and the union of the sets of its subtree.
 * So the next node with one of some properties is found without visiting the nodes in between.
 */
#ifndef TL_BASE_TREAP_H
#define TL_BASE_TREAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: in no treap. */
struct treap_node {
    struct treap_node *up;
    struct treap_node *left;
    struct treap_node *right;
    uint32_t weight;
    uint8_t set;
    uint8_t subtree_set; /* union of the sets of the node and its descendants */
};

/* Zeroed: empty. */
struct treap {
    struct treap_node *root;
    uint32_t drawn; /* insertions since the start; wraps, which only makes weights repeat */
};

/* Inserts a node before another one; NULL: at the end. Requires: `node` is in no treap. */
void treap_insert(struct treap *treap, struct treap_node *before, struct treap_node *node, uint8_t set);
/* Removes a node. Requires: it is in this treap. */
void treap_remove(struct treap *treap, struct treap_node *node);
/* Changes the set of a node. Assumes: it is in a treap. */
void treap_set(struct treap_node *node, uint8_t set);

/*
 * Returns: the next node after `after` (NULL: the first) whose set intersects `mask`; NULL: none.
 */
struct treap_node *treap_next(const struct treap *treap, const struct treap_node *after, uint8_t mask);
/*
 * Returns: the last node before `before` (NULL: the last) whose set intersects `mask`; NULL: none.
 */
struct treap_node *treap_prev(const struct treap *treap, const struct treap_node *before, uint8_t mask);

/*
 * Returns: the first node that does not precede `key`; NULL: all nodes precede it.
 * Assumes: all nodes for which `precedes` is true come before all others.
 */
struct treap_node *treap_find(const struct treap *treap,
                              bool (*precedes)(const struct treap_node *node, const void *key), const void *key);

#endif
