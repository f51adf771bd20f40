/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing the results of aggregations as JSON. Buckets are in insertion order, and are sorted here.
 */
#include <math.h>
#include <stdlib.h>

#include "json/write.h"
#include "mapping/date.h"
#include "base/number_format.h"
#include "query/aggregate_internal.h"
#include "query/metadata.h"
#include "query/sort.h"

/* State of writing. */
struct output {
    struct json_writer w;
    uint64_t buckets; /* written so far, empty ones included */
    int result;       /* of reading the documents of top_hits; 0: success */
    struct account *account;
    struct arena *arena;
    struct problem *problem;
};

/* Steps of an account. */
enum { STEPS_OF_RESULT = 50, STEPS_OF_GAP = 5 };

/*
 * So many intervals of a histogram are counted one by one, since an estimate over transitions of a
 * time zone can be too high.
 */
enum { INTERVALS_COUNTED = 2 * AGGREGATION_BUCKETS_MAX };

static void write_list(struct output *out, const struct aggregator *aggregator);

/*
 * Returns: whether writing may continue. Too many buckets, the end of the account and a refused
 * budget of the reply end it; the caller discards the bytes written by then.
 */
static bool may_write(const struct output *out)
{
    return out->buckets <= AGGREGATION_BUCKETS_MAX && !out->w.buf->overflow &&
           account_take(out->account, STEPS_OF_RESULT);
}

/* Counts buckets whose contents have been written. The first that are too many end the count. */
static void count_buckets(struct output *out, uint64_t count)
{
    if (out->buckets <= AGGREGATION_BUCKETS_MAX)
        out->buckets += count;
}

/*
 * Refuses the reply as 7.10 does, where the limit is checked when the results of all shards are
 * merged: no shard has failed.
 */
static int refuse_too_many(const struct output *out)
{
    struct problem *cause = arena_alloc(out->arena, sizeof *cause);
    problem_set(
        cause, out->arena, PROBLEM_TOO_MANY_BUCKETS,
        "Trying to create too many buckets. Must be less than or equal to: [%d] but was [%llu]. This limit can be "
        "set by changing the [search.max_buckets] cluster level setting.",
        AGGREGATION_BUCKETS_MAX, (unsigned long long)out->buckets);
    problem_details(cause, out->arena, "\"max_buckets\":%d", AGGREGATION_BUCKETS_MAX);
    problem_set(out->problem, out->arena, PROBLEM_SEARCH_PHASE_EXECUTION, "%s", "");
    problem_details(out->problem, out->arena, "\"phase\":\"fetch\",\"grouped\":true,\"failed_shards\":[]");
    out->problem->status = problem_status(cause);
    out->problem->caused_by = cause;
    return QUERY_REFUSED;
}

/* --- Texts of values ---------------------------------------------------------------------------------------------- */

static bool has_own_text(const struct mapping_field *field)
{
    return field != NULL && (field->type == FIELD_DATE || field->type == FIELD_BOOLEAN);
}

/* Returns: whether values are also written as text, in …_as_string. */
static bool has_text(const struct aggregation *aggregation, const struct mapping_field *field)
{
    return has_own_text(field) || aggregation->numbers != NULL;
}

static bool is_of_numbers(const struct aggregation *aggregation, const struct mapping_field *field)
{
    return aggregation->numbers != NULL && !has_own_text(field);
}

/*
 * Prints a number as a value of the field: in the format of the aggregation, or else of the field.
 */
static void print_text(struct buf *text, const struct aggregation *aggregation, const struct mapping_field *field,
                       double number)
{
    const struct date_format *format = aggregation->format != NULL ? aggregation->format
                                       : field != NULL             ? field->format
                                                                   : NULL;
    if (is_of_numbers(aggregation, field))
        number_print_double(text, aggregation->numbers, number);
    else if (field != NULL && field->type == FIELD_BOOLEAN)
        buf_printf(text, "%s", number != 0 ? "true" : "false");
    else
        date_print(text, format != NULL ? format : date_format_default(DATE_RULES_7_10), aggregation__millis(number),
                   aggregation->rounding.zone);
}

