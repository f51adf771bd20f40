/* SPDX-License-Identifier: Apache-2.0 */
/* The records of documents that went with their session; see session_tombstone.h. */
#include "core/documents/session_tombstone.h"

#include "core/catalog/purge.h"
#include "core/step/unit.h"

static struct slice record_key(struct buf *buf, struct slice session)
{
    buf_byte(buf, 'v');
    buf_slice(buf, session);
    return buf_as_slice(buf);
}

/* Whether one of the numbers that a record begins with is an index's. Returns: false where the record is damaged. */
static bool take_indices(struct slice *record, uint32_t index, bool *ret_found)
{
    uint64_t count;
    uint32_t number;

    if (!slice_take_varint(record, &count))
        return false;
    *ret_found = false;
    for (; count > 0; count--) {
        if (!slice_take_u32be(record, &number))
            return false;
        *ret_found |= number == index;
    }
    return true;
}

/* The same of the keys that it ends with. */
static bool take_documents(struct slice *record, struct slice key, bool *ret_found)
{
    *ret_found = false;
    while (record->len > 0) {
        struct slice spared;
        uint64_t len;
        if (!slice_take_varint(record, &len) || !slice_take(record, (size_t)len, &spared))
            return false;
        *ret_found |= slice_equal(spared, key);
    }
    return true;
}

static int judge(struct slice record, struct slice key, tl_ts *ret_ts)
{
    struct slice rest = key;
    bool index_spared, document_spared;
    uint32_t index;
    tl_ts ts;

    if (!slice_take_u32be(&rest, &index) || !slice_take_u64be(&record, &ts) ||
        !take_indices(&record, index, &index_spared) || !take_documents(&record, key, &document_spared))
        return tl_trace(TL_ERR_CORRUPT);
    *ret_ts = index_spared || document_spared ? TL_TS_MAX : ts;
    return 0;
}

int session_tombstone_ts(struct store *store, struct slice key, const struct doc *doc, tl_ts *ret_ts)
{
    tl_cleanup(buf_deinit) struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    struct store_value record;

    *ret_ts = TL_TS_MAX;
    if (doc->lease.data == NULL)
        return 0;
    int r = store_get(store, SPACE_SYSTEM, TL_TS_MAX, record_key(&bytes, doc->lease), &record);
    if (r != 0)
        return r == STORE_NOT_FOUND ? 0 : tl_trace(r);
    r = judge(record.bytes, key, ret_ts);
    store_value_release(&record);
    return r;
}

int session_tombstone_hides(const struct view *view, struct slice key, const struct doc *doc)
{
    struct slice own;
    tl_ts ts;

    if (doc->lease.data == NULL ||
        (view->overlay != NULL && overlay_get(view->overlay, SPACE_DOCUMENTS, key, &own) == 0))
        return 0;
    int r = session_tombstone_ts(view->store, key, doc, &ts);
    if (r != 0)
        return r;
    if (ts == TL_TS_MAX && view_is_too_old(view)) /* the record may have gone by now */
        return DOC_TOO_OLD;
    return ts <= view->ts && ts != TL_TS_MAX ? 1 : 0;
}

void session_tombstone__put(struct core *core, struct slice session, const struct session_tombstone_exclusions *spared)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED), value = BUF_INIT(BUF_UNLIMITED);

    buf_u64be(&value, core->ts);
    buf_varint(&value, spared->index_count);
    for (size_t i = 0; i < spared->index_count; i++)
        buf_u32be(&value, spared->indices[i]);
    for (size_t i = 0; i < spared->document_count; i++) {
        buf_varint(&value, spared->documents[i].len);
        buf_slice(&value, spared->documents[i]);
    }
    store_batch_put(core->batch, SPACE_SYSTEM, record_key(&key, session), buf_as_slice(&value));
    buf_deinit(&key);
    buf_deinit(&value);
}

void session_tombstone__purged(struct core *core, struct slice session)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);

    purge_key(&key, PURGE_SESSION_TOMBSTONE, core->ts, session);
    store_batch_put(core->batch, SPACE_SYSTEM, buf_as_slice(&key), SLICE_LIT(""));
    buf_deinit(&key);
}

void session_tombstone__remove(struct core *core, struct slice mark)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED);

    store_batch_delete(core->batch, SPACE_SYSTEM, record_key(&key, slice_from_offset(mark, PURGE_PREFIX_BYTES)));
    buf_deinit(&key);
}
