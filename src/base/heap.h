/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An intrusive binary heap (priority queue).
 *
 * The node is a member of the element and records its position, so that any element can be removed
 * without a search. The order must be total, without equal elements; otherwise the order of removal
 * would depend on the history of the heap.
 */
#ifndef TL_BASE_HEAP_H
#define TL_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed: in no heap. */
struct heap_node {
    size_t position; /* index in the heap's array plus one; 0: in no heap */
};

struct heap {
    struct heap_node **nodes;
    size_t count;
    size_t capacity;
    bool (*before)(const struct heap_node *a, const struct heap_node *b);
};

void heap_init(struct heap *heap, bool (*before)(const struct heap_node *a, const struct heap_node *b));

/* Requires: the heap is empty. */
void heap_deinit(struct heap *heap);

/* Returns: the first node in the heap's order; NULL: the heap is empty. */
static inline struct heap_node *heap_first(const struct heap *heap)
{
    return heap->count == 0 ? NULL : heap->nodes[0];
}

/* Returns: whether the node is in a heap. */
static inline bool heap_holds(const struct heap_node *node)
{
    return node->position != 0;
}

/* Requires: the node is in no heap. */
void heap_push(struct heap *heap, struct heap_node *node);

/* Removes a node, not only the first. Requires: it is in this heap. */
void heap_remove(struct heap *heap, struct heap_node *node);

#endif
