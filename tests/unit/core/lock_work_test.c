/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the work of one call of the lock table is at most linear in what clients hold and request
 * (README-locks.md, "The work of a call"). Method: the worst case of each row of the table there,
 * once with n and once with 2n. Looks are counted, not time.
 */
#include "../../lib/unit.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/types.h"
#include "core/locks/lock_internal.h"

/* Many owners, each with at most one waiting request. */
struct owner_set {
    struct lock_table table;
    struct lock_owner *owners;
    struct lock_request **requests;
    size_t count;
    size_t cycles;
    const struct lock_request *victim;
};

static void on_deadlock(void *context, struct lock_request *victim, const struct wait_edge *edges, size_t count,
                        bool requeued)
{
    struct owner_set *set = context;
    (void)edges;
    (void)count;
    (void)requeued;
    set->cycles++;
    set->victim = victim;
}

static void setup(struct owner_set *set, size_t count)
{
    *set = (struct owner_set){.count = count};
    lock_table_init(&set->table, &(struct lock_hooks){.deadlock = on_deadlock, .context = set});
    set->owners = mem_alloc(count * sizeof *set->owners);
    set->requests = mem_zalloc(count * sizeof *set->requests);
    for (size_t i = 0; i < count; i++) {
        lock_table_set_ts(&set->table, 100 + i);
        lock_owner_init(&set->table, &set->owners[i], NULL, NULL);
    }
}

static void teardown(struct owner_set *set)
{
    lock_table_check(&set->table);
    for (size_t i = set->count; i-- > 0;)
        lock_request_free(set->requests[i]);
    for (size_t i = 0; i < set->count; i++) {
        lock_release_all(&set->table, &set->owners[i]);
        lock_owner_deinit(&set->owners[i]);
    }
    assert_true(lock_table_is_idle(&set->table));
    lock_table_deinit(&set->table);
    mem_free(set->owners);
    mem_free(set->requests);
}

/* Names a document; without an id the directory; without a path the index. */
static struct resource_name name_of(const char *path, const char *id)
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

static int ask(struct owner_set *set, size_t at, enum lock_mode mode, struct resource_name name)
{
    struct lock_spec spec = {name, mode, false};
    struct lock_request *request = lock_request_new(&set->table, &set->owners[at], &spec, 1, NULL);
    int outcome = lock_request_start(request, true);
    if (outcome == LOCK_WAITS)
        set->requests[at] = request;
    else
        lock_request_free(request);
    return outcome;
}

static void take(struct owner_set *set, size_t at, enum lock_mode mode, struct resource_name name)
{
    assert_int_equal(ask(set, at, mode, name), LOCK_GRANTED);
}

static void begin_wait(struct owner_set *set, size_t at, enum lock_mode mode, struct resource_name name)
{
    assert_int_equal(ask(set, at, mode, name), LOCK_WAITS);
}

static size_t granted(struct owner_set *set)
{
    size_t count = 0;
    while (lock_table_next_granted(&set->table) != NULL)
        count++;
    return count;
}

/*
 * One owner reads a whole index, all others a document in it. Returns: the work of a request to
 * write there, of its wait and its conflicts.
 */
static uint64_t one_among_many(size_t count)
{
    enum { REPORTED = 100 };
    struct lock_conflict conflicts[REPORTED];
    struct owner_set set;
    setup(&set, count + 2);
    for (size_t i = 0; i < count; i++)
        take(&set, i, LOCK_S, name_of(NULL, numbered(i)));
    take(&set, count, LOCK_S, name_of(NULL, NULL));
    uint64_t before = lock_table_work(&set.table);
    begin_wait(&set, count + 1, LOCK_X, name_of(NULL, "new"));
    assert_int_equal(lock_request_conflicts(set.requests[count + 1], conflicts, REPORTED), 1);
    assert_ptr_equal(conflicts[0].owner, &set.owners[count]);
    uint64_t work = lock_table_work(&set.table) - before;
    teardown(&set);
    return work;
}

/* The blocking holder is found among many others without a visit of each. */
static void test_lock_finds_blocking_holder_among_many(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 100 };
    assert_in_range(one_among_many(FEW), 1, LOOKS);
    assert_in_range(one_among_many(2 * FEW), 1, LOOKS);
}

/*
 * One owner holds documents, and ten times as many requests wait for them. Returns: the work to
 * move all of them atomically.
 */
