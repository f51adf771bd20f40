/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits: commands, and deferred cleanup actions, that wait for their locks.
 *
 * A wait begins with wait__acquire() and wait__park(). It ends in one of four ways: its locks are
 * granted, its deadline passes, it is the victim of a deadlock, or its owner or its host ends.
 * A granted command resumes in a unit of its own, as soon as the steps have capacity for it
 * (README-locks.md, "Waiting" and "Requests").
 *
 * 1. A wait that is parked or ready is in owners->waits, and its session and its transaction know it;
 *    CANCEL finds it by the number of its command, if it has one.
 * 2. A wait that has ended is in owners->waits and ->ready only, until it is answered: it has no
 *    owner, request, session or transaction.
 * 3. A transaction has at most one wait, and its idle time does not run meanwhile.
 * 4. Only the functions of wait.c change its state; grants.h and ask.h decide when.
 */
#ifndef TL_CORE_WAIT_H
#define TL_CORE_WAIT_H

#include "base/magic.h"
#include "core/locks/lock.h"
#include "core/session/deadline.h"
#include "core/session/owner.h"
#include "core/session/save_chunk.h"
#include "core/command/command.h"

struct wait;
struct core;
struct session;
struct txn;

/*
 * Callbacks of a command that waits for locks; its row in commands.def selects them. Each ends the
 * wait or enqueues it as ready. A callback that completes the command has freed the wait.
 */
struct wait_ops {
    /* Its locks were granted. Runs in the unit that released them. Returns: 0; fatal codes. */
    int (*on_grant)(struct core *core, struct wait *wait);
    /*
     * Resumes a ready command in a unit of its own. Returns: 0, done and the wait freed;
     * CORE_WAITS; fatal codes.
     */
    int (*resume)(struct core *core, struct wait *wait);
    /* Its deadline has passed. Returns: 0; fatal codes. */
    int (*on_timeout)(struct core *core, struct wait *wait);
    /* It is the victim of a deadlock, which its cause describes. */
    void (*on_deadlock)(struct core *core, struct wait *wait);
    /* Answers an ended wait with its cause. Returns: as resume(). NULL: wait__answer(). */
    int (*answer)(struct core *core, struct wait *wait);
};
/* Why many waits end together, in batches. Values are permanent: checkpoints have them. */
enum wait_cancel {
    WAIT_NOT_CANCELLED,
    WAIT_HOST_STOPS,
    WAIT_HOST_GONE,
    WAIT_SESSION_ENDED,
    /* It does not end, but is kept in its turn, since its host stops, or is gone. A cause to end replaces these. */
    WAIT_PLACE_KEPT,
    WAIT_PLACE_KEPT_GONE,
    WAIT_CANCEL_COUNT
};

/*
 * A command that waits for its locks. It has two later states, both in owners->ready:
 * - *ready*: its locks are granted; it resumes in this step or a later one.
 * - *ended*: it failed for its cause, and its reply is pending. It has no owner and no request, and
 *   no lookup finds it.
 * A wait that has not ended may be *cancelled*: it is in owners->cancelled and ends in a later step
 * of the core. Until then it keeps its positions in the queues. If its locks are granted before, it
 * ends at once and the locks are released; it never runs.
 */
/*
 * The state of a wait; wait.c has the table of transitions.
 *
 *     new ─▶ parked ─┬─▶ ready ─┬─▶ parked       its command runs, and may wait again
 *                    │          └─▶ ended
 *                    └─▶ ended                   freed from each of them
 *
 * It follows from `ended`, `ready` and the membership in owners->waits, which only wait.c changes;
 * what reads a checkpoint refuses impossible ones.
 */
enum wait_state {
    WAIT_NEW,    /* in no list; its command may still complete at once */
    WAIT_PARKED, /* it waits for its locks, or its command runs with them */
    WAIT_READY,
    WAIT_ENDED,
    WAIT_FREED,
    WAIT_STATE_COUNT
};

/* Of no catalog: the names are resolved again. */
#define WAIT_NAMES_AGAIN UINT64_MAX

