/* SPDX-License-Identifier: Apache-2.0 */
/* The log; see log.h. */
#include "base/log.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    TEXT_BYTES_MAX = 2000, /* of an event; longer texts are truncated */
    LINE_BYTES_MAX = 2 * TEXT_BYTES_MAX + 128,
    HALF_BYTES = LOG_QUEUE_BYTES / 2,
};

/* One of the two buffers of the queue: concatenated lines. */
struct half {
    char *bytes; /* HALF_BYTES */
    size_t len;
};

static struct {
    _Atomic int fd;
    atomic_bool queues; /* lines are queued; else the calling thread writes them */
    pthread_mutex_t lock;
    pthread_cond_t filled, written;
    struct half filling; /* guarded by `lock` */
    struct half writing; /* the thread's; empty unless `busy` */
    bool busy;           /* the thread is writing */
    bool runs;           /* the thread was started */
    uint64_t dropped;    /* lines dropped because `filling` was full */
} queue = {.fd = STDERR_FILENO,
           .lock = PTHREAD_MUTEX_INITIALIZER,
           .filled = PTHREAD_COND_INITIALIZER,
           .written = PTHREAD_COND_INITIALIZER};

static _Atomic int level_min = LOG_INFO;
static _Atomic int level_override = LOG_LEVEL_COUNT; /* replaces level_min; LOG_LEVEL_COUNT: none */
static _Atomic int format_now = LOG_TEXT;

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&level_min, (int)level, memory_order_relaxed);
}

void log_override_level(enum log_level level)
{
    atomic_store_explicit(&level_override, (int)level, memory_order_relaxed);
}

void log_set_format(enum log_format format)
{
    atomic_store_explicit(&format_now, (int)format, memory_order_relaxed);
}

bool log_is_enabled(enum log_level level)
{
    int override = atomic_load_explicit(&level_override, memory_order_relaxed);
    return (int)level >=
           (override != LOG_LEVEL_COUNT ? override : atomic_load_explicit(&level_min, memory_order_relaxed));
}

/*
 * Formats the text of an event. It may contain a client's names, so characters that would start a
 * line or control a terminal are replaced by '?'.
 */
static void format_text(char text[static TEXT_BYTES_MAX], const char *format, va_list arguments)
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

/* Escapes for a JSON string. The text has no control characters any more, so " and \ suffice. */
static void escape_json(const char *text, char json[static 2 * TEXT_BYTES_MAX])
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            *json++ = '\\';
        *json++ = *text;
    }
    *json = '\0';
}

/* Formats a complete line. Returns: its length. */
static size_t make_line(enum log_level level, const char *text, char line[static LINE_BYTES_MAX])
{
    static const char *const names[LOG_LEVEL_COUNT] = {"debug", "info", "warning", "error"};
    static const char *const es_names[LOG_LEVEL_COUNT] = {"DEBUG", "INFO", "WARN", "ERROR"};
    struct timespec now;
    struct tm day;
    char date[32], json[2 * TEXT_BYTES_MAX];
    int len;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &day);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &day);
    if (atomic_load_explicit(&format_now, memory_order_relaxed) == LOG_JSON) {
        escape_json(text, json);
        len = snprintf(line, LINE_BYTES_MAX, "{\"timestamp\": \"%s.%03ldZ\", \"level\": \"%s\", \"message\": \"%s\"}\n",
                       date, now.tv_nsec / 1000000, es_names[level], json);
    } else {
        len = snprintf(line, LINE_BYTES_MAX, "%s.%03ldZ %s: %s\n", date, now.tv_nsec / 1000000, names[level], text);
    }
    return len > 0 ? (size_t)len : 0;
}

/*
 * Writes a line by a single write(), so that lines of several threads or processes do not mix.
 * Errors are ignored: they could only be reported to the log itself.
 */
static void write_line(const char *line, size_t len)
{
    int fd = atomic_load(&queue.fd);
    while (len > 0) {
        ssize_t written = write(fd, line, len);
        if (written < 0 && errno == EAGAIN)
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (written < 0 && errno != EINTR)
            return;
        if (written > 0) {
            line += written;
            len -= (size_t)written;
        }
    }
}

/* --- The queue ---------------------------------------------------------------------------------------------------- */

