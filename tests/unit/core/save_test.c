/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the state of a core outside of its store is saved and loaded, and damage is refused with
 * its position. Method: a core with state of each kind: sessions with cleanup actions and
 * attachments, one of them terminating; transactions with changes; waiting requests, one of them
 * partly done; granted ones that have not run; ended ones not answered yet; deferred cleanup
 * actions; lock events. That a loaded core continues equally after any step is tested by a
 * simulator (tests/sim/replicas). Files of each version must stay readable.
 *
 * usage: save_test DIRECTORY [--write]
 */
#include "../../lib/core_fixture.h"
#include "../../lib/arguments.h"
#include "../../lib/unit.h"
#include "../../lib/maintenance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "core/cleanup/deferred.h"
#include "core/session/owners.h"
#include "core/cleanup/cleanup_attempt.h"
#include "core/locks/resource.h"
#include "core/session/txn.h"
#include "core/wait/wait.h"
#include "core/step/save.h"
#include "core/command/section.h"
#include "core/unit/unit.h"

static const char *directory;
static bool writes;

/* Steps a command of a host, which may wait. */
static void step_from(struct core_fixture *fixture, struct command *command, uint64_t host)
{
    static uint64_t requests = 0;

    if (fixture->now <= core_last_ts(fixture->core))
        fixture->now = core_last_ts(fixture->core);
    command->request = host << HOST_SHIFT | ++requests;
    command->ts = ++fixture->now;
    command->clock = fixture->clock += 10;
    assert_int_equal(core_step(fixture->core, command, &fixture->effects), 0);
}

static void step(struct core_fixture *fixture, struct command *command)
{
    step_from(fixture, command, 0);
}

static void free_completed(struct core_fixture *fixture)
{
    for (struct command *command; (command = fixture_completed(fixture)) != NULL; command_free(command))
        if (command->type == COMMAND_TXN_LOCK)
            core_overlay_unref(command->txn_lock.overlay);
}

static void open_session(struct core_fixture *fixture, const char *id, bool acts)
{
    struct command *command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);

    command->session.id = slice_from(id);
    command->session.name = slice_from("the holder");
    command->session.ttl_us = 60 * TL_SECOND;
    if (acts) {
        command->session.on_expire = arena_zalloc(&command->arena, sizeof(struct write_item));
        command->session.on_expire[0] = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"left\":1}");
        command->session.on_expire_count = 1;
    }
    step(fixture, command);
}

static void session(struct core_fixture *fixture, enum command_type type, const char *id, bool force)
{
    struct command *command = command_new(type, DIALECT_7);

    command->session.id = slice_from(id);
    command->session.attachment = 77;
    command->session.force = force;
    step(fixture, command);
}

static void lock(struct core_fixture *fixture, const char *session, const char *id, enum lock_mode mode)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);

    command->owner.session = slice_from(session);
    command->owner.timeout_us = 30 * TL_SECOND;
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){.mode = mode, .index = SLICE_LIT("fs"), .id = slice_from(id)};
    command->lock.target_count = 1;
    step(fixture, command);
}

static void begin(struct core_fixture *fixture, const char *id, const char *session)
{
    struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);

    command->txn.id = slice_from(id);
    command->txn.idle_us = 60 * TL_SECOND;
    command->owner.session = slice_from(session);
    step(fixture, command);
}

/* Begins a transaction that a host has for a request. */
static void begin_of_host(struct core_fixture *fixture, const char *id, uint64_t host)
{
    struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);

    command->txn.id = slice_from(id);
    command->txn.mode = TXN_UPDATE;
    command->txn.idle_us = 60 * TL_SECOND;
    command->txn.of_host = true;
    step_from(fixture, command, host);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
}

static void restart_host(struct core_fixture *fixture, uint64_t host)
{
    step_from(fixture, command_new(COMMAND_RESTART, DIALECT_7), host);
}

/* Records that the process ended during a cleanup action. */
static void record_attempt(struct core_fixture *fixture, const char *session, uint64_t deferred, uint64_t action)
{
    struct command *command = command_new(COMMAND_TRIED, DIALECT_7);

    command->tried = (struct tried_command){.session = slice_from(session), .deferred = deferred, .action = action};
    step(fixture, command);
}

/* Writes documents `first` to `last` in one request; `lease` and `transaction` may be "". */
static void put_by(struct core_fixture *fixture, int first, int last, const char *transaction, const char *lease,
                   const char *session)
{
    struct command *command = fixture_write_command(fixture, (size_t)(last - first + 1));

    for (int i = first; i <= last; i++) {
        struct write_item *item = &command->write.items[i - first];
        *item = fixture_item(WRITE_INDEX, "fs", "", "", "{\"v\":1}");
        item->id = arena_printf(&command->arena, "%d", i);
        item->lease = slice_from(lease);
    }
    command->owner.transaction = slice_from(transaction);
    command->owner.session = slice_from(session);
    command->owner.timeout_us = 30 * TL_SECOND;
    step(fixture, command);
}

/* Writes document 1, which is locked, as part 2 of a named request, and a repetition. Both wait. */
static void put_named(struct core_fixture *fixture)
{
    for (int i = 0; i < 2; i++) {
        struct command *command = fixture_write_command(fixture, 2);

        command->write.items[0] = fixture_item(WRITE_INDEX, "fs", "", "1", "{\"v\":2}");
        command->write.items[1] = fixture_item(WRITE_INDEX, "fs", "", "80", "{\"v\":2}");
        command->write.request = (struct write_request){SLICE_LIT("named"), 4711, 2};
        command->owner.timeout_us = 30 * TL_SECOND;
        step(fixture, command);
    }
}

static void put(struct core_fixture *fixture, int first, int last, const char *transaction, const char *lease)
{
    put_by(fixture, first, last, transaction, lease, "");
}

/* Runs steps until no work is due at once. Returns: how many. */
static int run_due(struct core_fixture *fixture)
{
    int count = 0;

    for (; core_next_deadline(fixture->core) == 0; count++)
        step(fixture, command_new(COMMAND_TICK, DIALECT_7));
    return count;
}

