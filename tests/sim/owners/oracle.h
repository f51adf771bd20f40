/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock oracle: docs/locking.md, "The rules in full", cited as "rule N". For the files of the
 * model.
 *
 * Held locks and waiting requests are two unsorted arrays (struct om). Each function scans them,
 * and no derived state is cached.
 */
#ifndef TL_TESTS_SIM_OWNERS_ORACLE_H
#define TL_TESTS_SIM_OWNERS_ORACLE_H

#include "model.h"

enum om_answer { OM_YES, OM_WAIT, OM_NO, OM_CYCLE };

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

/* Sets step->wrong, unless it is set. */
void om_wrong(struct om_step *step, const char *what);

/* --- Predicates --------------------------------------------------------------------------------------------------- */

bool om_same(struct om_thing a, struct om_thing b);
/*
 * Rule 16: whether no other owner than `session` (-1: none) holds or requests a lock that blocks a
 * single write.
 */
bool om_untouched(const struct om *model, int session, const struct om_spec *spec);
/*
 * Rules 6 and 23: whether a held lock blocks a want. `owner` and `session` (-1: none) give the
 * locks that do not.
 */
bool om_is_blocked(const struct om *model, int owner, int session, const struct om_spec *spec);
/* Rule 23: whether the cleanup of a session may run an action that needs this lock. */
bool om_cleanup_may(const struct om *model, int session, const struct om_spec *spec);
/* Whether an owner holds a lock at least as strong on the same thing, not only on one above it. */
bool om_holds(const struct om *model, int owner, const struct om_spec *spec);
/*
 * Whether a token is of a held lock that covers a document in `dir`, and its holder is the
 * session (0: none), the transaction (a slot; -1: none), or another transaction of that session.
 */
bool om_token_held(const struct om *model, uint64_t token, struct om_thing document, int dir, uint64_t session,
                   int txn);
int om_lock_count(const struct om *model, int owner);
int om_waiting_count(const struct om *model);
int om_ready_count(const struct om *model);
/* Whether no other request may wait. */
static inline bool om_full(const struct om *model)
{
    return om_waiting_count(model) + om_ready_count(model) >= model->limits.waiters;
}

/* --- Acquiring and releasing -------------------------------------------------------------------------------------- */

/* Requests the wants of a wait, in place of its earlier request. */
enum om_answer om_ask(struct om *model, struct om_step *step, int wait, const struct om_spec *specs, int count,
                      bool may_wait);
/* Acquires a lock for an owner without waiting. Returns: whether it is granted. */
bool om_take(struct om *model, struct om_step *step, int owner, const struct om_spec *spec);
/* Withdraws a request; locks that it was granted stay. */
void om_withdraw(struct om *model, struct om_step *step, int wait);
/* Returns: how many locks were released. */
int om_release_all(struct om *model, struct om_step *step, int owner);
bool om_release(struct om *model, struct om_step *step, int owner, struct om_thing on);
/* Sets the directory of a document in the lock tree; -1: none. */
void om_move(struct om *model, struct om_step *step, int index, int doc, int dir);

/*
 * Rule 14: begins a step that may grant `max` deferred cleanups; om_has_ready_cleanup() says
 * whether more could be granted.
 */
void om_set_cleanup_quota(struct om *model, int max);
bool om_has_ready_cleanup(const struct om *model);
/* Whether another request waits only because of grant_quota. */
bool om_has_pending_grants(const struct om *model);

/*
 * Changes between the two calls are atomic: rules 14 and 19 are applied after the last
 * om_resume_grants(). Calls nest.
 */
void om_suspend_grants(struct om *model);
void om_resume_grants(struct om *model, struct om_step *step);

#endif
