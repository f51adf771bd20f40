/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that new hosts of a cluster copy (hosts.c). */
#ifndef TL_API_HOSTS_H
#define TL_API_HOSTS_H

#include "base/slice.h"

/* The request header by which a host proves that it is of the cluster: api_options.cluster_secret. */
#define API_CLUSTER_SECRET_HEADER "Tidelock-Cluster-Secret"

/* Removes what a life before has left of them in a data directory. */
void hosts_clear_checkpoints(struct slice data);
/* Removes those whose host has gone without deleting them. Called regularly, by one thread. */
void hosts_drop_unused_checkpoints(struct slice data);

#endif
