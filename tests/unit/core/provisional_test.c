/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provisional entries of a transaction stay after its commit, and are purged without a trace
 * otherwise, whatever ended the transaction. Method: bulk writes in transactions with different
 * endings, and counts of all entries and undo records.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"
#include "../../lib/maintenance.h"

#include "core/command/command_codec.h"
#include "core/documents/prefetch.h"
#include "core/documents/provisional.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "mapping/entry.h"
#include "mapping/mapping.h"

enum { DOCUMENTS = 600 };

/* Writes all documents, each with a shared field value and a unique one. */
static struct command *bulk(struct core_fixture *fixture, const char *transaction, int shared)
{
    struct command *command = fixture_write_command(fixture, DOCUMENTS);

    for (int i = 0; i < DOCUMENTS; i++) {
        struct slice id = arena_printf(&command->arena, "%d", i);
        struct slice source = arena_printf(&command->arena, "{\"shared\":%d,\"own\":%d}", shared, i);
        command->write.items[i] = fixture_item(WRITE_INDEX, "fs", "", id.data, source.data);
    }
    command->owner.transaction = transaction == NULL ? SLICE_NONE : slice_from(transaction);
    return command;
}

static size_t count_entries(struct core_fixture *fixture)
{
    return fixture_count_keys(fixture, SPACE_ENTRIES, SLICE_NONE, SLICE_NONE);
}

static size_t count_undo_records(struct core_fixture *fixture)
{
    return fixture_count_keys(fixture, SPACE_SYSTEM, SLICE_LIT("A"), SLICE_LIT("B"));
}

/* Runs maintenance until nothing is left to do. */
static void maintain(struct core_fixture *fixture)
{
    size_t removed = 1;

    for (int i = 0; removed > 0; i++) {
        assert_true(i < 100);
        assert_int_equal(run_maintenance(fixture->core, fixture->store, ++fixture->now, 100, &removed), 0);
        assert_true(removed <= 100 + UNDO_RECORD_KEYS_MAX + 1);
    }
}

static void open_box(struct core_fixture *fixture)
{
    fixture_open(fixture);
    fixture_run(fixture, bulk(fixture, NULL, 0), 1);
}

/*
 * Opens a fixture and a transaction `t` that has written every document. Returns: the number of entries
 * before.
 */
static size_t open_with_transaction(struct core_fixture *fixture)
{
    open_box(fixture);
    size_t before = count_entries(fixture);
    fixture_txn(fixture, COMMAND_TXN_BEGIN, "t");
    fixture_run(fixture, bulk(fixture, "t", 1), 1);
    return before;
}

static void test_commit_keeps_provisional_entries(void **state)
{
    struct core_fixture fixture;
    (void)state;

    size_t before = open_with_transaction(&fixture);
    assert_true(count_entries(&fixture) > before);
    assert_int_equal(count_undo_records(&fixture),
                     (count_entries(&fixture) - before + UNDO_RECORD_KEYS_MAX - 1) / UNDO_RECORD_KEYS_MAX);
    maintain(&fixture); /* keeps entries of an open transaction */
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), DOCUMENTS);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 1), 0);
    fixture_txn(&fixture, COMMAND_TXN_COMMIT, "t");
    assert_int_equal(count_undo_records(&fixture), 0);
    maintain(&fixture);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), 0);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 1), DOCUMENTS);
    fixture_close(&fixture);
}

static void test_maintenance_purges_entries_after_rollback(void **state)
{
    struct core_fixture fixture;
    (void)state;

    size_t before = open_with_transaction(&fixture);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "u"); /* stays open, with its own entries */
    struct command *own = bulk(&fixture, "u", 2);
    for (size_t i = 0; i < DOCUMENTS; i++)
        own->write.items[i].index = SLICE_LIT("other");
    fixture_run(&fixture, own, 1);
    size_t others = count_undo_records(&fixture) / 2;
    fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, "t");
    maintain(&fixture);
    assert_int_equal(count_undo_records(&fixture), others);
    fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, "u");
    maintain(&fixture);
    assert_int_equal(count_undo_records(&fixture), 0);
    assert_int_equal(count_entries(&fixture), before);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), DOCUMENTS);
    fixture_close(&fixture);
}

