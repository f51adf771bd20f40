/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions and their locks in the store, in SPACE_SYSTEM:
 *
 *   'S', id                     session: number (varint), ttl, created, name, actions; after its
 *                               cleanup also end_kind and locks_released
 *   'Z', id                     cleanup in progress: end_kind and actions_finished (varint),
 *                               actions_processed, script_steps_left
 *   'L', lock number (u64be),   lock: mode, space and flags (LOCK_RECORD_...), since, token,
 *        session number (u64be) index, path, type, id
 *
 * After core_begin_saving() there are no 'L' records: the command log and the checkpoints of
 * core_save() make locks durable. A lock that is acquired and released between two checkpoints
 * costs the store nothing.
 *
 * Numbers of sessions and of grants rise with age and are the same after a restart. The lock number
 * comes first in the key: recent locks, which are released soonest, are at the end of RocksDB's
 * memtable, where insertion is cheap. The path of a locked document is not stored; it is read from
 * the document.
 */
#include <stdlib.h>

#include "base/check.h"
#include "core/catalog/purge.h"
#include "core/documents/action.h"
#include "core/documents/doc.h"
#include "core/documents/ephemeral.h"
#include "core/documents/write.h"
#include "core/locks/lock.h"
#include "core/locks/lock_record_buf.h"
#include "core/locks/resource.h"
#include "core/owners/deferred.h"
#include "core/owners/lock_history.h"
#include "core/owners/owners.h"
#include "core/owners/owner.h"
#include "core/owners/session.h"
#include "core/owners/lock_event.h"
#include "core/owners/cleanup_attempt.h"
#include "core/step/command.h"
#include "core/step/hooks.h"
#include "core/step/unit.h"

static struct slice session_key(struct buf *buf, struct slice id)
{
    buf_byte(buf, 'S');
    buf_slice(buf, id);
    return buf_as_slice(buf);
}

static struct slice lock_key(struct buf *buf, uint64_t lock, uint64_t session)
{
    buf_byte(buf, 'L');
    buf_u64be(buf, lock);
    buf_u64be(buf, session);
    return buf_as_slice(buf);
}

void session__put_record(struct core *core, const struct session *session)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct buf value = BUF_INIT(BUF_UNLIMITED);
    buf_varint(&value, session->owner.locks.number);
    buf_varint(&value, session->ttl_us);
    buf_varint(&value, session->created);
    action_put_slice(&value, session->name);
    action_put_slice(&value, session->on_expire); /* empty after the cleanup */
    if (session->terminating)
        buf_varint(&value, (uint64_t)session->end_kind << 1 | session->locks_released);
    store_batch_put(core->batch, SPACE_SYSTEM, session_key(&key, session->id), buf_as_slice(&value));
    buf_deinit(&key);
    buf_deinit(&value);
}

static struct slice progress_key(struct buf *buf, struct slice id)
{
    buf_byte(buf, 'Z');
    buf_slice(buf, id);
    return buf_as_slice(buf);
}

void session__put_progress(struct core *core, const struct session *session)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct buf value = BUF_INIT(BUF_UNLIMITED);
    buf_varint(&value, (uint64_t)session->end_kind << 1 | session->actions_finished);
    buf_varint(&value, session->actions_processed);
    buf_varint(&value, session->script_steps_left);
    store_batch_put(core->batch, SPACE_SYSTEM, progress_key(&key, session->id), buf_as_slice(&value));
    buf_deinit(&key);
    buf_deinit(&value);
}

void session__drop_progress(struct core *core, const struct session *session)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    store_batch_delete(core->batch, SPACE_SYSTEM, progress_key(&key, session->id));
    buf_deinit(&key);
}

/* Whether an 'S' record is of a session past its cleanup: it has the optional fields. */
static bool is_terminating(struct slice value)
{
    uint64_t number;
    struct slice text;
    for (int i = 0; i < 3; i++)
        if (!slice_take_varint(&value, &number))
            return false;
    return action_take_slice(&value, &text) && action_take_slice(&value, &text) && value.len > 0;
}

