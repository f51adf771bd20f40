/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the values of documents count as work also where they get no entries of their own: of documents that are put
 * again unchanged, that are refused, or with which an update merges nothing; and a bulk is divided before an item that
 * would probably exceed the step (src/core/README.md, "The work of a step").
 * Method: bulks of documents with thousands of numbers, in a core whose fixture fails if a step is not bounded. Each
 * bulk also as a command of version 21, which counts the bytes.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>

#include "base/buf.h"
#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "json/json.h"

enum { OLDER = COMMAND_SINCE_VALUES_WEIGHED - 1, EQUALS = 20000, DOCUMENTS = 30 };

/* Returns: {"n":[...]} with numbers, equal or different ones, and `rest` after them. */
static struct slice numbers(struct arena *arena, int count, bool equal, const char *rest)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);

    buf_lit(&buf, "{\"n\":[1");
    for (int i = 1; i < count; i++)
        buf_printf(&buf, ",%d", equal ? 1 : i + 1);
    buf_printf(&buf, "%s]}", rest);
    struct slice text = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return text;
}

/* Returns: a new write of one operation to `count` documents from `first` on, in the form of a version. */
static struct command *writes(struct core_fixture *fixture, unsigned version, enum write_op op, int first, int count,
                              struct slice source)
{
    struct command *command = fixture_write_command(fixture, (size_t)count);

    command->version = version;
    for (int i = 0; i < count; i++) {
        struct write_item *item = &command->write.items[i];
        *item = fixture_item(op, "v", "", NULL, NULL);
        item->id = arena_printf(&command->arena, "%d", first + i);
        item->dialect = fixture->dialect;
        item->source = source.data == NULL ? SLICE_NONE : arena_copy(&command->arena, source);
    }
    return command;
}

static void put_equals(struct core_fixture *fixture, struct arena *arena)
{
    struct slice source = numbers(arena, EQUALS, true, "");

    for (int i = 0; i < DOCUMENTS; i++) {
        fixture_run(fixture, writes(fixture, COMMAND_CODEC_VERSION, WRITE_INDEX, i, 1, source), 1);
        assert_int_equal(fixture->last->write.results->outcome, WRITE_CREATED);
    }
}

static void make_index(struct core_fixture *fixture)
{
    fixture_index_command(
        fixture, COMMAND_INDEX_CREATE, "v",
        "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"},\"n\":{\"type\":\"integer\"}}}}");
    assert_int_equal(fixture->last->problem.type, PROBLEM_NONE);
}

/* Runs a bulk of all documents. Returns: how many items it has carried out, with that outcome. */
static int run_bulk(struct core_fixture *fixture, struct command *command, enum write_outcome outcome)
{
    int done = DOCUMENTS;

    fixture->unbounded = command->version == OLDER;
    fixture_run(fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    done -= (int)command->write.postponed_count;
    for (int i = 0; i < done; i++) {
        assert_int_equal(command->write.results[i].outcome, outcome);
        assert_false(command->write.results[i].postponed);
    }
    return done;
}

/* Locks a document that there is not, so that writes have to find their locks. */
static void lock_another(struct core_fixture *fixture)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);

    command->session.id = SLICE_LIT("s");
    command->session.ttl_us = TL_SECOND;
    fixture_run(fixture, command, 1);
    command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    command->lock.targets = arena_zalloc(&command->arena, sizeof *command->lock.targets);
    command->lock.target_count = 1;
    *command->lock.targets = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("v"), .id = SLICE_LIT("none")};
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

/* A document of equal numbers has one entry, and if it is put again unchanged none is written: both count values. */
static void test_unchanged_documents_count_their_values(void **state)
{
    struct core_fixture fixture;
    struct arena arena = ARENA_INIT;
    (void)state;

    fixture_open(&fixture);
    make_index(&fixture);
    put_equals(&fixture, &arena);
    assert_in_range(core_step_work(fixture.core), EQUALS, CORE_STEP_WORK);
    struct slice source = numbers(&arena, EQUALS, true, "");
    int done =
        run_bulk(&fixture, writes(&fixture, COMMAND_CODEC_VERSION, WRITE_INDEX, 0, DOCUMENTS, source), WRITE_UPDATED);
    assert_in_range(done, 2, DOCUMENTS - 1);
    assert_in_range(core_step_work(fixture.core), done * EQUALS, CORE_STEP_WORK);
    assert_int_equal(run_bulk(&fixture, writes(&fixture, OLDER, WRITE_INDEX, 0, DOCUMENTS, source), WRITE_UPDATED),
                     DOCUMENTS);
    fixture_close(&fixture);
    arena_deinit(&arena);
}

