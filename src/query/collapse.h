/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collapsing: of all hits with the same value of a field only the best one is returned. Hits
 * without a value form one group. For src/query only.
 *
 * Memory is bounded by the page, whatever the number of groups: the hit queue keeps the best hits
 * of the best groups (hit_queue.c). That is exact: the worst hit in a full queue only improves, so
 * an evicted group can return only with a better hit than the one that was evicted.
 */
#ifndef TL_QUERY_COLLAPSE_H
#define TL_QUERY_COLLAPSE_H

#include "query/bound_query.h"

/* Parses {"field": …} into request->collapse. Returns: 0; QUERY_REFUSED with parser->problem. */
int collapse_parse(struct query_parser *parser, yyjson_val *value, struct search_request *request) TL_MUST_USE;

/*
 * Finds the field in an index. Returns: 0, *ret_field NULL without collapse; QUERY_REFUSED with
 * binder->problem.
 */
int collapse_bind(struct binder *binder, const struct search_request *request,
                  const struct mapping_field **ret_field) TL_MUST_USE;

/*
 * Reads the group of a document: bytes that are equal exactly for equal values, and empty without a
 * value. `ordinal`: the number of the document, for the message.
 * Returns: 0; QUERY_REFUSED with match_doc->problem if it has more than one value. Owns: *ret_group
 * lives until match_doc_set().
 */
int collapse_read(struct match_doc *match_doc, const struct mapping_field *field, uint64_t ordinal,
                  struct slice *ret_group) TL_MUST_USE;

#endif
