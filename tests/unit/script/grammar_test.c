/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painless is described twice: by the parser, and by the grammar that words errors. Sentences are generated from the
 * grammar; most are then corrupted by a few words deleted, inserted, replaced or swapped. Each must be accepted by both
 * or by neither. In SCRIPT_DEFAULT the parser also accepts an empty statement, so there it must accept all that the
 * grammar accepts. (Words are shown for SCRIPT_PAINLESS only.)
 *
 *     GRAMMAR_SENTENCES=1000000 GRAMMAR_SEED=7 script_grammar_test
 */
#include "base/buf.h"
#include "base/rand.h"
#include "script/explain/painless.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SENTENCES = 5000, WORDS_MAX = 400, DEPTH_MAX = 14, FAR = 1000000 };

struct sentence {
    unsigned words[WORDS_MAX];
    unsigned count;
};

static struct grammar *grammar;
static unsigned costs[GRAMMAR_STATES_MAX]; /* words to the end of the state's rule, at the least */
static struct rng rng;
static unsigned taken, refused;

static unsigned word_number(const char *word)
{
    return grammar_word(&painless_language, slice_from(word));
}

static unsigned cost_of(const struct grammar_state *state)
{
    unsigned cost = FAR;
    switch (state->kind) {
    case GRAMMAR_STOP: return 0;
    case GRAMMAR_PASS: return costs[state->next];
    case GRAMMAR_MATCH: return 1 + costs[state->next];
    case GRAMMAR_CALL: return costs[grammar->starts[state->rule]] + costs[state->next];
    case GRAMMAR_CHOICE:
    case GRAMMAR_OPTION:
        for (unsigned i = 0; i < state->choice_count; i++)
            cost = costs[state->choices[i]] < cost ? costs[state->choices[i]] : cost;
        return cost;
    }
    return cost;
}

static void find_costs(void)
{
    bool changed = true;
    for (unsigned i = 0; i < GRAMMAR_STATES_MAX; i++)
        costs[i] = FAR;
    while (changed) {
        changed = false;
        for (unsigned i = 0; i < grammar->count; i++) {
            unsigned cost = cost_of(&grammar->states[i]);
            changed = changed || cost < costs[i];
            costs[i] = cost < costs[i] ? cost : costs[i];
        }
    }
}

/* One of the words that fit; not the end, which is where the sentence is. */
static unsigned any_of(const struct grammar_set *set)
{
    unsigned fitting[GRAMMAR_WORDS_MAX], count = 0;
    for (unsigned i = 1; i < painless_language.word_count; i++)
        if (grammar_set_has(set, i))
            fitting[count++] = i;
    return count == 0 ? 0 : fitting[rng_below(&rng, count)];
}

static uint16_t any_choice(const struct grammar_state *state, unsigned depth, bool full)
{
    uint16_t best = state->choices[rng_below(&rng, state->choice_count)];
    if (!full && depth < DEPTH_MAX)
        return best;
    for (unsigned i = 0; i < state->choice_count; i++)
        best = costs[state->choices[i]] < costs[best] ? state->choices[i] : best;
    return best;
}

static void make_up(struct sentence *sentence, uint16_t at, unsigned depth)
{
    for (;;) {
        const struct grammar_state *state = &grammar->states[at];
        bool full = sentence->count > 40;
        switch (state->kind) {
        case GRAMMAR_STOP: return;
        case GRAMMAR_PASS: at = state->next; break;
        case GRAMMAR_MATCH:
            if (any_of(&state->set) != 0 && sentence->count < WORDS_MAX)
                sentence->words[sentence->count++] = any_of(&state->set);
            at = state->next;
            break;
        case GRAMMAR_CALL:
            make_up(sentence, grammar->starts[state->rule], depth + 1);
            at = state->next;
            break;
        case GRAMMAR_CHOICE:
        case GRAMMAR_OPTION: at = any_choice(state, depth, full); break;
        }
    }
}

