/* SPDX-License-Identifier: Apache-2.0 */
/* Version rules: whether a write may replace the current version, and its new version. */
#ifndef TL_CORE_VERSION_H
#define TL_CORE_VERSION_H

#include "base/buf.h"
#include "core/command/command.h"

#define VERSION_NOT_FOUND (-1)

/* The document before a write. */
struct version_state {
    bool live;       /* it exists */
    int64_t version; /* of the document or its tombstone; VERSION_NOT_FOUND: neither */
    int64_t seq_no;  /* of the document or its tombstone; SEQ_NO_ANY: neither */
};

/*
 * Checks a write against the version rules. `create`: an existing document is a conflict.
 *
 * Returns: the conflict; CONFLICT_NONE: the item may be written.
 */
enum conflict_kind version__check(const struct write_item *item, const struct version_state *state, bool create);

/*
 * Returns: the version that the item creates; VERSION_NOT_FOUND: the current one is the highest
 *   possible.
 */
int64_t version__next(const struct write_item *item, const struct version_state *state);

/* What a write requires of the document; the fields are those of struct write_item. */
struct version_required {
    int64_t version, if_seq_no, if_primary_term;
};

/* Appends the reason of a conflict, to follow "version conflict, ". Requires: a conflict. */
void version__explain(struct buf *buf, enum conflict_kind conflict, const struct version_required *required,
                      const struct version_state *state);

#endif
