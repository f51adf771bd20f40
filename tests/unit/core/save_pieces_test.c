/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the state written ahead of a checkpoint in pieces, and the record of the checkpoint, load as
 * the state at the checkpoint, whatever changed between two parts and wherever the process ends;
 * damage is refused. Method: transactions and sessions with random changes and locks; parts of
 * random size are written between them. The loaded state is compared with the form of core_save(). A
 * file of each version must stay readable.
 *
 * usage: save_pieces_test DIRECTORY [--write]
 */
#include "../../lib/core_fixture.h"
#include "../../lib/arguments.h"
#include "../../lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/rand.h"
#include "core/locks/lock.h"
#include "core/locks/lock_codec.h"
#include "core/session/owners.h"
#include "core/owners/piece_codec.h"
#include "core/session/save_pieces.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/step/save.h"
#include "core/command/section.h"
#include "core/owners/owners_step.h"

enum { TXNS = 4, DOCUMENTS = 60, SOURCE_MAX = 20000, SESSIONS = 6, LOCKABLE = 1500, LOCKS_MAX = 120 };

static const char *directory;
static bool writes;

static void settle_store(struct core_fixture *fixture, struct slice record)
{
    assert_int_equal(store_checkpoint(fixture->store, record), 0);
    assert_int_equal(store_checkpointed(fixture->store), 1);
}

static void free_completed(struct core_fixture *fixture)
{
    while (!list_empty(&fixture->effects.completed)) {
        struct command *command = list_entry(fixture->effects.completed.next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
}

/* Steps a command, and TICKs until nothing is due at once. It may wait, and others may complete. */
static void step(struct core_fixture *fixture, struct command *command)
{
    do {
        command->ts = fixture->now = core_last_ts(fixture->core) + 1;
        command->clock = ++fixture->clock;
        assert_int_equal(core_step(fixture->core, command, &fixture->effects), 0);
        free_completed(fixture);
        command = command_new(COMMAND_TICK, DIALECT_7);
    } while (core_next_deadline(fixture->core) == 0);
    command_free(command);
    fixture->now = core_last_ts(fixture->core);
}

/* Ends the process: nothing is answered. */
static void end_core(struct core_fixture *fixture)
{
    core_stop(fixture->core, &fixture->effects);
    free_completed(fixture);
    core_close(fixture->core);
}

static void close_box(struct core_fixture *fixture)
{
    core_stop(fixture->core, &fixture->effects);
    free_completed(fixture);
    fixture_close(fixture);
}

/* Writes a document with a source of about this length in a transaction. */
static void write_document(struct core_fixture *fixture, const char *txn, size_t number, size_t len)
{
    struct command *command = fixture_write_command(fixture, 1);
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&source, "{\"v\":%zu,\"text\":\"%0*d\"}", number, (int)(1 + len), 0);
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "", "");
    command->write.items[0].id = arena_printf(&command->arena, "%s-%zu", txn, number);
    command->write.items[0].source = arena_copy(&command->arena, buf_as_slice(&source));
    command->owner.transaction = arena_copy(&command->arena, slice_from(txn));
    buf_deinit(&source);
    fixture_run(fixture, command, 1);
    assert_int_equal(fixture->last->problem.type, PROBLEM_NONE);
    assert_int_equal(fixture->last->write.results[0].problem.type, PROBLEM_NONE);
}

