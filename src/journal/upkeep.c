/* SPDX-License-Identifier: Apache-2.0 */
/* What is due each second: the history moves on, what nobody can see goes, operators are told. */
#include "base/log.h"
#include "journal/journal_internal.h"

enum { MAINTAIN_KEYS_MAX = 1000 /* removed in one go, so that a command waits a millisecond or two at most */ };

#define SLOW_WAIT_US TL_SECOND        /* for a lock; longer ones are logged */
#define MARK_RENEW_US (2 * TL_SECOND) /* how near timestamps may come to the mark before it is moved on */

void journal__load_past(struct journal *journal)
{
    uint64_t now = journal__boot(journal) + PAST_ORIGIN;
    uint64_t span = journal->history_us > CORE_OUTCOME_US ? journal->history_us : CORE_OUTCOME_US;
    tl_ts last = core_last_ts(journal->core);
    tl_ts begun = last > 0 ? last : journal__wall(journal); /* a store without a past begins now */
    if (!past_load(&journal->past, span, now, begun, core_marked(journal->core)) ||
        !past_load(&journal->recent, 2 * CORE_TOMBSTONE_US, now, begun, core_marked(journal->core)))
        log_warning("what was kept of how timestamps went is not sound; the history is cut by them alone");
}

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
        journal__store_failed("moving the history cut-off", r);
}

/* Requires: core_lock. */
static void log_news(struct journal *journal)
{
    struct buf lines = BUF_INIT(BUF_UNLIMITED);
    pthread_mutex_lock(&journal->queue_lock);
    uint64_t clock = journal__read_pace(journal);
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
        journal__store_failed("upkeep", r);
    journal__apply(journal, command, group);
    bool more = command->maintain.removed >= MAINTAIN_KEYS_MAX || command->maintain.looked >= MAINTAIN_KEYS_MAX;
    list_remove(&command->link); /* nobody waits for it */
    command_free(command);
    return more;
}

bool journal__maintain(struct journal *journal, struct list *group)
{
    uint64_t now = journal__boot(journal);
    if (now < journal->maintain_at)
        return false;
    journal__check_space(journal);
    if (!atomic_load_explicit(&journal->ready, memory_order_relaxed)) {
        set_maintain_at(journal, now + MAINTAIN_INTERVAL_US);
        return false;
    }
    note_past(journal, now);
    advance_history(journal, now);
    log_news(journal);
    if (journal__next_ts(journal) + MARK_RENEW_US > journal->mark)
        journal__put_mark(journal, MARK_AHEAD_US);
    bool more = maintain_core(journal, now, group);
    journal__take_aside(journal, group);
    journal->sync_all = true;
    set_maintain_at(journal, now + (more ? 10 * TL_MS : MAINTAIN_INTERVAL_US));
    return true;
}
