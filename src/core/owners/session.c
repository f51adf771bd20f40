/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: their lives and their ends. README-locks.md, "Sessions". */
#include "core/owners/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/counter.h"
#include "core/documents/action.h"
#include "core/documents/doc.h"
#include "core/documents/ephemeral.h"
#include "core/documents/update.h"
#include "core/documents/session_tombstone.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/owners/acquire.h"
#include "core/owners/deferred.h"
#include "core/owners/lock_resolve.h"
#include "core/owners/owners.h"
#include "core/owners/lock_event.h"
#include "core/owners/cost.h"
#include "core/owners/cleanup_attempt.h"
#include "core/owners/txn.h"
#include "core/owners/wait.h"
#include "core/step/command.h"
#include "core/step/core.h"
#include "core/step/handler.h"
#include "core/step/hooks.h"
#include "core/step/unit.h"
#include "core/step/work.h"
#include "mapping/mapping.h"

#define SESSION_NAME_BYTES_MAX 1024
#define SESSION_TTL_US_MAX (24 * 3600 * TL_SECOND)
#define SESSION_ACTIONS_BYTES_MAX ((size_t)1 << 20)

/* --- Beginning ---------------------------------------------------------------------------------------------------- */

struct session *session__make(struct core *core, struct slice id, struct slice name, uint64_t ttl_us, tl_ts created)
{
    struct session *session = mem_zalloc(sizeof *session);
    session->owner = (struct owner){.kind = OWNER_SESSION, .session = session};
    lock_owner_init(&core->owners->locks, &session->owner.locks, NULL, &session->owner);
    session->id = slice_make(mem_strdup(id.data, id.len), id.len);
    session->name = slice_make(mem_strdup(name.data, name.len), name.len);
    session->ttl_us = ttl_us;
    session->created = created;
    session->owner.locks.age = created;
    session->lease.at = TL_TS_MAX; /* until RESTART, when it was loaded */
    session->end_report = session->first_failure = BUF_INIT(BUF_UNLIMITED);
    list_init(&session->transactions);
    list_init(&session->waits);
    return session;
}

void session__free(struct core *core, struct session *session)
{
    struct owners *owners = core->owners;
    core__work(core, WORK_OWNER);
    REQUIRE(list_empty(&session->transactions) && list_empty(&session->waits));
    deadline_set(&owners->leases, &session->lease, TL_TS_MAX);
    lock_release_all(&owners->locks, &session->owner.locks);
    lock_owner_deinit(&session->owner.locks);
    mem_free((char *)(uintptr_t)session->id.data);
    mem_free((char *)(uintptr_t)session->name.data);
    owners->action_bytes -= session->on_expire.len;
    mem_free((char *)(uintptr_t)session->on_expire.data);
    if (list_linked(&session->of_terminating))
        list_remove(&session->of_terminating);
    owners->terminating_count -= session->terminating;
    buf_deinit(&session->end_report);
    buf_deinit(&session->first_failure);
    mem_free(session->ephemeral_counters);
    mem_free(session);
}