/* Requires: the lock; the line fits. */
static void append_filling(const char *line, size_t len)
{
    memcpy(queue.filling.bytes + queue.filling.len, line, len);
    queue.filling.len += len;
}

static void enqueue_line(const char *line, size_t len)
{
    pthread_mutex_lock(&queue.lock);
    if (queue.dropped > 0 || queue.filling.len + len > HALF_BYTES)
        queue.dropped++;
    else
        append_filling(line, len);
    pthread_cond_signal(&queue.filled);
    pthread_mutex_unlock(&queue.lock);
}

/*
 * Swaps the buffers for the thread. Lines dropped meanwhile are reported in the new `filling`,
 * after the taken lines. Requires: the lock.
 */
static void take_filling(void)
{
    struct half taken = queue.filling;
    queue.filling = queue.writing;
    queue.writing = taken;
    queue.busy = true;
    if (queue.dropped > 0) {
        char text[TEXT_BYTES_MAX], line[LINE_BYTES_MAX];
        snprintf(text, sizeof text, "%" PRIu64 " lines of the log were dropped here: standard error was not read",
                 queue.dropped);
        append_filling(line, make_line(LOG_WARNING, text, line));
        queue.dropped = 0;
    }
}

static void write_queue(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&queue.lock);
    for (;;) {
        while (queue.filling.len == 0)
            pthread_cond_wait(&queue.filled, &queue.lock);
        take_filling();
        pthread_mutex_unlock(&queue.lock);
        for (size_t at = 0, len; at < queue.writing.len; at += len) {
            const char *line = queue.writing.bytes + at;
            len = (size_t)((const char *)memchr(line, '\n', queue.writing.len - at) - line) + 1;
            write_line(line, len);
        }
        pthread_mutex_lock(&queue.lock);
        queue.writing.len = 0;
        queue.busy = false;
        pthread_cond_broadcast(&queue.written);
    }
}

static void end_of_process(void)
{
    (void)log_flush(LOG_END_US);
}

/* Starts the thread. Requires: the lock. Returns: 0; TL_ERR_IO. */
static int start_thread(void)
{
    queue.filling = (struct half){.bytes = mem_alloc(HALF_BYTES)};
    queue.writing = (struct half){.bytes = mem_alloc(HALF_BYTES)};
    if (thread_start_detached("log", write_queue, NULL) != 0)
        return TL_ERR_IO;
    queue.runs = true;
    return atexit(end_of_process) == 0 ? 0 : TL_ERR_IO;
}

int log_begin_queue(int fd)
{
    struct stat stat;
    bool queues = fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode);
    pthread_mutex_lock(&queue.lock);
    REQUIRE(queue.filling.len == 0);
    int r = !queues || queue.runs ? 0 : start_thread();
    if (r == 0) {
        atomic_store(&queue.fd, fd);
        atomic_store(&queue.queues, queues);
    }
    pthread_mutex_unlock(&queue.lock);
    return r;
}

bool log_flush(uint64_t us)
{
    uint64_t until = clock_boot_us() + us;
    if (!atomic_load(&queue.queues))
        return true;
    pthread_mutex_lock(&queue.lock);
    while ((queue.filling.len > 0 || queue.busy) && clock_wait(&queue.written, &queue.lock, until))
        ;
    bool written = queue.filling.len == 0 && !queue.busy;
    pthread_mutex_unlock(&queue.lock);
    return written;
}

void log_write_before_abort(const char *text, size_t len)
{
    struct pollfd ready = {.fd = atomic_load(&queue.fd), .events = POLLOUT};
    if (log_flush(LOG_END_US) && poll(&ready, 1, (int)(LOG_END_US / 1000)) > 0)
        (void)!write(ready.fd, text, len);
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

void log_line(enum log_level level, const char *format, ...)
{
    char text[TEXT_BYTES_MAX], line[LINE_BYTES_MAX];
    if (!log_is_enabled(level))
        return;
    va_list arguments;
    va_start(arguments, format);
    format_text(text, format, arguments);
    va_end(arguments);
    size_t len = make_line(level, text, line);
    if (atomic_load(&queue.queues))
        enqueue_line(line, len);
    else
        write_line(line, len);
}
