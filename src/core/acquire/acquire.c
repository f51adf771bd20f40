/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock acquisition of writes. README-locks.md, "Requests".
 *
 * An autocommit write:
 * - items that no lock blocks run at once, without a lock; of an atomic write all items or none;
 * - the other items become one request, and run when it is granted, at a later timestamp;
 * - at the deadline each remaining item is tried alone: it runs, or fails and reports its blockers.
 * Items for one document keep their order: if one of them waits, the following ones wait too.
 *
 * A write in a transaction acquires X on its documents and holds it until the transaction ends. All
 * items of an atomic one wait and run together. Any other is divided into batches by its items and
 * their sources: the items of a batch wait and run together, and the next batch is ready then
 * (README-locks.md, "Requests").
 *
 * A resumed write starts again: its targets and locks are computed from the current state and
 * requested again. Locks that it already holds are granted at once.
 *
 * An atomic write that is too much for one step is carried out in pieces, in a transaction of its own
 * (acquire_pieces.c).
 *
 * This file asks for the locks, and tries again. acquire_targets.c finds which items run and the
 * locks that they need; acquire_run.c runs them; acquire_cleanup.c does all of it for the actions of
 * ended sessions.
 */
#include "core/acquire/acquire.h"

#include "base/check.h"
#include "core/acquire/acquire_internal.h"
#include "core/acquire/ask.h"
#include "core/acquire/grants.h"
#include "core/acquire/lock_resolve.h"
#include "core/documents/request_outcome.h"
#include "core/documents/update.h"
#include "core/documents/write.h"
#include "core/documents/write_command.h"
#include "core/locks/lock.h"
#include "core/session/command_owner.h"
#include "core/session/cost.h"
#include "core/session/deadline.h"
#include "core/session/owner.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/wait.h"

/* Bounds the reply of a large bulk. */
enum { HOLDERS_REPORTED_PER_ITEM = 3 };

/* --- The owner ---------------------------------------------------------------------------------------------------- */

/* Finds the session or the transaction. Returns: false, with the command's problem. */
static bool find_owner(struct acquisition *at)
{
    struct command *command = at->command;
    const struct command_owner *owner = &command->owner;
    if (owner->transaction.len > 0) {
        at->txn = txn__find(at->core, owner->transaction, owner->session, &command->arena, &command->problem);
        return at->txn != NULL;
    }
    return command_owner__session(at->core, command, &at->session);
}

/* Whether all items run in one unit: they wait for each other's locks, too. */
static bool runs_in_one_unit(const struct acquisition *at)
{
    return at->command->write.atomic || at->command->write.request.id.len > 0;
}

/*
 * Whether the locks would exceed the memory limit of a transaction or a write; checked before the
 * request is made.
 */
static bool specs_too_large(struct acquisition *at)
{
    REQUIRE(at->core->open);
    size_t most = at->core->limits.transaction_held_max;
    size_t held = at->txn == NULL || at->txn->overlay == NULL ? 0 : overlay_memory_bytes(at->txn->overlay);
    held += at->txn == NULL ? 0 : owner__lock_bytes(at->core, &at->txn->owner.locks);
    return held >= most || lock_specs__bytes(at->core, &at->specs, most - held) > most - held;
}

/* --- Failing ------------------------------------------------------------------------------------------------------ */

/* Gives an item the cause of its wait, or a problem that reports its blockers. */
static void fail_item(struct acquisition *at, size_t item, struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC) && item < acquisition__write(at)->item_count);
    struct problem *problem = &acquisition__write(at)->results[item].problem;
    if (wait->cause != NULL) {
        *problem = *wait->cause;
    } else if (at->full) {
        wait__explain_limit(at->core, &at->command->arena, problem);
    } else if (at->explained_bytes > WRITE_EXPLAINED_BYTES_MAX) {
        wait__explain_briefly(&at->command->arena, PROBLEM_LOCK_WAIT_TIMEOUT, problem);
    } else {
        bool alone = acquisition__write(at)->item_count == 1;
        uint64_t work =
            wait__explain(at->core, wait, PROBLEM_LOCK_WAIT_TIMEOUT,
                          alone ? HOLDERS_REPORTED_MAX : HOLDERS_REPORTED_PER_ITEM, &at->command->arena, problem);
        size_t bytes = problem->reason.len + problem->details.len, weight = (size_t)work * WORK_BYTES;
        at->explained_bytes += weight > bytes ? weight : bytes;
    }
}

