/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion of a JSON scalar to the value that a field indexes; see field.h.
 *
 * It is as lenient as Elasticsearch: text is read from numbers, numbers from text, and fractions
 * are truncated if `coerce` allows it. Errors have the wording of the Java parser that would
 * refuse the value; Jackson's have a position.
 */
#include "base/buf.h"
#include "json/each.h"
#include "mapping/mapping_internal.h"
#include "json/scan.h"
#include "json/write.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The state of one conversion. */
struct conversion {
    const struct mapping_field *field;
    yyjson_val *scalar;
    const struct json_doc *doc; /* NULL for scalars of queries */
    enum dialect dialect;
    bool strict_dates;
    struct arena *arena;
    struct problem *problem;
};

/* The limits of integer types, and their names in error messages. */
static const struct integer_type {
    int64_t min, max;
    const char *name;      /* "Value [x] is out of range for a long" */
    const char *java_name; /* "x cannot be converted to Long without data loss" */
} integer_types[] = {
    [FIELD_LONG] = {INT64_MIN, INT64_MAX, "a long", "Long"},
    [FIELD_INTEGER] = {INT32_MIN, INT32_MAX, "an integer", "Integer"},
    [FIELD_SHORT] = {INT16_MIN, INT16_MAX, "a short", "Short"},
    [FIELD_BYTE] = {INT8_MIN, INT8_MAX, "a byte", "Integer"},
};

static int refuse_value(struct conversion *conversion, enum problem_type type, const char *format, ...) TL_PRINTF(3, 4);
static int refuse_value(struct conversion *conversion, enum problem_type type, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(conversion->arena, format, arguments);
    va_end(arguments);
    problem_set(conversion->problem, conversion->arena, type, "%.*s", SLICE_ARG(reason));
    return FIELD_VALUE_REFUSED;
}

/* Refuses in Jackson's form, with the position after the token if the document is known. */
static int refuse_token(struct conversion *conversion, const char *name, const char *format, ...) TL_PRINTF(3, 4);
static int refuse_token(struct conversion *conversion, const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(conversion->arena, format, arguments);
    va_end(arguments);
    struct slice place = SLICE_NONE;
    if (conversion->doc != NULL) {
        size_t start, end, line, column;
        json_locate(conversion->doc, conversion->scalar, &start, &end);
        json_line_column(conversion->doc->source, end, &line, &column);
        place = json_source_location(conversion->arena, conversion->doc->source, conversion->dialect, line, column);
    }
    problem_set(conversion->problem, conversion->arena, PROBLEM_JSON_PARSE, "%.*s%.*s", SLICE_ARG(reason),
                SLICE_ARG(place));
    if (name != NULL)
        conversion->problem->name = slice_from(name);
    return FIELD_VALUE_REFUSED;
}

static const char *token_name(yyjson_val *value)
{
    switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_OBJ: return "START_OBJECT";
    case YYJSON_TYPE_ARR: return "START_ARRAY";
    case YYJSON_TYPE_BOOL: return yyjson_is_true(value) ? "VALUE_TRUE" : "VALUE_FALSE";
    case YYJSON_TYPE_STR: return "VALUE_STRING";
    case YYJSON_TYPE_NUM: return yyjson_is_real(value) ? "VALUE_NUMBER_FLOAT" : "VALUE_NUMBER_INT";
    case YYJSON_TYPE_RAW: return "VALUE_NUMBER_INT";
    default: return "VALUE_NULL";
    }
}

