/* SPDX-License-Identifier: Apache-2.0 */
/* Matching term patterns against texts, from tables: pattern, text, whether it matches. */
#include "../../lib/unit.h"

#include "query/bound_query.h"

struct row {
    const char *pattern;
    const char *text;
    bool fits;
};

static const struct row wildcards[] = {
    {"a*c", "abc", true},    {"a*c", "ac", true},     {"a*c", "abd", false},      {"a?c", "abc", true},
    {"a?c", "ac", false},    {"*", "", true},         {"?", "", false},           {"a\\*c", "a*c", true},
    {"a\\*c", "abc", false}, {"*b*b*", "abab", true}, {"*b*b*b*", "abab", false}, {"?", "\xc3\xa4", true},
    {"", "", true},          {"", "a", false},        {"**a", "ba", true},
};

static const struct row regexps[] = {
    {"abc", "abc", true},
    {"abc", "abcd", false},
    {"a.c", "abc", true},
    {"a*", "", true},
    {"a*", "aaaa", true},
    {"a+b?", "aab", true},
    {"(ab|cd)+", "abcdab", true},
    {"(ab|cd)+", "abc", false},
    {"[a-c]{2,3}", "abc", true},
    {"[a-c]{2,3}", "a", false},
    {"[^x]y", "ay", true},
    {"[^x]y", "xy", false},
    {"a{3}", "aaa", true},
    {"a{3}", "aa", false},
    {"a{2,}", "aaaaa", true},
    {"\\.", ".", true},
    {"\\.", "a", false},
    {"\"a.c\"", "a.c", true},
    {"\"a.c\"", "abc", false},
    {"@b", "xxxb", true},
    {"()", "", true},
    {"(a*)*", "aaaa", true},
    {"(a|b|c|d)e", "de", true},
    {"a{0}b", "b", true},
    {"", "", true},
    {"|a", "|a", true},
    {"a||b", "|b", true},
    {"a||b", "b", false},
    {"a|)", ")", true},
    {"(|)", "|", true},
    {"(|)", "", false},
    {")", ")", true},
    {"[]a]", "]", true},
    {"[-a]", "-", true},
};

static void test_wildcard_matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wildcards / sizeof *wildcards; i++) {
        struct arena arena = ARENA_INIT;
        const struct term_pattern *pattern = term_pattern_new(&arena, slice_from(wildcards[i].pattern), false);
        if (term_pattern_wildcard(pattern, slice_from(wildcards[i].text), NULL) != wildcards[i].fits)
            fail_msg("%s on %s", wildcards[i].pattern, wildcards[i].text);
        arena_deinit(&arena);
    }
}

static void test_regexp_matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof regexps / sizeof *regexps; i++) {
        struct arena arena = ARENA_INIT;
        struct slice reason;
        const struct term_pattern *pattern =
            term_pattern_new_regexp(&arena, slice_from(regexps[i].pattern), false, &reason);
        if (pattern == NULL)
            fail_msg("%s: %.*s", regexps[i].pattern, SLICE_ARG(reason));
        if (term_pattern_regexp(pattern, slice_from(regexps[i].text), NULL) != regexps[i].fits)
            fail_msg("%s on %s", regexps[i].pattern, regexps[i].text);
        arena_deinit(&arena);
    }
}

/* Invalid and too large expressions are refused, and quickly. */
static void test_regexp_refuses_invalid_and_large(void **state)
{
    (void)state;
    static const char *const invalid[] = {"(",
                                          "a)",
                                          "a|",
                                          "a|b|",
                                          "(a|)",
                                          "(a|",
                                          "[",
                                          "[]",
                                          "[a-",
                                          "[a-]",
                                          "[a-]]",
                                          "[b-a]",
                                          "a{",
                                          "a{x}",
                                          "\\",
                                          "~a",
                                          "<1-5>",
                                          "a&b",
                                          "((a{1000}){1000}){1000}",
                                          "((((){9999}){9999}){9999}){9999}"};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        struct arena arena = ARENA_INIT;
        struct slice reason;
        if (term_pattern_new_regexp(&arena, slice_from(invalid[i]), false, &reason) != NULL)
            fail_msg("%s was accepted", invalid[i]);
        assert_true(reason.len > 0);
        arena_deinit(&arena);
    }
}

static void test_fuzzy_matches_within_edits(void **state)
{
    (void)state;
    static const struct {
        const char *term, *text;
        unsigned edits;
        bool fits;
    } rows[] = {{"surprize", "surprise", 1, true}, {"ab", "ba", 1, true},     {"abc", "abc", 0, true},
                {"abc", "abd", 0, false},          {"abc", "axyc", 1, false}, {"abc", "axyc", 2, true},
                {"abcd", "ab", 2, true},           {"\xc3\xa4", "a", 1, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena arena = ARENA_INIT;
        const struct term_pattern *pattern =
            term_pattern_new_fuzzy(&arena, slice_from(rows[i].term), rows[i].edits, 0, true);
        if (term_pattern_fuzzy(pattern, slice_from(rows[i].text), NULL) != rows[i].fits)
            fail_msg("%s ~%u %s", rows[i].term, rows[i].edits, rows[i].text);
        arena_deinit(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wildcard_matches),
        cmocka_unit_test(test_regexp_matches),
        cmocka_unit_test(test_regexp_refuses_invalid_and_large),
        cmocka_unit_test(test_fuzzy_matches_within_edits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
