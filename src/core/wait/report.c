/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines for the operator's log: slow waits, reported once when they become slow and once when they
 * finish; deadlocks and session expiries. A report changes no state, so it may be made between any
 * two steps.
 */
#include <inttypes.h>

#include "base/check.h"
#include "core/locks/lock.h"
#include "core/session/owners.h"
#include "core/wait/lock_event.h"
#include "core/wait/wait.h"
#include "core/step/core.h"
#include "core/unit/unit.h"

enum { LINES_MAX = 20 }; /* per kind and report; the others are only counted */

/* Appends "12.3 s". */
static void print_seconds(uint64_t us, struct buf *line)
{
    buf_printf(line, "%" PRIu64 ".%" PRIu64 " s", us / TL_SECOND, us % TL_SECOND / (TL_SECOND / 10));
}

/* Appends the first requested lock, and how many more there are. */
static void print_requested(const struct lock_request *request, struct buf *line)
{
    const struct resource *resource, *other;
    enum lock_mode mode, other_mode;
    size_t position = 0, more = 0;
    if (!lock_request_spec(request, &position, &resource, &mode))
        return;
    while (lock_request_spec(request, &position, &other, &other_mode))
        more++;
    buf_printf(line, "%s on ", lock_mode_name(mode));
    describe_resource(resource, line);
    if (more > 0)
        buf_printf(line, " and %zu more", more);
}

static void print_conflict(const struct core *core, struct lock_request *request, struct buf *line)
{
    struct lock_conflict conflict;
    if (lock_request_conflicts(request, &conflict, 1) == 0)
        return;
    buf_lit(line, ", ");
    describe_resource(conflict.resource, line);
    buf_printf(line, " is %s ", describe_relation(conflict.waiting, core));
    describe_owner(conflict.owner, core, line);
}

static void report_waiting(const struct core *core, struct wait *wait, uint64_t now, struct buf *lines)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC) && wait->request != NULL);
    describe_owner(wait->owner, core, lines);
    buf_lit(lines, " has waited ");
    print_seconds(now - wait->since, lines);
    buf_lit(lines, " for ");
    print_requested(wait->request, lines);
    print_conflict(core, wait->request, lines);
    buf_byte(lines, '\n');
}

void wait__report_end(struct core *core, const struct wait *wait)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC));
    struct buf *lines = &core->owners->finished_slow_waits;
    if (!wait->reported || wait->request == NULL)
        return;
    if (core->owners->finished_slow_wait_count++ >= LINES_MAX)
        return;
    bool granted = lock_request_state(wait->request) == LOCK_STATE_GRANTED;
    describe_owner(wait->owner, core, lines);
    buf_printf(lines, granted ? " was granted " : " gave up waiting for ");
    print_requested(wait->request, lines);
    buf_lit(lines, " after ");
    print_seconds(core->clock - wait->since, lines);
    buf_byte(lines, '\n');
}

static void report_finished(struct owners *owners, struct buf *lines)
{
    buf_slice(lines, buf_as_slice(&owners->finished_slow_waits));
    if (owners->finished_slow_wait_count > LINES_MAX)
        buf_printf(lines, "%zu more slow waits have ended\n", owners->finished_slow_wait_count - LINES_MAX);
    buf_clear(&owners->finished_slow_waits);
    owners->finished_slow_wait_count = 0;
}

static void report_slow(const struct core *core, uint64_t now, uint64_t slow_us, struct buf *lines)
{
    const struct owners *owners = core->owners;
    size_t slow_count = 0;
    list_for_each(link, &owners->waits)
    {
        struct wait *wait = list_entry(link, struct wait, of_all);
        INSIST(wait__state(wait) != WAIT_NEW);
        if (wait->since + slow_us > now) {
            if (wait->txn != NULL && wait->pending_items != NULL)
                continue; /* a later batch of a bulk, whose wait keeps its place in the list */
            break; /* the following ones began later */
        }
        if (wait->reported || wait->ready || wait->command == NULL || wait->granted_ts != 0)
            continue;
        wait->reported = true;
        if (slow_count++ < LINES_MAX)
            report_waiting(core, wait, now, lines);
    }
    if (slow_count > LINES_MAX)
        buf_printf(lines, "%zu more have waited as long\n", slow_count - LINES_MAX);
}

/* Appends a lock event in one line. */
static void report_event(const struct lock_event *event, struct buf *lines)
{
    buf_printf(lines, "%s: ", event->kind);
    for (struct slice left = slice_make(event->lines, event->lines_len); left.len > 0;) {
        size_t len = slice_find_byte(left, '\n');
        buf_slice(lines, slice_make(left.data, len));
        left = slice_from_offset(left, len + 1);
        if (left.len > 0)
            buf_lit(lines, "; ");
    }
    buf_byte(lines, '\n');
}

static void report_events(struct owners *owners, struct buf *lines)
{
    const struct lock_events *events = &owners->lock_events;
    INSIST(owners->events_reported <= events->count);
    size_t fresh = events->count - owners->events_reported;
    size_t skipped = fresh > LINES_MAX ? fresh - LINES_MAX : 0;
    if (skipped > 0)
        buf_printf(lines, "%zu more deadlocks and expiries are not listed here\n", skipped);
    for (size_t i = events->count - fresh + skipped; i < events->count; i++)
        report_event(&events->ring[i % LOCK_EVENTS_MAX], lines);
    owners->events_reported = events->count;
}

void core_report(struct core *core, uint64_t clock, uint64_t slow_us, struct buf *lines)
{
    REQUIRE(MAGIC_VALID(core, CORE_MAGIC) && core->effects == NULL); /* between steps */
    report_events(core->owners, lines);
    report_finished(core->owners, lines);
    report_slow(core, clock, slow_us, lines);
}
