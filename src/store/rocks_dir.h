/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data directory: whose it is, of which format, and how far it is known to be synced.
 *
 *   DIR          locked by whoever has it open
 *   DIR/FORMAT   "tidelock N", N the format's number; made last, so without it nothing was ever stored
 *   DIR/SYNCED   RocksDB's sequence number of the newest write known to be synced
 *   DIR/rocks/   RocksDB's own files
 *
 * SYNCED is written after each sync and never synced itself, so what it says is true or modest, and after
 * anything but a power cut it is exact. A store that comes back with less than it says has lost
 * acknowledged writes (rocks_open.c).
 */
#ifndef TL_STORE_ROCKS_DIR_H
#define TL_STORE_ROCKS_DIR_H

#include "base/error.h"
#include "base/slice.h"

/* What FORMAT may say; rocks_dir.c has all. */
enum rocks_format { ROCKS_FORMAT_LOG = 2, ROCKS_FORMAT_CHECKPOINTS = 3 };

struct rocks_dir {
    char *path;
    char *rocks_path;            /* DIR/rocks */
    int lock_fd;                 /* of the directory; -1: none */
    int synced_fd;               /* -1: none, or read only and missing */
    bool fresh;                  /* has no FORMAT yet */
    enum rocks_format opened_as; /* what FORMAT is going to say */
    enum rocks_format format;    /* what it said */
    bool older;                  /* FORMAT is that of an older version, and this one is going to write */
};

#define ROCKS_DIR_NONE ((struct rocks_dir){.lock_fd = -1, .synced_fd = -1})

/*
 * Takes the directory, making it when it is missing, as one of a format: older ones are going to be that, newer ones are refused.
 *
 * Returns: 0; TL_ERR_BUSY, TL_ERR_VERSION, TL_ERR_CORRUPT, TL_ERR_IO, with *ret_reason set (mem_free).
 * Owns: the caller; rocks_dir_close.
 */
int rocks_dir_open(struct slice directory, bool read_only, enum rocks_format format, struct rocks_dir *ret_dir,
                   char **ret_reason) TL_MUST_USE;
void rocks_dir_close(struct rocks_dir *dir);

/*
 * Makes FORMAT in a fresh directory, once everything else is there, and makes it say the present number in an older one, which
 * older versions must not write to any more. Returns: as rocks_dir_open.
 */
int rocks_dir_finish(struct rocks_dir *dir, char **ret_reason) TL_MUST_USE;

/* Makes FORMAT in a directory that another has filled. Returns: 0; TL_ERR_NO_SPACE, TL_ERR_IO, with *ret_reason. */
int rocks_dir_write_format(const char *directory, enum rocks_format format, char **ret_reason) TL_MUST_USE;

/* Notes that everything up to `sequence` is synced; a failure to note it only weakens the check. */
void rocks_dir_note_synced(const struct rocks_dir *dir, uint64_t sequence);

/* Returns: the sequence number last noted, 0 where none is known. */
uint64_t rocks_dir_synced(const struct rocks_dir *dir);

/* Bytes free to us on its file system; UINT64_MAX where there is none, or nobody can tell. */
uint64_t rocks_dir_free_bytes(const struct rocks_dir *dir);

/* Bytes of data in the files of RocksDB, see struct store_stats. */
uint64_t rocks_dir_disk_bytes(const struct rocks_dir *dir);

#endif
