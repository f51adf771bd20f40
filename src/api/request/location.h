/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations in a body: Elasticsearch's errors have the line and column of the refused token.
 *
 * yyjson keeps no offsets but those of strings, so any other is computed by scanning from the name
 * of the member. Only errors do so.
 */
#ifndef TL_API_LOCATION_H
#define TL_API_LOCATION_H

#include "json/json.h"

/* Offset of the opening quote of a string value or a key. */
size_t location_of_string(const struct json_doc *doc, yyjson_val *string);

/* Offset of the first byte of a key's value. */
size_t location_of_member(const struct json_doc *doc, yyjson_val *key);

/* Offset of the first byte of the root. */
size_t location_of_root(const struct json_doc *doc);

/* Returns: the offset just after the value that starts at `offset`. */
size_t location_after(const struct json_doc *doc, size_t offset);

/* Returns: offset of the bracket that closes the object or array which starts at `offset`. */
size_t location_of_end(const struct json_doc *doc, size_t offset);

/* Returns: the first value of a text, without what may follow it; all of it where that value has no end. */
struct slice location_first_value(struct slice text);

/* Returns: whether a text has nothing but blanks. */
bool location_is_blank(struct slice text);

/* Counts lines and columns from 1. */
void location_line(const struct json_doc *doc, size_t offset, size_t *ret_line, size_t *ret_column);

#endif