/* Makes granted and ended requests that need several steps, so that some of both are left. */
static void leave_unfinished(struct core_fixture *fixture)
{
    open_session(fixture, "r", false);
    open_session(fixture, "e", false);
    for (int i = 0; i < 4; i++)
        lock(fixture, "r", (const char *[]){"60", "61", "62", "63"}[i], LOCK_X);
    for (int i = 60; i < 64; i++)
        put(fixture, i, i, "", "");
    lock(fixture, "e", "1", LOCK_S);
    put_by(fixture, 1, 1, "", "", "e");
    put_by(fixture, 64, 69, "", "", "e");
    lock(fixture, "b", "70", LOCK_X);
    put_by(fixture, 69, 70, "", "", "e"); /* partly done */
    session(fixture, COMMAND_SESSION_CLOSE, "r", false);
    session(fixture, COMMAND_SESSION_CLOSE, "e", true);
}

/* A host joins the cluster, or leaves it. */
static void host(struct core_fixture *fixture, const char *name, uint64_t life, bool leaves)
{
    struct command *command = command_new(leaves ? COMMAND_HOST_GONE : COMMAND_JOIN, DIALECT_7);

    if (leaves)
        command->gone = (struct gone_command){.name = slice_from(name), .life = life};
    else
        command->join = (struct join_command){.name = slice_from(name),
                                              .group = SLICE_LIT("default"),
                                              .address = SLICE_LIT("10.0.0.1:9200"),
                                              .build = SLICE_LIT("0.1.0"),
                                              .life = life,
                                              .limits = fixture->limits};
    step(fixture, command);
}

/* Fills a core with state of each kind. */
/* Has two paths of the index "fs" watched. */
static void watch_paths(struct core_fixture *fixture)
{
    struct command *command = command_new(COMMAND_PLACES_WATCH, DIALECT_7);

    command->places = (struct places_command){SLICE_LIT("fs"), {SLICE_LIT("/a"), SLICE_LIT("/b/c/")}};
    step(fixture, command);
}

static void fill(struct core_fixture *fixture)
{
    static const char *const ids[] = {"h2", "h3", "h4", "h5", "h6"};

    fixture_open(fixture);
    core_close(fixture->core);
    fixture->limits.ephemeral_batch = 2;
    assert_int_equal(core_open(fixture->store, &fixture->limits, &fixture->core), 0);
    core_begin_chain(fixture->core, 9);
    put(fixture, 1, 4, "", "");
    open_session(fixture, "a", false);
    open_session(fixture, "b", false);
    open_session(fixture, "gone", true);
    open_session(fixture, "leaves", true);
    open_session(fixture, "waits", false);
    session(fixture, COMMAND_SESSION_ATTACH, "a", false);
    lock(fixture, "a", "1", LOCK_X);
    lock(fixture, "b", "2", LOCK_S);
    lock(fixture, "b", "3", LOCK_S);
    session(fixture, COMMAND_SESSION_CLOSE, "gone", true); /* its action is deferred */
    lock(fixture, "b", "1", LOCK_X);                       /* waits */
    begin(fixture, "t1", "waits");
    put(fixture, 20, 21, "t1", "");
    put(fixture, 22, 22, "t1", "");
    begin(fixture, "t2", "");
    put(fixture, 2, 2, "t2", ""); /* waits */
    put(fixture, 1, 6, "", "");   /* some of its items wait */
    put_named(fixture);
    watch_paths(fixture);
    begin_of_host(fixture, "h1", 3);
    put(fixture, 40, 41, "h1", "");
    record_attempt(fixture, "gone", 1, 0);
    open_session(fixture, "ends", true);
    record_attempt(fixture, "ends", 0, 0);
    record_attempt(fixture, "ends", 0, 0);
    session(fixture, COMMAND_SESSION_CLOSE, "ends", true); /* its action is set aside */
    host(fixture, "two", 4711, false);
    host(fixture, "one", 4712, false);
    host(fixture, "two", 4711, true);
    put(fixture, 30, 37, "", "leaves");
    leave_unfinished(fixture);
    for (int i = 0; i < 5; i++)
        begin_of_host(fixture, ids[i], 4);
    restart_host(fixture, 4); /* rolls back two of its transactions, and two in each later TICK */
    session(fixture, COMMAND_SESSION_CLOSE, "leaves", true); /* its action takes a part of the step */
    step(fixture, command_new(COMMAND_TICK, DIALECT_7));     /* hides its documents; resumes one request */
    free_completed(fixture);
}

static void empty(struct core_fixture *fixture)
{
    core_stop(fixture->core, &fixture->effects);
    free_completed(fixture);
    fixture_close(fixture);
}

static void save(struct core_fixture *fixture, struct buf *saved)
{
    buf_clear(saved);
    core_save(fixture->core, saved);
}

static int load(struct core_fixture *fixture, struct slice saved, struct buf *reason, struct core **ret_core)
{
    if (reason != NULL)
        buf_clear(reason);
    return core_load(fixture->store, &fixture->limits, saved, reason, ret_core);
}

static void test_checkpoint_fixture_has_every_kind(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fill(&fixture);
    struct owners *owners = fixture.core->owners;
    assert_int_equal(fixture.core->empty_paths.count, 2);
    size_t parts = 0, waits = 0, ended = 0;
    list_for_each(link, &owners->waits)
    {
        parts += list_entry(link, struct wait, of_all)->pending_items != NULL;
        ended += list_entry(link, struct wait, of_all)->ended;
        waits++;
    }
    assert_int_equal(waits,
                     /*
                      * A lock, a write in a transaction, a bulk, two named writes, two deferred
                      * actions; and the granted ones
                      */
                     7 + 2 + 3);
    assert_int_equal(parts, 2);
    assert_int_equal(owners->ready_count, 5);
    assert_int_equal(ended, 3);
    assert_int_equal(owners->deferred_count, 3);
    assert_true(deferred__find(fixture.core, 2)->set_aside && deferred__find(fixture.core, 2)->wait == NULL);
    assert_int_equal(cleanup_attempt__count(fixture.core, SLICE_LIT("gone"), 1, 0), 1);
    assert_int_equal(cleanup_attempt__count(fixture.core, SLICE_LIT("ends"), 0, 0), 0);
    assert_int_equal(owners->terminating_count, 1);
    assert_int_equal(owners->txns.count, 6);
    assert_int_equal(owners->abandoned_count, 3);
    assert_true(owners_txn(owners, SLICE_LIT("h1"))->of_host && owners_txn(owners, SLICE_LIT("h1"))->host == 3);
    assert_int_equal(owners->hosts.count, 2);
    assert_true(owners->hosts.all[0].number == 2 && owners->hosts.all[0].life == 4712 &&
                owners->hosts.all[1].life == 0);
    assert_true(owners->lock_events.count > 0);
    assert_int_equal(owners_session(owners, SLICE_LIT("a"))->attachment, 77);
    empty(&fixture);
}

