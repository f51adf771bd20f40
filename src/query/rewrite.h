/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether Elasticsearch makes another query of one before a shard runs it. It does of fields that are not mapped, of empty lists, and of ranges of
 * dates that all documents, or none, lie in. Hits are the same; but aggregations over such a query are made anew, and show "meta": {}.
 */
#ifndef TL_QUERY_REWRITE_H
#define TL_QUERY_REWRITE_H

#include "query/bound_query.h"

/* Returns: whether a query, or one in it, is rewritten for the binder's index. */
bool query_is_rewritten(struct binder *binder, const struct query *query);

#endif
