/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal gives commands their order, their timestamps and their durability.
 *
 * The local journal takes submitted commands in order of arrival and applies them to the core in
 * groups. One sync of the command log makes a whole group durable (group commit) while the next
 * group is applied. Then each command is completed through its on_done. No command completes before
 * its effects are durable. A failed sync ends the process.
 *
 * Readers use the stable timestamp, the newest at which everything is durable, and never wait.
 *
 * README.md has the stages, the clocks and the invariants.
 */
#ifndef TL_JOURNAL_JOURNAL_H
#define TL_JOURNAL_JOURNAL_H

#include <stdatomic.h>

#include "core/step/core.h"
#include "journal/query_txn.h"
#include "metrics/metrics.h"

struct at_work;
struct cmdlog_skips;
struct recover_observer;
struct journal;
struct cmdlog;

/* The clocks (base/clock.h), replaceable by tests. Called from any thread. */
struct journal_clocks {
    uint64_t (*wall)(void *context);
    uint64_t (*boot)(void *context);
    void *context;
};

/* A host's identity in its cluster. */
struct journal_cluster {
    struct slice name; /* cmdlog_is_host_name() */
    struct slice group;
    struct slice address; /* HOST:PORT, where other hosts reach it */
    bool tls;             /* by https */
    struct slice build;
    /*
     * Identifies the data directory: a restarted host recognizes its previous life in the log by
     * it.
     */
    struct slice about;
    uint64_t timeout_us; /* limit of the time until a command is ordered; 0: 30 s */
    /* Distance of this host's clock from the median beyond which it proposes that; 0: 500 ms */
    uint64_t clock_skew_us;
    const atomic_bool *stopping; /* journal_open_cluster() gives up when it is set; NULL: never */
    /* Of the entries that are applied before this host has joined (recover.h). Outlives the journal; NULL: none. */
    const struct recover_observer *observer;
};

struct journal_options {
    uint64_t history_us;                 /* how far back reads may go; 0: one hour */
    uint64_t feed_us;                    /* how far back the feed goes; 0: history_us */
    uint64_t feed_bytes_max;             /* limit of the feed's bytes in files; 0: 1 GiB */
    bool feed_off;                       /* keep no feed */
    size_t group_max;                    /* limit of commands applied before a sync; 0: 256 */
    struct slice directory;              /* data directory, to check free space; empty: unchecked */
    uint64_t reserve_bytes;              /* free space below which writes are refused */
    /* Of the process: each entry says whether it was full (command_group_header.memory_full); NULL: never */
    const struct budget *budget;
    const struct journal_clocks *clocks; /* NULL: the machine's clocks */
    struct cmdlog *log;                  /* the command log, already replayed into the core */
    uint64_t cmdlog_position;            /* last entry in the core, as recover_core() found it */
    uint64_t log_bytes;                  /* in a cluster: size of its log up to there */
    uint64_t log_work_us;                /* duration of that replay; counts as replay work */
    uint64_t log_replayed_bytes;         /* size of the entries replayed */
    uint64_t recovery_us;                /* target duration of a replay after a crash; 0: 1 s */
    size_t checkpoint_bytes;             /* limit of uncheckpointed bytes; 0: 32 MiB */
    uint64_t checkpoint_log_bytes;       /* limit of the size of entries since a checkpoint; 0: 64 MiB */
    bool host_crashed;                   /* machine went down: the last entries may be missing */
    /* Records the entry being applied (at_work.h); must outlive the journal; NULL: none. */
    struct at_work *at_work;
    /*
     * Limits to put into the log; NULL: the core's own. This host opens at most transactions_max
     * query transactions.
     */
    const struct core_limits *limits;
    const struct journal_cluster *cluster; /* set for journal_open_cluster() only */
    /* In a cluster: entries that are passed without being applied; NULL: none. Outlives the journal */
    const struct cmdlog_skips *skips;
};

