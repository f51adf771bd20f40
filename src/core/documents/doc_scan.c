/* SPDX-License-Identifier: Apache-2.0 */
/* Scans and counts the documents of an index. */
#include "base/check.h"
#include "core/catalog/counter.h"
#include "core/documents/doc.h"
#include "core/documents/session_tombstone.h"
#include "store/view.h"

enum { INDEX_BYTES = 4, TYPE_BYTES = 2 };

struct doc_scan {
    struct view_iter *iter;
    const struct view *view;
    struct store_value rewritten; /* pins the current document's source if a rename changed it */
    uint32_t index;
    bool started;
    bool after; /* skip `from` itself */
    size_t from_len;
    char from[DOC_KEY_BYTES_MAX + 1]; /* key to start at */
    char lower[DOC_KEY_PREFIX_BYTES];
    char upper[DOC_KEY_PREFIX_BYTES];
};

/* The key range [lower, upper) of an index, or of one of its types. */
static void scan_bounds(struct doc_scan *scan, uint32_t index, int type, struct slice *ret_lower,
                        struct slice *ret_upper)
{
    REQUIRE(index < UINT32_MAX && type >= DOC_TYPE_ANY && type <= UINT16_MAX); /* else another index is read */
    uint64_t first = type == DOC_TYPE_ANY ? (uint64_t)index << 16 : (uint64_t)index << 16 | (uint16_t)type;
    uint64_t end = type == DOC_TYPE_ANY ? ((uint64_t)index + 1) << 16 : first + 1;

    doc_key(scan->lower, (uint32_t)(first >> 16), (uint16_t)first, SLICE_LIT(""));
    doc_key(scan->upper, (uint32_t)(end >> 16), (uint16_t)end, SLICE_LIT(""));
    *ret_lower = slice_make(scan->lower, sizeof(scan->lower));
    *ret_upper = slice_make(scan->upper, sizeof(scan->upper));
}

struct doc_scan *doc_scan_new(const struct view *view, uint32_t index, int type)
{
    struct doc_scan *scan = mem_zalloc(sizeof(*scan));
    struct slice lower, upper;

    scan->view = view;
    scan->index = index;
    scan_bounds(scan, index, type, &lower, &upper);
    scan->iter = view_iter_new(view, SPACE_DOCUMENTS, lower, upper);
    return scan;
}

void doc_scan_free(struct doc_scan *scan)
{
    if (scan == NULL)
        return;
    store_value_release(&scan->rewritten);
    view_iter_free(scan->iter);
    mem_free(scan);
}

void doc_scan_seek(struct doc_scan *scan, struct slice document_key, bool after)
{
    size_t len =
        document_key.len < DOC_KEY_BYTES_MAX - INDEX_BYTES ? document_key.len : DOC_KEY_BYTES_MAX - INDEX_BYTES;

    memcpy(scan->from, scan->lower, INDEX_BYTES);
    memcpy(scan->from + INDEX_BYTES, document_key.data, len);
    scan->from_len = INDEX_BYTES + len;
    scan->after = after;
    scan->started = false;
}

static void step_scan(struct doc_scan *scan)
{
    struct slice from = slice_make(scan->from, scan->from_len);

    if (scan->started) {
        view_iter_next(scan->iter);
        return;
    }
    scan->started = true;
    if (from.len == 0) {
        view_iter_seek_first(scan->iter);
        return;
    }
    view_iter_seek(scan->iter, from);
    if (scan->after && view_iter_valid(scan->iter) && slice_equal(view_iter_key(scan->iter), from))
        view_iter_next(scan->iter);
}

static int scan_end(const struct doc_scan *scan)
{
    REQUIRE(!view_iter_valid(scan->iter));
    int r = view_iter_status(scan->iter);

    return r == 0 ? DOC_SCAN_END : r == STORE_TOO_OLD ? DOC_TOO_OLD : r;
}

int doc_scan_next(struct doc_scan *scan, uint16_t *ret_type, struct slice *ret_id, struct doc *ret_doc)
{
    REQUIRE(ret_type != NULL && ret_id != NULL && ret_doc != NULL);
    uint32_t index;
    struct doc doc;
    int hidden;

    store_value_release(&scan->rewritten);
    do {
        step_scan(scan);
        if (!view_iter_valid(scan->iter))
            return scan_end(scan);
        if (doc_decode(view_iter_value(scan->iter), &doc) < 0)
            return tl_trace(TL_ERR_CORRUPT);
        hidden = doc.deleted ? 1 : session_tombstone_hides(scan->view, view_iter_key(scan->iter), &doc);
    } while (hidden == 1);

    if (hidden != 0)
        return hidden < 0 ? tl_trace(hidden) : hidden;
    if (!doc_key_parse(view_iter_key(scan->iter), &index, ret_type, ret_id))
        return tl_trace(TL_ERR_CORRUPT);
    INSIST(index == scan->index); /* the iterator's bounds are of this index */
    int r = doc_apply_renames(scan->view, NULL, scan->index, &doc);
    scan->rewritten = doc.value;
    doc.value = (struct store_value){0};
    *ret_doc = doc;
    return r;
}

/* Adds up the counters of a key range; `delta`: values are changes in an overlay. */
static int add_up(struct view_iter *iter, bool delta, uint64_t *count)
{
    struct counter_record record;

    for (view_iter_seek_first(iter); view_iter_valid(iter); view_iter_next(iter)) {
        struct slice value = view_iter_value(iter);
        uint64_t added;
        if (delta && slice_take_u64be(&value, &added)) {
            *count += added;
            continue;
        }
        if (delta || counter_decode(value, &record) < 0)
            return tl_trace(TL_ERR_CORRUPT);
        *count += record.documents;
    }
    return view_iter_status(iter);
}

static int count_space(const struct view *view, enum store_space space, uint32_t index, int type, uint64_t *count)
{
    REQUIRE(index < UINT32_MAX && type >= DOC_TYPE_ANY && type <= UINT16_MAX);
    char lower[COUNTER_KEY_BYTES], upper[COUNTER_KEY_BYTES];
    uint64_t first = type == DOC_TYPE_ANY ? (uint64_t)index << 16 : (uint64_t)index << 16 | (uint16_t)type;
    uint64_t end = type == DOC_TYPE_ANY ? ((uint64_t)index + 1) << 16 : first + 1;
    struct view_iter *iter = view_iter_new(view, space, counter_key(lower, (uint32_t)(first >> 16), (uint16_t)first),
                                           counter_key(upper, (uint32_t)(end >> 16), (uint16_t)end));
    int r = add_up(iter, space == SPACE_SYSTEM, count);

    view_iter_free(iter);
    return r;
}

int doc_count(const struct view *view, uint32_t index, int type, uint64_t *ret_count)
{
    uint64_t count = 0;
    int r = count_space(view, SPACE_CATALOG, index, type, &count);

    if (r == 0 && view->overlay != NULL)
        r = count_space(view, SPACE_SYSTEM, index, type, &count);
    if (r == 0)
        *ret_count = count;
    return r == STORE_TOO_OLD ? DOC_TOO_OLD : r;
}
