/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removing for good what is marked (purge.h). A tombstone goes when its version counts no longer: readers of the past keep it,
 * since it is removed at the present. What a deleted index left goes when no readable timestamp can see the index any more; marks of its
 * ephemeral documents go at once, since only the present knows them. What
 * a transaction put ahead of a commit that never came goes soon, and so do stale chunks of entries (sweep.h). The same command
 * writes what could wait: that query transactions are open.
 *
 * What it does follows from the state and the command. What is a host's own, how far history is kept there and which chunks it
 * has found stale, stands in the command.
 */
#include "base/check.h"
#include "core/catalog/counter.h"
#include "core/catalog/purge.h"
#include "core/documents/provisional.h"
#include "core/documents/doc.h"
#include "core/documents/ephemeral.h"
#include "core/documents/prefetch.h"
#include "core/documents/session_tombstone.h"
#include "core/step/command.h"
#include "core/step/core.h"
#include "core/step/handler.h"
#include "core/step/hooks.h"
#include "core/step/unit.h"
#include "core/step/work.h"
#include "core/tree/tree_record.h"
#include "core/maintenance/sweep.h"
#include "mapping/entry.h"

/* How much one call may still remove. */
struct removing {
    struct core *core;
    size_t left;
    size_t removed;
};

static bool more(const struct removing *work)
{
    return work->left > 0;
}

static void remove_key(struct removing *work, enum store_space space, struct slice key)
{
    core__work(work->core, WORK_SCAN + WORK_READ);
    store_batch_delete(work->core->batch, space, key);
    work->removed++;
    work->left--;
}

/* --- Tombstones --------------------------------------------------------------------------------------------------- */

static int remove_tombstone(struct removing *work, struct slice mark)
{
    struct core *core = work->core;
    tl_cleanup(buf_deinit) struct buf later = BUF_INIT(BUF_UNLIMITED);
    struct slice key = slice_from_offset(mark, PURGE_PREFIX_BYTES);
    struct store_value value;
    struct doc doc;
    int r = store_get(core->store, SPACE_DOCUMENTS, TL_TS_MAX, key, &value);

    remove_key(work, SPACE_SYSTEM, mark);
    if (r != 0)
        return r == STORE_NOT_FOUND ? 0 : tl_trace(r);
    r = doc_decode(value.bytes, &doc);
    if (r == 0 && doc.deleted && doc.ts < core->purge_horizons.tombstones) {
        remove_key(work, SPACE_DOCUMENTS, key);
        recent_writes_record(&core->recent_writes, key, core->ts);
    } else if (r == 0 && doc.deleted) /* a transaction's: it counts from the commit on */
        store_batch_put(core->batch, SPACE_SYSTEM, purge_key(&later, PURGE_TOMBSTONE, doc.ts, key), SLICE_LIT(""));
    store_value_release(&value);
    return r;
}

/* --- Deleted indices ---------------------------------------------------------------------------------------------- */

/* Removes the keys of a range. */
static int remove_range(struct removing *work, enum store_space space, struct slice lower, struct slice upper)
{
    struct store_iter *iter = store_iter_new(work->core->store, space, TL_TS_MAX, lower, upper);
    int r;

    for (store_iter_seek_first(iter); more(work) && store_iter_valid(iter); store_iter_next(iter))
        remove_key(work, space, store_iter_key(iter));
    r = store_iter_status(iter);
    store_iter_free(iter);
    return r;
}

/* Removes what an index has left. Returns: 0; the mark goes with the last of it. */
static int remove_index(struct removing *work, struct slice mark)
{
    char lower[DOC_KEY_PREFIX_BYTES], upper[DOC_KEY_PREFIX_BYTES], from[4], to[4], root[4], beyond[4];
    char first[COUNTER_KEY_BYTES], end[COUNTER_KEY_BYTES];
    struct slice number = slice_from_offset(mark, PURGE_PREFIX_BYTES);
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
    if (r == 0 && more(work)) {
        counters__drop(&work->core->counters, index);
        remove_key(work, SPACE_SYSTEM, mark);
    }
    return r;
}

/* --- What went with a session ------------------------------------------------------------------------------------- */

/* No readable timestamp lies between its going and its sweeping any more. */
static int forget_vanished(struct removing *work, struct slice mark)
{
    session_tombstone__remove(work->core, mark);
    remove_key(work, SPACE_SYSTEM, mark);
    return 0;
}

/* --- Marks of ephemeral documents --------------------------------------------------------------------------------- */

