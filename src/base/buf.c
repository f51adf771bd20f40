/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers; see buf.h. */
#include "base/buf.h"

#include "base/budget.h"
#include "base/check.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

void buf_deinit(struct buf *buf)
{
    struct budget_guard *guard = buf->guard;
    mem_free(buf->data);
    *buf = BUF_INIT(buf->max);
    buf->guard = guard;
}

/* Asks the guard. A large buffer grows by a quarter instead of doubling, to waste less. */
static bool grow_guarded(struct buf *buf, size_t needed, size_t *capacity)
{
    size_t quarter = buf->capacity + buf->capacity / 4;
    if (*capacity > BUDGET_SMALL)
        *capacity = needed > quarter ? needed : quarter;
    return budget_guard_take(buf->guard, *capacity - buf->capacity);
}

static bool grow_buf(struct buf *buf, size_t more)
{
    if (buf->overflow || more > buf->max - buf->len) {
        buf->overflow = true;
        return false;
    }
    size_t needed = buf->len + more;
    size_t capacity = buf->capacity ? buf->capacity * 2 : 256;
    while (capacity < needed)
        capacity *= 2;
    if (budget_guard_asks(buf->guard, capacity - 1) && !grow_guarded(buf, needed, &capacity)) {
        buf->overflow = true;
        return false;
    }
    buf->data = mem_realloc(buf->data, capacity);
    buf->capacity = capacity;
    return true;
}

char *buf_reserve(struct buf *buf, size_t more)
{
    if (buf->overflow || buf->capacity - buf->len < more || buf->data == NULL || buf->max - buf->len < more) {
        if (!grow_buf(buf, more))
            return NULL;
    }
    return buf->data + buf->len;
}

void buf_commit(struct buf *buf, size_t count)
{
    REQUIRE(!buf->overflow && count <= buf->capacity - buf->len && count <= buf->max - buf->len);
    buf->len += count;
}

void buf_append(struct buf *buf, const void *bytes, size_t len)
{
    if (len == 0)
        return;
    char *to = buf_reserve(buf, len);
    if (to == NULL)
        return;
    memcpy(to, bytes, len);
    buf->len += len;
}

void buf_truncate(struct buf *buf, size_t len)
{
    if (len < buf->len)
        buf->len = len;
}

void buf_chop(struct buf *buf, size_t count)
{
    if (buf->overflow)
        return;
    REQUIRE(count <= buf->len);
    buf->len -= count;
}

void buf_insert(struct buf *buf, size_t at, struct slice bytes)
{
    if (bytes.len == 0 || buf_reserve(buf, bytes.len) == NULL)
        return;
    REQUIRE(at <= buf->len);
    memmove(buf->data + at + bytes.len, buf->data + at, buf->len - at);
    memcpy(buf->data + at, bytes.data, bytes.len);
    buf->len += bytes.len;
}

/* Returns: whether there are `len` > 0 bytes at `at` to change. False after an overflow. */
static bool holds_bytes(const struct buf *buf, size_t at, size_t len)
{
    if (buf->overflow)
        return false;
    REQUIRE(at <= buf->len && len <= buf->len - at);
    return len > 0;
}

void buf_remove(struct buf *buf, size_t at, size_t len)
{
    if (!holds_bytes(buf, at, len))
        return;
    memmove(buf->data + at, buf->data + at + len, buf->len - at - len);
    buf->len -= len;
}

void buf_overwrite(struct buf *buf, size_t at, const void *bytes, size_t len)
{
    if (holds_bytes(buf, at, len))
        memcpy(buf->data + at, bytes, len);
}

void buf_increment_last(struct buf *buf)
{
    REQUIRE(!buf->overflow && buf->len > 0 && (unsigned char)buf->data[buf->len - 1] < UCHAR_MAX);
    buf->data[buf->len - 1]++;
}

struct slice buf_from(const struct buf *buf, size_t at)
{
    if (buf->overflow || at == buf->len)
        return SLICE_NONE;
    REQUIRE(at < buf->len);
    return (struct slice){buf->data + at, buf->len - at};
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_list again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int len = vsnprintf(text, sizeof text, format, arguments);
    INSIST(len >= 0);
    if ((size_t)len < sizeof text) {
        buf_append(buf, text, (size_t)len);
    } else {
        char *to = buf_reserve(buf, (size_t)len + 1);
        if (to != NULL) {
            vsnprintf(to, (size_t)len + 1, format, again);
            buf->len += (size_t)len;
        }
    }
    va_end(again);
    va_end(arguments);
}

void buf_u64(struct buf *buf, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    buf_append(buf, digits + at, sizeof digits - at);
}

void buf_i64(struct buf *buf, int64_t value)
{
    if (value < 0) {
        buf_byte(buf, '-');
        buf_u64(buf, (uint64_t)0 - (uint64_t)value);
    } else {
        buf_u64(buf, (uint64_t)value);
    }
}

static void json_escape(struct buf *buf, unsigned char c)
{
    switch (c) {
    case '"': buf_lit(buf, "\\\""); break;
    case '\\': buf_lit(buf, "\\\\"); break;
    case '\b': buf_lit(buf, "\\b"); break;
    case '\f': buf_lit(buf, "\\f"); break;
    case '\n': buf_lit(buf, "\\n"); break;
    case '\r': buf_lit(buf, "\\r"); break;
    case '\t': buf_lit(buf, "\\t"); break;
    default: buf_printf(buf, "\\u%04X", c); break;
    }
}

