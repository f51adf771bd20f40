/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page that outlives the process: which of the things that ended sessions left is being done.
 *
 * DATA/at-work, 4 KiB, is mapped into memory and shared, so that to note something costs a few stores, and what was noted is there when
 * the process has ended in the next moment, however that was. It is not there when the machine has; then nothing in the process did it.
 * A start that finds something noted says so with the command TRIED (core/README-locks.md, "What ends the process").
 */
#ifndef TL_JOURNAL_AT_WORK_H
#define TL_JOURNAL_AT_WORK_H

#include "base/error.h"
#include "base/slice.h"

struct at_work;
struct command;
struct core_watch;

/*
 * Opens the page in a data directory, or makes it. One that is damaged, as a machine that went down may leave it, notes nothing.
 * Returns: 0; TL_ERR_IO. Owns: the caller; at_work_close().
 */
int at_work_open(struct slice directory, struct at_work **ret_at_work) TL_MUST_USE;
/* NULL is fine. */
void at_work_close(struct at_work *at_work);

/* Returns: whether something was under way when it was opened; then a command TRIED is filled in, of its own memory. */
bool at_work_found(const struct at_work *at_work, struct command *command);

/* Returns: who notes and clears, for core_watch(); lives as long as this. */
const struct core_watch *at_work_watch(struct at_work *at_work);

#endif
