/* SPDX-License-Identifier: Apache-2.0 */
/* Serialization of JSON; see write.h. */
#include "json/write.h"

#include "base/account.h"
#include "base/budget.h"
#include "base/check.h"
#include "base/dtoa.h"
#include "json/each.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS_OF_VALUE = 8 }; /* account steps charged for each value (base/account.h) */

void json_double_text(struct buf *buf, double value)
{
    char text[DTOA_TEXT_MAX];

    buf_append(buf, text, dtoa_double(value, text));
}

void json_float_text(struct buf *buf, float value)
{
    char text[DTOA_TEXT_MAX];

    buf_append(buf, text, dtoa_float(value, text));
}

void json_write_score(struct buf *buf, float value)
{
    if (isnan(value))
        buf_lit(buf, "null");
    else if (isinf(value))
        buf_slice(buf, value > 0 ? SLICE_LIT("\"Infinity\"") : SLICE_LIT("\"-Infinity\""));
    else
        json_float_text(buf, value);
}

void json_write_double(struct buf *buf, double value)
{
    size_t quotes = isfinite(value) ? 0 : 1;

    buf_append(buf, "\"", quotes);
    json_double_text(buf, value);
    buf_append(buf, "\"", quotes);
}

static bool is_integer_text(struct slice text)
{
    return slice_find_byte(text, '.') == text.len && slice_find_byte(text, 'e') == text.len &&
           slice_find_byte(text, 'E') == text.len;
}

/* Writes an integer beyond a long: as a number in DIALECT_7, as a string in DIALECT_5. */
static void write_big_integer(struct buf *buf, struct slice digits, enum dialect dialect)
{
    if (dialect == DIALECT_5)
        buf_byte(buf, '"');
    buf_slice(buf, digits);
    if (dialect == DIALECT_5)
        buf_byte(buf, '"');
}

static void write_raw_number(struct buf *buf, struct slice text, enum dialect dialect)
{
    if (is_integer_text(text))
        write_big_integer(buf, text, dialect);
    else
        json_write_double(buf, strtod(text.data, NULL));
}

static void write_number(struct buf *buf, yyjson_val *value, enum dialect dialect)
{
    if (yyjson_is_real(value)) {
        json_write_double(buf, unsafe_yyjson_get_real(value));
    } else if (yyjson_is_sint(value)) {
        buf_i64(buf, unsafe_yyjson_get_sint(value));
    } else {
        uint64_t number = unsafe_yyjson_get_uint(value);
        char text[24];
        int len = snprintf(text, sizeof text, "%llu", (unsigned long long)number);
        if (number > INT64_MAX)
            write_big_integer(buf, slice_make(text, (size_t)len), dialect);
        else
            buf_append(buf, text, (size_t)len);
    }
}

static void write_scalar(struct buf *buf, yyjson_val *value, enum dialect dialect)
{
    switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_STR: buf_json_string(buf, json_slice(value)); break;
    case YYJSON_TYPE_NUM: write_number(buf, value, dialect); break;
    case YYJSON_TYPE_RAW: write_raw_number(buf, json_slice(value), dialect); break;
    case YYJSON_TYPE_BOOL:
        if (yyjson_get_bool(value))
            buf_lit(buf, "true");
        else
            buf_lit(buf, "false");
        break;
    default: buf_lit(buf, "null");
    }
}

/* Writes a line break and the indentation; nothing in compact form (depth < 0). */
static void break_line(struct buf *buf, int depth)
{
    if (depth < 0)
        return;
    buf_byte(buf, '\n');
    for (int i = 0; i < depth; i++)
        buf_lit(buf, "  ");
}

/*
 * Charges `steps` to the account of the buffer's guard.
 * Returns: false if the output is no longer needed: the buffer overflowed or the account has ended.
 */
static bool may_continue(const struct buf *buf, size_t steps)
{
    return !buf->overflow && account_take(budget_account(buf->guard), steps);
}

/* Writes a value in pretty form at nesting level `depth`, or in compact form if depth < 0. */
static void write_value(struct buf *buf, yyjson_val *value, enum dialect dialect, int depth)
{
    bool is_object = yyjson_is_obj(value);
    if (!is_object && !yyjson_is_arr(value)) {
        write_scalar(buf, value, dialect);
        return;
    }
    size_t count = unsafe_yyjson_get_len(value);
    int inner = depth < 0 ? -1 : depth + 1;
    buf_byte(buf, is_object ? '{' : '[');
    yyjson_val *at = unsafe_yyjson_get_first(value);
    for (size_t i = 0; i < count && may_continue(buf, STEPS_OF_VALUE + (depth < 0 ? 0 : (size_t)depth)); i++) {
        if (i > 0)
            buf_byte(buf, ',');
        break_line(buf, inner);
        if (is_object) {
            buf_json_string(buf, json_slice(at++));
            if (depth < 0)
                buf_byte(buf, ':');
            else
                buf_lit(buf, " : ");
        }
        write_value(buf, at, dialect, inner);
        at = unsafe_yyjson_get_next(at);
    }
    if (count > 0)
        break_line(buf, depth);
    else if (depth >= 0)
        buf_byte(buf, ' ');
    buf_byte(buf, is_object ? '}' : ']');
}

void json_write(struct buf *buf, yyjson_val *value, enum dialect dialect)
{
    write_value(buf, value, dialect, -1);
}

void json_write_pretty(struct buf *buf, yyjson_val *value, enum dialect dialect)
{
    write_value(buf, value, dialect, 0);
}

void json_writer_init(struct json_writer *writer, struct buf *buf)
{
    *writer = (struct json_writer){buf, false};
}

static void before_value(struct json_writer *writer)
{
    if (writer->comma)
        buf_byte(writer->buf, ',');
    writer->comma = true;
}

void json_begin(struct json_writer *writer, char bracket)
{
    REQUIRE(bracket == '{' || bracket == '[');
    before_value(writer);
    buf_byte(writer->buf, bracket);
    writer->comma = false;
}

void json_end(struct json_writer *writer, char bracket)
{
    REQUIRE(bracket == '}' || bracket == ']');
    buf_byte(writer->buf, bracket);
    writer->comma = true;
}

void json_key_slice(struct json_writer *writer, struct slice key)
{
    before_value(writer);
    buf_json_string(writer->buf, key);
    buf_byte(writer->buf, ':');
    writer->comma = false;
}

void json_key(struct json_writer *writer, const char *key)
{
    json_key_slice(writer, slice_from(key));
}

void json_string(struct json_writer *writer, struct slice text)
{
    before_value(writer);
    buf_json_string(writer->buf, text);
}

void json_i64(struct json_writer *writer, int64_t value)
{
    before_value(writer);
    buf_i64(writer->buf, value);
}

void json_u64(struct json_writer *writer, uint64_t value)
{
    before_value(writer);
    buf_u64(writer->buf, value);
}

void json_double(struct json_writer *writer, double value)
{
    before_value(writer);
    json_write_double(writer->buf, value);
}

void json_bool(struct json_writer *writer, bool value)
{
    before_value(writer);
    buf_slice(writer->buf, value ? SLICE_LIT("true") : SLICE_LIT("false"));
}

void json_null(struct json_writer *writer)
{
    before_value(writer);
    buf_lit(writer->buf, "null");
}

void json_raw(struct json_writer *writer, struct slice json)
{
    before_value(writer);
    buf_slice(writer->buf, json);
}

void json_value(struct json_writer *writer, yyjson_val *value, enum dialect dialect)
{
    before_value(writer);
    json_write(writer->buf, value, dialect);
}
