/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: cleanup and maintenance stop by the work that stored documents cause, not only by their
 * number (src/core/README-locks.md, "Cleanup in batches"; src/core/README.md, "Maintenance").
 * Method: few documents with thousands of entries or many bytes, in a core whose fixture fails if a
 * step is not bounded. Commands of version 9 keep the effect that they had.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/maintenance.h"
#include "../../lib/unit.h"

#include <stdio.h>

#include "core/catalog/purge.h"
#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/session/cost.h"
#include "core/session/owners.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"

enum { NUMBERS = 6000, DOCUMENTS = 12 }; /* one by one a document is bounded, all of them are not */

static void open_session(struct core_fixture *fixture, const char *id, struct write_item *actions, size_t count)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);

    command->session.id = slice_from(id);
    command->session.ttl_us = 10 * TL_SECOND;
    command->session.on_expire = actions;
    command->session.on_expire_count = count;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

/* Returns: a new command that ends a session, in the form of a version. */
static struct command *session_end(const char *id, unsigned version)
{
    struct command *command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);

    command->session.id = slice_from(id);
    command->session.force = true;
    command->version = version;
    return command;
}

/* Runs TICKs while one is due at once. Returns: how many. */
static int run_batches(struct core_fixture *fixture)
{
    int count = 0;

    for (; core_next_deadline(fixture->core) == 0; count++)
        fixture_run(fixture, command_new(COMMAND_TICK, DIALECT_7), 1);
    return count;
}

/* Returns: the source of a document with as many single entries. */
static const char *numbers(struct buf *buf, int count)
{
    buf_clear(buf);
    buf_lit(buf, "{\"n\":[0");
    for (int i = 1; i < count; i++)
        buf_printf(buf, ",%d", i);
    buf_append(buf, "]}", sizeof "]}");
    return buf->data;
}

static const char *id_of(int number)
{
    static char id[16];

    snprintf(id, sizeof id, "%d", number);
    return id;
}

/* Puts documents with many entries into an index; `lease`: of a session, or "". */
static void put_large_in(struct core_fixture *fixture, const char *index, const char *lease, int count)
{
    struct buf source = BUF_INIT(BUF_UNLIMITED);

    for (int i = 0; i < count; i++) {
        struct write_item item = fixture_item(WRITE_INDEX, index, "", id_of(i), numbers(&source, NUMBERS));
        item.lease = slice_from(lease);
        assert_int_equal(fixture_write_one(fixture, item)->outcome, WRITE_CREATED);
    }
    buf_deinit(&source);
}

static void put_large(struct core_fixture *fixture, const char *lease, int count)
{
    put_large_in(fixture, "e", lease, count);
}

static size_t count_entries(struct core_fixture *fixture)
{
    return fixture_count_keys(fixture, SPACE_ENTRIES, SLICE_LIT(""), SLICE_LIT("\xff"));
}

/* --- Ephemeral documents ------------------------------------------------------------------------------------------ */

/*
 * Fewer documents than a batch, but with more work: they are hidden at one timestamp, and purged in
 * further steps, each after the other.
 */
static void test_large_ephemeral_documents_are_removed_in_bounded_steps(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    open_session(&fixture, "s", NULL, 0);
    put_large(&fixture, "s", DOCUMENTS);
    fixture_run(&fixture, session_end("s", COMMAND_CODEC_VERSION), 1);
    assert_int_equal(fixture_count(&fixture, "e"), 0);
    for (int i = 0; i < DOCUMENTS; i++)
        assert_null(fixture_source(&fixture, "e", id_of(i)));
    assert_int_equal(count_entries(&fixture), DOCUMENTS * NUMBERS);
    fixture_reopen(&fixture);
    fixture_run(&fixture, command_new(COMMAND_RESTART, DIALECT_7), 1);
    assert_in_range(run_batches(&fixture), DOCUMENTS / 2, DOCUMENTS + 2);
    assert_int_equal(count_entries(&fixture), 0);
    assert_null(owners_session(fixture.core->owners, SLICE_LIT("s")));
    assert_int_equal(fixture_index(&fixture, "e", "0", "{}")->version, 3); /* after its tombstone */
    fixture_close(&fixture);
}

