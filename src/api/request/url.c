/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Percent-encoding.
 */
#include "api/request/url.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Reads the escape at `at`. Returns: its byte, or -1 with *ret_reason. */
static int escape_at(struct arena *arena, struct slice raw, size_t at, struct slice *ret_reason)
{
    if (at + 1 == raw.len) {
        *ret_reason = arena_printf(arena, "unterminated escape sequence at end of string: %.*s", SLICE_ARG(raw));
        return -1;
    }
    if (raw.data[at + 1] == '%')
        return '%'; /* "%%" is a percent sign there */
    if (at + 2 == raw.len) {
        *ret_reason = arena_printf(arena, "partial escape sequence at end of string: %.*s", SLICE_ARG(raw));
        return -1;
    }
    int high = hex_digit(raw.data[at + 1]);
    int low = hex_digit(raw.data[at + 2]);
    if (high < 0 || low < 0) {
        *ret_reason = arena_printf(arena, "invalid escape sequence `%%%c%c' at index %zu of: %.*s", raw.data[at + 1],
                                   raw.data[at + 2], at, SLICE_ARG(raw));
        return -1;
    }
    return high * 16 + low;
}

/*
 * How many bytes Java's decoder replaces by one U+FFFD at an ill-formed place: the longest prefix
 * that could continue.
 */
static size_t broken_length(struct slice text)
{
    unsigned char lead = (unsigned char)text.data[0];
    size_t want = lead >= 0xf0 && lead <= 0xf4   ? 4
                  : lead >= 0xe0 && lead <= 0xef ? 3
                  : lead >= 0xc2 && lead <= 0xdf ? 2
                                                 : 1;
    size_t have = 1;
    while (have < want && have < text.len && ((unsigned char)text.data[have] & 0xc0) == 0x80)
        have++;
    if (have < 2 || want == 1)
        return 1;
    unsigned char second = (unsigned char)text.data[1];
    if (lead == 0xed && second >= 0xa0)
        return have; /* a surrogate is replaced whole */
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f))
        return 1;
    return have == want ? 1 : have;
}

struct slice url_utf8_repair(struct arena *arena, struct slice text)
{
    size_t valid = slice_utf8_valid_prefix(text);
    if (valid == text.len)
        return text;
    char *to = arena_alloc(arena, text.len * 3 + 1);
    size_t len = 0;
    while (text.len > 0) {
        memcpy(to + len, text.data, valid);
        len += valid;
        text = slice_from_offset(text, valid);
        if (text.len == 0)
            break;
        memcpy(to + len, "\xef\xbf\xbd", 3);
        len += 3;
        text = slice_from_offset(text, broken_length(text));
        valid = slice_utf8_valid_prefix(text);
    }
    to[len] = '\0';
    return slice_make(to, len);
}

int url_decode(struct arena *arena, struct slice raw, bool plus_is_space, struct slice *ret_text,
               struct slice *ret_reason)
{
    bool escaped = slice_find_byte(raw, '%') != raw.len;
    if (!escaped && (!plus_is_space || slice_find_byte(raw, '+') == raw.len)) {
        *ret_text = url_utf8_repair(arena, raw);
        return 0;
    }
    char *to = arena_alloc(arena, raw.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < raw.len; i++) {
        if (raw.data[i] == '+' && plus_is_space) {
            to[len++] = ' ';
        } else if (raw.data[i] == '%') {
            int byte = escape_at(arena, raw, i, ret_reason);
            if (byte < 0)
                return URL_BAD_ESCAPE;
            i += raw.data[i + 1] == '%' ? 1 : 2;
            to[len++] = (char)byte;
        } else {
            to[len++] = raw.data[i];
        }
    }
    to[len] = '\0';
    *ret_text = url_utf8_repair(arena, slice_make(to, len));
    return 0;
}

static bool is_unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '*' || c == '_';
}

void url_encode(struct buf *buf, struct slice text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (is_unreserved(c)) {
            buf_byte(buf, (char)c);
        } else if (c == ' ') {
            buf_byte(buf, '+');
        } else {
            char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
            buf_append(buf, escape, sizeof escape);
        }
    }
}
