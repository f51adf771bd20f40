/* SPDX-License-Identifier: Apache-2.0 */
/* The commands LOCK, UNLOCK and TXN_LOCK. lock_resolve.c resolves the names in them. */
#include "base/check.h"
#include "core/acquire/acquire.h"
#include "core/acquire/ask.h"
#include "core/acquire/grants.h"
#include "core/acquire/lock_resolve.h"
#include "core/command/command.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/cost.h"
#include "core/session/deadline.h"
#include "core/session/owner.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/step/core.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/wait.h"

/* --- LOCK --------------------------------------------------------------------------------------------------------- */

/* The owner that requests locks: a session, or a transaction with a LOCK of its own. */
struct requester {
    struct session *session;
    struct txn *txn;
    struct lock_owner *owner;
};

/* Finds the owner of a LOCK. Returns: false, with the command's problem. */
static bool find_requester(struct core *core, struct command *command, struct requester *requester)
{
    const struct command_owner *owner = &command->owner;
    *requester = (struct requester){0};
    if (owner->transaction.len > 0) {
        requester->txn = txn__find(core, owner->transaction, owner->session, &command->arena, &command->problem);
        requester->owner = requester->txn == NULL ? NULL : &requester->txn->owner.locks;
    } else {
        requester->session = session__find(core, owner->session, &command->arena, &command->problem);
        requester->owner = requester->session == NULL ? NULL : &requester->session->owner.locks;
    }
    return requester->owner != NULL;
}

static bool is_within_count(struct core *core, struct command *command, const struct lock_owner *owner,
                            const struct lock_spec_list *specs)
{
    size_t max = core->limits.locks_per_session_max;
    if (lock_specs__count_after(owner, specs, lock_specs__counted(core)) > max)
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED, "a session holds at most [%zu] locks",
                    max);
    return command->problem.type == PROBLEM_NONE;
}

/* Checks the memory limit with all directories above the locks, before the request is made. */
static bool is_within_bytes(struct core *core, struct command *command, const struct lock_owner *owner,
                            const struct overlay *overlay, struct lock_spec_list *specs)
{
    size_t max = core->limits.transaction_held_max;
    size_t held = owner__lock_bytes(core, owner) + (overlay == NULL ? 0 : overlay_memory_bytes(overlay));
    if (specs->count == 0 || (held < max && lock_specs__bytes(core, specs, max - held) <= max - held))
        return true;
    if (command->owner.transaction.len > 0)
        problem_set(&command->problem, &command->arena, PROBLEM_TRANSACTION_TOO_LARGE,
                    "a transaction holds at most [%zu] bytes of documents with their entries and locks", max);
    else
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED,
                    "the locks of a session, and the directories above them, take at most [%zu] bytes: release some, "
                    "or lock a directory instead of the documents in it",
                    max);
    return false;
}

/* Whether a LOCK may ask for its locks. By commands before version 14 the memory has no limit. */
static bool may_ask(struct core *core, struct wait *wait, struct lock_spec_list *specs)
{
    const struct overlay *overlay = wait->txn == NULL ? NULL : wait->txn->overlay;
    return is_within_count(core, wait->command, wait->owner, specs) &&
           (core->command_version < COMMAND_SINCE_PLAIN_LOCKS ||
            is_within_bytes(core, wait->command, wait->owner, overlay, specs));
}

/* Notes the work of one request since `before`. It is indivisible, up to its own limit. */
static void note_work(struct core *core, uint64_t before)
{
    uint64_t most = core->command_version >= COMMAND_SINCE_LOCK_STEP ? LOCK_WORK_MAX : CORE_LOCK_WORK;
    uint64_t work = core_step_work(core) - before;
    core__note_indivisible(core, work < most ? work : most);
}

/* Returns: by target, whether its index is missing; NULL: none is. */
static bool *find_missing(const struct core *core, struct command *command)
{
    const struct lock_command *lock = &command->lock;
    bool *missing = NULL;
    for (size_t i = 0; i < lock->target_count; i++) {
        if (!lock_resolve__is_missing(core, lock->targets[i].index))
            continue;
        if (missing == NULL)
            missing = arena_zalloc(&command->arena, lock->target_count * sizeof *missing);
        missing[i] = true;
    }
    return missing;
}

