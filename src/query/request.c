/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the body of _search. Two tables define its members and the JSON type of each. */
#include "query/request.h"

#include "json/each.h"
#include "json/write.h"
#include "json/time_value.h"
#include "query/aggregate.h"
#include "query/collapse.h"
#include "query/node.h"
#include "query/parse_leaf.h"
#include "query/search.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

void search_request_init(struct search_request *request)
{
    *request = (struct search_request){.from = -1,
                                       .size = -1,
                                       .track_total_hits = TOTAL_HITS_UNSET,
                                       .min_score = NAN,
                                       .timeout_us = SEARCH_TIMEOUT_UNSET};
}

void search_request_timeout(struct search_request *request, struct slice text, int64_t us)
{
    request->timeout_us = us > 0 ? us : 0;
    request->overdue = us < 0 && time_value_has_passed(text);
}

size_t search_request_split(struct arena *arena, struct slice text, struct slice **ret_items)
{
    struct slice *items = NULL;
    size_t count = 0, capacity = 0;
    while (text.len > 0) {
        size_t comma = slice_find_byte(text, ',');
        if (comma > 0) {
            items = arena_grow(arena, items, count, &capacity, sizeof *items);
            items[count++] = (struct slice){text.data, comma};
        }
        text = slice_from_offset(text, comma + 1);
    }
    *ret_items = items;
    return count;
}

/* --- Scalars ------------------------------------------------------------------------------------------------------ */

static int take_int(struct query_parser *parser, yyjson_val *value, int32_t *ret_number)
{
    double number;
    int r = query__take_double(parser, value, &number);
    if (r != 0)
        return r;
    if (number > INT32_MAX || number < INT32_MIN)
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "Numeric value (%.*s) out of range of int (-2147483648 - 2147483647)",
                             SLICE_ARG(query__scalar_text(parser->arena, value)));
    *ret_number = (int32_t)number;
    return 0;
}

static int take_from(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    int r = take_int(parser, value, &request->from);
    if (r == 0 && (request->from < -1 || (request->from < 0 && parser->dialect == DIALECT_5)))
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             parser->dialect == DIALECT_7 ? "[from] parameter cannot be negative but was [%d]"
                                                          : "[from] parameter cannot be negative",
                             request->from);
    return r;
}

static int take_size(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    int r = take_int(parser, value, &request->size);
    if (r == 0 && (request->size < -1 || (request->size < 0 && parser->dialect == DIALECT_5)))
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "[size] parameter cannot be negative, found [%d]", request->size);
    return r;
}

static int take_timeout(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    struct slice text = arena_copy(parser->arena, query__scalar_text(parser->arena, value));
    struct problem problem;
    int64_t us = 0;
    if (time_value_parse(text, SLICE_LIT("timeout"), parser->dialect, parser->arena, &us, &problem) != 0) {
        int r = query__refuse(parser, value, false, problem.type, "%.*s", SLICE_ARG(problem.reason));
        parser->problem->caused_by = problem.caused_by;
        return r;
    }
    search_request_timeout(request, text, us);
    return 0;
}

static int take_terminate_after(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    int r = take_int(parser, value, &request->terminate_after);
    if (r == 0 && request->terminate_after < 0)
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT, "terminateAfter must be > 0");
    return r;
}

static int take_min_score(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    return query__take_double(parser, value, &request->min_score);
}

static int take_version(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    return query__take_bool(parser, value, &request->version);
}

static int take_seq_no(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    return query__take_bool(parser, value, &request->seq_no_primary_term);
}

static int take_explain(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    int r = query__take_bool(parser, value, &request->explain);
    if (r == 0 && request->explain)
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "[explain] is not supported: scores are not explained");
    return r;
}

static int take_profile(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    bool profile = false;
    (void)request;
    int r = query__take_bool(parser, value, &profile);
    if (r == 0 && profile)
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "[profile] is not supported: searches are not profiled");
    return r;
}

static int take_track_scores(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    return query__take_bool(parser, value, &request->track_scores);
}

