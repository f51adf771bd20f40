/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions and transactions through core_step(): regressions of bugs that the simulator found,
 * limits, and operations that are divided into batches.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/maintenance.h"
#include "../../lib/reclaim_stop.h"
#include "../../lib/rocks_fixture.h"
#include "../../lib/unit.h"

#include "core/acquire/lock_resolve.h"
#include "core/command/command_codec.h"
#include "core/session/owners.h"
#include "core/wait/lock_event.h"
#include "core/documents/write.h"
#include "core/session/txn.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "mapping/mapping.h"

#include <stdio.h>

static struct command *open_session(struct core_fixture *fixture, const char *id, struct write_item *actions,
                                    size_t count)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);

    command->session.id = slice_from(id);
    command->session.ttl_us = 10 * TL_SECOND;
    command->session.on_expire = actions;
    command->session.on_expire_count = count;
    return fixture_run(fixture, command, 1);
}

static void end_session(struct core_fixture *fixture, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);

    command->session.id = slice_from(id);
    command->session.force = true;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

static struct command *end_if_detached(struct core_fixture *fixture, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);

    command->session.id = slice_from(id);
    command->session.force = true;
    command->session.if_detached = true;
    return fixture_run(fixture, command, 1);
}

/* In one step: between a look at the session and its end it could be attached. */
static void test_session_end_if_detached(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    open_session(&fixture, "s", NULL, 0);
    struct command *attach = command_new(COMMAND_SESSION_ATTACH, DIALECT_7);
    attach->session.id = SLICE_LIT("s");
    attach->session.attachment = 1;
    assert_int_equal(fixture_run(&fixture, attach, 1)->problem.type, PROBLEM_NONE);
    assert_int_equal(end_if_detached(&fixture, "s")->problem.type, PROBLEM_SESSION_ATTACHED);
    assert_non_null(owners_live_session(fixture.core->owners, SLICE_LIT("s")));
    end_session(&fixture, "s");
    open_session(&fixture, "t", NULL, 0);
    assert_int_equal(end_if_detached(&fixture, "t")->problem.type, PROBLEM_NONE);
    assert_null(owners_live_session(fixture.core->owners, SLICE_LIT("t")));
    assert_int_equal(end_if_detached(&fixture, "t")->problem.type, PROBLEM_SESSION_MISSING);
    fixture_close(&fixture);
}

static struct command *transaction(struct core_fixture *fixture, enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);

    command->txn.id = slice_from(id);
    command->txn.idle_us = 60 * TL_SECOND;
    return fixture_run(fixture, command, 1);
}

static struct write_result *write_in(struct core_fixture *fixture, const char *id, struct write_item item)
{
    struct command *command = fixture_write_command(fixture, 1);

    command->write.items[0] = item;
    command->owner.transaction = slice_from(id);
    return &fixture_run(fixture, command, 1)->write.results[0];
}

/*
 * An on_expire action that updates an ephemeral document of its own session still leaves one
 * removal.
 */
static void test_session_end_removes_ephemeral_document_once_after_action(void **state)
{
    struct write_update update = {.doc = SLICE_LIT("{\"n\":2}")};
    struct write_item action = fixture_item(WRITE_UPDATE, "fs", "", "1", "");
    struct write_item ephemeral = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"n\":1}");
    struct core_fixture fixture;
    (void)state;

    action.source = SLICE_NONE;
    action.update = &update;
    ephemeral.lease = SLICE_LIT("s");
    fixture_open(&fixture);
    open_session(&fixture, "s", &action, 1);
    assert_int_equal(fixture_write_one(&fixture, ephemeral)->version, 1);
    end_session(&fixture, "s");
    assert_null(fixture_source(&fixture, "fs", "1"));
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{}")->version, 4); /* created, updated, removed, created */
    fixture_close(&fixture);
}

/*
 * A transaction overwrites its ephemeral document by a plain one; the end of the session then does
 * not fail its commit.
 */
static void test_commit_ignores_session_of_overwritten_ephemeral_document(void **state)
{
    struct write_item ephemeral = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"n\":1}");
    struct core_fixture fixture;
    (void)state;

    ephemeral.lease = SLICE_LIT("s");
    fixture_open(&fixture);
    open_session(&fixture, "s", NULL, 0);
    transaction(&fixture, COMMAND_TXN_BEGIN, "t");
    assert_int_equal(write_in(&fixture, "t", ephemeral)->outcome, WRITE_CREATED);
    assert_int_equal(write_in(&fixture, "t", fixture_item(WRITE_INDEX, "fs", "", "1", "{\"n\":2}"))->outcome,
                     WRITE_UPDATED);
    end_session(&fixture, "s");
    assert_int_equal(transaction(&fixture, COMMAND_TXN_COMMIT, "t")->problem.type, PROBLEM_NONE);
    assert_string_equal(fixture_source(&fixture, "fs", "1"), "{\"n\":2}");
    fixture_close(&fixture);
}

/* A reader keeps the overlay of its TXN_LOCK while the transaction writes more. */
static void test_overlay_of_reader_is_unchanged_by_later_write(void **state)
{
    struct command *read = command_new(COMMAND_TXN_LOCK, DIALECT_7);
    struct core_fixture fixture;
    struct slice value;
    size_t before;
    (void)state;

    fixture_open(&fixture);
    transaction(&fixture, COMMAND_TXN_BEGIN, "t");
    write_in(&fixture, "t", fixture_item(WRITE_INDEX, "fs", "", "1", "{\"n\":1}"));
    read->owner.transaction = SLICE_LIT("t");
    struct overlay *seen = fixture_run(&fixture, read, 1)->txn_lock.overlay;
    assert_non_null(seen);
    before = overlay_count(seen);
    write_in(&fixture, "t", fixture_item(WRITE_INDEX, "fs", "", "2", "{\"n\":2}"));
    assert_int_equal(overlay_count(seen), before);
    assert_int_equal(overlay_get(seen, SPACE_SYSTEM, SLICE_LIT("no such key"), &value), STORE_NOT_FOUND);
    core_overlay_unref(seen);
    assert_int_equal(transaction(&fixture, COMMAND_TXN_COMMIT, "t")->txn.changes, 2);
    assert_int_equal(fixture_count(&fixture, "fs"), 2);
    fixture_close(&fixture);
}

/* A write after a read whose reader still has its snapshot copies a few nodes, however much was written before. */
static void test_write_after_read_copies_few_nodes(void **state)
{
    enum { DOCUMENTS = 2000, READS = 3, COPIED_MAX = 60 };
    struct overlay *seen[READS];
    struct core_fixture fixture;
    char id[16];
    (void)state;

    fixture_open(&fixture);
    transaction(&fixture, COMMAND_TXN_BEGIN, "t");
    for (int i = 0; i < DOCUMENTS; i++) {
        snprintf(id, sizeof id, "%d", i * 7919 % DOCUMENTS);
        write_in(&fixture, "t", fixture_item(WRITE_INDEX, "fs", "", id, "{\"n\":1}"));
    }
    const struct overlay *overlay = owners_txn(fixture.core->owners, SLICE_LIT("t"))->overlay;
    for (int i = 0; i < READS; i++) {
        struct command *read = command_new(COMMAND_TXN_LOCK, DIALECT_7);
        uint64_t before = overlay_nodes_copied(overlay);
        read->owner.transaction = SLICE_LIT("t");
        seen[i] = fixture_run(&fixture, read, 1)->txn_lock.overlay;
        assert_int_equal(overlay_count_in(seen[i], SPACE_DOCUMENTS), DOCUMENTS);
        snprintf(id, sizeof id, "%d", i * 977);
        write_in(&fixture, "t", fixture_item(WRITE_INDEX, "fs", "", id, "{\"n\":2}"));
        assert_ptr_equal(owners_txn(fixture.core->owners, SLICE_LIT("t"))->overlay, overlay);
        assert_true(overlay_nodes_copied(overlay) > before);
        assert_true(overlay_nodes_copied(overlay) <= before + COPIED_MAX);
    }
    assert_int_equal(transaction(&fixture, COMMAND_TXN_COMMIT, "t")->txn.changes, DOCUMENTS);
    for (int i = 0; i < READS; i++) {
        overlay_check(seen[i]);
        core_overlay_unref(seen[i]);
    }
    fixture_close(&fixture);
}

/* A read in a transaction locks no document of a type whose name no type can have; before version 11 it did. */
static void test_read_locks_no_document_of_impossible_type(void **state)
{
    char type[600];
    struct core_fixture fixture;
    (void)state;

    memset(type, 'a', sizeof type);
    for (unsigned older = 0; older < 2; older++) {
        struct command *read = command_new(COMMAND_TXN_LOCK, DIALECT_5);
        fixture_open(&fixture);
        fixture.dialect = DIALECT_5;
        fixture_write_one(&fixture, fixture_item(WRITE_INDEX, "old", "a", "1", "{}"));
        fixture_write_one(&fixture, fixture_item(WRITE_INDEX, "old", "b", "1", "{}"));
        transaction(&fixture, COMMAND_TXN_BEGIN, "t");
        read->version = COMMAND_SINCE_LOCKABLE_TYPES - older;
        read->owner.transaction = SLICE_LIT("t");
        read->txn_lock.targets = arena_zalloc(&read->arena, sizeof *read->txn_lock.targets);
        read->txn_lock.targets[0] = (struct lock_target){
            .mode = LOCK_S, .index = SLICE_LIT("old"), .type = slice_make(type, sizeof type), .id = SLICE_LIT("1")};
        read->txn_lock.target_count = 1;
        assert_int_equal(fixture_run(&fixture, read, 1)->problem.type, PROBLEM_NONE);
        assert_int_equal(fixture.core->owners->locks.lock_count > 0, older);
        core_overlay_unref(read->txn_lock.overlay);
        fixture_close(&fixture);
    }
}

static void keep_entry(void *context, struct slice key, struct slice value)
{
    struct slice *entry = context;
    entry[0] = key;
    entry[1] = value;
}