static uint64_t moved(size_t count, bool backwards)
{
    struct owner_set set;
    size_t documents = count / 10;
    setup(&set, 2 * count);
    for (size_t i = 0; i < documents; i++)
        take(&set, 0, LOCK_X, name_of("/a", numbered(i)));
    for (size_t i = 1; i < count; i++)
        begin_wait(&set, i, LOCK_X, name_of("/a", numbered(i % documents)));
    for (size_t i = count; i < 2 * count; i++) /* after them, requests for the directory */
        begin_wait(&set, i, LOCK_S, name_of("/a", NULL));
    uint64_t before = lock_table_work(&set.table);
    lock_table_suspend_grants(&set.table);
    for (size_t i = 0; i < documents; i++) {
        struct resource_name name = name_of("/a", numbered(backwards ? documents - 1 - i : i));
        lock_table_move_document(&set.table, &name, SLICE_LIT("/b"));
    }
    lock_table_resume_grants(&set.table);
    uint64_t work = lock_table_work(&set.table) - before;
    assert_int_equal(granted(&set), count);
    teardown(&set);
    return work;
}

/*
 * An atomic move of many documents is linear in the documents and the requests that wait for them.
 */
static void test_lock_moves_are_linear(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 100 };
    for (int backwards = 0; backwards < 2; backwards++) {
        uint64_t few = moved(FEW, backwards), many = moved(2 * FEW, backwards);
        assert_in_range(few, FEW, LOOKS * FEW);
        assert_in_range(many, few, 2 * few + few / 5);
    }
}

/*
 * One request waits for all documents of a directory, which another owner has locked. Returns: the work to move all of
 * them.
 */
static uint64_t moved_for_one_request(size_t count)
{
    struct owner_set set;
    struct arena arena = ARENA_INIT;
    struct lock_spec *specs = arena_zalloc(&arena, count * sizeof *specs);
    struct resource_name *names = arena_zalloc(&arena, count * sizeof *names);
    setup(&set, 2);
    take(&set, 0, LOCK_X, name_of("/a", NULL));
    take(&set, 0, LOCK_X, name_of("/b", NULL));
    for (size_t i = 0; i < count; i++) {
        const char *id = arena_printf(&arena, "%zu", i).data /* it ends with 0 */;
        specs[i] = (struct lock_spec){name_of("/a", id), LOCK_X, false};
        names[i] = name_of("/b", id);
    }
    set.requests[1] = lock_request_new(&set.table, &set.owners[1], specs, count, NULL);
    assert_int_equal(lock_request_start(set.requests[1], true), LOCK_WAITS);
    uint64_t before = lock_table_work(&set.table);
    lock_table_suspend_grants(&set.table);
    assert_int_equal(lock_table_relocate_documents(&set.table, names, count), count);
    lock_table_resume_grants(&set.table);
    uint64_t work = lock_table_work(&set.table) - before;
    assert_int_equal(granted(&set), 0);
    for (size_t i = 0; i < count; i++)
        assert_true(lock_table_document_is_at(&set.table, &names[i]));
    lock_table_check(&set.table);
    lock_table_suspend_grants(&set.table);
    assert_int_equal(lock_table_relocate_documents(&set.table, names, count), 0); /* they are there */
    lock_table_resume_grants(&set.table);
    lock_release_all(&set.table, &set.owners[0]);
    assert_int_equal(granted(&set), 1);
    assert_int_equal(set.owners[1].lock_count, count);
    teardown(&set);
    arena_deinit(&arena);
    return work;
}

/*
 * A request enters the queues of its new directories once, however many of its documents move: that takes some 16 to 30
 * units for each, as the hash table of resources is full. Once for each document it would take a thousand.
 */
static void test_lock_moves_of_one_request_are_linear(void **state)
{
    (void)state;
    enum { FEW = 1000, MANY = 8000, LOOKS = 50 };
    assert_in_range(moved_for_one_request(FEW), FEW, LOOKS * FEW);
    assert_in_range(moved_for_one_request(MANY), MANY, LOOKS * MANY);
}

/*
 * Each owner holds a document and waits for that of the next, and all documents move. Returns: the
 * work.
 */
static uint64_t moved_in_chain(size_t count)
{
    struct owner_set set;
    setup(&set, count);
    for (size_t i = 0; i < count; i++)
        take(&set, i, LOCK_X, name_of("/a", numbered(i)));
    for (size_t i = 0; i + 1 < count; i++)
        begin_wait(&set, i, LOCK_X, name_of("/a", numbered(i + 1)));
    uint64_t before = lock_table_work(&set.table);
    lock_table_suspend_grants(&set.table);
    for (size_t i = 0; i < count; i++) {
        struct resource_name name = name_of("/a", numbered(i));
        lock_table_move_document(&set.table, &name, SLICE_LIT("/b"));
    }
    lock_table_resume_grants(&set.table);
    uint64_t work = lock_table_work(&set.table) - before;
    assert_int_equal(set.cycles, 0);
    teardown(&set);
    return work;
}

