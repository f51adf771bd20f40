/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a fuzz target: the function that libFuzzer calls, and checks that end the process. */
#ifndef TL_TESTS_FUZZ_H
#define TL_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(e) ((e) ? (void)0 : abort())

/* Returns: the processor time that this thread has used. */
static inline double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/*
 * Ends the process when this thread has used more than `seconds_max` since cpu_seconds() was `begin`. A replay of the
 * corpus measures time only with TIDELOCK_TEST_LONG=1: on a loaded virtual machine processor time is no measure of
 * work.
 */
static inline void check_cpu(double begin, double seconds_max)
{
#ifdef FUZZING
    bool measures = true;
#else
    bool measures = getenv("TIDELOCK_TEST_LONG") != NULL;
#endif
    MUST(!measures || cpu_seconds() - begin < seconds_max);
}

#endif
