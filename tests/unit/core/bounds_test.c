/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: what one command does is bounded where its size does not show it: by names that mean many things, by what
 * an index or a mapping has, by what others hold (src/core/README.md, "The work of a step").
 * Method: commands that mean much, in a core whose fixture fails if a step is not bounded; texts made, formats
 * compiled and steps of look-ups are counted. Commands of version 22 keep the effect that they had.
 */
#include "../../lib/bounded.h"
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>
#include <string.h>

#include "core/acquire/lock_resolve.h"
#include "core/catalog/catalog.h"
#include "core/command/catalog_options.h"
#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/lock_history.h"
#include "mapping/date.h"
#include "mapping/mapping.h"

enum { BEFORE = COMMAND_SINCE_NAMES_BOUNDED - 1 };

/* Bytes of texts that were made in arenas. */
static size_t text_bytes;

struct slice __real_arena_vprintf(struct arena *arena, const char *format, va_list arguments);
struct slice __wrap_arena_vprintf(struct arena *arena, const char *format, va_list arguments);

struct slice __wrap_arena_vprintf(struct arena *arena, const char *format, va_list arguments)
{
    struct slice text = __real_arena_vprintf(arena, format, arguments);
    text_bytes += text.len;
    return text;
}

/* Formats of dates that were compiled. */
static size_t formats_compiled;

int __real_date_format_parse(struct arena *arena, struct slice pattern, enum date_rules rules,
                             const struct date_format **ret_format);
int __wrap_date_format_parse(struct arena *arena, struct slice pattern, enum date_rules rules,
                             const struct date_format **ret_format);

int __wrap_date_format_parse(struct arena *arena, struct slice pattern, enum date_rules rules,
                             const struct date_format **ret_format)
{
    formats_compiled++;
    return __real_date_format_parse(arena, pattern, rules, ret_format);
}

/* Records that were read. */
static size_t records_read;

int __real_view_get(const struct view *view, enum store_space space, struct slice key, struct store_value *ret_value);
int __wrap_view_get(const struct view *view, enum store_space space, struct slice key, struct store_value *ret_value);

int __wrap_view_get(const struct view *view, enum store_space space, struct slice key, struct store_value *ret_value)
{
    records_read++;
    return __real_view_get(view, space, key, ret_value);
}

static void open_session(struct core_fixture *fixture, const char *id)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = slice_from(id);
    command->session.ttl_us = 3600 * TL_SECOND;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

/* A LOCK of session `id` for `count` targets. */
static struct command *lock_command(const char *id, size_t count)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = slice_from(id);
    command->lock.targets = arena_zalloc(&command->arena, count * sizeof(struct lock_target));
    command->lock.target_count = count;
    for (size_t i = 0; i < count; i++)
        command->lock.targets[i].mode = LOCK_X;
    return command;
}

/* An UNLOCK of all that session "s" has. */
static struct command *unlock_command(void)
{
    struct command *command = command_new(COMMAND_UNLOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    return command;
}

static enum problem_type lock_document(struct core_fixture *fixture, const char *session, const char *index,
                                       const char *id)
{
    struct command *command = lock_command(session, 1);
    command->lock.targets[0].index = slice_from(index);
    command->lock.targets[0].id = slice_from(id);
    return fixture_run(fixture, command, 1)->problem.type;
}

/* Indices i000, i001 and so on, with these aliases. */
static void make_indices(struct core_fixture *fixture, size_t count, const char *aliases)
{
    char name[24], body[200];
    snprintf(body, sizeof body, "{\"aliases\":%s}", aliases);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "i%03zu", i);
        assert_int_equal(fixture_index_command(fixture, COMMAND_INDEX_CREATE, name, body)->problem.type, PROBLEM_NONE);
    }
}

/* --- Entries ------------------------------------------------------------------------------------------------------ */

/* A bulk has a set of entries for each of its indices. Those that each item passes to find its own one count. */
static void test_sets_of_entries_count(void **state)
{
    enum { INDICES = 200, ITEMS = 2 * INDICES, PASSED = INDICES * (INDICES - 1) };
    uint64_t work[2];
    (void)state;

    for (int old = 0; old < 2; old++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        make_indices(&fixture, INDICES, "{}");
        for (int bulk = 0; bulk < 2; bulk++) { /* the first one makes the mappings */
            struct command *command = fixture_write_command(&fixture, ITEMS);
            for (size_t i = 0; i < ITEMS; i++) {
                struct slice index = arena_printf(&command->arena, "i%03zu", i % INDICES);
                command->write.items[i] = fixture_item(WRITE_INDEX, "", NULL, "", "{\"v\":\"w\"}");
                command->write.items[i].index = index;
                command->write.items[i].id = arena_printf(&command->arena, "%d-%zu", bulk, i);
            }
            command->version = old ? COMMAND_SINCE_ENTRY_SETS_COUNTED - 1 : command->version;
            fixture_run(&fixture, command, 1);
            assert_int_equal(command->write.postponed_count, 0);
        }
        work[old] = core_step_work(fixture.core);
        fixture_close(&fixture);
    }
    assert_in_range(work[0] - work[1], PASSED / WORK_ENTRY_SETS - ITEMS, PASSED / WORK_ENTRY_SETS);
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

/* A text that names all indices of an alias is made for an item when it runs, and for few items of one command. */
static void test_bulk_by_alias_makes_few_texts(void **state)
{
    enum { INDICES = 300, ITEMS = 400 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    make_indices(&fixture, INDICES, "{\"al\":{}}");
    struct command *command = fixture_write_command(&fixture, ITEMS);
    for (size_t i = 0; i < ITEMS; i++) {
        command->write.items[i] = fixture_item(WRITE_INDEX, "al", "t", "1", "{}");
        command->write.items[i].dialect = DIALECT_5;
    }
    text_bytes = 0;
    fixture_run(&fixture, command, 1);
    size_t text = command->write.results[0].problem.reason.len;
    assert_true(text > INDICES * 4);
    assert_in_range(text_bytes, text, (ITEMS + 1) * (text + 200)); /* once for an item */
    fixture_close(&fixture);
}

static struct command *read_of(const char *expression, unsigned version)
{
    static const struct catalog_options options = CATALOG_OPTIONS_DEFAULT;
    struct command *command = command_new(COMMAND_TXN_LOCK, DIALECT_7);
    command->version = version;
    command->owner.transaction = SLICE_LIT("t");
    command->txn_lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->txn_lock.target_count = 1;
    command->txn_lock.targets[0] =
        (struct lock_target){.mode = LOCK_S, .index = slice_from(expression), .expression = &options};
    return command;
}

static enum problem_type outcome_of_read(struct core_fixture *fixture, const char *expression, unsigned version)
{
    struct command *command = fixture_run(fixture, read_of(expression, version), 1);
    core_overlay_unref(command->txn_lock.overlay);
    command->txn_lock.overlay = NULL;
    return command->problem.type;
}

/* The names of one expression take no more than a request for locks may, however often it names them. */
static void test_expression_of_read_is_bounded(void **state)
{
    enum { INDICES = 200, TIMES = 400 };
    struct core_fixture fixture;
    struct buf names = BUF_INIT(BUF_UNLIMITED), wildcards = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    make_indices(&fixture, INDICES, "{\"al\":{}}");
    for (size_t i = 0; i < TIMES; i++) {
        buf_printf(&names, "%sal", i > 0 ? "," : "");
        for (size_t j = 0; j < 40; j++)
            buf_printf(&wildcards, "%si*", i + j > 0 ? "," : "");
    }
    buf_byte(&names, '\0');
    buf_byte(&wildcards, '\0');
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    assert_int_equal(outcome_of_read(&fixture, "al,i*,i1*", COMMAND_CODEC_VERSION), PROBLEM_NONE);
    assert_int_equal(outcome_of_read(&fixture, names.data, COMMAND_CODEC_VERSION), PROBLEM_ILLEGAL_ARGUMENT);
    assert_true(core_step_work(fixture.core) < CORE_STEP_WORK);
    assert_int_equal(outcome_of_read(&fixture, wildcards.data, COMMAND_CODEC_VERSION), PROBLEM_ILLEGAL_ARGUMENT);
    assert_true(core_step_work(fixture.core) < CORE_STEP_WORK);
    assert_int_equal(outcome_of_read(&fixture, wildcards.data, BEFORE), PROBLEM_NONE); /* all of it */
    fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, "t");
    buf_deinit(&names);
    buf_deinit(&wildcards);
    fixture_close(&fixture);
}

/* A comparison with a long name counts as more; in commands before version 26 each counted as one. */
static void test_comparisons_of_read_count_by_bytes(void **state)
{
    enum { INDICES = 50, TIMES = 100 };
    struct core_fixture fixture;
    struct buf wildcards = BUF_INIT(BUF_UNLIMITED);
    char name[CATALOG_NAME_BYTES_MAX + 1];
    uint64_t work[2];
    (void)state;

    fixture_open(&fixture);
    memset(name, 'a', sizeof name);
    for (unsigned i = 0; i < INDICES; i++) {
        snprintf(name + CATALOG_NAME_BYTES_MAX - 2, 3, "%02u", i % 100);
        assert_int_equal(fixture_index_command(&fixture, COMMAND_INDEX_CREATE, name, NULL)->problem.type, PROBLEM_NONE);
    }
    for (size_t i = 0; i < TIMES; i++)
        buf_printf(&wildcards, "%s*baaa*", i > 0 ? "," : "");
    buf_byte(&wildcards, '\0');
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(outcome_of_read(&fixture, wildcards.data, COMMAND_SINCE_PATTERNS_WEIGHED - 1 + i),
                         PROBLEM_NONE);
        work[i] = core_step_work(fixture.core);
    }
    assert_in_range(work[1] - work[0], 10 * INDICES * TIMES, 14 * INDICES * TIMES); /* 1.3 us each */
    fixture_txn(&fixture, COMMAND_TXN_ROLLBACK, "t");
    buf_deinit(&wildcards);
    fixture_close(&fixture);
}

/* Readers, too, compare the names of one expression with so many names at most. */
static void test_expression_has_a_limit(void **state)
{
    enum { INDICES = 300 };
    struct core_fixture fixture;
    struct buf expression = BUF_INIT(BUF_UNLIMITED);
    struct catalog_options options = CATALOG_OPTIONS_DEFAULT;
    struct catalog_target *targets;
    struct arena arena = ARENA_INIT;
    struct problem problem = {0};
    size_t count;
    (void)state;

    fixture_open(&fixture);
    make_indices(&fixture, INDICES, "{}");
    struct catalog *catalog = core_catalog(fixture.core);
    for (uint64_t looks = 0; looks <= CATALOG_LOOKS_MAX; looks += INDICES)
        buf_printf(&expression, "%si*", looks > 0 ? "," : "");
    assert_int_equal(
        catalog_resolve(catalog, SLICE_LIT("i*,-i1*,i1"), &options, DIALECT_7, &arena, &targets, &count, &problem),
        CATALOG_REFUSED); /* there is no i1 */
    assert_int_equal(problem.type, PROBLEM_INDEX_NOT_FOUND);
    assert_int_equal(
        catalog_resolve(catalog, buf_as_slice(&expression), &options, DIALECT_7, &arena, &targets, &count, &problem),
        CATALOG_REFUSED);
    assert_int_equal(problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    catalog_unref(catalog);
    arena_deinit(&arena);
    buf_deinit(&expression);
    fixture_close(&fixture);
}

static struct command *removals(size_t count, size_t distinct, unsigned version)
{
    struct command *command = command_new(COMMAND_ALIASES_UPDATE, DIALECT_7);
    command->version = version;
    command->aliases.actions = arena_zalloc(&command->arena, count * sizeof(struct alias_action));
    command->aliases.action_count = count;
    for (size_t i = 0; i < count; i++)
        command->aliases.actions[i] = (struct alias_action){
            .op = ALIAS_REMOVE_INDEX, .index = arena_printf(&command->arena, "i%03zu", i % distinct)};
    return command;
}

/* The locks of a request that removes one index many times are not found for each time. */
static void test_locks_of_aliases_are_bounded(void **state)
{
    enum { ALIASES = 200, TIMES = 1000 };
    struct core_fixture fixture;
    struct buf aliases = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    buf_lit(&aliases, "{\"aliases\":{");
    for (size_t i = 0; i < ALIASES; i++)
        buf_printf(&aliases, "%s\"l%zu\":{}", i > 0 ? "," : "", i);
    buf_append(&aliases, "}}", sizeof "}}");
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "i000", aliases.data);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "other", NULL);
    open_session(&fixture, "s");
    assert_int_equal(lock_document(&fixture, "s", "other", "1"), PROBLEM_NONE);
    assert_int_equal(fixture_run(&fixture, removals(TIMES, 1, COMMAND_CODEC_VERSION), 1)->problem.type,
                     PROBLEM_ILLEGAL_ARGUMENT);
    assert_int_equal(fixture_run(&fixture, removals(TIMES, 1, BEFORE), 1)->problem.type, PROBLEM_INDEX_NOT_FOUND);
    assert_int_equal(fixture_run(&fixture, removals(1, 1, COMMAND_CODEC_VERSION), 1)->problem.type, PROBLEM_NONE);
    buf_deinit(&aliases);
    fixture_close(&fixture);
}

