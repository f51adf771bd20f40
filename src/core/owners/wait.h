/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that wait for their locks, and what becomes of them. */
#ifndef TL_CORE_WAIT_H
#define TL_CORE_WAIT_H

#include "core/locks/lock.h"
#include "core/owners/deadline.h"
#include "core/owners/owner.h"
#include "core/step/command.h"

struct wait;
struct core;
struct deferred;
struct session;
struct txn;

/*
 * What becomes of a command that waits for locks: its row in commands.def names them. Each ends the wait or makes it ready to go
 * on in a unit of its own; those that complete the command have freed the wait.
 */
struct wait_ops {
    /* Its locks were granted, in the unit that let go of them. */
    void (*on_grant)(struct core *core, struct wait *wait);
    /* It was made ready: goes on in a unit of its own. Returns: 0 it is done, the wait is free; CORE_WAITS; fatal codes. */
    int (*resume)(struct core *core, struct wait *wait);
    /* Its deadline has passed. Returns: 0; fatal codes. */
    int (*on_timeout)(struct core *core, struct wait *wait);
    /* It is the victim of a deadlock, whose story is its cause. */
    void (*on_deadlock)(struct core *core, struct wait *wait);
    /* It has ended, and is answered now with its cause. Returns: as resumed(). NULL: wait__answer(). */
    int (*answer)(struct core *core, struct wait *wait);
};
extern const struct wait_ops write__wait_ops;    /* acquire.c */
extern const struct wait_ops change__wait_ops;   /* acquire_ddl.c */
extern const struct wait_ops lock__wait_ops;     /* do_lock.c */
extern const struct wait_ops txn_lock__wait_ops; /* do_lock.c */
extern const struct wait_ops rename__wait_ops;   /* do_rename.c */
extern const struct wait_ops deferred__wait_ops;     /* deferred.c; of no command */

/*
 * A command that waits for its locks; or is *ready*: it was granted them and is about to go on, with this step or a later one; or has
 * *ended*, for its cause, and is about to be answered: then it is nobody's, nobody finds it, and it has no request.
 */
struct wait {
    const struct wait_ops *ops;
    struct owner *write_owner;      /* of its write_wait; NULL: its owner is a session or a transaction, or it has ended */
    struct lock_owner *owner; /* whose request it is; NULL: it has ended */
    struct command *command;  /* NULL: what an ended session left */
    struct deferred *deferred;        /* with no command: which; else NULL */
    struct lock_request *request; /* ready, what is kept may need none */
    struct session *session;  /* that it ends with; NULL: none */
    struct txn *txn;          /* NULL: none */
    struct deadline deadline; /* set while it waits */
    uint64_t until;           /* what it was set to; 0: it has never waited */
    uint64_t since;           /* by the clock */
    tl_ts since_ts;
    size_t bytes;          /* it takes with its command, since it began to wait */
    size_t queue_position;          /* how many stood ahead when it began to wait */
    bool ready;            /* it is in owners->ready */
    bool ended;            /* ready, to be answered with its cause */
    uint64_t ready_number; /* its place there */
    uint64_t names_epoch;  /* of a LOCK: core->names_epoch when it asked */
    tl_ts granted_ts;         /* of a LOCK that must look again what its names mean: when it was granted */
    bool reported;             /* as one that lasts; report.c */
    struct problem *cause; /* why it must fail, in the command's arena; NULL: it goes on */
    bool *pending_items;            /* of a bulk: the items still to run, in the command's arena; NULL: all */
    struct list of_all;    /* in owners->waits, in order of arrival */
    struct list of_session;
    struct list link; /* in owners->ready */
};

/* One of a write that is nobody's, and so a party itself. */
struct write_wait {
    struct wait wait;
    struct owner owner; /* OWNER_WRITE */
};

/* The turns of a command's row; of NULL those of what waits without a command. */
const struct wait_ops *owners__wait_ops(const struct command *command);

/* Makes a wait for a command; `owner` NULL: it gets one of its own that belongs to `session`. */
struct wait *wait__new(struct core *core, struct command *command, struct lock_owner *owner, struct session *session,
                       struct txn *txn);
/* Asks for wants, in place of what it asked for before. Returns: as lock_request_start(). */
int wait__acquire(struct core *core, struct wait *wait, const struct lock_spec *wants, size_t count,
              bool may_wait) TL_MUST_USE;
/* Begins to wait until `deadline`. */
void wait__park(struct core *core, struct wait *wait, uint64_t deadline);
/* Puts one that was saved where it stood, with all it has of before but its request; `named`: CANCEL finds it. */
void wait__restore(struct core *core, struct wait *wait, bool named);
/* Makes one that has ended, as it was saved. */
struct wait *wait__restore_ended(struct core *core, struct command *command);
/* Returns: the wait that CANCEL finds by the number of a command; NULL: none. */
struct wait *wait__by_request(const struct core *core, uint64_t number);
/* Takes it out of everything and frees it; a write's own locks are released. */
void wait__free(struct core *core, struct wait *wait);
/*
 * Ends a wait, also one that is ready: its command is told the problem, or each of its items that is left when some are done. wait__fail() frees it where
 * that needs no unit of its own; wait__end() does while the step has things left (cost.h), since there may be many: the others are answered later.
 * Requires: it has a command, and has not ended.
 */
void wait__fail(struct core *core, struct wait *wait, enum problem_type type, const char *format, ...) TL_PRINTF(4, 5);
void wait__end(struct core *core, struct wait *wait, enum problem_type type, const char *format, ...) TL_PRINTF(4, 5);
/* Ends it for the cause that it has, to be answered in a unit of its own. */
void wait__end_later(struct core *core, struct wait *wait);
/* Gives the command of one that has ended its cause, as a whole, and frees the wait. */
void wait__answer(struct core *core, struct wait *wait);
/* Returns: how many things it counts as when it goes on, beside what its scripts take and its sources are. */
size_t wait__cost(const struct wait *wait);
/* Returns: where to say why it must fail, or the cause that was said. Requires: it has a command. */
struct problem *wait__cause(struct wait *wait);
/* Fills a problem with who stands against what a wait has asked for. `arena` takes its texts. */
enum { HOLDERS_REPORTED_MAX = 100 };
void wait__explain(struct wait *wait, enum problem_type type, size_t holders_max, struct arena *arena,
                   struct problem *ret_problem);
/* The same without names, where others of the same command were told them. */
void wait__explain_briefly(struct arena *arena, enum problem_type type, struct problem *ret_problem);
/* Whether so many wait that no other may: who would have to is told so at once. What is free is granted all the same. */
bool wait__limit_reached(const struct core *core);
void wait__explain_limit(const struct core *core, struct arena *arena, struct problem *ret_problem);
/* Says in its command why a wait gets nothing: `would_wait`, but so many do; or it must not, or not any more, and who has it (`type`). */
void wait__explain_conflict(const struct core *core, struct wait *wait, bool would_wait, enum problem_type type);
/* Makes a wait ready to go on in a unit of its own. As a turn: granted. */
void wait__enqueue_ready(struct core *core, struct wait *wait);
/* It is its turn. */
void wait__dequeue_ready(struct core *core, struct wait *wait);
/* Turns that many share: the command is told why, what it belongs to goes on or, after a deadlock, is rolled back. */
int wait__on_timeout(struct core *core, struct wait *wait) TL_MUST_USE;
void wait__on_deadlock(struct core *core, struct wait *wait);
/* Notes the end of a wait that was told as slow (report.c). */
void wait__report_end(struct core *core, const struct wait *wait);

#endif
