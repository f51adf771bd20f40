/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a long job is: a bar that is redrawn on a terminal, a line every few seconds elsewhere; on standard error.
 */
#ifndef TL_CLI_PROGRESS_H
#define TL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *noun; /* "files" */
    uint64_t total;   /* 0: not known */
    uint64_t done;
    uint64_t began_us;
    uint64_t shown_us;
    bool terminal;
    bool quiet;
};

void progress_init(struct progress *progress, const char *noun, uint64_t total, bool quiet);
/* Shows it when the last time is long enough ago. */
void progress_set(struct progress *progress, uint64_t done);
/* Shows the end, and on a terminal leaves the line. */
void progress_end(struct progress *progress);
/*
 * Erases the bar that a terminal shows, so that a message gets its line; the next progress_set()
 * draws the bar below. From any thread that has locked stderr (flockfile), or the only one.
 */
void progress_clear(void);
/* Seconds since the beginning. */
double progress_seconds(const struct progress *progress);

#endif
