/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local journal; see README.md, invariants 1 to 5.
 *
 * Locks, in the order in which a thread may take them: core_lock, then one of queue_lock, publish_lock, pin_lock. The last
 * three are held for a few instructions only.
 */
#include "journal/journal.h"

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/catalog/catalog.h"
#include "journal/pins.h"
#include "journal/queries.h"
#include "journal/times.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    WORKER_COUNT = 2,
    GROUP_MAX_DEFAULT = 256,
    MAINTAIN_KEYS_MAX = 1000, /* removed in one go, so that a command waits a millisecond or two at most */
    GATHER_MISSING = 8,       /* a group is whole when no more than this part of it is missing */
    GATHER_SYNC_US_MAX = 20000,
    CORE_TRIES = 200,
    EXIT_STORE_FAILED = 70, /* EX_SOFTWARE of sysexits.h */
};

#define HISTORY_DEFAULT_US (3600 * TL_SECOND)
#define MAINTAIN_INTERVAL_US TL_SECOND
#define SLOW_WAIT_US TL_SECOND /* for a lock; longer ones are logged */
#define SPACE_INTERVAL_US (100 * TL_MS)
/*
 * How far the mark lies ahead of the timestamps that are given, and how near they may come to it before it is moved on. A step may
 * use as many timestamps as there are microseconds in MARK_ROOM_US.
 */
#define MARK_AHEAD_US (5 * TL_SECOND)
#define MARK_RENEW_US (2 * TL_SECOND)
#define MARK_ROOM_US TL_SECOND
#define STALL_TOLD_US (2 * TL_SECOND)
#define SYNC_COUNTED_US (100 * TL_MS) /* of one that takes longer no more counts against leases */
/* Of the reserve this part is never touched: below it nothing is written at all, since a log that meets the end cannot go on. */
#define FLOOR_PART 4
/* What is written takes as much again on its way: it is in the log until it is in a table. */
#define WRITTEN_TIMES 2
#define LARGE_BYTES (1 << 20)

struct journal {
    struct core *core;
    struct store *store;
    uint64_t history_us;
    size_t group_max;
    char *directory; /* whose space is watched; NULL: none */
    uint64_t reserve_bytes;

    pthread_mutex_t queue_lock;
    pthread_cond_t queue_filled;
    struct list queue; /* commands by link, in order of arrival */
    unsigned sleepers; /* workers that wait for queue_filled */
    bool stopping;
    bool sync_left;      /* a caller's thread has left something to sync */
    uint64_t wait_end;   /* when the next wait in the core runs out, by the clock of commands; TL_TS_MAX: none */
    uint64_t lease_end;  /* the next lease or idle transaction */
    uint64_t not_before; /* of boot: nothing that is due is looked at until then */
    uint64_t wake_at;    /* of boot, for upkeep; `maintain_at`, for who does not hold the core */
    struct pace pace;
    _Atomic uint64_t pace_lost;  /* pace.lost, for readers without the lock */
    uint64_t stalled_us;         /* a gap that is still to be told */
    _Atomic uint64_t sync_begun; /* of boot: since when somebody is at the disk; 0: nobody is */
    struct steps steps;
    uint64_t queued; /* commands that ever were */
    uint64_t taken;
    struct journal_ears ears;
    bool listening;        /* the ears were asked, and have not answered yet */
    uint64_t listen_clock; /* when they were */
    uint64_t heard;        /* by the clock: what was sent before it was submitted ... */
    uint64_t heard_queued; /* ... as one of so many commands */

    pthread_mutex_t core_lock;
    tl_ts last_ts; /* given to a command: the next is above it */
    struct present present;
    struct past past;
    struct past recent;   /* the same of the last minutes, more finely */
    tl_ts mark;           /* the one in the store: a restart begins above it */
    tl_ts mark_at;        /* the timestamp at which it was put there */
    tl_ts marked;         /* an earlier one, which is durable for sure */
    uint64_t step_clock;  /* of the command that is being applied */
    uint64_t maintain_at; /* of boot */
    bool sync_all;        /* the next sync must make durable what nobody waits for, too */
    struct effects effects;

    pthread_mutex_t publish_lock;
    tl_ts applied_ts; /* newest timestamp of the core */
    tl_ts written_ts; /* newest timestamp that must be durable before anybody hears of it */
    tl_ts synced_ts;  /* durable is what was written up to here */
    struct catalog *applied_catalog;
    tl_ts applied_catalog_ts; /* it has been the same since */
    struct catalog *catalog;  /* as of the stable timestamp */
    tl_ts catalog_ts;
    _Atomic tl_ts stable_ts;
    struct list applied; /* completed commands that wait for the disk, by link */
    size_t applied_count;
    bool syncing;     /* a thread is at the disk, or about to go there */
    size_t expected;  /* commands in flight when the last group was handed back */
    size_t awaited;   /* applied_count that `syncing` waits for; 0: it does not wait */
    uint64_t sync_us; /* what a sync took of late */
    pthread_cond_t gathered;

    pthread_mutex_t pin_lock;
    struct pins pins;

    struct queries queries;

    _Atomic bool writable; /* there is room, and `ready` */
    _Atomic bool
        ready; /* the store takes small writes: not at the end of the reserve, nor while it gets over a full disk */
    _Atomic uint64_t space_checked_at; /* of boot */
    _Atomic int64_t room;              /* bytes that may still be written, until the disk is looked at again */
    _Atomic uint64_t requests;

    struct journal_clocks clocks;
    pthread_t workers[WORKER_COUNT];
    unsigned worker_count;
};

/* --- Time --------------------------------------------------------------------------------------------------------- */

