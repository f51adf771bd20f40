/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BigInteger and BigDecimal: Groovy's division and literals, parameters beyond 64 bits. A limb has nine decimal digits,
 * since nearly all operations are scaling and printing.
 */
#ifndef TL_SCRIPT_BIG_H
#define TL_SCRIPT_BIG_H

#include "script/value/text.h"

struct big {
    struct object object; /* CLASS_BIG_INTEGER */
    bool negative;        /* never for zero */
    uint32_t count;       /* limbs; 0 for zero; the highest is not 0 */
    uint32_t limbs[];     /* lowest first, each below 10^9 */
};

struct decimal {
    struct object object; /* CLASS_BIG_DECIMAL */
    struct big *unscaled;
    int32_t scale; /* the value is unscaled / 10^scale */
};

/* Maximum number of limbs; a larger result fails as out of memory. */
#define BIG_LIMBS_MAX 20000u

/*
 * All that return a pointer return NULL with a throwable if the budget is too small for the result.
 */
struct big *big_from_i64(struct run *run, int64_t value);
struct big *big_from_digits(struct run *run, struct slice digits); /* optional sign and digits; NULL: not a number */
struct big *big_negate(struct run *run, const struct big *a);
struct big *big_add(struct run *run, const struct big *a, const struct big *b);
struct big *big_subtract(struct run *run, const struct big *a, const struct big *b);
struct big *big_multiply(struct run *run, const struct big *a, const struct big *b);
struct big *big_power(struct run *run, const struct big *base, uint64_t exponent);
/*
 * Divides, rounding towards zero. Requires: b is not 0. ret_quotient and ret_remainder may be NULL.
 */
bool big_divide(struct run *run, const struct big *a, const struct big *b, struct big **ret_quotient,
                struct big **ret_remainder);

int big_compare(const struct big *a, const struct big *b);
uint64_t big_low_bits(const struct big *a);               /* two's complement, as Java's longValue() */
bool big_to_i64(const struct big *a, int64_t *ret_value); /* false when it does not fit */
size_t big_digits(const struct big *a);                   /* decimal digits; 1 for zero */
struct slice big_slice(struct run *run, const struct big *a);
double big_to_double(struct run *run, const struct big *a);
int32_t big_hash(const struct big *a);

struct decimal *decimal_new(struct run *run, struct big *unscaled, int64_t scale);
/* Parses "1.50", "-3e7". Returns: NULL without a throwable if it is not a number. */
struct decimal *decimal_from_slice(struct run *run, struct slice text);
/* Throws the error of Java's constructor for a text that is not a number. Returns: false. */
bool decimal_refuse(struct run *run, struct slice text);
struct decimal *decimal_add(struct run *run, const struct decimal *a, const struct decimal *b);
struct decimal *decimal_subtract(struct run *run, const struct decimal *a, const struct decimal *b);
struct decimal *decimal_multiply(struct run *run, const struct decimal *a, const struct decimal *b);
/*
 * Divides as Groovy does: exactly if the expansion is finite, else to ten more digits than the
 * operands have.
 */
struct decimal *decimal_divide(struct run *run, const struct decimal *a, const struct decimal *b);
struct decimal *decimal_set_scale(struct run *run, const struct decimal *a, int64_t scale, int rounding);
struct decimal *decimal_strip(struct run *run, const struct decimal *a);
int decimal_compare(struct run *run, const struct decimal *a, const struct decimal *b);
struct slice decimal_slice(struct run *run, const struct decimal *a); /* as Java's toString */
struct slice decimal_plain(struct run *run, const struct decimal *a);
double decimal_to_double(struct run *run, const struct decimal *a);

/* Ordinals of java.math.RoundingMode. */
enum {
    ROUND_UP,
    ROUND_DOWN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_UP,
    ROUND_HALF_DOWN,
    ROUND_HALF_EVEN,
    ROUND_UNNECESSARY
};

#endif
