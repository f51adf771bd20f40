/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command log that several hosts share: the calls beyond cmdlog.h. README.md, "A shared log", has
 * the guarantees.
 *
 *     cmdlog_join() ─▶ a life ─▶ cmdlog_submit() ─▶ cmdlog_outcome()
 *     cmdlog_await() ─▶ cmdlog_next() ─▶ all hosts' entries
 *
 * A host appends during a *life*: one incarnation of the host as a member of the cluster, held
 * under a lease. After its end the log rejects its entries (fencing).
 *
 * Any thread may make any of these calls at any time, except that a cursor belongs to one thread;
 * cmdlog_interrupt() is for all threads. Entries submitted by several threads are ordered in an
 * unspecified way. Times named `until` are those of clock_boot_us(); no call waits longer.
 * CMDLOG_FOREVER: no limit.
 */
#ifndef TL_CMDLOG_CMDLOG_SHARED_H
#define TL_CMDLOG_CMDLOG_SHARED_H

#include "base/buf.h"
#include "cmdlog/cmdlog.h"

#define CMDLOG_FOREVER UINT64_MAX

enum {
    CMDLOG_HOST_NAME_MAX = 128,        /* bytes: a-z A-Z 0-9 . _ - */
    CMDLOG_ABOUT_MAX = 16 * 1024,      /* bytes of cmdlog_host.about */
    CMDLOG_GENESIS_MAX = 256 * 1024,   /* bytes */
    CMDLOG_IN_FLIGHT_MAX = 2,          /* appends of a host in flight */
    CMDLOG_SHARED_ENTRY_MAX = 1 << 30, /* bytes of an entry */
};

/* Returns: whether `name` is a valid name of a host. */
bool cmdlog_is_host_name(struct slice name);

/* Of implementations: copies bytes to the tail of an allocation and advances the tail. Returns: the copy. */
struct slice cmdlog_copy_to_tail(char **tail, struct slice bytes);

/* --- Lives -------------------------------------------------------------------------------------------------------- */

/*
 * This host's view of its own life. `until` is conservative: nine tenths of the lease, counted from
 * before the request that last renewed it. So a host that reads state and then finds
 * clock_boot_us() below `until` was still a member when it read.
 */
struct cmdlog_lease {
    uint64_t life;  /* 0: never joined, or ended */
    uint64_t until; /* of clock_boot_us() */
    uint64_t asked; /* time of the request that last renewed it, of clock_boot_us() */
};

/* A member: a host whose life has not ended. */
struct cmdlog_host {
    struct slice name;
    uint64_t life;
    struct slice about; /* opaque, given to cmdlog_join() */
};

/* The members at one time, by name. */
struct cmdlog_hosts {
    uint64_t version; /* increases with each change */
    uint64_t asked;   /* boot clock; every life that had begun by then is listed, unless it has ended */
    size_t count;
    struct cmdlog_host hosts[];
};

/*
 * Begins a life of this host and keeps its lease alive; an earlier life of this log object ends
 * first.
 * Returns: 0 and the life, higher than all before; CMDLOG_EXISTS: a member has this name, perhaps
 * an earlier process of this host whose lease has not expired; CMDLOG_UNREACHABLE; TL_ERR_NO_SPACE.
 */
int cmdlog_join(struct cmdlog *log, struct slice about, uint64_t until, uint64_t *ret_life) TL_MUST_USE;

/*
 * Ends this host's life. Returns: 0: other hosts see it at once; CMDLOG_UNREACHABLE: they may see
 * it only when the lease expires.
 */
int cmdlog_leave(struct cmdlog *log, uint64_t until) TL_MUST_USE;

/*
 * Ends the life of another host, or one of an earlier process of this host, without waiting for its
 * lease. Its appends in flight are rejected from then on. Returns: 0, also if the life had ended
 * already; CMDLOG_UNREACHABLE.
 */
int cmdlog_expel(struct cmdlog *log, struct slice name, uint64_t life, uint64_t until) TL_MUST_USE;

void cmdlog_lease(struct cmdlog *log, struct cmdlog_lease *ret_lease);

/*
 * Lists the members. Waits until their version differs from `version`; 0: returns the current list.
 * Returns: 0; CMDLOG_END: unchanged until then; CMDLOG_UNREACHABLE: not known yet. Owns: the
 * caller; mem_free.
 */
int cmdlog_list_hosts(struct cmdlog *log, uint64_t version, uint64_t until,
                      struct cmdlog_hosts **ret_hosts) TL_MUST_USE;

/* --- Appending ---------------------------------------------------------------------------------------------------- */

/*
 * Starts to append an entry; its bytes are copied. A host's entries enter the log in the order of
 * submission; none enters before its predecessor.
 * Returns: 0 and its number, which identifies it in the log (cmdlog_entry.number); CMDLOG_BUSY:
 * CMDLOG_IN_FLIGHT_MAX appends were in flight until `until`; CMDLOG_FENCED: this host has no life;
 * TL_ERR_NO_SPACE as cmdlog_append(), if there is no space for the entry; TL_ERR_STOPPED: the log is being closed.
 */
