/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sessions end: their actions, documents and locks, in batches. See session_end.h and
 * README-locks.md, "Sessions".
 */
#include "core/cleanup/session_end.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/magic.h"
#include "base/sm.h"
#include "core/acquire/acquire.h"
#include "core/acquire/grants.h"
#include "core/acquire/lock_resolve.h"
#include "core/catalog/catalog.h"
#include "core/catalog/counter.h"
#include "core/catalog/purge.h"
#include "core/cleanup/cleanup_attempt.h"
#include "core/cleanup/deferred.h"
#include "core/command/command.h"
#include "core/documents/action.h"
#include "core/documents/doc.h"
#include "core/documents/ephemeral.h"
#include "core/documents/session_tombstone.h"
#include "core/documents/update.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/cost.h"
#include "core/session/deadline.h"
#include "core/session/owner.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/step/core.h"
#include "core/transaction/txn_end.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "core/wait/lock_event.h"
#include "core/wait/wait.h"
#include "mapping/mapping.h"

/* --- Commands that end a session ---------------------------------------------------------------------------------- */

/* The connection was lost. A session that has since been attached to another one lives on. */
int core__do_session_detach(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_SESSION_DETACH);
    struct session *session = owners_live_session(core->owners, command->session.id);
    if (session == NULL || session->attachment != command->session.attachment)
        return 0;
    int r = session__terminate(core, session, SESSION_END_DETACHED);
    return r < 0 ? tl_trace(r) : 0;
}

int core__do_session_close(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_SESSION_CLOSE);
    struct session *session = command->session.force ? session__by_number(core, command->session.id) : NULL;
    if (session == NULL || session->terminating)
        session = session__find(core, command->session.id, &command->arena, &command->problem);
    if (session == NULL)
        return 0;
    if (command->session.if_detached && session->attachment != 0) {
        problem_set(&command->problem, &command->arena, PROBLEM_SESSION_ATTACHED,
                    "session [%" PRIu64 "] is attached: a connection keeps it alive", session_number(session));
        return 0;
    }
    command->session.id = arena_copy(&command->arena, session->id);
    int r = session__terminate(core, session, command->session.force ? SESSION_END_FORCED : SESSION_END_CLOSED);
    if (r <= 0)
        return r < 0 ? tl_trace(r) : 0;
    session->close_command = command; /* finish_end() completes it */
    return CORE_WAITS;
}

/* --- Removing documents in batches -------------------------------------------------------------------------------- */

struct deferral {
    struct core *core;
    struct session *session;
    int r;
    struct resource_name *moved; /* removed documents that lose their paths in the lock table; in the core's arena */
    size_t moved_count, moved_capacity;
};

/* Notes that a removed document loses its path. Commands before version 23 move it before the next removal. */
static void note_moved(struct deferral *deferral, const struct write_item *removal)
{
    struct core *core = deferral->core;
    const struct resource_name name = {removal->index, SLICE_NONE, removal->type, removal->id};
    struct resource_name at;
    if (core->command_version < COMMAND_SINCE_MOVES_BOUNDED) {
        lock_resolve__move_document(core, &name, SLICE_NONE);
        return;
    }
    if (!lock_resolve__known_document(core, &name, &at))
        return;
    deferral->moved = arena_grow(&core->arena, deferral->moved, deferral->moved_count, &deferral->moved_capacity,
                                 sizeof *deferral->moved);
    deferral->moved[deferral->moved_count++] =
        (struct resource_name){.index = arena_copy(&core->arena, at.index),
                               .type = at.type.len > 0 ? arena_copy(&core->arena, at.type) : SLICE_NONE,
                               .id = arena_copy(&core->arena, at.id)};
}

/*
 * Defers the removal of a document that another owner has locked, until that lock is released.
 * `hidden`: the session's tombstone already hides the document; no lock prevents its purge.
 * Returns: whether the removal is deferred.
 */
static bool defer_removal(void *context, const struct write_item *removal, bool hidden)
{
    struct deferral *deferral = context;
    struct core *core = deferral->core;
    REQUIRE(deferral->session->terminating && removal->op == WRITE_DELETE);
    if (hidden)
        return false;
    if (!acquire__removal_is_blocked(core, deferral->session, removal)) {
        note_moved(deferral, removal);
        return false;
    }
    int r = deferred__add(core, deferral->session, removal, true);
    deferral->r = r < 0 ? r : deferral->r;
    deferral->session->deferred_count++;
    return true;
}

/* Removes documents up to `most`, or defers their removal. */
static int remove_batch(struct core *core, struct session *session, struct ephemeral_batch_max most, bool *ret_more)
{
    struct deferral deferral = {.core = core, .session = session};
    int r =
        ephemeral__purge_batch(core, session->id, &most, defer_removal, &deferral, &session->removed_count, ret_more);
    lock_resolve__move_documents(core, deferral.moved, deferral.moved_count);
    return r < 0 ? r : deferral.r;
}

