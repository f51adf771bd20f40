/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The in-memory store: the semantics of a store in the simplest form; see README.md.
 *
 * One ordered map per space holds every version under a composite key: the key, escaped so that no
 * key is a prefix of another, then the version's stamp, newest first. In a versioned space the
 * stamp is the timestamp, in the others the number of the batch. So the version that a read returns
 * is the first one at or after (key, newest visible stamp).
 *
 * A crash removes the versions of batches after the last checkpoint, which have a higher stamp. A
 * version that a read or a crash could make visible again is never dropped (prune_limit()).
 */
#include "base/alloc.h"
#include "base/big_endian.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/magic.h"
#include "base/omap.h"
#include "store/store_internal.h"

#include <pthread.h>

enum { TAG_DELETED = 'd', TAG_PUT = 'p', TAG_RANGE = 'r' /* in batches only; value: the end of the range */ };

/* A batch that a crash removes. */
struct mem_unsynced {
    uint64_t number;
    tl_ts ts;
};

struct mem_store {
    struct store base;
    pthread_rwlock_t lock; /* protects everything below */
    struct omap spaces[SPACE_COUNT];
    uint64_t batch_number; /* of the newest batch */
    tl_ts newest_ts;
    uint64_t durable_number; /* newest batch that survives a crash */
    tl_ts durable_ts;        /* its timestamp */
    struct mem_unsynced *unsynced;
    size_t unsynced_count;
    size_t unsynced_capacity;
    size_t iter_count; /* number of iterators; no version is dropped while there are any */
    size_t bytes;
    bool checkpointed; /* there is a checkpoint */
    struct buf record; /* of the last checkpoint */
    struct omap pieces;         /* by encoded struct store_piece */
    struct omap durable_pieces; /* of the last checkpoint */
    bool pieces_changed;        /* since then */
    _Atomic size_t uncheckpointed_bytes;
};

/* A batch is a sequence of records: space, key, tag, value. */
struct mem_batch {
    struct store_batch base;
    struct buf records;
};

struct mem_iter {
    struct store_iter base;
    uint64_t limit;   /* newest visible stamp */
    struct buf lower; /* escaped; empty: open */
    struct buf upper;
    struct buf escaped; /* the current key, escaped */
    struct buf key;
    struct buf value;
    struct buf scratch;
};

static struct mem_store *mem_of(struct store *store)
{
    return (struct mem_store *)store;
}

/*
 * Composite keys: NUL becomes (0, 255), and (0, 0) ends the key. That keeps byte order and makes
 * the end lower than any continuation.
 */
static void escape_key(struct buf *ret_escaped, struct slice key)
{
    buf_clear(ret_escaped);
    for (size_t i = 0; i < key.len; i++) {
        buf_byte(ret_escaped, key.data[i]);
        if (key.data[i] == '\0')
            buf_byte(ret_escaped, '\xff');
    }
    buf_append(ret_escaped, "\0\0", 2);
}

static void unescape_key(struct buf *ret_key, struct slice escaped)
{
    buf_clear(ret_key);
    for (size_t i = 0; i + 2 < escaped.len; i++) {
        buf_byte(ret_key, escaped.data[i]);
        if (escaped.data[i] == '\0')
            i++;
    }
}

enum { STAMP_BYTES = 8 };

static void append_stamp(struct buf *composite, uint64_t stamp)
{
    buf_u64be(composite, ~stamp);
}

static struct slice entry_escaped(const struct omap_entry *entry)
{
    struct slice composite = omap_key(entry);
    INSIST(composite.len >= STAMP_BYTES);
    return (struct slice){composite.data, composite.len - STAMP_BYTES};
}

static uint64_t entry_stamp(const struct omap_entry *entry)
{
    struct slice composite = omap_key(entry);
    struct slice stamp = slice_from_offset(composite, composite.len - STAMP_BYTES);
    uint64_t inverted = 0;
    INSIST(slice_take_u64be(&stamp, &inverted));
    return ~inverted;
}

