/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a query, or the body of a search, refers to by name: documents that terms queries take their values from, and stored
 * scripts. Found by shape, wherever it stands: an object with [index], [id] and [path] is a lookup, one with [id] or [stored]
 * under a key that ends in "script" is a script. So it may find more than will be read, and never less.
 */
#ifndef TL_JSON_REFERENCES_H
#define TL_JSON_REFERENCES_H

#include <yyjson.h>

#include "base/arena.h"

struct json_reference {
    bool script;        /* `id` is a stored script's name; else it is a document */
    struct slice index; /* name or alias */
    struct slice type;  /* empty: none */
    struct slice id;
};

struct json_references {
    struct json_reference *items;
    size_t count;
    size_t capacity;
};

/* Adds what `value` refers to. What is added lives in `arena`, or in the JSON. */
void json_references(yyjson_val *value, struct arena *arena, struct json_references *refers);

/* Adds one that is known by other means. */
void json_references_add(struct json_references *refers, struct arena *arena, const struct json_reference *refer);

#endif
