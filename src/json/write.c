/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON; see write.h. */
#include "json/write.h"

#include "base/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIGITS_MAX = 17 };

/* A finite number as 0.DIGITS times ten to the `exponent`, with as few digits as read back the same. */
struct decimal {
    char digits[DIGITS_MAX + 1];
    int count;
    int exponent;
};

static bool reads_back(const char *text, double value, bool is_float)
{
    return is_float ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

/* Fills *ret_decimal from a finite positive number. */
static void shortest_decimal(double value, bool is_float, struct decimal *ret_decimal)
{
    char text[40];
    /* Below these, the usual number of digits is not certain to be right, so all are tried. */
    bool tiny = value < (is_float ? 1.2e-38 : 2.3e-308);
    int precision = tiny ? 1 : is_float ? 6 : 15;
    for (;; precision++) {
        snprintf(text, sizeof text, "%.*e", precision - 1, value);
        if (precision == DIGITS_MAX || reads_back(text, value, is_float))
            break;
    }
    ret_decimal->count = 0;
    const char *c = text;
    for (; *c != 'e'; c++) {
        if (*c != '.')
            ret_decimal->digits[ret_decimal->count++] = *c;
    }
    while (ret_decimal->count > 1 && ret_decimal->digits[ret_decimal->count - 1] == '0')
        ret_decimal->count--;
    ret_decimal->exponent = atoi(c + 1) + 1;
}

static void put_digits(struct buf *buf, const struct decimal *decimal, int from, int to)
{
    for (int i = from; i < to; i++)
        buf_byte(buf, i < decimal->count && i >= 0 ? decimal->digits[i] : '0');
}

/* 123.0, 0.00123 */
static void put_plain(struct buf *buf, const struct decimal *decimal)
{
    if (decimal->exponent <= 0) {
        buf_lit(buf, "0.");
        put_digits(buf, decimal, decimal->exponent, decimal->count);
        return;
    }
    put_digits(buf, decimal, 0, decimal->exponent);
    buf_byte(buf, '.');
    put_digits(buf, decimal, decimal->exponent,
               decimal->count > decimal->exponent ? decimal->count : decimal->exponent + 1);
}

/* 1.23E10 */
static void put_scientific(struct buf *buf, const struct decimal *decimal)
{
    put_digits(buf, decimal, 0, 1);
    buf_byte(buf, '.');
    put_digits(buf, decimal, 1, decimal->count > 1 ? decimal->count : 2);
    buf_byte(buf, 'E');
    buf_i64(buf, decimal->exponent - 1);
}

static void put_number(struct buf *buf, double value, bool is_float)
{
    if (isnan(value)) {
        buf_lit(buf, "NaN");
        return;
    }
    if (signbit(value))
        buf_byte(buf, '-');
    value = fabs(value);
    if (isinf(value)) {
        buf_lit(buf, "Infinity");
    } else if (value == 0) {
        buf_lit(buf, "0.0");
    } else {
        struct decimal decimal;
        shortest_decimal(value, is_float, &decimal);
        if (value >= 1e-3 && value < 1e7)
            put_plain(buf, &decimal);
        else
            put_scientific(buf, &decimal);
    }
}

void json_double_text(struct buf *buf, double value)
{
    put_number(buf, value, false);
}

void json_float_text(struct buf *buf, float value)
{
    put_number(buf, (double)value, true);
}

void json_write_double(struct buf *buf, double value)
{
    if (isfinite(value)) {
        put_number(buf, value, false);
        return;
    }
    buf_byte(buf, '"');
    put_number(buf, value, false);
    buf_byte(buf, '"');
}

static bool is_integer_text(struct slice text)
{
    return slice_find_byte(text, '.') == text.len && slice_find_byte(text, 'e') == text.len &&
           slice_find_byte(text, 'E') == text.len;
}

/* An integer beyond a long. */
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

/* A line break and two spaces a level, where it is pretty (depth >= 0). */
static void break_line(struct buf *buf, int depth)
{
    if (depth < 0)
        return;
    buf_byte(buf, '\n');
    for (int i = 0; i < depth; i++)
        buf_lit(buf, "  ");
}

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
    for (size_t i = 0; i < count; i++) {
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
