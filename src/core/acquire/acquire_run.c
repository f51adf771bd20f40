/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a write that has its locks; see acquire_internal.h. A path that is known only when an item
 * runs is locked then, without a wait; a document whose path has changed takes its locks along.
 */
#include "base/check.h"
#include "base/siphash.h"
#include "core/acquire/acquire.h"
#include "core/acquire/acquire_internal.h"
#include "core/acquire/lock_resolve.h"
#include "core/command/command.h"
#include "core/documents/provisional.h"
#include "core/documents/write.h"
#include "core/documents/write_command.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/lock_event.h"
#include "core/wait/wait.h"

/* The bit of a slot of struct path_set for a target's old path, and the position's shift. */
enum { PATH_OLD = 1, PATH_SHIFT = 1 };

/* Whether a result changed the document; otherwise its path is unchanged, whatever was expected. */
static bool has_changed(const struct write_result *result)
{
    return result->outcome == WRITE_CREATED || result->outcome == WRITE_UPDATED || result->outcome == WRITE_DELETED;
}

static int move_each(struct acquisition *at, const bool *chosen)
{
    const struct write_command *write = acquisition__write(at);
    struct resource_name *moved = arena_alloc(&at->core->arena, (at->targets.count + 1) * sizeof *moved);
    size_t count = 0;
    REQUIRE(at->core->owners->locks.grants_suspended > 0);
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
        name.path = path;
        if (lock_resolve__known_document(at->core, &name, &moved[count]))
            count++;
    }
    lock_resolve__move_documents(at->core, moved, count);
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
    REQUIRE(slot != 0 && slot >> PATH_SHIFT <= targets->count);
    const struct write_target *target = &targets->items[(slot >> PATH_SHIFT) - 1];
    return (slot & PATH_OLD) != 0 ? target->old_path : target->new_path;
}

/* Returns: the slot of a document and a path, or the free slot for them. */
static uint32_t *path_slot(const struct acquisition *at, const struct write_target *document, struct slice path)
{
    REQUIRE(at->paths.slots != NULL);
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
    REQUIRE(at->paths.slots == NULL && at->targets.count < UINT32_MAX >> PATH_SHIFT);
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
    if (owner == NULL && acquisition__write(at)->cleanup)
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
    problem_set(ret_problem, arena, PROBLEM_LOCK_WAIT_TIMEOUT,
                at->core->command_version >= COMMAND_SINCE_PLAIN_TEXTS ? "[%.*s], the new path of [%.*s], is locked"
                                                                       : "[%.*s], where [%.*s] would lie, is locked",
                SLICE_ARG(describe_truncate(to->new_path, room)), SLICE_ARG(to->id));
    return false;
}

/* Returns: the work of committing what a transaction has written, as far as it follows from counts. */
static uint64_t commit_work(const struct overlay *overlay)
{
    return WORK_WRITE * (uint64_t)overlay_count_in(overlay, SPACE_DOCUMENTS) +
           WORK_ENTRY * (uint64_t)overlay_count_in(overlay, SPACE_ENTRIES) +
           WORK_WRITE * (uint64_t)overlay_count_in(overlay, SPACE_TREE) +
           (WORK_WRITE + WORK_READ) * (uint64_t)overlay_count_in(overlay, SPACE_SYSTEM);
}

static uint64_t commit_work_max(const struct core *core)
{
    return core->command_version >= COMMAND_SINCE_COMMIT_LIMIT ? core->commit_work_max
                                                               : core->commit_work_max * COMMIT_WORK_FACTOR_BEFORE;
}

static bool too_large(const struct core *core, const struct txn *txn)
{
    const struct overlay *overlay = txn->overlay;
    if (core->command_version >= COMMAND_SINCE_WHOLE_WORK && commit_work(overlay) > commit_work_max(core))
        return true;
    return overlay_memory_bytes(overlay) + owner__lock_bytes(core, &txn->owner.locks) >
               core->limits.transaction_held_max ||
           overlay_bytes_in(overlay, SPACE_DOCUMENTS) > core->limits.transaction_bytes_max ||
           write__overlay_changes(overlay) > core->limits.transaction_changes_max;
}

