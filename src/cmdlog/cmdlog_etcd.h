/* SPDX-License-Identifier: Apache-2.0 */
/* The command log in etcd, shared by a cluster's hosts; etcd/README.md. Calls: cmdlog_shared.h. */
#ifndef TL_CMDLOG_CMDLOG_ETCD_H
#define TL_CMDLOG_CMDLOG_ETCD_H

#include "cmdlog/cmdlog_shared.h"

struct cmdlog_etcd_options {
    struct slice url;  /* http://HOST:PORT,http://HOST:PORT/PREFIX; or https:// in each */
    struct slice name; /* of this host; as cmdlog_is_host_name() requires */
    const char *ca;    /* with https: PEM file with the CAs of etcd's certificates; NULL: the system's */
    const char *cert;  /* with https: PEM file with the certificate shown to etcd; NULL: none */
    const char *key;   /* its private key */
    uint64_t lease_us; /* a host's lease; 0: 3 s. Rounded up to whole seconds, at least 2 s */
    uint64_t catch_up; /* bytes of log to retain for a host that lags; 0: 2 GiB */
    /*
     * etcd's --quota-backend-bytes; 0: what etcd reports (from 3.6 on), else 2 GiB, its default. If
     * etcd reports less, that counts.
     */
    uint64_t quota;
};

/*
 * Opens the log and starts the thread that talks to etcd. Does not wait for etcd: if it cannot be
 * reached, later calls return CMDLOG_UNREACHABLE. All bytes of the options are copied.
 * Returns: 0; TL_ERR_IO: an option is invalid, *ret_reason says which (mem_free).
 * Owns: the caller, by cmdlog_close(), once no other thread is in a call on the log.
 */
int cmdlog_etcd_open(const struct cmdlog_etcd_options *options, struct cmdlog **ret_log, char **ret_reason) TL_MUST_USE;

/*
 * Checks the form of a cluster's URL, without a look-up of the names in it.
 * Returns: 0; TL_ERR_IO: it is invalid, *ret_reason says why (mem_free).
 */
int cmdlog_etcd_check_url(struct slice url, char **ret_reason) TL_MUST_USE;

/*
 * Returns: the first part of the prefix of `url`, from its second on, that is a kind of the keys of a cluster; empty:
 * none. A cluster at [x/log] would put its keys among the entries of one at [x], which would take them for damage.
 */
struct slice cmdlog_etcd_reserved_part(struct slice url);

/*
 * Finds a key in etcd that does not begin with this cluster's prefix, and appends it to `key`.
 * Returns: 0; CMDLOG_NOT_FOUND: all do; CMDLOG_UNREACHABLE; TL_ERR_IO: etcd refuses it, as to a user
 *   whose role has this cluster's keys only; TL_ERR_CORRUPT.
 */
int cmdlog_etcd_find_foreign_key(struct cmdlog *log, uint64_t until, struct buf *key) TL_MUST_USE;

/* Statistics since the opening. */
struct cmdlog_etcd_counts {
    uint64_t appends;     /* puts that are in the log */
    uint64_t attempts;    /* transactions sent for them */
    uint64_t disordered;  /* attempts refused because the put before was not in the log yet */
    uint64_t lost;        /* attempts without an answer */
    uint64_t connections; /* opened */
};
void cmdlog_etcd_counts(struct cmdlog *log, struct cmdlog_etcd_counts *ret_counts);

/* Returns: the last problem with etcd, a text for operators, or "". Owns: the caller; mem_free. */
char *cmdlog_etcd_last_error(struct cmdlog *log);

#endif
