/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive binary heap; see heap.h. */
#include "base/heap.h"

#include "base/alloc.h"
#include "base/check.h"

void heap_init(struct heap *heap, bool (*before)(const struct heap_node *a, const struct heap_node *b))
{
    *heap = (struct heap){.before = before};
}

void heap_deinit(struct heap *heap)
{
    REQUIRE(heap->count == 0);
    mem_free(heap->nodes);
    heap->nodes = NULL;
    heap->capacity = 0;
}

static void put_node(struct heap *heap, size_t index, struct heap_node *node)
{
    heap->nodes[index] = node;
    node->position = index + 1;
}

/* Moves the node at `index` up until its parent precedes it. */
static void sift_up(struct heap *heap, size_t index)
{
    struct heap_node *node = heap->nodes[index];
    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (!heap->before(node, heap->nodes[parent]))
            break;
        put_node(heap, index, heap->nodes[parent]);
        index = parent;
    }
    put_node(heap, index, node);
}

/* Moves the node at `index` down until it precedes both its children. */
static void sift_down(struct heap *heap, size_t index)
{
    struct heap_node *node = heap->nodes[index];
    for (;;) {
        size_t child = index * 2 + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && heap->before(heap->nodes[child + 1], heap->nodes[child]))
            child++;
        if (!heap->before(heap->nodes[child], node))
            break;
        put_node(heap, index, heap->nodes[child]);
        index = child;
    }
    put_node(heap, index, node);
}

void heap_push(struct heap *heap, struct heap_node *node)
{
    REQUIRE(node->position == 0);
    if (heap->count == heap->capacity) {
        heap->capacity = heap->capacity ? heap->capacity * 2 : 16;
        heap->nodes = mem_realloc(heap->nodes, heap->capacity * sizeof *heap->nodes);
    }
    put_node(heap, heap->count++, node);
    sift_up(heap, heap->count - 1);
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
    REQUIRE(node->position > 0 && node->position <= heap->count && heap->nodes[node->position - 1] == node);
    size_t index = node->position - 1;
    struct heap_node *last = heap->nodes[--heap->count];
    node->position = 0;
    if (last == node)
        return;
    put_node(heap, index, last);
    sift_up(heap, index);
    sift_down(heap, last->position - 1);
}
