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

#include "base/error.h"
#include "base/slice.h"

struct request;

/* The members that report errors within them as their cause. */
enum broken_form {
    BROKEN_PLAIN,   /* none */
    BROKEN_QUERY,   /* of _search and _count */
    BROKEN_UPDATE,  /* of _update */
    BROKEN_ALIASES, /* of _aliases */
    BROKEN_REINDEX, /* of _reindex */
};

enum { BROKEN_LEVELS_MAX = 64 };

/* An object or array that the fault is in. */
struct broken_level {
    struct slice name; /* of the member that it is the value of; empty: an element, or the root */
    bool is_list;
};

struct broken_body {
    struct slice closed; /* the body up to the last value before the fault, with brackets added */
    size_t end;          /* offset in `closed` of the added brackets */
    size_t token;        /* offset of the token at which the fault is reported */
    struct broken_level levels[BROKEN_LEVELS_MAX]; /* outermost first */
    size_t depth;
    struct problem fault; /* the error of JSON */
};

/*
 * Reads a body that json_parse() refused, as request->problem says.
 * Returns: whether a parser can read what precedes the fault: it is in an object, and not too deep.
 * Owns: `closed` is in the request's arena.
 */
bool broken_body_read(struct request *request, struct slice body, struct broken_body *ret_broken);

/*
 * Refuses the request after its parser has read `closed`. `refused`: it was refused, as
 * request->problem says. `placeless`: the parser has no complaints about missing members, so that its
 * refusals count without a place, too.
 * Returns: REQUEST_REFUSED.
 */
int broken_body_refuse(struct request *request, const struct broken_body *broken, enum broken_form form, bool refused,
                       bool placeless);

#endif
