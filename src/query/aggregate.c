/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregations: binding to each index of a search, and counting documents. See
 * aggregate_internal.h.
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/budget.h"
#include "json/each.h"
#include "mapping/date.h"
#include "base/number_format.h"
#include "query/aggregate_internal.h"
#include "query/metadata.h"
#include "query/rewrite.h"
#include "query/sort.h"

/* --- Binding ------------------------------------------------------------------------------------------------------ */

const struct metadata_field *aggregation__metadata(const struct aggregation *aggregation)
{
    const struct metadata_field *field = metadata_find(aggregation->field);
    return metadata_has_values(field) ? field : NULL;
}

static const struct aggregation *find_aggregation(const struct aggregation *list, struct slice name)
{
    while (list != NULL && !slice_equal(list->name, name))
        list = list->next;
    return list;
}

static bool is_one_of(const struct aggregation *aggregation, unsigned kinds)
{
    return (kind_bit(aggregation->kind) & kinds) != 0;
}

static int refuse_aggregation(struct binder *binder, enum problem_type type, const char *format, ...) TL_PRINTF(3, 4);
static int refuse_aggregation(struct binder *binder, enum problem_type type, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    *binder->problem = (struct problem){.type = type, .reason = arena_vprintf(binder->arena, format, arguments)};
    va_end(arguments);
    return QUERY_REFUSED;
}

/*
 * Replaces a "failed to create query" problem by its cause: a value of an aggregation is not part
 * of a query.
 */
static int unwrap_problem(struct binder *binder, int r)
{
    if (r == QUERY_REFUSED && binder->problem->type == PROBLEM_QUERY_SHARD && binder->problem->caused_by != NULL)
        *binder->problem = *binder->problem->caused_by;
    return r;
}

static int refuse_type(struct binder *binder, const struct aggregation *aggregation, struct slice type)
{
    return refuse_aggregation(binder, PROBLEM_ILLEGAL_ARGUMENT,
                              "Field [%.*s] of type [%.*s] is not supported for aggregation [%s]",
                              SLICE_ARG(aggregation->field), SLICE_ARG(type), aggregation__names[aggregation->kind]);
}

/*
 * Parses a value as the field does. Without a field it is a number or text, depending on the kind
 * of aggregation.
 */
static int bind_value(struct binder *binder, const struct aggregation *aggregation, const struct mapping_field *field,
                      yyjson_val *json, struct field_value *ret_value)
{
    struct slice text = query__scalar_text(binder->arena, json);
    struct bound_query *matcher;
    double number;
    bool numeric = is_one_of(aggregation, KINDS_NUMERIC | KINDS_HISTOGRAM | KINDS_RANGE);
    if (field != NULL) {
        int r = unwrap_problem(binder, bind__term(binder, field, json, 1, false, &matcher));
        if (r != 0)
            return r;
        if (matcher->kind == BOUND_TERMS && matcher->terms.count == 1) {
            *ret_value = matcher->terms.values[0];
            return 0;
        }
        if (matcher->kind == BOUND_RANGE) {
            *ret_value = matcher->range.low;
            return 0;
        }
        numeric = field_value_kind(field) != FIELD_VALUE_BYTES; /* e.g. 1.5 in a long */
    }
    if (!numeric) {
        *ret_value = (struct field_value){.kind = FIELD_VALUE_BYTES, .bytes = text};
        return 0;
    }
    if (!slice_to_double(text, &number))
        return refuse_aggregation(binder, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(text));
    *ret_value = (struct field_value){.kind = FIELD_VALUE_F64, .f64 = number};
    return 0;
}

bool aggregation__is_of_dates(const struct aggregation *aggregation, const struct mapping_field *field)
{
    const struct metadata_field *metadata = aggregation__metadata(aggregation);
    if (metadata != NULL && (metadata->traits & METADATA_NUMERIC) != 0)
        return false;
    return field == NULL ? aggregation->kind == AGGREGATION_DATE_RANGE : field->type == FIELD_DATE;
}

/* Parses a date in the aggregation's or the field's format. */
static int bind_date(struct binder *binder, const struct aggregation *aggregation, const struct mapping_field *field,
                     struct slice text, int64_t *ret_millis)
{
    const struct date_format *format = aggregation->format;
    if (format == NULL)
        format = field != NULL && field->format != NULL ? field->format : date_format_default(DATE_RULES_7_10);
    if (date_parse_math(format, text, binder->context->now_ms, false, aggregation->rounding.zone, ret_millis) != 0)
        return unwrap_problem(binder, bind__refuse_date(binder, text, date_format_text(format)));
    return 0;
}

/* Parses the value of documents that have none: a date by the aggregation's format, if it has one, and in its zone. */
static int bind_missing(struct binder *binder, const struct aggregation *aggregation, const struct mapping_field *field,
                        struct field_value *ret_value)
{
    if (field == NULL || field->type != FIELD_DATE)
        return bind_value(binder, aggregation, field, aggregation->missing, ret_value);
    *ret_value = (struct field_value){.field = field->number, .kind = FIELD_VALUE_I64};
    return bind_date(binder, aggregation, field, query__scalar_text(binder->arena, aggregation->missing),
                     &ret_value->i64);
}

