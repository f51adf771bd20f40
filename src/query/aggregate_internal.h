/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregations as parsed, bound and counted. For aggregate*.c and top_hits.c only.
 *
 * A bucket aggregation computes the keys of each document: the values for `terms`, the rounded
 * values for histograms, the indices of the matching ranges or filters. The rest is common to all
 * kinds: the document counts once in the bucket of each distinct key, and is added to the
 * sub-aggregations of that bucket.
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

#define KINDS_NUMERIC                                                                                \
    (1u << AGGREGATION_MIN | 1u << AGGREGATION_MAX | 1u << AGGREGATION_SUM | 1u << AGGREGATION_AVG | \
     1u << AGGREGATION_STATS)
#define KINDS_METRIC (KINDS_NUMERIC | 1u << AGGREGATION_VALUE_COUNT | 1u << AGGREGATION_CARDINALITY)
#define KINDS_LEAF (KINDS_METRIC | 1u << AGGREGATION_TOP_HITS) /* take no sub-aggregations */
#define KINDS_HISTOGRAM (1u << AGGREGATION_HISTOGRAM | 1u << AGGREGATION_DATE_HISTOGRAM)
#define KINDS_RANGE (1u << AGGREGATION_RANGE | 1u << AGGREGATION_DATE_RANGE)
#define KINDS_FILTER (1u << AGGREGATION_FILTER | 1u << AGGREGATION_FILTERS)
#define KINDS_SINGLE \
    (1u << AGGREGATION_FILTER | 1u << AGGREGATION_MISSING | 1u << AGGREGATION_GLOBAL)         /* single-bucket */
#define KINDS_FIELD (~(KINDS_FILTER | 1u << AGGREGATION_GLOBAL | 1u << AGGREGATION_TOP_HITS)) /* read a field */

extern const char *const aggregation__names[AGGREGATION_KIND_COUNT];

/* --- Orders ------------------------------------------------------------------------------------------------------- */

#define BUCKET_ORDERS_MAX 4

enum bucket_order_by { BY_COUNT, BY_KEY, BY_RESULT };
/* The number of a sub-aggregation's result by which buckets are ordered. */
enum result_part { PART_COUNT, PART_MIN, PART_MAX, PART_AVG, PART_SUM, PART_DISTINCT, PART_DOCUMENTS };

struct bucket_order {
    enum bucket_order_by by;
    bool descending;
    struct slice path;     /* BY_RESULT: "name", "name.part", "bucket>name.part" */
    enum result_part part; /* of the aggregation at the end of the path; valid once bound */
};

/* --- Definitions -------------------------------------------------------------------------------------------------- */

struct bounds {
    yyjson_val *low_json, *high_json; /* NULL: open */
    double low, high;                 /* valid once bound; infinite: open */
};

struct agg_range {
    struct slice key;                /* data NULL: generated from its ends */
    yyjson_val *from_json, *to_json; /* NULL: open */
    double from, to;                 /* `from` inclusive, `to` exclusive; valid once bound; infinite: open */
};

struct named_filter {
    struct slice key;
    struct query *query;
};

/* `include` or `exclude` of a terms aggregation. */
struct term_inclusion {
    bool given;
    struct slice regexp; /* data NULL: `values` instead */
    yyjson_val *values;  /* an array; NULL: none */
};

/* An aggregation bound to one index. */
struct bound_aggregation {
    const struct mapping_field *field; /* NULL: unmapped, or a metadata field */
    bool has_missing;
    struct field_value missing;                   /* value for documents that have none */
    struct bound_query **filters;                 /* filter_count of the aggregation */
    const struct term_pattern *include, *exclude; /* NULL: `included`, `excluded` */
    struct field_value *included, *excluded;
    size_t included_count, excluded_count;
    struct bound_key *keys;  /* sort keys of top_hits */
    struct fetcher *fetcher; /* of top_hits */
};

struct aggregation {
    struct aggregation *next;
    struct slice name;
    enum aggregation_kind kind;
    struct slice field;
    yyjson_val *missing;          /* NULL: none */
    struct slice meta;            /* JSON returned with the result; empty: none */
    bool has_rewritten_filter;    /* 7.10 rewrites one for the first index; meta then defaults to {} */
    struct aggregation *children; /* list of the sub-aggregations; NULL: none */

    unsigned size;
    unsigned min_doc_count;
    unsigned shard_min_doc_count; /* there is one shard, so the greater of the two applies */
    bool show_error;              /* show_term_doc_count_error; the error is always 0 */
    bool keyed;
    struct slice hint; /* execution_hint of terms; data NULL: none */
    struct bucket_order orders[BUCKET_ORDERS_MAX];
    size_t order_count;
    struct term_inclusion include, exclude;