static bool entry_deleted(const struct omap_entry *entry)
{
    INSIST(omap_value(entry).len > 0);
    return omap_value(entry).data[0] == TAG_DELETED;
}

/*
 * Returns: the newest version of a key with a stamp of at most `limit`, possibly a deletion; NULL:
 *          none. `escaped` is modified temporarily.
 */
static struct omap_entry *find_version(const struct omap *map, struct buf *escaped, uint64_t limit)
{
    size_t len = escaped->len;
    append_stamp(escaped, limit);
    struct omap_entry *entry = omap_seek(map, buf_as_slice(escaped));
    buf_truncate(escaped, len);
    return entry != NULL && slice_equal(entry_escaped(entry), buf_as_slice(escaped)) ? entry : NULL;
}

/* Open and close */

static void mem_close(struct store *store)
{
    struct mem_store *mem = mem_of(store);
    REQUIRE(mem->iter_count == 0);
    for (int space = 0; space < SPACE_COUNT; space++)
        omap_deinit(&mem->spaces[space]);
    mem_free(mem->unsynced);
    buf_deinit(&mem->record);
    omap_deinit(&mem->pieces);
    omap_deinit(&mem->durable_pieces);
    pthread_rwlock_destroy(&mem->lock);
    mem_free(mem);
}

static char *mem_reason(struct store *store)
{
    (void)store;
    return NULL;
}

/* Batches */

static struct store_batch *mem_batch_new(struct store *store)
{
    (void)store;
    struct mem_batch *batch = mem_zalloc(sizeof *batch);
    batch->records = BUF_INIT(BUF_UNLIMITED);
    return &batch->base;
}

static void mem_batch_free(struct store_batch *base)
{
    struct mem_batch *batch = (struct mem_batch *)base;
    buf_deinit(&batch->records);
    mem_free(batch);
}

static void mem_batch_clear(struct store_batch *base)
{
    buf_clear(&((struct mem_batch *)base)->records);
}

static void batch_record(struct store_batch *base, enum store_space space, char tag, struct slice key,
                         struct slice value)
{
    struct buf *records = &((struct mem_batch *)base)->records;
    buf_byte(records, (char)space);
    buf_varint(records, key.len);
    buf_slice(records, key);
    buf_varint(records, value.len + 1);
    buf_byte(records, tag);
    buf_slice(records, value);
}

static void mem_batch_put(struct store_batch *batch, enum store_space space, struct slice key, struct slice value)
{
    batch_record(batch, space, TAG_PUT, key, value);
}

static void mem_batch_delete(struct store_batch *batch, enum store_space space, struct slice key)
{
    batch_record(batch, space, TAG_DELETED, key, SLICE_NONE);
}

static void mem_batch_delete_range(struct store_batch *batch, enum store_space space, struct slice lower,
                                   struct slice upper)
{
    batch_record(batch, space, TAG_RANGE, lower, upper);
}

/* Writing */

/*
 * Returns: the newest stamp below which hidden versions can never become visible again, neither to
 *          a read nor after a crash.
 */
static uint64_t prune_limit(const struct mem_store *mem, enum store_space space)
{
    if (!store__space_is_versioned(space))
        return mem->durable_number;
    tl_ts low = atomic_load(&mem->base.history_low);
    return low < mem->durable_ts ? low : mem->durable_ts;
}

static void remove_entry(struct mem_store *mem, enum store_space space, const struct omap_entry *entry)
{
    INSIST(mem->bytes >= omap_key(entry).len + omap_value(entry).len);
    mem->bytes -= omap_key(entry).len + omap_value(entry).len;
    tl_cleanup(mem_freep) char *key = mem_dup(omap_key(entry).data, omap_key(entry).len);
    bool removed = omap_remove(&mem->spaces[space], (struct slice){key, omap_key(entry).len});
    INSIST(removed);
}

/*
 * Drops the versions of a key that can never become visible again. The newest version at the limit
 * stays, unless it is a deletion.
 */