/* Documents that are refused for their last value count the values before it. */
static void test_refused_documents_count_their_values(void **state)
{
    struct core_fixture fixture;
    struct arena arena = ARENA_INIT;
    (void)state;

    fixture_open(&fixture);
    make_index(&fixture);
    struct slice source = numbers(&arena, EQUALS, true, ",\"no number\"");
    int done =
        run_bulk(&fixture, writes(&fixture, COMMAND_CODEC_VERSION, WRITE_INDEX, 0, DOCUMENTS, source), WRITE_FAILED);
    assert_in_range(done, 2, DOCUMENTS - 1);
    assert_int_equal(run_bulk(&fixture, writes(&fixture, OLDER, WRITE_INDEX, 0, DOCUMENTS, source), WRITE_FAILED),
                     DOCUMENTS);
    fixture_close(&fixture);
    arena_deinit(&arena);
}

/*
 * A document with a new field has the mapping copied, also if it is refused since there are too many, and while locks
 * are looked for.
 */
static void test_copies_of_a_mapping_count_their_fields(void **state)
{
    enum { FIELDS = 1000 };
    struct core_fixture fixture;
    struct arena arena = ARENA_INIT;
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    buf_lit(&body, "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}");
    for (int i = 1; i < FIELDS; i++)
        buf_printf(&body, ",\"f%d\":{\"type\":\"byte\"}", i);
    buf_lit(&body, "}}}");
    buf_byte(&body, 0);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "v", (const char *)body.data);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    for (int locked = 0; locked < 2; locked++) {
        if (locked)
            lock_another(&fixture);
        struct slice source = SLICE_LIT("{\"path\":\"/a\",\"new\":1}");
        int done = run_bulk(&fixture, writes(&fixture, COMMAND_CODEC_VERSION, WRITE_INDEX, 0, DOCUMENTS, source),
                            WRITE_FAILED);
        assert_in_range(done, 2, DOCUMENTS - 1);
        assert_in_range(core_step_work(fixture.core), (uint64_t)(done * FIELDS) * WORK_FIELD, CORE_STEP_WORK);
        assert_int_equal(run_bulk(&fixture, writes(&fixture, OLDER, WRITE_INDEX, 0, DOCUMENTS, source), WRITE_FAILED),
                         DOCUMENTS);
    }
    fixture_close(&fixture);
    buf_deinit(&body);
    arena_deinit(&arena);
}

static struct command *updates(struct core_fixture *fixture, unsigned version, const struct write_update *update)
{
    struct command *command = writes(fixture, version, WRITE_UPDATE, 0, DOCUMENTS, SLICE_NONE);

    for (int i = 0; i < DOCUMENTS; i++)
        command->write.items[i].update = update;
    return command;
}

/* Updates that merge what the documents have already, or whose script does nothing, count the values that they read. */
static void test_updates_without_effect_count_their_values(void **state)
{
    struct core_fixture fixture;
    struct arena arena = ARENA_INIT;
    (void)state;

    fixture_open(&fixture);
    make_index(&fixture);
    put_equals(&fixture, &arena);
    const struct write_update of_both[] = {{.doc = numbers(&arena, EQUALS, true, ""), .detect_noop = true},
                                           {.script_source = SLICE_LIT("ctx.op = 'none'")}};
    for (int i = 0; i < 2; i++) {
        int done = run_bulk(&fixture, updates(&fixture, COMMAND_CODEC_VERSION, &of_both[i]), WRITE_NOOP);
        assert_in_range(done, 2, DOCUMENTS - 1);
        assert_in_range(core_step_work(fixture.core), done * EQUALS, CORE_STEP_WORK);
        assert_in_range(run_bulk(&fixture, updates(&fixture, OLDER, &of_both[i]), WRITE_NOOP), done + 1, DOCUMENTS);
    }
    fixture_close(&fixture);
    arena_deinit(&arena);
}

/*
 * A bulk is divided before an item that would probably exceed the step: each command has one document of 30,000
 * numbers, since two of them are more than a step. It follows from the bytes of the command, so it is the same
 * whether the submitter has parsed the sources, as on its own host, or not, as in a replay. A source that is no
 * JSON fails alone.
 */
