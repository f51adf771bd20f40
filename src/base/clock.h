/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks of the host. Deterministic layers must not use them (tools/check-layers).
 *
 * The wall clock, clock_wall_us(), can be set forward and back by operators and NTP. It is for
 * timestamps and for output. The monotonic clock, clock_boot_us(), is never set, and runs while the
 * host is suspended. It is for durations.
 */
#ifndef TL_BASE_CLOCK_H
#define TL_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns: microseconds since 1970-01-01 (CLOCK_REALTIME). */
uint64_t clock_wall_us(void);
/* Returns: microseconds since the boot of the host (CLOCK_BOOTTIME). */
uint64_t clock_boot_us(void);

/*
 * Waits on a condition until it is signalled or clock_boot_us() reaches `until`. May return
 * earlier. If the host is suspended meanwhile it may return late, by at most the length of the
 * wait.
 *
 * Assumes: the lock is held, as for pthread_cond_wait().
 * Returns: false when `until` has been reached.
 */
bool clock_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until);

#endif
