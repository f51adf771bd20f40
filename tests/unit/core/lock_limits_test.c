/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: one request for locks is bounded by their number, memory and work, whatever its names mean
 * (src/core/README-locks.md, "The limits of a request").
 * Method: requests of the largest size, in a core whose fixture fails if a step is not bounded, and small limits.
 * Commands of versions 13 and 17 keep the effect that they had.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rand.h"
#include "core/command/catalog_options.h"
#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/acquire/lock_levels.h"
#include "core/acquire/lock_resolve.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"

enum { TYPES = 10, MOST = 100000, BEFORE = COMMAND_SINCE_PLAIN_LOCKS - 1, UNDIVIDED = COMMAND_SINCE_LOCK_STEP - 1 };

static void open_session(struct core_fixture *fixture, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = slice_from(id);
    command->session.ttl_us = 3600 * TL_SECOND;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

static void end_session(struct core_fixture *fixture, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
    command->session.id = slice_from(id);
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

static const struct lock_owner *owner_of_session(struct core_fixture *fixture, const char *id)
{
    return &owners_session(fixture->core->owners, slice_from(id))->owner.locks;
}

/* An index of many types, t0 and so on, each with a path field. */
static void make_types(struct core_fixture *fixture, const char *index)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&body, "{\"mappings\":{");
    for (int i = 0; i < TYPES; i++)
        buf_printf(&body, "%s\"t%d\":{\"properties\":{\"path\":{\"type\":\"path\"}}}", i > 0 ? "," : "", i);
    buf_append(&body, "}}", sizeof "}}");
    fixture->dialect = DIALECT_5;
    assert_int_equal(fixture_index_command(fixture, COMMAND_INDEX_CREATE, index, body.data)->problem.type,
                     PROBLEM_NONE);
    fixture->dialect = DIALECT_7;
    buf_deinit(&body);
}

/* A request of session "s" for the documents 0 to `count` - 1, or to release them. */
static struct command *of_documents(enum command_type type, size_t count, const char *of_type)
{
    struct command *command = command_new(type, DIALECT_5);
    command->owner.session = SLICE_LIT("s");
    command->lock.targets = arena_zalloc(&command->arena, count * sizeof(struct lock_target));
    command->lock.target_count = count;
    for (size_t i = 0; i < count; i++)
        command->lock.targets[i] = (struct lock_target){.mode = LOCK_X,
                                                        .index = SLICE_LIT("fs"),
                                                        .type = slice_from(of_type),
                                                        .id = arena_printf(&command->arena, "%zu", i)};
    return command;
}

static enum problem_type outcome(struct core_fixture *fixture, struct command *command)
{
    return fixture_run(fixture, command, 1)->problem.type;
}

static void begin(struct core_fixture *fixture)
{
    fixture_open(fixture);
    make_types(fixture, "fs");
    open_session(fixture, "s");
}

/*
 * Releases the documents 0 to `count` - 1 of session "s" by as many commands as that takes, each of which does the
 * first ones of those that are left. Returns: how many that are; *ret_released: how many were held.
 */
static size_t release(struct core_fixture *fixture, size_t count, const char *of_type, size_t *ret_released)
{
    size_t commands = 0;
    *ret_released = 0;
    for (size_t first = 0; first < count; commands++) {
        struct command *command = of_documents(COMMAND_UNLOCK, count, of_type);
        command->lock.targets += first;
        command->lock.target_count -= first;
        assert_int_equal(outcome(fixture, command), PROBLEM_NONE);
        assert_in_range(fixture->last->lock.done, 1, count - first);
        first += fixture->last->lock.done;
        *ret_released += fixture->last->lock.released;
    }
    return commands;
}

/* A request of 100,000 names ends early where each means many locks, and has no effect. */
static void test_lock_of_many_types_is_bounded(void **state)
{
    struct core_fixture fixture;
    (void)state;

    begin(&fixture);
    for (int release = 0; release < 2; release++) {
        enum problem_type type = outcome(&fixture, of_documents(release ? COMMAND_UNLOCK : COMMAND_LOCK, MOST, ""));
        assert_int_equal(type, release ? PROBLEM_NONE : PROBLEM_ILLEGAL_ARGUMENT);
        assert_true(core_step_work(fixture.core) < CORE_STEP_WORK);
        assert_true(lock_table_is_idle(&fixture.core->owners->locks));
    }
    struct command *older = of_documents(COMMAND_LOCK, MOST, "");
    older->version = UNDIVIDED;
    assert_int_equal(outcome(&fixture, older), PROBLEM_LIMIT_EXCEEDED);
    assert_true(core_step_work(fixture.core) < CORE_LOCK_WORK + CORE_STEP_WORK);
    fixture_close(&fixture);
}

/*
 * Before version 18 100,000 documents by their types are locked in one request. They are released in some, each of
 * which is bounded.
 */