static int take_track_total_hits(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    if (yyjson_is_bool(value) || slice_is(json_slice(value), "true") || slice_is(json_slice(value), "false")) {
        bool all = yyjson_is_true(value) || slice_is(json_slice(value), "true");
        request->track_total_hits = all ? TOTAL_HITS_ALL : TOTAL_HITS_NONE;
        return 0;
    }
    int r = take_int(parser, value, &request->track_total_hits);
    if (r == 0 && request->track_total_hits < -1)
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "[track_total_hits] parameter must be positive or equals to -1, got %d",
                             request->track_total_hits);
    return r;
}

/* --- Queries ------------------------------------------------------------------------------------------------------ */

static int take_query(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    return query_parse(parser, value, &request->query);
}

static int take_post_filter(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    return query_parse(parser, value, &request->post_filter);
}

/* --- _source ------------------------------------------------------------------------------------------------------ */

/* Parses a source filter's patterns. `name` is the member that contains them. */
static int take_patterns(struct query_parser *parser, yyjson_val *value, struct slice name,
                         const struct slice **ret_items, size_t *ret_count)
{
    size_t count = yyjson_is_arr(value) ? unsafe_yyjson_get_len(value) : 1;
    yyjson_val *item = yyjson_is_arr(value) ? unsafe_yyjson_get_first(value) : value;
    struct slice *items = arena_alloc(parser->arena, count * sizeof *items);
    if (count > JSON_FILTER_PATTERNS_MAX)
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT, "more than %d patterns",
                             JSON_FILTER_PATTERNS_MAX);
    for (size_t i = 0; i < count; i++, item = unsafe_yyjson_get_next(item)) {
        bool scalar = yyjson_is_str(item) || (slice_is(name, "_source") && yyjson_is_arr(value) &&
                                              (yyjson_is_num(item) || yyjson_is_bool(item)));
        if (!scalar)
            return query__refuse(parser, item, false, PROBLEM_PARSING, "Unknown key for a %s in [%.*s].",
                                 json_token(item), SLICE_ARG(name));
        items[i] = query__scalar_text(parser->arena, item);
        if (items[i].len > JSON_FILTER_PATTERN_BYTES_MAX)
            return query__refuse(parser, item, false, PROBLEM_ILLEGAL_ARGUMENT, "a pattern has at most %d bytes",
                                 JSON_FILTER_PATTERN_BYTES_MAX);
    }
    *ret_items = items;
    *ret_count = count;
    return 0;
}

static int take_source_object(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    size_t index, count;
    yyjson_val *key, *member;
    json_obj_foreach (value, index, count, key, member) {
        struct slice name = json_slice(key);
        int r;
        if (slice_is(name, "includes") || slice_is(name, "include"))
            r = take_patterns(parser, member, name, &request->source.includes, &request->source.include_count);
        else if (slice_is(name, "excludes") || slice_is(name, "exclude"))
            r = take_patterns(parser, member, name, &request->source.excludes, &request->source.exclude_count);
        else
            r = query__refuse(parser, member, false, PROBLEM_PARSING, "Unknown key for a %s in [%.*s].",
                              json_token(member), SLICE_ARG(name));
        if (r != 0)
            return r;
    }
    return 0;
}

static int take_source(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    request->source_asked = true;
    if (yyjson_is_bool(value)) {
        request->no_source = !yyjson_is_true(value);
        return 0;
    }
    if (yyjson_is_obj(value))
        return take_source_object(parser, value, request);
    if (yyjson_is_str(value) || yyjson_is_arr(value))
        return take_patterns(parser, value, SLICE_LIT("_source"), &request->source.includes,
                             &request->source.include_count);
    return query__refuse(parser, value, false, PROBLEM_PARSING,
                         "Expected one of [VALUE_BOOLEAN, START_OBJECT] but found [%s]", json_token(value));
}

/* --- Fields ------------------------------------------------------------------------------------------------------- */

static int take_stored_fields(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    const struct slice *items = NULL;
    int r = take_patterns(parser, value, SLICE_LIT("stored_fields"), &items, &request->stored_field_count);
    request->stored_fields = (struct slice *)(uintptr_t)items;
    request->no_source = request->no_source || (r == 0 && request->stored_field_count == 0 && !request->source_asked);
    for (size_t i = 0; r == 0 && i < request->stored_field_count; i++) {
        request->stored_none = request->stored_none || slice_is(items[i], "_none_");
    }
    if (r == 0 && request->stored_none && request->stored_field_count > 1)
        return query__refuse(parser, value, true, PROBLEM_ILLEGAL_ARGUMENT, "cannot combine _none_ with other fields");
    return r;
}

