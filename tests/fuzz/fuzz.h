/* SPDX-License-Identifier: Apache-2.0 */
/* What a fuzz target is made of: the function libFuzzer calls, and checks that end the process. */
#ifndef TL_TESTS_FUZZ_H
#define TL_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(e) ((e) ? (void)0 : abort())

#endif
