/* SPDX-License-Identifier: Apache-2.0 */
/* Java's String.format, in the root locale. */
#include "base/dtoa.h"
#include "script/library/method_args.h"

#include <math.h>
#include <stdio.h>

#define WIDTH_MAX 10000

struct field {
    bool left, zero, plus, space, comma, alternate, parenthesis;
    int64_t index;            /* of "%n$": from 1; 0: none given */
    int64_t width, precision; /* -1: none given */
    uint16_t conversion;
};

struct formatter {
    struct run *run;
    const struct text *format;
    const struct value *arguments;
    size_t count;
    size_t at;
    size_t ordinary; /* index of the next argument for a field without its own */
    struct text_buf out;
};

static uint16_t peek_unit(const struct formatter *formatter)
{
    return formatter->at < formatter->format->length ? text_at(formatter->format, formatter->at) : 0;
}

static int64_t take_digits(struct formatter *formatter)
{
    int64_t value = -1;
    for (; peek_unit(formatter) >= '0' && peek_unit(formatter) <= '9'; formatter->at++)
        if (value < INT32_MAX)
            value = (value < 0 ? 0 : value * 10) + (peek_unit(formatter) - '0');
    return value;
}

static void parse_flags(struct formatter *formatter, struct field *field)
{
    for (;; formatter->at++) {
        switch (peek_unit(formatter)) {
        case '-': field->left = true; break;
        case '0': field->zero = true; break;
        case '+': field->plus = true; break;
        case ' ': field->space = true; break;
        case ',': field->comma = true; break;
        case '#': field->alternate = true; break;
        case '(': field->parenthesis = true; break;
        default: return;
        }
    }
}

static void parse_field(struct formatter *formatter, struct field *field)
{
    *field = (struct field){.width = -1, .precision = -1};
    size_t start = formatter->at;
    int64_t number = peek_unit(formatter) == '0' ? -1 : take_digits(formatter);
    if (number >= 0 && peek_unit(formatter) == '$') {
        field->index = number;
        formatter->at++;
    } else {
        formatter->at = start;
    }
    parse_flags(formatter, field);
    field->width = take_digits(formatter);
    if (peek_unit(formatter) == '.') {
        formatter->at++;
        field->precision = take_digits(formatter);
    }
    field->conversion = peek_unit(formatter);
    formatter->at++;
}

/* Pads the units appended since `from` to the field's width. */
static bool pad_field(struct formatter *formatter, const struct field *field, size_t from)
{
    struct text_buf *out = &formatter->out;
    size_t length = out->length - from;
    if (field->width <= (int64_t)length || out->failed)
        return true;
    if (field->width > WIDTH_MAX)
        return run_throw(formatter->run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "format width is too large");
    size_t add = (size_t)field->width - length;
    for (size_t i = 0; i < add; i++)
        text_buf_unit(out, ' ');
    if (out->failed || field->left)
        return true;
    for (size_t i = length; i-- > 0;)
        out->units[from + add + i] = out->units[from + i];
    for (size_t i = 0; i < add; i++)
        out->units[from + i] = ' ';
    return true;
}

/* Writes the sign, the digits in `plain` with grouping, and leading zeros. */
static void write_number(struct formatter *formatter, const struct field *field, bool negative, const char *plain)
{
    struct text_buf *out = &formatter->out;
    size_t length = strlen(plain), whole = strcspn(plain, ".eE");
    size_t groups = field->comma && whole > 0 ? (whole - 1) / 3 : 0;
    bool sign = negative || field->plus || field->space;
    size_t used = length + groups + (sign ? 1 : 0) + (negative && field->parenthesis ? 1 : 0);
    if (negative)
        text_buf_unit(out, field->parenthesis ? '(' : '-');
    else if (sign)
        text_buf_unit(out, field->plus ? '+' : ' ');
    if (field->zero && field->width <= WIDTH_MAX)
        for (size_t i = used; (int64_t)i < field->width; i++)
            text_buf_unit(out, '0');
    for (size_t i = 0; i < length; i++) {
        text_buf_unit(out, (uint16_t)plain[i]);
        if (field->comma && i + 1 < whole && (whole - 1 - i) % 3 == 0)
            text_buf_unit(out, ',');
    }
    if (negative && field->parenthesis)
        text_buf_unit(out, ')');
}

