/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the program; see thread.h. */
#include "base/thread.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"

/* The thread names itself: a detached one may have ended when pthread_create() returns. */
static void run_named(const char *name, void (*function)(void *context), void *context)
{
    (void)pthread_setname_np(pthread_self(), name);
    function(context);
    mem_thread_end();
}

static void *run_joined(void *context)
{
    const struct thread *thread = context;
    run_named(thread->name, thread->function, thread->context);
    return NULL;
}

/* Owns: the structure, which no other thread knows. */
static void *run_detached(void *context)
{
    struct thread thread = *(const struct thread *)context;
    mem_free(context);
    run_named(thread.name, thread.function, thread.context);
    return NULL;
}

int thread_start(struct thread *thread, const char *name, void (*function)(void *context), void *context)
{
    REQUIRE(!thread->runs && strlen(name) <= THREAD_NAME_MAX);
    thread->name = name;
    thread->function = function;
    thread->context = context;
    int error = pthread_create(&thread->id, NULL, run_joined, thread);
    errno = error;
    thread->runs = error == 0;
    return error == 0 ? 0 : TL_ERR_IO;
}

void thread_join(struct thread *thread)
{
    if (!thread->runs)
        return;
    int error = pthread_join(thread->id, NULL);
    INSIST(error == 0);
    thread->runs = false;
}

int thread_start_detached(const char *name, void (*function)(void *context), void *context)
{
    REQUIRE(strlen(name) <= THREAD_NAME_MAX);
    struct thread *thread = mem_zalloc(sizeof *thread);
    *thread = (struct thread){.name = name, .function = function, .context = context};
    pthread_attr_t attributes;
    pthread_t id;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&id, &attributes, run_detached, thread);
    pthread_attr_destroy(&attributes);
    if (error != 0)
        mem_free(thread);
    errno = error;
    return error == 0 ? 0 : TL_ERR_IO;
}
