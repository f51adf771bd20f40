/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of locks as bytes, for a checkpoint: who holds what and who waits for what, so that a table which is read decides from then
 * on as the one that was written would have: the same grants in the same order, with the same numbers and tokens, the same circles.
 *
 * Owners and requests belong to others. Who writes gives all of them, in an order of his choice; who reads has made the owners
 * anew (lock_owner_init()), as many and with the same sessions, and gives them in the same order; the requests are made here.
 */
#ifndef TL_CORE_LOCK_CODEC_H
#define TL_CORE_LOCK_CODEC_H

#include "core/locks/lock.h"
#include "core/step/codec.h"

struct lock_codec_refs {
    struct lock_owner **owners; /* all that hold or await anything, or may */
    size_t owner_count;
    struct lock_request **
        requests; /* all that wait, and those that were granted and are yet to go on; read: out, in the coder's arena, each the caller's, with no user yet */
    size_t request_count;
};

/*
 * Writes a table, or reads one into a table that was just made.
 * Requires: between two calls of the table; nothing is left to be fetched from it. No hook is called.
 * Ensures: when what was read is bad, the coder is; the table is not to be used then but for lock_codec_discard().
 */
void lock_codec_table(struct codec *codec, struct lock_table *table, struct lock_codec_refs *parties);
/* Takes back what was read of a table, so that it and its owners can be freed. */
void lock_codec_discard(struct lock_table *table, struct lock_codec_refs *parties);

/* Who a request belongs to is known after it was read. */
void lock_request_set_user(struct lock_request *request, void *user);

#endif
