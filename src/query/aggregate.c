/* SPDX-License-Identifier: Apache-2.0 */
/* The simple aggregations. Buckets are kept in order of their first document and sorted when they are
 * written. */
#include "query/aggregate.h"

#include "base/map.h"
#include "mapping/date.h"
#include "query/matcher.h"
#include "query/sort.h"
#include "json/write.h"

#include <math.h>
#include <stdlib.h>

enum aggregation_kind {
    AGGREGATION_MIN,
    AGGREGATION_MAX,
    AGGREGATION_SUM,
    AGGREGATION_AVG,
    AGGREGATION_STATS,
    AGGREGATION_VALUE_COUNT,
    AGGREGATION_CARDINALITY,
    AGGREGATION_TERMS,
    AGGREGATION_KIND_COUNT
};

static const char *const kind_names[] = {"min", "max", "sum", "avg", "stats", "value_count", "cardinality", "terms"};

#define BUCKET_ORDERS_MAX 4

enum bucket_order { BY_COUNT_DESCENDING, BY_COUNT_ASCENDING, BY_KEY_ASCENDING, BY_KEY_DESCENDING };

struct aggregation {
    struct aggregation *next;
    struct slice name;
    enum aggregation_kind kind;
    struct slice field;
    unsigned size;
    unsigned min_doc_count;
    unsigned shard_min_doc_count; /* there is one shard, so it counts as the other */
    bool show_error;              /* of each bucket, which is 0 */
    enum bucket_order orders[BUCKET_ORDERS_MAX];
    size_t order_count;
    struct slice meta;         /* JSON that comes back with the result; empty: none */
    struct aggregation *below; /* of terms */
};

/* --- Parsing ------------------------------------------------------------------------------------------------------ */

static int take_one_order(struct query_parser *parser, yyjson_val *value, struct aggregation *aggregation)
{
    yyjson_val *by_key = json_get_lit(value, "_key");
    if (by_key == NULL)
        by_key = json_get_lit(value, "_term");
    yyjson_val *by_count = json_get_lit(value, "_count");
    if ((by_key == NULL && by_count == NULL) || aggregation->order_count == BUCKET_ORDERS_MAX)
        return query__refuse(parser, value, false, PROBLEM_PARSING,
                             "[terms] order is supported by [_key] and [_count] only");
    enum bucket_order order;
    if (by_key != NULL)
        order = slice_is(json_slice(by_key), "desc") ? BY_KEY_DESCENDING : BY_KEY_ASCENDING;
    else
        order = slice_is(json_slice(by_count), "asc") ? BY_COUNT_ASCENDING : BY_COUNT_DESCENDING;
    aggregation->orders[aggregation->order_count++] = order;
    return 0;
}

static int take_order(struct query_parser *parser, yyjson_val *value, struct aggregation *aggregation)
{
    size_t i, count;
    yyjson_val *item;
    if (!yyjson_is_arr(value))
        return take_one_order(parser, value, aggregation);
    yyjson_arr_foreach (value, i, count, item) {
        int r = take_one_order(parser, item, aggregation);
        if (r != 0)
            return r;
    }
    return 0;
}

static int take_option(struct query_parser *parser, struct slice option, yyjson_val *value,
                       struct aggregation *aggregation)
{
    if (slice_is(option, "field")) {
        aggregation->field = query__scalar_text(parser->arena, value);
        return 0;
    }
    if (aggregation->kind == AGGREGATION_TERMS && slice_is(option, "size"))
        return query__take_u32(parser, value, &aggregation->size);
    if (aggregation->kind == AGGREGATION_TERMS && slice_is(option, "min_doc_count"))
        return query__take_u32(parser, value, &aggregation->min_doc_count);
    if (aggregation->kind == AGGREGATION_TERMS && slice_is(option, "order"))
        return take_order(parser, value, aggregation);
    if (aggregation->kind == AGGREGATION_TERMS && slice_is(option, "shard_min_doc_count"))
        return query__take_u32(parser, value, &aggregation->shard_min_doc_count);
    if (aggregation->kind == AGGREGATION_TERMS && slice_is(option, "show_term_doc_count_error")) {
        aggregation->show_error = yyjson_is_true(value);
        return 0;
    }
    if (slice_is(option, "shard_size") || slice_is(option, "precision_threshold"))
        return 0;
    return query__refuse(parser, value, false, PROBLEM_PARSING, "[%s] aggregation does not support [%.*s] here",
                         kind_names[aggregation->kind], SLICE_ARG(option));
}

