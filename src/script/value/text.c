/* SPDX-License-Identifier: Apache-2.0 */
/* Texts; see text.h. */
#include "script/value/text.h"

#include "base/check.h"

uint32_t utf8_next(const char **at, const char *end)
{
    const uint8_t *p = (const uint8_t *)*at;
    size_t left = (size_t)(end - *at);
    uint32_t c = p[0];
    unsigned more = c < 0x80 ? 0 : c < 0xc2 ? 9 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf5 ? 3 : 9;
    if (more == 9 || more >= left) {
        (*at)++;
        return 0xfffd;
    }
    c = more == 0 ? c : c & (0x3fu >> more);
    for (unsigned i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            (*at)++;
            return 0xfffd;
        }
        c = c << 6 | (p[i] & 0x3fu);
    }
    *at += more + 1;
    return c;
}

size_t utf8_units(struct slice utf8)
{
    size_t units = 0;
    const char *end = utf8.data + utf8.len;
    for (const char *at = utf8.data; at < end;)
        units += utf8_next(&at, end) > 0xffff ? 2 : 1;
    return units;
}

struct slice utf8_part(struct slice utf8, size_t from, size_t to)
{
    const char *at = utf8.data, *end = utf8.data + utf8.len, *start = NULL;
    size_t units = 0;
    while (at < end && units < to) {
        if (units >= from && start == NULL)
            start = at;
        units += utf8_next(&at, end) > 0xffff ? 2 : 1;
    }
    return start == NULL ? SLICE_LIT("") : slice_make(start, (size_t)(at - start));
}

/* Computes the length in units and the bitwise OR of all units; above 0xff the text is wide. */
static size_t measure_utf8(struct slice utf8, uint32_t *ret_all)
{
    size_t units = 0;
    uint32_t all = 0;
    const char *end = utf8.data + utf8.len;
    for (const char *at = utf8.data; at < end; units++) {
        uint32_t c = utf8_next(&at, end);
        all |= c;
        units += c > 0xffff;
    }
    *ret_all = all;
    return units;
}

static size_t text_size(size_t length, bool wide)
{
    return offsetof(struct text, data) + (length + 1) * (wide ? 2 : 1);
}

static void text_fill(struct text *text, struct slice utf8, size_t length, bool wide)
{
    *text = (struct text){.object = {.class = CLASS_STRING}, .length = (uint32_t)length, .wide = wide};
    const char *end = utf8.data + utf8.len;
    size_t i = 0;
    for (const char *at = utf8.data; at < end;) {
        uint32_t c = utf8_next(&at, end);
        if (!wide) {
            text->data.narrow[i++] = (uint8_t)c;
        } else if (c > 0xffff) {
            text->data.units[i++] = (uint16_t)(0xd800 + ((c - 0x10000) >> 10));
            text->data.units[i++] = (uint16_t)(0xdc00 + ((c - 0x10000) & 0x3ff));
        } else {
            text->data.units[i++] = (uint16_t)c;
        }
    }
}

static struct text *text_alloc(struct run *run, size_t length, bool wide)
{
    if (length > TEXT_LENGTH_MAX) {
        run->steps_left = run->steps_reserved = 0;
        run->exhausted = RUN_EXHAUSTED_MEMORY;
        run_fail_exhausted(run);
        return NULL;
    }
    size_t size = text_size(length, wide);
    struct text *text = run_alloc_large(run, size < sizeof *text ? sizeof *text : size);
    if (text != NULL)
        *text = (struct text){.object = {.class = CLASS_STRING}, .length = (uint32_t)length, .wide = wide};
    return text;
}

struct text *text_new(struct run *run, struct slice utf8)
{
    uint32_t all;
    size_t length = measure_utf8(utf8, &all);
    struct text *text = text_alloc(run, length, all > 0xff);
    if (text != NULL)
        text_fill(text, utf8, length, all > 0xff);
    return text;
}

struct text *text_constant(struct arena *arena, struct slice utf8)
{
    uint32_t all;
    size_t length = measure_utf8(utf8, &all);
    size_t size = text_size(length, all > 0xff);
    struct text *text = arena_alloc(arena, size < sizeof *text ? sizeof *text : size);
    text_fill(text, utf8, length, all > 0xff);
    text_hash(text);
    return text;
}

