/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories by number, for the model, the generator and the comparison. Renames add new ones
 * during a seed. A number means one path until dirs_begin(); the first OM_DIRS are always the same.
 */
#ifndef TL_TESTS_SIM_OWNERS_DIRS_H
#define TL_TESTS_SIM_OWNERS_DIRS_H

#include <stdbool.h>
#include <stddef.h>

/* Begins a seed: only the first OM_DIRS exist. */
void dirs_begin(void);
/* Returns: the path; valid until dirs_begin(). */
const char *dirs_path(int dir);
/* Returns: the parent; -1: it is the root. */
int dirs_above(int dir);
int dirs_depth(int dir);
/*
 * Returns: the directory of that name in `above`, made if it does not exist. Exits if there are too
 * many.
 */
int dirs_in(int above, const char *name);
/* Returns: the directory of a path; -1: it has no number. */
int dirs_find(const char *path, size_t len);
/* Whether a directory is another one or below it; false for -1. */
bool dirs_within(int dir, int above);
/* Returns: the directory that `dir`, within `from`, becomes by a rename of `from` to `to`. */
int dirs_moved(int dir, int from, int to);

#endif
