/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the local journal share.
 *
 * Locks, in the order in which a thread may take them: core_lock, then note_lock, then one of queue_lock, publish_lock, pin_lock. The last
 * three are held for a few instructions only.
 */
#ifndef TL_JOURNAL_JOURNAL_INTERNAL_H
#define TL_JOURNAL_JOURNAL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "journal/journal.h"
#include "journal/pins.h"
#include "journal/query_txns.h"
#include "journal/times.h"
#include "cmdlog/cmdlog.h"

enum { WORKER_COUNT = 2 };

#define MAINTAIN_INTERVAL_US TL_SECOND
/* How near timestamps may come to the mark: a step may use as many as there are microseconds in this. */
#define TS_CEILING_MARGIN_US TL_SECOND
#define TS_CEILING_LEAD_US (5 * TL_SECOND) /* how far the mark lies ahead of the timestamps that are given */

struct journal {
    struct core *core;
    struct store *store;
    uint64_t history_us;
    uint64_t feed_us;
    uint64_t feed_bytes_max;
    size_t group_max;
    char *directory; /* whose space is watched; NULL: none */
    uint64_t reserve_bytes;

    pthread_mutex_t queue_lock;
    pthread_cond_t queue_filled;
    struct list queue; /* commands by link, in order of arrival */
    unsigned sleepers; /* workers that wait for queue_filled */
    bool stopping;
    bool waits_end;      /* journal_end_waits() was called: a CANCEL of all waits follows each command that may wait */
    bool sync_left;      /* a caller's thread has left something to sync */
    uint64_t wait_end;   /* when the next wait in the core runs out, by the clock of commands; TL_TS_MAX: none */
    uint64_t lease_end;  /* the next lease or idle transaction */
    uint64_t not_before; /* of boot: nothing that is due is looked at until then */
    uint64_t wake_at;    /* of boot, for upkeep; `maintain_at`, for who does not hold the core */
    struct pace pace;
    _Atomic uint64_t pace_lost;  /* pace.lost, for readers without the lock */
    uint64_t stalled_us;         /* a gap that is still to be told */
    _Atomic uint64_t sync_begun; /* of boot: since when somebody is at the disk; 0: nobody is */
    struct steps steps;
    uint64_t queued; /* commands that ever were */
    uint64_t taken;
    struct journal_input_barrier ears;
    bool listening;        /* the ears were asked, and have not answered yet */
    uint64_t listen_clock; /* when they were */
    uint64_t heard;        /* by the clock: what was sent before it was submitted ... */
    uint64_t heard_queued; /* ... as one of so many commands */

    struct cluster *cluster;    /* cluster.h; NULL: this host has its log for itself */
    struct cmdlog *log;
    struct at_work *at_work;    /* where it is noted which entry is applied; NULL: nowhere */
    uint64_t recovery_us;       /* so much work there may be behind a checkpoint; core_lock for all of these */
    size_t checkpoint_bytes;    /* and so much in the store's memory */
    cmdlog_position position;      /* of the newest entry */
    cmdlog_position checkpoint;    /* of the newest checkpoint, on the disk or not yet */
    bool checkpointing;         /* it is not yet */
    bool held;                  /* the disk is nearly full: nothing is applied until it is there */
    bool made_room;             /* a checkpoint was begun since writes are refused for want of room */
    struct command *marking;    /* the entry at hand is this mark's own; NULL: it is not one's */
    uint64_t work_us;           /* what applying has taken since the newest checkpoint was begun */
    uint64_t save_us;           /* what beginning it took */
    struct buf entry;           /* the bytes of the entry at hand */
    struct list
        aside; /* commands that an entry of the journal's own has completed, to be handed back with the next group */
    struct list postponed; /* commands that end waits, for which there was no room: before the next entry */

    pthread_mutex_t note_lock; /* one at a time tells the log of a checkpoint */
    cmdlog_position noted;        /* the newest that it was told of; note_lock */

    pthread_mutex_t core_lock;
    tl_ts last_ts; /* given to a command: the next is above it */
    struct present present;
    struct past past;
    struct past recent;   /* the same of the last minutes, more finely */
    tl_ts mark;           /* the one in the log: a restart begins above it */
    tl_ts mark_at;        /* the timestamp at which it was put there */
    tl_ts marked;         /* an earlier one, which is durable for sure */
    uint64_t step_clock;  /* of the command that is being applied */
    uint64_t maintain_at; /* of boot */
    bool sync_all;        /* the next sync must make durable what nobody waits for, too */
    struct effects effects;

