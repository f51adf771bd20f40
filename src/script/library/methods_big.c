/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of BigInteger and BigDecimal. */
#include "script/library/methods_number.h"

#include "script/value/temporal.h"
#include "script/run/operate.h"

static struct big *big_of(struct value v)
{
    return (struct big *)v.object;
}

static struct decimal *decimal_of(struct value v)
{
    return (struct decimal *)v.object;
}

/* BigInteger, and BigDecimal methods that differ only in the class of their operands */

static bool big_new(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    struct slice text = text_utf8(run, text_of(call->args[0]));
    struct big *big = big_from_digits(run, text);
    return big == NULL && run->thrown == NULL ? methods_number_parse_failed(run, call->args[0], 10) : give(ret, big);
}

static bool big_value_of(struct call *call, struct value *ret)
{
    return give(ret, big_from_i64(call->run, call->args[0].i));
}

static bool big_do_add(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, big_add(call->run, big_of(call->self), big_of(call->args[0])));
}

static bool big_do_subtract(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, big_subtract(call->run, big_of(call->self), big_of(call->args[0])));
}

static bool big_do_multiply(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, big_multiply(call->run, big_of(call->self), big_of(call->args[0])));
}

static bool big_do_negate(struct call *call, struct value *ret)
{
    return give(ret, big_negate(call->run, big_of(call->self)));
}

static bool big_do_abs(struct call *call, struct value *ret)
{
    return give(ret, big_of(call->self)->negative ? big_negate(call->run, big_of(call->self)) : big_of(call->self));
}

static bool big_do_max(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, big_compare(big_of(call->self), big_of(call->args[0])) >= 0 ? big_of(call->self)
                                                                                 : big_of(call->args[0]));
}

static bool big_do_min(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, big_compare(big_of(call->self), big_of(call->args[0])) <= 0 ? big_of(call->self)
                                                                                 : big_of(call->args[0]));
}

static bool big_do_decimal_add(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, decimal_add(call->run, decimal_of(call->self), decimal_of(call->args[0])));
}

static bool big_do_decimal_subtract(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, decimal_subtract(call->run, decimal_of(call->self), decimal_of(call->args[0])));
}

static bool big_do_decimal_multiply(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, decimal_multiply(call->run, decimal_of(call->self), decimal_of(call->args[0])));
}

static bool big_do_decimal_negate(struct call *call, struct value *ret)
{
    return give(ret, decimal_new(call->run, big_negate(call->run, decimal_of(call->self)->unscaled),
                                 decimal_of(call->self)->scale));
}

static bool big_do_decimal_strip(struct call *call, struct value *ret)
{
    return give(ret, decimal_strip(call->run, decimal_of(call->self)));
}

static bool big_do_decimal_to_big(struct call *call, struct value *ret)
{
    return give(ret, number_to_big(call->run, call->self));
}

static bool big_divide_by(struct call *call, bool rest, struct value *ret)
{
    struct big *quotient, *remainder;
    NOT_NULL(0);
    if (big_of(call->args[0])->count == 0)
        return run_throw(call->run, CLASS_ARITHMETIC_EXCEPTION, "BigInteger divide by zero");
    return big_divide(call->run, big_of(call->self), big_of(call->args[0]), &quotient, &remainder) &&
           give(ret, rest ? remainder : quotient);
}

/* The datum: whether to return the remainder. */
static bool big_divide_or_rest(struct call *call, struct value *ret)
{
    return big_divide_by(call, call->row->datum.number != 0, ret);
}

static bool big_do_mod(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    if (big_of(call->args[0])->count == 0 || big_of(call->args[0])->negative)
        return run_throw(call->run, CLASS_ARITHMETIC_EXCEPTION, "BigInteger: modulus not positive");
    if (!big_divide_by(call, true, ret))
        return false;
    return !big_of(*ret)->negative || give(ret, big_add(call->run, big_of(*ret), big_of(call->args[0])));
}

static bool big_do_pow(struct call *call, struct value *ret)
{
    if (call->args[0].i < 0)
        return run_throw(call->run, CLASS_ARITHMETIC_EXCEPTION, "Negative exponent");
    return give(ret, big_power(call->run, big_of(call->self), (uint64_t)call->args[0].i));
}

