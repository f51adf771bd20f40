/* SPDX-License-Identifier: Apache-2.0 */
/* Binary form of feed records and of the feed's state. README.md, "In the store". */
#ifndef TL_CORE_FEED_RECORD_H
#define TL_CORE_FEED_RECORD_H

#include "base/buf.h"
#include "base/types.h"

enum { FEED_RECORD_VERSION = 1 };

/* In SPACE_SYSTEM. */
static const char feed_state_key[] = "feed";

/* Appends the header of a record. `transaction`: id; empty: none. */
void feed_record_begin(struct buf *buf, struct slice transaction);
/* Takes the header of a record; its changes remain. Returns: false if it is invalid. */
bool feed_record_open(struct slice *record, struct slice *ret_transaction);
void feed_state_put(struct buf *buf, bool off, tl_ts from);

#endif
