/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cutting texts into tokens; see analysis_internal.h.
 *
 * The standard tokenizer follows the word breaks of Unicode (UAX 29) as far as they matter to names and
 * prose: letters and digits go together, apostrophe and full stop join letters, comma and full stop join
 * digits, the underscore joins all, and each ideograph is a word.
 */
#include "mapping/analysis_internal.h"

enum class { OTHER, LETTER, DIGIT, JOINER, IDEOGRAPH };

static bool in(uint32_t c, uint32_t low, uint32_t high)
{
    return c >= low && c <= high;
}

static bool is_ideograph(uint32_t c)
{
    return in(c, 0x2e80, 0x2fdf) || in(c, 0x3040, 0x309f) || in(c, 0x3400, 0x4dbf) || in(c, 0x4e00, 0x9fff) ||
           in(c, 0xf900, 0xfaff) || in(c, 0x20000, 0x3ffff);
}

bool analysis_is_ideograph(struct slice text)
{
    return text.len > 0 && is_ideograph(utf8__take(&text));
}

/* Punctuation and symbols beyond ASCII: what is none of these is taken for a letter. */
static bool is_symbol(uint32_t c)
{
    return in(c, 0x80, 0xa9) || in(c, 0xab, 0xb4) || in(c, 0xb6, 0xb9) || in(c, 0xbb, 0xbf) || c == 0xd7 || c == 0xf7 ||
           in(c, 0x2000, 0x206f) || in(c, 0x20a0, 0x20cf) || in(c, 0x2190, 0x2bff) || in(c, 0x3000, 0x3004) ||
           in(c, 0x3008, 0x3020) || in(c, 0xfe10, 0xfe6f) || in(c, 0xff01, 0xff0f) || in(c, 0xff1a, 0xff20) ||
           in(c, 0xff3b, 0xff40) || in(c, 0xff5b, 0xff65) || in(c, 0xe000, 0xf8ff) || in(c, 0x1f000, 0x1faff) ||
           in(c, 0xfff0, 0xffff) || c == 0xfeff;
}

static enum class classify(uint32_t c) {
    if (c < 0x80){if (in(c | 0x20, 'a', 'z')) return LETTER; return in(c, '0', '9') ? DIGIT
                                                                    : c == '_'      ? JOINER
                                                                                    : OTHER;}
return is_symbol(c) ? OTHER : is_ideograph(c) ? IDEOGRAPH : LETTER;
}

static bool is_space(uint32_t c)
{
    return c == ' ' || in(c, 9, 13) || in(c, 0x1c, 0x1f) || c == 0x85 || c == 0x1680 ||
           (in(c, 0x2000, 0x200a) && c != 0x2007) || c == 0x2028 || c == 0x2029 || c == 0x205f || c == 0x3000;
}

/* Hands out tokens, cutting those that are too long. */
struct output {
    analysis_visit *visit;
    void *context;
    struct slice text;
    uint32_t position;
    size_t characters_max;
};

static bool put(struct output *out, size_t start, size_t end)
{
    while (start < end) {
        struct slice rest = slice_make(out->text.data + start, end - start);
        struct slice piece = utf8__head(rest, out->characters_max);
        struct analysis_token token = {piece, out->position++, (uint32_t)start, (uint32_t)(start + piece.len)};
        if (!out->visit(out->context, &token))
            return false;
        start += piece.len;
    }
    return true;
}

static size_t offset_of(const struct output *out, struct slice rest)
{
    return out->text.len - rest.len;
}

/* Whether `c` between two characters of class `before` and `after` keeps them one word. */
static bool joins(uint32_t c, enum class before, enum class after)
{
    if (before == LETTER && after == LETTER)
        return c == '\'' || c == '.' || c == ':' || c == 0x2019 || c == 0xb7;
    if (before == DIGIT && after == DIGIT)
        return c == '.' || c == ',' || c == ';' || c == '\'';
    return false;
}

