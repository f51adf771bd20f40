/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inspection of the lock table: conflicts of a request, listings of locked resources, checks for
 * tests.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/magic.h"
#include "core/locks/lock.h"
#include "core/locks/lock_internal.h"
#include "core/locks/resource.h"
#include "core/command/command.h"

const char *lock_mode_name(enum lock_mode mode)
{
    REQUIRE(mode >= 0 && mode < LOCK_MODE_COUNT);
    static const char *const names[LOCK_MODE_COUNT] = {"none", "shared", "update", "exclusive"};
    return names[mode];
}

enum lock_state lock_request_state(const struct lock_request *request)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC));
    return request->state;
}

void *lock_request_user(const struct lock_request *request)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC));
    return request->user;
}

struct lock_owner *lock_request_owner(const struct lock_request *request)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC));
    return request->owner;
}

tl_ts lock_request_token(const struct lock_request *request)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC) && request->state == LOCK_STATE_GRANTED);
    return request->token;
}

bool lock_request_is_in_force(const struct lock_request *request)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC) && request->state == LOCK_STATE_GRANTED);
    for (size_t i = 0; i < request->spec_count; i++) {
        const struct lock_spec_ref *spec = &request->specs[i];
        if (spec->insert_intention || spec->auxiliary || resource_is_name(spec->resource))
            continue;
        const struct lock_hold *hold = lock__hold_find(request->table, request->owner, spec->resource);
        request->table->work++;
        if (hold == NULL || hold->mode < spec->mode || hold->token != request->token)
            return false;
    }
    return true;
}

size_t lock_request_place_count(const struct lock_request *request)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC) && request->state == LOCK_STATE_WAITING);
    return request->waiter_count;
}

size_t lock_request_spec_count(const struct lock_request *request)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC));
    size_t count = 0;
    for (size_t i = 0; i < request->spec_count; i++)
        count += !resource_is_name(request->specs[i].resource);
    return count;
}

bool lock_request_is_upgrade(const struct lock_request *request)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC));
    return request->upgrade;
}

bool lock_request_spec(const struct lock_request *request, size_t *position, const struct resource **ret_resource,
                       enum lock_mode *ret_mode)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC));
    while (*position < request->spec_count) {
        const struct lock_spec_ref *spec = &request->specs[(*position)++];
        if (spec->insert_intention || spec->auxiliary)
            continue;
        *ret_resource = spec->resource;
        *ret_mode = spec->mode;
        return true;
    }
    return false;
}

/* --- Conflicts of a request ------------------------------------------------------------------- */

size_t lock_request_queue_position(const struct lock_request *request)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC));
    size_t most = 0;
    for (size_t i = 0; i < request->waiter_count; i++) {
        const struct lock_waiter *waiter = &request->waiters[i];
        const struct lock_queue *queue = waiter->resource->queue;
        size_t ahead = 0;
        resource_count_lookup(&request->table->resources);
        for (size_t bit = 0; queue != NULL && bit < LOCK_BIT_COUNT; bit++) {
            if ((lock__conflicts[waiter->bit] >> bit & 1) == 0)
                continue;
            const struct list *head = &queue->waiting[bit];
            /* Counted from the end: as a rule few requests follow this one. */
            ahead += queue->counts[bit];
            for (const struct list *at = head->prev; at != head; at = at->prev) {
                if (lock__precedes(list_entry(at, struct lock_waiter, link)->request, request))
                    break;
                resource_count_lookup(&request->table->resources);
                ahead--;
            }
        }
        most = ahead > most ? ahead : most;
    }
    return most;
}

/* The number of locks and ancestors that may be examined for each conflict. */
enum { LOOKS_PER_CONFLICT = 256 };

struct report {
    struct lock_table *table;
    struct lock_conflict *conflicts;
    size_t count;
    size_t max;
    size_t looks_left; /* locks and ancestors that may still be examined */
    /*
     * Conflicting holds that may still be examined. Without it, each would be examined at every
     * level of a path.
     */
    size_t holders_left;
};

