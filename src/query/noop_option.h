/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of queries that change nothing here: those that are harmless by nature (they speed Lucene up, bound what it expands, or
 * concern synonyms, which there are none of), and those that ask for what happens anyway. With any other value they are refused by
 * name, so that nobody believes that they had an effect. For src/query only.
 */
#ifndef TL_QUERY_NOOP_OPTION_H
#define TL_QUERY_NOOP_OPTION_H

#include "query/node.h"

enum { NOOP_OPTION_UNKNOWN = 2 }; /* not an option of this kind */

/* `query` is its name in a body. Returns: 0; QUERY_REFUSED; NOOP_OPTION_UNKNOWN where the query has no such option. */
int query__noop_option(struct query_parser *parser, struct slice query, struct slice option,
                       yyjson_val *value) TL_MUST_USE;

#endif
