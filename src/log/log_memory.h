/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log in memory, for simulators. The *medium* is what stays when hosts die: entries, how far they are durable, checkpoints.
 * Any number of logs may be open on one medium, as hosts of a cluster are on theirs; each sees what the others appended.
 *
 * What may go wrong with a log is asked for here: answers that are forgotten, entries that arrive late, ends that are cut off.
 */
#ifndef TL_LOG_LOG_MEMORY_H
#define TL_LOG_LOG_MEMORY_H

#include "log/log.h"

struct log_medium;

/* Owns: the caller; log_medium_free() once all logs on it are closed. */
struct log_medium *log_medium_new(void);
void log_medium_free(struct log_medium *medium);

/* Opens a log on it. Owns: the caller, by log_close(). */
struct log *log_memory_open(struct log_medium *medium);

/* A machine dies: what is not durable goes, but for the first `kept` entries of it, which then are. Requires: no log is open. */
void log_medium_crash(struct log_medium *medium, uint64_t kept);

/* The next append's answer is lost: the entry is in the log, who asked is told TL_ERR_IO. The log can be appended to on. */
void log_medium_forget_answer(struct log_medium *medium);

/* Followers see entries up to here only, until it is raised; LOG_POSITION_MAX: all. */
#define LOG_POSITION_MAX UINT64_MAX
void log_medium_show(struct log_medium *medium, log_position up_to);

#endif
