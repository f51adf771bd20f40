/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Substring search in linear time of both texts, charged to the run.
 *
 * The two-way algorithm of Crochemore and Perrin: the part is split by its critical factorization; the right side is
 * compared from left to right, then the left one from right to left. A mismatch shifts the part by
 * its known period. It allocates nothing and finds every occurrence, including overlapping ones.
 *
 *     struct text_search search;
 *     text_search_init(&search, run, text, part, 0);
 *     while ((at = text_search_next(&search)) >= 0) …
 */
#ifndef TL_SCRIPT_TEXT_SEARCH_H
#define TL_SCRIPT_TEXT_SEARCH_H

#include "script/value/text.h"

struct text_search {
    struct run *run;
    const struct text *text, *part;
    bool back;       /* search backwards: occurrences in descending order */
    bool periodic;   /* the whole part repeats itself every `period` units */
    int64_t cut;     /* the last unit of the left side */
    int64_t period;  /* how far to move after a match of the right side */
    int64_t at;      /* where the part is tried next, from the end that the search begins at */
    int64_t matched; /* of a periodic part: the last unit of the left side that is known to match at `at`; -1: none */
};

/* Occurrences at or after `from`. */
void text_search_init(struct text_search *search, struct run *run, const struct text *text, const struct text *part,
                      int64_t from);
/* Occurrences at or before `from`, the last first. */
void text_search_init_back(struct text_search *search, struct run *run, const struct text *text,
                           const struct text *part, int64_t from);
/* Returns: the next occurrence, or -1. Charges the units read (run_work). */
int64_t text_search_next(struct text_search *search);

/*
 * Java's indexOf and lastIndexOf: the first occurrence at or after `from`, the last at or before
 * it; or -1.
 */
int64_t text_index(struct run *run, const struct text *text, const struct text *part, int64_t from);
int64_t text_last_index(struct run *run, const struct text *text, const struct text *part, int64_t from);

#endif
