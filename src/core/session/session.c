/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: opening, keepalive, termination, ephemeral documents. README-locks.md, "Sessions". */
#include "core/session/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/magic.h"
#include "base/sm.h"
#include "core/catalog/catalog.h"
#include "core/catalog/counter.h"
#include "core/command/command.h"
#include "core/documents/action.h"
#include "core/documents/doc.h"
#include "core/documents/ephemeral.h"
#include "core/locks/lock.h"
#include "core/session/owners.h"
#include "core/session/save_pieces.h"
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
    session->id = mem_dup_slice(id);
    session->name = mem_dup_slice(name);
    session->ttl_us = ttl_us;
    session->created = created;
    session->owner.locks.age = created;
    session->lease.at = TL_TS_MAX; /* a session loaded from the store has no lease until RESTART */
    session->end_report = session->first_failure = BUF_INIT(BUF_UNLIMITED);
    list_init(&session->transactions);
    list_init(&session->waits);
    list_init(&session->resolved_waits);
    return session;
}

void session__register(struct core *core, struct session *session)
{
    REQUIRE(MAGIC_VALID(session, SESSION_MAGIC) && session->saved.chunk == NULL);
    struct owners *owners = core->owners;
    map_put(&owners->sessions, session->id, session);
    save_chunk__add(&owners->session_chunks, &session->saved,
                    sizeof *session + session->id.len + session->name.len + session->on_expire.len);
}

size_t owner__release_locks(struct core *core, struct owner *owner)
{
    REQUIRE(owner->locks.user == owner);
    core__note_indivisible(core, WORK_RELEASE * (uint64_t)owner->locks.hold_count);
    return lock_release_all(&core->owners->locks, &owner->locks);
}

void session__touch(struct core *core, struct session *session)
{
    REQUIRE(MAGIC_VALID(session, SESSION_MAGIC));
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
    owner__release_locks(core, &session->owner);
    lock_owner_deinit(&session->owner.locks);
    mem_free_slice(&session->id);
    mem_free_slice(&session->name);
    INSIST(owners->action_bytes >= session->on_expire.len);
    owners->action_bytes -= session->on_expire.len;
    mem_free_slice(&session->on_expire);
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
static tl_ts renew_lease(struct core *core, struct session *session)
{
    REQUIRE(session__state(session) == SESSION_LIVE);
    uint64_t end = deadline_after(core, session->ttl_us);
    deadline_set(&core->owners->leases, &session->lease, end);
    return deadline_ts(core, end);
}

/* With `numbers` a text that can be a public number is not taken for the id of an ended session only. */
static void explain_missing(struct slice id, bool numbers, unsigned version, struct arena *arena,
                            struct problem *ret_problem)
{
    uint64_t number;
    bool hint = numbers && slice_to_u64(id, &number);
    problem_set(ret_problem, arena, PROBLEM_SESSION_MISSING,
                version >= COMMAND_SINCE_PLAIN_TEXTS ? "no session [%.*s]: it has ended, or never existed%s"
                                                     : "no session [%.*s]: it has ended, or never was%s",
                SLICE_ARG(id),
                hint ? "; its public number is accepted only by calls that show it, and with [force]: name its id"
                     : "");
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
    REQUIRE(arena != NULL && ret_problem != NULL);
    struct session *session = owners_live_session(core->owners, id);
    if (session == NULL)
        explain_missing(id, core->command_version >= COMMAND_SINCE_NUMBER_NAMED, core->command_version, arena,
                        ret_problem);
    return session;
}

int core_find_session(struct store *store, struct slice session, struct arena *arena, struct problem *ret_problem)
{
    REQUIRE(store != NULL && arena != NULL && ret_problem != NULL);
    int r = session__check_stored(store, session);
    if (r == STORE_NOT_FOUND)
        explain_missing(session, true, COMMAND_SINCE_PLAIN_TEXTS, arena, ret_problem);
    return r < 0 ? tl_trace(r) : r == 0 ? 0 : 1;
}

int session__check_ephemeral(struct core *core, struct slice session, struct arena *arena, struct problem *ret_problem)
{
    return session__find(core, session, arena, ret_problem) == NULL ? 1 : 0;
}

/* Whether the actions may be within their limit, as their sources show; else they are not encoded to be refused. */
static bool actions_are_small(const struct session_command *request)
{
    size_t bytes = 0;
    for (size_t i = 0; i < request->on_expire_count && bytes <= SESSION_ACTIONS_BYTES_MAX; i++)
        bytes += write_item_source_bytes(&request->on_expire[i]);
    return bytes <= SESSION_ACTIONS_BYTES_MAX && request->on_expire_count <= SESSION_ACTIONS_MAX;
}

/* `bytes`: of its actions. */
static bool check_open(struct core *core, struct command *command, size_t bytes)
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
    else if (request->on_expire_count > SESSION_ACTIONS_MAX || bytes > SESSION_ACTIONS_BYTES_MAX)
        problem_set(problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "[on_expire] is at most [%d] actions and [%zu] bytes",
                    SESSION_ACTIONS_MAX, SESSION_ACTIONS_BYTES_MAX);
    return problem->type == PROBLEM_NONE;
}

