/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named queries (`_name`): each hit lists in matched_queries those it matches, each evaluated by
 * itself. For src/query only.
 *
 * If two queries have one name, the last one bound counts, which is the outer one if they are
 * nested. Names are listed in the iteration order of a java.util.HashMap, as Elasticsearch lists
 * them.
 */
#ifndef TL_QUERY_NAMED_H
#define TL_QUERY_NAMED_H

#include "query/bound_query.h"

struct named_query;

struct named_list {
    struct named_query *items; /* in the order of output */
    size_t count, capacity;
};

/*
 * Adds a query, or replaces the one with this name. Assumes: `name` and `matcher` live in `arena`,
 * as the list does.
 */
void named_put(struct named_list *list, struct arena *arena, struct slice name, const struct bound_query *matcher);
/*
 * Appends ,"matched_queries":[…] if the document matches any. A script failure is in
 * match_doc->problem.
 */
void named_write(const struct named_list *list, struct match_doc *match_doc, struct buf *buf);

#endif
