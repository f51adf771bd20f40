/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request: an exchange, and the state of its processing by the api.
 *
 * Made by api_handle() in the exchange's arena and freed with it. Handlers, completions and workers
 * get it one after another, never two at once.
 *
 * Ownership. One thread at a time owns a request, its arena and its exchange. The owner may read and
 * write every field; it passes the request on by one of these calls, does not touch it afterwards,
 * and returns REQUEST_PENDING. The lock or queue of the call orders the accesses of both owners. The
 * first owner is the polling thread.
 *
 *   by                             to
 *   request_submit()               the thread that completes the command: the journal's, or the
 *                                  caller's own, within the call
 *   request_work(),                a worker
 *   request_work_short()
 *   txn_queue_enter() that returns      the owner of the request before it, whose request_finish()
 *   false                          hands it to a worker
 *   request_park(), with a list    the thread that takes it off the list: followers (_changes,
 *   under a lock                   Tidelock-After), head_waits (reads of the newest state),
 *                                  events (the page), tasks (_tasks/{id}); it may call
 *                                  request_work()
 *   request_finish() that holds    the distribution's thread, which settles the request once
 *   the answer (distribution.h)    more
 *   task_start() of a call that    the task's thread (_reindex, by-query calls)
 *   waits
 *   stream_open() with an          the attachment; the thread that takes it off its list
 *   attachment
 *   request_finish(),              src/http: the request does not exist any more
 *   request_end_stream()
 *
 * Other threads than the owner. A connection's end is reported at any time between, by
 * on_disconnect, on the watcher or a polling thread; _tasks/_cancel runs on any; followers, events
 * and tasks look at requests that are parked. They may use only:
 *
 *   field                          rule
 *   api, exchange                  set before the first hand-over, never changed
 *   abandoned, cancelled           atomic; set once, never reset
 *   waiter                         atomic; journal_cancel_waiter() from any thread
 *   link                           of the thread that holds the lock of the list: workers, txn_queue
 *   exchange->on_disconnect        atomic; the owner sets it after all that the function reads
 *   context                        attachment_broken() only: set before on_disconnect is set to
 *                                  it, never changed afterwards
 *
 * Every other field, such as `dialect`, `on_worker`, `in_txn_queue`, `next` and `context`, is the owner's
 * alone. `dialect` is moreover settled when the handler first passes the request on, and does not
 * change afterwards; where parts of a request have their own dialects (_mget, _bulk), each part
 * keeps its own.
 */
#ifndef TL_API_REQUEST_H
#define TL_API_REQUEST_H

#include "api/request/api.h"
#include "api/request/divided.h"
#include "api/request/growth_table.h"
#include "api/request/params.h"
#include "api/request/route.h"
#include "base/account.h"
#include "base/budget.h"
#include "base/list.h"
#include "core/command/command.h"
#include "json/json.h"
#include "store/view.h"

/* The outcome of a handler, a completion or a worker; processed by request_finish(). Fatal codes are negative. */
enum request_result {
    REQUEST_DONE = 0,     /* the response is in the exchange */
    REQUEST_PENDING = 1,  /* another thread owns the request now; the caller must not access it any more */
    REQUEST_REFUSED = 2,  /* request->problem says why */
    REQUEST_ANSWERED = 3, /* as REQUEST_DONE, from a check before the handler, which is not called */
};

/* How the client wants the response to look; applied by reply_finish(). */
struct reply_form {
    bool pretty;
    bool human;
    bool error_trace;
    bool yaml;
    bool bare;                /* the response is not JSON: sent unchanged */
    bool compatible_8;        /* Accept or Content-Type asked for 8.x */
    struct slice filter_path; /* as given; empty: none */
};

struct awaited;
struct head_wait;
struct command;

