/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data directory: its lock and its format.
 *
 *   DIR          locked by the process that has it open
 *   DIR/FORMAT   "tidelock N", N the number of the format; made last: without it there is no data
 *   DIR/rocks/   RocksDB's files
 *
 * In formats 1 and 2 DIR/SYNCED holds how far RocksDB's WAL was synced (rocks_open.c,
 * "Conversion").
 */
#ifndef TL_STORE_ROCKS_DIR_H
#define TL_STORE_ROCKS_DIR_H

#include "base/error.h"
#include "base/slice.h"

/* The format of this version; rocks_dir.c lists all. */
enum { ROCKS_FORMAT = 3 };

struct rocks_dir {
    char *path;
    char *rocks_path; /* DIR/rocks */
    int lock_fd;      /* of the directory; -1: not locked */
    bool fresh;       /* it has no FORMAT yet */
    unsigned format;  /* as found; ROCKS_FORMAT in a fresh directory */
};

#define ROCKS_DIR_NONE ((struct rocks_dir){.lock_fd = -1})

/*
 * Locks the directory; creates it if missing. Refuses a newer format, and an older one with
 * `read_only`: it must be opened for writing once, which converts it.
 * Returns: 0; TL_ERR_BUSY, TL_ERR_VERSION, TL_ERR_CORRUPT, TL_ERR_IO, with *ret_reason (mem_free;
 *          may be NULL).
 * Owns: the caller; rocks_dir_close().
 */
int rocks_dir_open(struct slice directory, bool read_only, struct rocks_dir *ret_dir, char **ret_reason) TL_MUST_USE;
void rocks_dir_close(struct rocks_dir *dir);

/*
 * Writes FORMAT into a fresh directory, after everything else, or updates an older one, so that
 * older versions do not write to the directory any more. Returns: as rocks_dir_open().
 */
int rocks_dir_finish(struct rocks_dir *dir, char **ret_reason) TL_MUST_USE;

/*
 * Writes FORMAT into a directory that was filled otherwise. Returns: 0; TL_ERR_NO_SPACE, TL_ERR_IO,
 * with *ret_reason.
 */
int rocks_dir_write_format(const char *directory, char **ret_reason) TL_MUST_USE;

/* Returns: the sequence number in SYNCED of an older format; 0: unknown. */
uint64_t rocks_dir_synced(const struct rocks_dir *dir);

/* Returns: free bytes on its file system; UINT64_MAX: no directory, or unknown. */
uint64_t rocks_dir_free_bytes(const struct rocks_dir *dir);

/* Returns: whether a file of RocksDB's is a table, by its name. Its other files do not grow with the data. */
bool rocks_dir_is_table(const char *name);

/* Returns: bytes of RocksDB's table files; see struct store_stats. */
uint64_t rocks_dir_disk_bytes(const struct rocks_dir *dir);

#endif