/* --- Types of one document ---------------------------------------------------------------------------------------- */

static void make_typed_index(struct core_fixture *fixture)
{
    fixture->dialect = DIALECT_5;
    assert_int_equal(
        fixture_index_command(fixture, COMMAND_INDEX_CREATE, "fs", "{\"mappings\":{\"t\":{}}}")->problem.type,
        PROBLEM_NONE);
    fixture->dialect = DIALECT_7;
}

/* Makes an index "fs" of 5.x with the types "t" and t0 to t`count` - 1. */
static void make_index_of_types(struct core_fixture *fixture, size_t count)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&body, "{\"mappings\":{\"t\":{}");
    for (size_t i = 0; i < count; i++)
        buf_printf(&body, ",\"t%zu\":{}", i);
    buf_append(&body, "}}", sizeof "}}");
    fixture->dialect = DIALECT_5;
    assert_int_equal(fixture_index_command(fixture, COMMAND_INDEX_CREATE, "fs", body.data)->problem.type, PROBLEM_NONE);
    fixture->dialect = DIALECT_7;
    buf_deinit(&body);
}

/* A LOCK of document "x" by the types from t`first` on. */
static struct command *lock_types(size_t first, size_t count, unsigned version)
{
    struct command *command = lock_command("s", count);
    command->version = version;
    for (size_t i = 0; i < count; i++) {
        struct lock_target *target = &command->lock.targets[i];
        target->index = SLICE_LIT("fs");
        target->type = arena_printf(&command->arena, "t%zu", first + i);
        target->id = SLICE_LIT("x");
    }
    return command;
}

/* Runs a LOCK of document "x" by types. Returns: the type of its problem. */
static enum problem_type lock_types_of(struct core_fixture *fixture, const char *session, size_t first, size_t count)
{
    struct command *command = lock_types(first, count, COMMAND_CODEC_VERSION);
    command->owner.session = slice_from(session);
    return fixture_run(fixture, command, 1)->problem.type;
}

/*
 * A document is locked by so many types that its index does not have. Before, by any number; finding one takes no
 * longer then. What a session holds it may ask for again.
 */
static void test_types_of_one_document_are_bounded(void **state)
{
    enum { MOST = 100, STORED = 1, MANY = 3000, LOOKS = 20 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.unbounded = true; /* for the older command alone */
    make_typed_index(&fixture);
    open_session(&fixture, "s");
    open_session(&fixture, "r");
    assert_int_equal(lock_types_of(&fixture, "s", 0, MOST + 1), PROBLEM_LIMIT_EXCEEDED);
    assert_int_equal(lock_types_of(&fixture, "s", 0, MOST), PROBLEM_NONE);
    assert_int_equal(lock_types_of(&fixture, "s", MOST, 2), PROBLEM_NONE);
    assert_int_equal(lock_types_of(&fixture, "s", 0, MOST + 2), PROBLEM_NONE); /* all of which it has */
    assert_int_equal(lock_types_of(&fixture, "s", MOST + 2, STORED), PROBLEM_LIMIT_EXCEEDED);
    fixture_run(&fixture, lock_types(MOST + 2, MANY, BEFORE), 1);
    assert_int_equal(lock_types_of(&fixture, "s", MOST + 1, 1), PROBLEM_NONE);
    assert_int_equal(lock_types_of(&fixture, "r", MOST + 2 + MANY, 1), PROBLEM_LIMIT_EXCEEDED);
    struct command *stored = lock_types(0, 1, COMMAND_CODEC_VERSION);
    stored->owner.session = SLICE_LIT("r");
    stored->lock.targets[0].type = SLICE_LIT("t");
    assert_int_equal(fixture_run(&fixture, stored, 1)->problem.type, PROBLEM_LIMIT_EXCEEDED);
    uint64_t before = lock_table_work(&fixture.core->owners->locks);
    struct command *command = command_new(COMMAND_UNLOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    assert_int_equal(fixture_run(&fixture, command, 1)->lock.released, MOST + 2 + MANY);
    assert_in_range(lock_table_work(&fixture.core->owners->locks) - before, MANY, LOOKS * MANY);
    fixture_close(&fixture);
}

/* Steps a command, which may wait. */
static void step(struct core_fixture *fixture, struct command *command)
{
    command->request = 1;
    command->ts = ++fixture->now;
    command->clock = fixture->clock;
    assert_int_equal(core_step(fixture->core, command, &fixture->effects), 0);
    fixture->now = core_last_ts(fixture->core);
}

/* Frees the commands that have completed, all of which have succeeded. Returns: how many. */
static size_t free_completed(struct core_fixture *fixture)
{
    size_t done = 0;
    for (; !list_empty(&fixture->effects.completed); done++) {
        struct command *command = list_entry(fixture->effects.completed.next, struct command, link);
        list_remove(&command->link);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        command_free(command);
    }
    return done;
}

/* A request that waited is not refused for the types that it was granted, when its names are looked at again. */
static void test_types_that_a_request_got_do_not_count(void **state)
{
    enum { MOST = 100 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    make_typed_index(&fixture);
    open_session(&fixture, "s");
    open_session(&fixture, "r");
    assert_int_equal(lock_types_of(&fixture, "s", 0, MOST), PROBLEM_NONE);
    struct command *waiting = lock_types(MOST - 1, MOST, COMMAND_CODEC_VERSION);
    waiting->owner.session = SLICE_LIT("r");
    waiting->owner.timeout_us = TL_SECOND;
    step(&fixture, waiting);
    assert_true(list_empty(&fixture.effects.completed));
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "another", NULL); /* names may mean other things */
    struct command *unlock = lock_types(MOST - 1, 1, COMMAND_CODEC_VERSION);
    unlock->type = COMMAND_UNLOCK;
    step(&fixture, unlock);
    assert_int_equal(free_completed(&fixture), 2);
    assert_int_equal(lock_types_of(&fixture, "r", MOST - 1, 1), PROBLEM_NONE); /* else others have too many */
    fixture_close(&fixture);
}

/*
 * A LOCK that names one document by all types of its index finds the lock of no type at once for each. Before, each
 * name looked at all types that are known, which took millions of units, or the LOCK was refused for it: so it was when
 * its names were looked at again, after a wait.
 */
static void test_names_by_all_types_are_few_looks(void **state)
{
    enum { TYPES = 690, UNITS = 100 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    make_index_of_types(&fixture, TYPES);
    open_session(&fixture, "s");
    open_session(&fixture, "r");
    assert_int_equal(lock_types_of(&fixture, "s", 0, TYPES), PROBLEM_NONE);
    core_reset_metrics(fixture.core);
    assert_int_equal(lock_types_of(&fixture, "s", 0, TYPES), PROBLEM_NONE); /* all are known */
    assert_in_range(metric_read(&core_metrics(fixture.core)->step_work_max[COMMAND_LOCK]), 1, TYPES * UNITS);
    struct command *waiting = lock_types(0, TYPES, COMMAND_CODEC_VERSION);
    waiting->owner.session = SLICE_LIT("r");
    waiting->owner.timeout_us = TL_SECOND;
    step(&fixture, waiting);
    assert_true(list_empty(&fixture.effects.completed));
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "another", NULL); /* names may mean other things */
    step(&fixture, unlock_command());
    assert_int_equal(free_completed(&fixture), 2);
    bounded_check(fixture.core);
    assert_int_equal(lock_types_of(&fixture, "s", TYPES - 1, 1), PROBLEM_LOCK_CONFLICT);
    fixture_close(&fixture);
}

/* Names of a document: without a type, by types of its index, and by one that it does not have. */
static const char *const type_names[] = {"", "_all", "t", "t0", "u", "t1"};
enum { NO_TYPE_NAMES = 2, TYPE_NAMES = 5, TYPE_T1 = 5 };

/* A lock of a session on document "x". */
struct typed_lock {
    const char *session;
    size_t name;
    enum lock_mode mode;
};

/* Runs a LOCK. Returns: whether it was granted. */
static bool lock_typed(struct core_fixture *fixture, const struct typed_lock *lock, unsigned version)
{
    struct command *command = lock_command(lock->session, 1);
    command->version = version;
    command->lock.targets[0] = (struct lock_target){
        .mode = lock->mode, .index = SLICE_LIT("fs"), .type = slice_from(type_names[lock->name]), .id = SLICE_LIT("x")};
    enum problem_type type = fixture_run(fixture, command, 1)->problem.type;
    assert_true(type == PROBLEM_NONE || type == PROBLEM_LOCK_CONFLICT);
    return type == PROBLEM_NONE;
}

static void unlock_session(struct core_fixture *fixture, const char *session)
{
    struct command *command = unlock_command();
    command->owner.session = slice_from(session);
    fixture_run(fixture, command, 1);
}

/* The model: whether two names mean a document in common, and one of the modes excludes the other. */
static bool conflicts(const struct typed_lock *held, const struct typed_lock *asked)
{
    bool meet = held->name == asked->name || held->name < NO_TYPE_NAMES || asked->name < NO_TYPE_NAMES;
    bool compatible = held->mode == LOCK_S ? asked->mode != LOCK_X : held->mode == LOCK_U && asked->mode == LOCK_S;
    return meet && !compatible;
}

/* Names of one document conflict as they did before, though no longer all of its known types are looked at. */
static void test_names_by_types_conflict_as_before(void **state)
{
    enum { PAIRS = TYPE_NAMES * TYPE_NAMES, MODES = LOCK_X - LOCK_S + 1 };
    static const struct typed_lock third = {"q", TYPE_T1, LOCK_X};
    struct core_fixture fixture;
    size_t met = 0;
    (void)state;

    fixture_open(&fixture);
    make_index_of_types(&fixture, 2);
    open_session(&fixture, "q");
    open_session(&fixture, "r");
    open_session(&fixture, "s");
    for (size_t i = 0; i < 2 * PAIRS * MODES * MODES; i++) {
        struct typed_lock first = {"s", i % TYPE_NAMES, (enum lock_mode)(LOCK_S + i / PAIRS % MODES)};
        struct typed_lock second = {"r", i / TYPE_NAMES % TYPE_NAMES,
                                    (enum lock_mode)(LOCK_S + i / PAIRS / MODES % MODES)};
        bool more = i >= PAIRS * MODES * MODES; /* a third session has locked it by another type */
        assert_true(!more || lock_typed(&fixture, &third, COMMAND_CODEC_VERSION));
        bool held = lock_typed(&fixture, &first, COMMAND_CODEC_VERSION);
        assert_int_equal(held, !more || !conflicts(&third, &first));
        bool free = (!more || !conflicts(&third, &second)) && (!held || !conflicts(&first, &second));
        for (unsigned version = COMMAND_SINCE_TYPES_FOUND - 1; version <= COMMAND_CODEC_VERSION; version++) {
            assert_int_equal(lock_typed(&fixture, &second, version), free);
            unlock_session(&fixture, "r");
        }
        unlock_session(&fixture, "s");
        unlock_session(&fixture, "q");
        met += !free;
    }
    assert_in_range(met, PAIRS, PAIRS * MODES * MODES);
    fixture_close(&fixture);
}

/* A TXN_LOCK of transaction "a" for document "x" by the types from t`first` on. */
static struct command *read_types(size_t first, size_t count, unsigned version)
{
    struct command *command = command_new(COMMAND_TXN_LOCK, DIALECT_5), *lock = lock_types(first, count, version);
    command->version = version;
    command->owner.transaction = SLICE_LIT("a");
    command->txn_lock.targets = arena_alloc(&command->arena, count * sizeof(struct lock_target));
    command->txn_lock.target_count = count;
    for (size_t i = 0; i < count; i++) {
        struct lock_target *target = &command->txn_lock.targets[i];
        *target = lock->lock.targets[i];
        target->mode = LOCK_S;
        target->type = arena_copy(&command->arena, target->type);
    }
    command_free(lock);
    return command;
}

/* A write of document "x" by the types from t`first` on; of a transaction, or not. */
static struct command *write_types(struct core_fixture *fixture, enum write_op op, const char *txn, size_t first,
                                   size_t count)
{
    struct command *command = fixture_write_command(fixture, count);
    command->owner.transaction = slice_from(txn);
    for (size_t i = 0; i < count; i++) {
        command->write.items[i] = fixture_item(op, "fs", "", "x", op == WRITE_DELETE ? "" : "{}");
        command->write.items[i].type = arena_printf(&command->arena, "t%zu", first + i);
        command->write.items[i].dialect = DIALECT_5;
    }
    return command;
}

/* A transaction locks a document by types that its index does not have as one resource, however many they are. */
static void test_types_that_do_not_exist_are_one_resource(void **state)
{
    enum { TYPES = 2000, FEW = 10 };
    (void)state;

    for (int reads = 0; reads <= 1; reads++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        fixture.unbounded = true; /* for the older command alone */
        make_typed_index(&fixture);
        open_session(&fixture, "s");
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, "a");
        struct command *command =
            reads ? read_types(0, TYPES, COMMAND_CODEC_VERSION) : write_types(&fixture, WRITE_DELETE, "a", 0, TYPES);
        assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
        assert_in_range(fixture.core->owners->locks.resources.count, 1, FEW);
        assert_int_equal(lock_types_of(&fixture, "s", 0, 1), PROBLEM_LOCK_CONFLICT);
        assert_int_equal(lock_types_of(&fixture, "s", TYPES, 1), PROBLEM_LOCK_CONFLICT);
        if (reads) {
            fixture_run(&fixture, read_types(0, TYPES, BEFORE), 1);
            assert_in_range(fixture.core->owners->locks.resources.count, TYPES, TYPES + FEW);
        }
        fixture_close(&fixture);
    }
}

/* The lock by no type covers the type when it is created; so does a LOCK that named it before. */
static void test_lock_of_no_type_covers_the_created_type(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    make_typed_index(&fixture);
    open_session(&fixture, "s");
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "a");
    assert_int_equal(fixture_run(&fixture, write_types(&fixture, WRITE_INDEX, "a", 0, 1), 1)->write.results[0].outcome,
                     WRITE_CREATED);
    assert_non_null(mapping_type(catalog_index(fixture.core->catalog, SLICE_LIT("fs"))->mapping, SLICE_LIT("t0")));
    assert_int_equal(lock_types_of(&fixture, "s", 0, 1), PROBLEM_LOCK_CONFLICT);
    assert_int_equal(fixture_run(&fixture, write_types(&fixture, WRITE_INDEX, "", 0, 1), 1)->write.results[0].outcome,
                     WRITE_FAILED);
    assert_int_equal(fixture_run(&fixture, write_types(&fixture, WRITE_INDEX, "a", 0, 1), 1)->write.results[0].outcome,
                     WRITE_UPDATED);
    fixture_txn(&fixture, COMMAND_TXN_COMMIT, "a");
    assert_int_equal(lock_types_of(&fixture, "s", 0, 2), PROBLEM_NONE);
    assert_int_equal(fixture_run(&fixture, write_types(&fixture, WRITE_INDEX, "", 1, 1), 1)->write.results[0].outcome,
                     WRITE_FAILED);
    assert_int_equal(fixture_run(&fixture, write_types(&fixture, WRITE_INDEX, "", 2, 1), 1)->write.results[0].outcome,
                     WRITE_CREATED);
    fixture_close(&fixture);
}

