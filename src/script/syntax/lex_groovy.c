/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groovy's tokens.
 *
 * Ends of lines are tokens, except inside parentheses and brackets; following blank lines and
 * comments are part of the token. Whether a slash divides or begins a text depends on the token
 * before it. See lex_groovy_text.c for texts.
 */
#include "script/syntax/lex_groovy.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const keywords[] = {
    "as",        "assert",  "break",      "case",     "catch",        "class",      "const",     "continue",
    "default",   "do",      "else",       "enum",     "extends",      "false",      "finally",   "for",
    "goto",      "if",      "implements", "import",   "in",           "instanceof", "interface", "new",
    "null",      "package", "return",     "super",    "switch",       "this",       "throw",     "throws",
    "trait",     "true",    "try",        "while",    "final",        "abstract",   "static",    "private",
    "protected", "public",  "native",     "strictfp", "synchronized", "threadsafe", "transient", "volatile"};
static const char *const primitives[] = {"void", "boolean", "byte", "short", "char", "int", "long", "float", "double"};
/* Longer symbols before their prefixes. */
static const char *const symbols[] = {
    ">>>=", "<<=", ">>=", ">>>", "**=", "..<", "...", "<=>", "===", "!==", "==~", "->", "..", "**", "*.", "?.",
    "?:",   ".&",  "++",  "--",  "+=",  "-=",  "*=",  "/=",  "%=",  "&=",  "^=",  "|=", "=~", "==", "!=", "<=",
    ">=",   "<<",  ">>",  "&&",  "||",  "{",   "}",   "[",   "]",   "(",   ")",   ".",  ",",  ";",  ":",  "!",
    "~",    "*",   "/",   "%",   "+",   "-",   "<",   ">",   "&",   "^",   "|",   "?",  "=",  "@"};

void lex__skip(struct groovy_lexer *lexer)
{
    char c = *lexer->location.at;
    uint32_t code = utf8_next(&lexer->location.at, lexer->end);
    unsigned units = code > 0xffff ? 2 : 1;
    lexer->location.units += (int32_t)units;
    if (c == '\n') {
        lexer->location.line++;
        lexer->location.column = 1;
    } else {
        lexer->location.column += units;
    }
}

struct token lex__begin(const struct groovy_lexer *lexer)
{
    return (struct token){.start = lexer->location.units,
                          .line = lexer->location.line,
                          .column = lexer->location.column,
                          .space_before = lexer->space};
}

bool lex__push(struct groovy_lexer *lexer, struct token token, enum token_kind kind, struct slice text)
{
    struct compiler *compiler = lexer->compiler;
    compiler->tokens = arena_grow(compiler->scratch, compiler->tokens, compiler->token_count, &lexer->capacity,
                                  sizeof *compiler->tokens);
    token.kind = kind;
    token.end = lexer->location.units;
    token.text = text;
    compiler->tokens[compiler->token_count++] = token;
    lexer->space = false;
    return true;
}