/* The lease begins anew. Returns: the timestamp at which it will run out. */
static tl_ts renew(struct core *core, struct session *session)
{
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
    uint64_t wanted;
    if (!slice_to_u64(number, &wanted))
        return NULL;
    while (map_next(&core->owners->sessions, &position, &id, &value)) {
        struct session *session = value;
        if (session_number(session) == wanted && !session->locks_released)
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

int owners__check_ephemeral(struct core *core, struct slice session, struct arena *arena, struct problem *ret_problem)
{
    return session__find(core, session, arena, ret_problem) == NULL ? 1 : 0;
}

static bool check_open(struct core *core, struct command *command, struct slice actions)
{
    const struct session_command *wanted = &command->session;
    struct problem *problem = &command->problem;
    struct arena *arena = &command->arena;
    if (wanted->id.len == 0 || owners_session(core->owners, wanted->id) != NULL)
        problem_set(problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "there is a session [%.*s] already",
                    SLICE_ARG(wanted->id));
    else if (core->owners->sessions.count >= core->limits.sessions_max)
        problem_set(problem, arena, PROBLEM_LIMIT_EXCEEDED, "there are [%zu] sessions already",
                    core->limits.sessions_max);
    else if (wanted->ttl_us < TL_SECOND || wanted->ttl_us > SESSION_TTL_US_MAX)
        problem_set(problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "[ttl] must be between 1s and 24h");
    else if (wanted->name.len > SESSION_NAME_BYTES_MAX)
        problem_set(problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "[name] is at most [%d] bytes long",
                    SESSION_NAME_BYTES_MAX);
    else if (wanted->on_expire_count > SESSION_ACTIONS_MAX || actions.len > SESSION_ACTIONS_BYTES_MAX)
        problem_set(problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "[on_expire] is at most [%d] actions and [%zu] bytes",
                    SESSION_ACTIONS_MAX, SESSION_ACTIONS_BYTES_MAX);
    return problem->type == PROBLEM_NONE;
}

int core__do_session_open(struct core *core, struct command *command)
{
    struct session_command *wanted = &command->session;
    struct buf actions = BUF_INIT(BUF_UNLIMITED);
    action_encode_all(&actions, wanted->on_expire, wanted->on_expire_count);
    if (check_open(core, command, buf_as_slice(&actions))) {
        struct session *session = session__make(core, wanted->id, wanted->name, wanted->ttl_us, core->ts);
        session->on_expire = slice_make(mem_strdup(actions.data, actions.len), actions.len);
        core->owners->action_bytes += actions.len;
        wanted->expires_at = renew(core, session);
        map_put(&core->owners->sessions, session->id, session);
        session__put_record(core, session);
        wanted->number = session_number(session);
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
    return 0;
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

/* The connection broke. An attachment that was replaced by another means nothing any more. */
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
    session->close_command = command; /* it hears of the end when that is whole */
    return CORE_WAITS;
}

void session__cancel_waits(struct core *core, struct session *session)
{
    while (!list_empty(&session->waits))
        wait__end(core, list_entry(session->waits.next, struct wait, of_session), PROBLEM_SESSION_MISSING,
                  "session [%.*s] ended while the request waited", SLICE_ARG(session->id));
}

static const char *end_text(enum session_end how)
{
    switch (how) {
    case SESSION_END_CLOSED: return "was closed";
    case SESSION_END_EXPIRED: return "has expired";
    case SESSION_END_FORCED: return "was ended by force";
    case SESSION_END_DETACHED: return "has lost its connection";
    }
    return "";
}

/* --- Pieces of the end -------------------------------------------------------------------------------------------- */

struct keeping {
    struct core *core;
    struct session *session;
    int r;
};

/*
 * Takes over the removal of a document that somebody else holds; it goes when his lock does. What went with the session is there for
 * nobody, so that no lock keeps it from being swept away.
 */
static bool keep_removal(void *context, const struct write_item *removal, bool gone)
{
    struct keeping *keeping = context;
    struct core *core = keeping->core;
    if (gone)
        return false;
    if (!acquire__removal_is_blocked(core, keeping->session, removal)) {
        struct resource_name name = {removal->index, SLICE_NONE, removal->type, removal->id};
        lock_resolve__move_document(core, &name, SLICE_NONE); /* locks on it lie in its index now */
        return false;
    }
    int r = deferred__add(core, keeping->session, removal, true);
    keeping->r = r < 0 ? r : keeping->r;
    keeping->session->deferred_count++;
    return true;
}

/* Removes some of its documents. */
static int remove_some(struct core *core, struct session *session, size_t most, bool *ret_more)
{
    struct keeping keeping = {core, session, 0};
    int r = ephemeral__purge_batch(core, session->id, most, keep_removal, &keeping, &session->removed_count, ret_more);
    return r < 0 ? r : keeping.r;
}

/* --- All at one moment ------------------------------------------------------------------------------------------- */

/* An index in which documents of a session lie. */
struct place {
    const struct catalog_index *index;
    const struct resource *home; /* NULL: nothing is locked or awaited in it */
    size_t held_count;           /* of the documents */
    bool spared;                 /* as a whole */
};

/*
 * What others hold of a session's documents when they go. A document that is held stays until its lock goes; an index in which somebody
 * holds all of it, or a directory, goes document by document, as that allows. The locks are looked at once, however many indices there are.
 */
struct sparing {
    struct core *core;
    struct session *session;
    struct slice *lives; /* keys of all that live with it, in their order */
    size_t lives_count;
    struct place *places; /* in order of their homes */
    size_t place_count;
    uint32_t *indices; /* those that are spared, in their order */
    size_t index_count;
    struct slice *documents; /* keys of those that are spared, in their order at last */
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

static bool is_spared(const struct sparing *sparing, uint32_t index)
{
    return sparing->index_count > 0 &&
           bsearch(&index, sparing->indices, sparing->index_count, sizeof index, compare_numbers) != NULL;
}

/* By their addresses, which decide nothing. */
static int compare_homes(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct place *)a)->home, y = (uintptr_t)((const struct place *)b)->home;
    return (x > y) - (x < y);
}

static void find_places(struct sparing *sparing)
{
    struct core *core = sparing->core;
    const struct session *session = sparing->session;
    uint32_t *numbers = arena_alloc(&core->arena, (session->ephemeral_counter_count + 1) * sizeof *numbers);
    size_t count = 0;
    for (size_t i = 0; i < session->ephemeral_counter_count; i++)
        if (session->ephemeral_counters[i].count > 0)
            numbers[count++] = session->ephemeral_counters[i].index;
    if (count > 1)
        qsort(numbers, count, sizeof *numbers, compare_numbers);
    sparing->places = arena_zalloc(&core->arena, (count + 1) * sizeof *sparing->places);
    for (size_t i = 0; i < count; i++) {
        const struct catalog_index *index = catalog_index_by_number(core->catalog, numbers[i]);
        core__work(core, WORK_LOCK);
        if (index == NULL || (i > 0 && numbers[i] == numbers[i - 1]))
            continue;
        sparing->places[sparing->place_count++] =
            (struct place){.index = index, .home = resource_index(&core->owners->locks.resources, index->name)};
    }
    if (sparing->place_count > 1)
        qsort(sparing->places, sparing->place_count, sizeof *sparing->places, compare_homes);
}

/* Whether somebody else than the session has a lock on a resource. */
static bool held_by_others(const struct sparing *sparing, const struct resource *resource)
{
    list_for_each(link, &resource->holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_resource);
        if (hold->mode != LOCK_NONE && hold->owner != &sparing->session->owner.locks)
            return true;
    }
    return false;
}

/* Whether what an ended session left is to be done on a resource: it stands before all others. */
static bool awaited_by_kept(const struct resource *resource)
{
    struct lock_waiter_iter waiters = lock_waiter_iter(resource);
    const struct lock_request *request;
    enum lock_mode mode;
    return lock_waiter_iter_next(&waiters, &request, &mode) && lock_request_owner(request)->cleanup;
}

/* The keys of a document by the name under which it is locked, which may stand for that of any type. */
static void spare_document(struct sparing *sparing, struct place *place, const struct resource_name *name)
{
    struct core *core = sparing->core;
    const struct catalog_index *index = place->index;
    char bytes[DOC_KEY_BYTES_MAX];
    for (size_t i = 0; i < mapping_type_count(index->mapping) && name->id.len <= DOC_ID_BYTES_MAX; i++) {
        const struct mapping_type *type = mapping_type_at(index->mapping, i);
        struct slice key = doc_key(bytes, index->number, type->number, name->id);
        core__work(core, WORK_LOCK);
        if ((name->type.len > 0 && !slice_equal(name->type, type->name)) || map_get(&core->pending, key) != NULL ||
            !has_key(sparing->lives, sparing->lives_count, key))
            continue;
        sparing->documents = arena_grow(&core->arena, sparing->documents, sparing->document_count,
                                        &sparing->document_capacity, sizeof *sparing->documents);
        sparing->documents[sparing->document_count++] = arena_copy(&core->arena, key);
        place->held_count++;
    }
}

static struct place *place_of(const struct sparing *sparing, const struct resource *resource)
{
    while (resource != NULL && resource->kind != RESOURCE_INDEX)
        resource = resource->parent;
    struct place key = {.home = resource};
    return resource == NULL ? NULL : bsearch(&key, sparing->places, sparing->place_count, sizeof key, compare_homes);
}

/*
 * A lock: whether somebody else holds it; or what was kept for its document before stands before its removal, as it does where it waits
 * for others.
 */
static void look_at_lock(struct sparing *sparing, const struct resource *resource)
{
    struct core *core = sparing->core;
    bool document = resource->kind == RESOURCE_DOCUMENT, held = held_by_others(sparing, resource);
    if (!held && !(document && awaited_by_kept(resource)))
        return;
    struct place *place = place_of(sparing, resource);
    if (place == NULL || place->spared)
        return;
    struct resource_name name = document ? resource_name(resource, &core->arena) : (struct resource_name){0};
    if (document && (held || acquire__document_is_blocked(core, sparing->session, &name)))
        spare_document(sparing, place, &name);
    place->spared = !document || place->held_count > core->limits.ephemeral_batch;
}

static void look_at_locks(struct sparing *sparing)
{
    const struct resource_table *resources = &sparing->core->owners->locks.resources;
    bool all = held_by_others(sparing, resources->root);
    for (size_t i = 0; i < sparing->place_count; i++)
        sparing->places[i].spared = all;
    core__work(sparing->core, WORK_LOCK * (uint64_t)resources->count);
    for (size_t i = 0; i < resources->bucket_count && !all; i++)
        for (const struct resource *at = resources->buckets[i]; at != NULL; at = at->chain)
            if (at->kind == RESOURCE_INDEX || at->kind == RESOURCE_DIRECTORY || at->kind == RESOURCE_DOCUMENT)
                look_at_lock(sparing, at);
}

static uint32_t index_of_key(struct slice key)
{
    uint32_t index = 0;
    uint16_t type;
    struct slice id;
    (void)doc_key_parse(key, &index, &type, &id);
    return index;
}

/* What is spared, in order. What is held in indices that are spared goes with the pieces, as the others in them. */
static void put_in_order(struct sparing *sparing)
{
    struct core *core = sparing->core;
    size_t count = sparing->document_count;
    sparing->indices = arena_alloc(&core->arena, (sparing->place_count + 1) * sizeof *sparing->indices);
    for (size_t i = 0; i < sparing->place_count; i++)
        if (sparing->places[i].spared)
            sparing->indices[sparing->index_count++] = sparing->places[i].index->number;
    if (sparing->index_count > 1)
        qsort(sparing->indices, sparing->index_count, sizeof *sparing->indices, compare_numbers);
    sparing->document_count = 0;
    for (size_t i = 0; i < count; i++)
        if (!is_spared(sparing, index_of_key(sparing->documents[i])))
            sparing->documents[sparing->document_count++] = sparing->documents[i];
    if (sparing->document_count > 1)
        qsort(sparing->documents, sparing->document_count, sizeof *sparing->documents, compare_keys);
}

static int look_what_is_held(struct core *core, struct session *session, struct sparing *ret_sparing)
{
    struct sparing sparing = {.core = core, .session = session};
    int r = ephemeral__list(core, session->id, &sparing.lives, &sparing.lives_count);
    if (r < 0)
        return tl_trace(r);
    find_places(&sparing);
    look_at_locks(&sparing);
    put_in_order(&sparing);
    *ret_sparing = sparing;
    return 0;
}

/* Whether a document that is named without its type is spared under any. */
static bool is_spared_id(const struct sparing *sparing, const struct catalog_index *index, struct slice id)
{
    char bytes[DOC_KEY_BYTES_MAX];
    bool spared = false;
    for (size_t i = 0; i < mapping_type_count(index->mapping) && sparing->document_count > 0; i++)
        spared |= has_key(sparing->documents, sparing->document_count,
                          doc_key(bytes, index->number, mapping_type_at(index->mapping, i)->number, id));
    return spared;
}

static void move_gone(struct core *core, const struct resource *home, const struct catalog_index *index,
                      struct slice type, struct slice id)
{
    struct resource_name name = {.index = index->name, .type = type, .id = id};
    core__work(core, WORK_LOCK);
    if (resource_document(&core->owners->locks.resources, home, type, id) != NULL)
        lock_resolve__move_document(core, &name, SLICE_NONE);
}

/* Documents in the table of locks that have gone lie nowhere any more. */
static void move_all_gone(const struct sparing *sparing)
{
    struct core *core = sparing->core;
    for (size_t i = 0; i < sparing->lives_count; i++) {
        uint32_t number;
        uint16_t type_number;
        struct slice id, key = sparing->lives[i];
        if (!doc_key_parse(key, &number, &type_number, &id) || is_spared(sparing, number) ||
            map_get(&core->pending, key) != NULL)
            continue;
        const struct catalog_index *index = catalog_index_by_number(core->catalog, number);
        const struct mapping_type *type = index == NULL ? NULL : mapping_type_by_number(index->mapping, type_number);
        const struct resource *home = type == NULL ? NULL : resource_index(&core->owners->locks.resources, index->name);
        if (home == NULL)
            continue;
        if (!has_key(sparing->documents, sparing->document_count, key))
            move_gone(core, home, index, type->name, id);
        if (!is_spared_id(sparing, index, id))
            move_gone(core, home, index, SLICE_LIT(""), id);
    }
}

/* Keeps the removals of documents that are held, which takes their marks. Others are spared no more. */
static int keep_held(struct core *core, struct session *session, struct sparing *sparing)
{
    struct keeping keeping = {core, session, 0};
    size_t count = sparing->document_count;
    sparing->document_count = 0;
    for (size_t i = 0; i < count && keeping.r >= 0; i++) {
        size_t spared_before = session->deferred_count;
        int r = ephemeral__defer(core, session->id, sparing->documents[i], keep_removal, &keeping);
        if (r < 0)
            return tl_trace(r);
        if (session->deferred_count > spared_before)
            sparing->documents[sparing->document_count++] = sparing->documents[i];
    }
    return keeping.r;
}

/* All go but what is spared. Returns: whether nothing but their sweeping is left to do. */
static int vanish(struct core *core, struct session *session, bool *ret_over)
{
    struct sparing sparing;
    int r = look_what_is_held(core, session, &sparing);
    if (r == 0)
        r = keep_held(core, session, &sparing);
    if (r < 0)
        return tl_trace(r);
    for (size_t i = 0; i < session->ephemeral_counter_count; i++) {
        const struct ephemeral_counter *living = &session->ephemeral_counters[i];
        const struct catalog_index *index = catalog_index_by_number(core->catalog, living->index);
        if (living->count == 0 || index == NULL || is_spared(&sparing, living->index))
            continue;
        counter__add(&core->counters, counters__of(&core->counters, living->index), living->type,
                     -(int64_t)living->count);
        session->removed_count += living->count;
    }
    move_all_gone(&sparing);
    const struct session_tombstone_exclusions spared = {sparing.indices, sparing.index_count, sparing.documents,
                                         sparing.document_count};
    session_tombstone__put(core, session->id, &spared);
    r = ephemeral__record_deletes(core, session->id);
    *ret_over = sparing.index_count == 0;
    return r;
}

/* Its documents go: they are removed in this unit, or, being many, swept away by units to come. */
static int remove_all(struct core *core, struct session *session, bool *ret_more, bool *ret_over)
{
    *ret_over = false;
    if (session->ephemeral_count <= core->limits.ephemeral_batch)
        return remove_some(core, session, core->limits.ephemeral_batch, ret_more);
    *ret_more = true;
    return vanish(core, session, ret_over);
}

/* --- Actions ------------------------------------------------------------------------------------------------------ */

static void count_failed(struct session *session, struct slice reason)
{
    if (session->first_failure.len == 0)
        buf_slice(&session->first_failure, reason);
}

/* Runs one action, or keeps it while somebody else holds its document; aside, when its script would take more than is left. */
static int run_action(struct core *core, struct session *session, const struct write_item *item)
{
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
        count_failed(session, result->problem.reason);
    }
    return 0;
}