/* A command of version 9 counts documents: it removes them all in its step. */
static void test_session_end_of_older_version_counts_documents(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    open_session(&fixture, "s", NULL, 0);
    put_large(&fixture, "s", DOCUMENTS);
    fixture.unbounded = true;
    fixture_run(&fixture, session_end("s", COMMAND_SINCE_WORK_BATCHES - 1), 1);
    assert_true(core_step_work(fixture.core) > CORE_STEP_WORK);
    assert_int_equal(count_entries(&fixture), 0);
    assert_int_equal(run_batches(&fixture), 0);
    fixture_close(&fixture);
}

/* Small ones that fit a batch are still removed in one unit, which leaves no session tombstone. */
static void test_small_ephemeral_documents_are_removed_in_one_unit(void **state)
{
    enum { SMALL = 100 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    open_session(&fixture, "s", NULL, 0);
    for (int i = 0; i < SMALL; i++) {
        struct write_item item = fixture_item(WRITE_INDEX, "e", "", id_of(i), "{\"n\":1,\"user\":\"a b\"}");
        item.lease = SLICE_LIT("s");
        fixture_write_one(&fixture, item);
    }
    fixture_run(&fixture, session_end("s", COMMAND_CODEC_VERSION), 1);
    assert_int_equal(run_batches(&fixture), 0);
    assert_int_equal(count_entries(&fixture), 0);
    assert_int_equal(fixture_count_keys(&fixture, SPACE_SYSTEM, SLICE_LIT("v"), SLICE_LIT("w")), 0);
    fixture_close(&fixture);
}

static void lock_all_by(struct core_fixture *fixture, const char *session, bool release, unsigned version)
{
    struct command *command = command_new(release ? COMMAND_UNLOCK : COMMAND_LOCK, DIALECT_7);

    command->version = version;
    command->owner.session = slice_from(session);
    command->lock.targets = arena_zalloc(&command->arena, DOCUMENTS * sizeof(struct lock_target));
    command->lock.target_count = release ? 0 : DOCUMENTS;
    for (int i = 0; i < DOCUMENTS; i++)
        command->lock.targets[i] =
            (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("e"), .id = arena_printf(&command->arena, "%d", i)};
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

static void lock_all(struct core_fixture *fixture, const char *session, bool release)
{
    lock_all_by(fixture, session, release, COMMAND_CODEC_VERSION);
}

/* Removals that were deferred become ready together, and run in steps of bounded work. */
static void test_deferred_removals_run_in_bounded_steps(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    open_session(&fixture, "s", NULL, 0);
    open_session(&fixture, "holder", NULL, 0);
    put_large(&fixture, "s", DOCUMENTS);
    lock_all(&fixture, "holder", false);
    fixture_run(&fixture, session_end("s", COMMAND_CODEC_VERSION), 1);
    run_batches(&fixture);
    assert_int_equal(fixture_count(&fixture, "e"), DOCUMENTS);
    lock_all(&fixture, "holder", true);
    assert_in_range(count_entries(&fixture), 1, (DOCUMENTS - 1) * NUMBERS); /* the first batch is done */
    assert_true(run_batches(&fixture) > 0);
    assert_int_equal(fixture_count(&fixture, "e"), 0);
    assert_int_equal(count_entries(&fixture), 0);
    fixture_close(&fixture);
}

/* Defers the removals of documents of session s, and makes them ready. Returns: how many are not done yet. */
static size_t make_deferred_ready(struct core_fixture *fixture, unsigned version)
{
    open_session(fixture, "s", NULL, 0);
    open_session(fixture, "holder", NULL, 0);
    put_large(fixture, "s", DOCUMENTS);
    lock_all(fixture, "holder", false);
    fixture_run(fixture, session_end("s", COMMAND_CODEC_VERSION), 1);
    run_batches(fixture);
    assert_int_equal(fixture_count(fixture, "e"), DOCUMENTS);
    lock_all_by(fixture, "holder", true, version);
    return count_entries(fixture) / NUMBERS;
}

/* A deferred removal is charged for its writes once; in steps of version 10, twice. */
static void test_deferred_removal_is_charged_once(void **state)
{
    size_t left[2];
    (void)state;

    for (unsigned older = 0; older < 2; older++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        left[older] = make_deferred_ready(&fixture, COMMAND_SINCE_ONE_COST - older);
        fixture_close(&fixture);
    }
    assert_in_range(left[0], 1, DOCUMENTS / 2);
    assert_in_range(left[1], DOCUMENTS / 2 + 1, DOCUMENTS - 1);
}

/* Cleanup of a session that expires, and deferred removals that are ready, share the account of a TICK. */
static void test_tick_has_one_account(void **state)
{
    struct write_item actions[DOCUMENTS];
    char ids[DOCUMENTS][16];
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    put_large_in(&fixture, "f", "", DOCUMENTS);
    for (int i = 0; i < DOCUMENTS; i++) {
        snprintf(ids[i], sizeof ids[i], "%d", i);
        actions[i] = fixture_item(WRITE_INDEX, "f", "", ids[i], "{}");
    }
    open_session(&fixture, "acting", actions, DOCUMENTS);
    size_t ready = make_deferred_ready(&fixture, COMMAND_CODEC_VERSION);
    assert_true(ready > 1);
    fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 11 * TL_SECOND); /* the fixture checks its work */
    size_t left = count_entries(&fixture);
    assert_in_range(left, NUMBERS, (DOCUMENTS + ready) * NUMBERS - 2 * NUMBERS); /* some of both are done */
    assert_true(fixture_count(&fixture, "e") < ready); /* commands that are ready are not kept waiting for cleanup */
    run_batches(&fixture);
    assert_int_equal(fixture_count(&fixture, "e"), 0);
    assert_int_equal(count_entries(&fixture), 0);
    fixture_close(&fixture);
}

/* What a tombstone must not hide is found by the session's documents, however many locks others hold. */
static void test_end_of_session_does_not_walk_other_locks(void **state)
{
    enum { OTHERS = 20000, OWN = 5 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.limits.ephemeral_batch = OWN - 1; /* so that they are hidden */
    fixture_reopen(&fixture);
    open_session(&fixture, "s", NULL, 0);
    open_session(&fixture, "holder", NULL, 0);
    for (int i = 0; i < OWN; i++) {
        struct write_item item = fixture_item(WRITE_INDEX, "e", "", id_of(i), "{}");
        item.lease = SLICE_LIT("s");
        fixture_write_one(&fixture, item);
    }
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("holder");
    command->lock.targets = arena_zalloc(&command->arena, OTHERS * sizeof(struct lock_target));
    command->lock.target_count = OTHERS;
    for (int i = 0; i < OTHERS; i++)
        command->lock.targets[i] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("e"), .id = arena_printf(&command->arena, "%d", OWN - 1 + i)};
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
    fixture_run(&fixture, session_end("s", COMMAND_CODEC_VERSION), 1);
    assert_true(core_step_work(fixture.core) < OTHERS / 2);
    assert_int_equal(fixture_count(&fixture, "e"), 1); /* the locked one */
    assert_non_null(fixture_source(&fixture, "e", id_of(OWN - 1)));
    assert_null(fixture_source(&fixture, "e", id_of(0)));
    fixture_close(&fixture);
}

/* An ephemeral document whose version cannot be raised is removed with its session, at that version. */
static void check_highest_version(bool hidden, bool deferred, unsigned version)
{
    struct core_fixture fixture;
    struct write_item item = fixture_item(WRITE_INDEX, "e", "", "0", "{\"n\":1}");

    fixture_open(&fixture);
    fixture.limits.ephemeral_batch = hidden ? 2 : 10;
    fixture_reopen(&fixture);
    open_session(&fixture, "s", NULL, 0);
    open_session(&fixture, "holder", NULL, 0);
    item.lease = SLICE_LIT("s");
    item.version = INT64_MAX;
    item.version_type = VERSION_EXTERNAL;
    assert_int_equal(fixture_write_one(&fixture, item)->outcome, WRITE_CREATED);
    for (int i = 0; i < 3; i++) {
        item = fixture_item(WRITE_INDEX, "e", "", i == 0 ? "1" : i == 1 ? "x" : "y", "{}");
        item.lease = SLICE_LIT("s");
        fixture_write_one(&fixture, item);
    }
    if (deferred)
        lock_all(&fixture, "holder", false);
    fixture_run(&fixture, session_end("s", version), 1);
    run_batches(&fixture);
    if (deferred)
        lock_all(&fixture, "holder", true);
    run_batches(&fixture);
    assert_int_equal(fixture_source(&fixture, "e", "0") == NULL, version >= COMMAND_SINCE_WORK_BATCHES || hidden);
    assert_null(fixture_source(&fixture, "e", "1"));
    assert_int_equal(count_entries(&fixture), version >= COMMAND_SINCE_WORK_BATCHES ? 0 : 1);
    fixture_close(&fixture);
}

static void test_ephemeral_document_of_highest_version_is_removed(void **state)
{
    (void)state;
    check_highest_version(false, false, COMMAND_CODEC_VERSION);
    check_highest_version(true, false, COMMAND_CODEC_VERSION);
    check_highest_version(false, true, COMMAND_CODEC_VERSION);
    check_highest_version(true, true, COMMAND_CODEC_VERSION);
    check_highest_version(false, false, COMMAND_SINCE_WORK_BATCHES - 1);
}

/* A write to such a document, while it is hidden, purges it first; in steps of version 10 it stays. */
static void test_write_purges_hidden_document_of_highest_version(void **state)
{
    (void)state;
    for (unsigned older = 0; older < 2; older++) {
        struct core_fixture fixture;
        struct write_item item = fixture_item(WRITE_INDEX, "e", "", "0", "{\"n\":1}");
        fixture_open(&fixture);
        fixture.limits.ephemeral_batch = 2;
        fixture_reopen(&fixture);
        open_session(&fixture, "s", NULL, 0);
        item.lease = SLICE_LIT("s");
        item.version = INT64_MAX;
        item.version_type = VERSION_EXTERNAL;
        fixture_write_one(&fixture, item);
        for (int i = 1; i < 4; i++) {
            item = fixture_item(WRITE_INDEX, "e", "", id_of(i), "{}");
            item.lease = SLICE_LIT("s");
            fixture_write_one(&fixture, item);
        }
        fixture_run(&fixture, session_end("s", COMMAND_CODEC_VERSION), 1);
        assert_int_equal(count_entries(&fixture), 1);
        struct command *command = fixture_write_command(&fixture, 1);
        command->version = COMMAND_SINCE_HIGHEST_PURGED - older;
        command->write.items[0] = fixture_item(WRITE_INDEX, "e", "", "0", "{}");
        command->ts = fixture.now + 1; /* no TICK before it, which would purge the document */
        command->clock = fixture.clock;
        assert_int_equal(core_step(fixture.core, command, &fixture.effects), 0);
        assert_int_equal(command->write.results[0].outcome, WRITE_FAILED); /* its tombstone has that version, too */
        assert_int_equal(count_entries(&fixture), older);
        list_remove(&command->link);
        command_free(command);
        fixture.now = core_last_ts(fixture.core);
        run_batches(&fixture);
        assert_int_equal(count_entries(&fixture), 0);
        fixture_close(&fixture);
    }
}

/* --- Actions ------------------------------------------------------------------------------------------------------ */

/* Actions of on_expire count the entries of the documents that they replace. */
static void test_actions_that_replace_large_documents_run_in_bounded_steps(void **state)
{
    enum { ROUNDS = 2 };
    struct write_item actions[ROUNDS * DOCUMENTS];
    char ids[DOCUMENTS][16];
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    put_large(&fixture, "", DOCUMENTS);
    numbers(&source, NUMBERS);
    for (int i = 0; i < DOCUMENTS; i++) {
        snprintf(ids[i], sizeof ids[i], "%d", i);
        actions[i] = fixture_item(WRITE_INDEX, "e", "", ids[i], "{}");
        actions[DOCUMENTS + i] = fixture_item(WRITE_INDEX, "e", "", ids[i], source.data);
    }
    open_session(&fixture, "s", actions, ROUNDS * DOCUMENTS);
    fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 11 * TL_SECOND);
    assert_true(run_batches(&fixture) > 1);
    assert_int_equal(count_entries(&fixture), DOCUMENTS * NUMBERS);
    assert_int_equal(fixture_index(&fixture, "e", "0", "{}")->version, 4);
    buf_deinit(&source);
    fixture_close(&fixture);
}

