/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command log: an ordered, durable sequence of entries. README.md has the guarantees, cited
 * here by number.
 *
 *     cmdlog_append() ─▶ written ─▶ cmdlog_sync() ─▶ durable
 *     cmdlog_follow() ─▶ cmdlog_next() ─▶ entries in log order
 *
 * At a time, one thread may append and one may sync, concurrently with each other and with any
 * number of cursors. A log that several hosts share offers more (cmdlog_shared.h); there, several
 * threads may append.
 */
#ifndef TL_CMDLOG_CMDLOG_H
#define TL_CMDLOG_CMDLOG_H

#include "base/error.h"
#include "base/slice.h"

/* Identifies an entry. Positions increase in log order (guarantee 1); 0 precedes every entry. */
typedef uint64_t cmdlog_position;

struct cmdlog;
struct cmdlog_cursor;

enum {
    CMDLOG_END = 1,   /* no further entry yet */
    CMDLOG_TRIMMED,   /* the requested entries have been trimmed */
    CMDLOG_NOT_FOUND, /* does not exist */
    /* Only of a log that hosts share: */
    CMDLOG_UNREACHABLE, /* the log could not be reached in time */
    CMDLOG_BUSY,        /* too many appends in flight, or the outcome is not known yet */
    CMDLOG_FENCED,      /* this host's life has ended: the log rejects its appends */
    CMDLOG_UNKNOWN,     /* the entry may or may not be in the log; a cursor shows which */
    CMDLOG_EXISTS,      /* exists already */
    CMDLOG_REFUSED,     /* hosts prevent it */
};

struct cmdlog_entry {
    cmdlog_position position;
    struct slice bytes;
    /* The host that appended it; empty, 0, 0, 0 unless hosts share the log. */
    struct slice host;  /* valid as long as `bytes` */
    uint64_t life;      /* of that host */
    uint64_t number;    /* increases with each entry of a host, across its lives */
    uint64_t submitted; /* time of submission by that host's wall clock, in microseconds */
};

/*
 * The state that this process knows of. If hosts share the log it may be stale; cmdlog_read_head()
 * is linearizable.
 */
struct cmdlog_head {
    cmdlog_position oldest;   /* the oldest entry; appended + 1: none */
    cmdlog_position appended; /* the newest entry; 0: none */
    cmdlog_position durable;  /* the newest durable entry */
    bool sealed;
    bool wants_space; /* cmdlog_preallocate() should be called soon, or a later append allocates; no thread is in it */
};

/* Describes a checkpoint: the state after the entry at `position`. */
struct cmdlog_checkpoint {
    cmdlog_position position;
    struct slice locator; /* opaque; where the data is; at most CMDLOG_LOCATOR_MAX bytes */
    /*
     * Size of all entries up to `position`, counted by the caller; only differences matter. 0
     * unless hosts share the log.
     */
    uint64_t log_bytes;
};

enum { CMDLOG_LOCATOR_MAX = 4096, CMDLOG_IDENTITY_BYTES = 16 };

/*
 * Identifies a log's content up to an entry. A state stores the lineage of the entry that it
 * includes last, so that it is never continued from a different log.
 */
struct cmdlog_lineage {
    /* Random; shared by a log and every log created to continue it; zeros: unknown. */
    char identity[CMDLOG_IDENTITY_BYTES];
    uint32_t history_crc; /* covers the entry and, by chaining, all before it; 0: unknown */
};

/*
 * Appends one entry, the concatenation of `parts`.
 * Requires: the log is neither read-only nor sealed since it was opened; at least one byte.
 * Ensures: the entry survives the end of this process (guarantee 2). If hosts share the log, it is
 * durable.
 * Returns:
 *   0                the entry's position; if the reply was lost, that of a later entry of this host.
 *   TL_ERR_NO_SPACE  nothing was written; retry when there is space.
 *   TL_ERR_IO        the entry may be in the log, as the next opening finds. Later appends fail.
 * If hosts share the log: 0, TL_ERR_NO_SPACE; CMDLOG_FENCED, CMDLOG_UNKNOWN, TL_ERR_STOPPED as
 * cmdlog_outcome(). Waits without limit.
 */
int cmdlog_append(struct cmdlog *log, const struct slice *parts, size_t count,
                  cmdlog_position *ret_position) TL_MUST_USE;

/*
 * Waits until all entries up to `position` are durable.
 * Returns: 0; TL_ERR_IO: nothing more may be acknowledged; every later sync and append fails
 * (invariant 7).
 */
int cmdlog_sync(struct cmdlog *log, cmdlog_position position) TL_MUST_USE;

void cmdlog_head(struct cmdlog *log, struct cmdlog_head *ret_head);

/*
 * Finds the lineage of an entry. Reads the entry, unless it is the newest.
 * Ensures: the checksum is 0 if the log does not have the entry (any more). All is 0 if hosts share
 * the log.
 * Returns: 0; TL_ERR_CORRUPT, TL_ERR_IO.
 */
