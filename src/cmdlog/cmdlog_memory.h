/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command log in memory, for simulators. The *medium* is the part that survives crashes: entries,
 * the durable position, checkpoints. Any number of logs may be open on one medium, like the hosts
 * of a cluster; each sees the others' entries.
 *
 * The medium also injects faults: lost replies, entries that become visible late, entries lost in a
 * crash.
 */
#ifndef TL_CMDLOG_CMDLOG_MEMORY_H
#define TL_CMDLOG_CMDLOG_MEMORY_H

#include "cmdlog/cmdlog_shared.h"

struct cmdlog_medium;

/* Owns: the caller; cmdlog_medium_free() after all logs on it have been closed. */
struct cmdlog_medium *cmdlog_medium_new(void);
void cmdlog_medium_free(struct cmdlog_medium *medium);

/* Opens the medium as a single host's log. Owns: the caller, by cmdlog_close(). */
struct cmdlog *cmdlog_memory_open(struct cmdlog_medium *medium);

/*
 * Opens the medium as the log of host `name`, with the calls of cmdlog_shared.h. Appended entries
 * are durable at once.
 * Requires: no other open log has this name.
 * Owns: the caller, by cmdlog_close(), which does not end the host's life.
 */
struct cmdlog *cmdlog_memory_open_as(struct cmdlog_medium *medium, struct slice name);
/* Sets how many bytes of log cmdlog_trim() retains for a host that lags; initially unlimited. */
void cmdlog_medium_set_catch_up(struct cmdlog_medium *medium, uint64_t log_bytes);

/* Ends a host's life, as the end of its lease does. No effect if it has none. */
void cmdlog_medium_end_life(struct cmdlog_medium *medium, struct slice name);

/* Makes submissions fail with TL_ERR_NO_SPACE, or succeed again. */
void cmdlog_medium_set_full(struct cmdlog_medium *medium, bool full);

/*
 * Partitions a host from the log, or reconnects it. Meanwhile its requests fail with
 * CMDLOG_UNREACHABLE, its submissions with CMDLOG_BUSY, and its cursors see nothing. Its lease does
 * not end.
 */
void cmdlog_medium_partition(struct cmdlog_medium *medium, struct slice name, bool away);

/*
 * Simulates a machine crash: of the entries that are not durable, the first `kept` become durable
 * and the rest is lost.
 * Requires: no log is open.
 */
void cmdlog_medium_crash(struct cmdlog_medium *medium, uint64_t kept);

/*
 * Loses the reply to the next append. The entry is in the log, but the append returns TL_ERR_IO;
 * later appends work. Of a log opened as a host it returns CMDLOG_UNKNOWN, and the host's life
 * ends.
 */
void cmdlog_medium_lose_reply(struct cmdlog_medium *medium);

/* Hides entries after `up_to` from cursors; CMDLOG_POSITION_MAX: shows all. */
#define CMDLOG_POSITION_MAX UINT64_MAX
void cmdlog_medium_set_visible(struct cmdlog_medium *medium, cmdlog_position up_to);

#endif
