/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that stay on in release; see check.h. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void check_failed(const char *kind, const char *expression, const char *file, int line)
{
    fprintf(stderr, "tidelock: %s(%s) failed at %s:%d\n", kind, expression, file, line);
    fflush(stderr);
    abort();
}
