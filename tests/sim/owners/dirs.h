/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories by number, for the model, the generator and who compares. Renames make new ones as a seed goes on; a number means one path
 * until dirs_begin(), and the first OM_DIRS are always the same.
 */
#ifndef TL_TESTS_SIM_OWNERS_DIRS_H
#define TL_TESTS_SIM_OWNERS_DIRS_H

#include <stdbool.h>
#include <stddef.h>

/* A seed begins: only the first ones are there. */
void dirs_begin(void);
/* Returns: the path, which lives until dirs_begin(). */
const char *dirs_path(int dir);
/* Returns: the directory above; -1: it is the root. */
int dirs_above(int dir);
int dirs_depth(int dir);
/* Returns: the directory of that name in another one, which is new or not. Ends the process where there are too many. */
int dirs_in(int above, const char *name);
/* Returns: the directory of a path; -1: no number was given to it. */
int dirs_find(const char *path, size_t len);
/* Whether a directory is another one, or lies below it; -1 lies nowhere. */
bool dirs_within(int dir, int above);
/* Returns: where a directory within `from` lies when that lies at `to`. */
int dirs_moved(int dir, int from, int to);

#endif