/* Fills the results of a granted LOCK. */
static void set_results(struct core *core, struct command *command, struct wait *wait)
{
    REQUIRE(command->type == COMMAND_LOCK && wait->request != NULL);
    command->lock.index_missing = find_missing(core, command);
    command->lock.fencing_token = lock_request_token(wait->request);
    command->lock.waited_us = core->clock - wait->since;
    command->lock.queue_position = wait->queue_position;
    if (wait->txn != NULL)
        txn__touch(core, wait->txn);
}

/*
 * Frees the wait of a refused command. While the command waited, its transaction had no idle
 * deadline; it gets one again (not by commands before version 10).
 */
static void free_refused(struct core *core, struct wait *wait)
{
    struct txn *txn = wait->txn;
    bool has_waited = wait->until != 0;
    wait__free(core, wait);
    if (txn != NULL && has_waited && core->command_version >= COMMAND_SINCE_IDLE_AFTER_REFUSAL)
        txn__touch(core, txn);
}

/*
 * Requests the locks of a LOCK or a TXN_LOCK.
 * Returns: 0, with *ret_granted; if false, the command has its problem and the wait is freed;
 *          CORE_WAITS.
 */
static int acquire_specs(struct core *core, struct wait *wait, const struct lock_spec *specs, size_t count,
                         uint64_t wait_us, bool *ret_granted)
{
    *ret_granted = false;
    enum ask_outcome outcome = ask__locks(core, wait, specs, count, deadline_after(core, wait_us));
    switch (outcome) {
    case ASK_GRANTED: *ret_granted = true; return 0;
    case ASK_PARKED: return CORE_WAITS;
    case ASK_BLOCKED:
    case ASK_FULL:
        ask__explain(core, wait, outcome, PROBLEM_LOCK_CONFLICT);
        free_refused(core, wait);
        return 0;
    case ASK_VICTIM: ask__fail_victim(core, wait); return 0;
    }
    UNREACHABLE();
}

/*
 * Charges the directories above the locks that a LOCK asks for after a wait to the step's account of work: a step may
 * resume many of them. Their locks are charged already.
 */
static void charge_levels(struct core *core, const struct wait *wait, struct lock_spec_list *specs)
{
    uint64_t work;
    if (core->command_version >= COMMAND_SINCE_LEVELS_CHARGED && wait->until != 0 &&
        !lock_specs__exceed_work(core, specs, UINT64_MAX, &work))
        cost_charge_work(core, work - specs->work);
}

/*
 * Resolves the targets and requests their locks; may wait for `wait_us`.
 * Returns: as acquire_specs(); fatal codes.
 */
static int resolve_and_acquire(struct core *core, struct wait *wait, uint64_t wait_us, bool *ret_granted)
{
    REQUIRE(wait->command->type == COMMAND_LOCK);
    struct command *command = wait->command;
    const struct lock_command *lock = &command->lock;
    struct lock_spec_list specs;
    uint64_t before = core_step_work(core);
    int r = lock_resolve__locks(core, lock->targets, lock->target_count, LOCK_RESOLVE_TO_LOCK, wait->owner,
                                &command->arena, &specs, &command->problem);
    *ret_granted = false;
    cost_charge_work(core, specs.work);
    if (r == 0)
        lock_resolve__drop_held(core, wait->owner, &specs);
    if (r != 0 || !may_ask(core, wait, &specs)) {
        note_work(core, before);
        free_refused(core, wait);
        return r < 0 ? tl_trace(r) : 0;
    }
    wait->names_epoch = core->names_epoch;
    wait__names_resolved(wait);
    charge_levels(core, wait, &specs);
    r = acquire_specs(core, wait, specs.items, specs.count, wait_us, ret_granted);
    note_work(core, before);
    return r;
}

/*
 * Finds whether the granted locks are exactly those that the targets mean now.
 * Returns: 0; fatal codes.
 */