/* --- Hiding all documents at one timestamp ------------------------------------------------------------------------ */

/* An index that contains documents of the session. */
struct exclusion_candidate {
    const struct catalog_index *index;
    const struct resource *resource; /* NULL: no lock is held or requested in it */
    size_t directory_locks;          /* of the session itself */
    size_t locked_count;             /* documents of the session that are blocked */
    bool excluded;                   /* the whole index */
};

/*
 * Finds the documents of a session that its tombstone must not hide, because other owners have them
 * locked. A locked document is excluded until its lock is released. An index is excluded as a whole
 * if another owner has locked it, one of its directories, or too many of these documents; its
 * documents are removed in batches. Looks for the documents of the session in the lock table, so
 * the work does not depend on the locks of others.
 */
struct exclusion_scan {
    struct core *core;
    struct session *session;
    struct slice *keys; /* of all its ephemeral documents, sorted */
    size_t key_count;
    struct exclusion_candidate *candidates; /* sorted by number of their index */
    size_t candidate_count;
    uint32_t *indices; /* numbers of excluded ones, sorted */
    size_t index_count;
    struct slice *documents; /* keys of excluded ones, sorted by sort_exclusions() */
    size_t document_count;
    size_t document_capacity;
};

static bool has_key(const struct slice *keys, size_t count, struct slice key)
{
    return count > 0 && bsearch(&key, keys, count, sizeof key, slice_order) != NULL;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool index_is_excluded(const struct exclusion_scan *scan, uint32_t index)
{
    return scan->index_count > 0 &&
           bsearch(&index, scan->indices, scan->index_count, sizeof index, compare_numbers) != NULL;
}

static int compare_candidates(const void *a, const void *b)
{
    uint32_t x = ((const struct exclusion_candidate *)a)->index->number,
             y = ((const struct exclusion_candidate *)b)->index->number;
    return (x > y) - (x < y);
}

/* Returns: the candidate of an index; NULL: it has none. */
static struct exclusion_candidate *candidate_of(const struct exclusion_scan *scan, const struct catalog_index *index)
{
    struct exclusion_candidate key = {.index = index};
    return index == NULL || scan->candidate_count == 0
               ? NULL
               : bsearch(&key, scan->candidates, scan->candidate_count, sizeof key, compare_candidates);
}

static void find_candidates(struct exclusion_scan *scan)
{
    struct core *core = scan->core;
    const struct session *session = scan->session;
    uint32_t *numbers = arena_alloc(&core->arena, (session->ephemeral_counter_count + 1) * sizeof *numbers);
    size_t count = 0;
    for (size_t i = 0; i < session->ephemeral_counter_count; i++)
        if (session->ephemeral_counters[i].count > 0)
            numbers[count++] = session->ephemeral_counters[i].index;
    if (count > 1)
        qsort(numbers, count, sizeof *numbers, compare_numbers);
    scan->candidates = arena_zalloc(&core->arena, (count + 1) * sizeof *scan->candidates);
    for (size_t i = 0; i < count; i++) {
        const struct catalog_index *index = catalog_index_by_number(core->catalog, numbers[i]);
        core__work(core, WORK_LOCK);
        if (index == NULL || (i > 0 && numbers[i] == numbers[i - 1]))
            continue;
        scan->candidates[scan->candidate_count++] = (struct exclusion_candidate){
            .index = index, .resource = resource_index(&core->owners->locks.resources, index->name)};
    }
}

/* Whether an owner other than the session holds a lock on a resource. */
static bool held_by_others(const struct exclusion_scan *scan, const struct resource *resource)
{
    return lock_resource_is_locked_by_others(resource, &scan->session->owner.locks);
}

/* Whether a deferred cleanup waits for a resource; it would be first in the queue. */
static bool has_deferred_waiter(const struct resource *resource)
{
    struct lock_waiter_iter waiters = lock_waiter_iter(resource);
    const struct lock_request *request;
    enum lock_mode mode;
    return lock_waiter_iter_next(&waiters, &request, &mode) && lock_request_owner(request)->cleanup;
}

/* Counts the session's own locks on directories of the candidates. */
static void count_own_directories(struct exclusion_scan *scan)
{
    struct core *core = scan->core;
    const struct resource *last = NULL;
    struct exclusion_candidate *candidate = NULL;
    list_for_each(link, &scan->session->owner.locks.holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
        const struct resource *index = hold->resource->index;
        core__work(core, WORK_LOCK);
        if (hold->mode == LOCK_NONE || hold->resource->kind != RESOURCE_DIRECTORY)
            continue;
        if (index != last)
            candidate = candidate_of(scan, catalog_index(core->catalog, slice_make(index->name, index->name_len)));
        last = index;
        if (candidate != NULL)
            candidate->directory_locks++;
    }
}

/* Excludes the indices of which another owner has locked everything, the index, or a directory. */
static void exclude_indices(struct exclusion_scan *scan)
{
    bool all = held_by_others(scan, scan->core->owners->locks.resources.root), any_directories = false;
    for (size_t i = 0; i < scan->candidate_count; i++) {
        struct exclusion_candidate *candidate = &scan->candidates[i];
        const struct resource *resource = candidate->resource;
        candidate->excluded = all || (resource != NULL && held_by_others(scan, resource));
        any_directories |= resource != NULL && resource->directory_locks > 0;
    }
    if (any_directories)
        count_own_directories(scan);
    for (size_t i = 0; i < scan->candidate_count; i++) {
        struct exclusion_candidate *candidate = &scan->candidates[i];
        candidate->excluded |=
            candidate->resource != NULL && candidate->resource->directory_locks > candidate->directory_locks;
    }
}

/*
 * Whether another owner holds a lock on a document by this name, or its removal would have to wait for an
 * earlier deferred cleanup.
 */
static bool name_is_locked(const struct exclusion_scan *scan, const struct resource *resource)
{
    struct core *core = scan->core;
    if (held_by_others(scan, resource))
        return true;
    if (!has_deferred_waiter(resource))
        return false;
    struct resource_name name = resource_name(resource, &core->arena);
    return acquire__document_is_blocked(core, scan->session, &name);
}

/* Returns: how many names of a document are locked: that with its type, and that without one. */
static int locked_name_count(const struct exclusion_scan *scan, const struct exclusion_candidate *candidate,
                             struct slice type, struct slice id)
{
    const struct resource_table *resources = &scan->core->owners->locks.resources;
    const struct resource *at = resource_with_id(resources, candidate->resource, id, NULL);
    int count = 0;
    core__work(scan->core, WORK_LOCK);
    for (; at != NULL; at = resource_with_id(resources, candidate->resource, id, at)) {
        struct slice of = resource_type(at);
        core__work(scan->core, WORK_LOCK);
        if (of.len == 0 || slice_equal(of, type))
            count += name_is_locked(scan, at);
    }
    return count;
}

static void exclude_document(struct exclusion_scan *scan, struct exclusion_candidate *candidate, struct slice key)
{
    struct core *core = scan->core;
    scan->documents = arena_grow(&core->arena, scan->documents, scan->document_count, &scan->document_capacity,
                                 sizeof *scan->documents);
    scan->documents[scan->document_count++] = key;
    candidate->locked_count++;
    candidate->excluded = candidate->locked_count > core->limits.ephemeral_batch;
}

/*
 * Excludes a document that is locked, by its type or, by a name without one, under every type. Before version 14 of
 * commands it counts once for each.
 */
static void check_document(struct exclusion_scan *scan, struct slice key)
{
    uint32_t number;
    uint16_t type_number;
    struct slice id;
    if (!doc_key_parse(key, &number, &type_number, &id))
        return;
    struct exclusion_candidate *candidate = candidate_of(scan, catalog_index_by_number(scan->core->catalog, number));
    if (candidate == NULL || candidate->resource == NULL || candidate->excluded)
        return;
    const struct mapping_type *type = mapping_type_by_number(candidate->index->mapping, type_number);
    if (type == NULL || map_get(&scan->core->pending, key) != NULL)
        return;
    int count = locked_name_count(scan, candidate, type->name, id);
    if (count > 1 && scan->core->command_version >= COMMAND_SINCE_EXCLUDED_ONCE)
        count = 1;
    while (count-- > 0)
        exclude_document(scan, candidate, key);
}

static uint32_t index_of_key(struct slice key)
{
    uint32_t index = 0;
    uint16_t type;
    struct slice id;
    (void)doc_key_parse(key, &index, &type, &id);
    return index;
}

/*
 * Sorts the exclusions, and drops documents of excluded indices: these are removed in batches,
 * locked or not.
 */
static void sort_exclusions(struct exclusion_scan *scan)
{
    struct core *core = scan->core;
    size_t count = scan->document_count;
    scan->indices = arena_alloc(&core->arena, (scan->candidate_count + 1) * sizeof *scan->indices);
    for (size_t i = 0; i < scan->candidate_count; i++)
        if (scan->candidates[i].excluded)
            scan->indices[scan->index_count++] = scan->candidates[i].index->number;
    if (scan->index_count > 1)
        qsort(scan->indices, scan->index_count, sizeof *scan->indices, compare_numbers);
    scan->document_count = 0;
    for (size_t i = 0; i < count; i++)
        if (!index_is_excluded(scan, index_of_key(scan->documents[i])))
            scan->documents[scan->document_count++] = scan->documents[i];
    if (scan->document_count > 1)
        qsort(scan->documents, scan->document_count, sizeof *scan->documents, slice_order);
}

static int find_exclusions(struct core *core, struct session *session, struct exclusion_scan *ret_scan)
{
    REQUIRE(session__state(session) == SESSION_REMOVING);
    struct exclusion_scan scan = {.core = core, .session = session};
    int r = ephemeral__list(core, session->id, &scan.keys, &scan.key_count);
    if (r < 0)
        return tl_trace(r);
    find_candidates(&scan);
    exclude_indices(&scan);
    for (size_t i = 0; i < scan.key_count; i++)
        check_document(&scan, scan.keys[i]);
    sort_exclusions(&scan);
    *ret_scan = scan;
    return 0;
}

/* A document's index and id, whatever its type. */
static struct slice id_key(struct arena *arena, uint32_t index, struct slice id)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    buf_u32be(&buf, index);
    buf_slice(&buf, id);
    struct slice key = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return key;
}

