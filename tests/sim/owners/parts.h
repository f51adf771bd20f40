/* SPDX-License-Identifier: Apache-2.0 */
/* Functions shared by the files of the model, except the oracle: units, waits, owners, writes. */
#ifndef TL_TESTS_SIM_OWNERS_PARTS_H
#define TL_TESTS_SIM_OWNERS_PARTS_H

#include "oracle.h"

/* Whether a call has completed the command, or the command waits. */
enum om_end { OM_ENDED_NOW, OM_PARKED };

/* --- model.c: the step --- */

void om_begin(struct om *model, uint64_t at);
void om_end_unit(struct om *model);
/*
 * Handles grants and deadlock victims: ends victims, completes LOCK commands, makes the other waits
 * ready.
 */
void om_settle(struct om *model, struct om_step *step);
void om_complete(struct om *model, struct om_step *step, const struct om_done *done);
void om_set_deadline(struct om *model, struct om_deadline *deadline, uint64_t at);
static inline uint64_t om_after(const struct om *model, uint64_t us)
{
    return model->clock + us;
}

/* --- waits --- */

/* Returns: the slot of a new wait. `owner` -1: a new owner, for an autocommit write. */
int om_wait_new(struct om *model, struct om_step *step, const struct om_done *done, int owner, uint32_t session,
                int txn);
void om_wait_park(struct om *model, int wait, uint64_t until);
void om_wait_free(struct om *model, struct om_step *step, int wait);
/* Ends a wait with a problem: at once, or in its own unit if some items are done. */
void om_wait_fail(struct om *model, struct om_step *step, int wait, enum om_problem problem);
/* As om_wait_fail(), but a later step answers it when this one has answered enough. */
void om_wait_end(struct om *model, struct om_step *step, int wait, enum om_problem problem);
/* Rule 17: the cost of resuming a wait. */
int om_wait_cost(const struct om_wait *wait);
/* Charges a cost to *left, which stops at 0. */
static inline void om_charge(int *left, int cost)
{
    *left = cost < *left ? *left - cost : 0;
}
void om_wait_ready(struct om *model, int wait);
/* Makes a write of a transaction ready for its next batch. */
void om_wait_continue_later(struct om *model, struct om_step *step, int wait, uint64_t until);

/* --- owners --- */

/* Returns: the slot of a session that is not terminating; -1: none. */
int om_session_slot(const struct om *model, uint32_t serial);
/* Finds an open transaction for a command. Returns: its slot, or -1 with the problem. */
int om_txn_find(const struct om *model, uint32_t serial, uint32_t session, enum om_problem *ret_problem);
void om_txn_touch(struct om *model, int slot);
void om_txn_abort(struct om *model, struct om_step *step, int slot, bool by_request);
/* Whether a command of it waits. */
bool om_txn_waits(const struct om *model, int slot);
/* Ends the waiting command of a transaction that will be rolled back with its session. */
void om_txn_end_waiting(struct om *model, struct om_step *step, int slot);

/* --- writes.c --- */

void om_write(struct om *model, struct om_step *step, const struct om_op *op);
void om_write_resume(struct om *model, struct om_step *step, int wait);
void om_write_ended(struct om *model, struct om_step *step, int wait);
void om_write_timed_out(struct om *model, struct om_step *step, int wait);
/* Whether an owner other than the session in `slot` holds a lock that blocks a cleanup item. */
bool om_cleanup_is_blocked(struct om *model, int slot, const struct om_item *item);
/*
 * Requests the locks of a deferred cleanup item; `granted_before`: it was granted some and needs
 * more.
 */
enum om_answer om_cleanup_request(struct om *model, struct om_step *step, int wait, const struct om_item *item,
                                  bool granted_before);
/*
 * Runs a cleanup item. Returns: false: it would create an index while the memory is full, so it is to be set aside; it
 * had no effect.
 */
bool om_cleanup_run(struct om *model, struct om_step *step, int slot, int wait, const struct om_item *item);
/* Stores a committed document. */
void om_store(struct om *model, struct om_step *step, int index, int doc, const struct om_doc *now);
void om_make_index(struct om *model, struct om_step *step);
void om_drop_index(struct om *model, struct om_step *step);

/* --- ends.c --- */

/*
 * Begins the termination of a session: its waits end, commands no longer find it, later steps clean
 * up.
 */
void om_begin_termination(struct om *model, struct om_step *step, int slot, bool in_order);
/* Returns: the slot of the first session whose cleanup is not complete; -1: none. */
int om_first_to_clean(const struct om *model);
/*
 * Continues the cleanup while *left > 0, and charges the cost. `all`: *left before any cleanup of this
 * step.
 */
void om_continue_cleanup(struct om *model, struct om_step *step, int slot, int *left, int all);
/* Charges the waits that the end of sessions has ended. */
void om_charge_ended(struct om *model, int *left);
/*
 * Terminates a session.
 * Returns: whether later steps must continue, because it exceeds one batch.
 */
bool om_end_session(struct om *model, struct om_step *step, int slot, bool in_order);
bool om_any_terminating(const struct om *model);
/* Purges the next batch of the session whose purge began first. */
void om_purge_batch(struct om *model, struct om_step *step);
void om_deferred_resume(struct om *model, struct om_step *step, int slot);
/* Writes the tombstone of a document that the end of its session has hidden. */
void om_purge(struct om *model, struct om_step *step, int index, int doc);
int om_ephemeral_count(const struct om *model, uint32_t serial);
/* OP_TRIED, OP_ASIDE. */
void om_attempt(struct om *model, struct om_step *step, const struct om_op *op);
enum om_problem om_aside(struct om *model, struct om_step *step, const struct om_op *op);

/* --- txns.c --- */

void om_txn_begin(struct om *model, struct om_step *step, const struct om_op *op);
void om_txn_read(struct om *model, struct om_step *step, const struct om_op *op);
void om_txn_read_resume(struct om *model, struct om_step *step, int wait);
void om_txn_read_granted(struct om *model, struct om_step *step, int wait);
void om_txn_commit(struct om *model, struct om_step *step, const struct om_op *op);
void om_txn_rollback(struct om *model, struct om_step *step, const struct om_op *op);
/* Abandons the transactions of a host; `host` 0: all update transactions. */
void om_txn_abandon(struct om *model, struct om_step *step, uint16_t host);
bool om_txn_any_abandoned(const struct om *model);
/* Rolls back abandoned transactions, oldest first, while *left > 0. */
void om_txn_end_abandoned(struct om *model, struct om_step *step, int *left);
/* Returns: how many documents it has written, and renames it has done. */
int om_txn_changes(const struct om_txn *txn);
/*
 * Returns: a document as the transaction sees it: its own version where it has written or renamed
 * it, else the committed one.
 */
const struct om_doc *om_txn_seen(const struct om_txn *txn, const struct om *model, int index, int doc);

/* --- renames.c --- */

void om_rename(struct om *model, struct om_step *step, const struct om_op *op);
void om_rename_resume(struct om *model, struct om_step *step, int wait);

#endif
