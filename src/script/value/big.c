/* SPDX-License-Identifier: Apache-2.0 */
/* Integers and decimals of any size; see big.h. */
#include "script/value/big.h"

#include "base/check.h"

#include <stdlib.h>

#define BIG_BASE 1000000000u
#define BIG_DIGITS 9u

static struct big *big_alloc(struct run *run, size_t count)
{
    if (count > BIG_LIMBS_MAX) {
        run->exhausted = RUN_EXHAUSTED_MEMORY;
        run_fail_exhausted(run);
        return NULL;
    }
    struct big *big = run_alloc_large(run, sizeof *big + count * sizeof *big->limbs);
    if (big != NULL)
        *big = (struct big){.object = {.class = CLASS_BIG_INTEGER}, .count = (uint32_t)count};
    return big;
}

static struct big *big_trim(struct big *big)
{
    while (big->count > 0 && big->limbs[big->count - 1] == 0)
        big->count--;
    if (big->count == 0)
        big->negative = false;
    return big;
}

struct big *big_from_i64(struct run *run, int64_t value)
{
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    struct big *big = big_alloc(run, 3);
    if (big == NULL)
        return NULL;
    for (unsigned i = 0; i < 3; i++, magnitude /= BIG_BASE)
        big->limbs[i] = (uint32_t)(magnitude % BIG_BASE);
    big->negative = value < 0;
    return big_trim(big);
}

struct big *big_from_digits(struct run *run, struct slice digits)
{
    bool negative = digits.len > 0 && digits.data[0] == '-';
    if (digits.len > 0 && (negative || digits.data[0] == '+'))
        digits = slice_from_offset(digits, 1);
    if (digits.len == 0)
        return NULL;
    for (size_t i = 0; i < digits.len; i++)
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return NULL;
    size_t count = (digits.len + BIG_DIGITS - 1) / BIG_DIGITS;
    struct big *big = run_step(run, count) ? big_alloc(run, count) : NULL;
    if (big == NULL)
        return NULL;
    for (size_t i = 0, end = digits.len; i < count; i++) {
        size_t begin = end > BIG_DIGITS ? end - BIG_DIGITS : 0;
        uint32_t limb = 0;
        for (size_t k = begin; k < end; k++)
            limb = limb * 10 + (uint32_t)(digits.data[k] - '0');
        big->limbs[i] = limb;
        end = begin;
    }
    big->negative = negative;
    return big_trim(big);
}

static int compare_magnitude(const struct big *a, const struct big *b)
{
    if (a->count != b->count)
        return a->count < b->count ? -1 : 1;
    for (size_t i = a->count; i-- > 0;)
        if (a->limbs[i] != b->limbs[i])
            return a->limbs[i] < b->limbs[i] ? -1 : 1;
    return 0;
}

int big_compare(const struct big *a, const struct big *b)
{
    if (a->negative != b->negative)
        return a->negative ? -1 : 1;
    return a->negative ? -compare_magnitude(a, b) : compare_magnitude(a, b);
}

struct big *big_negate(struct run *run, const struct big *a)
{
    struct big *big = big_alloc(run, a->count);
    if (big == NULL)
        return NULL;
    memcpy(big->limbs, a->limbs, a->count * sizeof *a->limbs);
    big->negative = !a->negative;
    return big_trim(big);
}

static struct big *add_magnitude(struct run *run, const struct big *a, const struct big *b, bool negative)
{
    size_t count = (a->count > b->count ? a->count : b->count) + 1u;
    struct big *sum = run_step(run, count) ? big_alloc(run, count) : NULL;
    if (sum == NULL)
        return NULL;
    uint32_t carry = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t limb = carry + (i < a->count ? a->limbs[i] : 0) + (i < b->count ? b->limbs[i] : 0);
        carry = limb >= BIG_BASE;
        sum->limbs[i] = carry ? limb - BIG_BASE : limb;
    }
    sum->negative = negative;
    return big_trim(sum);
}

/* Requires: the magnitude of `a` is not below that of `b`. */
static struct big *subtract_magnitude(struct run *run, const struct big *a, const struct big *b, bool negative)
{
    struct big *rest = run_step(run, a->count) ? big_alloc(run, a->count) : NULL;
    if (rest == NULL)
        return NULL;
    int64_t borrow = 0;
    for (size_t i = 0; i < a->count; i++) {
        int64_t limb = (int64_t)a->limbs[i] - borrow - (i < b->count ? b->limbs[i] : 0);
        borrow = limb < 0;
        rest->limbs[i] = (uint32_t)(borrow ? limb + BIG_BASE : limb);
    }
    rest->negative = negative;
    return big_trim(rest);
}

