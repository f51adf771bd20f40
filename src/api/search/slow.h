/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow log of searches: index.search.slowlog.* of the searched indices, as Elasticsearch has
 * them. The time is that of the whole search, in all its indices: phases are not distinguished, so
 * a threshold for [fetch] is compared with the same time, if anything was fetched.
 */
#ifndef TL_API_SLOW_H
#define TL_API_SLOW_H

#include "api/search/search_call.h"

/*
 * Logs a search, or a page of one, that has been answered: a line, or two, for each index whose
 * threshold was reached. `source` is the body, data NULL where there was none; of a long one the
 * beginning is logged. Called before search_call_note().
 */
void slow_search(struct request *request, const struct search_call *call, struct slice source, uint64_t total,
                 int64_t begun_us);

#endif