static int is_current(struct core *core, struct wait *wait, bool *ret_current)
{
    REQUIRE(wait->request != NULL && wait->command->type == COMMAND_LOCK);
    struct command *command = wait->command;
    const struct lock_command *lock = &command->lock;
    struct problem problem;
    struct lock_spec_list specs;
    uint64_t before = core_step_work(core);
    int r = lock_resolve__locks(core, lock->targets, lock->target_count, LOCK_RESOLVE_TO_LOCK, wait->owner,
                                &command->arena, &specs, &problem);
    size_t count = 0;
    cost_charge_work(core, specs.work);
    *ret_current = r == 0;
    lock_request_mark_names(wait->request, true); /* it keeps those that it was granted itself */
    for (size_t i = 0; r == 0 && i < specs.count; i++) {
        const struct lock_spec *spec = &specs.items[i];
        bool in_tree = spec->on.space == RESOURCE_SPACE_TREE;
        *ret_current &= in_tree || core->command_version < COMMAND_SINCE_NAMES_AGAIN
                            ? lock_table_holds(&core->owners->locks, wait->owner, spec)
                            : lock_resolve__holds_name(core, wait->owner, spec);
        count += in_tree;
    }
    lock_request_mark_names(wait->request, false);
    *ret_current &= count == lock_request_spec_count(wait->request);
    note_work(core, before);
    return r < 0 ? tl_trace(r) : 0;
}

/* Completes a LOCK in the unit that granted it, unless its names have changed their meaning. */
static int on_grant(struct core *core, struct wait *wait)
{
    struct command *command = wait->command;
    bool current = true;
    if (wait->kept) {
        wait__keep_granted(core, wait); /* until its client asks again, or its deadline */
        return 0;
    }
    int r = 0;
    bool again = wait->names_epoch != core->names_epoch;
    if (core->owners->work_left == 0 || (again && grants__is_left(core, wait)))
        current = false; /* a later step looks, and completes it */
    else if (again)
        r = is_current(core, wait, &current);
    if (r < 0)
        return tl_trace(r);
    if (!current) {
        wait->granted_ts = core->ts;
        wait__enqueue_ready(core, wait);
        return 0;
    }
    cost_charge_work(core, WORK_LOCK * (uint64_t)command->lock.target_count);
    set_results(core, command, wait);
    wait__free(core, wait);
    core__complete(core, command);
    return 0;
}

/*
 * Completes a granted LOCK. If its locks are not those that the names mean, or not `in_force`, it releases
 * them and requests those that the names mean now.
 */
static int complete_or_ask(struct core *core, struct wait *wait, bool in_force)
{
    struct command *command = wait->command;
    bool current, granted;
    int r = is_current(core, wait, &current);
    if (r < 0)
        return r;
    if (!current || !in_force) {
        wait__undo(core, wait);
        wait->granted_ts = 0;
        uint64_t left_us = wait->until > core->clock ? wait->until - core->clock : 0;
        r = resolve_and_acquire(core, wait, left_us, &granted);
        if (!granted)
            return r;
    }
    set_results(core, command, wait);
    wait__free(core, wait);
    return 0;
}

static int resume_lock(struct core *core, struct wait *wait)
{
    return complete_or_ask(core, wait, true);
}

/* --- Kept places -------------------------------------------------------------------------------------------------- */

/* Of waits and targets that one request compares itself with, so that this is bounded. */
enum { KEPT_LOOKS_MAX = 10000 };
/* Later requests of its session with which one that is to be kept is compared: a step may keep many. */
enum { REPEATED_LOOKS_MAX = 200 };

static bool target_equal(const struct lock_target *a, const struct lock_target *b)
{
    return a->mode == b->mode && slice_equal(a->index, b->index) && slice_equal(a->path, b->path) &&
           slice_equal(a->type, b->type) && slice_equal(a->id, b->id) &&
           (a->path.data == NULL) == (b->path.data == NULL) && (a->id.data == NULL) == (b->id.data == NULL);
}

/* Whether two LOCKs name the same locks in the same order; counts *looks. */
static bool names_same_locks(const struct lock_command *a, const struct lock_command *b, size_t *looks)
{
    if (a->target_count != b->target_count)
        return false;
    for (size_t i = 0; i < a->target_count; i++, ++*looks)
        if (!target_equal(&a->targets[i], &b->targets[i]))
            return false;
    return true;
}