static void test_lock_of_named_types_is_granted(void **state)
{
    struct core_fixture fixture;
    size_t released;
    (void)state;

    begin(&fixture);
    struct command *older = of_documents(COMMAND_LOCK, MOST, "t3");
    older->version = UNDIVIDED;
    assert_int_equal(outcome(&fixture, older), PROBLEM_NONE);
    assert_int_equal(owner_of_session(&fixture, "s")->lock_count, MOST);
    assert_in_range(release(&fixture, MOST, "t3", &released), 4, 20);
    assert_int_equal(released, MOST);
    assert_true(lock_table_is_idle(&fixture.core->owners->locks));
    fixture_close(&fixture);
}

/* A request of session "s" for `count` documents, or directories of one directory, of an index that does not exist. */
static struct command *of_new_index(enum command_type type, size_t count, bool directories)
{
    struct command *command = of_documents(type, count, "");
    for (size_t i = 0; i < count; i++) {
        struct lock_target *target = &command->lock.targets[i];
        target->index = SLICE_LIT("new");
        if (directories) {
            target->id = SLICE_NONE;
            target->path = arena_printf(&command->arena, "/d/%zu", i);
        }
    }
    return command;
}

/*
 * A request may have so many locks that its step is bounded, and not one more: then it is refused without effect, and
 * says what to do. Before version 18 it was granted.
 */
static void test_lock_takes_one_step_at_most(void **state)
{
    (void)state;

    for (int directories = 0; directories < 2; directories++) {
        struct core_fixture fixture;
        /* A directory has three levels, of which two are shared. */
        size_t most = directories ? (LOCK_WORK_MAX - 2 * WORK_LEVEL_LOCKED) /
                                        (WORK_LOCK_ASKED + 3 * WORK_PATH_LEVEL + WORK_LEVEL_LOCKED)
                                  : LOCK_WORK_MAX / WORK_LOCK_ASKED;
        fixture_open(&fixture);
        for (size_t count = most - 1; count <= most + 1; count++) {
            open_session(&fixture, "s");
            assert_int_equal(outcome(&fixture, of_new_index(COMMAND_LOCK, count, directories)),
                             count > most ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NONE);
            assert_true(core_step_work(fixture.core) < CORE_STEP_WORK);
            assert_int_equal(owner_of_session(&fixture, "s")->lock_count, count > most ? 0 : count);
            if (count > most)
                assert_non_null(strstr(fixture.last->problem.reason.data, "lock a directory above them"));
            struct command *older = of_new_index(COMMAND_LOCK, count, directories);
            older->version = UNDIVIDED;
            assert_int_equal(outcome(&fixture, older), PROBLEM_NONE);
            assert_int_equal(owner_of_session(&fixture, "s")->lock_count, count);
            end_session(&fixture, "s");
        }
        fixture_close(&fixture);
    }
}

/* Names of many bytes count by these: 10,000 ids of 500 bytes are granted, 20,000 are not. */
static void test_bytes_of_names_count(void **state)
{
    struct core_fixture fixture;
    char id[501];
    (void)state;

    fixture_open(&fixture);
    open_session(&fixture, "s");
    memset(id, 'x', sizeof id);
    for (size_t count = 20000; count > 0; count -= 10000) {
        struct command *command = of_new_index(COMMAND_LOCK, count, false);
        for (size_t i = 0; i < count; i++) {
            snprintf(id + 490, 11, "%010zu", i);
            command->lock.targets[i].id = arena_copy(&command->arena, slice_make(id, 500));
        }
        assert_int_equal(outcome(&fixture, command), count > 10000 ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NONE);
    }
    fixture_close(&fixture);
}

/* A TXN_LOCK of transaction "t" for the documents `first` to `end` - 1 of an index that does not exist. */
static struct command *of_reads(size_t first, size_t end)
{
    struct command *command = command_new(COMMAND_TXN_LOCK, DIALECT_7);
    struct command *documents = of_new_index(COMMAND_LOCK, end, false);
    command->owner.transaction = SLICE_LIT("t");
    command->txn_lock.targets = arena_zalloc(&command->arena, (end - first + 1) * sizeof(struct lock_target));
    command->txn_lock.target_count = end - first;
    for (size_t i = first; i < end; i++) {
        struct lock_target *target = &command->txn_lock.targets[i - first];
        *target = documents->lock.targets[i];
        target->id = arena_copy(&command->arena, target->id);
        target->mode = LOCK_S;
    }
    command_free(documents);
    return command;
}

static void forget_view(struct command *command)
{
    core_overlay_unref(command->txn_lock.overlay);
    command->txn_lock.overlay = NULL;
}

