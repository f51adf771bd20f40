/* SPDX-License-Identifier: Apache-2.0 */
/* Analyzers: tables of texts and their tokens; invalid settings. */
#include "mapping_lib.h"

#include "base/buf.h"
#include "mapping/analysis.h"

#include <stdio.h>

static bool print_token(void *context, const struct analysis_token *token)
{
    buf_printf(context, "%s%.*s", ((struct buf *)context)->len == 0 ? "" : "|", SLICE_ARG(token->text));
    return true;
}

static void assert_tokens(const struct analyzer *analyzer, const char *text, const char *tokens)
{
    struct arena arena = ARENA_INIT;
    struct buf buf = BUF_INIT(BUF_UNLIMITED);
    analyzer_run(analyzer, slice_from(text), &arena, print_token, &buf);
    if (!slice_is(buf_as_slice(&buf), tokens))
        fail_msg("%.*s of '%s': got %.*s, expected %s", SLICE_ARG(analyzer_name(analyzer)), text,
                 SLICE_ARG(buf_as_slice(&buf)), tokens);
    buf_deinit(&buf);
    arena_deinit(&arena);
}

static void test_analyzer_built_in_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *analyzer, *text, *tokens;
    } rows[] = {
        {"standard", "The 2 QUICK Brown-Foxes jumped over the lazy dog's bone.",
         "the|2|quick|brown|foxes|jumped|over|the|lazy|dog's|bone"},
        {"standard", "a.b.c 1.5 1,000 x.1 foo_bar _ __x example.com", "a.b.c|1.5|1,000|x|1|foo_bar|__x|example.com"},
        {"standard", "\xc3\x84rger na\xc3\xafve \xe6\x97\xa5\xe6\x9c\xac",
         "\xc3\xa4rger|na\xc3\xafve|\xe6\x97\xa5|\xe6\x9c\xac"},
        {"standard", "", ""},
        {"standard", " -- ", ""},
        {"simple", "It's 2 OK", "it|s|ok"},
        {"whitespace", " A b\tC-d\n", "A|b|C-d"},
        {"keyword", "A b ", "A b "},
        {"stop", "The fox and I", "fox|i"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_tokens(analysis_find(NULL, slice_from(rows[i].analyzer)), rows[i].text, rows[i].tokens);
    assert_null(analysis_find(NULL, SLICE_LIT("nope")));
}

static const char settings[] =
    "{\"tokenizer\":{"
    "\"pl\":{\"type\":\"path_hierarchy\",\"replacement\":\"-\"},"
    "\"pl1\":{\"type\":\"path_hierarchy\",\"replacement\":\"-\",\"skip\":1},"
    "\"prl\":{\"type\":\"path_hierarchy\",\"replacement\":\"X\",\"reverse\":true},"
    "\"p\":{\"type\":\"path_hierarchy\"},\"p1\":{\"type\":\"path_hierarchy\",\"skip\":1},\"p2\":{\"type\":"
    "\"path_hierarchy\",\"skip\":\"2\"},"
    "\"pr\":{\"type\":\"path_hierarchy\",\"reverse\":true},\"pr1\":{\"type\":\"path_hierarchy\",\"reverse\":"
    "\"true\",\"skip\":1},"
    "\"pd\":{\"type\":\"PathHierarchy\",\"delimiter\":\"-\",\"replacement\":\"/"
    "\"},\"short\":{\"type\":\"standard\",\"max_token_length\":3}},"
    "\"filter\":{\"words\":{\"type\":\"stop\",\"stopwords\":[\"x\",\"Y\"],\"ignore_case\":false},\"long\":{"
    "\"type\":\"length\",\"min\":2,\"max\":3},\"cut\":{\"type\":\"truncate\",\"length\":2}},"
    "\"analyzer\":{\"pl\":{\"tokenizer\":\"pl\",\"filter\":[\"lowercase\",\"asciifolding\"]},"
    "\"pl1\":{\"tokenizer\":\"pl1\",\"filter\":[\"lowercase\",\"asciifolding\"]},"
    "\"prl\":{\"tokenizer\":\"prl\",\"filter\":[\"lowercase\",\"asciifolding\"]},"
    "\"pw\":{\"tokenizer\":\"p\",\"filter\":[\"words\"]},"
    "\"p\":{\"tokenizer\":\"p\"},\"p1\":{\"tokenizer\":\"p1\"},\"p2\":{\"tokenizer\":\"p2\"},"
    "\"pr\":{\"tokenizer\":\"pr\"},\"pr1\":{\"tokenizer\":\"pr1\"},"
    "\"pd\":{\"tokenizer\":\"pd\"},\"short\":{\"tokenizer\":\"short\"},\"low\":{\"type\":\"custom\","
    "\"tokenizer\":\"lowercase\"},"
    "\"chain\":{\"tokenizer\":\"whitespace\",\"filter\":[\"asciifolding\",\"uppercase\",\"reverse\"]},"
    "\"words\":{\"tokenizer\":\"whitespace\",\"filter\":\"words\"},"
    "\"long\":{\"tokenizer\":\"whitespace\",\"filter\":[\"long\"]},\"cut\":{\"tokenizer\":\"keyword\","
    "\"filter\":[\"trim\",\"cut\"]},"
    "\"std\":{\"type\":\"standard\",\"stopwords\":\"_english_\"}},"
    "\"normalizer\":{\"n\":{\"type\":\"custom\",\"filter\":[\"lowercase\",\"asciifolding\"]}}}";

static void test_analyzer_from_settings_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *analyzer, *text, *tokens;
    } rows[] = {
        {"p", "/a/b/c", "/a|/a/b|/a/b/c"},
        {"p", "/a/b/", "/a|/a/b|/a/b/"},
        {"p", "a/b", "a|a/b"},
        {"p", "/", "/"},
        {"p", "//", "/|//"},
        {"p", "/a//b/", "/a|/a/|/a//b|/a//b/"},
        {"p", "", ""},
        {"p1", "/a/b/c", "/b|/b/c"},
        {"p1", "/a", ""},
        {"p2", "/a/b/c/d", "/c|/c/d"},
        {"pr", "/a/b/c", "/a/b/c|a/b/c|b/c|c"},
        {"pr1", "/a/b/c", "/a/b/|a/b/|b/"},
        {"pd", "one-two", "one|one/two"},
        {"pl", "/A/\xc3\x84/B", "-a|-a-a|-a-a-b"},
        {"pl", "\xc3\x86/\xc3\x86", "ae|ae-ae"},
        {"pl1", "/\xc3\x84/\xc3\x86/B", "-ae|-ae-b"},
        {"prl", "/A/\xc3\x86/B", "xaxaexb|axaexb|aexb|b"},
        {"prl", "\xe2\x80\x93\xc3\x86/", "-aex"},
        {"pw", "x/Y/z", "x/Y|x/Y/z"},
        {"short", "abcdefgh", "abc|def|gh"},
        {"low", "Ab1C", "ab|c"},
        {"chain", "\xc3\xa4x \xc3\x9f", "XA|SS"},
        {"words", "x X Y z", "X|z"},
        {"long", "a bb ccc dddd", "bb|ccc"},
        {"cut", "  abc ", "ab"},
        {"std", "The Fox", "fox"},
    };
    struct arena arena = ARENA_INIT;
    struct analysis *analysis;
    struct problem problem = {0};
    if (analysis_new(&arena, parse_json(&arena, settings), &arena, &analysis, &problem) != 0)
        fail_msg("%.*s", SLICE_ARG(problem.reason));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_tokens(analysis_find(analysis, slice_from(rows[i].analyzer)), rows[i].text, rows[i].tokens);
    const struct analyzer *normalizer = analysis_find_normalizer(analysis, SLICE_LIT("n"));
    assert_slice_equal(analyzer_normalize(normalizer,
                                          SLICE_LIT("\xc3\x84"
                                                    "B \xc5\x81"),
                                          &arena),
                       "ab l");
    char delimiter;
    assert_true(analyzer_is_path(analysis_find(analysis, SLICE_LIT("p")), &delimiter));
    assert_false(analyzer_is_path(analysis_find(analysis, SLICE_LIT("p1")), &delimiter));
    assert_false(analyzer_is_path(analysis_find(analysis, SLICE_LIT("pr")), &delimiter));
    assert_false(analyzer_is_path(analysis_find(analysis, SLICE_LIT("pd")), &delimiter));
    arena_deinit(&arena);
}

