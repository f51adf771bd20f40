/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of lockable resources: everything, indices, directories, documents. Next to the indices
 * it has the names of indices and of stored scripts. README-locks.md, "Resources" and "Names".
 *
 * A resource is in the table while it or a descendant is held or requested (invariant 8). It has
 * the state that the lock table needs at one node: its holds, their number by bit, its wait queue.
 */
#ifndef TL_CORE_RESOURCE_H
#define TL_CORE_RESOURCE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/mem_chain.h"
#include "base/slice.h"
#include "base/treap.h"

/*
 * The deepest level of a path. A deeper document is placed in its ancestor here; a deeper lock is
 * refused.
 */
#define RESOURCE_LEVELS_MAX 4096

/* What a hold or a request puts on a resource. An intention bit plus 3 is the bit of its lock. */
enum lock_bit { LOCK_BIT_IS, LOCK_BIT_IU, LOCK_BIT_IX, LOCK_BIT_S, LOCK_BIT_U, LOCK_BIT_X, LOCK_BIT_COUNT };

enum resource_kind {
    RESOURCE_ALL,
    RESOURCE_INDEX,
    RESOURCE_DIRECTORY,
    RESOURCE_DOCUMENT,
    RESOURCE_NAMES, /* all names of indices, or all names of stored scripts */
    RESOURCE_NAME,
    RESOURCE_KIND_COUNT
};

/* Stored data, or the meaning of names: of index names, of script names. */
enum resource_space { RESOURCE_SPACE_TREE, RESOURCE_SPACE_NAMES, RESOURCE_SPACE_SCRIPTS, RESOURCE_SPACE_COUNT };

/*
 * Names a resource. In the spaces of names and of scripts, `index` is the name and the other slices
 * are empty.
 */
struct resource_name {
    struct slice index; /* empty: everything, or all names of the space */
    struct slice path;  /* a directory, or that of the document; data NULL: none */
    struct slice type;
    struct slice id; /* data NULL: no document */
    enum resource_space space;
};

struct lock_queue;

struct resource {
    struct resource *parent;  /* of a document: its directory or its index; NULL: the root */
    struct resource *index;   /* of a directory or a document; NULL: it is neither */
    struct resource *chain;   /* next in the hash bucket of the table */
    struct resource *child;   /* the resources whose parent it is, in no order that may matter: the first of a list */
    struct resource *next;    /* in that list */
    struct resource *before;  /* in that list; NULL: the first */
    struct resource *id_next; /* of a document with a type: next in the bucket of its index and id */
    struct resource *id_before; /* in that bucket; NULL: the first */
    struct list holds;        /* struct lock_hold by `of_resource`, oldest first */
    struct treap held_by;     /* the same by `by_bits`, in the same order */
    struct lock_queue *queue; /* NULL: no request waits here */
    uint64_t visit_epoch;     /* of the last resource_visit() */
    /* replaces its address in hashes, which must not depend on addresses; may wrap */
    uint32_t number;
    uint32_t hash;
    uint32_t held[LOCK_BIT_COUNT]; /* number of holds with each bit; invariant 3 */
    uint32_t refs;                 /* from children, holds, requests and callers */
    uint32_t name_len;             /* bytes of `name` */
    /* of a document: bytes of its type, at the beginning of `name` */
    uint16_t type_len;
    uint8_t kind;         /* enum resource_kind */
    uint8_t visited_bits; /* bits visited in that epoch */
    /*
     * Locks still to be added to below[] (lock.c), or one plus the resource's index (lock_codec.c,
     * lock_move.c); else 0.
     */
    uint32_t scratch;
    uint32_t directory_locks; /* of an index: locks on its directories, without intention locks */
    char name[]; /* of a document: type and id */
};

/*
 * The tables of resources and of holds are halved when less than one in so many buckets is used, so that they take no
 * memory for what there was once. A table that varies about one size is neither halved nor doubled again and again.
 */
enum { RESOURCE_BUCKETS_MIN = 64, RESOURCE_SHRINK_BELOW = 8 };

struct resource_table {
    struct resource *root;
    struct resource **buckets;
    size_t bucket_count; /* power of two */
    size_t count;        /* resources, without the root */
    struct resource **ids;  /* documents with a type, by index and id; NULL: no document has one */
    size_t id_bucket_count; /* power of two; 0: no document has one */
    size_t id_count;
    size_t bytes;        /* memory of all resources, with the root */
    uint32_t last_number;
    uint64_t epoch; /* resource_new_epoch() */
    /* Gets the blocks of resources and holds that end, for the reclaimer; NULL: they are freed at once */
    struct mem_chain **freed;
    bool keeps_size; /* it is not halved: resource_table_shrink() follows when many were released */
    /* steps of lookups since the table was made; work, but not part of the state */
    uint64_t lookups;
};

/* Counts a step of a lookup. The table is const because lookups do not change its state. */
static inline void resource_count_lookup(const struct resource_table *table)
{
    ((struct resource_table *)table)->lookups++;
}

/* Makes a table with the root only. */
void resource_table_init(struct resource_table *table);
/* Frees a resource, or a hold, that is in no table any more. */
static inline void resource_free_block(const struct resource_table *table, void *block)
{
    if (table->freed != NULL)
        mem_chain_add(table->freed, block);
    else
        mem_free(block);
}

/* Gives a table that has kept its size the size that it needs. */
void resource_table_shrink(struct resource_table *table);
/* Returns: the buckets of a table of `count` elements, which may have fewer than before. */
size_t resource_buckets_needed(size_t bucket_count, size_t count);
/* Frees the table. Requires: only the root is left, with no other reference. */
void resource_table_deinit(struct resource_table *table);

