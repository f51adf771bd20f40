/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean": the names nearest to an unknown one.
 */
#ifndef TL_BASE_SUGGEST_H
#define TL_BASE_SUGGEST_H

#include "base/buf.h"

/* Names longer than this are not compared. */
#define SUGGEST_BYTES_MAX 128

/* Names are proposed whose similarity is above this. */
#define SUGGEST_SIMILARITY_MIN 0.5

/*
 * Returns: 1 - (edit distance / length of the longer), as Lucene's LevenshteinDistance.
 */
double suggest_similarity(struct slice a, struct slice b);

/*
 * Appends " did you mean [a]?" or " did you mean any of [a, b]?", after `lead` (" ->" or ""), with the candidates that
 * are more like `name` than not, best first and then by name; appends nothing if no candidate is.
 */
void suggest_append(struct buf *buf, const char *lead, struct slice name, const struct slice *candidates, size_t count);

#endif
