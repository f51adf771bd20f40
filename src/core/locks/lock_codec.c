/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of locks as bytes; see lock_codec.h.
 *
 * What can be found again from the rest is left out: bits and counts, who stands in which queue, who watches what. Three things hang on
 * the order in which they came about, and are written as orders: an owner's holds, the holds of one resource, an owner's requests.
 *
 *     ts · token_count · last owner, arrival, lock
 *     resources  that is above it (its place) · kind · type · name
 *     owners     number · age · flags · holds
 *     hold       resource (its place) · mode · flags · number · since · token · three counts of locks below
 *     requests   owner (its place) · arrival · flags · [token of what was granted] · wants
 *     orders     of each resource with several holds: the places of their owners
 *                of each owner: of its requests, of its wards': their places
 *
 * A lock deep in a tree has left its intentions on every level above, and the paths of all these would be as long together as the square of it. So
 * each resource that is held stands once, behind the one above it, in the order in which holds meet it: a place is 1 for the first, 0 for everything.
 */
#include "core/locks/lock_codec.h"

#include "base/check.h"
#include "base/map.h"
#include "core/locks/lock_internal.h"
#include "core/locks/resource.h"
#include "core/step/command.h"

enum { NAME_MIN = 5, RESOURCE_MIN = 4, HOLD_MIN = 9, WANT_MIN = NAME_MIN + 2, REQUEST_MIN = 4 };

/* As it was said. */
static void code_name(struct coder *coder, struct resource_name *name)
{
    name->space = (enum resource_space)code_enum(coder, name->space, RESOURCE_SPACE_COUNT);
    code_slice(coder, &name->index);
    code_slice(coder, &name->path);
    code_slice(coder, &name->type);
    code_slice(coder, &name->id);
    if (!coder_reads(coder))
        return;
    bool in_tree = name->space == RESOURCE_SPACE_TREE;
    bool bare = name->path.data == NULL && name->type.len == 0 && name->id.data == NULL;
    coder_demand(coder, in_tree ? name->index.len > 0 || bare : bare);
    coder_demand(coder, name->path.data == NULL || resource_path_fits(name->path));
    coder_demand(coder, name->type.len <= UINT16_MAX && name->id.len <= UINT16_MAX);
}

static size_t length_of(const struct list *head)
{
    size_t count = 0;
    list_for_each(link, head) count++;
    return count;
}

/* --- Resources ---------------------------------------------------------------------------------------------------- */

/*
 * The resources that are held, in the order of their places. While they are read each is referred to from here, too; while they are written each
 * has its place in its `scratch`: half a million locks are written between two steps, and looking each up would be most of that.
 */
struct places_of_resources {
    struct arena keys;
    struct resource **items;
    size_t count;
    size_t capacity;
    size_t *hold_counts; /* of each owner, while they are written */
};

/* Resources lie anywhere in memory. Has the one some places behind fetched meanwhile. */
static void fetch_behind(const struct places_of_resources *places, size_t place)
{
    enum { PLACES = 8 };
    if (place + PLACES < places->count)
        __builtin_prefetch(places->items[place + PLACES]);
}

static void resources_add(struct places_of_resources *places, struct resource *resource)
{
    if (places->count == places->capacity) {
        places->capacity = places->capacity ? places->capacity * 2 : 64;
        places->items = mem_realloc(places->items, places->capacity * sizeof(struct resource *));
    }
    places->items[places->count++] = resource;
}

/* Gives a resource its place, behind those above it. */
static void resources_put(struct places_of_resources *places, struct resource *resource)
{
    size_t first = places->count;
    for (; resource->parent != NULL && resource->scratch == 0; resource = resource->parent)
        resources_add(places, resource);
    for (size_t i = first, j = places->count; i + 1 < j; i++) { /* they came from the deepest up */
        struct resource *below = places->items[i];
        places->items[i] = places->items[--j];
        places->items[j] = below;
    }
    for (size_t i = first; i < places->count; i++)
        places->items[i]->scratch = (uint32_t)(i + 1);
}

static void code_resource(struct coder *coder, size_t *above, enum resource_kind *kind, struct slice *type,
                          struct slice *name)
{
    code_size(coder, above);
    *kind = (enum resource_kind)code_enum(coder, *kind, RESOURCE_KIND_COUNT);
    code_bytes(coder, type);
    code_bytes(coder, name);
}