/*
 * Returns: a key for a document in a set, valid until the next call. Documents of one id and
 *          different types share it, since a type may be unknown.
 */
static struct slice document_key(const struct write_target *target, struct buf *buf)
{
    buf_clear(buf);
    buf_varint(buf, target->index.len);
    buf_slice(buf, target->index);
    buf_slice(buf, target->id);
    return buf_as_slice(buf);
}

/* --- Autocommit writes -------------------------------------------------------------------------------------------- */

/* Whether no lock, held or requested, blocks the write of a target. */
static bool can_run(struct acquisition *at, const struct write_target *target)
{
    struct lock_owner *session = at->session == NULL ? NULL : &at->session->owner.locks;
    if (lock_table_is_idle(&at->core->owners->locks))
        return true;
    struct lock_spec_list specs = acquisition__specs_of(at, target);
    for (size_t i = 0; i < specs.count; i++)
        if (!lock_table_can_grant(&at->core->owners->locks, session, &specs.items[i]))
            return false;
    return true;
}

/*
 * Finds the targets that a lock blocks; one blocks a write that runs in one unit as a whole.
 * Returns: how many.
 */
static size_t find_blocked(struct acquisition *at, bool *blocked)
{
    struct map documents = MAP_INIT;
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    size_t count = 0;
    for (size_t i = 0; i < at->targets.count; i++) {
        const struct write_target *target = &at->targets.items[i];
        blocked[i] = (count > 0 && map_get(&documents, document_key(target, &key)) != NULL) || !can_run(at, target);
        if (!blocked[i])
            continue;
        count++;
        map_put(&documents, document_key(target, &key), at);
    }
    if (count > 0 && runs_in_one_unit(at)) {
        count = at->targets.count;
        memset(blocked, true, count);
    }
    ENSURE(count <= at->targets.count);
    map_deinit(&documents);
    buf_deinit(&key);
    return count;
}

/* Returns: by item, whether it runs now: it is pending and not blocked. */
static bool *choose_unblocked(struct acquisition *at, const bool *blocked)
{
    size_t count = acquisition__write(at)->item_count;
    bool *chosen = arena_alloc(&at->core->arena, count + 1);
    for (size_t i = 0; i < count; i++)
        chosen[i] = acquisition__is_pending(at, i);
    for (size_t i = 0; i < at->targets.count; i++)
        if (blocked[i])
            chosen[at->targets.items[i].item] = false;
    return chosen;
}

/* Records the blocked items as pending. */
static void set_pending(struct acquisition *at, const bool *blocked)
{
    REQUIRE(at->wait != NULL);
    size_t count = acquisition__write(at)->item_count;
    bool *pending = arena_zalloc(&at->command->arena, count + 1);
    for (size_t i = 0; i < at->targets.count; i++)
        if (blocked[i])
            pending[at->targets.items[i].item] = true;
    at->wait->pending_items = pending;
}

void acquisition__free_wait(struct acquisition *at)
{
    if (at->wait != NULL)
        wait__free(at->core, tl_steal(at->wait));
}

/*
 * Opens an empty unit for an atomic write, which rolls back its whole unit when it fails, and for a
 * named request, whose outcome may be in the unit.
 * Returns: 0, the unit was empty, or the write needs none; 1, a new unit is open and the targets
 * must be computed again; fatal codes.
 */
static int begin_clean_unit(struct acquisition *at)
{
    REQUIRE(at->core->open);
    struct core *core = at->core;
    if (!runs_in_one_unit(at) || at->txn != NULL || !core__changed(core))
        return 0;
    int r = core__commit(core);
    if (r < 0)
        return tl_trace(r);
    core__begin(core, core->last_ts + 1);
    at->targets = (struct write_targets){0}; /* their memory was the unit's */
    return 1;
}

static int run_or_acquire(struct acquisition *at, uint64_t deadline);