static uint64_t machine_wall(void *context)
{
    (void)context;
    return clock_wall_us();
}

static uint64_t machine_boot(void *context)
{
    (void)context;
    return clock_boot_us();
}

static uint64_t wall_now(const struct journal *journal)
{
    return journal->clocks.wall(journal->clocks.context);
}

static uint64_t boot_now(const struct journal *journal)
{
    return journal->clocks.boot(journal->clocks.context);
}

/* As clock_wait(), by the journal's clock. */
static bool wait_until(struct journal *journal, pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until)
{
    uint64_t now = boot_now(journal);
    return now < until && clock_wait(condition, lock, clock_boot_us() + (until - now)) && boot_now(journal) < until;
}

/* Requires: core_lock. The core may have used timestamps of its own, for commands that waited. */
static tl_ts next_ts(struct journal *journal)
{
    tl_ts core_ts = core_last_ts(journal->core);
    tl_ts last = core_ts > journal->last_ts ? core_ts : journal->last_ts;
    tl_ts now = present_read(&journal->present, wall_now(journal), boot_now(journal), last);
    journal->last_ts = now > last ? now : last + 1;
    return journal->last_ts;
}

/* Requires: queue_lock. Returns: the clock of commands. */
static uint64_t read_pace(struct journal *journal)
{
    uint64_t before = journal->pace.last_boot;
    uint64_t boot = boot_now(journal);
    uint64_t begun = atomic_load_explicit(&journal->sync_begun, memory_order_relaxed);
    if (begun != 0 && boot > begun + SYNC_COUNTED_US)
        boot = begun + SYNC_COUNTED_US; /* whoever waits for his answer that long cannot say that he lives */
    uint64_t clock = pace_read(&journal->pace, boot);
    if (journal->pace.last_boot - before > STALL_TOLD_US)
        journal->stalled_us += journal->pace.last_boot - before;
    atomic_store_explicit(&journal->pace_lost, journal->pace.lost, memory_order_relaxed);
    return clock;
}

/* What an operator has to know of the clocks. Requires: queue_lock. */
static void watch_clocks(struct journal *journal)
{
    uint64_t boot = boot_now(journal);
    uint64_t wall = wall_now(journal);
    uint64_t took = boot_now(journal) - boot;
    (void)read_pace(journal);
    if (journal->stalled_us > 0)
        log_warning("nothing was done for %.1f s, the process, the machine or the disk stood still; leases are not "
                    "counted down by that",
                    (double)journal->stalled_us / (double)TL_SECOND);
    journal->stalled_us = 0;
    if (took < PACE_GAP_US && steps_look(&journal->steps, wall, boot))
        log_warning(
            "the clock of this machine was set %s by %.1f s; timestamps never go back, and leases, waits and timeouts "
            "do not follow it",
            journal->steps.last < 0 ? "back" : "forward",
            (double)(journal->steps.last < 0 ? -journal->steps.last : journal->steps.last) / (double)TL_SECOND);
}

/* --- A full disk -------------------------------------------------------------------------------------------------- */

static void look_at_space(struct journal *journal)
{
    struct statvfs space;
    atomic_store_explicit(&journal->space_checked_at, boot_now(journal), memory_order_relaxed);
    if (statvfs(journal->directory, &space) != 0)
        return;
    uint64_t free = (uint64_t)space.f_bavail * space.f_frsize;
    atomic_store_explicit(&journal->room, (int64_t)free - (int64_t)(journal->reserve_bytes / FLOOR_PART),
                          memory_order_relaxed);
    bool room = free >= journal->reserve_bytes;
    /* Once it has been full the store has to say that it is over it; until it was, there is nothing to ask. */
    bool ready = free >= journal->reserve_bytes / FLOOR_PART &&
                 ((room && atomic_load(&journal->writable)) || store_is_ready(journal->store));
    bool writable = room && ready;
    atomic_store_explicit(&journal->ready, ready, memory_order_relaxed);
    if (atomic_exchange(&journal->writable, writable) == writable)
        return;
    if (writable)
        log_info("there is room on the disk again: writes are accepted");
    else
        log_error("less than %llu bytes are free for '%s': writes are refused until there is room",
                  (unsigned long long)journal->reserve_bytes, journal->directory);
}

static void check_space(struct journal *journal)
{
    if (journal->directory == NULL)
        return;
    uint64_t checked = atomic_load_explicit(&journal->space_checked_at, memory_order_relaxed);
    if (checked == 0 || boot_now(journal) - checked >= SPACE_INTERVAL_US)
        look_at_space(journal);
}

/*
 * Takes what a command will write from the room that was found; for what is large it is looked for anew, since others use the
 * disk, too. Returns: whether there is as much.
 */
static bool take_room(struct journal *journal, int64_t bytes)
{
    if (bytes <= LARGE_BYTES && atomic_fetch_sub_explicit(&journal->room, bytes, memory_order_relaxed) >= bytes)
        return true;
    look_at_space(journal);
    return atomic_fetch_sub_explicit(&journal->room, bytes, memory_order_relaxed) >= bytes;
}

/*
 * However much room there was when somebody looked last, neither one command nor all since then write more. Requires:
 * core_lock.
 */
static bool refuse_too_much(struct journal *journal, struct command *command)
{
    if (journal->directory == NULL || !command_is(command->type, COMMAND_ADDS_DATA))
        return false;
    size_t bytes = core_bytes_to_write(journal->core, command);
    if (bytes == 0 || take_room(journal, (int64_t)bytes * WRITTEN_TIMES))
        return false;
    problem_set(
        &command->problem, &command->arena, PROBLEM_DISK_FULL,
        "this writes [%zu] bytes, which take [%zu] on their way, and there is no room for so much on the disk of the "
        "data directory; nothing was done, a transaction stays open: try again with less, or when there is room",
        bytes, bytes * WRITTEN_TIMES);
    return true;
}

