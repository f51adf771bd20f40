/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native stack: how much of it there is, and who asks.
 *
 * Much here recurses over what a client built: parsers, walks over JSON, queries, mappings, scripts and the functions that
 * they compose. An overflow ends the process, so it must not happen, whatever is sent.
 *
 *  1. Whatever recurses over what a client built counts its depth, and its bound is a number of this program, not of the
 *     machine: the same input fails at the same place everywhere.
 *  2. The threads of the server have STACK_BYTES, whatever `ulimit -s` says (stack_prepare, stack_run). All bounds by
 *     count fit in there together, with room to spare.
 *  3. Beyond the counts, recursion looks at the address of the stack (stack_is_low) and fails as if its count had run out.
 *     In a thread of STACK_BYTES that never happens, so nothing deterministic depends on it; in a smaller one (a test's, a
 *     library's) it is an error of the request instead of the end of the process.
 *  4. STACK_RESERVE_BYTES remain for what the one who was told so calls: words for the error, the allocator, a write.
 */
#ifndef TL_BASE_STACK_H
#define TL_BASE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STACK_FACTOR 4 /* frames of sanitized builds are that much larger */
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_FACTOR 4
#endif
#ifndef STACK_FACTOR
#define STACK_FACTOR 1
#endif

#define STACK_BYTES ((size_t)STACK_FACTOR * 8 << 20)
#define STACK_RESERVE_BYTES ((size_t)STACK_FACTOR * 64 << 10)

/* Below this address the calling thread must not recurse; 0: not known yet. Set by stack__learn. */
extern _Thread_local uintptr_t stack__floor;
void stack__learn(void);

/* Returns: the lowest address at which the calling thread may still recurse, for those who keep it at hand. */
static inline uintptr_t stack_floor(void)
{
    if (__builtin_expect(stack__floor == 0, 0))
        stack__learn();
    return stack__floor;
}

static inline uintptr_t stack_here(void)
{
    return (uintptr_t)__builtin_frame_address(0);
}

/* Whether the calling thread is so deep in its stack that it must not go on. */
static inline bool stack_is_low(void)
{
    return stack_here() < stack_floor();
}

/* Threads that are made from now on, by libraries too, have STACK_BYTES. */
void stack_prepare(void);

/* Runs `function` in a thread of STACK_BYTES and waits for it. Returns: what it returned, -1 when there is no such thread. */
int stack_run(int (*function)(void *context), void *context);

#endif