/* Postpones all items after the range. */
static void postpone_rest(struct acquisition *at)
{
    REQUIRE(at->range.end <= acquisition__write(at)->item_count);
    core__work(at->core, (acquisition__write(at)->item_count - at->range.end) * WORK_LOCK);
    write__postpone_from(at->core, at->command, at->range.end);
}

int acquisition__continue_later(struct acquisition *at)
{
    struct core *core = at->core;
    size_t count = acquisition__write(at)->item_count;
    REQUIRE(at->txn != NULL && (at->range.end < count || at->in_pieces));
    if (at->wait == NULL)
        at->wait = wait__new(core, at->command, &at->txn->owner.locks, NULL, at->txn);
    if (at->wait->pending_items == NULL) {
        at->wait->pending_items = arena_alloc(&at->command->arena, count + 1);
        memset(at->wait->pending_items, true, count);
    }
    memset(at->wait->pending_items + at->range.begin, false, at->range.end - at->range.begin);
    wait__continue_later(core, tl_steal(at->wait));
    core->owners->cost_left = core->owners->cost_kept = 0;
    return CORE_WAITS;
}

/* Runs the batch of a write in a transaction. Returns: 0, it was the last; CORE_WAITS; fatal codes. */
static int finish_batch(struct acquisition *at)
{
    REQUIRE(at->txn != NULL);
    struct write_command *write = acquisition__write(at);
    uint64_t steps_max = update_command_steps_max(&at->core->limits.script, false);
    uint64_t steps_before = write->script_steps;
    int r = acquisition__run_in_txn(at);
    if (r < 0)
        return tl_trace(r);
    if (at->range.end < write->item_count && at->command->problem.type == PROBLEM_NONE) {
        bool results_full = at->core->command_version >= COMMAND_SINCE_RESULT_BYTES && !write->atomic &&
                            write->result_bytes > WRITE_RESULT_BYTES_MAX;
        if (write->postponed_count == 0 && !results_full && write->script_steps - steps_before <= steps_max)
            return acquisition__continue_later(at);
        postpone_rest(at);
    }
    acquisition__free_wait(at);
    return 0;
}

/*
 * Looks for the outcome of a repetition that ran while this write waited; then frees the wait.
 * Returns: as request_outcome__find().
 */
static int find_outcome(struct acquisition *at)
{
    if (at->command->write.request.id.len == 0)
        return REQUEST_OUTCOME_NONE;
    int r = request_outcome__find(at->core, at->command);
    if (r == 0)
        acquisition__free_wait(at);
    return r;
}

/* Runs all pending items, and frees the wait. */
static int run_and_free_wait(struct acquisition *at, uint64_t deadline)
{
    bool *chosen = NULL;
    if (at->in_pieces)
        return acquisition__run_piece(at);
    if (at->txn != NULL)
        return finish_batch(at);
    int r = begin_clean_unit(at);
    if (r < 0)
        return tl_trace(r);
    if (r > 0)
        return run_or_acquire(at, deadline);
    r = find_outcome(at);
    if (r != REQUEST_OUTCOME_NONE)
        return r;
    if (at->wait != NULL && at->wait->pending_items != NULL) {
        chosen = arena_alloc(&at->core->arena, acquisition__write(at)->item_count + 1);
        memcpy(chosen, at->wait->pending_items, acquisition__write(at)->item_count);
    }
    r = acquisition__run(at, chosen);
    if (r == 0 && acquisition__write(at)->exceeds_step)
        return acquisition__begin_pieces(at, deadline);
    acquisition__free_wait(at);
    return r;
}

/*
 * Fails the blocked items for the cause of `wait`, and runs the others. An atomic write fails as a
 * whole.
 */
static int finish_failing(struct acquisition *at, struct wait *wait, const bool *blocked)
{
    for (size_t i = 0; i < at->targets.count; i++)
        if (blocked[i])
            fail_item(at, at->targets.items[i].item, wait);
    return run_and_free_wait(at, at->core->clock);
}

/*
 * Requests the locks of each pending item separately, without waiting; runs the granted ones, fails
 * the others.
 */
