/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading many documents whose keys rise, by one walk instead of a search for each.
 *
 * A bulk load mostly brings documents in order of id. Between two neighbours in the store there is nothing, so one place in
 * the walk answers for all keys that fall into the same gap, and documents next to each other are a step apart. Where the
 * keys lie too far apart for that, the walk gives up and says so: searching for a key costs less than moving to it.
 *
 * It answers what doc_get_stored() answers, or nothing; so it changes how long a write takes and not what it does.
 */
#ifndef TL_CORE_DOC_MULTIGET_H
#define TL_CORE_DOC_MULTIGET_H

#include "core/documents/doc.h"

enum {
    DOC_MULTIGET_UNKNOWN = 4, /* beside the outcomes of doc.h: ask the store */
};

struct doc_multiget;

/*
 * A walk over the keys of `first` to `last`, both included.
 * Requires: the view has no overlay and outlives it; nothing is written to the view's store meanwhile.
 * Owns: the caller; doc_multiget_free(). NULL is fine for free.
 */
struct doc_multiget *doc_multiget_new(const struct view *view, struct slice first, struct slice last);
void doc_multiget_free(struct doc_multiget *run);
TL_DEFINE_FREEP(struct doc_multiget, doc_multiget_free)

/*
 * Reads a document or tombstone by its whole key. What it hands out lives until the next call.
 * Returns: 0; DOC_NOT_FOUND; DOC_MULTIGET_UNKNOWN; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int doc_multiget_get(struct doc_multiget *run, struct slice key, struct doc *ret_doc) TL_MUST_USE;

#endif
