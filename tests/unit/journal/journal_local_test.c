/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local journal at the disk.
 *
 * Goal: nothing that lines up behind a sync is forgotten. Method: the log's sync is held up until the test lets it go on,
 * so what meets whom there is no matter of luck.
 */
#include <pthread.h>
#include <stdbool.h>

#include "lib/cmdlog_fixture.h"
#include "lib/unit.h"

#include "journal/journal.h"
#include "store/store.h"

/* A disk at which a sync waits while `closed`. */
struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed;
    unsigned inside; /* syncs that wait */
    unsigned done;   /* commands handed back */
    unsigned stops;  /* times that journal_stop() waits for another thread */
};

static struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local bool is_stopping; /* it goes past the gate: what it syncs itself is not the point */

int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __real_cmdlog_sync(struct cmdlog *log, cmdlog_position position);
int __wrap_cmdlog_sync(struct cmdlog *log, cmdlog_position position);

int __wrap_cmdlog_sync(struct cmdlog *log, cmdlog_position position)
{
    pthread_mutex_lock(&gate.lock);
    gate.inside++;
    pthread_cond_broadcast(&gate.changed);
    while (gate.closed && !is_stopping)
        __real_pthread_cond_wait(&gate.changed, &gate.lock);
    gate.inside--;
    pthread_mutex_unlock(&gate.lock);
    return __real_cmdlog_sync(log, position);
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    if (is_stopping) {
        pthread_mutex_lock(&gate.lock);
        gate.stops++;
        pthread_cond_broadcast(&gate.changed);
        pthread_mutex_unlock(&gate.lock);
    }
    return __real_pthread_cond_wait(condition, lock);
}

