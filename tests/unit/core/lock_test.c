/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the basic cases of README-locks.md, and its extremes: many waiters, deep paths. Method: one
 * table and a few owners, each case step by step. tests/sim/lock_sim.c covers the rest at random.
 */
#include "../../lib/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/rand.h"
#include "core/locks/lock_codec.h"
#include "core/locks/lock_internal.h"
#include "core/command/section.h"

enum { OWNERS = 5 };

struct fixture {
    struct lock_table table;
    struct lock_owner owners[OWNERS]; /* 3 belongs to 0 */
    size_t cycles;
    size_t cycle_length;
    const struct lock_owner *victim;
};

static void on_deadlock(void *context, struct lock_request *victim, const struct wait_edge *edges, size_t count,
                        bool requeued)
{
    (void)edges;
    (void)requeued;
    struct fixture *f = context;
    f->cycles++;
    f->cycle_length = count;
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
    for (size_t i = OWNERS; i-- > 0;) /* those that belong to a session before it */
        lock_owner_deinit(&f->owners[i]);
    assert_true(lock_table_is_idle(&f->table));
    lock_table_deinit(&f->table);
}

/* "everything", "fs", "fs:/a/b", "fs/1" or "fs:/a/b#1" (document 1 in /a/b). */
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
    struct lock_spec spec = {named(name), mode, false};
    return lock_request_new(&f->table, &f->owners[owner], &spec, 1, f);
}

/* Requests a lock without waiting. Returns: whether it was granted; then the owner keeps it. */
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

/* Checks that the next granted request is this one. */
static void assert_granted(struct fixture *f, struct lock_request *request)
{
    assert_ptr_equal(lock_table_next_granted(&f->table), request);
    assert_int_equal(lock_request_state(request), LOCK_STATE_GRANTED);
    lock_request_free(request);
}

static void test_lock_modes_conflict_by_the_matrix(void **state)
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

static void test_lock_on_siblings_does_not_conflict(void **state)
{
    (void)state;
    static const char *const all[] = {"fs:/a/b", "fs:/a/c", "fs:/ab", "fs:/b", "fs:/a#1", "fs#2", "other"};
    struct fixture f;
    setup(&f);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_int_equal(try_lock(&f, i % 3, LOCK_X, all[i]), LOCK_GRANTED);
    teardown(&f);
}

static void test_lock_queue_is_served_in_arrival_order(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    assert_int_equal(try_lock(&f, 0, LOCK_S, "fs#1"), LOCK_GRANTED);
    struct lock_request *exclusive = wait_lock(&f, 1, LOCK_X, "fs");
    /* Compatible with the held lock, but not with the preceding request. */
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

static void test_lock_upgrade_precedes_other_requests(void **state)
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
    /* A held lock is granted again at once, although others wait. */
    assert_int_equal(try_lock(&f, 0, LOCK_X, "fs#1"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 0, LOCK_S, "fs#1"), LOCK_GRANTED);
    assert_true(release(&f, 0, "fs#1"));
    assert_granted(&f, other);
    teardown(&f);
}

static void test_deadlock_ends_youngest_request(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    /* Two upgrades. */
    assert_int_equal(try_lock(&f, 0, LOCK_S, "fs#1"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 1, LOCK_S, "fs#1"), LOCK_GRANTED);
    struct lock_request *first = wait_lock(&f, 0, LOCK_X, "fs#1");
    struct lock_request *second = request_of(&f, 1, LOCK_X, "fs#1");
    assert_int_equal(lock_request_start(second, true), LOCK_DEADLOCK);
    lock_request_free(second);
    assert_int_equal(f.cycle_length, 2);
    lock_release_all(&f.table, &f.owners[1]);
    assert_granted(&f, first);
    lock_release_all(&f.table, &f.owners[0]);

    /* Three requests; the youngest is not the one that closes the cycle. */
    assert_int_equal(try_lock(&f, 0, LOCK_X, "fs#1"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 1, LOCK_X, "fs:/a"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 2, LOCK_X, "other"), LOCK_GRANTED);
    struct lock_request *a = wait_lock(&f, 1, LOCK_S, "fs#1");
    struct lock_request *b = wait_lock(&f, 2, LOCK_S, "fs:/a/b#7");
    struct lock_request *c = wait_lock(&f, 0, LOCK_S, "other#1");
    assert_int_equal(f.cycles, 2);
    assert_int_equal(f.cycle_length, 3);
    assert_ptr_equal(f.victim, &f.owners[2]);
    assert_ptr_equal(lock_table_next_victim(&f.table), b);
    lock_request_free(b);
    lock_release_all(&f.table, &f.owners[2]);
    assert_granted(&f, c);
    lock_release_all(&f.table, &f.owners[0]);
    assert_granted(&f, a);
    teardown(&f);
}

/* Owners that take U before they upgrade do not deadlock. */
static void test_lock_update_mode_prevents_upgrade_deadlock(void **state)
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
    assert_int_equal(f.cycles, 0);
    teardown(&f);
}

static void test_lock_transaction_ignores_locks_of_its_session(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    assert_int_equal(try_lock(&f, 0, LOCK_X, "fs:/a"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 3, LOCK_X, "fs:/a#1"), LOCK_GRANTED);
    /* The session does not ignore its transaction's locks. */
    assert_int_equal(try_lock(&f, 0, LOCK_S, "fs:/a#1"), LOCK_CONFLICT);
    struct lock_spec spec = {named("fs:/a#2"), LOCK_X, false};
    assert_true(lock_table_can_grant(&f.table, &f.owners[0], &spec));
    assert_false(lock_table_can_grant(&f.table, &f.owners[1], &spec));
    assert_false(lock_table_can_grant(&f.table, NULL, &spec));
    spec.on = named("fs:/b#2");
    assert_true(lock_table_can_grant(&f.table, NULL, &spec));
    teardown(&f);
}