/* When each of many requests could have closed a cycle, one search covers all of them. */
static void test_deadlock_searches_of_many_requests_are_linear(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 100 };
    assert_in_range(moved_in_chain(FEW), FEW, 2 * LOCK_CYCLE_WORK_MAX + LOOKS * FEW);
    assert_in_range(moved_in_chain(2 * FEW), FEW, 2 * LOCK_CYCLE_WORK_MAX + 2 * LOOKS * FEW);
}

/*
 * All owners but the oldest hold a document in a directory and wait for one that the oldest holds.
 * Then it requests the directory. Returns: the work of that request.
 */
static uint64_t closed(size_t count, struct owner_set *set, int *ret_outcome)
{
    setup(set, count + 1);
    take(set, 0, LOCK_X, name_of("/b", "own"));
    for (size_t i = 1; i <= count; i++)
        take(set, i, LOCK_X, name_of("/a", numbered(i)));
    for (size_t i = 1; i <= count; i++)
        begin_wait(set, i, LOCK_X, name_of("/b", "own"));
    uint64_t before = lock_table_work(&set->table);
    *ret_outcome = ask(set, 0, LOCK_X, name_of("/a", NULL));
    return lock_table_work(&set->table) - before;
}

/*
 * A request that closes many cycles has younger victims, until that takes too much work; then it is
 * the victim itself.
 */
static void test_deadlock_work_of_many_cycles_is_bounded(void **state)
{
    (void)state;
    enum { FEW = 50, MANY = 3000, LOOKS = 100 };
    struct owner_set set;
    int outcome;
    (void)closed(FEW, &set, &outcome);
    assert_int_equal(outcome, LOCK_WAITS);
    assert_int_equal(set.cycles, FEW);
    teardown(&set);
    uint64_t work = closed(MANY, &set, &outcome);
    assert_int_equal(outcome, LOCK_DEADLOCK);
    assert_in_range(set.cycles, 2, MANY / 2);
    assert_in_range(work, LOCK_CYCLE_WORK_MAX, LOCK_CYCLE_WORK_MAX + LOOKS * MANY);
    teardown(&set);
}

/*
 * Owners hold documents in a directory for which as many requests wait. The owners request another
 * document there, which is released. Returns: the work of the release.
 */
static uint64_t released_past_waiters(size_t count)
{
    struct owner_set set;
    struct resource_name last = name_of("/a", "last");
    setup(&set, 2 * count + 1);
    for (size_t i = 0; i < count; i++)
        take(&set, i, LOCK_S, name_of("/a", numbered(i)));
    take(&set, 2 * count, LOCK_X, last);
    for (size_t i = count; i < 2 * count; i++)
        begin_wait(&set, i, LOCK_X, name_of("/a", NULL));
    for (size_t i = 0; i < count; i++)
        begin_wait(&set, i, LOCK_S, last);
    uint64_t before = lock_table_work(&set.table);
    assert_true(lock_release(&set.table, &set.owners[2 * count], &last));
    uint64_t work = lock_table_work(&set.table) - before;
    assert_int_equal(granted(&set), count);
    teardown(&set);
    return work;
}

/*
 * A released lock is granted to many requests, past many that wait for their owners, with a few
 * looks each.
 */
static void test_lock_release_grants_past_many_waiters(void **state)
{
    (void)state;
    enum { FEW = 500, LOOKS = 100 };
    uint64_t few = released_past_waiters(FEW), many = released_past_waiters(2 * FEW);
    assert_in_range(few, FEW, LOOKS * FEW);
    assert_in_range(many, few, 2 * few + few / 5);
}

/*
 * Many owners hold a directory, and another one as many documents of it by one request. Returns:
 * the work to find locks of both kinds by their tokens.
 */