/* Returns: the scalar as text: a string unchanged, a number as Java prints it. */
static struct slice scalar_text(struct conversion *conversion)
{
    if (yyjson_is_str(conversion->scalar))
        return json_slice(conversion->scalar);
    char text[24];
    if (yyjson_is_sint(conversion->scalar) ||
        (yyjson_is_uint(conversion->scalar) && unsafe_yyjson_get_uint(conversion->scalar) <= INT64_MAX)) {
        int len = snprintf(text, sizeof text, "%lld", (long long)unsafe_yyjson_get_sint(conversion->scalar));
        return arena_copy(conversion->arena, slice_make(text, (size_t)len));
    }
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    java_text(&buf, conversion->scalar);
    struct slice copy = arena_copy(conversion->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return copy;
}

/* Returns: a number as written in the document; as scalar_text() without one. */
static struct slice number_source(struct conversion *conversion)
{
    if (conversion->doc == NULL)
        return scalar_text(conversion);
    size_t start, end;
    json_locate(conversion->doc, conversion->scalar, &start, &end);
    return slice_make(conversion->doc->source.data + start, end - start);
}

static int refuse_not_numeric(struct conversion *conversion)
{
    return refuse_token(conversion, NULL, "Current token (%s) not numeric, can not use numeric value accessors",
                        token_name(conversion->scalar));
}

static int refuse_number_text(struct conversion *conversion, struct slice text)
{
    bool is_long = conversion->field->type == FIELD_LONG;
    enum problem_type type =
        is_long && conversion->dialect == DIALECT_7 ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NUMBER_FORMAT;
    return refuse_value(conversion, type, "For input string: \"%.*s\"", SLICE_ARG(text));
}

/* Returns: whether a text is a decimal number: [+-]digits[.digits][e[+-]digits]. */
static bool is_decimal(struct slice text)
{
    size_t i = text.len > 0 && (text.data[0] == '+' || text.data[0] == '-');
    size_t digits = 0;
    for (; i < text.len && text.data[i] >= '0' && text.data[i] <= '9'; i++)
        digits++;
    if (i < text.len && text.data[i] == '.') {
        for (i++; i < text.len && text.data[i] >= '0' && text.data[i] <= '9'; i++)
            digits++;
    }
    if (digits == 0)
        return false;
    if (i < text.len && (text.data[i] | 0x20) == 'e') {
        i++;
        i += i < text.len && (text.data[i] == '+' || text.data[i] == '-');
        size_t first = i;
        while (i < text.len && text.data[i] >= '0' && text.data[i] <= '9')
            i++;
        if (i == first)
            return false;
    }
    return i == text.len;
}

static double to_double(struct conversion *conversion, struct slice text)
{
    return strtod(arena_copy(conversion->arena, text).data, NULL);
}

static int refuse_out_of_range(struct conversion *conversion)
{
    struct slice source = number_source(conversion);
    const struct integer_type *type = &integer_types[conversion->field->type];
    if (conversion->field->type == FIELD_SHORT)
        return refuse_token(conversion, NULL, "Numeric value (%.*s) out of range of Java short", SLICE_ARG(source));
    bool is_long = conversion->field->type == FIELD_LONG;
    const char *name = conversion->dialect == DIALECT_7 ? "input_coercion_exception" : NULL;
    bool is_integer = !yyjson_is_real(conversion->scalar);
    if (!is_long && is_integer && conversion->dialect == DIALECT_5)
        return refuse_token(conversion, name, "Numeric value (%.*s) out of range of int", SLICE_ARG(source));
    return refuse_token(conversion, name, "Numeric value (%.*s) out of range of %s (%lld - %lld)", SLICE_ARG(source),
                        is_long ? "long" : "int", is_long ? (long long)type->min : INT32_MIN,
                        is_long ? (long long)type->max : INT32_MAX);
}

/* Truncates a number to an integer. Refuses a fraction if `coerce` is false. */
static int cut_fraction(struct conversion *conversion, double number, int64_t *ret_integer)
{
    if (number != trunc(number) && !conversion->field->coerce) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        json_double_text(&buf, number);
        int r = refuse_value(conversion, PROBLEM_ILLEGAL_ARGUMENT, "%.*s cannot be converted to %s without data loss",
                             SLICE_ARG(buf_as_slice(&buf)), integer_types[conversion->field->type].java_name);
        buf_deinit(&buf);
        return r;
    }
    *ret_integer = (int64_t)number;
    return 0;
}

static bool fits_i64(double number)
{
    return number >= -9223372036854775808.0 && number < 9223372036854775808.0;
}

static bool java_double(struct conversion *conversion, struct slice text, double *ret_number);

/*
 * Converts a text as 5.6 does: it parses a double and applies Java's cast, which saturates at the
 * limits of the type. A short is the low half of an int.
 */
static int integer_cast_from_text(struct conversion *conversion, struct slice text, int64_t *ret_integer)
{
    enum field_type type = conversion->field->type;
    const struct integer_type *range = &integer_types[type == FIELD_LONG ? FIELD_LONG : FIELD_INTEGER];
    int64_t integer;
    double number;
    if (!slice_to_i64(text, &integer)) {
        if (!java_double(conversion, text, &number))
            return refuse_number_text(conversion, text);
        integer = isnan(number) ? 0 : fits_i64(number) ? (int64_t)number : number > 0 ? INT64_MAX : INT64_MIN;
    }
    integer = integer < range->min ? range->min : integer > range->max ? range->max : integer;
    if (type == FIELD_BYTE && (integer < INT8_MIN || integer > INT8_MAX))
        return refuse_value(conversion, PROBLEM_ILLEGAL_ARGUMENT, "Value [%lld] is out of range for a byte",
                            (long long)integer);
    *ret_integer = type == FIELD_SHORT ? (int16_t)integer : integer;
    return 0;
}