static void test_loaded_core_saves_same_bytes(void **state)
{
    struct core_fixture fixture;
    struct buf saved = BUF_INIT(BUF_UNLIMITED), again = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fill(&fixture);
    save(&fixture, &saved);
    uint64_t digest = fixture_digest(&fixture);
    core_stop(fixture.core, &fixture.effects);
    free_completed(&fixture);
    core_close(fixture.core);
    assert_int_equal(load(&fixture, buf_as_slice(&saved), NULL, &fixture.core), 0);
    save(&fixture, &again);
    assert_true(slice_equal(buf_as_slice(&saved), buf_as_slice(&again)));
    assert_true(fixture_digest(&fixture) == digest);
    lock_table_check(&fixture.core->owners->locks);
    empty(&fixture);
    buf_deinit(&saved);
    buf_deinit(&again);
}

/* Saving changes neither the state, nor the events to be reported, nor the next checkpoint. */
static void test_save_changes_nothing(void **state)
{
    struct core_fixture fixture;
    struct buf saved = BUF_INIT(BUF_UNLIMITED), again = BUF_INIT(BUF_UNLIMITED), report = BUF_INIT(BUF_UNLIMITED);
    (void)state;

    fill(&fixture);
    uint64_t digest = fixture_digest(&fixture), chain = core_chain(fixture.core);
    save(&fixture, &saved);
    assert_true(fixture_digest(&fixture) == digest && core_chain(fixture.core) == chain);
    save(&fixture, &again);
    assert_true(slice_equal(buf_as_slice(&saved), buf_as_slice(&again)));
    core_report(fixture.core, fixture.clock, TL_SECOND, &report);
    buf_byte(&report, '\0');
    assert_non_null(strstr(report.data, "expiry: ")); /* not reported before */
    empty(&fixture);
    buf_deinit(&saved);
    buf_deinit(&again);
    buf_deinit(&report);
}

/* Checks the result of a request whose session has ended: its remaining items did not run. */
static void check_ended(struct command *command)
{
    if (command->type == COMMAND_WRITE && command->write.item_count == 2) {
        assert_int_equal(command->write.results[0].outcome, WRITE_UPDATED);
        assert_int_equal(command->write.results[1].outcome, WRITE_FAILED);
        assert_int_equal(command->write.results[1].problem.type, PROBLEM_SESSION_MISSING);
    } else {
        assert_int_equal(command->problem.type, PROBLEM_SESSION_MISSING);
    }
}

/* Checks that a named write and its repetition have the same result: the write was executed once. */
static void check_named(const struct command *command, int64_t *version)
{
    const struct write_result *results = command->write.results;
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    assert_true(slice_is(command->write.request.id, "named") && command->write.request.hash == 4711 &&
                command->write.request.part == 2);
    assert_int_equal(results[0].outcome, WRITE_UPDATED);
    assert_int_equal(results[1].outcome, WRITE_CREATED);
    assert_int_equal(results[1].version, 1);
    assert_true(*version == 0 || *version == results[0].version);
    *version = results[0].version;
}

/*
 * When the holder unlocks, the waiting lock is granted, and the waiting bulk has all results, also
 * those of before. Named writes find what the first of them has written.
 */
static void test_loaded_waits_continue(void **state)
{
    struct core_fixture fixture;
    struct buf saved = BUF_INIT(BUF_UNLIMITED);
    bool locked = false, wrote = false;
    int alone = 0, ended = 0, named = 0;
    int64_t version_named = 0;
    (void)state;

    fill(&fixture);
    save(&fixture, &saved);
    core_stop(fixture.core, &fixture.effects);
    free_completed(&fixture);
    core_close(fixture.core);
    assert_int_equal(load(&fixture, buf_as_slice(&saved), NULL, &fixture.core), 0);
    session(&fixture, COMMAND_SESSION_CLOSE, "a", false);
    assert_true(run_due(&fixture) > 3); /* deferred actions run first */
    session(&fixture, COMMAND_SESSION_CLOSE, "b", false);
    run_due(&fixture);
    for (struct command *command; (command = fixture_completed(&fixture)) != NULL; command_free(command)) {
        if (slice_is(command->owner.session, "e")) {
            check_ended(command);
            ended++;
        }
        locked |= command->type == COMMAND_LOCK && command->lock.fencing_token > 0;
        alone += command->type == COMMAND_WRITE && command->write.item_count == 1 &&
                 command->problem.type == PROBLEM_NONE && command->write.results[0].outcome == WRITE_CREATED;
        if (command->type != COMMAND_WRITE || command->write.item_count != 6)
            continue;
        wrote = true;
        for (int i = 0; i < 6; i++)
            assert_true(command->write.results[i].outcome != WRITE_FAILED && command->write.results[i].version > 0);
    }
    assert_int_equal(alone, 2);    /* had been granted */
    assert_int_equal(ended, 3);    /* had ended */
    assert_true(locked && !wrote); /* the transaction has locked the document first */
    struct command *command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = SLICE_LIT("t2");
    step(&fixture, command);
    run_due(&fixture);
    for (; (command = fixture_completed(&fixture)) != NULL; command_free(command)) {
        if (command->type == COMMAND_WRITE && command->write.request.id.len > 0) {
            check_named(command, &version_named);
            named++;
        }
        if (command->type != COMMAND_WRITE || command->write.item_count != 6)
            continue;
        wrote = true;
        for (int i = 0; i < 6; i++)
            assert_true(command->write.results[i].problem.type == PROBLEM_NONE &&
                        command->write.results[i].version > 0);
    }
    assert_true(wrote);
    assert_int_equal(named, 2);
    empty(&fixture);
    buf_deinit(&saved);
}

