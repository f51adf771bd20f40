/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain model of sessions, locks, transactions and writes under locks.
 *
 * It says what must come of each command: which commands complete in a step, with what, at which timestamp,
 * and what is held, awaited and stored afterwards. It shares no code with the product. A lock is a row in an
 * array, a waiting request another, and oracle.c decides what docs/locking.md says of them, "The rules in full" (cited as "rule N").
 * There are no marks, counts, queues or watchers.
 *
 * The model is one flat struct without pointers into itself, so that a crash is an assignment: the world
 * keeps a copy of it as of each unit, and goes back to the one that the store has kept. Only what must be
 * remembered for ever, the versions of documents, lies outside, and is cut to length.
 *
 * One choice is left to the product: which circle of several it opens first. It reports each (struct om_circle); the judge
 * looks for one of its own in which the victim is the youngest, checks the one that is told, and that none is left.
 */
#ifndef TL_TESTS_SIM_OWNERS_MODEL_H
#define TL_TESTS_SIM_OWNERS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OM_INDICES = 3, /* fs has a path field; ix has none; nx comes and goes, with a path field by its template */
    OM_NX = 2,
    OM_DOCS = 4,
    OM_DIRS = 5, /* there from the beginning; 0 is the root, in which no document lies. More come by renames: dirs.h */
    OM_SESSIONS = 8,
    OM_TXNS = 8,
    OM_TXN_RENAMES = 8, /* more than a transaction may have changes */
    OM_WAITS = 32,
    OM_OWNERS = OM_SESSIONS + OM_TXNS + OM_WAITS,
    OM_ITEMS = 4,
    OM_WANTS = 3 * OM_ITEMS,
    OM_LOCKS = 256,
    OM_KEPT = 32,
    OM_TRIED = 64, /* things that ended the process and are still to be done */
    OM_TRIES = 2,  /* of each; then it is put aside */
    OM_ENDED = 64, /* transactions whose outcome is remembered */
    OM_DONE = 64,  /* commands completed by one step */
    OM_CIRCLES = 64,
    OM_CIRCLE_STEPS = 40,
};

#define OM_NEVER (((uint64_t)1 << 53) - 1) /* the end of time: timestamps fit a JSON number */
#define OM_SECOND ((uint64_t)1000000)

/* --- Things, locks ------------------------------------------------------------------------------------------------ */

enum om_kind { OM_ALL, OM_INDEX, OM_DIR, OM_DOC, OM_NAME /* what the name of an index means */ };
enum om_mode { OM_FREE, OM_S, OM_U, OM_X };

struct om_thing {
    uint8_t kind;
    uint8_t index;
    int16_t number; /* of the directory or document */
};

struct om_want {
    struct om_thing on;
    uint8_t mode;
    bool within; /* a place for something in a directory: in the way only of locks on that and above */
};

struct om_lock {
    int owner;
    struct om_want what;
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
    OP_BLOCK, /* an index against writes, or the block off */
    OP_STATE, /* closes an index, or opens it */
    OP_RENAME,
    OP_TRIED, /* the process ended in the middle of something that an ended session left */
    OP_ASIDE, /* what was put aside is tried again, or goes */
    OP_TICK,
    OP_STATUS,
    OP_RESTART,
    OP_HOST_UP,      /* another host comes up: what it had for requests is rolled back */
    OP_MACHINE_LOST, /* requests may be missing: all update transactions are */
    OP_KIND_COUNT
};

enum om_action { OM_PUT, OM_CREATE, OM_UPDATE, OM_DELETE };

struct om_item {
    uint8_t action;
    uint8_t index;
    uint8_t doc;
    int16_t dir; /* of the source; -1: it names none */
    int value;
    int64_t if_seq_no; /* -1: not asked */
    uint32_t lease;    /* session it shall live with; 0: none */
    uint32_t left_by;  /* of a removal: the ended session with which the document must live still; 0: none */
};

