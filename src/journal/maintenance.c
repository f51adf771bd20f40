/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maintenance, once a second: advances the history limit, purges what no reader can see, cuts the
 * feed, logs reports.
 */
#include "base/log.h"
#include "base/check.h"
#include "core/feed/feed.h"
#include "journal/cluster.h"
#include "journal/journal_internal.h"

enum { MAINTAIN_KEYS_MAX = 1000 /* per MAINTAIN, which then takes at most about 2 ms */ };

#define SLOW_WAIT_US TL_SECOND /* longer lock waits are logged */
/* Distance to the ceiling at which maintenance raises it. */
#define TS_CEILING_RENEW_US (2 * TL_SECOND)

void journal__load_ts_history(struct journal *journal)
{
    uint64_t now = journal__boot(journal) + TS_HISTORY_ORIGIN;
    uint64_t span = journal->history_us > CORE_OUTCOME_US ? journal->history_us : CORE_OUTCOME_US;
    span = journal->feed_us > span ? journal->feed_us : span;
    tl_ts last = core_last_ts(journal->core);
    tl_ts begun = last > 0 ? last : journal__wall(journal); /* an empty store has no history */
    struct slice kept = core_ts_ceiling_payload(journal->core);
    bool valid = ts_history_load(&journal->ts_history, span, now, begun, kept);
    /* This one begins in any case, too. */
    valid &= ts_history_load(&journal->ts_history_recent, 2 * CORE_TOMBSTONE_US, now, begun, kept);
    if (!valid)
        log_warning("the recorded clock of timestamps is invalid; the history limit is computed from timestamps alone");
}

/*
 * Records the newest timestamp. The history of an empty store begins at this host's clock; the entries
 * of a new cluster may be below that, if it is ahead of the others'. Then the history begins anew.
 * Requires: core_lock.
 */
static void record_ts(struct journal *journal, uint64_t now)
{
    REQUIRE(journal__holds(&journal->core_lock));
    if (core_last_ts(journal->core) < ts_history_newest(&journal->ts_history)) {
        ts_history_restart(&journal->ts_history, now + TS_HISTORY_ORIGIN, core_last_ts(journal->core));
        ts_history_restart(&journal->ts_history_recent, now + TS_HISTORY_ORIGIN, core_last_ts(journal->core));
    }
    ts_history_record(&journal->ts_history, now + TS_HISTORY_ORIGIN, core_last_ts(journal->core));
    ts_history_record(&journal->ts_history_recent, now + TS_HISTORY_ORIGIN, core_last_ts(journal->core));
}

/* Returns: the horizons before which the core may purge. Requires: core_lock. */
static struct core_horizons horizons_now(struct journal *journal, uint64_t now)
{
    REQUIRE(journal__holds(&journal->core_lock));
    return (struct core_horizons){
        .history_low = store_history_low(journal->store),
        .tombstones = ts_history_at(&journal->ts_history_recent, now + TS_HISTORY_ORIGIN, CORE_TOMBSTONE_US),
        .outcomes = ts_history_at(&journal->ts_history, now + TS_HISTORY_ORIGIN, CORE_OUTCOME_US)};
}

/*
 * Raises the history limit by the age of history, but not above a pin or the stable timestamp.
 * Requires: core_lock.
 */
static void advance_history(struct journal *journal, uint64_t now)
{
    REQUIRE(journal__holds(&journal->core_lock));
    tl_ts low = ts_history_at(&journal->ts_history, now + TS_HISTORY_ORIGIN, journal->history_us);
    pthread_mutex_lock(&journal->pin_lock);
    tl_ts pinned = pins_oldest(&journal->pins);
    low = low < pinned ? low : pinned;
    /* Current reads use the stable timestamp, even if maintenance has not run for long. */
    tl_ts stable = atomic_load_explicit(&journal->stable_ts, memory_order_acquire);
    low = low < stable ? low : stable;
    int r = low > store_history_low(journal->store) ? store_set_history_low(journal->store, low) : 0;
    pthread_mutex_unlock(&journal->pin_lock);
    if (r < 0)
        journal__store_failed("moving the history cut-off", r);
}

