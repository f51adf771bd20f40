/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of things that can be locked: everything, indices, directories, documents; beside the indices, what names mean.
 * README-locks.md, "Resources" and "Names".
 *
 * A resource exists while somebody holds or awaits it or something below it (invariant 8). It keeps what the lock
 * table needs to decide at one node: how many holds have each bit, who holds, who waits.
 */
#ifndef TL_CORE_RESOURCE_H
#define TL_CORE_RESOURCE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "base/treap.h"

/* A path goes this deep at most: deeper documents lie in their ancestor at this depth, deeper locks are refused. */
#define RESOURCE_LEVELS_MAX 4096

/* What a hold or a request puts on a resource. The order matters: intention + 3 is the mode it announces. */
enum lock_bit { LOCK_BIT_IS, LOCK_BIT_IU, LOCK_BIT_IX, LOCK_BIT_S, LOCK_BIT_U, LOCK_BIT_X, LOCK_BIT_COUNT };

enum resource_kind {
    RESOURCE_ALL,
    RESOURCE_INDEX,
    RESOURCE_DIRECTORY,
    RESOURCE_DOCUMENT,
    RESOURCE_NAMES, /* all names of indices, or of stored scripts */
    RESOURCE_NAME,
    RESOURCE_KIND_COUNT
};

/* What a resource is about: what is stored, or what a name means. */
enum resource_space { RESOURCE_SPACE_TREE, RESOURCE_SPACE_NAMES, RESOURCE_SPACE_SCRIPTS, RESOURCE_SPACE_COUNT };

/*
 * Names a resource. index empty: everything, or all names of the space; path data NULL: no directory; id data NULL: no
 * document. In the space of names or of scripts `index` is the name, and nothing else is set.
 */
struct resource_name {
    struct slice index;
    struct slice path; /* of a document: where it lies */
    struct slice type;
    struct slice id;
    enum resource_space space;
};

struct lock_queue;

struct resource {
    struct resource *parent;  /* NULL: everything. A document's is the directory it lies in, or its index */
    struct resource *chain;   /* next in the table's bucket */
    struct list holds;        /* struct lock_hold by `of_resource`, oldest first */
    struct treap held_by;     /* the same by `by_bits`, in the same order */
    struct lock_queue *queue; /* NULL: nobody waits */
    uint64_t visit_epoch;      /* resource_visit() */
    uint32_t number;          /* names the resource in hashes, for they must not see addresses; comes round */
    uint32_t hash;
    uint32_t held[LOCK_BIT_COUNT]; /* invariant 3 */
    uint32_t refs;                 /* children, holds, wants */
    uint32_t name_len;             /* of a document: type and id together */
    uint16_t type_len;
    uint8_t kind;
    uint8_t visited_bits;
    uint32_t
        scratch; /* locks below that an owner is about to be given, while his marks go up; its place, while the table is written; else 0 */
    char name[];
};

struct resource_table {
    struct resource *root;
    struct resource **buckets;
    size_t bucket_count; /* power of two */
    size_t count;        /* the root is not counted */
    size_t bytes;        /* that the resources take, with it */
    uint32_t last_number;
    uint64_t epoch;
    uint64_t lookups; /* of looks that change nothing, ever; work, and no part of the state */
};

/* Counts a turn of a look, also of one by whom the table is not to be changed. */
static inline void resource_count_lookup(const struct resource_table *table)
{
    ((struct resource_table *)table)->lookups++;
}

void resource_table_init(struct resource_table *table);
/* Requires: nothing but the root is left. */
void resource_table_deinit(struct resource_table *table);

/*
 * Where the path opened last has led: of paths opened one after the other most differ in their last names only, and are
 * walked from where they part. Begins as RESOURCE_PATH_CACHE_INIT.
 */
struct resource_path_cache {
    struct resource *index; /* that the path is of; NULL: there is no trail */
    struct slice path;
    struct resource *node;
    size_t level; /* of `place`, as resource_path counts them */
};
#define RESOURCE_PATH_CACHE_INIT ((struct resource_path_cache){0})

