/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses queries: selects the parser by the query's name, and parses the compound queries.
 *
 * Errors have the text and the location that Elasticsearch's streaming parser reports; see
 * query__refuse(). Leaf queries are parsed in parse_leaf.c, full-text queries in parse_text.c.
 */
#include "query/node.h"

#include <math.h>
#include <stdarg.h>

#include "base/budget.h"
#include "base/zone.h"
#include "json/each.h"
#include "query/parse_leaf.h"

/* --- Errors ------------------------------------------------------------------------------------------------------- */

int query__refuse(struct query_parser *parser, yyjson_val *at, bool end, enum problem_type type, const char *format,
                  ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(parser->arena, format, arguments);
    va_end(arguments);
    *parser->problem = (struct problem){.type = type, .reason = reason};
    if (at != NULL && parser->doc != NULL)
        query_location(parser->doc, at, end, &parser->line, &parser->column);
    if (type == PROBLEM_PARSING)
        problem_details(parser->problem, parser->arena, "\"line\":%zu,\"col\":%zu", parser->line, parser->column);
    return QUERY_REFUSED;
}

int query__refuse_option(struct query_parser *parser, struct slice name, struct slice option, yyjson_val *at)
{
    return query__refuse(parser, at, false, PROBLEM_PARSING, "[%.*s] query does not support [%.*s]", SLICE_ARG(name),
                         SLICE_ARG(option));
}

int query__refuse_unknown_of(struct query_parser *parser, struct slice name, yyjson_val *key, const char *const *known,
                             size_t known_count)
{
    if (parser->doc != NULL)
        query_location(parser->doc, key, false, &parser->line, &parser->column);
    if (parser->dialect == DIALECT_5)
        return query__refuse(parser, key, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "[%.*s] unknown field [%.*s], parser not found", SLICE_ARG(name),
                             SLICE_ARG(json_slice(key)));
    return query__refuse(parser, key, false, PROBLEM_X_CONTENT_PARSE, "[%zu:%zu] [%.*s] unknown field [%.*s]%.*s",
                         parser->line, parser->column, SLICE_ARG(name), SLICE_ARG(json_slice(key)),
                         SLICE_ARG(query_suggest(parser->arena, json_slice(key), known, known_count)));
}

int query__wrap_leaf_refusal(struct query_parser *parser, yyjson_val *at)
{
    struct problem *cause = arena_alloc(parser->arena, sizeof *cause);
    *cause = *parser->problem;
    query__refuse(parser, at, false, PROBLEM_PARSING, "%.*s", SLICE_ARG(cause->reason));
    parser->problem->caused_by = cause;
    return QUERY_REFUSED;
}

int query__wrap_refusal(struct query_parser *parser, const char *name, struct slice option)
{
    struct problem *cause = arena_alloc(parser->arena, sizeof *cause);
    *cause = *parser->problem;
    if (parser->dialect == DIALECT_5)
        query__refuse(parser, NULL, false, PROBLEM_PARSING, "[%s] failed to parse field [%.*s]", name,
                      SLICE_ARG(option));
    else
        query__refuse(parser, NULL, false, PROBLEM_X_CONTENT_PARSE, "[%zu:%zu] [%s] failed to parse field [%.*s]",
                      parser->line, parser->column, name, SLICE_ARG(option));
    parser->problem->caused_by = cause;
    return QUERY_REFUSED;
}

int query__take_zone(struct query_parser *parser, yyjson_val *value, const struct zone **ret_zone)
{
    struct slice text = query__scalar_text(parser->arena, value);
    struct problem *cause = arena_zalloc(parser->arena, sizeof *cause);
    struct zone zone;
    if (zone_parse(parser->zones, text, parser->arena, &zone, cause) == 0) {
        *ret_zone = zone_copy(&zone, parser->arena);
        return 0;
    }
    const char *java = slice_is(cause->name, "zone_rules_exception") ? "java.time.zone.ZoneRulesException"
                                                                     : "java.time.DateTimeException";
    query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT, "%s: %.*s", java, SLICE_ARG(cause->reason));
    parser->problem->caused_by = cause;
    return QUERY_REFUSED;
}

