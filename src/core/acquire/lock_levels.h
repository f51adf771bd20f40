/* SPDX-License-Identifier: Apache-2.0 */
/* How many directories lie above the locks of a request. README-locks.md, "The limits of a request". */
#ifndef TL_CORE_LOCK_LEVELS_H
#define TL_CORE_LOCK_LEVELS_H

#include <stddef.h>

#include "base/slice.h"

struct core;
struct lock_spec;

/* Returns: the number of directories of a path; 0 if it has no data. */
size_t lock_levels__of(struct slice path);
/*
 * Counts the directories above all specs; shared ones count once.
 * Returns: their number; `most` + 1, if there are more than `most`. Commands before version 17 are counted to the end.
 */
size_t lock_levels__distinct(struct core *core, const struct lock_spec *specs, size_t count, size_t most);

#endif
