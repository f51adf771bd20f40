/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of the store on RocksDB.
 *
 * A batch collects changes and passes them to RocksDB in order of space and key: neighbours in the
 * batch are then neighbours in the memtable, whose inner nodes are still in the processor's cache.
 * For a bulk of 5,000 keys that reduces a write from 2.2 to 1.3 us per key. Of several changes of
 * one key only the last is written; at one timestamp they are one version (invariant 1).
 *
 * A large batch is passed in parts, each of which stays in the processor's cache: README.md, "Large
 * batches".
 */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "store/rocks_internal.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    RETAINED_BYTES_MAX = 4 << 20,    /* larger buffers are freed when a batch is cleared */
    STAMPED_RETAINED_MAX = 64 << 10, /* a larger buffer of stamped values is freed when the batch is written */
    MOVES_MIN = 256,                 /* moves of an insertion sort before it falls back to qsort(), */
    MOVES_FRACTION = 8,              /* plus one for each so many changes */
    CHANGE_OVERHEAD_BYTES_MAX = 20,  /* of a change in RocksDB besides key and value: tag, family, lengths, timestamp */
    CHANGES_AHEAD = 4,               /* by which keys and values are prefetched: those of an overlay are scattered */
};

/*
 * A change. The copies of keys and values lie in `bytes`, in the order of calls. They may move while
 * changes are added, so their addresses are set by set_addresses().
 */
struct change {
    uint8_t space;
    bool deletes;
    bool copied;     /* key and value; else the caller keeps them */
    bool stamped;    /* the value is written with the timestamp in place of its first bytes */
    uint32_t number; /* position in the order of calls */
    struct slice key;
    struct slice value;
};

struct rocks_batch {
    struct store_batch base;
    struct buf bytes;
    struct change *changes; /* in the order of calls until they are sorted */
    size_t count;
    size_t capacity;
    size_t in_order;   /* as many, from the first one on, were added in order of space and key */
    size_t newest_key; /* offset in `bytes` of the newest change's key, if that is a copy */
    char *stamped;     /* the value that is being written, with its timestamp */
    size_t stamped_capacity;
    struct buf ranges; /* deleted ranges: space, then length and bytes of both bounds */
    /* Of the parts, in sorted order: */
    size_t next;      /* first change of the next one */
    size_t versioned; /* changes of versioned spaces, or all if it is not divided */
    bool divided;     /* its unversioned changes are the first part */
    bool ended;       /* the last one has been returned */
    rocksdb_writebatch_t *batch;
    bool large;      /* `batch` was made for more than RETAINED_BYTES_MAX, */
    size_t reserved; /* for as many, if its memory was reserved */
};

struct store_batch *rocks__batch_new(struct store *store)
{
    (void)store;
    struct rocks_batch *batch = mem_zalloc(sizeof *batch);
    batch->bytes = BUF_INIT(BUF_UNLIMITED);
    batch->ranges = BUF_INIT(BUF_UNLIMITED);
    batch->batch = rocksdb_writebatch_create();
    return &batch->base;
}

void rocks__batch_free(struct store_batch *base)
{
    struct rocks_batch *batch = (struct rocks_batch *)base;
    rocksdb_writebatch_destroy(batch->batch);
    buf_deinit(&batch->bytes);
    buf_deinit(&batch->ranges);
    mem_free(batch->stamped);
    mem_free(batch->changes);
    mem_free(batch);
}

void rocks__batch_clear(struct store_batch *base)
{
    struct rocks_batch *batch = (struct rocks_batch *)base;
    batch->count = batch->in_order = 0;
    buf_clear(&batch->ranges);
    size_t of_changes = batch->capacity * sizeof *batch->changes;
    if (batch->bytes.capacity <= RETAINED_BYTES_MAX && of_changes <= RETAINED_BYTES_MAX && !batch->large) {
        buf_clear(&batch->bytes);
        return;
    }
    buf_deinit(&batch->bytes);
    mem_free(batch->changes);
    batch->changes = NULL;
    batch->capacity = 0;
    batch->large = false;
    batch->reserved = 0;
    rocksdb_writebatch_destroy(batch->batch);
    batch->batch = rocksdb_writebatch_create();
}

/* Returns: whether a change comes after the newest one. Its key is still in the processor's cache. */
static bool is_in_order(const struct rocks_batch *batch, const struct change *change)
{
    if (batch->in_order < batch->count || batch->count == 0)
        return batch->in_order == batch->count;
    const struct change *newest = &batch->changes[batch->count - 1];
    struct slice key =
        newest->copied ? slice_make(batch->bytes.data + batch->newest_key, newest->key.len) : newest->key;
    return newest->space != change->space ? newest->space < change->space : slice_compare(key, change->key) <= 0;
}

static void append_change(struct rocks_batch *batch, const struct change *change)
{
    REQUIRE(batch->count < UINT32_MAX);
    if (batch->count == batch->capacity) {
        batch->capacity = batch->capacity ? batch->capacity * 2 : 32;
        batch->changes = mem_realloc(batch->changes, batch->capacity * sizeof *batch->changes);
    }
    batch->in_order += is_in_order(batch, change);
    batch->changes[batch->count] = *change;
    batch->changes[batch->count].number = (uint32_t)batch->count;
    batch->count++;
    if (!change->copied)
        return;
    batch->newest_key = batch->bytes.len;
    buf_slice(&batch->bytes, change->key);
    buf_slice(&batch->bytes, change->value);
}