static void write_text(struct json_writer *w, const char *key, const struct aggregation *aggregation,
                       const struct mapping_field *field, double number, bool bare)
{
    struct buf text = BUF_INIT(256);
    print_text(&text, aggregation, field, number);
    json_key(w, key);
    if (bare && field != NULL && field->type == FIELD_BOOLEAN)
        json_raw(w, buf_as_slice(&text));
    else
        json_string(w, buf_as_slice(&text));
    buf_deinit(&text);
}

/* --- Metrics ------------------------------------------------------------------------------------------------------ */

static void write_extreme(struct json_writer *w, const struct metric *metric, const char *key, double number)
{
    json_key(w, key);
    if (metric->values > 0)
        json_double(w, number);
    else
        json_null(w);
}

static void write_value(struct json_writer *w, const struct aggregation *aggregation, double number,
                        const struct mapping_field *field)
{
    json_key(w, "value");
    json_double(w, number);
    if (has_text(aggregation, field))
        write_text(w, "value_as_string", aggregation, field, number, false);
}

static void write_single(struct json_writer *w, const struct aggregation *aggregation, const struct metric *metric,
                         double number, const struct mapping_field *field)
{
    if (metric->values > 0)
        write_value(w, aggregation, number, field);
    else
        write_extreme(w, metric, "value", number);
}

static void write_stats(struct json_writer *w, const struct aggregation *aggregation, const struct metric *metric,
                        const struct mapping_field *field)
{
    double average = metric->sum / (double)metric->values;
    json_key(w, "count");
    json_u64(w, metric->values);
    write_extreme(w, metric, "min", metric->low);
    write_extreme(w, metric, "max", metric->high);
    write_extreme(w, metric, "avg", average);
    json_key(w, "sum");
    json_double(w, metric->sum);
    if (metric->values == 0 || !has_text(aggregation, field))
        return;
    write_text(w, "min_as_string", aggregation, field, metric->low, true);
    write_text(w, "max_as_string", aggregation, field, metric->high, true);
    write_text(w, "avg_as_string", aggregation, field, average, true);
    write_text(w, "sum_as_string", aggregation, field, metric->sum, true);
}

/* --- Orders ------------------------------------------------------------------------------------------------------- */

static struct agg_bucket *bucket_at(const struct metric *metric, size_t index)
{
    struct field_value key = {.kind = FIELD_VALUE_I64, .i64 = (int64_t)index};
    return map_get(&metric->buckets, aggregator__key(&key));
}

static double part_of(const struct metric *metric, const struct agg_bucket *bucket, enum result_part part)
{
    bool none = metric->values == 0;
    switch (part) {
    case PART_COUNT: return (double)metric->values;
    case PART_MIN: return metric->low;
    case PART_MAX: return metric->high;
    case PART_AVG: return none ? NAN : metric->sum / (double)metric->values;
    case PART_SUM: return metric->sum;
    case PART_DISTINCT: return (double)metric->buckets.count;
    case PART_DOCUMENTS: break;
    }
    return bucket == NULL ? 0 : (double)bucket->documents;
}

/*
 * Returns: the number by which an order's path sorts a bucket with these sub-aggregations; NaN
 * without one.
 */
static double result_of(const struct aggregator *aggregator, const struct bucket_order *order)
{
    struct slice path = order->path, part;
    for (;;) {
        struct slice step = aggregation__next_path_step(&path, &part);
        size_t i = 0;
        for (const struct aggregation *a = aggregator->list; !slice_equal(a->name, step); a = a->next)
            i++;
        const struct metric *metric = &aggregator->metrics[i];
        const struct agg_bucket *bucket = bucket_at(metric, 0); /* of a single-bucket aggregation */
        if (path.len == 0)
            return part_of(metric, bucket, order->part);
        if (bucket == NULL || bucket->children == NULL)
            return NAN;
        aggregator = bucket->children;
    }
}