/* The process may end in it; where it has done so before it is not run again. */
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

static void tell_actions(struct session *session, size_t count)
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

/* All are done, or are not to be. */
static void pass_actions(struct core *core, struct session *session)
{
    session->actions_finished = true;
    cleanup_attempt__forget_session(core, session->id);
}

/* Neither the session nor its record knows of them any more. */
static void forget_actions(struct core *core, struct session *session)
{
    core->owners->action_bytes -= session->on_expire.len;
    mem_free((char *)(uintptr_t)session->on_expire.data);
    session->on_expire = SLICE_NONE;
}

/* Runs what it left for this case, each action by itself and in order: one may be kept, and those behind it for its document. */
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
        tell_actions(session, count);
    pass_actions(core, session);
    return 0;
}

/* --- The parts of an end ------------------------------------------------------------------------------------------ */

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
        buf_printf(&session->end_report, "\ntransaction #%llu is rolled back", (unsigned long long)txn->owner.locks.number);
        cost_charge(left, 1 + txn->owner.locks.lock_count / LOCKS_PER_COST);
        txn__abort(core, txn, "%s", cause);
    }
}

/* All is removed, or gone for everybody: its locks go, and whoever closed it hears so. */
static void end_owner(struct core *core, struct session *session)
{
    struct owners *owners = core->owners;
    struct buf *story = &session->end_report;
    size_t released = lock_release_all(&owners->locks, &session->owner.locks);
    if (session->removed_count > 0)
        buf_printf(story, "\ndocuments that lived with it and are removed: %zu", session->removed_count);
    if (session->deferred_count > 0)
        buf_printf(story, "\ndocuments that go when their locks do: %zu", session->deferred_count);
    if (released > 0)
        buf_printf(story, "\nlocks released: %zu", released);
    if (session->end_kind != SESSION_END_CLOSED)
        lock_events_add(&owners->lock_events, core->ts, "expiry", buf_as_slice(story));
    if (session->close_command != NULL)
        core__complete(core, tl_steal(session->close_command));
}

