/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a named write that waited at a restart keeps its place for its repetition, and never runs by itself
 * (README-locks.md, "Kept places").
 * Method: the commands of a host that ends in good order, or that has started again. Each case runs twice, the second
 * time with the core saved and loaded before each command.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>

#include "core/command/command_codec.h"
#include "core/session/cost.h"
#include "core/session/owners.h"
#include "core/wait/wait.h"

enum { LONGER_THAN_KEPT = 11, SHORTER_THAN_KEPT = 9 }; /* seconds */
enum { AFTER_RESTART = 100000 };                       /* the first number of a request then */

struct world {
    struct core_fixture core;
    uint64_t last_request;
    uint64_t of_before; /* the last request before the last restart; 0: there was none */
    uint64_t step_work; /* of an atomic write; 0: the usual one */
    bool saves;
};

static struct command *new_as(struct world *fixture, enum command_type type)
{
    struct command *command = command_new(type, DIALECT_7);
    command->request = ++fixture->last_request;
    return command;
}

/* Returns: the number of its request. */
static uint64_t give(struct world *fixture, struct command *command, uint64_t us)
{
    struct core_fixture *core = &fixture->core;
    uint64_t request = command->request;
    if (fixture->saves)
        fixture_reopen(core);
    if (fixture->step_work != 0)
        core->core->atomic_work_max = core->core->write_work_max = fixture->step_work;
    core->now = core->now <= core_last_ts(core->core) ? core_last_ts(core->core) : core->now;
    command->ts = ++core->now;
    command->clock = core->clock += us;
    if (command->type == COMMAND_TICK)
        command->tick.barrier_clock = command->clock;
    core->core->owners->check_cost = 0; /* each step is checked */
    assert_int_equal(core_step(core->core, command, &core->effects), 0);
    return request;
}

/* What a command of the last step was answered with. */
struct reply {
    enum problem_type problem; /* of the command, or of its first item that failed */
    int64_t version;           /* of the first item */
};

/* Takes all replies. Returns: whether the command with this number, 0: none, is among them; then *ret is its reply. */
static bool take(struct world *fixture, uint64_t request, struct reply *ret)
{
    bool found = false;
    while (!list_empty(&fixture->core.effects.completed)) {
        struct command *command = list_entry(fixture->core.effects.completed.next, struct command, link);
        list_remove(&command->link);
        if (command->request == request) {
            found = true;
            *ret = (struct reply){.problem = command->problem.type};
            if (command->type == COMMAND_WRITE && command->problem.type == PROBLEM_NONE)
                *ret = (struct reply){command->write.results[0].problem.type, command->write.results[0].version};
        } else if (command->type == COMMAND_WRITE && command->request <= fixture->of_before) {
            assert_true(command->problem.type != PROBLEM_NONE ||
                        command->write.results[0].problem.type !=
                            PROBLEM_NONE); /* no client waits for it: it never ran */
        }
        command_free(command);
    }
    return found;
}

static void expect(struct world *fixture, uint64_t request, enum problem_type problem)
{
    struct reply reply;
    assert_true(take(fixture, request, &reply));
    assert_int_equal(reply.problem, problem);
}

/* Checks that the write is done, and its first document has this version. */
static void expect_version(struct world *fixture, uint64_t request, int64_t version)
{
    struct reply reply;
    assert_true(take(fixture, request, &reply));
    assert_int_equal(reply.problem, PROBLEM_NONE);
    assert_int_equal(reply.version, version);
}

static void expect_waits(struct world *fixture, uint64_t request)
{
    struct reply reply;
    assert_false(take(fixture, request, &reply));
}

static void session(struct world *fixture, enum command_type type, const char *id)
{
    struct command *command = new_as(fixture, type);
    command->session.id = slice_from(id);
    command->session.ttl_us = 3600 * TL_SECOND;
    struct reply reply;
    (void)take(fixture, give(fixture, command, 10), &reply);
}

static uint64_t lock(struct world *fixture, const char *session, const char *id, uint64_t wait_us)
{
    struct command *command = new_as(fixture, COMMAND_LOCK);
    command->owner.session = slice_from(session);
    command->owner.timeout_us = wait_us;
    command->lock.targets = arena_zalloc(&command->arena, sizeof(struct lock_target));
    command->lock.targets[0] = (struct lock_target){.mode = LOCK_X, .index = SLICE_LIT("fs"), .id = slice_from(id)};
    command->lock.target_count = 1;
    return give(fixture, command, 10);
}

static void unlock(struct world *fixture, const char *session)
{
    struct command *command = new_as(fixture, COMMAND_UNLOCK);
    command->owner.session = slice_from(session);
    give(fixture, command, 10);
}

static void tick(struct world *fixture, uint64_t seconds)
{
    for (int i = 0; i < 2; i++)
        give(fixture, new_as(fixture, COMMAND_TICK), i == 0 ? seconds * TL_SECOND : 10);
}

/* `request` 0: of all requests of the host. `version`: of the command; 0: the newest. */
static void cancel_in(struct world *fixture, uint64_t request, unsigned version)
{
    struct command *command = new_as(fixture, COMMAND_CANCEL);
    command->cancel.request = request;
    command->cancel.keeps_places = true;
    command->version = version != 0 ? version : command->version;
    give(fixture, command, 10);
}

static void cancel(struct world *fixture, uint64_t request)
{
    cancel_in(fixture, request, 0);
}

/* The commands of a host after a start. */
static void restart_in(struct world *fixture, unsigned version)
{
    struct reply reply;
    give(fixture, new_as(fixture, COMMAND_RESTART), 10);
    cancel_in(fixture, 0, version);
    fixture->of_before = fixture->last_request;
    (void)take(fixture, 0, &reply);
    fixture->last_request += AFTER_RESTART;
}

static void restart(struct world *fixture)
{
    restart_in(fixture, 0);
}

/* How a write is sent. Its items are the letters of `ids`. */
struct sent {
    const char *ids;
    const char *name; /* NULL: without */
    const char *session;
    uint64_t hash;
    uint64_t part;
    uint64_t wait_us;
    bool atomic;
    unsigned version; /* of the command; 0: the newest */
};

static const struct sent usual = {.ids = "1", .name = "a", .hash = 7, .wait_us = 60 * TL_SECOND};

