/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: owners of locks with a lease. README-locks.md, "Sessions".
 *
 * This is the record of a session, and the commands that open it and keep it alive. session_end.h
 * ends it.
 */
#ifndef TL_CORE_SESSION_H
#define TL_CORE_SESSION_H

#include "base/buf.h"
#include "base/magic.h"
#include "core/session/deadline.h"
#include "core/session/owner.h"
#include "core/session/save_chunk.h"

struct command;
struct core;
struct problem;
struct store;

#define SESSION_ACTIONS_MAX 1000

enum session_end { SESSION_END_CLOSED, SESSION_END_EXPIRED, SESSION_END_FORCED, SESSION_END_DETACHED };

/*
 * The state of a session; session.c has the table of transitions.
 *
 *     live ─▶ acting ─▶ acted ─▶ removing ─┬────────────┬─▶ ended
 *                                          └─▶ purging ─┘
 *
 * It follows from the flags of struct session, which are its form in a checkpoint. Only
 * session__enter() changes them; what reads a checkpoint or old records refuses impossible ones.
 */
enum session_state {
    SESSION_LIVE,     /* commands find it; in all other states it is terminating */
    SESSION_ACTING,   /* its transactions are rolled back, then its on_expire actions run */
    SESSION_ACTED,    /* no transaction and no action is left */
    SESSION_REMOVING, /* its documents are removed in batches; it keeps its locks */
    SESSION_PURGING,  /* its documents are hidden and are purged in batches; its locks are released */
    SESSION_ENDED,    /* freed next */
    SESSION_STATE_COUNT
};

/* Counts the ephemeral documents of a session in one index, of one type. */
struct ephemeral_counter {
    uint32_t index;
    uint16_t type;
    size_t count;
    bool orphaned; /* the index is deleted; meaningless while count is 0 */
};

#define SESSION_MAGIC MAGIC('S', 'e', 's', 's')

struct session {
    uint32_t magic; /* SESSION_MAGIC */
    struct owner owner;
    struct slice id;        /* secret; mem_free */
    struct slice name;      /* mem_free; may be empty */
    struct slice on_expire; /* encoded actions (action.h), mem_free; may be empty */
    uint64_t ttl_us;
    tl_ts created;
    uint64_t attachment;      /* number of the connection that keeps it alive; 0: none */
    struct deadline lease;    /* TL_TS_MAX after a conversion (old_records.c), until RESTART */
    struct list transactions; /* struct txn by of_session */
    struct list waits;      /* struct wait by of_session, except those of its transactions; cancelled if terminating */
    /*
     * Those of them that are LOCKs and have resolved their names since wait__resolve_again() marked them: each is
     * marked once, however often the session loses a name.
     */
    struct list resolved_waits;
    size_t ephemeral_count; /* documents: the sum of the counters that are not orphaned */
    size_t orphan_count;    /* 'e' keys of deleted indices: the sum of the orphaned counters */
    struct ephemeral_counter *ephemeral_counters; /* in no order; mem_free */
    size_t ephemeral_counter_count;

    /* Termination takes several units when there is much to clean up or many documents to purge. */
    bool terminating;           /* commands no longer find it; its locks stay until locks_released */
    bool cleanup_pending;       /* its transactions, actions and documents are still to be ended */
    bool actions_finished;      /* no action is left to run: all are done, deferred or skipped */
    bool recorded;              /* the store has its record: session_store.c */
    bool locks_released;        /* only the purge of hidden documents is left */
    enum session_end end_kind;  /* valid when terminating */
    struct list of_terminating; /* in owners->sessions_to_clean, then in sessions_to_purge */
    struct buf end_report;      /* lines of the lock event that reports its end */
    uint64_t script_steps_left; /* that its actions together may still take (update.h) */
    size_t actions_processed;   /* index of the next action; at least the sum of: */
    size_t actions_done;
    size_t actions_deferred;
    size_t actions_set_aside;
    struct buf first_failure;      /* reason of the first action that failed */
    struct command *close_command; /* SESSION_CLOSE that waits for the end; NULL: none */
    struct save_member saved;      /* in owners->session_chunks while it is in owners->sessions */
    size_t removed_count;          /* documents */
    size_t deferred_count;         /* document removals deferred because of other owners' locks */
};

/*
 * Returns: its public number: short, kept over restarts, and without access rights. The id is
 * secret because it grants access. Transactions have both as well.
 */
