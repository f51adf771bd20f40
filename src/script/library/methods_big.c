/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of BigInteger and BigDecimal. */
#include "script/library/methods_number.h"

#include "script/value/moment.h"
#include "script/run/operate.h"

static struct big *big_of(struct value v)
{
    return (struct big *)v.object;
}

static struct decimal *decimal_of(struct value v)
{
    return (struct decimal *)v.object;
}

/* BigInteger, and what only the class of numbers tells apart in BigDecimal */

static bool big_new(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct slice text = text_utf8(run, text_of(a[1]));
    struct big *big = big_from_digits(run, text);
    return big == NULL && run->thrown == NULL ? methods_number_parse_failed(run, a[1], 10) : give(ret, big);
}

static bool big_value_of(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give(ret, big_from_i64(run, a[1].i));
}

#define BIG_OPERATION(name, made)                                                              \
    static bool big_do_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                          \
        (void)n;                                                                               \
        if (n == 1)                                                                            \
            NEED(1);                                                                           \
        return give(ret, made);                                                                \
    }

BIG_OPERATION(add, big_add(run, big_of(a[0]), big_of(a[1])))
BIG_OPERATION(subtract, big_subtract(run, big_of(a[0]), big_of(a[1])))
BIG_OPERATION(multiply, big_multiply(run, big_of(a[0]), big_of(a[1])))
BIG_OPERATION(negate, big_negate(run, big_of(a[0])))
BIG_OPERATION(abs, big_of(a[0])->negative ? big_negate(run, big_of(a[0])) : big_of(a[0]))
BIG_OPERATION(max, big_compare(big_of(a[0]), big_of(a[1])) >= 0 ? big_of(a[0]) : big_of(a[1]))
BIG_OPERATION(min, big_compare(big_of(a[0]), big_of(a[1])) <= 0 ? big_of(a[0]) : big_of(a[1]))
BIG_OPERATION(decimal_add, decimal_add(run, decimal_of(a[0]), decimal_of(a[1])))
BIG_OPERATION(decimal_subtract, decimal_subtract(run, decimal_of(a[0]), decimal_of(a[1])))
BIG_OPERATION(decimal_multiply, decimal_multiply(run, decimal_of(a[0]), decimal_of(a[1])))
BIG_OPERATION(decimal_negate, decimal_new(run, big_negate(run, decimal_of(a[0])->unscaled), decimal_of(a[0])->scale))
BIG_OPERATION(decimal_strip, decimal_strip(run, decimal_of(a[0])))
BIG_OPERATION(decimal_to_big, number_to_big(run, a[0]))

static bool big_divide_by(struct run *run, struct value *a, bool rest, struct value *ret)
{
    struct big *quotient, *remainder;
    NEED(1);
    if (big_of(a[1])->count == 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "BigInteger divide by zero");
    return big_divide(run, big_of(a[0]), big_of(a[1]), &quotient, &remainder) && give(ret, rest ? remainder : quotient);
}

static bool big_do_divide(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return big_divide_by(run, a, false, ret);
}

static bool big_do_remainder(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return big_divide_by(run, a, true, ret);
}

static bool big_do_mod(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    if (big_of(a[1])->count == 0 || big_of(a[1])->negative)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "BigInteger: modulus not positive");
    if (!big_divide_by(run, a, true, ret))
        return false;
    return !big_of(*ret)->negative || give(ret, big_add(run, big_of(*ret), big_of(a[1])));
}

static bool big_do_pow(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (a[1].i < 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "Negative exponent");
    return give(ret, big_power(run, big_of(a[0]), (uint64_t)a[1].i));
}

static bool big_signum(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    const struct big *big = value_is(a[0], CLASS_BIG_INTEGER) ? big_of(a[0]) : decimal_of(a[0])->unscaled;
    return give_int(ret, big->negative ? -1 : big->count > 0);
}

/* BigDecimal */

static bool decimal_new_from(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    if (value_number(a[1]))
        return give(ret, number_to_decimal(run, a[1]));
    struct slice text = text_utf8(run, text_of(a[1]));
    struct decimal *decimal = decimal_from_slice(run, text);
    return decimal == NULL && run->thrown == NULL ? decimal_refuse(run, text) : give(ret, decimal);
}

