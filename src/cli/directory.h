/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies right in a directory of an index that has a tree, all of it, by `GET /{index}/_tree`, page by page.
 */
#ifndef TL_CLI_DIRECTORY_H
#define TL_CLI_DIRECTORY_H

#include "base/arena.h"
#include "cli/client.h"

/*
 * A name, and what lies there: a document, a directory, or a directory with its own document, as one that was imported has. Several documents of one
 * name are as many entries, one after another; the last of them has what lies below.
 */
struct directory_entry {
    struct slice name;
    yyjson_val *source; /* NULL: no document */
    bool directory;     /* something lies below it, or its document says that it is one */
    bool below;         /* something lies below it */
};

/* In order of names. Names and sources live as long as it does. */
struct directory {
    struct arena arena;
    struct directory_entry *items;
    size_t count, capacity;
    yyjson_doc **pages;
    size_t page_count, page_capacity;
};

struct directory_ask {
    const char *index;
    const char *source; /* fields to show, apart by commas; "true": all */
    const char *as_of;  /* NULL: now */
    long long ts;       /* of the first reply: what is asked next is of the same moment; 0: none yet */
};

/*
 * Reads a directory; `path` has no slash at its end, and the root is empty. One that is not there has no entries.
 * Returns: 200; what the server, or client_request(), said instead: client_error() has the reason.
 * Owns: the caller, *ret_directory in any case; directory_deinit().
 */
long directory_read(struct client *client, struct directory_ask *ask, struct slice path,
                    struct directory *ret_directory) TL_MUST_USE;
void directory_deinit(struct directory *directory);

#endif
