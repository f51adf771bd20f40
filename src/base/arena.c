/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas; see arena.h. */
#include "base/arena.h"

#include "base/budget.h"
#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    CHUNK_BYTES_MIN = 256,
    CHUNK_BYTES_MAX = 256 * 1024, /* a larger allocation gets a chunk of its size */
    ALIGNMENT = _Alignof(max_align_t),
};

struct arena_chunk {
    struct arena_chunk *older;
    size_t bytes; /* size of data */
    _Alignas(max_align_t) char data[];
};

static size_t padded_size(size_t size)
{
    size_t padded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    return padded == 0 ? ALIGNMENT : padded;
}

static void chunk_add(struct arena *arena, size_t size)
{
    if (budget_guard_asks(arena->guard, size))
        (void)budget_guard_take(arena->guard, size); /* a refusal stays in the guard, for the loops of its user */
    struct arena_chunk *chunk = mem_alloc(sizeof *chunk + size);
    chunk->older = arena->chunks;
    chunk->bytes = size;
    arena->chunks = chunk;
    arena->next = chunk->data;
    arena->end = chunk->data + size;
}

/* Adds a chunk of at least `bytes`, twice as large as the previous one, so that there are few. */
static void chunk_grow(struct arena *arena, size_t bytes)
{
    size_t size = arena->chunks ? arena->chunks->bytes * 2 : CHUNK_BYTES_MIN;
    if (size > CHUNK_BYTES_MAX)
        size = CHUNK_BYTES_MAX;
    chunk_add(arena, size < bytes ? bytes : size);
}

void arena_reserve(struct arena *arena, size_t size)
{
    if ((size_t)(arena->end - arena->next) < size)
        chunk_add(arena, size);
}

void arena_deinit(struct arena *arena)
{
    struct arena_chunk *chunk = arena->chunks;
    while (chunk != NULL) {
        struct arena_chunk *older = chunk->older;
        mem_free(chunk);
        chunk = older;
    }
    *arena = ARENA_INIT;
}

void arena_reset(struct arena *arena)
{
    struct arena_chunk *kept = NULL;
    struct arena_chunk *chunk = arena->chunks;
    while (chunk != NULL) {
        struct arena_chunk *older = chunk->older;
        if (kept == NULL && chunk->bytes <= CHUNK_BYTES_MAX)
            kept = chunk;
        else
            mem_free(chunk);
        chunk = older;
    }
    *arena = ARENA_INIT;
    if (kept != NULL) {
        kept->older = NULL;
        arena->chunks = kept;
        arena->next = kept->data;
        arena->end = kept->data + kept->bytes;
    }
}

size_t arena_held(const struct arena *arena)
{
    size_t bytes = 0;
    for (const struct arena_chunk *chunk = arena->chunks; chunk != NULL; chunk = chunk->older)
        bytes += sizeof *chunk + chunk->bytes;
    return bytes;
}

/*
 * Returns: whether chunk_regrow() may move the newest chunk. No mark may point into such a chunk.
 */
static bool is_movable(const struct arena *arena, const void *first)
{
    const struct arena_chunk *chunk = arena->chunks;
    return chunk != NULL && first == chunk->data && chunk->bytes > CHUNK_BYTES_MAX;
}

struct arena_mark arena_mark(const struct arena *arena)
{
    if (is_movable(arena, arena->next)) { /* the chunk is empty: a rewind may free it */
        struct arena_chunk *older = arena->chunks->older;
        return (struct arena_mark){older, older == NULL ? NULL : older->data + older->bytes, arena->used};
    }
    return (struct arena_mark){arena->chunks, arena->next, arena->used};
}

void arena_rewind(struct arena *arena, struct arena_mark mark)
{
    while (arena->chunks != mark.chunks) {
        struct arena_chunk *chunk = arena->chunks;
        REQUIRE(chunk != NULL);
        arena->chunks = chunk->older;
        mem_free(chunk);
    }
    arena->next = mark.next;
    arena->end = mark.chunks == NULL ? NULL : mark.chunks->data + mark.chunks->bytes;
    arena->used = mark.used;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    REQUIRE(size < ((size_t)1 << 48));
    size_t padded = padded_size(size);
    if ((size_t)(arena->end - arena->next) < padded)
        chunk_grow(arena, padded);
    void *pointer = arena->next;
    arena->next += padded;
    arena->used += padded;
    return pointer;
}

