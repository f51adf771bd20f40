/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zeros ahead of the log's end; see rocks_log.h and README.md, "The log".
 *
 * A sync that finds its blocks written before and its file as long as before costs the file system nothing but these blocks;
 * one that makes the file longer costs a commit of its journal too. So the log is kept some way ahead of its data:
 *
 * - Each batch moves `end` on as RocksDB's log writer moves on with it.
 * - Each STEP_BYTES the directory is read to see which log is the newest, and zeros are written behind it until LEAD_BYTES lie
 *   behind `end`. All that happens on the thread that writes, before its batch goes to RocksDB.
 * - A log that is new since the last look holds at most what was handed to RocksDB since.
 * - When much is written between two syncs the zeros would cost more than they spare, and none are written.
 * - A log that does not take its zeros, on a full disk or a broken one, is left alone; so is one that holds something behind
 *   `end`, which would mean that RocksDB writes what we do not know of.
 */
#include "base/alloc.h"
#include "base/check.h"
#include "store/rocks_log.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 32 << 10, /* of the log's format; a record is cut in fragments at its borders */
    HEADER_BYTES = 7,       /* of a fragment */
    PAGE_BYTES = 4 << 10,
    STEP_BYTES = 128 << 10,
    LEAD_BYTES = 2 * STEP_BYTES,
    SMALL_SYNC_BYTES = 16 << 10, /* on the average, for zeros to be worth it */
    EXTRA_BYTES = 16 << 10,      /* of a log at most for RocksDB's own records, which are a few dozen bytes */
};

void rocks_log_ahead_init(struct rocks_log_ahead *ahead, const char *directory)
{
    *ahead = (struct rocks_log_ahead){.directory = directory, .fd = -1, .end_if_new = EXTRA_BYTES};
    if (directory != NULL)
        ahead->zeros = mem_zalloc(LEAD_BYTES);
}

static void leave_log(struct rocks_log_ahead *ahead)
{
    if (ahead->fd >= 0)
        close(ahead->fd);
    ahead->fd = -1;
}

void rocks_log_ahead_deinit(struct rocks_log_ahead *ahead)
{
    leave_log(ahead);
    mem_free(ahead->zeros);
    ahead->zeros = NULL;
    ahead->directory = NULL;
}

/* The number of a file NNNNNN.log, 0 for another. */
static uint64_t log_number(const char *name)
{
    char *end;
    if (name[0] < '0' || name[0] > '9')
        return 0;
    uint64_t number = strtoull(name, &end, 10);
    return strcmp(end, ".log") == 0 ? number : 0;
}

uint64_t rocks_log_newest(const char *directory, uint64_t limit)
{
    DIR *listing = opendir(directory);
    uint64_t newest = 0;
    if (listing == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        uint64_t number = log_number(entry->d_name);
        if (number > newest && number < limit)
            newest = number;
    }
    closedir(listing);
    return newest;
}

/*
 * Where a record ends that begins at `at` or before it. Of two places where a record might begin the later one has it end later,
 * or at the same place; so a place at or behind RocksDB's stays there whatever both then write.
 */
static uint64_t end_of_record(uint64_t at, size_t bytes)
{
    do {
        uint64_t left = BLOCK_BYTES - at % BLOCK_BYTES;
        if (left < HEADER_BYTES) {
            at += left;
            left = BLOCK_BYTES;
        }
        size_t part = bytes < left - HEADER_BYTES ? bytes : left - HEADER_BYTES;
        at += HEADER_BYTES + part;
        bytes -= part;
    } while (bytes > 0);
    return at;
}

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Turns to a log that is new since the last look. What was handed to RocksDB before lies in older ones. */
static void turn_to(struct rocks_log_ahead *ahead, uint64_t number)
{
    char path[PATH_MAX];
    leave_log(ahead);
    ahead->number = number;
    ahead->end = ahead->end_if_new;
    ahead->zeroed = 0;
    int len = snprintf(path, sizeof path, "%s/%06llu.log", ahead->directory, (unsigned long long)number);
    if (len > 0 && (size_t)len < sizeof path)
        ahead->fd = open(path, O_RDWR | O_CLOEXEC);
}

/* Whether nothing but zeros lies behind `end`. A page is enough: in one of a log there is always a header. */
static bool end_is_true(const struct rocks_log_ahead *ahead)
{
    char page[PAGE_BYTES];
    ssize_t len = pread(ahead->fd, page, sizeof page, (off_t)ahead->end);
    return len >= 0 && memcmp(page, ahead->zeros, (size_t)len) == 0;
}

static void extend(struct rocks_log_ahead *ahead)
{
    uint64_t from = whole_pages(ahead->end), to = from + LEAD_BYTES;
    if (from < ahead->zeroed)
        from = ahead->zeroed;
    if (from >= to)
        return;
    INSIST(from >= ahead->end && to - from <= LEAD_BYTES);
    if (end_is_true(ahead) && pwrite(ahead->fd, ahead->zeros, to - from, (off_t)from) == (ssize_t)(to - from))
        ahead->zeroed = to;
    else
        leave_log(ahead);
}

static uint64_t since_look(const struct rocks_log_ahead *ahead)
{
    return ahead->end_if_new - EXTRA_BYTES;
}

static bool syncs_are_small(const struct rocks_log_ahead *ahead, uint64_t syncs)
{
    return (syncs - ahead->syncs_at_look) * SMALL_SYNC_BYTES >= since_look(ahead);
}

/* `bytes` are of the batch at hand, which RocksDB does not have yet, though `end` and `end_if_new` do. */
static void look(struct rocks_log_ahead *ahead, size_t bytes)
{
    uint64_t newest = rocks_log_newest(ahead->directory, UINT64_MAX);
    if (newest == 0)
        return; /* nobody can tell; what is known holds on, and the next batch asks again */
    uint64_t syncs = atomic_load_explicit(&ahead->syncs, memory_order_relaxed);
    if (newest != ahead->number)
        turn_to(ahead, newest);
    if (ahead->fd >= 0 && syncs_are_small(ahead, syncs))
        extend(ahead);
    ahead->end_if_new = end_of_record(EXTRA_BYTES, bytes);
    ahead->syncs_at_look = syncs;
}

void rocks_log_ahead_batch(struct rocks_log_ahead *ahead, size_t bytes)
{
    if (ahead->directory == NULL)
        return;
    ahead->end = end_of_record(ahead->end, bytes);
    ahead->end_if_new = end_of_record(ahead->end_if_new, bytes);
    if (ahead->number == 0 || since_look(ahead) >= STEP_BYTES)
        look(ahead, bytes);
    uint64_t lead = ahead->zeroed > ahead->end ? ahead->zeroed - ahead->end : 0;
    atomic_store_explicit(&ahead->lead, lead, memory_order_relaxed);
}

void rocks_log_ahead_synced(struct rocks_log_ahead *ahead)
{
    atomic_fetch_add_explicit(&ahead->syncs, 1, memory_order_relaxed);
}

uint64_t rocks_log_ahead_bytes(struct rocks_log_ahead *ahead)
{
    return atomic_load_explicit(&ahead->lead, memory_order_relaxed);
}
