/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks of the machine. Not for the layers that must be deterministic (tools/check-layers).
 *
 * There are two questions. "How late is it?" is answered by a clock that people and other machines set, forward and back:
 * clock_wall_us(), for what is shown and for timestamps. "How long did it take?" is answered by one that nobody sets and
 * that goes on while the machine sleeps: clock_boot_us(), for every duration.
 */
#ifndef TL_BASE_CLOCK_H
#define TL_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns: microseconds since 1970. */
uint64_t clock_wall_us(void);
/* Returns: microseconds since the machine was started. */
uint64_t clock_boot_us(void);

/*
 * Waits on a condition until it is signalled or clock_boot_us() is `until`; the lock as pthread_cond_wait() has it. It may
 * return early. After a sleep of the machine it may return late, by the length of the wait at most.
 * Returns: false when the time is up.
 */
bool clock_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until);

#endif
