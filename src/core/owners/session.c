/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: opening, keepalive, termination, ephemeral documents. README-locks.md, "Sessions". */
#include "core/owners/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/magic.h"
#include "base/sm.h"
#include "core/catalog/catalog.h"
#include "core/catalog/counter.h"
#include "core/catalog/purge.h"
#include "core/command/command.h"
#include "core/documents/action.h"
#include "core/documents/doc.h"
#include "core/documents/ephemeral.h"
#include "core/documents/session_tombstone.h"
#include "core/documents/update.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/owners/acquire.h"
#include "core/owners/cleanup_attempt.h"
#include "core/owners/cost.h"
#include "core/owners/deferred.h"
#include "core/owners/lock_event.h"
#include "core/owners/lock_resolve.h"
#include "core/owners/owners.h"
#include "core/owners/owners_step.h"
#include "core/owners/save_pieces.h"
#include "core/owners/txn.h"
#include "core/owners/wait.h"
#include "core/step/core.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "mapping/mapping.h"

#define SESSION_NAME_BYTES_MAX 1024
#define SESSION_TTL_US_MAX (24 * 3600 * TL_SECOND)
#define SESSION_ACTIONS_BYTES_MAX ((size_t)1 << 20)

/* --- States ------------------------------------------------------------------------------------------------------- */

static const struct sm_state states[SESSION_STATE_COUNT] = {
    [SESSION_LIVE] = {"live", SM_TO(SESSION_ACTING)},
    [SESSION_ACTING] = {"acting", SM_TO(SESSION_ACTED)},
    [SESSION_ACTED] = {"acted", SM_TO(SESSION_REMOVING)},
    [SESSION_REMOVING] = {"removing", SM_TO(SESSION_PURGING) | SM_TO(SESSION_ENDED)},
    [SESSION_PURGING] = {"purging", SM_TO(SESSION_ENDED)},
    [SESSION_ENDED] = {"ended", 0},
};

static const struct sm machine = {"session", states, SESSION_STATE_COUNT};

enum session_state session__state(const struct session *session)
{
    REQUIRE(MAGIC_VALID(session, SESSION_MAGIC));
    if (!session->terminating)
        return SESSION_LIVE;
    if (session->cleanup_pending)
        return session->actions_finished ? SESSION_ACTED : SESSION_ACTING;
    return session->locks_released ? SESSION_PURGING : SESSION_REMOVING;
}

void session__enter(struct core *core, struct session *session, enum session_state state)
{
    SM_CHECK(&machine, session__state(session), state);
    REQUIRE(session->lease.at == TL_TS_MAX); /* none may enter SESSION_LIVE */
    REQUIRE(state < SESSION_REMOVING || (list_empty(&session->transactions) && list_empty(&session->waits)));
    REQUIRE(state < SESSION_PURGING || session->owner.locks.hold_count == 0);
    switch (state) {
    case SESSION_ACTING:
        session->cleanup_pending = true;
        session__set_terminating(core, session);
        break;
    case SESSION_ACTED: session->actions_finished = true; break;
    case SESSION_REMOVING: session->cleanup_pending = session->actions_finished = false; break;
    case SESSION_PURGING: session->locks_released = true; break;
    default: return; /* no flag says SESSION_ENDED */
    }
    ENSURE(session__state(session) == state);
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

struct session *session__make(struct core *core, struct slice id, struct slice name, uint64_t ttl_us, tl_ts created)
{
    REQUIRE(id.len > 0);
    struct session *session = mem_zalloc(sizeof *session);
    session->magic = SESSION_MAGIC;
    session->owner = (struct owner){.kind = OWNER_SESSION, .session = session};
    lock_owner_init(&core->owners->locks, &session->owner.locks, NULL, &session->owner);
    session->id = slice_make(mem_strdup(id.data, id.len), id.len);
    session->name = slice_make(mem_strdup(name.data, name.len), name.len);
    session->ttl_us = ttl_us;
    session->created = created;
    session->owner.locks.age = created;
    session->lease.at = TL_TS_MAX; /* a session loaded from the store has no lease until RESTART */
    session->end_report = session->first_failure = BUF_INIT(BUF_UNLIMITED);
    list_init(&session->transactions);
    list_init(&session->waits);
    return session;
}

void session__register(struct core *core, struct session *session)
{
    struct owners *owners = core->owners;
    map_put(&owners->sessions, session->id, session);
    save_chunk__add(&owners->session_chunks, &session->saved,
                    sizeof *session + session->id.len + session->name.len + session->on_expire.len);
}

void session__touch(struct core *core, struct session *session)
{
    save_chunk__touch(&core->owners->session_chunks, &session->saved);
}

void session__free(struct core *core, struct session *session)
{
    struct owners *owners = core->owners;
    REQUIRE(MAGIC_VALID(session, SESSION_MAGIC));
    REQUIRE(list_empty(&session->transactions) && list_empty(&session->waits) && session->close_command == NULL);
    core__work(core, WORK_OWNER);
    uint64_t piece = save_chunk__remove(&owners->session_chunks, &session->saved);
    if (piece != 0)
        save_pieces__delete(&owners->pieces, piece);
    deadline_set(&owners->leases, &session->lease, TL_TS_MAX);
    lock_release_all(&owners->locks, &session->owner.locks);
    lock_owner_deinit(&session->owner.locks);
    mem_free((char *)(uintptr_t)session->id.data);
    mem_free((char *)(uintptr_t)session->name.data);
    INSIST(owners->action_bytes >= session->on_expire.len);
    owners->action_bytes -= session->on_expire.len;
    mem_free((char *)(uintptr_t)session->on_expire.data);
    if (list_linked(&session->of_terminating))
        list_remove(&session->of_terminating);
    INSIST(owners->terminating_count >= session->terminating);
    owners->terminating_count -= session->terminating;
    buf_deinit(&session->end_report);
    buf_deinit(&session->first_failure);
    mem_free(session->ephemeral_counters);
    magic_clear(&session->magic);
    mem_free(session);
}

/* Restarts the lease. Returns: the timestamp at which it is expected to expire. */
static tl_ts renew(struct core *core, struct session *session)
{
    REQUIRE(session__state(session) == SESSION_LIVE);
    uint64_t end = deadline_after(core, session->ttl_us);
    deadline_set(&core->owners->leases, &session->lease, end);
    return deadline_ts(core, end);
}

static void explain_missing(struct slice id, struct arena *arena, struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_SESSION_MISSING, "no session [%.*s]: it has ended, or never was",
                SLICE_ARG(id));
}

