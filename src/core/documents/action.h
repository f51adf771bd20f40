/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk actions as bytes: what a session leaves to be done when its holder dies is kept in memory and in the store in
 * this form, and made into items again when the time has come.
 */
#ifndef TL_CORE_ACTION_H
#define TL_CORE_ACTION_H

#include "base/buf.h"
#include "core/step/command.h"

void action_encode_all(struct buf *buf, const struct write_item *items, size_t count);

/* Returns: 0 with items in `arena` whose slices point into `bytes`; TL_ERR_CORRUPT. */
int action_decode_all(struct slice bytes, struct arena *arena, struct write_item **ret_items,
                      size_t *ret_count) TL_MUST_USE;

/* A slice with its length before it; absent ones (data NULL) stay so. */
void action_put_slice(struct buf *buf, struct slice bytes);
bool action_take_slice(struct slice *bytes, struct slice *ret_slice);

#endif