/* The record that a COMMIT writes has its timestamp; that in the overlay, which a reader may share, is not modified. */
static void test_overlay_of_reader_is_unchanged_by_commit(void **state)
{
    struct command *read = command_new(COMMAND_TXN_LOCK, DIALECT_7);
    struct core_fixture fixture;
    struct slice entry[2]; /* key and record */
    struct store_value written;
    struct doc before, after;
    (void)state;

    fixture_open(&fixture);
    transaction(&fixture, COMMAND_TXN_BEGIN, "t");
    write_in(&fixture, "t", fixture_item(WRITE_INDEX, "fs", "", "1", "{\"n\":1}"));
    read->owner.transaction = SLICE_LIT("t");
    struct overlay *seen = fixture_run(&fixture, read, 1)->txn_lock.overlay;
    overlay_each(seen, SPACE_DOCUMENTS, keep_entry, entry);
    assert_int_equal(doc_decode(entry[1], &before), 0);
    tl_ts commit_ts = transaction(&fixture, COMMAND_TXN_COMMIT, "t")->txn.commit_ts;
    assert_int_equal(doc_decode(entry[1], &after), 0);
    assert_int_equal(after.ts, before.ts);
    assert_slice_equal(after.source, "{\"n\":1}");
    assert_int_equal(store_get(fixture.store, SPACE_DOCUMENTS, TL_TS_MAX, entry[0], &written), 0);
    assert_int_equal(doc_decode(written.bytes, &after), 0);
    assert_true(after.ts == commit_ts && after.ts != before.ts);
    assert_slice_equal(after.source, "{\"n\":1}");
    store_value_release(&written);
    core_overlay_unref(seen);
    assert_int_equal(fixture_count(&fixture, "fs"), 1);
    fixture_close(&fixture);
}

/* Writes documents with sources of `bytes` each in the transaction "t". */
static void write_large(struct core_fixture *fixture, unsigned count, size_t bytes)
{
    char id[16], *source = mem_alloc(bytes + 1);
    memset(source, 'x', bytes);
    memcpy(source, "{\"t\":\"", 6);
    memcpy(source + bytes - 2, "\"}", 3);
    for (unsigned i = 0; i < count; i++) {
        snprintf(id, sizeof id, "%u", i * 7919 % count);
        write_in(fixture, "t", fixture_item(WRITE_INDEX, "fs", "", id, source));
    }
    mem_free(source);
}

/*
 * Goal: a step that ends a transaction frees little of its writes; the reclaimer does, which is stopped here.
 * A commit's writes are freed with its command.
 */
static void test_end_of_large_transaction_frees_little(void **state)
{
    enum { DOCUMENTS = 5000, BYTES = 3000 };
    (void)state;
    for (int end = 0; end < 4; end++) {
        struct core_fixture fixture;
        size_t before = reclaim_stop_used();
        fixture_open(&fixture);
        open_session(&fixture, "s", NULL, 0);
        struct command *begin = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
        begin->txn.id = SLICE_LIT("t");
        begin->txn.mode = TXN_UPDATE;
        begin->txn.idle_us = TL_SECOND;
        begin->owner.session = SLICE_LIT("s");
        fixture_run(&fixture, begin, 1);
        write_large(&fixture, DOCUMENTS, BYTES);
        reclaim_stop_begin();
        size_t used = reclaim_stop_used();
        if (end == 0)
            transaction(&fixture, COMMAND_TXN_ROLLBACK, "t");
        else if (end == 1)
            end_session(&fixture, "s");
        else if (end == 2)
            fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 2 * TL_SECOND);
        else
            transaction(&fixture, COMMAND_TXN_COMMIT, "t");
        assert_null(owners_txn(fixture.core->owners, SLICE_LIT("t")));
        command_free(tl_steal(fixture.last));
        assert_true(reclaim_stop_used() > used - DOCUMENTS * BYTES / 2);
        reclaim_stop_end();
        fixture_close(&fixture);
        assert_int_equal(reclaim_stop_used(), before);
    }
}

/* Goal: a step that ends many locks of one owner frees little of their memory; the reclaimer does, which is stopped. */
static void test_end_of_many_locks_frees_little(void **state)
{
    enum { LOCKS = 5000, BYTES = 200 }; /* of a lock with its resource, at least */
    static const enum command_type ends[] = {COMMAND_TXN_ROLLBACK, COMMAND_TXN_COMMIT, COMMAND_UNLOCK,
                                             COMMAND_SESSION_CLOSE};
    (void)state;
    for (size_t end = 0; end < sizeof ends / sizeof *ends; end++) {
        bool in_txn = end < 2;
        struct core_fixture fixture;
        fixture_open(&fixture);
        open_session(&fixture, "s", NULL, 0);
        transaction(&fixture, COMMAND_TXN_BEGIN, "t");
        struct command *command = command_new(in_txn ? COMMAND_TXN_LOCK : COMMAND_LOCK, DIALECT_7);
        struct lock_target *targets = arena_zalloc(&command->arena, LOCKS * sizeof *targets);
        for (size_t i = 0; i < LOCKS; i++)
            targets[i] = (struct lock_target){
                .mode = LOCK_S, .index = SLICE_LIT("fs"), .id = arena_printf(&command->arena, "%zu", i)};
        if (in_txn) {
            command->owner.transaction = SLICE_LIT("t");
            command->txn_lock = (struct txn_lock_command){.targets = targets, .target_count = LOCKS};
        } else {
            command->owner.session = SLICE_LIT("s");
            command->lock.targets = targets;
            command->lock.target_count = LOCKS;
        }
        assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
        command_free(tl_steal(fixture.last));
        assert_true(fixture.core->owners->locks.lock_count >= LOCKS);
        reclaim_stop_begin();
        size_t used = reclaim_stop_used();
        if (in_txn) {
            transaction(&fixture, ends[end], "t");
        } else if (ends[end] == COMMAND_UNLOCK) {
            command = command_new(COMMAND_UNLOCK, DIALECT_7);
            command->owner.session = SLICE_LIT("s");
            assert_int_equal(fixture_run(&fixture, command, 1)->lock.released, LOCKS);
        } else {
            end_session(&fixture, "s");
        }
        command_free(tl_steal(fixture.last));
        assert_int_equal(fixture.core->owners->locks.lock_count, 0);
        assert_true(reclaim_stop_used() > used - LOCKS * BYTES / 2);
        reclaim_stop_end();
        assert_true(reclaim_stop_used() < used - LOCKS * BYTES);
        fixture_close(&fixture);
    }
}

/* Goal: a commit makes no copies of the records, although a reader shares them; on RocksDB, as in a server. */
static void test_commit_with_reader_copies_no_records(void **state)
{
    enum { DOCUMENTS = 16, BYTES = 1 << 20 };
    struct fixture *f = *state;
    struct core_fixture fixture = {
        .limits = core_limits_default(), .now = FIXTURE_START, .clock = FIXTURE_CLOCK, .dialect = DIALECT_7};
    must_open(f, false);
    fixture.store = f->store;
    effects_init(&fixture.effects);
    assert_int_equal(core_open(fixture.store, &fixture.limits, &fixture.core), 0);
    transaction(&fixture, COMMAND_TXN_BEGIN, "t");
    write_large(&fixture, DOCUMENTS, BYTES);
    struct command *read = command_new(COMMAND_TXN_LOCK, DIALECT_7);
    read->owner.transaction = SLICE_LIT("t");
    struct overlay *seen = fixture_run(&fixture, read, 1)->txn_lock.overlay;
    size_t before = reclaim_stop_used();
    assert_int_equal(transaction(&fixture, COMMAND_TXN_COMMIT, "t")->txn.changes, DOCUMENTS);
    assert_true(reclaim_stop_used() < before + DOCUMENTS * BYTES / 4);
    core_overlay_unref(seen);
    assert_int_equal(fixture_count(&fixture, "fs"), DOCUMENTS);
    fixture.store = NULL; /* the other fixture's */
    fixture_close(&fixture);
}

/* A lock on a directory also covers the first document of a new mapping type. */
static void test_directory_lock_blocks_first_document_of_type(void **state)
{
    static const char tree[] =
        "{\"settings\":{\"analysis\":{\"analyzer\":{\"paths\":{\"tokenizer\":\"path_hierarchy\"}}}},"
        "\"mappings\":{\"a\":{\"properties\":{\"path\":{\"type\":\"text\","
        "\"fields\":{\"tree\":{\"type\":\"text\",\"analyzer\":\"paths\"}}}}}}}";
    struct lock_target directory = {.mode = LOCK_X, .index = SLICE_LIT("fs"), .path = SLICE_LIT("/clinton")};
    struct command *lock = command_new(COMMAND_LOCK, DIALECT_7);
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.dialect = DIALECT_5;
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs", tree);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    open_session(&fixture, "s", NULL, 0);
    lock->owner.session = SLICE_LIT("s");
    lock->lock.targets = &directory;
    lock->lock.target_count = 1;
    assert_int_equal(fixture_run(&fixture, lock, 1)->problem.type, PROBLEM_NONE);
    struct write_result *result =
        fixture_write_one(&fixture, fixture_item(WRITE_INDEX, "fs", "b", "1", "{\"path\":\"/clinton/projects\"}"));
    assert_int_equal(result->problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);
    result = fixture_write_one(&fixture, fixture_item(WRITE_INDEX, "fs", "b", "1", "{\"path\":\"/bill\"}"));
    assert_int_equal(result->outcome, WRITE_CREATED);
    fixture_close(&fixture);
}

