/* SPDX-License-Identifier: Apache-2.0 */
/* Groovy's methods of numbers and characters: conversions, rounding, and loops by a count. */
#include "script/library/methods_groovy.h"
#include "base/real.h"
#include "script/value/range.h"

#include <math.h>

static bool to_kind(struct run *run, struct value v, enum value_kind kind, struct value *ret)
{
    *ret = number_cast(run, v, kind);
    return true;
}

static bool to_integer(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return to_kind(run, a[0], VALUE_INT, ret);
}

static bool to_long(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return to_kind(run, a[0], VALUE_LONG, ret);
}

static bool to_float(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return to_kind(run, a[0], VALUE_FLOAT, ret);
}

static bool to_double(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return to_kind(run, a[0], VALUE_DOUBLE, ret);
}

static bool to_big_decimal(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, number_to_decimal(run, a[0]));
}

static bool to_big_integer(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, number_to_big(run, a[0]));
}

static bool abs_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int order;
    *ret = a[0].kind < VALUE_INT ? number_cast(run, a[0], VALUE_INT) : a[0];
    return operate_order(run, a[0], value_int(0), &order) && (order >= 0 || operate_negate(run, *ret, ret));
}

static bool int_divide(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    for (unsigned i = 0; i < 2; i++)
        if (value_floating(a[i]) || value_is(a[i], CLASS_BIG_DECIMAL)) {
            char name[TYPE_NAME_MAX];
            return run_throw(run, CLASS_UNSUPPORTED_OPERATION_EXCEPTION, "Cannot use intdiv() on this number type: %s",
                             type_java_name(value_type(a[i]), name));
        }
    if (!value_is(a[1], CLASS_BIG_INTEGER) && a[1].i == 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "/ by zero");
    return number_binary(run, OP_DIV, a[0], a[1], ret);
}

/* Rounds half up, towards the larger. */
static bool round_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run;
    bool is_float = a[0].kind == VALUE_FLOAT;
    double scale = n == 1 ? real_pow(10, (double)a[1].i) : 1, rounded = floor(a[0].d * scale + 0.5);
    if (n == 1)
        *ret = is_float ? value_float(rounded / scale) : value_double(rounded / scale);
    else
        *ret = is_float ? value_int(double_to_i32(rounded)) : value_long(double_to_i64(rounded));
    return true;
}

static bool trunc_value(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run;
    double scale = n == 1 ? real_pow(10, (double)a[1].i) : 1, cut = trunc(a[0].d * scale) / scale;
    *ret = a[0].kind == VALUE_FLOAT ? value_float(cut) : value_double(cut);
    return true;
}

static bool next(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return range_step(run, a[0], false, ret);
}

static bool previous(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return range_step(run, a[0], true, ret);
}

static bool negative(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return operate_negate(run, a[0], ret);
}

static bool bitwise_negate(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return operate_invert(run, a[0], ret);
}

static bool compare_to(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    int order;
    return operate_order(run, a[0], a[1], &order) && give_int(ret, (order > 0) - (order < 0));
}

/* Loops */

static bool times(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    struct value ignored;
    int64_t count = number_to_i32(a[0]);
    for (int64_t i = 0; i < count; i++) {
        struct value index = value_int(i);
        if (!run_invoke(run, a[1], &index, 1, &ignored))
            return false;
    }
    return give_nothing(ret);
}

static bool count_to(struct run *run, struct value *a, bool down, struct value *ret)
{
    struct value at = a[0], ignored;
    int order;
    if (!operate_order(run, at, a[1], &order))
        return false;
    if (down ? order < 0 : order > 0) {
        struct text *from = value_to_text(run, a[0]), *to = from == NULL ? NULL : value_to_text(run, a[1]);
        return to != NULL && run_throw(run, CLASS_GROOVY_RUNTIME_EXCEPTION,
                                       "The argument (%.*s) to %s() cannot be %s than the value (%.*s) it's called on.",
                                       SLICE_ARG(text_utf8(run, to)), down ? "downto" : "upto",
                                       down ? "greater" : "less", SLICE_ARG(text_utf8(run, from)));
    }
    while (down ? order >= 0 : order <= 0)
        if (!run_invoke(run, a[2], &at, 1, &ignored) || !range_step(run, at, down, &at) ||
            !operate_order(run, at, a[1], &order))
            return false;
    return give_nothing(ret);
}