/* Exact, as Java's divide with one argument; else with a scale and a rounding. */
static bool decimal_do_divide(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct decimal *quotient = decimal_divide(run, decimal_of(a[0]), decimal_of(a[1]));
    struct decimal *back = quotient == NULL ? NULL : decimal_multiply(run, quotient, decimal_of(a[1]));
    if (back == NULL)
        return false;
    if (decimal_compare(run, back, decimal_of(a[0])) != 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION,
                         "Non-terminating decimal expansion; no exact representable decimal result.");
    return give(ret, quotient);
}

/*
 * With a scale and a rounding of its own. A digit more than asked for, and one that says whether anything is left behind
 * it, round as the exact quotient would.
 */
static bool decimal_do_divide_to(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    NEED(1);
    const struct decimal *one = decimal_of(a[0]), *two = decimal_of(a[1]);
    int64_t scale = n == 3 ? a[2].i : one->scale, more = scale + 1 + two->scale - one->scale;
    int rounding = value_is_enumerator(a[n]) ? ((struct enumerator *)a[n].object)->ordinal : (int)a[n].i;
    if (two->unscaled->count == 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "Division by zero");
    struct big *ten = big_from_i64(run, 10), *top = one->unscaled, *bottom = two->unscaled, *quotient, *rest;
    struct big *shift = big_power(run, ten, (uint64_t)(more < 0 ? -more : more));
    if (shift == NULL)
        return false;
    *(more < 0 ? &bottom : &top) = big_multiply(run, more < 0 ? bottom : top, shift);
    if (top == NULL || bottom == NULL || !big_divide(run, top, bottom, &quotient, &rest))
        return false;
    bool negative = top->negative != bottom->negative;
    quotient = big_multiply(run, quotient, ten);
    if (quotient != NULL && rest->count > 0)
        quotient = big_add(run, quotient, big_from_i64(run, negative ? -1 : 1));
    struct decimal *longer = quotient == NULL ? NULL : decimal_new(run, quotient, scale + 2);
    return longer != NULL && give(ret, decimal_set_scale(run, longer, scale, rounding));
}

static bool decimal_do_remainder(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    const struct decimal *one = decimal_of(a[0]), *two = decimal_of(a[1]);
    int64_t scale = one->scale > two->scale ? one->scale : two->scale;
    if (two->unscaled->count == 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "Division by zero");
    const struct decimal *top = decimal_set_scale(run, one, scale, ROUND_UNNECESSARY);
    const struct decimal *bottom = top == NULL ? NULL : decimal_set_scale(run, two, scale, ROUND_UNNECESSARY);
    struct big *quotient, *rest;
    return bottom != NULL && big_divide(run, top->unscaled, bottom->unscaled, &quotient, &rest) &&
           give(ret, decimal_new(run, rest, scale));
}

static bool decimal_do_pow(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    if (a[1].i < 0 || a[1].i > 999999999)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "Invalid operation");
    struct big *power = big_power(run, decimal_of(a[0])->unscaled, (uint64_t)a[1].i);
    return power != NULL && give(ret, decimal_new(run, power, (int64_t)decimal_of(a[0])->scale * a[1].i));
}

/* The point moved; a scale below zero becomes digits. */
static bool decimal_moved(struct run *run, const struct decimal *decimal, int64_t right, struct value *ret)
{
    struct decimal *moved = decimal_new(run, decimal->unscaled, decimal->scale - right);
    if (moved != NULL && moved->scale < 0)
        moved = decimal_set_scale(run, moved, 0, ROUND_UNNECESSARY);
    return give(ret, moved);
}

static bool decimal_do_move_left(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return decimal_moved(run, decimal_of(a[0]), -a[1].i, ret);
}

static bool decimal_do_move_right(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return decimal_moved(run, decimal_of(a[0]), a[1].i, ret);
}

static bool decimal_do_max(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, decimal_compare(run, decimal_of(a[0]), decimal_of(a[1])) >= 0 ? a[0].object : a[1].object);
}

static bool decimal_do_min(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    return give(ret, decimal_compare(run, decimal_of(a[0]), decimal_of(a[1])) <= 0 ? a[0].object : a[1].object);
}

/* intValueExact and longValueExact of either class. */
static bool exact_integer(struct run *run, struct value number, int64_t limit, const char *refusal, struct value *ret)
{
    const struct decimal *whole = NULL;
    int64_t value;
    bool big = value_is(number, CLASS_BIG_INTEGER);
    if (!big && (whole = decimal_set_scale(run, decimal_of(number), 0, ROUND_UNNECESSARY)) == NULL)
        return false;
    if (!big_to_i64(big ? big_of(number) : whole->unscaled, &value) || value > limit || value < -limit - 1)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "%s", big ? refusal : "Overflow");
    return give_long(ret, value);
}

