/* SPDX-License-Identifier: Apache-2.0 */
/* The filters and routings of aliases; see alias_filter.h. */
#include "api/indices/alias_filter.h"

#include "api/request/api_internal.h"
#include "base/clock.h"
#include "json/each.h"
#include "json/write.h"
#include "mapping/mapping.h"
#include "query/node.h"
#include "query/search.h"

static int find_wrong(struct request *request, const struct search_index *into, yyjson_val *filter,
                      struct problem *ret_problem)
{
    struct json_doc doc;
    struct query *query;
    struct query_parser parser = {.arena = request->arena,
                                  .dialect = request->dialect,
                                  .doc = &doc,
                                  .problem = ret_problem,
                                  .zones = request_zones(request)};
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    json_write(&text, filter, DIALECT_7); /* locations in errors count from the begin of the filter */
    struct slice kept = arena_copy(request->arena, buf_as_slice(&text));
    buf_deinit(&text);
    int r = json_parse_stored(request->arena, kept, &doc);
    if (r < 0)
        return tl_trace(r);
    r = query_parse(&parser, doc.root, &query);
    if (r != 0 && parser.line > 0)
        problem_details(ret_problem, request->arena, "\"line\":%zu,\"col\":%zu", parser.line, parser.column);
    if (r != 0)
        return r;
    r = search_check(into, query, request->dialect, (int64_t)(clock_wall_us() / TL_MS), request->arena, ret_problem);
    if (r == SEARCH_REFUSED && ret_problem->type == PROBLEM_QUERY_SHARD && ret_problem->details.len == 0)
        problem_details(ret_problem, request->arena, "\"index_uuid\":\"%.*s\",\"index\":%.*s", SLICE_ARG(into->uuid),
                        SLICE_ARG(request_quoted(request, into->name)));
    return r;
}

static int check_filter(struct request *request, const struct search_index *into, struct slice alias,
                        yyjson_val *filter)
{
    struct problem problem = {0};
    if (!yyjson_is_obj(filter) || yyjson_obj_size(filter) == 0)
        return 0;
    int r = find_wrong(request, into, filter, &problem);
    if (r <= 0)
        return r;
    request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT, "failed to parse filter for alias [%.*s]", SLICE_ARG(alias));
    request->problem.caused_by = arena_alloc(request->arena, sizeof problem);
    *request->problem.caused_by = problem;
    return REQUEST_REFUSED;
}

int alias_filter_check(struct request *request, const struct catalog_index *index, struct slice alias,
                       yyjson_val *filter)
{
    struct search_index into = {
        .name = index->name, .uuid = index->uuid, .number = index->number, .shard_count = 1, .mapping = index->mapping};
    return check_filter(request, &into, alias, filter);
}

int alias_routing_check(struct request *request, struct slice alias, yyjson_val *body)
{
    yyjson_val *routing = json_get_lit(body, "index_routing");
    if (routing == NULL)
        routing = json_get_lit(body, "routing");
    if (!yyjson_is_str(routing) || slice_find_byte(json_slice(routing), ',') == json_slice(routing).len)
        return 0;
    return request_refuse(request, PROBLEM_ILLEGAL_ARGUMENT,
                          "alias [%.*s] has several index routing values associated with it", SLICE_ARG(alias));
}

int alias_routings_check(struct request *request, yyjson_val *aliases)
{
    size_t i, max;
    yyjson_val *key, *alias;
    int r = 0;
    json_obj_foreach (aliases, i, max, key, alias)
        if ((r = alias_routing_check(request, json_slice(key), alias)) != 0)
            return r;
    return 0;
}

static bool has_filter(yyjson_val *aliases)
{
    size_t i, max;
    yyjson_val *key, *alias;
    json_obj_foreach (aliases, i, max, key, alias)
        if (json_get_lit(alias, "filter") != NULL)
            return true;
    return false;
}

int alias_filters_check(struct request *request, struct slice name, enum dialect dialect, bool typed,
                        yyjson_val *mappings, yyjson_val *aliases)
{
    tl_cleanup(mapping_unrefp) struct mapping *mapping = NULL, *empty = NULL;
    struct problem problem;
    size_t i, max;
    yyjson_val *key, *alias;
    if (!has_filter(aliases) || mapping_new(NULL, DATE_RULES_7_10, request->arena, &empty, &problem) != 0)
        return 0;
    /* Errors in mappings are reported by the creation of the index. */
    if (yyjson_is_obj(mappings) && mapping_merge_all(empty, mappings, dialect, typed, FIELDS_TEXTS_BOUNDED,
                                                     request->arena, &mapping, &problem) != 0)
        return 0;
    struct search_index into = {
        .name = name, .uuid = SLICE_LIT("_na_"), .shard_count = 1, .mapping = mapping != NULL ? mapping : empty};
    json_obj_foreach (aliases, i, max, key, alias) {
        int r = check_filter(request, &into, json_slice(key), json_get_lit(alias, "filter"));
        if (r != 0)
            return r;
    }
    return 0;
}
