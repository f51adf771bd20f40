/* SPDX-License-Identifier: Apache-2.0 */
/* Collapsing; see collapse.h. */
#include "query/collapse.h"

#include "json/each.h"
#include "mapping/mapping.h"
#include "query/metadata.h"
#include "query/node.h"
#include "query/request.h"

/* --- Parsing ------------------------------------------------------------------------------------------------------ */

static int refuse_kind(struct query_parser *parser, struct slice option, yyjson_val *value)
{
    query_location(parser->doc, value, false, &parser->line, &parser->column);
    return query__refuse(parser, NULL, false, PROBLEM_X_CONTENT_PARSE,
                         "[%zu:%zu] [collapse] %.*s doesn't support values of type: %s", parser->line, parser->column,
                         SLICE_ARG(option), json_token(value));
}

/* Refuses a value with a valid type that Elasticsearch's CollapseBuilder rejects. */
static int refuse_value(struct query_parser *parser, struct slice option, yyjson_val *value, const char *reason)
{
    query__refuse(parser, NULL, false, PROBLEM_ILLEGAL_ARGUMENT, "%s", reason);
    query_location(parser->doc, value, false, &parser->line, &parser->column);
    return query__wrap_refusal(parser, "collapse", option);
}

static int take_searches(struct query_parser *parser, struct slice option, yyjson_val *value)
{
    int64_t searches = 1;
    if (yyjson_is_ctn(value) || yyjson_is_bool(value) || yyjson_is_null(value))
        return refuse_kind(parser, option, value);
    if (yyjson_is_num(value))
        searches = yyjson_is_int(value) ? yyjson_get_sint(value) : (int64_t)yyjson_get_real(value);
    else if (!slice_to_i64(json_slice(value), &searches))
        return refuse_value(parser, option, value, "a number is expected");
    return searches < 1 ? refuse_value(parser, option, value, "maxConcurrentGroupRequests` must be positive") : 0;
}

static int take_option(struct query_parser *parser, yyjson_val *key, yyjson_val *value, struct search_request *request)
{
    static const char *const known[] = {"field", "inner_hits", "max_concurrent_group_searches"};
    struct slice option = json_slice(key);
    if (slice_is(option, "max_concurrent_group_searches"))
        return take_searches(parser, option, value);
    if (slice_is(option, "inner_hits"))
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT,
                             "[inner_hits] of [collapse] is not supported by this server");
    if (!slice_is(option, "field"))
        return query__refuse_unknown_of(parser, SLICE_LIT("collapse"), key, known, sizeof known / sizeof *known);
    if (!yyjson_is_str(value))
        return refuse_kind(parser, option, value);
    if (json_slice(value).len == 0)
        return refuse_value(parser, option, value, "field name is null or empty");
    request->collapse = json_slice(value);
    return 0;
}

int collapse_parse(struct query_parser *parser, yyjson_val *value, struct search_request *request)
{
    size_t i, max;
    yyjson_val *key, *option;
    json_obj_foreach (value, i, max, key, option) {
        int r = take_option(parser, key, option, request);
        if (r != 0)
            return r;
    }
    if (request->collapse.data == NULL)
        return query__refuse(parser, value, false, PROBLEM_ILLEGAL_ARGUMENT, "[collapse] needs a [field]");
    return 0;
}

/* --- Binding and reading ------------------------------------------------------------------------------------------ */

static bool is_groupable(const struct mapping_field *field)
{
    switch (field->type) {
    case FIELD_KEYWORD:
    case FIELD_LONG:
    case FIELD_INTEGER:
    case FIELD_SHORT:
    case FIELD_BYTE:
    case FIELD_DOUBLE:
    case FIELD_FLOAT:
    case FIELD_HALF_FLOAT: return true;
    default: return false;
    }
}

static int refuse_field(struct binder *binder, const char *before, struct slice field, const char *after)
{
    problem_set(binder->problem, binder->arena, PROBLEM_ILLEGAL_ARGUMENT, "%s `%.*s`%s", before, SLICE_ARG(field),
                after);
    return QUERY_REFUSED;
}

int collapse_bind(struct binder *binder, const struct search_request *request, const struct mapping_field **ret_field)
{
    struct slice name = request->collapse;
    *ret_field = NULL;
    if (name.data == NULL)
        return 0;
    if (request->search_after != NULL) {
        problem_set(binder->problem, binder->arena, PROBLEM_SEARCH,
                    "cannot use `collapse` in conjunction with `search_after`");
        return QUERY_REFUSED;
    }
    const struct mapping_field *field = mapping_field(binder->index->mapping, name);
    if (field == NULL ? metadata_find(name) == NULL : field->type == FIELD_OBJECT || field->type == FIELD_NESTED)
        return refuse_field(binder, "no mapping found for", name, " in order to collapse on");
    if (field == NULL || !is_groupable(field))
        return refuse_field(binder, "unknown type for collapse field", name,
                            ", only keywords and numbers are accepted");
    if (!field_parameter_flag(field, "doc_values", true))
        return refuse_field(binder, "cannot collapse on field", name, " without `doc_values`");
    *ret_field = field;
    return 0;
}

/*
 * Returns: whether there is only one distinct value. Doc values keep duplicate numbers, but each
 * text only once.
 */
static bool is_single(const struct field_value *values, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (values[0].kind != FIELD_VALUE_BYTES || !slice_equal(values[0].bytes, values[i].bytes))
            return false;
    return true;
}

int collapse_read(struct match_doc *match_doc, const struct mapping_field *field, uint64_t ordinal,
                  struct slice *ret_group)
{
    const struct field_value *values = NULL;
    size_t count = match_doc_field(match_doc, field, &values);
    *ret_group = SLICE_LIT("");
    if (count == 0)
        return 0;
    if (!is_single(values, count)) {
        match_doc->problem = arena_alloc(match_doc->problems, sizeof *match_doc->problem);
        problem_set(match_doc->problem, match_doc->problems, PROBLEM_ILLEGAL_STATE,
                    "failed to collapse %llu, the collapse field must be single valued", (unsigned long long)ordinal);
        return QUERY_REFUSED;
    }
    struct slice payload = values[0].kind == FIELD_VALUE_BYTES ? values[0].bytes
                           : values[0].kind == FIELD_VALUE_F64
                               ? slice_make((const char *)&values[0].f64, sizeof values[0].f64)
                               : slice_make((const char *)&values[0].i64, sizeof values[0].i64);
    char *bytes = arena_alloc(&match_doc->arena, payload.len + 1);
    bytes[0] = (char)('0' + values[0].kind);
    if (payload.len > 0)
        memcpy(bytes + 1, payload.data, payload.len);
    *ret_group = slice_make(bytes, payload.len + 1);
    return 0;
}
