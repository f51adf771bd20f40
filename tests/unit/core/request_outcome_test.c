/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeated requests through core_step() (src/core/README.md, "Repeated requests"): a named write
 * runs once, and a repetition of it is answered with the results of the first time.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/maintenance.h"
#include "../../lib/unit.h"

#include "core/command/command_codec.h"
#include "core/unit/work.h"

static struct command *named(struct core_fixture *fixture, const char *id, uint64_t hash, size_t count)
{
    struct command *command = fixture_write_command(fixture, count);
    command->write.request = (struct write_request){slice_from(id), hash, 0};
    return command;
}

/* A named write of one item. */
static struct command *named_one(struct core_fixture *fixture, const char *id, uint64_t hash, struct write_item item)
{
    struct command *command = named(fixture, id, hash, 1);
    command->write.items[0] = item;
    return command;
}

static struct write_item adding_one(void)
{
    static const struct write_update add = {
        .script_source = SLICE_LIT("ctx._source.n += 1"), .want_source = true, .single = true};
    struct write_item item = fixture_item(WRITE_UPDATE, "fs", "", "1", NULL);
    item.source = SLICE_NONE;
    item.update = &add;
    return item;
}

static void assert_added(struct core_fixture *fixture, int64_t version, const char *source)
{
    const struct write_result *result = &fixture->last->write.results[0];
    assert_int_equal(fixture->last->problem.type, PROBLEM_NONE);
    assert_int_equal(result->outcome, WRITE_UPDATED);
    assert_int_equal(result->version, version);
    assert_true(slice_is(result->source, source));
}

/* Whatever happened to the document since then, also after a checkpoint was loaded. */
static void test_repetition_has_first_results_and_no_effect(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "1", "{\"n\":1}");
    fixture_run(&fixture, named_one(&fixture, "r", 7, adding_one()), 1);
    assert_added(&fixture, 2, "{\"n\":2}");
    fixture_index(&fixture, "fs", "1", "{\"n\":10}");
    for (int i = 0; i < 2; i++) {
        uint64_t digest = fixture_digest(&fixture);
        fixture_run(&fixture, named_one(&fixture, "r", 7, adding_one()), 1);
        assert_added(&fixture, 2, "{\"n\":2}");
        assert_int_equal(fixture_digest(&fixture), digest);
        fixture_reopen(&fixture);
    }
    fixture_run(&fixture, named_one(&fixture, "r2", 7, adding_one()), 1);
    assert_added(&fixture, 4, "{\"n\":11}");
    fixture_close(&fixture);
}

static void test_other_request_with_same_id_is_refused(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_run(&fixture, named_one(&fixture, "r", 7, fixture_item(WRITE_INDEX, "fs", "", "1", "{\"n\":1}")), 1);
    fixture_run(&fixture, named_one(&fixture, "r", 8, fixture_item(WRITE_INDEX, "fs", "", "1", "{\"n\":2}")), 1);
    assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    fixture_run(&fixture, named(&fixture, "r", 7, 2), 1);
    assert_int_equal(fixture.last->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    assert_string_equal(fixture_source(&fixture, "fs", "1"), "{\"n\":1}");

    struct command *part = named_one(&fixture, "r", 7, fixture_item(WRITE_INDEX, "fs", "", "2", "{\"n\":2}"));
    part->write.request.part = 1;
    fixture_run(&fixture, part, 1);
    assert_int_equal(fixture.last->write.results[0].outcome, WRITE_CREATED);
    fixture_close(&fixture);
}

/* A write of which nothing was done leaves no outcome: a repetition runs it. */
static void test_failed_write_runs_again(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "1", "{\"n\":1}");
    for (int atomic = 0; atomic < 2; atomic++) {
        for (int i = 0; i < 2; i++) {
            struct command *command = named(&fixture, atomic ? "all" : "each", 7, 2);
            command->write.atomic = atomic;
            command->write.items[0] = fixture_item(WRITE_CREATE, "fs", "", "1", "{\"n\":2}");
            command->write.items[1] = fixture_item(atomic ? WRITE_INDEX : WRITE_CREATE, "fs", "", "1", "{\"n\":3}");
            fixture_run(&fixture, command, 1);
            assert_int_equal(command->write.results[0].outcome, i == 0 ? WRITE_FAILED : WRITE_CREATED);
            if (i == 0)
                fixture_delete(&fixture, "fs", "1");
        }
        assert_string_equal(fixture_source(&fixture, "fs", "1"), atomic ? "{\"n\":3}" : "{\"n\":2}");
    }
    fixture_close(&fixture);
}

