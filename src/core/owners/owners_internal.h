/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners: sessions, transactions, writes of their own, and the commands that wait for locks.
 *
 * README-locks.md says what they do. Everything here happens in an open unit: locks that sessions gain or lose, sessions
 * and outcomes of transactions are written in its batch. What the table of locks causes beside the call at hand is
 * fetched by owners__settle(), at the end of each unit at the latest.
 */
#ifndef TL_CORE_OWNERS_INTERNAL_H
#define TL_CORE_OWNERS_INTERNAL_H

#include "base/heap.h"
#include "core/step/core_internal.h"
#include "core/locks/lock.h"
#include "core/owners/story.h"
#include "core/documents/write_internal.h"

/* --- Deadlines ---------------------------------------------------------------------------------------------------- */

struct deadline {
    struct heap_node node;
    uint64_t at;     /* by the clock of commands; TL_TS_MAX: never */
    uint64_t number; /* of its setting: the earlier goes first at the same time */
};

struct deadlines {
    struct heap heap;
    uint64_t last_number;
};

void deadlines_init(struct deadlines *deadlines);
void deadlines_deinit(struct deadlines *deadlines);
/* Sets or moves a deadline; TL_TS_MAX: none. */
void deadline_set(struct deadlines *deadlines, struct deadline *deadline, uint64_t at);
/* Returns: when `us` from now will be; TL_TS_MAX when that is beyond all time. */
static inline uint64_t deadline_after(const struct core *core, uint64_t us)
{
    return core->clock >= TL_TS_MAX || us >= TL_TS_MAX - core->clock ? TL_TS_MAX : core->clock + us;
}
/* Returns: the timestamp of a deadline, for people: if the clock that timestamps are made by runs as it should. */
static inline tl_ts deadline_ts(const struct core *core, uint64_t at)
{
    uint64_t left = at > core->clock ? at - core->clock : 0;
    return at >= TL_TS_MAX || left >= TL_TS_MAX - core->ts ? TL_TS_MAX : core->ts + left;
}
/* Returns: the first that is due, or NULL. */
struct deadline *deadlines_due(const struct deadlines *deadlines, uint64_t now);
uint64_t deadlines_first(const struct deadlines *deadlines);

/* --- Parties ------------------------------------------------------------------------------------------------------ */

enum party_kind { PARTY_SESSION, PARTY_TXN, PARTY_WRITE };

/* Who is behind a lock_owner; its `user`. */
struct party {
    enum party_kind kind;
    struct lock_owner owner;
    struct session *session; /* that it belongs to; itself for a session; NULL: none */
};

static inline struct party *party_of(const struct lock_owner *owner)
{
    return owner->user;
}

enum session_end { SESSION_END_CLOSED, SESSION_END_EXPIRED, SESSION_END_FORCED, SESSION_END_DETACHED };

/* How many documents of an index and type live with a session. */
struct living {
    uint32_t index;
    uint16_t type;
    size_t count;
};

struct session {
    struct party party;
    struct slice id;        /* mem_free */
    struct slice name;      /* mem_free; may be empty */
    struct slice on_expire; /* encoded actions (action.h), mem_free; may be empty */
    uint64_t ttl_us;
    tl_ts created;
    uint64_t attachment;      /* 0: none */
    struct deadline lease;    /* at TL_TS_MAX between opening the store and RESTART */
    struct list transactions; /* struct txn by of_session */
    struct list waits;        /* struct wait by of_session: its own and its writes', not its transactions' */
    struct list ending;       /* link, while it is due in the step at hand */
    size_t ephemeral_count;   /* documents marked as living with it, while it lives: the sum of these: */
    struct living *living;    /* by index and type, in no order; mem_free */
    size_t living_count;

