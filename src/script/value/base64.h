/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64 with padding (RFC 4648, section 4), a group at a time, for buffers of any kind. Ids
 * (api/request/id.h) have the digits of section 5, without padding.
 */
#ifndef TL_SCRIPT_BASE64_H
#define TL_SCRIPT_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Encodes a group: 3 bytes; of the last group 1 to 3. */
void base64_encode(const uint8_t *bytes, size_t count, char ret_digits[4]);
/* Returns: the value of a digit; -1: not a digit of Base64. */
int base64_value(uint32_t digit);

#endif
