/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and combines nodes of a parsed query. */
#include "query/node.h"

#include "json/each.h"
#include "json/path.h"
#include "json/write.h"

#include <arpa/inet.h>
#include <math.h>

struct query *query__new(struct arena *arena, enum query_kind kind)
{
    struct query *query = arena_zalloc(arena, sizeof *query);
    query->kind = kind;
    query->boost = 1.0;
    return query;
}

void query__list_add(struct arena *arena, struct query_list *list, struct query *query)
{
    list->items = arena_grow(arena, list->items, list->count, &list->capacity, sizeof(struct query *));
    list->items[list->count++] = query;
}

yyjson_val *query__text(struct arena *arena, struct slice text)
{
    yyjson_val *value = arena_zalloc(arena, sizeof *value);
    struct slice copy = arena_copy(arena, text);
    value->tag = ((uint64_t)copy.len << YYJSON_TAG_BIT) | YYJSON_TYPE_STR;
    value->uni.str = copy.data;
    return value;
}

struct slice query__scalar_text(struct arena *arena, yyjson_val *scalar)
{
    switch (yyjson_get_tag(scalar)) {
    case YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_TRUE: return SLICE_LIT("true");
    case YYJSON_TYPE_BOOL | YYJSON_SUBTYPE_FALSE: return SLICE_LIT("false");
    case YYJSON_TYPE_NUM | YYJSON_SUBTYPE_UINT:
        return arena_printf(arena, "%llu", (unsigned long long)yyjson_get_uint(scalar));
    case YYJSON_TYPE_NUM | YYJSON_SUBTYPE_SINT: return arena_printf(arena, "%lld", (long long)yyjson_get_sint(scalar));
    case YYJSON_TYPE_NUM | YYJSON_SUBTYPE_REAL: {
        struct buf text = BUF_INIT(BUF_UNLIMITED);
        json_double_text(&text, yyjson_get_real(scalar));
        struct slice copy = arena_copy(arena, buf_as_slice(&text));
        buf_deinit(&text);
        return copy;
    }
    default: return yyjson_is_str(scalar) || yyjson_is_raw(scalar) ? json_slice(scalar) : SLICE_LIT("null");
    }
}

struct query *query_match_all(struct arena *arena)
{
    return query__new(arena, QUERY_MATCH_ALL);
}

struct query *query_types(struct arena *arena, const struct slice *types, size_t count)
{
    struct query *query = query__new(arena, QUERY_TYPE);
    query->values.items = arena_alloc(arena, count * sizeof(yyjson_val *));
    query->values.count = count;
    for (size_t i = 0; i < count; i++)
        query->values.items[i] = query__text(arena, types[i]);
    return query;
}

struct query *query_filtered(struct arena *arena, struct query *query, struct query *filter)
{
    if (query == NULL)
        query = query_match_all(arena);
    if (filter == NULL)
        return query;
    struct query *both = query__new(arena, QUERY_BOOL);
    query__list_add(arena, &both->boolean.must, query);
    query__list_add(arena, &both->boolean.filter, filter);
    return both;
}

struct query *query_and(struct arena *arena, struct query *a, struct query *b)
{
    struct query *both = query__new(arena, QUERY_BOOL);
    query__list_add(arena, &both->boolean.filter, a);
    query__list_add(arena, &both->boolean.filter, b);
    return both;
}

struct query *query_or(struct arena *arena, struct query *a, struct query *b)
{
    struct query *either = query__new(arena, QUERY_BOOL);
    query__list_add(arena, &either->boolean.should, a);
    query__list_add(arena, &either->boolean.should, b);
    return either;
}

struct query *query_from_lucene(struct arena *arena, struct slice text, const struct lucene_options *options)
{
    struct query *query = query__new(arena, QUERY_LUCENE);
    query->lucene.text = arena_copy(arena, text);
    query->lucene.options = *options;
    return query;
}

struct query_field query__field_boost(struct slice text)
{
    size_t caret = slice_find_byte(text, '^');
    struct query_field field = {.name = {text.data, caret}, .boost = 1.0};
    if (caret < text.len) {
        double boost;
        if (slice_to_double(slice_from_offset(text, caret + 1), &boost))
            field.boost = boost;
    }
    return field;
}