static uint64_t token_found(size_t count)
{
    struct owner_set set;
    struct lock_spec *specs = mem_zalloc(count * sizeof *specs);
    char(*ids)[24] = mem_alloc(count * sizeof *ids);
    struct lock_owner *owner = NULL;
    setup(&set, count + 1);
    for (size_t i = 0; i < count; i++) {
        lock_table_set_ts(&set.table, 10 * count + i);
        take(&set, i, LOCK_S, name_of("/a", NULL));
        (void)snprintf(ids[i], sizeof ids[i], "%zu", i);
        specs[i] = (struct lock_spec){name_of("/a", ids[i]), LOCK_S, false};
    }
    lock_table_set_ts(&set.table, 20 * count);
    struct lock_request *request = lock_request_new(&set.table, &set.owners[count], specs, count, NULL);
    assert_int_equal(lock_request_start(request, false), LOCK_GRANTED);
    lock_request_free(request);
    uint64_t before = lock_table_work(&set.table);
    assert_true(lock_table_find_token(&set.table, 11 * count - 1, &specs[0].on, &owner));
    assert_ptr_equal(owner, &set.owners[count - 1]);
    assert_true(lock_table_find_token(&set.table, 20 * count, &specs[count - 1].on, &owner));
    assert_ptr_equal(owner, &set.owners[count]);
    assert_false(lock_table_find_token(&set.table, 20 * count + 1, &specs[0].on, NULL));
    uint64_t work = lock_table_work(&set.table) - before;
    assert_true(lock_release(&set.table, &set.owners[count], &specs[0].on));
    assert_false(lock_table_find_token(&set.table, 20 * count, &specs[0].on, NULL));
    teardown(&set);
    mem_free(ids);
    mem_free(specs);
    return work;
}

/* A lookup of a token does not visit all locks on the document and its ancestors. */
static void test_lock_token_is_found_among_many_locks(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 100 };
    assert_in_range(token_found(FEW), 1, LOOKS);
    assert_in_range(token_found(2 * FEW), 1, LOOKS);
}

/*
 * A session has locked a directory for which many requests wait. Returns: the work to check one of
 * its writes there.
 */
static uint64_t write_past(size_t count)
{
    struct owner_set set;
    struct lock_owner dependent;
    setup(&set, count + 2);
    take(&set, 0, LOCK_X, name_of("/a", NULL));
    for (size_t i = 1; i < count; i++)
        begin_wait(&set, i, LOCK_X, name_of("/a", NULL));
    take(&set, count, LOCK_S, name_of("/b", "1"));
    begin_wait(&set, 0, LOCK_X, name_of("/b", "1")); /* the session waits too, and so does its transaction */
    lock_owner_init(&set.table, &dependent, &set.owners[0], NULL);
    struct lock_spec own = {name_of("/b", "1"), LOCK_X, false}, spec = {name_of("/a", "new"), LOCK_X, false};
    struct lock_request *request = lock_request_new(&set.table, &dependent, &own, 1, NULL);
    assert_int_equal(lock_request_start(request, true), LOCK_WAITS);
    uint64_t before = lock_table_work(&set.table);
    assert_true(lock_table_can_grant(&set.table, &set.owners[0], &spec));
    assert_true(lock_table_can_grant_ignoring_waiters(&set.table, &set.owners[0], &spec));
    uint64_t work = lock_table_work(&set.table) - before;
    assert_false(lock_table_can_grant(&set.table, &set.owners[1], &spec));
    lock_request_free(request);
    lock_owner_deinit(&dependent);
    teardown(&set);
    return work;
}

/*
 * The check for each item of a bulk request in a directory locked by its session is independent of
 * the waiting requests.
 */
static void test_lock_check_of_write_ignores_many_waiters(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 100 };
    assert_in_range(write_past(FEW), 1, LOOKS);
    assert_in_range(write_past(2 * FEW), 1, LOOKS);
}

/*
 * `count` requests wait for two resources; the holders of the first one ask for the second one, and
 * each passes them all. Returns: the work of the release that grants as many as `quota` allows.
 */
static uint64_t grants_past_waiters_elsewhere(size_t count, size_t quota, size_t *ret_granted)
{
    enum { HOLDERS = 100 };
    struct owner_set set;
    setup(&set, HOLDERS + 1 + count);
    for (size_t i = 0; i < HOLDERS; i++)
        take(&set, i, LOCK_S, name_of(NULL, "first"));
    take(&set, HOLDERS, LOCK_X, name_of(NULL, "second"));
    for (size_t i = HOLDERS + 1; i < set.count; i++) {
        struct lock_spec specs[] = {{name_of(NULL, "first"), LOCK_X, false}, {name_of(NULL, "second"), LOCK_X, false}};
        set.requests[i] = lock_request_new(&set.table, &set.owners[i], specs, 2, NULL);
        assert_int_equal(lock_request_start(set.requests[i], true), LOCK_WAITS);
    }
    for (size_t i = 0; i < HOLDERS; i++)
        begin_wait(&set, i, LOCK_S, name_of(NULL, "second"));
    lock_table_set_grant_quota(&set.table, quota);
    uint64_t before = lock_table_work(&set.table);
    assert_int_equal(lock_release_all(&set.table, &set.owners[HOLDERS]), 1);
    uint64_t work = lock_table_work(&set.table) - before;
    *ret_granted = granted(&set);
    assert_true(lock_table_has_pending_grants(&set.table));
    lock_table_check(&set.table);
    lock_table_set_grant_quota(&set.table, SIZE_MAX);
    lock_table_continue_grants(&set.table);
    assert_int_equal(*ret_granted + granted(&set), HOLDERS);
    assert_false(lock_table_has_pending_grants(&set.table));
    teardown(&set);
    return work;
}