/* The last of it goes. */
static void end_last(struct core *core, struct session *session)
{
    struct owners *owners = core->owners;
    if (!session->locks_released)
        end_owner(core, session);
    session__drop_record(core, session);
    if (session->orphan_count > 0)
        session__put_orphan_purge(core, session);
    map_remove(&owners->sessions, session->id);
    session__free(core, session);
}

void session__set_terminating(struct core *core, struct session *session)
{
    session->terminating = true;
    core->owners->terminating_count++;
}

/* Its documents go, and its locks, or the sweeping away of its documents is for later steps. A restart goes on with it. */
static int end_documents(struct core *core, struct session *session, size_t *left)
{
    bool more = false, over = false;
    session->cleanup_pending = session->actions_finished = false;
    if (list_linked(&session->of_terminating))
        list_remove(&session->of_terminating);
    if (session->progress_stored)
        session__drop_progress(core, session);
    session->progress_stored = false;
    forget_actions(core, session);
    cost_charge(left, 1 + session->ephemeral_count + session->owner.locks.lock_count / LOCKS_PER_COST);
    int r = remove_all(core, session, &more, &over);
    if (r < 0)
        return tl_trace(r);
    if (!more) {
        end_last(core, session);
        return 0;
    }
    session->locks_released = over;
    if (over)
        end_owner(core, session);
    list_append(&core->owners->sessions_to_purge, &session->of_terminating);
    session__put_record(core, session);
    return !over;
}

