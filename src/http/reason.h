/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reasons: texts that say why the server cannot start or cannot use a file.
 */
#ifndef TL_HTTP_REASON_H
#define TL_HTTP_REASON_H

#include "base/error.h"

/*
 * Writes a reason to *ret_reason, unless `ret_reason` is NULL.
 *
 * Returns: TL_ERR_IO, which the caller returns.
 * Owns: the caller; mem_free. The text is allocated by base/alloc, which counts its bytes.
 */
int reason_fail(char **ret_reason, const char *format, ...) TL_MUST_USE TL_PRINTF(2, 3) __attribute__((nonnull(2)));

#endif
