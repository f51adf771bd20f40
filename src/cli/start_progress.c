/* SPDX-License-Identifier: Apache-2.0 */
/* Reports what a start does for long; see start_progress.h. */
#include "cli/start_progress.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/types.h"
#include "cli/supervisor.h"
#include "journal/recover.h"

#define PERIOD_US ((uint64_t)5 * TL_SECOND)

enum { TEXT_BYTES_MAX = 160 };

static double megabytes(uint64_t bytes)
{
    return (double)bytes / 1e6;
}

static double seconds(uint64_t us)
{
    return (double)us / 1e6;
}

/* Writes how much is done, and the expected duration of the rest, at the rate so far: unknown before there is one. */
static void write_part(uint64_t done, uint64_t total, uint64_t us, char text[static TEXT_BYTES_MAX])
{
    int percent = done < total ? (int)(100.0 * (double)done / (double)total) : 100;
    uint64_t left = done < total ? total - done : 0;
    if (done == 0)
        snprintf(text, TEXT_BYTES_MAX, "%d %%", percent);
    else
        snprintf(text, TEXT_BYTES_MAX, "%d %%, about %.0f s left", percent, seconds(us) * (double)left / (double)done);
}

/*
 * Reports a status to the supervisor; empty: none any more. `extends`: its time limit begins anew, as long as the unit
 * file's: one step may take long.
 */
static void report_status(const char *text, bool extends)
{
    char state[TEXT_BYTES_MAX + 64];
    snprintf(state, sizeof state, "%sSTATUS=%s", extends ? "EXTEND_TIMEOUT_USEC=600000000\n" : "", text);
    supervisor_report(state);
}

/* Logs a line, which is the supervisor's status, too, unless nothing more `follows`. `extends`: as report_status(). */
static void report_line(const char *text, bool follows, bool extends)
{
    log_info("%s", text);
    report_status(follows ? text : "", extends);
}

/* --- Replay ------------------------------------------------------------------------------------------------------- */

static void write_own(const struct recover_progress *progress, char text[static TEXT_BYTES_MAX])
{
    char part[TEXT_BYTES_MAX];
    switch (progress->phase) {
    case RECOVER_BEGINS:
        snprintf(text, TEXT_BYTES_MAX, "applying the log: entries %" PRIu64 " to %" PRIu64 ", %.1f MB",
                 progress->checkpoint + 1, progress->last, megabytes(progress->bytes_total));
        break;
    case RECOVER_REPLAYS:
        write_part(progress->bytes, progress->bytes_total, progress->us, part);
        snprintf(text, TEXT_BYTES_MAX, "applying the log: entry %" PRIu64 " of %" PRIu64 ", %.60s", progress->position,
                 progress->last, part);
        break;
    case RECOVER_ENDED:
        snprintf(text, TEXT_BYTES_MAX, "the log has been applied: %" PRIu64 " entries, %.1f MB, in %.1f s",
                 progress->entries, megabytes(progress->bytes), seconds(progress->us));
        break;
    }
}

/* Of a cluster's log, whose size is unknown: the part is that of the positions. */
static void write_shared(const struct recover_progress *progress, char text[static TEXT_BYTES_MAX])
{
    char part[TEXT_BYTES_MAX], last[TEXT_BYTES_MAX] = "";
    if (progress->phase == RECOVER_ENDED) {
        snprintf(text, TEXT_BYTES_MAX,
                 "the log of the cluster has been applied: %" PRIu64 " entries, %.1f MB, in %.1f s", progress->entries,
                 megabytes(progress->bytes), seconds(progress->us));
        return;
    }
    if (progress->phase == RECOVER_BEGINS) {
        if (progress->last != 0)
            snprintf(last, sizeof last, " up to position %" PRIu64, progress->last);
        snprintf(text, TEXT_BYTES_MAX, "applying the log of the cluster: entries after position %" PRIu64 "%.60s",
                 progress->checkpoint, last);
        return;
    }
    if (progress->last != 0) {
        write_part(progress->position - progress->checkpoint, progress->last - progress->checkpoint, progress->us,
                   part);
        snprintf(last, sizeof last, " of %" PRIu64 ", %.60s", progress->last, part);
    }
    snprintf(text, TEXT_BYTES_MAX, "applying the log of the cluster: position %" PRIu64 "%.90s", progress->position,
             last);
}

/* A report follows an entry that was applied, so the time limit is extended only while there is progress. */
static void report_replay(void *context, const struct recover_progress *progress)
{
    char text[TEXT_BYTES_MAX];
    (void)context;
    if (progress->shared)
        write_shared(progress, text);
    else
        write_own(progress, text);
    report_line(text, progress->phase != RECOVER_ENDED, true);
}

const struct recover_observer start_progress_replay = {.report = report_replay, .period_us = PERIOD_US};

/* --- Copy --------------------------------------------------------------------------------------------------------- */

static void report_copy(struct start_copy *copy, uint64_t now)
{
    char text[TEXT_BYTES_MAX], part[TEXT_BYTES_MAX];
    bool more = copy->bytes > copy->bytes_max;
    write_part(copy->bytes, copy->bytes_total, now - copy->begun_us, part);
    snprintf(text, sizeof text, "copying the checkpoint of another host: %.1f of %.1f MB, %.60s",
             megabytes(copy->bytes), megabytes(copy->bytes_total), part);
    report_line(text, true, more);
    copy->reported_us = now;
    if (more)
        copy->bytes_max = copy->bytes;
}

void start_copy_begin(struct start_copy *copy, uint64_t bytes_total)
{
    char text[TEXT_BYTES_MAX];
    bool first = copy->reported_us == 0;
    copy->bytes = 0;
    copy->bytes_total = bytes_total;
    copy->begun_us = clock_boot_us();
    if (!first)
        return;
    copy->reported_us = copy->begun_us;
    snprintf(text, sizeof text, "copying the checkpoint of another host: %.1f MB", megabytes(bytes_total));
    report_line(text, true, true);
}

void start_copy_add(struct start_copy *copy, uint64_t bytes)
{
    REQUIRE(copy->reported_us != 0);
    uint64_t now = clock_boot_us();
    copy->bytes += bytes;
    if (now - copy->reported_us >= PERIOD_US)
        report_copy(copy, now);
}

void start_copy_end(const struct start_copy *copy)
{
    REQUIRE(copy->reported_us != 0);
    char text[TEXT_BYTES_MAX];
    snprintf(text, sizeof text, "the checkpoint has been copied: %.1f MB, in %.1f s", megabytes(copy->bytes),
             seconds(clock_boot_us() - copy->begun_us));
    report_line(text, false, true);
}

/* --- Waiting for the log of a cluster ----------------------------------------------------------------------------- */

void start_progress_wait(bool waits)
{
    report_status(waits ? "waiting for the log of the cluster, which cannot be reached" : "", true);
}
