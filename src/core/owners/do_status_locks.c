/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STATUS_LOCKS and STATUS_OVERVIEW: the resources that are locked or requested, with their owners.
 *
 * STATUS_LOCKS is paged, since to list hundreds of thousands of locks takes seconds. One command
 * does PAGE_WORK_MAX work and returns a cursor for the next page. A resource is listed with all of
 * its holders and waiters, as of one page; one with more than OVERFLOW_MIN of them is paged itself.
 *
 * - A cursor is the number of a bucket of the resource table, with its bits in reverse order. The
 *   table grows by doubling, which splits each bucket into two that are neighbors in that order. So
 *   a resource that exists during all pages is listed exactly once, however much the table grows.
 * - Rows are in no order. Each has a key; sorted by it they are in tree order (resource_compare()).
 *
 * STATUS_OVERVIEW is for clients that poll: some hundreds of rows, in one step that takes as long
 * as one page. It lists the resources of waiting requests, longest wait first, then those that
 * transactions and sessions hold, oldest first. It walks over waits and owners, not over the
 * resource table.
 */
#include <inttypes.h>

#include "base/check.h"
#include "base/map.h"
#include "core/locks/lock.h"
#include "core/locks/resource.h"
#include "core/session/deadline.h"
#include "core/wait/lock_history.h"
#include "core/session/owners.h"
#include "core/session/owner.h"
#include "core/session/session.h"
#include "core/owners/status.h"
#include "core/wait/lock_event.h"
#include "core/session/txn.h"
#include "core/wait/wait.h"
#include "core/command/command.h"
#include "core/unit/unit.h"

enum {
    PAGE_WORK_MAX = 10000,    /* work of one page: some milliseconds; exceeded by its last row only */
    OWNER_WORK = 4,           /* to write one holder or waiter */
    OVERFLOW_MIN = 1000,      /* holders and waiters of one row; more are paged */
    WAITS_FOR_MAX = 100,      /* waiters of one queue that are listed with "waits_for" */
    OVERVIEW_OWNERS_MAX = 50, /* holders, and waiters, of one resource in STATUS_OVERVIEW */
};

struct lock_scan {
    struct core *core;
    struct status_command *status;
    struct arena *arena; /* the command's */
    size_t row_capacity;
    size_t overflow_capacity;
};

/* --- Filters ------------------------------------------------------------------------------------------------------ */

/* Whether a resource is in the requested index, and in or above the requested directory. */
static bool resource_matches(const struct status_command *status, const struct resource *resource, struct arena *arena)
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
    struct resource_path wanted = resource_path(status->path), has = resource_path(name.path);
    struct slice a, b;
    for (;;) {
        bool more_wanted = resource_path_next(&wanted, &a);
        bool more_has = resource_path_next(&has, &b);
        if (!more_wanted || !more_has)
            return true;
        if (!slice_equal(a, b))
            return false;
    }
}

/* Whether an owner is the requested session, or belongs to it. */
static bool owner_matches(const struct status_command *status, const struct lock_owner *owner)
{
    const struct session *session = owner_of(owner)->session;
    uint64_t number;
    if (status->session.len == 0)
        return true;
    return session != NULL && (slice_equal(session->id, status->session) ||
                               (slice_to_u64(status->session, &number) && number == session_number(session)));
}

/* --- One resource ------------------------------------------------------------------------------------------------- */

/* The range of owners of one resource that is written, [from, end); holders first, then waiters. */
struct window {
    size_t at;
    size_t from;
    size_t end;
};

/* Counts an owner. Returns: whether it is in the range. */
static bool window_takes(struct window *window)
{
    REQUIRE(window->from <= window->end && window->at < window->end);
    size_t at = window->at++;
    return at >= window->from && at < window->end;
}

static void write_holders(struct lock_scan *scan, const struct resource *resource, struct window *window,
                          struct buf *buf)
{
    list_for_each(link, &resource->holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_resource);
        if (window->at >= window->end)
            return;
        if (!window_takes(window) || hold->mode == LOCK_NONE || !owner_matches(scan->status, hold->owner) ||
            (scan->status->as_of != 0 && hold->recorded_from > scan->status->as_of))
            continue;
        buf_slice(buf, buf->len > 0 ? SLICE_LIT(",{") : SLICE_LIT("{"));
        describe_owner_json(hold->owner, buf);
        scan->status->work += OWNER_WORK;
        if (scan->status->as_of != 0) {
            buf_printf(buf, ",\"mode\":\"%s\",\"since\":%" PRIu64 "}", lock_mode_name(hold->mode), hold->since);
            continue;
        }
        buf_printf(buf, ",\"mode\":\"%s\",\"since\":%" PRIu64 ",\"fencing_token\":%" PRIu64 "}",
                   lock_mode_name(hold->mode), hold->since, hold->token);
    }
}

