/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scanner with Jackson's grammar; see scan.h.
 *
 * It follows the states of Jackson's UTF-8 parser (2.8 in Elasticsearch 5.6, 2.10 in 7.10). Jackson
 * reports the position after the last byte it consumed, as line and column, so the order in which
 * bytes are consumed is part of the imitation. That position is `at` here.
 */
#include "json/scan.h"

#include "base/check.h"
#include "json/each.h"
#include "json/name_set.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    TOKEN_TEXT_MAX = 256,  /* bytes of an unrecognised token shown in an error */
    CHECK_BYTES = 1 << 14, /* bytes scanned between two checks of the account */
    STREAM_BLOCK = 8000,   /* bytes; Jackson 2.8 reads streams in blocks of this size */
};

struct scope {
    bool is_array;
    size_t line, column; /* of its opening bracket */
    size_t number;       /* of an object: its number in the set of names */
    size_t entries;      /* number of members or elements begun */
};

struct scanner {
    struct arena *arena;
    char *text;
    size_t len;
    size_t at; /* offset after the last byte consumed */
    size_t line;
    size_t line_start; /* offset */
    size_t end_reads;  /* attempts to read past the end; 2.8 adds a block to the column for each */
    enum dialect dialect;
    unsigned flags;
    const char *token; /* Jackson's name of the current token */
    struct scope scopes[JSON_DEPTH_MAX];
    size_t depth;
    size_t objects; /* number of objects begun */
    struct json_name_set names;
    struct json_error *error;
    struct account *account; /* NULL: none */
    size_t check_at;         /* offset at which the account is checked next */
};

/* Returns: the number of bytes in the last block of Jackson 2.8's stream. */
static size_t last_block(const struct scanner *s)
{
    return s->len == 0 ? 0 : (s->len - 1) % STREAM_BLOCK + 1;
}

/* Sets the error, at the current position. Returns: JSON_INVALID, as do all fail_…() below. */
static int fail_scan(struct scanner *s, bool end_of_input, const char *format, ...) TL_PRINTF(3, 4);
static int fail_scan(struct scanner *s, bool end_of_input, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice message = arena_vprintf(s->arena, format, arguments);
    va_end(arguments);
    size_t column = s->at - s->line_start + 1;
    if (s->dialect == DIALECT_5)
        column += s->end_reads * last_block(s);
    *s->error = (struct json_error){end_of_input, message, s->line, column};
    return JSON_INVALID;
}

static int fail_end(struct scanner *s, const char *where)
{
    return fail_scan(s, true, "Unexpected end-of-input%s", where);
}

static int fail_end_in_token(struct scanner *s)
{
    return fail_scan(s, true, "Unexpected end-of-input in %s", s->token);
}

/* Returns: whether there is a byte at s->at; if not, counts a read past the end. */
static bool has_byte(struct scanner *s)
{
    if (s->at < s->len)
        return true;
    s->end_reads++;
    return false;
}

/* Returns: whether the account has ended. Charges it for every CHECK_BYTES bytes scanned. */
static bool must_stop(struct scanner *s)
{
    if (s->at < s->check_at)
        return false;
    s->check_at = s->at + CHECK_BYTES;
    return !account_take(s->account, CHECK_BYTES);
}

static int fail_stopped(struct scanner *s)
{
    return fail_scan(s, false, "the request is over"); /* a placeholder: json_parse() discards it */
}

static unsigned char byte_at(const struct scanner *s, size_t at)
{
    return (unsigned char)s->text[at];
}

/* Returns: Jackson's text for a character: "'x' (code 120)", "(CTRL-CHAR, code 9)" … */
static struct slice describe_character(struct scanner *s, uint32_t c)
{
    if (c < 0x20 || (c >= 0x7f && c < 0xa0))
        return arena_printf(s->arena, "(CTRL-CHAR, code %u)", c);
    char utf8[5] = {0};
    if (c < 0x80) {
        utf8[0] = (char)c;
    } else if (c < 0x800) {
        utf8[0] = (char)(0xc0 | c >> 6);
        utf8[1] = (char)(0x80 | (c & 0x3f));
    } else {
        c &= 0xffff; /* Jackson casts to a Java char */
        utf8[0] = (char)(0xe0 | c >> 12);
        utf8[1] = (char)(0x80 | (c >> 6 & 0x3f));
        utf8[2] = (char)(0x80 | (c & 0x3f));
    }
    if (c > 255)
        return arena_printf(s->arena, "'%s' (code %u / 0x%x)", utf8, c, c);
    return arena_printf(s->arena, "'%s' (code %u)", utf8, c);
}

