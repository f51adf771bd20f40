/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as bytes, the highest first, so that keys have the order of their numbers. buf.h appends and takes them. */
#ifndef TL_BASE_BIG_ENDIAN_H
#define TL_BASE_BIG_ENDIAN_H

#include <stdint.h>

#include "base/check.h"

static inline void big_endian_put_u32(char bytes[4], uint32_t number)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (char)(number >> (24 - 8 * i));
}

static inline void big_endian_put_u64(char bytes[8], uint64_t number)
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(number >> (56 - 8 * i));
}

/* Computes the bounds [lower, upper) of all keys that begin with a number. Requires: number < UINT32_MAX. */
static inline void big_endian_range_u32(uint32_t number, char ret_lower[4], char ret_upper[4])
{
    REQUIRE(number < UINT32_MAX); /* else the upper bound would be below the lower one */
    big_endian_put_u32(ret_lower, number);
    big_endian_put_u32(ret_upper, number + 1);
}

#endif
