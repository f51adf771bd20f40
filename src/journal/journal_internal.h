/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the journal.
 *
 * Lock order: core_lock, then report_lock, then one of queue_lock, publish_lock and pin_lock. These
 * three are held for a few instructions only.
 */
#ifndef TL_JOURNAL_JOURNAL_INTERNAL_H
#define TL_JOURNAL_JOURNAL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/magic.h"
#include "base/thread.h"
#include "journal/journal.h"
#include "journal/pins.h"
#include "journal/query_txns.h"
#include "journal/times.h"
#include "cmdlog/cmdlog.h"
#include "core/unit/work.h"

enum { WORKER_COUNT = 2 };

#define MAINTAIN_INTERVAL_US TL_SECOND
/*
 * The smallest distance between a new timestamp and the ceiling. One step may use as many
 * timestamps as there are microseconds in it.
 */
#define TS_CEILING_MARGIN_US TL_SECOND
/* Distance between a new ceiling and the newest timestamp. */
#define TS_CEILING_LEAD_US (5 * TL_SECOND)

/*
 * Work of a group (core/unit/work.h) at which it gets no further command: 10 ms. With its last step
 * a group takes at most 60 ms (README.md, "Groups").
 */
#define GROUP_WORK (CORE_STEP_WORK / 5)
/* Duration of a group after which it gets no further entry, whatever work that was: where work takes longer. */
#define GROUP_US (10 * TL_MS)

/*
 * Work expected of a command beyond which no caller's thread applies it, 1 ms: two thread switches are little then,
 * and other requests wait for that thread.
 */
#define CALLER_WORK_MAX (GROUP_WORK / 10)

#define JOURNAL_MAGIC MAGIC('J', 'o', 'u', 'r')

struct journal {
    uint32_t magic; /* JOURNAL_MAGIC; constant while the journal is open */
    struct core *core;
    struct store *store;
    uint64_t history_us;
    uint64_t feed_us;
    uint64_t feed_bytes_max;
    size_t group_max;
    char *directory; /* the data directory, whose free space is checked; NULL: not checked */
    uint64_t reserve_bytes;
    const struct budget *budget; /* NULL: memory is never full */

    /* Under queue_lock. */
    pthread_mutex_t queue_lock;
    pthread_cond_t queue_filled;
    struct list queue; /* commands by link, in order of arrival */
    unsigned sleepers; /* workers that wait for queue_filled */
    size_t wake_length; /* a command wakes them if the queue has so many with it; 0: each one does */
    bool stopping;
    /* After journal_end_waits(): a CANCEL follows each command that may wait. */
    bool waits_ended;
    atomic_size_t open_cancels; /* those CANCELs that are not done */
    bool sync_pending; /* a caller's thread has left a sync to the workers */
    uint64_t wait_end; /* command clock: next timeout of a wait in the core; TL_TS_MAX: none */
    /* Command clock: next expiry of a lease or idle transaction; TL_TS_MAX: none. */
    uint64_t lease_end;
    uint64_t not_before; /* boot clock: no timeout or expiry is checked earlier */
    uint64_t wake_at;    /* boot clock: next maintenance; maintain_at for readers without core_lock */
    struct run_clock run_clock;
    _Atomic uint64_t host_clock;           /* last reading of run_clock, for readers without the lock */
    uint64_t unreported_stall_us;          /* a stall that is still to be logged; 0: none */
    _Atomic uint64_t sync_begun;           /* boot clock: start of the sync in progress; 0: none */
    struct clock_steps clock_steps;
    uint64_t queued; /* number of commands ever queued */
    uint64_t taken;  /* number of commands ever removed from the queue */
    struct journal_input_barrier input_barrier;
    bool barrier_pending;           /* `input_barrier` was called and has not completed yet */
    uint64_t barrier_pending_clock; /* command clock of that call */
    uint64_t barrier_host_clock_pending; /* host's clock of that call */
    /*
     * The last input barrier that was passed: all input sent before `barrier_clock` of the command
     * clock was submitted, and is among the first `barrier_queued` queued commands.
     */
    uint64_t barrier_clock;
    uint64_t barrier_queued;
    uint64_t barrier_host_clock; /* host's clock at the start of the last barrier that was passed */

