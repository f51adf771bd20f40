/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain model of sessions, locks, transactions and writes under locks.
 *
 * It predicts the result of each command: which commands complete in a step, with which result, at
 * which timestamp, and which locks, requests and documents exist afterwards. It shares no code with
 * the product. Locks and waiting requests are rows of arrays; oracle.c applies the rules of
 * docs/locking.md, "The rules in full" (cited as "rule N"). There are no intention locks, counters,
 * queues or watch lists.
 *
 * The model is one flat struct without pointers into itself, so a crash is an assignment: the world
 * keeps a copy of it per unit, and returns to the last one that the store still has. Only the
 * versions of documents are outside of it, in an array that is truncated.
 *
 * One choice is left to the product: which of several deadlock cycles it resolves first. It reports
 * each (struct om_cycle). The oracle searches for a cycle in which the victim is the youngest,
 * checks the reported one, and that none remains.
 */
#ifndef TL_TESTS_SIM_OWNERS_MODEL_H
#define TL_TESTS_SIM_OWNERS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OM_INDICES = 3, /* fs: a path field; ix: none; nx: path field by template, may be deleted */
    OM_NX = 2,
    OM_DOCS = 4,
    OM_DIRS = 5, /* that exist initially; 0 is the root, which has no documents; see dirs.h */
    OM_SESSIONS = 8,
    OM_TXNS = 8,
    OM_TXN_RENAMES = 8, /* above the limit of changes of a transaction */
    OM_WAITS = 32,
    OM_OWNERS = OM_SESSIONS + OM_TXNS + OM_WAITS,
    OM_ITEMS = 4,
    OM_SPECS = 3 * OM_ITEMS,
    OM_LOCKS = 256,
    OM_DEFERRED = 32,
    OM_ATTEMPTS = 64,    /* actions that ended the process and are still to be run */
    OM_ATTEMPTS_MAX = 2, /* attempts of each; then it is set aside */
    OM_ENDED = 64,       /* outcomes of transactions */
    OM_NAMED = 256,      /* more than requests end between a named write and its repetition */
    OM_DONE = 64,        /* commands completed by one step */
    OM_CYCLES = 64,
    OM_CYCLE_EDGES = 40,
};

#define OM_NEVER (((uint64_t)1 << 53) - 1) /* above all timestamps, which fit a JSON number */
#define OM_SECOND ((uint64_t)1000000)
/* How long versions of deletes count in this index; 60 s in the others. */
#define OM_KEPT_INDEX 1
#define OM_KEPT_US (3600 * OM_SECOND)

/* --- Things, locks ------------------------------------------------------------------------------------------------ */

enum om_kind { OM_ALL, OM_INDEX, OM_DIR, OM_DOC, OM_NAME /* the binding of an index name */ };
enum om_mode { OM_FREE, OM_S, OM_U, OM_X };

struct om_thing {
    uint8_t kind;
    uint8_t index;
    int16_t number; /* of the directory or document */
};

struct om_spec {
    struct om_thing on;
    uint8_t mode;
    bool insert_intention; /* conflicts only with locks on the directory and above */
};

struct om_lock {
    int owner;
    struct om_spec what;
    uint64_t token;
};

/* --- Operations --------------------------------------------------------------------------------------------------- */

enum om_op_kind {
    OP_WRITE,
    OP_OPEN,
    OP_KEEPALIVE,
    OP_ATTACH,
    OP_DETACH,
    OP_CLOSE,
    OP_LOCK,
    OP_UNLOCK,
    OP_BEGIN,
    OP_READ, /* the locks of a read in a transaction, then the read */
    OP_COMMIT,
    OP_ROLLBACK,
    OP_CANCEL,
    OP_CREATE_INDEX,
    OP_DELETE_INDEX,
    OP_PUT_MAPPING,
    OP_BLOCK, /* blocks writes to an index, or allows them */
    OP_STATE, /* closes or opens an index */
    OP_RENAME,
    OP_TRIED, /* the process ended during a cleanup action */
    OP_ASIDE, /* retries or drops a cleanup that was set aside */
    OP_TICK,
    OP_STATUS,
    OP_RESTART,
    OP_HOST_UP,      /* another host starts: rolls back the transactions it began for requests */
    OP_MACHINE_LOST, /* rolls back all update transactions: requests may be missing */
    OP_KIND_COUNT
};

