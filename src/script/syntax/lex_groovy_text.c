/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's texts: 'plain', "with ${values}", three quotes, /slashes/ and $/dollars/$.
 *
 * A text with values becomes several tokens: the part before the first value, the tokens of the
 * value, the parts between values, the last part. A value is a name with dots, or a block.
 */
#include "script/syntax/lex_groovy.h"

#include <ctype.h>

static const char *const closings[] = {"'", "'''", "\"", "\"\"\"", "/", "/$"};
static const char *const openings[] = {"'", "'''", "\"", "\"\"\"", "/", "$/"};

static bool has_values(enum lex_quote quote)
{
    return quote >= LEX_DOUBLE;
}

static bool has_lines(enum lex_quote quote)
{
    return quote != LEX_SINGLE && quote != LEX_DOUBLE;
}

/* Returns: whether a value follows the dollar here. */
static bool value_ahead(const struct groovy_lexer *lexer)
{
    if (*lexer->location.at != '$' || lexer->location.at + 1 >= lexer->end)
        return false;
    return lexer->location.at[1] == '{' || lex__letter(lexer, 1);
}

static void append_code(struct buf *out, uint32_t code)
{
    if (code < 0x80) {
        buf_byte(out, (char)code);
    } else if (code < 0x800) {
        buf_byte(out, (char)(0xc0 | code >> 6));
        buf_byte(out, (char)(0x80 | (code & 0x3f)));
    } else if (code < 0x10000) {
        buf_byte(out, (char)(0xe0 | code >> 12));
        buf_byte(out, (char)(0x80 | (code >> 6 & 0x3f)));
        buf_byte(out, (char)(0x80 | (code & 0x3f)));
    } else {
        buf_byte(out, (char)(0xf0 | code >> 18));
        buf_byte(out, (char)(0x80 | (code >> 12 & 0x3f)));
        buf_byte(out, (char)(0x80 | (code >> 6 & 0x3f)));
        buf_byte(out, (char)(0x80 | (code & 0x3f)));
    }
}

static bool fail_unexpected(struct groovy_lexer *lexer)
{
    if (lexer->location.at >= lexer->end)
        return lex__fail(lexer, "unexpected char: 0xFFFF");
    unsigned char c = (unsigned char)*lexer->location.at;
    if (c >= ' ' && c <= '~')
        return lex__fail(lexer, "unexpected char: '%c'", c);
    const char *at = lexer->location.at;
    return lex__fail(lexer, "unexpected char: 0x%X", (unsigned)utf8_next(&at, lexer->end));
}

static bool read_hex(struct groovy_lexer *lexer, uint32_t *ret_code)
{
    *ret_code = 0;
    while (lexer->location.at < lexer->end && *lexer->location.at == 'u')
        lex__skip(lexer);
    for (unsigned i = 0; i < 4; i++) {
        if (lexer->location.at >= lexer->end || !isxdigit((unsigned char)*lexer->location.at))
            return fail_unexpected(lexer);
        char c = (char)tolower((unsigned char)*lexer->location.at);
        *ret_code = *ret_code * 16 + (uint32_t)(c <= '9' ? c - '0' : c - 'a' + 10);
        lex__skip(lexer);
    }
    return true;
}

/* Reads the four digits of a Unicode escape; both escapes of a surrogate pair. */
static bool append_unicode(struct groovy_lexer *lexer, struct buf *out)
{
    uint32_t code, low;
    if (!read_hex(lexer, &code))
        return false;
    bool pair = code >= 0xd800 && code < 0xdc00 && lex__starts(lexer, "\\u");
    if (pair) {
        const struct lex_location before = lexer->location;
        lex__skip(lexer);
        if (!read_hex(lexer, &low))
            return false;
        if (low >= 0xdc00 && low < 0xe000)
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        else
            lexer->location = before;
    }
    append_code(out, code >= 0xd800 && code < 0xe000 ? '?' : code);
    return true;
}

static void append_octal(struct groovy_lexer *lexer, struct buf *out)
{
    unsigned most = *lexer->location.at <= '3' ? 3 : 2;
    uint32_t code = 0;
    for (unsigned i = 0;
         i < most && lexer->location.at < lexer->end && *lexer->location.at >= '0' && *lexer->location.at <= '7'; i++) {
        code = code * 8 + (uint32_t)(*lexer->location.at - '0');
        lex__skip(lexer);
    }
    append_code(out, code);
}

/* Reads an escape in quotes. */
static bool append_escape(struct groovy_lexer *lexer, struct buf *out)
{
    const struct lex_location backslash = lexer->location;
    lex__skip(lexer);
    static const char from[] = "nrtbf\"'\\$", to[] = "\n\r\t\b\f\"'\\$";
    char c = lexer->location.at < lexer->end ? *lexer->location.at : '\0';
    const char *found = c == '\0' ? NULL : strchr(from, c);
    if (found != NULL) {
        buf_byte(out, to[found - from]);
        lex__skip(lexer);
        return true;
    }
    if (c == 'u')
        return append_unicode(lexer, out);
    if (c >= '0' && c <= '7') {
        append_octal(lexer, out);
        return true;
    }
    if (c != '\n' && c != '\r') {
        lexer->location = backslash;
        return fail_unexpected(lexer);
    }
    lex__skip(lexer); /* an escaped end of a line */
    return true;
}

