/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches phrases: tokens at the distances that the query gives, moved by at most `slop` in total.
 *
 * Entries hold no positions, so the text is analyzed again. Consecutive values of one field are the
 * mapping's `position_increment_gap` apart, so that a phrase normally does not match across values.
 */
#include "query/phrase.h"

#include "base/account.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/list.h"
#include "mapping/analysis.h"
#include "mapping/document.h"

#include <stdlib.h>

enum { PHRASE_TOKENS_MAX = 100000 };

/* Account steps: to analyze a token; to look one up among the words of a phrase. */
enum { TOKEN_STEPS = 20, LOOKUP_STEPS = 5 };

struct positioned_token {
    struct slice text;
    uint32_t position;
};

/* --- The words of a phrase ---------------------------------------------------------------------------------------- */

/*
 * Returns: the index of a text among the distinct words of a phrase; word_count: not one of them.
 */
static size_t find_word(const struct bound_query *matcher, struct slice text)
{
    size_t low = 0, high = matcher->phrase.word_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = slice_compare(matcher->phrase.words[middle], text);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return matcher->phrase.word_count;
}

void phrase_bind(struct bound_query *matcher, struct arena *arena)
{
    REQUIRE(matcher->kind == BOUND_PHRASE && matcher->phrase.tokens != NULL);
    size_t count = matcher->phrase.count, kept = 0;
    size_t words = matcher->phrase.last_is_prefix ? count - 1 : count;
    struct slice *sorted = arena_alloc(arena, (count + 1) * sizeof *sorted);
    memcpy(sorted, matcher->phrase.tokens, words * sizeof *sorted);
    qsort(sorted, words, sizeof *sorted, slice_order);
    for (size_t i = 0; i < words; i++)
        if (kept == 0 || !slice_equal(sorted[kept - 1], sorted[i]))
            sorted[kept++] = sorted[i];
    matcher->phrase.words = sorted;
    matcher->phrase.word_count = kept;
    matcher->phrase.word_of = arena_alloc(arena, (count + 1) * sizeof *matcher->phrase.word_of);
    for (size_t i = 0; i < count; i++)
        matcher->phrase.word_of[i] = (uint32_t)(i < words ? find_word(matcher, matcher->phrase.tokens[i]) : kept);
}

/* --- The text ----------------------------------------------------------------------------------------------------- */

struct token_collector {
    struct match_doc *match_doc;
    struct match_doc_text *text;
    uint32_t base; /* position of the first token of the current value */
    uint32_t last;
};

static bool take_token(void *context, const struct analysis_token *token)
{
    struct token_collector *at = context;
    struct match_doc_text *text = at->text;
    text->tokens = arena_grow(&at->match_doc->arena, text->tokens, text->count, &text->capacity, sizeof *text->tokens);
    at->last = at->base + token->position;
    text->tokens[text->count++] = (struct positioned_token){token->text, at->last};
    return text->count < PHRASE_TOKENS_MAX && account_take(at->match_doc->account, TOKEN_STEPS);
}

/* Returns: the tokens of a field, analyzed at the first call; NULL: the document has no source. */
static const struct match_doc_text *text_of(struct match_doc *match_doc, const struct mapping_field *field)
{
    struct field_value *values = NULL;
    for (const struct match_doc_text *known = match_doc->texts; known != NULL; known = known->next)
        if (known->field == field)
            return known;
    yyjson_val *root = match_doc_root(match_doc);
    if (root == NULL)
        return NULL;
    struct token_collector at = {.match_doc = match_doc, .text = arena_zalloc(&match_doc->arena, sizeof *at.text)};
    size_t count = document_field_texts(match_doc->index->mapping, field, root, &match_doc->arena, &values);
    for (size_t i = 0; i < count && at.text->count < PHRASE_TOKENS_MAX; i++) {
        analyzer_run(field->analyzer, values[i].bytes, &match_doc->arena, take_token, &at);
        at.base = at.last + field->position_gap + 1;
    }
    at.text->field = field;
    at.text->next = match_doc->texts;
    match_doc->texts = at.text;
    return at.text;
}