static int fail_unexpected(struct scanner *s, uint32_t c, const char *comment)
{
    return fail_scan(s, false, "Unexpected character (%s): %s", describe_character(s, c).data, comment);
}

static int fail_number(struct scanner *s, uint32_t c, const char *comment)
{
    return fail_scan(s, false, "Unexpected character (%s) in numeric value: %s", describe_character(s, c).data,
                     comment);
}

/*
 * Returns: "[Source: …; line: L, column: C]". Jackson 2.10 shows the bytes it was given; 2.8 was
 *          given a stream and shows a fixed text.
 */
static struct slice source_text(struct arena *arena, struct slice text, enum dialect dialect, size_t line,
                                size_t column)
{
    enum { SHOWN_BYTES = 500 };
    if (dialect == DIALECT_5)
        return arena_printf(arena, "[Source: request body; line: %zu, column: %zu]", line, column);
    size_t shown = slice_utf8_valid_prefix(slice_make(text.data, text.len < SHOWN_BYTES ? text.len : SHOWN_BYTES));
    struct slice cut =
        text.len <= SHOWN_BYTES ? SLICE_LIT("") : arena_printf(arena, "[truncated %zu bytes]", text.len - SHOWN_BYTES);
    return arena_printf(arena, "[Source: (byte[])\"%.*s\"%.*s; line: %zu, column: %zu]", (int)shown,
                        text.data == NULL ? "" : text.data, SLICE_ARG(cut), line, column);
}

static struct slice scope_start(struct scanner *s, const struct scope *scope)
{
    struct slice text = slice_make(s->text, s->len);
    return scope == NULL ? source_text(s->arena, text, s->dialect, 1, 0)
                         : source_text(s->arena, text, s->dialect, scope->line, scope->column);
}

/* Returns: the innermost open object or array; NULL at the root. */
static struct scope *current_scope(struct scanner *s)
{
    return s->depth == 0 ? NULL : &s->scopes[s->depth - 1];
}

static const char *scope_name(struct scanner *s)
{
    const struct scope *scope = current_scope(s);
    return scope == NULL ? "root" : scope->is_array ? "Array" : "Object";
}

static void skip_line_break(struct scanner *s, unsigned char c)
{
    if (c == '\r' && s->at < s->len && s->text[s->at] == '\n')
        s->at++;
    s->line++;
    s->line_start = s->at;
}

/* Skips a comment whose first '/' is consumed, and overwrites it with spaces. */
static int skip_comment(struct scanner *s)
{
    size_t start = s->at - 1;
    if (!has_byte(s))
        return fail_end(s, " in a comment");
    unsigned char kind = byte_at(s, s->at++);
    if (kind != '/' && kind != '*')
        return fail_unexpected(s, kind, "was expecting either '*' or '/' for a comment");
    for (unsigned char before = 0;;) {
        if (!has_byte(s)) {
            if (kind == '*')
                return fail_end(s, " in a comment");
            break;
        }
        unsigned char c = byte_at(s, s->at++);
        if (must_stop(s))
            return fail_stopped(s);
        if (c == '\n' || c == '\r') {
            skip_line_break(s, c);
            if (kind == '/')
                break;
        }
        if (kind == '*' && before == '*' && c == '/')
            break;
        before = c;
    }
    memset(s->text + start, ' ', s->at - start);
    return 0;
}

/* Outcome of skip_space(). */
enum { AT_END = 2 };

/*
 * Consumes white space, comments and the byte after them.
 * Returns: 0 with the byte; AT_END; JSON_INVALID.
 */
static int skip_space(struct scanner *s, unsigned char *ret_byte)
{
    while (has_byte(s)) {
        unsigned char c = byte_at(s, s->at++);
        if (must_stop(s))
            return fail_stopped(s);
        if (c == '/') {
            if (skip_comment(s) != 0)
                return JSON_INVALID;
        } else if (c == '\n' || c == '\r') {
            skip_line_break(s, c);
        } else if (c < ' ' && c != '\t') {
            return fail_scan(
                s, false, "Illegal character (%s): only regular white space (\\r, \\n, \\t) is allowed between tokens",
                describe_character(s, c).data);
        } else if (c != ' ' && c != '\t') {
            *ret_byte = c;
            return 0;
        }
    }
    return AT_END;
}