struct om_op {
    uint64_t number; /* the command's request number */
    enum om_op_kind kind;
    uint64_t clock;   /* when it was submitted, by the clock that durations are measured by */
    uint64_t heard;   /* OP_TICK: what was sent before that has been submitted before this */
    uint32_t session; /* serial; 0: none. Sessions and transactions that never were have serials, too */
    uint32_t txn;
    uint64_t token;
    uint64_t us; /* ttl, wait, timeout */
    uint64_t attachment;
    bool force;
    bool on; /* OP_BLOCK: blocked; OP_STATE: closed */
    bool atomic;
    bool query;        /* OP_BEGIN */
    uint16_t host;     /* OP_BEGIN: that has it for a request; 0: a client has it. OP_HOST_UP */
    uint32_t retry_of; /* OP_BEGIN: what was rolled back and is tried again; 0: nothing */
    uint64_t read_ts;  /* OP_BEGIN of a query: 0 for the latest */
    uint64_t target;   /* OP_CANCEL: number of the command */
    uint8_t index;     /* of a catalog command, of a rename */
    int16_t from, to;  /* OP_RENAME: directories */
    bool slash;        /* OP_RENAME: a delimiter stands behind `from` */
    int64_t if_seq_no; /* OP_RENAME; -1: not asked */
    uint64_t kept;     /* OP_TRIED, OP_ASIDE: number of what is kept; 0: the session's own */
    uint64_t action;   /* OP_TRIED: which of the session's */
    bool again;        /* OP_ASIDE: it is tried again; else it goes */
    int count;
    struct om_item items[OM_ITEMS]; /* of a write; of OP_OPEN what it leaves to be done */
    struct om_want wants[OM_ITEMS];
};

/* --- Results ------------------------------------------------------------------------------------------------------ */

enum om_problem {
    OM_FINE,
    OM_SESSION_MISSING,
    OM_TXN_MISSING,
    OM_TXN_ABORTED,
    OM_READ_ONLY,
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
    OM_EPHEMERAL, /* as many documents live with the session as may */
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

/* A document as it stands, or a transaction has it. */
struct om_doc {
    bool known; /* there is a record: live, or a tombstone */
    bool live;
    bool gone;  /* with its session, and its tombstone is yet to be written; then it is not live */
    int16_t dir; /* -1: its source names none */
    int value;
    uint32_t lease;
    int64_t version;
    int64_t seq_no;
    uint64_t ts; /* OM_NEVER: an open transaction has renamed it */
};

struct om_docs {
    struct om_doc at[OM_INDICES][OM_DOCS];
};

/* What came of a command that completed. */
struct om_done {
    const struct om_op *op;
    uint64_t ts;
    enum om_problem problem;
    bool rolled_back;
    uint64_t token; /* of a grant; when a lease runs out; of a begin or read its timestamp; of a commit its own */
    uint64_t waited;
    uint64_t released; /* or changes of a commit */
    bool at, below; /* of a rename: documents lay at the path, and below it */
    int64_t seq_no; /* of a rename */
    struct om_result results[OM_ITEMS];
};

/* A circle as the product saw it: requests by the number of their commands, or om_leftover(). */
struct om_circle {
    uint64_t victim;
    bool requeued;
    int count;
    uint64_t steps[OM_CIRCLE_STEPS];
};

/* Names the wait of a kept action. */
static inline uint64_t om_left(uint64_t number)
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
    uint64_t leaving;            /* 0: it lives; else its place among those that leave piece by piece */
    bool ending;                 /* with leaving: its transactions, actions and documents are still to be ended */
    int passed;                  /* actions that have had their turn, while it is ending */
    bool over;                   /* it has no locks any more, and what it took along is only swept away */
    const struct om_op *closing; /* that is answered when it is gone; NULL: none */
};

/* What an ended session left and somebody held. */
struct om_kept {
    uint64_t number; /* 0: the row is free */
    uint64_t place;  /* its place among them: behind all others where it is tried again */
    uint32_t session;
    bool aside; /* it waits for nothing */
    struct om_item item;
};

/* How often the process has ended in something. */
struct om_tried {
    int tries; /* 0: the row is free */
    uint32_t session;
    uint64_t kept;
    uint64_t action;
};

struct om_txn {
    uint32_t serial;
    uint32_t session; /* 0: none */
    bool query;
    bool again;    /* it tries again what was rolled back */
    bool recorded; /* a restart finds that it was open */
    uint16_t host; /* that has it for a request; 0: a client has it */
    bool abandoned; /* it is going to be rolled back */
    uint64_t read_ts;
    uint64_t timeout;
    uint64_t created;
    struct om_deadline idle;
    bool written[OM_INDICES][OM_DOCS];
    struct om_renamed {
        uint8_t index;
        int16_t from, to;
    } renames[OM_TXN_RENAMES];
    int rename_count;
    bool moved[OM_INDICES][OM_DOCS]; /* by a rename of its own: the overlay has it, though it was not written */
    struct om_docs overlay;
};

enum om_state { OM_UNUSED, OM_NEW, OM_WAITING, OM_GRANTED, OM_REFUSED };

