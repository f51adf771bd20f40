/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a JSON scalar to the value a field indexes; see field.h.
 *
 * What Elasticsearch reads leniently is read so here: numbers as text, text as numbers, fractions cut where
 * `coerce` says so. Refusals carry the words of the parser that would have refused, Jackson's with their
 * place.
 */
#include "base/buf.h"
#include "mapping/mapping_internal.h"
#include "json/scan.h"
#include "json/write.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* One conversion. */
struct reading {
    const struct mapping_field *field;
    yyjson_val *scalar;
    const struct json_doc *doc; /* NULL for scalars of queries */
    enum dialect dialect;
    struct arena *arena;
    struct problem *problem;
};

/* Limits of whole numbers, and how messages name their type. */
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

static int refuse(struct reading *reading, enum problem_type type, const char *format, ...) TL_PRINTF(3, 4);
static int refuse(struct reading *reading, enum problem_type type, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(reading->arena, format, arguments);
    va_end(arguments);
    problem_set(reading->problem, reading->arena, type, "%.*s", SLICE_ARG(reason));
    return FIELD_VALUE_REFUSED;
}

/* A refusal of Jackson's, with the place behind the token where it is known. */
static int refuse_token(struct reading *reading, const char *name, const char *format, ...) TL_PRINTF(3, 4);
static int refuse_token(struct reading *reading, const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    struct slice reason = arena_vprintf(reading->arena, format, arguments);
    va_end(arguments);
    struct slice place = SLICE_NONE;
    if (reading->doc != NULL) {
        size_t start, end, line, column;
        json_locate(reading->doc, reading->scalar, &start, &end);
        json_line_column(reading->doc->source, end, &line, &column);
        place = json_source_location(reading->arena, reading->doc->source, reading->dialect, line, column);
    }
    problem_set(reading->problem, reading->arena, PROBLEM_JSON_PARSE, "%.*s%.*s", SLICE_ARG(reason), SLICE_ARG(place));
    if (name != NULL)
        reading->problem->name = slice_from(name);
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

/* The scalar as text: a string as it is, a number as Java prints it. */
static struct slice scalar_text(struct reading *reading)
{
    if (yyjson_is_str(reading->scalar))
        return json_slice(reading->scalar);
    char text[24];
    if (yyjson_is_sint(reading->scalar) ||
        (yyjson_is_uint(reading->scalar) && unsafe_yyjson_get_uint(reading->scalar) <= INT64_MAX)) {
        int len = snprintf(text, sizeof text, "%lld", (long long)unsafe_yyjson_get_sint(reading->scalar));
        return arena_copy(reading->arena, slice_make(text, (size_t)len));
    }
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    java_text(&buf, reading->scalar);
    struct slice copy = arena_copy(reading->arena, buf_as_slice(&buf));
    buf_deinit(&buf);
    return copy;
}

/* A number as it stands in the text. */
static struct slice number_source(struct reading *reading)
{
    if (reading->doc == NULL)
        return scalar_text(reading);
    size_t start, end;
    json_locate(reading->doc, reading->scalar, &start, &end);
    return slice_make(reading->doc->source.data + start, end - start);
}

static int refuse_not_numeric(struct reading *reading)
{
    return refuse_token(reading, NULL, "Current token (%s) not numeric, can not use numeric value accessors",
                        token_name(reading->scalar));
}

static int refuse_number_text(struct reading *reading, struct slice text, bool is_integer)
{
    enum problem_type type =
        is_integer && reading->dialect == DIALECT_7 ? PROBLEM_ILLEGAL_ARGUMENT : PROBLEM_NUMBER_FORMAT;
    return refuse(reading, type, "For input string: \"%.*s\"", SLICE_ARG(text));
}

/* Whether a text is a decimal number: [+-]digits[.digits][e[+-]digits]. */
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

static double to_double(struct reading *reading, struct slice text)
{
    return strtod(arena_copy(reading->arena, text).data, NULL);
}

static int refuse_out_of_range(struct reading *reading)
{
    struct slice source = number_source(reading);
    const struct integer_type *type = &integer_types[reading->field->type];
    if (reading->field->type == FIELD_SHORT)
        return refuse_token(reading, NULL, "Numeric value (%.*s) out of range of Java short", SLICE_ARG(source));
    bool is_long = reading->field->type == FIELD_LONG;
    const char *name = reading->dialect == DIALECT_7 ? "input_coercion_exception" : NULL;
    bool is_integer = !yyjson_is_real(reading->scalar);
    if (!is_long && is_integer && reading->dialect == DIALECT_5)
        return refuse_token(reading, name, "Numeric value (%.*s) out of range of int", SLICE_ARG(source));
    return refuse_token(reading, name, "Numeric value (%.*s) out of range of %s (%lld - %lld)", SLICE_ARG(source),
                        is_long ? "long" : "int", is_long ? (long long)type->min : INT32_MIN,
                        is_long ? (long long)type->max : INT32_MAX);
}

/* Takes a number with a fraction for a whole one. */
static int cut_fraction(struct reading *reading, double number, int64_t *ret_integer)
{
    if (number != trunc(number) && !reading->field->coerce) {
        struct buf buf = BUF_INIT(BUF_UNLIMITED);
        json_double_text(&buf, number);
        int r = refuse(reading, PROBLEM_ILLEGAL_ARGUMENT, "%.*s cannot be converted to %s without data loss",
                       SLICE_ARG(buf_as_slice(&buf)), integer_types[reading->field->type].java_name);
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

/* Java's parser of doubles passes over what is around a number. */
static struct slice trimmed(struct slice text)
{
    while (text.len > 0 && (unsigned char)text.data[0] <= ' ')
        text = slice_from_offset(text, 1);
    while (text.len > 0 && (unsigned char)text.data[text.len - 1] <= ' ')
        text.len--;
    return text;
}

static bool java_double(struct reading *reading, struct slice text, double *ret_number);

/* 5.6 reads a text as a double and casts that as Java does: to the nearest end of the range; a short is cut out of an int. */
static int integer_cast_from_text(struct reading *reading, struct slice text, int64_t *ret_integer)
{
    enum field_type type = reading->field->type;
    const struct integer_type *range = &integer_types[type == FIELD_LONG ? FIELD_LONG : FIELD_INTEGER];
    int64_t integer;
    double number;
    if (!slice_to_i64(text, &integer)) {
        if (!java_double(reading, text, &number))
            return refuse_number_text(reading, text, true);
        integer = isnan(number) ? 0 : fits_i64(number) ? (int64_t)number : number > 0 ? INT64_MAX : INT64_MIN;
    }
    integer = integer < range->min ? range->min : integer > range->max ? range->max : integer;
    if (type == FIELD_BYTE && (integer < INT8_MIN || integer > INT8_MAX))
        return refuse(reading, PROBLEM_ILLEGAL_ARGUMENT, "Value [%lld] is out of range for a byte", (long long)integer);
    *ret_integer = type == FIELD_SHORT ? (int16_t)integer : integer;
    return 0;
}

static int integer_from_text(struct reading *reading, struct slice text, int64_t *ret_integer)
{
    const struct integer_type *type = &integer_types[reading->field->type];
    if (!reading->field->coerce)
        return refuse(reading, PROBLEM_ILLEGAL_ARGUMENT, "%s value passed as String", type->java_name);
    if (text.len == 0)
        return FIELD_VALUE_IGNORED;
    int64_t integer;
    if (reading->dialect == DIALECT_5 && reading->doc != NULL)
        return integer_cast_from_text(reading, text, ret_integer);
    if (!slice_to_i64(text, &integer)) {
        if (!is_decimal(text))
            return refuse_number_text(reading, text, true);
        double number = to_double(reading, text);
        if (!fits_i64(number))
            return refuse(reading, PROBLEM_ILLEGAL_ARGUMENT, "Value [%.*s] is out of range for %s", SLICE_ARG(text),
                          type->name);
        integer = (int64_t)number;
    }
    if (integer < type->min || integer > type->max)
        return refuse(reading, PROBLEM_ILLEGAL_ARGUMENT, "Value [%.*s] is out of range for %s", SLICE_ARG(text),
                      type->name);
    *ret_integer = integer;
    return 0;
}

static int integer_from_number(struct reading *reading, int64_t *ret_integer)
{
    const struct integer_type *type = &integer_types[reading->field->type];
    int64_t integer = 0;
    if (yyjson_is_real(reading->scalar)) {
        double number = unsafe_yyjson_get_real(reading->scalar);
        if (!fits_i64(number))
            return refuse_out_of_range(reading);
        int r = cut_fraction(reading, number, &integer);
        if (r != 0)
            return r;
    } else if (yyjson_is_raw(reading->scalar) ||
               (yyjson_is_uint(reading->scalar) && unsafe_yyjson_get_uint(reading->scalar) > INT64_MAX)) {
        return refuse_out_of_range(reading);
    } else {
        integer = unsafe_yyjson_get_sint(reading->scalar);
    }
    bool is_byte = reading->field->type == FIELD_BYTE;
    if (is_byte && (integer < type->min || integer > type->max) && integer >= INT32_MIN && integer <= INT32_MAX)
        return refuse(reading, PROBLEM_ILLEGAL_ARGUMENT, "Value [%lld] is out of range for a byte", (long long)integer);
    if (integer < type->min || integer > type->max)
        return refuse_out_of_range(reading);
    *ret_integer = integer;
    return 0;
}

static int read_integer(struct reading *reading, struct field_value *value)
{
    value->kind = FIELD_VALUE_I64;
    if (yyjson_is_str(reading->scalar))
        return integer_from_text(reading, json_slice(reading->scalar), &value->i64);
    if (!yyjson_is_num(reading->scalar) && !yyjson_is_raw(reading->scalar))
        return refuse_not_numeric(reading);
    return integer_from_number(reading, &value->i64);
}

/* "NaN" and "Infinity" are numbers to Java. */
static bool java_double(struct reading *reading, struct slice text, double *ret_number)
{
    if (slice_is(text, "NaN"))
        *ret_number = NAN;
    else if (slice_is(text, "Infinity") || slice_is(text, "-Infinity"))
        *ret_number = text.data[0] == '-' ? -INFINITY : INFINITY;
    else if (is_decimal(trimmed(text)))
        *ret_number = to_double(reading, trimmed(text));
    else
        return false;
    return true;
}

static int number_of_scalar(struct reading *reading, double *ret_number)
{
    if (yyjson_is_str(reading->scalar)) {
        struct slice text = json_slice(reading->scalar);
        if (!reading->field->coerce)
            return refuse(reading, PROBLEM_ILLEGAL_ARGUMENT, "%s value passed as String",
                          reading->field->type == FIELD_DOUBLE ? "Double" : "Float");
        if (text.len == 0)
            return FIELD_VALUE_IGNORED;
        return java_double(reading, text, ret_number) ? 0 : refuse_number_text(reading, text, false);
    }
    if (yyjson_is_raw(reading->scalar))
        *ret_number = to_double(reading, json_slice(reading->scalar));
    else if (yyjson_is_num(reading->scalar))
        *ret_number = yyjson_get_num(reading->scalar);
    else
        return refuse_not_numeric(reading);
    return 0;
}

/* The nearest number of 16 bits (IEEE 754 half precision), ties to even. */
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

static int refuse_infinite(struct reading *reading, const char *format, double number)
{
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    json_double_text(&buf, number);
    buf_byte(&buf, '\0');
    int r = refuse(reading, PROBLEM_ILLEGAL_ARGUMENT, "[%.*s] %s, but got [%s]", SLICE_ARG(reading->field->type_name),
                   format, buf.data);
    buf_deinit(&buf);
    return r;
}

static int read_double(struct reading *reading, struct field_value *value)
{
    double number;
    int r = number_of_scalar(reading, &number);
    if (r != 0)
        return r;
    enum field_type type = reading->field->type;
    double rounded = type == FIELD_FLOAT        ? (double)(float)number
                     : type == FIELD_HALF_FLOAT ? round_half(number)
                                                : number;
    if (!isfinite(rounded) && reading->dialect == DIALECT_7)
        return refuse_infinite(reading, "supports only finite values", type == FIELD_FLOAT ? rounded : number);
    value->kind = FIELD_VALUE_F64;
    value->f64 = rounded;
    return 0;
}

static int read_scaled(struct reading *reading, struct field_value *value)
{
    double number;
    int r = number_of_scalar(reading, &number);
    if (r != 0)
        return r;
    if (!isfinite(number))
        return refuse_infinite(reading, "only supports finite values", number);
    double scaled = floor(number * reading->field->scaling_factor + 0.5);
    value->kind = FIELD_VALUE_I64;
    value->i64 = scaled >= 9223372036854775807.0    ? INT64_MAX
                 : scaled <= -9223372036854775808.0 ? INT64_MIN
                                                    : (int64_t)scaled;
    return 0;
}

static int refuse_text_of_object(struct reading *reading)
{
    size_t line = 1, column = 1;
    if (reading->doc != NULL) {
        size_t start, end;
        json_locate(reading->doc, reading->scalar, &start, &end);
        json_line_column(reading->doc->source, start, &line, &column);
    }
    return refuse(reading, PROBLEM_ILLEGAL_STATE, "Can't get text on a %s at %zu:%zu", token_name(reading->scalar),
                  line, column);
}

static int read_date(struct reading *reading, struct field_value *value)
{
    struct slice text = scalar_text(reading);
    value->kind = FIELD_VALUE_I64;
    if (date_parse(reading->field->format, text, false, &value->i64) == 0)
        return 0;
    date__explain(reading->field->format, text, reading->dialect, reading->arena, reading->problem);
    return FIELD_VALUE_REFUSED;
}

/* 5.x takes anything for true that is not one of the words for false. */
static bool lenient_boolean(struct slice text)
{
    static const char *const words[] = {"", "false", "0", "0.0", "off", "no"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (slice_is(text, words[i]))
            return false;
    }
    return true;
}

static int read_boolean(struct reading *reading, struct field_value *value)
{
    value->kind = FIELD_VALUE_I64;
    if (yyjson_is_bool(reading->scalar)) {
        value->i64 = yyjson_is_true(reading->scalar);
        return 0;
    }
    if (reading->dialect == DIALECT_5 && !yyjson_is_obj(reading->scalar)) {
        value->i64 = lenient_boolean(scalar_text(reading));
        return 0;
    }
    if (!yyjson_is_str(reading->scalar))
        return refuse_token(reading, NULL, "Current token (%s) not of boolean type", token_name(reading->scalar));
    struct slice text = json_slice(reading->scalar);
    if (text.len != 0 && !slice_is(text, "true") && !slice_is(text, "false"))
        return refuse(reading, PROBLEM_ILLEGAL_ARGUMENT,
                      "Failed to parse value [%.*s] as only [true] or [false] are allowed.", SLICE_ARG(text));
    value->i64 = slice_is(text, "true");
    return 0;
}

static int read_ip(struct reading *reading, struct field_value *value)
{
    enum { IP_BYTES = 16, IP_TEXT_MAX = 46 };
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct slice text = scalar_text(reading);
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
        return refuse(reading, PROBLEM_ILLEGAL_ARGUMENT, "'%.*s' is not an IP string literal.", SLICE_ARG(text));
    value->kind = FIELD_VALUE_BYTES;
    value->bytes = arena_copy(reading->arena, slice_make(bytes, IP_BYTES));
    return 0;
}

/* Characters as Java counts them: two for those beyond the basic plane. */
static size_t java_length(struct slice text)
{
    size_t length = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        length += (size_t)((c & 0xc0) != 0x80) + (c >= 0xf0);
    }
    return length;
}

static int read_text(struct reading *reading, struct field_value *value)
{
    const struct mapping_field *field = reading->field;
    struct slice text = field->constant.data != NULL ? field->constant : scalar_text(reading);
    if (text.len > field->ignore_above && java_length(text) > field->ignore_above)
        return FIELD_VALUE_IGNORED;
    if (field->type == FIELD_KEYWORD && field->analyzer != NULL)
        text = analyzer_normalize(field->analyzer, text, reading->arena);
    value->kind = FIELD_VALUE_BYTES;
    value->bytes = text;
    return 0;
}

static int read_scalar(struct reading *reading, struct field_value *value)
{
    switch (reading->field->type) {
    case FIELD_LONG:
    case FIELD_INTEGER:
    case FIELD_SHORT:
    case FIELD_BYTE: return read_integer(reading, value);
    case FIELD_DOUBLE:
    case FIELD_FLOAT:
    case FIELD_HALF_FLOAT: return read_double(reading, value);
    case FIELD_SCALED_FLOAT: return read_scaled(reading, value);
    case FIELD_BOOLEAN: return read_boolean(reading, value);
    default: break;
    }
    if (yyjson_is_obj(reading->scalar) || yyjson_is_arr(reading->scalar))
        return refuse_text_of_object(reading);
    switch (reading->field->type) {
    case FIELD_TEXT:
    case FIELD_KEYWORD:
    case FIELD_PATH: return read_text(reading, value);
    case FIELD_DATE: return read_date(reading, value);
    case FIELD_IP: return read_ip(reading, value);
    default: return FIELD_VALUE_IGNORED;
    }
}

int field__value(const struct mapping_field *field, yyjson_val *scalar, const struct json_doc *doc,
                 enum dialect dialect, struct arena *arena, struct field_value *ret_value, struct problem *ret_problem)
{
    if (scalar == NULL || yyjson_is_null(scalar))
        return FIELD_VALUE_IGNORED;
    struct reading reading = {field, scalar, doc, dialect, arena, ret_problem};
    ret_value->field = field->number;
    int r = read_scalar(&reading, ret_value);
    return r == FIELD_VALUE_REFUSED && field->ignore_malformed && !yyjson_is_obj(scalar) ? FIELD_VALUE_IGNORED : r;
}

int field_value_parse(const struct mapping_field *field, yyjson_val *scalar, enum dialect dialect, struct arena *arena,
                      struct field_value *ret_value, struct problem *ret_problem)
{
    return field__value(field, scalar, NULL, dialect, arena, ret_value, ret_problem);
}
