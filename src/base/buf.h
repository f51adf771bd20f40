/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: bytes that grow at the end, up to a maximum given at the start.
 *
 * A write past the maximum sets `overflow`, is dropped, and so is everything after it: the writer checks
 * once, at the end.
 */
#ifndef TL_BASE_BUF_H
#define TL_BASE_BUF_H

#include "base/alloc.h"
#include "base/error.h"
#include "base/slice.h"

struct budget_guard;

struct buf {
    char *data; /* NULL until the first write */
    size_t len;
    size_t capacity;
    size_t max; /* bytes; len never passes it */
    bool overflow;
    struct budget_guard
        *guard; /* is asked before it grows by much, and may say no as `max` does; NULL: none (budget.h) */
};

#define BUF_INIT(max_bytes) ((struct buf){NULL, 0, 0, (max_bytes), false, NULL})
#define BUF_UNLIMITED ((size_t)1 << 40)

void buf_deinit(struct buf *buf);

static inline void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->overflow = false;
}

/* Makes room for `more` bytes. Returns: where they go, or NULL on overflow; buf_commit() says how many were put there. */
char *buf_reserve(struct buf *buf, size_t more);
/* Requires: buf_reserve() has made room for as many since the last change. */
void buf_commit(struct buf *buf, size_t count);

void buf_append(struct buf *buf, const void *bytes, size_t len);
void buf_printf(struct buf *buf, const char *format, ...) TL_PRINTF(2, 3);
void buf_u64(struct buf *buf, uint64_t value);
void buf_i64(struct buf *buf, int64_t value);

static inline void buf_slice(struct buf *buf, struct slice bytes)
{
    buf_append(buf, bytes.data, bytes.len);
}

static inline void buf_byte(struct buf *buf, char byte)
{
    buf_append(buf, &byte, 1);
}

#define buf_lit(buf, literal) buf_append((buf), "" literal, sizeof(literal) - 1)

/*
 * A JSON string with its quotes: escapes ", \ and control characters as Elasticsearch does; a byte that is no UTF-8 becomes
 * U+FFFD, so that what a client sent never makes a reply that is no JSON.
 */
void buf_json_string(struct buf *buf, struct slice text);

/*
 * A client's text within a line of ours, so that it stays one line that no terminal obeys: control characters, those that turn the
 * direction of writing or take no room, and C1 are written as `ls -b` does (\n, \033), a \ as two.
 */
void buf_escape_line(struct buf *buf, struct slice text);

/* Returns: the bytes of the character at `at`; *ret_harmless whether it can be shown as it is. */
size_t buf_glyph(struct slice text, size_t at, bool *ret_harmless);

static inline struct slice buf_as_slice(const struct buf *buf)
{
    return (struct slice){buf->data, buf->len};
}

/*
 * Changes to bytes that have been written. After an overflow they do nothing, since those bytes may be missing: callers need not
 * check before the end. Positions must be those of bytes in the buffer otherwise.
 */
/* Drops all bytes from position `len` on; after an overflow too. A shorter buffer stays as it is. */
void buf_truncate(struct buf *buf, size_t len);
/* Drops the last `count` bytes. */
void buf_chop(struct buf *buf, size_t count);
/* Inserts `bytes` at position `at`; the bytes from there on move up. */
void buf_insert(struct buf *buf, size_t at, struct slice bytes);
/* Removes `len` bytes at position `at`; the bytes after them move down. */
void buf_remove(struct buf *buf, size_t at, size_t len);
/* Replaces `len` bytes at position `at`. */
void buf_overwrite(struct buf *buf, size_t at, const void *bytes, size_t len);
/* Adds one to the last byte. Requires: there is one, below 0xff. */
void buf_increment_last(struct buf *buf);
/* Returns: the bytes from position `at` on; none after an overflow. Valid until the next change. */
struct slice buf_from(const struct buf *buf, size_t at);

/* Takes the bytes out, with a NUL behind them. Owns: the caller; mem_free. The buffer is empty after. */
char *buf_detach(struct buf *buf, size_t *ret_len);

/*
 * Fixed-width and variable-width integers. Big-endian ones sort as the numbers do; a varint takes one
 * byte for each seven bits.
 */
void buf_u32be(struct buf *buf, uint32_t value);
void buf_u64be(struct buf *buf, uint64_t value);
void buf_varint(struct buf *buf, uint64_t value);

/* Reads from the front of *bytes and moves it on. Returns: false, *bytes untouched, when too short. */
bool slice_take_u32be(struct slice *bytes, uint32_t *ret_value);
bool slice_take_u64be(struct slice *bytes, uint64_t *ret_value);
bool slice_take_varint(struct slice *bytes, uint64_t *ret_value);
bool slice_take(struct slice *bytes, size_t len, struct slice *ret_taken);

#endif
