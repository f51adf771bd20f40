/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A binary heap of things that carry their own place in it.
 *
 * The node is a member of the thing, so a thing can be taken out of the middle without a search. The order
 * must be total (no two things equal), or the order of removal would depend on the history of the heap.
 */
#ifndef TL_BASE_HEAP_H
#define TL_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed: in no heap. */
struct heap_node {
    size_t place; /* one above the index in the heap's array; 0: in no heap */
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

/* Returns: the first by the heap's order, or NULL. */
static inline struct heap_node *heap_first(const struct heap *heap)
{
    return heap->count == 0 ? NULL : heap->nodes[0];
}

static inline bool heap_holds(const struct heap_node *node)
{
    return node->place != 0;
}

/* Requires: the node is in no heap. */
void heap_push(struct heap *heap, struct heap_node *node);

/* Takes a node out, wherever it is. Requires: it is in this heap. */
void heap_remove(struct heap *heap, struct heap_node *node);

#endif
