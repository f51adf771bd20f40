/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of POST /_aliases, looked at as a whole before any index is: an action that says what it must not, or in a way that it must
 * not, changes nothing, and neither do those beside it.
 */
#ifndef TL_API_ALIAS_BODY_H
#define TL_API_ALIAS_BODY_H

#include "api/request/request.h"
#include "json/json.h"

/*
 * Says what is wrong with a body in 7.10's words and at its places: what each action may have and of what kind, then what it must
 * have. A root that is absent is not looked at.
 * Returns: 0; REQUEST_REFUSED.
 */
int alias_body_check(struct request *request, const struct json_doc *doc) TL_MUST_USE;

#endif
