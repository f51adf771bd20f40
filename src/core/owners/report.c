/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator may want to know: waits that last, told once when they have become slow and once more when they end;
 * deadlocks and expiries. Looking changes nothing, so it is no part of the state and may happen at any time between two
 * steps.
 */
#include <inttypes.h>

#include "core/locks/lock.h"
#include "core/owners/owners.h"
#include "core/owners/lock_event.h"
#include "core/owners/wait.h"
#include "core/step/core.h"
#include "core/step/unit.h"

enum { LINES_MAX = 20 }; /* of a kind, told in one look; more are counted */

/* "12.3 s", in tenths. */
static void print_seconds(uint64_t us, struct buf *line)
{
    buf_printf(line, "%" PRIu64 ".%" PRIu64 " s", us / TL_SECOND, us % TL_SECOND / (TL_SECOND / 10));
}

/* The first thing that is asked for, and how many more. */
static void print_wanted(const struct lock_request *request, struct buf *line)
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

static void print_conflict(struct lock_request *request, struct buf *line)
{
    struct lock_conflict conflict;
    if (lock_request_conflicts(request, &conflict, 1) == 0)
        return;
    buf_lit(line, ", ");
    describe_resource(conflict.resource, line);
    buf_printf(line, " is %s ", conflict.waiting ? "awaited by" : "held by");
    describe_owner(conflict.owner, line);
}

static void tell_waiting(struct wait *wait, uint64_t now, struct buf *lines)
{
    describe_owner(wait->owner, lines);
    buf_lit(lines, " has waited ");
    print_seconds(now - wait->since, lines);
    buf_lit(lines, " for ");
    print_wanted(wait->request, lines);
    print_conflict(wait->request, lines);
    buf_byte(lines, '\n');
}

void wait__report_end(struct core *core, const struct wait *wait)
{
    struct buf *lines = &core->owners->finished_slow_waits;
    if (!wait->reported || wait->request == NULL)
        return;
    if (core->owners->finished_slow_wait_count++ >= LINES_MAX)
        return;
    bool granted = lock_request_state(wait->request) == LOCK_STATE_GRANTED;
    describe_owner(wait->owner, lines);
    buf_printf(lines, granted ? " was granted " : " gave up waiting for ");
    print_wanted(wait->request, lines);
    buf_lit(lines, " after ");
    print_seconds(core->clock - wait->since, lines);
    buf_byte(lines, '\n');
}

static void tell_ended(struct owners *owners, struct buf *lines)
{
    buf_slice(lines, buf_as_slice(&owners->finished_slow_waits));
    if (owners->finished_slow_wait_count > LINES_MAX)
        buf_printf(lines, "%zu more slow waits have ended\n", owners->finished_slow_wait_count - LINES_MAX);
    buf_clear(&owners->finished_slow_waits);
    owners->finished_slow_wait_count = 0;
}

static void tell_slow(struct owners *owners, uint64_t now, uint64_t slow_us, struct buf *lines)
{
    size_t told = 0;
    list_for_each(link, &owners->waits)
    {
        struct wait *wait = list_entry(link, struct wait, of_all);
        if (wait->since + slow_us > now)
            break; /* the others came later */
        if (wait->reported || wait->ready || wait->command == NULL)
            continue;
        wait->reported = true;
        if (told++ < LINES_MAX)
            tell_waiting(wait, now, lines);
    }
    if (told > LINES_MAX)
        buf_printf(lines, "%zu more have waited as long\n", told - LINES_MAX);
}

/* A story in one line. */
static void tell_story(const struct lock_event *story, struct buf *lines)
{
    buf_printf(lines, "%s: ", story->kind);
    for (struct slice left = slice_make(story->lines, story->lines_len); left.len > 0;) {
        size_t len = slice_find_byte(left, '\n');
        buf_slice(lines, slice_make(left.data, len));
        left = slice_from_offset(left, len + 1);
        if (left.len > 0)
            buf_lit(lines, "; ");
    }
    buf_byte(lines, '\n');
}

static void tell_stories(struct owners *owners, struct buf *lines)
{
    const struct lock_events *stories = &owners->lock_events;
    size_t fresh = stories->count - owners->events_reported;
    size_t skipped = fresh > LINES_MAX ? fresh - LINES_MAX : 0;
    if (skipped > 0)
        buf_printf(lines, "%zu deadlocks and expiries more than are told here\n", skipped);
    for (size_t i = stories->count - fresh + skipped; i < stories->count; i++)
        tell_story(&stories->ring[i % LOCK_EVENTS_MAX], lines);
    owners->events_reported = stories->count;
}

void core_report(struct core *core, uint64_t clock, uint64_t slow_us, struct buf *lines)
{
    tell_stories(core->owners, lines);
    tell_ended(core->owners, lines);
    tell_slow(core->owners, clock, slow_us, lines);
}