void *arena_zalloc(struct arena *arena, size_t size)
{
    return memset(arena_alloc(arena, size), 0, size);
}

struct slice arena_copy(struct arena *arena, struct slice bytes)
{
    char *copy = arena_alloc(arena, bytes.len + 1);
    if (bytes.len > 0)
        memcpy(copy, bytes.data, bytes.len);
    copy[bytes.len] = '\0';
    return (struct slice){copy, bytes.len};
}

struct slice arena_vprintf(struct arena *arena, const char *format, va_list arguments)
{
    char text[512];
    va_list again;
    va_copy(again, arguments);
    int len = vsnprintf(text, sizeof text, format, arguments);
    INSIST(len >= 0);
    char *copy = arena_alloc(arena, (size_t)len + 1);
    if ((size_t)len < sizeof text)
        memcpy(copy, text, (size_t)len + 1);
    else
        vsnprintf(copy, (size_t)len + 1, format, again);
    va_end(again);
    return (struct slice){copy, (size_t)len};
}

struct slice arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice text = arena_vprintf(arena, format, arguments);
    va_end(arguments);
    return text;
}

/*
 * Enlarges the newest chunk, which holds a single allocation, by at least a quarter. realloc()
 * moves the pages of a large chunk instead of copying bytes.
 */
static void *chunk_regrow(struct arena *arena, size_t old_padded, size_t padded)
{
    size_t before = arena->chunks->bytes, bytes = before + before / 4;
    if (bytes < padded)
        bytes = padded;
    if (arena->guard != NULL)
        (void)budget_guard_take(arena->guard, bytes - before);
    struct arena_chunk *chunk = mem_realloc(arena->chunks, sizeof *chunk + bytes);
    chunk->bytes = bytes;
    arena->chunks = chunk;
    arena->next = chunk->data + padded;
    arena->end = chunk->data + bytes;
    arena->used += padded - old_padded;
    return chunk->data;
}

void *arena_regrow(struct arena *arena, void *old, size_t old_size, size_t size)
{
    REQUIRE(size >= old_size && size < ((size_t)1 << 48));
    size_t old_padded = padded_size(old_size), padded = padded_size(size);
    if (old != NULL && arena->next == (char *)old + old_padded) {
        if ((size_t)(arena->end - (char *)old) >= padded) {
            arena->next = (char *)old + padded;
            arena->used += padded - old_padded;
            return old;
        }
        if (is_movable(arena, old))
            return chunk_regrow(arena, old_padded, padded);
    }
    void *moved = arena_alloc(arena, size);
    if (old_size > 0)
        memcpy(moved, old, old_size);
    return moved;
}

struct slice arena_vappend(struct arena *arena, struct slice text, const char *format, va_list arguments)
{
    char text_buf[512];
    va_list again;
    va_copy(again, arguments);
    int len = vsnprintf(text_buf, sizeof text_buf, format, arguments);
    INSIST(len >= 0);
    size_t whole = text.len + (size_t)len;
    char *to = text.data == NULL ? arena_alloc(arena, whole + 1)
                                 : arena_regrow(arena, (void *)(uintptr_t)text.data, text.len + 1, whole + 1);
    if ((size_t)len < sizeof text_buf)
        memcpy(to + text.len, text_buf, (size_t)len + 1);
    else
        vsnprintf(to + text.len, (size_t)len + 1, format, again);
    va_end(again);
    return (struct slice){to, whole};
}

struct slice arena_append(struct arena *arena, struct slice text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice longer = arena_vappend(arena, text, format, arguments);
    va_end(arguments);
    return longer;
}

void *arena_grow(struct arena *arena, void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    size_t grown = *capacity ? *capacity * 2 : 8;
    void *moved = arena_alloc(arena, grown * size);
    if (count > 0)
        memcpy(moved, items, count * size);
    *capacity = grown;
    return moved;
}
