/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents that went with their session at one moment.
 *
 * A session that ends with more documents than one unit may remove takes them along at one timestamp all the same: a record says
 * when, and at and after it no reader sees a document that names the session. What lies in the store is then swept away in
 * pieces. The record stays until the history cut-off has passed the last piece, for readers of the past. In SPACE_SYSTEM:
 *
 *   'v', session               when (u64be), how many indices are left out (varint), their numbers (u32be each), the keys of
 *                              documents that are left out (length as varint, bytes), all of them in order
 *
 * A mark (catalog/purge.h) says when it can go. Left out is what others held at that moment (README-locks.md, "Sessions").
 */
#ifndef TL_CORE_SESSION_TOMBSTONE_H
#define TL_CORE_SESSION_TOMBSTONE_H

#include "base/arena.h"
#include "core/documents/doc.h"

struct core;

/*
 * Finds when a live document, as it lies under `key`, went with its session; TL_TS_MAX: it has not.
 * Returns: 0; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int session_tombstone_ts(struct store *store, struct slice key, const struct doc *doc, tl_ts *ret_ts) TL_MUST_USE;
/* Returns: 0 a live document is there in a view; 1 it went with its session; DOC_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT. */
int session_tombstone_hides(const struct view *view, struct slice key, const struct doc *doc) TL_MUST_USE;

/* What stays where it is when a session's documents go. */
struct session_tombstone_exclusions {
    const uint32_t *indices;
    size_t index_count;
    const struct slice *documents; /* keys */
    size_t document_count;
};
/* In the open unit, whose timestamp it is, all documents of a session go but those. */
void session_tombstone__put(struct core *core, struct slice session, const struct session_tombstone_exclusions *spared);
/* What lay in the store is swept, by the open unit at last. Harmless for a session that has no record. */
void session_tombstone__purged(struct core *core, struct slice session);
/* Removes the record of a mark 'V'. */
void session_tombstone__remove(struct core *core, struct slice mark);

#endif