/* A bulk was divided by the types by which others have locked its documents; now the one of no type is found. */
static void test_types_compared_count(void **state)
{
    enum { TYPES = 900, ITEMS = 1000 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    make_index_of_types(&fixture, TYPES);
    open_session(&fixture, "s");
    assert_int_equal(lock_types_of(&fixture, "s", 0, TYPES), PROBLEM_NONE);
    for (unsigned version = COMMAND_CODEC_VERSION; version >= BEFORE; version--) {
        struct command *command = write_types(&fixture, WRITE_DELETE, "", 0, ITEMS);
        bool divided = version >= COMMAND_SINCE_TYPES_BOUNDED && version < COMMAND_SINCE_TYPES_FOUND;
        command->version = version;
        for (size_t i = 0; i < ITEMS; i++)
            command->write.items[i].type = SLICE_LIT("t");
        fixture.unbounded = version == BEFORE;
        fixture_run(&fixture, command, 1);
        assert_in_range(command->write.postponed_count, divided ? ITEMS / 2 : 0, divided ? ITEMS - 1 : 0);
    }
    fixture_close(&fixture);
}

/* Deletes index "fs" by session "s", whose locks stay. */
static void delete_index(struct core_fixture *fixture)
{
    struct command *command = command_new(COMMAND_INDEX_DELETE, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    command->index.name = SLICE_LIT("fs");
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

/* The types of a deleted index, by which a document is locked still, count in the one that has its name now. */
static void test_types_of_a_deleted_index_count(void **state)
{
    enum { TYPES = 900, ITEMS = 100 };
    (void)state;

    for (int old = 0; old <= 1; old++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        fixture.unbounded = old;
        make_index_of_types(&fixture, TYPES);
        open_session(&fixture, "s");
        open_session(&fixture, "r");
        assert_int_equal(lock_types_of(&fixture, "s", 0, TYPES), PROBLEM_NONE);
        delete_index(&fixture);
        make_typed_index(&fixture);
        struct command *stored = lock_types(0, 1, old ? BEFORE : COMMAND_CODEC_VERSION);
        stored->owner.session = SLICE_LIT("r");
        stored->lock.targets[0].type = SLICE_LIT("t");
        assert_int_equal(fixture_run(&fixture, stored, 1)->problem.type, old ? PROBLEM_NONE : PROBLEM_LIMIT_EXCEEDED);
        assert_int_equal(lock_types_of(&fixture, "s", 0, 1), PROBLEM_NONE); /* it has that */
        struct command *unlock = command_new(COMMAND_UNLOCK, DIALECT_7);
        unlock->owner.session = SLICE_LIT("r");
        fixture_run(&fixture, unlock, 1);
        delete_index(&fixture);
        assert_int_equal(fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs", NULL)->problem.type, PROBLEM_NONE);
        struct command *command = write_types(&fixture, WRITE_DELETE, "", 0, ITEMS);
        command->version = old ? BEFORE : COMMAND_CODEC_VERSION;
        command->owner.session = SLICE_LIT("s");
        for (size_t i = 0; i < ITEMS; i++) {
            command->write.items[i].type = SLICE_LIT("");
            command->write.items[i].dialect = DIALECT_7;
        }
        fixture_run(&fixture, command, 1);
        assert_in_range(command->write.postponed_count, old ? 0 : ITEMS / 2, old ? 0 : ITEMS - 1);
        fixture_close(&fixture);
    }
}

/* An item that alone would take more than a step for the types of its document is refused. */
static void test_too_many_types_refuse_an_item(void **state)
{
    enum { TYPES = 28000 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture.unbounded = true; /* for the older command alone */
    make_typed_index(&fixture);
    open_session(&fixture, "s");
    assert_int_equal(fixture_run(&fixture, lock_types(0, TYPES, BEFORE), 1)->problem.type, PROBLEM_NONE);
    fixture.unbounded = false;
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "a");
    struct command *command = fixture_run(&fixture, write_types(&fixture, WRITE_DELETE, "a", TYPES, 1), 1);
    assert_int_equal(command->write.results[0].outcome, WRITE_FAILED);
    assert_int_equal(command->write.results[0].problem.type, PROBLEM_LIMIT_EXCEEDED);
    command = fixture_run(&fixture, write_types(&fixture, WRITE_DELETE, "", TYPES, 1), 1); /* it looks at them alone */
    assert_int_equal(command->write.results[0].problem.type, PROBLEM_NONE);
    fixture_close(&fixture);
}

/* --- Mappings ----------------------------------------------------------------------------------------------------- */

/* {"mappings":{ member:[ "yyyy" times count ]}} */
static void formats_body(struct buf *body, const char *member, size_t count)
{
    buf_printf(body, "{\"mappings\":{\"%s\":[", member);
    for (size_t i = 0; i < count; i++)
        buf_printf(body, "%s\"yyyy'x%zu'\"", i > 0 ? "," : "", i);
    buf_append(body, "]}}", sizeof "]}}");
}

static enum problem_type create(struct core_fixture *fixture, const char *name, const char *body, unsigned version)
{
    struct command *command = command_new(COMMAND_INDEX_CREATE, DIALECT_7);
    command->version = version;
    command->index.name = slice_from(name);
    command->index.body = slice_from(body);
    return fixture_run(fixture, command, 1)->problem.type;
}

/* The limits of a mapping have an effect also if it has analyzers, when the index is created and later. */
static void test_limits_of_an_index_with_analyzers(void **state)
{
    static const char body[] = "{\"settings\":{\"index.mapping.total_fields.limit\":1,\"analysis\":{\"analyzer\":{"
                               "\"a\":{\"type\":\"stop\"}}}},"
                               "\"mappings\":{\"properties\":{\"f\":{\"type\":\"long\"},\"g\":{\"type\":\"long\"}}}}";
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    assert_int_equal(create(&fixture, "i", body, COMMAND_CODEC_VERSION), PROBLEM_ILLEGAL_ARGUMENT);
    assert_int_equal(create(&fixture, "i", body, COMMAND_SINCE_LIMITS_OF_ANALYSED - 1), PROBLEM_NONE);
    for (int old = 1; old >= 0; old--) {
        struct command *command = command_new(COMMAND_SETTINGS_PUT, DIALECT_7);
        command->version = old ? COMMAND_SINCE_LIMITS_OF_ANALYSED - 1 : COMMAND_CODEC_VERSION;
        command->index.name = SLICE_LIT("i");
        command->index.body = SLICE_LIT("{\"index.mapping.total_fields.limit\":3}");
        assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
        tl_cleanup(catalog_unrefp) struct catalog *catalog = core_catalog(fixture.core);
        assert_int_equal(mapping_fields_max(catalog_index(catalog, SLICE_LIT("i"))->mapping), old ? 1000 : 3);
    }
    fixture_close(&fixture);
}

/* The formats with which a new text is compared are few, and compiled once for a document. */
static void test_formats_of_dates_are_bounded(void **state)
{
    enum { FIELDS = 50, OLD = 200 };
    struct core_fixture fixture;
    struct buf most = BUF_INIT(BUF_UNLIMITED), more = BUF_INIT(BUF_UNLIMITED), old = BUF_INIT(BUF_UNLIMITED),
               source = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    formats_body(&most, "dynamic_date_formats", MAPPING_DYNAMIC_FORMATS_MAX);
    formats_body(&more, "dynamic_date_formats", MAPPING_DYNAMIC_FORMATS_MAX + 1);
    formats_body(&old, "dynamic_date_formats", OLD);
    assert_int_equal(create(&fixture, "most", most.data, COMMAND_CODEC_VERSION), PROBLEM_NONE);
    assert_int_equal(create(&fixture, "more", more.data, COMMAND_CODEC_VERSION), PROBLEM_MAPPER_PARSING);
    assert_int_equal(create(&fixture, "old", old.data, BEFORE), PROBLEM_NONE);
    for (size_t i = 0; i < FIELDS; i++)
        buf_printf(&source, "%s\"f%zu\":\"1-1\"", i > 0 ? "," : "{", i);
    buf_append(&source, "}", sizeof "}");
    formats_compiled = 0;
    assert_int_equal(fixture_index(&fixture, "old", "1", source.data)->outcome, WRITE_CREATED);
    assert_in_range(formats_compiled, OLD, 3 * OLD);
    buf_deinit(&most);
    buf_deinit(&more);
    buf_deinit(&old);
    buf_deinit(&source);
    fixture_close(&fixture);
}

/* Puts a template for names of which there is no index, with the mappings of a body. */
static enum problem_type put_template(struct core_fixture *fixture, const char *body, unsigned version)
{
    struct command *command = command_new(COMMAND_TEMPLATE_PUT, DIALECT_7);
    command->version = version;
    command->object.name = SLICE_LIT("t");
    command->object.body =
        arena_printf(&command->arena, "{\"index_patterns\":[\"none\"],%s", body + 1 /* what follows its brace */);
    return fixture_run(fixture, command, 1)->problem.type;
}

/* The templates with which a new field is compared have a limit of bytes. */
static void test_dynamic_templates_are_bounded(void **state)
{
    struct core_fixture fixture;
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    buf_lit(&body, "{\"mappings\":{\"dynamic_templates\":[");
    for (size_t i = 0; body.len <= MAPPING_DYNAMIC_TEMPLATES_BYTES_MAX; i++)
        buf_printf(&body, "%s{\"t%zu\":{\"match\":\"f%zu\",\"mapping\":{\"type\":\"long\"}}}", i > 0 ? "," : "", i, i);
    buf_append(&body, "]}}", sizeof "]}}");
    assert_int_equal(create(&fixture, "i", body.data, COMMAND_CODEC_VERSION), PROBLEM_MAPPER_PARSING);
    assert_int_equal(create(&fixture, "i", body.data, BEFORE), PROBLEM_NONE);
    assert_int_equal(put_template(&fixture, body.data, COMMAND_CODEC_VERSION), PROBLEM_ILLEGAL_ARGUMENT);
    assert_int_equal(put_template(&fixture, body.data, BEFORE), PROBLEM_NONE);
    buf_deinit(&body);
    fixture_close(&fixture);
}

/* The paths and parameters of all fields of an index have a limit of bytes, and count where its mapping is copied. */
static void test_texts_of_fields_are_bounded(void **state)
{
    enum { FIELDS = 50, LONG = MAPPING_TEXT_BYTES_MAX / FIELDS };
    struct core_fixture fixture;
    struct buf body = BUF_INIT(BUF_UNLIMITED), name = BUF_INIT(BUF_UNLIMITED);
    uint64_t work[2];
    (void)state;

    fixture_open(&fixture);
    for (size_t i = 0; i < LONG; i++)
        buf_byte(&name, 'k');
    buf_printf(&body, "{\"mappings\":{\"properties\":{\"%.*s\":{\"properties\":{", SLICE_ARG(buf_as_slice(&name)));
    for (size_t i = 0; i < FIELDS; i++)
        buf_printf(&body, "%s\"f%zu\":{\"type\":\"long\"}", i > 0 ? "," : "", i);
    buf_append(&body, "}}}}}", sizeof "}}}}}");
    assert_int_equal(create(&fixture, "i", body.data, COMMAND_CODEC_VERSION), PROBLEM_ILLEGAL_ARGUMENT);
    assert_int_equal(create(&fixture, "i", body.data, COMMAND_SINCE_TEXTS_BOUNDED - 1), PROBLEM_NONE);
    /* A document that adds a field to it */
    for (int old = 0; old < 2; old++) {
        struct command *command = fixture_write_command(&fixture, 1);
        command->version = old ? COMMAND_SINCE_TEXTS_BOUNDED - 1 : COMMAND_CODEC_VERSION;
        command->write.items[0] = fixture_item(WRITE_INDEX, "i", "_doc", "1", "{\"n\":1}");
        fixture_run(&fixture, command, 1);
        work[old] = core_step_work(fixture.core);
        assert_int_equal(command->write.results[0].outcome, old ? WRITE_CREATED : WRITE_FAILED);
    }
    assert_in_range(work[0], work[1], UINT64_MAX); /* also if it is refused */
    assert_in_range(work[0], MAPPING_TEXT_BYTES_MAX / MAPPING_FIELD_TEXT * WORK_FIELD, UINT64_MAX);
    buf_deinit(&body);
    buf_deinit(&name);
    fixture_close(&fixture);
}

/* A template is refused for what an index that it applies to would be refused for, by both names of its formats. */
static void test_formats_of_templates_are_bounded(void **state)
{
    static const char *const members[] = {"dynamic_date_formats", "date_formats"};
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        struct buf most = BUF_INIT(BUF_UNLIMITED), more = BUF_INIT(BUF_UNLIMITED);
        formats_body(&most, members[i], MAPPING_DYNAMIC_FORMATS_MAX);
        formats_body(&more, members[i], MAPPING_DYNAMIC_FORMATS_MAX + 1);
        assert_int_equal(create(&fixture, i == 0 ? "i" : "k", more.data, COMMAND_CODEC_VERSION),
                         PROBLEM_MAPPER_PARSING);
        assert_int_equal(put_template(&fixture, most.data, COMMAND_CODEC_VERSION), PROBLEM_NONE);
        assert_int_equal(put_template(&fixture, more.data, COMMAND_CODEC_VERSION), PROBLEM_ILLEGAL_ARGUMENT);
        assert_int_equal(put_template(&fixture, more.data, BEFORE), PROBLEM_NONE);
        buf_deinit(&most);
        buf_deinit(&more);
    }
    fixture_close(&fixture);
}

/*
 * A bulk is divided by the mappings that are made to find the locks of its items, whose type is new, if these may have
 * a path.
 */
static void test_locks_of_new_types_count(void **state)
{
    enum { FIELDS = 300, ITEMS = 100 };
    struct core_fixture fixture;
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    buf_lit(&body, "{\"mappings\":{\"t\":{\"properties\":{\"p\":{\"type\":\"path\"}");
    for (size_t i = 0; i < FIELDS; i++)
        buf_printf(&body, ",\"f%zu\":{\"type\":\"long\"}", i);
    buf_append(&body, "}}}}", sizeof "}}}}");
    fixture.dialect = DIALECT_5;
    assert_int_equal(fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs", body.data)->problem.type,
                     PROBLEM_NONE);
    open_session(&fixture, "s");
    assert_int_equal(lock_document(&fixture, "s", "fs", "other"), PROBLEM_NONE);
    for (int old = 1; old >= 0; old--) {
        struct command *command = fixture_write_command(&fixture, ITEMS);
        command->version = old ? COMMAND_SINCE_VALUES_WEIGHED - 1 : COMMAND_CODEC_VERSION;
        for (size_t i = 0; i < ITEMS; i++) {
            command->write.items[i] = fixture_item(WRITE_INDEX, "fs", old ? "u" : "v", "", "{}");
            command->write.items[i].id = arena_printf(&command->arena, "%zu", i);
            command->write.items[i].dialect = DIALECT_5;
        }
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->write.results[0].outcome, WRITE_CREATED);
        assert_in_range(command->write.postponed_count, old ? 0 : ITEMS / 2, old ? 0 : ITEMS - 1);
    }
    buf_deinit(&body);
    fixture_close(&fixture);
}

/* --- What an index has -------------------------------------------------------------------------------------------- */

/* Adds an alias to index i. */
static struct command *add_filtered(struct core_fixture *fixture, const char *alias, const char *body, unsigned version)
{
    struct command *command = command_new(COMMAND_ALIASES_UPDATE, DIALECT_7);
    command->version = version;
    command->aliases.actions = arena_zalloc(&command->arena, sizeof(struct alias_action));
    command->aliases.action_count = 1;
    command->aliases.actions[0] = (struct alias_action){
        .op = ALIAS_ADD, .index = SLICE_LIT("i"), .alias = slice_from(alias), .body = slice_from(body)};
    return fixture_run(fixture, command, 1);
}

/* The settings of an index, and the filters of its aliases, have limits of bytes: each change of it writes them. */
static void test_records_of_indices_are_bounded(void **state)
{
    struct core_fixture fixture;
    struct buf settings = BUF_INIT(BUF_UNLIMITED), filter = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "i", NULL);
    buf_lit(&settings, "{\"index.routing.allocation.include.x\":\"");
    buf_lit(&filter, "{\"filter\":{\"term\":{\"x\":\"");
    for (size_t i = 0; i < CATALOG_SETTING_BYTES_MAX; i++)
        buf_byte(&settings, 'x');
    for (size_t i = 0; i < (size_t)CATALOG_ALIAS_BYTES_MAX * 5 / 8; i++) /* one request may have as many */
        buf_byte(&filter, 'x');
    buf_append(&settings, "\"}", sizeof "\"}");
    buf_append(&filter, "\"}}}", sizeof "\"}}}");
    assert_int_equal(add_filtered(&fixture, "a", filter.data, COMMAND_CODEC_VERSION)->problem.type, PROBLEM_NONE);
    for (int old = 0; old < 2; old++) {
        unsigned version = old ? BEFORE : COMMAND_CODEC_VERSION;
        struct command *command = command_new(COMMAND_SETTINGS_PUT, DIALECT_7);
        command->version = version;
        command->index.name = SLICE_LIT("i");
        command->index.body = slice_from(settings.data);
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->problem.type, old ? PROBLEM_NONE : PROBLEM_ILLEGAL_ARGUMENT);
        command = add_filtered(&fixture, "b", filter.data, version);
        assert_int_equal(command->problem.type, old ? PROBLEM_NONE : PROBLEM_ILLEGAL_ARGUMENT);
        assert_true(old || strstr(command->problem.reason.data, "the filters and routings of the aliases") != NULL);
    }
    /* It has more than it may: what adds nothing is accepted. */
    assert_int_equal(add_filtered(&fixture, "c", "{}", COMMAND_CODEC_VERSION)->problem.type, PROBLEM_NONE);
    buf_deinit(&settings);
    buf_deinit(&filter);
    fixture_close(&fixture);
}