static void take(struct core_fixture *fixture, enum command_type type, struct lock_target *target)
{
    struct command *command = command_new(type, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    command->lock.targets = target;
    command->lock.target_count = 1;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

/* Locks in one index do not block writes to another one; a lock on the root does. */
static void test_write_ignores_locks_in_other_index(void **state)
{
    struct lock_target elsewhere = {.mode = LOCK_X, .index = SLICE_LIT("other"), .id = SLICE_LIT("1")};
    struct lock_target all = {.mode = LOCK_S};
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{}")->outcome, WRITE_CREATED);
    assert_int_equal(fixture_index(&fixture, "other", "1", "{}")->outcome, WRITE_CREATED);
    open_session(&fixture, "s", NULL, 0);
    take(&fixture, COMMAND_LOCK, &elsewhere);
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{}")->outcome, WRITE_UPDATED);
    assert_int_equal(fixture_index(&fixture, "other", "2", "{}")->outcome, WRITE_CREATED);
    assert_int_equal(fixture_index(&fixture, "other", "1", "{}")->problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);
    take(&fixture, COMMAND_LOCK, &all);
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{}")->problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);
    take(&fixture, COMMAND_UNLOCK, &all);
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{}")->outcome, WRITE_UPDATED);
    fixture_close(&fixture);
}

/* An atomic write beyond the limits of a transaction is refused as a whole. */
static void test_atomic_write_is_refused_beyond_transaction_limits(void **state)
{
    char wide[] = "{\"t\":\"a text that would be short enough for one of them, but is not for two: there is less room"
                  "\"}";
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.limits.transaction_changes_max = 3;
    fixture.limits.transaction_bytes_max = 200;
    fixture_reopen(&fixture);
    for (size_t count = 3; count <= 4; count++) {
        struct command *command = fixture_write_command(&fixture, count);
        for (size_t i = 0; i < count; i++)
            command->write.items[i] = fixture_item(WRITE_INDEX, "fs", "",
                                                   i == 0   ? "1"
                                                   : i == 1 ? "2"
                                                   : i == 2 ? "3"
                                                            : "4",
                                                   "{\"n\":1}");
        command->write.atomic = true;
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->problem.type, count == 3 ? PROBLEM_NONE : PROBLEM_TRANSACTION_TOO_LARGE);
        assert_int_equal(fixture_count(&fixture, "fs"), 3);
    }
    struct command *command = fixture_write_command(&fixture, 2);
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "1", wide);
    command->write.items[1] = fixture_item(WRITE_INDEX, "fs", "", "2", wide);
    command->write.atomic = true;
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_TRANSACTION_TOO_LARGE);
    assert_string_equal(fixture_source(&fixture, "fs", "1"), "{\"n\":1}");
    command = fixture_write_command(&fixture, 2);
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "1", wide);
    command->write.items[1] = fixture_item(WRITE_INDEX, "fs", "", "2", wide);
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE); /* not atomic */
    fixture_close(&fixture);
}

/* The memory limit of a transaction counts index entries and locks, not only documents. */
static void test_transaction_limit_counts_entries_and_locks(void **state)
{
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    struct core_fixture fixture;
    (void)state;

    buf_lit(&source, "{\"a\":[0");
    for (int i = 1; i < 1000; i++)
        buf_printf(&source, ",%d", i);
    buf_lit(&source, "]}");
    buf_byte(&source, '\0');
    fixture_open(&fixture);
    fixture.limits.transaction_bytes_max = 16 * source.len;
    fixture.limits.transaction_held_max = 100 * source.len; /* an index entry is larger than its number */
    fixture_reopen(&fixture);
    transaction(&fixture, COMMAND_TXN_BEGIN, "t");
    size_t written = 0;
    for (char id[] = "a"; id[0] < 'p' && written == (size_t)(id[0] - 'a'); id[0]++) {
        write_in(&fixture, "t", fixture_item(WRITE_INDEX, "fs", "", id, source.data));
        written += fixture.last->problem.type == PROBLEM_NONE;
    }
    assert_in_range(written, 1, 9);
    assert_int_equal(fixture.last->problem.type, PROBLEM_TRANSACTION_TOO_LARGE);
    transaction(&fixture, COMMAND_TXN_COMMIT, "t"); /* earlier writes are kept */
    assert_int_equal(fixture_count(&fixture, "fs"), written);
    buf_deinit(&source);
    fixture_close(&fixture);
}

/*
 * Runs a scripted update that moves a document into a directory of `levels` levels.
 * Returns: the bytes of the transaction's locks after it.
 */
static size_t move_deep(struct core_fixture *fixture, const char *id, size_t levels)
{
    struct write_update update = {.script_params = SLICE_LIT("{}")};
    struct write_item item = fixture_item(WRITE_UPDATE, "tree", "", "1", NULL);
    char script[200];

    snprintf(
        script, sizeof script,
        "def s = new StringBuilder(); for (int i = 0; i < %zu; i++) { s.append('/a') } ctx._source.path = s.toString()",
        levels);
    update.script_source = slice_from(script);
    item.update = &update;
    write_in(fixture, id, item);
    struct txn *txn = owners_txn(fixture->core->owners, slice_from(id));
    return owner__lock_bytes(fixture->core, &txn->owner.locks);
}

/*
 * The locks on a path made by a script count towards the limit, and are checked before they are
 * acquired.
 */
