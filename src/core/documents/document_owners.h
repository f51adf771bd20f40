/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What writes of documents need from sessions and transactions, which are in a module above:
 * functions that core_open() sets as core->document_owners.
 */
#ifndef TL_CORE_DOCUMENT_OWNERS_H
#define TL_CORE_DOCUMENT_OWNERS_H

#include "base/arena.h"
#include "base/error.h"

struct core;

struct document_owners {
    /*
     * Checks that a session may own a new ephemeral document. Returns: 0; 1: *ret_problem has the
     * reason.
     */
    int (*check_session)(struct core *core, struct slice session, struct arena *arena, struct problem *ret_problem);
    /*
     * Checks that a session may own `more` further ephemeral documents. Returns: 0; 1: *ret_problem
     * has the reason.
     */
    int (*check_count)(struct core *core, struct slice session, size_t more, struct arena *arena,
                       struct problem *ret_problem);
    /*
     * Adds `change` (1 or -1) to the count of a session's ephemeral documents, for the document with
     * this key. core__rollback() reverts it.
     */
    void (*count)(struct core *core, struct slice session, struct slice key, int change);
    /*
     * Returns: whether a session is terminating, so that the store may still have its ephemeral
     *   documents.
     */
    bool (*any_terminating)(const struct core *core);
    bool (*transaction_is_open)(const struct core *core, struct slice id);
};

#endif