/* The outcome of a bulk has its failed items. The id that a first request generated is in the reply. */
static void test_repetition_has_failures_and_generated_ids(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "1", "{\"n\":1}");
    for (int i = 0; i < 2; i++) {
        struct command *command = named(&fixture, "r", 7, 2);
        command->write.items[0] = fixture_item(WRITE_CREATE, "fs", "", "1", "{\"n\":2}");
        command->write.items[1] = fixture_item(WRITE_CREATE, "fs", "", i == 0 ? "first" : "second", "{\"n\":2}");
        command->write.items[1].id_generated = true;
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->write.results[0].conflict, CONFLICT_EXISTS);
        assert_int_equal(command->write.results[0].problem.type, PROBLEM_VERSION_CONFLICT);
        assert_int_equal(command->write.results[1].outcome, WRITE_CREATED);
        assert_true(i == 0 ? command->write.results[1].id.data == NULL
                           : slice_is(command->write.results[1].id, "first"));
    }
    assert_int_equal(fixture_count(&fixture, "fs"), 2);
    fixture_close(&fixture);
}

/*
 * A bulk whose first item fails in an endless script, so that the second one runs in the next command.
 * A repetition is divided at the same place, also when the script would succeed by now: else it would
 * run the second item again.
 */
static void test_repetition_is_divided_like_first(void **state)
{
    struct core_fixture fixture;
    struct write_update endless = {.script_source = SLICE_LIT("while (ctx._source.endless) { }")};
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "1", "{\"n\":1,\"endless\":true}");
    fixture_index(&fixture, "fs", "2", "{\"n\":1}");
    for (int i = 0; i < 2; i++) {
        struct command *command = named(&fixture, "r", 7, 2);
        command->write.items[0] = adding_one();
        command->write.items[0].update = &endless;
        command->write.items[1] = adding_one();
        command->write.items[1].id = SLICE_LIT("2");
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->write.results[0].outcome, WRITE_FAILED);
        assert_int_equal(command->write.postponed_count, 1);
        assert_true(command->write.results[1].postponed);
        fixture_index(&fixture, "fs", "1", "{\"n\":1,\"endless\":false}");
    }
    fixture_close(&fixture);
}

static size_t outcome_keys(struct core_fixture *fixture)
{
    return fixture_count_keys(fixture, SPACE_SYSTEM, SLICE_LIT("Q"), SLICE_LIT("R")) +
           fixture_count_keys(fixture, SPACE_SYSTEM, SLICE_LIT("q"), SLICE_LIT("r"));
}

/* --- Divided requests --------------------------------------------------------------------------------------------- */

