/* SPDX-License-Identifier: Apache-2.0 */
/* The representation of a term pattern. For src/query only; the functions are in bound_query.h. */
#ifndef TL_QUERY_TERM_PATTERN_H
#define TL_QUERY_TERM_PATTERN_H

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

/* Decodes the code point at *at and advances *at past it. Requires: *at < text.len. */
uint32_t term_pattern__next_code_point(struct slice text, size_t *at);

#endif
