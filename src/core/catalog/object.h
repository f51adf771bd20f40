/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects of the catalog that can be changed by members. */
#ifndef TL_CORE_CATALOG_OBJECT_H
#define TL_CORE_CATALOG_OBJECT_H

#include "base/arena.h"
#include "base/slice.h"
#include "json/value.h"

struct core;
struct file_script;

/*
 * Merges two objects: members of `now` replace those of `before`. With `kept` not NULL, only the
 * member `kept` is taken from `before`. Returns: JSON, valid until the step ends.
 */
struct slice object__merge(struct core *core, yyjson_val *before, yyjson_val *now, const char *kept);

/* Returns: the name by which the catalog knows the script of a file; in the arena. */
struct slice object_file_script_key(const struct file_script *script, struct arena *arena);

#endif
