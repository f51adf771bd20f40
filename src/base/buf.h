/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers: byte strings that grow at the end, up to a maximum.
 *
 * A write beyond the maximum sets `overflow` and is discarded, as are all later writes. So a writer
 * checks for overflow once, at the end.
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
    size_t max; /* in bytes; len <= max */
    bool overflow;
    struct budget_guard *guard; /* asked before large growth; a refusal is an overflow (budget.h); NULL: none */
};

#define BUF_INIT(max_bytes) ((struct buf){NULL, 0, 0, (max_bytes), false, NULL})
#define BUF_UNLIMITED ((size_t)1 << 40)

/* Frees the bytes; the buffer is empty afterwards, with the same maximum and guard. */
void buf_deinit(struct buf *buf);

/* Empties the buffer and clears `overflow`; retains its memory. */
static inline void buf_clear(struct buf *buf)
{
    buf->len = 0;
    buf->overflow = false;
}

/*
 * Reserves capacity for `more` bytes after the end, to be written by the caller and then appended
 * by buf_commit(). Returns: the address of the first; NULL on overflow.
 */
char *buf_reserve(struct buf *buf, size_t more);
/*
 * Appends `count` bytes written into reserved capacity.
 * Requires: buf_reserve() has reserved at least as many since the last change.
 */
void buf_commit(struct buf *buf, size_t count);

void buf_append(struct buf *buf, const void *bytes, size_t len);
void buf_printf(struct buf *buf, const char *format, ...) TL_PRINTF(2, 3);
/* Appends the number in decimal. */
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
 * Appends a JSON string with its quotes. Escapes ", \ and control characters as Elasticsearch does.
 * A byte that is not valid UTF-8 becomes U+FFFD, so that the result is valid JSON for any input.
 */
void buf_json_string(struct buf *buf, struct slice text);

/*
 * Appends a client's text to a line of output. Escapes characters that would break the line or
 * control a terminal, as `ls -b` does (\n, \033): controls including C1, and characters that change
 * the direction of text or have no width. A \ is doubled.
 */
void buf_escape_line(struct buf *buf, struct slice text);

/* Returns: the length of the character at `at`. *ret_harmless: it may be printed unescaped. */
size_t buf_glyph(struct slice text, size_t at, bool *ret_harmless);

/* Returns: the bytes of the buffer; valid until its next change. */
static inline struct slice buf_as_slice(const struct buf *buf)
{
    return (struct slice){buf->data, buf->len};
}

/*
 * Changes to bytes written earlier. After an overflow they have no effect, because those bytes may
 * be missing; so callers check for overflow once, at the end. Otherwise positions must be within
 * the buffer.
 */
/*
 * Removes all bytes from position `len` on, also after an overflow. A shorter buffer is unchanged.
 */
void buf_truncate(struct buf *buf, size_t len);
/* Removes the last `count` bytes. */
void buf_chop(struct buf *buf, size_t count);
/* Inserts `bytes` at position `at`. */
void buf_insert(struct buf *buf, size_t at, struct slice bytes);
/* Removes `len` bytes at position `at`. */
void buf_remove(struct buf *buf, size_t at, size_t len);
/* Replaces `len` bytes at position `at`. */
void buf_overwrite(struct buf *buf, size_t at, const void *bytes, size_t len);
/* Adds one to the last byte. Requires: no overflow; there is a byte, below 0xff. */
void buf_increment_last(struct buf *buf);
/*
 * Returns: the bytes from position `at` on, empty after an overflow; valid until the next change.
 */
struct slice buf_from(const struct buf *buf, size_t at);

/*
 * Detaches the bytes, followed by a NUL; the buffer is empty afterwards and has no guard.
 * Requires: no overflow. Returns: the bytes. Owns: the caller; mem_free.
 */
char *buf_detach(struct buf *buf, size_t *ret_len);

/*
 * Append integers in binary. Big-endian ones sort as the numbers do; a varint (LEB128) takes one
 * byte for each seven bits.
 */
void buf_u32be(struct buf *buf, uint32_t value);
void buf_u64be(struct buf *buf, uint64_t value);
void buf_varint(struct buf *buf, uint64_t value);

/*
 * Read from the front of *bytes and advance it. Return false, with *bytes unchanged, when it is too
 * short, or the varint exceeds 64 bits.
 */
bool slice_take_u32be(struct slice *bytes, uint32_t *ret_value);
bool slice_take_u64be(struct slice *bytes, uint64_t *ret_value);
bool slice_take_varint(struct slice *bytes, uint64_t *ret_value);
bool slice_take(struct slice *bytes, size_t len, struct slice *ret_taken);

#endif
