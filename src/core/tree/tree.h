/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of an index, as a view has it: from paths to births and back. README.md has the concept; its invariants are cited by number.
 *
 * Reading needs no lock and may go on in any number of threads beside the writer, at any timestamp and inside transactions.
 */
#ifndef TL_CORE_TREE_H
#define TL_CORE_TREE_H

#include "base/arena.h"
#include "base/omap.h"
#include "core/tree/tree_record.h"
#include "store/view.h"

/* Outcomes. */
enum {
    TREE_NOT_FOUND = 1, /* nothing can lie there */
    TREE_TOO_OLD = 2,   /* the view's timestamp is below the history cut-off */
};

/* Births on one way up, or below one another, beyond which a store is taken to be damaged: one lies below itself. */
#define TREE_ORIGINS_MAX 100000000

/* Versions from here on are noted, since renames may not be able to raise them: README.md, "Counting a rename as a change". */
#define TREE_VERSION_HIGH (INT64_MAX / 2)

/* Births up to this long are not told of: README.md, "Bounds". */
#define TREE_ORIGIN_SHORT 4096
/* What has a longer birth than this is not renamed any more: births would grow with each rename below a long path. */
#define TREE_ORIGIN_MAX 16384

/* The tree of one index. A plain value; the view and what is pending must outlive its use. */
struct tree {
    const struct view *view;
    uint32_t index;
    char delimiter;
    const struct omap *pending; /* what a unit has put and its store has not yet (tree_write.h); NULL: nothing */
    tl_ts as_of; /* tree_locate() says how it was then: README.md, "The past of a birth"; 0: as the view has it */
};

/* What the renames of a birth, and of all above it, come to. */
struct tree_totals {
    int64_t renames; /* README.md, "Counting a rename as a change": total */
    int64_t seq_no;  /* the highest; -1: none */
    tl_ts ts;        /* the newest; 0: none */
};

/* Returns: whether a path is `directory`, or lies below it. */
bool tree_within(struct slice path, struct slice directory, char delimiter);
/* Returns: the length of the directory that a path lies in: 0: it lies in none. */
size_t tree_parent_length(struct slice path, char delimiter);

/*
 * Finds the timestamp of the index's newest rename; 0: none. Documents that are newer stand as they are stored. TREE_TS_OPEN: the
 * view's transaction has renamed, and nothing can be said. *ret_delimiter (may be NULL) is the tree's, where there was a rename: a
 * reader who knows no mapping has it from here.
 * Returns: 0; TREE_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int tree_last_rename(const struct tree *tree, tl_ts *ret_ts, char *ret_delimiter) TL_MUST_USE;

/*
 * Finds the birth that lies at a path: what a document of this path would be born as. It is in `arena`, or `path` itself.
 * Returns: 0; TREE_NOT_FOUND: the place is vacant, or lies below one that is; TREE_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int tree_resolve(const struct tree *tree, struct slice path, struct arena *arena, struct slice *ret_birth) TL_MUST_USE;

/*
 * Finds where a birth lies, and what renames have done to it. ret_path (may be NULL) is in `arena`, which also holds what is needed on
 * the way, or `birth` itself.
 * Returns: 0; TREE_NOT_FOUND: nowhere, so no document has it; TREE_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int tree_locate(const struct tree *tree, struct slice birth, struct arena *arena, struct slice *ret_path,
               struct tree_totals *ret_standing) TL_MUST_USE;

/*
 * Finds how much longer than the path of what lies at `path` those of documents below it can be: at most *ret_below bytes, more than any is as
 * a rule (README.md, "Bounds"); and the length of the birth that lies there.
 * Returns: 0; TREE_NOT_FOUND, as tree_resolve(); TREE_TOO_OLD; fatal codes.
 */
int tree_reach(const struct tree *tree, struct slice path, size_t *ret_below, size_t *ret_birth) TL_MUST_USE;

/* What a visitor other than 0 returns ends the walk, which returns it. The slice lives for the call. */
typedef int tree_visit(void *context, struct slice birth);

/*
 * Visits the guests at places that begin with these bytes, and those below guests, each once. So all documents at or below a birth B are
 * born as B, below B, as one of the guests of "B and a delimiter", or below those.
 * Requires: nothing is pending; what the bytes say up to their last delimiter is a birth that lies somewhere.
 * Returns: 0; what the visitor returned; TREE_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int tree_each_relocated(const struct tree *tree, struct slice place_prefix, tree_visit *visit, void *context) TL_MUST_USE;

/*
 * Visits the places that begin with these bytes and have a guest: those of births below as well, whether or not these still lie there.
 * Returns: as tree_each_relocated().
 */
int tree_each_dirent(const struct tree *tree, struct slice place_prefix, tree_visit *visit, void *context) TL_MUST_USE;

/* --- For tree_write.c --------------------------------------------------------------------------------------------- */

/* Reads what lies at a place by record. Returns: 0; TREE_NOT_FOUND: no guest; TREE_TOO_OLD; fatal codes. */
int tree__read_dirent(const struct tree *tree, struct slice place, struct arena *arena, struct slice *ret_guest) TL_MUST_USE;
/* Reads a birth's record; its slices in `arena`. Without one it is at home. Returns: 0; TREE_TOO_OLD; fatal codes. */
int tree__read_relocation(const struct tree *tree, struct slice birth, struct arena *arena,
                struct tree_relocation *ret_moved) TL_MUST_USE;
/* Reads what is kept of a birth's record from before renames; empty: nothing. Returns: 0; TREE_TOO_OLD; fatal codes. */
int tree__read_history(const struct tree *tree, struct slice birth, struct arena *arena, struct slice *ret_past) TL_MUST_USE;
/* What lies at a place. Returns: 0; TREE_NOT_FOUND: it is vacant; TREE_TOO_OLD; fatal codes. */
int tree__origin_at(const struct tree *tree, struct slice place, struct arena *arena, struct slice *ret_birth) TL_MUST_USE;
/* Reads a length; 0 where there is none. Returns: 0; TREE_TOO_OLD; fatal codes. */
int tree__read_length(const struct tree *tree, struct slice key, size_t *ret_length) TL_MUST_USE;
/* The end of the next name of a path behind `from`; where a path begins, `from` is 0. */
size_t tree__next_end(struct slice path, size_t from, char delimiter);
/* A birth, and what follows it in a path: the delimiter included. In `arena`. */
struct slice tree__join(struct arena *arena, struct slice birth, struct slice rest);

#endif