/* A bulk of a transaction that has run some batches continues with the next one. */
static void test_loaded_txn_bulk_continues(void **state)
{
    enum { ITEMS = 7 };
    struct core_fixture fixture;
    struct buf saved = BUF_INIT(BUF_UNLIMITED);
    struct command *command;
    (void)state;

    fixture_open(&fixture);
    core_close(fixture.core);
    fixture.limits.ephemeral_batch = 2;
    assert_int_equal(core_open(fixture.store, &fixture.limits, &fixture.core), 0);
    core_begin_chain(fixture.core, 9);
    begin(&fixture, "t", "");
    put(&fixture, 1, ITEMS, "t", "");
    assert_int_equal(fixture.core->owners->ready_count, 1);
    save(&fixture, &saved);
    core_stop(fixture.core, &fixture.effects);
    free_completed(&fixture);
    core_close(fixture.core);
    assert_int_equal(load(&fixture, buf_as_slice(&saved), NULL, &fixture.core), 0);
    assert_int_equal(fixture.core->owners->ready_count, 1);
    assert_true(run_due(&fixture) >= ITEMS / 2);
    for (size_t found = 0; (command = fixture_completed(&fixture)) != NULL; command_free(command)) {
        if (command->type != COMMAND_WRITE)
            continue;
        assert_int_equal(found++, 0);
        for (size_t i = 0; i < ITEMS; i++)
            assert_int_equal(command->write.results[i].outcome, WRITE_CREATED);
    }
    command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = SLICE_LIT("t");
    step(&fixture, command);
    command = fixture_completed(&fixture);
    assert_int_equal(command->txn.changes, ITEMS);
    command_free(command);
    empty(&fixture);
    buf_deinit(&saved);
}

static void restart(struct core_fixture *fixture, uint64_t host)
{
    struct command *command = command_new(COMMAND_RESTART, DIALECT_7);

    fixture->now = core_last_ts(fixture->core) + 1;
    command->ts = fixture->now;
    command->clock = fixture->clock += 10;
    command->request = host << HOST_SHIFT;
    assert_int_equal(core_step(fixture->core, command, &fixture->effects), 0);
    free_completed(fixture);
}

/* RESTART of a host ends its own attachments, and nothing that was loaded. */
static void test_restart_of_host_keeps_loaded_cleanup(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fill(&fixture);
    struct owners *owners = fixture.core->owners;
    uint64_t lease = owners_session(owners, SLICE_LIT("b"))->lease.at;
    restart(&fixture, 3);
    assert_int_equal(owners_session(owners, SLICE_LIT("a"))->attachment, 77);
    restart(&fixture, 0);
    assert_int_equal(owners_session(owners, SLICE_LIT("a"))->attachment, 0);
    assert_true(owners_session(owners, SLICE_LIT("a"))->lease.at > lease);
    assert_true(owners_session(owners, SLICE_LIT("b"))->lease.at == lease);
    assert_int_equal(owners->txns.count, 2);
    struct command *command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = SLICE_LIT("t1");
    step(&fixture, command);
    command = fixture_completed(&fixture);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    assert_int_equal(command->txn.changes, 3);
    command_free(command);
    assert_int_equal(fixture_count(&fixture, "fs"), 17);
    empty(&fixture);
}

/*
 * Before version 9 cleanup of an ended session takes several units, each with its timestamp, before
 * the command of the step: a timestamp ceiling is above them.
 */
static void test_ts_ceiling_exceeds_units_before_it(void **state)
{
    struct core_fixture fixture = {0};
    (void)state;
    fixture_open(&fixture);
    open_session(&fixture, "leaver", false);
    for (int first = 0; first < 1500; first += 500)
        put(&fixture, first, first + 499, "", "leaver");
    session(&fixture, COMMAND_SESSION_CLOSE, "leaver", false);
    free_completed(&fixture);
    struct command *command = command_new(COMMAND_MARK, DIALECT_7);
    command->mark.ceiling = fixture.now + 1; /* the timestamp with which it is proposed */
    command->version = COMMAND_SINCE_TICK_CLEANUP - 1;
    tl_ts proposed = command->mark.ceiling;
    step(&fixture, command);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
    assert_true(command->ts > proposed);
    assert_true(core_ts_ceiling(fixture.core) == command->ts);
    free_completed(&fixture);
    empty(&fixture);
}

/* Changes of the store after the checkpoint would be applied twice. */
static void test_load_refuses_newer_store(void **state)
{
    struct buf saved = BUF_INIT(BUF_UNLIMITED), reason = BUF_INIT(BUF_UNLIMITED);
    struct core_fixture fixture;
    (void)state;
    fill(&fixture);
    save(&fixture, &saved);
    tl_ts then = core_last_ts(fixture.core);
    put(&fixture, 900, 900, "", "");
    assert_int_equal(core_load(fixture.store, &fixture.limits, buf_as_slice(&saved), &reason, &(struct core *){NULL}),
                     TL_ERR_CORRUPT);
    buf_byte(&reason, '\0');
    char expected[64];
    snprintf(expected, sizeof expected, "beyond %llu, where it was saved", (unsigned long long)then);
    assert_non_null(strstr(reason.data, expected));
    buf_deinit(&reason);
    buf_deinit(&saved);
    empty(&fixture);
}

/*
 * Acquiring and releasing locks must be durable before the reply, is in the chain, and is saved.
 */
static void test_locks_are_saved(void **state)
{
    struct core_fixture fixture;
    struct buf saved = BUF_INIT(BUF_UNLIMITED), reason = BUF_INIT(BUF_UNLIMITED);
    struct core *again;
    (void)state;

    fill(&fixture);
    for (int released = 0; released < 2; released++) {
        tl_ts binding = core_must_sync_ts(fixture.core);
        uint64_t chain = core_chain(fixture.core);
        if (released)
            session(&fixture, COMMAND_SESSION_CLOSE, "b", false);
        else
            lock(&fixture, "b", "77", LOCK_X);
        assert_true(core_must_sync_ts(fixture.core) > binding);
        assert_true(core_chain(fixture.core) != chain);
        save(&fixture, &saved);
        uint64_t digest = fixture_digest(&fixture);
        assert_int_equal(load(&fixture, buf_as_slice(&saved), &reason, &again), 0);
        core_stop(fixture.core, &fixture.effects);
        free_completed(&fixture);
        core_close(fixture.core);
        fixture.core = again;
        assert_int_equal(fixture_digest(&fixture), digest);
    }
    buf_deinit(&saved);
    buf_deinit(&reason);
    empty(&fixture);
}

