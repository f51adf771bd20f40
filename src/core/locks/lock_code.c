/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of locks as bytes; see lock_code.h.
 *
 * What can be found again from the rest is left out: bits and counts, who stands in which queue, who watches what. Three things hang on
 * the order in which they came about, and are written as orders: an owner's holds, the holds of one resource, an owner's requests.
 *
 *     ts · token_count · last owner, arrival, lock
 *     owners     number · age · flags · holds
 *     hold       resource · mode · flags · number · since · token · three counts of locks below
 *     requests   owner (its place) · arrival · flags · wants
 *     orders     of each resource with several holds, as it is met: the places of their owners
 *                of each owner: of its requests, of its wards': their places
 *
 * Paths of holds and of orders are written by what they have in common with the path before.
 */
#include "core/locks/lock_code.h"

#include "base/check.h"
#include "base/map.h"
#include "core/locks/lock_internal.h"
#include "core/locks/resource.h"
#include "core/step/command.h"

enum { NAME_MIN = 5, HOLD_MIN = NAME_MIN + 8, WANT_MIN = NAME_MIN + 2, REQUEST_MIN = 4 };

/*
 * A path, by what it has in common with the one before: a lock deep in a tree has left its intentions on every level above, and those
 * paths together would be as long as the square of it. `last` is the path before, and becomes this one, which lives there.
 */
static void code_path(struct coder *coder, struct buf *last, struct slice *path)
{
    uint64_t shared = 0; /* and 1; 0: there is no path */
    struct slice rest = SLICE_NONE;

    if (!coder_reads(coder) && path->data != NULL) {
        while (shared < path->len && shared < last->len && path->data[shared] == last->data[shared])
            shared++;
        rest = slice_from_offset(*path, (size_t)shared++);
    }
    code_number(coder, &shared);
    if (shared == 0) {
        *path = SLICE_NONE;
        return;
    }
    code_bytes(coder, &rest);
    shared--;
    coder_demand(coder, shared <= last->len);
    coder_demand(coder, coder->bad || rest.len == 0 || shared == last->len || rest.data[0] != last->data[shared]);
    if (coder->bad)
        return;
    last->len = (size_t)shared;
    buf_slice(last, rest);
    *path = buf_view(last);
    if (path->data == NULL)
        *path = SLICE_LIT("");
}

