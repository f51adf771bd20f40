/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a treap keeps the order of insertion, finds nodes by their sets or kinds, and stays shallow. Method:
 * random insertions, removals and changes, compared with an array in the same order; then a long
 * sequence built by appending.
 */
#include "../../lib/unit.h"

#include "base/treap.h"

#include "base/alloc.h"
#include "base/list.h"
#include "base/rand.h"

enum { THINGS = 200, STEPS = 50000, MANY = 100000, DEPTH_MAX = 64 };

struct thing {
    uint64_t key;
    int kind;
    struct treap_node node;
};

struct line {
    struct thing things[THINGS];
    struct thing *in_order[THINGS];
    size_t count;
    struct treap treap;
    struct rng rng;
};

static bool precedes(const struct treap_node *node, const void *key)
{
    return container_of(node, const struct thing, node)->key < *(const uint64_t *)key;
}

static size_t index_of(const struct line *line, const struct thing *thing)
{
    size_t at = 0;
    while (at < line->count && line->in_order[at] != thing)
        at++;
    return at;
}

static void put(struct line *line, struct thing *thing)
{
    size_t at = 0;
    thing->key = rng_below(&line->rng, 1000) * THINGS + (size_t)(thing - line->things);
    while (at < line->count && line->in_order[at]->key < thing->key)
        at++;
    struct treap_node *before = treap_find(&line->treap, precedes, &thing->key);
    assert_ptr_equal(before, at == line->count ? NULL : &line->in_order[at]->node);
    treap_insert(&line->treap, before, &thing->node, (uint8_t)rng_below(&line->rng, 256));
    memmove(line->in_order + at + 1, line->in_order + at, (line->count++ - at) * sizeof line->in_order[0]);
    line->in_order[at] = thing;
}

static void take(struct line *line, struct thing *thing)
{
    size_t at = index_of(line, thing);
    treap_remove(&line->treap, &thing->node);
    memmove(line->in_order + at, line->in_order + at + 1, (--line->count - at) * sizeof line->in_order[0]);
}

static void check_next(const struct line *line, size_t at, uint8_t mask)
{
    size_t next = at, before = at;
    while (next < line->count && (line->in_order[next]->node.set & mask) == 0)
        next++;
    while (before > 0 && (line->in_order[before - 1]->node.set & mask) == 0)
        before--;
    const struct treap_node *after = at == 0 ? NULL : &line->in_order[at - 1]->node;
    const struct treap_node *from = at == line->count ? NULL : &line->in_order[at]->node;
    assert_ptr_equal(treap_next(&line->treap, after, mask), next == line->count ? NULL : &line->in_order[next]->node);
    assert_ptr_equal(treap_prev(&line->treap, from, mask), before == 0 ? NULL : &line->in_order[before - 1]->node);
}

static void test_treap_equals_model(void **state)
{
    (void)state;
    static struct line line;
    rng_init(&line.rng, 1);
    for (size_t step = 0; step < STEPS; step++) {
        struct thing *thing = &line.things[rng_below(&line.rng, THINGS)];
        if (index_of(&line, thing) == line.count)
            put(&line, thing);
        else if (rng_below(&line.rng, 2) == 0)
            take(&line, thing);
        else
            treap_set(&thing->node, (uint8_t)(1u << rng_below(&line.rng, 8) & rng_below(&line.rng, 256)));
        check_next(&line, (size_t)rng_below(&line.rng, line.count + 1), (uint8_t)rng_below(&line.rng, 256));
    }
    while (line.count > 0)
        take(&line, line.in_order[0]);
    assert_null(line.treap.root);
}

static bool same_kind(const struct treap_node *a, const struct treap_node *b)
{
    return container_of(a, const struct thing, node)->kind == container_of(b, const struct thing, node)->kind;
}

static bool is_other_kind(const struct treap_node *node, const void *kind)
{
    return container_of(node, const struct thing, node)->kind != *(const int *)kind;
}