/* A change copies the table of its kind of objects, or the array of indices, and counts that. */
static void test_copies_of_catalog_count(void **state)
{
    enum { SCRIPTS = 400, INDICES = 200 };
    struct core_fixture fixture;
    char name[16];
    uint64_t first = 0;
    (void)state;

    fixture_open(&fixture);
    for (size_t i = 0; i < SCRIPTS; i++) {
        snprintf(name, sizeof name, "s%zu", i);
        fixture_object_command(&fixture, COMMAND_SCRIPT_PUT, name,
                               "{\"script\":{\"lang\":\"painless\",\"source\":\"1\"}}");
        assert_int_equal(fixture.last->problem.type, PROBLEM_NONE);
        first = i == 0 ? core_step_work(fixture.core) : first;
    }
    assert_true(core_step_work(fixture.core) >= first + (SCRIPTS - 1) / WORK_CATALOG_COPIED);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "first", NULL);
    first = core_step_work(fixture.core);
    make_indices(&fixture, INDICES, "{}");
    assert_true(core_step_work(fixture.core) >= first + (INDICES - 1) / WORK_CATALOG_COPIED);
    fixture_close(&fixture);
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

static size_t ephemeral_count(struct core_fixture *fixture, const char *session)
{
    return owners_session(fixture->core->owners, slice_from(session))->ephemeral_count;
}