enum om_action { OM_PUT, OM_CREATE, OM_UPDATE, OM_DELETE };

struct om_item {
    uint8_t action;
    uint8_t index;
    uint8_t doc;
    int16_t dir; /* of the source; -1: no path */
    int value;
    int64_t if_seq_no;     /* -1: not given */
    uint32_t lease;        /* session of an ephemeral document; 0: none */
    uint32_t only_session; /* of a removal: the document must still belong to it; 0: none */
};

struct om_op {
    uint64_t number; /* the command's request number */
    enum om_op_kind kind;
    uint64_t clock;   /* when it was submitted, by the clock of durations */
    uint64_t barrier_clock; /* OP_TICK: all input sent before this time has been submitted */
    bool memory_full;       /* cleanup actions of its step create no index */
    uint32_t session; /* serial; 0: none; may be of a session that never existed */
    uint32_t txn;
    uint64_t token;
    uint64_t us; /* ttl, wait, timeout */
    uint64_t attachment;
    bool force;
    bool if_detached; /* OP_CLOSE */
    bool on;          /* OP_BLOCK: blocked; OP_STATE: closed */
    bool atomic;
    uint16_t host;     /* OP_HOST_UP; OP_BEGIN: that begins it for a request; 0: a client */
    uint32_t retry_of; /* OP_BEGIN: the transaction it retries; 0: none */
    uint64_t target;   /* OP_CANCEL: number of the command */
    uint8_t index;     /* of a catalog command, of a rename */
    int16_t from, to;  /* OP_RENAME: directories */
    bool slash;        /* OP_RENAME: `from` ends with a delimiter */
    int64_t if_seq_no; /* OP_RENAME; -1: not given */
    uint64_t deferred; /* OP_TRIED, OP_ASIDE: number; 0: an action of the session */
    uint64_t action;   /* OP_TRIED: index of that action */
    bool retry;        /* OP_ASIDE: retry; else drop */
    uint32_t name;     /* OP_WRITE: of its request, which may be repeated; 0: none */
    uint32_t hash;     /* OP_WRITE: of what the client sent; differs between requests */
    int count;
    struct om_item items[OM_ITEMS]; /* of a write; OP_OPEN: its on_expire actions */
    struct om_spec specs[OM_ITEMS];
};

/* --- Results ------------------------------------------------------------------------------------------------------ */

enum om_problem {
    OM_FINE,
    OM_SESSION_MISSING,
    OM_ATTACHED,
    OM_TXN_MISSING,
    OM_TXN_ABORTED,
    OM_TOO_LARGE,
    OM_ILLEGAL,
    OM_LIMIT,
    OM_LOCK_CONFLICT,
    OM_LOCK_TIMEOUT,
    OM_DEADLOCK,
    OM_STALE_TOKEN,
    OM_CONFLICT, /* of versions */
    OM_MISSING,  /* document */
    OM_NO_INDEX,
    OM_EXISTS, /* index */
    OM_STOPPING,
    OM_BLOCKED,
    OM_CLOSED,
    OM_EPHEMERAL, /* the limit of ephemeral documents of the session */
    OM_PATH_MISSING,
    OM_PATH_EXISTS,
    OM_KEPT_MISSING,
};

enum om_outcome { OM_CREATED, OM_UPDATED, OM_DELETED, OM_NOT_FOUND, OM_NOOP, OM_FAILED };

struct om_result {
    uint8_t outcome;
    uint8_t problem;
    int64_t version;
    int64_t seq_no;
};

/* A document as committed, or as a transaction sees it. */
struct om_doc {
    bool known; /* there is a record: live, or a tombstone */
    bool live;
    bool hidden; /* hidden by the end of its session and not purged yet; then it is not live */
    int16_t dir; /* -1: no path */
    int value;
    uint32_t lease;
    int64_t version;
    int64_t seq_no;
    uint64_t ts; /* OM_NEVER: an open transaction has renamed it */
};

struct om_docs {
    struct om_doc at[OM_INDICES][OM_DOCS];
};