    /* Under core_lock, or constant. */
    struct cluster *cluster; /* cluster.h; NULL: the log belongs to this host alone */
    struct cmdlog *log;
    struct at_work *at_work;    /* records which entry is being applied; NULL: none */
    uint64_t entry_work;        /* limit of the work expected of an entry; at most GROUP_WORK: note_duration() */
    uint64_t work_times;        /* as much as expected does a write of many items, or an update: note_work() */
    uint64_t recovery_us;       /* limit of the work since a checkpoint */
    size_t checkpoint_bytes;    /* limit of the store's uncheckpointed bytes */
    cmdlog_position position;   /* of the newest entry */
    /* Size of the entries up to there: in a cluster of all, else of those since the last start's checkpoint. */
    uint64_t log_bytes;
    cmdlog_position checkpoint; /* of the newest checkpoint, durable or not */
    uint64_t checkpoint_log_bytes;
    uint64_t log_bytes_max;     /* limit of the size of the entries since a checkpoint */
    bool checkpointing;         /* `checkpoint` is not durable yet */
    bool saving;                /* the state is being written ahead of the next checkpoint */
    pthread_cond_t saving_begun; /* `saving` became true, or `stopping` */
    uint64_t ahead_us;           /* time which writing ahead has taken */
    bool paused;                /* disk nearly full: apply nothing until `checkpoint` is durable */
    /* A checkpoint was begun since writes have been refused for lack of space. */
    bool space_checkpoint_begun;
    struct command *ceiling_command; /* the MARK whose entry is being built; NULL: none */
    uint64_t work_us;                /* time spent applying entries since the newest checkpoint */
    uint64_t save_us;                /* time that beginning that checkpoint took */
    struct buf entry;                /* bytes of the entry being built */
    /* Commands completed by the journal's own entries; they join the next group. */
    struct list pending_replies;
    /*
     * Commands that end waits but found no space; they lead the next entry. core_lock; in a cluster those
     * of cluster__is_kept(), owned by the proposer.
     */
    struct list postponed;

    pthread_mutex_t report_lock; /* serializes reports of checkpoints to the log */
    cmdlog_position reported;    /* the newest checkpoint reported to the log; report_lock */
    _Atomic bool report_pending; /* the log could not be reached for a newer one */
    bool report_refused;         /* it had no space for a newer one; report_lock */

    pthread_mutex_t core_lock;
    tl_ts last_ts; /* newest timestamp given to a command */
    struct ts_clock ts_clock;
    struct ts_history ts_history;
    struct ts_history ts_history_recent; /* the last minutes at a finer spacing */
    tl_ts ts_ceiling;                    /* in the log: a restart issues timestamps above it only */
    tl_ts ts_ceiling_at;                 /* timestamp of the command that recorded it */
    tl_ts ts_ceiling_durable;            /* an earlier ceiling, known to be durable */
    uint64_t step_clock;                 /* command clock of the step in progress */
    uint64_t maintain_at;                /* boot clock: next maintenance */
    bool sync_all;                       /* the next sync also covers asynchronous commits */
    struct effects effects;
    uint64_t unbounded_steps; /* core_metrics.steps_undivided, as journal__report_unbounded_step() last saw it */

    /* Under publish_lock. */
    pthread_mutex_t publish_lock;
    tl_ts applied_ts; /* newest timestamp of the core */
    cmdlog_position applied_position;
    void (*moved)(void *context); /* journal_watch(); NULL: none */
    void *moved_context;
    tl_ts written_ts; /* newest timestamp that must be durable before any reply */
    tl_ts synced_ts;  /* everything up to here is durable */
    struct catalog *applied_catalog;
    tl_ts applied_catalog_ts; /* `applied_catalog` is unchanged since */
    struct catalog *catalog;  /* as of the stable timestamp */
    tl_ts catalog_ts;         /* `catalog` is unchanged since */
    _Atomic tl_ts stable_ts;
    struct list applied; /* completed commands that wait for a sync, by link */
    size_t applied_count;
    bool syncing;        /* a thread syncs, or is in its commit delay */
    unsigned completing; /* threads that complete commands after a sync */
    size_t expected;     /* commands in flight when the last group was completed */
    /* Value of applied_count that ends the commit delay; 0: no delay in progress. */
    size_t delay_target;
    uint64_t sync_us; /* moving average of the duration of a sync */
    pthread_cond_t sync_changed;
    struct list durable;          /* commands that the completer is to complete, by link */
    bool completer_takes;         /* it runs, and does not end */
    pthread_cond_t durable_added; /* to `durable`; or completer_takes became false */

    pthread_mutex_t pin_lock;
    struct pins pins;

    struct query_txns query_txns;

    _Atomic bool writable; /* writes are accepted: there is free space, and `ready` */
    /* The store takes small writes: space is left in the reserve, and RocksDB has no disk error. */
    _Atomic bool ready;
    _Atomic uint64_t space_checked_at; /* boot clock */
    _Atomic int64_t writable_bytes;    /* bytes that may be written before the next check */
    _Atomic uint64_t requests;         /* newest command number issued */
    _Atomic uint64_t state_version;    /* journal_state_version() */

