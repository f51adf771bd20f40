/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How catalogs are built: in memory (catalog__set_…, catalog__remove_…) and, with the difference written to a
 * batch, by the functions that the core's handlers use (catalog__put_…, catalog__drop_…).
 *
 * Keys in SPACE_CATALOG: 'i' index (u32be): what an index is, without its mapping; 'm' index: its mapping;
 * 't', 's', 'f', 'c' and a name: objects by kind. Counters ('n') are counter.h's.
 */
#ifndef TL_CORE_CATALOG_INTERNAL_H
#define TL_CORE_CATALOG_INTERNAL_H

#include <stdatomic.h>

#include "core/catalog/catalog.h"

struct catalog_counters {
    atomic_size_t refs;
    atomic_uint_fast64_t documents;
    atomic_int_fast64_t next_seq_no;
    atomic_uint_fast64_t figures[INDEX_STAT_COUNT]; /* no part of the state: told, never acted upon */
};

struct catalog_counters *catalog__counters_new(void);
void catalog__counters_note(struct catalog_counters *counters, enum index_stat figure, uint64_t more);
struct catalog_counters *catalog__counters_ref(struct catalog_counters *counters);
void catalog__counters_unref(struct catalog_counters *counters);

/* What of an index seldom changes: its names, settings and aliases. */
struct catalog_body {
    atomic_size_t refs;
    struct arena arena;
};

struct catalog_node {
    atomic_size_t refs;
    struct catalog_body *body;
    struct mapping *mapping;
    struct catalog_index index; /* what readers see; points into the body */
};

/* An alias and an index that has it. */
struct alias_use {
    struct slice alias;
    struct slice index;
};

struct alias_table {
    atomic_size_t refs;
    struct arena arena;
    struct alias_use *uses; /* in order of alias, then index */
    size_t count;
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

struct catalog {
    atomic_size_t refs;
    struct catalog_node **by_name; /* owns a reference each */
    struct catalog_node **by_number;
    size_t count;
    size_t room; /* of both arrays */
    struct alias_table *aliases;
    bool aliases_stale; /* the table is to be made anew: only while one has the catalog and changes it */
    struct object_table *objects[CATALOG_KIND_COUNT]; /* NULL: none of the kind */
};

/* Returns: how many indices have the alias, and where its uses begin. */
size_t catalog__alias_uses(const struct catalog *catalog, struct slice alias, const struct alias_use **ret_uses);

/* Returns: an empty catalog. Owns: the caller; catalog_unref. */
struct catalog *catalog__new(void);

/* What a new or changed index is made of; everything is copied or referenced. */
struct catalog_index_spec {
    uint32_t number;
    struct slice name;
    struct slice uuid;
    uint64_t created_ms;
    bool closed;
    enum dialect dialect;
    const struct settings *settings;
    const struct mapping *mapping;
    const struct catalog_alias *aliases;
    size_t alias_count;
    struct catalog_counters *counters; /* NULL: none */
};

/* Returns: a spec that describes an index as it is, to be changed and handed on. */
struct catalog_index_spec catalog__spec(const struct catalog_index *index);

/*
 * Each changes *catalog, or, where others have a reference too, a copy of it that takes its place: what others have stays as it
 * is, and a step that makes many changes copies once. What was read from *catalog before must not be used after two changes.
 */
void catalog__set_index(struct catalog **catalog, const struct catalog_index_spec *spec);
void catalog__set_mapping(struct catalog **catalog, uint32_t number, const struct mapping *mapping);
void catalog__remove_index(struct catalog **catalog, uint32_t number);
/* `object` NULL: removes it. */
void catalog__set_object(struct catalog **catalog, enum catalog_kind kind, struct slice name,
                         const struct catalog_object *object);

/* The same, with the difference written to `batch`. */
void catalog__put_index(struct catalog **catalog, const struct catalog_index_spec *spec, struct store_batch *batch);
void catalog__put_mapping(struct catalog **catalog, uint32_t number, const struct mapping *mapping,
                          struct store_batch *batch);
void catalog__drop_index(struct catalog **catalog, uint32_t number, struct store_batch *batch);
void catalog__put_object(struct catalog **catalog, enum catalog_kind kind, const struct catalog_object *object,
                         struct store_batch *batch);
void catalog__drop_object(struct catalog **catalog, enum catalog_kind kind, struct slice name,
                          struct store_batch *batch);

/* Gives the indices of a catalog just loaded, which nobody else has, their counters by number. */
void catalog__attach_counters(struct catalog *catalog, struct catalog_counters *(*counters_of)(void *, uint32_t),
                              void *context);

/* Returns: a hash of everything a catalog says, as it would be stored. */
uint64_t catalog__digest(const struct catalog *catalog);

#endif
