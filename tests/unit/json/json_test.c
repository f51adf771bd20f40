/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing: accepted texts, refused texts and their errors, positions, early stops. */
#include "../../lib/unit.h"

#include "base/buf.h"
#include "base/budget.h"
#include "json/each.h"
#include "json/json.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>

#define TEXT(literal)                   \
    {                                   \
        "" literal, sizeof(literal) - 1 \
    }

struct recorded {
    enum dialect dialect;
    struct slice text;
    const char *type;
    const char *message;
    int line, column;
};

static const struct recorded recorded[] = {
#include "recorded.inc"
};

/* Appends `text` with the server's copy of its input removed: "[Source: …; line". */
static void hide_source(struct buf *out, struct slice text)
{
    static const char mark[] = "[Source: ";
    while (text.data != NULL && text.len > 0) {
        if (slice_starts_with(text, slice_from(mark))) {
            const char *end = memmem(text.data, text.len, "; line", 6);
            assert_non_null(end);
            buf_lit(out, "[Source: \xe2\x80\xa6");
            text = slice_from_offset(text, (size_t)(end - text.data));
        }
        buf_byte(out, text.data[0]);
        text = slice_from_offset(text, 1);
    }
    buf_byte(out, '\0');
}

/* Goal: every recorded body gets the recorded result. */
static void test_parse_reports_recorded_errors(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    int wrong = 0;
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        const struct recorded *row = &recorded[i];
        unsigned flags = JSON_DOCUMENT | (row->dialect == DIALECT_5 ? JSON_DUPLICATES : 0);
        struct json_doc doc;
        struct problem problem = {0};
        int r = json_parse(&arena, row->text, row->dialect, flags, &doc, &problem);
        struct buf expected = BUF_INIT(BUF_UNLIMITED);
        struct buf actual = BUF_INIT(BUF_UNLIMITED);
        if (row->type != NULL && row->line != 0)
            buf_printf(&expected, "%s: %s\n at [Source: \xe2\x80\xa6; line: %d, column: %d]", row->type, row->message,
                       row->line, row->column);
        else if (row->type != NULL)
            buf_printf(&expected,
                       "%s: Compressor detection can only be called on some xcontent bytes or compressed "
                       "xcontent bytes",
                       row->type);
        buf_byte(&expected, '\0');
        if (r != 0) {
            struct slice name = problem.name.len > 0 ? problem.name : slice_from(problem_name(problem.type));
            buf_printf(&actual, "%.*s: ", SLICE_ARG(name));
            hide_source(&actual, problem.reason);
        } else {
            buf_byte(&actual, '\0');
        }
        if (strcmp(expected.data, actual.data) != 0) {
            print_error("dialect %d, %.*s\n  got      %s\n  expected %s\n", row->dialect, SLICE_ARG(row->text),
                        actual.data, expected.data);
            wrong++;
        }
        buf_deinit(&expected);
        buf_deinit(&actual);
        arena_reset(&arena);
    }
    arena_deinit(&arena);
    assert_int_equal(wrong, 0);
}

static int parse(struct arena *arena, struct slice text, unsigned flags, struct json_doc *ret_doc,
                 struct problem *ret_problem)
{
    return json_parse(arena, text, DIALECT_7, flags, ret_doc, ret_problem);
}

/*
 * Goal: nesting up to the limit is accepted; one more level, or a megabyte of brackets, is
 * refused.
 */
static void test_parse_refuses_text_beyond_depth_limit(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    struct problem problem;
    for (size_t depth = JSON_DEPTH_MAX - 1; depth <= JSON_DEPTH_MAX + 1; depth++) {
        char *text = malloc(2 * depth);
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        int r = parse(&arena, slice_make(text, 2 * depth), 0, &doc, &problem);
        assert_int_equal(r, depth <= JSON_DEPTH_MAX ? 0 : JSON_INVALID);
        free(text);
    }
    assert_true(slice_starts_with(problem.reason, SLICE_LIT("Document nesting depth (1001) exceeds")));
    size_t many = 3 * 300000 + 1;
    char *text = malloc(many);
    memset(text, '[', many);
    assert_int_equal(parse(&arena, slice_make(text, many), 0, &doc, &problem), JSON_INVALID);
    /* Brackets in strings, and many consecutive pairs of brackets, do not nest. */
    memset(text, '[', many);
    memcpy(text, "[\"", 2);
    memcpy(text + many - 2, "\"]", 2);
    assert_int_equal(parse(&arena, slice_make(text, many), 0, &doc, &problem), 0);
    text[0] = '[';
    for (size_t i = 1; i < many; i += 3)
        memcpy(text + i, i + 3 < many ? "{}," : "{}]", 3);
    assert_int_equal(parse(&arena, slice_make(text, many), 0, &doc, &problem), 0);
    free(text);
    arena_deinit(&arena);
}