struct extent {
    const char *low, *high; /* of all tokens */
    size_t count;
};

static bool extend(void *context, const struct analysis_token *token)
{
    struct extent *extent = context;
    const char *end = token->text.data + token->text.len;
    extent->low = extent->count == 0 || token->text.data < extent->low ? token->text.data : extent->low;
    extent->high = extent->count == 0 || end > extent->high ? end : extent->high;
    extent->count++;
    return true;
}

/*
 * Goal: the tokens of a path share their bytes, also with filters, since their total length is
 * quadratic in that of the path.
 */
static void test_path_hierarchy_tokens_share_bytes(void **state)
{
    (void)state;
    static const char *const analyzers[] = {"p", "pl", "prl", "pw"};
    enum { NAMES = 4000, NAME_BYTES = 4 };
    struct arena arena = ARENA_INIT;
    struct analysis *analysis;
    struct problem problem = {0};
    assert_int_equal(analysis_new(&arena, parse_json(&arena, settings), &arena, &analysis, &problem), 0);
    char text[NAMES * NAME_BYTES];
    for (size_t i = 0; i < NAMES; i++)
        memcpy(text + i * NAME_BYTES, i % 2 == 0 ? "/A\xc3\x86" : "/Abc", NAME_BYTES);
    for (size_t i = 0; i < sizeof analyzers / sizeof *analyzers; i++) {
        struct extent extent = {0};
        analyzer_run(analysis_find(analysis, slice_from(analyzers[i])), slice_make(text, sizeof text), &arena, extend,
                     &extent);
        assert_in_range(extent.count, NAMES, NAMES + 1);
        assert_true(extent.high <= extent.low + sizeof text);
    }
    arena_deinit(&arena);
}