/*
 * Returns: whether a character beyond ASCII is a C1 control, a mark of direction, a line or
 * paragraph separator, or has no width.
 */
static bool is_obeyed(uint32_t c)
{
    return (c >= 0x80 && c <= 0x9f) || c == 0xad || c == 0x61c || c == 0x180e || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

size_t buf_glyph(struct slice text, size_t at, bool *ret_harmless)
{
    unsigned char c = (unsigned char)text.data[at];
    size_t len = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    *ret_harmless = false;
    if (len == 1) {
        *ret_harmless = c >= 0x20 && c != 0x7f;
        return 1;
    }
    if (len > text.len - at || slice_utf8_valid_prefix((struct slice){text.data + at, len}) != len) {
        *ret_harmless = c > 0x9f; /* others are C1 to a terminal without UTF-8 */
        return 1;
    }
    uint32_t point = c & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++)
        point = point << 6 | ((unsigned char)text.data[at + i] & 0x3f);
    *ret_harmless = !is_obeyed(point);
    return len;
}

static void spell_out(struct buf *buf, unsigned char c)
{
    static const char names[] = "abtnvfr"; /* of 7 to 13 */
    if (c >= 7 && c <= 13)
        buf_printf(buf, "\\%c", names[c - 7]);
    else
        buf_printf(buf, "\\%03o", c);
}

void buf_escape_line(struct buf *buf, struct slice text)
{
    bool harmless;
    size_t len;
    for (size_t at = 0; at < text.len; at += len) {
        len = buf_glyph(text, at, &harmless);
        if (harmless && text.data[at] == '\\')
            buf_lit(buf, "\\\\");
        else if (harmless)
            buf_append(buf, text.data + at, len);
        for (size_t i = 0; !harmless && i < len; i++)
            spell_out(buf, (unsigned char)text.data[at + i]);
    }
}

void buf_json_string(struct buf *buf, struct slice text)
{
    buf_byte(buf, '"');
    size_t clean = 0, valid = 0; /* end of the bytes written already; end of the bytes known to be valid UTF-8 */
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c >= 0x80 && i >= valid)
            valid = i + slice_utf8_valid_prefix(slice_from_offset(text, i));
        if (c >= 0x20 && c != '"' && c != '\\' && (c < 0x80 || i < valid))
            continue;
        buf_append(buf, text.data + clean, i - clean);
        if (c >= 0x80)
            buf_lit(buf, "\xef\xbf\xbd"); /* U+FFFD */
        else
            json_escape(buf, c);
        clean = i + 1;
    }
    if (text.len > clean)
        buf_append(buf, text.data + clean, text.len - clean);
    buf_byte(buf, '"');
}

char *buf_detach(struct buf *buf, size_t *ret_len)
{
    REQUIRE(!buf->overflow);
    size_t len = buf->len;
    char *bytes = mem_realloc(buf->data, len + 1);
    bytes[len] = '\0';
    *buf = BUF_INIT(buf->max);
    *ret_len = len;
    return bytes;
}

void buf_u32be(struct buf *buf, uint32_t value)
{
    unsigned char bytes[4];
    for (int i = 3; i >= 0; i--, value >>= 8)
        bytes[i] = (unsigned char)value;
    buf_append(buf, bytes, sizeof bytes);
}

void buf_u64be(struct buf *buf, uint64_t value)
{
    unsigned char bytes[8];
    for (int i = 7; i >= 0; i--, value >>= 8)
        bytes[i] = (unsigned char)value;
    buf_append(buf, bytes, sizeof bytes);
}

void buf_varint(struct buf *buf, uint64_t value)
{
    unsigned char bytes[10];
    size_t len = 0;
    while (value >= 0x80) {
        bytes[len++] = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    bytes[len++] = (unsigned char)value;
    buf_append(buf, bytes, len);
}

static uint64_t read_be(const char *data, size_t len)
{
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++)
        value = value << 8 | (unsigned char)data[i];
    return value;
}

bool slice_take(struct slice *bytes, size_t len, struct slice *ret_taken)
{
    if (bytes->len < len)
        return false;
    *ret_taken = (struct slice){bytes->data, len};
    if (len > 0)
        *bytes = (struct slice){bytes->data + len, bytes->len - len};
    return true;
}

bool slice_take_u32be(struct slice *bytes, uint32_t *ret_value)
{
    struct slice taken;
    if (!slice_take(bytes, 4, &taken))
        return false;
    *ret_value = (uint32_t)read_be(taken.data, 4);
    return true;
}

bool slice_take_u64be(struct slice *bytes, uint64_t *ret_value)
{
    struct slice taken;
    if (!slice_take(bytes, 8, &taken))
        return false;
    *ret_value = read_be(taken.data, 8);
    return true;
}

bool slice_take_varint(struct slice *bytes, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes->len && i < 10; i++) {
        unsigned char byte = (unsigned char)bytes->data[i];
        if (i == 9 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *bytes = (struct slice){bytes->data + i + 1, bytes->len - i - 1};
            *ret_value = value;
            return true;
        }
    }
    return false;
}