static int integer_from_text(struct conversion *conversion, struct slice text, int64_t *ret_integer)
{
    const struct integer_type *type = &integer_types[conversion->field->type];
    if (!conversion->field->coerce)
        return refuse_value(conversion, PROBLEM_ILLEGAL_ARGUMENT, "%s value passed as String", type->java_name);
    if (text.len == 0)
        return FIELD_VALUE_IGNORED;
    int64_t integer;
    if (conversion->dialect == DIALECT_5 && conversion->doc != NULL)
        return integer_cast_from_text(conversion, text, ret_integer);
    if (!slice_to_i64(text, &integer)) {
        if (!is_decimal(text))
            return refuse_number_text(conversion, text);
        double number = to_double(conversion, text);
        if (!fits_i64(number))
            return refuse_value(conversion, PROBLEM_ILLEGAL_ARGUMENT, "Value [%.*s] is out of range for %s",
                                SLICE_ARG(text), type->name);
        integer = (int64_t)number;
    }
    if (integer < type->min || integer > type->max)
        return refuse_value(conversion, PROBLEM_ILLEGAL_ARGUMENT, "Value [%.*s] is out of range for %s",
                            SLICE_ARG(text), type->name);
    *ret_integer = integer;
    return 0;
}

static int integer_from_number(struct conversion *conversion, int64_t *ret_integer)
{
    const struct integer_type *type = &integer_types[conversion->field->type];
    int64_t integer = 0;
    if (yyjson_is_real(conversion->scalar)) {
        double number = unsafe_yyjson_get_real(conversion->scalar);
        if (!fits_i64(number))
            return refuse_out_of_range(conversion);
        int r = cut_fraction(conversion, number, &integer);
        if (r != 0)
            return r;
    } else if (yyjson_is_raw(conversion->scalar) ||
               (yyjson_is_uint(conversion->scalar) && unsafe_yyjson_get_uint(conversion->scalar) > INT64_MAX)) {
        return refuse_out_of_range(conversion);
    } else {
        integer = unsafe_yyjson_get_sint(conversion->scalar);
    }
    bool is_byte = conversion->field->type == FIELD_BYTE;
    if (is_byte && (integer < type->min || integer > type->max) && integer >= INT32_MIN && integer <= INT32_MAX)
        return refuse_value(conversion, PROBLEM_ILLEGAL_ARGUMENT, "Value [%lld] is out of range for a byte",
                            (long long)integer);
    if (integer < type->min || integer > type->max)
        return refuse_out_of_range(conversion);
    *ret_integer = integer;
    return 0;
}

static int read_integer(struct conversion *conversion, struct field_value *value)
{
    value->kind = FIELD_VALUE_I64;
    if (yyjson_is_str(conversion->scalar))
        return integer_from_text(conversion, json_slice(conversion->scalar), &value->i64);
    if (!yyjson_is_num(conversion->scalar) && !yyjson_is_raw(conversion->scalar))
        return refuse_not_numeric(conversion);
    return integer_from_number(conversion, &value->i64);
}

/*
 * Parses a double as Java does, "NaN" and "Infinity" included. Returns: false if it is not a
 * number.
 */
static bool java_double(struct conversion *conversion, struct slice text, double *ret_number)
{
    if (slice_is(text, "NaN"))
        *ret_number = NAN;
    else if (slice_is(text, "Infinity") || slice_is(text, "-Infinity"))
        *ret_number = text.data[0] == '-' ? -INFINITY : INFINITY;
    else if (is_decimal(slice_trim(text)))
        *ret_number = to_double(conversion, slice_trim(text));
    else
        return false;
    return true;
}