enum { WORDS = 4096, FILTERS = 16 };

/* Appends `count` filters "s0", … with all words of three letters up to WORDS. */
static void append_stop_filters(struct buf *buf, size_t count)
{
    buf_lit(buf, "{\"filter\":{");
    for (size_t i = 0; i < count; i++) {
        buf_printf(buf, "%s\"s%zu\":{\"type\":\"stop\",\"stopwords\":[", i == 0 ? "" : ",", i);
        for (size_t j = 0; j < WORDS; j++)
            buf_printf(buf, "%s\"%c%c%c\"", j == 0 ? "" : ",", (char)('a' + j / 256), (char)('a' + j / 16 % 16),
                       (char)('a' + j % 16));
        buf_lit(buf, "]}");
    }
    buf_lit(buf, "},\"analyzer\":{");
}

/* Appends an analyzer with FILTERS filters, "s0", … or all the first one. */
static void append_analyzer(struct buf *buf, size_t number, bool first_only)
{
    buf_printf(buf, "%s\"x%zu\":{\"tokenizer\":\"whitespace\",\"filter\":[", number == 0 ? "" : ",", number);
    for (size_t i = 0; i < FILTERS; i++)
        buf_printf(buf, "%s\"s%zu\"", i == 0 ? "" : ",", first_only ? 0 : i);
    buf_lit(buf, "]}");
}

/* Hundreds of analyzers that use one filter, each many times, have its words once. */
static void test_uses_of_a_filter_share_its_words(void **state)
{
    enum { ANALYZERS = 400, BYTES_MAX = 4 << 20 };
    struct arena scratch = ARENA_INIT, arena = ARENA_INIT;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct analysis *analysis;
    struct problem problem = {0};
    (void)state;
    append_stop_filters(&text, 1);
    for (size_t i = 0; i < ANALYZERS; i++)
        append_analyzer(&text, i, true);
    buf_append(&text, "}}", sizeof "}}");
    assert_int_equal(analysis_new(&arena, parse_json(&scratch, text.data), &scratch, &analysis, &problem), 0);
    assert_in_range(arena.used, WORDS * 3, BYTES_MAX);
    assert_tokens(analysis_find(analysis, SLICE_LIT("x399")), "aaa aaq ppp", "aaq");
    buf_deinit(&text);
    arena_deinit(&scratch);
    arena_deinit(&arena);
}

