/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ordered log, as everything above sees it; README.md has the promises (cited here by number).
 *
 *     cmdlog_append() ─▶ written ─▶ cmdlog_sync() ─▶ durable          cmdlog_follow() ─▶ cmdlog_next() ─▶ entries in their order
 *
 * One thread at a time may append, one may sync, beside each other and beside any number of followers. A log that several hosts share
 * can do more, and there more than one may append: cmdlog_shared.h.
 */
#ifndef TL_CMDLOG_CMDLOG_H
#define TL_CMDLOG_CMDLOG_H

#include "base/error.h"
#include "base/slice.h"

/* Of an entry: higher than that of the one before it (promise 1); 0 stands before all. */
typedef uint64_t cmdlog_position;

struct cmdlog;
struct cmdlog_cursor;

enum {
    CMDLOG_END = 1,   /* nothing more, now */
    CMDLOG_TRIMMED,   /* what was asked for is gone */
    CMDLOG_NOT_FOUND, /* there is none */
    /* Of a log that hosts share: */
    CMDLOG_UNREACHABLE,    /* it could not be reached in time */
    CMDLOG_BUSY,    /* as many are under way as may be, or the answer is not there yet */
    CMDLOG_FENCED,     /* this host's life is over, and what it appends is refused */
    CMDLOG_UNKNOWN, /* whether it is in the log, the log itself will tell */
    CMDLOG_EXISTS,   /* there is one already */
};

struct cmdlog_entry {
    cmdlog_position position;
    struct slice bytes;
    /* Who appended it, where hosts share the log; else empty, 0, 0, 0. */
    struct slice host;  /* good as long as `bytes` */
    uint64_t life;      /* of that host */
    uint64_t number;    /* rises from one entry of a host to its next, over its lives */
    uint64_t submitted; /* when, by that host's wall clock in microseconds */
};

/* As far as it is known without asking; where hosts share the log, cmdlog_read_head() asks. */
struct cmdlog_head {
    cmdlog_position oldest;   /* that can be followed from; appended + 1 when there is none */
    cmdlog_position appended; /* the newest; 0: none yet */
    cmdlog_position durable;
    bool sealed;
};

/* Where a checkpoint is: the state after the entry at `position`, and what its owner needs to find it. */
struct cmdlog_checkpoint {
    cmdlog_position position;
    struct slice locator; /* at most CMDLOG_LOCATOR_MAX bytes */
    uint64_t
        log_bytes; /* of all entries up to there, as its owner counts them: only differences matter; 0 where one host has the log */
};

enum { CMDLOG_LOCATOR_MAX = 4096, CMDLOG_IDENTITY_BYTES = 16 };

/* Which log it is, and what it is up to an entry: a state as of that entry keeps it, so as not to be taken for one that another log has made. */
struct cmdlog_lineage {
    char identity
        [CMDLOG_IDENTITY_BYTES]; /* random; of a log and of all that were made to go on from its entries. Zeros: not known */
    uint32_t history_crc;           /* over all entries up to this one, as the log has them; 0: not known */
};

/*
 * Appends one entry, given in parts that are put together.
 * Requires: not sealed; at least one byte.
 * Returns: 0 and its position: it outlives this process (promise 2); TL_ERR_NO_SPACE: nothing was written, and the same may be tried again
 * when there is room; TL_ERR_IO: the log can be appended to no more, and whether the entry is in it, its next opening tells.
 * Where hosts share the log: 0, and it is durable; TL_ERR_NO_SPACE; CMDLOG_FENCED, CMDLOG_UNKNOWN, TL_ERR_STOPPED as cmdlog_outcome(). It waits as long as it takes.
 */
int cmdlog_append(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position) TL_MUST_USE;

/* Waits until everything up to `position` is durable. Returns: 0; TL_ERR_IO, after which nothing more may be acknowledged: what comes later fails, too. */
int cmdlog_sync(struct cmdlog *log, cmdlog_position position) TL_MUST_USE;

void cmdlog_head(struct cmdlog *log, struct cmdlog_head *ret_head);

/*
 * What the log is up to an entry; of one that it has not (any more), the chain is not known. A log that hosts share has no lineage: nothing is known. Of the newest
 * entry it is known at once; else it is read.
 * Returns: 0; TL_ERR_CORRUPT, TL_ERR_IO.
 */