/* A request that removes many indices visits the sessions once. */
static void test_removed_indices_visit_sessions_once(void **state)
{
    enum { SESSIONS = 50, INDICES = 60, KEPT = 10 };
    struct core_fixture fixture;
    char session[16], index[16];
    (void)state;

    fixture_open(&fixture);
    make_indices(&fixture, INDICES, "{}");
    for (size_t i = 0; i < SESSIONS; i++) {
        snprintf(session, sizeof session, "s%zu", i);
        snprintf(index, sizeof index, "i%03zu", i);
        open_session(&fixture, session);
        struct write_item item = fixture_item(WRITE_INDEX, index, "", session, "{}");
        item.lease = slice_from(session);
        assert_int_equal(fixture_write_one(&fixture, item)->outcome, WRITE_CREATED);
    }
    size_t removed = INDICES - KEPT;
    struct command *command = fixture_run(&fixture, removals(removed, removed, COMMAND_CODEC_VERSION), 1);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    uint64_t others = removed * (WORK_ALIAS + WORK_INDEX + 6 * WORK_WRITE);
    assert_in_range(core_step_work(fixture.core), removed, others + 4 * SESSIONS + 1000);
    for (size_t i = 0; i < SESSIONS; i++) {
        snprintf(session, sizeof session, "s%zu", i);
        assert_int_equal(ephemeral_count(&fixture, session), i < removed ? 0 : 1);
    }
    fixture_close(&fixture);
}

/* A request that fails after it has removed an index leaves the counts of sessions as they were. */
static void test_removed_index_is_rolled_back(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    make_indices(&fixture, 2, "{}");
    open_session(&fixture, "s");
    struct write_item item = fixture_item(WRITE_INDEX, "i000", "", "1", "{}");
    item.lease = SLICE_LIT("s");
    assert_int_equal(fixture_write_one(&fixture, item)->outcome, WRITE_CREATED);
    struct command *command = removals(3, 2, COMMAND_CODEC_VERSION); /* the first one once more */
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_INDEX_NOT_FOUND);
    assert_int_equal(ephemeral_count(&fixture, "s"), 1);
    assert_int_equal(fixture_run(&fixture, removals(1, 1, COMMAND_CODEC_VERSION), 1)->problem.type, PROBLEM_NONE);
    assert_int_equal(ephemeral_count(&fixture, "s"), 0);
    fixture_close(&fixture);
}

/* A session that had documents in many indices one after the other has counters of those where it has some. */
static void test_counters_of_ended_documents_are_reused(void **state)
{
    enum { INDICES = 20 };
    struct core_fixture fixture;
    char index[16];
    (void)state;

    fixture_open(&fixture);
    make_indices(&fixture, INDICES, "{}");
    open_session(&fixture, "s");
    for (size_t i = 0; i < INDICES; i++) {
        snprintf(index, sizeof index, "i%03zu", i);
        struct write_item item = fixture_item(WRITE_INDEX, index, "", "1", "{}");
        item.lease = SLICE_LIT("s");
        assert_int_equal(fixture_write_one(&fixture, item)->outcome, WRITE_CREATED);
        assert_int_equal(ephemeral_count(&fixture, "s"), 1);
        assert_int_equal(fixture_delete(&fixture, index, "1")->outcome, WRITE_DELETED);
        assert_int_equal(ephemeral_count(&fixture, "s"), 0);
    }
    assert_int_equal(owners_session(fixture.core->owners, SLICE_LIT("s"))->ephemeral_counter_count, 1);
    fixture_close(&fixture);
}

/* --- Locked documents that move ----------------------------------------------------------------------------------- */