/* One step does not grant more than it may pass others for; the rest is granted later. */
static void test_lock_grants_past_waiters_elsewhere_are_bounded(void **state)
{
    (void)state;
    enum { FEW = 1000, QUOTA = 60, PASSED = 3 * LOCK_GRANT_PASSED * QUOTA, LOOKS = 8 };
    size_t some, fewer;
    assert_in_range(grants_past_waiters_elsewhere(FEW, QUOTA, &some), 1, PASSED + LOOKS * FEW);
    assert_in_range(grants_past_waiters_elsewhere(2 * FEW, QUOTA, &fewer), 1, PASSED + LOOKS * 2 * FEW);
    assert_in_range(some, 10, 30);
    assert_in_range(fewer, some / 2, some - 1);
}

/*
 * `count` requests wait for the quota of grants. Returns: the work of ten atomic changes meanwhile
 * that concern none of them.
 */
static uint64_t changes_beside_pending(size_t count)
{
    enum { CHANGES = 10 };
    struct owner_set set;
    setup(&set, count + 2);
    take(&set, count, LOCK_X, name_of(NULL, "held"));
    for (size_t i = 0; i < count; i++)
        begin_wait(&set, i, LOCK_S, name_of(NULL, "held"));
    lock_table_set_grant_quota(&set.table, 1);
    assert_int_equal(lock_release_all(&set.table, &set.owners[count]), 1);
    uint64_t before = lock_table_work(&set.table);
    for (size_t i = 0; i < CHANGES; i++) {
        struct resource_name name = name_of("/a", numbered(i));
        lock_table_suspend_grants(&set.table);
        take(&set, count + 1, LOCK_X, name);
        lock_table_move_document(&set.table, &name, SLICE_LIT("/b"));
        lock_table_resume_grants(&set.table);
    }
    uint64_t work = lock_table_work(&set.table) - before;
    lock_table_set_grant_quota(&set.table, SIZE_MAX);
    lock_table_continue_grants(&set.table);
    assert_int_equal(granted(&set), count);
    teardown(&set);
    return work;
}

/* A commit does not visit the requests that wait for the quota since earlier steps. */
static void test_lock_changes_do_not_visit_pending_grants(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 1000 };
    assert_in_range(changes_beside_pending(FEW), 1, LOOKS);
    assert_in_range(changes_beside_pending(2 * FEW), 1, LOOKS);
}

/*
 * One owner holds `count` documents, and as many requests of owners that belong to it wait
 * elsewhere. Returns: the work to move all of the documents atomically.
 */
static uint64_t moved_beside_own_requests(size_t count)
{
    struct owner_set set;
    struct resource_name other = name_of(NULL, "other");
    setup(&set, count + 2);
    for (size_t i = 0; i < count; i++)
        take(&set, 0, LOCK_X, name_of("/a", numbered(i)));
    take(&set, 1, LOCK_X, other);
    for (size_t i = 2; i < set.count; i++) {
        lock_owner_deinit(&set.owners[i]);
        lock_owner_init(&set.table, &set.owners[i], &set.owners[0], NULL);
        begin_wait(&set, i, LOCK_X, other);
    }
    uint64_t before = lock_table_work(&set.table);
    lock_table_suspend_grants(&set.table);
    for (size_t i = 0; i < count; i++) {
        struct resource_name name = name_of("/a", numbered(i));
        lock_table_move_document(&set.table, &name, SLICE_LIT("/b"));
    }
    lock_table_resume_grants(&set.table);
    uint64_t work = lock_table_work(&set.table) - before;
    for (size_t i = set.count; i-- > 2;) {
        lock_request_free(set.requests[i]);
        set.requests[i] = NULL;
        lock_owner_deinit(&set.owners[i]);
        lock_owner_init(&set.table, &set.owners[i], NULL, NULL);
    }
    teardown(&set);
    return work;
}

/* The requests of a holder are visited once in an atomic change, not for each moved document. */
static void test_lock_moves_visit_own_requests_once(void **state)
{
    (void)state;
    enum { FEW = 500, LOOKS = 1000 };
    uint64_t few = moved_beside_own_requests(FEW), many = moved_beside_own_requests(2 * FEW);
    assert_in_range(few, FEW, LOOKS * FEW);
    assert_in_range(many, few, 2 * few + few / 5);
}

