/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of BigInteger and BigDecimal. */
#include "script/methods_number.h"

#include "script/moment.h"
#include "script/operate.h"

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
    struct slice text = text_slice(run->arena, text_of(a[1]));
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
    struct slice text = text_slice(run->arena, text_of(a[1]));
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
