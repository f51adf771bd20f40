/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ?preference=: which copies of a shard a read would like. There is one copy of everything, a
 * primary, on this node; what asks for that or leaves a choice is fine.
 */
#ifndef TL_API_PREFERENCE_H
#define TL_API_PREFERENCE_H

#include "api/request/request.h"

struct catalog_index;

/* The shard of a search, which goes to all; `index` is NULL then, and `id` empty. */
#define PREFERENCE_ANY_SHARD UINT32_MAX

/*
 * Refuses an unknown preference, and one that leaves no copy of this shard. `dialect` is that of
 * the reply, which in _mget an item has of its own; `type`, `id`, `routing`: of the document, for
 * the text of the error.
 * Returns: 0, REQUEST_REFUSED with *ret_problem.
 */
int preference_check(struct request *request, enum dialect dialect, const struct catalog_index *index, uint32_t shard,
                     struct slice type, struct slice id, struct slice routing, struct problem *ret_problem) TL_MUST_USE;

#endif
