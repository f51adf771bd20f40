/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the file log share. README.md has the format, and the invariants cited here.
 *
 * Threads. Who appends owns `end`, `seed` and the file of the last segment. `lock` guards everything that others look at:
 * the list of segments, what is appended and durable, the files that wait for a sync.
 */
#ifndef TL_LOG_LOG_FILE_INTERNAL_H
#define TL_LOG_LOG_FILE_INTERNAL_H

#include <pthread.h>

#include "base/buf.h"
#include "log/log_file.h"
#include "log/segment.h"

enum { LOG_NAME_BYTES = 32, LOG_SPARES_MAX = 64 };

struct log_segment {
    uint64_t number;
    log_position position; /* of the entry that its first record belongs to */
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
struct log_place {
    size_t segment; /* by its place in the list of segments */
    uint64_t offset;
    uint32_t chain;
};

struct log_file {
    struct log log;
    struct log_disk *disk;
    uint64_t segment_bytes;
    unsigned spares_max;
    bool read_only;
    log_position after; /* where it begins, when it is made */
    struct log_lineage lineage; /* there */
    int (*keep)(void *context, const char *name);
    void *keep_context;
    pthread_mutex_t trim_lock; /* one trims */
    char identity[LOG_IDENTITY_BYTES];

    /* Of who appends. */
    struct log_place end;
    bool failed; /* an append did: what is on the disk is not known */

    pthread_mutex_t lock;
    struct log_segment *segments; /* oldest first, numbered without gaps */
    size_t segment_count;
    size_t segment_room;
    log_position appended;
    uint32_t appended_chain; /* the checksum of its last record; 0: it is not known */
    log_position durable;
    bool sealed;
    bool names_unsynced;
    bool half_full; /* the last segment is */
    uint64_t spare_numbers[LOG_SPARES_MAX];
    unsigned spare_count;
    unsigned spares_reserved; /* of these, for the append under way */
    uint64_t spare_next; /* a number that no spare has had */

    pthread_mutex_t sync_lock; /* one syncs, or changes checkpoints */
    bool sync_failed;          /* a sync did (invariant 7); under `lock` */
    int durable_file;
    uint64_t durable_writes;
    struct log_checkpoint checkpoints[2]; /* newest first; position 0: none. Places are mem_free's */
};

/* --- Reading (log_reader.c) --------------------------------------------------------------------------------------- */

/* Reads the records of one segment in their order, from a window of its bytes. */
struct log_reader {
    struct log_disk *disk;
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

int log_reader_open(struct log_reader *reader, const struct log_file *log, const struct log_segment *segment,
                    uint64_t offset, uint32_t chain) TL_MUST_USE;
void log_reader_close(struct log_reader *reader);
/* Returns: 0 and a record of the right chain, its payload good until the next call; READER_END; READER_UNSOUND; fatal codes. */
int log_reader_next(struct log_reader *reader, struct record *ret_record, struct slice *ret_payload) TL_MUST_USE;
/*
 * Looks whether a sound record stands at the reader's offset, whatever its chain, and moves on: behind it, or by one alignment.
 * Returns: 0; READER_END; READER_UNSOUND: none there; fatal codes.
 */
int log_reader_search(struct log_reader *reader, struct record *ret_record) TL_MUST_USE;

/* --- The files' names and small files (log_file.c) ---------------------------------------------------------------- */

void log_segment_name(uint64_t number, char name[LOG_NAME_BYTES]);
void log_spare_name(uint64_t number, char name[LOG_NAME_BYTES]);
struct log_segment *log_file_add_segment(struct log_file *log);

/* --- Opening (log_recover.c) -------------------------------------------------------------------------------------- */

/*
 * Finds the segments, the end and what is durable, and repairs a torn end unless the log is read only. A new log is made.
 * Returns: as log_file_open().
 */
int log_file_recover(struct log_file *log, char **ret_reason) TL_MUST_USE;

/* Writes the records' place for a new segment and makes it the last. Who appends calls it. */
int log_file_new_segment(struct log_file *log, bool continued) TL_MUST_USE;

#endif
