/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing aggregations. Options are a table: one row each, with the kinds of aggregations that take
 * it.
 */
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "json/each.h"
#include "json/write.h"
#include "mapping/date.h"
#include "query/aggregate_internal.h"

/* JSON types that an option accepts, as Elasticsearch's ObjectParser declares them. */
enum { A_TEXT = 1, A_NUMBER = 2, A_FLAG = 4, A_OBJECT = 8, A_LIST = 16 };
#define A_COUNT (A_TEXT | A_NUMBER)
#define A_CHOICE (A_TEXT | A_FLAG)
#define A_SCALAR (A_TEXT | A_NUMBER | A_FLAG)

#define MINUTES_MS INT64_C(60000)
#define OFFSET_MS_MAX INT64_C(1000000000000000000)

const char *const aggregation__names[AGGREGATION_KIND_COUNT] = {
    "min",         "max",         "sum",    "avg",       "stats",
    "value_count", "cardinality", "terms",  "histogram", "date_histogram",
    "range",       "date_range",  "filter", "filters",   "missing",
    "global",      "top_hits"};

static const char *kind_name(const struct aggregation *aggregation)
{
    return aggregation__names[aggregation->kind];
}

/* Refuses an invalid value. The problem does not name the option: take_option() wraps it. */
static int refuse_argument(struct query_parser *parser, yyjson_val *at, const char *format, ...) TL_PRINTF(3, 4);
static int refuse_argument(struct query_parser *parser, yyjson_val *at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(parser->arena, format, arguments);
    va_end(arguments);
    return query__refuse(parser, at, false, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(reason));
}

static int refuse_value(struct query_parser *parser, struct slice option, yyjson_val *value,
                        const struct aggregation *aggregation)
{
    query_location(parser->doc, value, false, &parser->line, &parser->column);
    return query__refuse(parser, NULL, false, PROBLEM_X_CONTENT_PARSE,
                         "[%zu:%zu] [%s] %.*s doesn't support values of type: %s", parser->line, parser->column,
                         kind_name(aggregation), SLICE_ARG(option), json_token(value));
}

/* --- Options ------------------------------------------------------------------------------------------------------ */

/*
 * Parses the value of an option. Returns: 0; QUERY_REFUSED, with a problem about the value that
 * does not name the option.
 */
typedef int take_value(struct query_parser *parser, struct slice option, yyjson_val *value,
                       struct aggregation *aggregation);

/* --- Tuning options: validated, then ignored ---------------------------------------------------------------------- */

static int take_shard_size(struct query_parser *parser, struct slice option, yyjson_val *value,
                           struct aggregation *aggregation)
{
    double number;
    (void)option;
    int r = query__take_double(parser, value, &number);
    if (r == 0 && number < 1)
        r = refuse_argument(parser, value, "[shardSize] must be greater than 0. Found [%.0f] in [%.*s]", number,
                            SLICE_ARG(aggregation->name));
    return r;
}

static int take_precision(struct query_parser *parser, struct slice option, yyjson_val *value,
                          struct aggregation *aggregation)
{
    struct slice text = query__scalar_text(parser->arena, value);
    double number;
    (void)option;
    if (!slice_to_double(text, &number))
        return refuse_argument(parser, value, "For input string: \"%.*s\"", SLICE_ARG(text));
    if (number < 0)
        return refuse_argument(parser, value,
                               "[precisionThreshold] must be greater than or equal to 0. Found [%.0f] in [%.*s]",
                               number, SLICE_ARG(aggregation->name));
    return 0;
}

static int take_collect_mode(struct query_parser *parser, struct slice option, yyjson_val *value,
                             struct aggregation *aggregation)
{
    struct slice text = json_slice(value);
    (void)aggregation;
    if (slice_is(text, "depth_first") || slice_is(text, "breadth_first"))
        return 0;
    return query__refuse(parser, value, false, PROBLEM_PARSE, "no [%.*s] found for value [%.*s]", SLICE_ARG(option),
                         SLICE_ARG(text));
}

/* Validated at binding: Elasticsearch ignores it for numeric fields. */
static int take_execution_hint(struct query_parser *parser, struct slice option, yyjson_val *value,
                               struct aggregation *aggregation)
{
    (void)parser, (void)option;
    aggregation->hint = json_slice(value);
    return 0;
}

static int take_field(struct query_parser *parser, struct slice option, yyjson_val *value,
                      struct aggregation *aggregation)
{
    (void)option;
    aggregation->field = query__scalar_text(parser->arena, value);
    return 0;
}

