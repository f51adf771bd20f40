/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-1 (FIPS 180-4), used for the class names of Groovy scripts. Not for security. */
#ifndef TL_SCRIPT_SHA1_H
#define TL_SCRIPT_SHA1_H

#include "base/slice.h"

/* Writes the digest as 40 hexadecimal digits and a NUL. */
void sha1_hex(struct slice bytes, char out[41]);

#endif