/* Converts a scalar to a double. Returns: 0; FIELD_VALUE_IGNORED; FIELD_VALUE_REFUSED. */
static int number_of_scalar(struct conversion *conversion, double *ret_number)
{
    if (yyjson_is_str(conversion->scalar)) {
        struct slice text = json_slice(conversion->scalar);
        if (!conversion->field->coerce)
            return refuse_value(conversion, PROBLEM_ILLEGAL_ARGUMENT, "%s value passed as String",
                                conversion->field->type == FIELD_DOUBLE ? "Double" : "Float");
        if (text.len == 0)
            return FIELD_VALUE_IGNORED;
        return java_double(conversion, text, ret_number) ? 0 : refuse_number_text(conversion, text);
    }
    if (yyjson_is_raw(conversion->scalar))
        *ret_number = to_double(conversion, json_slice(conversion->scalar));
    else if (yyjson_is_num(conversion->scalar))
        *ret_number = yyjson_get_num(conversion->scalar);
    else
        return refuse_not_numeric(conversion);
    return 0;
}

/* Returns: the nearest IEEE 754 half-precision number, ties to even. */
static double round_half(double number)
{
    if (number == 0 || !isfinite(number))
        return number;
    int exponent;
    (void)frexp(number, &exponent);
    int bits = exponent - 11 < -24 ? -24 : exponent - 11;
    double rounded = ldexp(nearbyint(ldexp(number, -bits)), bits);
    return fabs(rounded) > 65504 ? copysign(INFINITY, number) : rounded;
}

static int refuse_infinite(struct conversion *conversion, const char *format, double number)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    json_double_text(&buf, number);
    buf_byte(&buf, '\0');
    int r = refuse_value(conversion, PROBLEM_ILLEGAL_ARGUMENT, "[%.*s] %s, but got [%s]",
                         SLICE_ARG(conversion->field->type_name), format, buf.data);
    buf_deinit(&buf);
    return r;
}

static int read_double(struct conversion *conversion, struct field_value *value)
{
    double number;
    int r = number_of_scalar(conversion, &number);
    if (r != 0)
        return r;
    enum field_type type = conversion->field->type;
    double rounded = type == FIELD_FLOAT        ? (double)(float)number
                     : type == FIELD_HALF_FLOAT ? round_half(number)
                                                : number;
    if (!isfinite(rounded) && conversion->dialect == DIALECT_7)
        return refuse_infinite(conversion, "supports only finite values", type == FIELD_FLOAT ? rounded : number);
    value->kind = FIELD_VALUE_F64;
    value->f64 = rounded;
    return 0;
}

static int read_scaled(struct conversion *conversion, struct field_value *value)
{
    double number;
    int r = number_of_scalar(conversion, &number);
    if (r != 0)
        return r;
    if (!isfinite(number))
        return refuse_infinite(conversion, "only supports finite values", number);
    double scaled = floor(number * conversion->field->scaling_factor + 0.5);
    value->kind = FIELD_VALUE_I64;
    value->i64 = scaled >= 9223372036854775807.0    ? INT64_MAX
                 : scaled <= -9223372036854775808.0 ? INT64_MIN
                                                    : (int64_t)scaled;
    return 0;
}

static int refuse_text_of_object(struct conversion *conversion)
{
    size_t line = 1, column = 1;
    if (conversion->doc != NULL) {
        size_t start, end;
        json_locate(conversion->doc, conversion->scalar, &start, &end);
        json_line_column(conversion->doc->source, start, &line, &column);
    }
    return refuse_value(conversion, PROBLEM_ILLEGAL_STATE, "Can't get text on a %s at %zu:%zu",
                        token_name(conversion->scalar), line, column);
}

static int read_date(struct conversion *conversion, struct field_value *value)
{
    struct slice text = scalar_text(conversion);
    value->kind = FIELD_VALUE_I64;
    if (date_parse(conversion->field->format, text, false, &value->i64) == 0 &&
        (!conversion->strict_dates || date_is_strict(conversion->field->format, text)))
        return 0;
    date__explain(conversion->field->format, text, conversion->dialect, conversion->arena, conversion->problem);
    return FIELD_VALUE_REFUSED;
}

/* Returns: the boolean as 5.x reads it: every text is true except the words for false. */
static bool lenient_boolean(struct slice text)
{
    static const char *const words[] = {"", "false", "0", "0.0", "off", "no"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (slice_is(text, words[i]))
            return false;
    }
    return true;
}

static int read_boolean(struct conversion *conversion, struct field_value *value)
{
    value->kind = FIELD_VALUE_I64;
    if (yyjson_is_bool(conversion->scalar)) {
        value->i64 = yyjson_is_true(conversion->scalar);
        return 0;
    }
    if (conversion->dialect == DIALECT_5 && !yyjson_is_obj(conversion->scalar)) {
        value->i64 = lenient_boolean(scalar_text(conversion));
        return 0;
    }
    if (!yyjson_is_str(conversion->scalar))
        return refuse_token(conversion, NULL, "Current token (%s) not of boolean type", token_name(conversion->scalar));
    struct slice text = json_slice(conversion->scalar);
    if (text.len != 0 && !slice_is(text, "true") && !slice_is(text, "false"))
        return refuse_value(conversion, PROBLEM_ILLEGAL_ARGUMENT,
                            "Failed to parse value [%.*s] as only [true] or [false] are allowed.", SLICE_ARG(text));
    value->i64 = slice_is(text, "true");
    return 0;
}

