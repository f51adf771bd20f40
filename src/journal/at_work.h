/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page that outlives the process: which entry of the log is being applied, and which of the things that ended sessions left is being done.
 *
 * DATA/at-work, 4 KiB, is mapped into memory and shared, so that to note something costs a few stores, and what was noted is there when
 * the process has ended in the next moment, however that was. It is not there when the machine has; then nothing in the process did it.
 * A start that finds an action noted says so with the command TRIED (core/README-locks.md, "What ends the process"); of an entry it counts
 * how often the process has ended in it (README.md, "Poison entries").
 */
#ifndef TL_JOURNAL_AT_WORK_H
#define TL_JOURNAL_AT_WORK_H

#include "base/error.h"
#include "base/slice.h"

struct at_work;
struct command;
struct core_watch;

/* How often the process may end in the same entry before a start is refused. */
enum { AT_WORK_ENDS_MAX = 2 };

/* An entry of the log in which the process ended. */
struct at_work_entry {
    uint64_t position; /* in the log, not 0 */
    uint64_t ts;       /* of its head; with its length it tells one log from another */
    uint64_t bytes;
    uint32_t command; /* which of its commands had begun last, from 1; 0: none */
    uint32_t ends;    /* how often, since it was applied to its end the last time; at least 1 */
};

/*
 * Opens the page in a data directory, or makes it, and counts what the process before this one ended in. One that is damaged, as a machine that went down
 * may leave it, notes nothing. `boot` names the boot of the machine: an entry that was noted under another one, or where it is empty, is forgotten.
 * Returns: 0; TL_ERR_IO. Owns: the caller; at_work_close().
 */
int at_work_open(struct slice directory, struct slice boot, struct at_work **ret_at_work) TL_MUST_USE;
/* NULL is fine. */
void at_work_close(struct at_work *at_work);

/* --- What ended sessions left ------------------------------------------------------------------------------------- */

/* Returns: whether something was under way when it was opened; then a command TRIED is filled in, of its own memory. */
bool at_work_found(const struct at_work *at_work, struct command *command);

/* Returns: what notes and clears, for core_watch(); lives as long as this. */
const struct core_watch *at_work_watch(struct at_work *at_work);

/* --- Entries ------------------------------------------------------------------------------------------------------ */

/* Notes that an entry is applied from now on. `at_work` NULL, here and below: nothing is noted. Requires: one at a time. */
void at_work_begin_entry(struct at_work *at_work, uint64_t position, uint64_t ts, uint64_t bytes);
/* Notes that none is applied any more. */
void at_work_end_entry(struct at_work *at_work);

/* Returns: whether the process ended in an entry that has not been applied to its end since. */
bool at_work_ended_in(const struct at_work *at_work, struct at_work_entry *ret_entry);

/* It has been applied, it is left out, or it is none of this log. */
void at_work_forget_entry(struct at_work *at_work);
/* Lets it be tried once more. Requires: at_work_ended_in(). */
void at_work_retry_entry(struct at_work *at_work);

#endif