    pthread_mutex_t publish_lock;
    tl_ts applied_ts; /* newest timestamp of the core */
    cmdlog_position applied_position;
    void (*moved)(void *context); /* journal_watch() */
    void *moved_context;
    tl_ts written_ts; /* newest timestamp that must be durable before anybody hears of it */
    tl_ts synced_ts;  /* durable is what was written up to here */
    struct catalog *applied_catalog;
    tl_ts applied_catalog_ts; /* it has been the same since */
    struct catalog *catalog;  /* as of the stable timestamp */
    tl_ts catalog_ts;
    _Atomic tl_ts stable_ts;
    struct list applied; /* completed commands that wait for the disk, by link */
    size_t applied_count;
    bool syncing;     /* a thread is at the disk, or about to go there */
    unsigned handing_back; /* threads that hand back what a sync has made durable */
    size_t expected;  /* commands in flight when the last group was handed back */
    size_t awaited;   /* applied_count that `syncing` waits for; 0: it does not wait */
    uint64_t sync_us; /* what a sync took of late */
    pthread_cond_t gathered;

    pthread_mutex_t pin_lock;
    struct pins pins;

    struct queries queries;

    _Atomic bool writable; /* there is room, and `ready` */
    _Atomic bool
        ready; /* the store takes small writes: not at the end of the reserve, nor while it gets over a full disk */
    _Atomic uint64_t space_checked_at; /* of boot */
    _Atomic int64_t room;              /* bytes that may still be written, until the disk is looked at again */
    _Atomic uint64_t requests;

    struct journal_metrics figures;
    struct journal_clocks clocks;
    pthread_t workers[WORKER_COUNT];
    unsigned worker_count;
    bool serving; /* the start is over: from now on nobody waits for room in the log */
};

/* --- Opening (journal_local.c) -------------------------------------------------------------------------------------- */

struct journal *journal__new(struct core *core, struct store *store, const struct journal_options *options);
/* Publishes the core as it is. Requires: nothing else runs yet. */
void journal__publish(struct journal *journal);
/* Tells the command's waiter its number. Requires: queue_lock. Returns: false where the waiter has left; the command must then be refused. */
bool journal__enter(struct command *command);
/* Appends a command to the queue, and wakes somebody. Requires: queue_lock. */
void journal__queue(struct journal *journal, struct command *command);
void journal__refuse_left(struct command *command);

/* --- In a cluster (cluster.c) ---------------------------------------------------------------------------------------- */

void cluster__submit(struct journal *journal, struct command *command);
/* Ends the threads: what was queued is ordered and answered, as long as that goes; then the life. */
void cluster__stop(struct journal *journal);
void cluster__free(struct journal *journal);
/* Requires: queue_lock. Returns: the clock of commands. */
uint64_t cluster__clock(struct journal *journal);

/* --- Clocks (clocks.c) -------------------------------------------------------------------------------------------- */

extern const struct journal_clocks journal__machine_clocks;
uint64_t journal__wall(const struct journal *journal);
uint64_t journal__boot(const struct journal *journal);
/* As clock_wait(), by the journal's clock. */
bool journal__wait_until(struct journal *journal, pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until);
/* Requires: core_lock. The core may have used timestamps of its own, for commands that waited. */
tl_ts journal__next_ts(struct journal *journal);
/* Requires: queue_lock. Returns: the clock of commands. */
uint64_t journal__read_pace(struct journal *journal);
/* What an operator has to know of the clocks. Requires: queue_lock. */
void journal__watch_clocks(struct journal *journal);

/* --- A full disk (disk_space.c) ---------------------------------------------------------------------------------------- */

/* Looks at the disk, where that was long ago. */
void journal__check_space(struct journal *journal);
/*
 * However much room there was when somebody looked last, neither one command nor all since then write more. Requires:
 * core_lock.
 */
bool journal__refuse_too_much(struct journal *journal, struct command *command);
/* Whether the store takes small writes; looks at the disk, where that was long ago. */
bool journal__is_ready(struct journal *journal);
/* The same, and looks in any case. */
bool journal__is_ready_now(struct journal *journal);
void journal__refuse_for_room(struct journal *journal, struct command *command);
/* Whether a command must be refused, with its problem: what only keeps or frees runs out of the reserve. */
bool journal__refuse_full(struct journal *journal, struct command *command);

/* --- The three stages (group_commit.c) ---------------------------------------------------------------------------------- */

