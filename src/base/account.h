/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of a request's work: what long loops over what a client sent draw steps from, and how they learn that nobody
 * waits for them any more.
 *
 *  1. Work is charged where it is done, by its size: bytes looked at, values, terms, documents. About a thousand steps are a
 *     few microseconds.
 *  2. An account tells its owner to end for one of three reasons: its steps are used up (account.steps_max: the owner was to do
 *     only what is short), a flag was set by another thread (the connection broke, the server stops), or it has ended
 *     before. What is found then is dropped, so a loop that is told so may return anything.
 *  3. Flags are looked at every ACCOUNT_LOOK_EVERY steps, well within a tenth of a second. No clock takes part.
 *
 * Used by one thread at a time; the flags may be set from any.
 */
#ifndef TL_BASE_ACCOUNT_H
#define TL_BASE_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACCOUNT_FLAGS_MAX = 2 };
#define ACCOUNT_LOOK_EVERY ((uint64_t)1 << 18)

struct account {
    uint64_t steps;                              /* taken so far */
    uint64_t steps_max;                          /* 0: no bound */
    uint64_t look_at;                            /* at so many steps the flags are looked at next */
    const atomic_bool *flags[ACCOUNT_FLAGS_MAX]; /* NULL: none */
    bool stopped;                                /* by a flag */
    bool spent;                                  /* more than steps_max were wanted */
};

static inline bool account_over(const struct account *account)
{
    return account->stopped || account->spent;
}

/* Looks at the flags now. Returns: false when the work is to end. */
static inline bool account_look(struct account *account)
{
    for (int i = 0; i < ACCOUNT_FLAGS_MAX; i++)
        if (account->flags[i] != NULL && atomic_load_explicit(account->flags[i], memory_order_relaxed))
            account->stopped = true;
    account->look_at = account->steps + ACCOUNT_LOOK_EVERY;
    account->spent = account->spent || (account->steps_max != 0 && account->steps > account->steps_max);
    if (account->steps_max != 0 && account->look_at > account->steps_max)
        account->look_at = account->steps_max + 1;
    return !account_over(account);
}

/* Takes steps. Returns: false when the work is to end. Requires: account, which may be NULL for work that nobody counts. */
static inline bool account_take(struct account *account, uint64_t steps)
{
    if (account == NULL)
        return true;
    account->steps += steps;
    return __builtin_expect(account->steps < account->look_at, 1) ? !account_over(account) : account_look(account);
}

#endif
