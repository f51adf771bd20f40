/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the change feed with a plain list of documents, as src/core/feed/README.md says that a
 * reader can, and compares the list with the documents in the store.
 */
#ifndef TL_TESTS_FEED_REPLAY_H
#define TL_TESTS_FEED_REPLAY_H

#include "base/buf.h"
#include "store/store.h"

/*
 * Starts with the documents as of `since` (0: none), follows the feed up to `upto`, and compares.
 * `newest`: a named document is read as of `upto` instead of the change's timestamp; so is one that
 * changed before `readable`. If the feed does not reach back to `since`, it must report that.
 *
 * Returns: whether all checks passed; otherwise *ret_wrong has the difference.
 */
bool feed_replay_check(struct store *store, tl_ts since, tl_ts upto, tl_ts readable, bool newest,
                       struct buf *ret_wrong);

/*
 * Follows on: each check takes what the feed has had since the last one, so that it can be made after each step.
 */
struct catalog;
struct feed_follower;
/*
 * Begins with no document, before the first change.
 * Owns: the caller; feed_follower_free(), before the store is closed.
 */
struct feed_follower *feed_follower_new(struct store *store);
void feed_follower_free(struct feed_follower *follower);
/*
 * Follows the feed up to `upto`, and compares all documents of the catalog, which is that of `upto`, with the list.
 * Since the last check the feed must also have named each index whose mapping, aliases or settings changed. Where the
 * feed was trimmed or off meanwhile, and reports that, the list begins anew.
 *
 * Returns: as feed_replay_check().
 */
bool feed_follower_check(struct feed_follower *follower, struct catalog *catalog, tl_ts upto, struct buf *ret_wrong);
/* Returns: the number of units that were followed. */
uint64_t feed_follower_records(const struct feed_follower *follower);

#endif