/* Goes on with an end while things may be done. Returns: 1 when some of it is left that others see; fatal codes. */
static int go_on(struct core *core, struct session *session, size_t *left)
{
    end_transactions(core, session, left);
    if (!list_empty(&session->transactions) || *left == 0)
        return 1;
    int r = session->actions_finished ? 0 : run_actions(core, session, left);
    if (r < 0)
        return tl_trace(r);
    return !session->actions_finished || *left == 0 ? 1 : end_documents(core, session, left);
}

static void begin(struct core *core, struct session *session, enum session_end how)
{
    session->end_kind = how;
    session->cleanup_pending = true;
    session->script_steps_left = update_steps_shared(&core->limits.script);
    session__set_terminating(core, session);
    metric_add(&core->metrics.session_ends[how], 1);
    describe_owner(&session->owner.locks, &session->end_report);
    buf_printf(&session->end_report, " %s", end_text(how));
    deadline_set(&core->owners->leases, &session->lease, TL_TS_MAX);
    if (how == SESSION_END_CLOSED)
        pass_actions(core, session);
}

/* Nothing of it waits any more. */
static void cancel_all_waits(struct core *core, struct session *session)
{
    char cause[100];
    cause_of_end(session, cause, sizeof cause);
    session__cancel_waits(core, session);
    list_for_each(link, &session->transactions)
        txn__end_waiting(core, list_entry(link, struct txn, of_session), slice_from(cause));
}

