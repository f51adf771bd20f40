/* SPDX-License-Identifier: Apache-2.0 */
/* Locks and fencing tokens of the renames in a transaction, for its commit. */
#ifndef TL_CORE_TXN_RENAMES_H
#define TL_CORE_TXN_RENAMES_H

#include "core/locks/resource.h"
#include "store/view.h"

struct command;
struct core;
struct txn;

/*
 * Checks that the fencing token of a commit covers both paths of each rename in the transaction.
 * Requires: the transaction has an overlay.
 * Returns: 0; 1, it does not, with the command's problem; TL_ERR_CORRUPT.
 */
int txn_renames__check_token(struct core *core, struct command *command, const struct txn *txn) TL_MUST_USE;

/*
 * Returns: the documents with a lock or a waiting request at or below the old and new paths of a
 * transaction's renames, which its commit may move; since version 23 of commands without those that
 * the transaction alone has locked. NULL: none. Owns: the core's arena.
 */
struct resource_name *txn_renames__locked_documents(struct core *core, const struct txn *txn, size_t *ret_count);

#endif