/* LOCKs of session "s" for so many documents of an index. */
static void lock_documents(struct core_fixture *fixture, const char *index, size_t count)
{
    struct command *command = lock_command("s", count);
    for (size_t i = 0; i < count; i++) {
        command->lock.targets[i].index = slice_from(index);
        command->lock.targets[i].id = arena_printf(&command->arena, "%zu", i);
    }
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

/* `session` empty: none. */
static struct command *put_path_field(struct core_fixture *fixture, const char *session, unsigned version)
{
    struct command *command = command_new(COMMAND_MAPPING_PUT, DIALECT_7);
    command->version = version;
    command->owner.session = slice_from(session);
    command->index.name = SLICE_LIT("fs");
    command->index.body = SLICE_LIT("{\"properties\":{\"path\":{\"type\":\"path\"}}}");
    return fixture_run(fixture, command, 1);
}

/* A mapping that gives locked documents a place is refused if these are many. */
static void test_mapping_moves_few_documents(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    for (int more = 1; more >= 0; more--) {
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs", NULL);
        open_session(&fixture, "s");
        lock_documents(&fixture, "fs", RELOCATED_MAX + more);
        struct command *command = put_path_field(&fixture, "s", COMMAND_CODEC_VERSION);
        assert_int_equal(command->problem.type, more ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NONE);
        struct catalog *catalog = core_catalog(fixture.core);
        const struct mapping_field *path = mapping_path_field(catalog_index(catalog, SLICE_LIT("fs"))->mapping);
        assert_int_equal(path == NULL, more);
        catalog_unref(catalog);
        if (more)
            assert_int_equal(put_path_field(&fixture, "s", BEFORE)->problem.type, PROBLEM_NONE);
        command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
        command->session.id = SLICE_LIT("s");
        assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
        fixture_index_command(&fixture, COMMAND_INDEX_DELETE, "fs", NULL);
    }
    fixture_close(&fixture);
}

/*
 * It is refused as blocked, and can be repeated, if others have any of these locks: the client cannot release them. The
 * session that has all of them has to.
 */
static void test_mapping_is_blocked_by_documents_of_others(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs", NULL);
    open_session(&fixture, "s");
    open_session(&fixture, "other");
    lock_documents(&fixture, "fs", RELOCATED_MAX + 1);
    assert_int_equal(put_path_field(&fixture, "s", COMMAND_CODEC_VERSION)->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    assert_int_equal(put_path_field(&fixture, "other", COMMAND_CODEC_VERSION)->problem.type, PROBLEM_LOCK_CONFLICT);
    struct command *command = put_path_field(&fixture, "", COMMAND_CODEC_VERSION);
    assert_int_equal(command->problem.type, PROBLEM_LOCK_CONFLICT);
    assert_int_equal(problem_status(&command->problem), 409);
    assert_int_equal(lock_document(&fixture, "other", "fs", "x"), PROBLEM_NONE);
    assert_int_equal(put_path_field(&fixture, "s", COMMAND_CODEC_VERSION)->problem.type, PROBLEM_LOCK_CONFLICT);
    command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
    command->session.id = SLICE_LIT("s");
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
    assert_int_equal(put_path_field(&fixture, "", COMMAND_CODEC_VERSION)->problem.type, PROBLEM_NONE);
    fixture_close(&fixture);
}

static const char with_path_field[] = "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}";

static struct command *rename_of(struct core_fixture *fixture, const char *from, const char *to, unsigned version)
{
    struct command *command = command_new(COMMAND_RENAME, DIALECT_7);
    command->version = version;
    command->owner.session = SLICE_LIT("s");
    command->rename.index = SLICE_LIT("fs");
    command->rename.from = slice_from(from);
    command->rename.to = slice_from(to);
    command->rename.if_seq_no = SEQ_NO_ANY;
    return fixture_run(fixture, command, 1);
}

/* Makes the index "fs" with documents 0, 1 and so on at paths /a/0, /a/1. */
static void make_tree(struct core_fixture *fixture, size_t all)
{
    fixture_index_command(fixture, COMMAND_INDEX_CREATE, "fs", with_path_field);
    for (size_t done = 0; done < all;) {
        size_t count = all - done < 1000 ? all - done : 1000;
        struct command *command = fixture_write_command(fixture, count);
        for (size_t i = 0; i < count; i++) {
            struct write_item item = fixture_item(WRITE_INDEX, "fs", "", "", NULL);
            item.id = arena_printf(&command->arena, "%zu", done + i);
            item.source = arena_printf(&command->arena, "{\"path\":\"/a/%zu\"}", done + i);
            item.dialect = DIALECT_7;
            command->write.items[i] = item;
        }
        fixture_run(fixture, command, 1);
        assert_int_equal(command->write.postponed_count, 0);
        done += count;
    }
}

/* A directory in which its session has locked many documents is not renamed, until they are released. */
static void test_rename_moves_few_documents(void **state)
{
    enum { MANY = RELOCATED_MAX + 1 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    make_tree(&fixture, MANY);
    open_session(&fixture, "s");
    lock_documents(&fixture, "fs", MANY);
    assert_int_equal(rename_of(&fixture, "/a", "/b", COMMAND_CODEC_VERSION)->problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    assert_int_equal(rename_of(&fixture, "/a/1", "/c", COMMAND_CODEC_VERSION)->problem.type, PROBLEM_NONE);
    assert_int_equal(rename_of(&fixture, "/a", "/b", COMMAND_CODEC_VERSION)->problem.type, PROBLEM_NONE);
    assert_int_equal(rename_of(&fixture, "/c", "/b/1", COMMAND_CODEC_VERSION)->problem.type, PROBLEM_NONE);
    assert_int_equal(rename_of(&fixture, "/b", "/d", BEFORE)->problem.type, PROBLEM_NONE);
    fixture_close(&fixture);
}

/* Writes documents 0 to `items` - 1 of "fs", all at /a, in so many bulks. Returns: the last sequence number. */
static int64_t write_again(struct core_fixture *fixture, size_t bulks, size_t items)
{
    struct command *command = NULL;
    for (size_t n = 0; n < bulks; n++) {
        command = fixture_write_command(fixture, items);
        for (size_t i = 0; i < items; i++) {
            struct write_item item = fixture_item(WRITE_INDEX, "fs", "", "", NULL);
            item.id = arena_printf(&command->arena, "%zu", i);
            item.source = arena_printf(&command->arena, "{\"path\":\"/a\",\"n\":%zu}", n);
            item.dialect = DIALECT_7;
            command->write.items[i] = item;
        }
        fixture_run(fixture, command, 1);
    }
    assert_non_null(command);
    return command->write.results[items - 1].seq_no;
}

/*
 * A rename of /a, where document "0" is, in session "s", if the documents there have this sequence number. As its
 * submitter does where many entries are stale, it has the path watched, and says the document that it found.
 */
static enum problem_type rename_at(struct core_fixture *fixture, const char *to, int64_t seq_no)
{
    char key[DOC_KEY_PREFIX_BYTES + 1];
    const struct catalog_index *index = catalog_index(fixture->core->catalog, SLICE_LIT("fs"));
    struct slice document = slice_from_offset(doc_key(key, index->number, 0, SLICE_LIT("0")), sizeof index->number);
    struct command *watch = command_new(COMMAND_PLACES_WATCH, DIALECT_7);
    watch->places = (struct places_command){SLICE_LIT("fs"), {SLICE_LIT("/a"), slice_from(to)}};
    tl_ts watched = fixture_run(fixture, watch, 1)->ts;
    struct command *command = command_new(COMMAND_RENAME, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    command->rename = (struct rename_command){.index = SLICE_LIT("fs"),
                                              .from = SLICE_LIT("/a"),
                                              .to = slice_from(to),
                                              .if_seq_no = seq_no,
                                              .if_primary_term = 1,
                                              .found_from = {watched, arena_copy(&command->arena, document)}};
    command = fixture_run(fixture, command, 1);
    assert_false(command->rename.unknown);
    return command->problem.type;
}

/*
 * Documents at one path, whose earlier versions are in posting lists, are renamed if they have the sequence number. As
 * many stale entries as are read are more than the work of a step, but an exception.
 */
static void test_rename_reads_stale_entries(void **state)
{
    enum { BULKS = 30, MOST = 155, ITEMS = 64 }; /* so many have posting lists */
    static const size_t bulks[] = {BULKS, MOST};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(bulks); i++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs", with_path_field);
        open_session(&fixture, "s");
        int64_t seq_no = write_again(&fixture, bulks[i], ITEMS);
        assert_int_equal(rename_at(&fixture, "/b", seq_no), PROBLEM_NONE);
        fixture_close(&fixture);
    }
}

/* More of them are not read, and the rename is refused; one without a condition is not. */
static void test_rename_reads_few_stale_entries(void **state)
{
    enum { BULKS = 160, ITEMS = 64 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs", with_path_field);
    open_session(&fixture, "s");
    int64_t seq_no = write_again(&fixture, BULKS, ITEMS);
    assert_int_equal(rename_at(&fixture, "/b", seq_no), PROBLEM_ILLEGAL_ARGUMENT);
    assert_int_equal(rename_at(&fixture, "/b", SEQ_NO_ANY), PROBLEM_NONE);
    fixture_close(&fixture);
}

/* Writes a document of "fs" with a long path below /a, and deletes it: the tree still knows the length. */
static void reach_far_below(struct core_fixture *fixture)
{
    enum { LEVELS = 160, NAME_BYTES = 99 };
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&source, "{\"path\":\"/a");
    for (size_t i = 0; i < LEVELS; i++)
        buf_printf(&source, "/%0*d", NAME_BYTES, 0);
    buf_append(&source, "\"}", sizeof "\"}");
    assert_int_equal(fixture_index(fixture, "fs", "far", source.data)->outcome, WRITE_CREATED);
    assert_int_equal(fixture_delete(fixture, "fs", "far")->outcome, WRITE_DELETED);
    buf_deinit(&source);
}

/*
 * A rename to a longer name reads the entries twice, for the sequence number and for the longest path. Both have one
 * limit together, so that each may read fewer than it would alone.
 */
static void test_checks_of_a_rename_share_the_limit_of_stale_entries(void **state)
{
    enum { FEW = 75, MANY = 100, ITEMS = 64, NAME_BYTES = 1000 };
    char to[1 + NAME_BYTES + 1] = "/";
    (void)state;

    memset(to + 1, 'b', NAME_BYTES);
    to[1 + NAME_BYTES] = '\0';
    for (int many = 0; many < 2; many++) {
        struct core_fixture fixture;
        fixture_open(&fixture);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs", with_path_field);
        open_session(&fixture, "s");
        reach_far_below(&fixture);
        int64_t seq_no = write_again(&fixture, many ? MANY : FEW, ITEMS);
        assert_int_equal(rename_at(&fixture, to, seq_no), many ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NONE);
        if (many)
            assert_int_equal(rename_at(&fixture, to, SEQ_NO_ANY), PROBLEM_NONE); /* one check alone */
        fixture_close(&fixture);
    }
}

/* Submits a command that may wait. */
static void submit(struct core_fixture *fixture, struct command *command, uint64_t request)
{
    command->request = request;
    command->owner.timeout_us = 60 * TL_SECOND;
    command->ts = ++fixture->now;
    command->clock = fixture->clock;
    assert_int_equal(core_step(fixture->core, command, &fixture->effects), 0);
    bounded_check(fixture->core);
    fixture->now = core_last_ts(fixture->core);
}

/* Runs TICKs until these commands have completed; frees them. */
static void settle(struct core_fixture *fixture, struct command **commands, size_t count)
{
    size_t done = 0;
    for (;;) {
        for (; !list_empty(&fixture->effects.completed); done++)
            list_remove(fixture->effects.completed.next);
        if (done == count)
            break;
        assert_true(core_next_deadline(fixture->core) <= fixture->clock);
        struct command *command = command_new(COMMAND_TICK, DIALECT_7);
        command->tick.barrier_clock = fixture->clock;
        submit(fixture, command, 0);
        list_remove(&command->link);
        command_free(command);
    }
    for (size_t i = 0; i < count; i++)
        command_free(commands[i]);
}

/* Bulks of others that delete so many documents of "fs", and wait. */
static size_t submit_deletes(struct core_fixture *fixture, struct command **ret_bulks, size_t all)
{
    size_t bulks = 0, known;
    struct arena arena = ARENA_INIT;
    for (size_t done = 0; done < all; bulks++) {
        size_t count = all - done < 1000 ? all - done : 1000;
        struct command *command = ret_bulks[bulks] = fixture_write_command(fixture, count);
        for (size_t i = 0; i < count; i++) {
            command->write.items[i] = fixture_item(WRITE_DELETE, "fs", "", "", NULL);
            command->write.items[i].id = arena_printf(&command->arena, "%zu", done + i);
            command->write.items[i].dialect = DIALECT_7;
        }
        submit(fixture, command, bulks + 1);
        done += count;
    }
    assert_true(list_empty(&fixture->effects.completed));
    (void)lock_table_documents(&fixture->core->owners->locks, SLICE_LIT("fs"), &arena, &known);
    assert_true(known >= all);
    arena_deinit(&arena);
    return bulks;
}

/* A session that has locked a directory renames it, however many documents in it others wait for. */
static void test_rename_ignores_waiting_writes(void **state)
{
    enum { MANY = RELOCATED_MAX + 1, BULKS = 3 };
    struct core_fixture fixture;
    struct command *bulks[BULKS], *done[BULKS + 1];
    (void)state;

    fixture_open(&fixture);
    make_tree(&fixture, MANY);
    open_session(&fixture, "s");
    struct command *command = lock_command("s", 1);
    command->lock.targets[0].index = SLICE_LIT("fs");
    command->lock.targets[0].path = SLICE_LIT("/a");
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
    assert_int_equal(submit_deletes(&fixture, bulks, MANY), BULKS);
    assert_int_equal(rename_of(&fixture, "/a", "/b", COMMAND_CODEC_VERSION)->problem.type, PROBLEM_NONE);
    memcpy(done, bulks, sizeof bulks);
    submit(&fixture, done[BULKS] = unlock_command(), BULKS + 1);
    settle(&fixture, done, BULKS + 1);
    assert_int_equal(fixture_count(&fixture, "fs"), 0);
    fixture_close(&fixture);
}

/* Submits a LOCK of session "w" for documents 0 to `count` - 1 of "fs", which has to wait. */
static struct command *submit_lock(struct core_fixture *fixture, size_t count, uint64_t request)
{
    struct command *command = lock_command("w", count);
    for (size_t i = 0; i < count; i++) {
        command->lock.targets[i].index = SLICE_LIT("fs");
        command->lock.targets[i].id = arena_printf(&command->arena, "%zu", i);
    }
    submit(fixture, command, request);
    assert_true(list_empty(&fixture->effects.completed));
    return command;
}

/* Session "s" locks a directory of "fs". */
static void lock_directory(struct core_fixture *fixture, const char *path)
{
    struct command *command = lock_command("s", 1);
    command->lock.targets[0].index = SLICE_LIT("fs");
    command->lock.targets[0].path = slice_from(path);
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
}

/*
 * One request waits for so many documents of /a that moving it with each of them would take millions of units. A
 * rename moves it once. They are fewer than are an exception, so that the fixture looks at the work.
 */
static void test_rename_moves_waiting_request_once(void **state)
{
    enum { FEW = 2000 };
    struct core_fixture fixture;
    struct command *done[2];
    (void)state;

    fixture_open(&fixture);
    make_tree(&fixture, FEW);
    open_session(&fixture, "s");
    open_session(&fixture, "w");
    lock_directory(&fixture, "/a");
    lock_directory(&fixture, "/b");
    done[0] = submit_lock(&fixture, FEW, 1);
    const struct command *command = rename_of(&fixture, "/a", "/b", COMMAND_CODEC_VERSION);
    assert_true(command->problem.type == PROBLEM_NONE && !command->rename.unknown);
    assert_true(list_empty(&fixture.effects.completed));
    submit(&fixture, done[1] = unlock_command(), 2);
    settle(&fixture, done, COUNT_OF(done));
    assert_int_equal(fixture.core->owners->locks.lock_count, FEW);
    fixture_close(&fixture);
}

/* So does the commit of a rename. */
static void test_commit_moves_waiting_request_once(void **state)
{
    enum { FEW = 2000 };
    struct core_fixture fixture;
    struct command *done[2];
    (void)state;

    fixture_open(&fixture);
    make_tree(&fixture, FEW);
    open_session(&fixture, "w");
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    struct command *command = command_new(COMMAND_RENAME, DIALECT_7);
    command->owner.transaction = SLICE_LIT("t");
    command->rename.index = SLICE_LIT("fs");
    command->rename.from = SLICE_LIT("/a");
    command->rename.to = SLICE_LIT("/b");
    command->rename.if_seq_no = SEQ_NO_ANY;
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
    done[0] = submit_lock(&fixture, FEW, 1);
    command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = SLICE_LIT("t");
    done[1] = command;
    submit(&fixture, command, 2);
    assert_true(core_step_work(fixture.core) < CORE_STEP_WORK); /* a commit is an exception, which the fixture passes */
    settle(&fixture, done, COUNT_OF(done));
    assert_int_equal(fixture.core->owners->locks.lock_count, FEW);
    fixture_close(&fixture);
}

/* And so does a bulk that gives the documents other paths. */
static void test_bulk_moves_waiting_request_once(void **state)
{
    enum { FEW = 400 };
    struct core_fixture fixture;
    struct command *done[3];
    (void)state;

    fixture_open(&fixture);
    make_tree(&fixture, FEW);
    open_session(&fixture, "s");
    open_session(&fixture, "w");
    lock_directory(&fixture, "/a");
    lock_directory(&fixture, "/c");
    done[0] = submit_lock(&fixture, FEW, 1);
    struct command *command = done[1] = fixture_write_command(&fixture, FEW);
    command->owner.session = SLICE_LIT("s");
    for (size_t i = 0; i < FEW; i++) {
        struct write_item item = fixture_item(WRITE_INDEX, "fs", "", "", NULL);
        item.id = arena_printf(&command->arena, "%zu", i);
        item.source = arena_printf(&command->arena, "{\"path\":\"/c/%zu\"}", i);
        item.dialect = DIALECT_7;
        command->write.items[i] = item;
    }
    submit(&fixture, command, 2);
    assert_int_equal(command->write.results[FEW - 1].outcome, WRITE_UPDATED);
    submit(&fixture, done[2] = unlock_command(), 3);
    settle(&fixture, done, COUNT_OF(done));
    assert_int_equal(fixture.core->owners->locks.lock_count, FEW);
    fixture_close(&fixture);
}

/* The end of a session, too, whose documents are removed at once or hidden. */
static void test_session_end_moves_waiting_request_once(void **state)
{
    enum { FEW = 500 };
    (void)state;

    for (int hidden = 0; hidden < 2; hidden++) {
        struct core_fixture fixture;
        struct command *done[2];
        fixture_open(&fixture);
        if (hidden) {
            fixture.limits.ephemeral_batch = 10;
            fixture_reopen(&fixture);
        }
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs", with_path_field);
        open_session(&fixture, "s");
        open_session(&fixture, "w");
        open_session(&fixture, "ends");
        struct command *command = fixture_write_command(&fixture, FEW);
        for (size_t i = 0; i < FEW; i++) {
            struct write_item item = fixture_item(WRITE_INDEX, "fs", "", "", NULL);
            item.id = arena_printf(&command->arena, "%zu", i);
            item.source = arena_printf(&command->arena, "{\"path\":\"/a/%zu\"}", i);
            item.dialect = DIALECT_7;
            item.lease = SLICE_LIT("ends");
            command->write.items[i] = item;
        }
        fixture_run(&fixture, command, 1);
        assert_int_equal(ephemeral_count(&fixture, "ends"), FEW);
        assert_int_equal(lock_document(&fixture, "s", "fs", "500"), PROBLEM_NONE);
        done[0] = submit_lock(&fixture, FEW + 1, 1);
        command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
        command->session.id = SLICE_LIT("ends");
        assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
        assert_int_equal(fixture_count(&fixture, "fs"), 0);
        assert_false(lock_table_has_directories(&fixture.core->owners->locks, SLICE_LIT("fs")));
        submit(&fixture, done[1] = unlock_command(), 2);
        settle(&fixture, done, COUNT_OF(done));
        assert_int_equal(fixture.core->owners->locks.lock_count, FEW + 1);
        fixture_close(&fixture);
    }
}

/* Returns: the path "/x/x/..." of that many levels, as a C string. Owns: the caller. */
static struct buf path_of_levels(size_t levels)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);

    for (size_t i = 0; i < levels; i++)
        buf_lit(&path, "/x");
    buf_byte(&path, 0);
    return path;
}

/*
 * A move visits each level above a document, for each of its locks: so locks with many levels before or after a rename
 * count more.
 */
static void test_rename_moves_few_levels(void **state)
{
    enum { LEVELS = 1600, FEW = RELOCATED_MAX / (LEVELS / 16 + 1) - 1 };
    struct core_fixture fixture;
    struct buf deep = path_of_levels(LEVELS);
    (void)state;

    for (int more = 0; more <= 1; more++) {
        struct core_fixture *at = &fixture;
        fixture_open(at);
        make_tree(at, more ? 2 * FEW : FEW);
        open_session(at, "s");
        lock_documents(at, "fs", more ? 2 * FEW : FEW);
        assert_int_equal(rename_of(at, "/a", deep.data, COMMAND_CODEC_VERSION)->problem.type,
                         more ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NONE);
        fixture.unbounded = more; /* for the older command alone */
        if (more)
            assert_int_equal(rename_of(at, "/a", deep.data, BEFORE)->problem.type, PROBLEM_NONE);
        fixture.unbounded = false;
        assert_int_equal(rename_of(at, deep.data, "/b", COMMAND_CODEC_VERSION)->problem.type,
                         more ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NONE);
        fixture_close(at);
    }
    buf_deinit(&deep);
}

/* One request waits for many documents that get many levels: the levels that they share are found once. */
static void test_rename_finds_shared_levels_once(void **state)
{
    enum { LEVELS = 1600, FEW = 1000 };
    struct core_fixture fixture;
    struct buf deep = path_of_levels(LEVELS);
    struct command *done[2];
    (void)state;

    fixture_open(&fixture);
    make_tree(&fixture, FEW);
    open_session(&fixture, "s");
    open_session(&fixture, "w");
    lock_directory(&fixture, "/a");
    done[0] = submit_lock(&fixture, FEW, 1);
    assert_int_equal(rename_of(&fixture, "/a", deep.data, COMMAND_CODEC_VERSION)->problem.type, PROBLEM_NONE);
    submit(&fixture, done[1] = unlock_command(), 2);
    settle(&fixture, done, COUNT_OF(done));
    assert_int_equal(fixture.core->owners->locks.lock_count, FEW);
    fixture_close(&fixture);
    buf_deinit(&deep);
}

/* Renames a directory in a transaction of session "s", which it commits. Returns: the work of the commit. */
static uint64_t commit_rename(struct core_fixture *fixture, const char *id, const char *from, const char *to)
{
    struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    command->txn.id = slice_from(id);
    command->txn.idle_us = 60 * TL_SECOND;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
    command = command_new(COMMAND_RENAME, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    command->owner.transaction = slice_from(id);
    command->rename.index = SLICE_LIT("fs");
    command->rename.from = slice_from(from);
    command->rename.to = slice_from(to);
    command->rename.if_seq_no = SEQ_NO_ANY;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
    command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    command->txn.id = slice_from(id);
    records_read = 0;
    assert_int_equal(fixture_run(fixture, command, 1)->problem.type, PROBLEM_NONE);
    return core_step_work(fixture->core);
}

/*
 * The commit of a rename moves the locks of its session without a limit: it changes the intention locks on each level
 * once, however many locks are below, and reads the directory entry of each level once.
 */
static void test_commit_of_rename_changes_levels_once(void **state)
{
    enum { LEVELS = 1600, FEW = 1000 };
    struct core_fixture fixture;
    struct buf deep = path_of_levels(LEVELS);
    (void)state;

    fixture_open(&fixture);
    make_tree(&fixture, FEW);
    open_session(&fixture, "s");
    lock_documents(&fixture, "fs", FEW);
    const struct lock_table *locks = &fixture.core->owners->locks;
    assert_true(commit_rename(&fixture, "t", "/a", deep.data) <
                CORE_STEP_WORK); /* an exception, which the fixture passes */
    assert_in_range(records_read, FEW, 6 * FEW + 2 * LEVELS);
    assert_in_range(locks->hold_count, 2 * FEW + LEVELS, 2 * FEW + LEVELS + 3);
    assert_true(commit_rename(&fixture, "u", "/x", "/y") < CORE_STEP_WORK);
    assert_in_range(records_read, FEW, 6 * FEW + 2 * LEVELS);
    deep.data[1] = 'y';
    assert_true(commit_rename(&fixture, "v", deep.data, "/a") < CORE_STEP_WORK);
    assert_in_range(locks->hold_count, 2 * FEW + 1, 2 * FEW + 4);
    fixture_close(&fixture);
    buf_deinit(&deep);
}

/* Each session's lock on a document counts where a mapping gives it a path, and so do the levels that it gets. */
static void test_mapping_moves_few_locks(void **state)
{
    enum { SESSIONS = 5, EACH = RELOCATED_MAX / SESSIONS, LEVELS = 160, FEW = RELOCATED_MAX / (LEVELS / 16 + 1) };
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    char id[20];
    (void)state;

    for (int deep = 0; deep <= 1; deep++) {
        struct core_fixture fixture;
        size_t count = deep ? FEW : EACH;
        fixture_open(&fixture);
        fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs", "{\"mappings\":{\"dynamic\":false}}");
        buf_clear(&source);
        buf_lit(&source, "{\"path\":\"");
        for (size_t i = 0; i < (deep ? LEVELS : 1); i++)
            buf_lit(&source, "/x");
        buf_lit(&source, "\"}");
        struct command *command = fixture_write_command(&fixture, count + 1);
        for (size_t i = 0; i <= count; i++) {
            struct write_item item = fixture_item(WRITE_INDEX, "fs", "", "", NULL);
            item.id = arena_printf(&command->arena, "%zu", i);
            item.source = arena_copy(&command->arena, buf_as_slice(&source));
            item.dialect = DIALECT_7;
            command->write.items[i] = item;
        }
        fixture_run(&fixture, command, 1);
        for (int n = 0; n < (deep ? 1 : SESSIONS); n++) {
            snprintf(id, sizeof id, "s%d", n);
            open_session(&fixture, id);
            command = lock_command(id, count);
            for (size_t i = 0; i < count; i++) {
                command->lock.targets[i].index = SLICE_LIT("fs");
                command->lock.targets[i].id = arena_printf(&command->arena, "%zu", i);
                command->lock.targets[i].mode = LOCK_S;
            }
            assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
        }
        snprintf(id, sizeof id, "%zu", count);
        open_session(&fixture, "one");
        assert_int_equal(lock_document(&fixture, "one", "fs", id), PROBLEM_NONE);
        assert_int_equal(put_path_field(&fixture, "", COMMAND_CODEC_VERSION)->problem.type, PROBLEM_LOCK_CONFLICT);
        command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
        command->session.id = SLICE_LIT("one");
        fixture_run(&fixture, command, 1);
        assert_int_equal(put_path_field(&fixture, "", COMMAND_CODEC_VERSION)->problem.type, PROBLEM_NONE);
        fixture_close(&fixture);
    }
    buf_deinit(&source);
}

/* Submits a LOCK of one target in "fs", a document or a directory, which may wait. */
static struct command *submit_one(struct core_fixture *fixture, const char *session, const char *id, const char *path,
                                  uint64_t request)
{
    struct command *command = lock_command(session, 1);
    command->lock.targets[0].index = SLICE_LIT("fs");
    if (id != NULL)
        command->lock.targets[0].id = slice_from(id);
    if (path != NULL)
        command->lock.targets[0].path = slice_from(path);
    submit(fixture, command, request);
    return command;
}

/* Whether a command has completed. */
static bool is_done(const struct core_fixture *fixture, const struct command *command)
{
    list_for_each(link, &fixture->effects.completed) if (list_entry(link, struct command, link) == command) return true;
    return false;
}

/*
 * A commit moves a document that the transaction alone has locked if a granted request still refers to it, of which the
 * lock is released: so the next lock on it is in its new directory.
 */
static void test_commit_moves_document_of_granted_request(void **state)
{
    enum { W, KEEP, RELEASE, RELEASE_W, WRITE, COMMIT, X, Y, RELEASE_X, COUNT };
    static const char *const sessions[] = {"s", "w", "x", "y"};
    struct core_fixture fixture;
    struct command *done[COUNT];
    (void)state;

    fixture_open(&fixture);
    make_tree(&fixture, 1);
    for (size_t i = 0; i < COUNT_OF(sessions); i++)
        open_session(&fixture, sessions[i]);
    lock_documents(&fixture, "fs", 1);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    done[W] = submit_one(&fixture, "w", "0", NULL, 1);
    struct command *command = done[KEEP] = command_new(COMMAND_CANCEL, DIALECT_7);
    command->cancel.request = 1;
    command->cancel.keeps_places = true;
    submit(&fixture, command, 2);
    submit(&fixture, done[RELEASE] = unlock_command(), 3); /* the kept request is granted */
    done[RELEASE_W] = unlock_command();
    done[RELEASE_W]->owner.session = SLICE_LIT("w");
    submit(&fixture, done[RELEASE_W], 4);
    assert_int_equal(done[RELEASE_W]->lock.released, 1);
    command = done[WRITE] = fixture_write_command(&fixture, 1);
    command->owner.transaction = SLICE_LIT("t");
    command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "0", "{\"path\":\"/b/0\"}");
    command->write.items[0].dialect = DIALECT_7;
    submit(&fixture, command, 5);
    assert_int_equal(command->write.results[0].outcome, WRITE_UPDATED);
    command = done[COMMIT] = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = SLICE_LIT("t");
    submit(&fixture, command, 6);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    done[X] = submit_one(&fixture, "x", "0", NULL, 7);
    assert_true(is_done(&fixture, done[X]));
    assert_int_equal(done[X]->problem.type, PROBLEM_NONE);
    done[Y] = submit_one(&fixture, "y", NULL, "/b", 8);
    assert_false(is_done(&fixture, done[Y]));
    done[RELEASE_X] = unlock_command();
    done[RELEASE_X]->owner.session = SLICE_LIT("x");
    submit(&fixture, done[RELEASE_X], 9);
    assert_true(is_done(&fixture, done[Y]));
    fixture.clock += 60 * TL_SECOND; /* the place of the kept request ends */
    settle(&fixture, done, COUNT);
    fixture_close(&fixture);
}

/* So is an index deleted, for which a request without a session has waited itself. */
static void test_deletion_ignores_waiting_writes(void **state)
{
    enum { MANY = RELOCATED_MAX + 1, BULKS = 3 };
    struct core_fixture fixture;
    struct command *done[BULKS + 2];
    (void)state;

    fixture_open(&fixture);
    make_tree(&fixture, MANY);
    open_session(&fixture, "s");
    lock_documents(&fixture, "fs", 1);
    struct command *deletion = done[BULKS] = command_new(COMMAND_INDEX_DELETE, DIALECT_7);
    deletion->index.name = SLICE_LIT("fs");
    submit(&fixture, deletion, BULKS + 1);
    assert_int_equal(submit_deletes(&fixture, done, MANY), BULKS);
    submit(&fixture, done[BULKS + 1] = unlock_command(), BULKS + 2);
    settle(&fixture, done, BULKS + 2);
    struct catalog *catalog = core_catalog(fixture.core);
    assert_null(catalog_index(catalog, SLICE_LIT("fs")));
    catalog_unref(catalog);
    fixture_close(&fixture);
}

/* Indices are removed however many documents their session has locked, all or none. */
static void test_removal_moves_all_documents(void **state)
{
    enum { FEW = 1000, MANY = RELOCATED_MAX + 1 };
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "i000", with_path_field);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "i001", with_path_field);
    assert_int_equal(fixture_index(&fixture, "i000", "1", "{\"path\":\"/x/1\"}")->outcome, WRITE_CREATED);
    open_session(&fixture, "s");
    lock_documents(&fixture, "i000", FEW);
    lock_documents(&fixture, "i001", MANY);
    struct command *command = removals(2, 2, COMMAND_CODEC_VERSION);
    command->owner.session = SLICE_LIT("s");
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
    assert_false(lock_table_has_directories(&fixture.core->owners->locks, SLICE_LIT("i000")));
    assert_int_equal(fixture.core->owners->locks.lock_count, FEW + MANY);
    fixture_close(&fixture);
}

