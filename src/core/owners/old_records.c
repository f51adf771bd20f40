/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the records of sessions, locks and transactions that data directories of formats 1 and 2
 * have in SPACE_SYSTEM, and removes them. Only such a store, converted at a start, has them; since
 * format 3 checkpoints and the command log have this state (README.md, "Checkpoints").
 *
 *   'S', id                     session: number (varint), ttl, created, name, actions; after its
 *                               cleanup also end_kind and locks_released
 *   'Z', id                     cleanup in progress: end_kind and actions_finished (varint),
 *                               actions_processed, script_steps_left
 *   'L', lock number (u64be),   lock: mode, space and flags (LOCK_RECORD_...), since, token,
 *        session number (u64be) index, path, type, id; the path of a document is not stored
 *   'K', number (u64be)         deferred action: kind ('a' action, 'r' removal; upper case when set
 *                               aside), end of its session, the session's id and name, the action
 *   'Y', deferred (u64be),      attempts of a cleanup action: their number (varint)
 *        action (u64be), session
 *   'B', id                     open transaction: mode, created, age (not in the oldest ones), its
 *                               session's public number
 *
 * Directories of format 3 of earlier versions may have 'B', 'K', 'Y' and 'Z' records, which nothing
 * reads.
 */

#include <stdlib.h>

#include "base/check.h"
#include "core/documents/action.h"
#include "core/documents/doc.h"
#include "core/documents/ephemeral.h"
#include "core/documents/write.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/cleanup/cleanup_attempt.h"
#include "core/cleanup/deferred.h"
#include "core/wait/lock_event.h"
#include "core/session/owners.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/wait/wait.h"
#include "core/command/command.h"
#include "core/owners/owners_step.h"
#include "core/unit/unit.h"

/* --- Loading ------------------------------------------------------------------------------------------------------ */

/* The first byte of a lock's record: mode, space, whether it is auxiliary. */
enum { LOCK_RECORD_MODE = 3, LOCK_RECORD_SPACE_SHIFT = 2, LOCK_RECORD_SPACE = 3, LOCK_RECORD_AUXILIARY = 16 };

/* The ranges of records that core_convert() removes. */
static const struct {
    const char *lower, *upper;
} removed[] = {{"B", "C"}, {"K", "M"}, {"Y", "["}};

enum { NOT_TERMINATING = 255 };

struct loaded {
    struct session *session;
    uint64_t number;
};

struct loader {
    struct core *core;
    struct loaded *sessions; /* sorted by number in add_sessions() */
    size_t count;
    size_t capacity;
};

/* Takes the end of a session past its cleanup: end_kind and locks_released. */
static bool take_end(struct slice *value, uint64_t *ret_end)
{
    return slice_take_varint(value, ret_end) && *ret_end >> 1 <= SESSION_END_DETACHED;
}

/*
 * A record without a value is of this format: its session is in a checkpoint, which this store has
 * lost.
 */
static int load_session(void *context, struct slice key, struct slice value)
{
    struct loader *loader = context;
    uint64_t number, ttl, created, end_kind = NOT_TERMINATING;
    struct slice name, actions;
    if (value.len == 0)
        return 0;
    if (key.len < 2 || !slice_take_varint(&value, &number) || !slice_take_varint(&value, &ttl) ||
        !slice_take_varint(&value, &created) || !action_take_slice(&value, &name) ||
        !action_take_slice(&value, &actions) || (value.len > 0 && !take_end(&value, &end_kind)))
        return tl_trace(TL_ERR_CORRUPT);
    if (loader->count == loader->capacity) {
        loader->capacity = loader->capacity ? loader->capacity * 2 : 64;
        loader->sessions = mem_realloc(loader->sessions, loader->capacity * sizeof *loader->sessions);
    }
    struct session *session = session__make(loader->core, slice_from_offset(key, 1), name, ttl, created);
    session->recorded = true;
    session->on_expire = mem_dup_slice(actions);
    loader->core->owners->action_bytes += actions.len;
    if (end_kind != NOT_TERMINATING)
        session__set_terminating(loader->core, session);
    session->end_kind = (enum session_end)(end_kind >> 1);
    session->locks_released = end_kind != NOT_TERMINATING && (end_kind & 1) != 0;
    if (session->terminating)
        describe_owner(&session->owner.locks, loader->core, &session->end_report);
    loader->sessions[loader->count++] = (struct loaded){session, number};
    return 0;
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = ((const struct loaded *)a)->number;
    uint64_t y = ((const struct loaded *)b)->number;
    return (x > y) - (x < y);
}

/*
 * Restores the numbers of the sessions, to which 'L' records refer, and adds the sessions to the
 * map, oldest first.
 */