/* Returns: the kept wait of the session, or that is to be kept, whose request `command` repeats; NULL: none. */
static struct wait *find_kept(struct core *core, const struct session *session, const struct command *command)
{
    size_t looks = 0;
    struct wait *found = NULL;
    list_for_each(link, &session->waits)
    {
        struct wait *wait = list_entry(link, struct wait, of_session);
        if (++looks > KEPT_LOOKS_MAX)
            break;
        bool kept = wait__has_place(wait) && wait->command->type == COMMAND_LOCK;
        if (!kept || !names_same_locks(&wait->command->lock, &command->lock, &looks))
            continue;
        found = wait;
        break;
    }
    core__work(core, looks * WORK_LOCK);
    return found;
}

struct wait *lock__find_repeated(struct core *core, const struct wait *wait, size_t *looks)
{
    REQUIRE(wait->session != NULL && wait->command->type == COMMAND_LOCK);
    const struct list *link = wait->session->waits.prev;
    struct wait *found = NULL;
    for (; link != &wait->of_session && ++*looks <= REPEATED_LOOKS_MAX; link = link->prev) {
        struct wait *later = list_entry(link, struct wait, of_session);
        bool waits = wait__state(later) == WAIT_PARKED && !later->kept && later->cancelled == WAIT_NOT_CANCELLED &&
                     later->command->type == COMMAND_LOCK;
        if (!waits || !names_same_locks(&later->command->lock, &wait->command->lock, looks))
            continue;
        found = later;
        break;
    }
    core__work(core, *looks * WORK_LOCK);
    return found;
}

/*
 * Takes over the wait that a request of before an end of its host has left, if `command` repeats that.
 * Returns: whether it did; then *ret is core__do_lock()'s value.
 */
static bool take_over(struct core *core, struct session *session, struct command *command, int *ret)
{
    uint64_t until = deadline_after(core, command->owner.timeout_us);
    bool any = core->owners->kept_count > 0 || !list_empty(&core->owners->cancelled);
    struct wait *wait = any ? find_kept(core, session, command) : NULL;
    if (wait == NULL || (wait->granted_ts == 0 && until <= core->clock)) /* it does not want to wait */
        return false;
    bool granted = wait->granted_ts != 0;
    if (wait__is_to_be_kept(wait))
        wait__keep(core, wait, until); /* now, not in its turn */
    wait__take_over(core, wait, command, until);
    /* The session may have released what the kept request was granted, and locked it again, by another token. */
    *ret = granted ? complete_or_ask(core, wait, lock_request_is_in_force(wait->request)) : CORE_WAITS;
    return true;
}

int core__do_lock(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_LOCK);
    struct requester requester;
    bool granted;
    if (!find_requester(core, command, &requester))
        return 0;
    if (command->lock.target_count == 0) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "a lock request must name at least one lock in [locks]");
        return 0;
    }
    int r;
    if (requester.session != NULL && take_over(core, requester.session, command, &r))
        return r;
    struct wait *wait = wait__new(core, command, requester.owner, requester.session, requester.txn);
    r = resolve_and_acquire(core, wait, command->owner.timeout_us, &granted);
    if (granted) {
        set_results(core, command, wait);
        wait__free(core, wait);
    }
    return r;
}

static int on_timeout(struct core *core, struct wait *wait)
{
    REQUIRE(wait->command->type == COMMAND_LOCK);
    wait->command->lock.waited_us = core->clock - wait->since;
    wait->command->lock.queue_position = wait->queue_position;
    if (wait->kept) {
        wait__fail(core, wait, PROBLEM_LOCK_WAIT_TIMEOUT, "the request was not repeated after a restart");
        return 0;
    }
    return wait__on_timeout(core, wait);
}

const struct wait_ops lock__wait_ops = {on_grant, resume_lock, on_timeout, grants__on_deadlock, NULL};

/* --- UNLOCK ------------------------------------------------------------------------------------------------------- */

/*
 * Releases the locks that one target names. Adds their work to *work.
 * Returns: 0, with whether any lock was held; 1, with the command's problem; fatal codes.
 */
