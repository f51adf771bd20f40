/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters: splitting a query string, reading values, refusing unlisted names.
 */
#include "../../lib/unit.h"

#include "api/request/params.h"
#include "json/time_value.h"
#include "base/buf.h"

static struct arena arena;
static struct problem problem;

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

static struct params parse(const char *query)
{
    struct params params;
    assert_int_equal(params_parse(&arena, slice_from(query), &params, &problem), 0);
    return params;
}

static void test_split(void **state)
{
    (void)state;
    struct params params = parse("a=1&b=x%20y+z;c&d=&=e=f&&a=2");
    assert_int_equal(params.count, 5);
    assert_slice_equal(params_get(&params, "a"), "2");
    assert_slice_equal(params_get(&params, "b"), "x y z");
    assert_slice_equal(params_get(&params, "c"), "");
    assert_slice_equal(params_get(&params, "d"), "");
    assert_slice_equal(params_get(&params, "e"), "f");
    assert_null(params_get(&params, "g").data);
    params = parse("");
    assert_int_equal(params.count, 0);
}

static void test_too_many(void **state)
{
    struct params params;
    struct buf query = BUF_INIT(4096);
    (void)state;
    for (int i = 0; i <= PARAMS_MAX; i++)
        buf_printf(&query, "p%d=1&", i);
    assert_int_equal(params_parse(&arena, buf_as_slice(&query), &params, &problem), PARAMS_REFUSED);
    buf_deinit(&query);
    assert_int_equal(params_parse(&arena, SLICE_LIT("a=%zz"), &params, &problem), PARAMS_REFUSED);
}

static void test_booleans(void **state)
{
    bool value = false;
    (void)state;
    struct params params = parse("a&b=true&c=false&d=maybe&e=off");
    assert_int_equal(params_bool(&params, "a", DIALECT_7, &arena, &value, &problem), 0);
    assert_true(value);
    assert_int_equal(params_bool(&params, "c", DIALECT_7, &arena, &value, &problem), 0);
    assert_false(value);
    assert_int_equal(params_bool(&params, "d", DIALECT_7, &arena, &value, &problem), PARAMS_REFUSED);
    assert_slice_equal(problem.reason, "Failed to parse value [maybe] as only [true] or [false] are allowed.");
    assert_int_equal(params_bool(&params, "d", DIALECT_5, &arena, &value, &problem), 0);
    assert_true(value);
    assert_int_equal(params_bool(&params, "e", DIALECT_5, &arena, &value, &problem), 0);
    assert_false(value);
    value = true;
    assert_int_equal(params_bool(&params, "absent", DIALECT_7, &arena, &value, &problem), 0);
    assert_true(value);
}

static void test_numbers(void **state)
{
    int32_t small = 7;
    int64_t large = 7;
    (void)state;
    struct params params = parse("a=-3&b=x&c=2147483648&d=9223372036854775808");
    assert_int_equal(params_int(&params, "a", &arena, &small, &problem), 0);
    assert_int_equal(small, -3);
    assert_int_equal(params_int(&params, "b", &arena, &small, &problem), PARAMS_REFUSED);
    assert_slice_equal(problem.reason, "Failed to parse int parameter [b] with value [x]");
    assert_slice_equal(problem.caused_by->reason, "For input string: \"x\"");
    assert_int_equal(params_int(&params, "c", &arena, &small, &problem), PARAMS_REFUSED);
    assert_int_equal(params_long(&params, "c", &arena, &large, &problem), 0);
    assert_true(large == 2147483648);
    assert_int_equal(params_long(&params, "d", &arena, &large, &problem), PARAMS_REFUSED);
}

static int64_t time_of(const char *text)
{
    int64_t value;
    if (time_value_parse(slice_from(text), SLICE_LIT("timeout"), DIALECT_7, &arena, &value, &problem) != 0)
        fail_msg("%s: %.*s", text, SLICE_ARG(problem.reason));
    return value;
}

