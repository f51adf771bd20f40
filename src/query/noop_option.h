/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query options that have no effect here. Some are tuning: they speed Lucene up, limit its term
 * expansion, or concern synonyms, which Tidelock lacks. The others are accepted with the values
 * that describe what happens anyway; any other value is refused by name rather than silently
 * ignored. For src/query only.
 */
#ifndef TL_QUERY_NOOP_OPTION_H
#define TL_QUERY_NOOP_OPTION_H

#include "query/node.h"

enum { NOOP_OPTION_UNKNOWN = 2 };

/*
 * Checks an option of the query with this name ("match").
 * Returns: 0: accepted, to be ignored; QUERY_REFUSED; NOOP_OPTION_UNKNOWN if the query has no such
 * option.
 */
int query__noop_option(struct query_parser *parser, struct slice query, struct slice option,
                       yyjson_val *value) TL_MUST_USE;

#endif
