/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ordered log, as everything above sees it; README.md has the promises (cited here by number).
 *
 *     log_append() ─▶ written ─▶ log_sync() ─▶ durable          log_follow() ─▶ log_next() ─▶ entries in their order
 *
 * One thread at a time may append, one may sync, beside each other and beside any number of followers.
 */
#ifndef TL_LOG_LOG_H
#define TL_LOG_LOG_H

#include "base/error.h"
#include "base/slice.h"

/* Of an entry: 1 is the first ever; 0 stands before it. */
typedef uint64_t log_position;

struct log;
struct log_cursor;

enum {
    LOG_END = 1,   /* nothing more, now */
    LOG_TRIMMED,   /* what was asked for is gone */
    LOG_NOT_FOUND, /* there is none */
};

struct log_entry {
    log_position position;
    struct slice bytes;
};

struct log_head {
    log_position oldest;   /* that can be followed from; appended + 1 when there is none */
    log_position appended; /* the newest; 0: none yet */
    log_position durable;
    bool sealed;
};

/* Where a checkpoint is: the state after the entry at `position`, and what its owner needs to find it. */
struct log_checkpoint {
    log_position position;
    struct slice place; /* at most LOG_PLACE_MAX bytes */
};

enum { LOG_PLACE_MAX = 4096 };

/*
 * Appends one entry, given in parts that are put together.
 * Requires: not sealed; at least one byte.
 * Returns: 0 and its position: it outlives this process (promise 2); TL_ERR_IO, TL_ERR_NO_SPACE: the log can be appended to no
 * more, and whether the entry is in it, its next opening tells.
 */
int log_append(struct log *log, const struct slice *parts, size_t count, log_position *ret_position) TL_MUST_USE;

/* Waits until everything up to `position` is durable. Returns: 0; TL_ERR_IO, after which nothing more may be acknowledged. */
int log_sync(struct log *log, log_position position) TL_MUST_USE;

void log_head(struct log *log, struct log_head *ret_head);

/*
 * Follows the log from an entry on.
 * Returns: 0; LOG_TRIMMED; fatal codes. Owns: the caller; log_unfollow, before the log is closed.
 */
int log_follow(struct log *log, log_position from, struct log_cursor **ret_cursor) TL_MUST_USE;

/*
 * Returns: 0 and the next entry, whose bytes are good until the next call; LOG_END: nothing more was appended, ask again later;
 * LOG_TRIMMED; TL_ERR_CORRUPT, TL_ERR_IO.
 */
int log_next(struct log_cursor *cursor, struct log_entry *ret_entry) TL_MUST_USE;
void log_unfollow(struct log_cursor *cursor);

/* Lets go of entries below `before`, or of as many of them as it suits the log. Requires: promise 5. */
int log_trim(struct log *log, log_position before) TL_MUST_USE;

/* Notes where a checkpoint is, durably; it is the newest from now on, and the one before it the second newest. */
int log_put_checkpoint(struct log *log, const struct log_checkpoint *checkpoint) TL_MUST_USE;

/*
 * `back` 0: the newest checkpoint, 1: the one before it. Returns: 0, the place in `buffer` of LOG_PLACE_MAX bytes; LOG_NOT_FOUND;
 * fatal codes.
 */
int log_get_checkpoint(struct log *log, unsigned back, char *buffer, struct log_checkpoint *ret_checkpoint) TL_MUST_USE;

/* Makes all durable and notes that the log ends here, in good order. It can be appended to again when it was opened again. */
int log_seal(struct log *log) TL_MUST_USE;

/* Does not sync. NULL is fine. */
void log_close(struct log *log);

/* --- Implementations ---------------------------------------------------------------------------------------------- */

/* The first member of each implementation's own structure. */
struct log {
    const struct log_functions *functions;
};

struct log_cursor {
    const struct log_functions *functions;
};

struct log_functions {
    int (*append)(struct log *log, const struct slice *parts, size_t count, log_position *ret_position);
    int (*sync)(struct log *log, log_position position);
    void (*head)(struct log *log, struct log_head *ret_head);
    int (*follow)(struct log *log, log_position from, struct log_cursor **ret_cursor);
    int (*next)(struct log_cursor *cursor, struct log_entry *ret_entry);
    void (*unfollow)(struct log_cursor *cursor);
    int (*trim)(struct log *log, log_position before);
    int (*put_checkpoint)(struct log *log, const struct log_checkpoint *checkpoint);
    int (*get_checkpoint)(struct log *log, unsigned back, char *buffer, struct log_checkpoint *ret_checkpoint);
    int (*seal)(struct log *log);
    void (*close)(struct log *log);
};

#endif
