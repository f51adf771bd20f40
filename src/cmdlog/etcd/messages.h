/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of etcd's interface that we use, and of those the fields that we use (etcd's rpc.proto, kv.proto; all are in 3.4).
 *
 * Requests are appended to a buffer. Replies are read where they lie: slices point into the message. Whatever a message holds, reading it is
 * safe, and its unknown fields are passed over.
 */
#ifndef TL_CMDLOG_ETCD_MESSAGES_H
#define TL_CMDLOG_ETCD_MESSAGES_H

#include "base/buf.h"

#define ETCD_RANGE "/etcdserverpb.KV/Range"
#define ETCD_PUT "/etcdserverpb.KV/Put"
#define ETCD_TXN "/etcdserverpb.KV/Txn"
#define ETCD_COMPACT "/etcdserverpb.KV/Compact"
#define ETCD_WATCH "/etcdserverpb.Watch/Watch"
#define ETCD_LEASE_GRANT "/etcdserverpb.Lease/LeaseGrant"
#define ETCD_LEASE_REVOKE "/etcdserverpb.Lease/LeaseRevoke"
#define ETCD_LEASE_KEEP_ALIVE "/etcdserverpb.Lease/LeaseKeepAlive"
#define ETCD_STATUS "/etcdserverpb.Maintenance/Status"
#define ETCD_ALARM "/etcdserverpb.Maintenance/Alarm"

struct etcd_range {
    struct slice key;
    struct slice end;  /* exclusive; empty: the key alone */
    uint64_t revision; /* 0: now */
    uint64_t limit;    /* 0: none */
    bool newest_first; /* by the revision of their last change */
    bool serializable; /* as the member has it, without asking the others */
    bool keys_only;
    bool count_only;
};

/* What the other side of a prefix is: the first key behind all that begin with it. Appended to `buf`. */
void etcd_prefix_end(struct slice prefix, struct buf *buf);

void etcd_put_range(struct buf *buf, const struct etcd_range *range);
void etcd_put_put(struct buf *buf, struct slice key, struct slice value, uint64_t lease);
void etcd_put_compact(struct buf *buf, uint64_t revision);
void etcd_put_watch(struct buf *buf, struct slice key, struct slice end, uint64_t from);
void etcd_put_lease(struct buf *buf, uint64_t lease);
void etcd_put_lease_grant(struct buf *buf, uint64_t lease, uint64_t ttl_s);

/* A transaction: comparisons, then what is done if they hold, then what is done if not. */
void etcd_compare_version(struct buf *buf, struct slice key, uint64_t version);
void etcd_compare_created(struct buf *buf, struct slice key, uint64_t revision);
enum etcd_branch { ETCD_THEN = 2, ETCD_ELSE = 3 };
void etcd_branch_range(struct buf *buf, enum etcd_branch branch, const struct etcd_range *range);
void etcd_branch_put(struct buf *buf, enum etcd_branch branch, struct slice key, struct slice value, uint64_t lease);
void etcd_branch_delete(struct buf *buf, enum etcd_branch branch, struct slice key);
/* The same as etcd_branch_put(), but that the value is appended by the caller, `len` bytes, and then etcd_branch_put_end() called. */
size_t etcd_branch_put_begin(struct buf *buf, enum etcd_branch branch, struct slice key, size_t len);
void etcd_branch_put_end(struct buf *buf, size_t begun);

struct etcd_kv {
    struct slice key;
    struct slice value;
    uint64_t created;  /* revision */
    uint64_t modified; /* revision */
    uint64_t version;  /* how often it was put since it was created */
    uint64_t lease;
    bool deleted; /* of an event */
};

struct etcd_header {
    uint64_t cluster;
    uint64_t member;
    uint64_t revision;
};

/* Reads the header of any reply but one of Status' or so that has none. Returns: 0; TL_ERR_CORRUPT. */
int etcd_read_header(struct slice reply, struct etcd_header *ret_header) TL_MUST_USE;

/* Takes the next key of a reply to Range. Returns: 1; 0: that was all; TL_ERR_CORRUPT. */
int etcd_take_kv(struct slice *reply, struct etcd_kv *ret_kv) TL_MUST_USE;

struct etcd_txn_reply {
    bool succeeded;
    struct slice responses; /* for etcd_take_response() */
};
int etcd_read_txn(struct slice reply, struct etcd_txn_reply *ret_txn) TL_MUST_USE;

/* Takes what the next of a transaction's operations answered; for a Range, etcd_take_kv() reads it. Returns: 1; 0; TL_ERR_CORRUPT. */
int etcd_take_response(struct slice *responses, struct slice *ret_response) TL_MUST_USE;

struct etcd_watch_reply {
    bool created;
    bool canceled;
    uint64_t compacted; /* canceled since what was asked for is gone: up to here */
    struct slice reason;
    struct slice events; /* for etcd_take_event() */
};
int etcd_read_watch(struct slice reply, struct etcd_watch_reply *ret_watch) TL_MUST_USE;
int etcd_take_event(struct slice *events, struct etcd_kv *ret_kv) TL_MUST_USE;

struct etcd_lease_reply {
    uint64_t lease;
    int64_t ttl_s; /* 0 or less: there is no such lease any more */
};
/* Of LeaseGrant and of LeaseKeepAlive. */
int etcd_read_lease(struct slice reply, struct etcd_lease_reply *ret_lease) TL_MUST_USE;

struct etcd_status {
    uint64_t size;
    uint64_t used;
    uint64_t quota; /* 0: it does not say (before 3.6) */
};
int etcd_read_status(struct slice reply, struct etcd_status *ret_status) TL_MUST_USE;

/* Returns: 0 and whether a member says that it has no space left; TL_ERR_CORRUPT. */
int etcd_read_alarms(struct slice reply, bool *ret_no_space) TL_MUST_USE;

#endif