static void prune_key(struct mem_store *mem, enum store_space space, struct buf *escaped)
{
    if (mem->iter_count > 0)
        return;
    const struct omap_entry *newest = find_version(&mem->spaces[space], escaped, prune_limit(mem, space));
    if (newest == NULL)
        return;
    const struct omap_entry *entry = omap_next(newest);
    while (entry != NULL && slice_equal(entry_escaped(entry), buf_as_slice(escaped))) {
        const struct omap_entry *following = omap_next(entry);
        remove_entry(mem, space, entry);
        entry = following;
    }
    if (entry_deleted(newest))
        remove_entry(mem, space, newest);
}

/* Writes a version of the key in `escaped`. */
static void write_version(struct mem_store *mem, enum store_space space, tl_ts ts, struct buf *escaped,
                          struct slice tagged)
{
    prune_key(mem, space, escaped);
    size_t len = escaped->len;
    append_stamp(escaped, store__space_is_versioned(space) ? ts : mem->batch_number);
    const struct omap_entry *before = omap_get(&mem->spaces[space], buf_as_slice(escaped));
    if (before != NULL)
        mem->bytes -= omap_key(before).len + omap_value(before).len;
    omap_put(&mem->spaces[space], buf_as_slice(escaped), tagged);
    mem->bytes += escaped->len + tagged.len;
    buf_truncate(escaped, len);
}

/* Deletes each key of a range individually. */
static void write_range(struct mem_store *mem, enum store_space space, tl_ts ts, struct slice lower, struct slice upper)
{
    static const char deleted = TAG_DELETED;
    struct buf at = BUF_INIT(BUF_UNLIMITED), end = BUF_INIT(BUF_UNLIMITED);
    escape_key(&at, lower);
    escape_key(&end, upper);
    const struct omap_entry *entry = omap_seek(&mem->spaces[space], buf_as_slice(&at));
    while (entry != NULL && slice_compare(entry_escaped(entry), buf_as_slice(&end)) < 0) {
        buf_clear(&at);
        buf_slice(&at, entry_escaped(entry));
        if (!entry_deleted(entry))
            write_version(mem, space, ts, &at, slice_make(&deleted, 1));
        buf_overwrite(&at, at.len - 1, "\1", 1); /* after all versions of the key */
        entry = omap_seek(&mem->spaces[space], buf_as_slice(&at));
    }
    buf_deinit(&at);
    buf_deinit(&end);
}

static void write_record(struct mem_store *mem, tl_ts ts, struct slice *records, struct buf *escaped)
{
    struct slice space_byte, key, tagged;
    uint64_t key_len = 0, tagged_len = 0;
    bool whole = slice_take(records, 1, &space_byte) && slice_take_varint(records, &key_len) &&
                 slice_take(records, key_len, &key) && slice_take_varint(records, &tagged_len) &&
                 slice_take(records, tagged_len, &tagged);
    INSIST(whole);
    enum store_space space = (enum store_space)space_byte.data[0];
    INSIST(space >= 0 && space < SPACE_COUNT && tagged.len > 0);
    if (tagged.data[0] == TAG_RANGE) {
        write_range(mem, space, ts, key, slice_from_offset(tagged, 1));
        return;
    }
    escape_key(escaped, key);
    write_version(mem, space, ts, escaped, tagged);
}

static void record_unsynced(struct mem_store *mem, tl_ts ts)
{
    REQUIRE(mem->unsynced_count == 0 || mem->unsynced[mem->unsynced_count - 1].ts < ts);
    if (mem->unsynced_count == mem->unsynced_capacity) {
        mem->unsynced_capacity = mem->unsynced_capacity ? mem->unsynced_capacity * 2 : 16;
        mem->unsynced = mem_realloc(mem->unsynced, mem->unsynced_capacity * sizeof *mem->unsynced);
    }
    mem->unsynced[mem->unsynced_count++] = (struct mem_unsynced){mem->batch_number, ts};
}

