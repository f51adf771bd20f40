/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: what a step releases, grants and resumes shares one account of work, so that no step exceeds the bound however
 * many requests wait, and of whatever kind they are (src/core/README.md, "The work of a step").
 * Method: thousands of requests wait for one session, which releases all it has; the fixture fails if a step is not
 * bounded. Steps of TICK carry on until all are done. By commands of version 23 the steps exceed the bound.
 */
#include "../../lib/bounded.h"
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>
#include <string.h>

#include "core/cleanup/deferred.h"
#include "core/command/command.h"
#include "core/command/command_codec.h"
#include "core/documents/action.h"
#include "core/session/cost.h"
#include "core/session/owners.h"
#include "core/session/txn.h"
#include "core/transaction/txn_end.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/wait.h"

enum { FIELDS = 35 };

static uint64_t last_request;

/* Runs a command that may wait. */
static void submit(struct core_fixture *fixture, struct command *command)
{
    command->request = ++last_request;
    command->ts = ++fixture->now;
    command->clock = fixture->clock;
    assert_int_equal(core_step(fixture->core, command, &fixture->effects), 0);
    if (!fixture->unbounded)
        bounded_check(fixture->core);
    fixture->now = core_last_ts(fixture->core);
}

/* Frees the completed commands, which have succeeded, with all of their items. Returns: how many items and LOCKs. */
static size_t free_completed(struct core_fixture *fixture)
{
    size_t done = 0;
    while (!list_empty(&fixture->effects.completed)) {
        struct command *command = list_entry(fixture->effects.completed.next, struct command, link);
        list_remove(&command->link);
        assert_int_equal(command->problem.type, PROBLEM_NONE);
        for (size_t i = 0; command->type == COMMAND_WRITE && i < command->write.item_count; i++) {
            assert_true(command->write.results[i].postponed || command->write.results[i].outcome != WRITE_FAILED);
            done += !command->write.results[i].postponed;
        }
        done += command->type == COMMAND_LOCK;
        command_free(command);
    }
    return done;
}

/* Frees completed commands, whatever became of them. */
static void free_all(struct core_fixture *fixture)
{
    while (!list_empty(&fixture->effects.completed)) {
        struct command *command = list_entry(fixture->effects.completed.next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
}

/* Runs TICKs until nothing is to be done at once. Returns: as free_completed(). */
static size_t settle(struct core_fixture *fixture, unsigned version)
{
    size_t done = free_completed(fixture);
    while (core_next_deadline(fixture->core) == 0) {
        struct command *command = command_new(COMMAND_TICK, DIALECT_7);
        command->version = version;
        command->tick.barrier_clock = fixture->clock;
        submit(fixture, command);
        done += free_completed(fixture);
    }
    return done;
}

static void open_session_for(struct core_fixture *fixture, const char *id, uint64_t ttl_us)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = arena_printf(&command->arena, "%s", id);
    command->session.ttl_us = ttl_us;
    submit(fixture, command);
}

static void open_session(struct core_fixture *fixture, const char *id)
{
    open_session_for(fixture, id, 3600 * TL_SECOND);
    assert_int_equal(free_completed(fixture), 0);
}

/* A LOCK of documents `first` to `first` + `count` - 1 of "fs". */
static void lock(struct core_fixture *fixture, const char *session, size_t first, size_t count)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = arena_printf(&command->arena, "%s", session);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, count * sizeof(struct lock_target));
    command->lock.target_count = count;
    for (size_t i = 0; i < count; i++)
        command->lock.targets[i] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_printf(&command->arena, "%zu", first + i)};
    submit(fixture, command);
}

static struct slice medium_source(struct arena *arena, size_t number, size_t fields)
{
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&source, "{\"path\":\"/a/b/%zu\"", number);
    for (size_t i = 0; i < fields; i++)
        buf_printf(&source, ",\"f%zu\":%zu", i, 1000 * number + i);
    buf_lit(&source, "}");
    struct slice copy = arena_copy(arena, buf_as_slice(&source));
    buf_deinit(&source);
    return copy;
}

/* Puts documents from `first` on. */
static struct command *puts_of(struct core_fixture *fixture, size_t first, size_t count, size_t fields)
{
    struct command *command = fixture_write_command(fixture, count);
    command->owner.timeout_us = 60 * TL_SECOND;
    for (size_t i = 0; i < count; i++) {
        struct write_item item = fixture_item(WRITE_INDEX, "fs", "", "", NULL);
        item.id = arena_printf(&command->arena, "%zu", first + i);
        item.source = medium_source(&command->arena, first + i, fields);
        item.dialect = DIALECT_7;
        command->write.items[i] = item;
    }
    return command;
}

static void make_index_of(struct core_fixture *fixture, const char *name)
{
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    buf_lit(&body, "{\"mappings\":{\"properties\":{\"path\":{\"type\":\"path\"}");
    for (size_t i = 0; i < FIELDS; i++)
        buf_printf(&body, ",\"f%zu\":{\"type\":\"long\"}", i);
    buf_append(&body, "}}}", sizeof "}}}");
    assert_int_equal(fixture_index_command(fixture, COMMAND_INDEX_CREATE, name, body.data)->problem.type, PROBLEM_NONE);
    buf_deinit(&body);
}

static void make_index(struct core_fixture *fixture)
{
    make_index_of(fixture, "fs");
}

static void begin(struct core_fixture *fixture)
{
    fixture_open(fixture);
    make_index(fixture);
    open_session(fixture, "s");
}

/* Session "s" releases all. */
static void unlock(struct core_fixture *fixture, unsigned version)
{
    struct command *command = command_new(COMMAND_UNLOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    command->version = version;
    submit(fixture, command);
}

/* Returns: the most work that a step with the UNLOCK or a TICK after it has taken. */
static uint64_t most_work(const struct core_fixture *fixture)
{
    uint64_t most = metric_read(&core_metrics(fixture->core)->step_work_max[COMMAND_UNLOCK]);
    uint64_t later = metric_read(&core_metrics(fixture->core)->step_work_max[COMMAND_TICK]);
    return most > later ? most : later;
}

/* --- What waits --------------------------------------------------------------------------------------------------- */

/* Session "s" locks an index. */
static void lock_index_of(struct core_fixture *fixture, const char *index)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.target_count = 1;
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = slice_from(index)};
    submit(fixture, command);
    assert_int_equal(free_completed(fixture), 1);
}

