/* SPDX-License-Identifier: Apache-2.0 */
/* Stops the reclaimer at its first object, to see how much is left to it. */
#ifndef TL_TESTS_LIB_RECLAIM_STOP_H
#define TL_TESTS_LIB_RECLAIM_STOP_H

#include <semaphore.h>

#include "base/alloc.h"
#include "base/reclaim.h"
#include "unit.h"

static sem_t reclaim_stop_released;

static inline void reclaim_stop_wait(void *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

/* Starts the reclaimer: it frees nothing until reclaim_stop_end(). */
static inline void reclaim_stop_begin(void)
{
    assert_int_equal(sem_init(&reclaim_stop_released, 0, 0), 0);
    assert_int_equal(reclaim_begin(), 0);
    reclaim(&reclaim_stop_released, reclaim_stop_wait);
}

/* Ends the reclaimer when it has freed everything. */
static inline void reclaim_stop_end(void)
{
    sem_post(&reclaim_stop_released);
    reclaim_end();
    sem_destroy(&reclaim_stop_released);
}

/* Returns: the bytes in use, with those that the calling thread has not counted yet. */
static inline size_t reclaim_stop_used(void)
{
    mem_thread_end();
    return mem_used();
}

#endif