    struct journal_metrics metrics;
    struct journal_clocks clocks;
    struct thread workers[WORKER_COUNT];
    struct thread saver; /* continues to write ahead of a checkpoint; journal__begin_saver() */
    struct thread completer; /* completes the rest of long groups; journal__begin_completer(). None in a cluster */
    bool serving; /* the start is over: no thread waits for space in the log any more */
};

/* --- Opening (journal_local.c) ------------------------------------------------------------------------------------ */

struct journal *journal__new(struct core *core, struct store *store, const struct journal_options *options);
/*
 * Returns: whether the calling thread holds this lock of the journal. Only locks of builds of
 * developers know their thread; true in all others.
 */
bool journal__holds(const pthread_mutex_t *lock);
/* Publishes the core's state. Assumes: no other thread runs yet. */
void journal__publish(struct journal *journal);
/*
 * Stores the command's number in its waiter.
 * Returns: false: the waiter was cancelled, the command must be refused.
 * Requires: queue_lock.
 */
bool journal__register_waiter(struct command *command);
/* Appends a command to the queue and wakes a worker. Requires: queue_lock. */
void journal__queue(struct journal *journal, struct command *command);
void journal__refuse_cancelled(struct command *command);

/* Counts a change of the state, and reports it to the watcher. Requires: no lock but core_lock is held. */
void journal__change_state(struct journal *journal);

/* --- In a cluster (cluster.c) ------------------------------------------------------------------------------------- */

void cluster__submit(struct journal *journal, struct command *command);
/*
 * Ends the cluster's threads, then this host's membership. Queued commands are ordered and answered
 * first, for a limited time.
 */
void cluster__stop(struct journal *journal);
void cluster__free(struct journal *journal);
/* Returns: the command clock. Requires: queue_lock. */
uint64_t cluster__clock(struct journal *journal);
/* Returns: whether the log's storage has no space for commands that add data. */
bool cluster__is_log_full(struct journal *journal);
/*
 * Returns: whether the core has applied an entry that may have been skipped: it must not be saved or
 *          maintained yet. Requires: core_lock.
 */
bool cluster__is_unverified(struct journal *journal);
/*
 * Returns: whether a checkpoint is due, so that the log, whose space is tight, can be trimmed.
 * Requires: core_lock.
 */
bool cluster__wants_checkpoint(struct journal *journal);
/* Records that such a checkpoint was begun. Requires: core_lock. */
void cluster__begin_relief(struct journal *journal);

/* --- Clocks (clocks.c) -------------------------------------------------------------------------------------------- */

extern const struct journal_clocks journal__machine_clocks;
uint64_t journal__wall(const struct journal *journal);
uint64_t journal__boot(const struct journal *journal);
/* clock_wait() on the journal's clock. Requires: `lock` is held. */
bool journal__wait_until(struct journal *journal, pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until);
/*
 * Returns: a timestamp above every one issued, including those that the core used itself for
 *          commands that waited. Requires: core_lock.
 */
tl_ts journal__next_ts(struct journal *journal);
/*
 * Returns: the host's clock: microseconds in which this host could receive input. On a single host
 *          it is the command clock.
 * Requires: queue_lock.
 */
uint64_t journal__host_clock(struct journal *journal);
/* Returns: the command clock. Requires: queue_lock. */
uint64_t journal__command_clock(struct journal *journal);
/* Logs stalls and steps of the clocks. Requires: queue_lock. */
void journal__check_clocks(struct journal *journal);

/* --- A full disk (disk_space.c) ----------------------------------------------------------------------------------- */

/* Measures the free space, unless that was done recently. */
void journal__check_space(struct journal *journal);
/*
 * Refuses a command that would write more than the disk has space for. Counts the bytes of accepted
 * commands since the last measurement.
 * Returns: whether it was refused.
 * Requires: core_lock.
 */
bool journal__refuse_oversized(struct journal *journal, struct command *command);
/*
 * Returns: whether the store takes small writes. Measures the free space, unless that was done
 *          recently.
 */
bool journal__is_ready(struct journal *journal);
/* Measures the free space. Returns: as journal__is_ready(). */
bool journal__recheck_ready(struct journal *journal);
/* Sets PROBLEM_DISK_FULL. Assumes: the command has no problem. */
void journal__refuse_disk_full(struct journal *journal, struct command *command);
/*
 * Refuses a command while the disk is full. Commands that add no data may use the reserve.
 * Returns: whether it was refused; its problem is then set.
 */
