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
 */
#include "core/acquire/acquire.h"

#include "base/check.h"
#include "base/siphash.h"
#include "core/acquire/ask.h"
#include "core/acquire/grants.h"
#include "core/acquire/lock_resolve.h"
#include "core/catalog/catalog.h"
#include "core/documents/provisional.h"
#include "core/documents/request_outcome.h"
#include "core/documents/update.h"
#include "core/documents/write.h"
#include "core/documents/write_command.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
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
#include "core/wait/lock_event.h"
#include "core/wait/wait.h"

/* Bounds the reply of a large bulk. */
enum { HOLDERS_REPORTED_PER_ITEM = 3 };

/*
 * The paths of a write's targets, before and after the write: a hash table with open addressing, by
 * index, id and path, in the core's arena. A slot has the position of a target, counted from 1, and
 * the bit PATH_OLD for its old path; 0: free.
 */
struct path_set {
    uint32_t *slots; /* NULL: not built yet */
    size_t mask;
};
enum { PATH_OLD = 1, PATH_SHIFT = 1 };

/* The state of one write while it acquires its locks. */
struct acquisition {
    struct core *core;
    struct command *command;
    struct session *session;
    struct txn *txn;
    struct wait *wait;        /* NULL: it has requested no lock, and this is its first batch */
    struct write_range range; /* the items of this call: all, or one batch in a transaction */
    struct write_targets targets;
    struct path_set paths; /* of `targets` */
    struct lock_spec_list specs;
    size_t explained_bytes; /* of the problems of failed items */
};

static struct write_command *write_of(const struct acquisition *at)
{
    return &at->command->write;
}

static struct overlay *overlay_of(const struct acquisition *at)
{
    return at->txn == NULL ? NULL : at->txn->overlay;
}

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

/* --- Targets and locks -------------------------------------------------------------------------------------------- */

/* Returns: the locks of one item; outside a transaction without those on unheld names. */
static struct lock_spec_list specs_of(const struct acquisition *at, const struct write_target *target)
{
    struct lock_spec_list specs = {0};
    lock_resolve__write(at->core, &write_of(at)->items[target->item], target, at->txn, &specs);
    if (at->txn == NULL)
        lock_resolve__drop_unheld(at->core, at->wait == NULL ? NULL : at->wait->owner, at->session, &specs);
    return specs;
}

/* Checks the fencing token for one document; an invalid one fails its item. */
static bool token_is_valid(struct acquisition *at, const struct write_target *target)
{
    struct slice place = target->old_path.data != NULL ? target->old_path : target->new_path;
    struct resource_name name = {target->index, place, target->type, target->id};
    const struct owner *requester = at->txn != NULL       ? &at->txn->owner
                                    : at->session != NULL ? &at->session->owner
                                                          : NULL;
    return command_owner__check_token(at->core, at->command, &name, requester,
                                      &write_of(at)->results[target->item].problem);
}

/* Whether an item is still to run. In a transaction, all items of the range are. */
static bool is_pending(const struct acquisition *at, size_t item)
{
    return at->wait == NULL || at->wait->pending_items == NULL || at->wait->pending_items[item];
}

static size_t source_bytes(const struct write_item *item)
{
    const struct write_update *update = item->update;
    return item->source.len + (update == NULL ? 0 : update->doc.len + update->upsert.len + update->script_params.len);
}

/*
 * Sets the range: all items, or the next batch of a write in a transaction. A batch has the cost of
 * one step, without that of its scripts.
 */
static void choose_range(struct acquisition *at)
{
    const struct write_command *write = write_of(at);
    const struct wait *wait = at->wait;
    size_t batch = at->core->limits.ephemeral_batch, bytes = 0;
    at->range = (struct write_range){0, write->item_count};
    if (at->txn == NULL || write->atomic)
        return;
    while (wait != NULL && wait->pending_items != NULL && !wait->pending_items[at->range.begin])
        at->range.begin++;
    at->range.end = at->range.begin;
    while (at->range.end < write->item_count && at->range.end - at->range.begin + bytes / SOURCE_BYTES_PER_COST < batch)
        bytes += source_bytes(&write->items[at->range.end++]);
}

/*
 * Whether an item would create an index and change the meaning of a name locked by its own session.
 */
