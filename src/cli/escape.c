/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of others on a terminal; see escape.h. */
#include "cli/escape.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"

enum { KEPT = 8 }; /* more than one line has */

/* A thread's own; the key's destructor frees them when the thread ends. */
static _Thread_local struct buf kept[KEPT];
static _Thread_local size_t turn;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void free_kept(void *of_thread)
{
    struct buf *bufs = of_thread;
    for (size_t i = 0; i < KEPT; i++)
        buf_deinit(&bufs[i]);
    mem_thread_end(); /* destructors run after that of thread.h */
}

static void make_key(void)
{
    int error = pthread_key_create(&key, free_kept);
    INSIST(error == 0);
}

static struct buf *next_buf(void)
{
    struct buf *buf = &kept[turn++ % KEPT];
    if (buf->data == NULL) {
        *buf = BUF_INIT(BUF_UNLIMITED);
        pthread_once(&once, make_key);
        int error = pthread_setspecific(key, kept);
        INSIST(error == 0);
    }
    buf_clear(buf);
    return buf;
}

const char *escape_terminal_line(struct slice line)
{
    struct buf *buf = next_buf();
    bool harmless;
    size_t len;
    for (size_t at = 0; at < line.len; at += len) {
        len = buf_glyph(line, at, &harmless);
        if (harmless)
            buf_append(buf, line.data + at, len);
        else
            buf_escape_line(buf, slice_make(line.data + at, len));
    }
    buf_byte(buf, '\0');
    return buf->data;
}

const char *escape_terminal_slice(struct slice text)
{
    struct buf *buf = next_buf();
    buf_escape_line(buf, text);
    buf_byte(buf, '\0');
    return buf->data;
}

const char *escape_terminal(const char *text)
{
    return text == NULL ? NULL : escape_terminal_slice(slice_from(text));
}

const char *url_without_password(const char *url)
{
    const char *host = strstr(url, "://");
    host = host == NULL ? url : host + 3;
    const char *at = NULL;
    for (const char *c = host; *c != '\0' && *c != '/'; c++)
        if (*c == '@')
            at = c; /* a password may have one itself */
    if (at == NULL)
        return escape_terminal(url);
    struct buf *buf = next_buf();
    buf_escape_line(buf, slice_make(url, (size_t)(host - url)));
    buf_escape_line(buf, slice_from(at + 1));
    buf_byte(buf, '\0');
    return buf->data;
}

void terminal_overwrite(struct slice lines)
{
    fputs("\033[H", stdout);
    for (; lines.len > 0;) {
        size_t len = slice_find_byte(lines, '\n');
        printf("%.*s\033[K\n", (int)len, lines.data);
        lines = slice_from_offset(lines, len + 1 < lines.len ? len + 1 : lines.len);
    }
    fputs("\033[J", stdout);
}
