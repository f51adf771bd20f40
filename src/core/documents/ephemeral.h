/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ephemeral documents: the index from sessions to the documents that they own.
 *
 * An ephemeral document is deleted when its session ends. The index has one key for each in
 * SPACE_SYSTEM:
 *
 *   'e', session (varint length and bytes), document key
 *
 * Each session also counts its ephemeral documents (document_owners.h). A change in a
 * transaction's overlay is counted when the transaction commits.
 */
#ifndef TL_CORE_EPHEMERAL_H
#define TL_CORE_EPHEMERAL_H

#include "base/arena.h"
#include "base/slice.h"
#include "core/documents/write.h"

struct core;
struct doc;

/* Adds a document to the index, or removes it. `key`: in SPACE_DOCUMENTS. */
void ephemeral__add(struct core *core, const struct change_sink *sink, struct slice session, struct slice key);
void ephemeral__remove(struct core *core, const struct change_sink *sink, struct slice session, struct slice key);
/* Splits an index key. Returns: false for any other key. */
bool ephemeral__parse(struct slice key, struct slice *ret_session, struct slice *ret_document);
/*
 * Applies an index change of a committing transaction to the open unit; `value` with data NULL: a
 * removal.
 *
 * Returns: 0; fatal codes.
 */
int ephemeral__commit(struct core *core, struct slice key, struct slice value) TL_MUST_USE;
/*
 * Removes up to `max` index keys of an ended session; adds their number to *removed. The documents
 * stay.
 *
 * Returns: 0; fatal codes.
 */
int ephemeral__remove_session(struct core *core, struct slice session, size_t max, size_t *removed) TL_MUST_USE;
/* Like ephemeral__remove_session(), for one index; updates the session's count of documents. */
int ephemeral__remove_index(struct core *core, struct slice session, uint32_t index, size_t max,
                            size_t *removed) TL_MUST_USE;
/*
 * Visits all index keys, grouped by session, with the keys of the documents.
 *
 * Returns: 0; fatal codes.
 */
int ephemeral__each(struct core *core, void (*visit)(void *context, struct slice session, struct slice document),
                    void *context) TL_MUST_USE;

/*
 * Finds the next session after `after` that owns documents. Returns: 0, id in `arena`;
 * STORE_NOT_FOUND; fatal codes.
 */
int ephemeral__next(struct core *core, struct slice after, struct arena *arena, struct slice *ret_session) TL_MUST_USE;

/*
 * What one batch deletes at most: documents, and work of deleting them in units of core/unit/work.h,
 * which the last document may exceed. The work follows from the documents and their entries, whether
 * or not a document is deferred. EPHEMERAL_WORK_ANY: unlimited, and all documents are read before the
 * first one is deleted, as for commands before version 10.
 */
struct ephemeral_batch_max {
    size_t count;
    uint64_t work;
};
#define EPHEMERAL_WORK_ANY UINT64_MAX

/*
 * Deletes documents of a session in the open unit, up to `max`. `defer` is called for each of them;
 * if it returns true, it has taken over the deletion and the document stays. `hidden`: a session
 * tombstone already hides the document (session_tombstone.h), so that only its record is left to
 * purge.
 *
 * A document whose version cannot be raised is deleted at that version (not by commands before
 * version 10).
 *
 * Requires: the unit has neither added ephemeral documents nor purged a batch before.
 * Returns: 0, whether the session owns more documents, and the number of visible ones deleted,
 *   added to *removed; fatal codes.
 */
typedef bool ephemeral_defer(void *context, const struct write_item *removal, bool hidden);
int ephemeral__purge_batch(struct core *core, struct slice session, const struct ephemeral_batch_max *max,
                           ephemeral_defer *defer, void *context, size_t *removed, bool *ret_more) TL_MUST_USE;
/*
 * Estimates the work of deleting all documents of a session: its limit is that of
 * struct ephemeral_batch_max. Stops as soon as it is more than `enough`.
 *
 * Returns: 0; fatal codes.
 */
int ephemeral__estimate_work(struct core *core, struct slice session, uint64_t enough, uint64_t *ret_work) TL_MUST_USE;
/*
 * Makes a deferred deletion keep the document's version, if that cannot be raised (not for commands
 * before version 10). Returns: 0; fatal codes.
 * Requires: an open unit; a delete.
 */
int ephemeral__find_highest_version(struct core *core, struct write_item *removal) TL_MUST_USE;
/*
 * Makes the deletion of a document keep its version, if that cannot be raised: an ephemeral document
 * is deleted whatever version a client has given it (not for commands before version 10).
 * Requires: a delete.
 */
void ephemeral__keep_highest_version(const struct core *core, const struct doc *doc, struct write_item *removal);
/*
 * Removes a document from the index and passes its deletion to `defer`, which takes it over.
 *
 * Requires: the index has the document.
 * Returns: 0; fatal codes.
 */
int ephemeral__defer(struct core *core, struct slice session, struct slice key, ephemeral_defer *defer,
                     void *context) TL_MUST_USE;
/*
 * Records the deletion of all stored documents of a session in the feed. Returns: 0; fatal codes.
 */
int ephemeral__record_deletes(struct core *core, struct slice session) TL_MUST_USE;
/*
 * Lists the keys of a session's stored documents, ascending, in the core's arena. Returns: 0; fatal
 * codes.
 * Requires: the session has an id.
 */
int ephemeral__list(struct core *core, struct slice session, struct slice **ret_keys, size_t *ret_count) TL_MUST_USE;

#endif