int32_t text_hash(struct text *text)
{
    if (text->hashed)
        return text->hash;
    uint32_t hash = 0;
    if (text->wide)
        for (size_t i = 0; i < text->length; i++)
            hash = hash * 31 + text->data.units[i];
    else
        for (size_t i = 0; i < text->length; i++)
            hash = hash * 31 + text->data.narrow[i];
    text->hash = (int32_t)hash;
    text->hashed = true;
    return text->hash;
}

bool text_equal(const struct text *a, const struct text *b)
{
    if (a == b)
        return true;
    if (a->length != b->length)
        return false;
    if (a->wide == b->wide)
        return memcmp(&a->data, &b->data, a->length * (a->wide ? 2u : 1u)) == 0;
    for (size_t i = 0; i < a->length; i++)
        if (text_at(a, i) != text_at(b, i))
            return false;
    return true;
}

bool text_is(const struct text *text, const char *ascii)
{
    size_t len = strlen(ascii);
    if (text->length != len || text->wide)
        return false;
    return memcmp(text->data.narrow, ascii, len) == 0;
}

bool text_same(struct run *run, const struct text *a, const struct text *b)
{
    if (a != b && a->length == b->length)
        run_work(run, a->length);
    return text_equal(a, b);
}

bool text_has_at(struct run *run, const struct text *text, const struct text *part, int64_t at)
{
    if (at < 0 || at + (int64_t)part->length > (int64_t)text->length)
        return false;
    size_t i = 0;
    while (i < part->length && text_at(text, (size_t)at + i) == text_at(part, i))
        i++;
    run_work(run, i);
    return i == part->length;
}

int text_compare(struct run *run, const struct text *a, const struct text *b)
{
    size_t common = a->length < b->length ? a->length : b->length, i = 0;
    while (i < common && text_at(a, i) == text_at(b, i))
        i++;
    run_work(run, i);
    return i < common ? (int)text_at(a, i) - (int)text_at(b, i) : (int)a->length - (int)b->length;
}

struct text *text_substring(struct run *run, struct text *text, size_t begin, size_t end)
{
    REQUIRE(begin <= end && end <= text->length);
    if (begin == 0 && end == text->length)
        return text;
    bool wide = false;
    for (size_t i = begin; text->wide && !wide && i < end; i++)
        wide = text->data.units[i] > 0xff;
    struct text *part = text_alloc(run, end - begin, wide);
    if (part == NULL)
        return NULL;
    for (size_t i = begin; i < end; i++) {
        if (wide)
            part->data.units[i - begin] = text->data.units[i];
        else
            part->data.narrow[i - begin] = (uint8_t)text_at(text, i);
    }
    return part;
}

struct text *text_concat(struct run *run, struct text *a, struct text *b)
{
    bool wide = a->wide || b->wide;
    size_t length = (size_t)a->length + b->length;
    struct text *both = text_alloc(run, length, wide);
    if (both == NULL)
        return NULL;
    if (!wide) {
        memcpy(both->data.narrow, a->data.narrow, a->length);
        memcpy(both->data.narrow + a->length, b->data.narrow, b->length);
        return both;
    }
    for (size_t i = 0; i < length; i++)
        both->data.units[i] = i < a->length ? text_at(a, i) : text_at(b, i - a->length);
    return both;
}