/*
 * Writes the first owner that blocks a request. The search is costly, so only the front of a queue
 * has it.
 */
static void write_waits_for(struct lock_scan *scan, struct wait *wait, struct buf *buf)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC) && wait->request != NULL);
    struct lock_conflict conflict;
    if (lock_request_conflicts(wait->request, &conflict, 1) == 0)
        return;
    scan->status->work += conflict.owner->lock_count;
    buf_lit(buf, ",\"waits_for\":");
    describe_conflict_json(&conflict, buf);
}

static void write_waiters(struct lock_scan *scan, const struct resource *resource, struct window *window,
                          struct buf *buf)
{
    struct lock_waiter_iter waiters = lock_waiter_iter(resource);
    const struct lock_request *request;
    enum lock_mode mode;
    for (size_t position = 0; window->at < window->end && lock_waiter_iter_next(&waiters, &request, &mode);
         position++) {
        struct wait *wait = lock_request_user(request);
        INSIST(wait__state(wait) == WAIT_PARKED && wait->request == request); /* a queued request waits */
        if (!window_takes(window) || !owner_matches(scan->status, wait->owner) ||
            (scan->status->as_of != 0 && wait->since_ts > scan->status->as_of))
            continue;
        buf_slice(buf, buf->len > 0 ? SLICE_LIT(",{") : SLICE_LIT("{"));
        describe_owner_json(wait->owner, buf);
        buf_printf(buf, ",\"mode\":\"%s\",\"since\":%" PRIu64, lock_mode_name(mode), wait->since_ts);
        if (scan->status->as_of != 0) {
            buf_byte(buf, '}');
            scan->status->work += OWNER_WORK;
            continue;
        }
        if (wait->until < TL_TS_MAX)
            buf_printf(buf, ",\"deadline\":%" PRIu64, deadline_ts(scan->core, wait->until));
        buf_printf(buf, ",\"upgrade\":%s", lock_request_is_upgrade(request) ? "true" : "false");
        if (position < WAITS_FOR_MAX)
            write_waits_for(scan, wait, buf);
        buf_byte(buf, '}');
        scan->status->work += OWNER_WORK;
    }
}

/* Moves a text to the command's arena. */
static struct slice take_text(struct lock_scan *scan, struct buf *buf)
{
    struct slice text = arena_copy(scan->arena, buf_as_slice(buf));
    buf_deinit(buf);
    return text;
}

/* Adds a row, unless no owner matches. Owns: `holders` and `waiters` are freed. */
static void add_row(struct lock_scan *scan, const struct resource *resource, struct buf *holders, struct buf *waiters,
                    bool cut)
{
    struct status_command *status = scan->status;
    struct buf key = BUF_INIT(BUF_UNLIMITED), name = BUF_INIT(BUF_UNLIMITED);
    if (holders->len + waiters->len > 0) {
        describe_resource_key(resource, &key);
        status->work += 1 + key.len / 16;
        describe_resource_json(resource, &name);
        status->rows =
            arena_grow(scan->arena, status->rows, status->row_count, &scan->row_capacity, sizeof *status->rows);
        status->rows[status->row_count++] = (struct status_row){
            take_text(scan, &key), take_text(scan, &name), take_text(scan, holders), take_text(scan, waiters), cut};
    }
    buf_deinit(holders);
    buf_deinit(waiters);
}

/* Adds the row of a resource, with the owners in the window. */
static void write_resource(struct lock_scan *scan, const struct resource *resource, struct window *window)
{
    struct buf holders = BUF_INIT(BUF_UNLIMITED), waiters = BUF_INIT(BUF_UNLIMITED);
    write_holders(scan, resource, window, &holders);
    write_waiters(scan, resource, window, &waiters);
    scan->status->work += window->at;
    add_row(scan, resource, &holders, &waiters, false);
}

/* --- STATUS_LOCKS ------------------------------------------------------------------------------------------------- */

