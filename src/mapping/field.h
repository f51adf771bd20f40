/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One field of a mapping: what its type is and what of it is indexed.
 */
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
    FIELD_NESTED, /* of stores of earlier versions: searched as if flattened */
    FIELD_TEXT,
    FIELD_KEYWORD, /* also wildcard and constant_keyword */
    FIELD_PATH,    /* Tidelock's own: the place in the tree */
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
    FIELD_STORED, /* any other type Elasticsearch knows, of stores of earlier versions: kept, rendered, not searched */
    FIELD_TYPE_COUNT
};

/* How a value is compared and encoded. */
enum field_value_kind {
    FIELD_VALUE_NONE,  /* of fields without entries: objects, binary, stored */
    FIELD_VALUE_I64,   /* long, integer, short, byte, date (milliseconds), boolean (0, 1), scaled_float (scaled) */
    FIELD_VALUE_F64,   /* double, float, half_float */
    FIELD_VALUE_BYTES, /* keyword, path, a token of text, ip (16 bytes, IPv4 mapped) */
};

/* One indexed value. */
struct field_value {
    uint16_t field; /* number */
    uint8_t kind;   /* enum field_value_kind */
    union {
        int64_t i64;
        double f64;
        struct slice bytes;
    };
};

/* Of fields that get no entries. */
#define FIELD_NUMBER_NONE ((uint16_t)0xffff)
#define FIELD_IGNORE_ABOVE_NONE UINT32_MAX

enum { FIELD_POSITION_GAP = 100 };

struct mapping_field {
    struct slice path; /* "o.name.raw"; empty for a type's root */
    struct slice name; /* its last part as written in the mapping */
    enum field_type type;
    struct slice type_name; /* as rendered: "long", "geo_point" */
    uint16_t number;        /* FIELD_NUMBER_NONE where it has no entries */

    bool indexed;    /* `index` is not false: term queries are allowed on it */
    bool doc_values; /* accepted and rendered */
    bool complete;   /* every indexed value of every document has its entry; else queries must scan */
    bool in_tree;    /* the path field, or a multi-field of it */
    bool ignore_malformed;
    bool coerce;
    bool enabled;          /* of objects: false leaves the inside unparsed */
    bool unmapped;         /* of objects: documents may hold values inside that were not mapped when they were written
                    */
    uint8_t dynamic;       /* of objects: enum mapping_dynamic */
    uint32_t ignore_above; /* characters; FIELD_IGNORE_ABOVE_NONE without */
    double scaling_factor; /* of scaled_float */
    const struct analyzer *analyzer;        /* of text; of keyword its normalizer or NULL */
    const struct analyzer *search_analyzer; /* of text, for match queries */
    const struct analyzer *quote_analyzer;  /* of text, for phrases */
    const struct date_format *format;       /* of dates */
    /* What scores take of it. */
    bool norms;            /* the length of a document's values counts */
    bool frequencies;      /* how often a value stands there counts */
    bool positions;        /* of text: phrases may be asked for */
    bool scored;           /* else each hit by a word scores the boost */
    double boost;          /* of queries for a value */
    uint32_t position_gap; /* of text: between two values */
    struct slice null_value;                /* JSON text; data NULL without */
    struct slice constant;                  /* of constant_keyword; data NULL while unset */

    struct mapping_field *parent;    /* the object, or the field a multi-field belongs to; NULL for the root */
    struct mapping_field **children; /* of objects: in order of name */
    size_t child_count;
    struct mapping_field **multi; /* multi-fields, in order of name */
    size_t multi_count;
    /* Of a field of directories: the one that holds their whole paths, by whose entries it is found; else NULL. */
    const struct mapping_field *full_path_field;
    struct slice *copy_to; /* paths */
    size_t copy_to_count;
    const struct field_parameter *parameters; /* as given, in Elasticsearch's order: for rendering */
    size_t parameter_count;
};

/* A parameter of a definition that is not the default, as JSON text. */
struct field_parameter {
    struct slice name;
    struct slice json;
};

/* Returns: how values of this field are compared. */
enum field_value_kind field_value_kind(const struct mapping_field *field);

/* Returns: whether entries of this field exist and find every document that has a value of it. */
static inline bool field_has_entries(const struct mapping_field *field)
{
    return field->number != FIELD_NUMBER_NONE && field->complete;
}

/* Returns: the field whose entries name the documents that have a value of this one: itself, as a rule. */
static inline const struct mapping_field *field_covering(const struct mapping_field *field)
{
    return field->full_path_field != NULL ? field->full_path_field : field;
}

/* Returns: whether entries, its own or another field's, find every document that has a value of this field. */
static inline bool field_is_covered(const struct mapping_field *field)
{
    return field_has_entries(field_covering(field));
}

/* Outcomes of field_value_parse(). */
enum {
    FIELD_VALUE_IGNORED = 1, /* null, longer than ignore_above, or malformed where that is ignored */
    FIELD_VALUE_REFUSED = 2, /* *ret_problem: the innermost cause ("For input string: \"abc\"") */
};

/*
 * Converts a scalar of a document or of a query to the value it is indexed as. For FIELD_TEXT: the whole
 * text, not analysed.
 * Requires: `scalar` is no array and no object.
 * Returns: 0, FIELD_VALUE_IGNORED, FIELD_VALUE_REFUSED. Bytes of the value live with `scalar` or in `arena`.
 */
int field_value_parse(const struct mapping_field *field, yyjson_val *scalar, enum dialect dialect, struct arena *arena,
                      struct field_value *ret_value, struct problem *ret_problem) TL_MUST_USE;

/* <0, 0, >0. Requires: equal kinds. Bytes compare bytewise, a NaN after everything. */
int field_value_compare(const struct field_value *a, const struct field_value *b);

#endif
