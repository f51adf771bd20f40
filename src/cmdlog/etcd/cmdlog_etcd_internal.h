/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the source files of the log in etcd; README.md. */
#ifndef TL_CMDLOG_ETCD_CMDLOG_ETCD_INTERNAL_H
#define TL_CMDLOG_ETCD_CMDLOG_ETCD_INTERNAL_H

#include <pthread.h>

#include "base/check.h"
#include "base/list.h"
#include "base/magic.h"
#include "cmdlog/etcd/client.h"
#include "cmdlog/etcd/envelope.h"
#include "cmdlog/etcd/messages.h"
#include "cmdlog/cmdlog_etcd.h"

enum {
    OUTCOMES_KEPT = 64,   /* finished submissions */
    CONTROL_US = 1000000, /* timeout of the tasks' own calls */
};

/* A submitted entry, as consecutive puts. */
struct submission {
    struct list link;     /* cmdlog_etcd.entries, oldest first */
    uint64_t first, last; /* numbers of its puts */
    unsigned waiters;     /* threads waiting; it is kept while there are any */
    bool done;
    int result; /* as cmdlog_outcome() */
    cmdlog_position position;
};

/* A put that is not known to be in the log with all its predecessors. */
struct put {
    struct list link; /* cmdlog_etcd.puts, by number; or .settled */
    struct cmdlog_etcd *log;
    struct submission *entry; /* NULL: settled */
    uint64_t life;
    uint64_t number;
    struct buf request;
    struct grpc_call call;
    struct buf answer;
    bool answered;
    cmdlog_position position; /* 0: not known to be in the log */
    bool disordered;          /* refused because its predecessor was not in; waits for that one */
    bool lost;                /* an attempt had no answer: it may be in the log, or still get in */
    cmdlog_position known_in; /* cmdlog_etcd.own_newest when the newest attempt was started */
    unsigned attempts;
    uint64_t retry; /* no attempt before this time */
};

#define CMDLOG_ETCD_MAGIC MAGIC('C', 'L', 'o', 'E')

struct cmdlog_etcd {
    struct cmdlog log;
    uint32_t magic; /* CMDLOG_ETCD_MAGIC */
    struct etcd_client *client;
    struct list tasks;
    pthread_mutex_t lock;   /* guards all below, except members marked as the client thread's */
    pthread_cond_t changed; /* an entry is done, space is free, the members changed */
    bool closing;

    char *url, *name_text;
    struct etcd_tls_files files; /* the names are allocated */
    struct slice prefix, name;
    struct buf keys; /* the bytes of the following keys */
    struct slice key_genesis, key_host, key_log, key_checkpoint;
    struct slice hosts, hosts_end, logs, logs_end, checkpoints, checkpoints_end;
    struct slice key_halted, halted, halted_end, skips, skips_end;

    /* This host's life. */
    uint64_t ttl_us;   /* of a requested lease */
    uint64_t lease_id; /* 0: none */
    uint64_t life;     /* 0: none, or ended */
    uint64_t lease_until;
    uint64_t lease_asked;
    bool was_known; /* a checkpoint was put through this log: a later one creates no key, except as a member's */

    /* Appending. */
    struct list entries, puts;
    struct list settled; /* puts of ended lives, for the client's thread to end their calls and free */
    unsigned in_flight; /* entries that are not done */
    uint64_t next_number;
    cmdlog_position own_newest; /* of the newest put known to be in, with all its predecessors */
    bool loss_logged;           /* etcd's revision is below that */
    bool out_of_space;          /* as etcd reported; no attempt starts until this is resolved */
    bool version_known;         /* the log key's version has been read since then */
    uint64_t version_life;      /* of the puts for which it is read */
    struct grpc_call version_call;
    struct buf version_request;
    uint64_t version_retry;
    uint64_t smoothed_rtt_us; /* of an attempt, a moving average; 0: none yet */
    struct cmdlog_etcd_counts counts;
    struct etcd_client_task appender_task;

    /* Keep-alive of the lease; the client thread's. */
    struct etcd_client_task membership_task;
    struct grpc_call keepalive_call;
    struct buf keepalive_request;
    uint64_t keepalive_next, keepalive_asked, keepalive_lease;
    int64_t keepalive_ttl_s;
    bool keepalive_answered;

    /* Members; the calls and requests are the client thread's. */
    struct cmdlog_hosts *live_hosts; /* NULL: not known yet */
    uint64_t list_asked;             /* boot clock: of the newest request */
    struct grpc_call list_call, hosts_watch_call;
    struct buf list_request, hosts_watch_request, list_answer;
    uint64_t list_next, hosts_watch_next;
    bool list_answered;

    /* Space. */
    struct etcd_status status;    /* the last report; size 0: none yet */
    bool was_full;                /* cmdlog_space.full at that report */
    uint64_t quota, catch_up;     /* options; quota 0: not given */
    uint64_t submitted_bytes;     /* of all entries of this host since the opening */
    uint64_t status_asked_bytes;  /* the same when the newest report was asked for */
    uint64_t status_before_bytes; /* the same when the one before it was */
    uint64_t uncounted_from;      /* the same from which on `status` may lack entries */
    struct grpc_call status_call;
    struct buf status_request;
    uint64_t status_asked, status_retry;