void session__begin_termination(struct core *core, struct session *session, enum session_end how)
{
    begin(core, session, how);
    cancel_all_waits(core, session);
    list_append(&core->owners->sessions_to_clean, &session->of_terminating);
}

/* Nobody is granted what its transactions had, or what its requests stood before, until all is cleaned up that goes in this piece. */
int session__terminate(struct core *core, struct session *session, enum session_end how)
{
    struct lock_table *locks = &core->owners->locks;
    size_t left = core->limits.ephemeral_batch;
    begin(core, session, how);
    lock_table_suspend_grants(locks);
    cancel_all_waits(core, session);
    int r = go_on(core, session, &left);
    if (r > 0 && session->cleanup_pending) {
        list_append(&core->owners->sessions_to_clean, &session->of_terminating);
        session__put_progress(core, session);
        session->progress_stored = true;
    }
    lock_table_resume_grants(locks);
    return r;
}

int session__continue_cleanup(struct core *core, size_t *left)
{
    struct session *session = list_entry(core->owners->sessions_to_clean.next, struct session, of_terminating);
    int r = go_on(core, session, left);
    if (r == 1 && session->cleanup_pending && session->progress_stored)
        session__put_progress(core, session);
    return r < 0 ? tl_trace(r) : 0;
}

void session__store_progress(struct core *core)
{
    list_for_each(link, &core->owners->sessions_to_clean)
    {
        struct session *session = list_entry(link, struct session, of_terminating);
        if (session->progress_stored)
            continue;
        session__put_progress(core, session);
        session->progress_stored = true;
    }
}