/* They survive a restart, as their transaction does, and go when a crash of the machine ends it. */
static void test_maintenance_purges_entries_after_crash(void **state)
{
    struct core_fixture fixture;
    (void)state;

    size_t before = open_with_transaction(&fixture), records = count_undo_records(&fixture);
    fixture_reopen(&fixture);
    fixture_run(&fixture, command_new(COMMAND_RESTART, DIALECT_7), 1);
    maintain(&fixture);
    assert_int_equal(count_undo_records(&fixture), records);
    fixture_run(&fixture, command_new(COMMAND_MACHINE_LOST, DIALECT_7), 1);
    maintain(&fixture);
    assert_int_equal(count_undo_records(&fixture), 0);
    assert_int_equal(count_entries(&fixture), before);
    fixture_close(&fixture);
}

/* A request that is rolled back as a whole puts nothing. */
static void test_failed_request_puts_no_provisional_entries(void **state)
{
    struct core_fixture fixture;
    (void)state;

    open_box(&fixture);
    fixture.limits.transaction_changes_max = DOCUMENTS - 1;
    fixture_reopen(&fixture);
    size_t before = count_entries(&fixture);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    struct command *command = bulk(&fixture, "t", 1);
    command->write.atomic = true;
    command->write.items[DOCUMENTS - 1].op = WRITE_CREATE;
    assert_true(fixture_run(&fixture, command, 1)->write.rolled_back);
    fixture_run(&fixture, bulk(&fixture, "t", 1), 1);
    assert_int_equal(fixture.last->problem.type, PROBLEM_TRANSACTION_TOO_LARGE);
    assert_int_equal(count_undo_records(&fixture), 0);
    assert_int_equal(count_entries(&fixture), before);
    fixture_txn(&fixture, COMMAND_TXN_COMMIT, "t");
    fixture_close(&fixture);
}

/* Puts documents one at a time. Each has eight values. */
static void put_singly(struct core_fixture *fixture, const char *transaction, int count, int shared, unsigned version)
{
    for (int i = 0; i < count; i++) {
        struct command *command = fixture_write_command(fixture, 1);
        struct slice id = arena_printf(&command->arena, "%d", i);
        struct slice source =
            arena_printf(&command->arena, "{\"shared\":%d,\"own\":[%d,1,2,3,4,5,6]}", shared, 100 + i);
        command->version = version;
        command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", id.data, source.data);
        command->owner.transaction = transaction == NULL ? SLICE_NONE : slice_from(transaction);
        assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
    }
}

enum { SINGLES = 100, VALUES = 8, COMMITTED = 40 }; /* entries that the commit may write */

/* Ends a transaction of single writes. Returns: the work of the step. */
static uint64_t end_singles(struct core_fixture *fixture, enum command_type type)
{
    struct command *command = command_new(type, DIALECT_7);
    command->txn.id = SLICE_LIT("t");
    fixture_run(fixture, command, 1);
    return core_step_work(fixture->core);
}

/*
 * The single writes of a transaction put their entries ahead once the commit would have more than a few; in commands
 * before version 16 the commit has all of them. No other reader sees them before it.
 */
static void test_single_writes_put_entries_ahead(void **state)
{
    uint64_t work[2];
    (void)state;

    for (unsigned older = 0; older < 2; older++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        fixture.core->provisional_work = COMMITTED * WORK_ENTRY;
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
        put_singly(&fixture, "t", SINGLES, 1, COMMAND_SINCE_ENTRIES_AHEAD - older);
        assert_int_equal(count_entries(&fixture), older ? 0 : SINGLES * VALUES - COMMITTED);
        assert_int_equal(count_undo_records(&fixture), older ? 0 : SINGLES - COMMITTED / VALUES);
        assert_int_equal(fixture_find(&fixture, "fs", "shared", 1), 0);
        maintain(&fixture); /* keeps those of an open transaction */
        fixture_reopen(&fixture);
        fixture.core->provisional_work = COMMITTED * WORK_ENTRY;
        work[older] = end_singles(&fixture, COMMAND_TXN_COMMIT);
        assert_int_equal(count_undo_records(&fixture), 0);
        maintain(&fixture);
        assert_int_equal(count_entries(&fixture), SINGLES * VALUES);
        assert_int_equal(fixture_find(&fixture, "fs", "shared", 1), SINGLES);
        assert_int_equal(fixture_find(&fixture, "fs", "own", 100 + SINGLES - 1), 1);
        fixture_close(&fixture);
    }
    assert_true(work[1] - work[0] > (uint64_t)(SINGLES * VALUES - 2 * COMMITTED) * WORK_ENTRY);
}

