/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans over entries; see entry.h and entry_key.h.
 *
 * A scan is an iterator over keys and an offset inside the current posting list. Its position is
 * the current key and the number of hits returned from it, so a new scan at the same timestamp can
 * resume exactly there.
 */
#include "mapping/entry.h"

#include "base/check.h"
#include "mapping/entry_key.h"

enum {
    /* index, field, and an encoded value: four bytes for each character, each escaped */
    BOUND_BYTES_MAX = 16 + 8 * ENTRY_VALUE_CHARACTERS_MAX,
};

struct entry_scan {
    struct view_iter *iter;
    struct buf lower; /* key bounds [lower, upper), to which the iterator refers */
    struct buf upper;
    bool reverse;
    bool started; /* the iterator was positioned, on a key or after the last one */
    bool ended;
    size_t given; /* number of hits of the current key that were returned */
    size_t hits;  /* number of hits of the current key */
    struct entry_key key;
    struct slice rest;                         /* document keys of the posting list that are not decoded yet */
    char document_key[ENTRY_DOCUMENT_KEY_MAX]; /* of the last hit */
    size_t document_key_len;
};

/* --- Bounds ------------------------------------------------------------------------------------------------------- */

/* Changes a prefix to the lowest bytes that sort after everything with that prefix. */
static void bound_successor(struct buf *buf)
{
    while (buf->len > 0 && (unsigned char)buf->data[buf->len - 1] == 0xff)
        buf_truncate(buf, buf->len - 1);
    INSIST(buf->len > 0); /* the tag of a value is below 0xff */
    buf_increment_last(buf);
}

static void bounds_prefix(struct entry_scan *scan, struct slice prefix)
{
    /* Values with a truncated prefix are truncated to the same bytes: only those entries match. */
    bool cut = entry_key_prefix(&scan->lower, prefix);
    buf_slice(&scan->upper, slice_from_offset(buf_as_slice(&scan->lower), scan->upper.len));
    if (cut) {
        buf_append(&scan->lower, "\0\2", 2);
        buf_append(&scan->upper, "\0\3", 2);
    } else {
        bound_successor(&scan->upper);
    }
}

static void bounds_range(struct entry_scan *scan, const struct entry_range *range)
{
    if (range->low != NULL) {
        bool cut = entry_value_encode(&scan->lower, range->low);
        if (range->low_exclusive && !cut)
            buf_byte(&scan->lower, ENTRY_SHAPES_END);
    }
    if (range->high != NULL) {
        bool cut = entry_value_encode(&scan->upper, range->high);
        if (!range->high_exclusive || cut)
            buf_byte(&scan->upper, ENTRY_SHAPES_END);
    } else {
        bound_successor(&scan->upper); /* after all entries of the field */
    }
}

static struct entry_scan *scan_alloc(void)
{
    struct entry_scan *scan = mem_zalloc(sizeof *scan);
    scan->lower = BUF_INIT(BOUND_BYTES_MAX);
    scan->upper = BUF_INIT(BOUND_BYTES_MAX);
    return scan;
}

struct entry_scan *entry_scan_new(const struct view *view, const struct entry_range *range)
{
    struct entry_scan *scan = scan_alloc();
    scan->reverse = range->reverse;
    entry_key_field(&scan->lower, range->index, range->field);
    entry_key_field(&scan->upper, range->index, range->field);
    if (range->prefix) {
        REQUIRE(range->low != NULL && range->low->kind == FIELD_VALUE_BYTES && range->high == NULL);
        bounds_prefix(scan, range->low->bytes);
    } else {
        bounds_range(scan, range);
    }
    INSIST(!scan->lower.overflow && !scan->upper.overflow);
    /* An empty range, such as above 5 and below 3, can have its lower bound above its upper one. */
    scan->ended = slice_compare(buf_as_slice(&scan->lower), buf_as_slice(&scan->upper)) >= 0;
    if (!scan->ended)
        scan->iter = view_iter_new(view, SPACE_ENTRIES, buf_as_slice(&scan->lower), buf_as_slice(&scan->upper));
    return scan;
}

