/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads as of an earlier timestamp: which calls make them. A call with such a timestamp
 * (?timestamp=, ?as_of=) answers as of it or is refused; none ignores it.
 *
 * - Reads of documents make their view by request_read().
 * - Reads of the catalog get its state at that timestamp, or of their transaction, before their handler runs.
 * - In an update transaction they lock what they return, so that it stays true; state that no lock
 *   guards is refused there.
 * - Calls that show the present only (locks, sessions, statistics of the store), and calls that
 *   change something, are refused.
 */
#ifndef TL_API_AS_OF_H
#define TL_API_AS_OF_H

#include "api/request/request.h"

/* Runs the route's handler as of the timestamp or in the transaction that the request names. Returns: as a handler. */
int as_of_handle(struct request *request) TL_MUST_USE;

#endif