/* --- Transactions ------------------------------------------------------------------------------------------------- */

/*
 * Transactions that time out together count what they have written, which is freed: entries of single writes, none of
 * which is put before the commit.
 */
static void test_rollbacks_count_entries_of_transactions(void **state)
{
    enum { TXNS = 6, STEP_COST = NUMBERS / TXN_RECORDS_PER_COST };
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.limits.ephemeral_batch = STEP_COST;
    fixture_reopen(&fixture);
    fixture.core->provisional_work = UINT64_MAX;
    for (int i = 0; i < TXNS; i++) {
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, id_of(i));
        struct command *command = fixture_write_command(&fixture, 1);
        command->write.items[0] = fixture_item(WRITE_INDEX, "e", "", "", numbers(&source, NUMBERS));
        command->write.items[0].id = arena_copy(&command->arena, slice_from(id_of(i)));
        command->owner.transaction = arena_copy(&command->arena, slice_from(id_of(i)));
        assert_int_equal(fixture_run(&fixture, command, 1)->write.results[0].outcome, WRITE_CREATED);
    }
    fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 25 * 3600 * TL_SECOND);
    for (size_t left = TXNS - 1; left > 0; left--) {
        assert_int_equal(fixture.core->owners->txns.count, left);
        assert_true(core_next_deadline(fixture.core) <= fixture.clock);
        fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 1);
    }
    assert_int_equal(fixture.core->owners->txns.count, 0);
    buf_deinit(&source);
    fixture_close(&fixture);
}