static size_t owner_count(const struct resource *resource)
{
    size_t count = lock_resource_waiter_count(resource);
    for (size_t bit = 0; bit < LOCK_BIT_COUNT; bit++)
        count += resource->held[bit];
    return count;
}

/* Adds a resource of the table, or schedules it to be paged itself. */
static void visit_resource(struct lock_scan *scan, const struct resource *resource)
{
    struct status_command *status = scan->status;
    status->work++;
    if (!lock_resource_is_in_use(resource) || !resource_matches(status, resource, &scan->core->arena))
        return;
    if (owner_count(resource) <= OVERFLOW_MIN) {
        write_resource(scan, resource, &(struct window){0, 0, SIZE_MAX});
        return;
    }
    status->overflows = arena_grow(scan->arena, status->overflows, status->overflow_count, &scan->overflow_capacity,
                                   sizeof *status->overflows);
    status->overflows[status->overflow_count++] = (struct status_overflow){resource->hash, resource->number, 0};
}

static uint64_t reverse_bits(uint64_t bits)
{
    uint64_t reversed = 0;
    for (int i = 0; i < 64; i++)
        reversed |= (bits >> i & 1) << (63 - i);
    return reversed;
}

/* Increments a cursor from its highest bit in the table; 0 after the last bucket. */
static uint64_t cursor_after(uint64_t cursor, uint64_t mask)
{
    return reverse_bits(reverse_bits(cursor | ~mask) + 1);
}

static void scan_buckets(struct lock_scan *scan, const struct resource_table *table)
{
    REQUIRE(table->bucket_count > 0 && (table->bucket_count & (table->bucket_count - 1)) == 0);
    struct status_command *status = scan->status;
    uint64_t mask = table->bucket_count - 1;
    if (status->cursor == 0)
        visit_resource(scan, table->root);
    do {
        /* A table that has shrunk since the last page has resources of it in the bucket of the next ones. */
        for (const struct resource *at = table->buckets[status->cursor & mask]; at != NULL; at = at->chain)
            if (reverse_bits(at->hash) >= reverse_bits(status->cursor))
                visit_resource(scan, at);
        status->work++;
        status->cursor = cursor_after(status->cursor, mask);
    } while (status->cursor != 0 && status->work < PAGE_WORK_MAX);
}

/* Returns: the resource; NULL: it no longer exists. */
static const struct resource *find_overflow(const struct resource_table *table, const struct status_overflow *overflow)
{
    REQUIRE(overflow->number != 0);
    if (overflow->number == table->root->number)
        return table->root;
    const struct resource *at = table->buckets[overflow->hash & (table->bucket_count - 1)];
    while (at != NULL && (at->number != overflow->number || at->hash != overflow->hash))
        at = at->chain;
    return at;
}

/* Writes the next page of a resource with many owners; fewer of them may be left by now. */
static void write_overflow(struct lock_scan *scan, const struct resource_table *table)
{
    struct status_overflow *overflow = &scan->status->overflow;
    const struct resource *resource = find_overflow(table, overflow);
    struct window window = {0, overflow->from, overflow->from + OVERFLOW_MIN};
    if (resource != NULL)
        write_resource(scan, resource, &window);
    overflow->from = window.end;
    if (window.at < window.end)
        overflow->number = 0;
}

/*
 * Writes the intervals that contain `as_of` and have ended since, in rows with one owner each.
 * Intervals that were evicted are missing; status->history_from says from when the history is
 * complete.
 */
static void write_history(struct lock_scan *scan, const struct lock_history *history)
{
    REQUIRE(scan->status->as_of != 0);
    struct status_command *status = scan->status;
    uint64_t number =
        status->history_cursor != 0 ? status->history_cursor - 1 : lock_history_find(history, status->as_of);
    for (number = number < history->first ? history->first : number;
         number < history->next && status->work < PAGE_WORK_MAX; number++) {
        const struct lock_history_interval *interval = lock_history_get(history, number);
        const char *name = interval->text + interval->key_bytes, *owner_text = name + interval->name_bytes;
        status->work++;
        if (interval->from > status->as_of)
            continue;
        struct slice owner = arena_copy(scan->arena, slice_make(owner_text, interval->owner_bytes));
        status->rows =
            arena_grow(scan->arena, status->rows, status->row_count, &scan->row_capacity, sizeof *status->rows);
        status->rows[status->row_count++] =
            (struct status_row){arena_copy(scan->arena, slice_make(interval->text, interval->key_bytes)),
                                arena_copy(scan->arena, slice_make(name, interval->name_bytes)),
                                interval->waiting ? SLICE_NONE : owner, interval->waiting ? owner : SLICE_NONE, false};
        status->work += OWNER_WORK;
    }
    status->history_cursor = number < history->next ? number + 1 : 0;
}

