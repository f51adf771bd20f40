/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of this host's query transactions as JSON, as the core writes that of the other
 * transactions.
 */
#ifndef TL_API_QUERY_STATUS_H
#define TL_API_QUERY_STATUS_H

#include "api/request/api_internal.h"
#include "core/command/command.h"
#include "journal/query_txn.h"

/* Writes one, open or ended, as an object. */
void query_status_write(struct api *api, const struct query_txn_info *info, bool ended, struct buf *to);

/* Writes all that are open as objects separated by commas; `more`: a comma precedes the first. */
void query_status_write_all(struct api *api, bool more, struct arena *arena, struct buf *to);

/* Gives a STATUS_SESSIONS those that belong to sessions, in `arena`. */
void query_status_of_sessions(struct api *api, struct arena *arena, struct status_command *status);

#endif