bool query__charge(struct query_parser *parser, uint64_t steps)
{
    const struct budget_guard *guard = parser->arena->guard;
    if (guard == NULL || (account_take(guard->account, steps) && !guard->refused))
        return true;
    *parser->problem = (struct problem){.type = PROBLEM_TASK_CANCELLED, .reason = SLICE_LIT("the request is over")};
    return false;
}

/* --- Scalars ------------------------------------------------------------------------------------------------------ */

int query__take_double(struct query_parser *parser, yyjson_val *value, double *ret_number)
{
    struct slice text = slice_trim(query__scalar_text(parser->arena, value));
    double number;
    if (yyjson_is_str(value) && text.len == 0 && parser->dialect == DIALECT_7)
        return query__refuse(parser, value, false, PROBLEM_NUMBER_FORMAT, "empty String");
    if (yyjson_is_ctn(value) || !slice_to_double(text, &number))
        return query__refuse(parser, value, false, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"",
                             SLICE_ARG(text));
    *ret_number = number;
    return 0;
}

int query__check_boost(struct query_parser *parser, yyjson_val *at, double boost)
{
    if (boost >= 0 || parser->dialect != DIALECT_7)
        return 0;
    return query__refuse(parser, at, false, PROBLEM_ILLEGAL_ARGUMENT,
                         "negative [boost] are not allowed in [query], use a value between 0 and 1 to deboost");
}

int query__take_boost(struct query_parser *parser, yyjson_val *value, double *ret_boost)
{
    int r = query__take_double(parser, value, ret_boost);
    return r != 0 ? r : query__check_boost(parser, value, *ret_boost);
}

int query__take_u32(struct query_parser *parser, yyjson_val *value, unsigned *ret_number)
{
    double number;
    int r = query__take_double(parser, value, &number);
    if (r != 0)
        return r;
    *ret_number = number < 0 ? 0 : number > 1e9 ? 1000000000u : (unsigned)number;
    return 0;
}

int query__take_bool(struct query_parser *parser, yyjson_val *value, bool *ret_flag)
{
    struct slice text = query__scalar_text(parser->arena, value);
    if (yyjson_is_ctn(value) || (!slice_is(text, "true") && !slice_is(text, "false")))
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "Failed to parse value [%.*s] as only [true] or [false] are allowed.", SLICE_ARG(text));
    *ret_flag = slice_is(text, "true");
    return 0;
}

/*
 * Outcome of take_common(): the option is neither `boost` nor `_name`, which every query accepts.
 */
enum { NOT_COMMON = 2 };

enum { PARSE_STEPS = 100 }; /* of the account, for each query of any kind */

static int take_common(struct query_parser *parser, struct slice option, yyjson_val *value, struct query *query)
{
    if (slice_is(option, "_name") && !yyjson_is_ctn(value))
        return 0;
    if (!slice_is(option, "boost") || yyjson_is_ctn(value))
        return NOT_COMMON;
    return query__take_boost(parser, value, &query->boost);
}

/* --- Queries made of queries -------------------------------------------------------------------------------------- */

static int parse_into(struct query_parser *parser, yyjson_val *value, struct query_list *list)
{
    struct query *query = NULL;
    int r = query_parse(parser, value, &query);
    if (r == 0)
        query__list_add(parser->arena, list, query);
    return r;
}

/* Parses one query or an array of queries. */
static int parse_clauses(struct query_parser *parser, yyjson_val *value, struct query_list *list)
{
    if (!yyjson_is_arr(value))
        return parse_into(parser, value, list);
    size_t index, count;
    yyjson_val *item;
    json_arr_foreach (value, index, count, item) {
        int r = parse_into(parser, item, list);
        if (r != 0)
            return r;
    }
    return 0;
}

static struct query_list *bool_list(struct query *query, struct slice option)
{
    if (slice_is(option, "must"))
        return &query->boolean.must;
    if (slice_is(option, "filter"))
        return &query->boolean.filter;
    if (slice_is(option, "should"))
        return &query->boolean.should;
    if (slice_is(option, "must_not") || slice_is(option, "mustNot"))
        return &query->boolean.must_not;
    return NULL;
}

