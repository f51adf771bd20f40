/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the full-text queries: the match family, multi_match, query_string and
 * simple_query_string.
 */
#include "query/noop_option.h"
#include "json/each.h"
#include "query/parse_leaf.h"

#include <math.h>

static int take_operator(struct query_parser *parser, yyjson_val *value, bool *ret_and)
{
    struct slice text = query__scalar_text(parser->arena, value);
    if (slice_is_ignoring_case(text, "and"))
        *ret_and = true;
    else if (slice_is_ignoring_case(text, "or"))
        *ret_and = false;
    else
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "No enum constant org.elasticsearch.index.query.Operator.%.*s", SLICE_ARG(text));
    return 0;
}

/* Outcome of the option parsers besides 0 and QUERY_REFUSED: the option is not one of theirs. */
enum { OPTION_OTHER = 2 };

/* Returns: whether a query has an option in 7.x. In 5.x every query accepts all of them. */
static bool has_option(const struct query_parser *parser, struct slice query, struct slice option)
{
    bool phrase = slice_is(query, "match_phrase") || slice_is(query, "match_phrase_prefix");
    if (parser->dialect == DIALECT_5 || slice_is(option, "analyzer"))
        return true;
    if (slice_is(option, "zero_terms_query"))
        return !slice_is(query, "match_bool_prefix");
    if (slice_is(option, "slop"))
        return phrase || slice_is(query, "multi_match");
    if (slice_is(option, "lenient"))
        return slice_is(query, "match") || slice_is(query, "multi_match");
    return !phrase && !slice_is(option, "default_operator");
}

static int take_match_option(struct query_parser *parser, struct slice query, struct slice option, yyjson_val *value,
                             struct match_options *options)
{
    if (!has_option(parser, query, option))
        return OPTION_OTHER;
    struct slice text = query__scalar_text(parser->arena, value);
    if (slice_is(option, "operator") || slice_is(option, "default_operator"))
        return take_operator(parser, value, &options->and_operator);
    if (slice_is(option, "analyzer"))
        options->analyzer = text;
    else if (slice_is(option, "minimum_should_match"))
        options->minimum_should_match = text;
    else if (slice_is(option, "fuzziness"))
        options->fuzziness = text;
    else if (slice_is(option, "zero_terms_query"))
        options->zero_terms_all = slice_is(text, "all") || slice_is(text, "ALL");
    else if (slice_is(option, "slop"))
        return query__take_u32(parser, value, &options->slop);
    else if (slice_is(option, "prefix_length"))
        return query__take_u32(parser, value, &options->prefix_length);
    else if (slice_is(option, "lenient")) {
        options->lenient_given = true;
        return query__take_bool(parser, value, &options->lenient);
    } else
        return OPTION_OTHER;
    return 0;
}

static int take_idle(struct query_parser *parser, struct slice name, struct slice option, yyjson_val *value)
{
    int r = slice_is(option, "_name") ? 0 : query__noop_option(parser, name, option, value);
    return r == NOOP_OPTION_UNKNOWN ? query__refuse_option(parser, name, option, value) : r;
}

/* --- match -------------------------------------------------------------------------------------------------------- */

static int take_match(struct query_parser *parser, struct slice name, struct slice option, yyjson_val *value,
                      struct query *query)
{
    if (option.len == 0 && yyjson_is_arr(value)) {
        size_t line = 0, column = 0;
        if (parser->doc != NULL)
            query_location(parser->doc, value, false, &line, &column);
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_STATE, "Can't get text on a START_ARRAY at %zu:%zu",
                             line, column);
    }
    if (yyjson_is_ctn(value))
        return query__refuse(parser, value, false, PROBLEM_PARSING, "[%.*s] unknown token [%s] after [%.*s]",
                             SLICE_ARG(name), json_token(value), SLICE_ARG(option));
    if (option.len == 0 || slice_is(option, "query")) {
        query->match.value = yyjson_is_null(value) ? NULL : value;
        return 0;
    }
    if (slice_is(option, "type")) { /* 5.x and before: {"match": {"f": {"query": …, "type": "phrase"}}} */
        struct slice text = query__scalar_text(parser->arena, value);
        query->match.form = slice_is(text, "phrase")          ? MATCH_PHRASE
                            : slice_is(text, "phrase_prefix") ? MATCH_PHRASE_PREFIX
                                                              : query->match.form;
        return parser->dialect == DIALECT_5 ? 0 : query__refuse_option(parser, name, option, value);
    }
    int r = take_match_option(parser, name, option, value, &query->match.options);
    if (r != OPTION_OTHER)
        return r;
    return take_idle(parser, name, option, value);
}

