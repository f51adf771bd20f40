/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking ahead in a grammar: which alternative a generated parser takes, and where it finds that none fits.
 *
 * All alternatives are followed word by word until one is left. Those that fit no further fall out; when all
 * have, the first one that could have ended before that word is taken, and without one the word is the place
 * of the error. Words that may begin either a repeated item or what follows it need such a look; where they
 * tell at once, a word of neither kind leaves the loop.
 */
#ifndef TL_SCRIPT_PREDICT_H
#define TL_SCRIPT_PREDICT_H

#include "script/explain/grammar.h"

/* The number of the text's word at `at`; the language's word_count for characters that make none. */
typedef unsigned predict_word(void *user, size_t at);

struct predictor {
    const struct grammar *grammar;
    predict_word *word;
    void *user;
    size_t word_count; /* of the text; the last one is its end, which may be met any number of times */
    uint64_t steps_left;
};

enum predict_outcome {
    PREDICT_NONE = 1, /* no alternative fits */
    PREDICT_UNKNOWN,  /* a character that makes no word was met */
    PREDICT_TOO_LONG, /* steps_left is used up */
};

/*
 * Chooses at `state` with `at` as the next word.
 * Requires: a choice or an option.
 * Returns: 0 with *ret_choice; PREDICT_NONE with *ret_at, the word; PREDICT_UNKNOWN, PREDICT_TOO_LONG.
 */
TL_MUST_USE int predict(struct predictor *predictor, uint16_t state, size_t at, unsigned *ret_choice, size_t *ret_at);

#endif