static struct big *add_signed(struct run *run, const struct big *a, const struct big *b, bool b_negative)
{
    if (a->negative == b_negative)
        return add_magnitude(run, a, b, a->negative);
    if (compare_magnitude(a, b) >= 0)
        return subtract_magnitude(run, a, b, a->negative);
    return subtract_magnitude(run, b, a, b_negative);
}

struct big *big_add(struct run *run, const struct big *a, const struct big *b)
{
    return add_signed(run, a, b, b->negative);
}

struct big *big_subtract(struct run *run, const struct big *a, const struct big *b)
{
    return add_signed(run, a, b, b->count > 0 && !b->negative);
}

struct big *big_multiply(struct run *run, const struct big *a, const struct big *b)
{
    size_t count = (size_t)a->count + b->count;
    if (!run_step(run, (uint64_t)a->count * b->count / 8 + 1))
        return NULL;
    struct big *product = big_alloc(run, count);
    if (product == NULL)
        return NULL;
    memset(product->limbs, 0, count * sizeof *product->limbs);
    for (size_t i = 0; i < a->count; i++) {
        uint64_t carry = 0;
        for (size_t k = 0; k < b->count || carry > 0; k++) {
            uint64_t limb = product->limbs[i + k] + carry + (k < b->count ? (uint64_t)a->limbs[i] * b->limbs[k] : 0);
            product->limbs[i + k] = (uint32_t)(limb % BIG_BASE);
            carry = limb / BIG_BASE;
        }
    }
    product->negative = a->negative != b->negative;
    return big_trim(product);
}

struct big *big_power(struct run *run, const struct big *base, uint64_t exponent)
{
    struct big *result = big_from_i64(run, 1);
    const struct big *square = base;
    for (; result != NULL && exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result = big_multiply(run, result, square);
        if (exponent > 1 && (square = big_multiply(run, square, square)) == NULL)
            return NULL;
    }
    return result;
}

