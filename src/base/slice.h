/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices: a pointer and a length; a slice does not own its bytes.
 *
 * The bytes may contain NUL and need not end with one. An empty slice may have a NULL pointer;
 * where a header says so, `data == NULL` means "absent".
 */
#ifndef TL_BASE_SLICE_H
#define TL_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct slice {
    const char *data;
    size_t len;
};

#define SLICE_NONE ((struct slice){NULL, 0})
#define SLICE_LIT(literal) ((struct slice){"" literal, sizeof(literal) - 1})
/* Arguments for "%.*s" of printf(). */
#define SLICE_ARG(s) (int)(s).len, ((s).data ? (s).data : "")

static inline struct slice slice_make(const void *data, size_t len)
{
    return (struct slice){data, len};
}

static inline struct slice slice_from(const char *text)
{
    return (struct slice){text, text ? strlen(text) : 0};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool slice_is(struct slice a, const char *text)
{
    return slice_equal(a, slice_from(text));
}

/* Returns: whether a byte is one of the characters of `set`. Not so the byte 0, which strchr() finds at their end. */
static inline bool byte_is_one_of(char byte, const char *set)
{
    return byte != '\0' && strchr(set, byte) != NULL;
}

/* As slice_is(), with ASCII letters of either case. */
static inline bool slice_is_ignoring_case(struct slice a, const char *text)
{
    return a.len == strlen(text) && (a.len == 0 || strncasecmp(a.data, text, a.len) == 0);
}

/* Returns: whether the text is one of `words`, a list that ends with NULL. */
static inline bool slice_is_any(struct slice a, const char *const *words)
{
    for (; *words != NULL; words++)
        if (slice_is(a, *words))
            return true;
    return false;
}

static inline bool slice_starts_with(struct slice a, struct slice prefix)
{
    return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.data, prefix.data, prefix.len) == 0);
}

/* Returns: the length of the longest common prefix. */
static inline size_t slice_common_prefix(struct slice a, struct slice b)
{
    enum { BLOCK = 64 };
    size_t most = a.len < b.len ? a.len : b.len, len = 0;
    while (len + BLOCK <= most && memcmp(a.data + len, b.data + len, BLOCK) == 0)
        len += BLOCK;
    while (len < most && a.data[len] == b.data[len])
        len++;
    return len;
}

/* Compares bytewise; a prefix precedes longer strings. Returns: <0, 0, >0. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* slice_compare() of two `struct slice` for qsort() and bsearch(). */
static inline int slice_order(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Returns: the part of `a` from `offset` on; empty beyond its end. */
static inline struct slice slice_from_offset(struct slice a, size_t offset)
{
    return offset >= a.len ? (struct slice){a.data ? a.data + a.len : NULL, 0}
                           : (struct slice){a.data + offset, a.len - offset};
}

/* Removes `byte` from the front of the text. Returns: whether it was there. */
static inline bool slice_take_byte(struct slice *text, char byte)
{
    if (text->len == 0 || text->data[0] != byte)
        return false;
    text->data++;
    text->len--;
    return true;
}

/* Returns: the text without blanks and control characters at both ends, as Java's String.trim(). */
static inline struct slice slice_trim(struct slice text)
{
    while (text.len > 0 && (unsigned char)text.data[0] <= ' ')
        text = slice_from_offset(text, 1);
    while (text.len > 0 && (unsigned char)text.data[text.len - 1] <= ' ')
        text.len--;
    return text;
}

/* Returns: the offset of the first `byte`; a.len: none. */
static inline size_t slice_find_byte(struct slice a, char byte)
{
    const char *hit = a.len == 0 ? NULL : memchr(a.data, byte, a.len);
    return hit == NULL ? a.len : (size_t)(hit - a.data);
}

/* Parses a decimal number. Returns: false when empty, not only digits, or out of range. */
bool slice_to_u64(struct slice text, uint64_t *ret_value);

/* As slice_to_u64(), with an optional sign. */
bool slice_to_i64(struct slice text, int64_t *ret_value);

/*
 * Parses a decimal number such as "-1.5", "3.", ".5", "1e-3", of at most 1200 bytes. Unlike
 * strtod() it rejects "NaN", "inf", "0x1p3" and numbers beyond the range of a double. Returns:
 * whether it is valid.
 */
bool slice_to_double(struct slice text, double *ret_value);

/* Returns: the length of the longest prefix that is valid UTF-8 (RFC 3629); text.len: all of it. */
size_t slice_utf8_valid_prefix(struct slice text);

/*
 * Returns: a hash that is equal on all hosts and in all runs, for hashes that are stored or
 * compared between processes. It does not resist chosen collisions; siphash.h does.
 */
uint64_t slice_hash(struct slice bytes);
/*
 * Returns: slice_hash() of both, one after the other, which need not be joined for it. Requires: head.len is a multiple
 * of 8.
 */
uint64_t slice_hash_joined(struct slice head, struct slice rest);

#endif
