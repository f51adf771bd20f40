/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcomes of transactions in the store, in SPACE_SYSTEM:
 *
 *   'O', id                  its outcome
 *   'X', ended (u64be), id   index of outcomes by time, from which old ones are purged; empty value
 *
 * Outcomes are not cached: there may be millions in an hour, and they are rarely read.
 */
#include "base/check.h"
#include "core/command/command.h"
#include "core/documents/action.h"
#include "core/session/session.h"
#include "core/session/txn.h"
#include "core/unit/core_metrics.h"
#include "core/unit/unit.h"

static struct slice outcome_key(struct buf *buf, struct slice id)
{
    buf_clear(buf);
    buf_byte(buf, 'O');
    buf_slice(buf, id);
    return buf_as_slice(buf);
}

static struct slice end_key(struct buf *buf, tl_ts ended, struct slice id)
{
    buf_clear(buf);
    buf_byte(buf, 'X');
    buf_u64be(buf, ended);
    buf_slice(buf, id);
    return buf_as_slice(buf);
}

struct slice txn__session_text(const struct txn *txn, struct arena *arena)
{
    REQUIRE(MAGIC_VALID(txn, TXN_MAGIC));
    if (txn->owner.session == NULL)
        return SLICE_NONE;
    return arena_printf(arena, "%llu", (unsigned long long)session_number(txn->owner.session));
}

enum { FLAG_COMMITTED = 1, FLAG_BY_REQUEST = 2 };

static void encode_outcome(struct buf *value, const struct txn_outcome *outcome)
{
    REQUIRE(outcome->mode < TXN_MODE_COUNT);
    buf_byte(value, (char)((outcome->committed ? FLAG_COMMITTED : 0) | (outcome->by_request ? FLAG_BY_REQUEST : 0)));
    buf_byte(value, (char)outcome->mode);
    buf_varint(value, outcome->created);
    buf_varint(value, outcome->ended);
    buf_varint(value, outcome->commit_ts);
    buf_varint(value, outcome->changes);
    action_put_slice(value, outcome->session);
    action_put_slice(value, outcome->cause);
    buf_varint(value, outcome->age);
}

static int decode_outcome(struct slice value, struct arena *arena, struct txn_outcome *ret_outcome)
{
    struct txn_outcome outcome = {0};
    struct slice head;
    if (!slice_take(&value, 2, &head) || !slice_take_varint(&value, &outcome.created) ||
        !slice_take_varint(&value, &outcome.ended) || !slice_take_varint(&value, &outcome.commit_ts) ||
        !slice_take_varint(&value, &outcome.changes) || !action_take_slice(&value, &outcome.session) ||
        !action_take_slice(&value, &outcome.cause))
        return tl_trace(TL_ERR_CORRUPT);
    /* Converted stores have outcomes without an age, the one of a first attempt. */
    outcome.age = outcome.created;
    if (value.len > 0 && !slice_take_varint(&value, &outcome.age))
        return tl_trace(TL_ERR_CORRUPT);
    outcome.committed = (head.data[0] & FLAG_COMMITTED) != 0;
    outcome.by_request = (head.data[0] & FLAG_BY_REQUEST) != 0;
    outcome.mode = head.data[1] == TXN_QUERY ? TXN_QUERY : TXN_UPDATE;
    outcome.session = outcome.session.data == NULL ? SLICE_NONE : arena_copy(arena, outcome.session);
    outcome.cause = outcome.cause.data == NULL ? SLICE_NONE : arena_copy(arena, outcome.cause);
    *ret_outcome = outcome;
    return 0;
}

void txn__put_outcome(struct core *core, struct slice id, const struct txn_outcome *outcome)
{
    REQUIRE(core->open && id.len > 0);
    REQUIRE(outcome->committed ? !outcome->by_request && outcome->commit_ts != 0 : outcome->commit_ts == 0);
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct buf value = BUF_INIT(BUF_UNLIMITED);
    enum metric_txn_end result = outcome->committed    ? TXN_COMMITTED
                                 : outcome->by_request ? TXN_ROLLED_BACK
                                                       : TXN_ABORTED;
    metric_add(&core->metrics.txns_ended[result], 1);
    encode_outcome(&value, outcome);
    store_batch_put(core->batch, SPACE_SYSTEM, outcome_key(&key, id), buf_as_slice(&value));
    store_batch_put(core->batch, SPACE_SYSTEM, end_key(&key, outcome->ended, id), SLICE_LIT(""));
    buf_deinit(&key);
    buf_deinit(&value);
}

int txn__get_outcome(struct core *core, struct slice id, struct arena *arena, struct txn_outcome *ret_outcome)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct store_value value;
    int r = store_get(core->store, SPACE_SYSTEM, TL_TS_MAX, outcome_key(&key, id), &value);
    buf_deinit(&key);
    if (r != 0)
        return r < 0 ? tl_trace(r) : STORE_NOT_FOUND;
    r = decode_outcome(value.bytes, arena, ret_outcome);
    store_value_release(&value);
    if (r == 0 && ret_outcome->ended < core->purge_horizons.outcomes)
        return STORE_NOT_FOUND;
    return r;
}

/* --- Purging outcomes --------------------------------------------------------------------------------------------- */

int txn__purge_outcomes(struct core *core, size_t keys_max, size_t *ret_removed)
{
    REQUIRE(core->open);
    struct buf upper = BUF_INIT(BUF_UNLIMITED);
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    struct slice until = end_key(&upper, core->purge_horizons.outcomes, SLICE_LIT(""));
    struct store_iter *iter = store_iter_new(core->store, SPACE_SYSTEM, TL_TS_MAX, SLICE_LIT("X"), until);
    size_t removed = 0;
    for (store_iter_seek_first(iter); removed + 2 <= keys_max && store_iter_valid(iter); store_iter_next(iter)) {
        struct slice end = store_iter_key(iter);
        store_batch_delete(core->batch, SPACE_SYSTEM, outcome_key(&key, slice_from_offset(end, 9)));
        store_batch_delete(core->batch, SPACE_SYSTEM, end);
        removed += 2;
    }
    int r = store_iter_status(iter);
    store_iter_free(iter);
    buf_deinit(&upper);
    buf_deinit(&key);
    ENSURE(removed <= keys_max);
    *ret_removed = removed;
    return r;
}