static int by_key(const struct agg_bucket *a, const struct agg_bucket *b)
{
    return a->key.kind == b->key.kind ? field_value_compare(&a->key, &b->key) : (int)a->key.kind - (int)b->key.kind;
}

/* Buckets without a number are last in both directions. */
static int by_result(const struct agg_bucket *a, const struct agg_bucket *b, const struct bucket_order *order)
{
    double x = a->children == NULL ? NAN : result_of(a->children, order),
           y = b->children == NULL ? NAN : result_of(b->children, order);
    if (isnan(x) || isnan(y))
        return (int)isnan(x) - (int)isnan(y);
    if (x == y)
        return 0;
    return (x < y) == order->descending ? 1 : -1;
}

static int by_one_order(const struct agg_bucket *a, const struct agg_bucket *b, const struct bucket_order *order)
{
    if (order->by == BY_RESULT)
        return by_result(a, b, order);
    if (order->by == BY_KEY)
        return order->descending ? by_key(b, a) : by_key(a, b);
    if (a->documents == b->documents)
        return 0;
    return (a->documents < b->documents) == order->descending ? 1 : -1;
}

/*
 * Compares buckets. Default order: terms by descending count, histograms by key. Ties are ordered
 * by key.
 */
static int by_order(const void *left, const void *right, void *context)
{
    static const struct bucket_order most_first = {.by = BY_COUNT, .descending = true};
    const struct agg_bucket *a = *(struct agg_bucket *const *)left, *b = *(struct agg_bucket *const *)right;
    const struct aggregation *aggregation = context;
    int r =
        aggregation->order_count == 0 && aggregation->kind == AGGREGATION_TERMS ? by_one_order(a, b, &most_first) : 0;
    for (size_t i = 0; i < aggregation->order_count && r == 0; i++)
        r = by_one_order(a, b, &aggregation->orders[i]);
    return r != 0 ? r : by_key(a, b);
}

/* --- Buckets ------------------------------------------------------------------------------------------------------ */

/* Writes doc_count and the sub-aggregations of a bucket; NULL: a bucket without documents. */
static void write_inside(struct output *out, const struct aggregator *aggregator, const struct aggregation *aggregation,
                         const struct agg_bucket *bucket)
{
    json_key(&out->w, "doc_count");
    json_u64(&out->w, bucket == NULL ? 0 : bucket->documents);
    if (aggregation->show_error) {
        json_key(&out->w, "doc_count_error_upper_bound");
        json_i64(&out->w, 0);
    }
    if (aggregation->children == NULL)
        return;
    struct aggregator *empty =
        bucket == NULL ? aggregator_new(aggregator->context, aggregation->children, aggregator->account) : NULL;
    write_list(out, bucket == NULL ? empty : bucket->children);
    aggregator_free(empty);
}

static struct agg_bucket **all_buckets(const struct metric *metric, uint64_t least, size_t *ret_count)
{
    struct agg_bucket **buckets = mem_alloc((metric->buckets.count + 1) * sizeof(struct agg_bucket *));
    struct slice key;
    void *bucket;
    *ret_count = 0;
    for (size_t position = 0; map_next(&metric->buckets, &position, &key, &bucket);)
        if (((struct agg_bucket *)bucket)->documents >= least)
            buckets[(*ret_count)++] = bucket;
    return buckets;
}

/* Writes key_as_string. A long is formatted as an integer, since a double would lose digits. */
static void write_number_key(struct json_writer *w, const struct aggregation *aggregation,
                             const struct mapping_field *field, const struct field_value *key)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    if (key->kind == FIELD_VALUE_I64 && (field == NULL || field->type != FIELD_SCALED_FLOAT))
        number_print_i64(&text, aggregation->numbers, key->i64);
    else
        number_print_double(&text, aggregation->numbers, aggregator__number(field, key));
    json_key(w, "key_as_string");
    json_string(w, buf_as_slice(&text));
    buf_deinit(&text);
}