    /* The newest known position and the oldest not trimmed; 0: unknown. */
    cmdlog_position newest, oldest;

    /* Cursors. */
    struct etcd_client_task follower_task;
    struct list cursors;
};

static inline struct cmdlog_etcd *cmdlog_etcd_of(struct cmdlog *base)
{
    struct cmdlog_etcd *log = container_of(base, struct cmdlog_etcd, log);
    REQUIRE(MAGIC_VALID(log, CMDLOG_ETCD_MAGIC));
    return log;
}

/* membership.c */
/* Returns: the space by the last report and the puts since. Requires: the lock. */
struct cmdlog_space membership__space(const struct cmdlog_etcd *log);
/* Returns: whether etcd has space for an entry of so many bytes; true before its first report. */
bool membership__has_room(const struct cmdlog_etcd *log, uint64_t bytes);
void membership__init(struct cmdlog_etcd *log);
void membership__deinit(struct cmdlog_etcd *log);
int membership__join(struct cmdlog *log, struct slice about, uint64_t until, uint64_t *ret_life);
int membership__leave(struct cmdlog *log, uint64_t until);
int membership__expel(struct cmdlog *log, struct slice name, uint64_t life, uint64_t until);
void membership__lease(struct cmdlog *log, struct cmdlog_lease *ret_lease);
int membership__list_hosts(struct cmdlog *log, uint64_t version, uint64_t until, struct cmdlog_hosts **ret_hosts);
/* Records that the life has certainly ended. Requires: the lock. */
void membership__record_end(struct cmdlog_etcd *log);

/* appender.c */
void appender__init(struct cmdlog_etcd *log);
void appender__deinit(struct cmdlog_etcd *log);
int appender__submit(struct cmdlog *log, const struct slice *parts, size_t count, uint64_t until, uint64_t *ret_number);
int appender__await_slot(struct cmdlog *log, uint64_t until);
int appender__outcome(struct cmdlog *log, uint64_t number, uint64_t until, cmdlog_position *ret_position);
int appender__append(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position);
/*
 * Finishes all entries of an ended life, after which no put of theirs can enter the log: those up
 * to `version` as CMDLOG_UNKNOWN, the others as CMDLOG_FENCED. From any thread; the client's thread
 * ends the calls at its next run. Requires: the lock.
 */
void appender__settle(struct cmdlog_etcd *log, uint64_t version, cmdlog_position position);

/* follower.c */
void follower__init(struct cmdlog_etcd *log);
int follower__follow(struct cmdlog *log, cmdlog_position from, struct cmdlog_cursor **ret_cursor);
int follower__next(struct cmdlog_cursor *cursor, struct cmdlog_entry *ret_entry);
void follower__unfollow(struct cmdlog_cursor *cursor);
int follower__await(struct cmdlog_cursor *cursor, uint64_t until);
void follower__interrupt(struct cmdlog_cursor *cursor);
cmdlog_position follower__position(const struct cmdlog_cursor *cursor);
/*
 * Reads a key's last put before a revision. Returns: 0, with *ret_kv pointing into `reply`;
 * CMDLOG_UNREACHABLE; CMDLOG_TRIMMED; TL_ERR_CORRUPT.
 */
int follower__put_before(struct cmdlog_etcd *log, struct slice key, uint64_t revision, uint64_t until,
                         struct buf *reply, struct etcd_kv *ret_kv) TL_MUST_USE;

/* metadata.c: genesis, checkpoints, trimming */
int metadata__read_head(struct cmdlog *log, uint64_t until, cmdlog_position *ret_position);
int metadata__read_genesis(struct cmdlog *log, uint64_t until, struct buf *bytes, cmdlog_position *ret_position);
int metadata__create_genesis(struct cmdlog *log, struct slice bytes, uint64_t until);
int metadata__list_checkpoints(struct cmdlog *log, uint64_t until, struct cmdlog_known_hosts **ret_hosts);
int metadata__forget_host(struct cmdlog *log, struct slice name, uint64_t until);
int metadata__put_checkpoint(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint);
int metadata__get_checkpoint(struct cmdlog *log, unsigned back, char *buffer, struct cmdlog_checkpoint *ret_checkpoint);
int metadata__trim(struct cmdlog *log, cmdlog_position before);

/* --- skips.c ------------------------------------------------------------------------------------------------------ */

int skips__halt(struct cmdlog *log, cmdlog_position position, uint64_t until);
int skips__skip(struct cmdlog *log, cmdlog_position position, uint64_t until, struct cmdlog_skip_refusal *ret_refusal);
int skips__list(struct cmdlog *log, uint64_t until, struct cmdlog_skips **ret_skips);

/* Appends the key PREFIX/kind/name. */
void cmdlog_etcd__key(struct buf *buf, const struct cmdlog_etcd *log, const char *kind, struct slice name);
/* Raises the newest known position to `position`. Requires: the lock. */
void cmdlog_etcd__observe(struct cmdlog_etcd *log, cmdlog_position position);

#endif
