/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The deterministic core: one step, one command, one timestamp. See README.md, invariants 1 to 9.
 */
#ifndef TL_CORE_CORE_H
#define TL_CORE_CORE_H

#include "core/command/command.h"
#include "core/unit/core_metrics.h"
#include "store/view.h"

struct core;
struct catalog;
struct buf;

/*
 * How long a deleted document counts for versions, and an ended transaction is reported, by the
 * monotonic clock.
 */
#define CORE_TOMBSTONE_US (60 * TL_SECOND)
#define CORE_OUTCOME_US (3600 * TL_SECOND)
/* The longest idle time of a transaction. */
#define CORE_TXN_IDLE_US_MAX (24 * 3600 * TL_SECOND)

/*
 * The build of a host, in its JOIN and MARKs. Its last part is raised with each change of what equal commands
 * write, reply or save, so that hosts whose chains would differ do not join one cluster.
 */
#define CORE_BUILD TIDELOCK_VERSION "-core23"

/* Effects of a step outside of the store. Reused for all steps; its reader empties `completed`. */
struct effects {
    struct list completed; /* commands in order of completion, by `link` */
    tl_ts last_ts;         /* newest timestamp applied */
    bool catalog_changed;  /* core_catalog() is to be published once the step is durable */
    /*
     * Called during the step when a session ends; `how` is a static text such as "was closed".
     * NULL: not called.
     */
    void (*session_ended)(struct effects *effects, struct slice id, uint64_t number, const char *how);
};

void effects_init(struct effects *effects);

/*
 * Makes a core from a store that has no checkpoint: an empty one, or one of format 1 or 2, which has
 * sessions and locks as records. Otherwise use core_load() (save.h); this function would make a core
 * without sessions, locks and transactions. `limits` apply until a command LIMITS has put limits
 * into the store.
 * Returns: 0; TL_ERR_IO, TL_ERR_CORRUPT. Owns: the caller; core_close().
 */
int core_open(struct store *store, const struct core_limits *limits, struct core **ret_core) TL_MUST_USE;

/*
 * Removes the records of sessions, locks and transactions that core_open() found in a store of
 * format 1 or 2, in a unit of its own; without any it does nothing. From then on the state outside
 * of the store is durable by core_save() and the command log only.
 * Requires: core_open() made the core, nothing was applied to it, and it has no chain.
 * Returns: 0; fatal codes as core_step().
 */
int core_convert(struct core *core) TL_MUST_USE;
/*
 * As core_convert(), but writes nothing: whether the records can be converted.
 * Requires: as there; afterwards the core is closed.
 */
int core_check_conversion(struct core *core) TL_MUST_USE;

/* Frees the state; the store stays open. Requires: no command waits (core_stop()). */
void core_close(struct core *core);

/* Completes every waiting command with PROBLEM_STOPPING. */
void core_stop(struct core *core, struct effects *effects);

/*
 * Applies one command.
 *
 * Requires: command->ts is above core_last_ts(); the command is not COMMAND_UNLOGGED. A
 *   command->clock below an earlier one counts as the highest so far.
 * Ensures: the command is on effects->completed, or waits in the core and will complete in a later
 *   step.
 * Returns: 0; TL_ERR_IO or TL_ERR_CORRUPT, after which the core must not be used any more.
 */
int core_step(struct core *core, struct command *command, struct effects *effects) TL_MUST_USE;

/*
 * Answers a command with COMMAND_UNLOGGED as of the last step. It changes no state and uses no
 * timestamp, so each host may answer it at any time.
 *
 * Ensures: the command is on effects->completed; its timestamp is core_last_ts().
 * Returns: as core_step().
 */
int core_inspect(struct core *core, struct command *command, struct effects *effects) TL_MUST_USE;

/*
 * Returns: the work of the current step so far, or of the last step, in units of work.h (README.md,
 *   invariant 9).
 */
uint64_t core_step_work(const struct core *core);

/*
 * Returns: the newest timestamp applied, or the timestamp ceiling if that is higher; 0 in an empty
 *   store.
 */
tl_ts core_last_ts(const struct core *core);

/*
 * Returns: the timestamp of the newest unit that wrote to the store. Once it is durable, the whole
 *   state is.
 */
tl_ts core_written_ts(const struct core *core);
/*
 * Returns: the timestamp of the newest unit that must be durable before its reply is sent.
 *   Requests of a transaction before its commit need not be.
 */
tl_ts core_must_sync_ts(const struct core *core);

/*
 * Returns: the clock at which the next wait times out, at which the next lease or idle transaction
 *   expires, or the earlier of both; TL_TS_MAX: none. A TICK at or after it makes them due.
 *   core_next_wait_end() is 0 while the cleanup of ended sessions is unfinished, so that a TICK
 *   continues it at once.
 */
uint64_t core_next_wait_end(const struct core *core);
uint64_t core_next_lease_end(const struct core *core);
uint64_t core_next_deadline(const struct core *core);

/*
 * Returns: the core's metrics; any thread may read them while the core lives. core_reset_metrics()
 *   sets the counters to 0 after replay, whose commands are not work of this server.
 */
const struct core_metrics *core_metrics(const struct core *core);
void core_reset_metrics(struct core *core);

