/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ordered log, as everything above sees it; README.md has the promises (cited here by number).
 *
 *     log_append() ─▶ written ─▶ log_sync() ─▶ durable          log_follow() ─▶ log_next() ─▶ entries in their order
 *
 * One thread at a time may append, one may sync, beside each other and beside any number of followers. A log that several hosts share
 * can do more, and there more than one may append: log_shared.h.
 */
#ifndef TL_LOG_LOG_H
#define TL_LOG_LOG_H

#include "base/error.h"
#include "base/slice.h"

/* Of an entry: higher than that of the one before it (promise 1); 0 stands before all. */
typedef uint64_t log_position;

struct log;
struct log_cursor;

enum {
    LOG_END = 1,   /* nothing more, now */
    LOG_TRIMMED,   /* what was asked for is gone */
    LOG_NOT_FOUND, /* there is none */
    /* Of a log that hosts share: */
    LOG_AWAY,    /* it could not be reached in time */
    LOG_BUSY,    /* as many are under way as may be, or the answer is not there yet */
    LOG_OUT,     /* this host's life is over, and what it appends is refused */
    LOG_UNKNOWN, /* whether it is in the log, the log itself will tell */
    LOG_TAKEN,   /* there is one already */
};

struct log_entry {
    log_position position;
    struct slice bytes;
    /* Who appended it, where hosts share the log; else empty, 0, 0, 0. */
    struct slice host;  /* good as long as `bytes` */
    uint64_t life;      /* of that host */
    uint64_t number;    /* rises from one entry of a host to its next, over its lives */
    uint64_t submitted; /* when, by that host's wall clock in microseconds */
};

/* As far as it is known without asking; where hosts share the log, log_ask_head() asks. */
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
    uint64_t
        log_bytes; /* of all entries up to there, as its owner counts them: only differences matter; 0 where one host has the log */
};

enum { LOG_PLACE_MAX = 4096, LOG_IDENTITY_BYTES = 16 };

/* Which log it is, and what it is up to an entry: a state as of that entry keeps it, so as not to be taken for one that another log has made. */
struct log_lineage {
    char identity
        [LOG_IDENTITY_BYTES]; /* random; of a log and of all that were made to go on from its entries. Zeros: not known */
    uint32_t chain;           /* over all entries up to this one, as the log has them; 0: not known */
};

/*
 * Appends one entry, given in parts that are put together.
 * Requires: not sealed; at least one byte.
 * Returns: 0 and its position: it outlives this process (promise 2); TL_ERR_NO_SPACE: nothing was written, and the same may be tried again
 * when there is room; TL_ERR_IO: the log can be appended to no more, and whether the entry is in it, its next opening tells.
 * Where hosts share the log: 0, and it is durable; TL_ERR_NO_SPACE; LOG_OUT, LOG_UNKNOWN, TL_ERR_STOPPED as log_answer(). It waits as long as it takes.
 */
int log_append(struct log *log, const struct slice *parts, size_t count, log_position *ret_position) TL_MUST_USE;

/* Waits until everything up to `position` is durable. Returns: 0; TL_ERR_IO, after which nothing more may be acknowledged: what comes later fails, too. */
int log_sync(struct log *log, log_position position) TL_MUST_USE;

void log_head(struct log *log, struct log_head *ret_head);

/*
 * What the log is up to an entry; of one that it has not (any more), the chain is not known. A log that hosts share has no lineage: nothing is known. Of the newest
 * entry it is known at once; else it is read.
 * Returns: 0; TL_ERR_CORRUPT, TL_ERR_IO.
 */
int log_lineage(struct log *log, log_position position, struct log_lineage *ret_lineage) TL_MUST_USE;
/* Returns: whether they can be of one log. What is not known is no difference. */
bool log_lineage_fits(const struct log_lineage *a, const struct log_lineage *b);

/*
 * Follows the log from an entry on, or from the first behind it where there is none at this position.
 * Returns: 0; LOG_TRIMMED; fatal codes. Owns: the caller; log_unfollow, before the log is closed.
 */
int log_follow(struct log *log, log_position from, struct log_cursor **ret_cursor) TL_MUST_USE;

/*
 * Returns: 0 and the next entry, whose bytes are good until the next call; LOG_END: nothing more was appended, ask again later;
 * LOG_TRIMMED; TL_ERR_CORRUPT, TL_ERR_IO.
 */
int log_next(struct log_cursor *cursor, struct log_entry *ret_entry) TL_MUST_USE;
void log_unfollow(struct log_cursor *cursor);

/*
 * Lets go of entries below `before`, or of as many of them as it suits the log. Requires: promise 5. Where hosts share the log it keeps what they
 * need (README.md, "Trimming"), and what it could not do it says as LOG_AWAY.
 */
int log_trim(struct log *log, log_position before) TL_MUST_USE;

/* Does a part of what appends will need, so that they need not wait for it. For a thread that has the time, beside all others. */
int log_prepare(struct log *log) TL_MUST_USE;

/* Gives back what it holds beyond its entries, for use again. Beside who appends, who keeps what it counts on. */
int log_shrink(struct log *log) TL_MUST_USE;

/*
 * Notes where a checkpoint is, durably; it is the newest from now on, and the one before it the second newest. Positions only rise: one at the newest's position
 * takes its place, and one below it changes nothing (promise 5: what it needs may be trimmed). Where hosts share the log, each has its own.
 * Returns: 0; LOG_AWAY: it is not noted, or it is; TL_ERR_IO.
 */
int log_put_checkpoint(struct log *log, const struct log_checkpoint *checkpoint) TL_MUST_USE;

/*
 * `back` 0: the newest checkpoint, 1: the one before it. Returns: 0, the place in `buffer` of LOG_PLACE_MAX bytes; LOG_NOT_FOUND; LOG_AWAY;
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
    const struct log_shared_functions *shared; /* log_shared.h; NULL: it is one host's */
};

struct log_cursor {
    const struct log_functions *functions;
    const struct log_shared_functions *shared;
};

struct log_functions {
    int (*append)(struct log *log, const struct slice *parts, size_t count, log_position *ret_position);
    int (*sync)(struct log *log, log_position position);
    void (*head)(struct log *log, struct log_head *ret_head);
    int (*lineage)(struct log *log, log_position position, struct log_lineage *ret_lineage); /* NULL: hosts share it */
    int (*follow)(struct log *log, log_position from, struct log_cursor **ret_cursor);
    int (*next)(struct log_cursor *cursor, struct log_entry *ret_entry);
    void (*unfollow)(struct log_cursor *cursor);
    int (*trim)(struct log *log, log_position before);
    int (*prepare)(struct log *log);
    int (*shrink)(struct log *log);
    int (*put_checkpoint)(struct log *log, const struct log_checkpoint *checkpoint);
    int (*get_checkpoint)(struct log *log, unsigned back, char *buffer, struct log_checkpoint *ret_checkpoint);
    int (*seal)(struct log *log);
    void (*close)(struct log *log);
};

#endif
