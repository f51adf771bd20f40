/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the cases of README-locks.md that a person would try first, and its extremes: many waiters, deep paths.
 * Method: a table, a handful of owners, each case told in order. tests/sim/lock_sim.c covers the rest by chance.
 */
#include "../../lib/unit.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/rand.h"
#include "core/locks/lock_internal.h"

enum { OWNERS = 4 };

struct fixture {
    struct lock_table table;
    struct lock_owner owners[OWNERS]; /* 3 belongs to 0 */
    size_t circles;
    size_t circle_length;
    const struct lock_owner *victim;
};

static void on_deadlock(void *context, struct lock_request *victim, const struct wait_edge *steps, size_t count,
                        bool requeued)
{
    (void)steps;
    (void)requeued;
    struct fixture *f = context;
    f->circles++;
    f->circle_length = count;
    f->victim = lock_request_owner(victim);
}

static void setup(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    lock_table_init(&f->table, &(struct lock_hooks){.deadlock = on_deadlock, .context = f});
    lock_table_set_ts(&f->table, 100);
    for (size_t i = 0; i < OWNERS; i++)
        lock_owner_init(&f->table, &f->owners[i], i == 3 ? &f->owners[0] : NULL, NULL);
}

static void teardown(struct fixture *f)
{
    for (size_t i = 0; i < OWNERS; i++)
        lock_release_all(&f->table, &f->owners[i]);
    for (size_t i = 0; i < OWNERS; i++)
        lock_owner_deinit(&f->owners[i]);
    assert_true(lock_table_is_idle(&f->table));
    lock_table_deinit(&f->table);
}

/* "everything", "fs", "fs:/a/b", "fs/1" or "fs:/a/b#1" (document 1, which lies in /a/b). */
static struct resource_name named(const char *text)
{
    struct slice all = slice_from(text);
    struct resource_name name = {0};
    if (slice_is(all, "everything"))
        return name;
    size_t colon = slice_find_byte(all, ':');
    size_t hash = slice_find_byte(all, '#');
    size_t end = colon < hash ? colon : hash;
    name.index = slice_make(all.data, end);
    if (colon < all.len)
        name.path = slice_make(all.data + colon + 1, hash - colon - 1);
    if (hash < all.len) {
        name.type = SLICE_LIT("_doc");
        name.id = slice_from_offset(all, hash + 1);
    }
    return name;
}

static struct lock_request *request_of(struct fixture *f, size_t owner, enum lock_mode mode, const char *name)
{
    struct lock_spec want = {named(name), mode, false};
    return lock_request_new(&f->table, &f->owners[owner], &want, 1, f);
}

/* Asks without waiting, keeps what is granted. */
static int try_lock(struct fixture *f, size_t owner, enum lock_mode mode, const char *name)
{
    struct lock_request *request = request_of(f, owner, mode, name);
    int outcome = lock_request_start(request, false);
    lock_request_free(request);
    lock_table_check(&f->table);
    return outcome;
}

static struct lock_request *wait_lock(struct fixture *f, size_t owner, enum lock_mode mode, const char *name)
{
    struct lock_request *request = request_of(f, owner, mode, name);
    assert_int_equal(lock_request_start(request, true), LOCK_WAITS);
    lock_table_check(&f->table);
    return request;
}

static bool release(struct fixture *f, size_t owner, const char *text)
{
    struct resource_name name = named(text);
    return lock_release(&f->table, &f->owners[owner], &name);
}

/* The next granted request must be this one. */
static void assert_granted(struct fixture *f, struct lock_request *request)
{
    assert_ptr_equal(lock_table_next_granted(&f->table), request);
    assert_int_equal(lock_request_state(request), LOCK_STATE_GRANTED);
    lock_request_free(request);
}