static int mem_write(struct store *store, struct store_batch *batch)
{
    struct mem_store *mem = mem_of(store);
    struct slice records = buf_as_slice(&((struct mem_batch *)batch)->records);
    struct buf escaped = BUF_INIT(BUF_UNLIMITED);
    pthread_rwlock_wrlock(&mem->lock);
    mem->batch_number++;
    mem->newest_ts = batch->ts;
    record_unsynced(mem, batch->ts);
    atomic_fetch_add_explicit(&mem->uncheckpointed_bytes, batch->bytes, memory_order_relaxed);
    while (records.len > 0)
        write_record(mem, batch->ts, &records, &escaped);
    pthread_rwlock_unlock(&mem->lock);
    buf_deinit(&escaped);
    return 0;
}

void store_mem_sync(struct store *store)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC) && store->ops->close == mem_close);
    struct mem_store *mem = mem_of(store);
    pthread_rwlock_wrlock(&mem->lock);
    mem->durable_number = mem->batch_number;
    mem->durable_ts = mem->newest_ts;
    mem->unsynced_count = 0;
    pthread_rwlock_unlock(&mem->lock);
}

/* --- Pieces ------------------------------------------------------------------------------------------------------- */

enum { PIECE_KEY_BYTES = 12 };

static struct slice piece_key(struct store_piece piece, char bytes[PIECE_KEY_BYTES])
{
    big_endian_put_u64(bytes, piece.owner);
    big_endian_put_u32(bytes + 8, piece.number);
    return slice_make(bytes, PIECE_KEY_BYTES);
}

static int mem_put_piece(struct store *store, struct store_piece piece, struct slice bytes)
{
    struct mem_store *mem = mem_of(store);
    char key[PIECE_KEY_BYTES];
    omap_put(&mem->pieces, piece_key(piece, key), bytes);
    mem->pieces_changed = true;
    return 0;
}

static int mem_delete_pieces(struct store *store, uint64_t first, uint64_t last)
{
    struct mem_store *mem = mem_of(store);
    char key[PIECE_KEY_BYTES], after[PIECE_KEY_BYTES];
    struct slice end = piece_key((struct store_piece){last + 1, 0}, after);
    struct omap_entry *entry = omap_seek(&mem->pieces, piece_key((struct store_piece){first, 0}, key));
    while (entry != NULL && slice_compare(omap_key(entry), end) < 0) {
        struct omap_entry *following = omap_next(entry);
        omap_remove(&mem->pieces, omap_key(entry));
        entry = following;
    }
    mem->pieces_changed = true;
    return 0;
}

static int mem_get_piece(struct store *store, struct store_piece piece, struct buf *ret_bytes)
{
    char key[PIECE_KEY_BYTES];
    const struct omap_entry *entry = omap_get(&mem_of(store)->pieces, piece_key(piece, key));
    if (entry == NULL)
        return STORE_NOT_FOUND;
    buf_slice(ret_bytes, omap_value(entry));
    return 0;
}

static int mem_count_pieces(struct store *store, size_t *ret_count)
{
    *ret_count = mem_of(store)->pieces.count;
    return 0;
}

static void copy_map(struct omap *into, const struct omap *from)
{
    omap_clear(into);
    for (const struct omap_entry *entry = omap_first(from); entry != NULL; entry = omap_next(entry))
        omap_put(into, omap_key(entry), omap_value(entry));
}

/* A checkpoint in memory is durable at once. */
static int mem_checkpoint(struct store *store, struct slice record)
{
    struct mem_store *mem = mem_of(store);
    buf_clear(&mem->record);
    buf_slice(&mem->record, record);
    mem->checkpointed = true;
    if (mem->pieces_changed)
        copy_map(&mem->durable_pieces, &mem->pieces);
    mem->pieces_changed = false;
    atomic_store_explicit(&mem->uncheckpointed_bytes, 0, memory_order_relaxed);
    store_mem_sync(store);
    return 0;
}

static int mem_checkpointed(struct store *store)
{
    (void)store;
    return 1;
}

static int mem_checkpoint_record(struct store *store, struct buf *ret_record)
{
    const struct mem_store *mem = mem_of(store);
    if (!mem->checkpointed)
        return STORE_NOT_FOUND;
    buf_slice(ret_record, buf_as_slice(&mem->record));
    return 0;
}