/* Logs the core's reports, such as slow lock waits. Requires: core_lock. */
static void report_core(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct buf lines = BUF_INIT(BUF_UNLIMITED);
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t clock = journal__command_clock(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    core_report(journal->core, clock, SLOW_WAIT_US, &lines);
    for (struct slice left = buf_as_slice(&lines); left.len > 0;) {
        size_t len = slice_find_byte(left, '\n');
        log_info("%.*s", (int)len, left.data);
        left = slice_from_offset(left, len + 1);
    }
    buf_deinit(&lines);
}

/* Requires: core_lock. */
static void set_maintain_at(struct journal *journal, uint64_t at)
{
    REQUIRE(journal__holds(&journal->core_lock));
    journal->maintain_at = at;
    pthread_mutex_lock(&journal->queue_lock);
    journal->wake_at = at;
    pthread_mutex_unlock(&journal->queue_lock);
}

/*
 * Applies a MAINTAIN, which purges what no reader can see. Returns: whether more is left to purge.
 * Requires: core_lock.
 */
static bool maintain_core(struct journal *journal, uint64_t now, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct core_horizons horizons = horizons_now(journal, now);
    struct command *command;
    int r = core_propose_maintenance(journal->core, &horizons, MAINTAIN_KEYS_MAX, &command);
    if (r < 0)
        journal__store_failed("upkeep", r);
    journal__apply(journal, command, group);
    bool more = command->maintain.removed >= MAINTAIN_KEYS_MAX || command->maintain.scanned >= MAINTAIN_KEYS_MAX;
    list_remove(&command->link); /* it has no submitter */
    command_free(command);
    return more;
}

/* --- The feed ----------------------------------------------------------------------------------------------------- */

/*
 * FEED_STEPS: a cut removes at least this fraction of the feed, since each cut writes.
 * FEED_HALVINGS limits the binary search. FEED_KEPT_BYTES limits the records that a cut for size
 * reads.
 */
enum { FEED_STEPS = 16, FEED_HALVINGS = 24, FEED_KEPT_BYTES = 1 << 20 };

static void apply_feed(struct journal *journal, bool off, tl_ts cut, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock) && (!off || cut == 0));
    struct command *command = command_new(COMMAND_FEED, DIALECT_7);
    command->on_done = journal__free_internal;
    command->feed = (struct feed_command){.off = off, .cut = cut};
    journal__apply(journal, command, group);
}

void journal__set_feed(struct journal *journal, bool off, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    bool is_off = false;
    tl_ts from;
    int r = feed_read_state(journal->store, &is_off, &from);
    if (r < 0)
        journal__store_failed("reading where the feed begins", r);
    if (is_off != off)
        apply_feed(journal, off, 0, group);
}

static uint64_t feed_bytes(struct journal *journal, tl_ts after)
{
    REQUIRE(after < TL_TS_MAX);
    char lower[FEED_KEY_BYTES], upper[FEED_KEY_BYTES];
    return store_range_bytes(journal->store, SPACE_FEED, feed_key(lower, after + 1, 0), feed_key(upper, TL_TS_MAX, 0));
}

/*
 * Returns: the timestamp beyond which a cut for size keeps all changes: the newest commit, and those
 *          before it that together take at most half of the limit (and FEED_KEPT_BYTES); `from`: all.
 *
 * The store's sizes are estimates of files, which may attribute a small feed as a whole to its
 * newest record. Counted exactly, a reader that is close to the end keeps its place.
 */
static tl_ts newest_kept(struct journal *journal, tl_ts from)
{
    uint64_t most = journal->feed_bytes_max / 2 < FEED_KEPT_BYTES ? journal->feed_bytes_max / 2 : FEED_KEPT_BYTES;
    uint64_t bytes = 0;
    tl_ts newest = 0, before = from;
    char lower[FEED_KEY_BYTES];
    struct store_iter *iter =
        store_iter_new(journal->store, SPACE_FEED, TL_TS_MAX, feed_key(lower, from + 1, 0), SLICE_NONE);
    for (store_iter_seek_last(iter); store_iter_valid(iter); store_iter_prev(iter)) {
        tl_ts ts;
        uint32_t part;
        if (!feed_key_parse(store_iter_key(iter), &ts, &part))
            break;
        newest = newest == 0 ? ts : newest;
        bytes += store_iter_key(iter).len + store_iter_value(iter).len;
        if (ts < newest && bytes > most) {
            before = ts;
            break;
        }
    }
    store_iter_free(iter);
    ENSURE(before >= from);
    return before;
}

/*
 * Returns: the timestamp to cut at so that the rest takes slightly less than its limit of bytes, as
 *          far as newest_kept() allows; `from`: nothing is to be cut.
 */
static tl_ts feed_cut_by_size(struct journal *journal, tl_ts from)
{
    uint64_t most = journal->feed_bytes_max - journal->feed_bytes_max / FEED_STEPS;
    if (feed_bytes(journal, from) <= journal->feed_bytes_max)
        return from;
    tl_ts low = from, high = newest_kept(journal, from);
    for (int i = 0; i < FEED_HALVINGS && low < high; i++) {
        tl_ts middle = low + (high - low) / 2;
        if (feed_bytes(journal, middle) > most)
            low = middle + 1;
        else
            high = middle;
    }
    ENSURE(high >= from);
    return high;
}

