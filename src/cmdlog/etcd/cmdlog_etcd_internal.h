/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of etcd's log share; README.md. */
#ifndef TL_CMDLOG_ETCD_CMDLOG_ETCD_INTERNAL_H
#define TL_CMDLOG_ETCD_CMDLOG_ETCD_INTERNAL_H

#include <pthread.h>

#include "base/list.h"
#include "cmdlog/etcd/client.h"
#include "cmdlog/etcd/envelope.h"
#include "cmdlog/etcd/messages.h"
#include "cmdlog/cmdlog_etcd.h"

enum {
    ANSWERS_KEPT = 64,    /* of entries whose outcome is known */
    CONTROL_US = 1000000, /* patience with a question of the thread's own */
};

/* An entry that was submitted: puts, one after the other. */
struct entry {
    struct list link;     /* cmdlog_etcd.entries, oldest first */
    uint64_t first, last; /* numbers of its puts */
    unsigned waiters;     /* while there are any it is kept */
    bool done;
    int result; /* as cmdlog_outcome() */
    cmdlog_position position;
};

/* A put that is not in the log yet, as far as we know. */
struct put {
    struct list link; /* cmdlog_etcd.puts, by number */
    struct cmdlog_etcd *log;
    struct entry *entry;
    uint64_t life;
    uint64_t number;
    struct buf request;
    struct call call;
    struct buf answer;
    bool answered;
    cmdlog_position position; /* 0: not yet known to be in */
    bool disordered;       /* refused since the one before it was not in: waits for that one */
    bool lost;             /* an attempt had no answer: it may be in, or come in yet */
    unsigned attempts;
    uint64_t retry; /* not before */
};

struct cmdlog_etcd {
    struct cmdlog log;
    struct client *client;
    struct list actors;
    pthread_mutex_t lock;   /* of all below but for what is the thread's */
    pthread_cond_t changed; /* an entry is done, there is room, hosts changed */
    bool closing;

    char *url, *name_text;
    struct slice prefix, name;
    struct buf keys; /* the bytes of those below */
    struct slice key_genesis, key_host, key_log, key_checkpoint;
    struct slice hosts, hosts_end, logs, logs_end, checkpoints, checkpoints_end;

    /* The life. */
    uint64_t ttl_us;   /* of leases that are asked for */
    uint64_t lease_id; /* 0: none */
    uint64_t life;     /* 0: none, or over */
    uint64_t lease_until;
    uint64_t lease_asked;

    /* Appending. */
    struct list entries, puts;
    unsigned under_way; /* entries that are not done */
    uint64_t next_number;
    cmdlog_position own_newest; /* of the newest put that is known to be in, with all before it */
    bool no_room; /* etcd said so of the first of the puts: no other is begun until all that are under way are known */
    bool room_asked; /* and what is in all the same has been asked since */
    struct call room_call;
    struct buf room_request;
    uint64_t room_retry;
    uint64_t smoothed_us; /* how long an answer takes */
    struct cmdlog_etcd_counts counts;
    struct client_actor appender;

    /* Keeping the life alive; the thread's. */
    struct client_actor keeper;
    struct call keep_call;
    struct buf keep_request;
    uint64_t keep_next, keep_asked, keep_lease;
    int64_t keep_ttl_s;
    bool keep_answered;

    /* Who is in. */
    struct cmdlog_hosts *known; /* NULL: not yet known */
    struct call list_call, bell_call;
    struct buf list_request, bell_request, list_answer;
    uint64_t list_next, bell_next;
    bool list_answered;

    /* Room. */
    struct cmdlog_space space;
    bool alarmed; /* a member says that it has no space left */
    uint64_t quota, catch_up;
    struct call status_call, alarm_call;
    struct buf status_request, alarm_request;
    uint64_t status_next;

    /* What is known of the log without asking. */
    cmdlog_position newest, oldest;

    /* Followers. */
    struct client_actor follower;
    struct list cursors;
};

static inline struct cmdlog_etcd *cmdlog_etcd_of(struct cmdlog *log)
{
    return container_of(log, struct cmdlog_etcd, log);
}

/* membership.c */
void lives__init(struct cmdlog_etcd *log);
void lives__deinit(struct cmdlog_etcd *log);
int lives__join(struct cmdlog *log, struct slice about, uint64_t until, uint64_t *ret_life);
int lives__leave(struct cmdlog *log, uint64_t until);
int lives__expel(struct cmdlog *log, struct slice name, uint64_t life, uint64_t until);
void lives__lease(struct cmdlog *log, struct cmdlog_lease *ret_lease);
int lives__list_hosts(struct cmdlog *log, uint64_t version, uint64_t until, struct cmdlog_hosts **ret_hosts);
/* The life is over, for sure. Under the lock. */
void lives__over(struct cmdlog_etcd *log);

/* appender.c */
void appender__init(struct cmdlog_etcd *log);
void appender__deinit(struct cmdlog_etcd *log);
int appender__submit(struct cmdlog *log, const struct slice *parts, size_t count, uint64_t until, uint64_t *ret_number);
int appender__answer(struct cmdlog *log, uint64_t number, uint64_t until, cmdlog_position *ret_position);
int appender__append(struct cmdlog *log, const struct slice *parts, size_t count, cmdlog_position *ret_position);
/*
 * No put of the life before can come in any more: those up to `version` are in, others are not. Under the lock.
 */
void appender__settle(struct cmdlog_etcd *log, uint64_t version, cmdlog_position position);

/* follower.c */
void follower__init(struct cmdlog_etcd *log);
int follower__follow(struct cmdlog *log, cmdlog_position from, struct cmdlog_cursor **ret_cursor);
int follower__next(struct cmdlog_cursor *cursor, struct cmdlog_entry *ret_entry);
void follower__unfollow(struct cmdlog_cursor *cursor);
int follower__await(struct cmdlog_cursor *cursor, uint64_t until);
void follower__interrupt(struct cmdlog_cursor *cursor);
cmdlog_position follower__passed(const struct cmdlog_cursor *cursor);
/* The put of a key before a revision, which lies in `reply`. Returns: 0; CMDLOG_UNREACHABLE; CMDLOG_TRIMMED; TL_ERR_CORRUPT. */
int follower__put_before(struct cmdlog_etcd *log, struct slice key, uint64_t revision, uint64_t until, struct buf *reply,
                         struct etcd_kv *ret_kv) TL_MUST_USE;

/* metadata.c: genesis, checkpoints, trimming */
int keep__ask_head(struct cmdlog *log, uint64_t until, cmdlog_position *ret_position);
int keep__read_genesis(struct cmdlog *log, uint64_t until, struct buf *bytes, cmdlog_position *ret_position);
int keep__create_genesis(struct cmdlog *log, struct slice bytes, uint64_t until);
int keep__list_checkpoints(struct cmdlog *log, uint64_t until, struct cmdlog_known_hosts **ret_hosts);
int keep__forget_host(struct cmdlog *log, struct slice name, uint64_t until);
int keep__put_checkpoint(struct cmdlog *log, const struct cmdlog_checkpoint *checkpoint);
int keep__get_checkpoint(struct cmdlog *log, unsigned back, char *buffer, struct cmdlog_checkpoint *ret_checkpoint);
int keep__trim(struct cmdlog *log, cmdlog_position before);

/* Builds a key of pieces in log->keys; used while that is made, and by who needs another host's. */
void cmdlog_etcd__key(struct buf *buf, const struct cmdlog_etcd *log, const char *kind, struct slice name);
/* A position was seen. Under the lock. */
void cmdlog_etcd__observe(struct cmdlog_etcd *log, cmdlog_position position);

#endif