static bool has_self_conflict(struct acquisition *at, const struct write_target *target)
{
    struct problem *problem = &write_of(at)->results[target->item].problem;
    if (at->session == NULL || catalog_index(at->core->catalog, target->index) != NULL)
        return false;
    struct lock_spec_list specs = {0};
    lock_resolve__write(at->core, &write_of(at)->items[target->item], target, NULL, &specs);
    return lock_resolve__self_conflict(at->core, at->session, &specs, &at->command->arena, problem);
}

/*
 * Whether items may be postponed for the scripts and mappings that determine their targets. Before
 * version 9 only if no item of the range has run, and no lock was requested for one.
 */
static bool may_postpone(const struct acquisition *at)
{
    return at->core->command_version >= COMMAND_SINCE_RESUMED_LIMIT || at->wait == NULL ||
           (at->txn != NULL && at->wait->until == 0);
}

/* Returns: by item, whether it is still to run; NULL: all are, or a command before version 9 computes all. */
static const bool *pending_items(const struct acquisition *at)
{
    return at->core->command_version < COMMAND_SINCE_RESUMED_LIMIT || at->wait == NULL ? NULL : at->wait->pending_items;
}

/*
 * Finds what the pending items will change. Leaves out items that fail for their token or for a
 * self-conflict.
 */
static int find_targets(struct acquisition *at)
{
    size_t kept = 0;
    choose_range(at);
    struct write_choice choice = {at->range, pending_items(at), may_postpone(at)};
    int r = write__targets(at->core, at->command, &choice, overlay_of(at), &at->targets);
    if (r < 0)
        return tl_trace(r);
    for (size_t i = 0; i < at->targets.count; i++) {
        const struct write_target *target = &at->targets.items[i];
        if (!is_pending(at, target->item) || target->index.len == 0)
            continue;
        if (!token_is_valid(at, target) || has_self_conflict(at, target))
            continue;
        at->targets.items[kept++] = *target;
    }
    at->targets.count = kept;
    at->paths = (struct path_set){0};
    return 0;
}

