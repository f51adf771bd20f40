/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How catalogs are built: each function makes a new snapshot from an old one and writes the difference to a batch.
 *
 * Keys in SPACE_CATALOG: 'i' index (u32be): what an index is, without its mapping; 'm' index: its mapping;
 * 't', 's', 'f', 'c' and a name: objects by kind. Counters ('n') are counter.h's.
 */
#ifndef TL_CORE_CATALOG_INTERNAL_H
#define TL_CORE_CATALOG_INTERNAL_H

#include <stdatomic.h>

#include "core/catalog.h"

struct catalog_counters {
    atomic_size_t refs;
    atomic_uint_fast64_t documents;
    atomic_int_fast64_t next_seq_no;
};

struct catalog_counters *catalog__counters_new(void);
struct catalog_counters *catalog__counters_ref(struct catalog_counters *counters);
void catalog__counters_unref(struct catalog_counters *counters);

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

/* Returns: a spec that describes an index as it is, to be changed and handed to catalog__put_index(). */
struct catalog_index_spec catalog__spec(const struct catalog_index *index);

/*
 * A catalog in which an index is as `spec` says, new or in place of the one of its number.
 * Owns: the caller gets a new reference; `catalog` keeps its own.
 */
struct catalog *catalog__put_index(const struct catalog *catalog, const struct catalog_index_spec *spec,
                                   struct store_batch *batch);
/* The same for a change of the mapping alone, which writes nothing else. */
struct catalog *catalog__put_mapping(const struct catalog *catalog, const struct catalog_index *index,
                                     const struct mapping *mapping, struct store_batch *batch);
struct catalog *catalog__drop_index(const struct catalog *catalog, uint32_t number, struct store_batch *batch);

struct catalog *catalog__put_object(const struct catalog *catalog, enum catalog_kind kind,
                                    const struct catalog_object *object, struct store_batch *batch);
struct catalog *catalog__drop_object(const struct catalog *catalog, enum catalog_kind kind, struct slice name,
                                     struct store_batch *batch);

/* Gives the indices of a catalog just loaded their counters, by number. */
void catalog__attach_counters(struct catalog *catalog, struct catalog_counters *(*counters_of)(void *, uint32_t),
                              void *context);

/* Folds a catalog into a digest. */
uint64_t catalog__digest(const struct catalog *catalog);

#endif
