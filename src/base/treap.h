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
 *
 * Or its nodes are of kinds, which the caller compares: each node says whether its subtree has nodes of several kinds.
 * So the next node of another kind is found without visiting those of one kind in between. A treap has either.
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
    bool mixed;          /* the node and its descendants are of several kinds */
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

/* As treap_insert(), in a treap of kinds. `same` says whether two nodes are of one kind, which they keep. */
void treap_insert_kind(struct treap *treap, struct treap_node *before, struct treap_node *node,
                       bool (*same)(const struct treap_node *, const struct treap_node *));
/* As treap_remove(), from a treap of kinds. Requires: `same` is that of the insertions. */
void treap_remove_kind(struct treap *treap, struct treap_node *node,
                       bool (*same)(const struct treap_node *, const struct treap_node *));
/*
 * Returns: the last node before `before` that matches; NULL: none. Of a subtree of one kind only the root is asked, so
 * this takes logarithmic time where each mixed subtree has nodes that match. Adds the nodes visited to *visits.
 * Assumes: all nodes of a kind match, or none of them.
 */
struct treap_node *treap_prev_kind(const struct treap_node *before,
                                   bool (*matches)(const struct treap_node *node, const void *key), const void *key,
                                   uint64_t *visits);
/* Returns: whether each node says rightly if its subtree is mixed. Visits all nodes. */
bool treap_kinds_are_exact(const struct treap *treap,
                           bool (*same)(const struct treap_node *, const struct treap_node *));

/*
 * Returns: the first node that does not precede `key`; NULL: all nodes precede it.
 * Assumes: all nodes for which `precedes` is true come before all others.
 */
struct treap_node *treap_find(const struct treap *treap,
                              bool (*precedes)(const struct treap_node *node, const void *key), const void *key);

#endif
