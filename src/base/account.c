/* SPDX-License-Identifier: Apache-2.0 */
/* The fault that tests inject; see account.h. */
#include "base/account.h"

struct account_fault account_fault;

static bool can_end_so(const struct account *account)
{
    return account_fault.end == ACCOUNT_LATE ? account->clock_us != NULL
                                             : account->flags[account_fault.end - ACCOUNT_ABANDONED] != NULL;
}

bool account__has_fault(const struct account *account)
{
    if (!can_end_so(account))
        return false;
    uint64_t left = atomic_load_explicit(&account_fault.in, memory_order_relaxed);
    while (left > 0 && !atomic_compare_exchange_weak(&account_fault.in, &left, left - 1))
        ;
    if (left == 1)
        atomic_store(&account_fault.happened, true);
    return atomic_load(&account_fault.happened);
}