static void test_lock_token_changes_with_the_lock(void **state)
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
    /* A lock that is taken again keeps its token; a stronger mode has a new one. */
    assert_int_equal(try_lock(&f, 0, LOCK_S, "fs:/a"), LOCK_GRANTED);
    assert_true(lock_table_find_token(&f.table, 100, &below, NULL));
    assert_int_equal(try_lock(&f, 0, LOCK_X, "fs:/a"), LOCK_GRANTED);
    assert_true(lock_table_find_token(&f.table, 200, &below, NULL));
    assert_false(lock_table_find_token(&f.table, 100, &below, NULL));
    teardown(&f);
}

/*
 * Two owners that are granted a lock in one step have different tokens; each becomes stale with its
 * own release.
 */
static void test_lock_tokens_differ_within_one_step(void **state)
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

/* A set is granted whole: while one lock of it is blocked, no other is held. */
static void test_lock_request_is_granted_whole(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct lock_spec specs[2] = {{named("fs#1"), LOCK_X, false}, {named("fs#2"), LOCK_X, false}};
    assert_int_equal(try_lock(&f, 0, LOCK_X, "fs#2"), LOCK_GRANTED);
    struct lock_request *set = lock_request_new(&f.table, &f.owners[1], specs, 2, NULL);
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

/* A document's locks and waiting requests move with it. */
static void test_lock_moves_with_its_document(void **state)
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

/* Ten thousand requests wait for one document: each release grants exactly the next one. */
static void test_lock_release_grants_only_the_next_of_many(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    struct lock_owner *set = mem_alloc(CROWD * sizeof *set);
    struct lock_request **requests = mem_alloc(CROWD * sizeof *requests);
    struct lock_spec spec = {named("fs:/a/b#1"), LOCK_X, false};
    struct lock_spec own = {named("mine"), LOCK_S, false};
    for (size_t i = 0; i < CROWD; i++) {
        lock_owner_init(&f.table, &set[i], NULL, NULL);
        struct lock_request *first = lock_request_new(&f.table, &set[i], &own, 1, NULL);
        assert_int_equal(lock_request_start(first, false), LOCK_GRANTED);
        lock_request_free(first);
        requests[i] = lock_request_new(&f.table, &set[i], &spec, 1, NULL);
        assert_int_equal(lock_request_start(requests[i], true), i == 0 ? LOCK_GRANTED : LOCK_WAITS);
        if (i > 0)
            assert_int_equal(lock_request_queue_position(requests[i]), i - 1);
        assert_null(requests[i]->watch_next); /* no two requests watch the same one */
    }
    lock_request_free(requests[0]);
    for (size_t i = 0; i < CROWD; i++) {
        lock_release_all(&f.table, &set[i]);
        lock_owner_deinit(&set[i]);
        if (i + 1 < CROWD)
            assert_granted(&f, requests[i + 1]);
        assert_null(lock_table_next_granted(&f.table));
    }
    mem_free(set);
    mem_free(requests);
    teardown(&f);
}

/* Many owners, each with at most one waiting request. */
struct owner_set {
    struct fixture f;
    struct lock_owner *owners;
    struct lock_request **requests;
    size_t count;
};

static void owner_set_setup(struct owner_set *set, size_t count)
{
    setup(&set->f);
    set->count = count;
    set->owners = mem_alloc(count * sizeof *set->owners);
    set->requests = mem_zalloc(count * sizeof *set->requests);
    for (size_t i = 0; i < count; i++)
        lock_owner_init(&set->f.table, &set->owners[i], NULL, NULL);
}

static void owner_set_teardown(struct owner_set *set)
{
    lock_table_check(&set->f.table);
    for (size_t i = set->count; i-- > 0;)
        lock_request_free(set->requests[i]);
    for (size_t i = 0; i < set->count; i++) {
        lock_release_all(&set->f.table, &set->owners[i]);
        lock_owner_deinit(&set->owners[i]);
    }
    mem_free(set->owners);
    mem_free(set->requests);
    teardown(&set->f);
}

/* Starts a request of one owner, with the given outcome; keeps it if it waits. */
static void owner_set_ask(struct owner_set *set, size_t at, enum lock_mode mode, struct resource_name name, int outcome)
{
    struct lock_spec spec = {name, mode, false};
    struct lock_request *request = lock_request_new(&set->f.table, &set->owners[at], &spec, 1, NULL);
    assert_int_equal(lock_request_start(request, true), outcome);
    if (outcome == LOCK_WAITS)
        set->requests[at] = request;
    else
        lock_request_free(request);
}

/* Acquires X for one owner on a document of its own in index a. */
static void owner_set_take_own(struct owner_set *set, size_t at)
{
    char id[24];
    snprintf(id, sizeof id, "%zu", at);
    owner_set_ask(set, at, LOCK_X,
                  (struct resource_name){SLICE_LIT("a"), SLICE_NONE, SLICE_LIT("_doc"), slice_from(id)}, LOCK_GRANTED);
}

/*
 * All owners hold a document in index a, which another one requests as a whole, and wait for a
 * document in b.
 * Returns: the work of the last one's request.
 */
static uint64_t walked_in_queue(size_t count)
{
    struct owner_set set;
    owner_set_setup(&set, count);
    assert_int_equal(try_lock(&set.f, 0, LOCK_X, "b#1"), LOCK_GRANTED);
    for (size_t i = 0; i < count; i++)
        owner_set_take_own(&set, i);
    struct lock_request *whole = wait_lock(&set.f, 1, LOCK_X, "a");
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        before = set.f.table.work;
        owner_set_ask(&set, i, LOCK_X, named("b#1"), LOCK_WAITS);
    }
    uint64_t walked = set.f.table.work - before;
    lock_request_free(whole);
    owner_set_teardown(&set);
    return walked;
}

