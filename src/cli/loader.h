/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk loading over HTTP: batches of _bulk actions, a few requests in flight, retried when the server is busy or away.
 *
 * Actions create documents, so a batch whose reply was lost can be sent again: what the first one made is found there.
 */
#ifndef TL_CLI_LOADER_H
#define TL_CLI_LOADER_H

#include <curl/curl.h>

#include "base/buf.h"

struct loader_options {
    const char *url;
    const char *index;
    const char *type;   /* NULL: typeless */
    unsigned jobs;      /* requests in flight at most */
    size_t batch_bytes; /* a request is sent when it has this many */
    size_t batch_count; /* or this many documents */
    bool overwrite;     /* index instead of create */
    unsigned tries;     /* of one batch */
};

struct loader_counts {
    uint64_t sent; /* documents in batches that were answered */
    uint64_t created;
    uint64_t updated;
    uint64_t present; /* refused by create since they were there already */
    uint64_t failed;
};

struct loader;

/* Owns: the caller; loader_free(). */
struct loader *loader_new(const struct loader_options *options);
void loader_free(struct loader *loader);

/* Where the next document goes; loader_commit() ends it, and may wait until a request is done. */
struct buf *loader_begin(struct loader *loader, struct slice id);
/* Returns: 0; TL_ERR_IO when the server cannot be reached or refuses the batches: loader_error() says why. */
int loader_commit(struct loader *loader) TL_MUST_USE;
/* Sends the rest and waits for all replies. Returns: as loader_commit(). */
int loader_finish(struct loader *loader) TL_MUST_USE;

const struct loader_counts *loader_counts(const struct loader *loader);
/* The first error that made documents or the whole load fail; NULL: none. */
const char *loader_error(const struct loader *loader);

#endif