/* As skip_space(), but refuses the end of the text. Returns: 0 with the byte; JSON_INVALID. */
static int need_byte(struct scanner *s, unsigned char *ret_byte)
{
    int r = skip_space(s, ret_byte);
    if (r != AT_END)
        return r;
    return fail_scan(s, true, "Unexpected end-of-input within/between %s entries", scope_name(s));
}

/*
 * Decodes the character that begins with the consumed byte `first`, for display in an error.
 * Returns: 0; JSON_INVALID: the character is malformed, which Jackson reports instead.
 */
static int decode_for_error(struct scanner *s, unsigned char first, uint32_t *ret_point)
{
    uint32_t point = first;
    int more = 0;
    if (first > 0x7f) {
        more = (first & 0xe0) == 0xc0 ? 1 : (first & 0xf0) == 0xe0 ? 2 : (first & 0xf8) == 0xf0 ? 3 : 0;
        if (more == 0)
            return fail_scan(s, false, "Invalid UTF-8 start byte 0x%x", first);
        point = first & (0x3fu >> more);
    }
    for (; more > 0; more--) {
        if (!has_byte(s))
            return fail_end_in_token(s);
        unsigned char c = byte_at(s, s->at++);
        if ((c & 0xc0) != 0x80)
            return fail_scan(s, false, "Invalid UTF-8 middle byte 0x%x", c);
        point = point << 6 | (c & 0x3f);
    }
    *ret_point = point;
    return 0;
}

/*
 * Approximates Java's isJavaIdentifierPart(): beyond Latin-1, nearly all characters count as
 * letters.
 */
static bool is_identifier_part(uint32_t c)
{
    if (c < 0x80)
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '$' ||
               c < 9 || (c > 13 && c < 28) || c == 127;
    return c >= 0xc0 ? c != 0xd7 && c != 0xf7 && (c < 0x2000 || c > 0x206f)
                     : c == 0xaa || c == 0xb5 || c == 0xba || c < 0xa0 || (c >= 0xa2 && c <= 0xa5) || c == 0xad;
}

static bool is_identifier_start(uint32_t c)
{
    return is_identifier_part(c) && !(c >= '0' && c <= '9') && c >= ' ' && !(c >= 127 && c < 0xa0);
}

/*
 * Fails with "Unrecognized token 'tru': was expecting …". The token is the text already matched and
 * the rest of the word, which is consumed.
 */
static int fail_token(struct scanner *s, const char *matched, size_t matched_len, const char *expected)
{
    char token[TOKEN_TEXT_MAX + 8];
    size_t len = matched_len < TOKEN_TEXT_MAX ? matched_len : TOKEN_TEXT_MAX;
    memcpy(token, matched, len);
    while (has_byte(s)) {
        size_t start = s->at;
        unsigned char first = byte_at(s, s->at++);
        uint32_t c;
        if (decode_for_error(s, first, &c) != 0)
            return JSON_INVALID;
        if (!is_identifier_part(c))
            break;
        memcpy(token + len, s->text + start, s->at - start);
        len += s->at - start;
        if (len >= TOKEN_TEXT_MAX)
            return fail_scan(s, false, "Unrecognized token '%.*s...': was expecting %s", (int)len, token, expected);
    }
    return fail_scan(s, false, "Unrecognized token '%.*s': was expecting %s", (int)len, token, expected);
}

#define VALUES_OF_7 "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"

static const char *known_words(const struct scanner *s)
{
    return s->dialect == DIALECT_7 ? VALUES_OF_7 : "'null', 'true', 'false' or NaN";
}

/* Matches a word whose first `matched` letters are consumed. Returns: 0; JSON_INVALID. */
static int match_word(struct scanner *s, const char *word, size_t matched)
{
    size_t len = strlen(word);
    for (; matched < len; matched++) {
        if (!has_byte(s) || s->text[s->at] != word[matched])
            return fail_token(s, word, matched, known_words(s));
        s->at++;
    }
    if (!has_byte(s))
        return 0;
    unsigned char c = byte_at(s, s->at);
    if (c >= '0' && c != ']' && c != '}' && is_identifier_part(c))
        return fail_token(s, word, len, known_words(s));
    return 0;
}

