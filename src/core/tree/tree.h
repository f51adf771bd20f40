/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path tree of an index in a view: resolves paths to origins, and origins to paths. README.md
 * defines the terms and the invariants cited by number.
 *
 * Reads take no lock. They run on any number of threads concurrently with the writer, at any
 * timestamp, and inside transactions.
 */
#ifndef TL_CORE_TREE_H
#define TL_CORE_TREE_H

#include "base/arena.h"
#include "base/omap.h"
#include "core/tree/tree_record.h"
#include "store/view.h"

enum {
    TREE_NOT_FOUND = 1, /* nothing can exist at the path */
    TREE_TOO_OLD = 2,   /* the view's timestamp is below the history limit */
    TREE_LIMITED = 3,   /* tree.reads_left was used up */
};

/*
 * Longest chain of origins, upward or downward. A longer one means that the store is corrupt: an
 * origin is below itself.
 */
#define TREE_ORIGINS_MAX 100000000

/*
 * Documents from this version on have a record of their own, because a rename may be unable to
 * raise it. README.md, "Versions and renames".
 */
#define TREE_VERSION_HIGH (INT64_MAX / 2)

/*
 * Bytes. Only longer origins affect the record of the longest origin. README.md, "Length of paths".
 */
#define TREE_ORIGIN_SHORT 4096
/*
 * Bytes. A longer origin cannot be renamed; otherwise origins would grow with each rename below a
 * long path.
 */
#define TREE_ORIGIN_MAX 16384

/* The tree of one index. A plain value; the view and `pending` must outlive its use. */
struct tree {
    const struct view *view;
    uint32_t index;
    char delimiter;
    const struct omap *pending; /* put by the open unit, not yet in the store (tree_write.h); NULL: nothing */
    tl_ts as_of;                /* tree_locate() ignores later renames; 0: none (README.md, "Relocation history") */
    size_t *reads_left;         /* limits the directory entries that tree_each_relocated() reads; NULL: no limit */
};

/* The renames of an origin and of all origins above it. */
struct tree_totals {
    int64_t renames; /* their sum: "total" in README.md, "Versions and renames" */
    int64_t seq_no;  /* highest; -1: none */
    tl_ts ts;        /* newest; 0: none */
};

/* Returns: whether `path` is `directory` or below it. */
bool tree_within(struct slice path, struct slice directory, char delimiter);
/* Returns: the length of the path's parent directory; 0: it has none. */
size_t tree_parent_length(struct slice path, char delimiter);

/*
 * Finds the timestamp of the index's last rename; 0: none. Newer documents are current as stored.
 * TREE_TS_OPEN: the view's transaction has renamed, so every document must be located.
 * *ret_delimiter (may be NULL) is set to the tree's delimiter if there was a rename; readers
 * without a mapping need it.
 *
 * Returns: 0; TREE_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int tree_last_rename(const struct tree *tree, tl_ts *ret_ts, char *ret_delimiter) TL_MUST_USE;

/*
 * Resolves a path to its origin, which is in `arena` or `path` itself.
 *
 * Returns: 0; TREE_NOT_FOUND: the path or a directory of it is vacated; TREE_TOO_OLD; TL_ERR_IO,
 *   TL_ERR_CORRUPT.
 */
int tree_resolve(const struct tree *tree, struct slice path, struct arena *arena, struct slice *ret_origin) TL_MUST_USE;

/*
 * Locates an origin: finds its path and the totals of its renames. *ret_path (may be NULL) is in
 * `arena`, or `origin` itself. `arena` also holds intermediate results.
 *
 * Returns: 0; TREE_NOT_FOUND: detached, so no document has it; TREE_TOO_OLD; TL_ERR_IO,
 *   TL_ERR_CORRUPT.
 */
int tree_locate(const struct tree *tree, struct slice origin, struct arena *arena, struct slice *ret_path,
                struct tree_totals *ret_totals) TL_MUST_USE;

/*
 * Bounds the length of paths below `path`: they exceed it by at most *ret_below bytes, an upper
 * bound that is usually not reached (README.md, "Length of paths"). Also finds the length of its
 * origin.
 *
 * Returns: 0; TREE_NOT_FOUND, as tree_resolve(); TREE_TOO_OLD; fatal codes.
 */
int tree_reach(const struct tree *tree, struct slice path, size_t *ret_below, size_t *ret_origin) TL_MUST_USE;

/*
 * Receives one origin or directory entry, valid for the call. A result other than 0 ends the
 * iteration.
 */
typedef int tree_visit(void *context, struct slice origin);

/*
 * Visits the origins relocated to a directory entry with this prefix, and recursively those
 * relocated below them, each once. So all documents at or below an origin O have O, an origin below
 * O, one visited for the prefix "O and a delimiter", or an origin below one of these.
 *
 * Requires: nothing is pending; the prefix up to its last delimiter is an origin that is not
 *   detached.
 * Ensures: tree->reads_left is lower by the number of directory entries read.
 * Returns: 0; the visitor's result; TREE_LIMITED; TREE_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int tree_each_relocated(const struct tree *tree, struct slice dirent_prefix, tree_visit *visit,
                        void *context) TL_MUST_USE;

/*
 * Visits the relocated directory entries with this prefix, at any depth, whether or not the origins
 * on the way to them were moved.
 *
 * Returns: as tree_each_relocated().
 */
int tree_each_dirent(const struct tree *tree, struct slice dirent_prefix, tree_visit *visit, void *context) TL_MUST_USE;

/* --- For tree_write.c --------------------------------------------------------------------------------------------- */

/*
 * Reads the origin relocated to a directory entry. Returns: 0; TREE_NOT_FOUND: none; TREE_TOO_OLD;
 * fatal codes.
 */
int tree__read_dirent(const struct tree *tree, struct slice dirent, struct arena *arena,
                      struct slice *ret_origin) TL_MUST_USE;
/*
 * Reads an origin's relocation record into `arena`; TREE_UNMOVED if it has none. Returns: 0;
 * TREE_TOO_OLD; fatal codes.
 */
int tree__read_relocation(const struct tree *tree, struct slice origin, struct arena *arena,
                          struct tree_relocation *ret_relocation) TL_MUST_USE;
/* Reads an origin's relocation history; empty: none. Returns: 0; TREE_TOO_OLD; fatal codes. */
int tree__read_history(const struct tree *tree, struct slice origin, struct arena *arena,
                       struct slice *ret_history) TL_MUST_USE;
/*
 * Finds the origin at a directory entry, relocated or unmoved. Returns: 0; TREE_NOT_FOUND: vacated;
 * TREE_TOO_OLD; fatal codes.
 */
int tree__origin_at(const struct tree *tree, struct slice dirent, struct arena *arena,
                    struct slice *ret_origin) TL_MUST_USE;
/* Reads a record that is a length; 0: no record. Returns: 0; TREE_TOO_OLD; fatal codes. */
int tree__read_length(const struct tree *tree, struct slice key, size_t *ret_length) TL_MUST_USE;
/* Returns: the end of the next name after `from`, which is 0 or at a delimiter. */
size_t tree__next_end(struct slice path, size_t from, char delimiter);
/*
 * Returns: the concatenation of an origin and the rest of a path, which begins with the delimiter;
 *   in `arena`.
 */
struct slice tree__join(struct arena *arena, struct slice origin, struct slice rest);

#endif
