/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of numbers and characters: conversions, rounding, and counted loops. */
#include "script/library/methods_groovy.h"
#include "base/real.h"
#include "script/value/range.h"

#include <math.h>

static bool to_kind(struct run *run, struct value v, enum value_kind kind, struct value *ret)
{
    *ret = number_cast(run, v, kind);
    return true;
}

static bool to_integer(struct call *call, struct value *ret)
{
    return to_kind(call->run, call->self, VALUE_INT, ret);
}

static bool to_long(struct call *call, struct value *ret)
{
    return to_kind(call->run, call->self, VALUE_LONG, ret);
}

static bool to_float(struct call *call, struct value *ret)
{
    return to_kind(call->run, call->self, VALUE_FLOAT, ret);
}

static bool to_double(struct call *call, struct value *ret)
{
    return to_kind(call->run, call->self, VALUE_DOUBLE, ret);
}

static bool to_big_decimal(struct call *call, struct value *ret)
{
    return give(ret, number_to_decimal(call->run, call->self));
}

static bool to_big_integer(struct call *call, struct value *ret)
{
    return give(ret, number_to_big(call->run, call->self));
}

static bool abs_value(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    int order;
    *ret = call->self.kind < VALUE_INT ? number_cast(run, call->self, VALUE_INT) : call->self;
    return operate_order(run, call->self, value_int(0), &order) && (order >= 0 || operate_negate(run, *ret, ret));
}

static bool int_divide(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    const struct value both[2] = {call->self, call->args[0]};
    for (unsigned i = 0; i < 2; i++)
        if (value_floating(both[i]) || value_is(both[i], CLASS_BIG_DECIMAL)) {
            char name[TYPE_NAME_MAX];
            return run_throw(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION, "Cannot use intdiv() on this number type: %s",
                             type_java_name(value_type(both[i]), name));
        }
    if (!value_is(call->args[0], CLASS_BIG_INTEGER) && call->args[0].i == 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "/ by zero");
    return number_binary(run, OP_DIV, call->self, call->args[0], ret);
}

/* Rounds to the nearest integer; ties round up. */
static bool round_value(struct call *call, struct value *ret)
{
    bool is_float = call->self.kind == VALUE_FLOAT;
    double scale = call->count == 1 ? real_pow(10, (double)call->args[0].i) : 1,
           rounded = floor(call->self.d * scale + 0.5);
    if (call->count == 1)
        *ret = is_float ? value_float(rounded / scale) : value_double(rounded / scale);
    else
        *ret = is_float ? value_int(double_to_i32(rounded)) : value_long(double_to_i64(rounded));
    return true;
}

static bool trunc_value(struct call *call, struct value *ret)
{
    double scale = call->count == 1 ? real_pow(10, (double)call->args[0].i) : 1,
           cut = trunc(call->self.d * scale) / scale;
    *ret = call->self.kind == VALUE_FLOAT ? value_float(cut) : value_double(cut);
    return true;
}

static bool number_next(struct call *call, struct value *ret)
{
    return range_step(call->run, call->self, false, ret);
}

static bool number_previous(struct call *call, struct value *ret)
{
    return range_step(call->run, call->self, true, ret);
}

static bool number_negative(struct call *call, struct value *ret)
{
    return operate_negate(call->run, call->self, ret);
}

static bool bitwise_negate(struct call *call, struct value *ret)
{
    return operate_invert(call->run, call->self, ret);
}

static bool compare_to(struct call *call, struct value *ret)
{
    int order;
    return operate_order(call->run, call->self, call->args[0], &order) && give_int(ret, (order > 0) - (order < 0));
}

/* Loops */

static bool number_times(struct call *call, struct value *ret)
{
    struct value ignored;
    int64_t count = number_to_i32(call->self);
    for (int64_t i = 0; i < count; i++) {
        struct value index = value_int(i);
        if (!run_invoke(call->run, call->args[0], &index, 1, &ignored))
            return false;
    }
    return give_nothing(ret);
}

