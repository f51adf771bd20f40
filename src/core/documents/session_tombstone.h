/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session tombstones hide all documents of an ended session at one timestamp.
 *
 * A session may own more documents than one unit may delete. Its end still is atomic: one record,
 * the session tombstone, hides them in every view at or above its timestamp. Their records are then
 * purged in batches. The tombstone stays for reads of the past, until the history limit has passed
 * the last purge. In SPACE_SYSTEM:
 *
 *   'v', session   timestamp (u64be), number of excluded indices (varint), their numbers (u32be
 *                  each), keys of excluded documents (length as varint, bytes); both ascending
 *
 * A key of the purge queue (catalog/purge.h) says when it can be deleted. Documents locked by other
 * owners at that timestamp are excluded (README-locks.md, "Sessions").
 */
#ifndef TL_CORE_SESSION_TOMBSTONE_H
#define TL_CORE_SESSION_TOMBSTONE_H

#include "base/arena.h"
#include "core/documents/doc.h"

struct core;

/*
 * Finds the timestamp at which a session tombstone hid a stored document; TL_TS_MAX: it is not
 * hidden.
 *
 * Returns: 0; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int session_tombstone_ts(struct store *store, struct slice key, const struct doc *doc, tl_ts *ret_ts) TL_MUST_USE;
/*
 * Checks whether a session tombstone hides a live document in a view.
 *
 * Returns: 0: visible; 1: hidden; DOC_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int session_tombstone_hides(const struct view *view, struct slice key, const struct doc *doc) TL_MUST_USE;

/* The documents that a session tombstone does not hide. Both arrays are ascending. */
struct session_tombstone_exclusions {
    const uint32_t *indices;
    size_t index_count;
    const struct slice *documents; /* keys in SPACE_DOCUMENTS */
    size_t document_count;
};
/* Hides all documents of a session except the exclusions, in the open unit and at its timestamp. */
void session_tombstone__put(struct core *core, struct slice session,
                            const struct session_tombstone_exclusions *exclusions);
/*
 * Queues the deletion of a session's tombstone, after the open unit has purged the last document.
 * Harmless if the session has no tombstone.
 */
void session_tombstone__purged(struct core *core, struct slice session);
/* Deletes the session tombstone that a key PURGE_SESSION_TOMBSTONE of the purge queue names. */
void session_tombstone__remove(struct core *core, struct slice queue_key);

#endif
