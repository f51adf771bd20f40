/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialect of calls whose path does not decide it, that of the indices they are about, and of
 * typed calls, which 6.x and 7.x have as well as 5.x.
 *
 * It follows from the request and the indices that it names, and from nothing else: not from previous requests of its
 * connection, which depend on chance behind a proxy or in a pool.
 */
#ifndef TL_API_DIALECT_H
#define TL_API_DIALECT_H

#include "api/request/request.h"

/*
 * Returns: DIALECT_5 when there are indices that `expression` names and all of them have types of
 * typed calls; else DIALECT_7, also for names that are no index's and for indices without any type
 * yet. An empty expression is about all indices.
 */
enum dialect dialect_of_indices(struct request *request, struct slice expression);

/*
 * The dialect of /index/type/…: DIALECT_7 for requests that no client of 5.x sends: with the type
 * `_doc`, of a library of 7.x by its User-Agent, or of an index to which a client of 7.x gave a
 * type of its own (include_type_name). Any other is one of 5.x, whatever the index contains: the
 * recipes of old books work with typeless documents in the same index.
 */
enum dialect dialect_of_typed_call(struct request *request, struct slice index, struct slice type);

#endif