/*
 * Starts the journal of a single host over an opened core. The first commands are LIMITS, if the
 * limits differ from those in the core or were never recorded, and RESTART.
 * Returns: 0 or a fatal code.
 * Owns: the caller; journal_close(). The caller closes core and store after it.
 */
int journal_open_local(struct core *core, struct store *store, const struct journal_options *options,
                       struct journal **ret_journal) TL_MUST_USE;
/*
 * Starts the journal of a host in a cluster, over a shared log and a core as of `cmdlog_position`.
 * Blocks without a time limit until this host has joined and has applied everything ordered before.
 * Ignores feed_off and machine_lost.
 * Returns: as journal_open_local(); TL_ERR_BUSY: the cluster refuses this host, with *ret_reason
 *          (mem_free; may be NULL); TL_ERR_STOPPED: `stopping` was set; TL_ERR_CORRUPT: the log was
 *          trimmed beyond `cmdlog_position`, with *ret_reason.
 */
int journal_open_cluster(struct core *core, struct store *store, const struct journal_options *options,
                         struct journal **ret_journal, char **ret_reason) TL_MUST_USE;

/* A host of the cluster, as known to this one. */
struct journal_host {
    uint16_t number;
    bool live;
    bool keeper;
    bool self;
    bool tls; /* it is reached by https */
    struct slice name, group, address, build;
    uint64_t life;
    tl_ts applied;      /* newest timestamp applied there, by its last heartbeat; 0: unknown */
    uint64_t position;  /* log position of `applied` */
    uint64_t chain;     /* hash chain at `position` (README.md, "The hash chain") */
    uint64_t silent_us; /* since its last heartbeat was applied here; UINT64_MAX: none was since this host's start */
    /*
     * Its lag: the log that it had not applied when it sent its last heartbeat, and the time since its next
     * one was due, UINT64_MAX before the first. Limited by the part of the log that this host remembers.
     */
    uint64_t lag_entries, lag_us;
    int64_t clock_offset_us; /* its wall clock minus this host's, less the heartbeat's way here */
};

/*
 * Lists the known hosts in order of name. From any thread; does not block.
 * Returns: their number; 0 without a cluster.
 * Owns: the caller; mem_free.
 */
size_t journal_hosts(struct journal *journal, struct journal_host **ret_hosts);

/*
 * Returns: this host's number, the upper 16 bits (HOST_SHIFT) of numbers that it issues; 0 without
 *          a cluster. It changes when the host joins after it was forgotten.
 */
uint16_t journal_host_number(struct journal *journal);

/*
 * Returns: whether data read before this call may be sent to a client: true without a cluster; in a
 *          cluster, while this host holds its lease, since no other host can have declared it out,
 *          and has not found that its state differs from the others'.
 */
bool journal_serves(struct journal *journal);

/*
 * Returns: whether data as of a timestamp up to journal_stable(), read before this call, may be sent
 *          to a client. It is final, so no lease is needed: false only when this host has found that
 *          its state differs from the others'.
 */
bool journal_serves_past(struct journal *journal);

/*
 * Asks the log for its head: everything that any host of the cluster acknowledged before this call
 * is at or before that position. 0 without a cluster.
 * Returns: 0; JOURNAL_TIMEOUT: `until` (boot clock) has passed, or the log could not be reached.
 */
enum { JOURNAL_TIMEOUT = 1 };
int journal_read_head(struct journal *journal, uint64_t until, uint64_t *ret_position) TL_MUST_USE;
/*
 * Blocks until everything up to a position of the log can be read here.
 * Returns: 0; JOURNAL_TIMEOUT: `until` (boot clock) has passed.
 */
int journal_await_position(struct journal *journal, uint64_t position, uint64_t until) TL_MUST_USE;

/*
 * The hosts that must have applied a write before its client is answered: this host; or also all
 * live hosts of its group; or also all live hosts of the cluster.
 */
enum journal_reach { JOURNAL_REACH_HOST, JOURNAL_REACH_GROUP, JOURNAL_REACH_CLUSTER };