static void open_session(struct core_fixture *fixture, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = slice_from(id);
    command->session.ttl_us = 3600 * TL_SECOND;
    fixture_run(fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
}

static void close_session(struct core_fixture *fixture, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
    command->session.id = slice_from(id);
    fixture_run(fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
}

/* A command of a session with `count` targets. */
static struct command *lock_command(enum command_type type, const char *session, size_t count)
{
    struct command *command = command_new(type, DIALECT_7);
    command->owner.session = arena_copy(&command->arena, slice_from(session));
    command->lock.targets = arena_zalloc(&command->arena, count * sizeof *command->lock.targets);
    command->lock.target_count = count;
    return command;
}

static struct lock_target document_target(struct command *command, size_t number, enum lock_mode mode)
{
    return (struct lock_target){
        .mode = mode, .index = SLICE_LIT("fs"), .id = arena_printf(&command->arena, "d%zu", number)};
}

/* Locks documents from `first` on, one command for all. */
static void lock_documents(struct core_fixture *fixture, const char *session, size_t first, size_t count)
{
    struct command *command = lock_command(COMMAND_LOCK, session, count);
    for (size_t i = 0; i < count; i++)
        command->lock.targets[i] = document_target(command, first + i, LOCK_S);
    fixture_run(fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
}

static void unlock_document(struct core_fixture *fixture, const char *session, size_t number)
{
    struct command *command = lock_command(COMMAND_UNLOCK, session, 1);
    command->lock.targets[0] = document_target(command, number, LOCK_S);
    fixture_run(fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
}

/* Requests an X lock of a document, which waits for an hour if it is locked. */
static void request_document(struct core_fixture *fixture, const char *session, size_t number)
{
    struct command *command = lock_command(COMMAND_LOCK, session, 1);
    command->owner.timeout_us = 3600 * TL_SECOND;
    command->lock.targets[0] = document_target(command, number, LOCK_X);
    step(fixture, command);
}

static size_t waiting_count(const struct core_fixture *fixture)
{
    return fixture->core->owners->locks.waiting_count;
}

static void whole(struct core_fixture *fixture, struct buf *saved)
{
    buf_clear(saved);
    core_save(fixture->core, saved);
}

static uint64_t written(const struct core_fixture *fixture)
{
    return metric_read(&fixture->core->metrics.piece_bytes);
}

/* Writes one part ahead. Returns: whether there are more. */
static bool save_ahead(struct core_fixture *fixture, uint64_t bytes_max)
{
    uint64_t before = written(fixture);
    bool more;
    assert_int_equal(core_save_ahead(fixture->core, bytes_max, &more), 0);
    assert_true(written(fixture) - before < bytes_max + 3 * (OVERLAY_CHUNK_BYTES + SOURCE_MAX));
    return more;
}

/* Makes a checkpoint. `saved` becomes the whole state, `record` the checkpoint's. */
static void checkpoint(struct core_fixture *fixture, struct buf *record, struct buf *saved)
{
    buf_clear(record);
    assert_int_equal(core_save_rest(fixture->core, record), 0);
    whole(fixture, saved);
    settle_store(fixture, buf_as_slice(record));
}

static int load(struct core_fixture *fixture, struct slice record, struct buf *reason)
{
    buf_clear(reason);
    return core_load(fixture->store, &fixture->limits, record, reason, &fixture->core);
}

/* Kills the process, and loads the checkpoint: it is the saved state, and is not written again. */
static void reload(struct core_fixture *fixture, struct slice record, struct slice saved)
{
    struct buf again = BUF_INIT(BUF_UNLIMITED);
    end_core(fixture);
    store_mem_crash(fixture->store, 0);
    if (load(fixture, record, &again) != 0)
        fail_msg("%.*s", SLICE_ARG(buf_as_slice(&again)));
    whole(fixture, &again);
    assert_true(slice_equal(buf_as_slice(&again), saved));
    buf_clear(&again);
    assert_int_equal(core_save_rest(fixture->core, &again), 0);
    assert_true(slice_equal(buf_as_slice(&again), record));
    assert_int_equal(written(fixture), 0);
    buf_deinit(&again);
}

static void open_box(struct core_fixture *fixture)
{
    fixture_open(fixture);
    fixture_index_command(fixture, COMMAND_INDEX_CREATE, "fs",
                          "{\"mappings\":{\"properties\":{\"v\":{\"type\":\"long\"},\"text\":{\"type\":\"keyword\","
                          "\"index\":false,\"doc_values\":false}}}}");
}

struct random_walk {
    struct core_fixture fixture;
    struct rng rng;
    int open[TXNS + SESSIONS]; /* numbers of open transactions, and of sessions; 0: none */
    int last;       /* number ever given */
    struct buf record, saved;
};

/* A document, a directory, or the whole index. */
static struct lock_target random_target(struct random_walk *walk, struct command *command, enum lock_mode mode)
{
    size_t number = rng_below(&walk->rng, LOCKABLE);
    struct lock_target target = document_target(command, number, mode);
    if (number % 10 == 0)
        target = (struct lock_target){
            .mode = mode,
            .index = SLICE_LIT("paths"),
            .path = arena_printf(&command->arena, "/a%zu/b%zu/c", number % 3, number % 100),
        };
    else if (number == 1) /* a whole index, but not the one that transactions write to */
        target = (struct lock_target){.mode = mode, .index = SLICE_LIT("paths")};
    return target;
}

/* Opens a session, or closes it, or locks or unlocks something. Other sessions' locks may prevent that. */
static void change_locks(struct random_walk *walk)
{
    size_t i = TXNS + rng_below(&walk->rng, SESSIONS), choice = rng_below(&walk->rng, 100);
    bool begins = walk->open[i] == 0;
    char name[16];
    if (begins)
        walk->open[i] = ++walk->last;
    snprintf(name, sizeof name, "s%d", walk->open[i]);
    if (begins) {
        open_session(&walk->fixture, name);
    } else if (choice == 0) {
        struct command *command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
        command->session.id = arena_copy(&command->arena, slice_from(name));
        step(&walk->fixture, command);
        walk->open[i] = 0;
    } else if (choice < 4) {
        struct command *command =
            command_new(choice == 1 ? COMMAND_SESSION_ATTACH : COMMAND_SESSION_KEEPALIVE, DIALECT_7);
        command->session.id = arena_copy(&command->arena, slice_from(name));
        command->session.attachment = choice == 1 ? rng_below(&walk->rng, 100) : 0;
        step(&walk->fixture, command);
    } else {
        bool locks = choice < 70;
        size_t count = locks ? 1 + rng_below(&walk->rng, LOCKS_MAX) : choice == 99 ? 0 : 1;
        enum lock_mode mode = rng_below(&walk->rng, 20) == 0   ? LOCK_U
                              : rng_below(&walk->rng, 20) == 0 ? LOCK_X
                                                               : LOCK_S;
        struct command *command = lock_command(locks ? COMMAND_LOCK : COMMAND_UNLOCK, name, count);
        for (size_t j = 0; j < count; j++)
            command->lock.targets[j] = random_target(walk, command, mode);
        if (rng_below(&walk->rng, 2) == 0)
            command->owner.timeout_us = 3600 * TL_SECOND;
        step(&walk->fixture, command);
    }
}

static void change(struct random_walk *walk)
{
    if (rng_below(&walk->rng, 3) == 0) {
        change_locks(walk);
        return;
    }
    size_t i = rng_below(&walk->rng, TXNS);
    bool begins = walk->open[i] == 0;
    char name[16];
    if (begins)
        walk->open[i] = ++walk->last;
    snprintf(name, sizeof name, "t%d", walk->open[i]);
    if (begins) {
        fixture_txn(&walk->fixture, COMMAND_TXN_BEGIN, name);
    } else if (rng_below(&walk->rng, 20) == 0) {
        bool commits = rng_below(&walk->rng, 2) == 0;
        fixture_txn(&walk->fixture, commits ? COMMAND_TXN_COMMIT : COMMAND_TXN_ROLLBACK, name);
        walk->open[i] = 0;
    } else {
        write_document(&walk->fixture, name, rng_below(&walk->rng, DOCUMENTS),
                       rng_below(&walk->rng, 4) == 0 ? rng_below(&walk->rng, SOURCE_MAX) : 100);
    }
}

/* Sessions and waits are few, so a chunk has one or two. */
static void make_chunks_small(struct core_fixture *fixture)
{
    fixture->core->owners->session_chunks.members_max = 2;
    fixture->core->owners->wait_chunks.members_max = 2;
}

static void test_any_change_between_parts(void **state)
{
    struct random_walk walk = {.record = BUF_INIT(BUF_UNLIMITED), .saved = BUF_INIT(BUF_UNLIMITED)};
    int open[TXNS + SESSIONS] = {0};
    size_t locks_max = 0, waits_max = 0;
    /* Comparing the whole lock table is a third of the time: the gate does it after one step in four. */
    bool checks_all = getenv("TIDELOCK_TEST_LONG") != NULL;
    (void)state;
    rng_init(&walk.rng, 11);
    open_box(&walk.fixture);
    checkpoint(&walk.fixture, &walk.record, &walk.saved);
    for (int i = 0; i < 4000; i++) {
        size_t choice = rng_below(&walk.rng, 40);
        if (choice == 0) {
            checkpoint(&walk.fixture, &walk.record, &walk.saved);
            memcpy(open, walk.open, sizeof open);
        } else if (choice == 1) {
            reload(&walk.fixture, buf_as_slice(&walk.record), buf_as_slice(&walk.saved));
            memcpy(walk.open, open, sizeof open);
            make_chunks_small(&walk.fixture);
        } else if (choice < 8) {
            save_ahead(&walk.fixture, 1 + rng_below(&walk.rng, 100000));
        } else {
            change(&walk);
            size_t count = walk.fixture.core->owners->locks.lock_count;
            locks_max = count > locks_max ? count : locks_max;
            waits_max = waiting_count(&walk.fixture) > waits_max ? waiting_count(&walk.fixture) : waits_max;
        }
        if (checks_all || i % 4 == 0)
            lock_table_check(&walk.fixture.core->owners->locks);
        assert_true(piece_codec__chunks_are_saved(walk.fixture.core));
    }
    lock_table_check(&walk.fixture.core->owners->locks);
    assert_true(locks_max > 4 * LOCK_CHUNK_HOLDS && waits_max > 10);
    close_box(&walk.fixture);
    buf_deinit(&walk.record);
    buf_deinit(&walk.saved);
}

/* Only changed pieces are written, in parts, and a transaction that ended leaves none. */
static void test_unchanged_pieces_are_not_written_again(void **state)
{
    enum { COUNT = 2000, PART = 100000 };
    struct core_fixture fixture;
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED);
    size_t pieces, parts = 1;
    (void)state;
    open_box(&fixture);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t0");
    for (size_t i = 0; i < COUNT; i++)
        write_document(&fixture, "t0", i, 1000);
    for (; save_ahead(&fixture, PART); parts++)
        assert_true(written(&fixture) >= parts * PART * 3 / 4); /* each piece counts a little more */
    uint64_t all = written(&fixture);
    assert_true(all > (uint64_t)COUNT * 1000 && parts > all / (2 * PART));
    checkpoint(&fixture, &record, &saved);
    assert_int_equal(written(&fixture), all);
    assert_true(record.len < all / 20 && saved.len > all / 2);
    write_document(&fixture, "t0", 500, 1000); /* an old one */
    write_document(&fixture, "t0", COUNT, 1000);
    checkpoint(&fixture, &record, &saved);
    assert_true(written(&fixture) - all < 4 * 2 * OVERLAY_CHUNK_BYTES);
    reload(&fixture, buf_as_slice(&record), buf_as_slice(&saved));
    fixture_txn(&fixture, COMMAND_TXN_COMMIT, "t0");
    checkpoint(&fixture, &record, &saved);
    assert_int_equal(store_count_pieces(fixture.store, &pieces), 0);
    assert_int_equal(pieces, 0);
    reload(&fixture, buf_as_slice(&record), buf_as_slice(&saved));
    fixture_close(&fixture);
    buf_deinit(&record);
    buf_deinit(&saved);
}

/* Locks are written only if they or their neighbours have changed, and a closed session leaves none. */
static void test_unchanged_locks_are_not_written_again(void **state)
{
    enum { COUNT = 4000, STEP = 1000, PART = 10000, PIECE_MAX = 30000 };
    struct core_fixture fixture;
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED);
    size_t pieces, parts = 1;
    (void)state;
    open_box(&fixture);
    open_session(&fixture, "s0");
    open_session(&fixture, "s1");
    for (size_t i = 0; i < COUNT; i += STEP) { /* the order of a document's holds is not that of their owners */
        lock_documents(&fixture, i % (2 * STEP) == 0 ? "s1" : "s0", i, STEP);
        lock_documents(&fixture, i % (2 * STEP) == 0 ? "s0" : "s1", i, STEP);
    }
    for (; save_ahead(&fixture, PART); parts++)
        assert_true(written(&fixture) >= parts * PART / 2); /* each piece counts a little more */
    uint64_t all = written(&fixture);
    assert_true(all > (uint64_t)COUNT * 2 * 10 && parts > all / (2 * PIECE_MAX));
    checkpoint(&fixture, &record, &saved);
    assert_int_equal(written(&fixture), all);
    assert_true(record.len < all / 20 && saved.len > all / 3);
    unlock_document(&fixture, "s0", COUNT / 2); /* its chunk, and the one with the root */
    checkpoint(&fixture, &record, &saved);
    assert_true(written(&fixture) > all && written(&fixture) - all < 2 * PIECE_MAX);
    reload(&fixture, buf_as_slice(&record), buf_as_slice(&saved));
    lock_documents(&fixture, "s1", COUNT, 1); /* the last one, and the one with the root */
    checkpoint(&fixture, &record, &saved);
    assert_true(written(&fixture) > 0 && written(&fixture) < 2 * PIECE_MAX);
    reload(&fixture, buf_as_slice(&record), buf_as_slice(&saved));
    close_session(&fixture, "s0");
    close_session(&fixture, "s1");
    checkpoint(&fixture, &record, &saved);
    assert_int_equal(store_count_pieces(fixture.store, &pieces), 0);
    assert_int_equal(pieces, 0);
    reload(&fixture, buf_as_slice(&record), buf_as_slice(&saved));
    fixture_close(&fixture);
    buf_deinit(&record);
    buf_deinit(&saved);
}

static void keep_alive(struct core_fixture *fixture, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_KEEPALIVE, DIALECT_7);
    command->session.id = arena_copy(&command->arena, slice_from(id));
    step(fixture, command);
}

/*
 * Sessions and waits are written only if they or their neighbours have changed, other than by a
 * keepalive. A record has few bytes of each, and those that ended leave no piece.
 */
static void test_unchanged_sessions_and_waits_are_not_written_again(void **state)
{
    enum { COUNT = 2000, RECORD_BYTES = 32, PIECE_MAX = 50000 };
    struct core_fixture fixture;
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED);
    char id[16];
    size_t pieces;
    (void)state;
    open_box(&fixture);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(id, sizeof id, "s%zu", i);
        open_session(&fixture, id);
    }
    lock_documents(&fixture, "s0", 0, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        request_document(&fixture, "s1", i);
    assert_int_equal(waiting_count(&fixture), COUNT);
    checkpoint(&fixture, &record, &saved);
    assert_true(record.len < (size_t)COUNT * 2 * RECORD_BYTES && saved.len > (size_t)COUNT * 2 * 60);
    uint64_t all = written(&fixture);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(id, sizeof id, "s%zu", i);
        keep_alive(&fixture, id);
    }
    checkpoint(&fixture, &record, &saved);
    assert_int_equal(written(&fixture), all);
    open_session(&fixture, "s");        /* the last piece of sessions */
    close_session(&fixture, "s1000");   /* one in the middle */
    unlock_document(&fixture, "s0", 9); /* a piece of waits, and two of locks */
    free_completed(&fixture);
    assert_int_equal(waiting_count(&fixture), COUNT - 1);
    checkpoint(&fixture, &record, &saved);
    assert_true(written(&fixture) > all && written(&fixture) - all < 5 * PIECE_MAX);
    reload(&fixture, buf_as_slice(&record), buf_as_slice(&saved));
    for (size_t i = 0; i < COUNT; i++) {
        struct command *command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
        command->session.id = arena_printf(&command->arena, "s%zu", i);
        step(&fixture, command);
    }
    close_session(&fixture, "s");
    checkpoint(&fixture, &record, &saved);
    assert_int_equal(store_count_pieces(fixture.store, &pieces), 0);
    assert_int_equal(pieces, 0);
    reload(&fixture, buf_as_slice(&record), buf_as_slice(&saved));
    close_box(&fixture);
    buf_deinit(&record);
    buf_deinit(&saved);
}

