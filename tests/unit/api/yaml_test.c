/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML as Jackson lays it out.
 */
#include "../../lib/unit.h"

#include "api/request/yaml.h"

static void shows(const char *json, const char *yaml)
{
    struct arena arena = ARENA_INIT;
    struct json_doc doc;
    struct problem problem;
    struct buf buf = BUF_INIT(4096);
    assert_int_equal(json_parse(&arena, slice_from(json), DIALECT_7, 0, &doc, &problem), 0);
    yaml_write(&buf, doc.root, DIALECT_7);
    assert_slice_equal(buf_as_slice(&buf), yaml);
    buf_deinit(&buf);
    arena_deinit(&arena);
}

static void test_layout(void **state)
{
    (void)state;
    shows("{\"a\":1,\"b\":\"x\",\"c\":true,\"d\":null}", "---\na: 1\nb: \"x\"\nc: true\nd: null\n");
    shows("{\"a\":{\"c\":[1,2]}}", "---\na:\n  c:\n  - 1\n  - 2\n");
    shows("{\"e\":[{\"t\":\"x\",\"r\":1},{\"t\":\"y\"}]}", "---\ne:\n- t: \"x\"\n  r: 1\n- t: \"y\"\n");
    shows("{\"a\":{},\"b\":[]}", "---\na: {}\nb: []\n");
    shows("{\"a b\":1}", "---\n\"a b\": 1\n");
    shows("[1]", "---\n- 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layout)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
