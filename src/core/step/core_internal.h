/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the core share: its state, units, and the hooks by which sessions, locks and transactions
 * take part in a step.
 *
 * Units. A step applies one or more units, each at a timestamp of its own with a batch of its own: what fell due,
 * the command itself, and each waiting command that may go on. core__begin() opens a unit, core__commit() writes it;
 * core__abandon() forgets all it did. Between the two, core->ts is its timestamp; documents it has written so far are
 * seen through core->pending, everything else through the store.
 */
#ifndef TL_CORE_CORE_INTERNAL_H
#define TL_CORE_CORE_INTERNAL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "core/catalog/catalog_internal.h"
#include "core/step/core.h"
#include "core/catalog/counter.h"
#include "core/locks/lock_log.h"
#include "core/documents/seen.h"
#include "core/upkeep/sweep.h"
#include "core/documents/write.h"
#include "script/script.h"

struct owners; /* sessions, locks, transactions, waiting commands */

/* A change of how many documents live with a session. */
struct leased {
    struct slice session;
    uint32_t index;
    uint16_t type;
    int change;
};

struct core {
    struct store *store;
    struct core_limits limits;
    struct effects *effects; /* of the step at hand; NULL between steps */
    tl_ts last_ts;           /* invariant 1 */
    uint64_t clock;          /* the highest that a command has named since core_open(); deadlines are counted by it */
    tl_ts written_ts;        /* of the last unit that wrote anything: what last_ts is after a restart */
    struct buf marked;       /* what was kept with the mark that core_open() found */
    tl_ts binding_ts;        /* of the last that must be durable before anybody hears of it */
    bool chained;            /* core_begin_chain() was called: nobody pays for a chain that nobody reads */
    uint64_t chain;          /* over all batches written since; core_chain() */

    /* The unit at hand. */
    bool open;
    tl_ts ts;
    tl_ts named_ts; /* newest timestamp that some record in batch or log tells, so that core_open() finds it; 0: none */
    bool unbinding; /* nobody needs to wait until it is durable */
    bool in_txn;    /* a transaction's request ran in it, which a crash takes back with its transaction ... */
    size_t ahead;   /* ... unless there are more changes in the batch than these: entries put ahead, and their notes */
    struct store_batch *batch;
    struct lock_log log;            /* records of locks, not in `batch` yet */
    struct arena arena;             /* reset when the unit ends */
    struct arena scratch;           /* the same, and by a write between its items */
    struct map pending;             /* document key to struct doc in `arena`: what the unit has written so far */
    struct catalog *catalog_before; /* of its beginning, for core__abandon() */
    bool catalog_changed;
    uint64_t names_epoch;  /* counts changes of what names mean: indices and aliases that came and went */
    struct leased *leased; /* what the unit has counted of documents that live with sessions, in `arena` */
    size_t leased_count;
    size_t leased_capacity;
    struct list spent; /* commands of the core's own, whose memory `pending` points into */

    /* What lasts. */
    bool grouping;               /* between core_group_begin() and core_group_end() */
    struct catalog *catalog;     /* with the changes of the unit at hand */
    struct counters counters;    /* documents, sequence numbers, index numbers */
    struct seen_changes changes; /* of documents, to tell what submitters have seen that is so no more */
    struct sweep sweep;          /* of stale chunks, that goes on with upkeep */
    struct script_cache *scripts;
    struct owners *owners;
};

/* --- Units -------------------------------------------------------------------------------------------------------- */

/*
 * Opens a unit at `at`, or one above the last when that is higher.
 * Requires: none is open.
 */
void core__begin(struct core *core, tl_ts at);
/* Writes the unit. Returns: 0; TL_ERR_IO and the like, after which the core must not be used. */
int core__commit(struct core *core) TL_MUST_USE;
/* Takes back all that the unit changed in memory and in its batch; it stays open, empty. */
void core__abandon(struct core *core);

/* Returns: whether the open unit has changed anything that is stored. */
static inline bool core__changed(const struct core *core)
{
    return store_batch_count(core->batch) > 0 || lock_log_changed(&core->log);
}

/* Frees a command of the core's own when the unit ends; NULL is fine. */
void core__free_at_end(struct core *core, struct command *command);

/* Changes of the catalog in the open unit. Pointers to indices of the catalog before are no longer good. */
void core__put_index(struct core *core, const struct catalog_index_spec *spec);
void core__put_mapping(struct core *core, uint32_t number, const struct mapping *mapping);
void core__drop_index(struct core *core, uint32_t number);
void core__put_object(struct core *core, enum catalog_kind kind, const struct catalog_object *object);
void core__drop_object(struct core *core, enum catalog_kind kind, struct slice name);

/* Returns: a view of the newest state; documents that the unit itself wrote are in core->pending. */
static inline struct view core__view(const struct core *core, const struct overlay *overlay)
{
    return (struct view){core->store, TL_TS_MAX, overlay};
}

/* Puts a command on effects->completed; its ts becomes that of the unit at hand, or the last one. */
void core__complete(struct core *core, struct command *command);

/* --- Handlers ----------------------------------------------------------------------------------------------------- */