/*
 * A part has few pieces however small they are, and deletes few. Every second transaction ends, since
 * pieces with consecutive numbers are deleted together.
 */
static void test_small_pieces_are_written_in_parts(void **state)
{
    enum { COUNT = 60, PART = 8 * 4096, PIECES_MAX = PART / 4096 };
    struct core_fixture fixture;
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED);
    size_t pieces, before = 0;
    char id[8];
    (void)state;
    open_box(&fixture);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(id, sizeof id, "t%zu", i);
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, id);
        write_document(&fixture, id, i, 10);
    }
    for (bool more = true; more; before = pieces) {
        more = save_ahead(&fixture, PART);
        assert_int_equal(store_count_pieces(fixture.store, &pieces), 0);
        assert_true(pieces > before && pieces - before <= PIECES_MAX);
    }
    assert_int_equal(pieces, 2 * COUNT); /* of the overlay, and of the locks */
    checkpoint(&fixture, &record, &saved);
    for (size_t i = 0; i < COUNT; i += 2) {
        snprintf(id, sizeof id, "t%zu", i);
        fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, id);
    }
    for (bool more = true; more; before = pieces) {
        more = save_ahead(&fixture, PART);
        assert_int_equal(store_count_pieces(fixture.store, &pieces), 0);
        assert_true(pieces < before && before - pieces <= 2 * PIECES_MAX); /* two of each */
    }
    assert_int_equal(pieces, COUNT);
    fixture_close(&fixture);
    buf_deinit(&record);
    buf_deinit(&saved);
}