static int take_formats(struct query_parser *parser, struct slice name, yyjson_val *value,
                        struct field_format **ret_items, size_t *ret_count)
{
    size_t index, count;
    yyjson_val *item;
    struct field_format *items = arena_zalloc(parser->arena, unsafe_yyjson_get_len(value) * sizeof *items);
    json_arr_foreach (value, index, count, item) {
        yyjson_val *field = yyjson_is_obj(item) ? json_get_lit(item, "field") : item;
        if (!yyjson_is_str(field))
            return query__refuse(parser, item, false, PROBLEM_PARSING, "[%.*s] expected a field name but found [%s]",
                                 SLICE_ARG(name), json_token(item));
        items[index].pattern = json_slice(field);
        yyjson_val *format = json_get_lit(item, "format");
        if (yyjson_is_str(format) && !slice_is(json_slice(format), "use_field_mapping"))
            items[index].format = json_slice(format);
    }
    *ret_items = items;
    *ret_count = count;
    return 0;
}

static int take_docvalue_fields(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    return take_formats(parser, SLICE_LIT("docvalue_fields"), value, &request->docvalue_fields,
                        &request->docvalue_count);
}

static int take_fields(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    if (parser->dialect == DIALECT_5) /* as in 1.x: stored fields, or parts of the source */
        return take_stored_fields(parser, value, request);
    return take_formats(parser, SLICE_LIT("fields"), value, &request->fields, &request->field_count);
}

static int take_script_fields(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    size_t index, count;
    yyjson_val *key, *member;
    request->script_fields = arena_zalloc(parser->arena, unsafe_yyjson_get_len(value) * sizeof(struct script_field));
    json_obj_foreach (value, index, count, key, member) {
        struct script_field *field = &request->script_fields[request->script_field_count++];
        yyjson_val *script = json_get_lit(member, "script");
        field->name = json_slice(key);
        field->ignore_failure = yyjson_is_true(json_get_lit(member, "ignore_failure"));
        if (script == NULL)
            return query__refuse(parser, member, true, PROBLEM_PARSING, "must specify a script in script fields");
        int r = query__parse_script(parser, script, &field->script);
        if (r != 0)
            return r;
    }
    return 0;
}

/* --- Sorting ------------------------------------------------------------------------------------------------------ */

static void name_key(const struct query_parser *parser, struct sort_key *key, struct slice field)
{
    *key = (struct sort_key){.by = SORT_FIELD, .field = field};
    if (slice_is(field, "_score")) {
        key->by = SORT_SCORE;
        key->descending = true;
    } else if (slice_is(field, "_doc") || slice_is(field, "_shard_doc")) {
        key->by = SORT_DOC;
    } else if (slice_is(field, "_id") || (slice_is(field, "_uid") && parser->dialect == DIALECT_5)) {
        key->by = SORT_ID;
    }
}

static int take_order(struct query_parser *parser, struct slice text, yyjson_val *at, struct sort_key *key)
{
    bool ascending = slice_is_ignoring_case(text, "asc");
    bool descending = slice_is_ignoring_case(text, "desc");
    if (!ascending && !descending) {
        char *upper = (char *)(uintptr_t)arena_copy(parser->arena, text).data;
        for (size_t i = 0; i < text.len; i++)
            upper[i] = (char)toupper((unsigned char)upper[i]);
        return query__refuse(parser, at, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "No enum constant org.elasticsearch.search.sort.SortOrder.%.*s", (int)text.len, upper);
    }
    key->descending = descending;
    return 0;
}

static int take_mode(struct query_parser *parser, yyjson_val *value, struct sort_key *key)
{
    static const char *const modes[] = {"", "min", "max", "sum", "avg", "median"};
    struct slice text = query__scalar_text(parser->arena, value);
    for (size_t i = 1; i < sizeof modes / sizeof *modes; i++) {
        if (slice_is(text, modes[i])) {
            key->mode = (enum sort_mode)i;
            return 0;
        }
    }
    return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT, "Unknown SortMode [%.*s]", SLICE_ARG(text));
}

