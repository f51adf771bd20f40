/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints of a store that has no log of its own; README.md, "By checkpoints".
 *
 * RocksDB's C interface cannot flush all families at once, but RocksDB itself does: before a write, when the table in memory of any
 * family is full. So the record goes to a family of its own, whose table is full with it, and the next write, one of nothing, turns all
 * families over to new tables, before anything else is written.
 */
#include "base/alloc.h"
#include "base/buf.h"
#include "store/rocks_internal.h"

#include <stdio.h>

enum {
    PIECE_BYTES = 16 << 20,                        /* of the record, under one key */
    FULL_BYTES = 2 * ROCKS_CHECKPOINT_TABLE_BYTES, /* that are written at least */
    HEAD_BYTES = 8,
    KEY_BYTES = 5
};

/* 'r' and the number of the piece. The first begins with the length of the record. */
static void piece_key(uint32_t number, char ret_key[KEY_BYTES])
{
    ret_key[0] = 'r';
    for (int i = 1; i < KEY_BYTES; i++)
        ret_key[i] = (char)(number >> 8 * (KEY_BYTES - 1 - i));
}

static int write_batch(struct rocks_store *rocks, rocksdb_writebatch_t *batch)
{
    char *error = NULL;
    rocksdb_write(rocks->db, rocks->write_options, batch, &error);
    return error == NULL ? 0 : rocks__fail(rocks, error);
}

/* The record in pieces, with zeros behind it; and none of those that a longer one had. */
static rocksdb_writebatch_t *make_batch(struct rocks_store *rocks, struct slice record)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    char key[KEY_BYTES], last[KEY_BYTES];
    uint32_t number = 0;

    buf_u64be(&bytes, record.len);
    buf_slice(&bytes, record);
    while (bytes.len < FULL_BYTES)
        buf_byte(&bytes, 0);
    for (struct slice left = buf_view(&bytes); left.len > 0; number++) {
        size_t len = left.len < PIECE_BYTES ? left.len : PIECE_BYTES;
        piece_key(number, key);
        rocksdb_writebatch_put_cf(batch, rocks->checkpoints, key, KEY_BYTES, left.data, len);
        left = slice_from_offset(left, len);
    }
    piece_key(number, key);
    piece_key(UINT32_MAX, last);
    rocksdb_writebatch_delete_range_cf(batch, rocks->checkpoints, key, KEY_BYTES, last, KEY_BYTES);
    buf_deinit(&bytes);
    return batch;
}

static uint64_t property(struct rocks_store *rocks, rocksdb_column_family_handle_t *family, const char *name)
{
    uint64_t value = 0;
    return rocksdb_property_int_cf(rocks->db, family, name, &value) == 0 ? value : UINT64_MAX;
}

int rocks__checkpoint(struct store *store, struct slice record)
{
    struct rocks_store *rocks = rocks_of(store);
    rocksdb_writebatch_t *batch = make_batch(rocks, record);
    rocks__quiet();
    int r = write_batch(rocks, batch);
    rocksdb_writebatch_clear(batch);
    if (r == 0)
        r = write_batch(rocks, batch);
    rocksdb_writebatch_destroy(batch);
    if (r < 0)
        return tl_trace(r);
    if (property(rocks, rocks->checkpoints, "rocksdb.num-entries-active-mem-table") != 0) {
        rocks__say(&rocks->reason, "RocksDB has not begun new tables in memory");
        return tl_trace(TL_ERR_IO);
    }
    atomic_store_explicit(&rocks->unsaved_bytes, 0, memory_order_relaxed);
    return 0;
}

/* A flush that failed is told by a write of nothing. */
int rocks__checkpointed(struct store *store)
{
    struct rocks_store *rocks = rocks_of(store);
    uint64_t waiting = property(rocks, rocks->checkpoints, "rocksdb.num-immutable-mem-table");
    for (int space = 0; space < SPACE_COUNT; space++)
        waiting += property(rocks, rocks->families[space], "rocksdb.num-immutable-mem-table");
    if (waiting == 0)
        return 1;
    return rocks__is_ready(store) ? 0 : tl_trace(TL_ERR_IO);
}

/* Appends a piece. Returns: 0; STORE_NOT_FOUND; fatal codes. */
static int read_piece(struct rocks_store *rocks, uint32_t number, struct buf *bytes)
{
    char key[KEY_BYTES], *error = NULL;
    size_t len = 0;
    piece_key(number, key);
    char *piece =
        rocksdb_get_cf(rocks->db, rocks->plain_read_options, rocks->checkpoints, key, KEY_BYTES, &len, &error);
    if (error != NULL)
        return rocks__fail(rocks, error);
    if (piece == NULL)
        return STORE_NOT_FOUND;
    buf_append(bytes, piece, len);
    rocksdb_free(piece);
    return 0;
}

int rocks__checkpoint_record(struct store *store, struct buf *ret_record)
{
    struct rocks_store *rocks = rocks_of(store);
    struct buf bytes = BUF_INIT(BUF_UNLIMITED);
    uint64_t length = 0;
    int r = read_piece(rocks, 0, &bytes);
    struct slice head = buf_view(&bytes);
    if (r == 0 && (!slice_take_u64be(&head, &length) || length > SIZE_MAX - HEAD_BYTES))
        r = tl_trace(TL_ERR_CORRUPT);
    for (uint32_t number = 1; r == 0 && bytes.len - HEAD_BYTES < length; number++)
        r = read_piece(rocks, number, &bytes) == 0 ? 0 : tl_trace(TL_ERR_CORRUPT);
    if (r == 0)
        buf_append(ret_record, bytes.data + HEAD_BYTES, (size_t)length);
    buf_deinit(&bytes);
    return r;
}

size_t rocks__unsaved_bytes(const struct store *store)
{
    return atomic_load_explicit(&((const struct rocks_store *)store)->unsaved_bytes, memory_order_relaxed);
}
