/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wraps the refusal of an index as Elasticsearch does: a search_phase_execution_exception. For
 * src/query only.
 */
#ifndef TL_QUERY_FAILURE_H
#define TL_QUERY_FAILURE_H

#include "query/search.h"

/*
 * Wraps the problem of one index. `partial`: the reason is "Partial shards failure", otherwise "all
 * shards failed".
 * Ensures: caused_by of *ret_problem is the problem of the shard, which replies show as root cause
 * and in `failed_shards`.
 * Owns: *ret_problem lives in context->arena.
 */
void failure_wrap(const struct search_context *context, const struct search_index *index, bool partial,
                  const struct problem *shard_problem, struct problem *ret_problem);

#endif