/* The locks of a read are granted by several commands, each of which is bounded; before version 18 by one. */
static void test_reads_are_divided(void **state)
{
    enum { DOCUMENTS = 50000 };
    (void)state;

    for (int older = 0; older < 2; older++) {
        struct core_fixture fixture;
        size_t commands = 0;
        fixture_open(&fixture);
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
        for (size_t first = 0; first < DOCUMENTS; commands++) {
            struct command *command = of_reads(first, DOCUMENTS);
            command->version = older ? UNDIVIDED : COMMAND_CODEC_VERSION;
            assert_int_equal(outcome(&fixture, command), PROBLEM_NONE);
            assert_true(older || core_step_work(fixture.core) < CORE_STEP_WORK);
            assert_in_range(command->txn_lock.done, 1, DOCUMENTS - first);
            first += command->txn_lock.done;
            assert_int_equal(owners_txn(fixture.core->owners, SLICE_LIT("t"))->owner.locks.lock_count, first);
            forget_view(command);
        }
        assert_in_range(commands, older ? 1 : 2, older ? 1 : 10);
        fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, "t");
        fixture_close(&fixture);
    }
}

/* One name that means more than one command may have is refused, after those that precede it have their locks. */
static void test_read_of_too_much_is_refused(void **state)
{
    enum { NAMES = 20000 };
    static const struct catalog_options options = {.ignore_unavailable = true, .allow_no_indices = true};
    struct core_fixture fixture;
    struct buf names = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    for (int i = 0; i < NAMES; i++)
        buf_printf(&names, "%si%d", i > 0 ? "," : "", i);
    for (size_t first = 0; first < 2; first++) {
        struct command *command = of_reads(first, 2);
        command->txn_lock.targets[1 - first] =
            (struct lock_target){.mode = LOCK_S, .index = buf_as_slice(&names), .expression = &options};
        assert_int_equal(outcome(&fixture, command), first > 0 ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NONE);
        assert_int_equal(command->txn_lock.done, 1);
        forget_view(command);
    }
    fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, "t");
    fixture_close(&fixture);
    buf_deinit(&names);
}

/*
 * A document of 9 MB without a path takes more than a step to read, which one request does: also the remedy for more,
 * which is refused, needs it.
 */
static void test_one_large_document_is_locked(void **state)
{
    enum { BYTES = 9000000 };
    struct core_fixture fixture;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    fixture.unbounded = true;
    open_session(&fixture, "s");
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "new",
                          "{\"mappings\":{\"dynamic\":false,\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    buf_printf(&source, "{\"n\":[1");
    while (source.len < BYTES)
        buf_printf(&source, ",1");
    buf_printf(&source, "]}");
    buf_append(&source, "", 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(fixture_index(&fixture, "new", i == 0 ? "0" : "1", source.data)->outcome, WRITE_CREATED);
    struct command *read = of_reads(0, 2);
    assert_int_equal(outcome(&fixture, read), PROBLEM_NONE);
    assert_int_equal(read->txn_lock.done, 1);
    forget_view(read);
    fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, "t");
    assert_int_equal(outcome(&fixture, of_new_index(COMMAND_LOCK, 2, false)), PROBLEM_ILLEGAL_ARGUMENT);
    assert_int_equal(outcome(&fixture, of_new_index(COMMAND_LOCK, 1, false)), PROBLEM_NONE);
    fixture_close(&fixture);
    buf_deinit(&source);
}

/* Auxiliary locks, under the other types of a document, do not count; before version 14 they did. */
static void test_auxiliary_locks_do_not_count(void **state)
{
    enum { FEW = 20 };
    struct core_fixture fixture;
    (void)state;

    begin(&fixture);
    fixture.core->limits.locks_per_session_max = FEW;
    struct command *older = of_documents(COMMAND_LOCK, FEW, "");
    older->version = BEFORE;
    assert_int_equal(outcome(&fixture, older), PROBLEM_LIMIT_EXCEEDED);
    assert_int_equal(outcome(&fixture, of_documents(COMMAND_LOCK, FEW, "")), PROBLEM_NONE);
    const struct lock_owner *owner = owner_of_session(&fixture, "s");
    assert_int_equal(owner->lock_count, FEW);
    assert_int_equal(owner->auxiliary_count, FEW * TYPES);
    assert_int_equal(outcome(&fixture, of_documents(COMMAND_UNLOCK, FEW, "")), PROBLEM_NONE);
    assert_int_equal(fixture.last->lock.released, FEW);
    assert_true(lock_table_is_idle(&fixture.core->owners->locks));
    assert_int_equal(outcome(&fixture, of_documents(COMMAND_LOCK, FEW + 1, "")), PROBLEM_LIMIT_EXCEEDED);
    fixture_close(&fixture);
}

