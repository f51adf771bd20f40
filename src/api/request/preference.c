/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preferences.
 */
#include "api/request/preference.h"

#include "api/request/api_internal.h"
#include "core/catalog/catalog.h"
#include "json/filter.h"

/* What a preference is about. */
struct wish {
    struct request *request;
    const struct catalog_index *index;
    uint32_t shard;
    struct slice type, id, routing;
    struct problem *problem;
};

/* A search knows the expression only. */
static struct slice index_name(const struct wish *wish)
{
    return wish->index != NULL ? wish->index->name : request_part(wish->request, PART_INDEX);
}

static struct slice take_item(struct slice *list)
{
    size_t len = slice_find_byte(*list, ',');
    struct slice item = slice_make(list->data, len);
    *list = slice_from_offset(*list, len + 1);
    return item;
}

/* "_shards:2,3": one that is not among them is an error of Java's there. */
static int check_shards(const struct wish *wish, struct slice list)
{
    struct arena *arena = wish->request->arena;
    struct slice all = list;
    bool found = false;
    while (list.len > 0) {
        uint64_t number;
        struct slice item = take_item(&list);
        if (!slice_to_u64(item, &number)) {
            problem_set(wish->problem, arena, PROBLEM_NUMBER_FORMAT, "For input string: \"%.*s\"", SLICE_ARG(item));
            return REQUEST_REFUSED;
        }
        found = found || number == wish->shard;
    }
    if (found || wish->shard == PREFERENCE_ANY_SHARD)
        return 0;
    problem_set(wish->problem, arena, PROBLEM_NULL_POINTER, "shard [%u] of index [%.*s] is not among [%.*s]",
                wish->shard, SLICE_ARG(index_name(wish)), SLICE_ARG(all));
    return REQUEST_REFUSED;
}

/* "_only_nodes:a,b*": by name. */
static int check_nodes(const struct wish *wish, struct slice list)
{
    struct slice all = list;
    while (list.len > 0) {
        struct slice item = take_item(&list);
        if (slice_is(item, "_local") || slice_is(item, "_master") || slice_is(item, "_all") ||
            json_wildcard(item, wish->request->api->options.node_name))
            return 0;
    }
    problem_set(wish->problem, wish->request->arena, PROBLEM_ILLEGAL_ARGUMENT,
                "no data nodes with %s [%.*s] found for shard: [%.*s][%u]",
                slice_find_byte(all, ',') < all.len ? "criterion" : "criteria", SLICE_ARG(all),
                SLICE_ARG(index_name(wish)), wish->shard == PREFERENCE_ANY_SHARD ? 0 : wish->shard);
    return REQUEST_REFUSED;
}

/* 5.6's "_replica": replicas do not exist here. */
static int refuse_replica(const struct wish *wish)
{
    if (wish->shard == PREFERENCE_ANY_SHARD) {
        problem_set(wish->problem, wish->request->arena, PROBLEM_NO_SHARD_AVAILABLE, "No shard available for [null]");
        return REQUEST_REFUSED;
    }
    problem_set(wish->problem, wish->request->arena, PROBLEM_NO_SHARD_AVAILABLE,
                "No shard available for [get [%.*s][%.*s][%.*s]: routing [%.*s]]", SLICE_ARG(index_name(wish)),
                SLICE_ARG(wish->type), SLICE_ARG(wish->id),
                SLICE_ARG(wish->routing.len > 0 ? wish->routing : SLICE_LIT("null")));
    return REQUEST_REFUSED;
}

/* The names before the colon that every version has, and those that went with 7.0. */
static bool is_known(struct slice name, enum dialect dialect)
{
    static const char *const old[] = {"_primary", "_primary_first", "_replica", "_replica_first"};
    if (slice_is(name, "_local") || slice_is(name, "_only_local") || slice_is(name, "_prefer_nodes"))
        return true;
    for (size_t i = 0; i < sizeof old / sizeof *old && dialect == DIALECT_5; i++)
        if (slice_is(name, old[i]))
            return true;
    return false;
}

int preference_check(struct request *request, enum dialect dialect, const struct catalog_index *index, uint32_t shard,
                     struct slice type, struct slice id, struct slice routing, struct problem *ret_problem)
{
    struct wish wish = {request, index, shard, type, id, routing, ret_problem};
    struct slice text = request_param(request, "preference");
    if (text.len == 0 || text.data[0] != '_')
        return 0;
    size_t colon = slice_find_byte(text, ':');
    struct slice name = slice_make(text.data, colon), rest = slice_from_offset(text, colon + 1);
    if (slice_is(name, "_shards") && colon < text.len) {
        /* "_shards:2,3|_local": what else it would like */
        rest.len = slice_find_byte(rest, '|');
        return check_shards(&wish, rest);
    }
    if (slice_is(name, "_only_nodes") && colon < text.len)
        return check_nodes(&wish, rest);
    if (slice_is(text, "_replica") && dialect == DIALECT_5)
        return refuse_replica(&wish);
    if (is_known(name, dialect))
        return 0;
    problem_set(ret_problem, request->arena, PROBLEM_ILLEGAL_ARGUMENT, "no Preference for [%.*s]", SLICE_ARG(text));
    return REQUEST_REFUSED;
}
