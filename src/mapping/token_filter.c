/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Token filters: case, accents, stop words; see analysis_internal.h.
 *
 * Case is mapped one character to one, as Lucene does with Java's tables, for the letters of
 * LETTER_CASE_TOKENS. Letters of other alphabets are not changed.
 */
#include "base/check.h"
#include "base/letter_case.h"
#include "base/siphash.h"
#include "json/each.h"
#include "mapping/analysis_internal.h"

/*
 * A set of words. Its table has at least twice as many places as words, so that a token is compared with few of them
 * whatever the words are.
 */
struct stopwords {
    const struct slice *words;
    size_t count;
    uint16_t *table;   /* open addressing: number of a word + 1; 0: empty; NULL: the words are compared one by one */
    size_t table_size; /* a power of two */
    size_t longest;    /* bytes of the longest word */
};

static const struct slice english[] = {
    {"a", 1},    {"an", 2},  {"and", 3},   {"are", 3},  {"as", 2},    {"at", 2},    {"be", 2},
    {"but", 3},  {"by", 2},  {"for", 3},   {"if", 2},   {"in", 2},    {"into", 4},  {"is", 2},
    {"it", 2},   {"no", 2},  {"not", 3},   {"of", 2},   {"on", 2},    {"or", 2},    {"such", 4},
    {"that", 4}, {"the", 3}, {"their", 5}, {"then", 4}, {"there", 5}, {"these", 5}, {"they", 4},
    {"this", 4}, {"to", 2},  {"was", 3},   {"will", 4}, {"with", 4},
};
const struct stopwords analysis__english_stopwords = {
    .words = english, .count = sizeof english / sizeof *english, .longest = 5};

/* The letters U+00C0 to U+017F without their diacritics; NULL: unchanged. */
static const char *const folded[] = {
    "A", "A", "A",  "A",  "A", "A", "AE", "C",  "E", "E", "E",  "E",  "I", "I", "I",  "I",  "D", "N",  "O",  "O",
    "O", "O", "O",  NULL, "O", "U", "U",  "U",  "U", "Y", "TH", "ss", "a", "a", "a",  "a",  "a", "a",  "ae", "c",
    "e", "e", "e",  "e",  "i", "i", "i",  "i",  "d", "n", "o",  "o",  "o", "o", "o",  NULL, "o", "u",  "u",  "u",
    "u", "y", "th", "y",  "A", "a", "A",  "a",  "A", "a", "C",  "c",  "C", "c", "C",  "c",  "C", "c",  "D",  "d",
    "D", "d", "E",  "e",  "E", "e", "E",  "e",  "E", "e", "E",  "e",  "G", "g", "G",  "g",  "G", "g",  "G",  "g",
    "H", "h", "H",  "h",  "I", "i", "I",  "i",  "I", "i", "I",  "i",  "I", "i", "IJ", "ij", "J", "j",  "K",  "k",
    "q", "L", "l",  "L",  "l", "L", "l",  "L",  "l", "L", "l",  "N",  "n", "N", "n",  "N",  "n", "'n", "N",  "n",
    "O", "o", "O",  "o",  "O", "o", "OE", "oe", "R", "r", "R",  "r",  "R", "r", "S",  "s",  "S", "s",  "S",  "s",
    "S", "s", "T",  "t",  "T", "t", "T",  "t",  "U", "u", "U",  "u",  "U", "u", "U",  "u",  "U", "u",  "U",  "u",
    "W", "w", "Y",  "y",  "Y", "Z", "z",  "Z",  "z", "Z", "z",  "s",
};

_Static_assert(sizeof folded / sizeof *folded == 0x180 - 0xc0, "one entry for each letter");

static void put_folded(struct buf *buf, uint32_t c)
{
    enum { FIRST = 0xc0 };
    const char *plain = c >= FIRST && c < FIRST + sizeof folded / sizeof *folded ? folded[c - FIRST] : NULL;
    if (c == 0x2018 || c == 0x2019)
        plain = "'";
    else if (c == 0x201c || c == 0x201d)
        plain = "\"";
    else if (c >= 0x2010 && c <= 0x2015)
        plain = "-";
    if (plain != NULL)
        buf_append(buf, plain, strlen(plain));
    else
        utf8__put(buf, c);
}

static bool any_in(struct slice text, char low, char high)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] >= low && text.data[i] <= high)
            return true;
    }
    return false;
}

/* Returns: an ASCII text in upper or lower case; `text` itself if nothing changes. */
static struct slice ascii_case(struct slice text, bool up, struct arena *arena)
{
    if (up ? !any_in(text, 'a', 'z') : !any_in(text, 'A', 'Z'))
        return text;
    char *copy = arena_alloc(arena, text.len);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool change = up ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
        copy[i] = change ? (char)(c ^ 0x20) : c;
    }
    return slice_make(copy, text.len);
}