/* Returns: the ids of the excluded documents, sorted: an index may have a thousand types. */
static struct slice *excluded_ids(const struct exclusion_scan *scan)
{
    struct arena *arena = &scan->core->arena;
    struct slice *ids = arena_alloc(arena, (scan->document_count + 1) * sizeof *ids);
    for (size_t i = 0; i < scan->document_count; i++) {
        uint32_t number = 0;
        uint16_t type;
        struct slice id = SLICE_NONE;
        (void)doc_key_parse(scan->documents[i], &number, &type, &id);
        ids[i] = id_key(arena, number, id);
    }
    if (scan->document_count > 1)
        qsort(ids, scan->document_count, sizeof *ids, slice_order);
    return ids;
}

/* Documents that lose their paths in the lock table. */
struct cleared {
    struct resource_name *names; /* in the core's arena, with room for all */
    size_t count;
};

static void clear_lock_path(struct core *core, const struct resource *index_resource, const struct catalog_index *index,
                            struct slice type, struct slice id, struct cleared *cleared)
{
    struct resource_name name = {.index = index->name, .type = type, .id = id};
    core__work(core, WORK_LOCK);
    if (resource_document(&core->owners->locks.resources, index_resource, type, id) != NULL &&
        lock_resolve__known_document(core, &name, &cleared->names[cleared->count]))
        cleared->count++;
}