/* What only keeps or frees runs out of the reserve. */
static bool refuse_full(struct journal *journal, struct command *command)
{
    bool wants_room = command_is(command->type, COMMAND_ADDS_DATA);
    if (command_is(command->type, COMMAND_ONLY_READS) ||
        (!wants_room && atomic_load_explicit(&journal->writable, memory_order_relaxed)))
        return false;
    check_space(journal);
    if (atomic_load_explicit(wants_room ? &journal->writable : &journal->ready, memory_order_relaxed))
        return false;
    problem_set(&command->problem, &command->arena, PROBLEM_DISK_FULL,
                "less than [%llu] bytes are free on the disk of the data directory; writes are refused until there is "
                "room, reads go on",
                (unsigned long long)journal->reserve_bytes);
    return true;
}

/* --- The three stages --------------------------------------------------------------------------------------------- */

static _Noreturn void store_failed(const char *what, int code)
{
    log_error("%s failed: %s. Nothing that was not durable has been acknowledged; ending", what, error_text(code));
    _exit(EXIT_STORE_FAILED);
}

static void move_completed(struct effects *effects, struct list *group)
{
    while (!list_empty(&effects->completed)) {
        struct list *link = effects->completed.next;
        list_remove(link);
        list_append(group, link);
    }
}

/* Puts a mark above the timestamps of some time to come. Requires: core_lock. */
static void put_mark(struct journal *journal, uint64_t ahead)
{
    tl_ts at = next_ts(journal);
    pthread_mutex_lock(&journal->publish_lock);
    if (journal->synced_ts >= journal->mark_at)
        journal->marked = journal->mark;
    pthread_mutex_unlock(&journal->publish_lock);
    journal->mark = at + ahead;
    journal->mark_at = at;
    struct buf kept = BUF_INIT(BUF_UNLIMITED);
    past_save(&journal->past, boot_now(journal) + PAST_ORIGIN, &kept);
    int r = core_mark(journal->core, at, journal->mark, buf_view(&kept));
    buf_deinit(&kept);
    if (r < 0)
        store_failed("keeping a mark above the timestamps", r);
}