static bool big_signum(struct call *call, struct value *ret)
{
    const struct big *big =
        value_is(call->self, CLASS_BIG_INTEGER) ? big_of(call->self) : decimal_of(call->self)->unscaled;
    return give_int(ret, big->negative ? -1 : big->count > 0);
}

/* BigDecimal */

static bool decimal_new_from(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    if (value_number(call->args[0]))
        return give(ret, number_to_decimal(run, call->args[0]));
    struct slice text = text_utf8(run, text_of(call->args[0]));
    struct decimal *decimal = decimal_from_slice(run, text);
    return decimal == NULL && run->thrown == NULL ? decimal_refuse(run, text) : give(ret, decimal);
}

/* divide with one argument: throws unless the quotient has a finite decimal expansion. */
static bool decimal_do_divide(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    struct decimal *quotient = decimal_divide(run, decimal_of(call->self), decimal_of(call->args[0]));
    struct decimal *back = quotient == NULL ? NULL : decimal_multiply(run, quotient, decimal_of(call->args[0]));
    if (back == NULL)
        return false;
    if (decimal_compare(run, back, decimal_of(call->self)) != 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION,
                         "Non-terminating decimal expansion; no exact representable decimal result.");
    return give(ret, quotient);
}

/* divide with a rounding mode and perhaps a scale. The quotient is computed with two more digits
   than the scale; the last one is a sticky digit, set if a remainder is left. So it rounds as
   the exact quotient does. */
static bool decimal_do_divide_to(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    const struct decimal *one = decimal_of(call->self), *two = decimal_of(call->args[0]);
    int64_t scale = call->count == 3 ? call->args[1].i : one->scale, more = scale + 1 + two->scale - one->scale;
    int rounding = value_is_enumerator(call_last(call)) ? ((struct enumerator *)call_last(call).object)->ordinal
                                                        : (int)call_last(call).i;
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

static bool decimal_do_remainder(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    const struct decimal *one = decimal_of(call->self), *two = decimal_of(call->args[0]);
    int64_t scale = one->scale > two->scale ? one->scale : two->scale;
    if (two->unscaled->count == 0)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "Division by zero");
    const struct decimal *top = decimal_set_scale(run, one, scale, ROUND_UNNECESSARY);
    const struct decimal *bottom = top == NULL ? NULL : decimal_set_scale(run, two, scale, ROUND_UNNECESSARY);
    struct big *quotient, *rest;
    return bottom != NULL && big_divide(run, top->unscaled, bottom->unscaled, &quotient, &rest) &&
           give(ret, decimal_new(run, rest, scale));
}

static bool decimal_do_pow(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    if (call->args[0].i < 0 || call->args[0].i > 999999999)
        return run_throw(run, CLASS_ARITHMETIC_EXCEPTION, "Invalid operation");
    struct big *power = big_power(run, decimal_of(call->self)->unscaled, (uint64_t)call->args[0].i);
    return power != NULL &&
           give(ret, decimal_new(run, power, (int64_t)decimal_of(call->self)->scale * call->args[0].i));
}

/* Moves the decimal point to the right by `right` digits; a negative resulting scale becomes 0. */
static bool decimal_moved(struct run *run, const struct decimal *decimal, int64_t right, struct value *ret)
{
    struct decimal *moved = decimal_new(run, decimal->unscaled, decimal->scale - right);
    if (moved != NULL && moved->scale < 0)
        moved = decimal_set_scale(run, moved, 0, ROUND_UNNECESSARY);
    return give(ret, moved);
}

static bool decimal_do_move_left(struct call *call, struct value *ret)
{
    return decimal_moved(call->run, decimal_of(call->self), -call->args[0].i, ret);
}

static bool decimal_do_move_right(struct call *call, struct value *ret)
{
    return decimal_moved(call->run, decimal_of(call->self), call->args[0].i, ret);
}

static bool decimal_do_max(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, decimal_compare(call->run, decimal_of(call->self), decimal_of(call->args[0])) >= 0
                         ? call->self.object
                         : call->args[0].object);
}