/* Counts one examined lock or ancestor. Returns: false if no more may be examined. */
static bool charge_look(struct report *report)
{
    if (report->looks_left == 0)
        return false;
    report->looks_left--;
    report->table->work++;
    return true;
}

/* Adds a conflict, unless it is in the report already or the report is full. */
static void report_conflict(struct report *report, const struct lock_conflict *conflict)
{
    for (size_t i = 0; i < report->count; i++)
        if (report->conflicts[i].owner == conflict->owner && report->conflicts[i].resource == conflict->resource &&
            report->conflicts[i].waiting == conflict->waiting)
            return;
    if (report->count < report->max)
        report->conflicts[report->count++] = *conflict;
}

/* Returns: whether `other` is a lock below `hold`, and its intention bit is in `mask`. */
static bool is_lock_below(struct report *report, const struct lock_hold *hold, const struct lock_hold *other,
                          uint8_t mask)
{
    const struct resource *at = other->resource;
    if (other == hold || other->mode == LOCK_NONE || (mask & lock__mask(lock__intention_bit(other->mode))) == 0)
        return false;
    while (at != NULL && at != hold->resource && charge_look(report))
        at = at->parent;
    return at == hold->resource;
}

/*
 * Finds the lock by which a hold blocks: the hold itself, or, if only its intention bits conflict,
 * a lock below it. The owner can have very many locks. Its oldest ones are examined, and those
 * acquired just before the hold, since a hold on an ancestor is made right after its first lock.
 * Returns: the hold itself if no lock is found in time, or there is only an insert intention.
 */
static const struct lock_hold *blocking_lock(struct report *report, const struct lock_hold *hold, uint8_t mask)
{
    const struct list *head = &hold->owner->holds, *after = head->next, *before = hold->of_owner.prev;
    if (hold->mode != LOCK_NONE && (mask & lock__mask(lock__own_bit(hold->mode))) != 0)
        return hold;
    for (size_t i = 0; i < LOOKS_PER_CONFLICT / 2 && after != head && charge_look(report); i++, after = after->next) {
        const struct lock_hold *other = list_entry(after, struct lock_hold, of_owner);
        if (is_lock_below(report, hold, other, mask))
            return other;
    }
    for (size_t i = 0; i < LOOKS_PER_CONFLICT / 2 && before != head && charge_look(report);
         i++, before = before->prev) {
        const struct lock_hold *other = list_entry(before, struct lock_hold, of_owner);
        if (is_lock_below(report, hold, other, mask))
            return other;
    }
    return hold;
}

/*
 * Returns: the mode of a hold; without a mode, the strongest mode of the intention bits in `mask`.
 */
static enum lock_mode mode_of(const struct lock_hold *hold, uint8_t mask)
{
    REQUIRE(hold->mode != LOCK_NONE || (hold->bits & mask) != 0);
    for (enum lock_mode mode = LOCK_X; hold->mode == LOCK_NONE && mode > LOCK_S; mode--)
        if ((hold->bits & mask & lock__mask(lock__intention_bit(mode))) != 0)
            return mode;
    return hold->mode == LOCK_NONE ? LOCK_S : (enum lock_mode)hold->mode;
}

static void report_holders(struct report *list, const struct lock_request *request, const struct lock_waiter *waiter)
{
    uint8_t mask = lock__conflicts[waiter->bit];
    const struct lock_owner *owner = request->owner;
    if (!lock__has_conflicting_hold(request->table, owner, owner->session, waiter->resource, mask))
        return;
    for (const struct lock_hold *hold = NULL; (hold = lock__hold_next(waiter->resource, hold, mask)) != NULL;) {
        if (list->count == list->max || list->holders_left == 0)
            return;
        list->holders_left--;
        list->table->work++;
        if (lock__ignores(owner, hold->owner))
            continue;
        const struct lock_hold *found = blocking_lock(list, hold, mask);
        report_conflict(list,
                        &(struct lock_conflict){found->owner, found->resource, mode_of(found, mask), false, found});
    }
}

