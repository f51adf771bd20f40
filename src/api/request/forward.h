/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forwarding: a request that is about something that only another host of the cluster has.
 *
 * Scrolls, points in time, tasks and query transactions are on one host, and their ids name it. A
 * host that gets an id of another live host sends the request there as it came, and answers with
 * the reply to the letter: status, body, content type, Tidelock-Timestamp.
 *
 * Invariants
 *  1. *A request is forwarded once.* It is marked (Tidelock-Forwarded), and a marked request is
 *     answered by the host that
 *     receives it: where its id is another host's it is refused, and lists have what that host has.
 *  2. *Waiting costs no thread*: one thread of the sender has all calls, so hosts that wait for each other cannot block
 *     each other.
 *  3. *A call ends with its client's request, with the other host's life, or with the server.* It
 *     has no time limit of its
 *     own; the other host observes the `timeout` of the request and its own --request-time.
 *  4. *The reply counts* in the memory of the request.
 */
#ifndef TL_API_FORWARD_H
#define TL_API_FORWARD_H

#include "api/request/nodes.h"
#include "json/write.h"

/* Whether another host has sent the request on. */
bool request_is_forwarded(struct request *request);

/* Sends the request to a node as it came, and answers with its reply. Returns: REQUEST_PENDING; REQUEST_REFUSED. */
int request_forward(struct request *request, const struct cluster_node *to) TL_MUST_USE;

/*
 * The same where the host with a number is another one and is live.
 * Returns: 0: it is this one, or is out, and the handler continues; else as request_forward().
 */
int request_forward_to(struct request *request, uint16_t host) TL_MUST_USE;

/*
 * The same for the host of a query transaction, by its id; that of an update transaction names none.
 * Returns: 0: the handler continues; REQUEST_REFUSED also where the transaction's host is out of the
 *          cluster; else as request_forward().
 */
int request_forward_query_txn(struct request *request, struct slice id) TL_MUST_USE;

/* A request of this host to another, on behalf of a request. */
struct host_ask {
    const struct cluster_node *node;
    const char *method;
    struct slice target;
    struct slice body; /* JSON; data NULL: none */

    /* The reply; in the request's arena. */
    int status; /* 0: none has come, and `text` is the reason */
    struct slice text;
    yyjson_val *json; /* of `text`, where host_ask_json() has parsed it */
};

/*
 * Sends all of them, and runs `then` when the last one is answered: on a worker, or at once if
 * `count` is 0. They live in the request's arena, and pass on its Authorization, X-Opaque-Id,
 * session and transaction.
 * Returns: as any handler.
 */
int request_ask_hosts(struct request *request, struct host_ask *asks, size_t count, request_handler *then) TL_MUST_USE;

/* Returns: room for an ask to each other node that the list names (node_is_named()); none in a forwarded request. */
struct host_ask *request_asks(struct request *request, struct slice named, size_t *ret_count);

/* Returns: the JSON of a reply with status 200, or 404 for nothing found; NULL: it is another one. */
yyjson_val *host_ask_json(struct request *request, struct host_ask *ask);

/*
 * Writes the failures of the asks without JSON as an array, and its key before it; nothing if all
 * have JSON. Returns: their number.
 */
size_t host_asks_write_failures(struct request *request, const char *key, struct host_ask *asks, size_t count,
                                struct json_writer *writer);

#endif
