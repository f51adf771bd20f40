/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of etcd's API, with the fields in use (etcd's rpc.proto and kv.proto; all exist
 * since 3.4).
 *
 * Requests are appended to a buffer. Replies are read in place: slices point into the message.
 * Reading is safe for any bytes; unknown fields are skipped.
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

struct etcd_range {
    struct slice key;
    struct slice end;  /* exclusive; empty: `key` alone */
    uint64_t revision; /* to read at; 0: the current one */
    uint64_t limit;    /* on the number of keys; 0: none */
    bool newest_first; /* sorted by descending mod revision */
    bool serializable; /* read locally by the member, not linearizable */
    bool keys_only;
    bool count_only;
};

/* Appends the exclusive end of the range of keys that begin with `prefix`. */
void etcd_prefix_end(struct slice prefix, struct buf *buf);
/* Appends the exclusive end of a range whose last key is `key`. */
void etcd_key_end(struct slice key, struct buf *buf);

void etcd_put_range(struct buf *buf, const struct etcd_range *range);
void etcd_put_put(struct buf *buf, struct slice key, struct slice value, uint64_t lease);
void etcd_put_compact(struct buf *buf, uint64_t revision);
void etcd_put_watch(struct buf *buf, struct slice key, struct slice end, uint64_t from);
void etcd_put_lease(struct buf *buf, uint64_t lease);
void etcd_put_lease_grant(struct buf *buf, uint64_t lease, uint64_t ttl_s);

/*
 * A transaction: comparisons; operations if all hold; operations otherwise. Each call appends one.
 */
void etcd_compare_version(struct buf *buf, struct slice key, uint64_t version);
void etcd_compare_created(struct buf *buf, struct slice key, uint64_t revision);
void etcd_compare_value(struct buf *buf, struct slice key, struct slice value);
/* Compares that no key from `key` to `end`, exclusive, was put after `revision`. */
void etcd_compare_unmodified(struct buf *buf, struct slice key, struct slice end, uint64_t revision);
enum etcd_branch { ETCD_THEN = 2, ETCD_ELSE = 3 };
void etcd_branch_range(struct buf *buf, enum etcd_branch branch, const struct etcd_range *range);
void etcd_branch_put(struct buf *buf, enum etcd_branch branch, struct slice key, struct slice value, uint64_t lease);
void etcd_branch_delete(struct buf *buf, enum etcd_branch branch, struct slice key);
/*
 * As etcd_branch_put(), for a value of `len` bytes that the caller appends before
 * etcd_branch_put_end().
 */
size_t etcd_branch_put_begin(struct buf *buf, enum etcd_branch branch, struct slice key, size_t len);
void etcd_branch_put_end(struct buf *buf, size_t begun);

struct etcd_kv {
    struct slice key;
    struct slice value;
    uint64_t created;  /* create revision */
    uint64_t modified; /* mod revision */
    uint64_t version;  /* number of puts since its creation */
    uint64_t lease;
    bool deleted; /* only of a watch event */
};

struct etcd_header {
    uint64_t cluster;
    uint64_t member;
    uint64_t revision;
};

/* Reads the header of a reply. Returns: 0; TL_ERR_CORRUPT. */
int etcd_read_header(struct slice reply, struct etcd_header *ret_header) TL_MUST_USE;

/* Removes the next key from a reply to Range. Returns: 1; 0: no more keys; TL_ERR_CORRUPT. */
int etcd_take_kv(struct slice *reply, struct etcd_kv *ret_kv) TL_MUST_USE;

struct etcd_txn_reply {
    bool succeeded;
    struct slice responses; /* for etcd_take_response() */
};
int etcd_read_txn(struct slice reply, struct etcd_txn_reply *ret_txn) TL_MUST_USE;

/*
 * Removes the response to the next operation of a transaction; etcd_take_kv() reads that to a
 * Range. Returns: 1; 0: no more; TL_ERR_CORRUPT.
 */
int etcd_take_response(struct slice *responses, struct slice *ret_response) TL_MUST_USE;

struct etcd_watch_reply {
    bool created;
    bool canceled;
    uint64_t compacted; /* not 0: canceled because revisions before this one are gone */
    struct slice reason;
    struct slice events; /* for etcd_take_event() */
};
int etcd_read_watch(struct slice reply, struct etcd_watch_reply *ret_watch) TL_MUST_USE;
int etcd_take_event(struct slice *events, struct etcd_kv *ret_kv) TL_MUST_USE;

struct etcd_lease_reply {
    uint64_t lease;
    int64_t ttl_s; /* 0 or less: the lease has expired */
};
/* Reads a reply to LeaseGrant or LeaseKeepAlive. Returns: 0; TL_ERR_CORRUPT. */
int etcd_read_lease(struct slice reply, struct etcd_lease_reply *ret_lease) TL_MUST_USE;

struct etcd_status {
    uint64_t size;
    uint64_t used;
    uint64_t quota;      /* 0: not reported (before 3.6) */
    bool alarm_no_space; /* a member has raised the NOSPACE alarm */
};
/*
 * Reads a reply to Status, which a member answers by itself: unlike a request for the alarms, it is no
 * entry of the log of etcd's own members. Returns: 0; TL_ERR_CORRUPT.
 */
int etcd_read_status(struct slice reply, struct etcd_status *ret_status) TL_MUST_USE;

#endif
