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
 * STATUS_OVERVIEW is for who looks again and again, at some hundreds of rows of however many: those that somebody waits for, the longest wait
 * first, then what sessions and transactions hold, the oldest first. It is one step, as long as a piece, however many locks there are: it is
 * found by walking over who waits and who holds, and not over the table.
 *
 * - Rows come in no order; each has a key, and sorted by it they stand in the order of the tree (resource_compare()).
 */
#include <inttypes.h>

#include "base/map.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/owners/deadline.h"
#include "core/owners/lock_history.h"
#include "core/owners/owners.h"
#include "core/owners/owner.h"
#include "core/owners/session.h"
#include "core/owners/status.h"
#include "core/owners/lock_event.h"
#include "core/owners/txn.h"
#include "core/owners/wait.h"
#include "core/step/command.h"
#include "core/step/unit.h"

struct wait;
enum {
    LOOK_STEPS = 10000,  /* of one piece: some milliseconds; the row that goes beyond is the last */
    OWNER_STEPS = 4,     /* to write one holder or waiter */
    CROWD_MIN = 1000,    /* more than these at one resource are told by pieces of as many */
    WAITS_FOR_MAX = 100, /* of one queue: those of whom it is told who is in their way */
    GLANCE_EACH = 50,    /* holders, and waiters, that a glance tells of one resource */
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
    const struct session *session = owner_of(owner)->session;
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
        if (!window_takes(window) || hold->mode == LOCK_NONE || !owner_wanted(look->status, hold->owner) ||
            (look->status->as_of != 0 && hold->recorded_from > look->status->as_of))
            continue;
        buf_slice(buf, buf->len > 0 ? SLICE_LIT(",{") : SLICE_LIT("{"));
        describe_owner_json(hold->owner, buf);
        look->status->work += OWNER_STEPS;
        if (look->status->as_of != 0) {
            buf_printf(buf, ",\"mode\":\"%s\",\"since\":%" PRIu64 "}", lock_mode_name(hold->mode), hold->since);
            continue;
        }
        buf_printf(buf, ",\"mode\":\"%s\",\"since\":%" PRIu64 ",\"fencing_token\":%" PRIu64 "}",
                   lock_mode_name(hold->mode), hold->since, hold->token);
    }
}

/* Who is in the way is looked up, at some cost, for those at the front. */
static void write_waits_for(struct look *look, struct wait *wait, struct buf *buf)
{
    struct lock_conflict conflict;
    if (lock_request_conflicts(wait->request, &conflict, 1) == 0)
        return;
    look->status->work += conflict.owner->lock_count;
    buf_lit(buf, ",\"waits_for\":");
    describe_conflict_json(&conflict, buf);
}

static void write_waiters(struct look *look, const struct resource *resource, struct window *window, struct buf *buf)
{
    struct lock_waiter_iter waiters = lock_waiter_iter(resource);
    const struct lock_request *request;
    enum lock_mode mode;
    for (size_t place = 0; window->at < window->end && lock_waiter_iter_next(&waiters, &request, &mode); place++) {
        struct wait *wait = lock_request_user(request);
        if (!window_takes(window) || !owner_wanted(look->status, wait->owner) ||
            (look->status->as_of != 0 && wait->since_ts > look->status->as_of))
            continue;
        buf_slice(buf, buf->len > 0 ? SLICE_LIT(",{") : SLICE_LIT("{"));
        describe_owner_json(wait->owner, buf);
        buf_printf(buf, ",\"mode\":\"%s\",\"since\":%" PRIu64, lock_mode_name(mode), wait->since_ts);
        if (look->status->as_of != 0) {
            buf_byte(buf, '}');
            look->status->work += OWNER_STEPS;
            continue;
        }
        if (wait->until < TL_TS_MAX)
            buf_printf(buf, ",\"deadline\":%" PRIu64, deadline_ts(look->core, wait->until));
        buf_printf(buf, ",\"upgrade\":%s", lock_request_is_upgrade(request) ? "true" : "false");
        if (place < WAITS_FOR_MAX)
            write_waits_for(look, wait, buf);
        buf_byte(buf, '}');
        look->status->work += OWNER_STEPS;
    }
}

