/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths at which nothing lies, nor below them, as the core happens to know: who renames onto one need not look through all that once lay there.
 *
 * A place may be watched as well: nobody knows whether anything lies there, but whoever reads a view of then or later, and finds nothing, knows it
 * as long as the place is watched, since whatever comes to lie there ends that. So the long look is another thread's.
 *
 * Knowing none is always right. What is known is of the newest committed state; a change of where documents lie makes known places forgotten before
 * anybody can ask (README.md, invariant 10). It is in no checkpoint, and nothing that anybody sees hangs on it.
 */
#ifndef TL_CORE_EMPTY_PATHS_H
#define TL_CORE_EMPTY_PATHS_H

#include "base/slice.h"
#include "base/types.h"

enum { EMPTY_PATHS_MAX = 64 };

/* All zero: nothing is known. */
struct empty_paths {
    struct empty_path {
        uint32_t index;
        char delimiter;
        struct slice path; /* owned */
        tl_ts watched;     /* since when; TL_TS_NONE: it is known to be empty */
    } items[EMPTY_PATHS_MAX];
    size_t count;
    size_t turn; /* the next one to give way when there are too many */
};

/* Returns: whether nothing lies at a path, nor below it. False: nobody knows. */
bool empty_paths_contains(const struct empty_paths *places, uint32_t index, struct slice path, char delimiter);
/* Requires: nothing lies at the path, nor below it. */
void empty_paths_add(struct empty_paths *places, uint32_t index, struct slice path, char delimiter);
/* Nothing that the core has applied by `ts` is unknown to a view of `ts`; what it applies from now on ends the watch. */
void empty_paths_watch(struct empty_paths *places, uint32_t index, struct slice path, char delimiter, tl_ts ts);
/* Returns: whether nothing lies at a path, nor below it, when nothing did in the view of `ts`. False: nobody knows. */
bool empty_paths_unchanged_since(const struct empty_paths *places, uint32_t index, struct slice path, tl_ts ts);
/* Something comes to lie at a path, or below it. */
void empty_paths_invalidate(struct empty_paths *places, uint32_t index, struct slice path);
/* Something may come to lie anywhere. */
void empty_paths_clear(struct empty_paths *places);

#endif
