/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether Elasticsearch 7.10 rewrites a query before a shard runs it: queries on unmapped
 * fields, empty lists, and date ranges that include all documents or none. Hits are the same. But a
 * filter aggregation with such a query is rebuilt, and then shows "meta": {}.
 */
#ifndef TL_QUERY_REWRITE_H
#define TL_QUERY_REWRITE_H

#include "query/bound_query.h"

/* Returns: whether a query, or one nested in it, is rewritten for the binder's index. */
bool query_is_rewritten(struct binder *binder, const struct query *query);

#endif
