/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hole in the log; see rocks_log.h and README.md, "The log".
 *
 * The disk may write the blocks of a sync in any order. When the power fails in between, zeros may stand where a record begins,
 * and whole records behind them. RocksDB skips zeros to the end of their block of 32 KiB and takes the next for good if a
 * record happens to begin there: later batches without earlier ones. None of them was synced, but README.md's invariant 5
 * says that what is lost is a suffix.
 *
 * The mark is one byte: a header of zeros becomes that of a whole record (type 1) of no bytes with a checksum of zero, which is
 * not its checksum. Recovery ends there or refuses, and rocks_open.c decides as for any other damage.
 */
#include "base/alloc.h"
#include "store/rocks_log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 32 << 10, HEADER_BYTES = 7, LENGTH_OFFSET = 4, TYPE_OFFSET = 6, TYPE_WHOLE = 1 };

/* A look through a log, block by block, since no fragment of a record crosses the border of one. */
struct search {
    bool any;        /* there is something in the log */
    bool damaged;    /* a fragment is longer than its block: RocksDB will find that itself, and get no further */
    bool found;      /* there is a hole */
    uint64_t offset; /* of the first header of zeros; UINT64_MAX: none yet */
};

static bool all_zeros(const unsigned char *bytes, size_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* Returns: where a header of zeros begins, or `len` where there is none. */
static size_t walk_block(struct search *search, const unsigned char *block, size_t len)
{
    size_t at = 0;
    while (len - at >= HEADER_BYTES) {
        const unsigned char *header = block + at;
        if (all_zeros(header + LENGTH_OFFSET, HEADER_BYTES - LENGTH_OFFSET))
            return at;
        at += HEADER_BYTES + header[LENGTH_OFFSET] + ((size_t)header[LENGTH_OFFSET + 1] << 8);
        search->any = true;
        search->damaged = at > len;
        if (search->damaged)
            break;
    }
    return len;
}

static void search_block(struct search *search, const unsigned char *block, size_t len, uint64_t base)
{
    size_t zeros_from = 0;
    if (search->offset == UINT64_MAX) {
        zeros_from = walk_block(search, block, len);
        if (zeros_from == len)
            return;
        search->offset = base + zeros_from;
        zeros_from += LENGTH_OFFSET; /* a checksum alone is the beginning of a header */
    }
    search->found = !all_zeros(block + zeros_from, len - zeros_from);
    search->any |= search->found;
}

/* What cannot be read is RocksDB's to report. */
static struct search search_log(int fd)
{
    struct search search = {.offset = UINT64_MAX};
    tl_cleanup(mem_freep) char *block = mem_alloc(BLOCK_BYTES);
    ssize_t len;
    for (uint64_t base = 0; !search.found && !search.damaged && (len = pread(fd, block, BLOCK_BYTES, (off_t)base)) > 0;
         base += BLOCK_BYTES)
        search_block(&search, (const unsigned char *)block, (size_t)len, base);
    return search;
}

static int open_log(const char *directory, uint64_t number, bool read_only)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/%06llu.log", directory, (unsigned long long)number);
    return len > 0 && (size_t)len < sizeof path ? open(path, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC) : -1;
}

int rocks_log_mark_hole(const char *directory, bool read_only, struct rocks_log_hole *ret_hole)
{
    static const char mark = TYPE_WHOLE;
    struct search search = {.any = false};
    *ret_hole = (struct rocks_log_hole){-1, 0};
    int fd = -1;
    for (uint64_t number = UINT64_MAX; !search.any && (number = rocks_log_newest(directory, number)) != 0;) {
        if (fd >= 0)
            close(fd);
        fd = open_log(directory, number, read_only);
        if (fd < 0)
            return 0;
        search = search_log(fd);
    }
    bool marked = search.found && !read_only && pwrite(fd, &mark, 1, (off_t)search.offset + TYPE_OFFSET) == 1;
    if (marked)
        *ret_hole = (struct rocks_log_hole){fd, search.offset};
    else if (fd >= 0)
        close(fd);
    return search.found && !marked ? TL_ERR_CORRUPT : 0;
}

void rocks_log_hole_close(struct rocks_log_hole *hole, bool unmark)
{
    static const char nothing = 0;
    if (hole->fd < 0)
        return;
    /* Should that fail, the mark stays, and what is read of the log is the same. */
    ssize_t written = unmark ? pwrite(hole->fd, &nothing, 1, (off_t)hole->offset + TYPE_OFFSET) : 0;
    (void)written;
    close(hole->fd);
    hole->fd = -1;
}