int core__do_session_open(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_SESSION_OPEN);
    struct session_command *request = &command->session;
    struct buf actions = BUF_INIT(BUF_UNLIMITED);
    bool small = actions_are_small(request);
    if (small)
        action_encode_all(&actions, request->on_expire, request->on_expire_count);
    if (check_open(core, command, small ? actions.len : SIZE_MAX)) {
        struct session *session = session__make(core, request->id, request->name, request->ttl_us, core->ts);
        session->on_expire = mem_dup_slice(buf_as_slice(&actions));
        core->owners->action_bytes += actions.len;
        request->expires_at = renew_lease(core, session);
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
    REQUIRE(command->type == COMMAND_SESSION_KEEPALIVE);
    struct session *session = session__find(core, command->session.id, &command->arena, &command->problem);
    if (session == NULL)
        return 0;
    command->session.expires_at = renew_lease(core, session);
    return 0;
}

int core__do_session_attach(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_SESSION_ATTACH);
    struct session *session = session__find(core, command->session.id, &command->arena, &command->problem);
    if (session == NULL)
        return 0;
    command->session.expires_at = renew_lease(core, session);
    session->attachment = command->session.attachment;
    session__touch(core, session);
    return 0;
}

/* --- Ended sessions ----------------------------------------------------------------------------------------------- */

void session__set_terminating(struct core *core, struct session *session)
{
    REQUIRE(MAGIC_VALID(session, SESSION_MAGIC));
    REQUIRE(!session->terminating);
    session->terminating = true;
    core->owners->terminating_count++;
}

bool session__any_terminating(const struct core *core)
{
    INSIST(core->owners->terminating_count <= core->owners->sessions.count);
    return core->owners->terminating_count > 0;
}

const char *session__end_text(enum session_end end_kind)
{
    REQUIRE(end_kind <= SESSION_END_DETACHED);
    switch (end_kind) {
    case SESSION_END_CLOSED: return "was closed";
    case SESSION_END_EXPIRED: return "has expired";
    case SESSION_END_FORCED: return "was ended by force";
    case SESSION_END_DETACHED: return "has lost its connection";
    }
    return "";
}

void session__cause_of_end(const struct session *session, char *text, size_t size)
{
    REQUIRE(MAGIC_VALID(session, SESSION_MAGIC) && session->terminating);
    (void)snprintf(text, size, "its session #%llu %s", (unsigned long long)session_number(session),
                   session__end_text(session->end_kind));
}

/* --- Ephemeral documents ------------------------------------------------------------------------------------------ */

int session__check_ephemeral_count(struct core *core, struct slice id, size_t more, struct arena *arena,
                                   struct problem *ret_problem)
{
    REQUIRE(arena != NULL && ret_problem != NULL);
    const struct session *session = owners_live_session(core->owners, id);
    size_t most = core->limits.ephemeral_max;
    if (session == NULL || session->ephemeral_count + more <= most)
        return 0;
    problem_set(ret_problem, arena, PROBLEM_EPHEMERAL_LIMIT,
                core->command_version >= COMMAND_SINCE_PLAIN_TEXTS
                    ? "session [%.*s] owns [%zu] ephemeral documents; the limit is [%zu] [--max-ephemeral]"
                    : "with session [%.*s] live [%zu] documents; [%zu] are the most that may live with one session "
                      "[--max-ephemeral]",
                SLICE_ARG(id), session->ephemeral_count, most);
    return 1;
}

enum { COUNTERS_PER_WORK = 64 /* looked at for one unit of work */ };

/*
 * Finds or adds a counter. While its count is 0 its index number may be given to another index,
 * after a rollback of the unit that created the first one; so `orphaned` is then computed anew. A new one takes the
 * place of one whose count is 0: a session may have had documents in any number of indices.
 */
