/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts compute the same numbers with every compiler and libc, since hosts of a cluster may be
 * built with different ones: a document that a script fills with results of every function of Math
 * and with formatted numbers has a recorded hash, and so has the chain after it.
 *
 * If the source differs, a function computes or prints another number: that must not happen. If
 * only the chain differs, the form of records has changed: record it anew.
 */
#include "../../lib/core_fixture.h"
#include "../../lib/unit.h"

#include <stdio.h>

#define SOURCE_HASH UINT64_C(0x1d2d474df9f4d985)
#define CHAIN UINT64_C(0x44f3a118f128130b)

/* Each argument gives a line, so that a difference can be found in the printed source. */
static const char script[] =
    "def xs = [0.0, -0.0, 1e-300, 4.9e-324, 1.0, -1.0, 0.5, -0.5, 1e16, 1e22, 1.7976931348623157e308, 709.7, -745.0, "
    "22.0, 1e-8, 3.141592653589793, 2147483648.0, 9007199254740993.0, 123456789.125, 1e21, 1e-7, 0.001, 1e7];"
    "for (double x = -20; x < 20; x += 0.618033988749895) { xs.add(x); }"
    "List lines = new ArrayList(); List numbers = new ArrayList();"
    "for (int i = 0; i < xs.size(); i++) {"
    "  double x = xs[i]; double y = xs[(i * 7 + 3) % xs.size()];"
    "  String s = '' + x + ' ' + (float)x + ' ' + (long)x + ' ' + (int)x;"
    "  s += ' ' + Math.abs(x) + ' ' + Math.acos(x) + ' ' + Math.asin(x) + ' ' + Math.atan(x) + ' ' + Math.cbrt(x);"
    "  s += ' ' + Math.ceil(x) + ' ' + Math.cos(x) + ' ' + Math.cosh(x) + ' ' + Math.exp(x) + ' ' + Math.expm1(x);"
    "  s += ' ' + Math.floor(x) + ' ' + Math.log(x) + ' ' + Math.log10(x) + ' ' + Math.log1p(x);"
    "  s += ' ' + Math.nextDown(x) + ' ' + Math.nextUp(x) + ' ' + Math.rint(x) + ' ' + Math.signum(x);"
    "  s += ' ' + Math.sin(x) + ' ' + Math.sinh(x) + ' ' + Math.sqrt(x) + ' ' + Math.tan(x) + ' ' + Math.tanh(x);"
    "  s += ' ' + Math.toDegrees(x) + ' ' + Math.toRadians(x) + ' ' + Math.ulp(x) + ' ' + Math.atan2(x, y);"
    "  s += ' ' + Math.copySign(x, y) + ' ' + Math.hypot(x, y) + ' ' + Math.IEEEremainder(x, y);"
    "  s += ' ' + Math.nextAfter(x, y) + ' ' + Math.max(x, y) + ' ' + Math.min(x, y) + ' ' + Math.pow(x, y);"
    "  s += ' ' + Math.pow(Math.abs(x), 0.3) + ' ' + Math.round(x) + ' ' + Math.E * x + ' ' + Math.PI / y;"
    "  lines.add(s); numbers.add(x); numbers.add(Math.sin(x)); numbers.add(Math.cbrt(x)); "
    "numbers.add((float)Math.cos(x));"
    "}"
    "ctx._source.lines = lines; ctx._source.numbers = numbers;";

/* Functions that take integers, which only Groovy has, and its printf formats. */
static const char groovy[] = "def lines = [];"
                             "for (i in [0, 1, -1, 7, -7, 2147483647, -2147483647, 1234567]) {"
                             "  def x = i * 0.37d;"
                             "  lines << '' + Math.abs(i) + ' ' + Math.floorDiv(i, 3) + ' ' + Math.floorMod(i, 3) + ' "
                             "' + Math.max(i, 5) + ' ' + "
                             "Math.min(i, 5) + ' ' + i / 7 + ' ' + x;"
                             "  lines << String.format('%.3f %e %10.2f %g %,d %x', x, x, x, x, i, i);"
                             "}"
                             ";ctx._source.groovy = lines";

static void run_script(struct core_fixture *fixture, const char *source, const char *lang)
{
    struct write_update update = {.script_source = slice_from(source), .script_lang = slice_from(lang)};
    const struct write_result *result = fixture_update(fixture, "m", "1", update);
    const struct problem *cause = &result->problem;
    while (cause->caused_by != NULL)
        cause = cause->caused_by;
    if (result->outcome != WRITE_UPDATED)
        fail_msg("%s: %.*s", lang, SLICE_ARG(cause->reason));
}

static void test_math_is_the_same_everywhere(void **state)
{
    struct core_fixture fixture;
    (void)state;

    fixture_open(&fixture);
    core_begin_chain(fixture.core, 0);
    fixture_index_command(&fixture, COMMAND_INDEX_CREATE, "m", "{\"mappings\":{\"enabled\":false}}");
    fixture_index(&fixture, "m", "1", "{}");
    run_script(&fixture, script, "painless");
    run_script(&fixture, groovy, "groovy");
    const char *source = fixture_source(&fixture, "m", "1");
    uint64_t hash = slice_hash(slice_from(source)), chain = core_chain(fixture.core);
    if (hash != SOURCE_HASH)
        printf("%s\n", source);
    if (hash != SOURCE_HASH || chain != CHAIN)
        fail_msg("the source has the hash 0x%llx, and the chain is 0x%llx", (unsigned long long)hash,
                 (unsigned long long)chain);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_math_is_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
