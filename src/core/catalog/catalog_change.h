/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the catalog in the open unit, with their records for the feed. Its rollback reverts
 * them.
 */
#ifndef TL_CORE_CATALOG_CHANGE_H
#define TL_CORE_CATALOG_CHANGE_H

#include "core/catalog/catalog.h"
#include "core/catalog/catalog_internal.h"
#include "core/feed/feed.h"

struct core;
struct unit_part;

extern const struct unit_part catalog__part;

/*
 * Change the catalog in the open unit. Pointers to indices of the previous catalog become invalid.
 * `what` is the kind of the change, for the feed: FEED_INDEX_CREATED, FEED_ALIASES, FEED_SETTINGS,
 * FEED_MAPPING.
 */
void catalog_change__put_index(struct core *core, const struct catalog_index_spec *spec, enum feed_kind what);
/* Returns: the work of that, of an index with so many settings and aliases. */
uint64_t catalog_change__work(size_t settings, size_t aliases);
void catalog_change__put_mapping(struct core *core, uint32_t number, const struct mapping *mapping);
/*
 * Records that the open unit writes a version of a document with a routing. Its commit sets
 * may_have_routings of the index; that is no change for the feed. The catalog stays as it is until then.
 */
void catalog_change__note_routing(struct core *core, uint32_t index);
void catalog_change__drop_index(struct core *core, uint32_t number);
void catalog_change__put_object(struct core *core, enum catalog_kind kind, const struct catalog_object *object);
void catalog_change__drop_object(struct core *core, enum catalog_kind kind, struct slice name);

#endif
