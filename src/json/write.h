/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing JSON into a buffer, in the form in which Elasticsearch writes what it has parsed: no spaces, keys
 * in their order, doubles as Java prints them (100000.0, 1.0E10), numbers beyond a double as "Infinity".
 */
#ifndef TL_JSON_WRITE_H
#define TL_JSON_WRITE_H

#include "base/buf.h"
#include "json/json.h"

/*
 * What is written ends early, as no JSON, when the buffer is full or the account of its guard is over (base/budget.h): whoever gave
 * the guard finds that out.
 */

/* Appends a value. Integers beyond a long are numbers in DIALECT_7 and strings in DIALECT_5, as recorded. */
void json_write(struct buf *buf, yyjson_val *value, enum dialect dialect);

/* Appends a double as Java's Double.toString() does; Infinity and NaN as strings. */
void json_write_double(struct buf *buf, double value);

/* The same without quotes around Infinity and NaN, and for a float: texts of errors and scripts. */
void json_double_text(struct buf *buf, double value);
void json_float_text(struct buf *buf, float value);

/* Appends `value` indented by two spaces a level, as `?pretty` shows it; ends without a newline. */
void json_write_pretty(struct buf *buf, yyjson_val *value, enum dialect dialect);

/*
 * A writer that puts the commas: for replies built piece by piece.
 *
 *     struct json_writer w;
 *     json_writer_init(&w, buf);
 *     json_begin(&w, '{');
 *     json_key(&w, "took"); json_i64(&w, 3);
 *     json_end(&w, '}');
 */
struct json_writer {
    struct buf *buf;
    bool comma; /* a value stands before the next one */
};

void json_writer_init(struct json_writer *writer, struct buf *buf);
void json_begin(struct json_writer *writer, char bracket); /* '{' or '[' */
void json_end(struct json_writer *writer, char bracket);
void json_key(struct json_writer *writer, const char *key);
void json_key_slice(struct json_writer *writer, struct slice key);
void json_string(struct json_writer *writer, struct slice text);
void json_i64(struct json_writer *writer, int64_t value);
void json_u64(struct json_writer *writer, uint64_t value);
void json_double(struct json_writer *writer, double value);
void json_bool(struct json_writer *writer, bool value);
void json_null(struct json_writer *writer);
/* A value that is JSON already. */
void json_raw(struct json_writer *writer, struct slice json);
void json_value(struct json_writer *writer, yyjson_val *value, enum dialect dialect);

#endif
