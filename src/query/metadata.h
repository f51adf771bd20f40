/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata fields, and what may be asked of each (metadata.def). For src/query only. */
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
    METADATA_DOC_VALUES = 1 << 0,     /* may be sorted by, aggregated, and fetched as a doc value */
    METADATA_NUMERIC = 1 << 1,    /* the values are numbers; else texts */
    METADATA_ALWAYS_PRESENT = 1 << 2, /* every document has it */
    METADATA_CONSTANT = 1 << 3,      /* of the index or the type: also by prefix, wildcard, and in any case */
    METADATA_KEYWORD = 1 << 4,      /* of some documents: by every kind of pattern, as a keyword is */
    METADATA_RANGES = 1 << 5,      /* takes ranges with bounds */
    METADATA_NO_CAUSE = 1 << 6,      /* its refusals are told with no cause; those of terms in 5.x, too */
    METADATA_REFUSES_CASE = 1 << 7,       /* says that it cannot be asked in any case; else nothing matches */
    METADATA_BOOL_PREFIX = 1 << 8    /* the last word of a match_bool_prefix is a prefix, not a term */
};

struct metadata_field {
    const char *name;
    enum metadata_number number;
    unsigned traits;
    const char *term_refusal;   /* NULL: terms are taken */
    const char *exists_refusal; /* NULL: exists is */
};

/* Returns: NULL where the name is none of theirs. */
const struct metadata_field *metadata_find(struct slice name);
const struct metadata_field *metadata_at(enum metadata_number number);
/* Whether documents can be read by it, to sort them and the like. `field` may be NULL. */
bool metadata_has_values(const struct metadata_field *field);
/* "Fielddata is not supported …", of one that has none. */
struct slice metadata_refusal(struct arena *arena, const struct metadata_field *field);
/* The one value that a document has in a field that has values. */
struct field_value metadata_value(const struct metadata_field *field, const struct match_doc *match_doc);

/* A leaf of a query that asks for it: TERM to FUZZY, RANGE, EXISTS. Returns: 0; QUERY_REFUSED with the problem. */
int bind__metadata(struct binder *binder, const struct metadata_field *field, const struct query *query,
                   struct bound_query **ret_matcher) TL_MUST_USE;
/* The documents with one of these ids, or of one of these types. */
struct bound_query *bind__ids(struct binder *binder, const struct query *query);
struct bound_query *bind__types(struct binder *binder, const struct query *query);

#endif
