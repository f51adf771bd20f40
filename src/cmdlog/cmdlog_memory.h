/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log in memory, for simulators. The *medium* is what stays when hosts die: entries, how far they are durable, checkpoints.
 * Any number of logs may be open on one medium, as hosts of a cluster are on theirs; each sees what the others appended.
 *
 * What may go wrong with a log is asked for here: answers that are forgotten, entries that arrive late, ends that are cut off.
 */
#ifndef TL_CMDLOG_CMDLOG_MEMORY_H
#define TL_CMDLOG_CMDLOG_MEMORY_H

#include "cmdlog/cmdlog_shared.h"

struct cmdlog_medium;

/* Owns: the caller; cmdlog_medium_free() once all logs on it are closed. */
struct cmdlog_medium *cmdlog_medium_new(void);
void cmdlog_medium_free(struct cmdlog_medium *medium);

/* Opens a log on it. Owns: the caller, by cmdlog_close(). */
struct cmdlog *cmdlog_memory_open(struct cmdlog_medium *medium);

/*
 * Opens it as a host, for cmdlog_shared.h: one log at a time has a name. What is appended is durable at once, and its answer known. The catch-up that trimming
 * waits for is cmdlog_medium_set_catch_up()'s, unlimited before. Owns: the caller, by cmdlog_close(), which ends no life.
 */
struct cmdlog *cmdlog_memory_open_as(struct cmdlog_medium *medium, struct slice name);
void cmdlog_medium_set_catch_up(struct cmdlog_medium *medium, uint64_t log_bytes);

/* A host's lease is over. Fine where it is not in. */
void cmdlog_medium_end_life(struct cmdlog_medium *medium, struct slice name);

/* Nothing can be appended (TL_ERR_NO_SPACE), until it can again. */
void cmdlog_medium_set_full(struct cmdlog_medium *medium, bool full);

/* The log cannot be reached by a host, until it can again: what it asks gets CMDLOG_UNREACHABLE, what it appends waits, its followers see nothing. Its lease goes on. */
void cmdlog_medium_partition(struct cmdlog_medium *medium, struct slice name, bool away);

/* A machine dies: what is not durable goes, but for the first `kept` entries of it, which then are. Requires: no log is open. */
void cmdlog_medium_crash(struct cmdlog_medium *medium, uint64_t kept);

/*
 * The next append's answer is lost: the entry is in the log, who asked is told TL_ERR_IO. The log can be appended to on. Of a log that is opened as a host: CMDLOG_UNKNOWN, and
 * its life is over.
 */
void cmdlog_medium_lose_reply(struct cmdlog_medium *medium);

/* Followers see entries up to here only, until it is raised; CMDLOG_POSITION_MAX: all. */
#define CMDLOG_POSITION_MAX UINT64_MAX
void cmdlog_medium_set_visible(struct cmdlog_medium *medium, cmdlog_position up_to);

#endif