static uint64_t put(struct world *fixture, struct sent sent)
{
    struct command *command = new_as(fixture, COMMAND_WRITE);
    size_t count = strlen(sent.ids);
    command->owner.timeout_us = sent.wait_us;
    if (sent.session != NULL)
        command->owner.session = slice_from(sent.session);
    command->write.items = arena_zalloc(&command->arena, count * sizeof *command->write.items);
    command->write.item_count = count;
    command->write.atomic = sent.atomic;
    for (size_t i = 0; i < count; i++) {
        command->write.items[i] = fixture_item(WRITE_INDEX, "fs", NULL, "?", "{}");
        command->write.items[i].id = arena_copy(&command->arena, slice_make(sent.ids + i, 1));
    }
    if (sent.name != NULL)
        command->write.request =
            (struct write_request){arena_copy(&command->arena, slice_from(sent.name)), sent.hash, sent.part};
    command->version = sent.version != 0 ? sent.version : command->version;
    return give(fixture, command, 10);
}

static uint64_t put_usual(struct world *fixture)
{
    return put(fixture, usual);
}

/* A write of the same document that is not repeated, and comes after the one that is. */
static uint64_t put_other(struct world *fixture)
{
    return put(fixture, (struct sent){.ids = "1", .wait_us = 60 * TL_SECOND});
}

static size_t kept_count(const struct world *fixture)
{
    return fixture->core.core->owners->kept_count;
}

static size_t held(const struct world *fixture)
{
    return fixture->core.core->owners->locks.hold_count;
}

/* Session "holder" locks document 1, which has version 1. */
static void begin(struct world *fixture, bool saves)
{
    *fixture = (struct world){.saves = saves};
    fixture_open(&fixture->core);
    session(fixture, COMMAND_SESSION_OPEN, "holder");
    session(fixture, COMMAND_SESSION_OPEN, "writer");
    expect_version(fixture, put(fixture, (struct sent){.ids = "1"}), 1);
    expect(fixture, lock(fixture, "holder", "1", 0), PROBLEM_NONE);
}

/* A named write waits for the lock of "holder", at a restart. */
static void begin_kept(struct world *fixture, bool saves, struct sent sent)
{
    begin(fixture, saves);
    expect_waits(fixture, put(fixture, sent));
    restart(fixture);
    assert_int_equal(kept_count(fixture), 1);
}

static void end(struct world *fixture)
{
    struct reply reply;
    core_stop(fixture->core.core, &fixture->core.effects);
    (void)take(fixture, 0, &reply);
    fixture_close(&fixture->core);
}

/* Repeated before its lock is free: it is before a write that was sent earlier after the restart. */
static void keeps_its_place(bool saves)
{
    struct world fixture;
    begin_kept(&fixture, saves, usual);
    uint64_t other = put_other(&fixture);
    expect_waits(&fixture, other);
    uint64_t again = put_usual(&fixture);
    expect_waits(&fixture, again);
    assert_int_equal(kept_count(&fixture), 0);
    unlock(&fixture, "holder");
    struct reply reply;
    assert_true(take(&fixture, again, &reply));
    assert_int_equal(reply.version, 2);
    tick(&fixture, 0);
    expect_version(&fixture, put(&fixture, (struct sent){.ids = "1"}), 4);
    assert_int_equal(held(&fixture), 0);
    (void)other;
    end(&fixture);
}

/* The lock is free before it is repeated: nothing is written until then, and no other write overtakes it. */
static void runs_when_it_is_repeated(bool saves)
{
    struct world fixture;
    begin_kept(&fixture, saves, usual);
    unlock(&fixture, "holder");
    uint64_t other = put_other(&fixture);
    expect_waits(&fixture, other);
    tick(&fixture, SHORTER_THAN_KEPT);
    expect_waits(&fixture, other);
    assert_string_equal(fixture_source(&fixture.core, "fs", "1"), "{}");
    uint64_t again = put(&fixture, (struct sent){.ids = "1", .name = "a", .hash = 7}); /* it need not wait */
    expect_version(&fixture, again, 2);
    tick(&fixture, 0);
    expect_version(&fixture, put_usual(&fixture), 2); /* its outcome */
    expect_version(&fixture, put(&fixture, (struct sent){.ids = "1"}), 4);
    assert_int_equal(held(&fixture), 0);
    assert_int_equal(kept_count(&fixture), 0);
    end(&fixture);
}

/*
 * It has its locks, and needs others when it is repeated, here those of another document: it waits again, as one
 * without a grant, and keeps that place at a further restart.
 */
static void waits_again_when_it_is_repeated(bool saves)
{
    struct world fixture;
    struct sent other = usual;
    other.ids = "2";
    begin_kept(&fixture, saves, usual);
    expect(&fixture, lock(&fixture, "writer", "2", 0), PROBLEM_NONE);
    unlock(&fixture, "holder");
    expect_waits(&fixture, put(&fixture, other));
    restart(&fixture);
    fixture_reopen(&fixture.core); /* without `saves` it is the first time */
    assert_int_equal(kept_count(&fixture), 1);
    uint64_t again = put(&fixture, other);
    expect_waits(&fixture, again);
    unlock(&fixture, "writer");
    expect_version(&fixture, again, 1);
    assert_int_equal(held(&fixture), 0);
    assert_int_equal(kept_count(&fixture), 0);
    end(&fixture);
}

/* Not repeated in time, by whatever the lock does meanwhile: nothing is written, and nothing is locked. */
static void ends_after_a_time(bool saves)
{
    for (int free = 0; free < 2; free++) {
        struct world fixture;
        begin_kept(&fixture, saves, usual);
        if (free)
            unlock(&fixture, "holder");
        tick(&fixture, SHORTER_THAN_KEPT);
        assert_int_equal(kept_count(&fixture), 1);
        restart(&fixture); /* gives it no further time */
        tick(&fixture, LONGER_THAN_KEPT - SHORTER_THAN_KEPT);
        assert_int_equal(kept_count(&fixture), 0);
        if (!free)
            unlock(&fixture, "holder");
        tick(&fixture, 0);
        assert_int_equal(held(&fixture), 0);
        expect_version(&fixture, put_usual(&fixture), 2); /* it begins anew */
        end(&fixture);
    }
}

/* Its own deadline ends it earlier. Its items are not tried then, although no lock blocks them. */
static void has_its_own_deadline(bool saves)
{
    struct world fixture;
    struct sent sent = usual;
    sent.wait_us = 2 * TL_SECOND;
    begin_kept(&fixture, saves, sent);
    unlock(&fixture, "holder");
    tick(&fixture, 3);
    assert_int_equal(kept_count(&fixture), 0);
    assert_int_equal(held(&fixture), 0);
    expect_version(&fixture, put(&fixture, (struct sent){.ids = "1"}), 2);
    end(&fixture);
}

