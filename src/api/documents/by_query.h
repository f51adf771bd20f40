/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _delete_by_query, _update_by_query and _reindex: a search whose hits are written, batch by batch, on a
 * task's thread.
 *
 * The search reads at the timestamp at which the call began; each write names the sequence number that was
 * read, so a document changed meanwhile is a conflict and not lost. A batch is one command, atomic by item as
 * a bulk is, and as many more as the core postpones items for the mappings that they make; with
 * ?atomic=true all batches are one transaction.
 */
#ifndef TL_API_BY_QUERY_H
#define TL_API_BY_QUERY_H

#include "api/documents/doc_write.h"
#include "api/search/search_call.h"
#include "api/search/task.h"

#define BY_QUERY_BATCH 1000 /* scroll_size */
#define BY_QUERY_SLICES_MAX 1024
#define BY_QUERY_FAILURES_MAX 1000 /* kept of one call */

enum by_query_kind { BY_QUERY_DELETE, BY_QUERY_UPDATE, BY_QUERY_REINDEX };

/* Where _reindex writes. */
struct by_query_dest {
    struct slice index;
    struct slice type;
    struct slice routing; /* data NULL: kept; empty: left out; else put in its place */
    enum version_type version_type;
    bool versioned; /* a version_type was given and is not internal */
    bool create;
    bool routing_refused; /* not one of the commands */
};

/* What a call has done so far; one for each slice, and their sum. */
struct by_query_status {
    uint64_t total, updated, created, deleted, batches, conflicts, noops, throttled_us;
};

struct by_query {
    enum by_query_kind kind;
    struct task *task;
    struct api *api;
    struct search_call call; /* in the task's arena */
    struct account account;  /* of the current batch */
    uint64_t memory_waited_us; /* by all batches */
    struct by_query_dest dest;
    struct write_update script; /* its script_… members; none given: no script */
    struct script *compiled;    /* NULL: no script */
    struct write_options options;
    struct slice session, transaction;
    tl_ts fencing_token;
    bool proceed;     /* conflicts: proceed */
    bool atomic;      /* all in a transaction of its own */
    bool timed_out;   /* a batch was not found within [search_timeout]: the call ended with those before */
    bool rolled_back; /* ?atomic=true, and its transaction was rolled back */
    bool wait;        /* wait_for_completion */
    bool legacy_1x;   /* DELETE /index/type/_query: replies as 1.x */
    int64_t docs_max; /* -1: all */
    int32_t batch;    /* hits in one, at most */
    double rate;      /* requests_per_second */
    uint32_t slices;  /* 0: auto, 1: not sliced */
    bool pinned;
    struct overlay *overlay; /* a snapshot of its transaction's */

    struct by_query_status sum;
    struct by_query_status *parts; /* one for each slice */
    uint32_t part_count;
    struct buf failures; /* JSON objects, apart by commas */
    size_t failure_count;
    int failure_status;     /* the highest */
    tl_ts written_ts;       /* of its newest change; 0: none */
    struct problem problem; /* that ended it; PROBLEM_NONE: none. In the task's arena */
};

/*
 * Reads body and parameters of a call into *by, whose task's arena keeps them.
 * Returns: 0, REQUEST_REFUSED.
 */
int by_query_read(struct request *request, struct by_query *by) TL_MUST_USE;

/* Does it all on the calling thread, up to the answer. */
void by_query_work(struct by_query *by);
/* The same in a transaction of its own: all or nothing (by_query_atomic.c). */
void by_query_work_atomic(struct by_query *by);
/*
 * Submits a command and waits until it is durable. It is the caller's again. Once the task is
 * cancelled its wait for locks ends, and what does not relieve is refused.
 */
void by_query_submit(struct by_query *by, struct command *command);
/* Lets go of what the call reads. */
void by_query_leave_view(struct by_query *by);
/* Between batches: shows the progress in its task. */
void by_query_progress(struct by_query *by);
/* Writes one document by a command of its own, and waits. */
void by_query_store(struct by_query *by, const struct write_item *item);

#endif