/* --- Maintenance -------------------------------------------------------------------------------------------------- */

static struct command *maintenance(struct core_fixture *fixture, size_t keys_max, unsigned version)
{
    struct command *command = command_new(COMMAND_MAINTAIN, DIALECT_7);

    command->maintain.tombstones = fixture->now;
    command->maintain.keys_max = keys_max;
    command->version = version;
    return command;
}

/* A tombstone has two keys. The second one is removed beyond the limit, which then still holds. */
static void test_maintenance_stops_between_keys_that_belong_together(void **state)
{
    enum { TOMBSTONES = 20 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i < TOMBSTONES; i++) {
        fixture_index(&fixture, "fs", id_of(i), "{}");
        fixture_delete(&fixture, "fs", id_of(i));
    }
    fixture.now += CORE_TOMBSTONE_US + TL_SECOND;
    assert_int_equal(fixture_run(&fixture, maintenance(&fixture, 1, COMMAND_CODEC_VERSION), 1)->maintain.removed, 2);
    assert_int_equal(fixture_run(&fixture, maintenance(&fixture, 3, COMMAND_CODEC_VERSION), 1)->maintain.removed, 4);
    fixture_run(&fixture, maintenance(&fixture, 1, COMMAND_SINCE_WORK_BATCHES - 1), 1);
    assert_int_equal(fixture.last->maintain.removed, 2 * (TOMBSTONES - 3)); /* as it did */
    fixture_close(&fixture);
}

