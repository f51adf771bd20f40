/* SPDX-License-Identifier: Apache-2.0 */
/* The Groovy dialect by construct: scripts and their results, error texts, limits. */
#include "evaluate.h"

static const struct evaluated literals[] = {
    {"return 1_000 + 0x1F + 0b11 + 07", "1041"},
    {"return 3000000000.class.name", "\"java.lang.Long\""},
    {"return [1.5.class.name, 1.5f.class.name, (1/2).class.name, 2g.class.name]",
     "[\"java.lang.Double\",\"java.lang.Float\",\"java.math.BigDecimal\",\"java.math.BigInteger\"]"},
    {"return -2**2", "-4"},
    {"return 'it\\'s \\u0041\\n'", "\"it's A\\n\""},
    {"return '''a\nb'''", "\"a\\nb\""},
    {"def r = /a\\/b\\d/; return r", "\"a/b\\\\d\""},
    {"def r = $/a/b $$5/$; return r", "\"a/b $5\""},
    {"def x = [y: 2]; return \"a$x.y b${x.y + 1} c${-> 4} \\$5\"", "\"a2 b3 c4 $5\""},
    {"return \"${\"${1}\"}\"", "\"1\""},
    {"return [a: 1, 'b c': 2, (1 + 1): 3, *: [d: 4]].toString()", "\"[a:1, b c:2, 2:3, d:4]\""},
    {"return [*[1, 2], 3, *(4..5)]", "[1,2,3,4,5]"},
    {"return [:]", "{}"},
};

static const struct evaluated operators[] = {
    {"return 7 / 2", "\"3.5\""},
    {"return 'a' + 1 + null", "\"a1null\""},
    {"return [1, 2] + 3 - 1", "[2,3]"},
    {"return 'b' > 'a' && 1 == 1L && 'a' == \"${'a'}\"", "true"},
    {"return [1 <=> 2, 0 ?: 'none', null?.x, !'']", "[-1,\"none\",null,true]"},
    {"return 'hello' =~ /l+/ ? 'found' : 'not'", "\"found\""},
    {"return 'hello' ==~ /h.*o/", "true"},
    {"return 3 in [1, 2, 3] && 'k' in map && !(5 in 1..4)", "true"},
    {"return ['5' as int, 5 as String, 'x' as char, [1, 1] as Set]", "[5,\"5\",\"x\",[1]]"},
    {"def i = 5; return i++ + ++i", "12"},
    {"def x = null; x?.y += 1", "null_pointer_exception: Cannot execute null+1"},
    {"return [[a: 1], [a: 2]]*.a", "[1,2]"},
    {"return [[a: 1], null, [a: 2]].a", "[1,2]"},
    {"return ['a', 'b']*.toUpperCase()", "[\"A\",\"B\"]"},
    {"def size = list.&size; return size()", "3"},
    {"return 'hello'[1..-1] + [1, 2, 3][-1] + [1, 2][9]", "\"ello3null\""},
};

static const struct evaluated statements[] = {
    {"def n = 0\nfor (i in 1..3) n += i\nfor (int i = 0; i < 3; i++) { n += i }\nfor (x : [10]) n += x",
     "multiple_compilation_errors_exception: startup failed:\n"
     "d84463472b002157f1215bc8ede81a7c37e6ce63: 4: Java-style for-each statement requires a type declaration.;\n"
     "   solution: Use the 'in' keyword, as for (x in y) {...} @ line 4, column 8.\n   for (x : [10]) n += x\n         "
     " ^\n\n1 "
     "error\n"},
    {"def n = 0\nfor (i in 1..3) n += i\nfor (def x : [10]) n += x\nn", "16"},
    {"def n = 0; outer: for (a in 1..3) { for (b in 1..3) { if (b == 2) continue outer; if (a == 3) break outer; n += "
     "10 * a + "
     "b } }; n",
     "32"},
    {"def (a, b) = [1, 2]; (a, b) = [b, a]; [a, b]", "[2,1]"},
    {"switch (6) { case 1: return 'one'; case [5, 6]: return 'list'; default: return 'other' }", "\"list\""},
    {"switch ('x') { case Integer: return 1; case ~/[a-z]/: return 2 }", "2"},
    {"switch (2.5) { case { it > 2 }: return 'big' }", "\"big\""},
    {"if (word)\n{\n  'yes'\n}\nelse\n  'no'", "\"yes\""},
    {"try { 1 / 0 } catch (ArithmeticException | NullPointerException e) { e.message } finally { 5 }",
     "\"Division by zero\""},
    {"def f(x, y = 5) { x + y }\nf(1) + f(1, 1)", "8"},
    {"int fib(int n) { n < 2 ? n : fib(n - 1) + fib(n - 2) }\nfib(15)", "610"},
    {"list\n  .findAll { it > 1 }\n  .collect { it * 2 }", "[4,6]"},
    {"boolean b = word; b", "true"},
    {"int x = 'abc'", "groovy_cast_exception: Cannot cast object 'abc' with class 'java.lang.String' to class 'int'"},
    {"def n = 0; switch (5) { case 5: n += 1; case 6: n += 10; break; case 7: n += 100 }; n", "11"},
    {"def s = ''; switch (5) { default: s += 'd'; break; case 5: s += 'five' }; s", "\"fived\""},
    {"def f() { switch (1) { case 1: 5; break; default: 6 } }; f()", "5"},
    {"def f() { def x = 5 }; f()", "5"},
    {"void f() { 5 }; f()", "null"},
    {"def f(int x) { 'int' }; def f(String x) { 'text' }; f(1) + f('a')", "\"inttext\""},
    {"def f(x, Object... rest) { rest.length }; [f(1), f(1, 2, 3), f(1, [2, 3])]", "[0,2,2]"},
    {"def f(x = 5, y) { x - y }; [f(1), f(9, 1)]", "[4,8]"},
    {"def s = ''; for (x in 'a'..'c') { s += x }; s", "\"abc\""},
    {"list.collect\n{ it * 2 }", "[2,4,6]"},
    {"x = one + 1; x", "2"},
    {"println 'nobody hears'; 1", "1"},
    {"import java.util.TreeMap as T\nnew T([b: 1, a: 2])", "{\"a\":2,\"b\":1}"},
};