static bool bad_conversion(struct formatter *formatter, const struct field *field, struct value value)
{
    char name[TYPE_NAME_MAX];
    return run_throw(formatter->run, CLASS_ILLEGAL_FORMAT_CONVERSION_EXCEPTION, "%c != %s", (char)field->conversion,
                     type_java_name(value_type(value), name));
}

static bool write_integer(struct formatter *formatter, const struct field *field, struct value value)
{
    char plain[80];
    if (value_is(value, CLASS_BIG_INTEGER) && field->conversion == 'd') {
        struct slice text = big_slice(formatter->run, (struct big *)value.object);
        bool negative = text.len > 0 && text.data[0] == '-';
        struct slice copy = arena_copy(formatter->run->arena, text);
        write_number(formatter, field, negative, copy.data + (negative ? 1 : 0));
        return true;
    }
    if (!value_integral(value))
        return bad_conversion(formatter, field, value);
    if (field->conversion == 'd') {
        uint64_t magnitude = value.i < 0 ? 0 - (uint64_t)value.i : (uint64_t)value.i;
        snprintf(plain, sizeof plain, "%llu", (unsigned long long)magnitude);
        write_number(formatter, field, value.i < 0, plain);
        return true;
    }
    static const unsigned bits[] = {[VALUE_BYTE] = 8, [VALUE_SHORT] = 16, [VALUE_INT] = 32, [VALUE_LONG] = 64};
    uint64_t pattern = (uint64_t)value.i;
    if (bits[value.kind] < 64)
        pattern &= ((uint64_t)1 << bits[value.kind]) - 1;
    const char *format = field->conversion == 'o' ? "%s%llo" : field->conversion == 'X' ? "%s%llX" : "%s%llx";
    const char *prefix = !field->alternate          ? ""
                         : field->conversion == 'o' ? "0"
                         : field->conversion == 'X' ? "0X"
                                                    : "0x";
    snprintf(plain, sizeof plain, format, prefix, (unsigned long long)pattern);
    write_number(formatter, field, false, plain);
    return true;
}

/*
 * Returns: the shortest decimal that denotes the double, which Java rounds half up; NULL with a
 * throwable in the run.
 */
static struct decimal *shortest_decimal(struct run *run, double d)
{
    char text[DTOA_TEXT_MAX];
    size_t length = dtoa_double(d, text);
    return decimal_from_slice(run, slice_make(text, length));
}

/*
 * Writes a decimal. For a double, `decimal` is the absolute value and `negative` its sign, which
 * zero has as well.
 */
static bool write_decimal(struct formatter *formatter, const struct field *field, bool negative,
                          struct decimal *decimal)
{
    if (decimal == NULL)
        return false;
    int64_t places = field->precision < 0 ? 6 : field->precision;
    if (places > WIDTH_MAX)
        return run_throw(formatter->run, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, "format precision is too large");
    decimal = decimal_set_scale(formatter->run, decimal, places, ROUND_HALF_UP);
    if (decimal == NULL)
        return false;
    struct slice text = decimal_plain(formatter->run, decimal);
    bool minus = text.len > 0 && text.data[0] == '-';
    struct slice copy = arena_copy(formatter->run->arena, text);
    write_number(formatter, field, negative || minus, copy.data + (minus ? 1 : 0));
    return true;
}

static bool write_scientific(struct formatter *formatter, const struct field *field, double d)
{
    char text[400];
    int places = field->precision < 0 ? 6 : (int)field->precision;
    snprintf(text, sizeof text, field->conversion == 'E' ? "%.*E" : "%.*e", places > 300 ? 300 : places, fabs(d));
    write_number(formatter, field, signbit(d), text);
    return true;
}

static bool write_floating(struct formatter *formatter, const struct field *field, struct value value)
{
    if (value_is(value, CLASS_BIG_DECIMAL) && field->conversion == 'f')
        return write_decimal(formatter, field, false, (struct decimal *)value.object);
    bool decimal = value_is(value, CLASS_BIG_DECIMAL);
    if (!value_floating(value) && !decimal)
        return bad_conversion(formatter, field, value);
    double d = decimal ? decimal_to_double(formatter->run, (struct decimal *)value.object) : value.d;
    if (isnan(d) || isinf(d)) {
        struct field bare = *field;
        bare.zero = bare.comma = false;
        write_number(formatter, &bare, isinf(d) && d < 0, isnan(d) ? "NaN" : "Infinity");
        return true;
    }
    if (field->conversion == 'e' || field->conversion == 'E' || field->conversion == 'g')
        return write_scientific(formatter, field, d);
    return write_decimal(formatter, field, signbit(d), shortest_decimal(formatter->run, fabs(d)));
}

