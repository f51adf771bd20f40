/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the journal in a cluster; README.md, "In a cluster".
 *
 * `journal->queue_lock` protects everything here, except fields marked as owned by one thread.
 */
#ifndef TL_JOURNAL_CLUSTER_H
#define TL_JOURNAL_CLUSTER_H

#include "core/step/command_group.h"
#include "journal/journal_internal.h"
#include "cmdlog/cmdlog_shared.h"
#include "journal/recover.h"

enum { CHAIN_POINTS = 4096 };

#define BEAT_US TL_SECOND /* between two heartbeats of a host */

/* An entry of this host that was submitted to the log and is not applied here yet. */
struct inflight_entry {
    struct list link;
    uint64_t life;
    uint64_t number;      /* within the life, from 1 */
    uint64_t log_number;  /* the log's identifier of the submission; 0: not assigned yet */
    uint64_t submitted;   /* boot clock */
    struct list commands; /* in order of submission; empty if `abandoned` */
    bool abandoned;       /* the commands were answered that their outcome is unknown */
    bool is_in;           /* it is in the log; owned by the proposer */
    bool refused;         /* it is not, and never will be; owned by the proposer */
};

/* The core's hash chain after an entry. */
struct chain_point {
    cmdlog_position position;
    uint64_t chain;
    tl_ts ts;
};

/* What this host knows about another one. */
struct peer {
    uint64_t life;
    uint64_t began;   /* boot clock: its JOIN was applied here, or this process began */
    uint64_t beat_at; /* boot clock: its newest heartbeat was applied here; 0: never */
    /* Of that heartbeat; `ts` is this host's at the same position, 0: unknown. */
    struct chain_point beat;
    uint64_t lag_entries, lag_us; /* of its applied state when it sent that heartbeat */
    int64_t clock_offset_us;      /* its wall clock minus this host's when that was applied */
    bool clock_known;             /* clock_offset_us is of a heartbeat applied in this host's life */
    enum { PEER_UNKNOWN, PEER_AGREES, PEER_DIFFERS } verdict;
    tl_ts reached_ts;     /* it serves reads at this timestamp or later, in this life */
    uint64_t reported_at; /* boot clock: the last HOST_GONE submitted for it; 0: none */
};

/* The entries that a start applies before this host has joined. Owned by the follower, then by the opener. */
struct start_replay {
    const struct recover_observer *observer; /* NULL: none */
    struct recover_progress progress;        /* `position` and `entries` are of the newest entry read */
    bool begun;                              /* reported; not if the log has only this host's JOIN */
    bool joined;                             /* this host has joined: nothing is counted any more */
    uint64_t begun_us, reported_us;          /* boot clock: of the first report and of the newest; set if `begun` */
};

struct cluster {
    struct cmdlog *log;
    char *name, *group, *build, *about, *directory;
    char *address;             /* as JOIN has it (hosts.c) */
    struct core_limits limits; /* that this host was started with */
    uint64_t timeout_us, clock_skew_us;
    struct cmdlog_cursor *cursor; /* the follower's */
    struct read_ahead *ahead;     /* entries read from the cursor and not applied yet */
    bool behind;                  /* more entries wait than there is room for; the follower's */
    struct start_replay replay;

    /* Entries that are not applied; cmdlog README.md, "Skipped entries". */
    struct cmdlog_skips *skips_read;  /* in the life `skips_life`, not adopted yet; NULL: none; mem_free */
    uint64_t skips_life;              /* the newest life in which they were read; 0: none */
    const struct cmdlog_skips *skips; /* owned by the follower; NULL: none */
    struct cmdlog_skips *own_skips;   /* the same if they were read by this process; mem_free */

    /*
     * An entry is applied, but whether it is skipped is not known, since the log could not be reached:
     * the core may be wrong, and is ahead of `journal->position`. Nothing is saved of it, and
     * no maintenance done, until that is known. core_lock.
     */
    bool unverified;

    /* This host's state differs from that of half of the live hosts or more; README.md, "Equality". */
    bool differs;                 /* permanent: set by the follower */
    cmdlog_position differs_from; /* its heartbeat at this position, or a later one, shows it to the others */
    struct list withheld;         /* commands that completed since, by link; owned by the follower */