static void test_bulk_is_divided_before_an_item_that_exceeds_the_step(void **state)
{
    enum { NUMBERS = 30000, ITEMS = 3 };
    struct core_fixture fixture;
    struct arena arena = ARENA_INIT;
    struct slice source = numbers(&arena, NUMBERS, false, ""), broken = numbers(&arena, NUMBERS, false, ",");
    (void)state;

    for (int parsed = 0; parsed < 2; parsed++) {
        struct json_doc json;
        struct problem problem;
        fixture_open(&fixture);
        make_index(&fixture);
        assert_int_equal(json_parse(&arena, source, DIALECT_7, JSON_DOCUMENT, &json, &problem), 0);
        for (int left = ITEMS; left > 0; left--) {
            struct command *command = writes(&fixture, COMMAND_CODEC_VERSION, WRITE_INDEX, ITEMS - left, left, source);
            for (int i = 0; i < left && parsed == 1; i++)
                command->write.items[i].parsed = &json;
            if (left == ITEMS) /* also items that are less than what the step has left, so that the order is kept */
                command->write.items[left - 1].source = SLICE_LIT("{}");
            fixture_run(&fixture, command, 1);
            assert_int_equal(command->write.postponed_count, left - 1);
            assert_int_equal(command->write.results->outcome, WRITE_CREATED);
        }
        struct command *command = writes(&fixture, COMMAND_CODEC_VERSION, WRITE_INDEX, ITEMS, ITEMS, source);
        command->write.items[0].source = SLICE_LIT("{}");
        command->write.items[1].source = broken;
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->write.postponed_count, 0);
        assert_int_equal(command->write.results[1].problem.type, PROBLEM_MAPPER_PARSING);
        assert_int_equal(command->write.results[2].outcome, WRITE_CREATED);
        fixture.unbounded = true;
        fixture_run(&fixture, command = writes(&fixture, OLDER, WRITE_INDEX, 2 * ITEMS, ITEMS, source), 1);
        assert_int_equal(command->write.postponed_count, 1);
        fixture_close(&fixture);
    }
    arena_deinit(&arena);
}

/*
 * An atomic write of a transaction is not divided but refused, so the work that it does counts: here less than half of
 * a step, while its second document would be more than one if each of its values had an entry.
 */
static void test_atomic_write_of_a_transaction_goes_by_its_work(void **state)
{
    enum { NUMBERS = 60000 };
    struct core_fixture fixture;
    struct arena arena = ARENA_INIT;
    struct slice source = numbers(&arena, NUMBERS, false, "");
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "v",
                          "{\"mappings\":{\"properties\":{\"n\":{\"type\":\"integer\",\"index\":false,"
                          "\"doc_values\":false}}}}");
    for (int large = 0; large < 2; large++) {
        const char *id = large == 0 ? "t0" : "t1";
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, id);
        struct command *command = writes(&fixture, COMMAND_CODEC_VERSION, WRITE_INDEX, 0, 2, SLICE_LIT("{\"n\":1}"));
        command->write.items[large].source = arena_copy(&command->arena, source);
        command->write.atomic = true;
        command->owner.transaction = slice_from(id);
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        assert_int_equal(command->write.results[1].outcome, WRITE_CREATED);
        assert_in_range(core_step_work(fixture.core), NUMBERS, CORE_STEP_WORK / 2);
        fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, id);
    }
    fixture_close(&fixture);
    arena_deinit(&arena);
}

/* Finding the locks of an update keeps the merged source: a write with locks reads its values once, as one without. */
static void test_merge_of_a_write_with_locks_is_done_once(void **state)
{
    struct core_fixture fixture;
    struct arena arena = ARENA_INIT;
    struct write_update update = {.doc = SLICE_LIT("{\"m\":7}"), .detect_noop = true, .want_source = true};
    uint64_t work[2];
    (void)state;

    fixture_open(&fixture);
    make_index(&fixture);
    put_equals(&fixture, &arena);
    for (int locked = 0; locked < 2; locked++) {
        if (locked)
            lock_another(&fixture);
        for (int again = 0; again < 2; again++) { /* changes the document, then nothing */
            struct command *command = updates(&fixture, COMMAND_CODEC_VERSION, &update);
            command->write.item_count = 1;
            command->write.items->id = arena_printf(&command->arena, "%d", locked);
            fixture_run(&fixture, command, 1);
            assert_int_equal(command->write.results->outcome, again == 0 ? WRITE_UPDATED : WRITE_NOOP);
            struct slice result = command->write.results->source, end = SLICE_LIT("],\"m\":7}");
            assert_true(result.len > end.len);
            assert_memory_equal(result.data + result.len - end.len, end.data, end.len);
        }
        work[locked] = core_step_work(fixture.core);
    }
    /* Finding locks visits the values of both versions, the items of the array and the numbers. */
    assert_in_range(work[1] - work[0], 4 * EQUALS / WORK_VISITS, 5 * EQUALS / WORK_VISITS);
    fixture_close(&fixture);
    arena_deinit(&arena);
}

