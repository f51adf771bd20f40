/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the changes of a unit and puts them as feed records; see feed.h. The FEED command. */
#include "core/feed/feed.h"

#include "base/check.h"
#include "base/map.h"
#include "core/feed/feed_record.h"
#include "core/command/command.h"
#include "core/unit/handler.h"
#include "core/unit/unit.h"

enum { BUFFER_KEPT_BYTES_MAX = 1 << 20, DOCUMENT_KEY_PREFIX = 6 };

int feed__open(struct core *core)
{
    struct feed *feed = &core->feed;
    int r = feed_read_state(core->store, &feed->off, &feed->from);

    feed->has_state = r == 0;
    feed->changes = BUF_INIT(BUF_UNLIMITED);
    return r < 0 ? tl_trace(r) : 0;
}

void feed__close(struct core *core)
{
    buf_deinit(&core->feed.changes);
}

/* --- Recording ---------------------------------------------------------------------------------------------------- */

void feed__record_change(struct core *core, const struct feed_change *change, bool again)
{
    struct feed *feed = &core->feed;

    REQUIRE(core->open);
    if (feed->off)
        return;
    feed->may_repeat |= again || (change->kind > FEED_DELETED && feed->count > 0);
    feed_change_put(&feed->changes, change);
    feed->count++;
}

void feed__record_document(struct core *core, bool deleted, struct slice key, bool again)
{
    const unsigned char *at = (const unsigned char *)key.data;

    REQUIRE(key.len >= DOCUMENT_KEY_PREFIX);
    REQUIRE(core->open);
    struct feed_change change = {
        .kind = deleted ? FEED_DELETED : FEED_WRITTEN,
        .index = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3],
        .type = (uint16_t)(at[4] << 8 | at[5]),
        .name = slice_from_offset(key, DOCUMENT_KEY_PREFIX),
    };
    feed__record_change(core, &change, again);
}

void feed__set_transaction(struct core *core, struct slice id)
{
    REQUIRE(core->open && id.len > 0);
    REQUIRE(core->feed.transaction.len == 0); /* a unit commits one at most */
    core->feed.transaction = arena_copy(&core->arena, id);
}

static void discard_changes(struct core *core)
{
    struct feed *feed = &core->feed;

    REQUIRE(core->open); /* at its end, or when it is rolled back */
    feed->count = 0;
    feed->may_repeat = false;
    feed->transaction = SLICE_NONE;
    if (feed->changes.capacity > BUFFER_KEPT_BYTES_MAX)
        buf_deinit(&feed->changes);
    else
        buf_clear(&feed->changes);
}

/* --- Putting ------------------------------------------------------------------------------------------------------ */

/*
 * Returns: the identity of what a change names: for a document its key, whether it was written or
 *   deleted; otherwise the whole change.
 */
static struct slice identity_of(const struct feed_change *change, struct slice bytes)
{
    return change->kind <= FEED_DELETED ? slice_from_offset(bytes, 1) : bytes;
}

/* Removes each change that a later one repeats. Renames all stay, in order. */
static void drop_repeats(struct feed *feed)
{
    struct map documents = MAP_INIT, others = MAP_INIT;
    struct slice all = buf_as_slice(&feed->changes), rest = all;
    struct buf kept = BUF_INIT(BUF_UNLIMITED);
    struct feed_change change;
    size_t count = 0;

    for (struct slice at = rest; feed_change_take(&rest, &change); at = rest) {
        struct slice bytes = slice_make(at.data, at.len - rest.len);
        map_put(change.kind <= FEED_DELETED ? &documents : &others, identity_of(&change, bytes),
                (void *)(uintptr_t)at.data);
    }
    rest = all;
    for (struct slice at = rest; feed_change_take(&rest, &change); at = rest) {
        struct slice bytes = slice_make(at.data, at.len - rest.len);
        const struct map *map = change.kind <= FEED_DELETED ? &documents : &others;
        if (change.kind != FEED_RENAMED && map_get(map, identity_of(&change, bytes)) != at.data)
            continue;
        buf_slice(&kept, bytes);
        count++;
    }
    INSIST(rest.len == 0 && count <= feed->count);
    map_deinit(&documents);
    map_deinit(&others);
    buf_deinit(&feed->changes);
    feed->changes = kept;
    feed->count = count;
}

static void put_state(struct core *core)
{
    REQUIRE(core->open);
    struct buf value = BUF_INIT(16);

    feed_state_put(&value, core->feed.off, core->feed.from);
    store_batch_put(core->batch, SPACE_SYSTEM, slice_from(feed_state_key), buf_as_slice(&value));
    buf_deinit(&value);
    core->feed.has_state = true;
}

/* Takes the changes of one record from the front of `rest`. */
static struct slice take_part(struct slice *rest)
{
    struct slice begin = *rest;
    struct feed_change change;

    for (int i = 0; i < FEED_RECORD_CHANGES && rest->len > 0; i++) {
        bool sound = feed_change_take(rest, &change);
        INSIST(sound);
    }
    return slice_make(begin.data, begin.len - rest->len);
}

static void put_records(struct core *core)
{
    REQUIRE(core->open && !core->feed.off);
    struct slice rest = buf_as_slice(&core->feed.changes);
    struct buf record = BUF_INIT(BUF_UNLIMITED);
    char key[FEED_KEY_BYTES];

    for (uint32_t part = 0; rest.len > 0; part++) {
        buf_clear(&record);
        feed_record_begin(&record, core->feed.transaction);
        buf_slice(&record, take_part(&rest));
        store_batch_put(core->batch, SPACE_FEED, feed_key(key, core->ts, part), buf_as_slice(&record));
    }
    buf_deinit(&record);
}

static void flush_changes(struct core *core)
{
    struct feed *feed = &core->feed;

    INSIST((feed->count > 0) == (feed->changes.len > 0));
    if (feed->may_repeat)
        drop_repeats(feed);
    if (!feed->has_state && store_batch_count(core->batch) > 0) { /* an empty store, or one of an older version */
        feed->from = core->last_ts;
        put_state(core);
    }
    if (feed->count > 0)
        put_records(core);
}

const struct unit_part feed__part = {.record = flush_changes, .rollback = discard_changes, .end = discard_changes};

/* --- The command -------------------------------------------------------------------------------------------------- */

/* Deletes all records up to a timestamp. */
static void trim_feed(struct core *core, tl_ts upto)
{
    REQUIRE(core->open && upto >= core->feed.from && upto < core->ts);
    char lower[FEED_KEY_BYTES], upper[FEED_KEY_BYTES];

    store_batch_delete_range(core->batch, SPACE_FEED, feed_key(lower, 0, 0), feed_key(upper, upto + 1, 0));
    core->feed.from = upto;
    put_state(core);
}

int core__do_feed(struct core *core, struct command *command)
{
    REQUIRE(command->type == COMMAND_FEED);
    const struct feed_command *params = &command->feed;
    struct feed *feed = &core->feed;
    tl_ts before = core->ts - 1; /* this unit changes no document */

    if (feed->off != params->off) {
        feed->off = params->off;
        trim_feed(core, before);
    } else if (!feed->off && feed->has_state && params->cut > feed->from && feed->from < before) {
        trim_feed(core, params->cut < before ? params->cut : before);
    }
    return 0;
}
