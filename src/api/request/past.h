/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls read the past. A call that is asked for another moment (?timestamp=, ?as_of=) answers as of then or is refused;
 * none ignores it.
 *
 * - Reads of documents see to it themselves: request_read() makes their view.
 * - Reads of the catalog get its state of that moment, or of their transaction, before their handler runs.
 * - In an update transaction they lock what they tell, so that it stays so; what no lock guards is refused there.
 * - What is told of the present only (locks, sessions, figures of the store), and what changes something, is refused.
 */
#ifndef TL_API_PAST_H
#define TL_API_PAST_H

#include "api/request/request.h"

/* Runs the route's handler as of the moment or in the transaction that the request names. Returns: as a handler. */
int past_handle(struct request *request) TL_MUST_USE;

#endif
