/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file operations of the file log: one flat directory of files. disk_posix.c implements them on
 * a file system, tests/lib/disk_sim.c in memory, with lost sectors and failing calls.
 *
 * A write survives the end of the process. To survive a power failure, a file's contents need
 * `sync`, its name needs `sync_directory`.
 */
#ifndef TL_CMDLOG_CMDLOG_DISK_H
#define TL_CMDLOG_CMDLOG_DISK_H

#include "base/error.h"
#include "base/slice.h"

struct cmdlog_disk;

enum { DISK_NO_FILE = 1 };

/* Each returns 0, TL_ERR_IO or TL_ERR_NO_SPACE; `open` also DISK_NO_FILE. `file` is from `open`. */
struct cmdlog_disk_functions {
    /* Opens a file. If it is missing: `create` makes it, empty; otherwise DISK_NO_FILE. */
    int (*open)(struct cmdlog_disk *disk, const char *name, bool create, int *ret_file);
    void (*close)(struct cmdlog_disk *disk, int file);
    /* Reads up to `len` bytes at `offset`; fewer only at the end of the file. */
    int (*read)(struct cmdlog_disk *disk, int file, uint64_t offset, void *bytes, size_t len, size_t *ret_len);
    /* Writes all parts contiguously from `offset`. */
    int (*write)(struct cmdlog_disk *disk, int file, uint64_t offset, const struct slice *parts, size_t count);
    int (*size)(struct cmdlog_disk *disk, int file, uint64_t *ret_size);
    /* Makes a file's contents durable. */
    int (*sync)(struct cmdlog_disk *disk, int file);
    /* Replaces `to` if it exists. */
    int (*rename)(struct cmdlog_disk *disk, const char *from, const char *to);
    /* Succeeds if the file is missing. */
    int (*remove)(struct cmdlog_disk *disk, const char *name);
    /* Makes all names durable: files created, renamed, removed. */
    int (*sync_directory)(struct cmdlog_disk *disk);
    /* Calls `visit` for each file. */
    int (*list)(struct cmdlog_disk *disk, void (*visit)(void *context, const char *name), void *context);
    /* Fills `bytes` with random bytes, for identities and salts. */
    int (*random)(struct cmdlog_disk *disk, void *bytes, size_t len);
    void (*free)(struct cmdlog_disk *disk);
};

struct cmdlog_disk {
    const struct cmdlog_disk_functions *functions;
};

/*
 * Opens a directory of the file system, which is created if missing.
 * Returns: 0; TL_ERR_IO, TL_ERR_NO_SPACE. Owns: the caller, or the log that the disk is passed to.
 */
int cmdlog_disk_open(const char *directory, struct cmdlog_disk **ret_disk) TL_MUST_USE;

#endif