static void add_sessions(struct loader *loader)
{
    REQUIRE(loader->core->owners->sessions.count == 0);
    struct owners *owners = loader->core->owners;
    if (loader->count > 1)
        qsort(loader->sessions, loader->count, sizeof *loader->sessions, compare_numbers);
    for (size_t i = 0; i < loader->count; i++) {
        struct session *session = loader->sessions[i].session;
        session->owner.locks.number = loader->sessions[i].number;
        session__register(loader->core, session);
    }
    if (loader->count > 0 && owners->locks.last_owner < loader->sessions[loader->count - 1].number)
        owners->locks.last_owner = loader->sessions[loader->count - 1].number;
}

static struct session *session_by_number(const struct loader *loader, uint64_t number)
{
    struct loaded key = {NULL, number};
    struct loaded *found =
        loader->count == 0 ? NULL : bsearch(&key, loader->sessions, loader->count, sizeof key, compare_numbers);
    return found == NULL ? NULL : found->session;
}

static int load_lock(void *context, struct slice key, struct slice value)
{
    struct loader *loader = context;
    struct core *core = loader->core;
    uint64_t number, lock, since, token;
    struct slice mode;
    struct lock_spec spec = {0};
    key = slice_from_offset(key, 1);
    if (!slice_take_u64be(&key, &lock) || !slice_take_u64be(&key, &number) || !slice_take(&value, 1, &mode) ||
        !slice_take_varint(&value, &since) || !slice_take_varint(&value, &token) ||
        !action_take_slice(&value, &spec.on.index) || !action_take_slice(&value, &spec.on.path) ||
        !action_take_slice(&value, &spec.on.type) || !action_take_slice(&value, &spec.on.id))
        return tl_trace(TL_ERR_CORRUPT);
    struct session *session = session_by_number(loader, number);
    spec.mode = (enum lock_mode)(mode.data[0] & LOCK_RECORD_MODE);
    spec.on.space = (enum resource_space)(mode.data[0] >> LOCK_RECORD_SPACE_SHIFT & LOCK_RECORD_SPACE);
    spec.auxiliary = (mode.data[0] & LOCK_RECORD_AUXILIARY) != 0;
    if (session == NULL || spec.mode == LOCK_NONE || spec.on.space >= RESOURCE_SPACE_COUNT ||
        mode.data[0] >= 2 * LOCK_RECORD_AUXILIARY)
        return tl_trace(TL_ERR_CORRUPT);
    if (spec.on.id.data != NULL) {
        int r = write__path_of(core, NULL, spec.on.index, spec.on.type, spec.on.id, &spec.on.path);
        if (r < 0)
            return tl_trace(r);
    }
    lock_table_restore(&core->owners->locks, &session->owner.locks, &spec, lock, since, token);
    core->last_ts = token > core->last_ts ? token : core->last_ts;
    return 0;
}

static int load_progress(void *context, struct slice key, struct slice value)
{
    struct loader *loader = context;
    struct core *core = loader->core;
    struct session *session = owners_session(core->owners, slice_from_offset(key, 1));
    uint64_t end_kind, processed;
    if (session == NULL || session->terminating || !slice_take_varint(&value, &end_kind) ||
        end_kind >> 1 > SESSION_END_DETACHED || !slice_take_varint(&value, &processed) ||
        processed > SESSION_ACTIONS_MAX || !slice_take_varint(&value, &session->script_steps_left))
        return tl_trace(TL_ERR_CORRUPT);
    session__set_terminating(core, session);
    session->cleanup_pending = true;
    session->end_kind = (enum session_end)(end_kind >> 1);
    session->actions_finished = (end_kind & 1) != 0;
    session->actions_processed = (size_t)processed;
    describe_owner(&session->owner.locks, core, &session->end_report);
    return 0;
}

static int load_range(struct loader *loader, const char *lower, const char *upper, store_visit *load)
{
    return store_each(loader->core->store, SPACE_SYSTEM, TL_TS_MAX, slice_from(lower), slice_from(upper), load, loader);
}

static void count_document(void *context, struct slice session, struct slice document)
{
    struct core *core = context;
    uint32_t index;
    uint16_t type;
    struct slice id;
    if (doc_key_parse(document, &index, &type, &id))
        session__count_ephemeral(core, session, index, type, 1);
}

