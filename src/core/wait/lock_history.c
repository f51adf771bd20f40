/* SPDX-License-Identifier: Apache-2.0 */
/* The history of locks; see lock_history.h. */
#include "core/wait/lock_history.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/check.h"
#include "core/locks/resource.h"
#include "core/session/owner.h"
#include "core/wait/lock_event.h"
#include "core/wait/wait.h"
#include "core/command/command.h"

void lock_history_deinit(struct lock_history *history)
{
    while (history->first < history->next)
        mem_free(history->ring[history->first++ % LOCK_HISTORY_INTERVALS_MAX]);
    mem_free(history->ring);
    *history = (struct lock_history){0};
}

static size_t bytes_of(const struct lock_history_interval *interval)
{
    return sizeof *interval + interval->key_bytes + interval->name_bytes + interval->owner_bytes;
}

static void evict_oldest(struct lock_history *history)
{
    REQUIRE(history->first < history->next);
    struct lock_history_interval *interval = history->ring[history->first++ % LOCK_HISTORY_INTERVALS_MAX];
    INSIST(history->bytes >= bytes_of(interval) && interval->to >= history->complete_from);
    history->bytes -= bytes_of(interval);
    history->complete_from = interval->to;
    mem_free(interval);
}

/* Whether an interval that ends now is recorded. Counts it for LOCK_HISTORY_PER_TS_MAX. */
static bool is_recorded(struct lock_history *history, tl_ts from, tl_ts now)
{
    if (now < from || now - from < LOCK_HISTORY_MIN_US)
        return false;
    history->newest_end_count = history->newest_end_ts == now ? history->newest_end_count + 1 : 1;
    history->newest_end_ts = now;
    return history->newest_end_count <= LOCK_HISTORY_PER_TS_MAX && history->step_bytes < LOCK_HISTORY_STEP_BYTES;
}

void lock_history_begin_step(struct lock_history *history)
{
    REQUIRE(history->first <= history->next);
    history->step_bytes = 0;
}

/* Appends an interval with the times of `as`; evicts the oldest to stay within both limits. */
static void record_interval(struct lock_history *history, const struct resource *resource,
                            const struct lock_history_interval *as, struct slice owner)
{
    REQUIRE(history->first == history->next || lock_history_get(history, history->next - 1)->to <= as->to);
    REQUIRE(as->from <= as->to);
    struct buf key = BUF_INIT(BUF_UNLIMITED), name = BUF_INIT(BUF_UNLIMITED);
    describe_resource_key(resource, &key);
    describe_resource_json(resource, &name);
    struct lock_history_interval *interval = mem_alloc(sizeof *interval + key.len + name.len + owner.len);
    *interval = *as;
    interval->key_bytes = key.len;
    interval->name_bytes = name.len;
    interval->owner_bytes = owner.len;
    if (key.len > 0)
        memcpy(interval->text, key.data, key.len);
    if (name.len > 0)
        memcpy(interval->text + key.len, name.data, name.len);
    memcpy(interval->text + key.len + name.len, owner.data, owner.len);
    buf_deinit(&key);
    buf_deinit(&name);
    if (history->ring == NULL)
        history->ring = mem_zalloc(LOCK_HISTORY_INTERVALS_MAX * sizeof *history->ring);
    INSIST(history->next - history->first <= LOCK_HISTORY_INTERVALS_MAX);
    if (history->next - history->first == LOCK_HISTORY_INTERVALS_MAX)
        evict_oldest(history);
    history->ring[history->next++ % LOCK_HISTORY_INTERVALS_MAX] = interval;
    history->bytes += bytes_of(interval);
    history->step_bytes += bytes_of(interval);
    while (history->bytes > LOCK_HISTORY_BYTES_MAX)
        evict_oldest(history);
    ENSURE((history->first == history->next) == (history->bytes == 0));
}

void lock_history_record_hold(struct lock_history *history, const struct lock_hold *hold, bool gone, tl_ts now)
{
    enum lock_mode mode =
        (enum lock_mode)(hold->recorded_mode != LOCK_NONE || !gone ? hold->recorded_mode : hold->mode);
    /* An autocommit write holds locks only while it runs. */
    if (mode == LOCK_NONE || (!gone && mode == hold->mode) || hold->auxiliary ||
        owner_of(hold->owner)->kind == OWNER_WRITE || !is_recorded(history, hold->recorded_from, now))
        return;
    struct buf owner = BUF_INIT(BUF_UNLIMITED);
    const struct lock_history_interval as = {.from = hold->recorded_from, .to = now};
    buf_byte(&owner, '{');
    describe_owner_json(hold->owner, &owner);
    buf_printf(&owner, ",\"mode\":\"%s\",\"since\":%" PRIu64 "}", lock_mode_name(mode), hold->since);
    record_interval(history, hold->resource, &as, buf_as_slice(&owner));
    buf_deinit(&owner);
}

void lock_history_record_wait(struct lock_history *history, const struct wait *wait, tl_ts now)
{
    REQUIRE(MAGIC_VALID(wait, WAIT_MAGIC));
    const struct lock_history_interval as = {.from = wait->since_ts, .to = now, .waiting = true};
    const struct resource *resource;
    enum lock_mode mode;
    size_t position = 0;
    if (wait->request == NULL)
        return;
    while (lock_request_spec(wait->request, &position, &resource, &mode)) {
        struct buf owner = BUF_INIT(BUF_UNLIMITED);
        if (!is_recorded(history, wait->since_ts, now))
            return;
        buf_byte(&owner, '{');
        describe_owner_json(wait->owner, &owner);
        buf_printf(&owner, ",\"mode\":\"%s\",\"since\":%" PRIu64 "}", lock_mode_name(mode), wait->since_ts);
        record_interval(history, resource, &as, buf_as_slice(&owner));
        buf_deinit(&owner);
    }
}

uint64_t lock_history_find(const struct lock_history *history, tl_ts ts)
{
    uint64_t low = history->first, high = history->next;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (lock_history_get(history, middle)->to > ts)
            high = middle;
        else
            low = middle + 1;
    }
    ENSURE(low == history->next || lock_history_get(history, low)->to > ts);
    ENSURE(low == history->first || lock_history_get(history, low - 1)->to <= ts); /* in order of their ends */
    return low;
}
