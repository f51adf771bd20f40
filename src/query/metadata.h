/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata fields and the operations each supports (metadata.def). For src/query only. */
#ifndef TL_QUERY_METADATA_H
#define TL_QUERY_METADATA_H

#include "query/bound_query.h"

enum metadata_number {
#define X(symbol, name, traits, term, exists) METADATA_##symbol,
#include "query/metadata.def"
#undef X
    METADATA_COUNT
};

enum metadata_trait {
    METADATA_DOC_VALUES = 1 << 0,     /* can be sorted by, aggregated, and fetched as a doc value */
    METADATA_NUMERIC = 1 << 1,        /* values are numbers; otherwise text */
    METADATA_ALWAYS_PRESENT = 1 << 2, /* every document has a value */
    METADATA_CONSTANT = 1 << 3,       /* one value per index or type; takes simple patterns */
    METADATA_KEYWORD = 1 << 4,        /* takes all patterns, as a keyword does */
    METADATA_RANGES = 1 << 5,         /* takes ranges with bounds */
    METADATA_NO_CAUSE = 1 << 6,       /* refusals have no cause; terms are refused in 5.x, too */
    METADATA_REFUSES_CASE = 1 << 7,   /* refuses case_insensitive terms */
    METADATA_BOOL_PREFIX = 1 << 8     /* match_bool_prefix is a prefix query, not a term */
};

struct metadata_field {
    const char *name;
    enum metadata_number number;
    unsigned traits;
    const char *term_refusal;   /* message; NULL: terms are allowed */
    const char *exists_refusal; /* message; NULL: `exists` is allowed */
};

/* Finds a metadata field by name. Returns: NULL if the name is not in metadata.def. */
const struct metadata_field *metadata_find(struct slice name);
/* Requires: `number` < METADATA_COUNT. */
const struct metadata_field *metadata_at(enum metadata_number number);
/*
 * Returns: whether the field (NULL: false) has values to sort by, aggregate and fetch:
 * METADATA_DOC_VALUES.
 */
bool metadata_has_values(const struct metadata_field *field);
/* Returns: "Fielddata is not supported …", for a field without values. */
struct slice metadata_refusal(struct arena *arena, const struct metadata_field *field);
/* Returns: the document's only value of the field. Requires: metadata_has_values(field). */
struct field_value metadata_value(const struct metadata_field *field, const struct match_doc *match_doc);

/*
 * Binds a leaf query on a metadata field: TERM to FUZZY, RANGE, EXISTS. Returns: 0; QUERY_REFUSED
 * with binder->problem.
 */
int bind__metadata(struct binder *binder, const struct metadata_field *field, const struct query *query,
                   struct bound_query **ret_matcher) TL_MUST_USE;
/* Bind an IDS or TYPE query. */
struct bound_query *bind__ids(struct binder *binder, const struct query *query);
struct bound_query *bind__types(struct binder *binder, const struct query *query);

#endif