static bool write_character(struct formatter *formatter, const struct field *field, struct value value)
{
    if (value.kind == VALUE_NULL)
        text_buf_ascii(&formatter->out, "null");
    else if (value.kind == VALUE_CHAR || value.kind == VALUE_INT || value.kind == VALUE_SHORT ||
             value.kind == VALUE_BYTE)
        text_buf_code_point(&formatter->out, (uint32_t)value.i);
    else
        return bad_conversion(formatter, field, value);
    return true;
}

static bool write_general(struct formatter *formatter, const struct field *field, struct value value)
{
    struct text *text = value_to_text(formatter->run, value);
    if (text == NULL)
        return false;
    size_t length = text->length;
    if (field->precision >= 0 && (size_t)field->precision < length)
        length = (size_t)field->precision;
    text_buf_range(&formatter->out, text, 0, length);
    return true;
}

static bool write_value(struct formatter *formatter, const struct field *field, struct value value)
{
    int32_t hash;
    switch (field->conversion) {
    case 's':
    case 'S': return write_general(formatter, field, value);
    case 'b':
    case 'B':
        text_buf_ascii(&formatter->out,
                       value.kind == VALUE_NULL || (value.kind == VALUE_BOOLEAN && value.i == 0) ? "false" : "true");
        return true;
    case 'c':
    case 'C': return write_character(formatter, field, value);
    case 'h':
        if (value.kind != VALUE_NULL && !value_hash(formatter->run, value, &hash))
            return false;
        return value.kind == VALUE_NULL
                   ? write_general(formatter, field, value)
                   : (text_buf_slice(&formatter->out, run_printf(formatter->run, "%x", (unsigned)hash)), true);
    default: break;
    }
    if (value.kind == VALUE_NULL)
        return write_general(formatter, field, value);
    if (strchr("doxX", field->conversion) != NULL)
        return write_integer(formatter, field, value);
    return write_floating(formatter, field, value);
}

static void upper_from(struct formatter *formatter, size_t from)
{
    for (size_t i = from; i < formatter->out.length; i++)
        if (formatter->out.units[i] >= 'a' && formatter->out.units[i] <= 'z')
            formatter->out.units[i] = (uint16_t)(formatter->out.units[i] - 32);
}

static bool write_field(struct formatter *formatter, const struct field *field, size_t start)
{
    size_t from = formatter->out.length;
    if (field->conversion == '%' || field->conversion == 'n') {
        text_buf_unit(&formatter->out, field->conversion == 'n' ? '\n' : '%');
        return pad_field(formatter, field, from);
    }
    if (field->conversion == 0 || field->conversion > 127 || strchr("sSbBcChdoxXeEfg", field->conversion) == NULL) {
        uint32_t shown = field->conversion == 0 ? '%' : field->conversion;
        return run_throw(formatter->run, CLASS_UNKNOWN_FORMAT_CONVERSION_EXCEPTION, "Conversion = '%c'",
                         shown < 128 ? (char)shown : '?');
    }
    size_t index = field->index > 0 ? (size_t)field->index - 1 : formatter->ordinary++;
    if (index >= formatter->count) {
        struct text *specifier =
            text_substring(formatter->run, (struct text *)(uintptr_t)formatter->format, start, formatter->at);
        if (specifier == NULL)
            return false;
        return run_throw(formatter->run, CLASS_MISSING_FORMAT_ARGUMENT_EXCEPTION, "Format specifier '%.*s'",
                         SLICE_ARG(text_utf8(formatter->run, specifier)));
    }
    if (!write_value(formatter, field, formatter->arguments[index]))
        return false;
    if (field->conversion == 'S' || field->conversion == 'B' || field->conversion == 'C')
        upper_from(formatter, from);
    return pad_field(formatter, field, from);
}

struct text *format_text(struct run *run, struct text *format, const struct value *arguments, size_t count)
{
    struct formatter formatter = {.run = run, .format = format, .arguments = arguments, .count = count};
    struct field field;
    text_buf_init(&formatter.out, run);
    while (formatter.at < format->length) {
        size_t start = formatter.at++;
        if (text_at(format, start) != '%') {
            text_buf_unit(&formatter.out, text_at(format, start));
            continue;
        }
        parse_field(&formatter, &field);
        if (!run_step(run, 10) || !write_field(&formatter, &field, start))
            return NULL;
    }
    return text_buf_done(&formatter.out);
}