/* Nor do those of a transaction: the name of the alias that it writes by. */
static void test_auxiliary_locks_of_transaction_do_not_count(void **state)
{
    enum { FEW = 4 };
    (void)state;

    for (int older = 0; older < 2; older++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "x", "{\"aliases\":{\"a\":{}}}");
        fixture.core->limits.locks_per_session_max = FEW;
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
        struct command *command = fixture_write_command(&fixture, FEW);
        command->owner.transaction = SLICE_LIT("t");
        command->version = older ? BEFORE : BEFORE + 1;
        for (int i = 0; i < FEW; i++) {
            command->write.items[i] = fixture_item(WRITE_INDEX, "a", "", "", "{}");
            command->write.items[i].id = arena_printf(&command->arena, "%d", i);
        }
        assert_int_equal(outcome(&fixture, command), older ? PROBLEM_TRANSACTION_TOO_LARGE : PROBLEM_NONE);
        fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, "t");
        fixture_close(&fixture);
    }
}

/* The memory of a session's locks is limited, with the directories above them; before version 14 it was not. */
static void test_memory_of_locks_is_limited(void **state)
{
    struct core_fixture fixture;
    struct lock_target target = {.mode = LOCK_X, .index = SLICE_LIT("new"), .path = SLICE_LIT("/a/b/c/d/e/f/g")};
    (void)state;

    fixture_open(&fixture);
    open_session(&fixture, "s");
    for (unsigned version = BEFORE + 1; version >= BEFORE; version--) {
        struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
        command->owner.session = SLICE_LIT("s");
        command->lock.targets = &target;
        command->lock.target_count = 1;
        command->version = version;
        fixture.core->limits.transaction_held_max = 1000;
        assert_int_equal(outcome(&fixture, command), version > BEFORE ? PROBLEM_LIMIT_EXCEEDED : PROBLEM_NONE);
    }
    assert_int_equal(owner_of_session(&fixture, "s")->lock_count, 1);
    fixture_close(&fixture);
}

/* All locks that the memory allows are released in a bounded step, also where most are of the levels above them. */
static void test_release_of_deep_locks_is_bounded(void **state)
{
    enum { DEEP = 80, LEVELS = 1500 };
    (void)state;

    for (int of_session = 0; of_session < 2; of_session++) {
        struct core_fixture fixture;
        struct buf path = BUF_INIT(BUF_UNLIMITED);
        fixture_open(&fixture);
        open_session(&fixture, "s");
        struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
        command->version = UNDIVIDED;
        command->owner.session = SLICE_LIT("s");
        command->lock.targets = arena_zalloc(&command->arena, DEEP * sizeof(struct lock_target));
        command->lock.target_count = DEEP;
        for (int i = 0; i < DEEP; i++) {
            buf_clear(&path);
            buf_printf(&path, "/%d", i);
            for (int level = 0; level < LEVELS; level++)
                buf_lit(&path, "/x");
            command->lock.targets[i] = (struct lock_target){
                .mode = LOCK_X, .index = SLICE_LIT("new"), .path = arena_copy(&command->arena, buf_as_slice(&path))};
        }
        assert_int_equal(outcome(&fixture, command), PROBLEM_NONE);
        assert_true(owner_of_session(&fixture, "s")->hold_count > (size_t)DEEP * LEVELS);
        if (of_session) {
            end_session(&fixture, "s");
        } else {
            command = command_new(COMMAND_UNLOCK, DIALECT_7);
            command->owner.session = SLICE_LIT("s");
            assert_int_equal(outcome(&fixture, command), PROBLEM_NONE);
        }
        assert_true(lock_table_is_idle(&fixture.core->owners->locks));
        fixture_close(&fixture);
        buf_deinit(&path);
    }
}

/* Returns: a path of `levels` levels below the one of a number. */
static struct slice deep_path(struct arena *arena, int number, int levels)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "/%d", number);
    for (int level = 0; level < levels; level++)
        buf_lit(&path, "/x");
    struct slice copy = arena_copy(arena, buf_as_slice(&path));
    buf_deinit(&path);
    return copy;
}

/*
 * Returns: the memory that the locks of "s" on directories take, with those above them, by the allocator, each
 * allocation with 16 bytes for its header and for rounding. *ret_estimate: their charge.
 */
static size_t measured(int count, int levels, size_t *ret_estimate)
{
    struct core_fixture fixture;
    fixture_open(&fixture);
    open_session(&fixture, "s");
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->version = UNDIVIDED;
    command->owner.session = SLICE_LIT("s");
    command->lock.targets = arena_zalloc(&command->arena, (size_t)count * sizeof(struct lock_target));
    command->lock.target_count = (size_t)count;
    for (int i = 0; i < count; i++)
        command->lock.targets[i] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("new"), .path = deep_path(&command->arena, i, levels)};
    assert_int_equal(outcome(&fixture, command), PROBLEM_NONE);
    open_session(&fixture, "u"); /* the memory of the LOCK itself is freed */
    const struct lock_owner *owner = owner_of_session(&fixture, "s");
    size_t allocations = owner->hold_count + fixture.core->owners->locks.resources.count;
    *ret_estimate = owner__lock_bytes(fixture.core, owner);
    size_t before = mem_used();
    end_session(&fixture, "s");
    assert_true(lock_table_is_idle(&fixture.core->owners->locks));
    size_t taken = before - mem_used() + allocations * 2 * sizeof(size_t);
    fixture_close(&fixture);
    return taken;
}