static bool decimal_do_min(struct call *call, struct value *ret)
{
    NOT_NULL(0);
    return give(ret, decimal_compare(call->run, decimal_of(call->self), decimal_of(call->args[0])) <= 0
                         ? call->self.object
                         : call->args[0].object);
}

/* intValueExact and longValueExact of both classes; `refusal` is the message for a BigInteger. */
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

static bool exact_int(struct call *call, struct value *ret)
{
    return exact_integer(call->run, call->self, INT32_MAX, "BigInteger out of int range", ret) && give_int(ret, ret->i);
}

static bool exact_long(struct call *call, struct value *ret)
{
    return exact_integer(call->run, call->self, INT64_MAX, "BigInteger out of long range", ret);
}

static bool big_do_gcd(struct call *call, struct value *ret)
{
    struct run *run = call->run;
    NOT_NULL(0);
    struct big *one = big_of(call->self), *two = big_of(call->args[0]), *quotient, *rest;
    while (two->count > 0) {
        if (!run_step(run, 1) || !big_divide(run, one, two, &quotient, &rest))
            return false;
        one = two;
        two = rest;
    }
    return give(ret, one->negative ? big_negate(run, one) : one);
}

static bool decimal_do_set_scale(struct call *call, struct value *ret)
{
    int rounding = call->count < 2                      ? ROUND_UNNECESSARY
                   : value_is_enumerator(call->args[1]) ? ((struct enumerator *)call->args[1].object)->ordinal
                                                        : (int)call->args[1].i;
    return give(ret, decimal_set_scale(call->run, decimal_of(call->self), call->args[0].i, rounding));
}

static bool decimal_do_scale(struct call *call, struct value *ret)
{
    return give_int(ret, decimal_of(call->self)->scale);
}

static bool decimal_do_precision(struct call *call, struct value *ret)
{
    return give_int(ret, (int64_t)big_digits(decimal_of(call->self)->unscaled));
}

static bool decimal_do_plain(struct call *call, struct value *ret)
{
    return give_slice(call->run, ret, decimal_plain(call->run, decimal_of(call->self)));
}

static bool decimal_do_abs(struct call *call, struct value *ret)
{
    return decimal_of(call->self)->unscaled->negative ? big_do_decimal_negate(call, ret) : give(ret, call->self.object);
}

static bool big_constant(struct call *call, struct value *ret)
{
    return give(ret, big_from_i64(call->run, call->row->datum.number));
}

static bool decimal_constant(struct call *call, struct value *ret)
{
    return give(ret, decimal_new(call->run, big_from_i64(call->run, call->row->datum.number), 0));
}

static const struct method_row big_methods[] = {
    {"static BigInteger ZERO", BOTH, big_constant, {0}},
    {"static BigInteger ONE", BOTH, big_constant, {1}},
    {"static BigInteger TEN", BOTH, big_constant, {10}},
    {"new BigInteger(String)", BOTH, big_new},
    {"static BigInteger valueOf(long)", BOTH, big_value_of},
    {"BigInteger add(BigInteger)", BOTH, big_do_add},
    {"BigInteger subtract(BigInteger)", BOTH, big_do_subtract},
    {"BigInteger multiply(BigInteger)", BOTH, big_do_multiply},
    {"BigInteger divide(BigInteger)", BOTH, big_divide_or_rest, {false}},
    {"BigInteger remainder(BigInteger)", BOTH, big_divide_or_rest, {true}},
    {"BigInteger mod(BigInteger)", BOTH, big_do_mod},
    {"BigInteger gcd(BigInteger)", BOTH, big_do_gcd},
    {"int intValueExact()", BOTH, exact_int},
    {"long longValueExact()", BOTH, exact_long},
    {"BigInteger max(BigInteger)", BOTH, big_do_max},
    {"BigInteger min(BigInteger)", BOTH, big_do_min},
    {"BigInteger pow(int)", BOTH, big_do_pow},
    {"BigInteger negate()", BOTH, big_do_negate},
    {"BigInteger abs()", BOTH, big_do_abs},
    {"int signum()", BOTH, big_signum},
    {"int compareTo(BigInteger)", BOTH, methods_number_compare_to},
};