/* As above, but the first half of the owners hold, in S, what the second half waits for. */
static uint64_t walked_over_holders(size_t count)
{
    struct owner_set set;
    owner_set_setup(&set, count);
    for (size_t i = 0; i < count; i++)
        if (i < count / 2)
            owner_set_ask(&set, i, LOCK_S, named("b#1"), LOCK_GRANTED);
        else
            owner_set_take_own(&set, i);
    struct lock_request *whole = wait_lock(&set.f, 1, LOCK_X, "a");
    uint64_t before = 0;
    for (size_t i = count / 2; i < count; i++) {
        before = set.f.table.work;
        owner_set_ask(&set, i, LOCK_X, named("b#1"), LOCK_WAITS);
    }
    uint64_t walked = set.f.table.work - before;
    lock_request_free(whole);
    owner_set_teardown(&set);
    return walked;
}

/*
 * The requests in the queue are for X and S in turn, so a scan of one bit's list cannot end for the
 * other's.
 */
static uint64_t walked_in_two_lines(size_t count)
{
    struct owner_set set;
    owner_set_setup(&set, count);
    assert_int_equal(try_lock(&set.f, 0, LOCK_X, "b#1"), LOCK_GRANTED);
    uint64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            owner_set_take_own(&set, i);
    }
    struct lock_request *whole = wait_lock(&set.f, 1, LOCK_X, "a");
    for (size_t i = 0; i < count; i++) {
        before = set.f.table.work;
        owner_set_ask(&set, i, i % 2 == 0 ? LOCK_X : LOCK_S, named("b#1"), LOCK_WAITS);
    }
    uint64_t walked = set.f.table.work - before;
    owner_set_ask(&set, 1, LOCK_S, named("c#2"), LOCK_GRANTED);
    struct lock_request *other = wait_lock(&set.f, 2, LOCK_X, "c");
    before = set.f.table.work;
    /* also starts a search, without a new waiting request */
    owner_set_ask(&set, 1, LOCK_S, named("c#1"), LOCK_GRANTED);
    walked += set.f.table.work - before;
    lock_request_free(other);
    lock_request_free(whole);
    owner_set_teardown(&set);
    return walked;
}

/* A deadlock search visits each request and hold a few times, however many wait for each other. */
static void test_deadlock_search_is_linear(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 16 };
    static uint64_t (*const workloads[])(size_t) = {walked_in_queue, walked_over_holders, walked_in_two_lines};
    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        uint64_t few = workloads[i](FEW), many = workloads[i](2 * FEW);
        assert_in_range(few, FEW / 4, LOOKS * FEW);
        assert_in_range(many, few, 2 * few + few / 10);
    }
}

/*
 * A request visits few of the others of its owner in the queue, which do not block it, if a hold does. It watches the
 * request of another owner before them, so the end of a hold does not have all of them evaluated.
 */
static void test_own_requests_in_queue_are_not_visited(void **state)
{
    enum { COUNT = 500, WALKED_MAX = 300 };
    (void)state;
    for (size_t others = 0; others <= 2; others += 2) {
        struct fixture f;
        struct lock_request **requests = mem_alloc(COUNT * sizeof *requests), *first[2];
        uint64_t before = 0;
        setup(&f);
        assert_int_equal(try_lock(&f, 0, LOCK_X, "b#1"), LOCK_GRANTED);
        for (size_t i = 0; i < others; i++) {
            first[i] = request_of(&f, 2 + 2 * i, LOCK_X, "b#1");
            assert_int_equal(lock_request_start(first[i], true), LOCK_WAITS);
        }
        for (size_t i = 0; i < COUNT; i++) {
            requests[i] = request_of(&f, 1, LOCK_X, "b#1");
            before = f.table.work;
            assert_int_equal(lock_request_start(requests[i], true), LOCK_WAITS);
        }
        assert_in_range(f.table.work - before, 0, WALKED_MAX);
        before = f.table.work;
        release(&f, 0, "b#1");
        for (size_t i = 0; i < others; i++) {
            assert_granted(&f, first[i]);
            if (i == 0)
                assert_in_range(f.table.work - before, 0, WALKED_MAX);
            release(&f, 2 + 2 * i, "b#1");
        }
        for (size_t i = 0; i < COUNT; i++)
            assert_granted(&f, requests[i]); /* all are of one owner, and are granted in their order */
        mem_free(requests);
        teardown(&f);
    }
}

static struct lock_request *wait_for_two(struct fixture *f, size_t owner, const char *first, const char *second)
{
    struct lock_spec specs[] = {{named(first), LOCK_X, false}, {named(second), LOCK_X, false}};
    struct lock_request *request = lock_request_new(&f->table, &f->owners[owner], specs, 2, f);
    assert_int_equal(lock_request_start(request, true), LOCK_WAITS);
    lock_table_check(&f->table);
    return request;
}

static void withdraw(struct fixture *f, struct lock_request *request)
{
    lock_request_free(request);
    lock_table_check(&f->table);
}

/*
 * The first of an owner's requests watches the obstacle of all of them. They are granted in their order although it is
 * withdrawn, its obstacle is withdrawn, or it is blocked elsewhere. A later one joins the remaining ones.
 */
static void test_requests_of_one_owner_wait_as_a_group(void **state)
{
    struct fixture f;
    (void)state;
    setup(&f);
    assert_int_equal(try_lock(&f, 0, LOCK_X, "b#1"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 4, LOCK_X, "b#2"), LOCK_GRANTED);
    struct lock_request *other = wait_lock(&f, 2, LOCK_X, "b#1");
    struct lock_request *first = wait_lock(&f, 1, LOCK_X, "b#1");
    struct lock_request *both = wait_for_two(&f, 1, "b#1", "b#2");
    struct lock_request *third = wait_lock(&f, 1, LOCK_X, "b#1");
    struct lock_request *fourth = wait_lock(&f, 1, LOCK_X, "b#1");
    const struct lock_group *group = first->group;
    assert_true(group != NULL && group->leader == first && group == fourth->group);
    withdraw(&f, first);
    assert_ptr_equal(group->leader, both);
    withdraw(&f, third);
    struct lock_request *fifth = wait_lock(&f, 1, LOCK_X, "b#1");
    assert_ptr_equal(fifth->group, group);
    withdraw(&f, other);
    assert_true(both->watched != NULL && group->leader == both);
    assert_true(release(&f, 0, "b#1"));
    assert_granted(&f, fourth);
    assert_granted(&f, fifth);
    assert_null(lock_table_next_granted(&f.table));
    assert_null(both->group);
    lock_table_check(&f.table);
    assert_true(release(&f, 4, "b#2"));
    assert_granted(&f, both);
    assert_null(lock_table_next_granted(&f.table));
    teardown(&f);
}