static int read_ip(struct conversion *conversion, struct field_value *value)
{
    enum { IP_BYTES = 16, IP_TEXT_MAX = 46 };
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct slice text = scalar_text(conversion);
    char copy[IP_TEXT_MAX];
    unsigned char bytes[IP_BYTES];
    memcpy(bytes, mapped, sizeof mapped);
    bool is_address = text.len > 0 && text.len < IP_TEXT_MAX && slice_find_byte(text, '\0') == text.len;
    if (is_address) {
        memcpy(copy, text.data, text.len);
        copy[text.len] = '\0';
        is_address = inet_pton(AF_INET, copy, bytes + sizeof mapped) == 1 || inet_pton(AF_INET6, copy, bytes) == 1;
    }
    if (!is_address)
        return refuse_value(conversion, PROBLEM_ILLEGAL_ARGUMENT, "'%.*s' is not an IP string literal.",
                            SLICE_ARG(text));
    value->kind = FIELD_VALUE_BYTES;
    value->bytes = arena_copy(conversion->arena, slice_make(bytes, IP_BYTES));
    return 0;
}

/* Returns: the length in UTF-16 code units, as Java counts. */
static size_t java_length(struct slice text)
{
    size_t length = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        length += (size_t)((c & 0xc0) != 0x80) + (c >= 0xf0);
    }
    return length;
}

static int read_text(struct conversion *conversion, struct field_value *value)
{
    const struct mapping_field *field = conversion->field;
    struct slice text = field->constant.data != NULL ? field->constant : scalar_text(conversion);
    if (text.len > field->ignore_above && java_length(text) > field->ignore_above)
        return FIELD_VALUE_IGNORED;
    if (field->type == FIELD_KEYWORD && field->analyzer != NULL)
        text = analyzer_normalize(field->analyzer, text, conversion->arena);
    value->kind = FIELD_VALUE_BYTES;
    value->bytes = text;
    return 0;
}

static int read_scalar(struct conversion *conversion, struct field_value *value)
{
    switch (conversion->field->type) {
    case FIELD_LONG:
    case FIELD_INTEGER:
    case FIELD_SHORT:
    case FIELD_BYTE: return read_integer(conversion, value);
    case FIELD_DOUBLE:
    case FIELD_FLOAT:
    case FIELD_HALF_FLOAT: return read_double(conversion, value);
    case FIELD_SCALED_FLOAT: return read_scaled(conversion, value);
    case FIELD_BOOLEAN: return read_boolean(conversion, value);
    default: break;
    }
    if (yyjson_is_obj(conversion->scalar) || yyjson_is_arr(conversion->scalar))
        return refuse_text_of_object(conversion);
    switch (conversion->field->type) {
    case FIELD_TEXT:
    case FIELD_KEYWORD:
    case FIELD_PATH: return read_text(conversion, value);
    case FIELD_DATE: return read_date(conversion, value);
    case FIELD_IP: return read_ip(conversion, value);
    default: return FIELD_VALUE_IGNORED;
    }
}

int field__value(const struct mapping_field *field, yyjson_val *scalar, const struct json_doc *doc,
                 enum dialect dialect, bool strict_dates, struct arena *arena, struct field_value *ret_value,
                 struct problem *ret_problem)
{
    if (scalar == NULL || yyjson_is_null(scalar))
        return FIELD_VALUE_IGNORED;
    struct conversion conversion = {field, scalar, doc, dialect, strict_dates, arena, ret_problem};
    ret_value->field = field->number;
    int r = read_scalar(&conversion, ret_value);
    return r == FIELD_VALUE_REFUSED && field->ignore_malformed && !yyjson_is_obj(scalar) ? FIELD_VALUE_IGNORED : r;
}

int field_value_parse(const struct mapping_field *field, yyjson_val *scalar, enum dialect dialect, struct arena *arena,
                      struct field_value *ret_value, struct problem *ret_problem)
{
    return field__value(field, scalar, NULL, dialect, false, arena, ret_value, ret_problem);
}
