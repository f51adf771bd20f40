/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the api share: the api itself and its parts.
 */
#ifndef TL_API_API_INTERNAL_H
#define TL_API_API_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/owners/attachment.h"
#include "api/owners/txn_queue.h"
#include "api/scripts/file_scripts.h"
#include "api/request/id.h"
#include "api/request/request.h"
#include "api/request/worker.h"

/* The node id of a host that is in no cluster (nodes.h). */
#define API_NODE_ID_ALONE "tidelock00000000000000"

struct consistency;
struct distribution;
struct events;
struct followers;
struct growth_table;
struct head_waits;
struct search_service;
struct traffic;

struct api {
    struct journal *journal;
    struct store *store;
    struct api_options options;
    struct route_table *routes;
    struct workers *workers;
    struct txn_queue *txn_queue;
    struct attachments *attachments;
    struct followers *followers;       /* requests that wait for changes */
    struct consistency *consistency;   /* settings of a cluster */
    struct head_waits *head_waits;     /* reads that wait for the log's head; NULL: no cluster */
    struct distribution *distribution; /* answers of writes that wait for other hosts; NULL: no cluster */
    struct events *events;             /* viewers of the page */
    struct file_scripts *file_scripts; /* NULL: none are watched */
    struct id_source ids;
    atomic_bool merging;       /* a worker is at the store's compaction */
    struct growth_table *growth;           /* what commands in flight may add to the catalog */
    struct search_service *search_service; /* scrolls, points in time, tasks, compiled scripts */
    char cluster_uuid[ID_BYTES + 1];
    char node_id[ID_BYTES + 1]; /* of this host (nodes.h) */
    struct traffic *traffic; /* by route_line() */
    uint64_t started_us;     /* of the clock that is set */
    tl_ts locks_from;        /* the oldest timestamp whose locks are known */
};

/*
 * Answers 405 with the methods (bits by enum http_method) that lead somewhere with this path, or OPTIONS with the same.
 * `bad_escape`: the path could not even be decoded; data NULL else.
 * Returns: REQUEST_ANSWERED; REQUEST_REFUSED where the path is of an API that is not here (unsupported_api.h).
 */
int api_wrong_method(struct request *request, unsigned methods, struct slice bad_escape) TL_MUST_USE;

#endif
