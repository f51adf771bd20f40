/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Documents that move in the lock table: README-locks.md, "Moves of documents".
 *
 * The effect of many moves is that of single ones, in their order, but the work is not: each request that waits for
 * any of the documents leaves and enters its queues once, and each owner's intention locks on a directory change
 * once, however many of the documents below it the owner has locked.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/magic.h"
#include "core/locks/lock.h"
#include "core/locks/lock_internal.h"
#include "core/locks/resource.h"
#include "core/command/command.h"

/* --- Where documents are ------------------------------------------------------------------------------------------ */

/* Whether a directory is that of a path, as found for the document before: neighbours have most levels in common. */
struct place_check {
    const struct resource *directory; /* NULL: none was compared yet */
    struct slice path;
    bool is_there;
};

/* Returns: the beginning of the last name in the first `end` bytes of a path, and *ret_name. */
static size_t last_name(struct slice path, size_t end, struct slice *ret_name)
{
    while (end > 0 && path.data[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path.data[begin - 1] != '/')
        begin--;
    *ret_name = slice_make(path.data + begin, end - begin);
    return begin;
}

/*
 * Returns: whether a document is in the directory of a path, of which all levels are in the table. It is compared from
 * its end on, since the names of other directories differ there.
 */
static bool is_in_directory(const struct lock_table *table, const struct resource *document, struct slice path,
                            struct place_check *check)
{
    REQUIRE(document->kind == RESOURCE_DOCUMENT && path.data != NULL);
    const struct resource *at = document->parent;
    struct place_check rest = {NULL, SLICE_NONE, false};
    struct slice name;
    size_t end = path.len;
    bool same = true;
    for (; same && at->kind == RESOURCE_DIRECTORY && at->parent->kind == RESOURCE_DIRECTORY; at = at->parent) {
        resource_count_lookup(&table->resources);
        end = last_name(path, end, &name);
        same = slice_equal(name, slice_make(at->name, at->name_len));
        if (!same || at != document->parent)
            continue;
        rest = (struct place_check){at->parent, slice_make(path.data, end), false};
        if (check->directory == rest.directory && slice_equal(check->path, rest.path))
            return check->is_there;
    }
    if (same) {
        last_name(path, end, &name);
        same = name.len == 0 && at->kind == RESOURCE_DIRECTORY;
    }
    rest.is_there = same;
    if (rest.directory != NULL)
        *check = rest;
    return same;
}

static bool is_at(const struct lock_table *table, const struct resource *document, const struct resource_name *place,
                  struct place_check *check)
{
    const struct resource_name above = {place->index, place->path, SLICE_NONE, SLICE_NONE};
    if (place->path.data == NULL)
        return document->parent->kind == RESOURCE_INDEX;
    return place->path.len / 2 <= RESOURCE_LEVELS_MAX ? is_in_directory(table, document, place->path, check)
                                                      : document->parent == lock__find_resource(table, &above);
}

bool lock_table_document_is_at(const struct lock_table *table, const struct resource_name *place)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC) && place->id.data != NULL);
    const struct resource *document = lock__find_resource(table, place);
    return document != NULL && is_at(table, document, place, &(struct place_check){NULL, SLICE_NONE, false});
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

/* A document that moves, and its new directory: data NULL: its index. */
struct move {
    struct resource *document; /* with a reference */
    struct resource *before;   /* its directory before; with a reference, while a batch of moves is under way */
    struct slice path;
};

/* Requests that have left their queues, to enter them again. */
struct taken {
    struct lock_request **items;
    size_t count, capacity;
};

/* Removes from all queues the requests that wait to lock a document, by their bits and in queue order. */
static void take_waiters(struct taken *taken, const struct resource *document)
{
    REQUIRE(document->kind == RESOURCE_DOCUMENT);
    for (size_t bit = LOCK_BIT_S; bit < LOCK_BIT_COUNT; bit++)
        while (document->queue != NULL && !list_empty(&document->queue->waiting[bit])) {
            struct lock_waiter *waiter = list_entry(document->queue->waiting[bit].next, struct lock_waiter, link);
            if (taken->count == taken->capacity) {
                taken->capacity = taken->capacity ? taken->capacity * 2 : 16;
                taken->items = mem_realloc(taken->items, taken->capacity * sizeof(struct lock_request *));
            }
            taken->items[taken->count++] = waiter->request;
            lock__queue_leave(waiter->request);
        }
}

