/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the memory of many locks that are released together is left to the reclaimer, and nothing refers to it any
 * more. Method: the bytes in use while the reclaimer is stopped; locks that share resources with released ones, which
 * another thread frees meanwhile. For the thread sanitizer, too.
 */
#include "../../lib/reclaim_stop.h"
#include "../../lib/unit.h"

#include <stdio.h>

#include "core/locks/lock.h"

enum { MANY = 5 * LOCK_RECLAIMED_MIN, FEW = LOCK_RECLAIMED_MIN / 4 };

struct fixture {
    struct lock_table table;
    struct lock_owner released, stays;
};

static void setup(struct fixture *f)
{
    lock_table_init(&f->table, &(struct lock_hooks){0});
    lock_table_set_ts(&f->table, 100);
    lock_owner_init(&f->table, &f->released, NULL, NULL);
    lock_owner_init(&f->table, &f->stays, NULL, NULL);
}

static void teardown(struct fixture *f)
{
    lock_owner_deinit(&f->released);
    lock_owner_deinit(&f->stays);
    assert_true(lock_table_is_idle(&f->table));
    lock_table_deinit(&f->table);
}

/* Locks documents in 100 directories in shared mode. */
static void lock_documents(struct fixture *f, struct lock_owner *owner, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char path[16], id[16];
        snprintf(path, sizeof path, "/d%u", i % 100);
        snprintf(id, sizeof id, "%u", i);
        struct lock_spec spec = {
            {.index = SLICE_LIT("fs"), .path = slice_from(path), .type = SLICE_LIT("_doc"), .id = slice_from(id)},
            LOCK_S,
            false};
        struct lock_request *request = lock_request_new(&f->table, owner, &spec, 1, f);
        assert_int_equal(lock_request_start(request, false), 0);
        lock_request_free(request);
    }
}

static void test_many_locks_are_left_to_reclaimer(void **state)
{
    (void)state;
    struct fixture f;
    size_t before = reclaim_stop_used();
    setup(&f);
    reclaim_stop_begin();
    size_t none = 0;
    for (int time = 0; time < 2; time++) { /* the table keeps a size after the first time */
        lock_documents(&f, &f.released, FEW);
        assert_int_equal(lock_release_all(&f.table, &f.released), FEW);
        assert_true(time == 0 || reclaim_stop_used() == none);
        none = reclaim_stop_used();
    }

    lock_documents(&f, &f.released, MANY);
    size_t bytes = reclaim_stop_used() - none;
    assert_int_equal(lock_release_all(&f.table, &f.released), MANY);
    assert_true(reclaim_stop_used() - none > bytes / 2);
    lock_table_check(&f.table);
    assert_true(lock_table_is_idle(&f.table));
    reclaim_stop_end();
    assert_int_equal(f.table.resources.bytes, sizeof(struct resource));
    teardown(&f);
    assert_int_equal(reclaim_stop_used(), before);
}

/* Another owner has locks on half of the documents, and acquires others while the released ones are freed. */
static void test_table_is_used_while_locks_are_freed(void **state)
{
    enum { ROUNDS = 10 };
    (void)state;
    struct fixture f;
    setup(&f);
    assert_int_equal(reclaim_begin(), 0);
    for (int round = 0; round < ROUNDS; round++) {
        lock_documents(&f, &f.released, MANY);
        lock_documents(&f, &f.stays, MANY / 2);
        assert_int_equal(lock_release_all(&f.table, &f.released), MANY);
        lock_documents(&f, &f.stays, MANY);
        lock_table_check(&f.table);
        assert_int_equal(lock_release_all(&f.table, &f.stays), MANY);
    }
    reclaim_end();
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_locks_are_left_to_reclaimer),
        cmocka_unit_test(test_table_is_used_while_locks_are_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