/* An idle server retains no memory of a large piece: the next one may be written much later. */
static void test_scratch_of_large_pieces_is_freed(void **state)
{
    enum { LARGE = 1 << 20 };
    struct core_fixture fixture;
    bool more = true;
    (void)state;
    open_box(&fixture);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    write_document(&fixture, "t", 0, LARGE);
    uint64_t before = written(&fixture);
    while (more)
        assert_int_equal(core_save_ahead(fixture.core, LARGE, &more), 0);
    assert_true(written(&fixture) - before > LARGE);
    assert_in_range(fixture.core->owners->pieces.piece.capacity, 0, LARGE / 4);
    /* Nor one that was read at a start. */
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED);
    checkpoint(&fixture, &record, &saved);
    end_core(&fixture);
    store_mem_crash(fixture.store, 0);
    buf_clear(&saved);
    assert_int_equal(load(&fixture, buf_as_slice(&record), &saved), 0);
    assert_in_range(fixture.core->owners->pieces.piece.capacity, 0, LARGE / 4);
    fixture_close(&fixture);
    buf_deinit(&record);
    buf_deinit(&saved);
}

/* A transaction that changes everything between two parts does not delay the checkpoint for ever. */
static void test_parts_end_however_much_changes(void **state)
{
    enum { COUNT = 100, LENGTH = 4000, PART = 50000 };
    struct core_fixture fixture;
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED);
    int parts = 0;
    (void)state;
    open_box(&fixture);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t0");
    for (bool more = true; more; parts++) {
        for (size_t i = 0; i < COUNT; i++)
            write_document(&fixture, "t0", i, LENGTH);
        more = save_ahead(&fixture, PART);
        assert_true(parts < 1000);
    }
    assert_true(parts > 10);
    checkpoint(&fixture, &record, &saved);
    reload(&fixture, buf_as_slice(&record), buf_as_slice(&saved));
    fixture_close(&fixture);
    buf_deinit(&record);
    buf_deinit(&saved);
}