/* Locks a document of a type, or of any type with "". */
static void lock_typed(struct core_fixture *fixture, const char *session, const char *type, const char *id)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_5);

    command->owner.session = slice_from(session);
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] =
        (struct lock_target){.mode = LOCK_S, .index = SLICE_LIT("fs"), .type = slice_from(type), .id = slice_from(id)};
    command->lock.target_count = 1;
    step(fixture, command);
    assert_int_equal(command->problem.type, PROBLEM_NONE);
}

/*
 * Locks a document of three types, then `most` others, so that the lock table grows, and releases all of those but
 * `left`.
 */
static void fill_types(struct core_fixture *fixture, int most, int left)
{
    char id[16];

    fixture_open(fixture);
    core_begin_chain(fixture->core, 9);
    fixture->dialect = DIALECT_5;
    fixture_index_command(fixture, COMMAND_INDEX_CREATE, "fs", "{\"mappings\":{\"b\":{},\"c\":{},\"a\":{}}}");
    assert_int_equal(fixture->last->problem.type, PROBLEM_NONE);
    open_session(fixture, "holds", false);
    open_session(fixture, "fills", false);
    open_session(fixture, "stays", false);
    lock_typed(fixture, "holds", "b", "1");
    lock_typed(fixture, "holds", "c", "1");
    lock_typed(fixture, "holds", "a", "1");
    for (int i = 0; i < most; i++) {
        snprintf(id, sizeof id, "x%d", i);
        lock_typed(fixture, i < left ? "stays" : "fills", "a", id);
    }
    session(fixture, COMMAND_SESSION_CLOSE, "fills", false);
    free_completed(fixture);
}

/* Returns: the first letters of the types of document 1, in the order of the lock table. Owns: `text`, 4 bytes. */
static const char *order_of_types(struct core_fixture *fixture, char *text)
{
    const struct resource_table *table = &fixture->core->owners->locks.resources;
    const struct resource *index = resource_index(table, SLICE_LIT("fs"));
    size_t count = 0;

    for (const struct resource *at = NULL; (at = resource_with_id(table, index, SLICE_LIT("1"), at)) != NULL;) {
        assert_true(count < 3);
        text[count++] = resource_type(at).data[0];
    }
    assert_int_equal(count, 3);
    text[count] = '\0';
    return text;
}

/*
 * Locks the same document in a core that was loaded from a checkpoint and in the one that was saved.
 * Returns: whether their lock tables iterate over its types in different orders.
 */
static bool lock_in_both(int most, int left)
{
    struct core_fixture old, loaded;
    struct buf saved = BUF_INIT(BUF_UNLIMITED), again = BUF_INIT(BUF_UNLIMITED);
    char old_order[4], loaded_order[4];

    fill_types(&old, most, left);
    fill_types(&loaded, most, left);
    save(&old, &saved);
    core_close(loaded.core);
    assert_int_equal(load(&loaded, buf_as_slice(&saved), NULL, &loaded.core), 0);
    bool differs = strcmp(order_of_types(&old, old_order), order_of_types(&loaded, loaded_order)) != 0;
    struct core_fixture *const both[] = {&old, &loaded};
    for (int i = 0; i < 2; i++) {
        open_session(both[i], "asks", false);
        lock_typed(both[i], "asks", "", "1");
        free_completed(both[i]);
    }
    assert_true(core_chain(old.core) == core_chain(loaded.core));
    save(&old, &saved);
    save(&loaded, &again);
    assert_true(slice_equal(buf_as_slice(&saved), buf_as_slice(&again)));
    empty(&old);
    empty(&loaded);
    buf_deinit(&saved);
    buf_deinit(&again);
    return differs;
}

/*
 * A loaded lock table has another history than the saved one, and iterates over the types of a
 * document in another order: each growth reverses it, and the loaded one has grown less. No result depends on that.
 */
static void test_loaded_lock_table_grants_same_locks(void **state)
{
    enum { GROWN = 80 }; /* once, and not small enough to shrink again */
    (void)state;

    assert_false(lock_in_both(0, 0));
    assert_true(lock_in_both(GROWN, GROWN / 2)); /* else it shows nothing */
}

static void join_as(struct core_fixture *fixture, const char *name, uint64_t life, const char *build)
{
    struct command *command = command_new(COMMAND_JOIN, DIALECT_7);

    command->join = (struct join_command){.name = slice_from(name),
                                          .group = SLICE_LIT("default"),
                                          .address = SLICE_LIT("10.0.0.1:9200"),
                                          .build = slice_from(build),
                                          .life = life,
                                          .limits = fixture->limits};
    step(fixture, command);
    free_completed(fixture);
}

/*
 * Cores with different chains, as of hosts that stopped at different positions before a change of
 * their build, have equal ones from the first JOIN of the new build on. A JOIN of the same build, or
 * while a host lives, does not change them: states that differ must be found.
 */
static void test_first_join_of_another_build_restarts_chain(void **state)
{
    struct core_fixture fixtures[2];
    (void)state;

    for (int i = 0; i < 2; i++) {
        fixture_open(&fixtures[i]);
        join_as(&fixtures[i], "one", 1, "0.1.0");
        host(&fixtures[i], "one", 1, true);
        core_begin_chain(fixtures[i].core, 9 + (uint64_t)i);
        join_as(&fixtures[i], "one", 2, "0.1.0");
    }
    assert_true(core_chain(fixtures[0].core) != core_chain(fixtures[1].core));
    for (int i = 0; i < 2; i++) {
        host(&fixtures[i], "one", 2, true);
        free_completed(&fixtures[i]);
        join_as(&fixtures[i], "one", 3, "0.2.0");
    }
    assert_true(core_chain(fixtures[0].core) == core_chain(fixtures[1].core));
    for (int i = 0; i < 2; i++) {
        core_begin_chain(fixtures[i].core, 9 + (uint64_t)i);
        join_as(&fixtures[i], "two", 4, "0.2.0");
    }
    assert_true(core_chain(fixtures[0].core) != core_chain(fixtures[1].core));
    empty(&fixtures[0]);
    empty(&fixtures[1]);
}