/* Returns: a source of as many bytes that has no entries, in an index that it makes. */
static const char *unindexed(struct core_fixture *fixture, struct buf *source, int bytes)
{
    fixture_index_command(fixture, COMMAND_INDEX_CREATE, "fs", "{\"mappings\":{\"enabled\":false}}");
    buf_lit(source, "{\"text\":\"");
    for (int i = 0; i < bytes; i++)
        buf_byte(source, 'x');
    buf_append(source, "\"}", sizeof "\"}");
    return source->data;
}

static size_t count_tombstone_keys(struct core_fixture *fixture)
{
    static const char letters[] = {PURGE_TOMBSTONE, PURGE_TOMBSTONE + 1};

    return fixture_count_keys(fixture, SPACE_SYSTEM, slice_make(letters, 1), slice_make(letters + 1, 1));
}

/* A key of the purge queue may find a document that was written again: its bytes count, too. */
static void test_maintenance_counts_bytes_of_documents_written_again(void **state)
{
    enum { ROUNDS = 30, BYTES = 200000, KEYS_MAX = 300 };
    struct core_fixture fixture;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    unindexed(&fixture, &source, BYTES);
    for (int i = 0; i < ROUNDS; i++) {
        fixture_index(&fixture, "fs", "1", source.data);
        fixture_delete(&fixture, "fs", "1");
    }
    fixture_index(&fixture, "fs", "1", source.data);
    fixture.now += CORE_TOMBSTONE_US + TL_SECOND;
    fixture_run(&fixture, maintenance(&fixture, KEYS_MAX, COMMAND_CODEC_VERSION), 1);
    assert_true(fixture.last->maintain.removed >= KEYS_MAX); /* so that the rest is due at once */
    size_t left = count_tombstone_keys(&fixture);
    assert_in_range(left, ROUNDS / 2, ROUNDS - 1);
    fixture_run(&fixture, maintenance(&fixture, KEYS_MAX, COMMAND_SINCE_WORK_BATCHES - 1), 1);
    assert_int_equal(fixture.last->maintain.removed, left);
    assert_int_equal(count_tombstone_keys(&fixture), 0);
    assert_non_null(fixture_source(&fixture, "fs", "1"));
    buf_deinit(&source);
    fixture_close(&fixture);
}