static bool exact_int(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return exact_integer(run, a[0], INT32_MAX, "BigInteger out of int range", ret) && give_int(ret, ret->i);
}

static bool exact_long(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return exact_integer(run, a[0], INT64_MAX, "BigInteger out of long range", ret);
}

static bool big_do_gcd(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    NEED(1);
    struct big *one = big_of(a[0]), *two = big_of(a[1]), *quotient, *rest;
    while (two->count > 0) {
        if (!run_step(run, 1) || !big_divide(run, one, two, &quotient, &rest))
            return false;
        one = two;
        two = rest;
    }
    return give(ret, one->negative ? big_negate(run, one) : one);
}

static bool decimal_do_set_scale(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    int rounding = n < 2                       ? ROUND_UNNECESSARY
                   : value_is_enumerator(a[2]) ? ((struct enumerator *)a[2].object)->ordinal
                                               : (int)a[2].i;
    return give(ret, decimal_set_scale(run, decimal_of(a[0]), a[1].i, rounding));
}

static bool decimal_do_scale(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, decimal_of(a[0])->scale);
}

static bool decimal_do_precision(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)run, (void)n;
    return give_int(ret, (int64_t)big_digits(decimal_of(a[0])->unscaled));
}

static bool decimal_do_plain(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    (void)n;
    return give_slice(run, ret, decimal_plain(run, decimal_of(a[0])));
}

static bool decimal_do_abs(struct run *run, struct value *a, unsigned n, struct value *ret)
{
    return decimal_of(a[0])->unscaled->negative ? big_do_decimal_negate(run, a, n, ret) : give(ret, a[0].object);
}

#define BIG_CONSTANT(name, digits)                                                                       \
    static bool big_constant_##name(struct run *run, struct value *a, unsigned n, struct value *ret)     \
    {                                                                                                    \
        (void)a, (void)n;                                                                                \
        return give(ret, big_from_i64(run, digits));                                                     \
    }                                                                                                    \
    static bool decimal_constant_##name(struct run *run, struct value *a, unsigned n, struct value *ret) \
    {                                                                                                    \
        (void)a, (void)n;                                                                                \
        return give(ret, decimal_new(run, big_from_i64(run, digits), 0));                                \
    }

BIG_CONSTANT(zero, 0)
BIG_CONSTANT(one, 1)
BIG_CONSTANT(ten, 10)

/* BigDecimal's older names of its roundings. */
#define ROUNDINGS(X) X(UP) X(DOWN) X(CEILING) X(FLOOR) X(HALF_UP) X(HALF_DOWN) X(HALF_EVEN)
#define ROUNDING_CONSTANT(name) METHOD_CONSTANT(name, value_int(ROUND_##name))
#define ROUNDING_ROW(name) M0("ROUND_" #name, METHOD_GROOVY | METHOD_STATIC | METHOD_FIELD, INT, constant_##name),

ROUNDINGS(ROUNDING_CONSTANT)

static const struct method big_methods[] = {
    M0("ZERO", FIELD, BIG_INTEGER, big_constant_zero),
    M0("ONE", FIELD, BIG_INTEGER, big_constant_one),
    M0("TEN", FIELD, BIG_INTEGER, big_constant_ten),
    M1("new", METHOD_BOTH | METHOD_NEW, BIG_INTEGER, STRING, big_new),
    M1("valueOf", STATIC, BIG_INTEGER, LONG, big_value_of),
    M1("add", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_add),
    M1("subtract", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_subtract),
    M1("multiply", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_multiply),
    M1("divide", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_divide),
    M1("remainder", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_remainder),
    M1("mod", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_mod),
    M1("gcd", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_gcd),
    M0("intValueExact", METHOD_BOTH, INT, exact_int),
    M0("longValueExact", METHOD_BOTH, LONG, exact_long),
    M1("max", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_max),
    M1("min", METHOD_BOTH, BIG_INTEGER, BIG_INTEGER, big_do_min),
    M1("pow", METHOD_BOTH, BIG_INTEGER, INT, big_do_pow),
    M0("negate", METHOD_BOTH, BIG_INTEGER, big_do_negate),
    M0("abs", METHOD_BOTH, BIG_INTEGER, big_do_abs),
    M0("signum", METHOD_BOTH, INT, big_signum),
    M1("compareTo", METHOD_BOTH, INT, BIG_INTEGER, methods_number_compare_to),
};