static void test_times(void **state)
{
    int64_t value;
    (void)state;
    assert_int_equal(time_of("500ms"), 500000);
    assert_int_equal(time_of("10s"), 10000000);
    assert_int_equal(time_of("2H"), 7200000000);
    assert_int_equal(time_of("7micros"), 7);
    assert_int_equal(time_of("0"), 0);
    assert_int_equal(time_of("-1"), -1);
    assert_int_equal(time_value_parse(SLICE_LIT("5"), SLICE_LIT("timeout"), DIALECT_7, &arena, &value, &problem),
                     PARAMS_REFUSED);
    assert_slice_equal(problem.reason,
                       "failed to parse setting [timeout] with value [5] as a time value: unit is missing or "
                       "unrecognized");
    assert_int_equal(time_value_parse(SLICE_LIT("x1s"), SLICE_LIT("timeout"), DIALECT_7, &arena, &value, &problem),
                     PARAMS_REFUSED);
    assert_slice_equal(problem.reason, "failed to parse [x1s]");
    assert_int_equal(time_of("-001"), -1);
    assert_int_equal(time_of("000"), 0);
    assert_int_equal(time_of("9999999999999d"), time_of("9999999999d")); /* for ever */
    assert_int_equal(time_of("1 s"), 1000000);
}

static void test_times_refused(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"1.5m", "failed to parse [1.5m], fractional time values are not supported"},
        {"s", "failed to parse [s]"},
        {"-5s", "failed to parse setting [t] with value [-5s] as a time value: negative durations are not supported"},
        {"-2", "failed to parse setting [t] with value [-2] as a time value: unit is missing or unrecognized"},
        {"", "failed to parse setting [t] with value [] as a time value: unit is missing or unrecognized"},
        {"99999999999999999999s", "failed to parse [99999999999999999999s], fractional time values are not supported"},
    };
    int64_t value;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            time_value_parse(slice_from(cases[i].text), SLICE_LIT("t"), DIALECT_7, &arena, &value, &problem),
            PARAMS_REFUSED);
        assert_slice_equal(problem.reason, cases[i].reason);
        assert_int_equal(problem.type, PROBLEM_ILLEGAL_ARGUMENT);
    }
    assert_int_equal(time_value_parse(SLICE_LIT("1.5m"), SLICE_LIT("t"), DIALECT_5, &arena, &value, &problem),
                     PARAMS_REFUSED);
    assert_int_equal(problem.type, PROBLEM_PARSE);
    assert_int_equal(time_value_parse(SLICE_LIT("-5s"), SLICE_LIT("t"), DIALECT_5, &arena, &value, &problem), 0);
    assert_int_equal(value, -1);
}

static void refuses(const char *query, const char *accepted, const char *expected)
{
    struct params params = parse(query);
    assert_int_equal(params_check(&params, accepted, SLICE_LIT("/i/_doc/1"), &arena, &problem), PARAMS_REFUSED);
    assert_slice_equal(problem.reason, expected);
}

static void test_check(void **state)
{
    (void)state;
    struct params params = parse("pretty&routing=a&filter_path=b&session=s");
    assert_int_equal(params_check(&params, "routing refresh", SLICE_LIT("/"), &arena, &problem), 0);
    refuses("foo=1", "routing", "request [/i/_doc/1] contains unrecognized parameter: [foo]");
    refuses("foo=1&bar=2", "routing", "request [/i/_doc/1] contains unrecognized parameters: [bar], [foo]");
    refuses("rout=1", "routing",
            "request [/i/_doc/1] contains unrecognized parameter: [rout] -> did you mean [routing]?");
    refuses("verzion=1", "~version", "request [/i/_doc/1] contains unrecognized parameter: [verzion]");
    refuses("verzion=1&version=1", "~version",
            "request [/i/_doc/1] contains unrecognized parameter: [verzion] -> did you mean [version]?");
}

static void test_parameter_of_other_calls_is_explained(void **state)
{
    (void)state;
    struct params params = parse("refresh=true&distribute_timestamps=strict");
    assert_int_equal(params_check(&params, "refresh", SLICE_LIT("/"), &arena, &problem), PARAMS_REFUSED);
    assert_true(slice_is(problem.reason, "[distribute_timestamps] is not supported by this call: it is a parameter of "
                                         "calls that change what others read"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameter_of_other_calls_is_explained),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_booleans),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_times_refused),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