/* Moves `rest` behind the word that begins with a character of class `last`. */
static void skip_word(struct slice *rest, enum class last)
{
    while (rest->len > 0) {
        struct slice next = *rest;
        uint32_t c = utf8__take(&next);
        enum class kind = classify(c);
        if (kind == OTHER) {
            struct slice after = next;
            enum class following = after.len == 0 ? OTHER : classify(utf8__take(&after));
            if (!joins(c, last, following))
                return;
            last = following;
            *rest = after;
            continue;
        }
        if (kind == IDEOGRAPH)
            return;
        last = kind;
        *rest = next;
    }
}

static bool run_standard(struct output *out)
{
    struct slice rest = out->text;
    while (rest.len > 0) {
        size_t start = offset_of(out, rest);
        enum class kind = classify(utf8__take(&rest));
        if (kind == OTHER)
            continue;
        bool word = kind != JOINER; /* underscores alone are no word */
        if (kind != IDEOGRAPH)
            skip_word(&rest, kind);
        for (size_t i = start; !word && i < offset_of(out, rest); i++)
            word = out->text.data[i] != '_';
        if (word && !put(out, start, offset_of(out, rest)))
            return false;
    }
    return true;
}

/* Runs of characters that `letters` says belong: letters, or anything but white space. */
static bool run_runs(struct output *out, bool letters)
{
    struct slice rest = out->text;
    size_t start = SIZE_MAX;
    for (;;) {
        size_t at = offset_of(out, rest);
        uint32_t c = rest.len == 0 ? ' ' : utf8__take(&rest);
        enum class kind = classify(c);
        bool belongs = letters ? kind == LETTER || kind == IDEOGRAPH : !is_space(c);
        if (belongs && start == SIZE_MAX)
            start = at;
        if (!belongs && start != SIZE_MAX) {
            if (!put(out, start, at))
                return false;
            start = SIZE_MAX;
        }
        if (at == out->text.len)
            return true;
    }
}

/*
 * A text whose pieces are all its heads, or all its tails. Together they are as long as its square, so nothing is done piece by
 * piece: the delimiter is replaced, and characters are changed, in the text as a whole, and a piece is a part of that. A piece
 * that is longer than any term of Lucene is none, so no more is looked at than the longest can come from.
 */
struct path {
    struct output *out;
    const struct analyzer *analyzer;
    struct slice text;
    size_t before;    /* bytes of the value in front of it */
    struct slice cut; /* with its delimiters replaced */
    struct slice shown;
    bool even; /* what is shown of a character has as many bytes as the character */
};

enum { CHANGED_LESS_MAX = 4 }; /* a character is changed to no less than a fourth of its bytes */
#define PATH_LOOKED_AT_MAX (CHANGED_LESS_MAX * (ANALYSIS_PATH_BYTES_MAX + 1))

/* A place in the text, and the same one in what is shown. */
struct mark {
    size_t at;
    size_t shown;
};

static struct slice changed(const struct path *path, struct slice part, struct arena *arena)
{
    for (size_t i = 0; i < tokenizer__applied_filters(path->analyzer); i++)
        (void)token_filter__run(&path->analyzer->filters[i], &part, arena);
    return part;
}

static struct slice replaced(const struct tokenizer *tokenizer, struct slice text, struct arena *arena)
{
    if (tokenizer->replacement == tokenizer->delimiter)
        return text;
    char *copy = arena_alloc(arena, text.len);
    for (size_t i = 0; i < text.len; i++)
        copy[i] = text.data[i] == tokenizer->delimiter ? tokenizer->replacement : text.data[i];
    return slice_make(copy, text.len);
}

static void path_prepare(struct path *path, struct slice text, struct arena *arena)
{
    path->text = text;
    path->before = (size_t)(text.data - path->out->text.data);
    path->cut = replaced(&path->analyzer->tokenizer, text, arena);
    path->shown = changed(path, path->cut, arena);
    path->even = tokenizer__applied_filters(path->analyzer) == 0 || utf8__is_ascii(path->cut);
}

static void move(const struct path *path, struct mark *mark, size_t to)
{
    size_t moved = to - mark->at;
    if (!path->even) {
        struct arena scratch = ARENA_INIT;
        moved = changed(path, slice_make(path->cut.data + mark->at, moved), &scratch).len;
        arena_deinit(&scratch);
    }
    *mark = (struct mark){to, mark->shown + moved};
}