static int fail_not_a_number(struct scanner *s, const char *word)
{
    return fail_scan(s, false, "Non-standard token '%s': enable JsonParser.Feature.ALLOW_NON_NUMERIC_NUMBERS to allow",
                     word);
}

/* Fails after a sign followed by `c`, which is consumed and not a digit. */
static int fail_number_start(struct scanner *s, unsigned char c, bool negative)
{
    if (c == 'I') {
        if (!has_byte(s))
            return fail_end_in_token(s);
        c = byte_at(s, s->at++);
        const char *word = c == 'N'   ? (negative ? "-INF" : "+INF")
                           : c == 'n' ? (negative ? "-Infinity" : "+Infinity")
                                      : NULL;
        if (word != NULL)
            return match_word(s, word, 3) != 0 ? JSON_INVALID : fail_not_a_number(s, word);
    }
    return fail_number(s, c, "expected digit (0-9) to follow minus sign, for valid numeric value");
}

/* Consumes digits. Returns: their number. */
static size_t skip_digits(struct scanner *s)
{
    size_t start = s->at;
    while (has_byte(s) && s->text[s->at] >= '0' && s->text[s->at] <= '9' && !must_stop(s))
        s->at++;
    return s->at - start;
}

/* Consumes the digits that must follow a consumed '.' or exponent. Returns: 0; JSON_INVALID. */
static int need_digits(struct scanner *s, const char *complaint, bool end_is_error)
{
    unsigned char last = byte_at(s, s->at - 1);
    if (skip_digits(s) > 0)
        return 0;
    if (s->at < s->len)
        last = byte_at(s, s->at++);
    else if (end_is_error)
        return fail_end_in_token(s);
    return fail_number(s, last, complaint);
}

static int scan_fraction(struct scanner *s)
{
    if (s->at < s->len && s->text[s->at] == '.') {
        s->at++;
        if (need_digits(s, "Decimal point not followed by a digit", false) != 0)
            return JSON_INVALID;
    }
    if (s->at < s->len && (s->text[s->at] == 'e' || s->text[s->at] == 'E')) {
        s->at++;
        if (!has_byte(s))
            return fail_end_in_token(s);
        if (s->text[s->at] == '+' || s->text[s->at] == '-')
            s->at++;
        return need_digits(s, "Exponent indicator not followed by a digit", true);
    }
    return 0;
}

/* Scans a number whose first byte `c` is consumed. */
static int scan_number(struct scanner *s, unsigned char c)
{
    if (c == '-') {
        if (!has_byte(s))
            return fail_end_in_token(s);
        c = byte_at(s, s->at++);
        if (c < '0' || c > '9')
            return fail_number_start(s, c, true);
    }
    if (c == '0') {
        if (has_byte(s) && s->text[s->at] >= '0' && s->text[s->at] <= '9')
            return fail_scan(s, false, "Invalid numeric value: Leading zeroes not allowed");
    } else {
        skip_digits(s);
    }
    return scan_fraction(s);
}

/* Scans the four hexadecimal digits after "\u". */
static int scan_hex(struct scanner *s, uint32_t *ret_unit)
{
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        if (!has_byte(s))
            return fail_end(s, " in character escape sequence");
        unsigned char c = byte_at(s, s->at++);
        int digit = c >= '0' && c <= '9'                     ? c - '0'
                    : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                             : -1;
        if (digit < 0)
            return fail_unexpected(s, c, "expected a hex-digit for character escape sequence");
        unit = unit << 4 | (uint32_t)digit;
    }
    *ret_unit = unit;
    return 0;
}

/*
 * Replaces the escape that ends at `end` by that of U+FFFD. Java strings can hold a lone surrogate,
 * UTF-8 cannot.
 */
static void replace_escape(struct scanner *s, size_t end)
{
    memcpy(s->text + end - 4, "fffd", 4);
}

/*
 * Scans an escape after its backslash. `*high_end` is the end offset of an unpaired high surrogate
 * escape immediately before it, or 0; updated.
 */