/* One that does not want to wait has no place to take over, unless its locks are granted. */
static void needs_time_to_wait(bool saves)
{
    struct world fixture;
    struct sent now = usual;
    now.wait_us = 0;
    begin_kept(&fixture, saves, usual);
    expect(&fixture, put(&fixture, now), PROBLEM_LOCK_WAIT_TIMEOUT);
    assert_int_equal(kept_count(&fixture), 1);
    unlock(&fixture, "holder");
    expect_version(&fixture, put(&fixture, now), 2);
    assert_int_equal(held(&fixture), 0);
    end(&fixture);
}

/* What differs from the kept write is another request, which waits after it. */
static void only_the_same_request_takes_over(bool saves)
{
    static const struct sent others[] = {
        {.ids = "1", .name = "a", .hash = 8, .wait_us = 60 * TL_SECOND},
        {.ids = "12", .name = "a", .hash = 7, .wait_us = 60 * TL_SECOND},
        {.ids = "1", .name = "a", .hash = 7, .part = 2000, .wait_us = 60 * TL_SECOND},
        {.ids = "1", .name = "b", .hash = 7, .wait_us = 60 * TL_SECOND},
        {.ids = "1", .name = "a", .hash = 7, .session = "writer", .wait_us = 60 * TL_SECOND},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct world fixture;
        begin_kept(&fixture, saves, usual);
        uint64_t other = put(&fixture, others[i]);
        expect_waits(&fixture, other);
        assert_int_equal(kept_count(&fixture), 1);
        unlock(&fixture, "holder");
        expect_waits(&fixture, other);
        expect_version(&fixture, put_usual(&fixture), 2);
        tick(&fixture, 0);
        assert_int_equal(held(&fixture), 0);
        end(&fixture);
    }
}

/* A write of a session is repeated by it, and ends with it, granted or not. */
static void ends_with_its_session(bool saves)
{
    struct sent sent = usual;
    sent.session = "writer";
    for (int free = 0; free < 3; free++) {
        struct world fixture;
        begin_kept(&fixture, saves, sent);
        if (free > 0)
            unlock(&fixture, "holder");
        if (free == 2) {
            expect_version(&fixture, put(&fixture, sent), 2);
        } else {
            session(&fixture, COMMAND_SESSION_CLOSE, "writer");
            tick(&fixture, 0);
            expect(&fixture, put(&fixture, sent), PROBLEM_SESSION_MISSING);
        }
        assert_int_equal(kept_count(&fixture), 0);
        unlock(&fixture, "holder");
        expect_version(&fixture, put(&fixture, (struct sent){.ids = "1"}), free == 2 ? 3 : 2);
        assert_int_equal(held(&fixture), 0);
        end(&fixture);
    }
}

/* All items of a bulk wait together, and none has run before it is repeated. */
static void bulk_has_one_place(bool saves)
{
    for (int atomic = 0; atomic < 2; atomic++) {
        struct world fixture;
        struct sent sent = usual;
        sent.ids = "213";
        sent.atomic = atomic;
        begin_kept(&fixture, saves, sent);
        uint64_t other = put(&fixture, (struct sent){.ids = "3", .wait_us = 60 * TL_SECOND});
        unlock(&fixture, "holder");
        expect_waits(&fixture, other);
        assert_null(fixture_source(&fixture.core, "fs", "2"));
        expect_version(&fixture, put(&fixture, sent), 1);
        tick(&fixture, 0);
        assert_string_equal(fixture_source(&fixture.core, "fs", "2"), "{}");
        expect_version(&fixture, put(&fixture, (struct sent){.ids = "3"}), 3);
        expect_version(&fixture, put(&fixture, sent), 1);
        assert_int_equal(held(&fixture), 0);
        end(&fixture);
    }
}

/* A wait that was taken over has the deadline and the number of the repetition, runs by itself, and is kept again. */
static void is_as_any_other_once_taken_over(bool saves)
{
    struct world fixture;
    begin_kept(&fixture, saves, usual);
    uint64_t again = put_usual(&fixture);
    tick(&fixture, LONGER_THAN_KEPT);
    expect_waits(&fixture, again);
    restart(&fixture);
    assert_int_equal(kept_count(&fixture), 1);
    uint64_t other = put_other(&fixture);
    again = put_usual(&fixture);
    struct command *command = new_as(&fixture, COMMAND_CANCEL);
    command->cancel.request = other;
    give(&fixture, command, 10);
    expect(&fixture, other, PROBLEM_LOCK_WAIT_TIMEOUT);
    unlock(&fixture, "holder");
    expect_version(&fixture, again, 2);
    assert_int_equal(held(&fixture), 0);
    end(&fixture);
}

/* An ID has one place, that of the first of the requests which wait by it. The others are cancelled. */
static void name_has_one_place(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    (void)put_usual(&fixture);
    (void)put_usual(&fixture);
    struct sent other = usual;
    other.hash = 8;
    expect_waits(&fixture, put(&fixture, other));
    restart(&fixture);
    tick(&fixture, 0);
    assert_int_equal(kept_count(&fixture), 1);
    assert_int_equal(fixture.core.core->owners->locks.waiting_count, 1);
    other.wait_us = 60 * TL_SECOND;
    uint64_t waits = put(&fixture, other);
    restart(&fixture); /* the one that was kept before has the place still */
    tick(&fixture, 0);
    (void)waits;
    assert_int_equal(kept_count(&fixture), 1);
    unlock(&fixture, "holder");
    expect_version(&fixture, put_usual(&fixture), 2);
    assert_int_equal(held(&fixture), 0);
    end(&fixture);
}

/* A write of a session may be a victim of a deadlock: its repetition is another request. */
static void may_be_a_victim(bool saves)
{
    struct world fixture;
    struct sent sent = usual;
    sent.session = "writer";
    begin(&fixture, saves);
    expect(&fixture, lock(&fixture, "writer", "2", 0), PROBLEM_NONE);
    expect_waits(&fixture, put(&fixture, sent));
    restart(&fixture);
    uint64_t holder = lock(&fixture, "holder", "2", 60 * TL_SECOND);
    expect_waits(&fixture, holder);
    tick(&fixture, 0);
    assert_int_equal(kept_count(&fixture), 0);
    expect(&fixture, put(&fixture, sent), PROBLEM_DEADLOCK_DETECTED);
    unlock(&fixture, "writer");
    expect(&fixture, holder, PROBLEM_NONE);
    unlock(&fixture, "holder");
    expect_version(&fixture, put(&fixture, sent), 2);
    assert_int_equal(held(&fixture), 0);
    end(&fixture);
}

