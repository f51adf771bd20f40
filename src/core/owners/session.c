/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: their lives and their ends. README-locks.md, "Sessions". */
#include "base/check.h"
#include "core/documents/action.h"
#include "core/documents/doc.h"
#include "core/owners/owners_internal.h"

#define SESSION_NAME_BYTES_MAX 1024
#define SESSION_TTL_US_MAX (24 * 3600 * TL_SECOND)
#define SESSION_ACTIONS_MAX 1000
#define SESSION_ACTIONS_BYTES_MAX ((size_t)1 << 20)

/* --- Beginning ---------------------------------------------------------------------------------------------------- */

struct session *session__make(struct core *core, struct slice id, struct slice name, uint64_t ttl_us, tl_ts created)
{
    struct session *session = mem_zalloc(sizeof *session);
    session->party = (struct party){.kind = PARTY_SESSION, .session = session};
    lock_owner_init(&core->owners->locks, &session->party.owner, NULL, &session->party);
    session->id = slice_make(mem_strdup(id.data, id.len), id.len);
    session->name = slice_make(mem_strdup(name.data, name.len), name.len);
    session->ttl_us = ttl_us;
    session->created = created;
    session->expires_at = TL_TS_MAX;
    list_init(&session->transactions);
    list_init(&session->waits);
    return session;
}

void session__free(struct core *core, struct session *session)
{
    struct owners *owners = core->owners;
    REQUIRE(list_empty(&session->transactions) && list_empty(&session->waits));
    deadline_set(&owners->leases, &session->lease, TL_TS_MAX);
    lock_release_all(&owners->locks, &session->party.owner);
    lock_owner_deinit(&session->party.owner);
    mem_free((char *)(uintptr_t)session->id.data);
    mem_free((char *)(uintptr_t)session->name.data);
    mem_free((char *)(uintptr_t)session->on_expire.data);
    mem_free(session);
}

/* The lease begins anew. */
static void renew(struct core *core, struct session *session)
{
    session->expires_at = deadline_after(core, session->ttl_us);
    deadline_set(&core->owners->leases, &session->lease, session->expires_at);
}

static void explain_missing(struct slice id, struct arena *arena, struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_SESSION_MISSING, "no session [%.*s]: it has ended, or never was",
                SLICE_ARG(id));
}

struct session *session__find(struct core *core, struct slice id, struct arena *arena, struct problem *ret_problem)
{
    struct session *session = owners_session(core->owners, id);
    if (session == NULL)
        explain_missing(id, arena, ret_problem);
    return session;
}

int core_find_session(struct store *store, struct slice session, struct arena *arena, struct problem *ret_problem)
{
    int r = session__look_up(store, session);
    if (r == STORE_NOT_FOUND)
        explain_missing(session, arena, ret_problem);
    return r < 0 ? tl_trace(r) : r == 0 ? 0 : 1;
}

int owners__check_lease(struct core *core, struct slice session, struct arena *arena, struct problem *ret_problem)
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
    if (check_open(core, command, buf_view(&actions))) {
        struct session *session = session__make(core, wanted->id, wanted->name, wanted->ttl_us, core->ts);
        session->on_expire = slice_make(mem_strdup(actions.data, actions.len), actions.len);
        renew(core, session);
        map_put(&core->owners->sessions, session->id, session);
        session__put_record(core, session);
        wanted->expires_at = session->expires_at;
    }
    buf_deinit(&actions);
    return 0;
}

int core__do_session_keepalive(struct core *core, struct command *command)
{
    struct session *session = session__find(core, command->session.id, &command->arena, &command->problem);
    if (session == NULL)
        return 0;
    renew(core, session);
    command->session.expires_at = session->expires_at;
    return 0;
}