/*
 * Returns: whether the feed has anything up to a timestamp. Without this check an idle server would
 *          write cuts.
 */
static bool any_before(struct journal *journal, tl_ts cut)
{
    REQUIRE(cut < TL_TS_MAX);
    char upper[FEED_KEY_BYTES];
    struct store_iter *iter =
        store_iter_new(journal->store, SPACE_FEED, TL_TS_MAX, SLICE_NONE, feed_key(upper, cut + 1, 0));
    store_iter_seek_first(iter);
    bool any = store_iter_valid(iter);
    store_iter_free(iter);
    return any;
}

/*
 * Returns: the timestamp up to which the feed is too old or too large; 0: nothing to cut. Requires:
 *          core_lock.
 */
static tl_ts feed_cut(struct journal *journal, uint64_t now)
{
    REQUIRE(journal__holds(&journal->core_lock));
    bool off = false;
    tl_ts from = 0;
    int r = feed_read_state(journal->store, &off, &from);
    if (r < 0)
        journal__store_failed("reading where the feed begins", r);
    if (r != 0 || off)
        return 0;
    tl_ts old = ts_history_at(&journal->ts_history, now + TS_HISTORY_ORIGIN, journal->feed_us);
    tl_ts cut = feed_cut_by_size(journal, from);
    if (old > cut && old - from >= journal->feed_us / FEED_STEPS)
        cut = old;
    return cut > from && any_before(journal, cut) ? cut : 0;
}

/* Cuts the feed if that is due. Requires: core_lock. */
static void cut_feed(struct journal *journal, uint64_t now, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    tl_ts cut = feed_cut(journal, now);
    if (cut != 0)
        apply_feed(journal, false, cut, group);
}

/* Returns: the horizons, limited by the history limits of all live hosts. */
static struct core_horizons cluster_horizons(struct journal *journal, uint64_t now)
{
    REQUIRE(journal__holds(&journal->core_lock));
    struct core_horizons horizons = horizons_now(journal, now);
    pthread_mutex_lock(&journal->queue_lock);
    tl_ts low = journal->cluster->history_low_min;
    pthread_mutex_unlock(&journal->queue_lock);
    horizons.history_low = low < horizons.history_low ? low : horizons.history_low;
    return horizons;
}

static void propose_feed_cut(struct journal *journal, uint64_t now, struct list *proposed)
{
    REQUIRE(journal__holds(&journal->core_lock));
    tl_ts cut = feed_cut(journal, now);
    if (cut == 0)
        return;
    struct command *command = command_new(COMMAND_FEED, DIALECT_7);
    command->feed = (struct feed_command){.cut = cut};
    list_append(proposed, &command->link);
}

void journal__maintain_cluster(struct journal *journal, bool keeper, struct list *proposed)
{
    REQUIRE(journal__holds(&journal->core_lock));
    REQUIRE(journal->cluster != NULL);
    uint64_t now = journal__boot(journal);
    if (now < journal->maintain_at || !journal__is_ready(journal) || journal__is_paused(journal) ||
        cluster__is_unverified(journal))
        return;
    record_ts(journal, now);
    advance_history(journal, now);
    report_core(journal);
    journal->maintain_at = now + MAINTAIN_INTERVAL_US;
    if (!keeper)
        return;
    struct core_horizons horizons = cluster_horizons(journal, now);
    struct command *command;
    int r = core_propose_maintenance(journal->core, &horizons, MAINTAIN_KEYS_MAX, &command);
    if (r < 0)
        journal__store_failed("upkeep", r);
    list_append(proposed, &command->link);
    propose_feed_cut(journal, now, proposed);
}

bool journal__maintain(struct journal *journal, struct list *group)
{
    REQUIRE(journal__holds(&journal->core_lock));
    REQUIRE(journal->cluster == NULL); /* there the keeper proposes it */
    uint64_t now = journal__boot(journal);
    if (now < journal->maintain_at)
        return false;
    if (!journal__is_ready(journal) || journal__is_paused(journal)) {
        set_maintain_at(journal, now + MAINTAIN_INTERVAL_US);
        return false;
    }
    record_ts(journal, now);
    advance_history(journal, now);
    report_core(journal);
    if (journal__next_ts(journal) + TS_CEILING_RENEW_US > journal->ts_ceiling)
        /* On failure a command that needs it is refused. */
        (void)journal__put_ts_ceiling(journal, TS_CEILING_LEAD_US);
    bool more = maintain_core(journal, now, group);
    cut_feed(journal, now, group);
    journal__take_pending_replies(journal, group);
    journal->sync_all = true;
    set_maintain_at(journal, now + (more ? 10 * TL_MS : MAINTAIN_INTERVAL_US));
    return true;
}