/* Says what failed, and ends the process: nothing that was not durable has been acknowledged. */
_Noreturn void journal__store_failed(const char *what, int code);
void journal__move_completed(struct effects *effects, struct list *group);
/* The same, and behind them the command itself, where it is done. */
void journal__take_completed(struct journal *journal, struct command *command, struct list *group);
/* Puts a mark above the timestamps of some time to come. Requires: core_lock. Returns: false where the log has no room for it. */
bool journal__put_mark(struct journal *journal, uint64_t ahead);
/*
 * Applies a command and adds to the group whom it completes. Those whom it lets go on are handed back before it: they have waited
 * longer, and whoever waits for a lock waits for them. Requires: core_lock.
 */
void journal__apply(struct journal *journal, struct command *command, struct list *group);
/* Requires: core_lock. Says what has been applied, so that the next sync can publish it. */
void journal__note_applied(struct journal *journal);
/*
 * Stages two and three. Who finds another at the disk leaves its group to him, who comes back for it. A caller's thread goes
 * to the disk once, or not at all; what is left is a worker's, and once the journal stops the caller's after all.
 * Requires: core_lock was released after the group was applied.
 */
enum sync_rounds { SYNC_NONE, SYNC_ONCE, SYNC_ALL };
void journal__finish(struct journal *journal, struct list *group, tl_ts wanted, enum sync_rounds rounds);
/* Ensures: all that was applied before is durable and handed back, by whatever thread. Requires: it stops; the workers have ended. */
void journal__finish_last(struct journal *journal);

/* --- On a log (cmdlog.c) ------------------------------------------------------------------------------------------- */

/* As journal__apply(), of many: they are appended to the log in entries, and applied as such. Requires: core_lock. */
void journal__apply_logged(struct journal *journal, struct list *taken, struct list *group);
/* Moves over what is set aside. Requires: core_lock. */
void journal__take_aside(struct journal *journal, struct list *group);
/* Answers a command that only looks, with no entry. Requires: core_lock. */
void journal__look(struct journal *journal, struct command *command, struct list *group);
/* Makes the checkpoint of the end, and waits for it. Requires: core_lock. */
void journal__end_checkpoints(struct journal *journal);
/* Puts a mark so far above the timestamp of its own step. Requires: core_lock. Returns: as journal__put_mark(). */
bool journal__log_mark(struct journal *journal, uint64_t ahead);
/*
 * Waits until a checkpoint of all that has been applied by now is on the disk. *ret_wanted: its position at least.
 * Returns: 0, also where the journal stops before that; TL_ERR_NO_SPACE.
 */
int journal__reach_checkpoint(struct journal *journal, cmdlog_position *ret_wanted) TL_MUST_USE;
/* Looks after checkpoints: one that is due is begun, of one that is done the log gets to know. */
void journal__keep_checkpoints(struct journal *journal);
/*
 * Whether nothing may be applied just now: a checkpoint is on its way to a disk that is nearly full, or so much was written since it was
 * begun that memory would not be bounded. Requires: core_lock.
 */
bool journal__is_held(struct journal *journal);
/* Waits until it is not, while the server stops: for some seconds, and while there is room. Requires: core_lock. */
void journal__await_held(struct journal *journal);
/* Makes a checkpoint, waits for it, and seals the log. Requires: core_lock. */
void journal__end_log(struct journal *journal);

/* --- Upkeep (maintenance.c) -------------------------------------------------------------------------------------------- */

/* Finds how timestamps went before this start. */
void journal__load_past(struct journal *journal);
/* In a cluster: notes the past, moves the history on, tells operators. Where `keeper`, with commands in `proposed` that are to be ordered. Requires: core_lock. */
void journal__maintain_cluster(struct journal *journal, bool keeper, struct list *proposed);
/* Does what is due. Requires: core_lock. Returns: whether the core was changed. */
bool journal__maintain(struct journal *journal, struct list *group);
/* The feed is on or off from now on. Requires: core_lock. */
void journal__set_feed(struct journal *journal, bool off, struct list *group);

/* --- Threads (workers.c) ------------------------------------------------------------------------------------------ */

void *journal__worker(void *context);
/* Before a lease runs out, it is heard who is still there (journal_input_barrier). */
void journal__listen(struct journal *journal);
/* Moves up to group_max commands over. Returns: up to when all was heard that is in them or was before; 0: that is not known. */
uint64_t journal__take_queued(struct journal *journal, struct list *taken);
/* As on_done: of a command that nobody waits for. */
void journal__free_internal(struct command *command);

/* --- Query transactions (read_state.c), as the core's effects tell of them ------------------------------------------- */

void journal__query_seen(struct effects *effects, struct slice id, tl_ts read_ts, uint64_t fresh_us);
void journal__query_ended(struct effects *effects, struct slice id);

#endif
