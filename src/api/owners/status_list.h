/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of sessions and transactions, and the locks of one session, assembled from the pages in
 * which the core returns them.
 */
#ifndef TL_API_STATUS_LIST_H
#define TL_API_STATUS_LIST_H

#include "api/request/request.h"
#include "core/command/command.h"

/* Receives the status, a JSON object that lives as long as the request. */
typedef int status_taker(struct request *request, struct slice body);

/*
 * Asks for all sessions, all transactions, or one session (`id`, empty: all). What fits in one
 * page is taken where the command is completed; the rest is asked for on a worker. Either way the
 * requests of others are applied between the pages.
 * Returns: REQUEST_PENDING, or what the taker returned; REQUEST_REFUSED.
 */
int status_list_read(struct request *request, enum status_what what, struct slice id, status_taker *then) TL_MUST_USE;

/*
 * The same for all transactions: of a cluster the update transactions, and the query transactions
 * of all live hosts, with `node_failures` of those that do not answer. A forwarded request gets the
 * query transactions of this host alone.
 */
int status_list_read_transactions(struct request *request, status_taker *then) TL_MUST_USE;

/* A taker, also of lock_list.h: the response is the status itself. */
int status_list_reply(struct request *request, struct slice body) TL_MUST_USE;

#endif
