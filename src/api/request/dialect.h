/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialect of calls whose path does not tell, that of the indices they are about, and of typed calls, which 6.x and 7.x
 * have as well as 5.x.
 *
 * On a server without indices there is nothing to go by but what the connection was used for last: a client that has asked
 * for /index/type/id is one of 5.x. That is a hint, and where there are indices it does not count.
 */
#ifndef TL_API_DIALECT_H
#define TL_API_DIALECT_H

#include "api/request/request.h"

/*
 * Returns: DIALECT_5 when the indices that `expression` names were all made by typed calls. An expression that names none,
 * or none that exist, is about all indices. Where there is no index at all, what the connection's note says; else DIALECT_7.
 */
enum dialect dialect_of_indices(struct request *request, struct slice expression);

/*
 * The dialect of /index/type/…: DIALECT_7 for what 5.x cannot have sent or made: the type `_doc`, a library of 7.x that says
 * so (User-Agent), or an index to which a client of 7.x gave a type of its own (include_type_name). Any other is one of 5.x,
 * whatever the index holds: the recipes of old books work beside typeless documents.
 */
enum dialect dialect_of_typed_call(struct request *request, struct slice index, struct slice type);

/* Notes the form of a call on its connection. */
void dialect_note(struct request *request, enum route_form form);

#endif
