/* SPDX-License-Identifier: Apache-2.0 */
/* What was held and awaited; see lock_history.h. */
#include "core/owners/lock_history.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "core/locks/resource.h"
#include "core/owners/owner.h"
#include "core/owners/lock_event.h"
#include "core/owners/wait.h"
#include "core/step/command.h"

void lock_history_deinit(struct lock_history *past)
{
    while (past->first < past->next)
        mem_free(past->ring[past->first++ % LOCK_HISTORY_INTERVALS_MAX]);
    mem_free(past->ring);
    *past = (struct lock_history){0};
}

static size_t bytes_of(const struct lock_history_interval *interval)
{
    return sizeof *interval + interval->key_bytes + interval->name_bytes + interval->who_bytes;
}

static void let_go_of_first(struct lock_history *past)
{
    struct lock_history_interval *interval = past->ring[past->first++ % LOCK_HISTORY_INTERVALS_MAX];
    past->bytes -= bytes_of(interval);
    past->complete_from = interval->to;
    mem_free(interval);
}

/* Whether one is to be kept. */
static bool counts(struct lock_history *past, tl_ts from, tl_ts now)
{
    if (now < from || now - from < LOCK_HISTORY_MIN_US)
        return false;
    past->at_once = past->at_once_ts == now ? past->at_once + 1 : 1;
    past->at_once_ts = now;
    return past->at_once <= LOCK_HISTORY_PER_TS_MAX;
}

static void keep(struct lock_history *past, const struct resource *resource, const struct lock_history_interval *as, struct slice who)
{
    struct buf key = BUF_INIT(BUF_UNLIMITED), name = BUF_INIT(BUF_UNLIMITED);
    describe_resource_key(resource, &key);
    describe_resource_json(resource, &name);
    struct lock_history_interval *interval = mem_alloc(sizeof *interval + key.len + name.len + who.len);
    *interval = *as;
    interval->key_bytes = key.len;
    interval->name_bytes = name.len;
    interval->who_bytes = who.len;
    if (key.len > 0)
        memcpy(interval->text, key.data, key.len);
    if (name.len > 0)
        memcpy(interval->text + key.len, name.data, name.len);
    memcpy(interval->text + key.len + name.len, who.data, who.len);
    buf_deinit(&key);
    buf_deinit(&name);
    if (past->ring == NULL)
        past->ring = mem_zalloc(LOCK_HISTORY_INTERVALS_MAX * sizeof *past->ring);
    if (past->next - past->first == LOCK_HISTORY_INTERVALS_MAX)
        let_go_of_first(past);
    past->ring[past->next++ % LOCK_HISTORY_INTERVALS_MAX] = interval;
    past->bytes += bytes_of(interval);
    while (past->bytes > LOCK_HISTORY_BYTES_MAX)
        let_go_of_first(past);
}

void lock_history_record_hold(struct lock_history *past, const struct lock_hold *hold, bool gone, tl_ts now)
{
    enum lock_mode mode = (enum lock_mode)(hold->recorded_mode != LOCK_NONE || !gone ? hold->recorded_mode : hold->mode);
    /* What a write of its own holds it holds while it is done, and no longer. */
    if (mode == LOCK_NONE || (!gone && mode == hold->mode) || hold->auxiliary || owner_of(hold->owner)->kind == OWNER_WRITE ||
        !counts(past, hold->recorded_from, now))
        return;
    struct buf who = BUF_INIT(BUF_UNLIMITED);
    const struct lock_history_interval as = {.from = hold->recorded_from, .to = now};
    buf_byte(&who, '{');
    describe_owner_json(hold->owner, &who);
    buf_printf(&who, ",\"mode\":\"%s\",\"since\":%" PRIu64 "}", lock_mode_name(mode), hold->since);
    keep(past, hold->resource, &as, buf_as_slice(&who));
    buf_deinit(&who);
}

void lock_history_record_wait(struct lock_history *past, const struct wait *wait, tl_ts now)
{
    const struct lock_history_interval as = {.from = wait->since_ts, .to = now, .awaited = true};
    const struct resource *resource;
    enum lock_mode mode;
    size_t position = 0;
    if (wait->request == NULL)
        return;
    while (lock_request_spec(wait->request, &position, &resource, &mode)) {
        struct buf who = BUF_INIT(BUF_UNLIMITED);
        if (!counts(past, wait->since_ts, now))
            return;
        buf_byte(&who, '{');
        describe_owner_json(wait->owner, &who);
        buf_printf(&who, ",\"mode\":\"%s\",\"since\":%" PRIu64 "}", lock_mode_name(mode), wait->since_ts);
        keep(past, resource, &as, buf_as_slice(&who));
        buf_deinit(&who);
    }
}

uint64_t lock_history_find(const struct lock_history *past, tl_ts ts)
{
    uint64_t low = past->first, high = past->next;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (lock_history_get(past, middle)->to > ts)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