    /* Membership. */
    pthread_cond_t changed;             /* of `joined`, `refused`, `ended`; also after an entry */
    uint64_t life;                      /* assigned by the log; 0: none */
    bool joining;                       /* JOIN was submitted and is not applied yet */
    uint64_t join_number;               /* the log's identifier of that submission; the keeper's */
    bool joined;                        /* JOIN was applied */
    _Atomic uint16_t host;              /* the number that JOIN assigned, until it is forgotten */
    uint64_t number;                    /* of the newest entry in this life */
    bool has_joined;                    /* the keeper's: the log had this host, by the last attempt that it knows of */
    bool was_joined;                    /* joined in this life or an earlier one */
    char *refused;                      /* why JOIN was refused; NULL: it was not; mem_free */
    bool refusal_is_final;              /* it is not repeated; cluster__reconsider_refusal() */
    uint64_t refused_at;                /* boot clock: when the refusal was applied */
    bool refusal_reported;              /* the log says that this host waits for the end of others' leases */
    uint64_t lives_ended;               /* of hosts, as this one has seen */
    uint64_t refused_after;             /* lives_ended when it was refused */
    struct list inflight;               /* inflight_entry by link, oldest first */
    struct list inspections;            /* commands with COMMAND_UNLOGGED, for the follower */
    struct cluster_clock cluster_clock; /* the command clock */
    uint64_t beat_at;                   /* boot clock: next heartbeat */
    uint64_t sent_barrier_clock;        /* barrier clock in the newest heartbeat */
    bool ticking;                       /* a TICK is in flight */
    size_t sent_commands;               /* of clients, in the newest entry; the proposer's */
    uint64_t sent_at;                   /* boot clock: when that was submitted; the proposer's */
    size_t alone;                       /* so many next commands have an entry of their own each; the proposer's */
    bool maintaining;                   /* a MAINTAIN is in flight */
    bool more;                          /* the last MAINTAIN did not finish its work */
    bool draining;                      /* the journal stops; queued commands are still ordered */
    bool ended;                         /* nothing is submitted any more */
    bool follower_stopping;

    /* This host's wall clock among those of the live hosts; README.md, "Time". */
    bool clock_compared;         /* in this life */
    bool clock_is_off;           /* it is further from the median than clock_skew_us */
    int64_t clock_correction_us; /* the median minus it, if it is above and off; else 0 */

    /* Space in the log; quota.c. */
    bool quota_logged, log_is_tight, log_is_full; /* as logged; owned by the keeper's thread */
    uint64_t trim_at; /* boot clock: the next trim while it is tight; owned by the keeper's thread */
    bool relieving;   /* a checkpoint was begun since the space has been tight; core_lock */

    /* As of the newest entry. */
    struct chain_point applied; /* published: readers see everything up to it */
    cmdlog_position passed;     /* the same, or beyond positions that have no entry */
    bool is_keeper;
    uint64_t barrier_clock_min; /* over all live hosts */
    tl_ts history_low_min;      /* over all live hosts */
    size_t live_count;
    struct peer peers[UINT16_MAX + 1]; /* by host number; most pages are never touched */
    struct journal_host *hosts;        /* texts are in the same allocation; mem_free */
    size_t host_count;

    /* Owned by the follower: a ring of the newest chain points. */
    struct chain_point chains[CHAIN_POINTS];
    size_t chain_next;

    struct thread proposer, follower, keeper;
};

/* --- cluster.c ---------------------------------------------------------------------------------------------------- */

/* Submits a command of the journal's own; NULL on_done: it is freed. */
void cluster__submit_own(struct journal *journal, struct command *command);
/*
 * Returns an entry's commands to the front of the queue, since the entry will never be applied.
 * Frees the entry. Requires: queue_lock.
 */
void cluster__requeue(struct journal *journal, struct inflight_entry *entry);
/* Completes commands that exceeded the timeout with an error. */
void cluster__expire_commands(struct journal *journal);
/* Calls on_done of the commands, and empties the list. Requires: no lock of the journal is held. */
void cluster__complete_commands(struct list *commands);
/*
 * Returns: whether a command waits for space in the log, and for the log, without limit, since no client would
 * repeat it: the wait or the attachment that it ends would stay.
 */