/* Clears the paths of hidden documents in the lock table. Requires: grants are suspended. */
static void clear_lock_paths(const struct exclusion_scan *scan)
{
    struct core *core = scan->core;
    struct lock_table *locks = &core->owners->locks;
    struct cleared cleared = {arena_alloc(&core->arena, (2 * scan->key_count + 1) * sizeof *cleared.names), 0};
    REQUIRE(locks->grants_suspended > 0);
    const struct slice *ids = excluded_ids(scan);
    for (size_t i = 0; i < scan->key_count; i++) {
        uint32_t number;
        uint16_t type_number;
        struct slice id, key = scan->keys[i];
        if (!doc_key_parse(key, &number, &type_number, &id) || index_is_excluded(scan, number) ||
            map_get(&core->pending, key) != NULL)
            continue;
        const struct catalog_index *index = catalog_index_by_number(core->catalog, number);
        const struct mapping_type *type = index == NULL ? NULL : mapping_type_by_number(index->mapping, type_number);
        const struct resource *index_resource = type == NULL ? NULL : resource_index(&locks->resources, index->name);
        if (index_resource == NULL)
            continue;
        if (!has_key(scan->documents, scan->document_count, key))
            clear_lock_path(core, index_resource, index, type->name, id, &cleared);
        if (scan->document_count == 0 || !has_key(ids, scan->document_count, id_key(&core->arena, number, id)))
            clear_lock_path(core, index_resource, index, SLICE_LIT(""), id, &cleared);
    }
    lock_resolve__move_documents(core, cleared.names, cleared.count);
}

/*
 * Defers the removals of excluded documents, which deletes their 'e' keys. Those that need not be
 * deferred are hidden too.
 */
static int defer_excluded(struct core *core, struct session *session, struct exclusion_scan *scan)
{
    struct deferral deferral = {.core = core, .session = session};
    size_t count = scan->document_count;
    scan->document_count = 0;
    for (size_t i = 0; i < count && deferral.r >= 0; i++) {
        size_t deferred_before = session->deferred_count;
        int r = ephemeral__defer(core, session->id, scan->documents[i], defer_removal, &deferral);
        if (r < 0)
            return tl_trace(r);
        if (session->deferred_count > deferred_before)
            scan->documents[scan->document_count++] = scan->documents[i];
    }
    lock_resolve__move_documents(core, deferral.moved, deferral.moved_count);
    return deferral.r;
}

/*
 * Hides all documents of the session at the unit's timestamp, except the excluded ones.
 * Returns: 0 and whether all are hidden; fatal codes.
 */
