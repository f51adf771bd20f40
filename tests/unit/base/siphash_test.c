/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-1-3 against values of other implementations of it. */
#include "../../lib/unit.h"

#include "base/siphash.h"

/* Bytes 0, 1, 2, ... of these lengths under the key of bytes 0 to 15, as the paper's own test has it for 2-4. */
static const struct {
    size_t len;
    uint64_t hash;
} vectors[] = {
    {0, UINT64_C(0xabac0158050fc4dc)},  {1, UINT64_C(0xc9f49bf37d57ca93)},  {7, UINT64_C(0xd3927d989bb11140)},
    {8, UINT64_C(0x369095118d299a8e)},  {15, UINT64_C(0xd320d86d2a519956)}, {16, UINT64_C(0xcc4fdd1a7d908b66)},
    {63, UINT64_C(0x9d199062b7bbb3a8)},
};

static void test_vectors(void **state)
{
    const struct siphash_key key = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    char bytes[64];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)i;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        assert_true(siphash(&key, slice_make(bytes, vectors[i].len)) == vectors[i].hash);
}

/* hash() of CPython 3.11 with PYTHONHASHSEED=0, which is this under a key of zeros. */
static void test_the_same_as_python(void **state)
{
    const struct siphash_key key = {0, 0};
    (void)state;
    assert_true(siphash(&key, SLICE_LIT("a")) == UINT64_C(4644417185603328019));
    assert_true(siphash(&key, SLICE_LIT("abcdefg")) == UINT64_C(7904145750247929094));
    assert_true(siphash(&key, SLICE_LIT("abcdefgh")) == UINT64_C(4574395652268504554));
}

static void test_the_key_counts(void **state)
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
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_the_same_as_python),
        cmocka_unit_test(test_the_key_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
