/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bound query in Lucene's notation, as `_validate/query?explain` shows what became of a query: which tokens a text has, which
 * bounds a date means.
 *
 *     +t:quick -s:b #n:[1 TO 9223372036854775807]
 *
 * Clauses of a bool are marked: + must, # filter, - must_not, none should. What Lucene names by Java's classes (functions, scripts,
 * ids by their bytes) is told in words of its kind.
 */
#ifndef TL_QUERY_DESCRIBE_H
#define TL_QUERY_DESCRIBE_H

#include "query/bound_query.h"

#define DESCRIBED_BYTES_MAX 16384

/* Returns: the text, in `arena`; cut with an ellipsis where it is longer than people read. */
struct slice bound_query_describe(struct arena *arena, const struct bound_query *matcher);

#endif