/*
 * Returns: the newest timestamp at which each other live host within `reach` is known to serve
 *          reads; TL_TS_MAX without such a host. From any thread; does not block.
 */
tl_ts journal_reached(struct journal *journal, enum journal_reach reach);
/*
 * Returns: whether each host within `reach` is known to serve reads at `ts` or later, or is out of
 *          the cluster; true without a cluster. Assumes: `ts` is not above journal_stable().
 */
static inline bool journal_has_reached(struct journal *journal, tl_ts ts, enum journal_reach reach)
{
    return journal_reached(journal, reach) >= ts;
}
/*
 * Lists the live hosts within `reach` that are not known to have reached `ts`.
 * Returns: their number. Owns: the caller; mem_free.
 */
size_t journal_list_lagging(struct journal *journal, tl_ts ts, enum journal_reach reach,
                            struct journal_host **ret_hosts);
/*
 * Records that a host, in one of its lives, has said that it serves reads at `ts`. Without effect
 * if that life is over.
 */
void journal_record_reached(struct journal *journal, uint16_t number, uint64_t life, tl_ts ts);
/* Returns: whether the host with a number is live. From any thread; does not block. */
bool journal_is_live(struct journal *journal, uint16_t number);
/* Returns: whether this is the host, and its current life. */
bool journal_is_self(struct journal *journal, struct slice name, uint64_t life);

/*
 * Ends the retention of the log for a host that is out of the cluster. *ret_command, which the caller
 * submits, removes the host from the cluster's state; where that is refused, as when the log has no
 * space for any entry, the whole may be repeated.
 * Returns: 0; JOURNAL_HOST_UNKNOWN; JOURNAL_HOST_LIVES, also if it is this host, which may be out for now, or one
 *          that is about to join; JOURNAL_LOG_UNREACHABLE: the log cannot be reached.
 */
enum { JOURNAL_HOST_UNKNOWN = 1, JOURNAL_HOST_LIVES, JOURNAL_LOG_UNREACHABLE };
int journal_forget_host(struct journal *journal, struct slice name, struct command **ret_command) TL_MUST_USE;

/*
 * Stops accepting commands and ends the journal's threads. Commands that wait in the core, and
 * later submissions, complete with PROBLEM_STOPPING. Reading, journal_pin() and journal_unpin()
 * still work, so that pins can be released. Idempotent.
 */
void journal_stop(struct journal *journal);

/*
 * Stops and frees the journal. NULL: no effect.
 * Requires: nothing is pinned.
 */
void journal_close(struct journal *journal);

/*
 * Makes a checkpoint of the applied state and blocks until it is durable and the log is trimmed
 * before it, and shrunk. Has no effect while the journal stops.
 * Returns: 0; TL_ERR_NO_SPACE: the disk is full; TL_ERR_IO.
 */
int journal_checkpoint(struct journal *journal) TL_MUST_USE;

/*
 * Turns the empty `directory` into a durable data directory with everything applied before the
 * call: a copy of the store as of a new checkpoint, and an empty log that continues after it.
 * Blocks; commands are applied meanwhile. Opening the copy treats the machine as crashed
 * (README.md, "A copy"). The copy has everything up to *ret_ts.
 * Returns: 0; TL_ERR_NO_SPACE; TL_ERR_BUSY: the journal stops; TL_ERR_IO; TL_ERR_CORRUPT; with
 *          *ret_reason (mem_free; NULL: nothing to add to the code). After an error the content of
 *          the directory is unusable.
 */
int journal_copy(struct journal *journal, const char *directory, tl_ts *ret_ts, char **ret_reason) TL_MUST_USE;

/*
 * Submits a command; from any thread. Calls on_done once, before or after returning, on this thread
 * or one of the journal's; on_done must not block. `may_block`: the calling thread may block for
 * the sync. A short command may then be applied and synced on it, which saves two thread switches. A
 * command in a query transaction of this host is refused: such a transaction only reads.
 * Owns: the journal, until on_done.
 */
