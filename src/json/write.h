/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serialization of JSON in Elasticsearch's form: no spaces, members in their order, doubles as Java
 * prints them (100000.0, 1.0E10), numbers beyond the range of a double as "Infinity".
 */
#ifndef TL_JSON_WRITE_H
#define TL_JSON_WRITE_H

#include "base/buf.h"
#include "json/json.h"

/*
 * Output stops early, and is then not valid JSON, if the buffer overflows or the account of its
 * guard has ended (base/budget.h). The owner of the buffer must check for both.
 */

/* Appends a value. Integers beyond a long become numbers in DIALECT_7 and strings in DIALECT_5. */
void json_write(struct buf *buf, yyjson_val *value, enum dialect dialect);

/* Appends a double in the form of Java's Double.toString(); Infinity and NaN as JSON strings. */
void json_write_double(struct buf *buf, double value);

/* Appends the score of a document, as Elasticsearch does: NaN as null, Infinity as a JSON string. */
void json_write_score(struct buf *buf, float value);

/* Append a number in Java's form without quotes around Infinity and NaN, for errors and scripts. */
void json_double_text(struct buf *buf, double value);
void json_float_text(struct buf *buf, float value);

/* Appends `value` in the form of `?pretty`: two spaces a level, no newline at the end. */
void json_write_pretty(struct buf *buf, yyjson_val *value, enum dialect dialect);

/*
 * A writer that inserts commas, for replies that are built member by member.
 *
 *     struct json_writer w;
 *     json_writer_init(&w, buf);
 *     json_begin(&w, '{');
 *     json_key(&w, "took"); json_i64(&w, 3);
 *     json_end(&w, '}');
 */
struct json_writer {
    struct buf *buf;
    bool comma; /* the next value needs a comma before it */
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
/* Writes text that is already JSON, unchecked. */
void json_raw(struct json_writer *writer, struct slice json);
void json_value(struct json_writer *writer, yyjson_val *value, enum dialect dialect);

#endif
