/* SPDX-License-Identifier: Apache-2.0 */
/* Phrases in a document's text. For src/query only. */
#ifndef TL_QUERY_PHRASE_H
#define TL_QUERY_PHRASE_H

#include "query/bound_query.h"

/* Sorts the words of a BOUND_PHRASE, after its tokens were set. */
void phrase_bind(struct bound_query *matcher, struct arena *arena);

/*
 * Finds the words in time proportional to the text, times the logarithm of the number of words, and counts from the rarest of them.
 *
 * Returns: how often the phrase of a BOUND_PHRASE stands in the field of the document, 0 for not at all; with slop a place where
 *          words are moved by a distance counts 1 / (1 + distance) times.
 *          *ret_length is the number of the field's tokens.
 */
float phrase_frequency(const struct bound_query *matcher, struct match_doc *match_doc, size_t *ret_length);

#endif