enum {
    CORE_WAITS = 1, /* the command is parked with the owners, who complete it later */
};

/*
 * core__do_NAME(): runs a command in the open unit. A refusal is in command->problem.
 * Returns: 0 the command is done; CORE_WAITS; a fatal code.
 */
typedef int core_handler(struct core *core, struct command *command);
#define X(symbol, name, code, member, flags, turns) \
    int core__do_##name(struct core *core, struct command *command) TL_MUST_USE;
#include "core/step/commands.def"
#undef X
/* Runs the handler of the command's row. */
int core__handle(struct core *core, struct command *command) TL_MUST_USE;

/*
 * Runs the items of a WRITE that may run, whose results are there already; `chosen` (NULL: all) says which. Of `how` overlay, ahead,
 * placing and parsed count, the latter where all run. In a transaction `overlay` and `ahead` take what it changes; when it is
 * to be rolled back they are as they were.
 * Returns: 0; fatal codes.
 */
int core__run_write(struct core *core, struct command *command, const bool *chosen,
                    const struct write_run *how) TL_MUST_USE;

/* --- Hooks: session.c, lock.c, txn.c ------------------------------------------------------------------------------ */

/* Rebuilds and frees what the owners hold. core_open() and core_close() call them. */
int owners__open(struct core *core) TL_MUST_USE;
void owners__close(struct core *core);
/* A unit was opened: what is granted in it is granted at its timestamp. */
void owners__begin(struct core *core);
/* Returns: the newest timestamp that the open unit has used: its own, or the last token given in it. */
tl_ts owners__last_ts(const struct core *core);
/* A unit is about to be written: takes part in it with what its releases and waits have brought about. */
int owners__settle(struct core *core) TL_MUST_USE;
/* Completes every waiting command with PROBLEM_STOPPING. */
void owners__stop(struct core *core);
/*
 * What a step does before its command, with no unit open: a session that leaves in pieces loses one more; and, when the command is a
 * TICK (NULL: it is not), waits with a deadline at or before core->clock fall due, and leases and idle transactions with one at or before
 * what it says was heard, in order of deadline, each in a unit of its own. The first unit has the timestamp `at`.
 */
int owners__due(struct core *core, tl_ts at, const struct tick_command *tick) TL_MUST_USE;
/* Runs the waiting commands that may go on, oldest grant first, each in a unit of its own. Called with none open. */
int owners__resume(struct core *core) TL_MUST_USE;
/* Tells the budget what locks, waits and actions take, where that has changed by much; at the end of each step. */
void owners__tally(struct core *core);
/* Returns: whether anyone holds or awaits a lock; while not, writes ask for none (the short path). */
bool owners__any(const struct core *core);
/* Returns: whether no lock, held or awaited, can concern a write in this index. */
bool owners__clear_of(const struct core *core, struct slice index);
/*
 * Runs a write that belongs to somebody, or that something could stand against: checks session, transaction and fencing
 * token, takes or awaits its locks. Its results are there, zeroed. As a handler.
 */
int owners__write(struct core *core, struct command *command) TL_MUST_USE;
/*
 * Runs the handler of a command that changes indices, once no lock of anybody else stands against it. As a handler.
 */
int owners__change(struct core *core, struct command *command) TL_MUST_USE;
/*
 * Checks that a session may be given a document to live with it. Returns: 0; 1: *ret_problem says why not.
 */
int owners__check_lease(struct core *core, struct slice session, struct arena *arena,
                        struct problem *ret_problem) TL_MUST_USE;
/* Checks that so many more documents may live with a session. Returns: 0; 1: *ret_problem says why not. */
int owners__check_lease_count(struct core *core, struct slice session, size_t more, struct arena *arena,
                              struct problem *ret_problem) TL_MUST_USE;
/* Counts a document, by its key, that lives with a session, or does no more; core__abandon() takes it back. */
void owners__count_lease(struct core *core, struct slice session, struct slice key, int change);
/* Returns: whether a session is leaving in pieces, so that a document may lie in the store that went with one. */
bool owners__any_leaving(const struct core *core);
/* Takes back what the unit has counted so far. */
void owners__uncount_leases(struct core *core);
/* An index is deleted in the open unit: what is marked in it lives with nobody any more. */
int owners__forget_index(struct core *core, uint32_t index) TL_MUST_USE;
bool owners__transaction_open(const struct core *core, struct slice id);
/* Returns: when the oldest update transaction that is open began; TL_TS_MAX: none is. */
tl_ts owners__oldest_update(const struct core *core);
/* Writes the records of open query transactions that have none yet, oldest first. Returns: how many. */
size_t owners__record_open(struct core *core, size_t keys_max);
/*
 * Removes for good what has been kept long enough, in the open unit: outcomes of transactions.
 * Returns: 0 and how many keys; fatal codes.
 */
int owners__forget(struct core *core, size_t keys_max, size_t *ret_removed) TL_MUST_USE;
/* Folds the state of sessions and locks into a digest. */
int owners__digest(struct core *core, uint64_t *digest) TL_MUST_USE;

#endif
