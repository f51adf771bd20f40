/* SPDX-License-Identifier: Apache-2.0 */
/* The reclaimer: order, threads, its end, and the bytes that are in use. For the thread sanitizer, too. */
#include "../../lib/unit.h"

#include <pthread.h>
#include <sched.h>

#include "base/alloc.h"
#include "base/reclaim.h"

enum { OBJECTS = 100, THREADS = 4 };

struct handed {
    unsigned number;
    pthread_t freed_by;
    unsigned freed_as; /* 0: not freed */
};

static unsigned freed; /* number of objects */

static void note_free(void *context)
{
    struct handed *object = context;
    object->freed_by = pthread_self();
    object->freed_as = ++freed;
}

static void test_reclaimer_frees_in_order(void **state)
{
    (void)state;
    struct handed objects[OBJECTS] = {{0}};
    freed = 0;
    for (int round = 0; round < 2; round++) { /* it may begin again */
        assert_int_equal(reclaim_begin(), 0);
        for (unsigned i = 0; i < OBJECTS; i++)
            reclaim(&objects[i], note_free);
        reclaim_end();
        for (unsigned i = 0; i < OBJECTS; i++) {
            assert_int_equal(objects[i].freed_as, round * OBJECTS + (int)i + 1);
            assert_false(pthread_equal(objects[i].freed_by, pthread_self()));
        }
    }
    reclaim_end(); /* no effect */
}

static void test_caller_frees_without_reclaimer(void **state)
{
    (void)state;
    struct handed object = {0};
    freed = 0;
    reclaim(&object, note_free);
    assert_int_equal(object.freed_as, 1);
    assert_true(pthread_equal(object.freed_by, pthread_self()));
}

/* Goal: memory is not in use any more soon after it was freed, also a little of it, and while the reclaimer idles. */
static void test_reclaimed_memory_is_counted(void **state)
{
    (void)state;
    assert_int_equal(reclaim_begin(), 0);
    mem_thread_end();
    size_t before = mem_used();
    char *bytes = mem_alloc(MEM_UNCOUNTED_MAX / 2);
    mem_thread_end();
    assert_true(mem_used() >= before + MEM_UNCOUNTED_MAX / 2);
    reclaim(bytes, mem_free);
    mem_thread_end();
    while (mem_used() > before)
        sched_yield();
    reclaim_end();
}

static void *hand_over(void *unused)
{
    (void)unused;
    for (int i = 0; i < OBJECTS; i++)
        reclaim(mem_alloc(100), mem_free);
    mem_thread_end();
    return NULL;
}

/* Goal: objects that several threads hand over, also while the reclaimer ends, are freed; the leak check sees to it. */
static void test_threads_hand_over_while_it_ends(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    mem_thread_end();
    size_t before = mem_used();
    for (int round = 0; round < 20; round++) {
        assert_int_equal(reclaim_begin(), 0);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, hand_over, NULL), 0);
        reclaim_end();
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(mem_used(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reclaimer_frees_in_order),
        cmocka_unit_test(test_caller_frees_without_reclaimer),
        cmocka_unit_test(test_reclaimed_memory_is_counted),
        cmocka_unit_test(test_threads_hand_over_while_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
