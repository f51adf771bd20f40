/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mapping of one index: the fields of its documents and how they are indexed.
 *
 * A mapping is immutable and reference-counted. A change (PUT _mapping, or a document with an
 * unmapped field) creates a new mapping that shares no memory with the old one, so readers on other
 * threads can continue to use the old one. See README.md.
 *
 * An index has types: any number as in 5.x, or one named `_doc` as in 7.x. A document key begins
 * with the number of its type. Fields with the same path in different types are one field: they
 * share a field number and must have the same type.
 */
#ifndef TL_MAPPING_MAPPING_H
#define TL_MAPPING_MAPPING_H

#include "base/arena.h"
#include "base/buf.h"
#include "mapping/date.h"
#include "mapping/field.h"
#include "json/filter.h"
#include "json/json.h"

/* Outcomes. */
enum {
    MAPPING_REFUSED = 1, /* *ret_problem has the reason */
};

/* Limits of one mapping; the first two are defaults of the index settings named. */
#define MAPPING_TOTAL_FIELDS_MAX 1000 /* index.mapping.total_fields.limit */
#define MAPPING_TOTAL_FIELDS_LIMIT_MAX 10000 /* the most that a client may set it to */
#define MAPPING_DYNAMIC_FORMATS_MAX 32       /* dynamic_date_formats, with which each new text is compared */
#define MAPPING_DYNAMIC_TEMPLATES_BYTES_MAX 65536 /* dynamic_templates, each new field */
#define MAPPING_TEXT_BYTES_MAX 1048576            /* paths and parameters of all fields: mapping_text_bytes() */
#define MAPPING_FIELD_TEXT 512                    /* bytes of texts that take as long to copy as a field */
#define MAPPING_DEPTH_MAX 20          /* index.mapping.depth.limit */
#define MAPPING_TYPES_MAX 1000
#define MAPPING_BYTES_MAX (16u << 20) /* in encoded form (mapping_encode) */

struct mapping;

enum mapping_dynamic { DYNAMIC_INHERIT, DYNAMIC_TRUE, DYNAMIC_FALSE, DYNAMIC_STRICT };

/* One type of an index. Owned by its mapping. */
struct mapping_type {
    struct slice name;
    uint16_t number;            /* first part of its document keys; never reused in an index */
    struct mapping_field *root; /* a FIELD_OBJECT with an empty path */
    bool routing_required;
    bool source_enabled;                     /* if false, replies omit the source, which is stored all the same */
    const struct json_filter *source_filter; /* applied to the source in replies; NULL: none */
    bool date_detection;
    bool numeric_detection;
    bool hidden; /* only deletes have named it: tombstones need its number, clients do not see it */
};

/*
 * Creates a mapping without types from index settings, of which it reads index.analysis.* and
 * index.mapping.*. Settings may be flat or nested, with or without "index."; NULL: none. `dates` are
 * the rules by which its fields, and their later changes, read dates.
 *
 * Returns: 0; MAPPING_REFUSED.
 * Owns: the caller; mapping_unref() drops the reference.
 */
int mapping_new(yyjson_val *settings, enum date_rules dates, struct arena *arena, struct mapping **ret_mapping,
                struct problem *ret_problem) TL_MUST_USE;

/* Adds and drops a reference. Both may be called on any thread; mapping_unref() accepts NULL. */
struct mapping *mapping_ref(const struct mapping *mapping);
void mapping_unref(struct mapping *mapping);
TL_DEFINE_FREEP(struct mapping, mapping_unref)

/*
 * When a change is refused that gives a mapping more fields than index.mapping.total_fields.limit. Old logs need all
 * except the first.
 */
