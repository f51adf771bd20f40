/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokenizers; see analysis_internal.h.
 *
 * The standard tokenizer approximates the word breaks of Unicode (UAX 29) for names and prose.
 * Words consist of letters and digits. Apostrophe and full stop join letters, comma and full stop
 * join digits, the underscore joins both, and each ideograph is a word.
 */
#include "mapping/analysis_internal.h"

enum class { OTHER, LETTER, DIGIT, JOINER, IDEOGRAPH };

static bool in_range(uint32_t c, uint32_t low, uint32_t high)
{
    return c >= low && c <= high;
}

static bool is_ideograph(uint32_t c)
{
    return in_range(c, 0x2e80, 0x2fdf) || in_range(c, 0x3040, 0x309f) || in_range(c, 0x3400, 0x4dbf) ||
           in_range(c, 0x4e00, 0x9fff) || in_range(c, 0xf900, 0xfaff) || in_range(c, 0x20000, 0x3ffff);
}

bool analysis_is_ideograph(struct slice text)
{
    return text.len > 0 && is_ideograph(utf8__take(&text));
}

/*
 * Returns: whether a character beyond ASCII is punctuation or a symbol; all others count as
 * letters.
 */
static bool is_symbol(uint32_t c)
{
    return in_range(c, 0x80, 0xa9) || in_range(c, 0xab, 0xb4) || in_range(c, 0xb6, 0xb9) || in_range(c, 0xbb, 0xbf) ||
           c == 0xd7 || c == 0xf7 || in_range(c, 0x2000, 0x206f) || in_range(c, 0x20a0, 0x20cf) ||
           in_range(c, 0x2190, 0x2bff) || in_range(c, 0x3000, 0x3004) || in_range(c, 0x3008, 0x3020) ||
           in_range(c, 0xfe10, 0xfe6f) || in_range(c, 0xff01, 0xff0f) || in_range(c, 0xff1a, 0xff20) ||
           in_range(c, 0xff3b, 0xff40) || in_range(c, 0xff5b, 0xff65) || in_range(c, 0xe000, 0xf8ff) ||
           in_range(c, 0x1f000, 0x1faff) || in_range(c, 0xfff0, 0xffff) || c == 0xfeff;
}

static enum class classify(uint32_t c) {
    if (c < 0x80){if (in_range(c | 0x20, 'a', 'z')) return LETTER; return in_range(c, '0', '9') ? DIGIT
                                                                          : c == '_'            ? JOINER
                                                                                                : OTHER;}
return is_symbol(c) ? OTHER : is_ideograph(c) ? IDEOGRAPH : LETTER;
}

static bool is_space(uint32_t c)
{
    return c == ' ' || in_range(c, 9, 13) || in_range(c, 0x1c, 0x1f) || c == 0x85 || c == 0x1680 ||
           (in_range(c, 0x2000, 0x200a) && c != 0x2007) || c == 0x2028 || c == 0x2029 || c == 0x205f || c == 0x3000;
}

/* The destination of tokens. */
struct output {
    analysis_visit *visit;
    void *context;
    struct slice text;
    uint32_t position;     /* of the next token */
    size_t characters_max; /* longer tokens are split */
};

/*
 * Visits the token at [start, end), split if it is too long. Returns: false if a visit stopped it.
 */
static bool put_token(struct output *out, size_t start, size_t end)
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

/* Returns: the offset of `rest`, a suffix of the text. */
static size_t offset_of(const struct output *out, struct slice rest)
{
    return out->text.len - rest.len;
}

/* Returns: whether `c` joins its neighbours, of class `before` and `after`, to one word. */
static bool joins_words(uint32_t c, enum class before, enum class after)
{
    if (before == LETTER && after == LETTER)
        return c == '\'' || c == '.' || c == ':' || c == 0x2019 || c == 0xb7;
    if (before == DIGIT && after == DIGIT)
        return c == '.' || c == ',' || c == ';' || c == '\'';
    return false;
}

/* Advances `rest` to the end of a word whose consumed first character has class `last`. */
static void skip_word(struct slice *rest, enum class last)
{
    while (rest->len > 0) {
        struct slice next = *rest;
        uint32_t c = utf8__take(&next);
        enum class kind = classify(c);
        if (kind == OTHER) {
            struct slice after = next;
            enum class following = after.len == 0 ? OTHER : classify(utf8__take(&after));
            if (!joins_words(c, last, following))
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
        bool word = kind != JOINER; /* a run of underscores is not a word */
        if (kind != IDEOGRAPH)
            skip_word(&rest, kind);
        for (size_t i = start; !word && i < offset_of(out, rest); i++)
            word = out->text.data[i] != '_';
        if (word && !put_token(out, start, offset_of(out, rest)))
            return false;
    }
    return true;
}

/* Visits maximal runs of letters, or of anything but white space. */
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
            if (!put_token(out, start, at))
                return false;
            start = SIZE_MAX;
        }
        if (at == out->text.len)
            return true;
    }
}

