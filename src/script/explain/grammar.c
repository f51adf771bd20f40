/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the text of rules to states; see grammar.h.
 *
 * Every item becomes a piece: the state to enter it by, and the one to leave it by, whose `next` is still
 * open; so pieces join by one assignment.
 */
#include "script/explain/grammar.h"

#include "base/check.h"

struct piece {
    uint16_t enter;
    uint16_t leave;
};

struct builder {
    struct grammar *grammar;
    const char *at; /* in the rule's text */
};

static struct piece build_alternatives(struct builder *builder);

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

static void skip_spaces(struct builder *builder)
{
    while (*builder->at == ' ')
        builder->at++;
}

static bool accept(struct builder *builder, char c)
{
    skip_spaces(builder);
    if (*builder->at != c)
        return false;
    builder->at++;
    return true;
}

/* A word in quotes keeps them; a name ends before the first character that belongs to the notation. */
static struct slice take_name(struct builder *builder)
{
    const char *start = builder->at;
    if (*start == '\'') {
        builder->at = strchr(start + 1, '\'') + 1;
    } else {
        builder->at += strcspn(start, " ()|?*+");
    }
    return slice_make(start, (size_t)(builder->at - start));
}

static struct piece build_name(struct builder *builder)
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
    return (struct piece){state, state};
}

/* Wraps what came before a ?, * or +. */
static struct piece build_repeated(struct grammar *grammar, struct piece body, bool optional, bool repeats)
{
    uint16_t option = state_new(grammar, GRAMMAR_OPTION), leave = state_new(grammar, GRAMMAR_PASS);
    add_choice(grammar, option, body.enter);
    add_choice(grammar, option, leave);
    grammar->states[body.leave].next = repeats ? option : leave;
    return (struct piece){optional ? option : body.enter, leave};
}

static struct piece build_item(struct builder *builder)
{
    struct piece piece;
    if (accept(builder, '(')) {
        piece = build_alternatives(builder);
        bool closed = accept(builder, ')');
        INSIST(closed);
    } else {
        piece = build_name(builder);
    }
    switch (*builder->at) {
    case '?':
    case '*':
    case '+':
        piece = build_repeated(builder->grammar, piece, *builder->at != '+', *builder->at != '?');
        builder->at++;
        return piece;
    default: return piece;
    }
}

static struct piece build_sequence(struct builder *builder)
{
    skip_spaces(builder);
    struct piece whole = build_item(builder);
    for (skip_spaces(builder); *builder->at != '\0' && strchr("|)", *builder->at) == NULL; skip_spaces(builder)) {
        struct piece item = build_item(builder);
        builder->grammar->states[whole.leave].next = item.enter;
        whole.leave = item.leave;
    }
    return whole;
}

/* Alternatives that are a single word each. Returns: whether these are; if not, nothing is taken. */
static bool take_words(struct builder *builder, struct grammar_set *ret_set)
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
    } while (word < language->word_count && accept(builder, '|'));
    if (word < language->word_count && (*builder->at == ')' || *builder->at == '\0'))
        return true;
    builder->at = start;
    return false;
}

static struct piece build_words(struct grammar *grammar, const struct grammar_set *set)
{
    uint16_t match = state_new(grammar, GRAMMAR_MATCH);
    grammar->states[match].set = *set;
    return (struct piece){match, match};
}

static struct piece build_alternatives(struct builder *builder)
{
    struct grammar *grammar = builder->grammar;
    struct grammar_set set;
    if (take_words(builder, &set))
        return build_words(grammar, &set);
    struct piece first = build_sequence(builder);
    if (!accept(builder, '|'))
        return first;
    uint16_t choice = state_new(grammar, GRAMMAR_CHOICE), leave = state_new(grammar, GRAMMAR_PASS);
    add_choice(grammar, choice, first.enter);
    grammar->states[first.leave].next = leave;
    do {
        struct piece next = build_sequence(builder);
        add_choice(grammar, choice, next.enter);
        grammar->states[next.leave].next = leave;
    } while (accept(builder, '|'));
    return (struct piece){choice, leave};
}

struct grammar *grammar_new(struct arena *arena, const struct grammar_language *language)
{
    REQUIRE(language->word_count <= GRAMMAR_WORDS_MAX && language->rule_count <= GRAMMAR_RULES_MAX);
    struct grammar *grammar = arena_zalloc(arena, sizeof *grammar);
    grammar->language = language;
    for (unsigned i = 0; i < language->rule_count; i++) {
        struct builder builder = {.grammar = grammar, .at = language->rules[i].body};
        struct piece body = build_alternatives(&builder);
        INSIST(*builder.at == '\0');
        grammar->states[body.leave].next = state_new(grammar, GRAMMAR_STOP);
        grammar->starts[i] = body.enter;
    }
    return grammar;
}
