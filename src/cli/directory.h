/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All entries of a directory, without those of its subdirectories, in an index that has a tree, by
 * `GET /{index}/_tree`, page by page.
 */
#ifndef TL_CLI_DIRECTORY_H
#define TL_CLI_DIRECTORY_H

#include "base/arena.h"
#include "cli/client.h"

/*
 * A name with its document, its directory, or a directory with its own document, as an imported one
 * has. Several documents of one name are as many adjacent entries; the last of them has the
 * directory.
 */
struct directory_entry {
    struct slice name;
    yyjson_val *source; /* NULL: no document */
    bool directory;     /* it has entries below it, or its document says that it is a directory */
    bool below;         /* it has entries below it */
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
    long long ts;       /* of the first reply: the next pages are read at the same timestamp; 0: none yet */
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
