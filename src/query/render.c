/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renders a query as 5.6 prints it in "failed to create query: …": indented, with all defaults.
 * Query kinds that are rare in such errors are rendered by name only.
 */
#include "query/node.h"

#include "json/write.h"

struct renderer {
    struct buf buf;
    unsigned depth;
    bool first;
};

static void begin_line(struct renderer *r)
{
    if (!r->first)
        buf_lit(&r->buf, ",");
    buf_lit(&r->buf, "\n");
    for (unsigned i = 0; i < r->depth; i++)
        buf_lit(&r->buf, "  ");
    r->first = false;
}

static void render_name(struct renderer *r, struct slice text)
{
    begin_line(r);
    buf_json_string(&r->buf, text);
    buf_lit(&r->buf, " : ");
}

static void open_bracket(struct renderer *r, char bracket)
{
    buf_byte(&r->buf, bracket);
    r->depth++;
    r->first = true;
}

/* Closes a bracket. An empty pair has a space inside. */
static void close_bracket(struct renderer *r, char bracket)
{
    r->depth--;
    if (r->first) {
        buf_lit(&r->buf, " ");
    } else {
        r->first = true;
        begin_line(r);
    }
    r->first = false;
    buf_byte(&r->buf, bracket);
}

static void render_scalar(struct renderer *r, yyjson_val *value)
{
    if (value == NULL)
        buf_lit(&r->buf, "null");
    else
        json_write(&r->buf, value, DIALECT_5);
}

static void render_flag(struct renderer *r, const char *key, bool value)
{
    render_name(r, slice_from(key));
    if (value)
        buf_lit(&r->buf, "true");
    else
        buf_lit(&r->buf, "false");
}

static void render_boost(struct renderer *r, const struct query *query)
{
    render_name(r, SLICE_LIT("boost"));
    json_float_text(&r->buf, (float)query->boost);
}

static void text_member(struct renderer *r, const char *key, const char *text)
{
    render_name(r, slice_from(key));
    buf_json_string(&r->buf, slice_from(text));
}

static void render_node(struct renderer *r, const struct query *query);

static void render_list(struct renderer *r, const char *key, const struct query_list *list)
{
    if (list->count == 0)
        return;
    render_name(r, slice_from(key));
    open_bracket(r, '[');
    for (size_t i = 0; i < list->count; i++) {
        begin_line(r);
        render_node(r, list->items[i]);
    }
    close_bracket(r, ']');
}

static void render_bool(struct renderer *r, const struct query *query)
{
    render_list(r, "must", &query->boolean.must);
    render_list(r, "filter", &query->boolean.filter);
    render_list(r, "must_not", &query->boolean.must_not);
    render_list(r, "should", &query->boolean.should);
    render_flag(r, "disable_coord", false);
    render_flag(r, "adjust_pure_negative", !query->boolean.keep_pure_negative);
    if (query->boolean.minimum_should_match.len > 0) {
        render_name(r, SLICE_LIT("minimum_should_match"));
        buf_json_string(&r->buf, query->boolean.minimum_should_match);
    }
}

static void render_values(struct renderer *r, const struct query *query)
{
    open_bracket(r, '[');
    for (size_t i = 0; i < query->values.count; i++) {
        begin_line(r);
        render_scalar(r, query->values.items[i]);
    }
    close_bracket(r, ']');
}

static void render_match(struct renderer *r, const struct query *query)
{
    render_name(r, SLICE_LIT("query"));
    render_scalar(r, query->match.value);
    if (query->match.form == MATCH_BOOLEAN) {
        text_member(r, "operator", query->match.options.and_operator ? "AND" : "OR");
        render_name(r, SLICE_LIT("prefix_length"));
        buf_u64(&r->buf, query->match.options.prefix_length);
        render_name(r, SLICE_LIT("max_expansions"));
        buf_lit(&r->buf, "50");
        render_flag(r, "fuzzy_transpositions", true);
        render_flag(r, "lenient", query->match.options.lenient);
        text_member(r, "zero_terms_query", query->match.options.zero_terms_all ? "ALL" : "NONE");
    } else {
        render_name(r, SLICE_LIT("slop"));
        buf_u64(&r->buf, query->match.options.slop);
    }
}

