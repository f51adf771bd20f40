/* SPDX-License-Identifier: Apache-2.0 */
/* Checks; see check.h. */
#include "base/check.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void check_failed(const char *kind, const char *expression, const char *file, int line)
{
    char text[1000];
    int len = snprintf(text, sizeof text, "tidelock: %s(%.800s) failed at %s:%d\n", kind, expression, file, line);
    log_write_before_abort(text, len < (int)sizeof text ? (size_t)len : sizeof text - 1);
    abort();
}