static size_t keys(struct core_fixture *fixture)
{
    return fixture_count_keys(fixture, SPACE_SYSTEM, SLICE_NONE, SLICE_NONE);
}

/*
 * Locks, transactions, deferred actions and counts of attempts write nothing to the store; a live
 * session has one key.
 */
static void test_owners_write_no_records(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    put(&fixture, 1, 1, "", "");
    open_session(&fixture, "a", false);
    size_t before = keys(&fixture);
    open_session(&fixture, "b", true);
    assert_int_equal(keys(&fixture), before + 1);
    for (int i = 0; i < 3; i++)
        lock(&fixture, "a", i == 0 ? "1" : i == 1 ? "2" : "3", LOCK_X);
    begin(&fixture, "t", "a");
    session(&fixture, COMMAND_SESSION_CLOSE, "b", true); /* its action is deferred */
    record_attempt(&fixture, "b", 1, 0);
    assert_int_equal(cleanup_attempt__count(fixture.core, SLICE_LIT("b"), 1, 0), 1);
    assert_int_equal(keys(&fixture), before);
    empty(&fixture);
}

static void reload(struct core_fixture *fixture)
{
    struct buf saved = BUF_INIT(BUF_UNLIMITED);

    save(fixture, &saved);
    core_stop(fixture->core, &fixture->effects);
    core_close(fixture->core);
    assert_int_equal(load(fixture, buf_as_slice(&saved), NULL, &fixture->core), 0);
    buf_deinit(&saved);
}

static struct write_item ephemeral(const char *index)
{
    struct write_item item = fixture_item(WRITE_CREATE, index, "", "1", "{}");

    item.lease = SLICE_LIT("s");
    return item;
}

/*
 * A unit that creates an index with an ephemeral document of session s is rolled back: the next
 * index gets its number.
 */
static void roll_back_new_index(struct core_fixture *fixture)
{
    struct command *command = fixture_write_command(fixture, 2);

    command->write.items[0] = command->write.items[1] = ephemeral("vain");
    command->write.atomic = true;
    fixture_run(fixture, command, 1);
    assert_int_equal(command->write.results[1].problem.type, PROBLEM_VERSION_CONFLICT);
    assert_null(catalog_index(fixture->core->catalog, SLICE_LIT("vain")));
}

/* The effects of maintenance. */
struct maintenance_result {
    size_t done, scanned, ephemeral_keys;
    uint64_t digest, chain;
};

/*
 * Gives an index the number of an index whose creation was rolled back. Returns: the effects of
 * maintenance afterwards.
 */
static struct maintenance_result reuse_index_number(bool loads)
{
    struct core_fixture fixture;
    struct maintenance_result it = {0};
    struct command *command;

    fixture_open(&fixture);
    core_begin_chain(fixture.core, 9);
    command = command_new(COMMAND_SESSION_OPEN, DIALECT_7);
    command->session.id = SLICE_LIT("s");
    command->session.ttl_us = 60 * TL_SECOND;
    fixture_run(&fixture, command, 1);
    roll_back_new_index(&fixture);
    if (loads)
        reload(&fixture);
    assert_int_equal(fixture_write_one(&fixture, ephemeral("comes"))->outcome, WRITE_CREATED);
    struct core_horizons past = horizons_of(fixture.store, ++fixture.now);
    assert_int_equal(core_propose_maintenance(fixture.core, &past, 100, &command), 0);
    it.scanned = command->maintain.scanned;
    assert_int_equal(apply_maintenance(fixture.core, command, fixture.now, &it.done), 0);
    it.ephemeral_keys = fixture_count_keys(&fixture, SPACE_SYSTEM, SLICE_LIT("e"), SLICE_LIT("f"));
    it.digest = fixture_digest(&fixture);
    it.chain = core_chain(fixture.core);
    command = command_new(COMMAND_SESSION_CLOSE, DIALECT_7);
    command->session.id = SLICE_LIT("s");
    fixture_run(&fixture, command, 1);
    assert_int_equal(fixture_count(&fixture, "comes"), 0);
    fixture_close(&fixture);
    return it;
}

/*
 * Maintenance has the same effects, and the document is removed with its session: its index does
 * not count as deleted.
 */
static void test_reused_number_of_rolled_back_index_is_not_deleted(void **state)
{
    (void)state;

    struct maintenance_result unloaded = reuse_index_number(false), loaded = reuse_index_number(true);
    assert_int_equal(unloaded.ephemeral_keys, 1);
    assert_int_equal(loaded.ephemeral_keys, 1);
    assert_int_equal(loaded.done, unloaded.done);
    assert_int_equal(loaded.scanned, unloaded.scanned);
    assert_true(loaded.digest == unloaded.digest);
    assert_true(loaded.chain == unloaded.chain);
}

/*
 * At each length, and with one wrong bit in each byte, another one for each commit; with each wrong
 * bit by `make test-long`.
 */