    /* Its end, which takes more than one unit when many documents live with it. */
    bool leaving;            /* it is as good as gone, but for its locks */
    bool over;               /* and those are released: what went with it is to be swept away, no more */
    enum session_end how;    /* it ends */
    struct list of_leaving;  /* in owners->leaving */
    struct buf story;        /* of its end, so far */
    struct command *closing; /* that waits for the end; NULL: none */
    size_t removed_count;    /* documents, so far */
    size_t spared_count;     /* those that are kept, since others hold them */
};

/* What an ended session left and somebody else's lock forbids (kept.c). */
struct kept {
    struct list of_all; /* in owners->kept, oldest first */
    uint64_t number;    /* of its record; rises */
    bool removal;       /* of a document that lived with the session; else an action of on_expire */
    tl_ts ended;
    struct slice session; /* mem_free, all three */
    struct slice name;
    struct slice action; /* encoded (action.h), one */
    struct wait *wait;   /* NULL: not asked for yet, between opening the store and RESTART */
};

struct txn {
    struct party party;
    struct slice id; /* mem_free */
    enum txn_mode mode;
    tl_ts created;
    tl_ts read_ts; /* TXN_QUERY */
    uint64_t timeout_us;
    struct deadline idle;    /* not set while a command of it waits */
    struct overlay *overlay; /* NULL: nothing written */
    bool again;              /* it tries again what was rolled back: it reads documents for update */
    uint32_t ahead_notes;    /* of entries that it has put into the store already (ahead.h) */
    struct list of_session;
    struct list of_all;     /* in owners->open_txns, oldest first */
    struct list unrecorded; /* in owners->unrecorded_txns, oldest first: the store does not know that it is open */
    struct wait *wait;      /* NULL: no command waits */
};

/*
 * What becomes of a command that waits for locks: its row in commands.def names them. Each ends the wait or makes it ready to go
 * on in a unit of its own; those that complete the command have freed the wait.
 */
struct turns {
    /* Its locks were granted, in the unit that let go of them. */
    void (*granted)(struct core *core, struct wait *wait);
    /* It was made ready: goes on in a unit of its own. Returns: 0 it is done, the wait is free; CORE_WAITS; fatal codes. */
    int (*resumed)(struct core *core, struct wait *wait);
    /* Its deadline has passed. Returns: 0; fatal codes. */
    int (*timed_out)(struct core *core, struct wait *wait);
    /* It is the victim of a deadlock, whose story is its cause. */
    void (*gives_way)(struct core *core, struct wait *wait);
};
extern const struct turns write__turns;    /* admit.c */
extern const struct turns change__turns;   /* admit_change.c */
extern const struct turns lock__turns;     /* do_lock.c */
extern const struct turns txn_lock__turns; /* do_lock.c */
extern const struct turns kept__turns;     /* kept.c; of no command */

/* A command that waits for its locks, or was granted them and is about to go on. */
struct wait {
    const struct turns *turns;
    struct party *party;      /* of its write_wait; NULL: its owner is a session or a transaction */
    struct lock_owner *owner; /* whose request it is */
    struct command *command;  /* NULL: what an ended session left */
    struct kept *kept;        /* with no command: which; else NULL */
    struct lock_request *request;
    struct session *session;  /* that it ends with; NULL: none */
    struct txn *txn;          /* NULL: none */
    struct deadline deadline; /* set while it waits */
    uint64_t until;           /* what it was set to */
    uint64_t since;           /* by the clock */
    tl_ts since_ts;
    size_t bytes;          /* it takes with its command, since it began to wait */
    size_t place;          /* how many stood ahead when it began to wait */
    bool ready;            /* it is in owners->ready */
    uint64_t names_epoch;  /* of a LOCK: core->names_epoch when it asked */
    tl_ts granted;         /* of a LOCK that must look again what its names mean: when it was granted */
    bool told;             /* as one that lasts; news.c */
    struct problem *cause; /* why it must fail, in the command's arena; NULL: it goes on */
    bool *left;            /* of a bulk: the items still to run, in the command's arena; NULL: all */
    struct list of_all;    /* in owners->waits, in order of arrival */
    struct list of_session;
    struct list link; /* in owners->ready */
};

