/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of others on a terminal; see shown.h. */
#include "cli/shown.h"

#include "base/buf.h"

enum { KEPT = 8 }; /* more than one line has */

static struct buf *next_buf(void)
{
    static struct buf kept[KEPT];
    static size_t turn;
    struct buf *buf = &kept[turn++ % KEPT];
    if (buf->data == NULL)
        *buf = BUF_INIT(BUF_UNLIMITED);
    buf_clear(buf);
    return buf;
}

const char *shown_line(struct slice line)
{
    struct buf *buf = next_buf();
    bool harmless;
    size_t len;
    for (size_t at = 0; at < line.len; at += len) {
        len = buf_glyph(line, at, &harmless);
        if (harmless)
            buf_append(buf, line.data + at, len);
        else
            buf_in_line(buf, slice_make(line.data + at, len));
    }
    buf_byte(buf, '\0');
    return buf->data;
}

const char *shown_slice(struct slice text)
{
    struct buf *buf = next_buf();
    buf_in_line(buf, text);
    buf_byte(buf, '\0');
    return buf->data;
}

const char *shown(const char *text)
{
    return text == NULL ? NULL : shown_slice(slice_from(text));
}