static void report_waiters(struct report *list, const struct lock_request *request, const struct lock_waiter *waiter)
{
    const struct lock_queue *queue = waiter->resource->queue;
    for (size_t bit = 0; queue != NULL && bit < LOCK_BIT_COUNT; bit++) {
        if ((lock__conflicts[waiter->bit] >> bit & 1) == 0)
            continue;
        list_for_each(link, &queue->waiting[bit])
        {
            const struct lock_waiter *other = list_entry(link, struct lock_waiter, link);
            if (list->count == list->max || !lock__precedes(other->request, request) || !charge_look(list))
                break;
            if (!lock__blocks(request->owner, other->request))
                continue;
            enum lock_mode mode = (enum lock_mode)(bit < LOCK_BIT_S ? bit + LOCK_S : bit - LOCK_BIT_S + LOCK_S);
            report_conflict(list, &(struct lock_conflict){other->request->owner, waiter->resource, mode, true, NULL});
        }
    }
}

size_t lock_request_conflicts_counted(struct lock_request *request, struct lock_conflict *ret_conflicts, size_t max,
                                      uint64_t *ret_looks)
{
    REQUIRE(MAGIC_VALID(request, LOCK_REQUEST_MAGIC) && request->state != LOCK_STATE_GRANTED);
    struct report list = {request->table, ret_conflicts, 0, max, max * LOOKS_PER_CONFLICT, max * LOOKS_PER_CONFLICT};
    request->table->work += 2 * request->waiter_count;
    for (size_t i = 0; i < request->waiter_count; i++)
        report_holders(&list, request, &request->waiters[i]);
    for (size_t i = 0; i < request->waiter_count; i++)
        report_waiters(&list, request, &request->waiters[i]);
    *ret_looks = 2 * request->waiter_count + 2 * max * LOOKS_PER_CONFLICT - list.looks_left - list.holders_left;
    return list.count;
}

size_t lock_request_conflicts(struct lock_request *request, struct lock_conflict *ret_conflicts, size_t max)
{
    uint64_t looks;
    return lock_request_conflicts_counted(request, ret_conflicts, max, &looks);
}

/* --- Listings --------------------------------------------------------------------------------- */

static int compare_pointers(const void *a, const void *b)
{
    return resource_compare(*(const struct resource *const *)a, *(const struct resource *const *)b);
}

bool lock_resource_is_locked_by_others(const struct resource *resource, const struct lock_owner *owner)
{
    const uint8_t own = lock__mask(LOCK_BIT_S) | lock__mask(LOCK_BIT_U) | lock__mask(LOCK_BIT_X);
    const struct lock_hold *hold = lock__hold_next(resource, NULL, own);
    if (hold != NULL && hold->owner == owner)
        hold = lock__hold_next(resource, hold, own);
    return hold != NULL;
}

bool lock_resource_is_in_use(const struct resource *resource)
{
    for (size_t bit = LOCK_BIT_S; bit < LOCK_BIT_COUNT; bit++)
        if (resource->held[bit] > 0 || (resource->queue != NULL && resource->queue->counts[bit] > 0))
            return true;
    return false;
}

size_t lock_resource_waiter_count(const struct resource *resource)
{
    size_t count = 0;
    for (size_t bit = 0; resource->queue != NULL && bit < LOCK_BIT_COUNT; bit++)
        count += resource->queue->counts[bit];
    return count;
}

struct found {
    const struct resource **items; /* in `arena` */
    size_t count;
    size_t capacity;
    struct arena *arena;
    const struct lock_owner *except; /* not those to which only a hold of this owner refers; NULL: none */
};

/*
 * Returns: whether only a hold of this owner refers to a document. A granted request of another one can refer to it
 * although its lock was released.
 */
static bool is_held_by_one(const struct resource *resource, const struct lock_owner *owner)
{
    return owner != NULL && resource->refs == 1 && !list_empty(&resource->holds) &&
           list_entry(resource->holds.next, struct lock_hold, of_resource)->owner == owner;
}

static void add_found(struct found *found, const struct resource *resource)
{
    if (is_held_by_one(resource, found->except))
        return;
    found->items = arena_grow(found->arena, found->items, found->count, &found->capacity, sizeof *found->items);
    found->items[found->count++] = resource;
}

