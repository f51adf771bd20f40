/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers.
 */
#include "api/request/worker.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/mutex.h"
#include "base/thread.h"

enum { THREADS_MAX = WORKERS_MAX + (WORKERS_MAX + 1) / 2 };

struct workers {
    pthread_mutex_t lock;
    struct list queues[WORK_KIND_COUNT]; /* of requests, by `link` */
    pthread_cond_t wakes[WORK_KIND_COUNT];
    unsigned idle[WORK_KIND_COUNT]; /* threads that wait */
    unsigned queued_long;
    bool stopping;
    unsigned count;
    struct thread threads[THREADS_MAX];
};

/* Requires: the lock is held. Returns: the oldest request of a kind; NULL: none is queued. */
static struct request *take_oldest(struct workers *workers, enum work_kind kind)
{
    REQUIRE(mutex_is_held(&workers->lock));
    if (list_empty(&workers->queues[kind]))
        return NULL;
    struct request *request = list_entry(workers->queues[kind].next, struct request, link);
    list_remove(&request->link);
    workers->queued_long -= kind == WORK_LONG;
    return request;
}

/* A thread takes requests of its own kind first; threads of all kinds take short work. */
static struct request *choose_request(struct workers *workers, enum work_kind kind)
{
    struct request *request = take_oldest(workers, kind);
    return request != NULL || kind == WORK_SHORT ? request : take_oldest(workers, WORK_SHORT);
}

/* Takes the next request. Returns: NULL when the queue is empty and the workers end. */
static struct request *workers_take(struct workers *workers, enum work_kind kind)
{
    struct request *request;
    pthread_mutex_lock(&workers->lock);
    workers->idle[kind]++;
    while ((request = choose_request(workers, kind)) == NULL && !workers->stopping)
        pthread_cond_wait(&workers->wakes[kind], &workers->lock);
    workers->idle[kind]--;
    pthread_mutex_unlock(&workers->lock);
    return request;
}

static void take_work(struct workers *workers, enum work_kind kind)
{
    struct request *request;
    while ((request = workers_take(workers, kind)) != NULL) {
        request->on_worker = true;
        request_finish(request, request->next(request));
    }
}

static void long_main(void *context)
{
    take_work(context, WORK_LONG);
}

static void short_main(void *context)
{
    take_work(context, WORK_SHORT);
}

int workers_open(unsigned count, struct workers **ret_workers)
{
    REQUIRE(count >= 1 && count <= WORKERS_MAX);
    struct workers *workers = mem_zalloc(sizeof *workers);
    mutex_init(&workers->lock);
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
        pthread_cond_init(&workers->wakes[kind], NULL);
        list_init(&workers->queues[kind]);
    }
    for (; workers->count < count + (count + 1) / 2; workers->count++) {
        bool is_long = workers->count < count;
        if (thread_start(&workers->threads[workers->count], is_long ? "worker-long" : "worker-short",
                         is_long ? long_main : short_main, workers) != 0) {
            workers_close(workers);
            return TL_ERR_IO;
        }
    }
    *ret_workers = workers;
    return 0;
}

void workers_close(struct workers *workers)
{
    if (workers == NULL)
        return;
    pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
        pthread_cond_broadcast(&workers->wakes[kind]);
    pthread_mutex_unlock(&workers->lock);
    for (unsigned i = 0; i < workers->count; i++)
        thread_join(&workers->threads[i]);
    for (int kind = 0; kind < WORK_KIND_COUNT; kind++)
        pthread_cond_destroy(&workers->wakes[kind]);
    pthread_mutex_destroy(&workers->lock);
    mem_free(workers);
}

void workers_add(struct workers *workers, struct request *request, enum work_kind kind)
{
    pthread_mutex_lock(&workers->lock);
    list_append(&workers->queues[kind], &request->link);
    workers->queued_long += kind == WORK_LONG;
    /* One for short work takes it, unless all of them are at something. */
    pthread_cond_signal(&workers->wakes[kind == WORK_SHORT && workers->idle[WORK_SHORT] == 0 ? WORK_LONG : kind]);
    pthread_mutex_unlock(&workers->lock);
}

bool workers_busy(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    bool busy = workers->idle[WORK_LONG] <= workers->queued_long;
    pthread_mutex_unlock(&workers->lock);
    return busy;
}
