/* SPDX-License-Identifier: Apache-2.0 */
/* The commands LOCK, UNLOCK and TXN_LOCK; lock_resolve.c knows what they name. */
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/owners/deadline.h"
#include "core/owners/lock_resolve.h"
#include "core/owners/owners.h"
#include "core/owners/session.h"
#include "core/owners/txn.h"
#include "core/owners/wait.h"
#include "core/step/command.h"
#include "core/step/handler.h"
#include "core/step/unit.h"
#include "core/step/work.h"

/* --- LOCK --------------------------------------------------------------------------------------------------------- */

/* Who asks: a session, or a transaction that names its locks itself. */
struct asker {
    struct session *session;
    struct txn *txn;
    struct lock_owner *owner;
};

static bool find_asker(struct core *core, struct command *command, struct asker *asker)
{
    const struct command_owner *terms = &command->owner;
    *asker = (struct asker){0};
    if (terms->transaction.len > 0) {
        asker->txn = txn__find(core, terms->transaction, terms->session, &command->arena, &command->problem);
        if (asker->txn != NULL && asker->txn->mode == TXN_QUERY) {
            problem_set(&command->problem, &command->arena, PROBLEM_TRANSACTION_READ_ONLY,
                        "transaction [%.*s] is a query transaction: it takes no locks", SLICE_ARG(terms->transaction));
            return false;
        }
        asker->owner = asker->txn == NULL ? NULL : &asker->txn->owner.locks;
    } else {
        asker->session = session__find(core, terms->session, &command->arena, &command->problem);
        asker->owner = asker->session == NULL ? NULL : &asker->session->owner.locks;
    }
    return asker->owner != NULL;
}

static bool within_limits(struct core *core, struct command *command, const struct lock_owner *owner, size_t more)
{
    size_t most = core->limits.locks_per_session_max;
    if (owner->lock_count + owner->auxiliary_count + more > most)
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED, "a session holds at most [%zu] locks",
                    most);
    return command->problem.type == PROBLEM_NONE;
}

/* Which of its locks are on what is not there, if any. */
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

static void granted_now(struct core *core, struct command *command, struct wait *wait)
{
    command->lock.index_missing = find_missing(core, command);
    command->lock.fencing_token = lock_request_token(wait->request);
    command->lock.waited_us = core->clock - wait->since;
    command->lock.queue_position = wait->queue_position;
    if (wait->txn != NULL)
        txn__touch(core, wait->txn);
}

/* The request was refused with a deadlock; a transaction's end with it. */
static void give_way(struct core *core, struct wait *wait)
{
    struct txn *txn = wait->txn;
    wait->command->problem = *wait__cause(wait);
    struct slice reason = wait->command->problem.reason;
    wait__free(core, wait);
    if (txn != NULL)
        txn__abort(core, txn, "%.*s", SLICE_ARG(reason));
}

/* Asks for the wants of a LOCK or a TXN_LOCK. Returns: 0 it is decided; CORE_WAITS. */
static int ask(struct core *core, struct wait *wait, const struct lock_spec *wants, size_t count, uint64_t wait_us,
               bool *ret_granted)
{
    *ret_granted = false;
    switch (wait__acquire(core, wait, wants, count, wait_us > 0 && !wait__limit_reached(core))) {
    case LOCK_GRANTED: *ret_granted = true; return 0;
    case LOCK_WAITS: wait__park(core, wait, deadline_after(core, wait_us)); return CORE_WAITS;
    case LOCK_CONFLICT:
        wait__explain_conflict(core, wait, wait_us > 0, PROBLEM_LOCK_CONFLICT);
        wait__free(core, wait);
        return 0;
    default: give_way(core, wait); return 0;
    }
}

/* Asks, until `wait_us` from now, for what the targets mean now. Returns: as ask(). */
static int ask_by_name(struct core *core, struct wait *wait, uint64_t wait_us, bool *ret_granted)
{
    struct command *command = wait->command;
    const struct lock_command *lock = &command->lock;
    struct lock_spec_list wants;
    int r = lock_resolve__locks(core, lock->targets, lock->target_count, LOCK_RESOLVE_TO_LOCK, &command->arena, &wants,
                            &command->problem);
    *ret_granted = false;
    if (r == 0)
        lock_resolve__drop_held(core, wait->owner, &wants);
    if (r != 0 || !within_limits(core, command, wait->owner, wants.count)) {
        wait__free(core, wait);
        return r < 0 ? tl_trace(r) : 0;
    }
    wait->names_epoch = core->names_epoch;
    core__note_indivisible(core, wants.count * WORK_LOCK_ASKED); /* all or nothing: locks_per_session_max bounds it */
    return ask(core, wait, wants.items, wants.count, wait_us, ret_granted);
}