/*
 * Parses the end of a range or a bound: a number, or a date in the aggregation's or the field's
 * format. NULL: `otherwise`.
 */
static int bind_limit(struct binder *binder, const struct aggregation *aggregation, const struct mapping_field *field,
                      yyjson_val *json, bool dates, double otherwise, double *ret_limit)
{
    struct slice text = json == NULL ? SLICE_LIT("") : query__scalar_text(binder->arena, json);
    int64_t millis = 0;
    *ret_limit = otherwise;
    if (json == NULL)
        return 0;
    bool number = yyjson_is_num(json) && aggregation->kind != AGGREGATION_DATE_RANGE; /* there 2020 is a year */
    if (!dates || number) {
        if (!slice_to_double(text, ret_limit))
            return refuse_aggregation(binder, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(text));
        return 0;
    }
    int r = bind_date(binder, aggregation, field, text, &millis);
    *ret_limit = (double)millis;
    return r;
}

static int bind_bounds(struct binder *binder, const struct aggregation *aggregation, const struct mapping_field *field,
                       struct bounds *bounds)
{
    bool dates = aggregation->kind == AGGREGATION_DATE_HISTOGRAM;
    int r = bind_limit(binder, aggregation, field, bounds->low_json, dates, -INFINITY, &bounds->low);
    return r == 0 ? bind_limit(binder, aggregation, field, bounds->high_json, dates, INFINITY, &bounds->high) : r;
}

/* Checks bounds of a date_histogram. Those of a histogram are checked by the parser. */
static int check_order(struct binder *binder, const struct aggregation *aggregation, const struct bounds *bounds,
                       const char *name)
{
    if (bounds->low_json == NULL || bounds->high_json == NULL || bounds->low <= bounds->high)
        return 0;
    return refuse_aggregation(binder, PROBLEM_ILLEGAL_ARGUMENT,
                              "[%s.min][%lld] cannot be greater than [%s.max][%lld] for histogram aggregation [%.*s]",
                              name, (long long)bounds->low, name, (long long)bounds->high,
                              SLICE_ARG(aggregation->name));
}

