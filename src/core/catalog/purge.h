/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks: what is to be removed for good later, by upkeep. They lie in SPACE_SYSTEM, in the order in which they fall due:
 *
 *   'g', timestamp (u64be), document key     a tombstone
 *   'd', timestamp (u64be), index (u32be)    a deleted index
 *   'V', timestamp (u64be), session          what went with a session at one moment, and is swept away (documents/session_tombstone.h)
 *   'X', timestamp (u64be), transaction      how a transaction ended (owners/txn_store.c)
 *   'E', timestamp (u64be), session          marks of ephemeral documents of deleted indices, whose session has ended (documents/ephemeral.h)
 */
#ifndef TL_CORE_PURGE_H
#define TL_CORE_PURGE_H

#include "base/buf.h"
#include "base/types.h"

enum { PURGE_TOMBSTONE = 'g', PURGE_INDEX = 'd', PURGE_SESSION_TOMBSTONE = 'V', PURGE_OUTCOME = 'X', PURGE_EPHEMERAL_KEYS = 'E' };
enum { PURGE_PREFIX_BYTES = 9 }; /* before the document key, the index or the session */

/* Returns: the key, in `buf`, of a mark that falls due at `ts`; `what` is a document key, an index (u32be), or a session. */
static inline struct slice purge_key(struct buf *buf, char letter, tl_ts ts, struct slice what)
{
    buf_clear(buf);
    buf_byte(buf, letter);
    buf_u64be(buf, ts);
    buf_slice(buf, what);
    return buf_as_slice(buf);
}

#endif