/* Returns: the name that Elasticsearch's parser of such a sort key has in errors. */
static const char *sort_parser(const struct sort_key *key)
{
    return key->by == SORT_SCORE ? "_score" : key->by == SORT_SCRIPT ? "_script" : "field_sort";
}

/* The JSON types that 7.10 accepts for the options of a sort key. */
static const struct {
    const char *option;
    unsigned kinds;
} sort_option_kinds[] = {
    {"order", JSON_TEXT},
    {"mode", JSON_TEXT},
    {"missing", JSON_TEXT | JSON_NUMBER | JSON_BOOLEAN | JSON_NULL},
    {"unmapped_type", JSON_TEXT},
    {"numeric_type", JSON_TEXT},
};

static int check_kind(struct query_parser *parser, struct slice option, yyjson_val *value, const struct sort_key *key)
{
    for (size_t i = 0; i < sizeof sort_option_kinds / sizeof *sort_option_kinds && parser->dialect == DIALECT_7; i++) {
        if (!slice_is(option, sort_option_kinds[i].option) || (json_kind(value) & sort_option_kinds[i].kinds) != 0)
            continue;
        size_t line = 0, column = 0;
        query_location(parser->doc, value, false, &line, &column);
        return query__refuse(parser, value, false, PROBLEM_X_CONTENT_PARSE,
                             "[%zu:%zu] [%s] %.*s doesn't support values of type: %s", line, column, sort_parser(key),
                             SLICE_ARG(option), json_token(value));
    }
    return 0;
}

static int take_numeric_type(struct query_parser *parser, yyjson_val *value, struct sort_key *key)
{
    static const char *const names[] = {"", "long", "double", "date", "date_nanos"};
    struct slice text = query__scalar_text(parser->arena, value);
    for (size_t i = 1; i < sizeof names / sizeof *names; i++) {
        if (slice_is(text, names[i])) {
            key->numbers = (enum sort_numbers)i;
            return 0;
        }
    }
    query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                  "invalid value for [numeric_type], must be [long, double, date, date_nanos], got %.*s",
                  SLICE_ARG(text));
    return query__wrap_refusal(parser, "field_sort", SLICE_LIT("numeric_type"));
}

static int take_sort_option(struct query_parser *parser, struct slice option, yyjson_val *value, struct sort_key *key)
{
    struct slice text = query__scalar_text(parser->arena, value);
    int r = check_kind(parser, option, value, key);
    if (r != 0)
        return r;
    if (key->by == SORT_SCORE && !slice_is(option, "order") && parser->dialect == DIALECT_7) {
        static const char *const known[] = {"order"};
        return query__refuse_unknown_of(parser, SLICE_LIT("_score"), value - 1, known, 1);
    }
    if (slice_is(option, "order"))
        return take_order(parser, text, value, key) == 0 ? 0 : query__wrap_refusal(parser, "field_sort", option);
    if (slice_is(option, "mode"))
        return take_mode(parser, value, key) == 0 ? 0 : query__wrap_refusal(parser, "field_sort", option);
    if (slice_is(option, "script"))
        return query__parse_script(parser, value, &key->script);
    if (slice_is(option, "missing")) {
        key->missing_first = slice_is(text, "_first");
        key->missing = key->missing_first || slice_is(text, "_last") || yyjson_is_null(value) ? NULL : value;
    } else if (slice_is(option, "unmapped_type")) {
        key->unmapped_type = text;
    } else if (slice_is(option, "ignore_unmapped")) {
        key->unmapped_type = yyjson_is_true(value) ? SLICE_LIT("long") : key->unmapped_type;
    } else if (slice_is(option, "type")) {
        key->script_number = slice_is(text, "number");
    } else if (slice_is(option, "numeric_type") && parser->dialect == DIALECT_7) {
        return take_numeric_type(parser, value, key);
    } else if (slice_is(option, "nested_path")) {
        key->nested = text;
    } else if (slice_is(option, "nested")) {
        key->nested = query__scalar_text(parser->arena, json_get_lit(value, "path"));
    } else {
        static const char *const known[] = {"missing",     "unmapped_type", "order",  "mode",
                                            "nested_path", "nested_filter", "nested", "numeric_type"};
        return query__refuse_unknown_of(parser, SLICE_LIT("field_sort"), value - 1, known,
                                        sizeof known / sizeof *known);
    }
    return 0;
}