enum field_counting {
    /*
     * At the first field that is too many, or whose path and parameters exceed MAPPING_TEXT_BYTES_MAX with those of the
     * others; what each new field is compared with is limited, as below; documents are refused beyond
     * DOCUMENT_COPIES_MAX (document.h) and ANALYSIS_FILTERED_MAX (analysis.h).
     */
    FIELDS_TEXTS_BOUNDED,
    FIELDS_FILTERS_UNBOUNDED,  /* as the first; filters do not count */
    FIELDS_BOUNDED,            /* as the first, without the bounds of texts and copies */
    FIELDS_COUNTED_FIRST,      /* at the first field that is too many */
    FIELDS_COUNTED_LAST,       /* after all were added, which takes time with the square of their number */
    FIELDS_AND_COPIES_COUNTED, /* as FIELDS_COUNTED_FIRST, with the bound of copies */
};

/*
 * Creates the mapping that results from merging `body` into type `type`, which is added if new.
 *
 * `body` is `{"properties": …}`, or that under the type's name. An empty `type` (typeless calls)
 * is the only type of the index, or `_doc` if it has no type. `creating`: the call is PUT
 * /{index}, whose errors begin with "Failed to parse mapping [t]: ".
 *
 * Returns: 0; MAPPING_REFUSED. If nothing changes, *ret_mapping is a new reference to `base`.
 * Owns: the caller; mapping_unref() drops the reference.
 */
int mapping_merge(const struct mapping *base, struct slice type, yyjson_val *body, enum dialect dialect, bool creating,
                  enum field_counting counting, struct arena *arena, struct mapping **ret_mapping,
                  struct problem *ret_problem) TL_MUST_USE;

/*
 * As mapping_merge(), for the "mappings" of PUT /{index}. They have a member for each type in
 * DIALECT_5, if `typed` (include_type_name), or if the members look like types; else they are
 * typeless. Returns and Owns: as mapping_merge().
 */
int mapping_merge_all(const struct mapping *base, yyjson_val *mappings, enum dialect dialect, bool typed,
                      enum field_counting counting, struct arena *arena, struct mapping **ret_mapping,
                      struct problem *ret_problem) TL_MUST_USE;

/*
 * Adds the type if it does not exist, and makes it visible, as indexing does. `hidden`: a new type
 * is added hidden and an existing one stays as it is, for deletes. Returns and Owns: as
 * mapping_merge().
 */
int mapping_ensure_type(const struct mapping *base, struct slice type, bool hidden, enum dialect dialect,
                        struct arena *arena, struct mapping **ret_mapping, struct problem *ret_problem) TL_MUST_USE;

/*
 * Creates the mapping that results from new index settings: new analyzers and limits apply. If an
 * existing analyzer changes, fields with an analyzer become incomplete and are searched by scan;
 * with a path field the change is refused. Returns and Owns: as mapping_merge(); also
 * TL_ERR_CORRUPT.
 */
int mapping_apply_settings(const struct mapping *base, yyjson_val *settings, struct arena *arena,
                           struct mapping **ret_mapping, struct problem *ret_problem) TL_MUST_USE;

/*
 * Applies the `_source` settings of a type to the source of a document, for replies. *ret_shown is
 * `source` itself, or its filtered copy in `arena`, or SLICE_NONE if `_source` is disabled. `type`
 * NULL: no filter.
 * Returns: 0; TL_ERR_CORRUPT: the source is not JSON.
 */
int mapping_filter_source(const struct mapping_type *type, struct slice source, enum dialect dialect,
                          struct arena *arena, struct slice *ret_shown) TL_MUST_USE;
/*
 * Determines what mapping_filter_source() compares (json_filter_work()). Returns: 0; MAPPING_REFUSED: it is more than
 * MAPPING_FILTER_MAX, and MAPPING_FILTER_BYTE for each byte of the source; TL_ERR_CORRUPT as above.
 */
int mapping_filter_work(const struct mapping_type *type, struct slice source, struct arena *arena,
                        uint64_t *ret_work) TL_MUST_USE;
#define MAPPING_FILTER_MAX ((uint64_t)16 << 20)
#define MAPPING_FILTER_BYTE 32
/* Returns: whether mapping_filter_source() returns sources unchanged. */
static inline bool mapping_shows_whole_source(const struct mapping_type *type)
{
    return type == NULL || (type->source_enabled && type->source_filter == NULL);
}