int cmdlog_lineage(struct cmdlog *log, cmdlog_position position, struct cmdlog_lineage *ret_lineage) TL_MUST_USE;
/* Returns: whether they can be of one log. What is not known is no difference. */
bool cmdlog_lineage_fits(const struct cmdlog_lineage *a, const struct cmdlog_lineage *b);

/*
 * Follows the log from an entry on, or from the first behind it where there is none at this position.
 * Returns: 0; CMDLOG_TRIMMED; fatal codes. Owns: the caller; cmdlog_unfollow, before the log is closed.
 */
int cmdlog_follow(struct cmdlog *log, cmdlog_position from, struct cmdlog_cursor **ret_cursor) TL_MUST_USE;

/*
 * Returns: 0 and the next entry, whose bytes are good until the next call; CMDLOG_END: nothing more was appended, ask again later;
 * CMDLOG_TRIMMED; TL_ERR_CORRUPT, TL_ERR_IO.
 */
int cmdlog_next(struct cmdlog_cursor *cursor, struct cmdlog_entry *ret_entry) TL_MUST_USE;
void cmdlog_unfollow(struct cmdlog_cursor *cursor);

/*
 * Lets go of entries below `before`, or of as many of them as it suits the log. Requires: promise 5. Where hosts share the log it keeps what they
 * need (README.md, "Trimming"), and what it could not do it says as CMDLOG_UNREACHABLE.
 */
int cmdlog_trim(struct cmdlog *log, cmdlog_position before) TL_MUST_USE;

/* Does a part of what appends will need, so that they need not wait for it. For a thread that has the time, beside all others. */
int cmdlog_preallocate(struct cmdlog *log) TL_MUST_USE;

/* Gives back what it holds beyond its entries, for use again. Beside who appends, who keeps what it counts on. */
int cmdlog_shrink(struct cmdlog *log) TL_MUST_USE;

/*
 * Notes where a checkpoint is, durably; it is the newest from now on, and the one before it the second newest. Positions only rise: one at the newest's position
 * takes its place, and one below it changes nothing (promise 5: what it needs may be trimmed). Where hosts share the log, each has its own.
 * Returns: 0; CMDLOG_UNREACHABLE: it is not noted, or it is; TL_ERR_IO.
 */
int cmdlog_put_checkpoint(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint) TL_MUST_USE;

/*
 * `back` 0: the newest checkpoint, 1: the one before it. Returns: 0, the place in `buffer` of CMDLOG_LOCATOR_MAX bytes; CMDLOG_NOT_FOUND; CMDLOG_UNREACHABLE;
 * fatal codes.
 */
int cmdlog_get_checkpoint(struct cmdlog *log, unsigned back, char *buffer, struct cmdlog_checkpoint *ret_checkpoint) TL_MUST_USE;

/* Makes all durable and notes that the log ends here, in good order. It can be appended to again when it was opened again. */
int cmdlog_seal(struct cmdlog *log) TL_MUST_USE;

/* Does not sync. NULL is fine. */
void cmdlog_close(struct cmdlog *log);

/* --- Implementations ---------------------------------------------------------------------------------------------- */

/* The first member of each implementation's own structure. */
struct cmdlog {
    const struct cmdlog_functions *functions;
    const struct cmdlog_shared_functions *shared; /* cmdlog_shared.h; NULL: it is one host's */
};

struct cmdlog_cursor {
    const struct cmdlog_functions *functions;
    const struct cmdlog_shared_functions *shared;
};

struct cmdlog_functions {
    int (*append)(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position);
    int (*sync)(struct cmdlog *log, cmdlog_position position);
    void (*head)(struct cmdlog *log, struct cmdlog_head *ret_head);
    int (*lineage)(struct cmdlog *log, cmdlog_position position, struct cmdlog_lineage *ret_lineage); /* NULL: hosts share it */
    int (*follow)(struct cmdlog *log, cmdlog_position from, struct cmdlog_cursor **ret_cursor);
    int (*next)(struct cmdlog_cursor *cursor, struct cmdlog_entry *ret_entry);
    void (*unfollow)(struct cmdlog_cursor *cursor);
    int (*trim)(struct cmdlog *log, cmdlog_position before);
    int (*preallocate)(struct cmdlog *log);
    int (*shrink)(struct cmdlog *log);
    int (*put_checkpoint)(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint);
    int (*get_checkpoint)(struct cmdlog *log, unsigned back, char *buffer, struct cmdlog_checkpoint *ret_checkpoint);
    int (*seal)(struct cmdlog *log);
    void (*close)(struct cmdlog *log);
};

#endif
