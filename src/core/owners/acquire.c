/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and locks: how a write gets the locks it needs, or is told why not. README-locks.md, "Requests".
 *
 * A write of its own:
 * - items that nothing stands against run at once, without any lock; of an atomic write all or none;
 * - the others become one request, and run when it is granted, at a timestamp of their own;
 * - at the deadline each of them is looked at alone: it runs, or fails with who is in its way.
 * Items for one document keep their order: behind one that must wait, all do.
 *
 * A write in a transaction takes X on its documents and keeps it; all of its items wait together.
 *
 * A write that goes on starts from the beginning: what it would change is computed again, and asked for again. What it
 * holds already it gets at once.
 */
#include "core/owners/acquire.h"

#include "base/check.h"
#include "base/siphash.h"
#include "core/catalog/catalog.h"
#include "core/documents/provisional.h"
#include "core/documents/do_write.h"
#include "core/documents/write.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/owners/deadline.h"
#include "core/owners/lock_resolve.h"
#include "core/owners/owners.h"
#include "core/owners/session.h"
#include "core/owners/lock_event.h"
#include "core/owners/command_owner.h"
#include "core/owners/txn.h"
#include "core/owners/wait.h"
#include "core/step/handler.h"
#include "core/step/hooks.h"
#include "core/step/unit.h"
#include "core/step/work.h"

/* Of each item of a bulk, so that a large one's reply stays small. */
enum { HOLDERS_TOLD_OF_ITEM = 3 };

/*
 * The places of a write's targets, before and after it: a hash table with open addressing, by index, id and path, in the core's arena. A slot
 * has the position of a target, counted from 1, and a bit that means its old path; 0: free.
 */
struct place_set {
    uint32_t *slots; /* NULL: not built yet */
    size_t mask;
};
enum { PLACE_OLD = 1, PLACE_SHIFT = 1 };

/* One write at work. */
struct admission {
    struct core *core;
    struct command *command;
    struct session *session;
    struct txn *txn;
    struct wait *wait; /* NULL: it has not asked for a lock */
    struct write_targets targets;
    struct place_set places; /* of `targets` */
    struct lock_spec_list wants;
    size_t explained; /* bytes of the explanations of failed items */
};

static struct write_command *write_of(const struct admission *at)
{
    return &at->command->write;
}

static struct overlay *overlay_of(const struct admission *at)
{
    return at->txn == NULL ? NULL : at->txn->overlay;
}

/* --- Who writes --------------------------------------------------------------------------------------------------- */

/* Finds session and transaction. A refusal is in command->problem; returns false then. */
static bool find_parties(struct admission *at)
{
    struct command *command = at->command;
    const struct command_owner *terms = &command->owner;
    if (terms->transaction.len > 0) {
        at->txn = txn__find(at->core, terms->transaction, terms->session, &command->arena, &command->problem);
        if (at->txn == NULL)
            return false;
        if (at->txn->mode == TXN_QUERY) {
            problem_set(&command->problem, &command->arena, PROBLEM_TRANSACTION_READ_ONLY,
                        "transaction [%.*s] is a query transaction: it reads only", SLICE_ARG(terms->transaction));
            return false;
        }
        return true;
    }
    return command_owner__session(at->core, command, &at->session);
}

/* --- What it needs ------------------------------------------------------------------------------------------------ */

/* X on the document, a place where it will lie when that is elsewhere, and the names that it needs. */
static struct lock_spec_list wants_of(const struct admission *at, const struct write_target *target)
{
    struct lock_spec_list wants = {0};
    lock_resolve__write(at->core, &write_of(at)->items[target->item], target, at->txn, &wants);
    if (at->txn == NULL)
        lock_resolve__drop_unheld(at->core, at->wait == NULL ? NULL : at->wait->owner, at->session, &wants);
    return wants;
}