int query__parse_match(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    struct query *query = query__new(parser->arena, QUERY_MATCH);
    query->match.form = slice_is(name, "match_phrase")          ? MATCH_PHRASE
                        : slice_is(name, "match_phrase_prefix") ? MATCH_PHRASE_PREFIX
                        : slice_is(name, "match_bool_prefix")   ? MATCH_BOOL_PREFIX
                                                                : MATCH_BOOLEAN;
    int r = query__parse_field(parser, name, body, take_match, query);
    if (r != 0)
        return r;
    if (query->field.data == NULL)
        return query__refuse(parser, body, true, PROBLEM_ILLEGAL_ARGUMENT, "[%.*s] requires fieldName",
                             SLICE_ARG(name));
    if (query->match.value == NULL && query->match.form == MATCH_BOOLEAN && parser->dialect == DIALECT_7)
        return query__refuse(parser, body, true, PROBLEM_PARSING, "No text specified for text query");
    if (query->match.value == NULL)
        return query__refuse(parser, body, true, PROBLEM_ILLEGAL_ARGUMENT, "[%.*s] requires query value",
                             SLICE_ARG(name));
    *ret_query = query;
    return 0;
}

/* --- Lists of fields ---------------------------------------------------------------------------------------------- */

static int take_fields(struct query_parser *parser, struct slice name, yyjson_val *value,
                       struct query_field **ret_fields, size_t *ret_count)
{
    size_t count = yyjson_is_arr(value) ? unsafe_yyjson_get_len(value) : 1;
    yyjson_val *item = yyjson_is_arr(value) ? unsafe_yyjson_get_first(value) : value;
    struct query_field *fields = arena_zalloc(parser->arena, count * sizeof *fields);
    for (size_t i = 0; i < count; i++, item = unsafe_yyjson_get_next(item)) {
        if (!yyjson_is_str(item))
            return query__refuse(parser, item, false, PROBLEM_PARSING,
                                 "[%.*s] query does not support [fields] with [%s]", SLICE_ARG(name), json_token(item));
        fields[i] = query__field_boost(json_slice(item));
        int r = query__check_boost(parser, item, fields[i].boost);
        if (r != 0)
            return r;
    }
    *ret_fields = fields;
    *ret_count = count;
    return 0;
}

/* --- multi_match -------------------------------------------------------------------------------------------------- */

static int take_multi_form(struct query_parser *parser, yyjson_val *value, struct query *query)
{
    static const char *const forms[] = {"best_fields", "most_fields",   "cross_fields",
                                        "phrase",      "phrase_prefix", "bool_prefix"};
    struct slice text = query__scalar_text(parser->arena, value);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (slice_is(text, forms[i])) {
            query->multi.form = (enum multi_form)i;
            return 0;
        }
    }
    return query__refuse(parser, value, false, PROBLEM_PARSING,
                         "failed to parse [multi_match] query type [%.*s]. unknown type.", SLICE_ARG(text));
}

static int take_multi(struct query_parser *parser, struct slice name, struct slice option, yyjson_val *value,
                      struct query *query)
{
    if (slice_is(option, "fields"))
        return take_fields(parser, name, value, &query->multi.fields, &query->multi.field_count);
    if (yyjson_is_ctn(value))
        return query__refuse(parser, value, false, PROBLEM_PARSING, "[%.*s] unknown token [%s] after [%.*s]",
                             SLICE_ARG(name), json_token(value), SLICE_ARG(option));
    if (slice_is(option, "query")) {
        query->multi.value = yyjson_is_null(value) ? NULL : value;
        return 0;
    }
    if (slice_is(option, "type"))
        return take_multi_form(parser, value, query);
    if (slice_is(option, "tie_breaker"))
        return query__take_double(parser, value, &query->multi.tie_breaker);
    if (slice_is(option, "boost"))
        return query__take_boost(parser, value, &query->boost);
    int r = take_match_option(parser, name, option, value, &query->multi.options);
    if (r != OPTION_OTHER)
        return r;
    return take_idle(parser, name, option, value);
}

