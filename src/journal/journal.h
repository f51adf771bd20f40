/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal: who gives commands their order, their timestamp and their durability.
 *
 * The local journal takes what connections submit, in order of arrival, applies a group of commands to the core, syncs
 * the store once for all of them while the next group is being applied, and then hands each command back with on_done.
 * Nothing is handed back before it is durable. A failed sync ends the process. See README.md.
 *
 * Readers ask for the stable timestamp, the newest at which everything is durable, and never wait.
 */
#ifndef TL_JOURNAL_JOURNAL_H
#define TL_JOURNAL_JOURNAL_H

#include "core/step/core.h"
#include "metrics/metrics.h"

struct at_work;
struct journal;
struct cmdlog;

/* The clocks that it goes by (base/clock.h), for tests that set them. From any thread. */
struct journal_clocks {
    uint64_t (*wall)(void *context);
    uint64_t (*boot)(void *context);
    void *context;
};

/* What a host is in its cluster. */
struct journal_cluster {
    struct slice name; /* cmdlog_is_host_name() */
    struct slice group;
    struct slice address; /* where others reach it */
    struct slice build;
    struct slice about;  /* of its data directory, and no other's: who finds it in the log knows that it was his own life before */
    uint64_t timeout_us; /* what a command waits for its place in the order; 0: the default of 30 s */
};

struct journal_options {
    uint64_t history_us;                 /* how far back reads may go; 0: the default of one hour */
    uint64_t feed_us;                    /* how far back the feed goes; 0: as far as reads may */
    uint64_t feed_bytes_max;             /* what it may take in files; 0: the default of 1 GiB */
    bool feed_off;                       /* there is to be none */
    size_t group_max;                    /* commands applied before a sync at most; 0: the default of 256 */
    struct slice directory;              /* of the data, whose free space is watched; empty: not watched */
    uint64_t reserve_bytes;              /* writes are refused with disk_full_exception below this much free space */
    const struct journal_clocks *clocks; /* NULL: the machine's */
    struct cmdlog *log;       /* commands go there, and are durable when they are there (README.md, "The log") */
    uint64_t cmdlog_position; /* up to where it is in the core, as recover_core() says */
    uint64_t log_work_us;  /* what that took, which the next start need not do again */
    uint64_t recovery_us;  /* what a start may take to apply again what is behind a checkpoint; 0: the default of 1 s */
    size_t
        checkpoint_bytes; /* what the store may have in memory before there is a checkpoint; 0: the default of 32 MiB */
    bool host_crashed;    /* what was written to the log last may be missing, since the machine went down */
    /* Where it is noted what is applied (at_work.h), open for as long as the journal is; NULL: nowhere. recover_core() has got it, too. */
    struct at_work *at_work;
    const struct core_limits *limits; /* that the core is to go by, and the log says so; NULL: those it has */
    const struct journal_cluster *cluster; /* with journal_open_cluster() */
};

/*
 * Starts the journal over an opened core, beginning with the commands LIMITS, where its limits are to be others or nobody has said them, and RESTART.
 * Returns: 0 or a fatal code. Owns: the caller; journal_close(), which leaves core and store for the caller to close.
 */
int journal_open_local(struct core *core, struct store *store, const struct journal_options *options,
                       struct journal **ret_journal) TL_MUST_USE;
/*
 * The same in a cluster: `log` is one that hosts share, and the core is as of the position that is named. Waits until this host is in, and has applied
 * all that was ordered before, for as long as it takes. Of the options recovery, group, history, feed, directory, checkpoints, clocks and limits count.
 * Returns: as journal_open_local(); TL_ERR_BUSY: the cluster refuses this host, *ret_reason says why (mem_free); TL_ERR_CORRUPT: the log has let go of what the core lacks.
 */
int journal_open_cluster(struct core *core, struct store *store, const struct journal_options *options, struct journal **ret_journal,
                         char **ret_reason) TL_MUST_USE;

