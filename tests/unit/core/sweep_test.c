/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: posting lists that no document believes are removed, however often bulks replace the same
 * documents, and no other entries. Method: bulks of the same documents, each with a value that they
 * share; maintenance in small and large amounts between and during them; counts of all entries, and
 * of the documents that entries find.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"
#include "../../lib/maintenance.h"

#include "core/unit/unit.h"

enum { DOCUMENTS = 200, STALE_MIN = 50 };

static void open_box(struct core_fixture *fixture)
{
    fixture_open(fixture);
    fixture->limits.stale_documents_min = STALE_MIN;
    fixture_reopen(fixture);
}

/* Documents from..to, each with a number that they share and a unique one. */
static struct command *bulk(struct core_fixture *fixture, int from, int to, int shared)
{
    struct command *command = fixture_write_command(fixture, (size_t)(to - from));

    for (int i = from; i < to; i++) {
        struct slice id = arena_printf(&command->arena, "%d", i);
        struct slice source = arena_printf(&command->arena, "{\"shared\":%d,\"own\":%d}", shared, i);
        command->write.items[i - from] = fixture_item(WRITE_INDEX, "fs", "", id.data, source.data);
    }
    return command;
}

static size_t entries(struct core_fixture *fixture)
{
    return fixture_count_keys(fixture, SPACE_ENTRIES, SLICE_NONE, SLICE_NONE);
}

/* Runs maintenance once. Returns: whether there is more to do. */
static bool maintain(struct core_fixture *fixture, size_t keys_max)
{
    size_t done = 0;

    assert_int_equal(run_maintenance(fixture->core, fixture->store, ++fixture->now, keys_max, &done), 0);
    assert_true(done <= keys_max);
    return done == keys_max;
}

static void maintain_all(struct core_fixture *fixture)
{
    while (maintain(fixture, 1000))
        ;
}

/* Checks that entries find each document by its unique number. */
static void assert_all_found(struct core_fixture *fixture)
{
    for (int i = 0; i < DOCUMENTS; i++)
        assert_int_equal(fixture_find(fixture, "fs", "own", i), 1);
}

static void test_sweep_removes_posting_lists_of_replaced_bulks(void **state)
{
    struct core_fixture fixture;
    (void)state;

    open_box(&fixture);
    fixture_run(&fixture, bulk(&fixture, 0, DOCUMENTS, 0), 1);
    size_t once = entries(&fixture);
    for (int round = 1; round <= 10; round++) {
        fixture_run(&fixture, bulk(&fixture, 0, DOCUMENTS, round), 1);
        tl_ts before = fixture.now;
        maintain_all(&fixture);
        assert_true(entries(&fixture) <= 2 * once);
        assert_int_equal(fixture_find(&fixture, "fs", "shared", round), DOCUMENTS);
        assert_int_equal(fixture_find(&fixture, "fs", "shared", round - 1), 0);
        /* Readers of earlier timestamps still find them */
        assert_int_equal(fixture_find_at(&fixture, "fs", "shared", round, before), DOCUMENTS);
        assert_int_equal(fixture_find_at(&fixture, "fs", "shared", round - 1, before - 1), DOCUMENTS);
        assert_all_found(&fixture);
    }
    fixture_close(&fixture);
}

/* A bulk that adds documents, and one that changes nothing, give no reason to sweep. */
static void test_sweep_is_not_started_without_need(void **state)
{
    struct core_fixture fixture;
    (void)state;

    open_box(&fixture);
    for (int from = 0; from < DOCUMENTS; from += 50)
        fixture_run(&fixture, bulk(&fixture, from, from + 50, 0), 1);
    size_t before = entries(&fixture);
    for (int round = 0; round < 3; round++)
        fixture_run(&fixture, bulk(&fixture, 0, DOCUMENTS, 0), 1);
    assert_false(maintain(&fixture, 1)); /* without a scan */
    assert_int_equal(entries(&fixture), before);
    fixture_close(&fixture);
}

/*
 * After single writes most of a document stays in its posting lists; deleted documents do not need
 * theirs.
 */
static void test_sweep_keeps_posting_list_of_last_document(void **state)
{
    struct core_fixture fixture;
    (void)state;

    open_box(&fixture);
    fixture_run(&fixture, bulk(&fixture, 0, DOCUMENTS, 0), 1);
    fixture_index(&fixture, "fs", "7", "{\"shared\":70,\"own\":7}");
    for (int i = 0; i < 7; i++)
        assert_int_equal(fixture_delete(&fixture, "fs", i == 0 ? "0" : (char[]){(char)('0' + i), 0})->outcome,
                         WRITE_DELETED);
    for (int round = 1; round <= 3; round++)
        fixture_run(&fixture, bulk(&fixture, 8, DOCUMENTS, round), 1);
    maintain_all(&fixture);
    /* In a posting list of the first bulk */
    assert_int_equal(fixture_find(&fixture, "fs", "own", 7), 1);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 70), 1);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 3), DOCUMENTS - 8);
    fixture_index(&fixture, "fs", "7", "{\"shared\":71,\"own\":77}");
    fixture_delete(&fixture, "fs", "7");
    size_t before = entries(&fixture);
    for (int round = 4; round <= 6; round++)
        fixture_run(&fixture, bulk(&fixture, 8, DOCUMENTS, round), 1);
    maintain_all(&fixture);
    assert_true(entries(&fixture) < before);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 6), DOCUMENTS - 8);
    fixture_close(&fixture);
}

