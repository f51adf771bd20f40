/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line an event on standard error, with time and level.
 *
 * Library code never logs above debug; whoever decides what to do about a thing logs it, once.
 *
 * The queue. A line is written by the thread that logs it, which waits where standard error is a pipe or a terminal that nobody reads. A server, whose
 * threads log with locks held, calls log_begin_queue(): from then on lines are queued, and a thread of the log's writes them.
 *
 * 1. log_line() waits for no reader, and for nothing but a lock that is held for a copy of one line.
 * 2. Lines are written whole, one write each, in the order in which they were queued.
 * 3. The queue is bounded (LOG_QUEUE_BYTES). What finds it full is left out and counted, and so is all that follows until the thread takes the queue; then
 *    a line says how many were left out, in their place.
 * 4. What is queued when the process ends is written where somebody reads it within LOG_END_US, in whatever way the process ends itself: log_flush() before
 *    _exit(), log_write_before_abort() before abort(), and exit() by itself.
 *
 * A regular file has no reader that could be away: lines are written to it as without a queue, so that they are there before what they tell of is answered.
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
/* Another level counts in its place, whatever that is set to meanwhile; LOG_LEVEL_COUNT: none does any more. */
void log_override_level(enum log_level level);

/*
 * A line as it is read by people, "TIME LEVEL: text" (the default), or a JSON object with the names of Elasticsearch's own logs, "timestamp", "level",
 * "message", for programs that collect them.
 */
enum log_format { LOG_TEXT, LOG_JSON };
void log_set_format(enum log_format format);

/* Returns: whether lines of `level` are kept: for those that cost something to make. */
bool log_is_enabled(enum log_level level);

void log_line(enum log_level level, const char *format, ...) TL_PRINTF(2, 3);

/* --- The queue ---------------------------------------------------------------------------------------------------- */

enum { LOG_QUEUE_BYTES = 128 * 1024 };
#define LOG_END_US ((uint64_t)1000000)

/* From now on lines go to `fd`, by the queue unless that is a regular file. Called again, with an empty queue, it takes another. Returns: 0, TL_ERR_IO. */
int log_begin_queue(int fd) TL_MUST_USE;
/* Waits until all is written that was queued before, for `us` at most. Returns: whether it is. From any thread but the log's. */
bool log_flush(uint64_t us);
/* For who is about to abort(): flushes, and writes the text (one line, with its end), as far as that goes within LOG_END_US each. */
void log_write_before_abort(const char *text, size_t len);

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)

#endif