int core__do_lock(struct core *core, struct command *command)
{
    struct asker asker;
    bool granted;
    if (!find_asker(core, command, &asker))
        return 0;
    if (command->lock.target_count == 0) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "a lock request must name at least one lock in [locks]");
        return 0;
    }
    struct wait *wait = wait__new(core, command, asker.owner, asker.session, asker.txn);
    int r = ask_by_name(core, wait, command->owner.timeout_us, &granted);
    if (granted) {
        granted_now(core, command, wait);
        wait__free(core, wait);
    }
    return r;
}

/* Whether what was granted is what the targets mean now. */
static int still_meant(struct core *core, struct wait *wait, bool *ret_meant)
{
    struct command *command = wait->command;
    const struct lock_command *lock = &command->lock;
    struct problem problem;
    struct lock_spec_list wants;
    int r = lock_resolve__locks(core, lock->targets, lock->target_count, LOCK_RESOLVE_TO_LOCK, &command->arena, &wants,
                            &problem);
    size_t count = 0;
    *ret_meant = r == 0;
    for (size_t i = 0; r == 0 && i < wants.count; i++) {
        *ret_meant &= lock_table_holds(&core->owners->locks, wait->owner, &wants.items[i]);
        count += wants.items[i].on.space == RESOURCE_SPACE_TREE;
    }
    *ret_meant &= count == lock_request_spec_count(wait->request);
    return r < 0 ? tl_trace(r) : 0;
}

/* Nothing is left to do, unless names have come to mean something else: it is over in the unit that granted it. */
static void granted_later(struct core *core, struct wait *wait)
{
    struct command *command = wait->command;
    bool meant = true;
    if (wait->names_epoch != core->names_epoch && (still_meant(core, wait, &meant) < 0 || !meant)) {
        wait->granted_ts = core->ts;
        wait__enqueue_ready(core, wait);
        return;
    }
    granted_now(core, command, wait);
    wait__free(core, wait);
    core__complete(core, command);
}

/* Names have changed while it waited. What they no longer mean is given back, and what they mean is asked for. */
static int resume_lock(struct core *core, struct wait *wait)
{
    struct command *command = wait->command;
    bool meant, granted;
    int r = still_meant(core, wait, &meant);
    if (r < 0)
        return r;
    if (!meant) {
        lock_request_undo(wait->request, wait->granted_ts);
        uint64_t left_us = wait->until > core->clock ? wait->until - core->clock : 0;
        r = ask_by_name(core, wait, left_us, &granted);
        if (!granted)
            return r;
    }
    granted_now(core, command, wait);
    wait__free(core, wait);
    return 0;
}

static int timed_out(struct core *core, struct wait *wait)
{
    wait->command->lock.waited_us = core->clock - wait->since;
    wait->command->lock.queue_position = wait->queue_position;
    return wait__on_timeout(core, wait);
}

const struct wait_ops lock__wait_ops = {granted_later, resume_lock, timed_out, wait__on_deadlock, NULL};

/* --- UNLOCK ------------------------------------------------------------------------------------------------------- */

/* Releases what one target names. Returns: 0 with whether it was anything; 1 with the command's problem; fatal codes. */
static int release(struct core *core, struct command *command, struct session *session,
                   const struct lock_target *target, bool *ret_released)
{
    struct lock_spec_list wants;
    int r = lock_resolve__locks(core, target, 1, LOCK_RESOLVE_TO_UNLOCK, &command->arena, &wants, &command->problem);
    *ret_released = false;
    for (size_t i = 0; r == 0 && i < wants.count; i++)
        if (wants.items[i].on.space == RESOURCE_SPACE_TREE)
            *ret_released |= lock_release(&core->owners->locks, &session->owner.locks, &wants.items[i].on);
    return r < 0 ? tl_trace(r) : r;
}

