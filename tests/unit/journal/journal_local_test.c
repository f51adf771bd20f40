/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local journal at the disk.
 *
 * Goal: nothing that lines up behind a sync is forgotten. Method: the store's sync is held up until the test lets it go on,
 * so what meets whom there is no matter of luck.
 */
#include <pthread.h>
#include <stdbool.h>

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
};

static struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

int __real_store_sync(struct store *store);
int __wrap_store_sync(struct store *store);

int __wrap_store_sync(struct store *store)
{
    pthread_mutex_lock(&gate.lock);
    gate.inside++;
    pthread_cond_broadcast(&gate.changed);
    while (gate.closed)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.inside--;
    pthread_mutex_unlock(&gate.lock);
    return __real_store_sync(store);
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
    struct core_limits limits = core_limits_default();
    struct journal_options options = {.group_max = 64};
    struct store *store = store_open_mem();
    struct core *core;
    struct journal *journal;
    pthread_t writer;
    (void)state;
    assert_int_equal(core_open(store, &limits, &core), 0);
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
    store_close(store);
}

/* What the core goes by is what the journal was told, and stays when it is told nothing. */
static void test_limits_are_in_the_log(void **state)
{
    struct core_limits defaults = core_limits_default(), few = defaults;
    const struct core_limits *told[] = {&few, NULL, &few, &defaults};
    const size_t most[] = {2, 2, 2, defaults.sessions_max};
    struct store *store = store_open_mem();
    (void)state;
    few.sessions_max = 2;
    for (size_t i = 0; i < 4; i++) {
        struct journal_options options = {.limits = told[i]};
        struct core *core;
        struct journal *journal;
        assert_int_equal(core_open(store, &defaults, &core), 0);
        assert_int_equal(journal_open_local(core, store, &options, &journal), 0);
        assert_int_equal(core_limits(core)->sessions_max, most[i]);
        journal_close(journal);
        core_close(core);
    }
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_behind_a_sync_that_covers_it),
        cmocka_unit_test(test_limits_are_in_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
