/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations shared by the source files of the file log. README.md has the format, and the
 * invariants cited here.
 *
 * Threads: only the appending thread uses `end` and `failed`, and writes to the last segment's
 * file. `lock` guards everything that other threads read too. Lock order: trim_lock, sync_lock or
 * spares_lock, then lock.
 */
#ifndef TL_CMDLOG_CMDLOG_FILE_INTERNAL_H
#define TL_CMDLOG_CMDLOG_FILE_INTERNAL_H

#include <pthread.h>

#include "base/buf.h"
#include "base/magic.h"
#include "cmdlog/cmdlog_file.h"
#include "cmdlog/segment.h"

enum { CMDLOG_FILE_NAME_BYTES = 32, CMDLOG_SPARES_MAX = 64 };

struct cmdlog_segment {
    uint64_t number;
    cmdlog_position position; /* of the entry that its first record belongs to */
    uint32_t prev_crc;        /* checksum of the record before its first one */
    bool continued;           /* its first record continues an entry of the previous segment */
    uint32_t seed;            /* initial value of its records' checksums */
    int file;                 /* open while the segment may need a sync; -1: not open */
    /* Numbers of writes: started; completed; completed before the last sync. */
    uint64_t begun;
    uint64_t done;
    uint64_t synced;
};

/* The address of a record, or of the next one to be written. */
struct cmdlog_address {
    size_t segment; /* index into cmdlog_file.segments */
    uint64_t offset;
    uint32_t prev_crc; /* checksum of the record before it */
};

#define CMDLOG_FILE_MAGIC MAGIC('C', 'L', 'o', 'F')

struct cmdlog_file {
    struct cmdlog log;
    uint32_t magic; /* CMDLOG_FILE_MAGIC */
    struct cmdlog_disk *disk;
    uint64_t segment_bytes;
    unsigned spares_max;
    bool read_only;
    cmdlog_position after;         /* of cmdlog_file_options; used when the log is created */
    struct cmdlog_lineage lineage; /* of the entry at `after` */
    int (*archive)(void *context, const char *name);
    void *archive_context;
    pthread_mutex_t trim_lock; /* serializes trims */
    char identity[CMDLOG_IDENTITY_BYTES];

    /* Of the appending thread. */
    struct cmdlog_address end;
    bool failed; /* an append or a seal failed: the bytes after the last entry are unknown */

    pthread_mutex_t lock;
    struct cmdlog_segment *segments; /* oldest first, consecutive numbers */
    size_t segment_count;
    size_t segment_capacity;
    cmdlog_position appended;
    uint32_t appended_crc; /* checksum of the last record of the newest entry; 0: unknown */
    cmdlog_position durable;
    bool sealed;
    bool directory_unsynced; /* a segment's name is not durable yet */
    bool half_full;          /* the last segment is */
    uint64_t spare_numbers[CMDLOG_SPARES_MAX];
    unsigned spare_count;
    unsigned spares_reserved; /* of these, for the append in progress */
    uint64_t spares_late;     /* how many an append had to make, or to wait for */
    bool preparing;           /* a thread makes the spare that was asked for */
    uint64_t prepare_after;   /* boot clock; the disk was full when one was made last */
    uint64_t spare_next;      /* a number that no spare has had */

    pthread_mutex_t spares_lock; /* serializes the making of spares */

    pthread_mutex_t sync_lock; /* serializes syncs and changes of the checkpoints */
    bool sync_failed;          /* invariant 7; under `lock` */
    int durable_file;          /* -1: not open */
    uint64_t durable_writes;
    struct cmdlog_checkpoint checkpoints[2]; /* newest first; owns the locators */
};

/* --- Reading (cmdlog_reader.c) ------------------------------------------------------------------------------------ */

/* Reads the records of one segment in order, through a window of its bytes. */
struct cmdlog_reader {
    struct cmdlog_disk *disk;
    int file; /* -1: none */
    uint32_t seed;
    uint64_t segment_bytes;
    uint64_t offset;   /* of the next record */
    uint32_t prev_crc; /* that the next record must have */
    char *window;      /* NULL: not allocated yet */
    uint64_t window_offset;
    size_t window_len;
    size_t window_capacity;
};

enum {
    READER_END = 1, /* the rest of the segment is too short for a record */
    READER_INVALID  /* the bytes at the offset are not the expected record */
};

/*
 * Opens a segment's file to read records from `offset` on. A window of an earlier use is kept, a
 * file is not closed.
 * Returns: 0; DISK_NO_FILE; fatal codes. Owns: the caller; cmdlog_reader_close().
 * Requires: `offset` is that of a record, or the end of the segment.
 */
int cmdlog_reader_open(struct cmdlog_reader *reader, const struct cmdlog_file *log,
                       const struct cmdlog_segment *segment, uint64_t offset, uint32_t prev_crc) TL_MUST_USE;
void cmdlog_reader_close(struct cmdlog_reader *reader);
/*
 * Reads the next record, whose prev_crc must be the reader's.
 * Returns: 0 and the record, its payload valid until the next call; READER_END; READER_INVALID;
 * fatal codes.
 */
int cmdlog_reader_next(struct cmdlog_reader *reader, struct record *ret_record, struct slice *ret_payload) TL_MUST_USE;
/*
 * Looks for an intact record with any prev_crc at the reader's offset. Advances past it, else past
 * bytes where no record begins.
 * Returns: 0; READER_END; READER_INVALID: no record there; fatal codes.
 */
int cmdlog_reader_search(struct cmdlog_reader *reader, struct record *ret_record) TL_MUST_USE;

/* --- Segments (cmdlog_file.c) ------------------------------------------------------------------------------------- */

void cmdlog_segment_name(uint64_t number, char name[CMDLOG_FILE_NAME_BYTES]);
void cmdlog_spare_name(uint64_t number, char name[CMDLOG_FILE_NAME_BYTES]);
/*
 * Returns: a new last element of log->segments, uninitialized; valid until the list changes.
 * Assumes: `lock`, or the log is being opened.
 */
struct cmdlog_segment *cmdlog_file_add_segment(struct cmdlog_file *log);

/* --- Opening (cmdlog_recover.c) ----------------------------------------------------------------------------------- */

/*
 * Finds the segments, the end of the log and its durable position. Creates a log if the disk has no
 * segments. Unless the log is read-only, truncates a torn end and makes everything before it
 * durable.
 * Returns: as cmdlog_file_open().
 */
int cmdlog_file_recover(struct cmdlog_file *log, char **ret_reason) TL_MUST_USE;

/*
 * Makes a spare the last segment, with a durable header, and moves `end` to its first record. Its
 * name is not synced. `continued`: an entry that began in the segment before continues in it.
 * Called by the appending thread, without `lock`.
 * Returns: 0; TL_ERR_NO_SPACE, TL_ERR_IO.
 * Requires: the log is not read-only; if `continued`, it has a segment.
 */
int cmdlog_file_new_segment(struct cmdlog_file *log, bool continued) TL_MUST_USE;

#endif
