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
#include "base/map.h"
#include "core/catalog/catalog.h"

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

/*
 * What one request has found of the names that its items have, which may be many: each is looked for once, and all
 * indices, which count where a name has none, are looked at once. As for a call of its own, the present indices matter,
 * also to a read of the past: its dialect is that of the client. The request gets its own catalog with its view.
 */
struct dialect_names {
    struct map known;        /* names, to their dialects */
    struct catalog *catalog; /* of the first item that needs one, for all of them; NULL: none yet */
    bool all_known;
    enum dialect all;    /* of all indices, with all_known */
    uint64_t looks_left; /* the caller may set it anew for an item */
};
#define DIALECT_NAMES_INIT ((struct dialect_names){.known = MAP_INIT, .looks_left = CATALOG_LOOKS_MAX})

/*
 * The dialect of an item, as that of a call of its own: by its type, else (`type` empty) by its index.
 * Returns: 0; REQUEST_REFUSED: the names take more comparisons than are left.
 */
int dialect_of_named(struct request *request, struct dialect_names *names, struct slice name, struct slice type,
                     enum dialect *ret_dialect) TL_MUST_USE;
void dialect_names_deinit(struct dialect_names *names);

#endif