static void lock_index(struct core_fixture *fixture)
{
    lock_index_of(fixture, "fs");
}

/* 8,000 puts of small documents, each for a lock of its own. */
static size_t submit_small_puts(struct core_fixture *fixture)
{
    enum { COUNT = 8000 };
    lock(fixture, "s", 0, COUNT);
    assert_int_equal(free_completed(fixture), 1);
    for (size_t i = 0; i < COUNT; i++)
        submit(fixture, puts_of(fixture, i, 1, 0));
    return COUNT;
}

static size_t submit_medium_puts(struct core_fixture *fixture)
{
    enum { COUNT = 3000 };
    lock(fixture, "s", 0, COUNT);
    assert_int_equal(free_completed(fixture), 1);
    for (size_t i = 0; i < COUNT; i++)
        submit(fixture, puts_of(fixture, i, 1, FIELDS));
    return COUNT;
}

/* 8,000 LOCKs of a session, which complete in the unit that grants them. By older commands they were bounded, too. */
static size_t submit_locks(struct core_fixture *fixture)
{
    enum { COUNT = 8000 };
    open_session(fixture, "w");
    lock(fixture, "s", 0, COUNT);
    assert_int_equal(free_completed(fixture), 1);
    for (size_t i = 0; i < COUNT; i++)
        lock(fixture, "w", i, 1);
    return COUNT;
}

/* LOCKs of many documents, whose names are looked at again when they are granted, since an index was made. */
static size_t submit_locks_of_names(struct core_fixture *fixture)
{
    enum { LOCKS = 14, EACH = 1000 };
    open_session(fixture, "w");
    for (size_t i = 0; i < LOCKS; i++) {
        struct command *bulk = puts_of(fixture, i * EACH, EACH, 0);
        for (size_t j = 0; j < EACH; j++) /* so that their directories are few places in queues */
            bulk->write.items[j].source = SLICE_LIT("{\"path\":\"/a/b/c\"}");
        submit(fixture, bulk);
    }
    assert_int_equal(free_completed(fixture), LOCKS * EACH);
    lock_index(fixture);
    for (size_t i = 0; i < LOCKS; i++)
        lock(fixture, "w", i * EACH, EACH);
    fixture_index_command(fixture, COMMAND_INDEX_CREATE, "another", NULL);
    return LOCKS;
}

/* Session "s", for whose locks those wait that use alias "a", makes it stand for another index; `from` may be empty. */
static void move_alias(struct core_fixture *fixture, const char *from, const char *to)
{
    struct command *command = command_new(COMMAND_ALIASES_UPDATE, DIALECT_7);
    command->owner.session = SLICE_LIT("s");
    command->aliases.actions = arena_zalloc(&command->arena, 2 * sizeof *command->aliases.actions);
    command->aliases.actions[0] =
        (struct alias_action){.op = ALIAS_ADD, .index = slice_from(to), .alias = SLICE_LIT("a")};
    command->aliases.actions[1] =
        (struct alias_action){.op = ALIAS_REMOVE, .index = slice_from(from), .alias = SLICE_LIT("a")};
    command->aliases.action_count = from[0] == '\0' ? 1 : 2;
    submit(fixture, command);
    assert_int_equal(free_completed(fixture), 0);
}

/* A LOCK of directories by alias "a", each below `levels` - 1 others of its own. */
static void lock_directories(struct core_fixture *fixture, size_t number, size_t count, size_t levels)
{
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = SLICE_LIT("w");
    command->owner.timeout_us = 60 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, count * sizeof(struct lock_target));
    command->lock.target_count = count;
    for (size_t i = 0; i < count; i++) {
        buf_clear(&path);
        for (size_t level = 0; level < levels; level++)
            buf_printf(&path, "/%zu.%zu", number, i);
        command->lock.targets[i] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("a"), .path = arena_copy(&command->arena, buf_as_slice(&path))};
    }
    buf_deinit(&path);
    submit(fixture, command);
    assert_int_equal(free_completed(fixture), 0);
}

/* LOCKs that are granted what their names do not mean any more, and so ask for other locks. */
static size_t submit_locks_of_directories(struct core_fixture *fixture, size_t locks, size_t each, size_t levels)
{
    open_session(fixture, "w");
    make_index_of(fixture, "another");
    move_alias(fixture, "", "fs");
    lock_index(fixture);
    for (size_t i = 0; i < locks; i++)
        lock_directories(fixture, i, each, levels);
    move_alias(fixture, "fs", "another");
    return locks;
}

/* Each takes half of a step. */
static size_t submit_large_locks(struct core_fixture *fixture)
{
    return submit_locks_of_directories(fixture, 10, 2000, 9);
}

/* A change that adds an alias to the first indices, which wait for session "s". */
static void add_alias(struct core_fixture *fixture, size_t count)
{
    struct command *command = command_new(COMMAND_ALIASES_UPDATE, DIALECT_7);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->aliases.actions = arena_zalloc(&command->arena, count * sizeof *command->aliases.actions);
    command->aliases.action_count = count;
    for (size_t i = 0; i < count; i++)
        command->aliases.actions[i] = (struct alias_action){
            .op = ALIAS_ADD, .index = arena_printf(&command->arena, "i%zu", i), .alias = SLICE_LIT("l")};
    submit(fixture, command);
    assert_int_equal(free_completed(fixture), 0);
}

/* Changes of aliases, of which one that takes more than half of a step follows one that takes less. */
static size_t submit_alias_changes(struct core_fixture *fixture)
{
    enum { INDICES = 1450, FIRST = 940, CHANGES = 10 };
    char name[24];
    for (size_t i = 0; i < INDICES; i++) {
        snprintf(name, sizeof name, "i%zu", i);
        fixture_index_command(fixture, COMMAND_INDEX_CREATE, name, "{\"aliases\":{\"l\":{}}}");
    }
    lock_index_of(fixture, "i0");
    for (size_t i = 0; i < CHANGES; i++)
        add_alias(fixture, i % 2 == 0 ? FIRST : INDICES);
    return 0;
}

