/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log that several hosts share: what it can do beside cmdlog.h. README.md, "A log that hosts share", has the promises.
 *
 *     cmdlog_join() ─▶ a life ─▶ cmdlog_submit() ─▶ cmdlog_outcome()          cmdlog_await() ─▶ cmdlog_next() ─▶ everybody's entries
 *
 * Any thread may call any of this at any time, but for a cursor, which is one thread's (cmdlog_interrupt() alone is everybody's). Who submits from several
 * threads gets some order of theirs.
 * Times called `until` are those of clock_boot_us(); CMDLOG_FOREVER waits without end. None of these calls waits longer than that.
 */
#ifndef TL_CMDLOG_CMDLOG_SHARED_H
#define TL_CMDLOG_CMDLOG_SHARED_H

#include "base/buf.h"
#include "cmdlog/cmdlog.h"

#define CMDLOG_FOREVER UINT64_MAX

enum {
    CMDLOG_HOST_NAME_MAX = 128,        /* bytes: a-z A-Z 0-9 . _ - */
    CMDLOG_ABOUT_MAX = 16 * 1024,      /* bytes that a host says of itself */
    CMDLOG_GENESIS_MAX = 256 * 1024,   /* bytes */
    CMDLOG_IN_FLIGHT_MAX = 2,          /* appends of a host at once */
    CMDLOG_SHARED_ENTRY_MAX = 1 << 30, /* bytes of an entry */
};

/* Returns: whether a host can have this name. */
bool cmdlog_is_host_name(struct slice name);

/* --- Lives -------------------------------------------------------------------------------------------------------- */

/*
 * What this host knows of its own life. It counts itself in until `until`: nine tenths of its lease from before it asked for it, the last
 * time that it was given it. Who looks at anything and then finds clock_boot_us() below `until` looked at it while nobody took this host for gone.
 */
struct cmdlog_lease {
    uint64_t life;  /* 0: never joined, or out */
    uint64_t until; /* of clock_boot_us() */
    uint64_t asked; /* when it was asked for that; of clock_boot_us() */
};

/* A host that is in: its key is there. */
struct cmdlog_host {
    struct slice name;
    uint64_t life;
    struct slice about; /* what it said when it joined */
};

/* Those that were in at one moment, by name. */
struct cmdlog_hosts {
    uint64_t version; /* rises when they change */
    size_t count;
    struct cmdlog_host hosts[];
};

/*
 * Begins a life of this host, under a lease that is kept alive from now on; one that went on is over.
 * Returns: 0; CMDLOG_EXISTS: a host of this name is in (it may be this one's life before, whose lease is not yet over); CMDLOG_UNREACHABLE: the log
 * could not be reached. A life is never given twice, and later ones are higher.
 */
int cmdlog_join(struct cmdlog *log, struct slice about, uint64_t until, uint64_t *ret_life) TL_MUST_USE;

/* Ends the life in good order: others see it at once. Returns: 0; CMDLOG_UNREACHABLE: they see it when its lease is over. */
int cmdlog_leave(struct cmdlog *log, uint64_t until) TL_MUST_USE;

/*
 * Ends another host's life, or one before of this host (who knows that its process is gone need not wait for its lease). What it has under
 * way is refused from then on. Returns: 0, also where it was over; CMDLOG_UNREACHABLE.
 */
int cmdlog_expel(struct cmdlog *log, struct slice name, uint64_t life, uint64_t until) TL_MUST_USE;

void cmdlog_lease(struct cmdlog *log, struct cmdlog_lease *ret_lease);

/*
 * Who is in. Waits until that is something else than `version`; 0: gives what is known.
 * Returns: 0; CMDLOG_END: nothing else until then; CMDLOG_UNREACHABLE: it was never known. Owns: the caller; mem_free.
 */
int cmdlog_list_hosts(struct cmdlog *log, uint64_t version, uint64_t until, struct cmdlog_hosts **ret_hosts) TL_MUST_USE;

/* --- Appending ---------------------------------------------------------------------------------------------------- */

/*
 * Begins to append an entry; its bytes are copied. A host's entries come into the log in the order in which they were submitted, and one
 * that does not come keeps all behind it out.
 * Returns: 0 and its number, by which it is known when it comes in the order (cmdlog_entry.number); CMDLOG_BUSY: CMDLOG_IN_FLIGHT_MAX are under
 * way until `until`; CMDLOG_FENCED: no life goes on; TL_ERR_NO_SPACE as cmdlog_append(); TL_ERR_STOPPED.
 */
int cmdlog_submit(struct cmdlog *log, const struct slice *parts, size_t count, uint64_t until,
               uint64_t *ret_number) TL_MUST_USE;

/*
 * What has become of it. Nobody need ask: the order tells, too.
 * Returns:
 *   0               it is in the log, durable, at *ret_position, or before it where an answer was lost.
 *   CMDLOG_BUSY        that is not known until `until`: it is under way still, and is seen to until it is known or the life is over.
 *   CMDLOG_FENCED         it is not in the log and never will be: the life is over.
 *   CMDLOG_UNKNOWN     the life is over, and an answer was lost. Who follows the log beyond *ret_position has seen it by then, or never will.
 *   TL_ERR_NO_SPACE it is not in the log and never will be.
 *   TL_ERR_STOPPED  as CMDLOG_UNKNOWN, without a position: the log is being closed, or the number was never given or long ago.
 */