/* A rollback leaves nothing, after maintenance; nor does a write that is refused. */
static void test_rollback_of_single_writes_leaves_nothing(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    put_singly(&fixture, NULL, SINGLES, 0, COMMAND_CODEC_VERSION);
    size_t before = count_entries(&fixture);
    fixture.core->provisional_work = 0;
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    put_singly(&fixture, "t", SINGLES, 1, COMMAND_CODEC_VERSION);
    assert_true(count_entries(&fixture) > before);
    assert_true(end_singles(&fixture, COMMAND_TXN_ROLLBACK) < (uint64_t)SINGLES * WORK_WRITE + WORK_END * 2);
    maintain(&fixture);
    assert_int_equal(count_undo_records(&fixture), 0);
    assert_int_equal(count_entries(&fixture), before);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), SINGLES);
    fixture_close(&fixture);
}

/* A document that a transaction writes again, or deletes, has the entries of its last version. */
static void test_single_writes_again(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    put_singly(&fixture, NULL, SINGLES, 0, COMMAND_CODEC_VERSION);
    fixture.core->provisional_work = 0;
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    put_singly(&fixture, "t", SINGLES, 1, COMMAND_CODEC_VERSION);
    put_singly(&fixture, "t", SINGLES / 2, 2, COMMAND_CODEC_VERSION);
    struct command *command = fixture_write_command(&fixture, 2);
    command->write.items[0] = fixture_item(WRITE_DELETE, "fs", "", "0", NULL);
    command->write.items[1] = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"shared\":3}");
    command->owner.transaction = SLICE_LIT("t");
    fixture_run(&fixture, command, 1);
    end_singles(&fixture, COMMAND_TXN_COMMIT);
    maintain(&fixture);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), 0);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 1), SINGLES - SINGLES / 2);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 2), SINGLES / 2 - 2);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 3), 1);
    assert_int_equal(fixture_find(&fixture, "fs", "own", 100), 0);
    fixture_close(&fixture);
}

/* --- Conversions -------------------------------------------------------------------------------------------------- */

/* Deletes all documents, or replaces them one at a time or together. */
enum change { REPLACE, REPLACE_TOGETHER, DELETE, CHANGES };

/* Deletes all documents, or replaces them, by one bulk. Returns: the command. */
static struct command *change_together(struct core_fixture *fixture, enum change change, unsigned version)
{
    struct command *command = fixture_write_command(fixture, SINGLES);
    for (int i = 0; i < SINGLES; i++) {
        struct slice id = arena_printf(&command->arena, "%d", i);
        command->write.items[i] = change == DELETE ? fixture_item(WRITE_DELETE, "fs", "", id.data, NULL)
                                                   : fixture_item(WRITE_INDEX, "fs", "", id.data, "{\"shared\":1}");
    }
    command->version = version;
    command->owner.transaction = SLICE_LIT("t");
    return fixture_run(fixture, command, 1);
}

static void change_all(struct core_fixture *fixture, enum change change, unsigned version)
{
    if (change == REPLACE)
        put_singly(fixture, "t", SINGLES, 1, version);
    else
        assert_int_equal(change_together(fixture, change, version)->problem.type, PROBLEM_NONE);
}

