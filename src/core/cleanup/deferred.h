/* SPDX-License-Identifier: Apache-2.0 */
/* Cleanup actions of ended sessions, deferred while another owner holds a conflicting lock. */
#ifndef TL_CORE_DEFERRED_H
#define TL_CORE_DEFERRED_H

#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/types.h"

struct write_item;
struct core;
struct session;
struct wait;
struct wait_ops;

/* Returns: an empty WRITE with `cleanup` set, for actions of ended sessions. Owns: the caller. */
struct command *deferred__command(void);
/*
 * Defers an action or removal of a session and requests its locks, in the open unit.
 * Returns: 0; fatal codes.
 */
int deferred__add(struct core *core, const struct session *session, const struct write_item *item,
                  bool removal) TL_MUST_USE;
/*
 * Why a cleanup is set aside: the process ended in it, its script takes too many steps, or it would add indices or
 * fields while the memory is full.
 */
enum set_aside_reason { SET_ASIDE_ENDED_PROCESS, SET_ASIDE_TOO_LONG, SET_ASIDE_MEMORY };
struct write_result;
/* Returns: whether an action that ran is to be set aside, as it had no effect; *ret_reason: why. */
bool deferred__is_set_aside(const struct write_result *result, enum set_aside_reason *ret_reason);
/* Defers an action of a session and sets it aside at once, in the open unit. */
void deferred__add_set_aside(struct core *core, const struct session *session, const struct write_item *item,
                             enum set_aside_reason reason);
/* Returns: the deferred cleanup of this number, or NULL. */
struct deferred *deferred__find(const struct core *core, uint64_t number);
/*
 * Sets it aside because it ended the process, in the open unit: its request ends. Does nothing if
 * it is set aside.
 * Requires: an open unit.
 */
void deferred__set_aside(struct core *core, struct deferred *deferred);
/*
 * Requests its locks again, after all other deferred cleanup, in the open unit.
 * Returns: 0; fatal codes.
 */
int deferred__retry(struct core *core, struct deferred *deferred) TL_MUST_USE;
/* Drops and frees it, in the open unit. Requires: it has no wait. */
void deferred__drop(struct core *core, struct deferred *deferred);
/*
 * Makes a copy of `like`, which needs no lists and no wait, at the end of owners->deferred.
 * Owns: that list.
 */
struct deferred *deferred__make(struct core *core, const struct deferred *like);
/* Removes it from the lists and frees it. */
void deferred__free(struct core *core, struct deferred *deferred);
/*
 * Fills owners->unrequested, after all were loaded, with those that have no wait and are not set
 * aside.
 */
void deferred__find_unrequested(struct core *core);
/*
 * Requests the locks of those in owners->unrequested, in order, while *left > 0; charges their cost
 * to *left. Part of RESTART.
 * Requires: an open unit.
 * Returns: 0; fatal codes.
 */
int deferred__restart(struct core *core, size_t *left) TL_MUST_USE;
/* Returns: a hash of its number and content. Requires: it has a number. */
uint64_t deferred__digest(const struct deferred *deferred);
/* Decodes its action; *ret_item points into `deferred` and `arena`. Returns: 0; TL_ERR_CORRUPT. */
int deferred__item(const struct deferred *deferred, struct arena *arena, struct write_item *ret_item) TL_MUST_USE;
/* Its callbacks as a wait, which has no command. */
extern const struct wait_ops deferred__wait_ops;

#endif