struct session *session__by_number(const struct core *core, struct slice number)
{
    size_t position = 0;
    struct slice id;
    void *value;
    uint64_t wanted_number;
    if (!slice_to_u64(number, &wanted_number))
        return NULL;
    while (map_next(&core->owners->sessions, &position, &id, &value)) {
        struct session *session = value;
        if (session_number(session) == wanted_number && !session->locks_released)
            return session;
    }
    return NULL;
}

struct session *session__find(struct core *core, struct slice id, struct arena *arena, struct problem *ret_problem)
{
    struct session *session = owners_live_session(core->owners, id);
    if (session == NULL)
        explain_missing(id, arena, ret_problem);
    return session;
}

int core_find_session(struct store *store, struct slice session, struct arena *arena, struct problem *ret_problem)
{
    int r = session__check_stored(store, session);
    if (r == STORE_NOT_FOUND)
        explain_missing(session, arena, ret_problem);
    return r < 0 ? tl_trace(r) : r == 0 ? 0 : 1;
}

int session__check_ephemeral(struct core *core, struct slice session, struct arena *arena, struct problem *ret_problem)
{
    return session__find(core, session, arena, ret_problem) == NULL ? 1 : 0;
}

static bool check_open(struct core *core, struct command *command, struct slice actions)
{
    const struct session_command *request = &command->session;
    struct problem *problem = &command->problem;
    struct arena *arena = &command->arena;
    if (request->id.len == 0 || owners_session(core->owners, request->id) != NULL)
        problem_set(problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "there is a session [%.*s] already",
                    SLICE_ARG(request->id));
    else if (request->id.len > SESSION_ID_BYTES_MAX)
        problem_set(problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "the id of a session has at most [%d] bytes",
                    SESSION_ID_BYTES_MAX);
    else if (core->owners->sessions.count >= core->limits.sessions_max)
        problem_set(problem, arena, PROBLEM_LIMIT_EXCEEDED, "there are [%zu] sessions already",
                    core->limits.sessions_max);
    else if (request->ttl_us < TL_SECOND || request->ttl_us > SESSION_TTL_US_MAX)
        problem_set(problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "[ttl] must be between 1s and 24h");
    else if (request->name.len > SESSION_NAME_BYTES_MAX)
        problem_set(problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "[name] is at most [%d] bytes long",
                    SESSION_NAME_BYTES_MAX);
    else if (request->on_expire_count > SESSION_ACTIONS_MAX || actions.len > SESSION_ACTIONS_BYTES_MAX)
        problem_set(problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "[on_expire] is at most [%d] actions and [%zu] bytes",
                    SESSION_ACTIONS_MAX, SESSION_ACTIONS_BYTES_MAX);
    return problem->type == PROBLEM_NONE;
}