int cmdlog_submit(struct cmdlog *log, const struct slice *parts, size_t count, uint64_t until,
                  uint64_t *ret_number) TL_MUST_USE;

/*
 * Waits until none of this host's appends is in flight. So a caller can collect meanwhile what its next entry has.
 * Returns: 0, also if cmdlog_submit() does not wait for another reason; CMDLOG_BUSY: one was in flight until then.
 */
int cmdlog_await_slot(struct cmdlog *log, uint64_t until) TL_MUST_USE;

/*
 * Waits for the outcome of a submitted entry. A caller that follows the log need not call it: the
 * entry appears there.
 * Returns:
 *   0                in the log and durable, at *ret_position; before it if a reply was lost.
 *   CMDLOG_BUSY      not known until `until`; the entry stays in flight.
 *   CMDLOG_FENCED    never in the log: the life has ended.
 *   CMDLOG_UNKNOWN   the life has ended and a reply was lost: either in the log, at or before
 *                    *ret_position, or never.
 *   TL_ERR_NO_SPACE  never in the log.
 *   TL_ERR_STOPPED   not known: the log is being closed, or the number is unknown or too old.
 * Requires: `number` is of cmdlog_submit().
 */
int cmdlog_outcome(struct cmdlog *log, uint64_t number, uint64_t until, cmdlog_position *ret_position) TL_MUST_USE;

/* --- Following ---------------------------------------------------------------------------------------------------- */

/*
 * Waits for input. Returns: 0: cmdlog_next() may have a result; CMDLOG_END: nothing until then, or
 * cmdlog_interrupt().
 */
int cmdlog_await(struct cmdlog_cursor *cursor, uint64_t until) TL_MUST_USE;

/* Ends a cursor's current wait or its next one. From any thread. */
void cmdlog_interrupt(struct cmdlog_cursor *cursor);

/*
 * Returns: the position up to which the cursor has returned all entries. It exceeds the position of
 * the last entry when the cursor has read parts of an incomplete entry after it.
 */
cmdlog_position cmdlog_cursor_position(const struct cmdlog_cursor *cursor);

/*
 * Asks for the newest position (linearizable, as Raft's ReadIndex): every entry acknowledged to any
 * host before the call is at or before it. A cursor has returned all of those when
 * cmdlog_cursor_position() reaches it.
 * Returns: 0; CMDLOG_UNREACHABLE.
 */
int cmdlog_read_head(struct cmdlog *log, uint64_t until, cmdlog_position *ret_position) TL_MUST_USE;

/* --- Metadata of the cluster -------------------------------------------------------------------------------------- */

/*
 * Reads the genesis, a record written once when the cluster is created.
 * Returns: 0 and its bytes, appended to `bytes`, and its position, which precedes all entries;
 * CMDLOG_NOT_FOUND; CMDLOG_UNREACHABLE.
 */
int cmdlog_read_genesis(struct cmdlog *log, uint64_t until, struct buf *bytes,
                        cmdlog_position *ret_position) TL_MUST_USE;

/*
 * Writes the genesis. Returns: 0; CMDLOG_EXISTS: the log has one, perhaps written by an attempt of
 * this call whose reply was lost; CMDLOG_UNREACHABLE.
 */
int cmdlog_create_genesis(struct cmdlog *log, struct slice bytes, uint64_t until) TL_MUST_USE;

/* A known host: one that has a checkpoint, whether or not it is a member. */
struct cmdlog_known_host {
    struct slice name;
    struct cmdlog_checkpoint newest;
};

struct cmdlog_known_hosts {
    size_t count;
    struct cmdlog_known_host hosts[]; /* by name */
};

/*
 * Lists all known hosts. Returns: 0; CMDLOG_UNREACHABLE; fatal codes. Owns: the caller; mem_free.
 */
int cmdlog_list_checkpoints(struct cmdlog *log, uint64_t until, struct cmdlog_known_hosts **ret_hosts) TL_MUST_USE;

/*
 * Deletes a host's checkpoints, so that the log is no longer retained for it. Returns: 0, also if
 * it has none; CMDLOG_EXISTS: it is a member, and keeps them; CMDLOG_UNREACHABLE.
 */
int cmdlog_forget_host(struct cmdlog *log, struct slice name, uint64_t until) TL_MUST_USE;

/* --- Skipped entries ---------------------------------------------------------------------------------------------- */

/*
 * Records that this host has halted before an entry: it has never applied the entry, and will not
 * apply it before cmdlog_resume(). README.md, "Skipped entries". No attempt takes effect after the next
 * cmdlog_resume(), also one whose reply was lost, or whose process has ended.
 * Returns: 0; CMDLOG_UNREACHABLE: it may or may not be recorded; TL_ERR_NO_SPACE; fatal codes.
 */
