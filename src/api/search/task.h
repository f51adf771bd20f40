/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks: the running by-query calls, each with a thread of its own, and the results of those
 * without a waiting request; and the searches that run on workers.
 *
 * A task is begun by a request and outlives it where the request does not wait. Its thread sleeps while it is
 * throttled; cancelling and rethrottling wake it. Results without a waiting request are kept as documents of the
 * index .tasks, and the last TASKS_KEPT_MAX of them in memory too.
 *
 * The numbers of a process begin at its start, in microseconds: above those of earlier processes,
 * each of which drew less than one a microsecond, and above the timestamps of their stored results
 * where the clock was set back since. So a result in .tasks is not replaced by another task's, and
 * an id never names a task of a later process.
 */
#ifndef TL_API_TASK_H
#define TL_API_TASK_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/request/request.h"
#include "json/write.h"

#define TASKS_RUNNING_MAX 64
#define TASKS_KEPT_MAX 1000

struct tasks;
struct task;

/* Owns: the caller; tasks_free, which cancels what runs and waits for it. NULL is fine. */
struct tasks *tasks_new(struct api *api);
void tasks_free(struct tasks *tasks);
/* Cancels the tasks without a waiting request, or all; no task begins any more. */
void tasks_stop(struct tasks *tasks, bool all);
/* About once a second: resumes requests whose timeout for the end of a task is over. */
void tasks_beat(struct tasks *tasks, uint64_t now_us);
/* Waits until none runs, or until a time of the boot clock. Returns: whether none runs. */
bool tasks_wait(struct tasks *tasks, uint64_t until);
/*
 * On a task's thread: waits so long, whether it is cancelled or not. Returns: whether tasks_stop()
 * was called, without waiting.
 */
bool tasks_pause(struct tasks *tasks, uint64_t us);

struct task {
    struct tasks *tasks;
    uint64_t number;
    const char *action; /* static: "indices:data/write/delete/byquery" */
    struct slice description;
    struct slice opaque_id; /* X-Opaque-Id; data NULL: none */
    uint64_t start_ms;
    int64_t begun_us; /* monotonic */
    atomic_bool cancelled;
    struct command_waiter waiter; /* of the commands of its work; it leaves when the task is cancelled */
    struct arena arena;

    /* The work; runs on the task's thread, and leaves its outcome in `result` or `problem`. */
    void (*run)(struct task *task);
    void (*free)(void *context); /* once it has run */
    void *context;
    struct request *request; /* the request that waits for it; NULL: none. Gone once `run` has answered it */

    bool waited_for; /* by a request */

    /* Guarded by the tasks' lock: */
    struct list link;
    pthread_cond_t wake;        /* of its thread */
    double requests_per_second; /* INFINITY: not throttled */
    struct slice status;        /* JSON, as far as it has come; in mem */
    bool done;
    int64_t ended_us;    /* monotonic; 0: it runs */
    struct slice result; /* JSON; in mem */
    struct slice error;  /* JSON; in mem */
    unsigned watchers;   /* requests that wait for its end */
    struct list script_link;       /* while it waits to run a script */
    uint64_t script_turn_until_us; /* by the boot clock: before it, the task runs scripts ahead of those that wait */
};

/*
 * A search at work on a worker, which is shown among the tasks and can be cancelled there. In the
 * request's arena; all zero: not begun.
 */
struct task_work {
    struct request *request; /* request->cancelled is set to cancel it */
    uint64_t number;
    const char *action; /* static */
    struct slice description;
    struct slice opaque_id; /* data NULL: none */
    uint64_t start_ms;
    int64_t begun_us; /* monotonic */
    struct list link; /* guarded by the tasks' lock */
};

/* `description` is the request's. Ensures: task_work_end() must follow before the request is settled. */
void task_work_begin(struct request *request, struct task_work *work, const char *action, struct slice description);
void task_work_end(struct task_work *work);

/* Makes a task; the caller fills it in and starts it. */
struct task *task_new(struct tasks *tasks, struct request *request, const char *action);

/*
 * Starts the thread. A request that waits is settled by it.
 * Returns: 0; REQUEST_REFUSED with *ret_problem where too many run; TL_ERR_IO. The task is the tasks' from
 * then on, or gone.
 */
int task_start(struct task *task, struct arena *arena, struct problem *ret_problem) TL_MUST_USE;

/* For the task's own thread: publishes its progress. */
void task_set_status(struct task *task, struct slice json);
/* Leaves the result or the error of a task without a waiting request, which ends then. */
void task_set_result(struct task *task, struct slice json);
void task_set_error(struct task *task, struct slice json);
/*
 * For the task's own thread, around one run of a script, whose memory only --script-memory limits: as many run at the
 * same time as there are workers, and the others wait, first come, first served. A task has a turn of some ms for
 * many runs, so that one document after another takes no switch of threads. It has no place between two runs, so it
 * may wait for anything there.
 * Returns: false: the account has ended, by a flag or its deadline, before there was a place.
 */
bool task_script_begin(struct task *task, struct account *account) TL_MUST_USE;
/* Requires: task_script_begin() returned true; the memory of the run is free. */
void task_script_end(struct task *task);
/* Ends the task's turn: it runs no script for some time. */
void task_script_yield(struct task *task);
/* Sleeps `us` or until it is cancelled or rethrottled. Returns: microseconds slept. */
uint64_t task_sleep(struct task *task, uint64_t us);
double task_requests_per_second(struct task *task);

/* Ends a task that was never started. */
void task_discard(struct task *task);
/* Writes what .tasks keeps of a task: {"completed":true,"task":{…},member:json}. */
void task_write_record(struct json_writer *writer, struct task *task, const char *member, struct slice json);

/* The parameter requests_per_second; absent: *ret_rate stays. Returns: 0, REQUEST_REFUSED. */
int task_read_rate(struct request *request, double *ret_rate) TL_MUST_USE;

/* "node:number" */
struct slice task_id(const struct api *api, uint64_t number, struct arena *arena);

#endif
