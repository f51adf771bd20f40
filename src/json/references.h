/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References in a query or search body: documents that terms queries read their values from (terms
 * lookup), and stored scripts.
 *
 * References are recognised by shape alone, at any depth: an object with [index], [id] and [path]
 * is a terms lookup; an object with [id] or [stored] under a key that ends in "script" is a
 * script. The result may name objects that are never read, but no reference is missed.
 */
#ifndef TL_JSON_REFERENCES_H
#define TL_JSON_REFERENCES_H

#include "base/arena.h"
#include "json/value.h"

struct json_reference {
    bool script;        /* true: a stored script, of which only `id` is set; false: a document */
    struct slice index; /* name or alias */
    struct slice type;  /* absent or empty: not given */
    struct slice id;
};

struct json_references {
    struct json_reference *items;
    size_t count;
    size_t capacity;
};

/* Adds the references found in `value`. Their texts live in `arena` or in the JSON. */
void json_references(yyjson_val *value, struct arena *arena, struct json_references *list);

/* Adds one reference that was determined by other means. */
void json_references_add(struct json_references *list, struct arena *arena, const struct json_reference *refer);

#endif
