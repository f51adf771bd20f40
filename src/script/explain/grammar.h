/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A grammar as a graph of states, made from rules in a notation of their own.
 *
 * It serves to say why a text does not parse (explain_painless.c), in the words of a parser that was
 * generated from such rules: those words tell which alternative it had chosen when it met the token that does
 * not fit.
 *
 * The notation: names of rules; words of the language, as `struct grammar_language` lists them; ( a | b );
 * behind an item ? (once or not), * (any times), + (once or more). A group or rule that only chooses between
 * words is one match.
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
    const struct grammar_rule *rules; /* the first one is the whole text */
    unsigned rule_count;
    const char *const *words; /* in the order in which sets are shown */
    unsigned word_count;
};

enum grammar_kind {
    GRAMMAR_STOP,   /* the rule ends */
    GRAMMAR_PASS,   /* to `next` */
    GRAMMAR_MATCH,  /* a word of `set`, then `next` */
    GRAMMAR_CALL,   /* `rule`, then `next` */
    GRAMMAR_CHOICE, /* one of `choices` */
    GRAMMAR_OPTION, /* the first of two `choices`, or past it: the second */
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

/* Returns: the graph, in the arena. Requires: rules that follow the notation and fit the limits. */
struct grammar *grammar_new(struct arena *arena, const struct grammar_language *language);

/* Returns: the number of a word, word_count for none. */
unsigned grammar_word(const struct grammar_language *language, struct slice word);

#endif
