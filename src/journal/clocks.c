/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal's clocks, and the timestamps and durations derived from them. README.md, invariants 6
 * and 7.
 */
#include "base/clock.h"
#include "base/check.h"
#include "base/log.h"
#include "base/magic.h"
#include "journal/journal_internal.h"

#define STALL_REPORT_US_MIN (2 * TL_SECOND)
#define SYNC_COUNTED_US_MAX (100 * TL_MS) /* at most so much of one sync counts against leases */

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

const struct journal_clocks journal__machine_clocks = {.wall = machine_wall, .boot = machine_boot};

uint64_t journal__wall(const struct journal *journal)
{
    return journal->clocks.wall(journal->clocks.context);
}

uint64_t journal__boot(const struct journal *journal)
{
    return journal->clocks.boot(journal->clocks.context);
}

bool journal__wait_until(struct journal *journal, pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until)
{
    REQUIRE(journal__holds(lock));
    uint64_t now = journal__boot(journal);
    return now < until && clock_wait(condition, lock, clock_boot_us() + (until - now)) &&
           journal__boot(journal) < until;
}

tl_ts journal__next_ts(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->core_lock));
    tl_ts core_ts = core_last_ts(journal->core);
    tl_ts last = core_ts > journal->last_ts ? core_ts : journal->last_ts;
    tl_ts now = ts_clock_read(&journal->ts_clock, journal__wall(journal), journal__boot(journal), last);
    journal->last_ts = now > last ? now : last + 1;
    ENSURE(journal->last_ts < TL_TS_MAX);
    return journal->last_ts;
}

uint64_t journal__host_clock(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    uint64_t before = journal->run_clock.last_boot;
    uint64_t boot = journal__boot(journal);
    uint64_t begun = atomic_load_explicit(&journal->sync_begun, memory_order_relaxed);
    if (begun != 0 && boot > begun + SYNC_COUNTED_US_MAX)
        /* A client that waits for this sync cannot renew its lease. */
        boot = begun + SYNC_COUNTED_US_MAX;
    uint64_t clock = run_clock_read(&journal->run_clock, boot);
    if (journal->run_clock.last_boot - before > STALL_REPORT_US_MIN)
        journal->unreported_stall_us += journal->run_clock.last_boot - before;
    atomic_store_explicit(&journal->host_clock, clock, memory_order_relaxed);
    return clock;
}

uint64_t journal__command_clock(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    return journal->cluster != NULL ? cluster__clock(journal) : journal__host_clock(journal);
}

void journal__check_clocks(struct journal *journal)
{
    REQUIRE(journal__holds(&journal->queue_lock));
    uint64_t boot = journal__boot(journal);
    uint64_t wall = journal__wall(journal);
    uint64_t took = journal__boot(journal) - boot;
    (void)journal__command_clock(journal);
    if (journal->unreported_stall_us > 0)
        log_warning("no progress for %.1f s: the process, the machine or the disk stalled; leases do not "
                    "count that time",
                    (double)journal->unreported_stall_us / (double)TL_SECOND);
    journal->unreported_stall_us = 0;
    if (took < RUN_CLOCK_STALL_US && clock_steps_observe(&journal->clock_steps, wall, boot))
        log_warning(
            "the clock of this machine was set %s by %.1f s; timestamps never go back, and leases, waits and timeouts "
            "do not follow it",
            journal->clock_steps.last < 0 ? "back" : "forward",
            (double)(journal->clock_steps.last < 0 ? -journal->clock_steps.last : journal->clock_steps.last) /
                (double)TL_SECOND);
}

void journal_clock_steps(struct journal *journal, struct journal_clock_steps *ret_steps)
{
    REQUIRE(MAGIC_VALID(journal, JOURNAL_MAGIC));
    pthread_mutex_lock(&journal->queue_lock);
    *ret_steps =
        (struct journal_clock_steps){.count = journal->clock_steps.count, .last_us = journal->clock_steps.last};
    pthread_mutex_unlock(&journal->queue_lock);
}