static int scan_escape(struct scanner *s, size_t *high_end)
{
    size_t start = s->at - 1;
    size_t high = *high_end == start ? start : 0;
    if (!has_byte(s))
        return fail_end(s, " in character escape sequence");
    unsigned char c = byte_at(s, s->at++);
    if (c != 'u') {
        uint32_t point;
        if (strchr("btnfr\"/\\", c) != NULL && c != 0)
            return 0;
        if (decode_for_error(s, c, &point) != 0)
            return JSON_INVALID;
        return fail_scan(s, false, "Unrecognized character escape %s", describe_character(s, point).data);
    }
    uint32_t unit = 0;
    if (scan_hex(s, &unit) != 0)
        return JSON_INVALID;
    if (unit >= 0xdc00 && unit <= 0xdfff) {
        if (high == 0)
            replace_escape(s, s->at);
        else
            *high_end = 0;
    } else if (unit >= 0xd800 && unit <= 0xdbff) {
        if (*high_end != 0)
            replace_escape(s, *high_end);
        *high_end = s->at;
    }
    return 0;
}

/* Replaces a pending high surrogate that turned out to be unpaired. */
static void end_surrogate(struct scanner *s, size_t *high_end)
{
    if (*high_end != 0)
        replace_escape(s, *high_end);
    *high_end = 0;
}

/*
 * Replaces a sequence that Jackson decodes but UTF-8 forbids (overlong, a surrogate, beyond
 * U+10FFFF) by a valid character of the same length.
 */
static void repair_character(struct scanner *s, size_t start, size_t len)
{
    static const char *const replacement[] = {"?", "?", "\xc2\xbf", "\xef\xbf\xbd", "\xf3\xb0\x80\x80"};
    if (slice_utf8_valid_prefix(slice_make(s->text + start, len)) != len)
        memcpy(s->text + start, replacement[len], len);
}

/*
 * Scans the rest of a character beyond ASCII whose first byte is consumed. Jackson decodes a name
 * only after its closing quote, so errors in names are reported at `error_at`; 0: at the
 * character.
 */
static int scan_character(struct scanner *s, unsigned char first, size_t error_at)
{
    size_t start = s->at - 1;
    size_t len = first >= 0xc0 && first < 0xe0   ? 2
                 : first >= 0xe0 && first < 0xf0 ? 3
                 : first >= 0xf0 && first < 0xf8 ? 4
                                                 : 0;
    if (len == 0) {
        s->at = error_at != 0 ? error_at : s->at;
        return fail_scan(s, false, "Invalid UTF-8 start byte 0x%x", first);
    }
    while (s->at < start + len) {
        if (!has_byte(s))
            return fail_end_in_token(s);
        unsigned char c = byte_at(s, s->at++);
        if ((c & 0xc0) != 0x80) {
            s->at = error_at != 0 ? error_at : s->at;
            return fail_scan(s, false, "Invalid UTF-8 middle byte 0x%x", c);
        }
    }
    repair_character(s, start, len);
    return 0;
}

/* Returns: the offset after the closing quote of a name, or 0 if it has none. */
static size_t closing_quote(const struct scanner *s)
{
    for (size_t i = s->at; i < s->len; i++) {
        if (s->text[i] == '\\')
            i++;
        else if (s->text[i] == '"')
            return i + 1;
    }
    return 0;
}

/* Scans a string or name after its opening quote, up to and including the closing quote. */
static int scan_string(struct scanner *s, bool is_name)
{
    size_t name_end = is_name ? closing_quote(s) : 0;
    size_t high_end = 0;
    for (;;) {
        if (!has_byte(s))
            return is_name ? fail_end(s, " in field name") : fail_end(s, " in VALUE_STRING");
        unsigned char c = byte_at(s, s->at++);
        if (must_stop(s))
            return fail_stopped(s);
        if (c == '\\') {
            if (high_end != 0 && high_end != s->at - 1)
                end_surrogate(s, &high_end);
            size_t before = high_end;
            if (scan_escape(s, &high_end) != 0)
                return JSON_INVALID;
            if (before != 0 && high_end == before)
                end_surrogate(s, &high_end);
            continue;
        }
        end_surrogate(s, &high_end);
        if (c == '"')
            return 0;
        if (c < ' ')
            return fail_scan(s, false,
                             "Illegal unquoted character (%s): has to be escaped using backslash to be included in %s",
                             describe_character(s, c).data, is_name ? "name" : "string value");
        if (c >= 0x80 && scan_character(s, c, name_end) != 0)
            return JSON_INVALID;
    }
}