/*
 * A transaction that changes everything between two parts delays neither locks nor another
 * transaction: both are complete before the limit ends the parts.
 */
static void test_kinds_and_transactions_share_parts(void **state)
{
    enum { COUNT = 100, LENGTH = 4000, COLD = 40, LOCKS = 8000, STEP = 1000, PART = 50000 };
    struct core_fixture fixture;
    size_t index;
    bool locks = false, cold = false;
    (void)state;
    open_box(&fixture);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t0");
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t1");
    open_session(&fixture, "s0");
    for (size_t i = 0; i < LOCKS; i += STEP)
        lock_documents(&fixture, "s0", i, STEP);
    for (size_t i = 0; i < COLD; i++)
        write_document(&fixture, "t1", i, LENGTH);
    for (bool more = true; more;) {
        for (size_t i = 0; i < COUNT; i++)
            write_document(&fixture, "t0", i, LENGTH);
        more = save_ahead(&fixture, PART);
        locks |= lock_table_changed_chunk(&fixture.core->owners->locks) == NULL;
        cold |= !overlay_changed_chunk(owners_txn(fixture.core->owners, SLICE_LIT("t1"))->overlay, &index);
    }
    assert_true(locks && cold);
    fixture_close(&fixture);
}

/* Changes locks so that pieces are replaced, added and deleted. */
static void change_some_locks(struct core_fixture *fixture)
{
    for (size_t i = 0; i < 2000; i += 100)
        unlock_document(fixture, "s0", i);
    close_session(fixture, "s1");
    open_session(fixture, "s2");
    lock_documents(fixture, "s2", 0, 1000);
    lock_documents(fixture, "s0", 5000, 1000);
    for (size_t i = 5000; i < 5400; i++)
        request_document(fixture, "s2", i);
}

/* A kill after any number of parts, also of all and of the record, loads the checkpoint before. */
static void test_kill_between_parts_of_locks_loads_older_checkpoint(void **state)
{
    enum { COUNT = 2000, PART = 10000, MANY = 10 };
    struct core_fixture fixture;
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED), later = BUF_INIT(BUF_UNLIMITED);
    int parts = 0;
    (void)state;
    open_box(&fixture);
    open_session(&fixture, "s0");
    open_session(&fixture, "s1");
    lock_documents(&fixture, "s0", 0, COUNT);
    lock_documents(&fixture, "s1", COUNT, COUNT);
    checkpoint(&fixture, &record, &saved);
    for (bool more = true; more; parts++) {
        change_some_locks(&fixture);
        for (int i = 0; i < parts && more; i++)
            more = save_ahead(&fixture, PART);
        if (!more)
            assert_int_equal(core_save_rest(fixture.core, &later), 0);
        reload(&fixture, buf_as_slice(&record), buf_as_slice(&saved));
    }
    assert_true(parts > MANY);
    close_box(&fixture);
    buf_deinit(&record);
    buf_deinit(&saved);
    buf_deinit(&later);
}

static void assert_refused(struct core_fixture *fixture, struct slice record)
{
    struct buf reason = BUF_INIT(BUF_UNLIMITED);
    assert_int_equal(load(fixture, record, &reason), TL_ERR_CORRUPT);
    assert_true(reason.len > 0);
    buf_deinit(&reason);
}

