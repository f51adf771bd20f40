/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the file log asks of a disk: one flat directory of files. The real one is disk_posix.c; tests have one that loses
 * sectors, fails and remembers.
 *
 * A write outlives the process; a file's contents outlive the machine once disk_sync() has returned, its name once
 * disk_sync_names() has.
 */
#ifndef TL_CMDLOG_CMDLOG_DISK_H
#define TL_CMDLOG_CMDLOG_DISK_H

#include "base/error.h"
#include "base/slice.h"

struct cmdlog_disk;

enum { DISK_NO_FILE = 1 };

/* All: 0, DISK_NO_FILE where said, or TL_ERR_IO, TL_ERR_NO_SPACE. Files are small numbers. */
struct cmdlog_disk_functions {
    /* Opens; `create`: makes it, empty, when it is missing, else DISK_NO_FILE. */
    int (*open)(struct cmdlog_disk *disk, const char *name, bool create, int *ret_file);
    void (*close)(struct cmdlog_disk *disk, int file);
    /* Reads up to `len` bytes at `offset`; fewer only at the file's end. */
    int (*read)(struct cmdlog_disk *disk, int file, uint64_t offset, void *bytes, size_t len, size_t *ret_len);
    /* Writes all parts, one behind the other. */
    int (*write)(struct cmdlog_disk *disk, int file, uint64_t offset, const struct slice *parts, size_t count);
    int (*size)(struct cmdlog_disk *disk, int file, uint64_t *ret_size);
    int (*sync)(struct cmdlog_disk *disk, int file);
    /* Takes the place of `to` if that is there. */
    int (*rename)(struct cmdlog_disk *disk, const char *from, const char *to);
    int (*remove)(struct cmdlog_disk *disk, const char *name);
    int (*sync_names)(struct cmdlog_disk *disk);
    /* Calls `visit` for each file. */
    int (*list)(struct cmdlog_disk *disk, void (*visit)(void *context, const char *name), void *context);
    /* Of the log's identity. */
    int (*random)(struct cmdlog_disk *disk, void *bytes, size_t len);
    void (*free)(struct cmdlog_disk *disk);
};

struct cmdlog_disk {
    const struct cmdlog_disk_functions *functions;
};

/* A directory of the file system, made when it is missing. Returns: 0; TL_ERR_IO. Owns: the caller, or who is given it. */
int cmdlog_disk_open(const char *directory, struct cmdlog_disk **ret_disk) TL_MUST_USE;

#endif
