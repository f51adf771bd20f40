/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregations: the metrics min, max, sum, avg, stats, value_count and cardinality (exact, up to a limit), and the buckets terms,
 * histogram, date_histogram, range, date_range, filter, filters, missing and, topmost, global, with any of these below them; and
 * top_hits. Others are refused by name.
 */
#ifndef TL_QUERY_AGGREGATE_H
#define TL_QUERY_AGGREGATE_H

#include "base/buf.h"
#include "query/query.h"

#define AGGREGATIONS_MAX 100 /* of one request */
#define AGGREGATION_DEPTH_MAX 5
#define AGGREGATION_BUCKETS_MAX 65535 /* of a search, search.max_buckets; also distinct values of a cardinality */

struct aggregation; /* a list of those on one level */
struct aggregator;  /* what they have come to */
struct account;
struct binder;
struct named_list;
struct search_context;
struct match_doc;

/* Returns: 0; QUERY_REFUSED. */
int aggregation_parse(struct query_parser *parser, yyjson_val *value, unsigned depth,
                      struct aggregation **ret_list) TL_MUST_USE;

/*
 * Checks that an index can do them. `named` are the queries that hits tell of, known by then. Returns: 0; QUERY_REFUSED with the binder's
 * problem.
 */
int aggregation_bind(struct binder *binder, struct aggregation *list, const struct named_list *named) TL_MUST_USE;

/* Whether any needs the scores of the query, runs scripts for its results, is about all documents. */
bool aggregation_wants_scores(const struct aggregation *list);
bool aggregation_runs_scripts(const struct aggregation *list);
bool aggregation_is_global(const struct aggregation *list);

/* Owns: the caller; aggregator_free. NULL is fine for free. The context outlives it, and the account that its results are written at. */
struct aggregator *aggregator_new(const struct search_context *context, const struct aggregation *list, struct account *account);
void aggregator_free(struct aggregator *aggregator);
/*
 * Counts a document in that the query found, with subject->score; the second one of all that there are, for those that are global.
 * Returns: 0; QUERY_REFUSED with *ret_problem where there are too many buckets.
 */
int aggregator_add(struct aggregator *aggregator, struct match_doc *match_doc, struct arena *arena,
                   struct problem *ret_problem) TL_MUST_USE;
int aggregator_add_global(struct aggregator *aggregator, struct match_doc *match_doc, struct arena *arena,
                          struct problem *ret_problem) TL_MUST_USE;
/*
 * Writes {"name": {…}, …}, {"kind#name": …} with the context's typed_keys.
 * Returns: 0; QUERY_REFUSED where the gaps of a histogram would take too many buckets, or a script failed for a hit; SEARCH_TOO_OLD; fatal
 * codes.
 */
int aggregator_write(const struct aggregator *aggregator, struct buf *buf, struct arena *arena,
                     struct problem *ret_problem) TL_MUST_USE;

/* As query_resolve_lookups(), of the queries of filters. */
int aggregation_resolve_lookups(struct aggregation *list, struct arena *arena, terms_fetch *fetch, void *context,
                                struct problem *ret_problem) TL_MUST_USE;

#endif