    double interval, offset;  /* of histogram */
    struct rounding rounding; /* of date_histogram; its zone also of date_range */
    bool interval_given;
    bool zone_given;
    struct bounds extended, hard;
    const struct date_format *format;    /* for reading and printing dates; NULL: the field's */
    struct slice format_text;            /* `format`, for dates or numbers; data NULL: none */
    const struct number_format *numbers; /* the format of a numeric field; NULL: plain numbers */

    struct agg_range *ranges;
    size_t range_count;
    struct named_filter *filters;
    size_t filter_count;
    struct search_request *hits; /* of top_hits; else NULL */
    bool other;                  /* filters: one more bucket for documents that no filter matches */
    struct slice other_key;      /* name of that bucket */

    struct bound_aggregation *bound; /* one for each index of the context; NULL: not bound yet */
    bool limits_bound;               /* an index that has the field converted ranges and bounds */
};

struct metadata_field;
/*
 * Returns: the metadata field that the aggregation reads; NULL if it reads a field of the mapping.
 */
const struct metadata_field *aggregation__metadata(const struct aggregation *aggregation);

/*
 * Removes the first element from an order's path. Returns: the name of the aggregation; *ret_part
 * the part after its dot (data NULL: none).
 */
struct slice aggregation__next_path_step(struct slice *path, struct slice *ret_part);

/* --- Results ------------------------------------------------------------------------------------------------------ */

struct agg_bucket {
    struct field_value key;
    const struct mapping_field *field; /* in the first index; NULL: unmapped or metadata */
    uint64_t documents;
    struct aggregator *children; /* results of the sub-aggregations; NULL: none */
};

/* The result of one aggregation. */
struct metric {
    uint64_t values;            /* number of values; of TOP_HITS: of documents */
    double sum, low, high;      /* low is INFINITY and high is -INFINITY without values */
    struct hit_queue *top_hits; /* of TOP_HITS, whose best score is `high`; NULL: no hit yet */
    struct map buckets;         /* encoded key -> struct agg_bucket *; of bucket kinds and CARDINALITY */
};

/* Resources that the buckets of a search use. */
struct agg_usage {
    size_t bytes; /* not charged to the search's budget yet */
};

struct aggregator {
    const struct search_context *context;
    struct account *account; /* charged when results are written; NULL: unlimited */
    const struct aggregation *list;
    size_t count;
    struct metric *metrics;     /* one for each aggregation of the list */
    struct agg_usage *usage;    /* shared by all aggregators of the search */
    struct agg_usage own_usage; /* `usage` of the top-level aggregator points to it */
};

/*
 * top_hits.c. aggregator__offer_hit() adds a document to a bucket's hits and returns the bytes of
 * memory it took.
 */
int aggregation__parse_top_hits(struct query_parser *parser, yyjson_val *value,
                                struct aggregation *aggregation) TL_MUST_USE;
int aggregation__bind_top_hits(struct binder *binder, const struct aggregation *aggregation,
                               const struct named_list *named, struct bound_aggregation *bound) TL_MUST_USE;
size_t aggregator__offer_hit(const struct aggregation *aggregation, struct metric *metric,
                             const struct bound_aggregation *bound, struct match_doc *match_doc, size_t index);
void aggregator__drop_hits(struct metric *metric);
int aggregator__write_top_hits(const struct aggregator *aggregator, const struct aggregation *aggregation,
                               const struct metric *metric, struct json_writer *w, struct arena *arena,
                               struct problem *ret_problem) TL_MUST_USE;

/* Returns: whether the limits of ranges over a field (NULL: unmapped) are dates. */
bool aggregation__is_of_dates(const struct aggregation *aggregation, const struct mapping_field *field);

/* Converts a number to epoch milliseconds. Clamped to some 27 million years, NAN to 0. */
static inline int64_t aggregation__millis(double number)
{
    const double most = 8.64e17;
    return isnan(number) ? 0 : number > most ? (int64_t)most : number < -most ? -(int64_t)most : (int64_t)number;
}
/*
 * Returns: the key of a histogram's interval: of dates its begin in milliseconds, of numbers its
 * ordinal.
 */
struct field_value aggregation__interval_key(const struct aggregation *aggregation, double number);
/* Returns: the encoded key of a bucket, which points into `key`. */
struct slice aggregator__key(const struct field_value *key);
/* Returns: a value as a number; 0 for text. */
double aggregator__number(const struct mapping_field *field, const struct field_value *value);

#endif