/* Reverses the requests from position `low` on. */
static void reverse_taken(struct taken *taken, size_t low)
{
    for (size_t high = taken->count; low + 1 < high; low++) {
        struct lock_request *moved = taken->items[low];
        taken->items[low] = taken->items[--high];
        taken->items[high] = moved;
    }
}

/*
 * Removes from all queues the requests that wait to lock any of the documents, each once. They are in the order in
 * which single moves would have them enter their queues the last time, which the lists of their owners keep: by the
 * last document of each.
 */
static struct taken take_all_waiters(const struct move *moves, size_t count)
{
    struct taken taken = {NULL, 0, 0};
    for (size_t i = count; i-- > 0;) {
        size_t before = taken.count;
        take_waiters(&taken, moves[i].document);
        reverse_taken(&taken, before);
    }
    reverse_taken(&taken, 0);
    return taken;
}

/* --- One document ------------------------------------------------------------------------------------------------- */

/*
 * Adds the intention locks of all locks on a document, on its directory and above; or removes them.
 */
static void shift_intentions(struct lock_table *table, struct resource *document, bool on)
{
    REQUIRE(document->kind == RESOURCE_DOCUMENT);
    list_for_each(link, &document->holds)
    {
        struct lock_hold *hold = list_entry(link, struct lock_hold, of_resource);
        table->work++;
        lock__chunk_touch(table, hold->chunk); /* the piece names the directory */
        lock__intentions_change(table, hold->owner, document->parent, on ? LOCK_NONE : hold->mode,
                                on ? hold->mode : LOCK_NONE);
    }
}

static void move_one(struct lock_table *table, const struct move *move, struct resource_path_cache *cache)
{
    shift_intentions(table, move->document, false);
    resource_move(&table->resources, move->document, move->path, cache);
    shift_intentions(table, move->document, true);
}

/* --- Many documents ----------------------------------------------------------------------------------------------- */

/* A lock on a document that moves. Its position in the array, from 1 on, is the time of its move. */
struct moved_lock {
    struct lock_hold *hold;
    const struct move *move;
    size_t next; /* position of the next lock of its owner; 0: none */
};

struct moved_owner {
    struct lock_owner *owner;
    size_t first, last; /* positions of its locks */
};

/* What the moves change of one owner's intention locks on a resource. */
struct shift {
    struct resource *resource;
    uint32_t removed[3], added[3];
    size_t last_removal, first_addition; /* positions of locks; 0: none */
    bool begins;                         /* with `first_addition` */
};

/* A hold that begins with the move of a lock. */
struct beginning {
    struct lock_owner *owner;
    struct resource *resource;
    uint32_t below[3];
    size_t at;    /* position of the lock */
    size_t order; /* among those with this lock, the deepest first */
};

/* A batch of moves, each of another document. */
struct batch {
    struct lock_table *table;
    struct moved_lock *locks;
    size_t lock_count, lock_capacity;
    struct moved_owner *owners;
    size_t owner_count, owner_capacity;
    struct shift *shifts; /* of one owner: each after that of its parent; resource->scratch is its position from 1 on */
    size_t shift_count, shift_capacity;
    struct beginning *beginnings;
    size_t beginning_count, beginning_capacity;
};

static void *grow_array(void *items, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity ? *capacity * 2 : 16;
    return mem_realloc(items, *capacity * size);
}