/* How many entries of the index are single. */
static size_t count_single_entries(struct core_fixture *fixture)
{
    struct store_iter *iter =
        store_iter_new(fixture->store, SPACE_ENTRIES, TL_TS_MAX, SLICE_LIT(""), SLICE_LIT("\xff\xff\xff\xff"));
    size_t count = 0;
    uint64_t batch;
    for (store_iter_seek_first(iter); store_iter_valid(iter); store_iter_next(iter))
        count += !entry_is_posting_list(store_iter_key(iter), &batch);
    assert_int_equal(store_iter_status(iter), 0);
    store_iter_free(iter);
    return count;
}

/*
 * A transaction replaces or deletes documents that were written one at a time. Their single entries are removed by its
 * writes, not by its commit (in commands before version 21 by the commit), and others see no difference before it.
 */
static void test_commit_removes_no_single_entries_of_many_documents(void **state)
{
    (void)state;

    for (int change = 0; change < CHANGES; change++) {
        uint64_t work[2];
        for (unsigned older = 0; older < 2; older++) {
            struct core_fixture fixture;
            fixture_open(&fixture);
            put_singly(&fixture, NULL, SINGLES, 0, COMMAND_CODEC_VERSION);
            assert_int_equal(count_single_entries(&fixture), SINGLES * VALUES);
            tl_ts before = fixture.now;
            fixture.core->provisional_work = 0;
            fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
            change_all(&fixture, (enum change)change, COMMAND_SINCE_ENTRIES_CONVERTED - older);
            assert_int_equal(count_single_entries(&fixture), older ? SINGLES * VALUES : 0);
            assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), SINGLES);
            assert_int_equal(fixture_find(&fixture, "fs", "own", 100 + SINGLES - 1), 1);
            work[older] = end_singles(&fixture, COMMAND_TXN_COMMIT);
            assert_int_equal(count_single_entries(&fixture), 0);
            maintain(&fixture);
            assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), 0);
            assert_int_equal(fixture_find(&fixture, "fs", "shared", 1), change == DELETE ? 0 : SINGLES);
            assert_int_equal(fixture_find_at(&fixture, "fs", "shared", 0, before), SINGLES);
            fixture_close(&fixture);
        }
        assert_true(work[1] - work[0] > (uint64_t)(SINGLES * VALUES - 1) * WORK_ENTRY);
    }
}

/* A request that is undone, since it exceeds the limits of a transaction, converts nothing. */
static void test_failed_request_converts_nothing(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.limits.transaction_changes_max = SINGLES - 1;
    fixture_reopen(&fixture);
    put_singly(&fixture, NULL, SINGLES, 0, COMMAND_CODEC_VERSION);
    fixture.core->provisional_work = 0;
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    struct command *command = change_together(&fixture, REPLACE_TOGETHER, COMMAND_CODEC_VERSION);
    assert_int_equal(command->problem.type, PROBLEM_TRANSACTION_TOO_LARGE);
    assert_int_equal(count_single_entries(&fixture), SINGLES * VALUES);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), SINGLES);
    end_singles(&fixture, COMMAND_TXN_COMMIT);
    fixture_close(&fixture);
}

/* Conversions are work of the items that make them, and divide a bulk. Not in commands before version 21. */
static void test_bulk_is_divided_by_conversions(void **state)
{
    enum { WORK_MAX = 10000 };
    size_t done[2];
    (void)state;

    for (unsigned older = 0; older < 2; older++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        put_singly(&fixture, NULL, SINGLES, 0, COMMAND_CODEC_VERSION);
        fixture.core->provisional_work = 0;
        fixture.core->write_work_max = WORK_MAX;
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
        change_all(&fixture, REPLACE_TOGETHER, COMMAND_SINCE_ENTRIES_CONVERTED - older);
        done[older] = SINGLES - fixture.last->write.postponed_count;
        fixture_close(&fixture);
    }
    assert_in_range(done[0], 1, WORK_MAX / (2 * VALUES * WORK_ENTRY));
    assert_true(done[1] > done[0] + done[0] / 4);
}

/*
 * A rollback leaves the converted documents, with their versions. A document that was read before its conversion is not
 * used: a write would believe that it has single entries.
 */
