/* SPDX-License-Identifier: Apache-2.0 */
/* A search request: the body of _search. The caller applies URL parameters to it. */
#ifndef TL_QUERY_REQUEST_H
#define TL_QUERY_REQUEST_H

#include "query/query.h"
#include "json/filter.h"

struct aggregation;

enum { TOTAL_HITS_ALL = INT32_MAX, TOTAL_HITS_NONE = -1, TOTAL_HITS_UNSET = -2 };

enum sort_by { SORT_FIELD, SORT_SCORE, SORT_DOC, SORT_ID, SORT_SCRIPT };
enum sort_mode { SORT_MODE_DEFAULT, SORT_MIN, SORT_MAX, SORT_SUM, SORT_AVG, SORT_MEDIAN };

/* The type as which the values of a numeric field are sorted. */
enum sort_numbers { SORT_AS_MAPPED, SORT_AS_LONG, SORT_AS_DOUBLE, SORT_AS_DATE, SORT_AS_NANOS };

struct sort_key {
    enum sort_by by;
    struct slice field;
    bool descending;
    enum sort_mode mode;
    bool missing_first;
    yyjson_val *missing;               /* value for documents without one; NULL: none */
    struct slice unmapped_type;        /* empty: an unmapped field is an error */
    struct slice format;               /* of dates; empty: milliseconds */
    enum sort_numbers numbers;         /* numeric_type */
    struct slice nested;               /* path of nested objects; empty: none */
    const struct query_script *script; /* SORT_SCRIPT */
    bool script_number;
};

/* An item of docvalue_fields or fields. */
struct field_format {
    struct slice pattern;
    struct slice format; /* data NULL: the field's */
};

struct script_field {
    struct slice name;
    const struct query_script *script;
    bool ignore_failure;
};

enum { SEARCH_TIMEOUT_UNSET = -1 };

struct search_request {
    struct query *query;       /* NULL: match_all */
    struct query *post_filter; /* NULL: none */
    int32_t from;              /* -1: not given */
    int32_t size;              /* -1: not given */
    struct sort_key *sort;
    size_t sort_count;         /* 0: by score */
    bool no_source;            /* _source: false */
    bool source_asked;         /* _source was given */
    struct json_filter source; /* includes and excludes */
    struct slice *stored_fields;
    size_t stored_field_count;
    bool stored_none; /* stored_fields: _none_ */
    struct field_format *docvalue_fields;
    size_t docvalue_count;
    struct field_format *fields;
    size_t field_count;
    struct script_field *script_fields;
    size_t script_field_count;
    bool version;
    bool seq_no_primary_term;
    bool commit_timestamp; /* of the API only: hits have the timestamp of the commit that made their version */
    bool track_scores;
    bool explain;
    int32_t track_total_hits;     /* number to count up to, or a TOTAL_HITS_ constant */
    double min_score;             /* NAN: none */
    int32_t terminate_after;      /* 0: none */
    bool overdue;                 /* the timeout has passed before the search began */
    int64_t timeout_us;           /* 0: none; SEARCH_TIMEOUT_UNSET: not given */
    yyjson_val *search_after;     /* an array; NULL: none */
    uint32_t slice_id, slice_max; /* slice_max 0: not sliced */
    struct slice slice_field;     /* whose values are divided; data NULL: ids are */
    struct slice collapse; /* field to collapse by; data NULL: none */
    struct slice pit_id;   /* data NULL: none */
    struct slice pit_keep_alive;
    yyjson_val *indices_boost;        /* NULL: none */
    struct aggregation *aggregations; /* list; NULL: none */
    bool scan;                        /* search_type=scan: no hits on the first page */
    bool request_cache;               /* true was given */
};

void search_request_init(struct search_request *request);

/*
 * Parses a body into a request. Assumes: search_request_init().
 * Returns: 0; QUERY_REFUSED with parser->problem. Owns: the request refers to the parser's arena
 * and document.
 */
int search_request_parse(struct query_parser *parser, yyjson_val *body, struct search_request *request) TL_MUST_USE;

/*
 * Parses the `sort` parameter of a URL: "a:desc,b"; its keys follow those of the body. Returns: 0;
 * QUERY_REFUSED with parser->problem.
 */
int search_request_sort(struct query_parser *parser, struct slice text, struct search_request *request) TL_MUST_USE;

/* Sets the timeout to `us`, the result of time_value_parse() for `text` (json/time_value.h). */
void search_request_timeout(struct search_request *request, struct slice text, int64_t us);

/* Splits "a,b,c" into slices of the arena. */
size_t search_request_split(struct arena *arena, struct slice text, struct slice **ret_items);

#define SEARCH_SCROLL_PROBLEMS_MAX 6

/*
 * Lists what 7.10 has against the options of a search that is read page by page, in its order.
 * Returns: the number of texts, which are constants.
 */
size_t search_request_scroll_problems(const struct search_request *request,
                                      const char *ret_texts[SEARCH_SCROLL_PROBLEMS_MAX]);

/*
 * Checks for invalid combinations of options, for a scroll or a plain search.
 * Returns: 0; QUERY_REFUSED with parser->problem, Elasticsearch's
 * action_request_validation_exception or similar.
 */
int search_request_check(struct query_parser *parser, const struct search_request *request, bool scroll) TL_MUST_USE;

#endif