static void sort_found(struct found *found)
{
    if (found->count > 1)
        qsort(found->items, found->count, sizeof *found->items, compare_pointers);
}

/* Finds all resources that are locked or requested, and sorts them. */
static void find_all(struct found *found, const struct lock_table *table)
{
    const struct resource_table *resources = &table->resources;
    for (size_t i = 0; i < resources->bucket_count; i++)
        for (const struct resource *at = resources->buckets[i]; at != NULL; at = at->chain)
            if (lock_resource_is_in_use(at))
                add_found(found, at);
    sort_found(found);
}

const struct resource **lock_table_resources(const struct lock_table *table, struct arena *arena, size_t *ret_count)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    struct found found = {.arena = arena};
    if (lock_resource_is_in_use(table->resources.root))
        add_found(&found, table->resources.root);
    find_all(&found, table);
    *ret_count = found.count;
    return found.items;
}

static const struct resource_name *name_all(const struct found *found, size_t *ret_count)
{
    struct arena *arena = found->arena;
    struct resource_name *names = arena_alloc(arena, (found->count + 1) * sizeof *names);
    struct slice index = SLICE_NONE;
    for (size_t i = 0; i < found->count; i++) {
        const struct resource *document = found->items[i];
        REQUIRE(document->kind == RESOURCE_DOCUMENT);
        if (index.data == NULL) /* all are in one index */
            index = arena_copy(arena, slice_make(document->index->name, document->index->name_len));
        names[i] = (struct resource_name){.index = index,
                                          .type = arena_copy(arena, resource_type(document)),
                                          .id = arena_copy(arena, slice_make(document->name + document->type_len,
                                                                             document->name_len - document->type_len))};
    }
    *ret_count = found->count;
    return names;
}

/* Returns: the directory of a path; NULL: it is not in the table. */
static const struct resource *directory_at(const struct lock_table *table, const struct resource *index,
                                           struct slice path)
{
    struct resource_path walk = resource_path(path);
    const struct resource *at = index;
    struct slice name;
    while (at != NULL && resource_path_next(&walk, &name))
        at = resource_child(&table->resources, at, name);
    return at == index ? NULL : at;
}

/* Returns: the names of a path with a delimiter between them, as far as the table has levels; a part, or in `arena`. */
static struct slice names_of(struct slice path, struct arena *arena)
{
    bool plain = path.len > 1 && path.data[0] == '/' && path.data[path.len - 1] != '/' &&
                 path.len / 2 <= RESOURCE_LEVELS_MAX && memmem(path.data, path.len, "//", 2) == NULL;
    if (plain)
        return slice_from_offset(path, 1);
    struct resource_path walk = resource_path(path);
    struct slice name;
    char *names = arena_alloc(arena, path.len + 1);
    size_t len = 0;
    (void)resource_path_next(&walk, &name); /* the root */
    while (resource_path_next(&walk, &name)) {
        if (len > 0)
            names[len++] = '/';
        memcpy(names + len, name.data, name.len);
        len += name.len;
    }
    return slice_make(names, len);
}

/* Returns: the rank of a byte in names_of() a path: the end and the delimiter precede all others. */
static int rank_at(struct slice names, size_t at)
{
    return at == names.len ? 0 : names.data[at] == '/' ? 1 : 2 + (unsigned char)names.data[at];
}

/* Compares names_of() two paths as resource_compare() does their directories. */
static int compare_names(const void *left, const void *right)
{
    const struct slice *a = left, *b = right;
    size_t common = slice_common_prefix(*a, *b);
    return rank_at(*a, common) - rank_at(*b, common);
}

/* Returns: whether a directory is another one or below it, by names_of() their paths. */
static bool is_within(struct slice names, struct slice directory)
{
    return directory.len == 0 || (slice_starts_with(names, directory) && rank_at(names, directory.len) <= 1);
}

/* The directory that was found last. Neighbours have most of their levels in common. */
struct directory_trail {
    const struct resource *at; /* the deepest one that is in the table */
    struct slice names;        /* its names */
};

