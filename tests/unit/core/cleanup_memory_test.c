/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: while the memory of the host that proposed a command is full, no cleanup action adds an index or a field
 * (src/core/README.md, "Memory as an input"). It is set aside without an effect, and can be retried.
 * Method: sessions end in steps that have the flag of a full memory, and in steps that do not.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>

#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/session/owners.h"
#include "core/step/command_group.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/wait.h"

static void open_session(struct core_fixture *fixture, const char *id, struct write_item *actions, size_t count)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);

    command->session.id = slice_from(id);
    command->session.ttl_us = 10 * TL_SECOND;
    command->session.on_expire = actions;
    command->session.on_expire_count = count;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

static struct command *session_end(const char *id, unsigned version)
{
    struct command *command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);

    command->session.id = slice_from(id);
    command->session.force = true;
    command->version = version;
    return command;
}

static void end_session(struct core_fixture *fixture, const char *id)
{
    assert_int_equal(fixture_run(fixture, session_end(id, COMMAND_CODEC_VERSION), 1)->problem.type, PROBLEM_NONE);
}

static void lock(struct core_fixture *fixture, const char *session, const char *index, const char *id)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);

    command->owner.session = slice_from(session);
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = slice_from(index), .id = slice_from(id)};
    command->lock.target_count = 1;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

