/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binary form of bulk actions. The on_expire actions of a session are kept in this form, in memory
 * and in the store, and decoded when the session's holder dies.
 */
#ifndef TL_CORE_ACTION_H
#define TL_CORE_ACTION_H

#include "base/buf.h"
#include "core/command/command.h"

/*
 * Appends `count` items. Borrowed bytes (parsed source, prefetched document) are not part of them.
 */
void action_encode_all(struct buf *buf, const struct write_item *items, size_t count);

/*
 * Decodes what action_encode_all() wrote.
 *
 * Returns: 0, items in `arena` whose slices point into `bytes`; TL_ERR_CORRUPT.
 */
int action_decode_all(struct slice bytes, struct arena *arena, struct write_item **ret_items,
                      size_t *ret_count) TL_MUST_USE;
/* Returns: whether `bytes` decode to `exactly` so many items; SIZE_MAX: to any number. */
bool action_all_valid(struct slice bytes, size_t exactly);

/* Appends a slice with its length. An absent slice (data NULL) is decoded as absent. */
void action_put_slice(struct buf *buf, struct slice bytes);
/* Takes a slice from the front of `bytes`. Returns: false if `bytes` is truncated. */
bool action_take_slice(struct slice *bytes, struct slice *ret_slice);

#endif