/* Collects the locks of the targets that are `blocked` (NULL: all). */
static void collect_specs(struct acquisition *at, const bool *blocked)
{
    const struct write_command *write = write_of(at);
    at->specs = (struct lock_spec_list){0};
    for (size_t i = 0; i < at->targets.count; i++) {
        const struct write_target *target = &at->targets.items[i];
        if (blocked == NULL || blocked[i])
            lock_resolve__write(at->core, &write->items[target->item], target, at->txn, &at->specs);
    }
    if (at->txn == NULL)
        lock_resolve__drop_unheld(at->core, at->wait == NULL ? NULL : at->wait->owner, at->session, &at->specs);
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

/* Whether a result changed the document; otherwise its path is unchanged, whatever was expected. */
static bool has_changed(const struct write_result *result)
{
    return result->outcome == WRITE_CREATED || result->outcome == WRITE_UPDATED || result->outcome == WRITE_DELETED;
}

static int move_each(struct acquisition *at, const bool *chosen)
{
    const struct write_command *write = write_of(at);
    for (size_t i = 0; i < at->targets.count; i++) {
        const struct write_target *target = &at->targets.items[i];
        struct slice path = target->new_path;
        if ((chosen != NULL && !chosen[target->item]) || !has_changed(&write->results[target->item]))
            continue;
        if (write->item_count > 1) { /* an earlier item may have changed the document, too */
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

/*
 * Moves the locks of documents whose paths the chosen items (NULL: all) have changed. The moves are
 * atomic: no request is granted while only some documents have moved.
 */
static int move_documents(struct acquisition *at, const bool *chosen)
{
    struct lock_table *locks = &at->core->owners->locks;
    if (lock_table_is_idle(locks) || at->txn != NULL)
        return 0;
    lock_table_suspend_grants(locks);
    int r = move_each(at, chosen);
    lock_table_resume_grants(locks);
    return r < 0 ? tl_trace(r) : 0;
}

static struct slice slot_path(const struct write_targets *targets, uint32_t slot)
{
    const struct write_target *target = &targets->items[(slot >> PATH_SHIFT) - 1];
    return (slot & PATH_OLD) != 0 ? target->old_path : target->new_path;
}

/* Returns: the slot of a document and a path, or the free slot for them. */
static uint32_t *path_slot(const struct acquisition *at, const struct write_target *document, struct slice path)
{
    const struct path_set *paths = &at->paths;
    uint64_t hash = siphash_keyed(document->index) * 5 ^ siphash_keyed(document->id) * 3 ^ siphash_keyed(path);
    core__work(at->core, WORK_LOCK); /* not for each slot: the hash key differs between processes */
    for (size_t i = hash & paths->mask;; i = (i + 1) & paths->mask) {
        uint32_t *slot = &paths->slots[i];
        if (*slot == 0)
            return slot;
        const struct write_target *target = &at->targets.items[(*slot >> PATH_SHIFT) - 1];
        if (slice_equal(target->id, document->id) && slice_equal(target->index, document->index) &&
            slice_equal(slot_path(&at->targets, *slot), path))
            return slot;
    }
}

static void path_set_build(struct acquisition *at)
{
    struct path_set *paths = &at->paths;
    size_t slots = 4;
    while (slots < at->targets.count * 4) /* two for each target, half of them free */
        slots *= 2;
    paths->mask = slots - 1;
    paths->slots = arena_zalloc(&at->core->arena, slots * sizeof *paths->slots);
    for (size_t i = 0; i < at->targets.count; i++) {
        const struct write_target *target = &at->targets.items[i];
        uint32_t slot = (uint32_t)(i + 1) << PATH_SHIFT;
        *path_slot(at, target, target->new_path) = slot;
        *path_slot(at, target, target->old_path) = slot | PATH_OLD;
    }
}

/* Whether a new path is a path of one of the targets, so that it is locked already. */
static bool path_is_locked(struct acquisition *at, const struct write_target *to)
{
    if (at->paths.slots == NULL)
        path_set_build(at);
    return *path_slot(at, to, to->new_path) != 0;
}

/*
 * Acquires an insert intention without waiting, for the owner of the write's locks. A write without
 * an owner only checks for conflicts. Returns: whether it was granted.
 */
static bool acquire_insert_intention(struct acquisition *at, const struct lock_spec *spec)
{
    struct lock_table *locks = &at->core->owners->locks;
    struct lock_owner *owner = at->txn != NULL ? &at->txn->owner.locks : at->wait != NULL ? at->wait->owner : NULL;
    if (owner == NULL && write_of(at)->cleanup)
        return lock_table_can_grant_ignoring_waiters(locks, &at->session->owner.locks, spec);
    if (owner == NULL)
        return lock_table_can_grant(locks, at->session == NULL ? NULL : &at->session->owner.locks, spec);
    struct lock_request *request = lock_request_new(locks, owner, spec, 1, at->wait);
    bool taken = lock_request_start(request, false) == LOCK_GRANTED;
    lock_request_free(request);
    return taken;
}

/*
 * Permits a document's new path when an item runs (struct write_path_check). A path is unknown
 * before the run if an earlier item of the write has changed the same document.
 */
static bool may_insert_at(void *context, const struct write_target *to, struct arena *arena,
                          struct problem *ret_problem)
{
    struct acquisition *at = context;
    struct lock_spec spec = {{to->index, to->new_path, SLICE_NONE, SLICE_NONE}, LOCK_X, true};
    char room[DESCRIBE_NAME_BYTES_MAX];
    if (to->new_path.data == NULL || path_is_locked(at, to) || acquire_insert_intention(at, &spec))
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

/*
 * Refuses the request with `problem`; if earlier batches of it were done, the items from this batch
 * on fail with it instead.
 */
static void refuse_rest(struct acquisition *at, const struct problem *problem)
{
    struct write_command *write = write_of(at);
    if (at->range.begin == 0) {
        at->command->problem = *problem;
        return;
    }
    for (size_t i = at->range.begin; i < write->item_count; i++)
        write->results[i] =
            (struct write_result){.outcome = WRITE_FAILED, .index = write->items[i].index, .problem = *problem};
    core__work(at->core, (write->item_count - at->range.begin) * WORK_LOCK);
    write->postponed_count = 0;
    at->range.end = write->item_count;
}

static const char *what_was_not_done(const struct acquisition *at)
{
    return at->range.begin == 0 ? "this request was not done, what was done before it stands"
                                : "this item and those after it were not done, what was done before them stands";
}

static void refuse_too_large(struct acquisition *at)
{
    const struct core_limits *limits = &at->core->limits;
    struct problem problem = {0};
    problem_set(&problem, &at->command->arena, PROBLEM_TRANSACTION_TOO_LARGE,
                "a transaction holds at most [%zu] bytes of documents, [%zu] with their entries and locks, and [%zu] "
                "changes; %s",
                limits->transaction_bytes_max, limits->transaction_held_max, limits->transaction_changes_max,
                what_was_not_done(at));
    refuse_rest(at, &problem);
}

static void refuse_too_many_locks(struct acquisition *at)
{
    struct problem problem = {0};
    problem_set(&problem, &at->command->arena, PROBLEM_TRANSACTION_TOO_LARGE,
                "a transaction holds at most [%zu] locks; %s", at->core->limits.locks_per_session_max,
                what_was_not_done(at));
    refuse_rest(at, &problem);
}

/*
 * Whether the locks would exceed the memory limit of a transaction or a write; checked before the
 * request is made.
 */
static bool specs_too_large(const struct acquisition *at)
{
    size_t most = at->core->limits.transaction_held_max;
    size_t held = at->txn == NULL || at->txn->overlay == NULL ? 0 : overlay_memory_bytes(at->txn->overlay);
    held += at->txn == NULL ? 0 : owner__lock_bytes(&at->txn->owner.locks);
    return held >= most || lock_specs__bytes(at->core, &at->specs, most - held) > most - held;
}

static int run_in_txn(struct acquisition *at)
{
    struct core *core = at->core;
    struct command *command = at->command;
    struct overlay *overlay = txn__overlay(at->core, at->txn);
    size_t mark = overlay_savepoint(overlay);
    struct provisional_entries ahead = {.arena = &core->arena};
    struct write_path_check placing = {may_insert_at, at};
    struct write_run how = {
        .overlay = overlay, .provisional = &ahead, .path_check = &placing, .parsed = at->targets.parsed};
    int r = write_command__run(core, command, at->range, NULL, &how);
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

/* Runs the chosen items (NULL: all) outside a transaction, and moves the locks of their documents. */
static int run(struct acquisition *at, const bool *chosen)
{
    struct write_path_check placing = {may_insert_at, at};
    struct write_run how = {.path_check = &placing, .parsed = at->targets.parsed};
    int r = write_command__run(at->core, at->command, at->range, chosen, &how);
    return r < 0 ? tl_trace(r) : move_documents(at, chosen);
}

/* --- Failing ------------------------------------------------------------------------------------------------------ */

/* Gives an item the cause of its wait, or a problem that reports its blockers. */
static void fail_item(struct acquisition *at, size_t item, struct wait *wait)
{
    struct problem *problem = &write_of(at)->results[item].problem;
    if (wait->cause != NULL) {
        *problem = *wait->cause;
    } else if (at->explained_bytes > WRITE_EXPLAINED_BYTES_MAX) {
        wait__explain_briefly(&at->command->arena, PROBLEM_LOCK_WAIT_TIMEOUT, problem);
    } else {
        wait__explain(wait, PROBLEM_LOCK_WAIT_TIMEOUT,
                      write_of(at)->item_count > 1 ? HOLDERS_REPORTED_PER_ITEM : HOLDERS_REPORTED_MAX,
                      &at->command->arena, problem);
        at->explained_bytes += problem->reason.len + problem->details.len;
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
    struct lock_spec_list specs = specs_of(at, target);
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
    map_deinit(&documents);
    buf_deinit(&key);
    return count;
}

/* Returns: by item, whether it runs now: it is pending and not blocked. */
static bool *choose_unblocked(struct acquisition *at, const bool *blocked)
{
    size_t count = write_of(at)->item_count;
    bool *chosen = arena_alloc(&at->core->arena, count + 1);
    for (size_t i = 0; i < count; i++)
        chosen[i] = is_pending(at, i);
    for (size_t i = 0; i < at->targets.count; i++)
        if (blocked[i])
            chosen[at->targets.items[i].item] = false;
    return chosen;
}

/* Records the blocked items as pending. */
static void set_pending(struct acquisition *at, const bool *blocked)
{
    size_t count = write_of(at)->item_count;
    bool *pending = arena_zalloc(&at->command->arena, count + 1);
    for (size_t i = 0; i < at->targets.count; i++)
        if (blocked[i])
            pending[at->targets.items[i].item] = true;
    at->wait->pending_items = pending;
}

static void free_wait(struct acquisition *at)
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

static int proceed(struct acquisition *at, uint64_t deadline);

/* Postpones all items after the range. */
static void postpone_rest(struct acquisition *at)
{
    core__work(at->core, (write_of(at)->item_count - at->range.end) * WORK_ITEM);
    for (size_t i = at->range.end; i < write_of(at)->item_count; i++)
        write__postpone(at->core, at->command, i);
}

/*
 * Makes the items after the range pending, and the write ready. The step runs no more ready
 * commands: the batch was as much as one may.
 */
static int continue_later(struct acquisition *at)
{
    struct core *core = at->core;
    size_t count = write_of(at)->item_count;
    if (at->wait == NULL)
        at->wait = wait__new(core, at->command, &at->txn->owner.locks, NULL, at->txn);
    if (at->wait->pending_items == NULL) {
        at->wait->pending_items = arena_alloc(&at->command->arena, count + 1);
        memset(at->wait->pending_items, true, count);
    }
    memset(at->wait->pending_items + at->range.begin, false, at->range.end - at->range.begin);
    wait__continue_later(core, tl_steal(at->wait));
    core->owners->cost_left = 0;
    return CORE_WAITS;
}

/* Runs the batch of a write in a transaction. Returns: 0, it was the last; CORE_WAITS; fatal codes. */
static int finish_batch(struct acquisition *at)
{
    struct write_command *write = write_of(at);
    uint64_t steps_max = update_command_steps_max(&at->core->limits.script, false);
    uint64_t steps_before = write->script_steps;
    int r = run_in_txn(at);
    if (r < 0)
        return tl_trace(r);
    if (at->range.end < write->item_count && at->command->problem.type == PROBLEM_NONE) {
        if (write->postponed_count == 0 && write->script_steps - steps_before <= steps_max)
            return continue_later(at);
        postpone_rest(at);
    }
    free_wait(at);
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
        free_wait(at);
    return r;
}

/* Runs all pending items, and frees the wait. */
static int finish(struct acquisition *at, uint64_t deadline)
{
    bool *chosen = NULL;
    if (at->txn != NULL)
        return finish_batch(at);
    int r = begin_clean_unit(at);
    if (r < 0)
        return tl_trace(r);
    if (r > 0)
        return proceed(at, deadline);
    r = find_outcome(at);
    if (r != REQUEST_OUTCOME_NONE)
        return r;
    if (at->wait != NULL && at->wait->pending_items != NULL) {
        chosen = arena_alloc(&at->core->arena, write_of(at)->item_count + 1);
        memcpy(chosen, at->wait->pending_items, write_of(at)->item_count);
    }
    r = run(at, chosen);
    free_wait(at);
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
    return finish(at, at->core->clock);
}

/*
 * Requests the locks of each pending item separately, without waiting; runs the granted ones, fails
 * the others.
 */
static int acquire_each(struct acquisition *at)
{
    for (size_t i = 0; i < at->targets.count; i++) {
        size_t item = at->targets.items[i].item;
        if (!is_pending(at, item))
            continue;
        struct lock_spec_list specs = specs_of(at, &at->targets.items[i]);
        if (wait__acquire(at->core, at->wait, specs.items, specs.count, false) == LOCK_CONFLICT)
            fail_item(at, item, at->wait);
    }
    return finish(at, at->core->clock);
}

/*
 * Requests the collected locks, and runs or parks the write.
 * Returns: 0, done; CORE_WAITS; fatal codes.
 */
static int acquire(struct acquisition *at, uint64_t deadline, const bool *blocked)
{
    struct core *core = at->core;
    if (specs_too_large(at)) {
        problem_set(wait__cause(at->wait), &at->command->arena, PROBLEM_LIMIT_EXCEEDED,
                    "the places of its documents would take more than [%zu] bytes while it waits",
                    core->limits.transaction_held_max);
        return finish_failing(at, at->wait, blocked);
    }
    switch (ask__locks(core, at->wait, at->specs.items, at->specs.count, deadline)) {
    case ASK_GRANTED: return finish(at, deadline);
    case ASK_PARKED: at->wait = NULL; return CORE_WAITS;
    case ASK_FULL: wait__explain_limit(core, &at->command->arena, wait__cause(at->wait)); return acquire_each(at);
    case ASK_BLOCKED: return acquire_each(at);
    case ASK_VICTIM: return finish_failing(at, at->wait, blocked);
    }
    UNREACHABLE();
}

/*
 * Postpones the blocked items if other items were postponed, so that they do not run before those.
 * The write must have begun an item, else it would be resubmitted without progress.
 * Returns: whether it has postponed them, so that the write is done.
 */
static bool postpone_blocked(struct acquisition *at, const bool *chosen, const bool *blocked)
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
    free_wait(at);
    return true;
}

/*
 * Runs the items that no lock blocks, and requests the locks of the rest. Those are computed after
 * the run, which may have moved their documents.
 */
static int first_try(struct acquisition *at, uint64_t deadline)
{
    bool *blocked = arena_zalloc(&at->core->arena, at->targets.count + 1);
    size_t blocked_count = find_blocked(at, blocked);
    if (blocked_count == 0)
        return run(at, NULL);
    INSIST(at->targets.count > 0);
    at->wait = wait__new(at->core, at->command, NULL, at->session, NULL);
    if (!runs_in_one_unit(at) && write_of(at)->item_count > 1) {
        bool *chosen = choose_unblocked(at, blocked);
        int r = run(at, chosen);
        if (r >= 0 && postpone_blocked(at, chosen, blocked))
            return 0;
        set_pending(at, blocked);
        return r < 0 ? tl_trace(r) : proceed(at, deadline);
    }
    collect_specs(at, blocked);
    return acquire(at, deadline, blocked);
}

/* --- In a transaction --------------------------------------------------------------------------------------------- */

static int acquire_in_txn(struct acquisition *at, uint64_t deadline)
{
    struct core *core = at->core;
    if (at->targets.count == 0)
        return finish(at, deadline);
    collect_specs(at, NULL);
    if (at->txn->owner.locks.lock_count + at->txn->owner.locks.auxiliary_count + lock_specs__lock_count(&at->specs) >
        core->limits.locks_per_session_max) {
        refuse_too_many_locks(at);
        free_wait(at);
        txn__touch(core, at->txn);
        return 0;
    }
    if ((at->wait == NULL || at->wait->request == NULL) && specs_too_large(at)) {
        refuse_too_large(at);
        free_wait(at);
        txn__touch(core, at->txn);
        return 0;
    }
    if (at->wait == NULL)
        at->wait = wait__new(core, at->command, &at->txn->owner.locks, NULL, at->txn);
    switch (ask__locks(core, at->wait, at->specs.items, at->specs.count, deadline)) {
    case ASK_GRANTED: return finish(at, deadline);
    case ASK_PARKED: at->wait = NULL; return CORE_WAITS;
    case ASK_BLOCKED:
    case ASK_FULL: return acquire_each(at);
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
static int proceed(struct acquisition *at, uint64_t deadline)
{
    int r = find_targets(at);
    if (r < 0)
        return tl_trace(r);
    if (at->txn != NULL)
        return acquire_in_txn(at, deadline);
    if (at->wait == NULL)
        return first_try(at, deadline);
    if (at->targets.count == 0)
        return finish(at, deadline);
    bool *blocked = arena_alloc(&at->core->arena, at->targets.count + 1);
    memset(blocked, true, at->targets.count);
    collect_specs(at, NULL);
    return acquire(at, deadline, blocked);
}

int acquire__write(struct core *core, struct command *command)
{
    REQUIRE(core->open && command->type == COMMAND_WRITE);
    struct acquisition at = {.core = core, .command = command};
    if (!find_owner(&at))
        return 0;
    return proceed(&at, deadline_after(core, command->owner.timeout_us));
}

static struct acquisition resumed(struct core *core, struct wait *wait)
{
    return (struct acquisition){
        .core = core, .command = wait->command, .session = wait->session, .txn = wait->txn, .wait = wait};
}

static int resume(struct core *core, struct wait *wait)
{
    struct acquisition at = resumed(core, wait);
    return proceed(&at, wait__deadline(wait));
}

/*
 * Fails the pending items of an autocommit write with the cause, if others have run or after a
 * deadlock. Answers any other write at once.
 */
static int answer(struct core *core, struct wait *wait)
{
    struct acquisition at = resumed(core, wait);
    struct write_command *write = write_of(&at);
    bool answers_at_once = at.command->owner.transaction.len > 0 ||
                           (wait->pending_items == NULL && wait__cause(wait)->type != PROBLEM_DEADLOCK_DETECTED);
    if (answers_at_once) {
        wait__answer(core, wait);
        return 0;
    }
    choose_range(&at);
    for (size_t i = 0; i < write->item_count; i++)
        if (is_pending(&at, i))
            write->results[i].problem = *wait__cause(wait);
    return finish(&at, core->clock);
}

/* Runs the items that no lock blocks any more; fails the others. */
static int on_timeout(struct core *core, struct wait *wait)
{
    struct acquisition at = resumed(core, wait);
    struct command *command = wait->command;
    int r = find_targets(&at);
    if (r == 0)
        r = acquire_each(&at);
    if (r == 0)
        core__complete(core, command);
    return r;
}

/* An autocommit write fails its items in a unit of its own. */
static void on_deadlock(struct core *core, struct wait *wait)
{
    if (wait->txn == NULL)
        wait__end_later(core, wait);
    else
        grants__on_deadlock(core, wait);
}

const struct wait_ops write__wait_ops = {wait__on_grant, resume, on_timeout, on_deadlock, answer};

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

/* --- Cleanup actions ---------------------------------------------------------------------------------------------- */

/*
 * Whether another owner than the session holds a conflicting lock. Waiting requests do not count.
 */
static bool is_blocked(struct core *core, struct session *session, const struct lock_spec_list *specs)
{
    struct lock_table *locks = &core->owners->locks;
    struct lock_owner *owner = &session->owner.locks;
    for (size_t i = 0; i < specs->count; i++)
        if (!lock_table_covers(locks, owner, &specs->items[i]) &&
            !lock_table_can_grant_ignoring_waiters(locks, owner, &specs->items[i]))
            return true;
    return false;
}

/* Runs the only item, as a chosen one: later writes of the unit read its changes. */
static int run_only_item(struct acquisition *at)
{
    bool chosen = true;
    return run(at, &chosen);
}

static void make_result(struct command *command)
{
    command->write.results = arena_zalloc(&command->arena, sizeof *command->write.results);
}

/*
 * Replaces an alias in a deferred item by its current index and routing: it may mean another index
 * when the item runs. An alias whose routing contradicts the item's stays; the item fails later.
 */
static void replace_alias(struct core *core, struct arena *arena, const struct write_target *target,
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
    struct acquisition at = {.core = core, .command = command, .session = session};
    make_result(command);
    int r = find_targets(&at);
    if (r < 0)
        return tl_trace(r);
    collect_specs(&at, NULL);
    if (!is_blocked(core, session, &at.specs))
        return run_only_item(&at);
    if (at.targets.count > 0)
        replace_alias(core, &command->arena, &at.targets.items[0], &command->write.items[0]);
    return 1;
}

bool acquire__document_is_blocked(struct core *core, struct session *session, const struct resource_name *document)
{
    struct lock_spec_list specs = lock_resolve__document(core, document);
    return is_blocked(core, session, &specs);
}

bool acquire__removal_is_blocked(struct core *core, struct session *session, const struct write_item *removal)
{
    struct lock_spec spec = {{removal->index, SLICE_NONE, removal->type, removal->id}, LOCK_X, false};
    if (lock_table_is_idle(&core->owners->locks) ||
        write__path_of(core, NULL, removal->index, removal->type, removal->id, &spec.on.path) < 0)
        return false;
    return acquire__document_is_blocked(core, session, &spec.on);
}

/*
 * Requests the locks of a deferred action. If a granted action needs further locks, it releases
 * its locks before it waits. It is never chosen as a deadlock victim, so two actions that hold
 * locks while they wait could block each other forever.
 */
static int request_deferred(struct acquisition *at, bool granted_before)
{
    struct lock_table *locks = &at->core->owners->locks;
    int r = find_targets(at);
    if (r < 0)
        return tl_trace(r);
    if (at->targets.count == 0)
        return 0;
    collect_specs(at, NULL);
    if (granted_before && wait__acquire(at->core, at->wait, at->specs.items, at->specs.count, false) == LOCK_GRANTED)
        return 0;
    lock_table_suspend_grants(locks);
    lock_release_all(locks, at->wait->owner);
    bool granted = wait__acquire(at->core, at->wait, at->specs.items, at->specs.count, true) == LOCK_GRANTED;
    lock_table_resume_grants(locks);
    if (granted)
        return 0;
    wait__park(at->core, at->wait, TL_TS_MAX);
    return CORE_WAITS;
}

int acquire__request_deferred(struct core *core, struct wait *wait, struct command *command)
{
    struct acquisition at = {.core = core, .command = command, .wait = wait};
    make_result(command);
    return request_deferred(&at, false);
}

int acquire__resume_deferred(struct core *core, struct wait *wait, struct command *command)
{
    struct acquisition at = {.core = core, .command = command, .wait = wait};
    make_result(command);
    int r = request_deferred(&at, true);
    return r == 0 ? run_only_item(&at) : r;
}
