/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maintenance: purging records that no reader can see any more. The purge queue (purge.h) has the
 * records and when they are due.
 *
 * - A tombstone is removed when its version does not count any more. Readers of earlier timestamps
 *   still see it.
 * - Documents and entries of a deleted index are removed when no readable timestamp precedes the
 *   deletion. Ephemeral keys of its documents are removed at once, since only the newest state uses
 *   them.
 * - Provisional entries of a transaction that did not commit are removed soon, and so are stale
 *   posting lists (sweep.h).
 *
 * The command's effect follows from the state and the command. What depends on the host, the history
 * limit and the stale posting lists that it found, is in the command.
 */
#include "core/maintenance/maintain.h"

#include "base/check.h"
#include "core/catalog/catalog.h"
#include "core/catalog/counter.h"
#include "core/catalog/index.h"
#include "core/catalog/purge.h"
#include "core/command/command.h"
#include "core/documents/doc.h"
#include "core/documents/ephemeral.h"
#include "core/documents/prefetch.h"
#include "core/documents/provisional.h"
#include "core/documents/request_outcome.h"
#include "core/documents/session_tombstone.h"
#include "core/maintenance/sweep.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/step/core.h"
#include "core/tree/tree_record.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "mapping/entry.h"

static const char purge_horizons_key[] = "F"; /* struct purge_horizons: two timestamps */

/* The work of one command. `left` stops at 0. */
struct purge_run {
    struct core *core;
    size_t left;
    size_t removed;
};

static bool may_continue(const struct purge_run *work)
{
    return work->left > 0;
}

static bool stops_by_work(const struct purge_run *work)
{
    return work->core->command_version >= COMMAND_SINCE_WORK_BATCHES;
}

/*
 * Removes a key. Before version 10, `left` wrapped around with the second of two keys that belong
 * together, so that the command had no limit.
 */
static void remove_key(struct purge_run *work, enum store_space space, struct slice key)
{
    REQUIRE(work->core->open);
    core__work(work->core, WORK_SCAN + WORK_READ);
    store_batch_delete(work->core->batch, space, key);
    work->removed++;
    if (work->left > 0 || !stops_by_work(work))
        work->left--;
}

/* Counts keys that a part has removed, or what took as much work. */
static void count_removed(struct purge_run *work, size_t count)
{
    work->removed += count;
    work->left -= count < work->left ? count : work->left;
}

/* Counts the bytes of a record that was read, as keys. */
static void count_bytes(struct purge_run *work, size_t bytes)
{
    core__work_indivisible(work->core, bytes / SWEEP_BYTES_PER_WORK);
    if (stops_by_work(work))
        count_removed(work, bytes / (SWEEP_BYTES_PER_WORK * (WORK_SCAN + WORK_READ)));
}

/* --- Tombstones --------------------------------------------------------------------------------------------------- */

/*
 * Looks at a tombstone of an index with a long index.gc_deletes again this much later at most, so
 * that the record of one whose index is deleted does not stay for as long.
 */
#define LOOK_AGAIN_US (3600 * TL_SECOND)

/*
 * Returns: the timestamp for which a tombstone is queued again, since its version counts still; 0:
 *   it does not. One of a transaction counts from the commit on.
 */
static tl_ts counts_until(const struct core *core, struct slice key, const struct doc *doc)
{
    tl_ts due = core->purge_horizons.tombstones;
    struct slice id;
    uint32_t number;
    uint16_t type;

    if (doc->ts >= due)
        return doc->ts;
    if (core->command_version < COMMAND_SINCE_GC_DELETES || !doc_key_parse(key, &number, &type, &id))
        return 0;
    const struct catalog_index *index = catalog_index_by_number(core->catalog, number);
    if (doc->ts < index__deletes_horizon(core, index, core->ts))
        return 0;
    INSIST(index != NULL && index->gc_deletes_us > (int64_t)CORE_TOMBSTONE_US);
    /* Records are due 60 s after their timestamp. */
    tl_ts later = doc->ts + (uint64_t)index->gc_deletes_us - CORE_TOMBSTONE_US;
    later = later < due + LOOK_AGAIN_US ? later : due + LOOK_AGAIN_US;
    return later > due ? later : due;
}

