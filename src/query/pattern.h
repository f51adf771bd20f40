/* SPDX-License-Identifier: Apache-2.0 */
/* What a pattern is made of. For src/query only; the functions are in matcher.h. */
#ifndef TL_QUERY_PATTERN_H
#define TL_QUERY_PATTERN_H

#include "query/matcher.h"

struct regexp;

struct pattern {
    struct slice text;
    bool case_insensitive;
    bool transpositions;    /* fuzzy */
    unsigned edits;         /* fuzzy */
    unsigned prefix_length; /* fuzzy, in characters */
    const struct regexp *regexp;
};

/* Returns: the code point at *at < text.len, and moves behind it. */
uint32_t pattern__point(struct slice text, size_t *at);

#endif