int cmdlog_outcome(struct cmdlog *log, uint64_t number, uint64_t until, cmdlog_position *ret_position) TL_MUST_USE;

/* --- Following ---------------------------------------------------------------------------------------------------- */

/* Waits. Returns: 0: cmdlog_next() may have something to say; CMDLOG_END: nothing until then, or cmdlog_interrupt(). */
int cmdlog_await(struct cmdlog_cursor *cursor, uint64_t until) TL_MUST_USE;

/* Ends the wait of a cursor, now or the next time. From any thread. */
void cmdlog_interrupt(struct cmdlog_cursor *cursor);

/*
 * Returns: up to where the cursor has given everything that there is. This can be more than the position of the entry given last, where a part of
 * one came that is not whole yet, or never will be.
 */
cmdlog_position cmdlog_cursor_position(const struct cmdlog_cursor *cursor);

/*
 * The newest position, as of a moment not before the call: what anybody was told to be in the log by then is at or below it. A cursor
 * whose cmdlog_cursor_position() has come to it has given all of that.
 * Returns: 0; CMDLOG_UNREACHABLE.
 */
int cmdlog_read_head(struct cmdlog *log, uint64_t until, cmdlog_position *ret_position) TL_MUST_USE;

/* --- What all hosts must know --------------------------------------------------------------------------------------- */

/*
 * What the log begins with. Returns: 0 and the bytes, appended to `bytes`, with their position: the first entry is behind it;
 * CMDLOG_NOT_FOUND; CMDLOG_UNREACHABLE.
 */
int cmdlog_read_genesis(struct cmdlog *log, uint64_t until, struct buf *bytes, cmdlog_position *ret_position) TL_MUST_USE;

/* Returns: 0: it is this from now on, for ever; CMDLOG_EXISTS: there is one (it may be this, of a call whose answer was lost); CMDLOG_UNREACHABLE. */
int cmdlog_create_genesis(struct cmdlog *log, struct slice bytes, uint64_t until) TL_MUST_USE;

/* A host that has a checkpoint, in or not: a host that is known. */
struct cmdlog_known_host {
    struct slice name;
    struct cmdlog_checkpoint newest;
};

struct cmdlog_known_hosts {
    size_t count;
    struct cmdlog_known_host hosts[]; /* by name */
};

/* Returns: 0; CMDLOG_UNREACHABLE. Owns: the caller; mem_free. */
int cmdlog_list_checkpoints(struct cmdlog *log, uint64_t until, struct cmdlog_known_hosts **ret_hosts) TL_MUST_USE;

/* Forgets a host's checkpoints: the log is kept for it no more. Returns: 0, also where there is none; CMDLOG_UNREACHABLE. */
int cmdlog_forget_host(struct cmdlog *log, struct slice name, uint64_t until) TL_MUST_USE;

/* How full it is, in bytes; of one of those that keep it, as of the last time that was asked for, seconds ago. */
struct cmdlog_space {
    uint64_t used;  /* by what is kept */
    uint64_t size;  /* of the files */
    uint64_t quota; /* beyond which nothing can be appended */
    bool tight;     /* over 80 %: cmdlog_trim() leaves less */
    bool full;      /* over 90 %, or it says so itself: appends get TL_ERR_NO_SPACE */
};
void cmdlog_space(struct cmdlog *log, struct cmdlog_space *ret_space);

/* --- Implementations ---------------------------------------------------------------------------------------------- */

/* Returns: the position that the log is kept behind, by the rule of the README, "Trimming"; 0: all of it. */
cmdlog_position cmdlog_trim_bound(const struct cmdlog_known_hosts *known, uint64_t catch_up, bool tight);

struct cmdlog_shared_functions {
    int (*join)(struct cmdlog *log, struct slice about, uint64_t until, uint64_t *ret_life);
    int (*leave)(struct cmdlog *log, uint64_t until);
    int (*expel)(struct cmdlog *log, struct slice name, uint64_t life, uint64_t until);
    void (*lease)(struct cmdlog *log, struct cmdlog_lease *ret_lease);
    int (*list_hosts)(struct cmdlog *log, uint64_t version, uint64_t until, struct cmdlog_hosts **ret_hosts);
    int (*submit)(struct cmdlog *log, const struct slice *parts, size_t count, uint64_t until, uint64_t *ret_number);
    int (*outcome)(struct cmdlog *log, uint64_t number, uint64_t until, cmdlog_position *ret_position);
    int (*await)(struct cmdlog_cursor *cursor, uint64_t until);
    void (*interrupt)(struct cmdlog_cursor *cursor);
    cmdlog_position (*cursor_position)(const struct cmdlog_cursor *cursor);
    int (*read_head)(struct cmdlog *log, uint64_t until, cmdlog_position *ret_position);
    int (*read_genesis)(struct cmdlog *log, uint64_t until, struct buf *bytes, cmdlog_position *ret_position);
    int (*create_genesis)(struct cmdlog *log, struct slice bytes, uint64_t until);
    int (*list_checkpoints)(struct cmdlog *log, uint64_t until, struct cmdlog_known_hosts **ret_hosts);
    int (*forget_host)(struct cmdlog *log, struct slice name, uint64_t until);
    void (*space)(struct cmdlog *log, struct cmdlog_space *ret_space);
};

#endif