#define WAIT_MAGIC MAGIC('W', 'a', 'i', 't')

struct wait {
    uint32_t magic; /* WAIT_MAGIC */
    const struct wait_ops *ops;
    struct owner *write_owner; /* of a write_wait; NULL: not one, or ended */
    struct lock_owner *owner;  /* of `request`; NULL: it has ended */
    struct command *command;   /* NULL: a deferred cleanup action */
    struct deferred *deferred; /* the deferred action; NULL: it has a command */
    /* NULL: ended, a ready deferred action that needs no lock, or the next batch of a write */
    struct lock_request *request;
    struct session *session;  /* whose end ends the wait; NULL: none */
    struct txn *txn;          /* whose end ends the wait; NULL: none */
    struct deadline deadline; /* set while it waits */
    uint64_t until;           /* its deadline by the clock, in us; 0: it has not waited for its locks yet */
    uint64_t since;           /* when it, or its current batch, requested its locks, by the clock, in us */
    tl_ts since_ts;           /* timestamp of that unit */
    size_t bytes;             /* of the wait and its command, counted in owners->wait_bytes */
    size_t queue_position;    /* requests that preceded it when it began to wait */
    bool ready;               /* it is in owners->ready */
    bool ended;               /* in owners->ready only to be answered with its cause */
    uint64_t ready_number;    /* orders owners->ready; 0: it was never ready */
    uint64_t names_epoch;     /* LOCK: core->names_epoch when its names were resolved, or WAIT_NAMES_AGAIN */
    tl_ts granted_ts;         /* of a grant that did not complete it, see `kept`; of a write only then; 0: none */
    bool reported;            /* reported as a slow wait (report.c) */
    /*
     * LOCK of a session, or named write of no client's transaction, parked: its client was lost, or answered, at an
     * end of its host, and may repeat the request, by any host, which then takes over this wait (README-locks.md,
     * "Kept places"). With granted_ts it has its locks until then. Else granted_ts is of a grant that is undone: its
     * names changed their meaning, or it is cancelled.
     */
    bool kept;
    enum wait_cancel cancelled;
    uint64_t cancel_number; /* orders owners->cancelled; 0: not cancelled */
    struct problem *cause;  /* why it fails, in the command's arena; NULL: it does not fail */
    /* Bulk: items still to run, in a transaction the last ones; command's arena; NULL: all */
    bool *pending_items;
    struct list of_all;       /* in owners->waits, in order of arrival */
    struct list of_session;   /* in session->waits */
    struct list of_resolved;  /* in session->resolved_waits */
    struct list of_name;      /* named write: the ring of those that wait by its ID and part, in order of arrival */
    struct list link;         /* in owners->ready */
    struct list of_cancelled; /* in owners->cancelled */
    struct save_member saved; /* in owners->wait_chunks while it is in owners->waits */
};

/* A deferred cleanup: one action of on_expire, or the removal of one ephemeral document. */
struct deferred {
    struct list of_all;   /* in owners->deferred, oldest first */
    uint64_t number;      /* increases with age */
    bool removal;         /* of an ephemeral document; else an action of on_expire */
    bool set_aside;       /* not run until ASIDE retries it (cleanup_attempt.h) */
    tl_ts ended;          /* when its session ended */
    struct slice session; /* id of that session; mem_free, all three */
    struct slice name;
    struct slice action;        /* encoded (action.h), one item */
    struct wait *wait;          /* NULL: set aside, or in owners->unrequested */
    struct list of_unrequested; /* in owners->unrequested, between a conversion and RESTART */
};

/* The wait of an autocommit write, which is a lock owner itself. */
struct write_wait {
    struct wait wait;
    struct owner owner; /* OWNER_WRITE */
};

/*
 * Makes a wait for a command (NULL: for a deferred action). With `owner` NULL it becomes a
 * write_wait, with an owner of its own that belongs to `session` (NULL: to none).
 * Owns: the caller; wait__free().
 */
struct wait *wait__new(struct core *core, struct command *command, struct lock_owner *owner, struct session *session,
                       struct txn *txn);
