/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk bodies: lines of an action with its metadata, each followed by a line of source but for deletes.
 *
 * Read as Elasticsearch's BulkRequestParser does, oddities included: a line without a token is
 * passed over, and the source of an unknown action is skipped with it.
 */
#ifndef TL_API_BULK_PARSE_H
#define TL_API_BULK_PARSE_H

#include "api/documents/update_body.h"

/* Actions of one body. */
#define BULK_ITEMS_MAX 1000000
/*
 * Larger bodies, where not atomic, go to the core in pieces of at most so many actions, or a little
 * more than so many bytes. The core divides pieces further, by their work (WRITE_WORK_MAX).
 */
#define BULK_WHOLE_BYTES_MAX ((size_t)2 << 20)
#define BULK_PIECE_ITEMS_MAX 2000
#define BULK_PIECE_BYTES_MAX ((size_t)1 << 20)
/*
 * Actions of one command in a transaction. The core divides it into batches, but ends the rest of it in one step, and
 * makes all results in one.
 */
#define BULK_TRANSACTION_ITEMS_MAX 20000
/*
 * Sources of a whole body are parsed ahead of the core only up to this size of a body: parsed forms
 * are several times larger.
 */
#define BULK_PARSE_BYTES_MAX ((size_t)8 << 20)

struct script_run;

/* The members of an action that the core does not need. */
struct bulk_action {
    struct write_params asked;
    struct source_filter source; /* updates that want it; not given: none */
    const struct slice *fields;
    size_t field_count;
    struct slice pipeline;  /* empty: none */
    struct problem refused; /* fails before the core sees it; else PROBLEM_NONE */
    struct script_run *run; /* of its script, outside of the core (bulk_scripts.h); NULL: none so far */
};

struct bulk {
    struct write_item *items;
    struct bulk_action *actions;
    size_t count;
    bool pipeline_named; /* by any action: the reply then says how long that took */
};

/* What actions have that do not name it themselves. */
struct bulk_defaults {
    struct slice index; /* data NULL: none */
    struct slice type;  /* empty: none */
    struct slice routing;
    struct slice pipeline;
    struct slice lease;
    struct source_filter source;
    bool require_alias;
};

/* Checks the items of a parsed body. Returns: 0, REQUEST_REFUSED. */
int bulk_validate(struct request *request, const struct bulk *bulk) TL_MUST_USE;

/*
 * Parses a body. Items live in the request's arena and point into `body`.
 * Returns: 0, REQUEST_REFUSED.
 */
int bulk_parse(struct request *request, struct slice body, const struct bulk_defaults *defaults,
               struct bulk *ret_bulk) TL_MUST_USE;

#endif