/* Begins `count` requests of one owner for a document, which wait. Returns: an array, for end_waits(). */
static struct lock_request **begin_waits(struct owner_set *set, size_t at, size_t count)
{
    struct lock_spec spec = {name_of(NULL, "held"), LOCK_X, false};
    struct lock_request **requests = mem_alloc(count * sizeof *requests);
    for (size_t i = 0; i < count; i++) {
        requests[i] = lock_request_new(&set->table, &set->owners[at], &spec, 1, NULL);
        assert_int_equal(lock_request_start(requests[i], true), LOCK_WAITS);
    }
    return requests;
}

static void end_waits(struct owner_set *set, struct lock_request **requests, size_t count)
{
    lock_table_check(&set->table);
    for (size_t i = count; i-- > 0;)
        lock_request_free(requests[i]);
    mem_free(requests);
    teardown(set);
}

enum { BEFORE = 40 }; /* requests of others before those of one owner: more than any search visits one by one */

/*
 * `count` requests of one owner wait for a document: after a holder and requests of others, or (`shared`) after as
 * many holders. Returns: the most work of the end of one of these, before the last.
 */
static uint64_t ended_before_one_owner(size_t count, bool shared)
{
    struct owner_set set;
    struct resource_name held = name_of(NULL, "held");
    uint64_t most = 0;
    setup(&set, BEFORE + 2);
    for (size_t i = 0; i <= BEFORE; i++)
        assert_int_equal(ask(&set, i, shared ? LOCK_S : LOCK_X, held), shared || i == 0 ? LOCK_GRANTED : LOCK_WAITS);
    struct lock_request **requests = begin_waits(&set, BEFORE + 1, count);
    for (size_t i = 0; i < BEFORE; i++) {
        uint64_t before = lock_table_work(&set.table);
        assert_true(lock_release(&set.table, &set.owners[i], &held));
        uint64_t work = lock_table_work(&set.table) - before;
        most = work > most ? work : most;
        assert_int_equal(granted(&set), shared ? 0 : 1);
    }
    assert_true(lock_release(&set.table, &set.owners[BEFORE], &held));
    assert_int_equal(granted(&set), count);
    end_waits(&set, requests, count);
    return most;
}

/* However many requests of one owner an obstacle blocks, its end has one of them evaluated. */
static void test_lock_requests_of_one_owner_are_evaluated_once(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 200 };
    for (int shared = 0; shared < 2; shared++) {
        assert_in_range(ended_before_one_owner(FEW, shared), 1, LOOKS);
        assert_in_range(ended_before_one_owner(2 * FEW, shared), 1, LOOKS);
    }
}

/*
 * `count` requests of one owner wait for a document, and requests of others after them. Returns: the work to grant
 * them, a few in each step, after the first step, whose work is in *ret_first.
 */
static uint64_t granted_to_one_owner(size_t count, uint64_t *ret_first)
{
    enum { QUOTA = 30 };
    struct owner_set set;
    setup(&set, BEFORE + 2);
    take(&set, 0, LOCK_X, name_of(NULL, "held"));
    struct lock_request **requests = begin_waits(&set, 1, count);
    for (size_t i = 2; i < set.count; i++)
        begin_wait(&set, i, LOCK_X, name_of(NULL, "held"));
    size_t grants = 0;
    lock_table_set_grant_quota(&set.table, QUOTA);
    uint64_t before = lock_table_work(&set.table);
    assert_int_equal(lock_release_all(&set.table, &set.owners[0]), 1);
    *ret_first = lock_table_work(&set.table) - before;
    before = lock_table_work(&set.table);
    while (lock_table_has_pending_grants(&set.table)) {
        grants += granted(&set);
        lock_table_set_grant_quota(&set.table, QUOTA);
        lock_table_continue_grants(&set.table);
    }
    uint64_t work = lock_table_work(&set.table) - before;
    assert_int_equal(grants + granted(&set), count);
    lock_table_set_grant_quota(&set.table, SIZE_MAX);
    end_waits(&set, requests, count);
    return work;
}

