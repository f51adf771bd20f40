/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the first node of a heap is the least, after any insertions and removals.
 * Method: random pushes and removals, compared with a linear search of an array.
 */
#include "../../lib/unit.h"

#include "base/heap.h"

#include "base/list.h"
#include "base/rand.h"

enum { THINGS = 200, STEPS = 50000 };

struct thing {
    uint64_t key;
    struct heap_node node;
};

static bool before(const struct heap_node *a, const struct heap_node *b)
{
    const struct thing *x = container_of(a, const struct thing, node);
    const struct thing *y = container_of(b, const struct thing, node);
    return x->key < y->key;
}

static const struct thing *least(const struct thing *things)
{
    const struct thing *found = NULL;
    for (size_t i = 0; i < THINGS; i++)
        if (heap_holds(&things[i].node) && (found == NULL || things[i].key < found->key))
            found = &things[i];
    return found;
}

static void test_heap_equals_model(void **state)
{
    (void)state;
    static struct thing things[THINGS];
    struct heap heap;
    struct rng rng;
    rng_init(&rng, 1);
    heap_init(&heap, before);
    for (size_t step = 0; step < STEPS; step++) {
        size_t pick = (size_t)rng_below(&rng, THINGS);
        if (heap_holds(&things[pick].node)) {
            heap_remove(&heap, &things[pick].node);
        } else {
            things[pick].key = rng_below(&rng, 1000) * THINGS + pick;
            heap_push(&heap, &things[pick].node);
        }
        const struct thing *expected = least(things);
        assert_ptr_equal(heap_first(&heap), expected == NULL ? NULL : &expected->node);
    }
    while (heap_first(&heap) != NULL)
        heap_remove(&heap, heap_first(&heap));
    heap_deinit(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_heap_equals_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
