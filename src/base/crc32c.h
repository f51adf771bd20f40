/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC32C (Castagnoli; RFC 3720, appendix B.4), with the processor's instruction where available.
 */
#ifndef TL_BASE_CRC32C_H
#define TL_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns: the checksum of the bytes, continued from `crc`, that of the preceding bytes; 0: none.
 */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);

/* As crc32c(), without the instruction; for tests and other processors. */
uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t len);

#endif
