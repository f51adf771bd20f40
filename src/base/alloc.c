/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation; see alloc.h. */
#include "base/alloc.h"

#include "base/log.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic ptrdiff_t counted;         /* bytes of all threads; a thread may free memory of another */
static _Thread_local ptrdiff_t uncounted; /* of this thread; negative after frees */

static inline void count(ptrdiff_t bytes)
{
    uncounted += bytes;
    if (uncounted >= MEM_UNCOUNTED_MAX || uncounted <= -MEM_UNCOUNTED_MAX)
        mem_thread_end();
}

void mem_thread_end(void)
{
    atomic_fetch_add_explicit(&counted, uncounted, memory_order_relaxed);
    uncounted = 0;
}

size_t mem_used(void)
{
    ptrdiff_t bytes = atomic_load_explicit(&counted, memory_order_relaxed);
    return bytes > 0 ? (size_t)bytes : 0;
}

/* Returns: the usable size of an allocation; 0 for NULL. */
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

/*
 * malloc() takes a small block from the thread's cache, of which calloc() of glibc 2.36 takes none: that is several
 * times as slow for the records of locks and requests. A large block may be new memory of the kernel's, which calloc()
 * does not set.
 */
enum { ZEROED_BY_CALLOC_MIN = 1024 };

void *mem_zalloc(size_t size)
{
    if (size < ZEROED_BY_CALLOC_MIN)
        return memset(mem_alloc(size), 0, size);
    void *pointer = calloc(1, size);
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
