/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The api: Elasticsearch's document API and Tidelock's own, over a journal and its store.
 */
#ifndef TL_API_API_H
#define TL_API_API_H

#include "api/request/exchange.h"
#include "api/request/host_call.h"
#include "base/budget.h"
#include "journal/journal.h"
#include "script/script.h"

struct api;

#define API_WORKERS_MAX 256

struct api_options {
    struct slice cluster_name; /* default "tidelock" */
    struct slice node_name;
    struct slice cluster_secret; /* of the cluster's hosts, which get checkpoints for it; empty: no request gets one */
    struct slice data_directory; /* for DATA/scripts; empty: no file scripts */
    struct slice backups;        /* their folder, from backup_folder_open(); empty: backups are off */
    struct slice zoneinfo;       /* a folder of TZif files, read when the api is opened; empty: none */
    size_t body_bytes_max;       /* for texts; src/http enforces it. Default 100 MiB */
    struct script_limits script; /* of scripts that read; default SCRIPT_LIMITS_DEFAULT */
    struct budget *budget;       /* of memory, outlives the api; NULL: no limit */
    uint64_t request_us;         /* how long the work at one request may take; 0: as long as it likes */
    const struct host_sender
        *hosts;                  /* of requests to other hosts of the cluster; outlives the api; NULL: none are sent */
    unsigned worker_count;       /* threads for long reads (search, scroll, by-query), to API_WORKERS_MAX; default 2 */
};

/* Returns: 0 or a fatal code. Owns: the caller; api_close(). `journal` and `store` outlive it. */
int api_open(struct journal *journal, struct store *store, const struct api_options *options,
             struct api **ret_api) TL_MUST_USE;
void api_close(struct api *api);

/*
 * Ends the responses that stay open and the requests that wait for locks, so that connections
 * become idle before api_close(): sessions that are attached are left to their leases; scrolls,
 * points in time and tasks without a waiting request end. Requests are still answered, and may
 * begin to wait: called again, it ends these too.
 */
void api_stop(struct api *api);

/* Sessions whose connections are there are kept alive now, if they were to be by now; from any thread. */
void api_beat(struct api *api);

/*
 * Ends what takes long: searches that run, by-query tasks, compactions asked for. A task may wait for
 * the journal to complete its command: api_settled().
 */
void api_cancel(struct api *api);

/*
 * Waits for the tasks, at most so long. Returns: whether none runs; then, once the requests in flight have
 * been answered, nothing of the api is pinned in the journal, which may be closed.
 */
bool api_settled(struct api *api, uint64_t us);

/*
 * Handles one request; never blocks for long: short reads are answered at once, writes go to the journal, long reads
 * to the workers. Ensures: exchange_respond() or a stream, now or later.
 */
void api_handle(struct api *api, struct exchange *exchange);

#endif