/*
 * Refuses a sort value that is neither a direction nor an object. 7.10 reports the token after the
 * value, or the first one in an array.
 */
static int refuse_no_options(struct query_parser *parser, yyjson_val *value, const struct sort_key *key)
{
    const struct slice source = parser->doc->source;
    size_t at, end, line, column;
    json_locate(parser->doc, value, &at, &end);
    at = yyjson_is_arr(value) ? at + 1 : end;
    while (at < source.len && strchr(" \t\r\n,", source.data[at]) != NULL)
        at++;
    const char *token = yyjson_is_arr(value) && unsafe_yyjson_get_len(value) > 0
                            ? json_token(unsafe_yyjson_get_first(value))
                        : at < source.len && source.data[at] == '"' ? "FIELD_NAME"
                        : yyjson_is_arr(value)                      ? "END_ARRAY"
                                                                    : "END_OBJECT";
    json_line_column(source, at, &line, &column);
    return query__refuse(parser, value, false, PROBLEM_X_CONTENT_PARSE,
                         "[%zu:%zu] [%s] Expected START_OBJECT but was: %s", line, column, sort_parser(key), token);
}

/* Parses {"field": "desc"} or {"field": {"order": "desc", …}}. */
static int take_sort_object(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    size_t index, count;
    yyjson_val *name, *options;
    json_obj_foreach (value, index, count, name, options) {
        struct sort_key *key = &request->sort[request->sort_count];
        name_key(parser, key, json_slice(name));
        if (slice_is(json_slice(name), "_script")) /* the name alone is a field's: there is no script */
            key->by = SORT_SCRIPT;
        int r = 0;
        if (yyjson_is_str(options))
            r = take_order(parser, json_slice(options), options, key);
        else if (!yyjson_is_obj(options) && parser->dialect == DIALECT_7)
            r = refuse_no_options(parser, options, key);
        size_t option_index, option_count;
        yyjson_val *option, *member;
        json_obj_foreach (options, option_index, option_count, option, member) {
            r = take_sort_option(parser, json_slice(option), member, key);
            if (r != 0)
                return r;
        }
        if (r != 0)
            return r;
        if (key->by == SORT_SCRIPT && key->script == NULL)
            return query__refuse(parser, options, true, PROBLEM_PARSING, "[_script] sort needs a [script]");
        request->sort_count++;
    }
    return 0;
}

#define SORT_KEYS_MAX 64

static int refuse_sort_keys(struct query_parser *parser, yyjson_val *value)
{
    return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT, "more than %d sort keys", SORT_KEYS_MAX);
}

/* Sorting by score alone is the default order, which has no keys. */
static void settle_sort(struct search_request *request)
{
    if (request->sort_count == 1 && request->sort[0].by == SORT_SCORE && request->sort[0].descending)
        request->sort_count = 0;
}

static int take_sort(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    request->sort = arena_zalloc(parser->arena, (SORT_KEYS_MAX + 1) * sizeof(struct sort_key));
    request->sort_count = 0;
    bool array = yyjson_is_arr(value);
    size_t count = array ? unsafe_yyjson_get_len(value) : 1;
    yyjson_val *item = array ? unsafe_yyjson_get_first(value) : value;
    for (size_t i = 0; i < count; i++, item = unsafe_yyjson_get_next(item)) {
        if (request->sort_count + (yyjson_is_obj(item) ? unsafe_yyjson_get_len(item) : 1) > SORT_KEYS_MAX)
            return refuse_sort_keys(parser, item);
        int r = 0;
        if (yyjson_is_str(item))
            name_key(parser, &request->sort[request->sort_count++], json_slice(item));
        else if (yyjson_is_obj(item))
            r = take_sort_object(parser, item, request);
        else if (!array && !yyjson_is_null(item)) /* a number is accepted as a field name */
            name_key(parser, &request->sort[request->sort_count++], query__scalar_text(parser->arena, item));
        else
            r = query__refuse(parser, item, false, PROBLEM_ILLEGAL_ARGUMENT, "malformed sort format, %s",
                              array ? "within the sort array, an object, or an actual string are allowed"
                                    : "either start with array, object, or an actual string");
        if (r != 0)
            return r;
    }
    settle_sort(request);
    return 0;
}