/* The first grant to an owner has its other requests searched and scheduled; the following ones change no edge. */
static void test_lock_grants_to_one_owner_are_linear(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 60 };
    uint64_t first, few = granted_to_one_owner(FEW, &first);
    assert_in_range(first, FEW, 2 * LOCK_CYCLE_WORK_MAX + LOOKS * FEW);
    assert_in_range(few, FEW, LOOKS * FEW);
    uint64_t many = granted_to_one_owner(2 * FEW, &first);
    assert_in_range(first, FEW, 2 * LOCK_CYCLE_WORK_MAX + 2 * LOOKS * FEW);
    assert_in_range(many, few, 2 * few + few / 5);
}

/*
 * `count` requests of one owner wait for a document, and each for another one that is held for long. Returns: the work
 * of the release of the first one.
 */
static uint64_t released_to_requests_blocked_elsewhere(size_t count)
{
    struct owner_set set;
    struct lock_request **requests = mem_alloc(count * sizeof *requests);
    setup(&set, 3);
    take(&set, 0, LOCK_X, name_of(NULL, "held"));
    for (size_t i = 0; i < count; i++)
        take(&set, 1, LOCK_X, name_of(NULL, numbered(i)));
    for (size_t i = 0; i < count; i++) {
        struct lock_spec specs[] = {{name_of(NULL, "held"), LOCK_X, false},
                                    {name_of(NULL, numbered(i)), LOCK_X, false}};
        requests[i] = lock_request_new(&set.table, &set.owners[2], specs, 2, NULL);
        assert_int_equal(lock_request_start(requests[i], true), LOCK_WAITS);
    }
    uint64_t before = lock_table_work(&set.table);
    assert_int_equal(lock_release_all(&set.table, &set.owners[0]), 1);
    uint64_t work = lock_table_work(&set.table) - before;
    assert_int_equal(granted(&set), 0);
    lock_table_check(&set.table);
    assert_int_equal(lock_release_all(&set.table, &set.owners[1]), count);
    assert_int_equal(granted(&set), count);
    end_waits(&set, requests, count);
    return work;
}

/* All requests of a group may be blocked by something else each: each is evaluated once, with a few looks. */
static void test_lock_requests_blocked_elsewhere_are_evaluated_once(void **state)
{
    (void)state;
    enum { FEW = 1000, LOOKS = 60 };
    uint64_t few = released_to_requests_blocked_elsewhere(FEW), many = released_to_requests_blocked_elsewhere(2 * FEW);
    assert_in_range(few, FEW, LOOKS * FEW);
    assert_in_range(many, few, 2 * few + few / 5);
}

/* Only resources below the directories are examined, each resource once, whatever else is locked. */
static void test_lock_documents_below_ignore_others(void **state)
{
    (void)state;
    enum { BELOW = 100, BESIDE = 8000, LOOKS = 5 };
    const struct slice paths[] = {SLICE_LIT("/a/b"), SLICE_LIT("/a"), SLICE_LIT("/a"), SLICE_LIT("/d")};
    struct arena arena = ARENA_INIT;
    struct owner_set set;
    size_t count;
    setup(&set, 1);
    for (size_t i = 0; i < BELOW + BESIDE; i++)
        take(&set, 0, LOCK_X, name_of(i < BELOW ? "/a/b" : "/c/b", numbered(i)));
    uint64_t before = lock_table_work(&set.table);
    const struct resource_name *names =
        lock_table_documents_below(&set.table, SLICE_LIT("fs"), paths, COUNT_OF(paths), NULL, &arena, &count);
    assert_in_range(lock_table_work(&set.table) - before, BELOW, LOOKS * BELOW);
    assert_int_equal(count, BELOW);
    assert_true(slice_is(names[0].id, "0") && slice_is(names[0].index, "fs") && names[0].path.data == NULL);
    names = lock_table_documents_below(&set.table, SLICE_LIT("fs"), paths, 0, NULL, &arena, &count);
    assert_int_equal(count, 0);
    names = lock_table_documents_below(&set.table, SLICE_LIT("fs"), paths, 1, &set.owners[0], &arena, &count);
    assert_int_equal(count, 0);
    assert_int_equal(lock_table_held_below(&set.table, SLICE_LIT("fs"), paths[1], 0, BESIDE), BELOW);
    assert_int_equal(lock_table_held_below(&set.table, SLICE_LIT("fs"), SLICE_NONE, 0, BELOW), BELOW + 1);
    arena_deinit(&arena);
    teardown(&set);
}