/* A host of the cluster, as this one knows it. */
struct journal_host {
    uint16_t number;
    bool live;
    bool keeper;
    bool self;
    struct slice name, group, address, build;
    uint64_t life;
    tl_ts applied;          /* by its newest heartbeat; 0: not known here */
    uint64_t position;      /* the same, in the log */
    uint64_t chain;         /* there */
    uint64_t silent_us;     /* since that came */
};

/* Returns: all that are known, by name. 0 without a cluster. Owns: the caller; mem_free. */
size_t journal_hosts(struct journal *journal, struct journal_host **ret_hosts);

/* Returns: the number of this host, which stands in the upper 16 bits of numbers that it gives (HOST_SHIFT); 0 without a cluster. */
uint16_t journal_host_number(struct journal *journal);

/* Returns: whether what was read before this call may be shown: in a cluster, whether nobody has been told that this host is out. */
bool journal_serves(struct journal *journal);

/* Waits until everything that anybody in the cluster was answered before this call can be read here. Returns: 0; JOURNAL_LATE: not by `until` (of boot). From a thread that may wait. */
enum { JOURNAL_LATE = 1 };
int journal_catch_up(struct journal *journal, uint64_t until) TL_MUST_USE;

/* Has a host forgotten that is out. Returns: 0; JOURNAL_HOST_UNKNOWN, JOURNAL_HOST_LIVES; JOURNAL_LOG_UNREACHABLE: the log cannot be reached. */
enum { JOURNAL_HOST_UNKNOWN = 1, JOURNAL_HOST_LIVES, JOURNAL_LOG_UNREACHABLE };
int journal_forget_host(struct journal *journal, struct slice name) TL_MUST_USE;

/*
 * Ends the taking of commands: what waits in the core is completed with PROBLEM_STOPPING, and so is what is submitted from now
 * on. Reads, pins and unpins still work, so those who hold pins can let go of them. Called again it does nothing.
 */
void journal_stop(struct journal *journal);

/* Stops it and frees it. Requires: nothing is pinned. NULL is fine. */
void journal_close(struct journal *journal);

/*
 * Makes a checkpoint of what has been applied so far, waits until it is on the disk, and gives back what the log needs no more. There is
 * nothing to do once it stops. From a thread that may wait. Returns: 0; TL_ERR_NO_SPACE: not now; TL_ERR_IO.
 */
int journal_checkpoint(struct journal *journal) TL_MUST_USE;

/*
 * Makes `directory`, which is empty, a data directory with all that has been applied by now, durably: a store as of a checkpoint that is made for
 * it, and a log that begins behind that. Others go on meanwhile. Whoever opens it finds the machine lost (README.md, "A copy"). *ret_ts: a timestamp up
 * to which all is in it. From a thread that may wait.
 * Returns: 0; TL_ERR_NO_SPACE, TL_ERR_BUSY when the journal stops, TL_ERR_IO, TL_ERR_CORRUPT, with *ret_reason (mem_free; NULL: the code says it). What
 * is in the directory then is of no use.
 */
int journal_copy(struct journal *journal, const char *directory, tl_ts *ret_ts, char **ret_reason) TL_MUST_USE;

/*
 * Submits a command; from any thread. on_done is called once, before or after this returns, on this thread or on one
 * of the journal's; it must not block. `lone` says that nobody waits for the calling thread, so that it can afford to
 * wait for the disk: the command may then be applied and synced on it, which saves two hand-overs. What begins and ends query
 * transactions needs no disk, and is applied on the calling thread where the core is free.
 */
void journal_submit(struct journal *journal, struct command *command, bool lone);

/*
 * The waiter has left: the command that it waits for is cancelled where it waits for locks, and commands that are submitted for the same waiter
 * from now on complete at once with PROBLEM_TASK_CANCELLED, unless they relieve (COMMAND_ALWAYS_ADMITTED). A command's number is told to its waiter by
 * the lock that queues it, so its CANCEL is always queued behind it. From any thread; called again it does nothing.
 */
void journal_cancel_waiter(struct journal *journal, struct command_waiter *waiter);
/* A command of the waiter's has completed. Called by its submitter. */
void journal_waiter_completed(struct command_waiter *waiter);

