/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collapsing: of all hits with one value of a field only the best is kept; those without a value are a group, too. For src/query
 * only.
 *
 * Memory is bounded by the page, whatever the number of groups: what is kept are the best hits of the best groups (hit_queue.c). A group that
 * was pushed out comes back by no hit that is worse than the one it had, and the worst that is kept only gets better.
 */
#ifndef TL_QUERY_COLLAPSE_H
#define TL_QUERY_COLLAPSE_H

#include "query/bound_query.h"

/* Reads {"field": …} of a request. Returns: 0; QUERY_REFUSED. */
int collapse_parse(struct query_parser *parser, yyjson_val *value, struct search_request *request) TL_MUST_USE;

/* Finds the field in an index. Returns: 0, *ret_field NULL where nothing is collapsed; QUERY_REFUSED with binder->problem. */
int collapse_bind(struct binder *binder, const struct search_request *request,
                  const struct mapping_field **ret_field) TL_MUST_USE;

/*
 * Reads what the subject is grouped by: bytes that are the same for the same value alone. Lives in the subject's arena.
 * Returns: 0; QUERY_REFUSED with subject->problem: there is more than one value.
 */
int collapse_read(struct match_doc *match_doc, const struct mapping_field *field, uint64_t ordinal,
                  struct slice *ret_group) TL_MUST_USE;

#endif
