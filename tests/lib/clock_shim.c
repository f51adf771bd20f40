/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks that tests set, for a whole program: preloaded (LD_PRELOAD), it replaces the settable clock (CLOCK_REALTIME)
 * and the one by which Tidelock measures durations (CLOCK_BOOTTIME). Each is the machine's clock times a rate, plus an
 * offset, which are read from the file that TIDELOCK_TEST_CLOCK names, first of CLOCK_REALTIME, then of CLOCK_BOOTTIME:
 *
 *     int64_t offset_us; double rate; int64_t base_us;      result = base + (now - base) * rate + offset
 *
 * Waits are the kernel's and not changed: a program notices that time has passed when it wakes up and reads the clock.
 * The file is mapped, so a test that writes to it sets the clock of a running program. Nothing is linked here but the C
 * library, and the kernel is called by system call, so the interceptors of sanitizers are bypassed.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct clock_setting {
    volatile int64_t offset_us;
    volatile double rate;
    volatile int64_t base_us;
};

static struct clock_setting *settings; /* of CLOCK_REALTIME, of CLOCK_BOOTTIME */

__attribute__((constructor)) static void map_setting(void)
{
    const char *name = getenv("TIDELOCK_TEST_CLOCK");
    int fd = name != NULL ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, 2 * sizeof *settings, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED)
        settings = mapped;
    close(fd);
}

static void set(struct timespec *now, const struct clock_setting *setting)
{
    int64_t us = (int64_t)now->tv_sec * 1000000 + now->tv_nsec / 1000;
    us = setting->base_us + (int64_t)((double)(us - setting->base_us) * setting->rate) + setting->offset_us;
    now->tv_sec = us / 1000000;
    now->tv_nsec = us % 1000000 * 1000;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *now)
{
    int r = (int)syscall(SYS_clock_gettime, clock, now);
    if (r != 0 || settings == NULL)
        return r;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        set(now, &settings[0]);
    else if (clock == CLOCK_BOOTTIME)
        set(now, &settings[1]);
    return r;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec time;
    (void)zone;
    int r = clock_gettime(CLOCK_REALTIME, &time);
    *now = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
    return r;
}

__attribute__((visibility("default"))) time_t time(time_t *ret_now)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return (time_t)-1;
    if (ret_now != NULL)
        *ret_now = now.tv_sec;
    return now.tv_sec;
}
