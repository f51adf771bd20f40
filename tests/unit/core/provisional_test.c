/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provisional entries of a transaction stay after its commit, and are purged without a trace
 * otherwise, whatever ended the transaction. Method: bulk writes in transactions with different
 * endings, and counts of all entries and undo records.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"
#include "../../lib/maintenance.h"

#include "core/documents/provisional.h"

enum { DOCUMENTS = 600 };

/* Writes all documents, each with a shared field value and a unique one. */
static struct command *bulk(struct core_fixture *box, const char *transaction, int shared)
{
    struct command *command = fixture_write_command(box, DOCUMENTS);

    for (int i = 0; i < DOCUMENTS; i++) {
        struct slice id = arena_printf(&command->arena, "%d", i);
        struct slice source = arena_printf(&command->arena, "{\"shared\":%d,\"own\":%d}", shared, i);
        command->write.items[i] = fixture_item(WRITE_INDEX, "fs", "", id.data, source.data);
    }
    command->owner.transaction = transaction == NULL ? SLICE_NONE : slice_from(transaction);
    return command;
}

static size_t count_entries(struct core_fixture *box)
{
    return fixture_count_keys(box, SPACE_ENTRIES, SLICE_NONE, SLICE_NONE);
}

static size_t count_undo_records(struct core_fixture *box)
{
    return fixture_count_keys(box, SPACE_SYSTEM, SLICE_LIT("A"), SLICE_LIT("B"));
}

/* Runs maintenance until nothing is left to do. */
static void maintain(struct core_fixture *box)
{
    size_t removed = 1;

    for (int i = 0; removed > 0; i++) {
        assert_true(i < 100);
        assert_int_equal(run_maintenance(box->core, box->store, ++box->now, 100, &removed), 0);
        assert_true(removed <= 100 + UNDO_RECORD_KEYS_MAX + 1);
    }
}

static void open_box(struct core_fixture *box)
{
    fixture_open(box);
    fixture_run(box, bulk(box, NULL, 0), 1);
}

/*
 * Opens a box and a transaction `t` that has written every document. Returns: the number of entries
 * before.
 */
static size_t open_with_transaction(struct core_fixture *box)
{
    open_box(box);
    size_t before = count_entries(box);
    fixture_txn(box, COMMAND_TXN_BEGIN, "t");
    fixture_run(box, bulk(box, "t", 1), 1);
    return before;
}

static void test_commit_keeps_provisional_entries(void **state)
{
    struct core_fixture box;
    (void)state;

    size_t before = open_with_transaction(&box);
    assert_true(count_entries(&box) > before);
    assert_int_equal(count_undo_records(&box),
                     (count_entries(&box) - before + UNDO_RECORD_KEYS_MAX - 1) / UNDO_RECORD_KEYS_MAX);
    maintain(&box); /* keeps entries of an open transaction */
    assert_int_equal(fixture_find(&box, "fs", "shared", 0), DOCUMENTS);
    assert_int_equal(fixture_find(&box, "fs", "shared", 1), 0);
    fixture_txn(&box, COMMAND_TXN_COMMIT, "t");
    assert_int_equal(count_undo_records(&box), 0);
    maintain(&box);
    assert_int_equal(fixture_find(&box, "fs", "shared", 0), 0);
    assert_int_equal(fixture_find(&box, "fs", "shared", 1), DOCUMENTS);
    fixture_close(&box);
}

static void test_maintenance_purges_entries_after_rollback(void **state)
{
    struct core_fixture box;
    (void)state;

    size_t before = open_with_transaction(&box);
    fixture_txn(&box, COMMAND_TXN_BEGIN, "u"); /* stays open, with its own entries */
    struct command *own = bulk(&box, "u", 2);
    for (size_t i = 0; i < DOCUMENTS; i++)
        own->write.items[i].index = SLICE_LIT("other");
    fixture_run(&box, own, 1);
    size_t others = count_undo_records(&box) / 2;
    fixture_txn(&box, COMMAND_TXN_ROLLBACK, "t");
    maintain(&box);
    assert_int_equal(count_undo_records(&box), others);
    fixture_txn(&box, COMMAND_TXN_ROLLBACK, "u");
    maintain(&box);
    assert_int_equal(count_undo_records(&box), 0);
    assert_int_equal(count_entries(&box), before);
    assert_int_equal(fixture_find(&box, "fs", "shared", 0), DOCUMENTS);
    fixture_close(&box);
}

/* They survive a restart, as their transaction does, and go when a crash of the machine ends it. */
static void test_maintenance_purges_entries_after_crash(void **state)
{
    struct core_fixture box;
    (void)state;

    size_t before = open_with_transaction(&box), records = count_undo_records(&box);
    fixture_reopen(&box);
    fixture_run(&box, command_new(COMMAND_RESTART, DIALECT_7), 1);
    maintain(&box);
    assert_int_equal(count_undo_records(&box), records);
    fixture_run(&box, command_new(COMMAND_MACHINE_LOST, DIALECT_7), 1);
    maintain(&box);
    assert_int_equal(count_undo_records(&box), 0);
    assert_int_equal(count_entries(&box), before);
    fixture_close(&box);
}

/* A request that is rolled back as a whole puts nothing. */
static void test_failed_request_puts_no_provisional_entries(void **state)
{
    struct core_fixture box;
    (void)state;

    open_box(&box);
    box.limits.transaction_changes_max = DOCUMENTS - 1;
    fixture_reopen(&box);
    size_t before = count_entries(&box);
    fixture_txn(&box, COMMAND_TXN_BEGIN, "t");
    struct command *command = bulk(&box, "t", 1);
    command->write.atomic = true;
    command->write.items[DOCUMENTS - 1].op = WRITE_CREATE;
    assert_true(fixture_run(&box, command, 1)->write.rolled_back);
    fixture_run(&box, bulk(&box, "t", 1), 1);
    assert_int_equal(box.last->problem.type, PROBLEM_TRANSACTION_TOO_LARGE);
    assert_int_equal(count_undo_records(&box), 0);
    assert_int_equal(count_entries(&box), before);
    fixture_txn(&box, COMMAND_TXN_COMMIT, "t");
    fixture_close(&box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commit_keeps_provisional_entries),
        cmocka_unit_test(test_maintenance_purges_entries_after_rollback),
        cmocka_unit_test(test_maintenance_purges_entries_after_crash),
        cmocka_unit_test(test_failed_request_puts_no_provisional_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