static void test_parse_refuses_duplicate_names_in_objects_of_any_size(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    struct problem problem;
    for (int count = 2; count < 60; count++) {
        struct buf text = BUF_INIT(BUF_UNLIMITED);
        buf_lit(&text, "{\"o\":[{");
        for (int i = 0; i < count; i++)
            buf_printf(&text, "\"k%d\":{\"k0\":%d},", i, i);
        buf_lit(&text, "\"k\\u0030\":1}]}");
        assert_int_equal(parse(&arena, buf_as_slice(&text), 0, &doc, &problem), JSON_INVALID);
        assert_true(slice_starts_with(problem.reason, SLICE_LIT("Duplicate field 'k0'\n")));
        assert_int_equal(parse(&arena, buf_as_slice(&text), JSON_DUPLICATES, &doc, &problem), 0);
        yyjson_val *object = yyjson_arr_get_first(json_get_lit(doc.root, "o"));
        assert_int_equal(yyjson_get_int(json_get_lit(object, "k0")), 1); /* the last duplicate counts */
        buf_deinit(&text);
    }
    arena_deinit(&arena);
}

/* Goal: json_string_raw() locates strings in the text, also after comments and repaired parts. */
static void test_string_raw_locates_string_after_comments_and_repairs(void **state)
{
    (void)state;
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    struct problem problem;
    struct slice text = SLICE_LIT("\xef\xbb\xbf{/*\"path\":\"no\"*/ \"x\":\"\\ud800\", // \"\n\"path\" : "
                                  "\"\\/a\\\"b\\u00e9/\xc3\xa9\" }");
    assert_int_equal(parse(&arena, text, JSON_DOCUMENT, &doc, &problem), 0);
    yyjson_val *path = json_get_lit(doc.root, "path");
    assert_slice_equal(json_slice(path), "/a\"b\xc3\xa9/\xc3\xa9");
    assert_slice_equal(json_string_raw(&doc, path), "\\/a\\\"b\\u00e9/\xc3\xa9");
    assert_slice_equal(json_slice(json_get_lit(doc.root, "x")), "\xef\xbf\xbd");
    arena_deinit(&arena);
}

/* Goal: surrogate pairs are kept, lone surrogates replaced, at any position. */
static void test_parse_replaces_lone_surrogates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *value;
    } rows[] = {
        {"[\"\\ud83d\\ude00\"]", "\xf0\x9f\x98\x80"},
        {"[\"\\ude00\\ud83d\"]", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"[\"\\ud83d\\ud83d\\ude00\"]", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
        {"[\"\\ud83d\\n\\ude00\"]", "\xef\xbf\xbd\n\xef\xbf\xbd"},
        {"[\"\\ud83dx\\ude00\"]", "\xef\xbf\xbdx\xef\xbf\xbd"},
        {"[\"\\ud83d\\u0041\"]", "\xef\xbf\xbd"
                                 "A"},
        {"[\"\\ud83d\\ude00\\ude00\"]", "\xf0\x9f\x98\x80\xef\xbf\xbd"},
        {"[\"\\ud800\\\\ud800\"]", "\xef\xbf\xbd\\ud800"},
        {"[\"\xed\xa0\x80\"]", "\xef\xbf\xbd"},
        {"[\"\xf5\x80\x80\x80x\"]", "\xf3\xb0\x80\x80x"},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct json_doc doc;
        struct problem problem;
        assert_int_equal(parse(&arena, slice_from(rows[i].text), 0, &doc, &problem), 0);
        assert_slice_equal(json_slice(yyjson_arr_get_first(doc.root)), rows[i].value);
    }
    arena_deinit(&arena);
}

