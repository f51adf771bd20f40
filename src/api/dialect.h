/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialect of calls whose path does not tell: that of the indices they are about.
 *
 * On a server without indices there is nothing to go by but what the connection was used for last: a client that has asked
 * for /index/type/id is one of 5.x. That is a hint, and where there are indices it does not count.
 */
#ifndef TL_API_DIALECT_H
#define TL_API_DIALECT_H

#include "api/request.h"

/*
 * Returns: DIALECT_5 when the indices that `expression` names were all made by typed calls. An expression that names none,
 * or none that exist, is about all indices. Where there is no index at all, what the connection's note says; else DIALECT_7.
 */
enum dialect dialect_of_indices(struct request *request, struct slice expression);

/* Notes the form of a call on its connection. */
void dialect_note(struct request *request, enum route_form form);

#endif
