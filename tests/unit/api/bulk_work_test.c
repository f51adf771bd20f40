/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates of the work of bulk items, by their sources. */
#include "../../lib/unit.h"

#include "api/documents/bulk_work.h"

static size_t words(const char *source)
{
    return bulk_work_words(slice_from(source));
}

static void test_words_are_values_of_all_kinds(void **state)
{
    (void)state;
    assert_int_equal(words(""), 0);
    assert_int_equal(words("{}"), 0);
    assert_int_equal(words("{\"a\":1}"), 1);
    assert_int_equal(words("{\"a\":[1,2,333],\"b\":true}"), 4);
    assert_int_equal(words("{\"text\":\"the quick  fox, it-self\"}"), 5);
    assert_int_equal(words("{\"path\":\"/-/-/-\"}"), 3);
    assert_int_equal(words("{\"text\":\"\\u4e00\\u4e01\"}"), 2);
}

/* A character of three or more bytes may be a word by itself; shorter ones are letters of words. */
static void test_words_of_other_scripts(void **state)
{
    (void)state;
    assert_int_equal(words("{\"t\":\"\xc3\xa4\xc3\xb6 a\xc3\xbc\"}"), 2);
    assert_int_equal(words("{\"t\":\"\xe4\xb8\x80\xe4\xb8\x81\xe4\xb8\x82\"}"), 3);
}

static void test_names_of_members_are_no_words(void **state)
{
    (void)state;
    assert_int_equal(words("{\"a long name\":{\"another name\":\"a:b \\\":c\"}}"), 3);
    assert_int_equal(words("{\"name\" : \"value\" , \"n\" : 1}"), 2);
}

/* Entries in posting lists cost nothing to remove. */
static void test_work_of_old_documents(void **state)
{
    struct slice source = SLICE_LIT("{\"text\":\"one two three four\"}");
    (void)state;
    assert_int_equal(bulk_work_of_old(source, false), source.len / WORK_BYTES);
    assert_int_equal(bulk_work_of_old(source, true), source.len / WORK_BYTES + 4 * WORK_WRITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_values_of_all_kinds),
        cmocka_unit_test(test_words_of_other_scripts),
        cmocka_unit_test(test_names_of_members_are_no_words),
        cmocka_unit_test(test_work_of_old_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
