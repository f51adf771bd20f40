/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: violated contracts of locks, sessions, transactions and waits end the process in the call
 * that violates them. Method: each violation runs in a child process, whose standard error names
 * the check.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/dies.h"

#include "core/acquire/lock_resolve.h"
#include "core/catalog/catalog_change.h"
#include "core/catalog/index.h"
#include "core/cleanup/cleanup_attempt.h"
#include "core/command/codec.h"
#include "core/documents/ephemeral.h"
#include "core/documents/provisional.h"
#include "core/documents/session_tombstone.h"
#include "core/documents/write_command.h"
#include "core/locks/lock.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/wait/wait.h"
#include "core/owners/owners_step.h"
#include "core/tree/empty_paths.h"
#include "core/tree/tree_record.h"
#include "core/tree/tree_write.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "store/overlay_internal.h"
#include "store/view.h"

/* --- Locks ------------------------------------------------------------------------------------ */

struct fixture {
    struct lock_table table;
    struct lock_owner owner;
    struct lock_request *request;
};

static const struct lock_spec spec = {.on = {.index = {"fs", 2}}, .mode = LOCK_X};

static void setup(struct fixture *f)
{
    lock_table_init(&f->table, NULL);
    lock_table_set_ts(&f->table, 100);
    lock_owner_init(&f->table, &f->owner, NULL, NULL);
    f->request = lock_request_new(&f->table, &f->owner, &spec, 1, NULL);
}

static void teardown(struct fixture *f)
{
    lock_request_free(f->request);
    lock_release_all(&f->table, &f->owner);
    lock_owner_deinit(&f->owner);
    lock_table_deinit(&f->table);
}

static void start_again(void *context)
{
    struct fixture *f = context;
    (void)!lock_request_start(f->request, true);
}

static void end_owner_that_holds(void *context)
{
    lock_owner_deinit(&((struct fixture *)context)->owner);
}

static void end_table_with_locks(void *context)
{
    lock_table_deinit(&((struct fixture *)context)->table);
}

static void init_owner(void *context)
{
    struct fixture *f = context;
    struct lock_owner owner;
    lock_owner_init(&f->table, &owner, NULL, NULL);
}

static void resume_unsuspended(void *context)
{
    lock_table_resume_grants(&((struct fixture *)context)->table);
}

static void end_session_before_its_transaction(void *context)
{
    struct fixture *f = context;
    struct lock_owner session, txn;
    lock_owner_init(&f->table, &session, NULL, NULL);
    lock_owner_init(&f->table, &txn, &session, NULL);
    lock_owner_deinit(&session);
}

static void test_lock_contracts_are_checked(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f);
    assert_dies(end_session_before_its_transaction, &f, "dependent_count == 0");
    assert_dies(resume_unsuspended, &f, "grants_suspended > 0");
    assert_int_equal(lock_request_start(f.request, true), LOCK_GRANTED);
    assert_dies(start_again, &f, "request->state == LOCK_STATE_NEW");
    assert_dies(end_owner_that_holds, &f, "list_empty(&owner->holds)");
    assert_dies(end_table_with_locks, &f, "table->hold_count == 0");
    teardown(&f);
    assert_dies(init_owner, &f, "REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC)");
}

/* --- States ----------------------------------------------------------------------------------- */

static void purge(void *context)
{
    session__enter(NULL, context, SESSION_PURGING);
}

static void test_session_changes_state_by_its_table(void **state)
{
    (void)state;
    struct session session = {.magic = SESSION_MAGIC, .lease.at = TL_TS_MAX};
    assert_int_equal(session__state(&session), SESSION_LIVE);
    assert_dies(purge, &session, "TRANSITION(session: live -> purging)");
    session.terminating = session.cleanup_pending = true;
    assert_int_equal(session__state(&session), SESSION_ACTING);
    session__enter(NULL, &session, SESSION_ACTED);
    assert_true(session.actions_finished);
    assert_dies(purge, &session, "TRANSITION(session: acted -> purging)");
}

static void begin_wait(void *context)
{
    struct wait wait = {.magic = WAIT_MAGIC};
    txn__begin_wait(context, &wait);
}

static void test_transaction_changes_state_by_its_table(void **state)
{
    (void)state;
    struct txn txn = {.magic = TXN_MAGIC};
    struct wait wait = {.magic = WAIT_MAGIC};
    txn__begin_wait(&txn, &wait);
    assert_int_equal(txn__state(&txn), TXN_WAITING);
    assert_dies(begin_wait, &txn, "TRANSITION(transaction: waiting -> waiting)");
    txn__end_wait(&txn);
    assert_int_equal(txn__state(&txn), TXN_OPEN);
    txn.owner.abandoned = true;
    assert_dies(begin_wait, &txn, "TRANSITION(transaction: abandoned -> waiting)");
}

