/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: what of the core's state lies in no store, as bytes. README.md, "Checkpoints", has the form and the invariants.
 */
#ifndef TL_CORE_SAVE_H
#define TL_CORE_SAVE_H

#include "base/buf.h"
#include "base/error.h"

struct core;
struct core_limits;
struct store;

enum {
    CORE_SAVE_NEWER = 1, /* of a version that is not known here */
};

/*
 * Appends what the core has beside its store. Changes nothing.
 * Requires: called between steps; no group is open.
 */
void core_save(struct core *core, struct buf *buf);

/*
 * Builds a core of a store and of what was saved beside it when that store was as it is now. It goes on as the one that was saved: the
 * same commands have the same results, in the same order, and the same chain. Requests that waited go on waiting; when they complete, they
 * do so as commands without submitter (on_done and context are NULL).
 *
 * `reason` (may be NULL) gets what is wrong and where, unless 0 is returned.
 * Returns: 0; CORE_SAVE_NEWER; TL_ERR_CORRUPT; TL_ERR_IO. Owns: the caller; core_close(). `saved` may go afterwards.
 */
int core_load(struct store *store, const struct core_limits *limits, struct slice saved, struct buf *reason,
              struct core **ret_core) TL_MUST_USE;

#endif