int core__do_session_open(struct core *core, struct command *command)
{
    struct session_command *request = &command->session;
    struct buf actions = BUF_INIT(BUF_UNLIMITED);
    action_encode_all(&actions, request->on_expire, request->on_expire_count);
    if (check_open(core, command, buf_as_slice(&actions))) {
        struct session *session = session__make(core, request->id, request->name, request->ttl_us, core->ts);
        session->on_expire = slice_make(mem_strdup(actions.data, actions.len), actions.len);
        core->owners->action_bytes += actions.len;
        request->expires_at = renew(core, session);
        session__register(core, session);
        session__put_record(core, session);
        request->number = session_number(session);
        metric_add(&core->metrics.sessions_opened, 1);
    }
    buf_deinit(&actions);
    return 0;
}

int core__do_session_keepalive(struct core *core, struct command *command)
{
    struct session *session = session__find(core, command->session.id, &command->arena, &command->problem);
    if (session == NULL)
        return 0;
    command->session.expires_at = renew(core, session);
    return 0;
}

int core__do_session_attach(struct core *core, struct command *command)
{
    struct session *session = session__find(core, command->session.id, &command->arena, &command->problem);
    if (session == NULL)
        return 0;
    command->session.expires_at = renew(core, session);
    session->attachment = command->session.attachment;
    session__touch(core, session);
    return 0;
}

/* --- Commands that end a session ---------------------------------------------------------------------------------- */

/* The connection was lost. A session that has since been attached to another one lives on. */
int core__do_session_detach(struct core *core, struct command *command)
{
    struct session *session = owners_live_session(core->owners, command->session.id);
    if (session == NULL || session->attachment != command->session.attachment)
        return 0;
    int r = session__terminate(core, session, SESSION_END_DETACHED);
    return r < 0 ? tl_trace(r) : 0;
}

int core__do_session_close(struct core *core, struct command *command)
{
    struct session *session = command->session.force ? session__by_number(core, command->session.id) : NULL;
    if (session == NULL || session->terminating)
        session = session__find(core, command->session.id, &command->arena, &command->problem);
    if (session == NULL)
        return 0;
    command->session.id = arena_copy(&command->arena, session->id);
    int r = session__terminate(core, session, command->session.force ? SESSION_END_FORCED : SESSION_END_CLOSED);
    if (r <= 0)
        return r < 0 ? tl_trace(r) : 0;
    session->close_command = command; /* finish_end() completes it */
    return CORE_WAITS;
}

static const char *end_text(enum session_end end_kind)
{
    switch (end_kind) {
    case SESSION_END_CLOSED: return "was closed";
    case SESSION_END_EXPIRED: return "has expired";
    case SESSION_END_FORCED: return "was ended by force";
    case SESSION_END_DETACHED: return "has lost its connection";
    }
    return "";
}

/* --- Removing documents in batches -------------------------------------------------------------------------------- */

struct deferral {
    struct core *core;
    struct session *session;
    int r;
};

/*
 * Defers the removal of a document that another owner has locked, until that lock is released.
 * `hidden`: the session's tombstone already hides the document; no lock prevents its purge.
 * Returns: whether the removal is deferred.
 */
static bool defer_removal(void *context, const struct write_item *removal, bool hidden)
{
    struct deferral *deferral = context;
    struct core *core = deferral->core;
    if (hidden)
        return false;
    if (!acquire__removal_is_blocked(core, deferral->session, removal)) {
        struct resource_name name = {removal->index, SLICE_NONE, removal->type, removal->id};
        lock_resolve__move_document(core, &name, SLICE_NONE); /* the document loses its path */
        return false;
    }
    int r = deferred__add(core, deferral->session, removal, true);
    deferral->r = r < 0 ? r : deferral->r;
    deferral->session->deferred_count++;
    return true;
}

/* Removes up to `most` documents, or defers their removal. */
static int remove_batch(struct core *core, struct session *session, size_t most, bool *ret_more)
{
    struct deferral deferral = {core, session, 0};
    int r =
        ephemeral__purge_batch(core, session->id, most, defer_removal, &deferral, &session->removed_count, ret_more);
    return r < 0 ? r : deferral.r;
}

/* --- Hiding all documents at one timestamp ------------------------------------------------------------------------ */

/* An index that contains documents of the session. */
struct exclusion_candidate {
    const struct catalog_index *index;
    const struct resource *index_resource; /* NULL: no lock is held or requested in it */
    size_t locked_count;                   /* documents of the session that are blocked */
    bool excluded;                         /* the whole index */
};

/*
 * Finds the documents of a session that its tombstone must not hide, because other owners have them
 * locked. A locked document is excluded until its lock is released. An index is excluded as a whole
 * if another owner has locked it, one of its directories, or too many of these documents; its
 * documents are removed in batches. One pass over the lock table, whatever the number of indices.
 */