/* A kind that Elasticsearch has is told apart from a slip. */
static int refuse_kind_name(struct query_parser *parser, struct slice name, yyjson_val *value)
{
    static const char *const absent[] = {
        "adjacency_matrix", "auto_date_histogram", "avg_bucket", "bucket_script", "bucket_selector", "bucket_sort",
        "children", "composite", "cumulative_sum", "date_histogram", "date_range", "derivative", "diversified_sampler",
        "extended_stats", "extended_stats_bucket", "filter", "filters", "geo_bounds", "geo_centroid", "geo_distance",
        "geohash_grid", "geotile_grid", "global", "histogram", "ip_range", "matrix_stats", "max_bucket",
        "median_absolute_deviation", "min_bucket", "missing", "moving_avg", "moving_fn", "nested", "parent",
        "percentile_ranks", "percentiles", "percentiles_bucket", "range", "rare_terms", "reverse_nested", "sampler",
        "scripted_metric", "serial_diff", "significant_terms", "significant_text", "stats_bucket", "sum_bucket",
        "top_hits", "variable_width_histogram", "weighted_avg"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (slice_is(name, absent[i]))
            return query__refuse(parser, value, false, PROBLEM_PARSING,
                                 "aggregation type [%.*s] is not supported by this server", SLICE_ARG(name));
    int r = query__refuse(parser, value, false, PROBLEM_PARSING, "Unknown aggregation type [%.*s]", SLICE_ARG(name));
    size_t line, column;
    query_position(parser->doc, value, false, &line, &column);
    parser->problem->caused_by = arena_zalloc(parser->arena, sizeof *parser->problem->caused_by);
    problem_set(parser->problem->caused_by, parser->arena, PROBLEM_PARSING, "[%zu:%zu] unknown field [%.*s]", line, column,
                SLICE_ARG(name));
    parser->problem->caused_by->name = SLICE_LIT("named_object_not_found_exception");
    return r;
}

static int take_kind(struct query_parser *parser, struct slice name, yyjson_val *value, struct aggregation *aggregation)
{
    size_t kind = 0;
    while (kind < sizeof kind_names / sizeof *kind_names && !slice_is(name, kind_names[kind]))
        kind++;
    if (kind == sizeof kind_names / sizeof *kind_names)
        return refuse_kind_name(parser, name, value);
    aggregation->kind = (enum aggregation_kind)kind;
    size_t index, count;
    yyjson_val *key, *member;
    yyjson_obj_foreach (value, index, count, key, member) {
        int r = take_option(parser, json_slice(key), member, aggregation);
        if (r != 0)
            return r;
    }
    if (aggregation->field.data == NULL)
        return query__refuse(parser, value, true, PROBLEM_ILLEGAL_ARGUMENT,
                             "Required one of fields [field, script], but none were specified. ");
    return 0;
}

static struct slice keep_json(struct query_parser *parser, yyjson_val *value)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    json_write(&buf, value, parser->dialect);
    struct slice kept = arena_copy(parser->arena, buf_view(&buf));
    buf_deinit(&buf);
    return kept;
}