/* The result of a completed command. */
struct om_done {
    const struct om_op *op;
    uint64_t ts;
    enum om_problem problem;
    bool rolled_back;
    uint64_t token; /* or expiry of a lease, read or commit timestamp, by the kind of op */
    uint64_t waited;
    uint64_t released; /* locks; of a commit: changes */
    int names;         /* that an UNLOCK or a read has done */
    bool at, below;    /* of a rename: documents were at the path, and below it */
    int64_t seq_no;    /* of a rename */
    struct om_result results[OM_ITEMS];
};

/*
 * A deadlock cycle as the product reported it: requests by number of their commands, or
 * om_deferred_name().
 */
struct om_cycle {
    uint64_t victim;
    bool requeued;
    int count;
    uint64_t steps[OM_CYCLE_EDGES];
};

/* Returns: what names the wait of a deferred cleanup in struct om_cycle. */
static inline uint64_t om_deferred_name(uint64_t number)
{
    return (uint64_t)1 << 62 | number;
}

/* --- State -------------------------------------------------------------------------------------------------------- */

struct om_deadline {
    uint64_t at; /* OM_NEVER: not set */
    uint64_t number;
};

struct om_session {
    uint32_t serial; /* 0: the slot is free */
    uint64_t ttl;
    uint64_t attachment;
    struct om_deadline lease;
    int action_count;
    struct om_item actions[OM_ITEMS];
    uint64_t terminating;         /* order of its termination; 0: not terminating */
    bool cleanup_pending;         /* cleanup pending: transactions, actions and documents */
    int processed;                /* actions processed so far, during the cleanup */
    bool locks_released;          /* only the purge of hidden documents is left */
    const struct om_op *close_op; /* to complete after the end; NULL: none */
};

/* A cleanup item of an ended session, deferred because of another owner's lock. */
struct om_deferred {
    uint64_t number; /* 0: the row is free */
    uint64_t order;  /* its order among them; a retry comes last */
    uint32_t session;
    bool set_aside; /* set aside: it has no request */
    struct om_item item;
};

/* How often the process ended during a cleanup action. */
struct om_attempt {
    int tries; /* 0: the row is free */
    uint32_t session;
    uint64_t deferred;
    uint64_t action;
};

struct om_txn {
    uint32_t serial;
    uint32_t session; /* 0: none */
    bool retry;       /* a retry of one that was rolled back */
    uint16_t host;  /* that began it for a request; 0: a client did */
    bool abandoned; /* will be rolled back */
    uint64_t timeout;
    uint64_t created;
    struct om_deadline idle;
    bool written[OM_INDICES][OM_DOCS];
    struct om_renamed {
        uint8_t index;
        int16_t from, to;
    } renames[OM_TXN_RENAMES];
    int rename_count;
    bool moved[OM_INDICES][OM_DOCS]; /* in the overlay because of its own rename, without a write */
    struct om_docs overlay;
};

enum om_state { OM_UNUSED, OM_NEW, OM_WAITING, OM_GRANTED, OM_REFUSED };

struct om_wait {
    bool used;
    enum om_state state;    /* of its request */
    const struct om_op *op; /* NULL: deferred cleanup */
    int owner;
    uint32_t session; /* that it ends with; 0: none */
    int txn;          /* slot; -1: none */
    bool parked;
    uint64_t parked_number; /* order among the session's */
    bool ready;             /* to resume in this step or a later one; */
    bool ended;             /* with ready: to be answered with its cause */
    uint64_t ready_number;
    uint64_t since;
    uint64_t until;
    struct om_deadline deadline;
    enum om_problem cause;
    bool partial;        /* some items are done: */
    bool left[OM_ITEMS]; /* those still to run */
    struct om_done done; /* the result so far */
    uint64_t deferred;   /* without an op: number of the deferred cleanup */
    uint64_t order;      /* without an op: as om_deferred.order */
    bool upgrade;
    uint64_t arrival;
    uint64_t event; /* order of its grant or its end in a deadlock; 0: handled */
    int spec_count;
    struct om_spec specs[OM_SPECS];
};

struct om_outcome_record {
    uint32_t txn;
    bool committed;
    bool by_request;
    uint64_t age;
    uint64_t ended;
    uint64_t commit_ts;
    uint64_t changes;
};

