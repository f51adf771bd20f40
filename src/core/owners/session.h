/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: owners of locks with a lease, and how they end (README-locks.md). */
#ifndef TL_CORE_SESSION_H
#define TL_CORE_SESSION_H

#include "base/buf.h"
#include "core/locks/lock.h"
#include "core/owners/deadline.h"
#include "core/owners/owner.h"

struct command;
struct core;
struct problem;
struct store;

#define SESSION_ACTIONS_MAX 1000

enum session_end { SESSION_END_CLOSED, SESSION_END_EXPIRED, SESSION_END_FORCED, SESSION_END_DETACHED };

/* How many documents of an index and type live with a session. */
struct ephemeral_counter {
    uint32_t index;
    uint16_t type;
    size_t count;
    bool orphaned; /* the index is deleted; upkeep removes the marks. Means nothing while none is counted */
};

struct session {
    struct owner owner;
    struct slice id;        /* mem_free */
    struct slice name;      /* mem_free; may be empty */
    struct slice on_expire; /* encoded actions (action.h), mem_free; may be empty */
    uint64_t ttl_us;
    tl_ts created;
    uint64_t attachment;      /* 0: none */
    struct deadline lease;    /* at TL_TS_MAX between opening the store and RESTART */
    struct list transactions; /* struct txn by of_session */
    struct list waits;        /* struct wait by of_session: its own and its writes', not its transactions' */
    size_t
        ephemeral_count; /* documents marked as living with it, while it lives: the sum of these that are not gone, and ... */
    size_t orphan_count;     /* ... of those that are: marks without a document */
    struct ephemeral_counter *ephemeral_counters; /* by index and type, in no order; mem_free */
    size_t ephemeral_counter_count;

    /* Its end, which takes more than one unit when many documents live with it. */
    bool terminating;           /* it is as good as gone, but for its locks */
    bool cleanup_pending;            /* and its transactions, actions and documents are still to be ended (owners->ending) */
    bool actions_finished;             /* all its actions are done, or are not to be */
    bool progress_stored;         /* the store knows that it is ending */
    bool locks_released;              /* its locks are released: what went with it is to be swept away, no more */
    enum session_end end_kind;   /* it ends */
    struct list of_terminating; /* in owners->leaving, or while it is ending in owners->ending */
    struct buf end_report;       /* of its end, so far */
    uint64_t script_steps_left;    /* of scripts, to all its actions together (update.h) */
    size_t actions_processed;  /* those that were done, kept or put aside, so far: */
    size_t actions_done;
    size_t actions_deferred;
    size_t actions_set_aside;
    struct buf first_failure;       /* why the first one failed that did */
    struct command *close_command; /* that waits for the end; NULL: none */
    size_t removed_count;    /* documents, so far */
    size_t deferred_count;     /* those that are kept, since others hold them */
};

/* Its public number: as short as can be, the same after a restart, no key to anything. Transactions have one likewise. */
static inline uint64_t session_number(const struct session *session)
{
    return session->owner.locks.number;
}

/* Returns: a session that is not over, by its public number as text, or NULL. Looks at all of them. */
struct session *session__by_number(const struct core *core, struct slice number);
/* Finds a session that lives. Returns: it, or NULL with *ret_problem in `arena`. */
struct session *session__find(struct core *core, struct slice id, struct arena *arena, struct problem *ret_problem);
/* Ends what waits for a session itself and for its writes, before anything could be granted to it. */
void session__cancel_waits(struct core *core, struct session *session);
/*
 * Ends a session in the open unit, as far as one piece goes. Returns: 0, it is over; 1, it is leaving, in pieces; fatal codes.
 */
int session__terminate(struct core *core, struct session *session, enum session_end how) TL_MUST_USE;
/*
 * Has a session end in pieces to come: it is as good as gone from now on, and what waits for it or for its transactions ends, in the
 * open unit.
 */
void session__begin_termination(struct core *core, struct session *session, enum session_end how);
/*
 * Goes on with the end of the first in owners->ending, in the open unit, while *left things may be done; takes off what it has done. Requires:
 * grants are withheld. Returns: 0; fatal codes.
 */
int session__continue_cleanup(struct core *core, size_t *left) TL_MUST_USE;
/* Tells the store of those in owners->ending that it does not know of yet. */
void session__store_progress(struct core *core);
/* It is as good as gone from now on. */
void session__set_terminating(struct core *core, struct session *session);
/* Sweeps away some documents of the first in owners->leaving, in the open unit. */
int session__purge_batch(struct core *core) TL_MUST_USE;
void session__free(struct core *core, struct session *session);
/* Counts documents that are marked as living with a session, more or fewer, while there is such a session. */
void session__count_ephemeral(struct core *core, struct slice id, uint32_t index, uint16_t type, int change);
/* Nobody who came by this host can give back a lock any more: whoever waits there is told so. */
void owners__cancel_host(struct core *core, uint64_t host, const char *why);
/* A host came up, by its number. */
int session__restart(struct core *core, uint64_t host) TL_MUST_USE;

/* session_store.c: records in SPACE_SYSTEM. */
void session__put_record(struct core *core, const struct session *session);
void session__drop_record(struct core *core, const struct session *session);
/* Has upkeep remove the marks that are left of a session at its end, which are of deleted indices. */
void session__put_orphan_purge(struct core *core, const struct session *session);
/* How far an end in pieces has come. */
void session__put_progress(struct core *core, const struct session *session);
void session__drop_progress(struct core *core, const struct session *session);
/* Returns: 0 a session lives, by its record; STORE_NOT_FOUND; fatal codes. On any thread. */
int session__check_stored(struct store *store, struct slice id) TL_MUST_USE;
/* A lock came, changed or goes; the hook of the table. */
void session__lock_changed(void *context, const struct lock_hold *hold, bool gone);
int session__load_all(struct core *core) TL_MUST_USE;
/* Counts the ephemeral documents of deleted indices as gone, after sessions were read with all their counts. */
void session__find_orphans(struct core *core);
/* Makes a session with everything but its place in the maps. */
struct session *session__make(struct core *core, struct slice id, struct slice name, uint64_t ttl_us, tl_ts created);

#endif