static void close_gate(bool closed)
{
    pthread_mutex_lock(&gate.lock);
    gate.closed = closed;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

/* Waits until a counter of the gate is at least `wanted`. */
static void await(const unsigned *counter, unsigned wanted)
{
    pthread_mutex_lock(&gate.lock);
    while (*counter < wanted)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void done(struct command *command)
{
    command_free(command);
    pthread_mutex_lock(&gate.lock);
    gate.done++;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void submit(struct journal *journal, enum command_type type)
{
    struct command *command = command_new(type, DIALECT_7);
    command->on_done = done;
    if (type == COMMAND_SESSION_OPEN) {
        command->session.id = slice_from("holder");
        command->session.ttl_us = 60 * TL_SECOND;
    } else {
        command->status.what = STATUS_LOCKS;
    }
    journal_submit(journal, command, true);
}

static void *open_session(void *journal)
{
    submit(journal, COMMAND_SESSION_OPEN);
    return NULL;
}

/*
 * A caller that nobody waits behind goes to the disk once. Whoever lined up behind it meanwhile has a result that is durable
 * when it comes back, and is handed back although nothing is left to sync, and nothing is written any more.
 */
static void test_behind_a_sync_that_covers_it(void **state)
{
    struct journal_options options = {.group_max = 64};
    struct store *store = store_open_mem();
    struct cmdlog_fixture kept = {0};
    struct core *core = cmdlog_fixture_begin(&kept, store, &options);
    struct journal *journal;
    pthread_t writer;
    (void)state;
    assert_int_equal(journal_open_local(core, store, &options, &journal), 0);

    close_gate(true);
    assert_int_equal(pthread_create(&writer, NULL, open_session, journal), 0);
    await(&gate.inside, 1);
    submit(journal, COMMAND_STATUS);
    close_gate(false);
    pthread_join(writer, NULL);
    await(&gate.done, 2);

    journal_close(journal);
    core_close(core);
    cmdlog_fixture_end(&kept);
    cmdlog_fixture_free(&kept);
    store_close(store);
}

/* What the core goes by is what the journal was told, and stays when it is told nothing. */
static void test_limits_are_in_the_log(void **state)
{
    struct core_limits defaults = core_limits_default(), few = defaults;
    const struct core_limits *told[] = {&few, NULL, &few, &defaults};
    const size_t most[] = {2, 2, 2, defaults.sessions_max};
    struct store *store = store_open_mem();
    struct cmdlog_fixture kept = {0};
    (void)state;
    few.sessions_max = 2;
    for (size_t i = 0; i < 4; i++) {
        struct journal_options options = {.limits = told[i]};
        struct core *core = cmdlog_fixture_begin(&kept, store, &options);
        struct journal *journal;
        assert_int_equal(journal_open_local(core, store, &options, &journal), 0);
        assert_int_equal(core_limits(core)->sessions_max, most[i]);
        journal_close(journal);
        core_close(core);
        cmdlog_fixture_end(&kept);
    }
    cmdlog_fixture_free(&kept);
    store_close(store);
}

/* --- Who waits for a lock ----------------------------------------------------------------------------------------- */

/* A journal with two sessions, "holder" and "other"; the first has a lock. */
struct pair {
    struct store *store;
    struct cmdlog_fixture kept;
    struct core *core;
    struct journal *journal;
};

/* What became of a command that is its test's. */
struct outcome {
    struct command *command;
    unsigned done;
};

static void note_done(struct command *command)
{
    struct outcome *outcome = command->context;
    pthread_mutex_lock(&gate.lock);
    outcome->done = 1;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static struct command *session_command(enum command_type type, const char *id)
{
    struct command *command = command_new(type, DIALECT_7);
    command->session.id = slice_from(id);
    command->session.ttl_us = 60 * TL_SECOND;
    return command;
}

static struct command *lock_command(const char *session, const char *index)
{
    struct command *command = command_new(COMMAND_LOCK, DIALECT_7);
    struct lock_target *target = arena_zalloc(&command->arena, sizeof *target);
    target->index = slice_from(index);
    target->mode = LOCK_X;
    command->owner.session = slice_from(session);
    command->owner.timeout_us = 3600 * TL_SECOND;
    command->lock.targets = target;
    command->lock.target_count = 1;
    return command;
}

static void start(struct pair *pair, struct command *command, struct command_waiter *waiter, struct outcome *outcome)
{
    *outcome = (struct outcome){command, 0};
    command->on_done = note_done;
    command->context = outcome;
    command->waiter = waiter;
    journal_submit(pair->journal, command, false);
}

/* Waits for its end, and frees it. Returns: its problem. */
static enum problem_type end(struct outcome *outcome)
{
    await(&outcome->done, 1);
    enum problem_type type = outcome->command->problem.type;
    command_free(outcome->command);
    return type;
}

static enum problem_type run(struct pair *pair, struct command *command, struct command_waiter *waiter)
{
    struct outcome outcome;
    start(pair, command, waiter, &outcome);
    return end(&outcome);
}

static void open_pair(struct pair *pair)
{
    struct journal_options options = {.group_max = 64};
    pair->store = store_open_mem();
    pair->kept = (struct cmdlog_fixture){0};
    pair->core = cmdlog_fixture_begin(&pair->kept, pair->store, &options);
    assert_int_equal(journal_open_local(pair->core, pair->store, &options, &pair->journal), 0);
    assert_int_equal(run(pair, session_command(COMMAND_SESSION_OPEN, "holder"), NULL), PROBLEM_NONE);
    assert_int_equal(run(pair, session_command(COMMAND_SESSION_OPEN, "other"), NULL), PROBLEM_NONE);
    assert_int_equal(run(pair, lock_command("holder", "a"), NULL), PROBLEM_NONE);
}

static void close_pair(struct pair *pair)
{
    journal_close(pair->journal);
    core_close(pair->core);
    cmdlog_fixture_end(&pair->kept);
    cmdlog_fixture_free(&pair->kept);
    store_close(pair->store);
}

/* The wait of the command at hand ends; what the waiter submits later is not begun, unless it relieves. */
static void test_a_waiter_leaves(void **state)
{
    struct pair pair;
    struct outcome waits;
    struct command_waiter waiter = {0};
    (void)state;
    open_pair(&pair);
    start(&pair, lock_command("other", "a"), &waiter, &waits);
    journal_cancel_waiter(pair.journal, &waiter);
    assert_int_equal(end(&waits), PROBLEM_LOCK_WAIT_TIMEOUT);
    journal_waiter_completed(&waiter);
    assert_int_equal(run(&pair, lock_command("other", "b"), &waiter), PROBLEM_TASK_CANCELLED);
    assert_int_equal(run(&pair, session_command(COMMAND_SESSION_KEEPALIVE, "other"), &waiter), PROBLEM_NONE);
    journal_cancel_waiter(pair.journal, &waiter);
    assert_int_equal(run(&pair, lock_command("other", "b"), NULL), PROBLEM_NONE);
    close_pair(&pair);
}

/* Between two commands. */
static void test_a_waiter_leaves_that_waits_for_nothing(void **state)
{
    struct pair pair;
    struct command_waiter waiter = {0};
    (void)state;
    open_pair(&pair);
    assert_int_equal(run(&pair, lock_command("other", "b"), &waiter), PROBLEM_NONE);
    journal_waiter_completed(&waiter);
    journal_cancel_waiter(pair.journal, &waiter);
    assert_int_equal(run(&pair, lock_command("other", "a"), &waiter), PROBLEM_TASK_CANCELLED);
    close_pair(&pair);
}

/* Who waits is told, whoever begins to later too; what need not wait goes on. */
static void test_waits_end(void **state)
{
    struct pair pair;
    struct outcome waits;
    (void)state;
    open_pair(&pair);
    start(&pair, lock_command("other", "a"), NULL, &waits);
    journal_end_waits(pair.journal);
    assert_int_equal(end(&waits), PROBLEM_STOPPING);
    assert_int_equal(run(&pair, lock_command("other", "a"), NULL), PROBLEM_STOPPING);
    assert_int_equal(run(&pair, lock_command("other", "b"), NULL), PROBLEM_NONE);
    journal_end_waits(pair.journal);
    assert_int_equal(run(&pair, lock_command("other", "a"), NULL), PROBLEM_STOPPING);
    close_pair(&pair);
}

static void *open_another(void *journal)
{
    struct command *command = session_command(COMMAND_SESSION_OPEN, "another");
    command->on_done = done;
    journal_submit(journal, command, true);
    return NULL;
}

static void *stop(void *journal)
{
    is_stopping = true;
    journal_stop(journal);
    return NULL;
}

/*
 * A caller that nobody waits behind is at the disk, to go there once, when the journal stops: what the stop has completed lines up behind it,
 * and no worker is left to look after that.
 */
static void test_a_stop_beside_a_sync(void **state)
{
    struct pair pair;
    struct outcome waits;
    pthread_t writer, stopper;
    unsigned done;
    (void)state;
    open_pair(&pair);
    start(&pair, lock_command("other", "a"), NULL, &waits);
    assert_int_equal(run(&pair, session_command(COMMAND_SESSION_KEEPALIVE, "other"), NULL),
                     PROBLEM_NONE); /* behind it: now it waits */
    done = gate.done;
    gate.stops = 0;
    close_gate(true);
    assert_int_equal(pthread_create(&writer, NULL, open_another, pair.journal), 0);
    await(&gate.inside, 1);
    assert_int_equal(pthread_create(&stopper, NULL, stop, pair.journal), 0);
    await(&gate.stops, 1);
    close_gate(false);
    pthread_join(stopper, NULL);
    pthread_join(writer, NULL);
    assert_int_equal(gate.done, done + 1);
    assert_int_equal(waits.done, 1);
    assert_int_equal(end(&waits), PROBLEM_STOPPING);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_behind_a_sync_that_covers_it),
        cmocka_unit_test(test_limits_are_in_the_log),
        cmocka_unit_test(test_a_waiter_leaves),
        cmocka_unit_test(test_a_waiter_leaves_that_waits_for_nothing),
        cmocka_unit_test(test_waits_end),
        cmocka_unit_test(test_a_stop_beside_a_sync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