/* Adds a lock to those of its owner. */
static void add_to_owner(struct batch *batch, size_t position)
{
    struct lock_owner *owner = batch->locks[position - 1].hold->owner;
    size_t at = owner->index; /* scratch: of an owner that is not in the array, it says nothing */
    if (at < batch->owner_count && batch->owners[at].owner == owner) {
        batch->locks[batch->owners[at].last - 1].next = position;
        batch->owners[at].last = position;
        return;
    }
    owner->index = batch->owner_count;
    batch->owners = grow_array(batch->owners, batch->owner_count, &batch->owner_capacity, sizeof *batch->owners);
    batch->owners[batch->owner_count++] = (struct moved_owner){owner, position, position};
}

static void add_locks(struct batch *batch, const struct move *move)
{
    list_for_each(link, &move->document->holds)
    {
        struct lock_hold *hold = list_entry(link, struct lock_hold, of_resource);
        REQUIRE(hold->mode != LOCK_NONE);
        batch->table->work++;
        lock__chunk_touch(batch->table, hold->chunk); /* the piece names the directory */
        batch->locks = grow_array(batch->locks, batch->lock_count, &batch->lock_capacity, sizeof *batch->locks);
        batch->locks[batch->lock_count++] = (struct moved_lock){hold, move, 0};
        add_to_owner(batch, batch->lock_count);
    }
}

static struct shift *shift_of(const struct batch *batch, const struct resource *resource)
{
    REQUIRE(resource->scratch > 0 && resource->scratch <= batch->shift_count);
    return &batch->shifts[resource->scratch - 1];
}

/* Adds a directory and its ancestors to the shifts, as far as they are not there. */
static void open_shifts(struct batch *batch, struct resource *directory)
{
    size_t first = batch->shift_count;
    for (struct resource *at = directory; at != NULL && at->scratch == 0; at = at->parent) {
        batch->shifts = grow_array(batch->shifts, batch->shift_count, &batch->shift_capacity, sizeof *batch->shifts);
        batch->shifts[batch->shift_count++] = (struct shift){.resource = at};
        at->scratch = 1; /* and the position below */
    }
    for (size_t i = first, j = batch->shift_count; i + 1 < j; i++) { /* the deepest was added first */
        struct resource *below = batch->shifts[i].resource;
        batch->shifts[i].resource = batch->shifts[--j].resource;
        batch->shifts[j].resource = below;
    }
    for (size_t i = first; i < batch->shift_count; i++)
        batch->shifts[i].resource->scratch = (uint32_t)(i + 1);
}

/* Finds what the moves change of an owner's intention locks: first where its documents are, then above. */
static void find_shifts(struct batch *batch, const struct moved_owner *owner)
{
    REQUIRE(batch->shift_count == 0);
    for (size_t at = owner->first; at != 0; at = batch->locks[at - 1].next) {
        const struct moved_lock *lock = &batch->locks[at - 1];
        size_t mode = lock->hold->mode - LOCK_S;
        open_shifts(batch, lock->move->before);
        open_shifts(batch, lock->move->document->parent);
        struct shift *from = shift_of(batch, lock->move->before);
        struct shift *to = shift_of(batch, lock->move->document->parent);
        from->removed[mode]++;
        from->last_removal = at;
        to->added[mode]++;
        to->first_addition = to->first_addition != 0 ? to->first_addition : at;
    }
    for (size_t i = batch->shift_count; i-- > 0;) {
        const struct shift *shift = &batch->shifts[i];
        batch->table->work++;
        if (shift->resource->parent == NULL)
            continue;
        struct shift *above = shift_of(batch, shift->resource->parent);
        INSIST(above < shift);
        for (size_t mode = 0; mode < 3; mode++) {
            above->removed[mode] += shift->removed[mode];
            above->added[mode] += shift->added[mode];
        }
        above->last_removal = shift->last_removal > above->last_removal ? shift->last_removal : above->last_removal;
        if (above->first_addition == 0 || (shift->first_addition != 0 && shift->first_addition < above->first_addition))
            above->first_addition = shift->first_addition;
    }
}

/*
 * Changes the hold of an owner, which ends if the owner has nothing there before the first lock comes, as with single
 * moves. It is made again later, among others that begin.
 */
