/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints; see README.md.
 *
 * RocksDB's C interface cannot flush all column families at one point in time. But RocksDB itself
 * switches the memtables of all families, before a write, when the memtable of any family is full.
 * So a checkpoint fills the memtable of a family of its own; the next write, an empty one, switches
 * all families to new memtables before anything else is written.
 */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "store/rocks_internal.h"

#include <stdio.h>

enum {
    PART_BYTES = 1 << 20, /* size of a part of the record, stored under one key */
    /* Size of a value that certainly fills the memtable. */
    FULL_BYTES = 2 * ROCKS_CHECKPOINT_TABLE_BYTES,
    KEY_BYTES = 4
};

/* The key of a part: its number, big endian. */
static void part_key(uint32_t number, char ret_key[KEY_BYTES])
{
    for (int i = 0; i < KEY_BYTES; i++)
        ret_key[i] = (char)(number >> 8 * (KEY_BYTES - 1 - i));
}

/*
 * Writes the record in parts, so that no batch holds all of it, and deletes the remaining parts of
 * a longer earlier record.
 */
static int write_record(struct rocks_store *rocks, rocksdb_writebatch_t *batch, struct slice record)
{
    REQUIRE(rocks->records != NULL);
    char key[KEY_BYTES], last[KEY_BYTES];
    uint32_t number = 0;
    int r = 0;
    while (r == 0 && record.len > 0) {
        size_t len = record.len < PART_BYTES ? record.len : PART_BYTES;
        part_key(number++, key);
        rocksdb_writebatch_put_cf(batch, rocks->records, key, KEY_BYTES, record.data, len);
        r = rocks__put(rocks, batch);
        rocksdb_writebatch_clear(batch);
        record = slice_from_offset(record, len);
    }
    INSIST(number < UINT32_MAX); /* that begins the keys of pieces */
    part_key(number, key);
    part_key(UINT32_MAX, last);
    rocksdb_writebatch_delete_range_cf(batch, rocks->records, key, KEY_BYTES, last, KEY_BYTES);
    if (r == 0)
        r = rocks__put(rocks, batch);
    rocksdb_writebatch_clear(batch);
    return r;
}

static const char length_key[] = "length";

/* Writes the record's length, padded so that it fills the memtable of the family. */
static int write_length(struct rocks_store *rocks, rocksdb_writebatch_t *batch, uint64_t length)
{
    REQUIRE(rocks->checkpoints != NULL);
    char bytes[FULL_BYTES] = {0};
    for (size_t i = 0; i < sizeof length; i++)
        bytes[i] = (char)(length >> 8 * (sizeof length - 1 - i));
    rocksdb_writebatch_put_cf(batch, rocks->checkpoints, length_key, sizeof length_key - 1, bytes, sizeof bytes);
    int r = rocks__put(rocks, batch);
    rocksdb_writebatch_clear(batch);
    return r;
}

/* --- Pieces ------------------------------------------------------------------------------------------------------- */

/*
 * The key of a piece, in the records' family: four bytes of all ones, which order it after the keys
 * of all parts and outside of the range that write_record() deletes; owner and number, big endian.
 */
enum { PIECE_KEY_BYTES = KEY_BYTES + 8 + 4 };

static void piece_key(struct store_piece piece, char ret_key[PIECE_KEY_BYTES])
{
    part_key(UINT32_MAX, ret_key);
    part_key((uint32_t)(piece.owner >> 32), ret_key + KEY_BYTES);
    part_key((uint32_t)piece.owner, ret_key + KEY_BYTES + 4);
    part_key(piece.number, ret_key + KEY_BYTES + 8);
}

static int put_and_destroy(struct rocks_store *rocks, rocksdb_writebatch_t *batch)
{
    rocks__quiet();
    int r = rocks__put(rocks, batch);
    rocksdb_writebatch_destroy(batch);
    return r < 0 ? tl_trace(r) : 0;
}

int rocks__put_piece(struct store *store, struct store_piece piece, struct slice bytes)
{
    struct rocks_store *rocks = rocks_of(store);
    REQUIRE(rocks->records != NULL && bytes.len > 0);
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    char key[PIECE_KEY_BYTES];
    piece_key(piece, key);
    rocksdb_writebatch_put_cf(batch, rocks->records, key, PIECE_KEY_BYTES, bytes.data, bytes.len);
    return put_and_destroy(rocks, batch);
}

int rocks__delete_pieces(struct store *store, uint64_t first, uint64_t last)
{
    struct rocks_store *rocks = rocks_of(store);
    REQUIRE(rocks->records != NULL);
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    char lower[PIECE_KEY_BYTES], upper[PIECE_KEY_BYTES];
    piece_key((struct store_piece){first, 0}, lower);
    piece_key((struct store_piece){last + 1, 0}, upper);
    rocksdb_writebatch_delete_range_cf(batch, rocks->records, lower, PIECE_KEY_BYTES, upper, PIECE_KEY_BYTES);
    return put_and_destroy(rocks, batch);
}

static uint64_t family_property(struct rocks_store *rocks, rocksdb_column_family_handle_t *family, const char *name)
{
    uint64_t value = 0;
    return rocksdb_property_int_cf(rocks->db, family, name, &value) == 0 ? value : UINT64_MAX;
}

