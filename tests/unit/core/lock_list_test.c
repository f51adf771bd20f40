/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: locks, sessions and transactions are listed in pages of bounded work. Together the pages
 * have each resource once, in tree order, whatever changes between two pages. Method: thousands of
 * locks through core_step(), more of them between the pages, compared with the lock table.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/session/owners.h"
#include "core/wait/lock_event.h"

enum {
    DOCUMENTS = 12000,
    AT_ONCE = 500,     /* targets of one LOCK */
    STEPS_MAX = 20000, /* the limit of a page, plus one row */
    HOLDERS = 2500,
};

struct list_of_rows {
    struct status_row *rows;
    size_t count, capacity;
    struct status_overflow overflows[16];
    size_t overflow_count;
    size_t pages;
    struct arena arena;
};

static void open_session(struct core_fixture *fixture, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = arena_copy(&command->arena, slice_from(id));
    command->session.ttl_us = 3600 * TL_SECOND;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

static void lock(struct core_fixture *fixture, const char *session, struct lock_target *targets, size_t count)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = arena_copy(&command->arena, slice_from(session));
    command->lock.targets = targets;
    command->lock.target_count = count;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

static void lock_documents(struct core_fixture *fixture, const char *prefix, size_t count, struct arena *arena)
{
    struct lock_target *targets = arena_alloc(arena, AT_ONCE * sizeof *targets);
    for (size_t i = 0; i < count; i += AT_ONCE) {
        for (size_t k = 0; k < AT_ONCE; k++)
            targets[k] = (struct lock_target){.mode = LOCK_X,
                                              .index = SLICE_LIT("fs"),
                                              .id = arena_printf(arena, "%s%zu", prefix, (i + k) * 7919 % 100003)};
        lock(fixture, "s", targets, AT_ONCE);
    }
}

static struct command *ask(struct core_fixture *fixture, uint64_t place, struct status_overflow overflow)
{
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status.what = STATUS_LOCKS;
    command->status.cursor = place;
    command->status.overflow = overflow;
    command = fixture_run(fixture, command, 1);
    assert_in_range(command->status.work, 1, STEPS_MAX);
    return command;
}

static void take(struct list_of_rows *all, const struct status_command *status)
{
    all->pages++;
    for (size_t i = 0; i < status->row_count; i++) {
        const struct status_row *row = &status->rows[i];
        all->rows = arena_grow(&all->arena, all->rows, all->count, &all->capacity, sizeof *all->rows);
        all->rows[all->count++] =
            (struct status_row){arena_copy(&all->arena, row->key), arena_copy(&all->arena, row->name),
                                arena_copy(&all->arena, row->holders), arena_copy(&all->arena, row->waiters)};
    }
    for (size_t i = 0; i < status->overflow_count; i++)
        all->overflows[all->overflow_count++] = status->overflows[i];
}

static int compare_keys(const void *a, const void *b)
{
    return slice_compare(((const struct status_row *)a)->key, ((const struct status_row *)b)->key);
}

/* Reads all pages and sorts their rows. Calls `between` (may be NULL) after each page. */
static void read_all(struct core_fixture *fixture, struct list_of_rows *all,
                     void (*between)(struct core_fixture *, size_t))
{
    uint64_t place = 0;
    *all = (struct list_of_rows){.arena = ARENA_INIT};
    do {
        struct command *command = ask(fixture, place, (struct status_overflow){0});
        take(all, &command->status);
        place = command->status.cursor;
        if (between != NULL)
            between(fixture, all->pages);
    } while (place != 0);
    for (size_t i = 0; i < all->overflow_count; i++)
        for (struct status_overflow overflow = all->overflows[i]; overflow.number != 0;) {
            struct command *command = ask(fixture, 0, overflow);
            overflow = command->status.overflow;
            take(all, &command->status);
        }
    qsort(all->rows, all->count, sizeof *all->rows, compare_keys);
}

static void test_lock_list_has_each_lock_once_in_tree_order(void **state)
{
    struct core_fixture fixture;
    struct list_of_rows all;
    struct arena arena = ARENA_INIT;
    size_t count;
    (void)state;
    fixture_open(&fixture);
    open_session(&fixture, "s");
    struct lock_target mixed[] = {
        {.mode = LOCK_S, .index = SLICE_LIT("a"), .id = SLICE_LIT("x")},
        {.mode = LOCK_S, .index = SLICE_LIT("a"), .id = SLICE_LIT("xy")},
        {.mode = LOCK_S, .index = SLICE_LIT("a"), .type = SLICE_LIT("t"), .id = SLICE_LIT("x")},
        {.mode = LOCK_S, .index = SLICE_LIT("ab")},
    };
    lock(&fixture, "s", mixed, 4);
    lock_documents(&fixture, "", DOCUMENTS, &arena);
    read_all(&fixture, &all, NULL);
    const struct resource **right = lock_table_resources(&fixture.core->owners->locks, &arena, &count);
    assert_int_equal(all.count, count);
    assert_in_range(all.pages, 5, 200);
    for (size_t i = 0; i < count; i++) {
        struct buf name = BUF_INIT(BUF_UNLIMITED);
        describe_resource_json(right[i], &name);
        assert_true(slice_equal(all.rows[i].name, buf_as_slice(&name)));
        assert_true(all.rows[i].holders.len > 0 && all.rows[i].waiters.len == 0);
        buf_deinit(&name);
    }
    arena_deinit(&all.arena);
    arena_deinit(&arena);
    fixture_close(&fixture);
}

static void lock_more(struct core_fixture *fixture, size_t page)
{
    struct arena arena = ARENA_INIT;
    char prefix[32];
    snprintf(prefix, sizeof prefix, "new%zu-", page);
    if (page <= 20)
        lock_documents(fixture, prefix, 4 * AT_ONCE, &arena);
    arena_deinit(&arena);
}

/* The table grows several times while it is read. */
static void test_lock_list_reports_stable_locks_once_across_pages(void **state)
{
    struct core_fixture fixture;
    struct list_of_rows all;
    struct arena arena = ARENA_INIT;
    size_t old = 0;
    (void)state;
    fixture_open(&fixture);
    open_session(&fixture, "s");
    lock_documents(&fixture, "old", DOCUMENTS, &arena);
    read_all(&fixture, &all, lock_more);
    for (size_t i = 0; i < all.count; i++) {
        assert_true(i == 0 || !slice_equal(all.rows[i].key, all.rows[i - 1].key));
        old += strstr(all.rows[i].name.data, "\"old") != NULL;
    }
    assert_int_equal(old, DOCUMENTS);
    assert_true(all.count > DOCUMENTS);
    arena_deinit(&all.arena);
    arena_deinit(&arena);
    fixture_close(&fixture);
}

static void close_session(struct core_fixture *fixture, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
    command->session.id = arena_copy(&command->arena, slice_from(id));
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

static void free_many(struct core_fixture *fixture, size_t page)
{
    if (page == 2)
        close_session(fixture, "many");
}

/* The tables shrink while they are read: after an owner ends they have the size that the remaining locks need. */
static void test_lock_list_reports_locks_once_when_the_table_shrinks(void **state)
{
    enum { MANY = 90000, OF_ONE_REQUEST = 10000 };
    struct core_fixture fixture;
    struct list_of_rows all;
    struct arena arena = ARENA_INIT;
    size_t old = 0;
    (void)state;
    fixture_open(&fixture);
    open_session(&fixture, "s");
    open_session(&fixture, "many");
    lock_documents(&fixture, "old", DOCUMENTS, &arena);
    struct lock_target *targets = arena_alloc(&arena, MANY * sizeof *targets);
    for (size_t i = 0; i < MANY; i++)
        targets[i] =
            (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("other"), .id = arena_printf(&arena, "many%zu", i)};
    for (size_t i = 0; i < MANY; i += OF_ONE_REQUEST)
        lock(&fixture, "many", targets + i, OF_ONE_REQUEST);
    const struct lock_table *locks = &fixture.core->owners->locks;
    size_t before = locks->bucket_count;
    read_all(&fixture, &all, free_many);
    assert_true(locks->bucket_count <= before / 2 && locks->resources.bucket_count == locks->bucket_count);
    for (size_t i = 0; i < all.count; i++) {
        assert_true(i == 0 || !slice_equal(all.rows[i].key, all.rows[i - 1].key));
        old += strstr(all.rows[i].name.data, "\"old") != NULL;
    }
    assert_int_equal(old, DOCUMENTS);
    close_session(&fixture, "s");
    assert_true(lock_table_is_idle(locks));
    assert_in_range(locks->bucket_count, 1, 64);
    assert_in_range(locks->resources.bucket_count, 1, 64);
    arena_deinit(&all.arena);
    arena_deinit(&arena);
    fixture_close(&fixture);
}

static size_t count_text(struct slice text, const char *what)
{
    size_t count = 0;
    for (const char *at = text.data; at != NULL && (at = strstr(at, what)) != NULL; at++)
        count++;
    return count;
}

/* A resource with thousands of holders is itself paged. */
static void test_lock_list_pages_holders_of_one_resource(void **state)
{
    struct core_fixture fixture;
    struct list_of_rows all;
    struct lock_target target = {.mode = LOCK_S, .index = SLICE_LIT("fs"), .id = SLICE_LIT("1")};
    size_t holders = 0;
    (void)state;
    fixture_open(&fixture);
    for (size_t i = 0; i < HOLDERS; i++) {
        char id[32];
        snprintf(id, sizeof id, "s%zu", i);
        open_session(&fixture, id);
        lock(&fixture, id, &target, 1);
    }
    read_all(&fixture, &all, NULL);
    for (size_t i = 0; i < all.count; i++)
        if (strstr(all.rows[i].name.data, "\"id\"") != NULL)
            holders += count_text(all.rows[i].holders, "\"fencing_token\"");
    assert_int_equal(holders, HOLDERS);
    assert_true(all.pages >= 3);
    arena_deinit(&all.arena);
    fixture_close(&fixture);
}

/* --- Owners ------------------------------------------------------------------------------------------------------- */

enum { OWNERS = 2500, OWNERS_A_PAGE = 1000 };

static void open_sessions(struct core_fixture *fixture, const char *prefix, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char id[32];
        snprintf(id, sizeof id, "%s%zu", prefix, i);
        open_session(fixture, id);
    }
}

static void open_transaction(struct core_fixture *fixture, size_t number)
{
    struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
    command->txn.id = arena_printf(&command->arena, "t%zu", number);
    command->txn.mode = TXN_UPDATE;
    command->txn.idle_us = 3600 * TL_SECOND;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

static struct command *ask_page(struct core_fixture *fixture, enum status_what what, const char *id, uint64_t place)
{
    struct command *command = command_new(COMMAND_STATUS, DIALECT_7);
    command->status.what = what;
    command->status.id = slice_from(id);
    command->status.cursor = place;
    return fixture_run(fixture, command, 1);
}

/* Checks that the numbers named `name` in a text ascend. Returns: how many there are. */
static size_t count_rising(struct slice text, const char *name, uint64_t *last)
{
    struct arena arena = ARENA_INIT;
    size_t count = 0;
    const char *end = arena_copy(&arena, text).data;
    while (text.len > 0 && (end = strstr(end, name)) != NULL) {
        uint64_t number = strtoull(end += strlen(name), NULL, 10);
        assert_true(number > *last);
        *last = number;
        count++;
    }
    arena_deinit(&arena);
    return count;
}

/*
 * Sessions that are open throughout are listed once, although others are opened and closed between
 * the pages.
 */
static void test_session_list_is_paged(void **state)
{
    struct core_fixture fixture;
    uint64_t place = 0, last = 0;
    size_t count = 0, pages = 0;
    (void)state;
    fixture_open(&fixture);
    open_sessions(&fixture, "s", OWNERS);
    do {
        const struct status_command *status = &ask_page(&fixture, STATUS_SESSIONS, "", place)->status;
        place = status->cursor;
        size_t listed = count_rising(status->page, "\"session\":", &last);
        assert_in_range(listed, 1, OWNERS_A_PAGE);
        assert_true((place == 0) == slice_is(status->body, "[]"));
        count += listed;
        if (pages++ == 0) {
            close_session(&fixture, "s0");    /* listed already */
            close_session(&fixture, "s1500"); /* not listed yet */
            open_sessions(&fixture, "new", 10);
        }
    } while (place != 0);
    assert_int_equal(count, OWNERS - 1 + 10);
    assert_int_equal(pages, 3);
    fixture_close(&fixture);
}

static void test_transaction_list_is_paged(void **state)
{
    struct core_fixture fixture;
    uint64_t place = 0, last = 0;
    size_t count = 0, pages = 0;
    (void)state;
    fixture_open(&fixture);
    for (size_t i = 0; i < OWNERS; i++)
        open_transaction(&fixture, i);
    do {
        const struct status_command *status = &ask_page(&fixture, STATUS_TRANSACTIONS, "", place)->status;
        place = status->cursor;
        count += count_rising(status->page, "\"transaction\":", &last);
        pages++;
    } while (place != 0);
    assert_int_equal(count, OWNERS);
    assert_int_equal(pages, 3);
    fixture_close(&fixture);
}

/* More locks are acquired between the pages. When the session ends, the next page reports that. */
static void test_session_locks_are_paged(void **state)
{
    struct core_fixture fixture;
    struct arena arena = ARENA_INIT;
    uint64_t place = 0;
    size_t count = 0, pages = 0;
    (void)state;
    fixture_open(&fixture);
    open_session(&fixture, "s");
    lock_documents(&fixture, "old", DOCUMENTS, &arena);
    do {
        const struct status_command *status = &ask_page(&fixture, STATUS_SESSIONS, "s", place)->status;
        assert_true((place == 0) == (status->body.len > 0));
        place = status->cursor;
        count += count_text(arena_copy(&arena, status->page), "\"old");
        if (pages++ == 0)
            lock_documents(&fixture, "new", AT_ONCE, &arena);
    } while (place != 0);
    assert_int_equal(count, DOCUMENTS);
    assert_int_equal(pages, 3);
    place = ask_page(&fixture, STATUS_SESSIONS, "s", 0)->status.cursor;
    close_session(&fixture, "s");
    assert_int_equal(ask_page(&fixture, STATUS_SESSIONS, "s", place)->problem.type, PROBLEM_SESSION_MISSING);
    arena_deinit(&arena);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session_list_is_paged),
        cmocka_unit_test(test_transaction_list_is_paged),
        cmocka_unit_test(test_session_locks_are_paged),
        cmocka_unit_test(test_lock_list_has_each_lock_once_in_tree_order),
        cmocka_unit_test(test_lock_list_reports_stable_locks_once_across_pages),
        cmocka_unit_test(test_lock_list_reports_locks_once_when_the_table_shrinks),
        cmocka_unit_test(test_lock_list_pages_holders_of_one_resource),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
