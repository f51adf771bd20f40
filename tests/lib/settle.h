/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that close a store or crash it: makes everything written durable. */
#ifndef TL_TESTS_LIB_SETTLE_H
#define TL_TESTS_LIB_SETTLE_H

#include <unistd.h>

#include "base/check.h"
#include "store/store.h"

/* Makes a checkpoint without a record, and waits until it is durable. */
static inline void settle(struct store *store)
{
    int r = store_checkpoint(store, SLICE_NONE);
    while (r == 0 && (r = store_checkpointed(store)) == 0)
        usleep(200);
    INSIST(r == 1);
}

#endif