static uint32_t text_code_point(const struct text *text, size_t *index)
{
    uint32_t c = text_at(text, (*index)++);
    if (c < 0xd800 || c > 0xdfff)
        return c;
    if (c < 0xdc00 && *index < text->length) {
        uint32_t low = text_at(text, *index);
        if (low >= 0xdc00 && low <= 0xdfff) {
            (*index)++;
            return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    return '?';
}

static size_t utf8_put(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

struct slice text_slice(struct arena *arena, const struct text *text)
{
    char *out = arena_alloc(arena, (size_t)text->length * (text->wide ? 3u : 2u) + 4);
    size_t len = 0;
    for (size_t i = 0; i < text->length;)
        len += utf8_put(text_code_point(text, &i), out + len);
    out[len] = '\0';
    return slice_make(out, len);
}

struct slice text_utf8(struct run *run, const struct text *text)
{
    size_t size = (size_t)text->length * (text->wide ? 3u : 2u) + 4;
    run_work(run, text->length);
    run_charge(run, size);
    return run->exhausted == RUN_EXHAUSTED_MEMORY ? SLICE_LIT("") : text_slice(run->arena, text);
}

#define SET_SMALL 8
#define UNIT_COUNT 65536

bool text_set_init(struct text_set *set, struct run *run, const struct text *units)
{
    *set = (struct text_set){.units = units};
    if (units->length <= SET_SMALL)
        return true;
    set->bits = run_alloc_large(run, UNIT_COUNT / 8);
    if (set->bits == NULL)
        return false;
    memset(set->bits, 0, UNIT_COUNT / 8);
    for (size_t i = 0; i < units->length; i++)
        set->bits[text_at(units, i) / 64] |= (uint64_t)1 << text_at(units, i) % 64;
    run_work(run, units->length);
    return true;
}

/* Under construction */

void text_buf_init(struct text_buf *buf, struct run *run)
{
    buf->run = run;
    buf->units = buf->small;
    buf->length = 0;
    buf->capacity = sizeof buf->small / sizeof *buf->small;
    buf->all = 0;
    buf->failed = false;
}

static bool text_buf_grow(struct text_buf *buf, size_t more)
{
    if (buf->failed)
        return false;
    size_t capacity = buf->capacity;
    while (capacity < buf->length + more)
        capacity *= 2;
    uint16_t *units = capacity > TEXT_LENGTH_MAX * 2 ? NULL : run_alloc_large(buf->run, capacity * 2);
    if (units == NULL) {
        if (buf->run->thrown == NULL) {
            buf->run->exhausted = RUN_EXHAUSTED_MEMORY;
            run_fail_exhausted(buf->run);
        }
        buf->failed = true;
        return false;
    }
    memcpy(units, buf->units, buf->length * 2);
    buf->units = units;
    buf->capacity = capacity;
    return true;
}

void text_buf_unit(struct text_buf *buf, uint16_t unit)
{
    if (buf->length == buf->capacity && !text_buf_grow(buf, 1))
        return;
    buf->units[buf->length++] = unit;
    buf->all |= unit;
}

void text_buf_code_point(struct text_buf *buf, uint32_t point)
{
    if (point > 0xffff) {
        text_buf_unit(buf, (uint16_t)(0xd800 + ((point - 0x10000) >> 10)));
        point = 0xdc00 + ((point - 0x10000) & 0x3ff);
    }
    text_buf_unit(buf, (uint16_t)point);
}

void text_buf_range(struct text_buf *buf, const struct text *text, size_t begin, size_t end)
{
    if (buf->capacity - buf->length < end - begin && !text_buf_grow(buf, end - begin))
        return;
    for (size_t i = begin; i < end; i++) {
        uint16_t unit = text_at(text, i);
        buf->units[buf->length++] = unit;
        buf->all |= unit;
    }
}

void text_buf_text(struct text_buf *buf, const struct text *text)
{
    text_buf_range(buf, text, 0, text->length);
}

void text_buf_ascii(struct text_buf *buf, const char *ascii)
{
    for (; *ascii != '\0'; ascii++)
        text_buf_unit(buf, (uint8_t)*ascii);
}

void text_buf_slice(struct text_buf *buf, struct slice utf8)
{
    const char *end = utf8.data + utf8.len;
    for (const char *at = utf8.data; at < end;)
        text_buf_code_point(buf, utf8_next(&at, end));
}

struct text *text_buf_done(struct text_buf *buf)
{
    if (buf->failed)
        return NULL;
    struct text *text = text_alloc(buf->run, buf->length, buf->all > 0xff);
    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < buf->length; i++) {
        if (text->wide)
            text->data.units[i] = buf->units[i];
        else
            text->data.narrow[i] = (uint8_t)buf->units[i];
    }
    return text;
}