static void end_again(void *context)
{
    wait__end_later(NULL, context);
}

static void test_wait_changes_state_by_its_table(void **state)
{
    (void)state;
    struct wait wait = {.magic = WAIT_MAGIC};
    assert_int_equal(wait__state(&wait), WAIT_NEW);
    assert_dies(end_again, &wait, "TRANSITION(wait: new -> ended)");
    wait.ready = wait.ended = true;
    assert_int_equal(wait__state(&wait), WAIT_ENDED);
    assert_dies(end_again, &wait, "TRANSITION(wait: ended -> ended)");
    wait.magic = 0;
    assert_dies(end_again, &wait, "REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC))");
}

/* --- Steps ------------------------------------------------------------------------------------ */

enum { STEPS = 100 }; /* more than a check of an almost empty core waits for */

static void step_with_wrong_count(void *context)
{
    struct core_fixture *fixture = context;
    fixture->core->owners->ready_count++;
    for (int i = 0; i < STEPS; i++)
        fixture_run(fixture, command_new(COMMAND_TICK, DIALECT_7), TL_MS);
}

static void step_with_wrong_overlay(void *context)
{
    struct core_fixture *fixture = context;
    struct txn *txn = owners_txn(fixture->core->owners, SLICE_LIT("t"));
    struct overlay_cursor cursor;
    txn->overlay = overlay_new();
    overlay_put(txn->overlay, SPACE_DOCUMENTS, SLICE_LIT("a"), SLICE_LIT("1"));
    overlay_put(txn->overlay, SPACE_DOCUMENTS, SLICE_LIT("b"), SLICE_LIT("2"));
    struct slice key = overlay_entry_key(overlay_cursor_first(&cursor, overlay__space(txn->overlay, SPACE_DOCUMENTS)));
    *(char *)(uintptr_t)key.data = 'c'; /* in place, as a stray write would do */
    for (int i = 0; i < STEPS; i++)
        fixture_run(fixture, command_new(COMMAND_TICK, DIALECT_7), TL_MS);
}

static void test_steps_check_owners_and_overlays(void **state)
{
    (void)state;
    struct core_fixture fixture;
    if (!STEP_CHECKS_OWNERS)
        skip(); /* not a build of developers */
    fixture_open(&fixture);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    assert_dies(step_with_wrong_count, &fixture, "owners->ready_count == ready");
    assert_dies(step_with_wrong_overlay, &fixture, "slice_compare(key, next) < 0");
    for (int i = 0; i < STEPS; i++)
        fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), TL_MS);
    fixture_close(&fixture);
}

static void step_at_past_timestamp(void *context)
{
    struct core_fixture *fixture = context;
    struct command *command = command_new(COMMAND_TICK, DIALECT_7);
    command->ts = core_last_ts(fixture->core);
    (void)!core_step(fixture->core, command, &fixture->effects);
}

static void handle_command_of_another_type(void *context)
{
    struct core_fixture *fixture = context;
    (void)!core__do_index_delete(fixture->core, command_new(COMMAND_TICK, DIALECT_7));
}

static void read_freed_catalog(void *context)
{
    (void)catalog_index_count(context);
}

static void move_freed_iterator(void *context)
{
    view_iter_next(context);
}

static void test_core_contracts_are_checked(void **state)
{
    (void)state;
    struct core_fixture fixture;
    fixture_open(&fixture);
    fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), TL_MS);
    uint64_t cleared[64] = {0}; /* as an object whose magic number its destructor has cleared */
    assert_dies(step_at_past_timestamp, &fixture, "command->ts > core->last_ts");
    assert_dies(handle_command_of_another_type, &fixture, "command->type == COMMAND_INDEX_DELETE");
    assert_dies(read_freed_catalog, cleared, "MAGIC_VALID(catalog, CATALOG_MAGIC)");
    assert_dies(move_freed_iterator, cleared, "MAGIC_VALID(iter, VIEW_ITER_MAGIC)");
    fixture_close(&fixture);
}

static void step_of_unknown_version(void *context)
{
    struct core_fixture *fixture = context;
    struct command *command = command_new(COMMAND_TICK, DIALECT_7);
    command->ts = core_last_ts(fixture->core) + 1;
    command->version = 0;
    (void)!core_step(fixture->core, command, &fixture->effects);
}

/* --- Records that a caller would lose, or that no reader could decode ------------------------- */

static void hide_outside_a_unit(void *context)
{
    const struct session_tombstone_exclusions none = {0};
    session_tombstone__put(((struct core_fixture *)context)->core, SLICE_LIT("s"), &none);
}