static int acquire_each(struct acquisition *at)
{
    REQUIRE(at->wait != NULL);
    for (size_t i = 0; i < at->targets.count; i++) {
        size_t item = at->targets.items[i].item;
        if (!acquisition__is_pending(at, item))
            continue;
        struct lock_spec_list specs = acquisition__specs_of(at, &at->targets.items[i]);
        if (wait__acquire(at->core, at->wait, specs.items, specs.count, false) == LOCK_CONFLICT)
            fail_item(at, item, at->wait);
    }
    return run_and_free_wait(at, at->core->clock);
}

/*
 * Requests the collected locks, and runs or parks the write.
 * Returns: 0, done; CORE_WAITS; fatal codes.
 */
static int acquire_write_locks(struct acquisition *at, uint64_t deadline, const bool *blocked)
{
    struct core *core = at->core;
    if (specs_too_large(at)) {
        problem_set(wait__cause(at->wait), &at->command->arena, PROBLEM_LIMIT_EXCEEDED,
                    core->command_version >= COMMAND_SINCE_PLAIN_TEXTS
                        ? "its locks and requests for locks would take more than [%zu] bytes while it waits"
                        : "the places of its documents would take more than [%zu] bytes while it waits",
                    core->limits.transaction_held_max);
        return finish_failing(at, at->wait, blocked);
    }
    switch (ask__locks(core, at->wait, at->specs.items, at->specs.count, deadline)) {
    case ASK_GRANTED: return run_and_free_wait(at, deadline);
    case ASK_PARKED: at->wait = NULL; return CORE_WAITS;
    case ASK_FULL: at->full = true; return acquire_each(at);
    case ASK_BLOCKED: return acquire_each(at);
    case ASK_VICTIM: return finish_failing(at, at->wait, blocked);
    }
    UNREACHABLE();
}

/*
 * Postpones the blocked items if other items were postponed, so that they do not run before those.
 * The write must have begun an item, else it would be resubmitted without progress; or have left a script to its
 * submitter, which resubmits it with what that returned.
 * Returns: whether it has postponed them, so that the write is done.
 */
static bool postpone_blocked(struct acquisition *at, const bool *chosen, const bool *blocked)
{
    struct write_command *write = acquisition__write(at);
    bool begun = false;
    for (size_t i = 0; i < write->item_count && !begun; i++)
        begun = chosen[i] && (!write->results[i].postponed || write->results[i].script_long);
    if (write->postponed_count == 0 || !begun)
        return false;
    for (size_t i = 0; i < at->targets.count; i++)
        if (blocked[i])
            write__postpone(at->core, at->command, at->targets.items[i].item);
    acquisition__free_wait(at);
    return true;
}

/*
 * Runs the items that no lock blocks, and requests the locks of the rest. Those are computed after
 * the run, which may have moved their documents.
 */
static int first_try(struct acquisition *at, uint64_t deadline)
{
    REQUIRE(at->txn == NULL && at->wait == NULL);
    bool *blocked = arena_zalloc(&at->core->arena, at->targets.count + 1);
    size_t blocked_count = find_blocked(at, blocked);
    if (blocked_count == 0) {
        int r = acquisition__run(at, NULL);
        return r == 0 && acquisition__write(at)->exceeds_step ? acquisition__begin_pieces(at, deadline) : r;
    }
    INSIST(at->targets.count > 0);
    at->wait = wait__new(at->core, at->command, NULL, at->session, NULL);
    if (!runs_in_one_unit(at) && acquisition__write(at)->item_count > 1) {
        bool *chosen = choose_unblocked(at, blocked);
        int r = acquisition__run(at, chosen);
        if (r >= 0 && postpone_blocked(at, chosen, blocked))
            return 0;
        set_pending(at, blocked);
        return r < 0 ? tl_trace(r) : run_or_acquire(at, deadline);
    }
    acquisition__collect_specs(at, blocked);
    return acquire_write_locks(at, deadline, blocked);
}

/* --- In a transaction --------------------------------------------------------------------------------------------- */

/* Ends a write that is refused before it asks for locks; the transaction stays, unless it is its own. */
static int leave_refused(struct acquisition *at)
{
    if (at->in_pieces) {
        acquisition__end_pieces(at);
        return 0;
    }
    acquisition__free_wait(at);
    txn__touch(at->core, at->txn);
    return 0;
}

