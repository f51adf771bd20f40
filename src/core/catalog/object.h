/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects of the catalog that can be changed by members. */
#ifndef TL_CORE_CATALOG_OBJECT_H
#define TL_CORE_CATALOG_OBJECT_H

#include "base/slice.h"
#include "json/value.h"

struct core;

/*
 * Merges two objects: members of `now` replace those of `before`. With `kept` not NULL, only the
 * member `kept` is taken from `before`. Returns: JSON, valid until the step ends.
 */
struct slice object__merge(struct core *core, yyjson_val *before, yyjson_val *now, const char *kept);

#endif
