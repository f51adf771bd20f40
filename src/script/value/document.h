/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents: JSON to values and back.
 */
#ifndef TL_SCRIPT_DOCUMENT_H
#define TL_SCRIPT_DOCUMENT_H

#include "script/value/dict.h"

/* Nested objects and arrays. */
#define DOCUMENT_DEPTH_MAX 1000u

/* The kind of the maps that JSON objects become, at every level. */
enum document_order {
    DOCUMENT_IN_ORDER, /* java.util.LinkedHashMap: the order of the JSON text */
    DOCUMENT_HASHED,   /* java.util.HashMap */
};

/*
 * Parses a JSON object; absent or empty bytes are an empty object. Returns: NULL with a throwable.
 */
struct dict *document_read(struct run *run, struct slice json, enum document_order order);

/*
 * Writes a value as Elasticsearch does. A class without a JSON form is refused in Painless (7.x) and written as its
 * toString in Groovy (5.x).
 * Returns: false with a throwable, to be reported by script_error_plain.
 */
bool document_write(struct run *run, struct value value, struct buf *out);

/*
 * Throws if a value contains itself, which Elasticsearch checks before it writes. Returns: false
 * then.
 */
bool document_check_cycles(struct run *run, struct value value);

#endif