static int bool_scalar(struct query_parser *parser, struct slice name, struct slice option, yyjson_val *value,
                       struct query *query)
{
    bool flag;
    if (slice_is(option, "minimum_should_match") || slice_is(option, "minimum_number_should_match")) {
        query->boolean.minimum_should_match = query__scalar_text(parser->arena, value);
        return 0;
    }
    if (slice_is(option, "adjust_pure_negative") || slice_is(option, "disable_coord")) {
        int r = query__take_bool(parser, value, &flag);
        if (r == 0 && option.data[0] == 'a')
            query->boolean.keep_pure_negative = !flag;
        return r;
    }
    int r = take_common(parser, option, value, query);
    return r == NOT_COMMON ? query__refuse_option(parser, name, option, value) : r;
}

/* Members of a bool query in 7.10: first the clauses, then BOOL_SCALARS scalar options. */
static const char *const bool_names[] = {
    "must",  "must_not", "mustNot", "filter", "should", "minimum_should_match", "adjust_pure_negative",
    "boost", "_name"};
enum { BOOL_NAME_COUNT = sizeof bool_names / sizeof *bool_names, BOOL_SCALARS = 5 };

static bool is_bool_scalar(struct slice option)
{
    for (size_t i = BOOL_SCALARS; i < BOOL_NAME_COUNT; i++)
        if (slice_is(option, bool_names[i]))
            return true;
    return false;
}

/*
 * Parses one member of a bool query. 7.10 wraps an error of a clause in one of the bool query; 5.6
 * checks only the clauses.
 */
static int bool_member(struct query_parser *parser, struct slice name, yyjson_val *key, yyjson_val *value,
                       struct query *query)
{
    struct slice option = json_slice(key);
    struct query_list *list = bool_list(query, option);
    bool seven = parser->dialect == DIALECT_7;
    if (list != NULL && yyjson_is_ctn(value)) {
        int r = parse_clauses(parser, value, list);
        bool around = r == QUERY_REFUSED && seven && !parser->too_deep; /* otherwise wrapped once at each depth */
        return around ? query__wrap_refusal(parser, "bool", option) : r;
    }
    if (!seven && yyjson_is_arr(value) && unsafe_yyjson_get_len(value) == 0)
        return 0;
    if (seven && list == NULL && !is_bool_scalar(option))
        return query__refuse_unknown_of(parser, name, key, bool_names, BOOL_NAME_COUNT);
    if (seven && (list != NULL || yyjson_is_ctn(value))) {
        query_location(parser->doc, value, false, &parser->line, &parser->column);
        return query__refuse(parser, NULL, false, PROBLEM_X_CONTENT_PARSE,
                             "[%zu:%zu] [bool] %.*s doesn't support values of type: %s", parser->line, parser->column,
                             SLICE_ARG(option), json_token(value));
    }
    if (yyjson_is_ctn(value))
        return query__refuse_option(parser, name, option, value);
    int r = bool_scalar(parser, name, option, value, query);
    return r == QUERY_REFUSED && seven ? query__wrap_refusal(parser, "bool", option) : r;
}

static int parse_bool(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    struct query *query = query__new(parser->arena, QUERY_BOOL);
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        int r = bool_member(parser, name, key, value, query);
        if (r != 0)
            return r;
    }
    *ret_query = query;
    return 0;
}

/* A member of a compound query: its slot in the list of queries, or its type. */
struct compound_member {
    const char *name;
    int slot; /* -1: array of queries; -2: number; -3: ignored flag; -4: ignored object */
};

struct compound_form {
    enum query_kind kind;
    struct compound_member members[6];
};