static void test_modes(void **state)
{
    (void)state;
    static const bool together[3][3] = {{true, true, false}, {true, false, false}, {false, false, false}};
    static const char *const pairs[][2] = {
        {"fs#1", "fs#1"},     {"fs:/a", "fs:/a"},     {"fs", "fs"},           {"everything", "everything"},
        {"everything", "fs"}, {"everything", "fs#1"}, {"fs", "fs:/a/b"},      {"fs", "fs#1"},
        {"fs:/", "fs:/a"},    {"fs:/a", "fs:/a/b/c"}, {"fs:/a", "fs:/a/b#1"}, {"fs:/a//b/", "fs:/a/b"},
    };
    struct fixture f;
    setup(&f);
    for (size_t pair = 0; pair < sizeof pairs / sizeof pairs[0]; pair++)
        for (int held = 0; held < 3; held++)
            for (int asked = 0; asked < 3; asked++)
                for (int swap = 0; swap < 2; swap++) {
                    assert_int_equal(try_lock(&f, 1, LOCK_S + held, pairs[pair][swap]), LOCK_GRANTED);
                    int expected = together[held][asked] ? LOCK_GRANTED : LOCK_CONFLICT;
                    assert_int_equal(try_lock(&f, 2, LOCK_S + asked, pairs[pair][!swap]), expected);
                    lock_release_all(&f.table, &f.owners[1]);
                    lock_release_all(&f.table, &f.owners[2]);
                }
    teardown(&f);
}

static void test_unrelated(void **state)
{
    (void)state;
    static const char *const all[] = {"fs:/a/b", "fs:/a/c", "fs:/ab", "fs:/b", "fs:/a#1", "fs#2", "other"};
    struct fixture f;
    setup(&f);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_int_equal(try_lock(&f, i % 3, LOCK_X, all[i]), LOCK_GRANTED);
    teardown(&f);
}

static void test_order(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    assert_int_equal(try_lock(&f, 0, LOCK_S, "fs#1"), LOCK_GRANTED);
    struct lock_request *exclusive = wait_lock(&f, 1, LOCK_X, "fs");
    /* Goes with what is held, but not with what waits ahead. */
    assert_int_equal(try_lock(&f, 2, LOCK_S, "fs#1"), LOCK_CONFLICT);
    struct lock_request *shared = wait_lock(&f, 2, LOCK_S, "fs#1");
    assert_int_equal(lock_request_queue_position(shared), 1);
    assert_true(release(&f, 0, "fs#1"));
    assert_granted(&f, exclusive);
    assert_null(lock_table_next_granted(&f.table));
    assert_true(release(&f, 1, "fs"));
    assert_granted(&f, shared);
    teardown(&f);
}

static void test_upgrade(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    assert_int_equal(try_lock(&f, 0, LOCK_S, "fs#1"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 1, LOCK_S, "fs#1"), LOCK_GRANTED);
    struct lock_request *other = wait_lock(&f, 2, LOCK_X, "fs#1");
    struct lock_request *upgrade = wait_lock(&f, 0, LOCK_X, "fs#1");
    assert_true(lock_request_is_upgrade(upgrade));
    assert_true(release(&f, 1, "fs#1"));
    assert_granted(&f, upgrade);
    assert_false(release(&f, 1, "fs#1"));
    assert_int_equal(f.owners[0].lock_count, 1);
    /* What is held is taken again at once, whoever waits. */
    assert_int_equal(try_lock(&f, 0, LOCK_X, "fs#1"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 0, LOCK_S, "fs#1"), LOCK_GRANTED);
    assert_true(release(&f, 0, "fs#1"));
    assert_granted(&f, other);
    teardown(&f);
}

static void test_deadlocks(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    /* Both would upgrade. */
    assert_int_equal(try_lock(&f, 0, LOCK_S, "fs#1"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 1, LOCK_S, "fs#1"), LOCK_GRANTED);
    struct lock_request *first = wait_lock(&f, 0, LOCK_X, "fs#1");
    struct lock_request *second = request_of(&f, 1, LOCK_X, "fs#1");
    assert_int_equal(lock_request_start(second, true), LOCK_DEADLOCK);
    lock_request_free(second);
    assert_int_equal(f.circle_length, 2);
    lock_release_all(&f.table, &f.owners[1]);
    assert_granted(&f, first);
    lock_release_all(&f.table, &f.owners[0]);

    /* Three, and the youngest is not the one that closes the circle. */
    assert_int_equal(try_lock(&f, 0, LOCK_X, "fs#1"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 1, LOCK_X, "fs:/a"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 2, LOCK_X, "other"), LOCK_GRANTED);
    struct lock_request *a = wait_lock(&f, 1, LOCK_S, "fs#1");
    struct lock_request *b = wait_lock(&f, 2, LOCK_S, "fs:/a/b#7");
    struct lock_request *c = wait_lock(&f, 0, LOCK_S, "other#1");
    assert_int_equal(f.circles, 2);
    assert_int_equal(f.circle_length, 3);
    assert_ptr_equal(f.victim, &f.owners[2]);
    assert_ptr_equal(lock_table_next_victim(&f.table), b);
    lock_request_free(b);
    lock_release_all(&f.table, &f.owners[2]);
    assert_granted(&f, c);
    lock_release_all(&f.table, &f.owners[0]);
    assert_granted(&f, a);
    teardown(&f);
}