static int parse_one(struct query_parser *parser, yyjson_val *value, unsigned depth, struct aggregation *aggregation)
{
    bool kind = false;
    size_t index, count;
    yyjson_val *key, *member;
    yyjson_obj_foreach (value, index, count, key, member) {
        int r;
        if (slice_is(json_slice(key), "aggs") || slice_is(json_slice(key), "aggregations")) {
            r = aggregation_parse(parser, member, depth + 1, &aggregation->below);
        } else if (slice_is(json_slice(key), "meta")) {
            r = 0;
            aggregation->meta = keep_json(parser, member);
        } else if (kind) {
            r = query__refuse(parser, member, false, PROBLEM_PARSING,
                              "Found two aggregation type definitions in [%.*s]", SLICE_ARG(aggregation->name));
        } else {
            kind = true;
            r = take_kind(parser, json_slice(key), member, aggregation);
        }
        if (r != 0)
            return r;
    }
    if (!kind)
        return query__refuse(parser, value, true, PROBLEM_PARSING, "Missing definition for aggregation [%.*s]",
                             SLICE_ARG(aggregation->name));
    if (aggregation->below != NULL && aggregation->kind != AGGREGATION_TERMS)
        return query__refuse(parser, value, true, PROBLEM_PARSING,
                             "Aggregator [%.*s] of type [%s] cannot accept sub-aggregations",
                             SLICE_ARG(aggregation->name), kind_names[aggregation->kind]);
    return 0;
}

int aggregation_parse(struct query_parser *parser, yyjson_val *value, unsigned depth, struct aggregation **ret_list)
{
    struct aggregation **end = ret_list;
    if (depth >= AGGREGATION_DEPTH_MAX || unsafe_yyjson_get_len(value) > AGGREGATIONS_MAX)
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "too many aggregations, or too deeply nested");
    size_t index, count;
    yyjson_val *key, *member;
    yyjson_obj_foreach (value, index, count, key, member) {
        struct aggregation *aggregation = arena_zalloc(parser->arena, sizeof *aggregation);
        aggregation->name = json_slice(key);
        aggregation->size = 10;
        aggregation->min_doc_count = 1;
        int r = parse_one(parser, member, depth, aggregation);
        if (r != 0)
            return r;
        *end = aggregation;
        end = &aggregation->next;
    }
    return 0;
}

/* --- Binding ------------------------------------------------------------------------------------------------------ */

/* Fields that every document has without its mapping saying so. */
enum own_field { OWN_NONE, OWN_ID, OWN_INDEX, OWN_TYPE, OWN_SEQ_NO };

static enum own_field own_field(struct slice name)
{
    static const char *const names[] = {"_id", "_index", "_type", "_seq_no"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_is(name, names[i]))
            return (enum own_field)(i + 1);
    return OWN_NONE;
}

static int refuse_kind(struct binder *binder, const struct aggregation *aggregation, struct slice type)
{
    problem_set(binder->problem, binder->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "Field [%.*s] of type [%.*s] is not supported for aggregation [%s]", SLICE_ARG(aggregation->field),
                SLICE_ARG(type), kind_names[aggregation->kind]);
    return QUERY_REFUSED;
}

static int bind_one(struct binder *binder, const struct aggregation *aggregation)
{
    const struct mapping_field *field = mapping_field(binder->index->mapping, aggregation->field);
    bool numeric = aggregation->kind < AGGREGATION_VALUE_COUNT;
    enum own_field own = own_field(aggregation->field);
    if (own != OWN_NONE)
        return numeric && own != OWN_SEQ_NO ? refuse_kind(binder, aggregation, aggregation->field) : 0;
    if (slice_is(aggregation->field, "_routing")) {
        problem_set(binder->problem, binder->arena, PROBLEM_ILLEGAL_ARGUMENT,
                    "Fielddata is not supported on field [_routing] of type [_routing]");
        return QUERY_REFUSED;
    }
    if (field == NULL)
        return 0;
    int r = sort__check_doc_values(binder, field);
    if (r != 0)
        return r;
    return numeric && field_value_kind(field) == VALUE_BYTES ? refuse_kind(binder, aggregation, field->type_name) : 0;
}

int aggregation_bind(struct binder *binder, const struct aggregation *list)
{
    int r = 0;
    for (const struct aggregation *a = list; a != NULL && r == 0; a = a->next) {
        r = bind_one(binder, a);
        if (r == 0)
            r = aggregation_bind(binder, a->below);
    }
    return r;
}

/* --- Counting ----------------------------------------------------------------------------------------------------- */