static void retry(struct core_fixture *fixture, uint64_t number)
{
    struct command *command = command_new(COMMAND_ASIDE, DIALECT_7);

    command->aside.number = number;
    command->aside.retry = true;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

/* Returns: how many actions are set aside. */
static size_t aside_count(const struct core_fixture *fixture)
{
    size_t count = 0;

    list_for_each(link, &fixture->core->owners->deferred) count += list_entry(link, struct deferred, of_all)->set_aside;
    return count;
}

static bool has_index(const struct core_fixture *fixture, const char *name)
{
    return catalog_index(fixture->core->catalog, slice_from(name)) != NULL;
}

/* Returns: whether the reports so far have a text. */
static bool is_reported(struct core_fixture *fixture, const char *text)
{
    static const char nothing[] = "";
    struct buf report = BUF_INIT(BUF_UNLIMITED);

    core_report(fixture->core, fixture->clock, TL_TS_MAX, &report);
    buf_append(&report, nothing, 1);
    bool found = strstr(report.data, text) != NULL;
    buf_deinit(&report);
    return found;
}

/* Has the index "there", with the field "n" and the document "old". */
static void open_fixture(struct core_fixture *fixture)
{
    fixture_open(fixture);
    assert_int_equal(fixture_index(fixture, "there", "old", "{\"n\":1}")->outcome, WRITE_CREATED);
}

/* --- At the end of a session -------------------------------------------------------------------------------------- */

static void test_actions_that_add_to_catalog_are_set_aside(void **state)
{
    struct core_fixture fixture;
    struct write_item actions[] = {
        fixture_item(WRITE_INDEX, "new", "", "1", "{\"n\":1}"),   /* an index */
        fixture_item(WRITE_INDEX, "there", "", "2", "{\"m\":1}"), /* a field */
        fixture_item(WRITE_INDEX, "there", "", "3", "{\"n\":3}"), /* neither */
        fixture_item(WRITE_DELETE, "there", "", "old", NULL),
        fixture_item(WRITE_INDEX, "typeless", "", "4", "{}"), /* a type */
    };
    (void)state;

    open_fixture(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "typeless", NULL);
    open_session(&fixture, "s", actions, sizeof actions / sizeof *actions);
    fixture.memory_full = true;
    lock(&fixture, "s", "there", "5");
    struct write_item ephemeral = fixture_item(WRITE_INDEX, "there", "", "6", "{\"n\":6}");
    ephemeral.lease = SLICE_LIT("s");
    assert_int_equal(fixture_write_one(&fixture, ephemeral)->outcome, WRITE_CREATED);
    struct catalog *before = core_catalog(fixture.core);
    end_session(&fixture, "s");
    assert_int_equal(aside_count(&fixture), 3);
    assert_ptr_equal(fixture.core->catalog, before);
    catalog_unref(before);
    assert_false(has_index(&fixture, "new"));
    assert_null(fixture_source(&fixture, "there", "2"));
    assert_string_equal(fixture_source(&fixture, "there", "3"), "{\"n\":3}");
    assert_null(fixture_source(&fixture, "there", "old"));
    assert_null(fixture_source(&fixture, "typeless", "4"));
    assert_null(fixture_source(&fixture, "there", "6")); /* documents and locks go as always */
    assert_null(owners_session(fixture.core->owners, SLICE_LIT("s")));
    assert_int_equal(fixture.core->owners->locks.hold_count, 0);
    assert_true(is_reported(&fixture, "[--memory]; it is put aside as number 1"));
    fixture_close(&fixture);
}

static void test_action_is_executed_when_retried_with_memory(void **state)
{
    struct core_fixture fixture;
    struct write_item action = fixture_item(WRITE_INDEX, "new", "", "1", "{\"n\":1}");
    (void)state;

    open_fixture(&fixture);
    open_session(&fixture, "s", &action, 1);
    fixture.memory_full = true;
    end_session(&fixture, "s");
    assert_int_equal(aside_count(&fixture), 1);
    fixture_reopen(&fixture);
    retry(&fixture, 1);
    assert_int_equal(aside_count(&fixture), 1); /* memory is full still */
    assert_false(has_index(&fixture, "new"));
    fixture.memory_full = false;
    retry(&fixture, 1);
    assert_true(list_empty(&fixture.core->owners->deferred));
    assert_string_equal(fixture_source(&fixture, "new", "1"), "{\"n\":1}");
    fixture_close(&fixture);
}

/* A deferred action is executed in the step that releases its lock; that step's flag counts. */
static void test_deferred_action_is_set_aside(void **state)
{
    struct core_fixture fixture;
    struct write_item action = fixture_item(WRITE_INDEX, "there", "", "1", "{\"m\":1}");
    (void)state;

    open_fixture(&fixture);
    open_session(&fixture, "holder", NULL, 0);
    lock(&fixture, "holder", "there", "1");
    open_session(&fixture, "s", &action, 1);
    end_session(&fixture, "s");
    assert_int_equal(aside_count(&fixture), 0);
    assert_false(list_empty(&fixture.core->owners->deferred));
    fixture.memory_full = true;
    end_session(&fixture, "holder");
    assert_int_equal(aside_count(&fixture), 1);
    assert_null(fixture_source(&fixture, "there", "1"));
    assert_int_equal(fixture.core->owners->locks.hold_count, 0);
    assert_true(is_reported(&fixture, "[--memory]; it is put aside as number 1"));
    fixture.memory_full = false;
    retry(&fixture, 1);
    assert_string_equal(fixture_source(&fixture, "there", "1"), "{\"m\":1}");
    fixture_close(&fixture);
}

/* The flag of an expiry is that of its TICK. */
static void test_actions_of_expired_session_are_set_aside(void **state)
{
    struct core_fixture fixture;
    struct write_item action = fixture_item(WRITE_INDEX, "new", "", "1", "{\"n\":1}");
    (void)state;

    open_fixture(&fixture);
    open_session(&fixture, "s", &action, 1);
    fixture.memory_full = true;
    fixture_run(&fixture, command_new(COMMAND_TICK, DIALECT_7), 11 * TL_SECOND);
    assert_null(owners_session(fixture.core->owners, SLICE_LIT("s")));
    assert_int_equal(aside_count(&fixture), 1);
    assert_false(has_index(&fixture, "new"));
    fixture_close(&fixture);
}

/* --- What the flag does not concern ------------------------------------------------------------------------------- */

static void test_writes_of_clients_ignore_flag(void **state)
{
    struct core_fixture fixture;
    (void)state;

    open_fixture(&fixture);
    fixture.memory_full = true;
    assert_int_equal(fixture_index(&fixture, "new", "1", "{\"n\":1}")->outcome, WRITE_CREATED);
    assert_int_equal(fixture_index(&fixture, "there", "1", "{\"m\":1}")->outcome, WRITE_CREATED);
    fixture_close(&fixture);
}

/* A removal that was deferred is executed, whatever the catalog has by then. */
static void test_deferred_removal_ignores_flag(void **state)
{
    struct core_fixture fixture;
    (void)state;

    open_fixture(&fixture);
    open_session(&fixture, "holder", NULL, 0);
    open_session(&fixture, "s", NULL, 0);
    struct write_item ephemeral = fixture_item(WRITE_INDEX, "there", "", "1", "{\"n\":6}");
    ephemeral.lease = SLICE_LIT("s");
    assert_int_equal(fixture_write_one(&fixture, ephemeral)->outcome, WRITE_CREATED);
    lock(&fixture, "holder", "there", "1");
    fixture.memory_full = true;
    end_session(&fixture, "s");
    assert_non_null(fixture_source(&fixture, "there", "1"));
    end_session(&fixture, "holder");
    assert_true(list_empty(&fixture.core->owners->deferred));
    assert_null(fixture_source(&fixture, "there", "1"));
    fixture_close(&fixture);
}

/* Commands of version 24 have no such input: logs of them, whatever their headers say, have one result. */
static void test_older_commands_ignore_flag(void **state)
{
    struct core_fixture fixture;
    struct write_item action = fixture_item(WRITE_INDEX, "new", "", "1", "{\"n\":1}");
    (void)state;

    open_fixture(&fixture);
    open_session(&fixture, "s", &action, 1);
    fixture.memory_full = true;
    fixture_run(&fixture, session_end("s", COMMAND_SINCE_MEMORY_GIVEN - 1), 1);
    assert_int_equal(aside_count(&fixture), 0);
    assert_string_equal(fixture_source(&fixture, "new", "1"), "{\"n\":1}");
    fixture_close(&fixture);
}

/* --- The bound of a step ------------------------------------------------------------------------------------------ */

enum { ACTIONS = 600, FIELDS = 30 };

/* Opens a session whose actions make an index each. */
static void open_session_of_many(struct core_fixture *fixture, const char *id)
{
    struct write_item actions[ACTIONS];
    char names[ACTIONS][8];
    struct buf source = BUF_INIT(BUF_UNLIMITED);

    for (int i = 0; i < FIELDS; i++)
        buf_printf(&source, "%s\"f%d\":1", i == 0 ? "{" : ",", i);
    buf_append(&source, "}", sizeof "}");
    for (int i = 0; i < ACTIONS; i++) {
        snprintf(names[i], sizeof names[i], "i%d", i);
        actions[i] = fixture_item(WRITE_INDEX, names[i], "", "1", source.data);
    }
    open_session(fixture, id, actions, ACTIONS);
    buf_deinit(&source);
}

/*
 * What actions add in the steps of one flag is bounded, also if each makes a mapping of few fields: the steps are,
 * which the fixture checks.
 */
static void test_actions_that_make_many_mappings_take_bounded_steps(void **state)
{
    struct core_fixture fixture;
    int ticks = 0;
    (void)state;

    open_fixture(&fixture);
    open_session_of_many(&fixture, "s");
    fixture_give(&fixture, session_end("s", COMMAND_CODEC_VERSION));
    assert_true(has_index(&fixture, "i100") && !has_index(&fixture, "i450"));
    fixture.memory_full = true; /* the rest is set aside */
    for (; core_next_deadline(fixture.core) == 0; ticks++)
        fixture_tick(&fixture);
    assert_in_range(ticks, 1, 3);
    assert_in_range(aside_count(&fixture), ACTIONS - 450, ACTIONS - 101);
    assert_false(has_index(&fixture, "i599"));
    assert_null(owners_session(fixture.core->owners, SLICE_LIT("s")));
    assert_true(fixture_free_completed(&fixture) > 0);
    fixture_close(&fixture);
}

static void test_actions_of_older_version_make_mappings_without_cost(void **state)
{
    struct core_fixture fixture;
    (void)state;

    open_fixture(&fixture);
    open_session_of_many(&fixture, "s");
    fixture.unbounded = true;
    fixture_give(&fixture, session_end("s", COMMAND_SINCE_ACTIONS_WEIGHED - 1));
    assert_true(core_step_work(fixture.core) > CORE_STEP_WORK);
    assert_true(has_index(&fixture, "i450"));
    while (core_next_deadline(fixture.core) == 0)
        fixture_tick(&fixture);
    assert_true(fixture_free_completed(&fixture) > 0);
    fixture_close(&fixture);
}

/* --- The input ---------------------------------------------------------------------------------------------------- */

/* Applies the end of a session as a group. */
static void end_by_group(struct core_fixture *fixture, const char *session, bool memory_full)
{
    struct list commands = LIST_INIT(commands);
    struct command *command = session_end(session, COMMAND_CODEC_VERSION);
    struct command_group_header head = {.ts = ++fixture->now, .clock = fixture->clock, .memory_full = memory_full};

    list_append(&commands, &command->link);
    assert_int_equal(command_group_apply(fixture->core, &head, &commands, &fixture->effects), 0);
    fixture->now = core_last_ts(fixture->core);
    command_free_all(&fixture->effects.completed);
}

static void test_group_gives_flag_to_its_commands(void **state)
{
    struct core_fixture fixture;
    struct write_item first = fixture_item(WRITE_INDEX, "first", "", "1", "{\"n\":1}");
    struct write_item second = fixture_item(WRITE_INDEX, "second", "", "1", "{\"n\":1}");
    (void)state;

    open_fixture(&fixture);
    open_session(&fixture, "s", &first, 1);
    open_session(&fixture, "t", &second, 1);
    end_by_group(&fixture, "s", true);
    end_by_group(&fixture, "t", false);
    assert_int_equal(aside_count(&fixture), 1);
    assert_false(has_index(&fixture, "first"));
    assert_true(has_index(&fixture, "second"));
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_actions_that_add_to_catalog_are_set_aside),
        cmocka_unit_test(test_action_is_executed_when_retried_with_memory),
        cmocka_unit_test(test_deferred_action_is_set_aside),
        cmocka_unit_test(test_actions_of_expired_session_are_set_aside),
        cmocka_unit_test(test_writes_of_clients_ignore_flag),
        cmocka_unit_test(test_deferred_removal_ignores_flag),
        cmocka_unit_test(test_older_commands_ignore_flag),
        cmocka_unit_test(test_actions_that_make_many_mappings_take_bounded_steps),
        cmocka_unit_test(test_actions_of_older_version_make_mappings_without_cost),
        cmocka_unit_test(test_group_gives_flag_to_its_commands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