static void write_terms_key(struct json_writer *w, const struct aggregation *aggregation,
                            const struct agg_bucket *bucket)
{
    const struct mapping_field *field = bucket->field;
    json_key(w, "key");
    if (field != NULL && field->type == FIELD_IP)
        query__write_ip(w->buf, bucket->key.bytes);
    else if (bucket->key.kind == FIELD_VALUE_BYTES)
        json_string(w, bucket->key.bytes);
    else if (bucket->key.kind == FIELD_VALUE_F64)
        json_double(w, bucket->key.f64);
    else if (field != NULL && field->type == FIELD_SCALED_FLOAT)
        json_double(w, aggregator__number(field, &bucket->key));
    else
        json_i64(w, bucket->key.i64);
    w->comma = true;
    if (is_of_numbers(aggregation, field))
        write_number_key(w, aggregation, field, &bucket->key);
    else if (has_own_text(field))
        write_text(w, "key_as_string", aggregation, field, (double)bucket->key.i64, false);
}

static void write_terms(struct output *out, const struct aggregator *aggregator, const struct aggregation *aggregation,
                        const struct metric *metric)
{
    unsigned least = aggregation->min_doc_count > aggregation->shard_min_doc_count ? aggregation->min_doc_count
                                                                                   : aggregation->shard_min_doc_count;
    uint64_t others = 0;
    size_t count;
    struct agg_bucket **buckets = all_buckets(metric, least, &count);
    qsort_r(buckets, count, sizeof *buckets, by_order, (void *)(uintptr_t)aggregation);
    for (size_t i = aggregation->size; i < count; i++)
        others += buckets[i]->documents;
    json_key(&out->w, "doc_count_error_upper_bound");
    json_i64(&out->w, 0);
    json_key(&out->w, "sum_other_doc_count");
    json_u64(&out->w, others);
    json_key(&out->w, "buckets");
    json_begin(&out->w, '[');
    for (size_t i = 0; i < count && i < aggregation->size && may_write(out); i++) {
        json_begin(&out->w, '{');
        write_terms_key(&out->w, aggregation, buckets[i]);
        write_inside(out, aggregator, aggregation, buckets[i]);
        json_end(&out->w, '}');
        count_buckets(out, 1);
    }
    json_end(&out->w, ']');
    mem_free(buckets);
}

/* --- Histograms --------------------------------------------------------------------------------------------------- */

static bool of_dates(const struct aggregation *aggregation)
{
    return aggregation->kind == AGGREGATION_DATE_HISTOGRAM;
}

/* Beyond 2^53 numbers are more than one apart; the next interval is then the next number. */
static struct field_value next_interval(const struct aggregation *aggregation, const struct field_value *key)
{
    if (of_dates(aggregation))
        return (struct field_value){.kind = FIELD_VALUE_I64, .i64 = rounding_next(&aggregation->rounding, key->i64)};
    double next = key->f64 + 1;
    return (struct field_value){.kind = FIELD_VALUE_F64, .f64 = next > key->f64 ? next : nextafter(key->f64, INFINITY)};
}

/* Estimates the number of intervals in constant time; exact for numbers, and for dates in UTC. */
static uint64_t estimate_intervals(const struct aggregation *aggregation, const struct field_value *low,
                                   const struct field_value *high)
{
    const double most = 0x1p53;
    if (field_value_compare(low, high) == 0)
        return 1;
    if (of_dates(aggregation))
        return rounding_estimate_count(&aggregation->rounding, low->i64, high->i64);
    double count = high->f64 - low->f64 + 1;
    return count < most ? (uint64_t)count : (uint64_t)most; /* also if the keys are infinite */
}

