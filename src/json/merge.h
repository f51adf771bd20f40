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

/*
 * How a member that both have is merged: JSON_MERGE_REPLACE, or by the rule again, as `how` says, where both are objects. A list under
 * JSON_MERGE_NAMED holds objects of one key each: those of `patch` take the place of those of the same key, new ones come last.
 */
enum { JSON_MERGE_REPLACE = -1, JSON_MERGE_NAMED = -2 };
typedef int json_merge_rule(void *context, int how, struct slice key, yyjson_val *base, yyjson_val *patch);

/* json_merge() by a rule. Requires: both are objects. */
void json_merge_by(struct buf *buf, yyjson_val *base, yyjson_val *patch, enum dialect dialect, json_merge_rule *rule,
                   void *context, int how);

#endif