static void test_rollback_leaves_converted_documents(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    put_singly(&fixture, NULL, SINGLES, 0, COMMAND_CODEC_VERSION);
    tl_ts before = fixture.now;
    fixture.core->provisional_work = 0;
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    change_all(&fixture, REPLACE, COMMAND_CODEC_VERSION);
    end_singles(&fixture, COMMAND_TXN_ROLLBACK);
    maintain(&fixture);
    fixture_reopen(&fixture);
    assert_int_equal(count_single_entries(&fixture), 0);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), SINGLES);
    assert_int_equal(fixture_find(&fixture, "fs", "own", 100), 1);

    fixture.core->provisional_work = 0;
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "u");
    put_singly(&fixture, NULL, SINGLES + 1, 0, COMMAND_CODEC_VERSION); /* the last one has single entries */
    struct command *command = fixture_write_command(&fixture, 1);
    struct view view = {fixture.store, fixture.now, NULL};
    struct slice id = arena_printf(&command->arena, "%d", SINGLES);
    tl_cleanup(catalog_unrefp) struct catalog *catalog = core_catalog(fixture.core);
    const struct catalog_index *index = catalog_index(catalog, SLICE_LIT("fs"));
    struct prefetch *prefetch = prefetch_read(
        &view, index->number, mapping_type(index->mapping, SLICE_LIT("_doc"))->number, id, &command->arena);
    put_singly(&fixture, "u", SINGLES + 1, 1, COMMAND_CODEC_VERSION);
    fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, "u");
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", id.data, "{\"shared\":2,\"own\":[200,1,2,3,4,5,6]}");
    prefetch_attach(command, &command->write.items[0], prefetch);
    assert_int_equal(fixture_run(&fixture, command, 1)->write.results[0].version, 2);
    assert_int_equal(fixture_find(&fixture, "fs", "shared", 2), 1);
    assert_int_equal(fixture_find(&fixture, "fs", "own", 200), 1);
    assert_int_equal(fixture_find_at(&fixture, "fs", "shared", 0, before), SINGLES);
    fixture_close(&fixture);
}

/*
 * A bulk writes a document, deletes it and writes it again, in an index whose deletes do not count: the lists of
 * the bulk have it with its first values. In commands before version 21 it was found by those.
 */
static void test_document_again_after_delete_that_does_not_count(void **state)
{
    (void)state;

    for (unsigned older = 0; older < 2; older++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs", "{\"settings\":{\"index.gc_deletes\":\"-1\"}}");
        struct command *command = bulk(&fixture, NULL, 0);
        command->version = COMMAND_SINCE_DELETES_IN_UNIT - older;
        command->write.items[DOCUMENTS - 2] = fixture_item(WRITE_DELETE, "fs", "", "0", NULL);
        command->write.items[DOCUMENTS - 1] = fixture_item(WRITE_INDEX, "fs", "", "0", "{\"shared\":0,\"own\":7777}");
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->write.results[DOCUMENTS - 1].version, 1);
        assert_int_equal(fixture_find(&fixture, "fs", "own", 0), older);
        assert_int_equal(fixture_find(&fixture, "fs", "own", 7777), 1);
        assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), DOCUMENTS - 2);
        fixture_close(&fixture);
    }
}

/*
 * A document that a bulk of a transaction writes several times has lists in the store for each version, of which the
 * last counts, so that the commit has no entries of it. In commands before version 22 it has single entries.
 */
