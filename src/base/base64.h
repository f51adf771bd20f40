/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base64 (RFC 4648), a group at a time, for buffers of any kind: with the digits and the padding of
 * section 4, and with the digits of section 5, which ids have.
 */
#ifndef TL_BASE_BASE64_H
#define TL_BASE_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Encodes a group: 3 bytes; of the last group 1 to 3. */
void base64_encode(const uint8_t *bytes, size_t count, char ret_digits[4]);
/* Encodes 3 bytes with the digits of section 5. */
void base64_url_encode(const uint8_t bytes[3], char ret_digits[4]);
/* Returns: the digit of section 5 for the low six bits. */
char base64_url_digit(uint64_t bits);
/* Returns: the value of a digit; -1: not a digit of section 4. */
int base64_value(uint32_t digit);

#endif