/* Nothing says which request repeats a write without a name. */
static void others_are_cancelled(bool saves)
{
    struct world fixture;
    begin(&fixture, saves);
    struct sent sent = usual;
    sent.name = NULL;
    (void)put(&fixture, sent);
    cancel(&fixture, 0);
    tick(&fixture, 0);
    assert_int_equal(kept_count(&fixture), 0);
    assert_int_equal(fixture.core.core->owners->locks.waiting_count, 0);
    end(&fixture);
}

static void has_submitter(struct command *command)
{
    command_free(command);
}

/* At an end in good order the client is answered, and its place is kept: that of all requests, or of a later one. */
static void answers_at_an_orderly_end(bool saves)
{
    for (int one = 0; one < 2; one++) {
        struct world fixture;
        begin(&fixture, saves);
        uint64_t first = put_usual(&fixture);
        list_for_each(link, &fixture.core.core->owners->waits) list_entry(link, struct wait, of_all)->command->on_done =
            has_submitter;
        cancel(&fixture, one ? first : 0);
        struct reply reply;
        assert_int_equal(take(&fixture, first, &reply), !saves);
        assert_true(saves || reply.problem == PROBLEM_STOPPING);
        unlock(&fixture, "holder");
        restart(&fixture);
        uint64_t other = put_other(&fixture);
        expect_waits(&fixture, other);
        expect_version(&fixture, put_usual(&fixture), 2);
        tick(&fixture, 0);
        assert_int_equal(held(&fixture), 0);
        end(&fixture);
    }
}

/* A named write counts as two cancelled requests, since its outcome is looked for. */
enum { WAITS = 3 * CANCELS_PER_COST, KEPT_AT_ONCE = (CANCELS_PER_COST + 1) / 2 };

/* Many named writes wait at a restart; the turns of most are still to come. */
static void begin_many(struct world *fixture, bool saves, char names[][8])
{
    begin(fixture, saves);
    for (int i = 0; i < WAITS; i++) {
        struct sent sent = usual;
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        sent.name = names[i];
        expect_waits(fixture, put(fixture, sent));
    }
    fixture->core.limits.ephemeral_batch = 1;
    fixture->core.core->limits.ephemeral_batch = 1;
    cancel(fixture, 0);
    assert_int_equal(kept_count(fixture), KEPT_AT_ONCE);
    fixture->of_before = fixture->last_request;
    fixture->last_request += AFTER_RESTART;
}

/* Runs TICKs until none is due. */
static void settle(struct world *fixture)
{
    for (int i = 0; i < 20 && core_next_wait_end(fixture->core.core) <= fixture->core.clock; i++)
        tick(fixture, 0);
    assert_true(core_next_wait_end(fixture->core.core) > fixture->core.clock);
}

/* One whose turn is to come and whose deadline passes runs no more than one that has had it. */
static void times_out_in_batches(bool saves)
{
    for (int free = 0; free < 2; free++) {
        struct world fixture;
        char names[WAITS][8];
        begin_many(&fixture, saves, names);
        if (free)
            unlock(&fixture, "holder");
        tick(&fixture, 61);
        settle(&fixture);
        unlock(&fixture, "holder");
        assert_int_equal(kept_count(&fixture), 0);
        assert_int_equal(held(&fixture), 0);
        expect_version(&fixture, put(&fixture, (struct sent){.ids = "1"}), 2);
        end(&fixture);
    }
}

/* Places are kept in batches; one whose turn is to come may be granted, and repeated, as if it had had it. */
static void keeps_in_batches(bool saves)
{
    struct world fixture;
    char names[WAITS][8];
    begin_many(&fixture, saves, names);
    struct sent sent = usual;
    sent.name = names[WAITS - 1];
    expect_waits(&fixture, put(&fixture, sent));
    unlock(&fixture, "holder");
    settle(&fixture);
    assert_int_equal(kept_count(&fixture), WAITS - 1);
    for (int i = 0; i < WAITS - 1; i++) {
        sent.name = names[i];
        expect_version(&fixture, put(&fixture, sent), 2 + i);
    }
    settle(&fixture);
    assert_int_equal(kept_count(&fixture), 0);
    assert_int_equal(held(&fixture), 0);
    end(&fixture);
}

/* --- Writes that have their locks --------------------------------------------------------------------------------- */

enum { DOCUMENTS = 12, GRANTED_AT_ONCE = 4 };

static void limit_steps(struct world *fixture, size_t batch)
{
    fixture->core.limits.ephemeral_batch = batch;
    fixture->core.core->limits.ephemeral_batch = batch;
}

/* The write of one document, whose letter is its name. */
static struct sent of_document(int number, char letter[2])
{
    struct sent sent = usual;
    letter[0] = (char)('a' + number);
    letter[1] = '\0';
    sent.ids = sent.name = letter;
    return sent;
}

static size_t ready_count(const struct world *fixture)
{
    return fixture->core.core->owners->ready_count;
}

/*
 * Each of the named writes waits for a lock of "holder", whose locks are released together: at a restart some have run,
 * and the others have their locks and are ready. Returns: how many are.
 */
static size_t begin_ready(struct world *fixture, bool saves, uint64_t wait_us, const char *session)
{
    char letter[2];
    begin(fixture, saves);
    for (int i = 0; i < DOCUMENTS; i++)
        expect(fixture, lock(fixture, "holder", of_document(i, letter).ids, 0), PROBLEM_NONE);
    for (int i = 0; i < DOCUMENTS; i++) {
        struct sent sent = of_document(i, letter);
        sent.wait_us = wait_us;
        sent.session = session;
        expect_waits(fixture, put(fixture, sent));
    }
    limit_steps(fixture, GRANTED_AT_ONCE);
    unlock(fixture, "holder");
    size_t ready = ready_count(fixture);
    assert_in_range(ready, CANCELS_PER_COST + 1, DOCUMENTS - 1);
    struct reply reply;
    (void)take(fixture, 0, &reply); /* of those that have run */
    limit_steps(fixture, 1);
    restart(fixture);
    return ready;
}

static bool is_written(struct world *fixture, int number)
{
    char letter[2];
    return fixture_source(&fixture->core, "fs", of_document(number, letter).ids) != NULL;
}

