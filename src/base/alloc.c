/* SPDX-License-Identifier: Apache-2.0 */
/* Memory; see alloc.h. */
#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(size_t size)
{
    fprintf(stderr, "tidelock: out of memory (asked for %zu bytes)\n", size);
    fflush(stderr);
    abort();
}

void *mem_alloc(size_t size)
{
    void *pointer = malloc(size ? size : 1);
    if (pointer == NULL)
        out_of_memory(size);
    return pointer;
}

void *mem_zalloc(size_t size)
{
    void *pointer = calloc(1, size ? size : 1);
    if (pointer == NULL)
        out_of_memory(size);
    return pointer;
}

void *mem_realloc(void *pointer, size_t size)
{
    void *grown = realloc(pointer, size ? size : 1);
    if (grown == NULL)
        out_of_memory(size);
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
    free(pointer);
}
