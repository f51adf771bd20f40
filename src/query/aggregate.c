/* SPDX-License-Identifier: Apache-2.0 */
/* The simple aggregations. Buckets are kept in order of their first document and sorted when they are
 * written. */
#include "query/aggregate.h"

#include "base/map.h"
#include "mapping/date.h"
#include "query/matcher.h"
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

enum bucket_order { BY_COUNT_DESCENDING, BY_COUNT_ASCENDING, BY_KEY_ASCENDING, BY_KEY_DESCENDING };

struct aggregation {
    struct aggregation *next;
    struct slice name;
    enum aggregation_kind kind;
    struct slice field;
    unsigned size;
    unsigned min_doc_count;
    enum bucket_order order;
    struct aggregation *below; /* of terms */
};

/* --- Parsing ------------------------------------------------------------------------------------------------------ */

static int take_order(struct query_parser *parser, yyjson_val *value, struct aggregation *aggregation)
{
    yyjson_val *by_key = json_get_lit(value, "_key");
    if (by_key == NULL)
        by_key = json_get_lit(value, "_term");
    yyjson_val *by_count = json_get_lit(value, "_count");
    if (by_key != NULL)
        aggregation->order = slice_is(json_slice(by_key), "desc") ? BY_KEY_DESCENDING : BY_KEY_ASCENDING;
    else if (by_count != NULL)
        aggregation->order = slice_is(json_slice(by_count), "asc") ? BY_COUNT_ASCENDING : BY_COUNT_DESCENDING;
    else
        return query__refuse(parser, value, false, PROBLEM_PARSING,
                             "[terms] order is supported by [_key] and [_count] only");
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
    if (slice_is(option, "shard_size") || slice_is(option, "precision_threshold") ||
        slice_is(option, "show_term_doc_count_error"))
        return 0;
    return query__refuse(parser, value, false, PROBLEM_PARSING, "[%s] aggregation does not support [%.*s] here",
                         kind_names[aggregation->kind], SLICE_ARG(option));
}