int session__purge_batch(struct core *core)
{
    struct session *session = list_entry(core->owners->sessions_to_purge.next, struct session, of_terminating);
    bool more = false;
    int r = remove_some(core, session, core->limits.purge_batch, &more);
    if (r < 0 || more)
        return r;
    session_tombstone__purged(core, session->id);
    end_last(core, session);
    return 0;
}

bool owners__any_terminating(const struct core *core)
{
    return core->owners->terminating_count > 0;
}

/* --- Ephemeral documents ------------------------------------------------------------------------------------------ */

int owners__check_ephemeral_count(struct core *core, struct slice id, size_t more, struct arena *arena,
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

/* A count of none says nothing of its index: the number may have been given again since a unit that made another was taken back. */
static struct ephemeral_counter *living_in(const struct core *core, struct session *session, uint32_t index, uint16_t type)
{
    size_t i = 0;
    while (i < session->ephemeral_counter_count && (session->ephemeral_counters[i].index != index || session->ephemeral_counters[i].type != type))
        i++;
    if (i == session->ephemeral_counter_count) {
        session->ephemeral_counters = mem_realloc(session->ephemeral_counters, (i + 1) * sizeof *session->ephemeral_counters);
        session->ephemeral_counters[session->ephemeral_counter_count++] = (struct ephemeral_counter){index, type, 0, false};
    }
    struct ephemeral_counter *living = &session->ephemeral_counters[i];
    if (living->count == 0)
        living->orphaned = catalog_index_by_number(core->catalog, index) == NULL;
    return living;
}

void session__count_ephemeral(struct core *core, struct slice id, uint32_t index, uint16_t type, int change)
{
    struct session *session = owners_session(core->owners, id);
    if (session == NULL)
        return;
    struct ephemeral_counter *living = living_in(core, session, index, type);
    if (change < 0 && living->count < (size_t)-change)
        return;
    living->count += (size_t)change;
    *(living->orphaned ? &session->orphan_count : &session->ephemeral_count) += (size_t)change;
}

/* Moves the count of an index from the ephemeral documents of a session to those that are gone, or back. */
static void session_move_gone(struct session *session, struct ephemeral_counter *living, bool gone)
{
    living->orphaned = gone;
    session->orphan_count += gone ? living->count : -living->count;
    session->ephemeral_count += gone ? -living->count : living->count;
}

void owners__count_ephemeral(struct core *core, struct slice session, struct slice key, int change)
{
    uint32_t index;
    uint16_t type;
    struct slice id;
    if (change == 0 || !doc_key_parse(key, &index, &type, &id))
        return;
    session__count_ephemeral(core, session, index, type, change);
    core->ephemeral_deltas =
        arena_grow(&core->arena, core->ephemeral_deltas, core->ephemeral_delta_count, &core->ephemeral_delta_capacity, sizeof *core->ephemeral_deltas);
    core->ephemeral_deltas[core->ephemeral_delta_count++] = (struct ephemeral_delta){arena_copy(&core->arena, session), index, type, change, false};
}

void owners__rollback_ephemeral_counts(struct core *core)
{
    while (core->ephemeral_delta_count > 0) {
        const struct ephemeral_delta *leased = &core->ephemeral_deltas[--core->ephemeral_delta_count];
        struct session *session = owners_session(core->owners, leased->session);
        if (!leased->index_deleted)
            session__count_ephemeral(core, leased->session, leased->index, leased->type, -leased->delta);
        else if (session != NULL)
            session_move_gone(session, living_in(core, session, leased->index, leased->type), false);
    }
}

static void note_gone(struct core *core, const struct session *session, const struct ephemeral_counter *living)
{
    core->ephemeral_deltas =
        arena_grow(&core->arena, core->ephemeral_deltas, core->ephemeral_delta_count, &core->ephemeral_delta_capacity, sizeof *core->ephemeral_deltas);
    core->ephemeral_deltas[core->ephemeral_delta_count++] =
        (struct ephemeral_delta){arena_copy(&core->arena, session->id), living->index, living->type, 0, true};
}

void owners__drop_index(struct core *core, uint32_t index)
{
    size_t position = 0;
    struct slice id;
    void *value;
    while (core->owners != NULL && map_next(&core->owners->sessions, &position, &id, &value)) {
        struct session *session = value;
        core__work(core, WORK_LOCK + WORK_LOCK * session->ephemeral_counter_count);
        for (size_t i = 0; i < session->ephemeral_counter_count; i++) {
            struct ephemeral_counter *living = &session->ephemeral_counters[i];
            if (living->index != index || living->orphaned)
                continue;
            session_move_gone(session, living, true);
            note_gone(core, session, living);
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
                session_move_gone(session, &session->ephemeral_counters[i], true);
    }
}

/* Removes marks of one session that are of deleted indices, at most `max`. */
static int forget_gone(struct core *core, struct session *session, size_t max, size_t *removed)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < session->ephemeral_counter_count && *removed < max; i++)
        if (session->ephemeral_counters[i].orphaned && session->ephemeral_counters[i].count > 0)
            r = ephemeral__remove_index(core, session->id, session->ephemeral_counters[i].index, max - *removed, removed);
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
            r = forget_gone(core, session, max, ret_removed);
    }
    return r;
}

/* --- After a restart ---------------------------------------------------------------------------------------------- */

static void go_on_leaving(struct core *core, struct session *session)
{
    struct owners *owners = core->owners;
    if (!list_linked(&session->of_terminating))
        list_append(session->cleanup_pending ? &owners->sessions_to_clean : &owners->sessions_to_purge, &session->of_terminating);
}

/* Whether the lease is to begin now: it has none yet, or the connection that kept it alive went with its host. */
static bool begins_anew(struct session *session, uint64_t host)
{
    if (session->attachment == 0 || host_of_number(session->attachment) != host)
        return session->lease.at == TL_TS_MAX;
    session->attachment = 0;
    return true;
}

/* The older ended first, as far as anybody can tell. */
int session__restart(struct core *core, uint64_t host)
{
    size_t position = 0;
    struct slice id;
    void *value;
    while (map_next(&core->owners->sessions, &position, &id, &value)) {
        struct session *session = value;
        core__work(core, WORK_LOCK);
        if (session->terminating)
            go_on_leaving(core, session);
        else if (begins_anew(session, host))
            (void)renew(core, session);
    }
    return 0;
}