/* Any changed bit of a piece, a missing piece, a further one, and those of another checkpoint. */
static void test_damaged_pieces_are_refused(void **state)
{
    struct core_fixture fixture;
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED), piece = BUF_INIT(BUF_UNLIMITED),
               later = BUF_INIT(BUF_UNLIMITED), reason = BUF_INIT(BUF_UNLIMITED);
    const struct store_piece first = {1, 0};
    (void)state;
    open_box(&fixture);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t0");
    write_document(&fixture, "t0", 1, 10);
    write_document(&fixture, "t0", 2, 10);
    checkpoint(&fixture, &record, &saved);
    write_document(&fixture, "t0", 2, 20);
    assert_int_equal(core_save_rest(fixture.core, &later), 0);
    core_close(fixture.core);
    assert_refused(&fixture, buf_as_slice(&record)); /* with the later piece */
    store_mem_crash(fixture.store, 0);
    assert_int_equal(store_get_piece(fixture.store, first, &piece), 0);
    for (size_t bit = 0; bit < 8 * piece.len; bit++) {
        piece.data[bit / 8] = (char)(piece.data[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(store_put_piece(fixture.store, first, buf_as_slice(&piece)), 0);
        assert_refused(&fixture, buf_as_slice(&record));
        piece.data[bit / 8] = (char)(piece.data[bit / 8] ^ 1 << bit % 8);
    }
    assert_int_equal(store_put_piece(fixture.store, first, slice_make(piece.data, piece.len - 1)), 0);
    assert_refused(&fixture, buf_as_slice(&record));
    assert_int_equal(store_delete_pieces(fixture.store, 1, 1), 0);
    assert_refused(&fixture, buf_as_slice(&record));
    assert_int_equal(store_put_piece(fixture.store, first, buf_as_slice(&piece)), 0);
    assert_refused(&fixture, buf_as_slice(&later));
    assert_int_equal(store_put_piece(fixture.store, (struct store_piece){1, 1}, buf_as_slice(&piece)), 0);
    assert_refused(&fixture, buf_as_slice(&record));
    store_mem_crash(fixture.store, 0);
    assert_int_equal(load(&fixture, buf_as_slice(&record), &reason), 0);
    fixture_close(&fixture);
    buf_deinit(&record);
    buf_deinit(&saved);
    buf_deinit(&piece);
    buf_deinit(&later);
    buf_deinit(&reason);
}

/* Any changed bit of a piece of locks, and a missing one. */
static void test_damaged_pieces_of_locks_are_refused(void **state)
{
    struct core_fixture fixture;
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED), piece = BUF_INIT(BUF_UNLIMITED),
               reason = BUF_INIT(BUF_UNLIMITED);
    const struct store_piece first = {1, 0};
    (void)state;
    open_box(&fixture);
    open_session(&fixture, "s0");
    open_session(&fixture, "s1");
    lock_documents(&fixture, "s0", 0, 3);
    lock_documents(&fixture, "s1", 1, 3);
    checkpoint(&fixture, &record, &saved);
    core_close(fixture.core);
    assert_int_equal(store_get_piece(fixture.store, first, &piece), 0);
    for (size_t bit = 0; bit < 8 * piece.len; bit++) {
        piece.data[bit / 8] = (char)(piece.data[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(store_put_piece(fixture.store, first, buf_as_slice(&piece)), 0);
        assert_refused(&fixture, buf_as_slice(&record));
        piece.data[bit / 8] = (char)(piece.data[bit / 8] ^ 1 << bit % 8);
    }
    assert_int_equal(store_delete_pieces(fixture.store, 1, 1), 0);
    assert_refused(&fixture, buf_as_slice(&record));
    store_mem_crash(fixture.store, 0);
    assert_int_equal(load(&fixture, buf_as_slice(&record), &reason), 0);
    fixture_close(&fixture);
    buf_deinit(&record);
    buf_deinit(&saved);
    buf_deinit(&piece);
    buf_deinit(&reason);
}

/* The numbers of pieces of this kind, at most two. Returns: how many. */
static size_t pieces_of_kind(const struct core_fixture *fixture, enum save_piece_kind kind, uint64_t *numbers)
{
    const struct owners *owners = fixture->core->owners;
    size_t count = 0;
    list_for_each(link, kind == PIECE_SESSIONS ? &owners->session_chunks.all : &owners->wait_chunks.all)
    {
        assert_true(count < 2);
        numbers[count++] = list_entry(link, struct save_chunk, of_all)->piece;
    }
    return count;
}

/* Opens a fixture with sessions and waits, a piece of each. */
static void open_waiting_box(struct core_fixture *fixture)
{
    open_box(fixture);
    open_session(fixture, "s0");
    open_session(fixture, "s1");
    lock_documents(fixture, "s0", 0, 3);
    for (size_t i = 0; i < 3; i++)
        request_document(fixture, "s1", i);
    assert_int_equal(waiting_count(fixture), 3);
}

/* Any changed bit of a piece of sessions or waits, and a missing one. */
static void test_damaged_pieces_of_sessions_and_waits_are_refused(void **state)
{
    struct core_fixture fixture;
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED), piece = BUF_INIT(BUF_UNLIMITED),
               reason = BUF_INIT(BUF_UNLIMITED);
    uint64_t numbers[PIECE_KIND_COUNT][2];
    (void)state;
    open_waiting_box(&fixture);
    checkpoint(&fixture, &record, &saved);
    for (int kind = PIECE_SESSIONS; kind <= PIECE_WAITS; kind++)
        assert_int_equal(pieces_of_kind(&fixture, (enum save_piece_kind)kind, numbers[kind]), 1);
    end_core(&fixture);
    for (int kind = PIECE_SESSIONS; kind <= PIECE_WAITS; kind++) {
        const struct store_piece at = {numbers[kind][0], 0};
        buf_clear(&piece);
        assert_int_equal(store_get_piece(fixture.store, at, &piece), 0);
        for (size_t bit = 0; bit < 8 * piece.len; bit++) {
            piece.data[bit / 8] = (char)(piece.data[bit / 8] ^ 1 << bit % 8);
            assert_int_equal(store_put_piece(fixture.store, at, buf_as_slice(&piece)), 0);
            assert_refused(&fixture, buf_as_slice(&record));
            piece.data[bit / 8] = (char)(piece.data[bit / 8] ^ 1 << bit % 8);
        }
        assert_int_equal(store_delete_pieces(fixture.store, at.owner, at.owner), 0);
        assert_refused(&fixture, buf_as_slice(&record));
        store_mem_crash(fixture.store, 0);
    }
    assert_int_equal(load(&fixture, buf_as_slice(&record), &reason), 0);
    close_box(&fixture);
    buf_deinit(&record);
    buf_deinit(&saved);
    buf_deinit(&piece);
    buf_deinit(&reason);
}

/* Reads a list of one piece into the core. Returns: whether its content is valid. */
static bool read_one_piece(struct core_fixture *fixture, enum save_piece_kind kind, struct slice bytes)
{
    struct arena arena = ARENA_INIT;
    struct buf list = BUF_INIT(BUF_UNLIMITED);
    struct deferred_array none = {0};
    struct piece_reader reader = {.deferred = &none, .arena = &arena};
    assert_int_equal(store_put_piece(fixture->store, (struct store_piece){kind, 0}, bytes), 0);
    buf_varint(&list, 1);
    buf_varint(&list, kind);
    buf_varint(&list, bytes.len);
    buf_varint(&list, crc32c(0, bytes.data, bytes.len));
    struct codec codec = codec_from(buf_as_slice(&list), &arena);
    codec.version = SECTIONS_VERSION;
    piece_codec__chunks(&codec, fixture->core, kind, &reader);
    arena_deinit(&arena);
    buf_deinit(&list);
    return codec_done(&codec);
}

/* Reads a piece of waits after the sessions to which they belong. */
static bool read_pieces(struct slice sessions, struct slice waits)
{
    struct core_fixture fixture;
    fixture_open(&fixture);
    fixture.core->owners->wait_ends.last_number = 1000;
    bool valid = read_one_piece(&fixture, PIECE_SESSIONS, sessions) && read_one_piece(&fixture, PIECE_WAITS, waits);
    owners__discard_loaded(fixture.core);
    fixture_close(&fixture);
    return valid;
}

/* Content is validated even if the checksum of the piece is right: reading it ends in an error at most. */
static void test_content_of_pieces_of_sessions_and_waits_is_validated(void **state)
{
    struct core_fixture fixture;
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED);
    struct buf pieces[2] = {BUF_INIT(BUF_UNLIMITED), BUF_INIT(BUF_UNLIMITED)};
    size_t refused = 0, bits = 0;
    uint64_t numbers[2];
    (void)state;
    open_waiting_box(&fixture);
    checkpoint(&fixture, &record, &saved);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pieces_of_kind(&fixture, i == 0 ? PIECE_SESSIONS : PIECE_WAITS, numbers), 1);
        assert_int_equal(store_get_piece(fixture.store, (struct store_piece){numbers[0], 0}, &pieces[i]), 0);
    }
    close_box(&fixture);
    assert_true(read_pieces(buf_as_slice(&pieces[0]), buf_as_slice(&pieces[1])));
    for (size_t i = 0; i < 2; i++)
        for (size_t bit = 0; bit < 8 * pieces[i].len; bit += 3, bits++) {
            char *at = &pieces[i].data[bit / 8];
            *at = (char)(*at ^ 1 << bit % 8);
            refused += !read_pieces(buf_as_slice(&pieces[0]), buf_as_slice(&pieces[1]));
            *at = (char)(*at ^ 1 << bit % 8);
        }
    assert_true(refused > bits / 4);
    for (size_t i = 0; i < 2; i++)
        buf_deinit(&pieces[i]);
    buf_deinit(&record);
    buf_deinit(&saved);
}

