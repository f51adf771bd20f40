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

#endif
