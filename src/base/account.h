/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts: the work of a request, counted in steps, and the conditions that end it early.
 *
 *  1. Loops over a client's input charge steps according to the size of the work: bytes, values,
 *     terms, documents. About a thousand steps take a few microseconds.
 *  2. An account ends for the first reason of enum account_end that applies, and stays ended. The
 *     results of the work are then discarded, so a loop that finds its account ended may return
 *     anything.
 *  3. Flags and the clock are polled every ACCOUNT_POLL_EVERY steps, well within a tenth of a
 *     second.
 *  4. The creator of an account provides its clock. The core has no accounts, because its results
 *     must be equal on all hosts; its scripts are limited by steps alone.
 *
 * An account is used by one thread at a time; its flags may be set from any thread.
 */
#ifndef TL_BASE_ACCOUNT_H
#define TL_BASE_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum account_end {
    ACCOUNT_RUNNING,
    ACCOUNT_SPENT,     /* the work exceeded steps_max */
    ACCOUNT_LATE,      /* the deadline has passed */
    ACCOUNT_ABANDONED, /* the client disconnected */
    ACCOUNT_CANCELLED, /* by another request */
    ACCOUNT_STOPPED,   /* the server is stopping */
    ACCOUNT_END_COUNT
};

/* The flags, in the order of their reasons in enum account_end. */
enum account_flag { ACCOUNT_FLAG_ABANDONED, ACCOUNT_FLAG_CANCELLED, ACCOUNT_FLAG_STOPPED, ACCOUNT_FLAG_COUNT };

#define ACCOUNT_POLL_EVERY ((uint64_t)1 << 18)

struct account {
    uint64_t steps;                                /* charged since the start */
    uint64_t steps_max;                            /* 0: no limit */
    uint64_t poll_at;                              /* number of steps at which flags and clock are polled next */
    const atomic_bool *flags[ACCOUNT_FLAG_COUNT];  /* owned by the creator; NULL: no such flag */
    uint64_t (*clock_us)(void);                    /* monotonic; NULL: no deadline */
    uint64_t deadline_us;                          /* by that clock; 0: none */
    enum account_end end;
};

/*
 * A fault injected by a test: every charge polls, and from the `in`-th poll on each account ends
 * that can end so, as the client, the clock or the server would end it. A poll is where an account
 * of a large call ends, which may be any charge.
 */
struct account_fault {
    atomic_bool polls_always;
    enum account_end end; /* ACCOUNT_LATE, or one of a flag */
    _Atomic uint64_t in;  /* 0: none, or it has happened */
    atomic_bool happened;
};

extern struct account_fault account_fault;

/* Counts down the injected fault. Returns: whether it has happened, and ends this account. */
bool account__has_fault(const struct account *account);

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

/* Polls flags, limit and clock now. Returns: false when the work must end. */
static inline bool account_poll(struct account *account)
{
    if (account_ended(account))
        return false;
    bool always = atomic_load_explicit(&account_fault.polls_always, memory_order_relaxed);
    account->end = always && account__has_fault(account) ? account_fault.end : account__end(account);
    account->poll_at = account->steps + (always ? 1 : ACCOUNT_POLL_EVERY);
    if (account->steps_max != 0 && account->poll_at > account->steps_max)
        account->poll_at = account->steps_max + 1;
    return !account_ended(account);
}

/* Charges steps; `account` NULL: the work is not counted. Returns: false when the work must end. */
static inline bool account_take(struct account *account, uint64_t steps)
{
    if (account == NULL)
        return true;
    account->steps += steps;
    return __builtin_expect(account->steps < account->poll_at, 1) ? !account_ended(account) : account_poll(account);
}

/*
 * Restricts the reasons to ACCOUNT_ABANDONED, and continues an ended account. For requests whose
 * changes are committed: the client needs their results.
 */
static inline void account_commit(struct account *account)
{
    account->flags[ACCOUNT_FLAG_CANCELLED] = account->flags[ACCOUNT_FLAG_STOPPED] = NULL;
    account->deadline_us = account->steps_max = 0;
    account->clock_us = NULL;
    account->end = ACCOUNT_RUNNING;
}

/* Resets the account to one that never ends, for short work such as the error response. */
static inline void account_reset(struct account *account)
{
    *account = (struct account){.end = ACCOUNT_RUNNING};
}

#endif