bool query__names_all_fields(const struct query_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_is(fields[i].name, "*"))
            return true;
    return false;
}

/* Collects the scalars at a lookup's path as the values of the terms query. */
struct lookup_values {
    struct arena *arena;
    struct query *query;
    size_t capacity;
};

static bool lookup_value(void *context, yyjson_val *leaf)
{
    struct lookup_values *found = context;
    if (yyjson_is_ctn(leaf) || yyjson_is_null(leaf))
        return true;
    struct query *query = found->query;
    query->values.items =
        arena_grow(found->arena, query->values.items, query->values.count, &found->capacity, sizeof(yyjson_val *));
    query->values.items[query->values.count++] = leaf;
    return true;
}

static int resolve_one(struct query *query, struct arena *arena, terms_fetch *fetch, void *context,
                       struct problem *ret_problem)
{
    const struct terms_lookup *lookup = query->values.lookup;
    struct slice source = SLICE_NONE;
    int r = fetch(context, lookup, arena, &source, ret_problem);
    if (r != 0)
        return r;
    query->values.lookup = NULL;
    query->values.looked_up = true;
    if (source.data == NULL)
        return 0;
    struct json_doc doc;
    r = json_parse_stored(arena, source, &doc);
    if (r < 0)
        return tl_trace(r);
    struct lookup_values found = {arena, query, 0};
    json_path_each(doc.root, lookup->path, lookup_value, &found);
    return 0;
}

static int resolve_list(struct query_list *list, struct arena *arena, terms_fetch *fetch, void *context,
                        struct problem *ret_problem)
{
    for (size_t i = 0; i < list->count; i++) {
        int r = query_resolve_lookups(list->items[i], arena, fetch, context, ret_problem);
        if (r != 0)
            return r;
    }
    return 0;
}

static int resolve_bool(struct query *query, struct arena *arena, terms_fetch *fetch, void *context,
                        struct problem *ret_problem)
{
    struct query_list *lists[] = {&query->boolean.must, &query->boolean.filter, &query->boolean.should,
                                  &query->boolean.must_not};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        int r = resolve_list(lists[i], arena, fetch, context, ret_problem);
        if (r != 0)
            return r;
    }
    return 0;
}

static int resolve_functions(struct query *query, struct arena *arena, terms_fetch *fetch, void *context,
                             struct problem *ret_problem)
{
    int r = query_resolve_lookups(query->function.query, arena, fetch, context, ret_problem);
    for (size_t i = 0; r == 0 && i < query->function.count; i++)
        r = query_resolve_lookups(query->function.functions[i].filter, arena, fetch, context, ret_problem);
    return r;
}

int query_resolve_lookups(struct query *query, struct arena *arena, terms_fetch *fetch, void *context,
                          struct problem *ret_problem)
{
    if (query == NULL)
        return 0;
    switch (query->kind) {
    case QUERY_TERMS: return query->values.lookup == NULL ? 0 : resolve_one(query, arena, fetch, context, ret_problem);
    case QUERY_BOOL: return resolve_bool(query, arena, fetch, context, ret_problem);
    case QUERY_CONSTANT_SCORE:
    case QUERY_DIS_MAX:
    case QUERY_BOOSTING:
    case QUERY_NESTED: return resolve_list(&query->compound.queries, arena, fetch, context, ret_problem);
    case QUERY_FUNCTION_SCORE: return resolve_functions(query, arena, fetch, context, ret_problem);
    default: return 0;
    }
}

void query__write_ip(struct buf *buf, struct slice address)
{
    static const char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (char)0xff, (char)0xff};
    char text[INET6_ADDRSTRLEN];
    bool four = address.len == 16 && memcmp(address.data, mapped, sizeof mapped) == 0;
    if (address.len == 16 &&
        inet_ntop(four ? AF_INET : AF_INET6, address.data + (four ? 12 : 0), text, sizeof text) != NULL)
        buf_json_string(buf, slice_from(text));
    else
        buf_lit(buf, "null");
}
