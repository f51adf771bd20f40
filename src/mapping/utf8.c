/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 encoding and decoding; see analysis_internal.h. */
#include "base/check.h"
#include "mapping/analysis_internal.h"

/* Returns: the length of the sequence that a first byte begins; 1 for a continuation byte. */
static size_t sequence_len(unsigned char first)
{
    return first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

uint32_t utf8__take(struct slice *text)
{
    REQUIRE(text->len > 0);
    const unsigned char *p = (const unsigned char *)text->data;
    size_t len = sequence_len(p[0]);
    if (len > text->len)
        len = 1;
    uint32_t point = len == 1 ? p[0] : p[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++)
        point = point << 6 | (p[i] & 0x3f);
    *text = slice_from_offset(*text, len);
    return point;
}

void utf8__put(struct buf *buf, uint32_t point)
{
    if (point < 0x80) {
        buf_byte(buf, (char)point);
        return;
    }
    int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    buf_byte(buf, (char)(leads[more] | point >> (6 * more)));
    while (more-- > 0)
        buf_byte(buf, (char)(0x80 | (point >> (6 * more) & 0x3f)));
}

size_t utf8__count(struct slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return count;
}

struct slice utf8__head(struct slice text, size_t count)
{
    if (text.len <= count)
        return text;
    struct slice rest = text;
    while (count-- > 0 && rest.len > 0)
        utf8__take(&rest);
    return slice_make(text.data, text.len - rest.len);
}

bool utf8__is_ascii(struct slice text)
{
    unsigned char all = 0;
    for (size_t i = 0; i < text.len; i++)
        all |= (unsigned char)text.data[i];
    return all < 0x80;
}
