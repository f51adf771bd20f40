/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: Base64 as in RFC 4648. Method: the test vectors of its section 10, and all digits.
 */
#include "../../lib/unit.h"

#include "base/buf.h"
#include "base/base64.h"

static void test_base64_encodes_vectors_of_rfc_4648(void **state)
{
    (void)state;
    static const char *const vectors[][2] = {{"f", "Zg=="},        {"fo", "Zm8="},        {"foo", "Zm9v"},
                                             {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        struct slice bytes = slice_from(vectors[i][0]);
        struct buf encoded = BUF_INIT(BUF_UNLIMITED);
        for (size_t at = 0; at < bytes.len; at += 3) {
            char digits[4];
            base64_encode((const uint8_t *)bytes.data + at, bytes.len - at < 3 ? bytes.len - at : 3, digits);
            buf_slice(&encoded, slice_make(digits, sizeof digits));
        }
        assert_slice_equal(buf_as_slice(&encoded), vectors[i][1]);
        buf_deinit(&encoded);
    }
}

static void test_base64_value_is_inverse_of_encoding(void **state)
{
    (void)state;
    for (unsigned value = 0; value < 64; value++) {
        char digits[4];
        base64_encode(&(uint8_t){(uint8_t)(value << 2)}, 1, digits);
        assert_int_equal(base64_value((unsigned char)digits[0]), value);
    }
    static const uint32_t others[] = {0, '=', '-', '_', ' ', 0x7f, 0x80, 0x141, 0x10ffff};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(base64_value(others[i]), -1);
}

static void test_base64_url_digits_differ_from_62_on(void **state)
{
    (void)state;
    for (unsigned value = 0; value < 64; value++) {
        char digits[4], url[4];
        uint8_t bytes[3] = {(uint8_t)(value << 2), 0, (uint8_t)value};
        base64_encode(bytes, 3, digits);
        base64_url_encode(bytes, url);
        char expected = value == 62 ? '-' : value == 63 ? '_' : digits[0];
        assert_int_equal(url[0], expected);
        assert_int_equal(url[3], expected);
        assert_int_equal(base64_url_digit(value), expected);
        assert_int_equal(base64_url_digit(value | ~UINT64_C(63)), expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64_encodes_vectors_of_rfc_4648),
        cmocka_unit_test(test_base64_value_is_inverse_of_encoding),
        cmocka_unit_test(test_base64_url_digits_differ_from_62_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