static inline uint64_t session_number(const struct session *session)
{
    return session->owner.locks.number;
}

/*
 * Finds a session by its public number in decimal.
 * Returns: it, also when it is terminating; NULL: no session, or its locks are released. Takes
 * linear time.
 */
struct session *session__by_number(const struct core *core, struct slice number);
/* Returns: the session of this id that is not terminating; NULL with *ret_problem in `arena`. */
struct session *session__find(struct core *core, struct slice id, struct arena *arena, struct problem *ret_problem);
/* Adds a session to owners->sessions, and to the last chunk of sessions. */
void session__register(struct core *core, struct session *session);
/*
 * Records that what pieces have of a session has changed: everything in a checkpoint but its lease.
 */
void session__touch(struct core *core, struct session *session);
/* Returns: its state, which its flags say. */
enum session_state session__state(const struct session *session);
/*
 * Changes the state of a session.
 * Requires: the table of transitions in session.c has it; the session has what the state says:
 *   after SESSION_LIVE no lease, after SESSION_ACTING no transaction and no waiting command, from
 *   SESSION_PURGING on no lock.
 */
void session__enter(struct core *core, struct session *session, enum session_state state);
/*
 * Marks a session that was read from a checkpoint or from old records as terminating, and counts
 * it. Requires: it is not terminating.
 */
void session__set_terminating(struct core *core, struct session *session);
/* Returns: how it ended or ends, for texts: "has expired". */
const char *session__end_text(enum session_end end_kind);
/* Writes the cause of what ends with a terminating session: "its session #12 has expired". */
void session__cause_of_end(const struct session *session, char *text, size_t size);
/* Releases its locks and frees it. Requires: it has no transaction and no wait. */
void session__free(struct core *core, struct session *session);
/* Adds `change` to the ephemeral documents of a session, if the session exists. */
void session__count_ephemeral(struct core *core, struct slice id, uint32_t index, uint16_t type, int change);
/* Returns: whether a session is terminating. */
bool session__any_terminating(const struct core *core);
/* The functions of session.c and txn.c for core->document_owners; documents/document_owners.h. */
int session__check_ephemeral(struct core *core, struct slice session, struct arena *arena,
                             struct problem *ret_problem) TL_MUST_USE;
int session__check_ephemeral_count(struct core *core, struct slice id, size_t more, struct arena *arena,
                                   struct problem *ret_problem) TL_MUST_USE;
void session__count_ephemeral_document(struct core *core, struct slice session, struct slice key, int change);
/* Reverts the changes of ephemeral counts made in the open unit. */
void session__rollback_ephemeral_counts(struct core *core);
/*
 * Notes an index that the open unit deletes; session__orphan_dropped() at the end of the unit subtracts the ephemeral
 * documents of all such indices, in one pass over the sessions: a request deletes thousands of indices. Their
 * ephemeral keys no longer mean anything; session__purge_ephemeral_keys() removes them.
 */
void session__drop_index(struct core *core, uint32_t index);
void session__orphan_dropped(struct core *core);
/*
 * Handles the start of a host: sessions attached through it lose their attachment. Their leases
 * restart, as do those that have not begun since a conversion; terminations continue after one.
 * Returns: 0.
 */
int session__restart(struct core *core, uint64_t host) TL_MUST_USE;

/*
 * session_store.c: its record, written or removed in the open unit; removing it again is fine.
 * Requires: the session is not terminating.
 */
void session__put_record(struct core *core, struct session *session);
void session__drop_record(struct core *core, struct session *session);
/*
 * Looks in the store for a session that is not terminating. Any thread may call it.
 * Returns: 0; STORE_NOT_FOUND; fatal codes.
 */
int session__check_stored(struct store *store, struct slice id) TL_MUST_USE;
/*
 * Marks counters of deleted indices as orphaned, after sessions were loaded with all their counts.
 */
void session__find_orphans(struct core *core);
/*
 * Makes a session that is in no map yet.
 * Owns: owners->sessions after map_put(); session__free().
 */
struct session *session__make(struct core *core, struct slice id, struct slice name, uint64_t ttl_us, tl_ts created);
/*
 * Removes ephemeral keys of deleted indices in the open unit. Returns: 0 and the number removed, at
 * most `max`; fatal codes.
 */
int session__purge_ephemeral_keys(struct core *core, size_t max, size_t *ret_removed) TL_MUST_USE;

#endif
