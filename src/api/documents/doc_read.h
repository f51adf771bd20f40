/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading single documents, for GET, _source, HEAD and each item of _mget.
 */
#ifndef TL_API_DOC_READ_H
#define TL_API_DOC_READ_H

#include "api/request/reply.h"
#include "api/request/source_filter.h"
#include "core/catalog/catalog.h"
#include "core/command/command.h"
#include "core/documents/doc.h"
#include "mapping/mapping.h"

/* The requested document, and the parts of it in the response. */
struct doc_get_params {
    enum dialect dialect; /* of the reply: the request's, but in _mget an item's own */
    struct slice index;
    struct slice type; /* empty: typeless */
    bool empty_type;   /* an item of 7.10's _mget that names the type "", which no index has */
    struct slice id;
    struct slice routing; /* empty: none */
    bool any_routing;     /* the document's routing is not checked */
    bool commit_timestamp; /* the timestamp of the commit that made the version is shown */
    int64_t version;       /* the version that the client expects; VERSION_ANY: any */
    enum version_type version_type;
    struct source_filter source;
    const struct slice *stored_fields;
    size_t stored_field_count; /* 0: none asked for */
    bool no_fields;            /* stored_fields=_none_ */
    bool in_mget;
    const struct problem *refused; /* the name of an _mget item's index has an invalid date; NULL: it has not */
};

/* The document that a read found. */
struct doc_get_result {
    const struct catalog_index *index; /* lives with the request's catalog */
    const struct mapping_type *type;   /* NULL: no such type */
    bool found;
    struct doc doc; /* when found; doc_release() */
};

/*
 * Looks a document up in the request's view and checks its version.
 * Returns: 0, found or not; REQUEST_REFUSED with *ret_problem; fatal codes. Owns: the caller releases ret_found->doc.
 */
int doc_find(struct request *request, const struct doc_get_params *query, struct doc_get_result *ret_found,
             struct problem *ret_problem) TL_MUST_USE;

/* Writes the reply's object, found or not. Returns: 0, TL_ERR_CORRUPT. */
int doc_write_found(struct request *request, const struct doc_get_params *query, const struct doc_get_result *found,
                    struct buf *buf) TL_MUST_USE;

/* Reads `preference`, `refresh`, `realtime`, `stored_fields`, `_source…`; shared with _mget. */
int doc_read_params(struct request *request, struct doc_get_params *ret_query) TL_MUST_USE;

/* The lock that a read of the document takes inside a transaction. */
struct lock_target doc_lock_target(const struct doc_get_params *query);

/* Reads "internal", "external"…  Returns: 0, REQUEST_REFUSED: "No version type match [x]". */
int doc_version_type(struct request *request, struct slice text, enum version_type *ret_type) TL_MUST_USE;

/* Fills a version_conflict_engine_exception about a document: "[1]: version conflict, " and `text`. */
void doc_conflict_problem(struct arena *arena, enum dialect dialect, const struct catalog_index *index,
                          struct slice type, struct slice id, struct slice routing, const char *text,
                          struct problem *ret_problem);

#endif