static int remove_tombstone(struct purge_run *work, struct slice queue_key)
{
    struct core *core = work->core;
    tl_cleanup(buf_deinit) struct buf later = BUF_INIT(BUF_UNLIMITED);
    struct slice key = slice_from_offset(queue_key, PURGE_PREFIX_BYTES);
    struct store_value value;
    struct doc doc;
    int r = store_get(core->store, SPACE_DOCUMENTS, TL_TS_MAX, key, &value);

    remove_key(work, SPACE_SYSTEM, queue_key);
    if (r != 0)
        return r == STORE_NOT_FOUND ? 0 : tl_trace(r);
    count_bytes(work, value.bytes.len); /* of a document, if there is one again */
    r = doc_decode(value.bytes, &doc);
    tl_ts until = r == 0 && doc.deleted ? counts_until(core, key, &doc) : 0;
    if (r == 0 && doc.deleted && until == 0) {
        remove_key(work, SPACE_DOCUMENTS, key);
        recent_writes_record(&core->recent_writes, key, core->ts);
    } else if (r == 0 && doc.deleted)
        store_batch_put(core->batch, SPACE_SYSTEM, purge_key(&later, PURGE_TOMBSTONE, until, key), SLICE_LIT(""));
    store_value_release(&value);
    return r;
}

/* --- Deleted indices ---------------------------------------------------------------------------------------------- */

/* Removes the keys of a range. Its records are read with them, so their bytes count, too. */
static int remove_range(struct purge_run *work, enum store_space space, struct slice lower, struct slice upper)
{
    struct store_iter *iter = store_iter_new(work->core->store, space, TL_TS_MAX, lower, upper);
    int r;

    for (store_iter_seek_first(iter); may_continue(work) && store_iter_valid(iter); store_iter_next(iter)) {
        remove_key(work, space, store_iter_key(iter));
        count_bytes(work, store_iter_value(iter).len);
    }
    r = store_iter_status(iter);
    store_iter_free(iter);
    return r;
}

/*
 * Removes documents and entries of an index. Returns: 0; the purge record is removed with the last
 * of them.
 */
static int remove_index(struct purge_run *work, struct slice queue_key)
{
    char lower[DOC_KEY_PREFIX_BYTES], upper[DOC_KEY_PREFIX_BYTES], from[4], to[4], root[4], beyond[4];
    char first[COUNTER_KEY_BYTES], end[COUNTER_KEY_BYTES];
    struct slice number = slice_from_offset(queue_key, PURGE_PREFIX_BYTES);
    uint32_t index;
    int r;

    if (!slice_take_u32be(&number, &index))
        return tl_trace(TL_ERR_CORRUPT);
    entry_index_bounds(index, from, to);
    r = remove_range(work, SPACE_DOCUMENTS, doc_key(lower, index, 0, SLICE_LIT("")),
                     doc_key(upper, index + 1, 0, SLICE_LIT("")));
    if (r == 0)
        r = remove_range(work, SPACE_ENTRIES, slice_make(from, sizeof(from)), slice_make(to, sizeof(to)));
    tree_index_bounds(index, root, beyond);
    if (r == 0)
        r = remove_range(work, SPACE_TREE, slice_make(root, sizeof(root)), slice_make(beyond, sizeof(beyond)));
    if (r == 0)
        r = remove_range(work, SPACE_CATALOG, counter_key(first, index, 0), counter_key(end, index + 1, 0));
    if (r == 0 && may_continue(work)) {
        counters__drop(&work->core->counters, index);
        remove_key(work, SPACE_SYSTEM, queue_key);
    }
    return r;
}

