/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native stack: its size, and checks against overflow.
 *
 * Much of the program recurses over input of clients: parsers, walks over JSON, queries, mappings,
 * scripts and their compositions. A stack overflow ends the process, so no input may cause one.
 *
 *  1. Recursion over input of clients counts its depth. The limits are constants of the program,
 *     not of the host: the same input fails at the same depth everywhere.
 *  2. Threads of the server have stacks of STACK_BYTES, whatever `ulimit -s` is (stack_prepare,
 *     stack_run). That suffices for all depth limits together.
 *  3. In addition, recursion checks the stack pointer (stack_is_low) and fails as if its depth
 *     limit were reached. In a thread of STACK_BYTES that never happens, so nothing deterministic
 *     depends on it. In a smaller one (of a test, of a library) the request fails instead of the
 *     process.
 *  4. STACK_RESERVE_BYTES remain for the handling of that failure: error messages, allocation, a
 *     write.
 */
#ifndef TL_BASE_STACK_H
#define TL_BASE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STACK_FACTOR 4 /* sanitized builds have larger frames */
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_FACTOR 4
#endif
#ifndef STACK_FACTOR
#define STACK_FACTOR 1
#endif

#define STACK_BYTES ((size_t)STACK_FACTOR * 8 << 20)
#define STACK_RESERVE_BYTES ((size_t)STACK_FACTOR * 64 << 10)

/*
 * Below this address the calling thread must not recurse; 0: not yet determined by stack__learn().
 */
extern _Thread_local uintptr_t stack__floor;
void stack__learn(void);

/*
 * Returns: the lowest address at which the calling thread may recurse; for callers that cache it.
 */
static inline uintptr_t stack_floor(void)
{
    if (__builtin_expect(stack__floor == 0, 0))
        stack__learn();
    return stack__floor;
}

/* Returns: the address of the current stack frame. */
static inline uintptr_t stack_here(void)
{
    return (uintptr_t)__builtin_frame_address(0);
}

/* Returns: whether the calling thread must not recurse further. */
static inline bool stack_is_low(void)
{
    return stack_here() < stack_floor();
}

/* Sets the default stack size of new threads, also of libraries, to STACK_BYTES. */
void stack_prepare(void);

/*
 * Runs `function` in a thread of STACK_BYTES.
 * Returns: its result; -1 when no thread can be created.
 */
int stack_run(int (*function)(void *context), void *context);

#endif