/* Moves to the directory of names_of() a path. Returns: it; NULL: it is not in the table. */
static const struct resource *follow_names(const struct lock_table *table, struct directory_trail *trail,
                                           struct slice names)
{
    size_t common = slice_common_prefix(names, trail->names);
    while (common > 0 && (rank_at(names, common) > 1 || rank_at(trail->names, common) > 1))
        common--;
    for (size_t i = common; i < trail->names.len; trail->at = trail->at->parent)
        i +=
            1 + slice_find_byte(slice_from_offset(trail->names, i + 1), '/'); /* each but the first after a delimiter */
    while (common < names.len) {
        size_t begin = common + (common > 0), end = begin + slice_find_byte(slice_from_offset(names, begin), '/');
        const struct resource *child =
            resource_child(&table->resources, trail->at, slice_make(names.data + begin, end - begin));
        if (child == NULL)
            break;
        trail->at = child;
        common = end;
    }
    trail->names = slice_make(names.data, common);
    return common == names.len ? trail->at : NULL;
}

/* Returns: the resource after another one in a walk over all that are below a directory; NULL: it is the last. */
static const struct resource *next_below(const struct resource *directory, const struct resource *at)
{
    if (at->child != NULL)
        return at->child;
    while (at != directory && at->next == NULL)
        at = at->parent;
    return at == directory ? NULL : at->next;
}

/* As next_below(), with the level of the resource: that of the directory is 0. */
static const struct resource *next_level(const struct resource *directory, const struct resource *at, size_t *io_level)
{
    if (at->child != NULL) {
        ++*io_level;
        return at->child;
    }
    for (; at != directory && at->next == NULL; at = at->parent)
        --*io_level;
    return at == directory ? NULL : at->next;
}

static int compare_descending(const void *a, const void *b)
{
    return compare_pointers(b, a);
}

/*
 * Finds the documents below a directory or in an index that are locked or requested, whatever else is in the table, in
 * tree order. Only siblings are compared: to compare two documents takes as many steps as they have levels.
 */
static void find_documents(struct found *found, const struct lock_table *table, const struct resource *directory)
{
    const struct resource **left = NULL; /* to be visited, the first one at the end */
    size_t count = 0, capacity = 0;
    for (const struct resource *at = directory; at != NULL; at = count > 0 ? left[--count] : NULL) {
        size_t first = count;
        resource_count_lookup(&table->resources);
        if (at->kind == RESOURCE_DOCUMENT && lock_resource_is_in_use(at))
            add_found(found, at);
        for (const struct resource *child = at->child; child != NULL; child = child->next) {
            left = arena_grow(found->arena, left, count, &capacity, sizeof *left);
            left[count++] = child;
        }
        if (count - first > 1)
            qsort(left + first, count - first, sizeof *left, compare_descending);
    }
}

const struct resource_name *lock_table_documents(const struct lock_table *table, struct slice index,
                                                 struct arena *arena, size_t *ret_count)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    struct found found = {.arena = arena};
    const struct resource *home = resource_index(&table->resources, index);
    if (home != NULL)
        find_documents(&found, table, home);
    return name_all(&found, ret_count);
}

size_t lock_table_held_below(const struct lock_table *table, struct slice index, struct slice path, size_t levels,
                             size_t most)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    const struct resource *home = resource_index(&table->resources, index);
    const struct resource *directory = home == NULL || path.data == NULL ? home : directory_at(table, home, path);
    size_t count = 0, level = 0;
    for (const struct resource *at = directory; at != NULL && count <= most; at = next_level(directory, at, &level)) {
        resource_count_lookup(&table->resources);
        if (at->kind != RESOURCE_DOCUMENT)
            continue;
        INSIST(level > 0); /* it is in the directory */
        for (const struct list *link = at->holds.next; link != &at->holds && count <= most; link = link->next) {
            resource_count_lookup(&table->resources);
            count += LOCK_MOVE_COUNT(levels + level - 1);
        }
    }
    return count;
}