/*
 * The positions of one word of a phrase in a text, in ascending order. Tokens at equal positions
 * are repeated.
 */
struct occurrences {
    uint32_t *items;
    size_t count;
};

static bool fits_prefix(const struct bound_query *matcher, struct slice text)
{
    return matcher->phrase.last_is_prefix && slice_starts_with(text, matcher->phrase.tokens[matcher->phrase.count - 1]);
}

/*
 * Finds the occurrences of a phrase's words; looks each token of the text up once.
 * Returns: an array indexed by word, the prefix last; NULL: a word does not occur, or the account
 * has ended.
 */
static struct occurrences *find_occurrences(const struct bound_query *matcher, struct match_doc *match_doc,
                                            const struct match_doc_text *text)
{
    size_t words = matcher->phrase.word_count + matcher->phrase.last_is_prefix, total = 0;
    struct occurrences *occurrences = arena_zalloc(&match_doc->arena, (words + 1) * sizeof *occurrences);
    uint32_t *found = arena_alloc(&match_doc->arena, (text->count + 1) * sizeof *found);
    for (size_t i = 0; i < text->count; i++) {
        if (!account_take(match_doc->account, LOOKUP_STEPS + text->tokens[i].text.len / 16))
            return NULL;
        found[i] = (uint32_t)find_word(matcher, text->tokens[i].text);
        if (found[i] < matcher->phrase.word_count)
            occurrences[found[i]].count++;
        if (fits_prefix(matcher, text->tokens[i].text))
            occurrences[matcher->phrase.word_count].count++;
    }
    for (size_t word = 0; word < words; word++) {
        if (occurrences[word].count == 0)
            return NULL;
        total += occurrences[word].count;
    }
    uint32_t *items = arena_alloc(&match_doc->arena, (total + 1) * sizeof *items);
    for (size_t word = 0; word < words; word++) {
        occurrences[word].items = items;
        items += occurrences[word].count;
        occurrences[word].count = 0;
    }
    for (size_t i = 0; i < text->count; i++) {
        struct occurrences *of = &occurrences[found[i]];
        if (found[i] < matcher->phrase.word_count)
            of->items[of->count++] = text->tokens[i].position;
        of = &occurrences[matcher->phrase.word_count];
        if (fits_prefix(matcher, text->tokens[i].text))
            of->items[of->count++] = text->tokens[i].position;
    }
    return occurrences;
}

/* --- Exact phrases ------------------------------------------------------------------------------------------------ */

/* Returns: the index of the phrase's token with the fewest occurrences in the text. */
static size_t rarest_token(const struct bound_query *matcher, const struct occurrences *occurrences)
{
    size_t found = 0;
    for (size_t i = 1; i < matcher->phrase.count; i++)
        if (occurrences[matcher->phrase.word_of[i]].count < occurrences[matcher->phrase.word_of[found]].count)
            found = i;
    return found;
}

/*
 * Returns: whether the phrase occurs in the text with its first token at `begin`. `next` holds the
 * first unread occurrence of each token. `begin` must not decrease from call to call, so each
 * occurrence is read once.
 */
static bool occurs_at(const struct bound_query *matcher, struct match_doc *match_doc,
                      const struct occurrences *occurrences, size_t *next, int64_t begin)
{
    for (size_t i = 0; i < matcher->phrase.count; i++) {
        const struct occurrences *of = &occurrences[matcher->phrase.word_of[i]];
        int64_t wanted = begin + matcher->phrase.positions[i];
        size_t from = next[i];
        while (next[i] < of->count && of->items[next[i]] < wanted)
            next[i]++;
        if (!account_take(match_doc->account, 2 + next[i] - from) || next[i] == of->count ||
            of->items[next[i]] != wanted)
            return false;
    }
    return true;
}

