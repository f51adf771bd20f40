/* SPDX-License-Identifier: Apache-2.0 */
/* Session tombstones; see session_tombstone.h. */
#include "core/documents/session_tombstone.h"

#include "base/check.h"
#include "core/catalog/purge.h"
#include "core/unit/unit.h"

static struct slice record_key(struct buf *buf, struct slice session)
{
    buf_byte(buf, 'v');
    buf_slice(buf, session);
    return buf_as_slice(buf);
}

/*
 * Takes the excluded indices from a record and searches them. Returns: false if the record is
 * invalid.
 */
static bool find_index(struct slice *record, uint32_t index, bool *ret_found)
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

/*
 * Takes the excluded documents from a record and searches them. Returns: false if the record is
 * invalid.
 */
static bool find_document(struct slice *record, struct slice key, bool *ret_found)
{
    *ret_found = false;
    while (record->len > 0) {
        struct slice excluded;
        uint64_t len;
        if (!slice_take_varint(record, &len) || !slice_take(record, (size_t)len, &excluded))
            return false;
        *ret_found |= slice_equal(excluded, key);
    }
    return true;
}

static int decode_record(struct slice record, struct slice key, tl_ts *ret_ts)
{
    struct slice rest = key;
    bool index_excluded, document_excluded;
    uint32_t index;
    tl_ts ts;

    if (!slice_take_u32be(&rest, &index) || !slice_take_u64be(&record, &ts) ||
        !find_index(&record, index, &index_excluded) || !find_document(&record, key, &document_excluded))
        return tl_trace(TL_ERR_CORRUPT);
    *ret_ts = index_excluded || document_excluded ? TL_TS_MAX : ts;
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
    r = decode_record(record.bytes, key, ret_ts);
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
    if (ts == TL_TS_MAX && view_is_too_old(view)) /* maintenance may have deleted the tombstone already */
        return DOC_TOO_OLD;
    return ts <= view->ts && ts != TL_TS_MAX ? 1 : 0;
}

void session_tombstone__put(struct core *core, struct slice session,
                            const struct session_tombstone_exclusions *exclusions)
{
    REQUIRE(core->open && session.len > 0);
    REQUIRE(exclusions->document_count == 0 || exclusions->documents != NULL);
    REQUIRE(exclusions->index_count == 0 || exclusions->indices != NULL);
    struct buf key = BUF_INIT(BUF_UNLIMITED), value = BUF_INIT(BUF_UNLIMITED);

    buf_u64be(&value, core->ts);
    buf_varint(&value, exclusions->index_count);
    for (size_t i = 0; i < exclusions->index_count; i++)
        buf_u32be(&value, exclusions->indices[i]);
    for (size_t i = 0; i < exclusions->document_count; i++) {
        buf_varint(&value, exclusions->documents[i].len);
        buf_slice(&value, exclusions->documents[i]);
    }
    store_batch_put(core->batch, SPACE_SYSTEM, record_key(&key, session), buf_as_slice(&value));
    buf_deinit(&key);
    buf_deinit(&value);
}

void session_tombstone__purged(struct core *core, struct slice session)
{
    REQUIRE(core->open && session.len > 0);
    struct buf key = BUF_INIT(BUF_UNLIMITED);

    purge_key(&key, PURGE_SESSION_TOMBSTONE, core->ts, session);
    store_batch_put(core->batch, SPACE_SYSTEM, buf_as_slice(&key), SLICE_LIT(""));
    buf_deinit(&key);
}

void session_tombstone__remove(struct core *core, struct slice queue_key)
{
    REQUIRE(core->open && queue_key.len > PURGE_PREFIX_BYTES);
    struct buf key = BUF_INIT(BUF_UNLIMITED);

    store_batch_delete(core->batch, SPACE_SYSTEM, record_key(&key, slice_from_offset(queue_key, PURGE_PREFIX_BYTES)));
    buf_deinit(&key);
}