static const struct evaluated closures[] = {
    {"def c = 0; def inc = { c++ }; 3.times { inc() }; c", "3"},
    {"def l = []; for (i in 1..3) { def x = i; l << { x * 10 } }; l.collect { it() }", "[10,20,30]"},
    {"def fact; fact = { n -> n < 2 ? 1 : n * fact(n - 1) }; fact(10)", "3628800"},
    {"{ a, b = 2 -> a + b }(1)", "3"},
    {"[[1, 2], [3, 4]].collect { a, b -> a + b }", "[3,7]"},
    {"def f = { a, b -> a }; f(1)", "missing_method_exception: No signature of method: "
                                    "eae8591b7df4dca054ee231ffe6ff111655524de$_run_closure1.call() is "
                                    "applicable for argument types: (java.lang.Integer) values: [1]"},
    {"def m = [n: 1]; m.with { n = n + 1; k = 5 }; m", "{\"n\":2,\"k\":5}"},
    {"def m = [hi: { 'hi ' + it }]; m.hi('you')", "\"hi you\""},
    {"def add = { x, y -> x + y }; add 1, 2", "3"},
    {"list.inject(0) { sum, x -> sum + x }", "6"},
};

static const struct evaluated missing[] = {
    {"foo", "missing_property_exception: No such property: foo for class: 0beec7b5ea3f0fdbc95d0dd47f3c5bc275da8a33"},
    {"null.foo", "null_pointer_exception: Cannot get property 'foo' on null object"},
    {"null.foo()", "null_pointer_exception: Cannot invoke method foo() on null object"},
    {"def x = null; x.y = 1", "null_pointer_exception: Cannot set property 'y' on null object"},
    {"1.foo", "missing_property_exception: No such property: foo for class: java.lang.Integer"},
    {"'abc'.foo(1, 'x')",
     "missing_method_exception: No signature of method: java.lang.String.foo() is applicable for argument "
     "types: (java.lang.Integer, java.lang.String) values: [1, x]"},
    {"'abc'.substring()",
     "method_selection_exception: Could not find which method substring() to invoke from this list:\n"
     "  public java.lang.String java.lang.String#substring(int)\n"
     "  public java.lang.String java.lang.String#substring(int, int)"},
    {"assert one == 2 : 'no'", "assertion_error: no. Expression: (one == 2). Values: one = 1"},
    {"assert list.size() > 5",
     "power_assertion_error: assert list.size() > 5\n       |    |      |\n       |    3      false\n"
     "       [1, 2, 3]"},
};

static void table(const struct evaluated *rows, size_t count)
{
    check_in(SCRIPT_GROOVY, EVALUATE_PARAMS, rows, count);
}

static void test_literals(void **state)
{
    (void)state;
    table(literals, sizeof literals / sizeof *literals);
}

static void test_operators(void **state)
{
    (void)state;
    table(operators, sizeof operators / sizeof *operators);
}

static void test_statements(void **state)
{
    (void)state;
    table(statements, sizeof statements / sizeof *statements);
}

static void test_closures(void **state)
{
    (void)state;
    table(closures, sizeof closures / sizeof *closures);
}

static void test_missing(void **state)
{
    (void)state;
    table(missing, sizeof missing / sizeof *missing);
}

/* The same for errors of which only a part is compared. */
static void contains(const struct evaluated *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena = ARENA_INIT;
        struct slice have = evaluate_in(SCRIPT_GROOVY, EVALUATE_PARAMS, rows[i].source, &arena);
        if (memmem(have.data, have.len, rows[i].expected, strlen(rows[i].expected)) == NULL)
            fail_msg("%s\n  gives    %.*s\n  expected %s", rows[i].source, SLICE_ARG(have), rows[i].expected);
        arena_deinit(&arena);
    }
}