/*
 * A request of another owner between many of one owner blocks those after it, wherever it is among them: also if no
 * hold does any more.
 */
static void test_request_between_many_of_one_owner_blocks(void **state)
{
    enum { EACH = 40, OWN = 2 * EACH };
    struct lock_spec own[] = {{named("b#1"), LOCK_X, false}, {named("d#1"), LOCK_X, false}};
    struct lock_spec others[] = {{named("b#1"), LOCK_X, false}, {named("c#1"), LOCK_X, false}};
    struct lock_request *requests[OWN], *between = NULL;
    struct fixture f;
    (void)state;
    setup(&f);
    assert_int_equal(try_lock(&f, 0, LOCK_X, "b#1"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 0, LOCK_X, "c#1"), LOCK_GRANTED);
    assert_int_equal(try_lock(&f, 0, LOCK_X, "d#1"), LOCK_GRANTED);
    for (size_t i = 0; i < OWN; i++) {
        if (i == EACH) {
            between = lock_request_new(&f.table, &f.owners[2], others, 2, NULL);
            assert_int_equal(lock_request_start(between, true), LOCK_WAITS);
        }
        requests[i] = lock_request_new(&f.table, &f.owners[1], own, i < EACH ? 2 : 1, NULL);
        assert_int_equal(lock_request_start(requests[i], true), LOCK_WAITS);
    }
    release(&f, 0, "b#1");
    assert_null(lock_table_next_granted(&f.table));
    lock_table_check(&f.table);
    release(&f, 0, "d#1");
    for (size_t i = 0; i < OWN; i++) { /* it waits for their owner now, and does not block them */
        assert_non_null(lock_table_next_granted(&f.table));
        assert_int_equal(lock_request_state(requests[i]), LOCK_STATE_GRANTED);
    }
    assert_null(lock_table_next_granted(&f.table));
    for (size_t i = 0; i < OWN; i++)
        lock_request_free(requests[i]);
    release(&f, 0, "c#1");
    release(&f, 1, "d#1");
    release(&f, 1, "b#1");
    assert_granted(&f, between);
    teardown(&f);
}

/*
 * A request of another owner blocks one, although many of the latter's owner are between them. These are blocked
 * elsewhere, so they form no group here; they are not visited.
 */
static void test_request_before_many_of_one_owner_blocks(void **state)
{
    enum { OWN = 500, WALKED_MAX = 300 };
    struct lock_spec own[] = {{named("a#1"), LOCK_X, false}, {named("b#1"), LOCK_X, false}};
    struct lock_request *requests[OWN];
    struct fixture f;
    (void)state;
    setup(&f);
    assert_int_equal(try_lock(&f, 0, LOCK_X, "c#1"), LOCK_GRANTED);
    struct lock_request *before = wait_for_two(&f, 2, "b#1", "c#1");
    struct lock_request *elsewhere = wait_for_two(&f, 4, "a#1", "c#1");
    for (size_t i = 0; i < OWN; i++) {
        requests[i] = lock_request_new(&f.table, &f.owners[1], own, 2, NULL);
        assert_int_equal(lock_request_start(requests[i], true), LOCK_WAITS);
    }
    struct lock_request *last = request_of(&f, 1, LOCK_X, "b#1");
    uint64_t work = f.table.work;
    assert_int_equal(lock_request_start(last, true), LOCK_WAITS);
    assert_in_range(f.table.work - work, 1, WALKED_MAX);
    withdraw(&f, before);
    assert_granted(&f, last);
    assert_null(lock_table_next_granted(&f.table));
    for (size_t i = 0; i < OWN; i++)
        lock_request_free(requests[i]);
    withdraw(&f, elsewhere);
    teardown(&f);
}

/*
 * Acquires X for one owner on `count` documents of fs with one request. They are in `path`, except
 * the one in the middle of the request, which is in `middle` unless that is NULL.
 */
static void take_many(struct owner_set *set, size_t at, const char *path, size_t count, const char *middle)
{
    struct arena arena = ARENA_INIT;
    struct lock_spec *specs = arena_zalloc(&arena, count * sizeof *specs);
    for (size_t i = 0; i < count; i++) {
        struct slice directory = slice_from(middle != NULL && i == count / 2 ? middle : path);
        specs[i] = (struct lock_spec){{SLICE_LIT("fs"), directory, SLICE_LIT("_doc"),
                                       arena_printf(&arena, "%zu-%zu%.*s", at, i, SLICE_ARG(directory))},
                                      LOCK_X};
    }
    struct lock_request *request = lock_request_new(&set->f.table, &set->owners[at], specs, count, NULL);
    assert_int_equal(lock_request_start(request, false), LOCK_GRANTED);
    lock_request_free(request);
    arena_deinit(&arena);
}

/*
 * Requests X on /a and its conflicts. Returns: the number of conflicts, and the work to find them.
 */
static size_t count_conflicts(struct owner_set *set, struct lock_conflict *ret_conflicts, size_t max,
                              uint64_t *ret_walked)
{
    struct lock_request *request = request_of(&set->f, 0, LOCK_X, "fs:/a");
    assert_int_equal(lock_request_start(request, false), LOCK_CONFLICT);
    uint64_t before = set->f.table.work;
    size_t count = lock_request_conflicts(request, ret_conflicts, max);
    *ret_walked = set->f.table.work - before;
    lock_request_free(request);
    return count;
}

/*
 * The work to report conflicts is bounded, however many locks the holders have. Usually the first
 * blocking lock is named.
 */
