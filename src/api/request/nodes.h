/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes: the hosts of the cluster as clients of Elasticsearch see them. A host alone is the one node of its cluster.
 *
 * A node is a host that is live; the host that is asked is always one. The keeper is the elected master.
 *
 * Ids. A node's id has ID_BYTES characters and follows from its host's name, so that it survives
 * restarts and every host finds the same one. Alone a host has API_NODE_ID_ALONE. Its ephemeral id
 * follows from its life, or from the time of its start. Ids of what lives
 * on one host name that host: tasks by its node id ("NODE:7"), scrolls and points in time by its
 * number (search_service.h).
 */
#ifndef TL_API_NODES_H
#define TL_API_NODES_H

#include "api/request/request.h"

/* A host with a larger lag is not current, which makes the health of the cluster yellow. */
#define NODE_LAG_MAX_US TL_SECOND

struct cluster_node {
    struct slice id;
    struct slice ephemeral_id;
    struct slice name;
    struct slice address; /* HOST:PORT, where clients reach it */
    uint16_t number;      /* of the host; 0: it is alone */
    bool tls;             /* it is reached by https */
    bool self;
    bool master;
};

struct cluster_nodes {
    const struct cluster_node *items; /* in order of the hosts' names */
    size_t count;
    const struct cluster_node *self;   /* the host that is asked */
    const struct cluster_node *master; /* NULL: none is known */
    bool in;                           /* the host that is asked reaches the log of the cluster */
    bool current; /* all hosts that are known are nodes, and have applied all but the last second of the log */
};

/* Writes the node id of the api's host. */
void nodes_own_id(struct journal *journal, char id[]);

/* Returns: the present nodes. Lives: as the request. Does not block. */
const struct cluster_nodes *nodes_list(struct request *request);

/* Returns: the node with this id, or of the host with this number; NULL: none. */
const struct cluster_node *nodes_by_id(const struct cluster_nodes *nodes, struct slice id);
const struct cluster_node *nodes_by_number(const struct cluster_nodes *nodes, uint16_t number);

/*
 * Whether a list as `_nodes/{node_id}` takes it names a node: `_all`, `_local`, `_master`, ids,
 * names and addresses with `*`, and roles (`data:true`, of which every node has all). The last part
 * that is about the node counts. An empty list names all.
 */
bool node_is_named(const struct cluster_node *node, struct slice list);

/* Returns: the address without its port. */
struct slice node_host(const struct cluster_node *node);
/* Returns: the port of the address; empty: it has none. */
struct slice node_port(const struct cluster_node *node);

#endif