static int take_missing(struct query_parser *parser, struct slice option, yyjson_val *value,
                        struct aggregation *aggregation)
{
    aggregation->missing = value;
    (void)parser, (void)option;
    return 0;
}

static int take_size(struct query_parser *parser, struct slice option, yyjson_val *value,
                     struct aggregation *aggregation)
{
    int r = query__take_u32(parser, value, &aggregation->size);
    if (r == 0 && aggregation->size == 0)
        r = refuse_argument(parser, value, "[%.*s] must be greater than 0. Found [%.*s] in [%.*s]", SLICE_ARG(option),
                            SLICE_ARG(query__scalar_text(parser->arena, value)), SLICE_ARG(aggregation->name));
    return r;
}

static int take_min_doc_count(struct query_parser *parser, struct slice option, yyjson_val *value,
                              struct aggregation *aggregation)
{
    double number;
    bool shard = slice_is(option, "shard_min_doc_count");
    int r = query__take_double(parser, value, &number);
    if (r == 0 && number < 0)
        r = refuse_argument(parser, value, "[%s] must be greater than or equal to 0. Found [%.0f] in [%.*s]",
                            shard ? "shardMinDocCount" : "minDocCount", number, SLICE_ARG(aggregation->name));
    if (r == 0 && number < 1 && !shard && aggregation->kind == AGGREGATION_TERMS)
        return query__refuse(
            parser, value, false, PROBLEM_PARSING,
            "[terms] aggregation does not support [min_doc_count] 0 here: terms that no hit has are not looked for");
    return r == 0
               ? query__take_u32(parser, value, shard ? &aggregation->shard_min_doc_count : &aggregation->min_doc_count)
               : r;
}

static int take_flag(struct query_parser *parser, struct slice option, yyjson_val *value,
                     struct aggregation *aggregation)
{
    bool keyed = slice_is(option, "keyed");
    return query__take_bool(parser, value, keyed ? &aggregation->keyed : &aggregation->show_error);
}

/* --- Orders ------------------------------------------------------------------------------------------------------- */

static int take_one_order(struct query_parser *parser, yyjson_val *value, struct aggregation *aggregation)
{
    yyjson_val *key = NULL, *direction;
    yyjson_obj_iter iter;
    if (yyjson_obj_iter_init(value, &iter))
        key = yyjson_obj_iter_next(&iter);
    if (key == NULL || unsafe_yyjson_get_len(value) != 1 || aggregation->order_count == BUCKET_ORDERS_MAX)
        return query__refuse(parser, value, false, PROBLEM_PARSING,
                             "Must specify at least one field for [order], and no more than %d", BUCKET_ORDERS_MAX);
    direction = yyjson_obj_iter_get_val(key);
    struct slice name = json_slice(key), text = query__scalar_text(parser->arena, direction);
    bool descending = slice_is(text, "desc") || slice_is(text, "DESC");
    if (!descending && !slice_is(text, "asc") && !slice_is(text, "ASC"))
        return query__refuse(parser, direction, false, PROBLEM_PARSING, "Unknown order direction [%.*s]",
                             SLICE_ARG(text));
    enum bucket_order_by by = slice_is(name, "_count") ? BY_COUNT
                              : slice_is(name, "_key") || slice_is(name, "_term") || slice_is(name, "_time")
                                  ? BY_KEY
                                  : BY_RESULT;
    aggregation->orders[aggregation->order_count++] = (struct bucket_order){by, descending, name, PART_COUNT};
    return 0;
}

static int take_order(struct query_parser *parser, struct slice option, yyjson_val *value,
                      struct aggregation *aggregation)
{
    size_t i, count;
    yyjson_val *item;
    (void)option;
    if (!yyjson_is_arr(value))
        return take_one_order(parser, value, aggregation);
    json_arr_foreach (value, i, count, item) {
        int r = take_one_order(parser, item, aggregation);
        if (r != 0)
            return r;
    }
    return 0;
}

/* --- Terms -------------------------------------------------------------------------------------------------------- */

static int refuse_partition(struct query_parser *parser, struct slice option, yyjson_val *value)
{
    size_t index, count;
    yyjson_val *key, *member;
    json_obj_foreach (value, index, count, key, member) {
        struct slice name = json_slice(key);
        if (!slice_is(name, "partition") && !slice_is(name, "num_partitions"))
            return query__refuse(parser, member, false, PROBLEM_PARSE,
                                 "Unknown parameter in Include/Exclude clause: %.*s", SLICE_ARG(name));
    }
    return query__refuse(parser, value, false, PROBLEM_PARSING,
                         "[terms] aggregation does not support partitions in [%.*s] here", SLICE_ARG(option));
}