/*
 * The state of path_hierarchy, whose tokens are prefixes of the text, or suffixes with `reverse`.
 * Their total length is quadratic in that of the text. So the delimiter is replaced, and the
 * leading filters are applied, once in the whole text, and each token is a slice of the result.
 * Tokens longer than a term of Lucene are dropped, so only the part of the text from which shorter
 * ones can come is processed.
 */
struct path {
    struct output *out;
    const struct analyzer *analyzer;
    struct slice text;  /* the part of the value that is tokenized */
    size_t before;      /* bytes of the value before `text` */
    struct slice cut;   /* `text` with its delimiters replaced */
    struct slice shown; /* `cut` with the filters applied; tokens are slices of it */
    bool even;          /* every character has the same length in `cut` and `shown` */
};

enum { CHANGED_LESS_MAX = 4 }; /* filters shorten a character to no less than 1/4 of its bytes */
#define PATH_LOOKED_AT_MAX (CHANGED_LESS_MAX * (ANALYSIS_PATH_BYTES_MAX + 1))

/* A position, as an offset in path.text and the corresponding one in path.shown. */
struct text_position {
    size_t at;
    size_t shown;
};

/* Returns: `part` after the filters that the tokenizer applies. */
static struct slice filtered_part(const struct path *path, struct slice part, struct arena *arena)
{
    for (size_t i = 0; i < tokenizer__applied_filters(path->analyzer); i++)
        (void)token_filter__run(&path->analyzer->filters[i], &part, arena);
    return part;
}

/* Returns: `text` with its delimiters replaced. */
static struct slice replace_delimiters(const struct tokenizer *tokenizer, struct slice text, struct arena *arena)
{
    if (tokenizer->replacement == tokenizer->delimiter)
        return text;
    char *copy = arena_alloc(arena, text.len);
    for (size_t i = 0; i < text.len; i++)
        copy[i] = text.data[i] == tokenizer->delimiter ? tokenizer->replacement : text.data[i];
    return slice_make(copy, text.len);
}

/* Sets the part of the value that is tokenized, and computes its replaced and filtered forms. */
static void path_prepare(struct path *path, struct slice text, struct arena *arena)
{
    path->text = text;
    path->before = (size_t)(text.data - path->out->text.data);
    path->cut = replace_delimiters(&path->analyzer->tokenizer, text, arena);
    path->shown = filtered_part(path, path->cut, arena);
    path->even = tokenizer__applied_filters(path->analyzer) == 0 || utf8__is_ascii(path->cut);
}

/* Advances a position to offset `to` of path.text. */
static void move_position(const struct path *path, struct text_position *position, size_t to)
{
    size_t moved = to - position->at;
    if (!path->even) {
        struct arena scratch = ARENA_INIT;
        moved = filtered_part(path, slice_make(path->cut.data + position->at, moved), &scratch).len;
        arena_deinit(&scratch);
    }
    *position = (struct text_position){to, position->shown + moved};
}

/* Visits one token, unless it is too long. All tokens have position 0. */
static bool put_path(const struct path *path, const struct text_position *start, const struct text_position *end)
{
    if (end->shown - start->shown > ANALYSIS_PATH_BYTES_MAX)
        return true;
    struct slice piece = slice_make(path->shown.data + start->shown, end->shown - start->shown);
    struct analysis_token token = {piece, 0, (uint32_t)(path->before + start->at), (uint32_t)(path->before + end->at)};
    return path->out->visit(path->out->context, &token);
}

/* Returns: the offset of the first delimiter from `at` on, or the length of the text. */
static size_t next_delimiter(struct slice text, char delimiter, size_t at)
{
    return at + slice_find_byte(slice_from_offset(text, at), delimiter);
}

/* Visits prefixes: "/a/b/c" gives "/a", "/a/b", "/a/b/c". `skip` removes names at the front. */
static bool run_heads(struct path *path, struct arena *arena)
{
    const struct tokenizer *tokenizer = &path->analyzer->tokenizer;
    struct slice text = path->out->text;
    size_t first = 0;
    for (size_t i = 0; i < tokenizer->skip && first < text.len; i++)
        first = next_delimiter(text, tokenizer->delimiter, first + 1);
    text = slice_from_offset(text, first);
    text.len = text.len < PATH_LOOKED_AT_MAX ? text.len : PATH_LOOKED_AT_MAX;
    path_prepare(path, text, arena);

    const struct text_position start = {0, 0};
    for (struct text_position end = start; end.at < text.len;) {
        move_position(path, &end, next_delimiter(text, tokenizer->delimiter, end.at + 1));
        if (!put_path(path, &start, &end))
            return false;
    }
    return true;
}

/*
 * Visits suffixes: "/a/b/c" gives "/a/b/c", "a/b/c", "b/c", "c". `skip` removes names at the end.
 */
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

    const struct text_position end = {text.len, path->shown.len};
    for (struct text_position start = {0, 0}; start.at < text.len;) {
        if (!put_path(path, &start, &end))
            return false;
        size_t next = next_delimiter(text, tokenizer->delimiter, start.at) + 1;
        move_position(path, &start, next < text.len ? next : text.len);
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