static int by_ends(const void *left, const void *right)
{
    const struct agg_range *a = left, *b = right;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

/* Converts ranges and bounds to numbers, once: by the first index that has the field. */
static int bind_limits(struct binder *binder, struct aggregation *aggregation, const struct mapping_field *field)
{
    bool dates = aggregation__is_of_dates(aggregation, field);
    int r = bind_bounds(binder, aggregation, field, &aggregation->extended);
    if (r == 0)
        r = bind_bounds(binder, aggregation, field, &aggregation->hard);
    if (r == 0 && aggregation->kind == AGGREGATION_DATE_HISTOGRAM)
        r = check_order(binder, aggregation, &aggregation->extended, "extended_bounds");
    if (r == 0 && aggregation->kind == AGGREGATION_DATE_HISTOGRAM)
        r = check_order(binder, aggregation, &aggregation->hard, "hard_bounds");
    for (size_t i = 0; i < aggregation->range_count && r == 0; i++) {
        struct agg_range *range = &aggregation->ranges[i];
        r = bind_limit(binder, aggregation, field, range->from_json, dates, -INFINITY, &range->from);
        if (r == 0)
            r = bind_limit(binder, aggregation, field, range->to_json, dates, INFINITY, &range->to);
    }
    if (r == 0 && aggregation->range_count > 0)
        qsort(aggregation->ranges, aggregation->range_count, sizeof *aggregation->ranges, by_ends);
    aggregation->limits_bound = field != NULL;
    return r;
}

static int bind_interval(struct binder *binder, const struct aggregation *aggregation)
{
    if (is_one_of(aggregation, KINDS_RANGE) && aggregation->range_count == 0)
        return refuse_aggregation(binder, PROBLEM_ILLEGAL_ARGUMENT, "No [ranges] specified for the [%.*s] aggregation",
                                  SLICE_ARG(aggregation->name));
    if (aggregation->kind == AGGREGATION_HISTOGRAM && !aggregation->interval_given)
        return refuse_aggregation(binder, PROBLEM_ILLEGAL_ARGUMENT, "interval must be positive, got: 0.0");
    if (aggregation->kind != AGGREGATION_DATE_HISTOGRAM)
        return 0;
    if (!aggregation->interval_given)
        return refuse_aggregation(binder, PROBLEM_ILLEGAL_ARGUMENT,
                                  "Invalid interval specified, must be non-null and non-empty");
    if (aggregation->rounding.unit == ROUND_FIXED && aggregation->rounding.millis <= 0)
        return refuse_aggregation(binder, PROBLEM_ILLEGAL_ARGUMENT, "Zero or negative time interval not supported");
    return 0;
}

static int bind_inclusion(struct binder *binder, const struct aggregation *aggregation,
                          const struct mapping_field *field, const struct term_inclusion *inclusion,
                          const struct term_pattern **ret_pattern, struct field_value **ret_values, size_t *ret_count)
{
    bool text = field == NULL || field_value_kind(field) == FIELD_VALUE_BYTES;
    struct slice reason;
    size_t i, count;
    yyjson_val *item;
    if (inclusion->regexp.data != NULL) {
        if (field != NULL && field->type == FIELD_IP)
            return refuse_aggregation(
                binder, PROBLEM_AGGREGATION_EXECUTION,
                "Aggregation [%.*s] cannot support regular expression style include/exclude settings as they can only "
                "be applied to string fields. Use an array of values for include/exclude clauses",
                SLICE_ARG(aggregation->name));
        if (!text)
            return refuse_aggregation(
                binder, PROBLEM_AGGREGATION_EXECUTION,
                "Aggregation [%.*s] cannot support regular expression style include/exclude settings as they can "
                "only be applied to string fields. Use an array of numeric values for include/exclude clauses used "
                "to filter numeric fields",
                SLICE_ARG(aggregation->name));
        *ret_pattern = term_pattern_new_regexp(binder->arena, inclusion->regexp, false, &reason);
        return *ret_pattern != NULL ? 0
                                    : refuse_aggregation(binder, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(reason));
    }
    if (inclusion->values == NULL)
        return 0;
    *ret_values = arena_zalloc(binder->arena, (yyjson_arr_size(inclusion->values) + 1) * sizeof **ret_values);
    json_arr_foreach (inclusion->values, i, count, item) {
        int r = bind_value(binder, aggregation, field, item, &(*ret_values)[(*ret_count)++]);
        if (r != 0)
            return r;
    }
    return 0;
}

static int bind_filters(struct binder *binder, const struct aggregation *aggregation, struct bound_aggregation *bound)
{
    bool scores = binder->scores;
    int r = 0;
    bound->filters = arena_zalloc(binder->arena, (aggregation->filter_count + 1) * sizeof(struct bound_query *));
    binder->scores = false;
    for (size_t i = 0; i < aggregation->filter_count && r == 0; i++)
        r = unwrap_problem(binder, query_bind(binder, aggregation->filters[i].query, &bound->filters[i]));
    binder->scores = scores;
    return r;
}

static int check_field(struct binder *binder, const struct aggregation *aggregation, const struct mapping_field *field)
{
    bool numeric = is_one_of(aggregation, KINDS_NUMERIC | KINDS_HISTOGRAM | KINDS_RANGE);
    const struct metadata_field *metadata = field == NULL ? metadata_find(aggregation->field) : NULL;
    if (metadata != NULL && !metadata_has_values(metadata))
        return refuse_aggregation(binder, PROBLEM_ILLEGAL_ARGUMENT, "%.*s",
                                  SLICE_ARG(metadata_refusal(binder->arena, metadata)));
    if (metadata != NULL)
        return numeric && (metadata->traits & METADATA_NUMERIC) == 0
                   ? refuse_type(binder, aggregation, aggregation->field)
                   : 0;
    if (field == NULL)
        return 0;
    if (aggregation->zone_given && field->type != FIELD_DATE && binder->context->dialect == DIALECT_7)
        return refuse_aggregation(binder, PROBLEM_ILLEGAL_ARGUMENT,
                                  "Field [%.*s] of type [%.*s] does not support custom time zones",
                                  SLICE_ARG(field->path), SLICE_ARG(field->type_name));
    int r = sort__check_doc_values(binder, field);
    if (r == 0 && field_value_kind(field) == FIELD_VALUE_BYTES && aggregation->hint.data != NULL &&
        !slice_is(aggregation->hint, "map") && !slice_is(aggregation->hint, "global_ordinals"))
        return refuse_aggregation(binder, PROBLEM_ILLEGAL_ARGUMENT,
                                  "Unknown `execution_hint`: [%.*s], expected any of [map, global_ordinals]",
                                  SLICE_ARG(aggregation->hint));
    return r == 0 && numeric && field_value_kind(field) == FIELD_VALUE_BYTES
               ? refuse_type(binder, aggregation, field->type_name)
               : r;
}

static int refuse_formats(struct binder *binder, const struct aggregation *aggregation, struct slice type)
{
    return refuse_aggregation(binder, PROBLEM_ILLEGAL_ARGUMENT,
                              "Field [%.*s] of type [%.*s] does not support custom formats",
                              SLICE_ARG(aggregation->field), SLICE_ARG(type));
}

/* Parses `format`, which is a date or number format depending on the field. */
static int bind_format(struct binder *binder, struct aggregation *aggregation, const struct mapping_field *field)
{
    struct slice text = aggregation->format_text, why;
    if (text.data == NULL)
        return 0;
    if (aggregation__metadata(aggregation) != NULL)
        return refuse_formats(binder, aggregation, aggregation->field);
    if (field != NULL && field->type == FIELD_DATE) {
        if (date_format_parse(binder->arena, text, DATE_RULES_7_10, &aggregation->format) == 0)
            return 0;
        date_format_describe_error(binder->arena, text, binder->problem);
        return QUERY_REFUSED;
    }
    if (field != NULL && (field_value_kind(field) == FIELD_VALUE_BYTES || field->type == FIELD_BOOLEAN))
        return refuse_formats(binder, aggregation, field->type_name);
    if (number_format_parse(binder->arena, text, &aggregation->numbers, &why) != 0)
        return refuse_aggregation(binder, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(why));
    return 0;
}

static int bind_field(struct binder *binder, struct aggregation *aggregation, struct bound_aggregation *bound)
{
    const struct mapping_field *field = mapping_field(binder->index->mapping, aggregation->field);
    int r = bind_format(binder, aggregation, field);
    if (r == 0)
        r = check_field(binder, aggregation, field);
    if (aggregation__metadata(aggregation) != NULL)
        field = NULL;
    bound->field = field != NULL && field_value_kind(field) != FIELD_VALUE_NONE ? field : NULL;
    if (r == 0)
        r = bind_interval(binder, aggregation);
    if (r == 0 && !aggregation->limits_bound)
        r = bind_limits(binder, aggregation, bound->field);
    if (r == 0 && aggregation->missing != NULL) {
        r = bind_missing(binder, aggregation, bound->field, &bound->missing);
        bound->has_missing = true;
    }
    if (r == 0 && aggregation->include.given)
        r = bind_inclusion(binder, aggregation, bound->field, &aggregation->include, &bound->include, &bound->included,
                           &bound->included_count);
    if (r == 0 && aggregation->exclude.given)
        r = bind_inclusion(binder, aggregation, bound->field, &aggregation->exclude, &bound->exclude, &bound->excluded,
                           &bound->excluded_count);
    return r;
}

/* --- Orders ------------------------------------------------------------------------------------------------------- */

static int refuse_path(struct binder *binder, const struct bucket_order *order, const char *format, ...)
    TL_PRINTF(3, 4);
static int refuse_path(struct binder *binder, const struct bucket_order *order, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct problem *cause = arena_zalloc(binder->arena, sizeof *cause);
    cause->type = PROBLEM_ILLEGAL_ARGUMENT;
    cause->reason = arena_vprintf(binder->arena, format, arguments);
    va_end(arguments);
    int r = refuse_aggregation(binder, PROBLEM_AGGREGATION_EXECUTION, "Invalid aggregation order path [%.*s]. %.*s",
                               SLICE_ARG(order->path), SLICE_ARG(cause->reason));
    binder->problem->caused_by = cause;
    return r;
}

#define PATH_RULE                                                                                          \
    "Buckets can only be sorted on a sub-aggregator path that is built out of zero or more single-bucket " \
    "aggregations within the path and a final single-bucket or a metrics aggregation at the path end."

/* Returns: the only part of a single-value metric. */
static enum result_part only_part(enum aggregation_kind kind)
{
    switch (kind) {
    case AGGREGATION_MIN: return PART_MIN;
    case AGGREGATION_MAX: return PART_MAX;
    case AGGREGATION_AVG: return PART_AVG;
    case AGGREGATION_SUM: return PART_SUM;
    case AGGREGATION_CARDINALITY: return PART_DISTINCT;
    default: return PART_COUNT;
    }
}

/* Resolves the part of an order's path, for the last aggregation of the path. */
static int bind_part(struct binder *binder, const struct aggregation *last, struct slice part,
                     struct bucket_order *order)
{
    static const char *const parts[] = {"count", "min", "max", "avg", "sum"};
    if (is_one_of(last, KINDS_SINGLE)) {
        order->part = PART_DOCUMENTS;
        if (part.data == NULL || slice_is(part, "doc_count"))
            return 0;
        return refuse_path(
            binder, order,
            "Ordering on a single-bucket aggregation can only be done on its doc_count. Either drop "
            "the key (a la \"%.*s\") or change it to \"doc_count\" (a la \"%.*s.doc_count\") or \"key\".",
            SLICE_ARG(last->name), SLICE_ARG(last->name));
    }
    if (!is_one_of(last, KINDS_METRIC))
        return refuse_path(binder, order, PATH_RULE);
    if (last->kind != AGGREGATION_STATS) {
        order->part = only_part(last->kind);
        if (part.data == NULL || slice_is(part, "value"))
            return 0;
        return refuse_path(binder, order,
                           "Ordering on a single-value metrics aggregation can only be done on its value. Either drop "
                           "the key (a la \"%.*s\") or change it to \"value\" (a la \"%.*s.value\")",
                           SLICE_ARG(last->name), SLICE_ARG(last->name));
    }
    if (part.data == NULL)
        return refuse_path(binder, order,
                           "When ordering on a multi-value metrics aggregation a metric name must be specified.");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        order->part = (enum result_part)(PART_COUNT + i);
        if (slice_is(part, parts[i]))
            return 0;
    }
    return refuse_path(binder, order, "Unknown metric name [%.*s] on multi-value metrics aggregation [%.*s]",
                       SLICE_ARG(part), SLICE_ARG(last->name));
}

