/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reclaimer: a thread that frees what takes long to free.
 *
 * To free a million blocks that lie scattered in memory takes 0.1 s and more. The writer of a server must not take that
 * time when it drops the writes of a large transaction: all clients would wait for it. So it hands them over.
 *
 *  1. An object that was handed over is freed exactly once, in the order in which it was handed over. The caller has
 *     given up all access to it.
 *  2. Freeing has no effect but that memory is free again. So no result depends on when it happens, and deterministic
 *     layers may hand over, too.
 *  3. Until it is freed, memory counts as used: for the budget (budget.h), too, which gets it back bit by bit. So the
 *     memory that waits for the reclaimer never exceeds what clients may make the server hold.
 *  4. While no reclaimer runs, the caller frees: in tests of the layers above, in replays and in other commands.
 */
#ifndef TL_BASE_RECLAIM_H
#define TL_BASE_RECLAIM_H

#include "base/error.h"

/*
 * Hands over an object, or frees it if no reclaimer runs. May be called from any thread, with any lock held that
 * `free_object` does not acquire. Owns: the reclaimer.
 * Requires: `object` is not NULL; `free_object` frees it, hands over nothing and waits for no other thread.
 */
void reclaim(void *object, void (*free_object)(void *object));

/*
 * Starts the reclaimer of the process. Requires: it does not run.
 * Returns: 0; TL_ERR_IO: the system has no further thread.
 */
int reclaim_begin(void) TL_MUST_USE;
/* Ends it when it has freed all objects that were handed over. No effect if it does not run. */
void reclaim_end(void);

#endif
