/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory.
 *
 * Everything a client can make the server hold has a limit of its own, so running out of memory means the
 * machine or a limit is misjudged: the process says so and ends, as it does after a failed sync. Nothing
 * acknowledged is lost by that. These functions therefore never return NULL.
 */
#ifndef TL_BASE_ALLOC_H
#define TL_BASE_ALLOC_H

#include <stddef.h>

/* Returns: `size` bytes (at least one), zeroed by mem_zalloc. Owns: the caller; mem_free. */
void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_zalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_realloc(void *pointer, size_t size) __attribute__((returns_nonnull));
void *mem_dup(const void *bytes, size_t size) __attribute__((malloc, returns_nonnull));
/* A copy with a NUL behind it. */
char *mem_strdup(const char *bytes, size_t len) __attribute__((malloc, returns_nonnull));
void mem_free(void *pointer);

/*
 * Bytes that are given out now, in the whole process, as the allocator rounds them. Each thread keeps up to MEM_UNCOUNTED_MAX bytes
 * to itself, so that counting costs no more than an addition; one that ends says mem_thread_end() before.
 */
enum { MEM_UNCOUNTED_MAX = 64 * 1024 };
size_t mem_used(void);
void mem_thread_end(void);

/* Scope-bound release: `tl_cleanup(thing_freep) struct thing *t = NULL;`, handed over by tl_steal(t). */
#define tl_cleanup(function) __attribute__((cleanup(function)))
#define tl_steal(pointer)                        \
    __extension__({                              \
        __typeof__(pointer) stolen_ = (pointer); \
        (pointer) = NULL;                        \
        stolen_;                                 \
    })
#define TL_DEFINE_FREEP(type, free_function)            \
    static inline void free_function##p(type **pointer) \
    {                                                   \
        free_function(*pointer);                        \
    }

static inline void mem_freep(void *pointer)
{
    mem_free(*(void **)pointer);
}

#endif