/* The commit of a rename reads no document that the transaction alone has locked; in version 22 it does. */
static void test_commit_of_rename_ignores_own_documents(void **state)
{
    enum { DOCUMENTS = 500 };
    struct core_fixture fixture;
    uint64_t work[2];
    (void)state;

    fixture_open(&fixture);
    make_tree(&fixture, DOCUMENTS);
    for (int old = 0; old < 2; old++) {
        const char *id = old ? "u" : "t";
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, id);
        struct command *command = lock_command("", DOCUMENTS);
        command->owner.transaction = slice_from(id);
        for (size_t i = 0; i < DOCUMENTS; i++) {
            command->lock.targets[i].index = SLICE_LIT("fs");
            command->lock.targets[i].id = arena_printf(&command->arena, "%zu", i);
        }
        assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
        command = command_new(COMMAND_RENAME, DIALECT_7);
        command->owner.transaction = slice_from(id);
        command->rename.index = SLICE_LIT("fs");
        command->rename.from = slice_from(old ? "/b" : "/a");
        command->rename.to = slice_from(old ? "/c" : "/b");
        command->rename.if_seq_no = SEQ_NO_ANY;
        assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
        command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
        command->version = old ? BEFORE : COMMAND_CODEC_VERSION;
        command->txn.id = slice_from(id);
        assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
        work[old] = core_step_work(fixture.core);
    }
    assert_true(work[1] >= work[0] + WORK_READ * (uint64_t)DOCUMENTS);
    fixture_close(&fixture);
}