/* Returns: the phrase's frequency: each token that can be its first counts once. */
static size_t exact_frequency(const struct bound_query *matcher, struct match_doc *match_doc,
                              const struct occurrences *occurrences)
{
    size_t token = rarest_token(matcher, occurrences), frequency = 0;
    const struct occurrences *of = &occurrences[matcher->phrase.word_of[token]];
    const struct occurrences *first = &occurrences[matcher->phrase.word_of[0]];
    size_t *next = arena_zalloc(&match_doc->arena, matcher->phrase.count * sizeof *next);
    for (size_t i = 0; i < of->count && account_take(match_doc->account, 1); i++) {
        int64_t begin = (int64_t)of->items[i] - matcher->phrase.positions[token];
        if ((i > 0 && of->items[i] == of->items[i - 1]) || !occurs_at(matcher, match_doc, occurrences, next, begin))
            continue;
        for (size_t at = next[0]; at < first->count && first->items[at] == first->items[next[0]]; at++)
            frequency++;
    }
    return frequency;
}

/* --- With slop ---------------------------------------------------------------------------------------------------- */

/* A word of the phrase, with a cursor over its occurrences in the text. */
struct word {
    struct heap_node queued; /* member of sloppy.queue, if linked */
    struct occurrences occurrences;
    size_t next;
    int64_t at;          /* text position less `offset`; all words are equal at an exact match */
    int64_t offset;      /* position of the word in the phrase */
    size_t next_equal;   /* index of the next equal word, in a ring; its own index: no equal word */
    size_t equal_before; /* number of equal words that precede it in the phrase */
};

/*
 * The state of a match with slop. It finds the same matches as Lucene's SloppyPhraseMatcher: the
 * word with the lowest `at` advances until it passes the next word. The smallest distance from the
 * lowest to the highest `at` meanwhile is a match, if it is within the slop. Its weight decreases
 * with that distance. Equal words of the phrase need different positions: of two at one position,
 * the lower one advances.
 */
struct sloppy {
    struct word *words;
    size_t count;
    struct heap queue; /* the words by ascending `at` */
    int64_t end;       /* maximum `at` of the words */
    struct account *account;
};

static bool word_precedes(const struct word *a, const struct word *b)
{
    return a->at < b->at || (a->at == b->at && a->offset < b->offset);
}

/* Orders words by `at`, then by offset, then by their order in the phrase. */
static bool queued_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct word *one = container_of(a, const struct word, queued),
                      *other = container_of(b, const struct word, queued);
    return word_precedes(one, other) || (!word_precedes(other, one) && one < other);
}

static bool step_word(struct sloppy *sloppy, struct word *word)
{
    if (word->next == word->occurrences.count || !account_take(sloppy->account, 1))
        return false;
    word->at = (int64_t)word->occurrences.items[word->next++] - word->offset;
    return true;
}

static bool advance_word(struct sloppy *sloppy, struct word *word)
{
    bool queued = heap_holds(&word->queued);
    if (queued)
        heap_remove(&sloppy->queue, &word->queued);
    bool more = step_word(sloppy, word);
    if (queued)
        heap_push(&sloppy->queue, &word->queued);
    if (more && word->at > sloppy->end)
        sloppy->end = word->at;
    return more;
}

/* Returns: the queued word with the lowest `at`. */
static struct word *first_queued(struct sloppy *sloppy)
{
    (void)account_take(sloppy->account, 10);
    return container_of(heap_first(&sloppy->queue), struct word, queued);
}

/* Returns: an equal word at the same text position; NULL: none. */
static struct word *find_collision(struct sloppy *sloppy, const struct word *word)
{
    for (struct word *other = &sloppy->words[word->next_equal]; other != word;
         other = &sloppy->words[other->next_equal]) {
        (void)account_take(sloppy->account, 1);
        if (other->at + other->offset == word->at + word->offset)
            return other;
    }
    return NULL;
}

