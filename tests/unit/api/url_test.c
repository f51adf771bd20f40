/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Percent-encoding: what 5.6 and 7.10 were seen to do, and bytes that are no UTF-8.
 */
#include "../../lib/unit.h"

#include "api/request/url.h"

static struct arena arena;

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static struct slice decode(const char *raw, bool plus_is_space)
{
    struct slice text, reason = SLICE_NONE;
    int r = url_decode(&arena, slice_from(raw), plus_is_space, &text, &reason);
    if (r != 0)
        fail_msg("%s: %.*s", raw, SLICE_ARG(reason));
    return text;
}

static void refused(const char *raw, const char *why)
{
    struct slice text, reason = SLICE_NONE;
    assert_int_equal(url_decode(&arena, slice_from(raw), false, &text, &reason), URL_BAD_ESCAPE);
    assert_slice_equal(reason, why);
}

static void test_decode(void **state)
{
    (void)state;
    assert_slice_equal(decode("abc", false), "abc");
    assert_slice_equal(decode("%2Fa%2fb", false), "/a/b");
    assert_slice_equal(decode("a+b", false), "a+b");
    assert_slice_equal(decode("a+b", true), "a b");
    assert_slice_equal(decode("a%2Bb", true), "a+b");
    assert_slice_equal(decode("100%%", false), "100%");
    assert_slice_equal(decode("%E6%97%A5", false), "\xe6\x97\xa5");
    assert_int_equal(decode("%00", false).len, 1);
}

static void test_broken_escapes(void **state)
{
    (void)state;
    refused("%", "unterminated escape sequence at end of string: %");
    refused("a%f", "partial escape sequence at end of string: a%f");
    refused("%zz", "invalid escape sequence `%zz' at index 0 of: %zz");
    refused("ab%4gc", "invalid escape sequence `%4g' at index 2 of: ab%4gc");
}

/* One U+FFFD for each ill-formed part, as Java's decoder counts them. */
static void test_broken_utf8(void **state)
{
    (void)state;
    assert_slice_equal(decode("a%ff", false), "a\xef\xbf\xbd");
    assert_slice_equal(decode("%c3%28", false), "\xef\xbf\xbd(");
    assert_slice_equal(decode("%ED%A0%80", false), "\xef\xbf\xbd");
    assert_slice_equal(decode("%E6%97", false), "\xef\xbf\xbd");
    assert_slice_equal(decode("%80%80", false), "\xef\xbf\xbd\xef\xbf\xbd");
    assert_slice_equal(decode("x%F0%9F%98%80", false), "x\xf0\x9f\x98\x80");
}

static void test_encode(void **state)
{
    struct buf buf = BUF_INIT(1024);
    (void)state;
    url_encode(&buf, SLICE_LIT("a b/c+d~*-_.\xc3\xa9"));
    assert_slice_equal(buf_as_slice(&buf), "a+b%2Fc%2Bd%7E*-_.%C3%A9");
    buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_broken_escapes),
        cmocka_unit_test(test_broken_utf8),
        cmocka_unit_test(test_encode),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
