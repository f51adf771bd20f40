/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies that are not JSON, refused as by a parser that reads a stream.
 *
 * Elasticsearch parses a request while it reads it. Members that precede the fault have been
 * interpreted by then, so an unknown name among them is reported, not the fault. Otherwise the error
 * of JSON is reported, as the cause of the members that were being parsed ("[bool] failed to parse
 * field [must]").
 *
 * So the parser of a request gets its body up to the fault, with the missing brackets added:
 *
 *  1. A refusal whose place precedes the fault is the answer.
 *  2. Any other one may only say that something is missing, and is dropped for the error of JSON.
 */
#ifndef TL_API_BROKEN_BODY_H
#define TL_API_BROKEN_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "json/json.h"

struct request;

/* The members that report errors within them as their cause. */
enum broken_form {
    BROKEN_PLAIN,   /* none */
    BROKEN_QUERY,   /* of _search and _count */
    BROKEN_UPDATE,  /* of _update */
    BROKEN_ALIASES, /* of _aliases */
    BROKEN_REINDEX, /* of _reindex */
};

/* How one kind of body is read. */
struct broken_parser {
    /*
     * Reads the body up to the fault, as the parser of a sound body does. Returns: 0; other values:
     * it was refused, as request->problem says.
     */
    int (*read)(void *context, struct json_doc *doc);
    void *context;
    struct arena *arena;  /* of the document that read() gets */
    enum dialect dialect; /* of the body; Elasticsearch 5's parser reports each fault as one of JSON */
    enum broken_form form;
    bool placeless;   /* read() does not miss members, so that its refusals count without a place, too */
    size_t depth_min; /* a fault in fewer objects and arrays is reported as one of JSON */
};

/* The place of a fault in a body. */
struct broken_location {
    size_t line; /* both from 1 */
    size_t column;
};

/*
 * Refuses a body that json_parse() refused, as request->problem says.
 * Returns: REQUEST_REFUSED with the answer in request->problem, and in *ret_location (may be NULL) the
 *   place of the fault; line 1, column 1 if nothing before it could be read.
 */
int broken_body_refuse(struct request *request, struct slice body, const struct broken_parser *parser,
                       struct broken_location *ret_location);

#endif
