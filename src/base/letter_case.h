/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Case of letters, one code point to one, as in java.lang.Character: the one table of the program.
 *
 * Stored data depends on it: tokens of texts are keys of secondary index entries, and a script
 * that changes case runs again in each replay of a log. So each use has its own set of the rows,
 * and a set never changes: a letter that a use lacks has no case for it. A new use, or a new
 * version of an old one, gets a set of its own.
 *
 * tools/letter-case generates the table (letter_case.def) from the Unicode data. It says which letters each set
 * has, which versions of Unicode that needs, how Elasticsearch's Java differs, and which three code points are
 * not those of Unicode. Pairs never change once they are assigned.
 */
#ifndef TL_BASE_LETTER_CASE_H
#define TL_BASE_LETTER_CASE_H

#include <stdbool.h>
#include <stdint.h>

enum letter_case_set {
    LETTER_CASE_TOKENS = 1,  /* token filters: Latin, Greek, Cyrillic, Armenian, Deseret, full-width letters */
    LETTER_CASE_SCRIPTS = 2, /* scripts: Latin-1, Latin Extended-A, Greek and Cyrillic without accented Greek */
    LETTER_CASE_NAMES = 4,   /* names of indices: no capitals of these scripts, and of nine others */
};

/* Returns: the lower-case letter of a capital of the set; any other code point unchanged. */
uint32_t case_lower(enum letter_case_set set, uint32_t c);

/*
 * Returns: the capital of a lower-case letter of the set; any other code point unchanged.
 * Requires: the set is not LETTER_CASE_NAMES.
 */
uint32_t case_upper(enum letter_case_set set, uint32_t c);

/* Returns: whether a code point is a capital of the set. */
bool case_is_upper(enum letter_case_set set, uint32_t c);

#endif
