/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths known to be empty: no document exists at them or below. A rename to such a path need not
 * search the entries of documents that were there.
 *
 * The core may also watch a path without knowing whether it is empty. If a reader then finds it
 * empty in a view at or above the timestamp of the watch, the core knows it to be empty while the
 * watch lasts: any write at or below the path ends it. So the long search runs on another thread.
 * A write below ends the watch of the paths below only. So a directory in which documents are
 * written all the time can be renamed: one below it is found, and none is at the path itself.
 *
 * Before a change of the committed state becomes visible, it removes the paths that it affects
 * (README.md, invariant 10). Whether a rename needs another search depends on the paths that are
 * known. So they are part of the core's state: the same on all hosts at one position of the log,
 * and saved with it.
 */
#ifndef TL_CORE_EMPTY_PATHS_H
#define TL_CORE_EMPTY_PATHS_H

#include "base/slice.h"
#include "base/types.h"
#include "core/command/codec.h"

enum { EMPTY_PATHS_MAX = 64 };

/* Zero-initialized: no path is known. */
struct empty_paths {
    /* In no order; which element is replaced next depends on the order all the same */
    struct empty_path {
        uint32_t index;
        char delimiter;
        struct slice path; /* owned */
        /*
         * Since when writes at the path itself, and below it, are watched; TL_TS_MAX: there was one.
         * Both TL_TS_NONE: known to be empty.
         */
        tl_ts watched_at, watched_below;
    } items[EMPTY_PATHS_MAX];
    size_t count;
    size_t next_replaced; /* index of the next path to replace when the array is full */
};

/* Returns: whether no document exists at or below the path; false: unknown. */
bool empty_paths_contains(const struct empty_paths *paths, uint32_t index, struct slice path, char delimiter);
/*
 * Adds a path.
 *
 * Assumes: no document exists at or below it.
 */
void empty_paths_add(struct empty_paths *paths, uint32_t index, struct slice path, char delimiter);
/*
 * Watches a path from now on, and below it; an earlier watch continues.
 * Requires: a view at `ts` contains every change applied before.
 */
void empty_paths_watch(struct empty_paths *paths, uint32_t index, struct slice path, char delimiter, tl_ts ts);
/*
 * Determines whether the path itself, and the paths below it, were watched at `ts` and have got no
 * document since: they have none if they had none in the view at `ts`.
 * Requires: `ts` is of a view.
 */
void empty_paths_unchanged_since(const struct empty_paths *paths, uint32_t index, struct slice path, tl_ts ts,
                                 bool *ret_at, bool *ret_below);
/* Removes the paths that a document at `path` makes non-empty, and ends their watches. */
void empty_paths_invalidate(struct empty_paths *paths, uint32_t index, struct slice path);
/* As empty_paths_invalidate(), for any documents at `path` and below it. */
void empty_paths_invalidate_subtree(struct empty_paths *paths, uint32_t index, struct slice path);
/* Removes all paths; documents may appear anywhere. */
void empty_paths_clear(struct empty_paths *paths);

/* Codes all of it. Requires: when reading, no path is known. */
void empty_paths__codec(struct codec *codec, struct empty_paths *paths);

#endif
