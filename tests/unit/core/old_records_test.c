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

static void open_box(struct core_fixture *box)
{
    fixture_open(box);
    core_close(box->core);
    box->core = NULL;
    box->limits.ephemeral_batch = 2;
    box->limits.purge_batch = 1;
}

static void open_old(struct core_fixture *box)
{
    assert_int_equal(core_open(box->store, &box->limits, &box->core), 0);
    box->now = core_last_ts(box->core);
}

/* As a start does it: the chain begins after the conversion. */
static void convert(struct core_fixture *box)
{
    assert_int_equal(core_convert(box->core), 0);
    core_begin_chain(box->core, 1);
    box->now = core_last_ts(box->core);
}

static void reload(struct core_fixture *box)
{
    fixture_reopen(box);
    box->now = core_last_ts(box->core);
}

static size_t count(struct core_fixture *box, const char *lower, const char *upper)
{
    return fixture_count_keys(box, SPACE_SYSTEM, slice_from(lower), slice_from(upper));
}

static struct session *session_of(const struct core_fixture *box, const char *id)
{
    return owners_session(box->core->owners, slice_from(id));
}

static void check_session(const struct core_fixture *box, const char *id, uint64_t number, size_t locks,
                          size_t documents)
{
    const struct session *session = session_of(box, id);
    assert_non_null(session);
    assert_int_equal(session_number(session), number);
    assert_int_equal(session->owner.locks.lock_count, locks);
    assert_int_equal(session->ephemeral_count, documents);
    assert_int_equal(session->attachment, 0);
}

static int check_stored(struct core_fixture *box, const char *id)
{
    return session__check_stored(box->store, slice_from(id));
}

static enum problem_type commit(struct core_fixture *box, const char *id)
{
    struct command *command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = slice_from(id);
    return fixture_run(box, command, 1)->problem.type;
}

static void restart(struct core_fixture *box)
{
    do
        fixture_run(box, command_new(COMMAND_RESTART, DIALECT_7), 1);
    while (box->last->restart.resubmit);
}

/* The state of the records: two live sessions with locks, two terminating ones, and two actions. */
static void test_open_reads_sessions_and_locks(void **state)
{
    struct core_fixture box;
    (void)state;

    open_box(&box);
    struct old_state old = fill(box.store);
    open_old(&box);
    assert_int_equal(core_last_ts(box.core), old.last_ts);
    check_session(&box, "a", 1, 2, 0);
    check_session(&box, "b", 2, 3, 8);
    check_session(&box, "leaves", 10, 0, 8);
    check_session(&box, "hidden", 14, 0, 7);
    assert_true(session_of(&box, "leaves")->cleanup_pending && session_of(&box, "hidden")->locks_released);
    assert_int_equal(session_of(&box, "leaves")->end_kind, SESSION_END_FORCED);
    assert_int_equal(box.core->owners->deferred_count, 2);
    assert_int_equal(cleanup_attempt__count(box.core, SLICE_LIT("gone"), 1, 0), 1);
    assert_int_equal(cleanup_attempt__count(box.core, SLICE_LIT("leaves"), 0, 0), 2);
    cleanup_attempt__free_all(box.core);
    assert_int_equal(fixture_digest(&box), old.digest);
    fixture_close(&box);
}

/*
 * After the conversion only live sessions have a record, and transactions that were open have an
 * outcome. The loaded state is saved, and continues.
 */