static void test_transaction_limit_counts_locks_of_scripted_paths(void **state)
{
    enum { LEVEL_BYTES = 448 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    fixture_index(&fixture, "tree", "1", "{\"path\":\"/b\"}");
    size_t bytes[3];
    for (size_t i = 0; i < 3; i++) {
        const char *id = (const char *[]){"t1", "t2", "t3"}[i];
        transaction(&fixture, COMMAND_TXN_BEGIN, id);
        bytes[i] = move_deep(&fixture, id, 100 * (i + 1));
        assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
        transaction(&fixture, COMMAND_TXN_ROLLBACK, id);
    }
    assert_int_equal(bytes[1] - bytes[0], 100 * LEVEL_BYTES);
    assert_int_equal(bytes[2] - bytes[1], 100 * LEVEL_BYTES);
    fixture.limits.transaction_held_max = 1000 * LEVEL_BYTES;
    fixture_reopen(&fixture);
    transaction(&fixture, COMMAND_TXN_BEGIN, "t");
    move_deep(&fixture, "t", 500);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    size_t before = fixture.core->owners->locks.resources.bytes;
    move_deep(&fixture, "t", 1100);
    assert_int_equal(fixture.last->problem.type, PROBLEM_TRANSACTION_TOO_LARGE);
    assert_int_equal(fixture.core->owners->locks.resources.bytes, before);
    fixture_close(&fixture);
}

/* Renames count towards the memory limit; one beyond it is refused before it acquires locks. */
static void test_transaction_limit_counts_renames(void **state)
{
    struct core_fixture fixture;
    char names[2][1002], sources[2][2100];
    size_t renamed = 0;
    (void)state;

    fixture_open(&fixture);
    fixture.limits.transaction_held_max = 64 << 10;
    fixture_reopen(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    for (int i = 0; i < 2; i++) {
        memset(names[i], 'a' + i, sizeof names[i] - 1);
        names[i][0] = '/';
        names[i][sizeof names[i] - 1] = '\0';
        snprintf(sources[i], sizeof sources[i], "{\"path\":\"%s\"}", names[i]);
    }
    fixture_index(&fixture, "tree", "1", sources[0]);
    transaction(&fixture, COMMAND_TXN_BEGIN, "t");
    while (renamed < 100 && fixture.last->problem.type == PROBLEM_NONE) {
        struct command *command = command_new(COMMAND_RENAME, DIALECT_7);
        command->rename = (struct rename_command){.index = slice_from("tree"),
                                                  .from = slice_from(names[renamed % 2]),
                                                  .to = slice_from(names[1 - renamed % 2]),
                                                  .if_seq_no = SEQ_NO_ANY};
        command->owner.transaction = slice_from("t");
        fixture_run(&fixture, command, 1);
        renamed += fixture.last->problem.type == PROBLEM_NONE;
    }
    assert_int_equal(fixture.last->problem.type, PROBLEM_TRANSACTION_TOO_LARGE);
    assert_in_range(renamed, 2, 30);
    transaction(&fixture, COMMAND_TXN_COMMIT, "t");
    assert_string_equal(fixture_source(&fixture, "tree", "1"), sources[renamed % 2]);
    fixture_close(&fixture);
}

/*
 * Returns: the work of a rename, outside and inside a transaction, while `locked` documents of
 * another directory are locked.
 */
static uint64_t work_of_rename(size_t locked)
{
    struct core_fixture fixture;
    uint64_t work = 0;
    char ids[300][24];

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    fixture_index(&fixture, "tree", "x", "{\"path\":\"/m/x\"}");
    open_session(&fixture, "s", NULL, 0);
    for (size_t i = 0; i < locked; i++) {
        snprintf(ids[i], sizeof ids[i], "%zu", i);
        fixture_index(&fixture, "tree", ids[i], "{\"path\":\"/l/x\"}");
        struct lock_target target = {.mode = LOCK_X, .index = slice_from("tree"), .id = slice_from(ids[i])};
        take(&fixture, COMMAND_LOCK, &target);
    }
    for (int i = 0; i < 2; i++) {
        struct command *command = command_new(COMMAND_RENAME, DIALECT_7);
        command->rename = (struct rename_command){.index = slice_from("tree"),
                                                  .from = slice_from(i == 0 ? "/m" : "/n"),
                                                  .to = slice_from(i == 0 ? "/n" : "/o"),
                                                  .if_seq_no = SEQ_NO_ANY};
        if (i == 1) {
            transaction(&fixture, COMMAND_TXN_BEGIN, "t");
            command->owner.transaction = slice_from("t");
        }
        assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
        if (i == 1)
            transaction(&fixture, COMMAND_TXN_COMMIT, "t");
        work += core_step_work(fixture.core);
    }
    fixture_close(&fixture);
    return work;
}

static struct command *rename_in(struct core_fixture *fixture, const char *id, const char *from, const char *to)
{
    struct command *command = command_new(COMMAND_RENAME, DIALECT_7);

    command->rename = (struct rename_command){
        .index = slice_from("tree"), .from = slice_from(from), .to = slice_from(to), .if_seq_no = SEQ_NO_ANY};
    command->owner.transaction = slice_from(id);
    return fixture_run(fixture, command, 1);
}

/* A session with a lock elsewhere, so that writes determine the paths of what they change. */
static void open_locked_tree(struct core_fixture *fixture)
{
    struct lock_target elsewhere = {.mode = LOCK_X, .index = slice_from("tree"), .id = slice_from("elsewhere")};

    fixture_open(fixture);
    fixture_index_command(fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    open_session(fixture, "s", NULL, 0);
    take(fixture, COMMAND_LOCK, &elsewhere);
}

/* The levels of a path are searched for when a rename may have moved them, twice for a delete: for its locks, too. */
static void test_write_counts_levels_of_renamed_path(void **state)
{
    enum { LEVELS = 1000 };
    struct core_fixture fixture;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    open_locked_tree(&fixture);
    buf_lit(&source, "{\"path\":\"/a");
    for (int i = 0; i < LEVELS; i++)
        buf_lit(&source, "/b");
    buf_slice(&source, slice_make("\"}", sizeof "\"}"));
    fixture_index(&fixture, "tree", "deep", source.data);
    fixture_index(&fixture, "tree", "other", "{\"path\":\"/c\"}");
    struct command *command = command_new(COMMAND_RENAME, DIALECT_7);
    command->rename = (struct rename_command){
        .index = slice_from("tree"), .from = slice_from("/a"), .to = slice_from("/z"), .if_seq_no = SEQ_NO_ANY};
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
    fixture_delete(&fixture, "tree", "other");
    assert_in_range(core_step_work(fixture.core), 1, LEVELS * WORK_LEVEL);
    assert_int_equal(fixture_delete(&fixture, "tree", "deep")->outcome, WRITE_DELETED);
    assert_in_range(core_step_work(fixture.core), 2 * LEVELS * WORK_LEVEL, CORE_STEP_WORK);
    buf_deinit(&source);
    fixture_close(&fixture);
}

/* A document with two paths cannot be renamed: its source is parsed for its locks, and again for its entries. */
static void test_write_counts_sources_parsed_for_locks(void **state)
{
    enum { BYTES = 100000 };
    struct core_fixture fixture;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    open_locked_tree(&fixture);
    buf_lit(&source, "{\"path\":[\"/a\",\"/b\"],\"text\":\"");
    for (int i = 0; i < BYTES; i++)
        buf_byte(&source, 'x');
    buf_slice(&source, slice_make("\"}", sizeof "\"}"));
    fixture_index(&fixture, "tree", "large", source.data);
    assert_int_equal(fixture_delete(&fixture, "tree", "large")->outcome, WRITE_DELETED);
    assert_in_range(core_step_work(fixture.core), 2 * BYTES / WORK_BYTES, CORE_STEP_WORK);
    buf_deinit(&source);
    fixture_close(&fixture);
}

/* A write that needs no source of a renamed document does not copy it. */
static void test_path_is_known_without_the_source(void **state)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct core_fixture fixture;
    struct slice path;
    struct doc doc;
    (void)state;

    open_locked_tree(&fixture);
    fixture_index(&fixture, "tree", "1", "{\"path\":\"/a/1\"}");
    struct command *command = command_new(COMMAND_RENAME, DIALECT_7);
    command->rename = (struct rename_command){
        .index = slice_from("tree"), .from = slice_from("/a"), .to = slice_from("/z"), .if_seq_no = SEQ_NO_ANY};
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
    tl_cleanup(catalog_unrefp) struct catalog *catalog = core_catalog(fixture.core);
    const struct catalog_index *index = catalog_index(catalog, slice_from("tree"));
    uint16_t type = (uint16_t)mapping_type(index->mapping, slice_from("_doc"))->number;
    struct view view = {fixture.store, TL_TS_MAX, NULL};
    assert_int_equal(doc_get_stored(&view, index->number, type, slice_from("1"), &doc), 0);
    assert_int_equal(doc_apply_renames_to_path(&view, NULL, index->number, &arena, &doc, &path), 0);
    assert_true(slice_is(path, "/z/1"));
    assert_ptr_equal(doc.source.data, doc.stored.data);
    assert_int_equal(doc.version, 2);
    doc_release(&doc);
    fixture_close(&fixture);
}

/*
 * Documents that were moved away with their directory cost a rename nothing. Those that were moved
 * one by one are read, and in a transaction there is a limit.
 */
static void test_rename_reads_few_documents_moved_away(void **state)
{
    struct core_fixture fixture;
    char source[64], from[32], to[32], id[24];
    uint64_t work[2];
    (void)state;

    for (int i = 0; i < 2; i++) {
        fixture_open(&fixture);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "tree",
                              "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
        for (int k = 0; k < (i == 0 ? 1 : 500); k++) {
            snprintf(source, sizeof source, "{\"path\":\"/a/b/%d\"}", k);
            snprintf(id, sizeof id, "%d", k);
            fixture_index(&fixture, "tree", id, source);
        }
        transaction(&fixture, COMMAND_TXN_BEGIN, "t");
        assert_int_equal(rename_in(&fixture, "t", "/a/b", "/c")->problem.type, PROBLEM_NONE);
        assert_int_equal(rename_in(&fixture, "t", "/c", "/a")->problem.type, PROBLEM_NONE);
        work[i] = core_step_work(fixture.core);
        transaction(&fixture, COMMAND_TXN_COMMIT, "t");
        assert_string_equal(fixture_source(&fixture, "tree", "0"), "{\"path\":\"/a/0\"}");
        fixture_close(&fixture);
    }
    assert_true(work[1] == work[0]);

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    fixture_index(&fixture, "tree", "z", "{\"path\":\"/z/z\"}");
    for (int k = 0; k < 5001; k++) {
        snprintf(source, sizeof source, "{\"path\":\"/a/%d\"}", k);
        snprintf(from, sizeof from, "/a/%d", k);
        snprintf(to, sizeof to, "/c/%d", k);
        snprintf(id, sizeof id, "%d", k);
        fixture_index(&fixture, "tree", id, source);
        assert_int_equal(rename_in(&fixture, "", from, to)->problem.type, PROBLEM_NONE);
    }
    transaction(&fixture, COMMAND_TXN_BEGIN, "t");
    assert_int_equal(rename_in(&fixture, "t", "/z", "/y")->problem.type, PROBLEM_NONE);
    assert_int_equal(rename_in(&fixture, "t", "/y", "/a")->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    transaction(&fixture, COMMAND_TXN_COMMIT, "t");
    fixture_delete(&fixture, "tree", "5000");
    transaction(&fixture, COMMAND_TXN_BEGIN, "u");
    assert_int_equal(rename_in(&fixture, "u", "/y", "/x")->problem.type, PROBLEM_NONE);
    assert_int_equal(rename_in(&fixture, "u", "/x", "/a")->problem.type, PROBLEM_NONE);
    fixture_close(&fixture);
}

/* Writes 2,000 documents at /a/D, by one bulk whose entries are in posting lists; or deletes them. */
static void bulk_below(struct core_fixture *fixture, int first, enum write_op op)
{
    enum { COUNT = 2000 };
    struct command *command = fixture_write_command(fixture, COUNT);

    for (int i = 0; i < COUNT; i++) {
        command->write.items[i] = fixture_item(op, "tree", "", "", "");
        command->write.items[i].id = arena_printf(&command->arena, "%d", first + i);
        command->write.items[i].source =
            op == WRITE_DELETE ? SLICE_NONE : arena_printf(&command->arena, "{\"path\":\"/a/%d\"}", first);
    }
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

/* In a transaction, entries of deleted documents count, too: they are in posting lists. */
static void test_rename_in_transaction_reads_few_entries(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    fixture_index(&fixture, "tree", "z", "{\"path\":\"/z/z\"}");
    for (int i = 0; i < 4; i++) {
        bulk_below(&fixture, i * 2000, WRITE_INDEX);
        bulk_below(&fixture, i * 2000, WRITE_DELETE);
    }
    transaction(&fixture, COMMAND_TXN_BEGIN, "t");
    assert_int_equal(rename_in(&fixture, "t", "/z", "/y")->problem.type, PROBLEM_NONE);
    assert_int_equal(rename_in(&fixture, "t", "/y", "/a")->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    assert_in_range(core_step_work(fixture.core), 6000 * WORK_READ, CORE_STEP_WORK);
    transaction(&fixture, COMMAND_TXN_COMMIT, "t");
    fixture_close(&fixture);
}

static void test_rename_does_not_read_locked_documents_elsewhere(void **state)
{
    (void)state;
    assert_in_range(work_of_rename(300) - work_of_rename(0), 0, 300 * WORK_READ / 2);
}

/* Submits a write that must wait. */
static struct command *waiting_write(struct core_fixture *fixture, uint64_t request)
{
    struct command *command = fixture_write_command(fixture, 1);

    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "1", "{}");
    command->request = request;
    command->owner.timeout_us = 60 * TL_SECOND;
    command->ts = ++fixture->now;
    assert_int_equal(core_step(fixture->core, command, &fixture->effects), 0);
    assert_true(list_empty(&fixture->effects.completed));
    return command;
}

static void stop_host(struct core_fixture *fixture, uint64_t host)
{
    struct command *cancel = command_new(COMMAND_CANCEL, DIALECT_7);

    cancel->cancel.request = host << HOST_SHIFT;
    cancel->ts = ++fixture->now;
    assert_int_equal(core_step(fixture->core, cancel, &fixture->effects), 0);
    list_remove(&cancel->link);
    command_free(cancel);
}

/* CANCEL with a host's number ends the waits of that host only. */
static void test_cancel_of_host_ends_only_its_waits(void **state)
{
    struct core_fixture fixture;
    struct lock_target target = {.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = SLICE_LIT("1")};
    struct command *waiting[2];
    (void)state;

    fixture_open(&fixture);
    open_session(&fixture, "s", NULL, 0);
    take(&fixture, COMMAND_LOCK, &target);
    for (uint64_t i = 0; i < 2; i++)
        waiting[i] = waiting_write(&fixture, (i + 1) << HOST_SHIFT | 7);
    stop_host(&fixture, 0);
    assert_true(list_empty(&fixture.effects.completed));
    for (uint64_t i = 2; i-- > 0;) {
        stop_host(&fixture, i + 1);
        assert_true(fixture.effects.completed.next == &waiting[i]->link &&
                    fixture.effects.completed.prev == &waiting[i]->link);
        assert_int_equal(waiting[i]->problem.type, PROBLEM_STOPPING);
        list_remove(&waiting[i]->link);
        command_free(waiting[i]);
    }
    fixture_close(&fixture);
}

/* --- Termination in batches --------------------------------------------------------------------------------------- */

/* The fixture checks that each step is bounded (lib/bounded.h). */

static struct command *session_command(struct core_fixture *fixture, enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);

    command->session.id = slice_from(id);
    return fixture_run(fixture, command, 1);
}

/* Submits TICKs while one is due at once. Returns: how many. */
static int run_batches(struct core_fixture *fixture)
{
    int count = 0;

    for (; core_next_deadline(fixture->core) == 0; count++)
        fixture_run(fixture, command_new(COMMAND_TICK, DIALECT_7), 1);
    return count;
}

#define LOOP "for (int i = 0; i < 100000; i++) { ctx._source.n = i }"

/*
 * All actions of a session share the step budget of one script; those that exceed it are set aside.
 * Other commands run between the batches.
 */
static void test_session_end_actions_share_script_budget(void **state)
{
    enum { ACTIONS = 100 };
    struct write_update loop = {.script_source = SLICE_LIT(LOOP)};
    struct write_item actions[ACTIONS];
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i < ACTIONS; i++) {
        actions[i] = fixture_item(WRITE_UPDATE, "u", "", "1", NULL);
        actions[i].update = &loop;
    }
    actions[ACTIONS - 1] = fixture_item(WRITE_INDEX, "u", "", "2", "{\"n\":5}");
    fixture_index(&fixture, "u", "1", "{\"n\":1}");
    open_session(&fixture, "s", actions, ACTIONS);
    fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 11 * TL_SECOND);
    assert_int_equal(core_next_deadline(fixture.core), 0);
    assert_null(fixture_source(&fixture, "u", "2"));
    assert_int_equal(fixture_index(&fixture, "other", "1", "{}")->outcome, WRITE_CREATED);
    assert_int_equal(session_command(&fixture, COMMAND_SESSION_KEEPALIVE, "s")->problem.type, PROBLEM_SESSION_MISSING);
    assert_true(run_batches(&fixture) > 2);
    assert_string_equal(fixture_source(&fixture, "u", "1"), "{\"n\":99999}");
    assert_string_equal(fixture_source(&fixture, "u", "2"), "{\"n\":5}");
    assert_true(metric_read(&core_metrics(fixture.core)->deferred_actions) > ACTIONS / 2); /* set aside */
    fixture_reopen(&fixture);
    fixture_run(&fixture, command_new(COMMAND_RESTART, DIALECT_7), 1);
    assert_true(run_batches(&fixture) == 0 && metric_read(&core_metrics(fixture.core)->deferred_actions) > ACTIONS / 2);
    fixture_close(&fixture);
}

static tl_ts lock_by(struct core_fixture *fixture, const char *session, const char *id, enum problem_type expected)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);

    command->owner.session = slice_from(session);
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("u"), .id = slice_from(id)};
    command->lock.target_count = 1;
    fixture_run(fixture, command, 1);
    assert_int_equal(command->problem.type, expected);
    return expected == PROBLEM_NONE ? command->lock.fencing_token : 0;
}

