/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the files of the analysis module. */
#ifndef TL_MAPPING_ANALYSIS_INTERNAL_H
#define TL_MAPPING_ANALYSIS_INTERNAL_H

#include "base/buf.h"
#include "mapping/analysis.h"

#define ANALYSIS_FILTERS_MAX 16 /* of one analyzer */
#define ANALYSIS_STOPWORDS_MAX 4096

enum tokenizer_kind {
    TOKENIZER_STANDARD,
    TOKENIZER_LETTER,
    TOKENIZER_WHITESPACE,
    TOKENIZER_KEYWORD,
    TOKENIZER_PATH,
};

struct tokenizer {
    enum tokenizer_kind kind;
    uint32_t token_characters_max; /* standard, letter, whitespace: longer tokens are split */
    /* the rest: TOKENIZER_PATH only */
    char delimiter;
    char replacement;
    bool reverse;
    size_t skip;
};

struct stopwords; /* a set of them, that all uses of a filter share */

enum token_filter_kind {
    FILTER_LOWERCASE,
    FILTER_UPPERCASE,
    FILTER_ASCIIFOLDING,
    FILTER_TRIM,
    FILTER_STOP,
    FILTER_LENGTH,
    FILTER_REVERSE,
    FILTER_TRUNCATE,
    FILTER_NONE, /* `standard`, which changes nothing */
};

struct token_filter {
    enum token_filter_kind kind;
    const struct stopwords *stopwords; /* FILTER_STOP only, as the next one */
    bool ignore_case;
    size_t min, max; /* in characters; FILTER_LENGTH, FILTER_TRUNCATE (max) */
};

struct analyzer {
    struct slice name;
    struct tokenizer tokenizer;
    struct token_filter filters[ANALYSIS_FILTERS_MAX];
    size_t filter_count;
};

/* The built-in stop words. */
extern const struct stopwords analysis__english_stopwords;
/*
 * Returns: the set of the strings of a list, or of one string; empty if `list` is NULL.
 * Requires: a list has at most ANALYSIS_STOPWORDS_MAX items.
 * Owns: `arena`.
 */
const struct stopwords *stopwords__new(struct arena *arena, yyjson_val *list);

/*
 * Returns: the number of leading filters that the tokenizer applies itself, to the whole text.
 *          This avoids a cost quadratic in the length of a path, whose tokens are prefixes of one
 *          another.
 */
size_t tokenizer__applied_filters(const struct analyzer *analyzer);
/*
 * Visits the tokens of `text`, with tokenizer__applied_filters() applied.
 * Returns: false if a visit stopped it.
 */
bool tokenizer__run(const struct analyzer *analyzer, struct slice text, struct arena *arena, analysis_visit *visit,
                    void *context);
/* Applies a filter to a token, in `arena` if changed. Returns: false if the token is dropped. */
bool token_filter__run(const struct token_filter *filter, struct slice *token, struct arena *arena);
/*
 * Returns: whether the filter maps each character independently, so that filtering a text and then
 *          splitting it gives the same tokens as splitting first.
 */
bool token_filter__is_by_character(const struct token_filter *filter);

/*
 * Decodes and removes the first code point of `text`. A byte that begins no sequence is returned as
 * it is.
 * Requires: `text` is not empty.
 */
uint32_t utf8__take(struct slice *text);
/* Appends the UTF-8 encoding of a code point. */
void utf8__put(struct buf *buf, uint32_t point);
/* Returns: the number of characters. */
size_t utf8__count(struct slice text);
bool utf8__is_ascii(struct slice text);
/* Returns: the first `count` characters, or the whole text if it has fewer. */
struct slice utf8__head(struct slice text, size_t count);

#endif
