/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A grammar as a graph of states, built from rules in a notation of our own.
 *
 * It reproduces the syntax errors of a parser that was generated from such rules
 * (explain_painless.c). The wording of an error depends on the alternative that the parser had
 * chosen before the offending token.
 *
 * The notation has rule names, words of the language (`struct grammar_language` lists them) and ( a
 * | b ). An item may be followed by ? (optional), * (zero or more) or + (one or more). A group or
 * rule that only chooses between words becomes one match.
 */
#ifndef TL_SCRIPT_GRAMMAR_H
#define TL_SCRIPT_GRAMMAR_H

#include "base/arena.h"

#define GRAMMAR_WORDS_MAX 128u
#define GRAMMAR_STATES_MAX 512u
#define GRAMMAR_RULES_MAX 64u
#define GRAMMAR_CHOICES_MAX 16u

struct grammar_set {
    uint64_t bits[GRAMMAR_WORDS_MAX / 64];
};

struct grammar_rule {
    const char *name;
    const char *body;
};

struct grammar_language {
    const struct grammar_rule *rules; /* the first rule is the start rule */
    unsigned rule_count;
    const char *const *words; /* in the order in which error messages list them */
    unsigned word_count;
};

enum grammar_kind {
    GRAMMAR_STOP,   /* the end of a rule */
    GRAMMAR_PASS,   /* continues at `next` */
    GRAMMAR_MATCH,  /* takes a word of `set`, continues at `next` */
    GRAMMAR_CALL,   /* runs `rule`, continues at `next` */
    GRAMMAR_CHOICE, /* takes one of `choices` */
    GRAMMAR_OPTION, /* choices[0] enters the item, choices[1] skips it */
};

struct grammar_state {
    enum grammar_kind kind;
    uint16_t next;
    uint16_t rule;
    uint16_t choice_count;
    uint16_t choices[GRAMMAR_CHOICES_MAX];
    struct grammar_set set;
};

struct grammar {
    const struct grammar_language *language;
    struct grammar_state states[GRAMMAR_STATES_MAX];
    uint16_t count;
    uint16_t starts[GRAMMAR_RULES_MAX];
};

static inline bool grammar_set_has(const struct grammar_set *set, unsigned word)
{
    return (set->bits[word / 64] >> word % 64 & 1) != 0;
}

static inline void grammar_set_add(struct grammar_set *set, unsigned word)
{
    set->bits[word / 64] |= (uint64_t)1 << word % 64;
}

/* Builds the graph of a language, in the arena. Requires: rules that follow the notation and fit
   the limits above. Returns: the graph. */
struct grammar *grammar_new(struct arena *arena, const struct grammar_language *language);

/* Returns: the number of a word; word_count if the language does not have it. */
unsigned grammar_word(const struct grammar_language *language, struct slice word);

#endif