/* --- Descriptions of holders -------------------------------------------------------------------------------------- */

/* A path of so many levels. */
static struct slice deep_path(struct arena *arena, size_t levels, size_t number)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "/top/%zu", number);
    for (size_t i = 0; i < levels; i++)
        buf_lit(&path, "/d");
    struct slice copy = arena_copy(arena, buf_as_slice(&path));
    buf_deinit(&path);
    return copy;
}

static size_t count_texts(struct slice text, const char *word)
{
    size_t count = 0;
    for (const char *at; (at = memmem(text.data, text.len, word, strlen(word))) != NULL; count++)
        text = slice_from_offset(text, (size_t)(at - text.data) + 1);
    return count;
}

/* A refused request describes fewer holders if these hold deep paths; requests that time out together count them. */
static void test_descriptions_of_deep_holders_are_bounded(void **state)
{
    enum { SESSIONS = 20, LEVELS = 2000, WAITING = 600 };
    struct core_fixture fixture;
    char session[16];
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    for (size_t i = 0; i < SESSIONS; i++) {
        snprintf(session, sizeof session, "s%zu", i);
        open_session(&fixture, session);
        struct command *command = lock_command(session, 1);
        command->lock.targets[0].index = SLICE_LIT("fs");
        command->lock.targets[0].path = deep_path(&command->arena, LEVELS, i);
        assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
    }
    open_session(&fixture, "s");
    for (int old = 0; old < 2; old++) {
        struct command *command = lock_command("s", 1);
        command->version = old ? BEFORE : COMMAND_CODEC_VERSION;
        command->lock.targets[0].index = SLICE_LIT("fs");
        command->lock.targets[0].path = SLICE_LIT("/top");
        fixture_run(&fixture, command, 1);
        assert_int_equal(command->problem.type, PROBLEM_LOCK_CONFLICT);
        size_t described = count_texts(command->problem.details, "\"mode\"");
        assert_in_range(described, old ? SESSIONS : 2, old ? SESSIONS : SESSIONS / 2);
    }
    struct list waiting = LIST_INIT(waiting);
    for (size_t i = 0; i < WAITING; i++) {
        struct command *command = lock_command("s", 1);
        command->request = i + 1;
        command->owner.timeout_us = TL_SECOND;
        command->lock.targets[0].index = SLICE_LIT("fs");
        command->lock.targets[0].path = SLICE_LIT("/top");
        command->ts = ++fixture.now;
        command->clock = fixture.clock;
        assert_int_equal(core_step(fixture.core, command, &fixture.effects), 0);
    }
    assert_true(list_empty(&fixture.effects.completed));
    fixture.clock += 2 * TL_SECOND;
    size_t steps = 0;
    for (; core_next_wait_end(fixture.core) <= fixture.clock; steps++) {
        struct command *command = command_new(COMMAND_TICK, DIALECT_7);
        fixture.now = core_last_ts(fixture.core) + 1;
        command->ts = fixture.now;
        command->clock = fixture.clock;
        assert_int_equal(core_step(fixture.core, command, &fixture.effects), 0);
        assert_true(core_step_work(fixture.core) < CORE_STEP_WORK);
        while (!list_empty(&fixture.effects.completed)) {
            struct command *done = list_entry(fixture.effects.completed.next, struct command, link);
            list_remove(&done->link);
            command_free(done);
        }
    }
    assert_true(steps > 3);
    fixture.now = core_last_ts(fixture.core);
    fixture_close(&fixture);
}

/* --- Listings ----------------------------------------------------------------------------------------------------- */

/* A page of a session's locks has few of them if their paths are long, and so has the history of one step. */
static void test_pages_of_long_paths_are_short(void **state)
{
    enum { LOCKS = 100, NAME = 30000, PAGE_BYTES = 2 << 20 };
    struct core_fixture fixture;
    size_t pages = 0, listed = 0;
    (void)state;

    fixture_open(&fixture);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "fs",
                          "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}}}}");
    open_session(&fixture, "s");
    struct command *command = lock_command("s", LOCKS);
    for (size_t i = 0; i < LOCKS; i++) {
        char *path = arena_alloc(&command->arena, NAME);
        memset(path, 'x', NAME);
        memcpy(path, "/top/", 5);
        path[5] = (char)('a' + i / 26);
        path[6] = (char)('a' + i % 26);
        command->lock.targets[i].index = SLICE_LIT("fs");
        command->lock.targets[i].path = slice_make(path, NAME);
    }
    assert_int_equal(fixture_run(&fixture, command, 1)->problem.type, PROBLEM_NONE);
    for (uint64_t cursor = 0; pages == 0 || cursor != 0; pages++) {
        command = command_new(COMMAND_STATUS, DIALECT_7);
        command->status.what = STATUS_SESSIONS;
        command->status.id = SLICE_LIT("s");
        command->status.cursor = cursor;
        fixture_run(&fixture, command, 1);
        assert_true(command->status.page.len < PAGE_BYTES);
        listed += count_texts(command->status.page, "\"fencing_token\"");
        cursor = command->status.cursor;
    }
    assert_int_equal(listed, LOCKS);
    assert_in_range(pages, 2, LOCKS);
    command = command_new(COMMAND_UNLOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    assert_int_equal(fixture_run(&fixture, command, 2 * LOCK_HISTORY_MIN_US)->lock.released, LOCKS);
    size_t recorded = fixture.core->owners->lock_history.bytes;
    assert_in_range(recorded, LOCK_HISTORY_STEP_BYTES, LOCK_HISTORY_STEP_BYTES + 4 * NAME);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets_of_entries_count),
        cmocka_unit_test(test_bulk_by_alias_makes_few_texts),
        cmocka_unit_test(test_expression_of_read_is_bounded),
        cmocka_unit_test(test_comparisons_of_read_count_by_bytes),
        cmocka_unit_test(test_expression_has_a_limit),
        cmocka_unit_test(test_locks_of_aliases_are_bounded),
        cmocka_unit_test(test_types_of_one_document_are_bounded),
        cmocka_unit_test(test_types_that_a_request_got_do_not_count),
        cmocka_unit_test(test_names_by_all_types_are_few_looks),
        cmocka_unit_test(test_names_by_types_conflict_as_before),
        cmocka_unit_test(test_types_that_do_not_exist_are_one_resource),
        cmocka_unit_test(test_lock_of_no_type_covers_the_created_type),
        cmocka_unit_test(test_types_compared_count),
        cmocka_unit_test(test_types_of_a_deleted_index_count),
        cmocka_unit_test(test_too_many_types_refuse_an_item),
        cmocka_unit_test(test_limits_of_an_index_with_analyzers),
        cmocka_unit_test(test_formats_of_dates_are_bounded),
        cmocka_unit_test(test_dynamic_templates_are_bounded),
        cmocka_unit_test(test_texts_of_fields_are_bounded),
        cmocka_unit_test(test_formats_of_templates_are_bounded),
        cmocka_unit_test(test_locks_of_new_types_count),
        cmocka_unit_test(test_records_of_indices_are_bounded),
        cmocka_unit_test(test_copies_of_catalog_count),
        cmocka_unit_test(test_removed_indices_visit_sessions_once),
        cmocka_unit_test(test_removed_index_is_rolled_back),
        cmocka_unit_test(test_counters_of_ended_documents_are_reused),
        cmocka_unit_test(test_mapping_moves_few_documents),
        cmocka_unit_test(test_mapping_is_blocked_by_documents_of_others),
        cmocka_unit_test(test_rename_moves_few_documents),
        cmocka_unit_test(test_rename_reads_stale_entries),
        cmocka_unit_test(test_rename_reads_few_stale_entries),
        cmocka_unit_test(test_checks_of_a_rename_share_the_limit_of_stale_entries),
        cmocka_unit_test(test_rename_ignores_waiting_writes),
        cmocka_unit_test(test_rename_moves_few_levels),
        cmocka_unit_test(test_rename_finds_shared_levels_once),
        cmocka_unit_test(test_commit_of_rename_changes_levels_once),
        cmocka_unit_test(test_mapping_moves_few_locks),
        cmocka_unit_test(test_rename_moves_waiting_request_once),
        cmocka_unit_test(test_commit_moves_waiting_request_once),
        cmocka_unit_test(test_bulk_moves_waiting_request_once),
        cmocka_unit_test(test_session_end_moves_waiting_request_once),
        cmocka_unit_test(test_commit_moves_document_of_granted_request),
        cmocka_unit_test(test_deletion_ignores_waiting_writes),
        cmocka_unit_test(test_removal_moves_all_documents),
        cmocka_unit_test(test_commit_of_rename_ignores_own_documents),
        cmocka_unit_test(test_descriptions_of_deep_holders_are_bounded),
        cmocka_unit_test(test_pages_of_long_paths_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
