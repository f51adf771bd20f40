/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of locks: docs/locking.md, "The rules in full". Its numbers are cited as "rule N".
 *
 * There is a heap of locks that are held and a heap of requests that wait (struct om); each question looks at all of them, and
 * nothing is remembered from one to the next. For the files of the model.
 */
#ifndef TL_TESTS_SIM_OWNERS_ORACLE_H
#define TL_TESTS_SIM_OWNERS_ORACLE_H

#include "model.h"

enum om_answer { OM_YES, OM_WAIT, OM_NO, OM_CIRCLE };

static inline int om_session_owner(int slot)
{
    return slot;
}

static inline int om_txn_owner(int slot)
{
    return OM_SESSIONS + slot;
}

static inline int om_wait_owner(int slot)
{
    return OM_SESSIONS + OM_TXNS + slot;
}

/* Says that something is wrong, once. */
void om_wrong(struct om_step *step, const char *what);

/* --- Looking ------------------------------------------------------------------------------------------------------ */

bool om_same(struct om_thing a, struct om_thing b);
/* Rule 16: whether nothing that anybody but `session` (-1: none) holds or awaits stands against what a single write wants. */
bool om_untouched(const struct om *model, int session, const struct om_want *want);
/* Rules 6 and 23: whether somebody whom neither `owner` nor `session` (-1: nobody) passes holds what stands against a want. */
bool om_held_against(const struct om *model, int owner, int session, const struct om_want *want);
/* Rule 23: whether the cleanup of a session may do what asks for this. */
bool om_cleanup_may(const struct om *model, int session, const struct om_want *want);
/* Whether an owner holds a lock at least as strong on this very thing. */
bool om_holds(const struct om *model, int owner, const struct om_want *want);
/*
 * Whether a token is that of a lock on a document, or above the place where it lies, which a session (0: none) or a transaction
 * (a slot; -1: none) holds, or another transaction of that session.
 */
bool om_token_held(const struct om *model, uint64_t token, struct om_thing document, int place, uint64_t session,
                   int txn);
int om_lock_count(const struct om *model, int owner);
int om_waiting_count(const struct om *model);
int om_ready_count(const struct om *model);
/* Whether no other request may wait. */
static inline bool om_full(const struct om *model)
{
    return om_waiting_count(model) + om_ready_count(model) >= model->limits.waiters;
}

/* --- Asking, giving back ------------------------------------------------------------------------------------------ */

/* Asks for a wait's wants, in place of what it asked for before. */
enum om_answer om_ask(struct om *model, struct om_step *step, int wait, const struct om_want *wants, int count,
                      bool may_wait);
/* Takes a lock for an owner at once, or not at all. */
bool om_take(struct om *model, struct om_step *step, int owner, const struct om_want *want);
/* Takes a request back; a granted one keeps its locks. */
void om_withdraw(struct om *model, struct om_step *step, int wait);
/* Returns: how many locks were released. */
int om_release_all(struct om *model, struct om_step *step, int owner);
bool om_release(struct om *model, struct om_step *step, int owner, struct om_thing on);
/* A document lies elsewhere now. */
void om_move(struct om *model, struct om_step *step, int index, int doc, int place);

/* Rule 14: a step begins, in which so many of what ended sessions left may be granted; whether some is free still. */
void om_grant_left(struct om *model, int max);
bool om_any_late(const struct om *model);

/* What happens between the two happens at one moment, after which rules 14 and 19 are applied. They may lie within each other. */
void om_withhold(struct om *model);
void om_let_in(struct om *model, struct om_step *step);

#endif