/* Whether asking for its locks makes an atomic write in a client's transaction take more than one step may. */
static bool locks_exceed_step(struct acquisition *at)
{
    uint64_t most = at->core->atomic_work_max, work;
    if (!at->one_step || acquisition__write(at)->item_count == 1)
        return false;
    if (lock_specs__exceed_work(at->core, &at->specs, at->work < most ? most - at->work : 0, &work))
        return true;
    at->work += work;
    return false;
}

static int refuse_above_step(struct acquisition *at)
{
    write__refuse_above_step(at->command);
    return leave_refused(at);
}

static int acquire_in_txn(struct acquisition *at, uint64_t deadline)
{
    REQUIRE(at->txn != NULL);
    struct core *core = at->core;
    if (at->targets.exceed_step)
        return refuse_above_step(at); /* before it asks for locks, which would stay with the transaction */
    if (at->targets.count == 0)
        return run_and_free_wait(at, deadline);
    acquisition__collect_specs(at, NULL);
    if (locks_exceed_step(at))
        return refuse_above_step(at);
    enum lock_count counted = at->in_pieces ? LOCK_COUNT_PLAIN : lock_specs__counted(core);
    if (lock_specs__count_after(&at->txn->owner.locks, &at->specs, counted) > core->limits.locks_per_session_max) {
        acquisition__refuse_too_many_locks(at);
        return leave_refused(at);
    }
    if ((at->wait == NULL || at->wait->request == NULL) && specs_too_large(at)) {
        acquisition__refuse_too_large(at);
        return leave_refused(at);
    }
    if (at->wait == NULL)
        at->wait = wait__new(core, at->command, &at->txn->owner.locks, NULL, at->txn);
    const struct lock_owner *owner = &at->txn->owner.locks;
    bool holds_none = owner->lock_count + owner->auxiliary_count == 0;
    bool may_wait = !at->in_pieces || holds_none || acquisition__is_last_attempt(at);
    switch (ask__locks(core, at->wait, at->specs.items, at->specs.count, may_wait ? deadline : 0)) {
    case ASK_GRANTED: return run_and_free_wait(at, deadline);
    case ASK_PARKED: at->wait = NULL; return CORE_WAITS;
    case ASK_BLOCKED:
        if (!may_wait && deadline > core->clock)
            return acquisition__attempt_again(at, deadline);
        return acquire_each(at);
    case ASK_FULL: at->full = core->command_version >= COMMAND_SINCE_FULL_CAUSE; return acquire_each(at);
    case ASK_VICTIM:
        ask__fail_victim(core, tl_steal(at->wait));
        at->txn = NULL;
        return 0;
    }
    UNREACHABLE();
}

/* --- Entry points ------------------------------------------------------------------------------------------------- */

/*
 * Computes the targets, and runs the write or requests its locks. Also resumes it after a wait.
 * Returns: 0, done; CORE_WAITS; fatal codes.
 */
static int run_or_acquire(struct acquisition *at, uint64_t deadline)
{
    int r = at->in_pieces ? acquisition__find_repetition(at) : REQUEST_OUTCOME_NONE;
    if (r != REQUEST_OUTCOME_NONE)
        return r;
    r = acquisition__find_targets(at);
    if (r < 0)
        return tl_trace(r);
    /* Finding its locks took what a step may take. */
    if (at->txn == NULL && acquisition__write(at)->atomic && acquisition__write(at)->postponed_count > 0 &&
        at->core->command_version >= COMMAND_SINCE_ATOMIC_PIECES)
        return acquisition__begin_pieces(at, deadline);
    if (at->txn != NULL)
        return acquire_in_txn(at, deadline);
    if (at->wait == NULL)
        return first_try(at, deadline);
    if (at->targets.count == 0)
        return run_and_free_wait(at, deadline);
    bool *blocked = arena_alloc(&at->core->arena, at->targets.count + 1);
    memset(blocked, true, at->targets.count);
    acquisition__collect_specs(at, NULL);
    return acquire_write_locks(at, deadline, blocked);
}

int acquire__write_in_pieces(struct core *core, struct command *command)
{
    REQUIRE(core->open && command->type == COMMAND_WRITE && command->write.atomic);
    struct acquisition at = {.core = core, .command = command};
    if (!find_owner(&at))
        return 0;
    return acquisition__begin_pieces(&at, deadline_after(core, command->owner.timeout_us));
}