static void widen_bounds(struct field_value *low, struct field_value *high, bool *any, struct field_value key)
{
    if (!*any || field_value_compare(&key, low) < 0)
        *low = key;
    if (!*any || field_value_compare(&key, high) > 0)
        *high = key;
    *any = true;
}

/*
 * Computes the first and last interval of a histogram: of its buckets and extended_bounds. All
 * intervals between them are written. Returns: false if the histogram is empty.
 */
static bool histogram_span(const struct aggregation *aggregation, struct agg_bucket *const *buckets, size_t count,
                           struct field_value *low, struct field_value *high)
{
    const struct bounds *bounds = &aggregation->extended;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        widen_bounds(low, high, &any, buckets[i]->key);
    if (any && bounds->low_json != NULL)
        widen_bounds(low, high, &any, aggregation__interval_key(aggregation, bounds->low));
    else if (!any && (bounds->low_json == NULL || bounds->high_json == NULL))
        return false;
    if (!any)
        widen_bounds(low, high, &any, aggregation__interval_key(aggregation, bounds->low));
    if (bounds->high_json != NULL)
        widen_bounds(low, high, &any, aggregation__interval_key(aggregation, bounds->high));
    return any;
}

/* The intervals of a histogram that are collected by fill_gaps(). */
struct intervals {
    struct arena *arena; /* of the empty buckets */
    struct agg_bucket **items;
    size_t count, capacity;
    uint64_t seen; /* also those beyond AGGREGATION_BUCKETS_MAX, which are not in items */
};

static void add_interval(struct intervals *intervals, struct agg_bucket *bucket)
{
    if (++intervals->seen > AGGREGATION_BUCKETS_MAX)
        return;
    intervals->items = arena_grow(intervals->arena, intervals->items, intervals->count, &intervals->capacity,
                                  sizeof *intervals->items);
    intervals->items[intervals->count++] = bucket;
}

/*
 * Adds empty intervals from `key` on: those before `end`, or with `with_end` up to it.
 * Returns: false if the account has ended or so many intervals were seen that counting stops.
 */
static bool add_gap(const struct output *out, const struct aggregation *aggregation, struct intervals *intervals,
                    struct field_value key, const struct field_value *end, bool with_end)
{
    for (;; key = next_interval(aggregation, &key)) {
        int order = field_value_compare(&key, end);
        if (order > 0 || (order == 0 && !with_end))
            return true;
        if (intervals->seen > INTERVALS_COUNTED || !account_take(out->account, STEPS_OF_GAP))
            return false;
        struct agg_bucket *bucket = NULL;
        if (intervals->seen < AGGREGATION_BUCKETS_MAX) {
            bucket = arena_zalloc(intervals->arena, sizeof *bucket);
            bucket->key = key;
        }
        add_interval(intervals, bucket);
        if (order == 0) /* an infinite key has no next one */
            return true;
    }
}

static int in_key_order(const void *a, const void *b)
{
    return field_value_compare(&(*(struct agg_bucket *const *)a)->key, &(*(struct agg_bucket *const *)b)->key);
}

/*
 * Adds all buckets and the empty intervals before, between and after them. As in Elasticsearch, a
 * gap is stepped through from the bucket before it. In a time zone with unusual transitions a step
 * may pass the next bucket or the end of the histogram: no bucket is lost by that, and no interval
 * added after `high`.
 */
static void add_intervals(const struct output *out, const struct aggregation *aggregation, struct intervals *intervals,
                          struct agg_bucket *const *buckets, size_t count, const struct field_value *low,
                          const struct field_value *high)
{
    struct field_value next = *low;
    for (size_t i = 0; i < count; i++) {
        if (!add_gap(out, aggregation, intervals, next, &buckets[i]->key, false))
            return;
        add_interval(intervals, buckets[i]);
        next = next_interval(aggregation, &buckets[i]->key);
    }
    if (count == 0 || field_value_compare(&buckets[count - 1]->key, high) < 0)
        (void)add_gap(out, aggregation, intervals, next, high, true);
}