/* Puts, and then a bulk that takes nearly a step by itself. */
static size_t submit_bulk(struct core_fixture *fixture, bool atomic, const char *txn)
{
    enum { PUTS = 400, ITEMS = 400 };
    lock_index(fixture);
    for (size_t i = 0; i < PUTS; i++)
        submit(fixture, puts_of(fixture, i, 1, FIELDS));
    struct command *bulk = puts_of(fixture, PUTS, ITEMS, FIELDS);
    bulk->write.atomic = atomic;
    bulk->owner.transaction = slice_from(txn);
    submit(fixture, bulk);
    return PUTS + ITEMS;
}

static size_t submit_plain_bulk(struct core_fixture *fixture)
{
    return submit_bulk(fixture, false, "");
}

static size_t submit_atomic_bulk(struct core_fixture *fixture)
{
    return submit_bulk(fixture, true, "");
}

static size_t submit_bulk_of_transaction(struct core_fixture *fixture)
{
    fixture_txn(fixture, COMMAND_TXN_BEGIN, "t");
    return submit_bulk(fixture, false, "t");
}

static struct slice index_name(struct arena *arena, size_t number)
{
    return arena_printf(arena, "i%zu", number);
}

/* Puts that add a field each, which makes the mapping of their index anew. */
static size_t submit_puts_of_new_fields(struct core_fixture *fixture)
{
    enum { INDICES = 100, PUTS = 5, MAPPED = 44 };
    struct buf body = BUF_INIT(BUF_UNLIMITED);
    struct arena arena = ARENA_INIT;
    buf_lit(&body, "{\"mappings\":{\"properties\":{\"m0\":{\"type\":\"long\"}");
    for (size_t i = 1; i < MAPPED; i++)
        buf_printf(&body, ",\"m%zu\":{\"type\":\"long\"}", i);
    buf_append(&body, "}}}", sizeof "}}}");
    struct command *all = command_new(COMMAND_LOCK, DIALECT_7);
    all->owner.session = SLICE_LIT("s");
    all->lock.targets = arena_zalloc(&all->arena, INDICES * sizeof(struct lock_target));
    all->lock.target_count = INDICES;
    for (size_t i = 0; i < INDICES; i++) {
        fixture_index_command(fixture, COMMAND_INDEX_CREATE, index_name(&arena, i).data, body.data);
        all->lock.targets[i] = (struct lock_target){.mode = LOCK_X, .index = index_name(&all->arena, i)};
    }
    submit(fixture, all);
    assert_int_equal(free_completed(fixture), 1);
    for (size_t i = 0; i < INDICES * PUTS; i++) {
        struct command *put = puts_of(fixture, i, 1, 0);
        put->write.items[0].index = index_name(&put->arena, i % INDICES);
        put->write.items[0].source = arena_printf(&put->arena, "{\"n%zu\":1}", i / INDICES);
        submit(fixture, put);
    }
    buf_deinit(&body);
    arena_deinit(&arena);
    return INDICES * PUTS;
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

/* Returns: the most work of a step in which session "s" releases what `submit_all` has wait for it, or a later TICK. */
static uint64_t work_of_release(size_t (*submit_all)(struct core_fixture *fixture), unsigned version, bool whole)
{
    struct core_fixture fixture;
    begin(&fixture);
    size_t count = submit_all(&fixture);
    assert_true(list_empty(&fixture.effects.completed));
    assert_true(fixture.core->owners->locks.waiting_count > 0);
    fixture.unbounded = version < COMMAND_CODEC_VERSION; /* the caller looks */
    core_reset_metrics(fixture.core);
    unlock(&fixture, version);
    size_t done = settle(&fixture, version);
    assert_true(whole ? done == count : done <= count);
    assert_int_equal(fixture.core->owners->locks.waiting_count, 0);
    assert_int_equal(fixture.core->owners->ready_count, 0);
    uint64_t most = most_work(&fixture);
    core_stop(fixture.core, &fixture.effects);
    fixture_close(&fixture);
    return most;
}

/* Before version `since`, a step took more than one may. */
static void check_release_since(unsigned since, size_t (*submit_all)(struct core_fixture *fixture), bool whole)
{
    uint64_t work = work_of_release(submit_all, COMMAND_CODEC_VERSION, whole);
    uint64_t before = work_of_release(submit_all, since - 1, false);
    assert_in_range(work, 1, CORE_STEP_WORK);
    assert_true(before > CORE_STEP_WORK);
}

static void check_release(size_t (*submit_all)(struct core_fixture *fixture), bool whole)
{
    check_release_since(COMMAND_SINCE_WORK_ACCOUNT, submit_all, whole);
}

static void test_waiting_puts_resume_in_bounded_steps(void **state)
{
    (void)state;
    check_release(submit_small_puts, true);
}

static void test_waiting_puts_of_medium_documents_resume_in_bounded_steps(void **state)
{
    (void)state;
    check_release(submit_medium_puts, true);
}

static void test_waiting_locks_complete_in_bounded_steps(void **state)
{
    (void)state;
    assert_in_range(work_of_release(submit_locks, COMMAND_CODEC_VERSION, true), 1, CORE_STEP_WORK);
}

static void test_names_of_waiting_locks_are_looked_at_in_bounded_steps(void **state)
{
    (void)state;
    check_release(submit_locks_of_names, true);
}

static void lock_one(struct core_fixture *fixture, const char *session, const char *index)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = slice_from(session);
    command->owner.timeout_us = 60 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.target_count = 1;
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = slice_from(index), .id = SLICE_LIT("1")};
    submit(fixture, command);
}