static size_t count_written(struct world *fixture)
{
    size_t count = 0;
    for (int i = 0; i < DOCUMENTS; i++)
        count += is_written(fixture, i);
    return count;
}

/* They keep the locks in batches, and do not run until they are repeated, whether they had their turn or not. */
static void ready_writes_keep_their_locks(bool saves)
{
    for (int early = 0; early < 2; early++) {
        struct world fixture;
        char letter[2];
        size_t ready = begin_ready(&fixture, saves, 60 * TL_SECOND, NULL);
        assert_int_equal(kept_count(&fixture), KEPT_AT_ONCE);
        if (!early)
            settle(&fixture);
        assert_int_equal(ready_count(&fixture), early ? ready - KEPT_AT_ONCE : 0);
        assert_int_equal(count_written(&fixture), DOCUMENTS - ready);
        limit_steps(&fixture, 1000);
        for (int i = DOCUMENTS - 1; i >= 0; i--) {
            struct sent sent = of_document(i, letter), other = sent;
            other.name = NULL;
            bool written = is_written(&fixture, i);
            uint64_t waits = put(&fixture, other);
            if (written)
                expect_version(&fixture, waits, 2);
            else
                expect_waits(&fixture, waits);
            expect_version(&fixture, put(&fixture, sent), 1); /* now, or before */
            settle(&fixture);
            expect_version(&fixture, put(&fixture, other), 3);
        }
        assert_int_equal(kept_count(&fixture), 0);
        assert_int_equal(held(&fixture), 0);
        end(&fixture);
    }
}

/* They have the whole time for that: their own wait is over. Then nothing is locked or written. */
static void ready_writes_end_after_a_time(bool saves)
{
    struct world fixture;
    char letter[2];
    size_t ready = begin_ready(&fixture, saves, 2 * TL_SECOND, NULL);
    settle(&fixture);
    assert_int_equal(kept_count(&fixture), ready);
    tick(&fixture, SHORTER_THAN_KEPT);
    assert_int_equal(kept_count(&fixture), ready);
    tick(&fixture, LONGER_THAN_KEPT - SHORTER_THAN_KEPT);
    settle(&fixture);
    assert_int_equal(kept_count(&fixture), 0);
    assert_int_equal(held(&fixture), 0);
    assert_int_equal(count_written(&fixture), DOCUMENTS - ready);
    expect_version(&fixture, put(&fixture, of_document(DOCUMENTS - 1, letter)),
                   1); /* it begins anew, or has run before */
    end(&fixture);
}

/* The end of their session ends them as others, before and after their turns. */
static void ready_writes_end_with_their_session(bool saves)
{
    for (int early = 0; early < 2; early++) {
        struct world fixture;
        size_t ready = begin_ready(&fixture, saves, 60 * TL_SECOND, "writer");
        if (!early)
            settle(&fixture);
        session(&fixture, COMMAND_SESSION_CLOSE, "writer");
        settle(&fixture);
        assert_int_equal(kept_count(&fixture), 0);
        assert_int_equal(held(&fixture), 0);
        assert_int_equal(count_written(&fixture), DOCUMENTS - ready);
        end(&fixture);
    }
}

/* --- Atomic writes in pieces -------------------------------------------------------------------------------------- */

#define PIECES "0123456789abcdefghijklmnopqrstuvwxyzABCD" /* the letters of its documents */

static const struct sent in_pieces = {.ids = PIECES, .name = "a", .hash = 7, .wait_us = 60 * TL_SECOND, .atomic = true};

/* An atomic write in pieces waits for its last document, which "holder" has. */
static void begin_pieces(struct world *fixture, bool saves, struct sent sent)
{
    begin(fixture, saves);
    fixture->step_work = 1500;
    expect(fixture, lock(fixture, "holder", "D", 0), PROBLEM_NONE);
    unlock(fixture, "holder");
    expect(fixture, lock(fixture, "holder", "D", 0), PROBLEM_NONE);
    expect_waits(fixture, put(fixture, sent));
    assert_int_equal(fixture->core.core->owners->txns.count, 1);
    settle(fixture);
    assert_int_equal(fixture->core.core->owners->locks.waiting_count, 1);
}

/* Runs steps until the write is done, whose first document has this version then. */
static void expect_pieces(struct world *fixture, uint64_t request, int64_t version)
{
    struct reply reply;
    for (int i = 0; !take(fixture, request, &reply); i++) {
        assert_true(i < 100);
        give(fixture, new_as(fixture, COMMAND_TICK), 10);
    }
    assert_int_equal(reply.problem, PROBLEM_NONE);
    assert_int_equal(reply.version, version);
}

/* Nothing of it is left. */
static void expect_nothing_kept(struct world *fixture)
{
    assert_int_equal(kept_count(fixture), 0);
    assert_int_equal(held(fixture), 0);
    assert_int_equal(fixture->core.core->owners->txns.count, 0);
}

/* It is before a write that was sent after the restart, whether its lock is free before it is repeated or not. */
static void pieces_keep_their_place(bool saves)
{
    for (int free = 0; free < 2; free++) {
        struct world fixture;
        begin_pieces(&fixture, saves, in_pieces);
        restart(&fixture);
        assert_int_equal(kept_count(&fixture), 1);
        if (free)
            unlock(&fixture, "holder");
        uint64_t other = put(&fixture, (struct sent){.ids = "D", .wait_us = 60 * TL_SECOND});
        tick(&fixture, SHORTER_THAN_KEPT);
        expect_waits(&fixture, other);
        assert_null(fixture_source(&fixture.core, "fs", "D"));
        uint64_t again = put(&fixture, in_pieces);
        assert_in_range(core_step_work(fixture.core.core), 0, fixture.step_work / 2); /* it runs in a later step */
        expect_waits(&fixture, again);
        assert_int_equal(kept_count(&fixture), 0);
        if (!free)
            unlock(&fixture, "holder");
        expect_pieces(&fixture, again, 1);
        settle(&fixture);
        expect_version(&fixture, put(&fixture, (struct sent){.ids = "D"}), 3);
        expect_version(&fixture, put(&fixture, in_pieces), 1); /* its outcome */
        expect_nothing_kept(&fixture);
        end(&fixture);
    }
}