/* --- Session tombstones ------------------------------------------------------------------------------------------- */

/*
 * Removes a session tombstone once no readable timestamp is between it and the removal of its
 * documents.
 */
static int remove_session_tombstone(struct purge_run *work, struct slice queue_key)
{
    session_tombstone__remove(work->core, queue_key);
    remove_key(work, SPACE_SYSTEM, queue_key);
    return 0;
}

/* --- Ephemeral keys ----------------------------------------------------------------------------------------------- */

static int remove_ephemeral_keys(struct purge_run *work, struct slice queue_key)
{
    size_t count = 0;
    int r = ephemeral__remove_session(work->core, slice_from_offset(queue_key, PURGE_PREFIX_BYTES), work->left, &count);

    INSIST(count <= work->left);
    work->removed += count;
    work->left -= count;
    if (r == 0 && may_continue(work))
        remove_key(work, SPACE_SYSTEM, queue_key);
    return r;
}

/* --- Due records -------------------------------------------------------------------------------------------------- */

/* Finds out whether a record with `letter` is due before a timestamp. */
static int any_due(struct core *core, char letter, tl_ts until, bool *ret_any)
{
    struct buf upper = BUF_INIT(64);
    struct store_iter *iter = store_iter_new(core->store, SPACE_SYSTEM, TL_TS_MAX, slice_make(&letter, 1),
                                             purge_key(&upper, letter, until, SLICE_LIT("")));

    store_iter_seek_first(iter);
    *ret_any |= store_iter_valid(iter);
    int r = store_iter_status(iter);
    store_iter_free(iter);
    buf_deinit(&upper);
    return r < 0 ? tl_trace(r) : 0;
}

static void advance_horizon(struct core *core, tl_ts *horizon, tl_ts until)
{
    until = until < core->ts ? until : core->ts; /* records written by this unit are not due */
    *horizon = until > *horizon ? until : *horizon;
}

int purge_horizons__open(struct core *core)
{
    REQUIRE(!core->open);
    struct store_value value;
    int r = store_get(core->store, SPACE_SYSTEM, TL_TS_MAX, slice_from(purge_horizons_key), &value);

    if (r != 0)
        return r == STORE_NOT_FOUND ? 0 : tl_trace(r);
    struct slice bytes = value.bytes;
    bool sound = slice_take_u64be(&bytes, &core->purge_horizons.tombstones) &&
                 slice_take_u64be(&bytes, &core->purge_horizons.outcomes) && bytes.len == 0;
    store_value_release(&value);
    return sound ? 0 : tl_trace(TL_ERR_CORRUPT);
}

static void put_purge_horizons(struct core *core)
{
    REQUIRE(core->open);
    struct buf value = BUF_INIT(BUF_UNLIMITED);

    buf_u64be(&value, core->purge_horizons.tombstones);
    buf_u64be(&value, core->purge_horizons.outcomes);
    store_batch_put(core->batch, SPACE_SYSTEM, slice_from(purge_horizons_key), buf_as_slice(&value));
    buf_deinit(&value);
}

/*
 * Advances the horizons, below which records no longer count, even before they are removed. Stores
 * them only if some record is affected, so that an idle server writes nothing.
 */
static int advance_horizons(struct core *core, const struct maintain_command *maintain)
{
    bool any = false;

    advance_horizon(core, &core->purge_horizons.tombstones, maintain->tombstones);
    advance_horizon(core, &core->purge_horizons.outcomes, maintain->outcomes);
    int r = any_due(core, PURGE_TOMBSTONE, core->purge_horizons.tombstones, &any);
    if (r == 0)
        r = any_due(core, PURGE_OUTCOME, core->purge_horizons.outcomes, &any);
    if (r == 0)
        r = any_due(core, PURGE_REQUEST, core->purge_horizons.outcomes, &any);
    if (r == 0 && any)
        put_purge_horizons(core);
    return r;
}