/* The documents of a deleted index are read when their keys are removed: their bytes count, too. */
static void test_maintenance_counts_bytes_of_deleted_index(void **state)
{
    enum { COUNT = 20, BYTES = 200000, KEYS_MAX = 300 };
    struct core_fixture fixture;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    size_t all, left;
    (void)state;

    fixture_open(&fixture);
    unindexed(&fixture, &source, BYTES);
    for (int i = 0; i < COUNT; i++)
        fixture_index(&fixture, "fs", id_of(i), source.data);
    fixture_index_command(&fixture, COMMAND_INDEX_DELETE, "fs", "");
    all = left = fixture_count_keys(&fixture, SPACE_DOCUMENTS, SLICE_LIT(""), SLICE_LIT("\xff"));
    assert_int_equal(all, COUNT);
    for (int rounds = 0; left > 0; rounds++) {
        struct command *command = maintenance(&fixture, KEYS_MAX, COMMAND_CODEC_VERSION);
        command->maintain.history_low = fixture.now + 1;
        fixture_run(&fixture, command, 1);
        left = fixture_count_keys(&fixture, SPACE_DOCUMENTS, SLICE_LIT(""), SLICE_LIT("\xff"));
        assert_true(rounds > 0 || left > all / 2);
        assert_true(left == 0 || command->maintain.removed >= KEYS_MAX);
    }
    buf_deinit(&source);
    fixture_close(&fixture);
}

/* A sweep of stale posting lists passes the records of documents: their bytes count as scans. */
static void test_sweep_counts_bytes_of_documents(void **state)
{
    enum { COUNT = 40, BYTES = 100000, KEYS_MAX = COUNT }; /* four scans for each key */
    struct core_fixture fixture;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    int rounds = 0;
    (void)state;

    fixture_open(&fixture);
    fixture.limits.stale_documents_min = 1;
    fixture_reopen(&fixture);
    unindexed(&fixture, &source, BYTES);
    for (int i = 0; i < 3; i++) {
        struct command *command = fixture_write_command(&fixture, COUNT);
        source.data[source.len - sizeof "x\"}"] = (char)('0' + i); /* equal sources keep their posting lists */
        for (int j = 0; j < COUNT; j++) {
            command->write.items[j] = fixture_item(WRITE_INDEX, "fs", "", "", source.data);
            command->write.items[j].id = arena_printf(&command->arena, "%d", j);
        }
        fixture_run(&fixture, command, 1);
    }
    do {
        size_t done;
        fixture.now++;
        assert_int_equal(run_maintenance(fixture.core, fixture.store, fixture.now, KEYS_MAX, &done), 0);
        assert_int_equal(done, KEYS_MAX); /* the rest is due at once */
        assert_int_not_equal(fixture.core->sweep.index, 0);
        rounds++;
    } while (!fixture.core->sweep.batches_known);
    assert_in_range(rounds, COUNT / 4, COUNT);
    buf_deinit(&source);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_ephemeral_documents_are_removed_in_bounded_steps),
        cmocka_unit_test(test_session_end_of_older_version_counts_documents),
        cmocka_unit_test(test_small_ephemeral_documents_are_removed_in_one_unit),
        cmocka_unit_test(test_deferred_removals_run_in_bounded_steps),
        cmocka_unit_test(test_deferred_removal_is_charged_once),
        cmocka_unit_test(test_tick_has_one_account),
        cmocka_unit_test(test_end_of_session_does_not_walk_other_locks),
        cmocka_unit_test(test_ephemeral_document_of_highest_version_is_removed),
        cmocka_unit_test(test_write_purges_hidden_document_of_highest_version),
        cmocka_unit_test(test_actions_that_replace_large_documents_run_in_bounded_steps),
        cmocka_unit_test(test_rollbacks_count_entries_of_transactions),
        cmocka_unit_test(test_maintenance_stops_between_keys_that_belong_together),
        cmocka_unit_test(test_maintenance_counts_bytes_of_documents_written_again),
        cmocka_unit_test(test_maintenance_counts_bytes_of_deleted_index),
        cmocka_unit_test(test_sweep_counts_bytes_of_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