struct slice aggregation__next_path_step(struct slice *path, struct slice *ret_part)
{
    size_t end = slice_find_byte(*path, '>');
    struct slice step = slice_make(path->data, end < path->len ? end : path->len);
    *ret_part = (struct slice){NULL, 0};
    *path = end < path->len ? slice_from_offset(*path, end + 1) : SLICE_LIT("");
    size_t dot = slice_find_byte(step, '.');
    if (dot < step.len) {
        *ret_part = slice_from_offset(step, dot + 1);
        step.len = dot;
    }
    return step;
}

static int bind_order(struct binder *binder, const struct aggregation *aggregation, struct bucket_order *order)
{
    const struct aggregation *list = aggregation->children;
    struct slice path = order->path, part;
    for (;;) {
        struct slice step = aggregation__next_path_step(&path, &part);
        const struct aggregation *found = find_aggregation(list, step);
        if (found == NULL)
            return refuse_path(binder, order,
                               "The provided aggregation [%.*s] either does not exist, or is a pipeline aggregation "
                               "and cannot be used to sort the buckets.",
                               SLICE_ARG(step));
        if (path.len == 0)
            return bind_part(binder, found, part, order);
        if (!is_one_of(found, KINDS_SINGLE))
            return refuse_path(binder, order, PATH_RULE " [%.*s] is not single-bucket.", SLICE_ARG(step));
        list = found->children;
    }
}