/* Requires: core_lock. Durations begin now: what the command waited for its turn is not its owner's fault. */
static int step(struct journal *journal, struct command *command)
{
    command->ts = next_ts(journal);
    if (command->ts + MARK_ROOM_US > journal->mark) {
        put_mark(journal, MARK_AHEAD_US);
        command->ts = next_ts(journal);
    }
    pthread_mutex_lock(&journal->queue_lock);
    command->clock = journal->step_clock = read_pace(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    return core_step(journal->core, command, &journal->effects);
}

/*
 * Requires: core_lock. Those whom the command lets go on are handed back before it: they have waited longer, and whoever
 * waits for a lock waits for them.
 */
static void apply(struct journal *journal, struct command *command, struct list *group)
{
    if (refuse_too_much(journal, command)) {
        list_append(group, &command->link);
        return;
    }
    int r = command_is(command->type, COMMAND_LOOKS) ? core_look(journal->core, command, &journal->effects)
                                                     : step(journal, command);
    if (r < 0)
        store_failed("applying a command", r);
    move_completed(&journal->effects, group);
    if (list_linked(&command->link)) {
        list_remove(&command->link);
        list_append(group, &command->link);
    }
}

/* Requires: core_lock. Says what has been applied, so that the next sync can publish it. */
static void note_applied(struct journal *journal)
{
    pthread_mutex_lock(&journal->publish_lock);
    journal->applied_ts = core_last_ts(journal->core);
    journal->written_ts = journal->sync_all ? core_written_ts(journal->core) : core_binding_ts(journal->core);
    journal->sync_all = false;
    if (journal->synced_ts >= journal->mark_at)
        journal->marked = journal->mark;
    if (journal->applied_ts > journal->marked && journal->written_ts < journal->mark_at)
        journal->written_ts =
            journal->mark_at; /* nobody hears of a timestamp that a restart could give again (invariant 6) */
    if (journal->effects.catalog_changed) {
        catalog_unref(journal->applied_catalog);
        journal->applied_catalog = core_catalog(journal->core);
        journal->applied_catalog_ts = journal->applied_ts;
        journal->effects.catalog_changed = false;
    }
    pthread_mutex_unlock(&journal->publish_lock);

    uint64_t wait_end = core_next_wait_end(journal->core);
    uint64_t lease_end = core_next_lease_end(journal->core);
    pthread_mutex_lock(&journal->queue_lock);
    bool earlier = wait_end < journal->wait_end || lease_end < journal->lease_end;
    journal->wait_end = wait_end;
    journal->lease_end = lease_end;
    if (earlier && journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    pthread_mutex_unlock(&journal->queue_lock);
}

/* Requires: publish_lock. */
static void raise_stable(struct journal *journal, tl_ts ts)
{
    if (ts > atomic_load_explicit(&journal->stable_ts, memory_order_relaxed))
        atomic_store_explicit(&journal->stable_ts, ts, memory_order_release);
}

/* Moves all that wait for the disk before a group's own. Requires: publish_lock. */
static void take_lined_up(struct journal *journal, struct list *group)
{
    struct list *first = group->next;
    while (!list_empty(&journal->applied)) {
        struct list *link = journal->applied.next;
        list_remove(link);
        list_insert_before(first, link);
    }
    journal->applied_count = 0;
}

/*
 * Moves the stable timestamp up over what wrote nothing, also while a sync is under way for what nobody waits for, and takes
 * what lined up behind a sync that has covered it. Returns: false when something written is not durable yet.
 */
static bool publish_unwritten(struct journal *journal, struct list *group)
{
    pthread_mutex_lock(&journal->publish_lock);
    bool durable = journal->written_ts <= journal->synced_ts;
    if (durable) {
        raise_stable(journal, journal->applied_ts);
        take_lined_up(journal, group);
    }
    pthread_mutex_unlock(&journal->publish_lock);
    return durable;
}

static void hand_back(struct list *group)
{
    while (!list_empty(group)) {
        struct command *command = list_entry(group->next, struct command, link);
        list_remove(&command->link);
        command->on_done(command);
    }
}

/*
 * Waits for those who are about to come, for half a sync at most: who was handed back a moment ago usually asks again at
 * once, and then shares this sync instead of waiting through it. How many they are the last group told.
 * Requires: publish_lock; `syncing` is the caller's.
 */
static void gather(struct journal *journal)
{
    uint64_t until = boot_now(journal) + journal->sync_us / 2;
    journal->awaited = journal->expected - journal->expected / GATHER_MISSING;
    bool in_time = true;
    while (in_time && journal->applied_count < journal->awaited)
        in_time = wait_until(journal, &journal->gathered, &journal->publish_lock, until);
    journal->awaited = 0;
}

/* Requires: publish_lock, which it gives up meanwhile; `syncing` is the caller's. */
static void sync_store(struct journal *journal)
{
    tl_ts covered = journal->applied_ts;
    struct catalog *catalog = catalog_ref(journal->applied_catalog);
    tl_ts catalog_ts = journal->applied_catalog_ts;
    pthread_mutex_unlock(&journal->publish_lock);

    uint64_t begun = boot_now(journal);
    atomic_store_explicit(&journal->sync_begun, begun, memory_order_relaxed);
    int r = store_sync(journal->store);
    atomic_store_explicit(&journal->sync_begun, 0, memory_order_relaxed);
    if (r < 0)
        store_failed("making changes durable", r);
    uint64_t took = boot_now(journal) - begun;

    pthread_mutex_lock(&journal->publish_lock);
    catalog_unref(journal->catalog);
    journal->catalog = catalog;
    journal->catalog_ts = catalog_ts;
    journal->synced_ts = covered;
    raise_stable(journal, covered);
    journal->sync_us = (7 * journal->sync_us + (took < GATHER_SYNC_US_MAX ? took : GATHER_SYNC_US_MAX)) / 8;
}

/* Whether there is something to sync and nobody who does. Requires: publish_lock. */
static bool sync_is_due(const struct journal *journal)
{
    return !journal->syncing && (!list_empty(&journal->applied) || journal->written_ts > journal->synced_ts);
}

/* Makes what has been applied durable and visible, and hands it back. Requires: publish_lock, sync_is_due(). */
static void sync_and_hand_back(struct journal *journal)
{
    struct list group = LIST_INIT(group);
    journal->syncing = true;
    gather(journal);
    size_t count = journal->applied_count;
    take_lined_up(journal, &group);
    sync_store(journal);
    journal->expected = count + journal->applied_count;
    journal->syncing = false;
    pthread_cond_broadcast(&journal->gathered);
    pthread_mutex_unlock(&journal->publish_lock);
    hand_back(&group);
    pthread_mutex_lock(&journal->publish_lock);
}

/* Puts a group behind those that wait for the disk. Requires: publish_lock. */
static void line_up(struct journal *journal, struct list *group)
{
    while (!list_empty(group)) {
        struct list *link = group->next;
        list_remove(link);
        list_append(&journal->applied, link);
        journal->applied_count++;
    }
    if (journal->awaited > 0 && journal->applied_count >= journal->awaited)
        pthread_cond_broadcast(&journal->gathered);
}

/* Has a worker look after what is left to sync. */
static void call_worker(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    journal->sync_left = true;
    if (journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    pthread_mutex_unlock(&journal->queue_lock);
}

/*
 * Stages two and three. Who finds another at the disk leaves its group to him, who comes back for it. A caller's thread goes
 * to the disk once, or not at all; what is left is a worker's.
 * Requires: core_lock was released after the group was applied.
 */
enum sync_rounds { SYNC_NONE, SYNC_ONCE, SYNC_ALL };

static void finish(struct journal *journal, struct list *group, tl_ts wanted, enum sync_rounds rounds)
{
    if (wanted == 0 || publish_unwritten(journal, group)) {
        hand_back(group);
        return;
    }
    pthread_mutex_lock(&journal->publish_lock);
    line_up(journal, group);
    for (bool again = rounds != SYNC_NONE; again && sync_is_due(journal); again = rounds == SYNC_ALL)
        sync_and_hand_back(journal);
    bool left = sync_is_due(journal);
    pthread_mutex_unlock(&journal->publish_lock);
    if (left)
        call_worker(journal);
}

/* --- Upkeep ------------------------------------------------------------------------------------------------------- */

/* Requires: core_lock. */
static void note_past(struct journal *journal, uint64_t now)
{
    past_note(&journal->past, now + PAST_ORIGIN, core_last_ts(journal->core));
    past_note(&journal->recent, now + PAST_ORIGIN, core_last_ts(journal->core));
}

/* How far back whatever is kept for a time goes. Requires: core_lock. */
static struct core_past past_now(struct journal *journal, uint64_t now)
{
    return (struct core_past){.cut_off = store_history_low(journal->store),
                              .tombstones = past_before(&journal->recent, now + PAST_ORIGIN, CORE_TOMBSTONE_US),
                              .outcomes = past_before(&journal->past, now + PAST_ORIGIN, CORE_OUTCOME_US)};
}

/* Requires: core_lock. */
static void advance_history(struct journal *journal, uint64_t now)
{
    tl_ts low = past_before(&journal->past, now + PAST_ORIGIN, journal->history_us);
    pthread_mutex_lock(&journal->pin_lock);
    tl_ts pinned = pins_oldest(&journal->pins);
    low = low < pinned ? low : pinned;
    tl_ts read = core_oldest_read(journal->core);
    low = low < read ? low : read;
    /* Who reads the present reads there, however long ago the last upkeep was that moved it up. */
    tl_ts stable = atomic_load_explicit(&journal->stable_ts, memory_order_acquire);
    low = low < stable ? low : stable;
    int r = low > store_history_low(journal->store) ? store_set_history_low(journal->store, low) : 0;
    pthread_mutex_unlock(&journal->pin_lock);
    if (r < 0)
        store_failed("moving the history cut-off", r);
}

/* Requires: core_lock. */
static void log_news(struct journal *journal)
{
    struct buf lines = BUF_INIT(BUF_UNLIMITED);
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t clock = read_pace(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    core_news(journal->core, clock, SLOW_WAIT_US, &lines);
    for (struct slice left = buf_view(&lines); left.len > 0;) {
        size_t len = slice_find_byte(left, '\n');
        log_info("%.*s", (int)len, left.data);
        left = slice_from_offset(left, len + 1);
    }
    buf_deinit(&lines);
}

/* Requires: core_lock. */
static void set_maintain_at(struct journal *journal, uint64_t at)
{
    journal->maintain_at = at;
    pthread_mutex_lock(&journal->queue_lock);
    journal->wake_at = at;
    pthread_mutex_unlock(&journal->queue_lock);
}

/* Has the core remove what nobody can see any more. Requires: core_lock. Returns: whether there is more of that. */
static bool maintain_core(struct journal *journal, uint64_t now, struct list *group)
{
    struct core_past past = past_now(journal, now);
    struct command *command;
    int r = core_propose_upkeep(journal->core, &past, MAINTAIN_KEYS_MAX, &command);
    if (r < 0)
        store_failed("upkeep", r);
    apply(journal, command, group);
    bool more = command->maintain.removed >= MAINTAIN_KEYS_MAX || command->maintain.looked >= MAINTAIN_KEYS_MAX;
    list_remove(&command->link); /* nobody waits for it */
    command_free(command);
    return more;
}

/* Does what is due. Requires: core_lock. Returns: whether the core was changed. */
static bool maintain(struct journal *journal, struct list *group)
{
    uint64_t now = boot_now(journal);
    if (now < journal->maintain_at)
        return false;
    check_space(journal);
    if (!atomic_load_explicit(&journal->ready, memory_order_relaxed)) {
        set_maintain_at(journal, now + MAINTAIN_INTERVAL_US);
        return false;
    }
    note_past(journal, now);
    advance_history(journal, now);
    log_news(journal);
    if (next_ts(journal) + MARK_RENEW_US > journal->mark)
        put_mark(journal, MARK_AHEAD_US);
    bool more = maintain_core(journal, now, group);
    journal->sync_all = true;
    set_maintain_at(journal, now + (more ? 10 * TL_MS : MAINTAIN_INTERVAL_US));
    return true;
}

static void free_internal(struct command *command)
{
    command_free(command);
}

/* Looks at what is due again at that time. */
static void put_off(struct journal *journal, uint64_t until)
{
    pthread_mutex_lock(&journal->queue_lock);
    journal->not_before = until;
    pthread_mutex_unlock(&journal->queue_lock);
}

/* Requires: core_lock. Lets run out what has; leases by what was heard, and is applied. */
static void tick(struct journal *journal, uint64_t heard, struct list *group)
{
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t clock = read_pace(journal);
    pthread_mutex_unlock(&journal->queue_lock);
    if (core_next_wait_end(journal->core) > clock && core_next_lease_end(journal->core) > heard)
        return;
    check_space(journal);
    if (!atomic_load_explicit(&journal->ready, memory_order_relaxed)) { /* it is done when the disk lets it */
        put_off(journal, boot_now(journal) + SPACE_INTERVAL_US);
        return;
    }
    struct command *command = command_new(COMMAND_TICK, DIALECT_7);
    command->on_done = free_internal;
    command->tick.heard = heard;
    apply(journal, command, group);
}

/* --- Workers ------------------------------------------------------------------------------------------------------ */

/* Whether a lease is over, as far as is known, and it is yet to be heard whether somebody has prolonged it. Requires: queue_lock. */
static bool must_listen(const struct journal *journal, uint64_t clock)
{
    return !journal->listening && journal->lease_end <= clock && journal->lease_end > journal->heard;
}

/*
 * Returns: for how long there is nothing to do, by what is known now; 0: there is. While anything can run out the clock is read so often
 * that a time in which nothing was done shows. Requires: queue_lock.
 */
static uint64_t idle_us(struct journal *journal)
{
    watch_clocks(journal);
    uint64_t boot = boot_now(journal);
    uint64_t clock = read_pace(journal);
    uint64_t first = journal->wait_end < journal->lease_end ? journal->wait_end : journal->lease_end;
    uint64_t idle = first < TL_TS_MAX ? PACE_BEAT_US : MAINTAIN_INTERVAL_US;
    if (journal->wake_at <= boot || must_listen(journal, clock))
        return 0;
    idle = journal->wake_at - boot < idle ? journal->wake_at - boot : idle;
    if (boot < journal->not_before)
        return idle;
    if (journal->wait_end <= clock || journal->lease_end <= journal->heard)
        return 0;
    idle = journal->wait_end - clock < idle ? journal->wait_end - clock : idle;
    return journal->lease_end > clock && journal->lease_end - clock < idle ? journal->lease_end - clock : idle;
}

/* Sleeps until there is something to do. Returns: false when the journal ends and nothing is left. */
static bool await_work(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    while (list_empty(&journal->queue) && !journal->stopping && !journal->sync_left) {
        uint64_t idle = idle_us(journal);
        if (idle == 0)
            break;
        journal->sleepers++;
        (void)wait_until(journal, &journal->queue_filled, &journal->queue_lock, boot_now(journal) + idle);
        journal->sleepers--;
    }
    bool more = !list_empty(&journal->queue) || !journal->stopping || journal->sync_left;
    journal->sync_left = false;
    pthread_mutex_unlock(&journal->queue_lock);
    return more;
}

/*
 * Moves up to group_max commands over. Wakes the other worker when some are left. No lease runs out by what was heard before all has been
 * taken that was in the queue then.
 */
static uint64_t take_queued(struct journal *journal, struct list *taken)
{
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t heard = 0;
    for (size_t n = 0; n < journal->group_max && !list_empty(&journal->queue); n++) {
        struct list *link = journal->queue.next;
        list_remove(link);
        list_append(taken, link);
        journal->taken++;
    }
    if (!list_empty(&journal->queue) && journal->sleepers > 0)
        pthread_cond_signal(&journal->queue_filled);
    if (journal->taken >= journal->heard_queued)
        heard = journal->heard;
    pthread_mutex_unlock(&journal->queue_lock);
    return heard;
}

static void work_once(struct journal *journal)
{
    struct list taken = LIST_INIT(taken);
    struct list group = LIST_INIT(group);
    pthread_mutex_lock(&journal->core_lock);
    uint64_t heard = take_queued(journal, &taken);
    core_group_begin(journal->core);
    while (!list_empty(&taken)) {
        struct command *command = list_entry(taken.next, struct command, link);
        list_remove(&command->link);
        apply(journal, command, &group);
    }
    tick(journal, heard, &group);
    int r = core_group_end(journal->core);
    if (r < 0)
        store_failed("writing the records of locks", r);
    note_applied(journal);
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    finish(journal, &group, wanted, SYNC_ALL);
}

/* After a group, so that nobody waits for it who was there before. Whoever is applying just now does it then. */
static void keep_up(struct journal *journal)
{
    struct list group = LIST_INIT(group);
    if (pthread_mutex_trylock(&journal->core_lock) != 0)
        return;
    bool due = maintain(journal, &group);
    tl_ts wanted = due ? core_last_ts(journal->core) : 0;
    if (due)
        note_applied(journal);
    pthread_mutex_unlock(&journal->core_lock);
    finish(journal, &group, wanted, SYNC_ALL);
}

/* Before a lease runs out, it is heard who is still there (journal_ears). */
static void listen(struct journal *journal)
{
    struct journal_ears ears = {0};
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t clock = read_pace(journal);
    if (must_listen(journal, clock)) {
        ears = journal->ears;
        if (ears.listen == NULL) {
            journal->heard = clock;
            journal->heard_queued = journal->queued;
        } else {
            journal->listening = true;
            journal->listen_clock = clock;
        }
    }
    pthread_mutex_unlock(&journal->queue_lock);
    if (ears.listen != NULL)
        ears.listen(ears.context);
}

static void *worker(void *context)
{
    struct journal *journal = context;
    while (await_work(journal)) {
        listen(journal);
        work_once(journal);
        keep_up(journal);
    }
    return NULL;
}

/* --- The interface ------------------------------------------------------------------------------------------------ */

/* Whether a command waits for no disk, unless for what others have written: it begins or ends a query transaction. */
static bool needs_no_sync(struct journal *journal, const struct command *command)
{
    if (!command_is(command->type, COMMAND_OF_QUERY))
        return false;
    return command->txn.mode == TXN_QUERY || queries_has(&journal->queries, command->txn.id);
}

/*
 * Takes the core lock where it is free, or about to be: most steps take a few microseconds, and to have the command handed
 * over and back takes several times as long.
 */
static bool take_core(struct journal *journal)
{
    for (int i = 0; i < CORE_TRIES; i++)
        if (pthread_mutex_trylock(&journal->core_lock) == 0)
            return true;
    return false;
}

/* Applies the command here and now if nothing is ahead of it. */
static bool submit_here(struct journal *journal, struct command *command, enum sync_rounds rounds)
{
    if (!take_core(journal))
        return false;
    pthread_mutex_lock(&journal->queue_lock);
    bool free_to_go = list_empty(&journal->queue) && !journal->stopping;
    pthread_mutex_unlock(&journal->queue_lock);
    if (!free_to_go) {
        pthread_mutex_unlock(&journal->core_lock);
        return false;
    }
    struct list group = LIST_INIT(group);
    tl_ts written = core_binding_ts(journal->core);
    apply(journal, command, &group);
    note_applied(journal);
    bool idle = list_empty(&group) && core_binding_ts(journal->core) == written; /* it waits, and changed nothing */
    tl_ts wanted = idle ? 0 : core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    finish(journal, &group, wanted, rounds);
    return true;
}

uint64_t journal_request_number(struct journal *journal)
{
    return atomic_fetch_add_explicit(&journal->requests, 1, memory_order_relaxed) + 1;
}

void journal_submit(struct journal *journal, struct command *command, bool lone)
{
    REQUIRE(command->on_done != NULL);
    if (command->request == 0)
        command->request = journal_request_number(journal);
    if (refuse_full(journal, command)) {
        command->on_done(command);
        return;
    }
    if ((lone || needs_no_sync(journal, command)) && submit_here(journal, command, lone ? SYNC_ONCE : SYNC_NONE))
        return;
    pthread_mutex_lock(&journal->queue_lock);
    bool stopped = journal->stopping;
    if (!stopped) {
        journal->queued++;
        list_append(&journal->queue, &command->link);
        if (journal->sleepers > 0)
            pthread_cond_signal(&journal->queue_filled);
    }
    pthread_mutex_unlock(&journal->queue_lock);
    if (stopped) {
        problem_set(&command->problem, &command->arena, PROBLEM_STOPPING, "the server is stopping; try again later");
        command->on_done(command);
    }
}

tl_ts journal_stable(struct journal *journal)
{
    return atomic_load_explicit(&journal->stable_ts, memory_order_acquire);
}

void journal_listen(struct journal *journal, const struct journal_ears *ears)
{
    pthread_mutex_lock(&journal->queue_lock);
    journal->ears = *ears;
    journal->listening = false;
    pthread_mutex_unlock(&journal->queue_lock);
}

void journal_heard(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    if (journal->listening) {
        journal->listening = false;
        journal->heard = journal->listen_clock;
        journal->heard_queued = journal->queued;
        if (journal->sleepers > 0)
            pthread_cond_signal(&journal->queue_filled);
    }
    pthread_mutex_unlock(&journal->queue_lock);
}

void journal_clock_steps(struct journal *journal, struct journal_steps *ret_steps)
{
    pthread_mutex_lock(&journal->queue_lock);
    *ret_steps = (struct journal_steps){.count = journal->steps.count, .last_us = journal->steps.last};
    pthread_mutex_unlock(&journal->queue_lock);
}

tl_ts journal_oldest(struct journal *journal)
{
    return store_history_low(journal->store);
}

struct catalog *journal_catalog(struct journal *journal)
{
    pthread_mutex_lock(&journal->publish_lock);
    struct catalog *catalog = catalog_ref(journal->catalog);
    pthread_mutex_unlock(&journal->publish_lock);
    return catalog;
}

struct catalog *journal_catalog_at(struct journal *journal, tl_ts ts)
{
    pthread_mutex_lock(&journal->publish_lock);
    struct catalog *catalog = ts >= journal->catalog_ts ? catalog_ref(journal->catalog) : NULL;
    pthread_mutex_unlock(&journal->publish_lock);
    return catalog;
}

struct query *journal_query_use(struct journal *journal, struct slice id)
{
    return queries_use(&journal->queries, id);
}

/* The pin is the one that its end took, when it has ended in between. */
void journal_query_leave(struct journal *journal, struct query *query)
{
    tl_ts pinned = query->read_ts;
    if (query_unref(query))
        journal_unpin(journal, pinned);
}

bool journal_query_fresh(struct journal *journal, const struct query *query, tl_ts *ret_ts)
{
    /* A gap that has not been read yet makes it seem later, and so the core is asked. */
    uint64_t clock = boot_now(journal) - atomic_load_explicit(&journal->pace_lost, memory_order_relaxed);
    *ret_ts = query->read_ts;
    return query_fresh(query, clock) && query->read_ts <= journal_stable(journal);
}

int journal_query_catalog(struct journal *journal, struct query *query, struct catalog **ret_catalog)
{
    int r = 0;
    *ret_catalog = query_catalog(query);
    if (*ret_catalog != NULL)
        return 0;
    *ret_catalog = journal_catalog_at(journal, query->read_ts);
    if (*ret_catalog == NULL)
        r = catalog_load(&(struct view){journal->store, query->read_ts, NULL}, ret_catalog);
    if (r == 0)
        query_keep_catalog(query, *ret_catalog);
    return r;
}

static void on_query_seen(struct effects *effects, struct slice id, tl_ts read_ts, uint64_t fresh_us)
{
    struct journal *journal = container_of(effects, struct journal, effects);
    queries_seen(&journal->queries, id, read_ts, journal->step_clock + fresh_us);
}

/*
 * Those who read in it just now keep what they see: the end takes a pin in its place, which goes with the last of them. The
 * core has held the history until now, and moves the cut-off under the lock that this thread has.
 */
static void on_query_ended(struct effects *effects, struct slice id)
{
    struct journal *journal = container_of(effects, struct journal, effects);
    struct query *query = queries_ended(&journal->queries, id);
    if (query == NULL)
        return;
    pthread_mutex_lock(&journal->pin_lock);
    pins_add(&journal->pins, query->read_ts);
    pthread_mutex_unlock(&journal->pin_lock);
    journal_query_leave(journal, query);
}

int journal_pin(struct journal *journal, tl_ts ts)
{
    pthread_mutex_lock(&journal->pin_lock);
    bool old = ts < store_history_low(journal->store);
    if (!old)
        pins_add(&journal->pins, ts);
    pthread_mutex_unlock(&journal->pin_lock);
    return old ? JOURNAL_TOO_OLD : 0;
}

void journal_unpin(struct journal *journal, tl_ts ts)
{
    pthread_mutex_lock(&journal->pin_lock);
    pins_remove(&journal->pins, ts);
    pthread_mutex_unlock(&journal->pin_lock);
}

bool journal_writable(struct journal *journal)
{
    check_space(journal);
    return atomic_load_explicit(&journal->writable, memory_order_relaxed);
}

static void init_locks(struct journal *journal)
{
    pthread_mutex_init(&journal->queue_lock, NULL);
    pthread_cond_init(&journal->queue_filled, NULL);
    pthread_mutex_init(&journal->core_lock, NULL);
    pthread_mutex_init(&journal->publish_lock, NULL);
    pthread_cond_init(&journal->gathered, NULL);
    pthread_mutex_init(&journal->pin_lock, NULL);
}

static void deinit_locks(struct journal *journal)
{
    pthread_mutex_destroy(&journal->queue_lock);
    pthread_cond_destroy(&journal->queue_filled);
    pthread_mutex_destroy(&journal->core_lock);
    pthread_cond_destroy(&journal->gathered);
    pthread_mutex_destroy(&journal->publish_lock);
    pthread_mutex_destroy(&journal->pin_lock);
}

/* The first command: leases start anew, and the catalog as it was found is published. */
static void restart(struct journal *journal)
{
    struct list group = LIST_INIT(group);
    struct command *command = command_new(COMMAND_RESTART, DIALECT_7);
    command->on_done = free_internal;
    pthread_mutex_lock(&journal->core_lock);
    apply(journal, command, &group);
    journal->effects.catalog_changed = true;
    note_applied(journal);
    journal->catalog = catalog_ref(journal->applied_catalog);
    journal->catalog_ts = journal->applied_catalog_ts;
    tl_ts wanted = core_last_ts(journal->core);
    pthread_mutex_unlock(&journal->core_lock);
    finish(journal, &group, wanted, SYNC_ALL);
}

static void load_past(struct journal *journal)
{
    uint64_t now = boot_now(journal) + PAST_ORIGIN;
    uint64_t span = journal->history_us > CORE_OUTCOME_US ? journal->history_us : CORE_OUTCOME_US;
    tl_ts last = core_last_ts(journal->core);
    tl_ts begun = last > 0 ? last : wall_now(journal); /* a store without a past begins now */
    if (!past_load(&journal->past, span, now, begun, core_marked(journal->core)) ||
        !past_load(&journal->recent, 2 * CORE_TOMBSTONE_US, now, begun, core_marked(journal->core)))
        log_warning("what was kept of how timestamps went is not sound; the history is cut by them alone");
}

int journal_open_local(struct core *core, struct store *store, const struct journal_options *options,
                       struct journal **ret_journal)
{
    struct journal *journal = mem_zalloc(sizeof *journal);
    journal->core = core;
    journal->store = store;
    journal->history_us = options->history_us ? options->history_us : HISTORY_DEFAULT_US;
    journal->group_max = options->group_max ? options->group_max : GROUP_MAX_DEFAULT;
    if (options->directory.len > 0)
        journal->directory = mem_strdup(options->directory.data, options->directory.len);
    journal->reserve_bytes = options->reserve_bytes;
    list_init(&journal->queue);
    list_init(&journal->applied);
    effects_init(&journal->effects);
    journal->effects.query_seen = on_query_seen;
    journal->effects.query_ended = on_query_ended;
    queries_init(&journal->queries);
    journal->wait_end = journal->lease_end = TL_TS_MAX;
    journal->last_ts = core_last_ts(core);
    journal->clocks = options->clocks != NULL ? *options->clocks
                                              : (struct journal_clocks){.wall = machine_wall, .boot = machine_boot};
    pace_init(&journal->pace, boot_now(journal));
    load_past(journal);
    atomic_init(&journal->writable, true);
    atomic_init(&journal->ready, true);
    init_locks(journal);
    check_space(journal);
    restart(journal);

    for (unsigned i = 0; i < WORKER_COUNT; i++) {
        if (pthread_create(&journal->workers[i], NULL, worker, journal) != 0) {
            log_error("cannot start a thread of the journal");
            journal_close(journal);
            return tl_trace(TL_ERR_IO);
        }
        journal->worker_count++;
    }
    *ret_journal = journal;
    return 0;
}

/* Completes what waits in the core, after the workers have ended. */
static void stop_core(struct journal *journal)
{
    struct list group = LIST_INIT(group);
    journal->maintain_at = 0; /* it has records to write, for the next start to find */
    (void)maintain(journal, &group);
    put_mark(journal, 0); /* the next start has nothing to leap over */
    core_stop(journal->core, &journal->effects);
    move_completed(&journal->effects, &group);
    note_applied(journal);
    finish(journal, &group, core_last_ts(journal->core), SYNC_ALL);
    pthread_mutex_lock(&journal->publish_lock);
    while (journal->syncing) /* a caller's thread */
        pthread_cond_wait(&journal->gathered, &journal->publish_lock);
    pthread_mutex_unlock(&journal->publish_lock);
}

void journal_stop(struct journal *journal)
{
    pthread_mutex_lock(&journal->queue_lock);
    bool stopped = journal->stopping;
    journal->stopping = true;
    pthread_cond_broadcast(&journal->queue_filled);
    pthread_mutex_unlock(&journal->queue_lock);
    if (stopped)
        return;
    for (unsigned i = 0; i < journal->worker_count; i++)
        pthread_join(journal->workers[i], NULL);
    stop_core(journal);
}

void journal_close(struct journal *journal)
{
    if (journal == NULL)
        return;
    journal_stop(journal);
    catalog_unref(journal->catalog);
    catalog_unref(journal->applied_catalog);
    pins_deinit(&journal->pins);
    queries_deinit(&journal->queries);
    deinit_locks(journal);
    mem_free(journal->directory);
    mem_free(journal);
}
