/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: what one call of the table of locks may cost grows no faster than what clients hold and await (README-locks.md, "The work of a call").
 * Method: for each row of that table the worst that its two numbers can do, once with n and once with 2n; looks are counted, and never time.
 */
#include "../../lib/unit.h"

#include <stdio.h>

#include "base/alloc.h"
#include "core/locks/lock_internal.h"

/* Many owners; each has a request at most that waits. */
struct crowd {
    struct lock_table table;
    struct lock_owner *owners;
    struct lock_request **requests;
    size_t count;
    size_t circles;
    const struct lock_request *victim;
};

static void on_deadlock(void *context, struct lock_request *victim, const struct wait_edge *steps, size_t count,
                        bool requeued)
{
    struct crowd *crowd = context;
    (void)steps;
    (void)count;
    (void)requeued;
    crowd->circles++;
    crowd->victim = victim;
}

static void setup(struct crowd *crowd, size_t count)
{
    *crowd = (struct crowd){.count = count};
    lock_table_init(&crowd->table, &(struct lock_hooks){.deadlock = on_deadlock, .context = crowd});
    crowd->owners = mem_alloc(count * sizeof *crowd->owners);
    crowd->requests = mem_zalloc(count * sizeof *crowd->requests);
    for (size_t i = 0; i < count; i++) {
        lock_table_set_ts(&crowd->table, 100 + i);
        lock_owner_init(&crowd->table, &crowd->owners[i], NULL, NULL);
    }
}

static void teardown(struct crowd *crowd)
{
    lock_table_check(&crowd->table);
    for (size_t i = crowd->count; i-- > 0;)
        lock_request_free(crowd->requests[i]);
    for (size_t i = 0; i < crowd->count; i++) {
        lock_release_all(&crowd->table, &crowd->owners[i]);
        lock_owner_deinit(&crowd->owners[i]);
    }
    assert_true(lock_table_is_idle(&crowd->table));
    lock_table_deinit(&crowd->table);
    mem_free(crowd->owners);
    mem_free(crowd->requests);
}

/* A document, or with no number the directory; with no path, the index. */
static struct resource_name place(const char *path, const char *id)
{
    struct resource_name name = {.index = SLICE_LIT("fs")};
    if (path != NULL)
        name.path = slice_from(path);
    if (id != NULL) {
        name.type = SLICE_LIT("_doc");
        name.id = slice_from(id);
    }
    return name;
}

static const char *numbered(size_t number)
{
    static char text[24];
    snprintf(text, sizeof text, "%zu", number);
    return text;
}

static int ask(struct crowd *crowd, size_t at, enum lock_mode mode, struct resource_name name)
{
    struct lock_spec want = {name, mode, false};
    struct lock_request *request = lock_request_new(&crowd->table, &crowd->owners[at], &want, 1, NULL);
    int outcome = lock_request_start(request, true);
    if (outcome == LOCK_WAITS)
        crowd->requests[at] = request;
    else
        lock_request_free(request);
    return outcome;
}

static void take(struct crowd *crowd, size_t at, enum lock_mode mode, struct resource_name name)
{
    assert_int_equal(ask(crowd, at, mode, name), LOCK_GRANTED);
}

static void begin_wait(struct crowd *crowd, size_t at, enum lock_mode mode, struct resource_name name)
{
    assert_int_equal(ask(crowd, at, mode, name), LOCK_WAITS);
}

static size_t granted(struct crowd *crowd)
{
    size_t count = 0;
    while (lock_table_next_granted(&crowd->table) != NULL)
        count++;
    return count;
}

/* All but one read a document in an index, of which that one reads the whole. Returns: what it takes to write there, to say why not, and to wait. */
static uint64_t one_among_many(size_t count)
{
    enum { TOLD = 100 };
    struct lock_conflict conflicts[TOLD];
    struct crowd crowd;
    setup(&crowd, count + 2);
    for (size_t i = 0; i < count; i++)
        take(&crowd, i, LOCK_S, place(NULL, numbered(i)));
    take(&crowd, count, LOCK_S, place(NULL, NULL));
    uint64_t before = lock_table_work(&crowd.table);
    begin_wait(&crowd, count + 1, LOCK_X, place(NULL, "new"));
    assert_int_equal(lock_request_conflicts(crowd.requests[count + 1], conflicts, TOLD), 1);
    assert_ptr_equal(conflicts[0].owner, &crowd.owners[count]);
    uint64_t walked = lock_table_work(&crowd.table) - before;
    teardown(&crowd);
    return walked;
}

/* Goal: who stands in the way is found among many who do not. */
static void test_one_among_many(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 100 };
    assert_in_range(one_among_many(FEW), 1, LOOKS);
    assert_in_range(one_among_many(2 * FEW), 1, LOOKS);
}