int cmdlog_halt(struct cmdlog *log, cmdlog_position position, uint64_t until) TL_MUST_USE;
/* Withdraws that record, if there is one. Returns: as cmdlog_halt(). */
int cmdlog_resume(struct cmdlog *log, uint64_t until) TL_MUST_USE;

/* Why a skip is refused. */
struct cmdlog_skip_refusal {
    bool applied;     /* `hosts` have checkpoints with the entry; false: they have not halted at it */
    struct buf hosts; /* their names, each followed by a blank; initialized by the caller */
};

/*
 * Skips an entry: no host ever applies it.
 * Requires: this host has halted at it.
 * Returns: 0; CMDLOG_EXISTS: it is skipped already; CMDLOG_REFUSED with *ret_refusal;
 * CMDLOG_UNREACHABLE: it may or may not be skipped; TL_ERR_NO_SPACE; fatal codes.
 */
int cmdlog_skip(struct cmdlog *log, cmdlog_position position, uint64_t until,
                struct cmdlog_skip_refusal *ret_refusal) TL_MUST_USE;

struct cmdlog_skips {
    size_t count;
    cmdlog_position positions[]; /* rising */
};

/* Lists all skipped entries. Linearizable. Returns: 0; CMDLOG_UNREACHABLE; fatal codes. Owns: mem_free. */
int cmdlog_list_skips(struct cmdlog *log, uint64_t until, struct cmdlog_skips **ret_skips) TL_MUST_USE;
/* Returns: whether an entry is skipped. `skips` NULL: none is. */
bool cmdlog_is_skipped(const struct cmdlog_skips *skips, cmdlog_position position);

/*
 * Storage of one of the log's servers, in bytes, as of its last report, and what this host has
 * submitted since. README.md, "Space".
 */
struct cmdlog_space {
    uint64_t used;  /* by live data */
    uint64_t size;  /* of the files, with free space inside them */
    uint64_t quota; /* the limit, at which the server accepts nothing; 0: nothing has been reported yet */
    enum { QUOTA_REPORTED, QUOTA_OF_OPTION, QUOTA_ASSUMED } quota_source;
    /* By `size` less half of the free space in it. `full`, too, if the largest entries have no space. */
    bool tight;     /* over 80 %: a checkpoint is due, and cmdlog_trim() retains less */
    bool full;      /* over 90 %, and then until it is below 85 %: hosts must not add data */
    bool scarce;    /* over 95 %: hosts append only what keeps them members, such as heartbeats */
    bool exhausted; /* an alarm, or not even small entries have space in `size` */
};
void cmdlog_space(struct cmdlog *log, struct cmdlog_space *ret_space);

/* --- Implementations ---------------------------------------------------------------------------------------------- */

/*
 * Applies the retention rule of README.md, "Trimming". Returns: the position up to which the log
 * may be trimmed, inclusive; 0: nothing.
 */
cmdlog_position cmdlog_trim_bound(const struct cmdlog_known_hosts *known, uint64_t catch_up, bool tight);

/* Each as the call of its name. */
struct cmdlog_shared_functions {
    int (*join)(struct cmdlog *log, struct slice about, uint64_t until, uint64_t *ret_life);
    int (*leave)(struct cmdlog *log, uint64_t until);
    int (*expel)(struct cmdlog *log, struct slice name, uint64_t life, uint64_t until);
    void (*lease)(struct cmdlog *log, struct cmdlog_lease *ret_lease);
    int (*list_hosts)(struct cmdlog *log, uint64_t version, uint64_t until, struct cmdlog_hosts **ret_hosts);
    int (*submit)(struct cmdlog *log, const struct slice *parts, size_t count, uint64_t until, uint64_t *ret_number);
    int (*await_slot)(struct cmdlog *log, uint64_t until);
    int (*outcome)(struct cmdlog *log, uint64_t number, uint64_t until, cmdlog_position *ret_position);
    int (*await)(struct cmdlog_cursor *cursor, uint64_t until);
    void (*interrupt)(struct cmdlog_cursor *cursor);
    cmdlog_position (*cursor_position)(const struct cmdlog_cursor *cursor);
    int (*read_head)(struct cmdlog *log, uint64_t until, cmdlog_position *ret_position);
    int (*read_genesis)(struct cmdlog *log, uint64_t until, struct buf *bytes, cmdlog_position *ret_position);
    int (*create_genesis)(struct cmdlog *log, struct slice bytes, uint64_t until);
    int (*list_checkpoints)(struct cmdlog *log, uint64_t until, struct cmdlog_known_hosts **ret_hosts);
    int (*forget_host)(struct cmdlog *log, struct slice name, uint64_t until);
    int (*halt)(struct cmdlog *log, cmdlog_position position, uint64_t until); /* 0: resume */
    int (*skip)(struct cmdlog *log, cmdlog_position position, uint64_t until, struct cmdlog_skip_refusal *ret_refusal);
    int (*list_skips)(struct cmdlog *log, uint64_t until, struct cmdlog_skips **ret_skips);
    void (*space)(struct cmdlog *log, struct cmdlog_space *ret_space);
};

#endif
