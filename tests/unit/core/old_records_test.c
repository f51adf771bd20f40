/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a store of format 1 or 2 has sessions, locks and transactions as records
 * (owners/old_records.c). A core that is opened from it has the same state as the program that
 * wrote them, and core_convert() removes them. Method: the records that such a program wrote, of
 * each kind, in a file; and records that this test makes: damaged ones, and very many.
 *
 * The file has the digest of that program's core, without the counts of attempts, with index records
 * of version 2, and its last timestamp (u64be, both); then each key: space (1), length (varint), key, length, value.
 *
 * usage: old_records_test FILE
 */
#include "../../lib/core_fixture.h"
#include "../../lib/arguments.h"
#include "../../lib/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/documents/action.h"
#include "core/cleanup/cleanup_attempt.h"
#include "core/cleanup/deferred.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/step/save.h"

static const char *file;

struct old_state {
    uint64_t digest;
    tl_ts last_ts;
};

/* Fills an empty store with the records of the file. */
static struct old_state fill(struct store *store)
{
    struct store_batch *batch = store_batch_new(store);
    struct old_state old;
    uint64_t length;
    struct slice space, key, value;
    static char bytes[65536];
    FILE *opened = fopen(file, "rb");
    assert_non_null(opened);
    struct slice left = slice_make(bytes, fread(bytes, 1, sizeof bytes, opened));
    fclose(opened);
    assert_true(slice_take_u64be(&left, &old.digest) && slice_take_u64be(&left, &old.last_ts));
    store_batch_begin(batch, old.last_ts);
    while (left.len > 0) {
        assert_true(slice_take(&left, 1, &space) && slice_take_varint(&left, &length) &&
                    slice_take(&left, length, &key) && slice_take_varint(&left, &length) &&
                    slice_take(&left, length, &value));
        store_batch_put(batch, (enum store_space)space.data[0], key, value);
    }
    assert_int_equal(store_write(store, batch), 0);
    store_batch_free(batch);
    return old;
}

static void open_box(struct core_fixture *fixture)
{
    fixture_open(fixture);
    core_close(fixture->core);
    fixture->core = NULL;
    fixture->limits.ephemeral_batch = 2;
    fixture->limits.purge_batch = 1;
}

static void open_old(struct core_fixture *fixture)
{
    assert_int_equal(core_open(fixture->store, &fixture->limits, &fixture->core), 0);
    fixture->now = core_last_ts(fixture->core);
}

/* As a start does it: the chain begins after the conversion. */
static void convert(struct core_fixture *fixture)
{
    assert_int_equal(core_convert(fixture->core), 0);
    core_begin_chain(fixture->core, 1);
    fixture->now = core_last_ts(fixture->core);
}

static void reload(struct core_fixture *fixture)
{
    fixture_reopen(fixture);
    fixture->now = core_last_ts(fixture->core);
}

static size_t count(struct core_fixture *fixture, const char *lower, const char *upper)
{
    return fixture_count_keys(fixture, SPACE_SYSTEM, slice_from(lower), slice_from(upper));
}

static struct session *session_of(const struct core_fixture *fixture, const char *id)
{
    return owners_session(fixture->core->owners, slice_from(id));
}

static void check_session(const struct core_fixture *fixture, const char *id, uint64_t number, size_t locks,
                          size_t documents)
{
    const struct session *session = session_of(fixture, id);
    assert_non_null(session);
    assert_int_equal(session_number(session), number);
    assert_int_equal(session->owner.locks.lock_count, locks);
    assert_int_equal(session->ephemeral_count, documents);
    assert_int_equal(session->attachment, 0);
}

static int check_stored(struct core_fixture *fixture, const char *id)
{
    return session__check_stored(fixture->store, slice_from(id));
}

static enum problem_type commit(struct core_fixture *fixture, const char *id)
{
    struct command *command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = slice_from(id);
    return fixture_run(fixture, command, 1)->problem.type;
}

static void restart(struct core_fixture *fixture)
{
    do
        fixture_run(fixture, command_new(COMMAND_RESTART, DIALECT_7), 1);
    while (fixture->last->restart.resubmit);
}

