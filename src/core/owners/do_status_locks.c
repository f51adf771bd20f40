/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STATUS_LOCKS: the tree of resources with holders and waiters, in pieces.
 *
 * To tell of hundreds of thousands of locks takes seconds, in which nobody else would get his turn. So each command tells what
 * LOOK_STEPS allow and says where the next one goes on. A resource is told with all who hold and await it as of the moment of one
 * command; but for a crowded one, which is told in pieces itself.
 *
 * - Places are buckets of the table of resources, counted with their bits read backwards. The table grows by doubling, which parts
 *   each bucket into two that follow one another in this order: however much it grows between two pieces, what is there all
 *   the time is told exactly once.
 * - Rows come in no order; each has a key, and sorted by it they stand in the order of the tree (resource_compare()).
 */
#include <inttypes.h>

#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/owners/deadline.h"
#include "core/owners/owners.h"
#include "core/owners/party.h"
#include "core/owners/session.h"
#include "core/owners/status.h"
#include "core/owners/story.h"
#include "core/owners/wait.h"
#include "core/step/command.h"
#include "core/step/unit.h"

struct wait;
enum {
    LOOK_STEPS = 10000,  /* of one piece: some milliseconds; the row that goes beyond is the last */
    OWNER_STEPS = 4,     /* to write one holder or waiter */
    CROWD_MIN = 1000,    /* more than these at one resource are told by pieces of as many */
    WAITS_FOR_MAX = 100, /* of one queue: those of whom it is told who is in their way */
};

struct look {
    struct core *core;
    struct status_command *status;
    struct arena *arena; /* the command's */
    size_t row_capacity;
    size_t crowd_capacity;
};

/* --- What was asked about ----------------------------------------------------------------------------------------- */

/* Whether a resource lies in the index, and in or above the directory, that was asked about. */
static bool resource_wanted(const struct status_command *status, const struct resource *resource, struct arena *arena)
{
    if (status->index.len == 0 && status->path.data == NULL)
        return true;
    struct resource_name name = resource_name(resource, arena);
    if (name.space != RESOURCE_SPACE_TREE)
        return status->path.data == NULL;
    if (status->index.len > 0 && name.index.len > 0 && !slice_equal(name.index, status->index))
        return false;
    if (status->path.data == NULL || name.path.data == NULL)
        return true;
    struct resource_path asked = resource_path(status->path), has = resource_path(name.path);
    struct slice a, b;
    for (;;) {
        bool more_asked = resource_path_next(&asked, &a);
        bool more_has = resource_path_next(&has, &b);
        if (!more_asked || !more_has)
            return true;
        if (!slice_equal(a, b))
            return false;
    }
}

static bool owner_wanted(const struct status_command *status, const struct lock_owner *owner)
{
    const struct session *session = party_of(owner)->session;
    uint64_t number;
    if (status->session.len == 0)
        return true;
    return session != NULL && (slice_equal(session->id, status->session) ||
                               (slice_to_u64(status->session, &number) && number == session_number(session)));
}

/* --- One resource ------------------------------------------------------------------------------------------------- */

/* Those at a resource are counted, holders first; the ones from `from` to before `end` are told. */
struct window {
    size_t at;
    size_t from;
    size_t end;
};

/* Returns: whether the next one is to be told. */
static bool window_takes(struct window *window)
{
    size_t at = window->at++;
    return at >= window->from && at < window->end;
}

static void write_holders(struct look *look, const struct resource *resource, struct window *window, struct buf *buf)
{
    list_for_each(link, &resource->holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_resource);
        if (window->at >= window->end)
            return;
        if (!window_takes(window) || hold->mode == LOCK_NONE || !owner_wanted(look->status, hold->owner))
            continue;
        buf_slice(buf, buf->len > 0 ? SLICE_LIT(",{") : SLICE_LIT("{"));
        story_owner_json(hold->owner, buf);
        buf_printf(buf, ",\"mode\":\"%s\",\"since\":%" PRIu64 ",\"fencing_token\":%" PRIu64 "}",
                   lock_mode_name(hold->mode), hold->since, hold->token);
        look->status->steps += OWNER_STEPS;
    }
}

/* Who is in the way is looked up, at some cost, for those at the front. */
static void write_waits_for(struct look *look, struct wait *wait, struct buf *buf)
{
    struct lock_conflict conflict;
    if (lock_request_conflicts(wait->request, &conflict, 1) == 0)
        return;
    look->status->steps += conflict.owner->lock_count;
    buf_lit(buf, ",\"waits_for\":");
    story_conflict_json(&conflict, buf);
}

static void write_waiters(struct look *look, const struct resource *resource, struct window *window, struct buf *buf)
{
    struct lock_waiters waiters = lock_waiters(resource);
    const struct lock_request *request;
    enum lock_mode mode;
    for (size_t place = 0; window->at < window->end && lock_waiters_next(&waiters, &request, &mode); place++) {
        struct wait *wait = lock_request_user(request);
        if (!window_takes(window) || !owner_wanted(look->status, wait->owner))
            continue;
        buf_slice(buf, buf->len > 0 ? SLICE_LIT(",{") : SLICE_LIT("{"));
        story_owner_json(wait->owner, buf);
        buf_printf(buf, ",\"mode\":\"%s\",\"since\":%" PRIu64, lock_mode_name(mode), wait->since_ts);
        if (wait->until < TL_TS_MAX)
            buf_printf(buf, ",\"deadline\":%" PRIu64, deadline_ts(look->core, wait->until));
        buf_printf(buf, ",\"upgrade\":%s", lock_request_upgrade(request) ? "true" : "false");
        if (place < WAITS_FOR_MAX)
            write_waits_for(look, wait, buf);
        buf_byte(buf, '}');
        look->status->steps += OWNER_STEPS;
    }
}

