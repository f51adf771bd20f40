/* SPDX-License-Identifier: Apache-2.0 */
/* The native stack; see stack.h. */
#include "base/stack.h"

#include <pthread.h>

#include "base/check.h"

_Thread_local uintptr_t stack__floor;

void stack__learn(void)
{
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t size = 0, guard = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstack(&attributes, &lowest, &size);
        (void)pthread_attr_getguardsize(&attributes, &guard);
        pthread_attr_destroy(&attributes);
    }
    /* In a small stack, half of it is the reserve. */
    size_t reserve = size / 2 < STACK_RESERVE_BYTES ? size / 2 : STACK_RESERVE_BYTES;
    stack__floor = size == 0 ? 1 : (uintptr_t)lowest + guard + reserve;
}

void stack_prepare(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    int r = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    INSIST(r == 0);
    (void)pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

struct stack_call {
    int (*function)(void *context);
    void *context;
    int result;
};

static void *call_main(void *context)
{
    struct stack_call *call = context;
    call->result = call->function(call->context);
    return NULL;
}

int stack_run(int (*function)(void *context), void *context)
{
    struct stack_call call = {function, context, -1};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    int r = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (r == 0)
        r = pthread_create(&thread, &attributes, call_main, &call);
    pthread_attr_destroy(&attributes);
    if (r != 0)
        return -1;
    pthread_join(thread, NULL);
    return call.result;
}
