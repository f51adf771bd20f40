/* SPDX-License-Identifier: Apache-2.0 */
/* The commands LOCK and UNLOCK, and what lock targets mean. */
#include "core/owners/owners_internal.h"

#define LOCK_TARGETS_MAX 100000
#define LOCK_PATH_BYTES_MAX 65536
#define LOCK_NAME_BYTES_MAX 512

/* --- Targets ------------------------------------------------------------------------------------------------------ */

/* What a client may name. Returns: 1 with *ret_problem when it may not. */
static int check_target(const struct lock_target *target, struct arena *arena, struct problem *ret_problem)
{
    const char *wrong = NULL;
    if (target->mode != LOCK_S && target->mode != LOCK_U && target->mode != LOCK_X)
        wrong = "a lock's mode must be one of [shared], [update], [exclusive]";
    else if (target->index.len == 0 && (target->path.data != NULL || target->id.data != NULL))
        wrong = "a lock on a path or a document must name its [index]";
    else if (target->id.data != NULL && target->id.len == 0)
        wrong = "a document's [id] must not be empty";
    else if (target->id.len > LOCK_NAME_BYTES_MAX || target->index.len > LOCK_NAME_BYTES_MAX ||
             target->type.len > LOCK_NAME_BYTES_MAX)
        wrong = "the names of index, type and document are at most [512] bytes long";
    else if (target->path.len > LOCK_PATH_BYTES_MAX || !resource_path_fits(target->path))
        wrong = "a path is at most [65536] bytes long and [4096] levels deep";
    if (wrong == NULL)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "%s", wrong);
    return 1;
}

/*
 * An alias stands for its index. What is neither an index nor an alias is locked by its name: it may come to be. A pattern or a
 * list never will, so that a lock on it would keep nobody out.
 */
static int find_index(struct core *core, struct slice name, struct arena *arena, const struct catalog_index **ret_index,
                      struct problem *ret_problem)
{
    const struct catalog_alias *alias;
    *ret_index = catalog_index(core->catalog, name);
    if (*ret_index != NULL)
        return 0;
    if (!catalog_has_alias(core->catalog, name))
        return catalog_check_index_name(name, DIALECT_7, arena, ret_problem);
    return catalog_find(core->catalog, name, true, DIALECT_7, arena, ret_index, &alias, ret_problem);
}

static int name_document(struct core *core, const struct lock_target *target, const struct catalog_index *index,
                         const struct overlay *overlay, struct lock_want *want)
{
    struct slice wanted = target->type.len > 0 ? target->type : SLICE_LIT("_doc");
    const struct mapping_type *type = index == NULL ? NULL : mapping_type(index->mapping, wanted);
    want->on.id = target->id;
    want->on.type = type == NULL ? wanted : arena_copy(&core->arena, type->name);
    want->on.path = SLICE_NONE;
    return type == NULL ? 0 : write__place(core, overlay, want->on.index, want->on.type, want->on.id, &want->on.path);
}

/*
 * Finds what lock targets mean: the concrete index, the stored type, where a document lies now.
 * Returns: 0; 1 with *ret_problem in `arena`; fatal codes. What *ret_wants points to lives in core->arena.
 */
static int find_wants(struct core *core, const struct lock_target *targets, size_t count, const struct overlay *overlay,
                      struct arena *arena, struct lock_want **ret_wants, struct problem *ret_problem)
{
    if (count > LOCK_TARGETS_MAX) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "a request names at most [%d] locks",
                    LOCK_TARGETS_MAX);
        return 1;
    }
    struct lock_want *wants = arena_zalloc(&core->arena, (count + 1) * sizeof *wants);
    for (size_t i = 0; i < count; i++) {
        const struct lock_target *target = &targets[i];
        const struct catalog_index *index = NULL;
        if (check_target(target, arena, ret_problem) != 0)
            return 1;
        if (target->index.len > 0 && find_index(core, target->index, arena, &index, ret_problem) != 0)
            return 1;
        wants[i].mode = target->mode;
        wants[i].on.index = index != NULL ? arena_copy(&core->arena, index->name) : target->index;
        wants[i].on.path = target->path;
        int r = target->id.data == NULL ? 0 : name_document(core, target, index, overlay, &wants[i]);
        if (r < 0)
            return tl_trace(r);
    }
    *ret_wants = wants;
    return 0;
}

/* --- LOCK --------------------------------------------------------------------------------------------------------- */

/* Who asks: a session, or a transaction that names its locks itself. */
struct asker {
    struct session *session;
    struct txn *txn;
    struct lock_owner *owner;
};

static bool find_asker(struct core *core, struct command *command, struct asker *asker)
{
    const struct owner_terms *terms = &command->terms;
    *asker = (struct asker){0};
    if (terms->transaction.len > 0) {
        asker->txn = txn__find(core, terms->transaction, terms->session, &command->arena, &command->problem);
        if (asker->txn != NULL && asker->txn->mode == TXN_QUERY) {
            problem_set(&command->problem, &command->arena, PROBLEM_TRANSACTION_READ_ONLY,
                        "transaction [%.*s] is a query transaction: it takes no locks", SLICE_ARG(terms->transaction));
            return false;
        }
        asker->owner = asker->txn == NULL ? NULL : &asker->txn->party.owner;
    } else {
        asker->session = session__find(core, terms->session, &command->arena, &command->problem);
        asker->owner = asker->session == NULL ? NULL : &asker->session->party.owner;
    }
    return asker->owner != NULL;
}

