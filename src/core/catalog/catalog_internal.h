/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building catalogs: in memory (catalog__set_…, catalog__remove_…), and with the difference written
 * to a batch (catalog__put_…, catalog__drop_…), which handlers use.
 *
 * Keys in SPACE_CATALOG: 'i' and index (u32be): an index without its mapping; 'm' and index: its
 * mapping; a letter by kind (kind_letters of catalog_store.c) and a name: an object; 'n': a counter
 * (counter.h).
 */
#ifndef TL_CORE_CATALOG_INTERNAL_H
#define TL_CORE_CATALOG_INTERNAL_H

#include <stdatomic.h>

#include "base/magic.h"
#include "core/catalog/catalog.h"

struct catalog_counters {
    atomic_size_t refs;
    atomic_uint_fast64_t documents;
    atomic_int_fast64_t next_seq_no;
    atomic_uint_fast64_t stats[INDEX_STAT_COUNT]; /* by enum index_stat; not part of the state */
};

struct catalog_counters *catalog__counters_new(void);
void catalog__counters_add(struct catalog_counters *counters, enum index_stat stat, uint64_t more);
struct catalog_counters *catalog__counters_ref(struct catalog_counters *counters);
void catalog__counters_unref(struct catalog_counters *counters);

/* The rarely changed part of an index: names, settings and aliases. */
struct catalog_body {
    atomic_size_t refs;
    struct arena arena;
};

struct catalog_node {
    atomic_size_t refs;
    struct catalog_body *body;
    struct mapping *mapping;
    struct catalog_index index; /* for readers; points into the body */
};

/* An alias and one of its indices. */
struct alias_use {
    struct slice alias;
    struct slice index;
    uint32_t number;               /* of the index */
    enum catalog_flag write_index; /* as the index says */
    bool hidden;                   /* is_hidden is true */
    struct catalog_body *body;     /* of the index, which has the names; a reference */
    /* The first use of an alias has: how many there are, and which of them is of the write index; `same`: none */
    size_t same, write;
    size_t writes, hiddens; /* and how many are of write indices, and hidden: alias__check() */
};

struct alias_table {
    atomic_size_t refs;
    struct alias_use *uses; /* in order of alias, then index */
    size_t count;
    size_t capacity;
};

/* The indices whose aliases differ from a table. */
struct alias_changes {
    uint32_t *numbers; /* an index may be there several times */
    size_t count, capacity;
    size_t uses; /* the aliases that these had and have */
};

struct object_node {
    atomic_size_t refs;
    struct arena arena;
    struct catalog_object object;
};

struct object_table {
    atomic_size_t refs;
    struct object_node **nodes; /* in order of name */
    size_t count;
};

#define CATALOG_MAGIC MAGIC('C', 'a', 't', 'a')

struct catalog {
    uint32_t magic; /* CATALOG_MAGIC */
    atomic_size_t refs;
    struct catalog_node **by_name; /* owns a reference to each node */
    struct catalog_node **by_number;
    size_t count;
    size_t capacity; /* of both arrays */
    struct alias_table *aliases;
    /* Since `aliases` was made; none unless the catalog has one reference and is being changed */
    struct alias_changes alias_changes;
    size_t alias_count;                               /* of all indices */
    struct object_table *objects[CATALOG_KIND_COUNT]; /* NULL: no object of the kind */
};

/* Returns: how many indices have the alias, and the first of its uses. However many: it takes no longer. */
size_t catalog__alias_uses(const struct catalog *catalog, struct slice alias, const struct alias_use **ret_uses);
/* Returns: the work of the next look-up of an alias, in units of work.h: 0 unless aliases have changed since one. */
uint64_t catalog__alias_work(const struct catalog *catalog);
/*
 * Returns: the use of the index that an alias names as its write index; NULL: none. Requires: `uses` and `count`
 * are of catalog__alias_uses().
 */
const struct alias_use *catalog__write_use(const struct alias_use *uses, size_t count);

/* Returns: an empty catalog. Owns: the caller; catalog_unref(). */
struct catalog *catalog__new(void);

/* The parts of a new or changed index; they are copied or referenced. */
struct catalog_index_spec {
    uint32_t number;
    struct slice name;
    struct slice uuid;
    uint64_t created_ms;
    bool closed;
    bool may_have_routings;
    tl_ts deletes_forgotten;
    enum dialect dialect;
    const struct settings *settings;
    const struct mapping *mapping;
    const struct catalog_alias *aliases;
    size_t alias_count;
    struct catalog_counters *counters; /* NULL: none */
};

/* Returns: a spec that describes an existing index, to be modified. */
struct catalog_index_spec catalog__spec(const struct catalog_index *index);

/*
 * Change *catalog if the caller has the only reference, or else replace it by a changed copy; so a
 * step with many changes copies once. Pointers into the previous *catalog become invalid with the
 * second change.
 */
void catalog__set_index(struct catalog **catalog, const struct catalog_index_spec *spec);
void catalog__set_mapping(struct catalog **catalog, uint32_t number, const struct mapping *mapping);
void catalog__remove_index(struct catalog **catalog, uint32_t number);
/* `object` NULL: removes the object. Requires: `name` is not empty. */
void catalog__set_object(struct catalog **catalog, enum catalog_kind kind, struct slice name,
                         const struct catalog_object *object);

/*
 * As above, and write the difference to `batch`. `rewrites`: the mapping also if it is the one that the index has.
 * Return: the bytes of the records put.
 */
size_t catalog__put_index(struct catalog **catalog, const struct catalog_index_spec *spec, bool rewrites,
                          struct store_batch *batch);
size_t catalog__put_mapping(struct catalog **catalog, uint32_t number, const struct mapping *mapping,
                            struct store_batch *batch);
void catalog__drop_index(struct catalog **catalog, uint32_t number, struct store_batch *batch);
size_t catalog__put_object(struct catalog **catalog, enum catalog_kind kind, const struct catalog_object *object,
                           struct store_batch *batch);
void catalog__drop_object(struct catalog **catalog, enum catalog_kind kind, struct slice name,
                          struct store_batch *batch);

/*
 * Parses the new templates and cluster settings of a catalog once, for the core and its readers
 * (catalog_object.matching, .values). Assumes: no other catalog has them yet.
 */
void catalog__parse_objects(struct catalog *catalog);

/* Attaches counters by index number to a catalog that was just loaded and has one reference. */
void catalog__attach_counters(struct catalog *catalog, struct catalog_counters *(*counters_of)(void *, uint32_t),
                              void *context);

/*
 * Checks that indices, aliases and objects are in order, and that the tables agree; aborts if not.
 * Takes time linear in their number: for builds of developers, at the end of a unit that has changed
 * the catalog.
 */
void catalog__check(const struct catalog *catalog);

/* Returns: a hash of the whole catalog in its stored form. */
uint64_t catalog__digest(const struct catalog *catalog);

#endif