/* Names in any order, of which some begin others. Of two analyzers of one name the first counts. */
static void test_each_of_many_analyzers_is_found(void **state)
{
    enum { ANALYZERS = 300, STEP = 127 };
    struct arena scratch = ARENA_INIT, arena = ARENA_INIT;
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    struct analysis *analysis;
    struct problem problem = {0};
    char name[8];
    (void)state;
    buf_lit(&text, "{\"analyzer\":{");
    for (size_t i = 0; i < ANALYZERS; i++)
        buf_printf(&text, "\"n%zu\":{\"type\":\"custom\",\"tokenizer\":\"keyword\"},", i * STEP % ANALYZERS);
    buf_lit(&text, "\"n7\":{\"type\":\"custom\",\"tokenizer\":\"whitespace\"}}}");
    buf_append(&text, "", 1);
    assert_int_equal(analysis_new(&arena, parse_json(&scratch, text.data), &scratch, &analysis, &problem), 0);
    for (size_t i = 0; i < ANALYZERS; i++) {
        snprintf(name, sizeof name, "n%zu", i);
        const struct analyzer *found = analysis_find(analysis, slice_from(name));
        assert_non_null(found);
        assert_true(slice_is(analyzer_name(found), name));
    }
    assert_tokens(analysis_find(analysis, SLICE_LIT("n7")), "a  b", "a  b");
    assert_null(analysis_find(analysis, SLICE_LIT("n300")));
    assert_null(analysis_find(analysis, SLICE_LIT("n")));
    assert_non_null(analysis_find(analysis, SLICE_LIT("standard")));
    buf_deinit(&text);
    arena_deinit(&scratch);
    arena_deinit(&arena);
}

/* A token is not compared with all words of a filter: that would be 33 billion comparisons here. */
static void test_stop_words_are_found_at_once(void **state)
{
    enum { TOKENS = 500000 };
    struct arena scratch = ARENA_INIT, arena = ARENA_INIT;
    struct buf settings_text = BUF_INIT(BUF_UNLIMITED), text = BUF_INIT(BUF_UNLIMITED);
    struct extent extent = {0};
    struct analysis *analysis;
    struct problem problem = {0};
    (void)state;
    append_stop_filters(&settings_text, FILTERS);
    append_analyzer(&settings_text, 0, false);
    buf_append(&settings_text, "}}", sizeof "}}");
    assert_int_equal(analysis_new(&arena, parse_json(&scratch, settings_text.data), &scratch, &analysis, &problem), 0);
    for (size_t i = 0; i < TOKENS; i++)
        buf_printf(&text, "%s ", i % 1000 == 0 ? "apa" : "zzz");
    analyzer_run(analysis_find(analysis, SLICE_LIT("x0")), buf_as_slice(&text), &arena, extend, &extent);
    assert_int_equal(extent.count, TOKENS - TOKENS / 1000);
    buf_deinit(&settings_text);
    buf_deinit(&text);
    arena_deinit(&scratch);
    arena_deinit(&arena);
}

static const char path_filters[] =
    "{\"tokenizer\":{\"p\":{\"type\":\"path_hierarchy\"},"
    "\"far\":{\"type\":\"path_hierarchy\",\"skip\":9223372036854775807}},"
    "\"filter\":{\"none\":{\"type\":\"length\",\"max\":0}},"
    "\"analyzer\":{\"p\":{\"tokenizer\":\"p\",\"filter\":[\"reverse\",\"uppercase\",\"lowercase\",\"reverse\"]},"
    "\"far\":{\"tokenizer\":\"far\"},"
    "\"dropped\":{\"tokenizer\":\"p\",\"filter\":[\"reverse\",\"none\"]}}}";

/* Tokens of a path that filters change one by one keep the bytes of the last change only, and have a limit. */
static void test_filters_of_paths_are_bounded(void **state)
{
    enum { LEVELS = 1000, BYTES = LEVELS * (LEVELS + 1), MANY = 15000 };
    struct arena scratch = ARENA_INIT, arena = ARENA_INIT;
    struct analysis *analysis;
    struct problem problem = {0};
    (void)state;
    assert_int_equal(analysis_new(&scratch, parse_json(&scratch, path_filters), &scratch, &analysis, &problem), 0);
    static char text[2 * MANY];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 2 == 0 ? '/' : 'a';
    struct slice some = slice_make(text, (size_t)2 * LEVELS), many = slice_make(text, sizeof text);
    const struct analyzer *analyzer = analysis_find(analysis, SLICE_LIT("p"));
    struct extent extent = {0};
    size_t left = ANALYSIS_FILTERED_MAX;
    assert_true(analyzer_run_bounded(analyzer, some, &arena, &left, extend, &extent));
    assert_int_equal(extent.count, LEVELS);
    assert_int_equal(ANALYSIS_FILTERED_MAX - left, 4 * BYTES);
    assert_in_range(arena.used, BYTES, 2 * BYTES);
    extent.count = 0;
    assert_false(analyzer_run_bounded(analyzer, many, &arena, &left, extend, &extent));
    assert_in_range(extent.count, 1, LEVELS * 3);
    arena_reset(&arena);
    left = ANALYSIS_FILTERED_MAX;
    analyzer = analysis_find(analysis, SLICE_LIT("dropped"));
    assert_false(analyzer_run_bounded(analyzer, many, &arena, &left, extend, &extent));
    assert_in_range(arena.used, 0, sizeof text);
    assert_tokens(analysis_find(analysis, SLICE_LIT("far")), "/a/b", "");
    arena_deinit(&scratch);
    arena_deinit(&arena);
}