/* Divides by one limb. Returns: the remainder. */
static uint32_t divide_limb(const struct big *a, uint32_t divisor, struct big *quotient)
{
    uint64_t rest = 0;
    for (size_t i = a->count; i-- > 0;) {
        rest = rest * BIG_BASE + a->limbs[i];
        quotient->limbs[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    return (uint32_t)rest;
}

/* Knuth's algorithm D in base 10^9: `u` has a->count + 1 limbs and ends as the remainder. */
static void divide_long(uint32_t *u, size_t u_count, const uint32_t *v, size_t v_count, uint32_t *quotient)
{
    for (size_t j = u_count - v_count; j-- > 0;) {
        uint64_t top = (uint64_t)u[j + v_count] * BIG_BASE + u[j + v_count - 1];
        uint64_t guess = top / v[v_count - 1], rest = top % v[v_count - 1];
        while (guess >= BIG_BASE || guess * v[v_count - 2] > rest * BIG_BASE + u[j + v_count - 2]) {
            guess--;
            rest += v[v_count - 1];
            if (rest >= BIG_BASE)
                break;
        }
        int64_t borrow = 0;
        for (size_t i = 0; i <= v_count; i++) {
            uint64_t part = i < v_count ? guess * v[i] : 0;
            int64_t limb = (int64_t)u[i + j] - borrow - (int64_t)(part % BIG_BASE);
            borrow = (int64_t)(part / BIG_BASE) + (limb < 0);
            u[i + j] = (uint32_t)(limb < 0 ? limb + BIG_BASE : limb);
        }
        if (borrow > 0) {
            guess--;
            uint32_t carry = 0;
            for (size_t i = 0; i <= v_count; i++) {
                uint32_t limb = u[i + j] + carry + (i < v_count ? v[i] : 0);
                carry = limb >= BIG_BASE;
                u[i + j] = carry ? limb - BIG_BASE : limb;
            }
        }
        quotient[j] = (uint32_t)guess;
    }
}

static struct big *scaled_copy(struct run *run, const struct big *a, uint32_t factor)
{
    struct big *copy = big_alloc(run, a->count + 1u);
    if (copy == NULL)
        return NULL;
    uint64_t carry = 0;
    for (size_t i = 0; i <= a->count; i++) {
        uint64_t limb = (i < a->count ? (uint64_t)a->limbs[i] * factor : 0) + carry;
        copy->limbs[i] = (uint32_t)(limb % BIG_BASE);
        carry = limb / BIG_BASE;
    }
    return copy;
}

bool big_divide(struct run *run, const struct big *a, const struct big *b, struct big **ret_quotient,
                struct big **ret_remainder)
{
    REQUIRE(b->count > 0);
    if (!run_step(run, (uint64_t)a->count * b->count / 8 + 1))
        return false;
    struct big *quotient = big_alloc(run, a->count + 1u), *remainder;
    if (quotient == NULL)
        return false;
    memset(quotient->limbs, 0, quotient->count * sizeof *quotient->limbs);
    if (b->count == 1) {
        remainder = big_alloc(run, 1);
        if (remainder == NULL)
            return false;
        remainder->limbs[0] = divide_limb(a, b->limbs[0], quotient);
    } else if (compare_magnitude(a, b) < 0) {
        remainder = scaled_copy(run, a, 1);
    } else {
        uint32_t factor = BIG_BASE / (b->limbs[b->count - 1] + 1);
        remainder = scaled_copy(run, a, factor);
        struct big *divisor = remainder == NULL ? NULL : scaled_copy(run, b, factor);
        if (divisor == NULL)
            return false;
        divide_long(remainder->limbs, remainder->count, divisor->limbs, b->count, quotient->limbs);
        divide_limb(remainder, factor, remainder);
    }
    if (remainder == NULL)
        return false;
    quotient->negative = a->negative != b->negative;
    remainder->negative = a->negative;
    big_trim(quotient);
    big_trim(remainder);
    if (ret_quotient != NULL)
        *ret_quotient = quotient;
    if (ret_remainder != NULL)
        *ret_remainder = remainder;
    return true;
}

uint64_t big_low_bits(const struct big *a)
{
    uint64_t bits = 0;
    for (size_t i = a->count; i-- > 0;)
        bits = bits * BIG_BASE + a->limbs[i];
    return a->negative ? 0 - bits : bits;
}

bool big_to_i64(const struct big *a, int64_t *ret_value)
{
    if (a->count > 3 || (a->count == 3 && a->limbs[2] > 9))
        return false;
    uint64_t magnitude = 0;
    for (size_t i = a->count; i-- > 0;)
        magnitude = magnitude * BIG_BASE + a->limbs[i];
    if (magnitude > (uint64_t)INT64_MAX + a->negative)
        return false;
    *ret_value = (int64_t)(a->negative ? 0 - magnitude : magnitude);
    return true;
}

size_t big_digits(const struct big *a)
{
    if (a->count == 0)
        return 1;
    size_t digits = (a->count - 1) * BIG_DIGITS;
    for (uint32_t top = a->limbs[a->count - 1]; top > 0; top /= 10)
        digits++;
    return digits;
}

struct slice big_slice(struct run *run, const struct big *a)
{
    size_t len = big_digits(a) + a->negative;
    run_charge(run, len);
    char *out = arena_alloc(run->arena, len + 1);
    out[len] = '\0';
    out[0] = a->negative ? '-' : '0';
    size_t at = len;
    for (size_t i = 0; i < a->count; i++) {
        uint32_t limb = a->limbs[i];
        for (unsigned k = 0; k < BIG_DIGITS && at > (size_t)a->negative; k++, limb /= 10)
            out[--at] = (char)('0' + limb % 10);
    }
    return slice_make(out, len);
}

double big_to_double(struct run *run, const struct big *a)
{
    return strtod(big_slice(run, a).data, NULL);
}

/* Java hashes the 32-bit words of the magnitude; compute them one by one from the decimal limbs. */
int32_t big_hash(const struct big *a)
{
    uint32_t words[8] = {0};
    unsigned count = 0;
    uint32_t limbs[32];
    size_t limb_count = a->count < 25 ? a->count : 25;
    memcpy(limbs, a->limbs, limb_count * sizeof *limbs);
    for (; limb_count > 0 && count < 8; count++) {
        uint64_t rest = 0;
        for (size_t i = limb_count; i-- > 0;) {
            rest = rest * BIG_BASE + limbs[i];
            limbs[i] = (uint32_t)(rest >> 32);
            rest &= 0xffffffffu;
        }
        words[count] = (uint32_t)rest;
        while (limb_count > 0 && limbs[limb_count - 1] == 0)
            limb_count--;
    }
    uint32_t hash = 0;
    for (unsigned i = count; i-- > 0;)
        hash = hash * 31 + words[i];
    return (int32_t)(a->negative ? 0 - hash : hash);
}
