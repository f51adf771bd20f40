/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: shard numbers equal those in recorded replies of 5.6 and 1.7 servers with five shards. */
#include "../../lib/unit.h"

#include "mapping/shard.h"

static void test_shard_equals_replies_of_5_6(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        uint32_t shard;
    } rows[] = {
        {"1", 3},
        {"2", 2},
        {"global", 2},
        {"/clinton", 0},
        {"/clinton/projects/elasticsearch", 0},
        {"/clinton/projects/elasticsearch/README.txt", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (shard_of(slice_from(rows[i].id), 5) != rows[i].shard)
            fail_msg("%s: got %u", rows[i].id, shard_of(slice_from(rows[i].id), 5));
        assert_int_equal(shard_of(slice_from(rows[i].id), 1), 0);
    }
}

static void test_shard_djb_equals_replies_of_1_7(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        uint32_t shard;
    } rows[] = {
        {"global", 0},   {"/clinton/projects/elasticsearch", 1},
        {"/clinton", 1}, {"1", 2},
        {"2", 3},        {"/clinton/projects/elasticsearch/README.txt", 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(shard_of_djb(slice_from(rows[i].id), 5), rows[i].shard);
}

/* Goal: the hash gives the published test values. */
static void test_murmur3_equals_published_values(void **state)
{
    (void)state;
    assert_int_equal(shard_murmur3("", 0, 0), 0);
    assert_int_equal(shard_murmur3("", 0, 1), 0x514e28b7);
    assert_int_equal(shard_murmur3("test", 4, 0), 0xba6bd213);
    assert_int_equal(shard_murmur3("Hello, world!", 13, 0x9747b28c), 0x24884cba);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shard_equals_replies_of_5_6),
        cmocka_unit_test(test_shard_djb_equals_replies_of_1_7),
        cmocka_unit_test(test_murmur3_equals_published_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
