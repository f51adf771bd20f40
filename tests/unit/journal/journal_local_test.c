/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of the local journal around a sync.
 *
 * Goal: no command that is enqueued during a sync is forgotten, and requests of a transaction need
 * none. Method: the log's sync blocks until the test releases it, which makes the interleaving
 * deterministic; and it is counted.
 */
#include <pthread.h>
#include <stdbool.h>

#include "lib/cmdlog_fixture.h"
#include "lib/unit.h"

#include "journal/journal.h"
#include "store/store.h"

/* A gate that blocks syncs while `closed`. */
struct txn_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed;
    unsigned inside; /* blocked syncs */
    unsigned syncs;  /* begun */
    unsigned done;   /* completed commands */
    unsigned stops;  /* waits of journal_stop() for another thread */
};

static struct txn_queue gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* The gate does not block this thread: its own syncs are not tested. */
static _Thread_local bool is_stopping;

int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __real_cmdlog_sync(struct cmdlog *log, cmdlog_position position);
int __wrap_cmdlog_sync(struct cmdlog *log, cmdlog_position position);

int __wrap_cmdlog_sync(struct cmdlog *log, cmdlog_position position)
{
    pthread_mutex_lock(&gate.lock);
    gate.inside++;
    gate.syncs++;
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

/*
 * Waits until the sync of a write is blocked by the gate. `done`: commands completed before it.
 * Returns: false: the write was completed without a sync; the gate is open, so that the later tests,
 * which sync too, run although this one fails.
 */
static bool await_sync(unsigned done)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.inside == 0 && gate.done == done)
        pthread_cond_wait(&gate.changed, &gate.lock);
    bool syncs = gate.done == done;
    if (!syncs) {
        gate.closed = false;
        pthread_cond_broadcast(&gate.changed);
    }
    pthread_mutex_unlock(&gate.lock);
    return syncs;
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
 * A caller's thread syncs once. A group enqueued meanwhile is already covered by that sync, and
 * completes although nothing is left to sync or to write.
 */
static void test_group_enqueued_during_covering_sync_completes(void **state)
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
    assert_true(await_sync(0));
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

/* A logged command of many bytes, which is refused. */
static void submit_large(struct journal *journal, size_t bytes)
{
    struct command *command = command_new(COMMAND_SESSION_KEEPALIVE, DIALECT_7);
    char *id = arena_alloc(&command->arena, bytes);
    memset(id, 'x', bytes);
    command->session.id = (struct slice){id, bytes};
    command->on_done = done;
    journal_submit(journal, command, false);
}

/* What one large command needed is not kept, also if smaller ones follow it in the same turn of the writer. */
static void test_buffer_of_a_large_entry_is_freed(void **state)
{
    enum { LARGE = 9 << 20, IN_THE_LOG = LARGE, OTHER = 4 << 20 };
    struct journal_options options = {.group_max = 64};
    struct store *store = store_open_mem();
    struct cmdlog_fixture kept = {0};
    struct core *core = cmdlog_fixture_begin(&kept, store, &options);
    struct journal *journal;
    pthread_t writer;
    (void)state;
    assert_int_equal(journal_open_local(core, store, &options, &journal), 0);

    unsigned before = gate.done;
    close_gate(true);
    assert_int_equal(pthread_create(&writer, NULL, open_session, journal), 0);
    assert_true(await_sync(before));
    mem_thread_end();
    size_t used = mem_used();
    submit_large(journal, LARGE);
    submit_large(journal, 100);
    close_gate(false);
    pthread_join(writer, NULL);
    await(&gate.done, before + 3);
    journal_stop(journal);
    mem_thread_end();
    assert_in_range(mem_used(), 0, used + IN_THE_LOG + OTHER);

    journal_close(journal);
    core_close(core);
    cmdlog_fixture_end(&kept);
    cmdlog_fixture_free(&kept);
    store_close(store);
}