static struct slice keep(struct look *look, struct buf *buf)
{
    struct slice text = arena_copy(look->arena, buf_as_slice(buf));
    buf_deinit(buf);
    return text;
}

/* Adds a row, unless none of those asked about holds or awaits it. The texts are taken. */
static void add_row(struct look *look, const struct resource *resource, struct buf *holders, struct buf *waiters,
                    bool cut)
{
    struct status_command *status = look->status;
    struct buf key = BUF_INIT(BUF_UNLIMITED), name = BUF_INIT(BUF_UNLIMITED);
    if (holders->len + waiters->len > 0) {
        describe_resource_key(resource, &key);
        status->work += 1 + key.len / 16;
        describe_resource_json(resource, &name);
        status->rows =
            arena_grow(look->arena, status->rows, status->row_count, &look->row_capacity, sizeof *status->rows);
        status->rows[status->row_count++] =
            (struct status_row){keep(look, &key), keep(look, &name), keep(look, holders), keep(look, waiters), cut};
    }
    buf_deinit(holders);
    buf_deinit(waiters);
}

static void tell(struct look *look, const struct resource *resource, struct window *window)
{
    struct buf holders = BUF_INIT(BUF_UNLIMITED), waiters = BUF_INIT(BUF_UNLIMITED);
    write_holders(look, resource, window, &holders);
    write_waiters(look, resource, window, &waiters);
    look->status->work += window->at;
    add_row(look, resource, &holders, &waiters, false);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static size_t count_at(const struct resource *resource)
{
    size_t count = lock_resource_waiter_count(resource);
    for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++)
        count += resource->held[bit];
    return count;
}

static void meet(struct look *look, const struct resource *resource)
{
    struct status_command *status = look->status;
    status->work++;
    if (!lock_resource_is_in_use(resource) || !resource_wanted(status, resource, &look->core->arena))
        return;
    if (count_at(resource) <= CROWD_MIN) {
        tell(look, resource, &(struct window){0, 0, SIZE_MAX});
        return;
    }
    status->overflows =
        arena_grow(look->arena, status->overflows, status->overflow_count, &look->crowd_capacity, sizeof *status->overflows);
    status->overflows[status->overflow_count++] = (struct status_overflow){resource->hash, resource->number, 0};
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
    if (status->cursor == 0)
        meet(look, table->root);
    do {
        for (const struct resource *at = table->buckets[status->cursor & mask]; at != NULL; at = at->chain)
            meet(look, at);
        status->work++;
        status->cursor = place_after(status->cursor, mask);
    } while (status->cursor != 0 && status->work < LOOK_STEPS);
}

static const struct resource *find_crowd(const struct resource_table *table, const struct status_overflow *crowd)
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
    struct status_overflow *crowd = &look->status->overflow;
    const struct resource *resource = find_crowd(table, crowd);
    struct window window = {0, crowd->from, crowd->from + CROWD_MIN};
    if (resource != NULL)
        tell(look, resource, &window);
    crowd->from = window.end;
    if (window.at < window.end)
        crowd->number = 0;
}

/* What has gone since; its rows have one holder or waiter each. What was let go of before this piece is missing, and `past_from` says so. */
static void tell_past(struct look *look, const struct lock_history *past)
{
    struct status_command *status = look->status;
    uint64_t number = status->history_cursor != 0 ? status->history_cursor - 1 : lock_history_find(past, status->as_of);
    for (number = number < past->first ? past->first : number; number < past->next && status->work < LOOK_STEPS;
         number++) {
        const struct lock_history_interval *interval = lock_history_get(past, number);
        const char *name = interval->text + interval->key_bytes, *who = name + interval->name_bytes;
        status->work++;
        if (interval->from > status->as_of)
            continue;
        struct slice owner = arena_copy(look->arena, slice_make(who, interval->who_bytes));
        status->rows =
            arena_grow(look->arena, status->rows, status->row_count, &look->row_capacity, sizeof *status->rows);
        status->rows[status->row_count++] =
            (struct status_row){arena_copy(look->arena, slice_make(interval->text, interval->key_bytes)),
                                arena_copy(look->arena, slice_make(name, interval->name_bytes)),
                                interval->awaited ? SLICE_NONE : owner, interval->awaited ? owner : SLICE_NONE, false};
        status->work += OWNER_STEPS;
    }
    status->history_cursor = number < past->next ? number + 1 : 0;
}