struct request {
    struct api *api;
    struct exchange *exchange;
    struct arena *arena;       /* the exchange's */
    const struct route *route; /* NULL: no route matched */
    uint64_t begun_us;         /* by clock_boot_us() */
    const struct slice *parts; /* PART_COUNT of them, decoded; data NULL: not in the path */
    struct params params;
    enum dialect dialect; /* owner's; settled when the handler first passes the request on */
    struct reply_form form;

    struct slice session;       /* the owner named by header or parameter; empty: none */
    struct slice transaction;   /* the same */
    tl_ts fencing_token;        /* 0: none */
    struct write_request named; /* by the client, to be repeated (request_name.h); part: 0 */
    tl_ts after;                /* of the header Tidelock-After (awaited.h); 0: none */
    /* Parameters of consistency.h. */
    bool reach_given;
    enum journal_reach reach; /* if `reach_given` */
    enum { READ_DEFAULT, READ_NONBLOCKING, READ_CONTEMPORANEOUS } read_mode;
    bool found_nothing;      /* its reply shows that something looked for is not there */
    bool reads_past;         /* it reads at a timestamp that it names */
    struct query_txn *query; /* the transaction, when that is an open query transaction; journal_query_txn_release() */
    bool on_worker;          /* owner's: it is a worker, as far as is known, and may take its time */
    bool in_txn_queue;       /* owner's: the request waits in the queue of its transaction, or has passed it */

    struct problem problem;     /* with REQUEST_REFUSED */
    struct budget_guard memory; /* its share of the memory budget; request_budget.h */
    struct growth_promise growth; /* of the command that it submits next, or has in flight; catalog_growth.h */
    struct account account; /* of its time; every loop over what a client sent draws on it, or on one made like it */
    /*
     * The action that 5.6 would run on the node of the shard: errors of Java's kind from there have
     * the transport as their root cause. NULL: it runs where the request came in. Static.
     */
    const char *remote_action;

    /* What the request reads with. Set by request_set_view() only, which request_read() calls. */
    struct view view;
    struct catalog *zones;   /* that request_zones() handed out of; the same */
    struct catalog *catalog; /* referenced; dropped when the request is settled */
    struct overlay *overlay; /* a snapshot of its transaction's; the same */
    tl_ts pinned_ts;         /* pinned in the journal until the request is settled or gets another view; 0: none */

    request_handler *next;        /* where a worker or the transaction's queue continues */
    request_handler *reader;      /* the argument of request_read(), while the read waits for its timestamp */
    struct divided_targets reads; /* of a read in a transaction: those whose locks are not granted yet */
    uint64_t reads_until_us;      /* divided_wait_end(): until when it waits for them */
    struct awaited *awaited;      /* the wait for a timestamp (awaited.h); NULL: none */
    struct head_wait *head_wait;  /* the wait for the log's head (head_waits.h); NULL: none */
    tl_ts written_ts;             /* newest change that readers of other hosts are to see (distribution.h); 0: none */
    struct list link;             /* in the queue of the workers or of a transaction */
    atomic_bool abandoned; /* the connection broke while the request was processed: no client waits for the response */
    atomic_bool cancelled; /* by another request: _tasks/_cancel */
    struct command_waiter waiter; /* of its commands; it leaves when the connection breaks */
    void *context;                /* the handler's */

    /*
     * What the handler has made that outlives the request where it is passed on (request_own()).
     * `give_back` NULL: nothing.
     */
    void (*give_back)(struct request *request, void *made);
    void *made;
};

/* --- Reading the request ------------------------------------------------------------------------------------------ */

/* Sets request->problem. Returns: REQUEST_REFUSED. */
int request_refuse(struct request *request, enum problem_type type, const char *format, ...) TL_PRINTF(3, 4);

/* Refuses a request whose problem becomes the cause of another one. Returns: REQUEST_REFUSED. */
int request_wrap(struct request *request, enum problem_type type, const char *reason);

/* Refuses a request that was to wait, since the server stops. Returns: REQUEST_REFUSED. */
int request_refuse_stopping(struct request *request);