/* Runs the part of request "r" that creates one document. Returns: what became of it. */
static enum write_outcome create_part(struct core_fixture *fixture, uint64_t part, const char *id, unsigned version)
{
    struct command *command = named_one(fixture, "r", 7 + part, fixture_item(WRITE_CREATE, "fs", "", id, "{\"n\":2}"));
    command->write.request.part = part;
    command->write.request.divided = version >= COMMAND_SINCE_DIVIDED_OUTCOMES;
    command->version = version;
    fixture_run(fixture, command, 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    return command->write.results[0].outcome;
}

static enum write_outcome create(struct core_fixture *fixture, uint64_t part, const char *id)
{
    return create_part(fixture, part, id, COMMAND_CODEC_VERSION);
}

static void open_with(struct core_fixture *fixture, const char *id)
{
    fixture_open(fixture);
    fixture_index(fixture, "fs", id, "{\"n\":1}");
}

/*
 * All items of a part fail, the first or a later one. That is its outcome if another part had an effect: a repetition
 * does not run it, though it would succeed by now.
 */
static void test_part_without_effect_is_not_run_again(void **state)
{
    (void)state;
    for (uint64_t failing = 0; failing < 3; failing++) {
        struct core_fixture fixture;
        char ids[3][2] = {"0", "1", "2"};
        open_with(&fixture, ids[failing]);
        for (uint64_t part = 0; part < 3; part++)
            assert_int_equal(create(&fixture, part, ids[part]), part == failing ? WRITE_FAILED : WRITE_CREATED);
        fixture_delete(&fixture, "fs", ids[failing]);
        for (int i = 0; i < 2; i++) {
            uint64_t digest = fixture_digest(&fixture);
            for (uint64_t part = 0; part < 3; part++)
                assert_int_equal(create(&fixture, part, ids[part]), part == failing ? WRITE_FAILED : WRITE_CREATED);
            assert_int_equal(fixture_digest(&fixture), digest);
            fixture_reopen(&fixture);
        }
        assert_null(fixture_source(&fixture, "fs", ids[failing]));
        fixture_close(&fixture);
    }
}

/* As a whole, a request without effect is run again, and its parts have the outcomes of that time. */
static void test_divided_request_without_effect_is_run_again(void **state)
{
    struct core_fixture fixture;
    (void)state;
    open_with(&fixture, "0");
    fixture_index(&fixture, "fs", "1", "{\"n\":1}");
    for (uint64_t part = 0; part < 2; part++)
        assert_int_equal(create(&fixture, part, part == 0 ? "0" : "1"), WRITE_FAILED);
    fixture_delete(&fixture, "fs", "0");
    fixture_delete(&fixture, "fs", "1");
    assert_int_equal(create(&fixture, 0, "0"), WRITE_CREATED);
    assert_int_equal(create(&fixture, 1, "1"), WRITE_CREATED); /* it failed before the first part had an effect */
    fixture_delete(&fixture, "fs", "0");
    assert_int_equal(create(&fixture, 0, "0"), WRITE_CREATED);
    assert_null(fixture_source(&fixture, "fs", "0"));
    fixture_close(&fixture);
}

/* One that ended in the middle, with no effect so far, is run again; the outcomes of that time count. */
static void test_request_without_effect_so_far_is_run_again(void **state)
{
    struct core_fixture fixture;
    (void)state;
    open_with(&fixture, "1");
    fixture_index(&fixture, "fs", "0", "{\"n\":1}");
    assert_int_equal(create(&fixture, 0, "0"), WRITE_FAILED);
    fixture_delete(&fixture, "fs", "0");
    assert_int_equal(create(&fixture, 0, "0"), WRITE_CREATED);
    assert_int_equal(create(&fixture, 1, "1"), WRITE_FAILED);
    fixture_delete(&fixture, "fs", "1");
    assert_int_equal(create(&fixture, 1, "1"), WRITE_FAILED);
    fixture_close(&fixture);
}

/* In commands before version 22 such a part leaves no outcome. */
static void test_older_part_without_effect_is_run_again(void **state)
{
    struct core_fixture fixture;
    unsigned before = COMMAND_SINCE_DIVIDED_OUTCOMES - 1;
    (void)state;
    open_with(&fixture, "0");
    assert_int_equal(create_part(&fixture, 0, "0", before), WRITE_FAILED);
    assert_int_equal(outcome_keys(&fixture), 0);
    assert_int_equal(create_part(&fixture, 1, "1", before), WRITE_CREATED);
    assert_int_equal(outcome_keys(&fixture), 2);
    fixture_delete(&fixture, "fs", "0");
    assert_int_equal(create_part(&fixture, 0, "0", before), WRITE_CREATED);
    fixture_close(&fixture);
}

/* Neither does a request of one command, and maintenance removes all that a divided one has left after an hour. */
static void test_outcomes_of_a_divided_request_are_removed(void **state)
{
    struct core_fixture fixture;
    size_t removed;
    (void)state;
    open_with(&fixture, "0");
    fixture_run(&fixture, named_one(&fixture, "s", 7, fixture_item(WRITE_CREATE, "fs", "", "0", "{}")), 1);
    assert_int_equal(fixture.last->write.results[0].outcome, WRITE_FAILED);
    assert_int_equal(outcome_keys(&fixture), 0);
    for (uint64_t part = 0; part < 3; part++)
        (void)create(&fixture, part, part == 0 ? "0" : part == 1 ? "1" : "2");
    assert_int_equal(outcome_keys(&fixture), 2 * 3 + 3); /* which part had an effect was put twice, by two times */
    fixture.now += CORE_OUTCOME_US + TL_SECOND;
    fixture_delete(&fixture, "fs", "0");
    assert_int_equal(run_maintenance(fixture.core, fixture.store, ++fixture.now, 100, &removed), 0);
    assert_int_equal(outcome_keys(&fixture), 0);
    assert_int_equal(create(&fixture, 0, "0"), WRITE_CREATED);
    fixture_close(&fixture);
}

/* --- Their end ---------------------------------------------------------------------------------------------------- */

/* Outcomes last an hour; maintenance removes them in bounded parts, and not one that was renewed. */
static void test_outcome_lasts_an_hour(void **state)
{
    struct core_fixture fixture;
    struct write_item item = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"n\":1}");
    size_t removed;
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i < 3; i++)
        fixture_run(&fixture, named_one(&fixture, i == 0 ? "a" : i == 1 ? "b" : "c", 7, item), 1);
    assert_int_equal(
        run_maintenance(fixture.core, fixture.store, fixture.now += CORE_OUTCOME_US - TL_SECOND, 100, &removed), 0);
    fixture_run(&fixture, named_one(&fixture, "a", 7, item), 1);
    assert_int_equal(fixture.last->write.results[0].version, 1);
    assert_int_equal(outcome_keys(&fixture), 6);

    assert_int_equal(run_maintenance(fixture.core, fixture.store, fixture.now += 2 * TL_SECOND, 2, &removed), 0);
    assert_int_equal(outcome_keys(&fixture), 4);
    fixture_run(&fixture, named_one(&fixture, "c", 7, item), 1); /* not removed yet, but it does not count */
    assert_int_equal(fixture.last->write.results[0].version, 4);
    assert_int_equal(run_maintenance(fixture.core, fixture.store, ++fixture.now, 100, &removed), 0);
    assert_int_equal(outcome_keys(&fixture), 2);
    fixture_run(&fixture, named_one(&fixture, "c", 7, item), 1);
    assert_int_equal(fixture.last->write.results[0].version, 4);
    fixture_close(&fixture);
}

