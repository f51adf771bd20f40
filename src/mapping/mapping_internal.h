/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a mapping, and how one is built: a copy of the old is changed in place by mapping__…()
 * functions and then sealed. Only an unsealed mapping is written to.
 */
#ifndef TL_MAPPING_MAPPING_INTERNAL_H
#define TL_MAPPING_MAPPING_INTERNAL_H

#include "base/map.h"
#include "mapping/analysis.h"
#include "mapping/date.h"
#include "mapping/mapping.h"

#include <stdatomic.h>

/* A type with what only rendering and dynamic mapping need. JSON texts are NULL where not given. */
struct type_record {
    struct mapping_type type; /* first: a mapping_type of a mapping is one of these */
    struct slice meta;
    struct slice source;
    struct slice all;
    struct slice field_names;
    struct slice parent;
    struct slice date_formats;
    struct slice templates;
    yyjson_val *templates_value; /* the parsed `templates` */
    yyjson_val *date_formats_value;
    bool date_detection_given;
    bool numeric_detection_given;
};

/* A field number: what it stands for, over all types. */
struct numbered_field {
    struct slice path;
    bool complete;
    const struct mapping_field *field; /* of the first type that has it; NULL once no type has */
};

struct mapping {
    _Atomic uint32_t references;
    bool sealed;
    struct arena arena;
    struct slice settings; /* JSON of what mapping_new() read, for the catalog */
    struct analysis *analysis;
    size_t total_fields_max;
    size_t depth_max;
    struct type_record **types; /* in order of number */
    size_t type_count;
    size_t type_capacity;
    struct numbered_field *numbers; /* by field number */
    size_t number_count;
    size_t number_capacity;
    struct slice path_name; /* of the path field; data NULL until a mapping brings one, then for ever that one */
    const struct mapping_field *path_field;
    char path_delimiter;
    bool is_tree; /* mapping_is_tree() */
    bool has_copy_to;           /* some field has copy_to */
    struct map by_path;        /* path → field of the first type that has it */
    struct map by_number_path; /* path → number + 1 */
};

/* What merging needs to know on its way down. */
struct merge {
    struct mapping *mapping;    /* being built */
    struct type_record *record; /* being merged into */
    enum dialect dialect;
    struct arena *arena; /* for problems and scratch */
    struct problem *problem;
    bool incomplete; /* what is added gets entries for documents to come only */
    bool type_is_new;
    bool stored; /* the text is the catalog's: taken once, so taken now */
};

/* An unsealed copy. Owns: the caller; mapping_unref. */
struct mapping *mapping__copy(const struct mapping *base);
/*
 * As mapping_new(), of settings that are nested already, as mapping->settings has them. Nesting them again would cut a
 * name with very many dots in other places. `settings` must outlive the mapping.
 */
int mapping__new_nested(yyjson_val *settings, struct arena *arena, struct mapping **ret_mapping,
                        struct problem *ret_problem) TL_MUST_USE;
/*
 * Ends building: sorts out numbers, the path field and lookups, and checks the limits.
 * Returns: 0, MAPPING_REFUSED.
 */
int mapping__seal(struct mapping *mapping, struct arena *arena, struct problem *ret_problem) TL_MUST_USE;
/* Checks what fields of a sealed mapping say of one another. Returns: 0, MAPPING_REFUSED. */
int mapping__check_references(struct mapping *mapping, struct arena *arena, struct problem *ret_problem) TL_MUST_USE;
/*
 * Finds the fields that the entries of another field find, and takes theirs away.
 * Requires: fields are numbered, and agree with their numbers on being complete.
 */
void mapping__seal_path_hierarchies(struct mapping *mapping);
struct type_record *mapping__add_type(struct mapping *mapping, struct slice name);

/* Merges the inside of a type: {"properties": …, "dynamic": …}. */
int mapping__merge_root(struct merge *merge, yyjson_val *body) TL_MUST_USE;
/* Merges one property `name` of `parent`. */
int mapping__merge_property(struct merge *merge, struct mapping_field *parent, struct slice name,
                            yyjson_val *definition) TL_MUST_USE;
