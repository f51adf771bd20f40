/* SPDX-License-Identifier: Apache-2.0 */
/* The model's table of locks: the rule, who waits for whom, and granting. For the files of the model. */
#ifndef TL_TESTS_SIM_OWNERS_RULE_H
#define TL_TESTS_SIM_OWNERS_RULE_H

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

/* Whose locks an owner passes beside its own; -1: none. */
int om_session_of(const struct om *model, int owner);
bool om_covers(const struct om *model, struct om_thing above, struct om_thing thing);
bool om_same(struct om_thing a, struct om_thing b);
/* Whether two of different owners stand against each other. */
bool om_against(const struct om *model, const struct om_want *a, const struct om_want *b);

/* Whether nothing is held or awaited by anybody but `session` against a want. The short path of writes. */
bool om_free_for(const struct om *model, int session, const struct om_want *want);
/* Whether somebody whom neither an owner (-1: none) nor a session passes holds what stands against a want. */
bool om_held_against(const struct om *model, int owner, int session, const struct om_want *want);
/* Whether an owner holds a lock at least as strong on this very thing. */
bool om_holds(const struct om *model, int owner, const struct om_want *want);
/* Whether nothing is held by anybody but `session` against a want, nor awaited by what an ended session left. */
bool om_unheld_for(const struct om *model, int session, const struct om_want *want);
/* Whether an owner holds something at least as strong on a thing or above it. */
bool om_has(const struct om *model, int owner, const struct om_want *want);
/*
 * Whether a token is that of a lock on a document, or above the place where it lies, which a session (0: none) or a transaction
 * (a slot; -1: none) holds, or another transaction of that session.
 */
bool om_token_held(const struct om *model, uint64_t token, struct om_thing document, int place, uint64_t session,
                   int txn);
int om_lock_count(const struct om *model, int owner);
int om_waiting_count(const struct om *model);

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
/* Whether nobody but an owner has or awaits a lock on a document. */
bool om_alone(const struct om *model, int owner, int index, int doc);

#endif