static void write_resources(struct coder *coder, struct places_of_resources *places)
{
    code_array(coder, NULL, &places->count, 0, RESOURCE_MIN);
    for (size_t i = 0; i < places->count; i++) {
        const struct resource *resource = places->items[i];
        fetch_behind(places, i);
        size_t above = resource->parent->scratch;
        enum resource_kind kind = (enum resource_kind)resource->kind;
        struct slice type = resource_type(resource);
        struct slice name = slice_make(resource->name + type.len, resource->name_len - type.len);
        code_resource(coder, &above, &kind, &type, &name);
    }
}

static void read_resources(struct coder *coder, struct lock_table *table, struct places_of_resources *places)
{
    size_t count = 0;
    code_array(coder, NULL, &count, 0, RESOURCE_MIN);
    uint16_t *levels = arena_zalloc(&places->keys, (count + 1) * sizeof *levels); /* of directories, by their places */
    for (size_t i = 0; i < count && !coder->bad; i++) {
        enum resource_kind kind = RESOURCE_ALL;
        struct slice type = SLICE_NONE, name = SLICE_NONE;
        size_t above = 0;
        code_resource(coder, &above, &kind, &type, &name);
        coder_demand(coder, coder->bad || above <= places->count);
        if (coder->bad)
            return;
        levels[i + 1] = kind == RESOURCE_DIRECTORY ? (uint16_t)(levels[above] + 1) : 0;
        coder_demand(coder, levels[i + 1] <= RESOURCE_LEVELS_MAX + 1);
        if (coder->bad)
            return;
        struct resource *parent = above == 0 ? table->resources.root : places->items[above - 1];
        struct resource *resource = resource_restore(&table->resources, parent, kind, type, name);
        coder_demand(coder, resource != NULL);
        if (resource != NULL)
            resources_add(places, resource);
    }
}

static void resources_free(struct places_of_resources *places, struct lock_table *table, bool referred)
{
    for (size_t i = 0; i < places->count; i++) {
        fetch_behind(places, i);
        if (referred)
            resource_unref(&table->resources, places->items[i]);
        else
            places->items[i]->scratch = 0;
    }
    arena_deinit(&places->keys);
    mem_free(places->items);
}

/* --- Holds -------------------------------------------------------------------------------------------------------- */

static void code_hold_fields(struct coder *coder, struct lock_hold *hold)
{
    bool *const flags[] = {&hold->auxiliary};

    hold->mode = (uint8_t)code_enum(coder, hold->mode, LOCK_MODE_COUNT);
    code_flags(coder, flags, 1);
    code_number(coder, &hold->number);
    code_number(coder, &hold->since);
    code_number(coder, &hold->token);
    for (size_t i = 0; i < 3; i++) {
        uint64_t below = hold->below[i];
        code_number(coder, &below);
        coder_demand(coder, below <= UINT32_MAX);
        hold->below[i] = coder->bad ? 0 : (uint32_t)below;
    }
}

static bool same_text(struct slice a, struct slice b)
{
    return (a.data == NULL) == (b.data == NULL) && slice_equal(a, b);
}

/* Whether a resource is called what it was called: a document lies in one place, whoever names it, and each name has one form. */
static bool is_called(const struct lock_table *table, const struct resource_name *name)
{
    struct arena arena = ARENA_INIT;
    const struct resource *resource = lock__find_resource(table, name);
    struct resource_name called = {0};
    if (resource != NULL)
        called = resource_name(resource, &arena);
    bool same = resource != NULL && called.space == name->space && same_text(called.index, name->index) &&
                same_text(called.path, name->path) && same_text(called.type, name->type) &&
                same_text(called.id, name->id);
    arena_deinit(&arena);
    return same;
}

static void read_hold(struct coder *coder, struct lock_table *table, struct lock_owner *owner,
                      const struct places_of_resources *places)
{
    struct lock_hold fields = {0};
    size_t place = 0;

    code_size(coder, &place);
    coder_demand(coder, coder->bad || place <= places->count);
    code_hold_fields(coder, &fields);
    coder_demand(coder,
                 (fields.mode != LOCK_NONE) == (fields.number != 0) && (fields.mode != LOCK_NONE || !fields.auxiliary));
    coder_demand(coder, fields.mode != LOCK_NONE || fields.below[0] + fields.below[1] + fields.below[2] > 0);
    if (coder->bad)
        return;
    struct resource *resource = place == 0 ? table->resources.root : places->items[place - 1];
    coder_demand(coder, lock__restore_hold(table, owner, resource, &fields));
}