static void apply_shift(struct lock_table *table, struct lock_owner *owner, struct shift *shift)
{
    struct lock_hold *hold = lock__hold_find(table, owner, shift->resource);
    if (hold == NULL) {
        INSIST(shift->last_removal == 0 && shift->first_addition != 0);
        shift->begins = true;
        return;
    }
    bool empty = hold->mode == LOCK_NONE;
    for (size_t mode = 0; mode < 3; mode++) {
        INSIST(hold->below[mode] >= shift->removed[mode]); /* invariant 2 */
        hold->below[mode] -= shift->removed[mode];
        empty &= hold->below[mode] == 0;
    }
    shift->begins = empty && shift->first_addition != 0 && shift->last_removal <= shift->first_addition;
    for (size_t mode = 0; mode < 3 && !shift->begins; mode++)
        hold->below[mode] += shift->added[mode];
    lock__hold_update(table, hold);
}

/* Finds the holds of an owner that begin, in the order in which single moves make them. */
static void find_beginnings(struct batch *batch, const struct moved_owner *owner)
{
    for (size_t at = owner->first; at != 0; at = batch->locks[at - 1].next) {
        struct resource *resource = batch->locks[at - 1].move->document->parent;
        /* A lock that has reached a resource has reached all above it. */
        for (size_t order = 0; resource != NULL; resource = resource->parent, order++) {
            const struct shift *shift = shift_of(batch, resource);
            if (shift->first_addition != at)
                break;
            if (!shift->begins)
                continue;
            struct beginning begins = {owner->owner, resource, {0}, at, order};
            memcpy(begins.below, shift->added, sizeof begins.below);
            batch->beginnings = grow_array(batch->beginnings, batch->beginning_count, &batch->beginning_capacity,
                                           sizeof *batch->beginnings);
            batch->beginnings[batch->beginning_count++] = begins;
        }
    }
}

static void shift_owner(struct batch *batch, const struct moved_owner *owner)
{
    find_shifts(batch, owner);
    for (size_t i = 0; i < batch->shift_count; i++)
        apply_shift(batch->table, owner->owner, &batch->shifts[i]);
    find_beginnings(batch, owner);
    for (size_t i = 0; i < batch->shift_count; i++)
        batch->shifts[i].resource->scratch = 0;
    batch->shift_count = 0;
}

static int compare_beginnings(const void *left, const void *right)
{
    const struct beginning *a = left, *b = right;
    return a->at != b->at ? (a->at < b->at ? -1 : 1) : (a->order > b->order) - (a->order < b->order);
}

static void begin_holds(struct batch *batch)
{
    if (batch->owner_count > 1 && batch->beginning_count > 1) /* those of one owner are in order */
        qsort(batch->beginnings, batch->beginning_count, sizeof *batch->beginnings, compare_beginnings);
    for (size_t i = 0; i < batch->beginning_count; i++) {
        const struct beginning *begins = &batch->beginnings[i];
        struct lock_hold *hold = lock__hold_open(batch->table, begins->owner, begins->resource);
        INSIST(hold->bits == 0); /* it is new */
        batch->table->work++;
        memcpy(hold->below, begins->below, sizeof hold->below);
        lock__hold_update(batch->table, hold);
    }
}

/* Moves documents, each once, and their locks. */
static void move_batch(struct lock_table *table, struct move *moves, size_t count, struct resource_path_cache *cache)
{
    REQUIRE(table->grants_suspended > 0 && !table->resources.keeps_size);
    struct batch batch = {.table = table};
    table->resources.keeps_size = true; /* holds that end begin again as a rule */
    for (size_t i = 0; i < count; i++)
        add_locks(&batch, &moves[i]);
    for (size_t i = 0; i < count; i++) {
        moves[i].before = resource_ref(moves[i].document->parent);
        resource_move(&table->resources, moves[i].document, moves[i].path, cache);
    }
    for (size_t i = 0; i < batch.owner_count; i++)
        shift_owner(&batch, &batch.owners[i]);
    begin_holds(&batch);
    for (size_t i = 0; i < count; i++)
        resource_unref(&table->resources, moves[i].before);
    table->resources.keeps_size = false;
    resource_table_shrink(&table->resources);
    lock__holds_shrink(table);
    mem_free(batch.locks);
    mem_free(batch.owners);
    mem_free(batch.shifts);
    mem_free(batch.beginnings);
}