static size_t mem_uncheckpointed_bytes(const struct store *store)
{
    return atomic_load_explicit(&((const struct mem_store *)store)->uncheckpointed_bytes, memory_order_relaxed);
}

/* Removes every version with a stamp above `limit`. */
static void remove_above(struct mem_store *mem, enum store_space space, uint64_t limit)
{
    const struct omap_entry *entry = omap_first(&mem->spaces[space]);
    while (entry != NULL) {
        const struct omap_entry *following = omap_next(entry);
        if (entry_stamp(entry) > limit)
            remove_entry(mem, space, entry);
        entry = following;
    }
}

size_t store_mem_crash(struct store *store, size_t kept)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC) && store->ops->close == mem_close);
    struct mem_store *mem = mem_of(store);
    REQUIRE(mem->iter_count == 0);
    pthread_rwlock_wrlock(&mem->lock);
    size_t count = mem->unsynced_count;
    kept = kept < count ? kept : count;
    if (kept > 0) {
        mem->durable_number = mem->unsynced[kept - 1].number;
        mem->durable_ts = mem->unsynced[kept - 1].ts;
    }
    for (int space = 0; space < SPACE_COUNT; space++)
        remove_above(mem, space, store__space_is_versioned(space) ? mem->durable_ts : mem->durable_number);
    mem->batch_number = mem->durable_number;
    mem->newest_ts = mem->base.last_ts = mem->durable_ts;
    if (atomic_load(&mem->base.history_low) > mem->durable_ts)
        /* No version visible from there was dropped. */
        atomic_store(&mem->base.history_low, mem->durable_ts);
    mem->unsynced_count = 0;
    if (mem->pieces_changed)
        copy_map(&mem->pieces, &mem->durable_pieces);
    mem->pieces_changed = false;
    pthread_rwlock_unlock(&mem->lock);
    return count;
}

struct store *store_mem_copy(struct store *store)
{
    REQUIRE(MAGIC_VALID(store, STORE_MAGIC) && store->ops->close == mem_close);
    struct mem_store *from = mem_of(store), *copy = mem_of(store_open_mem());
    REQUIRE(from->checkpointed);
    pthread_rwlock_rdlock(&from->lock);
    for (int space = 0; space < SPACE_COUNT; space++)
        copy_map(&copy->spaces[space], &from->spaces[space]);
    copy_map(&copy->pieces, &from->durable_pieces);
    copy_map(&copy->durable_pieces, &from->durable_pieces);
    buf_slice(&copy->record, buf_as_slice(&from->record));
    copy->checkpointed = true;
    copy->batch_number = copy->durable_number = from->durable_number;
    copy->newest_ts = copy->durable_ts = from->durable_ts;
    copy->bytes = from->bytes;
    atomic_store(&copy->base.history_low, atomic_load(&from->base.history_low));
    pthread_rwlock_unlock(&from->lock);
    (void)store_mem_crash(&copy->base, 0); /* removes versions above the checkpoint */
    return &copy->base;
}

/* Reading */

static uint64_t read_limit(const struct mem_store *mem, enum store_space space, tl_ts ts)
{
    if (!store__space_is_versioned(space))
        return mem->batch_number;
    return ts < mem->newest_ts ? ts : mem->newest_ts;
}

static void value_release(struct store_value *value)
{
    mem_free(value->pin);
}

static int mem_get(struct store *store, enum store_space space, tl_ts ts, struct slice key,
                   struct store_value *ret_value)
{
    struct mem_store *mem = mem_of(store);
    struct buf escaped = BUF_INIT(BUF_UNLIMITED);
    escape_key(&escaped, key);
    pthread_rwlock_rdlock(&mem->lock);
    const struct omap_entry *entry = find_version(&mem->spaces[space], &escaped, read_limit(mem, space, ts));
    int r = STORE_NOT_FOUND;
    if (entry != NULL && !entry_deleted(entry)) {
        struct slice value = slice_from_offset(omap_value(entry), 1);
        /* a copy, so that the sanitizers detect a use after the release */
        char *copy = mem_dup(value.data, value.len);
        *ret_value = (struct store_value){{copy, value.len}, copy, value_release};
        r = 0;
    }
    pthread_rwlock_unlock(&mem->lock);
    buf_deinit(&escaped);
    return r;
}