static void test_equal_compares_as_java(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {
        {"{\"a\":1,\"b\":[1,2]}", "{\"b\":[1,2],\"a\":1}", true},
        {"[1,2]", "[2,1]", false},
        {"1", "1.0", false},
        {"1.0", "1.00", true},
        {"-1", "18446744073709551615", false},
        {"12345678901234567890123", "12345678901234567890123", true},
        {"\"1\"", "1", false},
        {"null", "false", false},
        {"{}", "[]", false},
        {"{\"a\":null}", "{\"b\":null}", false},
        {"0.0", "-0.0", false},
    };
    struct arena arena = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct json_doc a, b;
        assert_int_equal(json_parse_stored(&arena, slice_from(rows[i].a), &a), 0);
        assert_int_equal(json_parse_stored(&arena, slice_from(rows[i].b), &b), 0);
        assert_int_equal(json_equal(a.root, b.root), rows[i].equal);
        assert_int_equal(json_equal(b.root, a.root), rows[i].equal);
    }
    arena_deinit(&arena);
}

/* Goal: a text truncated at any byte is refused, and no byte is read beyond its end. */
static void test_parse_refuses_truncated_text(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":[1,-2.5e+3,true,false,null,\"x\\u00e9\\n\xc3\xa9\"],/*c*/\"b\":{\"c\":\"\\ud83d\\ude00\"}}";
    struct arena arena = ARENA_INIT;
    for (enum dialect dialect = 0; dialect < DIALECT_COUNT; dialect++) {
        for (size_t len = 0; len < sizeof text - 1; len++) {
            char *copy = malloc(len + 1);
            memcpy(copy, text, len);
            struct json_doc doc;
            struct problem problem;
            assert_int_equal(json_parse(&arena, slice_make(copy, len), dialect, 0, &doc, &problem), JSON_INVALID);
            assert_true(problem.reason.len > 0);
            free(copy);
            arena_reset(&arena);
        }
    }
    arena_deinit(&arena);
}

/*
 * Goal: iteration accepts NULL and values of other kinds. With the undefined behaviour sanitizer
 * this also shows that no pointer arithmetic is done on NULL.
 */
static void test_iteration_skips_missing_containers(void **state)
{
    static const char *const texts[] = {"{}", "[]", "1", "\"a\"", "null"};
    struct arena arena = ARENA_INIT;
    size_t i, count, seen = 0;
    yyjson_val *key, *value;
    (void)state;
    json_obj_foreach (NULL, i, count, key, value)
        seen++;
    json_arr_foreach (NULL, i, count, value)
        seen++;
    for (size_t j = 0; j < sizeof texts / sizeof *texts; j++) {
        struct json_doc doc;
        struct problem problem;
        assert_int_equal(json_parse(&arena, slice_from(texts[j]), DIALECT_7, 0, &doc, &problem), 0);
        json_obj_foreach (doc.root, i, count, key, value)
            seen++;
        json_arr_foreach (doc.root, i, count, value)
            seen++;
    }
    assert_int_equal(seen, 0);
    arena_deinit(&arena);
}

static void test_iteration_visits_members_and_elements_in_order(void **state)
{
    struct arena arena = ARENA_INIT;
    struct buf seen = BUF_INIT(BUF_UNLIMITED);
    struct json_doc doc;
    struct problem problem;
    size_t i, count, j, inner;
    yyjson_val *key, *value, *element;
    (void)state;
    assert_int_equal(
        json_parse(&arena, SLICE_LIT("{\"a\":[1,[2,3],4],\"b\":[],\"c\":[5]}"), DIALECT_7, 0, &doc, &problem), 0);
    json_obj_foreach (doc.root, i, count, key, value) {
        buf_printf(&seen, "%zu/%zu %.*s", i, count, SLICE_ARG(json_slice(key)));
        json_arr_foreach (value, j, inner, element)
            buf_printf(&seen, " %zu/%zu %d", j, inner, (int)yyjson_get_int(element));
        buf_byte(&seen, ';');
    }
    assert_true(slice_equal(buf_as_slice(&seen), SLICE_LIT("0/3 a 0/3 1 1/3 0 2/3 4;1/3 b;2/3 c 0/1 5;")));
    buf_deinit(&seen);
    arena_deinit(&arena);
}

