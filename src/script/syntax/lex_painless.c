/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Painless's tokens.
 *
 * The longest match wins; a name or number after a dot has its own kind of token. Invalid text is reported only if the
 * parser reaches it, hence TOKEN_ERROR.
 */
#include "script/syntax/compile.h"

#include <ctype.h>

struct lexer {
    struct compiler *compiler;
    const char *at;
    const char *end;
    int32_t units; /* code units before `at` */
    bool after_dot;
    size_t capacity;
};

static const char *const keywords[] = {"if",     "in",  "else", "while", "do",    "for",  "continue",  "break",
                                       "return", "new", "try",  "catch", "throw", "this", "instanceof"};
static const char *const constants[] = {"true", "false", "null"};
static const char *const primitives[] = {"boolean", "byte", "short", "char", "int", "long", "float", "double"};
/* Longer symbols before their prefixes. */
static const char *const symbols[] = {
    ">>>=", "===", "!==", ">>>", "<<=", ">>=", "==~", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "?:", "?.", "::",
    "->",   "=~",  "++",  "--",  "+=",  "-=",  "*=",  "/=", "%=", "&=", "^=", "|=", "{",  "}",  "[",  "]",  "(",  ")",
    ".",    ",",   ";",   "!",   "~",   "*",   "/",   "%",  "+",  "-",  "<",  ">",  "&",  "^",  "|",  "?",  ":",  "="};

static struct token *push_token(struct lexer *lexer, enum token_kind kind, const char *end)
{
    struct compiler *compiler = lexer->compiler;
    compiler->tokens = arena_grow(compiler->scratch, compiler->tokens, compiler->token_count, &lexer->capacity,
                                  sizeof *compiler->tokens);
    struct token *token = &compiler->tokens[compiler->token_count++];
    *token =
        (struct token){.kind = kind, .start = lexer->units, .text = slice_make(lexer->at, (size_t)(end - lexer->at))};
    lexer->units += (int32_t)utf8_units(token->text);
    token->end = lexer->units;
    lexer->at = end;
    return token;
}

static void skip_to(struct lexer *lexer, const char *end)
{
    lexer->units += (int32_t)utf8_units(slice_make(lexer->at, (size_t)(end - lexer->at)));
    lexer->at = end;
}

/* Tokens after which a slash divides; elsewhere it begins a regex. */
static bool slash_divides(const struct lexer *lexer)
{
    const struct compiler *compiler = lexer->compiler;
    if (compiler->token_count == 0)
        return false;
    const struct token *last = &compiler->tokens[compiler->token_count - 1];
    switch (last->kind) {
    case TOKEN_OCTAL:
    case TOKEN_HEX:
    case TOKEN_INTEGER:
    case TOKEN_DECIMAL:
    case TOKEN_ID:
    case TOKEN_DOT_ID:
    case TOKEN_DOT_INTEGER: return true;
    default: return token_is(last, "]") || token_is(last, ")");
    }
}

static bool name_start(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static const char *name_end(const struct lexer *lexer)
{
    const char *p = lexer->at;
    while (p < lexer->end && (name_start(*p) || isdigit((unsigned char)*p)))
        p++;
    return p;
}

static bool fail_lex(struct lexer *lexer, const char *stopped)
{
    struct compiler *compiler = lexer->compiler;
    const char *end = stopped < lexer->end ? stopped + 1 : lexer->end;
    while (end < lexer->end && ((unsigned char)*end & 0xc0) == 0x80)
        end++;
    struct slice text = slice_make(lexer->at, (size_t)(end - lexer->at));
    struct buf shown = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '\n' || c == '\t' || c == '\r')
            buf_printf(&shown, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        else
            buf_byte(&shown, c);
    }
    char quote = text.data[0];
    bool escape = (quote == '\'' || quote == '"') && text.len > 2 && text.data[text.len - 2] == '\\';
    if (escape)
        compile_fail(compiler, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, lexer->units,
                     "unexpected character [%.*s]. The only valid escape sequences in strings starting with [%c] are "
                     "[\\\\] and [\\%c].",
                     SLICE_ARG(buf_as_slice(&shown)), quote, quote);
    else
        compile_fail(compiler, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, lexer->units, "unexpected character [%.*s].",
                     SLICE_ARG(buf_as_slice(&shown)));
    compiler->error.cause = "lexer_no_viable_alt_exception";
    buf_deinit(&shown);
    push_token(lexer, TOKEN_ERROR, end);
    return false;
}

