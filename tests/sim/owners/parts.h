/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the model share beside the judge: units, waits, owners, writes. */
#ifndef TL_TESTS_SIM_OWNERS_PARTS_H
#define TL_TESTS_SIM_OWNERS_PARTS_H

#include "oracle.h"

/* Whether a command is done after a call, or waits. */
enum om_end { OM_ENDED_NOW, OM_PARKED };

/* --- model.c: the step --- */

void om_begin(struct om *model, uint64_t at);
void om_end_unit(struct om *model, struct om_step *step);
/* Fetches what the table of locks did: ends victims, completes lock commands, makes the others ready. */
void om_settle(struct om *model, struct om_step *step);
void om_complete(struct om *model, struct om_step *step, const struct om_done *done);
void om_set_deadline(struct om *model, struct om_deadline *deadline, uint64_t at);
static inline uint64_t om_after(const struct om *model, uint64_t us)
{
    return model->clock + us;
}

/* --- waits --- */

/* Returns: the slot of a new wait. `owner` -1: it gets one of its own. */
int om_wait_new(struct om *model, struct om_step *step, const struct om_done *done, int owner, uint32_t session,
                int txn);
void om_wait_park(struct om *model, int wait, uint64_t until);
void om_wait_free(struct om *model, struct om_step *step, int wait);
/* Ends a wait with a problem: at once, or in a unit of its own when some items are done. */
void om_wait_fail(struct om *model, struct om_step *step, int wait, enum om_problem problem);
/* The same of one of many: it is told in its turn when the step has told enough. */
void om_wait_end(struct om *model, struct om_step *step, int wait, enum om_problem problem);
/* Rule 17: how much it counts as when it goes on. */
int om_wait_things(const struct om_wait *wait);
/* Things that were done. */
static inline void om_take_off(int *left, int things)
{
    *left = things < *left ? *left - things : 0;
}
void om_wait_ready(struct om *model, int wait);

/* --- owners --- */

/* A session that lives, and is not leaving. */
int om_session_slot(const struct om *model, uint32_t serial);
/* Finds an open transaction for a command. Returns: its slot, or -1 with the problem. */
int om_txn_find(const struct om *model, uint32_t serial, uint32_t session, enum om_problem *ret_problem);
void om_txn_touch(struct om *model, int slot);
void om_txn_abort(struct om *model, struct om_step *step, int slot, bool by_request);
/* Whether a command of it waits. */
bool om_txn_waits(const struct om *model, int slot);
/* Its session is leaving: it is going to be rolled back, and its command that waits ends now. */
void om_txn_end_waiting(struct om *model, struct om_step *step, int slot);

/* --- writes.c --- */

void om_write(struct om *model, struct om_step *step, const struct om_op *op);
void om_write_resume(struct om *model, struct om_step *step, int wait);
void om_write_ended(struct om *model, struct om_step *step, int wait);
void om_write_timed_out(struct om *model, struct om_step *step, int wait);
/* What a session leaves, an item alone: whether somebody but the session in `slot` holds what stands against it; */
bool om_left_held(struct om *model, int slot, const struct om_item *item);
/* asking for its locks, kept, after they were granted or not; and running it, for the session in `slot` or the wait that has them. */
enum om_answer om_left_ask(struct om *model, struct om_step *step, int wait, const struct om_item *item,
                           bool granted_before);
void om_left_run(struct om *model, struct om_step *step, int slot, int wait, const struct om_item *item);
/* A document is as it is from now on, committed. */
void om_store(struct om *model, struct om_step *step, int index, int doc, const struct om_doc *now);
void om_make_index(struct om *model, struct om_step *step);
void om_drop_index(struct om *model, struct om_step *step);

/* --- ends.c --- */

/* A session is to end with the steps to come: nothing of it waits any more, and no command finds it. */
void om_begin_end(struct om *model, struct om_step *step, int slot, bool in_order);
/* Returns: the first whose end is not whole; -1: none. */
int om_first_ending(const struct om *model);
/* Goes on with its end while *left things may be done, and takes off what it has done. */
void om_end_on(struct om *model, struct om_step *step, int slot, int *left);
/* Ends a session. Returns: whether it is only leaving, as there is more to do than goes with one step. */
bool om_end_session(struct om *model, struct om_step *step, int slot, bool in_order);
bool om_any_leaving(const struct om *model);
/* The next piece of the one that began to leave first. */
void om_leave_on(struct om *model, struct om_step *step);
void om_kept_resume(struct om *model, struct om_step *step, int slot);
/* How many documents live with a session. */
/* Writes the tombstone of a document that went with its session. */
void om_sweep(struct om *model, struct om_step *step, int index, int doc);
int om_ephemeral_count(const struct om *model, uint32_t serial);
/* OP_TRIED, OP_ASIDE. */
void om_tried(struct om *model, struct om_step *step, const struct om_op *op);
enum om_problem om_aside(struct om *model, struct om_step *step, const struct om_op *op);
void om_ends_stop(struct om *model);
/* What is kept asks again, while *left things may be done; then all ends go on. Returns: whether some of it has not asked yet. */
bool om_ends_restart(struct om *model, struct om_step *step, int *left);

/* --- txns.c --- */

void om_txn_begin(struct om *model, struct om_step *step, const struct om_op *op);
void om_txn_read(struct om *model, struct om_step *step, const struct om_op *op);
void om_txn_read_resume(struct om *model, struct om_step *step, int wait);
void om_txn_read_granted(struct om *model, struct om_step *step, int wait);
void om_txn_commit(struct om *model, struct om_step *step, const struct om_op *op);
void om_txn_rollback(struct om *model, struct om_step *step, const struct om_op *op);
/* Those that a restart has lost get their outcomes, while *left things may be done. Returns: whether there are more. */
bool om_txn_restart(struct om *model, int *left);
/* Those of a host, or with 0 all update transactions, are going to be rolled back. */
void om_txn_abandon(struct om *model, struct om_step *step, uint16_t host);
bool om_txn_any_abandoned(const struct om *model);
/* Rolls them back, the oldest first, while *left things may be done. */
void om_txn_end_abandoned(struct om *model, struct om_step *step, int *left);
/* A document as a transaction has it: the committed one, but for what it has written or renamed itself. */
/* Returns: how many documents it has written, and renames it has done. */
int om_txn_changes(const struct om_txn *txn);
const struct om_doc *om_txn_seen(const struct om_txn *txn, const struct om *model, int index, int doc);

/* --- renames.c --- */

void om_rename(struct om *model, struct om_step *step, const struct om_op *op);
void om_rename_resume(struct om *model, struct om_step *step, int wait);

#endif