static bool separate_equal_words(struct sloppy *sloppy, struct word *word)
{
    struct word *other;
    while ((other = find_collision(sloppy, word)) != NULL) {
        word = word_precedes(word, other) ? word : other;
        if (!advance_word(sloppy, word))
            return false;
    }
    return true;
}

/*
 * Moves each word to its first occurrence, equal words to different ones. Returns: false: there are
 * too few occurrences, or the account has ended.
 */
static bool begin_sloppy(struct sloppy *sloppy)
{
    for (size_t i = 0; i < sloppy->count; i++) {
        struct word *word = &sloppy->words[i];
        for (size_t k = 0; k <= word->equal_before; k++)
            if (!step_word(sloppy, word))
                return false;
        sloppy->end = i == 0 || word->at > sloppy->end ? word->at : sloppy->end;
        heap_push(&sloppy->queue, &word->queued);
    }
    return true;
}

static float sloppy_frequency(struct sloppy *sloppy, int64_t slop)
{
    float frequency = 0;
    if (!begin_sloppy(sloppy))
        return 0;
    for (bool more = true; more;) {
        struct word *word = first_queued(sloppy);
        heap_remove(&sloppy->queue, &word->queued);
        int64_t distance = sloppy->end - word->at, next = first_queued(sloppy)->at;
        while ((more = advance_word(sloppy, word) && separate_equal_words(sloppy, word)) && word->at <= next)
            distance = sloppy->end - word->at < distance ? sloppy->end - word->at : distance;
        heap_push(&sloppy->queue, &word->queued);
        if (distance <= slop)
            frequency += 1.0f / (1.0f + (float)distance);
    }
    return frequency;
}

static float frequency_with_slop(const struct bound_query *matcher, struct match_doc *match_doc,
                                 const struct occurrences *occurrences)
{
    size_t count = matcher->phrase.count, words = matcher->phrase.word_count;
    struct sloppy sloppy = {.words = arena_zalloc(&match_doc->arena, count * sizeof *sloppy.words),
                            .count = count,
                            .account = match_doc->account};
    struct word **last = arena_zalloc(&match_doc->arena, (words + 1) * sizeof(struct word *)); /* the last equal word */
    heap_init(&sloppy.queue, queued_before);
    for (size_t i = 0; i < count; i++) {
        struct word *word = &sloppy.words[i];
        size_t of = matcher->phrase.word_of[i];
        word->offset = matcher->phrase.positions[i];
        word->occurrences = occurrences[of];
        word->next_equal = i;
        if (of < words && last[of] != NULL) { /* links equal words into a ring */
            word->equal_before = last[of]->equal_before + 1;
            word->next_equal = last[of]->next_equal;
            last[of]->next_equal = i;
        }
        last[of] = word;
    }
    float frequency = sloppy_frequency(&sloppy, matcher->phrase.slop);
    while (heap_first(&sloppy.queue) != NULL)
        heap_remove(&sloppy.queue, heap_first(&sloppy.queue));
    heap_deinit(&sloppy.queue);
    return frequency;
}

float phrase_frequency(const struct bound_query *matcher, struct match_doc *match_doc, size_t *ret_length)
{
    const struct match_doc_text *text = text_of(match_doc, matcher->field);
    if (text == NULL)
        return 0;
    *ret_length = text->count;
    struct arena_mark mark = arena_mark(&match_doc->arena);
    const struct occurrences *occurrences = find_occurrences(matcher, match_doc, text);
    float frequency = 0;
    if (occurrences != NULL)
        frequency = matcher->phrase.slop > 0 ? frequency_with_slop(matcher, match_doc, occurrences)
                                             : (float)exact_frequency(matcher, match_doc, occurrences);
    arena_rewind(&match_doc->arena, mark);
    return frequency;
}
