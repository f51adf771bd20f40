/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of a request's work: what long loops over what a client sent draw steps from, and how they learn that they are
 * to end.
 *
 *  1. Work is charged where it is done, by its size: bytes looked at, values, terms, documents. About a thousand steps are a
 *     few microseconds.
 *  2. An account tells its owner to end for one of the reasons of enum account_end, the first one that is met. It goes on
 *     telling it (account_ended()). What is found then is dropped, so a loop that is told so may return anything.
 *  3. Flags and the clock are looked at every ACCOUNT_POLL_EVERY steps, well within a tenth of a second.
 *  4. Nothing here knows a clock: who makes an account gives it one. The core has no accounts, for what it does must come out
 *     alike everywhere; its scripts are bounded by steps alone.
 *
 * Used by one thread at a time; the flags may be set from any.
 */
#ifndef TL_BASE_ACCOUNT_H
#define TL_BASE_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum account_end {
    ACCOUNT_RUNNING,
    ACCOUNT_SPENT,     /* more than steps_max were wanted: the owner was to do only what is short */
    ACCOUNT_LATE,      /* the deadline has passed */
    ACCOUNT_ABANDONED, /* the connection broke: nobody waits for what would be found */
    ACCOUNT_CANCELLED, /* by another request */
    ACCOUNT_STOPPED,   /* the server stops */
    ACCOUNT_END_COUNT
};

/* The flags, in the order of the ends that they stand for. */
enum account_flag { ACCOUNT_FLAG_ABANDONED, ACCOUNT_FLAG_CANCELLED, ACCOUNT_FLAG_STOPPED, ACCOUNT_FLAG_COUNT };

#define ACCOUNT_POLL_EVERY ((uint64_t)1 << 18)

struct account {
    uint64_t steps;                                /* taken so far */
    uint64_t steps_max;                            /* 0: no bound */
    uint64_t look_at;                              /* at so many steps flags and clock are looked at next */
    const atomic_bool *flags[ACCOUNT_FLAG_COUNT];  /* NULL: none */
    uint64_t (*clock_us)(void);                    /* monotonic; NULL: there is no deadline */
    uint64_t deadline_us;                          /* by that clock; 0: none */
    enum account_end end;
};

static inline bool account_ended(const struct account *account)
{
    return account->end != ACCOUNT_RUNNING;
}

static inline enum account_end account__end(const struct account *account)
{
    for (int i = 0; i < ACCOUNT_FLAG_COUNT; i++)
        if (account->flags[i] != NULL && atomic_load_explicit(account->flags[i], memory_order_relaxed))
            return (enum account_end)(ACCOUNT_ABANDONED + i);
    if (account->steps_max != 0 && account->steps > account->steps_max)
        return ACCOUNT_SPENT;
    bool late = account->deadline_us != 0 && account->clock_us != NULL && account->clock_us() > account->deadline_us;
    return late ? ACCOUNT_LATE : ACCOUNT_RUNNING;
}

/* Looks at flags and clock now. Returns: false when the work is to end. */
static inline bool account_poll(struct account *account)
{
    if (account_ended(account))
        return false;
    account->end = account__end(account);
    account->look_at = account->steps + ACCOUNT_POLL_EVERY;
    if (account->steps_max != 0 && account->look_at > account->steps_max)
        account->look_at = account->steps_max + 1;
    return !account_ended(account);
}

/* Takes steps. Returns: false when the work is to end. Requires: account, which may be NULL for work that nobody counts. */
static inline bool account_take(struct account *account, uint64_t steps)
{
    if (account == NULL)
        return true;
    account->steps += steps;
    return __builtin_expect(account->steps < account->look_at, 1) ? !account_ended(account) : account_poll(account);
}

/* What is done cannot be taken back: from now on only a broken connection ends it, for the answer is wanted else. */
static inline void account_commit(struct account *account)
{
    account->flags[ACCOUNT_FLAG_CANCELLED] = account->flags[ACCOUNT_FLAG_STOPPED] = NULL;
    account->deadline_us = account->steps_max = 0;
    account->clock_us = NULL;
    account->end = ACCOUNT_RUNNING;
}

/* Begins anew: nothing ends it any more, such as the short work of saying why it ended. */
static inline void account_reset(struct account *account)
{
    *account = (struct account){.end = ACCOUNT_RUNNING};
}

#endif
