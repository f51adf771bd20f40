/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the methods of String, StringBuilder and Character. */
#ifndef TL_SCRIPT_METHODS_TEXT_H
#define TL_SCRIPT_METHODS_TEXT_H

#include "script/library/method_args.h"

/* Checks that 0 <= begin <= end <= length, in code units. Returns: true; false with a throwable
   in the run. */
bool methods_text_check_range(struct run *run, int64_t begin, int64_t end, size_t length);

/* Gives the part of a text from `begin` to `end`, exclusive. Any bounds may be passed; invalid
   ones throw. */
bool methods_text_cut(struct run *run, struct text *text, int64_t begin, int64_t end, struct value *ret);

/* Natives, see method_call. index_of and last_index_of require a String as receiver; substring
   takes any CharSequence. */
bool methods_text_substring(struct call *call, struct value *ret);
bool methods_text_index_of(struct call *call, struct value *ret);
bool methods_text_last_index_of(struct call *call, struct value *ret);
/* The native of String.valueOf, a static method: the argument as a string. */
bool methods_text_value_of(struct call *call, struct value *ret);

#endif