static const struct method decimal_methods[] = {
    M0("ZERO", FIELD, BIG_DECIMAL, decimal_constant_zero),
    M0("ONE", FIELD, BIG_DECIMAL, decimal_constant_one),
    M0("TEN", FIELD, BIG_DECIMAL, decimal_constant_ten),
    M1("new", METHOD_BOTH | METHOD_NEW, BIG_DECIMAL, STRING, decimal_new_from),
    M1("new", METHOD_GROOVY | METHOD_NEW, BIG_DECIMAL, NUMBER, decimal_new_from),
    M1("valueOf", STATIC, BIG_DECIMAL, DOUBLE, decimal_new_from),
    M1("add", METHOD_BOTH, BIG_DECIMAL, BIG_DECIMAL, big_do_decimal_add),
    M1("subtract", METHOD_BOTH, BIG_DECIMAL, BIG_DECIMAL, big_do_decimal_subtract),
    M1("multiply", METHOD_BOTH, BIG_DECIMAL, BIG_DECIMAL, big_do_decimal_multiply),
    M1("divide", METHOD_BOTH, BIG_DECIMAL, BIG_DECIMAL, decimal_do_divide),
    M2("divide", METHOD_GROOVY, BIG_DECIMAL, BIG_DECIMAL, ROUNDING_MODE, decimal_do_divide_to),
    M2("divide", METHOD_GROOVY, BIG_DECIMAL, BIG_DECIMAL, INT, decimal_do_divide_to),
    M3("divide", METHOD_GROOVY, BIG_DECIMAL, BIG_DECIMAL, INT, ROUNDING_MODE, decimal_do_divide_to),
    M3("divide", METHOD_GROOVY, BIG_DECIMAL, BIG_DECIMAL, INT, INT, decimal_do_divide_to),
    M1("remainder", METHOD_BOTH, BIG_DECIMAL, BIG_DECIMAL, decimal_do_remainder),
    M1("pow", METHOD_BOTH, BIG_DECIMAL, INT, decimal_do_pow),
    M1("movePointLeft", METHOD_BOTH, BIG_DECIMAL, INT, decimal_do_move_left),
    M1("movePointRight", METHOD_BOTH, BIG_DECIMAL, INT, decimal_do_move_right),
    M1("max", METHOD_BOTH, BIG_DECIMAL, BIG_DECIMAL, decimal_do_max),
    M1("min", METHOD_BOTH, BIG_DECIMAL, BIG_DECIMAL, decimal_do_min),
    M0("intValueExact", METHOD_BOTH, INT, exact_int),
    M0("longValueExact", METHOD_BOTH, LONG, exact_long),
    M1("setScale", METHOD_BOTH, BIG_DECIMAL, INT, decimal_do_set_scale),
    M2("setScale", METHOD_BOTH, BIG_DECIMAL, INT, ROUNDING_MODE, decimal_do_set_scale),
    M2("setScale", METHOD_GROOVY, BIG_DECIMAL, INT, INT, decimal_do_set_scale),
    M0("scale", METHOD_BOTH, INT, decimal_do_scale),
    M0("precision", METHOD_BOTH, INT, decimal_do_precision),
    M0("negate", METHOD_BOTH, BIG_DECIMAL, big_do_decimal_negate),
    M0("abs", METHOD_BOTH, BIG_DECIMAL, decimal_do_abs),
    M0("signum", METHOD_BOTH, INT, big_signum),
    M0("stripTrailingZeros", METHOD_BOTH, BIG_DECIMAL, big_do_decimal_strip),
    M0("toBigInteger", METHOD_BOTH, BIG_INTEGER, big_do_decimal_to_big),
    M0("toPlainString", METHOD_BOTH, STRING, decimal_do_plain),
    M1("compareTo", METHOD_BOTH, INT, BIG_DECIMAL, methods_number_compare_to),
};

static const struct method rounding_methods[] = {ROUNDINGS(ROUNDING_ROW)};

const struct method_table methods_big[] = {
    METHOD_TABLE(BIG_INTEGER, big_methods),
    METHOD_TABLE(BIG_DECIMAL, decimal_methods),
    METHOD_TABLE(BIG_DECIMAL, rounding_methods),
    {0, 0, NULL},
};
