/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds states from the text of rules; see grammar.h.
 *
 * Every item becomes a fragment: a state to enter by, and a state to leave by whose `next` is not
 * set yet. Joining two fragments is one assignment, as in Thompson's construction of an NFA.
 */
#include "script/explain/grammar.h"

#include "base/check.h"

struct grammar_fragment {
    uint16_t enter;
    uint16_t leave;
};

struct grammar_builder {
    struct grammar *grammar;
    const char *at; /* position in the rule's text */
};

static struct grammar_fragment build_alternatives(struct grammar_builder *builder);

static uint16_t state_new(struct grammar *grammar, enum grammar_kind kind)
{
    INSIST(grammar->count < GRAMMAR_STATES_MAX);
    grammar->states[grammar->count].kind = kind;
    return grammar->count++;
}

static void add_choice(struct grammar *grammar, uint16_t state, uint16_t target)
{
    struct grammar_state *choice = &grammar->states[state];
    INSIST(choice->choice_count < GRAMMAR_CHOICES_MAX);
    choice->choices[choice->choice_count++] = target;
}

unsigned grammar_word(const struct grammar_language *language, struct slice word)
{
    for (unsigned i = 0; i < language->word_count; i++)
        if (slice_is(word, language->words[i]))
            return i;
    return language->word_count;
}

static unsigned rule_number(const struct grammar_language *language, struct slice name)
{
    for (unsigned i = 0; i < language->rule_count; i++)
        if (slice_is(name, language->rules[i].name))
            return i;
    return language->rule_count;
}

static void skip_spaces(struct grammar_builder *builder)
{
    while (*builder->at == ' ')
        builder->at++;
}

static bool accept_byte(struct grammar_builder *builder, char c)
{
    skip_spaces(builder);
    if (*builder->at != c)
        return false;
    builder->at++;
    return true;
}

/* Reads a word with its quotes, or a name up to a space or a character of the notation. */
static struct slice take_name(struct grammar_builder *builder)
{
    const char *start = builder->at;
    if (*start == '\'') {
        builder->at = strchr(start + 1, '\'') + 1;
    } else {
        builder->at += strcspn(start, " ()|?*+");
    }
    return slice_make(start, (size_t)(builder->at - start));
}

static struct grammar_fragment build_name(struct grammar_builder *builder)
{
    struct grammar *grammar = builder->grammar;
    struct slice name = take_name(builder);
    unsigned word = grammar_word(grammar->language, name), rule = rule_number(grammar->language, name);
    INSIST(word < grammar->language->word_count || rule < grammar->language->rule_count);
    bool matches = word < grammar->language->word_count;
    uint16_t state = state_new(grammar, matches ? GRAMMAR_MATCH : GRAMMAR_CALL);
    grammar->states[state].rule = (uint16_t)rule;
    if (matches)
        grammar_set_add(&grammar->states[state].set, word);
    return (struct grammar_fragment){state, state};
}

/* Wraps an item that is followed by ?, * or +. */
static struct grammar_fragment build_repeated(struct grammar *grammar, struct grammar_fragment body, bool optional,
                                              bool repeats)
{
    uint16_t option = state_new(grammar, GRAMMAR_OPTION), leave = state_new(grammar, GRAMMAR_PASS);
    add_choice(grammar, option, body.enter);
    add_choice(grammar, option, leave);
    grammar->states[body.leave].next = repeats ? option : leave;
    return (struct grammar_fragment){optional ? option : body.enter, leave};
}

static struct grammar_fragment build_item(struct grammar_builder *builder)
{
    struct grammar_fragment fragment;
    if (accept_byte(builder, '(')) {
        fragment = build_alternatives(builder);
        bool closed = accept_byte(builder, ')');
        INSIST(closed);
    } else {
        fragment = build_name(builder);
    }
    switch (*builder->at) {
    case '?':
    case '*':
    case '+':
        fragment = build_repeated(builder->grammar, fragment, *builder->at != '+', *builder->at != '?');
        builder->at++;
        return fragment;
    default: return fragment;
    }
}

static struct grammar_fragment build_sequence(struct grammar_builder *builder)
{
    skip_spaces(builder);
    struct grammar_fragment whole = build_item(builder);
    for (skip_spaces(builder); *builder->at != '\0' && strchr("|)", *builder->at) == NULL; skip_spaces(builder)) {
        struct grammar_fragment item = build_item(builder);
        builder->grammar->states[whole.leave].next = item.enter;
        whole.leave = item.leave;
    }
    return whole;
}

/* Reads alternatives that are a single word each. Returns: true with their set; false if an
   alternative is anything else, and nothing is consumed. */
static bool take_words(struct grammar_builder *builder, struct grammar_set *ret_set)
{
    const struct grammar_language *language = builder->grammar->language;
    const char *start = builder->at;
    unsigned word;
    *ret_set = (struct grammar_set){{0}};
    do {
        skip_spaces(builder);
        word = grammar_word(language, take_name(builder));
        if (word < language->word_count)
            grammar_set_add(ret_set, word);
    } while (word < language->word_count && accept_byte(builder, '|'));
    if (word < language->word_count && (*builder->at == ')' || *builder->at == '\0'))
        return true;
    builder->at = start;
    return false;
}

static struct grammar_fragment build_alternatives(struct grammar_builder *builder)
{
    struct grammar *grammar = builder->grammar;
    struct grammar_set set;
    if (take_words(builder, &set)) {
        uint16_t match = state_new(grammar, GRAMMAR_MATCH);
        grammar->states[match].set = set;
        return (struct grammar_fragment){match, match};
    }
    struct grammar_fragment first = build_sequence(builder);
    if (!accept_byte(builder, '|'))
        return first;
    uint16_t choice = state_new(grammar, GRAMMAR_CHOICE), leave = state_new(grammar, GRAMMAR_PASS);
    add_choice(grammar, choice, first.enter);
    grammar->states[first.leave].next = leave;
    do {
        struct grammar_fragment next = build_sequence(builder);
        add_choice(grammar, choice, next.enter);
        grammar->states[next.leave].next = leave;
    } while (accept_byte(builder, '|'));
    return (struct grammar_fragment){choice, leave};
}

struct grammar *grammar_new(struct arena *arena, const struct grammar_language *language)
{
    REQUIRE(language->word_count <= GRAMMAR_WORDS_MAX && language->rule_count <= GRAMMAR_RULES_MAX);
    struct grammar *grammar = arena_zalloc(arena, sizeof *grammar);
    grammar->language = language;
    for (unsigned i = 0; i < language->rule_count; i++) {
        struct grammar_builder builder = {.grammar = grammar, .at = language->rules[i].body};
        struct grammar_fragment body = build_alternatives(&builder);
        INSIST(*builder.at == '\0');
        grammar->states[body.leave].next = state_new(grammar, GRAMMAR_STOP);
        grammar->starts[i] = body.enter;
    }
    return grammar;
}