int session__check_stored(struct store *store, struct slice id)
{
    tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct store_value value;
    int r = store_get(store, SPACE_SYSTEM, TL_TS_MAX, session_key(&key, id), &value);
    if (r != 0)
        return r;
    bool leaving = is_terminating(value.bytes);
    store_value_release(&value);
    if (leaving)
        return STORE_NOT_FOUND;
    buf_clear(&key);
    r = store_get(store, SPACE_SYSTEM, TL_TS_MAX, progress_key(&key, id), &value);
    if (r == 0)
        store_value_release(&value);
    return r == 0 ? STORE_NOT_FOUND : r == STORE_NOT_FOUND ? 0 : r;
}

void session__drop_record(struct core *core, const struct session *session)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    store_batch_delete(core->batch, SPACE_SYSTEM, session_key(&key, session->id));
    buf_deinit(&key);
}

void session__put_orphan_purge(struct core *core, const struct session *session)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    store_batch_put(core->batch, SPACE_SYSTEM, purge_key(&key, PURGE_EPHEMERAL_KEYS, core->ts, session->id),
                    SLICE_LIT(""));
    buf_deinit(&key);
}

/*
 * The first byte of a lock's record: mode, space, whether it is auxiliary. LOCK_RECORD_RELEASED is
 * in the hash chain only.
 */
enum {
    LOCK_RECORD_MODE = 3,
    LOCK_RECORD_SPACE_SHIFT = 2,
    LOCK_RECORD_SPACE = 3,
    LOCK_RECORD_AUXILIARY = 16,
    LOCK_RECORD_RELEASED = 32
};

static void encode_lock(struct buf *value, const struct lock_hold *hold)
{
    struct arena arena = ARENA_INIT;
    struct resource_name name = resource_name(hold->resource, &arena);
    buf_byte(value, (char)(hold->mode | (unsigned)name.space << LOCK_RECORD_SPACE_SHIFT |
                           (hold->auxiliary ? LOCK_RECORD_AUXILIARY : 0)));
    buf_varint(value, hold->since);
    buf_varint(value, hold->token);
    action_put_slice(value, name.index);
    action_put_slice(value, name.id.data != NULL ? SLICE_NONE : name.path);
    action_put_slice(value, name.type);
    action_put_slice(value, name.id);
    arena_deinit(&arena);
}

static void hash_lock_change(struct core *core, const struct lock_hold *hold, bool released)
{
    const uint64_t change[] = {
        core->lock_chain,
        core->ts,
        hold->number,
        hold->owner->number,
        hold->token,
        hold->mode | (hold->auxiliary ? LOCK_RECORD_AUXILIARY : 0) | (released ? LOCK_RECORD_RELEASED : 0)};
    core->lock_chain = slice_hash(slice_make(change, sizeof change));
}

int owners__drop_lock_records(struct core *core)
{
    const struct slice lower = SLICE_LIT("L"), upper = SLICE_LIT("M");
    struct store_iter *iter = store_iter_new(core->store, SPACE_SYSTEM, TL_TS_MAX, lower, upper);
    store_iter_seek_first(iter);
    bool any = store_iter_valid(iter);
    int r = store_iter_status(iter);
    store_iter_free(iter);
    if (r < 0 || !any)
        return r;
    store_batch_clear(core->batch);
    store_batch_begin(core->batch, ++core->last_ts);
    store_batch_delete_range(core->batch, SPACE_SYSTEM, lower, upper);
    r = store_write(core->store, core->batch);
    store_batch_clear(core->batch);
    return r < 0 ? tl_trace(r) : 0;
}