struct om_wait {
    bool used;
    enum om_state state;    /* of its request */
    const struct om_op *op; /* NULL: what an ended session left */
    int owner;
    uint32_t session; /* that it ends with; 0: none */
    int txn;          /* slot; -1: none */
    bool parked;
    uint64_t parked_number; /* order among the session's */
    bool ready;             /* to go on with this step or a later one; */
    bool ended;             /* or to be told its cause */
    uint64_t ready_number;
    uint64_t since;
    uint64_t until;
    struct om_deadline deadline;
    enum om_problem cause;
    bool partial;        /* some items are done: */
    bool left[OM_ITEMS]; /* those still to run */
    struct om_done done; /* what is known of the result */
    uint64_t kept;       /* without an op: which */
    uint64_t place;      /* of that, among all that is kept */
    bool upgrade;
    uint64_t arrival;
    uint64_t event; /* order of its grant or its end in a deadlock; 0: told */
    int want_count;
    struct om_want wants[OM_WANTS];
};

struct om_outcome_record {
    uint32_t txn;
    bool committed;
    bool by_request;
    bool query;
    uint64_t age;
    uint64_t ended;
    uint64_t commit_ts;
    uint64_t changes;
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
    int piece; /* things that ends of sessions and transactions do with one step, a RESTART, and what goes on; and documents that one removes */
    int sweep; /* the same once nobody sees them and its locks are gone */
};

struct om {
    struct om_limits limits;
    uint64_t last_ts;
    uint64_t ts;              /* of the unit at hand */
    uint64_t clock;           /* the latest of an operation in this life of the server; deadlines are counted by it */
    uint64_t tombstones_from; /* versions of documents deleted before that count no longer */
    uint64_t outcomes_from;   /* outcomes of transactions that ended before are told no longer */
    bool committing;          /* a transaction */
    bool dirty;               /* the unit has put something into its batch */
    struct om_index indices[OM_INDICES];
    struct om_docs docs;
    int16_t places[OM_INDICES][OM_DOCS]; /* where documents lie in the tree of locks; -1: in their index */
    struct om_session sessions[OM_SESSIONS];
    struct om_txn txns[OM_TXNS];
    struct om_wait waits[OM_WAITS];
    uint64_t born[OM_OWNERS];
    uint64_t age[OM_OWNERS]; /* when it began, or its first try did */
    int lock_count;
    struct om_lock locks[OM_LOCKS];
    int ended_count;
    struct om_outcome_record ended[OM_ENDED];
    struct om_kept kept[OM_KEPT];
    struct om_tried tried[OM_TRIED];
    uint64_t last_kept, last_place, last_leaving;
    int left_max;    /* how many of what was kept may still be granted in this step */
    int things_left; /* how much of what is ready may still go on in it */
    int withheld; /* what happens now is one moment: nobody is granted anything yet */
    bool stopped; /* the server has ended; until OP_RESTART nothing goes on by itself */
    uint64_t last_born, last_arrival, last_event, last_ready, last_parked, last_deadline;
    uint64_t last_token;
    size_t history; /* versions remembered (history.c) that belong to this state */
};

/* What a step is told and what it brings about. */
struct om_step {
    const struct om_circle *circles;
    int circle_count;
    int circles_met;
    int done_count;
    struct om_done done[OM_DONE];
    struct om_docs seen[OM_DONE]; /* by an OP_READ that is done */
    const char *wrong;            /* NULL: nothing. What must never be, in the model's own state */
    void (*unit)(void *context, const struct om *model); /* called at the end of each unit */
    void *context;
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

/* The number of a version that says: the index is there from now on (doc.live), or not. */
enum { OM_WHOLE_INDEX = 255 };

struct om_history {
    size_t capacity;
    struct om_version *versions;
};

void om_init(struct om *model, const struct om_limits *limits, uint64_t ts);
/* Applies one operation at `ts`: of an OP_TICK what has run out first, then itself, then what may go on. */
void om_apply(struct om *model, const struct om_op *op, uint64_t ts, struct om_step *step);
/* Forgets what a crash or the end of the server takes: transactions, waits, attachments. OP_RESTART does the
 * rest. */
void om_stop(struct om *model);
/* Returns: when the next deadline is; OM_NEVER: none. */
uint64_t om_next_deadline(const struct om *model);
/* Upkeep: the oldest transactions that have no record yet get one, `keys_max` at most. */
void om_txn_record(struct om *model, size_t keys_max);
/* The oldest timestamp a query transaction reads at; OM_NEVER: none. */
uint64_t om_oldest_read(const struct om *model);
/* Documents as of a timestamp. */
void om_docs_at(const struct om *model, const struct om_history *history, uint64_t ts, struct om_docs *ret_docs);
/* What is wrong with a state as such, between steps: NULL when nothing is. */
const char *om_check(const struct om *model);

#endif