/*
 * Provisional entries of an open transaction are kept, although no committed document has their
 * batch.
 */
static void test_sweep_keeps_entries_of_open_transactions(void **state)
{
    struct core_fixture fixture;
    (void)state;

    open_box(&fixture);
    fixture_run(&fixture, bulk(&fixture, 0, DOCUMENTS, 0), 1);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    struct command *own = bulk(&fixture, 0, 100, 99);
    own->owner.transaction = SLICE_LIT("t");
    fixture_run(&fixture, own, 1);
    for (int round = 1; round <= 6; round++) {
        fixture_run(&fixture, bulk(&fixture, 100, DOCUMENTS, round), 1);
        while (maintain(&fixture, 3))
            ;
    }
    fixture_txn(&fixture, COMMAND_TXN_COMMIT, "t");
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 99), 100);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 6), DOCUMENTS - 100);
    assert_all_found(&fixture);
    fixture_close(&fixture);
}

/* A sweep in the smallest parts, with changes of all kinds in between. */
static void test_sweep_continues_during_changes(void **state)
{
    struct core_fixture fixture;
    size_t most = 0;
    (void)state;

    open_box(&fixture);
    for (int round = 0; round < 60; round++) {
        int from = round * 37 % 100;
        fixture_run(&fixture, bulk(&fixture, 0, DOCUMENTS, 0), 1);
        fixture_run(&fixture, bulk(&fixture, from, from + 100, 1), 1);
        fixture_index(&fixture, "fs", "5", round % 2 == 0 ? "{\"shared\":2,\"own\":5}" : "{\"shared\":3,\"own\":5}");
        for (int i = 0; i < 200; i++)
            (void)maintain(&fixture, 1 + (size_t)round % 5);
        assert_all_found(&fixture);
        assert_int_equal(fixture_find(&fixture, "fs", "shared", round % 2 == 0 ? 2 : 3), 1);
        size_t shared = fixture_find(&fixture, "fs", "shared", 0) + fixture_find(&fixture, "fs", "shared", 1);
        assert_int_equal(shared, DOCUMENTS - 1);
        if (round == 20)
            fixture_reopen(&fixture);
        most = entries(&fixture) > most ? entries(&fixture) : most;
    }
    assert_true(most < 12 * DOCUMENTS); /* 60 times as many were written */
    fixture_close(&fixture);
}

/* A sweep ends when its index is deleted. */
static void test_sweep_ends_when_index_is_deleted(void **state)
{
    struct core_fixture fixture;
    (void)state;

    open_box(&fixture);
    for (int round = 0; round < 3; round++)
        fixture_run(&fixture, bulk(&fixture, 0, DOCUMENTS, round), 1);
    assert_true(maintain(&fixture, 5));
    fixture_index_command(&fixture, COMMAND_INDEX_DELETE, "fs", NULL);
    fixture_run(&fixture, bulk(&fixture, 0, DOCUMENTS, 9), 1);
    maintain_all(&fixture);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 9), DOCUMENTS);
    fixture_close(&fixture);
}

/*
 * Each document has a batch of its own, so that no sweep can remember all of them. Those with the lowest never change:
 * the others are replaced again and again.
 */
static void test_sweeps_in_turn_where_batches_are_many(void **state)
{
    enum { ROUNDS = 50, BATCHES_MAX = 64, TURNS = 2 * DOCUMENTS / BATCHES_MAX + 1, UNCHANGED = 100 };
    struct core_fixture fixture;
    (void)state;

    open_box(&fixture);
    fixture.core->provisional_work = 0;
    fixture.core->sweep_batches_max = BATCHES_MAX;
    size_t once = 0;
    for (int round = 0; round < ROUNDS; round++) {
        char id[20];
        snprintf(id, sizeof(id), "t%d", round);
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, id);
        for (int i = round == 0 ? 0 : UNCHANGED; i < DOCUMENTS; i++) {
            struct command *command = bulk(&fixture, i, i + 1, round);
            command->owner.transaction = slice_from(id);
            fixture_run(&fixture, command, 1);
        }
        while (maintain(&fixture, 20))
            ;
        fixture_txn(&fixture, COMMAND_TXN_COMMIT, id);
        maintain_all(&fixture);
        once = round == 0 ? entries(&fixture) : once;
        assert_true(entries(&fixture) <=
                    2 * TURNS * once); /* each turn is due after little more than DOCUMENTS writes */
        assert_int_equal(fixture_find(&fixture, "fs", "shared", round), round == 0 ? DOCUMENTS : DOCUMENTS - UNCHANGED);
        assert_all_found(&fixture);
    }
    assert_int_equal(once, 2 * DOCUMENTS);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep_removes_posting_lists_of_replaced_bulks),
        cmocka_unit_test(test_sweep_is_not_started_without_need),
        cmocka_unit_test(test_sweep_keeps_posting_list_of_last_document),
        cmocka_unit_test(test_sweep_keeps_entries_of_open_transactions),
        cmocka_unit_test(test_sweep_continues_during_changes),
        cmocka_unit_test(test_sweep_ends_when_index_is_deleted),
        cmocka_unit_test(test_sweeps_in_turn_where_batches_are_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