static int bind_kind(struct binder *binder, struct aggregation *aggregation, const struct named_list *named,
                     struct bound_aggregation *bound)
{
    if (is_one_of(aggregation, KINDS_FILTER))
        return bind_filters(binder, aggregation, bound);
    if (aggregation->kind == AGGREGATION_TOP_HITS)
        return aggregation__bind_top_hits(binder, aggregation, named, bound);
    return is_one_of(aggregation, KINDS_FIELD) ? bind_field(binder, aggregation, bound) : 0;
}

static int refuse_inner_global(struct binder *binder, const struct aggregation *aggregation)
{
    for (const struct aggregation *a = aggregation->children; a != NULL; a = a->next)
        if (a->kind == AGGREGATION_GLOBAL)
            return refuse_aggregation(binder, PROBLEM_AGGREGATION_EXECUTION,
                                      "Aggregation [%.*s] cannot have a global sub-aggregation [%.*s]. "
                                      "Global aggregations can only be defined as top level aggregations",
                                      SLICE_ARG(aggregation->name), SLICE_ARG(a->name));
    return 0;
}

/*
 * Begins to bind an aggregation for a search. A request may be searched several times, each time with another arena,
 * and nothing of an earlier one is left.
 */
static void begin_binding(struct binder *binder, struct aggregation *aggregation)
{
    aggregation->bound = arena_zalloc(binder->arena, (binder->context->index_count + 1) * sizeof *aggregation->bound);
    aggregation->limits_bound = false;
    if (aggregation->format_text.data != NULL) {
        aggregation->format = NULL;
        aggregation->numbers = NULL;
    }
}

static int bind_one(struct binder *binder, struct aggregation *aggregation, const struct named_list *named)
{
    size_t position = (size_t)(binder->index - binder->context->indices);
    if (position == 0)
        begin_binding(binder, aggregation);
    struct bound_aggregation *bound = &aggregation->bound[position];
    int r = refuse_inner_global(binder, aggregation);
    if (r == 0)
        r = bind_kind(binder, aggregation, named, bound);
    for (size_t i = 0; i < aggregation->order_count && r == 0; i++)
        if (aggregation->orders[i].by == BY_RESULT)
            r = bind_order(binder, aggregation, &aggregation->orders[i]);
    return r;
}

/*
 * Sets has_rewritten_filter, also for filters in sub-aggregations. Returns: whether any aggregation
 * of the list has one.
 */
static bool note_rewritten(struct binder *binder, struct aggregation *list)
{
    bool any = false;
    for (struct aggregation *a = list; a != NULL; a = a->next) {
        a->has_rewritten_filter = note_rewritten(binder, a->children);
        for (size_t i = 0; i < a->filter_count; i++)
            a->has_rewritten_filter |= query_is_rewritten(binder, a->filters[i].query);
        any |= a->has_rewritten_filter;
    }
    return any;
}

enum { STEPS_OF_BINDING = 100 };

static int bind_list(struct binder *binder, struct aggregation *list, const struct named_list *named)
{
    int r = 0;
    for (struct aggregation *a = list; a != NULL && r == 0; a = a->next) {
        if (!bind__charge(binder, STEPS_OF_BINDING))
            break;
        r = bind_one(binder, a, named);
        if (r == 0)
            r = bind_list(binder, a->children, named);
    }
    return r;
}

int aggregation_bind(struct binder *binder, struct aggregation *list, const struct named_list *named)
{
    int r = bind_list(binder, list, named);
    if (r == 0 && binder->index == binder->context->indices && binder->context->dialect == DIALECT_7)
        (void)note_rewritten(binder, list);
    return r;
}