/* One of a write that is nobody's, and so a party itself. */
struct write_wait {
    struct wait wait;
    struct party party; /* PARTY_WRITE */
};

struct owners {
    struct core *core;
    struct lock_table locks;
    struct map sessions; /* by id */
    struct map txns;     /* open ones, by id */
    struct list open_txns;
    struct list unrecorded_txns; /* query transactions that were begun since the last upkeep */
    struct map requests;         /* waits by the number of their command (u64be) */
    struct list waits;
    struct list ready;
    struct list leaving;  /* sessions whose end goes on, oldest end first; empty before RESTART */
    size_t leaving_count; /* sessions that are leaving */
    struct list kept;
    size_t kept_count;
    uint64_t last_kept;
    struct deadlines leases;
    struct deadlines wait_ends;
    struct deadlines idles;
    struct stories stories;
    struct buf ended_slow; /* lines about waits that were told as slow and have ended since the last look */
    size_t ended_slow_count;
    size_t stories_told; /* of stories.count, as news */

    /* For the budget's tallies only (base/budget.h, invariant 5). */
    size_t action_bytes; /* of sessions, and kept ones */
    size_t wait_bytes;   /* of `waits` */
    size_t told_locks;   /* of what owners__tally() has told */
    size_t told_actions;
};

/* Its public number: as short as can be, the same after a restart, no key to anything. Transactions have one likewise. */
static inline uint64_t session_number(const struct session *session)
{
    return session->party.owner.number;
}

static inline struct session *owners_session(const struct owners *owners, struct slice id)
{
    return map_get(&owners->sessions, id);
}

/* Returns: a session that lives, or NULL. */
static inline struct session *owners_live_session(const struct owners *owners, struct slice id)
{
    struct session *session = map_get(&owners->sessions, id);
    return session == NULL || session->leaving ? NULL : session;
}

/* As lock_table_token(), of an owner whose session lives still. */
static inline bool owners_token(const struct owners *owners, tl_ts token, const struct resource_name *name,
                                struct lock_owner **ret_owner)
{
    struct lock_owner *owner;
    if (!lock_table_token(&owners->locks, token, name, &owner) ||
        (party_of(owner)->session != NULL && party_of(owner)->session->leaving))
        return false;
    *ret_owner = owner;
    return true;
}

/* Returns: an open transaction, or NULL. */
static inline struct txn *owners_txn(const struct owners *owners, struct slice id)
{
    return map_get(&owners->txns, id);
}

/* A piece of STATUS_LOCKS (do_status_locks.c). */
void status__locks(struct core *core, struct command *command);

/*
 * Fetches what the table of locks did: ends victims, completes lock commands that were granted, makes ready the other
 * commands that were.
 */
int owners__settle(struct core *core) TL_MUST_USE;

/* --- Terms (terms.c) ---------------------------------------------------------------------------------------------- */

/* Finds the session that a command names; NULL when it names none. Returns: false when there is none such, the problem is the command's. */
bool terms__session(struct core *core, struct command *command, struct session **ret_session);
/*
 * Whether the fencing token that a command names, if any, is that of a lock which covers `name` and is held now by `who`: the
 * session or the transaction for which it is asked (NULL: for nobody, who holds nothing), or another of the same session. The one
 * place where tokens are checked. Returns: false with *ret_problem in the command's arena.
 */
bool terms__cover(const struct core *core, struct command *command, const struct resource_name *name,
                  const struct party *who, struct problem *ret_problem) TL_MUST_USE;

/* The turns of a command's row; of NULL those of what waits without a command. */
const struct turns *owners__turns(const struct command *command);

/* --- Waits (wait.c) ----------------------------------------------------------------------------------------------- */