/* A lock that its session gives back concerns its other requests only if a request waits for it, not for another. */
static void test_waiting_locks_give_back_others_in_bounded_steps(void **state)
{
    enum { LOCKS = 1000, LEVELS = 100 };
    struct core_fixture fixture;
    (void)state;
    begin(&fixture);
    submit_locks_of_directories(&fixture, LOCKS, 1, LEVELS);
    make_index_of(&fixture, "g");
    open_session(&fixture, "v");
    lock_one(&fixture, "w", "g");
    assert_int_equal(free_completed(&fixture), 1);
    lock_one(&fixture, "v", "g");
    unlock(&fixture, COMMAND_CODEC_VERSION); /* the fixture looks whether steps are bounded */
    assert_int_equal(settle(&fixture, COMMAND_CODEC_VERSION), LOCKS);
    assert_int_equal(fixture.core->owners->locks.waiting_count, 1);
    core_stop(fixture.core, &fixture.effects);
    free_all(&fixture);
    fixture_close(&fixture);
}

static void test_large_locks_resume_before_others(void **state)
{
    (void)state;
    check_release_since(COMMAND_SINCE_LOCK_TURNS, submit_large_locks, true);
}

/* Returns: what a LOCK that asks for other locks charges to the account of the step in which it does. */
static uint64_t charge_of_asking_anew(unsigned version, size_t count, size_t levels)
{
    struct core_fixture fixture;
    begin(&fixture);
    submit_locks_of_directories(&fixture, 1, count, levels);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "g", NULL);
    unlock(&fixture, version);
    assert_int_equal(free_completed(&fixture), 1);
    uint64_t charged = cost_charged_work(fixture.core);
    fixture_close(&fixture);
    return charged;
}

static void test_levels_of_locks_that_ask_anew_are_charged(void **state)
{
    enum { COUNT = 100, LEVELS = 10 };
    (void)state;
    uint64_t before = charge_of_asking_anew(COMMAND_SINCE_LEVELS_CHARGED - 1, COUNT, LEVELS);
    uint64_t charged = charge_of_asking_anew(COMMAND_CODEC_VERSION, COUNT, LEVELS);
    assert_in_range(charged - before, COUNT * LEVELS * WORK_LEVEL_LOCKED, (COUNT * LEVELS + 2) * WORK_LEVEL_LOCKED);
}

static void test_large_alias_changes_resume_before_others(void **state)
{
    (void)state;
    check_release_since(COMMAND_SINCE_ALIAS_TURNS, submit_alias_changes, true);
}

static void test_waiting_bulk_leaves_what_others_have_spent(void **state)
{
    (void)state;
    check_release(submit_plain_bulk, false);
    check_release(submit_atomic_bulk, true);
    check_release(submit_bulk_of_transaction, true);
}

static void test_mappings_of_waiting_puts_count(void **state)
{
    (void)state;
    check_release(submit_puts_of_new_fields, true);
}

/*
 * Returns: the most work of a TICK in which nearly as many sessions expire as there may be, or a later one. Half of
 * them wait for some locks.
 */
static uint64_t work_of_expiry(unsigned version)
{
    enum { SESSIONS = 9900, WAITING = 5100, EACH = 29 };
    struct core_fixture fixture;
    char id[24];
    begin(&fixture);
    lock_index(&fixture);
    for (size_t i = 0; i < SESSIONS; i++) {
        snprintf(id, sizeof id, "e%zu", i);
        open_session_for(&fixture, id, TL_SECOND);
        if (i < WAITING)
            lock(&fixture, id, i * EACH, EACH);
    }
    assert_int_equal(free_completed(&fixture), 0);
    core_reset_metrics(fixture.core);
    fixture.unbounded = version < COMMAND_SINCE_WORK_ACCOUNT;
    fixture.clock += 2 * TL_SECOND;
    assert_true(core_next_deadline(fixture.core) <= fixture.clock);
    for (bool more = true; more; more = core_next_deadline(fixture.core) == 0) {
        struct command *command = command_new(COMMAND_TICK, DIALECT_7);
        command->version = version;
        command->tick.barrier_clock = fixture.clock;
        submit(&fixture, command);
        free_all(&fixture);
    }
    assert_int_equal(fixture.core->owners->sessions.count, 1);
    uint64_t most = most_work(&fixture);
    fixture_close(&fixture);
    return most;
}

static void test_sessions_expire_in_bounded_steps(void **state)
{
    (void)state;
    assert_in_range(work_of_expiry(COMMAND_CODEC_VERSION), 1, CORE_STEP_WORK);
    assert_true(work_of_expiry(COMMAND_SINCE_WORK_ACCOUNT - 1) > CORE_STEP_WORK);
}

/* LOCKs of a session, whose places are kept. */
static void submit_many_locks(struct core_fixture *fixture)
{
    enum { WAITS = 30000 };
    open_session(fixture, "w");
    for (size_t i = 0; i < WAITS; i++)
        lock(fixture, "w", i, 1);
}

/* Named writes with long sources, which are copied. */
static void submit_named_writes(struct core_fixture *fixture)
{
    enum { WRITES = 600, TEXT = 40000 };
    char *text = mem_alloc(TEXT + 1);
    memset(text, 'x', TEXT);
    text[TEXT] = '\0';
    for (size_t i = 0; i < WRITES; i++) {
        struct command *command = puts_of(fixture, i, 1, 0);
        command->write.items[0].source = arena_printf(&command->arena, "{\"path\":\"/a/%zu\",\"t\":\"%s\"}", i, text);
        command->write.request.id = arena_printf(&command->arena, "request %zu", i);
        command->write.request.hash = i + 1;
        submit(fixture, command);
    }
    mem_free(text);
}

/* Returns: the most work of a step in which the host of waits ends, whose places are kept, or of a later TICK. */
static uint64_t work_of_host_end(void (*submit_all)(struct core_fixture *fixture), unsigned version)
{
    struct core_fixture fixture;
    begin(&fixture);
    lock_index(&fixture);
    submit_all(&fixture);
    assert_int_equal(free_completed(&fixture), 0);
    size_t count = fixture.core->owners->locks.waiting_count;
    core_reset_metrics(fixture.core);
    fixture.unbounded = version < COMMAND_SINCE_WORK_ACCOUNT;
    struct command *command = command_new(COMMAND_CANCEL, DIALECT_7);
    command->cancel.keeps_places = true; /* of host 0 */
    command->version = version;
    submit(&fixture, command);
    free_all(&fixture);
    while (core_next_deadline(fixture.core) == 0) {
        command = command_new(COMMAND_TICK, DIALECT_7);
        command->version = version;
        submit(&fixture, command);
        free_all(&fixture);
    }
    assert_int_equal(fixture.core->owners->kept_count, count);
    uint64_t first = metric_read(&core_metrics(fixture.core)->step_work_max[COMMAND_CANCEL]);
    uint64_t most = most_work(&fixture) > first ? most_work(&fixture) : first;
    core_stop(fixture.core, &fixture.effects);
    free_all(&fixture);
    fixture_close(&fixture);
    return most;
}