/* Things of the kinds 0 and 1 follow each other, in turns that become shorter and longer. */
static void test_treap_finds_nodes_of_other_kinds(void **state)
{
    (void)state;
    static struct line line;
    uint64_t visits = 0;
    rng_init(&line.rng, 2);
    for (size_t step = 0; step < STEPS / 5; step++) {
        struct thing *thing = &line.things[rng_below(&line.rng, THINGS)];
        size_t at = index_of(&line, thing);
        if (at < line.count) {
            treap_remove_kind(&line.treap, &thing->node, same_kind);
            memmove(line.in_order + at, line.in_order + at + 1, (--line.count - at) * sizeof line.in_order[0]);
        } else {
            at = (size_t)rng_below(&line.rng, line.count + 1);
            thing->kind = rng_below(&line.rng, 1 + step % 30) == 0;
            struct treap_node *before = at == line.count ? NULL : &line.in_order[at]->node;
            treap_insert_kind(&line.treap, before, &thing->node, same_kind);
            memmove(line.in_order + at + 1, line.in_order + at, (line.count++ - at) * sizeof line.in_order[0]);
            line.in_order[at] = thing;
        }
        assert_true(treap_kinds_are_exact(&line.treap, same_kind));
        if (line.count == 0)
            continue;
        size_t from = (size_t)rng_below(&line.rng, line.count), found = from;
        int kind = (int)rng_below(&line.rng, 2);
        while (found > 0 && line.in_order[found - 1]->kind == kind)
            found--;
        assert_ptr_equal(treap_prev_kind(&line.in_order[from]->node, is_other_kind, &kind, &visits),
                         found == 0 ? NULL : &line.in_order[found - 1]->node);
    }
}

static size_t depth_of(const struct treap_node *node)
{
    size_t depth = 0;
    for (; node != NULL; node = node->up)
        depth++;
    return depth;
}

static void test_treap_of_appended_nodes_is_shallow(void **state)
{
    (void)state;
    static struct treap_node nodes[MANY];
    struct treap treap = {0};
    for (size_t i = 0; i < MANY; i++)
        treap_insert(&treap, NULL, &nodes[i], i == MANY / 2 ? 2 : 1);
    for (size_t i = 0; i < MANY; i++)
        assert_in_range(depth_of(&nodes[i]), 1, DEPTH_MAX);
    assert_ptr_equal(treap_next(&treap, NULL, 2), &nodes[MANY / 2]);
    assert_null(treap_next(&treap, &nodes[MANY / 2], 2));
    assert_null(treap_prev(&treap, &nodes[MANY / 2], 2));
}

/* Many nodes of one kind are skipped with few visits. */
static void test_treap_skips_nodes_of_one_kind(void **state)
{
    (void)state;
    struct thing *things = mem_zalloc(MANY * sizeof *things);
    struct treap treap = {0};
    const int kind = 0;
    uint64_t visits = 0;
    things[0].kind = 1;
    for (size_t i = 0; i < MANY; i++)
        treap_insert_kind(&treap, NULL, &things[i].node, same_kind);
    assert_ptr_equal(treap_prev_kind(&things[MANY - 1].node, is_other_kind, &kind, &visits), &things[0].node);
    assert_in_range(visits, 1, 4 * DEPTH_MAX);
    assert_true(treap_kinds_are_exact(&treap, same_kind));
    treap_remove_kind(&treap, &things[0].node, same_kind);
    assert_false(treap.root->mixed);
    assert_null(treap_prev_kind(&things[MANY - 1].node, is_other_kind, &kind, &visits));
    assert_in_range(visits, 1, 8 * DEPTH_MAX);
    mem_free(things);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_treap_equals_model),
        cmocka_unit_test(test_treap_of_appended_nodes_is_shallow),
        cmocka_unit_test(test_treap_finds_nodes_of_other_kinds),
        cmocka_unit_test(test_treap_skips_nodes_of_one_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