/*
 * Many leases expire in one TICK, as after a power failure. A session that is not cleaned up yet
 * cannot do anything any more, but keeps its locks.
 */
static void test_session_end_is_batched_when_leases_expire_together(void **state)
{
    enum { SESSIONS = 500, DOCUMENTS = 40 };
    char ids[SESSIONS][16];
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "u", "1", "{\"n\":1}");
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(ids[i], sizeof ids[i], "s%03d", i);
        open_session(&fixture, ids[i], NULL, 0);
        struct command *command = fixture_write_command(&fixture, DOCUMENTS);
        for (int j = 0; j < DOCUMENTS; j++) {
            struct write_item *item = &command->write.items[j];
            *item = fixture_item(WRITE_INDEX, "e", "", "", "{}");
            item->id = arena_printf(&command->arena, "%d-%d", i, j);
            item->lease = slice_from(ids[i]);
        }
        fixture_run(&fixture, command, 1);
    }
    const char *last = ids[SESSIONS - 1];
    tl_ts token = lock_by(&fixture, last, "1", PROBLEM_NONE);
    fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 11 * TL_SECOND);
    assert_int_equal(core_next_deadline(fixture.core), 0);

    assert_int_equal(session_command(&fixture, COMMAND_SESSION_KEEPALIVE, last)->problem.type, PROBLEM_SESSION_MISSING);
    lock_by(&fixture, last, "2", PROBLEM_SESSION_MISSING);
    struct command *write = fixture_write_command(&fixture, 1);
    write->write.items[0] = fixture_item(WRITE_INDEX, "u", "", "1", "{\"n\":2}");
    write->owner.fencing_token = token;
    fixture_run(&fixture, write, 1);
    assert_true(write->problem.type != PROBLEM_NONE || write->write.results[0].outcome == WRITE_FAILED);
    assert_int_equal(fixture_index(&fixture, "u", "2", "{}")->outcome, WRITE_CREATED); /* not delayed */
    assert_true(fixture_count(&fixture, "e") > 0);

    fixture_reopen(&fixture); /* between batches: expired sessions stay expired */
    fixture_run(&fixture, command_new(COMMAND_RESTART, DIALECT_7), 1);
    assert_int_equal(session_command(&fixture, COMMAND_SESSION_KEEPALIVE, last)->problem.type, PROBLEM_SESSION_MISSING);
    assert_int_equal(core_next_deadline(fixture.core), 0);
    run_batches(&fixture);
    assert_int_equal(fixture_count(&fixture, "e"), 0);
    assert_int_equal(fixture_index(&fixture, "u", "1", "{\"n\":3}")->outcome, WRITE_UPDATED); /* the lock is released */
    fixture_close(&fixture);
}

/*
 * The end of a session with documents in many indices scans the lock table once, however many locks
 * other owners hold: the fixture's bound of a step would fail otherwise.
 */
static void test_session_end_scans_lock_table_once(void **state)
{
    enum { INDICES = 120, DOCUMENTS = 10, LOCKS = 9000 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    open_session(&fixture, "holder", NULL, 0);
    open_session(&fixture, "s", NULL, 0);
    struct command *locks = command_new(COMMAND_LOCK, DIALECT_7);
    locks->owner.session = SLICE_LIT("holder");
    locks->lock.targets = arena_zalloc(&locks->arena, LOCKS * sizeof(struct lock_target));
    locks->lock.target_count = LOCKS;
    for (int i = 0; i < LOCKS; i++)
        locks->lock.targets[i] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("other"), .id = arena_printf(&locks->arena, "%d", i)};
    fixture_run(&fixture, locks, 1);
    assert_int_equal(locks->problem.type, PROBLEM_NONE);
    for (int i = 0; i < INDICES; i++) {
        struct command *command = fixture_write_command(&fixture, DOCUMENTS);
        for (int j = 0; j < DOCUMENTS; j++) {
            struct write_item *item = &command->write.items[j];
            *item = fixture_item(WRITE_INDEX, "", "", "", "{}");
            item->index = arena_printf(&command->arena, "i%d", i);
            item->id = arena_printf(&command->arena, "%d", j);
            item->lease = SLICE_LIT("s");
        }
        fixture_run(&fixture, command, 1);
    }
    end_session(&fixture, "s");
    assert_int_equal(fixture_count(&fixture, "i7"), 0);
    run_batches(&fixture);
    fixture_close(&fixture);
}

/* Writes an ephemeral document of session s. */
static void put_ephemeral(struct core_fixture *fixture, const char *id, const char *source)
{
    struct write_item item = fixture_item(WRITE_INDEX, "tree", "", id, source);

    item.lease = SLICE_LIT("s");
    assert_int_equal(fixture_write_one(fixture, item)->outcome, WRITE_CREATED);
}

/*
 * Ends a session with more documents than a batch, so that they are hidden and purged one per step.
 * Their directory was renamed once before. Later renames must not affect them, whether they move
 * the directory or replace it.
 */