/* --- Counters ----------------------------------------------------------------------------------------------------- */

bool aggregation_is_global(const struct aggregation *list)
{
    while (list != NULL && list->kind != AGGREGATION_GLOBAL)
        list = list->next;
    return list != NULL;
}

static struct aggregator *new_aggregator(const struct search_context *context, const struct aggregation *list,
                                         struct account *account, struct agg_usage *usage)
{
    struct aggregator *aggregator = mem_zalloc(sizeof *aggregator);
    aggregator->context = context;
    aggregator->account = account;
    aggregator->list = list;
    aggregator->usage = usage != NULL ? usage : &aggregator->own_usage;
    for (const struct aggregation *a = list; a != NULL; a = a->next)
        aggregator->count++;
    aggregator->metrics = mem_zalloc((aggregator->count + 1) * sizeof *aggregator->metrics);
    for (size_t i = 0; i < aggregator->count; i++)
        aggregator->metrics[i] = (struct metric){.low = INFINITY, .high = -INFINITY, .buckets = MAP_INIT};
    return aggregator;
}

struct aggregator *aggregator_new(const struct search_context *context, const struct aggregation *list,
                                  struct account *account)
{
    return new_aggregator(context, list, account, NULL);
}

static void bucket_free(struct agg_bucket *bucket)
{
    aggregator_free(bucket->children);
    if (bucket->key.kind == FIELD_VALUE_BYTES)
        mem_free_slice(&bucket->key.bytes);
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
        aggregator__drop_hits(&aggregator->metrics[i]);
    }
    mem_free(aggregator->metrics);
    mem_free(aggregator);
}

double aggregator__number(const struct mapping_field *field, const struct field_value *value)
{
    if (value->kind == FIELD_VALUE_F64)
        return value->f64;
    if (value->kind == FIELD_VALUE_BYTES)
        return 0;
    bool scaled = field != NULL && field->type == FIELD_SCALED_FLOAT;
    return scaled ? (double)value->i64 * (1.0 / field->scaling_factor) : (double)value->i64; /* as Elasticsearch */
}

struct slice aggregator__key(const struct field_value *value)
{
    return value->kind == FIELD_VALUE_BYTES ? value->bytes
                                            : (struct slice){(const char *)&value->i64, sizeof value->i64};
}

/* --- Keys of a document ------------------------------------------------------------------------------------------- */

/* Keys live in match_doc->scratch, which add_keys() and add_numbers() rewind. */
static const struct field_value *one_value(struct match_doc *match_doc, struct field_value value)
{
    struct field_value *copy = arena_alloc(&match_doc->scratch, sizeof *copy);
    *copy = value;
    return copy;
}

static size_t values_of(const struct aggregation *aggregation, const struct bound_aggregation *bound,
                        struct match_doc *match_doc, const struct field_value **ret_values)
{
    const struct metadata_field *metadata = aggregation__metadata(aggregation);
    size_t count = 0;
    if (metadata != NULL) {
        *ret_values = one_value(match_doc, metadata_value(metadata, match_doc));
        return 1;
    }
    if (bound->field != NULL)
        count = match_doc_field(match_doc, bound->field, ret_values);
    if (count > 0 || !bound->has_missing)
        return count;
    *ret_values = one_value(match_doc, bound->missing);
    return 1;
}

static bool has_value(const struct field_value *values, size_t count, const struct field_value *value)
{
    for (size_t i = 0; i < count; i++)
        if (values[i].kind == value->kind && field_value_compare(&values[i], value) == 0)
            return true;
    return false;
}

static bool is_chosen(const struct aggregation *aggregation, const struct bound_aggregation *bound,
                      const struct field_value *value, struct account *account)
{
    if (aggregation->include.given && bound->include != NULL &&
        !term_pattern_regexp(bound->include, value->bytes, account))
        return false;
    if (aggregation->include.given && bound->include == NULL &&
        !has_value(bound->included, bound->included_count, value))
        return false;
    if (aggregation->exclude.given && bound->exclude != NULL)
        return !term_pattern_regexp(bound->exclude, value->bytes, account);
    return !has_value(bound->excluded, bound->excluded_count, value);
}

struct field_value aggregation__interval_key(const struct aggregation *aggregation, double number)
{
    if (aggregation->kind == AGGREGATION_DATE_HISTOGRAM)
        return (struct field_value){.kind = FIELD_VALUE_I64,
                                    .i64 = rounding_floor(&aggregation->rounding, aggregation__millis(number))};
    return (struct field_value){.kind = FIELD_VALUE_F64,
                                .f64 = floor((number - aggregation->offset) / aggregation->interval) + 0.0};
}

/*
 * Rounds a value to its interval. Returns: whether the interval is within the hard bounds. They
 * apply to its begin without the offset; the upper bound is exclusive for dates and inclusive for
 * numbers.
 */
