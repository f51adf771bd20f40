/* SPDX-License-Identifier: Apache-2.0 */
/* String.format, as the documentation of java.util.Formatter has it. */
#include "evaluate.h"

#define FORMAT(format, arguments) "return String.format('" format "', new def[] {" arguments "})"

static const struct evaluated texts[] = {
    {FORMAT("%s-%S", "'a', 'b'"), "\"a-B\""},
    {FORMAT("%s", "null"), "\"null\""},
    {FORMAT("%10s|%-10s|", "'abc', 'abc'"), "\"       abc|abc       |\""},
    {FORMAT("%.2s", "'abc'"), "\"ab\""},
    {FORMAT("%2$s %1$s %s", "'a', 'b'"), "\"b a a\""},
    {FORMAT("%b %b", "null, 1"), "\"false true\""},
    {FORMAT("100%% %n", ""), "\"100% \\n\""},
    {FORMAT("%c%c", "(char)65, 66"), "\"AB\""},
};

static const struct evaluated integers[] = {
    {FORMAT("%d", "42"), "\"42\""},
    {FORMAT("%05d", "-42"), "\"-0042\""},
    {FORMAT("%+d", "42"), "\"+42\""},
    {FORMAT("% d", "42"), "\" 42\""},
    {FORMAT("%(d", "-42"), "\"(42)\""},
    {FORMAT("%,d", "1234567"), "\"1,234,567\""},
    {FORMAT("%d", "-9223372036854775807L - 1L"), "\"-9223372036854775808\""},
    {FORMAT("%x %X %#x", "255, 255, 255"), "\"ff FF 0xff\""},
    {FORMAT("%x", "-1"), "\"ffffffff\""},
    {FORMAT("%x", "-1L"), "\"ffffffffffffffff\""},
    {FORMAT("%o", "8"), "\"10\""},
};

static const struct evaluated decimals[] = {
    {FORMAT("%f", "1.5"), "\"1.500000\""},
    {FORMAT("%.2f", "-1.005"), "\"-1.01\""},
    {FORMAT("%8.2f|", "3.14159"), "\"    3.14|\""},
    {FORMAT("%08.2f", "-3.14159"), "\"-0003.14\""},
    {FORMAT("%-8.1f|", "-3.14159"), "\"-3.1    |\""},
    {FORMAT("%(.1f", "-3.14159"), "\"(3.1)\""},
    {FORMAT("%,.1f", "1234567.89"), "\"1,234,567.9\""},
    {FORMAT("%.0f", "2.5"), "\"3\""},
    {FORMAT("%e", "12345.678"), "\"1.234568e+04\""},
    {FORMAT("%f", "Double.NaN"), "\"NaN\""},
    {FORMAT("%06.1f", "Double.NEGATIVE_INFINITY"), "\"-Infinity\""},
};

static const struct evaluated errors[] = {
    {FORMAT("%d", "'a'"), "illegal_format_conversion_exception: d != java.lang.String"},
    {FORMAT("%f", "1"), "illegal_format_conversion_exception: f != java.lang.Integer"},
    {FORMAT("%s %s", "1"), "missing_format_argument_exception: Format specifier '%s'"},
    {FORMAT("%y", "1"), "unknown_format_conversion_exception: Conversion = 'y'"},
    {FORMAT("a %", ""), "unknown_format_conversion_exception: Conversion = '%'"},
};

#define CHECK(table) check_evaluated(table, sizeof table / sizeof *table)

static void test_texts(void **state)
{
    (void)state;
    CHECK(texts);
}

static void test_integers(void **state)
{
    (void)state;
    CHECK(integers);
}

static void test_decimals(void **state)
{
    (void)state;
    CHECK(decimals);
}

static void test_errors(void **state)
{
    (void)state;
    CHECK(errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_decimals),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