/*
 * Returns: the end of the string that begins at `at`; NULL with the position of the error in
 * *ret_stopped.
 */
static const char *string_end(const struct lexer *lexer, const char **ret_stopped)
{
    char quote = *lexer->at;
    for (const char *p = lexer->at + 1; p < lexer->end; p++) {
        if (*p == quote)
            return p + 1;
        if (*p == '\\') {
            p++;
            if (p >= lexer->end || (*p != quote && *p != '\\')) {
                *ret_stopped = p;
                return NULL;
            }
        }
    }
    *ret_stopped = lexer->end;
    return NULL;
}

static const char *regex_end(const struct lexer *lexer, const char **ret_stopped)
{
    const char *p = lexer->at + 1;
    for (; p < lexer->end && *p != '\n'; p++) {
        if (*p == '/' && p > lexer->at + 1) {
            for (p++; p < lexer->end && *p != '\0' && strchr("cilmsUux", *p) != NULL; p++)
                continue;
            return p;
        }
        if (*p == '/')
            break;
        if (*p == '\\' && p + 1 < lexer->end && p[1] != '\n')
            p++;
    }
    *ret_stopped = p;
    return NULL;
}

static const char *digits_end(const char *p, const char *end)
{
    while (p < end && isdigit((unsigned char)*p))
        p++;
    return p;
}

/* Numbers, the longest that fits: octal, hexadecimal, integer, decimal. */
static void lex_number(struct lexer *lexer)
{
    const char *p = lexer->at, *end = lexer->end;
    if (*p == '0' && p + 2 < end && (p[1] == 'x' || p[1] == 'X') && isxdigit((unsigned char)p[2])) {
        for (p += 2; p < end && isxdigit((unsigned char)*p); p++)
            continue;
        p += p < end && (*p == 'l' || *p == 'L');
        push_token(lexer, TOKEN_HEX, p);
        return;
    }
    const char *octal = p + 1;
    while (*p == '0' && octal < end && *octal >= '0' && *octal <= '7')
        octal++;
    if (*p == '0' && octal > p + 1) {
        octal += octal < end && (*octal == 'l' || *octal == 'L');
        push_token(lexer, TOKEN_OCTAL, octal);
        return;
    }
    p = *p == '0' ? p + 1 : digits_end(p, end);
    enum token_kind kind = TOKEN_INTEGER;
    if (p + 1 < end && *p == '.' && isdigit((unsigned char)p[1])) {
        kind = TOKEN_DECIMAL;
        p = digits_end(p + 1, end);
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char *exponent = p + 1;
        exponent += exponent < end && (*exponent == '+' || *exponent == '-');
        if (exponent < end && isdigit((unsigned char)*exponent)) {
            kind = TOKEN_DECIMAL;
            p = digits_end(exponent, end);
        }
    }
    if (p < end && *p != '\0' && strchr(kind == TOKEN_INTEGER ? "lLfFdD" : "fFdD", *p) != NULL)
        p++;
    push_token(lexer, kind, p);
}

static bool lex_after_dot(struct lexer *lexer)
{
    lexer->after_dot = false;
    if (lexer->at < lexer->end && name_start(*lexer->at)) {
        push_token(lexer, TOKEN_DOT_ID, name_end(lexer));
        return true;
    }
    if (lexer->at < lexer->end && isdigit((unsigned char)*lexer->at)) {
        push_token(lexer, TOKEN_DOT_INTEGER, *lexer->at == '0' ? lexer->at + 1 : digits_end(lexer->at, lexer->end));
        return true;
    }
    return lexer->at == lexer->end || fail_lex(lexer, lexer->at);
}

