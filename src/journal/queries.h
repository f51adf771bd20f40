/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query transactions that are open, for readers on any thread: they need no lock, so a read inside one needs to know no more
 * than its timestamp, and not to ask the core for it each time.
 *
 * The core says when one is used and when it ends. A transaction that is read through here alone would seem idle to the
 * core and be ended; so an entry is good for a quarter of the transaction's idle time only, and the read that finds it too
 * old goes the long way, by which the core notices.
 */
#ifndef TL_JOURNAL_QUERIES_H
#define TL_JOURNAL_QUERIES_H

#include "base/map.h"
#include "base/types.h"

#include <pthread.h>
#include <stdbool.h>

struct queries {
    pthread_mutex_t lock;
    struct map open; /* struct query by the transaction's id */
};

void queries_init(struct queries *queries);
void queries_deinit(struct queries *queries);

/* It was begun or used at `now`. */
void queries_seen(struct queries *queries, struct slice id, tl_ts read_ts, uint64_t timeout_us, tl_ts now);
/* It is over. One that is not there is fine. */
void queries_ended(struct queries *queries, struct slice id);
/* Returns: whether it is open and was used of late; then *ret_ts is the timestamp that it reads at. */
bool queries_find(struct queries *queries, struct slice id, tl_ts now, tl_ts *ret_ts);

#endif
