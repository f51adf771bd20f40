/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mapping of one index: which fields its documents have and how they are searched.
 *
 * A mapping is immutable. A change (PUT _mapping, or a document with a field nobody has seen) makes a new
 * one that shares nothing with the old, so readers on other threads keep what they hold. See README.md.
 *
 * An index has types: several in the manner of 5.x, one named `_doc` in that of 7.x. A document key starts
 * with its type's number. Fields of equal path in different types are one field: they share a number and must
 * agree.
 */
#ifndef TL_MAPPING_MAPPING_H
#define TL_MAPPING_MAPPING_H

#include "base/arena.h"
#include "base/buf.h"
#include "mapping/field.h"
#include "json/filter.h"
#include "json/json.h"

/* Outcomes. */
enum {
    MAPPING_REFUSED = 1, /* *ret_problem says why */
};

/* Defaults of the index settings of the same purpose. */
#define MAPPING_TOTAL_FIELDS_MAX 1000 /* index.mapping.total_fields.limit */
#define MAPPING_DEPTH_MAX 20          /* index.mapping.depth.limit */
#define MAPPING_TYPES_MAX 1000        /* of one index */
#define MAPPING_BYTES_MAX (16u << 20) /* of one rendered mapping */

struct mapping;

enum mapping_dynamic { DYNAMIC_INHERIT, DYNAMIC_TRUE, DYNAMIC_FALSE, DYNAMIC_STRICT };

/* One type of an index. Belongs to its mapping. */
struct mapping_type {
    struct slice name;
    uint16_t number;            /* first part of its documents' keys; never reused in an index */
    struct mapping_field *root; /* a FIELD_OBJECT with an empty path */
    bool routing_required;
    bool source_enabled; /* a source is kept all the same, for queries, but not shown */
    const struct json_filter *source_filter; /* what of it is shown; NULL: all */
    bool date_detection;
    bool numeric_detection;
    bool hidden; /* only deletes have named it: its tombstones need it, and nobody sees it */
};

/*
 * A mapping with no types, for an index with these settings (flat, nested, with or without "index."; NULL:
 * none). Reads index.analysis.* and index.mapping.*.
 *
 * Returns: 0, MAPPING_REFUSED. Owns: the caller; mapping_unref.
 */
int mapping_new(yyjson_val *settings, struct arena *arena, struct mapping **ret_mapping,
                struct problem *ret_problem) TL_MUST_USE;

/* Shares a mapping; safe from any thread. */
struct mapping *mapping_ref(const struct mapping *mapping);
void mapping_unref(struct mapping *mapping);
TL_DEFINE_FREEP(struct mapping, mapping_unref)

/*
 * Makes the mapping that results from merging `body` into type `type`, creating the type where it is new.
 *
 * `body` is `{"properties": …}` or the same under the type's name. With an empty `type` (typeless calls) it
 * is the only type of the index, `_doc` where there is none. `creating` says it comes with PUT /{index}:
 * errors then read "Failed to parse mapping [t]: …".
 *
 * Returns: 0; MAPPING_REFUSED. *ret_mapping may be `base` itself, referenced once more, when nothing changed.
 * Owns: the caller; mapping_unref.
 */
int mapping_merge(const struct mapping *base, struct slice type, yyjson_val *body, enum dialect dialect, bool creating,
                  struct arena *arena, struct mapping **ret_mapping, struct problem *ret_problem) TL_MUST_USE;

/*
 * The same for the "mappings" of PUT /{index}: typeless in DIALECT_7 unless `typed` (include_type_name), a
 * member a type in DIALECT_5.
 */
int mapping_merge_all(const struct mapping *base, yyjson_val *mappings, enum dialect dialect, bool typed,
                      struct arena *arena, struct mapping **ret_mapping, struct problem *ret_problem) TL_MUST_USE;

/*
 * Makes sure the type is there and seen, as indexing into it does; `hidden`: there, as a delete does.
 * Returns and Owns: as mapping_merge().
 */
int mapping_ensure_type(const struct mapping *base, struct slice type, bool hidden, enum dialect dialect,
                        struct arena *arena, struct mapping **ret_mapping, struct problem *ret_problem) TL_MUST_USE;

