/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: the part of the core's state that is not in the store. README.md, "Checkpoints",
 * describes the form and the invariants.
 */
#ifndef TL_CORE_SAVE_H
#define TL_CORE_SAVE_H

#include "base/buf.h"
#include "base/error.h"

struct core;
struct core_limits;
struct store;

enum {
    CORE_SAVE_NEWER = 1, /* its version is newer than this build knows */
};

/*
 * Appends the state that is not in the store, in one form, whatever happened before. Changes
 * nothing.
 * Requires: called between steps; no group is open.
 */
void core_save(struct core *core, struct buf *buf);

/*
 * Writes ahead of a checkpoint: puts pieces that have changed since they were last written into the
 * store (README.md, "Pieces"), until that took `bytes_max` bytes; the last piece may exceed them.
 * Commands may change them again before the checkpoint. Changes nothing else.
 * Returns: 0, and whether there are more, so that another call is worth it; fatal codes.
 * Requires: as core_save().
 */
int core_save_ahead(struct core *core, uint64_t bytes_max, bool *ret_more) TL_MUST_USE;
/*
 * Puts all pieces that have changed into the store, and appends the rest of the state: the record
 * of a checkpoint of that store, which the caller makes before the next step.
 * Returns: 0; fatal codes. Requires: as core_save().
 */
int core_save_rest(struct core *core, struct buf *buf) TL_MUST_USE;

/*
 * Builds a core from a store and the state that was saved with that version of it, by core_save()
 * or core_save_rest(). The core
 * continues as the saved one would: equal commands have equal results, in the same order, and an
 * equal chain. Waiting requests keep waiting; their commands have no submitter when they complete
 * (on_done and context are NULL).
 *
 * On failure `reason` (may be NULL) gets the cause and its position.
 * Returns: 0; CORE_SAVE_NEWER; TL_ERR_CORRUPT; TL_ERR_IO. Owns: the caller; core_close(). `saved`
 *   is not needed afterwards.
 */
int core_load(struct store *store, const struct core_limits *limits, struct slice saved, struct buf *reason,
              struct core **ret_core) TL_MUST_USE;

#endif