/* Makes a wait for a command; `owner` NULL: it gets one of its own that belongs to `session`. */
struct wait *wait__new(struct core *core, struct command *command, struct lock_owner *owner, struct session *session,
                       struct txn *txn);
/* Asks for wants, in place of what it asked for before. Returns: as lock_request_start(). */
int wait__ask(struct core *core, struct wait *wait, const struct lock_want *wants, size_t count,
              bool may_wait) TL_MUST_USE;
/* Begins to wait until `deadline`. */
void wait__park(struct core *core, struct wait *wait, uint64_t deadline);
/* Takes it out of everything and frees it; a write's own locks are released. */
void wait__free(struct core *core, struct wait *wait);
/* Completes the command of a wait with a problem, and frees the wait. */
void wait__fail(struct core *core, struct wait *wait, enum problem_type type, const char *format, ...) TL_PRINTF(4, 5);
/* Returns: where to say why it must fail, or the cause that was said. Requires: it has a command. */
struct problem *wait__cause(struct wait *wait);
/* Fills a problem with who stands against what a wait has asked for. `arena` takes its texts. */
enum { HOLDERS_TOLD_MAX = 100 };
void wait__explain(struct wait *wait, enum problem_type type, size_t holders_max, struct arena *arena,
                   struct problem *ret_problem);
/* Whether so many wait that no other may: who would have to is told so at once. What is free is granted all the same. */
bool wait__full(const struct core *core);
void wait__explain_full(const struct core *core, struct arena *arena, struct problem *ret_problem);
/* Makes a wait ready to go on in a unit of its own. As a turn: granted. */
void wait__ready(struct core *core, struct wait *wait);
/* Turns that many share: the command is told why, what it belongs to goes on or, after a deadlock, is rolled back. */
int wait__timed_out(struct core *core, struct wait *wait) TL_MUST_USE;
void wait__gives_way(struct core *core, struct wait *wait);
/* Notes the end of a wait that was told as slow (news.c). */
void wait__tell_end(struct core *core, const struct wait *wait);

/* --- Locks (do_lock.c) -------------------------------------------------------------------------------------------- */

/* --- Names (names.c) ---------------------------------------------------------------------------------------------- */

/* What is wanted together, in the core's arena. */
struct wants {
    struct lock_want *items;
    size_t count;
    size_t capacity;
};
void wants__add(struct core *core, struct wants *wants, const struct lock_want *want);
/* Returns: how many are locks, and not only places for something. */
size_t wants__lock_count(const struct wants *wants);

/* Whether a name is neither an index nor an alias. */
bool names__missing(const struct core *core, struct slice name);
/*
 * Finds what lock targets mean: indices with the aliases that named them, and documents under all their names, where they lie
 * now. `strict`: a directory in an index without a path field is refused.
 * Returns: 0; 1 with *ret_problem in `arena`; fatal codes.
 */
int names__of_locks(struct core *core, const struct lock_target *targets, size_t count, const struct overlay *overlay,
                    bool strict, struct arena *arena, struct wants *ret_wants, struct problem *ret_problem) TL_MUST_USE;
/*
 * Finds what a read of a transaction must lock and has not. Of names that come to nothing the read itself will tell.
 * Returns: 0; fatal codes.
 */
int names__of_reads(struct core *core, const struct lock_target *targets, size_t count, enum dialect dialect,
                    const struct txn *txn, struct wants *ret_wants) TL_MUST_USE;
/* Adds what an item of a write must lock: its document, the place where it will lie, the index that it makes. */
void names__of_write(struct core *core, const struct write_item *item, const struct write_target *target,
                     enum dialect dialect, const struct txn *txn, struct wants *wants);
/* Returns: by what name a document that is written is locked. */
struct resource_name names__written(struct core *core, const struct write_target *target);
/* Adds what a command that changes indices or stored scripts must lock. */
void names__of_change(struct core *core, const struct command *command, struct wants *wants);
/* Releases the aliases by which an owner has nothing locked any more. */
void names__forget_unused(struct core *core, struct lock_owner *owner);
/* Whether a session (NULL: none) would itself make a name mean something else that it has locked. Then *ret_problem says so. */
bool names__own(struct core *core, const struct session *session, const struct wants *wants, struct arena *arena,
                struct problem *ret_problem);