static void write_hold(struct coder *coder, const struct lock_hold *hold)
{
    struct lock_hold fields = *hold;
    size_t place = hold->resource->scratch;

    code_size(coder, &place);
    code_hold_fields(coder, &fields);
}

static void code_owner(struct coder *coder, struct lock_table *table, struct lock_codec_refs *parties, size_t at,
                       const struct places_of_resources *places)
{
    struct lock_owner *owner = parties->owners[at];
    bool *const flags[] = {&owner->autocommit, &owner->cleanup};
    size_t count = coder_reads(coder) ? 0 : places->hold_counts[at];

    code_number(coder, &owner->number);
    code_number(coder, &owner->age);
    code_flags(coder, flags, 2);
    code_array(coder, NULL, &count, 0, HOLD_MIN);
    if (!coder_reads(coder)) {
        list_for_each(link, &owner->holds) write_hold(coder, list_entry(link, struct lock_hold, of_owner));
        return;
    }
    for (size_t i = 0; i < count && !coder->bad; i++)
        read_hold(coder, table, owner, places);
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

/* Finds the place of an owner or a request, by its number or arrival, while a table is written. */
struct places {
    struct map of;
    uint64_t *keys; /* which the map's keys point into */
};

static struct places places_new(size_t count)
{
    return (struct places){MAP_INIT, mem_alloc((count + 1) * sizeof(uint64_t))};
}

static void places_put(struct places *places, size_t place, uint64_t key)
{
    places->keys[place] = key;
    map_put(&places->of, slice_make(&places->keys[place], sizeof(uint64_t)), &places->keys[place]);
}

static size_t places_get(const struct places *places, uint64_t key)
{
    const uint64_t *found = map_get(&places->of, slice_make(&key, sizeof(key)));
    REQUIRE(found != NULL);
    return (size_t)(found - places->keys);
}

static void places_free(struct places *places)
{
    map_deinit(&places->of);
    mem_free(places->keys);
}

/* A place below `count`. */
static void code_place(struct coder *coder, size_t *place, size_t count)
{
    code_size(coder, place);
    coder_demand(coder, coder->bad || *place < count);
}

static void code_want(struct coder *coder, struct lock_spec *want)
{
    bool *const flags[] = {&want->insert_intention, &want->auxiliary};

    code_name(coder, &want->on);
    want->mode = (enum lock_mode)code_enum(coder, want->mode, LOCK_MODE_COUNT);
    coder_demand(coder, coder->bad || want->mode != LOCK_NONE);
    code_flags(coder, flags, 2);
}

static void code_request_flags(struct coder *coder, bool *upgrade, bool *granted)
{
    bool *const flags[] = {upgrade, granted};

    code_flags(coder, flags, coder->version < 6 ? 1 : 2);
}

static void write_request(struct coder *coder, const struct lock_request *request, size_t place)
{
    struct arena arena = ARENA_INIT;
    bool upgrade = request->upgrade, granted = request->state == LOCK_STATE_GRANTED;
    uint64_t arrival = request->arrival;
    tl_ts token = request->token;
    size_t count = request->spec_count;

    REQUIRE(granted || request->state == LOCK_STATE_WAITING);
    code_size(coder, &place);
    code_number(coder, &arrival);
    code_request_flags(coder, &upgrade, &granted);
    if (granted)
        code_number(coder, &token);
    code_array(coder, NULL, &count, 0, WANT_MIN);
    for (size_t i = 0; i < count; i++) {
        const struct lock_spec_ref *wanted = &request->specs[i];
        struct lock_spec want = {resource_name(wanted->resource, &arena), wanted->mode, wanted->insert_intention, wanted->auxiliary};
        code_want(coder, &want);
    }
    arena_deinit(&arena);
}

static struct lock_request *read_request(struct coder *coder, struct lock_table *table, struct lock_codec_refs *parties)
{
    struct lock_spec *wants;
    uint64_t arrival = 0;
    bool upgrade = false, granted = false;
    tl_ts token = TL_TS_NONE;
    size_t place = 0, count = 0;

    code_place(coder, &place, parties->owner_count);
    code_number(coder, &arrival);
    code_request_flags(coder, &upgrade, &granted);
    if (granted)
        code_number(coder, &token);
    wants = code_array(coder, NULL, &count, sizeof(*wants), WANT_MIN);
    coder_demand(coder, count > 0 && arrival <= table->last_arrival);
    for (size_t i = 0; i < count && !coder->bad; i++)
        code_want(coder, &wants[i]);
    if (coder->bad)
        return NULL;
    struct lock_owner *owner = parties->owners[place];
    struct lock_request *request = granted ? lock__restore_granted(table, owner, wants, count, arrival, upgrade, token)
                                           : lock__restore_request(table, owner, wants, count, arrival, upgrade);
    for (size_t i = 0; i < count; i++)
        coder_demand(coder, is_called(table, &wants[i].on));
    return request;
}

static void read_requests(struct coder *coder, struct lock_table *table, struct lock_codec_refs *parties)
{
    size_t count = 0;

    parties->requests = code_array(coder, NULL, &count, sizeof(struct lock_request *), REQUEST_MIN);
    for (size_t i = 0; i < count && !coder->bad; i++) {
        struct lock_request *request = read_request(coder, table, parties);
        if (request != NULL)
            parties->requests[parties->request_count++] = request;
    }
}

/* --- Orders ------------------------------------------------------------------------------------------------------- */

/* The holds of a resource, in their order, by their owners. */
static void write_order(struct coder *coder, const struct resource *resource, const struct places *owners)
{
    list_for_each(link, &resource->holds)
    {
        size_t place = places_get(owners, list_entry(link, struct lock_hold, of_resource)->owner->number);
        code_size(coder, &place);
    }
}

/* Each hold is moved to the end in its turn. */
static void read_order(struct coder *coder, struct lock_table *table, const struct lock_codec_refs *parties,
                       struct resource *resource)
{
    size_t count = length_of(&resource->holds);
    for (size_t i = 0; i < count && !coder->bad; i++) {
        size_t place = 0;
        code_place(coder, &place, parties->owner_count);
        struct lock_hold *hold = coder->bad ? NULL : lock__hold_find(table, parties->owners[place], resource);
        coder_demand(coder, hold != NULL);
        if (hold == NULL)
            return;
        lock__hold_to_end(hold);
    }
}

/* Of everything, and of all resources in their places, where there are several holds. */
static void code_orders(struct coder *coder, struct lock_table *table, const struct lock_codec_refs *parties,
                        const struct places_of_resources *resources, const struct places *owners)
{
    for (size_t i = 0; i <= resources->count && !coder->bad; i++) {
        struct resource *resource = i == 0 ? table->resources.root : resources->items[i - 1];
        fetch_behind(resources, i);
        if (resource->holds.next == resource->holds.prev)
            continue;
        if (coder_reads(coder))
            read_order(coder, table, parties, resource);
        else
            write_order(coder, resource, owners);
    }
}

static struct lock_request *request_at(const struct list *link, bool of_session)
{
    return of_session ? list_entry(link, struct lock_request, of_session)
                      : list_entry(link, struct lock_request, of_owner);
}

/* The requests of an owner, or those of its wards, in their order. */
static void code_request_order(struct coder *coder, struct list *requests, bool of_session,
                               const struct lock_codec_refs *parties, const struct places *places)
{
    size_t count = length_of(requests), there = count;

    code_size(coder, &count);
    coder_demand(coder, count == there);
    if (!coder_reads(coder)) {
        list_for_each(link, requests)
        {
            size_t place = places_get(places, request_at(link, of_session)->arrival);
            code_size(coder, &place);
        }
        return;
    }
    for (size_t i = 0; i < there && !coder->bad; i++) {
        size_t place = 0;
        code_place(coder, &place, parties->request_count);
        if (coder->bad)
            return;
        struct lock_request *request = parties->requests[place];
        struct list *link = of_session ? &request->of_session : &request->of_owner;
        const struct lock_owner *owner = of_session ? request->owner->session : request->owner;
        coder_demand(coder, owner != NULL && requests == (of_session ? &owner->dependent_requests : &owner->requests) &&
                                request->state == LOCK_STATE_WAITING);
        if (coder->bad)
            return;
        list_remove(link);
        list_append(requests, link);
    }
}

static void code_request_orders(struct coder *coder, const struct lock_codec_refs *parties, const struct places *places)
{
    for (size_t i = 0; i < parties->owner_count && !coder->bad; i++) {
        code_request_order(coder, &parties->owners[i]->requests, false, parties, places);
        code_request_order(coder, &parties->owners[i]->dependent_requests, true, parties, places);
    }
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static void code_numbers(struct coder *coder, struct lock_table *table)
{
    code_number(coder, &table->ts);
    code_number(coder, &table->token_count);
    code_number(coder, &table->last_owner);
    code_number(coder, &table->last_arrival);
    code_number(coder, &table->last_lock);
}

static void write_parties(struct coder *coder, struct lock_table *table, const struct lock_codec_refs *parties,
                          const struct places_of_resources *resources)
{
    struct places owners = places_new(parties->owner_count), requests = places_new(parties->request_count);
    size_t count = parties->request_count;

    for (size_t i = 0; i < parties->owner_count; i++)
        places_put(&owners, i, parties->owners[i]->number);
    for (size_t i = 0; i < count; i++)
        places_put(&requests, i, parties->requests[i]->arrival);
    code_array(coder, NULL, &count, 0, REQUEST_MIN);
    for (size_t i = 0; i < count; i++)
        write_request(coder, parties->requests[i], places_get(&owners, parties->requests[i]->owner->number));
    code_orders(coder, table, parties, resources, &owners);
    code_request_orders(coder, parties, &requests);
    places_free(&owners);
    places_free(&requests);
}

static void read_parties(struct coder *coder, struct lock_table *table, struct lock_codec_refs *parties,
                         const struct places_of_resources *resources)
{
    read_requests(coder, table, parties);
    code_orders(coder, table, parties, resources, NULL);
    code_request_orders(coder, parties, NULL);
    for (size_t i = 0; i < parties->request_count && !coder->bad; i++)
        coder_demand(coder, parties->requests[i]->state == LOCK_STATE_GRANTED ||
                                lock__queue_watch_restored(parties->requests[i]));
}

static void code_resources(struct coder *coder, struct lock_table *table, const struct lock_codec_refs *parties,
                           struct places_of_resources *places)
{
    if (coder_reads(coder)) {
        read_resources(coder, table, places);
        return;
    }
    places->hold_counts = arena_zalloc(&places->keys, (parties->owner_count + 1) * sizeof *places->hold_counts);
    for (size_t i = 0; i < parties->owner_count; i++)
        list_for_each(link, &parties->owners[i]->holds)
        {
            if (link->next != &parties->owners[i]->holds)
                __builtin_prefetch(list_entry(link->next, struct lock_hold, of_owner)->resource);
            resources_put(places, list_entry(link, struct lock_hold, of_owner)->resource);
            places->hold_counts[i]++;
        }
    write_resources(coder, places);
}

static size_t waiting_count(const struct lock_codec_refs *parties)
{
    size_t count = 0;

    for (size_t i = 0; i < parties->request_count; i++)
        count += parties->requests[i]->state == LOCK_STATE_WAITING;
    return count;
}

void lock_codec_table(struct coder *coder, struct lock_table *table, struct lock_codec_refs *parties)
{
    struct places_of_resources resources = {.keys = ARENA_INIT};
    size_t count = parties->owner_count;

    REQUIRE(list_empty(&table->granted) && list_empty(&table->victims) && heap_first(&table->wake) == NULL);
    REQUIRE(coder_reads(coder) || waiting_count(parties) == table->waiting_count);
    REQUIRE(!coder_reads(coder) || lock_table_is_idle(table));
    if (coder_reads(coder))
        parties->request_count = 0;
    code_numbers(coder, table);
    code_resources(coder, table, parties, &resources);
    code_size(coder, &count);
    coder_demand(coder, count == parties->owner_count);
    for (size_t i = 0; i < parties->owner_count && !coder->bad; i++)
        code_owner(coder, table, parties, i, &resources);
    if (coder_reads(coder))
        read_parties(coder, table, parties, &resources);
    else
        write_parties(coder, table, parties, &resources);
    resources_free(&resources, table, coder_reads(coder));
}

void lock_codec_discard(struct lock_table *table, struct lock_codec_refs *parties)
{
    struct lock_hooks hooks = table->hooks;

    table->hooks = (struct lock_hooks){0};
    for (size_t i = 0; i < parties->request_count; i++)
        lock_request_free(parties->requests[i]);
    for (size_t i = 0; i < parties->owner_count; i++)
        lock_release_all(table, parties->owners[i]);
    table->hooks = hooks;
}

void lock_request_set_user(struct lock_request *request, void *user)
{
    request->user = user;
}
