/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the elementary functions give correctly rounded results, bit for bit.
 * Method: real_bits.txt contains the rounded results of a multi-precision library (mpmath, 2400
 * bits) for difficult and random arguments; they must be met exactly. Special values are compared
 * with libm, further random ones with libm's long double functions.
 */
#include "../../lib/arguments.h"
#include "../../lib/unit.h"

#include "base/rand.h"
#include "base/real.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *bits_path;

#define ONE(name)                                           \
    {                                                       \
#name, real_##name, name, name##l, NULL, NULL, NULL \
    }
#define TWO(name)                                           \
    {                                                       \
#name, NULL, NULL, NULL, real_##name, name, name##l \
    }
static const struct real_function {
    const char *name;
    double (*one)(double), (*libm_one)(double);
    long double (*long_one)(long double);
    double (*two)(double, double), (*libm_two)(double, double);
    long double (*long_two)(long double, long double);
} functions[] = {
    ONE(exp),  ONE(expm1), ONE(log),  ONE(log10), ONE(log1p), ONE(cbrt), ONE(sin), ONE(cos),   ONE(tan),
    ONE(asin), ONE(acos),  ONE(atan), ONE(sinh),  ONE(cosh),  ONE(tanh), TWO(pow), TWO(hypot), TWO(atan2),
};
#define FUNCTIONS (sizeof functions / sizeof *functions)

static const struct real_function *find(const char *name)
{
    for (size_t i = 0; i < FUNCTIONS; i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    fail_msg("no function %s", name);
    return NULL;
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void test_real_results_are_bit_exact(void **state)
{
    (void)state;
    FILE *file = fopen(bits_path, "r");
    assert_non_null(file);
    char name[16], first[32], second[32], third[32], line[128];
    unsigned lines = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        int words = sscanf(line, "%15s %31s %31s %31s", name, first, second, third);
        const struct real_function *f = find(name);
        assert_int_equal(words, f->one != NULL ? 3 : 4);
        double x = strtod(first, NULL), y = strtod(second, NULL), got = f->one != NULL ? f->one(x) : f->two(x, y);
        if (!same_bits(got, f->one != NULL ? y : strtod(third, NULL)))
            fail_msg("%s: got %a for %s", name, got, line);
        lines++;
    }
    fclose(file);
    assert_true(lines > 900);
}

/*
 * Returns: whether `got` equals a special value of libm, or is within one ulp of the exact value.
 */
static bool is_acceptable(double got, double libm, long double exact)
{
    if (isnan(libm) || isinf(libm) || libm == 0)
        return same_bits(got, libm);
    double nearest = (double)exact, ulp = nextafter(fabs(nearest), INFINITY) - fabs(nearest);
    return fabs(got - nearest) <= ulp;
}

static void check(const struct real_function *f, double x, double y)
{
    bool acceptable = f->one != NULL ? is_acceptable(f->one(x), f->libm_one(x), f->long_one(x))
                                     : is_acceptable(f->two(x, y), f->libm_two(x, y), f->long_two(x, y));
    if (!acceptable)
        fail_msg("%s(%a, %a) is %a", f->name, x, y, f->one != NULL ? f->one(x) : f->two(x, y));
}

static void test_real_special_values_equal_libm(void **state)
{
    (void)state;
    static const double values[] = {
        0.0,
        0.5,
        1,
        2,
        3,
        22,
        1023,
        1074,
        1e-5,
        1e-17,
        1e16,
        1e22,
        1e300,
        1e-300,
        0x1p-60,
        0x1p52 + 1,
        0x1p53,
        0x1.fffffffffffffp-1,
        0x1.0000000000001p0,
        0x1p-1074,
        0x1p-1022,
        0x1.fffffffffffffp1023,
        709.782712893384,
        709.7827128933841,
        710.4758600739439,
        710.475860073944,
        745.1332191019411,
        745.1332191019412,
        0.7853981633974483,
        0.7853981633974484,
        1.5707963267948966,
        3.141592653589793,
        INFINITY,
        NAN,
    };
    enum { COUNT = sizeof values / sizeof *values };
    for (size_t f = 0; f < FUNCTIONS; f++)
        for (int i = -COUNT; i < COUNT; i++)
            for (int j = -COUNT; j < COUNT; j++)
                check(&functions[f], i < 0 ? -values[-i - 1] : values[i], j < 0 ? -values[-j - 1] : values[j]);
}

static double random_double(struct rng *rng)
{
    uint64_t word = rng_next(rng);
    double any, small = (double)(int64_t)rng_next(rng) * 0x1p-63;
    memcpy(&any, &word, sizeof any);
    switch (word & 3) {
    case 0: return any;
    case 1: return small;
    case 2: return small * 800;
    default: return ldexp(small, (int)(word >> 58));
    }
}

static void test_real_random_values_are_within_one_ulp(void **state)
{
    (void)state;
    struct rng rng;
    rng_init(&rng, 20);
    for (size_t f = 0; f < FUNCTIONS; f++)
        for (int i = 0; i < 3000; i++)
            check(&functions[f], random_double(&rng), random_double(&rng));
}

int main(int argc, char **argv)
{
    const struct argument arguments[] = {{"FILE", .text = &bits_path}, {0}};
    arguments_take(argc, argv, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_results_are_bit_exact),
        cmocka_unit_test(test_real_special_values_equal_libm),
        cmocka_unit_test(test_real_random_values_are_within_one_ulp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
