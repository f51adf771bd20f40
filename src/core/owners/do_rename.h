/* SPDX-License-Identifier: Apache-2.0 */
/* What a rename of a transaction means for locks when it commits. */
#ifndef TL_CORE_DO_RENAME_H
#define TL_CORE_DO_RENAME_H

#include "core/locks/resource.h"
#include "store/view.h"

struct command;
struct core;
struct txn;

/*
 * Whether the token of a commit is that of locks which cover both paths of all that the transaction has renamed. Requires: it has an overlay.
 * Returns: 0; 1 when it is not, a problem of the command; TL_ERR_CORRUPT.
 */
int rename__check_token(struct core *core, struct command *command, const struct txn *txn) TL_MUST_USE;

/*
 * Returns: the documents that somebody locks or awaits at or below the paths that a transaction has renamed, in the core's arena: they
 * may lie elsewhere when it has committed.
 */
struct resource_name *rename__locked_documents(struct core *core, const struct overlay *overlay, size_t *ret_count);

#endif