static void test_places_are_kept_in_bounded_steps(void **state)
{
    void (*const all[])(struct core_fixture * fixture) = {submit_many_locks, submit_named_writes};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_in_range(work_of_host_end(all[i], COMMAND_CODEC_VERSION), 1, CORE_STEP_WORK);
        assert_true(work_of_host_end(all[i], COMMAND_SINCE_WORK_ACCOUNT - 1) > CORE_STEP_WORK);
    }
}

/* Returns: the most work of a TICK in which many transactions end that were idle for too long, or of a later one. */
static uint64_t work_of_idle_transactions(unsigned version)
{
    enum { TXNS = 1100, DOCUMENTS = 17, VALUES = 9 };
    struct core_fixture fixture;
    char id[24];
    begin(&fixture);
    for (size_t i = 0; i < TXNS; i++) {
        snprintf(id, sizeof id, "t%zu", i);
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, id);
        for (size_t j = 0; j < DOCUMENTS; j++) {
            struct command *put = puts_of(&fixture, i * DOCUMENTS + j, 1, VALUES);
            put->owner.transaction = slice_from(id);
            submit(&fixture, put);
        }
        assert_int_equal(free_completed(&fixture), DOCUMENTS);
    }
    core_reset_metrics(fixture.core);
    fixture.unbounded = version < COMMAND_SINCE_WORK_ACCOUNT;
    fixture.clock += 120 * TL_SECOND;
    while (core_next_deadline(fixture.core) <= fixture.clock && fixture.core->owners->txns.count > 0) {
        struct command *command = command_new(COMMAND_TICK, DIALECT_7);
        command->version = version;
        command->tick.barrier_clock = fixture.clock;
        submit(&fixture, command);
        free_all(&fixture);
    }
    assert_int_equal(fixture.core->owners->txns.count, 0);
    uint64_t most = most_work(&fixture);
    fixture_close(&fixture);
    return most;
}

static void test_idle_transactions_end_in_bounded_steps(void **state)
{
    (void)state;
    assert_in_range(work_of_idle_transactions(COMMAND_CODEC_VERSION), 1, CORE_STEP_WORK);
    assert_true(work_of_idle_transactions(COMMAND_SINCE_WORK_ACCOUNT - 1) > CORE_STEP_WORK);
}

/* --- After a cleanup ---------------------------------------------------------------------------------------------- */

/* Puts documents that live with a session, which ends soon, and locks their index for it. */
static void open_owner_of_documents(struct core_fixture *fixture, const char *id, const char *index, size_t count)
{
    enum { VALUES = 14 };
    open_session_for(fixture, id, TL_SECOND);
    for (size_t i = 0; i < count; i++) { /* each with entries of its own */
        struct command *put = puts_of(fixture, i, 1, VALUES);
        put->write.items[0].index = slice_from(index);
        put->write.items[0].lease = slice_from(id);
        submit(fixture, put);
    }
    assert_int_equal(free_completed(fixture), count);
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->owner.session = slice_from(id);
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.target_count = 1;
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = slice_from(index)};
    submit(fixture, command);
    assert_int_equal(free_completed(fixture), 1);
}

/*
 * Returns: the most work of a TICK that removes the documents of a session, which a bulk waits for, or of a later one.
 * The bulk takes nearly a step by itself.
 */
static uint64_t work_after_cleanup(bool atomic, const char *txn)
{
    enum { DOCUMENTS = 740, ITEMS = 400 };
    struct core_fixture fixture;
    begin(&fixture);
    if (txn[0] != '\0')
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, txn);
    open_owner_of_documents(&fixture, "e", "fs", DOCUMENTS);
    struct command *bulk = puts_of(&fixture, 2 * DOCUMENTS, ITEMS, FIELDS);
    bulk->write.atomic = atomic;
    bulk->owner.transaction = slice_from(txn);
    submit(&fixture, bulk);
    assert_int_equal(fixture.core->owners->locks.waiting_count, 1);
    core_reset_metrics(fixture.core);
    fixture.clock += 2 * TL_SECOND;
    assert_true(core_next_deadline(fixture.core) <= fixture.clock);
    size_t done = 0;
    for (bool more = true; more; more = core_next_deadline(fixture.core) == 0) {
        struct command *command = command_new(COMMAND_TICK, DIALECT_7);
        command->tick.barrier_clock = fixture.clock;
        submit(&fixture, command);
        done += free_completed(&fixture);
    }
    assert_in_range(done, 1, ITEMS);
    assert_int_equal(fixture.core->owners->sessions.count, 1);
    assert_int_equal(fixture.core->owners->ready_count, 0);
    uint64_t most = most_work(&fixture);
    core_stop(fixture.core, &fixture.effects);
    fixture_close(&fixture);
    return most;
}

