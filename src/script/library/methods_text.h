/* SPDX-License-Identifier: Apache-2.0 */
/* What methods of texts share, whatever the class: String, StringBuilder, Character. */
#ifndef TL_SCRIPT_METHODS_TEXT_H
#define TL_SCRIPT_METHODS_TEXT_H

#include "script/library/method_args.h"

/* Checks that a part begins before it ends, and in a text of `length` units. Returns: false and a throwable if not. */
bool methods_text_check_range(struct run *run, int64_t begin, int64_t end, size_t length);

/* The part of a text from `begin` up to `end`, both of which may be any number. */
bool methods_text_cut(struct run *run, struct text *text, int64_t begin, int64_t end, struct value *ret);

/* Methods, see method_call; index_of and last_index_of want a String as receiver, substring takes any CharSequence. */
bool methods_text_substring(struct call *call, struct value *ret);
bool methods_text_index_of(struct call *call, struct value *ret);
bool methods_text_last_index_of(struct call *call, struct value *ret);
/* Static: the argument as a text. */
bool methods_text_value_of(struct call *call, struct value *ret);

#endif
