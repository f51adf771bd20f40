/* SPDX-License-Identifier: Apache-2.0 */
/* Memory; see alloc.h. */
#include "base/alloc.h"

#include "base/log.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic ptrdiff_t told; /* of all threads; a thread may free what another was given */
static _Thread_local ptrdiff_t untold;

static inline void count(ptrdiff_t bytes)
{
    untold += bytes;
    if (untold >= MEM_UNCOUNTED_MAX || untold <= -MEM_UNCOUNTED_MAX)
        mem_thread_end();
}

void mem_thread_end(void)
{
    atomic_fetch_add_explicit(&told, untold, memory_order_relaxed);
    untold = 0;
}

size_t mem_used(void)
{
    ptrdiff_t bytes = atomic_load_explicit(&told, memory_order_relaxed);
    return bytes > 0 ? (size_t)bytes : 0;
}

/* What the allocator gave for a pointer; NULL has none. */
static inline ptrdiff_t size_of(void *pointer)
{
    return (ptrdiff_t)malloc_usable_size(pointer);
}

static _Noreturn void out_of_memory(size_t size)
{
    char text[100];
    int len = snprintf(text, sizeof text, "tidelock: out of memory (asked for %zu bytes)\n", size);
    log_write_before_abort(text, (size_t)len);
    abort();
}

void *mem_alloc(size_t size)
{
    void *pointer = malloc(size ? size : 1);
    if (pointer == NULL)
        out_of_memory(size);
    count(size_of(pointer));
    return pointer;
}

void *mem_zalloc(size_t size)
{
    void *pointer = calloc(1, size ? size : 1);
    if (pointer == NULL)
        out_of_memory(size);
    count(size_of(pointer));
    return pointer;
}

void *mem_realloc(void *pointer, size_t size)
{
    ptrdiff_t before = size_of(pointer);
    void *grown = realloc(pointer, size ? size : 1);
    if (grown == NULL)
        out_of_memory(size);
    count(size_of(grown) - before);
    return grown;
}

void *mem_dup(const void *bytes, size_t size)
{
    void *copy = mem_alloc(size);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

char *mem_strdup(const char *bytes, size_t len)
{
    char *copy = mem_alloc(len + 1);
    if (len > 0)
        memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

void mem_free(void *pointer)
{
    if (pointer == NULL)
        return;
    count(-size_of(pointer));
    free(pointer);
}