/* Returns: its state. */
enum wait_state wait__state(const struct wait *wait);
/*
 * Requests locks, in place of its previous request. Requires: it has not ended and is not ready.
 * Returns: as lock_request_start().
 */
int wait__acquire(struct core *core, struct wait *wait, const struct lock_spec *specs, size_t count,
                  bool may_wait) TL_MUST_USE;
/*
 * Begins to wait until `deadline`, in us by the clock; TL_TS_MAX: without end.
 * Requires: its request waits.
 */
void wait__park(struct core *core, struct wait *wait, uint64_t deadline);
/*
 * Registers a wait in the lists of all waits, of its session and of its transaction. The request of
 * a loaded wait is restored by the caller. With `named`, CANCEL finds it by its command's number.
 */
void wait__restore(struct core *core, struct wait *wait, bool named);
/* Makes a loaded wait that has ended. Owns: the wait takes the command. */
struct wait *wait__restore_ended(struct core *core, struct command *command);
/* Returns: the reason in the reply to a wait that ends, or is kept, for such a cause; NULL: the cause has none. */
const char *wait__cancel_text(enum wait_cancel cause);
/* Whether a wait is to be kept in its turn. */
bool wait__is_to_be_kept(const struct wait *wait);
/*
 * Keeps the place of a LOCK, or of a named write, whose client is lost, or is answered now, since its host ends or was
 * out of the cluster, until `until` or its own deadline, if that is earlier. CANCEL no longer finds it by its number.
 * A write that is ready has its locks: it is kept until `until`, whatever its own deadline.
 * Requires: it is parked, or a ready write, and not cancelled, or to be kept; a LOCK belongs to a session, and a write
 * is of no client's transaction, and has not begun.
 */
void wait__keep(struct core *core, struct wait *wait, uint64_t until);
/* Returns: whether the place of a wait is kept, or will be in its turn, for a repetition of its request. */
bool wait__has_place(const struct wait *wait);
/* Returns: the named write whose place is kept by the ID and the part of `request`; NULL: none. */
struct wait *wait__kept_write(struct core *core, const struct write_request *request);
/*
 * Whether a write may have run some of its items. One in pieces has not while it waits for the locks of its first ones,
 * also in a later attempt, nor when it has been granted those.
 */
bool wait__has_begun(const struct wait *wait);
/* Returns: the session of a wait, or of its transaction; NULL: none. */
struct session *wait__session(const struct wait *wait);
/* Returns: the first, in order of arrival, of the writes that wait by the ID and the part of `request`; NULL: none. */
struct wait *wait__named_write(const struct core *core, const struct write_request *request);
/* Records in owners->kept_writes whether a named write has a place. A loaded one; wait.c does so for others. */
void wait__note_place(struct core *core, struct wait *wait);
/* Records that a kept wait was granted its locks. Its request has them until its client asks again. */
void wait__keep_granted(struct core *core, struct wait *wait);
/*
 * Continues a kept wait for `command`, which repeats its own one and waits until `until`. Completes the
 * earlier command. Owns: the wait takes the command.
 */
void wait__take_over(struct core *core, struct wait *wait, struct command *command, uint64_t until);
/* Returns: the wait of the command with this number, for CANCEL; NULL: none. */
struct wait *wait__by_request(const struct core *core, uint64_t number);
/*
 * Removes a wait from every list and frees it, but not its command. Releases a write_wait's locks.
 */
void wait__free(struct core *core, struct wait *wait);
/*
 * Fails a wait, also a ready one. The command gets the problem; a bulk that has run some items gets
 * it in each remaining one, unless its transaction ends. wait__fail() answers and frees the wait at
 * once, unless items have run. wait__end() is for many waits at once: it answers only while the
 * step has budget left (cost.h). Other waits are enqueued and answered in a unit of their own.
 * Requires: the wait has a command and has not ended.
 */
