/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of nodes as it lies in SPACE_TREE: README.md, "In the store".
 */
#ifndef TL_CORE_TREE_RECORD_H
#define TL_CORE_TREE_RECORD_H

#include "base/buf.h"
#include "base/error.h"
#include "base/types.h"

/* Nodes without a record. */
enum {
    TREE_NOWHERE = 0,       /* parent of a node that gave way to another */
    TREE_ROOT_ABSOLUTE = 1, /* of paths that begin with the delimiter */
    TREE_ROOT_RELATIVE = 2,
    TREE_NODE_FIRST = 16,
};

/* The timestamp of a rename whose transaction has not committed yet. */
#define TREE_TS_OPEN TL_TS_MAX

/* What a name in a directory means. */
struct tree_name {
    uint64_t here; /* the node that has it; 0: none */
    uint64_t born; /* the node whose documents were stored at the name; 0: none */
};

/* A numbered node. Slices lie in the record. */
struct tree_node {
    tl_ts ts; /* of its newest rename; 0: none. TREE_TS_OPEN in an overlay */
    uint64_t parent;
    int64_t renames;
    int64_t seq_no; /* of its newest rename; -1: none */
    struct slice name;
    bool has_born;        /* documents are stored at the name where it was born: */
    uint64_t born_parent; /* ... this one in that directory; else both are its parent and name, or unset */
    struct slice born_name;
};

/* Keys, appended to an empty buffer. Returns: the key, which lives as long as the buffer's bytes. */
struct slice tree_name_key(struct buf *buf, uint32_t index, uint64_t parent, struct slice name);
struct slice tree_node_key(struct buf *buf, uint32_t index, uint64_t node);
struct slice tree_newest_key(struct buf *buf, uint32_t index);
/* Returns: the first key behind all names of a directory. */
struct slice tree_names_end(struct buf *buf, uint32_t index, uint64_t parent);
/* Returns: the name in a name record's key. Requires: the key is one. */
struct slice tree_key_name(struct slice key);

void tree_name_encode(struct buf *buf, const struct tree_name *name);
int tree_name_decode(struct slice value, struct tree_name *ret_name) TL_MUST_USE; /* 0, TL_ERR_CORRUPT */
void tree_node_encode(struct buf *buf, const struct tree_node *node);
int tree_node_decode(struct slice value, struct tree_node *ret_node) TL_MUST_USE; /* 0, TL_ERR_CORRUPT */

/*
 * Returns: whether the record tells of a rename of a transaction that has not committed: its first eight bytes are to become the
 * commit's timestamp.
 */
bool tree_record_is_open(struct slice key, struct slice value);

#endif