struct entry_scan *entry_walk_new(const struct view *view, uint32_t index)
{
    struct entry_scan *scan = scan_alloc();
    char lower[4];
    char upper[4];
    entry_index_bounds(index, lower, upper);
    buf_append(&scan->lower, lower, sizeof lower);
    buf_append(&scan->upper, upper, sizeof upper);
    scan->iter = view_iter_new(view, SPACE_ENTRIES, buf_as_slice(&scan->lower), buf_as_slice(&scan->upper));
    return scan;
}

void entry_scan_free(struct entry_scan *scan)
{
    if (scan == NULL)
        return;
    if (scan->iter != NULL)
        view_iter_free(scan->iter);
    buf_deinit(&scan->lower);
    buf_deinit(&scan->upper);
    mem_free(scan);
}

/* --- Keys and posting lists ----------------------------------------------------------------------- */

/* Parses the current key of the iterator. Returns: 0; ENTRY_SCAN_END; TL_ERR_IO; TL_ERR_CORRUPT. */
static int key_begin(struct entry_scan *scan)
{
    if (!view_iter_valid(scan->iter)) {
        scan->ended = true;
        int r = view_iter_status(scan->iter);
        return r < 0 ? tl_trace(r) : ENTRY_SCAN_END;
    }
    if (!entry_key_parse(view_iter_key(scan->iter), &scan->key))
        return tl_trace(TL_ERR_CORRUPT);
    scan->given = 0;
    scan->hits = 1;
    scan->rest = SLICE_NONE;
    if (scan->key.shape == ENTRY_POSTING_LIST) {
        uint64_t further;
        scan->rest = view_iter_value(scan->iter);
        if (!slice_take_varint(&scan->rest, &further) || further >= ENTRY_POSTING_LIST_MAX)
            return tl_trace(TL_ERR_CORRUPT);
        scan->hits += (size_t)further;
    }
    return 0;
}

/*
 * Decodes the next document key of the current key.
 * Requires: scan->given < scan->hits.
 * Returns: 0; TL_ERR_CORRUPT.
 */
static int key_next(struct entry_scan *scan)
{
    if (scan->given == 0) {
        memcpy(scan->document_key, scan->key.document_key.data, scan->key.document_key.len);
        scan->document_key_len = scan->key.document_key.len;
    } else {
        uint64_t shared;
        uint64_t own;
        struct slice bytes;
        if (!slice_take_varint(&scan->rest, &shared) || !slice_take_varint(&scan->rest, &own) ||
            shared > scan->document_key_len || own > ENTRY_DOCUMENT_KEY_MAX - shared ||
            !slice_take(&scan->rest, (size_t)own, &bytes))
            return tl_trace(TL_ERR_CORRUPT);
        if (own > 0)
            memcpy(scan->document_key + shared, bytes.data, bytes.len);
        scan->document_key_len = (size_t)(shared + own);
    }
    scan->given++;
    return 0;
}

/* Moves the iterator to the first key, or to the next one, in the direction of the scan. */
static void iter_move(struct entry_scan *scan)
{
    if (!scan->started && scan->reverse)
        view_iter_seek_last(scan->iter);
    else if (!scan->started)
        view_iter_seek_first(scan->iter);
    else if (scan->reverse)
        view_iter_prev(scan->iter);
    else
        view_iter_next(scan->iter);
    scan->started = true;
}

int entry_scan_next(struct entry_scan *scan, struct entry_hit *ret_hit)
{
    if (scan->ended)
        return ENTRY_SCAN_END;
    if (scan->given == scan->hits) {
        iter_move(scan);
        int r = key_begin(scan);
        if (r != 0)
            return r < 0 ? tl_trace(r) : ENTRY_SCAN_END;
    }
    int r = key_next(scan);
    if (r < 0)
        return tl_trace(r);
    *ret_hit = (struct entry_hit){.document_key = {scan->document_key, scan->document_key_len},
                                  .batch = scan->key.batch,
                                  .value = scan->key.value,
                                  .cut = scan->key.cut};
    return 0;
}

int entry_walk_next(struct entry_scan *walk, uint16_t *ret_field, struct entry_hit *ret_hit)
{
    int r = entry_scan_next(walk, ret_hit);
    if (r == 0)
        *ret_field = walk->key.field;
    return r;
}