struct exclusion_scan {
    struct core *core;
    struct session *session;
    struct slice *keys; /* of all its ephemeral documents, sorted */
    size_t key_count;
    struct exclusion_candidate *candidates; /* sorted by address of their resource */
    size_t candidate_count;
    uint32_t *indices; /* numbers of excluded ones, sorted */
    size_t index_count;
    struct slice *documents; /* keys of excluded ones, sorted by sort_exclusions() */
    size_t document_count;
    size_t document_capacity;
};

static int compare_keys(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static bool has_key(const struct slice *keys, size_t count, struct slice key)
{
    return count > 0 && bsearch(&key, keys, count, sizeof key, compare_keys) != NULL;
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

/* By address: the order serves the search only, no result depends on it. */
static int compare_resources(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct exclusion_candidate *)a)->index_resource,
              y = (uintptr_t)((const struct exclusion_candidate *)b)->index_resource;
    return (x > y) - (x < y);
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
            .index = index, .index_resource = resource_index(&core->owners->locks.resources, index->name)};
    }
    if (scan->candidate_count > 1)
        qsort(scan->candidates, scan->candidate_count, sizeof *scan->candidates, compare_resources);
}

/* Whether an owner other than the session holds a lock on a resource. */
static bool held_by_others(const struct exclusion_scan *scan, const struct resource *resource)
{
    list_for_each(link, &resource->holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_resource);
        if (hold->mode != LOCK_NONE && hold->owner != &scan->session->owner.locks)
            return true;
    }
    return false;
}

/* Whether a deferred cleanup waits for a resource; it would be first in the queue. */
static bool has_deferred_waiter(const struct resource *resource)
{
    struct lock_waiter_iter waiters = lock_waiter_iter(resource);
    const struct lock_request *request;
    enum lock_mode mode;
    return lock_waiter_iter_next(&waiters, &request, &mode) && lock_request_owner(request)->cleanup;
}

/*
 * Excludes a locked document of the session; a name without a type covers this id under every type.
 */
static void exclude_document(struct exclusion_scan *scan, struct exclusion_candidate *candidate,
                             const struct resource_name *name)
{
    struct core *core = scan->core;
    const struct catalog_index *index = candidate->index;
    char bytes[DOC_KEY_BYTES_MAX];
    for (size_t i = 0; i < mapping_type_count(index->mapping) && name->id.len <= DOC_ID_BYTES_MAX; i++) {
        const struct mapping_type *type = mapping_type_at(index->mapping, i);
        struct slice key = doc_key(bytes, index->number, type->number, name->id);
        core__work(core, WORK_LOCK);
        if ((name->type.len > 0 && !slice_equal(name->type, type->name)) || map_get(&core->pending, key) != NULL ||
            !has_key(scan->keys, scan->key_count, key))
            continue;
        scan->documents = arena_grow(&core->arena, scan->documents, scan->document_count, &scan->document_capacity,
                                     sizeof *scan->documents);
        scan->documents[scan->document_count++] = arena_copy(&core->arena, key);
        candidate->locked_count++;
    }
}

static struct exclusion_candidate *candidate_of(const struct exclusion_scan *scan, const struct resource *resource)
{
    while (resource != NULL && resource->kind != RESOURCE_INDEX)
        resource = resource->parent;
    struct exclusion_candidate key = {.index_resource = resource};
    return resource == NULL ? NULL
                            : bsearch(&key, scan->candidates, scan->candidate_count, sizeof key, compare_resources);
}

/*
 * Excludes what a resource covers if another owner holds a lock on it, or if the removal of the
 * document would have to wait for an earlier deferred cleanup.
 */
static void check_resource(struct exclusion_scan *scan, const struct resource *resource)
{
    struct core *core = scan->core;
    bool document = resource->kind == RESOURCE_DOCUMENT, held = held_by_others(scan, resource);
    if (!held && !(document && has_deferred_waiter(resource)))
        return;
    struct exclusion_candidate *candidate = candidate_of(scan, resource);
    if (candidate == NULL || candidate->excluded)
        return;
    struct resource_name name = document ? resource_name(resource, &core->arena) : (struct resource_name){0};
    if (document && (held || acquire__document_is_blocked(core, scan->session, &name)))
        exclude_document(scan, candidate, &name);
    candidate->excluded = !document || candidate->locked_count > core->limits.ephemeral_batch;
}

static void check_resources(struct exclusion_scan *scan)
{
    const struct resource_table *resources = &scan->core->owners->locks.resources;
    bool all = held_by_others(scan, resources->root);
    for (size_t i = 0; i < scan->candidate_count; i++)
        scan->candidates[i].excluded = all;
    core__work(scan->core, WORK_LOCK * (uint64_t)resources->count);
    for (size_t i = 0; i < resources->bucket_count && !all; i++)
        for (const struct resource *at = resources->buckets[i]; at != NULL; at = at->chain)
            if (at->kind == RESOURCE_INDEX || at->kind == RESOURCE_DIRECTORY || at->kind == RESOURCE_DOCUMENT)
                check_resource(scan, at);
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
        qsort(scan->documents, scan->document_count, sizeof *scan->documents, compare_keys);
}

