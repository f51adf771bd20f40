/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long line of things, in which each carries its own place: one is put anywhere, taken out, or found by what it has, at a cost that grows with the
 * logarithm of the length.
 *
 * A treap: a search tree by the order of the line, and a heap by a weight that each is given as it comes. The weights follow from how many came
 * before, so equal calls make equal trees; what is found never hangs on the tree's form.
 *
 * Each thing has a set of up to eight properties, and each node that of all below it: so the next that has one of some is found without a
 * look at those between.
 */
#ifndef TL_BASE_TREAP_H
#define TL_BASE_TREAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: in no treap. A line has less than 2^32 in its life, or what comes then has a worse tree. */
struct treap_node {
    struct treap_node *up;
    struct treap_node *left;
    struct treap_node *right;
    uint32_t weight;
    uint8_t set;
    uint8_t below; /* the union of its own set and of all below it */
};

/* Zeroed: empty. */
struct treap {
    struct treap_node *root;
    uint32_t drawn; /* weights */
};

/* Puts a node before another; NULL: at the end. Requires: it is in no treap. */
void treap_insert(struct treap *treap, struct treap_node *before, struct treap_node *node, uint8_t set);
/* Requires: it is in this treap. */
void treap_remove(struct treap *treap, struct treap_node *node);
/* Gives a node another set. Requires: it is in a treap. */
void treap_set(struct treap_node *node, uint8_t set);

/* Returns: the first node behind one (NULL: of all) whose set has something of `mask`; NULL: none. */
struct treap_node *treap_next(const struct treap *treap, const struct treap_node *after, uint8_t mask);
/* The same backwards. */
struct treap_node *treap_prev(const struct treap *treap, const struct treap_node *before, uint8_t mask);

/*
 * Returns: the first node that does not stand ahead of `key`; NULL: all do.
 * Requires: of the line, first come those for which `ahead` is true, then all others.
 */
struct treap_node *treap_find(const struct treap *treap, bool (*ahead)(const struct treap_node *node, const void *key),
                              const void *key);

#endif