static int open_scope(struct scanner *s, bool is_array)
{
    if (s->depth >= json_depth_limit())
        return fail_scan(s, false, "Document nesting depth (%d) exceeds the maximum allowed (%d)", JSON_DEPTH_MAX + 1,
                         JSON_DEPTH_MAX);
    s->scopes[s->depth++] = (struct scope){is_array, s->line, s->at - s->line_start, s->objects, 0};
    s->objects += !is_array;
    s->token = is_array ? "START_ARRAY" : "START_OBJECT";
    return 0;
}

static int close_scope(struct scanner *s, unsigned char c)
{
    const struct scope *scope = current_scope(s);
    if (scope == NULL || scope->is_array != (c == ']'))
        return fail_scan(s, false, "Unexpected close marker '%c': expected '%c' (for %s starting at %s)", c,
                         c == ']' ? '}' : ']', scope_name(s), scope_start(s, scope).data);
    s->depth--;
    s->token = c == ']' ? "END_ARRAY" : "END_OBJECT";
    return 0;
}

/* Fails at the consumed byte `c`, which cannot begin a value. */
static int fail_value(struct scanner *s, unsigned char c)
{
    const struct scope *scope = current_scope(s);
    if (c == ',' || c == '}' || (c == ']' && scope != NULL && scope->is_array))
        return fail_unexpected(s, c, "expected a value");
    if (c == 'N' || c == 'I') {
        const char *word = c == 'N' ? "NaN" : "Infinity";
        return match_word(s, word, 1) != 0 ? JSON_INVALID : fail_not_a_number(s, word);
    }
    if (c == '+') {
        if (!has_byte(s))
            return fail_end(s, " in a value");
        return fail_number_start(s, byte_at(s, s->at++), false);
    }
    bool of_7 = s->dialect == DIALECT_7;
    if (is_identifier_start(c)) {
        s->at--; /* fail_token() collects the word from its first letter */
        return fail_token(s, "", 0, of_7 ? VALUES_OF_7 : "('true', 'false' or 'null')");
    }
    return fail_unexpected(s, c,
                           of_7 ? "expected a valid value " VALUES_OF_7
                                : "expected a valid value (number, String, array, object, 'true', 'false' or 'null')");
}

/* Scans a scalar, or opens an object or array; its first byte `c` is consumed. */
static int scan_value(struct scanner *s, unsigned char c)
{
    switch (c) {
    case '"': s->token = "VALUE_STRING"; return scan_string(s, false);
    case '{':
    case '[': return open_scope(s, c == '[');
    case 't':
    case 'f':
    case 'n':
        if (match_word(s, c == 't' ? "true" : c == 'f' ? "false" : "null", 1) != 0)
            return JSON_INVALID;
        s->token = c == 't' ? "VALUE_TRUE" : c == 'f' ? "VALUE_FALSE" : "VALUE_NULL";
        return 0;
    default:
        if (c != '-' && (c < '0' || c > '9'))
            return fail_value(s, c);
        if (scan_number(s, c) != 0)
            return JSON_INVALID;
        s->token = "VALUE_NUMBER_INT";
        return 0;
    }
}

/* Returns: the name in [start, end) with its escapes resolved, to compare names. */
static struct slice unescape_name(struct scanner *s, size_t start, size_t end)
{
    struct slice raw = slice_make(s->text + start - 1, end - start + 2);
    if (slice_find_byte(raw, '\\') == raw.len)
        return slice_make(s->text + start, end - start);
    char *copy = arena_alloc(s->arena, raw.len + YYJSON_PADDING_SIZE);
    memcpy(copy, raw.data, raw.len);
    yyjson_doc *doc = yyjson_read(copy, raw.len, 0);
    if (doc == NULL)
        return raw;
    struct slice name = arena_copy(s->arena, json_slice(yyjson_doc_get_root(doc)));
    yyjson_doc_free(doc);
    return name;
}

