/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes that know their thread; see mutex.h. */
#include "base/mutex.h"

#include <errno.h>
#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
#define THREADS_ARE_CHECKED
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREADS_ARE_CHECKED
#endif
#endif

#if defined(TIDELOCK_CHECK_COSTLY) && !defined(THREADS_ARE_CHECKED)
enum { KNOW_THREAD = 1, TYPE = PTHREAD_MUTEX_ERRORCHECK };
#else
enum { KNOW_THREAD = 0, TYPE = PTHREAD_MUTEX_DEFAULT };
#endif

void mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, TYPE);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

bool mutex_is_held(const pthread_mutex_t *mutex)
{
    return !KNOW_THREAD || pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)mutex) == EDEADLK;
}