static int take_kind(struct query_parser *parser, struct slice name, yyjson_val *value, struct aggregation *aggregation)
{
    size_t kind = 0;
    while (kind < sizeof kind_names / sizeof *kind_names && !slice_is(name, kind_names[kind]))
        kind++;
    if (kind == sizeof kind_names / sizeof *kind_names)
        return query__refuse(parser, value, false, PROBLEM_PARSING, "Unknown aggregation type [%.*s]", SLICE_ARG(name));
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

/* --- Counting ----------------------------------------------------------------------------------------------------- */

struct bucket {
    struct value key;
    enum field_type type;
    double scale;
    uint64_t documents;
    struct aggregator *below;
};

struct metric {
    uint64_t values;
    double sum, low, high;
    enum field_type type; /* of the field last seen */
    struct map buckets;   /* by encoded key: struct bucket *; of CARDINALITY and TERMS */
};

struct aggregator {
    const struct aggregation *list;
    size_t count;
    struct metric *metrics; /* one for each of the list */
};

struct aggregator *aggregator_new(const struct aggregation *list)
{
    struct aggregator *aggregator = mem_zalloc(sizeof *aggregator);
    aggregator->list = list;
    for (const struct aggregation *a = list; a != NULL; a = a->next)
        aggregator->count++;
    aggregator->metrics = mem_zalloc((aggregator->count + 1) * sizeof *aggregator->metrics);
    for (size_t i = 0; i < aggregator->count; i++)
        aggregator->metrics[i] =
            (struct metric){.low = INFINITY, .high = -INFINITY, .type = FIELD_LONG, .buckets = MAP_INIT};
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
    return field->type == FIELD_SCALED_FLOAT ? (double)value->i64 / field->scaling_factor : (double)value->i64;
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

static int add_to_bucket(const struct aggregation *aggregation, struct metric *metric,
                         const struct mapping_field *field, const struct value *value, struct subject *subject,
                         struct arena *arena, struct problem *ret_problem)
{
    struct bucket *bucket = map_get(&metric->buckets, value_bytes(value));
    if (bucket == NULL) {
        if (metric->buckets.count >= AGGREGATION_BUCKETS_MAX)
            return too_many(arena, ret_problem);
        bucket = mem_zalloc(sizeof *bucket);
        bucket->key = *value;
        bucket->type = field->type;
        bucket->scale = field->type == FIELD_SCALED_FLOAT ? field->scaling_factor : 1;
        if (value->kind == VALUE_BYTES)
            bucket->key.bytes = (struct slice){mem_dup(value->bytes.data, value->bytes.len), value->bytes.len};
        bucket->below = aggregation->below != NULL ? aggregator_new(aggregation->below) : NULL;
        map_put(&metric->buckets, value_bytes(value), bucket);
    }
    bucket->documents++;
    return bucket->below != NULL ? aggregator_add(bucket->below, subject, arena, ret_problem) : 0;
}

static bool seen_before(const struct value *values, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (value_compare(&values[i], &values[at]) == 0)
            return true;
    }
    return false;
}

static int add_values(const struct aggregation *aggregation, struct metric *metric, const struct mapping_field *field,
                      struct subject *subject, struct arena *arena, struct problem *ret_problem)
{
    struct value *values = NULL;
    size_t count = subject_field(subject, field, &values);
    bool buckets = aggregation->kind == AGGREGATION_TERMS || aggregation->kind == AGGREGATION_CARDINALITY;
    metric->type = field->type;
    for (size_t i = 0; i < count; i++) {
        double number = number_of(field, &values[i]);
        metric->values++;
        metric->sum += number;
        metric->low = number < metric->low ? number : metric->low;
        metric->high = number > metric->high ? number : metric->high;
        if (!buckets || seen_before(values, i))
            continue;
        int r = add_to_bucket(aggregation, metric, field, &values[i], subject, arena, ret_problem);
        if (r != 0)
            return r;
    }
    return 0;
}

int aggregator_add(struct aggregator *aggregator, struct subject *subject, struct arena *arena,
                   struct problem *ret_problem)
{
    size_t i = 0;
    for (const struct aggregation *a = aggregator->list; a != NULL; a = a->next, i++) {
        const struct mapping_field *field = mapping_field(subject->index->mapping, a->field);
        if (field == NULL || field_value_kind(field) == VALUE_NONE)
            continue;
        bool numeric = a->kind < AGGREGATION_VALUE_COUNT;
        if (field->type == FIELD_TEXT || (numeric && field_value_kind(field) == VALUE_BYTES)) {
            problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT,
                        "Field [%.*s] of type [%.*s] is not supported for aggregation [%s]", SLICE_ARG(field->path),
                        SLICE_ARG(field->type_name), kind_names[a->kind]);
            return QUERY_REFUSED;
        }
        int r = add_values(a, &aggregator->metrics[i], field, subject, arena, ret_problem);
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

static int by_order(const void *left, const void *right, void *context)
{
    const struct bucket *a = *(struct bucket *const *)left, *b = *(struct bucket *const *)right;
    enum bucket_order order = *(const enum bucket_order *)context;
    if (order == BY_KEY_ASCENDING || order == BY_KEY_DESCENDING)
        return order == BY_KEY_ASCENDING ? by_key(a, b) : by_key(b, a);
    if (a->documents != b->documents)
        return (a->documents < b->documents) == (order == BY_COUNT_DESCENDING) ? 1 : -1;
    return by_key(a, b);
}

static void write_number(struct json_writer *w, const char *key, double number, const struct metric *metric)
{
    json_key(w, key);
    json_double(w, number);
    if (metric->type != FIELD_DATE)
        return;
    struct buf text = BUF_INIT(64);
    date_print_iso(&text, (int64_t)number);
    json_key(w, strcmp(key, "value") == 0 ? "value_as_string" : "as_string");
    json_string(w, buf_view(&text));
    buf_deinit(&text);
}

static void write_bucket_key(struct json_writer *w, const struct bucket *bucket)
{
    json_key(w, "key");
    if (bucket->key.kind == VALUE_BYTES)
        json_string(w, bucket->key.bytes);
    else if (bucket->key.kind == VALUE_F64)
        json_double(w, bucket->key.f64);
    else if (bucket->type == FIELD_SCALED_FLOAT)
        json_double(w, (double)bucket->key.i64 / bucket->scale);
    else
        json_i64(w, bucket->key.i64);
    if (bucket->type != FIELD_DATE && bucket->type != FIELD_BOOLEAN)
        return;
    struct buf text = BUF_INIT(64);
    if (bucket->type == FIELD_DATE)
        date_print_iso(&text, bucket->key.i64);
    else
        buf_printf(&text, "%s", bucket->key.i64 != 0 ? "true" : "false");
    json_key(w, "key_as_string");
    json_string(w, buf_view(&text));
    buf_deinit(&text);
}

static void write_list(struct json_writer *w, const struct aggregator *aggregator);

static void write_bucket(struct json_writer *w, const struct bucket *bucket)
{
    json_begin(w, '{');
    write_bucket_key(w, bucket);
    json_key(w, "doc_count");
    json_u64(w, bucket->documents);
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
        if (((struct bucket *)bucket)->documents >= aggregation->min_doc_count)
            buckets[count++] = bucket;
    }
    enum bucket_order order = aggregation->order;
    qsort_r(buckets, count, sizeof *buckets, by_order, &order);
    for (size_t i = aggregation->size; i < count; i++)
        others += buckets[i]->documents;
    json_key(w, "doc_count_error_upper_bound");
    json_i64(w, 0);
    json_key(w, "sum_other_doc_count");
    json_u64(w, others);
    json_key(w, "buckets");
    json_begin(w, '[');
    for (size_t i = 0; i < count && i < aggregation->size; i++)
        write_bucket(w, buckets[i]);
    json_end(w, ']');
    mem_free(buckets);
}

static void write_extremes(struct json_writer *w, const struct metric *metric, const char *key, double number)
{
    if (metric->values > 0) {
        write_number(w, key, number, metric);
        return;
    }
    json_key(w, key);
    json_null(w);
}

static void write_stats(struct json_writer *w, const struct metric *metric)
{
    json_key(w, "count");
    json_u64(w, metric->values);
    write_extremes(w, metric, "min", metric->low);
    write_extremes(w, metric, "max", metric->high);
    write_extremes(w, metric, "avg", metric->sum / (double)metric->values);
    json_key(w, "sum");
    json_double(w, metric->sum);
}

static void write_one(struct json_writer *w, const struct aggregation *aggregation, const struct metric *metric)
{
    switch (aggregation->kind) {
    case AGGREGATION_TERMS: write_terms(w, aggregation, metric); break;
    case AGGREGATION_MIN: write_extremes(w, metric, "value", metric->low); break;
    case AGGREGATION_MAX: write_extremes(w, metric, "value", metric->high); break;
    case AGGREGATION_AVG: write_extremes(w, metric, "value", metric->sum / (double)metric->values); break;
    case AGGREGATION_SUM: write_number(w, "value", metric->sum, metric); break;
    case AGGREGATION_STATS: write_stats(w, metric); break;
    default:
        json_key(w, "value");
        json_u64(w, aggregation->kind == AGGREGATION_CARDINALITY ? metric->buckets.count : metric->values);
        break;
    }
}

static void write_list(struct json_writer *w, const struct aggregator *aggregator)
{
    size_t i = 0;
    for (const struct aggregation *a = aggregator->list; a != NULL; a = a->next, i++) {
        json_key_slice(w, a->name);
        json_begin(w, '{');
        write_one(w, a, &aggregator->metrics[i]);
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
