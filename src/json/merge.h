/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partial updates: the merge of `{"doc": {…}}` into a document. Objects are merged recursively, any
 * other value is replaced. Existing members keep their order. New ones are appended, in the order in
 * which Elasticsearch's map of the update has them, as has each object of a new value (hash_order.h).
 */
#ifndef TL_JSON_MERGE_H
#define TL_JSON_MERGE_H

#include "base/buf.h"
#include "json/json.h"

/*
 * Writes `base` with `patch` merged into it.
 * Requires: both are objects.
 * Returns: whether the result differs from `base`; false is a noop in the sense of `detect_noop`.
 */
bool json_merge(struct buf *buf, yyjson_val *base, yyjson_val *patch, enum dialect dialect);

/*
 * A rule that decides how a member of both objects is merged. It returns one of
 *
 *  - JSON_MERGE_REPLACE: the value of `patch` replaces that in `base`;
 *  - JSON_MERGE_NAMED: both are arrays of objects with one key each. An object of `patch` replaces
 *    the object of `base` with the same key; the others are appended;
 *  - a number >= 0: two objects are merged by the same rule, which is given the number as `how`.
 *
 * A value that does not have the required kind is replaced.
 */
enum { JSON_MERGE_REPLACE = -1, JSON_MERGE_NAMED = -2 };
typedef int json_merge_rule(void *context, int how, struct slice key, yyjson_val *base, yyjson_val *patch);

/*
 * Writes `base` with `patch` merged into it by `rule`; `how` and `context` are passed to the rule.
 * Requires: both are objects without duplicate names.
 */
void json_merge_by(struct buf *buf, yyjson_val *base, yyjson_val *patch, enum dialect dialect, json_merge_rule *rule,
                   void *context, int how);

/*
 * Writes the first of `objects` with each of the others merged into it in turn: by a rule as json_merge_by() does, or
 * with `rule` NULL as json_merge() does. It takes time in proportion to all objects, where one call after another
 * writes, and its caller parses, the members before as many times as there are objects after them.
 * Requires: `count` is not 0. What a rule decides is the same for an object and for that which results from it.
 */
void json_merge_list(struct buf *buf, yyjson_val *const *objects, size_t count, enum dialect dialect,
                     json_merge_rule *rule, void *context, int how);

#endif