static int hide_documents(struct core *core, struct session *session, bool *ret_all_hidden)
{
    struct exclusion_scan scan;
    int r = find_exclusions(core, session, &scan);
    if (r == 0)
        r = defer_excluded(core, session, &scan);
    if (r < 0)
        return tl_trace(r);
    for (size_t i = 0; i < session->ephemeral_counter_count; i++) {
        const struct ephemeral_counter *counter = &session->ephemeral_counters[i];
        const struct catalog_index *index = catalog_index_by_number(core->catalog, counter->index);
        if (counter->count == 0 || index == NULL || index_is_excluded(&scan, counter->index))
            continue;
        counter__add(&core->counters, counters__of(&core->counters, counter->index), counter->type,
                     -(int64_t)counter->count);
        session->removed_count += counter->count;
    }
    clear_lock_paths(&scan);
    const struct session_tombstone_exclusions exclusions = {scan.indices, scan.index_count, scan.documents,
                                                            scan.document_count};
    session_tombstone__put(core, session->id, &exclusions);
    r = ephemeral__record_deletes(core, session->id);
    *ret_all_hidden = scan.index_count == 0;
    return r;
}

/* Returns: the limits of a batch of `count` documents. */
static struct ephemeral_batch_max batch_of(const struct core *core, size_t count)
{
    bool by_work = core->command_version >= COMMAND_SINCE_WORK_BATCHES;
    return (struct ephemeral_batch_max){count, by_work ? (uint64_t)count * WORK_PER_DOCUMENT : EPHEMERAL_WORK_ANY};
}

/* Charges the end of a session, and what exceeds *left to what the step has kept for other parts. */
static void charge_finish(struct core *core, size_t *left, uint64_t cost)
{
    if (cost > *left)
        cost_charge(&core->owners->cost_kept, cost - *left);
    cost_charge(left, cost);
}

/*
 * Finds whether its documents fit one batch. Charges *left for the work of those that take more than
 * usual.
 */
static int fit_one_batch(struct core *core, const struct session *session, size_t *left, bool *ret_fit)
{
    struct ephemeral_batch_max most = batch_of(core, core->limits.ephemeral_batch);
    uint64_t work = 0, usual = session->ephemeral_count * WORK_PER_DOCUMENT;
    *ret_fit = session->ephemeral_count <= most.count;
    if (session->ephemeral_count == 0 || !*ret_fit || most.work == EPHEMERAL_WORK_ANY)
        return 0;
    int r = ephemeral__estimate_work(core, session->id, most.work, &work);
    *ret_fit = work <= most.work;
    charge_finish(core, left, work > usual ? (work - usual) / WORK_PER_DOCUMENT : 0);
    return r < 0 ? tl_trace(r) : 0;
}

/*
 * Removes its documents in this unit if they fit one batch; else hides them, for later units to
 * purge.
 */
static int remove_documents(struct core *core, struct session *session, size_t *left, bool *ret_more,
                            bool *ret_all_hidden)
{
    bool fit;
    int r = fit_one_batch(core, session, left, &fit);
    if (r < 0)
        return tl_trace(r);
    *ret_all_hidden = false;
    if (fit) /* all of them, although the estimate may be too low */
        return remove_batch(core, session,
                            (struct ephemeral_batch_max){core->limits.ephemeral_batch, EPHEMERAL_WORK_ANY}, ret_more);
    *ret_more = true;
    return hide_documents(core, session, ret_all_hidden);
}

/* --- Actions ------------------------------------------------------------------------------------------------------ */

static void record_failure(struct session *session, struct slice reason)
{
    if (session->first_failure.len == 0)
        buf_slice(&session->first_failure, reason);
}

/*
 * Runs one action. Defers it while another owner blocks it; sets it aside if its script exceeds the
 * steps left, or it lacks memory.
 */
static int run_action(struct core *core, struct session *session, const struct write_item *item)
{
    REQUIRE(session__state(session) == SESSION_ACTING && core->shared_steps == NULL);
    struct command *command = deferred__command();
    core__free_at_end(core, command);
    command->write.items = arena_alloc(&command->arena, sizeof *item);
    command->write.items[0] = *item;
    command->write.item_count = 1;
    core->shared_steps = &session->script_steps_left;
    int r = acquire__run_cleanup(core, session, command);
    core->shared_steps = NULL;
    if (r < 0)
        return tl_trace(r);
    if (r > 0) {
        session->actions_deferred++;
        return deferred__add(core, session, &command->write.items[0], false);
    }
    const struct write_result *result = &command->write.results[0];
    enum set_aside_reason reason;
    if (result->outcome != WRITE_FAILED) {
        session->actions_done++;
    } else if (deferred__is_set_aside(result, &reason)) {
        session->actions_set_aside++;
        deferred__add_set_aside(core, session, &command->write.items[0], reason);
    } else {
        record_failure(session, result->problem.reason);
    }
    return 0;
}

/* Runs an action, or sets it aside if it has ended the process too often. */
static int try_action(struct core *core, struct session *session, const struct write_item *item, size_t number)
{
    REQUIRE(number == session->actions_processed); /* in their order, each once */
    if (cleanup_attempt__count(core, session->id, 0, number) >= CLEANUP_ATTEMPTS_MAX) {
        session->actions_set_aside++;
        deferred__add_set_aside(core, session, item, SET_ASIDE_ENDED_PROCESS);
        return 0;
    }
    cleanup_attempt__begin(core, session->id, 0, number);
    int r = run_action(core, session, item);
    cleanup_attempt__end(core);
    return r;
}

