/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Magic numbers of long-lived objects.
 *
 * Such a structure has a member `magic`. Its constructor sets it, its destructor clears it, and the
 * functions that other modules call with the object check it:
 *
 *     REQUIRE(MAGIC_VALID(session, SESSION_MAGIC));
 *
 * So a pointer that is NULL, dangling or of another type ends the process in the call that got it,
 * not later and elsewhere.
 */
#ifndef TL_BASE_MAGIC_H
#define TL_BASE_MAGIC_H

#include <stddef.h>
#include <stdint.h>

/* Returns: the magic number that a debugger shows as these four letters. */
#define MAGIC(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

/* Returns: whether `object` is not NULL and has this magic number. Reads `object` twice. */
#define MAGIC_VALID(object, number) ((object) != NULL && (object)->magic == (number))

/* Clears a magic number. The compiler must not drop the store, although the object is freed next. */
static inline void magic_clear(uint32_t *magic)
{
    *(volatile uint32_t *)magic = 0;
}

#endif
