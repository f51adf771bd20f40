/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of `_source` a client wants to see: from parameters, or from the "_source" of a body.
 */
#ifndef TL_API_SOURCE_FILTER_H
#define TL_API_SOURCE_FILTER_H

#include "api/request/request.h"
#include "json/filter.h"

struct source_filter {
    bool given; /* the client said anything about it */
    bool fetch;
    struct json_filter filter;
};

#define SOURCE_FILTER_ALL ((struct source_filter){false, true, {NULL, 0, NULL, 0}})

/* Accepted parameters, for routes.def. */
#define SOURCE_FILTER_PARAMS "_source _source_includes _source_excludes"
#define SOURCE_FILTER_PARAMS_5 "_source _source_include _source_exclude _source_includes _source_excludes"

/* Reads the parameters. Returns: 0, REQUEST_REFUSED. */
int source_filter_params(struct request *request, struct source_filter *ret_filter) TL_MUST_USE;

/* Reads the value of "_source" in a body: a boolean, a pattern, patterns, or includes and excludes. */
int source_filter_json(struct request *request, yyjson_val *value, struct source_filter *ret_filter) TL_MUST_USE;

/* Appends a stored source as the filter lets it through, also without filter->fetch. Returns: 0, TL_ERR_CORRUPT. */
int source_filter_write(struct buf *buf, struct slice source, const struct source_filter *filter, struct arena *arena,
                        enum dialect dialect) TL_MUST_USE;

#endif