static void report_actions(const struct core *core, struct session *session, size_t count)
{
    bool plain = core->command_version >= COMMAND_SINCE_PLAIN_TEXTS;
    buf_printf(&session->end_report, "\nactions done: %zu of %zu", session->actions_done, count);
    if (session->actions_deferred > 0)
        buf_printf(&session->end_report,
                   plain ? "\nactions deferred until other owners' locks are released: %zu"
                         : "\nactions that are done when their documents' locks go: %zu",
                   session->actions_deferred);
    if (session->actions_set_aside > 0 && core->command_version >= COMMAND_SINCE_MEMORY_GIVEN)
        buf_printf(&session->end_report,
                   "\nactions put aside, since the server ended in them, their scripts take too long or they need more "
                   "memory than is left: %zu",
                   session->actions_set_aside);
    else if (session->actions_set_aside > 0)
        buf_printf(&session->end_report,
                   plain ? "\nactions put aside, since the server ended in them or their scripts take too long: %zu"
                         : "\nactions that are put aside, since the server ended in them or their scripts take too "
                           "long: %zu",
                   session->actions_set_aside);
    if (session->first_failure.len > 0)
        buf_printf(&session->end_report, "\nan action failed: %.*s", SLICE_ARG(buf_as_slice(&session->first_failure)));
}

/* Marks all actions as finished: nothing of on_expire is left to run. */
static void finish_actions(struct core *core, struct session *session)
{
    session__enter(core, session, SESSION_ACTED);
    cleanup_attempt__forget_session(core, session->id);
}

static void free_actions(struct core *core, struct session *session)
{
    INSIST(core->owners->action_bytes >= session->on_expire.len);
    core->owners->action_bytes -= session->on_expire.len;
    mem_free((char *)(uintptr_t)session->on_expire.data);
    session->on_expire = SLICE_NONE;
}

/*
 * Runs the on_expire actions in order, each by itself: if one is deferred, later ones on its
 * document are, too.
 */
static int run_actions(struct core *core, struct session *session, size_t *left)
{
    REQUIRE(session__state(session) == SESSION_ACTING && list_empty(&session->transactions));
    struct command *all = deferred__command();
    struct slice actions = arena_copy(&all->arena, session->on_expire);
    size_t count = 0;
    core__free_at_end(core, all);
    core__work(core, actions.len / WORK_BYTES);
    int r = actions.len == 0 ? 0 : action_decode_all(actions, &all->arena, &all->write.items, &count);
    while (r == 0 && session->actions_processed<count && * left> 0) {
        struct cost_counters before = cost_counters_of(core);
        r = try_action(core, session, &all->write.items[session->actions_processed], session->actions_processed);
        session->actions_processed++;
        cost_charge(left, 1 + cost_of_action(core, &before));
    }
    if (core->command_version >= COMMAND_SINCE_WORK_BATCHES) /* after the loop: each batch runs an action */
        cost_charge(left, actions.len / ACTION_BYTES_PER_COST);
    if (r < 0 || session->actions_processed < count)
        return r;
    if (count > 0)
        report_actions(core, session, count);
    finish_actions(core, session);
    return 0;
}

/* --- Phases of termination ---------------------------------------------------------------------------------------- */

/*
 * Rolls back its transactions, up to one for which the account has too little. `all`: *left before the points that are
 * not charged to it yet.
 */
static void end_transactions(struct core *core, struct session *session, size_t *left, size_t all)
{
    char cause[100];
    session__cause_of_end(session, cause, sizeof cause);
    while (!list_empty(&session->transactions) && *left > 0) {
        struct txn *txn = list_entry(session->transactions.next, struct txn, of_session);
        uint64_t cost = txn__rollback_cost(core, txn);
        if (!cost_fits(core, all - *left, cost)) {
            *left = 0;
            return;
        }
        buf_printf(&session->end_report, "\ntransaction #%llu is rolled back",
                   (unsigned long long)txn->owner.locks.number);
        cost_charge(left, cost);
        txn__abort(core, txn, "%s", cause);
    }
}

/*
 * Releases its locks, reports the end and completes the command that closed it. Its documents are
 * removed or hidden.
 */