static int take_inclusion(struct query_parser *parser, struct slice option, yyjson_val *value,
                          struct aggregation *aggregation)
{
    struct term_inclusion *inclusion = slice_is(option, "include") ? &aggregation->include : &aggregation->exclude;
    if (yyjson_is_obj(value))
        return refuse_partition(parser, option, value);
    inclusion->given = true;
    if (yyjson_is_arr(value))
        inclusion->values = value;
    else
        inclusion->regexp = json_slice(value);
    return 0;
}

/* --- Histograms --------------------------------------------------------------------------------------------------- */

static bool date_histogram(const struct aggregation *aggregation)
{
    return aggregation->kind == AGGREGATION_DATE_HISTOGRAM;
}

/*
 * Parses a duration: "30d", "-90m", "500ms". Returns: false if it is invalid. *ret_unit: its unit
 * is known; *ret_number the text before the unit.
 */
static bool take_millis(struct slice text, int64_t *ret_millis, struct slice *ret_number, bool *ret_unit)
{
    static const struct {
        const char *sign;
        int64_t millis;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", MINUTES_MS}, {"h", 60 * MINUTES_MS}, {"d", 1440 * MINUTES_MS}};
    bool minus = text.len > 0 && text.data[0] == '-';
    if (text.len > 0 && (text.data[0] == '+' || minus))
        text = slice_from_offset(text, 1);
    *ret_unit = false;
    *ret_number = text;
    for (size_t i = 0; i < sizeof units / sizeof *units && !*ret_unit; i++) {
        size_t len = strlen(units[i].sign);
        if (text.len < len || memcmp(text.data + text.len - len, units[i].sign, len) != 0)
            continue;
        int64_t number, most = INT64_MAX / 4 / units[i].millis;
        *ret_unit = true;
        *ret_number = slice_make(text.data, text.len - len);
        if (!slice_to_i64(*ret_number, &number) || number > most || number < -most)
            return false;
        *ret_millis = (minus ? -number : number) * units[i].millis;
    }
    return *ret_unit;
}

static int take_fixed(struct query_parser *parser, struct slice text, yyjson_val *value,
                      struct aggregation *aggregation)
{
    struct slice number;
    bool unit;
    aggregation->rounding.unit = ROUND_FIXED;
    if (take_millis(text, &aggregation->rounding.millis, &number, &unit))
        return 0;
    if (!unit)
        return refuse_argument(
            parser, value,
            "failed to parse setting [date_histogram.fixedInterval] with value [%.*s] as a time value: "
            "unit is missing or unrecognized",
            SLICE_ARG(text));
    refuse_argument(parser, value, "failed to parse [%.*s]", SLICE_ARG(text));
    parser->problem->caused_by = arena_zalloc(parser->arena, sizeof *parser->problem->caused_by);
    problem_set(parser->problem->caused_by, parser->arena, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"",
                SLICE_ARG(number));
    return QUERY_REFUSED;
}

static int take_date_interval(struct query_parser *parser, struct slice option, struct slice text, yyjson_val *value,
                              struct aggregation *aggregation)
{
    bool calendar = rounding_parse_calendar_unit(text, &aggregation->rounding);
    if (slice_is(option, "calendar_interval") && !calendar)
        return refuse_argument(
            parser, value, "The supplied interval [%.*s] could not be parsed as a calendar interval.", SLICE_ARG(text));
    return slice_is(option, "fixed_interval") || !calendar ? take_fixed(parser, text, value, aggregation) : 0;
}

static int take_interval(struct query_parser *parser, struct slice option, yyjson_val *value,
                         struct aggregation *aggregation)
{
    struct slice text = query__scalar_text(parser->arena, value);
    if (aggregation->interval_given && slice_is(option, "interval"))
        return refuse_argument(
            parser, value, "Cannot use [interval] with [fixed_interval] or [calendar_interval] configuration options.");
    if (aggregation->interval_given)
        return refuse_argument(parser, value, "Cannot use [%.*s] with [%s] configuration option.", SLICE_ARG(option),
                               slice_is(option, "fixed_interval") ? "calendar_interval" : "fixed_interval");
    aggregation->interval_given = true;
    if (date_histogram(aggregation))
        return take_date_interval(parser, option, text, value, aggregation);
    int r = query__take_double(parser, value, &aggregation->interval);
    if (r == 0 && !(aggregation->interval > 0))
        r = refuse_argument(parser, value, "[interval] must be >0 for histogram aggregation [%.*s]",
                            SLICE_ARG(aggregation->name));
    return r;
}

static int take_offset(struct query_parser *parser, struct slice option, yyjson_val *value,
                       struct aggregation *aggregation)
{
    struct slice text = query__scalar_text(parser->arena, value), number;
    bool unit;
    (void)option;
    if (!date_histogram(aggregation))
        return query__take_double(parser, value, &aggregation->offset);
    bool millis = slice_to_i64(text, &aggregation->rounding.offset) && aggregation->rounding.offset < OFFSET_MS_MAX &&
                  aggregation->rounding.offset > -OFFSET_MS_MAX;
    if (!millis && !take_millis(text, &aggregation->rounding.offset, &number, &unit))
        return refuse_argument(
            parser, value,
            "failed to parse setting [DateHistogramAggregationBuilder.parseOffset] with value [%.*s] as a "
            "time value: unit is missing or unrecognized",
            SLICE_ARG(text));
    return 0;
}

static int take_bounds(struct query_parser *parser, struct slice option, yyjson_val *value,
                       struct aggregation *aggregation)
{
    struct bounds *bounds = slice_is(option, "hard_bounds") ? &aggregation->hard : &aggregation->extended;
    static const char *const known[] = {"min", "max"};
    double low, high;
    size_t index, count;
    yyjson_val *key, *member;
    json_obj_foreach (value, index, count, key, member) {
        if (slice_is(json_slice(key), "min") || slice_is(json_slice(key), "max"))
            continue;
        int unknown = query__refuse_unknown_of(
            parser, date_histogram(aggregation) ? SLICE_LIT("bounds") : SLICE_LIT("double_bounds"), key, known, 2);
        /* For the problem that wraps this one. */
        query_location(parser->doc, member, false, &parser->line, &parser->column);
        return unknown;
    }
    bounds->low_json = json_get_lit(value, "min");
    bounds->high_json = json_get_lit(value, "max");
    if (date_histogram(aggregation) || bounds->low_json == NULL || bounds->high_json == NULL)
        return 0;
    int r = query__take_double(parser, bounds->low_json, &low);
    if (r == 0)
        r = query__take_double(parser, bounds->high_json, &high);
    if (r == 0 && low > high) {
        struct buf text = BUF_INIT(BUF_UNLIMITED);
        buf_printf(&text, "max bound [");
        json_double_text(&text, high);
        buf_printf(&text, "] must be greater than min bound [");
        json_double_text(&text, low);
        r = refuse_argument(parser, value, "%.*s]", SLICE_ARG(buf_as_slice(&text)));
        buf_deinit(&text);
    }
    return r;
}

static int take_time_zone(struct query_parser *parser, struct slice option, yyjson_val *value,
                          struct aggregation *aggregation)
{
    struct zone zone = zone_fixed(0);
    int64_t hours;
    (void)option;
    if (yyjson_is_num(value) &&
        slice_to_i64(query__scalar_text(parser->arena, value), &hours)) { /* as ZoneOffset.ofHours() */
        if (hours > 18 || hours < -18)
            return refuse_argument(parser, value,
                                   "Zone offset hours not in valid range: value %lld is not in the range -18 to 18",
                                   (long long)hours);
        zone = zone_fixed((int32_t)hours * 3600);
    } else if (zone_parse(parser->zones, query__scalar_text(parser->arena, value), parser->arena, &zone,
                          parser->problem) != 0) {
        query_location(parser->doc, value, false, &parser->line, &parser->column);
        return QUERY_REFUSED;
    }
    aggregation->rounding.zone = zone_copy(&zone, parser->arena);
    aggregation->zone_given = true;
    return 0;
}

static int take_format(struct query_parser *parser, struct slice option, yyjson_val *value,
                       struct aggregation *aggregation)
{
    (void)option;
    struct slice text = query__scalar_text(parser->arena, value);
    struct problem error;
    if (date_format_parse(parser->arena, text, DATE_RULES_7_10, &aggregation->format) == 0)
        return 0;
    date_format_describe_error(parser->arena, text, &error);
    return refuse_argument(parser, value, "%.*s", SLICE_ARG(error.reason));
}

static int take_any_format(struct query_parser *parser, struct slice option, yyjson_val *value,
                           struct aggregation *aggregation)
{
    (void)option;
    aggregation->format_text = arena_copy(parser->arena, query__scalar_text(parser->arena, value));
    return 0;
}

/* --- Ranges ------------------------------------------------------------------------------------------------------- */

static int take_range(struct query_parser *parser, yyjson_val *value, struct aggregation *aggregation)
{
    static const char *const known[] = {"key", "from", "to"};
    struct agg_range *range = &aggregation->ranges[aggregation->range_count++];
    size_t i, count;
    yyjson_val *key, *member;
    if (!yyjson_is_obj(value))
        return refuse_argument(parser, value, "a range must be an object with [from], [to] and [key]");
    json_obj_foreach (value, i, count, key, member) {
        struct slice name = json_slice(key);
        yyjson_val *given = yyjson_is_null(member) ? NULL : member;
        if (slice_is(name, "key") && given != NULL)
            range->key = query__scalar_text(parser->arena, member);
        else if (slice_is(name, "from"))
            range->from_json = given;
        else if (slice_is(name, "to"))
            range->to_json = given;
        else if (!slice_is(name, "key"))
            return query__refuse_unknown_of(parser, slice_from(kind_name(aggregation)), key, known, 3);
    }
    return 0;
}

static int take_ranges(struct query_parser *parser, struct slice option, yyjson_val *value,
                       struct aggregation *aggregation)
{
    size_t i, count;
    yyjson_val *item;
    (void)option;
    if (yyjson_is_obj(value)) { /* a single range instead of a list */
        aggregation->ranges = arena_zalloc(parser->arena, sizeof *aggregation->ranges);
        return take_range(parser, value, aggregation);
    }
    aggregation->ranges = arena_zalloc(parser->arena, (yyjson_arr_size(value) + 1) * sizeof *aggregation->ranges);
    json_arr_foreach (value, i, count, item) {
        int r = take_range(parser, item, aggregation);
        if (r != 0)
            return r;
    }
    return 0;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

#define TERMS (1u << AGGREGATION_TERMS)
#define DATES (1u << AGGREGATION_DATE_HISTOGRAM)
#define CARDINALITY (1u << AGGREGATION_CARDINALITY)

static const struct {
    const char *name;
    unsigned kinds;
    unsigned values;  /* set of A_… that its value may have */
    take_value *take; /* NULL: an unsupported option of Elasticsearch, refused by name */
} options[] = {
    {"field", KINDS_FIELD, A_TEXT, take_field},
    {"missing", KINDS_FIELD, A_SCALAR, take_missing},
    {"script", KINDS_FIELD, 0, NULL},
    {"value_type", KINDS_FIELD, 0, NULL},
    {"format", DATES | 1u << AGGREGATION_DATE_RANGE, A_TEXT, take_format},
    {"format", KINDS_FIELD & ~DATES & ~(1u << AGGREGATION_DATE_RANGE) & ~CARDINALITY, A_TEXT, take_any_format},
    {"size", TERMS, A_COUNT, take_size},
    {"shard_size", TERMS, A_COUNT, take_shard_size},
    {"min_doc_count", TERMS | KINDS_HISTOGRAM, A_COUNT, take_min_doc_count},
    {"shard_min_doc_count", TERMS, A_COUNT, take_min_doc_count},
    {"show_term_doc_count_error", TERMS, A_CHOICE, take_flag},
    {"execution_hint", TERMS, A_TEXT, take_execution_hint},
    {"collect_mode", TERMS, A_TEXT, take_collect_mode},
    {"include", TERMS, A_TEXT | A_OBJECT | A_LIST, take_inclusion},
    {"exclude", TERMS, A_TEXT | A_LIST, take_inclusion},
    {"order", TERMS | KINDS_HISTOGRAM, A_OBJECT | A_LIST, take_order},
    {"precision_threshold", CARDINALITY, A_COUNT, take_precision},
    {"interval", KINDS_HISTOGRAM, A_COUNT, take_interval},
    {"calendar_interval", DATES, A_TEXT, take_interval},
    {"fixed_interval", DATES, A_TEXT, take_interval},
    {"offset", KINDS_HISTOGRAM, A_COUNT, take_offset},
    {"keyed", KINDS_HISTOGRAM | KINDS_RANGE, A_CHOICE, take_flag},
    {"extended_bounds", KINDS_HISTOGRAM, A_OBJECT, take_bounds},
    {"hard_bounds", KINDS_HISTOGRAM, A_OBJECT, take_bounds},
    {"time_zone", DATES | 1u << AGGREGATION_DATE_RANGE, A_COUNT, take_time_zone},
    {"ranges", KINDS_RANGE, A_OBJECT | A_LIST, take_ranges},
};

enum { OPTION_COUNT = sizeof options / sizeof *options };

static int refuse_unknown(struct query_parser *parser, yyjson_val *key, const struct aggregation *aggregation)
{
    const char *known[OPTION_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if ((options[i].kinds & kind_bit(aggregation->kind)) != 0)
            known[count++] = options[i].name;
    return query__refuse_unknown_of(parser, slice_from(kind_name(aggregation)), key, known, count);
}

/*
 * Wraps the problem of a value in "failed to parse field [option]", unless Elasticsearch reports it
 * unwrapped.
 */
static int refuse_option(struct query_parser *parser, const struct aggregation *aggregation, struct slice option)
{
    bool inner = slice_is(option, "ranges") || slice_is(option, "extended_bounds") || slice_is(option, "hard_bounds");
    bool itself = (parser->problem->type == PROBLEM_X_CONTENT_PARSE && !inner) ||
                  (parser->problem->type == PROBLEM_PARSING && !slice_is(option, "order"));
    return itself ? QUERY_REFUSED : query__wrap_refusal(parser, kind_name(aggregation), option);
}

static unsigned kind_of_value(yyjson_val *value)
{
    switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_STR: return A_TEXT;
    case YYJSON_TYPE_NUM: return A_NUMBER;
    case YYJSON_TYPE_RAW: return A_NUMBER;
    case YYJSON_TYPE_BOOL: return A_FLAG;
    case YYJSON_TYPE_OBJ: return A_OBJECT;
    case YYJSON_TYPE_ARR: return A_LIST;
    default: return 0;
    }
}

static int take_option(struct query_parser *parser, yyjson_val *key, yyjson_val *value, struct aggregation *aggregation)
{
    struct slice name = json_slice(key);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if ((options[i].kinds & kind_bit(aggregation->kind)) == 0 || !slice_is(name, options[i].name))
            continue;
        if (options[i].take == NULL)
            return query__refuse(parser, value, false, PROBLEM_PARSING, "[%s] aggregation does not support [%.*s] here",
                                 kind_name(aggregation), SLICE_ARG(name));
        if ((options[i].values & kind_of_value(value)) == 0)
            return refuse_value(parser, name, value, aggregation);
        int r = options[i].take(parser, name, value, aggregation);
        return r == QUERY_REFUSED ? refuse_option(parser, aggregation, name) : r;
    }
    return refuse_unknown(parser, key, aggregation);
}

/* --- Filters ------------------------------------------------------------------------------------------------------ */

static int add_filter(struct query_parser *parser, struct slice key, yyjson_val *value, struct aggregation *aggregation)
{
    struct named_filter *filter = &aggregation->filters[aggregation->filter_count++];
    filter->key = key;
    return query_parse(parser, value, &filter->query);
}

static int parse_filter(struct query_parser *parser, yyjson_val *value, struct aggregation *aggregation)
{
    if (!yyjson_is_obj(value))
        return query__refuse(parser, value, false, PROBLEM_PARSING,
                             "Expected [START_OBJECT] under [filter], but got a [%s] in [%.*s]", json_token(value),
                             SLICE_ARG(aggregation->name));
    aggregation->filters = arena_zalloc(parser->arena, sizeof *aggregation->filters);
    return add_filter(parser, SLICE_LIT(""), value, aggregation);
}

static int by_filter_key(const void *a, const void *b)
{
    return slice_compare(((const struct named_filter *)a)->key, ((const struct named_filter *)b)->key);
}

static int take_filters(struct query_parser *parser, yyjson_val *value, struct aggregation *aggregation)
{
    size_t i, count;
    yyjson_val *key, *item;
    int r = 0;
    size_t all = unsafe_yyjson_get_len(value);
    aggregation->filters = arena_zalloc(parser->arena, (all + 1) * sizeof *aggregation->filters);
    aggregation->filter_count = 0;
    aggregation->keyed = yyjson_is_obj(value);
    if (aggregation->keyed) {
        json_obj_foreach (value, i, count, key, item)
            r = r == 0 ? add_filter(parser, json_slice(key), item, aggregation) : r;
        qsort(aggregation->filters, aggregation->filter_count, sizeof *aggregation->filters, by_filter_key);
    } else {
        json_arr_foreach (value, i, count, item)
            r = r == 0 ? add_filter(parser, SLICE_LIT(""), item, aggregation) : r;
    }
    return r;
}

static int parse_filters(struct query_parser *parser, yyjson_val *value, struct aggregation *aggregation)
{
    size_t i, count;
    yyjson_val *key, *member;
    int r = 0;
    aggregation->other_key = SLICE_LIT("_other_");
    json_obj_foreach (value, i, count, key, member) {
        struct slice name = json_slice(key);
        if (slice_is(name, "filters") && yyjson_is_ctn(member)) {
            r = take_filters(parser, member, aggregation);
        } else if (slice_is(name, "other_bucket") && yyjson_is_bool(member)) {
            r = query__take_bool(parser, member, &aggregation->other);
        } else if (slice_is(name, "other_bucket_key") && yyjson_is_str(member)) {
            aggregation->other = true;
            aggregation->other_key = query__scalar_text(parser->arena, member);
        } else {
            r = query__refuse(parser, member, false, PROBLEM_PARSING, "Unknown key for a %s in [%.*s]: [%.*s].",
                              json_token(member), SLICE_ARG(aggregation->name), SLICE_ARG(name));
        }
        if (r != 0)
            return r;
    }
    if (aggregation->filter_count == 0)
        return query__refuse(parser, NULL, false, PROBLEM_ILLEGAL_ARGUMENT, "[filters] cannot be empty.");
    return 0;
}

/* global has no options. */
static int parse_global(struct query_parser *parser, yyjson_val *value, const struct aggregation *aggregation)
{
    size_t index, count;
    yyjson_val *key, *member;
    json_obj_foreach (value, index, count, key, member)
        return query__refuse(parser, member, false, PROBLEM_PARSING,
                             "Expected [FIELD_NAME] under a [START_OBJECT], but got a [%s] in [%.*s]",
                             json_token(member), SLICE_ARG(aggregation->name));
    return 0;
}

/* --- Kinds -------------------------------------------------------------------------------------------------------- */

/* Refuses an unknown kind. Kinds that only Elasticsearch has get a message of their own. */
static int refuse_kind_name(struct query_parser *parser, struct slice name, yyjson_val *value)
{
    static const char *const unsupported[] = {"adjacency_matrix",
                                              "auto_date_histogram",
                                              "avg_bucket",
                                              "bucket_script",
                                              "bucket_selector",
                                              "bucket_sort",
                                              "children",
                                              "composite",
                                              "cumulative_sum",
                                              "derivative",
                                              "diversified_sampler",
                                              "extended_stats",
                                              "extended_stats_bucket",
                                              "geo_bounds",
                                              "geo_centroid",
                                              "geo_distance",
                                              "geohash_grid",
                                              "geotile_grid",
                                              "ip_range",
                                              "matrix_stats",
                                              "max_bucket",
                                              "median_absolute_deviation",
                                              "min_bucket",
                                              "moving_avg",
                                              "moving_fn",
                                              "nested",
                                              "parent",
                                              "percentile_ranks",
                                              "percentiles",
                                              "percentiles_bucket",
                                              "rare_terms",
                                              "reverse_nested",
                                              "sampler",
                                              "scripted_metric",
                                              "serial_diff",
                                              "significant_terms",
                                              "significant_text",
                                              "stats_bucket",
                                              "sum_bucket",
                                              "variable_width_histogram",
                                              "weighted_avg"};
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (slice_is(name, unsupported[i]))
            return query__refuse(parser, value, false, PROBLEM_PARSING,
                                 "aggregation type [%.*s] is not supported by this server", SLICE_ARG(name));
    int r = query__refuse(parser, value, false, PROBLEM_PARSING, "Unknown aggregation type [%.*s]", SLICE_ARG(name));
    size_t line, column;
    query_location(parser->doc, value, false, &line, &column);
    parser->problem->caused_by = arena_zalloc(parser->arena, sizeof *parser->problem->caused_by);
    problem_set(parser->problem->caused_by, parser->arena, PROBLEM_PARSING, "[%zu:%zu] unknown field [%.*s]", line,
                column, SLICE_ARG(name));
    parser->problem->caused_by->name = SLICE_LIT("named_object_not_found_exception");
    return r;
}

static int take_kind(struct query_parser *parser, struct slice name, yyjson_val *value, struct aggregation *aggregation)
{
    size_t kind = 0, index, count;
    yyjson_val *key, *member;
    while (kind < AGGREGATION_KIND_COUNT && !slice_is(name, aggregation__names[kind]))
        kind++;
    if (kind == AGGREGATION_KIND_COUNT)
        return refuse_kind_name(parser, name, value);
    if (!yyjson_is_obj(value) && parser->dialect == DIALECT_7)
        return query__refuse(parser, value, false, PROBLEM_PARSING,
                             "Expected [START_OBJECT] under [%.*s], but got a [%s] in [%.*s]", SLICE_ARG(name),
                             json_token(value), SLICE_ARG(aggregation->name));
    aggregation->kind = (enum aggregation_kind)kind;
    if ((kind_bit(aggregation->kind) & KINDS_HISTOGRAM) != 0)
        aggregation->min_doc_count = 0;
    if (kind == AGGREGATION_FILTER)
        return parse_filter(parser, value, aggregation);
    if (kind == AGGREGATION_FILTERS)
        return parse_filters(parser, value, aggregation);
    if (kind == AGGREGATION_GLOBAL)
        return parse_global(parser, value, aggregation);
    if (kind == AGGREGATION_TOP_HITS)
        return aggregation__parse_top_hits(parser, value, aggregation);
    json_obj_foreach (value, index, count, key, member) {
        int r = take_option(parser, key, member, aggregation);
        if (r != 0)
            return r;
    }
    if (aggregation->field.data == NULL)
        return query__refuse(parser, value, true, PROBLEM_ILLEGAL_ARGUMENT,
                             "Required one of fields [field, script], but none were specified. ");
    return 0;
}

/* --- Lists -------------------------------------------------------------------------------------------------------- */

static struct slice copy_json(struct query_parser *parser, yyjson_val *value)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    json_write(&buf, value, parser->dialect);
    struct slice copy = arena_copy(parser->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return copy;
}

static int parse_one(struct query_parser *parser, yyjson_val *value, unsigned depth, struct aggregation *aggregation)
{
    bool kind = false;
    size_t index, count;
    yyjson_val *key, *member;
    json_obj_foreach (value, index, count, key, member) {
        int r;
        if (slice_is(json_slice(key), "aggs") || slice_is(json_slice(key), "aggregations")) {
            r = aggregation_parse(parser, member, depth + 1, &aggregation->children);
        } else if (slice_is(json_slice(key), "meta")) {
            r = 0;
            aggregation->meta = copy_json(parser, member);
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
    if (aggregation->children != NULL && (kind_bit(aggregation->kind) & KINDS_LEAF) != 0)
        return query__refuse(parser, value, true, PROBLEM_PARSING,
                             "Aggregator [%.*s] of type [%s] cannot accept sub-aggregations",
                             SLICE_ARG(aggregation->name), kind_name(aggregation));
    return 0;
}

/* Returns: whether a text is a valid name. These characters are syntax in the path of an order. */
static bool is_name(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr("[]>", text.data[i]) != NULL)
            return false;
    return text.len > 0;
}

int aggregation_parse(struct query_parser *parser, yyjson_val *value, unsigned depth, struct aggregation **ret_list)
{
    struct aggregation **end = ret_list;
    if (depth >= AGGREGATION_DEPTH_MAX || unsafe_yyjson_get_len(value) > AGGREGATIONS_MAX)
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "too many aggregations, or too deeply nested");
    size_t index, count;
    yyjson_val *key, *member;
    json_obj_foreach (value, index, count, key, member) {
        struct aggregation *aggregation = arena_zalloc(parser->arena, sizeof *aggregation);
        aggregation->name = json_slice(key);
        if (!is_name(aggregation->name))
            return query__refuse(parser, key, false, PROBLEM_PARSING,
                                 "Invalid aggregation name [%.*s]. Aggregation names %s", SLICE_ARG(aggregation->name),
                                 parser->dialect == DIALECT_5 ? "must be alpha-numeric and can only contain '_' and '-'"
                                                              : "can contain any character except '[', ']', and '>'");
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

int aggregation_resolve_lookups(struct aggregation *list, struct arena *arena, terms_fetch *fetch, void *context,
                                struct problem *ret_problem)
{
    int r = 0;
    for (struct aggregation *a = list; a != NULL && r == 0; a = a->next) {
        for (size_t i = 0; i < a->filter_count && r == 0; i++)
            r = query_resolve_lookups(a->filters[i].query, arena, fetch, context, ret_problem);
        if (r == 0)
            r = aggregation_resolve_lookups(a->children, arena, fetch, context, ret_problem);
    }
    return r;
}
