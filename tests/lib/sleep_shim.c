/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shorter rests for a program under test: preloaded (LD_PRELOAD), it sleeps for 20 ms where the program asks for half a
 * second or more with usleep(). Shorter sleeps are not changed, so that a loop that retries does not spin.
 *
 * The kernel is asked by system call, so that the interceptors of sanitizers are bypassed.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LONG_US = 500 * 1000, SHORT_US = 20 * 1000 };

__attribute__((visibility("default"))) int usleep(useconds_t us)
{
    us = us < LONG_US ? us : SHORT_US;
    const struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};
    return (int)syscall(SYS_nanosleep, &time, NULL);
}