static void test_bulk_leaves_what_cleanup_has_spent(void **state)
{
    (void)state;
    static const struct {
        bool atomic;
        const char *txn;
    } cases[] = {{false, ""}, {true, ""}, {false, "t"}, {true, "t"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_in_range(work_after_cleanup(cases[i].atomic, cases[i].txn), 1, CORE_STEP_WORK);
}

/* What happened to an atomic write in a transaction that was ready while several sessions were cleaned up. */
struct turns {
    uint64_t work;      /* of the longest step */
    size_t cleaned;     /* sessions that were cleaned up before the write ran */
    size_t cleaned_all; /* in the end */
};

/* Sessions with many documents expire; the write awaits the locks of the first. `turn`: by the clock, its own. */
static struct turns run_beside_cleanup(unsigned version, bool turn)
{
    enum { SESSIONS = 4, DOCUMENTS = 740, ITEMS = 400, TURN = TL_SECOND / 10 };
    static const char *const indices[SESSIONS] = {"fs", "g1", "g2", "g3"}, *const ids[SESSIONS] = {"a", "b", "c", "d"};
    struct core_fixture fixture;
    struct turns turns = {0};
    begin(&fixture);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    for (size_t i = 0; i < SESSIONS; i++) {
        if (i > 0)
            make_index_of(&fixture, indices[i]);
        open_owner_of_documents(&fixture, ids[i], indices[i], DOCUMENTS);
    }
    struct command *bulk = puts_of(&fixture, DOCUMENTS, ITEMS, FIELDS);
    bulk->write.atomic = true;
    bulk->owner.transaction = SLICE_LIT("t");
    submit(&fixture, bulk);
    assert_int_equal(fixture.core->owners->locks.waiting_count, 1);
    core_reset_metrics(fixture.core);
    fixture.unbounded = version < COMMAND_SINCE_TURNS;
    fixture.clock += 2 * TL_SECOND;
    fixture.clock += 2 * TURN - fixture.clock % (2 * TURN) + (turn ? TURN : 0);
    for (size_t done = 0; core_next_deadline(fixture.core) <= fixture.clock;) {
        struct command *command = command_new(COMMAND_TICK, DIALECT_7);
        command->version = version;
        command->tick.barrier_clock = fixture.clock;
        size_t before = done;
        submit(&fixture, command);
        done += free_completed(&fixture);
        assert_true(done == 0 || done == ITEMS);
        turns.cleaned_all = SESSIONS + 1 - fixture.core->owners->sessions.count;
        if (before < done)
            turns.cleaned = turns.cleaned_all;
    }
    turns.work = most_work(&fixture);
    assert_int_equal(turns.cleaned_all, SESSIONS);
    core_stop(fixture.core, &fixture.effects);
    fixture_close(&fixture);
    return turns;
}

static void test_atomic_write_and_cleanup_take_turns(void **state)
{
    (void)state;
    assert_true(run_beside_cleanup(COMMAND_SINCE_TURNS - 1, false).work > CORE_STEP_WORK);
    struct turns its = run_beside_cleanup(COMMAND_CODEC_VERSION, true);
    assert_int_equal(its.cleaned, 1); /* whose end has made it ready */
    assert_in_range(its.work, 1, CORE_STEP_WORK);
    struct turns cleanup = run_beside_cleanup(COMMAND_CODEC_VERSION, false);
    assert_int_equal(cleanup.cleaned, cleanup.cleaned_all);
    assert_in_range(cleanup.work, 1, CORE_STEP_WORK);
}

/* A transaction's rollback costs its work, with a point for a part of one: also if it has little of each kind. */
static void test_rollback_costs_its_work(void **state)
{
    enum { DOCUMENTS = 60 };
    struct core_fixture fixture;
    (void)state;
    begin(&fixture);
    fixture_txn(&fixture, COMMAND_TXN_BEGIN, "t");
    for (size_t i = 0; i < DOCUMENTS; i++) {
        struct command *put = puts_of(&fixture, i, 1, 2);
        put->owner.transaction = SLICE_LIT("t");
        submit(&fixture, put);
        const struct txn *txn = map_get(&fixture.core->owners->txns, SLICE_LIT("t"));
        assert_true(txn__rollback_cost(fixture.core, txn) * WRITE_WORK_PER_COST >= txn__rollback_work(txn));
    }
    assert_int_equal(free_completed(&fixture), DOCUMENTS);
    core_stop(fixture.core, &fixture.effects);
    fixture_close(&fixture);
}

static void run_tick(struct core_fixture *fixture)
{
    struct command *command = command_new(COMMAND_TICK, DIALECT_7);
    command->tick.barrier_clock = fixture->clock;
    submit(fixture, command);
    free_all(fixture);
}

/* Each expiry looks at all sessions that are being cleaned. */
static void test_sessions_being_cleaned_count_at_expiry(void **state)
{
    enum { SESSIONS = 5000, BATCH = 10 };
    struct core_fixture fixture;
    char id[24];
    (void)state;
    begin(&fixture);
    fixture.limits.ephemeral_batch = BATCH;
    fixture_reopen(&fixture);
    for (size_t i = 0; i < SESSIONS; i++) {
        snprintf(id, sizeof id, "e%zu", i);
        open_session_for(&fixture, id, TL_SECOND);
    }
    open_session_for(&fixture, "last", 4 * TL_SECOND);
    assert_int_equal(free_completed(&fixture), 0);
    fixture.clock += 2 * TL_SECOND;
    run_tick(&fixture);
    fixture.clock += 4 * TL_SECOND;
    run_tick(&fixture); /* "last" expires */
    assert_true(fixture.core->owners->sessions.count > SESSIONS / 2);
    assert_true(core_step_work(fixture.core) > fixture.core->owners->sessions.count);
    fixture_close(&fixture);
}

/* A put of a transaction, whose document another owner has locked or not. */
static void put_in(struct core_fixture *fixture, const char *txn, size_t first, size_t count)
{
    struct command *put = puts_of(fixture, first, count, 0);
    put->owner.transaction = arena_printf(&put->arena, "%s", txn);
    submit(fixture, put);
}

/* A LOCK closes a cycle with each of many transactions. Returns: the work of the longest step from then on. */
static uint64_t work_of_victims(unsigned version)
{
    enum { TXNS = 6, BULKS = 20, EACH = 1000, OF_TXN = BULKS * EACH, AWAITED = TXNS * OF_TXN };
    struct core_fixture fixture;
    char id[24];
    begin(&fixture);
    lock(&fixture, "s", AWAITED, 1);
    assert_int_equal(free_completed(&fixture), 1);
    for (size_t i = 0; i < TXNS; i++) {
        snprintf(id, sizeof id, "t%zu", i);
        fixture_txn(&fixture, COMMAND_TXN_BEGIN, id);
        for (size_t j = 0; j < BULKS; j++) {
            put_in(&fixture, id, i * OF_TXN + j * EACH, EACH);
            settle(&fixture, COMMAND_CODEC_VERSION);
        }
        put_in(&fixture, id, AWAITED, 1);
    }
    assert_int_equal(fixture.core->owners->locks.waiting_count, TXNS);
    core_reset_metrics(fixture.core);
    fixture.unbounded = true; /* the caller looks */
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    command->version = version;
    command->owner.session = SLICE_LIT("s");
    command->owner.timeout_us = 60 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, TXNS * sizeof(struct lock_target));
    command->lock.target_count = TXNS;
    for (size_t i = 0; i < TXNS; i++)
        command->lock.targets[i] = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("fs"), .id = arena_printf(&command->arena, "%zu", i * OF_TXN)};
    submit(&fixture, command);
    free_all(&fixture);
    while (core_next_deadline(fixture.core) == 0)
        run_tick(&fixture);
    assert_int_equal(fixture.core->owners->txns.count, 0);
    assert_int_equal(fixture.core->owners->locks.waiting_count, 0);
    uint64_t most = most_work(&fixture),
             of_lock = metric_read(&core_metrics(fixture.core)->step_work_max[COMMAND_LOCK]);
    core_stop(fixture.core, &fixture.effects);
    free_all(&fixture);
    fixture_close(&fixture);
    return most > of_lock ? most : of_lock;
}

