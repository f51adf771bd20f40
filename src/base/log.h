/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line per event on standard error, with time and level.
 *
 * Library code never logs above debug; the caller that decides how to proceed logs, once.
 *
 * The queue. By default the thread that logs a line writes it, and blocks while standard error is a
 * pipe or a terminal that is not read. Threads of a server log with locks held. A server therefore
 * calls log_begin_queue(): from then on lines are queued, and a thread of this module writes them.
 *
 * 1. log_line() does not wait for the reader. It waits only for a lock that is held while a line is
 *    copied.
 * 2. Each line is written by a single write(), in the order of the queue.
 * 3. The queue is bounded (LOG_QUEUE_BYTES). A line that finds it full is dropped and counted, and
 *    so are all following lines until the thread takes the queue. A line in their place then
 *    reports how many were dropped.
 * 4. Lines queued when the process ends are written if they are read within LOG_END_US. This holds
 *    for log_flush() before _exit(), log_write_before_abort() before abort(), and exit(), which
 *    flushes.
 *
 * A write to a regular file does not block on a reader. Lines to one are not queued: a line is in
 * the file before the request that it describes is answered.
 */
#ifndef TL_BASE_LOG_H
#define TL_BASE_LOG_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_LEVEL_COUNT };

/* Lines below `level` are dropped. Default LOG_INFO. */
void log_set_level(enum log_level level);
/*
 * Overrides the level of log_set_level(), also of later calls; LOG_LEVEL_COUNT ends the override.
 */
void log_override_level(enum log_level level);

/*
 * LOG_TEXT: "TIME LEVEL: text" (the default). LOG_JSON: an object with the member names of
 * Elasticsearch's JSON logs, "timestamp", "level", "message".
 */
enum log_format { LOG_TEXT, LOG_JSON };
void log_set_format(enum log_format format);

/* Returns: whether lines of `level` are logged. For lines whose arguments are expensive. */
bool log_is_enabled(enum log_level level);

/* Logs a line, truncated to 2000 bytes. Characters that a terminal would interpret become '?'. */
void log_line(enum log_level level, const char *format, ...) TL_PRINTF(2, 3);

/* --- The queue ---------------------------------------------------------------------------------------------------- */

enum { LOG_QUEUE_BYTES = 128 * 1024 };
#define LOG_END_US ((uint64_t)1000000)

/*
 * Directs lines to `fd`, through the queue unless it is a regular file. It may be called again with
 * another `fd`. Requires: the queue is empty. Returns: 0; TL_ERR_IO.
 */
int log_begin_queue(int fd) TL_MUST_USE;
/*
 * Waits until the queue is empty, for at most `us` microseconds. May be called from any thread
 * except the log's own. Returns: whether all lines have been written.
 */
bool log_flush(uint64_t us);
/*
 * Flushes the queue, then writes `text`, a line with its line end. Waits at most LOG_END_US for
 * each. For code that is about to call abort().
 */
void log_write_before_abort(const char *text, size_t len);

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)

#endif
