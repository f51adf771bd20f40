/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation. These functions never return NULL: when memory is exhausted, the process logs that
 * and aborts, as it does after a failed sync. No acknowledged write is lost thereby.
 *
 * All memory that clients can make the server hold is limited (budget.h), so this happens only when
 * the host has less memory than the limits assume.
 */
#ifndef TL_BASE_ALLOC_H
#define TL_BASE_ALLOC_H

#include <stddef.h>

#include "base/slice.h"

/*
 * Returns: `size` bytes (at least one); those of mem_zalloc are zero.
 * Owns: the caller; mem_free.
 */
void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_zalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_realloc(void *pointer, size_t size) __attribute__((returns_nonnull));
void *mem_dup(const void *bytes, size_t size) __attribute__((malloc, returns_nonnull));
/* Returns: a copy of the bytes, followed by a NUL. */
char *mem_strdup(const char *bytes, size_t len) __attribute__((malloc, returns_nonnull));
/* NULL is permitted. */
void mem_free(void *pointer);
/* Returns: a copy of a slice, followed by a NUL, also of an absent one. Owns: the caller; mem_free_slice(). */
static inline struct slice mem_dup_slice(struct slice bytes)
{
    return slice_make(mem_strdup(bytes.data, bytes.len), bytes.len);
}
/* Frees the bytes of a slice that owns them, and makes it absent. */
static inline void mem_free_slice(struct slice *bytes)
{
    mem_free((char *)(uintptr_t)bytes->data);
    *bytes = SLICE_NONE;
}

/*
 * Each thread counts its allocations itself and adds them to the total when they exceed
 * MEM_UNCOUNTED_MAX bytes, so that counting costs an addition.
 */
enum { MEM_UNCOUNTED_MAX = 64 * 1024 };
/* Returns: bytes allocated by the process, as rounded by malloc(), without the uncounted ones. */
size_t mem_used(void);
/* Adds the calling thread's uncounted bytes to the total. A thread calls it before it ends. */
void mem_thread_end(void);

/*
 * Scope-bound release: `tl_cleanup(thing_freep) struct thing *t = NULL;`; tl_steal(t) passes it on.
 */
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
