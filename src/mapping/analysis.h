/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Analyzers: from a text to its tokens.
 *
 * Built in: standard, simple, whitespace, keyword and stop. An index's settings may put more together from
 * tokenizers and filters (README.md, "Analysis"). There is no stemming.
 */
#ifndef TL_MAPPING_ANALYSIS_H
#define TL_MAPPING_ANALYSIS_H

#include "base/arena.h"
#include "base/error.h"
#include "json/json.h"

#define ANALYSIS_PATH_BYTES_MAX ((size_t)32766) /* of a token of path_hierarchy: of a term of Lucene */
#define ANALYSIS_TOKEN_CHARACTERS_MAX 255       /* max_token_length of the standard tokenizer: longer ones are split */

enum {
    ANALYSIS_REFUSED = 1, /* settings nobody can follow: the problem says which */
};

struct analyzer;
struct analysis; /* the analyzers of one index */

/* Called with each token in order. Positions count from 0; offsets are bytes. Returns: false to stop. */
struct analysis_token {
    struct slice text; /* lives until the analysis ends, in its arena or in the input */
    uint32_t position;
    uint32_t start;
    uint32_t end;
};
typedef bool analysis_visit(void *context, const struct analysis_token *token);

/*
 * Reads `analysis` of index settings (the value of "analysis", NULL: none). Lives in `arena`; uses `scratch`
 * for problems.
 */
int analysis_new(struct arena *arena, yyjson_val *settings, struct arena *scratch, struct analysis **ret_analysis,
                 struct problem *ret_problem) TL_MUST_USE;

/* Returns: an analyzer by name, the index's own first, or NULL; `analysis` may be NULL. */
const struct analyzer *analysis_find(const struct analysis *analysis, struct slice name);
const struct analyzer *analysis_find_normalizer(const struct analysis *analysis, struct slice name);
struct slice analyzer_name(const struct analyzer *analyzer);
/* Returns: whether it splits by path_hierarchy; then its delimiter. */
bool analyzer_is_path(const struct analyzer *analyzer, char *ret_delimiter);

/* Returns: whether it splits at the breaks between words, so that numbers and ideographs are told from words. */
bool analyzer_is_standard(const struct analyzer *analyzer);
/* Returns: whether a text is one token to it, be it empty. */
bool analyzer_is_single_token(const struct analyzer *analyzer);
/* Returns: whether a text begins with an ideograph. */
bool analysis_is_ideograph(struct slice text);

/* Runs an analyzer. Tokens that need memory get it from `arena`. */
void analyzer_run(const struct analyzer *analyzer, struct slice text, struct arena *arena, analysis_visit *visit,
                  void *context);
/* Runs a normalizer: one text to one text. */
struct slice analyzer_normalize(const struct analyzer *normalizer, struct slice text, struct arena *arena);

#endif
