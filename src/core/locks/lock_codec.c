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
static void code_name(struct codec *codec, struct resource_name *name)
{
    name->space = (enum resource_space)codec_enum(codec, name->space, RESOURCE_SPACE_COUNT);
    codec_slice(codec, &name->index);
    codec_slice(codec, &name->path);
    codec_slice(codec, &name->type);
    codec_slice(codec, &name->id);
    if (!codec_reads(codec))
        return;
    bool in_tree = name->space == RESOURCE_SPACE_TREE;
    bool bare = name->path.data == NULL && name->type.len == 0 && name->id.data == NULL;
    codec_require(codec, in_tree ? name->index.len > 0 || bare : bare);
    codec_require(codec, name->path.data == NULL || resource_path_fits(name->path));
    codec_require(codec, name->type.len <= UINT16_MAX && name->id.len <= UINT16_MAX);
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

static void code_resource(struct codec *codec, size_t *above, enum resource_kind *kind, struct slice *type,
                          struct slice *name)
{
    codec_size(codec, above);
    *kind = (enum resource_kind)codec_enum(codec, *kind, RESOURCE_KIND_COUNT);
    codec_bytes(codec, type);
    codec_bytes(codec, name);
}

static void write_resources(struct codec *codec, struct places_of_resources *places)
{
    codec_array(codec, NULL, &places->count, 0, RESOURCE_MIN);
    for (size_t i = 0; i < places->count; i++) {
        const struct resource *resource = places->items[i];
        fetch_behind(places, i);
        size_t above = resource->parent->scratch;
        enum resource_kind kind = (enum resource_kind)resource->kind;
        struct slice type = resource_type(resource);
        struct slice name = slice_make(resource->name + type.len, resource->name_len - type.len);
        code_resource(codec, &above, &kind, &type, &name);
    }
}

static void read_resources(struct codec *codec, struct lock_table *table, struct places_of_resources *places)
{
    size_t count = 0;
    codec_array(codec, NULL, &count, 0, RESOURCE_MIN);
    uint16_t *levels = arena_zalloc(&places->keys, (count + 1) * sizeof *levels); /* of directories, by their places */
    for (size_t i = 0; i < count && !codec->bad; i++) {
        enum resource_kind kind = RESOURCE_ALL;
        struct slice type = SLICE_NONE, name = SLICE_NONE;
        size_t above = 0;
        code_resource(codec, &above, &kind, &type, &name);
        codec_require(codec, codec->bad || above <= places->count);
        if (codec->bad)
            return;
        levels[i + 1] = kind == RESOURCE_DIRECTORY ? (uint16_t)(levels[above] + 1) : 0;
        codec_require(codec, levels[i + 1] <= RESOURCE_LEVELS_MAX + 1);
        if (codec->bad)
            return;
        struct resource *parent = above == 0 ? table->resources.root : places->items[above - 1];
        struct resource *resource = resource_restore(&table->resources, parent, kind, type, name);
        codec_require(codec, resource != NULL);
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

static void code_hold_fields(struct codec *codec, struct lock_hold *hold)
{
    bool *const flags[] = {&hold->auxiliary};

    hold->mode = (uint8_t)codec_enum(codec, hold->mode, LOCK_MODE_COUNT);
    codec_flags(codec, flags, 1);
    codec_number(codec, &hold->number);
    codec_number(codec, &hold->since);
    codec_number(codec, &hold->token);
    for (size_t i = 0; i < 3; i++) {
        uint64_t below = hold->below[i];
        codec_number(codec, &below);
        codec_require(codec, below <= UINT32_MAX);
        hold->below[i] = codec->bad ? 0 : (uint32_t)below;
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

static void read_hold(struct codec *codec, struct lock_table *table, struct lock_owner *owner,
                      const struct places_of_resources *places)
{
    struct lock_hold fields = {0};
    size_t place = 0;

    codec_size(codec, &place);
    codec_require(codec, codec->bad || place <= places->count);
    code_hold_fields(codec, &fields);
    codec_require(codec,
                 (fields.mode != LOCK_NONE) == (fields.number != 0) && (fields.mode != LOCK_NONE || !fields.auxiliary));
    codec_require(codec, fields.mode != LOCK_NONE || fields.below[0] + fields.below[1] + fields.below[2] > 0);
    if (codec->bad)
        return;
    struct resource *resource = place == 0 ? table->resources.root : places->items[place - 1];
    codec_require(codec, lock__restore_hold(table, owner, resource, &fields));
}

static void write_hold(struct codec *codec, const struct lock_hold *hold)
{
    struct lock_hold fields = *hold;
    size_t place = hold->resource->scratch;

    codec_size(codec, &place);
    code_hold_fields(codec, &fields);
}

static void code_owner(struct codec *codec, struct lock_table *table, struct lock_codec_refs *parties, size_t at,
                       const struct places_of_resources *places)
{
    struct lock_owner *owner = parties->owners[at];
    bool *const flags[] = {&owner->autocommit, &owner->cleanup};
    size_t count = codec_reads(codec) ? 0 : places->hold_counts[at];

    codec_number(codec, &owner->number);
    codec_number(codec, &owner->age);
    codec_flags(codec, flags, 2);
    codec_array(codec, NULL, &count, 0, HOLD_MIN);
    if (!codec_reads(codec)) {
        list_for_each(link, &owner->holds) write_hold(codec, list_entry(link, struct lock_hold, of_owner));
        return;
    }
    for (size_t i = 0; i < count && !codec->bad; i++)
        read_hold(codec, table, owner, places);
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
static void code_place(struct codec *codec, size_t *place, size_t count)
{
    codec_size(codec, place);
    codec_require(codec, codec->bad || *place < count);
}

static void code_want(struct codec *codec, struct lock_spec *want)
{
    bool *const flags[] = {&want->insert_intention, &want->auxiliary};

    code_name(codec, &want->on);
    want->mode = (enum lock_mode)codec_enum(codec, want->mode, LOCK_MODE_COUNT);
    codec_require(codec, codec->bad || want->mode != LOCK_NONE);
    codec_flags(codec, flags, 2);
}

static void code_request_flags(struct codec *codec, bool *upgrade, bool *granted)
{
    bool *const flags[] = {upgrade, granted};

    codec_flags(codec, flags, codec->version < 6 ? 1 : 2);
}

static void write_request(struct codec *codec, const struct lock_request *request, size_t place)
{
    struct arena arena = ARENA_INIT;
    bool upgrade = request->upgrade, granted = request->state == LOCK_STATE_GRANTED;
    uint64_t arrival = request->arrival;
    tl_ts token = request->token;
    size_t count = request->spec_count;

    REQUIRE(granted || request->state == LOCK_STATE_WAITING);
    codec_size(codec, &place);
    codec_number(codec, &arrival);
    code_request_flags(codec, &upgrade, &granted);
    if (granted)
        codec_number(codec, &token);
    codec_array(codec, NULL, &count, 0, WANT_MIN);
    for (size_t i = 0; i < count; i++) {
        const struct lock_spec_ref *wanted = &request->specs[i];
        struct lock_spec want = {resource_name(wanted->resource, &arena), wanted->mode, wanted->insert_intention, wanted->auxiliary};
        code_want(codec, &want);
    }
    arena_deinit(&arena);
}

static struct lock_request *read_request(struct codec *codec, struct lock_table *table, struct lock_codec_refs *parties)
{
    struct lock_spec *wants;
    uint64_t arrival = 0;
    bool upgrade = false, granted = false;
    tl_ts token = TL_TS_NONE;
    size_t place = 0, count = 0;

    code_place(codec, &place, parties->owner_count);
    codec_number(codec, &arrival);
    code_request_flags(codec, &upgrade, &granted);
    if (granted)
        codec_number(codec, &token);
    wants = codec_array(codec, NULL, &count, sizeof(*wants), WANT_MIN);
    codec_require(codec, count > 0 && arrival <= table->last_arrival);
    for (size_t i = 0; i < count && !codec->bad; i++)
        code_want(codec, &wants[i]);
    if (codec->bad)
        return NULL;
    struct lock_owner *owner = parties->owners[place];
    struct lock_request *request = granted ? lock__restore_granted(table, owner, wants, count, arrival, upgrade, token)
                                           : lock__restore_request(table, owner, wants, count, arrival, upgrade);
    for (size_t i = 0; i < count; i++)
        codec_require(codec, is_called(table, &wants[i].on));
    return request;
}

static void read_requests(struct codec *codec, struct lock_table *table, struct lock_codec_refs *parties)
{
    size_t count = 0;

    parties->requests = codec_array(codec, NULL, &count, sizeof(struct lock_request *), REQUEST_MIN);
    for (size_t i = 0; i < count && !codec->bad; i++) {
        struct lock_request *request = read_request(codec, table, parties);
        if (request != NULL)
            parties->requests[parties->request_count++] = request;
    }
}

/* --- Orders ------------------------------------------------------------------------------------------------------- */

/* The holds of a resource, in their order, by their owners. */
static void write_order(struct codec *codec, const struct resource *resource, const struct places *owners)
{
    list_for_each(link, &resource->holds)
    {
        size_t place = places_get(owners, list_entry(link, struct lock_hold, of_resource)->owner->number);
        codec_size(codec, &place);
    }
}

/* Each hold is moved to the end in its turn. */
static void read_order(struct codec *codec, struct lock_table *table, const struct lock_codec_refs *parties,
                       struct resource *resource)
{
    size_t count = length_of(&resource->holds);
    for (size_t i = 0; i < count && !codec->bad; i++) {
        size_t place = 0;
        code_place(codec, &place, parties->owner_count);
        struct lock_hold *hold = codec->bad ? NULL : lock__hold_find(table, parties->owners[place], resource);
        codec_require(codec, hold != NULL);
        if (hold == NULL)
            return;
        lock__hold_to_end(hold);
    }
}

/* Of everything, and of all resources in their places, where there are several holds. */
static void code_orders(struct codec *codec, struct lock_table *table, const struct lock_codec_refs *parties,
                        const struct places_of_resources *resources, const struct places *owners)
{
    for (size_t i = 0; i <= resources->count && !codec->bad; i++) {
        struct resource *resource = i == 0 ? table->resources.root : resources->items[i - 1];
        fetch_behind(resources, i);
        if (resource->holds.next == resource->holds.prev)
            continue;
        if (codec_reads(codec))
            read_order(codec, table, parties, resource);
        else
            write_order(codec, resource, owners);
    }
}

static struct lock_request *request_at(const struct list *link, bool of_session)
{
    return of_session ? list_entry(link, struct lock_request, of_session)
                      : list_entry(link, struct lock_request, of_owner);
}

/* The requests of an owner, or those of its wards, in their order. */
static void code_request_order(struct codec *codec, struct list *requests, bool of_session,
                               const struct lock_codec_refs *parties, const struct places *places)
{
    size_t count = length_of(requests), there = count;

    codec_size(codec, &count);
    codec_require(codec, count == there);
    if (!codec_reads(codec)) {
        list_for_each(link, requests)
        {
            size_t place = places_get(places, request_at(link, of_session)->arrival);
            codec_size(codec, &place);
        }
        return;
    }
    for (size_t i = 0; i < there && !codec->bad; i++) {
        size_t place = 0;
        code_place(codec, &place, parties->request_count);
        if (codec->bad)
            return;
        struct lock_request *request = parties->requests[place];
        struct list *link = of_session ? &request->of_session : &request->of_owner;
        const struct lock_owner *owner = of_session ? request->owner->session : request->owner;
        codec_require(codec, owner != NULL && requests == (of_session ? &owner->dependent_requests : &owner->requests) &&
                                request->state == LOCK_STATE_WAITING);
        if (codec->bad)
            return;
        list_remove(link);
        list_append(requests, link);
    }
}

static void code_request_orders(struct codec *codec, const struct lock_codec_refs *parties, const struct places *places)
{
    for (size_t i = 0; i < parties->owner_count && !codec->bad; i++) {
        code_request_order(codec, &parties->owners[i]->requests, false, parties, places);
        code_request_order(codec, &parties->owners[i]->dependent_requests, true, parties, places);
    }
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static void code_numbers(struct codec *codec, struct lock_table *table)
{
    codec_number(codec, &table->ts);
    codec_number(codec, &table->token_count);
    codec_number(codec, &table->last_owner);
    codec_number(codec, &table->last_arrival);
    codec_number(codec, &table->last_lock);
}

static void write_parties(struct codec *codec, struct lock_table *table, const struct lock_codec_refs *parties,
                          const struct places_of_resources *resources)
{
    struct places owners = places_new(parties->owner_count), requests = places_new(parties->request_count);
    size_t count = parties->request_count;

    for (size_t i = 0; i < parties->owner_count; i++)
        places_put(&owners, i, parties->owners[i]->number);
    for (size_t i = 0; i < count; i++)
        places_put(&requests, i, parties->requests[i]->arrival);
    codec_array(codec, NULL, &count, 0, REQUEST_MIN);
    for (size_t i = 0; i < count; i++)
        write_request(codec, parties->requests[i], places_get(&owners, parties->requests[i]->owner->number));
    code_orders(codec, table, parties, resources, &owners);
    code_request_orders(codec, parties, &requests);
    places_free(&owners);
    places_free(&requests);
}

static void read_parties(struct codec *codec, struct lock_table *table, struct lock_codec_refs *parties,
                         const struct places_of_resources *resources)
{
    read_requests(codec, table, parties);
    code_orders(codec, table, parties, resources, NULL);
    code_request_orders(codec, parties, NULL);
    for (size_t i = 0; i < parties->request_count && !codec->bad; i++)
        codec_require(codec, parties->requests[i]->state == LOCK_STATE_GRANTED ||
                                lock__queue_watch_restored(parties->requests[i]));
}

static void code_resources(struct codec *codec, struct lock_table *table, const struct lock_codec_refs *parties,
                           struct places_of_resources *places)
{
    if (codec_reads(codec)) {
        read_resources(codec, table, places);
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
    write_resources(codec, places);
}

static size_t waiting_count(const struct lock_codec_refs *parties)
{
    size_t count = 0;

    for (size_t i = 0; i < parties->request_count; i++)
        count += parties->requests[i]->state == LOCK_STATE_WAITING;
    return count;
}

void lock_codec_table(struct codec *codec, struct lock_table *table, struct lock_codec_refs *parties)
{
    struct places_of_resources resources = {.keys = ARENA_INIT};
    size_t count = parties->owner_count;

    REQUIRE(list_empty(&table->granted) && list_empty(&table->victims) && heap_first(&table->wake) == NULL);
    REQUIRE(codec_reads(codec) || waiting_count(parties) == table->waiting_count);
    REQUIRE(!codec_reads(codec) || lock_table_is_idle(table));
    if (codec_reads(codec))
        parties->request_count = 0;
    code_numbers(codec, table);
    code_resources(codec, table, parties, &resources);
    codec_size(codec, &count);
    codec_require(codec, count == parties->owner_count);
    for (size_t i = 0; i < parties->owner_count && !codec->bad; i++)
        code_owner(codec, table, parties, i, &resources);
    if (codec_reads(codec))
        read_parties(codec, table, parties, &resources);
    else
        write_parties(codec, table, parties, &resources);
    resources_free(&resources, table, codec_reads(codec));
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
