/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as bytes, the lowest first: of file formats, and of hashes that are defined so. */
#ifndef TL_BASE_LITTLE_ENDIAN_H
#define TL_BASE_LITTLE_ENDIAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

/* Writes the lowest `len` bytes of a number. Requires: len <= 8. */
static inline void little_endian_put(char *bytes, size_t len, uint64_t number)
{
    REQUIRE(len <= sizeof number);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(number >> (8 * i));
}

/* Reads a number of `len` bytes. Requires: len <= 8. */
static inline uint64_t little_endian_get(const char *bytes, size_t len)
{
    uint64_t number = 0;
    REQUIRE(len <= sizeof number);
    for (size_t i = 0; i < len; i++)
        number |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    return number;
}

static inline void little_endian_put_u32(char *bytes, uint32_t number)
{
    little_endian_put(bytes, sizeof number, number);
}

static inline void little_endian_put_u64(char *bytes, uint64_t number)
{
    little_endian_put(bytes, sizeof number, number);
}

static inline uint32_t little_endian_get_u32(const char *bytes)
{
    return (uint32_t)little_endian_get(bytes, sizeof(uint32_t));
}

static inline uint64_t little_endian_get_u64(const char *bytes)
{
    return little_endian_get(bytes, sizeof(uint64_t));
}

#endif
