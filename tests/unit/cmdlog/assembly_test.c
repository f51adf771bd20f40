/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: entries are put together from their parts, also if a cursor starts between them and the earlier ones can be
 * read slowly only, or not at all. Method: puts in an array take the place of the log; the reader of earlier ones
 * answers so many times in a call.
 */
#include "../../lib/unit.h"

#include "base/alloc.h"
#include "cmdlog/etcd/assembly.h"
#include "cmdlog/etcd/envelope.h"

enum { PUTS_MAX = 16, VALUE_MAX = 128 };

/* The puts of a host "a"; the position of the n-th one is 10 * n. */
struct puts {
    char values[PUTS_MAX][VALUE_MAX];
    size_t lens[PUTS_MAX], count;
    unsigned answers, reads; /* that are left; that were answered */
    int without_answer;
};

static void add(struct puts *puts, uint64_t life, uint32_t part, uint32_t parts, const char *text)
{
    struct envelope envelope = {life, puts->count + 1, 0, part, parts};
    struct slice bytes = slice_from(text);
    char *value = puts->values[puts->count];
    assert_true(puts->count < PUTS_MAX && bytes.len + ENVELOPE_BYTES <= VALUE_MAX);
    envelope_write(&envelope, SLICE_LIT("a"), &bytes, 1, value);
    memcpy(value + ENVELOPE_BYTES, bytes.data, bytes.len);
    puts->lens[puts->count++] = ENVELOPE_BYTES + bytes.len;
}

static struct assembly_put put_at(const struct puts *puts, size_t at)
{
    return (struct assembly_put){SLICE_LIT("a"), 10 * (at + 1), at + 1, slice_make(puts->values[at], puts->lens[at])};
}

static int read_before(void *context, struct slice host, cmdlog_position before, struct buf *reply,
                       struct assembly_put *ret_put)
{
    struct puts *puts = context;
    assert_true(slice_is(host, "a"));
    if (puts->answers == 0)
        return puts->without_answer;
    puts->answers--;
    puts->reads++;
    assert_true(before > 10);
    *ret_put = put_at(puts, (before - 1) / 10 - 1);
    buf_slice(reply, ret_put->value);
    ret_put->value = buf_as_slice(reply);
    return 0;
}

static int take(struct assembly *assembly, const struct puts *puts, size_t at, struct cmdlog_entry *ret_entry)
{
    struct assembly_put put = put_at(puts, at);
    const char *damage = NULL;
    int r = assembly_take(assembly, &put, ret_entry, &damage);
    assert_int_equal(r == TL_ERR_CORRUPT, damage != NULL);
    return r;
}

static struct puts in_parts(void)
{
    struct puts puts = {.without_answer = CMDLOG_UNREACHABLE};
    static const char *const parts[] = {"one, ", "two, ", "three, ", "four, ", "five"};
    add(&puts, 7, 1, 1, "an entry before");
    for (uint32_t part = 1; part <= 5; part++)
        add(&puts, 7, part, 5, parts[part - 1]);
    return puts;
}

/* Each call reads some of the parts, so that they are all there in the end, however slow the link. */
static void test_earlier_parts_are_read_in_several_calls(void **state)
{
    (void)state;
    struct puts puts = in_parts();
    struct assembly assembly;
    struct cmdlog_entry entry;
    assembly_init(&assembly, 45, read_before, &puts); /* after the third part */
    for (int call = 0; call < 3; call++) {
        puts.answers = 1;
        assert_int_equal(take(&assembly, &puts, 4, &entry), call < 2 ? CMDLOG_UNREACHABLE : CMDLOG_END);
        assert_int_equal(assembly.position, call < 2 ? 45 : 50);
    }
    assert_int_equal(puts.reads, 3); /* none was read twice */
    assert_int_equal(take(&assembly, &puts, 5, &entry), 0);
    assert_true(slice_is(entry.bytes, "one, two, three, four, five"));
    assert_int_equal(entry.position, 60);
    assert_int_equal(entry.number, 6);
    assembly_deinit(&assembly);
}