/* A repetition has its own time to wait, through all further attempts and pieces. */
static void pieces_have_a_new_deadline(bool saves)
{
    static const char *const blocked[] = {"0", "c"}; /* in the first piece, and in one between it and the last */
    for (size_t i = 0; i < COUNT_OF(blocked); i++) {
        struct world fixture;
        begin_pieces(&fixture, saves, in_pieces);
        tick(&fixture, 50);
        restart(&fixture);
        uint64_t again = put(&fixture, in_pieces);
        expect_waits(&fixture, again);
        expect(&fixture, lock(&fixture, "writer", blocked[i], 0), PROBLEM_NONE);
        fixture.step_work = 500; /* smaller pieces than the one whose locks it waits for */
        unlock(&fixture, "holder");
        settle(&fixture);
        tick(&fixture, 50);
        settle(&fixture); /* after a deadline, pieces before the blocked one would run */
        expect_waits(&fixture, again);
        unlock(&fixture, "writer");
        expect_pieces(&fixture, again, 1);
        settle(&fixture);
        expect_nothing_kept(&fixture);
        end(&fixture);
    }
}

/* Not repeated in time, or at the end of its session: nothing of it is left. */
static void pieces_end(bool saves)
{
    for (int way = 0; way < 4; way++) {
        struct world fixture;
        struct sent sent = in_pieces;
        sent.session = "writer";
        begin_pieces(&fixture, saves, sent);
        restart(&fixture);
        assert_int_equal(kept_count(&fixture), 1);
        if (way % 2 == 0)
            unlock(&fixture, "holder");
        if (way < 2)
            tick(&fixture, LONGER_THAN_KEPT);
        else
            session(&fixture, COMMAND_SESSION_CLOSE, "writer");
        settle(&fixture);
        unlock(&fixture, "holder");
        expect_nothing_kept(&fixture);
        assert_null(fixture_source(&fixture.core, "fs", "D"));
        end(&fixture);
    }
}

/* One that has locks and has run pieces is undone: it begins anew. */
static void pieces_that_have_run_are_undone(bool saves)
{
    struct world fixture;
    begin_pieces(&fixture, saves, in_pieces);
    unlock(&fixture, "holder");
    give(&fixture, new_as(&fixture, COMMAND_TICK), 10);
    assert_int_equal(fixture.core.core->owners->txns.count, 1);
    restart(&fixture);
    settle(&fixture);
    expect_nothing_kept(&fixture);
    assert_null(fixture_source(&fixture.core, "fs", "0"));
    expect_pieces(&fixture, put(&fixture, in_pieces), 1);
    settle(&fixture);
    expect_nothing_kept(&fixture);
    end(&fixture);
}

static void cancel_as(struct world *fixture, unsigned version)
{
    struct command *command = new_as(fixture, COMMAND_CANCEL);
    command->cancel.keeps_places = true;
    command->version = version;
    give(fixture, command, 10);
}

/*
 * Several are cancelled: each counts by what its transaction holds, too, so a step ends one of them. By commands before
 * version 21 each counts as one.
 */
static void test_cancelled_pieces_count_by_their_transactions(void **state)
{
    static const char *const ids[] = {"0Y23456789abcdefghij", "klmnopqrstuvwxyzABCD", "EFGHIJKLMNOPQRSTUVWX"};
    enum { COUNT = sizeof ids / sizeof *ids };
    (void)state;
    for (unsigned older = 0; older < 2; older++) {
        struct world fixture;
        struct sent sent = in_pieces;
        begin(&fixture, false);
        fixture.step_work = 500;
        sent.name = NULL;
        for (int i = 0; i < COUNT; i++) {
            sent.ids = ids[i];
            expect_waits(&fixture, put(&fixture, sent));
        }
        const struct owners *owners = fixture.core.core->owners;
        assert_int_equal(ready_count(&fixture), COUNT);
        assert_int_equal(owners->txns.count, COUNT);
        limit_steps(&fixture, 1);
        cancel_as(&fixture, COMMAND_SINCE_CANCELS_WEIGHED - older);
        assert_int_equal(owners->txns.count, older ? 0 : COUNT - 1);
        for (size_t left = owners->txns.count; left > 0; left = owners->txns.count) {
            give(&fixture, new_as(&fixture, COMMAND_TICK), 10);
            assert_in_range(left - owners->txns.count, 1, 2); /* by its turn, and as one that is ready */
        }
        settle(&fixture);
        unlock(&fixture, "holder");
        expect_nothing_kept(&fixture);
        assert_null(fixture_source(&fixture.core, "fs", "0"));
        end(&fixture);
    }
}

/* At an end in good order its client is answered as by any write, and its attempts count on. */
static void pieces_are_answered_at_an_orderly_end(bool saves)
{
    struct world fixture;
    struct reply reply;
    begin_pieces(&fixture, saves, in_pieces);
    uint64_t first = 0;
    list_for_each(link, &fixture.core.core->owners->waits)
    {
        struct command *command = list_entry(link, struct wait, of_all)->command;
        first = command->request;
        command->on_done = has_submitter;
        assert_int_equal(command->write.attempts, 1);
    }
    cancel(&fixture, 0);
    assert_int_equal(take(&fixture, first, &reply), !saves);
    assert_true(saves || reply.problem == PROBLEM_STOPPING);
    restart(&fixture);
    unlock(&fixture, "holder");
    const struct wait *wait = list_entry(fixture.core.core->owners->waits.next, struct wait, of_all);
    assert_int_equal(wait->command->write.attempts, 1);
    expect_pieces(&fixture, put(&fixture, in_pieces), 1);
    settle(&fixture);
    expect_nothing_kept(&fixture);
    end(&fixture);
}

/* --- Other ends --------------------------------------------------------------------------------------------------- */

/*
 * Releases the lock of "holder" and ends the case: another write completes at once, or once an older place before it
 * has lasted its time; a repetition finds the outcome, and nothing is left.
 */
static void end_after_place(struct world *fixture, uint64_t other, bool older)
{
    unlock(fixture, "holder");
    tick(fixture, 0);
    if (older) {
        expect_waits(fixture, other);
        tick(fixture, LONGER_THAN_KEPT);
    }
    expect_version(fixture, other, 3);
    expect_version(fixture, put_usual(fixture), 2);
    assert_int_equal(kept_count(fixture), 0);
    assert_int_equal(held(fixture), 0);
    end(fixture);
}

