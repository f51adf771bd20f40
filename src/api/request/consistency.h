/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a cluster: how far a write must have come before it is answered, and how new a read must be.
 *
 *   setting of the cluster, or parameter                of      values
 *   tidelock.distribute_timestamps                      writes  fast, strict (default), cluster
 *   tidelock.multi_version_concurrency_control          reads   nonblocking (default), contemporaneous
 *
 * docs/cluster.md, "Time and reading", has what they mean; distribution.h and head_waits.h have how.
 * A parameter precedes the setting. Without a cluster both are refused, since they would have no
 * effect.
 */
#ifndef TL_API_CONSISTENCY_H
#define TL_API_CONSISTENCY_H

#include "api/request/request.h"
#include "core/catalog/settings.h"

struct consistency;

/* Owns: the caller; consistency_close(). */
struct consistency *consistency_open(struct journal *journal);
/* NULL is allowed. */
void consistency_close(struct consistency *consistency);

/*
 * Reads the request's parameters of these names.
 * Assumes: its transaction is known.
 * Returns: 0; REQUEST_REFUSED: unknown value, or without effect.
 */
int consistency_read(struct request *request) TL_MUST_USE;

/* Checks settings to be stored. Returns: 0; REQUEST_REFUSED: without a cluster they would have no effect. */
int consistency_check_settings(struct request *request, const struct settings *settings) TL_MUST_USE;

/* Returns: the hosts that must have applied the request's write before it is answered. */
enum journal_reach consistency_reach(struct request *request);
/* Returns: whether the request must read everything that any host has acknowledged before it. */
bool consistency_is_contemporaneous(struct request *request);
/* Returns: whether writes are, unless they say otherwise, answered before other hosts have them. */
bool consistency_is_fast(struct api *api);

#endif