/*
 * Encode and decode the catalog's form of a mapping, which is complete, field numbers included. The
 * caller of mapping_decode() owns the reference.
 */
void mapping_encode(const struct mapping *mapping, struct buf *buf);
int mapping_decode(struct slice bytes, struct mapping **ret_mapping) TL_MUST_USE; /* 0, TL_ERR_CORRUPT */

/*
 * Returns: the type of this name; NULL if unknown. "_doc" and the empty name also stand for the
 *          only type of an index, whatever its name.
 */
const struct mapping_type *mapping_type(const struct mapping *mapping, struct slice name);
/* Returns: the type with this number, or NULL. */
const struct mapping_type *mapping_type_by_number(const struct mapping *mapping, uint16_t number);
size_t mapping_type_count(const struct mapping *mapping);
/* Returns: the number of paths of fields, multi-fields included. */
size_t mapping_path_count(const struct mapping *mapping);
/* Returns: how many fields it may have: index.mapping.total_fields.limit. */
size_t mapping_fields_max(const struct mapping *mapping);
/* Returns: the bytes of the paths, parameters and copy_to of all fields, which each copy of the mapping copies. */
size_t mapping_text_bytes(const struct mapping *mapping);
/* Returns: as mapping_path_count(), and one for each MAPPING_FIELD_TEXT bytes of texts: what a copy takes. */
size_t mapping_copied_fields(const struct mapping *mapping);
/* Returns: a type by position. Requires: position < mapping_type_count(). */
const struct mapping_type *mapping_type_at(const struct mapping *mapping, size_t position);

/*
 * Returns: the field at a dotted path, or NULL: a leaf, a multi-field ("name.raw") or an object of
 *          any type of the index. A field alias gives its target.
 */
const struct mapping_field *mapping_field(const struct mapping *mapping, struct slice path);
/* Returns: the field with entries under this number, or NULL. */
const struct mapping_field *mapping_field_by_number(const struct mapping *mapping, uint16_t number);
/* Returns: the bound of field numbers; all numbers in use are below it. */
uint16_t mapping_field_count(const struct mapping *mapping);
typedef void mapping_visit(void *context, const struct mapping_field *field);
/*
 * Visits every leaf field, multi-fields included, whose path matches a wildcard pattern: by type,
 * then in the order of the field tree.
 * Returns: the number of fields visited.
 */
size_t mapping_fields_matching(const struct mapping *mapping, struct slice pattern, mapping_visit *visit,
                               void *context);

/*
 * Returns: the path field of the index, whose value is a document's path in the tree (README.md,
 *          "The path field"); NULL if the index has none.
 */
const struct mapping_field *mapping_path_field(const struct mapping *mapping);
/* Returns: the delimiter of paths; '/' without a path field. */
char mapping_path_delimiter(const struct mapping *mapping);
/*
 * Returns: whether the index supports renames: every document that can be renamed has the position
 *          of its path in its record. That holds if the path field, when it was chosen, was a new
 *          field of type keyword or path with complete, unmodified values. It is false for all
 *          mappings written by versions without renames.
 */
bool mapping_is_tree(const struct mapping *mapping);

/*
 * Appends the mapping of one type as GET _mapping returns it: {"dynamic": …, "properties": {…}},
 * with members in Elasticsearch's order.
 */
void mapping_render_type(const struct mapping *mapping, const struct mapping_type *type, enum dialect dialect,
                         struct buf *buf);
/*
 * Appends the mapping of all visible types: {"t": {…}, …}. In DIALECT_7, unless `typed`, the only
 * type of an index is appended without its name.
 */
void mapping_render(const struct mapping *mapping, enum dialect dialect, bool typed, struct buf *buf);
/* Appends {"leaf": {definition}} for one field, for GET _mapping/field. */
void mapping_render_field(const struct mapping_field *field, enum dialect dialect, struct buf *buf);

/* Returns: the analyzer of this name, built in or defined by index settings; NULL if unknown. */
const struct analyzer *mapping_analyzer(const struct mapping *mapping, struct slice name);

#endif