static int release_target(struct core *core, struct command *command, struct session *session,
                          const struct lock_target *target, uint64_t *work, bool *ret_released)
{
    struct lock_spec_list specs;
    int r =
        lock_resolve__locks(core, target, 1, LOCK_RESOLVE_TO_UNLOCK, NULL, &command->arena, &specs, &command->problem);
    *ret_released = false;
    *work += specs.work;
    cost_charge_work(core, specs.work);
    for (size_t i = 0; r == 0 && i < specs.count; i++)
        if (specs.items[i].on.space == RESOURCE_SPACE_TREE)
            *ret_released |= lock_release(&core->owners->locks, &session->owner.locks, &specs.items[i].on);
    return r < 0 ? tl_trace(r) : r;
}

/* Releases what targets name, from lock->done on, until that has taken `work_max`. Returns: as release_target(). */
static int release_targets(struct core *core, struct command *command, struct session *session, uint64_t work_max)
{
    struct lock_command *lock = &command->lock;
    uint64_t work = 0;
    bool released;
    int r = 0;
    while (r == 0 && lock->done < lock->target_count && work < work_max) {
        r = release_target(core, command, session, &lock->targets[lock->done], &work, &released);
        lock->released += released;
        lock->done++;
    }
    return r;
}

/* By commands before version 17: all of them, which are within CORE_LOCK_WORK, one after the other. */
static int unlock_all_named(struct core *core, struct command *command, struct session *session)
{
    struct lock_command *lock = &command->lock;
    struct lock_spec_list all;
    uint64_t before = core_step_work(core);
    int r = lock_resolve__locks(core, lock->targets, lock->target_count, LOCK_RESOLVE_TO_UNLOCK, NULL, &command->arena,
                                &all, &command->problem);
    if (r == 0)
        r = release_targets(core, command, session, UINT64_MAX);
    if (r == 0)
        lock_resolve__release_unused_aliases(core, &session->owner.locks);
    note_work(core, before);
    return r;
}

/*
 * Releases some of the named locks together: those that wait for them are granted, and cycles are looked for, once.
 * At least one name is done.
 */
static int unlock_some_named(struct core *core, struct command *command, struct session *session)
{
    const struct lock_command *lock = &command->lock;
    uint64_t work_max = core->unlock_work * core->limits.ephemeral_batch;
    uint64_t checking = core_step_work(core), checked;
    int r = lock_resolve__check_unlocked(core, lock->targets, lock->target_count, &command->arena, &checked,
                                         &command->problem);
    if (core->command_version < COMMAND_SINCE_LOCK_STEP)
        note_work(core, checking);
    else if (work_max > LOCK_WORK_MAX - checked && r == 0)
        work_max = LOCK_WORK_MAX - checked; /* the check is part of the step */
    if (r != 0)
        return r;
    lock_table_suspend_grants(&core->owners->locks);
    cost_charge_work(core, checked);
    r = release_targets(core, command, session, work_max);
    if (r >= 0) {
        uint64_t before = core_step_work(core);
        lock_resolve__release_unused_aliases(core, &session->owner.locks);
        core__note_indivisible(core, core_step_work(core) - before); /* transaction_held_max bounds the visits */
    }
    lock_table_resume_grants(&core->owners->locks);
    return r;
}

int core__do_unlock(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_UNLOCK);
    struct lock_command *lock = &command->lock;
    lock->done = lock->released = 0;
    if (command->owner.transaction.len > 0) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "a transaction keeps its locks until it ends");
        return 0;
    }
    struct session *session = session__find(core, command->owner.session, &command->arena, &command->problem);
    if (session == NULL)
        return 0;
    size_t auxiliary = session->owner.locks.auxiliary_count;
    if (lock->target_count == 0) {
        cost_charge_work(core, WORK_RELEASE * (uint64_t)session->owner.locks.hold_count);
        lock->released = owner__release_locks(core, &session->owner);
        if (auxiliary > 0)
            wait__resolve_again(core, session);
        return 0;
    }
    /* A target that is invalid, or one too many, fails the command before it releases a lock. */
    int r = core->command_version >= COMMAND_SINCE_UNLOCK_PIECES ? unlock_some_named(core, command, session)
                                                                 : unlock_all_named(core, command, session);
    if (session->owner.locks.auxiliary_count < auxiliary)
        wait__resolve_again(core, session);
    return r < 0 ? tl_trace(r) : 0;
}

