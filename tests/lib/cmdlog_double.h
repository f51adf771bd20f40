/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test double of the shared command log (cmdlog/cmdlog_shared.h), in memory, which injects
 * faults. It never trims. A lease ends only by double_medium_end_life().
 */
#ifndef TL_TESTS_LIB_CMDLOG_DOUBLE_H
#define TL_TESTS_LIB_CMDLOG_DOUBLE_H

#include "cmdlog/cmdlog_shared.h"

struct double_medium;

/* Creates a medium, on which the hosts' logs are opened. Owns: the caller; double_medium_free(). */
struct double_medium *double_medium_new(void);
/* Requires: no log is open. */
void double_medium_free(struct double_medium *medium);
/* Owns: the caller; cmdlog_close(). */
struct cmdlog *cmdlog_double_open(struct double_medium *medium, const char *name);

/* Partitions this host's log from the medium, or reconnects it. */
void cmdlog_double_cut(struct cmdlog *log, bool cut);
/*
 * Changes what this host reads, as a bit that flips in its memory does: in entries of other hosts `from`
 * becomes `to`, of the same length. NULL: nothing.
 */
void cmdlog_double_distort(struct cmdlog *log, const char *from, const char *to);
/*
 * Cuts or holds this host's log when it reads the next entry that contains `text`, which it then
 * applies.
 */
enum double_fault { DOUBLE_CUT, DOUBLE_HOLD };
void cmdlog_double_fail_at(struct cmdlog *log, const char *text, enum double_fault fault);
/* Keeps submitted entries in flight until released, or until the life ends and discards them. */
void cmdlog_double_hold(struct cmdlog *log, bool hold);
/*
 * Refuses the entries that are in flight for lack of space, at once or when the next one is submitted. As
 * etcd's log does, it gives their numbers to the entries that follow.
 */
enum double_refusal { DOUBLE_REFUSE_NOW, DOUBLE_REFUSE_AT_SUBMIT };
void cmdlog_double_refuse_held(struct cmdlog *log, enum double_refusal when);
/* Waits until that has happened. */
void cmdlog_double_await_refused(struct cmdlog *log);
/*
 * Stops this host's proposer when it next asks for the log's space, before it makes an entry; `false`: it
 * continues.
 */
void cmdlog_double_pause_proposer(struct cmdlog *log, bool pause);
/*
 * Makes the list of the members stay as it is now for this host, as when no reply to a listing arrives; `false`:
 * ends that.
 */
void cmdlog_double_freeze_hosts(struct cmdlog *log, bool freeze);
/* Waits until this host has read the list `count` times since it was frozen. */
void cmdlog_double_await_lists(struct cmdlog *log, unsigned count);
/* Waits until the proposer has stopped there. */
void cmdlog_double_await_paused(struct cmdlog *log);
/* Waits until this log has `count` entries in flight. */
void cmdlog_double_await_held(struct cmdlog *log, int count);
/* Makes this host a member also after its end, as one that is killed is until its lease is over. */
void cmdlog_double_stay(struct cmdlog *log);
/* Ends a host's life, as the end of its lease does. */
void double_medium_end_life(struct double_medium *medium, const char *name);
/* Returns: the newest position. */
cmdlog_position double_medium_head(struct double_medium *medium);
/* Skips an entry, whatever the hosts have done with it. */
void double_medium_skip(struct double_medium *medium, cmdlog_position position);
/* Sets what cmdlog_space() returns on every host. */
void double_medium_set_space(struct double_medium *medium, struct cmdlog_space space);
/* Makes submissions of more bytes fail with TL_ERR_NO_SPACE; 0: of none. */
void double_medium_set_entry_max(struct double_medium *medium, size_t bytes);
/* Waits until so many further submissions have failed with CMDLOG_BUSY, since entries are held. */
void cmdlog_double_await_busy(struct cmdlog *log, unsigned count);
/* While a log is patient, the proposer waits without limit for entries that are held. */
void cmdlog_double_set_patient(struct cmdlog *log, bool patient);
/* Waits until the proposer waits for entries that are held. */
void cmdlog_double_await_waiting(struct cmdlog *log);
/* Returns: how many checkpoints were refused with TL_ERR_NO_SPACE, while that space was exhausted. */
unsigned double_medium_refused_checkpoints(struct double_medium *medium);
/* Appends a copy of the entry at `position`, with its host, life and number: a duplicate. */
void double_medium_repeat(struct double_medium *medium, cmdlog_position position);

#endif
