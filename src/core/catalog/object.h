/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the catalog that are JSON, and are changed member by member. */
#ifndef TL_CORE_CATALOG_OBJECT_H
#define TL_CORE_CATALOG_OBJECT_H

#include <yyjson.h>

#include "base/slice.h"

struct core;

/*
 * What `now` says, and of what it does not name what `before` said: all of it (`kept` NULL), or the one member `kept`.
 * Returns: JSON; it lives until the step ends.
 */
struct slice object__merge(struct core *core, yyjson_val *before, yyjson_val *now, const char *kept);

#endif