bool lex__fail(struct groovy_lexer *lexer, const char *format, ...)
{
    char message[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    explain_groovy(lexer->compiler, lexer->location.line, lexer->location.column, "%s", message);
    return false;
}

const char *lex__shown(const struct groovy_lexer *lexer, char out[8])
{
    if (lexer->location.at >= lexer->end)
        return "'<EOF>'";
    if (*lexer->location.at == '\n')
        return "'\\n'";
    if (*lexer->location.at == '\r')
        return "'\\r'";
    snprintf(out, 8, "'%c'", *lexer->location.at);
    return out;
}

bool lex__starts(const struct groovy_lexer *lexer, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(lexer->end - lexer->location.at) >= len && memcmp(lexer->location.at, text, len) == 0;
}

bool lex__letter(const struct groovy_lexer *lexer, size_t ahead)
{
    if ((size_t)(lexer->end - lexer->location.at) <= ahead)
        return false;
    unsigned char c = (unsigned char)lexer->location.at[ahead];
    return isalpha(c) || c == '_' || c >= 0xc3;
}

bool lex__name(struct groovy_lexer *lexer, bool in_text)
{
    struct token token = lex__begin(lexer);
    const char *from = lexer->location.at;
    while (lexer->location.at < lexer->end && (lex__letter(lexer, 0) || isdigit((unsigned char)*lexer->location.at) ||
                                               (!in_text && *lexer->location.at == '$')))
        lex__skip(lexer);
    struct slice text = slice_make(from, (size_t)(lexer->location.at - from));
    enum token_kind kind = TOKEN_ID;
    if (slice_is(text, "def"))
        kind = TOKEN_DEF;
    else if (TOKEN_IS_AMONG(primitives, text))
        kind = TOKEN_PRIMITIVE;
    else if (TOKEN_IS_AMONG(keywords, text))
        kind = TOKEN_KEYWORD;
    return lex__push(lexer, token, kind, text);
}

/* Numbers */

static const char *digits_end(const struct groovy_lexer *lexer, const char *p, int (*is)(int))
{
    while (p < lexer->end && (is((unsigned char)*p) || (*p == '_' && p + 1 < lexer->end)))
        p++;
    return p;
}

static int is_binary(int c)
{
    return c == '0' || c == '1';
}

static int is_octal(int c)
{
    return c >= '0' && c <= '7';
}

static bool slice_ends(struct slice text, const char *end)
{
    size_t len = strlen(end);
    return text.len >= len && memcmp(text.data + text.len - len, end, len) == 0;
}

static const char *fraction_end(const struct groovy_lexer *lexer, const char *p, enum token_kind *kind)
{
    if (p + 1 < lexer->end && *p == '.' && isdigit((unsigned char)p[1])) {
        *kind = TOKEN_DECIMAL;
        p = digits_end(lexer, p + 1, isdigit);
    }
    const char *e = p;
    if (e < lexer->end && (*e == 'e' || *e == 'E')) {
        e++;
        e += e < lexer->end && (*e == '+' || *e == '-');
        if (e < lexer->end && isdigit((unsigned char)*e)) {
            *kind = TOKEN_DECIMAL;
            p = digits_end(lexer, e, isdigit);
        }
    }
    return p;
}

static bool lex_number(struct groovy_lexer *lexer)
{
    struct token token = lex__begin(lexer);
    const char *from = lexer->location.at, *p = from;
    enum token_kind kind = TOKEN_INTEGER;
    const char *suffixes = "lLiIgGfFdD";
    char second = p + 1 < lexer->end ? (char)tolower((unsigned char)p[1]) : '\0';
    if (*p == '0' && second == 'x') {
        kind = TOKEN_HEX;
        p = digits_end(lexer, p + 2, isxdigit);
        suffixes = "lLiIgG";
    } else if (*p == '0' && second == 'b') {
        kind = TOKEN_HEX;
        p = digits_end(lexer, p + 2, is_binary);
        suffixes = "lLiIgG";
    } else {
        p = digits_end(lexer, p, isdigit);
        const char *octal = digits_end(lexer, from, is_octal);
        bool leading = *from == '0' && p > from + 1;
        kind = leading ? TOKEN_OCTAL : TOKEN_INTEGER;
        p = fraction_end(lexer, p, &kind);
        if (leading && kind == TOKEN_OCTAL && octal < p) { /* 08 is 0, then 8 */
            p = octal;
            kind = p == from + 1 ? TOKEN_INTEGER : TOKEN_OCTAL;
        }
        suffixes = kind == TOKEN_DECIMAL ? "gGfFdD" : suffixes;
    }
    if (p < lexer->end && *p != '\0' && strchr(suffixes, *p) != NULL)
        p++;
    while (lexer->location.at < p)
        lex__skip(lexer);
    return lex__push(lexer, token, kind, slice_make(from, (size_t)(p - from)));
}

/* Blanks, comments, ends of lines */

static bool skip_comment(struct groovy_lexer *lexer)
{
    if (lex__starts(lexer, "//") || (lex__starts(lexer, "#!") && lexer->location.units == 0)) {
        while (lexer->location.at < lexer->end && *lexer->location.at != '\n' && *lexer->location.at != '\r')
            lex__skip(lexer);
        return true;
    }
    if (!lex__starts(lexer, "/*"))
        return false;
    lex__skip(lexer);
    lex__skip(lexer);
    while (lexer->location.at < lexer->end && !lex__starts(lexer, "*/"))
        lex__skip(lexer);
    for (unsigned i = 0; i < 2 && lexer->location.at < lexer->end; i++)
        lex__skip(lexer);
    if (lexer->location.at == lexer->end && !slice_ends(lexer->compiler->source, "*/"))
        lex__fail(lexer, "expecting '*', found '<EOF>'");
    return true;
}

static bool skip_blank(struct groovy_lexer *lexer)
{
    char c = *lexer->location.at;
    bool joined = lex__starts(lexer, "\\\n") || lex__starts(lexer, "\\\r");
    if (c != ' ' && c != '\t' && c != '\f' && !joined)
        return false;
    lex__skip(lexer);
    if (joined)
        lex__skip(lexer);
    return true;
}

static bool lex_newline(struct groovy_lexer *lexer)
{
    struct token token = lex__begin(lexer);
    while (lexer->location.at < lexer->end) {
        bool line = *lexer->location.at == '\n' || *lexer->location.at == '\r';
        if (line)
            lex__skip(lexer);
        else if (!skip_blank(lexer) && !skip_comment(lexer))
            break;
    }
    lexer->space = true;
    if (lexer->levels[lexer->level].parentheses > 0)
        return true;
    const struct compiler *compiler = lexer->compiler;
    bool twice = compiler->token_count > 0 && compiler->tokens[compiler->token_count - 1].kind == TOKEN_NEWLINE;
    return twice || lex__push(lexer, token, TOKEN_NEWLINE, SLICE_LIT("<newline>"));
}

/* Symbols */

/* After a token that can end an expression, a slash divides; elsewhere it begins a text. */
static bool slash_divides(const struct groovy_lexer *lexer)
{
    const struct compiler *compiler = lexer->compiler;
    if (compiler->token_count == 0)
        return false;
    const struct token *last = &compiler->tokens[compiler->token_count - 1];
    switch (last->kind) {
    case TOKEN_NEWLINE:
    case TOKEN_GSTRING_BEGIN:
    case TOKEN_GSTRING_MIDDLE: return false;
    case TOKEN_SYMBOL:
        return token_is(last, "]") || token_is(last, ")") || token_is(last, "}") || token_is(last, "++") ||
               token_is(last, "--");
    default: return true;
    }
}

static bool open_brace(struct groovy_lexer *lexer)
{
    if (++lexer->level >= LEX_LEVELS_MAX) {
        compile_fail(lexer->compiler, CLASS_STACK_OVERFLOW_ERROR, -1, "nested deeper than %u", COMPILE_NESTING_MAX);
        return false;
    }
    lexer->levels[lexer->level] = (struct lex_level){.in_text = false};
    return true;
}

/* Tracks brackets. After the brace that closes a value, the text continues. */
static bool track_brackets(struct groovy_lexer *lexer, const struct token *token)
{
    struct lex_level *level = &lexer->levels[lexer->level];
    if (token_is(token, "(") || token_is(token, "["))
        level->parentheses++;
    else if (token_is(token, ")") || token_is(token, "]"))
        level->parentheses -= level->parentheses > 0;
    else if (token_is(token, "{"))
        return open_brace(lexer);
    else if (token_is(token, "}") && lexer->level > 0) {
        lexer->level--;
        return !level->in_text || lex__text(lexer, level->quote, false);
    }
    return true;
}

static bool lex_symbol(struct groovy_lexer *lexer)
{
    struct token token = lex__begin(lexer);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        if (!lex__starts(lexer, symbols[i]))
            continue;
        for (size_t k = strlen(symbols[i]); k > 0; k--)
            lex__skip(lexer);
        lex__push(lexer, token, TOKEN_SYMBOL, slice_from(symbols[i]));
        struct token pushed = lexer->compiler->tokens[lexer->compiler->token_count - 1];
        return track_brackets(lexer, &pushed);
    }
    unsigned char c = (unsigned char)*lexer->location.at;
    const char *at = lexer->location.at;
    if (c > ' ' && c <= '~')
        return lex__fail(lexer, "unexpected char: '%c'", c);
    return lex__fail(lexer, "unexpected char: 0x%X", (unsigned)utf8_next(&at, lexer->end));
}

