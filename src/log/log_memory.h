/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log in memory, for simulators. The *medium* is what stays when hosts die: entries, how far they are durable, checkpoints.
 * Any number of logs may be open on one medium, as hosts of a cluster are on theirs; each sees what the others appended.
 *
 * What may go wrong with a log is asked for here: answers that are forgotten, entries that arrive late, ends that are cut off.
 */
#ifndef TL_LOG_LOG_MEMORY_H
#define TL_LOG_LOG_MEMORY_H

#include "log/log_shared.h"

struct log_medium;

/* Owns: the caller; log_medium_free() once all logs on it are closed. */
struct log_medium *log_medium_new(void);
void log_medium_free(struct log_medium *medium);

/* Opens a log on it. Owns: the caller, by log_close(). */
struct log *log_memory_open(struct log_medium *medium);

/*
 * Opens it as a host, for log_shared.h: one log at a time has a name. What is appended is durable at once, and its answer known. The catch-up that trimming
 * waits for is log_medium_catch_up()'s, unlimited before. Owns: the caller, by log_close(), which ends no life.
 */
struct log *log_memory_open_as(struct log_medium *medium, struct slice name);
void log_medium_catch_up(struct log_medium *medium, uint64_t log_bytes);

/* A host's lease is over. Fine where it is not in. */
void log_medium_end_life(struct log_medium *medium, struct slice name);

/* Nothing can be appended (TL_ERR_NO_SPACE), until it can again. */
void log_medium_fill(struct log_medium *medium, bool full);

/* The log cannot be reached by a host, until it can again: what it asks gets LOG_AWAY, what it appends waits, its followers see nothing. Its lease goes on. */
void log_medium_part(struct log_medium *medium, struct slice name, bool away);

/* A machine dies: what is not durable goes, but for the first `kept` entries of it, which then are. Requires: no log is open. */
void log_medium_crash(struct log_medium *medium, uint64_t kept);

/*
 * The next append's answer is lost: the entry is in the log, who asked is told TL_ERR_IO. The log can be appended to on. Of a log that is opened as a host: LOG_UNKNOWN, and
 * its life is over.
 */
void log_medium_forget_answer(struct log_medium *medium);

/* Followers see entries up to here only, until it is raised; LOG_POSITION_MAX: all. */
#define LOG_POSITION_MAX UINT64_MAX
void log_medium_show(struct log_medium *medium, log_position up_to);

#endif