int core__do_session_attach(struct core *core, struct command *command)
{
    struct session *session = session__find(core, command->session.id, &command->arena, &command->problem);
    if (session == NULL)
        return 0;
    renew(core, session);
    session->attachment = command->session.attachment;
    command->session.expires_at = session->expires_at;
    return 0;
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

/* The connection broke. An attachment that was replaced by another means nothing any more. */
int core__do_session_detach(struct core *core, struct command *command)
{
    struct session *session = owners_session(core->owners, command->session.id);
    if (session == NULL || session->attachment != command->session.attachment)
        return 0;
    return session__end(core, session, SESSION_END_DETACHED);
}

int core__do_session_close(struct core *core, struct command *command)
{
    struct session *session = session__find(core, command->session.id, &command->arena, &command->problem);
    if (session == NULL)
        return 0;
    return session__end(core, session, command->session.force ? SESSION_END_FORCED : SESSION_END_CLOSED);
}

void session__cancel_waits(struct core *core, struct session *session)
{
    while (!list_empty(&session->waits))
        wait__fail(core, list_entry(session->waits.next, struct wait, of_session), PROBLEM_SESSION_MISSING,
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

/* What a session leaves behind, as it goes. */
struct leaving {
    struct core *core;
    struct lock_owner *owner; /* whose locks are no obstacle: the session's, or of the wait for one document */
    struct wants spared;      /* documents that somebody else has locked */
    struct wants gone;        /* those that go, where the table of locks may know them */
};

/* Spares a document that a lock of somebody else, or a request that waits, stands against. */
static bool spare(void *context, uint32_t index_number, uint16_t type_number, struct slice id)
{
    struct leaving *leaving = context;
    struct core *core = leaving->core;
    const struct catalog_index *index = catalog_index_by_number(core->catalog, index_number);
    const struct mapping_type *type = mapping_type_by_number(index->mapping, type_number);
    struct lock_want want = {{arena_copy(&core->arena, index->name), SLICE_NONE, arena_copy(&core->arena, type->name),
                              arena_copy(&core->arena, id)},
                             LOCK_X,
                             false};
    if (lock_table_idle(&core->owners->locks) ||
        write__place(core, NULL, want.on.index, want.on.type, want.on.id, &want.on.path) < 0)
        return false;
    bool spared = !names__free_for(core, leaving->owner, &want.on);
    wants__add(core, spared ? &leaving->spared : &leaving->gone, &want);
    return spared;
}

/* Removes the documents that lived with a session, but for those that are spared. Locks on them lie in their index now. */
static int end_lease(struct leaving *leaving, struct slice id)
{
    int r = write__end_lease(leaving->core, id, spare, leaving);
    for (size_t i = 0; r >= 0 && i < leaving->gone.count; i++)
        names__move(leaving->core, &leaving->gone.items[i].on, SLICE_NONE);
    return r;
}

/* Each spared document goes when its lock can be had. */
static void wait_for_spared(struct core *core, struct slice id, const struct leaving *leaving)
{
    for (size_t i = 0; i < leaving->spared.count; i++) {
        struct wait *wait = wait__new(core, NULL, NULL, NULL, NULL);
        wait->lease = mem_strdup(id.data, id.len);
        wait->lease_len = id.len;
        struct wants wants = names__of_document(core, &leaving->spared.items[i].on);
        int outcome = wait__ask(core, wait, wants.items, wants.count, true);
        wait__park(core, wait, TL_TS_MAX);
        if (outcome == LOCK_GRANTED)
            wait__ready(core, wait);
    }
}

static int resume_leftovers(struct core *core, struct wait *wait)
{
    struct leaving leaving = {.core = core, .owner = wait->owner};
    int r = end_lease(&leaving, slice_make(wait->lease, wait->lease_len));
    wait__free(core, wait);
    return r;
}

/* It waits for as long as it takes, and holds nothing that a circle could go through. */
const struct turns leftovers__turns = {wait__ready, resume_leftovers, NULL, NULL};

/*
 * Runs what it left for this case. What another's lock forbids is not done; the story says so.
 * Owns: the caller, *ret_command in every case; it must live until the unit ends.
 */
static int run_actions(struct core *core, struct session *session, struct buf *story, struct command **ret_command)
{
    struct command *command = *ret_command = command_new(COMMAND_WRITE, DIALECT_7);
    struct slice actions = arena_copy(&command->arena, session->on_expire);
    size_t failed;
    struct slice reason;
    if (actions.len == 0)
        return 0;
    int r = action_decode_all(actions, &command->arena, &command->write.items, &command->write.item_count);
    if (r < 0 || command->write.item_count == 0)
        return tl_trace(r);
    r = admit__run_actions(core, session, command, &failed, &reason);
    buf_printf(story, "\nactions done: %zu of %zu", command->write.item_count - failed, command->write.item_count);
    if (failed > 0)
        buf_printf(story, "; the first that was not: %.*s", SLICE_ARG(reason));
    return r;
}

static void end_transactions(struct core *core, struct session *session, enum session_end how, struct buf *story)
{
    while (!list_empty(&session->transactions)) {
        struct txn *txn = list_entry(session->transactions.next, struct txn, of_session);
        buf_printf(story, "\ntransaction %.*s is rolled back", SLICE_ARG(txn->id));
        txn__abort(core, txn, "its session [%.*s] %s", SLICE_ARG(session->id), end_text(how));
    }
}

int session__end(struct core *core, struct session *session, enum session_end how)
{
    struct owners *owners = core->owners;
    struct leaving leaving = {.core = core, .owner = &session->party.owner};
    struct buf story = BUF_INIT(BUF_UNLIMITED);
    struct command *actions = NULL;
    int r = 0;

    story_owner(&session->party.owner, &story);
    buf_printf(&story, " %s", end_text(how));
    session__cancel_waits(core, session);
    end_transactions(core, session, how, &story);
    if (how != SESSION_END_CLOSED)
        r = run_actions(core, session, &story, &actions);
    size_t documents = session__ephemeral_count(core, session);
    if (r >= 0)
        r = end_lease(&leaving, session->id);
    size_t released = lock_release_all(&owners->locks, &session->party.owner);
    wait_for_spared(core, session->id, &leaving);
    if (documents > leaving.spared.count)
        buf_printf(&story, "\ndocuments that lived with it and are removed: %zu", documents - leaving.spared.count);
    if (leaving.spared.count > 0)
        buf_printf(&story, "\ndocuments that go when their locks do: %zu", leaving.spared.count);
    if (released > 0)
        buf_printf(&story, "\nlocks released: %zu", released);
    if (how != SESSION_END_CLOSED)
        stories_tell(&owners->stories, core->ts, "expiry", buf_view(&story));
    buf_deinit(&story);
    core__free_at_end(core, actions);
    session__drop_record(core, session);
    map_remove(&owners->sessions, session->id);
    session__free(core, session);
    return r < 0 ? tl_trace(r) : 0;
}

/* --- After a restart ---------------------------------------------------------------------------------------------- */

/* Ends the leases of sessions that are no more: of documents that somebody had locked when their session ended. */
static int end_lost_leases(struct core *core)
{
    struct slice id;
    struct buf after = BUF_INIT(BUF_UNLIMITED);
    int r;
    while ((r = lease__next(core, buf_view(&after), &core->arena, &id)) == 0) {
        struct leaving leaving = {.core = core};
        buf_clear(&after);
        buf_slice(&after, id);
        if (owners_session(core->owners, id) != NULL)
            continue;
        r = end_lease(&leaving, id);
        if (r < 0)
            break;
        wait_for_spared(core, id, &leaving);
    }
    buf_deinit(&after);
    return r < 0 ? tl_trace(r) : 0;
}

int session__restart(struct core *core)
{
    size_t position = 0;
    struct slice id;
    void *value;
    while (map_next(&core->owners->sessions, &position, &id, &value))
        renew(core, value);
    return end_lost_leases(core);
}

size_t session__ephemeral_count(struct core *core, const struct session *session)
{
    size_t count = 0;
    return lease__count(core, session->id, &count) < 0 ? 0 : count;
}