/*
 * The same mapping under other settings: what of index.analysis and index.mapping changed, counts from now on. A field whose
 * analyzer is another is searched by scan.
 * Returns and Owns: as mapping_merge().
 */
int mapping_apply_settings(const struct mapping *base, yyjson_val *settings, struct arena *arena, struct mapping **ret_mapping,
                     struct problem *ret_problem) TL_MUST_USE;

/*
 * What clients get to see of a document's source, as the mapping's `_source` says: *ret_shown is `source` itself, what its
 * includes and excludes leave of it, in `arena`, or absent where it is not enabled. `type` NULL: all of it.
 * Returns: 0; TL_ERR_CORRUPT for a source that is no JSON.
 */
int mapping_filter_source(const struct mapping_type *type, struct slice source, enum dialect dialect, struct arena *arena,
                  struct slice *ret_shown) TL_MUST_USE;
/* Returns: whether that is always the whole source. */
static inline bool mapping_shows_whole_source(const struct mapping_type *type)
{
    return type == NULL || (type->source_enabled && type->source_filter == NULL);
}

/* The catalog's form: everything, numbers included. Decoding what was encoded gives an equal mapping. */
void mapping_encode(const struct mapping *mapping, struct buf *buf);
int mapping_decode(struct slice bytes, struct mapping **ret_mapping) TL_MUST_USE; /* 0, TL_ERR_CORRUPT */

/*
 * Types. An unknown name gives NULL. In DIALECT_7 forms "_doc" (and the empty name) means the only type,
 * whatever its name.
 */
const struct mapping_type *mapping_type(const struct mapping *mapping, struct slice name);
const struct mapping_type *mapping_type_by_number(const struct mapping *mapping, uint16_t number);
size_t mapping_type_count(const struct mapping *mapping);
const struct mapping_type *mapping_type_at(const struct mapping *mapping, size_t position);

/*
 * Fields. A path is dotted and names leaf fields, multi-fields ("name.raw") and objects. Field of any type.
 * Returns: NULL where there is none.
 */
const struct mapping_field *mapping_field(const struct mapping *mapping, struct slice path);
/* Returns: the field with entries under this number, or NULL. */
const struct mapping_field *mapping_field_by_number(const struct mapping *mapping, uint16_t number);
/* Numbers in use are below this. */
uint16_t mapping_field_count(const struct mapping *mapping);
/*
 * Calls `visit` for every leaf field (multi-fields included) whose path matches a wildcard pattern, in order
 * of path. Returns: how many.
 */
typedef void mapping_visit(void *context, const struct mapping_field *field);
size_t mapping_fields_matching(const struct mapping *mapping, struct slice pattern, mapping_visit *visit,
                               void *context);

/*
 * The index's path field: the one whose value places a document in the tree (README.md, "The path field").
 * Returns: NULL where the index is no tree. The second gives its delimiter, '/' by default.
 */
const struct mapping_field *mapping_path_field(const struct mapping *mapping);
char mapping_path_delimiter(const struct mapping *mapping);
/*
 * Returns: whether every document of the index that can be renamed says in its record where its path stands: the path field was new, a keyword or
 * path with complete entries of whole texts, as it became the path field. Never so of what versions wrote that did not know of it.
 */
bool mapping_is_tree(const struct mapping *mapping);

/*
 * Renders one type as GET _mapping shows it: {"dynamic": …, "properties": {…}}, keys in Elasticsearch's
 * order.
 */
void mapping_render_type(const struct mapping *mapping, const struct mapping_type *type, enum dialect dialect,
                         struct buf *buf);
/* Renders all: {"properties": …} in DIALECT_7 unless `typed`, else {"t": {…}, …}; {} without types. */
void mapping_render(const struct mapping *mapping, enum dialect dialect, bool typed, struct buf *buf);
/* Renders {"leaf": {definition}} of one field, for GET _mapping/field. */
void mapping_render_field(const struct mapping_field *field, enum dialect dialect, struct buf *buf);

/* Returns: the analyzer of this name, built in or of the index's settings; NULL where there is none. */
const struct analyzer *mapping_analyzer(const struct mapping *mapping, struct slice name);

#endif