/* One holds a tenth as many documents as there are who wait for them, in turn. Returns: what it takes to move them all, at one moment. */
static uint64_t moved(size_t count, bool backwards)
{
    struct crowd crowd;
    size_t documents = count / 10;
    setup(&crowd, 2 * count);
    for (size_t i = 0; i < documents; i++)
        take(&crowd, 0, LOCK_X, place("/a", numbered(i)));
    for (size_t i = 1; i < count; i++)
        begin_wait(&crowd, i, LOCK_X, place("/a", numbered(i % documents)));
    for (size_t i = count; i < 2 * count; i++) /* and behind them, who want the place where they were */
        begin_wait(&crowd, i, LOCK_S, place("/a", NULL));
    uint64_t before = lock_table_work(&crowd.table);
    lock_table_suspend_grants(&crowd.table);
    for (size_t i = 0; i < documents; i++) {
        struct resource_name name = place("/a", numbered(backwards ? documents - 1 - i : i));
        lock_table_move_document(&crowd.table, &name, SLICE_LIT("/b"));
    }
    lock_table_resume_grants(&crowd.table);
    uint64_t walked = lock_table_work(&crowd.table) - before;
    assert_int_equal(granted(&crowd), count);
    teardown(&crowd);
    return walked;
}

/* Goal: a rename, a commit or a roll back that moves many documents takes as much as there are, and wait for them. */
static void test_moves(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 100 };
    for (int backwards = 0; backwards < 2; backwards++) {
        uint64_t few = moved(FEW, backwards), many = moved(2 * FEW, backwards);
        assert_in_range(few, FEW, LOOKS * FEW);
        assert_in_range(many, few, 2 * few + few / 5);
    }
}

/* Each holds a document and waits for that of the next, and all of these move. Returns: what that takes. */
static uint64_t moved_in_chain(size_t count)
{
    struct crowd crowd;
    setup(&crowd, count);
    for (size_t i = 0; i < count; i++)
        take(&crowd, i, LOCK_X, place("/a", numbered(i)));
    for (size_t i = 0; i + 1 < count; i++)
        begin_wait(&crowd, i, LOCK_X, place("/a", numbered(i + 1)));
    uint64_t before = lock_table_work(&crowd.table);
    lock_table_suspend_grants(&crowd.table);
    for (size_t i = 0; i < count; i++) {
        struct resource_name name = place("/a", numbered(i));
        lock_table_move_document(&crowd.table, &name, SLICE_LIT("/b"));
    }
    lock_table_resume_grants(&crowd.table);
    uint64_t walked = lock_table_work(&crowd.table) - before;
    assert_int_equal(crowd.circles, 0);
    teardown(&crowd);
    return walked;
}

/* Goal: where each of many could have closed a circle, one search serves them all. */
static void test_searches_of_many(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 100 };
    assert_in_range(moved_in_chain(FEW), FEW, 2 * LOCK_CYCLE_WORK_MAX + LOOKS * FEW);
    assert_in_range(moved_in_chain(2 * FEW), FEW, 2 * LOCK_CYCLE_WORK_MAX + 2 * LOOKS * FEW);
}

/* All but the oldest hold a document in a directory and wait for one of its own, when it asks for the directory. Returns: what that takes. */
static uint64_t closed(size_t count, struct crowd *crowd, int *ret_outcome)
{
    setup(crowd, count + 1);
    take(crowd, 0, LOCK_X, place("/b", "own"));
    for (size_t i = 1; i <= count; i++)
        take(crowd, i, LOCK_X, place("/a", numbered(i)));
    for (size_t i = 1; i <= count; i++)
        begin_wait(crowd, i, LOCK_X, place("/b", "own"));
    uint64_t before = lock_table_work(&crowd->table);
    *ret_outcome = ask(crowd, 0, LOCK_X, place("/a", NULL));
    return lock_table_work(&crowd->table) - before;
}

/* Goal: a request that closes many circles has others end for it, until that takes too long: then it ends itself. */
static void test_many_circles(void **state)
{
    (void)state;
    enum { FEW = 50, MANY = 3000, LOOKS = 100 };
    struct crowd crowd;
    int outcome;
    (void)closed(FEW, &crowd, &outcome);
    assert_int_equal(outcome, LOCK_WAITS);
    assert_int_equal(crowd.circles, FEW);
    teardown(&crowd);
    uint64_t walked = closed(MANY, &crowd, &outcome);
    assert_int_equal(outcome, LOCK_DEADLOCK);
    assert_in_range(crowd.circles, 2, MANY / 2);
    assert_in_range(walked, LOCK_CYCLE_WORK_MAX, LOCK_CYCLE_WORK_MAX + LOOKS * MANY);
    teardown(&crowd);
}

/* Some hold documents in a directory for which as many wait; all of them want another one there, which becomes free. Returns: what that takes. */
static uint64_t given_way(size_t count)
{
    struct crowd crowd;
    struct resource_name last = place("/a", "last");
    setup(&crowd, 2 * count + 1);
    for (size_t i = 0; i < count; i++)
        take(&crowd, i, LOCK_S, place("/a", numbered(i)));
    take(&crowd, 2 * count, LOCK_X, last);
    for (size_t i = count; i < 2 * count; i++)
        begin_wait(&crowd, i, LOCK_X, place("/a", NULL));
    for (size_t i = 0; i < count; i++)
        begin_wait(&crowd, i, LOCK_S, last);
    uint64_t before = lock_table_work(&crowd.table);
    assert_true(lock_release(&crowd.table, &crowd.owners[2 * count], &last));
    uint64_t walked = lock_table_work(&crowd.table) - before;
    assert_int_equal(granted(&crowd), count);
    teardown(&crowd);
    return walked;
}