/*
 * From now on no command of this host waits for locks: those that do are completed with PROBLEM_STOPPING, and so is any that is submitted later
 * and would begin to. All others still run. Called again it does nothing.
 */
void journal_end_waits(struct journal *journal);

/* Returns: the newest timestamp that readers may use. From any thread, without waiting. */
tl_ts journal_stable(struct journal *journal);

/* Returns: the oldest timestamp that can still be read. */
tl_ts journal_oldest(struct journal *journal);

/* Returns: the catalog as of the stable timestamp or a little later, with a reference for the caller. */
struct catalog *journal_catalog(struct journal *journal);

/*
 * Returns: the catalog as of `ts`, which must not be above journal_stable(), with a reference for the caller; NULL when it
 * has changed since: catalog_load() knows.
 */
struct catalog *journal_catalog_at(struct journal *journal, tl_ts ts);

/*
 * Query transactions, for readers on any thread.
 *
 * journal_query_txn_use() returns an open one, or NULL where there is none of this id. What it reads at stays readable until it is
 * given back, also when it ends in between.
 * Owns: the caller; journal_query_txn_release().
 */
struct query_txn;
struct query_txn *journal_query_txn_use(struct journal *journal, struct slice id);
void journal_query_txn_release(struct journal *journal, struct query_txn *query);
/*
 * Returns: whether it was used of late; then *ret_ts is what it reads at. Others have to ask with a TXN_LOCK, by which its
 * lease is kept alive.
 */
bool journal_query_txn_is_fresh(struct journal *journal, const struct query_txn *query, tl_ts *ret_ts);
/* Gets the catalog as of what it reads at, with a reference for the caller. Returns: as catalog_load(). */
int journal_query_txn_catalog(struct journal *journal, struct query_txn *query, struct catalog **ret_catalog) TL_MUST_USE;

/*
 * Keeps the history from `ts` on readable until unpinned; for scrolls, points in time and query transactions.
 * Returns: 0; JOURNAL_TOO_OLD when it is gone already.
 */
enum { JOURNAL_TOO_OLD = 1 };
int journal_pin(struct journal *journal, tl_ts ts) TL_MUST_USE;
void journal_unpin(struct journal *journal, tl_ts ts);

/*
 * Who hears what is sent to the server. Before a lease or an idle transaction runs out, whoever could have prolonged it is heard:
 * `listen` is called, on a thread of the journal's, and must see to it, on another thread, that all that was sent before has been
 * submitted; then it calls journal_barrier_passed(). Until it does nothing of the kind runs out. With `listen` NULL, as at first, nobody is asked.
 */
struct journal_input_barrier {
    void (*start)(void *context);
    void *context;
};
void journal_set_input_barrier(struct journal *journal, const struct journal_input_barrier *ears);
void journal_barrier_passed(struct journal *journal);

/*
 * Has `moved` called whenever the stable timestamp may have moved, under a lock of the journal's, whose functions it must not call: it wakes somebody. NULL: nobody
 * any more; none is under way then. From any thread.
 */
void journal_watch(struct journal *journal, void (*moved)(void *context), void *context);

/* How often the clock of the machine was set by more than a second since the start, and by how much the last time (below 0: back). */
struct journal_clock_steps {
    size_t count;
    int64_t last_us;
};
void journal_clock_steps(struct journal *journal, struct journal_clock_steps *ret_steps);

/* What it has counted since the start, to be read from any thread while it lives (src/metrics/README.md). */
struct journal_metrics {
    metric_value commands[COMMAND_TYPE_COUNT]; /* applied; those that only look among them */
    struct metric_histogram group_sizes;       /* commands that one sync made durable */
    struct metric_histogram sync_times;        /* of the disk, in microseconds */
    metric_value queued;                       /* commands that wait for their turn, and not for locks; as it is */
};
const struct journal_metrics *journal_metrics(struct journal *journal);
/* The same of its core. */
const struct core_metrics *journal_core_metrics(struct journal *journal);

/* Returns: false while writes are refused for want of disk space. */
bool journal_writable(struct journal *journal);

#endif