bool journal__refuse_if_full(struct journal *journal, struct command *command);

/* --- The three stages (group_commit.c) ---------------------------------------------------------------------------- */

/*
 * Logs the failure and ends the process with status 70. Whatever was not durable has not been
 * acknowledged.
 */
_Noreturn void journal__store_failed(const char *what, int code);
/* Moves the commands that the step completed to the end of the group. */
void journal__move_completed(struct effects *effects, struct list *group);
/* As journal__move_completed(), followed by the command itself if it is complete. */
void journal__take_completed(struct journal *journal, struct command *command, struct list *group);
/*
 * Records a timestamp ceiling `ahead` microseconds above the next timestamp.
 * Returns: false: the log has no space for it.
 * Requires: core_lock.
 */
bool journal__put_ts_ceiling(struct journal *journal, uint64_t ahead);
/*
 * Applies a command and appends all commands that it completes to the group. Commands whose wait
 * ended come before it: they have waited longer, and other requests wait for their locks.
 * Requires: core_lock.
 */
void journal__apply(struct journal *journal, struct command *command, struct list *group);
/*
 * Logs that a step took more work than the bound, which is a fault of the server: for the first, second, fourth, … such
 * step. Not for a replayed command of an earlier version, which may have been unbounded. Requires: core_lock.
 */
void journal__report_unbounded_step(struct journal *journal);
/* Records the applied state for the next sync to publish. Requires: core_lock. */
void journal__record_applied(struct journal *journal);
/*
 * Stages two and three: makes a group durable and completes it. While another thread syncs, the
 * group is left to that thread. `wanted` 0: the group needs no sync. `rounds`: how many syncs this
 * thread may do. Remaining work goes to a worker, or to this thread if the journal stops.
 * Assumes: core_lock was released after the group was applied.
 */
enum sync_rounds { SYNC_NONE, SYNC_ONCE, SYNC_ALL };
void journal__finish(struct journal *journal, struct list *group, tl_ts wanted, enum sync_rounds rounds);
/*
 * Completes everything applied before, by whichever thread.
 * Requires: the journal stops, and the workers have ended.
 * Ensures: all of it is durable and completed.
 */
void journal__finish_last(struct journal *journal);
/*
 * Begins the thread that completes the rest of long groups; without it each thread completes its groups as a whole.
 * Requires: no thread of the journal runs, and it is not in a cluster: there a host that finds that it differs leaves
 * applied commands unanswered.
 * Returns: whether it runs; its failure is logged.
 */
bool journal__begin_completer(struct journal *journal);
/*
 * Ends that thread, if it runs, when it has completed all that was left to it.
 * Assumes: the caller holds no lock.
 */
void journal__end_completer(struct journal *journal);

/* --- The command log (cmdlog.c) ----------------------------------------------------------------------------------- */

/*
 * Appends commands to the log as entries and applies each entry. Effects on `group` as
 * journal__apply().
 * Returns: the work of the steps (core/unit/work.h).
 * Requires: core_lock.
 */
uint64_t journal__apply_logged(struct journal *journal, struct list *taken, struct list *group);
/* Returns: whether the process has no memory for more indices and fields, which the header of an entry says. */
bool journal__is_memory_full(const struct journal *journal);
/*
 * Frees the buffer of entries if one of them was large, so that its memory is the requests' again.
 * Assumes: no entry is being built.
 */
void journal__trim_entry_buf(struct journal *journal);
/* Moves the pending replies to the group. Requires: core_lock. */
void journal__take_pending_replies(struct journal *journal, struct list *group);
/* Answers a command with the flag COMMAND_UNLOGGED, without an entry. Requires: core_lock. */
void journal__inspect(struct journal *journal, struct command *command, struct list *group);
/*
 * Makes the last checkpoint and waits until it is durable, unless the disk is full. Requires:
 * core_lock.
 */
void journal__end_checkpoints(struct journal *journal);
/*
 * Logs and applies a MARK, which records the ceiling.
 * Returns: as journal__put_ts_ceiling().
 * Requires: core_lock.
 */
bool journal__log_ts_ceiling(struct journal *journal, uint64_t ahead);
/*
 * Blocks until a checkpoint at or above the current position is durable. *ret_wanted: that
 * position.
 * Returns: 0, also if the journal stops before; TL_ERR_NO_SPACE.
 */
