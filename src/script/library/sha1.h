/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 (FIPS 180-4), which names Groovy's scripts. Not for anything secret. */
#ifndef TL_SCRIPT_SHA1_H
#define TL_SCRIPT_SHA1_H

#include "base/slice.h"

/* Forty hexadecimal digits and a NUL. */
void sha1_hex(struct slice bytes, char out[41]);

#endif
