/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean": similarity, cut and order, with the proposals that Elasticsearch was seen to make.
 */
#include "../../lib/unit.h"

#include "base/suggest.h"

static void proposes(const char *name, const char *expected)
{
    static const struct slice candidates[] = {
        SLICE_LIT("_source"), SLICE_LIT("_source_includes"), SLICE_LIT("_source_excludes"), SLICE_LIT("realtime"),
        SLICE_LIT("refresh"), SLICE_LIT("routing"),          SLICE_LIT("pretty"),           SLICE_LIT("type"),
        SLICE_LIT("op_type"),
    };
    struct buf buf = BUF_INIT(4096);
    suggest_append(&buf, " ->", slice_from(name), candidates, sizeof candidates / sizeof *candidates);
    if (!slice_is(buf_as_slice(&buf), expected))
        fail_msg("%s: got '%.*s', expected '%s'", name, SLICE_ARG(buf_as_slice(&buf)), expected);
    buf_deinit(&buf);
}

static void test_proposals(void **state)
{
    (void)state;
    proposes("foo", "");
    proposes("_sorce", " -> did you mean [_source]?");
    proposes("real_time", " -> did you mean [realtime]?");
    proposes("rout", " -> did you mean [routing]?");
    proposes("retry", " -> did you mean [pretty]?");
    proposes("optype", " -> did you mean any of [op_type, type]?");
    proposes("_source_bogus", " -> did you mean any of [_source_excludes, _source_includes, _source]?");
}

static void test_similarity(void **state)
{
    (void)state;
    assert_true(suggest_similarity(SLICE_LIT("a"), SLICE_LIT("a")) == 1);
    assert_true(suggest_similarity(SLICE_LIT("a"), SLICE_LIT("b")) == 0);
    assert_true(suggest_similarity(SLICE_NONE, SLICE_NONE) == 1);
    assert_true(suggest_similarity(SLICE_LIT("kitten"), SLICE_LIT("sitting")) > 0.57);
}

/* Names longer than any parameter are compared with nothing. */
static void test_long_names(void **state)
{
    char name[SUGGEST_BYTES_MAX + 2];
    (void)state;
    memset(name, 'a', sizeof name);
    assert_true(suggest_similarity(slice_make(name, sizeof name), slice_make(name, sizeof name)) == 0);
    assert_true(suggest_similarity(slice_make(name, SUGGEST_BYTES_MAX), slice_make(name, SUGGEST_BYTES_MAX)) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_proposals),
        cmocka_unit_test(test_similarity),
        cmocka_unit_test(test_long_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
