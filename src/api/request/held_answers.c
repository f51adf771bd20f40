/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are held back; see held_answers.h. */
#include "api/request/held_answers.h"

#include "api/request/request.h"
#include "base/check.h"

static struct held_answer *answer_of(const struct heap_node *node)
{
    return container_of(node, struct held_answer, node);
}

static bool answer_precedes(const struct heap_node *a, const struct heap_node *b)
{
    const struct held_answer *first = answer_of(a), *second = answer_of(b);
    return first->ts != second->ts ? first->ts < second->ts : first->number < second->number;
}

void held_answers_init(struct held_answers *held)
{
    *held = (struct held_answers){.last_number = 0};
    list_init(&held->by_limit);
    for (int reach = 0; reach <= JOURNAL_REACH_CLUSTER; reach++)
        heap_init(&held->by_ts[reach], answer_precedes);
}

void held_answers_deinit(struct held_answers *held)
{
    REQUIRE(held_answers_empty(held));
    for (int reach = 0; reach <= JOURNAL_REACH_CLUSTER; reach++)
        heap_deinit(&held->by_ts[reach]);
}

void held_answers_add(struct held_answers *held, struct held_answer *answer)
{
    REQUIRE(list_empty(&held->by_limit) ||
            list_entry(held->by_limit.prev, struct held_answer, link)->until_us <= answer->until_us);
    answer->number = ++held->last_number;
    list_append(&held->by_limit, &answer->link);
    heap_push(&held->by_ts[answer->reach], &answer->node);
}

tl_ts held_answers_oldest(const struct held_answers *held, enum journal_reach reach)
{
    const struct heap_node *first = heap_first(&held->by_ts[reach]);
    return first == NULL ? 0 : answer_of(first)->ts;
}

static void take_answer(struct held_answers *held, struct held_answer *answer, struct list *to)
{
    heap_remove(&held->by_ts[answer->reach], &answer->node);
    list_remove(&answer->link);
    list_append(to, &answer->link);
}

void held_answers_take_reached(struct held_answers *held, enum journal_reach reach, tl_ts ts, struct list *to)
{
    struct heap_node *first;
    while ((first = heap_first(&held->by_ts[reach])) != NULL && answer_of(first)->ts <= ts)
        take_answer(held, answer_of(first), to);
}

void held_answers_take_expired(struct held_answers *held, uint64_t now, struct list *to)
{
    while (!list_empty(&held->by_limit)) {
        struct held_answer *oldest = list_entry(held->by_limit.next, struct held_answer, link);
        if (oldest->until_us > now)
            break;
        take_answer(held, oldest, to);
    }
}

void held_answers_take_abandoned(struct held_answers *held, struct list *to)
{
    list_for_each_safe(link, following, &held->by_limit)
    {
        struct held_answer *answer = list_entry(link, struct held_answer, link);
        if (atomic_load(&answer->request->abandoned))
            take_answer(held, answer, to);
    }
}

void held_answers_limit(struct held_answers *held, uint64_t until_us)
{
    list_for_each(link, &held->by_limit)
    {
        struct held_answer *answer = list_entry(link, struct held_answer, link);
        answer->until_us = answer->until_us < until_us ? answer->until_us : until_us;
    }
}