static void test_analysis_refuses_invalid_settings(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *reason;
    } rows[] = {
        {"{\"analyzer\":{\"a\":{}}}", "analyzer [a] must specify either an analyzer type, or a tokenizer"},
        {"{\"analyzer\":{\"a\":{\"type\":\"nope\"}}}", "Unknown analyzer type [nope] for [a]"},
        {"{\"analyzer\":{\"a\":{\"tokenizer\":\"nope\"}}}",
         "Custom Analyzer [a] failed to find tokenizer under name [nope]"},
        {"{\"analyzer\":{\"a\":{\"tokenizer\":\"b\"}},\"tokenizer\":{\"b\":{\"type\":\"nope\"}}}",
         "Unknown tokenizer type [nope] for [b]"},
        {"{\"analyzer\":{\"a\":{\"tokenizer\":\"keyword\",\"filter\":[\"nope\"]}}}",
         "Custom Analyzer [a] failed to find filter under name [nope]"},
        {"{\"analyzer\":{\"a\":{\"tokenizer\":\"keyword\",\"char_filter\":[\"html_strip\"]}}}",
         "analyzer [a]: char_filter is not supported"},
        {"{\"normalizer\":{\"n\":{\"tokenizer\":\"keyword\"}}}", "Custom normalizer [n] cannot configure a tokenizer"},
        {"{\"analyzer\":{\"a\":{\"tokenizer\":\"p\"}},\"tokenizer\":{\"p\":{\"type\":\"path_hierarchy\","
         "\"delimiter\":\"ab\"}}}",
         "delimiter must be a one char value"},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct analysis *analysis;
        struct problem problem = {0};
        assert_int_equal(analysis_new(&arena, parse_json(&arena, rows[i].settings), &arena, &analysis, &problem),
                         ANALYSIS_REFUSED);
        assert_slice_equal(problem.reason, rows[i].reason);
    }
    arena_deinit(&arena);
}

/* Goal: settings have the same meaning in all forms that clients write. */
static void test_mapping_accepts_all_forms_of_settings(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "{\"analysis\":{\"analyzer\":{\"a\":{\"tokenizer\":\"path_hierarchy\"}}}}",
        "{\"index\":{\"analysis\":{\"analyzer\":{\"a\":{\"tokenizer\":\"path_hierarchy\"}}}}}",
        "{\"index.analysis.analyzer.a.tokenizer\":\"path_hierarchy\"}",
        "{\"analysis.analyzer.a.tokenizer\":\"path_hierarchy\"}",
        "{\"index.analysis\":{\"analyzer.a\":{\"tokenizer\":\"path_hierarchy\"}},\"number_of_shards\":1}",
        "{\"index\":{\"analysis.analyzer\":{\"a\":{\"tokenizer\":\"path_hierarchy\"}}}}",
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct mapping *mapping;
        struct problem problem = {0};
        assert_int_equal(mapping_new(parse_json(&arena, forms[i]), DATE_RULES_7_10, &arena, &mapping, &problem), 0);
        char delimiter;
        const struct analyzer *analyzer = mapping_analyzer(mapping, SLICE_LIT("a"));
        if (analyzer == NULL || !analyzer_is_path(analyzer, &delimiter))
            fail_msg("%s", forms[i]);
        mapping_unref(mapping);
    }
    arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_analyzer_built_in_tokens),
        cmocka_unit_test(test_analyzer_from_settings_tokens),
        cmocka_unit_test(test_path_hierarchy_tokens_share_bytes),
        cmocka_unit_test(test_uses_of_a_filter_share_its_words),
        cmocka_unit_test(test_each_of_many_analyzers_is_found),
        cmocka_unit_test(test_stop_words_are_found_at_once),
        cmocka_unit_test(test_filters_of_paths_are_bounded),
        cmocka_unit_test(test_analysis_refuses_invalid_settings),
        cmocka_unit_test(test_mapping_accepts_all_forms_of_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
