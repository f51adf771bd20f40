/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas: memory that is released all at once.
 *
 * Three lifetimes in this program are arenas, always passed as a parameter: a command's, a request's and
 * a view's. An arena grows by chunks, keeps its first chunk over a reset, and never gives single
 * allocations back. Not for use from two threads at once.
 */
#ifndef TL_BASE_ARENA_H
#define TL_BASE_ARENA_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"

struct arena_chunk;
struct budget_guard;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    char *next;                 /* free bytes of the newest chunk */
    char *end;
    size_t used; /* bytes handed out since the last reset, padding included */
    struct budget_guard
        *guard; /* is told when it grows by much, and may note that this is too much (budget.h); NULL: none */
};

/* An arena with no memory yet; allocates at first use. */
#define ARENA_INIT ((struct arena){NULL, NULL, NULL, 0, NULL})

void arena_deinit(struct arena *arena);

/*
 * Sees to it that the next `size` bytes come from one chunk, which is made no larger than that. For many arenas of about
 * the same use, where doubling would leave half of each empty.
 */
void arena_reserve(struct arena *arena, size_t size);

/* Forgets all allocations and the guard; keeps one chunk of at most 256 KiB for the next use. */
void arena_reset(struct arena *arena);

/* Returns: the bytes that it holds of the allocator, used or not. */
size_t arena_held(const struct arena *arena);

/* A place to go back to: what is allocated from here on is given back by arena_rewind(). */
struct arena_mark {
    struct arena_chunk *chunks;
    char *next;
    size_t used;
};
struct arena_mark arena_mark(const struct arena *arena);
/* Requires: the arena was not reset since the mark was taken. */
void arena_rewind(struct arena *arena, struct arena_mark mark);

/* Returns: `size` bytes aligned for any object. They live until reset or deinit. */
void *arena_alloc(struct arena *arena, size_t size) __attribute__((returns_nonnull));
void *arena_zalloc(struct arena *arena, size_t size) __attribute__((returns_nonnull));

/* A copy in the arena, with a NUL behind it that the length does not count. */
struct slice arena_copy(struct arena *arena, struct slice bytes);

/* Formatted text in the arena, with a NUL behind it. */
struct slice arena_printf(struct arena *arena, const char *format, ...) TL_PRINTF(2, 3);
struct slice arena_vprintf(struct arena *arena, const char *format, __builtin_va_list arguments);

/*
 * What was allocated last, made larger where it lies if it can be, else moved: for what grows large, whose former places
 * would be lost. Pointers into the old place are not valid any more.
 */
void *arena_regrow(struct arena *arena, void *old, size_t old_size, size_t size) __attribute__((returns_nonnull));

/*
 * A text with more at its end; for texts that are put together piece by piece, which so cost what they are long. Where nothing
 * was allocated since `text` it grows in place, and what it was is not valid any more. SLICE_NONE begins one.
 * Requires: `text` is none, or what a function of the arena made.
 */
struct slice arena_append(struct arena *arena, struct slice text, const char *format, ...) TL_PRINTF(3, 4);
struct slice arena_vappend(struct arena *arena, struct slice text, const char *format, __builtin_va_list arguments);

/* Grows an array of `size`-byte elements to hold count + 1; doubles. For `items = arena_grow(...)`. */
void *arena_grow(struct arena *arena, void *items, size_t count, size_t *capacity, size_t size);

#endif