/* Parts that were read for an entry are freed with the assembly, and when another put comes. */
static void test_parts_that_are_not_needed_are_freed(void **state)
{
    (void)state;
    struct puts puts = in_parts();
    struct assembly assembly;
    struct cmdlog_entry entry;
    assembly_init(&assembly, 40, read_before, &puts);
    puts.answers = 2;
    assert_int_equal(take(&assembly, &puts, 5, &entry), CMDLOG_UNREACHABLE);
    puts.answers = 2;
    assert_int_equal(take(&assembly, &puts, 4, &entry), CMDLOG_UNREACHABLE);
    puts.answers = 1;
    assert_int_equal(take(&assembly, &puts, 4, &entry), CMDLOG_END);
    assert_int_equal(take(&assembly, &puts, 5, &entry), 0);
    assert_true(slice_is(entry.bytes, "one, two, three, four, five"));
    assembly_deinit(&assembly);
    assembly_init(&assembly, 40, read_before, &puts);
    puts.answers = 2;
    assert_int_equal(take(&assembly, &puts, 4, &entry), CMDLOG_UNREACHABLE);
    assembly_deinit(&assembly);
}

static void test_earlier_parts_that_are_trimmed_or_damaged(void **state)
{
    (void)state;
    struct cmdlog_entry entry;
    for (int damaged = 0; damaged < 2; damaged++) {
        struct puts puts = in_parts();
        struct assembly assembly;
        puts.answers = damaged ? 2 : 1;
        puts.without_answer = CMDLOG_TRIMMED;
        puts.values[2][puts.lens[2] - 1] ^= 1; /* of the second part */
        assembly_init(&assembly, 45, read_before, &puts);
        assert_int_equal(take(&assembly, &puts, 4, &entry), damaged ? TL_ERR_CORRUPT : CMDLOG_TRIMMED);
        assembly_deinit(&assembly);
    }
}

/* An entry that a life did not complete is dropped, and parts of two lives are never one entry. */
static void test_parts_of_two_lives(void **state)
{
    (void)state;
    struct puts puts = {.without_answer = CMDLOG_UNREACHABLE};
    struct assembly assembly;
    struct cmdlog_entry entry;
    add(&puts, 7, 1, 2, "never ");
    add(&puts, 8, 1, 2, "all ");
    add(&puts, 8, 2, 2, "of it");
    add(&puts, 8, 1, 2, "a beginning ");
    add(&puts, 9, 2, 2, "and an end of another");
    assembly_init(&assembly, 0, read_before, &puts);
    assert_int_equal(take(&assembly, &puts, 0, &entry), CMDLOG_END);
    assert_int_equal(take(&assembly, &puts, 1, &entry), CMDLOG_END);
    assert_int_equal(take(&assembly, &puts, 1, &entry), CMDLOG_END); /* delivered again */
    assert_int_equal(take(&assembly, &puts, 2, &entry), 0);
    assert_true(slice_is(entry.bytes, "all of it"));
    assert_int_equal(entry.life, 8);
    assert_int_equal(take(&assembly, &puts, 3, &entry), CMDLOG_END);
    assert_int_equal(take(&assembly, &puts, 4, &entry), TL_ERR_CORRUPT);
    assembly_deinit(&assembly);
    puts.answers = 1;
    assembly_init(&assembly, 40, read_before, &puts);
    assert_int_equal(take(&assembly, &puts, 4, &entry), TL_ERR_CORRUPT);
    assembly_deinit(&assembly);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_earlier_parts_are_read_in_several_calls),
        cmocka_unit_test(test_parts_that_are_not_needed_are_freed),
        cmocka_unit_test(test_earlier_parts_that_are_trimmed_or_damaged),
        cmocka_unit_test(test_parts_of_two_lives),
    };
    return cmocka_run_group_tests_name("assembly", tests, NULL, NULL);
}