/* The charge for locks and levels is at least the memory that they take, and at most half more. */
static void test_estimates_of_memory_are_high(void **state)
{
    static const struct {
        int count, levels;
    } cases[] = {{40, 1000}, {60, 1090}, {66, 1000}, {20000, 0}, {33000, 0}, {10000, 3}};
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t estimate;
        size_t taken = measured(cases[i].count, cases[i].levels, &estimate);
        assert_in_range(estimate, taken, taken + taken / 2);
    }
}

/*
 * Names of few letters may mean deep documents: their levels count, if they are not shared, as the directories that
 * they are.
 */
static void test_levels_count_as_work(void **state)
{
    enum { MANY = 60, FEW = 5, LEVELS = 4000 };
    (void)state;

    for (int i = 0; i < 4; i++) {
        struct core_fixture fixture;
        bool shared = i % 2 > 0, older = i > 1;
        size_t deep = older ? MANY : FEW;
        fixture_open(&fixture);
        open_session(&fixture, "s");
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs",
                              "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
        for (size_t at = 0; at < deep; at++) {
            struct arena arena = ARENA_INIT;
            struct slice path = deep_path(&arena, shared ? 0 : (int)at, LEVELS);
            fixture_index(&fixture, "fs", arena_printf(&arena, "%zu", at).data,
                          arena_printf(&arena, "{\"path\":\"%.*s\"}", SLICE_ARG(path)).data);
            arena_deinit(&arena);
        }
        enum problem_type refused = older ? PROBLEM_LIMIT_EXCEEDED : PROBLEM_ILLEGAL_ARGUMENT;
        struct command *read = of_reads(0, deep), *lock = of_documents(COMMAND_LOCK, deep, "");
        for (size_t at = 0; at < deep; at++)
            read->txn_lock.targets[at].index = SLICE_LIT("fs");
        read->version = lock->version = older ? UNDIVIDED : COMMAND_CODEC_VERSION;
        assert_int_equal(outcome(&fixture, lock), shared ? PROBLEM_NONE : refused);
        if (!shared) {
            assert_int_equal(outcome(&fixture, read), older ? PROBLEM_LIMIT_EXCEEDED : PROBLEM_NONE);
            assert_true(older || read->txn_lock.done < deep);
            forget_view(read);
        } else {
            command_free(read);
        }
        fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, "t");
        lock = of_documents(COMMAND_LOCK, deep / 3, "");
        lock->version = older ? UNDIVIDED : COMMAND_CODEC_VERSION;
        assert_int_equal(outcome(&fixture, lock), PROBLEM_NONE);
        fixture_close(&fixture);
    }
}

/* A write in a transaction locks the directories of its documents, and is divided by them. */
static void test_deep_writes_are_divided(void **state)
{
    enum { DEEP = 30, LEVELS = 4000 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    for (unsigned older = 0; older < 2; older++) {
        struct command *command = fixture_write_command(&fixture, DEEP);
        command->version = COMMAND_SINCE_LEVELS_WORK - older;
        command->owner.transaction = SLICE_LIT("t");
        for (int i = 0; i < DEEP; i++) {
            struct slice path = deep_path(&command->arena, (int)older * DEEP + i, LEVELS);
            command->write.items[i] = fixture_item(WRITE_INDEX, "fs", NULL, NULL, NULL);
            command->write.items[i].id = arena_printf(&command->arena, "%u", older * DEEP + (unsigned)i);
            command->write.items[i].source = arena_printf(&command->arena, "{\"path\":\"%.*s\"}", SLICE_ARG(path));
        }
        fixture.unbounded = older > 0;
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
        assert_in_range(command->write.postponed_count, older ? 0 : DEEP / 2, older ? 0 : DEEP - 1);
    }
    fixture_close(&fixture);
}

/*
 * A path is long by the names of its directories, which a delete does not have: a bulk of documents that a lock blocks
 * is divided by them. Not in commands before version 21.
 */
static void test_writes_below_long_names_are_divided(void **state)
{
    enum { MANY = 900, LONG = 12000 };
    struct core_fixture fixture;
    struct buf name = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    open_session(&fixture, "s");
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    struct command *command = fixture_write_command(&fixture, MANY);
    for (int i = 0; i < MANY; i++) {
        command->write.items[i] = fixture_item(WRITE_INDEX, "fs", NULL, NULL, NULL);
        command->write.items[i].id = arena_printf(&command->arena, "%d", i);
        command->write.items[i].source = arena_printf(&command->arena, "{\"path\":\"/d/%d\"}", i);
    }
    fixture_run(&fixture, command, 1);
    assert_int_equal(command->write.results[MANY - 1].outcome, WRITE_CREATED);
    buf_lit(&name, "/");
    for (int i = 0; i < LONG; i++)
        buf_lit(&name, "n");
    command = command_new(COMMAND_RENAME, DIALECT_7);
    command->rename = (struct rename_command){.index = SLICE_LIT("fs"),
                                              .from = SLICE_LIT("/d"),
                                              .to = arena_copy(&command->arena, buf_as_slice(&name)),
                                              .if_seq_no = SEQ_NO_ANY};
    assert_int_equal(outcome(&fixture, command), PROBLEM_NONE);
    command = of_documents(COMMAND_LOCK, 1, "");
    command->lock.targets[0] = (struct lock_target){
        .mode = LOCK_X, .index = SLICE_LIT("fs"), .path = arena_copy(&command->arena, buf_as_slice(&name))};
    assert_int_equal(outcome(&fixture, command), PROBLEM_NONE);
    for (unsigned older = 0; older < 2; older++) {
        command = fixture_write_command(&fixture, MANY);
        command->version = COMMAND_SINCE_PATHS_WEIGHED - older;
        for (int i = 0; i < MANY; i++) {
            command->write.items[i] = fixture_item(WRITE_DELETE, "fs", NULL, NULL, NULL);
            command->write.items[i].id = arena_printf(&command->arena, "%d", i);
        }
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->write.results[0].problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);
        assert_in_range(command->write.postponed_count, older ? 0 : MANY / 4, older ? 0 : MANY - 1);
    }
    buf_deinit(&name);
    fixture_close(&fixture);
}

