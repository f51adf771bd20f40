/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What searches keep between requests: contexts (scrolls and points in time), compiled scripts, tasks.
 *
 * A context pins the timestamp it reads at, and lives from its opening until it is cleared or has not been
 * used for its keep-alive. One request at a time reads a scroll; others wait for it on their worker.
 */
#ifndef TL_API_SEARCH_SERVICE_H
#define TL_API_SEARCH_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/search/search_call.h"

#define CONTEXTS_SCROLL_MAX 500 /* search.max_open_scroll_context */
#define CONTEXTS_PIT_MAX 500
#define CONTEXTS_BYTES_MAX ((size_t)512 << 20) /* what the cursors of all scrolls hold, when one more begins */

struct search_service;
struct tasks;

/*
 * Starts the thread that ends contexts whose keep-alive is over. It also calls `each_second`, which removes
 * what else has no user left. Returns: 0, TL_ERR_IO. Owns: the caller; search_service_close.
 */
int search_service_open(struct api *api, void (*each_second)(struct api *api),
                        struct search_service **ret_service) TL_MUST_USE;
/* Assumes: no request is being handled. NULL is allowed. */
void search_service_close(struct search_service *service);
struct tasks *search_service_tasks(struct search_service *service);

/* The server stops: contexts end, and so do tasks without a waiting request. Running searches are finished. */
void search_service_stop(struct search_service *service);
/* The server stops at once: cancels running searches and tasks. A task ends when its present command is completed. */
void search_service_cancel(struct search_service *service);
/* Waits for the tasks, until a time of the boot clock. Returns: whether none runs. */
bool search_service_settled(struct search_service *service, uint64_t until);
/* Returns: the flag that long searches poll; true: they are cancelled. */
const atomic_bool *search_service_cancelled(const struct search_service *service);

/* Returns: the number of compiled scripts in the cache of reads. Does not wait for its lock. */
size_t search_service_script_count(const struct search_service *service);

/* As script_compile, from a cache that all threads share. */
int search_service_compile(struct search_service *service, int lang, int script_context, struct slice source,
                           struct slice name, struct script **ret_script, struct arena *arena,
                           struct problem *ret_problem) TL_MUST_USE;

enum context_kind { CONTEXT_SCROLL, CONTEXT_PIT, CONTEXT_KIND_COUNT };

/*
 * Ids: "scroll" or "pit", in a cluster the host's number as 4 digits, the context's number as 8,
 * ID_BYTES random characters; numbers are hexadecimal.
 */
struct open_context {
    enum context_kind kind;
    struct slice id; /* by which clients name it; in its arena */
    uint64_t number; /* increases from context to context; part of the id */
    struct arena arena;
    struct search_call call;      /* of a scroll: the whole search; of a point in time: indices, catalog and view */
    struct search_cursor *cursor; /* of a scroll */
    bool legacy_1x;               /* begun by search_type=scan: replies as 1.7 */
    struct slice transaction;     /* that opened it, and with which it ends; empty: none; in its arena */
    struct overlay *overlay;      /* a snapshot of the transaction's writes at the opening; NULL: none */
    pthread_mutex_t busy;
    /* Guarded by the searches' lock: */
    struct list link;
    bool listed;         /* in the table */
    unsigned references; /* the table's, and one of each request that reads it */
    size_t bytes;        /* of its arena, cursor and overlay after its last use */
    uint64_t keep_alive_us;
    uint64_t expires_us; /* monotonic */
    uint64_t opened_us;  /* monotonic; when it was put into the table */
};

enum {
    CONTEXT_MISSING = 1,
    CONTEXT_TOO_MANY = 2,
    CONTEXT_BAD_ID = 3,
};

/* Makes a context that is not in the table yet. Owns: the caller; open_context_unref. */
struct open_context *open_context_new(struct search_service *service, enum context_kind kind);
/* Adds a context to the table. Returns: 0; CONTEXT_TOO_MANY. */
int open_context_add(struct search_service *service, struct open_context *held, uint64_t keep_alive_us) TL_MUST_USE;
/*
 * Moves a request's view, catalog and overlay to the context, which keeps them until it ends. Requires:
 * request_read() has run.
 * Returns: 0; SEARCH_TOO_OLD.
 */
int open_context_take_view(struct request *request, struct open_context *held) TL_MUST_USE;
/*
 * Runs `then` if the request may read the context: a context that a transaction opened ends with the
 * transaction, and is read within it only. Also runs `then` if there is no such context. Returns: as
 * any handler.
 */
int open_context_allow(struct request *request, enum context_kind kind, struct slice id,
                       request_handler *then) TL_MUST_USE;
/*
 * Finds a context and keeps it for the caller, a scroll exclusively; `keep_alive_us` 0 leaves
 * its keep-alive. Returns: 0; CONTEXT_BAD_ID; CONTEXT_MISSING, with the number that the id names. Owns: the
 * caller; open_context_leave, on the same thread for a scroll.
 */
int open_context_enter(struct search_service *service, enum context_kind kind, struct slice id, uint64_t keep_alive_us,
                       struct open_context **ret_context, uint64_t *ret_number) TL_MUST_USE;
void open_context_leave(struct search_service *service, struct open_context *held);
void open_context_unref(struct search_service *service, struct open_context *held);
/*
 * Forwards the request where the id is of a context of another host that is live.
 * Returns: 0: it is not, and the handler continues; else as request_forward().
 */
int open_context_forward(struct request *request, enum context_kind kind, struct slice id) TL_MUST_USE;
/* Returns: the number of the host that an id names; 0: it names none. */
uint16_t open_context_host(enum context_kind kind, struct slice id);
/* Returns: whether a text could be the id of such a context. */
bool open_context_is_id(enum context_kind kind, struct slice id);

/* Removes contexts from the table: one, or with an empty id all of a kind. Returns: the number of their shards. */
size_t open_context_clear(struct search_service *service, enum context_kind kind, struct slice id);

/*
 * Reads a keep-alive ("1m"; data NULL: the default) and checks it against the cluster's settings.
 * Returns: 0, REQUEST_REFUSED.
 */
int open_context_keep_alive(struct request *request, struct slice text, const char *setting,
                            uint64_t *ret_us) TL_MUST_USE;

/* Moves the request's problem, made in another arena, into its own. */
void request_keep_problem(struct request *request);

/* _search with ?scroll=. */
int scroll_begin(struct request *request);
/* Checks the size of a scroll's pages. Returns: 0; SEARCH_REFUSED with *ret_problem, for failure_wrap(). */
int scroll_check_size(enum dialect dialect, int32_t size, struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/* Sets the request's problem for a missing context. */
void open_context_missing(struct request *request, enum context_kind kind, struct slice id, uint64_t number);

#endif