/*
 * Removes records with `letter` that are due up to a timestamp by `remove`, within the limit of the
 * command.
 */
static int remove_due(struct purge_run *work, char letter, tl_ts until,
                      int (*remove)(struct purge_run *work, struct slice queue_key))
{
    struct buf upper = BUF_INIT(64);
    struct store_iter *iter = store_iter_new(work->core->store, SPACE_SYSTEM, TL_TS_MAX, slice_make(&letter, 1),
                                             purge_key(&upper, letter, until, SLICE_LIT("")));
    int r = 0;

    for (store_iter_seek_first(iter); r == 0 && may_continue(work) && store_iter_valid(iter); store_iter_next(iter))
        r = remove(work, store_iter_key(iter));
    if (r == 0)
        r = store_iter_status(iter);
    store_iter_free(iter);
    buf_deinit(&upper);
    return r;
}

/*
 * Removes the posting lists that the proposer found stale. Other keys are ignored, so invalid input
 * can at worst remove a posting list.
 */
static void remove_stale(struct core *core, struct maintain_command *maintain)
{
    for (size_t i = 0; i < maintain->stale_count; i++) {
        uint64_t batch;
        if (!entry_is_posting_list(maintain->stale[i], &batch))
            continue;
        store_batch_delete(core->batch, SPACE_ENTRIES, maintain->stale[i]);
        maintain->removed++;
    }
}

int core__do_maintain(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_MAINTAIN && core->open);
    struct maintain_command *maintain = &command->maintain;
    struct purge_run work = {core, maintain->keys_max, 0};
    size_t count = 0;

    int r = advance_horizons(core, maintain);
    if (r == 0)
        r = remove_due(&work, PURGE_TOMBSTONE, core->purge_horizons.tombstones, remove_tombstone);
    if (r == 0)
        r = remove_due(&work, PURGE_INDEX, maintain->history_low, remove_index);
    if (r == 0)
        r = remove_due(&work, PURGE_SESSION_TOMBSTONE, maintain->history_low, remove_session_tombstone);
    if (r == 0)
        r = remove_due(&work, PURGE_EPHEMERAL_KEYS, core->ts, remove_ephemeral_keys);
    if (r == 0 && may_continue(&work))
        r = session__purge_ephemeral_keys(core, work.left, &count);
    count_removed(&work, count);
    count = 0;
    if (r == 0 && may_continue(&work))
        r = provisional__purge(core, work.left, &count);
    count_removed(&work, count);
    count = 0;
    if (r == 0 && may_continue(&work))
        r = txn__purge_outcomes(core, work.left, &count);
    count_removed(&work, count);
    count = 0;
    if (r == 0 && may_continue(&work))
        r = request_outcome__purge(core, work.left, &count);
    count_removed(&work, count);
    maintain->removed = work.removed;
    ENSURE(!stops_by_work(&work) || work.left <= maintain->keys_max);
    remove_stale(core, maintain);
    return r < 0 ? tl_trace(r) : 0;
}

int core_propose_maintenance(struct core *core, const struct core_horizons *horizons, size_t keys_max,
                             struct command **ret_command)
{
    REQUIRE(!core->open);
    REQUIRE(keys_max > 0 && keys_max <= SIZE_MAX / SWEEP_SCANS_PER_KEY);
    struct command *command = command_new(COMMAND_MAINTAIN, DIALECT_7);

    command->maintain = (struct maintain_command){.history_low = horizons->history_low,
                                                  .tombstones = horizons->tombstones,
                                                  .outcomes = horizons->outcomes,
                                                  .keys_max = keys_max};
    int r = sweep__continue(core, keys_max, command);
    if (r < 0) {
        command_free(command);
        return tl_trace(r);
    }
    ENSURE(command->maintain.stale_count <= keys_max);
    *ret_command = command;
    return 0;
}