/* Two who take U first cannot do that. */
static void test_update(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    assert_int_equal(try_lock(&f, 2, LOCK_S, "fs#1"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 0, LOCK_U, "fs#1"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 0, LOCK_U, "fs:/d"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 2, LOCK_S, "fs:/d/e#2"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 1, LOCK_U, "fs:/d/e#2"), LOCK_CONFLICT);
    struct lock_request *second = wait_lock(&f, 1, LOCK_U, "fs#1");
    struct lock_request *write = wait_lock(&f, 0, LOCK_X, "fs#1");
    assert_true(release(&f, 2, "fs#1"));
    assert_granted(&f, write);
    assert_true(release(&f, 0, "fs#1"));
    assert_granted(&f, second);
    assert_int_equal(f.circles, 0);
    teardown(&f);
}

static void test_session_of_transaction(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    assert_int_equal(try_lock(&f, 0, LOCK_X, "fs:/a"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 3, LOCK_X, "fs:/a#1"), LOCK_GRANTED);
    /* The session does not pass its transaction. */
    assert_int_equal(try_lock(&f, 0, LOCK_S, "fs:/a#1"), LOCK_CONFLICT);
    struct lock_spec want = {named("fs:/a#2"), LOCK_X, false};
    assert_true(lock_table_can_grant(&f.table, &f.owners[0], &want));
    assert_false(lock_table_can_grant(&f.table, &f.owners[1], &want));
    assert_false(lock_table_can_grant(&f.table, NULL, &want));
    want.on = named("fs:/b#2");
    assert_true(lock_table_can_grant(&f.table, NULL, &want));
    teardown(&f);
}

static void test_tokens(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    assert_int_equal(try_lock(&f, 0, LOCK_U, "fs:/a"), LOCK_GRANTED);
    struct resource_name below = named("fs:/a/b#1");
    struct resource_name beside = named("fs:/b#2");
    struct lock_owner *owner = NULL;
    assert_true(lock_table_find_token(&f.table, 100, &below, &owner));
    assert_ptr_equal(owner, &f.owners[0]);
    assert_false(lock_table_find_token(&f.table, 100, &beside, NULL));
    assert_false(lock_table_find_token(&f.table, 99, &below, NULL));
    lock_table_set_ts(&f.table, 200);
    /* Taking it again changes nothing, taking more of it does. */
    assert_int_equal(try_lock(&f, 0, LOCK_S, "fs:/a"), LOCK_GRANTED);
    assert_true(lock_table_find_token(&f.table, 100, &below, NULL));
    assert_int_equal(try_lock(&f, 0, LOCK_X, "fs:/a"), LOCK_GRANTED);
    assert_true(lock_table_find_token(&f.table, 200, &below, NULL));
    assert_false(lock_table_find_token(&f.table, 100, &below, NULL));
    teardown(&f);
}

/* Who is granted a lock in the same step as another has a token of his own, and takes it with him when he goes. */
static void test_tokens_of_one_step(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    assert_int_equal(try_lock(&f, 0, LOCK_X, "fs:/a"), LOCK_GRANTED);
    lock_table_set_ts(&f.table, 200);
    struct lock_request *first = wait_lock(&f, 1, LOCK_S, "fs:/a");
    struct lock_request *second = wait_lock(&f, 2, LOCK_S, "fs:/a#1");
    assert_true(release(&f, 0, "fs:/a"));
    assert_int_equal(lock_table_last_ts(&f.table), 201);
    assert_granted(&f, first);
    assert_granted(&f, second);
    struct resource_name document = named("fs:/a#1");
    struct lock_owner *owner = NULL;
    assert_true(lock_table_find_token(&f.table, 200, &document, &owner));
    assert_ptr_equal(owner, &f.owners[1]);
    assert_true(lock_table_find_token(&f.table, 201, &document, &owner));
    assert_ptr_equal(owner, &f.owners[2]);
    assert_true(release(&f, 1, "fs:/a"));
    assert_false(lock_table_find_token(&f.table, 200, &document, NULL));
    assert_true(lock_table_find_token(&f.table, 201, &document, NULL));
    teardown(&f);
}