int acquire__refuse_above_step(struct core *core, struct command *command)
{
    REQUIRE(core->open && write_command__in_one_step(core, command, false));
    struct acquisition at = {.core = core, .command = command};
    return find_owner(&at) ? refuse_above_step(&at) : 0;
}

int acquire__write(struct core *core, struct command *command)
{
    REQUIRE(core->open && command->type == COMMAND_WRITE);
    struct acquisition at = {
        .core = core, .command = command, .one_step = write_command__in_one_step(core, command, false)};
    if (!find_owner(&at))
        return 0;
    return run_or_acquire(&at, deadline_after(core, command->owner.timeout_us));
}

/*
 * Returns: what others have spent of the step's account, for a write of several items that is divided by it. An atomic
 * one in a client's transaction is not: grants__resume().
 */
static uint64_t spent_by_others(const struct core *core, const struct wait *wait)
{
    uint64_t charged = cost_charged_work(core);
    bool counts = charged > core->step_account / STEP_ACCOUNT_FREE_PART &&
                  charged < core->write_work_max; /* else it would begin no item */
    bool divided = !write_command__in_one_step(core, wait->command, wait__is_in_pieces(wait));
    return counts && divided && wait->command->write.item_count > 1 ? charged : 0;
}

static struct acquisition resumed_acquisition(struct core *core, struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC) && wait->command != NULL && wait->command->type == COMMAND_WRITE);
    return (struct acquisition){
        .core = core,
        .command = wait->command,
        .session = wait->session,
        .txn = wait->txn,
        .wait = wait,
        .one_step = write_command__in_one_step(core, wait->command, wait__is_in_pieces(wait)),
        .in_pieces = wait__is_in_pieces(wait),
        .steps_before = wait->command->write.script_steps,
        .work = spent_by_others(core, wait),
    };
}

static int resume_write(struct core *core, struct wait *wait)
{
    struct acquisition at = resumed_acquisition(core, wait);
    return run_or_acquire(&at, wait__deadline(wait));
}

/* Whether a write repeats the one of a kept place, which has its ID and part. */
static bool is_repetition(const struct command *kept, const struct command *command)
{
    return kept->write.request.hash == command->write.request.hash &&
           kept->write.item_count == command->write.item_count && kept->write.atomic == command->write.atomic;
}

/* Requests of its ID with which one that is to be kept is compared: a step may keep many. */
enum { NAMED_LOOKS_MAX = 100 };

/* Whether `other` waits for its own client, and repeats the write of `wait`. */
static bool repeats_write(const struct wait *other, const struct wait *wait)
{
    return other != wait && !other->kept && other->cancelled == WAIT_NOT_CANCELLED &&
           wait__session(other) == wait__session(wait) && is_repetition(wait->command, other->command);
}

struct wait *acquire__find_repeated(struct core *core, const struct wait *wait, size_t *looks, bool *ret_later)
{
    REQUIRE(wait->command->type == COMMAND_WRITE && wait->command->write.request.id.len > 0);
    struct wait *first = wait__named_write(core, &wait->command->write.request), *found = NULL;
    size_t before = *looks;
    *ret_later = true;
    INSIST(first != NULL); /* `wait` has the ID */
    for (struct list *link = first->of_name.prev; found == NULL && *looks - before < NAMED_LOOKS_MAX;
         link = link->prev) {
        struct wait *other = list_entry(link, struct wait, of_name);
        ++*looks;
        if (other == wait)
            *ret_later = false;
        else if (repeats_write(other, wait))
            found = other;
        if (other == first)
            break;
    }
    core__work(core, (*looks - before) * WORK_LOCK);
    return found;
}

/* Enqueues an atomic write that has its locks for its first piece, in a later step. */
static int begin_in_pieces(struct core *core, struct wait *wait)
{
    wait__enqueue_ready(core, wait);
    core->owners->cost_left = core->owners->cost_kept = 0;
    return CORE_WAITS;
}