static void test_victims_of_deadlocks_end_in_bounded_steps(void **state)
{
    (void)state;
    assert_true(work_of_victims(COMMAND_SINCE_WORK_ACCOUNT - 1) > CORE_STEP_WORK);
    assert_in_range(work_of_victims(COMMAND_SINCE_WORK_ACCOUNT), 1, CORE_STEP_WORK);
}

/* Returns: the most work of a step in which a restart requests the locks of deferred updates of a large document. */
static uint64_t work_of_restart(unsigned version)
{
    enum { ACTIONS = 300, FILLING = 20000 };
    struct core_fixture fixture;
    struct buf action = BUF_INIT(BUF_UNLIMITED);
    begin(&fixture);
    struct command *put = puts_of(&fixture, 0, 1, FIELDS);
    put->write.items[0].source = arena_printf(&put->arena, "{\"path\":\"/a/b\",\"t\":\"%0*d\"}", FILLING, 0);
    submit(&fixture, put);
    assert_int_equal(free_completed(&fixture), 1);
    lock_index(&fixture);
    struct write_update update = {.doc = SLICE_LIT("{\"f0\":1}")};
    struct write_item item = fixture_item(WRITE_UPDATE, "fs", "", "0", NULL);
    item.update = &update;
    action_encode_all(&action, &item, 1);
    for (size_t i = 0; i < ACTIONS; i++) { /* as read from the records of an old store */
        struct deferred like = {.number = i + 1, .session = SLICE_LIT("gone"), .action = buf_as_slice(&action)};
        deferred__make(fixture.core, &like);
    }
    deferred__find_unrequested(fixture.core);
    buf_deinit(&action);
    fixture.unbounded = version < COMMAND_SINCE_RESTART_CHARGED;
    uint64_t most = 0;
    while (!list_empty(&fixture.core->owners->unrequested)) {
        struct command *command = command_new(COMMAND_RESTART, DIALECT_7);
        command->version = version;
        submit(&fixture, command);
        free_all(&fixture);
        most = core_step_work(fixture.core) > most ? core_step_work(fixture.core) : most;
    }
    assert_int_equal(fixture.core->owners->locks.waiting_count, ACTIONS);
    core_stop(fixture.core, &fixture.effects);
    free_all(&fixture);
    fixture_close(&fixture);
    return most;
}

static void test_restart_requests_locks_in_bounded_steps(void **state)
{
    (void)state;
    assert_true(work_of_restart(COMMAND_SINCE_RESTART_CHARGED - 1) > CORE_STEP_WORK);
    assert_in_range(work_of_restart(COMMAND_CODEC_VERSION), 1, CORE_STEP_WORK);
}

/* --- Ends of owners that are not divided -------------------------------------------------------------------------- */

enum { SMALLER = 22000, LARGER = 99000 };

/* Begins a transaction that changes documents from `first` on. */
static void begin_large(struct core_fixture *fixture, const char *session, const char *id, size_t first, size_t count)
{
    enum { EACH = 1000 };
    struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
    command->owner.session = slice_from(session);
    command->txn.id = slice_from(id);
    command->txn.idle_us = 60 * TL_SECOND;
    command->txn.of_host = true; /* of host 0 */
    submit(fixture, command);
    assert_int_equal(free_completed(fixture), 0);
    for (size_t i = 0; i < count; i += EACH) {
        put_in(fixture, id, first + i, EACH);
        settle(fixture, COMMAND_CODEC_VERSION);
    }
}

static void begin_both(struct core_fixture *fixture, const char *session)
{
    begin_large(fixture, session, "t1", 0, SMALLER);
    begin_large(fixture, session, "t2", SMALLER, LARGER);
}

static void submit_type(struct core_fixture *fixture, enum command_type type, unsigned version)
{
    struct command *command = command_new(type, DIALECT_7);
    command->version = version;
    if (type == COMMAND_SESSION_CLOSE)
        command->session.id = SLICE_LIT("s");
    else if (type == COMMAND_TICK)
        command->tick.barrier_clock = fixture->clock;
    submit(fixture, command);
}

static void lose_machine(struct core_fixture *fixture, unsigned version)
{
    begin_both(fixture, "");
    submit_type(fixture, COMMAND_MACHINE_LOST, version);
}

static void restart_host(struct core_fixture *fixture, unsigned version)
{
    begin_both(fixture, "");
    submit_type(fixture, COMMAND_RESTART, version);
}

static void close_session(struct core_fixture *fixture, unsigned version)
{
    begin_both(fixture, "s");
    submit_type(fixture, COMMAND_SESSION_CLOSE, version);
}

static void idle(struct core_fixture *fixture, unsigned version)
{
    begin_both(fixture, "");
    fixture->clock += 120 * TL_SECOND;
    submit_type(fixture, COMMAND_TICK, version);
}

