/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of an index, as a view has it: from paths to places and back. README.md has the concept; its invariants are cited by number.
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

/* Names on one way up, beyond which a store is taken to be damaged. */
#define TREE_DEPTH_MAX 100000

/* The nodes of one index. A plain value; the view and what is pending must outlive its use. */
struct tree {
    const struct view *view;
    uint32_t index;
    char delimiter;
    const struct omap *pending; /* what a unit has put and its store has not yet (tree_write.h); NULL: nothing */
};

/* A node: a numbered one, or the name in a numbered one. It is what documents are stored at. */
struct tree_place {
    uint64_t node;
    bool named;
    struct slice name; /* when named; it may be empty */
};

static inline bool tree_place_equal(const struct tree_place *a, const struct tree_place *b)
{
    return a->node == b->node && a->named == b->named && (!a->named || slice_equal(a->name, b->name));
}

/* What the renames of a place, and of all above it, come to. */
struct tree_standing {
    int64_t renames; /* README.md, "Counting a rename as a change": total */
    int64_t seq_no;  /* the highest; -1: none */
    tl_ts ts;        /* the newest; 0: none */
};

/* A path, taken name by name. Any text is one, and has at least one name. */
struct tree_path {
    uint64_t root;
    struct slice rest;
    char delimiter;
    bool ended;
};
struct tree_path tree_path_begin(struct slice text, char delimiter);
/* Returns: false behind the last name; else *ret_last says whether this is it. */
bool tree_path_next(struct tree_path *path, struct slice *ret_name, bool *ret_last);

/*
 * Finds the node that has a path: where a document of this path would be stored by now. Its name is part of `path`.
 * Returns: 0; TREE_NOT_FOUND; TREE_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int tree_find(const struct tree *tree, struct slice path, struct tree_place *ret_place) TL_MUST_USE;

/*
 * Finds where documents that are stored at a place lie, and what renames have done to them. ret_path (may be NULL), that of a root is
 * empty, is in `arena`, which also holds what is needed on the way.
 * Returns: 0; TREE_NOT_FOUND: nowhere, so no document is stored there; TREE_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int tree_stand(const struct tree *tree, const struct tree_place *place, struct arena *arena, struct slice *ret_path,
               struct tree_standing *ret_standing) TL_MUST_USE;

/*
 * Finds the timestamp of the index's newest rename; 0: none. Documents that are newer stand as they are stored. TL_TS_MAX: the view's
 * transaction has renamed, and nothing can be said. *ret_delimiter (may be NULL) is the tree's, where there was a rename: a reader who knows no
 * mapping has it from here.
 * Returns: 0; TREE_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int tree_newest(const struct tree *tree, tl_ts *ret_ts, char *ret_delimiter) TL_MUST_USE;

/* Places where documents may be stored that lie at a node, or at or below it. */
enum tree_reach {
    TREE_AT,    /* place: itself */
    TREE_UNDER, /* place.node itself, and all names in it */
};
/* What a visitor other than 0 returns ends the walk, which returns it. Slices live for the call. */
typedef int tree_visit_place(void *context, enum tree_reach reach, const struct tree_place *place);

/*
 * Visits the places where documents at a node may be stored, all with TREE_AT; or those of a node and of all below it. No document is left out;
 * some that are named may lie elsewhere by now, and some places are named twice.
 * Requires: nothing is pending; `place` is from tree_find() in the same view.
 * Returns: 0; what the visitor returned; TREE_TOO_OLD; TL_ERR_IO, TL_ERR_CORRUPT.
 */
int tree_sources(const struct tree *tree, const struct tree_place *place, tree_visit_place *visit,
                 void *context) TL_MUST_USE;
int tree_walk(const struct tree *tree, const struct tree_place *place, tree_visit_place *visit,
              void *context) TL_MUST_USE;

/*
 * Visits the numbered nodes right below a numbered one, in order of name, from a name on. Named ones have no record: their
 * documents have entries.
 * Requires and Returns: as tree_walk().
 */
typedef int tree_visit_child(void *context, struct slice name, uint64_t node);
int tree_children(const struct tree *tree, uint64_t node, struct slice from, tree_visit_child *visit,
                  void *context) TL_MUST_USE;

/* --- For tree_write.c --------------------------------------------------------------------------------------------- */

/* Reads a record. Returns: 0, the caller releases *ret_value; TREE_NOT_FOUND; TREE_TOO_OLD; fatal codes. */
int tree__get(const struct tree *tree, struct slice key, struct store_value *ret_value) TL_MUST_USE;
/* Reads a name; {0, 0} where there is no record. Returns: 0; TREE_TOO_OLD; fatal codes. */
int tree__name(const struct tree *tree, uint64_t parent, struct slice name, struct tree_name *ret_name) TL_MUST_USE;
/* Reads a numbered node that has a record; its slices in `arena`. Returns: 0; TREE_NOT_FOUND; TREE_TOO_OLD; fatal codes. */
int tree__node(const struct tree *tree, uint64_t node, struct arena *arena, struct tree_node *ret_node) TL_MUST_USE;

static inline bool tree__is_root(uint64_t node)
{
    return node == TREE_ROOT_ABSOLUTE || node == TREE_ROOT_RELATIVE;
}

#endif
