/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers.
 */
#include "api/request/worker.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/check.h"

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list queue; /* of requests, by `link` */
    bool stopping;
    unsigned count;
    pthread_t threads[WORKERS_MAX];
};

/* Takes the next request. Returns: NULL when there is none left and the workers end. */
static struct request *workers_take(struct workers *workers)
{
    struct request *request = NULL;
    pthread_mutex_lock(&workers->lock);
    while (list_empty(&workers->queue) && !workers->stopping)
        pthread_cond_wait(&workers->wake, &workers->lock);
    if (!list_empty(&workers->queue)) {
        request = list_entry(workers->queue.next, struct request, link);
        list_remove(&request->link);
    }
    pthread_mutex_unlock(&workers->lock);
    return request;
}

static void *workers_main(void *context)
{
    struct request *request;
    while ((request = workers_take(context)) != NULL)
        request_settle(request, request->next(request));
    return NULL;
}

int workers_open(unsigned count, struct workers **ret_workers)
{
    REQUIRE(count >= 1 && count <= WORKERS_MAX);
    struct workers *workers = mem_zalloc(sizeof *workers);
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->wake, NULL);
    list_init(&workers->queue);
    for (; workers->count < count; workers->count++)
        if (pthread_create(&workers->threads[workers->count], NULL, workers_main, workers) != 0) {
            workers_close(workers);
            return TL_ERR_IO;
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
    pthread_cond_broadcast(&workers->wake);
    pthread_mutex_unlock(&workers->lock);
    for (unsigned i = 0; i < workers->count; i++)
        pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->wake);
    pthread_mutex_destroy(&workers->lock);
    mem_free(workers);
}

void workers_add(struct workers *workers, struct request *request)
{
    pthread_mutex_lock(&workers->lock);
    list_append(&workers->queue, &request->link);
    pthread_cond_signal(&workers->wake);
    pthread_mutex_unlock(&workers->lock);
}
