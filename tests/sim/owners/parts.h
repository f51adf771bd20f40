/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the model share beside the rule: units, waits, owners, writes. */
#ifndef TL_TESTS_SIM_OWNERS_PARTS_H
#define TL_TESTS_SIM_OWNERS_PARTS_H

#include "rule.h"

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
    return model->ts + us;
}

/* --- waits --- */

/* Returns: the slot of a new wait. `owner` -1: it gets one of its own. */
int om_wait_new(struct om *model, struct om_step *step, const struct om_done *done, int owner, uint32_t session,
                int txn);
void om_wait_park(struct om *model, int wait, uint64_t until);
void om_wait_free(struct om *model, struct om_step *step, int wait);
/* Ends a wait with a problem: at once, or in a unit of its own when some items are done. */
void om_wait_fail(struct om *model, struct om_step *step, int wait, enum om_problem problem);
void om_wait_ready(struct om *model, int wait);

/* --- owners --- */

int om_session_slot(const struct om *model, uint32_t serial);
/* Finds an open transaction for a command. Returns: its slot, or -1 with the problem. */
int om_txn_find(const struct om *model, uint32_t serial, uint32_t session, enum om_problem *ret_problem);
void om_txn_touch(struct om *model, int slot);
void om_txn_abort(struct om *model, struct om_step *step, int slot, bool by_request);

/* --- writes.c --- */

void om_write(struct om *model, struct om_step *step, const struct om_op *op);
void om_write_resume(struct om *model, struct om_step *step, int wait);
void om_write_timed_out(struct om *model, struct om_step *step, int wait);
void om_run_actions(struct om *model, struct om_step *step, const struct om_session *session);
/*
 * Removes the documents that live with a session, but those that others have locked, of which it returns how
 * many. `owner`: whose locks are no obstacle; -1: nobody's.
 */
int om_end_lease(struct om *model, struct om_step *step, uint32_t session, int owner, struct om_thing *ret_spared);
/* A document is as it is from now on, committed. */
void om_store(struct om *model, struct om_step *step, int index, int doc, const struct om_doc *now);
void om_make_index(struct om *model, struct om_step *step);
void om_drop_index(struct om *model, struct om_step *step);

/* --- txns.c --- */

void om_txn_begin(struct om *model, struct om_step *step, const struct om_op *op);
void om_txn_read(struct om *model, struct om_step *step, const struct om_op *op);
void om_txn_read_resume(struct om *model, struct om_step *step, int wait);
void om_txn_read_granted(struct om *model, struct om_step *step, int wait);
void om_txn_commit(struct om *model, struct om_step *step, const struct om_op *op);
void om_txn_rollback(struct om *model, struct om_step *step, const struct om_op *op);
void om_txn_restart(struct om *model);

#endif
