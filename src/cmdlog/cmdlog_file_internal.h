/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the file log share. README.md has the format, and the invariants cited here.
 *
 * Threads. Who appends owns `end`, `seed` and the file of the last segment. `lock` guards everything that others look at:
 * the list of segments, what is appended and durable, the files that wait for a sync.
 */
#ifndef TL_CMDLOG_CMDLOG_FILE_INTERNAL_H
#define TL_CMDLOG_CMDLOG_FILE_INTERNAL_H

#include <pthread.h>

#include "base/buf.h"
#include "cmdlog/cmdlog_file.h"
#include "cmdlog/segment.h"

enum { CMDLOG_FILE_NAME_BYTES = 32, CMDLOG_SPARES_MAX = 64 };

struct cmdlog_segment {
    uint64_t number;
    cmdlog_position position; /* of the entry that its first record belongs to */
    uint32_t chain;        /* before its first record */
    bool continued;
    uint32_t seed; /* of its records' checksums */
    int file;      /* -1: not open here; open while there is something to sync */
    /* Writes that were begun, that are done, and of these how many are known to be durable. */
    uint64_t begun;
    uint64_t done;
    uint64_t synced;
};

/* A place where a record is, or will be. */
struct cmdlog_address {
    size_t segment; /* by its place in the list of segments */
    uint64_t offset;
    uint32_t chain;
};

struct cmdlog_file {
    struct cmdlog log;
    struct cmdlog_disk *disk;
    uint64_t segment_bytes;
    unsigned spares_max;
    bool read_only;
    cmdlog_position after; /* where it begins, when it is made */
    struct cmdlog_lineage lineage; /* there */
    int (*keep)(void *context, const char *name);
    void *keep_context;
    pthread_mutex_t trim_lock; /* one trims */
    char identity[CMDLOG_IDENTITY_BYTES];

    /* Of who appends. */
    struct cmdlog_address end;
    bool failed; /* an append did: what is on the disk is not known */

    pthread_mutex_t lock;
    struct cmdlog_segment *segments; /* oldest first, numbered without gaps */
    size_t segment_count;
    size_t segment_room;
    cmdlog_position appended;
    uint32_t appended_chain; /* the checksum of its last record; 0: it is not known */
    cmdlog_position durable;
    bool sealed;
    bool names_unsynced;
    bool half_full; /* the last segment is */
    uint64_t spare_numbers[CMDLOG_SPARES_MAX];
    unsigned spare_count;
    unsigned spares_reserved; /* of these, for the append under way */
    uint64_t spare_next; /* a number that no spare has had */

    pthread_mutex_t sync_lock; /* one syncs, or changes checkpoints */
    bool sync_failed;          /* a sync did (invariant 7); under `lock` */
    int durable_file;
    uint64_t durable_writes;
    struct cmdlog_checkpoint checkpoints[2]; /* newest first; position 0: none. Places are mem_free's */
};

/* --- Reading (cmdlog_reader.c) --------------------------------------------------------------------------------------- */

/* Reads the records of one segment in their order, from a window of its bytes. */
struct cmdlog_reader {
    struct cmdlog_disk *disk;
    int file; /* -1: none */
    uint32_t seed;
    uint64_t segment_bytes;
    uint64_t offset; /* of the next record */
    uint32_t chain;  /* that it must have */
    char *window;
    uint64_t window_offset;
    size_t window_len;
    size_t window_room;
};

enum { READER_END = 1, READER_UNSOUND }; /* the segment has no room for more; what is there is not the next record */

int cmdlog_reader_open(struct cmdlog_reader *reader, const struct cmdlog_file *log, const struct cmdlog_segment *segment,
                    uint64_t offset, uint32_t chain) TL_MUST_USE;
void cmdlog_reader_close(struct cmdlog_reader *reader);
/* Returns: 0 and a record of the right chain, its payload good until the next call; READER_END; READER_UNSOUND; fatal codes. */
int cmdlog_reader_next(struct cmdlog_reader *reader, struct record *ret_record, struct slice *ret_payload) TL_MUST_USE;
/*
 * Looks whether a sound record stands at the reader's offset, whatever its chain, and moves on: behind it, or by one alignment.
 * Returns: 0; READER_END; READER_UNSOUND: none there; fatal codes.
 */
int cmdlog_reader_search(struct cmdlog_reader *reader, struct record *ret_record) TL_MUST_USE;

/* --- The files' names and small files (cmdlog_file.c) ---------------------------------------------------------------- */

void cmdlog_segment_name(uint64_t number, char name[CMDLOG_FILE_NAME_BYTES]);
void cmdlog_spare_name(uint64_t number, char name[CMDLOG_FILE_NAME_BYTES]);
struct cmdlog_segment *cmdlog_file_add_segment(struct cmdlog_file *log);

/* --- Opening (cmdlog_recover.c) -------------------------------------------------------------------------------------- */

/*
 * Finds the segments, the end and what is durable, and repairs a torn end unless the log is read only. A new log is made.
 * Returns: as cmdlog_file_open().
 */
int cmdlog_file_recover(struct cmdlog_file *log, char **ret_reason) TL_MUST_USE;

/* Writes the records' place for a new segment and makes it the last. Who appends calls it. */
int cmdlog_file_new_segment(struct cmdlog_file *log, bool continued) TL_MUST_USE;

#endif