/*
 * The path opened last. Most paths opened in succession differ only in their last segments, so each
 * is resolved from its common ancestor with the previous one. Starts as RESOURCE_PATH_CACHE_INIT.
 */
struct resource_path_cache {
    struct resource *index; /* of the path; NULL: the cache is empty */
    struct slice path;
    struct resource *node; /* the directory of the path */
    size_t level;          /* of that directory, as in struct resource_path */
};
#define RESOURCE_PATH_CACHE_INIT ((struct resource_path_cache){0})

/*
 * Finds or makes a resource and its ancestors. A document that is already in the table keeps its
 * directory, whatever `name` says.
 * Requires: the caller still has its references on resources opened with this cache, and the bytes
 * of their paths.
 * Owns: the caller gets one reference, for resource_unref().
 */
struct resource *resource_open(struct resource_table *table, const struct resource_name *name,
                               struct resource_path_cache *cache);

/*
 * Makes a resource of a saved table below `parent`, or, if `may_exist`, finds it there. The caller
 * checks its depth (RESOURCE_LEVELS_MAX).
 * Returns: NULL if this kind or name is not possible below `parent`, or exists otherwise.
 * Owns: as resource_open().
 */
struct resource *resource_restore(struct resource_table *table, struct resource *parent, enum resource_kind kind,
                                  struct slice type, struct slice name, bool may_exist);

/* Takes a reference. Returns: the resource. */
static inline struct resource *resource_ref(struct resource *resource)
{
    resource->refs++;
    return resource;
}

/*
 * Releases a reference. Frees the resource with its last one, and then its ancestors in the same
 * way.
 */
void resource_unref(struct resource_table *table, struct resource *resource);

/*
 * Prefetch what resource_unref() reads: the bucket of a resource, and then the first resource in it, whose address
 * the bucket has. For a loop that releases many: each some iterations after the one before it, the last a few early.
 */
static inline void resource_prefetch_bucket(const struct resource_table *table, const struct resource *resource)
{
    __builtin_prefetch(&table->buckets[resource->hash & (table->bucket_count - 1)]);
}
static inline void resource_prefetch_chain(const struct resource_table *table, const struct resource *resource)
{
    const struct resource *first = table->buckets[resource->hash & (table->bucket_count - 1)];
    if (first != NULL)
        __builtin_prefetch(&first->chain);
}

/* Lookups. Each returns NULL when the resource is not in the table. */
struct resource *resource_index(const struct resource_table *table, struct slice index);
struct resource *resource_document(const struct resource_table *table, const struct resource *index, struct slice type,
                                   struct slice id);
struct resource *resource_child(const struct resource_table *table, const struct resource *parent, struct slice name);
/*
 * Looks up a name in a space of names or scripts; of an empty name, the node of all names of the
 * space.
 */
struct resource *resource_of_name(const struct resource_table *table, enum resource_space space, struct slice name);
/*
 * Iterates over the documents of all types with one id; `after` is the previous one, or NULL. They
 * come in bucket order, which depends on the table's history: the caller's result must not depend
 * on it (README.md, invariant 8).
 */
struct resource *resource_with_id(const struct resource_table *table, const struct resource *index, struct slice id,
                                  const struct resource *after);

/* Returns: the type of a document. */
static inline struct slice resource_type(const struct resource *document)
{
    return (struct slice){document->name, document->type_len};
}

/* Returns: whether a resource is a name or the node of all names, in either space. */
static inline bool resource_is_name(const struct resource *resource)
{
    return resource->kind == RESOURCE_NAMES || resource->kind == RESOURCE_NAME;
}

/*
 * Iterates over the segments of a path: first "/", then the names between the slashes. Empty
 * segments are skipped. Starts with resource_path(); resource_path_next() returns false at the end,
 * and at RESOURCE_LEVELS_MAX.
 */
struct resource_path {
    struct slice left; /* the rest of the path */
    size_t level;      /* segments read */
};
static inline struct resource_path resource_path(struct slice path)
{
    return (struct resource_path){path, 0};
}
bool resource_path_next(struct resource_path *path, struct slice *ret_segment);
/* Returns: whether a path has at most RESOURCE_LEVELS_MAX levels. */
bool resource_path_fits(struct slice path);

/*
 * Moves a document to another directory of its index, or, with path.data NULL, directly into it. Holds that its locks
 * have on its ancestors are the caller's to move.
 */
void resource_move(struct resource_table *table, struct resource *document, struct slice path,
                   struct resource_path_cache *cache);

/* Returns: whether `above` is `resource` or an ancestor of it. */
bool resource_covers(const struct resource *above, const struct resource *resource);

/* Starts a traversal that visits each (resource, bit) once. Ends the previous one. */
void resource_new_epoch(struct resource_table *table);
/* Marks a (resource, bit) as visited. Returns: whether this is its first visit in this epoch. */
bool resource_visit(const struct resource_table *table, struct resource *resource, enum lock_bit bit);

/* Compares in tree order: ancestors first, then siblings by kind and name. Returns: <0, 0, >0. */
int resource_compare(const struct resource *a, const struct resource *b);

/* Returns: the name of a resource. Its path is in `arena`, its other parts are in the resource. */
struct resource_name resource_name(const struct resource *resource, struct arena *arena);

/*
 * Appends a name for messages: "everything", "fs", "fs:/clinton", "fs/1", "fs/type/1", "the name
 * a".
 */
void resource_print(const struct resource *resource, struct buf *buf);
void resource_name_print(const struct resource_name *name, struct buf *buf);

#endif