static void commit_outside_a_unit(void *context)
{
    provisional__commit(((struct core_fixture *)context)->core, SLICE_LIT("t"), 1);
}

static void change_catalog_outside_a_unit(void *context)
{
    catalog_change__drop_object(((struct core_fixture *)context)->core, CATALOG_TEMPLATES, SLICE_LIT("t"));
}

static void encode_without_entry(void *context)
{
    const struct tree_relocation relocation = {.state = TREE_RELOCATED, .seq_no = -1};
    tree_relocation_encode(context, &relocation);
}

static void commit_open_timestamp(void *context)
{
    tree_commit(NULL, SLICE_LIT("k"), SLICE_NONE, TREE_TS_OPEN);
    (void)context;
}

static void test_records_outside_of_contracts_are_refused(void **state)
{
    (void)state;
    struct core_fixture fixture;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    fixture_open(&fixture);
    assert_dies(step_of_unknown_version, &fixture, "command->version > 0");
    assert_dies(hide_outside_a_unit, &fixture, "core->open");
    assert_dies(commit_outside_a_unit, &fixture, "core->open");
    assert_dies(change_catalog_outside_a_unit, &fixture, "core->open");
    assert_dies(encode_without_entry, &buf, "relocation->dirent.len > 0");
    assert_dies(commit_open_timestamp, NULL, "ts != TREE_TS_OPEN");
    fixture_close(&fixture);
}

/* --- Requirements that the headers of modules state ------------------------------------------------------------- */

static void forget_attempts_of_no_session(void *context)
{
    cleanup_attempt__forget_deferred(((struct core_fixture *)context)->core, 0);
}

static void count_attempts_of_both_kinds(void *context)
{
    (void)cleanup_attempt__count(((struct core_fixture *)context)->core, SLICE_LIT("s"), 1, 1);
}

static void plan_index_outside_a_unit(void *context)
{
    (void)index__plan_auto(((struct core_fixture *)context)->core, SLICE_LIT("i"), SLICE_LIT(""), DIALECT_7);
}

static void list_documents_of_no_session(void *context)
{
    struct slice *keys;
    size_t count;
    (void)!ephemeral__list(((struct core_fixture *)context)->core, SLICE_LIT(""), &keys, &count);
}

static void drop_locks_of_no_owner(void *context)
{
    struct lock_spec_list specs = {0};
    lock_resolve__drop_held(((struct core_fixture *)context)->core, NULL, &specs);
}

static void ask_step_of_unlock(void *context)
{
    const struct command command = {.type = COMMAND_UNLOCK};
    (void)write_command__in_one_step(((struct core_fixture *)context)->core, &command, false);
}

static void code_bytes_without_data(void *context)
{
    struct codec codec = codec_to(context, 1);
    struct slice value = {NULL, 3};
    codec_bytes(&codec, &value);
}

static void ask_for_ended_watch(void *context)
{
    static const struct empty_paths none;
    bool at, below;
    empty_paths_unchanged_since(&none, 1, SLICE_LIT("/a"), TL_TS_MAX, &at, &below);
    (void)context;
}

static void encode_history_without_time(void *context)
{
    const struct tree_relocation before = {.seq_no = -1};
    tree_history_encode(context, 0, &before);
}

static void test_modules_check_what_their_headers_require(void **state)
{
    (void)state;
    struct core_fixture fixture;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    fixture_open(&fixture);
    assert_dies(forget_attempts_of_no_session, &fixture, "deferred > 0");
    assert_dies(count_attempts_of_both_kinds, &fixture, "deferred == 0 || action == 0");
    assert_dies(plan_index_outside_a_unit, &fixture, "core->open");
    assert_dies(list_documents_of_no_session, &fixture, "session.len > 0");
    assert_dies(drop_locks_of_no_owner, &fixture, "owner != NULL");
    assert_dies(ask_step_of_unlock, &fixture, "command->type == COMMAND_WRITE");
    assert_dies(code_bytes_without_data, &buf, "value->data != NULL");
    assert_dies(ask_for_ended_watch, NULL, "ts < TL_TS_MAX");
    assert_dies(encode_history_without_time, &buf, "ts > 0");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock_contracts_are_checked),
        cmocka_unit_test(test_session_changes_state_by_its_table),
        cmocka_unit_test(test_transaction_changes_state_by_its_table),
        cmocka_unit_test(test_wait_changes_state_by_its_table),
        cmocka_unit_test(test_steps_check_owners_and_overlays),
        cmocka_unit_test(test_core_contracts_are_checked),
        cmocka_unit_test(test_records_outside_of_contracts_are_refused),
        cmocka_unit_test(test_modules_check_what_their_headers_require),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
