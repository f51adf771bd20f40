/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of the program.
 *
 *  1. Each has a name, which `ps -L`, `top -H`, gdb and perf show.
 *  2. A thread that is joined has a `struct thread`, zeroed before it is started, so that an object
 *     whose construction failed joins those of its threads that run.
 *  3. The bytes that a thread allocated are in the total when it has ended (mem_thread_end()).
 *  4. Signals: a thread inherits the mask of the thread that starts it.
 *
 * stack_run() alone starts a thread otherwise: it determines the size of the stack.
 */
#ifndef TL_BASE_THREAD_H
#define TL_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

enum { THREAD_NAME_MAX = 15 }; /* Linux's TASK_COMM_LEN, without the NUL */

/* A thread that is joined. Zeroed: none runs. */
struct thread {
    pthread_t id;
    bool runs; /* started and not yet joined */
    const char *name;
    void (*function)(void *context);
    void *context;
};

/*
 * Starts a thread that calls `function`.
 * Requires: !thread->runs; `name` is a string literal of at most THREAD_NAME_MAX bytes; *thread keeps
 * its address until thread_join().
 * Returns: 0; TL_ERR_IO: the system has no further thread, with errno set; nothing is logged.
 */
int thread_start(struct thread *thread, const char *name, void (*function)(void *context), void *context) TL_MUST_USE;

/*
 * Waits until the thread has ended. Has no effect if none runs.
 * Requires: the caller is not the thread itself, and has made it end.
 * Ensures: !thread->runs.
 */
void thread_join(struct thread *thread);

/*
 * Starts a thread that no thread joins: the process may end before it.
 * Requires: `name` as in thread_start().
 * Returns: as thread_start().
 */
int thread_start_detached(const char *name, void (*function)(void *context), void *context) TL_MUST_USE;

#endif
