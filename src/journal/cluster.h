/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the journal in a cluster share. README.md, "In a cluster".
 *
 * `journal->queue_lock` is for all of this but what is one thread's; that is said.
 */
#ifndef TL_JOURNAL_CLUSTER_H
#define TL_JOURNAL_CLUSTER_H

#include "core/step/command_group.h"
#include "journal/journal_internal.h"
#include "cmdlog/cmdlog_shared.h"

enum { CHAINS_KEPT = 4096 };

/* An entry of this host that is not applied here yet. */
struct under_way {
    struct list link;
    uint64_t life;
    uint64_t number;      /* in that life */
    uint64_t log_number;  /* by which the log knows it */
    uint64_t submitted;   /* of boot */
    struct list commands; /* as they were submitted; empty when `abandoned` */
    bool abandoned;       /* they have been told that nobody knows */
};

/* What the core was behind an entry. */
struct reached {
    cmdlog_position position;
    uint64_t chain;
    tl_ts ts;
};

/* Another host, as far as it has told of itself; this one's own memory of it. */
struct known {
    uint64_t life;
    uint64_t beat_at;    /* of boot: when its newest heartbeat was applied here */
    struct reached beat; /* what that said; `ts` is this host's for that position */
    enum { SAYS_NOTHING, AGREES, DIFFERS } verdict;
    uint64_t absent_since; /* of boot: it is not in by the log; 0: it is */
    uint64_t told_at;      /* when HOST_GONE was ordered for it last */
};

struct cluster {
    struct cmdlog *log;
    char *name, *group, *address, *build, *about, *directory;
    struct core_limits limits; /* that this host was started with */
    uint64_t timeout_us;
    struct cmdlog_cursor *cursor; /* the follower's */

    /* The life. */
    pthread_cond_t changed; /* `in`, `refused`, `ended`, entries applied while somebody waits for one */
    uint64_t life;          /* that the log gave; 0: none */
    bool joining;           /* JOIN was submitted, and has not come yet */
    bool in;                /* JOIN was applied */
    uint16_t host;          /* the number that it gave; it stays */
    uint64_t number;        /* of the newest entry in this life */
    bool was_in;            /* in an earlier life, or this */
    char *refused;          /* why JOIN was; mem_free */
    struct list under_way;  /* oldest first */
    struct list looks;      /* commands that only look, for the follower */
    struct common common;   /* the clock of commands */
    uint64_t beat_at;       /* of boot: when the next heartbeat is due */
    uint64_t said_heard;    /* in the newest one */
    bool ticking;           /* a TICK is under way */
    bool maintaining;       /* a MAINTAIN is under way */
    bool more;              /* ... and the last one left something */
    bool draining;          /* the journal ends: what is queued goes still */
    bool ended;             /* nobody submits any more */
    bool follow_no_more;

    /* Of the core, as of the newest entry. */
    struct reached reached;
    cmdlog_position passed; /* cmdlog_cursor_position() */
    bool is_keeper;
    uint64_t heard_by_all;
    tl_ts low_of_all;
    size_t live_count;
    struct known known[UINT16_MAX + 1]; /* by number; mostly untouched pages */
    struct journal_host *hosts;         /* with their texts behind them; mem_free */
    size_t host_count;

    /* The follower's own. */
    struct reached chains[CHAINS_KEPT];
    size_t chain_next;

    bool proposer_runs, follower_runs, keeper_runs;
    pthread_t proposer, follower, keeper;
};

/* --- cluster.c ---------------------------------------------------------------------------------------------------- */

/* Of commands that are the journal's own. */
void cluster__submit_own(struct journal *journal, struct command *command);
/* Puts an entry's commands back in front of the queue: they have not happened. Requires: queue_lock. Frees it. */
void cluster__put_back(struct journal *journal, struct under_way *entry);
/* Those who have waited too long are told so. */
void cluster__tell_late(struct journal *journal);
void cluster__refuse(struct command *command, enum problem_type type, const char *why);

/* --- proposer.c --------------------------------------------------------------------------------------------------- */

void *cluster__proposer(void *context);

/* --- follower.c --------------------------------------------------------------------------------------------------- */

void *cluster__follower(void *context);

/* --- hosts.c ------------------------------------------------------------------------------------------------------ */

/* What the core knows of hosts has changed. Requires: core_lock. */
void cluster__look_at_hosts(struct journal *journal);
/* Remembers what the core is behind the newest entry. The follower's. Requires: core_lock. */
void cluster__reach(struct journal *journal, cmdlog_position position);
/* What a heartbeat says, which has just been applied, is compared. The follower's. */
void cluster__compare(struct journal *journal, const struct command *heartbeat);
/* Orders HOST_GONE for those that the log has out. */
void cluster__tell_gone(struct journal *journal, const struct cmdlog_hosts *in);

/* Begins a life, and submits its JOIN. Returns: whether that went; else once more, later. The keeper's thread's. */
bool cluster__join(struct journal *journal);

#endif
