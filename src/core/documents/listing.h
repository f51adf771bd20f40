/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies right in a directory: documents, and directories, by name. What lies deeper is stepped over, however much it is.
 *
 * Each thing has a key: a document its name, a directory its name and a delimiter. They come in the order of their keys' bytes, so that a listing
 * can go on behind any key. Several documents of one name come one after another, in no order that is told.
 *
 * Readable at any timestamp, in transactions, and on any thread, as documents are. Before anything was renamed in the view a listing is a walk over the
 * entries of the path field. Afterwards what is born there, and the guests of its places, are names to be asked about one by one: of what lies where it was born the entry says it, of the rest path_lookup_exists().
 */
#ifndef TL_CORE_LISTING_H
#define TL_CORE_LISTING_H

#include "core/documents/doc.h"
#include "mapping/mapping.h"

enum { LISTING_END = 1 };

struct listing;

/* Lives until the next one is asked for. */
struct listing_item {
    struct slice key;          /* README above */
    struct slice name;         /* without the delimiter */
    bool directory;            /* something lies below it; else a document lies at it: */
    struct slice document_key; /* ... type number and id */
    const struct doc *doc;
};

/*
 * Lists what lies right below `path` and has a key behind `after`, which may be empty. The root is the empty path. View and mapping must outlive it.
 * Requires: mapping_is_tree(), and entries of its path field.
 * Owns: the caller; listing_free().
 */
struct listing *listing_new(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                            struct slice after);
void listing_free(struct listing *listing);
TL_DEFINE_FREEP(struct listing, listing_free)

/*
 * From now on whatever it looks at is drawn from `account`, deep places dearer than others; once that is over the listing ends. Who has asked for
 * none goes to the end. The account outlives it.
 */
struct account;
void listing_set_account(struct listing *listing, struct account *account);

/* Returns: 0; LISTING_END; fatal codes. */
int listing_next(struct listing *listing, struct listing_item *ret_item) TL_MUST_USE;

#endif