static void test_lock_conflicts_of_large_holders_are_bounded(void **state)
{
    (void)state;
    enum { HOLDERS = 20, FEW = 200, MANY = 2000, WALKED_MAX = 300 };
    struct lock_conflict conflicts[HOLDERS + 1];
    uint64_t walked;
    struct owner_set set;
    owner_set_setup(&set, HOLDERS);
    take_many(&set, 0, "/b", FEW, "/a"); /* found from the front */
    take_many(&set, 1, "/b", MANY, NULL);
    take_many(&set, 1, "/a", 1, NULL); /* found from its directory back */
    for (size_t i = 2; i < HOLDERS; i++)
        take_many(&set, i, "/b", MANY, "/a"); /* neither near the front nor near the directory */
    assert_int_equal(count_conflicts(&set, conflicts, HOLDERS + 1, &walked), HOLDERS);
    assert_in_range(walked, HOLDERS, HOLDERS * WALKED_MAX);
    for (size_t i = 0; i < HOLDERS; i++) {
        assert_ptr_equal(conflicts[i].owner, &set.owners[i]);
        assert_int_equal(conflicts[i].mode, LOCK_X);
        assert_int_equal(conflicts[i].resource->kind, i < 2 ? RESOURCE_DOCUMENT : RESOURCE_DIRECTORY);
    }
    assert_int_equal(count_conflicts(&set, conflicts, 3, &walked), 3);
    assert_in_range(walked, 3, 3 * WALKED_MAX);
    owner_set_teardown(&set);
}

static void test_lock_path_depth_is_limited(void **state)
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
    struct lock_spec spec = {{SLICE_LIT("fs"), slice_make(path, len - 2), SLICE_NONE, SLICE_NONE}, LOCK_X, false};
    struct lock_request *request = lock_request_new(&f.table, &f.owners[0], &spec, 1, NULL);
    assert_int_equal(lock_request_start(request, false), LOCK_GRANTED);
    lock_request_free(request);
    assert_int_equal(try_lock(&f, 1, LOCK_S, "fs:/0/1/2"), LOCK_CONFLICT);
    assert_int_equal(try_lock(&f, 1, LOCK_X, "fs:/1"), LOCK_GRANTED);
    /* A deeper document is placed in its deepest possible ancestor. */
    spec.on.path = slice_make(path, len);
    spec.on.type = SLICE_LIT("_doc");
    spec.on.id = SLICE_LIT("1");
    assert_false(lock_table_can_grant(&f.table, NULL, &spec));
    teardown(&f);
}

/* Paths whose names have common prefixes, with redundant slashes; some are too deep. */
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