/* A set is granted whole: while one part is not free nothing of it is held. */
static void test_sets(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct lock_spec wants[2] = {{named("fs#1"), LOCK_X, false}, {named("fs#2"), LOCK_X, false}};
    assert_int_equal(try_lock(&f, 0, LOCK_X, "fs#2"), LOCK_GRANTED);
    struct lock_request *set = lock_request_new(&f.table, &f.owners[1], wants, 2, NULL);
    assert_int_equal(lock_request_start(set, false), LOCK_CONFLICT);
    struct lock_conflict conflicts[4];
    assert_int_equal(lock_request_conflicts(set, conflicts, 4), 1);
    assert_ptr_equal(conflicts[0].owner, &f.owners[0]);
    assert_int_equal(lock_request_start(set, true), LOCK_WAITS);
    assert_int_equal(f.owners[1].lock_count, 0);
    assert_true(release(&f, 0, "fs#2"));
    assert_granted(&f, set);
    assert_int_equal(f.owners[1].lock_count, 2);
    teardown(&f);
}

/* A document that moves takes its locks and its waiters along. */
static void test_move(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    assert_int_equal(try_lock(&f, 0, LOCK_X, "fs:/a#1"), LOCK_GRANTED);
    struct lock_request *waits = wait_lock(&f, 1, LOCK_X, "fs:/a#1");
    assert_int_equal(try_lock(&f, 2, LOCK_X, "fs:/a"), LOCK_CONFLICT);
    struct resource_name name = named("fs:/a#1");
    lock_table_move_document(&f.table, &name, SLICE_LIT("/b"));
    lock_table_check(&f.table);
    assert_int_equal(try_lock(&f, 2, LOCK_X, "fs:/a"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 2, LOCK_X, "fs:/b"), LOCK_CONFLICT);
    assert_true(release(&f, 0, "fs#1"));
    assert_granted(&f, waits);
    assert_int_equal(try_lock(&f, 2, LOCK_X, "fs:/b"), LOCK_CONFLICT);
    teardown(&f);
}

enum { CROWD = 10000 };

/* Ten thousand wait for one document: each hand-over grants the next and no other. */
static void test_crowd(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct lock_owner *crowd = mem_alloc(CROWD * sizeof *crowd);
    struct lock_request **requests = mem_alloc(CROWD * sizeof *requests);
    struct lock_spec want = {named("fs:/a/b#1"), LOCK_X, false};
    struct lock_spec own = {named("mine"), LOCK_S, false};
    for (size_t i = 0; i < CROWD; i++) {
        lock_owner_init(&f.table, &crowd[i], NULL, NULL);
        struct lock_request *first = lock_request_new(&f.table, &crowd[i], &own, 1, NULL);
        assert_int_equal(lock_request_start(first, false), LOCK_GRANTED);
        lock_request_free(first);
        requests[i] = lock_request_new(&f.table, &crowd[i], &want, 1, NULL);
        assert_int_equal(lock_request_start(requests[i], true), i == 0 ? LOCK_GRANTED : LOCK_WAITS);
        if (i > 0)
            assert_int_equal(lock_request_queue_position(requests[i]), i - 1);
        assert_null(requests[i]->watch_next); /* no two watch the same: a chain, and no crowd around its head */
    }
    lock_request_free(requests[0]);
    for (size_t i = 0; i < CROWD; i++) {
        lock_release_all(&f.table, &crowd[i]);
        lock_owner_deinit(&crowd[i]);
        if (i + 1 < CROWD)
            assert_granted(&f, requests[i + 1]);
        assert_null(lock_table_next_granted(&f.table));
    }
    mem_free(crowd);
    mem_free(requests);
    teardown(&f);
}

/* Each of a crowd has an owner of its own, and a request at most. */
struct crowd {
    struct fixture f;
    struct lock_owner *owners;
    struct lock_request **requests;
    size_t count;
};

static void crowd_setup(struct crowd *crowd, size_t count)
{
    setup(&crowd->f);
    crowd->count = count;
    crowd->owners = mem_alloc(count * sizeof *crowd->owners);
    crowd->requests = mem_zalloc(count * sizeof *crowd->requests);
    for (size_t i = 0; i < count; i++)
        lock_owner_init(&crowd->f.table, &crowd->owners[i], NULL, NULL);
}

