/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Media types: what a request says its body is, and what it wants back.
 */
#ifndef TL_API_MEDIA_H
#define TL_API_MEDIA_H

#include "api/request/request.h"

/* Reads the Accept header into request->form. Unknown types mean JSON, as in Elasticsearch. */
void media_accept(struct request *request);

/*
 * Refuses a body of a type that the dialect does not take. 5.6 takes anything and looks at the bytes.
 * Returns: 0, REQUEST_ANSWERED, REQUEST_REFUSED.
 */
int media_check(struct request *request) TL_MUST_USE;

#endif