/* A path opens the same directory with a cache as without, whatever was opened before. */
static void test_resource_path_cache_opens_same_directory(void **state)
{
    enum { COUNT = 2000 };
    struct resource *opened[COUNT];
    struct resource_table table;
    struct resource_path_cache cache = RESOURCE_PATH_CACHE_INIT;
    struct arena arena = ARENA_INIT;
    struct rng rng;
    (void)state;
    rng_init(&rng, 7);
    resource_table_init(&table);
    for (int i = 0; i < COUNT; i++) {
        struct slice index = slice_from(rng_below(&rng, 8) == 0 ? "other" : "fs");
        struct resource_name name = {index, random_path(&rng, &arena), SLICE_NONE, SLICE_NONE};
        opened[i] = resource_open(&table, &name, &cache);
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

static void test_resource_names_are_printed(void **state)
{
    (void)state;
    assert_printed("everything", "everything");
    assert_printed("fs", "fs");
    assert_printed("fs:", "fs:/");
    assert_printed("fs://a/./b%2f//c\xff/", "fs:/a/./b%2f/c\xff");
    assert_printed("fs:/a#1", "fs/1");
}

/* --- Checkpoints -------------------------------------------------------------------------------- */

/* Owners by age, the oldest first, each with at most one waiting request. */
enum { ACTOR_A, ACTOR_PENDING, ACTOR_C, ACTOR_B, ACTOR_RELEASES, ACTORS };

struct checkpoint_case {
    struct lock_table table;
    struct lock_owner owners[ACTORS];
    struct lock_request *requests[ACTORS];
    struct buf victims; /* the numbers of their owners */
};

static void note_victim(void *context, struct lock_request *victim, const struct wait_edge *edges, size_t count,
                        bool requeued)
{
    struct checkpoint_case *c = context;
    (void)edges;
    buf_printf(&c->victims, "%llu of %zu%s ", (unsigned long long)lock_request_owner(victim)->number, count,
               requeued ? " requeued" : "");
}

static void case_init(struct checkpoint_case *c)
{
    lock_table_init(&c->table, &(struct lock_hooks){.deadlock = note_victim, .context = c});
    for (size_t i = 0; i < ACTORS; i++) {
        lock_table_set_ts(&c->table, 100 + i);
        lock_owner_init(&c->table, &c->owners[i], NULL, NULL);
    }
}

static void case_request(struct checkpoint_case *c, size_t actor, const char *first, const char *second)
{
    struct lock_spec specs[] = {{named(first), LOCK_X}, {named(second == NULL ? first : second), LOCK_X}};
    c->requests[actor] = lock_request_new(&c->table, &c->owners[actor], specs, second == NULL ? 1 : 2, NULL);
    assert_int_equal(lock_request_start(c->requests[actor], true), LOCK_WAITS);
}

static void case_take(struct checkpoint_case *c, size_t actor, const char *name)
{
    struct lock_spec spec = {named(name), LOCK_X};
    struct lock_request *request = lock_request_new(&c->table, &c->owners[actor], &spec, 1, NULL);
    assert_int_equal(lock_request_start(request, true), LOCK_GRANTED);
    lock_request_free(request);
}

static void case_deinit(struct checkpoint_case *c)
{
    while (lock_table_next_granted(&c->table) != NULL || lock_table_next_victim(&c->table) != NULL) {
    }
    for (size_t i = 0; i < ACTORS; i++)
        lock_request_free(c->requests[i]);
    for (size_t i = 0; i < ACTORS; i++)
        lock_release_all(&c->table, &c->owners[i]);
    while (lock_table_next_granted(&c->table) != NULL) {
    }
    for (size_t i = ACTORS; i-- > 0;)
        lock_owner_deinit(&c->owners[i]);
    lock_table_deinit(&c->table);
    buf_deinit(&c->victims);
}

/* Replaces the table by one that is loaded from its checkpoint. */
static void case_reload(struct checkpoint_case *c)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct arena arena = ARENA_INIT;
    struct lock_owner *owners[ACTORS];
    struct lock_request *requests[ACTORS];
    size_t actors[ACTORS];
    struct lock_codec_refs refs = {.owners = owners, .owner_count = ACTORS, .requests = requests};
    for (size_t i = 0; i < ACTORS; i++) {
        owners[i] = &c->owners[i];
        if (c->requests[i] == NULL)
            continue;
        actors[refs.request_count] = i;
        requests[refs.request_count++] = c->requests[i];
    }
    struct codec writer = codec_to(&bytes, SECTIONS_VERSION);
    lock_codec_table(&writer, &c->table, &refs);
    lock_codec_discard(&c->table, &refs);
    for (size_t i = ACTORS; i-- > 0;)
        lock_owner_deinit(&c->owners[i]);
    lock_table_deinit(&c->table);
    case_init(c);
    struct codec reader = codec_from(buf_as_slice(&bytes), &arena);
    reader.version = SECTIONS_VERSION;
    lock_codec_table(&reader, &c->table, &refs);
    assert_true(codec_done(&reader));
    for (size_t i = 0; i < refs.request_count; i++)
        c->requests[actors[i]] = refs.requests[i];
    buf_deinit(&bytes);
    arena_deinit(&arena);
}

/*
 * A request waits for the quota of grants, and the later one of B has lost one obstacle, not the
 * other. Then A closes a cycle with C, and a longer one that leads over B, which is the
 * youngest. Returns: the victims.
 */
static struct slice victims_beside_pending(bool reload, struct arena *arena)
{
    struct checkpoint_case c = {.victims = BUF_INIT(1024)};
    case_init(&c);
    case_take(&c, ACTOR_RELEASES, "fs#0");
    case_take(&c, ACTOR_RELEASES, "fs#1");
    case_take(&c, ACTOR_A, "fs#a");
    case_take(&c, ACTOR_B, "fs#b");
    case_take(&c, ACTOR_C, "fs#c");
    case_request(&c, ACTOR_PENDING, "fs#0", NULL);
    case_request(&c, ACTOR_B, "fs#1", "fs#c");
    case_request(&c, ACTOR_C, "fs#a", NULL);
    lock_table_set_grant_quota(&c.table, 0);
    lock_release_all(&c.table, &c.owners[ACTOR_RELEASES]);
    assert_true(lock_table_has_pending_grants(&c.table));
    if (reload) {
        case_reload(&c);
        lock_table_set_grant_quota(&c.table, 0);
    }
    lock_table_suspend_grants(&c.table);
    case_request(&c, ACTOR_A, "fs#b", "fs#c");
    lock_table_resume_grants(&c.table);
    lock_table_check(&c.table);
    struct slice victims = arena_copy(arena, buf_as_slice(&c.victims));
    case_deinit(&c);
    return victims;
}

/*
 * A host that was started from a checkpoint chooses the same victims as one that was not, also
 * while requests wait for the quota of grants.
 */
static void test_victims_do_not_depend_on_checkpoints(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct slice kept = victims_beside_pending(false, &arena), loaded = victims_beside_pending(true, &arena);
    assert_slice_equal(kept, "3 of 2 ");
    assert_true(slice_equal(kept, loaded));
    arena_deinit(&arena);
}

/* --- Documents below directories ---------------------------------------------------------------------------------- */

enum { BELOW_DOCUMENTS = 60, BELOW_PATH = 64 };

/* A path of some names, with `extra` empty ones, too. */
static void some_path(struct rng *rng, size_t names_max, bool extra, char *path)
{
    static const char *const names[] = {"a", "b", "a-b", "ab", "a\xff"};
    size_t count = rng_below(rng, names_max + 1);
    path[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        strcat(path, extra && rng_below(rng, 4) == 0 ? "//" : "/");
        strcat(path, names[rng_below(rng, COUNT_OF(names))]);
    }
    if (count == 0 || (extra && rng_below(rng, 4) == 0))
        strcat(path, "/");
}

/* Whether a path has all names of another one at its beginning. */
static bool is_at_or_below(struct slice path, struct slice directory)
{
    struct resource_path walk = resource_path(path), above = resource_path(directory);
    struct slice name, wanted;
    while (resource_path_next(&above, &wanted))
        if (!resource_path_next(&walk, &name) || !slice_equal(name, wanted))
            return false;
    return true;
}

/* The documents below several directories are those of all that are there, each once and in the same order. */
static void test_documents_below_are_in_tree_order(void **state)
{
    enum { SEEDS = 20, ROUNDS = 30, PATHS = 6 };
    (void)state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct lock_table table;
        struct lock_owner owner;
        struct rng rng;
        char places[BELOW_DOCUMENTS][BELOW_PATH], ids[BELOW_DOCUMENTS][8];
        struct lock_spec specs[BELOW_DOCUMENTS];
        rng_init(&rng, seed);
        lock_table_init(&table, NULL);
        lock_table_set_ts(&table, 100);
        lock_owner_init(&table, &owner, NULL, NULL);
        for (size_t i = 0; i < BELOW_DOCUMENTS; i++) {
            some_path(&rng, 4, false, places[i]);
            snprintf(ids[i], sizeof ids[i], "%zu", i);
            specs[i] = (struct lock_spec){
                {.index = SLICE_LIT("fs"), .path = slice_from(places[i]), .id = slice_from(ids[i])}, LOCK_X, false};
        }
        struct lock_request *request = lock_request_new(&table, &owner, specs, BELOW_DOCUMENTS, NULL);
        assert_int_equal(lock_request_start(request, false), LOCK_GRANTED);
        lock_request_free(request);
        for (size_t round = 0; round < ROUNDS; round++) {
            struct arena arena = ARENA_INIT;
            struct slice paths[PATHS];
            char texts[PATHS][BELOW_PATH];
            size_t path_count = 1 + rng_below(&rng, PATHS), all_count, count, at = 0;
            for (size_t i = 0; i < path_count; i++) {
                some_path(&rng, 4, true, texts[i]);
                paths[i] = slice_from(texts[i]);
            }
            const struct resource_name *all = lock_table_documents(&table, SLICE_LIT("fs"), &arena, &all_count);
            const struct resource_name *below =
                lock_table_documents_below(&table, SLICE_LIT("fs"), paths, path_count, NULL, &arena, &count);
            assert_int_equal(all_count, BELOW_DOCUMENTS);
            for (size_t i = 0; i < all_count; i++) {
                bool is_below = false;
                for (size_t k = 0; k < path_count; k++)
                    is_below |= is_at_or_below(slice_from(places[strtoul(all[i].id.data, NULL, 10)]), paths[k]);
                if (is_below)
                    assert_true(at < count && slice_equal(below[at++].id, all[i].id));
            }
            assert_int_equal(at, count);
            arena_deinit(&arena);
        }
        lock_release_all(&table, &owner);
        lock_owner_deinit(&owner);
        lock_table_deinit(&table);
    }
}

