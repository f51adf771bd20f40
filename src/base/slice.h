/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices: a pointer and a length over bytes that someone else owns.
 *
 * Bytes may hold NUL and need not end in one. An empty slice may have a NULL pointer; `data == NULL` also
 * serves as "absent" where a header says so.
 */
#ifndef TL_BASE_SLICE_H
#define TL_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const char *data;
    size_t len;
};

#define SLICE_NONE ((struct slice){NULL, 0})
#define SLICE_LIT(literal) ((struct slice){"" literal, sizeof(literal) - 1})
/* For printf's "%.*s". */
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

static inline bool slice_starts_with(struct slice a, struct slice prefix)
{
    return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.data, prefix.data, prefix.len) == 0);
}

/* Bytewise order, a prefix before what it begins. Returns: <0, 0, >0. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* The rest of `a` from `offset` on, empty past the end. */
static inline struct slice slice_from_offset(struct slice a, size_t offset)
{
    return offset >= a.len ? (struct slice){a.data ? a.data + a.len : NULL, 0}
                           : (struct slice){a.data + offset, a.len - offset};
}

/* Takes `byte` off the front of the text. Returns: whether it was there. */
static inline bool slice_take_byte(struct slice *text, char byte)
{
    if (text->len == 0 || text->data[0] != byte)
        return false;
    text->data++;
    text->len--;
    return true;
}

/* Returns: the offset of the first `byte`, or a.len where there is none. */
static inline size_t slice_find_byte(struct slice a, char byte)
{
    const char *hit = a.len == 0 ? NULL : memchr(a.data, byte, a.len);
    return hit == NULL ? a.len : (size_t)(hit - a.data);
}

/* Returns: true and the whole as a number when every byte is a digit and it fits; else false. */
bool slice_to_u64(struct slice text, uint64_t *ret_value);

/* The same with an optional sign. */
bool slice_to_i64(struct slice text, int64_t *ret_value);

/*
 * Returns: true when the whole is a finite number in decimal ("-1.5", "3.", ".5", "1e-3") that a double can be near, and not
 * "NaN", "inf" or "0x1p3", which strtod() takes, too.
 */
bool slice_to_double(struct slice text, double *ret_value);

/* Returns: the length of the valid UTF-8 prefix; text.len when all of it is valid (RFC 3629). */
size_t slice_utf8_valid_prefix(struct slice text);

/* Eight bytes at a time; stable across runs, for tables and digests, not against adversaries. */
uint64_t slice_hash(struct slice bytes); /* the same everywhere: for what is stored, or compared between processes; others: siphash.h */

#endif
