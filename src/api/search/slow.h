/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches that took long, for the log: index.search.slowlog.* of the indices that were searched, as Elasticsearch has them. Time is that of the whole
 * search, in all its indices: phases are not told apart, so a threshold for [fetch] looks at the same time, where anything was fetched.
 */
#ifndef TL_API_SLOW_H
#define TL_API_SLOW_H

#include "api/search/search_call.h"

/*
 * Tells of a search, or a page of one, that has been answered: for each index a line, or two, where a threshold was reached. `source` is the body, data NULL where
 * there was none; of a long one the beginning is told. Before search_call_note().
 */
void slow_search(struct request *request, const struct search_call *call, struct slice source, uint64_t total,
                 int64_t begun_us);

#endif
