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

static void line(struct renderer *r)
{
    if (!r->first)
        buf_lit(&r->buf, ",");
    buf_lit(&r->buf, "\n");
    for (unsigned i = 0; i < r->depth; i++)
        buf_lit(&r->buf, "  ");
    r->first = false;
}

static void name(struct renderer *r, struct slice text)
{
    line(r);
    buf_json_string(&r->buf, text);
    buf_lit(&r->buf, " : ");
}

static void begin(struct renderer *r, char bracket)
{
    buf_byte(&r->buf, bracket);
    r->depth++;
    r->first = true;
}

/* Closes a bracket. An empty pair has a space inside. */
static void end(struct renderer *r, char bracket)
{
    r->depth--;
    if (r->first) {
        buf_lit(&r->buf, " ");
    } else {
        r->first = true;
        line(r);
    }
    r->first = false;
    buf_byte(&r->buf, bracket);
}

static void scalar(struct renderer *r, yyjson_val *value)
{
    if (value == NULL)
        buf_lit(&r->buf, "null");
    else
        json_write(&r->buf, value, DIALECT_5);
}

static void flag(struct renderer *r, const char *key, bool value)
{
    name(r, slice_from(key));
    if (value)
        buf_lit(&r->buf, "true");
    else
        buf_lit(&r->buf, "false");
}

static void boost(struct renderer *r, const struct query *query)
{
    name(r, SLICE_LIT("boost"));
    json_float_text(&r->buf, (float)query->boost);
}

static void text_member(struct renderer *r, const char *key, const char *text)
{
    name(r, slice_from(key));
    buf_json_string(&r->buf, slice_from(text));
}

static void render(struct renderer *r, const struct query *query);

static void render_list(struct renderer *r, const char *key, const struct query_list *list)
{
    if (list->count == 0)
        return;
    name(r, slice_from(key));
    begin(r, '[');
    for (size_t i = 0; i < list->count; i++) {
        line(r);
        render(r, list->items[i]);
    }
    end(r, ']');
}

static void render_bool(struct renderer *r, const struct query *query)
{
    render_list(r, "must", &query->boolean.must);
    render_list(r, "filter", &query->boolean.filter);
    render_list(r, "must_not", &query->boolean.must_not);
    render_list(r, "should", &query->boolean.should);
    flag(r, "disable_coord", false);
    flag(r, "adjust_pure_negative", !query->boolean.keep_pure_negative);
    if (query->boolean.minimum_should_match.len > 0) {
        name(r, SLICE_LIT("minimum_should_match"));
        buf_json_string(&r->buf, query->boolean.minimum_should_match);
    }
}

static void render_values(struct renderer *r, const struct query *query)
{
    begin(r, '[');
    for (size_t i = 0; i < query->values.count; i++) {
        line(r);
        scalar(r, query->values.items[i]);
    }
    end(r, ']');
}

static void render_match(struct renderer *r, const struct query *query)
{
    name(r, SLICE_LIT("query"));
    scalar(r, query->match.value);
    if (query->match.form == MATCH_BOOLEAN) {
        text_member(r, "operator", query->match.options.and_operator ? "AND" : "OR");
        name(r, SLICE_LIT("prefix_length"));
        buf_u64(&r->buf, query->match.options.prefix_length);
        name(r, SLICE_LIT("max_expansions"));
        buf_lit(&r->buf, "50");
        flag(r, "fuzzy_transpositions", true);
        flag(r, "lenient", query->match.options.lenient);
        text_member(r, "zero_terms_query", query->match.options.zero_terms_all ? "ALL" : "NONE");
    } else {
        name(r, SLICE_LIT("slop"));
        buf_u64(&r->buf, query->match.options.slop);
    }
}

static void render_range(struct renderer *r, const struct query *query)
{
    name(r, SLICE_LIT("from"));
    scalar(r, query->range.low);
    name(r, SLICE_LIT("to"));
    scalar(r, query->range.high);
    flag(r, "include_lower", !query->range.low_exclusive);
    flag(r, "include_upper", !query->range.high_exclusive);
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
    name(r, query->field);
    begin(r, '{');
    if (query->kind == QUERY_MATCH) {
        render_match(r, query);
    } else if (query->kind == QUERY_RANGE) {
        render_range(r, query);
    } else {
        const char *key = query->kind == QUERY_WILDCARD ? "wildcard" : "value";
        name(r, slice_from(key));
        scalar(r, query->kind == QUERY_TERM ? query->values.items[0] : query->pattern.value);
    }
    boost(r, query);
    end(r, '}');
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
        name(r, query->field);
        render_values(r, query);
        break;
    case QUERY_IDS:
        name(r, SLICE_LIT("type"));
        buf_lit(&r->buf, "[ ]");
        name(r, SLICE_LIT("values"));
        render_values(r, query);
        break;
    case QUERY_BOOL: render_bool(r, query); break;
    case QUERY_EXISTS:
        name(r, SLICE_LIT("field"));
        buf_json_string(&r->buf, query->field);
        break;
    case QUERY_CONSTANT_SCORE:
        name(r, SLICE_LIT("filter"));
        render(r, query->compound.queries.items[0]);
        break;
    case QUERY_DIS_MAX:
        name(r, SLICE_LIT("tie_breaker"));
        json_float_text(&r->buf, query->compound.number > 0 ? (float)query->compound.number : 0.0f);
        render_list(r, "queries", &query->compound.queries);
        break;
    default: break;
    }
    boost(r, query);
}

static void render(struct renderer *r, const struct query *query)
{
    begin(r, '{');
    name(r, slice_from(kind_name(query)));
    begin(r, '{');
    render_body(r, query);
    end(r, '}');
    end(r, '}');
}

struct slice query__render(struct arena *arena, const struct query *query)
{
    struct renderer r = {.buf = BUF_INIT(1u << 20)};
    render(&r, query);
    struct slice text = arena_copy(arena, buf_as_slice(&r.buf));
    buf_deinit(&r.buf);
    return text;
}