/* A release by name walks the levels above each lock, which the request does not name: they count, too. */
static void test_release_of_deep_documents_is_bounded(void **state)
{
    enum { DEEP = 400, AT_ONCE = 100, LEVELS = 4000 };
    struct core_fixture fixture;
    size_t released;
    (void)state;

    fixture_open(&fixture);
    open_session(&fixture, "s");
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    for (int i = 0; i < DEEP; i++) {
        struct arena arena = ARENA_INIT;
        struct slice path = deep_path(&arena, 0, LEVELS);
        fixture_index(&fixture, "fs", arena_printf(&arena, "%d", i).data,
                      arena_printf(&arena, "{\"path\":\"%.*s\"}", SLICE_ARG(path)).data);
        arena_deinit(&arena);
    }
    for (int first = 0; first < DEEP; first += AT_ONCE) {
        struct command *command = of_documents(COMMAND_LOCK, DEEP, "");
        command->version = UNDIVIDED;
        command->lock.targets += first;
        command->lock.target_count = AT_ONCE;
        assert_int_equal(outcome(&fixture, command), PROBLEM_NONE);
    }
    struct command *older = of_documents(COMMAND_UNLOCK, DEEP, "");
    older->version = COMMAND_SINCE_UNLOCK_PIECES - 1; /* which are not divided, and refused */
    assert_int_equal(outcome(&fixture, older), PROBLEM_LIMIT_EXCEEDED);
    assert_int_equal(owner_of_session(&fixture, "s")->lock_count, DEEP);
    assert_in_range(release(&fixture, DEEP, "", &released), DEEP / 10, DEEP / 2);
    assert_int_equal(released, DEEP);
    assert_true(lock_table_is_idle(&fixture.core->owners->locks));
    fixture_close(&fixture);
}

/* A LOCK or UNLOCK of `count` deep directories, of which 20 differ. */
static struct command *of_deep_names(enum command_type type, size_t count, int levels, unsigned version)
{
    struct command *command = command_new(type, DIALECT_7);
    command->version = version;
    command->owner.session = SLICE_LIT("s");
    command->lock.targets = arena_zalloc(&command->arena, count * sizeof(struct lock_target));
    command->lock.target_count = count;
    for (size_t at = 0; at < count; at++)
        command->lock.targets[at] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("new"), .path = deep_path(&command->arena, (int)at % 20, levels)};
    return command;
}

/*
 * All names of an UNLOCK are checked in the step that releases the first of them: their levels and bytes are limited,
 * so that the step is bounded.
 */
static void test_checked_names_are_bounded(void **state)
{
    enum { LEVELS = 4000, CHECK = 1 + (LEVELS + 2) / 4 + (2 * LEVELS + 5) / 32, LOCKS = 20, MANY = 400 };
    const size_t most = UNLOCK_CHECK_WORK_MAX / CHECK;
    struct core_fixture fixture;
    (void)state;

    for (int older = 0; older < 2; older++) {
        fixture_open(&fixture);
        open_session(&fixture, "s");
        unsigned version = older ? UNDIVIDED : COMMAND_CODEC_VERSION;
        assert_int_equal(outcome(&fixture, of_deep_names(COMMAND_LOCK, LOCKS, LEVELS, UNDIVIDED)), PROBLEM_NONE);
        size_t refused = older ? MANY : most + 1, granted = older ? MANY / 8 : most;
        assert_int_equal(outcome(&fixture, of_deep_names(COMMAND_UNLOCK, refused, LEVELS, version)),
                         older ? PROBLEM_LIMIT_EXCEEDED : PROBLEM_ILLEGAL_ARGUMENT);
        assert_int_equal(owner_of_session(&fixture, "s")->lock_count, LOCKS);
        assert_int_equal(outcome(&fixture, of_deep_names(COMMAND_UNLOCK, granted, LEVELS, version)), PROBLEM_NONE);
        assert_true(older || core_step_work(fixture.core) < CORE_STEP_WORK);
        assert_in_range(fixture.last->lock.released, 1, LOCKS / 2);
        assert_int_equal(owner_of_session(&fixture, "s")->lock_count, LOCKS - fixture.last->lock.released);
        fixture_close(&fixture);
    }
}

