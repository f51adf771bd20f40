/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing of the library's rows: valid and invalid signatures, and properties of all rows.
 */
#include "script/library/method.h"
#include "script/value/seq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct method read(const char *signature)
{
    static char names[256];
    char *at = names;
    struct method method = {.flags = METHOD_BOTH};
    if (!method_read(signature, &at, &method))
        fail_msg("%s is not read", signature);
    return method;
}

static void test_kinds(void **state)
{
    (void)state;
    struct method m = read("LongStream mapToLong(ToLongFunction)");
    assert_string_equal(m.name, "mapToLong");
    assert_int_equal(m.flags, METHOD_BOTH);
    assert_int_equal(m.result, CLASS_LONG_STREAM);
    assert_int_equal(m.count, 1);
    assert_int_equal(m.parameters[0], CLASS_TO_LONG_FUNCTION);

    m = read("static String format(String, def...)");
    assert_int_equal(m.flags, METHOD_BOTH | METHOD_STATIC | METHOD_REST);
    assert_int_equal(m.count, 2);
    assert_int_equal(m.parameters[1], CLASS_DEF);

    m = read("new StringBuilder(CharSequence)");
    assert_string_equal(m.name, "new");
    assert_int_equal(m.flags, METHOD_BOTH | METHOD_NEW);
    assert_int_equal(m.result, CLASS_STRING_BUILDER);

    m = read("static int MAX_VALUE");
    assert_int_equal(m.flags, METHOD_BOTH | METHOD_STATIC | METHOD_FIELD);
    assert_string_equal(m.name, "MAX_VALUE");

    m = read("Map.Entry firstEntry()");
    assert_int_equal(m.result, CLASS_MAP_ENTRY);
    assert_int_equal(m.count, 0);

    m = read("byte[] f(int[][], String[])");
    assert_int_equal(m.result, type_array(CLASS_BYTE, 1));
    assert_int_equal(m.parameters[0], type_array(CLASS_INT, 2));
    assert_int_equal(m.parameters[1], type_array(CLASS_STRING, 1));
}

static void test_wrong_ones(void **state)
{
    static const char *const wrong[] = {
        "",
        "int",
        "int ",
        "Nothing f()",
        "int f(Nothing)",
        "int f(",
        "int f(int",
        "int f(int,int)",
        "int f(int, )",
        "int f() ",
        "int f(int..., int)",
        "new String",
        "new int[",
        "static static int f()",
        "int f(int, int, int, int, int, int, int, int, int)",
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char names[256], *at = names;
        struct method method = {.flags = METHOD_BOTH};
        if (method_read(wrong[i], &at, &method))
            fail_msg("%s is read", wrong[i]);
    }
}

/* Rows stand class by class; each is of a dialect and has a native; only Groovy counts arguments freely. */
static void test_all_rows(void **state)
{
    const struct method *method;
    unsigned count = 0, id = 0;
    (void)state;
    for (; (method = method_at(count)) != NULL; count++) {
        assert_true(method->id >= id);
        id = method->id;
        assert_true((method->flags & METHOD_BOTH) != 0);
        assert_true((method->flags & METHOD_REST) == 0 || (method->flags & METHOD_PAINLESS) == 0);
        assert_true((method->flags & METHOD_FIELD) == 0 || method->count == 0);
        for (unsigned i = 0; i < method->count; i++)
            assert_true(method->parameters[i] != CLASS_VOID);
    }
    assert_true(count > 2000);
}

/* A class's own method is found before an inherited one; on an array the methods of all arrays. */
static void test_finding(void **state)
{
    (void)state;
    struct method_lookup query = {CLASS_STRING, SLICE_LIT("length"), 0, METHOD_PAINLESS};
    const struct method *found = method_find(&query);
    assert_non_null(found);
    assert_int_equal(found->id, CLASS_STRING);
    query.name = SLICE_LIT("hashCode");
    found = method_find(&query);
    assert_non_null(found);
    assert_int_equal(found->id, CLASS_OBJECT);
    query.count = 1;
    assert_null(method_find(&query));
    assert_true(method_exists(SLICE_LIT("padLeft"), METHOD_GROOVY));
    assert_false(method_exists(SLICE_LIT("padLeft"), METHOD_PAINLESS));
    const struct method *rows[METHOD_OVERLOADS_MAX];
    query = (struct method_lookup){.id = (enum class_id)CLASS_ARRAY, SLICE_LIT("collect"), .flags = METHOD_GROOVY};
    assert_true(method_all(&query, rows, METHOD_OVERLOADS_MAX) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_wrong_ones),
                                       cmocka_unit_test(test_all_rows), cmocka_unit_test(test_finding)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