static void finish_end(struct core *core, struct session *session)
{
    REQUIRE(!session->locks_released); /* it is reported once */
    struct owners *owners = core->owners;
    struct buf *report = &session->end_report;
    bool plain = core->command_version >= COMMAND_SINCE_PLAIN_TEXTS;
    size_t released = owner__release_locks(core, &session->owner);
    if (session->removed_count > 0)
        buf_printf(report,
                   plain ? "\nephemeral documents removed: %zu" : "\ndocuments that lived with it and are removed: %zu",
                   session->removed_count);
    if (session->deferred_count > 0)
        buf_printf(report,
                   plain ? "\nephemeral documents removed when other owners' locks are released: %zu"
                         : "\ndocuments that go when their locks do: %zu",
                   session->deferred_count);
    if (released > 0)
        buf_printf(report, "\nlocks released: %zu", released);
    if (session->end_kind != SESSION_END_CLOSED)
        lock_events_add(&owners->lock_events, core->ts, "expiry", buf_as_slice(report));
    if (session->close_command != NULL)
        core__complete(core, tl_steal(session->close_command));
}

/*
 * Queues the 'e' keys of deleted indices that the session leaves, in the open unit, for MAINTAIN to
 * remove.
 */
static void put_orphan_purge(struct core *core, const struct session *session)
{
    REQUIRE(core->open && session->orphan_count > 0);
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    store_batch_put(core->batch, SPACE_SYSTEM, purge_key(&key, PURGE_EPHEMERAL_KEYS, core->ts, session->id),
                    SLICE_LIT(""));
    buf_deinit(&key);
}

/* Deletes its record and frees it. */
static void delete_session(struct core *core, struct session *session)
{
    struct owners *owners = core->owners;
    if (!session->locks_released)
        finish_end(core, session);
    session__enter(core, session, SESSION_ENDED);
    session__drop_record(core, session);
    core__note_change(core, slice_hash(session->id));
    if (session->orphan_count > 0)
        put_orphan_purge(core, session);
    map_remove(&owners->sessions, session->id);
    session__free(core, session);
}

/* Returns: the cost of the last part of the cleanup, without documents that take more than usual. */
static uint64_t cost_of_finish(const struct core *core, const struct session *session)
{
    const struct lock_owner *owner = &session->owner.locks;
    bool plain = core->command_version < COMMAND_SINCE_PLAIN_LOCKS;
    return 1 + session->ephemeral_count + (plain ? owner->lock_count : owner->hold_count) / LOCKS_PER_COST;
}

/*
 * Last part of the cleanup: removes or hides the documents and releases the locks. Later steps
 * purge hidden documents, also after a restart.
 * Returns: 0; 1 the locks remain, because excluded indices still have documents; fatal codes.
 */
static int finish_cleanup(struct core *core, struct session *session, size_t *left)
{
    REQUIRE(list_empty(&session->transactions) && list_empty(&session->waits));
    bool more = false, all_hidden = false;
    session__enter(core, session, SESSION_REMOVING);
    if (list_linked(&session->of_terminating))
        list_remove(&session->of_terminating);
    free_actions(core, session);
    charge_finish(core, left, cost_of_finish(core, session));
    int r = remove_documents(core, session, left, &more, &all_hidden);
    if (r < 0)
        return tl_trace(r);
    if (!more) {
        delete_session(core, session);
        return 0;
    }
    if (all_hidden) {
        finish_end(core, session);
        session__enter(core, session, SESSION_PURGING);
    }
    list_append(&core->owners->sessions_to_purge, &session->of_terminating);
    session__drop_record(core, session);
    return !all_hidden;
}

/*
 * Whether the step has enough left for the last part of the cleanup. `all`: points of the cleanup of the step,
 * `before`: those that were left when that of the session began.
 */
static bool may_finish(const struct core *core, const struct session *session, size_t left, size_t all, size_t before)
{
    uint64_t cost = cost_of_finish(core, session);
    if (core->command_version < COMMAND_SINCE_STEP_ACCOUNT)
        return true;
    return (left == all || cost <= left) && cost_fits(core, before - left, cost);
}

/*
 * Continues the cleanup while *left > 0: transactions, actions, documents. It begins when the last
 * wait of the session has ended. `all`: as in session__continue_cleanup().
 * Returns: 0 the locks are released; 1 some of it remains; fatal codes.
 */
static int continue_cleanup(struct core *core, struct session *session, size_t *left, size_t all)
{
    REQUIRE(core->owners->locks.grants_suspended > 0); /* no request sees a part of the locks released */
    session__touch(core, session);
    if (!list_empty(&session->waits))
        return 1;
    size_t before = *left;
    end_transactions(core, session, left, before);
    if (!list_empty(&session->transactions) || *left == 0)
        return 1;
    int r = session->actions_finished ? 0 : run_actions(core, session, left);
    if (r < 0)
        return tl_trace(r);
    if (!session->actions_finished || *left == 0)
        return 1;
    if (may_finish(core, session, *left, all, before))
        return finish_cleanup(core, session, left);
    *left = 0;
    return 1;
}

