/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The deterministic core: one step, one command, one timestamp. See README.md, invariants 1 to 9.
 */
#ifndef TL_CORE_CORE_H
#define TL_CORE_CORE_H

#include "core/step/command.h"
#include "core/step/core_metrics.h"
#include "store/view.h"

struct core;
struct catalog;
struct buf;

/* How long a deleted document's version counts on, and the outcome of a transaction is told, by the clock that nobody sets. */
#define CORE_TOMBSTONE_US (60 * TL_SECOND)
#define CORE_OUTCOME_US (3600 * TL_SECOND)

/* What a step did besides changing the store. Reused from step to step; its reader empties the list. */
struct effects {
    struct list completed; /* commands, by `link`, in the order of their completion */
    tl_ts last_ts;         /* the newest timestamp applied */
    bool catalog_changed;  /* publish core_catalog() once it is durable */
    /* Told of query transactions as they are begun, used and ended, in the middle of the step; NULL: nobody is. */
    void (*query_txn_used)(struct effects *effects, struct slice id, tl_ts read_ts, uint64_t fresh_us);
    void (*query_txn_ended)(struct effects *effects, struct slice id);
};

void effects_init(struct effects *effects);

/*
 * Builds the state from what the store holds; an empty store is an empty state. `limits` are those until a command LIMITS has put others
 * into the store, which stay.
 * Returns: 0; TL_ERR_IO, TL_ERR_CORRUPT. Owns: the caller; core_close().
 */
int core_open(struct store *store, const struct core_limits *limits, struct core **ret_core) TL_MUST_USE;

/* Frees the state. Requires: no command waits; core_stop() sees to that. */
void core_close(struct core *core);

/* Completes every waiting command with PROBLEM_STOPPING, for an orderly end. */
void core_stop(struct core *core, struct effects *effects);

/*
 * Applies one command.
 *
 * Requires: command->ts is above core_last_ts(); the command does not only look. command->clock does not sink; one that does counts as
 * the highest so far.
 * Ensures: the command is on effects->completed, or waits in the core and will be on a later one.
 * Returns: 0; TL_ERR_IO or TL_ERR_CORRUPT, after which the core must not be used any more.
 */
int core_step(struct core *core, struct command *command, struct effects *effects) TL_MUST_USE;

/*
 * Answers a command that only looks (COMMAND_UNLOGGED), as of the last step: nothing changes, no timestamp is used up, and what
 * comes after it comes as if it had not been. On this host only, whenever it likes.
 *
 * Ensures: the command is on effects->completed; its timestamp is core_last_ts().
 * Returns: as core_step().
 */
int core_inspect(struct core *core, struct command *command, struct effects *effects) TL_MUST_USE;

/*
 * From here on the core may keep back what steps would write and nobody reads: the records of locks. core_group_end() writes
 * it; no sync means anything before. For who applies many commands before one sync.
 * Returns: 0; fatal codes as core_step().
 */
void core_group_begin(struct core *core);
int core_group_end(struct core *core) TL_MUST_USE;

/* Returns: the work of the step at hand so far, between steps of the last one, in units of work.h (README.md, invariant 9). */
uint64_t core_step_work(const struct core *core);

/* Returns: the newest timestamp applied, or the highest mark that was left; 0 in an empty store. */
tl_ts core_last_ts(const struct core *core);

/* Returns: the timestamp of the newest unit that put anything into the store. Once that is durable, so is the state. */
tl_ts core_written_ts(const struct core *core);
/*
 * Returns: the same of the newest unit that must be durable before anybody hears of it. What begins and ends query
 * transactions need not be: they change nothing, and a crash ends them anyway. Nor need the requests of an update transaction
 * before its commit.
 */
tl_ts core_must_sync_ts(const struct core *core);

/*
 * Returns: by the clock of commands, when the next wait runs out, the next lease or idle transaction, or the first of them;
 * TL_TS_MAX when none will. A TICK at or after it lets it fall due. While sessions end or leave in pieces, or
 * what ended sessions left is done so, that is like a wait which is over: 0.
 */
uint64_t core_next_wait_end(const struct core *core);
uint64_t core_next_lease_end(const struct core *core);
uint64_t core_next_deadline(const struct core *core);

/* Returns: the oldest timestamp that an open query transaction reads at, which must stay readable; TL_TS_MAX: none. */
tl_ts core_oldest_read(const struct core *core);

/*
 * Returns: what it has counted, to be read from any thread while the core lives. core_reset_metrics() has it count from 0: what was
 * replayed at a start is nothing that this server did.
 */
const struct core_metrics *core_metrics(const struct core *core);
void core_reset_metrics(struct core *core);

/* Returns: what it goes by. Good until the next step. */
const struct core_limits *core_limits(const struct core *core);
/* Returns: whether a command LIMITS has said them; else they are what core_open() was told, which the log of commands does not know. */
bool core_limits_recorded(const struct core *core);

