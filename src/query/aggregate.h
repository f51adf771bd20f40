/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregations. The other kinds that Elasticsearch has are refused by name.
 *
 * - Metrics: min, max, sum, avg, stats, value_count, cardinality (exact), top_hits.
 * - Buckets: terms, histogram, date_histogram, range, date_range, filter, filters, missing, global
 *   (at the top level only); each takes sub-aggregations.
 *
 * Bounds. AGGREGATIONS_MAX and AGGREGATION_DEPTH_MAX bound each level by itself; together:
 *
 *  1. Work: each aggregation that a document reaches, each key and each bucket written takes steps of
 *     the search's account.
 *  2. Memory: buckets are charged to the search's budget when they are made. Collecting stops at the
 *     next key when it is refused.
 *  3. Reply: it has at most AGGREGATION_BUCKETS_MAX buckets of terms, histograms, ranges and filters,
 *     empty ones included. Writing stops there, as in 7.10 (too_many_buckets_exception).
 */
#ifndef TL_QUERY_AGGREGATE_H
#define TL_QUERY_AGGREGATE_H

#include "base/buf.h"
#include "query/query.h"

#define AGGREGATIONS_MAX 100 /* on one level */
#define AGGREGATION_DEPTH_MAX 5
#define AGGREGATION_BUCKETS_MAX 65535 /* in a reply: search.max_buckets */

struct aggregation; /* a list of the aggregations on one level, as parsed and bound */
struct aggregator;  /* the results of such a list */
struct account;
struct binder;
struct named_list;
struct search_context;
struct match_doc;

/*
 * Parses `aggs`. Returns: 0; QUERY_REFUSED with parser->problem. Owns: the list lives in the
 * parser's arena.
 */
int aggregation_parse(struct query_parser *parser, yyjson_val *value, unsigned depth,
                      struct aggregation **ret_list) TL_MUST_USE;

/*
 * Binds a list to the binder's index. `named`: the named queries of the search, which the hits of
 * top_hits report.
 * Assumes: all queries of the search are bound. Returns: 0; QUERY_REFUSED with binder->problem;
 * fatal codes.
 */
int aggregation_bind(struct binder *binder, struct aggregation *list, const struct named_list *named) TL_MUST_USE;

/*
 * Return whether any aggregation of the list needs scores, runs scripts when it is written, or is
 * global.
 */
bool aggregation_wants_scores(const struct aggregation *list);
bool aggregation_runs_scripts(const struct aggregation *list);
bool aggregation_is_global(const struct aggregation *list);

/*
 * Makes an empty result. `account` is charged when the result is written; NULL: unlimited. The
 * context, the list and the account outlive it. Owns: the caller; aggregator_free, which accepts
 * NULL.
 */
struct aggregator *aggregator_new(const struct search_context *context, const struct aggregation *list,
                                  struct account *account);
void aggregator_free(struct aggregator *aggregator);
/*
 * Adds a document to all aggregations that are not global: one that the query matched, with
 * match_doc->score. aggregator_add_global() adds a document to the global ones: it is called for
 * every document of the indices. The results are incomplete when the account has ended or the budget
 * is refused meanwhile.
 */
void aggregator_add(struct aggregator *aggregator, struct match_doc *match_doc);
void aggregator_add_global(struct aggregator *aggregator, struct match_doc *match_doc);
/*
 * Writes {"name": {…}, …}; with the context's typed_keys {"kind#name": …}.
 * Returns: 0; QUERY_REFUSED if there are more than AGGREGATION_BUCKETS_MAX buckets, or a script
 * failed for a hit; SEARCH_TOO_OLD; fatal codes.
 */
int aggregator_write(const struct aggregator *aggregator, struct buf *buf, struct arena *arena,
                     struct problem *ret_problem) TL_MUST_USE;

/* As query_resolve_lookups(), for the queries of filter and filters. */
int aggregation_resolve_lookups(struct aggregation *list, struct arena *arena, terms_fetch *fetch, void *context,
                                struct problem *ret_problem) TL_MUST_USE;

#endif