static int compound_member(struct query_parser *parser, struct slice name, const struct compound_form *form,
                           struct slice option, yyjson_val *value, struct query *query, struct query **slots)
{
    for (const struct compound_member *member = form->members; member->name != NULL; member++) {
        if (!slice_is(option, member->name))
            continue;
        switch (member->slot) {
        case -1: return parse_clauses(parser, value, &query->compound.queries);
        case -2: return query__take_double(parser, value, &query->compound.number);
        case -3: return 0;
        case -4: query->compound.ignore_unmapped = yyjson_is_true(value); return 0;
        default:
            if (yyjson_is_arr(value))
                return query__refuse(parser, value, false, PROBLEM_PARSING, "unexpected token [START_ARRAY]");
            return query_parse(parser, value, &slots[member->slot]);
        }
    }
    int r = take_common(parser, option, value, query);
    return r == NOT_COMMON ? query__refuse_option(parser, name, option, value) : r;
}

/*
 * Parses the members of a compound query. Fills `slots`, NULL where a query is missing, and adds
 * the queries to compound.queries.
 */
static int parse_compound(struct query_parser *parser, struct slice name, const struct compound_form *form,
                          yyjson_val *body, struct query **ret_query, struct query *slots[2])
{
    struct query *query = query__new(parser->arena, form->kind);
    query->compound.number = NAN;
    slots[0] = slots[1] = NULL;
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        int r = compound_member(parser, name, form, json_slice(key), value, query, slots);
        if (r != 0)
            return r;
    }
    for (size_t i = 0; i < 2; i++) {
        if (slots[i] != NULL)
            query__list_add(parser->arena, &query->compound.queries, slots[i]);
    }
    *ret_query = query;
    return 0;
}

static int parse_constant_score(struct query_parser *parser, struct slice name, yyjson_val *body,
                                struct query **ret_query)
{
    static const struct compound_form form = {QUERY_CONSTANT_SCORE, {{"filter", 0}, {"query", 0}, {NULL, 0}}};
    struct query *slots[2];
    int r = parse_compound(parser, name, &form, body, ret_query, slots);
    if (r == 0 && slots[0] == NULL)
        return query__refuse(parser, body, true, PROBLEM_PARSING, "[constant_score] requires a 'filter' element");
    return r;
}

static int parse_dis_max(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    static const struct compound_form form = {QUERY_DIS_MAX, {{"queries", -1}, {"tie_breaker", -2}, {NULL, 0}}};
    struct query *slots[2];
    int r = parse_compound(parser, name, &form, body, ret_query, slots);
    if (r == 0 && (*ret_query)->compound.queries.count == 0)
        return query__refuse(parser, body, true, PROBLEM_PARSING,
                             "[dis_max] requires 'queries' field with at least one clause");
    return r;
}

static int parse_boosting(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    static const struct compound_form form = {QUERY_BOOSTING,
                                              {{"positive", 0}, {"negative", 1}, {"negative_boost", -2}, {NULL, 0}}};
    struct query *slots[2];
    int r = parse_compound(parser, name, &form, body, ret_query, slots);
    if (r != 0)
        return r;
    if (slots[0] == NULL)
        return query__refuse(parser, body, true, PROBLEM_PARSING,
                             "[boosting] query requires 'positive' query to be set'");
    if (slots[1] == NULL)
        return query__refuse(parser, body, true, PROBLEM_PARSING,
                             "[boosting] query requires 'negative' query to be set'");
    if (isnan((*ret_query)->compound.number) || (*ret_query)->compound.number < 0)
        return query__refuse(parser, body, true, PROBLEM_PARSING,
                             "[boosting] query requires 'negative_boost' to be set to be a positive value'");
    return 0;
}

static int parse_nested(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    static const struct compound_form form = {
        QUERY_NESTED,
        {{"query", 0}, {"filter", 0}, {"path", -3}, {"score_mode", -3}, {"ignore_unmapped", -4}, {NULL, 0}}};
    struct query *slots[2];
    int r = parse_compound(parser, name, &form, body, ret_query, slots);
    if (r != 0)
        return r;
    yyjson_val *path = json_get_lit(body, "path");
    if (yyjson_is_str(path))
        (*ret_query)->field = json_slice(path);
    else
        return query__refuse(parser, body, true, PROBLEM_ILLEGAL_ARGUMENT, "[nested] requires 'path' field");
    if (slots[0] == NULL)
        return query__refuse(parser, body, true, PROBLEM_ILLEGAL_ARGUMENT, "[nested] requires 'query' field");
    return 0;
}