/* Adds an object without anything in it, or returns the one there is. Refuses where a leaf is in the way. */
int mapping__merge_object(struct merge *merge, struct mapping_field *parent, struct slice name,
                          struct mapping_field **ret_object) TL_MUST_USE;

int mapping__refuse(struct merge *merge, enum problem_type type, const char *format, ...) TL_PRINTF(3, 4);

struct mapping_field *field__new(struct arena *arena, struct mapping_field *parent, struct slice name, bool is_multi);
/* Inserts in order of name. */
void field__insert(struct arena *arena, struct mapping_field ***list, size_t *count, struct mapping_field *field);
/* Returns: the child or multi-field of this name, or NULL. */
struct mapping_field *field__child(const struct mapping_field *field, struct slice name);
struct mapping_field *field__multi(const struct mapping_field *field, struct slice name);
/* Returns: the field at a dotted path below `root`, multi-fields included, or NULL. */
struct mapping_field *field__find(struct mapping_field *root, struct slice path);
static inline bool field__is_object(const struct mapping_field *field)
{
    return field->type == FIELD_OBJECT || field->type == FIELD_NESTED;
}

/*
 * Parameters. A field keeps those that are not the default, as JSON, in the order of the table; what they
 * mean is worked out by field__resolve().
 */
/* Reads all of a leaf's definition but `fields` and `copy_to` into field->parameters. */
int field__read_parameters(struct merge *merge, struct mapping_field *field, yyjson_val *definition) TL_MUST_USE;
/* Refuses a value that its parameter cannot have, or that would have no effect here. */
int field__check_parameter(struct merge *merge, const struct mapping_field *field, const char *name,
                           yyjson_val *value) TL_MUST_USE;
/* Takes over the parameters of `from`; refuses where one must not change. */
int field__merge_parameters(struct merge *merge, struct mapping_field *field,
                            const struct mapping_field *from) TL_MUST_USE;
int field__resolve(struct merge *merge, struct mapping_field *field) TL_MUST_USE;
struct slice field__parameter(const struct mapping_field *field, const char *name);

/* Types by name. Returns: false for an unknown name. */
bool field_type__find(struct slice name, enum field_type *ret_type);
/* Returns: whether a type that was found is one whose searches are not here: new mappings with it are refused. */
bool field_type__is_unsupported(struct slice name);

/* "{a=1, b=[x, y]}": a JSON value as Java prints maps and lists. */
void java_text(struct buf *buf, yyjson_val *value);

/*
 * Dynamic mapping: adds a field `name` of `parent` for an object or a scalar nobody has mapped.
 *
 * Requires: the name has no dots, the value is no array and not null.
 * Returns: 0 with the field, MAPPING_REFUSED.
 */
int dynamic__add(struct merge *merge, struct mapping_field *parent, struct slice name, yyjson_val *value,
                 struct mapping_field **ret_field) TL_MUST_USE;
/*
 * Refuses a scalar that would have made another type of a field added in the same document.
 * Returns: 0, MAPPING_REFUSED.
 */
int dynamic__check(struct merge *merge, const struct mapping_field *field, yyjson_val *value) TL_MUST_USE;

int mapping__refuse_leaf_over_object(struct merge *merge, const struct mapping_field *field);
int mapping__refuse_object_over_leaf(struct merge *merge, const struct mapping_field *field);

/*
 * As field_value_parse(); `doc` is what the scalar is part of, so that errors can say where, or NULL.
 * Objects are refused too.
 */
int field__value(const struct mapping_field *field, yyjson_val *scalar, const struct json_doc *doc,
                 enum dialect dialect, struct arena *arena, struct field_value *ret_value,
                 struct problem *ret_problem) TL_MUST_USE;

/* Settings in any form as nested objects without "index."; lives in `arena`; NULL where there is nothing. */
yyjson_val *settings__nest(struct arena *arena, yyjson_val *settings);

/* Why a text is no date, in the words of java.time or Joda. */
void date__explain(const struct date_format *format, struct slice text, enum dialect dialect, struct arena *arena,
                   struct problem *ret_problem);

#endif
