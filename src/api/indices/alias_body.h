/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of POST /_aliases, checked as a whole before any index is looked up: an invalid action
 * changes nothing, and neither do the other actions of the body.
 */
#ifndef TL_API_ALIAS_BODY_H
#define TL_API_ALIAS_BODY_H

#include "api/request/request.h"
#include "json/json.h"

/*
 * Checks a body, with 7.10's error texts and locations: first which members each action may have
 * and of which kind, then which it must have. An absent root is not checked.
 * Returns: 0; REQUEST_REFUSED.
 */
int alias_body_check(struct request *request, const struct json_doc *doc) TL_MUST_USE;

#endif