static struct ephemeral_counter *counter_of(struct core *core, struct session *session, uint32_t index, uint16_t type)
{
    size_t count = session->ephemeral_counter_count, i = 0, empty = count;
    bool reuses = core->command_version >= COMMAND_SINCE_COUNTERS_REUSED; /* their order is saved */
    session__touch(core, session);
    for (; i < count; i++) {
        const struct ephemeral_counter *counter = &session->ephemeral_counters[i];
        if (counter->index == index && counter->type == type)
            break;
        if (reuses && counter->count == 0 && empty == count)
            empty = i;
    }
    core__work(core, i / COUNTERS_PER_WORK);
    if (i == count && empty < count) {
        session->ephemeral_counters[empty] = (struct ephemeral_counter){index, type, 0, false};
        i = empty;
    } else if (i == count) {
        session->ephemeral_counters =
            mem_realloc(session->ephemeral_counters, (count + 1) * sizeof *session->ephemeral_counters);
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
    INSIST((counter->orphaned ? session->orphan_count : session->ephemeral_count) >= counter->count);
    counter->count += (size_t)change;
    *(counter->orphaned ? &session->orphan_count : &session->ephemeral_count) += (size_t)change;
}

/* Moves a counter from the session's ephemeral documents to its orphans, or back. */
static void set_orphaned(struct session *session, struct ephemeral_counter *counter, bool is_orphaned)
{
    INSIST((is_orphaned ? session->ephemeral_count : session->orphan_count) >= counter->count);
    REQUIRE(counter->orphaned != is_orphaned || counter->count == 0); /* else it would be subtracted twice */
    counter->orphaned = is_orphaned;
    session->orphan_count += is_orphaned ? counter->count : -counter->count;
    session->ephemeral_count += is_orphaned ? -counter->count : counter->count;
}

void session__count_ephemeral_document(struct core *core, struct slice session, struct slice key, int change)
{
    REQUIRE(core->open);
    REQUIRE(core->owners != NULL && session.len > 0);
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
        (struct ephemeral_delta){arena_copy(&core->arena, session), index, type, change};
}

void session__rollback_ephemeral_counts(struct core *core)
{
    REQUIRE(core->open);
    struct owners *owners = core->owners;
    while (owners != NULL && owners->ephemeral_delta_count > 0) {
        const struct ephemeral_delta *delta = &owners->ephemeral_deltas[--owners->ephemeral_delta_count];
        session__count_ephemeral(core, delta->session, delta->index, delta->type, -delta->delta);
    }
    if (owners != NULL)
        owners->dropped_count = 0;
}

void session__drop_index(struct core *core, uint32_t index)
{
    REQUIRE(core->open);
    struct owners *owners = core->owners;
    if (owners == NULL)
        return;
    owners->dropped_indices = arena_grow(&core->arena, owners->dropped_indices, owners->dropped_count,
                                         &owners->dropped_capacity, sizeof *owners->dropped_indices);
    owners->dropped_indices[owners->dropped_count++] = index;
}

static int compare_indices(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void session__orphan_dropped(struct core *core)
{
    REQUIRE(core->open && core->owners != NULL);
    struct owners *owners = core->owners;
    size_t position = 0;
    struct slice id;
    void *value;
    if (owners->dropped_count == 0)
        return;
    if (owners->dropped_count > 1)
        qsort(owners->dropped_indices, owners->dropped_count, sizeof *owners->dropped_indices, compare_indices);
    while (map_next(&owners->sessions, &position, &id, &value)) {
        struct session *session = value;
        core__work(core, WORK_LOCK + WORK_LOCK * session->ephemeral_counter_count);
        for (size_t i = 0; i < session->ephemeral_counter_count; i++) {
            struct ephemeral_counter *counter = &session->ephemeral_counters[i];
            if (!counter->orphaned && bsearch(&counter->index, owners->dropped_indices, owners->dropped_count,
                                              sizeof *owners->dropped_indices, compare_indices) != NULL)
                set_orphaned(session, counter, true);
        }
    }
    owners->dropped_count = 0;
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
    ENSURE(*removed <= max);
    return r;
}

int session__purge_ephemeral_keys(struct core *core, size_t max, size_t *ret_removed)
{
    REQUIRE(core->open);
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
    REQUIRE(session__state(session) != SESSION_LIVE);
    struct owners *owners = core->owners;
    REQUIRE(session->lease.at == TL_TS_MAX); /* it expires no more */
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
    REQUIRE(core->open);
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
            (void)renew_lease(core, session);
        }
    }
    return 0;
}
