/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons; see reason.h. */
#include "http/reason.h"

#include "base/alloc.h"
#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>

int reason_fail(char **ret_reason, const char *format, ...)
{
    if (ret_reason == NULL)
        return TL_ERR_IO;
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    int len = vsnprintf(NULL, 0, format, values);
    va_end(values);
    INSIST(len >= 0);
    *ret_reason = mem_alloc((size_t)len + 1);
    (void)vsnprintf(*ret_reason, (size_t)len + 1, format, again);
    va_end(again);
    return TL_ERR_IO;
}
