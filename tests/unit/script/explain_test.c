/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of texts that do not parse: the text depends on whether the parser was choosing an alternative at the token.
 * Expectations are the errors of Elasticsearch 7.10's parser.
 */
#include "evaluate.h"

#include "base/buf.h"

#define UNEXPECTED(token, expected) \
    "illegal_argument_exception: unexpected token ['" token "'] was expecting one of [" expected "]."
#define SEQUENCE(token) "illegal_argument_exception: invalid sequence of tokens near ['" token "']."
#define END "illegal_argument_exception: unexpected end of script."

static const struct evaluated one_way[] = {
    {"return 1 + 2)", UNEXPECTED(")", "{<EOF>, ';'}")},
    {"return return", UNEXPECTED("return", "{<EOF>, ';'}")},
    {"while { }", UNEXPECTED("{", "'('")},
    {"if (true { }", UNEXPECTED("{", "')'")},
    {"def f(x) { x }", UNEXPECTED(")", "ID")},
    {"for (int i = 0; i < 3) { }", UNEXPECTED(")", "';'")},
    {"for (int i = 0; i < 3; i++, j--) { }", UNEXPECTED(",", "')'")},
    {"try { } catch { }", UNEXPECTED("{", "'('")},
    {"return true ? 1", UNEXPECTED("<EOF>", "':'")},
    {"int f(int x) { return x } int g = 1; int h() { return 1 }", UNEXPECTED("(", "{<EOF>, ';'}")},
    {"return params.list\nx", UNEXPECTED("x", "{<EOF>, ';'}")},
};

static const struct evaluated choosing[] = {
    {"return 1 +", END},
    {"return [1, 2", END},
    {"def x =", END},
    {"int = 5", SEQUENCE("=")},
    {"def if = 1", SEQUENCE("if")},
    {"{ int x = 1 }", SEQUENCE("{")},
    {"return 2**3", SEQUENCE("*")},
    {"return 5 <=> 3", SEQUENCE(">")},
    {"return params.list.forEach(x -> )", SEQUENCE(")")},
    {"List<String> l = new ArrayList<String>()", SEQUENCE("<")},
    {"for (int i = 0; i < 2; ++) { }", SEQUENCE(")")},
    {"return new int[] {1,}", SEQUENCE("}")},
    {"return 1 + ?. x", SEQUENCE("?.")},
    {"return 5.", END},
};

static const struct evaluated letters[] = {
    {"return 1 # 2", "illegal_argument_exception: unexpected character [#]."},
    {"return // never ends", "illegal_argument_exception: unexpected character [// never ends]."},
    {"return x ?. y", "illegal_argument_exception: unexpected character [ ]."},
};

#define CHECK(table) check_evaluated(table, sizeof table / sizeof *table)

static void test_one_way(void **state)
{
    (void)state;
    CHECK(one_way);
}

static void test_choosing(void **state)
{
    (void)state;
    CHECK(choosing);
}

static void test_letters(void **state)
{
    (void)state;
    CHECK(letters);
}

/* Lookahead is bounded: with unclosed brackets every choice looks ahead to the end. */
static void test_bounded(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct buf source = BUF_INIT(BUF_UNLIMITED);
    for (int i = 0; i < 60; i++)
        buf_lit(&source, "[a(b, -> c.d[(e)");
    for (int i = 0; i < 10000; i++)
        buf_lit(&source, " + 1");
    buf_byte(&source, '\0');
    struct slice have = evaluate(source.data, &arena);
    assert_true(slice_equal(have, slice_from(SEQUENCE("->"))));
    buf_clear(&source);
    for (int i = 0; i < 30; i++)
        buf_lit(&source, "[(");
    for (int i = 0; i < 300; i++)
        buf_lit(&source, "a + ");
    buf_byte(&source, '\0');
    have = evaluate(source.data, &arena);
    assert_true(slice_equal(have, slice_from(END)));
    buf_deinit(&source);
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_way), cmocka_unit_test(test_choosing),
                                       cmocka_unit_test(test_letters), cmocka_unit_test(test_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
