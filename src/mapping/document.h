/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a document's JSON to its indexed values, under a mapping.
 */
#ifndef TL_MAPPING_DOCUMENT_H
#define TL_MAPPING_DOCUMENT_H

#include "mapping/mapping.h"

/* Limits of one document. */
#define DOCUMENT_VALUES_MAX 100000 /* indexed values */
#define DOCUMENT_PATH_MAX 16384    /* bytes of a path in the tree; longer ones are searched without it */
#define DOCUMENT_TOKENS_MAX 10000  /* of one text value; what follows is found by scanning only */
#define DOCUMENT_TERM_MAX 32766    /* bytes of a keyword, or of a token: what Lucene has room for in an index */

enum {
    DOCUMENT_REFUSED = 1, /* *ret_problem says why */
};

/* A document taken apart. Lives in the arena it was parsed with. */
struct document {
    struct json_doc json;
    struct field_value *values; /* in order of the text; values of one field may repeat */
    size_t value_count;
    /* Where it lies, for locks: the first text of the path field, however it is written; data NULL: there is none. */
    struct slice lock_path;
    /* The same where renames can move it: the only value, a text of 1 to DOCUMENT_PATH_MAX bytes in the source; else data NULL. */
    struct slice path;
    struct slice path_raw; /* where it stands in json.source, without the quotes, escapes as they are */
    /*
     * The mapping the document was parsed under: `mapping` handed in, or a new one where it has fields that
     * were not known. Owns: the document; document_release.
     */
    struct mapping *update; /* NULL where nothing new appeared */
};

/*
 * Parses the source of document `id` of type `type`.
 *
 * Requires: the type exists in the mapping (mapping_ensure_type).
 * Ensures: no memory outside `arena` unless there is an update.
 * Returns: 0; DOCUMENT_REFUSED: *ret_problem is a mapper_parsing_exception, strict_dynamic_mapping_exception
 *          or illegal_argument_exception in the wording of `dialect`.
 */
int document_parse(const struct mapping *mapping, const struct mapping_type *type, struct slice id, struct slice source,
                   enum dialect dialect, struct arena *arena, struct document *ret_document,
                   struct problem *ret_problem) TL_MUST_USE;

/* The same for JSON that is parsed already. */
int document_parse_json(const struct mapping *mapping, const struct mapping_type *type, struct slice id,
                        const struct json_doc *json, enum dialect dialect, struct arena *arena,
                        struct document *ret_document, struct problem *ret_problem) TL_MUST_USE;

/*
 * The values of a stored document, to know which entries it has. Never refuses: what does not fit the mapping
 * has no entries. Returns: 0, TL_ERR_CORRUPT.
 */
int document_parse_stored(const struct mapping *mapping, const struct mapping_type *type, struct slice source,
                          struct arena *arena, struct document *ret_document) TL_MUST_USE;

/* Lets go of `update`. */
void document_release(struct document *document);

/*
 * The values one field has in a document, read from its JSON: those that entries would be made of (tokens
 * for text), whether or not the field has any. For checking hits, for sorting, for scripts.
 * Returns: how many; *ret_values lives in `arena`.
 */
size_t document_field_values(const struct mapping *mapping, const struct mapping_field *field, yyjson_val *root,
                             struct arena *arena, struct field_value **ret_values);

/* The same of a text field, where each value is a whole text: those that copy_to brings, too. */
size_t document_field_texts(const struct mapping *mapping, const struct mapping_field *field, yyjson_val *root,
                            struct arena *arena, struct field_value **ret_values);

#endif