static void render_range(struct renderer *r, const struct query *query)
{
    render_name(r, SLICE_LIT("from"));
    render_scalar(r, query->range.low);
    render_name(r, SLICE_LIT("to"));
    render_scalar(r, query->range.high);
    render_flag(r, "include_lower", !query->range.low_exclusive);
    render_flag(r, "include_upper", !query->range.high_exclusive);
}

static const char *kind_name(const struct query *query)
{
    static const char *const names[QUERY_KIND_COUNT] = {"match_all",    "match_none",
                                                        "ids",          "type",
                                                        "term",         "terms",
                                                        "prefix",       "wildcard",
                                                        "regexp",       "fuzzy",
                                                        "range",        "exists",
                                                        "bool",         "constant_score",
                                                        "dis_max",      "boosting",
                                                        "nested",       "function_score",
                                                        "match",        "multi_match",
                                                        "query_string", "simple_query_string",
                                                        "script"};
    static const char *const forms[] = {"match", "match_phrase", "match_phrase_prefix", "match_bool_prefix"};
    return query->kind == QUERY_MATCH ? forms[query->match.form] : names[query->kind];
}

/* Renders the body of a query on one field: {"field": {…}}. */
static void render_field(struct renderer *r, const struct query *query)
{
    render_name(r, query->field);
    open_bracket(r, '{');
    if (query->kind == QUERY_MATCH) {
        render_match(r, query);
    } else if (query->kind == QUERY_RANGE) {
        render_range(r, query);
    } else {
        const char *key = query->kind == QUERY_WILDCARD ? "wildcard" : "value";
        render_name(r, slice_from(key));
        render_scalar(r, query->kind == QUERY_TERM ? query->values.items[0] : query->pattern.value);
    }
    render_boost(r, query);
    close_bracket(r, '}');
}

static void render_body(struct renderer *r, const struct query *query)
{
    switch (query->kind) {
    case QUERY_TERM:
    case QUERY_PREFIX:
    case QUERY_WILDCARD:
    case QUERY_REGEXP:
    case QUERY_FUZZY:
    case QUERY_RANGE:
    case QUERY_MATCH: render_field(r, query); return;
    case QUERY_TERMS:
        render_name(r, query->field);
        render_values(r, query);
        break;
    case QUERY_IDS:
        render_name(r, SLICE_LIT("type"));
        buf_lit(&r->buf, "[ ]");
        render_name(r, SLICE_LIT("values"));
        render_values(r, query);
        break;
    case QUERY_BOOL: render_bool(r, query); break;
    case QUERY_EXISTS:
        render_name(r, SLICE_LIT("field"));
        buf_json_string(&r->buf, query->field);
        break;
    case QUERY_CONSTANT_SCORE:
        render_name(r, SLICE_LIT("filter"));
        render_node(r, query->compound.queries.items[0]);
        break;
    case QUERY_DIS_MAX:
        render_name(r, SLICE_LIT("tie_breaker"));
        json_float_text(&r->buf, query->compound.number > 0 ? (float)query->compound.number : 0.0f);
        render_list(r, "queries", &query->compound.queries);
        break;
    default: break;
    }
    render_boost(r, query);
}

static void render_node(struct renderer *r, const struct query *query)
{
    open_bracket(r, '{');
    render_name(r, slice_from(kind_name(query)));
    open_bracket(r, '{');
    render_body(r, query);
    close_bracket(r, '}');
    close_bracket(r, '}');
}

struct slice query__render(struct arena *arena, const struct query *query)
{
    struct renderer r = {.buf = BUF_INIT(1u << 20)};
    render_node(&r, query);
    struct slice text = arena_copy(arena, buf_as_slice(&r.buf));
    buf_deinit(&r.buf);
    return text;
}
