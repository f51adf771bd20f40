/* SPDX-License-Identifier: Apache-2.0 */
/* Phrase matching in a document's text. For src/query only. */
#ifndef TL_QUERY_PHRASE_H
#define TL_QUERY_PHRASE_H

#include "query/bound_query.h"

/* Fills the sorted `words` of a BOUND_PHRASE. Requires: its tokens are set. */
void phrase_bind(struct bound_query *matcher, struct arena *arena);

/*
 * Counts the occurrences of a phrase in the field of the document. It takes time proportional to
 * the text, times the logarithm of the number of distinct words; candidate positions are those of
 * the rarest word.
 *
 * Returns: the phrase frequency, 0 if the phrase does not occur; with slop an occurrence whose
 * words are moved by a distance counts 1 / (1 + distance). *ret_length is the number of tokens of
 * the field.
 */
float phrase_frequency(const struct bound_query *matcher, struct match_doc *match_doc, size_t *ret_length);

#endif
