/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the analysis module share. */
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
    /* of TOKENIZER_PATH */
    char delimiter;
    char replacement;
    bool reverse;
    size_t skip;
};

enum token_filter_kind {
    FILTER_LOWERCASE,
    FILTER_UPPERCASE,
    FILTER_ASCIIFOLDING,
    FILTER_TRIM,
    FILTER_STOP,
    FILTER_LENGTH,
    FILTER_REVERSE,
    FILTER_TRUNCATE,
    FILTER_NONE, /* `standard`, which does nothing */
};

struct token_filter {
    enum token_filter_kind kind;
    const struct slice *stopwords; /* of FILTER_STOP */
    size_t stopword_count;
    bool ignore_case;
    size_t min, max; /* characters: FILTER_LENGTH, FILTER_TRUNCATE */
};

struct analyzer {
    struct slice name;
    struct tokenizer tokenizer;
    struct token_filter filters[ANALYSIS_FILTERS_MAX];
    size_t filter_count;
};

extern const struct slice analysis__english_stopwords[];
extern const size_t analysis__english_stopword_count;

/*
 * How many of an analyzer's filters its tokenizer applies itself, since it can do so to the whole text: the pieces of a path are
 * together as long as its square.
 */
size_t tokenizer__applied_filters(const struct analyzer *analyzer);
/* Cuts a text into tokens, changed by those filters. Returns: false where the visit stopped it. */
bool tokenizer__run(const struct analyzer *analyzer, struct slice text, struct arena *arena, analysis_visit *visit,
                    void *context);
/* Changes a token. Returns: false where it is dropped. */
bool token_filter__run(const struct token_filter *filter, struct slice *token, struct arena *arena);
/* Whether it changes each character by itself: then it may be given a whole text as well as its parts. */
bool token_filter__is_by_character(const struct token_filter *filter);

/* Takes one code point off the front; a byte that begins none stands for itself. */
uint32_t utf8__take(struct slice *text);
void utf8__put(struct buf *buf, uint32_t point);
size_t utf8__count(struct slice text);
bool utf8__is_ascii(struct slice text);
/* The first `count` characters. */
struct slice utf8__head(struct slice text, size_t count);

#endif