/* --- TXN_LOCK ----------------------------------------------------------------------------------------------------- */

/* Drops the locks that the owner holds already. */
static void drop_granted(const struct core *core, const struct lock_owner *owner, struct lock_spec_list *specs)
{
    size_t kept = 0;
    for (size_t i = 0; i < specs->count; i++)
        if (!lock_table_holds(&core->owners->locks, owner, &specs->items[i]))
            specs->items[kept++] = specs->items[i];
    specs->count = kept;
    specs->distinct_known = false;
}

/*
 * Makes a retried transaction read documents for update. Two transactions that read and then write
 * the same document are serialized here, instead of ending in a deadlock.
 */
static void upgrade_reads(struct lock_spec_list *specs)
{
    for (size_t i = 0; i < specs->count; i++)
        if (specs->items[i].on.id.data != NULL && specs->items[i].mode == LOCK_S)
            specs->items[i].mode = LOCK_U;
}

/* Fills in the results of a granted TXN_LOCK. */
static void set_read_results(struct core *core, struct wait *wait)
{
    REQUIRE(wait->command->type == COMMAND_TXN_LOCK && wait->txn != NULL);
    struct txn_lock_command *lock = &wait->command->txn_lock;
    struct txn *txn = wait->txn;
    lock->read_ts = core->ts;
    lock->overlay = txn->overlay == NULL ? NULL : overlay_snapshot(txn->overlay);
    txn__touch(core, txn);
}

/*
 * Resolves the targets of a TXN_LOCK and requests the locks that the transaction does not hold.
 * Returns: 0, granted or refused, and the wait freed; CORE_WAITS; fatal codes.
 */
static int acquire_reads(struct core *core, struct wait *wait, uint64_t wait_us)
{
    REQUIRE(wait->command->type == COMMAND_TXN_LOCK && wait->txn != NULL);
    struct command *command = wait->command;
    struct txn_lock_command *lock = &command->txn_lock;
    struct txn *txn = wait->txn;
    struct lock_spec_list specs = {0};
    uint64_t before = core_step_work(core);
    bool granted = true;
    int r = lock_resolve__reads(core, lock->targets, lock->target_count, command->dialect, txn, &lock->done, &specs);
    cost_charge_work(core, specs.work);
    if (r == 0 && txn->retry)
        upgrade_reads(&specs);
    if (r == 0 && wait->request != NULL)
        drop_granted(core, wait->owner, &specs);
    if (r == 0 && (lock_specs__exceed(&specs) || lock_specs__exceed_levels(core, &specs)))
        lock_specs__refuse(core, core->command_version >= COMMAND_SINCE_LOCK_STEP ? lock->done : lock->target_count,
                           &command->arena, &command->problem);
    if (r < 0 || command->problem.type != PROBLEM_NONE || !is_within_count(core, command, wait->owner, &specs) ||
        !is_within_bytes(core, command, wait->owner, txn->overlay, &specs)) {
        note_work(core, before);
        wait__free(core, wait);
        txn__touch(core, txn);
        return r < 0 ? tl_trace(r) : 0;
    }
    if (specs.count > 0)
        r = acquire_specs(core, wait, specs.items, specs.count, wait_us, &granted);
    note_work(core, before);
    if (granted) {
        set_read_results(core, wait);
        wait__free(core, wait);
    }
    return r;
}

int core__do_txn_lock(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_TXN_LOCK);
    struct txn *txn =
        txn__find(core, command->owner.transaction, command->owner.session, &command->arena, &command->problem);
    if (txn == NULL)
        return 0;
    return acquire_reads(core, wait__new(core, command, &txn->owner.locks, NULL, txn), command->owner.timeout_us);
}

/* Resolves the targets again, since names may mean more than before the wait. */
static int resume_reads(struct core *core, struct wait *wait)
{
    return acquire_reads(core, wait, wait->until > core->clock ? wait->until - core->clock : 0);
}

const struct wait_ops txn_lock__wait_ops = {wait__on_grant, resume_reads, wait__on_timeout, grants__on_deadlock, NULL};