/* The ends of owners are charged by all that they hold: several with few locks and many levels take several steps. */
static void test_rollbacks_count_levels(void **state)
{
    enum { OWNERS = 20, LEVELS = 1000 };
    struct core_fixture fixture;
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    char id[16];
    (void)state;

    fixture_open(&fixture);
    fixture.core->limits.ephemeral_batch = 40;
    for (int i = 0; i < OWNERS; i++) {
        snprintf(id, sizeof id, "t%d", i);
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, id);
        buf_clear(&path);
        buf_printf(&path, "/%d", i);
        for (int level = 0; level < LEVELS; level++)
            buf_lit(&path, "/x");
        struct lock_target target = {.mode = LOCK_X, .index = SLICE_LIT("new"), .path = buf_as_slice(&path)};
        struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
        command->owner.transaction = slice_from(id);
        command->lock.targets = &target;
        command->lock.target_count = 1;
        assert_int_equal(outcome(&fixture, command), PROBLEM_NONE);
    }
    assert_int_equal(outcome(&fixture, command_new(COMMAND_MACHINE_LOST, DIALECT_7)), PROBLEM_NONE);
    assert_true(fixture.core->owners->txns.count >= OWNERS - 3);
    int steps = 0;
    for (; core_next_deadline(fixture.core) == 0; steps++)
        fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 1);
    assert_true(steps >= OWNERS / 4);
    assert_int_equal(fixture.core->owners->txns.count, 0);
    fixture_close(&fixture);
    buf_deinit(&path);
}

/* So are the ends of sessions whose leases expire together. */
static void test_ends_of_sessions_count_levels(void **state)
{
    enum { SESSIONS = 20, LEVELS = 1000 };
    struct core_fixture fixture;
    char id[16];
    (void)state;

    fixture_open(&fixture);
    fixture.core->limits.ephemeral_batch = 40;
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(id, sizeof id, "s%d", i);
        open_session(&fixture, id);
        struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
        struct lock_target target = {
            .mode = LOCK_X, .index = SLICE_LIT("new"), .path = deep_path(&command->arena, i, LEVELS)};
        command->owner.session = slice_from(id);
        command->lock.targets = &target;
        command->lock.target_count = 1;
        assert_int_equal(outcome(&fixture, command), PROBLEM_NONE);
    }
    fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 3601 * TL_SECOND);
    assert_in_range(fixture.core->owners->sessions.count, SESSIONS - 3, SESSIONS - 1);
    int steps = 0;
    for (; core_next_deadline(fixture.core) == 0; steps++)
        fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 1);
    assert_true(steps >= SESSIONS / 4);
    assert_int_equal(fixture.core->owners->sessions.count, 0);
    assert_true(lock_table_is_idle(&fixture.core->owners->locks));
    fixture_close(&fixture);
}

/* The release of many aliases' names visits each lock of their owner once. */
static void test_release_of_aliases_is_linear(void **state)
{
    enum { ALIASES = 200, OTHERS = 5000 };
    struct core_fixture fixture;
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    begin(&fixture);
    buf_lit(&body, "{\"aliases\":{");
    for (int i = 0; i < ALIASES; i++)
        buf_printf(&body, "%s\"a%d\":{}", i > 0 ? "," : "", i);
    buf_append(&body, "}}", sizeof "}}");
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "x", body.data);
    buf_deinit(&body);
    assert_int_equal(outcome(&fixture, of_documents(COMMAND_LOCK, OTHERS, "t0")), PROBLEM_NONE);
    struct command *command = of_documents(COMMAND_LOCK, ALIASES, "");
    for (int i = 0; i < ALIASES; i++) {
        command->lock.targets[i].index = arena_printf(&command->arena, "a%d", i);
        command->lock.targets[i].id = SLICE_LIT("1");
    }
    assert_int_equal(outcome(&fixture, command), PROBLEM_NONE);
    assert_int_equal(owner_of_session(&fixture, "s")->auxiliary_count, ALIASES);
    command = of_documents(COMMAND_UNLOCK, 1, "");
    command->lock.targets[0].index = SLICE_LIT("x");
    command->lock.targets[0].id = SLICE_LIT("1");
    assert_int_equal(outcome(&fixture, command), PROBLEM_NONE);
    assert_int_equal(owner_of_session(&fixture, "s")->auxiliary_count, 0);
    assert_int_equal(owner_of_session(&fixture, "s")->lock_count, OTHERS);
    assert_true(core_step_work(fixture.core) < 4 * (ALIASES + OTHERS) + 10000);
    fixture_close(&fixture);
}