static bool round_value(const struct aggregation *aggregation, double number, struct field_value *ret_key)
{
    bool dates = aggregation->kind == AGGREGATION_DATE_HISTOGRAM;
    const struct bounds *hard = &aggregation->hard;
    *ret_key = aggregation__interval_key(aggregation, number);
    double begin = dates ? (double)ret_key->i64 : ret_key->f64 * aggregation->interval;
    return begin >= hard->low && (dates && hard->high_json != NULL ? begin < hard->high : begin <= hard->high);
}

static bool in_range(const struct agg_range *range, const struct mapping_field *field, const struct field_value *values,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double number = aggregator__number(field, &values[i]);
        if (number >= range->from && number < range->to)
            return true;
    }
    return false;
}

static void add_index(struct field_value *keys, size_t *count, size_t index)
{
    keys[(*count)++] = (struct field_value){.kind = FIELD_VALUE_I64, .i64 = (int64_t)index};
}

static size_t filter_keys(const struct aggregation *aggregation, const struct bound_aggregation *bound,
                          struct match_doc *match_doc, const struct field_value **ret_keys)
{
    struct field_value *keys = arena_alloc(&match_doc->scratch, (aggregation->filter_count + 1) * sizeof *keys);
    size_t count = 0;
    float ignored;
    for (size_t i = 0; i < aggregation->filter_count; i++)
        if (bound_query_match(bound->filters[i], match_doc, &ignored))
            add_index(keys, &count, i);
    if (count == 0 && aggregation->other)
        add_index(keys, &count, aggregation->filter_count);
    *ret_keys = keys;
    return count;
}

static size_t range_keys(const struct aggregation *aggregation, const struct bound_aggregation *bound,
                         struct match_doc *match_doc, const struct field_value *values, size_t value_count,
                         const struct field_value **ret_keys)
{
    struct field_value *keys = arena_alloc(&match_doc->scratch, (aggregation->range_count + 1) * sizeof *keys);
    size_t count = 0;
    for (size_t i = 0; i < aggregation->range_count && account_take(match_doc->account, value_count); i++)
        if (in_range(&aggregation->ranges[i], bound->field, values, value_count))
            add_index(keys, &count, i);
    *ret_keys = keys;
    return count;
}

/* Computes the keys of terms and histograms. */
static size_t value_keys(const struct aggregation *aggregation, const struct bound_aggregation *bound,
                         struct match_doc *match_doc, const struct field_value *values, size_t value_count,
                         const struct field_value **ret_keys)
{
    bool round = is_one_of(aggregation, KINDS_HISTOGRAM),
         choose = aggregation->include.given || aggregation->exclude.given;
    size_t count = 0;
    *ret_keys = values;
    if (!round && !choose)
        return value_count;
    struct field_value *keys = arena_alloc(&match_doc->scratch, (value_count + 1) * sizeof *keys);
    uint64_t steps = 20 + bound->included_count + bound->excluded_count;
    for (size_t i = 0; i < value_count && account_take(match_doc->account, steps); i++) {
        keys[count] = values[i];
        if (round)
            count += round_value(aggregation, aggregator__number(bound->field, &values[i]), &keys[count]);
        else
            count += is_chosen(aggregation, bound, &values[i], match_doc->account);
    }
    *ret_keys = keys;
    return count;
}

static size_t keys_of(const struct aggregation *aggregation, const struct bound_aggregation *bound,
                      struct match_doc *match_doc, const struct field_value **ret_keys)
{
    const struct field_value *values = NULL;
    if (is_one_of(aggregation, KINDS_FILTER))
        return filter_keys(aggregation, bound, match_doc, ret_keys);
    bool global = aggregation->kind == AGGREGATION_GLOBAL;
    size_t count = global ? 0 : values_of(aggregation, bound, match_doc, &values);
    if (global || aggregation->kind == AGGREGATION_MISSING) {
        *ret_keys = one_value(match_doc, (struct field_value){.kind = FIELD_VALUE_I64});
        return count == 0;
    }
    if (is_one_of(aggregation, KINDS_RANGE))
        return range_keys(aggregation, bound, match_doc, values, count, ret_keys);
    return value_keys(aggregation, bound, match_doc, values, count, ret_keys);
}

/* --- Counting ----------------------------------------------------------------------------------------------------- */

/* Steps of an account. */
enum { STEPS_OF_AGGREGATION = 10, STEPS_OF_KEY = 20 };

/* Returns: whether collecting may take so many more steps; false: the search ends. */
static bool may_collect(const struct aggregator *aggregator, uint64_t steps)
{
    const struct budget_guard *memory = aggregator->context->memory;
    return account_take(aggregator->account, steps) && (memory == NULL || !memory->refused);
}

/* Charges memory to the search's budget, in chunks. */
static void charge_bytes(const struct aggregator *aggregator, size_t bytes)
{
    struct agg_usage *usage = aggregator->usage;
    usage->bytes += bytes;
    if (!budget_guard_asks(aggregator->context->memory, usage->bytes))
        return;
    (void)budget_guard_take(aggregator->context->memory, usage->bytes);
    usage->bytes = 0;
}