/* Tells the table of locks that a document lies elsewhere, under each of its names. */
void names__move(struct core *core, const struct resource_name *name, struct slice path);
/*
 * Leaves out names that nobody else (`owner` NULL: nobody) holds against it: who keeps nothing waits only for names that are
 * held, and keeps nobody from a name while he waits for other things.
 */
void names__drop_free(struct core *core, const struct lock_owner *owner, const struct session *session,
                      struct wants *wants);
/* Leaves out names that an owner keeps already: who waits to change one must not be waited for. */
void names__drop_kept(struct core *core, const struct lock_owner *owner, struct wants *wants);
/* Returns: what a change of a document, by its stored type, must lock. */
struct wants names__of_document(struct core *core, const struct resource_name *document);
/* Returns: whether a document could be changed at once by what an owner has, or for it. */
bool names__free_for(struct core *core, struct lock_owner *owner, const struct resource_name *document);

/* --- Writes (admit.c) --------------------------------------------------------------------------------------------- */

/*
 * Runs the one action of `command`, which a session left, as its own write in the open unit. The command must live as long as the
 * unit, since what it wrote is seen through its memory. Who waits is no obstacle.
 * Returns: 0 with its result; 1 somebody else holds what stands against it, and it was not done; fatal codes.
 */
int admit__run_left(struct core *core, struct session *session, struct command *command) TL_MUST_USE;
/* Whether somebody else holds what stands against the removal of a document that lives with a session. */
bool admit__removal_held(struct core *core, struct session *session, const struct write_item *removal);
/* Asks for the locks of a kept action. Returns: 0 it has them; CORE_WAITS, parked; fatal codes. */
int admit__ask_kept(struct core *core, struct wait *wait, struct command *command) TL_MUST_USE;
/* The same once it was granted, and runs it. Returns: 0 with its result; CORE_WAITS, it needs others by now; fatal codes. */
int admit__resume_kept(struct core *core, struct wait *wait, struct command *command) TL_MUST_USE;

/* --- Kept actions (kept.c) ---------------------------------------------------------------------------------------- */

/* Returns: a command of the core's own, for what ended sessions left. */
struct command *kept__command(void);
/* Keeps what a session left, in the open unit. */
int kept__keep(struct core *core, const struct session *session, const struct write_item *item,
               bool removal) TL_MUST_USE;
void kept__free(struct core *core, struct kept *kept);
int kept__load_all(struct core *core) TL_MUST_USE;
/* After a restart: asks for the locks of all. */
int kept__restart(struct core *core) TL_MUST_USE;
uint64_t kept__digest(const struct kept *kept);
void kept__owner_text(const struct kept *kept, struct buf *buf);
/* Fills in what is to be done. The item points into `kept` and `arena`. */
int kept__item(const struct kept *kept, struct arena *arena, struct write_item *ret_item) TL_MUST_USE;

/* --- Sessions (session.c) ----------------------------------------------------------------------------------------- */

/* Returns: a session that is not over, by its public number as text, or NULL. Looks at all of them. */
struct session *session__numbered(const struct core *core, struct slice number);
/* Finds a session that lives. Returns: it, or NULL with *ret_problem in `arena`. */
struct session *session__find(struct core *core, struct slice id, struct arena *arena, struct problem *ret_problem);
/* Ends what waits for a session itself and for its writes, before anything could be granted to it. */
void session__cancel_waits(struct core *core, struct session *session);
/*
 * Ends a session in the open unit. Returns: 0, it is over; 1, with documents that only pieces can remove it is leaving; fatal codes.
 */
