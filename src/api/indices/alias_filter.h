/* SPDX-License-Identifier: Apache-2.0 */
/* The filters and routings of aliases, looked at when they are set, so that not each search through the alias fails. */
#ifndef TL_API_ALIAS_FILTER_H
#define TL_API_ALIAS_FILTER_H

#include "api/request/request.h"
#include "core/catalog/catalog.h"

/*
 * Checks a filter against the current mapping; later mappings may change its meaning. A value that
 * is no object has no filter.
 * Returns: 0; REQUEST_REFUSED, "failed to parse filter for alias [a]" with its cause.
 */
int alias_filter_check(struct request *request, const struct catalog_index *index, struct slice alias,
                       yyjson_val *filter) TL_MUST_USE;

/* Refuses an alias whose body has several routings for documents. Returns: 0; REQUEST_REFUSED. */
int alias_routing_check(struct request *request, struct slice alias, yyjson_val *body) TL_MUST_USE;
int alias_routings_check(struct request *request, yyjson_val *aliases) TL_MUST_USE;

/* Checks all filters in `aliases` for an index that does not exist yet, against the mapping that `mappings` make. */
int alias_filters_check(struct request *request, struct slice name, enum dialect dialect, bool typed,
                        yyjson_val *mappings, yyjson_val *aliases) TL_MUST_USE;

#endif
