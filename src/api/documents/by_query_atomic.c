/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By-query calls with ?atomic=true: all that they change is in one transaction of their own.
 *
 * The indices that the search covers are locked first, so that no document enters or leaves them
 * until the commit. When a wait for a lock would close a cycle, the transaction is rolled back and
 * the call starts anew: none of its changes was visible, and the client need not repeat anything.
 */
#include "api/request/api_internal.h"
#include "api/documents/by_query.h"
#include "api/request/problem_reply.h"
#include "api/search/search_service.h"
#include "api/search/task.h"

#define ATTEMPTS_MAX 10
#define ROLLBACK_AGAIN_US (200 * TL_MS)
#define TRANSACTION_IDLE_US (24 * 3600 * TL_SECOND) /* a search between two batches may take long */

/*
 * Submits a command of the transaction. Returns: 0; 1 with by->problem, unless the task was
 * cancelled. The command is still the caller's.
 */
static int carry_out(struct by_query *by, struct command *command)
{
    by_query_submit(by, command);
    if (command->problem.type == PROBLEM_NONE)
        return 0;
    if (atomic_load(&by->task->cancelled))
        return 1;
    problem_copy(&by->problem, &command->problem, &by->task->arena);
    return 1;
}

static int begin_transaction(struct by_query *by)
{
    struct command *command = command_new(COMMAND_TXN_BEGIN, DIALECT_7);
    struct txn_command *txn = &command->txn;
    txn->id = id_random(&by->api->ids, &command->arena);
    txn->mode = TXN_UPDATE;
    txn->idle_us = TRANSACTION_IDLE_US;
    txn->of_host = true; /* no client knows its id */
    command->owner.session = arena_copy(&command->arena, by->session);
    by->transaction = arena_copy(&by->task->arena, txn->id);
    int r = carry_out(by, command);
    command_free(command);
    return r;
}

/* From now on the call reads the state as of its locks. */
static void take_view(struct by_query *by, struct txn_lock_command *lock)
{
    by_query_leave_view(by);
    by->overlay = lock->overlay;
    lock->overlay = NULL;
    by->call.view = (struct view){by->api->store, lock->read_ts, by->overlay};
    by->call.catalog = journal_catalog(by->api->journal);
    by->pinned = journal_pin(by->api->journal, lock->read_ts) == 0;
}

/* Locks the first of the targets. Returns: 0, with how many of them these are; as carry_out(). */
static int lock_some(struct by_query *by, const struct divided_targets *reads, uint64_t wait_us, size_t *ret_done)
{
    struct command *command = command_new(COMMAND_TXN_LOCK, by->call.dialect);
    command->owner.transaction = arena_copy(&command->arena, by->transaction);
    command->owner.timeout_us = wait_us;
    command->txn_lock.targets = reads->targets;
    command->txn_lock.target_count = reads->named;
    int r = carry_out(by, command);
    if (r == 0)
        take_view(by, &command->txn_lock);
    *ret_done = command->txn_lock.done;
    command_free(command);
    return r;
}

/* Locks all that the call reads, by several commands if it is much. */
static int lock_what_is_read(struct by_query *by)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    size_t count, done;
    struct lock_target *targets = search_call_locks(&by->call, &arena, &count);
    struct divided_targets reads = divided_targets_of(targets, count);
    uint64_t until_us = divided_wait_end(by->options.timeout_us);
    int r = lock_some(by, &reads, by->options.timeout_us, &done);
    while (r == 0 && divided_targets_advance(&reads, done))
        r = lock_some(by, &reads, divided_wait_left(until_us), &done);
    return r;
}

static int commit_transaction(struct by_query *by)
{
    struct command *command = command_new(COMMAND_TXN_COMMIT, DIALECT_7);
    command->txn.id = arena_copy(&command->arena, by->transaction);
    command->owner.fencing_token = by->fencing_token;
    int r = carry_out(by, command);
    command_free(command);
    return r;
}

/* Whether a command may be taken when it is submitted again: the log had no room for it, or could not be reached. */
static bool is_transient(enum problem_type type)
{
    return type == PROBLEM_DISK_FULL || type == PROBLEM_LOG_UNAVAILABLE || type == PROBLEM_OUTCOME_UNKNOWN;
}

/*
 * It may have ended by itself, or never have begun: both are fine. No client can end this
 * transaction, and it holds locks: so the rollback is submitted until it is accepted, or the server
 * stops, which ends the transaction, too.
 */
static void roll_back(struct by_query *by)
{
    enum problem_type type;
    do {
        struct command *command = command_new(COMMAND_TXN_ROLLBACK, DIALECT_7);
        command->txn.id = arena_copy(&command->arena, by->transaction);
        by_query_submit(by, command);
        type = command->problem.type;
        command_free(command);
    } while (is_transient(type) && !tasks_pause(by->task->tasks, ROLLBACK_AGAIN_US));
}

static void forget_changes(struct by_query_status *status)
{
    status->created = status->updated = status->deleted = 0;
}

/* None of the counted changes was made. */
static void count_as_rolled_back(struct by_query *by)
{
    by->rolled_back = true;
    forget_changes(&by->sum);
    for (uint32_t i = 0; i < by->part_count; i++)
        forget_changes(&by->parts[i]);
}

static bool has_failed(const struct by_query *by)
{
    return by->problem.type != PROBLEM_NONE || by->failure_count > 0 || by->timed_out ||
           atomic_load(&by->task->cancelled);
}

static void attempt_all(struct by_query *by)
{
    if (begin_transaction(by) != 0) {
        roll_back(by); /* that it was not answered does not mean that it has not begun */
        count_as_rolled_back(by);
        return;
    }
    int r = lock_what_is_read(by);
    if (r < 0)
        problem_from_code(&by->problem, &by->task->arena, r);
    if (r == 0)
        by_query_work(by);
    if (!has_failed(by) && commit_transaction(by) == 0)
        return;
    roll_back(by);
    count_as_rolled_back(by);
}

/* Whether it was the victim of a deadlock, and nothing else failed. */
static bool is_deadlock_victim(const struct by_query *by)
{
    return by->problem.type == PROBLEM_DEADLOCK_DETECTED && !atomic_load(&by->task->cancelled);
}

/* As if it had not begun. */
static void start_over(struct by_query *by)
{
    by->problem = (struct problem){.type = PROBLEM_NONE};
    by->sum = (struct by_query_status){0};
    by->part_count = 0;
    by->failure_count = 0;
    by->failure_status = 0;
    by->rolled_back = false;
    buf_clear(&by->failures);
    script_unref(tl_steal(by->compiled));
}

void by_query_work_atomic(struct by_query *by)
{
    attempt_all(by);
    for (int i = 1; i < ATTEMPTS_MAX && is_deadlock_victim(by); i++) {
        start_over(by);
        attempt_all(by);
    }
}
