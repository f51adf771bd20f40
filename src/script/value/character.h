/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Characters: case and category of a UTF-16 code unit, as in java.lang.Character.
 *
 * Case mapping covers the letters of LETTER_CASE_SCRIPTS (base/letter_case.h); any other unit is
 * returned unchanged. The categories also cover some scripts without case.
 */
#ifndef TL_SCRIPT_CHARACTER_H
#define TL_SCRIPT_CHARACTER_H

#include "script/value/text.h"

uint16_t char_upper(uint16_t c);
uint16_t char_lower(uint16_t c);

bool char_is_letter(uint16_t c);
bool char_is_digit(uint16_t c); /* 0 to 9 */
bool char_is_space(uint16_t c); /* Java's isWhitespace: excludes non-breaking spaces */

/* Java's compareToIgnoreCase. */
int char_compare_ignore_case(struct run *run, const struct text *a, const struct text *b);

#endif
