/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How RocksDB is set up: one place for every option, each with its reason.
 */
#ifndef TL_STORE_ROCKS_OPTIONS_H
#define TL_STORE_ROCKS_OPTIONS_H

#include "store/store.h"

#include <rocksdb/c.h>

/* A timestamp as RocksDB stores it behind a key: little endian, as its own u64 comparator has it. */
enum { ROCKS_TS_BYTES = 8 };

static inline void rocks_ts_encode(tl_ts ts, char ret_bytes[ROCKS_TS_BYTES])
{
    for (int i = 0; i < ROCKS_TS_BYTES; i++)
        ret_bytes[i] = (char)(ts >> 8 * i);
}

static inline tl_ts rocks_ts_decode(const char bytes[ROCKS_TS_BYTES])
{
    tl_ts ts = 0;
    for (int i = 0; i < ROCKS_TS_BYTES; i++)
        ts |= (tl_ts)(unsigned char)bytes[i] << 8 * i;
    return ts;
}

/* Behind those of spaces stand the families of the records of checkpoints: what makes a table full, and their bytes. */
enum { ROCKS_CHECKPOINTS = SPACE_COUNT, ROCKS_RECORDS, ROCKS_FAMILIES_MAX };
/* The table in memory of the former is full with so many bytes. */
enum { ROCKS_CHECKPOINT_TABLE_BYTES = 64 << 10 };
/*
 * No table is full but by a checkpoint (rocks__never_full()). RocksDB is told so only when it is open: what a table may take then is what must
 * be free before it gets over a full disk. A table that has a filter keeps the limit that it was made with, so the filters, too, come only then.
 */
#define ROCKS_NEVER_FULL_BYTES ((size_t)4 << 30)
#define ROCKS_OPENING_TABLE_BYTES ((size_t)16 << 20)

struct rocks_options {
    rocksdb_env_t *env;
    rocksdb_cache_t *cache;
    rocksdb_comparator_t *versioned; /* byte order, then newest first */
    rocksdb_options_t *database;
    rocksdb_options_t *families[ROCKS_FAMILIES_MAX];
    const char *family_names[ROCKS_FAMILIES_MAX];
    int family_count;
    double memtable_filter; /* of tables in memory, as a part of what they may take; for spaces that have filters */
};

/*
 * Builds all options. They must outlive the database that is opened with them.
 * Owns: the caller; rocks_options_deinit(), to which zeroed ones are nothing.
 */
void rocks_options_init(struct rocks_options *ret_options, const struct store_options *settings);
/* Whether single reads of a space go through filters. */
bool rocks_options_space_is_filtered(enum store_space space);
/* For a RocksDB that was built without LZ4 or ZSTD (Debian's has both). */
void rocks_options_set_uncompressed(struct rocks_options *options);
void rocks_options_deinit(struct rocks_options *options);

#endif