/*
 * Replaces *buckets by all intervals of the histogram if min_doc_count is 0, with empty buckets in
 * the gaps. At most INTERVALS_COUNTED empty ones are visited; many more are only estimated, and not
 * filled.
 * Returns: the number of intervals; if it exceeds AGGREGATION_BUCKETS_MAX, *buckets is incomplete.
 * Owns: the empty buckets live in `empty`.
 */
static uint64_t fill_gaps(const struct output *out, const struct aggregation *aggregation, struct agg_bucket ***buckets,
                          size_t *count, struct arena *empty)
{
    struct field_value low = {0}, high = {0};
    struct intervals intervals = {.arena = empty};
    if (aggregation->min_doc_count > 0 || !histogram_span(aggregation, *buckets, *count, &low, &high))
        return *count;
    uint64_t estimate = estimate_intervals(aggregation, &low, &high);
    if (estimate > INTERVALS_COUNTED)
        return estimate;
    qsort(*buckets, *count, sizeof **buckets, in_key_order);
    add_intervals(out, aggregation, &intervals, *buckets, *count, &low, &high);
    mem_free(*buckets);
    *buckets = mem_alloc((intervals.count + 1) * sizeof **buckets);
    for (size_t i = 0; i < intervals.count; i++)
        (*buckets)[i] = intervals.items[i];
    *count = intervals.count;
    return intervals.seen;
}

static double histogram_key(const struct aggregation *aggregation, const struct agg_bucket *bucket)
{
    return of_dates(aggregation) ? (double)bucket->key.i64
                                 : bucket->key.f64 * aggregation->interval + aggregation->offset;
}

static void write_interval(struct output *out, const struct aggregator *aggregator,
                           const struct aggregation *aggregation, const struct agg_bucket *bucket,
                           const struct mapping_field *field)
{
    bool text = has_text(aggregation, field) || aggregation->format != NULL;
    double key = histogram_key(aggregation, bucket);
    if (aggregation->keyed) {
        struct buf name = BUF_INIT(BUF_UNLIMITED);
        if (text)
            print_text(&name, aggregation, field, key);
        else if (of_dates(aggregation))
            buf_printf(&name, "%lld", (long long)key);
        else
            json_double_text(&name, key);
        json_key_slice(&out->w, buf_as_slice(&name));
        buf_deinit(&name);
    }
    json_begin(&out->w, '{');
    if (text)
        write_text(&out->w, "key_as_string", aggregation, field, key, false);
    json_key(&out->w, "key");
    if (of_dates(aggregation))
        json_i64(&out->w, bucket->key.i64);
    else
        json_double(&out->w, key);
    write_inside(out, aggregator, aggregation, bucket->documents == 0 ? NULL : bucket);
    json_end(&out->w, '}');
}

static void write_histogram(struct output *out, const struct aggregator *aggregator,
                            const struct aggregation *aggregation, const struct metric *metric,
                            const struct mapping_field *field)
{
    size_t count;
    struct agg_bucket **buckets = all_buckets(metric, aggregation->min_doc_count, &count);
    struct arena empty = ARENA_INIT;
    uint64_t intervals = fill_gaps(out, aggregation, &buckets, &count, &empty);
    if (intervals > AGGREGATION_BUCKETS_MAX)
        count = 0;
    qsort_r(buckets, count, sizeof *buckets, by_order, (void *)(uintptr_t)aggregation);
    json_key(&out->w, "buckets");
    json_begin(&out->w, aggregation->keyed ? '{' : '[');
    for (size_t i = 0; i < count && may_write(out); i++)
        write_interval(out, aggregator, aggregation, buckets[i], field);
    count_buckets(out, intervals);
    json_end(&out->w, aggregation->keyed ? '}' : ']');
    mem_free(buckets);
    arena_deinit(&empty);
}

/* --- Ranges and filters ------------------------------------------------------------------------------------------- */

