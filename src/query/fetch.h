/* SPDX-License-Identifier: Apache-2.0 */
/* Writing hits as JSON. For src/query only. */
#ifndef TL_QUERY_FETCH_H
#define TL_QUERY_FETCH_H

#include "query/bound_query.h"

struct named_list;
struct sort_value;

/* What of a hit is written, worked out once an index. */
struct fetcher {
    const struct search_context *context;
    const struct search_request *request;
    const struct search_index *index;
    struct slice index_json; /* the name as a JSON string */
    bool source;             /* _source is written */
    bool source_whole;       /* and byte for byte */
    bool source_allowed;     /* the mapping says it is enabled */
    bool ids;                /* _id and _type are written */
    bool fields;             /* there may be "fields" */
    const struct named_list *named; /* the queries that hits tell of */
    struct script **scripts; /* of script_fields */
    /* The score written last, and its text: most searches give all hits the same. */
    float score;
    char score_text[24];
    size_t score_len; /* 0: none yet */
};

/* Returns: 0; QUERY_REFUSED with binder->problem. */
int fetcher_init(struct fetcher *fetcher, struct binder *binder, const struct search_request *request,
                 const struct named_list *named) TL_MUST_USE;

/*
 * Appends one hit. `score` is NULL where it reads null.
 * Returns: 0; QUERY_REFUSED where a script failed (subject->problem); TL_ERR_CORRUPT.
 */
int fetch_hit(struct fetcher *fetcher, struct match_doc *match_doc, const float *score, const struct sort_value *values,
              struct buf *buf) TL_MUST_USE;

#endif
