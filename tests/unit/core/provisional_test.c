/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: what a transaction puts into the store ahead of its commit is there to stay when it commits, and gone without a trace
 * when it does not, whatever ended it. Method: bulks in transactions, one ending each, and a count of all entries and notes.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"
#include "../../lib/maintenance.h"

#include "core/documents/provisional.h"

enum { DOCUMENTS = 600 };

/* All documents, each with a number that they share and one of its own. */
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

static size_t entries(struct core_fixture *box)
{
    return fixture_count_keys(box, SPACE_ENTRIES, SLICE_NONE, SLICE_NONE);
}

static size_t notes(struct core_fixture *box)
{
    return fixture_count_keys(box, SPACE_SYSTEM, SLICE_LIT("A"), SLICE_LIT("B"));
}

/* Runs maintenance until there is nothing left to do. */
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

/* Opens a box and, in it, the transaction t, which has written every document. Returns: how many entries were there before. */
static size_t open_with_transaction(struct core_fixture *box)
{
    open_box(box);
    size_t before = entries(box);
    fixture_txn(box, COMMAND_TXN_BEGIN, "t");
    fixture_run(box, bulk(box, "t", 1), 1);
    return before;
}

static void committed_entries_stay(void **state)
{
    struct core_fixture box;
    (void)state;

    size_t before = open_with_transaction(&box);
    assert_true(entries(&box) > before);
    assert_int_equal(notes(&box), (entries(&box) - before + UNDO_RECORD_KEYS_MAX - 1) / UNDO_RECORD_KEYS_MAX);
    maintain(&box); /* leaves those of an open transaction alone */
    assert_int_equal(fixture_find(&box, "fs", "shared", 0), DOCUMENTS);
    assert_int_equal(fixture_find(&box, "fs", "shared", 1), 0);
    fixture_txn(&box, COMMAND_TXN_COMMIT, "t");
    assert_int_equal(notes(&box), 0);
    maintain(&box);
    assert_int_equal(fixture_find(&box, "fs", "shared", 0), 0);
    assert_int_equal(fixture_find(&box, "fs", "shared", 1), DOCUMENTS);
    fixture_close(&box);
}

static void rolled_back_entries_go(void **state)
{
    struct core_fixture box;
    (void)state;

    size_t before = open_with_transaction(&box);
    fixture_txn(&box, COMMAND_TXN_BEGIN, "u"); /* one that stays open, and has its own */
    struct command *own = bulk(&box, "u", 2);
    for (size_t i = 0; i < DOCUMENTS; i++)
        own->write.items[i].index = SLICE_LIT("other");
    fixture_run(&box, own, 1);
    size_t others = notes(&box) / 2;
    fixture_txn(&box, COMMAND_TXN_ROLLBACK, "t");
    maintain(&box);
    assert_int_equal(notes(&box), others);
    fixture_txn(&box, COMMAND_TXN_ROLLBACK, "u");
    maintain(&box);
    assert_int_equal(notes(&box), 0);
    assert_int_equal(entries(&box), before);
    assert_int_equal(fixture_find(&box, "fs", "shared", 0), DOCUMENTS);
    fixture_close(&box);
}

static void entries_go_after_a_restart(void **state)
{
    struct core_fixture box;
    (void)state;

    size_t before = open_with_transaction(&box);
    fixture_reopen(&box);
    fixture_run(&box, command_new(COMMAND_RESTART, DIALECT_7), 1);
    maintain(&box);
    assert_int_equal(notes(&box), 0);
    assert_int_equal(entries(&box), before);
    fixture_close(&box);
}

/* A request that is taken back whole puts nothing. */
static void failed_request_puts_nothing(void **state)
{
    struct core_fixture box;
    (void)state;

    open_box(&box);
    box.limits.transaction_changes_max = DOCUMENTS - 1;
    fixture_reopen(&box);
    size_t before = entries(&box);
    fixture_txn(&box, COMMAND_TXN_BEGIN, "t");
    struct command *command = bulk(&box, "t", 1);
    command->write.atomic = true;
    command->write.items[DOCUMENTS - 1].op = WRITE_CREATE;
    assert_true(fixture_run(&box, command, 1)->write.rolled_back);
    fixture_run(&box, bulk(&box, "t", 1), 1);
    assert_int_equal(box.last->problem.type, PROBLEM_TRANSACTION_TOO_LARGE);
    assert_int_equal(notes(&box), 0);
    assert_int_equal(entries(&box), before);
    fixture_txn(&box, COMMAND_TXN_COMMIT, "t");
    fixture_close(&box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(committed_entries_stay),
        cmocka_unit_test(rolled_back_entries_go),
        cmocka_unit_test(entries_go_after_a_restart),
        cmocka_unit_test(failed_request_puts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
