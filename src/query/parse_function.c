/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses function_score: weights, field_value_factor and script_score, each with an optional
 * filter.
 */
#include "query/node.h"
#include "json/each.h"

#include <float.h>
#include <math.h>

static int take_combine(struct query_parser *parser, yyjson_val *value, int *ret_mode)
{
    static const char *const modes[] = {"multiply", "sum", "avg", "first", "max", "min", "replace"};
    struct slice text = query__scalar_text(parser->arena, value);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (slice_is(text, modes[i])) {
            *ret_mode = (int)i;
            return 0;
        }
    }
    return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT, "illegal score_mode [%.*s]", SLICE_ARG(text));
}

static int take_factor(struct query_parser *parser, yyjson_val *body, struct score_function *function)
{
    function->field_factor = true;
    function->factor = 1.0;
    function->missing = NAN;
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        struct slice option = json_slice(key);
        int r = 0;
        if (slice_is(option, "field"))
            function->field = query__scalar_text(parser->arena, value);
        else if (slice_is(option, "modifier"))
            function->modifier = query__scalar_text(parser->arena, value);
        else if (slice_is(option, "factor"))
            r = query__take_double(parser, value, &function->factor);
        else if (slice_is(option, "missing"))
            r = query__take_double(parser, value, &function->missing);
        else
            r = query__refuse(parser, value, false, PROBLEM_PARSING,
                              "[field_value_factor] query does not support [%.*s]", SLICE_ARG(option));
        if (r != 0)
            return r;
    }
    if (function->field.data == NULL)
        return query__refuse(parser, body, true, PROBLEM_PARSING,
                             "[field_value_factor] required field 'field' missing");
    return 0;
}

static int take_weight(struct query_parser *parser, yyjson_val *value, struct score_function *function)
{
    int r = query__take_double(parser, value, &function->weight);
    if (r == 0 && function->weight < 0 && parser->dialect == DIALECT_7)
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "[weight] cannot be negative for a filtering function");
    return r;
}

/* Parses a member of an entry of `functions`, or of a single function. */
static int take_function(struct query_parser *parser, struct slice option, yyjson_val *value,
                         struct score_function *function)
{
    if (slice_is(option, "weight") || slice_is(option, "boost_factor"))
        return take_weight(parser, value, function);
    if (slice_is(option, "filter"))
        return query_parse(parser, value, &function->filter);
    if (slice_is(option, "field_value_factor") && yyjson_is_obj(value))
        return take_factor(parser, value, function);
    if (slice_is(option, "script_score") && yyjson_is_obj(value)) {
        yyjson_val *script = json_get_lit(value, "script");
        return query__parse_script(parser, script != NULL ? script : value, &function->script);
    }
    return query__refuse(parser, value, false, PROBLEM_PARSING, "function score function [%.*s] is not supported",
                         SLICE_ARG(option));
}

static int take_functions(struct query_parser *parser, yyjson_val *value, struct query *query)
{
    if (!yyjson_is_arr(value))
        return query__refuse(parser, value, false, PROBLEM_PARSING,
                             "[function_score] query does not support [functions]");
    query->function.functions =
        arena_zalloc(parser->arena, unsafe_yyjson_get_len(value) * sizeof(struct score_function));
    size_t index, count;
    yyjson_val *item;
    json_arr_foreach (value, index, count, item) {
        struct score_function *function = &query->function.functions[query->function.count++];
        function->weight = NAN;
        size_t member_index, member_count;
        yyjson_val *key, *member;
        json_obj_foreach (item, member_index, member_count, key, member) {
            int r = take_function(parser, json_slice(key), member, function);
            if (r != 0)
                return r;
        }
    }
    return 0;
}

static int take_member(struct query_parser *parser, struct slice option, yyjson_val *value, struct query *query,
                       struct score_function *single)
{
    int mode = 0, r;
    if (slice_is(option, "query") || slice_is(option, "filter"))
        return query_parse(parser, value, &query->function.query);
    if (slice_is(option, "functions"))
        return take_functions(parser, value, query);
    if (slice_is(option, "score_mode")) {
        r = take_combine(parser, value, &mode);
        query->function.score_mode = mode;
        return r;
    }
    if (slice_is(option, "boost_mode")) {
        r = take_combine(parser, value, &mode);
        query->function.boost_mode = mode;
        return r;
    }
    if (slice_is(option, "max_boost"))
        return query__take_double(parser, value, &query->function.max_boost);
    if (slice_is(option, "min_score"))
        return query__take_double(parser, value, &query->function.min_score);
    if (slice_is(option, "boost"))
        return query__take_boost(parser, value, &query->boost);
    return slice_is(option, "_name") ? 0 : take_function(parser, option, value, single);
}

int query__parse_function_score(struct query_parser *parser, struct slice name, yyjson_val *body,
                                struct query **ret_query)
{
    (void)name;
    struct query *query = query__new(parser->arena, QUERY_FUNCTION_SCORE);
    struct score_function *single = arena_zalloc(parser->arena, sizeof *single);
    single->weight = NAN;
    query->function.max_boost = FLT_MAX;
    query->function.min_score = NAN;
    size_t index, count;
    yyjson_val *key, *value;
    json_obj_foreach (body, index, count, key, value) {
        int r = take_member(parser, json_slice(key), value, query, single);
        if (r != 0)
            return r;
    }
    if (query->function.query == NULL)
        query->function.query = query_match_all(parser->arena);
    if (query->function.functions == NULL &&
        (!isnan(single->weight) || single->field_factor || single->script != NULL)) {
        query->function.functions = single;
        query->function.count = 1;
    }
    *ret_query = query;
    return 0;
}