/* Scans a member, name, colon and value, whose first byte `c` is consumed. */
static int scan_member(struct scanner *s, unsigned char c)
{
    if (c != '"') {
        uint32_t point;
        if (decode_for_error(s, c, &point) != 0)
            return JSON_INVALID;
        return fail_unexpected(s, point, "was expecting double-quote to start field name");
    }
    size_t start = s->at;
    if (scan_string(s, true) != 0)
        return JSON_INVALID;
    struct slice name = unescape_name(s, start, s->at - 1);
    if (!(s->flags & JSON_DUPLICATES) && !json_name_set_add(&s->names, current_scope(s)->number, name))
        return fail_scan(s, false, "Duplicate field '%.*s'", SLICE_ARG(name));
    s->token = "FIELD_NAME";
    if (need_byte(s, &c) != 0)
        return JSON_INVALID;
    if (c != ':')
        return fail_unexpected(s, c, "was expecting a colon to separate field name and value");
    if (need_byte(s, &c) != 0)
        return JSON_INVALID;
    return scan_value(s, c);
}

/* Scans one member or element of the open scope, or its closing bracket. */
static int scan_entry(struct scanner *s)
{
    struct scope *scope = current_scope(s);
    unsigned char c;
    int r = skip_space(s, &c);
    if (r == AT_END)
        return fail_scan(s, true, "Unexpected end-of-input: expected close marker for %s (start marker at %s)",
                         scope_name(s), scope_start(s, scope).data);
    if (r != 0)
        return JSON_INVALID;
    if (c == ']' || c == '}')
        return close_scope(s, c);
    if (scope->entries++ > 0) {
        if (c != ',')
            return fail_scan(s, false, "Unexpected character (%s): was expecting comma to separate %s entries",
                             describe_character(s, c).data, scope_name(s));
        if (need_byte(s, &c) != 0)
            return JSON_INVALID;
    }
    return scope->is_array ? scan_value(s, c) : scan_member(s, c);
}

/* Refuses anything but white space and comments after the value. */
static int scan_rest(struct scanner *s)
{
    unsigned char c;
    int r = skip_space(s, &c);
    if (r != 0)
        return r == AT_END ? 0 : JSON_INVALID;
    if (c == ']' || c == '}')
        return close_scope(s, c);
    if (scan_value(s, c) != 0)
        return JSON_INVALID;
    return fail_scan(s, false, "Malformed content, found extra data after parsing: %s", s->token);
}

static int scan_text(struct scanner *s)
{
    if (slice_starts_with(slice_make(s->text, s->len), SLICE_LIT("\xef\xbb\xbf"))) {
        memset(s->text, ' ', 3);
        s->at = 3;
    }
    unsigned char c;
    int r = skip_space(s, &c);
    if (r == AT_END)
        return fail_end(s, "");
    if (r != 0 || (c == ']' || c == '}' ? close_scope(s, c) : scan_value(s, c)) != 0)
        return JSON_INVALID;
    while (s->depth > 0) {
        if (scan_entry(s) != 0)
            return JSON_INVALID;
    }
    return scan_rest(s);
}

int json_scan(struct arena *arena, char *text, size_t len, enum dialect dialect, unsigned flags,
              struct account *account, struct json_error *ret_error)
{
    tl_cleanup(mem_freep) struct scanner *s = mem_zalloc(sizeof *s);
    s->arena = arena;
    s->text = text;
    s->len = len;
    s->line = 1;
    s->dialect = dialect;
    s->flags = flags;
    s->account = account;
    s->token = "null";
    s->names = JSON_NAME_SET_INIT;
    s->error = ret_error;
    int r = scan_text(s);
    json_name_set_deinit(&s->names);
    return r;
}

struct slice json_source_location(struct arena *arena, struct slice text, enum dialect dialect, size_t line,
                                  size_t column)
{
    return arena_printf(arena, "\n at %s", source_text(arena, text, dialect, line, column).data);
}

void json_error_problem(struct arena *arena, struct slice text, enum dialect dialect, const struct json_error *error,
                        struct problem *ret_problem)
{
    if (slice_starts_with(error->message, SLICE_LIT("Malformed content"))) {
        problem_set(ret_problem, arena, PROBLEM_ILLEGAL_ARGUMENT, "%.*s", SLICE_ARG(error->message));
        return;
    }
    struct slice place = json_source_location(arena, text, dialect, error->line, error->column);
    problem_set(ret_problem, arena, PROBLEM_JSON_PARSE, "%.*s%.*s", SLICE_ARG(error->message), SLICE_ARG(place));
    if (error->end_of_input)
        ret_problem->name = SLICE_LIT("json_e_o_f_exception");
}
