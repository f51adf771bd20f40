/* SPDX-License-Identifier: Apache-2.0 */
/* Updates: what `_update` makes of a document, by a partial document or by a script. */
#ifndef TL_CORE_UPDATE_H
#define TL_CORE_UPDATE_H

#include "core/command.h"
#include "core/doc.h"

struct core;

enum update_op { UPDATE_INDEX, UPDATE_CREATE, UPDATE_DELETE, UPDATE_NOOP };

/* What an update starts from and what it comes to. */
struct update {
    enum dialect dialect;
    const struct write_item *item;
    struct slice index; /* names, as a script sees them */
    struct slice type;
    const struct doc *old; /* NULL: the document does not exist */
    struct arena *arena;   /* takes the new source, and the problem */

    enum update_op op;   /* out */
    struct slice source; /* out: the new source; of a noop and a delete the old one; absent where none is shown */
};

enum {
    UPDATE_REFUSED = 1, /* *ret_problem says why */
    UPDATE_MISSING = 2, /* no document, and nothing to put in its place */
};

/* Returns: 0; UPDATE_REFUSED, UPDATE_MISSING; TL_ERR_CORRUPT for a stored source that is no JSON. */
int update__run(struct core *core, struct update *update, struct problem *ret_problem) TL_MUST_USE;

#endif
