/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Near misses of Tidelock's own paths.
 *
 * Elasticsearch takes "/_sesion" for an index, or answers that the method is wrong; neither says
 * what to do. Only paths of our own are proposed: for all others the answer stays Elasticsearch's
 * word for word.
 */
#ifndef TL_API_NATIVE_PATH_H
#define TL_API_NATIVE_PATH_H

#include "api/request/request.h"

/* Returns: "; did you mean [/_session]?" for a path that leads nowhere but nearly to one of ours; else empty. */
struct slice native_path_suggest(struct request *request);

#endif