/* --- Queries of 1.x and 2.x only ---------------------------------------------------------------------------------- */

static int parse_filtered(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    struct query *query = query__new(parser->arena, QUERY_BOOL);
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        struct slice option = json_slice(key);
        int r;
        if (slice_is(option, "query"))
            r = parse_into(parser, value, &query->boolean.must);
        else if (slice_is(option, "filter"))
            r = parse_into(parser, value, &query->boolean.filter);
        else if (option.len > 0 && option.data[0] == '_') /* _cache, _name */
            r = 0;
        else
            r = take_common(parser, option, value, query);
        if (r != 0)
            return r == NOT_COMMON ? query__refuse_option(parser, name, option, value) : r;
    }
    *ret_query = query;
    return 0;
}

/* {"and": [..]}, {"or": {"filters": [..]}} and {"not": {..}}, {"not": {"filter": {..}}} */
static int parse_and_or_not(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    struct query *query = query__new(parser->arena, QUERY_BOOL);
    struct query_list *list = slice_is(name, "and")  ? &query->boolean.filter
                              : slice_is(name, "or") ? &query->boolean.should
                                                     : &query->boolean.must_not;
    yyjson_val *inner = json_get_lit(body, "filters");
    if (inner == NULL)
        inner = json_get_lit(body, "filter");
    if (inner == NULL && slice_is(name, "not"))
        inner = json_get_lit(body, "query");
    int r = parse_clauses(parser, inner != NULL ? inner : body, list);
    if (r != 0)
        return r;
    *ret_query = query;
    return 0;
}

/* {"missing": {"field": "x"}} */
static int parse_missing(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    yyjson_val *field = json_get_lit(body, "field");
    if (!yyjson_is_str(field))
        return query__refuse(parser, body, true, PROBLEM_PARSING, "[%.*s] must be provided with a [field]",
                             SLICE_ARG(name));
    struct query *exists = query__new(parser->arena, QUERY_EXISTS);
    exists->field = json_slice(field);
    struct query *query = query__new(parser->arena, QUERY_BOOL);
    query__list_add(parser->arena, &query->boolean.must_not, exists);
    *ret_query = query;
    return 0;
}

/*
 * {"query": {"query": {..}}}: 1.x wrapped queries for use as filters, also as {"fquery": {"query":
 * ..}}.
 */
