/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads many documents, in ascending key order, with one iterator.
 *
 * A bulk load usually sends its documents sorted by id. Between two adjacent keys of the store
 * there is no document, so one iterator position answers every lookup that falls into the gap.
 * Where the keys are too far apart, seeking costs more than point reads; then the multiget stops
 * and refers the caller to the store.
 *
 * Its results equal those of doc_get_stored(), so it affects the duration of a write and nothing
 * else.
 */
#ifndef TL_CORE_DOC_MULTIGET_H
#define TL_CORE_DOC_MULTIGET_H

#include "core/documents/doc.h"

enum {
    DOC_MULTIGET_UNKNOWN = 4, /* in addition to the outcomes in doc.h: use a point read */
};

struct doc_multiget;

/*
 * Opens a multiget over the keys from `first` to `last`, both included.
 *
 * Requires: the view has no overlay and outlives it; its store is not written meanwhile.
 * Owns: the caller; doc_multiget_free(), which accepts NULL.
 */
struct doc_multiget *doc_multiget_new(const struct view *view, struct slice first, struct slice last);
void doc_multiget_free(struct doc_multiget *multiget);
TL_DEFINE_FREEP(struct doc_multiget, doc_multiget_free)

/*
 * Reads a document or tombstone by its full key. *ret_doc is valid until the next call.
 *
 * Returns: 0; DOC_NOT_FOUND; DOC_MULTIGET_UNKNOWN; TL_ERR_IO, TL_ERR_CORRUPT.
 * Requires: doc_multiget_begin().
 */
int doc_multiget_get(struct doc_multiget *multiget, struct slice key, struct doc *ret_doc) TL_MUST_USE;

#endif