static void print_end(struct buf *text, const struct aggregation *aggregation, const struct mapping_field *field,
                      bool own_text, double end)
{
    if (isinf(end))
        buf_byte(text, '*');
    else if (own_text)
        print_text(text, aggregation, field, end);
    else
        json_double_text(text, end);
}

static void write_end(struct json_writer *w, const char *key, const char *text_key,
                      const struct aggregation *aggregation, const struct mapping_field *field, bool own_text,
                      double end)
{
    if (isinf(end))
        return;
    json_key(w, key);
    json_double(w, end);
    if (own_text)
        write_text(w, text_key, aggregation, field, end, true);
}

static void write_range(struct output *out, const struct aggregation *aggregation, const struct agg_range *range,
                        const struct mapping_field *field)
{
    bool own_text = has_text(aggregation, field) || aggregation__is_of_dates(aggregation, field);
    struct buf key = BUF_INIT(BUF_UNLIMITED);
    if (range->key.data != NULL) {
        buf_slice(&key, range->key);
    } else {
        print_end(&key, aggregation, field, own_text, range->from);
        buf_byte(&key, '-');
        print_end(&key, aggregation, field, own_text, range->to);
    }
    if (aggregation->keyed)
        json_key_slice(&out->w, buf_as_slice(&key));
    json_begin(&out->w, '{');
    if (!aggregation->keyed) {
        json_key(&out->w, "key");
        json_string(&out->w, buf_as_slice(&key));
    }
    buf_deinit(&key);
    write_end(&out->w, "from", "from_as_string", aggregation, field, own_text, range->from);
    write_end(&out->w, "to", "to_as_string", aggregation, field, own_text, range->to);
}

static void write_ranges(struct output *out, const struct aggregator *aggregator, const struct aggregation *aggregation,
                         const struct metric *metric, const struct mapping_field *field)
{
    json_key(&out->w, "buckets");
    json_begin(&out->w, aggregation->keyed ? '{' : '[');
    for (size_t i = 0; i < aggregation->range_count && may_write(out); i++) {
        write_range(out, aggregation, &aggregation->ranges[i], field);
        write_inside(out, aggregator, aggregation, bucket_at(metric, i));
        json_end(&out->w, '}');
    }
    count_buckets(out, aggregation->range_count);
    json_end(&out->w, aggregation->keyed ? '}' : ']');
}

static void write_filters(struct output *out, const struct aggregator *aggregator,
                          const struct aggregation *aggregation, const struct metric *metric)
{
    json_key(&out->w, "buckets");
    json_begin(&out->w, aggregation->keyed ? '{' : '[');
    size_t count = aggregation->filter_count + aggregation->other;
    for (size_t i = 0; i < count && may_write(out); i++) {
        if (aggregation->keyed)
            json_key_slice(&out->w,
                           i < aggregation->filter_count ? aggregation->filters[i].key : aggregation->other_key);
        json_begin(&out->w, '{');
        write_inside(out, aggregator, aggregation, bucket_at(metric, i));
        json_end(&out->w, '}');
    }
    count_buckets(out, count);
    json_end(&out->w, aggregation->keyed ? '}' : ']');
}

/* --- All ---------------------------------------------------------------------------------------------------------- */