static int find_exclusions(struct core *core, struct session *session, struct exclusion_scan *ret_scan)
{
    struct exclusion_scan scan = {.core = core, .session = session};
    int r = ephemeral__list(core, session->id, &scan.keys, &scan.key_count);
    if (r < 0)
        return tl_trace(r);
    find_candidates(&scan);
    check_resources(&scan);
    sort_exclusions(&scan);
    *ret_scan = scan;
    return 0;
}

/* Whether a document with this id is excluded under any type. */
static bool id_is_excluded(const struct exclusion_scan *scan, const struct catalog_index *index, struct slice id)
{
    char bytes[DOC_KEY_BYTES_MAX];
    bool excluded = false;
    for (size_t i = 0; i < mapping_type_count(index->mapping) && scan->document_count > 0; i++)
        excluded |= has_key(scan->documents, scan->document_count,
                            doc_key(bytes, index->number, mapping_type_at(index->mapping, i)->number, id));
    return excluded;
}

static void clear_lock_path(struct core *core, const struct resource *index_resource, const struct catalog_index *index,
                            struct slice type, struct slice id)
{
    struct resource_name name = {.index = index->name, .type = type, .id = id};
    core__work(core, WORK_LOCK);
    if (resource_document(&core->owners->locks.resources, index_resource, type, id) != NULL)
        lock_resolve__move_document(core, &name, SLICE_NONE);
}

/* Clears the paths of hidden documents in the lock table. */
static void clear_lock_paths(const struct exclusion_scan *scan)
{
    struct core *core = scan->core;
    for (size_t i = 0; i < scan->key_count; i++) {
        uint32_t number;
        uint16_t type_number;
        struct slice id, key = scan->keys[i];
        if (!doc_key_parse(key, &number, &type_number, &id) || index_is_excluded(scan, number) ||
            map_get(&core->pending, key) != NULL)
            continue;
        const struct catalog_index *index = catalog_index_by_number(core->catalog, number);
        const struct mapping_type *type = index == NULL ? NULL : mapping_type_by_number(index->mapping, type_number);
        const struct resource *index_resource =
            type == NULL ? NULL : resource_index(&core->owners->locks.resources, index->name);
        if (index_resource == NULL)
            continue;
        if (!has_key(scan->documents, scan->document_count, key))
            clear_lock_path(core, index_resource, index, type->name, id);
        if (!id_is_excluded(scan, index, id))
            clear_lock_path(core, index_resource, index, SLICE_LIT(""), id);
    }
}

/*
 * Defers the removals of excluded documents, which deletes their 'e' keys. Those that need not be
 * deferred are hidden too.
 */
