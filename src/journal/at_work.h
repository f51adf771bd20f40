/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crash page: a file that records, across an end of the process, which log entry was being
 * applied, which one was being decoded ahead of it by another thread (read_ahead.h), and which cleanup
 * action of an ended session was being executed.
 *
 * DATA/at-work is one page of 4 KiB, mapped shared: a record costs a few stores and survives any
 * end of the process. It does not survive a crash of the machine; then no operation of the process
 * caused the end. If a start finds a cleanup action recorded, it appends the command TRIED to the
 * log (core/README-locks.md, "Actions that crash the process"). For an entry it counts how often the process
 * has ended during its application (README.md, "Poison entries").
 */
#ifndef TL_JOURNAL_AT_WORK_H
#define TL_JOURNAL_AT_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

struct at_work;
struct command;
struct core_watch;

/* Ends of the process in the same entry that refuse a start. */
enum { AT_WORK_ENDS_MAX = 2 };

/*
 * The `ts` of an entry that means the loading of the store's checkpoint at this position; its
 * `bytes` are those of the checkpoint's record. No entry of a log has it.
 */
#define AT_WORK_LOADING UINT64_MAX

/* A log entry during whose application or decoding the process ended. */
struct at_work_entry {
    uint64_t position; /* in the log; not 0 */
    uint64_t ts;       /* of its header; with `bytes` it distinguishes entries of different logs */
    uint64_t bytes;
    uint32_t command; /* its last command that had begun, from 1; 0: none, as while it is decoded */
    uint32_t ends;    /* number of ends since it was last applied completely; at least 1 */
    bool ahead;       /* at the newest one it was being decoded ahead, not applied */
};

/*
 * Opens or creates the page in a data directory, and counts an end of the previous process in the
 * entry that it was applying, and in the one that it was decoding ahead. A damaged page, as after a
 * crash of the machine, counts as empty.
 * `boot` identifies the boot of the machine: an entry recorded under another boot, or with an empty
 * `boot`, is dropped.
 * Returns: 0; TL_ERR_IO.
 * Owns: the caller; at_work_close().
 */
int at_work_open(struct slice directory, struct slice boot, struct at_work **ret_at_work) TL_MUST_USE;
/*
 * Reads the page of a data directory, which no process has opened, without changing it. Returns: the position of the
 * entry that the last process was applying when it ended, or else decoding ahead, or else of the one in which a process
 * has ended before and which the next start tries again; 0: none, or no page of this `boot`.
 */
uint64_t at_work_read_ended_in(struct slice directory, struct slice boot);
/* Closes it. NULL: no effect. */
void at_work_close(struct at_work *at_work);

/* --- Cleanup actions ---------------------------------------------------------------------------------------------- */

/*
 * Fills in a command TRIED for the cleanup action that the previous process was executing.
 * Returns: whether there was one.
 * Owns: the command, whose arena gets the texts.
 * Requires: the command is a TRIED.
 */
bool at_work_found(const struct at_work *at_work, struct command *command);

/*
 * Ensures: the action found at opening is cleared.
 * Returns: the callbacks for core_watch(), valid as long as `at_work`.
 */
const struct core_watch *at_work_watch(struct at_work *at_work);

/*
 * As at_work_watch(), without cleanup actions: an end during one counts as an end in the entry. For
 * a host of a cluster, which cannot attribute it to the action.
 */
const struct core_watch *at_work_watch_commands(struct at_work *at_work);

/* --- Entries ------------------------------------------------------------------------------------------------------ */

/*
 * Records the entry whose decoding or application begins. NULL `at_work`, here and below: no effect.
 * Requires: no other entry is recorded.
 */
void at_work_begin_entry(struct at_work *at_work, uint64_t position, uint64_t ts, uint64_t bytes);
/*
 * Clears the record: the entry has been applied completely. Ensures: ends in it are not counted any
 * more.
 */
void at_work_end_entry(struct at_work *at_work);
/*
 * Clears the record: the entry was decoded but not applied yet, or that has failed with an error,
 * which is not an end in it.
 */
void at_work_fail_entry(struct at_work *at_work);

/*
 * Record the entry that another thread than the applying one begins to decode, and that this has been done. Any one
 * thread, concurrently with the calls above. NULL `at_work`: no effect.
 * Requires: begin: no other entry is being decoded ahead, and at_work_may_decode_ahead().
 */
void at_work_begin_ahead(struct at_work *at_work, uint64_t position, uint64_t ts, uint64_t bytes);
void at_work_end_ahead(struct at_work *at_work);
/*
 * Returns: whether an entry may be decoded ahead: not one in which an earlier process may have ended; none at all until
 * that has been applied which was being decoded ahead at such an end. So a second end is in the entry that is applied,
 * whichever entries end the process. If it is true it remains so. Any thread. NULL `at_work`: true.
 */
bool at_work_may_decode_ahead(const struct at_work *at_work, uint64_t position);

/*
 * Returns: whether the process has ended in an entry that was not applied completely since. If it was applying one
 * entry and decoding another one ahead, that is the former, until that has been applied.
 */
bool at_work_ended_in(const struct at_work *at_work, struct at_work_entry *ret_entry);

/*
 * Returns: the highest position of an entry that this data directory has applied completely in this
 * boot of the machine; 0: none.
 */
uint64_t at_work_applied(const struct at_work *at_work);

/* Forgets all positions: the directory's next entries are of another log, which counts anew. */
void at_work_begin_log(struct at_work *at_work);
/* Drops all counts of ends: the entries were applied, are skipped, or are not in this log. */
void at_work_forget_entry(struct at_work *at_work);
/* Permits one more attempt. Requires: at_work_ended_in(). */
void at_work_retry_entry(struct at_work *at_work);

#endif
