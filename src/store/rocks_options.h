/* SPDX-License-Identifier: Apache-2.0 */
/* RocksDB's options: every one in one file, with its reason. */
#ifndef TL_STORE_ROCKS_OPTIONS_H
#define TL_STORE_ROCKS_OPTIONS_H

#include "base/little_endian.h"
#include "store/store.h"

#include <rocksdb/c.h>

/* A timestamp as RocksDB stores it after a key: little endian, as in its own u64 comparator. */
enum { ROCKS_TS_BYTES = 8 };

static inline void rocks_ts_encode(tl_ts ts, char ret_bytes[ROCKS_TS_BYTES])
{
    little_endian_put(ret_bytes, ROCKS_TS_BYTES, ts);
}

static inline tl_ts rocks_ts_decode(const char bytes[ROCKS_TS_BYTES])
{
    return little_endian_get(bytes, ROCKS_TS_BYTES);
}

/*
 * Indexes of column families after those of the spaces: one whose memtable a checkpoint fills, and
 * one for the checkpoint records.
 */
enum { ROCKS_CHECKPOINTS = SPACE_COUNT, ROCKS_RECORDS, ROCKS_FAMILIES_MAX };
/* Size at which the first one's memtable is full. */
enum { ROCKS_CHECKPOINT_TABLE_BYTES = 64 << 10 };
/*
 * Memtable sizes. Only a checkpoint fills a memtable (rocks__never_full()). The large size is set
 * after opening, because the size at opening is the free space that RocksDB requires to recover
 * from a full disk. A memtable with a filter keeps its initial size, so filters are set after
 * opening, too.
 */
#define ROCKS_NEVER_FULL_BYTES ((size_t)4 << 30)
#define ROCKS_OPENING_TABLE_BYTES ((size_t)16 << 20)

struct rocks_options {
    rocksdb_env_t *env;
    rocksdb_cache_t *cache;
    rocksdb_comparator_t *versioned; /* keys in byte order, versions newest first */
    rocksdb_options_t *database;
    rocksdb_options_t *families[ROCKS_FAMILIES_MAX];
    const char *family_names[ROCKS_FAMILIES_MAX];
    int family_count;
    /* Size of a memtable's filter as a fraction of its maximum size; for filtered spaces. */
    double memtable_filter;
};

/*
 * Builds all options. They must outlive the database opened with them.
 * Owns: the caller; rocks_options_deinit(), which ignores zeroed options.
 */
void rocks_options_init(struct rocks_options *ret_options, const struct store_options *settings);
/*
 * Returns: a family's options with a memtable that only a checkpoint fills, and with compactions, for
 *          a family that is created in an open database. Owns: the caller; rocksdb_options_destroy().
 */
rocksdb_options_t *rocks_options_never_full(const struct rocks_options *options, int family);
/* Returns: whether single reads of a space use filters. */
bool rocks_options_space_is_filtered(enum store_space space);
/* Turns off compression, for a RocksDB built without LZ4 or ZSTD (Debian's has both). */
void rocks_options_set_uncompressed(struct rocks_options *options);
/* Frees all options. Assumes: the database is closed. */
void rocks_options_deinit(struct rocks_options *options);

#endif
