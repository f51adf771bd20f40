/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: names, allocations that count, joins without a thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/thread.h"

struct seen {
    char name[THREAD_NAME_MAX + 1];
    void *allocated;
    _Atomic bool done;
};

static void look(void *context)
{
    struct seen *seen = context;
    pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
    seen->allocated = mem_alloc(MEM_UNCOUNTED_MAX / 2);
    atomic_store(&seen->done, true);
}

static void test_thread_has_its_name(void **state)
{
    (void)state;
    struct thread thread = {0};
    struct seen seen = {0};
    assert_int_equal(thread_start(&thread, "fifteen-letters", look, &seen), 0);
    assert_true(thread.runs);
    thread_join(&thread);
    assert_false(thread.runs);
    assert_string_equal(seen.name, "fifteen-letters");
    mem_free(seen.allocated);
}

static void test_thread_adds_its_allocations_when_it_ends(void **state)
{
    (void)state;
    struct thread thread = {0};
    struct seen seen = {0};
    size_t before = mem_used();
    assert_int_equal(thread_start(&thread, "allocates", look, &seen), 0);
    thread_join(&thread);
    assert_true(mem_used() >= before + MEM_UNCOUNTED_MAX / 2);
    mem_free(seen.allocated);
}

static void test_join_has_no_effect_without_thread(void **state)
{
    (void)state;
    struct thread thread = {0};
    thread_join(&thread);
    assert_false(thread.runs);
}

static void test_detached_thread_runs(void **state)
{
    (void)state;
    struct seen seen = {0};
    assert_int_equal(thread_start_detached("detached", look, &seen), 0);
    while (!atomic_load(&seen.done))
        sched_yield();
    assert_string_equal(seen.name, "detached");
    mem_free(seen.allocated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thread_has_its_name),
        cmocka_unit_test(test_thread_adds_its_allocations_when_it_ends),
        cmocka_unit_test(test_join_has_no_effect_without_thread),
        cmocka_unit_test(test_detached_thread_runs),
    };
    return cmocka_run_group_tests_name("thread", tests, NULL, NULL);
}
