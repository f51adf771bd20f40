/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data directory: whose it is, and of which format.
 *
 *   DIR          locked by the process that has it open
 *   DIR/FORMAT   "tidelock N", N the format's number; made last, so without it nothing was ever stored
 *   DIR/rocks/   RocksDB's own files
 *
 * Formats 1 and 2 had in DIR/SYNCED how far RocksDB's own log was synced (rocks_open.c, "Conversion").
 */
#ifndef TL_STORE_ROCKS_DIR_H
#define TL_STORE_ROCKS_DIR_H

#include "base/error.h"
#include "base/slice.h"

/* What FORMAT says of the directories of this version; rocks_dir.c lists all. */
enum { ROCKS_FORMAT = 3 };

struct rocks_dir {
    char *path;
    char *rocks_path;            /* DIR/rocks */
    int lock_fd;                 /* of the directory; -1: none */
    bool fresh;                  /* has no FORMAT yet */
    unsigned format;             /* what FORMAT said; in a fresh one ROCKS_FORMAT */
};

#define ROCKS_DIR_NONE ((struct rocks_dir){.lock_fd = -1})

/*
 * Takes the directory, making it when it is missing. One of a newer format is refused, and one of an older format where it is only read: it is
 * converted first, by opening it to write.
 *
 * Returns: 0; TL_ERR_BUSY, TL_ERR_VERSION, TL_ERR_CORRUPT, TL_ERR_IO, with *ret_reason set (mem_free).
 * Owns: the caller; rocks_dir_close.
 */
int rocks_dir_open(struct slice directory, bool read_only, struct rocks_dir *ret_dir, char **ret_reason) TL_MUST_USE;
void rocks_dir_close(struct rocks_dir *dir);

/*
 * Makes FORMAT in a fresh directory, once everything else is there, and makes it say the present number in an older one, which
 * older versions must not write to any more. Returns: as rocks_dir_open.
 */
int rocks_dir_finish(struct rocks_dir *dir, char **ret_reason) TL_MUST_USE;

/* Makes FORMAT in a directory that another has filled. Returns: 0; TL_ERR_NO_SPACE, TL_ERR_IO, with *ret_reason. */
int rocks_dir_write_format(const char *directory, char **ret_reason) TL_MUST_USE;

/* Returns: the sequence number in SYNCED, of an older format; 0 where none is known. */
uint64_t rocks_dir_synced(const struct rocks_dir *dir);

/* Bytes free to us on its file system; UINT64_MAX where there is none, or nobody can tell. */
uint64_t rocks_dir_free_bytes(const struct rocks_dir *dir);

/* Bytes of data in the files of RocksDB, see struct store_stats. */
uint64_t rocks_dir_disk_bytes(const struct rocks_dir *dir);

#endif