/* --- Moves of many documents -------------------------------------------------------------------- */

enum { MIRROR_OWNERS = 8, MIRROR_DOCUMENTS = 16, MIRROR_REQUESTS = 1000, MIRROR_SPECS = 4 };

/* One of two tables with the same history, except that one moves documents one by one, the other all at once. */
struct mirror {
    struct lock_table table;
    struct lock_owner owners[MIRROR_OWNERS]; /* each second one belongs to the one before it */
    struct lock_request *requests[MIRROR_REQUESTS];
    size_t request_count;
    const char *places[MIRROR_DOCUMENTS]; /* the directories of the documents; NULL: none */
    tl_ts ts;
    struct rng rng;
    struct buf log; /* the requests that were granted, and the victims */
};

static void mirror_init(struct mirror *mirror, uint64_t seed)
{
    *mirror = (struct mirror){.ts = 100, .log = BUF_INIT(BUF_UNLIMITED)};
    rng_init(&mirror->rng, seed);
    lock_table_init(&mirror->table, NULL);
    lock_table_set_ts(&mirror->table, mirror->ts);
    for (size_t i = 0; i < MIRROR_OWNERS; i++)
        lock_owner_init(&mirror->table, &mirror->owners[i], i % 2 == 0 ? NULL : &mirror->owners[i - 1], NULL);
}

/* Logs and frees the requests that have ended. */
static void mirror_drain(struct mirror *mirror)
{
    struct lock_request *request;
    while ((request = lock_table_next_granted(&mirror->table)) != NULL ||
           (request = lock_table_next_victim(&mirror->table)) != NULL) {
        size_t at = (size_t)(uintptr_t)lock_request_user(request);
        buf_printf(&mirror->log, "%s%zu ", lock_request_state(request) == LOCK_STATE_GRANTED ? "g" : "v", at);
        lock_request_free(request);
        mirror->requests[at] = NULL;
    }
}

static void mirror_deinit(struct mirror *mirror)
{
    for (size_t i = 0; i < mirror->request_count; i++) {
        lock_request_free(mirror->requests[i]);
        mirror->requests[i] = NULL;
        mirror_drain(mirror);
    }
    for (size_t i = MIRROR_OWNERS; i-- > 0;)
        lock_release_all(&mirror->table, &mirror->owners[i]);
    for (size_t i = MIRROR_OWNERS; i-- > 0;)
        lock_owner_deinit(&mirror->owners[i]);
    lock_table_deinit(&mirror->table);
    buf_deinit(&mirror->log);
}

static struct resource_name mirror_name(const struct mirror *mirror, size_t document)
{
    static const char *const ids[MIRROR_DOCUMENTS] = {"0", "1", "2", "3", "4", "5", "6", "7",
                                                    "8", "9", "a", "b", "c", "d", "e", "f"};
    struct resource_name name = {.index = SLICE_LIT("fs"), .type = SLICE_LIT("_doc"), .id = slice_from(ids[document])};
    if (mirror->places[document] != NULL)
        name.path = slice_from(mirror->places[document]);
    return name;
}

static const char *const mirror_paths[] = {NULL, "/a", "/a/b", "/c", "/a/b/d/e", "/a/b/d/f", "/c/g/h"};

/* A request for some documents, and sometimes for a directory, waits if it has to. */
static void mirror_request(struct mirror *mirror)
{
    struct lock_spec specs[MIRROR_SPECS];
    size_t count = 1 + rng_below(&mirror->rng, MIRROR_SPECS), at = mirror->request_count;
    struct lock_owner *owner = &mirror->owners[rng_below(&mirror->rng, MIRROR_OWNERS)];
    for (size_t i = 0; i < count; i++) {
        specs[i] = (struct lock_spec){mirror_name(mirror, rng_below(&mirror->rng, MIRROR_DOCUMENTS)),
                                      (enum lock_mode)(LOCK_S + rng_below(&mirror->rng, 3)), false};
        if (rng_below(&mirror->rng, 8) == 0) {
            const char *path = mirror_paths[1 + rng_below(&mirror->rng, COUNT_OF(mirror_paths) - 1)];
            specs[i].on = (struct resource_name){.index = SLICE_LIT("fs"), .path = slice_from(path)};
            specs[i].insert_intention = rng_below(&mirror->rng, 4) == 0;
        }
    }
    assert_true(at < MIRROR_REQUESTS);
    lock_table_set_ts(&mirror->table, mirror->ts += 100);
    struct lock_request *request = lock_request_new(&mirror->table, owner, specs, count, (void *)(uintptr_t)at);
    int outcome = lock_request_start(request, true);
    buf_printf(&mirror->log, "%d ", outcome);
    if (outcome == LOCK_WAITS)
        mirror->requests[mirror->request_count++] = request;
    else
        lock_request_free(request);
    mirror_drain(mirror);
}

