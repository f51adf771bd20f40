/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the documents and subdirectories of one directory, by name. Deeper levels are skipped,
 * however large.
 *
 * The key of a document is its name; the key of a directory is its name and a delimiter. Items are
 * sorted by the bytes of their keys, so a listing can resume after any key. Documents with the same
 * name are adjacent, in unspecified order.
 *
 * Works at any timestamp, in transactions, and on any thread. In a view without renames a listing
 * is one scan of the path field's entries. With renames it checks names one by one: the names of
 * origins in the directory, and of its relocated entries. An origin that has not moved is
 * answered by its entry, any other name by path_lookup_exists().
 */
#ifndef TL_CORE_LISTING_H
#define TL_CORE_LISTING_H

#include "core/documents/doc.h"
#include "mapping/mapping.h"

enum { LISTING_END = 1 };

struct listing;

/* Valid until the next call of listing_next(). */
struct listing_item {
    struct slice key;          /* position for resuming: name, and the delimiter of a directory */
    struct slice name;         /* without the delimiter */
    bool directory;            /* documents exist below it; false: a document */
    struct slice document_key; /* of a document: type number and id; else empty */
    const struct doc *doc;
};

/*
 * Opens a listing of the directory `path` (empty: the root) after the key `after` (empty: from the
 * start).
 *
 * Requires: mapping_is_tree(), and the path field has entries; view and mapping outlive the
 *   listing.
 * Owns: the caller; listing_free().
 */
struct listing *listing_new(const struct view *view, uint32_t index, const struct mapping *mapping, struct slice path,
                            struct slice after);
void listing_free(struct listing *listing);
TL_DEFINE_FREEP(struct listing, listing_free)

/*
 * Charges all further reads to `account`; long paths cost more. The listing ends when the account
 * has ended. Without this call it is unlimited.
 *
 * Requires: the account outlives the listing.
 */
struct account;
void listing_set_account(struct listing *listing, struct account *account);

/* Reads the next item. Returns: 0; LISTING_END; fatal codes. */
int listing_next(struct listing *listing, struct listing_item *ret_item) TL_MUST_USE;

#endif