/* Moves documents in batches in which each is once. */
static void move_documents(struct lock_table *table, struct move *moves, size_t count)
{
    struct resource_path_cache cache = RESOURCE_PATH_CACHE_INIT; /* neighbours have most of their levels in common */
    for (size_t first = 0, end; first < count; first = end) {
        resource_new_epoch(&table->resources);
        for (end = first; end < count && resource_visit(&table->resources, moves[end].document, LOCK_BIT_X); end++)
            ;
        if (end - first == 1)
            move_one(table, &moves[first], &cache);
        else
            move_batch(table, moves + first, end - first, &cache);
    }
}

/*
 * Moves documents, and releases the references to them. A request that waits for many of them leaves its queues once,
 * and enters those of its new directories once. The state is that of single moves: README-locks.md, "Moves of
 * documents".
 * Returns: how many locks the requests ask for that have moved.
 */
static size_t move_all(struct lock_table *table, struct move *moves, size_t count)
{
    REQUIRE(count == 1 || table->grants_suspended > 0);
    size_t asked = 0;
    struct taken taken = take_all_waiters(moves, count);
    move_documents(table, moves, count);
    for (size_t i = 0; i < taken.count; i++) {
        struct lock_request *request = taken.items[i];
        asked += request->spec_count;
        lock__request_expand(request);
        lock__queue_enter(request);
        lock__queue_schedule(request);
        if (table->hooks.request_moved != NULL)
            table->hooks.request_moved(table->hooks.context, request);
    }
    lock__cycle_break(table, taken.items, taken.count);
    /* The moved intention locks block other requests than before. */
    for (size_t i = 0; i < count; i++)
        list_for_each(link, &moves[i].document->holds)
            lock__queue_check_waits(table, list_entry(link, struct lock_hold, of_resource)->owner);
    lock__queue_process_wakeups(table);
    for (size_t i = 0; i < count; i++)
        resource_unref(&table->resources, moves[i].document);
    mem_free(taken.items);
    return asked;
}

void lock_table_move_document(struct lock_table *table, const struct resource_name *name, struct slice path)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC) && name->id.data != NULL);
    /* Also if the table is idle: a granted request whose lock was released can refer to it. */
    struct resource *document = lock__find_resource(table, name);
    if (document != NULL)
        (void)move_all(table, &(struct move){resource_ref(document), NULL, path}, 1);
}

size_t lock_table_move_documents(struct lock_table *table, const struct resource_name *names, size_t count)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC) && table->grants_suspended > 0);
    tl_cleanup(mem_freep) struct move *moves = mem_alloc((count + 1) * sizeof *moves);
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        REQUIRE(names[i].id.data != NULL);
        struct resource *document = lock__find_resource(table, &names[i]);
        if (document != NULL)
            moves[found++] = (struct move){resource_ref(document), NULL, names[i].path};
    }
    return found == 0 ? 0 : move_all(table, moves, found);
}

size_t lock_table_relocate_documents(struct lock_table *table, const struct resource_name *names, size_t count)
{
    REQUIRE(MAGIC_VALID(table, LOCK_TABLE_MAGIC) && table->grants_suspended > 0);
    tl_cleanup(mem_freep) struct move *moves = mem_alloc((count + 1) * sizeof *moves);
    struct place_check check = {NULL, SLICE_NONE, false};
    size_t found = 0;
    resource_new_epoch(&table->resources);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(names[i].id.data != NULL);
        struct resource *document = lock__find_resource(table, &names[i]);
        if (document != NULL && !is_at(table, document, &names[i], &check) &&
            resource_visit(&table->resources, document, LOCK_BIT_X))
            moves[found++] = (struct move){resource_ref(document), NULL, names[i].path};
    }
    return found == 0 ? 0 : move_all(table, moves, found);
}