/* Checks the fencing token for one document. */
static bool token_holds(struct admission *at, const struct write_target *target)
{
    struct slice place = target->old_path.data != NULL ? target->old_path : target->new_path;
    struct resource_name name = {target->index, place, target->type, target->id};
    const struct owner *who = at->txn != NULL ? &at->txn->owner : at->session != NULL ? &at->session->owner : NULL;
    return command_owner__check_token(at->core, at->command, &name, who, &write_of(at)->results[target->item].problem);
}

/* Whether an item is still to be run. */
static bool is_left(const struct admission *at, size_t item)
{
    return at->wait == NULL || at->wait->pending_items == NULL || at->wait->pending_items[item];
}

/* Whether it would make an index whose aliases are names that its own session has locked. */
static bool changes_own_names(struct admission *at, const struct write_target *target)
{
    struct problem *problem = &write_of(at)->results[target->item].problem;
    if (at->session == NULL || catalog_index(at->core->catalog, target->index) != NULL)
        return false;
    struct lock_spec_list wants = {0};
    lock_resolve__write(at->core, &write_of(at)->items[target->item], target, NULL, &wants);
    return lock_resolve__self_conflict(at->core, at->session, &wants, &at->command->arena, problem);
}

/* Finds what the items that are left will change; of those with a stale token it is not asked. */
static int find_targets(struct admission *at)
{
    size_t kept = 0;
    int r = write__targets(at->core, at->command, overlay_of(at), at->wait == NULL, &at->targets);
    if (r < 0)
        return tl_trace(r);
    for (size_t i = 0; i < at->targets.count; i++) {
        const struct write_target *target = &at->targets.items[i];
        if (!is_left(at, target->item) || target->index.len == 0)
            continue;
        if (!token_holds(at, target) || changes_own_names(at, target))
            continue;
        at->targets.items[kept++] = *target;
    }
    at->targets.count = kept;
    at->places = (struct place_set){0};
    return 0;
}

