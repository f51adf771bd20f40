/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas: memory that is released all at once.
 *
 * Three lifetimes in this program are arenas, always passed as a parameter: of a command, of a
 * request and of a read view. An arena grows by chunks, retains one chunk over a reset, and never
 * frees single allocations. It is used by one thread at a time.
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
    char *next;                 /* first free byte of the newest chunk */
    char *end;
    size_t used;                /* bytes allocated since the last reset, padding included */
    struct budget_guard *guard; /* asked before a large chunk is added; records a refusal (budget.h); NULL: none */
};

/* An empty arena; allocates its first chunk on first use. */
#define ARENA_INIT ((struct arena){NULL, NULL, NULL, 0, NULL})

void arena_deinit(struct arena *arena);

/*
 * Ensures that the next `size` bytes come from one chunk. A new chunk is exactly that large. For
 * many arenas of a known size, where doubling would waste half of each.
 */
void arena_reserve(struct arena *arena, size_t size);

/* Frees all allocations and detaches the guard; retains one chunk of at most 256 KiB. */
void arena_reset(struct arena *arena);

/* Returns: the size of all chunks in bytes, used or not. */
size_t arena_held(const struct arena *arena);

/* A position in an arena. arena_rewind() frees all that was allocated after it. */
struct arena_mark {
    struct arena_chunk *chunks;
    char *next;
    size_t used;
};
struct arena_mark arena_mark(const struct arena *arena);
/* Requires: the arena was not reset, or rewound to an earlier mark, since. */
void arena_rewind(struct arena *arena, struct arena_mark mark);

/* Returns: `size` bytes, aligned for any object; valid until reset, deinit or rewind. */
void *arena_alloc(struct arena *arena, size_t size) __attribute__((returns_nonnull));
void *arena_zalloc(struct arena *arena, size_t size) __attribute__((returns_nonnull));

/* Returns: a copy in the arena, followed by a NUL that is not part of its length. */
struct slice arena_copy(struct arena *arena, struct slice bytes);

/* Returns: formatted text in the arena, followed by a NUL that is not part of its length. */
struct slice arena_printf(struct arena *arena, const char *format, ...) TL_PRINTF(2, 3);
struct slice arena_vprintf(struct arena *arena, const char *format, __builtin_va_list arguments);

/*
 * Enlarges an allocation (NULL: makes one). The most recent allocation of the arena grows in place
 * if possible; any other is copied, and its former memory is lost until the reset.
 * Returns: the new address; pointers to the old memory are invalid.
 */
void *arena_regrow(struct arena *arena, void *old, size_t old_size, size_t size) __attribute__((returns_nonnull));

/*
 * Appends formatted text to `text`; SLICE_NONE starts a new text. If `text` is the most recent
 * allocation of the arena it grows in place, so that building a text takes linear time.
 * Assumes: `text` is SLICE_NONE or was returned by a function of this arena.
 * Returns: the longer text, followed by a NUL; `text` is invalid.
 */
struct slice arena_append(struct arena *arena, struct slice text, const char *format, ...) TL_PRINTF(3, 4);
struct slice arena_vappend(struct arena *arena, struct slice text, const char *format, __builtin_va_list arguments);

/*
 * Makes an array of `count` elements of `size` bytes hold one more; doubles its capacity when it is
 * full. For `items = arena_grow(...)`. Returns: the array, possibly moved.
 */
void *arena_grow(struct arena *arena, void *items, size_t count, size_t *capacity, size_t size);

#endif