void rocks__batch_put(struct store_batch *base, enum store_space space, struct slice key, struct slice value)
{
    append_change((struct rocks_batch *)base,
                  &(struct change){.space = (uint8_t)space, .copied = true, .key = key, .value = value});
}

void rocks__batch_put_nocopy(struct store_batch *base, enum store_space space, struct slice key, struct slice value)
{
    append_change((struct rocks_batch *)base, &(struct change){.space = (uint8_t)space, .key = key, .value = value});
}

void rocks__batch_put_stamped(struct store_batch *base, enum store_space space, struct slice key, struct slice value)
{
    append_change((struct rocks_batch *)base,
                  &(struct change){.space = (uint8_t)space, .stamped = true, .key = key, .value = value});
}

void rocks__batch_delete(struct store_batch *base, enum store_space space, struct slice key)
{
    append_change((struct rocks_batch *)base,
                  &(struct change){.space = (uint8_t)space, .deletes = true, .copied = true, .key = key});
}

void rocks__batch_delete_range(struct store_batch *base, enum store_space space, struct slice lower, struct slice upper)
{
    struct buf *ranges = &((struct rocks_batch *)base)->ranges;
    buf_byte(ranges, (char)space);
    buf_varint(ranges, lower.len);
    buf_slice(ranges, lower);
    buf_varint(ranges, upper.len);
    buf_slice(ranges, upper);
}

static bool take_bound(struct slice *ranges, struct slice *ret_bound)
{
    uint64_t len;
    return slice_take_varint(ranges, &len) && slice_take(ranges, (size_t)len, ret_bound);
}

/* Writes the range deletions first: they apply to keys that earlier batches have put. */
static void emit_ranges(struct rocks_batch *batch)
{
    struct slice ranges = buf_as_slice(&batch->ranges), space, lower, upper;
    while (slice_take(&ranges, 1, &space)) {
        bool whole = take_bound(&ranges, &lower) && take_bound(&ranges, &upper);
        INSIST(whole);
        INSIST(space.data[0] >= 0 && space.data[0] < SPACE_COUNT);
        rocksdb_writebatch_delete_range_cf(batch->batch, rocks_of(batch->base.store)->families[(int)space.data[0]],
                                           lower.data, lower.len, upper.data, upper.len);
    }
}

static int compare_changes(const void *a_, const void *b_)
{
    const struct change *a = a_, *b = b_;
    if (a->space != b->space)
        return a->space < b->space ? -1 : 1;
    int order = slice_compare(a->key, b->key);
    return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

/*
 * Inserts the change at `at` into the sorted run before it. Returns: the number of changes moved.
 */
static size_t insert_change(struct change *changes, size_t at)
{
    struct change change = changes[at];
    size_t to = at;
    for (; to > 0 && compare_changes(&change, &changes[to - 1]) < 0; to--)
        changes[to] = changes[to - 1];
    changes[to] = change;
    return at - to;
}

/*
 * Sorts nearly sorted changes by insertion, as long as few are out of order; the first `in_order`
 * are sorted. A transaction's changes come in the order of its overlay. Returns: false: too many
 * moves; the array is a permutation, not sorted.
 */
static bool sort_nearly(struct change *changes, size_t in_order, size_t count)
{
    size_t moves = 0, most = MOVES_MIN + count / MOVES_FRACTION;
    for (size_t i = in_order; i < count && moves <= most; i++)
        moves += insert_change(changes, i);
    return moves <= most;
}

/* Sets the addresses of copies, which move no more. */
static void set_addresses(struct rocks_batch *batch)
{
    const char *at = batch->bytes.data;
    for (size_t i = 0; i < batch->count && at != NULL; i++) {
        struct change *change = &batch->changes[i];
        if (!change->copied)
            continue;
        change->key.data = at;
        change->value.data = at + change->key.len;
        at += change->key.len + change->value.len;
    }
    ENSURE(at == NULL || at == batch->bytes.data + batch->bytes.len);
}

static void sort_changes(struct rocks_batch *batch)
{
    set_addresses(batch);
    if (!sort_nearly(batch->changes, batch->in_order, batch->count))
        qsort(batch->changes, batch->count, sizeof *batch->changes, compare_changes);
}

/* Returns: the value with the batch's timestamp, valid until the next call. */
static struct slice stamp_value(struct rocks_batch *batch, struct slice value)
{
    if (value.len > batch->stamped_capacity) {
        mem_free(batch->stamped);
        batch->stamped = mem_alloc(value.len);
        batch->stamped_capacity = value.len;
    }
    store__stamp(batch->stamped, batch->base.ts, value);
    return slice_make(batch->stamped, value.len);
}

static void emit_change(struct rocks_batch *batch, const struct change *change, const char ts[ROCKS_TS_BYTES])
{
    enum store_space space = change->space;
    rocksdb_column_family_handle_t *family = rocks_of(batch->base.store)->families[space];
    INSIST(family != NULL);
    struct slice key = change->key, value = change->stamped ? stamp_value(batch, change->value) : change->value;
    bool versioned = store__space_is_versioned(space);
    if (versioned && change->deletes)
        rocksdb_writebatch_delete_cf_with_ts(batch->batch, family, key.data, key.len, ts, ROCKS_TS_BYTES);
    else if (versioned)
        rocksdb_writebatch_put_cf_with_ts(batch->batch, family, key.data, key.len, ts, ROCKS_TS_BYTES, value.data,
                                          value.len);
    else if (change->deletes)
        rocksdb_writebatch_delete_cf(batch->batch, family, key.data, key.len);
    else
        rocksdb_writebatch_put_cf(batch->batch, family, key.data, key.len, value.data, value.len);
}

/*
 * Reserves memory for a large part at once. RocksDB's buffer grows by doubling: for 43 MB,
 * allocating, clearing and freeing three times as much memory took longer than filling it. The C
 * interface has no reserve function, but a batch made from bytes and then cleared keeps its
 * capacity. These bytes are a mapping that is only read, so each huge page of it is the kernel's
 * page of zeros, at one fault for 2 MiB.
 */
static void reserve_part(struct rocks_batch *batch, size_t bytes)
{
    if (bytes <= RETAINED_BYTES_MAX || bytes <= batch->reserved)
        return;
    batch->large = true; /* also if it grows */
    void *zeros = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED)
        return;                                 /* out of address space: it grows */
    (void)madvise(zeros, bytes, MADV_HUGEPAGE); /* only saves time */
    rocksdb_writebatch_destroy(batch->batch);
    batch->batch = rocksdb_writebatch_create_from(zeros, bytes);
    batch->reserved = bytes;
    (void)munmap(zeros, bytes);
}