static struct store_iter *mem_iter_new(struct store *store, enum store_space space, tl_ts ts, struct slice lower,
                                       struct slice upper)
{
    struct mem_store *mem = mem_of(store);
    struct mem_iter *iter = mem_zalloc(sizeof *iter);
    struct buf *bufs[] = {&iter->lower, &iter->upper, &iter->escaped, &iter->key, &iter->value, &iter->scratch};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        *bufs[i] = BUF_INIT(BUF_UNLIMITED);
    if (lower.len > 0)
        escape_key(&iter->lower, lower);
    if (upper.len > 0)
        escape_key(&iter->upper, upper);
    pthread_rwlock_wrlock(&mem->lock);
    iter->limit = read_limit(mem, space, ts);
    mem->iter_count++;
    pthread_rwlock_unlock(&mem->lock);
    return &iter->base;
}

static void mem_iter_free(struct store_iter *base)
{
    struct mem_iter *iter = (struct mem_iter *)base;
    struct mem_store *mem = mem_of(base->store);
    pthread_rwlock_wrlock(&mem->lock);
    INSIST(mem->iter_count > 0);
    mem->iter_count--;
    pthread_rwlock_unlock(&mem->lock);
    struct buf *bufs[] = {&iter->lower, &iter->upper, &iter->escaped, &iter->key, &iter->value, &iter->scratch};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        buf_deinit(bufs[i]);
    mem_free(iter);
}

static const struct omap *iter_map(const struct mem_iter *iter)
{
    return &mem_of(iter->base.store)->spaces[iter->base.space];
}

static bool within_bounds(const struct mem_iter *iter, struct slice escaped)
{
    return (iter->lower.len == 0 || slice_compare(escaped, buf_as_slice(&iter->lower)) >= 0) &&
           (iter->upper.len == 0 || slice_compare(escaped, buf_as_slice(&iter->upper)) < 0);
}

/*
 * Sets the iterator to the key in iter->escaped, if a version of it is visible. Returns: whether it
 * is.
 */
static bool show_version(struct mem_iter *iter)
{
    const struct omap_entry *entry = find_version(iter_map(iter), &iter->escaped, iter->limit);
    if (entry == NULL || entry_deleted(entry))
        return false;
    unescape_key(&iter->key, buf_as_slice(&iter->escaped));
    buf_clear(&iter->value);
    buf_slice(&iter->value, slice_from_offset(omap_value(entry), 1));
    iter->base.valid = true;
    iter->base.key = buf_as_slice(&iter->key);
    iter->base.value = buf_as_slice(&iter->value);
    return true;
}

/* Returns: a composite key after all versions of the key in iter->escaped. */
static struct slice after_versions(struct mem_iter *iter)
{
    REQUIRE(iter->escaped.len > 0);
    buf_clear(&iter->scratch);
    buf_slice(&iter->scratch, buf_as_slice(&iter->escaped));
    buf_overwrite(&iter->scratch, iter->scratch.len - 1, "\1", 1);
    return buf_as_slice(&iter->scratch);
}

/* Moves from `entry` (NULL: the end) forward to the first visible key. */
static void settle_forward(struct mem_iter *iter, const struct omap_entry *entry)
{
    iter->base.valid = false;
    while (entry != NULL && within_bounds(iter, entry_escaped(entry))) {
        buf_clear(&iter->escaped);
        buf_slice(&iter->escaped, entry_escaped(entry));
        if (show_version(iter))
            return;
        entry = omap_seek(iter_map(iter), after_versions(iter));
    }
}