static void code_name(struct coder *coder, struct buf *last, struct resource_name *name)
{
    name->space = (enum resource_space)code_enum(coder, name->space, RESOURCE_SPACE_COUNT);
    code_slice(coder, &name->index);
    if (last == NULL)
        code_slice(coder, &name->path);
    else
        code_path(coder, last, &name->path);
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

/* --- Holds -------------------------------------------------------------------------------------------------------- */

static void code_hold_fields(struct coder *coder, struct lock_hold *hold)
{
    bool *const flags[] = {&hold->aside};

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

static void read_hold(struct coder *coder, struct lock_table *table, struct lock_owner *owner, struct buf *last)
{
    struct resource_name name = {0};
    struct lock_hold fields = {0};

    code_name(coder, last, &name);
    code_hold_fields(coder, &fields);
    coder_demand(coder,
                 (fields.mode != LOCK_NONE) == (fields.number != 0) && (fields.mode != LOCK_NONE || !fields.aside));
    coder_demand(coder, fields.mode != LOCK_NONE || fields.below[0] + fields.below[1] + fields.below[2] > 0);
    if (!coder->bad)
        coder_demand(coder, lock__restore_hold(table, owner, &name, &fields) && is_called(table, &name));
}

static void write_hold(struct coder *coder, const struct lock_hold *hold, struct buf *last)
{
    struct arena arena = ARENA_INIT;
    struct resource_name name = resource_name(hold->resource, &arena);
    struct lock_hold fields = *hold;

    code_name(coder, last, &name);
    code_hold_fields(coder, &fields);
    arena_deinit(&arena);
}

static void code_owner(struct coder *coder, struct lock_table *table, struct lock_owner *owner, struct buf *last)
{
    bool *const flags[] = {&owner->one_shot, &owner->first};
    size_t count = coder_reads(coder) ? 0 : length_of(&owner->holds);

    code_number(coder, &owner->number);
    code_number(coder, &owner->age);
    code_flags(coder, flags, 2);
    code_array(coder, NULL, &count, 0, HOLD_MIN);
    if (!coder_reads(coder)) {
        list_for_each(link, &owner->holds) write_hold(coder, list_entry(link, struct lock_hold, of_owner), last);
        return;
    }
    for (size_t i = 0; i < count && !coder->bad; i++)
        read_hold(coder, table, owner, last);
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

static void code_want(struct coder *coder, struct lock_want *want)
{
    bool *const flags[] = {&want->within, &want->aside};

    code_name(coder, NULL, &want->on); /* as it was said: nothing of it is above another */
    want->mode = (enum lock_mode)code_enum(coder, want->mode, LOCK_MODE_COUNT);
    coder_demand(coder, coder->bad || want->mode != LOCK_NONE);
    code_flags(coder, flags, 2);
}

static void write_request(struct coder *coder, const struct lock_request *request, size_t place)
{
    struct arena arena = ARENA_INIT;
    bool upgrade = request->upgrade;
    uint64_t arrival = request->arrival;
    size_t count = request->want_count;

    REQUIRE(request->state == LOCK_STATE_WAITING);
    code_size(coder, &place);
    code_number(coder, &arrival);
    code_bool(coder, &upgrade);
    code_array(coder, NULL, &count, 0, WANT_MIN);
    for (size_t i = 0; i < count; i++) {
        const struct lock_wanted *wanted = &request->wants[i];
        struct lock_want want = {resource_name(wanted->resource, &arena), wanted->mode, wanted->within, wanted->aside};
        code_want(coder, &want);
    }
    arena_deinit(&arena);
}

static struct lock_request *read_request(struct coder *coder, struct lock_table *table, struct lock_parties *parties)
{
    struct lock_want *wants;
    uint64_t arrival = 0;
    bool upgrade = false;
    size_t place = 0, count = 0;

    code_place(coder, &place, parties->owner_count);
    code_number(coder, &arrival);
    code_bool(coder, &upgrade);
    wants = code_array(coder, NULL, &count, sizeof(*wants), WANT_MIN);
    coder_demand(coder, count > 0 && arrival <= table->last_arrival);
    for (size_t i = 0; i < count && !coder->bad; i++)
        code_want(coder, &wants[i]);
    if (coder->bad)
        return NULL;
    struct lock_request *request = lock__restore_request(table, parties->owners[place], wants, count, arrival, upgrade);
    for (size_t i = 0; i < count; i++)
        coder_demand(coder, is_called(table, &wants[i].on));
    return request;
}

static void read_requests(struct coder *coder, struct lock_table *table, struct lock_parties *parties)
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
static void write_order(struct coder *coder, const struct resource *resource, const struct places *places,
                        struct buf *last)
{
    struct arena arena = ARENA_INIT;
    struct resource_name name = resource_name(resource, &arena);
    size_t count = length_of(&resource->holds);
    bool more = true;

    code_bool(coder, &more);
    code_name(coder, last, &name);
    code_size(coder, &count);
    list_for_each(link, &resource->holds)
    {
        size_t place = places_get(places, list_entry(link, struct lock_hold, of_resource)->owner->number);
        code_size(coder, &place);
    }
    arena_deinit(&arena);
}

/* Whether a hold is the first of several of a resource, whose order is written in its place. */
static bool has_order(const struct lock_hold *hold)
{
    const struct list *holds = &hold->resource->holds;
    return holds->next == &hold->of_resource && holds->prev != &hold->of_resource;
}

static void write_orders(struct coder *coder, const struct lock_parties *parties, const struct places *places)
{
    struct buf last = BUF_INIT(BUF_UNLIMITED);
    bool more = false;

    for (size_t i = 0; i < parties->owner_count; i++)
        list_for_each(link, &parties->owners[i]->holds)
        {
            const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
            if (has_order(hold))
                write_order(coder, hold->resource, places, &last);
        }
    code_bool(coder, &more);
    buf_deinit(&last);
}

/* How many orders there must be. */
static size_t count_orders(const struct lock_parties *parties)
{
    size_t count = 0;

    for (size_t i = 0; i < parties->owner_count; i++)
        list_for_each(link, &parties->owners[i]->holds) count +=
            has_order(list_entry(link, struct lock_hold, of_owner));
    return count;
}

/* Each hold is moved to the end in its turn. */
static void read_order(struct coder *coder, struct lock_table *table, const struct lock_parties *parties,
                       struct buf *last)
{
    struct resource_name name = {0};
    size_t count = 0;

    code_name(coder, last, &name);
    struct resource *resource = coder->bad ? NULL : lock__find_resource(table, &name);
    coder_demand(coder, resource != NULL);
    code_size(coder, &count);
    coder_demand(coder, coder->bad || (count > 1 && count == length_of(&resource->holds)));
    for (size_t i = 0; i < count && !coder->bad; i++) {
        size_t place = 0;
        code_place(coder, &place, parties->owner_count);
        struct lock_hold *hold = coder->bad ? NULL : lock__hold_find(table, parties->owners[place], resource);
        coder_demand(coder, hold != NULL);
        if (hold == NULL)
            return;
        list_remove(&hold->of_resource);
        list_append(&resource->holds, &hold->of_resource);
    }
}

static void read_orders(struct coder *coder, struct lock_table *table, const struct lock_parties *parties)
{
    struct buf last = BUF_INIT(BUF_UNLIMITED);
    bool more = false;
    size_t left = count_orders(parties);

    for (code_bool(coder, &more); more && !coder->bad; code_bool(coder, &more)) {
        coder_demand(coder, left > 0);
        read_order(coder, table, parties, &last);
        left--;
    }
    coder_demand(coder, coder->bad || left == 0);
    buf_deinit(&last);
}

static struct lock_request *request_at(const struct list *link, bool of_session)
{
    return of_session ? list_entry(link, struct lock_request, of_session)
                      : list_entry(link, struct lock_request, of_owner);
}

/* The requests of an owner, or those of its wards, in their order. */
static void code_request_order(struct coder *coder, struct list *requests, bool of_session,
                               const struct lock_parties *parties, const struct places *places)
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
        coder_demand(coder, owner != NULL && requests == (of_session ? &owner->ward_requests : &owner->requests));
        if (coder->bad)
            return;
        list_remove(link);
        list_append(requests, link);
    }
}

static void code_request_orders(struct coder *coder, const struct lock_parties *parties, const struct places *places)
{
    for (size_t i = 0; i < parties->owner_count && !coder->bad; i++) {
        code_request_order(coder, &parties->owners[i]->requests, false, parties, places);
        code_request_order(coder, &parties->owners[i]->ward_requests, true, parties, places);
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

static void write_parties(struct coder *coder, const struct lock_parties *parties)
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
    write_orders(coder, parties, &owners);
    code_request_orders(coder, parties, &requests);
    places_free(&owners);
    places_free(&requests);
}

static void read_parties(struct coder *coder, struct lock_table *table, struct lock_parties *parties)
{
    read_requests(coder, table, parties);
    read_orders(coder, table, parties);
    code_request_orders(coder, parties, NULL);
    for (size_t i = 0; i < parties->request_count && !coder->bad; i++)
        coder_demand(coder, lock__queue_watch_again(parties->requests[i]));
}

void lock_table_code(struct coder *coder, struct lock_table *table, struct lock_parties *parties)
{
    struct buf last = BUF_INIT(BUF_UNLIMITED);
    size_t count = parties->owner_count;

    REQUIRE(list_empty(&table->granted) && list_empty(&table->victims) && heap_first(&table->wake) == NULL);
    REQUIRE(coder_reads(coder) || parties->request_count == table->waiting_count);
    REQUIRE(!coder_reads(coder) || lock_table_idle(table));
    if (coder_reads(coder))
        parties->request_count = 0;
    code_numbers(coder, table);
    code_size(coder, &count);
    coder_demand(coder, count == parties->owner_count);
    for (size_t i = 0; i < parties->owner_count && !coder->bad; i++)
        code_owner(coder, table, parties->owners[i], &last);
    buf_deinit(&last);
    if (coder_reads(coder))
        read_parties(coder, table, parties);
    else
        write_parties(coder, parties);
}

void lock_code_abandon(struct lock_table *table, struct lock_parties *parties)
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
