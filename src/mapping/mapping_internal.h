/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structures of a mapping, and the functions that build one: a copy of the old mapping is
 * modified in place and then sealed. Only an unsealed mapping is modified.
 */
#ifndef TL_MAPPING_MAPPING_INTERNAL_H
#define TL_MAPPING_MAPPING_INTERNAL_H

#include "base/map.h"
#include "mapping/analysis.h"
#include "mapping/date.h"
#include "mapping/mapping.h"

#include <stdatomic.h>

/*
 * A type with the members that only rendering and dynamic mapping need. The slices are JSON texts;
 * data NULL: not given.
 */
struct type_record {
    struct mapping_type type; /* first member: every mapping_type of a mapping is in a type_record */
    struct slice meta;
    struct slice source;
    struct slice all;
    struct slice field_names;
    struct slice parent;
    struct slice date_formats;
    struct slice templates;
    yyjson_val *templates_value; /* `templates` parsed, as is the next; NULL: not given */
    yyjson_val *date_formats_value;
    bool date_detection_given;
    bool numeric_detection_given;
};

/* The field with a number, common to all types. */
struct numbered_field {
    struct slice path;
    bool complete;                     /* as in mapping_field; false if it is false in any type */
    const struct mapping_field *field; /* in the first type that has it; NULL: in no type */
};

/* The reason of a change after which the texts of a mapping would be too long. */
#define MAPPING_TEXTS_EXCEEDED \
    "Limit of [%d] bytes of the paths and parameters of all fields has been exceeded: use shorter names"

struct mapping {
    _Atomic uint32_t references;
    bool sealed;
    struct arena arena;
    struct slice settings; /* JSON of the nested settings it was made from, for the catalog */
    enum date_rules dates;
    struct analysis *analysis;
    size_t total_fields_max;
    size_t depth_max;
    struct type_record **types; /* in order of number */
    size_t type_count;
    size_t type_capacity;
    struct numbered_field *numbers; /* by field number */
    size_t number_count;
    size_t number_capacity;
    struct slice path_name; /* path of the path field, which never changes; data NULL: none yet */
    const struct mapping_field *path_field;
    char path_delimiter;
    bool is_tree;              /* mapping_is_tree() */
    bool has_copy_to;          /* at least one field has copy_to */
    size_t added_count;        /* while it is not sealed: fields added since it was copied, by merges that count */
    size_t text_bytes;         /* mapping_text_bytes(); while it is not sealed, of the copied and added fields */
    struct map by_path;        /* path → field in the first type that has it */
    struct map by_number_path; /* path → field number + 1 */
};

/* The state of a merge, passed to all functions that take part in it. */
struct merge {
    struct mapping *mapping;    /* the unsealed mapping */
    struct type_record *record; /* the type that is merged into */
    enum dialect dialect;
    struct arena *arena; /* for problems and scratch memory */
    struct problem *problem;
    bool incomplete; /* existing documents have no entries for added fields */
    bool type_is_new;
    bool stored; /* the text is from the catalog and was checked when it was first accepted */
    bool strict_dates; /* a text is detected as a date only if date_is_strict() */
    bool counts;       /* ends at the first added field that is more than the mapping may have */
    bool bounded;      /* FIELDS_BOUNDED or newer */
    bool texts_bounded; /* FIELDS_TEXTS_BOUNDED */
    /* dynamic_date_formats, or the default, compiled when one is first needed; NULL: none was */
    const struct date_format **date_formats;
    bool too_many;     /* out: it ended so */
};

/*
 * Returns: an unsealed deep copy. Owns: the caller; mapping_unref() drops the reference.
 */
struct mapping *mapping__copy(const struct mapping *base);
/*
 * As mapping_new(), for settings in the nested form of mapping->settings. Nesting them again would
 * split names with very many dots at different positions.
 * Assumes: `settings` outlives the mapping.
 */
int mapping__new_nested(yyjson_val *settings, struct arena *arena, struct mapping **ret_mapping,
                        struct problem *ret_problem) TL_MUST_USE;
/*
 * Records that existing documents may lack entries for a path and its multi-fields, whether or not
 * there is such a field yet.
 * Requires: the mapping is not sealed. Returns: false: the mapping has no number for the path left.
 */
bool mapping__mark_incomplete(struct mapping *mapping, struct slice path) TL_MUST_USE;
/*
 * Makes a mapping immutable: assigns field numbers, chooses the path field, builds the lookup
 * tables and checks the limits.
 * Returns: 0; MAPPING_REFUSED.
 */
int mapping__seal(struct mapping *mapping, struct arena *arena, struct problem *ret_problem) TL_MUST_USE;
/*
 * Checks references between the fields of a sealed mapping: field aliases and copy_to.
 * Returns: 0; MAPPING_REFUSED.
 */
int mapping__check_references(struct mapping *mapping, struct arena *arena, struct problem *ret_problem) TL_MUST_USE;
/*
 * Finds the path-hierarchy fields that a full-path field covers (README.md, invariant 8), sets
 * their full_path_field and removes their field number.
 * Assumes: fields are numbered, and `complete` equals that of their number.
 */
void mapping__seal_path_hierarchies(struct mapping *mapping);
/* Adds a type with defaults and an empty root. Requires: the mapping is unsealed. */
struct type_record *mapping__add_type(struct mapping *mapping, struct slice name);

