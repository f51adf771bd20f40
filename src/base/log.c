/* SPDX-License-Identifier: Apache-2.0 */
/* The log; see log.h. */
#include "base/log.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static _Atomic int level_min = LOG_INFO;

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&level_min, (int)level, memory_order_relaxed);
}

bool log_wants(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&level_min, memory_order_relaxed);
}

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const names[LOG_LEVEL_COUNT] = {"debug", "info", "warning", "error"};
    if (!log_wants(level))
        return;

    struct timespec now;
    struct tm day;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &day);

    /* One write a line, so that lines of two threads never mix. */
    char line[2048];
    size_t len = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &day);
    len += (size_t)snprintf(line + len, sizeof line - len, ".%03ldZ %s: ", now.tv_nsec / 1000000, names[level]);
    va_list arguments;
    va_start(arguments, format);
    int text = vsnprintf(line + len, sizeof line - len - 1, format, arguments);
    va_end(arguments);
    if (text > 0)
        len += (size_t)text < sizeof line - len - 1 ? (size_t)text : sizeof line - len - 2;
    bool harmless;
    size_t bytes;
    for (size_t i = 0; i < len; i += bytes) {
        bytes = buf_glyph((struct slice){line, len}, i, &harmless);
        if (!harmless)
            memset(line + i, '?', bytes); /* of a name: no line of the log is a client's, and no terminal obeys one */
    }
    line[len++] = '\n';
    fwrite(line, 1, len, stderr);
}
