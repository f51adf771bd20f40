/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that choose nodes, as `_nodes/{node_id}` takes them. */
#include "../../lib/unit.h"

#include "api/request/nodes.h"

static const struct cluster_node a = {.id = SLICE_LIT("AAAAAAAAAAAAAAAAAAAAAA"),
                                      .name = SLICE_LIT("host-a"),
                                      .address = SLICE_LIT("10.0.0.1:9200"),
                                      .self = true};
static const struct cluster_node b = {.id = SLICE_LIT("BBBBBBBBBBBBBBBBBBBBBB"),
                                      .name = SLICE_LIT("host-b"),
                                      .address = SLICE_LIT("[fe80::2]:9200"),
                                      .master = true};

/* Asserts which of both nodes a list names: "ab", "a", "b", "". */
static void names(const char *list, const char *wanted)
{
    assert_int_equal(node_is_named(&a, slice_from(list)), strchr(wanted, 'a') != NULL);
    assert_int_equal(node_is_named(&b, slice_from(list)), strchr(wanted, 'b') != NULL);
}

static void test_lists(void **state)
{
    (void)state;
    names("", "ab");
    names("_all", "ab");
    names("*", "ab");
    names("_local", "a");
    names("_master", "b");
    names("host-b", "b");
    names("host-*", "ab");
    names("AAAAAAAAAAAAAAAAAAAAAA", "a");
    names("AAAA*", "");
    names("10.0.*", "a");
    names("10.0.0.1:9200", "a");
    names("[fe80::2]", "b");
    names("host-a,host-b", "ab");
    names("nothing", "");
    names("data:true", "ab");
    names("data:false", "");
    names("_all,master:false,host-a", "a");
    names("ml:true", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
