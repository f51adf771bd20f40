/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads through a view: the overlay's writes merged over the store; see view.h.
 *
 * The merge has two cursors, one in the store and one in the overlay, each at its nearest entry in
 * the direction of travel. The nearer one is the current position. At equal keys the overlay's
 * entry hides the store's; if it is a deletion, both are skipped. To change direction, both cursors
 * seek again from the current key. Without an overlay all calls go to the store's iterator.
 */
#include "store/view.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/magic.h"
#include "store/overlay_internal.h"

enum direction { BACKWARD = -1, FORWARD = 1 };
enum source { SOURCE_NONE, SOURCE_STORE, SOURCE_OVERLAY };

#define VIEW_ITER_MAGIC MAGIC('V', 'I', 't', 'e')

struct view_iter {
    uint32_t magic; /* VIEW_ITER_MAGIC */
    struct store_iter *base;
    const struct overlay_map *map;     /* NULL: no overlay; only `base` is used */
    struct overlay_cursor cursor;      /* in `map` */
    const struct overlay_entry *entry; /* there; NULL: the overlay has no further entry in this direction */
    enum direction direction;
    enum source source; /* the cursor at the current position */
    bool hides;         /* both cursors are at the same key */
    struct buf lower;   /* copies of the bounds; empty: open */
    struct buf upper;
    struct buf turn; /* the key at which the direction changes */
};

/* --- The cache ---------------------------------------------------------------------------------------------------- */

/*
 * Numbers of misses after which all records are read: first if there are at most FEW, later if they
 * fit into the cache.
 */
enum { READ_FEW_AFTER = 8, FEW = 64, READ_ALL_AFTER = 64 };

void view_cache_init(struct view_cache *cache, enum store_space space)
{
    REQUIRE(space >= 0 && space < SPACE_COUNT);
    *cache = (struct view_cache){.space = space};
    omap_init(&cache->records);
}

void view_cache_deinit(struct view_cache *cache)
{
    omap_deinit(&cache->records);
}

static void add_record(struct view_cache *cache, struct slice key, struct slice value)
{
    REQUIRE(cache->records.count < VIEW_CACHE_RECORDS_MAX);
    tl_cleanup(buf_deinit) struct buf record = BUF_INIT(BUF_UNLIMITED);
    buf_byte(&record, 1);
    buf_slice(&record, value);
    omap_put(&cache->records, key, buf_as_slice(&record));
}

/* Hashes the end of a key, in which keys differ most. */
static size_t recent_slot(struct slice key)
{
    size_t slot = key.len;
    for (size_t i = 1; i <= 4 && i <= key.len; i++)
        slot = slot * 31 + (unsigned char)key.data[key.len - i];
    return slot % VIEW_CACHE_RECENT;
}

static const struct omap_entry *find_record(struct view_cache *cache, struct slice key)
{
    const struct omap_entry **recent = &cache->recent[recent_slot(key)];
    if (*recent != NULL && slice_equal(omap_key(*recent), key))
        return *recent;
    const struct omap_entry *entry = omap_get(&cache->records, key);
    if (entry != NULL)
        *recent = entry; /* records are never replaced or removed while cached here */
    return entry;
}

static bool find_cached(struct view_cache *cache, struct slice key, int *ret_outcome, struct store_value *ret_value)
{
    const struct omap_entry *entry = find_record(cache, key);
    bool none = entry != NULL
                    ? omap_value(entry).len == 0
                    : cache->complete && slice_starts_with(key, slice_make(cache->prefix, sizeof cache->prefix));
    if (entry == NULL && !none)
        return false;
    *ret_outcome = none ? STORE_NOT_FOUND : 0;
    if (!none)
        *ret_value = (struct store_value){slice_from_offset(omap_value(entry), 1), NULL, NULL};
    return true;
}

/*
 * Drops the cached absences of keys that the complete prefix covers: fewer records are found
 * faster.
 */