int core__do_unlock(struct core *core, struct command *command)
{
    struct lock_command *lock = &command->lock;
    bool released;
    int r = 0;
    if (command->owner.transaction.len > 0) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "a transaction keeps its locks until it ends");
        return 0;
    }
    struct session *session = session__find(core, command->owner.session, &command->arena, &command->problem);
    if (session == NULL)
        return 0;
    if (lock->target_count == 0) {
        lock->released = lock_release_all(&core->owners->locks, &session->owner.locks);
        return 0;
    }
    /* One that names what cannot be locked is refused before anything is given back. */
    struct lock_spec_list all;
    r = lock_resolve__locks(core, lock->targets, lock->target_count, LOCK_RESOLVE_TO_UNLOCK, &command->arena, &all,
                        &command->problem);
    for (size_t i = 0; r == 0 && i < lock->target_count; i++) {
        r = release(core, command, session, &lock->targets[i], &released);
        lock->released += released;
    }
    if (r == 0)
        lock_resolve__release_unused_aliases(core, &session->owner.locks);
    return r < 0 ? tl_trace(r) : 0;
}

/* --- TXN_LOCK ----------------------------------------------------------------------------------------------------- */

/* What was granted already is not asked for again. */
static void drop_held(const struct core *core, const struct lock_owner *owner, struct lock_spec_list *wants)
{
    size_t kept = 0;
    for (size_t i = 0; i < wants->count; i++)
        if (!lock_table_holds(&core->owners->locks, owner, &wants->items[i]))
            wants->items[kept++] = wants->items[i];
    wants->count = kept;
}

/*
 * Who was rolled back once reads documents for update when it tries again: two who read the same one and then write it wait for each
 * other here, one after the other, and not in a circle.
 */
static void read_for_update(struct lock_spec_list *wants)
{
    for (size_t i = 0; i < wants->count; i++)
        if (wants->items[i].on.id.data != NULL && wants->items[i].mode == LOCK_S)
            wants->items[i].mode = LOCK_U;
}

/* Documents may lie deep: what is locked of them counts with all levels, before any is made. */
static bool within_bytes(struct core *core, struct command *command, const struct txn *txn, const struct lock_spec_list *wants)
{
    size_t most = core->limits.transaction_held_max, held = owner__lock_bytes(&txn->owner.locks);
    held += txn->overlay == NULL ? 0 : overlay_memory_bytes(txn->overlay);
    if (wants->count > 0 && (held >= most || lock_specs__bytes(core, wants, most - held) > most - held))
        problem_set(&command->problem, &command->arena, PROBLEM_TRANSACTION_TOO_LARGE,
                    "a transaction holds at most [%zu] bytes of documents with their entries and locks", most);
    return command->problem.type == PROBLEM_NONE;
}

/* Asks for what the names mean now and the transaction has not yet. Returns: 0 it is decided; CORE_WAITS; fatal codes. */
static int ask_to_read(struct core *core, struct wait *wait, uint64_t wait_us)
{
    struct command *command = wait->command;
    const struct txn_lock_command *lock = &command->txn_lock;
    struct txn *txn = wait->txn;
    struct lock_spec_list wants = {0};
    bool granted = true;
    int r = txn->mode == TXN_QUERY
                ? 0
                : lock_resolve__reads(core, lock->targets, lock->target_count, command->dialect, txn, &wants);
    if (r == 0 && txn->retry)
        read_for_update(&wants);
    if (r == 0 && wait->request != NULL)
        drop_held(core, wait->owner, &wants);
    if (r < 0 || !within_limits(core, command, wait->owner, wants.count) || !within_bytes(core, command, txn, &wants)) {
        wait__free(core, wait);
        txn__touch(core, txn);
        return r < 0 ? tl_trace(r) : 0;
    }
    if (wants.count > 0)
        r = ask(core, wait, wants.items, wants.count, wait_us, &granted);
    if (granted) {
        txn__lock_granted(core, wait);
        wait__free(core, wait);
    }
    return r;
}

int core__do_txn_lock(struct core *core, struct command *command)
{
    struct txn *txn =
        txn__find(core, command->owner.transaction, command->owner.session, &command->arena, &command->problem);
    if (txn == NULL)
        return 0;
    return ask_to_read(core, wait__new(core, command, &txn->owner.locks, NULL, txn), command->owner.timeout_us);
}

/* While it waited, names may have come to mean more. */
static int resume_reading(struct core *core, struct wait *wait)
{
    return ask_to_read(core, wait, wait->until > core->clock ? wait->until - core->clock : 0);
}

const struct wait_ops txn_lock__wait_ops = {wait__enqueue_ready, resume_reading, wait__on_timeout, wait__on_deadlock, NULL};