/* No byte of a text is taken for its end, and a text stands before what goes on from it. */
static void put_text(struct buf *key, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        buf_byte(key, bytes[i]);
        if (bytes[i] == '\0')
            buf_byte(key, (char)0xff);
    }
    buf_lit(key, "\0\1");
}

static void write_key(struct look *look, const struct resource *resource, struct buf *key)
{
    size_t depth = 0;
    for (const struct resource *at = resource; at->parent != NULL; at = at->parent)
        depth++;
    const struct resource **chain = arena_alloc(&look->core->arena, depth * sizeof *chain);
    for (size_t i = depth; i > 0; resource = resource->parent)
        chain[--i] = resource;
    for (size_t i = 0; i < depth; i++) {
        buf_byte(key, (char)chain[i]->kind);
        put_text(key, chain[i]->name, chain[i]->type_len);
        put_text(key, chain[i]->name + chain[i]->type_len, chain[i]->name_len - chain[i]->type_len);
    }
    look->status->steps += depth + key->len / 16;
}

static struct slice keep(struct look *look, struct buf *buf)
{
    struct slice text = arena_copy(look->arena, buf_view(buf));
    buf_deinit(buf);
    return text;
}

/* Adds a row, unless none of those asked about holds or awaits it. */
static void tell(struct look *look, const struct resource *resource, struct window *window)
{
    struct status_command *status = look->status;
    struct buf holders = BUF_INIT(BUF_UNLIMITED), waiters = BUF_INIT(BUF_UNLIMITED), key = BUF_INIT(BUF_UNLIMITED),
               name = BUF_INIT(BUF_UNLIMITED);
    write_holders(look, resource, window, &holders);
    write_waiters(look, resource, window, &waiters);
    status->steps += window->at;
    if (holders.len + waiters.len > 0) {
        write_key(look, resource, &key);
        story_resource_json(resource, &name);
        status->rows =
            arena_grow(look->arena, status->rows, status->row_count, &look->row_capacity, sizeof *status->rows);
        status->rows[status->row_count++] =
            (struct status_row){keep(look, &key), keep(look, &name), keep(look, &holders), keep(look, &waiters)};
    }
    buf_deinit(&holders);
    buf_deinit(&waiters);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static size_t count_at(const struct resource *resource)
{
    size_t count = lock_resource_waiting(resource);
    for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++)
        count += resource->held[bit];
    return count;
}

static void meet(struct look *look, const struct resource *resource)
{
    struct status_command *status = look->status;
    status->steps++;
    if (!lock_resource_taken(resource) || !resource_wanted(status, resource, &look->core->arena))
        return;
    if (count_at(resource) <= CROWD_MIN) {
        tell(look, resource, &(struct window){0, 0, SIZE_MAX});
        return;
    }
    status->crowds =
        arena_grow(look->arena, status->crowds, status->crowd_count, &look->crowd_capacity, sizeof *status->crowds);
    status->crowds[status->crowd_count++] = (struct status_crowd){resource->hash, resource->number, 0};
}

static uint64_t reverse_bits(uint64_t bits)
{
    uint64_t reversed = 0;
    for (int i = 0; i < 64; i++)
        reversed |= (bits >> i & 1) << (63 - i);
    return reversed;
}

static uint64_t place_after(uint64_t place, uint64_t mask)
{
    return reverse_bits(reverse_bits(place | ~mask) + 1);
}

static void tell_places(struct look *look, const struct resource_table *table)
{
    struct status_command *status = look->status;
    uint64_t mask = table->bucket_count - 1;
    if (status->place == 0)
        meet(look, table->root);
    do {
        for (const struct resource *at = table->buckets[status->place & mask]; at != NULL; at = at->chain)
            meet(look, at);
        status->steps++;
        status->place = place_after(status->place, mask);
    } while (status->place != 0 && status->steps < LOOK_STEPS);
}

static const struct resource *find_crowd(const struct resource_table *table, const struct status_crowd *crowd)
{
    if (crowd->number == table->root->number)
        return table->root;
    const struct resource *at = table->buckets[crowd->hash & (table->bucket_count - 1)];
    while (at != NULL && (at->number != crowd->number || at->hash != crowd->hash))
        at = at->chain;
    return at;
}

/* One that has emptied meanwhile is told with whoever is left. */
static void tell_crowd(struct look *look, const struct resource_table *table)
{
    struct status_crowd *crowd = &look->status->crowd;
    const struct resource *resource = find_crowd(table, crowd);
    struct window window = {0, crowd->from, crowd->from + CROWD_MIN};
    if (resource != NULL)
        tell(look, resource, &window);
    crowd->from = window.end;
    if (window.at < window.end)
        crowd->number = 0;
}

void status__locks(struct core *core, struct command *command)
{
    struct look look = {.core = core, .status = &command->status, .arena = &command->arena};
    command->status.steps = 0;
    if (command->status.crowd.number != 0)
        tell_crowd(&look, &core->owners->locks.resources);
    else
        tell_places(&look, &core->owners->locks.resources);
}