static void test_load_refuses_damage_with_position(void **state)
{
    size_t bits = getenv("TIDELOCK_TEST_LONG") != NULL ? 8 : 1;
    const char *seed = getenv("TIDELOCK_FIRST_SEED");
    size_t first = seed == NULL ? 0 : strtoull(seed, NULL, 10) % 8;
    struct core_fixture fixture;
    struct buf saved = BUF_INIT(BUF_UNLIMITED), reason = BUF_INIT(BUF_UNLIMITED);
    struct core *core;
    (void)state;

    fill(&fixture);
    save(&fixture, &saved);
    for (size_t len = 0; len < saved.len; len++) {
        assert_int_equal(load(&fixture, slice_make(saved.data, len), &reason, &core), TL_ERR_CORRUPT);
        buf_byte(&reason, '\0');
        assert_non_null(strstr(reason.data, ", at byte "));
    }
    for (size_t i = 0; i < bits * saved.len; i++) {
        size_t at = i / bits, bit = (first + (bits == 1 ? at : i)) % 8;
        saved.data[at] = (char)(saved.data[at] ^ 1 << bit);
        int r = load(&fixture, buf_as_slice(&saved), &reason, &core);
        assert_true(r == TL_ERR_CORRUPT || (r == CORE_SAVE_NEWER && at == 8));
        assert_true(reason.len > 0);
        saved.data[at] = (char)(saved.data[at] ^ 1 << bit);
    }
    buf_byte(&saved, 0);
    assert_int_equal(load(&fixture, buf_as_slice(&saved), &reason, &core), TL_ERR_CORRUPT);
    empty(&fixture);
    buf_deinit(&saved);
    buf_deinit(&reason);
}

static uint64_t number_at(const struct buf *buf, size_t at, size_t len)
{
    uint64_t number = 0;

    for (size_t i = len; i-- > 0;)
        number = number << 8 | (unsigned char)buf->data[at + i];
    return number;
}

enum { SAVED_HEAD = 9, SECTION_FRAME = 9, SECTION_CRC = 4 };

/* Corrects the checksums of all sections. */
static void put_checksums(struct buf *saved)
{
    uint32_t crc = crc32c(0, saved->data, SAVED_HEAD);

    for (size_t at = SAVED_HEAD; at < saved->len;) {
        size_t len = SECTION_FRAME + (size_t)number_at(saved, at + 1, SECTION_FRAME - 1);
        crc = crc32c(crc, saved->data + at, len);
        for (size_t i = 0; i < SECTION_CRC; i++)
            saved->data[at + len + i] = (char)(crc >> 8 * i);
        at += len + SECTION_CRC;
    }
}

/*
 * Damage with valid checksums, byte by byte: it is refused with its position, or is another state
 * that saves to the same bytes. Only the content of sections is changed; the previous test covers
 * the frames. Each byte is changed in three of the ten ways, neighbours in different ones; in all
 * ten by `make test-long`.
 */
static void test_load_validates_content_with_valid_checksums(void **state)
{
    static const unsigned char masks[] = {1, 2, 3, 4, 8, 0x10, 0x20, 0x7f, 0x80, 0xff};
    struct core_fixture fixture;
    struct buf saved = BUF_INIT(BUF_UNLIMITED), again = BUF_INIT(BUF_UNLIMITED), reason = BUF_INIT(BUF_UNLIMITED);
    size_t ways = getenv("TIDELOCK_TEST_LONG") != NULL ? sizeof masks : 3;
    size_t others = 0;
    struct core *core;
    (void)state;

    fill(&fixture);
    save(&fixture, &saved);
    for (size_t at = SAVED_HEAD; at < saved.len; at += SECTION_CRC) {
        size_t end = at + SECTION_FRAME + (size_t)number_at(&saved, at + 1, SECTION_FRAME - 1);
        for (at += SECTION_FRAME; at < end; at++) {
            for (size_t i = 0; i < ways; i++) {
                char before = saved.data[at];
                saved.data[at] = (char)(before ^ masks[(ways * at + i) % sizeof masks]);
                put_checksums(&saved);
                int r = load(&fixture, buf_as_slice(&saved), &reason, &core);
                assert_true(r == 0 || (r == TL_ERR_CORRUPT && reason.len > 0));
                if (r == 0) {
                    buf_clear(&again);
                    core_save(core, &again);
                    assert_true(slice_equal(buf_as_slice(&saved), buf_as_slice(&again)));
                    core_stop(core, &fixture.effects);
                    free_completed(&fixture);
                    core_close(core);
                    others++;
                }
                saved.data[at] = before;
            }
        }
    }
    assert_true(others > 0);
    empty(&fixture);
    buf_deinit(&saved);
    buf_deinit(&again);
    buf_deinit(&reason);
}

/* Without its session in a list of terminating ones, a request to close would never be answered. */
static void test_load_refuses_close_of_unlisted_session(void **state)
{
    struct core_fixture fixture;
    struct buf saved = BUF_INIT(BUF_UNLIMITED), reason = BUF_INIT(BUF_UNLIMITED);
    static const char *const ids[] = {"m1", "m2", "m3", "m4", "m5", "m6"};
    struct core *core;
    (void)state;

    fill(&fixture);
    open_session(&fixture, "many", false);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        begin(&fixture, ids[i], "many");
    session(&fixture, COMMAND_SESSION_CLOSE, "many", false); /* rolls back two in each step */
    struct session *many = owners_session(fixture.core->owners, SLICE_LIT("many"));
    assert_true(many != NULL && many->close_command != NULL && list_linked(&many->of_terminating));
    struct list *following = many->of_terminating.next;
    list_remove(&many->of_terminating);
    save(&fixture, &saved);
    list_insert_before(following, &many->of_terminating);
    assert_int_equal(load(&fixture, buf_as_slice(&saved), &reason, &core), TL_ERR_CORRUPT);
    assert_true(reason.len > 0);
    empty(&fixture);
    buf_deinit(&saved);
    buf_deinit(&reason);
}

/* The saved size of a lock deep in a tree, with its intention locks, is linear in the depth. */
static void test_saved_lock_size_is_linear_in_depth(void **state)
{
    enum { DEPTH = 1000, BYTES_A_LEVEL = 60 };
    struct core_fixture fixture;
    struct buf saved = BUF_INIT(BUF_UNLIMITED), again = BUF_INIT(BUF_UNLIMITED), path = BUF_INIT(BUF_UNLIMITED);
    struct core *core;
    (void)state;

    fixture_open(&fixture);
    for (int i = 0; i < DEPTH; i++)
        buf_lit(&path, "/a");
    for (int i = 0; i < 2; i++) { /* the second lock shares all levels but one */
        struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
        open_session(&fixture, i == 0 ? "s0" : "s1", false);
        buf_lit(&path, "b");
        command->owner.session = i == 0 ? SLICE_LIT("s0") : SLICE_LIT("s1");
        command->lock.targets = arena_zalloc(&command->arena, sizeof(*command->lock.targets));
        command->lock.target_count = 1;
        *command->lock.targets = (struct lock_target){
            .mode = LOCK_X, .index = SLICE_LIT("fs"), .path = arena_copy(&command->arena, buf_as_slice(&path))};
        step(&fixture, command);
    }
    free_completed(&fixture);
    save(&fixture, &saved);
    assert_true(fixture.core->owners->locks.lock_count == 2);
    assert_true(saved.len < (size_t)3 * DEPTH * BYTES_A_LEVEL);
    assert_int_equal(load(&fixture, buf_as_slice(&saved), NULL, &core), 0);
    core_save(core, &again);
    assert_true(slice_equal(buf_as_slice(&saved), buf_as_slice(&again)));
    core_close(core);
    empty(&fixture);
    buf_deinit(&saved);
    buf_deinit(&again);
    buf_deinit(&path);
}