/* The state of the records: two live sessions with locks, two terminating ones, and two actions. */
static void test_open_reads_sessions_and_locks(void **state)
{
    struct core_fixture fixture;
    (void)state;

    open_box(&fixture);
    struct old_state old = fill(fixture.store);
    open_old(&fixture);
    assert_int_equal(core_last_ts(fixture.core), old.last_ts);
    check_session(&fixture, "a", 1, 2, 0);
    check_session(&fixture, "b", 2, 3, 8);
    check_session(&fixture, "leaves", 10, 0, 8);
    check_session(&fixture, "hidden", 14, 0, 7);
    assert_true(session_of(&fixture, "leaves")->cleanup_pending && session_of(&fixture, "hidden")->locks_released);
    assert_int_equal(session_of(&fixture, "leaves")->end_kind, SESSION_END_FORCED);
    assert_int_equal(fixture.core->owners->deferred_count, 2);
    assert_int_equal(cleanup_attempt__count(fixture.core, SLICE_LIT("gone"), 1, 0), 1);
    assert_int_equal(cleanup_attempt__count(fixture.core, SLICE_LIT("leaves"), 0, 0), 2);
    cleanup_attempt__free_all(fixture.core);
    assert_int_equal(fixture_digest(&fixture), old.digest);
    fixture_close(&fixture);
}

/*
 * After the conversion only live sessions have a record, and transactions that were open have an
 * outcome. The loaded state is saved, and continues.
 */
static void test_convert_removes_records(void **state)
{
    struct core_fixture fixture;
    (void)state;

    open_box(&fixture);
    fill(fixture.store);
    open_old(&fixture);
    assert_int_equal(count(&fixture, "B", "C"), 3);
    uint64_t digest = fixture_digest(&fixture);
    size_t outcomes = count(&fixture, "O", "P");
    convert(&fixture);
    assert_int_equal(count(&fixture, "B", "C") + count(&fixture, "K", "M") + count(&fixture, "Y", "["), 0);
    assert_int_equal(count(&fixture, "O", "P"), outcomes + 3);
    assert_int_equal(check_stored(&fixture, "a") + check_stored(&fixture, "b"), 0);
    assert_int_equal(check_stored(&fixture, "leaves"), STORE_NOT_FOUND);
    assert_int_equal(check_stored(&fixture, "hidden"), STORE_NOT_FOUND);
    reload(&fixture);
    assert_int_equal(fixture_digest(&fixture), digest);
    restart(&fixture);
    while (core_next_deadline(fixture.core) == 0)
        fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 1);
    assert_int_equal(commit(&fixture, "t1"), PROBLEM_TRANSACTION_ABORTED);
    assert_null(session_of(&fixture, "hidden"));
    assert_null(session_of(&fixture, "leaves"));
    assert_int_equal(fixture.core->owners->deferred_count, 3); /* a's lock blocks the action of `leaves`, too */
    assert_true(session_of(&fixture, "a")->lease.at < TL_TS_MAX);
    reload(&fixture);
    fixture_close(&fixture);
}

/* A crash before the first checkpoint has the conversion done again, with the same result. */
static void test_convert_repeats_after_crash(void **state)
{
    uint64_t digests[2];
    tl_ts last[2];
    struct core_fixture fixture;
    (void)state;

    open_box(&fixture);
    fill(fixture.store);
    store_mem_sync(fixture.store);
    for (int i = 0; i < 2; i++) {
        open_old(&fixture);
        convert(&fixture);
        digests[i] = fixture_digest(&fixture);
        last[i] = core_last_ts(fixture.core);
        core_close(fixture.core);
        store_mem_crash(fixture.store, 0);
    }
    assert_true(digests[0] == digests[1] && last[0] == last[1]);
    open_old(&fixture);
    fixture_close(&fixture);
}

/* A store without such records is left as it is. */
static void test_convert_of_new_store_does_nothing(void **state)
{
    struct core_fixture fixture;
    (void)state;

    open_box(&fixture);
    open_old(&fixture);
    convert(&fixture);
    assert_int_equal(core_last_ts(fixture.core), 0);
    assert_int_equal(count(&fixture, "A", "z"), 0);
    fixture_close(&fixture);
}

/* Writes a record as the newest change of a store. */
static void put(struct store *store, struct slice key, struct slice value)
{
    static tl_ts ts = 2 * FIXTURE_START;
    struct store_batch *batch = store_batch_new(store);
    store_batch_begin(batch, ++ts);
    struct buf last_ts = BUF_INIT(BUF_UNLIMITED);
    buf_u64be(&last_ts, ts);
    store_batch_put(batch, SPACE_SYSTEM, key, value);
    store_batch_put(batch, SPACE_SYSTEM, SLICE_LIT("T"), buf_as_slice(&last_ts));
    assert_int_equal(store_write(store, batch), 0);
    store_batch_free(batch);
    buf_deinit(&last_ts);
}