bool cluster__is_kept(const struct command *command);
/*
 * Moves those CANCELs of a list to `dropped` whose commands are in `refused`, so in no entry: they would end
 * nothing. Without this, clients that come and go while the log has no space or cannot be reached would fill the
 * queue with commands that are kept. Returns: their number. Assumes: queue_lock, if `among` is the queue.
 */
size_t cluster__drop_cancels(const struct list *refused, struct list *among, struct list *dropped);
/*
 * The same for the queue. Ensures: no CANCEL of these commands is queued later, although they are completed
 * later. Requires: queue_lock.
 */
void cluster__drop_queued_cancels(struct journal *journal, const struct list *refused, struct list *dropped);
/* Sets a command's problem. */
void cluster__refuse(struct command *command, enum problem_type type, const char *why);

/* --- quota.c ------------------------------------------------------------------------------------------------------ */

/* Logs changes of the log's space, and trims it while it is tight. Called by the keeper's thread. */
void cluster__check_log_space(struct journal *journal);
/* Sets PROBLEM_DISK_FULL, with the reason. */
void cluster__refuse_log_full(struct journal *journal, struct command *command);

/* --- proposer.c --------------------------------------------------------------------------------------------------- */

void cluster__proposer(void *context);

/* --- follower.c --------------------------------------------------------------------------------------------------- */

void cluster__follower(void *context);
/*
 * Reports that the entries before this host's JOIN have been applied, if their beginning was reported.
 * Requires: this host has joined; the opener.
 */
void cluster__end_start_replay(struct journal *journal);

/* --- hosts.c ------------------------------------------------------------------------------------------------------ */

/* Returns: the address of a host as JOIN has it. Owns: the caller; mem_free. */
char *cluster__join_address(const struct journal_cluster *identity);
/* Updates this host's view of the cluster from the core's. Requires: core_lock. */
void cluster__update_hosts(struct journal *journal);
/* Records the chain after the newest entry. Requires: core_lock; the follower. */
void cluster__record_chain(struct journal *journal, cmdlog_position position);
/*
 * Makes the newest entry the one that heartbeats report, and wakes journal_await_position(). Called by
 * the follower. Requires: the stable timestamp covers it (invariant 6).
 */
void cluster__publish_applied(struct journal *journal);
/* Compares this host's clock with those of the live hosts. Requires: queue_lock. */
void cluster__compare_clocks(struct journal *journal);
/* Begins that anew, in a new life. Requires: queue_lock. */
void cluster__forget_clocks(struct journal *journal);
/* Returns: the time that an entry proposes; 0: none. Requires: queue_lock. */
tl_ts cluster__proposed_ts(struct journal *journal);
/*
 * Compares a heartbeat with this host: its chain, its position, and `wall`, its host's wall clock.
 * Ends the process if this host differs, and this is its heartbeat that shows so to the others.
 * Called by the follower. Requires: the heartbeat's entry is the newest that was applied.
 */
void cluster__compare(struct journal *journal, const struct command *heartbeat, uint64_t wall);
/* Submits HOST_GONE for a live host that is missing in the log's list, if this host has joined, or was refused. */
void cluster__report_gone(struct journal *journal, const struct cmdlog_hosts *in);
/*
 * Decides about a refusal of JOIN. The core may have live hosts of another build, or with other limits, that have
 * all ended with none left to report that, as after a stop of all hosts for an upgrade. While one is missing in
 * the log's list the refusal is not final: this host reports it, and joins again. Nor is it final before a
 * heartbeat of one of them has followed it: hosts that were killed are in that list until their leases are over.
 */
void cluster__reconsider_refusal(struct journal *journal, const struct cmdlog_hosts *in);

/*
 * Ends the process with status 71, and marks the data directory, which is not opened again. `why`:
 * how this host differs from the others.
 */
_Noreturn void cluster__end_different(const struct cluster *cluster, const char *why);

/*
 * Begins a new life, reads the skipped entries in it, and submits its JOIN. Called by the keeper's thread.
 * Returns: 0; otherwise it is to be repeated later: CMDLOG_EXISTS: a host of this name is a member; the
 * codes of cmdlog_join(), cmdlog_list_skips() and cmdlog_submit().
 */
int cluster__join(struct journal *journal) TL_MUST_USE;
/* Makes the next cluster__join() due: the life has not been joined, and never will be. */
void cluster__give_up_life(struct journal *journal);

#endif