static void expire(struct core_fixture *fixture, unsigned version)
{
    open_session_for(fixture, "a", TL_SECOND);
    open_session_for(fixture, "b", TL_SECOND);
    assert_int_equal(free_completed(fixture), 0);
    begin_large(fixture, "a", "t1", 0, SMALLER / 2); /* a quarter of the account is kept for timeouts */
    begin_large(fixture, "b", "t2", SMALLER, LARGER);
    fixture->clock += 2 * TL_SECOND;
    submit_type(fixture, COMMAND_TICK, version);
}

/*
 * Two transactions end together, of which the larger one needs more than the account of a step. Returns: the most work
 * of a step, `ret_left`: how many of them the first step has left. `turn`: of the clock (cost_turn()).
 */
static uint64_t work_of_ends(void (*end)(struct core_fixture *fixture, unsigned version), unsigned version,
                             uint64_t turn, size_t *ret_left)
{
    enum { TURN = TL_SECOND / 10, TURNS = 4 };
    struct core_fixture fixture;
    begin(&fixture);
    fixture.clock += TURNS * TURN - fixture.clock % (TURNS * TURN) + turn * TURN;
    end(&fixture, version);
    free_all(&fixture);
    uint64_t work = core_step_work(fixture.core);
    *ret_left = fixture.core->owners->txns.count;
    for (size_t ticks = 0; fixture.core->owners->txns.count > 0; ticks++) {
        assert_true(ticks < 5);
        assert_int_equal(core_next_deadline(fixture.core), 0);
        run_tick(&fixture);
        work = core_step_work(fixture.core) > work ? core_step_work(fixture.core) : work;
    }
    assert_int_equal(fixture.core->owners->abandoned_count, 0);
    assert_int_equal(fixture.core->owners->locks.hold_count, 0);
    core_stop(fixture.core, &fixture.effects);
    free_all(&fixture);
    fixture_close(&fixture);
    return work;
}

static void check_ends(void (*end)(struct core_fixture *fixture, unsigned version), uint64_t turn)
{
    size_t left;
    uint64_t before = work_of_ends(end, COMMAND_SINCE_ENDS_FIT - 1, turn, &left);
    assert_int_equal(left, 0);
    uint64_t work = work_of_ends(end, COMMAND_CODEC_VERSION, turn, &left);
    assert_int_equal(left, 1);
    assert_true(work + SMALLER < before);
}

/* The host ends while two atomic writes are carried out in pieces, in transactions that no client knows. */
static void stop_host(struct core_fixture *fixture, unsigned version)
{
    enum { ITEMS = 20000, DONE = 10000 };
    for (size_t i = 0; i < 2; i++) {
        struct command *command = puts_of(fixture, i * ITEMS, ITEMS, 0);
        command->write.atomic = true;
        submit(fixture, command);
    }
    const struct txn *first = NULL;
    while (first == NULL || first->overlay == NULL || overlay_count(first->overlay) < DONE) {
        run_tick(fixture);
        assert_int_equal(fixture->core->owners->txns.count, 2);
        first = list_entry(fixture->core->owners->open_txns.next, struct txn, of_all);
    }
    submit_type(fixture, COMMAND_CANCEL, version);
}

static void test_transactions_end_with_their_machine_in_bounded_steps(void **state)
{
    (void)state;
    check_ends(lose_machine, 0);
}

static void test_transactions_end_with_their_host_in_bounded_steps(void **state)
{
    (void)state;
    check_ends(restart_host, 1);
}

static void test_transactions_end_with_their_session_in_bounded_steps(void **state)
{
    (void)state;
    check_ends(close_session, 2);
}

static void test_pieces_of_atomic_writes_end_with_their_host_in_bounded_steps(void **state)
{
    (void)state;
    check_ends(stop_host, 2);
}

static void test_large_idle_transactions_end_in_bounded_steps(void **state)
{
    (void)state;
    check_ends(idle, 3);
}

static void test_transactions_end_with_expired_sessions_in_bounded_steps(void **state)
{
    (void)state;
    check_ends(expire, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waiting_puts_resume_in_bounded_steps),
        cmocka_unit_test(test_waiting_puts_of_medium_documents_resume_in_bounded_steps),
        cmocka_unit_test(test_waiting_locks_complete_in_bounded_steps),
        cmocka_unit_test(test_names_of_waiting_locks_are_looked_at_in_bounded_steps),
        cmocka_unit_test(test_waiting_locks_give_back_others_in_bounded_steps),
        cmocka_unit_test(test_large_locks_resume_before_others),
        cmocka_unit_test(test_levels_of_locks_that_ask_anew_are_charged),
        cmocka_unit_test(test_large_alias_changes_resume_before_others),
        cmocka_unit_test(test_waiting_bulk_leaves_what_others_have_spent),
        cmocka_unit_test(test_mappings_of_waiting_puts_count),
        cmocka_unit_test(test_places_are_kept_in_bounded_steps),
        cmocka_unit_test(test_idle_transactions_end_in_bounded_steps),
        cmocka_unit_test(test_sessions_expire_in_bounded_steps),
        cmocka_unit_test(test_bulk_leaves_what_cleanup_has_spent),
        cmocka_unit_test(test_atomic_write_and_cleanup_take_turns),
        cmocka_unit_test(test_rollback_costs_its_work),
        cmocka_unit_test(test_sessions_being_cleaned_count_at_expiry),
        cmocka_unit_test(test_victims_of_deadlocks_end_in_bounded_steps),
        cmocka_unit_test(test_restart_requests_locks_in_bounded_steps),
        cmocka_unit_test(test_transactions_end_with_their_machine_in_bounded_steps),
        cmocka_unit_test(test_transactions_end_with_their_host_in_bounded_steps),
        cmocka_unit_test(test_transactions_end_with_their_session_in_bounded_steps),
        cmocka_unit_test(test_large_idle_transactions_end_in_bounded_steps),
        cmocka_unit_test(test_pieces_of_atomic_writes_end_with_their_host_in_bounded_steps),
        cmocka_unit_test(test_transactions_end_with_expired_sessions_in_bounded_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