static void begin_termination(struct core *core, struct session *session, enum session_end end_kind)
{
    REQUIRE(core->open);
    session__touch(core, session);
    session->end_kind = end_kind;
    session->script_steps_left = update_steps_shared(&core->limits.script);
    deadline_set(&core->owners->leases, &session->lease, TL_TS_MAX);
    session__enter(core, session, SESSION_ACTING);
    metric_add(&core->metrics.session_ends[end_kind], 1);
    if (core->effects != NULL && core->effects->session_ended != NULL)
        core->effects->session_ended(core->effects, session->id, session_number(session), session__end_text(end_kind));
    describe_owner(&session->owner.locks, core, &session->end_report);
    buf_printf(&session->end_report, " %s", session__end_text(end_kind));
    if (end_kind == SESSION_END_CLOSED)
        finish_actions(core, session);
}

/* Cancels the waits of the session and of its transactions. None of them is resumed any more. */
static void cancel_waits(struct core *core, struct session *session)
{
    REQUIRE(session->terminating);
    list_for_each(link, &session->waits)
    {
        core__work(core, WORK_LOCK);
        wait__cancel(core, list_entry(link, struct wait, of_session), WAIT_SESSION_ENDED);
    }
    list_for_each(link, &session->transactions)
    {
        struct txn *txn = list_entry(link, struct txn, of_session);
        core__work(core, WORK_LOCK);
        if (txn->wait != NULL)
            wait__cancel(core, txn->wait, WAIT_SESSION_ENDED);
    }
}

void session__begin_termination(struct core *core, struct session *session, enum session_end end_kind)
{
    REQUIRE(MAGIC_VALID(session, SESSION_MAGIC));
    begin_termination(core, session, end_kind);
    cancel_waits(core, session);
    list_append(&core->owners->sessions_to_clean, &session->of_terminating);
}

/*
 * Suspends grants: no request sees the locks of its transactions released before the batch is
 * cleaned up.
 */
int session__terminate(struct core *core, struct session *session, enum session_end end_kind)
{
    REQUIRE(MAGIC_VALID(session, SESSION_MAGIC));
    struct lock_table *locks = &core->owners->locks;
    size_t all = core->limits.ephemeral_batch, left = all;
    begin_termination(core, session, end_kind);
    lock_table_suspend_grants(locks);
    cancel_waits(core, session);
    int r = grants__end_some_cancelled(core, &left);
    if (r == 0)
        r = continue_cleanup(core, session, &left, all);
    if (r > 0 && session->cleanup_pending) {
        list_append(&core->owners->sessions_to_clean, &session->of_terminating);
        session__drop_record(core, session);
    }
    cost_charge_work(core, WRITE_WORK_PER_COST * (uint64_t)(all - left));
    lock_table_resume_grants(locks);
    if (core->command_version >= COMMAND_SINCE_STEP_ACCOUNT)
        cost_charge(&core->owners->cost_left, all - left);
    return r;
}

/* Returns: the first session in owners->sessions_to_clean. Requires: there is one. */
static struct session *first_to_clean(const struct core *core)
{
    REQUIRE(!list_empty(&core->owners->sessions_to_clean));
    return list_entry(core->owners->sessions_to_clean.next, struct session, of_terminating);
}

bool session__can_clean(const struct core *core)
{
    return !list_empty(&core->owners->sessions_to_clean) && list_empty(&first_to_clean(core)->waits);
}

uint64_t session__next_end_cost(const struct core *core)
{
    REQUIRE(session__can_clean(core));
    const struct session *session = first_to_clean(core);
    if (list_empty(&session->transactions))
        return cost_of_finish(core, session);
    return txn__rollback_cost(core, list_entry(session->transactions.next, struct txn, of_session));
}

int session__continue_cleanup(struct core *core, size_t *left, size_t all)
{
    REQUIRE(session__can_clean(core));
    REQUIRE(core->open && core->owners->locks.grants_suspended > 0);
    struct session *session = first_to_clean(core);
    int r = continue_cleanup(core, session, left, all);
    return r < 0 ? tl_trace(r) : 0;
}

void session__drop_records(struct core *core)
{
    REQUIRE(core->open);
    list_for_each(link, &core->owners->sessions_to_clean)
    {
        core__work(core, WORK_LOCK);
        cost_charge_work(core, WORK_LOCK);
        session__drop_record(core, list_entry(link, struct session, of_terminating));
    }
}

int session__purge_batch(struct core *core, size_t *left)
{
    REQUIRE(core->open && !list_empty(&core->owners->sessions_to_purge));
    struct session *session = list_entry(core->owners->sessions_to_purge.next, struct session, of_terminating);
    struct cost_counters before = cost_counters_of(core);
    size_t count = session->ephemeral_count;
    bool more = false;
    session__touch(core, session);
    int r = remove_batch(core, session, batch_of(core, core->limits.purge_batch), &more);
    if (core->command_version >= COMMAND_SINCE_STEP_ACCOUNT)
        cost_charge(left, cost_since(core, &before, count - session->ephemeral_count));
    if (r < 0 || more)
        return r;
    session_tombstone__purged(core, session->id);
    delete_session(core, session);
    return 0;
}
