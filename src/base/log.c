/* SPDX-License-Identifier: Apache-2.0 */
/* The log; see log.h. */
#include "base/log.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TEXT_BYTES_MAX = 2000 }; /* of an event; the rest of it is cut off */

static _Atomic int level_min = LOG_INFO;
static _Atomic int level_instead = LOG_LEVEL_COUNT; /* of level_min; LOG_LEVEL_COUNT: none */
static _Atomic int format_now = LOG_TEXT;

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&level_min, (int)level, memory_order_relaxed);
}

void log_overrule_level(enum log_level level)
{
    atomic_store_explicit(&level_instead, (int)level, memory_order_relaxed);
}

void log_set_format(enum log_format format)
{
    atomic_store_explicit(&format_now, (int)format, memory_order_relaxed);
}

bool log_wants(enum log_level level)
{
    int instead = atomic_load_explicit(&level_instead, memory_order_relaxed);
    return (int)level >=
           (instead != LOG_LEVEL_COUNT ? instead : atomic_load_explicit(&level_min, memory_order_relaxed));
}

/* An event's text. It may have names in it: no line of the log is a client's, and no terminal obeys one. */
static void tell(char text[static TEXT_BYTES_MAX], const char *format, va_list arguments)
{
    bool harmless;
    size_t bytes;
    if (vsnprintf(text, TEXT_BYTES_MAX, format, arguments) < 0)
        text[0] = '\0';
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i += bytes) {
        bytes = buf_glyph((struct slice){text, len}, i, &harmless);
        if (!harmless)
            memset(text + i, '?', bytes);
    }
}

/* What is left of a text is one line without controls: only these two mean anything inside of a JSON string. */
static void quote(const char *text, char json[static 2 * TEXT_BYTES_MAX])
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            *json++ = '\\';
        *json++ = *text;
    }
    *json = '\0';
}

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const names[LOG_LEVEL_COUNT] = {"debug", "info", "warning", "error"};
    static const char *const theirs[LOG_LEVEL_COUNT] = {"DEBUG", "INFO", "WARN", "ERROR"};
    if (!log_wants(level))
        return;

    struct timespec now;
    struct tm day;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &day);
    char date[32], text[TEXT_BYTES_MAX], json[2 * TEXT_BYTES_MAX], line[2 * TEXT_BYTES_MAX + 128];
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &day);
    va_list arguments;
    va_start(arguments, format);
    tell(text, format, arguments);
    va_end(arguments);

    /* One write a line, so that lines of two threads never mix. */
    int len;
    if (atomic_load_explicit(&format_now, memory_order_relaxed) == LOG_JSON) {
        quote(text, json);
        len = snprintf(line, sizeof line, "{\"timestamp\": \"%s.%03ldZ\", \"level\": \"%s\", \"message\": \"%s\"}\n",
                       date, now.tv_nsec / 1000000, theirs[level], json);
    } else {
        len = snprintf(line, sizeof line, "%s.%03ldZ %s: %s\n", date, now.tv_nsec / 1000000, names[level], text);
    }
    if (len > 0)
        fwrite(line, 1, (size_t)len, stderr);
}
