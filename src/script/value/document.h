/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents: JSON to values and back.
 */
#ifndef TL_SCRIPT_DOCUMENT_H
#define TL_SCRIPT_DOCUMENT_H

#include "script/value/dict.h"

/* Nested objects and arrays. */
#define DOCUMENT_DEPTH_MAX 1000u

/* Reads an object; absent or empty bytes are an empty one. Returns: NULL and a throwable. */
struct dict *document_read(struct run *run, struct slice json);

/*
 * Writes any value as Elasticsearch would: in Painless (7.x) it refuses what it does not know, in Groovy (5.x) that
 * becomes its text. Returns: false and a throwable, which is the problem as it stands.
 */
bool document_write(struct run *run, struct value value, struct buf *out);

/* Whether a value contains itself; what Elasticsearch asks before it writes. Throws if so. */
bool document_check_cycles(struct run *run, struct value value);

#endif