void wait__fail(struct core *core, struct wait *wait, enum problem_type type, const char *format, ...) TL_PRINTF(4, 5);
void wait__end(struct core *core, struct wait *wait, enum problem_type type, const char *format, ...) TL_PRINTF(4, 5);
/*
 * Cancels a wait: grants__end_cancelled() will end it. The end of its session replaces an earlier
 * cause, others only that it is to be kept. Requires: as wait__fail(); to be kept as wait__keep().
 */
void wait__cancel(struct core *core, struct wait *wait, enum wait_cancel cause);
/*
 * Ends a wait whose cause is set: removes it from its session and transaction, releases its own
 * locks, and enqueues its reply for a unit of its own.
 */
void wait__end_later(struct core *core, struct wait *wait);
/*
 * Fails the command of a wait with its cause, and frees the wait. A bulk of a transaction of which
 * some items have run keeps their results; each other item fails.
 */
void wait__answer(struct core *core, struct wait *wait);
/* Returns: the cost of resuming it, in units of cost.h, without its scripts and sources. */
size_t wait__cost(const struct wait *wait);
/*
 * Returns: its cause; the first call allocates an empty one for the caller to fill.
 * Requires: it has a command.
 */
struct problem *wait__cause(struct wait *wait);
/*
 * Describes the owners that block a wait's request, at most `holders_max`, in *ret_problem. Since version 23 of
 * commands fewer, but at least one, if they hold deep paths: LEVELS_EXPLAINED_MAX.
 * Requires: holders_max <= HOLDERS_REPORTED_MAX. Owns: `arena` takes the texts.
 * Returns: the work, which is counted, also as of a write (session/cost.h); by commands before version 23, 0.
 */
enum { HOLDERS_REPORTED_MAX = 100 };
uint64_t wait__explain(struct core *core, struct wait *wait, enum problem_type type, size_t holders_max,
                       struct arena *arena, struct problem *ret_problem);
/* Fills the problem without naming holders, once a reply has reported enough of them. */
void wait__explain_briefly(struct arena *arena, enum problem_type type, struct problem *ret_problem);
/*
 * Returns: whether limits.waiters_max is reached. A request that would have to wait then fails at
 * once; one that can be granted is granted.
 */
bool wait__limit_reached(const struct core *core);
/* Reports that limits.waiters_max was reached when the locks were asked for: wait__limit_reached(). */
void wait__explain_limit(const struct core *core, struct arena *arena, struct problem *ret_problem);
/* Records that a LOCK has resolved its names, for wait__resolve_again(). */
void wait__names_resolved(struct wait *wait);
/*
 * Has the parked LOCKs of a session (NULL: none) resolve their names again when they are granted, after the session
 * has lost locks on names. One that was asked for while the session had such a lock did not request it.
 */
void wait__resolve_again(struct core *core, struct session *session);
/* Undoes the grant of a LOCK that is not complete. Requires: it was granted. */
void wait__undo(struct core *core, struct wait *wait);
/* Enqueues a wait to resume in a unit of its own. */
void wait__enqueue_ready(struct core *core, struct wait *wait);
/*
 * Enqueues a write of a transaction that has run a batch of its items, for its next one. It has no
 * request until then; the transaction keeps the locks.
 */
void wait__continue_later(struct core *core, struct wait *wait);
/*
 * Returns: whether it is an atomic write in pieces, in a transaction of its own (acquire_pieces.c), which
 * ends with it.
 */
bool wait__is_in_pieces(const struct wait *wait);
/* Returns: until when its command may wait, by the clock, in us, whether it has waited or not. */
uint64_t wait__deadline(const struct wait *wait);
/* Takes a wait out of owners->ready. */
void wait__dequeue_ready(struct core *core, struct wait *wait);
/*
 * Callbacks that most commands share; grants__on_deadlock() is the third. wait__on_grant() enqueues
 * the wait as ready; wait__on_timeout() fails the command and frees the wait, and a transaction
 * lives on.
 */
int wait__on_grant(struct core *core, struct wait *wait) TL_MUST_USE;
int wait__on_timeout(struct core *core, struct wait *wait) TL_MUST_USE;
/* Records the end of a wait that was reported as slow (report.c). */
void wait__report_end(struct core *core, const struct wait *wait);

#endif
