/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths of many origins in one state of the trees.
 *
 * tree_locate() reads a record for each level of an origin, and again above each directory entry to which it was
 * relocated. Documents that are looked at together have most of these levels in common: the last few origins that
 * were located are kept, with their paths.
 */
#ifndef TL_CORE_TREE_PATHS_H
#define TL_CORE_TREE_PATHS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"
#include "base/types.h"

struct tree;

enum { TREE_PATHS_KEPT = 16 };

/* The path of an origin, and thereby of its directories down to a length of `low`: they end earlier, as the origin. */
struct tree_kept_path {
    uint32_t index;
    size_t low;
    struct buf origin; /* empty: unused */
    struct buf path;
};

struct tree_paths {
    struct tree_kept_path kept[TREE_PATHS_KEPT];
    size_t last;    /* the one used last */
    size_t next;    /* the one to be replaced next */
    uint64_t reads; /* records read; tree_paths_take_reads() */
    /* Of the index asked for last; 0: none. */
    uint32_t index;
    tl_ts last_rename;
    char delimiter;
};

void tree_paths_init(struct tree_paths *paths);
void tree_paths_deinit(struct tree_paths *paths);

/* As tree_last_rename(), which is read once for consecutive calls with one index. */
int tree_paths_last_rename(struct tree_paths *paths, const struct tree *tree, tl_ts *ret_ts,
                           char *ret_delimiter) TL_MUST_USE;

/* Returns: the records read since the last call. */
static inline uint64_t tree_paths_take_reads(struct tree_paths *paths)
{
    uint64_t reads = paths->reads;
    paths->reads = 0;
    return reads;
}

/*
 * Finds the path of an origin; returns as tree_locate().
 * Requires: all calls are for one view and its pending records, which do not change meanwhile; tree->as_of is 0.
 */
int tree_paths_locate(struct tree_paths *paths, const struct tree *tree, struct slice origin, struct arena *arena,
                      struct slice *ret_path) TL_MUST_USE;

#endif