struct bucket {
    struct value key;
    const struct mapping_field *field; /* NULL: one of every document */
    uint64_t documents;
    struct aggregator *below;
};

struct metric {
    uint64_t values;
    double sum, low, high;
    struct map buckets;   /* by encoded key: struct bucket *; of CARDINALITY and TERMS */
};

struct aggregator {
    const struct search_context *context;
    const struct aggregation *list;
    size_t count;
    struct metric *metrics; /* one for each of the list */
};

struct aggregator *aggregator_new(const struct search_context *context, const struct aggregation *list)
{
    struct aggregator *aggregator = mem_zalloc(sizeof *aggregator);
    aggregator->context = context;
    aggregator->list = list;
    for (const struct aggregation *a = list; a != NULL; a = a->next)
        aggregator->count++;
    aggregator->metrics = mem_zalloc((aggregator->count + 1) * sizeof *aggregator->metrics);
    for (size_t i = 0; i < aggregator->count; i++)
        aggregator->metrics[i] =
            (struct metric){.low = INFINITY, .high = -INFINITY, .buckets = MAP_INIT};
    return aggregator;
}

static void bucket_free(struct bucket *bucket)
{
    aggregator_free(bucket->below);
    if (bucket->key.kind == VALUE_BYTES)
        mem_free((void *)(uintptr_t)bucket->key.bytes.data);
    mem_free(bucket);
}

void aggregator_free(struct aggregator *aggregator)
{
    if (aggregator == NULL)
        return;
    for (size_t i = 0; i < aggregator->count; i++) {
        struct slice key;
        void *bucket;
        for (size_t position = 0; map_next(&aggregator->metrics[i].buckets, &position, &key, &bucket);)
            bucket_free(bucket);
        map_deinit(&aggregator->metrics[i].buckets);
    }
    mem_free(aggregator->metrics);
    mem_free(aggregator);
}

static double number_of(const struct mapping_field *field, const struct value *value)
{
    if (value->kind == VALUE_F64)
        return value->f64;
    if (value->kind == VALUE_BYTES)
        return 0;
    bool scaled = field != NULL && field->type == FIELD_SCALED_FLOAT;
    return scaled ? (double)value->i64 * (1.0 / field->scaling_factor) : (double)value->i64; /* as there, to the last bit */
}

static struct slice value_bytes(const struct value *value)
{
    return value->kind == VALUE_BYTES ? value->bytes : (struct slice){(const char *)&value->i64, sizeof value->i64};
}

static int too_many(struct arena *arena, struct problem *ret_problem)
{
    problem_set(ret_problem, arena, PROBLEM_LIMIT_EXCEEDED,
                "Trying to create too many buckets. Must be less than or equal to: [%d].", AGGREGATION_BUCKETS_MAX);
    return QUERY_REFUSED;
}

static int add_to_bucket(const struct aggregator *aggregator, const struct aggregation *aggregation, struct metric *metric,
                         const struct mapping_field *field, const struct value *value, struct subject *subject,
                         struct arena *arena, struct problem *ret_problem)
{
    struct bucket *bucket = map_get(&metric->buckets, value_bytes(value));
    if (bucket == NULL) {
        if (metric->buckets.count >= AGGREGATION_BUCKETS_MAX)
            return too_many(arena, ret_problem);
        bucket = mem_zalloc(sizeof *bucket);
        bucket->key = *value;
        bucket->field = field;
        if (value->kind == VALUE_BYTES)
            bucket->key.bytes = (struct slice){mem_dup(value->bytes.data, value->bytes.len), value->bytes.len};
        bucket->below = aggregation->below != NULL ? aggregator_new(aggregator->context, aggregation->below) : NULL;
        map_put(&metric->buckets, value_bytes(value), bucket);
    }
    bucket->documents++;
    return bucket->below != NULL ? aggregator_add(bucket->below, subject, arena, ret_problem) : 0;
}

/* Which values of a document came before, so that each counts once: compared while they are few, then by hashing. */
#define SEEN_FEW 16

