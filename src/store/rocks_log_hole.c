/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hole in the logs; see rocks_log.h and README.md, "The log".
 *
 * The disk may write the blocks of a sync in any order, and those of two logs as well. When the power fails in between, zeros
 * may stand where a record begins, and whole records behind them, in the same log or in the next one. RocksDB skips zeros to the
 * end of their block of 32 KiB and takes what follows for good if a record happens to begin there, and it takes a log that
 * breaks off for one that ended: later batches without earlier ones. None of them was synced, but README.md's invariant 5 says
 * that what is lost is a suffix.
 *
 * Batches are numbered: each begins with the sequence number of its first change, and says how many there are. So a look at all
 * logs that RocksDB will read finds the first place behind which a batch is missing.
 *
 * The mark is a header of a whole record (type 1) of no bytes with a checksum of zero, which is not its checksum; where zeros
 * stand it is one byte. Recovery ends there or refuses, and rocks_open.c decides as for any other damage.
 */
#include "base/alloc.h"
#include "base/crc32c.h"
#include "store/rocks_log.h"
#include "store/rocks_manifest.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 32 << 10, HEADER_BYTES = ROCKS_LOG_HEADER_BYTES, LENGTH_OFFSET = 4, TYPE_OFFSET = 6 };
enum { TYPE_WHOLE = 1, TYPE_FIRST, TYPE_MIDDLE, TYPE_LAST };
enum { BATCH_HEADER_BYTES = 12, COUNT_OFFSET = 8 }; /* sequence number, count of changes; little-endian */

/* A look through a log, block by block, since no fragment of a record crosses the border of one. */
struct walk {
    unsigned char batch[BATCH_HEADER_BYTES]; /* of the record at hand */
    size_t batch_len;
    bool any;       /* there is something in the log */
    bool batches;   /* whole ones */
    bool damaged;   /* a fragment is: RocksDB will find that itself, and get no further */
    bool zeros;     /* a header of zeros is at `end` */
    bool hole;      /* there is a hole, at `end` */
    uint64_t first; /* sequence number of the first batch */
    uint64_t next;  /* the one with which the next batch must begin */
    uint64_t end;   /* where the fragment begins that would be next, or does not fit */
};