/* The part of a refusal between the line's number and its picture. */
static void test_refused(void **state)
{
    static const struct evaluated rows[] = {
        {"x = (1 + 2", "expecting ')', found '' @ line 1, column 11."},
        {"x = [1, 2", "unexpected token:  @ line 1, column 10."},
        {"if (true) { x", "expecting '}', found '' @ line 1, column 14."},
        {"while (false) { } x", "expecting EOF, found 'x' @ line 1, column 19."},
        {"if (true) { } x", "unexpected token: x @ line 1, column 15."},
        {"\n\ndo { } while (true)", "unexpected token: do @ line 3, column 1."},
        {"x = 'abc", "expecting ''', found '<EOF>' @ line 1, column 9."},
        {"x = 'abc\n'", "expecting ''', found '\\n' @ line 1, column 9."},
        {"x = \"a", "unexpected char: 0xFFFF @ line 1, column 7."},
        {"x = #", "unexpected char: '#' @ line 1, column 5."},
        {"f(y -> y)", "unexpected token: -> @ line 1, column 5."},
        {"x = 1 +", "expecting EOF, found '+' @ line 1, column 7."},
        {"x = y ? : 1", "unexpected token: ? @ line 1, column 7."},
        {"x. = 1", "unexpected token: . @ line 1, column 2."},
        {"x = [a: 1, 2]", "Unexpected node type: EXPR found when expecting type: LABELED_ARG at line: 1 column: 12."},
        {"x = 'a\\q'", "unexpected char: '\\' @ line 1, column 7."},
        {"x = 1 /* y", "expecting '*', found '<EOF>' @ line 1, column 11."},
        {"try { }", "A try statement must have at least one catch or finally block."},
        {"def x = 1; def f = { def x = 2 }", "The current scope already contains a variable of the name x"},
        {"x.y() = 1", "\"x.y()\" is a method call expression, but it should be a variable expression"},
        {"1 = 2", "[1] is a constant expression, but it should be a variable expression at line: 1 column: 3."},
        {"Foo x = null", "unable to resolve class Foo"},
        {"int x = 1; int x = 2", "The current scope already contains a variable of the name x"},
        {"break", "the break statement is only allowed inside loops or switches"},
        {"class A { }", "classes are not supported in scripts @ line 1, column 1."},
        {"{ x }",
         "Ambiguous expression could be either a parameterless closure expression or an isolated open code block"},
    };
    (void)state;
    contains(rows, sizeof rows / sizeof *rows);
}

/* Endless scripts end by a limit; a source nested too deep does not parse. */
static void test_bounds(void **state)
{
    static const struct evaluated rows[] = {
        {"while (true) { }", "limit_exceeded_exception: the script takes more than"},
        {"for (;;) { }", "limit_exceeded_exception: the script takes more than"},
        {"try { while (true) { } } catch (Throwable t) { } finally { while (true) { } }",
         "limit_exceeded_exception: the script takes more than"},
        {"def f() { f() }\nf()", "stack_overflow_error: null"},
        {"def f; f = { f() }; f()", "stack_overflow_error: null"},
        {"def s = 'x'; while (true) { s += s }", "limit_exceeded_exception: the script needs more than"},
        {"def s = 'x'; while (true) { s = \"$s$s\" }", "limit_exceeded_exception: the script needs more than"},
        {"def l = [0]; while (true) { l += l }", "limit_exceeded_exception: the script needs more than"},
        {"def m = [:]; m.m = m; m.toString()", "\"[m:(this Map)]\""},
        {"[0] * 1000000000", "limit_exceeded_exception: the script "},
    };
    (void)state;
    contains(rows, sizeof rows / sizeof *rows);
}

static void test_nesting(void **state)
{
    static const char *const units[] = {"(",    "[",       "{",    "!",    "-",     "x.",   "x(",
                                        "\"${", "if (x) ", "x + ", "x ? ", "{ -> ", "a b ", "x="};
    (void)state;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct arena arena = ARENA_INIT;
        size_t len = strlen(units[i]), count = 60000 / len;
        char *source = arena_alloc(&arena, count * len + 2);
        for (size_t k = 0; k < count; k++)
            memcpy(source + k * len, units[i], len);
        memcpy(source + count * len, "x", 2);
        struct slice have = evaluate_in(SCRIPT_GROOVY, EVALUATE_PARAMS, source, &arena);
        assert_true(have.len > 0);
        arena_deinit(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_literals), cmocka_unit_test(test_operators), cmocka_unit_test(test_statements),
        cmocka_unit_test(test_closures), cmocka_unit_test(test_missing),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bounds),   cmocka_unit_test(test_nesting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
