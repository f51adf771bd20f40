/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phrases: tokens at the distances that the query asks for, moved by no more than `slop` in all.
 *
 * Entries hold no positions, so the text is analysed again. Values of one field lie POSITION_GAP apart, so
 * that no phrase reaches from one into the next.
 */
#include "query/phrase.h"

#include "base/account.h"
#include "base/stack.h"
#include "mapping/analysis.h"
#include "json/path.h"

enum { POSITION_GAP = 100, PHRASE_TOKENS_MAX = 100000 };

struct placed_token {
    struct slice text;
    uint32_t position;
};

struct phrase_text {
    struct subject *subject;
    const struct mapping_field *field;
    struct placed_token *items;
    size_t count, capacity;
    uint32_t base; /* position of the first token of the value at hand */
    uint32_t last;
};

static bool take_token(void *context, const struct analysis_token *token)
{
    struct phrase_text *text = context;
    text->items = arena_grow(&text->subject->arena, text->items, text->count, &text->capacity, sizeof *text->items);
    text->last = text->base + token->position;
    text->items[text->count++] = (struct placed_token){token->text, text->last};
    return text->count < PHRASE_TOKENS_MAX;
}

static bool take_value(void *context, yyjson_val *leaf)
{
    struct phrase_text *text = context;
    if (yyjson_is_ctn(leaf) || yyjson_is_null(leaf))
        return true;
    struct slice scalar = query__scalar_text(&text->subject->arena, leaf);
    analyzer_run(text->field->analyzer, scalar, &text->subject->arena, take_token, text);
    text->base = text->last + POSITION_GAP + 1;
    return text->count < PHRASE_TOKENS_MAX;
}

static bool token_fits(struct account *account, const struct matcher *matcher, size_t place, struct slice token)
{
    (void)account_take(account, 1 + token.len / 16);
    bool prefix = matcher->phrase.last_is_prefix && place + 1 == matcher->phrase.count;
    return prefix ? slice_starts_with(token, matcher->phrase.tokens[place])
                  : slice_equal(token, matcher->phrase.tokens[place]);
}

/* Whether the phrase can be placed from `place` on; `low` and `high` are the shifts used so far. */
static bool place_from(const struct matcher *matcher, const struct phrase_text *text, size_t place, int64_t start,
                       int64_t low, int64_t high, unsigned *steps)
{
    if (place == matcher->phrase.count)
        return true;
    if (stack_short()) /* a phrase of very many words, all of which fit where they are tried */
        return false;
    int64_t slop = matcher->phrase.slop;
    for (size_t i = 0; i < text->count; i++) {
        if (!account_take(text->subject->account, 1))
            return false;
        int64_t shift = (int64_t)text->items[i].position - start - (int64_t)matcher->phrase.positions[place];
        if (shift < -slop || shift > slop || ++*steps > PHRASE_TOKENS_MAX)
            continue;
        int64_t lower = shift < low ? shift : low, upper = shift > high ? shift : high;
        if (upper - lower <= slop && token_fits(text->subject->account, matcher, place, text->items[i].text) &&
            place_from(matcher, text, place + 1, start, lower, upper, steps))
            return true;
    }
    return false;
}

static bool exact_at(const struct matcher *matcher, const struct phrase_text *text, size_t first)
{
    size_t i = first;
    for (size_t place = 1; place < matcher->phrase.count; place++) {
        uint32_t wanted = text->items[first].position + matcher->phrase.positions[place];
        if (!account_take(text->subject->account, 2))
            return false;
        while (i < text->count && text->items[i].position < wanted)
            i++;
        size_t j = i;
        while (j < text->count && text->items[j].position == wanted &&
               !token_fits(text->subject->account, matcher, place, text->items[j].text))
            j++;
        if (j >= text->count || text->items[j].position != wanted)
            return false;
    }
    return true;
}

size_t phrase_frequency(const struct matcher *matcher, struct subject *subject, size_t *ret_length)
{
    struct phrase_text text = {.subject = subject, .field = matcher->field};
    yyjson_val *root = subject_root(subject);
    if (root == NULL)
        return 0;
    json_path_each(root, subject_source_path(matcher->field), take_value, &text);
    size_t frequency = 0;
    unsigned steps = 0;
    for (size_t i = 0; i < text.count && account_take(subject->account, 1); i++) {
        if (!token_fits(subject->account, matcher, 0, text.items[i].text))
            continue;
        frequency += matcher->phrase.slop == 0 ? exact_at(matcher, &text, i)
                                               : place_from(matcher, &text, 1, text.items[i].position, 0, 0, &steps);
    }
    *ret_length = text.count;
    return frequency;
}
