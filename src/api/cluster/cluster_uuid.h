/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster's uuid: made up at the very first start, kept in the catalog from then on.
 */
#ifndef TL_API_CLUSTER_UUID_H
#define TL_API_CLUSTER_UUID_H

#include "api/request/id.h"

struct journal;

/*
 * Fetches the cluster's uuid, giving it one when it has none; waits until that is durable. Returns:
 * 0; TL_ERR_NO_SPACE or TL_ERR_STOPPED if it has none and none can be written. The log has the reason.
 */
int cluster_uuid_fetch(struct journal *journal, struct id_source *ids, char ret_uuid[static ID_BYTES + 1]);

#endif