/* Returns: the limits that apply; valid until the next step. */
const struct core_limits *core_limits(const struct core *core);
/*
 * Returns: whether the limits come from a command LIMITS; otherwise they are those given to
 *   core_open(), which no log has.
 */
bool core_limits_recorded(const struct core *core);

/* Returns: the catalog as of the last step, with a reference for the caller (catalog.h). */
struct catalog *core_catalog(struct core *core);

/*
 * Timestamps of earlier instants, as the proposer computes them. A lower value than in an earlier
 * command has no effect.
 */
struct core_horizons {
    tl_ts history_low; /* no reader uses an earlier timestamp */
    tl_ts tombstones; /* CORE_TOMBSTONE_US ago */
    tl_ts outcomes;   /* CORE_OUTCOME_US ago */
};

/*
 * Makes a command MAINTAIN that purges up to `keys_max` keys that no reader can see any more:
 * tombstones, outcomes of transactions, documents of deleted indices, and stale posting lists,
 * which this function looks for. If maintain.removed or maintain.scanned reaches `keys_max`, there
 * is more to do. Called between steps; changes no state. Requires: 0 < `keys_max`.
 * Returns: 0; fatal codes as core_step(). Owns: the caller, to submit it as any
 *   command.
 */
int core_propose_maintenance(struct core *core, const struct core_horizons *horizons, size_t keys_max,
                             struct command **ret_command) TL_MUST_USE;

/*
 * Appends a line to `lines` for each event since the last call: deadlocks, expired sessions,
 * commands that have waited longer than `slow_us` for a lock, and the ends of such waits. `clock`:
 * as of a command. Called between steps; changes no state.
 */
void core_report(struct core *core, uint64_t clock, uint64_t slow_us, struct buf *lines);

/*
 * Returns: the last timestamp ceiling and the payload stored with it, valid until the next one; 0
 *   and empty: none.
 */
tl_ts core_ts_ceiling(const struct core *core);
struct slice core_ts_ceiling_payload(const struct core *core);

/* Returns: the highest clock of any command; part of a checkpoint. */
uint64_t core_clock(const struct core *core);

/*
 * Returns: a hash over all written batches and all changes outside of the store, in order; 0 after
 *   core_open(). Two cores that began the chain with equal values and applied the same log entries
 *   have equal chains, whatever their stores. Otherwise chains are equal only by a hash collision.
 */
uint64_t core_chain(const struct core *core);

/*
 * Starts or restarts the chain at a value; without this call none is computed. Called between steps.
 */
void core_begin_chain(struct core *core, uint64_t chain);

/*
 * Computes a hash of the logical state: documents, catalog, sessions, locks and counters, but no
 * index entries.
 */
int core_digest(struct core *core, uint64_t *ret_digest) TL_MUST_USE;

/*
 * Checks that a session exists, on any thread. The problem's text equals that of a command that
 * names the session.
 * Returns: 0; 1 with *ret_problem in `arena` if it has ended or never existed; fatal codes.
 */
int core_find_session(struct store *store, struct slice session, struct arena *arena,
                      struct problem *ret_problem) TL_MUST_USE;

/*
 * Returns: an estimate of the bytes that a command will write to the store. Called between steps.
 */
size_t core_bytes_to_write(const struct core *core, const struct command *command);

#define CORE_WORK_UNKNOWN UINT64_MAX

/*
 * Returns: a bound of the work of a command that releases what its owner has: UNLOCK of all locks,
 *   TXN_COMMIT, TXN_ROLLBACK. CORE_WORK_UNKNOWN: only the step knows it, which may execute requests
 *   that wait for the locks, or it is another command. Called between steps.
 */
uint64_t core_end_work(const struct core *core, const struct command *command);

/*
 * Callbacks around each cleanup action of an ended session, on the thread of the step. They allow
 * the host to record which action was running when the process died, and to submit it as TRIED
 * after the restart. `deferred` and `action` are the members of that command; `session` is valid until
 * begin() returns. step() is called when a step begins.
 */
struct core_watch {
    void (*step)(void *context);
    void (*begin)(void *context, struct slice session, uint64_t deferred, uint64_t action);
    void (*end)(void *context);
    void *context;
};
/* Sets the callbacks; NULL removes them. `watch` must outlive its use. Called between steps. */
void core_watch(struct core *core, const struct core_watch *watch);

/* A member host of the cluster as of the last step. README.md, "Hosts". */
struct core_host {
    uint16_t number;
    struct slice name; /* this and the other slices: as in its JOIN, valid until the next step */
    struct slice group;
    struct slice address;
    struct slice build;
    uint64_t life;          /* 0: it has left */
    uint64_t entries;       /* number of the newest entry of this life that counted */
    uint64_t barrier_clock; /* of its newest heartbeat */
    tl_ts low;              /* its readers use no earlier timestamp */
    tl_ts beat_ts;          /* timestamp of its newest heartbeat, or of its JOIN */
};

/* Returns: all known hosts in order of name. */
const struct core_host *core_hosts(const struct core *core, size_t *ret_count);
/* Returns: the host with this number, or NULL. */
const struct core_host *core_host(const struct core *core, uint16_t number);

/* Frees the snapshot of a TXN_LOCK result, on any thread. NULL is fine. */
void core_overlay_unref(struct overlay *overlay);

#endif
