/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the catalog in the open unit; see catalog_change.h. */
#include "core/catalog/catalog_change.h"

#include "base/check.h"
#include "core/catalog/catalog_internal.h"
#include "core/catalog/counter.h"
#include "core/catalog/settings.h"
#include "core/command/command.h"
#include "core/unit/unit.h"
#include "core/unit/work.h"
#include "mapping/mapping.h"

enum { ROUTED_LOOKED_BACK = 8 };

static void begin_changes(struct core *core)
{
    INSIST(core->catalog_before == NULL);
    core->catalog_before = catalog_ref(core->catalog);
    core->catalog_changed = false;
    core->routed = NULL;
    core->routed_count = core->routed_capacity = 0;
}

#ifdef TIDELOCK_CHECK_COSTLY /* builds of developers, in which the tests run */
enum { CHECKS_CATALOG = 1 };
#else
enum { CHECKS_CATALOG = 0 };
#endif

/* Whether an index that is written has its mapping written again, though that is the same. */
static bool rewrites_mapping(const struct core *core)
{
    return core->command_version < COMMAND_SINCE_CATALOG_WEIGHED;
}

/* Counts the bytes of records of the catalog, which were made, copied and put. */
static void count_records(struct core *core, size_t bytes)
{
    if (core->command_version >= COMMAND_SINCE_CATALOG_WEIGHED)
        core__work_mapping(core, bytes / WORK_CATALOG_BYTES);
    else
        core__work(core, bytes / WORK_CATALOG_BYTES);
}

/*
 * Counts what the unit has copied: the first change of the catalog copies the array of indices, and each of an object
 * that of its kind. It depends on the snapshots that others have, so it divides nothing but groups of commands.
 */
static void count_copies(struct core *core, size_t references)
{
    core__work(core, references / WORK_CATALOG_COPIED);
}

/* Sets may_have_routings of the indices in which the unit wrote a routing. */
static void finish_changes(struct core *core)
{
    REQUIRE(core->catalog_before != NULL);
    for (size_t i = 0; i < core->routed_count; i++) {
        const struct catalog_index *index = catalog_index_by_number(core->catalog, core->routed[i]);
        if (index == NULL || index->may_have_routings)
            continue;
        struct catalog_index_spec spec = catalog__spec(index);
        spec.may_have_routings = true;
        count_records(core, catalog__put_index(&core->catalog, &spec, rewrites_mapping(core), core->batch));
        core->catalog_changed = true;
    }
    core->routed_count = 0;
    if (core->catalog_changed)
        count_copies(core, catalog_index_count(core->catalog));
    core__work_catalog(core, catalog__alias_work(core->catalog)); /* when the catalog is shared next */
    /* Of a large catalog not after each change, so that many changes cost no more than they do. */
    if (CHECKS_CATALOG && core->catalog_changed && core->ts % (1 + catalog_index_count(core->catalog) / 64) == 0)
        catalog__check(core->catalog);
}

static void record_counters(struct core *core)
{
    if (counters__commit(&core->counters, core->batch, core->ts) && core->recorded_ts < core->ts)
        core->recorded_ts = core->ts;
}

static void rollback_changes(struct core *core)
{
    REQUIRE(core->catalog_before != NULL);
    catalog_unref(core->catalog);
    core->catalog = catalog_ref(core->catalog_before);
    core->catalog_changed = false;
    core->routed_count = 0;
    counters__rollback(&core->counters);
}

static void end_changes(struct core *core)
{
    INSIST(core->routed_count == 0 && core->counters.dirty_count == 0); /* committed or rolled back */
    INSIST(core->catalog_changed || core->catalog == core->catalog_before);
    catalog_unref(core->catalog_before);
    core->catalog_before = NULL;
}

const struct unit_part catalog__part = {.begin = begin_changes,
                                        .finish = finish_changes,
                                        .record = record_counters,
                                        .rollback = rollback_changes,
                                        .end = end_changes};

uint64_t catalog_change__work(size_t settings, size_t aliases)
{
    return WORK_INDEX + WORK_INDEX_PART * (uint64_t)(settings + aliases);
}

void catalog_change__put_index(struct core *core, const struct catalog_index_spec *spec, enum feed_kind what)
{
    REQUIRE(core->open && spec->name.len > 0);
    REQUIRE(spec->number != 0 && spec->number < core->counters.next_index); /* else it is given again */
    REQUIRE(what > FEED_DELETED && what < FEED_RENAMED); /* a change of an index, not of a document */
    core__work_catalog(core, catalog_change__work(spec->settings->count, spec->alias_count));
    feed__record_change(core, &(struct feed_change){.kind = what, .index = spec->number, .name = spec->name}, false);
    count_records(core, catalog__put_index(&core->catalog, spec, rewrites_mapping(core), core->batch));
    core->names_epoch++;
    core->catalog_changed = true;
}

void catalog_change__put_mapping(struct core *core, uint32_t number, const struct mapping *mapping)
{
    REQUIRE(core->open && catalog_index_by_number(core->catalog, number) != NULL);
    feed__record_change(core, &(struct feed_change){.kind = FEED_MAPPING, .index = number}, false);
    uint64_t work = core__copied_fields(core, mapping) * WORK_FIELD;
    uint64_t before = core->mapping_work;
    core__work_mapping(core, work);
    count_records(core, catalog__put_mapping(&core->catalog, number, mapping, core->batch));
    core__note_indivisible(core, core->mapping_work - before);
    core->catalog_changed = true;
}

void catalog_change__note_routing(struct core *core, uint32_t index)
{
    const struct catalog_index *known = catalog_index_by_number(core->catalog, index);

    REQUIRE(core->open);
    if (known == NULL || known->may_have_routings)
        return;
    for (size_t i = 1; i <= ROUTED_LOOKED_BACK && i <= core->routed_count; i++) /* most writes are to a few indices */
        if (core->routed[core->routed_count - i] == index)
            return;
    core->routed =
        arena_grow(&core->arena, core->routed, core->routed_count, &core->routed_capacity, sizeof *core->routed);
    core__work_catalog(core, catalog_change__work(known->settings->count, known->alias_count)); /* at the end */
    core->routed[core->routed_count++] = index;
}

void catalog_change__drop_index(struct core *core, uint32_t number)
{
    const struct catalog_index *index = catalog_index_by_number(core->catalog, number);

    REQUIRE(core->open && index != NULL);
    feed__record_change(core, &(struct feed_change){.kind = FEED_INDEX_DELETED, .index = number, .name = index->name},
                        false);
    core__work_catalog(core, WORK_INDEX);
    catalog__drop_index(&core->catalog, number, core->batch);
    core->names_epoch++;
    core->catalog_changed = true;
    ENSURE(catalog_index_by_number(core->catalog, number) == NULL);
    core__index_dropped(core, number);
}

void catalog_change__put_object(struct core *core, enum catalog_kind kind, const struct catalog_object *object)
{
    REQUIRE(core->open && kind < CATALOG_KIND_COUNT);
    core__work(core, catalog__put_object(&core->catalog, kind, object, core->batch) / WORK_BYTES);
    count_copies(core, catalog_object_count(core->catalog, kind));
    catalog__parse_objects(core->catalog);
    core->catalog_changed = true;
}

void catalog_change__drop_object(struct core *core, enum catalog_kind kind, struct slice name)
{
    REQUIRE(core->open && kind < CATALOG_KIND_COUNT);
    catalog__drop_object(&core->catalog, kind, name, core->batch);
    count_copies(core, catalog_object_count(core->catalog, kind));
    core->catalog_changed = true;
}