static void collect_wants(struct admission *at, const bool *blocked)
{
    const struct write_command *write = write_of(at);
    at->wants = (struct lock_spec_list){0};
    for (size_t i = 0; i < at->targets.count; i++) {
        const struct write_target *target = &at->targets.items[i];
        if (blocked == NULL || blocked[i])
            lock_resolve__write(at->core, &write->items[target->item], target, at->txn, &at->wants);
    }
    if (at->txn == NULL)
        lock_resolve__drop_unheld(at->core, at->wait == NULL ? NULL : at->wait->owner, at->session, &at->wants);
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

/* What was found, left alone or refused lies where it lay, whatever was expected of it. */
static bool has_changed(const struct write_result *result)
{
    return result->outcome == WRITE_CREATED || result->outcome == WRITE_UPDATED || result->outcome == WRITE_DELETED;
}

/* Tells the table where documents lie that have moved, so that locks on them move along. */
static int move_documents(struct admission *at, const bool *chosen)
{
    struct lock_table *locks = &at->core->owners->locks;
    const struct write_command *write = write_of(at);
    if (lock_table_is_idle(locks) || at->txn != NULL)
        return 0;
    for (size_t i = 0; i < at->targets.count; i++) {
        const struct write_target *target = &at->targets.items[i];
        struct slice path = target->new_path;
        if ((chosen != NULL && !chosen[target->item]) || !has_changed(&write->results[target->item]))
            continue;
        if (write->item_count > 1) { /* an earlier item may have changed it as well */
            int r = write__path_of(at->core, NULL, target->index, target->type, target->id, &path);
            if (r < 0)
                return tl_trace(r);
        }
        if (path.data == target->old_path.data || slice_equal(path, target->old_path))
            continue;
        struct resource_name name = lock_resolve__target_document(at->core, target);
        lock_resolve__move_document(at->core, &name, path);
    }
    return 0;
}

static struct slice place_path(const struct write_targets *targets, uint32_t slot)
{
    const struct write_target *target = &targets->items[(slot >> PLACE_SHIFT) - 1];
    return (slot & PLACE_OLD) != 0 ? target->old_path : target->new_path;
}

/* Returns: the slot of a document with a path, or the free one where it belongs. */
static uint32_t *place_slot(const struct admission *at, const struct write_target *document, struct slice path)
{
    const struct place_set *places = &at->places;
    uint64_t hash = siphash_keyed(document->index) * 5 ^ siphash_keyed(document->id) * 3 ^ siphash_keyed(path);
    core__work(at->core, WORK_LOCK); /* not for each slot: where they lie follows from the key of the process */
    for (size_t i = hash & places->mask;; i = (i + 1) & places->mask) {
        uint32_t *slot = &places->slots[i];
        if (*slot == 0)
            return slot;
        const struct write_target *target = &at->targets.items[(*slot >> PLACE_SHIFT) - 1];
        if (slice_equal(target->id, document->id) && slice_equal(target->index, document->index) &&
            slice_equal(place_path(&at->targets, *slot), path))
            return slot;
    }
}

static void places_build(struct admission *at)
{
    struct place_set *places = &at->places;
    size_t slots = 4;
    while (slots < at->targets.count * 4) /* two a target, half of them free */
        slots *= 2;
    places->mask = slots - 1;
    places->slots = arena_zalloc(&at->core->arena, slots * sizeof *places->slots);
    for (size_t i = 0; i < at->targets.count; i++) {
        const struct write_target *target = &at->targets.items[i];
        uint32_t slot = (uint32_t)(i + 1) << PLACE_SHIFT;
        *place_slot(at, target, target->new_path) = slot;
        *place_slot(at, target, target->old_path) = slot | PLACE_OLD;
    }
}

/* Returns: whether this is the place of a target, before or after the write: then it is locked already. */
static bool place_expected(struct admission *at, const struct write_target *to)
{
    if (at->places.slots == NULL)
        places_build(at);
    return *place_slot(at, to, to->new_path) != 0;
}

/* Takes a place, without waiting, for the owner whose locks the write has. Returns: whether it could be had. */
static bool take_place(struct admission *at, const struct lock_spec *want)
{
    struct lock_table *locks = &at->core->owners->locks;
    struct lock_owner *owner = at->txn != NULL ? &at->txn->owner.locks : at->wait != NULL ? at->wait->owner : NULL;
    if (owner == NULL && write_of(at)->cleanup)
        return lock_table_can_grant_ignoring_waiters(locks, &at->session->owner.locks, want);
    if (owner == NULL)
        return lock_table_can_grant(locks, at->session == NULL ? NULL : &at->session->owner.locks, want);
    struct lock_request *request = lock_request_new(locks, owner, want, 1, at->wait);
    bool taken = lock_request_start(request, false) == LOCK_GRANTED;
    lock_request_free(request);
    return taken;
}

/* An item puts a document where nobody knew that it would: behind another item for it, an update may. */
static bool may_lie(void *context, const struct write_target *to, struct arena *arena, struct problem *ret_problem)
{
    struct admission *at = context;
    struct lock_spec want = {{to->index, to->new_path, SLICE_NONE, SLICE_NONE}, LOCK_X, true};
    char room[DESCRIBE_NAME_BYTES_MAX];
    if (to->new_path.data == NULL || place_expected(at, to) || take_place(at, &want))
        return true;
    problem_set(ret_problem, arena, PROBLEM_LOCK_WAIT_TIMEOUT, "[%.*s], where [%.*s] would lie, is locked",
                SLICE_ARG(describe_truncate(to->new_path, room)), SLICE_ARG(to->id));
    return false;
}

static bool too_large(const struct core *core, const struct txn *txn)
{
    const struct overlay *overlay = txn->overlay;
    return overlay_memory_bytes(overlay) + owner__lock_bytes(&txn->owner.locks) > core->limits.transaction_held_max ||
           overlay_bytes_in(overlay, SPACE_DOCUMENTS) > core->limits.transaction_bytes_max ||
           write__overlay_changes(overlay) > core->limits.transaction_changes_max;
}

static void refuse_too_large(struct admission *at)
{
    const struct core_limits *limits = &at->core->limits;
    problem_set(&at->command->problem, &at->command->arena, PROBLEM_TRANSACTION_TOO_LARGE,
                "a transaction holds at most [%zu] bytes of documents, [%zu] with their entries and locks, and [%zu] "
                "changes; this request was not done, what was done before it stands",
                limits->transaction_bytes_max, limits->transaction_held_max, limits->transaction_changes_max);
}

/* Whether what is wanted would take more than a transaction, or one write, may hold: it is refused before any place of it is made. */
static bool wants_too_much(const struct admission *at)
{
    size_t most = at->core->limits.transaction_held_max;
    size_t held = at->txn == NULL || at->txn->overlay == NULL ? 0 : overlay_memory_bytes(at->txn->overlay);
    held += at->txn == NULL ? 0 : owner__lock_bytes(&at->txn->owner.locks);
    return held >= most || lock_specs__bytes(at->core, &at->wants, most - held) > most - held;
}

static int run_in_txn(struct admission *at)
{
    struct core *core = at->core;
    struct command *command = at->command;
    struct overlay *overlay = txn__overlay(at->txn);
    size_t mark = overlay_savepoint(overlay);
    struct provisional_entries ahead = {.arena = &core->arena};
    struct write_path_check placing = {may_lie, at};
    struct write_run how = {.overlay = overlay, .provisional = &ahead, .path_check = &placing, .parsed = at->targets.parsed};
    int r = core__run_write(core, command, NULL, &how);
    if (r < 0)
        return tl_trace(r);
    if (too_large(core, at->txn)) {
        overlay_rollback_to(overlay, mark);
        provisional_clear(&ahead);
        refuse_too_large(at);
    }
    overlay_release_savepoints(overlay);
    provisional__put(core, &ahead, at->txn->id, &at->txn->undo_record_count);
    txn__touch(core, at->txn);
    return 0;
}

/* Runs the chosen items (NULL: all), and gives the locks back that a write of its own had for it. */
static int run(struct admission *at, const bool *chosen)
{
    if (at->txn != NULL)
        return run_in_txn(at);
    struct write_path_check placing = {may_lie, at};
    struct write_run how = {.path_check = &placing, .parsed = at->targets.parsed};
    int r = core__run_write(at->core, at->command, chosen, &how);
    return r < 0 ? tl_trace(r) : move_documents(at, chosen);
}

/* --- Failing ------------------------------------------------------------------------------------------------------ */

/* Gives an item the problem of a request that was not granted. */
static void fail_item(struct admission *at, size_t item, struct wait *wait)
{
    struct problem *problem = &write_of(at)->results[item].problem;
    if (wait->cause != NULL) {
        *problem = *wait->cause;
    } else if (at->explained > WRITE_EXPLAINED_BYTES_MAX) {
        wait__explain_briefly(&at->command->arena, PROBLEM_LOCK_WAIT_TIMEOUT, problem);
    } else {
        wait__explain(wait, PROBLEM_LOCK_WAIT_TIMEOUT,
                      write_of(at)->item_count > 1 ? HOLDERS_TOLD_OF_ITEM : HOLDERS_REPORTED_MAX, &at->command->arena,
                      problem);
        at->explained += problem->reason.len + problem->details.len;
    }
}

/* Names a document in a set, and others that have its id with it: of some it is not known whether they are one. Returns: the key, good until the next call. */
static struct slice document_key(const struct write_target *target, struct buf *buf)
{
    buf_clear(buf);
    buf_varint(buf, target->index.len);
    buf_slice(buf, target->index);
    buf_slice(buf, target->id);
    return buf_as_slice(buf);
}

/* --- A write of its own ------------------------------------------------------------------------------------------- */

static bool target_free(struct admission *at, const struct write_target *target)
{
    struct lock_owner *session = at->session == NULL ? NULL : &at->session->owner.locks;
    if (lock_table_is_idle(&at->core->owners->locks))
        return true;
    struct lock_spec_list wants = wants_of(at, target);
    for (size_t i = 0; i < wants.count; i++)
        if (!lock_table_can_grant(&at->core->owners->locks, session, &wants.items[i]))
            return false;
    return true;
}

/* Finds the targets that something stands against. Returns: how many; with any, an atomic write is blocked whole. */
static size_t find_blocked(struct admission *at, bool *blocked)
{
    struct map documents = MAP_INIT;
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    size_t count = 0;
    for (size_t i = 0; i < at->targets.count; i++) {
        const struct write_target *target = &at->targets.items[i];
        blocked[i] = (count > 0 && map_get(&documents, document_key(target, &key)) != NULL) || !target_free(at, target);
        if (!blocked[i])
            continue;
        count++;
        map_put(&documents, document_key(target, &key), at);
    }
    if (count > 0 && write_of(at)->atomic) {
        count = at->targets.count;
        memset(blocked, true, count);
    }
    map_deinit(&documents);
    buf_deinit(&key);
    return count;
}

/* Which items run now: those that are left and not blocked. NULL: all. */
static bool *choose_free(struct admission *at, const bool *blocked)
{
    size_t count = write_of(at)->item_count;
    bool *chosen = arena_alloc(&at->core->arena, count + 1);
    for (size_t i = 0; i < count; i++)
        chosen[i] = is_left(at, i);
    for (size_t i = 0; i < at->targets.count; i++)
        if (blocked[i])
            chosen[at->targets.items[i].item] = false;
    return chosen;
}

/* Remembers the blocked items as those that are left. */
static void leave_blocked(struct admission *at, const bool *blocked)
{
    size_t count = write_of(at)->item_count;
    bool *left = arena_zalloc(&at->command->arena, count + 1);
    for (size_t i = 0; i < at->targets.count; i++)
        if (blocked[i])
            left[at->targets.items[i].item] = true;
    at->wait->pending_items = left;
}

static void forget_wait(struct admission *at)
{
    if (at->wait != NULL)
        wait__free(at->core, tl_steal(at->wait));
}

/*
 * An atomic write that fails takes back the unit it runs in, so that must hold nothing else. Returns: 1 when a new unit
 * was opened and all must be computed again.
 */
static int clear_unit(struct admission *at)
{
    struct core *core = at->core;
    if (!write_of(at)->atomic || at->txn != NULL || !core__changed(core))
        return 0;
    int r = core__commit(core);
    if (r < 0)
        return tl_trace(r);
    core__begin(core, core->last_ts + 1);
    at->targets = (struct write_targets){0}; /* they went with the unit */
    return 1;
}

static int go_on(struct admission *at, uint64_t deadline);

/* Runs all that is left, and is done. */
static int finish(struct admission *at, uint64_t deadline)
{
    bool *chosen = NULL;
    int r = clear_unit(at);
    if (r < 0)
        return tl_trace(r);
    if (r > 0)
        return go_on(at, deadline);
    if (at->wait != NULL && at->wait->pending_items != NULL) {
        chosen = arena_alloc(&at->core->arena, write_of(at)->item_count + 1);
        memcpy(chosen, at->wait->pending_items, write_of(at)->item_count);
    }
    r = run(at, chosen);
    forget_wait(at);
    return r;
}

/* Fails the blocked items for the reason that `wait` has, runs the others. An atomic one fails as a whole. */
static int finish_without(struct admission *at, struct wait *wait, const bool *blocked)
{
    for (size_t i = 0; i < at->targets.count; i++)
        if (blocked[i])
            fail_item(at, at->targets.items[i].item, wait);
    return finish(at, at->core->clock);
}

/* Takes the locks of each item that is left alone, runs those that can have theirs; the others fail. */
static int take_each(struct admission *at)
{
    for (size_t i = 0; i < at->targets.count; i++) {
        size_t item = at->targets.items[i].item;
        if (!is_left(at, item))
            continue;
        struct lock_spec_list wants = wants_of(at, &at->targets.items[i]);
        if (wait__acquire(at->core, at->wait, wants.items, wants.count, false) == LOCK_CONFLICT)
            fail_item(at, item, at->wait);
    }
    return finish(at, at->core->clock);
}

/* Asks for what is wanted. Returns: 0 done; CORE_WAITS; fatal codes. */
static int ask(struct admission *at, uint64_t deadline, const bool *blocked)
{
    struct core *core = at->core;
    bool full = deadline > core->clock && wait__limit_reached(core);
    if (wants_too_much(at)) {
        problem_set(wait__cause(at->wait), &at->command->arena, PROBLEM_LIMIT_EXCEEDED,
                    "the places of its documents would take more than [%zu] bytes while it waits",
                    core->limits.transaction_held_max);
        return finish_without(at, at->wait, blocked);
    }
    switch (wait__acquire(core, at->wait, at->wants.items, at->wants.count, deadline > core->clock && !full)) {
    case LOCK_GRANTED: return finish(at, deadline);
    case LOCK_WAITS:
        wait__park(core, at->wait, deadline);
        at->wait = NULL;
        return CORE_WAITS;
    case LOCK_CONFLICT:
        if (full)
            wait__explain_limit(core, &at->command->arena, wait__cause(at->wait));
        return take_each(at);
    case LOCK_DEADLOCK: return finish_without(at, at->wait, blocked);
    }
    UNREACHABLE();
}

/*
 * Where items were postponed the blocked ones are, too: those would go before. Unless none has been begun, or it would never be its turn.
 * Returns: whether it is so, and the write is done.
 */
static bool postpone_blocked(struct admission *at, const bool *chosen, const bool *blocked)
{
    struct write_command *write = write_of(at);
    bool begun = false;
    for (size_t i = 0; i < write->item_count && !begun; i++)
        begun = chosen[i] && !write->results[i].postponed;
    if (write->postponed_count == 0 || !begun)
        return false;
    for (size_t i = 0; i < at->targets.count; i++)
        if (blocked[i])
            write__postpone(at->core, at->command, at->targets.items[i].item);
    forget_wait(at);
    return true;
}

/* Runs what is free, waits for the rest: for what that needs now, since what has just run may have moved its documents. */
static int first_try(struct admission *at, uint64_t deadline)
{
    bool *blocked = arena_zalloc(&at->core->arena, at->targets.count + 1);
    size_t blocked_count = find_blocked(at, blocked);
    if (blocked_count == 0)
        return run(at, NULL);
    INSIST(at->targets.count > 0);
    at->wait = wait__new(at->core, at->command, NULL, at->session, NULL);
    if (!write_of(at)->atomic && write_of(at)->item_count > 1) {
        bool *chosen = choose_free(at, blocked);
        int r = run(at, chosen);
        if (r >= 0 && postpone_blocked(at, chosen, blocked))
            return 0;
        leave_blocked(at, blocked);
        return r < 0 ? tl_trace(r) : go_on(at, deadline);
    }
    collect_wants(at, blocked);
    return ask(at, deadline, blocked);
}

/* --- In a transaction --------------------------------------------------------------------------------------------- */

static void abort_txn(struct admission *at)
{
    at->command->problem = *wait__cause(at->wait);
    forget_wait(at);
    txn__abort(at->core, tl_steal(at->txn), "%.*s", SLICE_ARG(at->command->problem.reason));
}

static int ask_in_txn(struct admission *at, uint64_t deadline)
{
    struct core *core = at->core;
    bool may_wait = deadline > core->clock && !wait__limit_reached(core);
    if (at->targets.count == 0)
        return finish(at, deadline);
    collect_wants(at, NULL);
    if (at->txn->owner.locks.lock_count + at->txn->owner.locks.auxiliary_count + lock_specs__lock_count(&at->wants) >
        core->limits.locks_per_session_max) {
        problem_set(&at->command->problem, &at->command->arena, PROBLEM_TRANSACTION_TOO_LARGE,
                    "a transaction holds at most [%zu] locks", core->limits.locks_per_session_max);
        forget_wait(at);
        txn__touch(core, at->txn);
        return 0;
    }
    if (at->wait == NULL && wants_too_much(at)) {
        refuse_too_large(at);
        txn__touch(core, at->txn);
        return 0;
    }
    if (at->wait == NULL)
        at->wait = wait__new(core, at->command, &at->txn->owner.locks, NULL, at->txn);
    switch (wait__acquire(core, at->wait, at->wants.items, at->wants.count, may_wait)) {
    case LOCK_GRANTED: return finish(at, deadline);
    case LOCK_WAITS:
        wait__park(core, at->wait, deadline);
        at->wait = NULL;
        return CORE_WAITS;
    case LOCK_CONFLICT: return take_each(at);
    case LOCK_DEADLOCK: abort_txn(at); return 0;
    }
    UNREACHABLE();
}

/* --- Entry points ------------------------------------------------------------------------------------------------- */

static int go_on(struct admission *at, uint64_t deadline)
{
    int r = find_targets(at);
    if (r < 0)
        return tl_trace(r);
    if (at->txn != NULL)
        return ask_in_txn(at, deadline);
    if (at->wait == NULL)
        return first_try(at, deadline);
    if (at->targets.count == 0)
        return finish(at, deadline);
    bool *blocked = arena_alloc(&at->core->arena, at->targets.count + 1);
    memset(blocked, true, at->targets.count);
    collect_wants(at, NULL);
    return ask(at, deadline, blocked);
}

int owners__write(struct core *core, struct command *command)
{
    struct admission at = {.core = core, .command = command};
    if (!find_parties(&at))
        return 0;
    return go_on(&at, deadline_after(core, command->owner.timeout_us));
}

static struct admission resumed(struct core *core, struct wait *wait)
{
    return (struct admission){
        .core = core, .command = wait->command, .session = wait->session, .txn = wait->txn, .wait = wait};
}

static int resume(struct core *core, struct wait *wait)
{
    struct admission at = resumed(core, wait);
    return go_on(&at, wait->until);
}

/* What is left of its items fails with the cause, where some are done, or where it gave way; else it fails as a whole. */
static int ended(struct core *core, struct wait *wait)
{
    struct admission at = resumed(core, wait);
    struct write_command *write = write_of(&at);
    if (wait->pending_items == NULL && wait__cause(wait)->type != PROBLEM_DEADLOCK_DETECTED) {
        wait__answer(core, wait);
        return 0;
    }
    for (size_t i = 0; i < write->item_count; i++)
        if (is_left(&at, i))
            write->results[i].problem = *wait__cause(wait);
    return finish(&at, core->clock);
}

/* The items that nothing stands against any more run, the others fail. */
static int timed_out(struct core *core, struct wait *wait)
{
    struct admission at = resumed(core, wait);
    struct command *command = wait->command;
    int r = find_targets(&at);
    if (r == 0)
        r = take_each(&at);
    if (r == 0)
        core__complete(core, command);
    return r;
}

/* One of its own tells its items, in a unit of its own. */
static void give_way(struct core *core, struct wait *wait)
{
    if (wait->txn == NULL)
        wait__end_later(core, wait);
    else
        wait__on_deadlock(core, wait);
}

const struct wait_ops write__wait_ops = {wait__enqueue_ready, resume, timed_out, give_way, ended};

/* --- What ended sessions left ------------------------------------------------------------------------------------- */

/* Whether somebody else holds what stands against a document's change. */
static bool target_held(struct core *core, struct session *session, const struct lock_spec_list *wants)
{
    struct lock_table *locks = &core->owners->locks;
    struct lock_owner *owner = &session->owner.locks;
    for (size_t i = 0; i < wants->count; i++)
        if (!lock_table_covers(locks, owner, &wants->items[i]) &&
            !lock_table_can_grant_ignoring_waiters(locks, owner, &wants->items[i]))
            return true;
    return false;
}

/* Runs the only item. Others that the unit runs must see what it wrote. */
static int run_left(struct admission *at)
{
    bool chosen = true;
    return run(at, &chosen);
}

static void make_result(struct command *command)
{
    command->write.results = arena_zalloc(&command->arena, sizeof *command->write.results);
}

/*
 * What is kept goes where it went when its session ended: an alias may stand for something else when it runs. One whose routing
 * contradicts the item's is left as it is, and fails then.
 */
static void name_outright(struct core *core, struct arena *arena, const struct write_target *target,
                          struct write_item *item)
{
    const struct catalog_index *index;
    const struct catalog_alias *alias = NULL;
    struct problem problem;
    if (slice_equal(target->index, item->index) ||
        catalog_find_any(core->catalog, item->index, true, item->dialect, arena, &index, &alias, &problem) != 0)
        return;
    struct slice routing = alias == NULL ? SLICE_NONE : alias->index_routing;
    if (item->routing.data != NULL && routing.data != NULL && !slice_equal(item->routing, routing))
        return;
    item->index = arena_copy(arena, target->index);
    item->require_alias = false;
    if (routing.data != NULL)
        item->routing = arena_copy(arena, routing);
}

int acquire__run_cleanup(struct core *core, struct session *session, struct command *command)
{
    struct admission at = {.core = core, .command = command, .session = session};
    make_result(command);
    int r = find_targets(&at);
    if (r < 0)
        return tl_trace(r);
    collect_wants(&at, NULL);
    if (!target_held(core, session, &at.wants))
        return run_left(&at);
    if (at.targets.count > 0)
        name_outright(core, &command->arena, &at.targets.items[0], &command->write.items[0]);
    return 1;
}

bool acquire__document_is_blocked(struct core *core, struct session *session, const struct resource_name *document)
{
    struct lock_spec_list wants = lock_resolve__document(core, document);
    return target_held(core, session, &wants);
}

bool acquire__removal_is_blocked(struct core *core, struct session *session, const struct write_item *removal)
{
    struct lock_spec want = {{removal->index, SLICE_NONE, removal->type, removal->id}, LOCK_X, false};
    if (lock_table_is_idle(&core->owners->locks) ||
        write__path_of(core, NULL, removal->index, removal->type, removal->id, &want.on.path) < 0)
        return false;
    return acquire__document_is_blocked(core, session, &want.on);
}

/*
 * One that was granted and finds that it needs more gives back what it has while it waits: it gives way to nobody, so two of its kind
 * that hold something would wait for each other for ever.
 */
static int ask_kept(struct admission *at, bool granted_before)
{
    struct lock_table *locks = &at->core->owners->locks;
    int r = find_targets(at);
    if (r < 0)
        return tl_trace(r);
    if (at->targets.count == 0)
        return 0;
    collect_wants(at, NULL);
    if (granted_before && wait__acquire(at->core, at->wait, at->wants.items, at->wants.count, false) == LOCK_GRANTED)
        return 0;
    lock_table_suspend_grants(locks);
    lock_release_all(locks, at->wait->owner);
    bool granted = wait__acquire(at->core, at->wait, at->wants.items, at->wants.count, true) == LOCK_GRANTED;
    lock_table_resume_grants(locks);
    if (granted)
        return 0;
    wait__park(at->core, at->wait, TL_TS_MAX);
    return CORE_WAITS;
}

int acquire__request_deferred(struct core *core, struct wait *wait, struct command *command)
{
    struct admission at = {.core = core, .command = command, .wait = wait};
    make_result(command);
    return ask_kept(&at, false);
}

int acquire__resume_deferred(struct core *core, struct wait *wait, struct command *command)
{
    struct admission at = {.core = core, .command = command, .wait = wait};
    make_result(command);
    int r = ask_kept(&at, true);
    return r == 0 ? run_left(&at) : r;
}
