/* SPDX-License-Identifier: Apache-2.0 */
/* How far a long job is; see progress.h. */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

/*
 * A terminal shows a bar, and the cursor is in its line. Protected by the lock of stderr; atomic since
 * the thread sanitizer does not know that lock.
 */
static _Atomic bool bar_shown;

enum { BAR_WIDTH = 30, TERMINAL_EVERY_US = 100 * 1000, PLAIN_EVERY_US = 2 * 1000 * 1000 };

void progress_init(struct progress *progress, const char *noun, uint64_t total, bool quiet)
{
    *progress = (struct progress){
        .noun = noun,
        .total = total,
        .began_us = clock_boot_us(),
        .terminal = isatty(STDERR_FILENO) == 1,
        .quiet = quiet,
    };
    progress->shown_us = progress->began_us;
}

double progress_seconds(const struct progress *progress)
{
    return (double)(clock_boot_us() - progress->began_us) / 1e6;
}

static void show_bar(const struct progress *progress)
{
    unsigned filled = (unsigned)(progress->done * BAR_WIDTH / progress->total);
    if (filled > BAR_WIDTH)
        filled = BAR_WIDTH;
    char bar[BAR_WIDTH + 1];
    for (unsigned i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "[%s] %3u%% ", bar, (unsigned)(progress->done * 100 / progress->total));
}

static void show_progress(struct progress *progress)
{
    double seconds = progress_seconds(progress);
    double rate = seconds > 0 ? (double)progress->done / seconds : 0;
    progress->shown_us = clock_boot_us();
    flockfile(stderr);
    bar_shown = progress->terminal;
    if (progress->terminal)
        fputs("\r", stderr);
    if (progress->total > 0)
        show_bar(progress);
    fprintf(stderr, "%llu", (unsigned long long)progress->done);
    if (progress->total > 0)
        fprintf(stderr, " of %llu", (unsigned long long)progress->total);
    fprintf(stderr, " %s, %.0f/s", progress->noun, rate);
    if (progress->total > progress->done && rate > 0)
        fprintf(stderr, ", %.0f s left ", (double)(progress->total - progress->done) / rate);
    fputs(progress->terminal ? "\033[K" : "\n", stderr);
    fflush(stderr);
    funlockfile(stderr);
}

void progress_clear(void)
{
    if (bar_shown)
        fputs("\r\033[K", stderr);
    bar_shown = false;
}

void progress_set(struct progress *progress, uint64_t done)
{
    progress->done = done;
    uint64_t every = progress->terminal ? TERMINAL_EVERY_US : PLAIN_EVERY_US;
    if (!progress->quiet && clock_boot_us() - progress->shown_us >= every)
        show_progress(progress);
}

void progress_end(struct progress *progress)
{
    if (progress->quiet)
        return;
    flockfile(stderr);
    show_progress(progress);
    if (progress->terminal)
        fputs("\n", stderr);
    bar_shown = false;
    funlockfile(stderr);
}