static void lex_name(struct lexer *lexer)
{
    const char *end = name_end(lexer);
    struct slice text = slice_make(lexer->at, (size_t)(end - lexer->at));
    enum token_kind kind = TOKEN_ID;
    if (slice_is(text, "def"))
        kind = TOKEN_DEF;
    else if (TOKEN_IS_AMONG(primitives, text))
        kind = TOKEN_PRIMITIVE;
    else if (TOKEN_IS_AMONG(keywords, text) || TOKEN_IS_AMONG(constants, text))
        kind = TOKEN_KEYWORD;
    push_token(lexer, kind, end);
}

/* Returns: the end of the comment at `at`; NULL if no comment begins there or it is not closed. */
static const char *comment_end(const struct lexer *lexer)
{
    const char *p = lexer->at + 2;
    if (lexer->end - lexer->at < 2 || *lexer->at != '/')
        return NULL;
    if (lexer->at[1] == '/') {
        while (p < lexer->end && *p != '\n' && *p != '\r')
            p++;
        return p < lexer->end ? p + 1 : NULL;
    }
    for (; lexer->at[1] == '*' && p + 1 < lexer->end; p++)
        if (p[0] == '*' && p[1] == '/')
            return p + 2;
    return NULL;
}

static bool lex_symbol(struct lexer *lexer)
{
    size_t left = (size_t)(lexer->end - lexer->at);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        size_t len = strlen(symbols[i]);
        if (*symbols[i] == *lexer->at && len <= left && memcmp(lexer->at, symbols[i], len) == 0) {
            const struct token *token = push_token(lexer, TOKEN_SYMBOL, lexer->at + len);
            lexer->after_dot = token_is(token, ".") || token_is(token, "?.");
            return true;
        }
    }
    return fail_lex(lexer, lexer->at);
}

static bool lex_one(struct lexer *lexer)
{
    const char *stopped = lexer->at, *end;
    char c = *lexer->at;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        skip_to(lexer, lexer->at + 1);
        return true;
    }
    if ((end = comment_end(lexer)) != NULL) {
        skip_to(lexer, end);
        return true;
    }
    if (name_start(c)) {
        lex_name(lexer);
        return true;
    }
    if (isdigit((unsigned char)c)) {
        lex_number(lexer);
        return true;
    }
    if (c == '"' || c == '\'') {
        if ((end = string_end(lexer, &stopped)) == NULL)
            return fail_lex(lexer, stopped);
        push_token(lexer, TOKEN_STRING, end);
        return true;
    }
    if (c == '/' && !slash_divides(lexer)) {
        bool comment = lexer->end - lexer->at >= 2 && lexer->at[1] == '/'; /* a line comment at the end of the source */
        if (comment)
            return fail_lex(lexer, lexer->end);
        if ((end = regex_end(lexer, &stopped)) != NULL) {
            push_token(lexer, TOKEN_REGEX, end);
            return true;
        }
        if (lexer->end - lexer->at < 2 || lexer->at[1] != '=')
            return fail_lex(lexer, stopped);
    }
    return lex_symbol(lexer);
}

bool lex_painless(struct compiler *compiler)
{
    struct lexer lexer = {
        .compiler = compiler, .at = compiler->source.data, .end = compiler->source.data + compiler->source.len};
    bool ok = true;
    while (ok && (lexer.at < lexer.end || lexer.after_dot)) {
        if (lexer.after_dot)
            ok = lex_after_dot(&lexer);
        else
            ok = lex_one(&lexer);
    }
    push_token(&lexer, TOKEN_EOF, lexer.at);
    return ok;
}