static void drop_absent(struct view_cache *cache)
{
    struct omap_entry *entry = omap_first(&cache->records);
    memset(cache->recent, 0, sizeof cache->recent);
    while (entry != NULL) {
        struct omap_entry *following = omap_next(entry);
        if (omap_value(entry).len == 0 &&
            slice_starts_with(omap_key(entry), slice_make(cache->prefix, sizeof cache->prefix)))
            omap_remove(&cache->records, omap_key(entry));
        entry = following;
    }
}

/* Reads all records that begin with the same bytes as a key, unless there are more than `most`. */
static void read_all(const struct view *view, struct slice key, size_t most)
{
    struct view_cache *cache = view->cache;
    struct slice prefix = slice_make(key.data, sizeof cache->prefix);
    if (key.len < prefix.len)
        return;
    struct store_iter *iter = store_iter_new(view->store, cache->space, view->ts, prefix, SLICE_NONE);
    bool fits = true;
    for (store_iter_seek_first(iter); fits && store_iter_valid(iter) && slice_starts_with(store_iter_key(iter), prefix);
         store_iter_next(iter)) {
        fits = most-- > 0 && cache->records.count < VIEW_CACHE_RECORDS_MAX;
        /* A cached record must stay: values returned from it are in use. */
        if (fits && omap_get(&cache->records, store_iter_key(iter)) == NULL)
            add_record(cache, store_iter_key(iter), store_iter_value(iter));
    }
    cache->complete = fits && store_iter_status(iter) == 0;
    memcpy(cache->prefix, prefix.data, sizeof cache->prefix);
    store_iter_free(iter);
    if (cache->complete)
        drop_absent(cache);
}