const struct resource_name *lock_table_held_documents(const struct lock_table *table, struct slice index, size_t most,
                                                      struct arena *arena, size_t *ret_count)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    const struct resource *home = resource_index(&table->resources, index);
    struct resource_name *names = NULL;
    size_t capacity = 0;
    *ret_count = 0;
    for (const struct resource *at = home; at != NULL && *ret_count < most; at = next_below(home, at)) {
        resource_count_lookup(&table->resources);
        if (at->kind != RESOURCE_DOCUMENT || list_empty(&at->holds))
            continue;
        const struct resource_name name = resource_name(at, arena);
        for (const struct list *link = at->holds.next; link != &at->holds && *ret_count < most; link = link->next) {
            resource_count_lookup(&table->resources);
            names = arena_grow(arena, names, *ret_count, &capacity, sizeof *names);
            names[(*ret_count)++] = name;
        }
    }
    return names;
}

/* Returns: whether an owner other than `owner` (NULL: any) holds a resource, and does not belong to it. */
static bool is_held_by_others(const struct lock_table *table, const struct resource *resource,
                              const struct lock_owner *owner)
{
    list_for_each(link, &resource->holds)
    {
        resource_count_lookup(&table->resources);
        if (owner == NULL || !lock__ignores(list_entry(link, struct lock_hold, of_resource)->owner, owner))
            return true;
    }
    return false;
}

bool lock_table_others_hold_documents(const struct lock_table *table, struct slice index,
                                      const struct lock_owner *owner)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    const struct resource *home = resource_index(&table->resources, index);
    for (const struct resource *at = home; at != NULL; at = next_below(home, at)) {
        resource_count_lookup(&table->resources);
        if (at->kind == RESOURCE_DOCUMENT && is_held_by_others(table, at, owner))
            return true;
    }
    return false;
}

const struct resource_name *lock_table_documents_below(const struct lock_table *table, struct slice index,
                                                       const struct slice *paths, size_t path_count,
                                                       const struct lock_owner *except, struct arena *arena,
                                                       size_t *ret_count)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    struct found found = {.arena = arena, .except = except};
    const struct resource *home = resource_index(&table->resources, index);
    struct directory_trail trail = {home == NULL ? NULL : resource_child(&table->resources, home, SLICE_LIT("/")),
                                    SLICE_LIT("")};
    struct slice *names = arena_alloc(arena, (path_count + 1) * sizeof *names), last = SLICE_NONE;
    for (size_t i = 0; i < path_count; i++)
        names[i] = names_of(paths[i], arena);
    if (path_count > 1) /* then those below a directory follow it, and all documents are in tree order */
        qsort(names, path_count, sizeof *names, compare_names);
    for (size_t i = 0; i < path_count && trail.at != NULL; i++) {
        if (last.data != NULL && is_within(names[i], last))
            continue;
        const struct resource *directory = follow_names(table, &trail, names[i]);
        if (directory == NULL)
            continue;
        last = names[i];
        find_documents(&found, table, directory);
    }
    return name_all(&found, ret_count);
}

struct lock_waiter_iter lock_waiter_iter(const struct resource *resource)
{
    struct lock_waiter_iter iter = {.queue = resource->queue};
    for (size_t bit = LOCK_BIT_S; iter.queue != NULL && bit < LOCK_BIT_COUNT; bit++)
        iter.at[bit] = iter.queue->waiting[bit].next;
    return iter;
}

/* Returns: the request at the front of a list, or NULL. */
static const struct lock_request *front_of_list(const struct lock_waiter_iter *iter, size_t bit)
{
    const struct list *at = iter->at[bit];
    return at == &iter->queue->waiting[bit] ? NULL : list_entry(at, struct lock_waiter, link)->request;
}