static bool within_limits(struct core *core, struct command *command, const struct lock_owner *owner, size_t more)
{
    size_t most = core->limits.locks_per_session_max;
    if (owner->lock_count + more > most)
        problem_set(&command->problem, &command->arena, PROBLEM_LIMIT_EXCEEDED, "a session holds at most [%zu] locks",
                    most);
    return command->problem.type == PROBLEM_NONE;
}

static void granted_now(struct core *core, struct command *command, struct wait *wait)
{
    command->lock.fencing_token = lock_request_token(wait->request);
    command->lock.waited_us = core->ts - wait->since;
    command->lock.queue_place = wait->place;
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
static int ask(struct core *core, struct wait *wait, const struct lock_want *wants, size_t count, uint64_t wait_us,
               bool *ret_granted)
{
    struct command *command = wait->command;
    *ret_granted = false;
    switch (wait__ask(core, wait, wants, count, wait_us > 0 && !wait__full(core))) {
    case LOCK_GRANTED: *ret_granted = true; return 0;
    case LOCK_WAITS: wait__park(core, wait, deadline_after(core, wait_us)); return CORE_WAITS;
    case LOCK_CONFLICT:
        if (wait_us > 0)
            wait__explain_full(core, &command->arena, &command->problem);
        else
            wait__explain(wait, PROBLEM_LOCK_CONFLICT, HOLDERS_TOLD_MAX, &command->arena, &command->problem);
        wait__free(core, wait);
        return 0;
    default: give_way(core, wait); return 0;
    }
}

int core__do_lock(struct core *core, struct command *command)
{
    struct lock_command *lock = &command->lock;
    struct asker asker;
    struct lock_want *wants;
    bool granted;
    if (!find_asker(core, command, &asker))
        return 0;
    if (lock->target_count == 0) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "a lock request must name at least one lock in [locks]");
        return 0;
    }
    const struct overlay *overlay = asker.txn == NULL ? NULL : asker.txn->overlay;
    int r = find_wants(core, lock->targets, lock->target_count, overlay, &command->arena, &wants, &command->problem);
    if (r != 0 || !within_limits(core, command, asker.owner, lock->target_count))
        return r < 0 ? tl_trace(r) : 0;
    struct wait *wait = wait__new(core, command, asker.owner, asker.session, asker.txn);
    r = ask(core, wait, wants, lock->target_count, command->terms.timeout_us, &granted);
    if (granted) {
        granted_now(core, command, wait);
        wait__free(core, wait);
    }
    return r;
}

/* Nothing is left to compute: it is done in the unit that granted it. */
static void granted_later(struct core *core, struct wait *wait)
{
    struct command *command = wait->command;
    granted_now(core, command, wait);
    wait__free(core, wait);
    core__complete(core, command);
}

static int timed_out(struct core *core, struct wait *wait)
{
    wait->command->lock.waited_us = core->ts - wait->since;
    wait->command->lock.queue_place = wait->place;
    return wait__timed_out(core, wait);
}

const struct turns lock__turns = {granted_later, NULL, timed_out, wait__gives_way};

/* --- UNLOCK ------------------------------------------------------------------------------------------------------- */

int core__do_unlock(struct core *core, struct command *command)
{
    struct lock_command *lock = &command->lock;
    struct lock_table *locks = &core->owners->locks;
    struct lock_want *wants;
    if (command->terms.transaction.len > 0) {
        problem_set(&command->problem, &command->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "a transaction keeps its locks until it ends");
        return 0;
    }
    struct session *session = session__find(core, command->terms.session, &command->arena, &command->problem);
    if (session == NULL)
        return 0;
    if (lock->target_count == 0) {
        lock->released = lock_release_all(locks, &session->party.owner);
        return 0;
    }
    int r = find_wants(core, lock->targets, lock->target_count, NULL, &command->arena, &wants, &command->problem);
    if (r != 0)
        return r < 0 ? tl_trace(r) : 0;
    for (size_t i = 0; i < lock->target_count; i++)
        lock->released += lock_release(locks, &session->party.owner, &wants[i].on);
    return 0;
}

/* --- TXN_LOCK ----------------------------------------------------------------------------------------------------- */

int core__do_txn_lock(struct core *core, struct command *command)
{
    struct txn_lock_command *lock = &command->txn_lock;
    struct lock_want *wants;
    bool granted;
    struct txn *txn =
        txn__find(core, command->terms.transaction, command->terms.session, &command->arena, &command->problem);
    if (txn == NULL)
        return 0;
    struct wait *wait = wait__new(core, command, &txn->party.owner, NULL, txn);
    if (txn->mode == TXN_QUERY || lock->target_count == 0) {
        txn__locked(core, wait);
        wait__free(core, wait);
        return 0;
    }
    int r =
        find_wants(core, lock->targets, lock->target_count, txn->overlay, &command->arena, &wants, &command->problem);
    if (r != 0 || !within_limits(core, command, wait->owner, lock->target_count)) {
        wait__free(core, wait);
        txn__touch(core, txn);
        return r < 0 ? tl_trace(r) : 0;
    }
    r = ask(core, wait, wants, lock->target_count, command->terms.timeout_us, &granted);
    if (granted) {
        txn__locked(core, wait);
        wait__free(core, wait);
    }
    return r;
}

static int resume_locked(struct core *core, struct wait *wait)
{
    txn__locked(core, wait);
    wait__free(core, wait);
    return 0;
}

const struct turns txn_lock__turns = {wait__ready, resume_locked, wait__timed_out, wait__gives_way};