/* --- Positions ---------------------------------------------------------------------------------------------------- */

/* A position is 'b' (not started), 'e' (ended), or 'k', hits returned (varint), key. */
void entry_scan_position(const struct entry_scan *scan, struct buf *buf)
{
    if (scan->ended) {
        buf_byte(buf, 'e');
    } else if (!scan->started) {
        buf_byte(buf, 'b');
    } else {
        buf_byte(buf, 'k');
        buf_varint(buf, scan->given);
        buf_slice(buf, view_iter_key(scan->iter));
    }
}

/* Moves a scan to a key, after its first `given` hits. Returns: as entry_scan_resume(). */
static int resume_at_key(struct entry_scan *scan, struct slice key, uint64_t given)
{
    if (scan->reverse)
        view_iter_seek_for_prev(scan->iter, key);
    else
        view_iter_seek(scan->iter, key);
    scan->started = true;
    int r = key_begin(scan);
    if (r < 0)
        return tl_trace(r);
    if (r == ENTRY_SCAN_END || !slice_equal(view_iter_key(scan->iter), key) || given > scan->hits)
        return ENTRY_SCAN_BAD_POSITION;
    while (scan->given < given) {
        r = key_next(scan);
        if (r < 0)
            return tl_trace(r);
    }
    return 0;
}

int entry_scan_resume(struct entry_scan *scan, struct slice position)
{
    REQUIRE(!scan->started);
    struct slice kind;
    uint64_t given;
    if (!slice_take(&position, 1, &kind))
        return ENTRY_SCAN_BAD_POSITION;
    if (slice_is(kind, "e") && position.len == 0) {
        scan->ended = true;
        return 0;
    }
    if (slice_is(kind, "b") && position.len == 0)
        return 0;
    struct entry_key key;
    if (!slice_is(kind, "k") || scan->ended || !slice_take_varint(&position, &given) ||
        !entry_key_parse(position, &key) || slice_compare(position, buf_as_slice(&scan->lower)) < 0 ||
        slice_compare(position, buf_as_slice(&scan->upper)) >= 0)
        return ENTRY_SCAN_BAD_POSITION;
    return resume_at_key(scan, position, given);
}

/* --- Estimates and lookups ------------------------------------------------------------------------ */

int entry_estimate(const struct view *view, const struct entry_range *range, size_t limit, size_t *ret_hits)
{
    tl_cleanup(entry_scan_freep) struct entry_scan *scan = entry_scan_new(view, range);
    size_t hits = 0;
    while (!scan->ended && hits < limit) {
        iter_move(scan);
        int r = key_begin(scan);
        if (r < 0)
            return tl_trace(r);
        hits += r == 0 ? scan->hits : 0;
    }
    *ret_hits = hits < limit ? hits : limit;
    return 0;
}

int entry_find(const struct view *view, uint32_t index, struct slice document_key, const struct field_value *value,
               uint64_t batch)
{
    struct entry_range range = {.index = index, .field = value->field, .low = value, .high = value};
    struct entry_hit hit;
    if (batch == 0) {
        tl_cleanup(buf_deinit) struct buf key = BUF_INIT(BOUND_BYTES_MAX + ENTRY_DOCUMENT_KEY_MAX);
        entry_key_field(&key, index, value->field);
        entry_value_encode(&key, value);
        buf_byte(&key, ENTRY_SINGLE);
        buf_slice(&key, document_key);
        struct store_value found;
        int r = view_get(view, SPACE_ENTRIES, buf_as_slice(&key), &found);
        if (r != 0)
            return r == STORE_NOT_FOUND ? ENTRY_SCAN_END : r < 0 ? tl_trace(r) : tl_trace(TL_ERR_CORRUPT);
        store_value_release(&found);
        return 0;
    }
    tl_cleanup(entry_scan_freep) struct entry_scan *scan = entry_scan_new(view, &range);
    for (int r;;) {
        r = entry_scan_next(scan, &hit);
        if (r != 0)
            return r;
        if (hit.batch == batch && slice_equal(hit.document_key, document_key))
            return 0;
    }
}