/* Moves from `entry` (NULL: the end) backward to the first visible key. */
static void settle_backward(struct mem_iter *iter, const struct omap_entry *entry)
{
    iter->base.valid = false;
    while (entry != NULL && within_bounds(iter, entry_escaped(entry))) {
        buf_clear(&iter->escaped);
        buf_slice(&iter->escaped, entry_escaped(entry));
        if (show_version(iter))
            return;
        entry = omap_seek_for_prev(iter_map(iter), buf_as_slice(&iter->escaped));
    }
}

static void seek_locked(struct mem_iter *iter, struct slice escaped, bool forward)
{
    struct mem_store *mem = mem_of(iter->base.store);
    pthread_rwlock_rdlock(&mem->lock);
    if (forward)
        settle_forward(iter, omap_seek(iter_map(iter), escaped));
    else
        settle_backward(iter, omap_seek_for_prev(iter_map(iter), escaped));
    pthread_rwlock_unlock(&mem->lock);
}

static void mem_iter_seek_first(struct store_iter *base)
{
    struct mem_iter *iter = (struct mem_iter *)base;
    seek_locked(iter, buf_as_slice(&iter->lower), true);
}

static void mem_iter_seek_last(struct store_iter *base)
{
    struct mem_iter *iter = (struct mem_iter *)base;
    if (iter->upper.len > 0) {
        seek_locked(iter, buf_as_slice(&iter->upper), false);
        return;
    }
    struct mem_store *mem = mem_of(base->store);
    pthread_rwlock_rdlock(&mem->lock);
    settle_backward(iter, omap_last(iter_map(iter)));
    pthread_rwlock_unlock(&mem->lock);
}

static void mem_iter_seek(struct store_iter *base, struct slice key)
{
    struct mem_iter *iter = (struct mem_iter *)base;
    escape_key(&iter->escaped, key);
    bool below = slice_compare(buf_as_slice(&iter->escaped), buf_as_slice(&iter->lower)) < 0;
    seek_locked(iter, buf_as_slice(below ? &iter->lower : &iter->escaped), true);
}

static void mem_iter_seek_for_prev(struct store_iter *base, struct slice key)
{
    struct mem_iter *iter = (struct mem_iter *)base;
    escape_key(&iter->escaped, key);
    bool above = iter->upper.len > 0 && slice_compare(buf_as_slice(&iter->escaped), buf_as_slice(&iter->upper)) >= 0;
    seek_locked(iter, above ? buf_as_slice(&iter->upper) : after_versions(iter), false);
}

static void mem_iter_next(struct store_iter *base)
{
    struct mem_iter *iter = (struct mem_iter *)base;
    seek_locked(iter, after_versions(iter), true);
}

static void mem_iter_prev(struct store_iter *base)
{
    struct mem_iter *iter = (struct mem_iter *)base;
    buf_clear(&iter->scratch);
    buf_slice(&iter->scratch, buf_as_slice(&iter->escaped));
    seek_locked(iter, buf_as_slice(&iter->scratch), false);
}

/* Maintenance */

static int mem_history_low_raised(struct store *store)
{
    (void)store; /* versions are dropped when their key is next written, or by store_compact() */
    return 0;
}

static void compact_space(struct mem_store *mem, enum store_space space)
{
    struct buf escaped = BUF_INIT(BUF_UNLIMITED);
    const struct omap_entry *entry = omap_first(&mem->spaces[space]);
    while (entry != NULL) {
        buf_clear(&escaped);
        buf_slice(&escaped, entry_escaped(entry));
        prune_key(mem, space, &escaped);
        buf_overwrite(&escaped, escaped.len - 1, "\1", 1);
        entry = omap_seek(&mem->spaces[space], buf_as_slice(&escaped));
    }
    buf_deinit(&escaped);
}

static int mem_compact(struct store *store)
{
    struct mem_store *mem = mem_of(store);
    pthread_rwlock_wrlock(&mem->lock);
    for (int space = 0; space < SPACE_COUNT; space++)
        compact_space(mem, space);
    pthread_rwlock_unlock(&mem->lock);
    return 0;
}

