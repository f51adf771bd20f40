/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handlers, declared by the route table. Each reads its request, and answers or hands it on (request.h).
 */
#ifndef TL_API_HANDLERS_H
#define TL_API_HANDLERS_H

#include "api/request/reply.h"

#define X(methods, pattern, form, handler, params) int handle_##handler(struct request *request);
#include "api/request/routes.def"
#undef X

#endif
