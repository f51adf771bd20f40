/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: one line an event on standard error, with time and level.
 *
 * Library code never logs above debug; whoever decides what to do about a thing logs it, once.
 */
#ifndef TL_BASE_LOG_H
#define TL_BASE_LOG_H

#include "base/error.h"

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR, LOG_LEVEL_COUNT };

/* Lines below `level` are dropped. Default LOG_INFO. */
void log_set_level(enum log_level level);
/* Another level counts in its place, whatever that is set to meanwhile; LOG_LEVEL_COUNT: none does any more. */
void log_overrule_level(enum log_level level);

/*
 * A line as it is read by people, "TIME LEVEL: text" (the default), or a JSON object with the names of Elasticsearch's own logs, "timestamp", "level",
 * "message", for programs that collect them.
 */
enum log_format { LOG_TEXT, LOG_JSON };
void log_set_format(enum log_format format);

/* Returns: whether lines of `level` are kept: for those that cost something to make. */
bool log_wants(enum log_level level);

void log_line(enum log_level level, const char *format, ...) TL_PRINTF(2, 3);

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)

#endif