static int remove_marks(struct removing *work, struct slice mark)
{
    size_t count = 0;
    int r = ephemeral__remove_session(work->core, slice_from_offset(mark, PURGE_PREFIX_BYTES), work->left, &count);

    work->removed += count;
    work->left -= count;
    if (r == 0 && more(work))
        remove_key(work, SPACE_SYSTEM, mark);
    return r;
}

/* --- What is due -------------------------------------------------------------------------------------------------- */

/* Whether anything is marked with `letter` before a time. */
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

static void move_on(struct core *core, tl_ts *forgotten, tl_ts until)
{
    until = until < core->ts ? until : core->ts; /* what this unit writes is the present */
    *forgotten = until > *forgotten ? until : *forgotten;
}

/*
 * What was before counts no longer, all of it at once, however much of it is removed now. Where nothing was, nothing needs to be
 * remembered: an idle server writes nothing.
 */
static int forget(struct core *core, const struct maintain_command *maintain)
{
    bool any = false;

    move_on(core, &core->purge_horizons.tombstones, maintain->tombstones);
    move_on(core, &core->purge_horizons.outcomes, maintain->outcomes);
    int r = any_due(core, PURGE_TOMBSTONE, core->purge_horizons.tombstones, &any);
    if (r == 0)
        r = any_due(core, PURGE_OUTCOME, core->purge_horizons.outcomes, &any);
    if (r == 0 && any)
        core__put_purge_horizons(core);
    return r;
}

/* Removes what is marked with `letter` up to a time, as `remove` does it, while there is room for more. */
static int remove_due(struct removing *work, char letter, tl_ts until,
                      int (*remove)(struct removing *work, struct slice mark))
{
    struct buf upper = BUF_INIT(64);
    struct store_iter *iter = store_iter_new(work->core->store, SPACE_SYSTEM, TL_TS_MAX, slice_make(&letter, 1),
                                             purge_key(&upper, letter, until, SLICE_LIT("")));
    int r = 0;

    for (store_iter_seek_first(iter); r == 0 && more(work) && store_iter_valid(iter); store_iter_next(iter))
        r = remove(work, store_iter_key(iter));
    if (r == 0)
        r = store_iter_status(iter);
    store_iter_free(iter);
    buf_deinit(&upper);
    return r;
}

/* Removes the chunks that the proposer has found stale. Of damage it makes nothing worse than a chunk less. */
static void remove_stale(struct core *core, struct maintain_command *maintain)
{
    for (size_t i = 0; i < maintain->stale_count; i++) {
        uint64_t batch;
        if (!entry_is_chunk(maintain->stale[i], &batch))
            continue;
        store_batch_delete(core->batch, SPACE_ENTRIES, maintain->stale[i]);
        maintain->removed++;
    }
}

/* Counts what a part has removed by itself. */
static void took(struct removing *work, size_t count)
{
    work->removed += count;
    work->left -= count < work->left ? count : work->left;
}

int core__do_maintain(struct core *core, struct command *command)
{
    struct maintain_command *maintain = &command->maintain;
    struct removing work = {core, maintain->keys_max, 0};
    size_t count = 0;

    took(&work, owners__record_query_txns(core, work.left));
    int r = forget(core, maintain);
    if (r == 0)
        r = remove_due(&work, PURGE_TOMBSTONE, core->purge_horizons.tombstones, remove_tombstone);
    if (r == 0)
        r = remove_due(&work, PURGE_INDEX, maintain->history_low, remove_index);
    if (r == 0)
        r = remove_due(&work, PURGE_SESSION_TOMBSTONE, maintain->history_low, forget_vanished);
    if (r == 0)
        r = remove_due(&work, PURGE_EPHEMERAL_KEYS, core->ts, remove_marks);
    if (r == 0 && more(&work))
        r = owners__purge_ephemeral_keys(core, work.left, &count);
    took(&work, count);
    count = 0;
    if (r == 0 && more(&work))
        r = provisional__purge(core, work.left, &count);
    took(&work, count);
    count = 0;
    if (r == 0 && more(&work))
        r = owners__purge_outcomes(core, work.left, &count);
    took(&work, count);
    maintain->removed = work.removed;
    remove_stale(core, maintain);
    return r < 0 ? tl_trace(r) : 0;
}

int core_propose_maintenance(struct core *core, const struct core_horizons *past, size_t keys_max, struct command **ret_command)
{
    struct command *command = command_new(COMMAND_MAINTAIN, DIALECT_7);

    REQUIRE(!core->open);
    command->maintain = (struct maintain_command){
        .history_low = past->history_low, .tombstones = past->tombstones, .outcomes = past->outcomes, .keys_max = keys_max};
    int r = sweep__continue(core, keys_max, command);
    if (r < 0) {
        command_free(command);
        return tl_trace(r);
    }
    *ret_command = command;
    return 0;
}