/* Goal: what becomes free goes to many, past many who wait for them, with a few looks each. */
static void test_past_many(void **state)
{
    (void)state;
    enum { FEW = 500, LOOKS = 100 };
    uint64_t few = given_way(FEW), many = given_way(2 * FEW);
    assert_in_range(few, FEW, LOOKS * FEW);
    assert_in_range(many, few, 2 * few + few / 5);
}

/* Many read a directory, and one has as many documents of it in one request. Returns: what it takes to find the last of either by its token. */
static uint64_t token_found(size_t count)
{
    struct crowd crowd;
    struct lock_spec *wants = mem_zalloc(count * sizeof *wants);
    char(*ids)[24] = mem_alloc(count * sizeof *ids);
    struct lock_owner *owner = NULL;
    setup(&crowd, count + 1);
    for (size_t i = 0; i < count; i++) {
        lock_table_set_ts(&crowd.table, 10 * count + i);
        take(&crowd, i, LOCK_S, place("/a", NULL));
        (void)snprintf(ids[i], sizeof ids[i], "%zu", i);
        wants[i] = (struct lock_spec){place("/a", ids[i]), LOCK_S, false};
    }
    lock_table_set_ts(&crowd.table, 20 * count);
    struct lock_request *request = lock_request_new(&crowd.table, &crowd.owners[count], wants, count, NULL);
    assert_int_equal(lock_request_start(request, false), LOCK_GRANTED);
    lock_request_free(request);
    uint64_t before = lock_table_work(&crowd.table);
    assert_true(lock_table_find_token(&crowd.table, 11 * count - 1, &wants[0].on, &owner));
    assert_ptr_equal(owner, &crowd.owners[count - 1]);
    assert_true(lock_table_find_token(&crowd.table, 20 * count, &wants[count - 1].on, &owner));
    assert_ptr_equal(owner, &crowd.owners[count]);
    assert_false(lock_table_find_token(&crowd.table, 20 * count + 1, &wants[0].on, NULL));
    uint64_t walked = lock_table_work(&crowd.table) - before;
    assert_true(lock_release(&crowd.table, &crowd.owners[count], &wants[0].on));
    assert_false(lock_table_find_token(&crowd.table, 20 * count, &wants[0].on, NULL));
    teardown(&crowd);
    mem_free(ids);
    mem_free(wants);
    return walked;
}

/* Goal: a write that names a token does not look at all locks above it. */
static void test_tokens(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 100 };
    assert_in_range(token_found(FEW), 1, LOOKS);
    assert_in_range(token_found(2 * FEW), 1, LOOKS);
}

/* One has locked a directory for which many wait. Returns: what it takes to find that a write of its own there is free. */
static uint64_t write_past(size_t count)
{
    struct crowd crowd;
    struct lock_owner ward;
    setup(&crowd, count + 2);
    take(&crowd, 0, LOCK_X, place("/a", NULL));
    for (size_t i = 1; i < count; i++)
        begin_wait(&crowd, i, LOCK_X, place("/a", NULL));
    take(&crowd, count, LOCK_S, place("/b", "1"));
    begin_wait(&crowd, 0, LOCK_X,
               place("/b", "1")); /* it waits for something itself, and so does a transaction of it */
    lock_owner_init(&crowd.table, &ward, &crowd.owners[0], NULL);
    struct lock_spec own = {place("/b", "1"), LOCK_X, false}, want = {place("/a", "new"), LOCK_X, false};
    struct lock_request *request = lock_request_new(&crowd.table, &ward, &own, 1, NULL);
    assert_int_equal(lock_request_start(request, true), LOCK_WAITS);
    uint64_t before = lock_table_work(&crowd.table);
    assert_true(lock_table_can_grant(&crowd.table, &crowd.owners[0], &want));
    assert_true(lock_table_can_grant_ignoring_waiters(&crowd.table, &crowd.owners[0], &want));
    uint64_t walked = lock_table_work(&crowd.table) - before;
    assert_false(lock_table_can_grant(&crowd.table, &crowd.owners[1], &want));
    lock_request_free(request);
    lock_owner_deinit(&ward);
    teardown(&crowd);
    return walked;
}

/* Goal: each item of a bulk in a directory that is locked by its session costs the same, however many wait for the directory. */
static void test_writes_past_many(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 100 };
    assert_in_range(write_past(FEW), 1, LOOKS);
    assert_in_range(write_past(2 * FEW), 1, LOOKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_among_many),   cmocka_unit_test(test_moves),
        cmocka_unit_test(test_searches_of_many), cmocka_unit_test(test_many_circles),
        cmocka_unit_test(test_past_many),        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_writes_past_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