struct table_box {
    struct lock_table table;
    struct lock_owner owners[2];
    struct lock_owner *all[2];
    struct buf pieces[2];
};

static struct lock_codec_refs open_table(struct table_box *fixture)
{
    lock_table_init(&fixture->table, NULL);
    for (int i = 0; i < 2; i++) {
        lock_owner_init(&fixture->table, &fixture->owners[i], NULL, NULL);
        fixture->all[i] = &fixture->owners[i];
    }
    return (struct lock_codec_refs){.owners = fixture->all, .owner_count = 2};
}

static void close_table(struct table_box *fixture, struct lock_codec_refs *refs)
{
    lock_codec_discard(&fixture->table, refs);
    for (int i = 0; i < 2; i++)
        lock_owner_deinit(&fixture->owners[i]);
    lock_table_deinit(&fixture->table);
}

static void hold_documents(struct table_box *fixture, int owner)
{
    const struct lock_spec specs[] = {
        {{.index = SLICE_LIT("fs"), .path = SLICE_LIT("/a/b"), .id = SLICE_LIT("1")}, LOCK_S, false, false},
        {{.index = SLICE_LIT("fs"), .id = SLICE_LIT("2")}, LOCK_S, false, false},
        {{.index = SLICE_LIT("n"), .space = RESOURCE_SPACE_NAMES}, LOCK_S, false, true},
    };
    lock_table_set_ts(&fixture->table, 10 + (tl_ts)owner);
    struct lock_request *request = lock_request_new(&fixture->table, &fixture->owners[owner], specs, 3, NULL);
    assert_int_equal(lock_request_start(request, false), LOCK_GRANTED);
    lock_request_free(request);
}

/* Finds a piece whatever its checksum is. */
static bool any_piece(void *context, uint64_t piece, uint32_t len, uint32_t crc, struct buf *ret_bytes)
{
    struct table_box *fixture = context;
    (void)len, (void)crc;
    if (piece < 1 || piece > 2)
        return false;
    buf_slice(ret_bytes, buf_as_slice(&fixture->pieces[piece - 1]));
    return true;
}

/* Returns: whether the table can be read. */
static bool read_table(struct table_box *fixture, struct slice record)
{
    struct arena arena = ARENA_INIT;
    struct codec codec = codec_from(record, &arena);
    struct lock_codec_refs refs = open_table(fixture);
    codec.version = SECTIONS_VERSION;
    refs.read_piece = any_piece;
    refs.context = fixture;
    lock_codec_table(&codec, &fixture->table, &refs);
    bool valid = codec_done(&codec);
    if (valid)
        lock_table_check(&fixture->table);
    close_table(fixture, &refs);
    arena_deinit(&arena);
    return valid;
}

/* Holds are validated even if the checksum of their piece is right: reading them ends in an error at most. */
static void test_content_of_pieces_of_locks_is_validated(void **state)
{
    struct table_box fixture = {.pieces = {BUF_INIT(BUF_UNLIMITED), BUF_INIT(BUF_UNLIMITED)}};
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    struct lock_chunk *chunk;
    struct codec codec;
    size_t refused = 0, bits = 0;
    (void)state;
    struct lock_codec_refs refs = open_table(&fixture);
    refs.in_pieces = true;
    hold_documents(&fixture, 0);
    hold_documents(&fixture, 1);
    for (size_t i = 0; (chunk = lock_table_changed_chunk(&fixture.table)) != NULL; i++) {
        assert_true(i < 2);
        codec = codec_to(&fixture.pieces[i], SECTIONS_VERSION);
        lock_codec_write_chunk(&codec, &fixture.table, chunk);
        lock_chunk_saved(&fixture.table, chunk, i + 1, (uint32_t)fixture.pieces[i].len, 0);
    }
    codec = codec_to(&record, SECTIONS_VERSION);
    lock_codec_table(&codec, &fixture.table, &refs);
    close_table(&fixture, &refs);
    assert_true(read_table(&fixture, buf_as_slice(&record)));
    for (size_t i = 0; i < 2; i++)
        for (size_t bit = 0; bit < 8 * fixture.pieces[i].len; bit++, bits++) {
            char *at = &fixture.pieces[i].data[bit / 8];
            *at = (char)(*at ^ 1 << bit % 8);
            refused += !read_table(&fixture, buf_as_slice(&record));
            *at = (char)(*at ^ 1 << bit % 8);
        }
    assert_true(refused > bits / 3);
    for (size_t len = fixture.pieces[1].len; len > 0; len = fixture.pieces[1].len) {
        fixture.pieces[1].len = len - 1;
        assert_false(read_table(&fixture, buf_as_slice(&record)));
    }
    for (size_t i = 0; i < 2; i++)
        buf_deinit(&fixture.pieces[i]);
    buf_deinit(&record);
}

