/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialect of calls whose path does not tell, that of the indices they are about, and of typed calls, which 6.x and 7.x
 * have as well as 5.x.
 *
 * It follows from the request and the indices that it names, and from nothing else: not from what its connection was used for
 * before, which behind a pool or a proxy is chance.
 */
#ifndef TL_API_DIALECT_H
#define TL_API_DIALECT_H

#include "api/request/request.h"

/*
 * Returns: DIALECT_5 when there are indices that `expression` names and all of them have types of typed calls; else DIALECT_7,
 * also for names that are no index's and for indices without any type yet. An empty expression is about all indices.
 */
enum dialect dialect_of_indices(struct request *request, struct slice expression);

/*
 * The dialect of /index/type/…: DIALECT_7 for what 5.x cannot have sent or made: the type `_doc`, a library of 7.x that says
 * so (User-Agent), or an index to which a client of 7.x gave a type of its own (include_type_name). Any other is one of 5.x,
 * whatever the index holds: the recipes of old books work beside typeless documents.
 */
enum dialect dialect_of_typed_call(struct request *request, struct slice index, struct slice type);

#endif