/* All pieces stand at one position. */
static bool put_path(const struct path *path, const struct mark *start, const struct mark *end)
{
    if (end->shown - start->shown > ANALYSIS_PATH_BYTES_MAX)
        return true;
    struct slice piece = slice_make(path->shown.data + start->shown, end->shown - start->shown);
    struct analysis_token token = {piece, 0, (uint32_t)(path->before + start->at), (uint32_t)(path->before + end->at)};
    return path->out->visit(path->out->context, &token);
}

/* Returns: the place of the first delimiter behind `at`, or the length. */
static size_t next_delimiter(struct slice text, char delimiter, size_t at)
{
    return at + slice_find_byte(slice_from_offset(text, at), delimiter);
}

/* "/a/b/c": "/a", "/a/b", "/a/b/c"; each step skipped takes a name off the front. */
static bool run_heads(struct path *path, struct arena *arena)
{
    const struct tokenizer *tokenizer = &path->analyzer->tokenizer;
    struct slice text = path->out->text;
    size_t first = 0;
    for (size_t i = 0; i < tokenizer->skip; i++)
        first = first < text.len ? next_delimiter(text, tokenizer->delimiter, first + 1) : first;
    text = slice_from_offset(text, first);
    text.len = text.len < PATH_LOOKED_AT_MAX ? text.len : PATH_LOOKED_AT_MAX;
    path_prepare(path, text, arena);

    const struct mark start = {0, 0};
    for (struct mark end = start; end.at < text.len;) {
        move(path, &end, next_delimiter(text, tokenizer->delimiter, end.at + 1));
        if (!put_path(path, &start, &end))
            return false;
    }
    return true;
}

/* "/a/b/c": "/a/b/c", "a/b/c", "b/c", "c"; each step skipped takes a name off the end. */
static bool run_tails(struct path *path, struct arena *arena)
{
    const struct tokenizer *tokenizer = &path->analyzer->tokenizer;
    struct slice text = path->out->text;
    for (size_t i = 0; i < tokenizer->skip && text.len > 0; i++) {
        text.len -= text.data[text.len - 1] == tokenizer->delimiter;
        while (text.len > 0 && text.data[text.len - 1] != tokenizer->delimiter)
            text.len--;
    }
    if (text.len > PATH_LOOKED_AT_MAX) {
        size_t first = next_delimiter(text, tokenizer->delimiter, text.len - PATH_LOOKED_AT_MAX);
        text = slice_from_offset(text, first + (first < text.len));
    }
    path_prepare(path, text, arena);

    const struct mark end = {text.len, path->shown.len};
    for (struct mark start = {0, 0}; start.at < text.len;) {
        if (!put_path(path, &start, &end))
            return false;
        size_t next = next_delimiter(text, tokenizer->delimiter, start.at) + 1;
        move(path, &start, next < text.len ? next : text.len);
    }
    return true;
}

size_t tokenizer__applied_filters(const struct analyzer *analyzer)
{
    size_t count = 0;
    if (analyzer->tokenizer.kind == TOKENIZER_PATH)
        while (count < analyzer->filter_count && token_filter__is_by_character(&analyzer->filters[count]))
            count++;
    return count;
}

bool tokenizer__run(const struct analyzer *analyzer, struct slice text, struct arena *arena, analysis_visit *visit,
                    void *context)
{
    const struct tokenizer *tokenizer = &analyzer->tokenizer;
    struct output out = {visit, context, text, 0, tokenizer->token_characters_max};
    switch (tokenizer->kind) {
    case TOKENIZER_STANDARD: return run_standard(&out);
    case TOKENIZER_LETTER:
    case TOKENIZER_WHITESPACE: return run_runs(&out, tokenizer->kind == TOKENIZER_LETTER);
    case TOKENIZER_PATH: {
        struct path path = {.out = &out, .analyzer = analyzer};
        return tokenizer->reverse ? run_tails(&path, arena) : run_heads(&path, arena);
    }
    case TOKENIZER_KEYWORD: break;
    }
    struct analysis_token token = {text, 0, 0, (uint32_t)text.len};
    return text.len == 0 || visit(context, &token);
}