void status__locks(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_STATUS && command->status.what == STATUS_LOCKS);
    struct lock_scan scan = {.core = core, .status = &command->status, .arena = &command->arena};
    command->status.work = 0;
    command->status.history_from = core->owners->lock_history.complete_from;
    if (command->status.of_history)
        write_history(&scan, &core->owners->lock_history);
    else if (command->status.overflow.number != 0)
        write_overflow(&scan, &core->owners->locks.resources);
    else
        scan_buckets(&scan, &core->owners->locks.resources);
}

/* --- STATUS_OVERVIEW ---------------------------------------------------------------------------------------------- */

struct overview {
    struct lock_scan scan;
    struct map written; /* set of resources, by hash and number */
};

/* Returns: whether another row may be added. */
static bool overview_has_capacity(const struct overview *overview)
{
    return overview->scan.status->row_count < overview->scan.status->rows_max &&
           overview->scan.status->work < PAGE_WORK_MAX;
}

static void overview_add(struct overview *overview, const struct resource *resource)
{
    struct lock_scan *scan = &overview->scan;
    struct buf holders = BUF_INIT(BUF_UNLIMITED), waiters = BUF_INIT(BUF_UNLIMITED);
    struct window held = {0, 0, OVERVIEW_OWNERS_MAX}, waiting = {0, 0, OVERVIEW_OWNERS_MAX};
    const uint32_t identity[] = {resource->hash, resource->number};
    scan->status->work++;
    if (map_put(&overview->written, slice_make(identity, sizeof identity), scan) != NULL)
        return;
    write_holders(scan, resource, &held, &holders);
    write_waiters(scan, resource, &waiting, &waiters);
    scan->status->work += held.at + waiting.at;
    add_row(scan, resource, &holders, &waiters, held.at == OVERVIEW_OWNERS_MAX || waiting.at == OVERVIEW_OWNERS_MAX);
}

/* Adds the requested resources, and the first one that blocks the request, above or below them. */
static void overview_add_wait(struct overview *overview, struct wait *wait)
{
    const struct resource *resource;
    struct lock_conflict conflict;
    enum lock_mode mode;
    size_t position = 0;
    if (wait->ready || lock_request_state(wait->request) != LOCK_STATE_WAITING)
        return;
    while (overview_has_capacity(overview) && lock_request_spec(wait->request, &position, &resource, &mode))
        overview_add(overview, resource);
    if (lock_request_conflicts(wait->request, &conflict, 1) == 0)
        return;
    overview->scan.status->work += conflict.owner->lock_count;
    if (overview_has_capacity(overview))
        overview_add(overview, conflict.resource);
}

static void overview_add_holds(struct overview *overview, const struct lock_owner *owner)
{
    list_for_each(link, &owner->holds)
    {
        const struct lock_hold *hold = list_entry(link, struct lock_hold, of_owner);
        if (!overview_has_capacity(overview))
            return;
        overview->scan.status->work++;
        if (hold->mode != LOCK_NONE && !hold->auxiliary)
            overview_add(overview, hold->resource);
    }
}

void status__overview(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_STATUS && command->status.what == STATUS_OVERVIEW);
    struct overview overview = {{.core = core, .status = &command->status, .arena = &command->arena}, MAP_INIT};
    size_t position = 0;
    struct slice id;
    void *session;
    command->status.work = 0;
    list_for_each(link, &core->owners->waits)
    {
        if (!overview_has_capacity(&overview))
            break;
        command->status.work++;
        overview_add_wait(&overview, list_entry(link, struct wait, of_all));
    }
    list_for_each(link, &core->owners->open_txns)
    {
        if (!overview_has_capacity(&overview))
            break;
        command->status.work++;
        overview_add_holds(&overview, &list_entry(link, struct txn, of_all)->owner.locks);
    }
    while (overview_has_capacity(&overview) && map_next(&core->owners->sessions, &position, &id, &session)) {
        command->status.work++;
        overview_add_holds(&overview, &((const struct session *)session)->owner.locks);
    }
    map_deinit(&overview.written);
}