/* Checks that no version has a stamp above the newest one. */
static int mem_verify(struct store *store, char **ret_reason)
{
    (void)ret_reason;
    struct mem_store *mem = mem_of(store);
    pthread_rwlock_rdlock(&mem->lock);
    for (int space = 0; space < SPACE_COUNT; space++) {
        uint64_t newest = store__space_is_versioned(space) ? mem->newest_ts : mem->batch_number;
        const struct omap_entry *entry = omap_first(&mem->spaces[space]);
        for (; entry != NULL; entry = omap_next(entry))
            INSIST(entry_stamp(entry) <= newest);
    }
    pthread_rwlock_unlock(&mem->lock);
    return 0;
}

static void mem_stats(struct store *store, struct store_stats *ret_stats)
{
    struct mem_store *mem = mem_of(store);
    pthread_rwlock_rdlock(&mem->lock);
    ret_stats->memory_bytes = mem->bytes;
    pthread_rwlock_unlock(&mem->lock);
}

static uint64_t mem_range_bytes(struct store *store, enum store_space space, struct slice lower, struct slice upper)
{
    struct mem_store *mem = mem_of(store);
    tl_cleanup(buf_deinit) struct buf from = BUF_INIT(BUF_UNLIMITED), to = BUF_INIT(BUF_UNLIMITED);
    uint64_t bytes = 0;
    escape_key(&from, lower);
    escape_key(&to, upper);
    pthread_rwlock_rdlock(&mem->lock);
    const struct omap_entry *entry = omap_seek(&mem->spaces[space], buf_as_slice(&from));
    for (; entry != NULL && slice_compare(omap_key(entry), buf_as_slice(&to)) < 0; entry = omap_next(entry))
        bytes += omap_key(entry).len + omap_value(entry).len;
    pthread_rwlock_unlock(&mem->lock);
    return bytes;
}

static uint64_t mem_free_bytes(const struct store *store)
{
    (void)store;
    return UINT64_MAX;
}

static bool mem_is_ready(struct store *store)
{
    (void)store;
    return true;
}

static const struct store_ops mem_ops = {
    .close = mem_close,
    .reason = mem_reason,
    .batch_new = mem_batch_new,
    .batch_free = mem_batch_free,
    .batch_clear = mem_batch_clear,
    .batch_put = mem_batch_put,
    .batch_delete = mem_batch_delete,
    .batch_delete_range = mem_batch_delete_range,
    .write = mem_write,
    .checkpoint = mem_checkpoint,
    .checkpointed = mem_checkpointed,
    .checkpoint_record = mem_checkpoint_record,
    .put_piece = mem_put_piece,
    .delete_pieces = mem_delete_pieces,
    .get_piece = mem_get_piece,
    .count_pieces = mem_count_pieces,
    .uncheckpointed_bytes = mem_uncheckpointed_bytes,
    .get = mem_get,
    .iter_new = mem_iter_new,
    .iter_free = mem_iter_free,
    .iter_seek_first = mem_iter_seek_first,
    .iter_seek_last = mem_iter_seek_last,
    .iter_seek = mem_iter_seek,
    .iter_seek_for_prev = mem_iter_seek_for_prev,
    .iter_next = mem_iter_next,
    .iter_prev = mem_iter_prev,
    .history_low_raised = mem_history_low_raised,
    .compact = mem_compact,
    .verify = mem_verify,
    .stats = mem_stats,
    .range_bytes = mem_range_bytes,
    .free_bytes = mem_free_bytes,
    .is_ready = mem_is_ready,
};

struct store *store_open_mem(void)
{
    struct mem_store *mem = mem_zalloc(sizeof *mem);
    mem->base.magic = STORE_MAGIC;
    mem->base.ops = &mem_ops;
    mem->record = BUF_INIT(BUF_UNLIMITED);
    omap_init(&mem->pieces);
    omap_init(&mem->durable_pieces);
    for (int space = 0; space < SPACE_COUNT; space++)
        omap_init(&mem->spaces[space]);
    pthread_rwlock_init(&mem->lock, NULL);
    return &mem->base;
}