static void write_one(struct output *out, const struct aggregator *aggregator, const struct aggregation *aggregation,
                      const struct metric *metric, const struct mapping_field *field)
{
    struct json_writer *w = &out->w;
    switch (aggregation->kind) {
    case AGGREGATION_TERMS: write_terms(out, aggregator, aggregation, metric); break;
    case AGGREGATION_HISTOGRAM:
    case AGGREGATION_DATE_HISTOGRAM: write_histogram(out, aggregator, aggregation, metric, field); break;
    case AGGREGATION_RANGE:
    case AGGREGATION_DATE_RANGE: write_ranges(out, aggregator, aggregation, metric, field); break;
    case AGGREGATION_FILTERS: write_filters(out, aggregator, aggregation, metric); break;
    case AGGREGATION_TOP_HITS:
        if (out->result == 0)
            out->result = aggregator__write_top_hits(aggregator, aggregation, metric, w, out->arena, out->problem);
        break;
    case AGGREGATION_FILTER:
    case AGGREGATION_GLOBAL:
    case AGGREGATION_MISSING: write_inside(out, aggregator, aggregation, bucket_at(metric, 0)); break;
    case AGGREGATION_MIN: write_single(w, aggregation, metric, metric->low, field); break;
    case AGGREGATION_MAX: write_single(w, aggregation, metric, metric->high, field); break;
    case AGGREGATION_AVG: write_single(w, aggregation, metric, metric->sum / (double)metric->values, field); break;
    case AGGREGATION_SUM: write_value(w, aggregation, metric->sum, field); break;
    case AGGREGATION_STATS: write_stats(w, aggregation, metric, field); break;
    default:
        json_key(w, "value");
        json_u64(w, aggregation->kind == AGGREGATION_CARDINALITY ? metric->buckets.count : metric->values);
        break;
    }
}

/*
 * Returns: the kind that typed_keys puts before a name; of terms it depends on the type of the
 * values.
 */
static const char *typed_name(const struct aggregation *aggregation, const struct mapping_field *field)
{
    if (aggregation->kind != AGGREGATION_TERMS)
        return aggregation__names[aggregation->kind];
    const struct metadata_field *metadata = aggregation__metadata(aggregation);
    if (field == NULL)
        return metadata != NULL && (metadata->traits & METADATA_NUMERIC) != 0 ? "lterms" : "sterms";
    enum field_value_kind kind = field_value_kind(field);
    bool fraction = kind == FIELD_VALUE_F64 || field->type == FIELD_SCALED_FLOAT;
    return kind == FIELD_VALUE_BYTES ? "sterms" : fraction ? "dterms" : "lterms";
}

/*
 * Returns: the field in the first index that has it. Its type and format apply to the merged result
 * of all indices.
 */
static const struct mapping_field *field_of(const struct aggregator *aggregator, const struct aggregation *aggregation)
{
    const struct mapping_field *field = NULL;
    if ((kind_bit(aggregation->kind) & KINDS_FIELD) == 0)
        return NULL;
    for (size_t i = 0; i < aggregator->context->index_count && field == NULL; i++)
        field = mapping_field(aggregator->context->indices[i].mapping, aggregation->field);
    return field;
}

static void write_list(struct output *out, const struct aggregator *aggregator)
{
    size_t i = 0;
    for (const struct aggregation *a = aggregator->list; a != NULL && may_write(out); a = a->next, i++) {
        const struct mapping_field *field = field_of(aggregator, a);
        struct buf name = BUF_INIT(BUF_UNLIMITED);
        if (aggregator->context->typed_keys)
            buf_printf(&name, "%s#", typed_name(a, field));
        buf_slice(&name, a->name);
        json_key_slice(&out->w, buf_as_slice(&name));
        buf_deinit(&name);
        json_begin(&out->w, '{');
        if (a->meta.len > 0) {
            json_key(&out->w, "meta");
            json_raw(&out->w, a->meta);
        } else if (a->has_rewritten_filter) {
            json_key(&out->w, "meta");
            json_raw(&out->w, SLICE_LIT("{}"));
        }
        write_one(out, aggregator, a, &aggregator->metrics[i], field);
        json_end(&out->w, '}');
    }
}

int aggregator_write(const struct aggregator *aggregator, struct buf *buf, struct arena *arena,
                     struct problem *ret_problem)
{
    struct output out = {.account = aggregator->account, .arena = arena, .problem = ret_problem};
    json_writer_init(&out.w, buf);
    json_begin(&out.w, '{');
    write_list(&out, aggregator);
    json_end(&out.w, '}');
    return out.result != 0 ? out.result : out.buckets > AGGREGATION_BUCKETS_MAX ? refuse_too_many(&out) : 0;
}