/*
 * Refuses the request with `problem`; if earlier batches of it were done, the items from this batch
 * on fail with it instead.
 */
static void refuse_rest(struct acquisition *at, const struct problem *problem)
{
    struct write_command *write = acquisition__write(at);
    REQUIRE(at->txn != NULL && at->range.begin <= write->item_count);
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
    if (at->core->command_version < COMMAND_SINCE_PLAIN_TEXTS)
        return at->range.begin == 0 ? "this was not done, what was done before it stands"
                                    : "this item and those after it were not done, what was done before them stands";
    return at->range.begin == 0 ? "this request was not executed, earlier changes of the transaction are kept"
                                : "this item and those after it were not executed, earlier changes are kept";
}

void acquisition__refuse_too_large(struct acquisition *at)
{
    REQUIRE(at->txn != NULL);
    const struct core_limits *limits = &at->core->limits;
    struct problem problem = {0};
    if (at->in_pieces) {
        write__refuse_too_large(at->core, at->command);
        return;
    }
    bool by_work = at->core->command_version >= COMMAND_SINCE_WHOLE_WORK;
    problem_set(&problem, &at->command->arena, PROBLEM_TRANSACTION_TOO_LARGE,
                "a transaction holds at most [%zu] bytes of documents, [%zu] with their entries and locks, and [%zu] "
                "changes%s; %s%s",
                limits->transaction_bytes_max, limits->transaction_held_max, limits->transaction_changes_max,
                by_work ? ", or fewer if its documents have many values" : "", what_was_not_done(at),
                by_work ? ": commit, and continue in another transaction" : "");
    refuse_rest(at, &problem);
}

void acquisition__refuse_too_many_locks(struct acquisition *at)
{
    REQUIRE(at->txn != NULL || at->in_pieces);
    struct problem problem = {0};
    if (at->in_pieces) {
        problem_set(&at->command->problem, &at->command->arena, PROBLEM_TRANSACTION_TOO_LARGE,
                    "an atomic request holds at most [%zu] locks; nothing of it was done: send it in several requests",
                    at->core->limits.locks_per_session_max);
        return;
    }
    problem_set(&problem, &at->command->arena, PROBLEM_TRANSACTION_TOO_LARGE,
                "a transaction holds at most [%zu] locks; %s", at->core->limits.locks_per_session_max,
                what_was_not_done(at));
    refuse_rest(at, &problem);
}

int acquisition__run_in_txn(struct acquisition *at)
{
    struct core *core = at->core;
    struct command *command = at->command;
    REQUIRE(core->open && at->txn != NULL);
    struct overlay *overlay = txn__overlay(at->core, at->txn);
    size_t mark = overlay_savepoint(overlay);
    struct provisional_entries ahead = {.arena = &core->arena};
    struct write_path_check placing = {may_insert_at, at};
    struct write_run how = {.overlay = overlay,
                            .provisional = &ahead,
                            .in_pieces = at->in_pieces,
                            .path_check = &placing,
                            .parsed = at->targets.parsed,
                            .kept = at->targets.kept,
                            .work_before = at->work};
    uint64_t work;
    int r = write_command__run(core, command, at->range, NULL, &how, &work);
    at->work += work;
    if (r < 0)
        return tl_trace(r);
    if (too_large(core, at->txn)) {
        overlay_rollback_to(overlay, mark);
        provisional_clear(&ahead);
        acquisition__refuse_too_large(at);
    }
    overlay_release_savepoints(overlay);
    provisional__put(core, &ahead, at->txn->id, &at->txn->undo_record_count);
    txn__touch(core, at->txn);
    return 0;
}

int acquisition__run(struct acquisition *at, const bool *chosen)
{
    REQUIRE(at->core->open && at->txn == NULL);
    struct write_path_check placing = {may_insert_at, at};
    struct write_run how = {
        .path_check = &placing, .parsed = at->targets.parsed, .kept = at->targets.kept, .work_before = at->work};
    uint64_t work;
    int r = write_command__run(at->core, at->command, at->range, chosen, &how, &work);
    at->work += work;
    if (r < 0)
        return tl_trace(r);
    if (acquisition__write(at)->exceeds_step)
        return 0;
    acquire__end_place(at->core, at->command);
    return move_documents(at, chosen);
}