/* What a named write did, with which its repetitions are answered. */
struct om_named_outcome {
    uint32_t name;
    uint32_t hash;
    int count;
    uint64_t ended;
    struct om_result results[OM_ITEMS];
};

struct om_index {
    bool there;
    bool mapped; /* it has a path field */
    bool blocked;
    bool closed;
    uint32_t generation;
    int64_t next_seq_no;
};

struct om_limits {
    int sessions, txns, locks, waiters, changes, ephemeral;
    int piece; /* limits.ephemeral_batch */
    int sweep; /* limits.purge_batch */
};

struct om {
    struct om_limits limits;
    bool unlocks_one; /* an UNLOCK releases the first lock that it names */
    bool reads_one;   /* a read acquires the locks of the first thing that it names */
    uint64_t last_ts;
    uint64_t ts;              /* of the open unit */
    uint64_t clock;           /* the latest of all operations since the start; deadlines use it */
    uint64_t tombstones_from; /* tombstones of earlier deletions are purged */
    uint64_t outcomes_from;   /* outcomes of transactions that ended earlier are purged */
    bool committing;          /* a transaction is being committed */
    bool memory_full;         /* of the step */
    bool dirty;               /* the unit has written to its batch */
    struct om_index indices[OM_INDICES];
    struct om_docs docs;
    int16_t dirs[OM_INDICES][OM_DOCS]; /* directories in the lock tree; -1: none */
    struct om_session sessions[OM_SESSIONS];
    struct om_txn txns[OM_TXNS];
    struct om_wait waits[OM_WAITS];
    uint64_t born[OM_OWNERS];
    uint64_t age[OM_OWNERS]; /* when it began; of a retry: when the first attempt did */
    int lock_count;
    struct om_lock locks[OM_LOCKS];
    int ended_count;
    struct om_outcome_record ended[OM_ENDED];
    int named_count;
    struct om_named_outcome named[OM_NAMED];
    struct om_deferred deferred[OM_DEFERRED];
    struct om_attempt attempts[OM_ATTEMPTS];
    uint64_t last_deferred, last_order, last_termination;
    int cleanup_quota;    /* deferred cleanups that this step may still grant */
    int grant_quota;      /* other requests that this step may still grant */
    int cost_left;        /* cost that this step may still spend */
    int cost_kept;        /* further cost, which OP_TICK keeps for ready waits while it ends due ones */
    int cancel_count;     /* waits that the end of sessions has ended, to be charged */
    int grants_suspended; /* grants are suspended while above 0 */
    uint64_t last_born, last_arrival, last_event, last_ready, last_parked, last_deadline;
    uint64_t last_token;
    size_t history; /* versions in struct om_history that belong to this state */
};

/* Input and output of a step. */
struct om_step {
    const struct om_cycle *cycles;
    int cycle_count;
    int cycles_met;
    int done_count;
    struct om_done done[OM_DONE];
    struct om_docs seen[OM_DONE];                        /* by a completed OP_READ */
    const char *wrong;                                   /* violated invariant or wrong report; NULL: none */
    struct om_history *history;
};

/* Every version of every document, in order. */
struct om_version {
    uint64_t ts;
    uint8_t index;
    uint8_t number;
    uint32_t generation;
    bool committed; /* by a transaction */
    struct om_doc doc;
};

/* The number of a version that records the creation (doc.live) or deletion of its index. */
enum { OM_WHOLE_INDEX = 255 };

struct om_history {
    size_t capacity;
    struct om_version *versions;
};

void om_init(struct om *model, const struct om_limits *limits, uint64_t ts);
/*
 * Applies one operation at `ts`: first due deadlines (OP_TICK), then the operation, then waits that
 * can resume.
 */
void om_apply(struct om *model, const struct om_op *op, uint64_t ts, struct om_step *step);
/* Returns: when the next deadline is; OM_NEVER: none. */
uint64_t om_next_deadline(const struct om *model);
/* Documents as of a timestamp. */
void om_docs_at(const struct om *model, const struct om_history *history, uint64_t ts, struct om_docs *ret_docs);
/* Checks the invariants of a state between steps. Returns: NULL, or the one that is violated. */
const char *om_check(const struct om *model);

#endif