/*
 * Finds or makes a resource and what is above it. A document that is in the table already stays where it lies.
 * Requires: what was opened with the trail before is referred to still, and the paths' bytes are there.
 * Owns: the caller one reference; resource_unref().
 */
struct resource *resource_open(struct resource_table *table, const struct resource_name *name,
                               struct resource_path_cache *trail);

/*
 * Makes one below another, as it stood there in a table that was saved. Who calls looks how deep it is (RESOURCE_LEVELS_MAX).
 * Returns: NULL where none of that name can stand there, or one does.
 * Owns: as resource_open().
 */
struct resource *resource_restore(struct resource_table *table, struct resource *parent, enum resource_kind kind,
                                  struct slice type, struct slice name);

static inline struct resource *resource_ref(struct resource *resource)
{
    resource->refs++;
    return resource;
}

/* Returns: the index that a document lies in. */
struct resource *resource_index_of(const struct resource *document);

/* Gives a reference back; the resource and what is above it go when nothing needs them. */
void resource_unref(struct resource_table *table, struct resource *resource);

/* Has the processor fetch what resource_unref() will look at: for who gives back many, a few ahead of the one at hand. */
static inline void resource_prefetch(const struct resource_table *table, const struct resource *resource)
{
    __builtin_prefetch(&table->buckets[resource->hash & (table->bucket_count - 1)]);
}

/* Looking without making. Each returns NULL where there is nothing. */
struct resource *resource_index(const struct resource_table *table, struct slice index);
struct resource *resource_document(const struct resource_table *table, const struct resource *index, struct slice type,
                                   struct slice id);
struct resource *resource_child(const struct resource_table *table, const struct resource *parent, struct slice name);
/* A name, or with an empty one all of its space. */
struct resource *resource_of_name(const struct resource_table *table, enum resource_space space, struct slice name);
/*
 * Walks over the documents of all types that have an id. `after` NULL: from the first. In the order of a bucket, which depends on what the table once had:
 * nothing may hang on it (README.md, invariant 8).
 */
struct resource *resource_with_id(const struct resource_table *table, const struct resource *index, struct slice id,
                                  const struct resource *after);

/* Returns: the type of a document. */
static inline struct slice resource_type(const struct resource *document)
{
    return (struct slice){document->name, document->type_len};
}

/* Returns: whether a resource is what names mean, all or one. */
static inline bool resource_is_name(const struct resource *resource)
{
    return resource->kind == RESOURCE_NAMES || resource->kind == RESOURCE_NAME;
}

/*
 * The segments of a path: "/" first, then the names between its slashes; starts at resource_path().
 * Returns: false at the end, and below RESOURCE_LEVELS_MAX.
 */
struct resource_path {
    struct slice left;
    size_t level;
};
static inline struct resource_path resource_path(struct slice path)
{
    return (struct resource_path){path, 0};
}
bool resource_path_next(struct resource_path *path, struct slice *ret_segment);
/* Returns: false when a path has more than RESOURCE_LEVELS_MAX levels. */
bool resource_path_fits(struct slice path);

/* Hangs a document under another place. Requires: no bits of it count anywhere above. */
void resource_move(struct resource_table *table, struct resource *document, struct slice path);

/* Returns: whether `above` is `resource` or lies above it. */
bool resource_covers(const struct resource *above, const struct resource *resource);

/* Marks: whether a (resource, bit) is met for the first time since resource_new_epoch(). */
void resource_new_epoch(struct resource_table *table);
bool resource_visit(const struct resource_table *table, struct resource *resource, enum lock_bit bit);

/* Order of the tree: parents first, then by name; directories before documents. Returns: <0, 0, >0. */
int resource_compare(const struct resource *a, const struct resource *b);

/* The parts of a name; path and what else must be put together live in `arena`. */
struct resource_name resource_name(const struct resource *resource, struct arena *arena);

/* "everything", "fs", "fs:/clinton", "fs/1", "fs/type/1", "the name a": how stories and messages call it. */
void resource_print(const struct resource *resource, struct buf *buf);
/* The same of its name. */
void resource_name_print(const struct resource_name *name, struct buf *buf);

#endif
