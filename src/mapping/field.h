/* SPDX-License-Identifier: Apache-2.0 */
/* One field of a mapping: its type, its parameters, and how its values are indexed. */
#ifndef TL_MAPPING_FIELD_H
#define TL_MAPPING_FIELD_H

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"
#include "json/json.h"

struct analyzer;
struct date_format;

enum field_type {
    FIELD_OBJECT,
    FIELD_NESTED, /* only in stores of earlier versions; searched as if flattened */
    FIELD_TEXT,
    FIELD_KEYWORD, /* also wildcard and constant_keyword */
    FIELD_PATH,    /* Tidelock's own: the path of a document in the tree */
    FIELD_LONG,
    FIELD_INTEGER,
    FIELD_SHORT,
    FIELD_BYTE,
    FIELD_DOUBLE,
    FIELD_FLOAT,
    FIELD_HALF_FLOAT,
    FIELD_SCALED_FLOAT,
    FIELD_DATE,
    FIELD_BOOLEAN,
    FIELD_IP,
    FIELD_BINARY,
    FIELD_STORED, /* `alias`, and in stores of earlier versions other types: rendered, not searched */
    FIELD_TYPE_COUNT
};

/* The representation of a value, which determines its order and encoding. */
enum field_value_kind {
    FIELD_VALUE_NONE,  /* types without indexed values: objects, binary, stored */
    FIELD_VALUE_I64,   /* long, integer, short, byte, date (milliseconds), boolean (0, 1), scaled_float (scaled) */
    FIELD_VALUE_F64,   /* double, float, half_float */
    FIELD_VALUE_BYTES, /* keyword, path, a token of text, ip (16 bytes, IPv4 mapped) */
};

/* One indexed value. */
struct field_value {
    uint16_t field; /* number of the field, or FIELD_NUMBER_NONE */
    uint8_t kind;   /* enum field_value_kind */
    union {
        int64_t i64;
        double f64;
        struct slice bytes;
    };
};

/* The number of fields without entries. */
#define FIELD_NUMBER_NONE ((uint16_t)0xffff)
#define FIELD_IGNORE_ABOVE_NONE UINT32_MAX

/* The default of position_increment_gap: token positions between two values of a text field. */
enum { FIELD_POSITION_GAP = 100 };

struct mapping_field {
    struct slice path; /* "o.name.raw"; empty for a type's root */
    struct slice name; /* its last part as written in the mapping */
    enum field_type type;
    struct slice type_name; /* as rendered: "long", "geo_point" */
    uint16_t number;        /* FIELD_NUMBER_NONE: documents get no entries for it */

    bool indexed;    /* `index` is not false: queries on values are allowed */
    bool doc_values; /* the parameter of this name */
    bool complete;   /* each value of each document has its entry; if false, queries scan documents */
    bool in_tree;    /* it is the path field or a multi-field of it */
    bool ignore_malformed;
    bool coerce;
    bool enabled;          /* objects: if false, the contents are not parsed */
    bool unmapped;         /* objects: documents may contain values that had no field when written */
    uint8_t dynamic;       /* objects: enum mapping_dynamic */
    uint32_t ignore_above; /* in UTF-16 code units; FIELD_IGNORE_ABOVE_NONE: no limit */
    double scaling_factor; /* of scaled_float */
    const struct analyzer *analyzer;        /* text: for documents; keyword: its normalizer or NULL */
    const struct analyzer *search_analyzer; /* text: for match queries */
    const struct analyzer *quote_analyzer;  /* text: for phrase queries */
    const struct date_format *format;       /* dates only */
    /* Scoring. */
    bool norms;              /* scores depend on the length of a document's values */
    bool frequencies;        /* scores depend on the number of occurrences of a term */
    bool positions;          /* text: phrase queries are allowed */
    bool scored;             /* similarity is BM25; if false (`boolean`), a hit scores the boost */
    double boost;            /* factor of the scores of queries on the field */
    uint32_t position_gap;   /* text: token positions between two values */
    struct slice null_value; /* JSON text; data NULL: not given */
    struct slice constant;   /* constant_keyword: its value; data NULL: not set */

    struct mapping_field *parent;    /* object, or field that has this multi-field; NULL: the root */
    struct mapping_field **children; /* objects: in order of name */
    size_t child_count;
    struct mapping_field **multi; /* multi-fields, in order of name */
    size_t multi_count;
    /* A path-hierarchy field: the full-path field whose entries find its documents; else NULL. */
    const struct mapping_field *full_path_field;
    struct slice *copy_to; /* paths */
    size_t copy_to_count;
    const struct field_parameter *parameters; /* non-default ones, in Elasticsearch's order */
    size_t parameter_count;
};

/* A parameter of a field definition, with its value as JSON text. */
struct field_parameter {
    struct slice name;
    struct slice json;
};

/* Returns: the kind of the values of this field. */
enum field_value_kind field_value_kind(const struct mapping_field *field);

/* Returns: whether the field has entries and they name every document with a value of it. */
static inline bool field_has_entries(const struct mapping_field *field)
{
    return field->number != FIELD_NUMBER_NONE && field->complete;
}

/* Returns: the field whose entries name this field's documents: its full-path field, or itself. */
static inline const struct mapping_field *field_covering(const struct mapping_field *field)
{
    return field->full_path_field != NULL ? field->full_path_field : field;
}

/*
 * Returns: whether the entries of field_covering() name every document with a value of this field.
 */
static inline bool field_is_covered(const struct mapping_field *field)
{
    return field_has_entries(field_covering(field));
}

/* Outcomes of field_value_parse(). */
enum {
    FIELD_VALUE_IGNORED = 1, /* null, empty, above ignore_above, or malformed with ignore_malformed */
    FIELD_VALUE_REFUSED = 2, /* *ret_problem is the innermost cause ("For input string: \"abc\"") */
};

/*
 * Converts a JSON scalar to the value it is indexed as. For FIELD_TEXT that is the whole text,
 * not analyzed.
 * Assumes: `scalar` is not an array or object.
 * Returns: 0; FIELD_VALUE_IGNORED; FIELD_VALUE_REFUSED.
 * Owns: bytes of the value belong to `scalar` or `arena`.
 */
int field_value_parse(const struct mapping_field *field, yyjson_val *scalar, enum dialect dialect, struct arena *arena,
                      struct field_value *ret_value, struct problem *ret_problem) TL_MUST_USE;

/*
 * Returns: <0, 0 or >0. Bytes compare bytewise; -0.0 is below 0.0, a NaN above everything.
 * Requires: both values have the same kind.
 */
int field_value_compare(const struct field_value *a, const struct field_value *b);

#endif
