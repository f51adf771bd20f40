/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks of the host; see clock.h. */
#include "base/clock.h"

#include "base/types.h"

#include <errno.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * TL_SECOND + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_wall_us(void)
{
    return read_clock(CLOCK_REALTIME);
}

uint64_t clock_boot_us(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

/*
 * POSIX conditions cannot wait on CLOCK_BOOTTIME; the remaining time is waited on CLOCK_MONOTONIC.
 */
bool clock_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until)
{
    uint64_t now = clock_boot_us();
    if (now >= until)
        return false;
    uint64_t left = until - now < 86400 * TL_SECOND ? until - now : 86400 * TL_SECOND;
    uint64_t end = read_clock(CLOCK_MONOTONIC) + left;
    struct timespec at = {(time_t)(end / TL_SECOND), (long)(end % TL_SECOND) * 1000};
    (void)pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &at);
    return clock_boot_us() < until;
}
