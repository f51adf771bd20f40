/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the feed with a plain list of documents, as src/core/feed/README.md says that anybody can, and compares the list with the
 * documents that there are.
 */
#ifndef TL_TESTS_FEED_REPLAY_H
#define TL_TESTS_FEED_REPLAY_H

#include "base/buf.h"
#include "store/store.h"

/*
 * Begins with the documents as of `since` (0: none), follows the feed up to `upto`, and compares. `newest`: what a change names is looked at
 * as of `upto`, and not as of the change; so is what changed before `readable`. Where the feed does not reach back so far, that must be what it says.
 * Returns: whether all is as it must be; `ret_wrong` says what is not.
 */
bool feed_replay_check(struct store *store, tl_ts since, tl_ts upto, tl_ts readable, bool newest,
                       struct buf *ret_wrong);

#endif
