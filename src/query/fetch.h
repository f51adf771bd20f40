/* SPDX-License-Identifier: Apache-2.0 */
/* Writing hits as JSON. For src/query only. */
#ifndef TL_QUERY_FETCH_H
#define TL_QUERY_FETCH_H

#include "query/bound_query.h"

struct named_list;
struct sort_value;

/* Which parts of a hit are written. Computed once per index. */
struct fetcher {
    const struct search_context *context;
    const struct search_request *request;
    const struct search_index *index;
    struct slice index_json;        /* the name as a JSON string */
    bool source;                    /* _source is written */
    bool source_whole;              /* _source is copied unfiltered, byte for byte */
    bool source_allowed;            /* the mapping enables _source */
    bool ids;                       /* _id and _type are written */
    bool fields;                    /* the hit may have "fields" */
    const struct named_list *named; /* queries reported in matched_queries */
    struct script **scripts;        /* of script_fields, one each */
    /* Cache of the last score and its text: most searches give all hits the same score. */
    float score;
    char score_text[24];
    size_t score_len; /* 0: the cache is empty */
};

/*
 * Checks and binds what a request returns of each hit. Returns: 0; QUERY_REFUSED with
 * binder->problem; fatal codes.
 */
int fetcher_init(struct fetcher *fetcher, struct binder *binder, const struct search_request *request,
                 const struct named_list *named) TL_MUST_USE;

/*
 * Appends one hit as a JSON object. `score` NULL is written as null; `values` are its sort values.
 * Returns: 0; QUERY_REFUSED if a script failed, with match_doc->problem; TL_ERR_CORRUPT.
 */
int fetch_hit(struct fetcher *fetcher, struct match_doc *match_doc, const float *score, const struct sort_value *values,
              struct buf *buf) TL_MUST_USE;

#endif