static void open_with_hidden(struct core_fixture *fixture)
{
    static const char *const ids[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};

    fixture_open(fixture);
    fixture->limits.ephemeral_batch = 2;
    fixture->limits.purge_batch = 1;
    fixture_reopen(fixture);
    fixture_index_command(fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    open_session(fixture, "s", NULL, 0);
    for (int i = 0; i < 10; i++)
        put_ephemeral(fixture, ids[i], "{\"path\":\"/old/x\"}");
    put_ephemeral(fixture, "in", "{\"path\":\"/in/x\"}");
    put_ephemeral(fixture, "under", "{\"path\":\"/under/x\"}");
    fixture_index(fixture, "tree", "stays", "{\"path\":\"/in/stays\"}");
    assert_int_equal(rename_in(fixture, "", "/in", "/a")->problem.type, PROBLEM_NONE);
    assert_int_equal(rename_in(fixture, "", "/under", "/b")->problem.type, PROBLEM_NONE);
    end_session(fixture, "s");
    assert_null(fixture_source(fixture, "tree", "in"));
}

/*
 * Checks the versions: created, renamed, removed, created. The purge is done by steps, or else by
 * the new write.
 */
static void check_versions(struct core_fixture *fixture, bool purged)
{
    if (purged)
        run_batches(fixture);
    assert_int_equal(fixture_index(fixture, "tree", "in", "{\"path\":\"/in/x\"}")->version, 4);
    assert_int_equal(fixture_index(fixture, "tree", "under", "{\"path\":\"/under/x\"}")->version, 4);
    assert_int_equal(fixture_index(fixture, "tree", "9", "{}")->version, 3);
    fixture_close(fixture);
}

static void test_rename_does_not_affect_hidden_documents(void **state)
{
    struct core_fixture fixture;
    (void)state;

    for (int purged = 0; purged < 2; purged++) {
        open_with_hidden(&fixture);
        assert_int_equal(rename_in(&fixture, "", "/a", "/c")->problem.type, PROBLEM_NONE);
        assert_int_equal(rename_in(&fixture, "", "/c", "/b")->problem.type, PROBLEM_NONE); /* onto a hidden one */
        check_versions(&fixture, purged == 1);
    }
}

static void test_rename_does_not_affect_hidden_documents_in_transaction(void **state)
{
    struct core_fixture fixture;
    (void)state;

    for (int purged = 0; purged < 2; purged++) {
        open_with_hidden(&fixture);
        transaction(&fixture, COMMAND_TXN_BEGIN, "t");
        assert_int_equal(rename_in(&fixture, "t", "/a", "/c")->problem.type, PROBLEM_NONE);
        assert_int_equal(rename_in(&fixture, "t", "/c", "/b")->problem.type, PROBLEM_NONE);
        assert_int_equal(transaction(&fixture, COMMAND_TXN_COMMIT, "t")->problem.type, PROBLEM_NONE);
        assert_int_equal(rename_in(&fixture, "", "/b", "/d")->problem.type, PROBLEM_NONE);
        check_versions(&fixture, purged == 1);
    }
}

static size_t count_ephemeral_keys(struct core_fixture *fixture)
{
    return fixture_count_keys(fixture, SPACE_SYSTEM, SLICE_LIT("e"), SLICE_LIT("f"));
}

/*
 * Puts ephemeral documents of session s into index e and deletes the index.
 * Returns: the work of the deletion.
 */
static uint64_t delete_index_of_ephemeral(struct core_fixture *fixture, int count)
{
    enum { BATCH = 500 };
    fixture_open(fixture);
    open_session(fixture, "s", NULL, 0);
    for (int i = 0; i < count; i += BATCH) {
        struct command *command = fixture_write_command(fixture, BATCH);
        for (int j = 0; j < BATCH; j++) {
            struct write_item *item = &command->write.items[j];
            *item = fixture_item(WRITE_INDEX, "e", "", "", "{}");
            item->id = arena_printf(&command->arena, "%d", i + j);
            item->lease = SLICE_LIT("s");
        }
        fixture_run(fixture, command, 1);
        assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
    }
    assert_int_equal(count_ephemeral_keys(fixture), count);
    assert_int_equal(fixture_index_command(fixture, COMMAND_INDEX_DELETE, "e", "")->problem.type, PROBLEM_NONE);
    uint64_t work = core_step_work(fixture->core);
    assert_int_equal(count_ephemeral_keys(fixture), count);
    return work;
}

/* Runs MAINTAIN and restarts until all 'e' keys are removed. */
static void remove_ephemeral_keys(struct core_fixture *fixture, size_t left)
{
    enum { BATCH = 300 };
    while (left > 0) {
        size_t done, before = left;
        fixture->now += 1;
        assert_int_equal(run_maintenance(fixture->core, fixture->store, fixture->now, BATCH, &done), 0);
        left = count_ephemeral_keys(fixture);
        assert_in_range(left, before > BATCH ? before - BATCH : 0, before - 1);
        uint64_t digest = fixture_digest(fixture);
        fixture_reopen(fixture);
        assert_int_equal(fixture_digest(fixture), digest);
    }
}

/*
 * The 'e' keys of a deleted index are removed in batches, also when the session ends before that.
 */
static void test_ephemeral_keys_of_deleted_index_are_removed_in_batches(void **state)
{
    enum { FEW = 2000, MANY = 4000 };
    struct core_fixture fixture;
    (void)state;

    uint64_t few = delete_index_of_ephemeral(&fixture, FEW);
    end_session(&fixture, "s");
    run_batches(&fixture);
    remove_ephemeral_keys(&fixture, FEW);
    fixture_close(&fixture);

    assert_true(delete_index_of_ephemeral(&fixture, MANY) <= few + few / 10);
    remove_ephemeral_keys(&fixture, MANY);
    assert_int_equal(fixture_index(&fixture, "e", "1", "{}")->outcome, WRITE_CREATED); /* another index of that name */
    end_session(&fixture, "s");
    run_batches(&fixture);
    assert_int_equal(fixture_count(&fixture, "e"), 1);
    fixture_close(&fixture);
}

/* --- Restarts of hosts -------------------------------------------------------------------------------------------- */

/* Runs a command that came through a host. */
static struct command *by_host(struct core_fixture *fixture, struct command *command, uint64_t host)
{
    command->request = host << HOST_SHIFT | 1;
    return fixture_run(fixture, command, 1);
}

/* Begins a transaction that a host owns for a request. */
static void begin_for_host(struct core_fixture *fixture, uint64_t host, const char *id, const char *session)
{
    struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
    command->owner.session = slice_from(session);
    command->txn.id = arena_printf(&command->arena, "%s", id);
    command->txn.mode = TXN_UPDATE;
    command->txn.idle_us = 24 * 3600 * TL_SECOND;
    command->txn.of_host = true;
    assert_int_equal(by_host(fixture, command, host)->problem.type, PROBLEM_NONE);
}

static struct write_result *put_in(struct core_fixture *fixture, const char *transaction, const char *id)
{
    struct command *command = fixture_write_command(fixture, 1);
    command->write.items[0] = fixture_item(WRITE_INDEX, "u", "", id, "{\"n\":2}");
    command->owner.transaction = slice_from(transaction);
    fixture_run(fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    return &command->write.results[0];
}

static enum problem_type commit_of(struct core_fixture *fixture, const char *id)
{
    struct command *command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = slice_from(id);
    return fixture_run(fixture, command, 1)->problem.type;
}

/*
 * RESTART rolls back the transactions of that host; those of other hosts and of a client continue.
 */
static void test_restart_rolls_back_transactions_of_host(void **state)
{
    static const char *const ids[] = {"t", "h0", "h1", "h2"};
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "u", "1", "{\"n\":1}");
    transaction(&fixture, COMMAND_TXN_BEGIN, "t");
    for (uint64_t host = 0; host < 3; host++)
        begin_for_host(&fixture, host, ids[host + 1], "");
    for (int i = 0; i < 4; i++)
        assert_int_equal(put_in(&fixture, ids[i], ids[i])->outcome, WRITE_CREATED);
    assert_int_equal(put_in(&fixture, "h1", "1")->outcome, WRITE_UPDATED);
    assert_int_equal(fixture_index(&fixture, "u", "1", "{}")->problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);

    by_host(&fixture, command_new(COMMAND_RESTART, DIALECT_7), 1);
    assert_false(fixture.last->restart.resubmit);
    assert_string_equal(fixture_source(&fixture, "u", "1"), "{\"n\":1}");
    assert_int_equal(fixture_index(&fixture, "u", "1", "{\"n\":3}")->outcome, WRITE_UPDATED);
    assert_int_equal(fixture_index(&fixture, "u", "h1", "{}")->outcome, WRITE_CREATED);
    assert_int_equal(commit_of(&fixture, "h1"), PROBLEM_TRANSACTION_ABORTED);
    for (int i = 0; i < 4; i++)
        assert_int_equal(commit_of(&fixture, ids[i]), i == 2 ? PROBLEM_TRANSACTION_ABORTED : PROBLEM_NONE);
    fixture_close(&fixture);
}

static void join(struct core_fixture *fixture, const char *name, uint64_t life)
{
    struct command *command = command_new(COMMAND_JOIN, DIALECT_7);
    command->join = (struct join_command){.name = slice_from(name),
                                          .group = SLICE_LIT("default"),
                                          .build = SLICE_LIT("1"),
                                          .life = life,
                                          .limits = fixture->limits};
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

/*
 * In a cluster a host's transactions are rolled back by HOST_GONE, or by the JOIN of its next life.
 */
static void test_end_of_host_life_rolls_back_its_transactions(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    join(&fixture, "a", 11);
    join(&fixture, "b", 21);
    begin_for_host(&fixture, 1, "a1", "");
    begin_for_host(&fixture, 2, "b1", "");
    assert_int_equal(put_in(&fixture, "a1", "1")->outcome, WRITE_CREATED);
    assert_int_equal(put_in(&fixture, "b1", "2")->outcome, WRITE_CREATED);
    struct command *gone = command_new(COMMAND_HOST_GONE, DIALECT_7);
    gone->gone = (struct gone_command){.name = SLICE_LIT("a"), .life = 11};
    fixture_run(&fixture, gone, 1);
    assert_int_equal(fixture_index(&fixture, "u", "1", "{}")->outcome, WRITE_CREATED);
    assert_int_equal(fixture_index(&fixture, "u", "2", "{}")->problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);
    join(&fixture, "b", 22);
    assert_int_equal(fixture_index(&fixture, "u", "2", "{}")->outcome, WRITE_CREATED);
    assert_int_equal(commit_of(&fixture, "b1"), PROBLEM_TRANSACTION_ABORTED);
    fixture_close(&fixture);
}

/* Returns: the fencing token of a lock that the transaction acquires. */
static tl_ts token_of(struct core_fixture *fixture, const char *transaction, const char *id)
{
    struct lock_target target = {.mode = LOCK_X, .index = SLICE_LIT("u"), .id = slice_from(id)};
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.transaction = slice_from(transaction);
    command->lock.targets = &target;
    command->lock.target_count = 1;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
    return command->lock.fencing_token;
}

/* Writes a document for session "s" with a fencing token. */
static struct write_result *put_with(struct core_fixture *fixture, tl_ts token, const char *id)
{
    struct command *command = fixture_write_command(fixture, 1);
    command->write.items[0] = fixture_item(WRITE_INDEX, "u", "", id, "{}");
    command->owner.session = SLICE_LIT("s");
    command->owner.fencing_token = token;
    return &fixture_run(fixture, command, 1)->write.results[0];
}

/*
 * Many abandoned transactions are rolled back in batches. Until then they cannot do anything, and
 * their fencing tokens are stale.
 */
static void test_abandoned_transactions_are_rolled_back_in_batches(void **state)
{
    enum { TRANSACTIONS = 8000, LAST = TRANSACTIONS - 1 };
    char ids[TRANSACTIONS][16];
    struct core_fixture fixture;
    (void)state;

    for (int lost = 0; lost < 2; lost++) {
        fixture_open(&fixture);
        open_session(&fixture, "s", NULL, 0);
        for (int i = 0; i < TRANSACTIONS; i++) {
            snprintf(ids[i], sizeof ids[i], "h%d", i);
            begin_for_host(&fixture, 7, ids[i], "s");
            assert_int_equal(put_in(&fixture, ids[i], ids[i])->outcome, WRITE_CREATED);
        }
        tl_ts token = token_of(&fixture, ids[LAST], "held");
        assert_int_equal(put_with(&fixture, token, "held")->problem.type,
                         PROBLEM_LOCK_WAIT_TIMEOUT); /* valid, but held */
        by_host(&fixture, command_new(lost ? COMMAND_MACHINE_LOST : COMMAND_RESTART, DIALECT_7), 7);
        assert_false(fixture.last->restart.resubmit);
        assert_int_equal(core_next_deadline(fixture.core), 0);
        assert_int_equal(commit_of(&fixture, ids[LAST]), PROBLEM_TRANSACTION_ABORTED);
        assert_int_equal(put_with(&fixture, token, "held")->problem.type, PROBLEM_STALE_FENCING_TOKEN);
        struct command *again = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
        again->txn.id = SLICE_LIT("again");
        again->txn.mode = TXN_UPDATE;
        again->txn.idle_us = TL_SECOND;
        again->txn.retry_of = slice_from(ids[LAST]);
        assert_int_equal(fixture_run(&fixture, again, 1)->problem.type, PROBLEM_NONE);
        run_batches(&fixture);
        assert_int_equal(fixture_count(&fixture, "u"), 0);
        assert_int_equal(fixture_index(&fixture, "u", ids[LAST], "{}")->outcome, WRITE_CREATED);
        fixture_close(&fixture);
    }
}

/* Lets time pass. Returns: whether session "s" still lives. */
static bool lives_after(struct core_fixture *fixture, uint64_t us)
{
    fixture_run(fixture, command_new(COMMAND_TICK, DIALECT_7), us);
    return owners_live_session(fixture->core->owners, SLICE_LIT("s")) != NULL;
}

/*
 * Opens session "s" and lets most of its 10 s pass, then restarts host 7, with a core that was loaded (`loads`) and
 * after a loss of its machine (`lost`). `attached`: by a connection to that host.
 */
static void restart_late(struct core_fixture *fixture, bool attached, bool loads, bool lost)
{
    fixture_open(fixture);
    open_session(fixture, "s", NULL, 0);
    if (attached) {
        struct command *attach = command_new(COMMAND_SESSION_ATTACH, DIALECT_7);
        attach->session.id = SLICE_LIT("s");
        attach->session.attachment = UINT64_C(7) << HOST_SHIFT | 1;
        assert_int_equal(fixture_run(fixture, attach, 1)->problem.type, PROBLEM_NONE);
    }
    assert_true(lives_after(fixture, 9 * TL_SECOND));
    if (loads)
        fixture_reopen(fixture);
    by_host(fixture, command_new(COMMAND_RESTART, DIALECT_7), 7);
    if (lost)
        by_host(fixture, command_new(COMMAND_MACHINE_LOST, DIALECT_7), 7);
}

/*
 * A lease that a connection kept alive begins anew when the host of the connection restarts, since the host renewed it
 * for the client, which has to connect again; any other continues. That holds after a loss of the machine, and
 * for a core loaded from a checkpoint.
 */
static void test_restart_begins_lease_of_attached_session(void **state)
{
    struct core_fixture fixture;
    (void)state;

    for (int i = 0; i < 4; i++) {
        restart_late(&fixture, true, i & 1, i & 2);
        assert_true(lives_after(&fixture, 9 * TL_SECOND));
        assert_false(lives_after(&fixture, 2 * TL_SECOND));
        fixture_close(&fixture);
        restart_late(&fixture, false, i & 1, i & 2);
        assert_false(lives_after(&fixture, 2 * TL_SECOND));
        fixture_close(&fixture);
    }
}

/*
 * Two items of a bulk, run in one unit, add fields, so the mapping in which lock names were
 * resolved is freed before the locks are moved. AddressSanitizer reports a use of the old mapping.
 */
static void test_lock_names_outlive_replaced_mapping(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    assert_int_equal(fixture_index(&fixture, "fs", "1", "{\"path\":\"/a\"}")->outcome, WRITE_CREATED);
    open_session(&fixture, "holder", NULL, 0);
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("holder");
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] =
        (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .path = SLICE_LIT("/held")};
    command->lock.target_count = 1;
    fixture_run(&fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);

    command = fixture_write_command(&fixture, 3);
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "2", "{\"path\":\"/b\",\"first\":1}");
    command->write.items[1] = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"path\":\"/held/x\"}");       /* blocked */
    command->write.items[2] = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"path\":\"/c\",\"then\":1}"); /* after it */
    fixture_run(&fixture, command, 1);
    assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
    assert_int_equal(command->write.results[1].problem.type, PROBLEM_LOCK_WAIT_TIMEOUT);
    assert_int_equal(command->write.results[2].outcome, WRITE_UPDATED);
    fixture_close(&fixture);
}