bool lock_waiter_iter_next(struct lock_waiter_iter *iter, const struct lock_request **ret_request,
                           enum lock_mode *ret_mode)
{
    const struct lock_request *first = NULL;
    for (size_t bit = LOCK_BIT_S; iter->queue != NULL && bit < LOCK_BIT_COUNT; bit++) {
        const struct lock_request *at = front_of_list(iter, bit);
        if (at != NULL && (first == NULL || lock__precedes(at, first)))
            first = at;
    }
    if (first == NULL)
        return false;
    /* A request with two of these bits on one resource is returned once, with the stronger mode. */
    for (size_t bit = LOCK_BIT_S; bit < LOCK_BIT_COUNT; bit++)
        if (front_of_list(iter, bit) == first) {
            iter->at[bit] = iter->at[bit]->next;
            *ret_mode = (enum lock_mode)(bit - LOCK_BIT_S + LOCK_S);
        }
    *ret_request = first;
    return true;
}

/* --- Checks ------------------------------------------------------------------------------------------------------- */

static bool is_awaited(const struct lock_hold *hold)
{
    const struct lock_queue *queue = hold->resource->queue;
    for (size_t bit = 0; queue != NULL && bit < LOCK_BIT_COUNT; bit++)
        if (!list_empty(&queue->waiting[bit]) && (lock__conflicts[bit] & hold->bits) != 0)
            return true;
    return false;
}

/* Invariant 9. */
static void check_unconfirmed(const struct lock_hold *hold)
{
    const struct lock_unconfirmed *unconfirmed = hold->unconfirmed;
    uint32_t counts[LOCK_MODE_COUNT] = {0}, plain = 0;
    tl_ts token = TL_TS_NONE;
    if (unconfirmed == NULL)
        return;
    INSIST(hold->mode != LOCK_NONE && !list_empty(&unconfirmed->grants));
    list_for_each(link, &unconfirmed->grants)
    {
        const struct lock_grant *grant = list_entry(link, struct lock_grant, link);
        const struct lock_request *request = grant->request;
        const struct lock_spec_ref *spec = &request->specs[grant - request->grants];
        INSIST(grant->hold == hold && request->owner == hold->owner && spec->resource == hold->resource);
        INSIST(request->token >= token);
        token = request->token;
        counts[spec->mode]++;
        plain += !spec->auxiliary;
    }
    struct lock_value value = lock__unconfirmed_value(unconfirmed);
    INSIST(memcmp(counts, unconfirmed->counts, sizeof counts) == 0 && plain == unconfirmed->plain_count);
    INSIST(value.mode == hold->mode && value.token == hold->token && value.auxiliary == hold->auxiliary);
}

static void check_counts(const struct resource *resource)
{
    uint32_t held[LOCK_BIT_COUNT] = {0};
    const struct lock_hold *before = NULL;
    list_for_each(link, &resource->holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_resource);
        INSIST(hold->bits != 0);
        INSIST(((hold->bits >> LOCK_BIT_S) != 0) == (hold->mode != LOCK_NONE));
        INSIST(hold->awaited == is_awaited(hold));
        check_unconfirmed(hold);
        for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++)
            held[bit] += hold->bits >> bit & 1;
        INSIST(lock__hold_next(resource, before, UINT8_MAX) == hold);
        INSIST(before == NULL || before->order < hold->order);
        before = hold;
    }
    INSIST(lock__hold_next(resource, before, UINT8_MAX) == NULL);
    INSIST(memcmp(held, resource->held, sizeof held) == 0);
}

static void check_siblings(const struct resource *resource)
{
    INSIST(resource->before != NULL ? resource->before->next == resource : resource->parent->child == resource);
    INSIST(resource->next == NULL || resource->next->before == resource);
    INSIST(resource->before == NULL || resource->before->parent == resource->parent);
}

/*
 * A waiting request watches something and is blocked, or is scheduled: a cleanup request, or beyond
 * the quota of grants (invariant 5).
 */
static void check_waiter(const struct lock_request *request)
{
    INSIST(request->state == LOCK_STATE_WAITING && !list_linked(&request->suspect));
    lock__watch_check(request);
}