static bool lex_one(struct groovy_lexer *lexer)
{
    char c = *lexer->location.at;
    if (skip_blank(lexer) || skip_comment(lexer)) {
        lexer->space = true;
        return true;
    }
    if (c == '\n' || c == '\r')
        return lex_newline(lexer);
    if (lex__letter(lexer, 0))
        return lex__name(lexer, false);
    if (isdigit((unsigned char)c))
        return lex_number(lexer);
    if (c == '\'')
        return lex__text(lexer, lex__starts(lexer, "'''") ? LEX_TRIPLE_SINGLE : LEX_SINGLE, true);
    if (c == '"')
        return lex__text(lexer, lex__starts(lexer, "\"\"\"") ? LEX_TRIPLE_DOUBLE : LEX_DOUBLE, true);
    if (c == '/' && !slash_divides(lexer))
        return lex__text(lexer, LEX_SLASHY, true);
    if (lex__starts(lexer, "$/") && !slash_divides(lexer))
        return lex__text(lexer, LEX_DOLLAR_SLASHY, true);
    return c == '$' ? lex__name(lexer, false) : lex_symbol(lexer);
}

bool lex_groovy(struct compiler *compiler)
{
    struct groovy_lexer *lexer = arena_zalloc(compiler->scratch, sizeof *lexer);
    lexer->compiler = compiler;
    lexer->location.at = compiler->source.data;
    lexer->end = compiler->source.data + compiler->source.len;
    lexer->location.line = lexer->location.column = 1;
    bool ok = true;
    while (ok && lexer->location.at < lexer->end)
        ok = lex_one(lexer) && !compiler->error.set;
    struct token end = lex__begin(lexer);
    return lex__push(lexer, end, ok ? TOKEN_EOF : TOKEN_ERROR, SLICE_LIT("")) && ok;
}
