/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a request, `Tidelock-Request: ID`: a write that is sent again with the same ID is
 * executed once (core/README.md, "Repeated requests").
 */
#ifndef TL_API_REQUEST_NAME_H
#define TL_API_REQUEST_NAME_H

#include "base/error.h"

struct request;

/*
 * Reads the header into request->named. Calls that write no documents refuse it, and so does a
 * request in a transaction.
 * Returns: 0; REQUEST_REFUSED.
 */
int request_name_read(struct request *request) TL_MUST_USE;

#endif
