/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phrases: tokens at the distances that the query asks for, moved by no more than `slop` in all.
 *
 * Entries hold no positions, so the text is analysed again. Values of one field lie the mapping's
 * `position_increment_gap` apart, so that as a rule no phrase reaches from one into the next.
 */
#include "query/phrase.h"

#include "base/account.h"
#include "mapping/analysis.h"
#include "mapping/document.h"

enum { PHRASE_TOKENS_MAX = 100000 };

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

static bool token_fits(struct account *account, const struct matcher *matcher, size_t place, struct slice token)
{
    (void)account_take(account, 1 + token.len / 16);
    bool prefix = matcher->phrase.last_is_prefix && place + 1 == matcher->phrase.count;
    return prefix ? slice_starts_with(token, matcher->phrase.tokens[place])
                  : slice_equal(token, matcher->phrase.tokens[place]);
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

/* --- With slop ---------------------------------------------------------------------------------------------------- */

/* A word of the phrase, as it goes through the places where the text has it. */
struct word {
    uint32_t *places;
    size_t count, next;
    int64_t at; /* the place, less the word's own in the phrase: equal for all words where the phrase stands exactly */
    int64_t offset; /* the word's place in the phrase */
    size_t twin;    /* the next word that is the same, in a ring; itself where none is */
    size_t rank;    /* among the same words */
    bool queued;
};

/*
 * Matches as Lucene's, so that there are as many: the word that is farthest behind goes on, until it is ahead of the next; the
 * smallest distance from the first to the last on the way is a match, if it is within the slop. It counts the less the larger it
 * is. Two equal words of the phrase need two places: the one behind of those that meet goes on.
 */
struct sloppy {
    struct word *words;
    size_t count;
    int64_t end; /* the largest `at` so far */
    struct account *account;
};

static bool step(struct sloppy *sloppy, struct word *word)
{
    if (word->next == word->count || !account_take(sloppy->account, 1))
        return false;
    word->at = (int64_t)word->places[word->next++] - word->offset;
    return true;
}

static bool advance(struct sloppy *sloppy, struct word *word)
{
    if (!step(sloppy, word))
        return false;
    sloppy->end = word->at > sloppy->end ? word->at : sloppy->end;
    return true;
}

static bool is_behind(const struct word *a, const struct word *b)
{
    return a->at < b->at || (a->at == b->at && a->offset < b->offset);
}

/* Returns: the word farthest behind among those in the queue; NULL: none is. */
static struct word *first_queued(struct sloppy *sloppy)
{
    struct word *first = NULL;
    (void)account_take(sloppy->account, 1 + sloppy->count / 8);
    for (size_t i = 0; i < sloppy->count; i++) {
        struct word *word = &sloppy->words[i];
        if (word->queued && (first == NULL || is_behind(word, first)))
            first = word;
    }
    return first;
}

/* Returns: an equal word that has the same place; NULL: none. */
static struct word *collides(struct sloppy *sloppy, const struct word *word)
{
    for (struct word *other = &sloppy->words[word->twin]; other != word; other = &sloppy->words[other->twin]) {
        (void)account_take(sloppy->account, 1);
        if (other->at + other->offset == word->at + word->offset)
            return other;
    }
    return NULL;
}

static bool part_twins(struct sloppy *sloppy, struct word *word)
{
    struct word *other;
    while ((other = collides(sloppy, word)) != NULL) {
        word = is_behind(word, other) ? word : other;
        if (!advance(sloppy, word))
            return false;
    }
    return true;
}

/* Puts each word at its first place, and equal ones at different ones. */
static bool begin(struct sloppy *sloppy)
{
    for (size_t i = 0; i < sloppy->count; i++) {
        struct word *word = &sloppy->words[i];
        for (size_t k = 0; k <= word->rank; k++)
            if (!step(sloppy, word))
                return false;
        sloppy->end = i == 0 || word->at > sloppy->end ? word->at : sloppy->end;
        word->queued = true;
    }
    return true;
}

static float sloppy_frequency(struct sloppy *sloppy, int64_t slop)
{
    float frequency = 0;
    if (!begin(sloppy))
        return 0;
    for (bool more = true; more;) {
        struct word *word = first_queued(sloppy);
        word->queued = false;
        int64_t distance = sloppy->end - word->at, next = first_queued(sloppy)->at;
        while ((more = advance(sloppy, word) && part_twins(sloppy, word)) && word->at <= next)
            distance = sloppy->end - word->at < distance ? sloppy->end - word->at : distance;
        word->queued = true;
        if (distance <= slop)
            frequency += 1.0f / (1.0f + (float)distance);
    }
    return frequency;
}

static void find_places(const struct matcher *matcher, const struct phrase_text *text, size_t place, struct word *word)
{
    size_t capacity = 0;
    for (size_t i = 0; i < text->count && account_take(text->subject->account, 1); i++) {
        if (!token_fits(text->subject->account, matcher, place, text->items[i].text))
            continue;
        word->places = arena_grow(&text->subject->arena, word->places, word->count, &capacity, sizeof *word->places);
        word->places[word->count++] = text->items[i].position;
    }
}

/* Ties a word to the last one before it that is the same. */
static void find_twin(const struct matcher *matcher, struct word *words, size_t place)
{
    words[place].twin = place;
    if (matcher->phrase.last_is_prefix && place + 1 == matcher->phrase.count)
        return;
    for (size_t other = place; other-- > 0;) {
        if (!slice_equal(matcher->phrase.tokens[other], matcher->phrase.tokens[place]))
            continue;
        words[place].rank = words[other].rank + 1;
        words[place].twin = words[other].twin;
        words[other].twin = place;
        return;
    }
}

static float frequency_with_slop(const struct matcher *matcher, const struct phrase_text *text)
{
    size_t count = matcher->phrase.count;
    struct sloppy sloppy = {.words = arena_zalloc(&text->subject->arena, count * sizeof *sloppy.words),
                            .count = count,
                            .account = text->subject->account};
    for (size_t i = 0; i < count; i++) {
        sloppy.words[i].offset = matcher->phrase.positions[i];
        find_twin(matcher, sloppy.words, i);
        find_places(matcher, text, i, &sloppy.words[i]);
        if (sloppy.words[i].count == 0)
            return 0;
    }
    return sloppy_frequency(&sloppy, matcher->phrase.slop);
}

float phrase_frequency(const struct matcher *matcher, struct subject *subject, size_t *ret_length)
{
    struct phrase_text text = {.subject = subject, .field = matcher->field};
    struct value *values = NULL;
    yyjson_val *root = subject_root(subject);
    if (root == NULL)
        return 0;
    size_t count = document_field_texts(subject->index->mapping, matcher->field, root, &subject->arena, &values);
    for (size_t i = 0; i < count && text.count < PHRASE_TOKENS_MAX; i++) {
        analyzer_run(matcher->field->analyzer, values[i].bytes, &subject->arena, take_token, &text);
        text.base = text.last + matcher->field->position_gap + 1;
    }
    *ret_length = text.count;
    if (matcher->phrase.slop > 0)
        return frequency_with_slop(matcher, &text);
    size_t frequency = 0;
    for (size_t i = 0; i < text.count && account_take(subject->account, 1); i++)
        frequency += token_fits(subject->account, matcher, 0, text.items[i].text) && exact_at(matcher, &text, i);
    return (float)frequency;
}