/*
 * Maintenance reads each record whole, so it counts the bytes: large records are purged one by one,
 * whatever keys a command may remove. A command before version 9 counts keys alone.
 */
static void test_purge_counts_bytes_of_outcomes(void **state)
{
    enum { RECORDS = 4, ITEMS = 2000, KEYS_MAX = 20 };
    struct core_fixture fixture;
    size_t removed;
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i < RECORDS; i++) {
        char id[] = {(char)('a' + i), '\0'};
        struct command *command = named(&fixture, id, 7, ITEMS);
        for (size_t j = 0; j < ITEMS; j++) {
            command->write.items[j] = fixture_item(WRITE_INDEX, "fs", "", "", "{\"n\":1}");
            command->write.items[j].id = arena_printf(&command->arena, "%zu", j);
        }
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
    }
    fixture.now += CORE_OUTCOME_US + TL_SECOND;
    for (size_t left = 2 * RECORDS; left > 2 * (RECORDS - 2); left -= 2) {
        assert_int_equal(run_maintenance(fixture.core, fixture.store, ++fixture.now, KEYS_MAX, &removed), 0);
        assert_true(removed > KEYS_MAX); /* so that the rest is due at once */
        assert_int_equal(outcome_keys(&fixture), left - 2);
    }
    struct command *older = command_new(COMMAND_MAINTAIN, DIALECT_7);
    older->maintain.outcomes = fixture.now;
    older->maintain.keys_max = KEYS_MAX;
    older->version = COMMAND_SINCE_PURGED_BYTES - 1;
    fixture_run(&fixture, older, 1);
    assert_int_equal(older->maintain.removed, 4);
    assert_int_equal(outcome_keys(&fixture), 0);
    fixture_close(&fixture);
}