static int get_cached(const struct view *view, struct slice key, struct store_value *ret_value)
{
    struct view_cache *cache = view->cache;
    int r;
    if (find_cached(cache, key, &r, ret_value))
        return r;
    cache->missed++;
    if (cache->missed == READ_FEW_AFTER || cache->missed == READ_ALL_AFTER) {
        read_all(view, key, cache->missed == READ_FEW_AFTER ? FEW : VIEW_CACHE_RECORDS_MAX);
        if (find_cached(cache, key, &r, ret_value))
            return r;
    }
    r = store_get(view->store, cache->space, view->ts, key, ret_value);
    if ((r != 0 && r != STORE_NOT_FOUND) || cache->records.count >= VIEW_CACHE_RECORDS_MAX)
        return r;
    if (r == STORE_NOT_FOUND) {
        omap_put(&cache->records, key, SLICE_LIT(""));
        return r;
    }
    add_record(cache, key, ret_value->bytes);
    store_value_release(ret_value);
    return find_cached(cache, key, &r, ret_value) ? r : STORE_NOT_FOUND;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

int view_get(const struct view *view, enum store_space space, struct slice key, struct store_value *ret_value)
{
    REQUIRE(view->store != NULL && ret_value != NULL);
    struct slice value;
    if (view->overlay == NULL || overlay_get(view->overlay, space, key, &value) == STORE_NOT_FOUND)
        return view->cache != NULL && view->cache->space == space
                   ? get_cached(view, key, ret_value)
                   : store_get(view->store, space, view->ts, key, ret_value);
    if (value.data == NULL)
        return STORE_NOT_FOUND;
    *ret_value = (struct store_value){value, NULL, NULL};
    return 0;
}

struct view_iter *view_iter_new(const struct view *view, enum store_space space, struct slice lower, struct slice upper)
{
    REQUIRE(view->store != NULL);
    struct view_iter *iter = mem_zalloc(sizeof *iter);
    iter->magic = VIEW_ITER_MAGIC;
    iter->base = store_iter_new(view->store, space, view->ts, lower, upper);
    iter->lower = iter->upper = iter->turn = BUF_INIT(BUF_UNLIMITED);
    if (view->overlay != NULL && overlay__space(view->overlay, space)->count > 0) {
        iter->map = overlay__space(view->overlay, space);
        buf_slice(&iter->lower, lower);
        buf_slice(&iter->upper, upper);
    }
    return iter;
}

void view_iter_free(struct view_iter *iter)
{
    if (iter == NULL)
        return;
    REQUIRE(MAGIC_VALID(iter, VIEW_ITER_MAGIC));
    magic_clear(&iter->magic);
    store_iter_free(iter->base);
    buf_deinit(&iter->lower);
    buf_deinit(&iter->upper);
    buf_deinit(&iter->turn);
    mem_free(iter);
}

/* Returns: the entry if it is within the bounds; else NULL, since no later entry is. */
static const struct overlay_entry *entry_within(const struct view_iter *iter, const struct overlay_entry *entry)
{
    if (entry == NULL || slice_compare(overlay_entry_key(entry), buf_as_slice(&iter->lower)) < 0)
        return NULL;
    return iter->upper.len > 0 && slice_compare(overlay_entry_key(entry), buf_as_slice(&iter->upper)) >= 0 ? NULL
                                                                                                           : entry;
}

static void advance_base(struct view_iter *iter)
{
    if (iter->direction == FORWARD)
        store_iter_next(iter->base);
    else
        store_iter_prev(iter->base);
}

static void advance_entry(struct view_iter *iter)
{
    REQUIRE(iter->entry != NULL);
    iter->entry = entry_within(iter, iter->direction == FORWARD ? overlay_cursor_next(&iter->cursor)
                                                                : overlay_cursor_prev(&iter->cursor));
}

/*
 * Returns: the order of the overlay's cursor relative to the store's, in the direction of travel:
 *          negative: before.
 */
static int entry_order(const struct view_iter *iter)
{
    REQUIRE(iter->entry != NULL);
    if (!store_iter_valid(iter->base))
        return -1;
    return iter->direction * slice_compare(overlay_entry_key(iter->entry), store_iter_key(iter->base));
}

/* Makes the nearer cursor the current position, skipping keys that the overlay deletes. */
static void settle_cursor(struct view_iter *iter)
{
    iter->source = SOURCE_NONE;
    while (store_iter_status(iter->base) == 0) {
        int order = iter->entry == NULL ? 1 : entry_order(iter);
        if (order > 0) {
            iter->source = store_iter_valid(iter->base) ? SOURCE_STORE : SOURCE_NONE;
            return;
        }
        iter->hides = order == 0;
        if (!iter->entry->deleted) {
            iter->source = SOURCE_OVERLAY;
            return;
        }
        if (iter->hides)
            advance_base(iter);
        advance_entry(iter);
    }
}

/* Moves the overlay's cursor to the first entry at or after `key` and the lower bound. */
static void seek_forward(struct view_iter *iter, struct slice key)
{
    iter->direction = FORWARD;
    struct slice lower = buf_as_slice(&iter->lower);
    iter->entry =
        entry_within(iter, overlay_cursor_seek(&iter->cursor, iter->map, slice_compare(key, lower) >= 0 ? key : lower));
}

/* Moves the overlay's cursor to the last entry at or before `key` and below the upper bound. */
static void seek_backward(struct view_iter *iter, struct slice key)
{
    iter->direction = BACKWARD;
    const struct overlay_entry *entry = overlay_cursor_seek_for_prev(&iter->cursor, iter->map, key);
    struct slice upper = buf_as_slice(&iter->upper);
    if (entry != NULL && upper.len > 0 && slice_compare(overlay_entry_key(entry), upper) >= 0) {
        entry = overlay_cursor_seek_for_prev(&iter->cursor, iter->map, upper);
        if (entry != NULL && slice_equal(overlay_entry_key(entry), upper))
            entry = overlay_cursor_prev(&iter->cursor);
    }
    iter->entry = entry_within(iter, entry);
}

void view_iter_seek_first(struct view_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, VIEW_ITER_MAGIC));
    store_iter_seek_first(iter->base);
    if (iter->map == NULL)
        return;
    seek_forward(iter, SLICE_NONE);
    settle_cursor(iter);
}