void rocks__batch_sort(struct store_batch *base)
{
    struct rocks_batch *batch = (struct rocks_batch *)base;
    REQUIRE(base->begun && batch->count <= base->count);
    sort_changes(batch);
    batch->divided = base->bytes + batch->count * CHANGE_OVERHEAD_BYTES_MAX > rocks_of(base->store)->part_bytes;
    batch->ended = false;
    batch->next = 0;
    batch->versioned = batch->count;
    while (batch->divided && batch->versioned > 0 &&
           !store__space_is_versioned(batch->changes[batch->versioned - 1].space))
        batch->versioned--; /* few follow: numbers, and the record of the feed */
    if (batch->divided)
        batch->next = batch->versioned;
}

/*
 * Returns: the end of the part that begins with the next change: of all, of all unversioned ones, or of versioned ones
 * of as many bytes as a part has. *ret_bytes: the memory that it takes at most in RocksDB.
 */
static size_t find_end(const struct rocks_batch *batch, size_t *ret_bytes)
{
    bool versioned = batch->divided && batch->next < batch->versioned;
    size_t end = versioned ? batch->versioned : batch->count, at = batch->next, bytes = 0;
    for (; at < end && (!versioned || bytes < rocks_of(batch->base.store)->part_bytes); at++)
        bytes += batch->changes[at].key.len + batch->changes[at].value.len + CHANGE_OVERHEAD_BYTES_MAX;
    *ret_bytes = bytes;
    return at;
}

static void emit_part(struct rocks_batch *batch, size_t end)
{
    char ts[ROCKS_TS_BYTES];
    rocks_ts_encode(batch->base.ts, ts);
    for (size_t i = batch->next; i < end; i++) {
        const struct change *change = &batch->changes[i];
        if (i + CHANGES_AHEAD < batch->count) {
            __builtin_prefetch(change[CHANGES_AHEAD].key.data);
            __builtin_prefetch(change[CHANGES_AHEAD].value.data);
        }
        bool is_last =
            i + 1 == batch->count || change[1].space != change->space || !slice_equal(change[1].key, change->key);
        if (is_last) /* of its key: earlier ones are replaced */
            emit_change(batch, change, ts);
    }
}

/* Positions after a part that ends at `end`. */
static void end_part(struct rocks_batch *batch, size_t end)
{
    bool unversioned = batch->divided && batch->next == batch->versioned;
    batch->next = unversioned ? 0 : end;
    batch->ended = batch->next == batch->versioned;
    if (batch->ended && batch->stamped_capacity > STAMPED_RETAINED_MAX) {
        mem_free(tl_steal(batch->stamped));
        batch->stamped_capacity = 0;
    }
}

rocksdb_writebatch_t *rocks__batch_next(struct store_batch *base)
{
    struct rocks_batch *batch = (struct rocks_batch *)base;
    REQUIRE(base->begun && batch->next <= batch->count);
    if (batch->ended)
        return NULL;
    bool first = !batch->divided || batch->next == batch->versioned;
    size_t bytes, end = find_end(batch, &bytes);
    reserve_part(batch, bytes);
    rocksdb_writebatch_clear(batch->batch);
    if (first)
        emit_ranges(batch);
    emit_part(batch, end);
    end_part(batch, end);
    return batch->batch;
}
