/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the feed share: the beginning of a record, and the record of where the feed begins. */
#ifndef TL_CORE_FEED_RECORD_H
#define TL_CORE_FEED_RECORD_H

#include "base/buf.h"
#include "base/types.h"

enum { FEED_RECORD_VERSION = 1 };

/* Of SPACE_SYSTEM. */
static const char feed_state_key[] = "feed";

void feed_record_begin(struct buf *buf, struct slice transaction);
/* Takes the beginning off a record; its changes are left. Returns: false where it is damaged. */
bool feed_record_open(struct slice *record, struct slice *ret_transaction);
void feed_state_put(struct buf *buf, bool off, tl_ts from);

#endif