static int defer_excluded(struct core *core, struct session *session, struct exclusion_scan *scan)
{
    struct deferral deferral = {core, session, 0};
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

/*
 * Removes its documents in this unit if they fit one batch; else hides them, for later units to
 * purge.
 */
static int remove_documents(struct core *core, struct session *session, bool *ret_more, bool *ret_all_hidden)
{
    *ret_all_hidden = false;
    if (session->ephemeral_count <= core->limits.ephemeral_batch)
        return remove_batch(core, session, core->limits.ephemeral_batch, ret_more);
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
 * steps left.
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
    if (result->outcome != WRITE_FAILED) {
        session->actions_done++;
    } else if (result->script_exhausted) {
        session->actions_set_aside++;
        deferred__add_set_aside(core, session, &command->write.items[0], SET_ASIDE_TOO_LONG);
    } else {
        record_failure(session, result->problem.reason);
    }
    return 0;
}

/* Runs an action, or sets it aside if it has ended the process too often. */
static int try_action(struct core *core, struct session *session, const struct write_item *item, size_t number)
{
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

static void report_actions(struct session *session, size_t count)
{
    buf_printf(&session->end_report, "\nactions done: %zu of %zu", session->actions_done, count);
    if (session->actions_deferred > 0)
        buf_printf(&session->end_report, "\nactions that are done when their documents' locks go: %zu",
                   session->actions_deferred);
    if (session->actions_set_aside > 0)
        buf_printf(&session->end_report,
                   "\nactions that are put aside, since the server ended in them or their scripts take too long: %zu",
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
    struct command *all = deferred__command();
    struct slice actions = arena_copy(&all->arena, session->on_expire);
    size_t count = 0;
    core__free_at_end(core, all);
    core__work(core, actions.len / WORK_BYTES);
    int r = actions.len == 0 ? 0 : action_decode_all(actions, &all->arena, &all->write.items, &count);
    while (r == 0 && session->actions_processed<count && * left> 0) {
        uint64_t steps = core->script_steps;
        r = try_action(core, session, &all->write.items[session->actions_processed], session->actions_processed);
        session->actions_processed++;
        cost_charge(left, 1 + (core->script_steps - steps) / SCRIPT_STEPS_PER_COST);
    }
    if (r < 0 || session->actions_processed < count)
        return r;
    if (count > 0)
        report_actions(session, count);
    finish_actions(core, session);
    return 0;
}

/* --- Phases of termination ---------------------------------------------------------------------------------------- */

static void cause_of_end(const struct session *session, char *text, size_t size)
{
    (void)snprintf(text, size, "its session #%llu %s", (unsigned long long)session_number(session),
                   end_text(session->end_kind));
}

static void end_transactions(struct core *core, struct session *session, size_t *left)
{
    char cause[100];
    cause_of_end(session, cause, sizeof cause);
    while (!list_empty(&session->transactions) && *left > 0) {
        struct txn *txn = list_entry(session->transactions.next, struct txn, of_session);
        buf_printf(&session->end_report, "\ntransaction #%llu is rolled back",
                   (unsigned long long)txn->owner.locks.number);
        cost_charge(left, 1 + txn->owner.locks.lock_count / LOCKS_PER_COST);
        txn__abort(core, txn, "%s", cause);
    }
}

/*
 * Releases its locks, reports the end and completes the command that closed it. Its documents are
 * removed or hidden.
 */
static void finish_end(struct core *core, struct session *session)
{
    struct owners *owners = core->owners;
    struct buf *report = &session->end_report;
    size_t released = lock_release_all(&owners->locks, &session->owner.locks);
    if (session->removed_count > 0)
        buf_printf(report, "\ndocuments that lived with it and are removed: %zu", session->removed_count);
    if (session->deferred_count > 0)
        buf_printf(report, "\ndocuments that go when their locks do: %zu", session->deferred_count);
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

void session__set_terminating(struct core *core, struct session *session)
{
    REQUIRE(!session->terminating);
    session->terminating = true;
    core->owners->terminating_count++;
}

/*
 * Last part of the cleanup: removes or hides the documents and releases the locks. Later steps
 * purge hidden documents, also after a restart.
 * Returns: 0; 1 the locks remain, because excluded indices still have documents; fatal codes.
 */
static int finish_cleanup(struct core *core, struct session *session, size_t *left)
{
    bool more = false, all_hidden = false;
    session__enter(core, session, SESSION_REMOVING);
    if (list_linked(&session->of_terminating))
        list_remove(&session->of_terminating);
    free_actions(core, session);
    cost_charge(left, 1 + session->ephemeral_count + session->owner.locks.lock_count / LOCKS_PER_COST);
    int r = remove_documents(core, session, &more, &all_hidden);
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
 * Continues the cleanup while *left > 0: transactions, actions, documents. It begins when the last
 * wait of the session has ended.
 * Returns: 0 the locks are released; 1 some of it remains; fatal codes.
 */
static int continue_cleanup(struct core *core, struct session *session, size_t *left)
{
    session__touch(core, session);
    if (!list_empty(&session->waits))
        return 1;
    end_transactions(core, session, left);
    if (!list_empty(&session->transactions) || *left == 0)
        return 1;
    int r = session->actions_finished ? 0 : run_actions(core, session, left);
    if (r < 0)
        return tl_trace(r);
    return !session->actions_finished || *left == 0 ? 1 : finish_cleanup(core, session, left);
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
        core->effects->session_ended(core->effects, session->id, session_number(session), end_text(end_kind));
    describe_owner(&session->owner.locks, &session->end_report);
    buf_printf(&session->end_report, " %s", end_text(end_kind));
    if (end_kind == SESSION_END_CLOSED)
        finish_actions(core, session);
}

/* Cancels the waits of the session and of its transactions. None of them is resumed any more. */
static void cancel_waits(struct core *core, struct session *session)
{
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

void session__end_wait(struct core *core, struct wait *wait)
{
    char cause[100];
    if (wait->txn == NULL) {
        wait__end(core, wait, PROBLEM_SESSION_MISSING, "session [%.*s] ended while the request waited",
                  SLICE_ARG(wait->session->id));
        return;
    }
    cause_of_end(wait->txn->owner.session, cause, sizeof cause);
    txn__end_waiting(core, wait->txn, slice_from(cause));
}

void session__begin_termination(struct core *core, struct session *session, enum session_end end_kind)
{
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
    struct lock_table *locks = &core->owners->locks;
    size_t left = core->limits.ephemeral_batch;
    begin_termination(core, session, end_kind);
    lock_table_suspend_grants(locks);
    cancel_waits(core, session);
    owners__end_some_cancelled(core);
    int r = continue_cleanup(core, session, &left);
    if (r > 0 && session->cleanup_pending) {
        list_append(&core->owners->sessions_to_clean, &session->of_terminating);
        session__drop_record(core, session);
    }
    lock_table_resume_grants(locks);
    return r;
}

/* Returns: the first session in owners->sessions_to_clean. Requires: there is one. */
static struct session *first_to_clean(const struct core *core)
{
    return list_entry(core->owners->sessions_to_clean.next, struct session, of_terminating);
}

bool session__can_clean(const struct core *core)
{
    return !list_empty(&core->owners->sessions_to_clean) && list_empty(&first_to_clean(core)->waits);
}

int session__continue_cleanup(struct core *core, size_t *left)
{
    REQUIRE(*left > 0 && session__can_clean(core));
    REQUIRE(core->open && core->owners->locks.grants_suspended > 0);
    struct session *session = first_to_clean(core);
    int r = continue_cleanup(core, session, left);
    return r < 0 ? tl_trace(r) : 0;
}

void session__drop_records(struct core *core)
{
    list_for_each(link, &core->owners->sessions_to_clean)
        session__drop_record(core, list_entry(link, struct session, of_terminating));
}

int session__purge_batch(struct core *core)
{
    REQUIRE(core->open && !list_empty(&core->owners->sessions_to_purge));
    struct session *session = list_entry(core->owners->sessions_to_purge.next, struct session, of_terminating);
    bool more = false;
    session__touch(core, session);
    int r = remove_batch(core, session, core->limits.purge_batch, &more);
    if (r < 0 || more)
        return r;
    session_tombstone__purged(core, session->id);
    delete_session(core, session);
    return 0;
}

bool session__any_terminating(const struct core *core)
{
    return core->owners->terminating_count > 0;
}

/* --- Ephemeral documents ------------------------------------------------------------------------------------------ */

int session__check_ephemeral_count(struct core *core, struct slice id, size_t more, struct arena *arena,
                                   struct problem *ret_problem)
{
    const struct session *session = owners_live_session(core->owners, id);
    size_t most = core->limits.ephemeral_max;
    if (session == NULL || session->ephemeral_count + more <= most)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_EPHEMERAL_LIMIT,
                "with session [%.*s] live [%zu] documents; [%zu] are the most that may live with one session "
                "[--max-ephemeral]",
                SLICE_ARG(id), session->ephemeral_count, most);
    return 1;
}

/*
 * Finds or adds a counter. While its count is 0 its index number may be given to another index,
 * after a rollback of the unit that created the first one; so `orphaned` is then computed anew.
 */
static struct ephemeral_counter *counter_of(struct core *core, struct session *session, uint32_t index, uint16_t type)
{
    size_t i = 0;
    session__touch(core, session);
    while (i < session->ephemeral_counter_count &&
           (session->ephemeral_counters[i].index != index || session->ephemeral_counters[i].type != type))
        i++;
    if (i == session->ephemeral_counter_count) {
        session->ephemeral_counters =
            mem_realloc(session->ephemeral_counters, (i + 1) * sizeof *session->ephemeral_counters);
        session->ephemeral_counters[session->ephemeral_counter_count++] =
            (struct ephemeral_counter){index, type, 0, false};
    }
    struct ephemeral_counter *counter = &session->ephemeral_counters[i];
    if (counter->count == 0)
        counter->orphaned = catalog_index_by_number(core->catalog, index) == NULL;
    return counter;
}

void session__count_ephemeral(struct core *core, struct slice id, uint32_t index, uint16_t type, int change)
{
    struct session *session = owners_session(core->owners, id);
    if (session == NULL)
        return;
    struct ephemeral_counter *counter = counter_of(core, session, index, type);
    if (change < 0 && counter->count < (size_t)-change)
        return;
    counter->count += (size_t)change;
    *(counter->orphaned ? &session->orphan_count : &session->ephemeral_count) += (size_t)change;
}

/* Moves a counter from the session's ephemeral documents to its orphans, or back. */
static void set_orphaned(struct session *session, struct ephemeral_counter *counter, bool is_orphaned)
{
    counter->orphaned = is_orphaned;
    session->orphan_count += is_orphaned ? counter->count : -counter->count;
    session->ephemeral_count += is_orphaned ? -counter->count : counter->count;
}

void session__count_ephemeral_document(struct core *core, struct slice session, struct slice key, int change)
{
    REQUIRE(core->open);
    uint32_t index;
    uint16_t type;
    struct slice id;
    if (change == 0 || !doc_key_parse(key, &index, &type, &id))
        return;
    session__count_ephemeral(core, session, index, type, change);
    core->owners->ephemeral_deltas =
        arena_grow(&core->arena, core->owners->ephemeral_deltas, core->owners->ephemeral_delta_count,
                   &core->owners->ephemeral_delta_capacity, sizeof *core->owners->ephemeral_deltas);
    core->owners->ephemeral_deltas[core->owners->ephemeral_delta_count++] =
        (struct ephemeral_delta){arena_copy(&core->arena, session), index, type, change, false};
}

void session__rollback_ephemeral_counts(struct core *core)
{
    REQUIRE(core->open);
    while (core->owners != NULL && core->owners->ephemeral_delta_count > 0) {
        const struct ephemeral_delta *delta = &core->owners->ephemeral_deltas[--core->owners->ephemeral_delta_count];
        struct session *session = owners_session(core->owners, delta->session);
        if (!delta->index_deleted)
            session__count_ephemeral(core, delta->session, delta->index, delta->type, -delta->delta);
        else if (session != NULL)
            set_orphaned(session, counter_of(core, session, delta->index, delta->type), false);
    }
}

static void record_orphaned(struct core *core, const struct session *session, const struct ephemeral_counter *counter)
{
    core->owners->ephemeral_deltas =
        arena_grow(&core->arena, core->owners->ephemeral_deltas, core->owners->ephemeral_delta_count,
                   &core->owners->ephemeral_delta_capacity, sizeof *core->owners->ephemeral_deltas);
    core->owners->ephemeral_deltas[core->owners->ephemeral_delta_count++] =
        (struct ephemeral_delta){arena_copy(&core->arena, session->id), counter->index, counter->type, 0, true};
}

void session__drop_index(struct core *core, uint32_t index)
{
    REQUIRE(core->open);
    size_t position = 0;
    struct slice id;
    void *value;
    while (core->owners != NULL && map_next(&core->owners->sessions, &position, &id, &value)) {
        struct session *session = value;
        core__work(core, WORK_LOCK + WORK_LOCK * session->ephemeral_counter_count);
        for (size_t i = 0; i < session->ephemeral_counter_count; i++) {
            struct ephemeral_counter *counter = &session->ephemeral_counters[i];
            if (counter->index != index || counter->orphaned)
                continue;
            set_orphaned(session, counter, true);
            record_orphaned(core, session, counter);
        }
    }
}

void session__find_orphans(struct core *core)
{
    size_t position = 0;
    struct slice id;
    void *value;
    while (map_next(&core->owners->sessions, &position, &id, &value)) {
        struct session *session = value;
        for (size_t i = 0; i < session->ephemeral_counter_count; i++)
            if (catalog_index_by_number(core->catalog, session->ephemeral_counters[i].index) == NULL)
                set_orphaned(session, &session->ephemeral_counters[i], true);
    }
}

/* Removes 'e' keys of deleted indices of one session, until *removed is `max`. */
static int purge_orphans(struct core *core, struct session *session, size_t max, size_t *removed)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < session->ephemeral_counter_count && *removed < max; i++)
        if (session->ephemeral_counters[i].orphaned && session->ephemeral_counters[i].count > 0)
            r = ephemeral__remove_index(core, session->id, session->ephemeral_counters[i].index, max - *removed,
                                        removed);
    return r;
}

int owners__purge_ephemeral_keys(struct core *core, size_t max, size_t *ret_removed)
{
    struct owners *owners = core->owners;
    size_t position = 0;
    struct slice id;
    void *value;
    int r = 0;
    *ret_removed = 0;
    while (r == 0 && owners != NULL && *ret_removed < max && map_next(&owners->sessions, &position, &id, &value)) {
        struct session *session = value;
        core__work(core, WORK_LOCK);
        if (session->orphan_count > 0)
            r = purge_orphans(core, session, max, ret_removed);
    }
    return r;
}

/* --- After a restart ---------------------------------------------------------------------------------------------- */

static void enqueue_termination(struct core *core, struct session *session)
{
    struct owners *owners = core->owners;
    if (!list_linked(&session->of_terminating))
        list_append(session->cleanup_pending ? &owners->sessions_to_clean : &owners->sessions_to_purge,
                    &session->of_terminating);
}

/*
 * Whether the lease must begin now: it has not begun since a conversion, or the attached connection
 * ended with its host.
 */
static bool must_begin_lease(struct core *core, struct session *session, uint64_t host)
{
    if (session->attachment == 0 || host_of_number(session->attachment) != host)
        return session->lease.at == TL_TS_MAX;
    session->attachment = 0;
    session__touch(core, session);
    return true;
}

/*
 * Terminations of a converted store continue oldest session first: their order is not in its
 * records.
 */
int session__restart(struct core *core, uint64_t host)
{
    size_t position = 0;
    struct slice id;
    void *value;
    while (map_next(&core->owners->sessions, &position, &id, &value)) {
        struct session *session = value;
        core__work(core, WORK_LOCK);
        if (session->terminating) {
            enqueue_termination(core, session);
            session__drop_record(core, session); /* states before version 7 have it until the end */
        } else if (must_begin_lease(core, session, host)) {
            (void)renew(core, session);
        }
    }
    return 0;
}
