/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a bound query in Lucene's notation, for `_validate/query?explain`. It shows the result of
 * binding: the tokens of a text, the bounds of a date.
 *
 *     +t:quick -s:b #n:[1 TO 9223372036854775807]
 *
 * Clauses of a bool have a prefix: + must, # filter, - must_not; should has none. Functions,
 * scripts and ids, which Lucene prints as Java classes or encoded bytes, have a simpler form.
 */
#ifndef TL_QUERY_DESCRIBE_H
#define TL_QUERY_DESCRIBE_H

#include "query/bound_query.h"

#define DESCRIBED_BYTES_MAX 16384

/* Returns: the text, in `arena`; truncated at DESCRIBED_BYTES_MAX, with an ellipsis. */
struct slice bound_query_describe(struct arena *arena, const struct bound_query *matcher);

#endif
