/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialect of calls whose path does not tell: that of the indices they are about.
 */
#ifndef TL_API_DIALECT_H
#define TL_API_DIALECT_H

#include "api/request.h"

/*
 * Returns: DIALECT_5 when the indices that `expression` names were all made by typed calls. An expression that names none,
 * or none that exist, is about all indices. Where there is no index at all: DIALECT_7.
 */
enum dialect dialect_of_indices(struct api *api, struct slice expression);

#endif