int session__end(struct core *core, struct session *session, enum session_end how) TL_MUST_USE;
/* It is as good as gone from now on. */
void session__leaves(struct core *core, struct session *session);
/* Goes on with the end of the first that is leaving, in the open unit. */
int session__leave_on(struct core *core) TL_MUST_USE;
void session__free(struct core *core, struct session *session);
/* Counts documents that are marked as living with a session, more or fewer, while there is such a session. */
void session__count(struct core *core, struct slice id, uint32_t index, uint16_t type, int change);
int session__restart(struct core *core) TL_MUST_USE;

/* session_store.c: records in SPACE_SYSTEM. */
void session__put_record(struct core *core, const struct session *session);
void session__drop_record(struct core *core, const struct session *session);
/* Returns: 0 a session lives, by its record; STORE_NOT_FOUND; fatal codes. On any thread. */
int session__look_up(struct store *store, struct slice id) TL_MUST_USE;
/* A lock came, changed or goes; the hook of the table. */
void session__lock_changed(void *context, const struct lock_hold *hold, bool gone);
int session__load_all(struct core *core) TL_MUST_USE;
/* Makes a session with everything but its place in the maps. */
struct session *session__make(struct core *core, struct slice id, struct slice name, uint64_t ttl_us, tl_ts created);

/* --- Transactions (txn.c) ----------------------------------------------------------------------------------------- */

/*
 * Finds an open transaction for a command that may name a session as well.
 * Returns: it, or NULL with *ret_problem in `arena` saying how it ended.
 */
struct txn *txn__find(struct core *core, struct slice id, struct slice session, struct arena *arena,
                      struct problem *ret_problem);
/* Returns: an open transaction by its public number as text, or NULL. Looks at all of them. */
struct txn *txn__numbered(const struct core *core, struct slice number);
/* Returns: the overlay to write to; pointers into it from before are no longer good. */
struct overlay *txn__overlay(struct txn *txn);
/*
 * Something was done with it: its idle time begins again. Readers of a query transaction tell that only when the core has not heard
 * of it for TXN_FRESH_US or an eighth of its timeout, so it may idle that much longer.
 */
#define TXN_FRESH_US (250 * TL_MS)
void txn__touch(struct core *core, struct txn *txn);
/* Rolls back in the open unit, with a cause that is kept. A command that waits ends. It is freed. */
void txn__abort(struct core *core, struct txn *txn, const char *format, ...) TL_PRINTF(3, 4);
void txn__free(struct core *core, struct txn *txn);
/* Goes on with a TXN_LOCK. */
void txn__locked(struct core *core, struct wait *wait);
int txn__restart(struct core *core) TL_MUST_USE;

/* txn_store.c: the outcomes of ended transactions, kept for an hour. */
struct txn_outcome {
    bool committed;
    bool by_request; /* rolled back because its owner said so */
    enum txn_mode mode;
    tl_ts created;
    tl_ts ended;
    tl_ts commit_ts;
    uint64_t changes;
    struct slice session; /* its public number as text; of stores that are older an id */
    struct slice cause;   /* of a roll back */
    tl_ts age;            /* its owner's */
};
/* Returns: what is told of its session, data NULL where it has none. */
struct slice txn__session_text(const struct txn *txn, struct arena *arena);
#define TXN_OUTCOME_KEPT_US (3600 * TL_SECOND)
void txn__put_open(struct core *core, const struct txn *txn);
void txn__drop_open(struct core *core, struct slice id);
void txn__put_outcome(struct core *core, struct slice id, const struct txn_outcome *outcome);
/* Returns: 0; STORE_NOT_FOUND, also when it is older than an hour; fatal codes. Slices live in `arena`. */
int txn__get_outcome(struct core *core, struct slice id, struct arena *arena,
                     struct txn_outcome *ret_outcome) TL_MUST_USE;
/* Turns transactions that were open before a restart into outcomes. */
int txn__end_lost(struct core *core) TL_MUST_USE;

#endif
