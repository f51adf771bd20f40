/* SPDX-License-Identifier: Apache-2.0 */
/* The representation of a term pattern. For src/query only; the functions are in bound_query.h. */
#ifndef TL_QUERY_TERM_PATTERN_H
#define TL_QUERY_TERM_PATTERN_H

#include "base/check.h"
#include "query/bound_query.h"

struct regexp;

struct term_pattern {
    struct slice text;
    bool case_insensitive;
    bool transpositions;         /* fuzzy */
    unsigned edits;              /* fuzzy */
    unsigned prefix_length;      /* fuzzy, in characters */
    const struct regexp *regexp; /* compiled; NULL: not a regular expression */
};

/*
 * Returns: the code point at *at, past which *at is advanced. A byte that is not valid UTF-8 counts as one
 *          character. Requires: *at < text.len.
 */
static inline uint32_t term_pattern__next_code_point(struct slice text, size_t *at)
{
    REQUIRE(*at < text.len);
    const unsigned char *s = (const unsigned char *)text.data + *at;
    size_t left = text.len - *at;
    size_t len = s[0] < 0x80                 ? 1
                 : s[0] >= 0xf0 && left >= 4 ? 4
                 : s[0] >= 0xe0 && left >= 3 ? 3
                 : s[0] >= 0xc0 && left >= 2 ? 2
                                             : 1;
    *at += len;
    if (len == 1)
        return s[0];
    uint32_t point = s[0] & (0x7f >> len);
    for (size_t i = 1; i < len; i++)
        point = point << 6 | (s[i] & 0x3f);
    return point;
}

/* Returns: the lower-case letter of an ASCII capital if case does not matter; any other code point unchanged. */
static inline uint32_t term_pattern__fold(uint32_t point, bool case_insensitive)
{
    return case_insensitive && point >= 'A' && point <= 'Z' ? point + 32 : point;
}

#endif