/*
 * Finds the targets of a write.
 * Returns: the bytes of the core's arena that stay in use until the unit ends.
 */
static size_t find_targets(struct core_fixture *fixture, struct command *command, struct write_targets *targets)
{
    size_t before = fixture->core->arena.used, scratch = fixture->core->scratch.used;

    assert_int_equal(write__targets(fixture->core, command,
                                    &(struct write_choice){{0, command->write.item_count}, NULL, false}, NULL, targets),
                     0);
    assert_int_equal(fixture->core->scratch.used, scratch);
    return fixture->core->arena.used - before;
}

/*
 * Of large documents in deep directories write__targets() keeps only the paths, and what updates make of
 * them up to a limit (WRITE_KEPT_BYTES_MAX), and a second call in the unit copies only new ones: the targets
 * of a bulk with thousands of items are in memory at once.
 */
static void test_write_targets_keep_paths_and_merges(void **state)
{
    enum { ITEMS = 40, PATH = 12000, TEXT = 100000, SMALL = 1024 };
    static char path[PATH + 1], source[PATH + TEXT + 100];
    struct write_update update = {.doc = SLICE_LIT("{\"n\":2}")};
    struct write_targets targets = {0};
    struct core_fixture fixture;
    char ids[ITEMS][12];
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    memset(path, 'd', PATH);
    for (int i = 0; i < ITEMS; i++) {
        snprintf(ids[i], sizeof ids[i], "%d", i);
        snprintf(source, sizeof source, "{\"path\":\"/%s/%d\",\"text\":\"%0*d\"}", path, i, TEXT, 0);
        assert_int_equal(fixture_index(&fixture, "tree", ids[i], source)->outcome, WRITE_CREATED);
    }
    struct command *command = fixture_write_command(&fixture, ITEMS);
    for (int i = 0; i < ITEMS; i++) {
        command->write.items[i] = fixture_item(i % 2 == 0 ? WRITE_DELETE : WRITE_UPDATE, "tree", "", ids[i], "");
        command->write.items[i].source = SLICE_NONE;
        if (i % 2 != 0)
            command->write.items[i].update = &update;
    }
    command->write.results = arena_zalloc(&command->arena, ITEMS * sizeof *command->write.results);

    core__begin(fixture.core, fixture.core->last_ts + 1);
    size_t paths = ITEMS / 2 * PATH + ITEMS / 2 * 2 * PATH; /* an update has an old and a new path */
    size_t merges = ITEMS / 2 * (PATH + TEXT);
    assert_in_range(find_targets(&fixture, command, &targets), paths + merges, paths + merges + ITEMS * SMALL);
    assert_int_equal(targets.count, ITEMS);
    const char *path_before = targets.items[ITEMS - 1].new_path.data;
    memmove(targets.items, targets.items + 1, --targets.count * sizeof *targets.items); /* first one done */
    assert_in_range(find_targets(&fixture, command, &targets), PATH, PATH + ITEMS * SMALL);
    assert_int_equal(targets.count, ITEMS);
    assert_ptr_equal(targets.items[ITEMS - 1].new_path.data, path_before);
    assert_int_equal(targets.items[0].old_path.len, PATH + 3);
    assert_int_equal(core__commit(fixture.core), 0);
    command_free(command);
    fixture_close(&fixture);
}

/* Error texts of a rename cut long paths. */
static void test_rename_error_cuts_long_paths(void **state)
{
    struct core_fixture fixture;
    char *path = mem_alloc(12000);
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "tree",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    memset(path, 'a', 12000);
    path[0] = '/';
    struct command *command = command_new(COMMAND_RENAME, DIALECT_7);
    command->rename = (struct rename_command){.index = SLICE_LIT("tree"),
                                              .from = slice_make(path, 12000),
                                              .to = slice_make(path, 11000),
                                              .if_seq_no = SEQ_NO_ANY};
    command = fixture_run(&fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_PATH_MISSING);
    assert_in_range(command->problem.reason.len, 1000, 1200);
    mem_free(path);
    fixture_close(&fixture);
}

/* The id of a session fits into the crash page. */
static void test_session_id_is_bounded(void **state)
{
    struct core_fixture fixture;
    char id[SESSION_ID_BYTES_MAX + 1];
    (void)state;

    fixture_open(&fixture);
    memset(id, 'a', sizeof id);
    for (size_t len = SESSION_ID_BYTES_MAX; len <= SESSION_ID_BYTES_MAX + 1; len++) {
        struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
        command->session.id = slice_make(id, len);
        command->session.ttl_us = TL_SECOND;
        command = fixture_run(&fixture, command, 1);
        assert_int_equal(command->problem.type, len > SESSION_ID_BYTES_MAX ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NONE);
    }
    fixture_close(&fixture);
}

/* --- Descriptions of deadlocks ------------------------------------------------------------------------------------ */

enum { NAME_BYTES = 1500 };

/*
 * Requests a directory with a long name, whose number it has. `version`: of the command. Returns: the command, unless
 * it waits.
 */
static struct command *lock_long(struct core_fixture *fixture, int session, int number, unsigned version)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    command->version = version;
    buf_printf(&path, "/%d", number);
    for (int i = 0; i < NAME_BYTES; i++)
        buf_byte(&path, 'n');
    command->owner.session = arena_printf(&command->arena, "s%d", session);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){
        .mode = LOCK_X, .index = SLICE_LIT("fs"), .path = arena_copy(&command->arena, buf_as_slice(&path))};
    command->lock.target_count = 1;
    command->ts = ++fixture->now;
    assert_int_equal(core_step(fixture->core, command, &fixture->effects), 0);
    buf_deinit(&path);
    if (list_empty(&fixture->effects.completed))
        return NULL;
    assert_ptr_equal(list_entry(fixture->effects.completed.next, struct command, link), command);
    list_remove(&command->link);
    return command;
}