static void test_load_reports_newer_version(void **state)
{
    struct core_fixture fixture;
    struct buf reason = BUF_INIT(BUF_UNLIMITED);
    struct core *core;
    (void)state;

    fixture_open(&fixture);
    assert_int_equal(load(&fixture, SLICE_LIT("tidecore\x1d"), &reason, &core), CORE_SAVE_NEWER);
    assert_true(slice_is(buf_as_slice(&reason), "it has version 29, and up to 28 are known here"));
    fixture_close(&fixture);
    buf_deinit(&reason);
}

static struct slice read_file(const char *path, struct buf *buf)
{
    char bytes[4096];
    size_t count;
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    while ((count = fread(bytes, 1, sizeof(bytes), file)) > 0)
        buf_append(buf, bytes, count);
    fclose(file);
    return buf_as_slice(buf);
}

static void write_version(int version)
{
    struct core_fixture fixture;
    struct buf saved = BUF_INIT(BUF_UNLIMITED);
    char path[4096];

    snprintf(path, sizeof(path), "%s/%d", directory, version);
    fill(&fixture);
    save(&fixture, &saved);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(saved.data, 1, saved.len, file), saved.len);
    fclose(file);
    empty(&fixture);
    buf_deinit(&saved);
}

/* With a store of that time, or an empty one if the bytes do not need it. */
static void read_version(int version)
{
    struct core_fixture fixture;
    struct buf saved = BUF_INIT(BUF_UNLIMITED), again = BUF_INIT(BUF_UNLIMITED);
    char path[4096];

    snprintf(path, sizeof(path), "%s/%d", directory, version);
    fixture_open(&fixture);
    core_close(fixture.core);
    assert_int_equal(load(&fixture, read_file(path, &saved), NULL, &fixture.core), 0);
    assert_non_null(owners_txn(fixture.core->owners, SLICE_LIT("t1")));
    assert_null(owners_txn(fixture.core->owners, SLICE_LIT("q"))); /* versions before 7 have it */
    save(&fixture, &again);
    assert_true(slice_equal(buf_as_slice(&saved), buf_as_slice(&again)) == (version == SECTIONS_VERSION));
    empty(&fixture);
    buf_deinit(&saved);
    buf_deinit(&again);
}

/* The public number of a transaction that is begun; 0: it is refused. */
static uint64_t number_of_begun(struct core_fixture *fixture, const char *id, enum txn_mode mode)
{
    struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
    command->txn.id = slice_from(id);
    command->txn.mode = mode;
    command->txn.idle_us = 60 * TL_SECOND;
    step(fixture, command);
    command = fixture_completed(fixture);
    uint64_t number = command->problem.type == PROBLEM_NONE ? command->txn.number : 0;
    command_free(command);
    return number;
}

/* A query transaction in a log of version 4 takes a number, as it did then, and is nothing else. */
static void test_query_of_older_log_takes_number(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    uint64_t first = number_of_begun(&fixture, "t1", TXN_UPDATE);
    assert_int_equal(number_of_begun(&fixture, "q", TXN_QUERY), 0);
    assert_null(owners_txn(fixture.core->owners, SLICE_LIT("q")));
    assert_int_equal(number_of_begun(&fixture, "t2", TXN_UPDATE), first + 2);
    struct command *command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = SLICE_LIT("q");
    step(&fixture, command);
    command = fixture_completed(&fixture);
    assert_int_equal(command->problem.type, PROBLEM_TRANSACTION_MISSING);
    command_free(command);
    empty(&fixture);
}

/* Checkpoints of older versions are read, and saved in the newest version. */
static void test_load_reads_every_version(void **state)
{
    (void)state;
    if (writes)
        write_version(SECTIONS_VERSION);
    for (int version = 1; version <= SECTIONS_VERSION; version++)
        read_version(version);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoint_fixture_has_every_kind),
        cmocka_unit_test(test_loaded_core_saves_same_bytes),
        cmocka_unit_test(test_save_changes_nothing),
        cmocka_unit_test(test_loaded_waits_continue),
        cmocka_unit_test(test_loaded_txn_bulk_continues),
        cmocka_unit_test(test_restart_of_host_keeps_loaded_cleanup),
        cmocka_unit_test(test_ts_ceiling_exceeds_units_before_it),
        cmocka_unit_test(test_load_refuses_newer_store),
        cmocka_unit_test(test_locks_are_saved),
        cmocka_unit_test(test_loaded_lock_table_grants_same_locks),
        cmocka_unit_test(test_owners_write_no_records),
        cmocka_unit_test(test_first_join_of_another_build_restarts_chain),
        cmocka_unit_test(test_reused_number_of_rolled_back_index_is_not_deleted),
        cmocka_unit_test(test_load_refuses_damage_with_position),
        cmocka_unit_test(test_load_validates_content_with_valid_checksums),
        cmocka_unit_test(test_load_refuses_close_of_unlisted_session),
        cmocka_unit_test(test_saved_lock_size_is_linear_in_depth),
        cmocka_unit_test(test_load_reports_newer_version),
        cmocka_unit_test(test_load_reads_every_version),
        cmocka_unit_test(test_query_of_older_log_takes_number),
    };

    const struct argument arguments[] = {{"FOLDER", .text = &directory}, {"--write", .flag = &writes}, {0}};
    arguments_take(argc, argv, arguments);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