int search_request_sort(struct query_parser *parser, struct slice text, struct search_request *request)
{
    struct slice *items = NULL;
    size_t count = search_request_split(parser->arena, text, &items);
    if (request->sort == NULL)
        request->sort = arena_zalloc(parser->arena, (SORT_KEYS_MAX + 1) * sizeof(struct sort_key));
    else if (request->sort_count == 0 && request->sort[0].by == SORT_SCORE)
        request->sort_count = 1; /* the body's, which is not alone now */
    for (size_t i = 0; i < count; i++) {
        struct sort_key *key = &request->sort[request->sort_count++];
        size_t colon = items[i].len;
        if (request->sort_count > SORT_KEYS_MAX)
            return refuse_sort_keys(parser, NULL);
        while (colon > 0 && items[i].data[colon - 1] != ':')
            colon--;
        if (colon == 0) {
            name_key(parser, key, items[i]);
            continue;
        }
        struct slice order = slice_from_offset(items[i], colon);
        name_key(parser, key, (struct slice){items[i].data, colon - 1});
        if (slice_is(order, "desc") || slice_is(order, "asc"))
            key->descending = slice_is(order, "desc");
        else
            request->sort_count--; /* a key with an unknown direction is ignored */
    }
    settle_sort(request);
    return 0;
}

/* --- Other members ------------------------------------------------------------------------------------------------ */

static int take_search_after(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    if (unsafe_yyjson_get_len(value) == 0)
        return query__refuse(parser, value, true, PROBLEM_ILLEGAL_ARGUMENT, "Values must contains at least one value.");
    size_t i, count;
    yyjson_val *item;
    json_arr_foreach (value, i, count, item) {
        if (yyjson_is_ctn(item))
            return query__refuse(
                parser, item, false, PROBLEM_PARSING,
                "Expected [VALUE_STRING] or [VALUE_NUMBER] or [VALUE_BOOLEAN] or [VALUE_NULL] but found "
                "[%s] inside search_after.",
                json_token(item));
    }
    request->search_after = value;
    return 0;
}

static int check_slice_field(struct query_parser *parser, yyjson_val *value)
{
    if (yyjson_is_str(value))
        return 0;
    query_location(parser->doc, value, false, &parser->line, &parser->column);
    return query__refuse(parser, NULL, false, PROBLEM_X_CONTENT_PARSE,
                         "[%zu:%zu] [slice] field doesn't support values of type: %s", parser->line, parser->column,
                         json_token(value));
}

/* Takes `id` or `max` of a slice, and checks it against the other one if that was before it; -1: it was not. */
static int take_slice_number(struct query_parser *parser, struct slice name, yyjson_val *value, int32_t *id,
                             int32_t *max)
{
    bool is_id = slice_is(name, "id");
    int r = take_int(parser, value, is_id ? id : max);
    if (r != 0)
        return r;
    const char *why = is_id && *id < 0            ? "id must be greater than or equal to 0"
                      : !is_id && *max <= 1       ? "max must be greater than 1"
                      : *max != -1 && *id >= *max ? "max must be greater than id"
                                                  : NULL;
    if (why == NULL)
        return 0;
    r = query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT, "%s", why);
    return parser->dialect == DIALECT_7 ? query__wrap_refusal(parser, "slice", name) : r;
}

static int take_slice(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    static const char *const known[] = {"field", "id", "max"};
    int32_t id = -1, max = -1;
    size_t i, count;
    yyjson_val *key, *member, *field = json_get_lit(value, "field");
    json_obj_foreach (value, i, count, key, member) {
        struct slice name = json_slice(key);
        int r;
        if (slice_is(name, "field"))
            r = check_slice_field(parser, member);
        else if (slice_is(name, "id") || slice_is(name, "max"))
            r = take_slice_number(parser, name, member, &id, &max);
        else
            r = query__refuse_unknown_of(parser, SLICE_LIT("slice"), key, known, sizeof known / sizeof *known);
        if (r != 0)
            return r;
    }
    if (id < 0)
        return query__refuse(parser, value, true, PROBLEM_ILLEGAL_ARGUMENT, "id must be greater than or equal to 0");
    if (max <= 1)
        return query__refuse(parser, value, true, PROBLEM_ILLEGAL_ARGUMENT, "max must be greater than 1");
    if (max > 1024)
        return query__refuse(parser, value, true, PROBLEM_ILLEGAL_ARGUMENT,
                             "The number of slices [%d] is too large. It must be less than [1024]. "
                             "This limit can be set by changing the [index.max_slices_per_scroll] index level setting.",
                             max);
    request->slice_id = (uint32_t)id;
    request->slice_max = (uint32_t)max;
    request->slice_field = yyjson_is_str(field) ? json_slice(field) : SLICE_NONE;
    return 0;
}

