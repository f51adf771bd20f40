/* SPDX-License-Identifier: Apache-2.0 */
/* A log in etcd, which the hosts of a cluster share; README.md, "The log in etcd", cmdlog_shared.h for what it can do. */
#ifndef TL_CMDLOG_CMDLOG_ETCD_H
#define TL_CMDLOG_CMDLOG_ETCD_H

#include "cmdlog/cmdlog_shared.h"

struct cmdlog_etcd_options {
    struct slice url;  /* http://HOST:PORT,http://HOST:PORT/PREFIX */
    struct slice name; /* this host's; cmdlog_shared.h says of what bytes */
    const char *ca;    /* for https, which is not there yet: with any of these three the opening is refused */
    const char *cert;
    const char *key;
    uint64_t lease_us; /* a host's; 0: 3 s. etcd counts in whole seconds, 2 at least: it is rounded up */
    uint64_t catch_up; /* bytes of log that are kept for hosts that are away; 0: 2 GiB */
    uint64_t quota;    /* etcd's own (--quota-backend-bytes); 0: 2 GiB, its default. From 3.6 on etcd says it itself */
};

/*
 * Begins to speak to etcd, on a thread of its own. That etcd cannot be reached is no error here, but CMDLOG_UNREACHABLE of who then asks for something.
 * Returns: 0; TL_ERR_IO when the options are not what they should be, *ret_reason says why (mem_free). Owns: the caller, by
 * cmdlog_close(), once no other thread is in a call on it. All bytes of the options are copied.
 */
int cmdlog_etcd_open(const struct cmdlog_etcd_options *options, struct cmdlog **ret_log, char **ret_reason) TL_MUST_USE;

/* What stands between it and etcd, for who looks: counted since the opening. */
struct cmdlog_etcd_counts {
    uint64_t appends;     /* puts that are in the log */
    uint64_t attempts;    /* transactions sent for them */
    uint64_t disordered;  /* refused since the put before them was not in yet, and sent again */
    uint64_t lost;        /* attempts without an answer */
    uint64_t connections; /* that were made */
};
void cmdlog_etcd_counts(struct cmdlog *log, struct cmdlog_etcd_counts *ret_counts);

/* Returns: what went wrong with etcd last, for people, or "". Owns: the caller; mem_free. */
char *cmdlog_etcd_last_error(struct cmdlog *log);

#endif
