/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sessions end. README-locks.md, "Sessions".
 *
 * A session ends by its command, or because its lease has expired. Its *cleanup* begins when all
 * its waits have ended, and proceeds in batches: transactions, actions, documents, locks.
 *
 * 1. The states of struct session change in this order only (session.h); each batch is in one unit.
 * 2. Its locks are held until its cleanup is complete, or only hidden documents are left to purge.
 * 3. Grants are suspended during a batch, so no other owner sees half of it.
 * 4. owners->sessions_to_clean and ->sessions_to_purge have all terminating sessions between two
 *    steps, the oldest end first. Only the first one of each is cleaned up.
 */
#ifndef TL_CORE_SESSION_END_H
#define TL_CORE_SESSION_END_H

#include "base/error.h"
#include "core/session/session.h"

struct core;

/*
 * Terminates a session in the open unit, as far as one batch goes.
 * Returns: 0 its locks are released; 1 it is terminating, later steps continue; fatal codes.
 */
int session__terminate(struct core *core, struct session *session, enum session_end end_kind) TL_MUST_USE;
/*
 * Marks the session as terminating, cancels its waits and those of its transactions in the open
 * unit, and leaves the cleanup to session__continue_cleanup().
 */
void session__begin_termination(struct core *core, struct session *session, enum session_end end_kind);
/* Returns: whether owners->sessions_to_clean has a first session, and all waits of that have ended. */
bool session__can_clean(const struct core *core);
/*
 * Returns: the cost of what ends next in its cleanup and is not divided: a transaction, or its last part.
 * Requires: session__can_clean().
 */
uint64_t session__next_end_cost(const struct core *core);
/*
 * Continues the cleanup of the first session in owners->sessions_to_clean, in the open unit, and
 * charges its cost to *left. `all`: *left before the cleanup of this step: if some of it is used and
 * the rest does not suffice for documents and locks of a session, which are not divided, they are left
 * to the next step (not by commands before version 11), and *left is 0.
 * Requires: grants are suspended; session__can_clean().
 * Returns: 0; fatal codes.
 */
int session__continue_cleanup(struct core *core, size_t *left, size_t all) TL_MUST_USE;
/* Removes the records of all sessions in owners->sessions_to_clean, in the open unit. */
void session__drop_records(struct core *core);
/*
 * Purges one batch of documents of the first session in owners->sessions_to_purge, in the open
 * unit, and frees the session after the last one. Charges the cost to *left (not by commands before
 * version 11).
 * Returns: 0; fatal codes.
 */
int session__purge_batch(struct core *core, size_t *left) TL_MUST_USE;

#endif
