/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Analyzers, which split a text into tokens.
 *
 * Built in are standard, simple, whitespace, keyword and stop. The settings of an index may define
 * more from tokenizers and token filters (README.md, "Analysis"). There is no stemming.
 */
#ifndef TL_MAPPING_ANALYSIS_H
#define TL_MAPPING_ANALYSIS_H

#include "base/arena.h"
#include "base/error.h"
#include "json/json.h"

#define ANALYSIS_PATH_BYTES_MAX ((size_t)32766) /* of a path_hierarchy token: Lucene's limit of a term */
#define ANALYSIS_TOKEN_CHARACTERS_MAX 255       /* default max_token_length; longer tokens are split */

enum {
    ANALYSIS_REFUSED = 1, /* invalid or unsupported settings; *ret_problem has the reason */
};

struct analyzer;
struct analysis; /* the analyzers of one index */

struct analysis_token {
    struct slice text; /* in the arena passed to the analysis, or a part of the input */
    uint32_t position; /* from 0 */
    uint32_t start;    /* byte offset in the input */
    uint32_t end;
};
/* Called with each token in order. Returns: false to stop. */
typedef bool analysis_visit(void *context, const struct analysis_token *token);

/*
 * Builds the analyzers defined by `settings`, the value of "analysis" in index settings (NULL:
 * none).
 * Returns: 0; ANALYSIS_REFUSED with *ret_problem, allocated in `scratch`.
 * Owns: everything is allocated in `arena`.
 */
int analysis_new(struct arena *arena, yyjson_val *settings, struct arena *scratch, struct analysis **ret_analysis,
                 struct problem *ret_problem) TL_MUST_USE;

/*
 * Returns: the analyzer of this name, or NULL. The index's own definitions take precedence over the
 *          built-in ones. `analysis` may be NULL.
 */
const struct analyzer *analysis_find(const struct analysis *analysis, struct slice name);
/* Returns: the normalizer of this name, or NULL. `analysis` may be NULL. */
const struct analyzer *analysis_find_normalizer(const struct analysis *analysis, struct slice name);
struct slice analyzer_name(const struct analyzer *analyzer);
/* Returns: the number of filters of an analyzer or normalizer. */
size_t analyzer_filter_count(const struct analyzer *analyzer);
/*
 * Returns: whether the analyzer produces exactly the ancestors of a path and the path itself: it is
 *          path_hierarchy without `reverse`, `skip`, another `replacement` or filters. Sets
 *          *ret_delimiter if so.
 */
bool analyzer_is_path(const struct analyzer *analyzer, char *ret_delimiter);

/*
 * Returns: whether it has the standard tokenizer, so its tokens are words, numbers or ideographs.
 */
bool analyzer_is_standard(const struct analyzer *analyzer);
/* Returns: whether it has the keyword tokenizer, so that a whole text is one token. */
bool analyzer_is_single_token(const struct analyzer *analyzer);
/* Returns: whether a text begins with an ideograph. */
bool analysis_is_ideograph(struct slice text);

/* Visits the tokens of `text` in order. Changed tokens are allocated in `arena`. */
void analyzer_run(const struct analyzer *analyzer, struct slice text, struct arena *arena, analysis_visit *visit,
                  void *context);
/*
 * As analyzer_run(), but bounds the bytes that filters read of the tokens of path_hierarchy, except the first filters
 * if these map each character: together such tokens have the square of the length of the text.
 * Subtracts the bytes read from *left. Returns: false, at the token with which they would exceed it.
 */
bool analyzer_run_bounded(const struct analyzer *analyzer, struct slice text, struct arena *arena, size_t *left,
                          analysis_visit *visit, void *context);
#define ANALYSIS_FILTERED_MAX ((size_t)8 << 20) /* for one document or text: 20 ms */
/* Returns: `text` after the filters of a normalizer, in `arena` if changed. */
struct slice analyzer_normalize(const struct analyzer *normalizer, struct slice text, struct arena *arena);

#endif
