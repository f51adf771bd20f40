/* SPDX-License-Identifier: Apache-2.0 */
/* Slices; see slice.h. */
#include "base/slice.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"

/* The exact decimal expansion of any double fits. */
enum { NUMBER_BYTES_MAX = 1200 };

bool slice_to_u64(struct slice text, uint64_t *ret_value)
{
    uint64_t value = 0;
    if (text.len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)((unsigned char)text.data[i] - '0');
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}

bool slice_to_i64(struct slice text, int64_t *ret_value)
{
    bool negative = text.len > 0 && text.data[0] == '-';
    bool sign = negative || (text.len > 0 && text.data[0] == '+');
    uint64_t magnitude;
    if (!slice_to_u64(sign ? slice_from_offset(text, 1) : text, &magnitude))
        return false;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *ret_value = negative ? (int64_t)((uint64_t)0 - magnitude) : (int64_t)magnitude;
    return true;
}

static size_t digits_at(struct slice text, size_t at)
{
    size_t count = 0;
    while (at + count < text.len && text.data[at + count] >= '0' && text.data[at + count] <= '9')
        count++;
    return count;
}

static bool is_decimal(struct slice text)
{
    size_t at = text.len > 0 && (text.data[0] == '-' || text.data[0] == '+');
    size_t whole = digits_at(text, at), fraction = 0;
    at += whole;
    if (at < text.len && text.data[at] == '.')
        at += 1 + (fraction = digits_at(text, at + 1));
    if (whole + fraction == 0)
        return false;
    if (at < text.len && (text.data[at] | 0x20) == 'e') {
        at += 1 + (at + 1 < text.len && (text.data[at + 1] == '-' || text.data[at + 1] == '+'));
        size_t exponent = digits_at(text, at);
        at = exponent > 0 ? at + exponent : text.len + 1;
    }
    return at == text.len;
}

bool slice_to_double(struct slice text, double *ret_value)
{
    char copy[NUMBER_BYTES_MAX + 1];
    if (text.len > NUMBER_BYTES_MAX || !is_decimal(text))
        return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    double value = strtod(copy, NULL);
    if (!isfinite(value))
        return false;
    *ret_value = value;
    return true;
}

static bool is_continuation(struct slice text, size_t at, unsigned char low, unsigned char high)
{
    if (at >= text.len)
        return false;
    unsigned char c = (unsigned char)text.data[at];
    return c >= low && c <= high;
}

/* Returns: the length of the character at `at`; 0: not valid UTF-8 (Unicode, table 3-7). */
static size_t utf8_length(struct slice text, size_t at)
{
    unsigned char c = (unsigned char)text.data[at];
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c <= 0xdf)
        return is_continuation(text, at + 1, 0x80, 0xbf) ? 2 : 0;
    if (c >= 0xe0 && c <= 0xef) {
        unsigned char low = c == 0xe0 ? 0xa0 : 0x80;
        unsigned char high = c == 0xed ? 0x9f : 0xbf;
        return is_continuation(text, at + 1, low, high) && is_continuation(text, at + 2, 0x80, 0xbf) ? 3 : 0;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        unsigned char low = c == 0xf0 ? 0x90 : 0x80;
        unsigned char high = c == 0xf4 ? 0x8f : 0xbf;
        return is_continuation(text, at + 1, low, high) && is_continuation(text, at + 2, 0x80, 0xbf) &&
                       is_continuation(text, at + 3, 0x80, 0xbf)
                   ? 4
                   : 0;
    }
    return 0;
}

size_t slice_utf8_valid_prefix(struct slice text)
{
    size_t at = 0;
    while (at < text.len) {
        size_t len = utf8_length(text, at);
        if (len == 0)
            break;
        at += len;
    }
    return at;
}

static uint64_t fold_hash(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9ddfea08eb382d69u;
    return hash ^ hash >> 32;
}

/* Folds all whole words. Returns: the hash; *ret_at: the position after them. */
static uint64_t fold_words(uint64_t hash, struct slice bytes, size_t *ret_at)
{
    uint64_t word;
    size_t at = 0;
    for (; at + sizeof word <= bytes.len; at += sizeof word) {
        memcpy(&word, bytes.data + at, sizeof word);
        hash = fold_hash(hash, word);
    }
    *ret_at = at;
    return hash;
}

uint64_t slice_hash_joined(struct slice head, struct slice rest)
{
    REQUIRE(head.len % sizeof(uint64_t) == 0);
    uint64_t hash = fold_hash(0xcbf29ce484222325u, head.len + rest.len), word = 0;
    size_t at;
    hash = fold_words(hash, head, &at);
    hash = fold_words(hash, rest, &at);
    if (at < rest.len)
        memcpy(&word, rest.data + at, rest.len - at);
    return fold_hash(fold_hash(hash, word), 0);
}

uint64_t slice_hash(struct slice bytes)
{
    return slice_hash_joined(SLICE_NONE, bytes);
}