/* A bulk of texts that many filters change is divided, unless the command is older; so is one that replaces them. */
static void test_filters_divide_a_bulk(void **state)
{
    enum { BYTES = 30000, MOST = COMMAND_CODEC_VERSION };
    struct core_fixture fixture;
    struct arena arena = ARENA_INIT;
    struct buf body = BUF_INIT(BUF_UNLIMITED), source = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    buf_lit(&body, "{\"settings\":{\"analysis\":{\"analyzer\":{\"x\":{\"tokenizer\":\"keyword\",\"filter\":[");
    for (int i = 0; i < 16; i++)
        buf_printf(&body, "%s\"reverse\"", i == 0 ? "" : ",");
    static const char end[] = "]}}}},\"mappings\":{\"properties\":{\"t\":{\"type\":\"text\",\"analyzer\":\"x\"}}}}";
    buf_append(&body, end, sizeof end);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "v", body.data);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    buf_lit(&source, "{\"t\":\"");
    for (int i = 0; i < BYTES; i += 2)
        buf_lit(&source, "\xc3\xa4");
    buf_lit(&source, "\"}");
    for (int again = 0; again < 2; again++) {
        for (unsigned version = COMMAND_SINCE_FILTERS_BOUNDED - 1; version <= MOST; version++) {
            struct command *command = writes(&fixture, version, WRITE_INDEX, 0, DOCUMENTS, buf_as_slice(&source));
            fixture_run(&fixture, command, 1);
            assert_int_equal(command->write.results[DOCUMENTS - 1].postponed, version >= COMMAND_SINCE_FILTERS_BOUNDED);
        }
    }
    buf_deinit(&body);
    buf_deinit(&source);
    fixture_close(&fixture);
    arena_deinit(&arena);
}

/* Updates by `version` of documents 0 and on, as runs of one bulk. */
static struct command *plain_updates(struct core_fixture *fixture, unsigned version, int count)
{
    static struct write_update update;
    update = (struct write_update){.doc = SLICE_LIT("{\"m\":1}")};
    struct command *command = writes(fixture, version, WRITE_UPDATE, 0, count, SLICE_NONE);

    for (int i = 0; i < count; i++)
        command->write.items[i].update = &update;
    return fixture_run(fixture, command, 1);
}

/* What the patterns of a mapping's _source take in an update divides a bulk, and has a limit; not in old commands. */
static void test_patterns_of_a_mapping_count(void **state)
{
    enum { PATTERNS = 100, NAMES = 1000, PREFIX = 60000, OLD = COMMAND_SINCE_PATTERNS_BOUNDED - 1 };
    struct core_fixture fixture;
    struct buf body = BUF_INIT(BUF_UNLIMITED), source = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    buf_lit(
        &body,
        "{\"mappings\":{\"properties\":{\"o\":{\"type\":\"object\",\"enabled\":false}},\"_source\":{\"excludes\":[");
    for (int i = 0; i < PATTERNS; i++)
        buf_printf(&body, "%s\"*x%d*\"", i == 0 ? "" : ",", i);
    buf_append(&body, "]}}}", sizeof "]}}}");
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "v", body.data);
    assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
    for (int refused = 0; refused < 2; refused++) {
        buf_clear(&source);
        buf_lit(&source, "{\"o\":{\"");
        for (int i = 0; i < PREFIX && refused; i++)
            buf_byte(&source, 'p');
        buf_lit(&source, "\":{\"a\":1");
        for (int i = 0; i < NAMES; i++)
            buf_printf(&source, ",\"name%d\":1", i);
        buf_lit(&source, "}}}");
        fixture_run(
            &fixture,
            writes(&fixture, COMMAND_CODEC_VERSION, WRITE_INDEX, 0, refused ? 1 : DOCUMENTS, buf_as_slice(&source)), 1);
        assert_int_equal(fixture.last->write.results[0].outcome, refused ? WRITE_UPDATED : WRITE_CREATED);
        if (refused) {
            struct command *command = plain_updates(&fixture, COMMAND_CODEC_VERSION, 1);
            assert_int_equal(command->write.results[0].problem.type, PROBLEM_ILLEGAL_ARGUMENT);
            assert_int_equal(plain_updates(&fixture, OLD, 1)->write.results[0].outcome, WRITE_UPDATED);
            continue;
        }
        struct command *command = plain_updates(&fixture, COMMAND_CODEC_VERSION, DOCUMENTS);
        assert_int_equal(command->write.results[0].outcome, WRITE_UPDATED);
        assert_true(command->write.results[DOCUMENTS - 1].postponed);
        command = plain_updates(&fixture, OLD, DOCUMENTS);
        assert_false(command->write.results[DOCUMENTS - 1].postponed);
    }
    buf_deinit(&body);
    buf_deinit(&source);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unchanged_documents_count_their_values),
        cmocka_unit_test(test_refused_documents_count_their_values),
        cmocka_unit_test(test_copies_of_a_mapping_count_their_fields),
        cmocka_unit_test(test_updates_without_effect_count_their_values),
        cmocka_unit_test(test_bulk_is_divided_before_an_item_that_exceeds_the_step),
        cmocka_unit_test(test_atomic_write_of_a_transaction_goes_by_its_work),
        cmocka_unit_test(test_merge_of_a_write_with_locks_is_done_once),
        cmocka_unit_test(test_filters_divide_a_bulk),
        cmocka_unit_test(test_patterns_of_a_mapping_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
