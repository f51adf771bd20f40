/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that are held back, in the orders in which they end.
 *
 * Goal: those that end are taken, and no others; taking some of many looks at few of the rest.
 * Method: answers of empty requests; the order of timestamps differs from that of arrival. A node that the heap looks
 * at is moved.
 */
#include "../../lib/unit.h"

#include "api/request/held_answers.h"
#include "api/request/request.h"

enum { COUNT = 1000 };

struct fixture {
    struct held_answers held;
    struct held_answer answers[COUNT];
    struct request requests[COUNT];
};

static struct fixture fixture;

/* Timestamps 1 to COUNT, each once, in an order of which neither neighbours nor halves are sorted. */
static tl_ts ts_of(size_t i)
{
    return i * 389 % COUNT + 1;
}

static void fill(void)
{
    memset(&fixture, 0, sizeof fixture);
    held_answers_init(&fixture.held);
    for (size_t i = 0; i < COUNT; i++) {
        fixture.answers[i] = (struct held_answer){.request = &fixture.requests[i],
                                                  .ts = ts_of(i),
                                                  .reach = i % 2 == 0 ? JOURNAL_REACH_GROUP : JOURNAL_REACH_CLUSTER,
                                                  .until_us = 1000 + i / 10};
        held_answers_add(&fixture.held, &fixture.answers[i]);
    }
}

static size_t empty(struct list *list)
{
    size_t count = 0;
    while (!list_empty(list)) {
        list_remove(list->next);
        count++;
    }
    return count;
}

static void end(void)
{
    struct list rest = LIST_INIT(rest);
    held_answers_take_expired(&fixture.held, UINT64_MAX, &rest);
    (void)empty(&rest);
    assert_true(held_answers_empty(&fixture.held));
    held_answers_deinit(&fixture.held);
}

static void test_take_reached_takes_one_reach_up_to_a_timestamp(void **state)
{
    struct list over = LIST_INIT(over);
    size_t expected = 0;
    (void)state;
    fill();
    for (size_t i = 0; i < COUNT; i += 2)
        expected += ts_of(i) <= 300;
    held_answers_take_reached(&fixture.held, JOURNAL_REACH_GROUP, 300, &over);
    tl_ts last = 0;
    list_for_each(link, &over)
    {
        const struct held_answer *answer = list_entry(link, struct held_answer, link);
        assert_int_equal(answer->reach, JOURNAL_REACH_GROUP);
        assert_true(answer->ts <= 300 && answer->ts > last);
        last = answer->ts;
    }
    assert_int_equal(empty(&over), expected);
    assert_true(held_answers_oldest(&fixture.held, JOURNAL_REACH_GROUP) > 300);
    assert_true(held_answers_oldest(&fixture.held, JOURNAL_REACH_CLUSTER) < 10);
    held_answers_take_reached(&fixture.held, JOURNAL_REACH_GROUP, 300, &over);
    assert_true(list_empty(&over));
    end();
    assert_int_equal(held_answers_oldest(&fixture.held, JOURNAL_REACH_GROUP), 0);
}

static void test_take_expired_takes_the_first_that_came(void **state)
{
    struct list over = LIST_INIT(over);
    (void)state;
    fill();
    held_answers_take_expired(&fixture.held, 999, &over);
    assert_true(list_empty(&over));
    held_answers_take_expired(&fixture.held, 1001, &over);
    assert_int_equal(empty(&over), 20);
    held_answers_limit(&fixture.held, 1050);
    held_answers_take_expired(&fixture.held, 1049, &over);
    assert_int_equal(empty(&over), 480);
    held_answers_take_expired(&fixture.held, 1050, &over);
    assert_int_equal(empty(&over), 500);
    end();
}

static void test_take_abandoned_takes_those_whose_client_has_left(void **state)
{
    struct list over = LIST_INIT(over);
    (void)state;
    fill();
    for (size_t i = 0; i < COUNT; i += 100)
        atomic_store(&fixture.requests[i].abandoned, true);
    held_answers_take_abandoned(&fixture.held, &over);
    list_for_each(link, &over)
        assert_true(atomic_load(&list_entry(link, struct held_answer, link)->request->abandoned));
    assert_int_equal(empty(&over), COUNT / 100);
    end();
}

/* Of those that are not due only the heap's path is looked at: the request of none, and of few the timestamp. */
static void test_take_reached_does_not_look_at_the_rest(void **state)
{
    struct list over = LIST_INIT(over);
    size_t looked_at = 0;
    (void)state;
    fill();
    const struct heap *heap = &fixture.held.by_ts[JOURNAL_REACH_GROUP];
    size_t positions[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        positions[i] = fixture.answers[i].node.position;
    held_answers_take_reached(&fixture.held, JOURNAL_REACH_GROUP, heap_first(heap) == NULL ? 0 : 1, &over);
    assert_int_equal(empty(&over), 1);
    for (size_t i = 0; i < COUNT; i++)
        looked_at += positions[i] != fixture.answers[i].node.position;
    assert_in_range(looked_at, 1, 20); /* log2 of 500, and the one that is taken */
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take_reached_takes_one_reach_up_to_a_timestamp),
        cmocka_unit_test(test_take_expired_takes_the_first_that_came),
        cmocka_unit_test(test_take_abandoned_takes_those_whose_client_has_left),
        cmocka_unit_test(test_take_reached_does_not_look_at_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