static void crowd_teardown(struct crowd *crowd)
{
    lock_table_check(&crowd->f.table);
    for (size_t i = crowd->count; i-- > 0;)
        lock_request_free(crowd->requests[i]);
    for (size_t i = 0; i < crowd->count; i++) {
        lock_release_all(&crowd->f.table, &crowd->owners[i]);
        lock_owner_deinit(&crowd->owners[i]);
    }
    mem_free(crowd->owners);
    mem_free(crowd->requests);
    teardown(&crowd->f);
}

/* Has one ask, and keeps its request while it waits. */
static void crowd_ask(struct crowd *crowd, size_t at, enum lock_mode mode, struct resource_name name, int outcome)
{
    struct lock_spec want = {name, mode, false};
    struct lock_request *request = lock_request_new(&crowd->f.table, &crowd->owners[at], &want, 1, NULL);
    assert_int_equal(lock_request_start(request, true), outcome);
    if (outcome == LOCK_WAITS)
        crowd->requests[at] = request;
    else
        lock_request_free(request);
}

/* Has one take X on a document of its own in index a. */
static void crowd_take_own(struct crowd *crowd, size_t at)
{
    char id[24];
    snprintf(id, sizeof id, "%zu", at);
    crowd_ask(crowd, at, LOCK_X, (struct resource_name){SLICE_LIT("a"), SLICE_NONE, SLICE_LIT("_doc"), slice_from(id)},
              LOCK_GRANTED);
}

/* All hold a document in a, which somebody wants as a whole, and wait for one in b. Returns: what the last one's request looked at. */
static uint64_t walked_in_queue(size_t count)
{
    struct crowd crowd;
    crowd_setup(&crowd, count);
    assert_int_equal(try_lock(&crowd.f, 0, LOCK_X, "b#1"), LOCK_GRANTED);
    for (size_t i = 0; i < count; i++)
        crowd_take_own(&crowd, i);
    struct lock_request *whole = wait_lock(&crowd.f, 1, LOCK_X, "a");
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        before = crowd.f.table.work;
        crowd_ask(&crowd, i, LOCK_X, named("b#1"), LOCK_WAITS);
    }
    uint64_t walked = crowd.f.table.work - before;
    lock_request_free(whole);
    crowd_teardown(&crowd);
    return walked;
}

/* The same, but that what the second half waits for is held, in S, by the first half. */
static uint64_t walked_over_holders(size_t count)
{
    struct crowd crowd;
    crowd_setup(&crowd, count);
    for (size_t i = 0; i < count; i++)
        if (i < count / 2)
            crowd_ask(&crowd, i, LOCK_S, named("b#1"), LOCK_GRANTED);
        else
            crowd_take_own(&crowd, i);
    struct lock_request *whole = wait_lock(&crowd.f, 1, LOCK_X, "a");
    uint64_t before = 0;
    for (size_t i = count / 2; i < count; i++) {
        before = crowd.f.table.work;
        crowd_ask(&crowd, i, LOCK_X, named("b#1"), LOCK_WAITS);
    }
    uint64_t walked = crowd.f.table.work - before;
    lock_request_free(whole);
    crowd_teardown(&crowd);
    return walked;
}

/* Those in the queue wait for X and for S in turn: neither bit's requests stand for all of the other's. */
static uint64_t walked_in_two_lines(size_t count)
{
    struct crowd crowd;
    crowd_setup(&crowd, count);
    assert_int_equal(try_lock(&crowd.f, 0, LOCK_X, "b#1"), LOCK_GRANTED);
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            crowd_take_own(&crowd, i);
    }
    struct lock_request *whole = wait_lock(&crowd.f, 1, LOCK_X, "a");
    for (size_t i = 0; i < count; i++) {
        before = crowd.f.table.work;
        crowd_ask(&crowd, i, i % 2 == 0 ? LOCK_X : LOCK_S, named("b#1"), LOCK_WAITS);
    }
    uint64_t walked = crowd.f.table.work - before;
    crowd_ask(&crowd, 1, LOCK_S, named("c#2"), LOCK_GRANTED);
    struct lock_request *other = wait_lock(&crowd.f, 2, LOCK_X, "c");
    before = crowd.f.table.work;
    crowd_ask(&crowd, 1, LOCK_S, named("c#1"), LOCK_GRANTED); /* and a search with no request of its own that is new */
    walked += crowd.f.table.work - before;
    lock_request_free(other);
    lock_request_free(whole);
    crowd_teardown(&crowd);
    return walked;
}

