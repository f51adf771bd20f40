/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookahead in a grammar, as an ALL(*) parser does it (ANTLR 4): selects the alternative to take,
 * or finds the word where none fits.
 *
 * All alternatives are followed word by word until one is left. An alternative that does not accept
 * a word is dropped. If a word leaves none, the first alternative that could have ended before the
 * word is taken; otherwise the word is the error.
 *
 * One case needs no lookahead: an optional item whose first words differ from the words that may
 * follow it. There, a first word of neither kind skips the item.
 */
#ifndef TL_SCRIPT_PREDICT_H
#define TL_SCRIPT_PREDICT_H

#include "script/explain/grammar.h"

/* Returns: the number of the text's word at `at`; the language's word_count for characters that
   form no word. */
typedef unsigned predict_word(void *user, size_t at);

struct predictor {
    const struct grammar *grammar;
    predict_word *word;
    void *user;
    size_t word_count; /* of the text; the last one is its end, which may be read repeatedly */
    uint64_t steps_left;
};

enum predict_outcome {
    PREDICT_NONE = 1, /* no alternative fits */
    PREDICT_UNKNOWN,  /* characters that form no word */
    PREDICT_TOO_LONG, /* steps_left reached 0 */
};

/*
 * Selects an alternative of `state`; `at` is the next word.
 * Requires: `state` is a choice or an option.
 * Returns: 0 with *ret_choice; PREDICT_NONE with *ret_at, the first word that fits no alternative;
 * PREDICT_UNKNOWN; PREDICT_TOO_LONG.
 */
TL_MUST_USE int predict(struct predictor *predictor, uint16_t state, size_t at, unsigned *ret_choice, size_t *ret_at);

#endif
