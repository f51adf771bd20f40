/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data directory of a host of a cluster (journal/README.md, "In a cluster"). DATA/cluster identifies the cluster:
 *
 *     tidelock-cluster 1
 *     cluster ID                    the cluster's, equal to that of the genesis in the log
 *     directory ID                  unique to this directory
 *     state founding|copying|member
 *
 * The first host on an empty prefix creates the cluster from its directory: it opens and closes it as a single server, writes state `founding`, appends the
 * genesis to the log, makes a checkpoint at the genesis, and writes `member`. A host with an empty directory writes `copying`, copies a checkpoint of a live
 * host, and writes `member`. A member whose next entries were trimmed from the log (--catch-up) writes `copying`, and starts as a new host: all state is in
 * the log, except for the directory's ID and its scripts. After a crash at any point the next start continues from the state in this file.
 *
 * The genesis in the log has the cluster's ID and a random secret, which a host sends to another one when it copies a checkpoint: a client that
 * cannot read etcd does not have it.
 */
#ifndef TL_CLI_MEMBER_H
#define TL_CLI_MEMBER_H

#include "cli/durable.h"
#include "journal/journal.h"
#include "cmdlog/cmdlog_etcd.h"

struct member_options {
    const char *data;
    struct cmdlog_etcd_options log;
    bool tls;                    /* this host speaks https */
    struct slice name, group, address, build;
    const struct core_limits *limits;
    const struct store_options *store;
    const struct journal_options *journal; /* that the founder starts with, alone */
    struct poison_choice poison;           /* the operator's, about an entry that ends the process */
};

struct member {
    struct cmdlog *log;
    struct store *store;
    struct core *core;
    cmdlog_position position; /* of the core, in the log */
    uint64_t log_bytes;       /* for journal_options.log_bytes */
    struct at_work *at_work;  /* for journal_options.at_work */
    struct cmdlog_skips *skips; /* for journal_options.skips */
    char *about;           /* for journal_cluster.about */
    char *secret;          /* of the cluster's hosts, for api_options.cluster_secret */
};

/*
 * Waits for the log, and for a live host to copy from, as long as it takes.
 * Returns: 0; a fatal code, with *ret_reason (mem_free) for an operator. Owns: the caller, in both cases; member_close().
 */
int member_open(const struct member_options *options, struct member *ret, char **ret_reason) TL_MUST_USE;
/* Requires: the journal over it is closed. */
void member_close(struct member *member);

/* Returns: whether a directory is a host's of a cluster, so that it is not to be opened alone. */
bool member_is(const char *data);

#endif