static bool seen_before(struct map *seen, const struct value *values, size_t count, size_t at)
{
    if (count > SEEN_FEW) {
        bool before = map_get(seen, value_bytes(&values[at])) != NULL;
        if (!before)
            map_put(seen, value_bytes(&values[at]), seen);
        return before;
    }
    for (size_t i = 0; i < at; i++) {
        if (value_compare(&values[i], &values[at]) == 0)
            return true;
    }
    return false;
}

/* The one value that every document has in such a field. */
static size_t own_value(struct subject *subject, enum own_field own, struct value *ret_value)
{
    const struct mapping_type *type = mapping_type_by_number(subject->index->mapping, subject->type);
    *ret_value = (struct value){.kind = VALUE_BYTES};
    if (own == OWN_ID)
        ret_value->bytes = subject->id;
    else if (own == OWN_INDEX)
        ret_value->bytes = subject->index->name;
    else if (own == OWN_TYPE)
        ret_value->bytes = type != NULL ? type->name : SLICE_LIT("_doc");
    else
        *ret_value = (struct value){.kind = VALUE_I64, .i64 = subject->doc->seq_no};
    return 1;
}

/* Texts and addresses of a document are a set to Elasticsearch, numbers are not. */
static int add_values(const struct aggregator *aggregator, const struct aggregation *aggregation, struct metric *metric,
                      const struct mapping_field *field, struct subject *subject, struct arena *arena,
                      struct problem *ret_problem)
{
    struct value own, *values = &own;
    size_t count = field == NULL ? own_value(subject, own_field(aggregation->field), &own)
                                 : subject_field(subject, field, &values);
    bool buckets = aggregation->kind == AGGREGATION_TERMS || aggregation->kind == AGGREGATION_CARDINALITY;
    struct map seen = MAP_INIT;
    int r = 0;
    for (size_t i = 0; i < count && r == 0 && account_take(subject->account, 20); i++) {
        bool once = buckets || values[i].kind == VALUE_BYTES;
        if (once && seen_before(&seen, values, count, i))
            continue;
        double number = number_of(field, &values[i]);
        metric->values++;
        metric->sum += number;
        metric->low = number < metric->low ? number : metric->low;
        metric->high = number > metric->high ? number : metric->high;
        if (buckets)
            r = add_to_bucket(aggregator, aggregation, metric, field, &values[i], subject, arena, ret_problem);
    }
    map_deinit(&seen);
    return r;
}

