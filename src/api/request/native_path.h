/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suggestions for misspelled paths of native calls, those that Elasticsearch lacks.
 *
 * Elasticsearch takes "/_sesion" for an index and the second part of "/fs/_changes" for a type, or
 * answers that the method is wrong; neither names a remedy. Only paths of native calls are
 * suggested: all other answers are Elasticsearch's, word for word.
 */
#ifndef TL_API_NATIVE_PATH_H
#define TL_API_NATIVE_PATH_H

#include "api/request/request.h"

/*
 * Returns: "; did you mean [/_session]?" for a path without a route that resembles a native one, or that
 *          has one after a name, or before one; else empty.
 */
struct slice native_path_suggest(struct request *request);

#endif