void status__locks(struct core *core, struct command *command)
{
    struct look look = {.core = core, .status = &command->status, .arena = &command->arena};
    command->status.work = 0;
    command->status.history_from = core->owners->lock_history.complete_from;
    if (command->status.of_history)
        tell_past(&look, &core->owners->lock_history);
    else if (command->status.overflow.number != 0)
        tell_crowd(&look, &core->owners->locks.resources);
    else
        tell_places(&look, &core->owners->locks.resources);
}

/* --- A glance ----------------------------------------------------------------------------------------------------- */

struct glance {
    struct look look;
    struct map told; /* resources, by hash and number */
};

/* Returns: whether there is to be more. */
static bool glance_goes_on(const struct glance *glance)
{
    return glance->look.status->row_count < glance->look.status->rows_max && glance->look.status->work < LOOK_STEPS;
}

static void glance_at(struct glance *glance, const struct resource *resource)
{
    struct look *look = &glance->look;
    struct buf holders = BUF_INIT(BUF_UNLIMITED), waiters = BUF_INIT(BUF_UNLIMITED);
    struct window held = {0, 0, GLANCE_EACH}, awaited = {0, 0, GLANCE_EACH};
    const uint32_t which[] = {resource->hash, resource->number};
    look->status->work++;
    if (map_put(&glance->told, slice_make(which, sizeof which), look) != NULL)
        return;
    write_holders(look, resource, &held, &holders);
    write_waiters(look, resource, &awaited, &waiters);
    look->status->work += held.at + awaited.at;
    add_row(look, resource, &holders, &waiters, held.at == GLANCE_EACH || awaited.at == GLANCE_EACH);
}

/* What is asked for, and what is held against that, which may lie above or below. */
static void glance_at_wait(struct glance *glance, struct wait *wait)
{
    const struct resource *resource;
    struct lock_conflict conflict;
    enum lock_mode mode;
    size_t position = 0;
    if (wait->ready || lock_request_state(wait->request) != LOCK_STATE_WAITING)
        return;
    while (glance_goes_on(glance) && lock_request_spec(wait->request, &position, &resource, &mode))
        glance_at(glance, resource);
    if (lock_request_conflicts(wait->request, &conflict, 1) == 0)
        return;
    glance->look.status->work += conflict.owner->lock_count;
    if (glance_goes_on(glance))
        glance_at(glance, conflict.resource);
}

static void glance_at_holds(struct glance *glance, const struct lock_owner *owner)
{
    list_for_each(link, &owner->holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
        if (!glance_goes_on(glance))
            return;
        glance->look.status->work++;
        if (hold->mode != LOCK_NONE && !hold->auxiliary)
            glance_at(glance, hold->resource);
    }
}

void status__glance(struct core *core, struct command *command)
{
    struct glance glance = {{.core = core, .status = &command->status, .arena = &command->arena}, MAP_INIT};
    size_t position = 0;
    struct slice id;
    void *session;
    command->status.work = 0;
    list_for_each(link, &core->owners->waits)
    {
        if (!glance_goes_on(&glance))
            break;
        command->status.work++;
        glance_at_wait(&glance, list_entry(link, struct wait, of_all));
    }
    list_for_each(link, &core->owners->open_txns)
    {
        if (!glance_goes_on(&glance))
            break;
        command->status.work++;
        glance_at_holds(&glance, &list_entry(link, struct txn, of_all)->owner.locks);
    }
    while (glance_goes_on(&glance) && map_next(&core->owners->sessions, &position, &id, &session)) {
        command->status.work++;
        glance_at_holds(&glance, &((const struct session *)session)->owner.locks);
    }
    map_deinit(&glance.told);
}
