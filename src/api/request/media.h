/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Media types: Content-Type of a request's body, and Accept for its response.
 */
#ifndef TL_API_MEDIA_H
#define TL_API_MEDIA_H

#include "api/request/request.h"

/* Reads the Accept header into request->form. Unknown types mean JSON, as in Elasticsearch. */
void media_accept(struct request *request);

/*
 * Refuses a body that does not say that it is JSON, NDJSON or YAML. Programs on this host may leave
 * it out where 5.6 let them.
 * Returns: 0, REQUEST_ANSWERED, REQUEST_REFUSED.
 */
int media_check(struct request *request) TL_MUST_USE;

#endif