/* Returns: a copy of any text, with each character mapped by the filter. */
static struct slice map_characters(struct slice text, enum token_filter_kind kind, struct arena *arena)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    while (text.len > 0) {
        uint32_t c = utf8__take(&text);
        if (kind == FILTER_ASCIIFOLDING)
            put_folded(&buf, c);
        else
            utf8__put(&buf,
                      kind == FILTER_LOWERCASE ? case_lower(LETTER_CASE_TOKENS, c) : case_upper(LETTER_CASE_TOKENS, c));
    }
    struct slice copy = arena_copy(arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return copy;
}

static struct slice reverse_text(struct slice text, struct arena *arena)
{
    char *copy = arena_alloc(arena, text.len);
    struct slice result = slice_make(copy, text.len);
    while (text.len > 0) {
        struct slice rest = text;
        utf8__take(&rest);
        memcpy(copy + rest.len, text.data, text.len - rest.len);
        text = rest;
    }
    return result;
}

static struct slice change_case(struct slice text, enum token_filter_kind kind, struct arena *arena)
{
    return utf8__is_ascii(text) ? ascii_case(text, kind == FILTER_UPPERCASE, arena) : map_characters(text, kind, arena);
}

/* Returns: the place in the table of a word, or where it would be. */
static uint16_t *stopword_place(const struct stopwords *set, struct slice word)
{
    size_t at = siphash_keyed(word) & (set->table_size - 1);
    while (set->table[at] != 0 && !slice_equal(set->words[set->table[at] - 1], word))
        at = (at + 1) & (set->table_size - 1);
    return &set->table[at];
}

static bool has_stopword(const struct stopwords *set, struct slice word)
{
    if (set->table != NULL)
        return *stopword_place(set, word) != 0;
    for (size_t i = 0; i < set->count; i++) {
        if (slice_equal(set->words[i], word))
            return true;
    }
    return false;
}

const struct stopwords *stopwords__new(struct arena *arena, yyjson_val *list)
{
    size_t size = yyjson_is_arr(list) ? yyjson_arr_size(list) : list != NULL;
    REQUIRE(size <= ANALYSIS_STOPWORDS_MAX);
    struct stopwords *set = arena_zalloc(arena, sizeof *set);
    struct slice *words = arena_alloc(arena, (size + 1) * sizeof *words);
    set->words = words;
    set->table_size = 2;
    while (set->table_size < 2 * size)
        set->table_size *= 2;
    set->table = arena_zalloc(arena, set->table_size * sizeof *set->table);
    yyjson_val *item = yyjson_is_arr(list) ? yyjson_arr_get_first(list) : list;
    for (size_t i = 0; i < size; i++) {
        struct slice word = json_slice(item);
        uint16_t *place = stopword_place(set, word);
        item = unsafe_yyjson_get_next(item);
        if (*place != 0)
            continue;
        words[set->count++] = arena_copy(arena, word);
        *place = (uint16_t)set->count;
        set->longest = word.len > set->longest ? word.len : set->longest;
    }
    return set;
}

/* A token that equals a stop word but for case has at most four times as many bytes. */
static bool is_stopword(const struct token_filter *filter, struct slice token, struct arena *arena)
{
    if (token.len / 4 > filter->stopwords->longest)
        return false; /* skip the comparison: a token of a path may be long */
    if (!filter->ignore_case)
        return token.len <= filter->stopwords->longest && has_stopword(filter->stopwords, token);
    struct arena_mark mark = arena_mark(arena);
    bool there = has_stopword(filter->stopwords, change_case(token, FILTER_LOWERCASE, arena));
    arena_rewind(arena, mark);
    return there;
}

bool token_filter__is_by_character(const struct token_filter *filter)
{
    return filter->kind == FILTER_LOWERCASE || filter->kind == FILTER_UPPERCASE ||
           filter->kind == FILTER_ASCIIFOLDING || filter->kind == FILTER_NONE;
}

bool token_filter__run(const struct token_filter *filter, struct slice *token, struct arena *arena)
{
    switch (filter->kind) {
    case FILTER_LOWERCASE:
    case FILTER_UPPERCASE: *token = change_case(*token, filter->kind, arena); return true;
    case FILTER_ASCIIFOLDING:
        if (!utf8__is_ascii(*token))
            *token = map_characters(*token, FILTER_ASCIIFOLDING, arena);
        return true;
    case FILTER_TRIM: *token = slice_trim(*token); return true;
    case FILTER_STOP: return !is_stopword(filter, *token, arena);
    case FILTER_LENGTH: {
        size_t characters = utf8__count(*token);
        return characters >= filter->min && characters <= filter->max;
    }
    case FILTER_REVERSE: *token = reverse_text(*token, arena); return true;
    case FILTER_TRUNCATE: *token = utf8__head(*token, filter->max); return true;
    case FILTER_NONE: break;
    }
    return true;
}
