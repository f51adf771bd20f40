/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3, compared with results of other implementations. */
#include "../../lib/unit.h"

#include "base/siphash.h"

/*
 * Hashes of the bytes 0, 1, 2, ... with the key of bytes 0 to 15, the inputs of the paper's test of
 * 2-4.
 */
static const struct {
    size_t len;
    uint64_t hash;
} vectors[] = {
    {0, UINT64_C(0xabac0158050fc4dc)},  {1, UINT64_C(0xc9f49bf37d57ca93)},  {7, UINT64_C(0xd3927d989bb11140)},
    {8, UINT64_C(0x369095118d299a8e)},  {15, UINT64_C(0xd320d86d2a519956)}, {16, UINT64_C(0xcc4fdd1a7d908b66)},
    {63, UINT64_C(0x9d199062b7bbb3a8)},
};

static void test_siphash_vectors(void **state)
{
    const struct siphash_key key = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    char bytes[64];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)i;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        assert_true(siphash(&key, slice_make(bytes, vectors[i].len)) == vectors[i].hash);
}

/* hash() of CPython 3.11 with PYTHONHASHSEED=0 is SipHash-1-3 with a key of zeros. */
static void test_siphash_equals_cpython(void **state)
{
    const struct siphash_key key = {0, 0};
    (void)state;
    assert_true(siphash(&key, SLICE_LIT("a")) == UINT64_C(4644417185603328019));
    assert_true(siphash(&key, SLICE_LIT("abcdefg")) == UINT64_C(7904145750247929094));
    assert_true(siphash(&key, SLICE_LIT("abcdefgh")) == UINT64_C(4574395652268504554));
}

static void test_siphash_depends_on_key(void **state)
{
    const struct siphash_key keys[] = {{1, 2}, {2, 1}};
    (void)state;
    siphash_set_key(&keys[0]);
    uint64_t one = siphash_keyed(SLICE_LIT("name"));
    siphash_set_key(&keys[1]);
    assert_true(siphash_keyed(SLICE_LIT("name")) != one);
    assert_true(one == siphash(&keys[0], SLICE_LIT("name")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_siphash_vectors),
        cmocka_unit_test(test_siphash_equals_cpython),
        cmocka_unit_test(test_siphash_depends_on_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