static void spoil(struct sentence *sentence)
{
    if (sentence->count == 0)
        return;
    unsigned at = (unsigned)rng_below(&rng, sentence->count), *words = sentence->words;
    unsigned any = 1 + (unsigned)rng_below(&rng, painless_language.word_count - 1);
    if (rng_below(&rng, 4) == 0) /* a statement of another kind */
        any = word_number(rng_below(&rng, 2) == 0 ? "'throw'" : "'do'");
    switch (rng_below(&rng, 5)) {
    case 0: words[at] = any; break;
    case 1:
        memmove(words + at, words + at + 1, (sentence->count - at - 1) * sizeof *words);
        sentence->count--;
        break;
    case 2:
        if (sentence->count == WORDS_MAX)
            break;
        memmove(words + at + 1, words + at, (sentence->count - at) * sizeof *words);
        words[at] = rng_below(&rng, 2) == 0 ? any : words[at];
        sentence->count++;
        break;
    case 3:
        if (at + 1 < sentence->count) {
            unsigned swapped = words[at];
            words[at] = words[at + 1];
            words[at + 1] = swapped;
        }
        break;
    default: sentence->count = rng_below(&rng, 4) == 0 ? at : sentence->count; break;
    }
}

static const char *spelled(unsigned word)
{
    static const struct {
        const char *word;
        const char *texts[4];
    } spellings[] = {
        {"ID", {"a", "b", "List", "x"}},
        {"DOTID", {"a", "b", "size", "x"}},
        {"DOTINTEGER", {"0", "1", "12", "3"}},
        {"PRIMITIVE", {"int", "long", "boolean", "byte"}},
        {"OCTAL", {"017", "01", "00", "07"}},
        {"HEX", {"0x1F", "0xa", "0x0", "0xfL"}},
        {"INTEGER", {"0", "1", "23", "5L"}},
        {"DECIMAL", {"1.5", "0.5", "1e3", "2f"}},
        {"STRING", {"'a'", "\"b\"", "''", "'x y'"}},
        {"REGEX", {"/a/", "/[b]/", "/c/i", "/ /"}},
    };
    const char *name = painless_language.words[word];
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (strcmp(name, spellings[i].word) == 0)
            return spellings[i].texts[rng_below(&rng, 4)];
    return name;
}

/* A space between all words except after a dot. */
static void write_down(const struct sentence *sentence, struct buf *out)
{
    for (unsigned i = 0; i < sentence->count; i++) {
        const char *text = spelled(sentence->words[i]);
        bool quoted = painless_language.words[sentence->words[i]][0] == '\'';
        size_t len = strlen(text);
        buf_printf(out, "%.*s", (int)(quoted ? len - 2 : len), text + quoted);
        if (sentence->words[i] != word_number("'.'") && sentence->words[i] != word_number("'?.'"))
            buf_byte(out, ' ');
    }
}

static void check(struct slice source, bool bare_names)
{
    struct arena arena = ARENA_INIT, scratch = ARENA_INIT;
    struct compiler compiler = {.lang = bare_names ? SCRIPT_DEFAULT : SCRIPT_PAINLESS,
                                .bare_names = bare_names,
                                .arena = &arena,
                                .scratch = &scratch,
                                .source = source};
    lex_painless(&compiler);
    if (!compiler.error.set) {
        bool parses = parse_painless(&compiler) != NULL;
        struct compile_error own = compiler.error; /* the parser's, which is not about grammar: too deep */
        compiler.error = (struct compile_error){.set = false};
        compiler.begun = NULL;
        compiler.begun_later = false;
        bool follows = painless_follows(&compiler);
        if (!own.set && (bare_names ? follows && !parses : parses != follows))
            fail_msg("%s by the parser, %s by the rules: %.*s", parses ? "taken" : "refused",
                     follows ? "taken" : "refused", SLICE_ARG(source));
        taken += parses;
        refused += !parses;
    }
    arena_deinit(&scratch);
    arena_deinit(&arena);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void test_both_take_the_same(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    uint64_t sentences = number_from("GRAMMAR_SENTENCES", SENTENCES);
    rng_init(&rng, number_from("GRAMMAR_SEED", 1));
    grammar = grammar_new(&arena, &painless_language);
    find_costs();
    for (uint64_t i = 0; i < sentences; i++) {
        struct sentence sentence = {.count = 0};
        struct buf source = BUF_INIT(BUF_UNLIMITED);
        make_up(&sentence, grammar->starts[0], 0);
        for (uint64_t k = rng_below(&rng, 4); k > 0; k--)
            spoil(&sentence);
        write_down(&sentence, &source);
        check(buf_as_slice(&source), false);
        check(buf_as_slice(&source), true);
        buf_deinit(&source);
    }
    print_message("%u taken, %u refused by both\n", taken, refused);
    assert_true(taken > sentences / 4 && refused > sentences / 4);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_take_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