int journal__reach_checkpoint(struct journal *journal, cmdlog_position *ret_wanted) TL_MUST_USE;
/*
 * Trims the log before the newest checkpoint that was reported to it: another host's may have
 * prevented that before. One that the log had no space for is reported again.
 */
void journal__trim_again(struct journal *journal);
/*
 * Syncs the log before a checkpoint is begun, so that the sync under core_lock has little left to
 * write. While core_lock is held it does nothing: without it that sync takes longer.
 */
void journal__presync_log(struct journal *journal);
/* Returns: whether a worker is to call journal__prepare_log() soon, or an entry would wait for space in the log. */
bool journal__log_wants_space(struct journal *journal);
/* Provides space in the log for the next entries, if there is little. */
void journal__prepare_log(struct journal *journal);
/*
 * Begins a checkpoint that is due, or writing ahead of it, reports a durable one to the log, and prepares the log.
 * Releases core_lock. Requires: core_lock.
 */
void journal__advance_checkpoints(struct journal *journal);
/*
 * Begins the thread that continues to write ahead of checkpoints. Returns: whether it runs; its
 * failure is logged.
 */
bool journal__begin_saver(struct journal *journal);
/* Ends that thread, if it runs. Requires: the journal is stopping. */
void journal__end_saver(struct journal *journal);
/*
 * Returns: whether no entry may be applied until the checkpoint in progress is durable: the disk is
 *          nearly full, or the store's memory would exceed its limit.
 * Requires: core_lock.
 */
bool journal__is_paused(struct journal *journal);
/*
 * Returns: whether a checkpoint is to be begun, which a worker does after its next group. Requires:
 *          core_lock.
 */
bool journal__wants_worker(struct journal *journal);
/*
 * Waits for the end of the pause while the server stops: for a few seconds, and as long as there is
 * disk space. Requires: core_lock.
 */
void journal__await_unpaused(struct journal *journal);
/* Makes the last checkpoint and seals the log. Requires: core_lock. */
void journal__end_log(struct journal *journal);

/* --- Maintenance (maintenance.c) ---------------------------------------------------------------------------------- */

/* Loads the relation of timestamps to elapsed time from before this start. */
void journal__load_ts_history(struct journal *journal);
/*
 * Maintenance in a cluster: records the timestamp history, advances the history limit, logs the
 * core's reports. On the keeper also appends commands to `proposed`, which are to be ordered.
 * Requires: core_lock.
 */
void journal__maintain_cluster(struct journal *journal, bool keeper, struct list *proposed);
/*
 * Does the maintenance that is due.
 * Returns: whether the core was changed.
 * Requires: core_lock.
 */
bool journal__maintain(struct journal *journal, struct list *group);
/* Turns the feed on or off. Requires: core_lock. */
void journal__set_feed(struct journal *journal, bool off, struct list *group);

/* --- Threads (workers.c) ------------------------------------------------------------------------------------------ */

void journal__worker(void *context);
/*
 * Starts the input barrier if a lease has expired by the clock and the barrier is not passed yet.
 */
void journal__start_input_barrier(struct journal *journal);
/*
 * Moves commands from the queue to `taken`: up to group_max, which are expected to do at most
 * GROUP_WORK, but at least one, if there is any.
 * Returns: the clock of a passed input barrier, if all its input has been taken from the queue;
 *          else 0.
 * Requires: `taken` is empty.
 */
uint64_t journal__take_queued(struct journal *journal, struct list *taken);
/* Returns: whether journal__take_queued() would take as much as it may. */
bool journal__is_group_queued(struct journal *journal);
/*
 * Returns: the work that a command is expected to do, by its size; what depends on the core's state
 *          does not count.
 */
uint64_t journal__expected_work(const struct command *command);
/* on_done of the journal's own commands: frees the command. */
void journal__free_internal(struct command *command);

/* --- State for readers (read_state.c) ----------------------------------------------------------------------------- */

/* Pins the stable timestamp. Returns: it. */
tl_ts journal__pin_stable(struct journal *journal);

/* --- Query transactions (query_reads.c) --------------------------------------------------------------------------- */

/* `limits` has the limit of open ones. */
void journal__init_query_txns(struct journal *journal, const struct core_limits *limits);
/*
 * Refuses a command that is to run in a query transaction.
 * Returns: whether it was refused; its problem is then set.
 */
bool journal__refuse_in_query_txn(struct journal *journal, struct command *command);
/* Ends those that are idle as of the last input barrier. */
void journal__end_idle_query_txns(struct journal *journal);
/* A callback of the core's effects: ends the transactions of a session. */
void journal__session_ended(struct effects *effects, struct slice id, uint64_t number, const char *how);

#endif
