/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of all locks, assembled from the pages in which the core returns it (STATUS_LOCKS).
 */
#ifndef TL_API_LOCK_LIST_H
#define TL_API_LOCK_LIST_H

#include "api/request/request.h"

/* Receives the list, a JSON object that lives as long as the request. */
typedef int lock_list_taker(struct request *request, struct slice body);

/* Which locks, and as of which timestamp. */
struct lock_list_filter {
    struct slice index; /* only locks in this index; empty: all */
    struct slice path;  /* and in or above this directory; data NULL: all */
    tl_ts as_of;        /* the locks at that timestamp; 0: now. Requires: the request has this view */
    size_t size;        /* resources at most, whichever; 0: all */
};

/*
 * Asks for the list. What fits in one page is taken where the command is completed; the rest is
 * asked for on a worker. Either way the requests of others are applied between the pages.
 * Returns: REQUEST_PENDING, or what the taker returned; REQUEST_REFUSED.
 */
int lock_list_read(struct request *request, const struct lock_list_filter *filter, lock_list_taker *then) TL_MUST_USE;

#endif