/*
 * Moves documents, some of them twice, one by one or at once; `elsewhere`: only those that are not there already, and
 * each to one directory.
 */
static void mirror_move(struct mirror *mirror, bool at_once, bool elsewhere)
{
    struct resource_name names[2 * MIRROR_DOCUMENTS];
    size_t count = 1 + rng_below(&mirror->rng, 2 * MIRROR_DOCUMENTS);
    const char *paths[MIRROR_DOCUMENTS];
    for (size_t i = 0; i < MIRROR_DOCUMENTS; i++)
        paths[i] = mirror_paths[rng_below(&mirror->rng, COUNT_OF(mirror_paths))];
    for (size_t i = 0; i < count; i++) {
        size_t document = rng_below(&mirror->rng, MIRROR_DOCUMENTS);
        mirror->places[document] =
            elsewhere ? paths[document] : mirror_paths[rng_below(&mirror->rng, COUNT_OF(mirror_paths))];
        names[i] = mirror_name(mirror, document);
    }
    lock_table_suspend_grants(&mirror->table);
    if (at_once && elsewhere)
        (void)lock_table_relocate_documents(&mirror->table, names, count);
    else if (at_once)
        (void)lock_table_move_documents(&mirror->table, names, count);
    for (size_t i = 0; i < count && !at_once; i++)
        if (!elsewhere || !lock_table_document_is_at(&mirror->table, &names[i]))
            lock_table_move_document(&mirror->table, &names[i], names[i].path);
    lock_table_resume_grants(&mirror->table);
    mirror_drain(mirror);
    lock_table_check(&mirror->table);
}

/* Returns: the state of the table, as a checkpoint has it. */
static struct buf mirror_state(struct mirror *mirror)
{
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct lock_owner *owners[MIRROR_OWNERS];
    struct lock_request *requests[MIRROR_REQUESTS];
    struct lock_codec_refs refs = {.owners = owners, .owner_count = MIRROR_OWNERS, .requests = requests};
    for (size_t i = 0; i < MIRROR_OWNERS; i++)
        owners[i] = &mirror->owners[i];
    for (size_t i = 0; i < mirror->request_count; i++)
        if (mirror->requests[i] != NULL)
            requests[refs.request_count++] = mirror->requests[i];
    struct codec writer = codec_to(&bytes, SECTIONS_VERSION);
    lock_codec_table(&writer, &mirror->table, &refs);
    return bytes;
}

/*
 * Documents that move at once leave the state that they leave if they move one by one: holds, the order of the requests
 * of each owner, grants and victims. Two tables with the same random history are compared after each move.
 */
static void test_moves_at_once_equal_single_moves(void **state)
{
    enum { SEEDS = 60, ROUNDS = 20, REQUESTS = 8 };
    static struct mirror mirrors[2];
    (void)state;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        size_t waited = 0;
        for (size_t i = 0; i < 2; i++)
            mirror_init(&mirrors[i], seed);
        for (size_t round = 0; round < ROUNDS; round++) {
            struct buf states[2];
            for (size_t i = 0; i < 2; i++) {
                for (size_t k = 0; k < REQUESTS; k++)
                    mirror_request(&mirrors[i]);
                mirror_move(&mirrors[i], i == 1, round % 2 == 1);
                waited += mirrors[i].table.waiting_count;
                states[i] = mirror_state(&mirrors[i]);
            }
            assert_true(slice_equal(buf_as_slice(&states[0]), buf_as_slice(&states[1])));
            assert_true(slice_equal(buf_as_slice(&mirrors[0].log), buf_as_slice(&mirrors[1].log)));
            for (size_t i = 0; i < 2; i++) {
                lock_release_all(&mirrors[i].table, &mirrors[i].owners[rng_below(&mirrors[i].rng, MIRROR_OWNERS)]);
                mirror_drain(&mirrors[i]);
                buf_deinit(&states[i]);
            }
        }
        assert_true(waited > 0);
        for (size_t i = 0; i < 2; i++)
            mirror_deinit(&mirrors[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents_below_are_in_tree_order),
        cmocka_unit_test(test_moves_at_once_equal_single_moves),
        cmocka_unit_test(test_victims_do_not_depend_on_checkpoints),
        cmocka_unit_test(test_lock_modes_conflict_by_the_matrix),
        cmocka_unit_test(test_resource_path_cache_opens_same_directory),
        cmocka_unit_test(test_lock_on_siblings_does_not_conflict),
        cmocka_unit_test(test_lock_queue_is_served_in_arrival_order),
        cmocka_unit_test(test_lock_upgrade_precedes_other_requests),
        cmocka_unit_test(test_deadlock_ends_youngest_request),
        cmocka_unit_test(test_lock_update_mode_prevents_upgrade_deadlock),
        cmocka_unit_test(test_lock_transaction_ignores_locks_of_its_session),
        cmocka_unit_test(test_lock_token_changes_with_the_lock),
        cmocka_unit_test(test_lock_tokens_differ_within_one_step),
        cmocka_unit_test(test_lock_request_is_granted_whole),
        cmocka_unit_test(test_lock_moves_with_its_document),
        cmocka_unit_test(test_lock_release_grants_only_the_next_of_many),
        cmocka_unit_test(test_deadlock_search_is_linear),
        cmocka_unit_test(test_own_requests_in_queue_are_not_visited),
        cmocka_unit_test(test_requests_of_one_owner_wait_as_a_group),
        cmocka_unit_test(test_request_between_many_of_one_owner_blocks),
        cmocka_unit_test(test_request_before_many_of_one_owner_blocks),
        cmocka_unit_test(test_lock_conflicts_of_large_holders_are_bounded),
        cmocka_unit_test(test_lock_path_depth_is_limited),
        cmocka_unit_test(test_resource_names_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