/*
 * An atomic write in pieces may have more items than one step can write. A repetition reads all of their results in
 * one step, which is bounded (core_fixture.c checks it), and so is the purge of them.
 */
static void test_outcome_of_many_items_is_read_in_bounded_step(void **state)
{
    enum { ITEMS = 20000 };
    struct core_fixture fixture;
    size_t removed;
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i < 2; i++) {
        struct command *command = named(&fixture, "r", 7, ITEMS);
        for (size_t j = 0; j < ITEMS; j++) {
            command->write.items[j] = fixture_item(WRITE_INDEX, "fs", "", "", "{}");
            command->write.items[j].id = arena_printf(&command->arena, "%zu", j);
        }
        command->write.atomic = true;
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        assert_int_equal(command->write.results[ITEMS - 1].outcome, WRITE_CREATED);
        assert_int_equal(command->write.results[ITEMS - 1].version, 1);
    }
    fixture.now += CORE_OUTCOME_US + TL_SECOND;
    assert_int_equal(run_maintenance(fixture.core, fixture.store, fixture.now, 100, &removed), 0);
    assert_int_equal(outcome_keys(&fixture), 0);
    fixture_close(&fixture);
}

/* A named update whose outcome has its document's source, of so many bytes. */
static struct command *named_with_source(const char *id, struct core_fixture *fixture)
{
    static const struct write_update change = {.doc = SLICE_LIT("{\"m\":1}"), .want_source = true, .single = true};
    struct write_item item = fixture_item(WRITE_UPDATE, "fs", "", "1", NULL);
    item.source = SLICE_NONE;
    item.update = &change;
    return named_one(fixture, id, 7, item);
}

/* Returns: the work of the first such update, and of its repetition. */
static void work_of_source(size_t bytes, uint64_t *ret_first, uint64_t *ret_again)
{
    struct core_fixture fixture;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs",
                          "{\"mappings\":{\"properties\":{\"rest\":{\"type\":\"object\",\"enabled\":false}}}}");
    buf_lit(&source, "{\"rest\":{\"text\":\"");
    for (size_t i = 0; i < bytes; i++)
        buf_byte(&source, 'x');
    buf_append(&source, "\"}}", sizeof "\"}}");
    assert_int_equal(fixture_index(&fixture, "fs", "1", source.data)->outcome, WRITE_CREATED);
    /* The first update of a document that was indexed has other work than those after it. */
    fixture_run(&fixture, named_with_source("", &fixture), 1);
    fixture_run(&fixture, named_with_source("r", &fixture), 1);
    assert_int_equal(fixture.last->write.results[0].outcome, WRITE_UPDATED);
    assert_true(fixture.last->write.results[0].source.len > bytes);
    *ret_first = core_step_work(fixture.core);
    fixture_run(&fixture, named_with_source("r", &fixture), 1);
    assert_true(fixture.last->write.results[0].source.len > bytes);
    *ret_again = core_step_work(fixture.core);
    fixture_run(&fixture, named_with_source("", &fixture), 1); /* without an outcome */
    assert_int_equal(fixture.last->write.results[0].outcome, WRITE_UPDATED);
    *ret_first -= core_step_work(fixture.core);
    buf_deinit(&source);
    fixture_close(&fixture);
}

/* The outcome of an update may have a large source: its bytes count where it is put, and where it is read. */
static void test_work_of_an_outcome_is_that_of_its_bytes(void **state)
{
    enum { BYTES = 1 << 20 };
    uint64_t first[2], again[2];
    (void)state;

    for (int i = 0; i < 2; i++)
        work_of_source((size_t)(i + 1) * BYTES, &first[i], &again[i]);
    assert_in_range(first[1] - first[0], BYTES / WORK_READ_BYTES, BYTES / WORK_READ_BYTES + 100);
    assert_in_range(again[1] - again[0], BYTES / WORK_READ_BYTES, BYTES / WORK_READ_BYTES + 100);
}