/* Returns: the catalog as of the last step, with a reference for the caller (catalog.h). */
struct catalog *core_catalog(struct core *core);

/* Which timestamp it was so long ago, by the clock that nobody sets; each is taken for the highest that was ever said. */
struct core_horizons {
    tl_ts history_low;    /* nobody reads what was before that */
    tl_ts tombstones; /* CORE_TOMBSTONE_US ago */
    tl_ts outcomes;   /* CORE_OUTCOME_US ago */
};

/*
 * Makes the command MAINTAIN, which removes for good up to `keys_max` keys that nothing can see any more: old tombstones, documents
 * of deleted indices whose history has passed, and up to as many stale chunks of entries, which are looked for here. It writes records
 * that could wait until then, too, and counts them: that query transactions are open. Called between steps; changes nothing of
 * the state. When the command is done and maintain.removed or maintain.looked has come to `keys_max`, there is more to do.
 * Returns: 0; fatal codes as core_step(). Owns: the caller; the command goes the way of all commands.
 */
int core_propose_maintenance(struct core *core, const struct core_horizons *past, size_t keys_max,
                        struct command **ret_command) TL_MUST_USE;

/*
 * Tells what is new since the last time, a line each: deadlocks, sessions that expired, commands that have waited longer than
 * `slow_us` for a lock, and how such waits have ended. `clock` is as of a command's. Called between steps; changes nothing of the
 * state.
 */
void core_report(struct core *core, uint64_t clock, uint64_t slow_us, struct buf *lines);

/* Returns: the last mark that was left, and what was kept with it; 0 and empty: there is none. The slice lives until the next one. */
tl_ts core_ts_ceiling(const struct core *core);
struct slice core_ts_ceiling_payload(const struct core *core);

/* Returns: the highest clock that a command has named, which goes with what is saved. */
uint64_t core_clock(const struct core *core);

/*
 * Returns: a hash chained over each batch that was written, in its order, and over changes of locks that have no records: equal where two cores began their chains with the same number and
 * have applied the same entries since, whatever their stores, and as good as never elsewhere. 0 after core_open().
 */
uint64_t core_chain(const struct core *core);
/*
 * From here on locks outlive the process by core_save() and a log of commands, and no longer by records in the store: those that are there go,
 * further ones are not written. For who has such a log; a core that was opened or loaded writes them until then.
 * Where there were records it uses up a timestamp. Requires: no group is open. Returns: 0; fatal codes.
 */
int core_begin_saving(struct core *core) TL_MUST_USE;

/* Begins the chain, or begins it anew; without, there is none. Requires: no group is open. */
void core_begin_chain(struct core *core, uint64_t chain);

/* A hash of the whole logical state: documents, catalog, sessions, locks, counters; entries are not part of it. */
int core_digest(struct core *core, uint64_t *ret_digest) TL_MUST_USE;

/*
 * Looks for a session, on any thread. The text of the refusal is that of a command that names it.
 * Returns: 0; 1 with *ret_problem in `arena` when it has ended or never was; fatal codes.
 */
int core_find_session(struct store *store, struct slice session, struct arena *arena,
                      struct problem *ret_problem) TL_MUST_USE;

/* Returns: the bytes that a command is about to write to the store, as far as they can be told before; called between steps. */
size_t core_bytes_to_write(const struct core *core, const struct command *command);

/*
 * Who is told before and after each thing that an ended session left is done, on the thread of the step: so that he may know, when the
 * process has ended in between, in the middle of what it was. `session` lives until begin() returns; `kept` and `action` are as in the command
 * TRIED, which is to say so then. step() is called as each step begins.
 */
struct core_watch {
    void (*step)(void *context);
    void (*begin)(void *context, struct slice session, uint64_t kept, uint64_t action);
    void (*end)(void *context);
    void *context;
};
/* Called between steps. NULL: nobody any more. It is to live as long as it is told. */
void core_watch(struct core *core, const struct core_watch *watch);

/* A host of the cluster, as of the last step. README.md, "Hosts". */
struct core_host {
    uint16_t number;
    struct slice name; /* and the others of its JOIN, until the next step */
    struct slice group;
    struct slice address;
    struct slice build;
    uint64_t life;    /* 0: it is out */
    uint64_t entries; /* number of the last of this life that counted */
    uint64_t barrier_clock;   /* of its newest heartbeat */
    tl_ts low;
    tl_ts beat_ts; /* when its newest heartbeat was ordered, or its life began */
};

/* Returns: all that are known, in order of their names. */
const struct core_host *core_hosts(const struct core *core, size_t *ret_count);
/* Returns: the one with this number, or NULL. */
const struct core_host *core_host(const struct core *core, uint16_t number);

/* Releases the overlay of a TXN_LOCK result; from any thread. NULL is fine. */
void core_overlay_unref(struct overlay *overlay);

#endif
