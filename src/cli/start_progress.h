/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports what a server's start does for long: lines in its log, and its state to the supervisor, whose
 * time limit for the start is extended while there is progress (supervisor.h). Each reports its begin, its
 * progress every five seconds, and its end.
 */
#ifndef TL_CLI_START_PROGRESS_H
#define TL_CLI_START_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct recover_observer;

/* Reports a replay of the log. */
extern const struct recover_observer start_progress_replay;

/* The copy of a checkpoint of another host; zeros before the first attempt. */
struct start_copy {
    uint64_t bytes, bytes_total; /* copied by this attempt; of the checkpoint */
    /*
     * Copied by any attempt, when last reported. Only more than that extends the time limit: attempts
     * that fail again and again do not extend it without end.
     */
    uint64_t bytes_max;
    uint64_t begun_us, reported_us; /* boot clock: of this attempt's begin, and of the newest report; 0: none */
};

/* Begins an attempt to copy so many bytes; reports the first one. */
void start_copy_begin(struct start_copy *copy, uint64_t bytes_total);
/* Counts bytes that have been copied, and reports the progress if that is due. Requires: an attempt has begun. */
void start_copy_add(struct start_copy *copy, uint64_t bytes);
/* Reports that the copy is complete. Requires: an attempt has begun. */
void start_copy_end(const struct start_copy *copy);

/*
 * Reports to the supervisor alone that the start waits for the log of a cluster, which cannot be reached, or that it
 * waits no longer. The caller logs the wait, and reports it every few seconds: it has no limit of its own, and each
 * report extends the time limit, since a start that the supervisor repeats would wait, too.
 */
void start_progress_wait(bool waits);

#endif