static struct agg_bucket *new_bucket(const struct aggregator *aggregator, const struct aggregation *aggregation,
                                     const struct mapping_field *field, const struct field_value *key)
{
    struct agg_bucket *bucket = mem_zalloc(sizeof *bucket);
    bucket->key = *key;
    bucket->field = field;
    if (key->kind == FIELD_VALUE_BYTES)
        bucket->key.bytes = (struct slice){mem_dup(key->bytes.data, key->bytes.len), key->bytes.len};
    if (aggregation->children != NULL)
        bucket->children =
            new_aggregator(aggregator->context, aggregation->children, aggregator->account, aggregator->usage);
    size_t below =
        bucket->children == NULL ? 0 : sizeof *bucket->children + bucket->children->count * sizeof(struct metric);
    charge_bytes(aggregator, sizeof *bucket + below + aggregator__key(key).len);
    return bucket;
}

static void add_to_bucket(const struct aggregator *aggregator, const struct aggregation *aggregation,
                          struct metric *metric, const struct mapping_field *field, const struct field_value *value,
                          struct match_doc *match_doc)
{
    struct agg_bucket *bucket = map_get(&metric->buckets, aggregator__key(value));
    if (bucket == NULL) {
        bucket = new_bucket(aggregator, aggregation, field, value);
        map_put(&metric->buckets, aggregator__key(&bucket->key), bucket);
    }
    bucket->documents++;
    if (bucket->children != NULL)
        aggregator_add(bucket->children, match_doc);
}

/*
 * Up to so many keys of a document are compared with each other to find duplicates; more are
 * hashed.
 */
#define SEEN_FEW 16

/* Returns: whether the value at `at` occurs earlier. Requires: called for each `at` in order. */
static bool seen_before(struct map *seen, const struct field_value *values, size_t count, size_t at)
{
    if (count > SEEN_FEW) {
        bool before = map_get(seen, aggregator__key(&values[at])) != NULL;
        if (!before)
            map_put(seen, aggregator__key(&values[at]), seen);
        return before;
    }
    return has_value(values, at, &values[at]);
}

static void add_keys(const struct aggregator *aggregator, const struct aggregation *aggregation, struct metric *metric,
                     const struct bound_aggregation *bound, struct match_doc *match_doc)
{
    const struct field_value *keys = NULL;
    struct arena_mark mark = match_doc_mark(match_doc);
    size_t count = keys_of(aggregation, bound, match_doc, &keys);
    struct map seen = MAP_INIT;
    for (size_t i = 0; i < count && may_collect(aggregator, STEPS_OF_KEY); i++) {
        if (!seen_before(&seen, keys, count, i))
            add_to_bucket(aggregator, aggregation, metric, bound->field, &keys[i], match_doc);
    }
    map_deinit(&seen);
    arena_rewind(&match_doc->scratch, mark);
}

/*
 * Adds the values of a document to a metric. Elasticsearch stores texts and addresses as a set,
 * numbers with duplicates.
 */
static void add_numbers(const struct aggregation *aggregation, struct metric *metric,
                        const struct bound_aggregation *bound, struct match_doc *match_doc)
{
    const struct field_value *values = NULL;
    struct arena_mark mark = match_doc_mark(match_doc);
    size_t count = values_of(aggregation, bound, match_doc, &values);
    struct map seen = MAP_INIT;
    for (size_t i = 0; i < count && account_take(match_doc->account, 20); i++) {
        if (values[i].kind == FIELD_VALUE_BYTES && seen_before(&seen, values, count, i))
            continue;
        double number = aggregator__number(bound->field, &values[i]);
        metric->values++;
        metric->sum += number;
        metric->low = number < metric->low ? number : metric->low;
        metric->high = number > metric->high ? number : metric->high;
    }
    map_deinit(&seen);
    arena_rewind(&match_doc->scratch, mark);
}

static void add_document(struct aggregator *aggregator, bool global, struct match_doc *match_doc)
{
    size_t i = 0, position = (size_t)(match_doc->index - aggregator->context->indices);
    for (const struct aggregation *a = aggregator->list; a != NULL && may_collect(aggregator, STEPS_OF_AGGREGATION);
         a = a->next, i++) {
        if ((a->kind == AGGREGATION_GLOBAL) != global)
            continue;
        if (a->kind == AGGREGATION_TOP_HITS)
            charge_bytes(aggregator,
                         aggregator__offer_hit(a, &aggregator->metrics[i], &a->bound[position], match_doc, position));
        else if (is_one_of(a, KINDS_METRIC) && a->kind != AGGREGATION_CARDINALITY)
            add_numbers(a, &aggregator->metrics[i], &a->bound[position], match_doc);
        else
            add_keys(aggregator, a, &aggregator->metrics[i], &a->bound[position], match_doc);
    }
}

void aggregator_add(struct aggregator *aggregator, struct match_doc *match_doc)
{
    add_document(aggregator, false, match_doc);
}

void aggregator_add_global(struct aggregator *aggregator, struct match_doc *match_doc)
{
    add_document(aggregator, true, match_doc);
}