/* Sent again with the session that has the lock it runs before: a repetition without it finds the outcome then. */
static void outcome_ends_the_place(bool saves)
{
    for (int older = 0; older < 2; older++) {
        struct world fixture;
        struct sent sent = usual;
        sent.session = "holder";
        sent.version = older ? COMMAND_SINCE_OUTCOMES_END_PLACES - 1 : 0;
        begin_kept(&fixture, saves, usual);
        uint64_t other = put_other(&fixture);
        expect_waits(&fixture, other);
        expect_version(&fixture, put(&fixture, sent), 2);
        assert_int_equal(kept_count(&fixture), older);
        end_after_place(&fixture, other, older);
    }
}

/*
 * The same, before the place is kept: the request does not keep it, since no repetition would take it over. So it is
 * when the server has started again, and when it ends in good order and cancels the request alone.
 */
static void older_outcome_leaves_no_place(bool saves)
{
    for (int way = 0; way < 3; way++) {
        struct world fixture;
        struct sent sent = usual;
        bool alone = way == 1, older = way == 2;
        sent.session = "holder";
        begin(&fixture, saves);
        uint64_t first = put_usual(&fixture);
        expect_waits(&fixture, first);
        expect_version(&fixture, put(&fixture, sent), 2);
        if (alone)
            cancel(&fixture, first);
        else
            restart_in(&fixture, older ? COMMAND_SINCE_OLDER_OUTCOMES - 1 : 0);
        assert_int_equal(kept_count(&fixture), older);
        uint64_t other = put_other(&fixture);
        end_after_place(&fixture, other, older);
    }
}

/* One that failed leaves no outcome: the place stays. */
static void failure_leaves_the_place(bool saves)
{
    struct world fixture;
    struct sent sent = usual;
    sent.session = "writer";
    sent.wait_us = 0;
    begin_kept(&fixture, saves, usual);
    expect(&fixture, put(&fixture, sent), PROBLEM_LOCK_WAIT_TIMEOUT);
    assert_int_equal(kept_count(&fixture), 1);
    unlock(&fixture, "holder");
    expect_version(&fixture, put_usual(&fixture), 2);
    end(&fixture);
}

static void outcome_ends_the_place_of_pieces(bool saves)
{
    struct world fixture;
    struct sent sent = in_pieces;
    sent.session = "holder";
    begin_pieces(&fixture, saves, in_pieces);
    restart(&fixture);
    assert_int_equal(kept_count(&fixture), 1);
    expect_pieces(&fixture, put(&fixture, sent), 1);
    assert_int_equal(kept_count(&fixture), 0);
    assert_int_equal(fixture.core.core->owners->txns.count, 0);
    unlock(&fixture, "holder");
    expect_version(&fixture, put(&fixture, (struct sent){.ids = "D"}), 2);
    expect_nothing_kept(&fixture);
    end(&fixture);
}

static void machine_lost(struct world *fixture, unsigned version)
{
    struct command *command = new_as(fixture, COMMAND_MACHINE_LOST);
    command->version = version;
    give(fixture, command, 10);
    tick(fixture, 0);
}

/* All that it has been sent is in the log, whatever the machine has lost: none of its requests is missing. */
static void outlives_the_machine(bool saves)
{
    for (int older = 0; older < 2; older++) {
        struct world fixture;
        begin_pieces(&fixture, saves, in_pieces);
        restart(&fixture);
        machine_lost(&fixture, older ? COMMAND_SINCE_PLACES_OF_PIECES_STAY - 1 : COMMAND_CODEC_VERSION);
        assert_int_equal(kept_count(&fixture), !older);
        uint64_t other = put(&fixture, (struct sent){.ids = "D", .wait_us = 60 * TL_SECOND});
        uint64_t again = put(&fixture, in_pieces);
        unlock(&fixture, "holder");
        if (older)
            expect_pieces(&fixture, other, 1);
        expect_pieces(&fixture, again, 1);
        settle(&fixture);
        expect_version(&fixture, put(&fixture, (struct sent){.ids = "D"}), 3);
        expect_nothing_kept(&fixture);
        end(&fixture);
    }
}

/* --- In a cluster ------------------------------------------------------------------------------------------------- */

/* A host joins the cluster, or leaves it. */
static void host(struct world *fixture, bool leaves)
{
    struct command *command = new_as(fixture, leaves ? COMMAND_HOST_GONE : COMMAND_JOIN);
    command->join = (struct join_command){.name = SLICE_LIT("a"),
                                          .group = SLICE_LIT("default"),
                                          .build = SLICE_LIT("1"),
                                          .life = 11,
                                          .limits = fixture->core.limits};
    if (leaves)
        command->gone = (struct gone_command){.name = SLICE_LIT("a"), .life = 11};
    (void)give(fixture, command, 10);
}

/* A place outlives the host of a cluster that leaves, whether it has ended in good order or not. */
static void outlives_its_host(bool saves)
{
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        struct world fixture;
        begin(&fixture, saves);
        host(&fixture, false);
        uint64_t of_others = fixture.last_request; /* requests of hosts that stay have small numbers */
        fixture.last_request = (uint64_t)1 << HOST_SHIFT;
        uint64_t write = put_usual(&fixture);
        expect_waits(&fixture, write);
        if (cancelled)
            cancel(&fixture, write);
        fixture.last_request = of_others;
        host(&fixture, true);
        tick(&fixture, 0);
        assert_int_equal(kept_count(&fixture), 1);
        unlock(&fixture, "holder");
        uint64_t other = put_other(&fixture);
        expect_waits(&fixture, other);
        expect_version(&fixture, put_usual(&fixture), 2);
        tick(&fixture, 0);
        assert_int_equal(held(&fixture), 0);
        end(&fixture);
    }
}

/* By commands before version 19 all writes are cancelled. */
static void test_older_commands_keep_no_write(void **state)
{
    struct world fixture;
    (void)state;
    begin(&fixture, false);
    uint64_t write = put_usual(&fixture);
    cancel_as(&fixture, COMMAND_SINCE_KEPT_WRITES - 1);
    expect(&fixture, write, PROBLEM_STOPPING);
    assert_int_equal(kept_count(&fixture), 0);
    end(&fixture);
}