static int take_pit(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    yyjson_val *id = json_get_lit(value, "id"), *keep_alive = json_get_lit(value, "keep_alive");
    if (!yyjson_is_str(id))
        return query__refuse(parser, value, true, PROBLEM_ILLEGAL_ARGUMENT, "point int time id is not provided");
    request->pit_id = json_slice(id);
    request->pit_keep_alive = yyjson_is_str(keep_alive) ? json_slice(keep_alive) : SLICE_NONE;
    return 0;
}

static int check_index_boosts(struct query_parser *parser, yyjson_val *members)
{
    size_t i, count;
    yyjson_val *key, *boost;
    json_obj_foreach (members, i, count, key, boost) {
        if (yyjson_get_num(boost) >= 0 || parser->dialect != DIALECT_7)
            continue;
        tl_cleanup(buf_deinit) struct buf number = BUF_INIT(BUF_UNLIMITED);
        json_float_text(&number, (float)yyjson_get_num(boost));
        return query__refuse(parser, boost, false, PROBLEM_ILLEGAL_ARGUMENT, "boost must be a positive float, got %.*s",
                             SLICE_ARG(buf_as_slice(&number)));
    }
    return 0;
}

static int take_boosts(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    int r = check_index_boosts(parser, yyjson_is_obj(value) ? value : NULL);
    size_t i, count;
    yyjson_val *item;
    json_arr_foreach (value, i, count, item)
        if (r == 0 && yyjson_is_obj(item))
            r = check_index_boosts(parser, item);
    request->indices_boost = value;
    return r;
}

static int take_aggregations(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    return aggregation_parse(parser, value, 0, &request->aggregations);
}

static int take_nothing(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    (void)parser;
    (void)value;
    (void)request;
    return 0;
}

static int refuse_member(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    (void)request;
    return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT, "[%.*s] is not supported by this server",
                         SLICE_ARG(json_slice(value - 1)));
}

/* --- The tables --------------------------------------------------------------------------------------------------- */

enum member_shape { SHAPE_SCALAR = 1, SHAPE_OBJECT = 2, SHAPE_ARRAY = 4, SHAPE_ANY = 7 };

struct member {
    const char *name;
    int shapes;
    int (*take)(struct query_parser *parser, yyjson_val *value, struct search_request *request);
};

static const struct member members[] = {
    {"query", SHAPE_OBJECT, take_query},
    {"from", SHAPE_SCALAR, take_from},
    {"size", SHAPE_SCALAR, take_size},
    {"sort", SHAPE_ANY, take_sort},
    {"_source", SHAPE_ANY, take_source},
    {"stored_fields", SHAPE_SCALAR | SHAPE_ARRAY, take_stored_fields},
    {"docvalue_fields", SHAPE_ARRAY, take_docvalue_fields},
    {"fielddata_fields", SHAPE_ARRAY, take_docvalue_fields},
    {"fields", SHAPE_SCALAR | SHAPE_ARRAY, take_fields},
    {"script_fields", SHAPE_OBJECT, take_script_fields},
    {"post_filter", SHAPE_OBJECT, take_post_filter},
    {"filter", SHAPE_OBJECT, take_post_filter}, /* 1.x */
    {"min_score", SHAPE_SCALAR, take_min_score},
    {"version", SHAPE_SCALAR, take_version},
    {"seq_no_primary_term", SHAPE_SCALAR, take_seq_no},
    {"explain", SHAPE_SCALAR, take_explain},
    {"profile", SHAPE_SCALAR, take_profile},
    {"track_scores", SHAPE_SCALAR, take_track_scores},
    {"track_total_hits", SHAPE_SCALAR, take_track_total_hits},
    {"terminate_after", SHAPE_SCALAR, take_terminate_after},
    {"timeout", SHAPE_SCALAR, take_timeout},
    {"search_after", SHAPE_ARRAY, take_search_after},
    {"slice", SHAPE_OBJECT, take_slice},
    {"pit", SHAPE_OBJECT, take_pit},
    {"indices_boost", SHAPE_OBJECT | SHAPE_ARRAY, take_boosts},
    {"aggregations", SHAPE_OBJECT, take_aggregations},
    {"aggs", SHAPE_OBJECT, take_aggregations},
    {"facets", SHAPE_OBJECT, refuse_member},
    {"stats", SHAPE_ARRAY, take_nothing},
    {"ext", SHAPE_OBJECT, take_nothing},
    {"highlight", SHAPE_OBJECT, refuse_member},
    {"suggest", SHAPE_OBJECT, refuse_member},
    {"rescore", SHAPE_OBJECT | SHAPE_ARRAY, refuse_member},
    {"collapse", SHAPE_OBJECT, collapse_parse},
};

