/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of an update: {"doc", "upsert", "script", …} in the forms of all versions.
 *
 * Scripts come as text with "params" next to it (1.x), as an object with "inline" or "source", "id"
 * or "stored" or "file" (5.x), and with "source" or "id" (7.x). The 7.10 dialect refuses unknown
 * members, in the words of ObjectParser, with locations; 5.6 passes over it.
 */
#ifndef TL_API_UPDATE_BODY_H
#define TL_API_UPDATE_BODY_H

#include "api/documents/doc_write.h"

struct update_body {
    struct write_update update;
    struct source_filter source; /* "_source" of the body; not given: none */
    const struct slice *fields;  /* "fields" of 5.x */
    size_t field_count;
    int64_t if_seq_no; /* SEQ_NO_ANY; 7.10's body may name them */
    int64_t if_primary_term;
};

/* Parses a body. An empty one is an empty update. Returns: 0, REQUEST_REFUSED. Lives in the request's arena. */
int update_body_parse(struct request *request, struct slice text, enum dialect dialect,
                      struct update_body *ret_body) TL_MUST_USE;

/*
 * Parses the value of a "script" member into source, id, file, lang and params. `parser` is the
 * name of the parser around it in 7.10's texts, such as "UpdateRequest". Also for _update_by_query
 * and _reindex.
 * Returns: 0, REQUEST_REFUSED.
 */
int update_script_parse(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                        const char *parser, enum dialect dialect, struct write_update *update) TL_MUST_USE;

/* "x doesn't support values of type: VALUE_STRING" and "unknown field [x] did you mean [y]?" of such a parser. */
int update_wrong_value(struct request *request, const struct json_doc *doc, yyjson_val *key, yyjson_val *value,
                       const char *parser) TL_MUST_USE;
int update_unknown_field(struct request *request, const struct json_doc *doc, yyjson_val *key, const char *parser,
                         struct slice known) TL_MUST_USE;

#endif