void view_iter_seek_last(struct view_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, VIEW_ITER_MAGIC));
    store_iter_seek_last(iter->base);
    if (iter->map == NULL)
        return;
    seek_backward(iter, overlay_entry_key(overlay_cursor_last(&iter->cursor, iter->map)));
    settle_cursor(iter);
}

void view_iter_seek(struct view_iter *iter, struct slice key)
{
    REQUIRE(MAGIC_VALID(iter, VIEW_ITER_MAGIC));
    store_iter_seek(iter->base, key);
    if (iter->map == NULL)
        return;
    seek_forward(iter, key);
    settle_cursor(iter);
}

void view_iter_seek_for_prev(struct view_iter *iter, struct slice key)
{
    REQUIRE(MAGIC_VALID(iter, VIEW_ITER_MAGIC));
    store_iter_seek_for_prev(iter->base, key);
    if (iter->map == NULL)
        return;
    seek_backward(iter, key);
    settle_cursor(iter);
}

/* Moves both cursors just past the current key, in the other direction. */
static void reverse_direction(struct view_iter *iter)
{
    REQUIRE(iter->source != SOURCE_NONE);
    buf_clear(&iter->turn);
    buf_slice(&iter->turn, view_iter_key(iter));
    struct slice key = buf_as_slice(&iter->turn);
    if (iter->direction == BACKWARD) {
        store_iter_seek(iter->base, key);
        seek_forward(iter, key);
    } else {
        store_iter_seek_for_prev(iter->base, key);
        seek_backward(iter, key);
    }
    if (store_iter_valid(iter->base) && slice_equal(store_iter_key(iter->base), key))
        advance_base(iter);
    if (iter->entry != NULL && slice_equal(overlay_entry_key(iter->entry), key))
        advance_entry(iter);
}

static void move_iter(struct view_iter *iter, enum direction direction)
{
    REQUIRE(iter->source != SOURCE_NONE);
    if (iter->direction != direction) {
        reverse_direction(iter);
    } else {
        if (iter->source == SOURCE_STORE || iter->hides)
            advance_base(iter);
        if (iter->source == SOURCE_OVERLAY)
            advance_entry(iter);
    }
    settle_cursor(iter);
}

void view_iter_next(struct view_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, VIEW_ITER_MAGIC));
    if (iter->map == NULL)
        store_iter_next(iter->base);
    else
        move_iter(iter, FORWARD);
}

void view_iter_prev(struct view_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, VIEW_ITER_MAGIC));
    if (iter->map == NULL)
        store_iter_prev(iter->base);
    else
        move_iter(iter, BACKWARD);
}

bool view_iter_valid(const struct view_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, VIEW_ITER_MAGIC));
    return iter->map == NULL ? store_iter_valid(iter->base) : iter->source != SOURCE_NONE;
}

struct slice view_iter_key(const struct view_iter *iter)
{
    REQUIRE(iter->map == NULL || iter->source != SOURCE_NONE); /* the store may have a further key */
    if (iter->source == SOURCE_OVERLAY)
        return overlay_entry_key(iter->entry);
    return store_iter_key(iter->base);
}

struct slice view_iter_value(const struct view_iter *iter)
{
    REQUIRE(iter->map == NULL || iter->source != SOURCE_NONE);
    if (iter->source == SOURCE_OVERLAY)
        return overlay_entry_value(iter->entry);
    return store_iter_value(iter->base);
}

int view_iter_status(const struct view_iter *iter)
{
    REQUIRE(MAGIC_VALID(iter, VIEW_ITER_MAGIC));
    return store_iter_status(iter->base);
}