int query__parse_multi_match(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    struct query *query = query__new(parser->arena, QUERY_MULTI_MATCH);
    query->multi.tie_breaker = NAN;
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        int r = take_multi(parser, name, json_slice(key), value, query);
        if (r != 0)
            return r;
    }
    if (query->multi.value == NULL)
        return query__refuse(parser, body, true, PROBLEM_PARSING, "No text specified for multi_match query");
    *ret_query = query;
    return 0;
}

/* --- query_string, simple_query_string ---------------------------------------------------------------------------- */

static int take_lucene(struct query_parser *parser, struct slice name, struct slice option, yyjson_val *value,
                       struct query *query)
{
    struct lucene_options *options = &query->lucene.options;
    if (slice_is(option, "fields"))
        return take_fields(parser, name, value, &query->lucene.fields, &query->lucene.field_count);
    if (yyjson_is_ctn(value))
        return query__refuse(parser, value, false, PROBLEM_PARSING, "[%.*s] unexpected token [%s]", SLICE_ARG(name),
                             json_token(value));
    struct slice text = query__scalar_text(parser->arena, value);
    if (slice_is(option, "query"))
        query->lucene.text = yyjson_is_null(value) ? SLICE_NONE : text;
    else if (slice_is(option, "default_field") && (slice_is(name, "query_string") || parser->dialect == DIALECT_5))
        options->default_field = text;
    else if (slice_is(option, "analyzer"))
        options->analyzer = text;
    else if (slice_is(option, "default_operator"))
        return take_operator(parser, value, &options->and_operator);
    else if (slice_is(option, "lenient")) {
        options->lenient_given = true;
        return query__take_bool(parser, value, &options->lenient);
    } else if (slice_is(option, "analyze_wildcard"))
        return query__take_bool(parser, value, &options->analyze_wildcard);
    else if (slice_is(option, "boost"))
        return query__take_boost(parser, value, &query->boost);
    else if (slice_is(option, "time_zone") && slice_is(name, "query_string"))
        return query__take_zone(parser, value, &options->zone);
    else if (slice_is(option, "minimum_should_match"))
        options->minimum_should_match = text;
    else if (slice_is(option, "tie_breaker") && slice_is(name, "query_string"))
        return query__take_double(parser, value, &options->tie_breaker);
    else if (slice_is(option, "phrase_slop") && slice_is(name, "query_string"))
        return query__take_u32(parser, value, &options->phrase_slop);
    else
        return take_idle(parser, name, option, value);
    return 0;
}

int query__parse_lucene(struct query_parser *parser, struct slice name, yyjson_val *body, struct query **ret_query)
{
    bool simple = slice_is(name, "simple_query_string");
    struct query *query = query__new(parser->arena, simple ? QUERY_SIMPLE : QUERY_LUCENE);
    query->lucene.options.tie_breaker = simple ? 1 : 0; /* the simple syntax adds the scores of fields */
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        int r = take_lucene(parser, name, json_slice(key), value, query);
        if (r != 0)
            return r;
    }
    if (query->lucene.text.data == NULL)
        return query__refuse(parser, body, true, PROBLEM_PARSING,
                             simple ? "[simple_query_string] query text missing"
                                    : "[query_string] must be provided with a [query]");
    if (query->lucene.text.len > QUERY_STRING_BYTES_MAX)
        return query__refuse(parser, body, true, PROBLEM_ILLEGAL_ARGUMENT,
                             "a query string has at most %u bytes, got %zu", QUERY_STRING_BYTES_MAX,
                             query->lucene.text.len);
    *ret_query = query;
    return 0;
}