/* Only locks of sessions survive a restart; those of transactions and writes do not. */
void session__lock_changed(void *context, const struct lock_hold *hold, bool released)
{
    struct owners *owners = context;
    struct core *core = owners->core;
    lock_history_record_hold(&owners->lock_history, hold, released, core->ts);
    if (owner_of(hold->owner)->kind != OWNER_SESSION)
        return;
    REQUIRE(core->open);
    if (core->saving) {
        core->locks_changed = true;
        if (core->chained)
            hash_lock_change(core, hold, released);
        return;
    }
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    lock_key(&key, hold->number, hold->owner->number);
    if (released) {
        lock_record_buf_delete(&core->lock_records, buf_as_slice(&key));
        core->recorded_ts = TL_TS_NONE; /* the dropped record may have had it */
    } else {
        struct buf value = BUF_INIT(BUF_UNLIMITED);
        encode_lock(&value, hold);
        lock_record_buf_put(&core->lock_records, buf_as_slice(&key), buf_as_slice(&value));
        core->recorded_ts = hold->token > core->recorded_ts ? hold->token : core->recorded_ts;
        buf_deinit(&value);
    }
    buf_deinit(&key);
}

/* --- Loading ------------------------------------------------------------------------------------------------------ */

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

static int load_session(void *context, struct slice key, struct slice value)
{
    struct loader *loader = context;
    uint64_t number, ttl, created, end_kind = NOT_TERMINATING;
    struct slice name, actions;
    if (!slice_take_varint(&value, &number) || !slice_take_varint(&value, &ttl) ||
        !slice_take_varint(&value, &created) || !action_take_slice(&value, &name) ||
        !action_take_slice(&value, &actions) || (value.len > 0 && !slice_take_varint(&value, &end_kind)))
        return tl_trace(TL_ERR_CORRUPT);
    if (loader->count == loader->capacity) {
        loader->capacity = loader->capacity ? loader->capacity * 2 : 64;
        loader->sessions = mem_realloc(loader->sessions, loader->capacity * sizeof *loader->sessions);
    }
    struct session *session = session__make(loader->core, slice_from_offset(key, 1), name, ttl, created);
    session->on_expire = slice_make(mem_strdup(actions.data, actions.len), actions.len);
    loader->core->owners->action_bytes += actions.len;
    if (end_kind != NOT_TERMINATING)
        session__set_terminating(loader->core, session);
    session->end_kind = (enum session_end)(end_kind >> 1);
    session->locks_released = end_kind != NOT_TERMINATING && (end_kind & 1) != 0;
    if (session->terminating)
        describe_owner(&session->owner.locks, &session->end_report);
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
    struct owners *owners = loader->core->owners;
    if (loader->count > 1)
        qsort(loader->sessions, loader->count, sizeof *loader->sessions, compare_numbers);
    for (size_t i = 0; i < loader->count; i++) {
        struct session *session = loader->sessions[i].session;
        session->owner.locks.number = loader->sessions[i].number;
        map_put(&owners->sessions, session->id, session);
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
    session->cleanup_pending = session->progress_stored = true;
    session->end_kind = (enum session_end)(end_kind >> 1);
    session->actions_finished = (end_kind & 1) != 0;
    session->actions_processed = (size_t)processed;
    describe_owner(&session->owner.locks, &session->end_report);
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

int session__load_all(struct core *core)
{
    struct loader loader = {.core = core};
    int r = load_range(&loader, "S", "T", load_session);
    add_sessions(&loader);
    if (r == 0)
        r = load_range(&loader, "Z", "[", load_progress);
    if (r == 0)
        r = ephemeral__each(core, count_document, core);
    if (r == 0)
        r = deferred__load_all(core);
    if (r == 0)
        r = cleanup_attempt__load_all(core);
    if (r == 0)
        r = load_range(&loader, "L", "M", load_lock);
    mem_free(loader.sessions);
    arena_reset(&core->arena);
    arena_reset(&core->scratch);
    return r > 0 ? tl_trace(TL_ERR_CORRUPT) : r;
}
