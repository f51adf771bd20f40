/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readable members of replies: with `?human`, "size_in_bytes": 1234 follows "size": "1.2kb", and "index_time_in_millis"
 * follows "index_time". Statistics, tasks and the replies of by-query calls have them; documents, whose members are
 * their clients', are not changed.
 */
#ifndef TL_API_READABLE_H
#define TL_API_READABLE_H

#include "api/request/request.h"
#include "json/json.h"

/* Returns: whether the response of a request gets readable members. */
bool readable_applies(const struct request *request);

/* Returns: a duration with one digit after the point, in Elasticsearch's form: "1.2s". */
struct slice readable_time(struct arena *arena, uint64_t nanos);

/* Writes a value with readable members before those that have them. */
void readable_write(struct request *request, struct buf *buf, yyjson_val *value);

#endif