/* --- Early stops ---------------------------------------------------------------------------------- */

static uint64_t polls; /* number of reads of the clock, which advances by one with each read */

static uint64_t count_polls(void)
{
    return ++polls;
}

static struct buf long_text(const char *head, const char *item, bool numbered, const char *tail)
{
    struct buf text = BUF_INIT(BUF_UNLIMITED);
    buf_slice(&text, slice_from(head));
    for (unsigned i = 0; text.len < (size_t)2 << 20; i++) {
        if (numbered)
            buf_printf(&text, item, i);
        else
            buf_slice(&text, slice_from(item));
    }
    buf_slice(&text, slice_from(tail));
    return text;
}

/* Parses with a deadline after `deadline` reads of the clock. Returns: as json_parse(). */
static int parse_until(struct slice text, uint64_t deadline, struct account *ret_account)
{
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    struct problem problem;
    *ret_account = (struct account){.clock_us = count_polls, .deadline_us = deadline};
    struct budget_guard guard = {.account = ret_account};
    arena.guard = &guard;
    polls = 0;
    int r = json_parse(&arena, text, DIALECT_7, 0, &doc, &problem);
    if (r == JSON_INVALID)
        assert_true(problem.type != PROBLEM_NONE);
    arena_deinit(&arena);
    return r;
}

/*
 * Goal: in every phase of parsing, a long text is abandoned at the first read of the clock after
 * the deadline, and the clock is read several times for each megabyte.
 */
static void test_parse_stops_at_deadline(void **state)
{
    static const struct {
        const char *head, *item, *tail;
        bool numbered;
        int result;
        uint64_t polls; /* minimum for the whole text */
    } texts[] = {
        {"{\"a\":1", ",\"%u\":1", "}", true, 0, 8},     /* detection of duplicates */
        {"[1", ",1", "]", false, 0, 8},                 /* growth of the tree */
        {"[1", ",1", "", false, JSON_INVALID, 8},       /* scanned for the error */
        {"\"", "\\ud800", "\"", false, 0, 8},           /* repaired and parsed again */
        {"[", "/**/", "1]", false, 0, 8},               /* comments */
        {"\"", "a", "\xff\"", false, JSON_INVALID, 8},  /* in a string */
        {"", "1", "x", false, JSON_INVALID, 8},         /* in a number */
        {"[", "[],", "[{},[]", false, JSON_INVALID, 8}, /* depth check */
    };
    struct account account;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct buf text = long_text(texts[i].head, texts[i].item, texts[i].numbered, texts[i].tail);
        assert_int_equal(parse_until(buf_as_slice(&text), UINT64_MAX, &account), texts[i].result);
        assert_false(account_ended(&account));
        uint64_t all = polls;
        assert_true(all >= texts[i].polls);
        for (uint64_t deadline = 1; deadline < all; deadline += 1 + all / 10) {
            assert_int_equal(parse_until(buf_as_slice(&text), deadline, &account), JSON_INVALID);
            assert_int_equal(account.end, ACCOUNT_LATE);
            assert_int_equal(polls, deadline + 1);
        }
        buf_deinit(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_reports_recorded_errors),
        cmocka_unit_test(test_parse_refuses_text_beyond_depth_limit),
        cmocka_unit_test(test_parse_refuses_duplicate_names_in_objects_of_any_size),
        cmocka_unit_test(test_string_raw_locates_string_after_comments_and_repairs),
        cmocka_unit_test(test_parse_replaces_lone_surrogates),
        cmocka_unit_test(test_equal_compares_as_java),
        cmocka_unit_test(test_parse_refuses_truncated_text),
        cmocka_unit_test(test_iteration_skips_missing_containers),
        cmocka_unit_test(test_iteration_visits_members_and_elements_in_order),
        cmocka_unit_test(test_parse_stops_at_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