void journal_submit(struct journal *journal, struct command *command, bool may_block);

/*
 * Cancels a waiter: its current command, if it waits for locks, is cancelled. Later commands of the
 * waiter complete at once with PROBLEM_TASK_CANCELLED, unless they have the flag COMMAND_ALWAYS_ADMITTED.
 * The CANCEL is always queued after the command (README.md, "Cancellation"). From any thread.
 * Idempotent.
 */
void journal_cancel_waiter(struct journal *journal, struct command_waiter *waiter);
/* Clears the waiter's current command, which has completed. Called by the submitter. */
void journal_waiter_completed(struct command_waiter *waiter);

/*
 * Ends all lock waits of this host: waiting commands complete with PROBLEM_STOPPING, and so does
 * each later command that would wait. Other commands still run. Idempotent.
 */
void journal_end_waits(struct journal *journal);

/*
 * Returns: whether the log accepts entries, and has those of journal_end_waits(). Else, as on a full
 * disk or without etcd, waits that this ends, and requests that the journal continues by itself, may
 * last without limit. They end with journal_stop().
 */
bool journal_accepts(struct journal *journal);

/*
 * Returns: the stable timestamp, the newest that readers may use. From any thread; does not block.
 */
tl_ts journal_stable(struct journal *journal);

/* Returns: the history limit, the oldest timestamp that can be read. */
tl_ts journal_oldest(struct journal *journal);

/*
 * Returns: the catalog as of the stable timestamp or slightly later.
 * Owns: the caller; catalog_unref().
 */
struct catalog *journal_catalog(struct journal *journal);

/*
 * Returns: the catalog as of `ts`; NULL: it has changed since, catalog_load() can read it.
 * Assumes: `ts` is not above journal_stable().
 * Owns: the caller; catalog_unref().
 */
struct catalog *journal_catalog_at(struct journal *journal, tl_ts ts);

/*
 * Query transactions of this host (README.md, "Query transactions"). From any thread; no call waits
 * for the core or the log.
 *
 * Begins one. The begin of a transaction of a session is complete only after
 * journal_query_txn_confirm(), with the session's number from STATUS_SESSION, or must be undone by
 * journal_query_txn_discard().
 * Returns: 0 with *ret_info, whose id is that of the terms; JOURNAL_TOO_OLD: the read timestamp is
 *          below the history limit; JOURNAL_REFUSED with *ret_problem in `arena`.
 */
struct query_txn;
enum { JOURNAL_TOO_OLD = 1, JOURNAL_REFUSED };
int journal_query_txn_begin(struct journal *journal, const struct query_txn_terms *terms, struct arena *arena,
                            struct query_txn_info *ret_info, struct problem *ret_problem) TL_MUST_USE;
void journal_query_txn_confirm(struct journal *journal, struct slice id, uint64_t session);
void journal_query_txn_discard(struct journal *journal, struct slice id);

/*
 * Begins a use. The read timestamp stays readable until journal_query_txn_release(), even if the
 * transaction ends before.
 * Returns: the transaction; NULL: none is open under this id.
 * Owns: the caller; journal_query_txn_release().
 */
struct query_txn *journal_query_txn_use(struct journal *journal, struct slice id);
void journal_query_txn_release(struct journal *journal, struct query_txn *txn);
tl_ts journal_query_txn_ts(const struct query_txn *txn);
/*
 * Checks that a transaction belongs to a session.
 * Returns: 0; JOURNAL_REFUSED with *ret_problem in `arena`.
 */
int journal_query_txn_check_session(const struct query_txn *txn, struct slice session, struct arena *arena,
                                    struct problem *ret_problem) TL_MUST_USE;
/*
 * Loads the catalog as of the transaction's read timestamp.
 * Returns: as catalog_load().
 * Owns: the caller; catalog_unref().
 */
int journal_query_txn_catalog(struct journal *journal, struct query_txn *txn, struct catalog **ret_catalog) TL_MUST_USE;

