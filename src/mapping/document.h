/* SPDX-License-Identifier: Apache-2.0 */
/* Extraction of a document's indexed values from its JSON, by a mapping. */
#ifndef TL_MAPPING_DOCUMENT_H
#define TL_MAPPING_DOCUMENT_H

#include "mapping/mapping.h"

/* Limits of one document. */
#define DOCUMENT_VALUES_MAX 100000 /* indexed values */
#define DOCUMENT_PATH_MAX 16384    /* bytes of a path that renames can change */
#define DOCUMENT_TOKENS_MAX 10000  /* tokens of one text value; further ones get no entries */
#define DOCUMENT_TERM_MAX 32766    /* bytes of a keyword or token: Lucene's limit of a term */
/*
 * Visits (document.visited) of values by multi-fields and targets of copy_to, whether or not they are indexed; one more
 * for every four bytes of the source. A field may have thousands of them, of which each converts every value.
 */
#define DOCUMENT_COPIES_MAX ((size_t)1000000)

enum {
    DOCUMENT_REFUSED = 1, /* *ret_problem says why */
};

/* Which texts are dates in a new document, of those that date_parse() takes. */
enum document_dates {
    DOCUMENT_DATES_ALL, /* all, as released versions took them */
    /*
     * Those that 7.10 takes (date_is_strict()); in the dialect of 5.x all. A field with
     * ignore_malformed takes all, too: the document is stored either way, and its entries must be
     * those that document_parse_stored() finds.
     */
    DOCUMENT_DATES_STRICT,
    /* The same, but a field with ignore_malformed has no value for the others; only to replay old logs. */
    DOCUMENT_DATES_DROPPED,
};

/* A parsed document. Valid as long as the arena it was parsed into. */
struct document {
    struct json_doc json;
    struct field_value *values; /* in text order; values of one field may repeat */
    size_t value_count;
    /* Path of the document in the lock tree: the first text of the path field; data NULL: none. */
    struct slice lock_path;
    /*
     * As lock_path, if renames can change it: it is the only value of the path field, a string of
     * 1 to DOCUMENT_PATH_MAX bytes in the source. Else data NULL.
     */
    struct slice path;
    struct slice path_raw; /* the bytes of `path` in json.source, without quotes, escapes as written */
    /*
     * What finding the values took, whether or not they have entries: members and items of arrays passed, conversions
     * of a value for a field, four more for a text that is a date, and one for 16 bytes of a text. It follows from
     * source and mapping, also of a document that is refused.
     */
    size_t visited;
    /*
     * What token filters took, except the first one of a text, in such visits; commands before version 26 ignore it.
     */
    size_t filtered;
    /*
     * Fields of the mapping, which was copied to add the document's new fields (mapping_copied_fields()); 0: it was
     * not. Also of a document that is refused.
     */
    size_t fields_copied;
    /*
     * Whether the document is refused for a text that is no number in a field of type integer, short or byte, in the
     * dialect of 7.x: the cause is a number_format_exception, and was an illegal_argument_exception before.
     */
    bool number_refused;
    /*
     * The mapping extended by the document's new fields; NULL: the document has none.
     * Owns: the document; document_release() drops the reference.
     */
    struct mapping *update;
};

/*
 * Parses the source of document `id` of type `type`, with dynamic mapping.
 *
 * Requires: the type belongs to the mapping (mapping_ensure_type).
 * Ensures: no memory outside of `arena` is held unless ret_document->update is set. Of a document that is refused
 *   only `visited`, `fields_copied` and `number_refused` are set.
 * Returns: 0; DOCUMENT_REFUSED with *ret_problem: a mapper_parsing_exception,
 *          strict_dynamic_mapping_exception or illegal_argument_exception in the wording of
 *          `dialect`.
 */
int document_parse(const struct mapping *mapping, const struct mapping_type *type, struct slice id, struct slice source,
                   enum dialect dialect, enum document_dates dates, enum field_counting counting, struct arena *arena,
                   struct document *ret_document, struct problem *ret_problem) TL_MUST_USE;

/* As document_parse(), for JSON that is already parsed. */
int document_parse_json(const struct mapping *mapping, const struct mapping_type *type, struct slice id,
                        const struct json_doc *json, enum dialect dialect, enum document_dates dates,
                        enum field_counting counting, struct arena *arena, struct document *ret_document,
                        struct problem *ret_problem) TL_MUST_USE;

/*
 * Extracts the values of a stored document, to determine its entries. Values that do not fit the
 * mapping are skipped, since they have no entries.
 * Returns: 0; TL_ERR_CORRUPT: the source is not JSON.
 */
int document_parse_stored(const struct mapping *mapping, const struct mapping_type *type, struct slice source,
                          struct arena *arena, struct document *ret_document) TL_MUST_USE;

/* Drops the reference to `update` and sets it to NULL. */
void document_release(struct document *document);

/*
 * Extracts the values of one field from a document's JSON, whether or not the field has entries;
 * for text they are tokens. Used to recheck hits, to sort, and by scripts.
 * Returns: the number of values; *ret_values is allocated in `arena`.
 */
size_t document_field_values(const struct mapping *mapping, const struct mapping_field *field, yyjson_val *root,
                             struct arena *arena, struct field_value **ret_values);

/* As document_field_values(), but each value of a text field is a whole text, not a token. */
size_t document_field_texts(const struct mapping *mapping, const struct mapping_field *field, yyjson_val *root,
                            struct arena *arena, struct field_value **ret_values);

#endif