/* A document that its owner alone has locked counts if a granted request of another one still refers to it. */
static void test_lock_documents_of_granted_requests_are_found(void **state)
{
    (void)state;
    const struct slice path = SLICE_LIT("/a");
    struct arena arena = ARENA_INIT;
    struct owner_set set;
    size_t count;
    setup(&set, 2);
    take(&set, 0, LOCK_X, name_of("/a", "1"));
    begin_wait(&set, 1, LOCK_X, name_of("/a", "1"));
    lock_release_all(&set.table, &set.owners[0]);
    assert_int_equal(granted(&set), 1);
    const struct resource_name document = name_of("/a", "1");
    assert_true(lock_release(&set.table, &set.owners[1], &document));
    take(&set, 0, LOCK_X, document);
    assert_int_equal(lock_table_held_below(&set.table, SLICE_LIT("fs"), path, 0, 1), 1);
    (void)lock_table_documents_below(&set.table, SLICE_LIT("fs"), &path, 1, &set.owners[0], &arena, &count);
    assert_int_equal(count, 1);
    lock_request_free(set.requests[1]);
    set.requests[1] = NULL;
    (void)lock_table_documents_below(&set.table, SLICE_LIT("fs"), &path, 1, &set.owners[0], &arena, &count);
    assert_int_equal(count, 0);
    arena_deinit(&arena);
    teardown(&set);
}

/* Documents of an owner, and of those that belong to it, are not held by others. */
static void test_lock_documents_of_others_are_found(void **state)
{
    (void)state;
    const struct slice index = SLICE_LIT("fs");
    struct owner_set set;
    setup(&set, 3);
    lock_owner_deinit(&set.owners[1]);
    lock_owner_init(&set.table, &set.owners[1], &set.owners[0], NULL);
    assert_false(lock_table_others_hold_documents(&set.table, index, NULL));
    take(&set, 0, LOCK_S, name_of("/a", "1"));
    take(&set, 1, LOCK_S, name_of("/a", "1"));
    take(&set, 2, LOCK_S, name_of("/b", NULL));
    assert_false(lock_table_others_hold_documents(&set.table, index, &set.owners[0]));
    assert_true(lock_table_others_hold_documents(&set.table, index, &set.owners[2]));
    assert_true(lock_table_others_hold_documents(&set.table, index, NULL));
    take(&set, 2, LOCK_S, name_of("/a", "1"));
    assert_true(lock_table_others_hold_documents(&set.table, index, &set.owners[0]));
    lock_release_all(&set.table, &set.owners[1]);
    lock_owner_deinit(&set.owners[1]);
    lock_owner_init(&set.table, &set.owners[1], NULL, NULL);
    teardown(&set);
}

/* Documents that are only requested do not count as locked. */
static void test_lock_waiting_documents_are_not_held(void **state)
{
    (void)state;
    const struct slice path = SLICE_LIT("/a");
    struct arena arena = ARENA_INIT;
    struct owner_set set;
    size_t count;
    setup(&set, 2);
    take(&set, 0, LOCK_X, name_of("/a", NULL));
    begin_wait(&set, 1, LOCK_X, name_of("/a", "1"));
    (void)lock_table_documents_below(&set.table, SLICE_LIT("fs"), &path, 1, NULL, &arena, &count);
    assert_int_equal(count, 1);
    assert_int_equal(lock_table_held_below(&set.table, SLICE_LIT("fs"), path, 0, 1), 0);
    assert_int_equal(lock_table_held_below(&set.table, SLICE_LIT("fs"), SLICE_NONE, 0, 1), 0);
    arena_deinit(&arena);
    teardown(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_finds_blocking_holder_among_many),
        cmocka_unit_test(test_lock_moves_are_linear),
        cmocka_unit_test(test_lock_moves_of_one_request_are_linear),
        cmocka_unit_test(test_deadlock_searches_of_many_requests_are_linear),
        cmocka_unit_test(test_deadlock_work_of_many_cycles_is_bounded),
        cmocka_unit_test(test_lock_release_grants_past_many_waiters),
        cmocka_unit_test(test_lock_grants_past_waiters_elsewhere_are_bounded),
        cmocka_unit_test(test_lock_token_is_found_among_many_locks),
        cmocka_unit_test(test_lock_check_of_write_ignores_many_waiters),
        cmocka_unit_test(test_lock_changes_do_not_visit_pending_grants),
        cmocka_unit_test(test_lock_moves_visit_own_requests_once),
        cmocka_unit_test(test_lock_requests_of_one_owner_are_evaluated_once),
        cmocka_unit_test(test_lock_grants_to_one_owner_are_linear),
        cmocka_unit_test(test_lock_requests_blocked_elsewhere_are_evaluated_once),
        cmocka_unit_test(test_lock_documents_below_ignore_others),
        cmocka_unit_test(test_lock_documents_of_granted_requests_are_found),
        cmocka_unit_test(test_lock_documents_of_others_are_found),
        cmocka_unit_test(test_lock_waiting_documents_are_not_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