/* The state as a whole does not need pieces that the store has, and the next checkpoint replaces them. */
static void test_whole_state_over_store_with_pieces(void **state)
{
    struct core_fixture fixture;
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED);
    size_t pieces;
    (void)state;
    open_box(&fixture);
    for (int i = 0; i < 2; i++) {
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, i == 0 ? "t0" : "t1");
        write_document(&fixture, i == 0 ? "t0" : "t1", 1, 10);
    }
    checkpoint(&fixture, &record, &saved);
    fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, "t0");
    fixture_reopen(&fixture);
    checkpoint(&fixture, &record, &saved);
    assert_int_equal(store_count_pieces(fixture.store, &pieces), 0);
    assert_int_equal(pieces, 2); /* of the overlay, and of the transaction's locks */
    reload(&fixture, buf_as_slice(&record), buf_as_slice(&saved));
    fixture_close(&fixture);
    buf_deinit(&record);
    buf_deinit(&saved);
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

/*
 * A file has the record after its length, and the pieces from {1, 0} on: one of an overlay, from
 * version 10 on of locks, from 11 on of sessions and of waits. Since version 10 pieces are after their lengths, too.
 */
static void write_file(const char *path)
{
    struct core_fixture fixture;
    struct buf record = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED), bytes = BUF_INIT(BUF_UNLIMITED);
    open_box(&fixture);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t0");
    write_document(&fixture, "t0", 1, 10);
    write_document(&fixture, "t0", 2, 20);
    open_session(&fixture, "s0");
    open_session(&fixture, "s1");
    lock_documents(&fixture, "s0", 0, 1);
    request_document(&fixture, "s1", 0);
    checkpoint(&fixture, &record, &saved);
    for (uint64_t owner = 0; owner <= fixture.core->owners->pieces.last_owner; owner++) {
        if (owner > 0) {
            buf_clear(&record);
            assert_int_equal(store_get_piece(fixture.store, (struct store_piece){owner, 0}, &record), 0);
        }
        buf_varint(&bytes, record.len);
        buf_slice(&bytes, buf_as_slice(&record));
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.len, file), bytes.len);
    fclose(file);
    close_box(&fixture);
    buf_deinit(&record);
    buf_deinit(&saved);
    buf_deinit(&bytes);
}

/* Reads a file, and makes a checkpoint of its state. */
static void read_file(const char *path, int version)
{
    char bytes[4096];
    struct core_fixture fixture;
    struct buf reason = BUF_INIT(BUF_UNLIMITED), again = BUF_INIT(BUF_UNLIMITED), saved = BUF_INIT(BUF_UNLIMITED);
    uint64_t len = 0;
    struct slice rest, record, piece;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    rest = slice_make(bytes, fread(bytes, 1, sizeof bytes, file));
    fclose(file);
    assert_true(rest.len < sizeof bytes && slice_take_varint(&rest, &len) && slice_take(&rest, (size_t)len, &record));
    fixture_open(&fixture);
    core_close(fixture.core);
    for (uint64_t owner = 1; rest.len > 0; owner++) {
        assert_true(version == 9 || slice_take_varint(&rest, &len));
        assert_true(slice_take(&rest, version == 9 ? rest.len : (size_t)len, &piece));
        assert_int_equal(store_put_piece(fixture.store, (struct store_piece){owner, 0}, piece), 0);
    }
    assert_int_equal(load(&fixture, record, &reason), 0);
    const struct txn *txn = owners_txn(fixture.core->owners, SLICE_LIT("t0"));
    assert_non_null(txn);
    assert_int_equal(overlay_count_in(txn->overlay, SPACE_DOCUMENTS), 2);
    assert_int_equal(waiting_count(&fixture), version >= 11);
    checkpoint(&fixture, &again, &saved);
    reload(&fixture, buf_as_slice(&again), buf_as_slice(&saved));
    close_box(&fixture);
    buf_deinit(&reason);
    buf_deinit(&again);
    buf_deinit(&saved);
}

static void test_load_reads_pieces_of_every_version(void **state)
{
    char path[4096];
    (void)state;
    for (int version = 9; version <= SECTIONS_VERSION; version++) {
        snprintf(path, sizeof path, "%s/%d.pieces", directory, version);
        if (writes && version == SECTIONS_VERSION)
            write_file(path);
        read_file(path, version);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_change_between_parts),
        cmocka_unit_test(test_unchanged_pieces_are_not_written_again),
        cmocka_unit_test(test_unchanged_locks_are_not_written_again),
        cmocka_unit_test(test_unchanged_sessions_and_waits_are_not_written_again),
        cmocka_unit_test(test_small_pieces_are_written_in_parts),
        cmocka_unit_test(test_scratch_of_large_pieces_is_freed),
        cmocka_unit_test(test_parts_end_however_much_changes),
        cmocka_unit_test(test_kinds_and_transactions_share_parts),
        cmocka_unit_test(test_kill_between_parts_of_locks_loads_older_checkpoint),
        cmocka_unit_test(test_damaged_pieces_are_refused),
        cmocka_unit_test(test_damaged_pieces_of_locks_are_refused),
        cmocka_unit_test(test_content_of_pieces_of_locks_is_validated),
        cmocka_unit_test(test_damaged_pieces_of_sessions_and_waits_are_refused),
        cmocka_unit_test(test_content_of_pieces_of_sessions_and_waits_is_validated),
        cmocka_unit_test(test_whole_state_over_store_with_pieces),
        cmocka_unit_test(test_load_reads_pieces_of_every_version),
    };
    const struct argument arguments[] = {{"FOLDER", .text = &directory}, {"--write", .flag = &writes}, {0}};
    arguments_take(argc, argv, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