static int load_deferred(void *context, struct slice key, struct slice value)
{
    struct core *core = ((struct loader *)context)->core;
    struct deferred deferred = {0};
    struct slice kind;
    key = slice_from_offset(key, 1);
    if (!slice_take_u64be(&key, &deferred.number) || deferred.number == 0 || !slice_take(&value, 1, &kind) ||
        !slice_take_varint(&value, &deferred.ended) || !action_take_slice(&value, &deferred.session) ||
        !action_take_slice(&value, &deferred.name) || !action_take_slice(&value, &deferred.action))
        return tl_trace(TL_ERR_CORRUPT);
    deferred.removal = kind.data[0] == 'r' || kind.data[0] == 'R';
    deferred.set_aside = kind.data[0] == 'R' || kind.data[0] == 'A';
    deferred__make(core, &deferred);
    return 0;
}

static int load_attempt(void *context, struct slice key, struct slice value)
{
    struct loader *loader = context;
    uint64_t deferred, action, count;
    key = slice_from_offset(key, 1);
    if (!slice_take_u64be(&key, &deferred) || !slice_take_u64be(&key, &action) || !slice_take_varint(&value, &count) ||
        count == 0 || count > CLEANUP_ATTEMPTS_MAX)
        return tl_trace(TL_ERR_CORRUPT);
    cleanup_attempt__restore(loader->core, key, deferred, action, count);
    return 0;
}

static int note_record(void *context, struct slice key, struct slice value)
{
    struct loader *loader = context;
    (void)key;
    (void)value;
    loader->core->old_records = true;
    return 0;
}

static int load_all(struct loader *loader)
{
    struct core *core = loader->core;
    int r = load_range(loader, "S", "T", load_session);
    core->old_records = loader->count > 0;
    add_sessions(loader);
    if (r == 0)
        r = load_range(loader, "Z", "[", load_progress);
    if (r == 0)
        r = ephemeral__each(core, count_document, core);
    if (r == 0)
        r = load_range(loader, "K", "L", load_deferred);
    deferred__find_unrequested(core);
    if (r == 0)
        r = load_range(loader, "Y", "Z", load_attempt);
    if (r == 0)
        r = load_range(loader, "L", "M", load_lock);
    return r;
}

int owners__load_old(struct core *core)
{
    REQUIRE(!core->open && core->owners->sessions.count == 0);
    struct loader loader = {.core = core};
    int r = load_all(&loader);
    for (size_t i = 0; r == 0 && i < sizeof removed / sizeof removed[0]; i++)
        r = load_range(&loader, removed[i].lower, removed[i].upper, note_record);
    mem_free(loader.sessions);
    arena_reset(&core->arena);
    arena_reset(&core->scratch);
    return r > 0 ? tl_trace(TL_ERR_CORRUPT) : r;
}

/* --- Converting --------------------------------------------------------------------------------------------------- */

/*
 * Takes the age of an open transaction. Records of format 1, and the first ones of format 2, have none: what follows
 * is the session then, and nothing else. An age is a timestamp, which is no length of a text.
 */
static bool take_age(struct slice *value, struct txn_outcome *outcome)
{
    struct slice rest = *value, session;
    outcome->age = outcome->created;
    return (action_take_slice(&rest, &session) && rest.len == 0) || slice_take_varint(value, &outcome->age);
}

/* Gives a transaction that was open its outcome. */
static int end_lost(void *context, struct slice key, struct slice value)
{
    REQUIRE(((struct loader *)context)->core->open);
    struct core *core = ((struct loader *)context)->core;
    struct txn_outcome outcome = {.ended = core->ts, .cause = SLICE_LIT("the server was restarted")};
    struct slice mode;
    if (!slice_take(&value, 1, &mode) || !slice_take_varint(&value, &outcome.created) || !take_age(&value, &outcome) ||
        !action_take_slice(&value, &outcome.session))
        return tl_trace(TL_ERR_CORRUPT);
    outcome.mode = mode.data[0] == TXN_QUERY ? TXN_QUERY : TXN_UPDATE;
    txn__put_outcome(core, slice_from_offset(key, 1), &outcome);
    return 0;
}

/* Gives the records of sessions the form of this format: terminating sessions have none. */
static void convert_sessions(struct core *core)
{
    REQUIRE(core->open);
    size_t position = 0;
    struct slice id;
    void *value;
    while (map_next(&core->owners->sessions, &position, &id, &value)) {
        struct session *session = value;
        if (session->terminating)
            session__drop_record(core, session);
        else
            session__put_record(core, session);
    }
}

int owners__convert(struct core *core)
{
    REQUIRE(core->open);
    struct loader loader = {.core = core};
    int r = load_range(&loader, "B", "C", end_lost);
    for (size_t i = 0; i < sizeof removed / sizeof removed[0]; i++)
        store_batch_delete_range(core->batch, SPACE_SYSTEM, slice_from(removed[i].lower), slice_from(removed[i].upper));
    convert_sessions(core);
    return r < 0 ? tl_trace(r) : 0;
}