int aggregator_add(struct aggregator *aggregator, struct subject *subject, struct arena *arena,
                   struct problem *ret_problem)
{
    size_t i = 0;
    for (const struct aggregation *a = aggregator->list; a != NULL; a = a->next, i++) {
        const struct mapping_field *field = mapping_field(subject->index->mapping, a->field);
        bool own = own_field(a->field) != OWN_NONE;
        if (!own && (field == NULL || field_value_kind(field) == VALUE_NONE))
            continue;
        int r = add_values(aggregator, a, &aggregator->metrics[i], own ? NULL : field, subject, arena, ret_problem);
        if (r != 0)
            return r;
    }
    return 0;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static int by_key(const struct bucket *a, const struct bucket *b)
{
    return a->key.kind == b->key.kind ? value_compare(&a->key, &b->key) : (int)a->key.kind - (int)b->key.kind;
}

static int by_one_order(const struct bucket *a, const struct bucket *b, enum bucket_order order)
{
    if (order == BY_KEY_ASCENDING || order == BY_KEY_DESCENDING)
        return order == BY_KEY_ASCENDING ? by_key(a, b) : by_key(b, a);
    if (a->documents == b->documents)
        return 0;
    return (a->documents < b->documents) == (order == BY_COUNT_DESCENDING) ? 1 : -1;
}

/* By count unless told otherwise; what is equal then, by key. */
static int by_order(const void *left, const void *right, void *context)
{
    const struct bucket *a = *(struct bucket *const *)left, *b = *(struct bucket *const *)right;
    const struct aggregation *aggregation = context;
    int r = aggregation->order_count == 0 ? by_one_order(a, b, BY_COUNT_DESCENDING) : 0;
    for (size_t i = 0; i < aggregation->order_count && r == 0; i++)
        r = by_one_order(a, b, aggregation->orders[i]);
    return r != 0 ? r : by_key(a, b);
}

/* The field as the first index has it that has it at all: its type names the result, its format prints it. */
static const struct mapping_field *field_of(const struct aggregator *aggregator, const struct aggregation *aggregation)
{
    const struct mapping_field *field = NULL;
    for (size_t i = 0; i < aggregator->context->index_count && field == NULL; i++)
        field = mapping_field(aggregator->context->indices[i].mapping, aggregation->field);
    return field;
}

static bool has_own_text(const struct mapping_field *field)
{
    return field != NULL && (field->type == FIELD_DATE || field->type == FIELD_BOOLEAN);
}

/* A number as the field's values are written: a date in its own format. */
static void write_text(struct json_writer *w, const char *key, const struct mapping_field *field, double number, bool bare)
{
    struct buf text = BUF_INIT(256);
    if (field->type == FIELD_BOOLEAN)
        buf_printf(&text, "%s", number != 0 ? "true" : "false");
    else if (field->format != NULL)
        date_print(&text, field->format, (int64_t)number);
    else
        date_print_iso(&text, (int64_t)number);
    json_key(w, key);
    if (bare && field->type == FIELD_BOOLEAN)
        json_raw(w, buf_view(&text));
    else
        json_string(w, buf_view(&text));
    buf_deinit(&text);
}

static void write_value(struct json_writer *w, double number, const struct mapping_field *field)
{
    json_key(w, "value");
    json_double(w, number);
    if (has_own_text(field))
        write_text(w, "value_as_string", field, number, false);
}

static void write_bucket_key(struct json_writer *w, const struct bucket *bucket)
{
    const struct mapping_field *field = bucket->field;
    json_key(w, "key");
    if (field != NULL && field->type == FIELD_IP)
        query__write_ip(w->buf, bucket->key.bytes);
    else if (bucket->key.kind == VALUE_BYTES)
        json_string(w, bucket->key.bytes);
    else if (bucket->key.kind == VALUE_F64)
        json_double(w, bucket->key.f64);
    else if (field != NULL && field->type == FIELD_SCALED_FLOAT)
        json_double(w, number_of(field, &bucket->key));
    else
        json_i64(w, bucket->key.i64);
    w->comma = true;
    if (has_own_text(field))
        write_text(w, "key_as_string", field, (double)bucket->key.i64, false);
}

static void write_list(struct json_writer *w, const struct aggregator *aggregator);

static void write_bucket(struct json_writer *w, const struct aggregation *aggregation, const struct bucket *bucket)
{
    json_begin(w, '{');
    write_bucket_key(w, bucket);
    json_key(w, "doc_count");
    json_u64(w, bucket->documents);
    if (aggregation->show_error) {
        json_key(w, "doc_count_error_upper_bound");
        json_i64(w, 0);
    }
    if (bucket->below != NULL)
        write_list(w, bucket->below);
    json_end(w, '}');
}

static void write_terms(struct json_writer *w, const struct aggregation *aggregation, const struct metric *metric)
{
    struct bucket **buckets = mem_alloc((metric->buckets.count + 1) * sizeof(struct bucket *));
    size_t count = 0;
    uint64_t others = 0;
    struct slice key;
    void *bucket;
    for (size_t position = 0; map_next(&metric->buckets, &position, &key, &bucket);) {
        uint64_t documents = ((struct bucket *)bucket)->documents;
        if (documents >= aggregation->min_doc_count && documents >= aggregation->shard_min_doc_count)
            buckets[count++] = bucket;
    }
    qsort_r(buckets, count, sizeof *buckets, by_order, (void *)(uintptr_t)aggregation);
    for (size_t i = aggregation->size; i < count; i++)
        others += buckets[i]->documents;
    json_key(w, "doc_count_error_upper_bound");
    json_i64(w, 0);
    json_key(w, "sum_other_doc_count");
    json_u64(w, others);
    json_key(w, "buckets");
    json_begin(w, '[');
    for (size_t i = 0; i < count && i < aggregation->size; i++)
        write_bucket(w, aggregation, buckets[i]);
    json_end(w, ']');
    mem_free(buckets);
}

static void write_extreme(struct json_writer *w, const struct metric *metric, const char *key, double number)
{
    json_key(w, key);
    if (metric->values > 0)
        json_double(w, number);
    else
        json_null(w);
}

static void write_single(struct json_writer *w, const struct metric *metric, double number,
                         const struct mapping_field *field)
{
    if (metric->values > 0)
        write_value(w, number, field);
    else
        write_extreme(w, metric, "value", number);
}

static void write_stats(struct json_writer *w, const struct metric *metric, const struct mapping_field *field)
{
    double average = metric->sum / (double)metric->values;
    json_key(w, "count");
    json_u64(w, metric->values);
    write_extreme(w, metric, "min", metric->low);
    write_extreme(w, metric, "max", metric->high);
    write_extreme(w, metric, "avg", average);
    json_key(w, "sum");
    json_double(w, metric->sum);
    if (metric->values == 0 || !has_own_text(field))
        return;
    write_text(w, "min_as_string", field, metric->low, true);
    write_text(w, "max_as_string", field, metric->high, true);
    write_text(w, "avg_as_string", field, average, true);
    write_text(w, "sum_as_string", field, metric->sum, true);
}

static void write_one(struct json_writer *w, const struct aggregation *aggregation, const struct metric *metric,
                      const struct mapping_field *field)
{
    switch (aggregation->kind) {
    case AGGREGATION_TERMS: write_terms(w, aggregation, metric); break;
    case AGGREGATION_MIN: write_single(w, metric, metric->low, field); break;
    case AGGREGATION_MAX: write_single(w, metric, metric->high, field); break;
    case AGGREGATION_AVG: write_single(w, metric, metric->sum / (double)metric->values, field); break;
    case AGGREGATION_SUM: write_value(w, metric->sum, field); break;
    case AGGREGATION_STATS: write_stats(w, metric, field); break;
    default:
        json_key(w, "value");
        json_u64(w, aggregation->kind == AGGREGATION_CARDINALITY ? metric->buckets.count : metric->values);
        break;
    }
}

/* What typed_keys puts before a name: the kind, of terms that of their values too. */
static const char *typed_name(const struct aggregation *aggregation, const struct mapping_field *field)
{
    if (aggregation->kind != AGGREGATION_TERMS)
        return kind_names[aggregation->kind];
    if (field == NULL)
        return own_field(aggregation->field) == OWN_SEQ_NO ? "lterms" : "sterms";
    enum value_kind kind = field_value_kind(field);
    bool fraction = kind == VALUE_F64 || field->type == FIELD_SCALED_FLOAT;
    return kind == VALUE_BYTES ? "sterms" : fraction ? "dterms" : "lterms";
}

static void write_list(struct json_writer *w, const struct aggregator *aggregator)
{
    size_t i = 0;
    for (const struct aggregation *a = aggregator->list; a != NULL; a = a->next, i++) {
        const struct mapping_field *field = field_of(aggregator, a);
        struct buf name = BUF_INIT(BUF_UNLIMITED);
        if (aggregator->context->typed_keys)
            buf_printf(&name, "%s#", typed_name(a, field));
        buf_slice(&name, a->name);
        json_key_slice(w, buf_view(&name));
        buf_deinit(&name);
        json_begin(w, '{');
        if (a->meta.len > 0) {
            json_key(w, "meta");
            json_raw(w, a->meta);
        }
        write_one(w, a, &aggregator->metrics[i], field);
        json_end(w, '}');
    }
}

void aggregator_write(const struct aggregator *aggregator, struct buf *buf)
{
    struct json_writer w;
    json_writer_init(&w, buf);
    json_begin(&w, '{');
    write_list(&w, aggregator);
    json_end(&w, '}');
}