static int parse_wrapped(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    yyjson_val *inner = slice_is(name, "fquery") ? json_get_lit(body, "query") : body;
    return query_parse(parser, inner != NULL ? inner : body, ret_query);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static int parse_unsupported(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    (void)ret_query;
    return query__refuse(parser, body, false, PROBLEM_PARSING, "[%.*s] query is not supported here", SLICE_ARG(name));
}

enum query_era { ERA_ALL, ERA_OLD, ERA_SEVEN }; /* OLD: before 5.0 only; SEVEN: not in 5.6 */

struct query_name {
    const char *name;
    query_parse_function *parse;
    enum query_era era;
};

static const struct query_name names[] = {
    {"bool", parse_bool, ERA_ALL},
    {"boosting", parse_boosting, ERA_ALL},
    {"common", parse_unsupported, ERA_ALL},
    {"constant_score", parse_constant_score, ERA_ALL},
    {"dis_max", parse_dis_max, ERA_ALL},
    {"distance_feature", parse_unsupported, ERA_SEVEN},
    {"exists", query__parse_exists, ERA_ALL},
    {"field_masking_span", parse_unsupported, ERA_ALL},
    {"function_score", query__parse_function_score, ERA_ALL},
    {"fuzzy", query__parse_pattern, ERA_ALL},
    {"geo_bounding_box", parse_unsupported, ERA_ALL},
    {"geo_distance", parse_unsupported, ERA_ALL},
    {"geo_polygon", parse_unsupported, ERA_ALL},
    {"geo_shape", parse_unsupported, ERA_ALL},
    {"has_child", parse_unsupported, ERA_ALL},
    {"has_parent", parse_unsupported, ERA_ALL},
    {"ids", query__parse_ids, ERA_ALL},
    {"intervals", parse_unsupported, ERA_SEVEN},
    {"match", query__parse_match, ERA_ALL},
    {"match_all", query__parse_match_all, ERA_ALL},
    {"match_bool_prefix", query__parse_match, ERA_SEVEN},
    {"match_none", query__parse_match_all, ERA_ALL},
    {"match_phrase", query__parse_match, ERA_ALL},
    {"match_phrase_prefix", query__parse_match, ERA_ALL},
    {"more_like_this", parse_unsupported, ERA_ALL},
    {"multi_match", query__parse_multi_match, ERA_ALL},
    {"nested", parse_nested, ERA_ALL},
    {"parent_id", parse_unsupported, ERA_ALL},
    {"percolate", parse_unsupported, ERA_ALL},
    {"prefix", query__parse_pattern, ERA_ALL},
    {"query_string", query__parse_lucene, ERA_ALL},
    {"range", query__parse_range, ERA_ALL},
    {"rank_feature", parse_unsupported, ERA_SEVEN},
    {"regexp", query__parse_pattern, ERA_ALL},
    {"script", query__parse_script_query, ERA_ALL},
    {"script_score", parse_unsupported, ERA_SEVEN},
    {"simple_query_string", query__parse_lucene, ERA_ALL},
    {"span_containing", parse_unsupported, ERA_ALL},
    {"span_first", parse_unsupported, ERA_ALL},
    {"span_multi", parse_unsupported, ERA_ALL},
    {"span_near", parse_unsupported, ERA_ALL},
    {"span_not", parse_unsupported, ERA_ALL},
    {"span_or", parse_unsupported, ERA_ALL},
    {"span_term", parse_unsupported, ERA_ALL},
    {"span_within", parse_unsupported, ERA_ALL},
    {"term", query__parse_term, ERA_ALL},
    {"terms", query__parse_terms, ERA_ALL},
    {"terms_set", parse_unsupported, ERA_SEVEN},
    {"type", query__parse_type, ERA_ALL},
    {"wildcard", query__parse_pattern, ERA_ALL},
    {"wrapper", parse_unsupported, ERA_ALL},
    {"and", parse_and_or_not, ERA_OLD},
    {"filtered", parse_filtered, ERA_OLD},
    {"fquery", parse_wrapped, ERA_OLD},
    {"in", query__parse_terms, ERA_OLD},
    {"missing", parse_missing, ERA_OLD},
    {"not", parse_and_or_not, ERA_OLD},
    {"or", parse_and_or_not, ERA_OLD},
    {"query", parse_wrapped, ERA_OLD},
};

enum { NAME_COUNT = sizeof names / sizeof *names };

static const struct query_name *find_name(struct slice name)
{
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (slice_is(name, names[i].name))
            return &names[i];
    }
    return NULL;
}

static int refuse_unknown(struct query_parser *parser, struct slice name, yyjson_val *body)
{
    if (parser->dialect == DIALECT_5)
        return query__refuse(parser, body, false, PROBLEM_PARSING, "no [query] registered for [%.*s]", SLICE_ARG(name));
    const char *candidates[NAME_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (names[i].era != ERA_OLD)
            candidates[count++] = names[i].name;
    }
    struct slice suggestion = query_suggest(parser->arena, name, candidates, count);
    query__refuse(parser, body, false, PROBLEM_PARSING, "unknown query [%.*s]%.*s", SLICE_ARG(name),
                  SLICE_ARG(suggestion));
    struct problem *cause = arena_zalloc(parser->arena, sizeof *cause);
    problem_set(cause, parser->arena, PROBLEM_X_CONTENT_PARSE, "[%zu:%zu] unknown field [%.*s]", parser->line,
                parser->column, SLICE_ARG(name));
    cause->name = SLICE_LIT("named_object_not_found_exception");
    parser->problem->caused_by = cause;
    return QUERY_REFUSED;
}

static int refuse_empty(struct query_parser *parser, yyjson_val *value)
{
    if (parser->doc != NULL)
        query_location(parser->doc, value, true, &parser->line, &parser->column);
    return query__refuse(parser, value, true, PROBLEM_ILLEGAL_ARGUMENT,
                         "query malformed, empty clause found at [%zu:%zu]", parser->line, parser->column);
}