int cmdlog_lineage(struct cmdlog *log, cmdlog_position position, struct cmdlog_lineage *ret_lineage) TL_MUST_USE;
/* Returns: whether two lineages can belong to the same log; an unknown part matches anything. */
bool cmdlog_lineage_fits(const struct cmdlog_lineage *a, const struct cmdlog_lineage *b);

/*
 * Opens a cursor at position `from`, or at the next entry after it if no entry has this position.
 * Returns: 0; CMDLOG_TRIMMED; fatal codes. Owns: the caller, by cmdlog_unfollow() before the log is
 * closed.
 */
int cmdlog_follow(struct cmdlog *log, cmdlog_position from, struct cmdlog_cursor **ret_cursor) TL_MUST_USE;

/*
 * Reads the cursor's next entry.
 * Returns: 0 and the entry, its bytes valid until the next call; CMDLOG_END: no further entry yet;
 * CMDLOG_TRIMMED; TL_ERR_CORRUPT, TL_ERR_IO.
 */
int cmdlog_next(struct cmdlog_cursor *cursor, struct cmdlog_entry *ret_entry) TL_MUST_USE;
/*
 * Returns: the size of the log after the entry read last, with its headers; before the first cmdlog_next(), of
 * all that it reads, which may include earlier entries. 0: unknown, since hosts share the log.
 * Assumes: no append is in progress.
 */
uint64_t cmdlog_unread_bytes(struct cmdlog_cursor *cursor);
/* Frees a cursor; NULL is allowed. */
void cmdlog_unfollow(struct cmdlog_cursor *cursor);

/*
 * Permits the log to discard entries below `before`. It may keep some of them; if hosts share the
 * log, it keeps those that hosts still need (README.md, "Trimming").
 * Requires: `before` is at most the newest checkpoint's position + 1 (guarantee 5).
 * Returns: 0; CMDLOG_UNREACHABLE: hosts share the log, which could not be reached; fatal codes.
 */
int cmdlog_trim(struct cmdlog *log, cmdlog_position before) TL_MUST_USE;

/*
 * Allocates space for later appends in advance, so that they need not wait for it. Any thread,
 * concurrently with all others.
 */
int cmdlog_preallocate(struct cmdlog *log) TL_MUST_USE;

/*
 * Frees preallocated space, except what an append in progress has reserved. Any thread,
 * concurrently with all others.
 */
int cmdlog_shrink(struct cmdlog *log) TL_MUST_USE;

/*
 * Records a checkpoint durably as the newest; the previous one becomes the second newest. One at
 * the newest's position replaces that. One below it is ignored: entries that it needs may be
 * trimmed (guarantee 5). If hosts share the log, each host has its own checkpoints. The first one recorded
 * through `log` makes the host known. If the host has been forgotten since (cmdlog_forget_host()), later ones do so
 * only while it is a member; no attempt of theirs does that later, also one whose reply was lost.
 * Requires: the entry at its position is durable.
 * Returns: 0; CMDLOG_FENCED: the host was forgotten, and is no member; CMDLOG_UNREACHABLE: it may or may not be
 * recorded; TL_ERR_IO.
 */
int cmdlog_put_checkpoint(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint) TL_MUST_USE;

/*
 * Finds a checkpoint; `back` 0: the newest, 1: the one before it. Its locator is copied into
 * `buffer` of CMDLOG_LOCATOR_MAX bytes.
 * Returns: 0; CMDLOG_NOT_FOUND; CMDLOG_UNREACHABLE; fatal codes.
 */
int cmdlog_get_checkpoint(struct cmdlog *log, unsigned back, char *buffer,
                          struct cmdlog_checkpoint *ret_checkpoint) TL_MUST_USE;

/*
 * Makes all entries durable and records a clean end of the log. Later appends need a new opening.
 */
int cmdlog_seal(struct cmdlog *log) TL_MUST_USE;

/* Closes and frees the log without a sync; NULL is allowed. */
void cmdlog_close(struct cmdlog *log);

/* --- Implementations ---------------------------------------------------------------------------------------------- */

/* The first member of each implementation's structure. */
struct cmdlog {
    const struct cmdlog_functions *functions;
    const struct cmdlog_shared_functions *shared; /* NULL: one host's log */
};

struct cmdlog_cursor {
    const struct cmdlog_functions *functions;
    const struct cmdlog_shared_functions *shared;
};

/* Each as the call of its name. `lineage` and `unread_bytes` are NULL if hosts share the log. */
struct cmdlog_functions {
    int (*append)(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position);
    int (*sync)(struct cmdlog *log, cmdlog_position position);
    void (*head)(struct cmdlog *log, struct cmdlog_head *ret_head);
    int (*lineage)(struct cmdlog *log, cmdlog_position position, struct cmdlog_lineage *ret_lineage);
    int (*follow)(struct cmdlog *log, cmdlog_position from, struct cmdlog_cursor **ret_cursor);
    int (*next)(struct cmdlog_cursor *cursor, struct cmdlog_entry *ret_entry);
    uint64_t (*unread_bytes)(struct cmdlog_cursor *cursor);
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