/* Reads one character or escape. */
static bool append_next(struct groovy_lexer *lexer, enum lex_quote quote, struct buf *out)
{
    bool slashy = quote >= LEX_SLASHY;
    if (quote == LEX_DOLLAR_SLASHY && (lex__starts(lexer, "$$") || lex__starts(lexer, "$/"))) {
        lex__skip(lexer);
    } else if (*lexer->location.at == '\\' && !slashy) {
        return append_escape(lexer, out);
    } else if (quote == LEX_SLASHY && lex__starts(lexer, "\\/")) {
        lex__skip(lexer);
    } else if (slashy && lex__starts(lexer, "\\\n")) {
        lex__skip(lexer);
        lex__skip(lexer);
        return true;
    }
    const char *from = lexer->location.at;
    lex__skip(lexer);
    buf_append(out, from, (size_t)(lexer->location.at - from));
    return true;
}

static bool fail_unterminated(struct groovy_lexer *lexer, enum lex_quote quote)
{
    char shown[8];
    if (quote == LEX_SINGLE)
        return lex__fail(lexer, "expecting ''', found %s", lex__shown(lexer, shown));
    if (quote == LEX_TRIPLE_SINGLE)
        return lex__fail(lexer, "expecting ''', found '<EOF>'");
    return fail_unexpected(lexer);
}

/*
 * Reads up to the end or the next value. Returns: false on an error. *ret_value: a value follows.
 */
static bool read_part(struct groovy_lexer *lexer, enum lex_quote quote, struct buf *out, bool *ret_value)
{
    *ret_value = false;
    for (;;) {
        if (lexer->location.at >= lexer->end ||
            (!has_lines(quote) && (*lexer->location.at == '\n' || *lexer->location.at == '\r')))
            return fail_unterminated(lexer, quote);
        bool escaped = quote == LEX_DOLLAR_SLASHY && (lex__starts(lexer, "$$") || lex__starts(lexer, "$/"));
        if (lex__starts(lexer, closings[quote])) {
            /* In a run of more than three quotes, the last three end the text. */
            bool more = (quote == LEX_TRIPLE_SINGLE || quote == LEX_TRIPLE_DOUBLE) &&
                        lexer->location.at + 3 < lexer->end && lexer->location.at[3] == lexer->location.at[0];
            if (!more)
                return true;
        }
        if (has_values(quote) && !escaped && value_ahead(lexer)) {
            *ret_value = true;
            return true;
        }
        if (*lexer->location.at == '$' && (quote == LEX_DOUBLE || quote == LEX_TRIPLE_DOUBLE))
            return false;
        if (!append_next(lexer, quote, out))
            return false;
    }
}

/*
 * A dollar without a value is reported at the token before the text, where the original's parser is
 * then.
 */
static bool bare_dollar(struct groovy_lexer *lexer)
{
    struct compiler *compiler = lexer->compiler;
    if (compiler->error.set)
        return false;
    const struct token *last = compiler->token_count > 0 ? &compiler->tokens[compiler->token_count - 1] : NULL;
    uint32_t line = last != NULL ? last->line : lexer->location.line,
             column = last != NULL ? last->column : lexer->location.column;
    explain_groovy(compiler, line, column,
                   "illegal string body character after dollar sign;\n   solution: either escape a literal dollar sign "
                   "\"\\$5\" or bracket the value expression \"${5}\"");
    return false;
}

/* A value by name: a, a.b, this. */
static bool read_name_value(struct groovy_lexer *lexer)
{
    for (;;) {
        if (!lex__name(lexer, true))
            return false;
        if (lexer->location.at >= lexer->end || *lexer->location.at != '.' || !lex__letter(lexer, 1))
            return true;
        struct token dot = lex__begin(lexer);
        lex__skip(lexer);
        if (!lex__push(lexer, dot, TOKEN_SYMBOL, SLICE_LIT(".")))
            return false;
    }
}

/* Opens the block of a value; after its closing brace the text continues. */
static bool open_brace_value(struct groovy_lexer *lexer, enum lex_quote quote)
{
    struct token brace = lex__begin(lexer);
    lex__skip(lexer);
    if (++lexer->level >= LEX_LEVELS_MAX) {
        compile_fail(lexer->compiler, CLASS_STACK_OVERFLOW_ERROR, -1, "nested deeper than %u", COMPILE_NESTING_MAX);
        return false;
    }
    lexer->levels[lexer->level] = (struct lex_level){.in_text = true, .quote = quote};
    return lex__push(lexer, brace, TOKEN_SYMBOL, SLICE_LIT("{"));
}

static void release_buf(struct buf *buf)
{
    buf_deinit(buf);
}

/* Reads one part of a text and the dollar or the quotes after it. */
static bool lex_part(struct groovy_lexer *lexer, enum lex_quote quote, bool begins, bool *ret_value)
{
    struct token token = lex__begin(lexer);
    tl_cleanup(release_buf) struct buf out = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; begins && i < strlen(openings[quote]); i++)
        lex__skip(lexer);
    if (!read_part(lexer, quote, &out, ret_value))
        return bare_dollar(lexer);
    struct slice text = arena_copy(lexer->compiler->arena, buf_as_slice(&out));
    size_t closing_len = *ret_value ? 1 : strlen(closings[quote]);
    for (size_t i = 0; i < closing_len; i++)
        lex__skip(lexer);
    enum token_kind kind = *ret_value ? (begins ? TOKEN_GSTRING_BEGIN : TOKEN_GSTRING_MIDDLE)
                                      : (begins ? TOKEN_STRING : TOKEN_GSTRING_END);
    return lex__push(lexer, token, kind, text);
}

bool lex__text(struct groovy_lexer *lexer, enum lex_quote quote, bool begins)
{
    for (bool value = true; value; begins = false) {
        if (!lex_part(lexer, quote, begins, &value))
            return false;
        if (value && *lexer->location.at == '{')
            return open_brace_value(lexer, quote);
        if (value && !read_name_value(lexer))
            return false;
    }
    return true;
}