static void test_document_again_in_a_bulk_of_a_transaction(void **state)
{
    enum { IDS_OF_BULK = DOCUMENTS / 3 };
    uint64_t work[2];
    (void)state;

    for (unsigned older = 0; older < 2; older++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
        struct command *command = bulk(&fixture, "t", 0);
        command->version = COMMAND_SINCE_VALUES_WEIGHED - older;
        for (int i = 0; i < DOCUMENTS; i++)
            command->write.items[i].id = arena_printf(&command->arena, "%d", i % IDS_OF_BULK);
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->write.results[DOCUMENTS - 1].version, 3);
        assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), 0);
        fixture_txn(&fixture, COMMAND_TXN_COMMIT, "t");
        work[older] = core_step_work(fixture.core);
        assert_int_equal(count_single_entries(&fixture), older ? 2 * IDS_OF_BULK : 0);
        maintain(&fixture);
        assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), IDS_OF_BULK);
        assert_int_equal(fixture_find(&fixture, "fs", "own", 0), 0);
        assert_int_equal(fixture_find(&fixture, "fs", "own", IDS_OF_BULK), 0);
        assert_int_equal(fixture_find(&fixture, "fs", "own", 2 * IDS_OF_BULK), 1);
        fixture_close(&fixture);
    }
    assert_in_range(work[1] - work[0], 2 * IDS_OF_BULK * WORK_ENTRY, 3 * IDS_OF_BULK * WORK_ENTRY);
}

/* A record that is large, and has few single entries, is not put again to spare the commit their removal. */
static void test_large_document_of_few_entries_is_not_converted(void **state)
{
    enum { LARGE = 20000 };
    struct core_fixture fixture;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    for (int large = 0; large < 2; large++) {
        fixture_open(&fixture);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs",
                              "{\"mappings\":{\"properties\":{\"rest\":{\"type\":\"object\",\"enabled\":false}}}}");
        buf_clear(&source);
        buf_lit(&source, "{\"shared\":0,\"rest\":{\"text\":\"");
        for (int i = 0; i < (large ? LARGE : 1); i++)
            buf_lit(&source, "x");
        buf_append(&source, "\"}}", sizeof "\"}}");
        assert_int_equal(fixture_index(&fixture, "fs", "1", source.data)->outcome, WRITE_CREATED);
        assert_int_equal(count_single_entries(&fixture), 1);
        fixture.core->provisional_work = 0;
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
        struct command *command = fixture_write_command(&fixture, 1);
        command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"shared\":1}");
        command->owner.transaction = SLICE_LIT("t");
        fixture_run(&fixture, command, 1);
        assert_int_equal(count_single_entries(&fixture), large);
        end_singles(&fixture, COMMAND_TXN_COMMIT);
        maintain(&fixture);
        assert_int_equal(count_single_entries(&fixture), 0);
        assert_int_equal(fixture_find(&fixture, "fs", "shared", 0), 0);
        assert_int_equal(fixture_find(&fixture, "fs", "shared", 1), 1);
        fixture_close(&fixture);
    }
    buf_deinit(&source);
}

/* --- Any order of writes ------------------------------------------------------------------------------------------ */

enum { IDS = 4, FIELDS = 12, NUMBERS = 3 };

/* What the documents have: a number for each field, -1: none. */
struct model {
    int numbers[IDS][FIELDS];
};

static uint32_t draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) % below;
}

/* An item that writes or deletes a document, with an effect in the model. */
static struct write_item any_item(struct command *command, struct model *model, uint32_t *random)
{
    uint32_t id = draw(random, IDS), fields = draw(random, 3) == 0 ? FIELDS : draw(random, 4);
    int *numbers = model->numbers[id];
    struct slice name = arena_printf(&command->arena, "%u", id);
    bool keeps = draw(random, 2) == 0; /* most fields have the number of before */

    if (draw(random, 5) == 0) {
        for (int i = 0; i < FIELDS; i++)
            numbers[i] = -1;
        return fixture_item(WRITE_DELETE, "fs", "", name.data, NULL);
    }
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    for (uint32_t i = 0; i < FIELDS; i++) {
        numbers[i] = i >= fields ? -1 : keeps && numbers[i] >= 0 ? numbers[i] : (int)draw(random, NUMBERS);
        if (numbers[i] >= 0)
            buf_printf(&source, "%c\"f%u\":%d", source.len == 0 ? '{' : ',', i, numbers[i]);
    }
    buf_printf(&source, source.len == 0 ? "{}" : "}");
    struct slice text = arena_copy(&command->arena, buf_as_slice(&source));
    buf_deinit(&source);
    struct write_item item = fixture_item(WRITE_INDEX, "fs", "", name.data, "");
    item.source = text;
    return item;
}

