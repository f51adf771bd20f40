/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes; see nodes.h. */
#include "api/request/nodes.h"

#include <inttypes.h>

#include "api/request/api_internal.h"
#include "base/alloc.h"
#include "json/filter.h"

void nodes_own_id(struct journal *journal, char id[])
{
    struct journal_host *hosts;
    size_t count = journal_hosts(journal, &hosts);
    memcpy(id, API_NODE_ID_ALONE, sizeof API_NODE_ID_ALONE);
    for (size_t i = 0; i < count; i++)
        if (hosts[i].self)
            id_of_name(hosts[i].name, id);
    mem_free(hosts);
}

/* The address that the request came by. */
static struct slice asked_address(struct request *request)
{
    struct slice host = exchange_header(request->exchange, "Host");
    return host.len > 0 ? host : SLICE_LIT("127.0.0.1:9200");
}

/* Another id at each start of a host, as Elasticsearch's: `start` differs between its starts. */
static struct slice ephemeral_id(struct slice name, uint64_t start, struct arena *arena)
{
    char *id = arena_alloc(arena, ID_BYTES + 1);
    id_of_name(arena_printf(arena, "%.*s/%" PRIu64, SLICE_ARG(name), start), id);
    return slice_make(id, ID_BYTES);
}

/* This host, where the list does not have it: it is alone, or was forgotten while it was out. */
static struct cluster_node own_node(struct request *request)
{
    struct slice name = request->api->options.node_name;
    return (struct cluster_node){.id = slice_from(request->api->node_id),
                                 .ephemeral_id = ephemeral_id(name, request->api->started_us, request->arena),
                                 .name = name,
                                 .address = asked_address(request),
                                 .number = journal_host_number(request->api->journal),
                                 .self = true,
                                 .master = journal_host_number(request->api->journal) == 0};
}

static struct cluster_node node_of(const struct journal_host *host, struct arena *arena)
{
    char *id = arena_alloc(arena, ID_BYTES + 1);
    id_of_name(host->name, id);
    return (struct cluster_node){.id = slice_make(id, ID_BYTES),
                                 .ephemeral_id = ephemeral_id(host->name, host->life, arena),
                                 .name = arena_copy(arena, host->name),
                                 .address = arena_copy(arena, host->address),
                                 .number = host->number,
                                 .tls = host->tls,
                                 .self = host->self,
                                 .master = host->keeper};
}

const struct cluster_nodes *nodes_list(struct request *request)
{
    struct journal_host *hosts;
    size_t known = journal_hosts(request->api->journal, &hosts);
    struct cluster_nodes *nodes = arena_zalloc(request->arena, sizeof *nodes);
    struct cluster_node *items = arena_zalloc(request->arena, (known + 1) * sizeof *items);
    *nodes = (struct cluster_nodes){.items = items, .in = journal_serves(request->api->journal), .current = true};
    for (size_t i = 0; i < known; i++) {
        const struct journal_host *host = &hosts[i];
        /* Before its first heartbeat this host has just joined, and applied all that was ordered before. */
        bool is_new = host->self && host->silent_us == UINT64_MAX;
        nodes->current = nodes->current && host->live && (is_new || host->lag_us <= NODE_LAG_MAX_US);
        if (!host->live && !host->self)
            continue;
        items[nodes->count++] = node_of(host, request->arena);
        nodes->self = host->self ? &items[nodes->count - 1] : nodes->self;
    }
    mem_free(hosts);
    if (nodes->self == NULL) {
        items[nodes->count] = own_node(request);
        nodes->self = &items[nodes->count++];
    }
    for (size_t i = 0; i < nodes->count; i++)
        nodes->master = items[i].master ? &items[i] : nodes->master;
    return nodes;
}

const struct cluster_node *nodes_by_id(const struct cluster_nodes *nodes, struct slice id)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (slice_equal(nodes->items[i].id, id))
            return &nodes->items[i];
    return NULL;
}

const struct cluster_node *nodes_by_number(const struct cluster_nodes *nodes, uint16_t number)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->items[i].number == number)
            return &nodes->items[i];
    return NULL;
}

/* Returns: the length of the address up to its last colon, with it; 0: it has none. */
static size_t before_port(const struct cluster_node *node)
{
    size_t end = node->address.len;
    while (end > 0 && node->address.data[end - 1] != ':')
        end--;
    return end;
}

struct slice node_host(const struct cluster_node *node)
{
    size_t end = before_port(node);
    return end == 0 ? node->address : slice_make(node->address.data, end - 1);
}

struct slice node_port(const struct cluster_node *node)
{
    size_t end = before_port(node);
    return end == 0 ? SLICE_NONE : slice_from_offset(node->address, end);
}

/* The value of "ROLE:true" and "ROLE:false", of the roles that every node has. Returns: whether it is one. */
static bool read_role(struct slice part, bool *ret_wanted)
{
    static const char *const roles[] = {"data:", "ingest:", "master:"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (slice_starts_with(part, slice_from(roles[i]))) {
            *ret_wanted = slice_is(slice_from_offset(part, strlen(roles[i])), "true");
            return true;
        }
    return false;
}

static bool is_named_by(const struct cluster_node *node, struct slice part)
{
    if (slice_is(part, "_all"))
        return true;
    if (slice_is(part, "_local"))
        return node->self;
    if (slice_is(part, "_master"))
        return node->master;
    return slice_equal(part, node->id) || json_wildcard(part, node->name) || json_wildcard(part, node_host(node)) ||
           json_wildcard(part, node->address);
}

bool node_is_named(const struct cluster_node *node, struct slice list)
{
    bool named = list.len == 0;
    while (list.len > 0) {
        size_t len = slice_find_byte(list, ',');
        struct slice part = slice_make(list.data, len);
        bool wanted = named;
        if (read_role(part, &wanted))
            named = wanted;
        else
            named = named || is_named_by(node, part);
        list = slice_from_offset(list, len + 1);
    }
    return named;
}