/* Merges the body of a type: {"properties": …, "dynamic": …}. Returns: 0; MAPPING_REFUSED. */
int mapping__merge_root(struct merge *merge, yyjson_val *body) TL_MUST_USE;
/* Merges one property of `parent`; dots in `name` separate objects. Returns: 0; MAPPING_REFUSED. */
int mapping__merge_property(struct merge *merge, struct mapping_field *parent, struct slice name,
                            yyjson_val *definition) TL_MUST_USE;
/*
 * Finds the object `name` of `parent`, or adds an empty one.
 * Returns: 0; MAPPING_REFUSED: `name` is a leaf.
 */
int mapping__merge_object(struct merge *merge, struct mapping_field *parent, struct slice name,
                          struct mapping_field **ret_object) TL_MUST_USE;

/* Sets the problem of a merge. Returns: MAPPING_REFUSED. */
int mapping__refuse(struct merge *merge, enum problem_type type, const char *format, ...) TL_PRINTF(3, 4);

/* Returns: a new field with defaults, not yet in a list of `parent`; allocated in `arena`. */
struct mapping_field *field__new(struct arena *arena, struct mapping_field *parent, struct slice name, bool is_multi);
/* Returns: the bytes of its path, parameters and copy_to, without those of fields below it. */
size_t field__text_bytes(const struct mapping_field *field);
/* Inserts a field into a list in order of name. */
void field__insert(struct arena *arena, struct mapping_field ***list, size_t *count, struct mapping_field *field);
/* Return: the child or the multi-field of this name, or NULL. */
struct mapping_field *field__child(const struct mapping_field *field, struct slice name);
struct mapping_field *field__multi(const struct mapping_field *field, struct slice name);
/* Returns: the field at a dotted path below `root`, multi-fields included, or NULL. */
struct mapping_field *field__find(struct mapping_field *root, struct slice path);
static inline bool field__is_object(const struct mapping_field *field)
{
    return field->type == FIELD_OBJECT || field->type == FIELD_NESTED;
}

/*
 * Parameters. A field has the non-default ones as JSON, in the order of the table in parameter.c.
 * field__resolve() sets the members of struct mapping_field from them.
 */
/*
 * Reads the parameters of a leaf's definition, `fields` and `copy_to` excepted, into
 * field->parameters.
 * Returns: 0; MAPPING_REFUSED.
 */
int field__read_parameters(struct merge *merge, struct mapping_field *field, yyjson_val *definition) TL_MUST_USE;
/*
 * Refuses values that are invalid for a parameter, and values that would have no effect in this
 * server.
 * Returns: 0; MAPPING_REFUSED.
 */
int field__check_parameter(struct merge *merge, const struct mapping_field *field, const char *name,
                           yyjson_val *value) TL_MUST_USE;
/*
 * Replaces the parameters of `field` by those of `from`.
 * Returns: 0; MAPPING_REFUSED: a parameter that must not change differs.
 */
int field__merge_parameters(struct merge *merge, struct mapping_field *field,
                            const struct mapping_field *from) TL_MUST_USE;
/* Sets the members of a leaf from its parameters. Returns: 0; MAPPING_REFUSED. */
int field__resolve(struct merge *merge, struct mapping_field *field) TL_MUST_USE;
/* Returns: the JSON text of a parameter; SLICE_NONE if it has the default. */
struct slice field__parameter(const struct mapping_field *field, const char *name);

/* Finds a type by name. Returns: false if unknown. */
bool field_type__find(struct slice name, enum field_type *ret_type);
/*
 * Returns: whether Elasticsearch's searches on this type are not supported, so that new mappings
 *          with it are refused.
 */
bool field_type__is_unsupported(struct slice name);

/* Appends a JSON value as Java prints maps and lists: "{a=1, b=[x, y]}". */
void java_text(struct buf *buf, yyjson_val *value);

/*
 * Dynamic mapping: adds a field `name` to `parent`, of a type derived from an unmapped value.
 *
 * Requires: the name has no dots; the value is an object or a scalar, not null.
 * Returns: 0 with the field; MAPPING_REFUSED.
 */
int dynamic__add(struct merge *merge, struct mapping_field *parent, struct slice name, yyjson_val *value,
                 struct mapping_field **ret_field) TL_MUST_USE;
/*
 * Refuses a scalar of a field that the same document added, if it would have given the field
 * another type.
 * Returns: 0; MAPPING_REFUSED.
 */
int dynamic__check(struct merge *merge, const struct mapping_field *field, yyjson_val *value) TL_MUST_USE;

/* Refuse a leaf in place of an existing object, and an object in place of a leaf. */
int mapping__refuse_leaf_over_object(struct merge *merge, const struct mapping_field *field);
int mapping__refuse_object_over_leaf(struct merge *merge, const struct mapping_field *field);

/*
 * As field_value_parse(), but `scalar` may be an object, which is refused. `doc` is the document of
 * the scalar, for positions in errors; NULL: unknown. `strict_dates`: date_is_strict() applies.
 */
int field__value(const struct mapping_field *field, yyjson_val *scalar, const struct json_doc *doc,
                 enum dialect dialect, bool strict_dates, struct arena *arena, struct field_value *ret_value,
                 struct problem *ret_problem) TL_MUST_USE;

/*
 * Returns: the `analysis` and `mapping` settings as nested objects without "index.", from flat or
 *          nested settings; allocated in `arena`. NULL if `settings` is not an object.
 */
yyjson_val *settings__nest(struct arena *arena, yyjson_val *settings);

/* Sets the problem for a text that is not a date, in the wording of java.time or Joda. */
void date__explain(const struct date_format *format, struct slice text, enum dialect dialect, struct arena *arena,
                   struct problem *ret_problem);

#endif
