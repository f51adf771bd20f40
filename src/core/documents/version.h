/* SPDX-License-Identifier: Apache-2.0 */
/* Version rules: may this write follow what is there, and which version does it make. */
#ifndef TL_CORE_VERSION_H
#define TL_CORE_VERSION_H

#include "base/buf.h"
#include "core/step/command.h"

#define VERSION_NOT_FOUND (-1)

/* What is known of a document before a write. */
struct version_state {
    bool live;       /* it exists */
    int64_t version; /* its own or its tombstone's; VERSION_NOT_FOUND: neither */
    int64_t seq_no;  /* the same; SEQ_NO_ANY: neither */
};

/* Returns: why the item must not be written; CONFLICT_NONE where it may. `create` refuses what exists. */
enum conflict_kind version__check(const struct write_item *item, const struct version_state *state, bool create);

/* Returns: the version that the item makes; VERSION_NOT_FOUND when there is none higher. */
int64_t version__next(const struct write_item *item, const struct version_state *state);

/* Appends the words of a conflict behind "version conflict, ". */
void version__explain(struct buf *buf, enum conflict_kind conflict, const struct write_item *item,
                      const struct version_state *state);

#endif
