/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes that know their thread in builds of developers: there a function checks that its caller
 * holds the lock that it requires. They report an attempt to lock one again, or to unlock that of
 * another thread. The thread sanitizer finds such calls itself, and takes an attempt for an error.
 */
#ifndef TL_BASE_MUTEX_H
#define TL_BASE_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

void mutex_init(pthread_mutex_t *mutex);
/*
 * Returns: whether the calling thread holds the mutex; true in all builds but those of developers.
 * Assumes: mutex_init() made it.
 */
bool mutex_is_held(const pthread_mutex_t *mutex);

#endif