static void test_convert_removes_records(void **state)
{
    struct core_fixture box;
    (void)state;

    open_box(&box);
    fill(box.store);
    open_old(&box);
    assert_int_equal(count(&box, "B", "C"), 3);
    uint64_t digest = fixture_digest(&box);
    size_t outcomes = count(&box, "O", "P");
    convert(&box);
    assert_int_equal(count(&box, "B", "C") + count(&box, "K", "M") + count(&box, "Y", "["), 0);
    assert_int_equal(count(&box, "O", "P"), outcomes + 3);
    assert_int_equal(check_stored(&box, "a") + check_stored(&box, "b"), 0);
    assert_int_equal(check_stored(&box, "leaves"), STORE_NOT_FOUND);
    assert_int_equal(check_stored(&box, "hidden"), STORE_NOT_FOUND);
    reload(&box);
    assert_int_equal(fixture_digest(&box), digest);
    restart(&box);
    while (core_next_deadline(box.core) == 0)
        fixture_run(&box, command_new(COMMAND_TICK, DIALECT_7), 1);
    assert_int_equal(commit(&box, "t1"), PROBLEM_TRANSACTION_ABORTED);
    assert_null(session_of(&box, "hidden"));
    assert_null(session_of(&box, "leaves"));
    assert_int_equal(box.core->owners->deferred_count, 3); /* a's lock blocks the action of `leaves`, too */
    assert_true(session_of(&box, "a")->lease.at < TL_TS_MAX);
    reload(&box);
    fixture_close(&box);
}

/* A crash before the first checkpoint has the conversion done again, with the same result. */
static void test_convert_repeats_after_crash(void **state)
{
    uint64_t digests[2];
    tl_ts last[2];
    struct core_fixture box;
    (void)state;

    open_box(&box);
    fill(box.store);
    store_mem_sync(box.store);
    for (int i = 0; i < 2; i++) {
        open_old(&box);
        convert(&box);
        digests[i] = fixture_digest(&box);
        last[i] = core_last_ts(box.core);
        core_close(box.core);
        store_mem_crash(box.store, 0);
    }
    assert_true(digests[0] == digests[1] && last[0] == last[1]);
    open_old(&box);
    fixture_close(&box);
}

/* A store without such records is left as it is. */
static void test_convert_of_new_store_does_nothing(void **state)
{
    struct core_fixture box;
    (void)state;

    open_box(&box);
    open_old(&box);
    convert(&box);
    assert_int_equal(core_last_ts(box.core), 0);
    assert_int_equal(count(&box, "A", "z"), 0);
    fixture_close(&box);
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
            struct core_fixture box;
            open_box(&box);
            for (uint64_t number = 1; number <= 3; number++)
                buf_varint(&session, number);
            action_put_slice(&session, SLICE_LIT(""));
            action_put_slice(&session, SLICE_LIT(""));
            buf_varint(progress ? &end : &session, (uint64_t)kind << 1);
            put(box.store, SLICE_LIT("Ss"), buf_as_slice(&session));
            buf_varint(&end, 0);
            buf_varint(&end, 0);
            if (progress)
                put(box.store, SLICE_LIT("Zs"), buf_as_slice(&end));
            int r = core_open(box.store, &box.limits, &box.core);
            assert_int_equal(r, kind == SESSION_END_DETACHED ? 0 : TL_ERR_CORRUPT);
            if (r < 0)
                box.core = NULL;
            fixture_close(&box);
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
    struct core_fixture box;
    (void)state;

    fixture_open(&box);
    core_close(box.core);
    put_deferred(box.store, 0, "x");
    assert_int_equal(core_open(box.store, &box.limits, &box.core), TL_ERR_CORRUPT);
    box.core = NULL;
    fixture_close(&box);
}

/* Many deferred actions request their locks by several RESTARTs, all before any later request. */
static void test_deferred_actions_request_locks_in_batches(void **state)
{
    enum { ACTIONS = 8000 };
    struct core_fixture box;
    char id[16];
    int restarts = 0;
    (void)state;

    fixture_open(&box);
    fixture_index(&box, "u", "1", "{}");
    core_close(box.core);
    for (int i = 0; i < ACTIONS; i++) {
        snprintf(id, sizeof id, "%d", i);
        put_deferred(box.store, (uint64_t)i + 1, id);
    }
    open_old(&box);
    convert(&box);
    do {
        fixture_run(&box, command_new(COMMAND_RESTART, DIALECT_7), 1);
        restarts++;
    } while (box.last->restart.resubmit);
    assert_true(restarts > ACTIONS / 1000 - 1);
    while (core_next_deadline(box.core) == 0)
        fixture_run(&box, command_new(COMMAND_TICK, DIALECT_7), 1);
    assert_int_equal(fixture_count(&box, "u"), ACTIONS);
    assert_int_equal(box.core->owners->deferred_count, 0);
    fixture_close(&box);
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