/*
 * Ends a query transaction on a client's request. A repeated commit, or rollback, succeeds.
 * Returns: 0 with *ret_info; JOURNAL_UNKNOWN: this host does not know it; JOURNAL_REFUSED with
 *          *ret_problem: it has ended otherwise, or belongs to another session. All in `arena`.
 */
enum { JOURNAL_UNKNOWN = 3 };
int journal_query_txn_end(struct journal *journal, const struct query_txn_ending *ending, struct arena *arena,
                          struct query_txn_info *ret_info, struct problem *ret_problem) TL_MUST_USE;
/*
 * Finds a query transaction by its id, or an open one by its public number.
 * Returns: QUERY_TXN_OPEN, QUERY_TXN_ENDED with *ret_info in `arena`; QUERY_TXN_UNKNOWN.
 */
enum query_txn_state journal_query_txn_find(struct journal *journal, struct slice id, struct arena *arena,
                                            struct query_txn_info *ret_info);
/*
 * Lists the open query transactions of this host in order of their numbers.
 * Returns: how many there are, with *ret_infos in `arena`.
 */
size_t journal_query_txns(struct journal *journal, struct arena *arena, struct query_txn_info **ret_infos);
/* Returns: their counters; as journal_metrics(). */
const struct query_txn_metrics *journal_query_txn_metrics(struct journal *journal);

/*
 * Pins history: everything from `ts` on stays readable until journal_unpin(). For scrolls and
 * points in time.
 * Returns: 0; JOURNAL_TOO_OLD: `ts` is below the history limit.
 */
int journal_pin(struct journal *journal, tl_ts ts) TL_MUST_USE;
void journal_unpin(struct journal *journal, tl_ts ts);

/*
 * The input barrier. Before a lease or an idle transaction expires, all input that clients sent
 * earlier must have been processed, since it may renew the lease. The journal calls `listen` on one
 * of its threads. The callee arranges, on another thread, that everything received before the call
 * is submitted, and then calls journal_barrier_passed(). No lease expires until then. `listen` NULL, the
 * initial value: expiry does not wait for input.
 */
struct journal_input_barrier {
    void (*start)(void *context);
    void *context;
};
void journal_set_input_barrier(struct journal *journal, const struct journal_input_barrier *input_barrier);
void journal_barrier_passed(struct journal *journal);

/*
 * Returns: the number of changes of the state on which the health of a cluster depends: the catalog,
 *          the hosts with their lags, free disk space. A caller that reads it before the state, and
 *          finds it unchanged later, has missed no change. From any thread, also within the callback
 *          of journal_watch().
 */
uint64_t journal_state_version(struct journal *journal);

/*
 * Sets the callback for advances of the stable timestamp and for changes of the state, except those
 * of disk space, which is measured on demand. It runs under a lock of the journal and must not call
 * the journal; typically it wakes a thread. NULL removes the callback; no call of it is running on
 * return. From any thread.
 */
void journal_watch(struct journal *journal, void (*moved)(void *context), void *context);

/* Steps of the wall clock by more than a second since the start. */
struct journal_clock_steps {
    size_t count;
    int64_t last_us; /* size of the last step; negative: backward */
};
void journal_clock_steps(struct journal *journal, struct journal_clock_steps *ret_steps);

/*
 * Counters since the start, readable from any thread until journal_close() (src/metrics/README.md).
 */
struct journal_metrics {
    metric_value commands[COMMAND_TYPE_COUNT]; /* applied, by type; COMMAND_UNLOGGED included */
    struct metric_histogram group_sizes;       /* commands completed by one sync */
    struct metric_histogram sync_times;        /* duration of a sync, in microseconds */
    metric_value queued;                       /* gauge: commands in the queue, lock waits excluded */
};
const struct journal_metrics *journal_metrics(struct journal *journal);
/* Returns: the core's counters, under the same terms. */
const struct core_metrics *journal_core_metrics(struct journal *journal);

/* Returns: false while writes are refused for lack of disk space. */
bool journal_writable(struct journal *journal);

#endif
