/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The APIs that Elasticsearch has and this server does not.
 *
 * Without this their paths would be taken for something else: GET /_cat/allocation for a search for
 * the methods of an index called "_cat", GET /INDEX/_validate/query for a document of a type called
 * "_validate". A request for one is refused with this reason.
 */
#ifndef TL_API_UNSUPPORTED_API_H
#define TL_API_UNSUPPORTED_API_H

#include <stdbool.h>

#include "base/slice.h"

/*
 * Whether a path, as it came, belongs to such an API. Looks at names only: what the route table
 * leads somewhere with must be looked for there first.
 *
 * Returns: in *ret_name the API's name, without parts that stand for indices or ids:
 * "_cat/allocation", "_validate/query".
 */
bool unsupported_api_find(struct slice path, struct slice *ret_name);

#endif
