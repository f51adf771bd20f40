/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookahead; see predict.h.
 *
 * Each alternative has the set of pairs (state, activation) that it may be in. An activation is one
 * rule entered at one word. All callers of the rule at that word share it, as in a graph-structured
 * stack. So the cost grows with the length of the text, not with the number of possible parses.
 */
#include "script/explain/predict.h"

#include "base/check.h"

struct caller {
    uint16_t state; /* after the call */
    struct activation *activation;
    struct caller *next;
};

struct activation {
    struct caller *callers; /* empty: the rule that contains the decision */
    size_t stamp;           /* the word for which `seen` is valid, counted from 1 */
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

struct alternative {
    struct items words;   /* in states that need a word */
    struct items pending; /* to be followed up to the next word */
    struct activation *begun[GRAMMAR_RULES_MAX];
    size_t begun_stamp[GRAMMAR_RULES_MAX];
    bool ended; /* the rule that contains the decision may end here */
};

struct decision {
    struct predictor *predictor;
    struct arena arena;
    struct alternative alternatives[GRAMMAR_CHOICES_MAX];
    unsigned count;
    size_t stamp;
};

static void items_add(struct decision *decision, struct items *items, uint16_t state, struct activation *activation)
{
    items->data = arena_grow(&decision->arena, items->data, items->count, &items->capacity, sizeof *items->data);
    items->data[items->count++] = (struct item){state, activation};
}

static bool visit_item(struct decision *decision, const struct item *item)
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

static void call_rule(struct decision *decision, struct alternative *alternative, const struct grammar_state *state,
                      struct activation *from)
{
    uint16_t rule = state->rule;
    if (alternative->begun_stamp[rule] != decision->stamp) {
        alternative->begun_stamp[rule] = decision->stamp;
        alternative->begun[rule] = arena_zalloc(&decision->arena, sizeof *alternative->begun[rule]);
        items_add(decision, &alternative->pending, decision->predictor->grammar->starts[rule],
                  alternative->begun[rule]);
    }
    struct caller *caller = arena_alloc(&decision->arena, sizeof *caller);
    *caller = (struct caller){state->next, from, alternative->begun[rule]->callers};
    alternative->begun[rule]->callers = caller;
}

/* Continues in all callers of a rule that ends. The list of callers is complete: every rule
   matches at least one word, so all calls made at the word that began the activation precede its
   end. */
static void end_rule(struct decision *decision, struct alternative *alternative, const struct activation *activation)
{
    if (activation->callers == NULL)
        alternative->ended = true;
    for (const struct caller *caller = activation->callers; caller != NULL; caller = caller->next)
        items_add(decision, &alternative->pending, caller->state, caller->activation);
}

/* Follows pending items until all of them need a word. */
static void follow_pending(struct decision *decision, struct alternative *alternative)
{
    while (alternative->pending.count > 0) {
        struct item item = alternative->pending.data[--alternative->pending.count];
        const struct grammar_state *state = &decision->predictor->grammar->states[item.state];
        if (!visit_item(decision, &item))
            continue;
        if (decision->predictor->steps_left > 0)
            decision->predictor->steps_left--;
        switch (state->kind) {
        case GRAMMAR_STOP: end_rule(decision, alternative, item.activation); break;
        case GRAMMAR_PASS: items_add(decision, &alternative->pending, state->next, item.activation); break;
        case GRAMMAR_MATCH: items_add(decision, &alternative->words, item.state, item.activation); break;
        case GRAMMAR_CALL: call_rule(decision, alternative, state, item.activation); break;
        case GRAMMAR_CHOICE:
        case GRAMMAR_OPTION:
            for (unsigned i = 0; i < state->choice_count; i++)
                items_add(decision, &alternative->pending, state->choices[i], item.activation);
            break;
        }
    }
}

static void start_decision(struct decision *decision, const struct grammar_state *state)
{
    decision->stamp = 1;
    decision->count = state->choice_count;
    for (unsigned i = 0; i < decision->count; i++) {
        struct activation *base = arena_zalloc(&decision->arena, sizeof *base);
        items_add(decision, &decision->alternatives[i].pending, state->choices[i], base);
        follow_pending(decision, &decision->alternatives[i]);
    }
}

static bool alternative_fits(const struct decision *decision, const struct alternative *alternative, unsigned word)
{
    for (size_t i = 0; i < alternative->words.count; i++)
        if (grammar_set_has(&decision->predictor->grammar->states[alternative->words.data[i].state].set, word))
            return true;
    return false;
}

static void step_alternative(struct decision *decision, struct alternative *alternative, unsigned word)
{
    const struct grammar_state *states = decision->predictor->grammar->states;
    size_t count = alternative->words.count;
    alternative->words.count = 0;
    alternative->ended = false;
    for (size_t i = 0; i < count; i++) {
        struct item item = alternative->words.data[i];
        if (grammar_set_has(&states[item.state].set, word))
            items_add(decision, &alternative->pending, states[item.state].next, item.activation);
    }
    follow_pending(decision, alternative);
}

/* Returns: whether the first words suffice to choose between entering and skipping the item. */
static bool first_words_are_disjoint(const struct decision *decision)
{
    for (unsigned word = 0; word < decision->predictor->grammar->language->word_count; word++)
        if (alternative_fits(decision, &decision->alternatives[0], word) &&
            alternative_fits(decision, &decision->alternatives[1], word))
            return false;
    return true;
}

/* Handles a word that no alternative accepts. Returns: as predict(). */
static int fall_back(const struct decision *decision, bool first, bool option, size_t at, unsigned *ret_choice,
                     size_t *ret_at)
{
    for (unsigned i = 0; i < decision->count; i++)
        if (decision->alternatives[i].ended) {
            *ret_choice = i;
            return 0;
        }
    if (first && option && first_words_are_disjoint(decision)) {
        *ret_choice = 1;
        return 0;
    }
    *ret_at = at;
    return PREDICT_NONE;
}

/* Offers one word to all alternatives, and consumes it if two or more accept it. Returns: the
   number that accept it; if that is 1, *ret_choice is the alternative. */
static unsigned advance_all(struct decision *decision, unsigned word, unsigned *ret_choice)
{
    unsigned left = 0;
    for (unsigned i = 0; i < decision->count; i++)
        if (alternative_fits(decision, &decision->alternatives[i], word)) {
            left++;
            *ret_choice = i;
        }
    if (left < 2)
        return left;
    decision->stamp++;
    for (unsigned i = 0; i < decision->count; i++)
        step_alternative(decision, &decision->alternatives[i], word);
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
    start_decision(&decision, node);
    size_t position = at, last = predictor->word_count - 1;
    for (bool first = true; predictor->steps_left > 0; first = false) {
        unsigned word = predictor->word(predictor->user, position);
        if (word >= predictor->grammar->language->word_count)
            return PREDICT_UNKNOWN;
        unsigned left = advance_all(&decision, word, ret_choice);
        if (left == 1)
            return 0;
        if (left == 0)
            return fall_back(&decision, first, node->kind == GRAMMAR_OPTION, position, ret_choice, ret_at);
        position = position < last ? position + 1 : last;
    }
    return PREDICT_TOO_LONG;
}