int rocks__checkpoint(struct store *store, struct slice record)
{
    struct rocks_store *rocks = rocks_of(store);
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    rocks__quiet();
    int r = write_record(rocks, batch, record);
    if (r == 0)
        r = write_length(rocks, batch, record.len);
    if (r == 0)
        r = rocks__put(rocks, batch); /* an empty batch */
    rocksdb_writebatch_destroy(batch);
    if (r < 0)
        return tl_trace(r);
    if (family_property(rocks, rocks->checkpoints, "rocksdb.num-entries-active-mem-table") != 0) {
        rocks__set_reason(&rocks->reason, "RocksDB has not begun new tables in memory");
        return tl_trace(TL_ERR_IO);
    }
    atomic_store_explicit(&rocks->uncheckpointed_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&rocks->begun_ts, atomic_load_explicit(&rocks->newest_ts, memory_order_relaxed),
                          memory_order_relaxed);
    return 0;
}

/*
 * A failed flush is detected by an empty write. After a full disk RocksDB repeats the flush itself.
 */
int rocks__checkpointed(struct store *store)
{
    struct rocks_store *rocks = rocks_of(store);
    REQUIRE(rocks->checkpoints != NULL && rocks->records != NULL);
    uint64_t waiting = family_property(rocks, rocks->checkpoints, "rocksdb.num-immutable-mem-table") +
                       family_property(rocks, rocks->records, "rocksdb.num-immutable-mem-table");
    for (int space = 0; space < SPACE_COUNT; space++)
        waiting += family_property(rocks, rocks->families[space], "rocksdb.num-immutable-mem-table");
    if (waiting == 0) {
        INSIST(atomic_load(&rocks->durable_ts) <= atomic_load(&rocks->begun_ts));
        atomic_store_explicit(&rocks->durable_ts, atomic_load_explicit(&rocks->begun_ts, memory_order_relaxed),
                              memory_order_relaxed);
        return 1;
    }
    int r = rocks__readiness(rocks);
    return r == 0 || r == TL_ERR_NO_SPACE ? 0 : tl_trace(r);
}

/* Appends the value of a key. Returns: 0; STORE_NOT_FOUND; fatal codes. */
static int read_key(struct rocks_store *rocks, rocksdb_column_family_handle_t *family, struct slice key,
                    struct buf *bytes)
{
    char *error = NULL;
    size_t len = 0;
    char *value = rocksdb_get_cf(rocks->db, rocks->plain_read_options, family, key.data, key.len, &len, &error);
    if (error != NULL)
        return rocks__fail(rocks, error);
    if (value == NULL)
        return STORE_NOT_FOUND;
    buf_append(bytes, value, len);
    rocksdb_free(value);
    return 0;
}

static int read_length(struct rocks_store *rocks, uint64_t *ret_length)
{
    struct buf head = BUF_INIT(BUF_UNLIMITED);
    int r = rocks->checkpoints == NULL ? STORE_NOT_FOUND
                                       : read_key(rocks, rocks->checkpoints, slice_from(length_key), &head);
    struct slice bytes = buf_as_slice(&head);
    if (r == 0 && (!slice_take_u64be(&bytes, ret_length) || *ret_length > SIZE_MAX / 2))
        r = tl_trace(TL_ERR_CORRUPT);
    buf_deinit(&head);
    return r;
}

bool rocks__lacks_checkpoint(struct rocks_store *rocks)
{
    uint64_t length;
    return rocks->checkpoints != NULL && read_length(rocks, &length) == STORE_NOT_FOUND;
}

int rocks__checkpoint_record(struct store *store, struct buf *ret_record)
{
    struct rocks_store *rocks = rocks_of(store);
    uint64_t length = 0;
    int r = read_length(rocks, &length);
    size_t whole = ret_record->len + (size_t)length;
    for (uint32_t number = 0; r == 0 && ret_record->len < whole; number++) {
        char key[KEY_BYTES];
        part_key(number, key);
        r = read_key(rocks, rocks->records, slice_make(key, KEY_BYTES), ret_record) == 0 ? 0 : tl_trace(TL_ERR_CORRUPT);
    }
    return r == 0 && ret_record->len != whole ? tl_trace(TL_ERR_CORRUPT) : r;
}

int rocks__get_piece(struct store *store, struct store_piece piece, struct buf *ret_bytes)
{
    struct rocks_store *rocks = rocks_of(store);
    char key[PIECE_KEY_BYTES];
    if (rocks->records == NULL)
        return STORE_NOT_FOUND;
    piece_key(piece, key);
    return read_key(rocks, rocks->records, slice_make(key, PIECE_KEY_BYTES), ret_bytes);
}

int rocks__count_pieces(struct store *store, size_t *ret_count)
{
    struct rocks_store *rocks = rocks_of(store);
    char first[PIECE_KEY_BYTES];
    char *error = NULL;
    *ret_count = 0;
    if (rocks->records == NULL)
        return 0;
    piece_key((struct store_piece){0, 0}, first);
    rocksdb_iterator_t *iter = rocksdb_create_iterator_cf(rocks->db, rocks->plain_read_options, rocks->records);
    rocksdb_iter_seek(iter, first, PIECE_KEY_BYTES);
    for (; rocksdb_iter_valid(iter); rocksdb_iter_next(iter))
        ++*ret_count;
    rocksdb_iter_get_error(iter, &error);
    rocksdb_iter_destroy(iter);
    return error == NULL ? 0 : rocks__fail(rocks, error);
}

size_t rocks__uncheckpointed_bytes(const struct store *store)
{
    return atomic_load_explicit(&((const struct rocks_store *)store)->uncheckpointed_bytes, memory_order_relaxed);
}
