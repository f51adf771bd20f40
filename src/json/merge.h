/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partial updates: `{"doc": {…}}` merged into a document. Objects are merged key by key, anything else is
 * replaced; keys keep their place, new ones come last.
 */
#ifndef TL_JSON_MERGE_H
#define TL_JSON_MERGE_H

#include "base/buf.h"
#include "json/json.h"

/*
 * Writes `base` with `patch` merged in.
 * Requires: both are objects.
 * Returns: true when the result differs from `base` (false is what `detect_noop` calls a noop).
 */
bool json_merge(struct buf *buf, yyjson_val *base, yyjson_val *patch, enum dialect dialect);

#endif
