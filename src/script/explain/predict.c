/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking ahead; see predict.h.
 *
 * Each alternative has a run: the set of (state, activation) it may be in. An activation is a rule begun at a
 * word; all who call the rule there share it, so the work grows with the text and not with the ways to read
 * it.
 */
#include "script/explain/predict.h"

#include "base/check.h"

struct activation;

struct caller {
    uint16_t state; /* behind the call */
    struct activation *activation;
    struct caller *next;
};

struct activation {
    struct caller *callers; /* none: the rule of the decision itself */
    size_t stamp;           /* the word at which `seen` counts, from 1 */
    uint64_t seen[GRAMMAR_STATES_MAX / 64];
};

struct item {
    uint16_t state;
    struct activation *activation;
};

struct items {
    struct item *data;
    size_t count;
    size_t capacity;
};

struct run {
    struct items words;   /* waiting for a word */
    struct items pending; /* to be followed up to the next word */
    struct activation *begun[GRAMMAR_RULES_MAX];
    size_t begun_stamp[GRAMMAR_RULES_MAX];
    bool ended; /* the rule of the decision may end here */
};

struct decision {
    struct predictor *predictor;
    struct arena arena;
    struct run runs[GRAMMAR_CHOICES_MAX];
    unsigned count;
    size_t stamp;
};

static void items_add(struct decision *decision, struct items *items, uint16_t state, struct activation *activation)
{
    items->data = arena_grow(&decision->arena, items->data, items->count, &items->capacity, sizeof *items->data);
    items->data[items->count++] = (struct item){state, activation};
}

static bool visit(struct decision *decision, const struct item *item)
{
    struct activation *activation = item->activation;
    if (activation->stamp != decision->stamp) {
        activation->stamp = decision->stamp;
        memset(activation->seen, 0, sizeof activation->seen);
    }
    uint64_t bit = (uint64_t)1 << item->state % 64, *seen = &activation->seen[item->state / 64];
    bool first = (*seen & bit) == 0;
    *seen |= bit;
    return first;
}

static void call(struct decision *decision, struct run *run, const struct grammar_state *state, struct activation *from)
{
    uint16_t rule = state->rule;
    if (run->begun_stamp[rule] != decision->stamp) {
        run->begun_stamp[rule] = decision->stamp;
        run->begun[rule] = arena_zalloc(&decision->arena, sizeof *run->begun[rule]);
        items_add(decision, &run->pending, decision->predictor->grammar->starts[rule], run->begun[rule]);
    }
    struct caller *caller = arena_alloc(&decision->arena, sizeof *caller);
    *caller = (struct caller){state->next, from, run->begun[rule]->callers};
    run->begun[rule]->callers = caller;
}

/* No rule matches nothing, so whoever calls a rule at this word has done so before the rule ends. */
static void end_rule(struct decision *decision, struct run *run, const struct activation *activation)
{
    if (activation->callers == NULL)
        run->ended = true;
    for (const struct caller *caller = activation->callers; caller != NULL; caller = caller->next)
        items_add(decision, &run->pending, caller->state, caller->activation);
}

/* Follows what is pending up to the next words. */
static void follow(struct decision *decision, struct run *run)
{
    while (run->pending.count > 0) {
        struct item item = run->pending.data[--run->pending.count];
        const struct grammar_state *state = &decision->predictor->grammar->states[item.state];
        if (!visit(decision, &item))
            continue;
        if (decision->predictor->steps_left > 0)
            decision->predictor->steps_left--;
        switch (state->kind) {
        case GRAMMAR_STOP: end_rule(decision, run, item.activation); break;
        case GRAMMAR_PASS: items_add(decision, &run->pending, state->next, item.activation); break;
        case GRAMMAR_MATCH: items_add(decision, &run->words, item.state, item.activation); break;
        case GRAMMAR_CALL: call(decision, run, state, item.activation); break;
        case GRAMMAR_CHOICE:
        case GRAMMAR_OPTION:
            for (unsigned i = 0; i < state->choice_count; i++)
                items_add(decision, &run->pending, state->choices[i], item.activation);
            break;
        }
    }
}