/* By commands before version 21 those are cancelled that have their locks, or are in pieces. */
static void test_older_commands_keep_waiting_writes_only(void **state)
{
    struct world fixture;
    (void)state;
    begin(&fixture, false);
    expect(&fixture, lock(&fixture, "holder", "b", 0), PROBLEM_NONE);
    expect_waits(&fixture, put_usual(&fixture));
    struct sent sent = usual;
    sent.ids = sent.name = "b";
    expect_waits(&fixture, put(&fixture, sent));
    limit_steps(&fixture, 1);
    unlock(&fixture, "holder");
    assert_int_equal(ready_count(&fixture), 1);
    uint64_t ready = list_entry(fixture.core.core->owners->ready.next, struct wait, link)->command->request;
    cancel_as(&fixture, COMMAND_SINCE_PLACES_OF_WRITES - 1);
    tick(&fixture, 0);
    expect(&fixture, ready, PROBLEM_STOPPING);
    assert_int_equal(kept_count(&fixture), 0);
    end(&fixture);
    begin_pieces(&fixture, false, in_pieces);
    cancel_as(&fixture, COMMAND_SINCE_PLACES_OF_WRITES - 1);
    settle(&fixture);
    assert_int_equal(kept_count(&fixture), 0);
    unlock(&fixture, "holder");
    expect_nothing_kept(&fixture);
    end(&fixture);
}

/* A write of many items, or of much source, counts as several: its command is copied. */
static void test_large_writes_have_smaller_batches(void **state)
{
    struct world fixture;
    (void)state;
    begin(&fixture, false);
    char ids[200];
    memset(ids, '1', sizeof ids - 1);
    ids[sizeof ids - 1] = '\0';
    for (int i = 0; i < 3; i++) {
        struct sent sent = usual;
        sent.ids = ids;
        sent.part = (uint64_t)i;
        expect_waits(&fixture, put(&fixture, sent));
    }
    fixture.core.core->limits.ephemeral_batch = 1;
    cancel(&fixture, 0);
    assert_int_equal(kept_count(&fixture), 1);
    tick(&fixture, 0);
    assert_int_equal(kept_count(&fixture), 3);
    end(&fixture);
}

/* Each case, without and with a core that is saved and loaded. */
#define TWICE(name, body)          \
    static void name(void **state) \
    {                              \
        (void)state;               \
        body(false);               \
        body(true);                \
    }

TWICE(test_repeated_write_has_its_place, keeps_its_place)
TWICE(test_free_lock_waits_for_the_repetition, runs_when_it_is_repeated)
TWICE(test_repetition_waits_again, waits_again_when_it_is_repeated)
TWICE(test_place_ends_after_a_time, ends_after_a_time)
TWICE(test_place_ends_at_its_own_deadline, has_its_own_deadline)
TWICE(test_repetition_needs_time_to_wait, needs_time_to_wait)
TWICE(test_only_the_same_request_takes_over, only_the_same_request_takes_over)
TWICE(test_place_ends_with_its_session, ends_with_its_session)
TWICE(test_bulk_has_one_place, bulk_has_one_place)
TWICE(test_wait_that_was_taken_over, is_as_any_other_once_taken_over)
TWICE(test_name_has_one_place, name_has_one_place)
TWICE(test_kept_victim, may_be_a_victim)
TWICE(test_other_writes_are_cancelled, others_are_cancelled)
TWICE(test_orderly_end_keeps_places, answers_at_an_orderly_end)
TWICE(test_place_outlives_its_host, outlives_its_host)
TWICE(test_places_are_kept_in_batches, keeps_in_batches)
TWICE(test_places_time_out_in_batches, times_out_in_batches)
TWICE(test_ready_writes_keep_their_locks, ready_writes_keep_their_locks)
TWICE(test_ready_writes_end_after_a_time, ready_writes_end_after_a_time)
TWICE(test_ready_writes_end_with_their_session, ready_writes_end_with_their_session)
TWICE(test_pieces_keep_their_place, pieces_keep_their_place)
TWICE(test_pieces_have_a_new_deadline, pieces_have_a_new_deadline)
TWICE(test_pieces_end, pieces_end)
TWICE(test_pieces_that_have_run_are_undone, pieces_that_have_run_are_undone)
TWICE(test_pieces_are_answered_at_an_orderly_end, pieces_are_answered_at_an_orderly_end)
TWICE(test_outcome_ends_the_place, outcome_ends_the_place)
TWICE(test_older_outcome_leaves_no_place, older_outcome_leaves_no_place)
TWICE(test_failure_leaves_the_place, failure_leaves_the_place)
TWICE(test_outcome_ends_the_place_of_pieces, outcome_ends_the_place_of_pieces)
TWICE(test_place_of_pieces_outlives_the_machine, outlives_the_machine)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeated_write_has_its_place),
        cmocka_unit_test(test_free_lock_waits_for_the_repetition),
        cmocka_unit_test(test_repetition_waits_again),
        cmocka_unit_test(test_place_ends_after_a_time),
        cmocka_unit_test(test_place_ends_at_its_own_deadline),
        cmocka_unit_test(test_repetition_needs_time_to_wait),
        cmocka_unit_test(test_only_the_same_request_takes_over),
        cmocka_unit_test(test_place_ends_with_its_session),
        cmocka_unit_test(test_bulk_has_one_place),
        cmocka_unit_test(test_wait_that_was_taken_over),
        cmocka_unit_test(test_name_has_one_place),
        cmocka_unit_test(test_kept_victim),
        cmocka_unit_test(test_other_writes_are_cancelled),
        cmocka_unit_test(test_orderly_end_keeps_places),
        cmocka_unit_test(test_place_outlives_its_host),
        cmocka_unit_test(test_places_are_kept_in_batches),
        cmocka_unit_test(test_places_time_out_in_batches),
        cmocka_unit_test(test_ready_writes_keep_their_locks),
        cmocka_unit_test(test_ready_writes_end_after_a_time),
        cmocka_unit_test(test_ready_writes_end_with_their_session),
        cmocka_unit_test(test_pieces_keep_their_place),
        cmocka_unit_test(test_pieces_have_a_new_deadline),
        cmocka_unit_test(test_pieces_end),
        cmocka_unit_test(test_pieces_that_have_run_are_undone),
        cmocka_unit_test(test_pieces_are_answered_at_an_orderly_end),
        cmocka_unit_test(test_outcome_ends_the_place),
        cmocka_unit_test(test_older_outcome_leaves_no_place),
        cmocka_unit_test(test_failure_leaves_the_place),
        cmocka_unit_test(test_outcome_ends_the_place_of_pieces),
        cmocka_unit_test(test_place_of_pieces_outlives_the_machine),
        cmocka_unit_test(test_cancelled_pieces_count_by_their_transactions),
        cmocka_unit_test(test_older_commands_keep_waiting_writes_only),
        cmocka_unit_test(test_older_commands_keep_no_write),
        cmocka_unit_test(test_large_writes_have_smaller_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