static void stop_waiting(struct core_fixture *fixture)
{
    core_stop(fixture->core, &fixture->effects);
    while (!list_empty(&fixture->effects.completed)) {
        struct command *command = list_entry(fixture->effects.completed.next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
    fixture_close(fixture);
}

/* Each of `sessions` has a directory and waits for the next one's; commands of `version`. Returns: the victim's. */
static struct command *close_cycle(struct core_fixture *fixture, int sessions, unsigned version)
{
    char id[16];

    fixture_open(fixture);
    fixture_index_command(fixture, COMMAND_INDEX_CREATE, "fs",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    for (int i = 0; i < sessions; i++) {
        snprintf(id, sizeof id, "s%d", i);
        open_session(fixture, id, NULL, 0);
        struct command *command = lock_long(fixture, i, i, version);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        command_free(command);
    }
    for (int i = 0; i < sessions - 1; i++)
        assert_null(lock_long(fixture, i, i + 1, version));
    struct command *victim = lock_long(fixture, sessions - 1, 0, version);
    assert_non_null(victim);
    assert_int_equal(victim->problem.type, PROBLEM_DEADLOCK_DETECTED);
    assert_int_equal(fixture->core->owners->lock_events.count, 1);
    return victim;
}

/* A deadlock of many with long names is described in part: in the error, its details and the event, which is kept. */
static void test_deadlock_of_many_is_described_in_part(void **state)
{
    enum { SESSIONS = 40, ONE = 2 * DESCRIBE_NAME_BYTES_MAX }; /* of an edge */
    struct core_fixture fixture;
    (void)state;

    struct command *victim = close_cycle(&fixture, SESSIONS, COMMAND_CODEC_VERSION);
    assert_in_range(victim->problem.reason.len, DESCRIBE_CYCLE_BYTES_MAX, DESCRIBE_CYCLE_BYTES_MAX + ONE);
    assert_in_range(victim->problem.details.len, DESCRIBE_CYCLE_BYTES_MAX, DESCRIBE_CYCLE_BYTES_MAX + ONE);
    assert_in_range(fixture.core->owners->lock_events.ring[0].lines_len, DESCRIBE_CYCLE_BYTES_MAX,
                    DESCRIBE_CYCLE_BYTES_MAX + ONE);
    command_free(victim);
    stop_waiting(&fixture);
}

/* The last line of a deadlock's event says which owner is the victim, in the words of its command's version. */
static void test_deadlock_event_names_victim(void **state)
{
    static const struct {
        unsigned version;
        const char *words;
    } cases[] = {{COMMAND_SINCE_VICTIM_NAMED - 1, " gives way"}, {COMMAND_SINCE_VICTIM_NAMED, " is the victim"}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct core_fixture fixture;
        struct slice words = slice_from(cases[i].words);
        command_free(close_cycle(&fixture, 2, cases[i].version));
        const struct lock_events *events = &fixture.core->owners->lock_events;
        struct slice lines = slice_make(events->ring[0].lines, events->ring[0].lines_len);
        assert_true(lines.len > words.len && slice_equal(slice_from_offset(lines, lines.len - words.len), words));
        stop_waiting(&fixture);
    }
}

/* An event of many lines is kept as far as its limit, in whole lines. */
static void test_lock_event_is_bounded(void **state)
{
    enum { LINES = 1000, BYTES = 50 };
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct lock_events events = {0};
    (void)state;

    for (int i = 0; i < LINES; i++)
        buf_printf(&text, "%s%*d", i == 0 ? "" : "\n", BYTES - 1, i);
    lock_events_add(&events, 1, "expiry", buf_as_slice(&text));
    assert_int_equal(events.ring[0].lines_len, LOCK_EVENT_BYTES_MAX / BYTES * BYTES - 1);
    assert_memory_equal(events.ring[0].lines, text.data, events.ring[0].lines_len);
    lock_events_deinit(&events);
    buf_deinit(&text);
}

/* --- Texts of the state ------------------------------------------------------------------------------------------- */

/* A write with an ID, whose second item fails: its session does not exist. Returns: the reason of that. */
static struct slice write_with_failure(struct core_fixture *fixture, unsigned version)
{
    struct command *command = fixture_write_command(fixture, 2);
    command->version = version;
    command->write.request.id = SLICE_LIT("r");
    for (size_t i = 0; i < 2; i++)
        command->write.items[i] = fixture_item(WRITE_INDEX, "fs", "", i == 0 ? "a" : "b", "{}");
    command->write.items[1].lease = SLICE_LIT("gone");
    fixture_run(fixture, command, 1);
    assert_int_equal(command->write.results[1].outcome, WRITE_FAILED);
    return command->write.results[1].problem.reason;
}

/*
 * Texts that are in the state - those of lock events, of the reason why a transaction was rolled back, and of failed
 * items in the outcome of a named write - are those of the version of the command that made them, also for later ones.
 */
static void test_texts_of_state_are_of_the_version(void **state)
{
    (void)state;
    for (unsigned older = 0; older < 2; older++) {
        const unsigned version = COMMAND_SINCE_PLAIN_TEXTS - older;
        struct write_item ephemeral = fixture_item(WRITE_INDEX, "fs", "", "1", "{}");
        struct core_fixture fixture;

        fixture_open(&fixture);
        open_session(&fixture, "s", NULL, 0);
        ephemeral.lease = SLICE_LIT("s");
        fixture_write_one(&fixture, ephemeral);
        struct command *end = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
        end->version = version;
        end->session.id = SLICE_LIT("s");
        end->session.force = true;
        assert_int_equal(fixture_run(&fixture, end, 1)->problem.type, PROBLEM_NONE);
        const struct lock_event *event = &fixture.core->owners->lock_events.ring[0];
        assert_slice_equal(slice_make(event->lines, event->lines_len),
                           older ? "session #1 was ended by force\ndocuments that lived with it and are removed: 1"
                                 : "session #1 was ended by force\nephemeral documents removed: 1");

        for (int repeated = 0; repeated < 2; repeated++) /* the second one reads the outcome */
            assert_slice_equal(write_with_failure(&fixture, repeated ? COMMAND_CODEC_VERSION : version),
                               older ? "no session [gone]: it has ended, or never was"
                                     : "no session [gone]: it has ended, or never existed");

        transaction(&fixture, COMMAND_TXN_BEGIN, "t");
        struct command *lost = command_new(COMMAND_MACHINE_LOST, DIALECT_7);
        lost->version = version;
        fixture_run(&fixture, lost, 1);
        assert_slice_equal(transaction(&fixture, COMMAND_TXN_COMMIT, "t")->problem.reason,
                           older ? "transaction [t] was rolled back: the machine of the server went down, and requests "
                                   "of it may be missing"
                                 : "transaction [t] was rolled back: the server's machine crashed, and requests of the "
                                   "transaction may be lost");
        fixture_close(&fixture);
    }
}

/* A write with an ID, whose second item is refused. Returns: its cause. */
static enum problem_type cause_of(struct core_fixture *fixture, unsigned version, const char *id, const char *source)
{
    struct command *command = fixture_write_command(fixture, 2);
    command->version = version;
    command->write.request.id = slice_from(id);
    command->write.items[0] = fixture_item(WRITE_INDEX, "n", "", "1", "{}");
    command->write.items[1] = fixture_item(WRITE_INDEX, "n", "", "2", source);
    fixture_run(fixture, command, 1);
    assert_int_equal(command->write.results[1].outcome, WRITE_FAILED);
    return command->write.results[1].problem.caused_by->type;
}

/* The cause for which a text in a field of numbers is refused is in the outcome of a named write, too. */
static void test_cause_of_refused_number_is_of_the_version(void **state)
{
    static const char *const sources[] = {"{\"i\":\"x\"}", "{\"s\":\"x\"}", "{\"b\":[1,\"x\"]}"};
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "n",
                          "{\"mappings\":{\"properties\":{\"i\":{\"type\":\"integer\"},\"s\":{\"type\":\"short\"},"
                          "\"b\":{\"type\":\"byte\"},\"l\":{\"type\":\"long\"},\"d\":{\"type\":\"double\"}}}}");
    for (unsigned older = 0; older < 2; older++) {
        const unsigned version = COMMAND_SINCE_NUMBER_CAUSES - older;
        for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
            char id[8];
            snprintf(id, sizeof id, "%u-%zu", older, i);
            for (int repeated = 0; repeated < 2; repeated++) /* the second one reads the outcome */
                assert_int_equal(cause_of(&fixture, repeated ? COMMAND_CODEC_VERSION : version, id, sources[i]),
                                 older ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NUMBER_FORMAT);
        }
        assert_int_equal(cause_of(&fixture, version, older ? "l1" : "l0", "{\"l\":\"x\"}"), PROBLEM_ILLEGAL_ARGUMENT);
        assert_int_equal(cause_of(&fixture, version, older ? "d1" : "d0", "{\"d\":\"x\"}"), PROBLEM_NUMBER_FORMAT);
    }
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_session_end_if_detached),
        cmocka_unit_test(test_restart_begins_lease_of_attached_session),
        cmocka_unit_test(test_session_end_removes_ephemeral_document_once_after_action),
        cmocka_unit_test(test_commit_ignores_session_of_overwritten_ephemeral_document),
        cmocka_unit_test(test_overlay_of_reader_is_unchanged_by_later_write),
        cmocka_unit_test(test_write_after_read_copies_few_nodes),
        cmocka_unit_test(test_overlay_of_reader_is_unchanged_by_commit),
        cmocka_unit_test(test_end_of_large_transaction_frees_little),
        cmocka_unit_test(test_end_of_many_locks_frees_little),
        cmocka_unit_test_setup_teardown(test_commit_with_reader_copies_no_records, setup, teardown),
        cmocka_unit_test(test_read_locks_no_document_of_impossible_type),
        cmocka_unit_test(test_directory_lock_blocks_first_document_of_type),
        cmocka_unit_test(test_write_ignores_locks_in_other_index),
        cmocka_unit_test(test_atomic_write_is_refused_beyond_transaction_limits),
        cmocka_unit_test(test_transaction_limit_counts_entries_and_locks),
        cmocka_unit_test(test_transaction_limit_counts_locks_of_scripted_paths),
        cmocka_unit_test(test_transaction_limit_counts_renames),
        cmocka_unit_test(test_rename_does_not_read_locked_documents_elsewhere),
        cmocka_unit_test(test_write_counts_levels_of_renamed_path),
        cmocka_unit_test(test_write_counts_sources_parsed_for_locks),
        cmocka_unit_test(test_path_is_known_without_the_source),
        cmocka_unit_test(test_rename_reads_few_documents_moved_away),
        cmocka_unit_test(test_rename_in_transaction_reads_few_entries),
        cmocka_unit_test(test_cancel_of_host_ends_only_its_waits),
        cmocka_unit_test(test_session_end_actions_share_script_budget),
        cmocka_unit_test(test_session_end_is_batched_when_leases_expire_together),
        cmocka_unit_test(test_rename_does_not_affect_hidden_documents),
        cmocka_unit_test(test_rename_does_not_affect_hidden_documents_in_transaction),
        cmocka_unit_test(test_lock_names_outlive_replaced_mapping),
        cmocka_unit_test(test_ephemeral_keys_of_deleted_index_are_removed_in_batches),
        cmocka_unit_test(test_session_end_scans_lock_table_once),
        cmocka_unit_test(test_restart_rolls_back_transactions_of_host),
        cmocka_unit_test(test_end_of_host_life_rolls_back_its_transactions),
        cmocka_unit_test(test_abandoned_transactions_are_rolled_back_in_batches),
        cmocka_unit_test(test_write_targets_keep_paths_and_merges),
        cmocka_unit_test(test_rename_error_cuts_long_paths),
        cmocka_unit_test(test_deadlock_of_many_is_described_in_part),
        cmocka_unit_test(test_deadlock_event_names_victim),
        cmocka_unit_test(test_lock_event_is_bounded),
        cmocka_unit_test(test_texts_of_state_are_of_the_version),
        cmocka_unit_test(test_cause_of_refused_number_is_of_the_version),
        cmocka_unit_test(test_session_id_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