/* The end of a terminating session, in its two forms, must be one of the known ones. */
static void test_open_refuses_unknown_end_of_session(void **state)
{
    (void)state;
    for (int kind = SESSION_END_DETACHED; kind <= SESSION_END_DETACHED + 1; kind++) {
        for (int progress = 0; progress < 2; progress++) {
            struct buf session = BUF_INIT(BUF_UNLIMITED), end = BUF_INIT(BUF_UNLIMITED);
            struct core_fixture fixture;
            open_box(&fixture);
            for (uint64_t number = 1; number <= 3; number++)
                buf_varint(&session, number);
            action_put_slice(&session, SLICE_LIT(""));
            action_put_slice(&session, SLICE_LIT(""));
            buf_varint(progress ? &end : &session, (uint64_t)kind << 1);
            put(fixture.store, SLICE_LIT("Ss"), buf_as_slice(&session));
            buf_varint(&end, 0);
            buf_varint(&end, 0);
            if (progress)
                put(fixture.store, SLICE_LIT("Zs"), buf_as_slice(&end));
            int r = core_open(fixture.store, &fixture.limits, &fixture.core);
            assert_int_equal(r, kind == SESSION_END_DETACHED ? 0 : TL_ERR_CORRUPT);
            if (r < 0)
                fixture.core = NULL;
            fixture_close(&fixture);
            buf_deinit(&session);
            buf_deinit(&end);
        }
    }
}

static void put_deferred(struct store *store, uint64_t number, const char *id)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED), value = BUF_INIT(BUF_UNLIMITED), action = BUF_INIT(BUF_UNLIMITED);
    struct write_item item = fixture_item(WRITE_INDEX, "u", "", id, "{\"n\":1}");
    action_encode_all(&action, &item, 1);
    buf_byte(&key, 'K');
    buf_u64be(&key, number);
    buf_byte(&value, 'a');
    buf_varint(&value, 1);
    action_put_slice(&value, SLICE_LIT("gone"));
    action_put_slice(&value, SLICE_LIT(""));
    action_put_slice(&value, buf_as_slice(&action));
    put(store, buf_as_slice(&key), buf_as_slice(&value));
    buf_deinit(&key);
    buf_deinit(&value);
    buf_deinit(&action);
}

/* Deferred cleanup is numbered from one. */
static void test_open_refuses_deferred_number_zero(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    core_close(fixture.core);
    put_deferred(fixture.store, 0, "x");
    assert_int_equal(core_open(fixture.store, &fixture.limits, &fixture.core), TL_ERR_CORRUPT);
    fixture.core = NULL;
    fixture_close(&fixture);
}

/* Many deferred actions request their locks by several RESTARTs, all before any later request. */
static void test_deferred_actions_request_locks_in_batches(void **state)
{
    enum { ACTIONS = 8000 };
    struct core_fixture fixture;
    char id[16];
    int restarts = 0;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "u", "1", "{}");
    core_close(fixture.core);
    for (int i = 0; i < ACTIONS; i++) {
        snprintf(id, sizeof id, "%d", i);
        put_deferred(fixture.store, (uint64_t)i + 1, id);
    }
    open_old(&fixture);
    convert(&fixture);
    do {
        fixture_run(&fixture, command_new(COMMAND_RESTART, DIALECT_7), 1);
        restarts++;
    } while (fixture.last->restart.resubmit);
    assert_true(restarts > ACTIONS / 1000 - 1);
    while (core_next_deadline(fixture.core) == 0)
        fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 1);
    assert_int_equal(fixture_count(&fixture, "u"), ACTIONS);
    assert_int_equal(fixture.core->owners->deferred_count, 0);
    fixture_close(&fixture);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_reads_sessions_and_locks),
        cmocka_unit_test(test_convert_removes_records),
        cmocka_unit_test(test_convert_repeats_after_crash),
        cmocka_unit_test(test_convert_of_new_store_does_nothing),
        cmocka_unit_test(test_open_refuses_unknown_end_of_session),
        cmocka_unit_test(test_open_refuses_deferred_number_zero),
        cmocka_unit_test(test_deferred_actions_request_locks_in_batches),
    };
    const struct argument arguments[] = {{"tests/unit/core/old_records/store.bin", .text = &file}, {0}};
    arguments_take(argc, argv, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