bool acquire__take_over(struct core *core, struct command *command, int *ret)
{
    REQUIRE(core->open && command->type == COMMAND_WRITE);
    struct wait *wait = wait__kept_write(core, &command->write.request);
    struct session *session;
    uint64_t until = deadline_after(core, command->owner.timeout_us);
    *ret = 0;
    if (wait == NULL || !is_repetition(wait->command, command))
        return false;
    if (!command_owner__session(core, command, &session))
        return true;
    bool granted = lock_request_state(wait->request) == LOCK_STATE_GRANTED;
    if (wait__session(wait) != session || (!granted && until <= core->clock)) /* it does not want to wait */
        return false;
    if (wait__is_to_be_kept(wait))
        wait__keep(core, wait, until); /* now, not in its turn */
    wait__take_over(core, wait, command, until);
    wait->granted_ts = 0;
    *ret = !granted ? CORE_WAITS : wait->txn != NULL ? begin_in_pieces(core, wait) : resume_write(core, wait);
    return true;
}

void acquire__end_place(struct core *core, const struct command *command)
{
    REQUIRE(core->open && command->type == COMMAND_WRITE);
    if (core->command_version < COMMAND_SINCE_OUTCOMES_END_PLACES)
        return;
    struct wait *wait = wait__kept_write(core, &command->write.request);
    if (wait == NULL || !request_outcome__is_final(command))
        return;
    INSIST(wait->command != command);
    wait__end(core, wait, PROBLEM_STOPPING, "another request with its ID was executed");
}

/* A write that keeps its place does not run: its client was not notified, and may never send it again. */
static int on_grant(struct core *core, struct wait *wait)
{
    if (!wait->kept)
        return wait__on_grant(core, wait);
    wait__keep_granted(core, wait);
    return 0;
}

/*
 * Fails the pending items of an autocommit write with the cause, if others have run or after a
 * deadlock. Answers any other write at once.
 */
static int answer_write(struct core *core, struct wait *wait)
{
    REQUIRE(wait__state(wait) <= WAIT_PARKED || wait->ended);
    struct acquisition at = resumed_acquisition(core, wait);
    struct write_command *write = acquisition__write(&at);
    bool answers_at_once = at.command->owner.transaction.len > 0 ||
                           (wait->pending_items == NULL && wait__cause(wait)->type != PROBLEM_DEADLOCK_DETECTED);
    if (answers_at_once) {
        wait__answer(core, wait);
        return 0;
    }
    acquisition__choose_range(&at);
    at.work = 0; /* it postpones none */
    for (size_t i = 0; i < write->item_count; i++)
        if (acquisition__is_pending(&at, i))
            write->results[i].problem = *wait__cause(wait);
    return run_and_free_wait(&at, core->clock);
}

/* Runs the items that no lock blocks any more; fails the others. One that keeps its place runs none. */
static int on_timeout(struct core *core, struct wait *wait)
{
    struct acquisition at = resumed_acquisition(core, wait);
    struct command *command = wait->command;
    if (wait__has_place(wait)) {
        wait__fail(core, wait, PROBLEM_LOCK_WAIT_TIMEOUT, "the request was not repeated after a restart");
        return 0;
    }
    int r = acquisition__find_targets(&at);
    if (r == 0)
        r = at.targets.exceed_step ? refuse_above_step(&at) : acquire_each(&at);
    if (r == 0)
        core__complete(core, command);
    return r;
}

/* An autocommit write fails its items in a unit of its own. */
static void on_deadlock(struct core *core, struct wait *wait)
{
    REQUIRE(wait->cause != NULL && wait->cause->type != PROBLEM_NONE);
    if (wait->txn == NULL)
        wait__end_later(core, wait);
    else
        grants__on_deadlock(core, wait);
}

const struct wait_ops write__wait_ops = {on_grant, resume_write, on_timeout, on_deadlock, answer_write};

/* --- Callbacks of all commands that wait -------------------------------------------------------------------------- */

static const struct wait_ops *const wait_ops_of_type[COMMAND_TYPE_COUNT] = {
#define NEVER NULL
#define WAITS(noun) &noun##__wait_ops
#define X(symbol, name, code, member, flags, ops) [COMMAND_##symbol] = ops,
#include "core/command/commands.def"
#undef X
#undef WAITS
#undef NEVER
};

const struct wait_ops *acquire__wait_ops(enum command_type type)
{
    REQUIRE(type < COMMAND_TYPE_COUNT);
    return wait_ops_of_type[type];
}
