/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Purge queue: records to be purged later by maintenance. Its keys are in SPACE_SYSTEM, in order of
 * the timestamp at which they are due:
 *
 *   'g', timestamp (u64be), document key     a tombstone 'd', timestamp (u64be), index (u32be)    a
 *   deleted index 'V', timestamp (u64be), session          a session tombstone
 *   (documents/session_tombstone.h) 'X', timestamp (u64be), transaction      the outcome of a
 *   transaction (session/txn_store.c) 'E', timestamp (u64be), session          ephemeral keys of an
 *   ended session whose documents were in deleted indices (documents/ephemeral.h)
 *   'q', timestamp (u64be), request          the outcome of a named request
 *   (documents/request_outcome.h)
 */
#ifndef TL_CORE_PURGE_H
#define TL_CORE_PURGE_H

#include "base/buf.h"
#include "base/types.h"

enum {
    PURGE_TOMBSTONE = 'g',
    PURGE_INDEX = 'd',
    PURGE_SESSION_TOMBSTONE = 'V',
    PURGE_OUTCOME = 'X',
    PURGE_EPHEMERAL_KEYS = 'E',
    PURGE_REQUEST = 'q'
};
enum { PURGE_PREFIX_BYTES = 9 }; /* bytes before the last part */

/*
 * Returns: the key, in `buf`, of a record that is due at `ts`. `what` is a document key, an index
 *   (u32be), or the id of a session or transaction.
 */
static inline struct slice purge_key(struct buf *buf, char letter, tl_ts ts, struct slice what)
{
    buf_clear(buf);
    buf_byte(buf, letter);
    buf_u64be(buf, ts);
    buf_slice(buf, what);
    return buf_as_slice(buf);
}

#endif