static void assert_as_model(struct core_fixture *fixture, const struct model *model, tl_ts ts)
{
    for (int field = 0; field < FIELDS; field++)
        for (int number = 0; number < NUMBERS; number++) {
            size_t expected = 0;
            char name[10];
            snprintf(name, sizeof(name), "f%d", field);
            for (int id = 0; id < IDS; id++)
                expected += model->numbers[id][field] == number;
            assert_int_equal(fixture_find_at(fixture, "fs", name, number, ts), expected);
        }
}

/*
 * Documents that are written, deleted and written again in requests of one to four items, in transactions and outside,
 * with entries in the commit and ahead of it in any order, have the entries of their last version, at any timestamp.
 */
static void test_any_order_of_writes(void **state)
{
    enum { ROUNDS = 400 };
    static const char every[] = "{\"f0\":0,\"f1\":0,\"f2\":0,\"f3\":0,\"f4\":0,\"f5\":0,\"f6\":0,\"f7\":0,\"f8\":0,"
                                "\"f9\":0,\"f10\":0,\"f11\":0}";
    struct core_fixture fixture;
    struct model committed, before;
    uint32_t random = 1;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "0", every); /* the fields */
    fixture_delete(&fixture, "fs", "0");
    memset(&committed, 0xff, sizeof(committed));
    for (int round = 0; round < ROUNDS; round++) {
        char name[20];
        struct model own = committed;
        tl_ts ts = fixture.now;
        uint32_t requests = draw(&random, 8);
        snprintf(name, sizeof(name), "t%d", round);
        before = committed;
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, name);
        for (uint32_t i = 0; i < requests; i++) {
            struct command *command = fixture_write_command(&fixture, 1 + draw(&random, 4));
            fixture.core->provisional_work = WORK_ENTRY * draw(&random, 30);
            for (size_t item = 0; item < command->write.item_count; item++)
                command->write.items[item] = any_item(command, &own, &random);
            command->owner.transaction = slice_from(name);
            fixture_run(&fixture, command, 1);
            if (draw(&random, 20) == 0)
                fixture_reopen(&fixture);
            assert_as_model(&fixture, &committed, TL_TS_MAX);
        }
        bool commits = draw(&random, 3) > 0;
        fixture_txn(&fixture, commits ? COMMAND_TXN_COMMIT : COMMAND_TXN_ROLLBACK, name);
        committed = commits ? own : committed;
        if (draw(&random, 3) == 0) {
            struct command *command = fixture_write_command(&fixture, 1);
            command->write.items[0] = any_item(command, &committed, &random);
            fixture_run(&fixture, command, 1);
        }
        if (draw(&random, 3) == 0)
            maintain(&fixture);
        assert_as_model(&fixture, &committed, TL_TS_MAX);
        assert_as_model(&fixture, &before, ts);
    }
    maintain(&fixture);
    assert_int_equal(count_undo_records(&fixture), 0);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commit_keeps_provisional_entries),
        cmocka_unit_test(test_maintenance_purges_entries_after_rollback),
        cmocka_unit_test(test_maintenance_purges_entries_after_crash),
        cmocka_unit_test(test_failed_request_puts_no_provisional_entries),
        cmocka_unit_test(test_single_writes_put_entries_ahead),
        cmocka_unit_test(test_rollback_of_single_writes_leaves_nothing),
        cmocka_unit_test(test_single_writes_again),
        cmocka_unit_test(test_commit_removes_no_single_entries_of_many_documents),
        cmocka_unit_test(test_failed_request_converts_nothing),
        cmocka_unit_test(test_bulk_is_divided_by_conversions),
        cmocka_unit_test(test_rollback_leaves_converted_documents),
        cmocka_unit_test(test_large_document_of_few_entries_is_not_converted),
        cmocka_unit_test(test_document_again_after_delete_that_does_not_count),
        cmocka_unit_test(test_document_again_in_a_bulk_of_a_transaction),
        cmocka_unit_test(test_any_order_of_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
