/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers of writes that wait until other hosts have reached a timestamp, in the orders in which they
 * end: by timestamp, for each reach of its own, and by time limit. Neither removes more than what
 * ends: a message from a host costs the number of answers that it releases times the logarithm of
 * those that wait.
 *
 * Not for several threads at once; distribution.c has the lock.
 */
#ifndef TL_API_HELD_ANSWERS_H
#define TL_API_HELD_ANSWERS_H

#include "base/heap.h"
#include "base/list.h"
#include "base/types.h"
#include "journal/journal.h"

struct request;

struct held_answer {
    struct request *request;
    tl_ts ts;
    enum journal_reach reach;
    uint64_t until_us; /* boot clock */
    struct list link;  /* in held_answers.by_limit, later in the caller's list */
    /* The table's. */
    struct heap_node node;
    uint64_t number; /* in order of arrival */
};

struct held_answers {
    struct heap by_ts[JOURNAL_REACH_CLUSTER + 1]; /* by held_answer.node */
    struct list by_limit;                         /* by held_answer.link */
    uint64_t last_number;
};

void held_answers_init(struct held_answers *held);
/* Requires: it is empty. */
void held_answers_deinit(struct held_answers *held);

static inline bool held_answers_empty(const struct held_answers *held)
{
    return list_empty(&held->by_limit);
}

/* Adds an answer. Requires: `until_us` is not below that of an answer that was added before. */
void held_answers_add(struct held_answers *held, struct held_answer *answer);

/* Returns: the oldest timestamp that an answer of this reach waits for; 0: none waits. */
tl_ts held_answers_oldest(const struct held_answers *held, enum journal_reach reach);

/* Moves the answers of a reach that wait for `ts` or less to the end of `to`, by `link`. */
void held_answers_take_reached(struct held_answers *held, enum journal_reach reach, tl_ts ts, struct list *to);
/* Moves the answers whose time limit is `now` or earlier to the end of `to`. */
void held_answers_take_expired(struct held_answers *held, uint64_t now, struct list *to);
/* Moves the answers whose clients have left to the end of `to`. Looks at all of them. */
void held_answers_take_abandoned(struct held_answers *held, struct list *to);
/* Lowers the time limits to `until_us` at most. Looks at all of them. */
void held_answers_limit(struct held_answers *held, uint64_t until_us);

#endif
