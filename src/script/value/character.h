/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letters: the case and kind of a UTF-16 unit, as Java's Character has them.
 *
 * Case is known of ASCII, Latin-1 and the plain pairs of Latin Extended-A, Greek and Cyrillic; what has no other case
 * is returned as it is. The kinds know some scripts without case, too.
 */
#ifndef TL_SCRIPT_CHARACTER_H
#define TL_SCRIPT_CHARACTER_H

#include "script/value/text.h"

uint16_t char_upper(uint16_t c);
uint16_t char_lower(uint16_t c);

bool char_is_letter(uint16_t c);
bool char_is_digit(uint16_t c); /* 0 to 9 */
bool char_is_space(uint16_t c); /* Java's white space: no non-breaking space among it */

/* Java's compareToIgnoreCase. */
int char_compare_ignore_case(struct run *run, const struct text *a, const struct text *b);

#endif