/* Goal: the search for circles looks at each request and hold a few times, however many there are and wait for each other. */
static void test_search_grows_with_the_table(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 16 };
    static uint64_t (*const crowds[])(size_t) = {walked_in_queue, walked_over_holders, walked_in_two_lines};
    for (size_t i = 0; i < sizeof crowds / sizeof *crowds; i++) {
        uint64_t few = crowds[i](FEW), many = crowds[i](2 * FEW);
        assert_in_range(few, FEW / 4, LOOKS * FEW);
        assert_in_range(many, few, 2 * few + few / 10);
    }
}

/* Has one take X on documents of fs with one request; the one in the middle lies in `middle`, if that is given, the others in `path`. */
static void take_many(struct crowd *crowd, size_t at, const char *path, size_t count, const char *middle)
{
    struct arena arena = ARENA_INIT;
    struct lock_spec *wants = arena_zalloc(&arena, count * sizeof *wants);
    for (size_t i = 0; i < count; i++) {
        struct slice lies = slice_from(middle != NULL && i == count / 2 ? middle : path);
        wants[i] = (struct lock_spec){
            {SLICE_LIT("fs"), lies, SLICE_LIT("_doc"), arena_printf(&arena, "%zu-%zu%.*s", at, i, SLICE_ARG(lies))},
            LOCK_X};
    }
    struct lock_request *request = lock_request_new(&crowd->f.table, &crowd->owners[at], wants, count, NULL);
    assert_int_equal(lock_request_start(request, false), LOCK_GRANTED);
    lock_request_free(request);
    arena_deinit(&arena);
}

/* Asks for X on /a, and is told who blocks that. Returns: how many conflicts, and what was looked at to tell them. */
static size_t told(struct crowd *crowd, struct lock_conflict *ret_conflicts, size_t max, uint64_t *ret_walked)
{
    struct lock_request *request = request_of(&crowd->f, 0, LOCK_X, "fs:/a");
    assert_int_equal(lock_request_start(request, false), LOCK_CONFLICT);
    uint64_t before = crowd->f.table.work;
    size_t count = lock_request_conflicts(request, ret_conflicts, max);
    *ret_walked = crowd->f.table.work - before;
    lock_request_free(request);
    return count;
}

/* Goal: telling who blocks a request takes so many looks, however many locks the holders have; as a rule it names the first lock that blocks. */
static void test_conflicts_of_large_holders(void **state)
{
    (void)state;
    enum { HOLDERS = 20, FEW = 200, MANY = 2000, WALKED_MAX = 300 };
    struct lock_conflict conflicts[HOLDERS + 1];
    uint64_t walked;
    struct crowd crowd;
    crowd_setup(&crowd, HOLDERS);
    take_many(&crowd, 0, "/b", FEW, "/a"); /* found from the front */
    take_many(&crowd, 1, "/b", MANY, NULL);
    take_many(&crowd, 1, "/a", 1, NULL); /* found from its directory back */
    for (size_t i = 2; i < HOLDERS; i++)
        take_many(&crowd, i, "/b", MANY, "/a"); /* neither near the front nor near the directory */
    assert_int_equal(told(&crowd, conflicts, HOLDERS + 1, &walked), HOLDERS);
    assert_in_range(walked, HOLDERS, HOLDERS * WALKED_MAX);
    for (size_t i = 0; i < HOLDERS; i++) {
        assert_ptr_equal(conflicts[i].owner, &crowd.owners[i]);
        assert_int_equal(conflicts[i].mode, LOCK_X);
        assert_int_equal(conflicts[i].resource->kind, i < 2 ? RESOURCE_DOCUMENT : RESOURCE_DIRECTORY);
    }
    assert_int_equal(told(&crowd, conflicts, 3, &walked), 3);
    assert_in_range(walked, 3, 3 * WALKED_MAX);
    crowd_teardown(&crowd);
}

