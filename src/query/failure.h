/* SPDX-License-Identifier: Apache-2.0 */
/* What an index refuses, as Elasticsearch tells it: a search_phase_execution_exception. For src/query only.
 */
#ifndef TL_QUERY_FAILURE_H
#define TL_QUERY_FAILURE_H

#include "query/search.h"

/*
 * Wraps the problem of one index. `total` is the number of indices searched: with more than one, some of them
 * may be fine. Ensures: *ret_problem's caused_by is the shard's problem, which replies show as the root cause
 * and in `failed_shards`.
 */
void failure_wrap(const struct search_context *context, const struct search_index *index, bool partial,
                  const struct problem *shard_problem, struct problem *ret_problem);

#endif
