/* SPDX-License-Identifier: Apache-2.0 */
/* The natives of DecimalFormat in a run with old_library. */
#ifndef TL_SCRIPT_OLD_DECIMAL_FORMAT_H
#define TL_SCRIPT_OLD_DECIMAL_FORMAT_H

#include "script/library/method.h"

bool old_decimal_format_new(struct call *call, struct value *ret);
bool old_decimal_format_format(struct call *call, struct value *ret);

#endif