static int take_member(struct query_parser *parser, yyjson_val *key, yyjson_val *value, struct search_request *request)
{
    struct slice name = json_slice(key);
    int shape = yyjson_is_obj(value)    ? SHAPE_OBJECT
                : yyjson_is_arr(value)  ? SHAPE_ARRAY
                : yyjson_is_null(value) ? 0
                                        : SHAPE_SCALAR;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (slice_is(name, members[i].name) && (members[i].shapes & shape) != 0)
            return members[i].take(parser, value, request);
    }
    return query__refuse(parser, value, false, PROBLEM_PARSING, "Unknown key for a %s in [%.*s].", json_token(value),
                         SLICE_ARG(name));
}

int search_request_parse(struct query_parser *parser, yyjson_val *body, struct search_request *request)
{
    if (!yyjson_is_obj(body))
        return query__refuse(parser, body, false, PROBLEM_PARSING, "Expected [START_OBJECT] but found [%s]",
                             json_token(body));
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        int r = take_member(parser, key, value, request);
        if (r != 0)
            return r;
    }
    return 0;
}

/* --- Invalid combinations ----------------------------------------------------------------------------------------- */

size_t search_request_scroll_problems(const struct search_request *request,
                                      const char *ret_texts[SEARCH_SCROLL_PROBLEMS_MAX])
{
    size_t count = 0;
    if (request->track_total_hits != TOTAL_HITS_UNSET && request->track_total_hits != TOTAL_HITS_ALL)
        ret_texts[count++] = "disabling [track_total_hits] is not allowed in a scroll context";
    if (request->from > 0)
        ret_texts[count++] = "using [from] is not allowed in a scroll context";
    if (request->size == 0)
        ret_texts[count++] = "[size] cannot be [0] in a scroll context";
    if (request->pit_id.data != NULL)
        ret_texts[count++] = "using [point in time] is not allowed in a scroll context";
    if (request->request_cache)
        ret_texts[count++] = "[request_cache] cannot be used in a scroll context";
    if (request->collapse.data != NULL)
        ret_texts[count++] = "cannot use `collapse` in a scroll context";
    return count;
}

static int check_scroll(struct query_parser *parser, const struct search_request *request)
{
    const char *texts[SEARCH_SCROLL_PROBLEMS_MAX];
    size_t count = search_request_scroll_problems(request, texts);
    struct slice all = SLICE_NONE;
    for (size_t i = 0; i < count; i++)
        all = arena_append(parser->arena, all, "%s%zu: %s;", i == 0 ? "Validation Failed: " : "", i + 1, texts[i]);
    return count == 0 ? 0
                      : query__refuse(parser, NULL, false, PROBLEM_ACTION_REQUEST_VALIDATION, "%.*s", SLICE_ARG(all));
}

int search_request_check(struct query_parser *parser, const struct search_request *request, bool scroll)
{
    if (scroll && check_scroll(parser, request) != 0)
        return QUERY_REFUSED;
    if (request->search_after != NULL && request->from > 0)
        return query__refuse(parser, NULL, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "`from` parameter must be set to 0 when `search_after` is used.");
    if (request->slice_max > 0 && !scroll && request->pit_id.data == NULL)
        return query__refuse(parser, NULL, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "`slice` cannot be used outside of a scroll context: ask for a [scroll], or read in a "
                             "point in time");
    return 0;
}
