/* SPDX-License-Identifier: Apache-2.0 */
/* Documents that live with a session: their marks in the store. */
#ifndef TL_CORE_EPHEMERAL_H
#define TL_CORE_EPHEMERAL_H

#include "base/arena.h"
#include "base/slice.h"
#include "core/documents/write.h"

struct core;

/*
 * Keeps the marks of ephemeral documents: SPACE_SYSTEM, 'e', session (varint length and bytes), document key. How many a session has
 * is counted with it (owners__count_ephemeral()); in an overlay they count when it is committed.
 */
void ephemeral__add(struct core *core, const struct change_sink *sink, struct slice session, struct slice key);
void ephemeral__remove(struct core *core, const struct change_sink *sink, struct slice session, struct slice key);
/* Takes the key of a mark apart. Returns: false for any other key. */
bool ephemeral__parse(struct slice key, struct slice *ret_session, struct slice *ret_document);
/* Moves a mark, or with `value` without data its end, from a transaction's overlay into the unit. */
int ephemeral__commit(struct core *core, struct slice key, struct slice value) TL_MUST_USE;
/* Removes marks of a session that has ended, at most `max`; adds how many to *removed. */
int ephemeral__remove_session(struct core *core, struct slice session, size_t max, size_t *removed) TL_MUST_USE;
/* Removes marks of one index that a session has, at most `max`; adds how many to *removed. */
int ephemeral__remove_index(struct core *core, struct slice session, uint32_t index, size_t max,
                            size_t *removed) TL_MUST_USE;
/* Visits all marks, a session's after each other, with the keys of their documents. */
int ephemeral__each(struct core *core, void (*visit)(void *context, struct slice session, struct slice document),
                    void *context) TL_MUST_USE;

/* Returns: 0 and the next session after `after` with marked documents, in `arena`; STORE_NOT_FOUND; fatal codes. */
int ephemeral__next(struct core *core, struct slice after, struct arena *arena, struct slice *ret_session) TL_MUST_USE;

/*
 * Removes documents that live with a session, at most `max`, in the open unit, which must not have marked any itself, nor have removed
 * some before. `keep` is asked of each that did not go with the session before (session_tombstone.h), which `gone` is told; what it returns true for it has
 * taken over.
 * Returns: 0 with whether there are more, and how many were removed that were there, added to *removed; fatal codes.
 */
typedef bool ephemeral_defer(void *context, const struct write_item *removal, bool gone);
int ephemeral__purge_batch(struct core *core, struct slice session, size_t max, ephemeral_defer *keep, void *context,
                        size_t *removed, bool *ret_more) TL_MUST_USE;
/*
 * Takes a document's mark away and asks `keep` of it, which takes over its removal. Requires: it is marked.
 * Returns: 0; fatal codes.
 */
int ephemeral__defer(struct core *core, struct slice session, struct slice key, ephemeral_defer *keep,
                       void *context) TL_MUST_USE;
/* Tells the feed that all documents of a session go that lie in the store. Returns: 0; fatal codes. */
int ephemeral__record_deletes(struct core *core, struct slice session) TL_MUST_USE;
/* Returns: the keys of the documents that the store has marked as living with a session, in their order, in the core's arena. */
int ephemeral__list(struct core *core, struct slice session, struct slice **ret_keys, size_t *ret_count) TL_MUST_USE;

#endif