/* The core uses the limits given to the journal, and keeps them when none are given. */
static void test_limits_come_from_the_log(void **state)
{
    struct core_limits defaults = core_limits_default(), few = defaults;
    const struct core_limits *given[] = {&few, NULL, &few, &defaults};
    const size_t most[] = {2, 2, 2, defaults.sessions_max};
    struct store *store = store_open_mem();
    struct cmdlog_fixture kept = {0};
    (void)state;
    few.sessions_max = 2;
    for (size_t i = 0; i < 4; i++) {
        struct journal_options options = {.limits = given[i]};
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

/* The recorded clock of timestamps may be invalid. Both histories begin anew then. */
static void test_invalid_clock_of_timestamps_begins_anew(void **state)
{
    struct journal_options options = {.group_max = 64};
    struct store *store = store_open_mem();
    struct cmdlog_fixture kept = {0};
    struct core *core = cmdlog_fixture_begin(&kept, store, &options);
    struct effects effects;
    struct journal *journal;
    (void)state;
    struct command *mark = command_new(COMMAND_MARK, DIALECT_7);
    mark->mark = (struct mark_command){.payload = SLICE_LIT("\xff"), .build = SLICE_LIT("")};
    mark->ts = mark->mark.ceiling = core_last_ts(core) + 1;
    effects_init(&effects);
    assert_int_equal(core_step(core, mark, &effects), 0);
    while (!list_empty(&effects.completed)) {
        struct command *command = list_entry(effects.completed.next, struct command, link);
        list_remove(&command->link);
        command_free(command);
    }
    assert_int_equal(journal_open_local(core, store, &options, &journal), 0);
    unsigned before = gate.done;
    submit(journal, COMMAND_SESSION_OPEN);
    await(&gate.done, before + 1);
    journal_close(journal); /* its last maintenance included */
    core_close(core);
    cmdlog_fixture_end(&kept);
    cmdlog_fixture_free(&kept);
    store_close(store);
}

/* --- Lock waits --------------------------------------------------------------------------------------------------- */

/* A journal with two sessions, "holder" and "other"; the first holds a lock. */
struct sessions {
    struct store *store;
    struct cmdlog_fixture kept;
    struct core *core;
    struct journal *journal;
};

/* The outcome of a command that the test owns. */
struct outcome {
    struct command *command;
    unsigned done;
};

static void record_done(struct command *command)
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

static void start(struct sessions *sessions, struct command *command, struct command_waiter *waiter,
                  struct outcome *outcome)
{
    *outcome = (struct outcome){command, 0};
    command->on_done = record_done;
    command->context = outcome;
    command->waiter = waiter;
    journal_submit(sessions->journal, command, false);
}

/* Waits for completion and frees the command. Returns: its problem. */
static enum problem_type end(struct outcome *outcome)
{
    await(&outcome->done, 1);
    enum problem_type type = outcome->command->problem.type;
    command_free(outcome->command);
    return type;
}

static enum problem_type run(struct sessions *sessions, struct command *command, struct command_waiter *waiter)
{
    struct outcome outcome;
    start(sessions, command, waiter, &outcome);
    return end(&outcome);
}

static void open_sessions(struct sessions *sessions)
{
    struct journal_options options = {.group_max = 64};
    sessions->store = store_open_mem();
    sessions->kept = (struct cmdlog_fixture){0};
    sessions->core = cmdlog_fixture_begin(&sessions->kept, sessions->store, &options);
    assert_int_equal(journal_open_local(sessions->core, sessions->store, &options, &sessions->journal), 0);
    assert_int_equal(run(sessions, session_command(COMMAND_SESSION_OPEN, "holder"), NULL), PROBLEM_NONE);
    assert_int_equal(run(sessions, session_command(COMMAND_SESSION_OPEN, "other"), NULL), PROBLEM_NONE);
    assert_int_equal(run(sessions, lock_command("holder", "a"), NULL), PROBLEM_NONE);
}

static void close_sessions(struct sessions *sessions)
{
    journal_close(sessions->journal);
    core_close(sessions->core);
    cmdlog_fixture_end(&sessions->kept);
    cmdlog_fixture_free(&sessions->kept);
    store_close(sessions->store);
}

/*
 * The current command's wait ends. Later commands of the waiter are refused, unless they are always
 * admitted.
 */
static void test_cancelled_waiter_ends_its_wait(void **state)
{
    struct sessions sessions;
    struct outcome waits;
    struct command_waiter waiter = {0};
    (void)state;
    open_sessions(&sessions);
    start(&sessions, lock_command("other", "a"), &waiter, &waits);
    journal_cancel_waiter(sessions.journal, &waiter);
    assert_int_equal(end(&waits), PROBLEM_LOCK_WAIT_TIMEOUT);
    journal_waiter_completed(&waiter);
    assert_int_equal(run(&sessions, lock_command("other", "b"), &waiter), PROBLEM_TASK_CANCELLED);
    assert_int_equal(run(&sessions, session_command(COMMAND_SESSION_KEEPALIVE, "other"), &waiter), PROBLEM_NONE);
    journal_cancel_waiter(sessions.journal, &waiter);
    assert_int_equal(run(&sessions, lock_command("other", "b"), NULL), PROBLEM_NONE);
    close_sessions(&sessions);
}

/* Cancellation between two commands. */
static void test_cancelled_idle_waiter_refuses_later_commands(void **state)
{
    struct sessions sessions;
    struct command_waiter waiter = {0};
    (void)state;
    open_sessions(&sessions);
    assert_int_equal(run(&sessions, lock_command("other", "b"), &waiter), PROBLEM_NONE);
    journal_waiter_completed(&waiter);
    journal_cancel_waiter(sessions.journal, &waiter);
    assert_int_equal(run(&sessions, lock_command("other", "a"), &waiter), PROBLEM_TASK_CANCELLED);
    close_sessions(&sessions);
}

/* Waiting commands complete, and so does each later one that would wait; other commands run. */
static void test_end_waits_refuses_later_waits(void **state)
{
    struct sessions sessions;
    struct outcome waits;
    (void)state;
    open_sessions(&sessions);
    start(&sessions, lock_command("other", "a"), NULL, &waits);
    journal_end_waits(sessions.journal);
    assert_int_equal(end(&waits), PROBLEM_STOPPING);
    assert_int_equal(run(&sessions, lock_command("other", "a"), NULL), PROBLEM_STOPPING);
    assert_int_equal(run(&sessions, lock_command("other", "b"), NULL), PROBLEM_NONE);
    journal_end_waits(sessions.journal);
    assert_int_equal(run(&sessions, lock_command("other", "a"), NULL), PROBLEM_STOPPING);
    close_sessions(&sessions);
}

static unsigned count_syncs(void)
{
    pthread_mutex_lock(&gate.lock);
    unsigned count = gate.syncs;
    pthread_mutex_unlock(&gate.lock);
    return count;
}

static struct command *txn_command(enum command_type type)
{
    struct command *command = command_new(type, DIALECT_7);
    command->txn.id = slice_from("t");
    command->txn.idle_us = 60 * TL_SECOND;
    return command;
}

static struct command *txn_write(int document)
{
    struct command *command = command_new(COMMAND_WRITE, DIALECT_7);
    struct write_item *item = arena_zalloc(&command->arena, sizeof *item);
    *item = (struct write_item){.op = WRITE_INDEX,
                                .index = slice_from("a"),
                                .id = arena_printf(&command->arena, "%d", document),
                                .source = slice_from("{\"v\":1}"),
                                .version = VERSION_ANY,
                                .if_seq_no = SEQ_NO_ANY};
    command->write.items = item;
    command->write.item_count = 1;
    command->owner.transaction = slice_from("t");
    command->owner.timeout_us = 60 * TL_SECOND;
    return command;
}

/* Locks a document, as a read in the transaction does. Returns: the command's problem. */
static enum problem_type lock_to_read(struct sessions *sessions, int document)
{
    struct command *command = command_new(COMMAND_TXN_LOCK, DIALECT_7);
    struct lock_target *target = arena_zalloc(&command->arena, sizeof *target);
    struct outcome outcome;
    *target = (struct lock_target){
        .mode = LOCK_S, .index = slice_from("a"), .id = arena_printf(&command->arena, "%d", document)};
    command->txn_lock.targets = target;
    command->txn_lock.target_count = 1;
    command->owner.transaction = slice_from("t");
    command->owner.timeout_us = 60 * TL_SECOND;
    start(sessions, command, NULL, &outcome);
    await(&outcome.done, 1);
    core_overlay_unref(command->txn_lock.overlay);
    command->txn_lock.overlay = NULL;
    return end(&outcome);
}

/*
 * A request in a transaction is answered when it is written: only the commit waits for a sync. Each request
 * follows the answer to the last, so that none shares its sync with another. The journal syncs for its own
 * purposes meanwhile, such as maintenance once a second.
 */
static void test_requests_of_a_transaction_are_not_synced(void **state)
{
    enum { REQUESTS = 100, OWN_SYNCS_MAX = REQUESTS / 4 };
    struct sessions sessions;
    (void)state;
    open_sessions(&sessions);
    assert_int_equal(run(&sessions, session_command(COMMAND_SESSION_CLOSE, "holder"), NULL), PROBLEM_NONE);
    unsigned before = count_syncs();
    assert_int_equal(run(&sessions, txn_command(COMMAND_TXN_BEGIN), NULL), PROBLEM_NONE);
    assert_int_equal(run(&sessions, txn_write(0), NULL), PROBLEM_NONE); /* creates the index */
    for (int i = 1; i < REQUESTS; i++)
        assert_int_equal(i % 2 == 0 ? run(&sessions, txn_write(i), NULL) : lock_to_read(&sessions, i), PROBLEM_NONE);
    unsigned syncs = count_syncs() - before;
    assert_in_range(syncs, 0, OWN_SYNCS_MAX);
    before = count_syncs();
    assert_int_equal(run(&sessions, txn_command(COMMAND_TXN_COMMIT), NULL), PROBLEM_NONE);
    assert_true(count_syncs() > before);
    close_sessions(&sessions);
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
 * A caller's thread is syncing when the journal stops. The commands that the stop completes are
 * enqueued during that sync, when no worker is left to complete them.
 */
static void test_stop_during_caller_sync_completes_all(void **state)
{
    struct sessions sessions;
    struct outcome waits;
    pthread_t writer, stopper;
    unsigned done;
    (void)state;
    open_sessions(&sessions);
    start(&sessions, lock_command("other", "a"), NULL, &waits);
    assert_int_equal(run(&sessions, session_command(COMMAND_SESSION_KEEPALIVE, "other"), NULL),
                     PROBLEM_NONE); /* applied after the lock command, which waits now */
    done = gate.done;
    gate.stops = 0;
    close_gate(true);
    assert_int_equal(pthread_create(&writer, NULL, open_another, sessions.journal), 0);
    assert_true(await_sync(done));
    assert_int_equal(pthread_create(&stopper, NULL, stop, sessions.journal), 0);
    await(&gate.stops, 1);
    close_gate(false);
    pthread_join(stopper, NULL);
    pthread_join(writer, NULL);
    assert_int_equal(gate.done, done + 1);
    assert_int_equal(waits.done, 1);
    assert_int_equal(end(&waits), PROBLEM_STOPPING);
    close_sessions(&sessions);
}

/* --- Long groups -------------------------------------------------------------------------------------------------- */

/* Requests that wait for the lock of "holder"; more than a thread completes of a group. */
enum { WAITS = 600, AT_ONCE = 256, NUMBERS = 1000 * WAITS /* above those that the journal gives */ };

static struct {
    pthread_t threads[2 * WAITS]; /* that completed the requests, in the order of their completion */
    unsigned count;
    bool in_order;
    bool closed;  /* the last request of each session is not completed */
    bool blocked; /* such a completion has begun */
} waited;

static void end_wait(struct command *command)
{
    pthread_mutex_lock(&gate.lock);
    while (waited.closed && command->request % WAITS == 0) {
        waited.blocked = true;
        pthread_cond_broadcast(&gate.changed);
        __real_pthread_cond_wait(&gate.changed, &gate.lock);
    }
    waited.threads[waited.count++] = pthread_self();
    waited.in_order = waited.in_order && command->request == NUMBERS + waited.count;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    command_free(command);
}

/* Requests of a session wait. `before`: as many have begun to wait before. */
static void begin_waits(struct sessions *sessions, const char *session, unsigned before)
{
    for (unsigned i = 0; i < WAITS; i++) {
        struct command *command = lock_command(session, "a");
        command->request = NUMBERS + before + i + 1;
        command->on_done = end_wait;
        journal_submit(sessions->journal, command, false);
    }
    /* Applied after them. */
    assert_int_equal(run(sessions, session_command(COMMAND_SESSION_KEEPALIVE, "holder"), NULL), PROBLEM_NONE);
    assert_int_equal(waited.count, 0);
}

static struct command *close_command(const char *session)
{
    struct command *command = session_command(COMMAND_SESSION_CLOSE, session);
    command->session.force = true;
    return command;
}

static void open_waits(struct sessions *sessions)
{
    open_sessions(sessions);
    waited.count = 0;
    waited.in_order = true;
    begin_waits(sessions, "other", 0);
}

/* The thread that applied or synced them completes the first ones, another one the rest, in the same order. */
static void test_rest_of_long_group_is_left_to_completer(void **state)
{
    struct sessions sessions;
    (void)state;
    open_waits(&sessions);
    assert_int_equal(run(&sessions, close_command("other"), NULL), PROBLEM_NONE);
    assert_int_equal(waited.count, WAITS); /* before the command that ended them */
    assert_true(waited.in_order);
    for (unsigned i = 1; i < WAITS; i++)
        assert_int_equal(pthread_equal(waited.threads[i], waited.threads[i - 1]) != 0, i != AT_ONCE);
    close_sessions(&sessions);
}

/* Two long groups occupy no worker: commands that follow them are completed meanwhile. */
static void test_no_command_waits_for_long_groups_of_others(void **state)
{
    struct sessions sessions;
    struct outcome closed[2];
    (void)state;
    open_waits(&sessions);
    assert_int_equal(run(&sessions, session_command(COMMAND_SESSION_OPEN, "third"), NULL), PROBLEM_NONE);
    begin_waits(&sessions, "third", WAITS);
    waited.closed = true;
    waited.blocked = false;
    start(&sessions, close_command("other"), NULL, &closed[0]);
    pthread_mutex_lock(&gate.lock);
    while (!waited.blocked)
        __real_pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    start(&sessions, close_command("third"), NULL, &closed[1]);
    await(&waited.count, WAITS - 1 + AT_ONCE); /* what follows is in another group */
    assert_int_equal(run(&sessions, session_command(COMMAND_SESSION_KEEPALIVE, "holder"), NULL), PROBLEM_NONE);
    pthread_mutex_lock(&gate.lock);
    waited.closed = false;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(end(&closed[i]), PROBLEM_NONE);
    assert_int_equal(waited.count, 2 * WAITS);
    close_sessions(&sessions);
}

/* A stop completes all requests that wait, too. */
static void test_stop_completes_long_group(void **state)
{
    struct sessions sessions;
    (void)state;
    open_waits(&sessions);
    journal_stop(sessions.journal);
    assert_int_equal(waited.count, WAITS);
    close_sessions(&sessions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_enqueued_during_covering_sync_completes),
        cmocka_unit_test(test_buffer_of_a_large_entry_is_freed),
        cmocka_unit_test(test_limits_come_from_the_log),
        cmocka_unit_test(test_invalid_clock_of_timestamps_begins_anew),
        cmocka_unit_test(test_cancelled_waiter_ends_its_wait),
        cmocka_unit_test(test_cancelled_idle_waiter_refuses_later_commands),
        cmocka_unit_test(test_end_waits_refuses_later_waits),
        cmocka_unit_test(test_requests_of_a_transaction_are_not_synced),
        cmocka_unit_test(test_stop_during_caller_sync_completes_all),
        cmocka_unit_test(test_rest_of_long_group_is_left_to_completer),
        cmocka_unit_test(test_no_command_waits_for_long_groups_of_others),
        cmocka_unit_test(test_stop_completes_long_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
