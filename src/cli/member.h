/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data directory of a host of a cluster (journal/README.md, "In a cluster"). The file
 * DATA/cluster identifies the cluster and the directory:
 *
 *     tidelock-cluster 1
 *     cluster ID                    of the cluster, equal to the one in the genesis of the log
 *     directory ID                  of this directory, unique
 *     state creating|founding|copying|member
 *
 * The first host on an empty prefix of etcd creates the cluster from its directory. It applies
 * its own log and makes a checkpoint, sets the state `founding`, appends the genesis to the
 * cluster's log, makes a checkpoint whose position is that of the genesis, and sets the state
 * `member`. If the directory is empty it sets `creating` before all that, in place of `founding`:
 * where the log has the genesis of another host by then, since both were started at the same
 * time, it continues as `copying`. A host with an empty directory sets `copying`, copies a
 * checkpoint of a live host, and sets `member`. A member whose log was trimmed beyond its
 * checkpoint (--catch-up) sets `copying` and continues as a new host. It loses nothing: all state
 * comes from the log, except the directory's ID and its script files. A member whose checkpoint is
 * after the end of the log is refused, since etcd has lost entries that the directory includes: the
 * others may append different ones. A crash at any point leaves a state from which the next start
 * continues.
 *
 * The genesis has the cluster's ID and a random secret. A host proves with the secret that it may
 * copy a checkpoint: clients without access to etcd do not have it.
 */
#ifndef TL_CLI_MEMBER_H
#define TL_CLI_MEMBER_H

#include <stdatomic.h>

#include "cli/durable.h"
#include "journal/journal.h"
#include "cmdlog/cmdlog_etcd.h"

struct member_options {
    const char *data;
    struct cmdlog_etcd_options log;
    bool tls;                    /* this host speaks https */
    struct slice name, group, address, build; /* this host's, published to the others */
    const atomic_bool *stopping;              /* a start that waits gives up when it is set; NULL: never */
    const struct core_limits *limits;
    const struct store_options *store;
    const struct journal_options *journal; /* for the first host, before it creates the cluster */
    struct poison_choice poison;           /* the operator's choice for an entry that ends the process */
};

struct cluster_member {
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
 * Opens the directory as a host's. Waits without limit for the log, and for a live host to copy
 * from.
 * Returns: 0; TL_ERR_STOPPED: `stopping` was set; a fatal code, with *ret_reason (mem_free) for an
 * operator.
 * Owns: the caller owns *ret in both cases, until member_close().
 */
int member_open(const struct member_options *options, struct cluster_member *ret, char **ret_reason) TL_MUST_USE;
/* Closes the log, the core and the store. Assumes: the journal that used them is closed. */
void member_close(struct cluster_member *member);

/*
 * Opens the log of the cluster to which a directory belongs, for reading: writes nothing, neither to
 * the log nor to the directory, and gives up if the log does not answer.
 * Returns: 0, with the position of the genesis; a fatal code, with *ret_reason (mem_free).
 * Owns: the caller; cmdlog_close().
 */
int member_open_log(const char *data, const struct cmdlog_etcd_options *options, struct cmdlog **ret_log,
                    cmdlog_position *ret_genesis, char **ret_reason) TL_MUST_USE;

/*
 * Returns: whether a directory belongs to a host of a cluster; it must not be opened without the
 * cluster then.
 */
bool member_is(const char *data);

#endif