static bool upto(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return count_to(run, a, false, ret);
}

static bool downto(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return count_to(run, a, true, ret);
}

static bool big_kind(struct value v)
{
    return value_is(v, CLASS_BIG_DECIMAL) || value_is(v, CLASS_BIG_INTEGER);
}

/* From a number by a step up to, but not including, another; all as int unless one is big. */
static bool step(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    bool big = big_kind(a[0]) || big_kind(a[1]) || big_kind(a[2]);
    int order, direction;
    for (unsigned i = 0; i < 3 && !big; i++)
        a[i] = number_cast(run, a[i], VALUE_INT);
    struct value at = a[0], ignored;
    if (!operate_order(run, at, a[1], &order) || !operate_order(run, a[2], value_int(0), &direction))
        return false;
    if (order != 0 && (direction == 0 || (order > 0) == (direction > 0))) {
        struct slice shown[3];
        for (unsigned i = 0; i < 3; i++) {
            struct text *text = value_to_text(run, a[i]);
            if (text == NULL)
                return false;
            shown[i] = text_utf8(run, text);
        }
        return run_throw(run, CLASS_GROOVY_RUNTIME_EXCEPTION, "Infinite loop in %.*s.step(%.*s, %.*s)",
                         SLICE_ARG(shown[0]), SLICE_ARG(shown[1]), SLICE_ARG(shown[2]));
    }
    while (direction > 0 ? order < 0 : order > 0)
        if (!run_invoke(run, a[3], &at, 1, &ignored) || !operate_binary(run, OP_ADD, at, a[2], &at) ||
            !operate_order(run, at, a[1], &order))
            return false;
    return give_nothing(ret);
}

static const struct method number_methods[] = {
    M0("toInteger", G, INT_BOX, to_integer),
    M0("toLong", G, LONG_BOX, to_long),
    M0("toFloat", G, FLOAT_BOX, to_float),
    M0("toDouble", G, DOUBLE_BOX, to_double),
    M0("toBigDecimal", G, BIG_DECIMAL, to_big_decimal),
    M0("toBigInteger", G, BIG_INTEGER, to_big_integer),
    M0("abs", G, NUMBER, abs_value),
    M1("intdiv", G, NUMBER, NUMBER, int_divide),
    M0("next", G, NUMBER, next),
    M0("previous", G, NUMBER, previous),
    M0("unaryMinus", G, NUMBER, negative),
    M0("negative", G, NUMBER, negative),
    M0("bitwiseNegate", G, NUMBER, bitwise_negate),
    M1("compareTo", G, INT, NUMBER, compare_to),
    M1("compareTo", G, INT, CHAR_BOX, compare_to),
    M1("times", G, VOID, CLOSURE, times),
    M2("upto", G, VOID, NUMBER, CLOSURE, upto),
    M2("downto", G, VOID, NUMBER, CLOSURE, downto),
    M3("step", G, VOID, NUMBER, NUMBER, CLOSURE, step),
};

static const struct method floating_methods[] = {
    M0("round", G, LONG, round_value),
    M1("round", G, NUMBER, INT, round_value),
    M0("trunc", G, NUMBER, trunc_value),
    M1("trunc", G, NUMBER, INT, trunc_value),
};

static const struct method char_methods[] = {
    M0("next", G, CHAR_BOX, next),
    M0("previous", G, CHAR_BOX, previous),
    M1("compareTo", G, INT, NUMBER, compare_to),
};

const struct method_table methods_groovy_number[] = {
    METHOD_TABLE(NUMBER, number_methods),
    METHOD_TABLE(DOUBLE_BOX, floating_methods),
    METHOD_TABLE(FLOAT_BOX, floating_methods),
    METHOD_TABLE(CHAR_BOX, char_methods),
    {0, 0, NULL},
};