static bool count_to(struct call *call, struct value *ret)
{
    bool down = call->row->datum.number != 0;
    struct run *run = call->run;
    struct value at = call->self, ignored;
    int order;
    if (!operate_order(run, at, call->args[0], &order))
        return false;
    if (down ? order < 0 : order > 0) {
        struct text *from = value_to_text(run, call->self),
                    *to = from == NULL ? NULL : value_to_text(run, call->args[0]);
        return to != NULL && run_throw(run, CLASS_GROOVY_RUNTIME_EXCEPTION,
                                       "The argument (%.*s) to %s() cannot be %s than the value (%.*s) it's called on.",
                                       SLICE_ARG(text_utf8(run, to)), down ? "downto" : "upto",
                                       down ? "greater" : "less", SLICE_ARG(text_utf8(run, from)));
    }
    while (down ? order >= 0 : order <= 0)
        if (!run_invoke(run, call->args[1], &at, 1, &ignored) || !range_step(run, at, down, &at) ||
            !operate_order(run, at, call->args[0], &order))
            return false;
    return give_nothing(ret);
}

static bool big_kind(struct value v)
{
    return value_is(v, CLASS_BIG_DECIMAL) || value_is(v, CLASS_BIG_INTEGER);
}

/* Calls a closure with the numbers from the receiver to the limit, exclusive. All are int unless
   one of the three is big. */
static bool number_step(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    bool big = big_kind(call->self) || big_kind(call->args[0]) || big_kind(call->args[1]);
    struct value all[3] = {call->self, call->args[0], call->args[1]};
    int order, direction;
    for (unsigned i = 0; i < 3 && !big; i++)
        all[i] = number_cast(run, all[i], VALUE_INT);
    struct value at = all[0], ignored;
    if (!operate_order(run, at, all[1], &order) || !operate_order(run, all[2], value_int(0), &direction))
        return false;
    if (order != 0 && (direction == 0 || (order > 0) == (direction > 0))) {
        struct slice shown[3];
        for (unsigned i = 0; i < 3; i++) {
            struct text *text = value_to_text(run, all[i]);
            if (text == NULL)
                return false;
            shown[i] = text_utf8(run, text);
        }
        return run_throw(run, CLASS_GROOVY_RUNTIME_EXCEPTION, "Infinite loop in %.*s.step(%.*s, %.*s)",
                         SLICE_ARG(shown[0]), SLICE_ARG(shown[1]), SLICE_ARG(shown[2]));
    }
    while (direction > 0 ? order < 0 : order > 0)
        if (!run_invoke(run, call->args[2], &at, 1, &ignored) || !operate_binary(run, OP_ADD, at, all[2], &at) ||
            !operate_order(run, at, all[1], &order))
            return false;
    return give_nothing(ret);
}

static const struct method_row number_methods[] = {
    {"Integer toInteger()", GROOVY, to_integer},
    {"Long toLong()", GROOVY, to_long},
    {"Float toFloat()", GROOVY, to_float},
    {"Double toDouble()", GROOVY, to_double},
    {"BigDecimal toBigDecimal()", GROOVY, to_big_decimal},
    {"BigInteger toBigInteger()", GROOVY, to_big_integer},
    {"Number abs()", GROOVY, abs_value},
    {"Number intdiv(Number)", GROOVY, int_divide},
    {"Number next()", GROOVY, number_next},
    {"Number previous()", GROOVY, number_previous},
    {"Number unaryMinus()", GROOVY, number_negative},
    {"Number negative()", GROOVY, number_negative},
    {"Number bitwiseNegate()", GROOVY, bitwise_negate},
    {"int compareTo(Number)", GROOVY, compare_to},
    {"int compareTo(Character)", GROOVY, compare_to},
    {"void times(Closure)", GROOVY, number_times},
    {"void upto(Number, Closure)", GROOVY, count_to, {false}},
    {"void downto(Number, Closure)", GROOVY, count_to, {true}},
    {"void step(Number, Number, Closure)", GROOVY, number_step},
};

static const struct method_row floating_methods[] = {
    {"long round()", GROOVY, round_value},
    {"Number round(int)", GROOVY, round_value},
    {"Number trunc()", GROOVY, trunc_value},
    {"Number trunc(int)", GROOVY, trunc_value},
};

static const struct method_row char_methods[] = {
    {"Character next()", GROOVY, number_next},
    {"Character previous()", GROOVY, number_previous},
    {"int compareTo(Number)", GROOVY, compare_to},
};

const struct method_table methods_groovy_number[] = {
    METHOD_ROWS(NUMBER, number_methods),
    METHOD_ROWS(DOUBLE_BOX, floating_methods),
    METHOD_ROWS(FLOAT_BOX, floating_methods),
    METHOD_ROWS(CHAR_BOX, char_methods),
    {0},
};