/* A text as a JSON string with its quotes, for problem_details(). */
struct slice request_quoted(struct request *request, struct slice text);

/* Part of the path; data NULL when the path has none. */
static inline struct slice request_part(const struct request *request, enum route_part part)
{
    return request->parts[part];
}

static inline struct slice request_param(const struct request *request, const char *name)
{
    return params_get(&request->params, name);
}

/* Typed parameters; absent ones leave *ret_value as it is. Returns: 0, REQUEST_REFUSED. */
int request_bool(struct request *request, const char *name, bool *ret_value) TL_MUST_USE;
int request_int(struct request *request, const char *name, int32_t *ret_value) TL_MUST_USE;
int request_long(struct request *request, const char *name, int64_t *ret_value) TL_MUST_USE;
int request_time(struct request *request, const char *name, int64_t *ret_value) TL_MUST_USE;

/*
 * Refuses parameters that the route does not list. Called by every handler after it has read its own parameters and
 * before it does anything, since Elasticsearch reports a bad value before an unknown name.
 * Returns: 0, REQUEST_REFUSED.
 */
int request_accept(struct request *request) TL_MUST_USE;

/* The body, or the `source` parameter in its place; empty when there is neither. */
struct slice request_body(const struct request *request);

/*
 * Parses the body as one JSON value. *ret_doc is all zero when there is no body.
 * Returns: 0, REQUEST_REFUSED.
 */
int request_json(struct request *request, unsigned json_flags, struct json_doc *ret_doc) TL_MUST_USE;

/* Refuses a body of blanks in the words of a parser of 7.10. Returns: 0, REQUEST_REFUSED. */
int request_blank(struct request *request, const char *parser) TL_MUST_USE;

/*
 * As request_json(), for calls that stop reading at the end of the first value: bytes after it are
 * ignored, as by 7.10.
 */
int request_first_json(struct request *request, struct json_doc *ret_doc) TL_MUST_USE;

/* --- Views -------------------------------------------------------------------------------------------------------- */

/*
 * Gives the request a view and a catalog, then runs `then`: at once, or, inside a transaction, once the locks on
 * `targets` are granted. Handlers end with `return request_read(request, …)`.
 *
 * The view is the stable timestamp's, that of ?timestamp= or ?as_of=, or the transaction's.
 * Returns: what `then` returned, or as any handler.
 */
struct lock_target;
int request_read(struct request *request, struct lock_target *targets, size_t target_count,
                 request_handler *then) TL_MUST_USE;
/*
 * The same for a write in a transaction, without the parameters of a read. Waits for locks for `wait_us` at most.
 * Assumes: the targets stay valid until `then` runs: many locks are acquired by several commands.
 */
int request_read_in_transaction(struct request *request, struct lock_target *targets, size_t target_count,
                                uint64_t wait_us, request_handler *then) TL_MUST_USE;

/*
 * Returns: whether request_read() waits until this host has everything that was acknowledged in the
 *          cluster: the request asks for that, or an earlier read has missed something.
 */
bool request_must_catch_up(struct request *request);

/*
 * Replaces the view, at which nothing is pinned yet: request_work() does that. A pin of the former view
 * is removed.
 * Assumes: the calling thread owns the request. The caller replaces the catalog, too, if it belongs to
 * the former view.
 */
void request_set_view(struct request *request, struct view view);
/* As request_set_view(), with the stable timestamp. */
void request_set_stable_view(struct request *request);

/*
 * For a request that waits for something newer than it has seen: releases its view, ...
 */
void request_look_away(struct request *request);
/* ... and gives it the stable one, which is pinned. Its time counts from now. */
void request_look_again(struct request *request);

/* Whether a timestamp can be read. Returns: 0; REQUEST_REFUSED: it is in the future, or its history is gone. */
int request_check_timestamp(struct request *request, tl_ts ts) TL_MUST_USE;