/*
 * Returns: the `_name` of a query. It is a member of the body, next to the query's options, or of
 * the object of the query's field. The parser of the query has already checked that this location
 * is permitted.
 */
static struct slice name_of(const struct query_parser *parser, const struct query *query, yyjson_val *body)
{
    yyjson_val *name = json_get_lit(body, "_name");
    yyjson_val *options = query->field.data != NULL && yyjson_is_obj(body) ? json_get(body, query->field) : NULL;
    if (name == NULL && yyjson_is_obj(options))
        name = json_get_lit(options, "_name");
    return name != NULL && !yyjson_is_ctn(name) && !yyjson_is_null(name) ? query__scalar_text(parser->arena, name)
                                                                         : SLICE_NONE;
}

/* Checks the type of `_name`: 7.x requires a string, or any scalar for most queries. */
static int check_name(struct query_parser *parser, const struct query_name *found, yyjson_val *body)
{
    yyjson_val *name = yyjson_is_obj(body) ? json_get_lit(body, "_name") : NULL;
    bool whole = found->parse == parse_bool || found->parse == query__parse_ids ||
                 slice_is(slice_from(found->name), "match_all");
    if (name == NULL || yyjson_is_str(name) || parser->dialect != DIALECT_7 ||
        (!whole && !yyjson_is_null(name) && !yyjson_is_ctn(name)))
        return 0;
    if (!whole)
        return query__refuse(parser, name, false, PROBLEM_PARSING, "[%s] unknown token [%s] after [_name]", found->name,
                             json_token(name));
    query_location(parser->doc, name, false, &parser->line, &parser->column);
    query__refuse(parser, NULL, false, PROBLEM_X_CONTENT_PARSE,
                  "[%zu:%zu] [%s] _name doesn't support values of type: %s", parser->line, parser->column, found->name,
                  json_token(name));
    return found->parse == parse_bool ? QUERY_REFUSED : query__wrap_leaf_refusal(parser, name);
}

static int parse_named(struct query_parser *parser, yyjson_val *value, struct query **ret_query)
{
    yyjson_val *key = unsafe_yyjson_get_first(value);
    yyjson_val *body = key + 1;
    struct slice name = json_slice(key);
    const struct query_name *found = find_name(name);
    bool array_form = yyjson_is_arr(body) && found != NULL && found->parse == parse_and_or_not;
    if (!yyjson_is_obj(body) && !array_form)
        return query__refuse(parser, body, false, PROBLEM_PARSING,
                             "[%.*s] query malformed, no start_object after query name", SLICE_ARG(name));
    if (found == NULL)
        return refuse_unknown(parser, name, body);
    int r = check_name(parser, found, body);
    if (r == 0)
        r = found->parse(parser, name, body, ret_query);
    if (r == 0)
        (*ret_query)->name = name_of(parser, *ret_query, body);
    if (r == 0 && unsafe_yyjson_get_len(value) > 1)
        return query__refuse(parser, unsafe_yyjson_get_next(body), false, PROBLEM_PARSING,
                             "[%.*s] malformed query, expected [END_OBJECT] but found [FIELD_NAME]", SLICE_ARG(name));
    return r;
}

int query_parse(struct query_parser *parser, yyjson_val *value, struct query **ret_query)
{
    if (!query__charge(parser, PARSE_STEPS))
        return QUERY_REFUSED;
    if (!yyjson_is_obj(value))
        return query__refuse(parser, value, false, PROBLEM_PARSING,
                             "[_na] query malformed, must start with start_object");
    if (unsafe_yyjson_get_len(value) == 0) {
        if (parser->dialect == DIALECT_7)
            return refuse_empty(parser, value);
        *ret_query = query_match_all(parser->arena);
        return 0;
    }
    parser->too_deep = parser->depth >= QUERY_DEPTH_MAX;
    if (parser->too_deep)
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "The nested depth of the query exceeds the maximum of %d", QUERY_DEPTH_MAX);
    parser->depth++;
    int r = parse_named(parser, value, ret_query);
    parser->depth--;
    return r;
}
