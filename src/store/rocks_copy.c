/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of the store as of its newest checkpoint; store.h, store_copy().
 *
 * RocksDB's checkpoint function links the tables of the current version of all families. That
 * version changes for all families at once, and only by a checkpoint of this store
 * (rocks_checkpoint.c). So the copy is the newest checkpoint. A flush before would write a state
 * between checkpoints.
 */
#include "base/alloc.h"
#include "base/buf.h"
#include "store/rocks_internal.h"

/* WAL size from which RocksDB would flush the memtables first: never. */
#define FLUSH_NEVER UINT64_MAX

static char *link_tables(struct rocks_store *rocks, const char *path)
{
    char *error = NULL;
    rocksdb_checkpoint_t *checkpoint = rocksdb_checkpoint_object_create(rocks->db, &error);
    if (error == NULL) {
        rocksdb_checkpoint_create(checkpoint, path, FLUSH_NEVER, &error);
        rocksdb_checkpoint_object_destroy(checkpoint);
    }
    return error;
}

int rocks__copy(struct store *store, const char *directory, char **ret_reason)
{
    struct rocks_store *rocks = rocks_of(store);
    struct buf path = BUF_INIT(BUF_UNLIMITED);
    buf_printf(&path, "%s/rocks", directory);
    buf_byte(&path, '\0');
    char *error = link_tables(rocks, path.data);
    int r = 0;
    if (error != NULL) {
        r = rocks__code_of(error);
        rocks__set_reason(ret_reason, "%s", error);
        rocksdb_free(error);
    }
    buf_deinit(&path);
    return r == 0 ? rocks_dir_write_format(directory, ret_reason) : tl_trace(r);
}