/* The current catalog, for requests that need no view. Returns: it; the request keeps the reference. */
struct catalog *request_catalog(struct request *request);
/*
 * Returns: the newest database of time zones, for reading the request, whatever it is to see.
 * Lives: until it is settled.
 */
struct slice request_zones(struct request *request);

/*
 * Resolves the date math in the names of indices that a body has, as in those of a path:
 * "<logs-{now/d}>". Returns: 0; REQUEST_REFUSED. Lives: in `arena`, or as the names did.
 */
int request_resolve_names(struct request *request, struct arena *arena, struct slice *io_names) TL_MUST_USE;

/* --- The response ------------------------------------------------------------------------------------------------- */

/*
 * The request owns something that would outlive it: a task that is not started, a scroll or point
 * in time that is not in the table. However the request ends, also where it is refused before the
 * handler is called again, `give_back` is called with it when the request is settled, unless
 * request_pass_on() was called before. Requires: it owns nothing yet.
 */
void request_own(struct request *request, void (*give_back)(struct request *request, void *made), void *made);
/* Its resources belong to the response or to another request. */
void request_pass_on(struct request *request);

/* --- Handing over ------------------------------------------------------------------------------------------------- */

/*
 * On whose behalf the request asks. Slices are the request's: good for a command that the request waits for.
 */
struct command_owner request_terms(const struct request *request, int64_t timeout_us);

/*
 * Submits a command; `then` runs when it is complete, unless it failed as a whole: then its problem is the request's.
 * The command is freed when `then` returns, and its arena with it.
 * Returns: REQUEST_PENDING.
 */
typedef int request_completion(struct request *request, struct command *command);
int request_submit(struct request *request, struct command *command, request_completion *then) TL_MUST_USE;

/* The same, but `then` runs also when the command failed as a whole, and looks at its problem itself. */
int request_submit_all(struct request *request, struct command *command, request_completion *then) TL_MUST_USE;

/*
 * Submits a command of a thread's own, with the waiter that it has, and waits until it is done.
 * Assumes: a worker, or a thread of its own.
 */
void request_ask(struct api *api, struct command *command);

/*
 * What a polling thread reads of a body, or lays out of an answer, at most: more takes
 * milliseconds, and is a worker's.
 */
#define REQUEST_INLINE_BYTES ((size_t)128 << 10)

/*
 * Runs `then` on a worker: for what may take any time, or, with request_work_short(), some tenths
 * of a second (worker.h).
 * Returns: REQUEST_PENDING.
 */
int request_work(struct request *request, request_handler *then) TL_MUST_USE;
int request_work_short(struct request *request, request_handler *then) TL_MUST_USE;

/*
 * Has src/http report when the connection breaks: request->abandoned is set then, the command that
 * the request waits for is cancelled, and those that it submits later are refused
 * (journal_cancel_waiter()). Called before the request is first passed on, so that no hang-up is
 * lost; not for a by-query call, which continues.
 */
void request_watch(struct request *request);

/*
 * Parks the request until another thread resumes it by request_work(): it waits without a thread,
 * and is watched (request_watch()).
 * Returns: REQUEST_PENDING.
 */
int request_park(struct request *request) TL_MUST_USE;

/*
 * Ends a response that stayed open (exchange_stream_open): drops what the request holds and closes the stream.
 * The request is gone afterwards. Assumes: the calling thread owns the request.
 */
void request_end_stream(struct request *request);

/*
 * Processing of the request begins, or continues after a wait for another request: its time counts
 * from now. Not for one that has changed something, whose response is wanted however long it takes.
 */
void request_start_timer(struct request *request);

/* Counts it, with its status and the time it took so far. Assumes: once. */
void request_count(const struct request *request);

/* Acts on what a handler returned. The request is gone afterwards. Called by handlers never. */
void request_finish(struct request *request, int result);

#endif
