/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries with a `_name`: each hit tells which of them it matches, each taken by itself. For src/query only.
 *
 * A name stands for one query: the last that was bound, and so the outer one of two. They are told in the order in which a
 * java.util.HashMap would be walked, as Elasticsearch does.
 */
#ifndef TL_QUERY_NAMED_H
#define TL_QUERY_NAMED_H

#include "query/bound_query.h"

struct named_query;

struct named_list {
    struct named_query *items; /* in the order in which they are told */
    size_t count, capacity;
};

/* Lives: in the arena, as the name does. */
void named_put(struct named_list *list, struct arena *arena, struct slice name, const struct bound_query *matcher);
/* Appends ,"matched_queries":[…] where the document matches any. What a script did wrong is the subject's. */
void named_write(const struct named_list *list, struct match_doc *match_doc, struct buf *buf);

#endif