static size_t check_queue(const struct resource *resource)
{
    size_t total = 0;
    if (resource->queue == NULL)
        return 0;
    for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++) {
        const struct lock_request *before = NULL;
        size_t count = 0;
        list_for_each(link, &resource->queue->waiting[bit])
        {
            const struct lock_waiter *waiter = list_entry(link, struct lock_waiter, link);
            INSIST(waiter->resource == resource && waiter->bit == bit);
            INSIST(before == NULL || lock__precedes(before, waiter->request));
            check_waiter(waiter->request);
            before = waiter->request;
            count++;
        }
        INSIST(count == resource->queue->counts[bit]);
        INSIST(treap_kinds_are_exact(&resource->queue->order[bit], lock__queue_same_owner));
        total += count;
    }
    INSIST(total > 0);
    return total;
}

static void check_owner(const struct lock_owner *owner)
{
    size_t awaited = 0, count = 0;
    list_for_each(link, &owner->holds)
    {
        awaited += list_entry(link, struct lock_hold, of_owner)->awaited;
        count++;
    }
    INSIST(owner->awaited_count == awaited && owner->hold_count == count);
    const struct list *at = owner->holds.next;
    list_for_each(link, &owner->chunks)
    {
        const struct lock_chunk *chunk = list_entry(link, struct lock_chunk, of_owner);
        INSIST(chunk->count > 0 && chunk->count <= chunk->added && &chunk->first->of_owner == at);
        for (uint32_t i = 0; i < chunk->count; i++, at = at->next)
            INSIST(list_entry(at, struct lock_hold, of_owner)->chunk == chunk);
    }
    INSIST(at == &owner->holds);
}

/* The statistics and the counts of owners agree with the holds. */
static void check_statistics(const struct lock_table *table)
{
    size_t held[LOCK_MODE_COUNT] = {0};
    for (size_t i = 0; i < table->bucket_count; i++)
        for (const struct lock_hold *hold = table->buckets[i]; hold != NULL; hold = hold->chain) {
            if (hold->mode != LOCK_NONE && !hold->auxiliary)
                held[hold->mode]++;
            if (hold->owner->holds.next == &hold->of_owner)
                check_owner(hold->owner);
        }
    for (int mode = 0; mode < LOCK_MODE_COUNT; mode++) {
        INSIST(table->held[mode] == held[mode]);
        INSIST(table->waiting_count > 0 || table->requested[mode] == 0);
    }
}

/* The counts of locks on directories agree with the holds. */
static void check_directory_locks(const struct resource_table *resources)
{
    for (size_t i = 0; i < resources->bucket_count; i++)
        for (const struct resource *at = resources->buckets[i]; at != NULL; at = at->chain)
            for (int bit = LOCK_BIT_S; bit < LOCK_BIT_COUNT && at->kind == RESOURCE_DIRECTORY; bit++)
                at->index->scratch += at->held[bit];
    for (size_t i = 0; i < resources->bucket_count; i++)
        for (struct resource *at = resources->buckets[i]; at != NULL; at = at->chain) {
            INSIST(at->directory_locks == at->scratch);
            at->scratch = 0;
        }
}

void lock_table_check(struct lock_table *table)
{
    const struct resource_table *resources = &table->resources;
    uint64_t work = table->work, lookups = table->resources.lookups;
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    INSIST((table->wake.count == 0 || table->grant_quota == 0) && table->grants_suspended == 0 &&
           list_empty(&table->suspects));
    struct heap_node *ready = heap_first(&table->ready_cleanup);
    INSIST(ready == NULL || !lock__watch_is_blocked(container_of(ready, struct lock_request, wake)));
    check_statistics(table);
    check_directory_locks(resources);
    check_counts(resources->root);
    check_queue(resources->root);
    for (size_t i = 0; i < resources->bucket_count; i++)
        for (const struct resource *at = resources->buckets[i]; at != NULL; at = at->chain) {
            INSIST(at->refs > 0);
            check_counts(at);
            check_queue(at);
            check_siblings(at);
        }
    table->work = work; /* a check is no work of the step */
    table->resources.lookups = lookups;
}

size_t lock_table_check_cost(const struct lock_table *table)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC));
    return 2 * table->bucket_count + 3 * table->resources.bucket_count + 4 * table->hold_count +
           table->waiting_count * table->waiting_count;
}