static bool all_zeros(const unsigned char *bytes, size_t len)
{
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

static uint64_t little_endian(const unsigned char *bytes, size_t len)
{
    uint64_t value = 0;
    while (len-- > 0)
        value = value << 8 | bytes[len];
    return value;
}

/* Whether a fragment has its checksum, as RocksDB keeps it: of type and bytes, masked. */
static bool is_sound(const unsigned char *header, size_t bytes)
{
    uint32_t sum = crc32c(0, header + TYPE_OFFSET, 1 + bytes);
    uint32_t masked = ((sum >> 15) | (sum << 17)) + 0xa282ead8u;
    return little_endian(header, LENGTH_OFFSET) == masked;
}

/* A record is whole. Returns: false when its batch does not follow the one before. */
static bool end_record(struct walk *walk)
{
    if (walk->batch_len < BATCH_HEADER_BYTES)
        return true;
    uint64_t sequence = little_endian(walk->batch, COUNT_OFFSET);
    if (walk->batches && sequence != walk->next)
        return false;
    if (!walk->batches)
        walk->first = sequence;
    walk->batches = true;
    walk->next = sequence + little_endian(walk->batch + COUNT_OFFSET, BATCH_HEADER_BYTES - COUNT_OFFSET);
    return true;
}

/* Takes a fragment. RocksDB's own records have other types. Returns: as end_record(). */
static bool take_fragment(struct walk *walk, unsigned type, const unsigned char *bytes, size_t len)
{
    if (type > TYPE_LAST)
        return true;
    if (type == TYPE_WHOLE || type == TYPE_FIRST)
        walk->batch_len = 0;
    size_t room = BATCH_HEADER_BYTES - walk->batch_len;
    size_t part = len < room ? len : room;
    memcpy(walk->batch + walk->batch_len, bytes, part);
    walk->batch_len += part;
    return type == TYPE_FIRST || type == TYPE_MIDDLE || end_record(walk);
}

/* Returns: where a header of zeros begins, or `len` where there is none; walk->end is there, or where it ended otherwise. */
static size_t walk_block(struct walk *walk, const unsigned char *block, size_t len, uint64_t base)
{
    size_t at = 0;
    while (len - at >= HEADER_BYTES) {
        const unsigned char *header = block + at;
        size_t bytes = header[LENGTH_OFFSET] + ((size_t)header[LENGTH_OFFSET + 1] << 8);
        walk->end = base + at;
        if (all_zeros(header + LENGTH_OFFSET, HEADER_BYTES - LENGTH_OFFSET))
            return at;
        walk->any = true;
        walk->damaged = bytes > len - at - HEADER_BYTES || !is_sound(header, bytes);
        if (walk->damaged)
            return len;
        walk->hole = !take_fragment(walk, header[TYPE_OFFSET], header + HEADER_BYTES, bytes);
        if (walk->hole)
            return len;
        at += HEADER_BYTES + bytes;
    }
    walk->end = base + (BLOCK_BYTES - at < HEADER_BYTES ? BLOCK_BYTES : at);
    return len;
}

static void search_block(struct walk *walk, const unsigned char *block, size_t len, uint64_t base)
{
    size_t zeros_from = 0;
    if (!walk->zeros) {
        zeros_from = walk_block(walk, block, len, base);
        if (zeros_from == len)
            return;
        walk->zeros = true;
        zeros_from += LENGTH_OFFSET; /* a checksum alone is the beginning of a header */
    }
    walk->hole = !all_zeros(block + zeros_from, len - zeros_from);
    walk->any |= walk->hole;
}

/* What cannot be read is RocksDB's to report. */
static struct walk walk_log(int fd)
{
    struct walk walk = {.any = false};
    tl_cleanup(mem_freep) char *block = mem_alloc(BLOCK_BYTES);
    ssize_t len;
    for (uint64_t base = 0; !walk.hole && !walk.damaged && (len = pread(fd, block, BLOCK_BYTES, (off_t)base)) > 0;
         base += BLOCK_BYTES)
        search_block(&walk, (const unsigned char *)block, (size_t)len, base);
    return walk;
}

static int open_log(const char *directory, uint64_t number, bool read_only)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/%06llu.log", directory, (unsigned long long)number);
    return len > 0 && (size_t)len < sizeof path ? open(path, (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC) : -1;
}

/* --- From log to log ------------------------------------------------------------------------------------------------- */

/* A place in the logs; number 0: none. */
struct place {
    uint64_t number;
    uint64_t offset;
};

/* The logs that were looked at, from the oldest on. */
struct chain {
    struct rocks_manifest manifest;
    struct place last;  /* where the newest batch ends */
    struct place empty; /* in the first log without a batch, while there was none */
    struct place torn;  /* damage that no later log has gone on from */
    uint64_t next;      /* the sequence number with which the next batch must begin; 0: not known */
};

/* Returns: where the first log with batches shows that some before it are missing. */
static struct place before_first(const struct chain *chain, uint64_t number, const struct walk *walk)
{
    /* RocksDB turns to a new log only when it has written to the one before. */
    if (chain->empty.number != 0 && chain->manifest.known)
        return chain->empty;
    if (chain->manifest.known && walk->first > chain->manifest.last_sequence + 1)
        return (struct place){number, 0};
    return (struct place){0, 0};
}

/* Goes on to a newer log. Returns: the hole, if it shows one. */
static struct place go_on(struct chain *chain, uint64_t number, const struct walk *walk)
{
    struct place hole = {0, 0};
    if (walk->batches && chain->next != 0 && walk->first != chain->next)
        hole = chain->last;
    else if (walk->batches && chain->next == 0)
        hole = before_first(chain, number, walk);
    else if (!walk->batches && chain->empty.number == 0)
        chain->empty = (struct place){number, walk->end};
    if (walk->batches && hole.number == 0)
        chain->torn.number = 0;
    if (walk->damaged && chain->torn.number == 0)
        chain->torn = (struct place){number, walk->end};
    if (hole.number == 0 && walk->hole)
        hole = (struct place){number, walk->end};
    if (walk->batches) {
        chain->next = walk->next;
        chain->last = (struct place){number, walk->end};
    }
    return hole;
}

static uint64_t oldest_from(const char *directory, uint64_t least)
{
    uint64_t oldest = 0;
    for (uint64_t number = UINT64_MAX; (number = rocks_log_newest(directory, number)) >= least && number != 0;)
        oldest = number;
    return oldest;
}

/* Sets *ret_synced: the changes of a family that were behind the place are in files, and so it had been synced. */
static struct place find_hole(const char *directory, bool *ret_synced)
{
    struct chain chain = {.manifest = rocks_manifest_read(directory)};
    uint64_t least = chain.manifest.known ? chain.manifest.log_number : 0;
    struct place hole = {0, 0};
    for (uint64_t number; hole.number == 0 && (number = oldest_from(directory, least)) != 0; least = number + 1) {
        int fd = open_log(directory, number, true);
        if (fd < 0)
            continue;
        struct walk walk = walk_log(fd);
        close(fd);
        hole = go_on(&chain, number, &walk);
    }
    struct place first = chain.torn.number != 0 ? chain.torn : hole;
    *ret_synced = first.number != 0 && chain.manifest.known && first.number < chain.manifest.log_number_max;
    return *ret_synced ? first : hole;
}

/* --- The mark ---------------------------------------------------------------------------------------------------------- */

static bool mark(const char *directory, struct rocks_log_hole *hole)
{
    static const unsigned char bytes[HEADER_BYTES] = {[TYPE_OFFSET] = TYPE_WHOLE};
    struct stat log;
    int fd = open_log(directory, hole->number, false);
    if (fd < 0)
        return false;
    if (fstat(fd, &log) != 0 || pread(fd, hole->before, HEADER_BYTES, (off_t)hole->offset) < 0 ||
        pwrite(fd, bytes, HEADER_BYTES, (off_t)hole->offset) != HEADER_BYTES) {
        close(fd);
        return false;
    }
    hole->fd = fd;
    hole->size = (uint64_t)log.st_size;
    return true;
}

int rocks_log_mark_hole(const char *directory, bool read_only, struct rocks_log_hole *ret_hole)
{
    bool synced;
    struct place place = find_hole(directory, &synced);
    *ret_hole = (struct rocks_log_hole){.fd = -1, .number = place.number, .offset = place.offset, .synced = synced};
    if (place.number == 0)
        return 0;
    return !read_only && !synced && mark(directory, ret_hole) ? 0 : TL_ERR_CORRUPT;
}

void rocks_log_hole_close(struct rocks_log_hole *hole, bool unmark)
{
    if (hole->fd < 0)
        return;
    /* Should that fail, the mark stays, and what is read of the log is the same. */
    if (unmark && pwrite(hole->fd, hole->before, HEADER_BYTES, (off_t)hole->offset) == HEADER_BYTES &&
        ftruncate(hole->fd, (off_t)hole->size) != 0) {
        /* zeros or a few bytes more */
    }
    close(hole->fd);
    hole->fd = -1;
}
