/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregations as parsed and bound. For the aggregate files of src/query only.
 *
 * Every aggregation that has buckets asks a document for its keys: the values of `terms`, the rounded values of the histograms, the
 * places of the ranges and filters it belongs to. What then happens is the same for all: the document counts once in the
 * bucket of each key, and goes on to the aggregations below it.
 */
#ifndef TL_QUERY_AGGREGATE_INTERNAL_H
#define TL_QUERY_AGGREGATE_INTERNAL_H

#include <math.h>

#include "base/map.h"
#include "json/write.h"
#include "query/aggregate.h"
#include "query/bound_query.h"
#include "query/rounding.h"

enum aggregation_kind {
    AGGREGATION_MIN,
    AGGREGATION_MAX,
    AGGREGATION_SUM,
    AGGREGATION_AVG,
    AGGREGATION_STATS,
    AGGREGATION_VALUE_COUNT,
    AGGREGATION_CARDINALITY,
    AGGREGATION_TERMS,
    AGGREGATION_HISTOGRAM,
    AGGREGATION_DATE_HISTOGRAM,
    AGGREGATION_RANGE,
    AGGREGATION_DATE_RANGE,
    AGGREGATION_FILTER,
    AGGREGATION_FILTERS,
    AGGREGATION_MISSING,
    AGGREGATION_GLOBAL,
    AGGREGATION_TOP_HITS,
    AGGREGATION_KIND_COUNT
};

static inline unsigned kind_bit(enum aggregation_kind kind)
{
    return 1u << kind;
}

#define KINDS_NUMERIC \
    (1u << AGGREGATION_MIN | 1u << AGGREGATION_MAX | 1u << AGGREGATION_SUM | 1u << AGGREGATION_AVG | 1u << AGGREGATION_STATS)
#define KINDS_METRIC (KINDS_NUMERIC | 1u << AGGREGATION_VALUE_COUNT | 1u << AGGREGATION_CARDINALITY)
#define KINDS_LEAF (KINDS_METRIC | 1u << AGGREGATION_TOP_HITS) /* have nothing below them */
#define KINDS_HISTOGRAM (1u << AGGREGATION_HISTOGRAM | 1u << AGGREGATION_DATE_HISTOGRAM)
#define KINDS_RANGE (1u << AGGREGATION_RANGE | 1u << AGGREGATION_DATE_RANGE)
#define KINDS_FILTER (1u << AGGREGATION_FILTER | 1u << AGGREGATION_FILTERS)
#define KINDS_SINGLE (1u << AGGREGATION_FILTER | 1u << AGGREGATION_MISSING | 1u << AGGREGATION_GLOBAL) /* have one bucket */
#define KINDS_FIELD (~(KINDS_FILTER | 1u << AGGREGATION_GLOBAL | 1u << AGGREGATION_TOP_HITS))          /* look at a field */

extern const char *const aggregation__names[AGGREGATION_KIND_COUNT];

/* --- Orders ------------------------------------------------------------------------------------------------------- */

#define BUCKET_ORDERS_MAX 4

enum bucket_order_by { BY_COUNT, BY_KEY, BY_RESULT };
/* What of an aggregation's result buckets are ordered by. */
enum result_part { PART_COUNT, PART_MIN, PART_MAX, PART_AVG, PART_SUM, PART_DISTINCT, PART_DOCUMENTS };

struct bucket_order {
    enum bucket_order_by by;
    bool descending;
    struct slice path; /* BY_RESULT: "name", "name.part", "bucket>name.part" */
    enum result_part part; /* of what the path ends at, once bound */
};

/* --- What is asked for -------------------------------------------------------------------------------------------- */

struct bounds {
    yyjson_val *low_json, *high_json; /* NULL: open */
    double low, high;                 /* once bound */
};

struct agg_range {
    struct slice key; /* data NULL: made of its ends */
    yyjson_val *from_json, *to_json;
    double from, to; /* once bound; infinite: open */
};

struct named_filter {
    struct slice key;
    struct query *query;
};

/* What `include` and `exclude` of terms let through. */
struct term_inclusion {
    bool given;
    struct slice regexp; /* data NULL: values */
    yyjson_val *values;  /* an array */
};

/* What it comes to in one index. */
struct bound_aggregation {
    const struct mapping_field *field; /* NULL: unmapped, or a field of every document */
    bool has_missing;
    struct field_value missing; /* stands for the values of documents without any */
    struct bound_query **filters;
    const struct term_pattern *include, *exclude;
    struct field_value *included, *excluded;
    size_t included_count, excluded_count;
    struct bound_key *keys; /* of top_hits */
    struct fetcher *fetcher;
};

