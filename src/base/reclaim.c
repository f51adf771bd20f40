/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that frees what takes long to free; see reclaim.h. */
#include "base/reclaim.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/thread.h"

struct reclaimed {
    struct reclaimed *next;
    void *object;
    void (*free_object)(void *object);
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;          /* something was handed over, or the reclaimer ends */
    bool takes;                      /* it runs, and does not end */
    struct reclaimed *first, **last; /* in the order in which they were handed over; `last` NULL: none */
    struct thread thread;
} reclaimer = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Waits for objects, and takes all. Returns: the first one; NULL: the reclaimer ends, and none are left. */
static struct reclaimed *take_handed_over(void)
{
    pthread_mutex_lock(&reclaimer.lock);
    while (reclaimer.first == NULL && reclaimer.takes)
        pthread_cond_wait(&reclaimer.changed, &reclaimer.lock);
    struct reclaimed *first = reclaimer.first;
    reclaimer.first = NULL;
    reclaimer.last = NULL;
    pthread_mutex_unlock(&reclaimer.lock);
    return first;
}

static void reclaimer_main(void *unused)
{
    (void)unused;
    struct reclaimed *each;
    while ((each = take_handed_over()) != NULL) {
        while (each != NULL) {
            struct reclaimed *next = each->next;
            each->free_object(each->object);
            mem_free(each);
            each = next;
        }
        mem_thread_end(); /* counts all that was freed; it may free nothing more for long */
    }
}

void reclaim(void *object, void (*free_object)(void *object))
{
    REQUIRE(object != NULL && free_object != NULL);
    struct reclaimed *handed = mem_alloc(sizeof *handed);
    *handed = (struct reclaimed){.object = object, .free_object = free_object};
    pthread_mutex_lock(&reclaimer.lock);
    bool takes = reclaimer.takes;
    if (takes) {
        *(reclaimer.last == NULL ? &reclaimer.first : reclaimer.last) = handed;
        reclaimer.last = &handed->next;
        pthread_cond_signal(&reclaimer.changed);
    }
    pthread_mutex_unlock(&reclaimer.lock);
    if (takes)
        return;
    mem_free(handed);
    free_object(object);
}

int reclaim_begin(void)
{
    REQUIRE(!reclaimer.takes && !reclaimer.thread.runs);
    reclaimer.takes = true;
    int r = thread_start(&reclaimer.thread, "reclaimer", reclaimer_main, NULL);
    if (r != 0)
        reclaimer.takes = false;
    return r;
}

void reclaim_end(void)
{
    pthread_mutex_lock(&reclaimer.lock);
    reclaimer.takes = false;
    pthread_cond_signal(&reclaimer.changed);
    pthread_mutex_unlock(&reclaimer.lock);
    thread_join(&reclaimer.thread);
    ENSURE(reclaimer.first == NULL);
}