static void test_deep_path(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    static char path[3 * RESOURCE_LEVELS_MAX + 3 + 1];
    size_t len = 0;
    for (int i = 0; i <= RESOURCE_LEVELS_MAX; i++)
        len += (size_t)snprintf(path + len, sizeof path - len, "/%d", i % 10);
    assert_true(resource_path_fits(slice_make(path, len - 2)));
    assert_false(resource_path_fits(slice_make(path, len)));
    struct lock_spec want = {{SLICE_LIT("fs"), slice_make(path, len - 2), SLICE_NONE, SLICE_NONE}, LOCK_X, false};
    struct lock_request *request = lock_request_new(&f.table, &f.owners[0], &want, 1, NULL);
    assert_int_equal(lock_request_start(request, false), LOCK_GRANTED);
    lock_request_free(request);
    assert_int_equal(try_lock(&f, 1, LOCK_S, "fs:/0/1/2"), LOCK_CONFLICT);
    assert_int_equal(try_lock(&f, 1, LOCK_X, "fs:/1"), LOCK_GRANTED);
    /* A document deeper than that lies in the deepest directory there is. */
    want.on.path = slice_make(path, len);
    want.on.type = SLICE_LIT("_doc");
    want.on.id = SLICE_LIT("1");
    assert_false(lock_table_can_grant(&f.table, NULL, &want));
    teardown(&f);
}

/* Paths with names that begin alike, slashes more than needed, and now and then one that goes too deep. */
static struct slice random_path(struct rng *rng, struct arena *arena)
{
    static const char *const names[] = {"/a", "/b", "/ab", "//a", "/", "b"};
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    uint64_t count = rng_below(rng, 50) == 0 ? RESOURCE_LEVELS_MAX + rng_below(rng, 3) : rng_below(rng, 6);
    for (uint64_t i = 0; i < count; i++)
        buf_slice(&path, slice_from(count > 6 && i > 2 ? "/a" : names[rng_below(rng, 6)]));
    struct slice copy = arena_copy(arena, buf_as_slice(&path));
    buf_deinit(&path);
    return copy;
}

/* Goal: whatever was opened before with the same trail, a path leads to the directory that it leads to by itself. */
static void test_trail(void **state)
{
    enum { COUNT = 2000 };
    struct resource *opened[COUNT];
    struct resource_table table;
    struct resource_path_cache trail = RESOURCE_PATH_CACHE_INIT;
    struct arena arena = ARENA_INIT;
    struct rng rng;
    (void)state;
    rng_init(&rng, 7);
    resource_table_init(&table);
    for (int i = 0; i < COUNT; i++) {
        struct slice index = slice_from(rng_below(&rng, 8) == 0 ? "other" : "fs");
        struct resource_name name = {index, random_path(&rng, &arena), SLICE_NONE, SLICE_NONE};
        opened[i] = resource_open(&table, &name, &trail);
        struct resource *alone = resource_open(&table, &name, &RESOURCE_PATH_CACHE_INIT);
        assert_ptr_equal(opened[i], alone);
        resource_unref(&table, alone);
    }
    for (int i = 0; i < COUNT; i++)
        resource_unref(&table, opened[i]);
    resource_table_deinit(&table);
    arena_deinit(&arena);
}

static void assert_printed(const char *name, const char *expected)
{
    struct resource_table table;
    resource_table_init(&table);
    struct resource_name parts = named(name);
    struct resource *resource = resource_open(&table, &parts, &RESOURCE_PATH_CACHE_INIT);
    struct buf buf = BUF_INIT(1000);
    resource_print(resource, &buf);
    assert_slice_equal(buf_as_slice(&buf), expected);
    buf_deinit(&buf);
    resource_unref(&table, resource);
    resource_table_deinit(&table);
}

static void test_names(void **state)
{
    (void)state;
    assert_printed("everything", "everything");
    assert_printed("fs", "fs");
    assert_printed("fs:", "fs:/");
    assert_printed("fs://a/./b%2f//c\xff/", "fs:/a/./b%2f/c\xff");
    assert_printed("fs:/a#1", "fs/1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_trail),
        cmocka_unit_test(test_unrelated),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_upgrade),
        cmocka_unit_test(test_deadlocks),
        cmocka_unit_test(test_update),
        cmocka_unit_test(test_session_of_transaction),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_tokens_of_one_step),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_move),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_search_grows_with_the_table),
        cmocka_unit_test(test_conflicts_of_large_holders),
        cmocka_unit_test(test_deep_path),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