/* --- Waiting for locks -------------------------------------------------------------------------------------------- */

static void lock_command(struct core_fixture *fixture, enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    command->lock.targets = arena_zalloc(&command->arena, sizeof *command->lock.targets);
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = slice_from(id)};
    command->lock.target_count = 1;
    command->ts = ++fixture->now;
    assert_int_equal(core_step(fixture->core, command, &fixture->effects), 0);
    assert_true(fixture->effects.completed.next == &command->link);
    list_remove(&command->link);
    fixture->now = core_last_ts(fixture->core);
    command_free(command);
}

/* Submits a named bulk for document 1, which is locked, and 2. Returns: the command, which waits. */
static struct command *waiting_bulk(struct core_fixture *fixture, uint64_t number)
{
    struct command *command = named(fixture, "r", 7, 2);
    command->write.items[0] = adding_one();
    command->write.items[1] = adding_one();
    command->write.items[1].id = SLICE_LIT("2");
    command->request = number;
    command->owner.timeout_us = 60 * TL_SECOND;
    command->ts = ++fixture->now;
    assert_int_equal(core_step(fixture->core, command, &fixture->effects), 0);
    assert_true(list_empty(&fixture->effects.completed));
    return command;
}

static void assert_bulk(struct core_fixture *fixture)
{
    struct command *command = list_entry(fixture->effects.completed.next, struct command, link);
    list_remove(&command->link);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    for (int i = 0; i < 2; i++)
        assert_int_equal(command->write.results[i].version, 2);
    command_free(command);
}

/*
 * A named bulk runs in one unit: no item runs while another waits. A repetition that was sent
 * meanwhile waits too, and has the results of the first one.
 */
static void test_repetition_waits_for_first(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index(&fixture, "fs", "1", "{\"n\":1}");
    fixture_index(&fixture, "fs", "2", "{\"n\":1}");
    struct command *open = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    open->session.id = SLICE_LIT("s");
    open->session.ttl_us = 3600 * TL_SECOND;
    fixture_run(&fixture, open, 1);
    lock_command(&fixture, COMMAND_LOCK, "1");
    waiting_bulk(&fixture, 1);
    waiting_bulk(&fixture, 2);
    assert_string_equal(fixture_source(&fixture, "fs", "2"), "{\"n\":1}");
    lock_command(&fixture, COMMAND_UNLOCK, "1");
    assert_bulk(&fixture);
    if (list_empty(&fixture.effects.completed))
        fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 1);
    assert_bulk(&fixture);
    assert_string_equal(fixture_source(&fixture, "fs", "1"), "{\"n\":2}");
    assert_string_equal(fixture_source(&fixture, "fs", "2"), "{\"n\":2}");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repetition_has_first_results_and_no_effect),
        cmocka_unit_test(test_other_request_with_same_id_is_refused),
        cmocka_unit_test(test_failed_write_runs_again),
        cmocka_unit_test(test_repetition_has_failures_and_generated_ids),
        cmocka_unit_test(test_repetition_is_divided_like_first),
        cmocka_unit_test(test_part_without_effect_is_not_run_again),
        cmocka_unit_test(test_divided_request_without_effect_is_run_again),
        cmocka_unit_test(test_request_without_effect_so_far_is_run_again),
        cmocka_unit_test(test_older_part_without_effect_is_run_again),
        cmocka_unit_test(test_outcomes_of_a_divided_request_are_removed),
        cmocka_unit_test(test_outcome_lasts_an_hour),
        cmocka_unit_test(test_purge_counts_bytes_of_outcomes),
        cmocka_unit_test(test_outcome_of_many_items_is_read_in_bounded_step),
        cmocka_unit_test(test_work_of_an_outcome_is_that_of_its_bytes),
        cmocka_unit_test(test_repetition_waits_for_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
