/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC32C (Castagnoli; RFC 3720, appendix B.4), by the processor's instruction where it has one.
 */
#ifndef TL_BASE_CRC32C_H
#define TL_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Goes on with the checksum `crc` of what stands before; 0 at the beginning. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);

/* The same by tables alone, for tests and other processors. */
uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t len);

#endif