static void start(struct decision *decision, const struct grammar_state *state)
{
    decision->stamp = 1;
    decision->count = state->choice_count;
    for (unsigned i = 0; i < decision->count; i++) {
        struct activation *base = arena_zalloc(&decision->arena, sizeof *base);
        items_add(decision, &decision->runs[i].pending, state->choices[i], base);
        follow(decision, &decision->runs[i]);
    }
}

static bool fits(const struct decision *decision, const struct run *run, unsigned word)
{
    for (size_t i = 0; i < run->words.count; i++)
        if (grammar_set_has(&decision->predictor->grammar->states[run->words.data[i].state].set, word))
            return true;
    return false;
}

static void step(struct decision *decision, struct run *run, unsigned word)
{
    const struct grammar_state *states = decision->predictor->grammar->states;
    size_t count = run->words.count;
    run->words.count = 0;
    run->ended = false;
    for (size_t i = 0; i < count; i++) {
        struct item item = run->words.data[i];
        if (grammar_set_has(&states[item.state].set, word))
            items_add(decision, &run->pending, states[item.state].next, item.activation);
    }
    follow(decision, run);
}

/* The first words tell entering from passing. */
static bool tells_at_once(const struct decision *decision)
{
    for (unsigned word = 0; word < decision->predictor->grammar->language->word_count; word++)
        if (fits(decision, &decision->runs[0], word) && fits(decision, &decision->runs[1], word))
            return false;
    return true;
}

/* What to do with a word that fits nowhere. Returns: as predict(). */
static int fall_back(const struct decision *decision, bool first, bool option, size_t at, unsigned *ret_choice,
                     size_t *ret_at)
{
    for (unsigned i = 0; i < decision->count; i++)
        if (decision->runs[i].ended) {
            *ret_choice = i;
            return 0;
        }
    if (first && option && tells_at_once(decision)) {
        *ret_choice = 1;
        return 0;
    }
    *ret_at = at;
    return PREDICT_NONE;
}

/* Takes one word. Returns: how many alternatives it fits; with one, *ret_choice. */
static unsigned advance(struct decision *decision, unsigned word, unsigned *ret_choice)
{
    unsigned left = 0;
    for (unsigned i = 0; i < decision->count; i++)
        if (fits(decision, &decision->runs[i], word)) {
            left++;
            *ret_choice = i;
        }
    if (left < 2)
        return left;
    decision->stamp++;
    for (unsigned i = 0; i < decision->count; i++)
        step(decision, &decision->runs[i], word);
    return left;
}

static void decision_deinit(struct decision *decision)
{
    arena_deinit(&decision->arena);
}

int predict(struct predictor *predictor, uint16_t state, size_t at, unsigned *ret_choice, size_t *ret_at)
{
    const struct grammar_state *node = &predictor->grammar->states[state];
    REQUIRE(node->kind == GRAMMAR_CHOICE || node->kind == GRAMMAR_OPTION);
    tl_cleanup(decision_deinit) struct decision decision = {.predictor = predictor, .arena = ARENA_INIT};
    start(&decision, node);
    size_t position = at, last = predictor->word_count - 1;
    for (bool first = true; predictor->steps_left > 0; first = false) {
        unsigned word = predictor->word(predictor->user, position);
        if (word >= predictor->grammar->language->word_count)
            return PREDICT_UNKNOWN;
        unsigned left = advance(&decision, word, ret_choice);
        if (left == 1)
            return 0;
        if (left == 0)
            return fall_back(&decision, first, node->kind == GRAMMAR_OPTION, position, ret_choice, ret_at);
        position = position < last ? position + 1 : last;
    }
    return PREDICT_TOO_LONG;
}
