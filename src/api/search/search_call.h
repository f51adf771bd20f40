/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One search as a request says it: body, parameters, indices, and the context to run it in.
 *
 * A call lives in an arena of its choice: the exchange's for a search that is answered at once, one of its
 * own for scrolls, points in time and the by-query calls. In that case everything it refers to is copied into
 * that arena.
 */
#ifndef TL_API_SEARCH_CALL_H
#define TL_API_SEARCH_CALL_H

#include "api/request/reply.h"
#include "core/catalog/catalog.h"
#include "json/references.h"
#include "query/search.h"

struct search_call {
    struct arena *arena;
    struct api *api;
    enum dialect dialect;
    struct slice index;   /* expression; data NULL: all */
    struct slice types;   /* data NULL: any */
    struct slice routing; /* data NULL: none */
    struct catalog_options options;
    struct search_request search;
    struct view view;              /* set by the caller before search_call_open() */
    struct catalog *catalog;       /* the same; borrowed */
    struct search_context context; /* by search_call_open() */
    unsigned shard_count;          /* of the indices, or those of the routing */
    struct json_references refers; /* what its body refers to by name, for the locks of a transaction */
    bool total_as_int;             /* rest_total_hits_as_int */
    bool typed_keys;
    bool whole;                    /* allow_partial_search_results=false: a search that times out fails */
    bool legacy_1x;                /* search_type=scan */
};

/* Begins a call: index, types and routing of the request, options of index expressions. Returns: 0,
 * REQUEST_REFUSED. */
int search_call_init(struct request *request, struct arena *arena, struct search_call *ret_call) TL_MUST_USE;

/*
 * Reads a body (empty: none) into call->search. `count` allows nothing but a query, in the words of _count.
 * Returns: 0; REQUEST_REFUSED.
 */
int search_call_body(struct request *request, struct search_call *call, struct slice body, bool count) TL_MUST_USE;

/* Reads the parameter search_type; `scroll`: it may be scan. Returns: 0, REQUEST_REFUSED. */
int search_call_type(struct request *request, struct search_call *call, bool scroll) TL_MUST_USE;

/*
 * Reads numbers for parts of Elasticsearch that do not exist here, and the preference, so that invalid ones are
 * refused. Returns: 0, REQUEST_REFUSED.
 */
int search_call_idle(struct request *request) TL_MUST_USE;

/*
 * Lays the parameters of _search over the body, without a check of their combinations. `scan`: it is a call that has
 * search_type=scan. Returns: 0, REQUEST_REFUSED.
 */
int search_call_options(struct request *request, struct search_call *call, bool scan) TL_MUST_USE;
/* The same, with the check. Returns: 0, REQUEST_REFUSED. */
int search_call_params(struct request *request, struct search_call *call, bool scroll) TL_MUST_USE;
/* q= and its companions alone, as all calls with a query take them. */
int search_call_lucene(struct request *request, struct search_call *call) TL_MUST_USE;
/* The same for a call whose query is in the body or in q=: both are refused, also for an invalid body. */
int search_call_lucene_or_body(struct request *request, struct search_call *call, struct slice body) TL_MUST_USE;

/*
 * Resolves the indices in call->catalog and fills the context; then looks up what terms queries refer to.
 * Returns: 0; SEARCH_REFUSED with *ret_problem, SEARCH_TOO_OLD; fatal codes. See search_outcome().
 */
int search_call_open(struct search_call *call, struct problem *ret_problem) TL_MUST_USE;

/* Checks the combination of options of a plain search. Sets *ret_problem, with PROBLEM_NONE if it is valid. */
void search_call_combine(struct search_call *call, struct problem *ret_problem);

/* Counts a search, or a page of one, that has been answered, in the statistics of its indices. */
void search_call_note(const struct search_call *call, int64_t begun_us);

/*
 * What a transaction that reads by the call must lock: the indices by the expression that names
 * them, and what the query refers to. Returns: the targets, in `arena`; what they name is the
 * call's.
 */
struct lock_target *search_call_locks(const struct search_call *call, struct arena *arena, size_t *ret_count);
/* Returns the locks that the search of a request takes; none outside of a transaction. */
void search_call_targets(struct request *request, const struct search_call *call, struct lock_target **ret_targets,
                         size_t *ret_count);

/*
 * Turns an outcome of src/query into one of a handler. `call` is the opened one, for the text of a
 * cancellation; NULL: none was opened.
 */
int search_outcome(struct request *request, const struct search_call *call, int outcome);

/*
 * What the indices have against a result: that it is partial, where the request takes none that is.
 * Returns: 0, SEARCH_REFUSED with *ret_problem.
 */
int search_call_check(const struct search_call *call, const struct search_result *result,
                      struct problem *ret_problem) TL_MUST_USE;

/*
 * The timeout of searches that name none: search.default_search_timeout. Not for pages of scrolls.
 * Returns: 0, REQUEST_REFUSED.
 */
int search_default_timeout(struct request *request, struct search_call *call) TL_MUST_USE;

/* "_shards": {…} of a search. */
void search_write_shards(struct json_writer *writer, const struct search_call *call);
/* Writes a whole reply object. `scroll_id` and `pit_id` may have data NULL. */
void search_write(struct json_writer *writer, const struct search_call *call, const struct search_result *result,
                  uint64_t took_us, struct slice scroll_id, struct slice pit_id);

/* A monotonic clock in microseconds. */
int64_t search_clock_us(void);

#endif