struct aggregation {
    struct aggregation *next;
    struct slice name;
    enum aggregation_kind kind;
    struct slice field;
    yyjson_val *missing; /* NULL: none */
    struct slice meta;   /* JSON that comes back with the result; empty: none */
    bool
        has_rewritten_filter; /* a filter in it is rewritten for the first index: without a meta of its own it shows an empty one */
    struct aggregation *children;

    unsigned size;
    unsigned min_doc_count;
    unsigned shard_min_doc_count; /* there is one shard, so it counts as the other */
    bool show_error;              /* of each bucket, which is 0 */
    bool keyed;
    struct slice hint; /* execution_hint of terms; data NULL: none */
    struct bucket_order orders[BUCKET_ORDERS_MAX];
    size_t order_count;
    struct term_inclusion include, exclude;

    double interval, offset;   /* of a histogram of numbers */
    struct rounding rounding;  /* of one of dates */
    bool interval_given;
    struct bounds extended, hard;
    const struct date_format *format; /* that dates are read and shown in; NULL: the field's */
    struct slice format_text;         /* of whichever kind the field turns out to want; data NULL: none */
    const struct number_format *numbers; /* that, for a field of numbers; NULL: as they are */

    struct agg_range *ranges;
    size_t range_count;
    struct named_filter *filters;
    size_t filter_count;
    struct search_request *hits; /* of top_hits; else NULL */
    bool other;             /* one more bucket for what no filter matches ... */
    struct slice other_key; /* ... named so */

    struct bound_aggregation *bound; /* by index of the search */
    bool limits_bound;               /* ranges and bounds are numbers */
};

struct metadata_field;
/* Returns: the metadata field whose values it reads; NULL where it reads those of a field of the mapping. */
const struct metadata_field *aggregation__metadata(const struct aggregation *aggregation);

/* Takes the next step off an order's path, and the part named behind it (data NULL: none). Returns: the step's name. */
struct slice aggregation__next_path_step(struct slice *path, struct slice *ret_part);

/* --- What it comes to --------------------------------------------------------------------------------------------- */

struct agg_bucket {
    struct field_value key;
    const struct mapping_field *field; /* NULL: one of every document */
    uint64_t documents;
    struct aggregator *children;
};

struct metric {
    uint64_t values;
    double sum, low, high;
    struct hit_queue *top_hits; /* of TOP_HITS, whose best score is `high`; NULL: none yet */
    struct map buckets; /* by encoded key: struct agg_bucket *; of CARDINALITY and all that have buckets */
};

/* What buckets take. */
struct agg_usage {
    size_t buckets;
    size_t bytes; /* that the search's budget has not been asked for yet */
};

struct aggregator {
    const struct search_context *context;
    struct account *account; /* of writing; NULL: none */
    const struct aggregation *list;
    size_t count;
    struct metric *metrics; /* one for each of the list */
    struct agg_usage *usage;    /* by all aggregators of the search */
    struct agg_usage own_usage;       /* what that of the topmost points to */
};

/* top_hits.c. The last three: of a bucket. Returns of keeping: the bytes that it took. */
int aggregation__parse_top_hits(struct query_parser *parser, yyjson_val *value, struct aggregation *aggregation) TL_MUST_USE;
int aggregation__bind_top_hits(struct binder *binder, const struct aggregation *aggregation, const struct named_list *named,
                               struct bound_aggregation *bound) TL_MUST_USE;
size_t aggregator__offer_hit(const struct aggregation *aggregation, struct metric *metric, const struct bound_aggregation *bound,
                            struct match_doc *match_doc, size_t index);
void aggregator__drop_hits(struct metric *metric);
int aggregator__write_top_hits(const struct aggregator *aggregator, const struct aggregation *aggregation, const struct metric *metric,
                               struct json_writer *w, struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/* Whether the ends of ranges over a field (NULL: unmapped) are dates. */
bool aggregation__is_of_dates(const struct aggregation *aggregation, const struct mapping_field *field);

/* A number as a moment; beyond some ten million years it is one of those. */
static inline int64_t aggregation__millis(double number)
{
    const double most = 8.64e17;
    return isnan(number) ? 0 : number > most ? (int64_t)most : number < -most ? -(int64_t)most : (int64_t)number;
}
/* The key of the interval in which a number lies: when it begins, or of numbers which one it is. */
struct field_value aggregation__interval_key(const struct aggregation *aggregation, double number);
int aggregation__too_many(struct arena *arena, struct problem *ret_problem);
struct slice aggregator__key(const struct field_value *key);
double aggregator__number(const struct mapping_field *field, const struct field_value *value);

#endif