/* Returns: the work of an atomic write in a transaction, of so many documents that are indexed and then moved. */
static uint64_t work_of_pairs(size_t pairs)
{
    struct core_fixture fixture;
    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    struct command *command = fixture_write_command(&fixture, 2 * pairs);
    command->write.atomic = true;
    command->owner.transaction = SLICE_LIT("t");
    for (size_t i = 0; i < pairs; i++) {
        struct write_item *item = &command->write.items[2 * i];
        struct write_update *update = arena_zalloc(&command->arena, sizeof *update);
        item[0] = fixture_item(WRITE_INDEX, "tree", "", "", "");
        item[1] = fixture_item(WRITE_UPDATE, "tree", "", "", "");
        item[0].id = item[1].id = arena_printf(&command->arena, "%zu", i);
        item[0].source = arena_printf(&command->arena, "{\"path\":\"/a/%zu\"}", i);
        update->doc = arena_printf(&command->arena, "{\"path\":\"/b/%zu\"}", i);
        item[1].source = SLICE_NONE;
        item[1].update = update;
    }
    assert_int_equal(outcome(&fixture, command), PROBLEM_NONE);
    for (size_t i = 0; i < 2 * pairs; i++)
        assert_int_equal(command->write.results[i].outcome, i % 2 == 0 ? WRITE_CREATED : WRITE_UPDATED);
    uint64_t work = core_step_work(fixture.core);
    fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, "t");
    fixture_close(&fixture);
    return work;
}

/*
 * Each path that an item gets only while it runs is looked up among those of the write at once, however many there are.
 */
static void test_paths_of_a_write_are_linear(void **state)
{
    (void)state;

    uint64_t few = work_of_pairs(500), many = work_of_pairs(1000);
    assert_in_range(many, few, 2 * few + few / 10);
}

/* Goal: the directories of a path are as many as a walk visits. Method: random paths, also of more names than count. */
static void test_levels_are_those_of_a_walk(void **state)
{
    (void)state;
    enum { PATHS = 2000, BYTES = 2 * RESOURCE_LEVELS_MAX + 100 };
    struct rng rng;
    char *bytes = mem_alloc(BYTES);
    rng_init(&rng, 1);
    for (size_t i = 0; i < PATHS; i++) {
        struct slice path = slice_make(bytes, rng_below(&rng, i % 100 == 0 ? BYTES + 1 : 600)), segment;
        uint64_t slashes = 1 + rng_below(&rng, 4);
        size_t levels = 0;
        for (size_t at = 0; at < path.len; at++)
            bytes[at] = i % 200 == 0 ? "/a"[at % 2] : rng_below(&rng, 5) < slashes ? '/' : 'a';
        for (struct resource_path walk = resource_path(path); resource_path_next(&walk, &segment);)
            levels++;
        assert_int_equal(lock_levels__of(path), levels);
    }
    assert_int_equal(lock_levels__of(SLICE_NONE), 0);
    mem_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_of_many_types_is_bounded),
        cmocka_unit_test(test_lock_of_named_types_is_granted),
        cmocka_unit_test(test_lock_takes_one_step_at_most),
        cmocka_unit_test(test_bytes_of_names_count),
        cmocka_unit_test(test_reads_are_divided),
        cmocka_unit_test(test_read_of_too_much_is_refused),
        cmocka_unit_test(test_one_large_document_is_locked),
        cmocka_unit_test(test_auxiliary_locks_do_not_count),
        cmocka_unit_test(test_auxiliary_locks_of_transaction_do_not_count),
        cmocka_unit_test(test_memory_of_locks_is_limited),
        cmocka_unit_test(test_estimates_of_memory_are_high),
        cmocka_unit_test(test_release_of_deep_locks_is_bounded),
        cmocka_unit_test(test_levels_count_as_work),
        cmocka_unit_test(test_deep_writes_are_divided),
        cmocka_unit_test(test_writes_below_long_names_are_divided),
        cmocka_unit_test(test_release_of_deep_documents_is_bounded),
        cmocka_unit_test(test_checked_names_are_bounded),
        cmocka_unit_test(test_rollbacks_count_levels),
        cmocka_unit_test(test_ends_of_sessions_count_levels),
        cmocka_unit_test(test_release_of_aliases_is_linear),
        cmocka_unit_test(test_paths_of_a_write_are_linear),
        cmocka_unit_test(test_levels_are_those_of_a_walk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