static const struct method_row decimal_methods[] = {
    {"static BigDecimal ZERO", BOTH, decimal_constant, {0}},
    {"static BigDecimal ONE", BOTH, decimal_constant, {1}},
    {"static BigDecimal TEN", BOTH, decimal_constant, {10}},
    {"new BigDecimal(String)", BOTH, decimal_new_from},
    {"new BigDecimal(Number)", GROOVY, decimal_new_from},
    {"static BigDecimal valueOf(double)", BOTH, decimal_new_from},
    {"BigDecimal add(BigDecimal)", BOTH, big_do_decimal_add},
    {"BigDecimal subtract(BigDecimal)", BOTH, big_do_decimal_subtract},
    {"BigDecimal multiply(BigDecimal)", BOTH, big_do_decimal_multiply},
    {"BigDecimal divide(BigDecimal)", BOTH, decimal_do_divide},
    {"BigDecimal divide(BigDecimal, RoundingMode)", GROOVY, decimal_do_divide_to},
    {"BigDecimal divide(BigDecimal, int)", GROOVY, decimal_do_divide_to},
    {"BigDecimal divide(BigDecimal, int, RoundingMode)", GROOVY, decimal_do_divide_to},
    {"BigDecimal divide(BigDecimal, int, int)", GROOVY, decimal_do_divide_to},
    {"BigDecimal remainder(BigDecimal)", BOTH, decimal_do_remainder},
    {"BigDecimal pow(int)", BOTH, decimal_do_pow},
    {"BigDecimal movePointLeft(int)", BOTH, decimal_do_move_left},
    {"BigDecimal movePointRight(int)", BOTH, decimal_do_move_right},
    {"BigDecimal max(BigDecimal)", BOTH, decimal_do_max},
    {"BigDecimal min(BigDecimal)", BOTH, decimal_do_min},
    {"int intValueExact()", BOTH, exact_int},
    {"long longValueExact()", BOTH, exact_long},
    {"BigDecimal setScale(int)", BOTH, decimal_do_set_scale},
    {"BigDecimal setScale(int, RoundingMode)", BOTH, decimal_do_set_scale},
    {"BigDecimal setScale(int, int)", GROOVY, decimal_do_set_scale},
    {"int scale()", BOTH, decimal_do_scale},
    {"int precision()", BOTH, decimal_do_precision},
    {"BigDecimal negate()", BOTH, big_do_decimal_negate},
    {"BigDecimal abs()", BOTH, decimal_do_abs},
    {"int signum()", BOTH, big_signum},
    {"BigDecimal stripTrailingZeros()", BOTH, big_do_decimal_strip},
    {"BigInteger toBigInteger()", BOTH, big_do_decimal_to_big},
    {"String toPlainString()", BOTH, decimal_do_plain},
    {"int compareTo(BigDecimal)", BOTH, methods_number_compare_to},
};

static const struct method_row rounding_methods[] = {
    {"static int ROUND_UP", GROOVY, method_constant, {ROUND_UP}},
    {"static int ROUND_DOWN", GROOVY, method_constant, {ROUND_DOWN}},
    {"static int ROUND_CEILING", GROOVY, method_constant, {ROUND_CEILING}},
    {"static int ROUND_FLOOR", GROOVY, method_constant, {ROUND_FLOOR}},
    {"static int ROUND_HALF_UP", GROOVY, method_constant, {ROUND_HALF_UP}},
    {"static int ROUND_HALF_DOWN", GROOVY, method_constant, {ROUND_HALF_DOWN}},
    {"static int ROUND_HALF_EVEN", GROOVY, method_constant, {ROUND_HALF_EVEN}},
};

const struct method_table methods_big[] = {
    METHOD_ROWS(BIG_INTEGER, big_methods),
    METHOD_ROWS(BIG_DECIMAL, decimal_methods),
    METHOD_ROWS(BIG_DECIMAL, rounding_methods),
    {0},
};
